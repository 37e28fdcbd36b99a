//! Data that is the same on every machine: hashes, the bits of filters, and bytes that are written,
//! read, sent, refused and kept in files. The bytes are the crate's own.

mod any;
mod bank;
mod bitmap;
mod contract;
#[path = "../alloc/counting.rs"]
#[expect(dead_code, reason = "other programs use the rest")]
mod counting;
mod fields;
mod filter;
mod hash;
mod histories;
mod peek;
mod recipes;
mod replace;
mod snapshot;
mod snapshot_deletable;
mod snapshot_static;
