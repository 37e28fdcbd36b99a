#!/usr/bin/env bash
# The tests with assertions and checks of overflow: units, programs, and the examples of the
# documentation, with every feature. Needs what ci/install.sh installs. Most of the time goes to the
# compiler: the kernels and what is generic are compiled for each kind of filter and key. (Those of
# crates/redis/tests run in ci/release.sh.)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# CI has Guava, Redis and the Python packages, so their absence is a failure.
export LANEBLOOM_REQUIRE_JVM=1 LANEBLOOM_REQUIRE_REDIS=1 LANEBLOOM_REQUIRE_SCRAPY=1

all=(-p lanebloom -p lanebloom-formats --profile checked --all-features --no-fail-fast)
cargo test "${all[@]}" --lib --test={alloc,api,edges,formats,stress}
cargo test "${all[@]}" --doc
cargo test -p lanebloom-redis --profile checked --all-features --no-fail-fast --lib
cargo test -p lanebloom-redis --profile checked --all-features --no-fail-fast --doc
cargo test -p lanebloom-guard --profile checked --all-features --no-fail-fast
cargo test -p lanebloom-cli --profile checked --no-fail-fast
