#!/usr/bin/env bash
# The tests of threads under ThreadSanitizer, which finds data races, and the tests of the crates'
# memory under AddressSanitizer. Needs what ci/install.sh installs; fetches the compiler and the
# runtimes.
#
# ThreadSanitizer sees no assembly, so the lookups in vectors (src/kernel/loads.rs) are
# outside its view; it does not understand fences, so a report on code that relies on one may be
# wrong. (loom, ci/loom.sh, understands them.)
#
#   ci/sanitizers.sh               both
#   ci/sanitizers.sh thread        one of thread, address
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
source ci/fetch/use_compiler.sh
use_compiler
ci/fetch/sanitizers.sh
export RUSTC_BOOTSTRAP=1 LANEBLOOM_GUAVA=none LANEBLOOM_SPARK=none
host=x86_64-unknown-linux-gnu
# For the tests that ask for more memory than there is.
export TSAN_OPTIONS=halt_on_error=1:allocator_may_return_null=1 ASAN_OPTIONS=allocator_may_return_null=1

# With the standard library, which hands data from thread to thread too. Only the tests that have
# threads, by parts of their names: no unit test has some.
thread() {
    local tests=(threads racing beside claim live_filter ones_own moved_all_the_time the_same_keys_make)
    tests+=(parallel:: bulk::many_regions lookups_hold_on lists_are_used_again)
    RUSTFLAGS=-Zsanitizer=thread \
        cargo test -Zbuild-std --target $host --target-dir "$target/tsan" --no-fail-fast \
        -p lanebloom -p lanebloom-tests --features rayon --test={filters,stress} -- "${tests[@]}"
}

# Without the tests that read every truncation of some bytes.
address() {
    RUSTFLAGS=-Zsanitizer=address \
        cargo test --target $host --target-dir "$target/asan" --no-fail-fast \
        -p lanebloom -p lanebloom-tests -p lanebloom-formats --features rayon,mmap,serde --lib --test={filters,bytes,formats,hash_batch,stress} -- --skip={rates::,load_estimate,truncation}
}

(($#)) || set -- thread address
for sanitizer; do
    case $sanitizer in
        thread | address) ;;
        *) echo "$sanitizer is none of thread, address" >&2 && exit 2 ;;
    esac
    echo "== $sanitizer"
    ($sanitizer)
done
