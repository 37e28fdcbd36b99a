//! A d-left counting filter: keys can be removed again. [`DLeftFilter`] stores a remainder (a
//! fingerprint) of every key with a count of 1 to 3. The remainder lies in one of four buckets of
//! eight cells: the emptiest one when the key came.
//!
//! It takes half the memory of a counting Bloom filter, and more than a
//! [`CuckooFilter`](crate::CuckooFilter). In contrast to the cuckoo filter, a key never moves once
//! it is in: an insert costs the same however full the filter is. A key that is inserted twice
//! takes one cell. **Remove only what was inserted.** The removal of any other key decrements
//! another key's count, at the false-positive rate.
//!
//! | bits of a cell | false-positive rate at the planned load | planned load | bits per key then |
//! |---|---|---|---|
//! | 14 of the remainder, 2 of the count | 0.16% | 80% | 20 |
//!
//! # Example
//!
//! ```
//! use lanebloom::DLeftFilter;
//!
//! let sessions = DLeftFilter::with_capacity(1_000_000, 0.01)?;
//! sessions.insert("session:17")?;
//! assert!(sessions.contains("session:17"));
//! assert!(sessions.remove("session:17"));
//! assert!(!sessions.contains("session:17"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When there is no room
//!
//! An insert returns an [`InsertError`], and changes nothing, in two cases:
//!
//! - Other keys have all 32 cells of the key's buckets. This begins at a load of 88% if keys only
//!   come, and at 82% if they come and go.
//! - The key is there 3 times already. (Keys that the filter cannot tell apart share the count. By
//!   the model, four such keys meet once in six billion keys.)
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency) for this filter:
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, and no removal
//!    of it does, the lookup answers true. Other threads may insert and remove keys meanwhile.
//! 2. **Answers.** If several threads race to remove a key that was inserted once, exactly one gets
//!    `true`: a removal is a claim. (Two keys with the same bucket and remainder are one key to the
//!    filter, at the false-positive rate.)
//! 3. **Publication.** If a lookup answers true, everything that the inserting threads had done
//!    before their inserts is visible.
//! 4. **Progress.** Lookups never wait and look once. Removals are lock-free, and so are inserts of
//!    a key that is there already. *Inserts of new keys are not*: those in the same stripe of
//!    remainders (one of up to 256) exclude each other for a few atomic operations, so that a key
//!    never gets two cells.
//! 5. **The whole filter.** [`clone`](Clone::clone) and [snapshots](crate::codec) of a live filter
//!    hold every key whose insertion happened before. Inserts of new keys wait meanwhile.
//!    [`clear`](Filter::clear) takes `&mut self`.
//!
//! There is no union, since the keys of two filters may not fit into the buckets of one. There is
//! no `==`, since a cell's place depends on the order of the inserts.
//! [`insert_all`](Filter::insert_all) replaces `Extend`, which could not report that the filter is
//! full.
//!
//! Source: Bonomi, Mitzenmacher, Panigrahy, Singh, Varghese, "An Improved Construction for Counting
//! Bloom Filters" (2006).

mod cells;
mod snapshot;

pub use crate::error::InsertError;

use super::builder::{Budgeted, Options, Planned};
use super::engine::{Count, Engine, Insert, Remove, one_by_one, sealed};
use super::probe::{self, Probe};
use super::{Figures, Filter};
use crate::bits;
use crate::error::{BuildError, InsertErrorKind};
use crate::hash::Murmur3;
use crate::source::{Answer, Source};
use cells::{Cells, Inserted, Place, Plan, Request};
use core::fmt;

