//! The promises of each type at two sizes: small with assertions, where everything is slow; large
//! in a release build, where ci/release.sh runs them.

#[path = "../common/mod.rs"]
mod common;

mod bulk;
mod counting;
mod cuckoo;
mod dleft;
#[cfg(feature = "rayon")]
mod parallel;
mod scalable;
mod tombstone;
