"""Types of columns: each is the key that its value is, or an error that says what to do."""

import datetime
import decimal
import uuid

import pytest

from lanebloom import Bitmap, BloomFilter, CuckooFilter, FilterBank, GuavaBloomFilter, SplitBlockBloomFilter, StaticFilter, key_bytes

numpy = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")
Decimal = decimal.Decimal


def is_refused(keys, match):
    """Whether all classes refuse a column, alone and in a row, and keep nothing of it."""
    f = BloomFilter(100)
    for call in (
        f.add_many,
        f.contains_many,
        f.add_new,
        CuckooFilter(100).add_many,
        GuavaBloomFilter(100).add_many,
        SplitBlockBloomFilter(100).contains_many,
        lambda keys: FilterBank(64, 100).add_many(3, keys),
        lambda keys: FilterBank(64, 100).which_many(keys),
        StaticFilter,
    ):
        with pytest.raises(TypeError, match=match):
            call(keys)
    assert f.approx_len == 0


def agrees(column, values):
    """Whether a column has the keys of these objects."""
    f, g = BloomFilter(100, 1e-9), BloomFilter(100, 1e-9)
    f.add_many(column)
    g.add_many(values)
    assert f == g and f.contains_many(values).all() and g.contains_many(column).all()
    assert all(value in f for value in values)


def test_objects_of_polars_are_refused():
    pl = pytest.importorskip("polars")
    ids = [uuid.UUID(int=5), uuid.UUID(int=6), uuid.UUID(int=5)]
    series = pl.Series("id", ids)
    for keys in series, pl.DataFrame({"n": [1, 2, 3], "id": series}), pl.DataFrame({"id": series}):
        is_refused(keys, "polars' type Object: Arrow gets the addresses.*to_list")
    nw = pytest.importorskip("narwhals")
    is_refused(nw.from_native(series, series_only=True), "polars' type Object")
    # With a function, and as the error says.
    f = BloomFilter(100, 1e-9, key=lambda row: row[1])
    assert f.add_new(pl.DataFrame({"n": [1, 2, 3], "id": series})).tolist() == [True, True, False]
    f = BloomFilter(100, 1e-9)
    assert f.add_new(series.to_list()).tolist() == [True, True, False] and ids[0] in f


def test_a_frame_without_rows_is_refused():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"LazyFrame has no rows yet: pass frame.collect\(\)"):
        BloomFilter(9).add_many(pl.LazyFrame({"a": [1]}))


def test_types_that_another_package_gave_to_numpy_are_refused():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in "bfloat16", "int4", "uint4", "float8_e5m2", "float8_e4m3fn":
        values = numpy.array([1, 2], getattr(ml_dtypes, name))
        is_refused(values, f"dtype {name}, which is not numpy's.*astype")
        is_refused([values[0]], f"dtype {name}, which is not numpy's")
        is_refused([(values[0], 1)], f"dtype {name}, which is not numpy's")
        agrees(values.astype("f8"), [1, 2])
    assert numpy.dtype("V4").isbuiltin != 2


EXTENSIONS = [
    pa.ExtensionArray.from_storage(pa.opaque(pa.int8(), "type", "vendor"), pa.array([5, None], pa.int8())),
    pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[5, 6], None], pa.list_(pa.int8(), 2))),
]


class Celsius(pa.ExtensionType):
    def __init__(self):
        super().__init__(pa.int64(), "test.celsius")

    def __arrow_ext_serialize__(self):
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage, serialized):
        return cls()


@pytest.mark.parametrize("column", [*EXTENSIONS, pa.ExtensionArray.from_storage(Celsius(), pa.array([5, None]))], ids=lambda c: c.type.extension_name)
def test_extension_types_of_arrow_that_are_not_known_are_refused(column):
    name = column.type.extension_name
    is_refused(column, f'Arrow column of the extension type "{name}"')
    is_refused(pa.chunked_array([column]), name)
    is_refused(pa.table({"n": [1, 2], "x": column}), f'column "x" of the extension type "{name}"')
    is_refused(pa.StructArray.from_arrays([column, pa.array([1, 2])], ["x", "n"]), name)


