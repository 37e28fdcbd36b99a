#!/usr/bin/env bash
# The tests on processors that this machine is not: an x86-64 without AVX2, 64-bit Arm (NEON) and the big-endian s390x.
# qemu emulates them, which says nothing about speed, nor about weak memory ordering (that is ci/loom.sh's part).
# A quarter of an hour after ci/test.sh, on two cores. Needs what ci/install.sh installs.
#
#   ci/cross.sh                        all three
#   ci/cross.sh aarch64                some of nehalem, aarch64, s390x
#   LANEBLOOM_TOOLCHAIN=/some/folder   keeps the cross compiler, 1 GB, for the next time; by default ~/.cache/lanebloom does
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
toolchain=${LANEBLOOM_TOOLCHAIN:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom}/rust-web

# Without what needs a server or a JVM: to wait for one through an emulator says nothing about a processor.
tests=(-p lanebloom --profile checked --lib --tests --features rayon,mmap,serde)
export LANEBLOOM_GUAVA=none

# The default features, for which ci/test.sh has built all.
nehalem() {
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64-static -cpu Nehalem" cargo test -p lanebloom --profile checked --lib --tests
}

aarch64() (
    use_toolchain
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
    "$toolchain/usr/bin/cargo-clippy" clippy -p lanebloom --target aarch64-unknown-linux-gnu --target-dir "$target/cross" -- -D warnings
    cargo test --target aarch64-unknown-linux-gnu --target-dir "$target/cross" "${tests[@]}"
)

# The tests that look at bytes, which are all that could come out otherwise here; not those of batches against single calls, since it takes
# seven times as long as the others to emulate. Debian compiles no standard library of this version for s390x, so cargo does.
s390x() (
    use_toolchain
    tests=(-p lanebloom --profile checked --features mmap,serde)
    looking=({hash,hash_batch,filter,guava,redisbloom,snapshot,snapshot_deletable}::)
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_LINKER=s390x-linux-gnu-gcc
    export CARGO_TARGET_S390X_UNKNOWN_LINUX_GNU_RUNNER="qemu-s390x-static -L /usr/s390x-linux-gnu"
    export RUSTC_BOOTSTRAP=1
    tests+=(-Zbuild-std --target s390x-unknown-linux-gnu --target-dir "$target/cross")
    cargo test "${tests[@]}" --lib -- --skip batches
    cargo test "${tests[@]}" --test api --test formats -- "${looking[@]}" --skip batches
)

use_toolchain() {
    [[ -e $toolchain/complete ]] || unpack_toolchain
    export LD_LIBRARY_PATH=$toolchain/usr/lib/x86_64-linux-gnu
    export RUSTC=$toolchain/usr/bin/rustc RUSTDOC=$toolchain/usr/bin/rustdoc
    "$RUSTC" --version
}

# Debian's rustc-web (what it builds its browsers with) has a standard library for other processors. Its packages are
# unpacked without installing them; all must be of one version, so they are looked up in package lists fetched for this.
unpack_toolchain() (
    echo "unpacking a cross compiler into $toolchain"
    mkdir -p "$(dirname "$toolchain")"
    work=$(mktemp -d "$toolchain.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work"/{debs,root} "$work"/apt/{state/lists/partial,cache/archives/partial}
    cat >"$work/apt.conf" <<END
Dir::State "$work/apt/state";
Dir::Cache "$work/apt/cache";
Dir::State::status "/var/lib/dpkg/status";
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; };
APT::Sandbox::User "root";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Languages "none";
END
    export APT_CONFIG=$work/apt.conf
    apt-get -qq update
    depends() { apt-cache show "$1=$version" | sed -n "s/^Depends:.*\b\($2\).*/\1/p" | sort -u; }
    version=$(apt-cache policy rustc-web | sed -n 's/.*Candidate: //p')
    std=$(depends libstd-rust-web-dev 'libstd-rust-web-[0-9.]*')
    llvm=$(depends "$std" 'libllvm[0-9]*')
    cd "$work/debs"
    apt-get -qq download "$llvm" {"$std",libstd-rust-web-dev{,:arm64},rustc-web,rust-web-{clippy,src}}="$version"
    for package in *.deb; do
        dpkg --extract "$package" "$work/root"
    done
    touch "$work/root/complete"
    rm -rf "$toolchain"
    mv "$work/root" "$toolchain"
)

(($#)) || set -- nehalem aarch64 s390x
for processor; do
    case $processor in
        nehalem | aarch64 | s390x) ;;
        *) echo "$processor is none of nehalem, aarch64, s390x" >&2 && exit 2 ;;
    esac
    echo "== $processor"
    $processor
done
