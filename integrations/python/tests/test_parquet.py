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


def test_nanoseconds_of_columns_are_found_or_refused(tmp_path):
    pd, pl, duckdb = pytest.importorskip("pandas"), pytest.importorskip("polars"), pytest.importorskip("duckdb")
    stamps = pa.array([1_577_836_800_123_456_789, 1001, None], pa.timestamp("ns"))
    times = pa.array([123_456_789, 1001, None], pa.time64("ns"))
    by_stamps, by_times = written(tmp_path, stamps), written(tmp_path, times)
    refused = [
        (by_stamps, pl.Series(stamps)),
        (by_stamps, pl.DataFrame({"x": pl.Series(stamps)})),
        (by_stamps, duckdb.sql("select make_timestamp_ns(1577836800123456789)")),
        (by_times, pl.Series(times)),
        (by_times, times),
        (by_times, pa.chunked_array([times])),
        (by_times, pd.Series(times, dtype=pd.ArrowDtype(times.type))),
        (by_times, duckdb.sql("select '00:00:00.123456789'::time_ns")),
    ]
    for path, keys in refused:
        f = read(path)
        for call in f.contains_many, f.add_many, lambda keys: SplitBlockBloomFilter.row_groups(path, "x", keys):
            with pytest.raises(TypeError, match=r"have no nanoseconds.*pyarrow's scalars: list\(series.to_arrow\(\)\)"):
                call(keys)
    by_stamps, by_times = read(by_stamps), read(by_times)
    for f, array in (by_stamps, stamps), (by_times, times):
        for scalars in list(array), list(pl.Series(array).to_arrow()):
            assert f.contains_many(scalars).tolist() == [True, True, False] and scalars[0] in f and scalars[2] not in f
        for absent in array[0].value - 1, array[0].value // 1000 * 1000, 1000:
            assert pa.scalar(absent, array.type) not in f
    for keys in stamps, stamps.to_numpy(zero_copy_only=False), stamps.to_pandas():
        assert by_stamps.contains_many(keys).tolist() == [True, True, False]
    # A column of microseconds holds no nanoseconds.
    wider = read(written(tmp_path, pa.array([1], pa.time64("us"))))
    assert pa.scalar(1000, pa.time64("ns")) in wider and pa.scalar(1, pa.time64("us")) in wider and dt.time(0, 0, 0, 1) in wider
    with pytest.raises(ValueError, match="cannot hold it exactly"):
        times[0] in wider
    days = read(written(tmp_path, pa.array([dt.date(1970, 1, 1)])))
    for f, other in (by_times, stamps[0]), (by_times, np.datetime64(1, "ns")), (by_stamps, times[0]), (days, times[0]):
        with pytest.raises(TypeError, match="keys of <column x: .*> are"):
            other in f


def test_either_zero_is_found_by_the_other(tmp_path):
    for kind in pa.float16(), pa.float32(), pa.float64():
        for zero in 0.0, -0.0:
            path = written(tmp_path, pa.array(np.array([zero, 1.5]).astype("f2") if kind == pa.float16() else [zero, 1.5], kind))
            for asked in [0.0], [-0.0], [0], [2.5, -0.0]:
                assert SplitBlockBloomFilter.row_groups(path, "x", asked) == [0]
            assert SplitBlockBloomFilter.row_groups(path, "x", [2.5]) == []
            f = read(path)
            assert 0.0 in f and -0.0 in f and 0 in f and 1.5 in f and 2.5 not in f
        f = read(written(tmp_path, pa.array(np.array([1.5]).astype("f2") if kind == pa.float16() else [1.5], kind)))
        assert 0.0 not in f and -0.0 not in f


def test_a_writers_filter_has_both_zeros():
    for kind in "f2", "f4", "f8":
        for zero in 0.0, -0.0:
            f = SplitBlockBloomFilter(1000, 1e-6)
            stored = lambda value: np.array([value], kind).tobytes()
            f.add(stored(1.5))
            assert not f.add_both_zeros()
            f.add(stored(zero))
            assert f.add_both_zeros() and not f.add_both_zeros() and f.contains_many([stored(0.0), stored(-0.0), stored(1.5)]).all()
            assert f.approx_len == 3 and stored(2.5) not in f


