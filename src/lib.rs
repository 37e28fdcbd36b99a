//! A lock-free membership filter for one process, shared by many threads: a Bloom filter in cache
//! lines of `AtomicU64`, and its relatives that grow, forget or delete.
//!
//! A lookup returns "certainly not" or "probably". For a key that was inserted it always returns
//! "probably". For any other key it returns "certainly not", except at a false-positive rate that
//! you choose. A lookup in a [`ConcurrentBloom`] touches one cache line. (At rates of 1e-5 and
//! below, a key has two lines, and most lookups of absent keys touch one.)
//!
//! # When not to use it
//!
//! - The set must be exact, or listed, or counted exactly: use a hash set, or a [`bitmap`] for
//!   integers below a bound. For some ten thousand keys a hash set is small enough anyway.
//! - Only one thread uses the filter, and memory is scarce: one line per key costs 13% more memory
//!   than a textbook Bloom filter at a rate of 1%, 16% at 0.1% and 23% at 1e-4. Two [lines per
//!   key](bloom::Builder::lines_per_key), the default from 1e-5 down, cost 11% at 1e-5 and 16% at
//!   1e-6. A filter without atomics also inserts new keys 3 to 13 times as fast (512 KiB,
//!   [Boost.Bloom and sbbf-rs-safe](docs::cost#losses)).
//! - Strangers choose the keys, and the filter has the default hasher: they can make collisions
//!   under any seed of Murmur3. Use [`SipHash13`]; the module [`hash`] compares the hashers. The
//!   crate `lanebloom-guard` uses SipHash by default.
//!
//! # Example
//!
//! ```
//! use lanebloom::{ConcurrentBloom, Hashed};
//! use std::{sync::Arc, thread};
//!
//! let seen = Arc::new(ConcurrentBloom::with_capacity(1_000_000, 0.01)?);
//!
//! let crawler = {
//!     let (seen, urls) = (Arc::clone(&seen), ["/a", "/b", "/a"]);
//!     thread::spawn(move || urls.iter().filter(|url| seen.insert(*url)).count())
//! };
//! assert_eq!(crawler.join().unwrap(), 2); // inserts that were new
//! assert!(seen.contains("/b") && !seen.contains("/c"));
//!
//! // Many keys at once, in vectors: a pipeline should collect hundreds of them.
//! let mut found = [false; 3];
//! seen.contains_batch(&["/a", "/b", "/c"], &mut found);
//! assert_eq!(found, [true, true, false]);
//!
//! // Hashes that you have, or that serve several filters, are keys too.
//! let hashes = ["/c", "/d"].map(|url| seen.hash(url));
//! seen.insert_batch(Hashed::slice(&hashes));
//! assert!(seen.contains("/c") && seen.contains(&Hashed(hashes[1])));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! **A filter sees the bytes of a key, not its type**: `17` (an `i32`) and `17u64` are two keys.
//! Name the type of a filter's keys in one place. In tests, [`OneKeyType`](hash::OneKeyType) panics
//! if a key has another type. The module [`funnel`] lists the bytes of every type.
//!
//! # The filters
//!
//! All but [`StaticFilter`] have `insert` and `contains`, batches (`insert_batch`,
//! `contains_batch`), and [`statistics`](Filter::statistics) such as their fill. They are made by
//! `with_capacity` or `builder`. [`Filter`] documents what filters share.
//!
//! | your keys | filter | a lookup reads | bits per key at 1% | not if |
//! |---|---|---|---|---|
//! | number known in advance | [`ConcurrentBloom`] | one cache line | 10.8 | there may be twice as many: 1% becomes 10% ([`is_overfull`](Statistics::is_overfull) reports it) |
//! | number not known | [`ScalableBloom`] | a line of each layer: 5 layers from 10 thousand keys to a million, 7 to ten million | 32 on average; 15 to 61 | you know the number within a factor of two |
//! | forgotten after some minutes, or after a million newer keys | [`WindowedBloom`] (feature `std`) | a line of each generation, 4 by default | 23 | nothing needs to be forgotten |
//! | added and removed | [`CountingBloom`] | one line | 44 | few are ever removed: rebuild then |
//! | added and removed, in less memory | [`CuckooFilter`], [`DLeftFilter`] | two words, or four buckets | 12.5; 20 at 0.16% | inserts must never fail: these report an error when they are full |
//! | removed once and never added again; a few may be missing | [`TombstoneBloom`] | a line in each of two filters | 28 | a present key must never be missed |
//! | let through once per minute or so | [`WindowedBloom`] with [`renew(false)`](windowed::Builder::renew) | the same | 23 | several requests per minute are allowed: a rate limiter counts, and no filter does |
//! | all there before the first lookup | [`StaticFilter`] | three cache lines at once | 7.9; 18.1 at 0.0015% | keys come later: there is no insert, and a new key takes a new build |
//!
//! At rates between 9e-4 and 2e-6 a [`CuckooFilter`] is smaller than a [`ConcurrentBloom`], at
//! 3e-6 by a quarter ([bits per key by rate](crate::docs::cost#memory)).
//!
//! And around them:
//!
//! | task | item |
//! |---|---|
//! | Look keys up by hashes that you have, or compute once for several filters | [`Hashed`] in place of a key, `Hashed::slice(&hashes)` in place of a batch |
//! | Read the answers of a batch as flags, bits, or positions of absent keys | the argument `out`: [`Answers`] lists its types |
//! | Ask a thousand filters with one key at once: which files, tenants or days may have it? | the module [`bank`] |
//! | Keep integers below a bound exactly, one bit for each | the module [`bitmap`] |
//! | Keep requests for made-up keys away from a store | [`CacheGuard`] and `GuardedCache`, of the crate [`lanebloom-guard`] |
//! | Save and load a filter | [`snapshot`](Filter::snapshot): bytes, a stream, a file; [`from_bytes`](Filter::from_bytes), [`read_from`](Filter::read_from); `serde`: see [`codec`] |
//! | Read a filter of any type, chosen by the bytes or by an option | [`AnyFilter`], [`hash::AnyHasher`] |
//! | Free the unused memory of a large filter, without its keys | [`exclusive`](ConcurrentBloom::exclusive): [`fold_to_rate`](Exclusive::fold_to_rate), [`fold`](Exclusive::fold) |
//! | Combine two filters | [`union_from`](ConcurrentBloom::union_from), [`intersection_from`](Exclusive::intersection_from) |
//! | Compare two filters | [`with`](ConcurrentBloom::with), a [`Pair`]: subset, disjoint, number of common keys, delta |
//! | Look up keys in a saved filter without loading it | [`BloomView`], [`StaticView`], [`bank::BankView`], also on a mapped file (feature `mmap`) |
//! | Read and write the filters of Guava, Spark, Parquet and Redis (commands `BF` and `CF`), bit for bit | the crate [`lanebloom-formats`] |
//! | Share one set among processes; use filters and plain bitmaps in Redis | the crate [`lanebloom-redis`] |
//! | Use filters at a shell | the command `lanebloom`, of the crate [`lanebloom-cli`] |
//! | Deduplicate documents, paragraphs and overlaps of text | the command `lanebloom-corpus`, of the crate [`lanebloom-corpus`] |
//! | Write code for any of these filters | the trait [`Membership`] |
//!
//! # Consistency
//!
//! Threads may rely on these promises. The model checker loom tries each in every interleaving
//! (`loom-tests/`). "Happens before" has the meaning of the memory model: by joining a thread,
//! through a lock or a channel, or through any `Release`/`Acquire` pair. If a type promises less,
//! its page says so.
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, the lookup
//!    returns true. This also holds for inserts that returned false.
//! 2. **Results of inserts.** An insert returns true if this call changed the filter. If several
//!    threads race to insert a key that the filter does not hold, at least one gets true, and
//!    several may, since each can be first in another word. With one [word per
//!    key](bloom::Builder::words_per_key) *exactly* one gets true: `true` is then a claim. (After a
//!    false positive, a new key has no winner. A key with two
//!    [lines](bloom::Builder::lines_per_key) has at least two words, so its inserts are not
//!    claims.)
//! 3. **Publication.** If a lookup returns true, or an insert false, the caller sees everything
//!    that the threads which set the key's bits did before. This costs nothing on x86-64, and on
//!    Arm a barrier for hits. (For a false positive the bits belong to other keys.)
//! 4. **Lock-freedom.** Inserts and lookups never block, whatever other threads do, and write no
//!    shared counter. They retry only if another thread has set a bit of the same word: at most 64
//!    times in the word's life. They never allocate, except for [dense batches](docs::cost), which
//!    also work if the allocation fails, and for batches of inserts with [`Absent`].
//! 5. **The whole filter beside inserts.** [`union_from`](Filter::union_from), `clone`, comparison,
//!    [snapshots and deltas](codec) and the statistics read or write a live filter safely. Union,
//!    clone, snapshot and delta hold at least every insert that happened before them, and pass its
//!    publication on. [`clear`](Filter::clear), folds and intersections cannot be made safe, so
//!    they take `&mut self`.
//! 6. **The rate.** At the expected number of keys the false-positive rate is at most the chosen
//!    one, within sampling noise, for rates from 10% to 1e-7. The builder solves a model of the
//!    blocked filter; `tests/stress/rates.rs` measures it.
//! 7. **Same bits everywhere.** The same keys, hasher, seed and layout set the same bits on every
//!    platform, byte order and instruction set. (With a `BuildHasher` of another crate this holds
//!    [as far as its hashes](docs::hashes#the-bytes-for-a-buildhasher) are the same.)
//!
//! # Features
//!
//! A feature adds types, methods or implementations. No feature changes a result.
//!
//! | feature | |
//! |---|---|
//! | `std` (default) | [`WindowedBloom`], random keys for [`SipHash13`], `std::io`, AVX-512 or AVX2 chosen at run time. Without it the crate is `no_std` with `alloc`, and uses the vectors of the compilation target |
//! | `rayon` (needs `std`) | batches, unions and collecting on the threads of rayon's pool |
//! | `mmap` (needs `std`) | `map` of each view, such as [`BloomView`]: lookups in a mapped file, with the `memmap2` crate |
//! | `serde` | `Serialize` and `Deserialize` of the filters, as [snapshots](codec) |
//! | `uuid`, `bytes` | keys of the types `uuid::Uuid`; `bytes::Bytes`, `bytes::BytesMut` |
//!
//! # Platforms
//!
//! The minimum Rust version is 1.85. Compilers before 1.89 lack the intrinsics of AVX-512, so the
//! best instruction set is AVX2 ([`instruction_set`] returns it). On a CPU with AVX-512, this makes
//! lookups of pre-hashed keys slower: batches take 1.2 (64 MiB) to 1.5 times as long (32 KiB),
//! single calls as long (Zen 5, record `layout2-zen5.md`).
//!
//! The target must have 64-bit atomics; otherwise the build fails with a message. All 64-bit
//! processors have them. So do 32-bit x86, WebAssembly, and Arm since version 7, but no Cortex-M.
//! (The crate `portable-atomic` would emulate them by a lock, or by disabling interrupts. Such
//! processors have one core, for which a filter without atomics is smaller.)
//!
//! On `wasm32-unknown-unknown` the standard library has neither time nor randomness. There, a
//! window of time needs a clock from the program, and the key of `SipHash13::random` can be
//! guessed.
//!
//! # Cost
//!
//! A key takes 10.8 bits at a rate of 1% and 33.5 at 1e-6.
//!
//! The times below are at 1%; half of the lookups find their key. The first row is of a Zen 5
//! (record `layout2-zen5.md`). The others are of a Zen 5 and an Intel with AMX, and of version 1 of
//! the layout; lookups of pre-hashed keys take 0.9 to 1.1 times as long with version 2
//! (`peers-zen5.md`, `hash-lookups-intel-amx.md`). The CPUs have AVX-512; AVX2 was forced on them.
//! ns of a lookup in a filter of 512 KiB:
//!
//! | | single calls, AVX-512 | single calls, AVX2 | batches of 1024, AVX-512 | batches, AVX2 |
//! |---|--:|--:|--:|--:|
//! | pre-hashed keys | 1.2 | 1.2 | 0.6 | 0.9 |
//! | `u64`, hashed by Murmur3 | 3.4 to 3.6 | 3.6 to 4.2 | 1.1 to 1.9 | 2.4 to 3.4 |
//! | `u64`, hashed by [`FastHash`] | 1.7 to 2.0 | 2.1 to 2.5 | 1.7 | 2.2 |
//! | strings of 24 bytes, Murmur3 | 7.2 to 7.8 | 7.7 to 7.8 | 4.4 | 6.3 |
//! | strings of 24 bytes, [`FastHash`] | 3.1 to 3.6 | 3.4 to 3.8 | 2.9 | 3.3 |
//!
//! Batches of at most 16 pre-hashed keys take about as long as single calls, at 8 MiB a quarter
//! more. Batches of 1024 are faster by these factors (Zen 5): in L1 and L2 1.2 to 1.9, for `u64`
//! hashed by Murmur3 1.5 to 3.2; at 64 MiB 4.3 to 5.2. [`docs::cost`] has more tables and the cases
//! in which other libraries are faster, [`docs::choices`] the measurements behind the crate's
//! choices.
//!
//! ## Inserting in bulk
//!
//! To fill a filter, pass many keys to one call. A batch of at least 1024 keys and 6 keys per line
//! costs less than one atomic operation per key. It needs memory, which it frees at the end of the
//! call: see [Inserting in bulk](docs::cost#inserting-in-bulk).
//!
//! [`CacheGuard`]: https://docs.rs/lanebloom-guard/latest/lanebloom_guard/struct.CacheGuard.html
//! [`lanebloom-cli`]: https://docs.rs/crate/lanebloom-cli
//! [`lanebloom-corpus`]: https://docs.rs/lanebloom-corpus
//! [`lanebloom-formats`]: https://docs.rs/lanebloom-formats
//! [`lanebloom-guard`]: https://docs.rs/lanebloom-guard
//! [`lanebloom-redis`]: https://docs.rs/lanebloom-redis

