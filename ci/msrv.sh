#!/usr/bin/env bash
# The oldest supported compiler, Rust 1.85, and its cargo: everything but lanebloom-redis compiles,
# and the tests of lanebloom that do not take long pass. (Those of lanebloom-guard need the crate
# redis, which needs Rust 1.88.) Needs what ci/install.sh installs; fetches the compiler.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
source ci/fetch/use_compiler.sh
use_compiler "$version"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/msrv LANEBLOOM_GUAVA=none LANEBLOOM_SPARK=none
# The same for all, so that build scripts and macros are compiled once.
export RUSTFLAGS="-D warnings"
cargo() { "$toolchain/usr/bin/cargo" "$1" --locked "${@:2}"; }

# The crates with this minimum.
crates=()
for manifest in Cargo.toml crates/*/Cargo.toml; do
    grep -q '^rust-version.workspace = true' "$manifest" || continue
    crates+=(-p "$(sed -n 's/^name = "\(.*\)"/\1/p' "$manifest" | head -1)")
done

echo "== ${crates[*]}"
features=(--features={lanebloom/{rayon,mmap,serde,uuid,bytes},lanebloom-formats/serde,lanebloom-guard/{formats,tower}})
cargo check "${crates[@]}" "${features[@]}"
cargo check --manifest-path integrations/corpus/Cargo.toml
echo "== without std"
cargo check -p lanebloom -p lanebloom-formats --lib --no-default-features

echo "== tests"
# The kernels against each other, and which instruction sets there are.
cargo test -p lanebloom --lib
