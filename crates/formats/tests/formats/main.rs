//! The filters of other systems: their promises, their systems' own results, and bytes that are
//! read, written and refused.

mod contract;
mod guava;
mod guava_jvm;
mod jvm;
mod redisbloom;
mod rediscuckoo;
#[cfg(feature = "serde")]
mod serde;
mod spark;
mod spark_jvm;
mod splitblock_bank;
mod splitblock_bytes;
mod splitblock_golden;
mod splitblock_whole;
