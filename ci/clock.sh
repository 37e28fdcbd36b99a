#!/usr/bin/env bash
# All tests that have to do with time, on a machine that seems to have booted 5 seconds ago, and on
# one that has run for 400 days. Both are namespaces of time, for which Linux wants root; elsewhere
# this says that it was skipped. It runs the programs of ci/test.sh and ci/release.sh, and builds
# those that are not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! unshare -T --fork true 2>/dev/null; then
    echo "skipped: this user, or this system, has no namespaces of time (unshare -T)"
    exit
fi

# The program of a target of these arguments of cargo.
built() {
    cargo test --no-run --all-features --message-format=json-render-diagnostics "${@:2}" |
        sed -n "s/.*\"name\":\"$1\".*\"executable\":\"\([^\"]*\)\".*/\1/p"
}
units=$(built lanebloom -p lanebloom --profile checked --lib)
api=$(built api -p lanebloom --profile checked --test api)
formats=$(built formats -p lanebloom --profile checked --test formats)
servers=$(built servers --profile ci --test servers)

# Runs the tests this many seconds after the boot.
tests_at() {
    local offset=$(($1 - $(cut -d. -f1 /proc/uptime)))
    local at=(unshare -T --monotonic "$offset" --boottime "$offset" --fork)
    echo "== booted $1 seconds ago"
    "${at[@]}" cut -d ' ' -f 1 /proc/uptime
    "${at[@]}" "$units"
    "${at[@]}" "$api" windowed
    "${at[@]}" "$formats" forgetting::
    LANEBLOOM_REQUIRE_REDIS=1 "${at[@]}" "$servers" redis_shared::
}

tests_at 5
tests_at $((400 * 24 * 60 * 60))
