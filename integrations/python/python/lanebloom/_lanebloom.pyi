import datetime
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, Optional, Protocol, Union, final, overload, type_check_only

import numpy as np
import numpy.typing as npt
from typing_extensions import Buffer, Never, Self, TypeAlias

__version__: str

_Path: TypeAlias = Union[str, bytes, os.PathLike[str], os.PathLike[bytes]]
_KeyFunction: TypeAlias = Optional[Callable[[Any], Any]]

@type_check_only
class _ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: Any = None) -> Any: ...

@type_check_only
class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

_Keys: TypeAlias = Union[Iterable[Any], _ArrowArray, _ArrowStream, Buffer]

@final
class ArrowAnswers:
    """Answers as a bitmap: an Arrow array of truth values, without a copy.

    pyarrow.array(answers) and polars.Series(answers) read it, as does whatever else speaks Arrow's
    C interface; numpy.asarray(answers) copies it. Without such a library it is a sequence.

    >>> f = BloomFilter(1000)
    >>> f.update(["a"])
    >>> found = f.contains_many(["a", "b"], as_arrow=True)
    >>> len(found), list(found)
    (2, [True, False])
    """

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]: ...
    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> npt.NDArray[Any]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> bool: ...
    def __iter__(self) -> Iterator[bool]: ...

class Filter:
    """The base of all filters: a set of keys that says "certainly not" or "probably".

    Make one by a class such as BloomFilter, or by Filter.load(path) and Filter.from_bytes(data),
    which return the class that was saved.
    """

    # It has no constructor.
    def __new__(cls, none: Never, /) -> Self: ...
    @property
    def expected(self) -> int:
        """The number of keys that the filter was made for."""
    @property
    def rate(self) -> float:
        """The rate of false positives at the expected number of keys."""
    @property
    def current_rate(self) -> float:
        """The rate of false positives now. Reads the whole filter."""
    @property
    def approx_len(self) -> int:
        """An estimate of the number of keys; exact for CuckooFilter, StaticFilter and Bitmap. Reads
        the whole filter.
        """
    @property
    def nbytes(self) -> int:
        """The memory of the filter in bytes."""
    @property
    def hasher(self) -> Optional[str]:
        """The hash function of the keys: "murmur3", "fast", "siphash" (with a secret) or "prehashed".
        None for Bitmap, which hashes nothing, and for the filters of other systems.
        """
    @property
    def secret(self) -> Optional[bytes]:
        """The secret key, 16 bytes, of a filter made with secret=True. Keep it as you keep passwords."""
    def add(self, key: Any, /) -> bool:
        """Add a key, and return whether it was new.

        >>> f = BloomFilter(1000)
        >>> f.add(17), f.add(17)
        (True, False)
        """
    def __contains__(self, key: Any, /) -> bool: ...
    def update(self, *others: _Keys) -> None:
        """Add all keys of each argument: a list or another iterable of keys, an array, or a filter.

        A filter whose keys are too many for this one's rate is a ValueError, as with |= and |.

        >>> f = BloomFilter(1000)
        >>> f.update(["a", "b"], range(10))
        >>> "b" in f, 9 in f, 10 in f
        (True, True, False)
        """
    def add_many(self, keys: _Keys, /, *, threads: int = 1) -> int:
        """Add all keys of an array or of an iterable, and return how many were new.

        Arrays are those of numpy (integers, floats, bool, datetime64, S, U, V), whatever speaks
        Arrow's C interface (pyarrow, polars, pandas, DuckDB), and buffers such as array.array. They
        are read where they lie, without the interpreter's lock, by as many threads as you say.
        Ctrl-C ends the call between two pieces of some million keys; those before it are added.

        Masked values are None. numpy drops zero bytes at the end of S and U values, so keep digests
        in V arrays.

        >>> import array
        >>> f = BloomFilter(1000)
        >>> f.add_many(array.array("q", [1, 2, 1]))
        2
        """
    @overload
    def add_new(
        self, keys: _Keys, /, *, threads: int = 1, as_arrow: Literal[False] = False
    ) -> npt.NDArray[np.bool_]:
        """Add all keys, and return an array that says which were new: duplicates in one call.

        The array is numpy's, or a memoryview of truth values where numpy is missing; with as_arrow
        it is a bitmap that pyarrow and polars read. A second key of the same value is not new.

        With one thread, the new ones are the first of each key. With several, the new one may be a
        later one, and two threads may take the same key for new at the same time. So where it
        matters which row stays, use one thread.

        >>> f = BloomFilter(1000)
        >>> [bool(new) for new in f.add_new(["a", "b", "a"])]
        [True, True, False]
        """
    @overload
    def add_new(self, keys: _Keys, /, *, threads: int = 1, as_arrow: Literal[True]) -> ArrowAnswers: ...
    @overload
    def contains_many(
        self, keys: _Keys, /, *, threads: int = 1, as_arrow: Literal[False] = False
    ) -> npt.NDArray[np.bool_]:
        """Look up all keys, and return an array that says which are in the filter, as add_new does.

        >>> f = BloomFilter(1000)
        >>> f.update(["a"])
        >>> [bool(found) for found in f.contains_many(["a", "b"])]
        [True, False]
        """
    @overload
    def contains_many(self, keys: _Keys, /, *, threads: int = 1, as_arrow: Literal[True]) -> ArrowAnswers: ...
    def copy(self) -> Self:
        """A copy. The copy of a mapped file is a filter in memory that takes keys.

        >>> f = BloomFilter(1000)
        >>> g = f.copy()
        >>> g.update(["a"])
        >>> "a" in f, "a" in g
        (False, True)
        """
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def to_bytes(self) -> bytes:
        """The filter as bytes: for filters of lanebloom those of the Rust crate and of its command,
        for the others those of their systems. They do not hold a secret.
        """
    @classmethod
    def from_bytes(
        cls, data: Buffer, /, *, secret: Optional[bytes] = None, key: _KeyFunction = None
    ) -> Self:
        """The filter that to_bytes made. Bytes that are not a filter are a ValueError."""
    def save(self, path: _Path) -> None:
        """Write the filter to a file, in place of the old one: a reader gets all of the old file or
        all of the new one, even if the machine crashes. A device or a pipe is an OSError.
        """
    @classmethod
    def load(
        cls, path: _Path, /, *, secret: Optional[bytes] = None, key: _KeyFunction = None,
        max_bytes: Optional[int] = None
    ) -> Self:
        """Read a filter that save() wrote, or the Rust crate, or its command. A filter that takes more
        than max_bytes of memory is a ValueError.
        """
    def __reduce__(self) -> tuple[Any, ...]: ...

