#!/usr/bin/env bash
# Formatting, lints, documentation, and the proof that the crate works without std. Runs no test.
# About 1 minute from nothing, 3 seconds afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}

echo "== lock file"
cargo metadata --locked --format-version 1 >/dev/null

echo "== formatting"
cargo fmt --all --check
rustfmt --edition 2024 --check fuzz/fuzz_targets/*.rs
rustfmt --edition 2024 --check ci/no_std.rs

echo "== lints"
cargo clippy --workspace --all-targets -- -D warnings
cargo clippy --workspace --exclude lanebloom-loom-tests --all-targets --all-features -- -D warnings
cargo clippy -p lanebloom --lib --no-default-features -- -D warnings
cargo clippy -p lanebloom --lib --no-default-features --features std -- -D warnings
cargo clippy -p lanebloom --lib --no-default-features --features serde -- -D warnings
cargo clippy -p lanebloom --lib --no-default-features --features mmap -- -D warnings
cargo clippy -p lanebloom --lib --no-default-features --features guard -- -D warnings
cargo clippy -p lanebloom --lib --no-default-features --features window -- -D warnings
cargo clippy -p lanebloom --lib --no-default-features --features redis -- -D warnings
# The loom tests, and the side of src/sync.rs that only they see.
RUSTFLAGS="--cfg lanebloom_loom" cargo clippy -p lanebloom-loom-tests --all-targets --target-dir "$target/loom" -- -D warnings

echo "== documentation"
# As it is published, where a link to a private item is an error; then with what only developers read.
RUSTDOCFLAGS="-D warnings" cargo doc -p lanebloom --no-deps --all-features
RUSTDOCFLAGS="-D warnings" cargo doc -p lanebloom --no-deps --all-features --document-private-items

echo "== without std"
cargo build -p lanebloom --lib --no-default-features --target-dir "$target/no-std"
"${RUSTC:-rustc}" --edition 2024 --crate-type staticlib -C panic=abort -D warnings ci/no_std.rs \
    --extern lanebloom="$target/no-std/debug/liblanebloom.rlib" -L dependency="$target/no-std/debug/deps" \
    -o "$target/no-std/probe.a"
echo "compiles without std"
