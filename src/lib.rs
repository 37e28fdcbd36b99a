//! A lock-free, concurrent, in-process membership filter. It is a Bloom filter in cache-line blocks
//! of `AtomicU64`, hashed with Murmur3. Many threads fill it and ask it at the same time.
//!
//! A lookup answers "certainly not" or "probably". For a key that was inserted it always answers
//! "probably". For any other key it answers "certainly not", except at a rate of false positives
//! that you choose. A lookup touches one cache line.
//!
//! # When not to use it
//!
//! - The set must be exact, or listed, or counted exactly: use a hash set. Up to some ten thousand
//!   keys a hash set is small enough anyway.
//! - Keys must be removed one by one: [`CuckooFilter`], [`DLeftFilter`] and [`CountingBloom`] can
//!   do this. The other filters forget a whole generation at a time ([`WindowedBloom`]), are
//!   cleared, or are replaced while they serve ([`CacheGuard::rebuild`]).
//! - Only one thread uses the filter, and memory is scarce: one line per key costs 7% more memory
//!   than a textbook Bloom filter at a rate of 1%, 18% at 1e-4 and 43% at 1e-6. A filter without
//!   atomics also inserts faster.
//! - Strangers choose the keys, and the default hasher stays: they can make collisions under any
//!   seed of Murmur3. Use [`SipHash13`]; [the module `hash`](crate::hash) says why. A
//!   [`CacheGuard`] made by [`with_capacity`](CacheGuard::with_capacity) uses it.
//!
//! # Example
//!
//! ```
//! use lanebloom::ConcurrentBloom;
//! use std::sync::Arc;
//! use std::thread;
//!
//! let seen = Arc::new(ConcurrentBloom::builder().expected_keys(1_000_000).false_positive_rate(0.01).build()?);
//!
//! let crawler = {
//!     let seen = Arc::clone(&seen);
//!     thread::spawn(move || ["/a", "/b", "/a"].into_iter().filter(|url| seen.insert(*url)).count())
//! };
//! assert_eq!(crawler.join().unwrap(), 2);
//! assert!(seen.contains("/b"));
//! assert!(!seen.contains("/c"));
//!
//! // In batches it is faster: many keys are hashed and probed at once, in vectors, and their lines are fetched together.
//! let mut found = [false; 3];
//! seen.contains_batch(&["/a", "/b", "/c"], &mut found);
//! assert_eq!(found, [true, true, false]);
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! # Keys are untyped
//!
//! A filter sees the bytes of a key, never its type. `insert(&17)` inserts an `i32`.
//! `contains(&17u64)` compiles but does not find it:
//!
//! ```
//! # let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build()?;
//! filter.insert(&17);
//! assert!(filter.contains(&17i32) && !filter.contains(&17u64));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! Name the type of a filter's keys in one place. In tests and debug builds, wrap the filter's
//! hasher in [`OneKeyType`](hash::OneKeyType), which panics when a key has another type. The module
//! [`funnel`] lists the bytes of every type, and [recipes](funnel#recipes) for common keys. For
//! example, a UUID and its `u128` are two keys. A [`CacheGuard`] has a key type, so a key of
//! another type does not compile.
//!
//! # Which filter
//!
//! | the keys | take | a lookup asks | bits per key at 1% | rather not if |
//! |---|---|---|---|---|
//! | are about as many as you say | [`ConcurrentBloom`] | one line of the cache | 10.3 | there may be twice as many: 1% becomes 11% |
//! | are nobody knows how many | [`ScalableBloom`] | a line of each layer: 7 of them from 10 thousand keys to a million | 25 to 31; 70 from a thousand to ten million | the number is known within a factor of two |
//! | count for some minutes, or while they are among the last million | [`WindowedBloom`] | a line of each generation, 4 unless chosen otherwise | 22 | nothing needs to be forgotten |
//! | are removed again | [`CountingBloom`] | one line | 46 | few are ever removed: rebuild then |
//! | are removed again, at less memory | [`CuckooFilter`], [`DLeftFilter`] | two words, or four buckets | 12.5; 20 at 0.16% | inserts must never fail: these say so when they are full |
//! | are removed once and never come back, and some may be missing | [`TombstoneBloom`] | a line in each of two filters | 26 | a present key must never be missed |
//! | are in a filter that a Java program wrote with Guava, or reads | [`GuavaBloom`] | 7 lines for a present key, 2 to 3 for an absent one | 9.6 | no Java program is there |
//! | are in Redis under RedisBloom's `BF` commands | [`RedisBloom`] | about 8 lines of each filter in the chain | 11, and 23 in a chain of seven | Redis need not have them |
//! | are in a plain Redis bitmap that other programs fill | `redis::RedisBitmap` (feature `redis`) | the server, or a copy: a line for each of its bits | theirs | a filter in each process will do |
//!
//! A [`CacheGuard`] keeps requests for made-up keys away from a store. It can serve from any filter
//! whose inserts cannot fail: [`GuardFilter`] lists these filters. With the feature `redis`, many
//! processes can share one set, and each process answers from its own memory. Use
//! `redis::SharedBloom`, or `redis::SharedWindow` for a set that forgets.
//!
//! The first three filters, and those that can delete, are [saved and loaded](codec): as bytes, as
//! streams, as files that a crash cannot halve, and through `serde`. A [`BloomView`] answers
//! directly from the bytes of a saved [`ConcurrentBloom`], also in a mapped file. Deltas of a
//! [`ConcurrentBloom`] keep replicas up to date.
//!
//! # Consistency
//!
//! Threads may rely on the promises below. The model checker loom tries each promise in every
//! interleaving (`loom-tests/`). "Happens before" has the meaning of the memory model: by joining a
//! thread, through a lock or a channel, or through any `Release`/`Acquire` pair.
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, the lookup
//!    answers true. This also holds for inserts that answered false.
//! 2. **Answers of inserts.** An insert answers true if this call changed the filter. If several
//!    threads race to insert a key that the filter does not hold, at least one gets true. With one
//!    [word per key](bloom::Builder::words_per_key) *exactly* one gets true. The answer is then a claim
//!    ("I am the one to fetch this URL"). With more words several threads may get true, since each
//!    can be first in another word. (In either mode a false positive can leave a new key without a
//!    winner: at the chosen rate, or because other keys were inserted at that moment.)
//! 3. **Publication.** If a lookup answers true, or an insert false, some threads have set the bits
//!    in question. The caller then sees everything that those threads did before they set the bits.
//!    This costs nothing on x86-64 and a barrier on Arm, on hits only. (For a false positive the
//!    bits belong to other keys.)
//! 4. **Lock-freedom.** Inserts and lookups never block, whatever other threads do, and write no
//!    counter. On some CPUs an atomic OR is a compare-exchange loop. A retry there means that
//!    another thread set a bit of that word: at most 64 times in the word's life. Inserts and
//!    lookups never allocate, except for [dense batches](#inserting-in-bulk), which work without
//!    the memory if they cannot get it.
//! 5. **The whole filter beside inserts.** [`union_from`](ConcurrentBloom::union_from), `clone`,
//!    comparison, [snapshots and deltas](codec) and the figures read or write a live filter safely.
//!    Union, clone, snapshot and delta hold at least every insert that happened before them, and
//!    pass its publication on. [`clear`](ConcurrentBloom::clear) cannot be made safe, so it takes
//!    `&mut self`.
//! 6. **The rate.** At the expected number of keys the false-positive rate is at most the chosen
//!    one, within sampling noise, from 10% down to 1e-6. The builder solves a model of the blocked
//!    filter for the rate; `tests/stress/rates.rs` measures it.
//! 7. **Same bits everywhere.** The same keys, hasher, seed and layout set the same bits on every
//!    platform, byte order and instruction set. (With a `BuildHasher` of another crate this holds
//!    [as far as its hashes](hash#what-a-buildhasher-is-fed) are the same.)
//!
//! # Features
//!
//! Features only add. No feature changes a result.
//!
//! - `std` (default): random keys for [`SipHash13`], Guava's streams by `std::io`, and the choice
//!   of AVX-512 or AVX2 at run time. Without `std` the crate is `no_std` + `alloc`. It then uses
//!   AVX-512 or AVX2 if the compilation target has them.
//! - `guard` (default, needs `std`): [`CacheGuard`], with the `arc-swap` crate.
//! - `window` (default, needs `std`): [`WindowedBloom`], with the `arc-swap` crate.
//! - `rayon` (needs `std`): batches, unions and collecting on the threads of rayon's pool.
//! - `mmap` (needs `std`): [`BloomView::map`] answers lookups from a file mapped into memory, with
//!   the `memmap2` crate.
//! - `serde`: `Serialize` and `Deserialize` of the filters, as [snapshots](codec).
//! - `uuid`: keys of the type `uuid::Uuid`.
//! - `bytes`: keys of the types `bytes::Bytes` and `bytes::BytesMut`.
//! - `redis` (needs `std`): filters in Redis, by blocking connections of the `redis` crate.
//! - `redis-tokio`: the same through tokio, on a multiplexed connection.
//!
//! # Cost
//!
//! Bits of memory per key, for the words per key that the builder chooses by itself:
//!
//! | rate | 10% | 3% | 1% | 0.1% | 1e-4 | 1e-5 | 1e-6 |
//! |---|---|---|---|---|---|---|---|
//! | textbook | 4.8 | 7.3 | 9.6 | 14.4 | 19.2 | 24.0 | 28.8 |
//! | here | 5.0 | 7.7 | 10.3 | 15.8 | 22.6 | 31.1 | 41.1 |
//! | words per key | 1 | 2 | 2 | 4 | 4 | 4 | 4 |
//!
//! Use batches for speed. A batch of a few keys is slower than single calls. A batch of 16 to 32
//! keys or more is faster, and a batch of hundreds is faster by a factor of two to five. With
//! AVX-512 a lookup then takes 1.1 to 2.4 ns from a filter of up to 8 MiB (Zen 4).
//!
//! A single insert of a new key costs one atomic operation per word, of 2.5 ns (Zen 3) to 5 (Zen 5)
//! each. An insert of a present key, like a lookup, costs loads only, and leaves the line shared
//! among the cores. In a filter larger than the caches one cache miss hides all of this, and
//! batches overlap their cache misses. The
//! [README](https://docs.rs/crate/lanebloom/latest/source/README.md) has figures, with the machine
//! and the cases that we lose.