# The methods that not every filter has are in Filter, and raise a TypeError.
@type_check_only
class _United(Filter):
    def update(self, *others: Union[_Keys, Self]) -> None: ...
    def __or__(self, other: Self, /) -> Self: ...
    def __ior__(self, other: Self, /) -> Self: ...

@type_check_only
class _Compared(_United):
    def __and__(self, other: Self, /) -> Self: ...
    def issubset(self, other: Self) -> bool:
        """Whether each key of this filter may be in the other one: False is certain."""
    def isdisjoint(self, other: Self) -> bool:
        """Whether no key is in both filters: True is certain."""

@final
class BloomFilter(_Compared):
    """A Bloom filter for a number of keys that is known in advance.

    expected: the number of keys. Beyond it the rate of false positives rises.
    rate:     the share of absent keys that are taken for present.
    secret:   True for keys that strangers choose. The filter's secret is needed to load it again.
    hasher:   "murmur3", which every language has; "fast", in half the time; or "prehashed": keys
              are hashes of yours, integers from -2**63 to 2**64 - 1, and all 64 bits must vary.
    key:      a function that makes a key of an object, for objects of other types. For a frame or a
              table it is given the tuple of each row, or the value if there is one column.

    Keys are int, str, bytes, float, Decimal, bool, None, tuple, UUID, datetime, date, IP addresses
    and numpy's scalars. A key counts by its content: 1, 1.0 and True are one key, as in a set, and
    a str and its UTF-8 are one too. None, NaN and every null of an array or a frame are one key.

    >>> from lanebloom import BloomFilter
    >>> seen = BloomFilter(1_000_000, 0.001)
    >>> seen.add("https://example.org/")
    True
    >>> seen.add("https://example.org/")
    False
    >>> "https://example.org/" in seen
    True
    >>> hashes = BloomFilter(1000, hasher="prehashed")
    >>> hashes.add(0x9E3779B97F4A7C15), hashes.hasher
    (True, 'prehashed')
    """

    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, secret: Union[bool, bytes] = False, key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, seed: int = 0, secret: Literal[False] = False,
        hasher: Literal["murmur3", "fast"] = "murmur3", key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, secret: Literal[False] = False, hasher: Literal["prehashed"],
        key: Optional[Callable[[Any], int]] = None
    ) -> Self: ...
    @staticmethod
    def mmap(path: _Path, /, *, secret: Optional[bytes] = None, key: _KeyFunction = None) -> BloomFilter:
        """A read-only filter in a file that save() wrote: it is not read but mapped, so that processes
        share its memory and a lookup reads what it needs.

        Nobody may write to the file or shorten it while it is mapped: a lookup would end the
        process. save() replaces the file, which is safe: the view keeps the old one.
        """
    def approx_intersection_len(self, other: BloomFilter) -> int:
        """An estimate of the number of keys in both filters."""

