//! The cache-penetration guard: a filter of all valid keys that answers before a store does, so
//! that made-up keys never reach the store. Request paths call it. It calls a [`GuardFilter`], or
//! two of them during a rebuild.
//!
//! # A rebuild loses nothing
//!
//! The guard's state is one pointer to a pair: the filter that serves, and the next one while a
//! rebuild runs. An insert goes into both. Then it checks that the state is still the one it used;
//! if not, it inserts again. A rebuild publishes the pair first and reads the valid keys after.
//! Both put a `SeqCst` fence between their own write and their read of the other's write. So for
//! each insert one of two things holds. Either the insert saw the pair and inserted into the next
//! filter, or the rebuild began after the insert and reads a store that has the key already. Here a
//! batch is one insert: the store has all its keys before, and the check comes after the last key.
//!
//! # Why inserts come after the store's commit
//!
//! The second case above needs the order "commit, then insert". An insert *before* the commit is
//! not enough. A rebuild may begin between the two: it does not see the insert's key in flight,
//! reads a store that lacks the row, and replaces the filter that has the key. (An additional
//! insert before the commit does no harm: it costs one read of the store per early request.) But
//! code after an `await` may never run, because its future may be dropped there. So the caller
//! makes [`CacheGuard::insert_on_drop`] before the commit, and it inserts when it is dropped: after
//! the commit, or in place of the code after it. This is the order "commit, then insert" again,
//! wherever the future ends.
//!
//! It cannot order a commit that is still on its way when the future is dropped. The key is then
//! lost only if a rebuild begins after the drop and reads the store before the commit arrives
//! there. Nothing in this process can know of such a commit. So the docs name the remedy: a task of
//! its own for the write.
//!
//! # Who drops a filter
//!
//! Dropping a filter can take long: memory is unmapped, a thread is joined. No reader may do it.
//! The thread that replaces the state waits until every reader has left the old state, and then
//! drops it ([`Swap::replace`]). Readers wait for nobody. A reader holds a state only while the
//! filters' own code runs, never during a caller's code (the loads of [`CacheGuard::get_with`], the
//! closure of [`CacheGuard::check_batch`]). So the wait is as long as the longest running lookup or
//! batch of inserts, and such code may itself commit a rebuild.
//!
//! # A key that a filter refuses
//!
//! Some filters can be full. A guard that turned away a key because its filter had no room for it
//! would be wrong for good: the store has the row. So [`Held`] notes that its filter refused a key,
//! and from then on admits every key. The note belongs to the filter, not to the guard: the next
//! filter that takes over has none, and has the refused keys by the argument above (they were in
//! the store before they were refused). A refusal by the next filter fails
//! [`Rebuild::try_commit`]; one that comes after its check is noted all the same, and the guard is
//! open after the commit. In no order is a key turned away.
//!
//! To remember the refused hashes instead would take memory without bound, where memory may be what
//! is missing, and a lookup in them. To turn the refused key away, since its caller got the error,
//! would leave [`InsertOnDrop`], which has no caller, without a way to tell, and every other caller
//! with a row to repair.

pub(crate) mod error;
mod filter;
mod rebuild;
mod stats;

pub use filter::GuardFilter;
pub use rebuild::Rebuild;
pub use stats::{Admission, GuardStats};

use crate::error::BuildError;
use crate::filter::bloom::ConcurrentBloom;
use crate::filter::engine::{Outcome, Total};
use crate::funnel::Funnel;
use crate::hash::{Murmur3, SipHash13};
use crate::sync::{AtomicBool, Ordering, Swap};
use alloc::sync::Arc;
use core::borrow::Borrow;
use core::fmt;
use core::marker::PhantomData;
use filter::sealed::Calls;
use stats::Counts;

