#!/usr/bin/env bash
# Makes the prebuilt commands in target/prebuilt, each package with licenses and completions:
#
#   ci/prebuilt.sh linux       lanebloom-VERSION-x86_64-linux.tar.gz and a .deb, with the man pages
#   ci/prebuilt.sh windows     lanebloom-VERSION-x86_64-windows.zip; needs what
#                              `ci/install.sh windows` installs
#   ci/prebuilt.sh             both
#   ci/prebuilt.sh native      an archive for the system of this machine, such as macOS
#
# With cargo-auditable, the programs hold the list of their dependencies, which `cargo audit bin`
# reads; with cargo-cyclonedx, the folder gets that list as files (an SBOM).
#
# The programs for Linux are linked statically, so they run on any Linux with that processor. Those
# for Windows need Windows 10. Each is tried in a folder that has nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
folder=$PWD/target/prebuilt

# Like publish.sh: what git does not hold must not go into a package.
export SOURCE_DATE_EPOCH TZ=UTC
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
version=$(cargo metadata --no-deps --locked --format-version 1 |
    python3 -c 'import json, sys; print(next(p["version"] for p in json.load(sys.stdin)["packages"] if p["name"] == "lanebloom-cli"))')
machine=$(uname -m)
rm -rf "$folder"
mkdir -p "$folder"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

packages=(crates/cli integrations/corpus)

# The commands in the folder `programs`, built for a target. Panics name files without this
# machine's folders.
build() {
    echo "== building for $1"
    local auditable=()
    ! cargo auditable --version >/dev/null 2>&1 || auditable=(auditable)
    local -x RUSTFLAGS="${static--C target-feature=+crt-static} -C strip=symbols --remap-path-prefix=$PWD=lanebloom --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo${toolchain:+ --remap-path-prefix=$toolchain=rust}"
    local package
    for package in "${packages[@]}"; do
        cargo "${auditable[@]}" build --locked --release --manifest-path "$package/Cargo.toml" --target "$1" --target-dir target/static "${@:2}"
    done
    programs=target/static/$1/release
}

# The folder `archive` of the programs, whose names end in $2, and their papers.
begin() {
    name=lanebloom-$version-$machine-$1
    archive=$work/$name
    mkdir -p "$archive/completions"
    install -m 755 "$programs"/lanebloom{,-corpus}"${2-}" "$archive/"
    install -m 644 LICENSE-APACHE LICENSE-MIT crates/cli/README.md CHANGELOG.md "$archive/"
    install -m 644 integrations/corpus/README.md "$archive/README-corpus.md"
}

linux() {
    # glibc's own static library: the standard library for musl comes with rustup only. The flags
    # must not reach build scripts, so the target is named.
    build "$machine-unknown-linux-gnu"
    for program in "$programs"/lanebloom{,-corpus}; do
        if readelf --program-headers "$program" | grep -q INTERP; then
            echo "$program is not static" >&2
            exit 1
        fi
    done

    echo "== archive"
    begin linux
    mkdir "$archive/man"
    "$archive/lanebloom" man "$archive/man"
    "$archive/lanebloom-corpus" --man "$archive/man"
    for shell in bash zsh fish; do
        "$archive/lanebloom" completions $shell >"$archive/completions/$(completions_of lanebloom $shell)"
        "$archive/lanebloom-corpus" --completions $shell >"$archive/completions/$(completions_of lanebloom-corpus $shell)"
    done
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -C "$work" -cf - "$name" | gzip -9n >"$folder/$name.tar.gz"

    echo "== Debian package"
    local deb=$work/deb
    install -D -m 755 -t "$deb/usr/bin" "$archive"/lanebloom{,-corpus}
    for page in "$archive"/man/*; do
        install -d "$deb/usr/share/man/man1"
        gzip -9nc "$page" >"$deb/usr/share/man/man1/${page##*/}.gz"
    done
    for command in lanebloom lanebloom-corpus; do
        install -D -m 644 "$archive/completions/$command.bash" "$deb/usr/share/bash-completion/completions/$command"
        install -D -m 644 -t "$deb/usr/share/zsh/vendor-completions" "$archive/completions/_$command"
        install -D -m 644 -t "$deb/usr/share/fish/vendor_completions.d" "$archive/completions/$command.fish"
    done
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
 Removes duplicate and near-duplicate text from JSON lines.
