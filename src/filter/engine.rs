//! The traits of an engine, the part of a filter that stores hashes. `filter.rs` has the rest, once
//! for all engines.
//!
//! The traits are public, so that a function can take any filter (`fn f<E: Engine, S:
//! KeyHasher>(filter: &Filter<E, S>)`), and sealed: only this crate implements them.

use crate::batch::{Answer, Source};
use crate::codec::{Hashing, Input, Out};
use crate::error::{BuildError, FullError, IncompatibleError, InsertError, SnapshotErrorKind};
use crate::kernel::{self, Isa};
use core::fmt;

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// The result of [`Filter::figures`](super::Filter::figures).
///
/// ```
/// use lanebloom::{CuckooFilter, Figures};
///
/// let filter = CuckooFilter::with_capacity(1000, 0.01)?;
/// filter.insert_batch(&["a", "b"]).unwrap();
/// let Figures { len, fill_ratio, .. } = filter.figures();
/// assert_eq!((len, fill_ratio), (2, filter.fill_ratio()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// The share of the bits, counters or slots that are taken.
    pub fill_ratio: f64,
    /// The number of keys: exact for filters with slots, otherwise an estimate.
    pub len: usize,
    /// The chance that a random hash is taken for present.
    pub false_positive_rate: f64,
}

/// The engine of a [`Filter`](super::Filter): a set of hashes that many threads share.
///
/// It cannot be implemented further.
///
/// # Examples
///
/// ```
/// use lanebloom::{ConcurrentBloom, CuckooFilter, Engine, Filter};
///
/// fn present<E: Engine>(filter: &Filter<E>, names: &[&str]) -> usize {
///     names.iter().filter(|name| filter.contains(**name)).count()
/// }
///
/// let cuckoo = CuckooFilter::with_capacity(1000, 0.01)?;
/// cuckoo.insert("a").unwrap();
/// let bloom = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// bloom.insert("a");
/// assert_eq!(present(&cuckoo, &["a", "b"]), 1);
/// assert_eq!(present(&bloom, &["a", "b"]), 1);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait Engine: sealed::Sealed + Sized {
    /// The name of the filter type, for `Debug`.
    #[doc(hidden)]
    const NAME: &'static str;

    /// Whether the hash may be there. `true` ends in an `Acquire`.
    #[doc(hidden)]
    fn contains(&self, hash: u64) -> bool;

    /// [`contains`](Self::contains) of every hash, as a bitmap: bit `i % 64` of word `i / 64`. The
    /// bitmap has a word for every 64 hashes; the bits after the last hash become 0.
    #[doc(hidden)]
    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]);

    /// [`contains_bitmap`](Self::contains_bitmap) for a few hashes, at most 64.
    #[doc(hidden)]
    #[inline]
    fn contains_few_bitmap(&self, hashes: &[u64]) -> u64 {
        let mut bitmap = [0];
        self.contains_bitmap(hashes, &mut bitmap[..hashes.len().min(1)]);
        bitmap[0]
    }

    /// [`contains`](Self::contains) for a few hashes, at most 64.
    #[doc(hidden)]
    #[inline]
    fn contains_few(&self, hashes: &[u64], found: &mut [bool]) {
        kernel::scalar::unpack_few(self.contains_few_bitmap(hashes), found);
    }

    #[doc(hidden)]
    fn expected_keys(&self) -> usize;

    #[doc(hidden)]
    fn memory_bytes(&self) -> usize;

    #[doc(hidden)]
    fn is_empty(&self) -> bool;

    #[doc(hidden)]
    fn fill_ratio(&self) -> f64;

    #[doc(hidden)]
    fn false_positive_rate_at(&self, keys: usize) -> f64;

    #[doc(hidden)]
    fn current_false_positive_rate(&self) -> f64;

    #[doc(hidden)]
    fn figures(&self) -> Figures;

    /// A copy that holds at least every insert that happened before.
    #[doc(hidden)]
    fn try_clone(&self) -> Result<Self, BuildError>;

    /// The figures that only this engine has.
    #[doc(hidden)]
    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>);

    /// Works by the kernels of `isa` from now on, if the engine has any.
    #[doc(hidden)]
    fn set_isa(&mut self, _: Isa) {}
}

/// An engine that hashes can be inserted into.
///
/// It cannot be implemented further.
pub trait Insert: Engine {
    /// The answer of one insert.
    type Answer: Outcome;
    /// The answer of many inserts.
    type Total: Total;

    #[doc(hidden)]
    fn insert(&self, hash: u64) -> Self::Answer;

    /// Inserts in order.
    #[doc(hidden)]
    fn insert_all(&self, source: &impl Source) -> Self::Total;

    /// Unsets everything.
    #[doc(hidden)]
    fn clear(&mut self);
}

/// The answer of an insert: a value, or an error if there was no room.
///
/// It cannot be implemented further.
pub trait Outcome: sealed::Sealed + Sized {
    /// Whether a key was not inserted.
    #[doc(hidden)]
    fn is_refused(&self) -> bool;

    /// Whether a key found no room. (Otherwise it is there as often as it can be.)
    #[doc(hidden)]
    fn is_full(&self) -> bool;

    /// The answer of an insert into two engines: the first error, otherwise the greater value.
    #[doc(hidden)]
    fn and(self, other: Self) -> Self;
}

/// The answer of many inserts: the sum of the values, or the error of the first key that was not
/// inserted.
///
/// It cannot be implemented further.
pub trait Total: Outcome {
    /// The answer for no keys.
    #[doc(hidden)]
    const NONE: Self;

