//! An exact set of integers below a bound, as one bit each, shared by many threads without locks.
//! For programs that need a bitmap of phone numbers, Java's `BitSet` with many writers, or an
//! allocator of numbers: [`insert`](ConcurrentBitmap::insert) claims one number, and
//! [`claim_free`](ConcurrentBitmap::claim_free) claims the first free one.
//!
//! [`ConcurrentBitmap`] is the set. [`BitmapView`] reads a snapshot's bytes in place. Both are a
//! [`Bitmap`] of this module, which has the methods that read. (A batch's place for answers,
//! [`lanebloom::Bitmap`](crate::Bitmap), is another.) A bitmap hashes nothing, has no false
//! positives, and removes what it holds, so it is not a [`Filter`](crate::Filter).
//!
//! # When not to use it
//!
//! The bitmap takes `bound / 8` bytes, however few integers it holds. Counting, iterating and
//! saving read all of them. A roaring bitmap (the crate `roaring`) stores an integer of a sparse
//! set in 2 bytes, and a long run in 4. Prefer it if:
//!
//! - **The set is sparse**: fewer than 1 of 16 integers below the bound. At 1 of 1000 a roaring
//!   bitmap takes a 60th of the memory, and iterating takes a fraction of the time.
//! - **It has long runs**, or counts and unions matter more than lookups and inserts.
//!
//! Prefer `ConcurrentBitmap` if many threads write, if an insert must be a claim, or if lookups and
//! inserts in no order matter: they take a tenth to a quarter of the time.
//! [`docs::choices`](crate::docs::choices#exact-bitmaps) has the measurements.
//!
//! For keys that are not integers, or integers without a useful bound, use a
//! [`ConcurrentBloom`](crate::ConcurrentBloom), which has false positives, or a hash set.
//!
//! # Consistency
//!
//! An operation on one position is atomic: all threads agree on the order of the inserts and
//! removes of a position.
//!
//! 1. **One winner.** If several threads insert an absent position, exactly one gets `true`. The
//!    same holds for removes of a present position. So `insert` is a claim, and `remove` its
//!    release.
//! 2. **Publication.** If `contains` returns true, the caller sees everything that the inserter did
//!    before. After `insert` or `remove`, whatever it returned, the caller sees everything that the
//!    threads did before they inserted or removed this position earlier. So a claim after a release
//!    is ordered as a lock after its unlock.
//! 3. **Lock-freedom.** No method blocks. Only the constructors, `try_clone` and the snapshots
//!    allocate. Only `claim_free` retries, each time because another thread claimed a
//!    position of the same word.
//! 4. **The whole set beside writers.** Ranges, unions, intersections, differences, counts,
//!    iterations, searches and snapshots go word by word: they are atomic for 64 positions at a
//!    time only. They treat a position that was present (or absent) during the whole call as
//!    present (or absent). If a position changes meanwhile, they may use its state before or after.
//!    A reader beside a union may see a part of the new positions; it misses none that was there.

mod batch;
mod changes;
mod read;
mod snapshot;
pub(crate) mod words;

pub use read::Positions;
pub use snapshot::{BitmapView, SnapshotBits};
pub use words::{AtomicBits, Storage};

use crate::error::BuildError;
use crate::words::bits::acquire;
use core::error::Error;
use core::fmt;

/// A set of integers below a bound: the methods that read it.
///
/// `B` stores the bits: [`AtomicBits`] in a [`ConcurrentBitmap`], [`SnapshotBits`] in a
/// [`BitmapView`]. An integer in the range `0..bound` is called a position.
///
/// ```
/// use lanebloom::bitmap::{Bitmap, BitmapView, Storage};
///
/// fn evens<B: Storage>(set: &Bitmap<B>) -> usize {
///     set.iter().filter(|position| position % 2 == 0).count()
/// }
///
/// let set = lanebloom::bitmap::ConcurrentBitmap::new(100)?;
/// set.insert_batch(&[2, 3, 98])?;
/// let bytes = set.snapshot().to_vec();
/// assert_eq!(evens(&set), 2);
/// assert_eq!(evens(&BitmapView::from_bytes(&bytes)?.0), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Bitmap<B> {
    pub(crate) bits: B,
}

/// An exact set of integers below a bound, which many threads read and write at once.
///
/// [The module's page](self) says when to use it, and what it guarantees to threads. [`Bitmap`] has
/// the methods that only read.
///
/// ```
/// // Seats 0 to 9999, sold by four threads.
/// let sold = lanebloom::bitmap::ConcurrentBitmap::new(10_000)?;
/// let sell = || (0..10_000).filter(|&seat| sold.insert(seat) == Ok(true)).count();
/// let sales: usize = std::thread::scope(|scope| {
///     let sellers: Vec<_> = (0..4).map(|_| scope.spawn(sell)).collect();
///     sellers.into_iter().map(|seller| seller.join().unwrap()).sum()
/// });
/// assert_eq!((sales, sold.len()), (10_000, 10_000));
///
/// assert!(sold.remove(17) && !sold.contains(17));
/// assert_eq!(sold.first_free(0), Some(17));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[doc(alias("BitSet", "Bitset", "phone", "exact"))]
pub type ConcurrentBitmap = Bitmap<AtomicBits>;

