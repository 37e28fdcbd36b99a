#!/usr/bin/env bash
# A comment, its paragraphs, its items and a heading begin with their subject: none with "What",
# "Which", "Those of", "That of", "As" or "Of".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files '*.rs' '*.cpp' '*.java' '*.py' '*.pyi' '*.sh' '*.toml' '*.yml' '*.md' .ci/run | xargs perl -CSD -ne '
    BEGIN { $opening = qr/(What|Which|Those of|That of|As|Of)\b/ }
    # The text of a comment, or undef; the text of a heading.
    my $text;
    if ($ARGV =~ /\.md$/) {
        $text = $1 if m{^#+ +(.*)};
    } elsif ($ARGV =~ /\.(rs|cpp|java)$/) {
        $text = $1 if m{^\s*(?://[/!]?|/?\*+(?!/))\s*(.*)} || m{[;,\{\}\)\]] +//\s*(.*)};
    } else {
        $text = $1 if m{^\s*#+\s*(.*)} || m{^\s*[rf]?"""(.*)} || m{\s#\s+(.*)};
    }
    # A comment behind code stands alone.
    my $goes_on = m{^\s*(//|/?\*|#|[rf]?""")} && defined $before && $before ne "";
    if (defined $text) {
        # The marks of a heading or of an item.
        my $is_item = $text =~ s/^(#+|[-*]|\d+\.) +//;
        if (($is_item || !$goes_on) && $text =~ /^$opening/) {
            print "$ARGV:$.: begins with \"$1\": $text\n";
            $places++;
        }
    }
    $before = m{^\s*(//|/?\*|#|[rf]?""")} ? $text : undef;
    if (eof) { close ARGV; $before = undef; }
    END { if ($places) { print "$places comments or headings do not begin with their subject\n"; $? = 1 } }
'
