//! A cuckoo filter: keys can be removed again. [`CuckooFilter`] stores a short tag (a fingerprint)
//! of every key. Each key chooses two buckets, and its tag lies in one of them. Each bucket is one
//! atomic word.
//!
//! This filter takes the least memory of the filters that can delete, and a lookup reads two words.
//! A key may be inserted several times; it must then be removed as many times. **Remove only what
//! was inserted.** The removal of any other key removes another key's tag, at the false-positive
//! rate.
//!
//! # Example
//!
//! ```
//! use lanebloom::CuckooFilter;
//!
//! let sessions = CuckooFilter::with_capacity(1_000_000, 0.01)?;
//! sessions.insert("session:17")?;
//! assert!(sessions.contains("session:17"));
//! assert!(sessions.remove("session:17"));
//! assert!(!sessions.contains("session:17"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Tags
//!
//! | bits of a tag | tags per bucket | false-positive rate when full | planned load | bits per key then |
//! |---|---|---|---|---|
//! | 10 | 6 | 1.2% | 98.8% | 10.8 |
//! | 12 | 5 | 0.24% | 97% | 13.2 |
//! | 16 | 4 | 0.012% | 95% | 16.8 |
//!
//! The rate is proportional to the filter's load. For a given rate, the builder takes the tags that
//! need the least memory. If the rate of a full filter is too high, the builder plans a lower load:
//! 12.5 bits at 1%.
//!
//! # When it is full
//!
//! If both buckets are full, an insert first searches for a path to an empty slot. Then it moves
//! other keys' tags to their other buckets along that path. If no slot within 4096 buckets is
//! empty, the insert returns an [`InsertError`]; the filter keeps everything that it held. A filter
//! that is sized for its keys does not reach this point, unless one key is inserted too often. Each
//! copy of a key takes a slot, and a key has only the slots of its two buckets: 12, 10 or 8
//! ([`max_copies`](Filter::max_copies)).
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency) for this filter:
//!
//! 1. **No false negatives.** If an insert of a key happens before a lookup of it, and no removal
//!    of it does, the lookup answers true. Other threads may insert, move and remove keys
//!    meanwhile.
//! 2. **Answers.** If several threads race to remove a key that was inserted once, exactly one gets
//!    `true`: a removal is a claim. (Two keys with the same tag and buckets are one key to the
//!    filter, at the false-positive rate.)
//! 3. **Publication.** If a lookup answers true, everything that the inserting thread had done
//!    before the insert is visible. This holds even if other threads have moved the tag since.
//! 4. **Progress.** Lookups are lock-free: they never wait, and they look again only if another
//!    thread moved a tag meanwhile. An insert that finds an empty slot in one of its two buckets is
//!    lock-free too. *Moves and removals are not*: those in the same stripe of tags (one of up
//!    to 256) exclude each other for a few atomic operations. The reason is that a moving tag is in
//!    two places, and a bucket has no free bit to mark it.
//! 5. **The whole filter.** [`clone`](Clone::clone), [`to_compact`](CuckooFilter::to_compact) and
//!    [snapshots](crate::codec) of a live filter hold every key whose insertion happened before.
//!    Moves and removals wait meanwhile. [`clear`](Filter::clear) takes `&mut self`.
//!
//! There is no union, since two full filters do not fit into one of them. There is no `==`: two
//! equal sets may compare unequal, since a tag's place depends on the order of the inserts.
//! [`insert_all`](Filter::insert_all) replaces `Extend`, which could not report that the filter is
//! full.
//!
//! Source: Fan, Andersen, Kaminsky, Mitzenmacher, "Cuckoo Filter: Practically Better Than Bloom"
//! (2014).

mod compact;
pub(crate) mod shape;
mod snapshot;
mod table;

pub use crate::error::InsertError;
pub use compact::{Compact, CompactCuckoo};

use super::builder::{Budgeted, Options, Planned};
use super::engine::{Count, Engine, Insert, Remove, one_by_one, sealed};
use super::probe::{self, Probe};
use super::{Figures, Filter};
use crate::bits;
use crate::error::{BuildError, InsertErrorKind};
use crate::hash::Murmur3;
use crate::source::{Answer, Source};
use core::fmt;
use shape::{Plan, Request};
use table::{Place, SEARCHED, Table};