CONTROL
    find "$deb" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group --build "$deb" "$folder/" >/dev/null

    echo "== each in a folder of its own"
    try archive /lanebloom unpack
    try deb /usr/bin/lanebloom unpack_deb
    test -e "$work"/root-archive/man/lanebloom-corpus.1 -a -e "$work"/root-archive/man/lanebloom-dedup.1 -a -e "$work"/root-deb/usr/share/man/man1/lanebloom-dedup.1.gz
}

# The packed programs, in a folder in which there is no library and no other program.
try() {
    local root=$work/root-$1
    mkdir -p "$root"
    "${@:3}" "$root"
    answer unshare --map-root-user --root="$root" "$2"
}
unpack() { tar -C "$1" --strip-components=1 -xzf "$folder/$name.tar.gz"; }
unpack_deb() { dpkg-deb --extract "$folder"/*.deb "$1"; }

# The name of the completions of a command for a shell.
completions_of() {
    case $2 in
        zsh) echo "_$1" ;;
        *) echo "$1.$2" ;;
    esac
}

# Fails unless the program removes a line.
answer() {
    local answer
    answer=$(printf 'a\nb\na\n' | "$@" dedup)
    [[ $answer == $'a\nb' ]] || { echo "$* answers: $answer" >&2 && exit 1; }
}

windows() {
    source ci/fetch/use_windows.sh
    use_windows
    build x86_64-pc-windows-gnu -Zbuild-std
    for program in "$programs"/lanebloom{,-corpus}.exe; do
        # mingw's libraries are not there on Windows.
        if x86_64-w64-mingw32-objdump --private-headers "$program" | grep -i "DLL Name: lib"; then
            echo "$program is not static" >&2
            exit 1
        fi
    done

    echo "== archive"
    begin windows .exe
    "$wine" "$archive/lanebloom.exe" completions powershell >"$archive/completions/_lanebloom.ps1"
    "$wine" "$archive/lanebloom-corpus.exe" --completions powershell >"$archive/completions/_lanebloom-corpus.ps1"
    touch -d "@$SOURCE_DATE_EPOCH" "$archive"{,/*,/*/*}
    (cd "$work" && python3 -m zipfile -c "$folder/$name.zip" "$name")

    echo "== in a folder of its own"
    python3 -m zipfile -e "$folder/$name.zip" "$work/root"
    answer "$wine" "$work/root/$name/lanebloom.exe"
}

native() {
    local host suffix=
    host=$(rustc -vV | sed -n 's/^host: //p')
    # Only the standard library for Windows can be static here.
    [[ $host == *windows* ]] && suffix=.exe || static=
    build "$host"
    begin "${host#*-}" "$suffix"
    local format=zip
    [[ $host == *windows* ]] || format=gztar
    python3 -c 'import shutil, sys; shutil.make_archive(*sys.argv[1:])' "$folder/$name" "$format" "$work" "$name"

    echo "== in a folder of its own"
    python3 -c 'import shutil, sys; shutil.unpack_archive(*sys.argv[1:])' "$folder/$name".[zt]* "$work/root"
    # (zip keeps no rights.)
    chmod +x "$work/root/$name/lanebloom$suffix"
    answer "$work/root/$name/lanebloom$suffix"
}

(($#)) || set -- linux windows
for system; do
    case $system in
        linux | windows | native) ;;
        *) echo "$system is none of linux, windows, native" >&2 && exit 2 ;;
    esac
    ($system)
done
if cargo cyclonedx --version >/dev/null 2>&1; then
    # It writes a file into the folder of each package of the workspace.
    for package in "${packages[@]}"; do
        cargo cyclonedx --quiet --format json --override-filename sbom-of-a-release --manifest-path "$package/Cargo.toml"
        mv "$package/sbom-of-a-release.json" "$folder/lanebloom-${package##*/}-$version.cdx.json"
    done
    find . -name sbom-of-a-release.json -not -path './target/*' -delete
fi
(cd "$folder" && python3 -c 'import hashlib, pathlib
for path in sorted(pathlib.Path().iterdir()):
    print(hashlib.sha256(path.read_bytes()).hexdigest(), path, sep="  ")')
