//! A loop over single calls, compiled for the CPU: [`inlined`].

use crate::filter::parts::several::Both;
use crate::filter::types::bloom::ConcurrentBloom;
use crate::kernel::{Calls, One};
use crate::key::Key;
use crate::words::bits;

/// The single calls of a filter within a function that is compiled for this CPU:
/// [`inlined`] gives it to a closure.
///
/// ```
/// use lanebloom::{ConcurrentBloom, bloom};
///
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// let ids = || (0..100u64).chain(0..50);
/// let new = bloom::inlined(&filter, |f| ids().filter(|id| f.insert(id)).count());
/// assert_eq!(new, 100);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Inlined<'a, S> {
    filter: &'a ConcurrentBloom<S>,
    calls: Calls,
}

/// Runs a closure with the filter's single calls, in a function that is compiled for this CPU's
/// vectors. There they are inlined without a branch: in a loop, lookups take [0.5 to 0.98 times as
/// long](crate::docs::cost#a-loop-over-single-calls). The answers are those of the filter's own
/// methods. Where a loop has its keys or hashes in a slice, a batch is faster yet.
///
/// The closure should be small, a loop and little else: the compiler makes a copy of it for each
/// shape of a filter. Functions that are not inlined are compiled as always. (In a program that is
/// compiled for its CPU, by `-C target-cpu`, the filter's methods are as fast.)
///
/// ```
/// use lanebloom::{ConcurrentBloom, bloom};
///
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// filter.insert_all(0..100u64);
/// let ids = [7u64, 1234, 99, 100];
/// let known = bloom::inlined(&filter, |f| ids.map(|id| f.contains(&id)));
/// assert_eq!(known, [true, false, true, false]);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[inline]
pub fn inlined<S, R>(filter: &ConcurrentBloom<S>, work: impl FnOnce(&Inlined<'_, S>) -> R) -> R {
    let words = &filter.engine.words;
    let work = |calls| work(&Inlined { filter, calls });
    match words.lines_per_key {
        1 => words.kernels.inlined::<One, _>(work),
        _ => words.kernels.inlined::<Both, _>(work),
    }
}

impl<S> Inlined<'_, S> {
    /// The same as [`ConcurrentBloom::contains`].
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, bloom::inlined};
    ///
    /// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(inlined(&filter, |f| f.contains("a") && !f.contains("b")));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        let words = &self.filter.engine.words;
        let hash = key.hash_by(&self.filter.hasher);
        let found = words.kernels.contains_by(self.calls, words.bits.shared(), hash);
        bits::acquire_if(found);
        found
    }

    /// The same as [`ConcurrentBloom::insert`].
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, bloom::inlined};
    ///
    /// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// assert!(inlined(&filter, |f| f.insert("a") && !f.insert("a")));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        let words = &self.filter.engine.words;
        let hash = key.hash_by(&self.filter.hasher);
        let by_call = words.kernels.insert_by(self.calls, words.bits.shared(), hash);
        let changed = by_call.unwrap_or_else(|| words.insert(hash));
        bits::acquire_if(!changed);
        changed
    }
}