@final
class ScalableBloomFilter(_United):
    """A Bloom filter that grows: for a number of keys that is not known.

    It keeps its rate for any number of keys, and takes more memory than a BloomFilter. A key for
    which it would have to grow beyond max_bytes is a ValueError.

    >>> f = ScalableBloomFilter(10)
    >>> f.add_many(range(1000)) > 980
    True
    >>> 999 in f
    True
    """

    @overload
    def __new__(
        cls, expected: int = 10_000, rate: float = 0.01, *, max_bytes: Optional[int] = None,
        secret: Union[bool, bytes] = False, key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, expected: int = 10_000, rate: float = 0.01, *, max_bytes: Optional[int] = None, seed: int = 0,
        secret: Literal[False] = False, hasher: Literal["murmur3", "fast"] = "murmur3", key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, expected: int = 10_000, rate: float = 0.01, *, max_bytes: Optional[int] = None,
        secret: Literal[False] = False, hasher: Literal["prehashed"], key: Optional[Callable[[Any], int]] = None
    ) -> Self: ...

@final
class WindowedBloomFilter(_United):
    """A Bloom filter that forgets.

    expected: the number of keys in a window.
    window:   a timedelta or seconds. A key is known for at least so long after it was added, and
              a third longer at most with 4 generations. Without a window, the filter forgets the
              oldest keys when it is full.

    >>> from datetime import timedelta
    >>> recent = WindowedBloomFilter(1000, window=timedelta(minutes=10))
    >>> recent.add("job 1"), recent.add("job 1")
    (True, False)
    """

    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, window: Union[datetime.timedelta, float, None] = None,
        generations: int = 4, secret: Union[bool, bytes] = False, key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, window: Union[datetime.timedelta, float, None] = None,
        generations: int = 4, seed: int = 0, secret: Literal[False] = False,
        hasher: Literal["murmur3", "fast"] = "murmur3", key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, window: Union[datetime.timedelta, float, None] = None,
        generations: int = 4, secret: Literal[False] = False, hasher: Literal["prehashed"],
        key: Optional[Callable[[Any], int]] = None
    ) -> Self: ...
    def rotate(self) -> None:
        """Forget the oldest generation of keys now."""

