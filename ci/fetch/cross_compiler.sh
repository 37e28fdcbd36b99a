#!/usr/bin/env bash
# Fetches the compiler of ci/cross.sh from Debian: rustc-web (what Debian builds its browsers with),
# which has a standard library for other processors. Its packages are unpacked without installing
# them; all must be of one version, so they are looked up in package lists fetched for this. A
# minute the first time, nothing afterwards; 1 GB.
#
#   ci/fetch/cross_compiler.sh                                  puts it where ci/cross.sh looks for it, ~/.cache/lanebloom/rust-web
#   LANEBLOOM_TOOLCHAIN=FOLDER ci/fetch/cross_compiler.sh       puts it elsewhere; ci/cross.sh looks there by the same variable
set -euo pipefail

toolchain=${LANEBLOOM_TOOLCHAIN:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom}/rust-web
if [[ -e $toolchain/complete ]]; then
    echo "the cross compiler is there"
    exit
fi

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