/// Keeps requests for keys that do not exist away from a store, for many threads at once.
///
/// Fill the guard with every valid key, put it before the store, and tell it of every key that is
/// added ([`insert`](Self::insert)). A key that was inserted is never turned away. A made-up key
/// is, except for the filter's false-positive rate. Removed keys stay admitted until the next
/// [rebuild](Self::rebuild_with_capacity), which runs while the guard serves, and is also the way
/// to grow.
///
/// # Key type
///
/// `K` is the type of the keys in their borrowed form: `u64`, `str`, `[u8]`, `(u32, u64)`. The
/// calls take whatever borrows as `K`. A `CacheGuard<str>` takes `str`, `String`, `&str`,
/// `Box<str>`, `Arc<str>`, `Cow<str>`, one by one and in batches. A key of another type does not
/// compile. A filter alone does not check that, and takes `17i32` and `17u64` as two different
/// keys.
///
/// ```
/// # use lanebloom::CacheGuard;
/// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
/// guard.insert(&17); // a u64
/// assert!(guard.check(&17u64).is_some());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
/// ```compile_fail,E0277
/// # use lanebloom::CacheGuard;
/// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
/// guard.insert(&17i32);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
///
/// # Keys from strangers
///
/// [`with_capacity`](Self::with_capacity) hashes with [`SipHash13`] under a random key, so nobody
/// can make keys that pass the guard. Under [`Murmur3`] anybody can: a stranger who knows one valid
/// key can compute any number of others with the same hash. [`new`](Self::new) takes any
/// [`GuardFilter`]. Give it a filter under Murmur3, for example a
/// [`GuavaBloom`](crate::GuavaBloom), only if strangers cannot choose the keys.
///
/// A false positive stays one until the filter is replaced. A stranger who finds one by trying can
/// ask for it again and again, and every request reaches the store.
/// [`rebuild_with_capacity`](Self::rebuild_with_capacity) draws a new key, under which other
/// made-up keys are false positives. Until then, remember the store's "no" for a while, as for any
/// missing row.
///
/// # Order of insert and commit
///
/// Insert a key **after** the store has committed it. Until then a rebuild can read the store
/// without the row, and the guard turns the key away after the rebuild. (You may insert it before
/// as well, so that it is admitted from the commit on. That costs a read of the store for each
/// request that comes too early.)
///
/// An async handler can be cancelled at any `await`: the store has committed, and the line with the
/// `insert` never runs. Then the guard turns away a valid key until the next rebuild.
/// [`insert_on_drop`](Self::insert_on_drop), called before the commit, inserts when the handler
/// ends, whether it ends by returning, by an error, by a panic or by cancellation.
///
/// # Filters that can be full
///
/// A [`ScalableBloom`](crate::ScalableBloom) with a limit, a [`CuckooFilter`](crate::CuckooFilter)
/// and a [`DLeftFilter`](crate::DLeftFilter) can refuse a key. The insert then answers the filter's
/// error, and the guard **opens**: from then on it admits every key, since it cannot know any more
/// which keys are valid. [`is_open`](Self::is_open) tells. A rebuild into a larger filter closes it
/// again.
///
/// ```
/// use lanebloom::{CacheGuard, ScalableBloom};
///
/// let builder = ScalableBloom::builder().expected_keys(100);
/// let guard = CacheGuard::<u64, _>::new(builder.clone().max_layers(1).build()?);
/// let error = (0..200).find_map(|key| guard.insert(&key).err()).unwrap();
/// assert_eq!(error.to_string(), "the filter is full: its limit of layers is 1");
/// assert!(guard.is_open() && guard.check(&17_000).is_some());
///
/// let rebuild = guard.rebuild(builder.build()?)?;
/// rebuild.insert_all(0..200)?; // as read from the store
/// rebuild.try_commit()?;
/// assert!(!guard.is_open() && guard.check(&17_000).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
/// use std::collections::HashMap;
///
/// let store = HashMap::from([("ann", 1), ("bob", 2)]);
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// for key in store.keys() {
///     guard.insert(key);
/// }
///
/// let get = |key| guard.get_with(key, || store.get(key).copied());
/// assert_eq!(get("ann"), Some(1));
/// assert_eq!(get("eve"), None); // the store was not asked
///
/// let stats = guard.stats();
/// assert_eq!((stats.admitted, stats.found, stats.turned_away), (1, 1, 1));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct CacheGuard<K: ?Sized, F = ConcurrentBloom<SipHash13>> {
    state: Swap<State<F>>,
    /// Whether a [`Rebuild`] exists; only its owner replaces the state.
    rebuilding: AtomicBool,
    counts: Counts,
    /// Covariant, so that a guard of `&'static str` takes a shorter-lived one; keeps no key, so
    /// that `K` need not be `Send`.
    keys: PhantomData<fn() -> *const K>,
}

/// Keys of a batch that are looked up and counted before their admissions are given out: their
/// answers are a bitmap of 128 bytes on the stack.
const CHUNK: usize = 1024;

/// What readers see at once.
struct State<F> {
    serving: Held<F>,
    next: Option<Held<F>>,
}

