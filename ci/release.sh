#!/usr/bin/env bash
# The tests that are slow without the optimizer, of the core and of the command: millions of keys,
# many threads, ten million lines; and the optimized kernels at the edges of memory. (ci/test.sh
# runs them at a small size.)
#
#   ci/release.sh          what every change passes
#   ci/release.sh full     before a release: false-positive rates at full size, and what has a size
#                          beside Redis, some minutes more. Needs what ci/install.sh installs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

optimized=(--no-fail-fast --all-features --profile ci)
core=(-p lanebloom -p lanebloom-tests -p lanebloom-cli --test={sizes,stress,edges,dedup})
case ${1-} in
    '') cargo test "${optimized[@]}" "${core[@]}" ;;
    full)
        cargo test "${optimized[@]}" "${core[@]}" -- --include-ignored
        export LANEBLOOM_REQUIRE_JVM=1 LANEBLOOM_REQUIRE_REDIS=1
        cargo test "${optimized[@]}" -p lanebloom-guard --test={stress,threads} -- --include-ignored
        cargo test "${optimized[@]}" -p lanebloom-redis --test=servers -- redisbloom_module:: scrapys_hash_is_bad
        ;;
    *) echo "$1 is not full" >&2 && exit 2 ;;
esac