@final
class CuckooFilter(Filter):
    """A filter from which keys can be removed.

    A key that is added twice is in it twice. A key that finds no room is a ValueError. Remove only
    keys that were added: else another key may vanish.

    >>> f = CuckooFilter(1000)
    >>> f.update(["a", "a", "b"])
    >>> f.count("a"), len(f)
    (2, 3)
    >>> f.remove("b")
    >>> "b" in f
    False
    """

    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, secret: Union[bool, bytes] = False, key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, seed: int = 0, secret: Literal[False] = False,
        hasher: Literal["murmur3", "fast"] = "murmur3", key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, expected: int, rate: float = 0.01, *, secret: Literal[False] = False, hasher: Literal["prehashed"],
        key: Optional[Callable[[Any], int]] = None
    ) -> Self: ...
    def discard(self, key: Any) -> bool:
        """Remove a key, or one of its copies; returns whether it was there."""
    def remove(self, key: Any) -> None:
        """Remove a key, or one of its copies; a KeyError if it is not there."""
    def count(self, key: Any) -> int:
        """How often a key was added and not removed; more at the rate of false positives."""
    def __len__(self) -> int: ...

@final
class StaticFilter(Filter):
    """A filter that does not change, made of all its keys at once: in three quarters of the memory.

    From a million keys on it takes 9.1 bits per key at a rate of 1/256, and 18.1 at 1/65536. It
    takes no keys later: make a new one of all keys. The keys may come in any order, some of them
    twice: the same keys make the same bytes.

    keys:    a list or another iterable of keys, or an array, as add_many of other filters takes it.
    rate:    the share of absent keys that are taken for present; 0.01, if bits is not given.
    bits:    in place of a rate, the bits of each key's fingerprint, 7 to 32. Each one halves the
             rate; 8, 16 and 32 are looked up fastest.
    threads: that hash an array, and build. Building takes 20 bytes of memory for each key.
    hasher:  and the others as in BloomFilter. With hasher="prehashed", a million keys whose bits
             are not random are a ValueError.

    >>> from lanebloom import StaticFilter
    >>> blocked = StaticFilter(["ads.example", "spy.example"], 1e-4)
    >>> "ads.example" in blocked, "docs.example" in blocked
    (True, False)
    >>> small = StaticFilter(range(10_000), bits=8)
    >>> len(small), round(small.bits_per_key), round(small.rate * 256, 1)
    (10000, 10, 1.0)
    """

    @overload
    def __new__(
        cls, keys: _Keys, rate: Optional[float] = None, *, bits: Optional[int] = None, threads: int = 1,
        secret: Union[bool, bytes] = False, key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, keys: _Keys, rate: Optional[float] = None, *, bits: Optional[int] = None, threads: int = 1,
        seed: int = 0, secret: Literal[False] = False, hasher: Literal["murmur3", "fast"] = "murmur3",
        key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, keys: _Keys, rate: Optional[float] = None, *, bits: Optional[int] = None, threads: int = 1,
        secret: Literal[False] = False, hasher: Literal["prehashed"], key: Optional[Callable[[Any], int]] = None
    ) -> Self: ...
    @property
    def bits(self) -> int:
        """The bits of each key's fingerprint."""
    @property
    def bits_per_key(self) -> float:
        """The bits of memory for each key."""
    def __len__(self) -> int: ...
    # Methods that add keys are a TypeError.
    def add(self, key: Never, /) -> bool: ...
    def update(self, *others: Never) -> None: ...  # type: ignore[override]
    def add_many(self, keys: Never, /, *, threads: int = 1) -> int: ...  # type: ignore[override]
    def add_new(  # type: ignore[override]
        self, keys: Never, /, *, threads: int = 1, as_arrow: bool = False
    ) -> ArrowAnswers: ...

