//! The filters of other systems: their promises, their systems' own results, and bytes that are
//! read, written and refused.

/// The answers of a batch of lookups. (The filters of this crate share the names of methods, and no
/// trait.)
macro_rules! found {
    ($filter:expr, $keys:expr) => {{
        let mut found = Vec::new();
        $filter.contains_batch($keys, &mut found);
        found
    }};
}

mod contract;
mod guava;
mod guava_jvm;
mod jvm;
mod redisbloom;
mod rediscuckoo;
mod scandump;
#[cfg(feature = "serde")]
mod serde;
mod spark;
mod spark_jvm;
mod splitblock_bank;
mod splitblock_bytes;
mod splitblock_golden;
mod splitblock_whole;
