"""The objects that are keys, and those of them that are one key."""

import datetime
import decimal
import gc
import hashlib
import ipaddress
import subprocess
import sys
import uuid
import weakref

import pytest

from lanebloom import (
    Bitmap,
    BloomFilter,
    CuckooFilter,
    FilterBank,
    GuavaBloomFilter,
    ScalableBloomFilter,
    SparkBloomFilter,
    SplitBlockBloomFilter,
    StaticFilter,
    WindowedBloomFilter,
    key_bytes,
)

UTC = datetime.timezone.utc


def word(value):
    return (value % 2**64).to_bytes(8, "little")


# A key, and its bytes: those of the funnels of the Rust crate.
BYTES = [
    (0, word(0)),
    (-1, word(-1)),
    (2**63 - 1, word(2**63 - 1)),
    (2**64 - 1, word(-1)),
    (2**64, (2**64).to_bytes(16, "little")),
    (-(2**63) - 1, (-(2**63) - 1).to_bytes(16, "little", signed=True)),
    (2**200, (2**200).to_bytes(26, "little")),
    (True, word(1)),
    (1.0, word(1)),
    (-0.0, word(0)),
    (-3.0, word(-3)),
    (2.0**63, word(2**63)),
    (2.0**64, (2**64).to_bytes(16, "little")),
    (-(2.0**63), word(-(2**63))),
    (-(2.0**64), (-(2**64)).to_bytes(16, "little", signed=True)),
    (2.0**127, (2**127).to_bytes(17, "little", signed=True)),
    (float("nan"), b"\0"),
    (-float("nan"), b"\0"),
    (0.5, bytes.fromhex("000000000000e03f")),
    (float("inf"), bytes.fromhex("000000000000f07f")),
    ("", b""),
    ("é", b"\xc3\xa9"),
    ("\0", b"\0"),
    (b"\xff\x00", b"\xff\x00"),
    (bytearray(b"ab"), b"ab"),
    (memoryview(b"ab"), b"ab"),
    (None, b"\0"),
    ((), b""),
    ((1,), word(1)),
    (("ab", "c"), word(2) + b"abc"),
    (("a", "bc"), word(1) + b"abc"),
    ((1, None, 2.0), word(1) + word(2) + b"\2\xffnulls\xff\xff"),
    (decimal.Decimal("2.50"), bytes.fromhex("0000000000000440")),
    (decimal.Decimal("0.10"), (1).to_bytes(16, "little") + word(1)),
    ((("a", "b"), 3), word(10) + word(1) + b"ab" + word(3)),
    (uuid.UUID(int=258), bytes(14) + b"\1\2"),
    (ipaddress.ip_address("10.0.0.1"), b"\x0a\0\0\1"),
    (ipaddress.ip_address("::1"), bytes(15) + b"\1"),
    (datetime.datetime(1970, 1, 1, 0, 0, 2, 3), word(2) + (3000).to_bytes(4, "little")),
    (datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999), word(-1) + (999_999_000).to_bytes(4, "little")),
    (datetime.date(1970, 1, 2), word(86_400) + bytes(4)),
]


@pytest.mark.parametrize("key, content", BYTES, ids=lambda value: repr(value)[:40])
def test_a_key_has_the_bytes_of_the_table(key, content):
    assert key_bytes(key) == content
    f = BloomFilter(100)
    assert f.add(key) and key in f and not f.add(key)
    # Bytes are a key too, and of one content all ways lead to one key.
    assert content in f
    assert f.contains_many([key, content]).tolist() == [True, True]
    assert len({f.add_many((key,)), f.add_many([content]), f.add_many(iter([key]))}) == 1


def test_a_large_float_is_the_key_of_its_integer():
    for i in range(60, 1024):
        for value in 2.0**i, -(2.0**i), 1.3 * 2.0**i, -1.9 * 2.0**i, 2.0**i * (1 - 2.0**-53):
            assert key_bytes(value) == key_bytes(int(value)), value
            assert key_bytes((value, "a")) == key_bytes((int(value), "a")), value


def test_times_count_by_the_moment():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    assert key_bytes(datetime.datetime(2024, 5, 1, 14, tzinfo=zone)) == key_bytes(datetime.datetime(2024, 5, 1, 12))
    assert key_bytes(datetime.datetime(2024, 5, 1, tzinfo=UTC)) == key_bytes(datetime.date(2024, 5, 1))


def test_subclasses_count_as_their_base():
    class Id(int):
        pass

    class Name(str):
        pass

    assert key_bytes(Id(7)) == key_bytes(7)
    assert key_bytes(Name("ann")) == b"ann"


