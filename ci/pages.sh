#!/usr/bin/env bash
# Fails if a filter's page shows a method that its type lacks. On the page of an alias
# (`ConcurrentBloom` is a `Filter<Bloom, S>`), rustdoc shows every inherent impl whose type fits,
# whatever its bounds. So a generic impl may ask only for what every engine that fits is:
#
# - `Filter<E, S>` for `Engine`, `Builder<E, S>` for `Planned`;
# - `Filter<Bloom<W>, S>`, an engine of lines, for nothing;
# - `Filter<Bucketed<T>, S>` for `Count` and `Engine`.
#
# A macro writes the rest, and the file of each type that has the family calls it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

generic='^ *impl<.*> (\$crate::)?(Filter<(E|Bloom<W|Bucketed<[A-Z]\w*)\b|Builder<E\b)'
hashers='(, S(: (KeyHasher|FilterHasher))?)?'
found=$(
    grep -rnE "$generic" src | grep -vE "impl<E(: Engine)?$hashers> Filter<E\b" \
        | grep -vE 'impl<E: Planned(, S)?> Builder<E' \
        | grep -vE "impl<W$hashers> Filter<Bloom<W>, S>" \
        | grep -vE "impl<T$hashers> Filter<Bucketed<T>, S>" || true
)
if [[ -n $found ]]; then
    echo "these impls show on pages of types that lack their methods:"
    echo "$found"
    exit 1
fi