@final
class Bitmap(_Compared):
    """An exact set of integers from 0 to bound - 1: a bit for each.

    >>> ids = Bitmap(100)
    >>> ids.update([3, 5, 3])
    >>> len(ids), list(ids), 4 in ids
    (2, [3, 5], False)
    """

    def __new__(cls, bound: int, *, key: _KeyFunction = None) -> Self: ...
    def discard(self, key: Any) -> bool:
        """Remove an integer; returns whether it was there."""
    def remove(self, key: Any) -> None:
        """Remove an integer; a KeyError if it is not there."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...

@final
class GuavaBloomFilter(_United):
    """A BloomFilter of Guava, the Java library, bit for bit.

    to_bytes and save write what writeTo of Java writes. A str is Java's stringFunnel(UTF_8), an int
    is longFunnel, or integerFunnel with int_bytes=4.

    >>> f = GuavaBloomFilter(1000)
    >>> f.add("ann")
    True
    >>> "ann" in GuavaBloomFilter.from_bytes(f.to_bytes())
    True
    """

    def __new__(
        cls, expected: int, rate: float = 0.03, *, int_bytes: Literal[4, 8] = 8, key: _KeyFunction = None
    ) -> Self: ...
    @staticmethod
    def from_bytes(  # type: ignore[override]
        data: Buffer, /, *, int_bytes: Literal[4, 8] = 8, key: _KeyFunction = None
    ) -> GuavaBloomFilter:
        """The filter that writeTo of Java or to_bytes wrote."""
    @staticmethod
    def load(  # type: ignore[override]
        path: _Path, /, *, int_bytes: Literal[4, 8] = 8, key: _KeyFunction = None, max_bytes: Optional[int] = None
    ) -> GuavaBloomFilter:
        """Read a file that Java or save() wrote."""

@final
class SparkBloomFilter(_United):
    """Spark's BloomFilter, bit for bit.

    to_bytes and save write what writeTo of Java writes, and rate and size are those of
    BloomFilter.create. Keys are integers, which all are a long in Spark, str and bytes. Others,
    floats and times among them, are a TypeError, as in Spark. Nulls are skipped: they are not
    added, and not found.

    version: 2, which Spark 4.1 and later write and read, or 1, which every Spark reads.
    seed:    of the hash, only for version 2.

    >>> f = SparkBloomFilter(1000, 0.01)
    >>> f.add(17), f.version
    (True, 2)
    >>> 17 in SparkBloomFilter.from_bytes(f.to_bytes())
    True
    """

    def __new__(
        cls, expected: int, rate: float = 0.03, *, version: Literal[1, 2] = 2, seed: int = 0, key: _KeyFunction = None
    ) -> Self: ...
    @property
    def version(self) -> Literal[1, 2]:
        """The version of Spark's format, 1 or 2."""
    @property
    def seed(self) -> int:
        """The seed of the hash; 0 for version 1, which has none."""
    @staticmethod
    def from_bytes(  # type: ignore[override]
        data: Buffer, /, *, key: _KeyFunction = None
    ) -> SparkBloomFilter:
        """The filter that writeTo of Java or to_bytes wrote."""
    @staticmethod
    def load(  # type: ignore[override]
        path: _Path, /, *, key: _KeyFunction = None, max_bytes: Optional[int] = None
    ) -> SparkBloomFilter:
        """Read a file that Java or save() wrote."""

