//! A rebuild of a guard: a new filter is filled while the old one serves, and then replaces it.

use crate::as_key::AsKey;
use crate::error::{RebuildError, RebuildErrorKind};
use crate::filter::CHUNK;
use crate::filter::GuardFilter;
use crate::guard::{CacheGuard, FilterPair, ServedFilter, debug_assert_borrowed_form, keyed_filter};
use lanebloom::internal::AtomicU64;
use lanebloom::{BuildError, ConcurrentBloom, Funnel, SipHash13};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A rebuild in progress, with a new filter to fill; made by
/// [`CacheGuard::rebuild_with_capacity`] and [`CacheGuard::rebuild`]. If it is dropped before
/// [`commit`](Self::commit), the guard keeps the old filter.
///
/// # Examples
///
/// ```
/// use lanebloom_guard::CacheGuard;
/// use std::collections::HashSet;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// let found = |key| guard.check(key).is_some();
/// guard.insert("removed");
/// drop(guard.rebuild_with_capacity(1000, 0.01)?); // the store failed, say
/// assert!(found("removed"));
///
/// let store = HashSet::from(["ann", "bob"]);
/// let rebuild = guard.rebuild_with_capacity(2000, 0.01)?;
/// guard.insert("added meanwhile");
/// rebuild.insert_all(store); // read after the rebuild began
/// rebuild.insert("carl");
/// rebuild.insert_batch(&["dave", "eve"]);
/// assert!(rebuild.filter().statistics().len >= 5);
/// rebuild.commit()?;
/// assert!(["ann", "bob", "carl", "dave", "eve"].into_iter().all(found));
/// assert!(found("added meanwhile") && !found("removed"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "the guard keeps its old filter until `commit`"]
pub struct Rebuild<'a, K: Funnel + ?Sized, F: GuardFilter = ConcurrentBloom<SipHash13>> {
    guard: &'a CacheGuard<K, F>,
    /// The filter that serves afterwards: the old one, or after `commit` the new one.
    serving: ServedFilter<F>,
    next: ServedFilter<F>,
    /// Dropped last, after the filters.
    _claim: Claim<'a>,
}

/// Excludes other rebuilds until it is dropped.
struct Claim<'a>(&'a AtomicU64);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // Partner: the swap in `CacheGuard::begin_rebuild`.
        self.0.store(0, Ordering::Release);
    }
}

impl<K: Funnel + ?Sized> CacheGuard<K> {
    /// [Begins a rebuild](Self::rebuild) into a filter as [`with_capacity`](Self::with_capacity)
    /// builds it, with a new size and a new random key. False positives that strangers have found
    /// under the old key end.
    ///
    /// # Errors
    ///
    /// Fails if another rebuild of this guard is in progress, or as `with_capacity` does. The
    /// example of [`Rebuild`] calls it.
    pub fn rebuild_with_capacity(&self, keys: usize, false_positive_rate: f64) -> Result<Rebuild<'_, K>, RebuildError> {
        self.begin_rebuild(|| keyed_filter(keys, false_positive_rate))
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter> CacheGuard<K, F> {
    /// Begins to replace the filter by `filter`, which is empty and sized for the keys to come.
    ///
    /// From now on, [inserts](Self::insert) go into both. Read the valid keys from the store
    /// **after** this call (an earlier snapshot lacks the keys added since), insert them into the
    /// [`Rebuild`], and [commit](Rebuild::commit). The guard serves from the old filter meanwhile.
    /// The hasher may have a new seed or key. If strangers choose the keys, it should.
    ///
    /// This waits until the calls that began before have ended. Those calls wait for nothing, but
    /// for each other where they insert into a [`Layered`](crate::Layered) that collects its keys.
    ///
    /// # Errors
    ///
    /// Fails if another rebuild of this guard is in progress.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::{CacheGuard, lanebloom::{ConcurrentBloom, SipHash13}};
    ///
    /// let builder = ConcurrentBloom::builder().memory_budget(1 << 20);
    /// let filter = || builder.clone().hasher(SipHash13::random()).build();
    /// let guard = CacheGuard::<str, _>::new(filter()?);
    /// guard.insert("removed");
    ///
    /// let rebuild = guard.rebuild(filter()?)?;
    /// guard.insert("added meanwhile");
    /// rebuild.commit()?;
    /// assert!(guard.check("added meanwhile").is_some());
    /// assert!(guard.check("removed").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuild(&self, filter: F) -> Result<Rebuild<'_, K, F>, RebuildError> {
        self.begin_rebuild(|| Ok(filter))
    }