def test_a_nan_may_be_in_every_filter(tmp_path):
    """0.0 / 0.0 of a processor is another NaN than that of Python."""
    for kind, bits in ("f2", 0xFE01), ("f4", 0xFFC00000), ("f8", 0xFFF8 << 48):
        values = np.array([bits], kind.replace("f", "u")).view(kind)
        path = written(tmp_path, pa.array(values))
        assert float("nan") in read(path) and -float("nan") in read(path) and values[0] in read(path) and 1.5 not in read(path)
        assert SplitBlockBloomFilter.row_groups(path, "x", [1.5]) == []
        assert SplitBlockBloomFilter.row_groups(path, "x", [1.5, float("nan")]) == [0]


def test_int96_booleans_and_filters_of_a_part_of_a_block():
    """Columns that pyarrow writes no filter for: by the schema element that others write."""
    from lanebloom import _parquet

    f = SplitBlockBloomFilter(100)
    f.update([struct.pack("<qI", 3_723_000_000_001, 2_440_588 + day) for day in (-1, 0, 19_000)])
    typed = _parquet.typed(f, _parquet.Key("t", (3, 0, 0, 0, 0, 0, 0, 0), False))
    for day in -1, 0, 19_000:
        moment = dt.datetime(1970, 1, 1, 1, 2, 3) + dt.timedelta(day)
        assert np.datetime64(moment, "ns") + np.timedelta64(1, "ns") in typed and moment not in typed
    f = SplitBlockBloomFilter(100)
    assert _parquet.typed(f, _parquet.Key("b", (0, 0, 0, 0, 0, 0, 0, 0), False)) is None
    f.update([b"\1"])
    typed = _parquet.typed(f, _parquet.Key("b", (0, 0, 0, 0, 0, 0, 0, 0), False))
    assert True in typed and False not in typed and np.True_ in typed
    with pytest.raises(TypeError, match="keys of <column b: BOOLEAN> are bool"):
        1 in typed
    # Decimals of any length.
    f = SplitBlockBloomFilter(100)
    f.update([b"\0", b"\xff", b"\0\x80", b"\x80", b"\xff\x7f"])
    typed = _parquet.typed(f, _parquet.Key("d", (6, 0, 5, 0, 1, 30, 0, 0), False))
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
        _parquet.Key("x", numbers, False)


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
        with pytest.raises(ValueError, match=f"^row_group={number}: an integer from 0 to "):
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
        try:
            SplitBlockBloomFilter.row_groups(path, "x", [7])
        except (ValueError, OSError):
            pass
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
    calls = [lambda: True in f, lambda: f.add(np.False_), lambda: f.update([True]), lambda: f.add_many(np.array([True])), lambda: f.contains_many(pa.array([True, None]))]
    calls += [lambda: f.contains_many(decimals), lambda: f.add_many(times), lambda: D("1.5") in f, lambda: f.add(dt.time(1)), lambda: f.update([D(1)])]
    for call in calls:
        with pytest.raises(TypeError, match="does not know how a file stores it. SplitBlockBloomFilter.from_parquet") as raised:
            call()
        assert "cast" not in str(raised.value).lower() and "key=str" not in str(raised.value)


def grouped(tmp_path, arrays, **options):
    """A file with a row group for each array."""
    path = tmp_path / f"{next(NAMES)}.parquet"
    schema = pa.schema([("before", pa.int32()), ("x", arrays[0].type)])
    with pq.ParquetWriter(path, schema, bloom_filter_options={"x": {"ndv": ROWS, "fpp": 1e-9}}, **options) as file:
        for array in arrays:
            file.write_table(pa.table({"before": pa.nulls(len(array), pa.int32()), "x": array}, schema))
    return path


