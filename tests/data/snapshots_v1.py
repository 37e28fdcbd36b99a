"""Makes the snapshots and the delta of this folder, from the description in src/codec/mod.rs alone: no code of the crate is used.

    pip install xxhash && python3 tests/data/snapshots_v1.py

tests/snapshot.rs makes the same filters and compares. What is here was made when version 1 of the format was, and is never
made anew: a later version must read it.
"""

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


def pattern(h, words, bits):
    """The words of its block that a hash has, and the bits of each."""
    group = 8 // words
    select = group.bit_length() - 1
    p, left = h, 0
    for i in range(words):
        if left < select + 6 * bits:
            p, left = p * 0x9E3779B97F4A7C15 & M, 64
        left -= select
        word = i * group + (p >> left) % group
        mask = 0
        for _ in range(bits):
            left -= 6
            mask |= 1 << (p >> left) % 64
        yield word, mask


class Bloom:
    def __init__(self, words, bits, blocks, expected, rate, hasher, seed, function):
        self.words, self.bits, self.blocks = words, bits, blocks
        self.expected, self.rate = expected, rate
        self.hasher, self.seed, self.function = hasher, seed, function
        self.lines = [[0] * 8 for _ in range(blocks)]

    def insert(self, key):
        h = self.function(key)
        for word, mask in pattern(h, self.words, self.bits):
            self.lines[h * self.blocks >> 64][word] |= mask

    def header(self, kind, length):
        front = b"\x89LBF\r\n\x1a\n" + struct.pack("<HBBI", 1, kind, self.hasher, self.seed)
        front += struct.pack("<QQ", self.function(b"lanebloom hasher print"), length)
        return front + struct.pack("<BBB5xQ", 1, self.words, self.bits, self.blocks)

    def snapshot(self):
        header = self.header(1, 192 + 64 * self.blocks) + struct.pack("<Qd", self.expected, self.rate) + bytes(56)
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


# Words, bits, blocks, expected keys and rate are what the builder makes of the budget (64 * blocks) and the expected keys.
KEY = bytes(range(16))
FILTERS = {
    "one": lambda: Bloom(1, 3, 9, 900, 0.09662235028870084, 1, 0, lambda key: murmur3(key, 0)),
    "two": lambda: Bloom(2, 3, 21, 1000, 0.0083326938749276, 1, 7, lambda key: murmur3(key, 7)),
    "four": lambda: Bloom(4, 2, 300, 9000, 0.0006611859998052332, 1, 2**32 - 1, lambda key: murmur3(key, 2**32 - 1)),
    "eight": lambda: Bloom(8, 2, 5, 60, 4.529911261083664e-7, 1, 0, lambda key: murmur3(key, 0)),
    "siphash": lambda: Bloom(2, 3, 21, 1000, 0.0083326938749276, 2, 0, lambda key: siphash13(key, KEY)),
    "other": lambda: Bloom(2, 3, 21, 1000, 0.0083326938749276, 0, 0, fnv1a),
}

if __name__ == "__main__":
    folder = pathlib.Path(__file__).parent
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