def test_extension_types_of_arrow_that_are_known():
    agrees(pa.ExtensionArray.from_storage(pa.bool8(), pa.array([5, 0, None, 1, -1], pa.int8())), [True, False, None, True, True])
    assert key_bytes(True) == key_bytes(1)
    agrees(pa.array([uuid.UUID(int=5), None], pa.uuid()), [uuid.UUID(int=5), None])
    agrees(pa.ExtensionArray.from_storage(pa.json_(), pa.array(['{"a": 1}', None])), ['{"a": 1}', None])


def test_metadata_of_any_bytes_is_read():
    def table(metadata):
        return pa.table([pa.array(["a", None])], schema=pa.schema([pa.field("x", pa.string(), metadata=metadata)]))

    agrees(table({b"\xff": b"\xfe", "": ""}), ["a", None])
    # The name of an extension type is found between them.
    names = {b"k": b"\xff", "ARROW:extension:name": "test.unknown", b"\xfe": b""}
    is_refused(table(names), 'column "x" of the extension type "test.unknown"')


def test_columns_of_pandas_whose_arrow_form_is_not_the_value_are_refused():
    pd = pytest.importorskip("pandas")
    columns = [
        (pd.Series(pd.period_range("2024", periods=2, freq="M")), "pandas.period"),
        (pd.Series(pd.interval_range(0, 2)), "pandas.interval"),
    ]
    for column, name in columns:
        is_refused(column, name)
        is_refused(pd.DataFrame({"x": column, "n": [1, 2]}), f'column "x" of the extension type "{name}"')
        is_refused(pd.DataFrame({"x": column}), name)
        with pytest.raises(TypeError, match="a key of type"):
            BloomFilter(9).add(column[0])
        BloomFilter(9).add_many(column.astype(str))


@pytest.mark.parametrize("is_lossless", [False, True])
def test_types_of_duckdb(is_lossless):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(f"set arrow_lossless_conversion = {is_lossless}")
    one = uuid.UUID(int=5)
    for sql, value in [
        ("1.50::decimal(9, 2)", Decimal("1.5")),
        ("19.99::decimal(38, 5)", Decimal("19.99")),
        ("true", True),
        ("'{\"a\": 1}'::json", '{"a": 1}'),
        ("'b'::enum('a', 'b')", "b"),
        ("{'a': 1, 'b': null::int}", (1, None)),
        ("'\\x01z'::blob", b"\x01z"),
        ("sum(1)", 1),
        (f"'{one}'::uuid", one),
        ("'0101'::bit", "0101"),
        ("17::bignum", "17"),
        ("17::uhugeint", 17),
        ("(-170141183460469231731687303715884105728)::hugeint", -(2**127)),
        ("{'a': 1}::variant", None),
        (f"{{'a': '{one}'::uuid, 'b': 1}}", (one, 1)),
    ]:
        for query, key in (f"select {sql} as x", value), (f"select {sql} as x, 7 as n", (value, 7)):
            f = BloomFilter(100, 1e-9)
            try:
                f.add_many(connection.sql(query))
            except TypeError as error:
                is_known = ("hugeint" in sql or "sum" in sql) and is_lossless or any(word in sql for word in ("uhugeint", "bit", "bignum", "variant"))
                assert is_known or "uuid" in sql and not is_lossless, sql
                assert "CAST(x AS VARCHAR)" in str(error), error
                continue
            assert key in f and not any(word in sql for word in ("bit", "bignum", "variant", "uhugeint")), sql
    # A name that looks like a type is none.
    agrees(connection.sql("select 'uuid'::enum('uuid', 'bit') as bit"), ["uuid"])


def test_an_index_outside_of_an_arrow_dictionary_is_an_error():
    for values in pa.array([7, 8]), pa.array(["a", "b"]), pa.array(list(range(50))), pa.array([(1, 2)] * 50, pa.struct([("a", pa.int8()), ("b", pa.int8())])):
        for indices, bad in ([0, 99], 99), ([-1, 1], -1), ([0, 1] * 600 + [-128], -128):
            wrong = pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), values, safe=False)
            place = indices.index(bad)
            for keys in wrong, pa.table({"x": wrong, "n": range(len(wrong))}):
                for call in BloomFilter(10).add_many, BloomFilter(10).contains_many, GuavaBloomFilter(9).add_many:
                    with pytest.raises(ValueError, match=f"value {place} of an Arrow dictionary has the index {bad}, of {len(values)} values"):
                        call(keys)
    # A null's index may be anything, and so may that of a row that is null.
    indices = pa.Array.from_buffers(pa.int8(), 2, [pa.py_buffer(b"\1"), pa.py_buffer(b"\1\x63")])
    column = pa.DictionaryArray.from_arrays(indices, ["a", "b"], safe=False)
    agrees(column, ["b", None])
    indices = pa.Array.from_buffers(pa.int8(), 2, [None, pa.py_buffer(b"\1\x63")])
    column = pa.DictionaryArray.from_arrays(indices, ["a", "b"], safe=False)
    rows = pa.StructArray.from_arrays([column, pa.array([1, 2])], ["x", "n"], mask=pa.array([False, True]))
    agrees(rows, [("b", 1), None])


