#!/usr/bin/env bash
# Fetches the Bloom filter of Spark, spark-sketch of 4.3.0 (38 KB, Apache License 2.0), with which
# crates/formats/tests/formats/spark_jvm.rs and the bench `spark` compare. It lies in a package of
# PyPI, pyspark, of 456 MB, which is unpacked and deleted: a person runs this, .ci/run does not.
# A minute the first time, nothing afterwards. Needs python3 with pip, and 500 MB of room meanwhile.
#
#   ci/fetch/spark.sh                      where the tests look: ~/.cache/lanebloom/spark-sketch.jar
#   LANEBLOOM_SPARK=FILE ci/fetch/spark.sh elsewhere; the tests look there by the same variable
set -euo pipefail

file=${LANEBLOOM_SPARK:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/spark-sketch.jar}
if [[ -e $file ]]; then
    echo "Spark's filter is there"
    exit
fi

echo "fetching Spark's filter into $file"
mkdir -p "$(dirname "$file")"
work=$(mktemp -d "$file.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "pyspark==4.3.0 --hash=sha256:e8c517948eff7088a7aa07449aa8eafa4a15a8d50319de2525a6fd26622476c6" >"$work/requirements"
python3 -m pip download --quiet --no-deps --no-binary=:all: --no-cache-dir --require-hashes \
    --disable-pip-version-check --dest "$work" --requirement "$work/requirements"
tar --extract --file "$work"/pyspark-*.tar.gz --to-stdout \
    pyspark-4.3.0/deps/jars/spark-sketch_2.13-4.3.0.jar >"$work/jar"
mv "$work/jar" "$file"
