#!/usr/bin/env bash
# sourmash: a Nodegraph of k-mers of 51 letters finds a third of the absent ones of a close strain.
#
# Package: sourmash 4.9.4 (PyPI).
#
# A Nodegraph is a Bloom filter of k-mers, the pieces of k letters of a genome. One expects that any
# k is right for which it is made without an error, with the rate that expected_collisions tells.
# count and get turn a k-mer and its reverse complement into numbers of 64 bits, two bits per
# letter, and take the lesser one. Letters beyond 64 bits are lost. For k = 51, a common length, the
# key is the last 32 letters or the first 32: k-mers that differ in the others alone are one key. A
# larger filter does not help. Random k-mers are not found, so a test with them shows nothing.
#
# Output seen, for the k-mers of 100,000 letters, those of a copy with each 200th letter changed,
# and 20,000 random ones; and again with hash_murmur(k-mer) as the key:
#   k  in the copy alone  found  of random ones  expected_collisions  found by hash_murmur
#   31  15500  0  1  5.6e-06  0
#   33  16500  517  0  5.6e-06  0
#   41  20500  4463  0  5.6e-06  0
#   51  25500  9504  0  5.7e-06  0
#   63  31500  15504  0  5.6e-06  0
#
# A user of membership filters meets it who asks which pieces of a sample are new against a known
# genome. With k = 31 each variant is seen. With a greater k, which is chosen to tell close strains
# apart, a third to a half of the pieces with a variant count as known. With hash_murmur as the key,
# the filter is right for each k.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check sourmash==4.9.4
"$work/venv/bin/python" - <<'PYTHON'
import random

from sourmash.minhash import hash_murmur
from sourmash.nodegraph import Nodegraph

LETTERS = 100_000
draw = random.Random(1)


def pieces(sequence, k):
    return {sequence[i : i + k] for i in range(len(sequence) - k + 1)}


genome = draw.choices("ACGT", k=LETTERS)
copy = genome.copy()
for i in range(100, LETTERS, 200):
    copy[i] = draw.choice([letter for letter in "ACGT" if letter != genome[i]])
genome, copy = "".join(genome), "".join(copy)

expected = {31: (0, 0), 33: (0.02, 0.04), 41: (0.2, 0.25), 51: (0.3, 0.45), 63: (0.4, 0.6)}
for k, (least, most) in expected.items():
    known = pieces(genome, k)
    absent = pieces(copy, k) - known
    graph, hashed = Nodegraph(k, 2e6, 4), Nodegraph(k, 2e6, 4)
    for piece in known:
        graph.count(piece)
        hashed.count(hash_murmur(piece))
    assert all(graph.get(piece) for piece in known)
    found = sum(graph.get(piece) for piece in absent)
    of_random = sum(graph.get("".join(draw.choices("ACGT", k=k))) for _ in range(20_000))
    by_murmur = sum(hashed.get(hash_murmur(piece)) for piece in absent)
    rate = graph.expected_collisions
    print(k, len(absent), found, of_random, f"{rate:.1e}", by_murmur, sep="  ", flush=True)
    assert rate < 1e-5 and of_random <= 3 and by_murmur <= 3
    assert least * len(absent) <= found <= most * len(absent) + 3
PYTHON