    /// Adds the answer for the keys from position `before` on.
    #[doc(hidden)]
    fn add(&mut self, before: usize, next: Self);

    /// The position of the first key that was not inserted, and the last that was tried.
    #[doc(hidden)]
    fn refused_at(&self) -> Option<usize>;
}

macro_rules! values {
    ($($value:ty)*) => {$(
        impl sealed::Sealed for $value {}

        impl Outcome for $value {
            fn is_refused(&self) -> bool {
                false
            }

            fn is_full(&self) -> bool {
                false
            }

            fn and(self, other: Self) -> Self {
                self.max(other)
            }
        }
    )*};
}
values! { () bool usize }

impl Total for () {
    const NONE: Self = ();

    fn add(&mut self, _: usize, (): ()) {}

    fn refused_at(&self) -> Option<usize> {
        None
    }
}

impl Total for usize {
    const NONE: Self = 0;

    fn add(&mut self, _: usize, next: Self) {
        *self += next;
    }

    fn refused_at(&self) -> Option<usize> {
        None
    }
}

/// An error of an insert.
pub trait Refusal {
    /// The error for a batch in which `before` keys came first.
    fn after(self, before: usize) -> Self;

    /// The number of keys inserted before.
    fn inserted(&self) -> usize;

    /// Otherwise the key is there as often as it can be.
    fn is_full(&self) -> bool;
}

impl Refusal for InsertError {
    fn after(self, before: usize) -> Self {
        let inserted = self.inserted + before;
        Self { inserted, ..self }
    }

    fn inserted(&self) -> usize {
        self.inserted
    }

    fn is_full(&self) -> bool {
        self.is_full()
    }
}

impl Refusal for FullError {
    fn after(self, before: usize) -> Self {
        let inserted = self.inserted + before;
        Self { inserted, ..self }
    }

    fn inserted(&self) -> usize {
        self.inserted
    }

    fn is_full(&self) -> bool {
        true
    }
}

impl<T, E> sealed::Sealed for Result<T, E> {}

impl<T: Outcome, E: Refusal> Outcome for Result<T, E> {
    fn is_refused(&self) -> bool {
        self.is_err()
    }

    fn is_full(&self) -> bool {
        self.as_ref().is_err_and(E::is_full)
    }

    fn and(self, other: Self) -> Self {
        Ok(self?.and(other?))
    }
}

impl<T: Total, E: Refusal> Total for Result<T, E> {
    const NONE: Self = Ok(T::NONE);

    fn add(&mut self, before: usize, next: Self) {
        if let Ok(sum) = self {
            match next {
                Ok(next) => sum.add(before, next),
                Err(error) => *self = Err(error.after(before)),
            }
        }
    }

    fn refused_at(&self) -> Option<usize> {
        self.as_ref().err().map(E::inserted)
    }
}

/// An engine whose inserts report whether the key was new.
///
/// It cannot be implemented further.
pub trait InsertFlagged: Insert {
    /// [`insert_all`](Insert::insert_all) that passes each answer on.
    #[doc(hidden)]
    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> Self::Total;
}

/// An engine that can only estimate its number of keys.
///
/// It cannot be implemented further.
pub trait Estimate: Engine {
    #[doc(hidden)]
    fn estimated_len(&self) -> usize;
}

/// An engine whose content does not depend on the order of the inserts: it can be compared and
/// united.
///
/// It cannot be implemented further.
pub trait Union: Insert {
    /// Whether both have the same layout and the same content.
    #[doc(hidden)]
    fn same(&self, other: &Self) -> bool;

    /// Fails if the layouts differ.
    #[doc(hidden)]
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError>;

    /// Adds the content of `other`; returns whether that changed this engine. Fails if there is no
    /// room.
    #[doc(hidden)]
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError>;
}

/// An engine that keeps a slot for each copy of a key.
///
/// It cannot be implemented further.
pub trait Count: Engine {
    #[doc(hidden)]
    fn count(&self, hash: u64) -> usize;

    #[doc(hidden)]
    fn len(&self) -> usize;

    #[doc(hidden)]
    fn slots(&self) -> usize;

    #[doc(hidden)]
    fn max_copies(&self) -> usize;
}

/// An engine that hashes can be removed from.
///
/// It cannot be implemented further.
pub trait Remove: Insert {
    #[doc(hidden)]
    fn remove(&self, hash: u64) -> bool;

    /// Removes in order; returns how many were there.
    #[doc(hidden)]
    fn remove_all(&self, source: &impl Source, answer: Answer<'_>) -> usize;
}

/// An engine that can be saved and loaded.
///
/// It cannot be implemented further.
pub trait Stored: Engine {
    /// Whether encoding blocks changes, so that a slow writer gets a copy.
    #[doc(hidden)]
    const HELD: bool;

    #[doc(hidden)]
    fn snapshot_bytes(&self) -> usize;

    #[doc(hidden)]
    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error>;

    /// Reads an engine of at most `limit` bytes. `hasher` turns the record of the hasher into one.
    #[doc(hidden)]
    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind>;
}

/// An engine whose memory is proportional to its snapshot.
///
/// It cannot be implemented further.
pub trait Proportional: Stored {}

/// An engine whose snapshots always have the same length.
///
/// It cannot be implemented further.
pub trait FixedSize: Stored {}

impl<E: FixedSize> Proportional for E {}
