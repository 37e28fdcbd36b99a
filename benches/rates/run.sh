#!/usr/bin/env bash
# Prints the tables of PyPI and npm of docs/PEERS.md, measured anew. The page's rows name the
# packages and their versions, which are installed in a temporary folder. Fails if the measured rows
# are not those of the page. About 10 minutes. Needs Python 3.10 with pip and venv, node with npm,
# and a C compiler.
#
#   benches/rates/run.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
here=$PWD/benches/rates page=$PWD/docs/PEERS.md
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The packages of a section: `name version`.
packages() {
    sed -n "/^## $1\$/,/^## /s/^| \([^ |]*[a-z0-9] [0-9][^ |]*\) | \`.*/\1/p" "$page" | sort -u
}

# The beginnings of a table's rows, which name what was measured.
rows() {
    sed -n 's/^\(| [^ |]* [0-9][^|]*| `[^|]*|\).*/\1/p' | sort
}

compare() {
    echo
    cat "$folder/$1"
    diff <(sed -n "/^## $1\$/,/^## /p" "$page" | rows) <(rows <"$folder/$1") \
        || { echo "docs/PEERS.md has other rows of $1" >&2; exit 1; }
}

python3 -m venv "$folder/venv"
packages PyPI | sed 's/ /==/' >"$folder/requirements"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check --requirement "$folder/requirements"
"$folder/venv/bin/python" "$here/measure.py" >"$folder/PyPI"
compare PyPI

cd "$folder"
packages npm | sed 's/ /@/' | xargs npm install --silent --no-audit --no-fund
node "$here/measure.js" >"$folder/npm"
compare npm
