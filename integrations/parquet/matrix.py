"""The tables of docs/PARQUET.md: measures each cell, prints them, and compares them with the page's. ci/engines.sh runs it.

    python matrix.py PROGRAM PACKAGES FOLDER PAGE

PROGRAM is the example `engines`, PACKAGES a folder with node_modules, FOLDER takes the files.

A reader uses a filter if a row is gone when all bits of the filters are zero. Each type has five files of one table: without
filters, with those of pyarrow (or of another writer, where pyarrow makes none), with those of SplitBlockBloom, and copies of
the latter two whose filters are all zero. The rows of a value are counted in each.
"""

import datetime as dt
import decimal
import itertools
import json
import os
import subprocess
import sys
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 1000  # of a row group
GROUPS = 2
D = decimal.Decimal
EPOCH = dt.datetime(1970, 1, 1)


def moments(rows):
    return [EPOCH + dt.timedelta(seconds=7919 * i, milliseconds=i % 1000) for i in range(rows)]


class Case:
    """A type: its column, the value that is looked up, and its literals."""

    def __init__(self, name, kind, values, value, sql=None, js=("number", None), clickhouse=None, duckdb=None, **options):
        self.name, self.kind, self.values, self.value = name, kind, values, value
        self.sql = sql or str(value)
        self.literals = {"ClickHouse": clickhouse or self.sql, "DuckDB": duckdb or self.sql}
        self.js = [js[0], js[1] or str(value)]
        self.options = options

    def array(self, rows):
        # Row groups of even and odd rows: the least and the largest value rule out none.
        values = list(self.values(rows))
        values = values[::2] + values[1::2]
        if self.kind == pa.float16():
            return pa.array(np.array(values, "f2"))
        if isinstance(self.kind, pa.DictionaryType):
            return pa.array(values, self.kind.value_type).dictionary_encode()
        return pa.array([value.bytes if isinstance(value, uuid.UUID) else value for value in values], self.kind)


def decimals(digits, scale, rows):
    return [D(i * 7 + 1).scaleb(-scale) for i in range(rows)]


def of_decimals(name, kind, digits, stored):
    cast = f"CAST(77.71 AS DECIMAL({digits}, 2))"
    size = {9: 32, 18: 64, 38: 128}.get(digits, 256)
    clickhouse = f"toDecimal{size}('77.71', 2)"
    return Case(
        f"{name}, {'integers' if stored else 'bytes'}", kind, lambda rows: decimals(digits, 2, rows), D("77.71"), cast, ("number", "77.71"),
        clickhouse=clickhouse, duckdb="77.71::DOUBLE" if digits > 38 else cast, store_decimal_as_integer=stored,
    )


def zero(kind, cast):
    sign = lambda rows: [-0.0, *(i / 8 for i in range(1, rows))]
    literal = f"CAST(0.0 AS {cast})"
    return Case(f"{'float32' if cast == 'REAL' else 'float64'}, 0.0 where -0.0 is stored", kind, sign, 0.0, literal, clickhouse=f"to{'Float32' if cast == 'REAL' else 'Float64'}(0)")


