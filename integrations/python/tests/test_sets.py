"""The methods that the classes share with sets, and those of each class alone."""

import datetime
import time

import pytest

import lanebloom
from lanebloom import (
    Bitmap,
    BloomFilter,
    CuckooFilter,
    Filter,
    GuavaBloomFilter,
    ScalableBloomFilter,
    SparkBloomFilter,
    SplitBlockBloomFilter,
    WindowedBloomFilter,
)

MAKERS = [
    lambda: BloomFilter(1000, 1e-4),
    lambda: BloomFilter(1000, 1e-4, secret=b"s" * 16),
    lambda: BloomFilter(1000, 1e-4, hasher="fast"),
    lambda: ScalableBloomFilter(100, 1e-4),
    lambda: ScalableBloomFilter(100, 1e-4, secret=b"s" * 16),
    lambda: WindowedBloomFilter(1000, 1e-4),
    lambda: WindowedBloomFilter(1000, 1e-4, secret=b"s" * 16, window=3600),
    lambda: CuckooFilter(1000, 1e-4),
    lambda: CuckooFilter(1000, 1e-4, secret=b"s" * 16),
    lambda: Bitmap(1000),
    lambda: GuavaBloomFilter(1000, 1e-4),
    lambda: SparkBloomFilter(1000, 1e-4),
    lambda: SparkBloomFilter(1000, 1e-4, version=1),
    lambda: SplitBlockBloomFilter(1000, 1e-4),
]
UNITES = [make for make in MAKERS if not isinstance(make(), CuckooFilter)]
INTERSECTS = [make for make in MAKERS if isinstance(make(), (BloomFilter, Bitmap))]


def of(make, keys):
    f = make()
    f.update(keys)
    return f


def ident(make):
    return type(make()).__name__ + ("-secret" if make().secret else "")


@pytest.mark.parametrize("make", MAKERS, ids=ident)
def test_a_filter_has_its_keys_and_few_others(make):
    f = make()
    assert f.add(3) and 3 in f
    f.update(range(0, 500, 2))
    assert f.contains_many(range(0, 500, 2)).all()
    assert f.contains_many(range(1, 999, 2)).sum() <= 3
    assert isinstance(f, Filter) and f.nbytes > 100 and f.expected >= 100
    assert abs(f.approx_len - 252) <= 13
    assert 0 <= f.rate <= 1e-4 and 0 <= f.current_rate <= 1e-4


@pytest.mark.parametrize("make", MAKERS, ids=ident)
def test_a_copy_is_equal_and_apart(make):
    f = of(make, range(10))
    g = f.copy()
    assert type(g) is type(f) and f == g and not f != g
    g.add(77)
    assert f != g and 77 in g and 77 not in f
    assert f != 3 and (f == "x") is False


@pytest.mark.parametrize("make", UNITES, ids=ident)
def test_unions_have_the_keys_of_both(make):
    a, b = of(make, range(10)), of(make, range(5, 20))
    both = a | b
    assert type(both) is type(a) and both.contains_many(range(20)).all()
    assert 15 not in a
    same = a
    a |= b
    assert a is same and a.contains_many(range(20)).all()
    c = of(make, [30])
    c.update(b, [31])
    assert all(key in c for key in (5, 19, 30, 31))


@pytest.mark.parametrize("make", [
    lambda: BloomFilter(250),
    lambda: WindowedBloomFilter(250),
    lambda: GuavaBloomFilter(250, 0.01),
    lambda: SparkBloomFilter(250, 0.01),
    lambda: SplitBlockBloomFilter(250),
], ids=ident)
def test_a_union_keeps_the_rate_or_says_what_to_do(make):
    parts = [of(make, range(10_000 * i, 10_000 * i + 250)) for i in range(4)]
    total, before = parts[0].copy(), parts[0].copy()
    with pytest.raises(ValueError, match="union would have about .* keys and a rate of .*Make both .*expected="):
        for part in parts[1:]:
            total |= part
    for call in lambda: before | total | parts[3], lambda: before.update(*parts[1:]):
        with pytest.raises(ValueError, match="union would have"):
            call()
    assert total.current_rate < 0.03 and before.current_rate < 0.03
    # The same keys again, and a part of them, break no promise.
    for part in parts[0], of(make, range(100)):
        assert abs((parts[0] | part).approx_len - 250) <= 25
    # The advice of the error helps.
    expected = 4000 if isinstance(total, WindowedBloomFilter) else 1000
    large = type(total)(expected, 0.01)
    for i in range(4):
        large |= of(lambda: type(total)(expected, 0.01), range(10_000 * i, 10_000 * i + 250))
    assert large.current_rate < 0.013


def test_a_union_of_filters_that_grow_keeps_the_rate_or_says_what_to_do():
    total, united = ScalableBloomFilter(100), []
    with pytest.raises(ValueError, match="union would have about .* keys and a rate of .*Make both .*expected="):
        for i in range(100):
            united.append(range(10_000 * i, 10_000 * i + 250))
            total |= of(lambda: ScalableBloomFilter(100), united[-1])
    united.pop()
    assert len(united) >= 3 and all(total.contains_many(keys).all() for keys in united)
    assert total.current_rate < 0.013


