#!/usr/bin/env bash
# Fetches the headers of Boost 1.90, with which the bench `peers` compares, from Debian's unstable
# release. Downloads a package and unpacks it; installs nothing. Prints the folder for BOOST_ROOT.
# 10 seconds the first time, nothing afterwards. Needs apt and a mirror of Debian in its sources.
#
#   BOOST_ROOT=$(ci/fetch/boost.sh) cargo bench --bench peers      keeps it in ~/.cache/lanebloom/boost
#   BOOST_ROOT=$(ci/fetch/boost.sh FOLDER) cargo bench --bench peers    keeps it there
set -euo pipefail

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/boost}
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
    (cd "$work" && "${apt[@]}" download libboost1.90-dev >&2)
    dpkg-deb -x "$work"/libboost1.90-dev_*.deb "$work/unpacked"
    mv "$work/unpacked/usr" "$folder"
fi
realpath "$folder"