def cases():
    yield Case("int8", pa.int8(), lambda rows: [i % 200 - 100 for i in range(rows)], 77)
    yield Case("int16", pa.int16(), lambda rows: [i * 3 for i in range(rows)], 771)
    yield Case("int32", pa.int32(), lambda rows: [i * 7919 for i in range(rows)], 79190)
    yield Case("int64", pa.int64(), lambda rows: [i * 7919 for i in range(rows)], 79190, js=("bigint", None))
    yield Case("uint8", pa.uint8(), lambda rows: [i % 200 for i in range(rows)], 77)
    yield Case("uint16", pa.uint16(), lambda rows: [i * 5 for i in range(rows)], 770)
    yield Case("uint32", pa.uint32(), lambda rows: [i * 7919 for i in range(rows)], 79190)
    yield Case("uint64", pa.uint64(), lambda rows: [i * 7919 for i in range(rows)], 79190, js=("bigint", None))
    yield Case("float16", pa.float16(), lambda rows: [i % 2000 for i in range(rows)], 500.0, "CAST(500 AS REAL)", clickhouse="toFloat32(500)")
    yield Case("float32", pa.float32(), lambda rows: [i / 8 for i in range(rows)], 50.5, "CAST(50.5 AS REAL)", clickhouse="toFloat32(50.5)")
    yield Case("float64", pa.float64(), lambda rows: [i / 8 for i in range(rows)], 50.5, "CAST(50.5 AS DOUBLE)", clickhouse="toFloat64(50.5)")
    yield zero(pa.float32(), "REAL")
    yield zero(pa.float64(), "DOUBLE")
    yield of_decimals("decimal128(9, 2)", pa.decimal128(9, 2), 9, False)
    yield of_decimals("decimal128(9, 2)", pa.decimal128(9, 2), 9, True)
    yield of_decimals("decimal128(18, 2)", pa.decimal128(18, 2), 18, True)
    yield of_decimals("decimal128(38, 2)", pa.decimal128(38, 2), 38, False)
    yield of_decimals("decimal32(9, 2)", pa.decimal32(9, 2), 9, True)
    yield of_decimals("decimal256(50, 2)", pa.decimal256(50, 2), 50, False)
    text = lambda rows: [f"key {i}" for i in range(rows)]
    yield Case("string", pa.string(), text, "key 77", "'key 77'", ("text", "key 77"))
    yield Case("large_string", pa.large_string(), text, "key 77", "'key 77'", ("text", "key 77"))
    yield Case("dictionary of strings", pa.dictionary(pa.int32(), pa.string()), text, "key 77", "'key 77'", ("text", "key 77"))
    hexed = b"key 77".hex()
    to_bytes = lambda rows: [b"key %d" % i for i in range(rows)]
    yield Case("binary", pa.binary(), to_bytes, b"key 77", f"X'{hexed}'", ("bytes", hexed), clickhouse="'key 77'", duckdb="'key 77'::BLOB")
    fixed = lambda rows: [b"%06d" % i for i in range(rows)]
    hexed = b"000077".hex()
    yield Case("binary(6)", pa.binary(6), fixed, b"000077", f"X'{hexed}'", ("bytes", hexed), clickhouse="toFixedString('000077', 6)", duckdb="'000077'::BLOB")
    days = lambda rows: [dt.date(1970, 1, 1) + dt.timedelta(3 * i) for i in range(rows)]
    yield Case("date32", pa.date32(), days, dt.date(1970, 1, 31), "DATE '1970-01-31'", ("date", "1970-01-31"), clickhouse="toDate32('1970-01-31')")
    times = lambda rows: [(EPOCH + dt.timedelta(seconds=7 * i)).time() for i in range(rows)]
    for name, kind, digits in ("time32 ms", pa.time32("ms"), 3), ("time64 us", pa.time64("us"), 6):
        js = ("number" if digits == 3 else "bigint", str(539 * 10**digits))
        case = Case(name, kind, times, dt.time(0, 8, 59), "TIME '00:08:59'", js, clickhouse=f"toTime64('00:08:59', {digits})")
        case.literals["DataFusion"] = f"arrow_cast('00:08:59', '{'Time32(Millisecond)' if digits == 3 else 'Time64(Microsecond)'}')"
        yield case
    moment = moments(78)[77]
    literal, zoned = f"TIMESTAMP '{moment}'", f"TIMESTAMP_NTZ '{moment}'"
    for unit, digits in ("ms", 3), ("us", 6), ("ns", 9):
        js, clickhouse = ("date", moment.isoformat() + "Z"), f"toDateTime64('{moment}', {digits}, 'UTC')"
        case = Case(f"timestamp {unit}", pa.timestamp(unit), moments, moment, literal, js, clickhouse=clickhouse)
        case.literals["PySpark"] = zoned
        yield case
        aware = moment.replace(tzinfo=dt.timezone.utc)
        duckdb = f"TIMESTAMPTZ '{moment}+00'"
        case = Case(f"timestamp {unit}, UTC", pa.timestamp(unit, "UTC"), moments, aware, literal, js, clickhouse=clickhouse, duckdb=duckdb)
        case.literals["DataFusion"] = f"TIMESTAMP '{moment}Z'"
        yield case
    one = uuid.UUID(int=77)
    ids = lambda rows: [uuid.UUID(int=i) for i in range(rows)]
    yield Case("uuid", pa.uuid(), ids, one, f"X'{one.hex}'", ("text", str(one)), clickhouse=f"toUUID('{one}')", duckdb=f"UUID '{one}'")