def test_scalars_of_numpy_count_as_items_of_arrays():
    numpy = pytest.importorskip("numpy")
    for scalar, key in [
        (numpy.int8(-3), -3),
        (numpy.uint64(2**64 - 1), 2**64 - 1),
        (numpy.float32(1.5), 1.5),
        (numpy.float16(2), 2),
        (numpy.bool_(True), 1),
        (numpy.str_("ann"), "ann"),
        (numpy.bytes_(b"ann"), b"ann"),
        (numpy.array(17), 17),
        (numpy.datetime64("2024-05-01T12:00:00.000000001"), None),
    ]:
        f = BloomFilter(10)
        assert f.add(scalar)
        assert f.contains_many(numpy.array([scalar])).tolist() == [True]
        if key is not None:
            assert key_bytes(scalar) == key_bytes(key)
    assert key_bytes(numpy.datetime64("1970-01-01T00:00:01.5")) == word(1) + (500_000_000).to_bytes(4, "little")
    assert key_bytes(numpy.datetime64("NaT")) == b"\0"
    # 1 in an array of floats is 1 in an array of integers.
    f = BloomFilter(10)
    f.add_many(numpy.array([1.0]))
    assert f.contains_many(numpy.array([1], "i2")).all() and 1 in f


@pytest.mark.parametrize("key", [[], {}, set(), object(), 1j, range(3), datetime.time(1), int], ids=repr)
def test_another_object_is_a_type_error_that_says_what_to_do(key):
    f = BloomFilter(10)
    for call in [f.add, f.__contains__, lambda key: f.add_many([key]), lambda key: f.add((1, key))]:
        with pytest.raises(TypeError, match="takes int, str.*key="):
            call(key)


def test_a_string_without_utf8_is_a_value_error():
    f = BloomFilter(10)
    for call in [f.add, f.__contains__, lambda key: f.update([key])]:
        with pytest.raises(ValueError, match="surrogates"):
            call("\ud800")
    numpy = pytest.importorskip("numpy")
    with pytest.raises(ValueError, match="string 1 of the array has the code point 0xd800: surrogates"):
        f.add_many(numpy.array(["a", "b\ud800"]))


def test_tuples_in_tuples_have_a_limit():
    key = ()
    for _ in range(32):
        key = (key, 0)
    with pytest.raises(ValueError, match="32 deep"):
        key_bytes((key, 0))


def test_a_function_makes_the_key_everywhere():
    f = BloomFilter(100, key=lambda user: user["id"])
    assert f.add({"id": 1}) and {"id": 1, "name": "ann"} in f
    assert f.add_new([{"id": 2}, {"id": 1}]).tolist() == [True, False]
    assert f.contains_many(user for user in [{"id": 2}, {"id": 3}]).tolist() == [True, False]
    with pytest.raises(KeyError):
        f.add({})
    assert 1 in f.copy().__class__.from_bytes(f.to_bytes())


@pytest.mark.parametrize("make", [BloomFilter, CuckooFilter, SparkBloomFilter, lambda n, key: FilterBank(64, n, key=key), lambda n, key: BloomFilter(n, key=key).copy()])
def test_a_function_that_refers_to_its_filter_is_collected_with_it(make):
    class Owner:
        def __init__(self):
            self.seen = make(10, key=self.key)

        def key(self, value):
            return value

    owner = weakref.ref(Owner())
    gc.collect()
    assert owner() is None


def test_a_function_that_hashes_is_a_key_function():
    """The hash functions that users of rbloom have: 128 bits with a sign, or Python's own."""

    def hash_of(value):
        return int.from_bytes(hashlib.sha256(repr(value).encode()).digest()[:16], "big", signed=True)

    for function in hash_of, hash, lambda value: 64 * hash(value):
        f = BloomFilter(4000, 1e-6, key=function)
        f.update(frozenset([i]) for i in range(2000))
        assert all(frozenset([i]) in f for i in range(2000))
        # Integers that follow one another do not meet in one part of the filter.
        assert f.contains_many([frozenset([i]) for i in range(2000, 4000)]).sum() <= 1
    assert BloomFilter(9, key=hash_of).add({}) and frozenset([3]) in BloomFilter.from_bytes(f.to_bytes(), key=function)
    with pytest.raises(TypeError, match="hash"):
        BloomFilter(9, hash=hash)


def test_an_error_in_the_function_leaves_the_keys_before_it():
    f = BloomFilter(100, key=lambda value: 1 // value)
    with pytest.raises(ZeroDivisionError):
        f.update([1, 0])
    assert 1 in f


def test_two_processes_agree():
    program = "from lanebloom import *; import sys; f = BloomFilter(9); f.update(['ann', 3]); sys.stdout.write(f.to_bytes().hex())"
    here = BloomFilter(9)
    here.update(["ann", 3])
    for seed in "1", "2":
        run = subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, stdout=subprocess.PIPE)
        assert bytes.fromhex(run.stdout.decode()) == here.to_bytes()


