"""StaticFilter: made of all keys at once."""

import array
import random

import pytest

from common import ROOT, SECRET, command, copies, damaged, is_refused, needs_command, options
from lanebloom import BloomFilter, Filter, StaticFilter

MAKERS = [
    lambda keys: StaticFilter(keys, 1e-4),
    lambda keys: StaticFilter(keys, 1e-4, secret=SECRET),
    lambda keys: StaticFilter(keys, bits=16, hasher="fast"),
    lambda keys: StaticFilter(keys, 1e-4, seed=7),
    lambda keys: StaticFilter(keys, 1e-4, key=lambda key: key),
]


@pytest.mark.parametrize("make", MAKERS)
def test_a_filter_has_its_keys_and_few_others(make):
    f = make(range(0, 2000, 2))
    assert isinstance(f, Filter) and type(f) is StaticFilter
    assert all(f.contains_many(range(0, 2000, 2))) and all(key in f for key in range(0, 2000, 20))
    assert sum(f.contains_many(range(1, 20_001, 2))) <= 8
    assert len(f) == f.expected == f.approx_len == 1000
    assert 0 < f.rate == f.current_rate <= 1e-4
    assert f.nbytes > 1000 and f.bits_per_key == 8 * f.nbytes / 1000
    text = repr(f)
    assert text.startswith("<StaticFilter of 1000 at ") and f"{f.nbytes} bytes" in text
    assert ("secret" in text) == (f.secret is not None)


def test_keys_come_in_any_form():
    numbers = list(range(3000))
    expected = StaticFilter(numbers)
    forms = [tuple(numbers), iter(numbers), range(3000), set(numbers), dict.fromkeys(numbers), array.array("q", numbers),
             numbers[::-1], numbers + numbers[:100]]
    for form in forms:
        f = StaticFilter(form)
        assert f == expected and len(f) == 3000
    mixed = [1, "a", None, 2.5, ("x", 1), b"raw", "gr\u00fcn"]
    f = StaticFilter(mixed, bits=32)
    assert len(f) == 7 and all(key in f for key in mixed) and "a".encode() in f and 1.0 in f and "b" not in f
    assert sum(f.contains_many([*mixed, "b", 3])) == 7
    by_len = StaticFilter([[2] * 5], key=len, bits=32)
    assert [1] * 5 in by_len and [1] * 4 not in by_len and list(by_len.contains_many(["abcde", "a"])) == [True, False]


def test_arrays_are_the_keys_of_their_objects():
    numpy = pytest.importorskip("numpy")
    numbers = numpy.arange(5000) * 7 - 900
    names = [f"key {i}" for i in range(5000)]
    for values in numbers, numbers.astype("i4"), numbers.astype("f8"), numbers[::-1], numbers.astype(object):
        assert StaticFilter(values) == StaticFilter(numbers.tolist())
    assert StaticFilter(numpy.array(names)) == StaticFilter(names)
    assert StaticFilter(numpy.ma.masked_array([1, 2], [True, False])) == StaticFilter([None, 2])
    found = StaticFilter(numbers, 1e-6).contains_many(numpy.concatenate([numbers, numbers + 1]))
    assert found.dtype == bool and found[:5000].all() and found[5000:].sum() <= 1
    pa = pytest.importorskip("pyarrow")
    for values in pa.array(names), pa.chunked_array([names[:10], names[10:]]), pa.array(names).dictionary_encode():
        f = StaticFilter(values)
        assert f == StaticFilter(names) and all(f.contains_many(values))
    answers = pa.array(StaticFilter(names, 1e-6).contains_many(["key 3", "other"], as_arrow=True))
    assert answers.to_pylist() == [True, False]
    pandas = pytest.importorskip("pandas")
    assert StaticFilter(pandas.Series(names)) == StaticFilter(names)


def test_threads_build_the_same_filter():
    numpy = pytest.importorskip("numpy")
    keys = numpy.arange(2_500_000)
    one, two = StaticFilter(keys, bits=8), StaticFilter(keys, bits=8, threads=2)
    assert one.to_bytes() == two.to_bytes() and two.contains_many(keys, threads=2).all()
    assert one.bits_per_key < 9.1
    shuffled = keys.copy()
    numpy.random.default_rng(3).shuffle(shuffled)
    assert StaticFilter(shuffled, bits=8, threads=3) == one


@pytest.mark.parametrize("bits", [7, 8, 11, 16, 31])
def test_rates_are_those_of_the_bits(bits):
    f = StaticFilter(range(10_000), bits=bits)
    assert f.bits == bits and f.rate == pytest.approx(2.0**-bits, rel=0.05)
    wrong = sum(f.contains_many(range(10_000, 210_000)))
    expected = 200_000 * f.rate
    assert abs(wrong - expected) <= 6 * (expected**0.5 + 1)
    assert StaticFilter(range(10_000), 2.0**-bits).bits == bits


def test_filters_of_no_keys_and_of_one():
    for empty in StaticFilter([]), StaticFilter(()), StaticFilter([], bits=32):
        assert len(empty) == 0 and 3 not in empty and sum(empty.contains_many(range(1000))) == 0
        assert Filter.from_bytes(empty.to_bytes()) == empty and "of 0 at" in repr(empty)
    assert len(StaticFilter([3, 3, 3])) == 1 and 3 in StaticFilter([3])


