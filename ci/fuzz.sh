#!/usr/bin/env bash
# Every decoder on bytes that a fuzzer thinks up, and the filters beside a model: fuzz/fuzz_targets,
# under AddressSanitizer, with assertions and checks of overflow. Needs a nightly toolchain. Most of
# the time goes to the compiler, for all is instrumented.
#
#   ci/fuzz.sh                  5 seconds each, for CI
#   ci/fuzz.sh 60               60 seconds each
#   ci/fuzz.sh 60 java model    these only
#
# Failures go to fuzz/artifacts, and inputs that reach new code to target/fuzz/found. Copy the few
# that are worth it to fuzz/corpus. (cargo-fuzz works on the same targets: cargo +nightly fuzz run
# java.)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1-5}
if (($# > 1)); then
    targets=("${@:2}")
else
    targets=(snapshot bank bitmap delta java redisbloom rediscuckoo splitblock shared serde model)
fi

# The flags of cargo-fuzz, which takes a minute to install. One unit of code generation, or coverage
# is counted twice.
flags=(
    -Zsanitizer=address -Cdebug-assertions -Coverflow-checks -Ccodegen-units=1 --cfg fuzzing -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-{level=4,inline-8bit-counters,pc-table,trace-compares,stack-depth}
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0
)
# A folder of its own: these flags differ from all else's. Given a platform, cargo keeps them from
# build scripts.
folder=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
# A run of a minute does not win back the optimizer's time. Only the fuzzer itself is optimized.
((seconds > 60)) && level=3 || level=0
RUSTFLAGS="${flags[*]}" cargo +nightly build --release --manifest-path fuzz/Cargo.toml --target "$host" --target-dir "$folder" \
    --config "profile.release.opt-level=$level" --config 'profile.release.package.libfuzzer-sys.opt-level=2' \
    --config 'profile.release.debug="line-tables-only"' "${targets[@]/#/--bin=}"

export ASAN_OPTIONS=detect_odr_violation=0
for target in "${targets[@]}"; do
    echo "== $target, $seconds s"
    found=$folder/found/$target
    mkdir -p "$found" "fuzz/artifacts/$target"
    "$folder/$host/release/$target" -artifact_prefix="fuzz/artifacts/$target/" "$found" "fuzz/corpus/$target" \
        -max_total_time="$seconds" -max_len=4096 -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 -print_funcs=0 -verbosity=0
done