@final
class SplitBlockBloomFilter(_United):
    """The filter of Parquet files, bit for bit: split blocks and XXH64.

    to_bytes and save write the header and the bits as a Parquet file has them. Keys are hashed as
    Parquet hashes values: an int as an INT64, or as an INT32 with int_bytes=4; a str or bytes as a
    BYTE_ARRAY; a float as a DOUBLE, so that 1 and 1.0 are two keys here. Nulls are skipped: they
    are not added, and not found. Values that Parquet stores in another way (times in seconds,
    date64, float16, decimals, bool) are a TypeError. A filter that from_parquet read knows the type
    of its column instead, and takes the column's values.

    The filter has the bytes that keep the rate, raised to a power of two. The format allows 128
    MiB: keys and a rate that need more are a ValueError.

    >>> f = SplitBlockBloomFilter(1000)
    >>> f.update([17, "ann"])
    >>> 17 in f, "ann" in f, 17.0 in f
    (True, True, False)
    """

    def __new__(
        cls, expected: int, rate: float = 0.01, *, int_bytes: Literal[4, 8] = 8, key: _KeyFunction = None
    ) -> Self: ...
    @staticmethod
    def from_bytes(  # type: ignore[override]
        data: Buffer, /, *, int_bytes: Literal[4, 8] = 8, key: _KeyFunction = None, prefix: bool = False
    ) -> SplitBlockBloomFilter:
        """The filter in a Parquet file's bytes, header and bits: as many bytes from
        bloom_filter_offset on as the column chunk's bloom_filter_length says.

        Where a file does not say the length, say prefix=True: the bytes may go on after the filter.

        >>> f = SplitBlockBloomFilter(1000)
        >>> f == SplitBlockBloomFilter.from_bytes(f.to_bytes() + b"more", prefix=True)
        True
        """
    @staticmethod
    def load(  # type: ignore[override]
        path: _Path, /, *, int_bytes: Literal[4, 8] = 8, key: _KeyFunction = None, max_bytes: Optional[int] = None
    ) -> SplitBlockBloomFilter:
        """Read a file that save() wrote."""
    @staticmethod
    def from_bits(data: Buffer, /, *, int_bytes: Literal[4, 8] = 8, key: _KeyFunction = None) -> SplitBlockBloomFilter:
        """The filter in bits without a header: blocks of 32 bytes, as Lance's index has them.

        >>> full = SplitBlockBloomFilter.from_bits(bytes([255] * 32))
        >>> "ann" in full, "ann" in SplitBlockBloomFilter.from_bits(bytes(64))
        (True, False)
        """
    @staticmethod
    def from_parquet(path: _Path, column: str, row_group: int) -> Optional[SplitBlockBloomFilter]:
        """The filter of a column's chunk in a Parquet file; None where the chunk has none.

        path:      of a local file.
        column:    its name; of a list "name.list.element", of a struct "name.field".
        row_group: the number of the row group, from 0 on.

        The filter knows the column's type. Keys are the values that Python has for it: int, float,
        bool, str, bytes, Decimal, date, time, datetime, UUID, and those of numpy and Arrow. What
        the column cannot hold is an error that says so: a TypeError for another type, a ValueError
        for a value. A time without a zone counts as UTC. 0.0 and -0.0 are one key. Arrays are taken
        value by value.

        For files that are not local: from_bytes, with key= for the values of the column.
        """
    def add_both_zeros(self) -> bool:
        """Add 0.0 and -0.0 if one of them may be in the filter, as FLOAT16, FLOAT and DOUBLE.

        Returns whether the filter changed. A writer of a column of floats calls it after its
        values: DataFusion, Spark and hyparquet ask for one of the two zeros only, and lose the rows
        of the other.

        >>> import numpy as np
        >>> f = SplitBlockBloomFilter(1000)
        >>> f.add_many(np.array([1.5, -0.0], "f4")), np.float32(0.0) in f
        (2, False)
        >>> f.add_both_zeros(), np.float32(0.0) in f
        (True, True)
        """
    @staticmethod
    def row_groups(path: _Path, column: str, values: _Keys) -> list[int]:
        """The numbers of the row groups in a Parquet file that may have one of the values.

        path, column: as in from_parquet.
        values: a list, or an array or a column of numpy, Arrow, pandas, polars or DuckDB, of what
                the column holds: other values are errors, as in from_parquet. A null is in no row
                group.

        A row group without a filter may have any value, and a NaN may be in any row group. The call
        reads 32 bytes of each filter for each value, or the whole filter if that is less.

        For readers that use no filters: pyarrow, polars, fastparquet.
        """

