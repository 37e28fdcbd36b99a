#!/usr/bin/env bash
# pyorc 0.12.0: a column of CHAR with a Bloom filter finds none of its values.
#
# Package: pyorc 0.12.0 (PyPI), the C++ library of Apache ORC for Python.
#
# bloom_filter_columns puts filters into an ORC file, and a reader with a predicate skips the groups
# of rows that cannot have the value. One expects fewer rows that are read, and the same rows that
# are found. For STRING and VARCHAR(12) it is so. For CHAR(12) no value is found, whether one asks
# for it with the spaces that the reader returns behind it or as it was written. Only values of 12
# characters are found. The reader returns no row, and no error.
#
# Output seen, for 300 of 3,000 values in groups of 1,000 (rows read, values found):
#   string                   897000, 300 without filters; 300000, 300 with filters
#   varchar(12)              897000, 300 without filters; 300000, 300 with filters
#   char(12), as returned    897000, 300 without filters; 0, 0 with filters
#   char(12), as written     895000, 298 without filters; 0, 0 with filters
#   char(12), 12 characters  898000, 300 without filters; 300000, 300 with filters
# (The 2 are the least values of a group, which its statistics hold with spaces.)
#
# A user of membership filters meets it who turns them on for the key columns of a table that comes
# from a database, where codes of a fixed width are CHAR: a look-up says "absent" for each code that
# is shorter. A column of VARCHAR has no such loss.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check pyorc==0.12.0
"$work/venv/bin/python" - <<'PYTHON'
import io

import pyorc
from pyorc import TypeKind
from pyorc.predicates import PredicateColumn

ROWS = 3000
KINDS = {"string": TypeKind.STRING, "varchar(12)": TypeKind.VARCHAR, "char(12)": TypeKind.CHAR}


def seen(type_, value, asked, filtered):
    """How many rows are read for 300 of the values, and how many of the values are found."""
    file = io.BytesIO()
    options = {"bloom_filter_columns": [1], "bloom_filter_fpp": 1e-6} if filtered else {}
    with pyorc.Writer(file, f"struct<code:{type_}>", row_index_stride=1000, **options) as writer:
        # 7919 and ROWS have no common factor: each group of rows has values from the whole range.
        writer.writerows((value(i * 7919 % ROWS),) for i in range(ROWS))
    read = found = 0
    for i in range(0, ROWS, 10):
        file.seek(0)
        column = PredicateColumn(KINDS[type_], "code")
        rows = [code.rstrip() for (code,) in pyorc.Reader(file, predicate=column == asked(i))]
        read += len(rows)
        found += value(i) in rows
    return read, found


def code(i):
    return f"code {i}"


def full(i):
    return f"code {i:07}"


def padded(i):
    return code(i).ljust(12)


cases = [
    ("string", "string", code, code, 300, 300),
    ("varchar(12)", "varchar(12)", code, code, 300, 300),
    ("char(12), as returned", "char(12)", code, padded, 300, 0),
    ("char(12), as written", "char(12)", code, code, 298, 0),
    ("char(12), 12 characters", "char(12)", full, full, 300, 300),
]
for name, type_, value, asked, without, with_ in cases:
    plain, filtered = (seen(type_, value, asked, filtered) for filtered in (False, True))
    print(f"{name:24} {plain[0]}, {plain[1]} without filters; {filtered[0]}, {filtered[1]} with filters")
    assert plain[1] == without and plain[0] > 290 * ROWS
    assert filtered == (1000 * with_, with_)
PYTHON
