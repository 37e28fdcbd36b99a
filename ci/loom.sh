#!/usr/bin/env bash
# The contract under the model checker: every promise in every interleaving, with at most three preemptions in each.
# Arguments go to the tests: ci/loom.sh guard
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Optimized, but with the assertions through which loom reports; the crate itself a little, for most of it is kernels that loom does
# not see. A folder of its own, because the flags differ from all else's.
export RUSTFLAGS="--cfg lanebloom_loom"
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true
export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
cargo test -p lanebloom-loom-tests --release --config 'profile.release.package.lanebloom.opt-level=1' \
    --target-dir "${CARGO_TARGET_DIR:-target}/loom" -- "$@"
