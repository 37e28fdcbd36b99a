#!/usr/bin/env bash
# What `cargo publish` would upload. Makes the archives of all packages in the order of publishing,
# builds each from its archive alone (the archives before it stand in for the registry), and looks
# at what is in them. Publishes nothing. Needs the registry's index, and a tree without changes.
#
#   ci/publish.sh
#   ci/publish.sh --allow-dirty --no-verify     any option of cargo publish: here without building
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Given a folder, cargo builds all archives in it. Otherwise each gets a folder of its own.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
cargo publish --workspace --dry-run --locked "$@"
cargo metadata --no-deps --format-version 1 | python3 ci/archives.py "$CARGO_TARGET_DIR/package/tmp-crate"
