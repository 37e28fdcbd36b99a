#!/usr/bin/env bash
# Makes the prebuilt command in FOLDER (target/prebuilt): lanebloom-VERSION-x86_64-linux.tar.gz and
# a .deb, each with the completions, the man pages and the licenses. The program is linked
# statically, so it runs on any Linux with that processor. It is tried in a folder that has nothing
# else. Times, owners and paths are fixed, so that a commit should give the same bytes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=${1:-target/prebuilt}

# Like publish.sh: what git does not hold must not go into a package.
export SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
version=$(cargo metadata --no-deps --locked --format-version 1 |
    python3 -c 'import json, sys; print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "lanebloom-cli"))')
machine=$(uname -m)
target=$machine-unknown-linux-gnu

echo "== building"
# glibc's own static library: the standard library for musl comes with rustup only. The flags must
# not reach build scripts, so the target is named. Panics name files without this machine's folders.
RUSTFLAGS="-C target-feature=+crt-static -C strip=symbols --remap-path-prefix=$PWD=lanebloom --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo" \
    cargo build --locked --release -p lanebloom-cli --target "$target" --target-dir target/static
program=target/static/$target/release/lanebloom
if readelf --program-headers "$program" | grep -q INTERP; then
    echo "$program is not static" >&2
    exit 1
fi

rm -rf "$folder"
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

echo "== archive"
name=lanebloom-$version-$machine-linux
archive=$work/$name
mkdir -p "$archive"/{man,completions}
install -m 755 "$program" "$archive/"
install -m 644 LICENSE-APACHE LICENSE-MIT crates/cli/README.md CHANGELOG.md "$archive/"
"$program" man "$archive/man" >/dev/null
"$program" completions bash >"$archive/completions/lanebloom.bash"
"$program" completions zsh >"$archive/completions/_lanebloom"
"$program" completions fish >"$archive/completions/lanebloom.fish"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -C "$work" -cf - "$name" | gzip -9n >"$folder/$name.tar.gz"

echo "== Debian package"
deb=$work/deb
install -D -m 755 "$program" "$deb/usr/bin/lanebloom"
for page in "$archive"/man/*; do
    install -d "$deb/usr/share/man/man1"
    gzip -9nc "$page" >"$deb/usr/share/man/man1/${page##*/}.gz"
done
install -D -m 644 "$archive/completions/lanebloom.bash" "$deb/usr/share/bash-completion/completions/lanebloom"
install -D -m 644 "$archive/completions/_lanebloom" "$deb/usr/share/zsh/vendor-completions/_lanebloom"
install -D -m 644 "$archive/completions/lanebloom.fish" "$deb/usr/share/fish/vendor_completions.d/lanebloom.fish"
install -d "$deb/usr/share/doc/lanebloom" "$deb/DEBIAN"
cat LICENSE-MIT LICENSE-APACHE >"$deb/usr/share/doc/lanebloom/copyright"
gzip -9nc CHANGELOG.md >"$deb/usr/share/doc/lanebloom/changelog.gz"
cat >"$deb/DEBIAN/control" <<CONTROL
Package: lanebloom
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: the lanebloom developers <nobody@localhost>
Installed-Size: $(du -sk "$deb/usr" | cut -f1)
Section: utils
Priority: optional
Description: deduplicates lines in little memory, and works with Bloom filters
 Removes duplicate lines from files of any size, and builds, queries, merges and plots Bloom filters.
CONTROL
find "$deb" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --build "$deb" "$folder/" >/dev/null

echo "== each in a folder of its own"
# What was packed, in a folder in which there is no library and no other program.
try() {
    local root=$work/root-$1
    mkdir -p "$root"
    "${@:3}" "$root"
    local answer
    answer=$(printf 'a\nb\na\n' | unshare --map-root-user --root="$root" "$2" dedup)
    [[ $answer == $'a\nb' ]] || { echo "$1 answers: $answer" >&2 && exit 1; }
}
unpack() { tar -C "$1" --strip-components=1 -xzf "$folder/$name.tar.gz"; }
unpack_deb() { dpkg-deb --extract "$folder"/*.deb "$1"; }
try archive /lanebloom unpack
try deb /usr/bin/lanebloom unpack_deb
test -e "$work"/root-archive/man/lanebloom-dedup.1 -a -e "$work"/root-deb/usr/share/man/man1/lanebloom-dedup.1.gz

ls -l "$folder"
