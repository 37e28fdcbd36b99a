//! Compiles libraries of other languages for the benches `peers` and `bank`. Without one, the bench
//! is built without it, and its tables say why.
//!
//! Boost.Bloom, of C++: `peers/boost.cpp`. Needs g++ and the headers of Boost 1.89 or newer. The
//! environment variable `BOOST_ROOT` names the folder with the headers: `boost/version.hpp` is in
//! it (a release of Boost, unpacked) or in its subfolder `include` (a prefix of an installation,
//! such as /usr/local). If it is not set, they are looked for in /usr/include. `ci/fetch/boost.sh`
//! fetches the headers.
//!
//! seqan's interleaved Bloom filter, of C++: `bank/seqan.cpp`. The environment variable
//! `SEQAN_ROOT` names a folder whose subfolder `include` has SeqAn's headers (`ci/fetch/seqan.sh`
//! fetches them).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_boost, has_seqan)");
    // For the tables: how it was compiled, or why it was not.
    for (name, built) in [("boost", boost()), ("seqan", seqan())] {
        if built.is_ok() {
            println!("cargo::rustc-cfg=has_{name}");
        }
        let text = built.unwrap_or_else(|reason| format!("not built: {reason}"));
        println!("cargo::rustc-env=BUILD_OF_{}={text}", name.to_uppercase());
    }
}

fn boost() -> Result<String, &'static str> {
    println!("cargo::rerun-if-changed=peers/boost.cpp");
    println!("cargo::rerun-if-env-changed=BOOST_ROOT");
    let headers = headers().ok_or("no headers of Boost 1.89 or newer (BOOST_ROOT)")?;
    let mut build = cc::Build::new();
    build.cpp(true).compiler("g++").std("c++17").define("NDEBUG", None);
    build.include(headers).file("peers/boost.cpp");
    compile(build, "peers_boost", &["-march=native"])
}

fn seqan() -> Result<String, &'static str> {
    println!("cargo::rerun-if-changed=bank/seqan.cpp");
    println!("cargo::rerun-if-env-changed=SEQAN_ROOT");
    let root = PathBuf::from(env::var_os("SEQAN_ROOT").ok_or("no headers of SeqAn (SEQAN_ROOT)")?);
    let include = root.join("include");
    let mut build = cc::Build::new();
    build.cpp(true).compiler("g++").std("c++23").define("NDEBUG", None);
    build.include(&include).file("bank/seqan.cpp");
    if !include.join("seqan3/version.hpp").is_file() {
        println!(
            "cargo::warning=SEQAN_ROOT: {} has no headers of SeqAn",
            include.display()
        );
        return Err("no headers of SeqAn in SEQAN_ROOT");
    }
    compile(build, "peers_seqan", &["-march=native", "-fopenmp-simd"])
}

/// Compiles with `flags`, which say for which CPUs. Returns the compiler and the flags.
fn compile(mut build: cc::Build, name: &str, flags: &[&str]) -> Result<String, &'static str> {
    // The code is for the machine that compiles. MSVC links no library of g++.
    if env::var("HOST") != env::var("TARGET") || env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("msvc") {
        return Err("no gcc for this target");
    }
    let compiler = build.try_get_compiler().map_err(|_| "no compiler")?;
    let version = Command::new(compiler.path()).arg("--version").output();
    let version = version.map_err(|_| {
        println!("cargo::rerun-if-env-changed=PATH");
        "no gcc or g++"
    })?;
    // The warnings of other people's code.
    build.opt_level(3).debug(false).warnings(false).flags(flags);
    build.try_compile(name).map_err(|error| {
        println!("cargo::warning={error}");
        "the compiler failed"
    })?;
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.lines().next().unwrap_or("a compiler");
    Ok(format!("{version} -O3 {}", flags.join(" ")))
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
    defined(&text, "BOOST_VERSION")?.parse().ok()
}

/// The value that a header defines a name as.
fn defined<'a>(header: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| line.strip_prefix("#define ")?.strip_prefix(name)?.strip_prefix(' ');
    header.lines().find_map(value).map(str::trim)
}
