//! A module for each command.

pub(crate) mod bench;
pub(crate) mod build;
pub(crate) mod convert;
pub(crate) mod dedup;
pub(crate) mod info;
pub(crate) mod merge;
pub(crate) mod plan;
pub(crate) mod plot;
pub(crate) mod query;
