#!/usr/bin/env bash
# Comments and documentation are at most 100 columns wide, but for tables and code. The examples in
# them are at most 80 wide without the comment's marks, but for hidden lines. No file of a src
# has more than 900 lines. Pages that a newcomer opens first are short. (By perl, which counts
# characters; awk counts bytes on some machines.)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files '*.rs' '*.cpp' | xargs perl -CSD -ne '
    $code = 0 if $. == 1 || !m{^\s*//};
    $code = !$code if m{^\s*//[/!]\s*```};
    chomp;
    if (!$code && m{^\s*//} && length > 100 && !m{^\s*//[/!]?(     |\s*(\||\[[^\]]+\]: *\S+$|\S+$))}) {
        print "$ARGV:$.: ", length, " columns\n";
        $wide = 1;
    }
    if ($code && m{^\s*//[/!] ?+((?!\s*# ).{81,})}) {
        print "$ARGV:$.: an example of ", length($1), " columns\n";
        $wide = 1;
    }
    close ARGV if eof;
    END { $? = 1 if $wide }
'

status=0
while read -r most page; do
    if (($(wc -c <"$page") > most)); then
        echo "$page: $(wc -c <"$page") bytes, more than $most"
        status=1
    fi
done <<END
8192 README.md
12288 docs/COST.md
END
lines=$(wc -l <docs/MAP.md)
if ((lines > 70)); then
    echo "docs/MAP.md: $lines lines, more than 70"
    status=1
fi
git ls-files '*.sh' '*.py' .ci/run | xargs grep -nE '^ *# [^ ].{98,}$' && status=1
while read -r lines file; do
    if ((lines > 900)); then
        echo "$file: $lines lines, more than 900"
        status=1
    fi
done < <(git ls-files 'src/*.rs' 'crates/*/src/*.rs' 'integrations/*/src/*.rs' | xargs wc -l | grep -v ' total$')
exit $status