@final
class FilterBank:
    """Many Bloom filters of one size, asked with one key at once: which of them may have it?

    Each filter is a column: of a file, a segment, a tenant or a day. 1,024 filters of 100,000 keys
    answer in the time of five to eight. The memory is the sum of the filters.

    columns:  the number of filters, rounded up to a multiple of 64.
    expected: the number of keys in each filter.
    rate:     the share of absent keys that a filter takes for present; 0.01, if false_columns is
              not given. With 1,024 columns, a key would then be found in 10 wrong ones.
    false_columns: in place of a rate, the number of wrong columns for each key, such as 0.1.
    names:    of the first columns, in files too, as `lanebloom build --bank` writes them.
    hasher:   and secret, seed and key as in BloomFilter.

    >>> from lanebloom import BloomFilter, FilterBank
    >>> bank = FilterBank(1000, 10_000, false_columns=0.1)
    >>> bank.add(3, "ann"), bank.add(900, "ann"), bank.add(3, "bob")
    (True, True, True)
    >>> bank.which("ann"), bank.which("bob"), bank.which("eve")
    ([3, 900], [3], [])
    >>> bank.columns, len(bank)
    (1024, 2)
    """

    @overload
    def __new__(
        cls, columns: int, expected: int, rate: Optional[float] = None, *, false_columns: Optional[float] = None,
        names: Iterable[str] = (), secret: Union[bool, bytes] = False, key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, columns: int, expected: int, rate: Optional[float] = None, *, false_columns: Optional[float] = None,
        names: Iterable[str] = (), seed: int = 0, secret: Literal[False] = False,
        hasher: Literal["murmur3", "fast"] = "murmur3", key: _KeyFunction = None
    ) -> Self: ...
    @overload
    def __new__(
        cls, columns: int, expected: int, rate: Optional[float] = None, *, false_columns: Optional[float] = None,
        names: Iterable[str] = (), secret: Literal[False] = False, hasher: Literal["prehashed"],
        key: Optional[Callable[[Any], int]] = None
    ) -> Self: ...
    def add(self, column: int, key: Any) -> bool:
        """Add a key to a column; returns whether it was new there.

        It takes longer than to add it to a BloomFilter. Where all keys of a column are at hand,
        fill a BloomFilter and push it.
        """
    def add_many(self, column: int, keys: _Keys, /, *, threads: int = 1) -> int:
        """Add all keys of an array or of an iterable to a column; returns how many were new there.

        The keys are those that add_many of BloomFilter takes. It hashes all of them first, 8 bytes
        each: if one is refused, none is added.

        >>> bank = FilterBank(64, 1000)
        >>> bank.add_many(7, ["ann", "bob", "ann"])
        2
        """
    def push(self, filter: BloomFilter, /) -> int:
        """Copy a BloomFilter to the first column that is not in use; returns the column.

        The filter must have the bank's arguments: expected, rate, seed, secret and hasher. A larger
        one is folded if its size is a multiple. What is in the filter when the call begins is in
        the column when it returns; later keys are not. push_all copies many filters in less time.

        >>> bank = FilterBank(64, 1000, 1e-4)
        >>> file = BloomFilter(1000, 1e-4)
        >>> file.update(["ann", "bob"])
        >>> bank.push(file), bank.push(BloomFilter(1000, 1e-4))
        (0, 1)
        >>> bank.which("ann")
        [0]
        """
    def push_all(self, filters: Iterable[BloomFilter], /) -> list[int]:
        """Copy all filters of an iterable; returns their columns. If one does not fit, none is copied.

        Other calls wait meanwhile.

        >>> bank = FilterBank(64, 1000)
        >>> bank.push_all(BloomFilter(1000) for day in range(3))
        [0, 1, 2]
        """
    def which(self, key: Any) -> list[int]:
        """The columns that may have a key, as a list in ascending order. The others certainly do not."""
    def which_many(
        self, keys: _Keys, /, *, threads: int = 1
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The columns that may have each key: two arrays of integers, rows and columns.

        Key rows[i] may be in column columns[i]. The pairs are sorted by key, then by column. They
        are arrays of numpy, or memoryviews where numpy is missing.

        Most keys are in few columns, so pairs are small: 16 bytes each. A table of truth values for
        a million keys and 1,024 columns would have a gigabyte. And pairs are what frames take:
        frame.iloc[rows] of pandas and table.take(rows) of pyarrow are the rows of the keys, once
        for each column that may have them, names[columns] the columns' names in an array,
        numpy.unique(rows) the keys that any column may have. For a table, say
        table[rows, columns] = True.

        Keys are those that contains_many of BloomFilter takes.

        >>> bank = FilterBank(64, 1000, 1e-6)
        >>> bank.add_many(3, ["ann", "bob"]), bank.add_many(7, ["bob"])
        (2, 1)
        >>> rows, columns = bank.which_many(["eve", "bob", "ann"])
        >>> [(int(row), int(column)) for row, column in zip(rows, columns)]
        [(1, 3), (1, 7), (2, 3)]
        """
    def any(self, key: Any) -> bool:
        """Whether any column may have a key.

        >>> bank = FilterBank(64, 1000, 1e-6)
        >>> bank.add(3, "ann")
        True
        >>> bank.any("ann"), bank.any("eve"), bank.count("ann"), bank.count("eve")
        (True, False, 1, 0)
        """
    def count(self, key: Any) -> int:
        """The number of columns that may have a key."""
    def contains(self, column: int, key: Any) -> bool:
        """Whether a column may have a key."""
    def to_filter(self, column: int) -> BloomFilter:
        """A column as a BloomFilter of its own, with the same keys. That of a column which is not in
        use is an empty filter, of a size that push takes.

        >>> bank = FilterBank(64, 1000)
        >>> file = bank.to_filter(0)
        >>> file.add("ann"), bank.push(file), bank.to_filter(0) == file
        (True, 0, True)
        """
    def clear(self, column: int) -> None:
        """Empty a column, so that it is not in use, and push may take it. Other calls wait meanwhile,
        and see the whole column or nothing of it.

        >>> bank = FilterBank(64, 1000)
        >>> bank.add(3, "ann"), bank.which("ann")
        (True, [3])
        >>> bank.clear(3)
        >>> bank.which("ann"), bank.columns_in_use()
        ([], [])
        """
    def columns_in_use(self) -> list[int]:
        """The columns that were pushed, or to which keys were added, and that were not cleared."""
    def __len__(self) -> int: ...
    @property
    def columns(self) -> int:
        """The number of columns, in use or not."""
    @property
    def names(self) -> list[str]:
        """The names of the first columns, as a list."""
    @property
    def expected(self) -> int:
        """The number of keys that each filter was made for."""
    @property
    def rate(self) -> float:
        """The rate of false positives of each filter at the expected number of keys."""
    @property
    def nbytes(self) -> int:
        """The memory of all filters in bytes, in use or not."""
    @property
    def hasher(self) -> str:
        """The hash function of the keys: "murmur3", "fast", "siphash" (with a secret) or "prehashed"."""
    @property
    def secret(self) -> Optional[bytes]:
        """The secret key, 16 bytes, of a bank made with secret=True. Keep it as you keep passwords."""
    def copy(self) -> Self:
        """A copy."""
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: Any, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]
    def to_bytes(self) -> bytes:
        """The bank as bytes: those of the Rust crate, and the names after them, as the command writes
        them. They do not hold a secret.
        """
    @staticmethod
    def from_bytes(data: Buffer, /, *, secret: Optional[bytes] = None, key: _KeyFunction = None) -> FilterBank:
        """Reads the bank that to_bytes made. Other bytes are a ValueError."""
    def save(self, path: _Path) -> None:
        """Write the bank to a file, in place of the old one, as save of BloomFilter does."""
    @staticmethod
    def load(
        path: _Path, /, *, secret: Optional[bytes] = None, key: _KeyFunction = None, max_bytes: Optional[int] = None
    ) -> FilterBank:
        """Read a bank that save() wrote, or the Rust crate, or its command. A bank that takes more
        than max_bytes of memory is a ValueError.
        """
    def __reduce__(self) -> tuple[Any, ...]: ...

def key_bytes(key: Any, /) -> bytes:
    r"""The bytes by which filters know a key: for programs in other languages.

    >>> key_bytes("é"), key_bytes(258)
    (b'\xc3\xa9', b'\x02\x01\x00\x00\x00\x00\x00\x00')
    >>> key_bytes(("ab", b"c"))
    b'\x02\x00\x00\x00\x00\x00\x00\x00abc'
    """
def _restore(
    class_: str, data: bytes, secret: Optional[bytes], key: _KeyFunction, int_bytes: int
) -> Union[Filter, FilterBank]: ...