/// A filter, and whether it lacks a key that it was given: then all keys are admitted.
struct Held<F> {
    filter: Arc<F>,
    /// | operation | ordering | partner, and why |
    /// |---|---|---|
    /// | `insert` | store `Release` | the load: a check that admits a key by this shows what its inserter had done before, as one that finds it does |
    /// | `has_refused` | load `Acquire` | as above |
    ///
    /// If a refusal happened before a check, the check sees it, by coherence.
    refused: Arc<AtomicBool>,
}

impl<F> Clone for Held<F> {
    fn clone(&self) -> Self {
        Self {
            filter: Arc::clone(&self.filter),
            refused: Arc::clone(&self.refused),
        }
    }
}

impl<F: GuardFilter> Held<F> {
    fn new(filter: F) -> Self {
        Self {
            filter: Arc::new(filter),
            refused: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Where inserts cannot fail, nothing is read.
    #[inline]
    fn has_refused(&self) -> bool {
        F::Answer::CAN_REFUSE && self.refused.load(Ordering::Acquire)
    }

    #[inline]
    fn admits<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.filter.local().contains(key) || self.has_refused()
    }

    fn admit_batch<K: Funnel>(&self, keys: &[K], admitted: &mut [u64]) {
        self.filter.local().contains_batch_bitmap(keys, admitted);
        if self.has_refused() {
            for (word, keys) in admitted.iter_mut().zip(keys.chunks(64)) {
                *word = u64::MAX >> (64 - keys.len());
            }
        }
    }

    #[inline]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> F::Answer {
        let answer = self.filter.local().insert(key);
        // Otherwise the key is there, as often as it can be. (Whether it is found says less: it may
        // be another key, which is removed one day.)
        if answer.is_full() {
            self.refused.store(true, Ordering::Release);
        }
        answer
    }

    /// Tries the keys after one that is refused as well: that one may be there, as often as it can
    /// be.
    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> F::Total {
        let answer = self.filter.local().insert_batch(keys);
        if let Some(at) = answer.refused_at() {
            keys[at..].iter().for_each(|key| drop(self.insert(key)));
        }
        answer
    }
}

impl<K: Funnel + ?Sized> CacheGuard<K> {
    /// A guard for `keys` keys that admits made-up ones at `false_positive_rate`, empty: a
    /// [`ConcurrentBloom`] that hashes with [`SipHash13`] under a new random key.
    ///
    /// `keys` are all that it will get until the next rebuild, not only those of today. The type of
    /// the keys is named, as in the example, or inferred from the first key.
    ///
    /// # Errors
    ///
    /// Fails as [`Builder::build`](crate::bloom::Builder::build) does: `keys` is 0, the rate is not
    /// between 0 and 1 or out of reach, or the memory is not there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<u64>::with_capacity(1_000_000, 0.01)?;
    /// guard.insert(&17);
    /// assert!(guard.check(&17).is_some() && guard.check(&18).is_none());
    /// assert!(CacheGuard::<u64>::with_capacity(1_000_000, 1.5).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        Ok(Self::new(keyed_filter(keys, false_positive_rate)?))
    }
}

fn keyed_filter(keys: usize, false_positive_rate: f64) -> Result<ConcurrentBloom<SipHash13>, BuildError> {
    ConcurrentBloom::builder()
        .expected_keys(keys)
        .false_positive_rate(false_positive_rate)
        .hasher(SipHash13::random())
        .build()
}

