#!/usr/bin/env bash
# The tests, then what ordinary runs leave out: false-positive rates measured at full size, millions of keys beside Guava, and one
# quick pass through the benches and the example, so that they do not rot. Needs what ci/install.sh installs.
# About 5 minutes from nothing, 1 afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Where Guava, Redis and the Python packages are to be had, not to find them is a failure.
export LANEBLOOM_REQUIRE_JVM=1 LANEBLOOM_REQUIRE_REDIS=1 LANEBLOOM_REQUIRE_SCRAPY=1

echo "== tests"
cargo test

# From here on with all features, so that each profile is built once.
echo "== tests and examples of what the other features add"
cargo test --all-features --test snapshot --test snapshot_deletable
cargo test --all-features --doc -- parallel codec view redis shared SharedError

echo "== what is slow without optimization, and at full size: measured rates, killed writers, filters under stress"
cargo test --release --all-features --test bulk --test parallel --test replace --test snapshot_deletable
cargo test --release --all-features --test rates --test counting --test tombstone -- --ignored
cargo test --release --all-features --test scalable --test cuckoo --test dleft -- --include-ignored

echo "== beside Guava, RedisBloom, other programs' bitmaps, and on a Redis server"
cargo test --release --all-features --test guava_jvm --test redisbloom_module --test redis_bitmaps --test redis_peers --test redis_shared

echo "== benches, without measuring"
for bench in filter peers deletable bulk guava snapshot windowed redis_bitmaps redis; do
    cargo bench --all-features --bench "$bench" -- --test
done

echo "== examples"
run() { cargo run --release --all-features --example "$@"; }
run cache_guard -- --rows 20000 --seconds 1
run scoped_threads -- --keys 1000000
run crawler_dedup -- --pages 100000
run rate_window -- --requests 400000 --users 20000
run rate_window -- --seconds 1 --window 0.2 --users 20000
run coupons -- --coupons 100000
run shared_guard -- --rate 500 --seconds 1 --interval 20
