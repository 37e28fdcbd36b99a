#!/usr/bin/env bash
# Fetches CPython 3.14 for another processor from Debian's unstable release, with its own C library,
# for qemu. Prints its folder, the root of qemu's `-L`. 20 seconds the first time, nothing
# afterwards.
#
#   ci/fetch/python_of.sh aarch64
set -euo pipefail
case $1 in
    aarch64) architecture=arm64 ;;
    *) echo "$1 is not aarch64" >&2 && exit 2 ;;
esac
folder=${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/python3.14-$1
"$(dirname "${BASH_SOURCE[0]}")/from_debian.sh" "$folder" \
    {python3.14,python3.14-minimal,libpython3.14-minimal,libpython3.14-stdlib,libc6,libgcc-s1,libstdc++6,libexpat1,zlib1g,libssl3t64,libffi8,libbz2-1.0,liblzma5,libsqlite3-0,libuuid1,libzstd1}:$architecture
# Debian's /lib is a link to /usr/lib.
[[ -e $folder/lib ]] || ln -s usr/lib "$folder/lib"
echo "$folder"
