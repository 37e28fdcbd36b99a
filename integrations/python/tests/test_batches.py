"""Arrays: whatever layout a key lies in, it is the key that the Python object is."""

import array
import ctypes
import datetime
import decimal
import functools
import gc
import hashlib
import os
import random
import subprocess
import sys
import uuid

import pytest

from common import steps_beside
from lanebloom import ArrowAnswers, Bitmap, BloomFilter, GuavaBloomFilter, SparkBloomFilter, SplitBlockBloomFilter

numpy = pytest.importorskip("numpy")
SIZE = 3000


def agrees(values, objects, make=lambda: BloomFilter(2 * SIZE, 1e-6)):
    """Whether an array and the list of its objects are the same keys, in each of the calls."""
    objects = list(objects)
    by_array, by_list, by_one, by_new = make(), make(), make(), make()
    added = by_array.add_many(values)
    assert added == by_list.add_many(objects) == len(set(objects))
    for key in objects:
        by_one.add(key)
    assert by_array == by_list == by_one
    assert by_array.contains_many(values).all() and by_array.contains_many(objects).all()
    assert len(by_array.contains_many(values)) == len(objects)
    new = by_new.add_new(values).tolist()
    first = [i == objects.index(key) for i, key in enumerate(objects)] if len(objects) < 100 else None
    assert sum(new) == len(set(objects)) and first in (None, new)
    assert by_new == by_array
    # Every second key, so that answers of both kinds stand in the right places.
    half = make()
    half.add_many(objects[::2])
    known = set(objects[::2])
    assert half.contains_many(values).tolist() == [key in known for key in objects]
    threads = make()
    threads.add_many(values, threads=3)
    assert threads == by_array
    assert half.contains_many(values, threads=2).tolist() == [key in known for key in objects]


@pytest.mark.parametrize("dtype", "i1 u1 i2 u2 i4 u4 i8 u8 >i4 >u8 ?".split())
def test_integers_of_numpy(dtype):
    values = (numpy.arange(SIZE) * 7 - 9000).astype(dtype)
    agrees(values, values.tolist())
    agrees(values[::-3], values[::-3].tolist())
    agrees(values[:0], [])
    agrees(values[:1], values[:1].tolist())


@pytest.mark.parametrize("dtype", "f2 f4 f8 >f8".split())
def test_floats_of_numpy(dtype):
    values = (numpy.arange(SIZE) / 4).astype(dtype)
    agrees(values, values.tolist())
    agrees(-values, (-values).tolist())


def test_strings_and_bytes_of_numpy():
    names = ["a", "", "grün", "x" * 40, "日本"] * 3
    agrees(numpy.array(names), names)
    raw = [name.encode() for name in names]
    agrees(numpy.array(raw), raw)
    fixed = numpy.array([b"ab\0\0", b"cd\0\1"], "V4")
    agrees(fixed, [b"ab\0\0", b"cd\0\1"])
    agrees(numpy.array(names, object), names)


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s", "m", "h", "D", "M", "Y", "10ms", "15s"])
def test_times_of_numpy(unit):
    values = numpy.array(["1969-05-01", "2024-02-29", "2038-01-19"], f"M8[{unit}]")
    objects = [value.astype("M8[us]").item() for value in values]
    agrees(values, objects)
    values[1] = "NaT"
    objects[1] = None
    agrees(values, objects)


def test_what_numpy_arrays_are_no_keys():
    f = BloomFilter(10)
    for values, message in [
        (numpy.zeros((2, 2)), "2 dimensions"),
        (numpy.zeros(3, "c16"), "complex128"),
        (numpy.zeros(3, "m8[s]"), "timedelta64"),
        (numpy.zeros(3, [("a", "i4")]), "dtype"),
        (numpy.zeros(3, "M8[ps]"), "ps"),
    ]:
        with pytest.raises((TypeError, ValueError), match=message):
            f.add_many(values)
    with pytest.raises(TypeError, match="takes int"):
        f.add_many(numpy.array([[1], {}], object))
    assert f.approx_len == 0


def test_a_subclass_cannot_lie_about_its_memory():
    class Long(numpy.ndarray):
        def __len__(self):
            return 10_000_000

    class Elsewhere(numpy.ndarray):
        ndim = 1
        dtype = numpy.dtype("S100000")

        @property
        def __array_interface__(self):
            return {"data": (8, False), "shape": (10_000_000,), "typestr": "<i8", "version": 3}

        def __array__(self, *arguments, **options):
            return numpy.arange(5)

    for kind in Long, Elsewhere:
        values = numpy.arange(3).view(kind)
        agrees(values, [0, 1, 2])
        assert 2 in filled(values[2:]) and filled(values).approx_len == 3

    class Mask(numpy.ma.MaskedArray):
        def __len__(self):
            return 10_000_000

    agrees(Mask(numpy.arange(3), mask=[0, 1, 0]), [0, None, 2])


def filled(values):
    f = BloomFilter(100, 1e-9)
    f.add_many(values)
    return f


