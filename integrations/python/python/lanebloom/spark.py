"""Filters in Spark jobs: built on the executors, and looked up inside the JVM.

    from lanebloom import spark as bloom

    seen = bloom.build(users, "id")
    events.filter(bloom.maybe_in(seen, "user_id"))
    bloom.join(events, users, on="id")

For PySpark 3.5 and 4.x. The executors need this package too, except for lookups in the JVM.

A filter pays off if it drops most rows, and if the rows that it drops would have been shuffled. It
costs more than it saves if most rows match, or if Spark broadcasts the small side anyway.

Keys. The filter of one integer or string column holds its values, as in df.stat.bloomFilter. The
filter of several columns holds their xxhash64, as Spark's own runtime filters do; so the columns of
both sides must have the same types: an int and a bigint of one value have two hashes. For one
column of another type, such as a date or a decimal, pass xxhash64(column) to build and to maybe_in.
Columns whose equal values have different bytes, CHAR and strings with a collation, are errors that
name an expression to pass instead.

A filter of build knows the types of its columns, and maybe_in fails for others. A filter that was
loaded from a file does not know them.

Integers and hashes are looked up by Spark's own code, in the JVM. Strings go through Python, which
takes several times as long: xxhash64(column) is faster for them too, but loses rows of CHAR and
collated columns, whose bytes differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Optional, Union, cast

from ._lanebloom import SparkBloomFilter

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructField

__all__ = ["build", "from_spark", "join", "maybe_in", "to_spark"]

# The names by DataType.simpleString of the types whose values a filter holds as they are.
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
# Types whose equal values have one xxhash64, and decimals of one precision and scale.
_HASHED = (*_INTEGERS, "string", "binary", "boolean", "float", "double", "date", "timestamp", "timestamp_ntz")

# Where a schema keeps the type CHAR or VARCHAR of a string. Spark pads two CHAR columns to one
# length before it compares them, but not a CHAR and a string.
_CHAR_METADATA = "__CHAR_VARCHAR_TYPE_STRING"

# Expressions that make equal strings equal bytes, by the collation. (Of 14,375 pairs of all letters
# that UTF8_LCASE takes for equal, lower alone differs for some with a final sigma.)
_FOLDED = {
    "UTF8_BINARY_RTRIM": "rtrim({})",
    "UTF8_LCASE": "translate(lower({}), 'ς', 'σ')",
    "UTF8_LCASE_RTRIM": "translate(lower(rtrim({})), 'ς', 'σ')",
}

# Joins that drop each row of the large side that has no partner.
_PRUNED = ("inner", "right", "rightouter", "semi", "leftsemi")

# Parts of a filter are merged by slices of this many bytes. (Spark sends 10,000 rows at a time to
# Python, and Arrow takes less than 2 GiB of bytes.)
_SLICE = 1 << 16

# The most bytes of a filter. Spark keeps several copies of it in the memory of the driver.
_MOST_BYTES = 256 << 20


def build(
    df: DataFrame,
    *columns: Union[Column, str],
    expected: Optional[int] = None,
    rate: float = 0.01,
    nulls: bool = False,
) -> SparkBloomFilter:
    """Build a filter of the keys in these columns, on the executors.

    expected: the number of keys; without it, the rows of df are counted first, so df is computed
              twice: cache it if that is costly.
    rate:     the share of absent keys that are taken for present.
    nulls:    True makes a key of each row, also if it has nulls: for joins by eqNullSafe. Say it to
              maybe_in too. Otherwise rows with a null in one of the columns are left out, since no
              join by = finds them.

    Each task fills a filter of the whole size, and the executors merge them slice by slice. Many
    more keys than expected are a ValueError. The filter has version 2 of Spark's format, and version 1
    for a Spark before 4.1.
    """
    keys, types = _keys(df, columns, nulls)
    if expected is None:
        expected = max(1, keys.count())
    version: Any = 2 if _version(df.sparkSession.version) >= (4, 1) else 1
    layout = {"expected": expected, "rate": rate, "version": version}
    result = SparkBloomFilter(**layout)
    _check_size(result)

    def fill(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        part, rows = SparkBloomFilter(**layout), 0
        for batch in batches:
            rows += batch.num_rows
            part.add_many(batch.column(0))
        if rows:
            data = part.to_bytes()
            starts = range(0, len(data), _SLICE)
            yield _rows(starts, [data[start : start + _SLICE] for start in starts])

    # The order of the bytes does not matter for a union, and all parts begin alike.
    size = len(result.to_bytes())

    def merge(batches: Iterable[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        merged: dict[int, int] = {}
        for batch in batches:
            for start, data in zip(*batch.to_pydict().values()):
                merged[start] = merged.get(start, 0) | int.from_bytes(data, "little")
        yield _rows(merged, [merged[start].to_bytes(min(_SLICE, size - start), "little") for start in merged])

    parts = keys.mapInArrow(fill, "start bigint, data binary")
    parts = parts.repartition("start").mapInArrow(merge, "start bigint, data binary")
    slices = sorted(parts.collect())
    if slices:
        result = SparkBloomFilter.from_bytes(b"".join(data for _, data in slices))
    if result.current_rate > 2 * rate:
        raise ValueError(
            f"expected={expected}, but there are more keys: the rate would be {result.current_rate:.2g}, not {rate:.2g}. "
            "Say how many there are, or leave expected out"
        )
    result._built_of = types, nulls  # type: ignore[attr-defined]
    return result


def maybe_in(filter: SparkBloomFilter, *columns: Union[Column, str], nulls: bool = False) -> Column:
    """A column that says whether the key in these columns may be in the filter.

    False is certain. The result is null if one of the columns is, unless nulls=True, which is for
    filters that were built so.

    One column of integers or strings is looked up as it is, several by their xxhash64. One column of
    another type, and a column of another type than those of build, is an error of the query.
    """
    from pyspark.sql import functions as F

    if not columns:
        raise TypeError("maybe_in takes one or more columns")
    _check_size(filter)
    types, built_nulls = getattr(filter, "_built_of", (None, nulls))
    if types is not None and len(types) != len(columns):
        raise TypeError(f"the filter is of {len(types)} columns ({', '.join(types)}), and maybe_in was given {len(columns)}")
    if nulls != built_nulls:
        raise TypeError(f"the filter was built with nulls={built_nulls}: say nulls={built_nulls} to maybe_in too")
    given = [F.col(column) if isinstance(column, str) else column for column in columns]
    native = _native(filter)
    key, hashed = given[0], nulls or len(given) > 1
    if hashed:
        key = F.xxhash64(*given)
        found = native(key) if native else _by_python(filter, key)
        for column in [] if nulls else given:
            found = F.when(column.isNotNull(), found)
    else:
        found = _by_python(filter, key)
        if native:
            found = F.when(F.typeof(key).isin(*_INTEGERS), native(key)).otherwise(found)
    # Spark knows the types before it runs the query, and keeps only the branch of the type.
    for i, column in enumerate(given):
        kind, label = F.typeof(column), _label(columns[i])
        problem: Any
        if types is not None:
            wanted = _INTEGERS if not hashed and types[i] in _INTEGERS else (types[i],)
            fits = kind.isin(*wanted)
            other = F.lit(f", and the filter was built of {types[i]}: cast one of them")
            problem = F.when(kind.contains(" collate "), _COLLATED).otherwise(other)
        elif hashed:
            fits, problem = ~kind.contains(" collate "), _COLLATED
        else:
            fits = kind.isin(*_INTEGERS, "string", "binary")
            problem = F.when(kind.contains(" collate "), _COLLATED).otherwise(_other_type(label))
        problem = problem if not isinstance(problem, str) else F.lit(problem)
        error = F.raise_error(F.concat(F.lit(f"maybe_in: column {label} is "), kind, problem))
        found = F.when(fits, found).otherwise(error.cast("boolean"))
    return found


def join(
    large: DataFrame,
    small: DataFrame,
    on: Union[str, Iterable[str]],
    how: str = "inner",
    *,
    expected: Optional[int] = None,
    rate: float = 0.01,
) -> DataFrame:
    """large.join(small, on, how), after a filter of small's keys has dropped rows of large.

    on:       the names of the columns that both have, of the same types; CHAR may have two lengths.
    how:      inner, right or left_semi. The others keep rows of large that have no partner, which
              the filter would drop: they are a ValueError.
    expected: the number of rows of small; without it they are counted.
    rate:     the share of rows without a partner that the filter keeps.

    small is computed for the filter, and again for the join: cache it if that is costly. It must
    give the same rows each time.
    """
    from pyspark.sql import functions as F

    names = [on] if isinstance(on, str) else list(on)
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"on={on!r}: a name of a column that both sides have, or several")
    if how.lower().replace("_", "") not in _PRUNED:
        raise ValueError(
            f"how={how!r} may keep rows of large that have no partner, which the filter drops: inner, right or left_semi"
        )
    _check_frame(large)
    _check_frame(small)
    # Names, and not paths of nested fields, as in Spark's join.
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    key: list[Any] = []
    for name, column in zip(names, quoted):
        one, other = (df.select(column).schema[0] for df in (large, small))
        kind, its = one.dataType.simpleString(), other.dataType.simpleString()
        if kind != its and not (len(names) == 1 and kind in _INTEGERS and its in _INTEGERS):
            raise TypeError(f"column {name} is {kind} in large and {its} in small: cast one of them")
        if kind not in _HASHED and not kind.startswith("decimal"):
            advice = _advice(one.dataType, name) or "join without a filter"
            raise TypeError(f"column {name} is {kind}: equal values may have different hashes. Here {advice}")
        chars = _is_char(one), _is_char(other)
        if all(chars):
            key.append(F.rtrim(F.col(column)))
        else:
            # Spark compares these as strings: build need not refuse the CHAR.
            key.append(F.col(column).cast("string") if any(chars) else F.col(column))
    if len(names) == 1 and kind not in _INTEGERS:
        key = [F.when(key[0].isNotNull(), F.xxhash64(*key))]
    filter = build(small, *key, expected=expected, rate=rate)
    return large.filter(maybe_in(filter, *key)).join(small, names, how)


def from_spark(filter: Any) -> SparkBloomFilter:
    """The filter that Spark made: a BloomFilter of the JVM, such as df._jdf.stat().bloomFilter(...),
    or the bytes of one, such as the result of the aggregate bloom_filter_agg."""
    if isinstance(filter, (bytes, bytearray, memoryview)):
        return SparkBloomFilter.from_bytes(filter)
    out = _jvm().java.io.ByteArrayOutputStream()
    filter.writeTo(out)
    return SparkBloomFilter.from_bytes(out.toByteArray())


def to_spark(filter: SparkBloomFilter) -> Any:
    """The filter as a BloomFilter of the JVM, org.apache.spark.util.sketch.BloomFilter."""
    _check_class(filter)
    _check_version(filter)
    jvm = _jvm()
    stream = jvm.java.io.ByteArrayInputStream(filter.to_bytes())
    return jvm.org.apache.spark.util.sketch.BloomFilter.readFrom(stream)


def _version(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _check_class(filter: SparkBloomFilter) -> None:
    if not isinstance(filter, SparkBloomFilter):
        raise TypeError(f"a {type(filter).__name__}, and Spark has a SparkBloomFilter: lanebloom.spark.build makes one")


def _check_frame(df: DataFrame) -> None:
    if not hasattr(df, "sparkSession"):
        raise TypeError(f"a {type(df).__module__}.{type(df).__name__} is not a DataFrame of Spark: spark.createDataFrame makes one")


def _check_size(filter: SparkBloomFilter) -> None:
    _check_class(filter)
    if filter.nbytes > _MOST_BYTES:
        raise ValueError(
            f"a filter of {filter.nbytes} bytes, and the limit is {_MOST_BYTES}, since Spark sends it to every executor: "
            "take a higher rate, or join parts of the small side, one after another"
        )


_COLLATED = ": its equal strings have different bytes. The error of build for such a column names what to pass to both"


def _other_type(label: str) -> str:
    return f": pass xxhash64({label}) to build and to maybe_in"


def _label(column: Union[Column, str]) -> str:
    # Column<'name'>
    return column if isinstance(column, str) else str(column).removeprefix("Column<'").removesuffix("'>")


def _is_char(field: StructField) -> bool:
    """Whether it is a CHAR. (Within a struct, Spark pads none.)"""
    return field.metadata.get(_CHAR_METADATA, "").startswith("char(")


def _advice(kind: DataType, label: str) -> Optional[str]:
    """The advice for a string with a collation."""
    folded = _FOLDED.get(getattr(kind, "collation", ""))
    return folded and f"pass xxhash64({folded.format(label)}) to build and to maybe_in, and join without this function"


def _odd(kind: DataType) -> Optional[DataType]:
    """The type itself, or the first within it, of which equal values may have different hashes."""
    inner = [field.dataType for field in getattr(kind, "fields", [])] or [getattr(kind, "elementType", None)]
    if inner != [None]:
        return next((odd for odd in map(_odd, inner) if odd), None)
    name = kind.simpleString()
    return None if name in _HASHED or name.startswith("decimal") else kind


def _keys(df: DataFrame, columns: tuple[Union[Column, str], ...], nulls: bool) -> tuple[DataFrame, list[str]]:
    """The keys, one column of bigint or string, and the types of the columns."""
    from pyspark.sql import functions as F

    if not columns:
        raise TypeError("build takes one or more columns")
    _check_frame(df)
    chosen = df.select(*columns)
    fields = list(chosen.schema)
    types = [field.dataType.simpleString() for field in fields]
    for field, kind in zip(fields, types):
        odd = _odd(field.dataType)
        if odd is not None:
            advice = _advice(odd, field.name) if odd is field.dataType else None
            advice = advice or "Join without a filter"
            raise TypeError(f"column {field.name} is {kind}: equal values may have different hashes. {advice[0].upper() + advice[1:]}")
        if _is_char(field):
            char = field.metadata[_CHAR_METADATA]
            raise TypeError(
                f"column {field.name} is {char}, and Spark pads a CHAR to the length of another one: "
                f"pass rtrim({field.name}) to build and to maybe_in"
            )
    names = [f"c{i}" for i in range(len(types))]
    chosen, label = chosen.toDF(*names), chosen.columns[0]
    # (dropna would drop NaN too.)
    for name in [] if nulls else names:
        chosen = chosen.filter(F.col(name).isNotNull())
    if nulls or len(types) > 1:
        key = F.xxhash64(*names)
    elif types[0] in _INTEGERS:
        key = F.col(names[0]).cast("bigint")
    elif types[0] == "string":
        key = F.col(names[0])
    else:
        raise TypeError(f"column {label} is {types[0]}{_other_type(label)}")
    return chosen.select(key), types


def _rows(starts: Iterable[int], data: list[bytes]) -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array(starts, pyarrow.int64()), pyarrow.array(data, pyarrow.binary())], ["start", "data"]
    )


def _by_python(filter: SparkBloomFilter, column: Column) -> Column:
    """A lookup that moves the keys to Python: of any column whose type a filter takes.

    By Arrow where Spark has it, 4.1 and later. Otherwise one key after another: a pandas_udf would
    make floats of bigints with nulls, and those above 2^53 would not be found.
    """
    import pyarrow
    import pyarrow.compute
    from pyspark.sql import functions

    F: Any = functions

    def look_up(keys: Any) -> Any:
        found = pyarrow.array(filter.contains_many(keys, as_arrow=True))
        return pyarrow.compute.if_else(keys.is_valid(), found, None)

    def look_up_one(key: Any) -> Optional[bool]:
        return None if key is None else key in filter

    result: Column
    if hasattr(F, "arrow_udf"):
        # From these Spark knows that it is a function of arrays.
        look_up.__annotations__ = {"keys": pyarrow.Array, "return": pyarrow.Array}
        result = F.arrow_udf(look_up, "boolean")(column)
    else:
        result = F.udf(look_up_one, "boolean")(column)
    return result


# Private names of Spark, each with what it is for. tests/test_spark.py runs them.


def _jvm() -> Any:
    """The driver's JVM; a RuntimeError on Spark Connect, where there is none."""
    from pyspark import SparkContext
    from pyspark.sql.utils import is_remote

    context = SparkContext._active_spark_context
    if context is None or is_remote():
        raise RuntimeError("no JVM: this needs a classic session of Spark, not Spark Connect")
    return context._jvm


