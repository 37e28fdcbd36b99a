"""lanebloom.spark in sessions of Spark: local[2], local-cluster with executors that are killed, and
Spark Connect. `ci/python.sh spark` runs it with the versions of PySpark that it names."""

import concurrent.futures
import datetime
import decimal
import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("pyspark")
pa = pytest.importorskip("pyarrow")

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession, functions as F, types as T  # noqa: E402

from lanebloom import BloomFilter, SparkBloomFilter, SplitBlockBloomFilter  # noqa: E402
from lanebloom import spark as bloom  # noqa: E402
from test_recipes import recipe  # noqa: E402

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def spark():
    builder = SparkSession.builder.master("local[2]").appName("lanebloom")
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        # Spark 4.0 has UTF8_BINARY_RTRIM and its like by this option only.
        "spark.sql.collation.trim.enabled": "true",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def version(spark):
    return tuple(map(int, spark.version.split(".")[:2]))


def format_of(spark):
    """The version of the format that this Spark makes."""
    return 2 if version(spark) >= (4, 1) else 1


def plan(df):
    return df._jdf.queryExecution().optimizedPlan().toString()


def rows(df):
    """The rows as a sorted list, in which NaN is equal to NaN."""
    return sorted(map(str, df.collect()))


@pytest.mark.parametrize("kind", ["tinyint", "smallint", "int", "bigint", "string"])
def test_a_filter_is_bit_for_bit_that_of_the_keys(spark, kind):
    df = spark.range(-3, 120, numPartitions=5).select(F.when(F.col("id") % 7 != 0, F.col("id")).alias("key"))
    df = df.select(F.col("key").cast(kind))
    keys = [key for (key,) in df.collect() if key is not None]
    built = bloom.build(df, "key", expected=200, rate=1e-3)
    expected = SparkBloomFilter(200, 1e-3, version=format_of(spark))
    expected.update(keys)
    assert built == expected and len(keys) > 100
    # The count leaves nulls out too.
    assert bloom.build(df, F.col("key")).nbytes == SparkBloomFilter(len(keys), 0.01).nbytes


@pytest.mark.parametrize("kind", ["int", "bigint", "string"])
def test_lookups_are_those_of_the_filter(spark, kind):
    # Beyond 2^53, where a float would be another key, and among nulls.
    first = 2**62 if kind == "bigint" else 0
    keys = [first + i if i % 5 else None for i in range(2000)]
    if kind == "string":
        keys = [None if key is None else f"é{key}" for key in keys]
    df = spark.createDataFrame([(key,) for key in keys], f"key {kind}").repartition(3)
    f = bloom.build(df.limit(700), "key", rate=0.05)
    for column in "key", F.col("key"), df["key"]:
        answers = df.select("key", bloom.maybe_in(f, column).alias("found")).collect()
        assert len(answers) == 2000 and sum(found is None for _, found in answers) == 400
        assert all(found == (None if key is None else key in f) for key, found in answers)
        assert 500 < sum(found is True for _, found in answers) < 800
    found = df.filter(bloom.maybe_in(f, "key"))
    if kind in ("int", "bigint"):
        assert "might_contain" in plan(found) and "look_up" not in plan(found)
    else:
        assert "look_up" in plan(found) and "might_contain" not in plan(found)


def test_another_thread_makes_a_lookup(spark):
    f = bloom.build(spark.range(100), "id", expected=1000, rate=1e-3)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        column = pool.submit(bloom.maybe_in, f, "id").result()
    assert spark.range(200).filter(column).count() in range(100, 103)


def test_several_columns_are_looked_up_by_their_hash(spark):
    df = spark.range(1000).select(F.col("id").alias("a"), F.when(F.col("id") % 4 != 0, F.concat(F.lit("b"), "id")).alias("b"))
    f = bloom.build(df.filter("a < 300"), "a", "b", rate=1e-6)
    found = {row.a: row.found for row in df.select("a", bloom.maybe_in(f, "a", "b").alias("found")).collect()}
    assert found == {a: None if a % 4 == 0 else a < 300 for a in range(1000)}
    assert "look_up" not in plan(df.filter(bloom.maybe_in(f, "a", "b")))
    # Rows with nulls are keys too, if that is said.
    for columns in ("a", "b"), ("b",):
        f = bloom.build(df.filter("a < 300"), *columns, rate=1e-6, nulls=True)
        found = {row.a: row.found for row in df.select("a", bloom.maybe_in(f, *columns, nulls=True).alias("found")).collect()}
        assert found == {a: a < 300 or columns == ("b",) and a % 4 == 0 for a in range(1000)}


