"""FilterBank: many filters, asked with one key at once."""

import array
import copy
import pickle
import random

import pytest

import lanebloom
from common import ROOT, SECRET, Length, command, copies, damaged, is_refused, needs_command, options, steps_beside
from lanebloom import Bitmap, BloomFilter, CuckooFilter, Filter, FilterBank

MAKERS = [
    lambda: FilterBank(100, 200, 1e-5),
    lambda: FilterBank(100, 200, 1e-5, secret=SECRET),
    lambda: FilterBank(100, 200, 1e-5, hasher="fast", seed=3),
    lambda: FilterBank(100, 200, 1e-5, key=lambda key: key),
]


def pairs(answer):
    rows, columns = answer
    return list(zip(map(int, rows), map(int, columns)))


def filled(make=MAKERS[0]):
    """Key i is in the columns from 1 to 99 that divide it, up to 200 keys in each; 0 is in all."""
    bank = make()
    for column in range(1, 100):
        bank.add_many(column, [f"key {i}" for i in range(0, 200 * column, column)])
    return bank


def expected(key):
    return [column for column in range(1, 100) if key % column == 0 and key // column < 200]


@pytest.mark.parametrize("make", MAKERS)
def test_a_key_is_in_its_columns_and_in_few_others(make):
    bank = filled(make)
    assert (bank.columns, len(bank), bank.columns_in_use()) == (128, 99, list(range(1, 100)))
    wrong = 0
    for key in range(1200):
        found = bank.which(f"key {key}")
        assert found == sorted(found) and set(expected(key)) <= set(found)
        assert bank.any(f"key {key}") == bool(found) and bank.count(f"key {key}") == len(found)
        wrong += len(found) - len(expected(key))
    assert wrong <= 8
    assert bank.contains(7, "key 14") and not bank.contains(7, "key 15") and not bank.contains(0, "key 0")


@pytest.mark.parametrize("threads", [1, 3])
def test_pairs_are_those_of_single_lookups(threads):
    numpy = pytest.importorskip("numpy")
    bank = filled()
    keys = [f"key {i}" for i in range(20_000)]
    rows, columns = bank.which_many(keys, threads=threads)
    assert rows.dtype == columns.dtype == numpy.int64 and type(rows[0]) is numpy.int64
    single = [(i, column) for i, key in enumerate(keys) for column in bank.which(key)]
    assert pairs((rows, columns)) == single
    assert pairs(bank.which_many(iter(keys), threads=threads)) == single
    assert pairs(bank.which_many(numpy.array(keys), threads=threads)) == single
    table = numpy.zeros((len(keys), bank.columns), bool)
    table[rows, columns] = True
    assert numpy.bincount(rows, minlength=len(keys)).tolist()[:500] == [len(bank.which(key)) for key in keys[:500]]
    assert table.sum() == len(single)
    assert [len(part) for part in bank.which_many([])] == [0, 0]


@pytest.mark.parametrize("threads", [1, 8])
def test_rows_of_long_arrays_are_their_places(threads):
    numpy = pytest.importorskip("numpy")
    bank = FilterBank(64, 100, 1e-9)
    places = [0, 1, 1023, 1024, 262_143, 262_144, 300_000, 524_288, 699_999]
    assert bank.add_many(9, [key + 10**9 for key in places]) == len(places)
    rows, columns = bank.which_many(numpy.arange(700_000) + 10**9, threads=threads)
    assert rows.tolist() == places and columns.tolist() == [9] * len(places)
    large = FilterBank(64, 700_000, 0.1)
    alone = large.to_filter(3)
    added = large.add_many(3, numpy.arange(700_000), threads=threads)
    assert abs(added - alone.add_many(numpy.arange(700_000))) < 1000 and large.to_filter(3) == alone


def test_keys_come_in_any_form():
    numbers = list(range(-500, 2500))
    bank = FilterBank(64, 4000, 1e-9)
    assert bank.add_many(0, numbers) == 3000 and bank.add_many(1, iter(numbers)) == 3000
    assert bank.add_many(2, array.array("q", numbers), threads=2) == 3000
    assert bank.add_many(3, []) == 0 and bank.columns_in_use() == [0, 1, 2]
    assert bank.to_filter(0) == bank.to_filter(1) == bank.to_filter(2)
    mixed = [1, "a", None, 2.5, ("x", 1), b"raw", "grün"]
    assert bank.add_many(4, mixed) == 7 and all(bank.contains(4, key) for key in mixed)
    assert bank.contains(4, "a".encode()) and bank.contains(4, 1.0) and not bank.contains(4, "b")
    by_key = FilterBank(64, 100, key=len)
    assert by_key.add(3, [1, 2]) and by_key.which("ab") == [3] and pairs(by_key.which_many(["a", "ab"])) == [(1, 3)]
    assert by_key.add_many(4, [[1], [2]]) == 1 and [9] in by_key.to_filter(4)


def test_arrays_of_libraries():
    numpy = pytest.importorskip("numpy")
    bank = FilterBank(64, 10_000, 1e-9)
    numbers = numpy.arange(10_000) * 3
    assert bank.add_many(5, numbers) == 10_000 and bank.add_many(9, numbers[::2], threads=2) == 5000
    rows, columns = bank.which_many(numbers[:4])
    assert rows.tolist() == [0, 0, 1, 2, 2, 3] and columns.tolist() == [5, 9, 5, 5, 9, 5]
    names = numpy.array([f"file {i}" for i in range(64)])
    assert names[columns].tolist()[:2] == ["file 5", "file 9"]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"key": [3, 4, 6], "value": ["a", "b", "c"]})
    rows, columns = bank.which_many(frame["key"])
    assert frame.iloc[rows]["value"].tolist() == ["a", "c", "c"]
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"key": [3, 4, 6, None]})
    for keys in table["key"], table, table["key"].dictionary_encode():
        rows, columns = bank.which_many(keys)
        assert table.take(pa.array(rows))["key"].to_pylist() == [3, 6, 6] and columns.tolist() == [5, 5, 9]


