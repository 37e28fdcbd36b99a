#!/usr/bin/env bash
# What `cargo publish` would upload. Makes the archives of all packages in the order of publishing,
# builds each from its archive alone (the archives before it stand in for the registry), and looks
# at what is in them. Publishes nothing. Needs the registry's index, and a tree without changes.
#
#   ci/publish.sh
#   ci/publish.sh --allow-dirty --no-verify     any option of cargo publish: here without building
#   ci/publish.sh --upload                      uploads them: for the workflow of a release. Those
#                                               that are there already are left out
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ${1-} == --upload ]]; then
    excluded=()
    for package in $(cargo metadata --no-deps --format-version 1 |
        python3 -c 'import json, sys; print(*(f"{p["name"]}@{p["version"]}" for p in json.load(sys.stdin)["packages"] if p["publish"] != []))'); do
        ! cargo info --registry crates-io "$package" >/dev/null 2>&1 || excluded+=(--exclude "${package%@*}")
    done
    exec cargo publish --workspace --locked "${excluded[@]}"
fi

# Given a folder, cargo builds all archives in it. Otherwise each gets a folder of its own.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
cargo publish --workspace --dry-run --locked "$@"
cargo metadata --no-deps --format-version 1 | python3 ci/archives.py "$CARGO_TARGET_DIR/package/tmp-crate"
