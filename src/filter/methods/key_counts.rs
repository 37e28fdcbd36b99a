//! How often a key is in a filter, for the types that keep each copy of a key in a slot.

use crate::filter::Filter;
use crate::filter::parts::slots::Bucketed;
use crate::filter::traits::{Count, Engine};
use crate::funnel::Funnel;
use crate::hash::KeyHasher;

/// Copies and slots.
impl<T, S: KeyHasher> Filter<Bucketed<T>, S>
where
    Bucketed<T>: Count + Engine,
{
    /// How often `key` is in the filter: as often as it was inserted and not removed, or
    /// more at the false-positive rate.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&["a", "b", "a"]).unwrap();
    /// assert_eq!(["a", "b", "c"].map(|key| filter.count(key)), [2, 1, 0]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn count<K: Funnel + ?Sized>(&self, key: &K) -> usize {
        self.count_hash(self.hash(key))
    }
}

/// Copies and slots.
impl<T, S> Filter<Bucketed<T>, S>
where
    Bucketed<T>: Count,
{
    /// [`count`](Self::count) by hash.
    ///
    /// ```
    /// let filter = lanebloom::CuckooFilter::with_capacity(1000, 0.01)?;
    /// filter.insert("a").unwrap();
    /// assert_eq!(filter.count_hash(filter.hash("a")), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> usize {
        self.engine.count_hash(hash)
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
