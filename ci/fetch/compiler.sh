#!/usr/bin/env bash
# Fetches a Rust compiler from Debian: rustc-web (what Debian builds its browsers with). Its
# packages are unpacked without installing them; all must be of one version, so they are looked up
# in package lists fetched for this. A minute the first time, nothing afterwards.
#
#   ci/fetch/compiler.sh          the newest, with standard libraries and sources for other systems,
#                                 into ~/.cache/lanebloom/rust-web; 1 GB
#   ci/fetch/compiler.sh 1.85     this version, with its cargo and with a standard library for s390x
#                                 (which the newest lacks), into rust-web-1.85 there; 500 MB
#
# LANEBLOOM_TOOLCHAIN names a folder in place of ~/.cache/lanebloom, also for the scripts that use
# the compiler (ci/fetch/use_compiler.sh).
set -euo pipefail

wanted=${1:-}
toolchain=${LANEBLOOM_TOOLCHAIN:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom}/rust-web${wanted:+-$wanted}
# The hash of this version of the script, which the folder records.
script=$(sha256sum <"$0")
if [[ $script == "$(cat "$toolchain/complete" 2>/dev/null)" ]]; then
    echo "the compiler is there"
    exit
fi

echo "unpacking a compiler into $toolchain"
mkdir -p "$(dirname "$toolchain")"
work=$(mktemp -d "$toolchain.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{debs,root} "$work"/apt/{state/lists/partial,cache/archives/partial}
cat >"$work/apt.conf" <<END
Dir::State "$work/apt/state";
Dir::Cache "$work/apt/cache";
Dir::State::status "/var/lib/dpkg/status";
APT::Architecture "amd64";
APT::Architectures { "amd64"; "arm64"; "s390x"; };
APT::Sandbox::User "root";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Languages "none";
END
export APT_CONFIG=$work/apt.conf
apt-get -qq update
version=$(apt-cache madison rustc-web | awk -v wanted="$wanted" '!found && index($3, wanted) == 1 { found = $3 } END { print found }')
[[ -n $version ]] || { echo "Debian has no rustc-web $wanted" >&2 && exit 1; }
depends() { apt-cache show "$1=$version" | sed -n "s/^Depends:.*\b\($2\).*/\1/p" | sort -u; }
std=$(depends libstd-rust-web-dev 'libstd-rust-web-[0-9.]*')
llvm=$(depends "$std" 'libllvm[0-9]*')
cd "$work/debs"
if [[ -n $wanted ]]; then
    # (cargo's own libraries.)
    apt-get -qq download "$llvm" libhttp-parser2.9 libpcre3 {"$std",libstd-rust-web-dev{,:s390x},rustc-web,cargo-web}="$version"
else
    apt-get -qq download "$llvm" {"$std",libstd-rust-web-dev{,:arm64},rustc-web,rust-web-{clippy,src}}="$version"
fi
for package in *.deb; do
    dpkg --extract "$package" "$work/root"
done
# Beside the compiler's own, where LD_LIBRARY_PATH has them.
[[ ! -d $work/root/lib ]] || cp -a "$work"/root/lib/. "$work/root/usr/lib"
echo "$script" >"$work/root/complete"
rm -rf "$toolchain"
mv "$work/root" "$toolchain"
