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

echo "== tests of the feature rayon, and what is slow without optimization"
cargo test --all-features --doc parallel
cargo test --release --all-features --test bulk --test parallel

echo "== tests of the features mmap and serde"
cargo test --all-features --test snapshot
cargo test --all-features --doc -- codec view

echo "== killed writers, more of them"
cargo test --release --test replace

echo "== measured rates, full size"
cargo test --release --test rates --test counting --test tombstone -- --ignored
cargo test --release --test scalable -- --include-ignored

echo "== beside Guava, full size"
cargo test --release --test guava_jvm

echo "== beside RedisBloom: the examples, and full size"
cargo test --release --features redis --test redisbloom_module
echo "== Redis bitmaps: the examples, on a server, and beside Java and Python"
cargo test --features redis-tokio --doc redis
cargo test --release --features redis-tokio --test redis_bitmaps --test redis_peers
echo "== one set on many nodes: the examples, on a server, and the tests"
cargo test --features redis --doc -- shared SharedError
cargo test --release --features redis --test redis_shared

echo "== benches, without measuring"
cargo bench --bench filter -- --test
cargo bench --bench peers -- --test
cargo bench --bench bulk --features rayon -- --test
cargo bench --bench guava -- --test
cargo bench --bench snapshot --features mmap,serde -- --test
cargo bench --bench windowed -- --test
cargo bench --bench redis_bitmaps --features redis -- --test
cargo bench --bench redis --features redis -- --test

echo "== examples"
cargo run --release --example coupons -- --coupons 100000
cargo run --release --example cache_guard -- --rows 20000 --seconds 1
cargo run --release --example scoped_threads -- --keys 1000000
cargo run --release --example rate_window -- --requests 400000 --users 20000
cargo run --release --example rate_window -- --seconds 1 --window 0.2 --users 20000
cargo run --release --example crawler_dedup -- --pages 100000
cargo run --release --example shared_guard --features redis -- --rate 500 --seconds 1 --interval 20
