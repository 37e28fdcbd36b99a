//! Data that is the same on every machine: hashes, the bits of filters, and bytes that are written,
//! read, sent, refused and kept in files. The bytes are the crate's own, Guava's and RedisBloom's.

#[path = "../common/mod.rs"]
mod common;

mod bitmap;
mod contract;
mod filter;
mod guava;
mod guava_jvm;
mod hash;
mod hash_batch;
mod redisbloom;
mod rediscuckoo;
mod replace;
mod snapshot;
mod snapshot_deletable;
