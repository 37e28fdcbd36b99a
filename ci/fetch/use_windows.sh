# Sourced by the scripts that build for Windows. `use_windows` sets up Debian's compiler, mingw's
# linker and wine, whose folder is in target/wine; ci/install.sh windows installs the last two.
# cargo gets the options `-Zbuild-std --target x86_64-pc-windows-gnu`.
source ci/fetch/use_compiler.sh
use_windows() {
    use_compiler
    export RUSTC_BOOTSTRAP=1
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=/usr/lib/wine/wine64
    local wine=${CARGO_TARGET_DIR:-target}/wine
    mkdir -p "$wine"/{system,libraries}
    WINEPREFIX=$(realpath "$wine/system")
    WINEPATH=$(realpath "$wine/libraries")
    export WINEPREFIX WINEPATH WINEDEBUG=-all

    # Debian's wine 8 lacks this library, whose one function gives random bytes.
    x86_64-w64-mingw32-gcc -shared -x c - -o "$WINEPATH/bcryptprimitives.dll" -ladvapi32 <<'END'
#include <windows.h>
BOOLEAN WINAPI SystemFunction036(PVOID bytes, ULONG len);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T len) { return SystemFunction036(bytes, len); }
END
}