@pytest.mark.parametrize("make", MAKERS[:4])
def test_bytes_files_pickles_and_copies_come_back(make, tmp_path):
    f = make([f"key {i}" for i in range(500)])
    path = tmp_path / "filter"
    for g in copies(f, path, [Filter, StaticFilter]):
        assert type(g) is StaticFilter and g == f and g.hasher == f.hasher and g.secret == f.secret
        assert "key 499" in g and "other" not in g and len(g) == 500
    assert f != make(["key 1"]) and f != 3 and f != BloomFilter(500)
    with pytest.raises(ValueError, match="a StaticFilter, not a BloomFilter"):
        BloomFilter.from_bytes(f.to_bytes(), **options(f))
    with pytest.raises(ValueError, match="100"):
        StaticFilter.load(path, max_bytes=100, **options(f))
    if f.secret:
        with pytest.raises(ValueError, match="pass it as secret="):
            Filter.load(path)


def test_nothing_is_added():
    f = StaticFilter(["a"])
    adds = [lambda: f.add("b"), lambda: f.add("a"), lambda: f.update(["b"]), lambda: f.add_many(["b"]),
            lambda: f.add_new(["a"]), lambda: f.add_many(array.array("q", range(100)))]
    for call in adds:
        with pytest.raises(TypeError, match="takes no keys: make a new one of all keys"):
            call()
    for call in [lambda: f & f, lambda: f.issubset(f)]:
        with pytest.raises(TypeError, match="this class may not have it"):
            call()
    with pytest.raises(TypeError, match="unhashable"):
        hash(f)
    assert len(f) == 1 and "b" not in f


@pytest.mark.parametrize("call, error, message", [
    (lambda: StaticFilter([1], 0), ValueError, "rate 0 is not between 0 and 1"),
    (lambda: StaticFilter([1], float("nan")), ValueError, "rate NaN is not"),
    (lambda: StaticFilter([1], 1e-12), ValueError, "1e-12 takes fingerprints of more than 32 bits"),
    (lambda: StaticFilter([1], bits=6), ValueError, "6 bits of a fingerprint is not in 7 to 32"),
    (lambda: StaticFilter([1], bits=33), ValueError, "33 bits of a fingerprint is not in 7 to 32"),
    (lambda: StaticFilter([1], bits=-1), ValueError, "^-1: an integer from 0"),
    (lambda: StaticFilter([1], 0.1, bits=8), ValueError, "both a rate and the bits"),
    (lambda: StaticFilter([1], threads=0), ValueError, "threads=0: from 1 to 1024"),
    (lambda: StaticFilter("abc"), TypeError, "str is one key"),
    (lambda: StaticFilter(3), TypeError, "not iterable"),
    (lambda: StaticFilter(BloomFilter(9)), TypeError, "not iterable"),
    (lambda: StaticFilter([1, {}]), TypeError, "takes int"),
    (lambda: StaticFilter([1], key=3), TypeError, "not callable"),
    (lambda: StaticFilter([1], hasher="sha256"), ValueError, 'hasher="sha256": "murmur3"'),
    (lambda: StaticFilter([1], hasher="fast", secret=True), ValueError, "exclude each other"),
    (lambda: StaticFilter(["a"], hasher="prehashed"), TypeError, "takes hashes only"),
    (lambda: StaticFilter(array.array("q", range(3_000_000)), hasher="prehashed"), ValueError, "not random.*upper 32 bits"),
])
def test_errors_have_values_and_limits(call, error, message):
    with pytest.raises(error, match=message):
        f = call()
        assert f is None, f


def test_keys_that_are_hashes():
    generator = random.Random(5)
    hashes = [generator.getrandbits(64) for _ in range(5000)]
    f = StaticFilter(hashes, bits=16, hasher="prehashed")
    assert f.hasher == "prehashed" and ", prehashed" in repr(f) and all(f.contains_many(hashes))
    assert Filter.from_bytes(f.to_bytes()) == f and hashes[7] - (hashes[7] >> 63 << 64) in f
    with pytest.raises(TypeError, match="hashes only"):
        "a" in f


def test_hostile_bytes_are_a_value_error():
    good = StaticFilter(range(200), bits=9).to_bytes()
    assert not is_refused(StaticFilter.from_bytes, good) and is_refused(StaticFilter.from_bytes, good + b"\0")
    assert all(is_refused(StaticFilter.from_bytes, data) for data in damaged(good, len(good)))


def test_a_file_of_the_rust_crate_is_read():
    path = ROOT / "tests/data/snapshot_v1_static.bin"
    f = Filter.load(path)
    assert type(f) is StaticFilter and f.bits == 11 and f.to_bytes() == path.read_bytes()


@needs_command
def test_the_command_and_python_make_the_same_file(tmp_path):
    keys = [f"https://example.org/{i}" for i in range(3000)]
    (tmp_path / "keys").write_text("".join(f"{key}\n" for key in keys))
    command("build", "--static", "--rate", "0.001", "keys", "-o", "built", cwd=tmp_path, check=True)
    ours = StaticFilter(keys, 0.001)
    ours.save(tmp_path / "ours")
    assert StaticFilter.load(tmp_path / "built") == ours
    assert (tmp_path / "built").read_bytes() == (tmp_path / "ours").read_bytes()
    command("query", "ours", "keys", cwd=tmp_path, check=True)
