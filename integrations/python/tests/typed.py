"""The types that mypy and pyright check: ci/python.sh runs both on this file, and pytest runs it."""

from __future__ import annotations

import datetime
import pickle
from typing import TYPE_CHECKING, Optional

from lanebloom import (
    ArrowAnswers,
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
    key_bytes,
)

if TYPE_CHECKING:
    from typing_extensions import assert_type
else:

    def assert_type(value: object, kind: object) -> None: ...


f = BloomFilter(1000, 0.001, secret=True)
assert_type(f.add("a"), bool)
assert_type("a" in f, bool)
f.update(["a"], range(3), BloomFilter(1000, 0.001, secret=f.secret or False))
BloomFilter(1000, seed=3, secret=False)
BloomFilter(1000, seed=3, hasher="fast")
assert_type(CuckooFilter(1000, hasher="prehashed", key=hash), CuckooFilter)
assert_type(f.hasher, "str | None")
assert_type(f.add_many([1, 2], threads=2), int)
assert_type(f | f, BloomFilter)
f |= f
assert_type(f & f, BloomFilter)
assert_type(f.copy(), BloomFilter)
assert_type(f.secret, "bytes | None")
assert_type(BloomFilter.from_bytes(f.to_bytes(), secret=f.secret), BloomFilter)
assert_type(Filter.from_bytes(bytearray(f.to_bytes()), secret=f.secret), Filter)
assert_type(pickle.loads(pickle.dumps(f)) == f, bool) if not TYPE_CHECKING else None
assert bool(f.contains_many([1, 7777]).sum() == 1)
assert (f.add_new([55]) == [True]).all()
assert_type(f.add_new([56], as_arrow=True), ArrowAnswers)
assert list(f.contains_many([56, 7777], as_arrow=True)) == [True, False]
w = WindowedBloomFilter(10, window=datetime.timedelta(minutes=1))
w.rotate()
WindowedBloomFilter(10, window=1.5)
c = CuckooFilter(10, key=lambda pair: pair[0])
c.add((1, 2))
assert_type(c.count((1, 3)), int)
assert len(c) == 1
b = Bitmap(10)
b.update([3])
assert list(b) == [3]
for position in b:
    assert_type(position, int)
g = GuavaBloomFilter(10, int_bytes=4)
assert_type(GuavaBloomFilter.from_bytes(g.to_bytes(), int_bytes=4), GuavaBloomFilter)
k = SparkBloomFilter(10, version=1)
assert_type(SparkBloomFilter.from_bytes(k.to_bytes()), SparkBloomFilter)
assert_type(k.seed, int)
assert_type(k | k, SparkBloomFilter)
s = SplitBlockBloomFilter(10)
assert_type(SplitBlockBloomFilter.from_bytes(s.to_bytes()), SplitBlockBloomFilter)
assert_type(SplitBlockBloomFilter.from_bits(bytes(32)), SplitBlockBloomFilter)
if TYPE_CHECKING:
    assert_type(SplitBlockBloomFilter.from_parquet("events.parquet", "id", 0), Optional[SplitBlockBloomFilter])
    assert_type(SplitBlockBloomFilter.row_groups("events.parquet", "id", [17]), list[int])
t = StaticFilter(["a", "b"], 0.001, threads=2, secret=True)
assert_type(StaticFilter.from_bytes(t.to_bytes(), secret=t.secret), StaticFilter)
assert_type(StaticFilter([1], bits=8, hasher="fast", seed=1).bits, int)
assert_type(StaticFilter([5 << 60], hasher="prehashed").bits_per_key, float)
assert ("a" in t, len(t)) == (True, 2)
m = FilterBank(64, 100, false_columns=0.1, hasher="fast", seed=1)
assert_type(m.add(3, "a"), bool)
assert_type(m.add_many(3, [1, 2], threads=2), int)
assert_type(m.push(m.to_filter(3)), int)
assert_type(m.push_all([m.to_filter(9), BloomFilter(100, m.rate, hasher="fast", seed=1)][:1]), "list[int]")
assert_type(m.which("a"), "list[int]")
rows, columns = m.which_many(["a", 7777])
assert rows.tolist() == [0, 0] and columns.tolist() == [0, 3]
assert_type(m.copy() == m, bool)
assert_type(FilterBank.from_bytes(m.to_bytes()), FilterBank)
assert_type(ScalableBloomFilter().current_rate, float)
assert_type(key_bytes(("a", 1)), bytes)

if TYPE_CHECKING:
    # Mistakes that a checker must see: an ignore that is not needed is an error.
    BloomFilter("1000")  # type: ignore[call-overload]
    f.add_many(3)  # type: ignore[arg-type]
    f |= {1}  # type: ignore[arg-type]
    f.remove(3)  # type: ignore[attr-defined]
    c | c  # type: ignore[operator]
    c.update(c)  # type: ignore[arg-type]
    t.add(3)  # type: ignore[arg-type]
    m.push(c)  # type: ignore[arg-type]
    m.add("a", 3)  # type: ignore[arg-type]
    3 in m  # type: ignore[operator]
    FilterBank(9, 9, hasher="prehashed", seed=1)  # type: ignore[call-overload]
    t | t  # type: ignore[operator]
    StaticFilter([1], seed=1, secret=True)  # type: ignore[call-overload]
    w & w  # type: ignore[operator]
    w.issubset(w)  # type: ignore[attr-defined]
    f | c  # type: ignore[operator]
    f.update(c)  # type: ignore[arg-type]
    f.issubset(b)  # type: ignore[arg-type]
    Filter()  # type: ignore[call-arg]
    GuavaBloomFilter(9, int_bytes=2)  # type: ignore[arg-type]
    SparkBloomFilter(9, version=3)  # type: ignore[arg-type]
    BloomFilter(9, seed=1, secret=True)  # type: ignore[call-overload]
    BloomFilter(9, hasher="sha256")  # type: ignore[call-overload]
    BloomFilter(9, hasher="fast", secret=True)  # type: ignore[call-overload]
    BloomFilter(9, hasher="prehashed", seed=1)  # type: ignore[call-overload]
    len(f)  # type: ignore[arg-type]
