#!/usr/bin/env bash
# The tests on other processors: an x86-64 without AVX2, 64-bit Arm (NEON) and the big-endian s390x.
# qemu emulates them, which says nothing about speed, nor about weak memory ordering (that is
# ci/loom.sh's part), and takes some ten times as long as the processor itself would. Needs what
# ci/install.sh installs; fetches the compiler.
#
#   ci/cross.sh                        all three, one after another
#   ci/cross.sh aarch64                some of nehalem, aarch64, s390x
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
source ci/fetch/use_compiler.sh

# Without the tests that need a server or a JVM, which say nothing about a processor.
export LANEBLOOM_GUAVA=none LANEBLOOM_SPARK=none
package=(-p lanebloom -p lanebloom-tests)

# The tests of instruction sets: the kernels, hashing in batches, lookups before unreadable memory,
# and the contract of the filters whose kernels have vectors. All else is the same code on any
# processor with this byte order.
vectors() {
    cargo test --no-fail-fast "$@" --lib --test={contract,memory_edges,hash_batch} -- \
        --skip={sizing,load_estimate,the_rate,estimated_len,view,counting,tombstone,d_left,cuckoo,scalable,windowed}
}

# The programs of ci/test.sh.
nehalem() {
    export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64-static -cpu Nehalem"
    vectors --workspace --all-features
}

aarch64() {
    use_compiler
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
    local build=(--target aarch64-unknown-linux-gnu --target-dir "$target/aarch64")
    # The kernels of NEON: no other script compiles them.
    "$toolchain/usr/bin/cargo-clippy" clippy --profile test -p lanebloom "${build[@]}" -- -D warnings
    vectors "${package[@]}" "${build[@]}"
    cargo test -p lanebloom-formats "${build[@]}" --lib -- splitblock
}

# The tests of bytes: only these depend on the byte order. Not the tests of batches against single
# calls, of threads, rates, sizes, logarithms and files, nor those that read every truncation of
# their bytes or fill big filters: these take most of the time under emulation. With the oldest
# supported compiler, the only one for which Debian has a standard library for s390x.
s390x() {
    use_compiler "$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)"
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x-static -L /usr/s390x-linux-gnu"
    package+=(-p lanebloom-formats --target s390x-unknown-linux-gnu --target-dir "$target/s390x" --features mmap,serde)
    cargo test --no-fail-fast "${package[@]}" --lib --test={bytes,formats,hash_batch} -- \
        --skip={batches,truncation,ends_early,big_filters,every_bit_of_a_key,older_chains,16_mib,mitz,a_filter_is_overfull} \
        --skip={scalable_grown,contract::scalable::,estimated_len,killed_writer,live_filter,nothing_is_held,load_estimate} \
        --skip={instruction_sets,sizing,the_rate,no_builder,more_filters,strings_unlike,any_build_hasher} \
        --skip={other_values,told_apart,any_bytes,a_slice_is,replace::,ln_of_a_sum,ln_is_that,absurd_time,delta_is_compact}
}

(($#)) || set -- nehalem aarch64 s390x
for processor; do
    case $processor in
        nehalem | aarch64 | s390x) ;;
        *) echo "$processor is none of nehalem, aarch64, s390x" >&2 && exit 2 ;;
    esac
    echo "== $processor"
    ($processor)
done
