#!/usr/bin/env bash
# Fetches the Python packages that crates/redis/tests/servers/redis_peers.rs compares with:
# scrapy-redis-bloomfilter, without Scrapy, and a client of Redis. From PyPI, with the digests
# below. 5 seconds the first time, nothing afterwards. Needs python3 with pip.
#
#   ci/fetch/python_peers.sh                                   puts them where the test looks for them, ~/.cache/lanebloom/python
#   LANEBLOOM_PYTHON_PEERS=FOLDER ci/fetch/python_peers.sh     puts them elsewhere; the test looks there by the same variable
set -euo pipefail

folder=${LANEBLOOM_PYTHON_PEERS:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/python}
if [[ -e $folder ]]; then
    echo "the Python packages are there"
    exit
fi

echo "fetching Python packages into $folder"
mkdir -p "$(dirname "$folder")"
work=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/requirements" <<END
redis==8.1.0 --hash=sha256:a4fe1aac3d3b3cc791d4b3d5931c5a956045dc951ee74d1c913ee3ac4d2ee9fb
scrapy-redis-bloomfilter==0.8.1 --hash=sha256:8da71c092081f91f2091f93e0f240bef1869be69293138a643d1eb69fa55383f
END
python3 -m pip install --quiet --no-deps --only-binary=:all: --require-hashes --disable-pip-version-check --root-user-action ignore \
    --target "$work/packages" --requirement "$work/requirements"
mv "$work/packages" "$folder"
