//! Sets `lanebloom_rust_1_89` for a compiler of Rust 1.89 or newer, the first with the intrinsics
//! of AVX-512 (src/splitblock/kernel), as the build script of the crate lanebloom does.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(lanebloom_rust_1_89)");
    if minor_version().is_some_and(|minor| minor >= 89) {
        println!("cargo::rustc-cfg=lanebloom_rust_1_89");
    }
}

/// 89 for "rustc 1.89.0 (29483883e 2025-08-04)". A compiler that says something else is taken for
/// an old one.
fn minor_version() -> Option<u32> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    let minor = version.strip_prefix("rustc 1.")?.split('.').next()?;
    minor.parse().ok()
}
