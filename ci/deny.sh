#!/usr/bin/env bash
# Advisories, licenses and sources of all dependencies (deny.toml).
# `cargo install cargo-deny` first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo deny --all-features check