@pytest.mark.parametrize("make", MAKERS[:3])
def test_columns_are_filters(make, tmp_path):
    bank = make()
    filters = []
    for i in range(70):
        f = bank.to_filter(127)
        assert type(f) is BloomFilter and f.approx_len == 0 and f.hasher == bank.hasher
        f.update(range(i, i + 100))
        filters.append(f)
    assert bank.push(filters[0]) == 0
    assert bank.add(5, "other")
    assert bank.push_all(filters[1:]) == [*range(1, 5), *range(6, 71)]
    for i, column in enumerate([*range(5), *range(6, 71)]):
        assert bank.to_filter(column) == filters[i]
    assert bank.which(50)[:3] == [0, 1, 2] and bank.contains(70, 168)
    # A mapped file.
    filters[3].save(tmp_path / "filter")
    view = BloomFilter.mmap(tmp_path / "filter", **options(bank))
    assert bank.push_all([view]) == [71] and bank.push(view) == 72
    assert bank.to_filter(71) == bank.to_filter(72) == filters[3]
    other = make()
    for column in bank.columns_in_use():
        if column == 5:
            other.add(5, "other")
        else:
            assert other.push(bank.to_filter(column)) == column
            continue
    assert other == bank


def test_filters_of_the_same_arguments_fit():
    bank = FilterBank(64, 1000, 1e-3, seed=7)
    f = BloomFilter(1000, 1e-3, seed=7)
    f.update(range(500))
    assert bank.push(f) == 0 and bank.to_filter(0) == f
    assert (bank.expected, bank.rate, bank.nbytes) == (f.expected, f.rate, 64 * f.nbytes)


def test_a_larger_filter_is_folded():
    bank = FilterBank(64, 1000, 1e-3)
    sizes = (BloomFilter(keys, 1e-3) for keys in range(3900, 4200))
    large = next(large for large in sizes if large.nbytes == 4 * bank.to_filter(0).nbytes)
    large.update(range(900))
    assert bank.push(large) == 0 and bank.push_all([large]) == [1]
    assert bank.to_filter(0) == bank.to_filter(1) and bank.to_filter(0).contains_many(range(900)).all()