# Filters by other writers than pyarrow: the case, the file with filters, and the file without.
def foreign(folder):
    yes = Case("boolean by DataFusion", None, None, True, "true", ("bool", "true"))
    yield yes, f"{folder}/DataFusion boolean.parquet", f"{folder}/boolean.parquet"
    empty = Case("boolean, all zero by Spark", None, None, True, "true", ("bool", "true"))
    yield empty, f"{folder}/Spark boolean.parquet", f"{folder}/boolean.parquet"
    part = Case("int64, 10,000 bytes by Spark", None, None, 79190, js=("bigint", None))
    yield part, f"{folder}/Spark part.parquet", f"{folder}/int64.parquet"
    unnamed = Case("string, without names by parquetjs", None, None, "key 77", "'key 77'", ("text", "key 77"))
    yield unnamed, f"{folder}/parquetjs.parquet", f"{folder}/parquetjs none.parquet"


def filters(path):
    """Where each filter begins, and its bytes without the header."""
    import duckdb

    data = open(path, "rb").read()
    for (offset,) in duckdb.sql(f"SELECT bloom_filter_offset FROM parquet_metadata('{path}') WHERE bloom_filter_offset IS NOT NULL").fetchall():
        assert data[offset] == 0x15, path
        size = shift = 0
        for at in range(offset + 1, offset + 6):
            size |= (data[at] & 0x7F) << shift
            shift += 7
            if data[at] < 0x80:
                break
        # Three unions: of an empty struct each, or empty (parquetjs).
        names = 3 * b"\x1c\x1c\x00\x00" + b"\x00", 3 * b"\x1c\x00" + b"\x00"
        (header,) = {at + 1 + len(name) for name in names if data[at + 1 :].startswith(name)}
        yield header, size // 2


def zeroed(path, to):
    data = bytearray(open(path, "rb").read())
    count = 0
    for start, size in filters(path):
        data[start : start + size] = bytes(size)
        count += 1
    assert count > 0, f"{path} has no filters"
    open(to, "wb").write(data)


# Engines: a function that returns the number of rows of a value.
def by_pyarrow():
    import pyarrow.compute as pc

    return lambda path, case: pq.read_table(path, filters=pc.field("x") == scalar(path, case)).num_rows


def scalar(path, case):
    value = case.value.bytes if isinstance(case.value, uuid.UUID) else case.value
    kind = pq.read_schema(path).field("x").type
    kind = kind.value_type if isinstance(kind, pa.DictionaryType) else kind
    if kind == pa.float16():
        value = np.float16(value)
    return pa.scalar(value, kind) if not isinstance(kind, pa.ExtensionType) else pa.array([value], kind)[0]


def by_polars():
    import polars as pl

    def count(path, case):
        value = case.value.bytes if isinstance(case.value, uuid.UUID) else case.value
        return pl.scan_parquet(path).filter(pl.col("x") == value).collect().height

    return count


def by_fastparquet():
    import fastparquet

    return lambda path, case: len(fastparquet.ParquetFile(path).to_pandas(filters=[("x", "==", case.value)], row_filter=True))


