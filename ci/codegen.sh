#!/usr/bin/env bash
# Proof that the kernels are what they are written to be: in the machine code of a release build,
# every kernel has the instructions that it is for, and its loop calls nothing. Looks at the
# programs of ci/release.sh. Also: the assembly in the sources encodes with every register that a
# compiler may choose. Needs objdump and as, which come with the linker.
#
#   ci/codegen.sh               looks at the programs of tests/{filters,stress,memory_edges}
#   ci/codegen.sh PROGRAM...    looks at these
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $(uname -m) != x86_64 ]]; then
    echo "skipped: the kernels that are looked at are x86-64's"
    exit
fi

# A compiler may give an operand of the class zmm_reg one of the registers 16 to 31, as `{x:y}` too,
# which VEX-only instructions such as vmovdqu cannot encode. Today's may not, and the build fails
# with the next one. So the blocks with such operands are assembled with the highest registers.
sources=$(grep -rl 'zmm_reg' --include='*.rs' src crates)
for source in $sources; do
    if ! awk '
        BEGIN { print ".intel_syntax noprefix" }
        /asm!\($/ { inside = 1; n = highest = 0; split("", operand) }
        !inside { next }
        /^ *"/ { gsub(/^ *"|",$/, ""); line[++n] = $0 }
        /^ *[a-z0-9_]+ = [a-z]+\([a-z_]+\)/ {
            split($0, part, /[ =()]+/)
            name = part[2]
            if (part[4] == "zmm_reg") operand[name] = "mm" 31 - highest++
            else operand[name] = part[4] == "kreg" ? "k1" : "r8"
        }
        /^ *\);$/ {
            inside = 0
            if (highest) for (i = 1; i <= n; i++) print encoded(line[i])
        }
        function encoded(code,    name, register) {
            for (name in operand) {
                register = operand[name]
                if (register ~ /^mm/) {
                    gsub("[{]" name ":x}", "x" register, code)
                    gsub("[{]" name ":y}", "y" register, code)
                    register = "z" register
                }
                gsub("[{]" name "}", register, code)
            }
            gsub(/[{][{]/, "{", code)
            gsub(/[}][}]/, "}", code)
            return code
        }
    ' "$source" | as -o /dev/null -; then
        echo "$source: assembly that does not encode with the registers 16 to 31" >&2
        exit 1
    fi
done

# The function | how many of it at least | what each of them must have, patterns of awk | what of it
# must be in a loop, and in no loop beside a call but of another row's (nothing: it calls nothing
# anywhere but panics and what tables point to). A closure that was not inlined is a call, and its
# instructions are not in the kernel. A count of 0 means that the function must be inlined
# everywhere.
#
# All are there for each of 4 numbers of words, batches in two forms.
kernels='
    kernel::avx512::contains_hashes | 8 | zmm vpmullq            | vptestn?m[dq]|vmovmskp
    kernel::avx512::insert_hashes   | 8 | zmm vpsllvq lock       | vpmullq
    kernel::avx512::fill            | 4 | zmm vpsllvq            | vpmullq
    kernel::hash_avx512::murmur3_short    | 1 | zmm vpmullq vprolq | vpmullq
    kernel::hash_avx512::murmur3_slices   | 1 | zmm vpmullq vprolq vmovdqu8 | vpmullq
    kernel::hash_avx512::siphash13_short  | 1 | zmm vprolq         | vprolq
    kernel::hash_avx512::siphash13_slices | 1 | zmm vprolq vmovdqu8 | vprolq
    kernel::hash_avx512::hash_blocks      | 2 | zmm vprolq vmovdqu8 | vprolq
    kernel::avx512::pack            | 1 | zmm vpcompressq        | vpcompressq
    kernel::avx2::few_flags         | 4 | ymm vpshufb vpsllvd     | vptest
    kernel::avx2::few_bitmap        | 4 | ymm vpshufb vpsllvd     | vptest
    kernel::avx2::contains_hashes   | 8 | ymm vpmuludq vpshufb    | vmovmskp|prefetch
    kernel::avx2::insert_hashes     | 8 | ymm vpmuludq lock       | vpmuludq
    kernel::avx2::fill              | 4 | ymm vpmuludq            | vpmuludq
    kernel::hash_avx2::murmur3_short   | 1 | ymm vpmuludq imul     | vpmuludq
    kernel::hash_avx2::siphash13_short | 1 | ymm vpshufd           | vpshufd
    kernel::avx2::contains          | 7 | ymm vpshufb vptest      |
    kernel::avx2::insert            | 4 | ymm vpsllvd lock        |
    kernel::plain::contains         | 4 |                        |
    kernel::plain::insert           | 4 | lock                   |
    kernel::plain::fill            | 4 |                         |
    kernel::plain::increment       | 4 | lock                   |
    kernel::plain::decrement       | 4 | lock                   | lock
    <u64 as lanebloom::funnel::Funnel>::funnel |  0 |             |
    <lanebloom::hash::Murmur3 as lanebloom::hash::KeyHasher>::hash_key   | 0 |   |
    <lanebloom::hash::SipHash13 as lanebloom::hash::KeyHasher>::hash_key | 0 |   |
