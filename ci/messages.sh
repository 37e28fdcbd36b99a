#!/usr/bin/env bash
# What the compiler says about frequent mistakes: compiles ci/messages.rs, and fails unless it
# prints the lines that the program expects, or names a private module. Runs no test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD target=${CARGO_TARGET_DIR:-$PWD/target}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/Cargo.toml" <<END
[package]
name = "messages"
edition = "2024"
[[bin]]
name = "messages"
path = "$root/ci/messages.rs"
[dependencies]
lanebloom = { path = "$root" }
lanebloom-guard = { path = "$root/crates/guard" }
[workspace]
END
cp Cargo.lock "$work"
cargo update --workspace --offline --quiet --manifest-path "$work/Cargo.toml"
check=(cargo check --offline --quiet --color never --manifest-path "$work/Cargo.toml" --target-dir "$target/messages")
if "${check[@]}" 2>"$work/output"; then
    echo "ci/messages.rs compiles" && exit 1
fi
expected=0
while read -r line; do
    grep -qF -- "$line" "$work/output" || { cat "$work/output" && echo "the compiler does not say: $line" && exit 1; }
    ((++expected))
done < <(sed -n 's|^//~ ||p' ci/messages.rs)
if grep -E 'lanebloom::(filter|internal)::' "$work/output"; then
    echo "these names are private" && exit 1
fi
((expected > 0)) && echo "the compiler prints all $expected lines"
