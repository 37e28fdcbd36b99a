#!/usr/bin/env bash
# Builds CPython 3.13 without the interpreter's lock from the source of Debian's stable release. No
# package has it. Prints the interpreter. 23 MB and 4.5 CPU minutes the first time, nothing
# afterwards. Needs apt and a mirror of Debian in its sources, a C compiler, make, and the headers
# of zlib, OpenSSL and libffi (zlib1g-dev libssl-dev libffi-dev), which pip and the tests take.
#
#   ci/fetch/python_free_threaded.sh            keeps it in ~/.cache/lanebloom/python3.13t
#   ci/fetch/python_free_threaded.sh FOLDER     keeps it there
set -euo pipefail

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/python3.13t}
if [[ ! -e $folder ]]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' | sed -n 1p)
    mkdir -p "$(dirname "$folder")"
    folder=$(realpath "$folder")
    work=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$work" "$folder.part"' EXIT
    mkdir "$work/lists"
    echo "deb-src ${mirror:?apt has no mirror of Debian} trixie main" >"$work/sources.list"
    apt=(apt-get -qq -o APT::Sandbox::User=root -o Acquire::Languages=none -o Dir::State::Lists="$work/lists"
        -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Cache="$work")
    "${apt[@]}" update >&2
    (cd "$work" && "${apt[@]}" source --download-only python3.13 >&2)
    mkdir "$work/source"
    tar xf "$work"/*.orig.tar.xz -C "$work/source" --strip-components=1
    # Installed beside its place and moved there: the folder is whole or missing. The interpreter
    # finds its library by its own path.
    (
        cd "$work/source"
        ./configure --quiet --disable-gil --disable-test-modules --prefix="$folder"
        make -s -j"$(nproc)"
        make -s install DESTDIR="$folder.part"
    ) >"$work/log" 2>&1 || { tail -n 30 "$work/log" >&2 && exit 1; }
    mv "$folder.part$folder" "$folder"
fi
python=$(realpath "$folder")/bin/python3.13t
"$python" -c 'import ctypes, ssl, sys, sysconfig, zlib; assert sysconfig.get_config_var("Py_GIL_DISABLED")'
echo "$python"