def test_a_seed_and_a_secret_give_other_bits():
    def bits(**options):
        f = BloomFilter(100, **options)
        f.update(range(50))
        return f.to_bytes()

    assert bits() == bits()
    assert bits(seed=1) != bits() and bits(seed=1) == bits(seed=1)
    assert bits(secret=b"0" * 16) == bits(secret=b"0" * 16) != bits(secret=b"1" * 16)
    assert bits(secret=True) != bits(secret=True)
    with pytest.raises(ValueError, match="exclude"):
        BloomFilter(1, seed=1, secret=True)


def test_guava_and_parquet_have_their_own_numbers():
    for make in GuavaBloomFilter, SplitBlockBloomFilter:
        f = make(100)
        f.update([1, 0.5])
        assert 1 in f and 0.5 in f and 1.0 not in f
        # A double's bits are an integer's bytes there.
        assert 0x3FE0000000000000 in f
        small = make(100, int_bytes=4)
        small.add(1)
        assert b"\1\0\0\0" in small and 1 in small and b"\1" + bytes(7) not in small
        with pytest.raises(TypeError, match="units"):
            f.add(datetime.date(2024, 1, 1))


def test_sparks_filter_has_the_keys_of_spark():
    f = SparkBloomFilter(100, 1e-6)
    f.update([1, -1, "grün", b"\xff", bytearray(b"ab")])
    assert all(key in f for key in [1, -1, True, "grün", "grün".encode(), b"\xff", "ab", memoryview(b"ab")])
    # An integer is a long, whose hash is that of its bytes.
    assert (1).to_bytes(8, "little") in f and (1).to_bytes(4, "little") not in f and "1" not in f
    assert 2**64 - 1 in f
    assert not f.add(None) and None not in f
    for bad in (0.5, 1.0, float("nan"), (1, 2), datetime.date(2024, 1, 1), datetime.datetime.now(), uuid.UUID(int=1),
                ipaddress.ip_address("::1"), object(), [1]):
        for call in f.add, f.__contains__, lambda bad: f.update([bad]), lambda bad: f.contains_many(iter([bad])):
            with pytest.raises(TypeError, match="integers, strings and bytes only.*xxhash64"):
                call(bad)
    for bad in 2**64, -(2**63) - 1:
        with pytest.raises(ValueError, match=f"^{bad}: "):
            f.add(bad)
    assert f.approx_len == 5


def test_an_error_names_the_argument():
    f, bank = BloomFilter(9), FilterBank(64, 9)
    for call, name in [
        (lambda value: BloomFilter(value), "expected"),
        (lambda value: BloomFilter(9, seed=value), "seed"),
        (lambda value: ScalableBloomFilter(value), "expected"),
        (lambda value: WindowedBloomFilter(value), "expected"),
        (lambda value: WindowedBloomFilter(9, generations=value), "generations"),
        (lambda value: CuckooFilter(value), "expected"),
        (lambda value: StaticFilter([1], threads=value), "threads"),
        (lambda value: Bitmap(value), "bound"),
        (lambda value: GuavaBloomFilter(value), "expected"),
        (lambda value: SparkBloomFilter(value), "expected"),
        (lambda value: SplitBlockBloomFilter(value), "expected"),
        (lambda value: FilterBank(value, 9), "columns"),
        (lambda value: FilterBank(9, value), "expected"),
        (lambda value: bank.add(value, 1), "column"),
        (lambda value: bank.which_many([1], threads=value), "threads"),
        (lambda value: f.add_many([1], threads=value), "threads"),
        (lambda value: f.add_new([1], threads=value), "threads"),
        (lambda value: f.contains_many([1], threads=value), "threads"),
    ]:
        with pytest.raises(ValueError, match=f"^{name}=-1: an integer from 0 to "):
            call(-1)
        with pytest.raises(TypeError, match=f"^{name}=1000000.0: an integer, not a value of type float"):
            call(1e6)


def test_filters_without_a_union_say_what_to_do():
    c = CuckooFilter(9)
    for call in c.__or__, c.__ior__, c.update:
        with pytest.raises(TypeError, match="two cuckoo filters have no union: add the keys of both to one filter"):
            call(CuckooFilter(9))
    s = StaticFilter([1])
    for call in s.__or__, s.__ior__, s.update:
        with pytest.raises(TypeError, match="two static filters have no union: make a new one"):
            call(s)
