#!/usr/bin/env bash
# The calls, programs and test vectors of docs/LANGUAGES.md, read from the page and compared with
# the crate: a wrong row fails. Installs packages of PyPI, npm and crates.io, in the versions that
# the page names, below target/languages. Needs ci/install.sh languages. Two minutes the first time.
#
#   ci/languages.sh
#   ci/languages.sh Python Java        the rows and programs of these languages only
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/languages
folder=$CARGO_TARGET_DIR
mkdir -p "$folder"

python=$folder/venv/bin/python
[[ -x $python ]] || python3 -m venv "$folder/venv"
mapfile -t packages < <(python3 ci/languages.py packages PyPI)
"$python" -m pip install --quiet --only-binary=:all: --disable-pip-version-check "${packages[@]}"

mapfile -t packages < <(python3 ci/languages.py packages npm)
npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$folder" "${packages[@]}"
# This package is C++. Without the two variables it looks for a compiled one elsewhere, and for
# Node's headers.
if [[ ! -e $folder/node_modules/murmurhash-native/lib/Release/murmurhash.node ]]; then
    npm_config_build_from_source=true npm_config_nodedir=${NODE_PREFIX:-/usr} npm rebuild --silent \
        --prefix "$folder" murmurhash-native >/dev/null
fi

"$python" ci/languages.py check "$folder" "$@"
