"""Rows: wherever a row comes from, it is the tuple of its values, and no other row is that key."""

import datetime
import decimal
import itertools
import random
import uuid

import pytest

from lanebloom import (
    BloomFilter,
    CuckooFilter,
    FilterBank,
    GuavaBloomFilter,
    ScalableBloomFilter,
    SplitBlockBloomFilter,
    StaticFilter,
    WindowedBloomFilter,
    key_bytes,
)

numpy = pytest.importorskip("numpy")
SECRET = b"s" * 16
NULLS = b"\xffnulls\xff\xff"

# A type, as Arrow names it, and its values: the one that is empty or zero is the first.
COLUMNS = {
    "int64": [0, 1, -1, None],
    "int8": [0, 7, None],
    "bool": [False, True, None],
    "double": [0.0, 0.5, None],
    "string": ["", "a", "\0", None],
    "binary": [b"", b"\0", b"\xff", None],
    "date32": [datetime.date(1970, 1, 1), datetime.date(2024, 2, 29), None],
    "timestamp": [datetime.datetime(1970, 1, 1), datetime.datetime(2024, 2, 29, 1, 2, 3, 4), None],
    "fixed": [b"\0\0\0", b"abc", None],
    "decimal": [decimal.Decimal("0.00"), decimal.Decimal("0.50"), decimal.Decimal("19.99"), None],
}


def arrow_type(kind):
    pa = pytest.importorskip("pyarrow")
    others = {"timestamp": pa.timestamp("us"), "fixed": pa.binary(3), "decimal": pa.decimal128(9, 2), "double": pa.float64()}
    return others[kind] if kind in others else getattr(pa, kind.replace("bool", "bool_"))()


def table(kinds, rows):
    pa = pytest.importorskip("pyarrow")
    columns = zip(*rows) if rows else [[]] * len(kinds)
    arrays = [pa.array(column, arrow_type(kind)) for kind, column in zip(kinds, columns)]
    return pa.Table.from_arrays(arrays, [f"c{i}" for i in range(len(kinds))])


def of_objects(kinds, rows):
    values = numpy.empty(len(rows), object)
    values[:] = rows
    return values


def of_structs(kinds, rows):
    pa = pytest.importorskip("pyarrow")
    (batch,) = table(kinds, rows).to_batches()
    return pa.StructArray.from_arrays(batch.columns, batch.schema.names)


def of_dictionaries(kinds, rows):
    pa = pytest.importorskip("pyarrow")
    made = table(kinds, rows)
    return pa.Table.from_arrays([column.dictionary_encode() for column in made.columns], made.schema.names)


def of_pandas(kinds, rows, **options):
    pytest.importorskip("pandas")
    return table(kinds, rows).to_pandas(**options)


def of_pandas_and_arrow(kinds, rows):
    pd = pytest.importorskip("pandas")
    return table(kinds, rows).to_pandas(types_mapper=pd.ArrowDtype)


def of_polars(kinds, rows):
    return pytest.importorskip("polars").from_arrow(table(kinds, rows))


def of_duckdb(kinds, rows):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("source", table(kinds, rows))
    return connection.sql("select * from source")


PRODUCERS = {
    "list": lambda kinds, rows: rows,
    "tuple": lambda kinds, rows: tuple(rows),
    "iterator": lambda kinds, rows: iter(rows),
    "objects of numpy": of_objects,
    "table": table,
    "batch": lambda kinds, rows: table(kinds, rows).to_batches()[0],
    "reader": lambda kinds, rows: table(kinds, rows).to_reader(max_chunksize=3),
    "structs": of_structs,
    "dictionaries": of_dictionaries,
    "pandas": of_pandas,
    "pandas of objects": lambda kinds, rows: of_pandas(kinds, rows, date_as_object=True, timestamp_as_object=True).astype(object),
    "pandas of Arrow": of_pandas_and_arrow,
    "polars": of_polars,
    "DuckDB": of_duckdb,
}

