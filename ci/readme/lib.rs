//! The programs in README.md, which run as tests. They are compiled as their reader pastes them:
//! each is the `main.rs` of a package that depends on the crates that it names.

#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