    fn begin_rebuild(&self, filter: impl FnOnce() -> Result<F, BuildError>) -> Result<Rebuild<'_, K, F>, RebuildError> {
        // Partner: the store in `Claim::drop`, so that this thread loads its last state.
        if self.rebuilding.swap(1, Ordering::Acquire) != 0 {
            return Err(RebuildError(RebuildErrorKind::InProgress));
        }
        let claim = Claim(&self.rebuilding);
        let serving = self.filters.load().serving.clone();
        let next = serving.followed_by(filter().map_err(RebuildError::build)?);
        // Ends in a fence. Partner: that of `insert_by`, in `Swap::write_to_current`.
        self.filters.replace(FilterPair {
            serving: serving.clone(),
            next: Some(next.clone()),
        });
        Ok(Rebuild {
            guard: self,
            serving,
            next,
            _claim: claim,
        })
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter> Rebuild<'_, K, F> {
    /// Inserts a key into the new filter alone: see the [example above](Self#examples).
    ///
    /// Use it for keys that you read from the store. A key that is added to the store belongs into
    /// the guard, by [`CacheGuard::insert`]. If the filter has no room for a key,
    /// [`commit`](Self::commit) fails.
    pub fn insert<Q: AsKey<K> + ?Sized>(&self, key: &Q) {
        self.next.insert(key.borrow());
    }

    /// [`insert`](Self::insert) of many keys, by any number of threads at once.
    ///
    /// # Panics
    ///
    /// Panics like [`CacheGuard::check_batch`].
    pub fn insert_batch<Q: AsKey<K> + Funnel>(&self, keys: &[Q]) {
        debug_assert_borrowed_form(keys);
        self.next.insert_batch(keys);
    }

    /// [`insert_batch`](Self::insert_batch) of the keys of an iterator, until the filter refuses
    /// one.
    pub fn insert_all<Q: AsKey<K> + Funnel>(&self, keys: impl IntoIterator<Item = Q>) {
        let (mut keys, mut batch) = (keys.into_iter(), Vec::with_capacity(CHUNK));
        while !self.next.has_refused() {
            batch.extend(keys.by_ref().take(CHUNK));
            if batch.is_empty() {
                return;
            }
            self.insert_batch(&batch);
            batch.clear();
        }
    }

    /// The new filter, as [`CacheGuard::filter`].
    #[must_use]
    pub fn filter(&self) -> &Arc<F> {
        &self.next.filter
    }

    /// Replaces the old filter by the new one, if the new one holds every key.
    ///
    /// This returns once every call on the old filter has ended. It drops the old filter in this
    /// thread, unless somebody holds an `Arc` of [`CacheGuard::filter`]. Other threads never wait.
    /// A key that the new filter refuses while this call runs [opens the
    /// guard](CacheGuard#open-guards).
    ///
    /// # Errors
    ///
    /// Fails if the new filter refused a key, of the rebuild or of an insert into the guard. The
    /// guard keeps the old filter. Begin again with a larger one. Fails, too, if the filter cannot
    /// [be completed](GuardFilter::complete).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::{CacheGuard, lanebloom::CuckooFilter};
    ///
    /// let filter = |keys| CuckooFilter::builder().expected_keys(keys).build();
    /// let guard = CacheGuard::<u64, _>::new(filter(1000)?);
    /// guard.insert(&17);
    ///
    /// let too_small = guard.rebuild(filter(10)?)?;
    /// too_small.insert_all(0..1000);
    /// assert!(too_small.commit().unwrap_err().is_refused());
    /// assert!(guard.check(&17).is_some() && guard.check(&18).is_none());
    ///
    /// let rebuild = guard.rebuild(filter(1000)?)?;
    /// rebuild.insert(&18);
    /// rebuild.commit()?;
    /// assert!(guard.check(&17).is_none() && guard.check(&18).is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn commit(mut self) -> Result<(), RebuildError> {
        if self.next.has_refused() {
            return Err(RebuildError(RebuildErrorKind::Refused));
        }
        self.next.filter.complete().map_err(RebuildError::build)?;
        if self.next.has_refused() {
            return Err(RebuildError(RebuildErrorKind::Refused));
        }
        self.serving = self.next.clone();
        Ok(())
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter> Drop for Rebuild<'_, K, F> {
    fn drop(&mut self) {
        self.guard.filters.replace(FilterPair {
            serving: self.serving.clone(),
            next: None,
        });
    }
}