CLASSES = {
    "BloomFilter": lambda: BloomFilter(1000, 1e-9),
    "fast": lambda: BloomFilter(1000, 1e-9, hasher="fast"),
    "secret": lambda: BloomFilter(1000, 1e-9, secret=SECRET),
    "ScalableBloomFilter": lambda: ScalableBloomFilter(1000, 1e-9),
    "WindowedBloomFilter": lambda: WindowedBloomFilter(1000, 1e-9),
    "CuckooFilter": lambda: CuckooFilter(1000, 1e-6),
}
# Their times and decimals have units that an object does not name, and they take no bool.
FOREIGN = {"GuavaBloomFilter": lambda: GuavaBloomFilter(1000, 1e-9), "SplitBlockBloomFilter": lambda: SplitBlockBloomFilter(1000, 1e-9)}
PLAIN = ["int64", "bool", "double", "string", "fixed"]


def each_is_a_key(make, kinds, rows, by):
    """Whether a filter that one producer filled has exactly the rows of each other one."""
    produce = PRODUCERS[by]
    f = make()
    assert f.add_new(produce(kinds, rows)).tolist() == [True] * len(rows), (kinds, by)
    assert f.contains_many(produce(kinds, rows)).all() and f.contains_many(rows).all()
    assert all(row in f for row in rows)
    half = make()
    half.add_many(rows[::2])
    expected = [i % 2 == 0 for i in range(len(rows))]
    assert half.contains_many(produce(kinds, rows)).tolist() == expected, (kinds, by)


@pytest.mark.parametrize("by", PRODUCERS)
def test_rows_with_nulls_are_different_keys_from_every_producer(by):
    kinds = list(COLUMNS)
    pairs = list(itertools.product(kinds, kinds))
    # The rows of a table are those of a list, so the others are compared with a few of each type.
    if by not in ("list", "table"):
        pairs = [(kind, other) for kind, other in pairs if other in ("string", kinds[kinds.index(kind) - 1])]
    for pair in pairs:
        rows = list(itertools.product(*(COLUMNS[kind] for kind in pair)))
        each_is_a_key(CLASSES["BloomFilter"], pair, rows, by)


@pytest.mark.parametrize("by", PRODUCERS)
@pytest.mark.parametrize("name", [*CLASSES, *FOREIGN])
def test_rows_with_nulls_are_different_keys_in_every_class(name, by):
    make = {**CLASSES, **FOREIGN}[name]
    for kinds in zip(PLAIN, PLAIN[1:] + PLAIN[:1], PLAIN[2:] + PLAIN[:2]):
        if name in FOREIGN:
            kinds = [kind.replace("bool", "binary") for kind in kinds]
            # pandas makes floats of integers with nulls, and NaN of nulls, which are other keys there.
            if by in ("pandas", "pandas of objects"):
                kinds = [kind.replace("int64", "string").replace("double", "string") for kind in kinds]
        rows = list(itertools.product(*(COLUMNS[kind] for kind in kinds)))
        if name == "CuckooFilter":
            rows = rows[:30]
        each_is_a_key(make, kinds, rows, by)


@pytest.mark.parametrize("by", PRODUCERS)
def test_rows_with_nulls_in_a_static_filter_and_in_a_bank(by):
    for kinds in zip(PLAIN, PLAIN[1:] + PLAIN[:1]):
        rows = list(itertools.product(*(COLUMNS[kind] for kind in kinds)))
        produce = PRODUCERS[by]
        f = StaticFilter(produce(kinds, rows[::2]), bits=32)
        assert len(f) == len(rows[::2])
        assert f.contains_many(produce(kinds, rows)).tolist() == [row in rows[::2] for row in rows]
        bank = FilterBank(64, 1000, 1e-9)
        assert bank.add_many(3, produce(kinds, rows[::2])) == len(rows[::2])
        found, columns = bank.which_many(produce(kinds, rows))
        assert found.tolist() == list(range(0, len(rows), 2)) and set(columns.tolist()) == {3}
        assert [bank.which(row) for row in rows[:2]] == [[3], []]


