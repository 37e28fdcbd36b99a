//! Inserts and lookups of a `ConcurrentBloom`, one key or many. (rustdoc sorts impls by module: in
//! this one they come first on the page.)

use crate::answers::Answers;
use crate::filter::methods::inserts::into_ok;
use crate::filter::types::bloom::ConcurrentBloom;
use crate::key::Key;

/// Inserts and lookups, one key or many.
impl<S> ConcurrentBloom<S> {
    /// Inserts `key`. Returns whether this changed the filter: `false` for a key that is there,
    /// and by chance for a new one, at the false-positive rate. Inserting a key again changes
    /// nothing. If several threads race to insert a new key, **at least** one of them gets `true`,
    /// and several may: do not take it for a claim. (With one [word per
    /// key](super::Builder::words_per_key) exactly one thread gets it.) `false` ends in an
    /// `Acquire`, like a lookup's `true`.
    ///
    /// Every change is a `Release`.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("add", "put", "check_and_set"))]
    #[inline]
    pub fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        into_ok(self.try_insert(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insert happened before. `true` ends in an `Acquire`.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::from_keys([17u64], 0.01)?;
    /// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.look_up(key)
    }

    /// Inserts the keys in order; returns how many inserts changed the filter.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&[1, 2]);
    /// assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> usize {
        into_ok(self.try_insert_batch(keys))
    }

    /// Passes on whether each key may be in the filter: what [`contains`](Self::contains) returns
    /// for it. [`Answers`] says what `out` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn contains_batch<K: Key<S>>(&self, keys: &[K], out: impl Answers) {
        self.look_up_batch(keys, out);
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each insert changed the
    /// filter. [`Answers`] says what `new` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.insert_batch_into(&[1, 1, 2], &mut new);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_into<K: Key<S>>(&self, keys: &[K], new: impl Answers) -> usize {
        into_ok(self.try_insert_batch_into(keys, new))
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
    ///
    /// ```
    /// let filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..100);
    /// assert!((0..100).all(|key| filter.contains(&key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: Key<S>>(&self, keys: impl IntoIterator<Item = K>) -> usize {
        into_ok(self.try_insert_all(keys))
    }
}