def _check_version(filter: SparkBloomFilter) -> None:
    """Fails if the JVM's Spark cannot read the filter."""
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    if context is not None and filter.version == 2 and _version(context.version) < (4, 1):
        raise ValueError(f"Spark {context.version} reads version=1 of its filters only, and this one has version=2")


def _native(filter: SparkBloomFilter) -> Optional[Callable[[Any], Column]]:
    """The function that looks up a column of integers by Spark's might_contain, which is not a function
    of SQL; None on Spark Connect, and where a Spark has other names."""
    from pyspark.sql import Column, SparkSession
    from pyspark.sql import functions as F
    from pyspark.sql.utils import is_remote

    if is_remote():
        return None
    _check_version(filter)
    from py4j.java_gateway import JavaClass

    jvm, column = _jvm(), cast(Any, Column)
    catalyst = jvm.org.apache.spark.sql.catalyst.expressions
    might_contain, modes = catalyst.BloomFilterMightContain, catalyst.EvalMode
    # A name that the JVM does not have is a package.
    if not isinstance(might_contain, JavaClass) or not isinstance(modes, JavaClass):
        return None

    def as_long(key: Any) -> Any:
        # Column.cast would refuse dates with bad advice, "use UNIX_DATE", before maybe_in does.
        return catalyst.Cast(key, jvm.org.apache.spark.sql.types.DataTypes.LongType, jvm.scala.Option.empty(), modes.LEGACY())

    utils = jvm.org.apache.spark.sql.classic.ExpressionUtils
    if not isinstance(utils, JavaClass):
        data: Any = F.lit(filter.to_bytes())
        return lambda key: column(jvm.org.apache.spark.sql.Column(might_contain(data._jc.expr(), as_long(key._jc.expr()))))
    # A subquery, so that plans and errors do not show the bytes: for 60 MB it saves a second.
    # (The active session is one of this thread.)
    session = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    data = session.createDataFrame([(filter.to_bytes(),)], "filter binary").scalar()
    return lambda key: column(utils.column(might_contain(utils.expression(data._jc), as_long(utils.expression(key._jc)))))
