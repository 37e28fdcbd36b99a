"""lanebloom beside the filters of PyPI: nanoseconds per key, memory, files, pickles.

    python benches/peers.py PART [ROUNDS]

PART is ints1m, ints10m, strings1m, threads or files. Each part checks its answers, takes under a
minute, and prints rows of one table. The rounds take all filters in turn; a figure is the median
of the rounds. Peers that are not installed are left out.

pip install numpy pyarrow abloom rbloom pybloomfiltermmap3 fastbloom-rs
"""

import gc
import hashlib
import os
import pickle
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pyarrow as pa

import lanebloom

RATE = 0.01
CALLS = 4
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 5


def make_peers():
    """Name -> constructor(n)."""
    peers = {"lanebloom": lambda n: lanebloom.BloomFilter(n, RATE)}
    try:
        import abloom

        peers["abloom"] = lambda n: abloom.BloomFilter(n, RATE)
    except ImportError:
        pass
    try:
        import rbloom

        peers["rbloom"] = lambda n: rbloom.Bloom(n, RATE)
    except ImportError:
        pass
    try:
        import pybloomfilter

        peers["pybloomfiltermmap3"] = lambda n: pybloomfilter.BloomFilter(n, RATE)
    except ImportError:
        pass
    try:
        import fastbloom_rs

        peers["fastbloom-rs"] = lambda n: fastbloom_rs.BloomFilter(n, RATE)
    except ImportError:
        pass
    peers["set"] = lambda n: set()
    return peers


def keys_of(kind, n, seed):
    """Distinct keys in random order, none of which is a key of another seed."""
    random_ = random.Random(seed)
    if kind == "ints":
        values = np.random.default_rng(seed).permutation(n).astype(np.int64) * 2 + seed % 2
        return values.tolist(), values
    letters = "abcdefghijklmnopqrstuvwxyz/.-"
    body = "".join(random_.choices(letters, k=n + 100))
    out = [f"{i:x}-{seed}-{body[i:i + random_.randint(20, 60) - len(f'{i:x}') - 3]}" for i in range(n)]
    random_.shuffle(out)
    return out, pa.array(out)


def timed(call, n):
    start = time.perf_counter()
    result = call()
    return (time.perf_counter() - start) / n * 1e9, result


def add_all(f, keys):
    add = f.add
    for key in keys:
        add(key)


def count_in(f, keys):
    found = 0
    for key in keys:
        found += key in f
    return found


def update(f, keys):
    if hasattr(f, "update"):
        f.update(keys)
    elif keys and isinstance(keys[0], int):
        f.add_int_batch(keys)
    else:
        f.add_str_batch(keys)


def part(kind, n):
    keys, array = keys_of(kind, n, 2)
    absent, absent_array = keys_of(kind, n, 3)
    times = {}

    def note(row, name, ns):
        times.setdefault(row, {}).setdefault(name, []).append(ns)

    peers = make_peers()
    order = list(peers.items())
    for _ in range(ROUNDS):
        gc.collect()
        # Each is the first one once.
        order.append(order.pop(0))
        for name, make in order:
            f = make(n)
            ns, _ = timed(lambda: add_all(f, keys), n)
            note("add", name, ns)
            ns, found = timed(lambda: count_in(f, keys), n)
            assert found == n, (name, found)
            note("in, present", name, ns)
            ns, found = timed(lambda: count_in(f, absent), n)
            assert found <= 2 * RATE * n, (name, found / n)
            note("in, absent", name, ns)
            f = make(n)
            ns, _ = timed(lambda: update(f, keys), n)
            assert count_in(f, keys[:1000]) == 1000
            note("update(list)", name, ns)
        what = "numpy" if kind == "ints" else "Arrow"
        f = lanebloom.BloomFilter(n, RATE)
        ns, added = timed(lambda: f.add_many(array), n)
        assert added > 0.98 * n
        note(f"add_many({what})", "lanebloom", ns)
        ns, found = timed(lambda: f.contains_many(array), n)
        assert found.all()
        note(f"contains_many({what})", "lanebloom", ns)
        ns, found = timed(lambda: f.contains_many(absent_array), n)
        assert found.mean() < 1.2 * RATE
        note(f"contains_many({what}), absent", "lanebloom", ns)
        f = lanebloom.BloomFilter(n, RATE)
        ns, new = timed(lambda: f.add_new(array), n)
        assert new.mean() > 0.98
        note(f"add_new({what})", "lanebloom", ns)
        ns, found = timed(lambda: f.contains_many(keys), n)
        assert found.all()
        note("contains_many(list)", "lanebloom", ns)
        # The only peer that looks many keys up at once.
        if "fastbloom-rs" in peers:
            f = peers["fastbloom-rs"](n)
            update(f, keys)
            call = f.contains_int_batch if kind == "ints" else f.contains_str_batch
            ns, found = timed(lambda: call(keys), n)
            assert all(found)
            note("contains_many(list)", "fastbloom-rs", ns)
    print(f"\n{n:,} {kind}, ns per key\n")
    print_table(times, list(peers))


def print_table(times, names):
    print("| | " + " | ".join(names) + " |\n|---|" + "--:|" * len(names))
    for row, columns in times.items():
        cells = [f"{statistics.median(columns[name]):.1f}" if name in columns else "" for name in names]
        print(f"| {row} | " + " | ".join(cells) + " |")


