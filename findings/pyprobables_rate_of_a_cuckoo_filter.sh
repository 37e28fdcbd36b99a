#!/usr/bin/env bash
# pyprobables: a cuckoo filter that is made for an error rate of 1% finds every absent key.
#
# Package: pyprobables 0.7.0 (PyPI).
#
# CuckooFilter.init_error_rate(error_rate=0.01, capacity=n) takes the shortest fingerprint that fits
# the rate: 10 bits. In a cuckoo filter a key's bucket comes from the key, and the fingerprint tells
# the keys of a bucket apart. Here both buckets come from the fingerprint, so all keys with the same
# 10 bits are one key, whatever the capacity: the filter has 1,024 states. CuckooFilter(capacity=n),
# whose fingerprints have 32 bits, finds none of 1,000 absent keys.
#
# Output seen:
#   300 keys: 256 of 1000 absent keys found, error_rate 0.01, by default 0
#   10000 keys: 1000 of 1000 absent keys found, error_rate 0.01, by default 0
#
# A user of membership filters meets it who asks for a rate, to save memory: the filter before a
# store lets every request pass, and error_rate says 0.01.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyprobables==0.7.0
"$work/venv/bin/python" - <<'PYTHON'
from probables import CuckooFilter

for keys, least in (300, 200), (10_000, 1000):
    found = []
    filters = CuckooFilter.init_error_rate(error_rate=0.01, capacity=keys), CuckooFilter(capacity=keys)
    for filter_ in filters:
        for i in range(keys):
            filter_.add(f"user-{i}")
        assert all(filter_.check(f"user-{i}") for i in range(keys))
        found.append(sum(filter_.check(f"other-{i}") for i in range(1000)))
    rate = filters[0].error_rate
    print(f"{keys} keys: {found[0]} of 1000 absent keys found, error_rate {rate}, by default {found[1]}")
    assert rate == 0.01 and found[0] >= least and found[1] == 0
PYTHON