def by_deltalake():
    import shutil
    import tempfile

    import deltalake

    def count(path, case):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(path, f"{folder}/part.parquet")
            deltalake.convert_to_deltalake(folder)
            query = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(folder))
            found = query.execute(f"SELECT count(*) AS n FROM t WHERE x = {case.literals.get('DataFusion', case.sql)}").read_all()
            return pa.table(found)["n"][0].as_py()

    return count


def by_duckdb():
    import duckdb

    return lambda path, case: duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE x = {case.literals['DuckDB']}").fetchall()[0][0]


def by_clickhouse():
    import chdb

    return lambda path, case: int(str(chdb.query(f"SELECT count() FROM file('{path}', Parquet) WHERE x = {case.literals['ClickHouse']}")))


def by_datafusion():
    import datafusion

    def count(path, case):
        context = datafusion.SessionContext()
        context.register_parquet("t", path)
        return context.sql(f"SELECT x FROM t WHERE x = {case.literals.get('DataFusion', case.sql)}").count()

    return count


def spark():
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]")
    options = {"driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1", "ui.enabled": "false", "sql.session.timeZone": "UTC"}
    for name, value in options.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def by_spark():
    session = spark()
    return lambda path, case: session.read.parquet(path).where(f"x = {case.literals.get('PySpark', case.sql)}").count()


ENGINES = {
    "pyarrow": by_pyarrow, "polars": by_polars, "fastparquet": by_fastparquet, "deltalake": by_deltalake, "DuckDB": by_duckdb,
    "ClickHouse": by_clickhouse, "DataFusion": by_datafusion, "PySpark": by_spark, "hyparquet": None,
}


def count_all(engine):
    """In a process of its own: the rows of each job on standard input, or an error, a line each."""
    jobs = [json.loads(line) for line in sys.stdin]
    known = {case.name: case for case in [*cases(), *(case for case, *_ in foreign(""))]}
    count = ENGINES[engine]()
    for job in jobs:
        try:
            result = {"rows": int(count(job["path"], known[job["name"]]))}
        except BaseException as error:  # a panic of Rust is none of Exception
            result = {"error": f"{type(error).__name__}: {error}"}
        print("\x01" + json.dumps(result), flush=True)


def cell(rows):
    """The word of a cell, by the rows that were found in the five files."""
    none, right, zero, ours, our_zero = rows
    if not isinstance(none, int) or none == 0:
        return "-"

    def word(right, zero):
        if not isinstance(right, int) or not isinstance(zero, int):
            return "REFUSES"
        if right < none:
            return "LOSES"
        return "uses" if zero < none else "no"

    theirs = word(right, zero)
    with_ours = word(ours, our_zero) if ours is not None else theirs
    return theirs if with_ours == theirs else f"{theirs}; {with_ours} by ours"