impl<K: Funnel + ?Sized, F: GuardFilter> CacheGuard<K, F> {
    /// A guard that serves from `filter`, which should hold every valid key.
    ///
    /// Whatever was inserted into `filter` before must have been of the type `K`: nothing checks
    /// that. About the filter's hasher see [Keys from strangers](Self#keys-from-strangers).
    ///
    /// ```
    /// use lanebloom::{CacheGuard, ConcurrentBloom, SipHash13};
    ///
    /// let builder = ConcurrentBloom::builder().memory_budget(1 << 20);
    /// let filter = builder.hasher(SipHash13::random()).build()?;
    /// filter.insert("ann");
    /// let guard = CacheGuard::<str, _>::new(filter);
    /// assert!(guard.check("ann").is_some() && guard.check("eve").is_none());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn new(filter: F) -> Self {
        Self {
            state: Swap::new(State {
                serving: Held::new(filter),
                next: None,
            }),
            rebuilding: AtomicBool::new(false),
            counts: Counts::new(),
            keys: PhantomData,
        }
    }

    /// Asks the filter, and only if the key may exist calls `load`; records what came of it.
    ///
    /// For a store whose reads can fail or are awaited, [`try_get_with`](Self::try_get_with) and
    /// [`check`](Self::check).
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<u64>::with_capacity(1000, 0.01)?;
    /// guard.insert(&17);
    /// assert_eq!(guard.get_with(&17, || Some("row")), Some("row"));
    /// let load = || -> Option<&str> { unreachable!("turned away") };
    /// assert_eq!(guard.get_with(&18, load), None);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn get_with<Q: Borrow<K> + ?Sized, V>(&self, key: &Q, load: impl FnOnce() -> Option<V>) -> Option<V> {
        let admission = self.check(key)?;
        let value = load();
        admission.record(value.is_some());
        value
    }

    /// [`get_with`](Self::get_with) for a load that can fail; a failure is recorded neither way.
    ///
    /// # Errors
    ///
    /// Those of `load`.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// let load = || Err::<Option<u32>, _>("timeout");
    /// assert_eq!(guard.try_get_with("ann", load), Err("timeout"));
    /// assert_eq!(guard.try_get_with("eve", load), Ok(None));
    /// assert_eq!((guard.stats().admitted, guard.stats().found), (1, 0));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_get_with<Q: Borrow<K> + ?Sized, V, E>(
        &self,
        key: &Q,
        load: impl FnOnce() -> Result<Option<V>, E>,
    ) -> Result<Option<V>, E> {
        let Some(admission) = self.check(key) else {
            return Ok(None);
        };
        let value = load()?;
        admission.record(value.is_some());
        Ok(value)
    }

    /// The first half of [`get_with`](Self::get_with): `None` turns the key away, for it certainly
    /// does not exist. Otherwise ask the store, and [record](Admission::record) whether it had the
    /// key. The two halves may lie on two sides of an `await`.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// # async fn read_row(_key: &str) -> Option<u32> { None }
    /// async fn get(guard: &CacheGuard<str>, key: &str) -> Option<u32> {
    ///     let admission = guard.check(key)?;
    ///     let row = read_row(key).await;
    ///     admission.record(row.is_some());
    ///     row
    /// }
    /// # let guard = CacheGuard::with_capacity(1000, 0.01)?;
    /// # guard.insert("ann");
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert!(std::pin::pin!(get(&guard, "ann")).poll(&mut context).is_ready());
    /// # assert!(std::pin::pin!(get(&guard, "eve")).poll(&mut context).is_ready());
    /// # assert_eq!((guard.stats().false_positives, guard.stats().turned_away), (1, 1));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use = "a key for which this is None must not reach the store"]
    pub fn check<Q: Borrow<K> + ?Sized>(&self, key: &Q) -> Option<Admission<'_>> {
        let admitted = self.state.load().serving.admits(key.borrow());
        self.counts.add_checks(admitted.into(), (!admitted).into());
        admitted.then_some(Admission { counts: &self.counts })
    }

    /// [`check`](Self::check) of many keys, for a multi-get: calls `each` with the position and the
    /// [`Admission`] of every key that may exist, in order. The others certainly do not.
    ///
    /// A key is counted before `each` hears of it. The admissions may be kept, to be recorded once
    /// the store has been asked for all the keys at once.
    ///
    /// # Panics
    ///
    /// With debug assertions, if the first key writes other bytes than the `K` that it borrows as:
    /// see [Borrowed forms](crate::Funnel#borrowed-forms).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    /// use std::collections::HashMap;
    ///
    /// let store = HashMap::from([("ann", 1), ("bob", 2)]);
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert_batch(&["ann", "bob"]);
    ///
    /// let keys = ["eve", "ann", "mallory", "bob"];
    /// let mut admitted = Vec::new();
    /// guard.check_batch(&keys, |i, admission| admitted.push((i, admission)));
    ///
    /// let mut rows = [None; 4];
    /// for (i, admission) in admitted {
    ///     rows[i] = store.get(keys[i]);
    ///     admission.record(rows[i].is_some());
    /// }
    /// assert_eq!(rows, [None, Some(&1), None, Some(&2)]);
    /// let stats = guard.stats();
    /// assert_eq!((stats.admitted, stats.found, stats.turned_away), (2, 2, 2));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn check_batch<'a, Q: Borrow<K> + Funnel>(&'a self, keys: &[Q], mut each: impl FnMut(usize, Admission<'a>)) {
        debug_assert_borrowed_form(keys);
        for (i, keys) in keys.chunks(CHUNK).enumerate() {
            let mut bitmap = [0; CHUNK / 64];
            let bitmap = &mut bitmap[..keys.len().div_ceil(64)];
            // The state is let go of before `each` runs: see "Who drops a filter".
            self.state.load().serving.admit_batch(keys, bitmap);
            let admitted = bitmap.iter().map(|word| word.count_ones() as usize).sum();
            self.counts.add_checks(admitted, keys.len() - admitted);
            for (j, word) in bitmap.iter_mut().enumerate() {
                while *word != 0 {
                    let at = i * CHUNK + j * 64 + word.trailing_zeros() as usize;
                    *word &= *word - 1;
                    each(at, Admission { counts: &self.counts });
                }
            }
        }
    }

    /// Admits `key` from now on; answers as the filter's insert does: for a [`ConcurrentBloom`],
    /// whether that changed the filter. Call it once the key can be read from the store.
    ///
    /// An error opens the guard, which then admits this key with all others: see [Filters that can
    /// be full](Self#filters-that-can-be-full). (Unless the key is in the filter, as often as it
    /// can be.) If only the new filter of a rebuild has no room, its commit fails.
    ///
    /// Safe at any time, also while the guard is being rebuilt: the key is admitted before the new
    /// filter takes over and after. In code that can be cancelled between the store's commit and
    /// this call, use [`insert_on_drop`](Self::insert_on_drop) instead: see [the
    /// order](Self#order-of-insert-and-commit).
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert!(guard.check("ann").is_none());
    /// assert!(guard.insert("ann"));
    /// assert!(guard.check("ann").is_some());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert<Q: Borrow<K> + ?Sized>(&self, key: &Q) -> F::Answer {
        let key = key.borrow();
        self.insert_by(|filter| filter.insert(key))
    }

    /// [`insert`](Self::insert) of many keys; answers as the filter's batch does: for a
    /// [`ConcurrentBloom`], how many of them changed the filter. Call it once all of them can be
    /// read from the store.
    ///
    /// To be safe beside a rebuild costs a fence and a second look at the guard's state, here once
    /// for all keys. If a new filter took over meanwhile, the number returned is the greater of the
    /// two filters'. After an error, the keys after the one that it is about were inserted one by
    /// one, where they could be.
    ///
    /// # Panics
    ///
    /// As [`check_batch`](Self::check_batch) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// let rebuild = guard.rebuild_with_capacity(1000, 0.01)?;
    /// assert_eq!(guard.insert_batch(&["ann", "bob", "ann"]), 2);
    /// assert!(guard.check("bob").is_some());
    /// rebuild.commit();
    /// assert!(guard.check("ann").is_some() && guard.check("bob").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<Q: Borrow<K> + Funnel>(&self, keys: &[Q]) -> F::Total {
        debug_assert_borrowed_form(keys);
        self.insert_by(|filter| filter.insert_batch(keys))
    }

    /// Calls `insert` with every filter that is to have the keys; returns the greatest answer of
    /// one that served, or the error of one that serves or is to serve.
    fn insert_by<R: Outcome>(&self, insert: impl Fn(&Held<F>) -> R) -> R {
        let insert = |state: &State<F>| {
            let answer = insert(&state.serving);
            match state.next.as_ref().map(&insert) {
                Some(error) if error.is_refused() => answer.and(error),
                _ => answer,
            }
        };
        // What was refused by a filter that is gone does not matter.
        let combine = |first: R, second: R| if first.is_refused() { second } else { first.and(second) };
        // Partner: the fence in `begin_rebuild`. Either it comes first there, and the pair is seen
        // here; or here, and what the rebuild reads of the store after it has the keys.
        self.state.settle(self.state.load(), insert, combine)
    }

    /// Inserts `key` when the returned value is dropped. Call it before the store's commit, and
    /// keep the value until the commit has returned.
    ///
    /// The key is inserted however the code in between ends: it returns, it fails, it panics, or
    /// its future is dropped while it waits. If the store has certainly not got the key, call
    /// [`abandon`](InsertOnDrop::abandon). Where it is dropped instead, the key is admitted until
    /// the next rebuild: that costs reads of the store for a row that is not there, and nothing
    /// worse. If the filter has no room for the key, the guard
    /// [opens](Self#filters-that-can-be-full).
    ///
    /// A commit that is still on its way when its future is dropped may reach the store later than
    /// a rebuild that begins after the drop. Only such a rebuild can miss the key. To exclude that
    /// too, run commit and insert in a task of their own, which is not dropped with the request
    /// (`tokio::spawn`, say). A value that is leaked (`mem::forget`) never inserts.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// # async fn commit(_key: u64) -> Result<(), &'static str> { Ok(()) }
    /// # async fn tell_others(_key: u64) { std::future::pending().await }
    /// async fn add(guard: &CacheGuard<u64>, key: u64) -> Result<(), &'static str> {
    ///     let insert = guard.insert_on_drop(key);
    ///     commit(key).await?;
    ///     drop(insert); // admitted from here on, also if this is never reached
    ///     tell_others(key).await;
    ///     Ok(())
    /// }
    /// # let guard = CacheGuard::with_capacity(1000, 0.01)?;
    /// # let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// # assert!(std::pin::pin!(add(&guard, 17)).poll(&mut context).is_pending());
    /// # assert!(guard.check(&17).is_some());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_on_drop<Q: Borrow<K>>(&self, key: Q) -> InsertOnDrop<'_, K, F, Q> {
        InsertOnDrop {
            guard: self,
            key: Some(key),
        }
    }

    /// The filter that serves now, for its figures and its own calls. Its calls do not check the
    /// guard's key type.
    ///
    /// The filter stays in memory as long as such an `Arc` of it is held, also after a rebuild has
    /// replaced it. The holder that drops the last `Arc` drops the filter.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert("ann");
    /// assert_eq!(guard.filter().estimated_len(), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn filter(&self) -> Arc<F> {
        Arc::clone(&self.state.load().serving.filter)
    }

    /// Whether the guard admits every key, because the filter that serves now has refused one. See
    /// [Filters that can be full](Self#filters-that-can-be-full).
    ///
    /// ```
    /// use lanebloom::{CacheGuard, CuckooFilter};
    ///
    /// let filter = CuckooFilter::with_capacity(10, 0.01)?;
    /// let guard = CacheGuard::<u64, _>::new(filter);
    /// assert!(!guard.is_open());
    /// assert!((0..1000).any(|key| guard.insert(&key).is_err()));
    /// assert!(guard.is_open());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.state.load().serving.has_refused()
    }

    /// What the guard has done since it was made, across rebuilds. While other threads are at work,
    /// the counts may be of slightly different moments.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// assert!(guard.check("eve").is_none());
    /// assert_eq!(guard.stats().turned_away, 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> GuardStats {
        self.counts.sum()
    }
}

