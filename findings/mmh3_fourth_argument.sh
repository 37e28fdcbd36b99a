#!/usr/bin/env bash
# mmh3 takes the value of the third argument for that of the fourth, if both are given by position.
#
# Package: mmh3 5.3.1 (PyPI).
#
# help() prints hash64(key, seed=0, x64arch=True, signed=True), and hash128 with signed=False. So
# hash64(key, seed, True, False) should be without sign. It has a sign, and so has
# hash128(key, seed, True, False), although False is the default there: x64arch, the third argument,
# decides. No error is raised. signed=False by name works, and so does the position in 4.1.0.
#
# Output seen:
#   mmh3 5.3.1: hash64 -8839064797231613815, by name 9607679276477937801
#   mmh3 5.3.1: hash128 -33618940049742436679791713629076096887, by default 306663426871196026783582893802692114569
#   mmh3 4.1.0: hash64 9607679276477937801, by name 9607679276477937801
#   mmh3 4.1.0: hash128 306663426871196026783582893802692114569, by default 306663426871196026783582893802692114569
#
# A user of membership filters meets it who hashes keys in Python for a filter in another language.
# About half of the hashes are negative. If they travel as text, the reader refuses them or takes
# them for other hashes, and their keys are absent.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/check.py" <<'P'
import sys
from importlib.metadata import version

import mmh3

release, sign_expected = version("mmh3"), sys.argv[1] == "sign"
by_position, (by_name, _) = mmh3.hash64("a", 0, True, False)[0], mmh3.hash64("a", 0, x64arch=True, signed=False)
print(f"mmh3 {release}: hash64 {by_position}, by name {by_name}")
assert by_name == 0x85555565F6597889
assert by_position == (by_name - 2**64 if sign_expected else by_name)

by_position, by_default = mmh3.hash128("a", 0, True, False), mmh3.hash128("a", 0)
print(f"mmh3 {release}: hash128 {by_position}, by default {by_default}")
assert by_default == 0xE6B53A48510E895A85555565F6597889
assert by_position == (by_default - 2**128 if sign_expected else by_default)
P
for pair in 5.3.1:sign 4.1.0:none; do
    python3 -m venv "$work/${pair%:*}"
    "$work/${pair%:*}/bin/pip" install -q "mmh3==${pair%:*}"
    "$work/${pair%:*}/bin/python" "$work/check.py" "${pair#*:}"
done
