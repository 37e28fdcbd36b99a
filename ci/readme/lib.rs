//! The programs in README.md, which run as tests. They are compiled as their reader pastes them:
//! each is the `main.rs` of a package that depends on the crates that it names. Likewise the
//! examples of a page that need drivers of databases.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../../crates/guard/src/sources.md")]
struct Sources;
