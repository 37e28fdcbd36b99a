#!/usr/bin/env bash
# Fetches the runtimes of AddressSanitizer and ThreadSanitizer from Debian, for the compiler of
# ci/fetch/compiler.sh: those of the LLVM that it is built with. Seconds the first time, nothing
# afterwards.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source ci/fetch/use_compiler.sh
use_compiler >/dev/null
to=$toolchain/usr/lib/rustlib/x86_64-unknown-linux-gnu/lib
if [[ -e $to/librustc-stable_rt.tsan.a ]]; then
    echo "the runtimes are there"
    exit
fi

llvm=$("$RUSTC" -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset LD_LIBRARY_PATH
apt-get -qq -o APT::Sandbox::User=root download "libclang-rt-$llvm-dev"
dpkg --extract ./*.deb .
for name in asan tsan; do
    install -m 644 "usr/lib/llvm-$llvm"/lib/clang/*/lib/linux/"libclang_rt.$name-x86_64.a" "$to/librustc-stable_rt.$name.a"
done
