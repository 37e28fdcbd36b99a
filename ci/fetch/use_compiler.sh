# Sourced by the scripts that build with a compiler of Debian. `use_compiler` takes the newest, and
# `use_compiler 1.85` that version; ci/fetch/compiler.sh fetches it. Sets `toolchain`, the folder.
# cargo remains the machine's own.
use_compiler() {
    toolchain=${LANEBLOOM_TOOLCHAIN:-${XDG_CACHE_HOME:-$HOME/.cache}/lanebloom}/rust-web${1:+-$1}
    ci/fetch/compiler.sh "$@"
    export LD_LIBRARY_PATH=$toolchain/usr/lib/x86_64-linux-gnu
    export RUSTC=$toolchain/usr/bin/rustc RUSTDOC=$toolchain/usr/bin/rustdoc
    "$RUSTC" --version
}
