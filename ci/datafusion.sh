#!/usr/bin/env bash
# lanebloom-datafusion: lints, tests, and its two examples with little data, one of which kills
# executors. DataFusion and Ballista are 300 packages. A person runs it: 20 to 40 minutes the first
# time on two busy processors, 4 GB in target/datafusion, and then 2 minutes. 10,000 random joins
# took 34 minutes on a busy machine.
#
#   ci/datafusion.sh
#   LANEBLOOM_PLANS=10000 ci/datafusion.sh     random joins to compare; 400 unless set
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
package=integrations/datafusion
manifest=$package/Cargo.toml
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/datafusion

echo "== formatting and tests"
rustfmt --edition 2024 --check $package/{src,tests,examples}/*.rs
cargo test --locked --manifest-path $manifest

echo "== examples"
cargo run --locked --manifest-path $manifest --example figures -- --rows 100000 --keys 1000 --runs 1
cargo run --locked --manifest-path $manifest --example distributed_join -- --rows 200000 --partitions 4

echo "== lints"
cargo clippy --locked --manifest-path $manifest --all-targets -- -D warnings
