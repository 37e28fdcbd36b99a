#!/usr/bin/env bash
# dogpile.cache 1.5.0 (PyPI): `region.invalidate()` does not cover a value that is being created
# when it is called. The region compares the time of the call with the time stamp of a value, and
# the value gets its stamp when its creator has returned, not when it began to read. So a value that
# was read before the invalidation counts as newer than it.
#
# Seen: a creator reads "old" and goes on for 0.2 s. Meanwhile the store becomes "new", and the
# region is invalidated. Afterwards `get_or_create` returns "old", with hard and with soft
# invalidation, and also with `region.delete(key)`. Without an overlap, it returns "new".
#
# A user of membership filters meets it where a filter and a region in front of one table are
# renewed together: the filter is rebuilt, the region invalidated, and a row stays "missing" for its
# whole expiration time if one read overlapped.
#
# Needs Python 3.10 or later with venv. Fails if the behaviour changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check dogpile.cache==1.5.0
"$folder/venv/bin/python" - <<'PYTHON'
import threading
import time

from dogpile.cache import make_region


def after(forget, overlaps):
    region = make_region().configure("dogpile.cache.memory", expiration_time=3600)
    store, has_read = {"row": "old"}, threading.Event()

    def create():
        row = store["row"]
        has_read.set()
        time.sleep(0.2)
        return row

    reader = threading.Thread(target=region.get_or_create, args=("row", create))
    reader.start()
    has_read.wait()
    if not overlaps:
        reader.join()
    store["row"] = "new"
    forget(region)
    reader.join()
    # Time stamps are floats of seconds.
    time.sleep(0.05)
    return region.get_or_create("row", create)


ways = {
    "invalidate(hard=True)": lambda region: region.invalidate(hard=True),
    "invalidate(hard=False)": lambda region: region.invalidate(hard=False),
    "delete": lambda region: region.delete("row"),
}
for name, forget in ways.items():
    during, later = after(forget, True), after(forget, False)
    print(f"{name}: {during!r} if it comes while the creator runs, {later!r} after it")
    assert (during, later) == ("old", "new")
PYTHON
