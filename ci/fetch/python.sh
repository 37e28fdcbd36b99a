#!/usr/bin/env bash
# Fetches CPython 3.14, which Debian 12 lacks, from Debian's unstable release, with its own C
# library (from_debian.sh). Prints the interpreter. 15 seconds the first time, nothing afterwards.
# x86-64.
#
#   ci/fetch/python.sh            keeps it in ~/.cache/lanebloom/python3.14
#   ci/fetch/python.sh FOLDER     keeps it there
set -euo pipefail

folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/python3.14}
"$(dirname "${BASH_SOURCE[0]}")/from_debian.sh" "$folder" \
    python3.14 python3.14-minimal libpython3.14-minimal libpython3.14-stdlib \
    libc6 libgcc-s1 libstdc++6 libexpat1 zlib1g libssl3t64 libffi8 libbz2-1.0 liblzma5 libsqlite3-0 libuuid1 libzstd1
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
