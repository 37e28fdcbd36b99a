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
    for workspace in . integrations/corpus; do
        missing=0 excluded=()
        packages=$(cargo metadata --no-deps --format-version 1 --manifest-path $workspace/Cargo.toml |
            python3 -c 'import json, sys; print(*(p["name"] + "@" + p["version"] for p in json.load(sys.stdin)["packages"] if p["publish"] != []))')
        for package in $packages; do
            if cargo info --registry crates-io "$package" >/dev/null 2>&1; then
                excluded+=(--exclude "${package%@*}")
            else
                missing=1
            fi
        done
        ((missing == 0)) || cargo publish --workspace --locked --manifest-path $workspace/Cargo.toml "${excluded[@]}"
    done
    exit
fi

# Given a folder, cargo builds all archives in it. Otherwise each gets a folder of its own.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
cargo publish --workspace --dry-run --locked "$@"

# The registry may lack what the command for texts depends on: this tree stands in for it.
patches=()
for crate in "" -files -formats -redis; do
    folder=${crate:+crates/${crate#-}}
    patches+=(--config "patch.crates-io.lanebloom$crate.path=\"${folder:-.}\"")
done
cargo publish --manifest-path integrations/corpus/Cargo.toml --dry-run --locked "${patches[@]}" "$@"

for workspace in . integrations/corpus; do
    cargo metadata --no-deps --format-version 1 --manifest-path $workspace/Cargo.toml |
        python3 ci/archives.py "$CARGO_TARGET_DIR/package/tmp-crate"
done