def test_other_types_are_errors_and_their_hashes_are_keys(spark):
    df = spark.range(100).select(
        F.col("id").cast("double").alias("x"),
        F.expr("date_add(date '2024-01-01', cast(id as int))").alias("day"),
        F.col("id").cast("decimal(9,2)").alias("price"),
        F.array("id").alias("list"),
        F.col("id").cast("string").cast("binary").alias("bytes"),
    )
    loaded = SparkBloomFilter.from_bytes(bloom.build(spark.range(10), "id").to_bytes())
    for column in "x", "day", "price", "list", "bytes":
        with pytest.raises(TypeError, match=rf"column {column} is .*: pass xxhash64\({column}\) to build and to maybe_in"):
            bloom.build(df, column)
        # (Spark itself casts no array and no binary to a bigint.)
        message = rf"maybe_in: column {column} is .*: pass xxhash64\({column}\) to build|DATATYPE_MISMATCH.*(ARRAY|BINARY)"
        with pytest.raises(Exception, match=message) as raised:
            df.filter(bloom.maybe_in(loaded, column)).collect()
        assert "UNIX_DATE" not in str(raised.value) and "Traceback" not in str(raised.value)
    key = F.xxhash64("day")
    f = bloom.build(df.filter("x < 10"), key, expected=1000, rate=1e-6)
    assert df.filter(bloom.maybe_in(f, key)).count() == 10
    for call in lambda: bloom.build(df), lambda: bloom.maybe_in(f):
        with pytest.raises(TypeError, match="one or more columns"):
            call()


def test_too_many_keys_and_too_large_filters_are_errors(spark, monkeypatch):
    df = spark.range(5000, numPartitions=1)
    # In one part, and only in the union of all parts.
    for many, rate in (df, "1"), (spark.range(240, numPartitions=4), "0.2[0-9]"):
        message = f"expected=100, but there are more keys: the rate would be {rate}, not 0.01. Say how"
        with pytest.raises(ValueError, match=message):
            bloom.build(many, "id", expected=100)
    assert bloom.build(df, "id", expected=4900).approx_len > 4900
    assert bloom.build(df.limit(0), "id").approx_len == 0
    f = bloom.build(df, "id")
    monkeypatch.setattr(bloom, "_MOST_BYTES", 5000)
    message = "a filter of [0-9]+ bytes, and the limit is 5000, since Spark sends it to every executor"
    for call in lambda: bloom.build(df, "id"), lambda: bloom.maybe_in(f, "id"):
        with pytest.raises(ValueError, match=message):
            call()


# Joins

KEYS = {
    "tinyint": [1, 2, 3, -4],
    "bigint": [2**53 + 1, 2**62 + 1, -1, 0],
    "string": ["a", "ä", "", "x" * 50],
    "binary": [b"", b"\0", b"\xff" * 9, b"a"],
    "boolean": [True, True, False, False],
    "float": [0.0, -0.0, float("nan"), 1.5],
    "double": [-0.0, float("inf"), float("nan"), 2.0**70],
    "date": [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(2024, 5, 1), datetime.date(9999, 12, 31)],
    "timestamp": [datetime.datetime(1950, 1, 1), datetime.datetime(2024, 5, 1, 1, 2, 3, 4), None, datetime.datetime(2030, 1, 1)],
    "timestamp_ntz": [datetime.datetime(1950, 1, 1), datetime.datetime(2024, 5, 1, 1, 2, 3, 4), None, datetime.datetime(2030, 1, 1)],
    "decimal(10,2)": [decimal.Decimal("1.10"), decimal.Decimal("-7"), decimal.Decimal("0.01"), decimal.Decimal("12345678.99")],
    "decimal(38,10)": [decimal.Decimal("1.1"), decimal.Decimal("-7"), decimal.Decimal(10) ** 20, decimal.Decimal("0.0000000001")],
}


