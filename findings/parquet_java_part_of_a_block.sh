#!/usr/bin/env bash
# parquet-java writes Bloom filters that end in a part of a block, and one reader refuses the query.
#
# Packages: PySpark 4.3.0 (parquet-java 1.17.0; needs a JDK 17), DuckDB 2.0.1, DataFusion 55.0.0,
# chdb 4.4.0 (ClickHouse).
#
# Parquet's Bloom filter consists of blocks of 32 bytes, and parquet-java rounds its sizes up to a
# power of two. One expects that its option parquet.bloom.filter.max.bytes rounds too. It does not:
# max.bytes=10000 writes a filter of 10,000 bytes, 312.5 blocks. Keys are in the first 312 blocks.
#
# Output seen:
#   the header says 10000 bytes
#   DuckDB 1 row, DataFusion 1 row
#   ClickHouse: Invalid bloom filter size
#
# A user of membership filters meets it who sets the option in Spark to a number that is not a power
# of two: DuckDB ignores the filter, and ClickHouse fails for each query by a value of the column. A
# reader of one's own must divide by 32 and forget the rest, or present values are absent.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyspark==4.3.0 duckdb==2.0.1 datafusion==55.0.0 chdb==4.4.0
cat > "$work/check.py" <<'P'
import glob
import sys

from pyspark.sql import SparkSession

folder = sys.argv[1] + "/file"
options = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
builder = SparkSession.builder.master("local[1]")
for name, value in options.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
writer = spark.range(0, 2000, 2).coalesce(1).write
writer = writer.option("parquet.bloom.filter.enabled", "true").option("parquet.bloom.filter.max.bytes", "10000")
writer.option("parquet.enable.dictionary", "false").parquet(folder)
(path,) = glob.glob(folder + "/*.parquet")

# Field 1 of the header in Thrift's compact protocol, the number of bytes as a zigzag varint; then
# three unions.
size = b"\x15" + b"\xa0\x9c\x01" + 3 * b"\x1c\x1c\x00\x00" + b"\x00"
with open(path, "rb") as file:
    data = file.read()
assert data.count(size) == 1
print("the header says 10000 bytes")

import datafusion
import duckdb

[(by_duckdb,)] = duckdb.sql(f"SELECT count(*) FROM '{path}' WHERE id = 500").fetchall()
context = datafusion.SessionContext()
context.register_parquet("t", path)
by_datafusion = context.sql("SELECT * FROM t WHERE id = 500").count()
print(f"DuckDB {by_duckdb} row, DataFusion {by_datafusion} row")
assert (by_duckdb, by_datafusion) == (1, 1)

import chdb

try:
    found = str(chdb.query(f"SELECT count() FROM file('{path}', Parquet) WHERE id = 500"))
except Exception as error:
    found = str(error)
print("ClickHouse:", "Invalid bloom filter size" if "Invalid bloom filter size" in found else found)
assert "Invalid bloom filter size" in found
P
"$work/venv/bin/python" "$work/check.py" "$work"
