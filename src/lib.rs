//! A lock-free, concurrent, in-process membership filter: a Bloom filter in cache-line blocks of
//! `AtomicU64`, hashed with Murmur3, that many threads fill and ask at once.
//!
//! It answers "certainly not" or "probably": for a key that was inserted always "probably", for any
//! other "certainly not" but for a rate of false positives that you choose. A lookup touches one
//! cache line.
//!
//! # When not to use it
//!
//! - The set must be exact, or listed, or counted exactly: use a hash set. Up to some ten thousand
//!   keys it is small enough anyway.
//! - Keys must be removed one by one: [`CuckooFilter`], [`DLeftFilter`] and [`CountingBloom`] can.
//!   The others forget a whole generation at a time ([`WindowedBloom`]), are cleared, or are
//!   replaced while they serve ([`CacheGuard::rebuild`]).
//! - Only one thread uses it, and a key more or less in a thousand of memory matters: one line per
//!   key costs 7% more memory than a textbook Bloom filter at a rate of 1%, 18% at 1e-4 and 43% at
//!   1e-6. A filter without atomics inserts faster, too.
//! - Strangers choose the keys, and the default hasher is left in place: they can make collisions
//!   under any seed of Murmur3. Take [`SipHash13`]; [the module `hash`](crate::hash) says why. A
//!   [`CacheGuard`] made by [`with_capacity`](CacheGuard::with_capacity) has it.
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
//! A filter sees the bytes of a key, never its type. `insert(&17)` inserts an `i32`;
//! `contains(&17u64)` compiles, and does not find it:
//!
//! ```
//! # let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build()?;
//! filter.insert(&17);
//! assert!(filter.contains(&17i32) && !filter.contains(&17u64));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! Name the type of a filter's keys in one place. In tests and debug builds, wrap the filter's
//! hasher in [`OneKeyType`](hash::OneKeyType), which panics where a key is of another type. The
//! module [`funnel`] has the bytes of every type, and [recipes](funnel#recipes) for common keys: a
//! UUID and its `u128` are two keys. A [`CacheGuard`] has a key type, so that a key of another type
//! does not compile.
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
//! A [`CacheGuard`] keeps requests for made-up keys from a store. It can serve from any filter
//! whose inserts cannot fail: [`GuardFilter`] says which. One set that many processes ask, each
//! from memory of its own, is `redis::SharedBloom`, or `redis::SharedWindow` where it forgets
//! (feature `redis`).
//!
//! The first three and those that can delete are [saved and loaded](codec), as bytes, streams,
//! files that a crash cannot halve, and through `serde`. Of a [`ConcurrentBloom`] a [`BloomView`]
//! answers from such bytes as they lie, in a mapped file too, and deltas keep replicas up to date.
//!
//! # Consistency
//!
//! What threads may rely on. Each promise is tried by the model checker loom in every interleaving
//! (`loom-tests/`). "Happens before" is meant as in the memory model: by joining a thread, through
//! a lock or a channel, or any `Release`/`Acquire` pair.
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, the lookup
//!    answers true. This holds for inserts that answered false too.
//! 2. **Answers of inserts.** An insert answers true if this call changed the filter. Of several
//!    threads racing to insert a key that the filter does not hold, at least one gets true. With
//!    one [word per key](Builder::words_per_key) *exactly* one does, which makes it a claim ("I am
//!    the one to fetch this URL"); with more, several may, since each can be first in another word.
//!    (In either mode a false positive can leave a new key without a winner: at the chosen rate, or
//!    because other keys were inserted at that moment.)
//! 3. **Publication.** If a lookup answers true, or an insert false, everything is visible that the
//!    threads which set the bits in question had done before they set them. It costs nothing on
//!    x86-64 and a barrier on Arm, on hits only. (Of a false positive the bits are other keys'.)
//! 4. **Lock-freedom.** Inserts and lookups never block, whatever other threads do, and no counter
//!    is written. Where an atomic OR is a compare-exchange loop, a retry means that another thread
//!    set a bit of that word: at most 64 times in the word's life. They never allocate, but for
//!    [dense batches](#inserting-in-bulk), which do without if they cannot.
//! 5. **The whole filter beside inserts.** [`union_from`](ConcurrentBloom::union_from), `clone`,
//!    comparison, [snapshots and deltas](codec) and the figures read or write a live filter safely.
//!    Union, clone, snapshot and delta hold at least every insert that happened before them, and
//!    pass its publication on. What cannot be made safe, [`clear`](ConcurrentBloom::clear), takes
//!    `&mut self`.
//! 6. **The rate.** At the expected number of keys the false-positive rate is at most the chosen
//!    one, within sampling noise, from 10% down to 1e-6. The builder solves a model of the blocked
//!    filter for it; `tests/stress/rates.rs` measures it.
//! 7. **Same bits everywhere.** The same keys, hasher, seed and layout set the same bits on every
//!    platform, byte order and instruction set. (With a `BuildHasher` of another crate this holds
//!    [as far as its hashes](hash#what-a-buildhasher-is-fed) are the same.)
//!
//! # Features
//!
//! Features only add; none changes a result.
//!
//! - `std` (default): random keys for [`SipHash13`], Guava's streams by `std::io`, and the choice
//!   of AVX-512 or AVX2 when the program runs. Without it the crate is `no_std` + `alloc`, and they
//!   are used where the target has them.
//! - `guard` (default, needs `std`): [`CacheGuard`], with the `arc-swap` crate.
//! - `window` (default, needs `std`): [`WindowedBloom`], with the `arc-swap` crate.
//! - `rayon` (needs `std`): batches, unions and collecting on the threads of rayon's pool.
//! - `mmap` (needs `std`): [`BloomView::map`], lookups in a file that is mapped into memory, with
//!   the `memmap2` crate.
//! - `serde`: `Serialize` and `Deserialize` of the filters, as [snapshots](codec).
//! - `uuid`: keys of the type `uuid::Uuid`.
//! - `bytes`: keys of the types `bytes::Bytes` and `bytes::BytesMut`.
//! - `redis` (needs `std`): filters that are kept in Redis, by blocking connections of the `redis`
//!   crate.
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
//! Batches are what the filter is fastest at. A batch of a few keys is slower than single calls;
//! from 16 to 32 keys on it is faster, and at hundreds by a factor of two to five. With AVX-512 a
//! lookup then takes 1.1 to 2.4 ns from a filter of up to 8 MiB (Zen 4).
//!
//! Alone, a fresh insert costs one atomic operation per word, of 2.5 ns (Zen 3) to 5 (Zen 5) each;
//! an insert of a present key, like a lookup, costs loads only, and leaves the line shared among
//! the cores. In a filter beyond the caches all of this is hidden behind one cache miss, which
//! batches overlap. Figures, with the machine and the cases that we lose, are in the
//! [README](https://docs.rs/crate/lanebloom/latest/source/README.md).

