//! A cuckoo filter: keys can be removed again. [`CuckooFilter`] stores a short hash of every key,
//! its fingerprint. Each key chooses two buckets, and its fingerprint lies in one of them. Each
//! bucket is one atomic word.
//!
//! This filter takes the least memory of the filters that can delete, and a lookup reads two words.
//! A key may be inserted several times; it must then be removed as many times. **Remove only what
//! was inserted.** The removal of any other key removes another key's fingerprint, at the
//! false-positive rate: 100,000 removals of absent keys lose about 960 of 100,000 present ones at
//! 1%, and 11 at 0.1%. A lookup before each removal does not help: it finds the same false
//! positives, and as many keys are lost.
//!
//! # Fingerprints
//!
//! | bits of a fingerprint | fingerprints per bucket | false-positive rate when full | planned load | bits per key then |
//! |---|---|---|---|---|
//! | 10 | 6 | 1.17% | 98.8% | 10.8 |
//! | 12 | 5 | 0.244% | 97% | 13.2 |
//! | 16 | 4 | 0.0122% | 95% | 16.9 |
//! | 21 | 3 | 0.000286% | 93% | 23.0 |
//!
//! The rate is proportional to the filter's load. For a given rate, the builder takes the
//! fingerprints that need the least memory. If the rate of a full filter is too high, the builder
//! plans a lower load: 12.5 bits at 1%.
//!
//! A Bloom filter takes less memory at high rates, a cuckoo filter from 9e-4 down to 2e-6 ([bits
//! per key by rate](crate::docs::cost#memory)). Below the rate of the longest fingerprints, 2.7e-6,
//! only a lower load helps. 5e-7 is out of reach.
//!
//! # A full filter
//!
//! If both buckets are full, an insert first searches for a path to an empty slot. Then it moves
//! other keys' fingerprints to their other buckets along that path. If no slot within 4096 buckets
//! is empty, the insert returns an [`InsertError`]; the filter keeps everything that it held. A
//! filter that is sized for its keys does not reach this point, unless one key is inserted too
//! often. Each copy of a key takes a slot, and a key has only the slots of its two buckets: 12, 10,
//! 8 or 6 ([`max_copies`](Filter::max_copies)).
//!
//! ```
//! let error = lanebloom::CuckooFilter::from_keys(["a"; 20], 0.01).unwrap_err();
//! assert_eq!(error.to_string(), "the filter has room for only 12 of 20 keys");
//! ```
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency) for this filter:
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, and no removal
//!    of it does, the lookup returns true. Other threads may insert, move and remove keys
//!    meanwhile.
//! 2. **Answers.** If several threads race to remove a key that was inserted once, exactly one gets
//!    `true`: a removal is a claim. (Two keys with the same fingerprint and buckets are one key to
//!    the filter, at the false-positive rate.)
//! 3. **Publication.** If a lookup returns true, everything that the inserting thread had done
//!    before the insert is visible. This holds even if other threads have moved the fingerprint
//!    since.
//! 4. **Progress.** Lookups are lock-free: they never wait, and they look again only if another
//!    thread moved a fingerprint meanwhile. An insert that finds an empty slot in one of its two
//!    buckets is lock-free too. *Moves and removals are not*: those in the same stripe of
//!    fingerprints (one of up to 256) exclude each other for a few atomic operations.
//! 5. **The whole filter.** [`clone`](Clone::clone) and [snapshots](crate::codec) of a live filter
//!    hold every key whose insertion happened before. Moves and removals wait meanwhile.
//!    [`clear`](Filter::clear) takes `&mut self`.
//!
//! There is no union, since two full filters do not fit into one of them. There is no `==`: two
//! equal sets may compare unequal, since a fingerprint's place depends on the order of the inserts.
//! [`insert_all`](Filter::insert_all) replaces `Extend`, which could not report that the filter is
//! full.
//!
//! Source: Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom"
//! (2014).

mod shape;
pub(crate) mod table;

#[doc(hidden)]
pub use table::CuckooTable;

pub use crate::error::InsertError;
pub(crate) use crate::filter::Filter;
use crate::filter::parts::slots::{Bucketed, Slots};
use crate::hash::Murmur3;

/// A cuckoo filter: keys can be removed again. Many threads can insert, look up and remove at once.
///
/// An insert adds one copy of the key, also if the key is there already: remove it as often. The
/// insert fails if there is no room, or if the key has [its most copies](Filter::max_copies).
/// **Remove only what was inserted.**
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] says what all filters share,
/// [batches and hashes](Filter#batches) too. [The module](self) has the promises to threads, and
/// what the filter requires of its users.
///
/// ```
/// let open = &lanebloom::CuckooFilter::with_capacity(10_000, 0.01)?;
/// std::thread::scope(|scope| {
///     for worker in 0..4u32 {
///         scope.spawn(move || open.insert_all((0..1000u32).map(|i| (worker, i))));
///     }
/// });
/// assert_eq!(open.len(), 4000);
/// assert!(open.remove(&(3u32, 999u32)) && !open.contains(&(3u32, 999u32)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type CuckooFilter<S = Murmur3> = Filter<Cuckoo, S>;

/// The engine of [`CuckooFilter`]: fingerprints in buckets, a bucket in a word.
pub type Cuckoo = Bucketed<CuckooTable>;

/// Sizes a [`CuckooFilter`]; made by [`CuckooFilter::builder`](Filter::builder).
///
/// The [generic builder](crate::Builder) has the table of keys, rate and budget. The builder takes
/// the fingerprints of the least memory at the rate, or the longest that fit if only keys and
/// budget are given. [`fingerprint_bits`](Builder::fingerprint_bits) chooses others; without a
/// rate, the filter then has the rate of these fingerprints.
///
/// ```
/// let builder = lanebloom::CuckooFilter::builder().memory_budget(1 << 20);
/// let filter = builder.fingerprint_bits(12).build()?;
/// assert!(filter.memory_bytes() <= 1 << 20);
/// assert!((630_000..635_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type Builder<S = Murmur3> = crate::filter::Builder<Cuckoo, S>;

impl<S> Builder<S> {
    /// The length of a fingerprint in bits: 10, 12, 16 or 21. A bucket then holds six, five, four
    /// or three fingerprints.
    ///
    /// ```
    /// let builder = lanebloom::CuckooFilter::builder().expected_keys(1_000_000);
    /// let filter = builder.fingerprint_bits(10).build()?;
    /// assert!(filter.statistics().bits_per_key < 10.83);
    /// assert!((0.0115..0.012).contains(&filter.false_positive_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn fingerprint_bits(mut self, bits: usize) -> Self {
        self.options = Some(bits);
        self
    }
}

impl<S> Filter<Cuckoo, S> {
    /// The length of a fingerprint in bits: 10, 12, 16 or 21.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.fingerprint_bits(), 10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn fingerprint_bits(&self) -> usize {
        self.engine.table.shape().fingerprint_bits as usize
    }
}
