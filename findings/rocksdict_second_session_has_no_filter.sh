#!/usr/bin/env bash
# rocksdict: a database that is opened for the second time has no Bloom filters.
#
# Package: rocksdict 0.3.29 (PyPI), RocksDB for Python.
#
# Rdict(path, options) with set_bloom_filter(10, False) makes a database whose filters spare the
# look-ups of absent keys their reads. One expects the same of the next session, which passes the
# same options. But the tables of an existing database get the options that RocksDB saved
# ("automatic reloading all options on reopening", says the README). The options that are passed are
# ignored, and the filter is not among those that come back: "bloomfilter" is saved, nullptr is
# read. The filters in the files are not asked, and new files get none. No error is raised.
# Options.load_latest does not restore the filter. Only passing the options as
# column_families={"default": options} too applies them.
#
# Output seen, for 20,000 keys and a look-up of 20,000 others in each session:
#   session                   filter_policy  spared by a filter  bytes of the new file's filter
#   1: options                bloomfilter    19810               25029
#   2: the same options       nullptr        0                   0
#   3: Options.load_latest()  nullptr        0                   0
#   4: column_families        bloomfilter    19809               25029
#   5: other block size       4096, not 65536, and nullptr
#
# A user of membership filters meets it with the first restart: a test with a new database shows
# the filter at work, and afterwards each needless look-up reads a block of every file whose range
# has the key.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check rocksdict==0.3.29
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import os
import re

from rocksdict import BlockBasedOptions, Options, Rdict

KEYS = 20_000
USEFUL = re.compile(r"^rocksdb\.bloom\.filter\.useful COUNT : (\d+)", re.M)


def wanted(block_size=4096):
    table = BlockBasedOptions()
    table.set_bloom_filter(10, False)
    table.set_block_size(block_size)
    options = Options()
    options.set_block_based_table_factory(table)
    options.enable_statistics()
    return options


def saved(name):
    """The value of an option in the newest file of options, which RocksDB writes when it opens."""
    files = [f for f in os.listdir("db") if f.startswith("OPTIONS-")]
    with open(os.path.join("db", max(files, key=lambda f: int(f[8:])))) as file:
        return re.search(rf"^\s*{name}=(\S+)$", file.read(), re.M).group(1)


def filter_bytes(db):
    text = db.property_value("rocksdb.aggregated-table-properties")
    return int(re.search(r"filter block size=(\d+)", text).group(1))


def session(name, start, options, expected, **families):
    """Writes even keys from `start` on into one new file, and looks up the odd keys from 0 on."""
    db = Rdict("db", options, **families)
    before = filter_bytes(db) if start else 0
    for i in range(KEYS):
        db[start + 2 * i] = "x"
    db.flush()
    added = filter_bytes(db) - before
    assert not any(2 * i + 1 in db for i in range(KEYS))
    useful = int(USEFUL.search(options.get_statistics()).group(1))
    policy = saved("filter_policy")
    print(f"{name:24}  {policy:13}  {useful:<18}  {added}")
    db.close()
    if expected:
        assert policy == "bloomfilter" and useful > 0.95 * KEYS and added > KEYS
    else:
        assert policy == "nullptr" and useful == 0 and added == 0


# Each session's keys are beyond those of the sessions before, so no file overlaps the first.
session("1: options", 0, wanted(), True)
session("2: the same options", 10**6, wanted(), False)
latest, families = Options.load_latest("db")
latest.enable_statistics()
session("3: Options.load_latest()", 2 * 10**6, latest, False, column_families=families)
options = wanted()
session("4: column_families", 3 * 10**6, options, True, column_families={"default": options})
Rdict("db", wanted(block_size=65536)).close()
block_size, policy = saved("block_size"), saved("filter_policy")
print(f"5: other block size       {block_size}, not 65536, and {policy}")
assert (block_size, policy) == ("4096", "nullptr")
PYTHON