/// One position at a time.
///
/// ```
/// let set = lanebloom::bitmap::ConcurrentBitmap::new(100)?;
/// assert_eq!((set.insert(7), set.insert(7)), (Ok(true), Ok(false)));
/// assert!(set.insert(100).is_err());
/// let copy = set.try_clone()?;
/// assert!(set.remove(7) && !set.remove(7) && !set.contains(7));
/// assert!(!set.remove(100));
/// assert!(copy.contains(7) && !copy.contains(8));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl ConcurrentBitmap {
    /// An empty set of integers below `bound`.
    ///
    /// It takes one bit for each, in whole lines of 64 bytes, aligned to cache lines. The memory is
    /// untouched zero pages, so this takes microseconds. For at least 4 MiB, Linux is asked for
    /// huge pages.
    ///
    /// # Errors
    ///
    /// Fails if the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// let phones = lanebloom::bitmap::ConcurrentBitmap::new(1_000_000_000)?;
    /// assert_eq!(phones.memory_bytes(), 125_000_000); // 120 MiB
    /// phones.insert(999_999_999)?;
    /// assert!(phones.contains(999_999_999) && !phones.contains(0));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(bound: u64) -> Result<Self, BuildError> {
        AtomicBits::new(bound).map(|bits| Self { bits })
    }

    /// Inserts `position`; returns whether it was absent. `true` is a
    /// [claim](crate::bitmap#consistency).
    ///
    /// # Errors
    ///
    /// Fails if `position` is not below the [bound](Bitmap::bound).
    ///
    /// # Memory ordering
    ///
    /// In both cases this is an `Acquire` of everything that inserts and removes of this position
    /// released. If it returns `true`, it is a `Release` too.
    #[inline]
    #[doc(alias("claim", "set", "add", "test_and_set"))]
    pub fn insert(&self, position: u64) -> Result<bool, OutOfBoundsError> {
        self.check(position)?;
        Ok(self.bits.set(position))
    }

    /// Removes `position`; returns whether it was present. A position beyond the bound is absent.
    /// Orders memory as [`insert`](Self::insert).
    #[inline]
    #[doc(alias("clear", "unset", "release"))]
    pub fn remove(&self, position: u64) -> bool {
        position < self.bound() && self.bits.unset(position)
    }

    /// A copy. It holds every position that was inserted before the call and is not removed
    /// meanwhile. Fails if the allocation fails.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        self.bits.try_clone().map(|bits| Self { bits })
    }

    #[inline]
    fn check(&self, position: u64) -> Result<(), OutOfBoundsError> {
        let bound = self.bound();
        if position >= bound {
            return Err(OutOfBoundsError { position, bound });
        }
        Ok(())
    }
}

/// Bitmaps are equal if their bounds and their positions are.
///
/// ```
/// use lanebloom::bitmap::ConcurrentBitmap;
///
/// let (a, b) = (ConcurrentBitmap::new(100)?, ConcurrentBitmap::new(100)?);
/// a.insert(7)?;
/// assert!(a != b);
/// b.insert(7)?;
/// assert!(a == b && a != ConcurrentBitmap::new(101)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<A: Storage, B: Storage> PartialEq<Bitmap<B>> for Bitmap<A> {
    fn eq(&self, other: &Bitmap<B>) -> bool {
        let equal = self.bound() == other.bound() && self.all_values().eq(other.all_values());
        acquire();
        equal
    }
}

/// Prints the bound and the number of positions, which it counts.
impl<B: Storage> fmt::Debug for Bitmap<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(B::NAME)
            .field("bound", &self.bound())
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// The error of an insert into a [`ConcurrentBitmap`]: a position is not below its bound, so
/// nothing was inserted.
///
/// ```
/// let set = lanebloom::bitmap::ConcurrentBitmap::new(100)?;
/// let error = set.insert_batch(&[1, 2, 117]).unwrap_err();
/// assert_eq!(error.position(), 117);
/// assert_eq!(error.to_string(), "position 117 is not below the bound of 100");
/// assert!(set.is_empty());
/// assert_eq!(set.insert_range(50..=120).unwrap_err().position(), 120);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfBoundsError {
    position: u64,
    bound: u64,
}

impl OutOfBoundsError {
    /// The position that is not below the bound: in a batch, the first such one; in a range, the
    /// last position.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl fmt::Display for OutOfBoundsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, bound } = self;
        write!(f, "position {position} is not below the bound of {bound}")
    }
}

impl Error for OutOfBoundsError {}
