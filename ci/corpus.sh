#!/usr/bin/env bash
# lanebloom-corpus: formatting, tests with assertions, lints of each feature, documentation. Its
# tests call the command `lanebloom` too. Needs what ci/install.sh installs; without it, run
# `cargo test` in integrations/corpus. Shares the compiled dependencies of ci/test.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
options=(--locked --profile test --manifest-path integrations/corpus/Cargo.toml)

echo "== formatting"
cargo fmt --check --manifest-path integrations/corpus/Cargo.toml

echo "== tests"
# The command, as ci/test.sh builds it.
cargo test --locked --workspace --all-features --no-run --test=dedup
LANEBLOOM_COMMAND=$(realpath "$CARGO_TARGET_DIR/debug/lanebloom")
export LANEBLOOM_COMMAND
# CI has Redis, so its absence is a failure.
LANEBLOOM_REQUIRE_REDIS=1 cargo test "${options[@]}" --all-features --no-fail-fast

echo "== lints"
lint() { cargo clippy "${options[@]}" "$@" -- -D warnings; }
lint --all-targets --all-features
lint --lib --no-default-features
# Without Parquet, its files are refused.
lint --bins

echo "== documentation"
RUSTDOCFLAGS="-D warnings" cargo doc "${options[@]}" --no-deps --all-features
