//! The filters that a guard can serve from.

use lanebloom::{Answers, Bitmap, BuildError, Filter, Funnel, InsertError, KeyHasher, Membership, Statistics};
use std::time::Duration;

/// The keys of a batch that are looked up and counted at a time, a multiple of 64. Their bitmap
/// takes 128 bytes of the stack.
pub(crate) const CHUNK: usize = 1024;

/// A filter that a [`CacheGuard`](crate::CacheGuard) can serve from.
///
/// Every [`Filter`] with inserts implements it, and [`Layered`](crate::Layered), which takes less
/// memory. With the feature `formats`, `GuavaBloom` of `lanebloom-formats` does too. With the
/// feature `redis`, `Shared` of `lanebloom-redis` does.
///
/// # Filters of your own
///
/// You can implement it for your own type. Your type must keep the guard's promise: if an insert of
/// a key happens before a lookup of the key, the lookup returns `true`, unless the insert returned
/// `false`.
///
/// Five methods are required. The defaults of the others fit a filter of one process. A type that
/// wraps any [`GuardFilter`] passes these on as well, and one that wraps a [`Filter`] the batches,
/// which are faster than single calls.
///
/// ```
/// use lanebloom_guard::lanebloom::{ConcurrentBloom, Funnel, Statistics};
/// use lanebloom_guard::{CacheGuard, GuardFilter};
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// /// Counts the keys that it looks up. Batches take the default, which looks up
/// /// one key after another.
/// struct Counted {
///     keys: ConcurrentBloom,
///     lookups: AtomicU64,
/// }
///
/// impl GuardFilter for Counted {
///     fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
///         self.lookups.fetch_add(1, Relaxed);
///         self.keys.contains(key)
///     }
///     fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
///         GuardFilter::insert(&self.keys, key)
///     }
///     fn statistics(&self) -> Statistics {
///         self.keys.statistics()
///     }
///     fn false_positive_rate(&self) -> f64 {
///         self.keys.false_positive_rate()
///     }
///     fn memory_bytes(&self) -> usize {
///         self.keys.memory_bytes()
///     }
/// }
///
/// let keys = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// let counted = Counted { keys, lookups: AtomicU64::new(0) };
/// let guard = CacheGuard::<str, _>::new(counted);
/// guard.insert_batch(&["ann", "bob"]);
/// let mut admitted = Vec::new();
/// guard.check_batch(&["eve", "bob", "ann"], |i, _| admitted.push(i));
/// assert_eq!(admitted, [1, 2]);
/// assert_eq!(guard.filter().lookups.load(Relaxed), 3);
/// # Ok::<(), lanebloom_guard::lanebloom::BuildError>(())
/// ```
///
/// # Examples
///
/// ```
/// use lanebloom_guard::lanebloom::ConcurrentBloom;
/// use lanebloom_guard::{CacheGuard, GuardFilter, Layered};
///
/// fn keys<F: GuardFilter>(guard: &CacheGuard<str, F>) -> usize {
///     guard.filter().statistics().len
/// }
///
/// let keyed = CacheGuard::with_capacity(1000, 0.01)?;
/// let seeded = CacheGuard::new(ConcurrentBloom::with_capacity(1000, 0.01)?);
/// keyed.insert("ann");
/// seeded.insert_batch(&["ann", "bob"]);
/// assert_eq!((keys(&keyed), keys(&seeded)), (1, 2));
/// let filter = keyed.filter(); // of this process alone, and filled
/// assert_eq!((filter.lag(), filter.may_lack_keys()), (None, false));
/// assert!(filter.holds("ann") && !filter.holds("bob"));
/// assert!(filter.has_room_for(1000, 1000) && !filter.has_room_for(1001, 1000));
///
/// let layered = Layered::new(100, 1e-3)?;
/// assert!(layered.insert("ann") && layered.may_lack_keys());
/// assert!(layered.has_room_for(2000, 1000)); // no size before it is built
/// layered.complete()?;
/// assert!(layered.contains("ann") && !layered.contains("bob"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub trait GuardFilter: Send + Sync + 'static {
    /// Whether the filter may hold the key.
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool;

    /// [`contains`](Self::contains) of many keys, as bits. Panics if `out` has room for more or
    /// fewer keys. By default, it looks up one key after another.
    fn contains_batch<K: Funnel>(&self, keys: &[K], mut out: Bitmap<'_>) {
        out.place(keys.len());
        for (keys, word) in keys.chunks(64).zip(out.0) {
            let bit = |word, key| word << 1 | u64::from(self.contains(key));
            *word = keys.iter().rev().fold(0, bit);
        }
    }

    /// Inserts a key. Returns whether the filter now holds the key: `false` if it has no room.
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool;

    /// Inserts the keys for which the filter has room. Returns whether it now holds all of them. By
    /// default, it inserts one key after another.
    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> bool {
        // Not `all`, which would end at the first refused key.
        keys.iter().filter(|key| !self.insert(*key)).count() == 0
    }

    /// Fill, number of keys and false-positive rate now, as [`Filter::statistics`]: one pass over
    /// the whole filter.
    fn statistics(&self) -> Statistics;

    /// The false-positive rate that the filter was built for.
    fn false_positive_rate(&self) -> f64;

    /// The memory that the filter takes, in bytes.
    fn memory_bytes(&self) -> usize;

    /// The time since a shared filter's last exchange with its server. `None` for filters of this
    /// process alone. A cache takes `Some` as the sign that other processes insert into the filter:
    /// while it may lack keys, the cache remembers no miss, unless it follows a feed.
    fn lag(&self) -> Option<Duration> {
        None
    }

    /// Whether the filter holds every key for a while, because it may lack valid ones: a guard over
    /// it [is open](crate::CacheGuard#open-guards). False, except for a shared filter with
    /// `open_above_lag` or `open_until_filled`, and a [`Layered`](crate::Layered) that still
    /// collects keys.
    fn may_lack_keys(&self) -> bool {
        false
    }

    /// Whether the filter itself holds the key, also while it [may lack keys](Self::may_lack_keys)
    /// and [`contains`](Self::contains) returns true for every key. A cache that follows a feed
    /// remembers misses while a shared filter lags: such a miss counts until the filter holds the
    /// key. By default, this is `contains`. A shared filter overrides it, and a type that wraps a
    /// filter passes the call on.
    fn holds<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains(key)
    }

    /// Whether a filter that was planned for `planned` keys may serve with this many. If it may
    /// not, a [cache](crate#rebuilds) reads the keys again, for a larger filter. It asks only about
    /// more keys than planned. A type that wraps a filter passes the call on.
    fn has_room_for(&self, keys: usize, planned: usize) -> bool {
        keys <= planned
    }

    /// Called when a [rebuild](crate::Rebuild) is committed, before the filter serves: builds what
    /// needs all keys at once. Other threads may insert meanwhile. If it fails, the guard keeps the
    /// old filter. A type that wraps a filter passes the call on.
    fn complete(&self) -> Result<(), BuildError> {
        Ok(())
    }
}

