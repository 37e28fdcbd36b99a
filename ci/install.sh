#!/usr/bin/env bash
# Installs from Debian what the other scripts need beside a Rust toolchain: a linker, emulators, cross compilers, Guava, Redis.
# About 30 seconds the first time, nothing afterwards. Needs root, or sudo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
    build-essential                                  # the linker; objdump, for ci/codegen.sh
    qemu-user-static                                 # runs the tests of ci/cross.sh
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross      # links for 64-bit Arm
    gcc-s390x-linux-gnu libc6-dev-s390x-cross        # links for a big-endian machine
    libguava-java default-jdk-headless               # the peer of tests/guava_jvm.rs and benches/guava.rs
    redis-server redis-tools                         # the server of the tests of the feature redis, which they start
    libedit2 libffi8 libxml2 libz3-4                 # what the compiler that ci/cross.sh unpacks is linked to
)

missing=()
for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
    echo "nothing to install"
    exit
fi

echo "installing ${missing[*]}"
as_root=()
((EUID == 0)) || as_root=(sudo)
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
"${apt[@]}" update
"${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null
