#!/usr/bin/env bash
# Checks, without linking or running them, the filters for systems that no other script tests:
# macOS, WebAssembly, and 32-bit processors with and without 64-bit atomics. Also the guard and the
# command for macOS. Fetches the compiler, and checks the standard library of each.
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

# (The command compiles zstd's C. No C compiler for macOS is here, and a check reads no object
# file.)
CC_aarch64_apple_darwin=true AR_aarch64_apple_darwin=true \
    check aarch64-apple-darwin std --package=lanebloom{,-formats,-guard,-cli} --features=lanebloom{/{rayon,mmap,serde},-guard/{formats,tower}}
check wasm32-unknown-unknown std -p lanebloom -p lanebloom-formats
check i686-unknown-linux-gnu std -p lanebloom -p lanebloom-formats
check armv7a-none-eabi core,alloc -p lanebloom -p lanebloom-formats --lib --no-default-features

# Without 64-bit atomics there is one sentence, and no error beside it.
echo "== thumbv7em-none-eabi, which must fail"
if check thumbv7em-none-eabi core,alloc -p lanebloom --lib --no-default-features 2>"$target/targets/refused"; then
    echo "it compiles" && exit 1
fi
grep -A9 '^error' "$target/targets/refused"
