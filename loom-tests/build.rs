//! Exchanges the atomics of the sources for loom's (src/words/sync.rs). Sets no cfg of a kernel.

fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    for cfg in ["rust_1_89", "x86_64", "avx512", "aarch64"] {
        println!("cargo::rustc-check-cfg=cfg(lanebloom_{cfg})");
    }
    println!("cargo::rustc-cfg=lanebloom_loom");
}
