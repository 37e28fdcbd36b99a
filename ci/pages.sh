#!/usr/bin/env bash
# Fails if a filter's page shows a method that its type lacks. On the page of an alias
# (`ConcurrentBloom` is a `Filter<Bloom, S>`), rustdoc shows every inherent impl whose type fits,
# whatever its bounds. So a generic impl may ask only for what every engine that fits is:
#
# - `Filter<E, S>` for `Engine`, `Planned`, `Insert`, `Encode`; `Builder<E, S>` for `Planned`;
# - `Frozen<E, S>`, which has engines without inserts, for `Engine`;
# - `Filter<Bloom<W>, S>`, an engine of lines that it owns, for `OwnWords`;
# - `Filter<Bucketed<T>, S>` for `Count` and `Engine`.
#
# The first row holds if each alias of `Filter` in src/filter/types has an engine with these traits,
# which this script looks at too. A hidden impl is on no page. The rest is in the file of each type.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

found=$(
    git ls-files 'src/*.rs' | xargs perl -ne '
        $hashers = qr/(, S(: (KeyHasher|FilterHasher))?)?/;
        $all = qr/(: (Engine|Planned|Insert|Encode))?/;
        if (m{^\s*impl<.*> (\$crate::)?(Filter<(E|Bloom<W|Bucketed<[A-Z]\w*)\b|(Builder|Frozen)<E\b)}
            && $before !~ /doc\(hidden\)/
            && !m{impl<E$all$hashers> Filter<E\b}
            && !m{impl<E(: Engine)?$hashers> Frozen<E\b}
            && !m{impl<E: Planned(, S)?> Builder<E}
            && !m{impl<W(: OwnWords)?$hashers> Filter<Bloom<W>, S>}
            && !m{impl<T$hashers> Filter<Bucketed<T>, S>}) {
            print "$ARGV:$.: $_";
        }
        $before = $_;
        close ARGV if eof;
    '
)
if [[ -n $found ]]; then
    echo "these impls show on pages of types that lack their methods:"
    echo "$found"
    exit 1
fi

aliases=0
while read -r engine; do
    ((++aliases))
    # `Counting` is an alias of `Bloom<BloomCounters>`: the impl may be that of all `Bloom<W>`.
    generic=$(sed -nE "s/^pub type $engine = (\w+)<.*/\1/p" src/filter/types/*.rs)
    for operations in Engine Planned Insert Encode; do
        if ! grep -rqE "^impl.* $operations for ($engine|${generic:-$engine}<\w>) \{" src/filter; then
            echo "pages of $engine have the methods of $operations, which it does not implement"
            exit 1
        fi
    done
done < <(sed -nE 's/^pub type \w+(<S = Murmur3>)? = Filter<(\w+), S>;/\2/p' src/filter/types/*.rs)
((aliases >= 7)) || { echo "no aliases of Filter are found in src/filter/types" && exit 1; }