def test_halves():
    values = [0.5, -2.0, 65504.0, 2.0**-24, -0.0, float("inf"), None]
    agrees(pa.array([None if v is None else numpy.float16(v) for v in values], pa.float16()), values)
    every = numpy.arange(65536, dtype="u2").view("f2")
    agrees(pa.array(every)[:60], every[:60].tolist())
    f, g = BloomFilter(65536, 1e-6), BloomFilter(65536, 1e-6)
    f.add_many(pa.array(every))
    g.add_many(every)
    assert f == g
    for make in GuavaBloomFilter, SplitBlockBloomFilter:
        with pytest.raises(TypeError, match="float16"):
            make(9).add_many(pa.array(every))


DECIMALS = [
    Decimal("1.5"), Decimal("0.10"), Decimal("-0.1"), Decimal("19.99"), Decimal("-19.99"), Decimal("100"), Decimal("-7.00"), Decimal("0"),
    Decimal("-0.00"), Decimal("0.25"), Decimal("9223372036854775807"), Decimal("9223372036854775808.0"), Decimal("-9223372036854775808"),
    Decimal("-9223372036854775809"), Decimal("18446744073709551615"), Decimal("18446744073709551616"), Decimal("0.0000000001"), None,
]


def test_equal_decimals_are_one_key_as_in_a_set():
    for a in DECIMALS[:-1]:
        for b in [a + 0, a.normalize(), a.quantize(Decimal("1.000000000000")) if abs(a) < 10**12 else a]:
            assert key_bytes(a) == key_bytes(b), (a, b)
        if a == int(a):
            assert key_bytes(a) == key_bytes(int(a)), a
        if a == float(a):
            assert key_bytes(a) == key_bytes(float(a)), a
        else:
            assert key_bytes(a) != key_bytes(float(a)), a
    for text in "1E+30", "123E+2", "-5E+22", "1E+4000":
        assert key_bytes(Decimal(text)) == key_bytes(int(Decimal(text)))
    for value in 5e-324, -5e-324, 1e-310, 2.0**-1074 * 3, 2.0**-1022, 0.1, 1 / 3, -1.7e308, 1e300, 2.0**-537, 123456.789:
        assert key_bytes(Decimal(value)) == key_bytes(value), value
    for text, key in ("NaN", None), ("sNaN", None), ("Infinity", float("inf")), ("-Infinity", float("-inf")):
        assert key_bytes(Decimal(text)) == key_bytes(key)
    # (The word of -2**63 is that of 2**63.)
    assert len({key_bytes(a) for a in DECIMALS[:-1]}) == len(set(DECIMALS)) - 2
    # Its digits as an integer, and how many of them stand after the point.
    assert key_bytes(Decimal("19.990")) == (1999).to_bytes(16, "little") + (2).to_bytes(8, "little")
    assert key_bytes(Decimal("-0.1")) == (-1).to_bytes(16, "little", signed=True) + (1).to_bytes(8, "little")
    assert key_bytes((Decimal("0.1"), 1)) == (24).to_bytes(8, "little") + key_bytes(Decimal("0.1")) + key_bytes(1)


def test_random_decimals_are_equal_as_numbers_are():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    numbers = st.decimals(allow_nan=False) | st.integers() | st.floats(allow_nan=False) | st.integers(-999, 999).map(lambda i: Decimal(i) / 8)

    @hypothesis.given(numbers, st.integers(0, 30))
    @hypothesis.settings(deadline=None, max_examples=500, derandomize=True)
    def check(number, zeros):
        with decimal.localcontext() as context:
            context.prec = 2000
            # (1E+999999 is refused, below.)
            hypothesis.assume(abs(number) < 10**400 or not isinstance(number, Decimal))
            exact = Decimal(number)
            hypothesis.assume(not exact.is_finite() or exact.adjusted() > -3000)
            assert key_bytes(exact) == key_bytes(number)
            if exact.is_finite():
                sign, digits, exponent = exact.as_tuple()
                assert key_bytes(Decimal((sign, digits + (0,) * zeros, exponent - zeros))) == key_bytes(number)

    check()


