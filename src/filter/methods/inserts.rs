//! Inserts, for the types that have them: one macro for filters that take every key, and one for
//! filters that can refuse a key.
//!
//! In a generic impl their answer would be an associated type. An impl that names the alias comes
//! first on its page.

use crate::batch::{self, HASHED, try_gathered};
use crate::error::InsertError;
use crate::filter::Filter;
use crate::filter::methods::traits::Insert;
use crate::filter::parts::engine::{InsertFlaggedImpl, InsertImpl};
use crate::filter::types::bloom::{Bloom, ConcurrentBloom};
use crate::filter::types::counting::{Counting, CountingBloom};
use crate::filter::types::cuckoo::{Cuckoo, CuckooFilter};
use crate::filter::types::dleft::{DLeft, DLeftFilter};
use crate::filter::types::scalable::{Chain, ScalableBloom};
use crate::filter::types::tombstone::{Tombstone, TombstoneBloom};
#[cfg(feature = "std")]
use crate::filter::types::windowed::{Generations, WindowedBloom};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, assert_same_length};
use crate::kernel::FEWEST_IN_A_BATCH;
use core::convert::{Infallible, identity};

macro_rules! inserts {
    ($($filter:ident: $engine:ty),*) => {$(
        /// Inserts.
        impl<S: KeyHasher> $filter<S> {
            /// Inserts `key`; returns whether it was new, as [the type](Self) says.
            ///
            /// The answer can be `false` for a new key, at the false-positive rate. If several
            /// threads race to insert a new key, **at least** one of them gets `true`, and several
            /// may: do not take it for a claim. (With one [word per
            /// key](crate::bloom::Builder::words_per_key) exactly one thread gets it.)
            ///
            /// # Memory ordering
            ///
            /// Every change is a `Release`, and `false` ends in an `Acquire`, like a lookup's
            /// `true`. In a `ConcurrentBloom`, a key that is there already costs loads only.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// assert!(filter.insert("a"));
            /// assert!(!filter.insert("a"));
            /// assert!(filter.contains("a"));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias("add", "put", "check_and_set"))]
            #[inline]
            pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
                self.engine.insert(self.hash(key))
            }

            /// Inserts every key; returns how many inserts answered `true`.
            ///
            /// A `ConcurrentBloom` inserts dense batches [in bulk](crate#inserting-in-bulk), which
            /// allocates memory: from 1024 keys, and 6 per line of the filter, on.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// assert_eq!(filter.insert_batch(&["a", "b", "a"]), 2);
            /// assert!(filter.contains("b"));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[inline]
            pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
                if keys.len() < FEWEST_IN_A_BATCH {
                    return keys.iter().map(|key| usize::from(self.insert(key))).sum();
                }
                self.engine.insert_all(&self.keys(keys))
            }

            /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
            /// [`Extend`] does the same through `&mut`.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// assert_eq!(filter.insert_all(["a", "b", "a"]), 2);
            /// assert!(filter.contains("b"));
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias = "extend")]
            pub fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> usize {
                let mut new = 0;
                let hashes = keys.into_iter().map(|key| self.hash(&key));
                let Ok(()) = try_gathered::<HASHED, _, Infallible>(hashes, |hashes| {
                    new += self.insert_hashes(hashes);
                    Ok(())
                });
                new
            }
        }

        /// [`insert_all`](Filter::insert_all). For a reference to the filter too.
        ///
        /// ```
        #[doc = concat!("let mut filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
        /// filter.extend(["a", "b"]);
        /// (&filter).extend(0..10u32);
        /// assert!(filter.contains("b") && filter.contains(&9u32));
        /// # Ok::<(), lanebloom::BuildError>(())
        /// ```
        impl<K: Funnel, S: KeyHasher> Extend<K> for $filter<S> {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                self.insert_all(keys);
            }
        }

        impl<K: Funnel, S: KeyHasher> Extend<K> for &$filter<S> {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                self.insert_all(keys);
            }
        }
    )*};
}

inserts! { ConcurrentBloom: Bloom, CountingBloom: Counting, TombstoneBloom: Tombstone }
#[cfg(feature = "std")]
inserts! { WindowedBloom: Generations }