def test_no_row_is_lost_in_frames_of_flags():
    rng = random.Random(1)
    rows = [tuple(rng.choice([True, True, False, False, None]) for _ in range(10)) for _ in range(20_000)]
    for by in PRODUCERS:
        f = BloomFilter(20_000, 1e-9)
        assert f.add_many(PRODUCERS[by](["bool"] * 10, rows)) == len(set(rows)), by


def test_removing_a_row_leaves_its_mirror():
    f = CuckooFilter(100, 1e-6)
    f.add((None, 0))
    assert not f.discard((0, None)) and (None, 0) in f
    with pytest.raises(KeyError):
        f.remove((False, None))


def word(value):
    return (value % 2**64).to_bytes(8, "little")


def test_the_bytes_of_rows_with_nulls():
    for row, content in [
        ((None, 0), word(0) + b"\1" + NULLS),
        ((0, None), word(0) + b"\2" + NULLS),
        ((None, None), b"\3" + NULLS),
        (("", None), word(0) + b"\2" + NULLS),
        ((None, ""), b"\1" + NULLS),
        (("ab", None, "c"), word(2) + b"abc\2" + NULLS),
        ((1,) * 8 + (None,), word(1) * 8 + b"\0\1" + NULLS),
                (((None, 2), 1), word(17) + word(2) + b"\1" + NULLS + word(1)),
        # A row of one part is that part, and rows without nulls have no bits...
        ((None,), b"\0"),
        ((5,), word(5)),
        ((1, "a"), word(1) + b"a"),
        ((float("nan"), 1), word(1) + b"\1" + NULLS),
        # ... unless they could be taken for others.
        ((0, b"\1" + NULLS), word(0) + b"\1" + NULLS + b"\0" + NULLS),
        ((1, (None, 2)), word(1) + word(2) + b"\1" + NULLS + b"\0" + NULLS),
        ((NULLS,), NULLS),
    ]:
        assert key_bytes(row) == content, row


def test_a_tuple_of_one_part_is_that_part_but_not_within_a_row():
    pa = pytest.importorskip("pyarrow")
    pd, pl, duckdb = map(pytest.importorskip, ["pandas", "polars", "duckdb"])
    fields, other = [7, None, 0, 7, 8, None], [1, 1, 1, 2, None, 3]
    for holes in [], [2, 5]:
        struct = pa.StructArray.from_arrays([pa.array(fields, pa.int32())], ["x"], mask=pa.array([i in holes for i in range(6)]))
        values = [None if i in holes else (x,) for i, x in enumerate(fields)]
        rows = list(zip(values, other))
        assert len({key_bytes(row) for row in rows}) == 6
        frame = pa.table([struct, pa.array(other)], ["s", "n"])
        frames = frame, frame.to_struct_array(), pl.from_arrow(frame), duckdb.from_arrow(frame), frame.to_pandas(types_mapper=pd.ArrowDtype)
        for keys in rows, *frames:
            f = BloomFilter(100, 1e-9)
            assert f.add_many(keys) == 6 and all(row in f for row in rows), type(keys)
        # Alone, in filters that make 4 bytes of an integer and skip nulls too.
        for make in *CLASSES.values(), *(lambda cls=cls: cls(100, 1e-9, int_bytes=4) for cls in (GuavaBloomFilter, SplitBlockBloomFilter)):
            for keys in values, [(value,) for value in values], struct, pa.table([struct], ["s"]), pl.from_arrow(struct):
                f, g = make(), make()
                f.add_many(keys)
                g.add_many([x if i not in holes else None for i, x in enumerate(fields)])
                assert f == g and f.contains_many(keys).tolist() == g.contains_many(values).tolist(), (type(f), type(keys))


