#!/usr/bin/env bash
# The tests on a machine of another system than Linux, which has no Redis and no JVM: tests that
# need them are skipped. On Windows without lanebloom-redis and the examples, whose tests start a
# server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(--workspace)
[[ $OSTYPE != msys ]] || packages+=(--exclude=lanebloom-{redis,examples,benches})
cargo test --no-fail-fast "${packages[@]}"
