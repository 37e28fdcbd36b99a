#!/usr/bin/env bash
# The tests on processors that this machine is not: 64-bit Arm (NEON), an x86-64 without AVX2, and the big-endian s390x, all
# emulated by qemu, which says nothing about speed nor about weak memory ordering (ci/loom.sh does about the latter).
# About TODO. Needs what ci/install.sh installs. Arguments choose among aarch64, nehalem and s390x.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
toolchain=${LANEBLOOM_TOOLCHAIN:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/rust-web}

# Debian's own compiler of Firefox, rustc-web, comes with a standard library for each of Debian's architectures. Unpacked into
# a folder of its own, it changes nothing on the system. Its parts must be of one version, which APT is asked for.
unpack_toolchain() (
    work=$(mktemp -d "$toolchain.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir -p "$work"/apt/{state/lists/partial,cache/archives/partial} "$work"/{debs,root}
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
    version=$(apt-cache policy rustc-web | sed -n 's/.*Candidate: //p')
    std=$(apt-cache show "libstd-rust-web-dev=$version" | sed -n 's/^Depends: \(libstd-rust-web-[0-9.]*\).*/\1/p')
    llvm=$(apt-cache show "$std=$version" | grep -o 'libllvm[0-9]*' | head -n 1)
    cd "$work/debs"
    apt-get -qq download "$llvm" {rustc-web,"$std",libstd-rust-web-dev,libstd-rust-web-dev:arm64,rust-web-src}="$version"
    for package in *.deb; do
        dpkg --extract "$package" "$work/root"
    done
    mv -T "$work/root" "$toolchain"
)

# Everything or nothing is there, for it is moved into place in one step.
use_toolchain() {
    if [[ ! -e $toolchain ]]; then
        echo "unpacking a toolchain into $toolchain"
        mkdir -p "$(dirname "$toolchain")"
        unpack_toolchain
    fi
    export LD_LIBRARY_PATH=$toolchain/usr/lib/x86_64-linux-gnu
    export RUSTC=$toolchain/usr/bin/rustc RUSTDOC=$toolchain/usr/bin/rustdoc
    "$RUSTC" --version
}
