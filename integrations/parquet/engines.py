"""SplitBlockBloom beside DuckDB and pyarrow: each reads the other's files. ci/engines.sh runs it.

    python engines.py PROGRAM FOLDER

PROGRAM is the example `engines`. FOLDER takes the files.
"""

import re
import subprocess
import sys

import duckdb
import pyarrow
import pyarrow.parquet

program, folder = sys.argv[1:]
ROW_GROUPS = 10
ROWS = 20480  # of a row group; DuckDB takes whole vectors of 2048
# Functions of `x`, a number without a pattern, so that the least and the largest value of a row
# group rule out no other value.
COLUMNS = {
    "i32": "((x % 4000000000)::BIGINT - 2000000000)::INTEGER",
    "i16": "((x % 60000)::INTEGER - 30000)::SMALLINT",
    "i64": "(x // 2)::BIGINT",
    "u64": "x",
    "f32": "((x % 10000000) / 8)::FLOAT",
    "f64": "(x / 7)::DOUBLE",
    "s": "'key ' || x",
    "b": "encode('bytes ' || x)",
    "u": "(md5(x::VARCHAR))::UUID",
    "d": "DATE '1900-01-01' + (x % 100000)::INTEGER",
    "ts": "make_timestamp((x // 5000)::BIGINT)",
    "dec": "((x % 100000000000) / 100)::DECIMAL(18, 2)",
}
# The plain encoding of some, for the row groups that `engines rows` names.
ENCODED = {"i64": lambda key: key.to_bytes(8, "little"), "s": str.encode}
OPTIONS = f"ROW_GROUP_SIZE {ROWS}, COMPRESSION uncompressed"  # of files by DuckDB


def rows(first, distinct):
    """Row groups of some distinct values; `g` is the number of the row group, `i` of the value."""
    columns = ", ".join(f"{value} AS {name}" for name, value in COLUMNS.items())
    return (
        f"SELECT g, i, {columns} FROM (SELECT *, hash({first} + g * {distinct} + i) AS x FROM (SELECT "
        f"r // {ROWS} AS g, r % {ROWS} % {distinct} AS i FROM range({ROW_GROUPS * ROWS}) t(r)))"
    )


def run(*words):
    print(subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout, end="", flush=True)


def filters(path):
    [(count,)] = duckdb.sql(f"SELECT count(bloom_filter_offset) FROM parquet_metadata('{path}')").fetchall()
    return count


def scanned(path, column, key):
    """The row groups that DuckDB reads for one value, as it says itself."""
    plan = duckdb.execute(f"EXPLAIN ANALYZE SELECT * FROM '{path}' WHERE {column} = '{literal(key)}'").fetchall()
    text = plan[0][1]
    found = re.search(r"Row Groups Scanned: (\d+) / (\d+)", text)
    if found is None:  # none: the plan is empty
        assert "Empty Result" in text, text
        return 0
    assert found[2] == str(ROW_GROUPS), text
    return int(found[1])


def their_files():
    duckdb.sql(f"CREATE TABLE repeated AS {rows(0, 2000)}")
    duckdb.sql(f"CREATE TABLE apart AS {rows(0, ROWS)}")
    duckdb.sql(f"CREATE TABLE absent AS {rows(10**9, 2000)}")

    print("== filters by DuckDB, beside a full scan by parquet-rs and the bits of SplitBlockBloom")
    path = f"{folder}/duckdb.parquet"
    # It makes filters of chunks with a dictionary only.
    duckdb.sql(f"COPY repeated TO '{path}' ({OPTIONS}, DICTIONARY_SIZE_LIMIT {ROWS})")
    run("check", path)
    assert filters(path) >= ROW_GROUPS * len(COLUMNS), filters(path)

    print("== filters by pyarrow")
    path = f"{folder}/pyarrow.parquet"
    for table, dictionary in [("repeated", True), ("apart", False)]:
        arrow = duckdb.sql(f"SELECT * FROM {table}").to_arrow_table()
        options = {name: {"ndv": ROWS, "fpp": 0.01} for name in COLUMNS}
        pyarrow.parquet.write_table(
            arrow,
            path,
            row_group_size=ROWS,
            compression="none",
            use_dictionary=dictionary,
            bloom_filter_options=options,
        )
        run("check", path)
        assert filters(path) == ROW_GROUPS * len(COLUMNS), filters(path)


def our_files():
    for writer in ["DuckDB", "pyarrow"]:
        print(f"== filters by SplitBlockBloom in a file by {writer}, used by DuckDB")
        plain, made = f"{folder}/plain.parquet", f"{folder}/made.parquet"
        if writer == "DuckDB":
            duckdb.sql(f"COPY apart TO '{plain}' ({OPTIONS}, WRITE_BLOOM_FILTER false)")
        else:
            arrow = duckdb.sql("SELECT * FROM apart").to_arrow_table()
            # DuckDB looks into no filter of decimals in bytes, pyarrow's neither.
            pyarrow.parquet.write_table(
                arrow, plain, row_group_size=ROWS, compression="none", store_decimal_as_integer=True
            )
        run("make", plain, made, "0.01")
        run("check", made)
        assert filters(plain) == 0 and filters(made) == ROW_GROUPS * (len(COLUMNS) + 2)
        assert pyarrow.parquet.read_table(made) == pyarrow.parquet.read_table(plain)

        for column in COLUMNS:
            [(cast,)] = duckdb.sql(f"SELECT typeof({column}) FROM apart LIMIT 1").fetchall()
            probed = excluded = 0
            scans = {"present": [0, 0, 0], "absent": [0, 0, 0]}
            for kind, table in [("present", "apart"), ("absent", "absent")]:
                keys = duckdb.sql(f"SELECT {column} FROM {table} USING SAMPLE 10 ROWS (reservoir, 7)").fetchall()
                for (key,) in keys:
                    holders = {
                        group
                        for (group,) in duckdb.execute(
                            f"SELECT DISTINCT g FROM apart WHERE {column} = ?", [key]
                        ).fetchall()
                    }
                    answers = duckdb.sql(
                        f"SELECT row_group_id, bloom_filter_excludes FROM parquet_bloom_probe("
                        f"'{made}', '{column}', '{literal(key)}'::{cast})"
                    ).fetchall()
                    assert len(answers) == ROW_GROUPS
                    if column in ENCODED:
                        maybe = [group for group, excludes in answers if not excludes]
                        words = [program, "rows", made, column, ENCODED[column](key).hex()]
                        ours = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()
                        assert sorted(maybe) == list(map(int, ours)), (column, key, maybe, ours)
                    for group, excludes in answers:
                        assert not (excludes and group in holders), (column, key, group)
                        probed += group not in holders
                        excluded += excludes
                    before, after = scanned(plain, column, key), scanned(made, column, key)
                    assert len(holders) <= after <= before, (column, key, holders, before, after)
                    for i, count in enumerate([len(holders), before, after]):
                        scans[kind][i] += count
            print(f"  {column:4} parquet_bloom_probe excludes {excluded} of {probed} row groups without the value")
            assert excluded >= 0.95 * probed
            for kind, (holders, before, after) in scans.items():
                print(
                    f"       row groups scanned for 10 {kind} values, which {holders} have: "
                    f"{before} without filters, {after} with"
                )
                assert after <= holders + 0.1 * (before - holders)


def literal(key):
    """A value as DuckDB reads it from text."""
    if isinstance(key, bytes):
        return "".join(f"\\x{byte:02x}" for byte in key)
    return key


print(f"DuckDB {duckdb.__version__}, pyarrow {pyarrow.__version__}")
their_files()
our_files()
print("the same answers, all ways")