def test_different_rows_have_different_bytes():
    texts = [None, "", "a", "\0", "\1"]
    binary = [None, b"", NULLS, b"\0" + NULLS, b"\1" + NULLS, b"\2" + NULLS, b"\0" + NULLS + b"\0" + NULLS]
    numbers = [None, 0, 1, int.from_bytes(NULLS, "little", signed=True)]
    pairs = [(None, 0), (0, None), (None, None), (0, 0), None]
    seen = 0
    for columns in itertools.chain(
        itertools.product([texts, binary, numbers, pairs], repeat=2),
        [(binary, numbers, binary), (texts, texts, binary), (numbers, numbers, numbers), (pairs, binary, pairs)],
        [[[None, 0]] * 10],
    ):
        rows = list(itertools.product(*columns))
        contents = [key_bytes(row) for row in rows]
        assert len(set(contents)) == len(rows), columns
        # Nested once more.
        contents = [key_bytes((row, row[::-1])) for row in rows]
        assert len(set(contents)) == len(rows), columns
        seen += len(rows)
    assert seen > 1500


def test_random_rows_of_one_type_have_different_bytes():
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    kinds = [
        st.integers(-(2**63), 2**63 - 1), st.booleans(), st.sampled_from(["", "a", "aa", "\0"]), st.binary(max_size=3),
        st.dates(), st.uuids(), st.sampled_from([0.5, -1.5, 1e300]),
    ]

    @hypothesis.given(st.lists(st.sampled_from(kinds), min_size=2, max_size=10).flatmap(
        lambda columns: st.lists(st.tuples(*(st.none() | column for column in columns)), min_size=2, max_size=2, unique=True)
    ))
    @hypothesis.settings(deadline=None, max_examples=500, derandomize=True)
    def check(rows):
        assert key_bytes(rows[0]) != key_bytes(rows[1])

    check()


def test_a_row_without_nulls_keeps_the_bytes_of_its_parts():
    moment = datetime.datetime(1970, 1, 1, 0, 0, 2, 3)
    one = uuid.UUID(int=258)
    assert key_bytes((moment, one, b"ab", "c", 2**64, 0.5, "d")) == (
        word(2) + (3000).to_bytes(4, "little") + one.bytes + word(2) + b"ab" + word(1) + b"c"
        + word(16) + (2**64).to_bytes(16, "little") + bytes.fromhex("000000000000e03f") + b"d"
    )


FRAMES = {
    "pandas": lambda table: table.to_pandas(),
    "polars": lambda table: pytest.importorskip("polars").from_arrow(table),
    "table": lambda table: table,
    "batch": lambda table: table.to_batches()[0],
    "reader": lambda table: table.to_reader(max_chunksize=2),
    "DuckDB": lambda table: pytest.importorskip("duckdb").from_arrow(table),
    "stream": lambda table: Stream(table),
}


