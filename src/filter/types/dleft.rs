//! A d-left counting filter: keys can be removed again. [`DLeftFilter`] stores a remainder (a
//! fingerprint) of every key with a count of 1 to 3. The remainder lies in one of four buckets of
//! eight slots: the emptiest one when the key came.
//!
//! It takes half the memory of a counting Bloom filter, and more than a
//! [`CuckooFilter`](crate::CuckooFilter): slots of 16 bits, 14 of them for the remainder. At the
//! planned load of 80% that is 20 bits per key, for a rate of 0.16%. In contrast to the cuckoo
//! filter, a key never moves once it is in: an insert costs the same however full the filter is. A
//! key that is inserted twice takes one slot. **Remove only what was inserted.** The removal of any
//! other key decrements another key's count, at the false-positive rate.
//!
//! # No room
//!
//! An insert returns an [`InsertError`], and changes nothing, in two cases:
//!
//! - Other keys have all 32 slots of the key's buckets. This begins at a load of 88% if keys only
//!   come, and at 82% if they come and go.
//! - The key is there 3 times already. (Keys that the filter cannot tell apart share the count. By
//!   the model, four such keys meet once in six billion keys.)
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency) for this filter:
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, and no removal
//!    of it does, the lookup returns true. Other threads may insert and remove keys meanwhile.
//! 2. **Answers.** If several threads race to remove a key that was inserted once, exactly one gets
//!    `true`: a removal is a claim. (Two keys with the same bucket and remainder are one key to the
//!    filter, at the false-positive rate.)
//! 3. **Publication.** If a lookup returns true, everything that the inserting threads had done
//!    before their inserts is visible.
//! 4. **Progress.** Lookups never wait and look once. Removals are lock-free, and so are inserts of
//!    a key that is there already. *Inserts of new keys are not*: those in the same stripe of
//!    remainders (one of up to 256) exclude each other for a few atomic operations, so that a key
//!    never gets two slots.
//! 5. **The whole filter.** [`clone`](Clone::clone) and [snapshots](crate::codec) of a live filter
//!    hold every key whose insertion happened before. Inserts of new keys wait meanwhile.
//!    [`clear`](Filter::clear) takes `&mut self`.
//!
//! There is no union, since the keys of two filters may not fit into the buckets of one. There is
//! no `==`, since a slot's place depends on the order of the inserts.
//! [`insert_all`](Filter::insert_all) replaces `Extend`, which could not report that the filter is
//! full.
//!
//! Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An Improved Construction for Counting
//! Bloom Filters" (2006).

pub(crate) mod table;

pub use crate::error::InsertError;

use crate::filter::Filter;
use crate::filter::parts::slots::Bucketed;
use crate::hash::Murmur3;
#[doc(hidden)]
pub use table::DLeftTable;

/// A d-left counting filter: keys can be removed again. Many threads can insert, look up and remove
/// at once.
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
/// let open = &lanebloom::DLeftFilter::with_capacity(10_000, 0.01)?;
/// std::thread::scope(|scope| {
///     for worker in 0..4u32 {
///         scope.spawn(move || open.insert_all((0..1000u32).map(|i| (worker, i))));
///     }
/// });
/// assert_eq!(open.len(), 4000);
/// assert!(open.remove(&(3u32, 999u32)) && !open.contains(&(3u32, 999u32)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type DLeftFilter<S = Murmur3> = Filter<DLeft, S>;

/// The engine of [`DLeftFilter`]: counted remainders in slots.
pub type DLeft = Bucketed<DLeftTable>;

/// Sizes a [`DLeftFilter`]; made by [`DLeftFilter::builder`](Filter::builder).
///
/// The [generic builder](crate::Builder) has the table of keys, rate and budget. A rate below 0.16%
/// takes more memory.
///
/// ```
/// let filter = lanebloom::DLeftFilter::builder().memory_budget(1 << 20).build()?;
/// assert!(filter.memory_bytes() <= 1 << 20);
/// assert!((418_000..420_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type Builder<S = Murmur3> = crate::filter::Builder<DLeft, S>;