@pytest.mark.parametrize("kind", KEYS)
def test_joins_have_the_rows_of_joins_without_a_filter(spark, kind):
    a, b, c, d = KEYS[kind]
    large = spark.createDataFrame([(a, 1), (b, 2), (c, 3), (d, 4), (None, 5), (a, 6)] * 3, f"key {kind}, n int")
    other = {0.0: -0.0, -0.0: 0.0} if kind in ("float", "double") else {}
    small = spark.createDataFrame([(other.get(a, a), "p"), (c, "q"), (None, "r"), (c, "s")], f"key {kind}, name string")
    aliases = ["right_outer", "leftsemi", "semi", "INNER"] if kind == "string" else []
    for how in "inner", "right", "left_semi", *aliases:
        joined = bloom.join(large, small, "key", how)
        assert rows(joined) == rows(large.join(small, "key", how)), how
        assert joined.count() >= 6
    large, small = large.withColumn("two", F.col("n") % 2), small.withColumn("two", F.lit(1))
    joined = bloom.join(large, small, ["key", "two"], expected=10, rate=1e-6)
    assert rows(joined) == rows(large.join(small, ["key", "two"])) and joined.count() >= 3


def test_a_join_drops_the_rows_without_a_partner_before_it_shuffles(spark):
    large, small = spark.range(20_000).withColumn("x", F.rand(1)), spark.range(0, 200, 2)
    for joined, kept in [
        (bloom.join(large, small, "id", rate=1e-3), range(100, 150)),
        (bloom.join(large, small, "id", rate=0.5), range(5_000, 15_000)),
    ]:
        assert joined.count() == 100
        before = joined._jdf.queryExecution().analyzed().toString()
        assert "might_contain" in before and "Filter" in plan(joined)
        f = bloom.build(small, "id", rate=1e-3 if kept.start == 100 else 0.5)
        assert large.filter(bloom.maybe_in(f, "id")).count() in kept
    # An int and a bigint are one key of one column.
    assert bloom.join(large, small.select(F.col("id").cast("int")), "id").count() == 100


def test_joins_that_would_lose_rows_or_compare_hashes_of_two_types_are_refused(spark):
    large, small = spark.range(10), spark.range(5)
    for how in "left", "left_outer", "full", "outer", "left_anti", "anti", "cross", "no join":
        with pytest.raises(ValueError, match=f"how='{how}' may keep rows of large that have no partner"):
            bloom.join(large, small, "id", how)
    for one, other in [("bigint", "string"), ("float", "double"), ("decimal(10,2)", "decimal(12,2)"), ("date", "timestamp")]:
        large = spark.createDataFrame([], f"id {one}, n int")
        small = spark.createDataFrame([], f"id {other}, n bigint")
        with pytest.raises(TypeError, match=r"column id is .* in large and .* in small: cast one of them"):
            bloom.join(large, small, "id")
    with pytest.raises(TypeError, match="column n is int in large and bigint in small"):
        bloom.join(large.drop("id").withColumn("id", F.lit(1)), small.drop("id").withColumn("id", F.lit(1)), ["id", "n"])
    with pytest.raises(TypeError, match="equal values may have different hashes"):
        bloom.join(spark.range(3).select(F.array("id").alias("l")), spark.range(3).select(F.array("id").alias("l")), "l")
    for on in [], 3, [F.col("id")]:
        with pytest.raises(TypeError):
            bloom.join(spark.range(3), spark.range(3), on)


def test_a_filter_knows_of_what_it_was_built(spark):
    df = spark.range(20).select("id", F.col("id").cast("string").alias("name"), F.col("id").cast("int").alias("small"))
    ints, texts = bloom.build(df, "id"), bloom.build(df, F.col("name"))
    pairs, nulls = bloom.build(df, "id", "name"), bloom.build(df, "id", nulls=True)
    for f, column in (ints, "id"), (ints, "small"), (texts, "name"):
        assert df.filter(bloom.maybe_in(f, column)).count() == 20
    assert df.filter(bloom.maybe_in(pairs, "id", "name")).count() == 20
    assert df.filter(bloom.maybe_in(nulls, "id", nulls=True)).count() == 20
    for f, columns, message in [
        (ints, ["name"], "column name is string, and the filter was built of bigint: cast one of them"),
        (texts, ["id"], "column id is bigint, and the filter was built of string"),
        (pairs, ["small", "name"], "column small is int, and the filter was built of bigint"),
        (pairs, [F.col("id"), df["id"]], "column id is bigint, and the filter was built of string"),
    ]:
        with pytest.raises(Exception, match=message):
            df.filter(bloom.maybe_in(f, *columns)).collect()
    with pytest.raises(TypeError, match=r"the filter is of 2 columns \(bigint, string\), and maybe_in was given 1"):
        bloom.maybe_in(pairs, "id")
    for f, said in (nulls, False), (ints, True):
        with pytest.raises(TypeError, match=f"built with nulls={not said}: say nulls={not said} to maybe_in too"):
            bloom.maybe_in(f, "id", nulls=said)