impl<K: Funnel + ?Sized, F: fmt::Debug + GuardFilter> fmt::Debug for Rebuild<'_, K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rebuild")
            .field("filter", &self.next.filter)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Mutex, OnceLock};
    use std::thread::{self, ThreadId};

    /// A filter that stops every reader until the test releases it, and records which thread drops
    /// it.
    struct HeldFilter {
        entered: Sender<()>,
        gate: Mutex<Receiver<()>>,
        dropped_by: Arc<OnceLock<ThreadId>>,
    }

    impl HeldFilter {
        /// Returns it with a receiver of entered readers, a sender that releases one, and the
        /// record.
        fn new() -> (Self, Receiver<()>, Sender<()>, Arc<OnceLock<ThreadId>>) {
            let ((entered, entries), (opener, gate)) = (channel(), channel());
            let dropped_by = Arc::new(OnceLock::new());
            let filter = Self {
                entered,
                gate: Mutex::new(gate),
                dropped_by: Arc::clone(&dropped_by),
            };
            (filter, entries, opener, dropped_by)
        }
    }

    impl Drop for HeldFilter {
        fn drop(&mut self) {
            self.dropped_by.set(thread::current().id()).unwrap();
        }
    }

    impl GuardFilter for HeldFilter {
        fn contains<K: Funnel + ?Sized>(&self, _: &K) -> bool {
            self.entered.send(()).unwrap();
            self.gate.lock().unwrap().recv().is_ok()
        }
        fn insert<K: Funnel + ?Sized>(&self, _: &K) -> bool {
            unreachable!("nothing is inserted")
        }
        fn statistics(&self) -> lanebloom::Statistics {
            unreachable!("not called")
        }
        fn false_positive_rate(&self) -> f64 {
            unreachable!("not called")
        }
        fn memory_bytes(&self) -> usize {
            unreachable!("not called")
        }
    }

    /// A reader is in the old filter while the filter is replaced. It entered before or after the
    /// rebuild began. It is the last to leave, and still the committing thread drops the filter:
    /// the drop of a `SharedBloom` may wait for the network.
    #[test]
    fn the_committing_thread_drops_the_old_filter() {
        for before in [true, false] {
            let (old, entries, opener, dropped_by) = HeldFilter::new();
            let guard = &CacheGuard::<u64, _>::new(old);
            let old = Arc::as_ptr(&guard.filter()).addr();
            let ((tell, told), (go, wait)) = (channel(), channel());
            thread::scope(|scope| {
                let read = || {
                    let reader = scope.spawn(|| guard.check(&1).is_some());
                    entries.recv().unwrap();
                    reader
                };
                let reader = before.then(read);
                let committer = scope.spawn(move || {
                    let rebuild = guard.rebuild(HeldFilter::new().0).unwrap();
                    tell.send(()).unwrap();
                    wait.iter().next().unwrap();
                    rebuild.commit().unwrap();
                    thread::current().id()
                });
                let reader = reader.unwrap_or_else(|| {
                    told.recv().unwrap();
                    read()
                });
                go.send(()).unwrap();
                // The pair through which the reader entered is replaced, while the reader is
                // inside.
                let is_replaced = || {
                    let pair = guard.filters.load();
                    Arc::as_ptr(&pair.serving.filter).addr() != old || (before && pair.next.is_some())
                };
                while !is_replaced() {
                    thread::yield_now();
                }
                opener.send(()).unwrap();
                assert!(reader.join().unwrap());
                let committer = committer.join().unwrap();
                assert_eq!(dropped_by.get(), Some(&committer));
            });
        }
    }
}
