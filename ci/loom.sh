#!/usr/bin/env bash
# The contract under the model checker: every promise in every interleaving, with at most three
# preemptions in each (some with two). Arguments go to the tests: ci/loom.sh guard
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# With the assertions through which loom reports. loom and the tests are optimized; the crate a
# little, for most of it is kernels that loom does not see; what loom only writes messages with is
# not. A folder of its own, because the flags differ from all else's.
export RUSTFLAGS="--cfg lanebloom_loom -D warnings"
export CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true
export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
level() { echo "--config=profile.release.package.$1.opt-level=$2"; }
cargo test -p lanebloom-loom-tests --release --target-dir "${CARGO_TARGET_DIR:-target}/loom" \
    "$(level lanebloom 1)" "$(level '"*"' 0)" "$(level loom 3)" "$(level generator 3)" -- "$@"