def test_what_is_not_of_spark_is_named(spark):
    pandas = pytest.importorskip("pandas")
    frame, df = pandas.DataFrame({"id": [1]}), spark.range(3)
    for call in lambda: bloom.build(frame, "id"), lambda: bloom.join(df, frame, "id"), lambda: bloom.join(frame, df, "id"):
        with pytest.raises(TypeError, match=r"a pandas\..*DataFrame is not a DataFrame of Spark: spark.createDataFrame makes one"):
            call()
    for call in bloom.to_spark, lambda f: bloom.maybe_in(f, "id"):
        with pytest.raises(TypeError, match="a BloomFilter, and Spark has a SparkBloomFilter: lanebloom.spark.build makes one"):
            call(BloomFilter(10))


def test_names_with_dots_are_those_of_sparks_join(spark):
    large = spark.range(10).select(F.col("id").alias("a.b"), F.lit("x").alias("c`d"))
    small = large.limit(3)
    for on in "a.b", "c`d", ["a.b", "c`d"]:
        joined = bloom.join(large, small, on)
        assert rows(joined) == rows(large.join(small, on)) and joined.count() >= 3


@pytest.fixture
def chars(spark, tmp_path):
    for name, kind in ("c5", "char(5)"), ("c8", "char(8)"), ("v8", "varchar(8)"):
        spark.sql(f"DROP TABLE IF EXISTS {name}")
        spark.sql(f"CREATE TABLE {name}(k {kind}, j INT, s STRUCT<k: {kind}>) USING parquet LOCATION '{tmp_path / name}'")
        spark.sql(f"INSERT INTO {name} SELECT k, j, named_struct('k', k) FROM VALUES ('abc', 1), ('d', 2), (null, 3) AS t(k, j)")
    yield [spark.table(name) for name in ("c5", "c8", "v8")]
    for name in "c5", "c8", "v8":
        spark.sql(f"DROP TABLE {name}")


def test_chars_of_two_lengths_join(spark, chars):
    c5, c8, v8 = chars
    strings = spark.createDataFrame([("abc", 1), ("abc  ", 1)], "k string, j int")
    for large, small in (c5, c8), (c8, c5), (c5, v8), (strings, c8), (c5, c5.limit(1)):
        for on in "k", ["k", "j"]:
            assert rows(bloom.join(large, small.select("k", "j"), on)) == rows(large.join(small.select("k", "j"), on))
    assert c5.join(c8, "k").count() == 2
    # Spark pads in no struct.
    assert c5.join(c8, c5.s.k == c8.s.k).count() == 0
    for columns in ["k"], ["j", "k"], [F.col("k").alias("z")]:
        with pytest.raises(TypeError, match=r"column (k|z) is char\(5\), and Spark pads .*: pass rtrim\((k|z)\) to build and to maybe_in"):
            bloom.build(c5, *columns)
    for columns in [F.rtrim("k")], ["j", F.rtrim("k")]:
        assert c8.filter(bloom.maybe_in(bloom.build(c5, *columns), *columns)).count() == 2
    assert v8.filter(bloom.maybe_in(bloom.build(v8, "k"), "k")).count() == 2


COLLATED = [
    ("UTF8_LCASE", ["A", "ΑΣ", "İ"], ["a", "ας", "i\u0307"], r"translate\(lower\({}\), 'ς', 'σ'\)"),
    ("UTF8_BINARY_RTRIM", ["a "], ["a   "], r"rtrim\({}\)"),
    ("UTF8_LCASE_RTRIM", ["A ", "ΑΣ"], ["a", "ασ  "], r"translate\(lower\(rtrim\({}\)\), 'ς', 'σ'\)"),
    ("UNICODE_CI", ["é"], ["E\u0301"], None),
]


