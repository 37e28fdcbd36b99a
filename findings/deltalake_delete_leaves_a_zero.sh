#!/usr/bin/env bash
# deltalake 1.6.6: with Bloom filters in its files, `delete` leaves rows that it deletes without.
#
# Package: deltalake 1.6.6 (pyarrow 26.0.1 makes the tables).
#
# WriterProperties with bloom_filter_properties puts a filter for each column into the files. One
# expects that filters only save reads, and change no result. A table has a row of -0.0. -0.0 equals
# 0.0: `delete("x = 0")` deletes the row, and `update` changes it. In the same table with filters,
# both leave it as it is, and report 0 rows. The package looks up the bits of 0.0 in a filter that
# has those of -0.0, and both the writer and the operation are its own.
#
# Output seen:
#   without filters: updated 1, deleted 1, left [-1.0, 1.0]
#   with filters: updated 0, deleted 0, left [-1.0, -0.0, 1.0]
#
# A user of membership filters meets it who turns them on for a column of floats and then deletes by
# it: a correction or a request to delete is done in one table and not in its twin. The sign comes
# from sums and products, such as 0 times -1. Leave such columns without a filter, or store x + 0.0,
# which has no -0.0.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q deltalake==1.6.6 pyarrow==26.0.1
"$work/venv/bin/python" - "$work" <<'PYTHON'
import sys

import pyarrow
from deltalake import BloomFilterProperties, ColumnProperties, DeltaTable, WriterProperties, write_deltalake

rows = pyarrow.table({"x": [-1.0, -0.0, 1.0], "n": [1, 2, 3]})
one = ColumnProperties(bloom_filter_properties=BloomFilterProperties(True, fpp=0.01, ndv=1000))
seen = []
for name, properties in ("without", None), ("with", WriterProperties(default_column_properties=one)):
    path = f"{sys.argv[1]}/{name}"
    write_deltalake(path, rows, writer_properties=properties)
    updated = DeltaTable(path).update({"n": "7"}, predicate="x = 0")["num_updated_rows"]
    write_deltalake(path, rows, writer_properties=properties, mode="overwrite")
    deleted = DeltaTable(path).delete("x = 0")["num_deleted_rows"]
    left = DeltaTable(path).to_pyarrow_table()["x"].to_pylist()
    print(f"{name} filters: updated {updated}, deleted {deleted}, left {left}")
    seen.append((updated, deleted, len(left)))
assert seen == [(1, 1, 2), (0, 0, 3)], seen
PYTHON
