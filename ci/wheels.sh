#!/usr/bin/env bash
# The Python package for other systems, each wheel imported where that is possible here. Two wheels
# for a system: for every CPython from 3.9 on (Windows: 3.11), and for CPython 3.14 without the
# interpreter's lock. `zig`, from PyPI, links for Linux with any C library.
#
#   ci/wheels.sh SYSTEM...       some of {manylinux,musllinux}-{x86_64,aarch64}, windows-x86_64,
#                                native (the system of this machine, such as macOS)
#   ci/wheels.sh                 all of Linux and Windows, from x86-64 with Debian
#
# The wheels lie in $WHEELS, or target/wheels. A system without a standard library in the Rust
# toolchain (`rustup target add`) is compiled by Debian's, which ci/fetch/compiler.sh fetches.
# aarch64 needs qemu-user-static, and windows-x86_64 gcc-mingw-w64-x86-64 (ci/install.sh windows).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source ci/fetch/use_compiler.sh
out=${WHEELS:-target/wheels}
mkdir -p "$out"
out=$(realpath "$out")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${PYTHON:-python3}" -m venv "$work/venv"
export PATH=$work/venv/bin:$work/venv/Scripts:$PATH
python -m pip install -q -U pip 'maturin>=1.9,<2'

# maturin for each of the interpreters.
wheels() { # feature of the first wheel, options
    maturin build --release --locked -q -m integrations/python/Cargo.toml -o "$out" \
        --no-default-features --features "$1" -i python3 "${@:2}"
    maturin build --release --locked -q -m integrations/python/Cargo.toml -o "$out" \
        --no-default-features -i python3.14t "${@:2}"
}

linux() { # policy, machine, the target's C library
    local options=(--target "$2-unknown-linux-$3" --compatibility "$1" --zig)
    python -m pip install -q ziglang
    if [[ ! -d $(rustc --print sysroot)/lib/rustlib/$2-unknown-linux-$3 ]]; then
        use_compiler
        export RUSTC_BOOTSTRAP=1
        options+=(-Zbuild-std)
    fi
    wheels abi3-py39 "${options[@]}"
}

# A user's first calls.
first_use='import lanebloom; f = lanebloom.BloomFilter(9); assert f.add("a") and "a" in f and not f.add("a"); print("imported")'

# Imports the abi3 wheel of a system by an interpreter.
import_by() { # pattern of the wheel, interpreter
    rm -rf "$work/imported"
    python -m zipfile -e "$(ls -t "$out"/lanebloom-*-abi3-*"$1"*.whl | head -1)" "$work/imported"
    PYTHONPATH=$work/imported "${@:2}" -c "$first_use"
}

# Fails unless the module needs no other library than these, and has its entry.
links() { # pattern of the wheel, pattern of libraries
    rm -rf "$work/links"
    for wheel in "$out"/lanebloom-*"$1"*.whl; do
        python -m zipfile -e "$wheel" "$work/links"
    done
    for module in "$work"/links/lanebloom/*.so; do
        readelf --dyn-syms --wide "$module" | grep -q 'FUNC.* PyInit__lanebloom$'
        if readelf --dynamic "$module" | grep NEEDED | grep -vE "\[($2)\]"; then
            echo "$module needs a library that $1 does not promise" >&2
            exit 1
        fi
    done
    echo "links to $2"
}

build() {
    case $1 in
        manylinux-*)
            local machine=${1#manylinux-} interpreter=python
            linux manylinux2014 "$machine" gnu
            links "manylinux2014_$machine" 'lib(c|m|pthread|dl|rt|gcc_s)\.so\.[0-9]+|ld-linux-.*'
            if [[ $machine != "$(uname -m)" ]]; then
                interpreter="qemu-$machine-static -L $(ci/fetch/python_of.sh "$machine")"
                interpreter+=" $(ci/fetch/python_of.sh "$machine")/usr/bin/python3.14"
            fi
            # shellcheck disable=SC2086
            import_by "manylinux2014_$machine" $interpreter
            ;;
        musllinux-*)
            # (No package of Debian or PyPI has a CPython for musl.)
            linux musllinux_1_2 "${1#musllinux-}" musl
            links "musllinux_1_2_${1#musllinux-}" 'libc\.so'
            ;;
        windows-x86_64)
            use_compiler
            export RUSTC_BOOTSTRAP=1 CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
            wheels abi3-py311 --target x86_64-pc-windows-gnu -Zbuild-std
            python -m zipfile -e "$(ls -t "$out"/lanebloom-*-abi3-win_amd64.whl | head -1)" "$work/windows"
            # (Nor for Windows, but for its installer.)
            x86_64-w64-mingw32-objdump --private-headers "$work"/windows/lanebloom/*.pyd >"$work/headers"
            grep -q 'PyInit__lanebloom' "$work/headers"
            grep -q 'DLL Name: python3.dll' "$work/headers"
            if grep -i 'DLL Name: lib' "$work/headers"; then
                echo "the module for Windows needs a library of mingw" >&2
                exit 1
            fi
            echo "links to python3.dll"
            ;;
        native)
            if [[ ${OS-} == Windows_NT ]]; then wheels abi3-py311; else wheels abi3-py39; fi
            import_by '' python
            ;;
        *)
            echo "$1 is none of {manylinux,musllinux}-{x86_64,aarch64}, windows-x86_64, native" >&2
            exit 2
            ;;
    esac
}

(($#)) || set -- {manylinux,musllinux}-{x86_64,aarch64} windows-x86_64
for system; do
    echo "== $system"
    (build "$system")
done
ls -l "$out"