def test_columns_are_cleared_and_taken_again():
    bank = filled()
    before = bank.copy()
    bank.clear(7)
    assert bank.columns_in_use() == [column for column in range(1, 100) if column != 7]
    assert all(7 not in bank.which(f"key {7 * i}") for i in range(100)) and bank.contains(6, "key 12")
    assert before.contains(7, "key 7") and before != bank
    assert bank.push(before.to_filter(3)) == 0
    assert bank.push(before.to_filter(7)) == 7
    bank.clear(0)
    assert bank == before
    with pytest.raises(ValueError, match="column 128 is not below the bank's 128 columns"):
        bank.clear(128)


@pytest.mark.parametrize("make", MAKERS[:3])
def test_bytes_files_pickles_and_copies_come_back(make, tmp_path):
    bank = filled(make)
    path = tmp_path / "bank"
    for other in [*copies(bank, path, [FilterBank]), FilterBank.load(path, **options(bank), max_bytes=bank.nbytes)]:
        assert type(other) is FilterBank and other == bank and not other != bank
        assert other.hasher == bank.hasher and other.secret == bank.secret
        assert other.add(0, "new") and not bank.contains(0, "new") and other != bank
    assert bank != 3 and bank != BloomFilter(10)
    with pytest.raises(ValueError, match=str(bank.nbytes - 1)):
        FilterBank.load(path, max_bytes=bank.nbytes - 1, **options(bank))
    if bank.secret:
        assert bank.secret not in bank.to_bytes() and bank.secret in pickle.dumps(bank)
        with pytest.raises(ValueError, match="pass it as secret="):
            FilterBank.load(path)


def test_pickles_keep_the_function():
    bank = FilterBank(64, 10, key=len)
    bank.add(3, [1, 2])
    for other in pickle.loads(pickle.dumps(bank)), bank.copy():
        assert other.which([5, 6]) == [3]


def test_copies_share_the_function():
    bank = FilterBank(64, 10, key=Length())
    bank.add(3, [1, 2])
    assert all(other.which([5, 6]) == [3] for other in (bank.copy(), copy.copy(bank), copy.deepcopy(bank)))


def test_filters_and_banks_are_told_apart():
    bank, f = FilterBank(64, 10), BloomFilter(10)
    for call in Filter.from_bytes, BloomFilter.from_bytes:
        with pytest.raises(ValueError, match="FilterBank, which FilterBank.load and FilterBank.from_bytes read"):
            call(bank.to_bytes())
    with pytest.raises(ValueError, match="kind ConcurrentBloom, not a FilterBank: Filter.load"):
        FilterBank.from_bytes(f.to_bytes())


def test_what_does_not_fit_is_refused():
    bank = FilterBank(64, 1000, 1e-3)
    for other in [BloomFilter(1100, 1e-3), BloomFilter(1000, 1e-6), BloomFilter(1000, 1e-3, seed=1),
                  BloomFilter(1000, 1e-3, hasher="fast"), BloomFilter(1000, 1e-3, secret=True)]:
        for call in bank.push, lambda other: bank.push_all([bank.to_filter(3), other]):
            with pytest.raises(ValueError, match="Make it with the bank's arguments, for 1000 keys"):
                call(other)
    for other in [CuckooFilter(1000, 1e-3), Bitmap(10), bank, 3, "abc"]:
        for call in bank.push, lambda other: bank.push_all([other]):
            with pytest.raises(TypeError, match="a bank takes a BloomFilter, not a"):
                call(other)
    with pytest.raises(TypeError, match="not iterable"):
        bank.push_all(3)
    assert len(bank) == 0
    assert bank.push_all([bank.to_filter(0)] * 64) == list(range(64))
    for call in [lambda: bank.push(bank.to_filter(0)), lambda: bank.push_all([bank.to_filter(0)] * 3)]:
        with pytest.raises(ValueError, match="0 free columns of 64"):
            call()


