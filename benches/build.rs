//! Compiles `peers/boost.cpp`, by which the bench `peers` measures Boost.Bloom, a C++ library.
//! Needs g++ and the headers of Boost 1.89 or newer. Without them, the bench is built without
//! Boost, and its tables say why.
//!
//! The environment variable `BOOST_ROOT` names the folder with the headers: `boost/version.hpp` is
//! in it (a release of Boost, unpacked) or in its subfolder `include` (a prefix of an installation,
//! such as /usr/local). If it is not set, they are looked for in /usr/include. `ci/fetch/boost.sh`
//! fetches the headers.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_boost)");
    println!("cargo::rerun-if-changed=peers/boost.cpp");
    println!("cargo::rerun-if-env-changed=BOOST_ROOT");
    match build() {
        Ok(()) => println!("cargo::rustc-cfg=has_boost"),
        // For the tables.
        Err(reason) => println!("cargo::rustc-env=NO_BOOST={reason}"),
    }
}

fn build() -> Result<(), &'static str> {
    let headers = headers().ok_or("no headers of Boost 1.89 or newer (BOOST_ROOT)")?;
    // -march=native is for the machine that compiles; MSVC links no library of g++.
    if env::var("HOST") != env::var("TARGET") || env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("msvc") {
        return Err("no g++ for this target");
    }
    if Command::new("g++").arg("--version").output().is_err() {
        println!("cargo::rerun-if-env-changed=PATH");
        return Err("no g++");
    }
    cc::Build::new()
        .cpp(true)
        .compiler("g++")
        .std("c++17")
        .opt_level(3)
        .flag("-march=native")
        .define("NDEBUG", None)
        .debug(false)
        // The warnings of Boost's headers.
        .warnings(false)
        .include(headers)
        .file("peers/boost.cpp")
        .try_compile("peers_boost")
        .map_err(|error| {
            println!("cargo::warning={error}");
            "g++ failed"
        })
}

/// The folder that holds `boost/`, if it is new enough.
fn headers() -> Option<PathBuf> {
    let root = env::var_os("BOOST_ROOT").map(PathBuf::from);
    let folders = match &root {
        Some(root) => vec![root.clone(), root.join("include")],
        None => vec!["/usr/include".into()],
    };
    let found = folders.into_iter().find(|folder| version(folder) >= Some(108_900));
    if let (None, Some(root)) = (&found, root) {
        println!(
            "cargo::warning=BOOST_ROOT: no headers of Boost 1.89 or newer in {}",
            root.display()
        );
    }
    found
}

/// The number in `boost/version.hpp`: 109000 is 1.90.
fn version(folder: &Path) -> Option<u32> {
    let file = folder.join("boost/version.hpp");
    let text = fs::read_to_string(&file).ok()?;
    println!("cargo::rerun-if-changed={}", file.display());
    let number = text
        .lines()
        .find_map(|line| line.strip_prefix("#define BOOST_VERSION "))?;
    number.trim().parse().ok()
}