/// Sets the bits of this many keys.
pub(crate) fn admit_all(keys: usize, mut out: Bitmap<'_>) {
    out.place(keys);
    for (i, word) in out.0.iter_mut().enumerate() {
        *word = u64::MAX >> (64 - (keys - 64 * i).min(64));
    }
}

impl<E, S> GuardFilter for Filter<E, S>
where
    Filter<E, S>: Membership<Hasher = S> + Send + Sync + 'static,
    S: KeyHasher,
{
    #[inline]
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        Membership::contains(self, key)
    }

    fn contains_batch<K: Funnel>(&self, keys: &[K], out: Bitmap<'_>) {
        Membership::contains_batch(self, keys, out);
    }

    /// If the filter refuses a key although it has room, it holds the largest number of copies of
    /// this key. (A lookup proves less: it may find another key, which may be removed later.)
    #[inline]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let refused: Option<InsertError> = Membership::insert(self, key).err();
        !refused.is_some_and(|refused| refused.is_full())
    }

    /// The filter's batch ends at the first refused key. This inserts the rest one by one.
    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> bool {
        let inserted = match Membership::insert_batch(self, keys) {
            Ok(_) => keys.len(),
            Err(refused) => refused.inserted(),
        };
        let refused = keys[inserted..].iter().filter(|key| !GuardFilter::insert(self, *key));
        refused.count() == 0
    }

    fn statistics(&self) -> Statistics {
        Membership::statistics(self)
    }

    fn false_positive_rate(&self) -> f64 {
        Membership::false_positive_rate(self)
    }

    fn memory_bytes(&self) -> usize {
        Membership::memory_bytes(self)
    }
}