/// A cuckoo filter: keys can be removed again. Many threads can insert, look up and remove at once.
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] has the methods. [The
/// module](self) has the promises to threads, and what the filter requires of its users.
///
/// ```
/// use lanebloom::CuckooFilter;
/// use std::thread;
///
/// let open = CuckooFilter::with_capacity(10_000, 0.01)?;
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
pub type CuckooFilter<S = Murmur3> = Filter<Cuckoo, S>;

/// The engine of [`CuckooFilter`]: tags in buckets, a bucket in a word.
#[derive(Debug)]
pub struct Cuckoo {
    table: Table,
    expected_keys: usize,
}

/// Sizes a [`CuckooFilter`]; made by [`CuckooFilter::builder`](Filter::builder).
///
/// The [generic builder](super::Builder) has the table of keys, rate and budget. The builder takes
/// the tags of the least memory at the rate, or the longest that fit if only keys and budget are
/// given. [`tag_bits`](Builder::tag_bits) chooses others; without a rate, the filter then has the
/// rate of these tags.
///
/// ```
/// use lanebloom::CuckooFilter;
///
/// let filter = CuckooFilter::with_capacity(1_000_000, 1e-3)?;
/// assert_eq!(filter.tag_bits(), 16);
/// assert!((16.8..17.0).contains(&filter.bits_per_key()));
///
/// let builder = CuckooFilter::builder().memory_budget(1 << 20);
/// let filter = builder.tag_bits(12).build()?;
/// assert!(filter.memory_bytes() <= 1 << 20);
/// assert!((630_000..635_000).contains(&filter.expected_keys()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type Builder<S = Murmur3> = super::Builder<Cuckoo, S>;

impl<S> Builder<S> {
    /// The length of a tag in bits: 10, 12 or 16. A bucket then holds six, five or four tags.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let builder = CuckooFilter::builder().expected_keys(1_000_000);
    /// let filter = builder.tag_bits(10).build()?;
    /// assert!(filter.bits_per_key() < 10.83);
    /// assert!((0.0115..0.012).contains(&filter.false_positive_rate_at(1_000_000)));
    ///
    /// let builder = CuckooFilter::builder().expected_keys(1000);
    /// let error = builder.tag_bits(8).build().unwrap_err();
    /// assert_eq!(error.to_string(), "tags of 8 bits are not of 10, 12 or 16");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn tag_bits(mut self, bits: usize) -> Self {
        self.options.tag_bits = Some(bits);
        self
    }
}

impl Planned for Cuckoo {
    type Options = Request;
    type Hasher = Murmur3;

    fn options() -> Request {
        Request::default()
    }

    fn build(request: Request) -> Result<Self, BuildError> {
        let Plan { shape, buckets, keys } = request.solve().map_err(BuildError)?;
        Ok(Self {
            table: Table::new(shape, buckets)?,
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
impl Cuckoo {
    #[inline]
    fn insert_place(&self, place: Place) -> Result<(), InsertErrorKind> {
        if self.table.insert(place) {
            return Ok(());
        }
        let limit = self.max_copies();
        if self.table.count(place) as usize >= limit {
            return Err(InsertErrorKind::Copies { limit });
        }
        Err(InsertErrorKind::CuckooFull {
            searched: SEARCHED,
            expected_keys: self.expected_keys,
        })
    }
}

impl sealed::Sealed for Cuckoo {}

impl Engine for Cuckoo {
    type Hash = u64;
    const NAME: &'static str = "CuckooFilter";

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.table.holds(self.table.place(hash))
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        probe::contains_bitmap(&self.table, hashes, found);
    }

    #[inline]
    fn contains_few(&self, hashes: &[u64], found: &mut [bool]) {
        one_by_one(self, hashes, found);
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    /// The bytes of the buckets and of the stripes. The stripes take at most 2 KiB, and not more
    /// than 1/256 or 8 bytes.
    fn memory_bytes(&self) -> usize {
        self.table.memory_bytes()
    }

    fn is_empty(&self) -> bool {
        let empty = self.table.words().all(|word| word == 0);
        bits::acquire();
        empty
    }

    fn fill_ratio(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let load = keys as f64 / self.slots() as f64;
        self.table.shape().rate_at(f64::min(load, 1.0))
    }

    fn current_false_positive_rate(&self) -> f64 {
        self.table.shape().rate_at(self.fill_ratio())
    }

    fn figures(&self) -> Figures {
        let len = self.len();
        let fill_ratio = len as f64 / self.slots() as f64;
        let false_positive_rate = self.table.shape().rate_at(fill_ratio);
        Figures {
            fill_ratio,
            len,
            false_positive_rate,
        }
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            table: self.table.try_clone()?,
            ..*self
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("tag_bits", &self.table.shape().tag_bits)
            .field("len", &self.len())
            .field("slots", &self.slots());
    }
}

impl Count for Cuckoo {
    fn count(&self, hash: u64) -> usize {
        self.table.count(self.table.place(hash)) as usize
    }

    fn len(&self) -> usize {
        self.table.occupied()
    }

    fn slots(&self) -> usize {
        self.table.buckets() * self.table.shape().slots as usize
    }

    /// The number of slots in two buckets.
    fn max_copies(&self) -> usize {
        2 * self.table.shape().slots as usize
    }
}

impl Insert for Cuckoo {
    type Answer = Result<(), InsertError>;
    type Total = Result<(), InsertError>;

    #[inline]
    fn insert(&self, hash: u64) -> Result<(), InsertError> {
        let result = self.insert_place(self.table.place(hash));
        result.map_err(|kind| InsertError { kind, inserted: 0 })
    }

    fn insert_all(&self, source: &impl Source) -> Result<(), InsertError> {
        probe::insert_all(&self.table, source, |place| self.insert_place(*place))
    }

    fn clear(&mut self) {
        self.table.store(0, core::iter::repeat(0));
    }
}

impl Remove for Cuckoo {
    #[inline]
    fn remove(&self, hash: u64) -> bool {
        self.table.remove(self.table.place(hash))
    }

    fn remove_all(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        probe::remove_all(&self.table, source, answer, |place| self.table.remove(*place))
    }
}

impl<S> CuckooFilter<S> {
    /// The length of a tag in bits: 10, 12 or 16.
    ///
    /// ```
    /// assert_eq!(lanebloom::CuckooFilter::with_capacity(1000, 0.01)?.tag_bits(), 10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn tag_bits(&self) -> usize {
        self.engine.table.shape().tag_bits as usize
    }
}
