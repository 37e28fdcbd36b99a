"""Looks up ids in a Parquet file by readers that use no filters, with `row_groups` and without, beside DuckDB.

    python prune.py [ROWS] [RUNS]

Needs pyarrow, polars, fastparquet and DuckDB. The ids lie at random over a wide range, so that the least and the largest id
of a row group rule out nothing. One id of ten is in the file. Each way is run RUNS times, all ways in turn, and the table has
the medians. The answers are compared.
"""

import itertools
import os
import platform
import re
import statistics
import sys
import tempfile
import time

import duckdb
import fastparquet
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lanebloom import SplitBlockBloomFilter

ROWS, RUNS = (int(word) for word in (*sys.argv[1:], *("4096000", "15")[len(sys.argv) - 1 :]))
GROUP = 102_400


def arrow(path, ids):
    table = pq.read_table(path, filters=pc.field("id").isin(ids))
    return sorted(table["v"].to_pylist()), ROWS


def arrow_pruned(path, ids):
    groups = SplitBlockBloomFilter.row_groups(path, "id", ids)
    table = pq.ParquetFile(path).read_row_groups(groups).filter(pc.field("id").isin(ids))
    return sorted(table["v"].to_pylist()), rows_of(groups)


def polars(path, ids):
    return sorted(pl.scan_parquet(path).filter(pl.col("id").is_in(ids)).collect()["v"].to_list()), ROWS


def polars_pruned(path, ids):
    groups = SplitBlockBloomFilter.row_groups(path, "id", ids)
    file = pl.scan_parquet(path)
    parts = [file.slice(GROUP * group, GROUP) for group in groups] or [file.head(0)]
    return sorted(pl.concat(parts).filter(pl.col("id").is_in(ids)).collect()["v"].to_list()), rows_of(groups)


def fast(path, ids):
    frame = fastparquet.ParquetFile(path).to_pandas()
    return sorted(frame["v"][frame["id"].isin(ids)].tolist()), ROWS


def fast_pruned(path, ids):
    groups, file, found = SplitBlockBloomFilter.row_groups(path, "id", ids), fastparquet.ParquetFile(path), []
    for group in groups:
        frame = file[group].to_pandas()
        found += frame["v"][frame["id"].isin(ids)].tolist()
    return sorted(found), rows_of(groups)


def duck(path, ids):
    wanted = ", ".join(map(str, ids))
    found = duckdb.sql(f"SELECT v FROM '{path}' WHERE id IN ({wanted})").fetchall()
    return sorted(v for (v,) in found), None


def duck_rows(path, ids):
    """The rows of the row groups that DuckDB reads, as it says itself."""
    wanted = ", ".join(map(str, ids))
    plan = duckdb.sql(f"EXPLAIN ANALYZE SELECT v FROM '{path}' WHERE id IN ({wanted})").fetchall()[0][1]
    found = re.search(r"Row Groups Scanned: (\d+) / (\d+)", plan)
    return GROUP * int(found[1]) if found else 0


def rows_of(groups):
    return sum(min(GROUP, ROWS - GROUP * group) for group in groups)


WAYS = {
    "pyarrow": arrow, "pyarrow, row_groups": arrow_pruned, "polars": polars, "polars, row_groups": polars_pruned,
    "fastparquet": fast, "fastparquet, row_groups": fast_pruned, "DuckDB": duck,
}


def main() -> None:
    random = np.random.default_rng(1)
    ids = random.integers(0, 2**62, ROWS)
    absent = random.integers(0, 2**62, 10 * RUNS * 100)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ids.parquet")
        table = pa.table({"id": ids, "v": np.arange(ROWS)})
        pq.write_table(table, path, row_group_size=GROUP, bloom_filter_options={"id": {"ndv": GROUP, "fpp": 0.01}})
        groups = pq.read_metadata(path).num_row_groups
        print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores; {ROWS} rows in {groups} row groups, {os.path.getsize(path) >> 20} MiB")
        for package in "pyarrow", "polars", "fastparquet", "duckdb":
            print(f"{package} {sys.modules[package].__version__}", end="  ")
        print("\n\n| ids | way | ms, median | least | most | rows read |\n|--:|---|--:|--:|--:|--:|")
        for count in 1, 10, 100:
            times, rows = {name: [] for name in WAYS}, {name: [] for name in WAYS}
            for run in range(-1, RUNS):
                start = (run + 1) * count
                wanted = [int(ids[(start + i) * 7919 % ROWS]) if i % 10 == 0 else int(absent[start + i]) for i in range(count)]
                answers = []
                for name in random.permutation(list(WAYS)):
                    begin = time.perf_counter()
                    found, read = WAYS[name](path, wanted)
                    took = time.perf_counter() - begin
                    answers.append(found)
                    if run >= 0:  # the first run warms up
                        times[name].append(1000 * took)
                        rows[name].append(duck_rows(path, wanted) if read is None else read)
                assert all(answer == answers[0] and len(answer) == -(-count // 10) for answer in answers), answers
            for name in WAYS:
                best, worst = min(times[name]), max(times[name])
                print(f"| {count} | {name} | {statistics.median(times[name]):.1f} | {best:.1f} | {worst:.1f} | {round(statistics.mean(rows[name])):,} |", flush=True)
            for plain, pruned in itertools.pairwise(WAYS):
                if pruned.startswith(plain):
                    assert statistics.mean(rows[pruned]) < ROWS or count > 10


if __name__ == "__main__":
    main()
