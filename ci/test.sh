#!/usr/bin/env bash
# The tests with assertions and checks of overflow: units, programs, and the examples of the
# documentation, with every feature. Needs what ci/install.sh installs; without it, run
# `cargo test --workspace`. Arguments go to cargo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# CI has Guava, Redis and the Python packages, so their absence is a failure.
export LANEBLOOM_REQUIRE_JVM=1 LANEBLOOM_REQUIRE_REDIS=1 LANEBLOOM_REQUIRE_SCRAPY=1

cargo test --workspace --all-features --no-fail-fast "$@"
