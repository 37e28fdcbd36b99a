"""Joins in Spark without a filter, with lanebloom.spark, and with Spark's own runtime filter.

usage: python spark.py ROUNDS KEYS:ROWS:MATCHING[:broadcast]...

ROWS rows with a text of 64 characters are joined with KEYS keys by sort and merge, MATCHING of the
rows (0.01 for one in a hundred) have a key; with `broadcast`, Spark sends all keys to each task, and
shuffles nothing. All cases and all ways in turn, ROUNDS times, in one warm session of local[2] (0:
only make the files, below $SPARK_BENCH); prints medians of the wall seconds and of the CPU seconds
of the JVM and Python's workers. Every answer is compared with the exact one. For "by Spark" its
runtime filter may be as large as ours; "by arrow_udf" looks up our filter in Python.
"""

import os
import pathlib
import statistics
import sys
import threading
import time

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession, functions as F

from lanebloom import spark as bloom


class CpuSeconds:
    """The times of all processes below this one. Spark ends idle workers, and their times are lost with them,
    so a thread notes the times of each process ten times a second."""

    def __init__(self):
        self.noted = {}
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            self.note()
            time.sleep(0.1)

    def note(self):
        children, spent = {}, {}
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(folder.name))
            # A number is given anew to a later process, which began at another time.
            spent[int(folder.name)] = fields[19], sum(map(int, fields[11:13]))
        stack = list(children.get(os.getpid(), []))
        while stack:
            one = stack.pop()
            began, ticks = spent[one]
            self.noted[one, began] = ticks
            stack += children.get(one, [])

    def total(self):
        self.note()
        return sum(self.noted.values()) / os.sysconf("SC_CLK_TCK")


SPREAD = 0x9E3779B97F4A7C15 - 2**64


def files(spark, keys, rows, matching):
    """Both sides are read from files, as a job reads them. The keys are spread over 64 bits."""
    folder = pathlib.Path(os.environ.get("SPARK_BENCH", "/tmp"))
    large, small = folder / f"spark-{keys}-{rows}-{matching}", folder / f"spark-{keys}"
    if not (large / "_SUCCESS").exists():
        present = F.when(F.col("id") % round(1 / matching) == 0, F.col("id") % keys)
        key = present.otherwise(F.col("id") + keys) * F.lit(SPREAD)
        text = F.sha2(F.col("id").cast("string"), 256)
        spark.range(rows).select(key.alias("key"), text.alias("text")).write.mode("overwrite").parquet(str(large))
    if not (small / "_SUCCESS").exists():
        key = F.col("id") * F.lit(SPREAD)
        spark.range(keys).select(key.alias("key"), F.lit(1).alias("chosen")).write.mode("overwrite").parquet(str(small))
    # (Spark makes its filter only of a side that has a condition.)
    return spark.read.parquet(str(large)), spark.read.parquet(str(small)).filter("chosen >= 1")


def main(rounds, cases):
    runtime_filter = "spark.sql.optimizer.runtime.bloomFilter."
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.driver.memory": "6g",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        runtime_filter + "applicationSideScanSizeThreshold": "0",
        runtime_filter + "creationSideThreshold": "100g",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    sides = {case: files(spark, *case[:3]) for case in cases}

    def joined(case, way):
        keys, is_broadcast = case[0], case[3]
        large, small = sides[case]
        partner = F.broadcast(small) if is_broadcast else small
        spark.conf.set(runtime_filter + "enabled", str(way == "by Spark").lower())
        for name, value in ("expectedNumItems", keys), ("maxNumItems", keys), ("numBits", 10 * keys), ("maxNumBits", 10 * keys):
            spark.conf.set(runtime_filter + name, str(value))
        if way == "by lanebloom":
            return bloom.join(large, partner, "key", expected=keys)
        if way == "by arrow_udf":
            found = bloom._by_python(bloom.build(small, "key", expected=keys), F.col("key"))
            return large.filter(found).join(partner, "key")
        return large.join(partner, "key")

    found, answers, cpu_seconds = {}, {}, CpuSeconds()
    for turn in range(rounds + 1 if rounds else 0):
        # Round 0 warms the session, by its first case.
        for case in cases if turn else cases[:1]:
            keys, rows, matching, is_broadcast = case
            # (Of a side that is broadcast Spark makes no filter.)
            for way in ["no filter", "by Spark", "by lanebloom", "by arrow_udf"]:
                if is_broadcast and way == "by Spark":
                    continue
                wall, cpu = time.monotonic(), cpu_seconds.total()
                query = joined(case, way)
                counted = query.agg(F.count("key"), F.max("text"), F.sum(F.crc32("text"))).first()
                wall, cpu = time.monotonic() - wall, cpu_seconds.total() - cpu
                plan = query._jdf.queryExecution().optimizedPlan().toString()
                # Each way is what it says, and its answer is exact.
                assert ("might_contain" in plan) == (way in ("by Spark", "by lanebloom")), way
                assert ("look_up" in plan) == (way == "by arrow_udf"), way
                assert counted[0] == -(-rows // round(1 / matching)), (case, way, counted)
                assert answers.setdefault(case, counted) == counted, (case, way, counted)
                label = "broadcast, " * is_broadcast + way
                print(f"    {turn}: {keys} {matching} {label}: {wall:.1f} s, {cpu:.1f} CPU s", flush=True)
                if turn:
                    found.setdefault((keys, rows, matching, label), []).append((wall, cpu))
    for (keys, rows, matching, label), times in found.items():
        wall, cpu = (statistics.median(part) for part in zip(*times))
        print(f"| {keys:,} | {rows:,} | {matching:.1%} | {label} | {wall:.1f} | {cpu:.1f} |", flush=True)


def parsed(case):
    keys, rows, matching, *broadcast = case.split(":")
    assert broadcast in ([], ["broadcast"]), case
    return int(keys), int(rows), float(matching), bool(broadcast)


if __name__ == "__main__":
    main(int(sys.argv[1]), [parsed(case) for case in sys.argv[2:]])