/// A d-left counting filter: keys can be removed again. Many threads can insert, look up and remove
/// at once.
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] has the methods. [The
/// module](self) has the promises to threads, and what the filter requires of its users.
///
/// ```
/// use lanebloom::DLeftFilter;
/// use std::thread;
///
/// let open = DLeftFilter::with_capacity(10_000, 0.01)?;
/// thread::scope(|scope| {
///     for worker in 0..4u32 {
///         let open = &open;
///         scope.spawn(move || {
///             for i in 0..1000u32 {
///                 open.insert(&(worker, i)).unwrap();
///                 if i % 2 == 0 {
///                     assert!(open.remove(&(worker, i)));
///                 }
///             }
///         });
///     }
/// });
/// assert_eq!(open.len(), 2000);
/// assert!(open.contains(&(3u32, 999u32)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type DLeftFilter<S = Murmur3> = Filter<DLeft, S>;

/// The engine of [`DLeftFilter`]: counted remainders in cells.
#[derive(Debug)]
pub struct DLeft {
    cells: Cells,
    expected_keys: usize,
}

/// Sizes a [`DLeftFilter`]; made by [`DLeftFilter::builder`](Filter::builder).
///
/// The [generic builder](super::Builder) has the table of keys, rate and budget. A rate below 0.16%
/// takes more memory.
///
/// ```
/// let filter = lanebloom::DLeftFilter::builder().memory_budget(1 << 20).build()?;
/// assert!(filter.memory_bytes() <= 1 << 20);
/// assert!((418_000..420_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type Builder<S = Murmur3> = super::Builder<DLeft, S>;

impl Planned for DLeft {
    type Options = Request;
    type Hasher = Murmur3;

    fn options() -> Request {
        Request::default()
    }

    fn build(request: Request) -> Result<Self, BuildError> {
        let Plan { buckets, keys } = request.solve().map_err(BuildError)?;
        Ok(Self {
            cells: Cells::new(buckets)?,
            expected_keys: keys,
        })
    }
}

impl sealed::Sealed for Request {}

impl Options for Request {
    fn keys(&mut self) -> &mut Option<usize> {
        &mut self.keys
    }

    fn rate(&mut self) -> &mut Option<f64> {
        &mut self.rate
    }
}

impl Budgeted for Request {
    fn budget(&mut self) -> &mut Option<usize> {
        &mut self.budget
    }
}

/// Single operations.
impl DLeft {
    #[inline]
    fn insert_place(&self, place: &Place) -> Result<(), InsertErrorKind> {
        match self.cells.insert(place) {
            Inserted::Yes => Ok(()),
            Inserted::Saturated => Err(InsertErrorKind::Copies {
                limit: self.max_copies(),
            }),
            Inserted::Full => Err(InsertErrorKind::DLeftFull {
                expected_keys: self.expected_keys,
            }),
        }
    }
}

impl sealed::Sealed for DLeft {}

impl Engine for DLeft {
    type Hash = u64;
    const NAME: &'static str = "DLeftFilter";

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.cells.holds(&self.cells.place(hash))
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        probe::contains_bitmap(&self.cells, hashes, found);
    }

    #[inline]
    fn contains_few(&self, hashes: &[u64], found: &mut [bool]) {
        one_by_one(self, hashes, found);
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        self.cells.memory_bytes()
    }

    fn is_empty(&self) -> bool {
        let empty = self.cells.words().all(|word| word == 0);
        bits::acquire();
        empty
    }

    fn fill_ratio(&self) -> f64 {
        self.cells.occupied().0 as f64 / self.slots() as f64
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let load = keys as f64 / self.slots() as f64;
        cells::rate_at(f64::min(load, 1.0))
    }

    fn current_false_positive_rate(&self) -> f64 {
        cells::rate_at(self.fill_ratio())
    }

    fn figures(&self) -> Figures {
        let (cells, len) = self.cells.occupied();
        let fill_ratio = cells as f64 / self.slots() as f64;
        let false_positive_rate = cells::rate_at(fill_ratio);
        Figures {
            fill_ratio,
            len,
            false_positive_rate,
        }
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            cells: self.cells.try_clone()?,
            ..*self
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("len", &self.len()).field("slots", &self.slots());
    }
}

impl Count for DLeft {
    fn count(&self, hash: u64) -> usize {
        self.cells.count(&self.cells.place(hash)) as usize
    }

    fn len(&self) -> usize {
        self.cells.occupied().1
    }

    fn slots(&self) -> usize {
        self.cells.cells()
    }

    fn max_copies(&self) -> usize {
        cells::MAX_COUNT as usize
    }
}

impl Insert for DLeft {
    type Answer = Result<(), InsertError>;
    type Total = Result<(), InsertError>;

    #[inline]
    fn insert(&self, hash: u64) -> Result<(), InsertError> {
        let result = self.insert_place(&self.cells.place(hash));
        result.map_err(|kind| InsertError { kind, inserted: 0 })
    }

    fn insert_all(&self, source: &impl Source) -> Result<(), InsertError> {
        probe::insert_all(&self.cells, source, |place| self.insert_place(place))
    }

    fn clear(&mut self) {
        self.cells.store(0, core::iter::repeat(0));
    }
}

impl Remove for DLeft {
    #[inline]
    fn remove(&self, hash: u64) -> bool {
        self.cells.remove(&self.cells.place(hash))
    }

    fn remove_all(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        probe::remove_all(&self.cells, source, answer, |place| self.cells.remove(place))
    }
}
