#!/usr/bin/env bash
# The tests, with assertions; then, as it is released: what the other features add, what is slow otherwise (false-positive rates measured
# at full size, millions of keys beside Guava, ...), and one quick pass through the benches and the examples, so that they do not rot.
# About 12 minutes from nothing on two cores. Needs what ci/install.sh installs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Where Guava, Redis and the Python packages are to be had, not to find them is a failure.
export LANEBLOOM_REQUIRE_JVM=1 LANEBLOOM_REQUIRE_REDIS=1 LANEBLOOM_REQUIRE_SCRAPY=1

echo "== tests"
cargo test -p lanebloom --profile checked

# From here on everything is of one build.
optimized=(--profile ci --all-features)
benches=(filter peers deletable bulk guava snapshot windowed redis_bitmaps redis)

echo "== building as it is released"
cargo test -p lanebloom "${optimized[@]}" --no-run --lib --test={api,formats,stress,servers}
cargo test "${optimized[@]}" --no-run --bins "${benches[@]/#/--bench=}"

echo "== what the other features add: parts and examples"
cargo test -p lanebloom "${optimized[@]}" --lib redis
cargo test -p lanebloom "${optimized[@]}" --doc -- parallel codec view redis shared SharedError

echo "== what is slow without optimization, and at full size: measured rates, killed writers, filters under stress"
cargo test -p lanebloom "${optimized[@]}" --test api -- bulk:: parallel:: scalable:: cuckoo:: dleft:: --include-ignored
cargo test -p lanebloom "${optimized[@]}" --test api --test stress -- counting:: tombstone:: rates:: --ignored
cargo test -p lanebloom "${optimized[@]}" --test formats -- replace:: snapshot:: snapshot_deletable::

echo "== beside Guava, RedisBloom, other programs' bitmaps, and on a Redis server"
cargo test -p lanebloom "${optimized[@]}" --test formats -- guava_jvm::
cargo test -p lanebloom "${optimized[@]}" --test servers

echo "== benches, without measuring"
cargo bench "${optimized[@]}" "${benches[@]/#/--bench=}" -- --test

echo "== examples"
run() { cargo run "${optimized[@]}" --bin "$@"; }
run cache_guard -- --rows 20000 --seconds 1
run scoped_threads -- --keys 1000000
run crawler_dedup -- --pages 100000
run rate_window -- --requests 400000 --users 20000
run rate_window -- --seconds 1 --window 0.2 --users 20000
run coupons -- --coupons 100000
run shared_guard -- --rate 500 --seconds 1 --interval 20
