#!/usr/bin/env bash
# Fails if a public API breaks without a number that allows it: cargo-semver-checks compares each
# crate with the last release, which is the newest tag of a version that HEAD contains.
# `cargo install cargo-semver-checks` first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! last=$(git describe --tags --abbrev=0 --match 'v[0-9]*' 2> /dev/null); then
    echo "semver: there is no release to compare with"
    exit
fi
cargo semver-checks --workspace --all-features --baseline-rev "$last"
cargo semver-checks --manifest-path integrations/corpus/Cargo.toml --all-features --baseline-rev "$last"
