//! The promises of each type at two sizes: small with assertions, where everything is slow; large
//! in a release build, where ci/release.sh runs them.

mod bulk;
mod counting;
mod cuckoo;
mod dleft;
#[cfg(feature = "rayon")]
mod parallel;
mod scalable;
mod tombstone;
