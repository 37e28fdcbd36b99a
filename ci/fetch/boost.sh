#!/usr/bin/env bash
# Fetches the headers of Boost 1.90, with which the bench `peers` compares, from Debian's unstable
# release (from_debian.sh). Prints the folder for BOOST_ROOT. 10 seconds the first time, nothing
# afterwards.
#
#   BOOST_ROOT=$(ci/fetch/boost.sh) cargo bench --bench peers      keeps it in ~/.cache/lanebloom/boost1.90
#   BOOST_ROOT=$(ci/fetch/boost.sh FOLDER) cargo bench --bench peers    keeps it there
set -euo pipefail

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/boost1.90}
"$(dirname "${BASH_SOURCE[0]}")/from_debian.sh" "$folder" libboost1.90-dev
realpath "$folder/usr"
