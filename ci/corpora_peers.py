"""datatrove's and text-dedup's Bloom filters on JSON lines: called by ci/corpora.py --peers.

datatrove's filter asks for the bits `hash & m_bytes`, which are two of 2^30 for m_bytes = 2^30. With
--mend the mask is that of all bits. Its pipeline is left out: the documents come from a loop.
"""

import argparse
import json
import os


def text_dedup(args):
    from datasets import load_from_disk
    from text_dedup.bloom_filter import main

    if args.count:
        print(len(load_from_disk(args.to)))
        return
    command = ["--path", "json", "--data_files", os.path.abspath(args.input), "--split", "train"]
    command += ["--column", "text", "--output", args.to, "--cache_dir", args.to + ".cache"]
    command += ["--error_rate", str(args.rate), "--initial_capacity", str(args.expected)]
    main(command, standalone_mode=False)


def datatrove(args):
    import numpy
    from datatrove.data import Document
    from datatrove.pipeline.dedup.bloom_filter import BloomFilterConfig, SingleBloomFilter, _mersenne_prime

    class Mended(SingleBloomFilter):
        def get_indexes(self, shingles):
            a, b = self.parameters
            return numpy.bitwise_and((shingles * a + b) % _mersenne_prime, self.config.m - 1).tolist()

    class Exact(SingleBloomFilter):
        seen = set()

        def step(self, doc):
            shingles = []
            # The filter gets hashes of 32 bits; this set keeps the words.
            self.hash_fc = lambda words: shingles.append(words) or 0
            self.get_shingles(doc.text)
            found = sum(shingle in self.seen for shingle in shingles)
            self.seen.update(shingles)
            return not shingles or found / len(shingles) <= self.config.duplicate_threshold

    kind = Exact if args.exact else Mended if args.mend else SingleBloomFilter
    # The number of hash functions that suits the rate.
    config = BloomFilterConfig(m_bytes=args.bytes, k=20, n_grams=13, duplicate_threshold=0.8)
    step = kind("/tmp", config)
    step.tokenizer.tokenizer.max_length = 1 << 30
    with open(args.input, encoding="utf-8") as lines, open(args.to, "w", encoding="utf-8") as to:
        for line in lines:
            row = json.loads(line)
            if step.step(Document(text=row["text"], id=row["id"])):
                to.write(line)


parser = argparse.ArgumentParser()
parser.add_argument("peer", choices=["text-dedup", "datatrove"])
parser.add_argument("input")
parser.add_argument("to")
parser.add_argument("--rate", type=float, default=1e-6)
parser.add_argument("--expected", type=int, default=100)
parser.add_argument("--bytes", type=int, default=1 << 26)
parser.add_argument("--mend", action="store_true")
parser.add_argument("--exact", action="store_true")
parser.add_argument("--count", action="store_true")
args = parser.parse_args()
{"text-dedup": text_dedup, "datatrove": datatrove}[args.peer](args)
