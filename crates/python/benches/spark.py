"""A join in Spark without a filter, with lanebloom.spark, and with Spark's own runtime filter.

usage: python spark.py KEYS ROWS MATCHING ROUNDS

ROWS rows with a text of 64 characters are joined with KEYS keys by sort and merge, MATCHING of the
rows (0.01 for one in a hundred) have a key. All ways in turn, ROUNDS times, in one warm session of
local[2] (0: only make the files, below $SPARK_BENCH); prints medians of the wall seconds and of the CPU seconds of the JVM and Python's workers.
Every answer is compared with the exact one. For "by Spark" its runtime filter may be as large as ours.
"""

import os
import pathlib
import statistics
import sys
import time

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession, functions as F

from lanebloom import spark as bloom


def cpu_seconds():
    """Of all processes below this one, also those that have ended."""
    children, spent = {}, {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(folder.name))
        spent[int(folder.name)] = sum(map(int, fields[11:15]))
    total, stack = 0, list(children.get(os.getpid(), []))
    while stack:
        one = stack.pop()
        total += spent[one]
        stack += children.get(one, [])
    return total / os.sysconf("SC_CLK_TCK")


def main(keys, rows, matching, rounds):
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "6g",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.sql.optimizer.runtime.bloomFilter.applicationSideScanSizeThreshold": "0",
        "spark.sql.optimizer.runtime.bloomFilter.creationSideThreshold": "100g",
        "spark.sql.optimizer.runtime.bloomFilter.expectedNumItems": str(keys),
        "spark.sql.optimizer.runtime.bloomFilter.maxNumItems": str(keys),
        "spark.sql.optimizer.runtime.bloomFilter.maxNumBits": str(10 * keys),
        "spark.sql.optimizer.runtime.bloomFilter.numBits": str(10 * keys),
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    runtime_filter = "spark.sql.optimizer.runtime.bloomFilter.enabled"

    # Both sides are read from files, as a job reads them. The keys are spread over 64 bits.
    folder = pathlib.Path(os.environ.get("SPARK_BENCH", "/tmp")) / f"spark-{keys}-{rows}-{matching}"
    spread = F.col("id") * F.lit(0x9E3779B97F4A7C15 - 2**64)
    if not (folder / "small").exists():
        spark.conf.set("spark.sql.ansi.enabled", "false")
        every = round(1 / matching)
        present = (F.col("id") % keys) * F.lit(0x9E3779B97F4A7C15 - 2**64)
        absent = (F.col("id") + keys) * F.lit(0x9E3779B97F4A7C15 - 2**64)
        key = F.when(F.col("id") % every == 0, present).otherwise(absent)
        text = F.sha2(F.col("id").cast("string"), 256)
        spark.range(rows).select(key.alias("key"), text.alias("text")).write.mode("overwrite").parquet(str(folder / "large"))
        spark.range(keys).select(spread.alias("key"), F.lit(1).alias("chosen")).write.parquet(str(folder / "small"))
    if rounds == 0:
        return
    large = spark.read.parquet(str(folder / "large"))
    # (Spark makes its filter only of a side that has a condition.)
    small = spark.read.parquet(str(folder / "small")).filter("chosen >= 1")

    def without():
        return large.join(small, "key")

    def ours():
        return bloom.join(large, small, "key", expected=keys)

    ways = {"no filter": without, "by Spark": without, "by lanebloom": ours}
    found = {name: [] for name in ways}
    answers = set()
    for turn in range(rounds + 1):
        for name, way in ways.items():
            spark.conf.set(runtime_filter, str(name == "by Spark").lower())
            wall, cpu = time.monotonic(), cpu_seconds()
            joined = way()
            counted = joined.agg(F.count("key"), F.max("text"), F.sum(F.crc32("text"))).first()
            wall, cpu = time.monotonic() - wall, cpu_seconds() - cpu
            answers.add(tuple(counted))
            if turn == 0:
                # Warm; and each way is what it says.
                is_pruned = "might_contain" in way()._jdf.queryExecution().optimizedPlan().toString()
                assert is_pruned == (name != "no filter"), name
            else:
                found[name].append((wall, cpu))
                print(f"    {name}: {wall:.1f} s, {cpu:.1f} CPU s", flush=True)
    assert len(answers) == 1, answers
    every = round(1 / matching)
    assert next(iter(answers))[0] == -(-rows // every), answers
    for name, times in found.items():
        wall, cpu = (statistics.median(part) for part in zip(*times))
        print(f"| {keys:,} | {rows:,} | {matching:.1%} | {name} | {wall:.1f} | {cpu:.1f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