/// `$answer` and `$total` are what `Ok` holds after one insert and after many; `$add` sums the
/// latter.
macro_rules! refusing_inserts {
    ($filter:ident: $engine:ty, $answer:ty, $total:ty, $add:expr) => {
        /// Inserts.
        impl<S: KeyHasher> $filter<S> {
            /// Inserts `key`. [The type](Self) says what `Ok` holds.
            ///
            /// # Errors
            ///
            /// Fails if the filter is full, or if the key was inserted as often as it can be. The
            /// filter loses nothing.
            ///
            /// # Memory ordering
            ///
            /// Every change is a `Release`.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert("a")?;
            /// assert!(filter.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[doc(alias("add", "put", "check_and_set"))]
            #[inline]
            pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> Result<$answer, InsertError> {
                self.engine.insert(self.hash(key))
            }

            /// Inserts every key in order, up to the first one that is refused. Fails as
            /// [`insert`](Self::insert). The error says how many keys were
            /// [inserted](InsertError::inserted) before.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert_batch(&["a", "b"])?;
            /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> Result<$total, InsertError> {
                self.engine.insert_all(&self.keys(keys))
            }

            /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time. A
            /// filter that is full takes no more keys from the iterator. Fails as
            /// [`insert_batch`](Self::insert_batch).
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// filter.insert_all(0..100u32)?;
            /// assert!((0..100u32).all(|key| filter.contains(&key)));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[doc(alias("extend", "try_extend"))]
            pub fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> Result<$total, InsertError> {
                let (mut total, mut before) = (<$total>::default(), 0);
                let hashes = keys.into_iter().map(|key| self.hash(&key));
                try_gathered::<HASHED, _, _>(hashes, |hashes| {
                    let inserted = self.insert_hashes(hashes).map_err(|error| error.after(before))?;
                    $add(&mut total, inserted);
                    before += hashes.len();
                    Ok(())
                })?;
                Ok(total)
            }
        }
    };
}

refusing_inserts! { CuckooFilter: Cuckoo, (), (), |(): &mut (), ()| () }
refusing_inserts! { DLeftFilter: DLeft, (), (), |(): &mut (), ()| () }
refusing_inserts! { ScalableBloom: Chain, bool, usize, |total: &mut usize, new| *total += new }

/// Methods that are alike, but for their answers. `$one` makes the answer of one insert that of a
/// batch, `$asks` is `?` in an example if an insert can fail, and `$errors` says then how.
macro_rules! alike {
    ($asks:literal, $errors:literal; $($filter:ident: $engine:ty => $answer:ty, $total:ty, $one:expr;)*) => {$(
        /// Inserts by hash.
        impl<S> Filter<$engine, S> {
            /// [`insert`](Filter::insert) by hash.
            #[doc = $errors]
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert_hash(0x9e37_79b9_7f4a_7c15)", $asks, ";")]
            /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[inline]
            pub fn insert_hash(&self, hash: u64) -> $answer {
                self.engine.insert(hash)
            }

            /// [`insert_batch`](Filter::insert_batch) by hash.
            #[doc = $errors]
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert_hashes(&[\"a\", \"b\"].map(|key| filter.hash(key)))", $asks, ";")]
            /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[inline]
            pub fn insert_hashes(&self, hashes: &[u64]) -> $total {
                match hashes {
                    // loom is to see the way of a batch in one key too.
                    [hash] if !cfg!(lanebloom_loom) => $one(self.insert_hash(*hash)),
                    _ => self.engine.insert_hashes(hashes),
                }
            }

            /// Removes all keys. It takes `&mut self`: beside inserts, some keys would survive in
            /// part.
            ///
            /// ```
            #[doc = concat!("let mut filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            #[doc = concat!("filter.insert(\"a\")", $asks, ";")]
            /// filter.clear();
            /// assert!(!filter.contains("a") && filter.is_empty());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn clear(&mut self) {
                self.engine.clear();
            }
        }

        impl<S: KeyHasher> Insert for $filter<S> {
            #[inline]
            fn try_insert<K: Funnel + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
                Ok(self.insert(key).changed(1)? == 1)
            }

            #[inline]
            fn try_insert_hash(&self, hash: u64) -> Result<bool, InsertError> {
                Ok(self.insert_hash(hash).changed(1)? == 1)
            }

            fn try_insert_batch<K: Funnel>(&self, keys: &[K]) -> Result<usize, InsertError> {
                self.insert_batch(keys).changed(keys.len())
            }

            fn try_insert_hashes(&self, hashes: &[u64]) -> Result<usize, InsertError> {
                self.insert_hashes(hashes).changed(hashes.len())
            }

            fn try_insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> Result<usize, InsertError> {
                let mut len = 0;
                let answer = self.insert_all(keys.into_iter().inspect(|_| len += 1));
                answer.changed(len)
            }
        }
    )*};
}

