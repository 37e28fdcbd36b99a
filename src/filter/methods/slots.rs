//! The methods of the types that keep each key in a slot.

use crate::answers::Answers;
use crate::error::InsertError;
use crate::filter::methods::inserts::taken;
use crate::filter::parts::slots::Bucketed;
use crate::filter::traits::{Count, Engine, Insert, Planned, Remove};
use crate::filter::{Builder, Filter};
use crate::key::Key;

/// Inserts and lookups, one key or many.
impl<T, S> Filter<Bucketed<T>, S>
where
    Bucketed<T>: Insert<Error = InsertError> + Engine,
{
    /// Inserts `key`. Fails if the filter is full, or if the key was inserted as often as it can
    /// be; it loses nothing. Another insert of a key is another copy, to be removed as often.
    ///
    /// Every change is a `Release`.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a")?;
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("add", "put", "check_and_set"))]
    #[inline]
    pub fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> Result<(), InsertError> {
        taken(self.try_insert(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insert happened before and that was not removed since. `true`
    /// ends in an `Acquire`.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::from_keys([17u64], 0.01)?;
    /// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.look_up(key)
    }

    /// Inserts the keys in order, up to one that is refused. An error says how many keys were
    /// [inserted](InsertError::inserted) before.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&[1, 2])?;
    /// assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> Result<(), InsertError> {
        taken(self.try_insert_batch(keys))
    }

    /// Passes on whether each key may be in the filter: what [`contains`](Self::contains) returns
    /// for it. [`Answers`] says what `out` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::from_keys(["a"], 0.01)?;
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
    /// filter; `false` for a key that is refused. [`Answers`] says what `new` can be, and when this
    /// panics.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.insert_batch_into(&[1, 1, 2], &mut new)?;
    /// assert_eq!(new, [true, true, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch_into<K: Key<S>>(&self, keys: &[K], new: impl Answers) -> Result<(), InsertError> {
        taken(self.try_insert_batch_into(keys, new))
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time. A filter
    /// that refuses a key takes no more from the iterator; it may have taken up to 1023 keys after
    /// that one already.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..100)?;
    /// assert!((0..100).all(|key| filter.contains(&key)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: Key<S>>(&self, keys: impl IntoIterator<Item = K>) -> Result<(), InsertError> {
        taken(self.try_insert_all(keys))
    }
}

/// Removes.
impl<T, S> Filter<Bucketed<T>, S>
where
    Bucketed<T>: Remove + Engine,
{
    /// Removes one copy of `key`. Returns whether it was there.
    ///
    /// **Remove only what was inserted, and as often.** Removing a false positive damages another
    /// key. A [`contains`](Self::contains) before it does not help: it finds the same false
    /// positive.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::from_keys(["a", "b"], 0.001)?;
    /// assert!(filter.remove("a"));
    /// assert!(!filter.contains("a") && filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn remove<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.take(key)
    }

    /// Removes every key, with the danger of [`remove`](Self::remove) at each; returns how many
    /// were there.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::from_keys([1, 2, 3], 0.001)?;
    /// assert_eq!(filter.remove_batch(&[1, 3]), 2);
    /// assert!(filter.contains(&2) && !filter.contains(&1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch<K: Key<S>>(&self, keys: &[K]) -> usize {
        self.take_batch_into(keys, ())
    }

    /// [`remove_batch`](Self::remove_batch) that also passes on whether each key was there: it does
    /// not find absent keys out beforehand. [`Answers`] says what `removed` can be, and when this
    /// panics.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::from_keys([1, 2, 3], 0.001)?;
    /// let mut removed = [false; 2];
    /// assert_eq!(filter.remove_batch_into(&[3, 1], &mut removed), 2);
    /// assert!(removed == [true, true] && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn remove_batch_into<K: Key<S>>(&self, keys: &[K], removed: impl Answers) -> usize {
        self.take_batch_into(keys, removed)
    }
}

/// Copies and slots.
impl<T, S> Filter<Bucketed<T>, S>
where
    Bucketed<T>: Count + Engine,
{
    /// How often `key` is in the filter: as often as it was inserted and not removed, or more at
    /// the false-positive rate.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&["a", "b", "a"])?;
    /// assert_eq!(["a", "b", "c"].map(|key| filter.count(key)), [2, 1, 0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count<K: Key<S> + ?Sized>(&self, key: &K) -> usize {
        self.engine.count_hash(key.hash_by(&self.hasher))
    }

    /// The number of keys in the filter, every copy counted. Reads the whole filter.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_all(["a", "b", "a"])?;
    /// assert_eq!(filter.len(), 3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn len(&self) -> usize {
        self.engine.len()
    }

    /// The number of slots: more than [`expected_keys`](Self::expected_keys), and more than
    /// can be filled.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(100_000, 2e-4)?;
    /// assert!((0.949..=0.95).contains(&(1e5 / filter.slots() as f64)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn slots(&self) -> usize {
        self.engine.slots()
    }

    /// How often one key can be inserted, if no other key takes its slots: 12, 10, 8 or 6
    /// times in a cuckoo filter, 3 times in a d-left filter.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.max_copies(), 12);
    /// (0..12).try_for_each(|_| filter.insert("a"))?;
    /// let error = filter.insert("a").unwrap_err();
    /// let text = "the key is in the filter 12 times, the limit for one key";
    /// assert!(!error.is_full() && error.to_string() == text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_copies(&self) -> usize {
        self.engine.max_copies()
    }
}

/// Options.
impl<T, S> Builder<Bucketed<T>, S>
where
    Bucketed<T>: Planned,
{
    /// The most memory that the filter may take, in bytes: at least one line of 64, and 72 in a
    /// [`DLeftFilter`](crate::DLeftFilter).
    ///
    /// ```
    /// let builder = lanebloom::CuckooFilter::builder();
    /// let filter = builder.memory_budget(100_000).build()?;
    /// assert!((99_000..=100_000).contains(&filter.memory_bytes()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }
}
