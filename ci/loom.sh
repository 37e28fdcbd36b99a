#!/usr/bin/env bash
# The contract under the model checker: every promise in every interleaving, with at most three preemptions in each.
# About a minute from nothing, 40 seconds afterwards. Arguments go to the tests: ci/loom.sh guard
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Optimized, but with the assertions through which loom reports. A folder of its own, because the flags differ from all else's.
export RUSTFLAGS="--cfg lanebloom_loom"
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true
export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
cargo test -p lanebloom-loom-tests --release --target-dir "${CARGO_TARGET_DIR:-target}/loom" -- "$@"
