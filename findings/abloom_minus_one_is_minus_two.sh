#!/usr/bin/env bash
# abloom and rbloom: a filter that has the key -1 has -2 too, at any size and rate.
#
# Packages: abloom 1.1.0, rbloom 1.5.4 (PyPI).
#
# Both begin with Python's hash() of a key, which is -2 for both numbers, and equal for two tuples
# that differ in these numbers alone. All bits of the two keys are therefore the same: no memory
# separates them. abloom's serializable=True, which the same file needs on another machine, changes
# nothing for ints: the number that it mixes is hash() again. One expects false positives to be
# spread over the keys, and fewer with a lower rate. As bytes the same keys are told apart.
#
# Output seen, for 200 cells (-1, y) of a grid that are known, the 19,600 cells beside them that are
# not, and a rate of 1e-6:
#   abloom: found 200 of 19600 cells, of them 200 of 200 with x = -2
#   rbloom: found 200 of 19600 cells, of them 200 of 200 with x = -2
#   abloom, serializable, ints alone: -1 is known, -2 found: True
#   abloom, as bytes: found 0 of 19600 cells, of them 0 of 200 with x = -2
#
# A user of membership filters meets it whose keys are cells of a map, differences, or codes such as
# -1 for "unknown" and -2 for "deleted": the second code passes the filter whenever the first is
# known, and a test of the rate with random keys does not show it.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check abloom==1.1.0 rbloom==1.5.4
"$work/venv/bin/python" - <<'PYTHON'
from abloom import BloomFilter
from rbloom import Bloom

ys = range(200)
known = [(-1, y) for y in ys]
others = [(x, y) for x in range(-49, 50) if x != -1 for y in ys]


def cells(name, filter_, key=lambda cell: cell):
    for cell in known:
        filter_.add(key(cell))
    assert all(key(cell) in filter_ for cell in known)
    found = [cell for cell in others if key(cell) in filter_]
    twins = sum(x == -2 for x, _ in found)
    print(f"{name}: found {len(found)} of {len(others)} cells, of them {twins} of {len(ys)} with x = -2")
    return len(found), twins


for name, filter_ in ("abloom", BloomFilter(1000, 1e-6)), ("rbloom", Bloom(1000, 1e-6)):
    found, twins = cells(name, filter_)
    assert twins == len(ys) and found < len(ys) + 5

filter_ = BloomFilter(1000, 1e-6, serializable=True)
filter_.add(-1)
print(f"abloom, serializable, ints alone: -1 is known, -2 found: {-2 in filter_}")
assert -2 in filter_ and -3 not in filter_

found, twins = cells("abloom, as bytes", BloomFilter(1000, 1e-6), lambda cell: b"%d %d" % cell)
assert twins == 0 and found < 5
PYTHON
