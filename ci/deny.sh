#!/usr/bin/env bash
# Advisories, licenses and sources of the dependencies of all that is published (deny.toml).
# `cargo install cargo-deny` first. Without the database of advisories:
# ci/deny.sh licenses bans sources
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for workspace in . integrations/corpus integrations/datafusion integrations/python; do
    echo "== $workspace"
    cargo deny --all-features --config deny.toml --manifest-path "$workspace/Cargo.toml" check "$@"
done
