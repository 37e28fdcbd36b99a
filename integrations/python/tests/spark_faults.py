"""Kills executors in the middle of builds and of filtered joins, and compares every answer with the
exact one.

usage: python spark_faults.py KILLS

Two executors are processes of this machine (local-cluster). One of them is killed while a query has
tasks that run, and Spark repeats what is lost.
"""

import os
import pathlib
import random
import signal
import sys
import threading
import time

os.environ["PYSPARK_PYTHON"] = sys.executable

from pyspark.sql import SparkSession, functions as F

from lanebloom import SparkBloomFilter
from lanebloom import spark as bloom

SMALL, LARGE = 300_000, 3_000_000


def executors(application):
    """The processes of this application's executors."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(b"CoarseGrainedExecutorBackend" in word for word in words) and application.encode() in words:
            found.append(int(folder.name))
    return found


def main(kills):
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    options = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "6",
        "spark.sql.autoBroadcastJoinThreshold": "-1",
        "spark.deploy.maxExecutorRetries": "-1",
        # A kill loses the tasks of one executor: no task fails by itself.
        "spark.task.maxFailures": "20",
        "spark.stage.maxConsecutiveAttempts": "20",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    context = spark.sparkContext
    context.setLogLevel("OFF")
    version = 2 if tuple(map(int, spark.version.split(".")[:2])) >= (4, 1) else 1

    small = spark.range(0, 10 * SMALL, 10, numPartitions=8).withColumn("name", F.sha2(F.col("id").cast("string"), 256))
    large = spark.range(0, LARGE, 1, numPartitions=8).withColumn("x", F.sha2(F.col("id").cast("string"), 256))
    exact = SparkBloomFilter(SMALL, 0.01, version=version)
    exact.add_many(range(0, 10 * SMALL, 10))

    def build():
        return bloom.build(small.filter("name > ''"), "id", expected=SMALL) == exact

    def join():
        joined = bloom.join(large.filter("x > ''"), small, "id", expected=SMALL)
        count, total = joined.agg(F.count("id"), F.sum("id")).first()
        ids = range(0, min(LARGE, 10 * SMALL), 10)
        return (count, total) == (len(ids), sum(ids))

    assert build() and join(), "wrong without any kill"
    random.seed(1)
    done, queries, tracker = 0, 0, context.statusTracker()
    while done < kills:
        query = (build, join)[queries % 2]
        queries += 1
        answer = []

        def ask():
            try:
                answer.append(query())
            except Exception as error:
                answer.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        until = time.monotonic() + random.uniform(0, 3)
        killed = 0
        while thread.is_alive():
            time.sleep(0.02)
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            running = sum(stage.numActiveTasks for stage in stages if stage)
            processes = executors(context.applicationId)
            # No more than two of one query: it must come to an end.
            if running and len(processes) == 2 and time.monotonic() > until and killed < 2 and done < kills:
                os.kill(random.choice(processes), signal.SIGKILL)
                done, killed = done + 1, killed + 1
                until = time.monotonic() + random.uniform(0.5, 3)
        thread.join()
        print(f"{query.__name__}: {killed} kills, {'right' if answer == [True] else answer}", flush=True)
        assert answer == [True], f"{query.__name__} after {done} kills"
    print(f"{done} kills, all answers right, {queries} queries")
    spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]))
