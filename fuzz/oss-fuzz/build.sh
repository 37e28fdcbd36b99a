#!/usr/bin/env bash
# For google/oss-fuzz, as projects/lanebloom/build.sh: each target of fuzz/fuzz_targets, with its
# small corpus. Their image has cargo-fuzz, and sets SRC and OUT. Elsewhere, FUZZ_BUILD is the
# command in its place, and FUZZ_FOLDER its target folder.
set -euo pipefail
cd "$SRC/lanebloom"

read -ra build <<<"${FUZZ_BUILD:-cargo fuzz build -O --debug-assertions}"
"${build[@]}"
host=$(rustc -vV | sed -n 's/^host: //p')
for source in fuzz/fuzz_targets/*.rs; do
    target=${source##*/}
    target=${target%.rs}
    cp "${FUZZ_FOLDER:-fuzz/target}/$host/release/$target" "$OUT/"
    [[ ! -d fuzz/corpus/$target ]] || (cd "fuzz/corpus/$target" && python3 -m zipfile -c "$OUT/${target}_seed_corpus.zip" ./*)
done