def test_the_repr_reads_no_large_filter():
    large = BloomFilter(100_000_000)
    large.add(1)
    started = time.perf_counter()
    for _ in range(100):
        text = repr(large)
    assert time.perf_counter() - started < 0.1 and f"{large.nbytes} bytes" in text
    assert "about 1 keys" in repr(of(lambda: BloomFilter(1000), [1])) and "1 set" in repr(of(lambda: Bitmap(9), [1]))
    assert "set," not in repr(Bitmap(10**9))


@pytest.mark.parametrize("make", INTERSECTS, ids=ident)
def test_intersections_and_comparisons(make):
    a, b = of(make, range(10)), of(make, range(5, 20))
    both = a & b
    assert both.contains_many(range(5, 10)).all() and 1 not in both and 15 not in both
    assert 15 in b and 1 in a
    assert both.issubset(a) and both.issubset(b) and not a.issubset(b)
    assert a.isdisjoint(of(make, range(100, 103))) and not a.isdisjoint(b)
    assert make().isdisjoint(make()) and make().issubset(a)
    if isinstance(a, BloomFilter):
        assert abs(a.approx_intersection_len(b) - 5) <= 2


def test_filters_that_do_not_go_together():
    f = BloomFilter(1000)
    for other in [Bitmap(1000), BloomFilter(1000, secret=True), CuckooFilter(1000)]:
        for call in [lambda: f | other, lambda: f.update(other), lambda: f & other, lambda: f.issubset(other)]:
            with pytest.raises(TypeError, match="one class"):
                call()
        assert f != other
    for other, said in [(BloomFilter(9), "for 9 keys at a rate of 1.00e-02"), (BloomFilter(1000, seed=1), "seed")]:
        for call in [lambda: f | other, lambda: f.update(other), lambda: f & other, lambda: f.isdisjoint(other)]:
            with pytest.raises(ValueError, match=f"differ: one is for 1000 keys at a rate of .*same arguments.*") as error:
                call()
            assert "seed" not in said or "hash" in str(error.value)
        assert f != other
    for call in [lambda: f | {1}, lambda: f & [1], lambda: {1} | f]:
        with pytest.raises(TypeError, match="unsupported operand"):
            call()
    with pytest.raises(TypeError, match="set is not a filter"):
        f.issubset({1})
    with pytest.raises(TypeError, match="set is not a filter"):
        f |= {1}
    a, b = CuckooFilter(9), CuckooFilter(9)
    with pytest.raises(TypeError, match="two cuckoo filters have no union"):
        a | b


def test_filters_are_no_keys_of_dictionaries_and_have_no_len_that_lies():
    with pytest.raises(TypeError, match="unhashable"):
        hash(BloomFilter(1))
    with pytest.raises(TypeError, match="len"):
        len(BloomFilter(1))
    with pytest.raises(TypeError):
        Filter()
    with pytest.raises(TypeError):
        iter(BloomFilter(1))


@pytest.mark.parametrize("make", MAKERS, ids=ident)
def test_the_repr_has_the_figures(make):
    f = of(make, [5])
    text = repr(f)
    assert text.startswith(f"<{type(f).__name__} ") and f"{f.nbytes} bytes" in text
    assert ("secret" in text) == (f.secret is not None)
    assert b"sss" not in repr(f).encode()


