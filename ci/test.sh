#!/usr/bin/env bash
# The tests with assertions and checks of overflow: units, programs, and the examples of the
# documentation, with every feature; then one quick pass through the benches, so that they do not
# rot. Needs what ci/install.sh installs; without it, run `cargo test --workspace`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# CI has Guava, Redis and the Python packages, so their absence is a failure.
export LANEBLOOM_REQUIRE_{JVM,REDIS,SCRAPY}=1

# More than the million that some tests announce. (ci/release.sh full: ten million.)
export LANEBLOOM_DEDUP_LINES=3000000

all=(--workspace --all-features --no-fail-fast)
cargo test "${all[@]}"

valkey=${LANEBLOOM_VALKEY_SERVER:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom/valkey-server}
if [[ -e $valkey ]]; then
    echo "== the tests of Redis, on Valkey"
    LANEBLOOM_REDIS_SERVER=$valkey cargo test "${all[@]}" --test=servers -- redis_{bitmaps,cluster,pairs,shared}:: redisson::
    LANEBLOOM_REDIS_SERVER=$valkey cargo test -p lanebloom-guard --all-features --test=shared
fi

echo "== benches, without measuring"
benches=(bank bitmap filter hashes peers deletable bulk guava spark snapshot static threads windowed redis_bitmaps redis)
cargo test "${all[@]}" "${benches[@]/#/--bench=}" -- --test
cargo test "${all[@]}" --bench=gets
