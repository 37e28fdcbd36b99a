#!/usr/bin/env bash
# Windows: lanebloom and lanebloom-formats are built for x86_64-pc-windows-gnu, and their tests run
# under wine. (The guard and the command are not among them yet.) Needs what `ci/install.sh windows`
# installs; fetches the compiler, and builds the standard library.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
source ci/fetch/use_compiler.sh
use_compiler
export RUSTC_BOOTSTRAP=1 LANEBLOOM_GUAVA=none
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=/usr/lib/wine/wine64
mkdir -p "$target"/wine/{system,libraries}
libraries=$(realpath "$target/wine/libraries")
WINEPREFIX=$(realpath "$target/wine/system")
export WINEPREFIX WINEPATH=$libraries WINEDEBUG=-all

# Debian's wine 8 lacks this library, whose one function gives random bytes.
x86_64-w64-mingw32-gcc -shared -x c - -o "$libraries/bcryptprimitives.dll" -ladvapi32 <<'END'
#include <windows.h>
BOOLEAN WINAPI SystemFunction036(PVOID bytes, ULONG len);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T len) { return SystemFunction036(bytes, len); }
END

cargo test -Zbuild-std --target x86_64-pc-windows-gnu --target-dir "$target/windows" --no-fail-fast \
    -p lanebloom -p lanebloom-tests -p lanebloom-formats --features rayon,mmap,serde --lib --test={api,formats,alloc} "$@"