def readers(program, packages, folder):
    files, names = [], []
    for case in cases():
        base = f"{folder}/{case.name.replace('/', '_')}"
        table = pa.table({"x": case.array(GROUPS * ROWS)})
        options = {"row_group_size": ROWS, "compression": "none", "use_dictionary": False, "write_statistics": False, **case.options}
        if isinstance(case.kind, pa.DictionaryType):
            options["use_dictionary"] = True
        pq.write_table(table, f"{base}.parquet", **options)
        pq.write_table(table, f"{base} right.parquet", bloom_filter_options={"x": {"ndv": ROWS, "fpp": 0.001}}, **options)
        files.append((case, base, f"{base}.parquet", f"{base} right.parquet", True))
    for case, right, none in foreign(folder):
        files.append((case, f"{folder}/{case.name}", none, right, False))
    paths = []
    for case, base, none, right, ours in files:
        five = [none, right, f"{base} zero.parquet", None, None]
        zeroed(right, five[2])
        if ours:
            five[3:] = [f"{base} ours.parquet", f"{base} ours zero.parquet"]
            subprocess.run([program, "make", none, five[3], "0.001"], check=True)
            zeroed(five[3], five[4])
        paths.append(five)
        names.append(case.name)
    cells = {name: {} for name in names}
    for engine in ENGINES:
        jobs = [
            {"name": case.name, "path": path, "value": case.js}
            for (case, *_), five in zip(files, paths)
            for path in five
            if path is not None
        ]
        if ENGINES[engine] is None:
            words = ["node", os.path.join(os.path.dirname(__file__), "matrix.mjs"), packages, "read"]
        else:
            words = [sys.executable, __file__, "--count", engine]
        lines = "".join(json.dumps(job) + "\n" for job in jobs)
        done = subprocess.run(words, input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        results = [json.loads(line.lstrip("\x01")) for line in done.stdout.splitlines() if line.startswith(("\x01", "{"))]
        if len(results) != len(jobs):
            raise SystemExit(f"{engine}: {len(results)} results of {len(jobs)}\n{done.stderr[-3000:]}")
        results = iter(results)
        for name, five in zip(names, paths):
            found = [next(results) if path is not None else None for path in five]
            rows = [one and one.get("rows", one.get("error")) for one in found]
            cells[name][engine] = cell(rows)
            if os.environ.get("VERBOSE"):
                print(engine, name, [row if isinstance(row, (int, type(None))) else row[:90] for row in rows], file=sys.stderr)
        print(f"  {engine}: {len(jobs)} counts", flush=True)
    return [*ENGINES], cells


# Writers: bytes of the filter for 10,000 rows in one row group.
WRITTEN = 10_000
WRITERS = ["pyarrow", "DuckDB", "ClickHouse", "DataFusion", "deltalake", "PySpark", "PySpark, ndv", "hyparquet-writer"]


def size_of(path):
    found = list(filters(path))
    if not found:
        return "none"
    assert len(found) == 1, (path, found)
    return f"{found[0][1]:,}"


def written(writer, case, source, to):
    if writer == "pyarrow":
        pq.write_table(pq.read_table(source), to, bloom_filter_options={"x": {"ndv": WRITTEN, "fpp": 0.01}}, **case.options)
    elif writer == "DuckDB":
        import duckdb

        duckdb.sql(f"COPY (FROM '{source}') TO '{to}' (FORMAT parquet, ROW_GROUP_SIZE 20480, DICTIONARY_SIZE_LIMIT 20480)")
    elif writer == "ClickHouse":
        import chdb

        chdb.query(f"INSERT INTO FUNCTION file('{to}', Parquet) SELECT * FROM file('{source}', Parquet)")
    elif writer == "DataFusion":
        import datafusion

        context = datafusion.SessionContext()
        context.register_parquet("t", source)
        options = "'compression' 'uncompressed', 'bloom_filter_on_write' 'true', 'bloom_filter_fpp' '0.01', 'bloom_filter_ndv' '10000'"
        context.sql(f"COPY t TO '{to}' STORED AS PARQUET OPTIONS ({options})").collect()
    elif writer == "deltalake":
        import glob
        import shutil
        import tempfile

        import deltalake

        with tempfile.TemporaryDirectory() as folder:
            properties = deltalake.BloomFilterProperties(True, fpp=0.01, ndv=WRITTEN)
            columns = {"x": deltalake.ColumnProperties(bloom_filter_properties=properties)}
            deltalake.write_deltalake(folder, pq.read_table(source), writer_properties=deltalake.WriterProperties(column_properties=columns))
            (made,) = glob.glob(f"{folder}/*.parquet")
            shutil.copy(made, to)


def write_all(writer):
    """In a process of its own: files by a writer, and an error or nothing a line."""
    session = spark() if writer.startswith("PySpark") else None
    for line in sys.stdin:
        job = json.loads(line)
        case = next((case for case in cases() if case.name == job["name"]), Case("boolean", None, None, True))
        try:
            if session:
                to_spark(session, job["source"], job["to"], **job.get("options", {}))
            else:
                written(writer, case, job["source"], job["to"])
            result = None
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        print("\x01" + json.dumps(result), flush=True)


def to_spark(session, source, to, **options):
    import glob
    import shutil

    writer = session.read.parquet(source).coalesce(1).write.option("parquet.bloom.filter.enabled", "true").option("parquet.enable.dictionary", "false")
    for name, value in options.items():
        writer = writer.option(f"parquet.bloom.filter.{name}", value)
    writer.mode("overwrite").parquet(to + ".folder")
    (made,) = glob.glob(f"{to}.folder/*.parquet")
    shutil.move(made, to)


def writers(packages, folder):
    names = ["boolean", *(case.name for case in cases() if "0.0" not in case.name)]
    pq.write_table(pa.table({"x": [i % 2 == 0 for i in range(GROUPS * ROWS)]}), f"{folder}/boolean.parquet", row_group_size=ROWS)
    pq.write_table(pa.table({"x": [i % 2 == 0 for i in range(WRITTEN)]}), f"{folder}/boolean source.parquet")
    for case in cases():
        pq.write_table(pa.table({"x": case.array(WRITTEN)}), f"{folder}/{case.name} source.parquet", **case.options)
    cells = {name: {} for name in names}
    script = os.path.join(os.path.dirname(__file__), "matrix.mjs")
    subprocess.run(["node", script, packages, "write", folder], check=True, stdout=subprocess.DEVNULL)
    for writer in WRITERS:
        if writer == "hyparquet-writer":
            for name in names:
                path = f"{folder}/{writer} {name}.parquet"
                cells[name][writer] = size_of(path) if os.path.exists(path) else "not run"
            continue
        jobs = [{"name": name, "source": f"{folder}/{name} source.parquet", "to": f"{folder}/{writer} of {name}.parquet"} for name in names]
        if writer == "PySpark, ndv":
            for job in jobs:
                job["options"] = {"expected.ndv#x": str(WRITTEN)}
        extra = []
        if writer == "PySpark":
            extra = [
                {"name": "boolean", "source": f"{folder}/boolean.parquet", "to": f"{folder}/Spark boolean.parquet"},
                {"name": "int64", "source": f"{folder}/int64 source.parquet", "to": f"{folder}/Spark part.parquet", "options": {"max.bytes": "10000"}},
            ]
        if writer == "DataFusion":
            extra = [{"name": "boolean", "source": f"{folder}/boolean.parquet", "to": f"{folder}/DataFusion boolean.parquet"}]
        lines = "".join(json.dumps(job) + "\n" for job in jobs + extra)
        done = subprocess.run([sys.executable, __file__, "--write", writer], input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        results = [json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("\x01")]
        if len(results) != len(jobs + extra) or any(results[len(jobs) :]):
            raise SystemExit(f"{writer}: {results[len(jobs):]}, {len(results)} results\n{done.stderr[-3000:]}")
        for name, job, error in zip(names, jobs, results):
            if os.environ.get("VERBOSE") and error:
                print(writer, name, error[:150], file=sys.stderr)
            cells[name][writer] = "fails" if error else size_of(job["to"])
        print(f"  {writer}: {len(results)} files", flush=True)
    return WRITERS, cells


def plain(array):
    """The plain encoding of each value, where numpy or Python has it."""
    kind = array.type
    if pa.types.is_temporal(kind):
        array = array.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    values = array.to_pylist() if not pa.types.is_primitive(array.type) else np.asarray(array)
    if isinstance(values, list):
        return [value.encode() if isinstance(value, str) else value for value in values]
    if values.dtype.kind in "iu" and values.dtype.itemsize < 4:
        values = values.astype("i4")
    return [value.tobytes() for value in values]


def index_all():
    """In a process of its own: bits of Lance's index for each case, or an error, a line each."""
    import glob

    import lance
    from lance.file import LanceFileReader

    known = {case.name: case for case in cases()}
    for line in sys.stdin:
        job = json.loads(line)
        try:
            array = known[job["name"]].array(WRITTEN)
            lance.write_dataset(pa.table({"x": array}), job["to"]).create_scalar_index("x", index_type="BLOOMFILTER")
            (path,) = glob.glob(f"{job['to']}/_indices/*/*.lance")
            index = LanceFileReader(path).read_all().to_table()
            zone = index.slice(0, 1).to_pylist()[0]
            open(job["to"] + ".bits", "wb").write(zone["bloom_filter_data"])
            result = {"start": zone["zone_start"], "length": zone["zone_length"]}
        except BaseException as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print("\x01" + json.dumps(result), flush=True)


def indexes(program, folder):
    names = [case.name for case in cases() if "0.0" not in case.name]
    jobs = [{"name": name, "to": f"{folder}/lance {i}"} for i, name in enumerate(names)]
    lines = "".join(json.dumps(job) + "\n" for job in jobs)
    done = subprocess.run([sys.executable, __file__, "--index"], input=lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    results = [json.loads(line[1:]) for line in done.stdout.splitlines() if line.startswith("\x01")]
    assert len(results) == len(jobs), done.stderr[-3000:]
    known, cells = {case.name: case for case in cases()}, {}
    for job, result in zip(jobs, results):
        if "error" in result:
            cells[job["name"]] = {"Lance": "fails"}
            continue
        keys = plain(known[job["name"]].array(WRITTEN).slice(result["start"], result["length"]))
        words = [program, "bits", job["to"] + ".bits"]
        try:
            text = subprocess.run(words, input="".join(key.hex() + "\n" for key in keys), check=True, capture_output=True, text=True).stdout
        except AttributeError:  # no bytes for these values
            text = "not compared"
        size = os.path.getsize(job["to"] + ".bits")
        cells[job["name"]] = {"Lance": f"{size:,}, {text.split(',')[0].strip()}"}
        if os.environ.get("VERBOSE"):
            print("Lance", job["name"], text, file=sys.stderr)
    print(f"  Lance: {len(jobs)} indexes", flush=True)
    return ["Lance"], cells


def table(title, columns, cells):
    lines = [f"| {title} | " + " | ".join(columns) + " |", "|---|" + len(columns) * "---|"]
    lines += ["| " + " | ".join([name, *(row[column] for column in columns)]) + " |" for name, row in cells.items()]
    return lines


def compare(page, title, columns, cells):
    """The differences between a table of the page, which its first column's title names, and what was measured."""
    parts = [[part.strip() for part in line.split("|")[1:-1]] for line in open(page).read().splitlines()]
    begin = next((i for i, part in enumerate(parts) if part[:1] == [title]), None)
    if begin is None:
        return [f"no table {title!r}"]
    header, told, wrong = parts[begin], {}, []
    for part in itertools.takewhile(bool, parts[begin + 2 :]):
        if part[0] in told or len(part) != len(header):
            wrong.append(f"{title}, row {part[0]!r}: a second one, or one of {len(part)} cells")
        told[part[0]] = dict(zip(header[1:], part[1:]))
    for name in dict.fromkeys([*cells, *told]):
        for column in dict.fromkeys([*columns, *header[1:]]):
            page_says, measured = (rows.get(name, {}).get(column, "nothing") for rows in (told, cells))
            if page_says != measured:
                wrong.append(f"{title}, row {name!r}, column {column!r}: the page says {page_says!r}, measured {measured!r}")
    return wrong


def main():
    if sys.argv[1] == "--count":
        return count_all(sys.argv[2])
    if sys.argv[1] == "--index":
        return index_all()
    if sys.argv[1] == "--write":
        return write_all(sys.argv[2])
    program, packages, folder, page = sys.argv[1:]
    wrong = []
    measured = {"written by": writers(packages, folder), "read by": readers(program, packages, folder), "indexed by": indexes(program, folder)}
    for title, (columns, cells) in measured.items():
        print("\n".join(["", *table(title, columns, cells), ""]))
        wrong += compare(page, title, columns, cells)
    if wrong:
        raise SystemExit("\n".join([f"{page}: {one}" for one in wrong]))
    print(f"{page}: every cell was measured")


if __name__ == "__main__":
    main()
