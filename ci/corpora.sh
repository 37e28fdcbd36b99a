#!/bin/bash
# lanebloom-corpus beside dolma 1.2.1, on text of packages that lie on this machine: the same
# decisions but for rates, and the figures of benches/record/corpora-*.md. Not a part of CI.
#
#     ci/corpora.sh [--bytes 400e6] [--runs 3] [--huge 1e9] [--peers PEERS] [FOLDERS with text]
#
# Needs GNU time, Python 3.11 (PYTHON names it), for which dolma has a wheel, and a folder in memory
# for 4 GB. PEERS is a Python with datatrove and text-dedup: see benches/record/corpora-zen4.md.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3.11}
target=${CARGO_TARGET_DIR:-target}
cargo build --release --manifest-path integrations/corpus/Cargo.toml --target-dir "$target"
dolma=$target/peers/dolma
if [ ! -d "$dolma" ]; then
    mkdir -p "$dolma"
    # Without what it needs to run as a program: its extension module is called alone.
    "$python" -m pip download -q --no-deps --only-binary=:all: -d "$dolma" dolma==1.2.1
    "$python" -m zipfile -e "$dolma"/dolma-1.2.1-*.whl "$dolma"
fi
exec "$python" ci/corpora.py --lanebloom "$target/release/lanebloom-corpus" \
    --dolma "$(ls "$dolma"/dolma/dolma.*.so)" --cache "$target/corpus" "$@"