@pytest.mark.parametrize("name", CASES)
def test_row_groups_are_those_that_have_a_value(tmp_path, name):
    kind, values, absent, other, beyond = CASES[name]
    values = list(values)
    stored = [value.bytes if isinstance(value, uuid.UUID) else value for value in values]
    path = grouped(tmp_path, [pa.array(stored[i::4], kind) for i in range(4)])
    groups = lambda values: SplitBlockBloomFilter.row_groups(path, "x", values)
    holders = lambda *wanted: sorted({i % 4 for i, value in enumerate(values) if value in wanted})
    for i in range(8):
        assert groups([values[i]]) == groups(pa.array([None, stored[i]], kind)) == holders(values[i])
    assert groups(values[:2] + values[3:5]) == holders(*values[:2], *values[3:5]) and groups(values) == [0, 1, 2, 3]
    assert groups(absent) == groups([]) == groups([None]) == [] and groups([absent[0], values[2]]) == holders(values[2])
    for wrong, error in (other, TypeError), (beyond, ValueError):
        if wrong is not None:
            with pytest.raises(error, match="<column x: "):
                groups([wrong])
    with pytest.raises(TypeError, match="is one key: pass it in a list" if isinstance(stored[0], (str, bytes)) else "not iterable"):
        groups(stored[0])


def test_row_groups_without_filters_and_bad_ones(tmp_path):
    arrays = [pa.array(range(i, 2 * ROWS, 2), pa.int64()) for i in range(2)]
    path = grouped(tmp_path, arrays)
    groups = lambda path, values, column="x": SplitBlockBloomFilter.row_groups(path, column, values)
    assert groups(path, [5]) == [1] and groups(os.fsencode(path), np.array([4])) == [0]
    assert groups(path, [1], "before") == [0, 1] and groups(path, [], "before") == [] and groups(path, [None], "before") == []
    with pytest.raises(ValueError, match='no column "y"'):
        groups(path, [1], "y")
    empty = tmp_path / "empty.parquet"
    pq.ParquetWriter(empty, pa.schema([("x", pa.int64())])).close()
    assert groups(empty, [1]) == []
    # A header that is none, and one that says half of the bytes.
    good, f = path.read_bytes(), read(path)
    header = f.to_bytes()[: len(f.to_bytes()) - f.nbytes]
    offset = good.index(header)
    path.write_bytes(good[:offset] + b"\x55" + good[offset + 1 :])
    with pytest.raises(ValueError, match="the filter's header"):
        groups(path, [5])
    other = SplitBlockBloomFilter.from_bits(bytes(f.nbytes // 2)).to_bytes()[: -(f.nbytes // 2)]
    assert len(other) == len(header)
    path.write_bytes(good[:offset] + other + good[offset + len(header) :])
    with pytest.raises(ValueError, match=f"row group 0: the filter's header says {f.nbytes // 2 + len(header)} bytes, and the footer"):
        groups(path, [5])


def test_row_groups_are_those_that_duckdb_reads(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    columns = {
        "i32": "((hash(r) % 4000000000)::BIGINT - 2000000000)::INTEGER", "i64": "(hash(r) // 2)::BIGINT", "u64": "hash(r)", "f32": "((hash(r) % 10000000) / 8)::FLOAT",
        "f64": "(hash(r) / 7)::DOUBLE", "s": "'key ' || hash(r)", "b": "encode('bytes ' || hash(r))", "u": "md5(r::VARCHAR)::UUID",
        "d": "DATE '1900-01-01' + (hash(r) % 100000)::INTEGER", "ts": "make_timestamp((hash(r) // 5000)::BIGINT)", "dec": "((hash(r) % 100000000000) / 100)::DECIMAL(18, 2)",
    }
    path = tmp_path / "duckdb.parquet"
    select = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    duckdb.sql(f"COPY (SELECT {select} FROM range(40960) t(r)) TO '{path}' (ROW_GROUP_SIZE 4096, DICTIONARY_SIZE_LIMIT 4096)")
    for name in columns:
        for start in 0, 40_000:
            [(value, kind)] = duckdb.sql(f"SELECT {name}, typeof({name}) FROM '{path}' LIMIT 1 OFFSET {start + 77}").fetchall()
            if name == "f32":
                value = np.float32(value)
            literal = "".join(f"\\x{byte:02x}" for byte in value) if isinstance(value, bytes) else value
            probe = f"SELECT row_group_id FROM parquet_bloom_probe('{path}', '{name}', '{literal}'::{kind}) WHERE NOT bloom_filter_excludes ORDER BY 1"
            read_by_duckdb = [group for (group,) in duckdb.sql(probe).fetchall()]
            assert SplitBlockBloomFilter.row_groups(path, name, [value]) == read_by_duckdb and start // 4096 in read_by_duckdb, name