#[cfg(feature = "formats")]
impl GuardFilter for lanebloom_formats::GuavaBloom {
    #[inline]
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains(key)
    }

    fn contains_batch<K: Funnel>(&self, keys: &[K], out: Bitmap<'_>) {
        self.contains_batch(keys, out);
    }

    #[inline]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert(key);
        true
    }

    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> bool {
        self.insert_batch(keys);
        true
    }

    fn statistics(&self) -> Statistics {
        self.statistics()
    }

    fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate()
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
}

/// Reads and writes the local copy. While the copy may lack keys, every key may be in the set.
#[cfg(feature = "redis")]
impl<F: GuardFilter> GuardFilter for lanebloom_redis::Shared<F> {
    #[inline]
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        // The exchange that closes the guard adds its keys, and then says so (partner: the stores
        // of `Control::report`). The first lookup may be older than that; one after `false` is not.
        F::contains(self, key) || self.can_lack_keys() && (self.may_lack_keys() || F::contains(self, key))
    }

    fn contains_batch<K: Funnel>(&self, keys: &[K], out: Bitmap<'_>) {
        // Before the lookup, which then has the keys of an exchange that has closed the guard.
        let is_open = self.may_lack_keys();
        F::contains_batch(self, keys, Bitmap(out.0));
        if is_open {
            admit_all(keys.len(), out);
        }
    }

    fn statistics(&self) -> Statistics {
        F::statistics(self)
    }

    fn false_positive_rate(&self) -> f64 {
        F::false_positive_rate(self)
    }

    fn memory_bytes(&self) -> usize {
        F::memory_bytes(self)
    }

    #[inline]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        F::insert(self, key)
    }

    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> bool {
        F::insert_batch(self, keys)
    }

    fn lag(&self) -> Option<Duration> {
        Some(Self::lag(self))
    }

    fn may_lack_keys(&self) -> bool {
        Self::may_lack_keys(self)
    }

    fn holds<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        F::holds(self, key)
    }

    fn has_room_for(&self, keys: usize, planned: usize) -> bool {
        F::has_room_for(self, keys, planned)
    }

    fn complete(&self) -> Result<(), BuildError> {
        F::complete(self)
    }
}

/// The generations of a `SharedSet` in this process.
#[cfg(feature = "redis")]
impl<S: KeyHasher + Send + Sync + 'static> GuardFilter for lanebloom_redis::LocalSet<S> {
    #[inline]
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains(key)
    }

    fn contains_batch<K: Funnel>(&self, keys: &[K], out: Bitmap<'_>) {
        self.contains_batch(keys, out);
    }

    #[inline]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert(key);
        true
    }

    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> bool {
        self.insert_batch(keys);
        true
    }

    fn statistics(&self) -> Statistics {
        self.statistics()
    }

    fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate()
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }

    /// All processes have the set's size, which no cache chooses: the set is rebuilt once
    /// [outgrown](lanebloom_redis::LocalSet::is_outgrown).
    fn has_room_for(&self, _: usize, _: usize) -> bool {
        true
    }
}
