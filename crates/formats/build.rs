//! Sets `lanebloom_x86_64`, `lanebloom_avx512` and `lanebloom_aarch64` for the kernels that are
//! compiled (src/splitblock/kernel), as the build script of the crate lanebloom does.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let is_1_89 = minor_version().is_some_and(|minor| minor >= 89);
    for (cfg, is_set) in [
        ("x86_64", arch == "x86_64"),
        ("avx512", arch == "x86_64" && is_1_89),
        ("aarch64", arch == "aarch64"),
    ] {
        println!("cargo::rustc-check-cfg=cfg(lanebloom_{cfg})");
        if is_set {
            println!("cargo::rustc-cfg=lanebloom_{cfg}");
        }
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
