#!/usr/bin/env bash
# cjrh-scalable-cuckoo-filter: the memory of a filter depends on how its keys are spelled.
#
# Package: cjrh-scalable-cuckoo-filter 0.3.2 (PyPI; module scf).
#
# A filter for 100,000 keys at 1% has room for 131,072 fingerprints. One expects that 100,000 texts
# fit, whatever they are, since a filter sees hashes of them. "user:0" to "user:99999" fit: 14.5
# bits per key. "order/0" to "order/99999" do not: at 43% of the room the filter triples, to 46 bits
# per key. It does so in each run.
#
# Output seen:
#   user:0 ...: 14.5 bits per key, never grew
#   order/0 ...: 45.9 bits per key, grew at key 56355
#
# A user of membership filters meets it who plans memory from the documentation or from a test with
# other keys: the same number of keys takes three times as much. No key is lost.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q cjrh-scalable-cuckoo-filter==0.3.2
"$work/venv/bin/python" - <<'PYTHON'
from scf import PyScalableCuckooFilter

KEYS = 100_000


def fill(prefix):
    """The bits per key in the end, and the key at which the memory doubled at least."""
    filter_ = PyScalableCuckooFilter(KEYS, 0.01)
    bits, grew = filter_.bits(), None
    for i in range(KEYS):
        filter_.insert(f"{prefix}{i}")
        if filter_.bits() >= 2 * bits:
            grew = i
        bits = filter_.bits()
    assert all(filter_.might_contain(f"{prefix}{i}") for i in range(KEYS))
    text = f"grew at key {grew}" if grew else "never grew"
    print(f"{prefix}0 ...: {bits / KEYS:.1f} bits per key, {text}")
    return bits / KEYS


assert fill("user:") < 15
assert fill("order/") > 40
PYTHON
