#!/usr/bin/env bash
# xxh3-ts computes another XXH3-128 than xxHash, for some lengths and bytes.
#
# Packages: xxh3-ts 2.0.1 (npm, the newest), and xxhash 4.1.0 (PyPI) as the reference.
#
# Its README says that XXH3_128 is "input/output compatible with upstream v0.8.3", and the package
# has a parameter for the seed. Without a seed, it agrees for all ASCII keys. Two cases differ, with
# no error:
# - a key of 1 to 3 bytes with one above 0x7f, so a single letter such as é,
# - under any of three seeds other than 0: 4 to 16 bytes, and more than 240.
# XXH64 of the same package agrees everywhere.
#
# Output seen:
#   XXH64: lengths that differ under seeds 0, 42, 0x9e3779b1: none, none, none
#   XXH3_128, ASCII: none, 4-16 241-300, 4-16 241-300
#   XXH3_128, bytes above 0x7f: 1-3, 1-16 241-300, 1-16 241-300
#   XXH3_128 of é: 90326970ab18793aa7b06cf27bb3138d, and xxHash 90326970ab18793af7940a006cf10cb3
#
# A user of membership filters meets it who hashes keys in a browser or in Node, and looks the
# hashes up in a filter that another program made with xxHash. Most tests pass: common test keys are
# ASCII, and have no seed. Then keys that were inserted are absent.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q xxhash==4.1.0
npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$work" xxh3-ts@2.0.1
cat > "$work/hash.cjs" <<'J'
const { XXH3_128, XXH64 } = require("xxh3-ts");
const lines = require("node:fs").readFileSync(0, "latin1").split("\n").slice(0, -1);
for (const line of lines) {
    const [name, hex, seed] = line.split(" ");
    const hash = name === "XXH64" ? XXH64 : XXH3_128;
    console.log(hash(Buffer.from(hex, "hex"), BigInt(seed)).toString());
}
J
cat > "$work/check.py" <<'P'
import subprocess
import sys

import xxhash

SEEDS = [0, 42, 0x9E3779B1]
ascii_keys = [bytes(97 + i % 26 for i in range(n)) for n in range(301)]
other_keys = [bytes(0x80 + i * 37 % 128 for i in range(n)) for n in range(301)]
REFERENCES = {"XXH64": xxhash.xxh64_intdigest, "XXH3_128": xxhash.xxh3_128_intdigest}


def printed(name, keys, seed):
    lines = "".join(f"{name} {key.hex()} {seed}\n" for key in keys)
    done = subprocess.run(["node", "hash.cjs"], cwd=sys.argv[1], input=lines, capture_output=True, text=True, check=True)
    return [int(line) for line in done.stdout.split()]


def different(name, keys):
    """For each seed, the lengths whose hashes differ, as ranges."""
    result = []
    for seed in SEEDS:
        pairs = zip(printed(name, keys, seed), (REFERENCES[name](key, seed) for key in keys))
        lengths = [n for n, (ours, reference) in enumerate(pairs) if ours != reference]
        starts = [n for n in lengths if n - 1 not in lengths]
        ends = [n for n in lengths if n + 1 not in lengths]
        result.append(" ".join(f"{a}-{b}" for a, b in zip(starts, ends)) or "none")
    return ", ".join(result)


found = different("XXH64", ascii_keys + other_keys)
print(f"XXH64: lengths that differ under seeds 0, 42, 0x9e3779b1: {found}")
assert found == "none, none, none"
found = different("XXH3_128", ascii_keys)
print(f"XXH3_128, ASCII: {found}")
assert found == "none, 4-16 241-300, 4-16 241-300"
found = different("XXH3_128", other_keys)
print(f"XXH3_128, bytes above 0x7f: {found}")
assert found == "1-3, 1-16 241-300, 1-16 241-300"
key = "é".encode()
(ours,), reference = printed("XXH3_128", [key], 0), xxhash.xxh3_128_intdigest(key)
print(f"XXH3_128 of é: {ours:032x}, and xxHash {reference:032x}")
assert ours != reference
P
"$work/venv/bin/python" "$work/check.py" "$work"