def test_a_decimal_of_too_many_digits_is_an_error():
    for text in "1E+4300", "1E+999999", "1E+999999999999999999", "1" * 4301, "0." + "1" * 4301:
        with pytest.raises(ValueError, match="a Decimal of .* digits with the exponent .*: a key has at most 4300 digits"):
            key_bytes(Decimal(text))
    for text in "1E+4299", "1" * 4300, "1E-999999", "1E-999999999999999999", "0E+999999":
        assert BloomFilter(9).add(Decimal(text)), text


@pytest.mark.parametrize("kind", [pa.decimal128(38, 10), pa.decimal256(76, 10)], ids=str)
def test_decimals_of_arrow(kind):
    column = pa.array(DECIMALS, kind)
    agrees(column, DECIMALS)
    agrees(column[3:11], DECIMALS[3:11])
    agrees(column.dictionary_encode(), DECIMALS)
    agrees(pa.table({"d": column, "n": range(len(column))}), list(zip(DECIMALS, range(len(column)))))
    agrees(pa.table({"n": range(len(column)), "d": column}), list(zip(range(len(column)), DECIMALS)))


def test_narrow_and_wide_decimals_are_the_same_keys():
    values = [Decimal("19.99"), Decimal("-0.10"), Decimal("3.00"), None]
    for kind in pa.decimal32(5, 2), pa.decimal64(9, 2), pa.decimal128(9, 2), pa.decimal256(50, 2), pa.decimal128(20, 10):
        agrees(pa.array(values, kind), values)
    agrees(pa.array([Decimal("500"), Decimal("-1200")], pa.decimal128(5, -2)), [500, -1200])
    pl = pytest.importorskip("polars")
    agrees(pl.Series(values, dtype=pl.Decimal(9, 2)), values)
    agrees(pl.Series([5, -(2**100), None], dtype=pl.Int128), [5, -(2**100), None])
    pd = pytest.importorskip("pandas")
    agrees(pd.Series(values, dtype=object), values)
    agrees(pd.Series(values, dtype=pd.ArrowDtype(pa.decimal128(9, 2))), values)
    agrees(numpy.array(values, object), values)
    duckdb = pytest.importorskip("duckdb")
    agrees(duckdb.sql("select unnest([19.99, -0.10, 3.00, null])::decimal(9, 2)"), values)
    agrees(duckdb.sql("select unnest([1, -5, null])::hugeint"), [1, -5, None])


def test_filters_of_other_systems_refuse_decimals():
    texts = (GuavaBloomFilter, "decimals: another system's program.*scaleb"), (SplitBlockBloomFilter, "decimals: .*from_parquet")
    for make, text in texts:
        f = make(100)
        for keys in pa.array([Decimal("1.5")]), [Decimal("1.5")], pa.table({"d": [Decimal("1.5")], "n": [1]}), [(Decimal("1.5"), 1)]:
            with pytest.raises(TypeError, match=text):
                f.add_many(keys)
    for f in BloomFilter(9, hasher="prehashed"), Bitmap(9):
        for keys in pa.array([Decimal("1")]), [Decimal("1")]:
            with pytest.raises(TypeError, match="hashes only|integers only"):
                f.add_many(keys)


