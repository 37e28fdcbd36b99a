#!/usr/bin/env bash
# ClickHouse 26.9: a Bloom filter index changes the rows of `time IN (SELECT day ...)`, and two
# comparisons that work without it.
#
# Package: chdb 4.4.0 with chdb-core 26.9.0 (PyPI), which is ClickHouse 26.9.2.
#
# One expects that an index only saves reads. A column of DateTime is compared with a set of Date.
# Without an index, each time is cut to its day, and all rows of the day are found. A Bloom filter,
# a minmax index and the primary key look for the midnight of the day, and keep the blocks of 8,192
# rows that may have it. The rows in them are compared by their day again. So the count depends on
# where the blocks begin. A literal in place of the subquery means midnight everywhere.
#
# Besides, an index of the type bloom_filter does not find -0.0 by `x = 0`, and raises an error for
# a DateTime that equals a DateTime64.
#
# Output seen, for three days with a row per second, one of the days, and one row with -0.0:
#   index:                           none   bloom_filter   minmax  set    primary key
#   time IN (SELECT day FROM days)   86400  3712           3712    86400  3712
#   toDate(time) IN (the same)       86400  86400          86400   86400  86400
#   time IN (toDate('2026-01-02'))   1      1              1       1      1
#   x = 0                            1      0              1       1      1
#   time = toDateTime64(...)         1      TYPE_MISMATCH  1       1      1
#
# A user of membership filters meets it who adds the index to a table that served its queries well,
# such as one of events that are chosen by a table of holidays: most of a day is gone, or a query
# fails because its client sends the time as DateTime64. toDate(time) and x + 0 avoid the first two.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check chdb==4.4.0 chdb-core==26.9.0
cd "$work"
TZ=UTC "$work/venv/bin/python" - <<'PYTHON'
from chdb.session import Session

session = Session("database")


def sql(text):
    return str(session.query(text, "TSV")).strip()


sql("CREATE DATABASE d ENGINE = Atomic")
INDEXES = {"none": "", "bloom_filter": "bloom_filter", "minmax": "minmax", "set": "set(0)", "primary key": ""}
for number, (name, index) in enumerate(INDEXES.items()):
    indexes = "".join(f", INDEX {column}_index {column} TYPE {index}" for column in ("time", "x") if index)
    order = "time" if name == "primary key" else "n"
    columns = f"n UInt64, time DateTime('UTC'), x Float64{indexes}"
    sql(f"CREATE TABLE d.t{number} ({columns}) ENGINE = MergeTree ORDER BY {order}")
    sql(f"INSERT INTO d.t{number} SELECT number, toDateTime('2026-01-01 00:00:00', 'UTC') + number, "
        "if(number = 5, -0.0, number + 1) FROM numbers(3 * 86400)")
sql("CREATE TABLE d.days (day Date) ENGINE = MergeTree ORDER BY day")
sql("INSERT INTO d.days VALUES ('2026-01-02')")


def show(name, cells):
    widths = 33, 7, 15, 8, 7
    print("".join(f"{cell:<{width}}" for cell, width in zip([name, *cells], widths)), cells[-1], sep="")


def counts(name, where, expected):
    seen = []
    for number in range(len(INDEXES)):
        try:
            seen.append(int(sql(f"SELECT count() FROM d.t{number} WHERE {where}")))
        except RuntimeError as error:
            if "TYPE_MISMATCH" not in str(error):
                raise
            seen.append("TYPE_MISMATCH")
    show(name, seen)
    assert seen == expected


show("index:", list(INDEXES))
counts("time IN (SELECT day FROM days)", "time IN (SELECT day FROM d.days)", [86400, 3712, 3712, 86400, 3712])
counts("toDate(time) IN (the same)", "toDate(time) IN (SELECT day FROM d.days)", [86400] * 5)
counts("time IN (toDate('2026-01-02'))", "time IN (toDate('2026-01-02'))", [1] * 5)
counts("x = 0", "x = 0", [1, 0, 1, 1, 1])
midnight = "toDateTime64('2026-01-02 00:00:00', 3, 'UTC')"
counts("time = toDateTime64(...)", f"time = {midnight}", [1, "TYPE_MISMATCH", 1, 1, 1])
assert int(sql("SELECT count() FROM d.t1 WHERE x + 0 = 0")) == 1
PYTHON