#![deny(missing_docs)]
#![warn(unnameable_types)]
#![no_std]
// For links from the pages of other crates that are built without these pages.
#![doc(html_root_url = "https://docs.rs/lanebloom/latest")]
// On docs.rs every item shows which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Here and not in Cargo.toml, since these lints are not for the tests.
#![warn(
    clippy::alloc_instead_of_core,
    clippy::std_instead_of_core,
    clippy::std_instead_of_alloc
)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod answers;
mod any;
pub mod bank;
pub mod bitmap;
mod chunks;
pub mod codec;
pub mod docs;
mod error;
mod filter;
pub mod funnel;
mod geometry;
pub mod hash;
#[doc(hidden)]
pub mod internal;
mod kernel;
mod key;
mod sorted_insert;
#[cfg(feature = "std")]
mod system;
mod words;

pub use answers::{Absent, Answers, Bitmap};
pub use any::AnyFilter;
pub use error::{BuildError, IncompatibleError, InsertError, SnapshotError};
#[doc(hidden)]
pub use filter::parts::slots::Bucketed;
pub use filter::types::bloom::{self, ConcurrentBloom};
pub use filter::types::counting::{self, CountingBloom};
pub use filter::types::cuckoo::{self, CuckooFilter};
pub use filter::types::dleft::{self, DLeftFilter};
pub use filter::types::fuse::{self, StaticFilter, StaticView};
pub use filter::types::scalable::{self, ScalableBloom};
pub use filter::types::tombstone::{self, TombstoneBloom};
pub use filter::types::view::{self, BloomView};
#[cfg(feature = "std")]
pub use filter::types::windowed::{self, WindowedBloom};
pub use filter::{Builder, Exclusive, Filter, Frozen, Membership, Pair, Statistics};
pub use funnel::{ByHash, Funnel, Sink};
pub use hash::{FastHash, KeyHasher, Murmur3, Prehashed, SipHash13};
pub use kernel::instruction_set;
pub use key::{Hashed, Key};
