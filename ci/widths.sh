#!/usr/bin/env bash
# Comments and documentation are at most 100 columns wide, but for tables and code. (By perl, which
# counts characters; awk counts bytes on some machines.)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files '*.rs' | xargs perl -CSD -ne '
    $code = 0 if $. == 1 || !m{^\s*//};
    $code = 1 if /include_str!\("example/; # which begins a block of code
    $code = !$code if m{^\s*//[/!]\s*```};
    chomp;
    if (m{^\s*//} && !$code && length > 100 && !m{^\s*//[/!]?(    |\s*(\||\[|\S+$))}) {
        print "$ARGV:$.: ", length, " columns\n";
        $wide = 1;
    }
    close ARGV if eof;
    END { $? = 1 if $wide }
'
