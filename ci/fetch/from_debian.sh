#!/usr/bin/env bash
# Fetches packages of Debian's unstable release, unless their folder is there. Unpacks them into it;
# installs nothing. Needs apt and a mirror of Debian in its sources.
#
#   ci/fetch/from_debian.sh FOLDER PACKAGE...
set -euo pipefail
folder=$1
[[ ! -e $folder ]] || exit 0

mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Label: Debian' | sed -n 1p)
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/lists" "$work/unpacked"
echo "deb ${mirror:?apt has no mirror of Debian} sid main" >"$work/sources.list"
apt=(apt-get -qq -o APT::Sandbox::User=root -o Acquire::Languages=none -o Dir::State::Lists="$work/lists"
    -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::Cache="$work"
    -o APT::Architectures::=amd64 -o APT::Architectures::=arm64)
"${apt[@]}" update >&2
(cd "$work" && "${apt[@]}" download "${@:2}" >&2)
for package in "$work"/*.deb; do
    dpkg-deb -x "$package" "$work/unpacked"
done
mv "$work/unpacked" "$folder"
