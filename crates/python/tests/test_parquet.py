"""SplitBlockBloomFilter.from_parquet: the values of every type of column in files of pyarrow, and files that are none."""

import datetime as dt
import decimal
import os
import pickle
import struct
import uuid

import pytest

from common import damaged
from lanebloom import SplitBlockBloomFilter

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
np = pytest.importorskip("numpy")

D = decimal.Decimal
UTC = dt.timezone.utc
NAMES = iter(range(10**9))
ROWS = 200


def read(path, column="x", row_group=0):
    return SplitBlockBloomFilter.from_parquet(path, column, row_group)


def written(tmp_path, array, column="x", **options):
    path = tmp_path / f"{next(NAMES)}.parquet"
    table = pa.table({"before": pa.nulls(len(array), pa.int32()), "x": array})
    filters = {column: {"ndv": ROWS, "fpp": 1e-9}}
    pq.write_table(table, path, bloom_filter_options=filters, **options)
    return path


def moments(unit):
    step = 86_399_007_000 if unit == "ms" else 86_399_007_001
    return [dt.datetime(1969, 12, 30, 23, tzinfo=UTC) + dt.timedelta(microseconds=step * i) for i in range(ROWS)]


# Name: the type, its values, some that are absent, a value of another type, a value out of range.
CASES = {
    "int32": (pa.int32(), [i * 10**7 - 2**30 for i in range(ROWS)], [5, -5], 5.0, 2**31),
    "int8": (pa.int8(), range(-100, 100), [101], "5", 128),
    "uint16": (pa.uint16(), range(60_000, 60_200), [5], 5.0, -1),
    "uint32": (pa.uint32(), range(2**32 - ROWS, 2**32), [5], True, 2**32),
    "int64": (pa.int64(), [i * 2**54 - 2**60 for i in range(ROWS)], [5], D(5), 2**63),
    "uint64": (pa.uint64(), range(2**64 - ROWS, 2**64), [5], None, -1),
    "float": (pa.float32(), [i / 8 for i in range(ROWS)], [-1.5, 1e9], "1.5", 0.1),
    "double": (pa.float64(), [i / 7 for i in range(1, ROWS)], [-1.5, 0.0, 1e300], b"12345678", 2**53 + 1),
    "float16": (pa.float16(), [np.float16(i / 8) for i in range(ROWS)], [-1.5], "1", 0.1),
    "string": (pa.string(), [f"é{i}" for i in range(ROWS)], ["", "é"], 5, None),
    "binary": (pa.binary(), [b"\0\xff%d" % i for i in range(ROWS)], [b""], 5.0, None),
    "fixed": (pa.binary(5), [b"%05d" % i for i in range(ROWS)], [b"ABCDE"], "00000", b"0000"),
    "date": (pa.date32(), [dt.date(1960, 1, 1) + dt.timedelta(50 * i) for i in range(ROWS)], [dt.date(9999, 12, 31)], 5, dt.datetime(2024, 1, 1, 1)),
    "time32": (pa.time32("ms"), [dt.time(i // 24, 5, 7, 9000) for i in range(ROWS)], [dt.time(1)], 5, dt.time(0, 0, 0, 1)),
    "time64": (pa.time64("us"), [dt.time(i // 24, 5, 7, i) for i in range(ROWS)], [dt.time(1)], dt.date(1970, 1, 1), None),
    "timestamp ms": (pa.timestamp("ms"), moments("ms"), [dt.datetime(1970, 1, 1)], 5, dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
    "timestamp us": (pa.timestamp("us", "UTC"), moments("us"), [dt.date(2000, 1, 1)], "2000", None),
    "timestamp ns": (pa.timestamp("ns"), moments("ns"), [dt.datetime(1970, 1, 1)], 5.0, None),
    "decimal(9,2)": (pa.decimal128(9, 2), [D(i * 1_000_003 % 10**9 - 10**8).scaleb(-2) for i in range(ROWS)], [D("0.01"), D("-0.5")], 0.5, D("0.001")),
    "decimal(18,0)": (pa.decimal128(18, 0), [D(i * 10**15 - 5) for i in range(ROWS)], [3, D(7)], "5", 10**18),
    "decimal(38,10)": (pa.decimal128(38, 10), [D(i * 10**20 - 1).scaleb(-10) for i in range(ROWS)], [D(1), 5], 1.0, D("1e-11")),
    "uuid": (pa.uuid(), [uuid.UUID(int=i * 2**100) for i in range(ROWS)], [uuid.UUID(int=1)], str(uuid.UUID(int=0)), b"short"),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_found_or_refused(tmp_path, name):
    kind, values, absent, other, beyond = CASES[name]
    values = list(values)
    array = pa.array([None if value is None else value.bytes if isinstance(value, uuid.UUID) else value for value in values], kind)
    variants = [{}, {"store_decimal_as_integer": True}] if name.startswith("decimal") else [{}, {"use_dictionary": False}]
    for options in variants:
        f = read(written(tmp_path, array, **options))
        assert all(value in f for value in values)
        assert f.contains_many(values).all() and f.contains_many(array).all()
        assert not any(value in f for value in absent), absent
        assert None not in f
        assert pickle.loads(pickle.dumps(f)) == f and values[0] in pickle.loads(pickle.dumps(f))
        if other is not None:
            for call in f.__contains__, f.add, lambda value: f.contains_many([value]):
                with pytest.raises(TypeError, match="keys of <column x: .*> are"):
                    call(other)
        if beyond is not None:
            for call in f.__contains__, f.add:
                with pytest.raises(ValueError, match=r"<column x: "):
                    call(beyond)
        assert f.add(absent[0]) and absent[0] in f


def test_scalars_and_arrays_of_libraries(tmp_path):
    pd = pytest.importorskip("pandas")
    for unit in "ms", "us", "ns":
        array = pa.array(moments(unit), pa.timestamp(unit))
        f = read(written(tmp_path, array))
        numpy = array.to_numpy()
        assert f.contains_many(numpy).all() and f.contains_many(numpy.astype("M8[ns]")).all() and numpy[3] in f
        assert f.contains_many(pd.Series(numpy)).all() and pd.Timestamp(numpy[3]) in f
        assert f.contains_many(pd.Series(numpy, dtype=f"datetime64[{unit}, UTC]")).all()
        assert pd.NaT not in f and pd.NA not in f and np.datetime64("NaT") not in f
    nanoseconds = pa.array([1, 1_700_000_000_123_456_789], pa.timestamp("ns"))
    f = read(written(tmp_path, nanoseconds))
    assert f.contains_many(nanoseconds).all() and pd.Timestamp(1_700_000_000_123_456_789) in f
    assert pd.Timestamp(1_700_000_000_123_456_788) not in f
    for kind in "i4", "u2", "f4", "f8":
        numbers = np.arange(ROWS).astype(kind)
        f = read(written(tmp_path, pa.array(numbers)))
        assert f.contains_many(numbers).all() and f.contains_many(pd.Series(numbers)).all() and numbers[7] in f
        if kind == "f4":
            with pytest.raises(ValueError, match=r"0.1: .* cannot hold it exactly: pass numpy.float32\(0.1\)"):
                0.1 in f
            assert np.float32(0.1) not in f
    days = np.arange(ROWS).astype("M8[D]")
    f = read(written(tmp_path, pa.array(days)))
    assert f.contains_many(days).all() and days[3] in f and pd.Timestamp(days[3]) in f


def test_either_zero_is_found_by_the_other(tmp_path):
    for kind in pa.float16(), pa.float32(), pa.float64():
        for zero in 0.0, -0.0:
            f = read(written(tmp_path, pa.array(np.array([zero, 1.5]).astype("f2") if kind == pa.float16() else [zero, 1.5], kind)))
            assert 0.0 in f and -0.0 in f and 0 in f and 1.5 in f and 2.5 not in f
        f = read(written(tmp_path, pa.array(np.array([1.5]).astype("f2") if kind == pa.float16() else [1.5], kind)))
        assert 0.0 not in f and -0.0 not in f


def test_int96_booleans_and_filters_of_a_part_of_a_block():
    """Columns that pyarrow writes no filter for: by the schema element that others write."""
    from lanebloom import _parquet

    f = SplitBlockBloomFilter(100)
    f.update([struct.pack("<qI", 3_723_000_000_001, 2_440_588 + day) for day in (-1, 0, 19_000)])
    typed = _parquet.typed(f, "t", (3, 0, 0, 0, 0, 0, 0, 0), False)
    for day in -1, 0, 19_000:
        moment = dt.datetime(1970, 1, 1, 1, 2, 3) + dt.timedelta(day)
        assert np.datetime64(moment, "ns") + np.timedelta64(1, "ns") in typed and moment not in typed
    f = SplitBlockBloomFilter(100)
    assert _parquet.typed(f, "b", (0, 0, 0, 0, 0, 0, 0, 0), False) is None
    f.update([b"\1"])
    typed = _parquet.typed(f, "b", (0, 0, 0, 0, 0, 0, 0, 0), False)
    assert True in typed and False not in typed and np.True_ in typed
    with pytest.raises(TypeError, match="keys of <column b: BOOLEAN> are bool"):
        1 in typed
    # Decimals of any length.
    f = SplitBlockBloomFilter(100)
    f.update([b"\0", b"\xff", b"\0\x80", b"\x80", b"\xff\x7f"])
    typed = _parquet.typed(f, "d", (6, 0, 5, 0, 1, 30, 0, 0), False)
    for number in 0, -1, 128, -128, -129:
        assert D(number).scaleb(-1) in typed
    with pytest.raises(ValueError):
        D("1e999999999") in typed
    with pytest.raises(ValueError):
        D("NaN") in typed


@pytest.mark.parametrize(
    "numbers, message",
    [
        ((8, 0, 0, 0, 0, 0, 0, 0), "has the physical type 8"),
        ((7, 5, 14, 0, 0, 0, 0, 0), "type UUID in 5 bytes"),
        ((6, 0, 6, 0, 0, 0, 0, 0), "type DATE in BYTE_ARRAY, which Parquet does not have"),
        ((2, 0, 5, 0, 2**31, 2**31, 0, 0), "decimals of 2147483648 digits, 2147483648 after"),
        ((7, 2**31 - 1, 5, 0, 2, 9, 0, 0), "in 2147483647 bytes"),
        ((1, 0, 10, 0, 0, 0, 0, 0), "integers of 0 bits"),
        ((2, 0, 8, 0, 0, 0, 9, 0), "times of an unknown unit"),
    ],
)
def test_types_that_are_none_are_errors(numbers, message):
    from lanebloom import _parquet

    with pytest.raises(ValueError, match=f"column x .*{message}"):
        _parquet.typed(SplitBlockBloomFilter(10), "x", numbers, False)


def test_columns_and_row_groups_are_named_by_their_paths(tmp_path):
    path = tmp_path / "nested.parquet"
    table = pa.table({
        "l": pa.array([[1, 2], None, [3]], pa.list_(pa.int64())),
        "s": pa.array([{"a": "x", "b": 1}, None, {"a": "y", "b": 2}], pa.struct([("a", pa.string()), ("b", pa.int32())])),
        "n": pa.array([1, 2, 3], pa.int64()),
    })
    options = {name: {"ndv": 9, "fpp": 1e-9} for name in ("l.list.element", "s.a", "s.b")}
    pq.write_table(table, path, row_group_size=2, bloom_filter_options=options)
    assert 2 in read(path, "l.list.element") and 3 not in read(path, "l.list.element") and 3 in read(path, "l.list.element", 1)
    assert "x" in read(path, "s.a", 0) and "y" in read(path, "s.a", 1) and 2 in read(path, "s.b", 1)
    assert read(path, "n") is None
    for column in "l", "s", "", "N", "s.a.":
        with pytest.raises(ValueError, match=f'no column "{column}": of a list it is'):
            read(path, column)
    with pytest.raises(ValueError, match="row group 2 of a file that has 2"):
        read(path, "n", 2)
    for number in -1, 2**64:
        with pytest.raises(ValueError, match="an integer from 0"):
            read(path, "n", number)
    twice = tmp_path / "twice.parquet"
    pq.write_table(pa.table({"a.b": [1], "a": pa.array([{"b": 1}])}), twice)
    with pytest.raises(ValueError, match='two columns of the file have the path "a.b"'):
        read(twice, "a.b")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none")


def test_files_that_are_damaged_are_errors_or_read(tmp_path):
    good = written(tmp_path, pa.array(range(ROWS), pa.int64())).read_bytes()
    path = tmp_path / "bad.parquet"
    footer = struct.unpack("<I", good[-8:-4])[0]
    for bad in b"", b"PAR1", b"x" * 20, good[:-1], good[:-8] + struct.pack("<I", 2**31) + b"PAR1", good[:-4] + b"PARE":
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="not a Parquet file|a footer of|encrypted|no row groups|footer"):
            read(path)
    refused = 0
    for bad in damaged(good[-8 - footer : -8], 400):
        path.write_bytes(good[: -8 - footer] + bad + struct.pack("<I", len(bad)) + b"PAR1")
        try:
            read(path)
        except (ValueError, OSError):
            refused += 1
    assert refused > 300
    # A list of 2^31 row groups in a footer of few bytes.
    for bad in b"\x29\xfc\xff\xff\xff\xff\x07", b"\x49\xfc\xff\xff\xff\xff\x07", b"\x1c" * 5000, b"\x19\x99" * 3000, b"\x18\xff\xff\xff\xff\x0f":
        path.write_bytes(b"PAR1" + bad + struct.pack("<I", len(bad)) + b"PAR1")
        with pytest.raises(ValueError, match="the file's footer has|the bytes end"):
            read(path)


def test_bits_without_a_header():
    f = SplitBlockBloomFilter(1000)
    f.update(["ann", 7])
    data = f.to_bytes()
    bits = data[len(data) - f.nbytes :]
    again = SplitBlockBloomFilter.from_bits(bits)
    assert again == f and "ann" in again and 7 in again and 8 not in again
    narrow = SplitBlockBloomFilter(1000, int_bytes=4)
    narrow.add(7)
    bits = narrow.to_bytes()[-narrow.nbytes :]
    assert 7 in SplitBlockBloomFilter.from_bits(bits, int_bytes=4) and 7 not in SplitBlockBloomFilter.from_bits(bits)
    for wrong in b"", bits[:-1], bits + b"x":
        with pytest.raises(ValueError, match="are not a whole number of blocks"):
            SplitBlockBloomFilter.from_bits(wrong)


def test_an_untyped_filter_advises_no_cast_that_makes_other_keys():
    f = SplitBlockBloomFilter(100)
    decimals = pa.array([D("1.50")], pa.decimal128(9, 2))
    times = pa.array([dt.time(1)], pa.time64("us"))
    calls = [lambda: f.contains_many(decimals), lambda: f.add_many(times), lambda: D("1.5") in f, lambda: f.add(dt.time(1)), lambda: f.update([D(1)])]
    for call in calls:
        with pytest.raises(TypeError, match="does not know how a file stores it. SplitBlockBloomFilter.from_parquet") as raised:
            call()
        assert "cast" not in str(raised.value).lower() and "key=str" not in str(raised.value)