@pytest.mark.parametrize("call, error, message", [
    (lambda: FilterBank(0, 10), ValueError, "0 columns are not in 1 to"),
    (lambda: FilterBank(-1, 10), ValueError, "^columns=-1: an integer from 0"),
    (lambda: FilterBank(2**64 - 1, 10), ValueError, "18446744073709551615 columns are not in 1 to"),
    (lambda: FilterBank(10**9, 10**9), MemoryError, "bytes failed"),
    (lambda: FilterBank(10**15, 10**15), MemoryError, "bytes failed"),
    (lambda: FilterBank(64, 10, 0), ValueError, "rate 0 is not between 0 and 1"),
    (lambda: FilterBank(64, 10, 0.1, false_columns=1), ValueError, "rate and false_columns exclude"),
    (lambda: FilterBank(65, 10, false_columns=128), ValueError, "false_columns=128: more than 0, and less than the 128"),
    (lambda: FilterBank(65, 10, false_columns=0), ValueError, "false_columns=0: more than 0"),
    (lambda: FilterBank(65, 10, false_columns=float("nan")), ValueError, "false_columns=NaN: more"),
    (lambda: FilterBank(64, 10, hasher="sha256"), ValueError, 'hasher="sha256": "murmur3"'),
    (lambda: FilterBank(64, 10, seed=1, secret=True), ValueError, "seed and secret exclude"),
    (lambda: FilterBank(64, 10).add(64, 1), ValueError, "column 64 is not below the bank's 64 columns"),
    (lambda: FilterBank(64, 10).add(-1, 1), ValueError, "^column=-1: an integer from 0"),
    (lambda: FilterBank(64, 10).add("a", 1), TypeError, "str"),
    (lambda: FilterBank(64, 10).add(1, {}), TypeError, "takes int"),
    (lambda: FilterBank(64, 10).add_many(64, [1]), ValueError, "column 64 is not below"),
    (lambda: FilterBank(64, 10).add_many(1, "abc"), TypeError, "str is one key"),
    (lambda: FilterBank(64, 10).add_many(1, [], threads=0), ValueError, "threads=0: from 1 to 1024"),
    (lambda: FilterBank(64, 10).which_many([], threads=1025), ValueError, "threads=1025: from 1 to 1024"),
    (lambda: FilterBank(64, 10).which_many(3), TypeError, "not iterable"),
    (lambda: FilterBank(64, 10).contains(64, 1), ValueError, "column 64 is not below"),
    (lambda: FilterBank(64, 10).to_filter(64), ValueError, "column 64 is not below"),
    (lambda: FilterBank(64, 10, hasher="prehashed").which("a"), TypeError, "takes hashes only"),
    (lambda: FilterBank(64, 10, key=3).which(1), TypeError, "not callable"),
    (lambda: hash(FilterBank(64, 10)), TypeError, "unhashable"),
    (lambda: 3 in FilterBank(64, 10), TypeError, "iterable"),
])
def test_errors_have_values_and_limits(call, error, message):
    with pytest.raises(error, match=message):
        answer = call()
        assert answer is None, answer


def test_a_bad_key_adds_none():
    bank = FilterBank(64, 10)
    with pytest.raises(TypeError, match="takes int"):
        bank.add_many(3, [1, 2, {}])
    assert len(bank) == 0 and not bank.which(1)


def test_wrong_columns_are_as_few_as_wanted():
    bank = FilterBank(1000, 500, false_columns=0.5)
    assert bank.columns == 1024 and bank.rate * 1024 <= 0.5
    for column in range(1024):
        bank.add_many(column, range(1000 * column, 1000 * column + 500))
    rows, _ = bank.which_many(range(10_000_000, 10_002_000))
    assert 0.2 * 2000 <= len(rows) <= 0.6 * 2000
    assert set(bank.which_many(range(1000, 1500))[0].tolist()) == set(range(500))


def test_keys_that_are_hashes():
    generator = random.Random(5)
    hashes = [generator.getrandbits(64) for _ in range(500)]
    bank = FilterBank(64, 500, 1e-6, hasher="prehashed")
    assert bank.add_many(3, hashes) == 500 and bank.hasher == "prehashed" and ", prehashed" in repr(bank)
    assert all(bank.which(hash) == [3] for hash in hashes)


def test_the_repr_has_the_figures():
    bank = FilterBank(65, 1000, 0.01, secret=True)
    bank.add(3, "x")
    text = repr(bank)
    assert text.startswith("<FilterBank of 128 columns for 1000 keys at ") and text.endswith(", secret>")
    assert f"1 in use, {bank.nbytes} bytes" in text


