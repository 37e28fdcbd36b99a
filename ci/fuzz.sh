#!/usr/bin/env bash
# Every decoder on bytes that a fuzzer thinks up, and the filters beside a model: fuzz/fuzz_targets, under AddressSanitizer.
# Needs a nightly toolchain; installs cargo-fuzz if it is missing. 2 minutes from nothing, then the given time for each target.
#
#   ci/fuzz.sh                  5 seconds each, for CI
#   ci/fuzz.sh 60               60 seconds each
#   ci/fuzz.sh 60 guava model   these only
#
# What it finds is in fuzz/artifacts, and inputs that reach new code in fuzz/target/found, from where the few that are worth it
# are copied to fuzz/corpus.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1-5}
if (($# > 1)); then
    targets=("${@:2}")
else
    targets=(snapshot delta guava redisbloom shared serde model)
fi

if ! cargo fuzz --version >/dev/null 2>&1; then
    cargo install --quiet --locked cargo-fuzz --version 0.13.2
fi

# A folder of its own: the sanitizer's flags differ from all else's.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
cargo +nightly fuzz build
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    found=$CARGO_TARGET_DIR/found/$target
    mkdir -p "$found"
    cargo +nightly fuzz run "$target" "$found" "fuzz/corpus/$target" -- \
        -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -print_funcs=0 -verbosity=0
done
