"""Makes the snapshots, the delta and the prints of this folder, from docs/FORMAT.md alone: no code of the crate is used.

    pip install xxhash && python3 tests/data/snapshots_v1.py

tests/bytes/snapshot.rs, snapshot_deletable.rs, bank.rs and bitmap.rs make the same filters and compare; filter.rs and
tests/filters/counting.rs compare the prints. What is here was made when version 1 of the format was, and is never made anew
after a release: a later version must read it. (Before the first one it was: for version 2 of the layout, and when its
positions became bytes of a product in one sector.) `StaticFilter`'s snapshot is older than this program and stays.
"""

import math
import pathlib
import struct

import xxhash

M = (1 << 64) - 1


def rotl(x, r):
    return (x << r | x >> (64 - r)) & M


def murmur3(key, seed):
    """MurmurHash3_x64_128, the first half."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = seed

    def mix1(k):
        return rotl(k * c1 & M, 31) * c2 & M

    def mix2(k):
        return rotl(k * c2 & M, 33) * c1 & M

    whole = len(key) // 16 * 16
    for i in range(0, whole, 16):
        k1, k2 = struct.unpack_from("<QQ", key, i)
        h1 = ((rotl(h1 ^ mix1(k1), 27) + h2) * 5 + 0x52DCE729) & M
        h2 = ((rotl(h2 ^ mix2(k2), 31) + h1) * 5 + 0x38495AB5) & M
    k1, k2 = struct.unpack("<QQ", key[whole:].ljust(16, b"\0"))
    h1, h2 = h1 ^ mix1(k1) ^ len(key), h2 ^ mix2(k2) ^ len(key)

    def fmix(k):
        k = (k ^ k >> 33) * 0xFF51AFD7ED558CCD & M
        k = (k ^ k >> 33) * 0xC4CEB9FE1A85EC53 & M
        return k ^ k >> 33

    h1 = (h1 + h2) & M
    h2 = (h2 + h1) & M
    return (fmix(h1) + fmix(h2)) & M


def siphash13(data, key):
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & M
            v[1] = rotl(v[1], 13) ^ v[0]
            v[0] = rotl(v[0], 32)
            v[2] = (v[2] + v[3]) & M
            v[3] = rotl(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & M
            v[3] = rotl(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & M
            v[1] = rotl(v[1], 17) ^ v[2]
            v[2] = rotl(v[2], 32)

    tail = data[len(data) // 8 * 8 :]
    words = [w for (w,) in struct.iter_unpack("<Q", data[: len(data) // 8 * 8])]
    words.append(int.from_bytes(tail, "little") | (len(data) & 255) << 56)
    for word in words:
        v[3] ^= word
        rounds(1)
        v[0] ^= word
    v[2] ^= 255
    rounds(3)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def fnv1a(data):
    h = 0xCBF29CE484222325
    for byte in data:
        h = (h ^ byte) * 0x100000001B3 & M
    return h


BLOCK, PATTERN = 0x45E10F8CAD1E3257, 0x28B64B9E11E7F457


def place(h, places):
    """The block or bucket of a hash."""
    return (h * BLOCK & M) * places >> 64


def fingerprint_product(h):
    x = h * BLOCK & M
    return (x ^ x >> 24) * PATTERN & M


def folded(h):
    x = h * BLOCK & M
    return x ^ x >> 32


def pattern(h, words, bits, blocks):
    """The words of all blocks that a hash has, `words` of them in a sector, and the bits of each."""
    first = words * place(h, blocks * (8 // words))
    masks = [0] * words
    p = folded(h) * PATTERN & M
    for number, byte in enumerate(p.to_bytes(8, "big")[:bits]):
        bit, part = byte >> 3, byte & 7
        if words == 8:
            position = 256 * (number % 2) + 32 * part + bit
        else:
            position = 32 * (part % (2 * words)) + bit
        masks[position // 64] |= 1 << position % 64
    return [(first + i, mask) for i, mask in enumerate(masks) if mask]


def in_second_line(h):
    """The hash in the second line."""
    return (h ^ h >> 32) * 0x9FB21C651E98DF25 & M


class Bloom:
    def __init__(self, words, bits, blocks, expected, rate, hasher, seed, function, lines_per_key=1):
        self.words, self.bits, self.blocks, self.lines_per_key = words, bits, blocks, lines_per_key
        self.expected, self.rate = expected, rate
        self.hasher, self.seed, self.function = hasher, seed, function
        self.lines = [[0] * 8 for _ in range(blocks)]

    def insert(self, key):
        self.insert_hash(self.function(key))

    def insert_hash(self, h):
        part = self.blocks // self.lines_per_key
        for first in range(0, self.blocks, part):
            for word, mask in pattern(h, self.words // self.lines_per_key, self.bits, part):
                self.lines[first + word // 8][word % 8] |= mask
            h = in_second_line(h)

    def contains_hash(self, h):
        assert self.lines_per_key == 1
        return all(self.lines[word // 8][word % 8] & mask == mask for word, mask in pattern(h, self.words, self.bits, self.blocks))

    def header(self, kind, length):
        front = b"\x89LBF\r\n\x1a\n" + struct.pack("<HBBI", 1, kind, self.hasher, self.seed)
        front += struct.pack("<QQ", self.function(b"lanebloom hasher print"), length)
        return front + struct.pack("<BBBB4xQ", 2, self.words, self.bits, self.lines_per_key - 1, self.blocks)

    def snapshot(self, kind=1):
        header = self.header(kind, 192 + 64 * self.blocks) + struct.pack("<Qd", self.expected, self.rate) + bytes(56)
        header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
        assert len(header) == 128
        body = header + b"".join(struct.pack("<8Q", *line) for line in self.lines)
        return body + struct.pack("<Q56x", xxhash.xxh3_64_intdigest(body))

    def delta(self, baseline):
        body, last, lines = b"", -1, 0
        for block, (line, base) in enumerate(zip(self.lines, baseline.lines)):
            new = [a & ~b for a, b in zip(line, base)]
            if not any(new):
                continue
            skipped, last, lines = block - last - 1, block, lines + 1
            while skipped > 127:
                body, skipped = body + bytes([skipped % 128 + 128]), skipped // 128
            body += bytes([skipped, sum(1 << w for w in range(8) if new[w])])
            for word in filter(None, new):
                numbers = [bit for bit in range(64) if word >> bit & 1]
                if len(numbers) > 8:
                    body += b"\x40" + struct.pack("<Q", word)
                else:
                    body += bytes(numbers[:-1]) + bytes([numbers[-1] + 128])
        header = self.header(129, 64 + len(body)) + struct.pack("<Q", lines)
        return header + struct.pack("<Q", xxhash.xxh3_64_intdigest(header + body)) + body


class Counting(Bloom):
    """Its lines are of counters, 16 in a word: a bit of the pattern names the counter that it is in."""

    def counters(self, h):
        """The line of a hash, and its counters there: the word of each, and its lowest bit."""
        words = pattern(h, self.words, self.bits, self.blocks)
        places = {(word % 8, bit // 4 * 4) for word, mask in words for bit in range(64) if mask >> bit & 1}
        return self.lines[words[0][0] // 8], places

    def contains_hash(self, h):
        line, places = self.counters(h)
        return all(line[word] >> at & 15 for word, at in places)

    def change(self, key, step):
        line, places = self.counters(self.function(key))
        if step < 0 and not all(line[word] >> at & 15 for word, at in places):
            return False
        for word, at in places:
            if line[word] >> at & 15 < 15:
                line[word] += step << at
        return True

    def insert(self, key):
        self.change(key, 1)

    def remove(self, key):
        return self.change(key, -1)


def tombstone(h):
    """The hash by which the filter of the removed knows a key."""
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9 & M
    h = (h ^ h >> 27) * 0x94D049BB133111EB & M
    return h ^ h >> 31


class Buckets:
    """A snapshot whose body is words, after a header of buckets."""

    def __init__(self, bits, buckets, expected, hasher, seed, function):
        self.bits, self.buckets, self.expected = bits, buckets, expected
        self.hasher, self.seed, self.function = hasher, seed, function

    def record(self, kind, words):
        body = b"".join(struct.pack("<Q", word) for word in words)
        body += bytes(-len(body) % 64)
        header = b"\x89LBF\r\n\x1a\n" + struct.pack("<HBBI", 1, kind, self.hasher, self.seed)
        header += struct.pack("<QQ", self.function(b"lanebloom hasher print"), 192 + len(body))
        header += struct.pack("<BB6xQQ64x", 2, self.bits, self.buckets, self.expected)
        header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
        assert len(header) == 128
        return header + body + struct.pack("<Q56x", xxhash.xxh3_64_intdigest(header + body))


class Cuckoo(Buckets):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.slots = 64 // self.bits
        self.table = [[0] * self.slots for _ in range(self.buckets)]

    def places(self, key):
        h = self.function(key)
        tag = (fingerprint_product(h) >> 32) * (2**self.bits - 1) // 2**32 + 1
        first = place(h, self.buckets)
        z = tag * 0xBF58476D1CE4E5B9 & M
        z = (z ^ z >> 32) * 0x94D049BB133111EB & M
        step = 2 * (z * (self.buckets // 2) >> 64) + 1
        return tag, self.table[first], self.table[(step - first) % self.buckets]

    def insert(self, key):
        tag, *buckets = self.places(key)
        # There is always room without moving another key.
        bucket = next(bucket for bucket in buckets if 0 in bucket)
        bucket[bucket.index(0)] = tag

    def remove(self, key):
        tag, *buckets = self.places(key)
        for bucket in buckets:
            if tag in bucket:
                bucket[bucket.index(tag)] = 0
                return True
        return False

    def snapshot(self):
        return self.record(6, [sum(tag << i * self.bits for i, tag in enumerate(bucket)) for bucket in self.table])


class DLeft(Buckets):
    def __init__(self, *arguments):
        super().__init__(14, *arguments)
        # Subtables of buckets of cells of a remainder and a count.
        self.table = [[[(0, 0)] * 8 for _ in range(self.buckets)] for _ in range(4)]

    def places(self, key):
        h = self.function(key)
        remainder, first = fingerprint_product(h) >> 50, place(h, self.buckets)
        z = (remainder + 1) * 0xBF58476D1CE4E5B9 & M
        z = (z ^ z >> 32) * 0x94D049BB133111EB & M
        z ^= z >> 31
        steps = [0] + [rotl(z, 21 * i) * self.buckets >> 64 for i in range(3)]
        return remainder, [table[(first + step) % self.buckets] for table, step in zip(self.table, steps)]

    def change(self, key, step):
        remainder, buckets = self.places(key)
        for bucket in buckets:
            for i, (found, count) in enumerate(bucket):
                if count and found == remainder:
                    bucket[i] = (remainder, count + step) if count + step else (0, 0)
                    assert count + step < 4
                    return True
        if step > 0:
            bucket = min(buckets, key=lambda bucket: sum(count > 0 for _, count in bucket))
            bucket[bucket.index((0, 0))] = (remainder, 1)
        return step > 0

    def insert(self, key):
        self.change(key, 1)

    def remove(self, key):
        return self.change(key, -1)

    def snapshot(self):
        cells = [count << 14 | remainder for table in self.table for bucket in table for remainder, count in bucket]
        return self.record(8, [sum(cells[i + j] << 16 * j for j in range(4)) for i in range(0, len(cells), 4)])


def come_and_go(make, keys, again):
    """Every key comes, every third goes, and the first one comes some times more."""
    filter = make()
    for i in range(keys):
        filter.insert(b"key %d" % i)
    for i in range(0, keys, 3):
        assert filter.remove(b"key %d" % i)
    for _ in range(again):
        filter.insert(b"key 1")
    return filter


# Words, bits, blocks, expected keys and rate are what the builder makes of the budget (64 * blocks)
# and the expected keys.
KEY = bytes(range(16))
FILTERS = {
    "one": lambda: Bloom(1, 3, 9, 900, 0.0966223502887008, 1, 0, lambda key: murmur3(key, 0)),
    "two": lambda: Bloom(2, 6, 21, 1000, 0.010330778090706988, 1, 7, lambda key: murmur3(key, 7)),
    "four": lambda: Bloom(4, 8, 300, 9000, 0.0009068027142902703, 1, 2**32 - 1, lambda key: murmur3(key, 2**32 - 1)),
    "eight": lambda: Bloom(8, 8, 5, 60, 3.05149008101941e-06, 1, 0, lambda key: murmur3(key, 0)),
    "siphash": lambda: Bloom(2, 6, 21, 1000, 0.010330778090706988, 2, 0, lambda key: siphash13(key, KEY)),
    "two_lines": lambda: Bloom(4, 7, 22, 400, 1.3234588033051858e-05, 1, 0, lambda key: murmur3(key, 0), 2),
    "other": lambda: Bloom(2, 6, 21, 1000, 0.010330778090706988, 0, 0, fnv1a),
}

# The same of the layers.
LAYERS = [(4, 8, 2, 50, 0.0003546278426265849), (4, 8, 3, 100, 0.0015463550177313768)]


def number(i):
    """The numbers of the tests: SplitMix64."""
    z = (i + 1) * 0x9E3779B97F4A7C15 & M
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31


def prints(path, fill):
    """Writes the last column of a table anew: a print of the hashes that are found of 5000 numbers. The other columns are a
    rate, and the words, bits and blocks that the builder chooses for it and 300 keys."""
    lines = []
    for line in path.read_text().splitlines():
        *settings, _ = line.split()
        rate, words, bits, blocks = float(settings[0]), *map(int, settings[1:])
        filter, value = fill(rate, words, bits, blocks), 0
        for i in range(5000):
            value = value * 3 + filter.contains_hash(number(i)) & M
        lines.append(" ".join(settings) + f" {value:016x}\n")
    path.write_text("".join(lines))


def filled(rate, words, bits, blocks):
    bloom = Bloom(words, bits, blocks, 300, rate, 1, 0, lambda key: murmur3(key, 0))
    for i in range(1200):
        bloom.insert(struct.pack("<Q", i))
    return bloom


def counted(rate, words, bits, blocks):
    counting = Counting(words, bits, blocks, 300, rate, 1, 0, lambda key: murmur3(key, 0))
    keys = 6000 if rate < 1e-3 else 1200
    for i in range(keys):
        counting.insert(struct.pack("<I", i))
    for i in range(keys // 2):
        counting.remove(struct.pack("<I", i))
    return counting


def check_vectors(description):
    """The tables of docs/FORMAT.md have the products, sectors and positions of these functions."""
    rows = [line.strip("|\n ").split(" | ") for line in description if line.startswith("| `")]
    products = [row for row in rows if len(row) == 4]
    positions = [row for row in rows if len(row) == 5]
    assert len(products) == len(positions) == 4
    for row in products:
        h, x, p, other = (int(number.strip("`"), 16) for number in row)
        assert (h * BLOCK & M, folded(h) * PATTERN & M, in_second_line(h)) == (x, p, other)
    for h, *cells in positions:
        h = int(h.strip("`"), 16)
        for words, cell in zip([1, 2, 4, 8], cells):
            sector, positions = cell.split(": ")
            positions = [int(position) for position in positions.split()]
            for bits in range(1, 9):
                masks = dict(pattern(h, words, bits, 1000))
                expected = {}
                for position in positions[:bits]:
                    word = words * int(sector) + position // 64
                    expected[word] = expected.get(word, 0) | 1 << position % 64
                assert masks == expected


if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent
    check_vectors(open(folder / "../../docs/FORMAT.md", encoding="utf-8"))
    prints(folder / "bits_v2.txt", filled)
    prints(folder / "counters_v2.txt", counted)
    for name, make in FILTERS.items():
        bloom = make()
        for i in range(bloom.expected // 2):
            bloom.insert(b"key %d" % i)
        (folder / f"snapshot_v1_{name}.bin").write_bytes(bloom.snapshot())
        if name == "four":
            more = make()
            # Every one of the keys, and in a few blocks so many that words are written whole.
            for i in range(4 * bloom.expected // 3):
                more.insert(b"key %d" % i)
            # (and nothing in most of them)
            for block in range(more.blocks):
                if block % 140 > 1:
                    more.lines[block] = list(bloom.lines[block])
            (folder / "delta_v1_four.bin").write_bytes(more.delta(bloom))
    # A filter that grew once: 50 keys, then 100, at half the rate.
    layers = [Bloom(*shape, 1, 3, lambda key: murmur3(key, 3)) for shape in LAYERS]
    for i in range(150):
        layers[i >= 50].insert(b"key %d" % i)
    parts = b"".join(layer.snapshot() for layer in layers)
    header = layers[0].header(2, 128 + len(parts))[:32] + struct.pack("<BBBB4xQQ", 0, 0, 0, 0, 50, 2)
    header += struct.pack("<ddQQ32x", 0.02, 0.5, M, 2)
    header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
    (folder / "snapshot_v1_scalable.bin").write_bytes(header + parts)
    # One whose second layer is for the rest of 450 keys, with two lines per key; both limits are set.
    rest = (4, 7, 22, 400, 1.3234588033051858e-05, 1, 3, lambda key: murmur3(key, 3), 2)
    layers = [Bloom(*LAYERS[0], 1, 3, lambda key: murmur3(key, 3)), Bloom(*rest)]
    for i in range(250):
        layers[i >= 50].insert(b"key %d" % i)
    parts = b"".join(layer.snapshot() for layer in layers)
    header = layers[0].header(2, 128 + len(parts))[:32] + struct.pack("<BBBB4xQQ", 0, 0, 0, 5, 50, 3)
    header += struct.pack("<ddQQQ24x", 0.02, 0.8, 100_000, 2, 450)
    header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
    (folder / "snapshot_v1_scalable_hint.bin").write_bytes(header + parts)
    # One that forgets, by age and a clock of its own: generations of 10 seconds. The newest began
    # at 61 s and is for 60 to 70 s; those of 50 to 60 s and of 30 to 40 s are there too. None was
    # begun at 40 s. It is 65 s.
    generations = [Bloom(*LAYERS[1], 1, 0, lambda key: murmur3(key, 0)) for _ in range(3)]
    for i in range(90):
        generations[i % 3].insert(b"key %d" % i)
    parts = b"".join(one.snapshot() for one in generations)
    second = 10**9
    header = generations[0].header(3, 256 + len(parts))[:32] + struct.pack("<BBBB4xQQ", 1, 1, 4, 3, 300, 3)
    header += struct.pack("<QQQQ32x", 10 * second, 65 * second, 61 * second, 70 * second)
    header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
    body = header + struct.pack("<QQ48x", 90 * second, 70 * second)
    body += struct.pack("<Q56x", xxhash.xxh3_64_intdigest(body))
    (folder / "snapshot_v1_windowed.bin").write_bytes(body + parts)
    # Filters that can delete. A counter that counts the first key sticks at 15.
    plain = lambda seed: (1, seed, lambda key: murmur3(key, seed))
    secret = (2, 0, lambda key: siphash13(key, KEY))
    deletable = {
        "counting": come_and_go(lambda: Counting(8, 6, 21, 200, 0.004521286250069275, *plain(7)), 150, 16).snapshot(4),
        "counting_one": come_and_go(lambda: Counting(1, 4, 9, 60, 0.01164175908114388, *secret), 60, 1).snapshot(4),
        "dleft": come_and_go(lambda: DLeft(5, 120, *plain(5)), 100, 2).snapshot(),
        "dleft_siphash": come_and_go(lambda: DLeft(5, 120, *secret), 100, 2).snapshot(),
    }
    for bits, buckets, expected, keys, hasher in [
        (10, 20, 80, 60, plain(0)),
        (12, 26, 100, 54, plain(2**32 - 1)),
        (16, 30, 90, 48, secret),
        (21, 40, 80, 36, plain(9)),
    ]:
        cuckoo = come_and_go(lambda: Cuckoo(bits, buckets, expected, *hasher), keys, 2)
        deletable[f"cuckoo_{bits}"] = cuckoo.snapshot()
    # A pair: 200 keys, of which every fifth was removed.
    added = Bloom(2, 6, 5, 200, 0.005387310379030619, *plain(3))
    removed = Bloom(4, 8, 2, 50, 0.0003546278426265849, *plain(0))
    for i in range(200):
        added.insert(b"key %d" % i)
        if i % 5 == 0:
            removed.insert_hash(tombstone(murmur3(b"key %d" % i, 3)))
    parts = added.snapshot() + removed.snapshot()
    header = added.header(5, 128 + len(parts))[:32] + bytes(88)
    header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
    deletable["tombstone"] = header + parts
    # A bank of filters of one block; column 5 is not in use.
    columns = [Bloom(2, 6, 1, 47, 0.009844004627982121, *plain(7)) for _ in range(64)]
    in_use = [column for column in range(64) if column != 5]
    for column in in_use:
        for i in range(column):
            columns[column].insert(struct.pack("<Q", number(100 * column + i)))
        columns[column].insert(b"in all")
    lines = [column.lines[0] for column in columns]
    rows = [sum((line[r // 64] >> r % 64 & 1) << c for c, line in enumerate(lines)) for r in range(512)]
    header = columns[0].header(17, 128 + 4096 + 64 + 64) + struct.pack("<QdQ48x", 47, columns[0].rate, 64)
    header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
    body = header + struct.pack("<512QQ56x", *rows, sum(1 << column for column in in_use))
    deletable["bank"] = body + struct.pack("<Q56x", xxhash.xxh3_64_intdigest(body))
    # A bitmap of 1000 positions: all multiples of 7, and 100 to 199.
    bits = sum(1 << i for i in range(1000) if i % 7 == 0 or 100 <= i < 200)
    header = b"\x89LBF\r\n\x1a\n" + struct.pack("<HBBIQQQ80x", 1, 16, 0, 0, 0, 320, 1000)
    header += struct.pack("<Q", xxhash.xxh3_64_intdigest(header))
    body = header + bits.to_bytes(128, "little")
    deletable["bitmap"] = body + struct.pack("<Q56x", xxhash.xxh3_64_intdigest(body))
    for name, snapshot in deletable.items():
        (folder / f"snapshot_v1_{name}.bin").write_bytes(snapshot)
