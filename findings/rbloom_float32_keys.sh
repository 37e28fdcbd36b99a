#!/usr/bin/env bash
# rbloom: a filter for 1% of false positives has 27% if its keys are small floats of 32 bits.
#
# Package: rbloom 1.5.4 (PyPI).
#
# A filter without hash_func takes Python's hash() of each key. Doubles between 0 and 1 give the 1%
# that was asked for, and so do texts and most ints. One expects the same of such numbers rounded to
# 32 bits, without those that became equal. A quarter of the absent ones is found, and approx_items
# reports 62,000 of 99,800 keys, although all values of hash() differ. Those values are multiples of
# a great power of two. rbloom draws the places of a key by multiplications, which keep the end of
# the number alike for all such keys: they crowd into few of the places, and the others stay nearly
# empty. Multiples of 1 << 40 crowd too. The bytes of the same floats as keys give 1%.
#
# Output seen (the third line varies a little):
#   64 bits: 100000 keys, approx_items 100031, found 0.0099 of the absent keys
#   32 bits: 99800 keys, approx_items 61783, found 0.2655 of the absent keys
#   32 bits, as bytes: 99800 keys, approx_items 99949, found 0.0100 of the absent keys
#   multiples of 1 << 40: 100000 keys, approx_items 54417, found 0.4930 of the absent keys
#
# A user of membership filters meets it whose keys are scores, shares or samples from a model, a
# sensor or a column of 32-bit floats: a filter that passed its tests with doubles lets a quarter of
# the needless reads pass to the store.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check rbloom==1.5.4
"$work/venv/bin/python" - <<'PYTHON'
import random
import struct
from array import array

from rbloom import Bloom

KEYS = 100_000


def found(name, values):
    keys = set(values[:KEYS])
    absent = set(values[KEYS:]) - keys
    assert len(set(map(hash, keys))) == len(keys)
    filter_ = Bloom(KEYS, 0.01)
    filter_.update(keys)
    assert all(key in filter_ for key in keys)
    share = sum(key in filter_ for key in absent) / len(absent)
    items = filter_.approx_items
    seen = f"{len(keys)} keys, approx_items {items:.0f}, found {share:.4f} of the absent keys"
    print(f"{name}: {seen}")
    return share, items / len(keys)


numbers = random.Random(1)
doubles = [numbers.random() for _ in range(2 * KEYS)]
singles = array("f", doubles).tolist()
share, items = found("64 bits", doubles)
assert share < 0.015 and items > 0.97
share, items = found("32 bits", singles)
assert share > 0.2 and items < 0.7
share, items = found("32 bits, as bytes", [struct.pack("<f", value) for value in singles])
assert share < 0.015 and items > 0.97
share, items = found("multiples of 1 << 40", [i << 40 for i in range(2 * KEYS)])
assert share > 0.4 and items < 0.7
PYTHON
