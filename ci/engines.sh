#!/usr/bin/env bash
# SplitBlockBloom beside the engines that write and read its filters: parquet-rs, those of PyPI and
# npm in docs/PARQUET.md, and Milvus' Python client. It measures each cell of that page, and fails
# with the cells that say something else. A person runs it, for it downloads 1 GB into
# target/engines the first time. Needs python3 with pip and venv, npm, and a JDK 17. A quarter of an
# hour.
#
#   ci/engines.sh [all]     matrix: only the page
#   PYTHON=FOLDER/bin/python PACKAGES=FOLDER ci/engines.sh     a Python and a folder with
#                                                              node_modules that have the packages
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
package=integrations/parquet
target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target/engines
part=${1:-all}
[[ $part == all || $part == matrix ]] || { echo "$part: all or matrix" >&2; exit 2; }
for program in java node npm; do
    command -v $program > /dev/null || { echo "$program is missing" >&2; exit 1; }
done

if [[ $part == all ]]; then
    echo "== formatting and lints"
    rustfmt --edition 2024 --check $package/{build.rs,{src,tests,examples}/*.rs}
    cargo clippy --locked --profile test --manifest-path $package/Cargo.toml --all-targets -- -D warnings

    echo "== parquet-rs"
    cargo test --locked --manifest-path $package/Cargo.toml
fi
cargo build --locked --profile test --manifest-path $package/Cargo.toml --examples

python=${PYTHON:-}
if [[ -z $python ]]; then
    echo "== packages from PyPI"
    python=$target/engines/venv/bin/python
    [[ -e $python ]] || python3 -m venv "$target/engines/venv"
    pip=("$python" -m pip install --quiet --disable-pip-version-check)
    "${pip[@]}" --only-binary=:all: duckdb==2.0.1 pyarrow==26.0.1 pymilvus==3.0.2 \
        chdb==4.4.0 datafusion==55.0.0 deltalake==1.6.6 polars==2.1.0 fastparquet==2026.9.0 pylance==14.0.2
    "${pip[@]}" pyspark==4.3.0
fi
packages=${PACKAGES:-}
if [[ -z $packages ]]; then
    echo "== packages from npm"
    packages=$target/engines/npm
    mkdir -p "$packages"
    npm install --silent --no-fund --no-audit --prefix "$packages" \
        hyparquet@1.33.0 hyparquet-writer@0.17.0 @dsnp/parquetjs@1.8.8
fi
examples=$CARGO_TARGET_DIR/debug/examples
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if [[ $part == all ]]; then
    echo "== the measurement, once"
    "$examples/figures" 32 1

    echo "== golden filters"
    "$python" $package/golden.py | diff - crates/formats/tests/data/split_block.json

    "$python" $package/engines.py "$examples/engines" "$folder"

    echo "== files pruned by filters"
    "$examples/parquet_prune"
fi

echo "== the tables of docs/PARQUET.md"
"$python" $package/matrix.py "$examples/engines" "$packages" "$folder" docs/PARQUET.md
