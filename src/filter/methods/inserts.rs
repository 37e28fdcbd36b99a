//! Inserts and removes of any type. The methods of a type call them, and say what the result means.

use crate::answers::{Answers, answered_into};
use crate::chunks::{HASHED, try_gathered};
use crate::error::InsertError;
use crate::filter::Filter;
use crate::filter::traits::{Insert, Remove};
use crate::key::Key;
use core::convert::Infallible;

/// The result of a filter that takes every key.
#[doc(hidden)]
#[inline(always)]
pub fn into_ok<T>(Ok(answer): Result<T, Infallible>) -> T {
    answer
}

/// The result of a filter that changes with every key that it takes.
#[inline]
pub(crate) fn taken<T>(answer: Result<T, InsertError>) -> Result<(), InsertError> {
    answer.map(|_| ())
}

/// The error of a whole batch, if `before` keys precede the part that failed.
fn after<E: AsMut<InsertError>>(before: usize, mut refused: E) -> E {
    refused.as_mut().inserted += before;
    refused
}

/// `insert` and its like of any type.
#[doc(hidden)]
impl<E: Insert, S> Filter<E, S> {
    // Always inlined, since `try_insert_batch` calls it twice. (A batch of one key took 1.15 times
    // as long as a single insert: Zen 5.)
    #[inline(always)]
    pub fn try_insert<K: Key<S> + ?Sized>(&self, key: &K) -> Result<bool, E::Error> {
        self.engine.insert_hash(key.hash_by(&self.hasher))
    }

    // Always inlined, as `try_insert`.
    #[inline(always)]
    pub fn try_insert_batch<K: Key<S>>(&self, keys: &[K]) -> Result<usize, E::Error> {
        // Without a loop: it takes 7% longer for one key.
        match keys {
            [key] if !(K::IS_HASH && cfg!(lanebloom_loom)) => return self.try_insert(key).map(usize::from),
            _ => {}
        }
        let plan = match K::IS_HASH {
            true => self.engine.plan_of_hashes(keys.len()),
            false => self.engine.plan_of_keys(keys.len()),
        };
        if plan.is_single() {
            let mut changed = 0;
            for (before, key) in keys.iter().enumerate() {
                let inserted = self.try_insert(key);
                changed += usize::from(inserted.map_err(|refused| after(before, refused))?);
            }
            return Ok(changed);
        }
        self.engine.insert_source(&K::source(keys, &self.hasher, self.isa))
    }

    pub fn try_insert_batch_into<K: Key<S>>(&self, keys: &[K], new: impl Answers) -> Result<usize, E::Error> {
        let source = K::source(keys, &self.hasher, self.isa);
        answered_into(self.isa, keys.len(), new, |answer| {
            self.engine.insert_flagged(&source, answer)
        })
    }

    pub fn try_insert_all<K: Key<S>>(&self, keys: impl IntoIterator<Item = K>) -> Result<usize, E::Error> {
        let (mut changed, mut before) = (0, 0);
        let hashes = keys.into_iter().map(|key| key.hash_by(&self.hasher));
        try_gathered::<HASHED, _, _>(hashes, |hashes| {
            let inserted = match hashes {
                [hash] => self.engine.insert_hash(*hash).map(usize::from),
                _ => self.engine.insert_source(&hashes),
            };
            changed += inserted.map_err(|refused| after(before, refused))?;
            before += hashes.len();
            Ok(())
        })?;
        Ok(changed)
    }
}

/// `remove` and its like of any type.
#[doc(hidden)]
impl<E: Remove, S> Filter<E, S> {
    #[inline]
    pub fn take<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.engine.remove_hash(key.hash_by(&self.hasher))
    }

    pub fn take_batch_into<K: Key<S>>(&self, keys: &[K], removed: impl Answers) -> usize {
        let source = K::source(keys, &self.hasher, self.isa);
        answered_into(self.isa, keys.len(), removed, |answer| {
            self.engine.remove_flagged(&source, answer)
        })
    }
}

impl<E: Insert, S> Filter<E, S> {
    /// Removes all keys. It takes `&mut self`: beside inserts, some keys would survive in part.
    ///
    /// ```
    /// let mut filter = lanebloom::ConcurrentBloom::from_keys(["a"], 0.01)?;
    /// filter.clear();
    /// assert!(!filter.contains("a") && filter.is_empty());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        self.engine.clear();
    }
}

/// `insert_all`, for filters that take every key.
///
/// ```
/// let mut filter = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10u32);
/// assert!(filter.contains("b") && filter.contains(&9u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Key<S>, E: Insert<Error = Infallible>, S> Extend<K> for Filter<E, S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        into_ok(self.try_insert_all(keys));
    }
}

impl<K: Key<S>, E: Insert<Error = Infallible>, S> Extend<K> for &Filter<E, S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        into_ok(self.try_insert_all(keys));
    }
}
