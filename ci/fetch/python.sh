#!/usr/bin/env bash
# Fetches CPython 3.14, which Debian 12 lacks, from Debian's unstable release, with its own C
# library. Downloads packages and unpacks them; installs nothing. Prints the interpreter. 15 seconds
# the first time, nothing afterwards. Needs apt and a mirror of Debian in its sources, x86-64.
#
#   ci/fetch/python.sh            keeps it in ~/.cache/lanebloom/python3.14
#   ci/fetch/python.sh FOLDER     keeps it there
set -euo pipefail

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/python3.14}
if [[ ! -e $folder ]]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' | sed -n 1p)
    mkdir -p "$(dirname "$folder")"
    work=$(mktemp -d "$folder.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/lists" "$work/unpacked"
    echo "deb ${mirror:?apt has no mirror of Debian} sid main" >"$work/sources.list"
    apt=(apt-get -qq -o APT::Sandbox::User=root -o Acquire::Languages=none -o Dir::State::Lists="$work/lists"
        -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Cache="$work")
    "${apt[@]}" update >&2
    (cd "$work" && "${apt[@]}" download python3.14 python3.14-minimal libpython3.14-minimal libpython3.14-stdlib \
        libc6 libgcc-s1 libstdc++6 libexpat1 zlib1g libssl3t64 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libzstd1 >&2)
    for package in "$work"/*.deb; do
        dpkg-deb -x "$package" "$work/unpacked"
    done
    mv "$work/unpacked" "$folder"
fi
folder=$(realpath "$folder")

# By its own loader, since the machine's C library is older. The script stands for the interpreter,
# in virtual environments too.
python=$folder/usr/bin/python3.14
if [[ ! -e $python.real ]]; then
    mv "$python" "$python.real"
    libraries=$folder/usr/lib/x86_64-linux-gnu
    cat >"$python" <<END
#!/bin/sh
exec $libraries/ld-linux-x86-64.so.2 --argv0 "\$0" --library-path $libraries $python.real "\$@"
END
    chmod +x "$python"
fi
echo "$python"
