#!/usr/bin/env bash
# hyparquet 1.33.0 finds no row by a boolean in files that Spark wrote with Bloom filters.
#
# Packages: PySpark 4.3.0 (parquet-java 1.17.0; needs a JDK 17), hyparquet 1.33.0 (needs Node.js).
#
# Spark's option parquet.bloom.filter.enabled gives every column a filter. parquet-java makes one
# for a BOOLEAN too, of 1 MiB, and adds no value to it: all its bits are zero. Spark, DuckDB,
# ClickHouse and DataFusion ask no filter of booleans, so one expects nothing of it but waste.
# hyparquet, with useBloomFilters, hashes a boolean as one byte and asks: the empty filter rules out
# every row group. Both sides read and write their own files right.
#
# Output seen:
#   without filters 500 rows; with useBloomFilters 0 rows, by the number column 1 row
#
# A user of membership filters meets it who turns them on for a whole table in Spark and filters by
# a flag in a browser. Set parquet.bloom.filter.enabled#flag to false for boolean columns.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q pyspark==4.3.0
cat > "$work/write.py" <<'PYTHON'
import sys

from pyspark.sql import SparkSession

options = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false"}
builder = SparkSession.builder.master("local[1]")
for name, value in options.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")
rows = spark.range(1000).selectExpr("id", "id % 2 = 0 AS flag").coalesce(1)
writer = rows.write.option("parquet.bloom.filter.enabled", "true").option("parquet.enable.dictionary", "false")
writer.parquet(sys.argv[1])
PYTHON
"$work/venv/bin/python" "$work/write.py" "$work/rows"
cd "$work"
npm install --silent --no-fund --no-audit hyparquet@1.33.0 > /dev/null
cat > count.mjs <<'JS'
import assert from 'node:assert'
import fs from 'node:fs'
import { asyncBufferFromFile, parquetQuery } from 'hyparquet'

const name = fs.readdirSync('rows').find(name => name.endsWith('.parquet'))
const file = await asyncBufferFromFile('rows/' + name)
const count = async (filter, useBloomFilters) => (await parquetQuery({ file, filter, useBloomFilters })).length
const without = await count({ flag: { $eq: true } }, false)
const flag = await count({ flag: { $eq: true } }, true)
const number = await count({ id: { $eq: 500n } }, true)
console.log(`without filters ${without} rows; with useBloomFilters ${flag} rows, by the number column ${number} row`)
assert.deepEqual([without, flag, number], [500, 0, 1])
JS
node count.mjs