@pytest.mark.parametrize("collation, left, right, advice", COLLATED, ids=[row[0] for row in COLLATED])
def test_collated_strings_are_refused_with_what_to_pass(spark, collation, left, right, advice):
    if version(spark) < (4, 0):
        pytest.skip("Spark 4.0 and later have collations")

    def table(texts):
        rows = [(text, i) for i, text in enumerate(texts)]
        return spark.createDataFrame(rows, "t string, j int").selectExpr(f"t COLLATE {collation} AS t", "j", "0L AS id")

    large, small = table(left), table(right)
    # Spark 4.0 reads İ in another way.
    assert large.join(small, "t").count() >= len(left) - 1
    hint = f"Pass xxhash64\\({advice.format('t')}\\) to build" if advice else "Join without a filter"
    for columns in ["t"], ["id", "t"]:
        with pytest.raises(TypeError, match=f"column t is string collate {collation}: equal values may have different hashes. {hint}"):
            bloom.build(small, *columns)
    with pytest.raises(TypeError, match=f"column t is string collate {collation}.*{hint.lower()[:9]}"):
        bloom.join(large, small, "t")
    for nested in F.struct("t", "j"), F.array("t"):
        with pytest.raises(TypeError, match=r"collate .*: equal values may have different hashes. Join without a filter"):
            bloom.build(small, "id", nested.alias("n"))
    # A filter whose columns are not known.
    plain = bloom.build(spark.createDataFrame([("a", 0)], "t string, id bigint"), "t", "id")
    texts = bloom.build(spark.createDataFrame([("a",)], "t string"), "t")
    for f, columns in (plain, ["t", "id"]), (texts, ["t"]):
        for known in f, SparkBloomFilter.from_bytes(f.to_bytes()):
            with pytest.raises(Exception, match=f"maybe_in: column t is string collate {collation}"):
                large.filter(bloom.maybe_in(known, *columns)).collect()
    if advice:
        key = F.expr(f"xxhash64({advice.format('t')})".replace("\\", ""))
        for keys in [key], ["id", key]:
            found = large.filter(bloom.maybe_in(bloom.build(small, *keys), *keys))
            assert found.count() >= large.join(small, "t", "left_semi").count() > 0


# Spark's own filters

def test_filters_of_spark_are_read_and_made(spark):
    df = spark.range(1000).withColumn("name", F.concat(F.lit("n"), "id"))
    for column in "id", "name":
        made = bloom.from_spark(df._jdf.stat().bloomFilter(column, 1000, 0.01))
        assert made == bloom.build(df, column, expected=1000, rate=0.01)
        back = bloom.to_spark(made)
        assert bloom.from_spark(back) == made
        assert back.mightContain(df.first()[column]) and not back.mightContainString("nobody")
    f = SparkBloomFilter(1000, 0.01, version=format_of(spark))
    f.update(range(1000))
    assert bloom.from_spark(f.to_bytes()) == f
    assert df.filter(bloom.maybe_in(f, "id")).count() == 1000
    with pytest.raises(ValueError):
        bloom.from_spark(b"junk")
    old = SparkBloomFilter(1000, version=1)
    old.update(range(100))
    assert 100 <= df.filter(bloom.maybe_in(old, "id")).count() < 150
    if format_of(spark) == 1:
        for call in bloom.to_spark, lambda f: bloom.maybe_in(f, "id"):
            with pytest.raises(ValueError, match="reads version=1 of its filters only"):
                call(SparkBloomFilter(10))


def test_values_are_found_in_the_parquet_filters_that_spark_writes(spark, tmp_path):
    """10,000 bytes are 312.5 blocks; Spark 3.5 takes 16,384 instead. Timestamps are INT96 by default, and filters of booleans are empty."""
    df = spark.range(1000).selectExpr(
        "id", "timestamp_micros(1700000000000000 + id * 1000003) AS ts", "timestamp_micros(-id * 100000000003) AS old",
        "cast(id AS float) / 8 AS f", "cast(id AS decimal(9,2)) AS d9", "cast(id AS decimal(38,3)) AS d38",
        "date_add(date '1960-01-01', cast(id AS int)) AS day", "cast(id AS short) AS small", "concat('n', id) AS name", "id % 2 = 0 AS flag",
    )
    options = {"parquet.bloom.filter.enabled": "true", "parquet.bloom.filter.max.bytes": "10000", "parquet.enable.dictionary": "false"}
    df.coalesce(1).write.options(**options).parquet(str(tmp_path / "spark"))
    (path,) = (tmp_path / "spark").glob("*.parquet")
    rows = df.collect()
    for column in df.columns:
        f = SplitBlockBloomFilter.from_parquet(path, column, 0)
        values = [row[column] for row in rows]
        if column in ("ts", "old"):
            values = [value.astimezone(datetime.timezone.utc) for value in values]
        assert all(SplitBlockBloomFilter.row_groups(path, column, [value]) == [0] for value in values[::100]), column
        if column == "flag":
            assert f is None
            continue
        assert f.nbytes in (312 * 32, 16_384) and f.contains_many(values).all(), column
        assert f.nbytes == 312 * 32 or version(spark) < (4, 3), column
    assert datetime.datetime(2000, 1, 1) not in SplitBlockBloomFilter.from_parquet(path, "ts", 0)


