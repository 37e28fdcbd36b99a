//! Bytes that are written, read, sent, refused and kept in files: the crate's own, Guava's and RedisBloom's.
#![cfg(feature = "std")]

#[path = "../common/mod.rs"]
mod common;

mod guava;
mod guava_jvm;
mod redisbloom;
mod replace;
mod snapshot;
mod snapshot_deletable;
