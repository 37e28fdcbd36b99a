#!/usr/bin/env bash
# The tests, then what ordinary runs leave out: false-positive rates measured at full size, millions of keys beside Guava, and one
# quick pass through the benches and the example, so that they do not rot. Needs what ci/install.sh installs.
# About 5 minutes from nothing, 1 afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Where Guava is to be had, not to find it is a failure.
export LANEBLOOM_REQUIRE_JVM=1

echo "== tests"
cargo test

echo "== tests of the feature rayon, and what is slow without optimization"
cargo test --all-features --doc parallel
cargo test --release --all-features --test bulk --test parallel

echo "== measured rates, full size"
cargo test --release --test rates -- --ignored
# With its own stress tests, at their full size.
cargo test --release --test cuckoo --test dleft -- --include-ignored

echo "== beside Guava, full size"
cargo test --release --test guava_jvm

echo "== benches, without measuring"
cargo bench --bench filter -- --test
cargo bench --bench peers -- --test
cargo bench --bench deletable -- --test
cargo bench --bench bulk --features rayon -- --test
cargo bench --bench guava -- --test

echo "== examples"
cargo run --release --example cache_guard -- --rows 20000 --seconds 1
cargo run --release --example scoped_threads -- --keys 1000000
