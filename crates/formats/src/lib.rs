//! The filters of other systems, bit for bit, without a JVM or a server: the `BloomFilter`s of
//! Guava and of Spark, the filters in Parquet files, and the `BF` and `CF` filters of Redis. They
//! read what those programs wrote, give the same answers, and write what those programs read.
//!
//! # When not to use it
//!
//! - You own both ends: use a filter of the crate [`lanebloom`]. A `ConcurrentBloom` is faster,
//!   since a key's bits lie in one cache line; here they lie anywhere, except Parquet's.
//! - The filter stays in Redis, and each lookup asks the server: this crate talks to no server. The
//!   crate `lanebloom-redis` does, and transfers these filters.
//! - Strangers choose the keys: these systems hash without a secret, so strangers can make keys
//!   that collide. [The module `hash`](lanebloom::hash) says more.
//!
//! # Example
//!
//! ```
//! use lanebloom_formats::{GuavaBloom, RedisBloom};
//!
//! // BloomFilter.create(Funnels.stringFunnel(UTF_8), 1000, 0.01),
//! // put("ann"), writeTo(out)
//! let filter = GuavaBloom::with_capacity(1000, 0.01)?;
//! filter.insert("ann");
//! let stream = filter.to_bytes();
//! let (copy, _) = GuavaBloom::from_bytes(&stream)?;
//! assert!(copy.contains("ann") && !copy.contains("eve"));
//!
//! // BF.RESERVE seen 0.01 1000, BF.ADD seen ann, BF.SCANDUMP; then BF.LOADCHUNK
//! let mut seen = RedisBloom::with_capacity(1000, 0.01)?;
//! seen.insert("ann")?;
//! let copy = RedisBloom::from_scandump(seen.to_loadchunks(), 1 << 20)?;
//! assert!(copy.contains("ann") && !copy.contains("eve"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The filters
//!
//! | filter | of | reads, writes | a lookup reads | bits per key at 1% |
//! |---|---|---|---|---|
//! | [`GuavaBloom`] | Guava, the Java library | [`read_from`](GuavaBloom::read_from), [`write_to`](GuavaBloom::write_to) | 7 lines for a present key, 2 to 3 for an absent one | 9.6 |
//! | [`SparkBloom`] | Spark, V1 and V2 | [`read_from`](SparkBloom::read_from), [`write_to`](SparkBloom::write_to) | as a `GuavaBloom` | 9.6 |
//! | [`SplitBlockBloom`] | Parquet, Milvus | [`from_parquet`](SplitBlockBloom::from_parquet), [`to_parquet`](SplitBlockBloom::to_parquet) | half a line | 10.5 |
//! | [`RedisBloom`] | Redis, `BF` commands | [`from_scandump`](RedisBloom::from_scandump), [`to_loadchunks`](RedisBloom::to_loadchunks) | about 8 lines of each layer | 11, and 23 in a chain of seven |
//! | [`RedisCuckoo`] | Redis, `CF` commands | [`from_scandump`](RedisCuckoo::from_scandump), [`to_loadchunks`](RedisCuckoo::to_loadchunks) | two buckets of each layer | 8 to 12, at 1.6% or more |
//!
//! Many threads can insert into a `GuavaBloom`, a `SparkBloom` or a `SplitBlockBloom`, and look up
//! at once, lock-free. The filters of Redis take lookups of many threads at once, and `&mut self`
//! to insert.
//!
//! A [`SplitBlockBank`] asks the filters of many Parquet files with one key at once.
//!
//! The module of each filter lists which Rust type stands for which of the system's types, and how
//! a service moves over: [`guava`], [`spark`], [`splitblock`], [`redisbloom`], [`rediscuckoo`].
//!
//! # Hostile bytes
//!
//! Whatever the bytes are, reading ends in a valid filter or in an error that names the cause. It
//! does not panic or hang. It checks lengths before it allocates, and allocates no more than the
//! given limit. The limit of a dump also holds when the filter grows later.
//!
//! # Features
//!
//! | feature | |
//! |---|---|
//! | `std` (default) | Guava's and Spark's streams by `std::io`. Without it the crate is `no_std` + `alloc` |
//! | `serde` | `Serialize` and `Deserialize` of [`GuavaBloom`] and [`SparkBloom`], as their streams |
//! | `arrow` | Arrow's arrays as keys of [`SplitBlockBloom`]. Needs Rust 1.88, as Arrow does |

#![deny(missing_docs, unsafe_code)]
#![no_std]
// For links from the pages of other crates that are made without these pages.
#![doc(html_root_url = "https://docs.rs/lanebloom-formats/latest")]
// On docs.rs every item shows which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Here and not in Cargo.toml, since they are not for the tests.
#![warn(
    clippy::alloc_instead_of_core,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod java;

mod chunks;
mod error;
mod flat;
pub mod guava;
#[doc(hidden)]
pub mod internal;
mod logarithm;
mod murmur2;
pub mod redisbloom;
pub mod rediscuckoo;
mod scandump;
pub mod spark;
pub mod splitblock;

use alloc::vec::Vec;
pub use error::ReadError;
#[doc(inline)]
pub use guava::GuavaBloom;
pub use java::{JavaBloom, JavaBuilder, JavaExclusive, JavaFormat, JavaKey, JavaPair};
use lanebloom::internal::{Isa, Place};
#[doc(no_inline)]
pub use lanebloom::{Absent, Answers, Bitmap, BuildError, Funnel, Hashed, IncompatibleError, Statistics};
#[doc(inline)]
pub use redisbloom::RedisBloom;
pub use redisbloom::error::RedisBloomInsertError;
#[doc(inline)]
pub use rediscuckoo::RedisCuckoo;
#[doc(inline)]
pub use spark::SparkBloom;
#[doc(inline)]
pub use splitblock::{SplitBlockBank, SplitBlockBloom, SplitBlockView};

/// Keys that are hashed at a time.
const CHUNK: usize = 1024;

/// Calls `work`, which passes the answers of windows on: in order, each with its start, its length
/// of at most 64, and its bitmap. No window reaches into a second word of the answers.
fn told<R>(place: Place<'_>, work: impl FnOnce(&mut dyn FnMut(usize, usize, u64)) -> R) -> R {
    match place {
        Place::Flags(out) => {
            let unpack = Isa::best().unpack();
            work(&mut |at, len, answers| unpack(&[answers], &mut out[at..][..len]))
        }
        Place::Bitmap(out) => {
            out.fill(0);
            work(&mut |at, _, answers| out[at / 64] |= answers << (at % 64))
        }
        Place::Absent(absent) => work(&mut |at, len, answers| {
            (0..len).filter(|i| answers >> i & 1 == 0).for_each(|i| absent(at + i));
        }),
        Place::Nowhere => work(&mut |_, _, _| ()),
    }
}

/// A copy for `Clone`, which aborts if the allocation of these bytes failed.
fn or_abort<T>(copy: Result<T, BuildError>, bytes: usize) -> T {
    copy.unwrap_or_else(|_| {
        let layout = core::alloc::Layout::array::<u8>(bytes);
        alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
    })
}

/// Appends a layer to a chain of Redis.
fn push<L>(layers: &mut Vec<L>, layer: L) -> Result<(), BuildError> {
    let reserved = layers.try_reserve(1);
    reserved.map_err(|_| BuildError::out_of_memory(size_of::<L>() * (layers.len() + 1)))?;
    layers.push(layer);
    Ok(())
}

/// The code in the README of the package, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
