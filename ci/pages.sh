#!/usr/bin/env bash
# Fails if a filter's page shows a method that its type lacks. On the page of an alias
# (`ConcurrentBloom` is a `Filter<Bloom, S>`), rustdoc shows every inherent impl whose type fits,
# whatever its bounds. So a generic impl may ask only for what every engine is (`Engine`; `Planned`,
# if it has a builder). The rest is written for a list of types, by a macro.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

generic='^ *impl<.*> (Filter<(E|Lined<[A-Z]\w*>|Slotted<[A-Z]\w*>)\b|Builder<E\b)'
bounds='impl<E(: Engine)?(, S(: KeyHasher)?)?> Filter<E'
found=$(grep -rnE "$generic" src | grep -vE "$bounds" | grep -vE 'impl<E: Planned(, S)?> Builder<E' || true)
if [[ -n $found ]]; then
    echo "these impls show on pages of types that lack their methods:"
    echo "$found"
    exit 1
fi
