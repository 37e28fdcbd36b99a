#!/usr/bin/env bash
# The core's tests that are slow without the optimizer: millions of keys, many threads; and the
# optimized kernels at the edges of memory. (ci/test.sh runs them at a small size.)
#
#   ci/release.sh          what every change passes
#   ci/release.sh full     before a release: false-positive rates at full size, the command, and
#                          what has a size beside Redis, some minutes more. Needs what
#                          ci/install.sh installs.
#   ci/release.sh build    only compiles what every change passes, and prints the programs' names
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The profile of the tests, but these packages are compiled as for users. So what they depend on is
# there after ci/test.sh.
run=(cargo test --no-fail-fast --all-features)
for package in lanebloom lanebloom-{tests,formats,guard,redis}; do
    for setting in opt-level=3 codegen-units=16 debug-assertions=false overflow-checks=false; do
        run+=(--config "profile.test.package.$package.$setting")
    done
done
core=(-p lanebloom-tests --test={filters,stress,memory_edges})
case ${1-} in
    '') "${run[@]}" "${core[@]}" ;;
    build)
        "${run[@]}" "${core[@]}" --no-run --message-format=json-render-diagnostics |
            sed -n 's/.*"executable":"\([^"]*\)".*/\1/p'
        ;;
    full)
        "${run[@]}" "${core[@]}" -- --include-ignored
        LANEBLOOM_DEDUP_LINES=10000000 "${run[@]}" -p lanebloom-cli --test=dedup
        export LANEBLOOM_REQUIRE_JVM=1 LANEBLOOM_REQUIRE_REDIS=1
        "${run[@]}" -p lanebloom-guard --test={stress,threads} -- --include-ignored
        "${run[@]}" -p lanebloom-redis --test=servers -- redisbloom_module:: scrapys_hash_is_bad
        ;;
    *) echo "$1 is neither build nor full" >&2 && exit 2 ;;
esac
