#!/usr/bin/env bash
# The tests, then what ordinary runs leave out: false-positive rates measured at full size, and one quick pass through the
# benches and the example, so that they do not rot.
# About 4 minutes from nothing, 1 afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

echo "== tests"
cargo test

echo "== measured rates, full size"
cargo test --release --test rates -- --ignored

echo "== benches, without measuring"
cargo bench --bench filter -- --test
cargo bench --bench peers -- --test

echo "== example"
cargo run --release --example cache_guard -- --rows 20000 --seconds 1