def test_masked_values_are_none():
    masked = numpy.ma.masked_array
    agrees(masked([1, 2, 3], [False, True, False]), [1, None, 3])
    agrees(masked([1, 2, 3]), [1, 2, 3])
    agrees(masked(numpy.arange(20.0), numpy.arange(20) % 3 == 0)[1::2], [i if i % 3 else None for i in range(1, 20, 2)])
    agrees(masked(["a", "b"], [True, False]), [None, "b"])
    agrees(masked(numpy.array(["a", "b"], object), [True, False]), [None, "b"])
    agrees([numpy.ma.masked, 3], [None, 3])
    assert None in filled([numpy.ma.masked]) and 0 not in filled([numpy.ma.masked])


def test_digests_in_an_array_that_drops_zeros_are_refused():
    digests = [hashlib.sha1(bytes([i])).digest() for i in range(200)]
    for cut in slice(None), slice(1), slice(5, 9):
        values = numpy.array(digests[cut])
        with pytest.raises(TypeError, match=r"S20 that holds digests.*view\('V20'\)"):
            BloomFilter(9).add_many(values)
        agrees(values.view("V20"), digests[cut])
    # Text of such a width is text.
    for names in [b"a" * 20, b"b"], ["grün".encode() * 4]:
        agrees(numpy.array(names), names)


def test_a_dict_of_arrays_is_no_set_of_names():
    f = BloomFilter(9)
    for value in numpy.arange(3), pa.array([1]), pa.table({"i": [1]}):
        for call in f.add_many, f.update, f.contains_many, f.add_new:
            with pytest.raises(TypeError, match="dict of arrays: its names, such as 'a', would be the keys"):
                call({"a": value})
    agrees({"a": numpy.float64(1), "b": [2]}, ["a", "b"])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_floats_that_are_equal_to_large_integers_are_their_keys(dtype):
    values = numpy.array([2.0**64, -(2.0**63), -(2.0**64), 2.0**100, 0.5, numpy.nan, numpy.inf, 3.0] * 50, dtype)
    f = filled(values)
    assert all(key in f for key in [2**64, -(2**63), -(2**64), 2**100, 0.5, None, float("inf"), 3])
    assert (f.contains_many(values) == True).all() and 2**64 + 1 not in f  # noqa: E712
    assert filled([int(value) if value in (2.0**64, 3) else value.item() for value in values]) == f
    assert filled(pa.array(values)) == filled(pa.array(values).dictionary_encode()) == f


def test_an_array_is_only_read():
    values = numpy.arange(10)
    values.flags.writeable = False
    assert BloomFilter(10, 1e-9).add_many(values) == 10


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_buffers(code):
    values = array.array(code, range(100))
    agrees(values, values.tolist())
    agrees(memoryview(values), values.tolist())


@pytest.mark.parametrize("code", "bBhHiIlLqQ")
def test_the_largest_and_smallest_integers_of_buffers(code):
    bits = 8 * array.array(code).itemsize
    ends = [-(2 ** (bits - 1)), -1, 2 ** (bits - 1) - 1] if code.islower() else [0, 2 ** (bits - 1), 2**bits - 1]
    agrees(array.array(code, ends), ends)
    agrees(numpy.array(array.array(code, ends)), ends)


def test_buffers_that_are_no_keys():
    f = BloomFilter(10)
    with pytest.raises(TypeError, match="one key"):
        f.add_many(b"abc")
    with pytest.raises(TypeError, match="one key"):
        f.update("abc")
    with pytest.raises(ValueError, match="2 dimensions"):
        f.add_many(memoryview(bytes(12)).cast("B", (3, 4)))
    with pytest.raises(TypeError, match="not iterable"):
        f.add_many(3)


def test_iterables():
    agrees([1, "a", None, 2.5, ("x", 1), b"raw"], [1, "a", None, 2.5, ("x", 1), b"raw"])
    agrees(tuple(range(200)), range(200))
    agrees({"a": 1, "b": 2}, ["a", "b"])
    agrees(range(SIZE), range(SIZE))
    agrees([f"name {i}" for i in range(SIZE)], [f"name {i}" for i in range(SIZE)])
    agrees([i if i % 3 else str(i) for i in range(SIZE)], [i if i % 3 else str(i) for i in range(SIZE)])
    f = BloomFilter(5000, 1e-6)
    f.update((i for i in range(2000)), {"x"}, [])
    assert all(i in f for i in range(2000)) and "x" in f and 2000 not in f


def test_a_list_that_changes_meanwhile():
    keys = [1, 2, None, 3]

    class Key:
        pass

    def shrink(key):
        keys.clear()
        return 5

    BloomFilter(10, key=shrink).update(keys)
    # A zone may run any code while a list is read.
    class Zone(datetime.tzinfo):
        def utcoffset(self, when):
            keys.clear()
            return datetime.timedelta(0)

    keys = ["a", datetime.datetime(2024, 1, 1, tzinfo=Zone()), "b", "c"]
    f = BloomFilter(100, 1e-6)
    f.update(keys)
    assert "a" in f and "b" not in f


def test_answers_are_arrays_of_numpy_that_can_be_written():
    found = BloomFilter(10).contains_many([1, 2])
    assert isinstance(found, numpy.ndarray) and found.dtype == bool
    found |= True
    assert found.all()


