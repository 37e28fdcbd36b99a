#!/usr/bin/env bash
# Proof that the kernels are what they are written to be: in the machine code of a release build, every kernel has the
# instructions that it is for, and the loop around its last step calls nothing.
# A minute from nothing, 3 seconds after ci/test.sh, which builds the same. Needs objdump, which comes with the linker.
#
#   ci/codegen.sh            looks at the bench `peers`
#   ci/codegen.sh PROGRAM    looks at this one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $(uname -m) != x86_64 ]]; then
    echo "skipped: the kernels that are looked at are x86-64's"
    exit
fi

# The function | how many of it at least (here one for each shape of the pattern) | what each must have, patterns of awk |
# its last step, to be found in a loop | what this loop may call: nothing, or `ours`, this crate's (closures that the
# compiler did not inline).
kernels='
    simd::avx512::contains_hashes | 28 | zmm vpmullq vprolvq      | vptestn?mq |
    simd::avx512::insert_hashes   | 28 | zmm vprolvq              | lock       | ours
    simd::avx2::contains_hashes   | 28 | ymm vpmuludq vps[lr]lvq  | vmovmskp   | ours
    simd::avx2::insert_hashes     | 28 | ymm vpmuludq vpsllvq     | lock       | ours
'

program=${1-}
if [[ -z $program ]]; then
    program=$(cargo bench --bench peers --no-run --message-format=json-render-diagnostics |
        sed -n 's/.*"executable":"\([^"]*\)".*/\1/p')
fi

# A loop is what lies between a jump back and its target; of those around an instruction the smallest is looked at. A call
# of a function of ours in which a kernel's last step is, is a last step as well.
objdump -d -C --no-show-raw-insn "$program" | awk -v kernels="$kernels" '
    # "00000000000d23c0 <lanebloom::simd::avx512::contains_hashes>:"
    /^[0-9a-f]+ <.*>:$/ {
        f = $1
        sub(/^0+/, "", f)
        label = $0
        gsub(/^[^<]*<|>:$|\[[0-9a-f]+\]/, "", label) # the last is the hash of a crate
        ours = label ~ /^<?lanebloom::/
        if (ours) name[f] = label
        next
    }

    # "   d2426:	cmp    $0x200001,%rax"
    ours && (tab = index($0, "\t")) {
        address = substr($0, 1, tab - 1)
        gsub(/[ :]/, "", address)
        text = substr($0, tab + 1)
        sub(/ *#.*/, "", text)
        line[f, address] = ++size[f]
        code[f, size[f]] = text
    }

    END {
        rows = split(kernels, row, "\n")
        for (r = 1; r <= rows; r++) if (split(row[r], column, "|") == 5) {
            for (c in column) gsub(/^ +| +$/, "", column[c])
            count = 0
            for (f in name) if (name[f] == "lanebloom::" column[1] || index(name[f], "lanebloom::" column[1] "::<") == 1) {
                count++
                n = split(column[3], needed, " ")
                for (i = 1; i <= n; i++) if (!has(f, needed[i])) wrong(f, "no " needed[i])
                if (!in_loop(f, column[4], column[5])) wrong(f, "no " column[4] " in a loop")
            }
            print column[1] ": " count
            if (count < column[2]) wrong("", "at least " column[2] " expected")
        }
        exit failed
    }

    function wrong(f, what) {
        print "  " (f == "" ? "" : name[f] " at " f ": ") what
        failed = 1
    }

    # The function of ours to which an instruction goes, or "".
    function callee(f, i,    word) {
        split(code[f, i], word, " ")
        return word[1] ~ /^(call|jmp)/ && word[2] in name && word[2] != f ? word[2] : ""
    }

    # Whether a function, or one of ours that it calls, has an instruction like this.
    function has(f, pattern,    i, g) {
        if ((f, pattern) in known) return known[f, pattern]
        known[f, pattern] = 0
        for (i = 1; i <= size[f]; i++) {
            g = callee(f, i)
            if (code[f, i] ~ pattern || g != "" && has(g, pattern)) return known[f, pattern] = 1
        }
        return 0
    }

    # Whether it has one in a loop, here or in one of ours that it calls. The calls in such loops are looked at.
    function in_loop(f, pattern, may_call,    i, j, g, n, word, first, last, best, found) {
        for (i = 1; i <= size[f]; i++) {
            split(code[f, i], word, " ")
            if (word[1] ~ /^j/ && (f, word[2]) in line && line[f, word[2]] <= i) {
                first[++n] = line[f, word[2]]
                last[n] = i
            }
        }
        for (i = 1; i <= size[f]; i++) {
            g = callee(f, i)
            if (code[f, i] !~ pattern && !(g != "" && has(g, pattern))) continue
            if (g != "" && in_loop(g, pattern, may_call)) found = 1
            best = 0
            for (j = 1; j <= n; j++) if (first[j] <= i && i <= last[j]) {
                if (!best || last[j] - first[j] < last[best] - first[best]) best = j
            }
            if (!best) continue
            found = 1
            for (j = first[best]; j <= last[best]; j++) {
                if (code[f, j] !~ /^call/ || (f, j) in told || may_call == "ours" && callee(f, j) != "") continue
                wrong(f, "in the loop of " pattern ": " code[f, j])
                told[f, j]
            }
        }
        return found
    }
'