def in_cache():
    """A filter that the second cache holds: 100,000 keys, looked up many times."""
    n = 100_000
    values = np.random.default_rng(1).permutation(10 * n).astype(np.int64)
    f = lanebloom.BloomFilter(n, RATE)
    f.add_many(values[:n])
    times = []
    for _ in range(9 * ROUNDS):
        ns, found = timed(lambda: f.contains_many(values), 10 * n)
        assert n <= found.sum() < 1.2 * n
        times.append(ns)
    print(f"\n100,000 keys, {f.nbytes:,} bytes: contains_many(numpy) {statistics.median(times):.2f} ns per key")


def threads():
    """A figure of a round is that of the best call: two threads need both processors at once."""
    n = 8_000_000
    values = np.random.default_rng(1).permutation(n).astype(np.int64)
    names = pa.array([f"https://example.org/{i:08}/page" for i in range(1_000_000)])
    times = {}
    for _ in range(ROUNDS):
        for label, array in ("8,000,000 ints", values), ("1,000,000 strings", names):
            n = len(array)
            for count in 1, 2:
                adds, lookups = [], []
                for _ in range(CALLS):
                    f = lanebloom.BloomFilter(n, RATE)
                    adds.append(timed(lambda: f.add_many(array, threads=count), n)[0])
                    ns, found = timed(lambda: f.contains_many(array, threads=count), n)
                    assert found.all()
                    lookups.append(ns)
                times.setdefault(f"add_many({label})", {}).setdefault(count, []).append(min(adds))
                times.setdefault(f"contains_many({label})", {}).setdefault(count, []).append(min(lookups))
        # Threads of Python that share a filter.
        for count in 1, 2:
            adds = []
            for _ in range(CALLS):
                f = lanebloom.BloomFilter(len(values), RATE)
                parts = [np.array_split(half, 16) for half in np.array_split(values, count)]
                workers = [
                    threading.Thread(target=lambda chunks=chunks: [f.add_many(c) for c in chunks]) for chunks in parts
                ]
                start = time.perf_counter()
                [worker.start() for worker in workers], [worker.join() for worker in workers]
                adds.append((time.perf_counter() - start) / len(values) * 1e9)
            times.setdefault("add_many, threads of Python", {}).setdefault(count, []).append(min(adds))
    print("\nns per key\n\n| | 1 thread | 2 threads | ratio |\n|---|--:|--:|--:|")
    for row, columns in times.items():
        one, two = statistics.median(columns[1]), statistics.median(columns[2])
        # Within a round, since the machine's speed changes.
        ratio = statistics.median(a / b for a, b in zip(columns[1], columns[2]))
        print(f"| {row} | {one:.1f} | {two:.1f} | {ratio:.2f} |")


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def memory(name, n):
    """The memory that a filter adds to a process that has freed nothing before."""
    keys, make = list(range(n)), make_peers()[name]
    before = resident()
    f = make(n)
    add_all(f, keys)
    print(resident() - before)


def memory_of(name, n):
    program = [sys.executable, __file__, "memory", "1", name, str(n)]
    return int(subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout.split()[-1])


def files():
    n = 2_000_000
    keys = np.random.default_rng(1).permutation(n).tolist()
    print(f"\n{n:,} ints: memory, a file, a pickle\n")
    print("| | memory, MB | save, ms | load, ms | pickle, ms |\n|---|--:|--:|--:|--:|")
    for name, make in make_peers().items():
        gc.collect()
        megabytes = memory_of(name, n) / 1e6
        f = make(n)
        update(f, keys)
        cells = []
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "filter")
            g = [None]
            if name == "lanebloom":
                cells = [lambda: f.save(path), lambda: g.__setitem__(0, lanebloom.BloomFilter.load(path))]
            elif name == "rbloom":
                # Its save wants a hash function that is the same in every process.
                def hash_of(key):
                    return int.from_bytes(hashlib.sha256(pickle.dumps(key)).digest()[:16], "big", signed=True)

                f = type(f)(n, RATE, hash_of)
                update(f, keys)
                cells = [lambda: f.save(path), lambda: g.__setitem__(0, type(f).load(path, hash_of))]
            elif name == "abloom":
                f = type(f)(n, RATE, serializable=True)
                update(f, keys)

                def save():
                    with open(path, "wb") as file:
                        file.write(f.to_bytes())

                def load():
                    with open(path, "rb") as file:
                        g[0] = type(f).from_bytes(file.read())

                cells = [save, load]
            elif name == "fastbloom-rs":
                cells = [lambda: f.save_to_file_with_hashes(path), lambda: g.__setitem__(0, type(f).from_file_with_hashes(path))]
            texts = []
            for cell in cells:
                try:
                    times = [timed(cell, 1)[0] / 1e6 for _ in range(ROUNDS)]
                    texts.append(f"{statistics.median(times):.1f}")
                except Exception as error:
                    texts.append(type(error).__name__)
            texts += [""] * (2 - len(texts))
            if cells and g[0] is not None:
                assert count_in(g[0], keys[:1000]) == 1000
            try:
                ns, copy = timed(lambda: pickle.loads(pickle.dumps(f, 5)), 1)
                assert count_in(copy, keys[:1000]) == 1000
                texts.append(f"{ns / 1e6:.1f}")
            except Exception as error:
                texts.append(f"no ({type(error).__name__})")
        print(f"| {name} | {megabytes:.1f} | " + " | ".join(texts) + " |")


PARTS = {
    "ints1m": lambda: (in_cache(), part("ints", 1_000_000)),
    "ints10m": lambda: part("ints", 10_000_000),
    "strings1m": lambda: part("strings", 1_000_000),
    "threads": threads,
    "files": files,
    "memory": lambda: memory(sys.argv[3], int(sys.argv[4])),
}

if __name__ == "__main__":
    print(f"CPython {platform.python_version()}, lanebloom {lanebloom.__version__}, median of {ROUNDS} rounds")
    PARTS[sys.argv[1]]()