@pytest.mark.parametrize("count", [0, 1, 7, 8, 63, 64, 65, 128, 1000])
def test_answers_as_a_bitmap_are_those_of_numpy(count):
    f = BloomFilter(2000, 1e-6)
    f.update(range(0, 1000, 3))
    found = f.contains_many(range(count), as_arrow=True)
    assert isinstance(found, ArrowAnswers) and len(found) == count
    expected = [i % 3 == 0 for i in range(count)]
    assert list(found) == expected == f.contains_many(range(count)).tolist()
    assert [found[i] for i in range(count)] == expected and f"{sum(expected)} of {count} true" in repr(found)
    assert not count or found[-1] == expected[-1]
    for i in count, -count - 1:
        with pytest.raises(IndexError):
            found[i]
    new = f.add_new(numpy.arange(count), as_arrow=True)
    assert list(new) == [not answer for answer in expected]
    array = numpy.asarray(found)
    assert array.dtype == bool and array.tolist() == expected and array.shape == (count,)
    assert numpy.asarray(found, "i8").tolist() == expected and (array & ~numpy.asarray(new)).tolist() == expected
    if numpy.lib.NumpyVersion(numpy.__version__) >= "2.0.0":
        with pytest.raises(ValueError, match="needs a copy"):
            numpy.asarray(found, copy=False)


# Arrow

pa = pytest.importorskip("pyarrow")

MOMENTS = [datetime.datetime(1969, 5, 1), None, datetime.datetime(2024, 2, 29, 1, 2, 3)]
EPOCH = datetime.datetime(1970, 1, 1)


def random_type(rng, depth=0):
    """A type of Arrow, and a function that makes its values."""
    kind = rng.randrange(11 if depth < 2 else 9)
    if kind == 0:
        bits, sign = rng.choice([8, 16, 32, 64]), rng.choice([0, 1])
        least, most = -(2 ** (bits - 1)) * sign, 2 ** (bits - sign) - 1
        return getattr(pa, f"{'u' * (1 - sign)}int{bits}")(), lambda: rng.choice([least, most, 0, 1, rng.randint(least, most)])
    if kind == 1:
        return rng.choice([pa.float32(), pa.float64()]), lambda: rng.choice([0.0, -0.0, 1.0, 0.5, -(2.0**63), 2.0**64, 2.0**-140, float("inf")])
    if kind == 2:
        return pa.bool_(), lambda: rng.random() < 0.5
    if kind in (3, 4):
        text = rng.choice([pa.string(), pa.large_string(), pa.string_view()])
        binary = rng.choice([pa.binary(), pa.large_binary(), pa.binary_view()])
        size = rng.choice([0, 2, 12, 13, 40])
        return (text, lambda: "".join(rng.choices("aé😀", k=rng.randint(0, size)))) if kind == 3 else (binary, lambda: rng.choice([b"", b"\xff" + rng.randbytes(size)]))
    if kind == 5:
        return pa.binary(3), lambda: rng.choice([b"\0\0\0", rng.randbytes(3)])
    if kind == 6:
        return rng.choice([pa.date32(), pa.date64()]), lambda: (EPOCH + datetime.timedelta(rng.randint(-9, 9))).date()
    if kind == 7:
        unit = rng.choice(["s", "ms", "us", "ns"])
        step = datetime.timedelta(microseconds={"s": 10**6, "ms": 1000}.get(unit, 1))
        return pa.timestamp(unit, rng.choice([None, "UTC", "Europe/Oslo"])), lambda: EPOCH + step * rng.choice([0, -1, 1, rng.randint(-(10**9), 10**9)])
    if kind == 8:
        make, digits = rng.choice([(pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 70)])
        return make(digits, 3), lambda: decimal.Decimal(rng.choice([0, 1000, -1500, rng.randint(1, 10**digits - 1)])).scaleb(-3, decimal.Context(prec=80))
    if kind == 9:
        inner, make = random_type(rng, 2)
        values = [make() for _ in range(5)]
        return pa.dictionary(rng.choice([pa.int8(), pa.uint16(), pa.int64()]), inner), lambda: rng.choice(values)
    fields = [random_type(rng, depth + 1) for _ in range(rng.randint(1, 3))]
    return pa.struct([(f"f{i}", kind) for i, (kind, _) in enumerate(fields)]), lambda: tuple(make() if rng.random() < 0.8 else None for _, make in fields)


def random_column(kind, values):
    if pa.types.is_dictionary(kind):
        found = [*dict.fromkeys(value for value in values if value is not None)]
        indices = [None if value is None else found.index(value) for value in values]
        return pa.DictionaryArray.from_arrays(pa.array(indices, kind.index_type), pa.array(found, kind.value_type))
    if pa.types.is_struct(kind):
        parts = [random_column(field.type, [value and value[i] for value in values]) for i, field in enumerate(kind)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.array([value is None for value in values], pa.bool_()))
    return pa.array(values, kind)


def alone(value):
    """A tuple of one part is that part."""
    return alone(value[0]) if isinstance(value, tuple) and len(value) == 1 else value


