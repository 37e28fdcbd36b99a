//! Long pages. The repository has the same texts in `docs/`.

#[doc = include_str!("../docs/CHOICES.md")]
pub mod choices {}

#[doc = include_str!("../docs/COST.md")]
pub mod cost {}

#[doc = include_str!("../docs/FORMAT.md")]
pub mod format {}

#[doc = include_str!("../docs/HASHES.md")]
pub mod hashes {}

#[doc = include_str!("../docs/LANGUAGES.md")]
pub mod languages {}

/// The code in the README of the package, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
