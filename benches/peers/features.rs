//! For which CPU features the contestants' code was compiled, or which it chooses when it runs.

use crate::Args;
use std::env::consts::ARCH;

/// Whose code is measured.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Library {
    Lanebloom,
    Fastbloom,
    SbbfRsSafe,
    Bloomfilter,
    GrowableBloom,
    Fastmurmur3,
    #[cfg(has_boost)]
    Boost,
}

impl Library {
    fn name(self) -> &'static str {
        match self {
            Self::Lanebloom => "lanebloom",
            Self::Fastbloom => "fastbloom",
            Self::SbbfRsSafe => "sbbf-rs-safe",
            Self::Bloomfilter => "bloomfilter",
            Self::GrowableBloom => "growable-bloom-filter",
            Self::Fastmurmur3 => "fastmurmur3",
            #[cfg(has_boost)]
            Self::Boost => "Boost.Bloom",
        }
    }

    fn features(self, args: &Args) -> String {
        match self {
            Self::Lanebloom => format!("{} unless a row or column names another, at run time", args.level()),
            Self::SbbfRsSafe => format!("{}, at run time", sbbf()),
            Self::Fastbloom | Self::Bloomfilter | Self::GrowableBloom | Self::Fastmurmur3 => rustc(),
            #[cfg(has_boost)]
            Self::Boost => env!("BUILD_OF_BOOST").into(),
        }
    }
}

/// The kernel that sbbf-rs-safe chooses.
fn sbbf() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        return "AVX2";
    } else if is_x86_feature_detected!("sse4.1") {
        return "SSE4.1";
    }
    if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
        "NEON"
    } else {
        "none"
    }
}

/// The target that rustc compiles for: more than the baseline by `-C target-cpu`, for example.
fn rustc() -> String {
    let features = [
        ("avx2", cfg!(target_feature = "avx2")),
        ("bmi2", cfg!(target_feature = "bmi2")),
        ("avx512f", cfg!(target_feature = "avx512f")),
        ("sve", cfg!(target_feature = "sve")),
    ];
    let mut all = features.into_iter().filter(|(_, is_there)| *is_there).peekable();
    if all.peek().is_none() {
        return format!("rustc for the baseline of {ARCH}");
    }
    all.fold(format!("rustc for {ARCH} with"), |text, (name, _)| text + " " + name)
}

/// A line of a table's head: the features of each library in the table.
pub(crate) fn features(args: &Args, libraries: impl IntoIterator<Item = Library>) -> String {
    let mut all: Vec<Library> = Vec::new();
    for library in libraries {
        if !all.contains(&library) {
            all.push(library);
        }
    }
    let each = |library: Library| format!("{}: {}", library.name(), library.features(args));
    let all: Vec<String> = all.into_iter().map(each).collect();
    format!("CPU features: {}\n\n", all.join("; "))
}