@pytest.mark.parametrize("seed", range(40))
def test_random_columns_are_the_keys_of_their_values(seed):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    rng = random.Random(seed)
    kind, make = random_type(rng)
    nulls = rng.choice([0, 0.3, 1])
    # Within other values, so that offsets are anything.
    before, size = rng.randrange(20), rng.choice([0, 1, 2, 9, 40])
    objects = [None if rng.random() < nulls else make() for _ in range(before + size + rng.randrange(9))]
    column, objects = random_column(kind, objects)[before:][:size], objects[before:][:size]
    cut = rng.randint(0, size)
    numbers = pa.array(range(size), pa.int16())
    columns = [column, pa.chunked_array([column[:cut], column[:0], column[cut:]]), pa.table([column], ["x"])]
    frames = [pa.table([column, numbers], ["x", "n"]), pa.StructArray.from_arrays([column, numbers], ["x", "n"])]
    frames.append(frames[0].to_pandas(types_mapper=pd.ArrowDtype))
    columns.append(frames[-1]["x"])
    if "decimal" not in str(kind):
        # (polars panics at some decimals in structs.)
        frames.append(pl.from_arrow(frames[0]))
        columns.append(frames[-1]["x"])
    for values in columns:
        agrees(values, [alone(value) for value in objects])
    for values in frames:
        agrees(values, list(zip(objects, range(size))))


@pytest.mark.parametrize("size", [200_000, 2_200_000])
def test_threads_take_each_key_of_a_long_array(size):
    numbers = numpy.arange(size)
    strings = pa.array(numbers).cast(pa.string())
    nulls = pa.array(numbers, mask=numbers % 7 == 0)
    for values in numbers, strings[3:], nulls[5:], strings.dictionary_encode() if size < 1_000_000 else nulls:
        one, two = BloomFilter(size, 1e-3), BloomFilter(size, 1e-3)
        added = one.add_many(values)
        assert abs(two.add_many(values, threads=2) - added) <= size // 100 and one == two
        third = len(values) // 3
        half = BloomFilter(size, 1e-9)
        half.add_many(values[:third])
        found = half.contains_many(values, threads=3)
        assert (found == half.contains_many(values)).all() and found[:third].all()
        new = half.add_new(values, threads=2)
        assert (new == ~found).mean() > 0.85 and not new[:third].any() and half.contains_many(values).all()


def test_streams_of_arrow():
    table = pa.table({"s": ["a", "b", None, "a"], "i": [1, 2, 3, 1]})
    rows = [("a", 1), ("b", 2), (None, 3), ("a", 1)]
    agrees(table, rows)
    agrees(table.select(["i"]), [1, 2, 3, 1])
    agrees(table["s"], ["a", "b", None, "a"])
    agrees(table.to_batches()[0], rows)
    agrees(pa.chunked_array([["a"], [], ["b", "c"]]), ["a", "b", "c"])
    agrees(pa.chunked_array([[1], [], [2, 3]]), [1, 2, 3])
    agrees(table.slice(1, 2), rows[1:3])
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    f = BloomFilter(100, 1e-6)
    assert f.add_new(reader).tolist() == [True, True, True, False]
    # It was read to its end.
    assert f.add_new(reader).tolist() == []