BAD = [
    (lambda: BloomFilter(-1), ValueError, r"^expected=-1: an integer from 0 to 18446744073709551615"),
    (lambda: BloomFilter(2**64), ValueError, "^expected=18446744073709551616: an integer from 0 to"),
    (lambda: BloomFilter("9"), TypeError, "str"),
    (lambda: BloomFilter(1.5), TypeError, "float"),
    (lambda: BloomFilter(10**18), MemoryError, "bytes failed"),
    (lambda: BloomFilter(9, 0), ValueError, "rate 0 is not between 0 and 1"),
    (lambda: BloomFilter(9, 1), ValueError, "rate 1 is not between 0 and 1"),
    (lambda: BloomFilter(9, float("nan")), ValueError, "rate NaN is not"),
    (lambda: BloomFilter(9, 1e-300), ValueError, "1e-300 .*limit of 256 bits"),
    (lambda: BloomFilter(9, seed=-1), ValueError, "^seed=-1: an integer from 0 to 4294967295"),
    (lambda: BloomFilter(9, seed=2**32), ValueError, "^seed=4294967296: an integer from 0 to 4294967295"),
    (lambda: BloomFilter(9, secret=b"ab"), ValueError, "a secret of 2 bytes: it has 16"),
    (lambda: BloomFilter(9, secret="a" * 16), TypeError, "a secret is bytes"),
    (lambda: BloomFilter(9).add_many([], threads=0), ValueError, "threads=0: from 1 to 1024"),
    (lambda: BloomFilter(9).add_many([], threads=10**9), ValueError, "threads=1000000000: from 1 to 1024"),
    (lambda: BloomFilter(9, key=3).add(1), TypeError, "not callable"),
    (lambda: WindowedBloomFilter(9, window=-1), ValueError, "window=-1: more than 0"),
    (lambda: WindowedBloomFilter(9, window=1e300), ValueError, r"window=1e\+300: more than 0, and at most 4611686018 seconds"),
    (lambda: WindowedBloomFilter(9, window=float("nan")), ValueError, "window=nan"),
    (lambda: WindowedBloomFilter(9, window=datetime.timedelta(-1)), ValueError, "window=-1 day, 0:00:00: more"),
    (lambda: WindowedBloomFilter(9, window=0), ValueError, "0ns is not in"),
    (lambda: WindowedBloomFilter(9, generations=1), ValueError, "1 generations is not in 2 to 64"),
    (lambda: ScalableBloomFilter(9, max_bytes=1), ValueError, "1"),
    (lambda: Bitmap(2**63), MemoryError, "bytes failed"),
    (lambda: GuavaBloomFilter(9, int_bytes=2), ValueError, "int_bytes=2: 4 or 8"),
    (lambda: SparkBloomFilter(9, version=3), ValueError, "version=3: 1 or 2"),
    (lambda: SparkBloomFilter(9, version=1, seed=7), ValueError, "a V1 filter has no seed, and cannot have 7"),
    (lambda: SparkBloomFilter(0), ValueError, "at least 1"),
    (lambda: SparkBloomFilter(9, seed=2**31), ValueError, "2147483648: an integer from -2147483648 to 2147483647"),
    (lambda: SparkBloomFilter(9) | SparkBloomFilter(9, seed=1), ValueError, "the filters differ"),
    (lambda: SparkBloomFilter(9) | SparkBloomFilter(9, version=1), ValueError, "the filters differ"),
    (lambda: CuckooFilter(9, 0), ValueError, "rate 0 is not"),
    (lambda: SplitBlockBloomFilter(10**12), ValueError, "134217728 bytes, which keep a rate of 0.01 for .* not for 10{12}"),
    (lambda: SplitBlockBloomFilter(9, 1), ValueError, "rate 1 is not between 0 and 1"),
]


@pytest.mark.parametrize("call, error, message", BAD)
def test_errors_have_values_and_limits(call, error, message):
    with pytest.raises(error, match=message):
        f = call()
        assert f is None, f


def test_a_full_cuckoo_filter_and_a_limit_of_memory():
    f = CuckooFilter(10)
    with pytest.raises(ValueError, match="12 times, the limit"):
        f.update(["same"] * 1000)
    assert f.count("same") == 12
    with pytest.raises(ValueError, match="full"):
        f.update(range(1000))
    small = ScalableBloomFilter(10, max_bytes=4096)
    with pytest.raises(ValueError, match="4096"):
        small.update(range(1_000_000))
    assert 0 in small and small.nbytes <= 4096


def test_cuckoo_filters_count_and_remove():
    f = CuckooFilter(1000)
    f.update(["a", "a", "b"])
    assert (f.count("a"), f.count("b"), f.count("c"), len(f)) == (2, 1, 0, 3)
    f.remove("a")
    assert (f.count("a"), len(f)) == (1, 2)
    assert f.discard("a") and not f.discard("a")
    for key in "a", None, (), (1, 2):
        with pytest.raises(KeyError) as raised:
            f.remove(key)
        assert raised.value.args == (key,)
    with pytest.raises(TypeError, match="key="):
        f.remove([])
    mapped = CuckooFilter(10, key=len)
    mapped.add([1, 2])
    assert mapped.count("ab") == 1 and mapped.discard("cd") and len(mapped) == 0


def test_bitmaps_are_exact_sets():
    ids = Bitmap(2**33)
    keys = [0, 7, 2**32, 2**33 - 1]
    ids.update(keys)
    assert list(ids) == keys and len(ids) == 4
    ids.remove(7)
    assert not ids.discard(7) and list(ids) == [0, 2**32, 2**33 - 1]
    with pytest.raises(KeyError, match="7"):
        ids.remove(7)
    iterator = iter(ids)
    assert iter(iterator) is iterator and next(iterator) == 0
    # A bitmap can change while it is read.
    ids.add(5)
    assert next(iterator) == 5


def test_windows_forget():
    f = WindowedBloomFilter(100, window=datetime.timedelta(milliseconds=300))
    assert f.add("job") and not f.add("job")
    time.sleep(0.6)
    assert "job" not in f and f.add("job")
    full = WindowedBloomFilter(100, 1e-6)
    full.update(range(10_000))
    assert full.contains_many(range(9_900, 10_000)).all() and 0 not in full
    turned = WindowedBloomFilter(100, generations=3, window=100.5)
    turned.add(1)
    turned.rotate()
    assert 1 in turned
    turned.rotate()
    turned.rotate()
    assert 1 not in turned


def test_all_names_are_there():
    assert sorted(lanebloom.__all__) == lanebloom.__all__
    for name in lanebloom.__all__:
        assert hasattr(lanebloom, name)
    assert lanebloom.__version__.count(".") == 2
