"""Eight threads that share a filter and the objects that hold its keys.

With the interpreter's lock, only calls that release it run at once; on free threads, all do. No test
depends on the pace: each compares with what one thread gets.
"""

import array
import pickle
import random
import sys
import threading
import time

import pytest

from common import THREADS, options, together
from lanebloom import (
    Bitmap,
    BloomFilter,
    CuckooFilter,
    Filter,
    FilterBank,
    GuavaBloomFilter,
    ScalableBloomFilter,
    SparkBloomFilter,
    SplitBlockBloomFilter,
    StaticFilter,
    WindowedBloomFilter,
)

# By their number of keys.
MAKES = {
    "bloom": lambda size: BloomFilter(size, 1e-3),
    "fast": lambda size: BloomFilter(size, 1e-3, hasher="fast"),
    "secret": lambda size: BloomFilter(size, 1e-3, secret=b"s" * 16),
    "scalable": lambda size: ScalableBloomFilter(max(size // 8, 1), 1e-3),
    "windowed": lambda size: WindowedBloomFilter(4 * size, 1e-3),
    "cuckoo": lambda size: CuckooFilter(size, 1e-3),
    "bitmap": lambda size: Bitmap(size),
    "guava": lambda size: GuavaBloomFilter(size, 1e-3),
    "spark": lambda size: SparkBloomFilter(size, 1e-3),
    "split block": lambda size: SplitBlockBloomFilter(size, 1e-3),
    "key": lambda size: BloomFilter(size, 1e-3, key=lambda key: key),
}
# Those whose content does not depend on the order of the keys.
EXACT = sorted(set(MAKES) - {"scalable", "windowed", "cuckoo"})


@pytest.fixture(autouse=True)
def frequent_switches():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def as_keys(numbers, kind):
    """A bitmap takes integers only."""
    return list(numbers) if kind == "bitmap" else [key if key % 3 else f"key {key}" for key in numbers]


@pytest.mark.parametrize("kind", MAKES)
def test_threads_do_everything_at_once(kind, tmp_path):
    """Keys that a thread added before a call are in all that the call makes."""
    size = 4000
    make, rounds = MAKES[kind], 10
    f = make(size)
    own = [as_keys(range(number, size, THREADS), kind) for number in range(THREADS)]

    def work(number):
        keys, part = own[number], len(own[number]) // rounds
        for i in range(rounds):
            known, new = keys[:(i + 1) * part], keys[i * part:(i + 1) * part]
            third = part // 3
            for key in new[:third]:
                f.add(key)
                assert key in f
            f.add_many(new[third:2 * third])
            # A union of growing filters takes the layers of both: many of them are refused.
            if kind == "cuckoo" or kind == "scalable" and i:
                f.update(new[2 * third:])
            else:
                other = make(size)
                other.update(new[2 * third:])
                f.update(other)
                assert all((f | other).contains_many(known))
            action = (number + i) % 6
            if action == 0:
                made = f.copy()
            elif action == 1:
                made = pickle.loads(pickle.dumps(f)) if kind != "key" else f
            elif action == 2:
                # One file for all, but on Windows, where a file that is open is not replaced.
                path = tmp_path / (str(number) if sys.platform == "win32" else "filter")
                f.save(path)
                made = type(f).load(path, **options(f))
                assert made.nbytes > 0
                continue
            elif action == 3:
                if kind in ("cuckoo", "bitmap"):
                    assert len(f) >= len(known)
                else:
                    assert f.approx_len > 0 and f.current_rate < 1
                assert repr(f)
                made = f
            elif action == 4:
                if kind == "bitmap":
                    assert set(known) <= set(f)
                made = f
            else:
                made = type(f).from_bytes(f.to_bytes(), **options(f))
            assert all(made.contains_many(known))
        f.update(keys[rounds * part:])

    together(work)
    every = [key for keys in own for key in keys]
    assert all(f.contains_many(every)) and all(key in f for key in every)
    if kind == "cuckoo":
        assert len(f) == len(every)
        together(lambda number: [f.remove(key) for key in own[number]])
        assert len(f) == 0
    if kind == "bitmap":
        assert list(f) == sorted(every) and len(f) == size
    if kind in EXACT and kind != "secret":
        alone = make(size)
        alone.update(every)
        assert f == alone


@pytest.mark.parametrize("call", ["add", "add_many", "add_new"])
@pytest.mark.parametrize("kind", MAKES)
def test_threads_that_write_to_the_same_words_lose_no_key(kind, call):
    """Filters of a few lines, in which threads meet."""
    make, each, filters = MAKES[kind], 150, 12
    size = THREADS * each
    own = [as_keys(range(number, size, THREADS), kind) for number in range(THREADS)]
    barrier = threading.Barrier(THREADS)
    for _ in range(10):
        made = [make(size) for _ in range(filters)]

        def work(number):
            keys = own[number]
            for f in made:
                barrier.wait()
                if call == "add":
                    add = f.add
                    for key in keys:
                        add(key)
                else:
                    getattr(f, call)(keys)

        together(work)
        for f in made:
            missing = [key for keys in own for key in keys if key not in f]
            assert not missing
            if kind in ("cuckoo", "bitmap"):
                assert len(f) == size


@pytest.mark.parametrize("kind", sorted(set(MAKES) - {"cuckoo"}))
def test_unions_both_ways_end(kind):
    size = 2000
    make = MAKES[kind]
    left, right = make(size), make(size)
    keys = as_keys(range(size), kind)
    left.update(keys[: size // 2])
    right.update(keys[size // 2:])

    def work(number):
        a, b = (left, right) if number % 2 else (right, left)
        for _ in range(20):
            a.update(b)
            # Guava refuses itself, here as in Java.
            if kind != "guava":
                a.update(a)
            assert all((a | b).contains_many(keys))

    together(work)
    assert all(left.contains_many(keys)) and all(right.contains_many(keys))


def keys_of(number, part):
    """Keys of which no other thread and no other part has any."""
    return [f"key {number} {part} {i}" if i % 2 else 1000 * (number * 100 + part) + i for i in range(60)]


def test_threads_do_everything_with_a_bank(tmp_path):
    """Each fills columns of its own, which share their words with those of the others."""
    parts, make = 6, lambda: FilterBank(128, 200, 1e-4)
    bank, other = make(), make()

    def work(number):
        for part in range(parts):
            column, keys = 8 * part + number, keys_of(number, part)
            for key in keys[:20]:
                assert bank.add(column, key)
                assert column in bank.which(key) and bank.contains(column, key)
            bank.add_many(column, keys[20:], threads=2)
            rows, columns = bank.which_many(keys)
            assert [int(row) for row, found in zip(rows, columns) if found == column] == list(range(60))
            action = (number + part) % 7
            if action == 0:
                made = bank.copy()
            elif action == 1:
                made = pickle.loads(pickle.dumps(bank))
            elif action == 2:
                path = tmp_path / (str(number) if sys.platform == "win32" else "bank")
                bank.save(path)
                assert len(FilterBank.load(path)) > 0
                made = FilterBank.from_bytes(bank.to_bytes())
            elif action == 3:
                # Beside the others' columns: a scratch one, which comes and goes.
                filled = bank.to_filter(column)
                scratch = bank.push(filled) if part % 2 else bank.push_all([filled])[0]
                assert bank.to_filter(scratch) == filled
                bank.clear(scratch)
                made = bank
            elif action == 4:
                # Two banks in both orders, while others wait to have them alone.
                for _ in range(20):
                    other == bank, bank == other
                    other.clear(5)
                made = bank
            else:
                assert repr(bank) and bank.which(keys[0])
                made = bank
            assert all(made.contains(column, key) for key in keys)

    # Columns that push finds in use.
    for column in range(8 * parts):
        bank.add(column, "in all")
    together(work)
    assert bank.columns_in_use() == list(range(8 * parts)) == bank.which("in all")
    for part in range(parts):
        for number in range(THREADS):
            alone = BloomFilter(200, 1e-4)
            alone.update(["in all"], keys_of(number, part))
            assert bank.to_filter(8 * part + number) == alone


@pytest.mark.parametrize("call", ["add", "add_many"])
def test_threads_that_write_to_the_same_words_of_a_bank_lose_no_key(call):
    barrier = threading.Barrier(THREADS)
    for column_of in lambda number: number, lambda number: 5:
        banks = [FilterBank(64, 1000, 1e-3) for _ in range(30)]

        def work(number):
            keys = range(number, 1000, THREADS)
            for bank in banks:
                barrier.wait()
                if call == "add":
                    for key in keys:
                        bank.add(column_of(number), key)
                else:
                    bank.add_many(column_of(number), keys)

        together(work)
        for bank in banks:
            for number in range(THREADS):
                assert bank.to_filter(column_of(number)).contains_many(range(number, 1000, THREADS)).all()
            assert bank == banks[0]


def test_columns_are_cleared_whole_while_others_are_filled():
    bank = FilterBank(64, 2000, 1e-3)
    template = bank.to_filter(0)
    template.update(range(2000))
    done = [False] * THREADS

    def work(number):
        if number == 0:
            while not all(done[1:]):
                column = bank.push(template)
                assert bank.to_filter(column) == template
                bank.clear(column)
                assert bank.to_filter(column).approx_len == 0
            return
        try:
            for i in range(300):
                key = 10_000 * number + i
                bank.add(number, key)
                assert number in bank.which(key)
        finally:
            done[number] = True

    for column in range(1, THREADS):
        bank.add(column, -1)
    together(work)
    assert len(bank) == THREADS - 1
    for number in range(1, THREADS):
        assert all(bank.contains(number, 10_000 * number + i) for i in range(300))


def test_threads_read_a_filter_that_does_not_change():
    f = StaticFilter(range(100_000), 1e-3)

    def work(number):
        for i in range(5):
            assert all(f.contains_many(range(number, 100_000, 97), threads=2)) and number in f and len(f) == 100_000
            made = [f.copy(), pickle.loads(pickle.dumps(f)), Filter.from_bytes(f.to_bytes())][i % 3]
            assert made == f == StaticFilter(range(99_999, -1, -1), 1e-3)

    together(work)


def test_a_list_that_other_threads_change():
    """Strings that nothing else holds go away while they are hashed."""
    def strings():
        # Not ASCII: their UTF-8 lies apart, and is freed with them.
        return [f"é{i} " * 300 for i in range(64)]

    # Not empty: the thread that changes them may begin when the other one is done.
    keys, f, known = strings(), BloomFilter(1000, 1e-4), BloomFilter(1000, 1e-4)
    known.update(strings())
    done = threading.Event()

    def work(number):
        try:
            for _ in range(5000):
                if number == 0:
                    f.add_many(keys)
                elif not done.is_set():
                    # The thread that made a string frees it at once, another one later.
                    keys[:] = strings()
        finally:
            done.set()

    together(work, threads=2)
    f.add_many(keys)
    assert f == known


def test_a_dict_that_other_threads_change():
    """The interpreter notices it: an error of its own, and no panic."""
    keys, f = {0: 0}, BloomFilter(1_000_000, 1e-4)

    def work(number):
        for i in range(1000):
            if number % 2:
                try:
                    f.update(keys)
                except RuntimeError as error:
                    assert "changed" in str(error)
            else:
                keys[number, i] = i
                if i % 50 == 0:
                    keys.clear()

    together(work)
    f.update(keys)
    assert all(key in f for key in keys)


@pytest.mark.parametrize("make", [
    lambda: bytearray(b"abcdefgh" * 100),
    lambda: array.array("q", range(100)),
])
def test_a_buffer_that_threads_share_is_given_back(make):
    shared, f = make(), BloomFilter(1000, 1e-6)

    def work(number):
        for _ in range(3000):
            if isinstance(shared, bytearray):
                f.add(shared)
                assert shared in f
            else:
                f.add_many(shared)

    together(work)
    # An object whose buffer is in use refuses to grow.
    shared.extend(shared[:1])
    assert len(shared) in (101, 801)


def test_a_capsule_of_arrow_goes_to_one_thread():
    answers = BloomFilter(1000).contains_many(list(range(100)), as_arrow=True)

    class Once:
        def __init__(self):
            self.capsules = answers.__arrow_c_array__()

        def __arrow_c_array__(self, requested_schema=None):
            return self.capsules

    every = [Once() for _ in range(3000)]
    got, at, errors = [0, 0], [0, 0], set()

    def work(number):
        f = BloomFilter(1000)
        for i, once in enumerate(every):
            # In step, so that they meet at each capsule.
            at[number] = i
            spins = 0
            while at[1 - number] < i:
                spins += 1
                if spins % 200 == 0:
                    time.sleep(0)
            try:
                f.add_many(once)
                got[number] += 1
            except ValueError as error:
                errors.add(str(error))
        at[number] = len(every)

    together(work, threads=2)
    assert sum(got) == len(every) and len(errors) == 1


def test_threads_that_share_an_iterator_get_each_integer_once():
    f = Bitmap(20_000)
    f.update(random.Random(1).sample(range(20_000), 10_000))
    integers, got = iter(f), [[] for _ in range(THREADS)]
    together(lambda number: got[number].extend(iter(lambda: next(integers, None), None)))
    assert sorted(key for keys in got for key in keys) == list(f)
