#!/usr/bin/env bash
# All tests that have to do with time, on a machine that seems to have booted 5 seconds ago, and on
# one that has run for 400 days. Both are namespaces of time, for which Linux wants root; elsewhere
# this says that it was skipped. It runs the programs of ci/test.sh, and builds those that are
# not there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! unshare -T --fork true 2>/dev/null; then
    echo "skipped: this user, or this system, has no namespaces of time (unshare -T)"
    exit
fi

# The programs of these targets, by the source files of the targets.
programs=$(cargo test --workspace --all-features --no-run --lib --test={filters,bytes,servers} --message-format=json-render-diagnostics)
program_of() {
    sed -n "s|.*\"src_path\":\"$PWD/$1\".*\"executable\":\"\([^\"]*\)\".*|\1|p" <<<"$programs"
}
units=$(program_of src/lib.rs)
filters=$(program_of tests/filters/main.rs)
bytes=$(program_of tests/bytes/main.rs)
servers=$(program_of crates/redis/tests/servers/main.rs)

# Runs the tests this many seconds after the boot.
tests_at() {
    local offset=$(($1 - $(cut -d. -f1 /proc/uptime)))
    local at=(unshare -T --monotonic "$offset" --boottime "$offset" --fork)
    echo "== booted $1 seconds ago"
    "${at[@]}" cut -d ' ' -f 1 /proc/uptime
    "${at[@]}" "$units"
    "${at[@]}" "$filters" windowed
    "${at[@]}" "$bytes" forgetting::
    LANEBLOOM_REQUIRE_REDIS=1 "${at[@]}" "$servers" redis_shared::
}

tests_at 5
tests_at $((400 * 24 * 60 * 60))
