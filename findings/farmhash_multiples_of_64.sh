#!/usr/bin/env bash
# farmhash for Rust and farmhash-modern for JavaScript compute another fingerprint64 than FarmHash
# for keys of 128, 192, 256, ... bytes.
#
# Packages: farmhash 1.1.5 (crates.io), farmhash-modern 1.1.0 (npm), made of that crate, and
# pyfarmhash 0.5.1 (PyPI), Google's code in C++, as the reference. Needs cargo, node with npm, and
# python3 with venv.
#
# A fingerprint is the part of FarmHash that never changes: the README of farmhash-modern calls it
# "portable and stable", and its bigqueryFingerprint "matches BigQuery's FARM_FINGERPRINT". One
# expects that equal keys have equal fingerprints, or that a test with a few keys shows that they
# have not. From 1 to 1,024 bytes, 1,009 lengths agree. The multiples of 64 from 128 on do not,
# whatever the bytes are.
#
# Output seen, for farmhash-modern and again for farmhash:
#   other fingerprints for the lengths 128 192 256 320 384 448 512 576 640 704 768 832 896 960 1024
#   of 1000 digests in hex differ: SHA-1 0, SHA-256 0, SHA-384 0, SHA-512 1000
#
# A user of membership filters meets it who fills a filter with the fingerprints of one system, or
# of a column in BigQuery, and asks with those of the other. SHA-512 digests in hex have 128 bytes:
# as keys, all of them are absent. Of long keys of any length, such as URLs, one in 64 is.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install -q --disable-pip-version-check pyfarmhash==0.5.1
cat >keys.py <<'P'
import hashlib
import random

letters = random.Random(1)
for length in range(1, 1025):
    key = "".join(letters.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))
    print(f"length-{length}", key)
for name in "SHA-1", "SHA-256", "SHA-384", "SHA-512":
    for i in range(1000):
        print(name, hashlib.new(name.replace("-", ""), b"user %d" % i).hexdigest())
P
venv/bin/python keys.py >keys

npm install --silent --no-audit --no-fund farmhash-modern@1.1.0
cat >fingerprints.mjs <<'JS'
import fs from "node:fs";
import { bigqueryFingerprint, fingerprint64 } from "farmhash-modern";

for (const line of fs.readFileSync("keys", "utf8").trimEnd().split("\n")) {
    const key = line.split(" ")[1];
    const fingerprint = fingerprint64(key);
    if (BigInt.asUintN(64, bigqueryFingerprint(key)) !== fingerprint) throw new Error(key);
    console.log(fingerprint.toString());
}
JS
node fingerprints.mjs >by-farmhash-modern

mkdir src
cat >Cargo.toml <<'TOML'
[package]
name = "fingerprints"
version = "0.0.0"
edition = "2021"

[dependencies]
farmhash = "=1.1.5"
TOML
cat >src/main.rs <<'RUST'
fn main() {
    for line in std::fs::read_to_string("keys").unwrap().lines() {
        let (_, key) = line.split_once(' ').unwrap();
        println!("{}", farmhash::fingerprint64(key.as_bytes()));
    }
}
RUST
cargo run --quiet >by-farmhash

cat >compare.py <<'P'
from collections import Counter

import farmhash

# A value that BigQuery gives, as a check of the reference: FARM_FINGERPRINT(REPEAT('a', 128)).
assert farmhash.fingerprint64("a" * 128) == -4747627967806356490 % 2**64
keys = [line.split() for line in open("keys")]
for package in "farmhash-modern", "farmhash":
    values = [int(line) for line in open(f"by-{package}")]
    differ = Counter()
    for (kind, key), value in zip(keys, values, strict=True):
        differ[kind] += farmhash.fingerprint64(key) != value
    lengths = [length for length in range(1, 1025) if differ[f"length-{length}"]]
    print(f"{package}: other fingerprints for the lengths", *lengths)
    digests = [(kind, differ[kind]) for kind in ("SHA-1", "SHA-256", "SHA-384", "SHA-512")]
    counts = ", ".join(f"{kind} {count}" for kind, count in digests)
    print(f"{package}: of 1000 digests in hex differ: {counts}")
    assert lengths == list(range(128, 1025, 64))
    assert [count for _, count in digests] == [0, 0, 0, 1000]
P
venv/bin/python compare.py