def test_a_function_is_given_no_value_that_has_lost_its_nanoseconds():
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    stamps = pl.Series([1577836800123456789, 1577836800123456000]).cast(pl.Datetime("ns"))
    times = pa.array([123456789, 123456000], pa.time64("ns"))
    frame = pl.DataFrame({"a": stamps, "b": [1, 1]})
    losing = [
        stamps, frame, stamps.dt.time(), stamps - stamps, pl.Series([[1]]).cast(pl.List(pl.Time)),
        pl.DataFrame({"a": pl.Series([{"t": 5}]).cast(pl.Struct({"t": pl.Datetime("ns")}))}),
        duckdb.sql("select timestamp_ns '2020-01-01 00:00:00.123456789' t, 1 n"), times, pa.chunked_array([times]),
        pa.table({"t": times, "n": [1, 2]}), pa.record_batch({"t": times}), pa.table({"t": times}).to_reader(),
    ]
    for keys in losing:
        for key in str, lambda row: row:
            with pytest.raises(TypeError, match="have no nanoseconds"):
                BloomFilter(10, 1e-6, key=key).add_many(keys)
    # These keep them, or have none.
    keeping = [
        frame.to_arrow(), frame.to_pandas(), frame.with_columns(pl.col("a").cast(pl.Datetime("us")).dt.offset_by(pl.Series(["0s", "1s"]))),
        pl.DataFrame({"Times": [1, 2], "b": ["ns", "Time"]}), duckdb.sql("select unnest([timestamp '2020-01-01', timestamp '2021-01-01']) t"),
        pa.table({"t": times.cast(pa.time64("us"), safe=False), "n": [1, 2]}),
    ]
    for keys in keeping:
        assert BloomFilter(10, 1e-6, key=str).add_new(keys).tolist() == [True, True]


def test_a_category_or_a_field_named_as_a_type_of_nanoseconds_is_none():
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    keeping = [
        pl.Series(["ns", "Time"], dtype=pl.Enum(["ns", "Time"])), pl.Series([{"Time": 1}, {"Time": 2}]),
        duckdb.sql("select {'TIME_NS': unnest([1, 2])} as a"), pa.array([{"time64[ns]": 1}, {"time64[ns]": 2}]),
    ]
    for keys in keeping:
        assert BloomFilter(10, 1e-6, key=str).add_new(keys).tolist() == [True, True]


def test_categories_and_dictionaries_of_times_are_refused_to_a_function():
    pd = pytest.importorskip("pandas")
    times = pa.array([1001, 2000], pa.time64("ns"))
    of_pandas = pd.Series(times, dtype=pd.ArrowDtype(times.type))
    for keys in times.dictionary_encode(), pa.StructArray.from_arrays([times], ["t"]), of_pandas, of_pandas.to_frame("t").assign(n=1), of_pandas.astype("category"):
        with pytest.raises(TypeError, match="have no nanoseconds"):
            BloomFilter(10, 1e-6, key=str).add_many(keys)


def test_errors_of_guavas_filter_do_not_speak_of_parquet():
    decimals, days = pa.array([Decimal("1.5")]), pa.array([86_400_000], pa.date64())
    wrong = [
        pa.array([1], pa.timestamp("s")), days, days.dictionary_encode(), numpy.array([1], "M8[s]"), decimals, [Decimal(1)], [numpy.float16(1)],
        numpy.array([1], "f2"), [True], numpy.array([True]), [numpy.True_], pa.array([True, None]), [datetime.datetime(2024, 1, 1)], pa.array([1], pa.time64("us")),
    ]
    for keys in wrong:
        for f in GuavaBloomFilter(9), GuavaBloomFilter(9, int_bytes=4):
            with pytest.raises(TypeError) as raised:
                f.add_many(keys)
            assert "Parquet" not in str(raised.value) and "file's column" not in str(raised.value), raised.value


def test_datasets_and_batches_of_pyarrow(tmp_path):
    dataset, parquet = pytest.importorskip("pyarrow.dataset"), pytest.importorskip("pyarrow.parquet")
    rows = pa.table({"id": [1, 2, None], "s": ["a", None, "c"]})
    parquet.write_table(rows, tmp_path / "rows.parquet")
    source = dataset.dataset(tmp_path / "rows.parquet")
    expected = [(1, "a"), (2, None), (None, "c")]
    agrees(source, expected)
    f = BloomFilter(100, 1e-9)
    assert f.add_many(source.scanner(columns=["id"])) == 3 and all(key in f for key in [1, 2, None])
    f = BloomFilter(100, 1e-9, key=str)
    assert f.add_many(source) == 3 and all(row in f for row in expected)
    file = parquet.ParquetFile(tmp_path / "rows.parquet")
    with pytest.raises(TypeError, match="ParquetFile: pass file.read"):
        f.add_many(file)
    for keys in file.iter_batches(), [rows]:
        with pytest.raises(TypeError, match="holds many keys: pass it alone"):
            BloomFilter(9).add_many(keys)
