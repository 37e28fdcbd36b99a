#!/usr/bin/env bash
# datasketch: an LSHBloom index that is opened with another threshold finds none of its documents,
# and one that is opened for more documents takes each document for a duplicate once it has them.
#
# Packages: datasketch 2.0.0 with pybloomfiltermmap3 0.6.3, numpy 2.4.6 and scipy 1.17.1 (PyPI;
# Python 3.11 or later).
#
# MinHashLSHBloom(threshold, num_perm, n, fp, save_dir) tells whether a similar document was seen
# before, by one Bloom filter for each band of the MinHash. If save_dir has an index, it is loaded.
# One expects that a lower threshold finds more, or that an index that cannot do it raises an error.
# But the files hold neither threshold nor the length of a band, which the threshold decides. After
# a change of it, bands of another length are looked up in the old filters: even copies are new,
# with no error. The old threshold finds them again.
#
# n and fp are not compared with the files either. An index for 1,000 documents that is opened for
# 100,000 keeps its filters for 1,000. After 10,000 more, each document is a duplicate.
#
# Output seen, for 1,000 documents that were inserted by threshold 0.7 (bands, numbers in each;
# copies of them that are found, similar documents, others):
#   0.7 (14, 9)  1000  999  0
#   0.65 (16, 8)  0  0  0
#   0.75 (11, 11)  0  0  0
#   0.5 (25, 5)  0  0  0
#   0.7 (14, 9)  1000  999  0
#   0.7 for 100000 documents, and 10000 more (14, 9)  1000  1000  1000
#
# A user of membership filters meets it who removes duplicates from batches by an index on disk, and
# tunes the threshold or makes room: a whole batch of duplicates is kept, or all of it is dropped.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check datasketch==2.0.0 \
    pybloomfiltermmap3==0.6.3 numpy==2.4.6 scipy==1.17.1
cd "$work"
"$work/venv/bin/python" - <<'PYTHON'
import random

from datasketch import MinHash
from datasketch.lsh_bloom import MinHashLSHBloom

DOCUMENTS = 1000
draw = random.Random(1)


def words(count):
    return [b"%d" % draw.randrange(10**9) for _ in range(count)]


def sketch(document):
    minhash = MinHash(num_perm=128)
    minhash.update_batch(document)
    return minhash


def index(threshold, n=DOCUMENTS):
    return MinHashLSHBloom(threshold=threshold, num_perm=128, n=n, fp=1e-6, save_dir="index")


documents = [words(100) for _ in range(DOCUMENTS)]
copies = [sketch(document) for document in documents]
# 95 of 105 words are common: a similarity of 0.905.
similar = [sketch(document[5:] + words(5)) for document in documents]
others = [sketch(words(100)) for _ in range(DOCUMENTS)]


def found(name, index):
    counts = [sum(index.query(minhash) for minhash in asked) for asked in (copies, similar, others)]
    print(f"{name} {index.b, index.r}", *counts, sep="  ", flush=True)
    return counts


first = index(0.7)
for minhash in copies:
    first.insert(minhash)
first.sync()
right = found("0.7", first)
assert right[0] == DOCUMENTS and right[1] > 0.98 * DOCUMENTS and right[2] <= 2
for threshold in (0.65, 0.75, 0.5):
    assert max(found(threshold, index(threshold))) <= 2
assert found("0.7", index(0.7)) == right

larger = index(0.7, n=100 * DOCUMENTS)
for _ in range(10 * DOCUMENTS):
    larger.insert(sketch(words(100)))
assert min(found("0.7 for 100000 documents, and 10000 more", larger)) > 0.98 * DOCUMENTS
PYTHON