'

programs=("$@")
if ((!$#)); then
    built=$(ci/release.sh build)
    mapfile -t programs <<<"$built"
fi

# A loop is what lies between a jump back and its target; of those around an instruction the
# smallest is looked at.
objdump -d -C --no-show-raw-insn "${programs[@]}" | awk -v kernels="$kernels" '
    BEGIN {
        rows = split(kernels, row, "\n")
        for (r = 1; r <= rows; r++) if (split(row[r], column, / \|( |$)/) == 4) {
            for (c in column) gsub(/^ +| +$/, "", column[c])
            name = (column[1] ~ /^</ ? "" : "lanebloom::") column[1]
            order[++kernel] = name
            least[name] = column[2] + 0
            needed[name] = column[3]
            looped[name] = column[4]
        }
    }

    # "00000000000d23c0 <lanebloom::kernel::avx512::contains_hashes>:", with more or less of
    # generics and hashes.
    /^[0-9a-f]+ <.*>:$/ {
        look()
        where = $0
        name = $0
        gsub(/^[^<]*<|>:$|\[[0-9a-f]+\]|::<.*/, "", name)
        next
    }

    # "   d2426:	cmp    $0x200001,%rax"
    name in least && (tab = index($0, "\t")) {
        address = substr($0, 1, tab - 1)
        gsub(/[ :]/, "", address)
        line[address] = ++lines
        code[lines] = substr($0, tab + 1)
        sub(/ *#.*/, "", code[lines])
    }

    END {
        look()
        for (k = 1; k <= kernel; k++) {
            name = order[k]
            print name ": " count[name] + 0
            if (least[name] ? count[name] < least[name] : count[name]) {
                print "  " (least[name] ? "at least " least[name] : "none") " expected"
                failed = 1
            }
        }
        exit failed
    }

    # At a kernel that has been read.
    function look(    i, n, pattern) {
        if (!lines) return
        count[name]++
        n = split(needed[name], pattern, " ")
        for (i = 1; i <= n; i++) if (!has(pattern[i])) wrong("no " pattern[i])
        if (looped[name] != "") look_at_loops(looped[name])
        else for (i = 1; i <= lines; i++) if (code[i] ~ /^call .*</ && code[i] !~ /<core::panicking/) wrong(code[i])
        split("", line)
        split("", code)
        lines = 0
    }

    function wrong(what) {
        print where
        print "  " what
        failed = 1
    }

    function has(pattern,    i) {
        for (i = 1; i <= lines; i++) if (code[i] ~ pattern) return 1
        return 0
    }

    # The function of "call   d2426 <lanebloom::kernel::hash_avx512::hash_blocks>".
    function called(code) {
        gsub(/^[^<]*<|>$|\[[0-9a-f]+\]|::<.*/, "", code)
        return code
    }

    function look_at_loops(pattern,    i, j, n, word, first, last, best, found, seen) {
        for (i = 1; i <= lines; i++) {
            split(code[i], word, " ")
            if (word[1] ~ /^j/ && word[2] in line && line[word[2]] <= i) {
                first[++n] = line[word[2]]
                last[n] = i
            }
        }
        for (i = 1; i <= lines; i++) if (code[i] ~ pattern) {
            best = 0
            for (j = 1; j <= n; j++) if (first[j] <= i && i <= last[j]) {
                if (!best || last[j] - first[j] < last[best] - first[best]) best = j
            }
            if (!best) continue
            found = 1
            if (best in seen) continue
            seen[best]
            for (j = first[best]; j <= last[best]; j++) {
                if (code[j] ~ /^call/ && !(called(code[j]) in least)) wrong("in a loop of " pattern ": " code[j])
            }
        }
        if (!found) wrong("no " pattern " in a loop")
    }
'
