#!/usr/bin/env bash
# The release build: the tests that are slow otherwise (millions of keys), and one quick pass
# through the benches and the examples, so that they do not rot. Needs what ci/install.sh installs.
# Most of the time goes to the optimizer.
#
#   ci/release.sh          what every change passes
#   ci/release.sh full     before a release: false-positive rates at full size too, some minutes more
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LANEBLOOM_REQUIRE_JVM=1 LANEBLOOM_REQUIRE_REDIS=1

size=()
case ${1-} in
    '') ;;
    full) size=(--include-ignored) ;;
    *) echo "$1 is not full" >&2 && exit 2 ;;
esac

# One build for all, of the features of all members. (Of one member alone, or of a test alone, the
# dependencies have other features, and all is compiled again.)
optimized=(--workspace --all-features --profile ci)
tests=(--test={sizes,stress,threads})
benches=(--bench={bitmap,filter,hashes,peers,deletable,bulk,guava,snapshot,windowed,redis_bitmaps,redis})

echo "== building"
cargo build "${optimized[@]}" --bins "${benches[@]}" --bench=gets "${tests[@]}" --test={dedup,servers}

echo "== tests of what has a size; ci/test.sh has run the others, and these at a small one"
cargo test "${optimized[@]}" --no-fail-fast "${tests[@]}" -- "${size[@]}"

echo "== what has a size beside Redis"
cargo test "${optimized[@]}" --no-fail-fast --test=servers -- redisbloom_module:: scrapys_hash_is_bad

echo "== ten million lines through the command"
cargo test "${optimized[@]}" --no-fail-fast --test=dedup

echo "== benches, without measuring"
cargo bench "${optimized[@]}" "${benches[@]}" -- --test
cargo test "${optimized[@]}" --bench=gets

echo "== examples"
run() { "${CARGO_TARGET_DIR:-target}/ci/$1" "${@:2}"; }
run cache_guard --rows 20000 --seconds 1
run scoped_threads --keys 1000000
run crawler_dedup --pages 100000
run rate_window --requests 400000 --users 20000
run rate_window --seconds 1 --window 0.2 --users 20000
run coupons --coupons 100000
run shared_guard --rate 500 --seconds 1 --interval 20
run guarded_service --test
