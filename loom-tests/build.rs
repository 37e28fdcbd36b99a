//! Exchanges the atomics of the sources for loom's (src/words/sync.rs).

fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    println!("cargo::rustc-check-cfg=cfg(lanebloom_rust_1_89)");
    println!("cargo::rustc-cfg=lanebloom_loom");
}
