#!/usr/bin/env bash
# The tests on a machine of another system than Linux, which has no Redis and no JVM: tests that
# need them are skipped. On Windows without lanebloom-redis and the examples, whose tests start a
# server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(--workspace)
[[ $OSTYPE != msys ]] || packages+=(--exclude=lanebloom-{redis,examples,benches})
cargo test --no-fail-fast "${packages[@]}"

target=${CARGO_TARGET_DIR:-target}
LANEBLOOM_COMMAND=$(realpath "$target/debug/lanebloom")
[[ $OSTYPE != msys ]] || LANEBLOOM_COMMAND=$(cygpath -m "$LANEBLOOM_COMMAND").exe
export LANEBLOOM_COMMAND
cargo test --no-fail-fast --manifest-path integrations/corpus/Cargo.toml --target-dir "$target"
