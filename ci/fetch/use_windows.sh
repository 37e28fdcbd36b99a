# Sourced by the scripts that build for Windows. `use_windows` sets up Debian's compiler, and the
# linker and wine that `ci/install.sh windows` installs. Sets `wine`, the program. To cargo, give
# `-Zbuild-std --target x86_64-pc-windows-gnu`.
source ci/fetch/use_compiler.sh
use_windows() {
    use_compiler
    export RUSTC_BOOTSTRAP=1
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER=x86_64-w64-mingw32-gcc
    wine=/usr/lib/wine/wine64
    export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER=$wine
    local folder=${CARGO_TARGET_DIR:-target}/wine
    mkdir -p "$folder"/{system,libraries}
    WINEPREFIX=$(realpath "$folder/system")
    WINEPATH=$(realpath "$folder/libraries")
    export WINEPREFIX WINEPATH WINEDEBUG=-all

    # Debian's wine 8 lacks this library, whose one function gives random bytes.
    x86_64-w64-mingw32-gcc -shared -x c - -o "$WINEPATH/bcryptprimitives.dll" -ladvapi32 <<'END'
#include <windows.h>
BOOLEAN WINAPI SystemFunction036(PVOID bytes, ULONG len);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE bytes, SIZE_T len) { return SystemFunction036(bytes, len); }
END
}