class Stream:
    """An object that speaks Arrow's interface and is no library's."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def prices():
    pa = pytest.importorskip("pyarrow")
    values = [decimal.Decimal("1.50"), None, decimal.Decimal("0.10")]
    return pa.table({"id": ["a", "b", None], "price": pa.array(values, pa.decimal128(9, 2))})


@pytest.mark.parametrize("by", FRAMES)
def test_a_function_is_given_the_tuple_of_each_row(by):
    pytest.importorskip("pandas")
    rows = [("a", decimal.Decimal("1.50")), ("b", None), (None, decimal.Decimal("0.10"))]
    for make in (lambda key: BloomFilter(100, 1e-9, key=key), lambda key: CuckooFilter(100, 1e-6, key=key)):
        given = []

        def key(row):
            given.append(row)
            return str(row[1]) if row[0] == "a" else repr(row)

        f = make(key)
        assert f.add_new(FRAMES[by](prices())).tolist() == [True, True, True]
        if by == "pandas":
            # Whose null of a text is NaN.
            given = [tuple(None if value != value else value for value in row) for row in given]
        assert given == rows and all(type(row) is tuple for row in given)
        assert rows[0] in f and f.contains_many(rows[:1]).all()
        assert f.contains_many(FRAMES[by](prices())).all()
        assert ("id", "price") not in f and ("a", decimal.Decimal("1.5")) not in f


@pytest.mark.parametrize("by", FRAMES)
def test_a_function_is_given_the_values_of_one_column(by):
    pytest.importorskip("pandas")
    values = prices()["price"].to_pylist()
    f = BloomFilter(100, 1e-9, key=str)
    assert f.add_new(FRAMES[by](prices().select(["price"]))).tolist() == [True] * 3
    assert f.contains_many(values).all() and all(value in f for value in values)
    assert "price" not in f and len(StaticFilter(FRAMES[by](prices().select(["price"])), key=str)) == 3
    column = prices()["price"]
    for keys in column, column.chunk(0), column.to_pandas(), pytest.importorskip("polars").from_arrow(column):
        given = []
        BloomFilter(9, key=lambda value: given.append(value) or 1).add_many(keys)
        assert given == values, type(keys)


def test_objects_in_a_frame_of_pandas_are_taken_value_by_value():
    pd = pytest.importorskip("pandas")
    import ipaddress

    day, moment = datetime.date(2024, 5, 1), datetime.datetime(2024, 5, 1, 2, tzinfo=datetime.timezone.utc)
    for values in [
        [day, moment, None],
        [2**63, -1, None],
        [2**70, 1, 0.5],
        [True, 2, None],
        ["a", 1, None],
        [ipaddress.ip_address("10.0.0.1"), ipaddress.ip_address("::1"), None],
        [uuid.UUID(int=1), "a", b"b"],
        [decimal.Decimal("0.10"), decimal.Decimal("1E+30"), decimal.Decimal("NaN")],
        [(1, None), (None, 1), (0, 0)],
        [b"a", "b", None],
        ["a", None, float("nan")],
    ]:
        column = pd.Series(values, dtype=object)
        rows = list(zip(values, [1, 2, 3]))
        frame = pd.DataFrame({"x": column, "y": [1, 2, 3]})
        for f in BloomFilter(100, 1e-9), CuckooFilter(100, 1e-6):
            assert f.add_new(frame).tolist() == [True] * 3, values
            assert all(row in f for row in rows) and f.contains_many(rows).all()
            assert f.contains_many(frame).all()
        alone = BloomFilter(100, 1e-9)
        alone.add_many(frame[["x"]])
        assert alone.contains_many(values).all() and alone.contains_many(column).all()
        if len(set(values)) == 3:
            groups = pd.Series(values, dtype=object).astype("category")
            assert alone.contains_many(groups).all(), values
            f = BloomFilter(100, 1e-9)
            f.add_many(pd.DataFrame({"x": groups, "y": [1, 2, 3]}))
            assert f.contains_many(rows).all(), values


def test_columns_of_pandas_that_have_one_name():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame([[1, "a", None], [2, "b", 0.5]], columns=["x", "y", "x"], index=[7, 7])
    f = BloomFilter(100, 1e-9)
    assert f.add_many(frame) == 2
    assert (1, "a", None) in f and (2, "b", 0.5) in f
    assert frame.columns.tolist() == ["x", "y", "x"]


def test_fixed_binary_in_a_row_is_bytes_everywhere():
    pa = pytest.importorskip("pyarrow")
    made = pa.table({"sha": pa.array([b"abc", None], pa.binary(3)), "n": [7, 8]})
    f = BloomFilter(100, 1e-9)
    f.add_many(made)
    assert (b"abc", 7) in f and (None, 8) in f
    for frame in made.to_pandas(), pytest.importorskip("polars").from_arrow(made), made.to_batches()[0]:
        assert f.contains_many(frame).all()
    # A UUID has a fixed length in a tuple too.
    ids = [uuid.UUID(int=5), uuid.UUID(int=6)]
    made = pa.table({"id": pa.array(ids, pa.uuid()), "n": [7, 8]})
    f = BloomFilter(100, 1e-9)
    f.add_many(made)
    assert f.contains_many(list(zip(ids, [7, 8]))).all() and key_bytes((ids[0], 7)) == ids[0].bytes + word(7)
    assert (ids[0].bytes, 7) not in f
