#!/usr/bin/env bash
# Formatting, lints, documentation, and the proof that the crate works without std. Runs no test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}

echo "== lock file"
cargo metadata --locked --format-version 1 >/dev/null

echo "== formatting"
cargo fmt --all --check
rustfmt --edition 2024 --check fuzz/fuzz_targets/*.rs
rustfmt --edition 2024 --check ci/messages.rs ci/no_std.rs loom-tests/src/lib.rs loom-tests/build.rs

echo "== comments of at most 100 columns, files of at most 900 lines"
ci/widths.sh

echo "== comments and headings begin with their subject"
ci/openings.sh

echo "== a row in docs/UNSAFE.md for each file with unsafe code"
grep -rlE '^[^/]*\bunsafe (\{|fn|impl|trait)' src {crates,integrations}/*/src | while read -r file; do
    grep -qF "| \`$file\` |" docs/UNSAFE.md || { echo "$file has none" && exit 1; }
done

echo "== imports without circles, and the rooms of docs/MAP.md"
ci/imports.py --rooms

echo "== the plan of a batch is asked at the door"
# src/kernel/plan.rs decides by the length of a batch and the size of a filter, for the crates with
# filters of other systems too. What is left of lengths: whole groups of vectors, the space for keys
# of 16 bytes and for a chunk of a growing filter. Below the methods of filters and their traits, a
# plan is asked for: chunks, since the last one may be short (2), and those of two lines (3);
# lookups before inserts; how keys are hashed; the space of a growing filter.
few() {
    found=$(grep -rnE "$2" "${@:3}" --include=*.rs | grep -vE "plan\.rs|tests\.rs|: *//|GROUP" || true)
    test "$(grep -c . <<<"$found")" -le "$1" || { echo "$found" && exit 1; }
}
few 2 '(hashes|keys|source)\.len\(\) (<|>)=? ' src crates/{formats,redis,guard}/src
few 0 '\bis_cached\(' src crates/{formats,redis,guard}/src
few 7 '(Plan::of_\w+|ladder\.plan)\(.*len' src/{chunks.rs,sorted_insert.rs,kernel,filter/types,filter/parts,bank,bitmap}

echo "== integrations use what is public"
# 2: the Python package finds the filters of a Parquet file by the parser of lanebloom-formats.
few 2 '\binternal::' $(git ls-files 'integrations/*.rs')

echo "== pages without methods that their types lack"
ci/pages.sh

echo "== packages"
# Their archives, without building them: ci/publish.sh alone builds them too.
ci/publish.sh --allow-dirty --no-verify

echo "== lints"
# In the profile of the tests: what build scripts make is there after ci/test.sh.
lint() { cargo clippy --profile test "$@" -- -D warnings; }
# Everything with every feature; then each feature alone. (The workspace once more with its default
# features would check every dependency again, which took a third of this script's time.)
lint --workspace --all-targets --all-features
lint -p lanebloom-tests --tests
lint -p lanebloom-formats --lib --no-default-features
lint -p lanebloom-redis --lib
for features in "" cache tower formats redis; do
    lint -p lanebloom-guard --lib --no-default-features --features "$features"
done
for features in "" std serde mmap; do
    lint -p lanebloom --lib --no-default-features --features "$features"
done

echo "== messages of the compiler"
ci/messages.sh

echo "== documentation"
# The published pages: a link to a private item is an error.
RUSTDOCFLAGS="-D warnings" cargo doc --profile test -p lanebloom -p lanebloom-formats -p lanebloom-redis -p lanebloom-guard --no-deps --all-features
# rustdoc says nothing of a link that has no target on the page of another crate's type.
if grep -rl 'href="Self::' "$target"/doc/lanebloom*; then exit 1; fi

echo "== without std"
# Types only, no code: this finds every use of std.
cargo check -p lanebloom -p lanebloom-formats --lib --no-default-features --target-dir "$target/no-std"
"${RUSTC:-rustc}" --edition 2024 --crate-type staticlib --emit metadata -C panic=abort -D warnings ci/no_std.rs \
    --extern lanebloom="$(ls -t "$target"/no-std/debug/deps/liblanebloom-*.rmeta | head -1)" \
    --extern lanebloom_formats="$(ls -t "$target"/no-std/debug/deps/liblanebloom_formats-*.rmeta | head -1)" \
    -L dependency="$target/no-std/debug/deps" -o "$target/no-std/probe.rmeta"
echo "compiles without std"