//! # Inserting in bulk
//!
//! A batch of at least 1024 keys and 6 keys per line (an eighth of the keys that a filter for 1% is
//! for) is inserted for less than one atomic operation a key, whether it comes as hashes or as
//! keys: into a private copy of the filter by plain stores, from where each word that changed is
//! added by one atomic OR. A filter beyond 1 MiB is passed through a region at a time, after the
//! hashes were sorted by region. So the more keys a call gets at once the better, and the keys of a
//! batch become visible to other threads towards its end.
//!
//! The memory for that is freed at the end of the call, and without it the keys are inserted one
//! after another: up to 1 MiB for the copy, and for sorted hashes 8 bytes each, of at most 8
//! million of them or 16 per line (twice the filter's size), whichever is more.
//!
//! | all keys that the filter is for, at 1%, ns per key | 512 KiB | 8 MiB | 64 MiB | 512 MiB |
//! |---|--:|--:|--:|--:|
//! | in batches of 1024, one after another | 20 | 24 | 28 | 34 |
//! | in one batch, in bulk | 6.8 | 11 | 23 | 27 |
//! | in one batch, by `insert_hashes_mut` | 4.9 | 11 | 12 | 12 |
//! | in one batch, in bulk by two threads | 8.7 | 6.7 | 13 | 13 |
//!
//! (Pre-hashed keys, an Emerald Rapids Xeon with AVX-512 and 2 MiB of L2. On this virtual machine
//! fresh memory is dear, which the larger filters' bulk inserts pay for: where it had been touched
//! a moment before, 13 at 64 MiB.)
//!
//! A filter that is still being built, which nobody else has, needs no atomics at all:
//! [`insert_hashes_mut`](ConcurrentBloom::insert_hashes_mut),
//! [`insert_batch_mut`](ConcurrentBloom::insert_batch_mut). With the feature `rayon` all cores fill
//! it, each a region that no other works on: `par_insert_hashes`, `par_insert_batch`,
//! `build_from_par_iter`. How to do it with plain threads is in `examples/scoped_threads.rs`.
//!
//! A new filter's memory is zeros that nobody has touched yet, so that it is there at once, however
//! large; its pages come into being where keys are inserted, by the thread that inserts them. It
//! begins at a cache line, and from 4 MiB on at a huge page of 2 MiB, for which Linux is asked.

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

mod batch;
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
mod logarithm;
mod memory;
mod murmur2;
mod murmur3;
mod once;
mod one_key_type;
mod pattern;
#[cfg(feature = "redis")]
pub mod redis;
mod simd;
mod sizing;
mod source;
mod sync;

#[cfg(feature = "guard")]
pub use error::RebuildError;
pub use error::{
    BuildError, FullError, GuavaReadError, IncompatibleError, InsertError, RedisBloomInsertError, RedisBloomLoadError,
    SnapshotError,
};
pub use filter::bloom::{Builder, ConcurrentBloom};
pub use filter::counting::{self, CountingBloom};
pub use filter::cuckoo::{self, CompactCuckoo, CuckooFilter};
pub use filter::dleft::{self, DLeftFilter};
pub use filter::engine::{Count, Engine, Estimate, Insert, InsertFlagged, Remove, Stored, Union};
pub use filter::guava::{self, GuavaBloom};
pub use filter::redisbloom::{self, RedisBloom};
pub use filter::scalable::{self, ScalableBloom};
pub use filter::tombstone::{self, TombstoneBloom};
pub use filter::view::BloomView;
#[cfg(feature = "window")]
pub use filter::windowed::{self, WindowedBloom};
pub use filter::{Figures, Filter};
pub use funnel::{ByHash, Funnel, Sink, UnencodedChars, Utf16};
#[cfg(feature = "guard")]
pub use guard::{Admission, CacheGuard, GuardFilter, GuardStats, InsertOnDrop, Rebuild};
pub use hash::{KeyHasher, Murmur3, Murmur3Sink, SipHash13};

#[doc(hidden)]
pub use simd::{instruction_sets, limit_instruction_set};

/// The README's code, which runs as a test.
#[cfg(all(doctest, feature = "guard"))]
#[doc = include_str!("../README.md")]
struct Readme;
