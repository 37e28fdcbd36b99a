#!/usr/bin/env bash
# Fetches the headers of SeqAn 3.4, with whose interleaved Bloom filter the bench `bank` compares,
# from Debian's unstable release (from_debian.sh). Prints the folder for SEQAN_ROOT. 10 seconds the
# first time, nothing afterwards.
#
#   SEQAN_ROOT=$(ci/fetch/seqan.sh) cargo bench --bench bank   keeps it in ~/.cache/lanebloom/seqan3.4
#   SEQAN_ROOT=$(ci/fetch/seqan.sh FOLDER) cargo bench --bench bank     keeps it there
set -euo pipefail

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/seqan3.4}
"$(dirname "${BASH_SOURCE[0]}")/from_debian.sh" "$folder" libseqan3-dev
realpath "$folder/usr"