# The README

def test_the_recipe_of_a_join(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {
        "orders": spark.range(5000).select((F.col("id") % 1000).alias("customer"), F.col("id").alias("order")),
        "customers": spark.range(1000).select(F.col("id").alias("customer"), F.when(F.col("id") < 50, "NO").otherwise("SE").alias("country")),
    }
    exec(recipe("Spark: a filter before a join"), names)
    assert names["joined"].count() == 250
    assert 250 <= names["pruned"].count() < 290
    assert SparkBloomFilter.load("buyers.bloom") == names["seen"]


def test_the_recipe_of_a_stream_goes_on_after_a_crash(spark, tmp_path):
    names = {}
    exec(recipe("Spark: a stream without duplicates").replace("/data/stream", str(tmp_path)), names)
    only_new = names["only_new"]
    source = tmp_path / "source"
    source.mkdir()

    def arrive(name, ids):
        (tmp_path / name).write_text("".join(json.dumps({"id": i}) + "\n" for i in ids))
        # By renaming: the stream reads every file that is there.
        (tmp_path / name).rename(source / name)

    def go(each):
        stream = spark.readStream.schema("id bigint").option("maxFilesPerTrigger", 1).json(str(source))
        query = stream.writeStream.foreachBatch(each).option("checkpointLocation", str(tmp_path / "checkpoint"))
        query.trigger(availableNow=True).start().awaitTermination()

    arrive("a", [1, 2, 3, 3])
    arrive("b", [3, 4])
    go(only_new)

    def crashes_after_the_output(batch, number):
        only_new(batch, number)
        raise RuntimeError("the machine is gone")

    def crashes_before(batch, number):
        raise RuntimeError("the machine is gone")

    arrive("c", [4, 5, 1, 6])
    for crash in crashes_after_the_output, crashes_before, crashes_after_the_output:
        with pytest.raises(Exception, match="the machine is gone"):
            go(crash)
    arrive("d", [7, 6, 2**60])
    # Spark begins with the batch that failed.
    go(only_new)
    new = [row.id for row in spark.read.parquet(*map(str, sorted((tmp_path / "new").iterdir()))).collect()]
    assert sorted(new) == [1, 2, 3, 4, 5, 6, 7, 2**60]


# Other sessions

def test_killed_executors_change_no_answer():
    run = subprocess.run(
        [sys.executable, str(HERE / "spark_faults.py"), "3"], capture_output=True, text=True, timeout=900
    )
    assert run.returncode == 0, run.stdout + run.stderr[-3000:]
    assert "3 kills, all answers right" in run.stdout


CONNECT = """
import os, sys
from pyspark.sql import SparkSession, functions as F
from lanebloom import SparkBloomFilter, spark as bloom

spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
df = spark.range(2**60, 2**60 + 1000).select(F.when(F.col("id") % 3 != 0, F.col("id")).alias("id"))
df = df.withColumn("name", F.concat(F.lit("n"), "id"))
for columns in ["id"], ["name"], ["id", "name"]:
    f = bloom.build(df.limit(300), *columns, rate=0.05)
    answers = df.select("id", bloom.maybe_in(f, *columns).alias("found")).collect()
    assert sum(a.found is None for a in answers) in (333, 334), columns
    if columns == ["id"]:
        assert all(a.found == (a.id in f) for a in answers if a.id is not None)
    assert 200 <= sum(a.found is True for a in answers) < 300, columns
assert bloom.join(df, df.limit(300), "id").count() == 200
try:
    bloom.to_spark(f)
except RuntimeError as error:
    assert "not Spark Connect" in str(error)
    print("all right")
"""


def test_spark_connect(spark):
    pytest.importorskip("grpc")
    if version(spark) < (4, 0):
        pytest.skip("PySpark 3.5 downloads its server's package")
    run = subprocess.run([sys.executable, "-c", CONNECT], capture_output=True, text=True, timeout=600)
    assert run.stdout.endswith("all right\n"), run.stdout + run.stderr[-3000:]
