//! Compiles `boost.cpp` of the bench `peers`, if the environment variable `BOOST_ROOT` names a
//! folder with the headers of Boost 1.89 or newer, as `ci/fetch/boost.sh` does: by it, the example
//! `figures` measures Boost.Bloom too. Needs g++.

use std::env;
use std::path::PathBuf;

const SOURCE: &str = "../../benches/peers/boost.cpp";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_boost)");
    println!("cargo::rerun-if-env-changed=BOOST_ROOT");
    println!("cargo::rerun-if-changed={SOURCE}");
    let Some(root) = env::var_os("BOOST_ROOT").map(PathBuf::from) else {
        return;
    };
    cc::Build::new()
        .cpp(true)
        .compiler("g++")
        .std("c++17")
        .opt_level(3)
        .flag("-march=native")
        .define("NDEBUG", None)
        .debug(false)
        .warnings(false) // of Boost's headers
        .include(root.join("include"))
        .include(root)
        .file(SOURCE)
        .compile("peers_boost");
    println!("cargo::rustc-cfg=has_boost");
}