alike! {
    "", "";
    ConcurrentBloom: Bloom => bool, usize, usize::from;
    CountingBloom: Counting => bool, usize, usize::from;
    TombstoneBloom: Tombstone => bool, usize, usize::from;
}
#[cfg(feature = "std")]
alike! { "", ""; WindowedBloom: Generations => bool, usize, usize::from; }
alike! {
    "?", "\n# Errors\n\nAs the method for keys.\n\n# Examples\n";
    CuckooFilter: Cuckoo => Result<(), InsertError>, Result<(), InsertError>, identity;
    DLeftFilter: DLeft => Result<(), InsertError>, Result<(), InsertError>, identity;
    ScalableBloom: Chain => Result<bool, InsertError>, Result<usize, InsertError>, |one: Result<bool, _>| one.map(usize::from);
}

/// `$total` is the answer of a batch, and `$two` how a test writes it for two new keys.
macro_rules! flagged_inserts {
    ($($filter:ident: $engine:ty, $total:ty, $two:literal;)*) => {$(
        /// Inserts that answer for each key.
        impl<S: KeyHasher> $filter<S> {
            /// [`insert_batch`](Self::insert_batch) that also writes each insert's answer to the
            /// same place of `new`. The first of several equal keys gets `true`, and a key that is
            /// refused gets `false`. Panics if the lengths differ.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let mut new = [false; 3];
            #[doc = concat!("assert_eq!(filter.insert_batch_flagged(&[\"a\", \"a\", \"b\"], &mut new), ", $two, ");")]
            /// assert_eq!(new, [true, false, true]);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> $total {
                assert_same_length(keys.len(), new.len());
                self.engine
                    .insert_flagged(&self.keys(keys), Some(&mut batch::unpack_into(self.isa, new)))
            }
        }

        /// Inserts by hash that answer for each.
        impl<S> Filter<$engine, S> {
            /// [`insert_batch_flagged`](Filter::insert_batch_flagged) by hash. Panics if the
            /// lengths differ.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::with_capacity(1000, 0.01)?;")]
            /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
            /// let mut new = [false; 3];
            #[doc = concat!("assert_eq!(filter.insert_hashes_flagged(&hashes, &mut new), ", $two, ");")]
            /// assert_eq!(new, [true, true, false]);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> $total {
                assert_same_length(hashes.len(), new.len());
                self.engine
                    .insert_flagged(&hashes, Some(&mut batch::unpack_into(self.isa, new)))
            }
        }
    )*};
}

flagged_inserts! {
    ConcurrentBloom: Bloom, usize, "2";
    CountingBloom: Counting, usize, "2";
    TombstoneBloom: Tombstone, usize, "2";
    ScalableBloom: Chain, Result<usize, InsertError>, "Ok(2)";
}
#[cfg(feature = "std")]
flagged_inserts! { WindowedBloom: Generations, usize, "2"; }

/// The answer of inserts.
trait Changed {
    /// How many of `keys` inserts changed the filter.
    fn changed(self, keys: usize) -> Result<usize, InsertError>;
}

/// Every insert changes the filter.
impl Changed for () {
    fn changed(self, keys: usize) -> Result<usize, InsertError> {
        Ok(keys)
    }
}

impl Changed for bool {
    fn changed(self, _: usize) -> Result<usize, InsertError> {
        Ok(self.into())
    }
}

impl Changed for usize {
    fn changed(self, _: usize) -> Result<usize, InsertError> {
        Ok(self)
    }
}

impl<T: Changed> Changed for Result<T, InsertError> {
    fn changed(self, keys: usize) -> Result<usize, InsertError> {
        self?.changed(keys)
    }
}
