#!/usr/bin/env bash
# pyarrow 26.0.1: a fragment of a few row groups counts the rows of its whole file.
#
# Package: pyarrow 26.0.1.
#
# fragment.subset(row_group_ids=[3]) is a fragment of one row group: num_row_groups is 1, and
# to_table() has its 10 rows. One expects 10 of count_rows() too. It returns 100, the rows of the
# file. So does a scanner without columns. A fragment of no row group, which reads no row, counts
# 100 as well, and so does one by subset(filter=...). count_rows(filter=...) counts the rows of the
# subset.
#
# Output seen:
#   row groups [3]: reads 10 rows, counts 100, with a filter that all rows pass 10
#   row groups []: reads 0 rows, counts 100, with a filter that all rows pass 0
#
# A user of membership filters meets it who looks up a key in the filters of a file, takes the
# subset of the row groups that may have it, and counts: to see how much was pruned, or whether
# anything is left. The sum says that nothing was pruned.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyarrow==26.0.1
"$work/venv/bin/python" - "$work/ids.parquet" <<'PYTHON'
import sys

import pyarrow
import pyarrow.dataset
import pyarrow.parquet

path = sys.argv[1]
pyarrow.parquet.write_table(pyarrow.table({"id": range(100)}), path, row_group_size=10)
(fragment,) = pyarrow.dataset.dataset(path).get_fragments()
passes = pyarrow.dataset.field("id") < 1000
for groups, rows in ([3], 10), ([], 0):
    part = fragment.subset(row_group_ids=groups)
    assert part.num_row_groups == len(groups)
    read, counted, filtered = part.to_table().num_rows, part.count_rows(), part.count_rows(filter=passes)
    print(f"row groups {groups}: reads {read} rows, counts {counted}, with a filter that all rows pass {filtered}")
    assert (read, counted, filtered) == (rows, 100, rows)
    assert part.scanner(columns=[]).count_rows() == 100
assert fragment.subset(filter=pyarrow.dataset.field("id") < 15).count_rows() == 100
PYTHON
