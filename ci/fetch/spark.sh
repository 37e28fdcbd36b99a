#!/usr/bin/env bash
# Fetches the Bloom filter of Spark, spark-sketch of 4.3.0 (38 KB), and Guava 33.6.0 (3 MB; both
# Apache License 2.0). Tests compare with them (spark_jvm.rs and guava_jvm.rs of crates/formats,
# redis_peers.rs of crates/redis), and so do the benches `spark` and `guava`. They lie in a package
# of PyPI, pyspark, of 456 MB, which is unpacked and deleted: a person runs this, .ci/run does not.
# A minute the first time, nothing afterwards. Needs python3 with pip, and 500 MB of room meanwhile.
#
#   ci/fetch/spark.sh                      where the tests look: ~/.cache/lanebloom
#   LANEBLOOM_SPARK=FILE ci/fetch/spark.sh Spark's elsewhere; the tests look there by the same variable
set -euo pipefail

folder=${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom
spark=${LANEBLOOM_SPARK:-$folder/spark-sketch.jar}
guava=$folder/guava-33.6.0-jre.jar
if [[ -e $spark && -e $guava ]]; then
    echo "Spark's filter and Guava are there"
    exit
fi

echo "fetching Spark's filter into $spark, and Guava into $guava"
mkdir -p "$folder" "$(dirname "$spark")"
work=$(mktemp -d "$folder/spark.XXXXXX")
trap 'rm -rf "$work"' EXIT
echo "pyspark==4.3.0 --hash=sha256:e8c517948eff7088a7aa07449aa8eafa4a15a8d50319de2525a6fd26622476c6" >"$work/requirements"
python3 -m pip download --quiet --no-deps --no-binary=:all: --no-cache-dir --require-hashes \
    --disable-pip-version-check --dest "$work" --requirement "$work/requirements"
tar --extract --no-same-owner --file "$work"/pyspark-*.tar.gz --directory "$work" --strip-components=3 \
    pyspark-4.3.0/deps/jars/{spark-sketch_2.13-4.3.0,guava-33.6.0-jre}.jar
mv "$work/spark-sketch_2.13-4.3.0.jar" "$spark"
mv "$work/guava-33.6.0-jre.jar" "$guava"