//! # Inserting in bulk
//!
//! A batch is dense if it has at least 1024 keys and 6 keys per line (an eighth of the keys that a
//! filter for 1% is for). A dense batch of hashes or keys costs less than one atomic operation a
//! key. Plain stores insert it into a private copy of the filter. Then one atomic OR adds each word
//! that changed. For a filter beyond 1 MiB, the hashes are first sorted by region, and the filter
//! is passed through a region at a time. So the more keys a call gets at once the better. The keys
//! of a batch become visible to other threads towards its end.
//!
//! This needs memory, which is freed at the end of the call: up to 1 MiB for the copy, and 8 bytes
//! for each sorted hash. At most 8 million hashes or 16 per line (twice the filter's size),
//! whichever is more, are sorted at a time. Without the memory the keys are inserted one after
//! another.
//!
//! | all keys that the filter is for, at 1%, ns per key | 512 KiB | 8 MiB | 64 MiB | 512 MiB |
//! |---|--:|--:|--:|--:|
//! | in batches of 1024, one after another | 20 | 24 | 28 | 34 |
//! | in one batch, in bulk | 6.8 | 11 | 23 | 27 |
//! | in one batch, by `insert_hashes_mut` | 4.9 | 11 | 12 | 12 |
//! | in one batch, in bulk by two threads | 8.7 | 6.7 | 13 | 13 |
//!
//! (Pre-hashed keys, an Emerald Rapids Xeon with AVX-512 and 2 MiB of L2. Fresh memory is expensive
//! on this virtual machine, and the larger filters' bulk inserts pay for it. Where the memory had
//! been touched a moment before, 64 MiB took 13.)
//!
//! A filter that is still being built belongs to one thread and needs no atomics:
//! [`insert_hashes_mut`](ConcurrentBloom::insert_hashes_mut),
//! [`insert_batch_mut`](ConcurrentBloom::insert_batch_mut). With the feature `rayon` all cores fill
//! it (`par_insert_hashes`, `par_insert_batch`, `build_from_par_iter`), and each core works on a
//! region of its own. `examples/scoped_threads.rs` shows how to do it with plain threads.
//!
//! A new filter's memory is untouched zero pages, so building takes no time, however large the
//! filter is. The thread that first inserts into a page creates the page. The memory begins at a
//! cache line. From 4 MiB on it begins at a huge page of 2 MiB, which the crate asks Linux for.

