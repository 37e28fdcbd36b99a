#!/usr/bin/env bash
# The table of caches in crates/guard/README.md: runs each cache with a key that is changed while
# it is loaded, and fails unless the table says what the cache did. A person runs it, for it
# downloads packages of three languages. Needs Rust 1.91, node with npm, Python with venv.
#
#   ci/caches.sh
#
# For another version, change it here and, where the output says so, in the table.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
export MOKA=0.12.16 FOYER=0.22.6 QUICK=0.7.0
npm=(lru-cache@11.5.3 cacheable@2.5.0 cache-manager@7.2.9)
pypi=(cachetools==8.0.2 dogpile.cache==1.5.0 async-lru==2.4.0)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo "== crates"
rustfmt --edition 2024 --check ci/caches/rust.rs
mkdir "$folder/rust"
# The versions that the guard is tested with.
cp Cargo.lock "$folder/rust"
cat >"$folder/rust/Cargo.toml" <<TOML
[package]
name = "caches"
version = "0.0.0"
edition = "2024"

[workspace]

[[bin]]
name = "caches"
path = "$root/ci/caches/rust.rs"

[dependencies]
anyhow = "1"
foyer-memory = "=$FOYER"
lanebloom-guard = { path = "$root/crates/guard" }
moka = { version = "=$MOKA", features = ["future"] }
quick_cache = "=$QUICK"
tokio = { version = "1", features = ["macros", "rt"] }
TOML
run=(cargo run --quiet --manifest-path "$folder/rust/Cargo.toml" --target-dir "${CARGO_TARGET_DIR:-target}/caches")
"${run[@]}" | tee "$folder/rows"

echo "== npm"
mkdir "$folder/npm"
npm install --silent --no-audit --no-fund --prefix "$folder/npm" "${npm[@]}"
(cd "$folder/npm" && node "$root/ci/caches/npm.mjs") | tee -a "$folder/rows"

echo "== PyPI"
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "${pypi[@]}"
"$folder/venv/bin/python" ci/caches/pypi.py | tee -a "$folder/rows"

echo "== crates/guard/README.md"
sed -n '/^| cache, call |/,/^$/ { /^|/p }' crates/guard/README.md | tail -n +3 >"$folder/table"
if ! diff "$folder/table" "$folder/rows"; then
    echo "the table (<) is not what the caches did (>)" >&2
    exit 1
fi
