#!/usr/bin/env python3
"""lanebloom-corpus --near beside exact Jaccard similarity. Not a part of CI.

    ci/near.py PROGRAM CORPUS.jsonl [--bytes 60e6] [--threshold 0.8]

First edited copies of random documents, then the documents of the corpus: what share of the
documents goes, by their largest similarity to a document before them that stays. The similarity is
that of sets of sequences of 5 words. All pairs from 0.5 on are found: of two such sets, the rarer
halves share a sequence.
"""

import argparse
import collections
import json
import random
import re
import subprocess

WORD = re.compile("[0-9A-Za-z_\u0080-\U0010ffff]+")
LEN = 5
FLOOR = 0.5


def sequences(text):
    words = WORD.findall(text)
    if not words:
        return set()
    return {hash(tuple(words[at : at + LEN])) for at in range(max(1, len(words) - LEN + 1))}


def jaccard(one, other):
    both = len(one & other)
    return both / (len(one) + len(other) - both)


def removed(args, texts):
    """Whether each document goes."""
    lines = "".join(json.dumps({"id": at, "text": text}) + "\n" for at, text in enumerate(texts))
    command = [args.lanebloom, "-q", "--near", str(args.threshold), "--words", "ascii"]
    found = subprocess.run([*command, "--annotate", "x"], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [bool(json.loads(line)["attributes"]["x"]) for line in found.stdout.splitlines()]


def table(title, rows):
    """Rows of similarity and whether the document went."""
    print(f"\n{title}\n\n| similarity | documents | gone | share |\n|---|--:|--:|--:|")
    buckets = collections.defaultdict(list)
    for similarity, is_gone in rows:
        buckets[min(int(similarity * 20 + 1e-9), 20)].append(is_gone)
    for bucket, gone in sorted(buckets.items()):
        name = "1" if bucket == 20 else f"{bucket / 20:.2f} to {(bucket + 1) / 20:.2f}"
        name = "below 0.50" if bucket == 0 else name
        print(f"| {name} | {len(gone)} | {sum(gone)} | {100 * sum(gone) / len(gone):.1f}% |")


def edited(args, size, pairs=4000):
    draw = random.Random(size)
    ones, others = [], []
    for _ in range(pairs):
        words = [f"w{draw.randrange(50000)}" for _ in range(size)]
        ones.append(" ".join(words))
        # Each changed word changes five sequences.
        wanted = draw.uniform(0.4, 1.0)
        for at in draw.sample(range(size), round(size / LEN * (1 - wanted) / (1 + wanted))):
            words[at] = f"x{draw.randrange(50000)}"
        others.append(" ".join(words))
    gone = removed(args, ones + others)
    print(f"\nof {pairs} random documents of {size} words, {sum(gone[:pairs])} go")
    similarities = [jaccard(sequences(one), sequences(other)) for one, other in zip(ones, others)]
    rows = [(similarity, is_gone) for similarity, is_gone in zip(similarities, gone[pairs:]) if similarity >= FLOOR]
    table(f"Copies of documents of {size} words with changed words", rows)


def real(args):
    texts, total = [], 0
    with open(args.corpus, encoding="utf-8") as file:
        for line in file:
            texts.append(json.loads(line)["text"])
            total += len(texts[-1])
            if total > args.bytes:
                break
    gone = removed(args, texts)
    sets = [sequences(text) for text in texts]
    counts = collections.Counter(each for own in sets for each in own)
    index = collections.defaultdict(list)
    rows = []
    for at, own in enumerate(sets):
        if not own:
            continue
        rare = sorted(own, key=lambda each: (counts[each], each))[: len(own) - int(FLOOR * len(own)) + 1]
        near = {other for each in rare for other in index[each]}
        best = max((jaccard(own, sets[other]) for other in near), default=0)
        rows.append((best if best >= FLOOR else 0, gone[at]))
        if not gone[at]:
            for each in rare:
                index[each].append(at)
    print(f"\n{total / 1e6:.0f} MB of text, {len(texts)} documents, {sum(gone)} go")
    table("Documents of the corpus", rows)
    similar = [is_gone for best, is_gone in rows if best >= args.threshold]
    print(f"\nof {len(similar)} documents from {args.threshold} on, {sum(similar)} go;")
    right = sum(is_gone for best, is_gone in rows if best >= args.threshold - 0.1)
    print(f"of {sum(gone)} that go, {sum(similar)} are from {args.threshold} on, {right} from {args.threshold - 0.1:.1f} on")


parser = argparse.ArgumentParser()
parser.add_argument("lanebloom")
parser.add_argument("corpus")
parser.add_argument("--bytes", type=float, default=60e6)
parser.add_argument("--threshold", type=float, default=0.8)
args = parser.parse_args()
for size in (50, 300, 2000):
    edited(args, size, 4000 if size < 2000 else 1000)
real(args)