def test_hostile_bytes_are_a_value_error():
    bank = FilterBank(64, 10, 0.1)
    bank.add_many(7, range(10))
    good = bank.to_bytes()
    assert not is_refused(FilterBank.from_bytes, good) and is_refused(FilterBank.from_bytes, good + b"\0")
    assert all(is_refused(FilterBank.from_bytes, data) for data in damaged(good))
    for data in 3, "text", None:
        with pytest.raises(TypeError):
            FilterBank.from_bytes(data)
    with pytest.raises(ValueError):
        lanebloom._lanebloom._restore("FilterBank", b"junk", None, None, 8)


def test_a_file_of_the_rust_crate_is_read():
    path = ROOT / "tests/data/snapshot_v1_bank.bin"
    bank = FilterBank.load(path)
    assert bank.to_bytes() == path.read_bytes() and bank.columns == 64
    assert bank.which("in all") == [column for column in range(64) if column != 5]


def test_names_stay_with_the_columns(tmp_path):
    names = ["a.txt", "grün \"quoted\"\n\x1f", ""]
    bank = FilterBank(64, 10, names=names)
    assert bank.names == names and FilterBank(64, 10).names == []
    bank.save(tmp_path / "bank")
    made = [FilterBank.load(tmp_path / "bank"), FilterBank.from_bytes(bank.to_bytes()), bank.copy(),
            pickle.loads(pickle.dumps(bank))]
    for other in made:
        assert other.names == names and other == bank
    assert bank != FilterBank(64, 10) and bank != FilterBank(64, 10, names=names[::-1])
    with pytest.raises(ValueError, match="65 names are too many for 64 columns"):
        FilterBank(64, 10, names=["x"] * 65)
    assert FilterBank(64, 10, names=(name for name in names)) == bank
    for bad in ["abc", [3], 3]:
        with pytest.raises(TypeError):
            FilterBank(64, 10, names=bad)
    plain = FilterBank(64, 10).to_bytes()
    assert FilterBank.from_bytes(plain + b'["a"]').names == ["a"]
    for junk in b"\0", b"\n", b"[3]", b"{}", b'["a"', b"\xff", b"[" * 100_000, b'["a"] more', b'"ab"':
        with pytest.raises(ValueError, match="not the names of its columns"):
            FilterBank.from_bytes(plain + junk)
    with pytest.raises(ValueError, match="65 names are too many"):
        FilterBank.from_bytes(plain + b"[" + b'"",' * 64 + b'""]')


@needs_command
def test_the_command_and_python_read_each_other(tmp_path):
    texts = {f"{i}.txt": [f"key {i * j}" for j in range(1, 30)] for i in range(1, 70)}
    for name, keys in texts.items():
        (tmp_path / name).write_text("".join(f"{key}\n" for key in keys))
    command("build", "--bank", *texts, "-o", "built", cwd=tmp_path, check=True)
    bank = FilterBank.load(tmp_path / "built")
    assert bank.names == list(texts) and bank.columns == 128
    for column, keys in enumerate(texts.values()):
        assert all(column in bank.which(key) for key in keys)
    bank.save(tmp_path / "ours")
    assert (tmp_path / "built").read_bytes() == (tmp_path / "ours").read_bytes()
    mine = FilterBank(64, 100, 1e-6, names=["ann", "bob"])
    mine.add_many(1, ["key 3"])
    mine.save(tmp_path / "mine")
    answer = command("which", "mine", "-", cwd=tmp_path, text="key 3\nother\n")
    assert answer.stdout.decode() == "bob\tkey 3\n"


def test_errors_of_files_name_them(tmp_path):
    with pytest.raises(FileNotFoundError) as error:
        FilterBank.load(tmp_path / "missing")
    assert str(error.value.filename) == str(tmp_path / "missing")
    with pytest.raises(OSError):
        FilterBank(64, 1).save(tmp_path / "missing" / "below")
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError):
        FilterBank.load(tmp_path / "empty")


def test_the_interpreter_runs_on_while_keys_are_looked_up():
    numpy = pytest.importorskip("numpy")
    bank = FilterBank(1024, 2000, 1e-3)
    keys = numpy.arange(2_000_000)
    assert steps_beside(lambda: bank.which_many(keys)) > 10