#![no_std]
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

#[cfg(not(target_has_atomic = "64"))]
compile_error!("lanebloom needs 64-bit atomics");

mod bits;
mod bulk;
pub mod codec;
mod counters;
mod error;
mod filter;
mod flat;
pub mod funnel;
#[cfg(feature = "guard")]
mod guard;
pub mod hash;
mod kernel;
mod layout;
mod logarithm;
mod memory;
mod murmur2;
mod murmur3;
mod once;
mod one_key_type;
mod pattern;
#[cfg(feature = "redis")]
pub mod redis;
mod sizing;
mod source;
mod sync;

pub use error::{BuildError, FullError, IncompatibleError, InsertError, SnapshotError};
pub use filter::bloom::{self, ConcurrentBloom};
pub use filter::counting::{self, CountingBloom};
pub use filter::cuckoo::{self, CompactCuckoo, CuckooFilter};
pub use filter::dleft::{self, DLeftFilter};
pub use filter::engine::{
    Count, Engine, Estimate, FixedSize, Insert, InsertFlagged, Outcome, Proportional, Remove, Stored, Total, Union,
};
pub use filter::guava::error::GuavaReadError;
pub use filter::guava::{self, GuavaBloom};
pub use filter::redisbloom::error::{RedisBloomInsertError, RedisBloomLoadError};
pub use filter::redisbloom::{self, RedisBloom};
pub use filter::scalable::{self, ScalableBloom};
pub use filter::tombstone::{self, TombstoneBloom};
pub use filter::view::{self, BloomView};
#[cfg(feature = "window")]
pub use filter::windowed::{self, WindowedBloom};
pub use filter::{Builder, Figures, Filter, Planned};
pub use funnel::{ByHash, Funnel, Sink, UnencodedChars, Utf16};
#[cfg(feature = "guard")]
pub use guard::error::RebuildError;
#[cfg(feature = "guard")]
pub use guard::{Admission, CacheGuard, GuardFilter, GuardStats, InsertOnDrop, Rebuild};
pub use hash::{KeyHasher, Murmur3, Murmur3Sink, SipHash13};

#[doc(hidden)]
pub use kernel::{instruction_sets, limit_instruction_set};

/// The README's code, which runs as a test.
#[cfg(all(doctest, feature = "guard"))]
#[doc = include_str!("../README.md")]
struct Readme;
