#!/usr/bin/env bash
# DataSketches for Python: a sketch that counts distinct values counts 1,000 prices as 10.
#
# Packages: datasketches 5.2.0 and numpy 2.4.6 (PyPI; Python 3.11 or later).
#
# The update of hll_sketch, update_theta_sketch and cpc_sketch takes an int, a float or a text, and
# raises TypeError for bytes and None. One expects TypeError for a Decimal as well, or that 0.00 to
# 9.99 are 1,000 values. There are 10: a Decimal, a Fraction and a float32 of numpy are cut to their
# whole part and counted as ints, with no error. 19.99 and 19 are one value, as are -0.5 and 0.5.
# float and float64 are counted right. Ints from 2^63 on become doubles in the first two sketches:
# 1,000 in a row are one value.
#
# Output seen (hll_sketch, update_theta_sketch, cpc_sketch):
#   float: 997, 1000, 987
#   float64: 997, 1000, 987
#   float32: 10, 10, 10
#   Decimal: 10, 10, 10
#   Fraction: 10, 10, 10
#   ints from 2^63 on: 1, 1, 999
#
# A user of membership filters meets it who sizes a filter by the estimate for a column: database
# drivers give its NUMERIC values as Decimal, and the filter is made for a hundredth of its keys.
# Or keys of two tables are compared by theta sketches, and almost all are common.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datasketches==5.2.0 numpy==2.4.6
"$work/venv/bin/python" - <<'PYTHON'
from decimal import Decimal
from fractions import Fraction

import numpy
from datasketches import cpc_sketch, hll_sketch, update_theta_sketch


def estimates(values):
    sketches = hll_sketch(12), update_theta_sketch(), cpc_sketch()
    for sketch in sketches:
        for value in values:
            sketch.update(value)
    return [round(sketch.get_estimate()) for sketch in sketches]


cents = range(1000)
seen = {
    "float": estimates([i / 100 for i in cents]),
    "float64": estimates([numpy.float64(i / 100) for i in cents]),
    "float32": estimates([numpy.float32(i / 100) for i in cents]),
    "Decimal": estimates([Decimal(i) / 100 for i in cents]),
    "Fraction": estimates([Fraction(i, 100) for i in cents]),
    "ints from 2^63 on": estimates([2**63 + i for i in cents]),
}
for name, counts in seen.items():
    print(f"{name}: {', '.join(map(str, counts))}")
for name in "float", "float64":
    assert all(950 < count < 1050 for count in seen[name])
for name in "float32", "Decimal", "Fraction":
    assert seen[name] == [10, 10, 10]
assert seen["ints from 2^63 on"][:2] == [1, 1] and seen["ints from 2^63 on"][2] > 950
assert estimates([Decimal("19.99"), 19]) == [1, 1, 1]
assert estimates([Decimal("-0.5"), Decimal("0.5")]) == [1, 1, 1]
for wrong in b"key", None:
    try:
        hll_sketch(12).update(wrong)
    except TypeError:
        continue
    raise SystemExit(f"{wrong!r} is taken")
PYTHON