impl<K: Funnel + ?Sized, F: fmt::Debug + GuardFilter> fmt::Debug for CacheGuard<K, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheGuard")
            .field("filter", &self.filter())
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// Inserts a key when it is dropped; made by [`CacheGuard::insert_on_drop`].
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// let insert = guard.insert_on_drop("ann");
/// assert!(guard.check("ann").is_none());
/// drop(insert);
/// assert!(guard.check("ann").is_some());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[must_use = "the key is inserted at once if this is not kept until the store has committed"]
pub struct InsertOnDrop<'a, K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K>> {
    guard: &'a CacheGuard<K, F>,
    /// None once it is abandoned.
    key: Option<Q>,
}

impl<K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K>> InsertOnDrop<'_, K, F, Q> {
    /// Ends without an insert: for a key that the store has certainly not got.
    ///
    /// Where strangers can make commits fail, this keeps their keys from filling the filter.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// guard.insert_on_drop("ann").abandon();
    /// assert!(guard.check("ann").is_none());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn abandon(mut self) {
        self.key = None;
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K>> Drop for InsertOnDrop<'_, K, F, Q> {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            // Nobody is there to take an error: it has opened the guard.
            let _ = self.guard.insert(key);
        }
    }
}

impl<K: Funnel + ?Sized, F: GuardFilter, Q: Borrow<K> + fmt::Debug> fmt::Debug for InsertOnDrop<'_, K, F, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InsertOnDrop").field(&self.key).finish()
    }
}

/// Batches are hashed as `Q` and single keys as `K`. [`Funnel`] demands that this be the same; here
/// it is tried for the first key, by a hash that needs no memory.
fn debug_assert_borrowed_form<K: Funnel + ?Sized, Q: Borrow<K> + Funnel>(keys: &[Q]) {
    if let (true, Some(key)) = (cfg!(debug_assertions), keys.first()) {
        let hashes = [
            Murmur3::default().hash128(key),
            Murmur3::default().hash128(key.borrow()),
        ];
        assert!(
            hashes[0] == hashes[1],
            "a {} writes other bytes than the {} that it borrows as",
            core::any::type_name::<Q>(),
            core::any::type_name::<K>(),
        );
    }
}
