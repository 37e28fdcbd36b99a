#!/usr/bin/env bash
# Compiles, without running them, the filters for systems that no other script tests: macOS,
# WebAssembly, and 32-bit processors with and without 64-bit atomics. Fetches the compiler, and
# checks the standard library of each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
source ci/fetch/use_compiler.sh
use_compiler
export RUSTC_BOOTSTRAP=1
check() {
    echo "== $1"
    cargo check -Zbuild-std="$2" --target "$1" --target-dir "$target/targets" "${@:3}"
}

check aarch64-apple-darwin std -p lanebloom -p lanebloom-formats
check wasm32-unknown-unknown std -p lanebloom -p lanebloom-formats
check i686-unknown-linux-gnu std -p lanebloom -p lanebloom-formats
check armv7a-none-eabi core,alloc -p lanebloom -p lanebloom-formats --lib --no-default-features

# Without 64-bit atomics there is one sentence, and no error beside it.
echo "== thumbv7em-none-eabi, which must fail"
if check thumbv7em-none-eabi core,alloc -p lanebloom --lib --no-default-features 2>"$target/targets/refused"; then
    echo "it compiles" && exit 1
fi
grep -A9 '^error' "$target/targets/refused"