@pytest.mark.parametrize("count", [0, 1, 64, 65, 3000])
def test_libraries_read_answers_where_they_lie(count):
    f = BloomFilter(4000, 1e-6)
    values = pa.array([i // 2 for i in range(count)], pa.int64())
    new = f.add_new(values, as_arrow=True)
    expected = [i % 2 == 0 for i in range(count)]
    arrays = [pa.array(new), pa.array(new)]
    text = repr(new)
    del new
    gc.collect()
    for answers in arrays:
        answers.validate(full=True)
        assert answers.type == pa.bool_() and answers.null_count == 0 and answers.to_pylist() == expected
    assert values.filter(arrays[0]).to_pylist() == list(range((count + 1) // 2)) and str(len(expected)) in text
    assert pa.chunked_array([f.contains_many(values, as_arrow=True, threads=2)]).to_pylist() == [True] * count
    polars = pytest.importorskip("polars")
    series = polars.Series(f.contains_many(values, as_arrow=True))
    assert series.dtype == polars.Boolean and series.to_list() == [True] * count


def test_answers_that_nobody_reads_are_freed():
    found = BloomFilter(10).contains_many(range(1_000_000), as_arrow=True)
    before = resident()
    for _ in range(2000):
        schema, answers = found.__arrow_c_array__()
    assert "arrow_schema" in repr(schema) and "arrow_array" in repr(answers)
    for _ in range(200):
        pa.array(BloomFilter(10).contains_many(range(1_000_000), as_arrow=True))
    assert resident() - before < 20_000_000


def resident():
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("needs Linux")
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Broken:
    """Raises in the middle of a stream."""

    def __arrow_c_stream__(self, requested_schema=None):
        def batches():
            yield pa.record_batch({"i": [1, 2]})
            raise OSError(5, "the disk is gone")

        schema = pa.schema({"i": pa.int64()})
        self.reader = pa.RecordBatchReader.from_batches(schema, batches())
        return self.reader.__arrow_c_stream__()


def test_a_stream_that_breaks_leaves_the_keys_before_it():
    f = BloomFilter(100, 1e-6)
    with pytest.raises(OSError, match="the disk is gone"):
        f.add_many(Broken())
    assert 1 in f and 2 in f


def test_capsules_that_were_used_before_are_refused():
    schema, values = pa.array([1, 2]).__arrow_c_array__()

    class Twice:
        def __arrow_c_array__(self, requested_schema=None):
            return schema, values

    f = BloomFilter(100, 1e-6)
    f.add_many(Twice())
    for _ in range(2):
        with pytest.raises(ValueError, match="used before"):
            f.add_many(Twice())

    class Wrong:
        def __arrow_c_array__(self, requested_schema=None):
            return values, schema

    with pytest.raises((ValueError, TypeError)):
        f.add_many(Wrong())


def structure(capsule, name):
    """The address of a structure of Arrow's C interface."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, name)


@pytest.mark.parametrize("kind", ["f", "g", "b", "u", "U", "z", "vu", "w:4", "tdD", "tsu:", "+s", "n", "e"])
def test_indices_of_a_dictionary_that_are_no_integers_are_refused(kind):
    class Odd:
        def __arrow_c_array__(self, requested_schema=None):
            schema, array = pa.array(["x", "y"]).dictionary_encode().__arrow_c_array__()
            self.kind = kind.encode()
            # The first field is the format.
            ctypes.c_char_p.from_address(structure(schema, b"arrow_schema")).value = self.kind
            return schema, array

    with pytest.raises(TypeError, match=f'dictionary with indices of format "{kind}": they are integers'.replace("+", ".")):
        BloomFilter(9).add_many(Odd())


def test_a_column_of_a_struct_that_is_too_short_is_refused():
    class Short:
        def __arrow_c_array__(self, requested_schema=None):
            schema, array = pa.record_batch({"i": [1], "s": ["a"]}).__arrow_c_array__()
            # The first field is the number of rows.
            ctypes.c_int64.from_address(structure(array, b"arrow_array")).value = 100
            return schema, array

    with pytest.raises(ValueError, match="struct of 0 . 100 rows has a column of 1"):
        BloomFilter(9).add_many(Short())


def test_types_of_arrow_that_are_no_keys():
    f = BloomFilter(10)
    for values in [pa.array([[1]]), pa.array([datetime.timedelta(1)]),
                   pa.array([datetime.time(1)]), pa.array([{"a": [1]}])]:
        with pytest.raises(TypeError, match="Arrow.*Cast other columns: .*Or make the filter with key=str"):
            f.add_many(values)
    g = BloomFilter(10, key=str)
    g.add_many(pa.array([decimal.Decimal(1), decimal.Decimal(2)]))
    assert "1" in g and decimal.Decimal(2) in g and 3 not in g


@pytest.mark.parametrize("make", [GuavaBloomFilter, SplitBlockBloomFilter])
def test_values_that_parquet_stores_otherwise_are_refused(make):
    f = make(100)
    day = numpy.array(["2024-05-01", "NaT"], "M8[D]")
    for values, advice in [
        (pa.array([datetime.date(2024, 5, 1)], pa.date64()), "cast.pyarrow.date32"),
        (pa.array([datetime.datetime(2024, 5, 1)], pa.timestamp("s")), "timestamp.'ms'"),
        (pa.array([datetime.date(2024, 5, 1)], pa.date64()).dictionary_encode(), "date32"),
        (pa.table({"i": [1], "d": pa.array([datetime.date(2024, 5, 1)], pa.date64())}), "date32"),
        *[(day.astype(f"M8[{unit}]"), "astype") for unit in ("s", "m", "h", "D", "M", "Y", "10ms", "15s")],
        (numpy.array([1.5], "f2"), "view.'V2'"),
        ([numpy.float16(1.5)], "V2"),
        ([numpy.datetime64("2024-05-01")], "astype"),
    ]:
        for call in f.add_many, f.contains_many, f.add_new:
            with pytest.raises(TypeError, match=advice):
                call(values)
    assert f.approx_len == 0
    for unit in "ms", "us", "ns":
        f.add_many(day.astype(f"M8[{unit}]"))
        assert day.astype(f"M8[{unit}]")[0].astype("i8").item() in f
    assert f.approx_len == 3


@pytest.mark.parametrize("make", [GuavaBloomFilter, SplitBlockBloomFilter])
def test_filters_of_other_systems_skip_nulls(make):
    nulls = pa.array([1, None, 3] * 700)
    masked = numpy.ma.masked_array([1, 2, 3] * 700, [False, True, False] * 700)
    items = [1, None, 3] * 700
    for values in nulls, masked, items, iter(items), nulls.dictionary_encode(), pa.chunked_array([nulls[:5], nulls[5:]]):
        f = make(100)
        again = items if not isinstance(values, (pa.Array, pa.ChunkedArray, numpy.ndarray)) else values
        assert f.add_new(values).tolist() == [True, False, True] + [False] * 2097
        for threads in 1, 2:
            assert f.contains_many(again, threads=threads).tolist() == [True, False, True] * 700
        assert f.approx_len == 2 and f.add_many(again) == 0
        assert 1 in f and None not in f and b"\0" not in f and 2 not in f
    f = make(100)
    for null in None, numpy.datetime64("NaT"), numpy.ma.masked:
        assert not f.add(null) and null not in f
    assert f.add_many(pa.nulls(3)) == f.add_many(numpy.array(["NaT"], "M8[us]")) == f.add_many([None]) == 0
    assert f.approx_len == 0
    # NaN is a value there.
    assert f.add(float("nan")) and f.contains_many(numpy.array([float("nan")])).all()


def test_sparks_filter_takes_the_columns_that_spark_takes():
    one = SparkBloomFilter(1000)
    one.update([5, -3, 0, "a", "grün", "x" * 40])
    for dtype in "i1", "i2", "i4", "i8", ">i4":
        assert one.contains_many(numpy.array([5, -3, 0, 9], dtype)).tolist() == [True] * 3 + [False]
    texts = ["a", "grün", None, "x" * 40, "b"]
    found = [True, True, False, True, False]
    for kind in pa.string(), pa.large_string(), pa.string_view(), pa.binary():
        assert one.contains_many(pa.array(texts).cast(kind)).tolist() == found
    assert one.contains_many(pa.array(texts).dictionary_encode()).tolist() == found
    assert one.contains_many(numpy.array(["a", "grün", "b"])).tolist() == [True, True, False]
    assert one.contains_many(pa.nulls(2)).tolist() == [False, False]
    assert one.contains_many(pa.array([5, None, -3, 77], pa.int32())).tolist() == [True, False, True, False]

    filled = SparkBloomFilter(3000)
    assert filled.add_new(pa.array([1, None, 3] * 700)).tolist() == [True, False, True] + [False] * 2097
    assert filled.contains_many([1, None, 3] * 700, threads=2).tolist() == [True, False, True] * 700
    assert filled.approx_len == 2
    keys = numpy.random.default_rng(1).integers(-(2**63), 2**63 - 1, 3000)
    one = SparkBloomFilter(3000)
    for key in keys.tolist():
        one.add(key)
    many = SparkBloomFilter(3000)
    many.add_many(keys, threads=2)
    assert one == many

    day = datetime.datetime(2024, 5, 1)
    for bad in [numpy.array([1.5]), numpy.array([1.5], "f2"), pa.array([1.5], pa.float32()), pa.array([day.date()]),
                pa.array([day]), pa.array([day], pa.timestamp("s")), numpy.array([day], "M8[us]"), [numpy.float32(1)],
                pa.array([1.5]).dictionary_encode(), pa.table({"a": [1], "b": ["x"]}), [numpy.datetime64(day)]]:
        for call in many.add_many, many.contains_many, many.add_new:
            with pytest.raises(TypeError, match="integers, strings and bytes only"):
                call(bad)
    assert one == many


def test_parquets_filter_hashes_columns_by_their_type():
    def filled(values):
        f = SplitBlockBloomFilter(100)
        f.add_many(values)
        return f

    assert b"\0\0\xc0\x3f" in filled(pa.array([1.5], pa.float32()))
    assert 1.5 in filled(pa.array([1.5])) and 1 not in filled(pa.array([1.0]))
    assert b"\1\0\0\0" in filled(pa.array([datetime.date(1970, 1, 2)]))
    assert 1_000_000 in filled(pa.array([datetime.datetime(1970, 1, 1, 0, 0, 1)]))


def test_frames_of_polars():
    pl = pytest.importorskip("polars")
    names = ["a", None, "grün", "x" * 40, "a"]
    agrees(pl.Series(names), names)
    agrees(pl.Series(names, dtype=pl.Categorical), names)
    agrees(pl.Series(range(SIZE)), range(SIZE))
    agrees(pl.Series(MOMENTS), MOMENTS)
    agrees(pl.DataFrame({"s": names, "i": range(5)}), list(zip(names, range(5))))
    frame = pl.DataFrame({"s": ["a", "b", "a"]})
    f = BloomFilter(10)
    assert frame.filter(f.add_new(frame["s"]))["s"].to_list() == ["a", "b"]


def test_frames_of_pandas():
    pd = pytest.importorskip("pandas")
    names = ["a", None, "grün", "x" * 40, "a"]
    agrees(pd.Series(names), names)
    agrees(pd.Series(names, dtype="string"), names)
    agrees(pd.Series(names).astype("category"), names)
    agrees(pd.Series(range(SIZE)), range(SIZE))
    agrees(pd.Series([1, None, 3], dtype="Int64"), [1, None, 3])
    agrees(pd.Series(names, dtype=pd.ArrowDtype(pa.string())), names)
    agrees(pd.Series([uuid.UUID(int=5), ("a", 1)]), [uuid.UUID(int=5), ("a", 1)])
    agrees(pd.Series(pd.to_datetime(["2024-05-01", None])), [datetime.datetime(2024, 5, 1), None])
    agrees(pd.Index([3, 4]), [3, 4])
    large = pd.Series([2**60 + 1, None, 2**63 - 1], dtype="Int64")
    of_arrow = large.astype("int64[pyarrow]")
    for column in large, large.array, pd.Index(large), of_arrow.array, pd.Index(of_arrow), pd.Categorical(large), pd.CategoricalIndex(large):
        agrees(column, [2**60 + 1, None, 2**63 - 1])
    sparse = pd.Series([0, 5, 0, 7], dtype="Sparse[int64]")
    agrees(sparse, [0, 5, 0, 7])
    agrees(pd.DataFrame({"x": sparse, "n": range(4)}), [(0, 0), (5, 1), (0, 2), (7, 3)])
    frame = pd.DataFrame({"s": names, "i": range(5)}, index=[9, 8, 7, 6, 5])
    agrees(frame, list(zip(names, range(5))))
    for one in pd.Timestamp("2024-05-01"), pd.Interval(1, 2), pd.NA:
        with pytest.raises(TypeError, match="not iterable"):
            filled(one)
    f = BloomFilter(10)
    assert frame[f.add_new(frame["s"])]["i"].tolist() == [0, 1, 2, 3]


def test_pandas_without_pyarrow():
    pytest.importorskip("pandas")
    program = """
import sys
sys.modules["pyarrow"] = None
import pandas as pd
from lanebloom import BloomFilter
values = [2**60 + 1, None, 2**63 - 1]
large = pd.Series(values, dtype="Int64")
for column in large, large.array, pd.Index(large), large.astype("category"):
    f = BloomFilter(10, 1e-9)
    assert f.add_many(column) == 3 and all(value in f for value in values), type(column)
f = BloomFilter(10, 1e-9)
assert f.add_many(pd.DataFrame({"a": large, "b": ["x", None, "z"]})) == 3
assert (2**60 + 1, "x") in f and (None, None) in f
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_null_and_nan_are_one_key_in_every_library():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    nan = float("nan")
    sources = [
        pd.DataFrame({"x": [1.5, nan]}),
        pd.DataFrame({"x": [1.5, nan]})["x"],
        pd.DataFrame({"x": pd.array([1.5, None], "Float64")}),
        pd.Series([1.5, pd.NA], dtype="Float64"),
        pd.Series([1.5, pd.NA], dtype=object),
        pd.DataFrame({"x": pd.Series([1.5, pd.NA], dtype=object)}),
        pl.DataFrame({"x": [1.5, nan]}),
        pl.DataFrame({"x": [1.5, None]}),
        pl.Series([1.5, nan]),
        pl.Series([1.5, None]),
        pa.array([1.5, None]),
        pa.array([1.5, nan]),
        numpy.array([1.5, nan]),
        numpy.array([1.5, None], object),
        [1.5, nan],
        [1.5, None],
        [1.5, numpy.float32("nan")],
        [1.5, pd.NA],
        [1.5, pd.NaT],
    ]
    expected = filled([1.5, None])
    for source in sources:
        assert filled(source) == expected, source
        assert expected.contains_many(source).all(), source
    rows = [(1.5, "a"), (None, None)]
    for source in [
        pd.DataFrame({"x": [1.5, nan], "s": ["a", None]}),
        pd.DataFrame({"x": pd.array([1.5, None], "Float64"), "s": ["a", pd.NA]}),
        pl.DataFrame({"x": [1.5, nan], "s": ["a", None]}),
        pl.DataFrame({"x": [1.5, None], "s": ["a", None]}),
        pa.table({"x": [1.5, None], "s": pa.array(["a", None]).dictionary_encode()}),
        pa.table({"x": [1.5, nan], "s": pa.DictionaryArray.from_arrays([0, 1], ["a", None])}),
    ]:
        assert filled(source) == filled(rows), source
        # The first part of a tuple too, which has a length before it if it is text.
        turned = source[["s", "x"]] if not isinstance(source, pa.Table) else source.select(["s", "x"])
        assert filled(turned) == filled([("a", 1.5), (None, None)]), source
    # Integers that pandas makes floats because one is missing.
    assert filled(pd.DataFrame({"i": [1, None]})) == filled(pl.Series([1, None])) == filled([1, None])
    # A filter of Parquet takes NaN as a value, in a frame of pandas and in its column alike.
    f = SplitBlockBloomFilter(100)
    frame = pd.DataFrame({"x": [1.5, nan]})
    f.add_many(frame)
    assert f.contains_many(frame["x"]).all() and f.contains_many(frame).all()


def test_relations_of_duckdb():
    duckdb = pytest.importorskip("duckdb")
    names = "'name ' || (i % 7000)::varchar"
    query = f"select case when i % 5 = 0 then null else {names} end as s, case when i % 11 = 0 then null else i % 9000 end as i from range(20000) t(i)"
    relation = duckdb.sql(query)
    rows = relation.fetchall()
    # The relation as a stream, as a reader of several batches and as a table of pyarrow.
    batches = functools.partial(relation.to_arrow_reader, 4096)
    assert len(list(batches())) > 3
    for source in lambda: relation, batches, relation.to_arrow_table:
        f = BloomFilter(40_000, 1e-6)
        assert f.add_many(source()) == len(set(rows))
        assert f.contains_many(source()).all() and f.contains_many(rows).all()
    columns = list(zip(*rows))
    for name, keys in zip("si", columns):
        f = BloomFilter(40_000, 1e-6)
        new = f.add_new(relation.select(name)).tolist()
        assert sum(new) == len(set(keys)) and new[:50] == [key not in keys[:i] for i, key in enumerate(keys[:50])]
        assert None in f and all(key in f for key in keys)
    types = "date '2024-05-01', timestamp '2024-05-01 01:02:03', true, 1.5::float, '\\x01z'::blob, 'b'::enum('a', 'b'), 7::utinyint"
    for kind in types.split(", '")[0].split(", ") + ["'\\x01z'::blob", "'b'::enum('a', 'b')", "7::utinyint"]:
        relation = duckdb.sql(f"select {kind} as x union all select null")
        f = BloomFilter(100, 1e-6)
        assert f.add_many(relation) == 2
        assert all(key in f for (key,) in relation.fetchall()), kind
    f = BloomFilter(9, 1e-6)
    assert f.add_many(duckdb.sql("select sum(i) from range(9) t(i)")) == 1 and 36 in f and 35 not in f


def test_the_interpreter_runs_on_while_a_producer_works(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    size = 10_000_000
    parquet.write_table(pa.table({"i": numpy.arange(size) % 1000}), tmp_path / "numbers.parquet", row_group_size=size)
    numbers = dataset.field("i")
    wanted = numbers * numbers / 991 * 991 == numbers * numbers
    reader = dataset.dataset(tmp_path / "numbers.parquet").scanner(filter=wanted, batch_size=size).to_reader()
    f = BloomFilter(1000, 1e-6)
    # A thread that waits for the lock comes at the start and at the end.
    assert steps_beside(lambda: f.add_many(reader)) > 10
    assert 0 in f and 991 in f and 990 not in f


def test_bitmaps_take_integers_only():
    ids = Bitmap(1000)
    agrees(numpy.arange(0, 900, 7), range(0, 900, 7), lambda: Bitmap(1000))
    agrees(pa.array([5, 900, 5]), [5, 900, 5], lambda: Bitmap(1000))
    agrees(numpy.ma.masked_array([5, 900]), [5, 900], lambda: Bitmap(1000))
    agrees(numpy.array([True, False]), [numpy.True_, numpy.False_], lambda: Bitmap(1000))
    for values in [numpy.array([1.0]), pa.array([1, None]), pa.array(["a"]), ["a"], [None], [numpy.array(1.0)], [numpy.float64(1)]]:
        with pytest.raises(TypeError, match="integers only"):
            ids.add_many(values)
    with pytest.raises(ValueError, match="^1000 is not in this bitmap, which holds integers from 0 to 999$"):
        ids.add_many(numpy.array([1000]))
    with pytest.raises(ValueError, match="^-1 is not"):
        ids.add(-1)
    assert len(ids) == 0 and -1 not in ids and 1000 not in ids


@pytest.mark.parametrize("make", [GuavaBloomFilter, SplitBlockBloomFilter])
def test_integers_that_have_no_four_bytes_are_refused(make):
    ends = [-(2**31), -1, 0, 2**31 - 1, 2**32 - 1]
    f = make(100, int_bytes=4)
    f.update(ends)
    assert f.contains_many(numpy.array(ends)).all() and all(key in f for key in ends)
    for bad in -(2**31) - 1, 2**32, 2**40 + 1, -(2**63), 2**63 - 1:
        message = f"^{bad}: a filter with int_bytes=4 takes integers from -2147483648 to 4294967295$"
        f = make(100, int_bytes=4)
        for call in (
            f.add,
            f.__contains__,
            lambda bad: f.update([7, bad]),
            lambda bad: f.update(iter([8, bad])),
            lambda bad: f.contains_many([7] * 300 + [bad]),
            lambda bad: f.add_many(numpy.array([1, bad])),
            lambda bad: f.add_new(numpy.array([1, bad]), threads=2),
            lambda bad: f.contains_many(array.array("q", [bad])),
            lambda bad: f.contains_many(pa.array([1, None, bad])),
            lambda bad: f.contains_many(pa.array([1, bad]).dictionary_encode()),
            lambda bad: f.add(numpy.int64(bad)),
        ):
            with pytest.raises(ValueError, match=message):
                call(bad)
        # The keys of a list before the bad one are in, as in a set.
        assert 7 in f and 8 in f and 1 not in f
    assert f.add_many(pa.array([5, 6], pa.int64())) == 2
    # Values below a null are not keys.
    below = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\1"), pa.array([5, 2**40]).buffers()[1]])
    assert make(9, int_bytes=4).add_many(below) == 1


@pytest.mark.parametrize("make", [GuavaBloomFilter, SplitBlockBloomFilter])
def test_integers_beyond_64_bits_are_refused_by_filters_of_other_systems(make):
    f = make(100)
    f.update([-(2**63), 2**64 - 1])
    for bad in 2**64, -(2**63) - 1, 2**200:
        for call in f.add, f.__contains__, lambda bad: f.update([bad]), lambda bad: f.add((1, bad)):
            with pytest.raises(ValueError, match=f"^{bad}: .*from -9223372036854775808 to 18446744073709551615$"):
                call(bad)
