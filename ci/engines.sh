#!/usr/bin/env bash
# SplitBlockBloom beside the engines that write and read its filters: parquet-rs, and from PyPI
# DuckDB, pyarrow and Milvus' Python client. A person runs it, for it downloads 250 MB into
# target/engines the first time. Needs python3 with pip and venv. A few minutes.
#
#   ci/engines.sh
#   PYTHON=FOLDER/bin/python ci/engines.sh     a Python that has these packages
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
package=crates/parquet
target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target/engines

echo "== formatting and lints"
rustfmt --edition 2024 --check $package/{build.rs,{src,tests,examples}/*.rs}
cargo clippy --locked --profile test --manifest-path $package/Cargo.toml --all-targets -- -D warnings

echo "== parquet-rs"
cargo test --locked --manifest-path $package/Cargo.toml
cargo build --locked --profile test --manifest-path $package/Cargo.toml --examples

python=${PYTHON:-}
if [[ -z $python ]]; then
    echo "== packages from PyPI"
    python=$target/engines/venv/bin/python
    [[ -e $python ]] || python3 -m venv "$target/engines/venv"
    "$python" -m pip install --quiet --only-binary=:all: --disable-pip-version-check duckdb==2.0.1 pyarrow==26.0.1 pymilvus==3.0.2
fi

echo "== the measurement, once"
"$CARGO_TARGET_DIR/debug/examples/figures" 32 1

echo "== golden filters"
"$python" $package/golden.py | diff - crates/formats/tests/data/split_block.json

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" $package/engines.py "$CARGO_TARGET_DIR/debug/examples/engines" "$folder"

echo "== files pruned by filters"
"$CARGO_TARGET_DIR/debug/examples/parquet_prune"
