#!/usr/bin/env bash
# What the crate costs its dependents, with its default features: the packages in their lock files,
# the seconds that the compiler works on it, the machine code that it makes of it, and the bytes
# that it adds to a program that inserts one string, or batches. Fails above the bounds. Runs no
# test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

# Seconds of rustc (user time, all threads) for the crate and its dependencies. CI's machines are
# slow and shared: the bounds are twice what a quiet Zen 4 takes, 13.7 and 5.2 s. They catch a
# doubling, not a tenth more.
release_seconds=28
debug_seconds=11
# Text and data (x86-64), 1.1 times what was measured.
#
# The seconds follow the machine code of the crate, which does not vary. What few programs use is
# not in it: only the crates that call it compile it (src/kernel.rs).
crate_kib=525
# A filter keeps no pointer to the kernels of batches (src/kernel/tables.rs), so a program that
# inserts one string is linked without them.
program_kib=70
# With them. A program with kernels of its own beside those of the crate gets 100 more.
batches_kib=275

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/src/bin"
cat >"$work/Cargo.toml" <<END
[package]
name = "cost"
edition = "2024"
[dependencies]
lanebloom = { path = "$root" }
[profile.release]
strip = true
[workspace]
END
cp Cargo.lock "$work"
cat >"$work/src/bin/without.rs" <<'END'
fn main() {
    let key = std::env::args().next().unwrap_or_default();
    println!("{}", key.is_empty());
}
END
cat >"$work/src/bin/with.rs" <<'END'
fn main() {
    let key = std::env::args().next().unwrap_or_default();
    let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build();
    println!("{}", filter.is_ok_and(|filter| filter.insert(&key)));
}
END
cat >"$work/src/bin/batches.rs" <<'END'
fn main() {
    let keys: Vec<u64> = std::env::args().map(|key| key.len() as u64).collect();
    let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build().unwrap();
    let mut found = vec![0; keys.len().div_ceil(64)];
    let new = filter.insert_batch(&keys);
    filter.contains_batch(&keys, lanebloom::Bitmap(&mut found));
    println!("{new} {found:?}");
}
END
# Times each call of the compiler. (Those that only ask it for its version take no time.)
cat >"$work/rustc" <<'END'
#!/usr/bin/env bash
TIMEFORMAT=%U
{ time "$@" 2>&3; } 3>&2 2>>"$COST_SECONDS"
END
chmod +x "$work/rustc"

failed=0
check() { # what, measured, bound, unit
    echo "$1: $2 $4, at most $3"
    awk -v a="$2" -v b="$3" 'BEGIN { exit a > b }' || failed=1
}
# This leaves out of the lock file what the package does not need.
cargo update --workspace --offline --quiet --manifest-path "$work/Cargo.toml"
# With those of other systems, and with the crate itself. (fastbloom: 21)
check "a lock file gets" $(($(grep -c '^name = ' "$work/Cargo.lock") - 1)) 5 packages
for profile in release debug; do
    flags=(--offline --quiet --manifest-path "$work/Cargo.toml" --target-dir "$work/target")
    [[ $profile == debug ]] || flags+=(--release)
    COST_SECONDS=$work/$profile RUSTC_WRAPPER=$work/rustc cargo build "${flags[@]}" --bin with --bin without
    bound=${profile}_seconds
    check "rustc, $profile" "$(awk '{ sum += $1 } END { print sum }' "$work/$profile")" "${!bound}" s
done
cargo build --release --offline --quiet --manifest-path "$work/Cargo.toml" --target-dir "$work/target" --bin batches
bytes() { size -t "$1" 2>/dev/null | awk '/TOTALS/ { print $1 + $2 }'; }
added() { echo $((($(bytes "$work/target/release/$1") - $(bytes "$work/target/release/without")) / 1024)); }
check "machine code of the crate" $(($(bytes "$work"/target/release/deps/liblanebloom-*.rlib) / 1024)) "$crate_kib" KiB
check "one insert adds to a program" "$(added with)" "$program_kib" KiB
check "batches add to a program" "$(added batches)" "$batches_kib" KiB
exit $failed
