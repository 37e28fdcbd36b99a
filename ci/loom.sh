#!/usr/bin/env bash
# The contract under the model checker: every promise in every interleaving, with at most three
# preemptions in each (some with two). Arguments go to the tests: ci/loom.sh guard
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export RUSTFLAGS="-D warnings"
export LOOM_MAX_PREEMPTIONS=${LOOM_MAX_PREEMPTIONS:-3}
cargo test --locked --manifest-path loom-tests/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/loom" -- "$@"
