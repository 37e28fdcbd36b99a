#!/usr/bin/env bash
# The example replicas with servers of its own: PostgreSQL (Debian's package postgresql), and Redis
# where there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo test -p lanebloom-examples --all-features --test programs -- --ignored --exact replicas_on_servers
