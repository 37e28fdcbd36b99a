//! [`Layered`]: a filter that does not change, of the keys of a rebuild, and a small one of the
//! keys that came since.

use crate::filter::CHUNK;
use crate::filter::{GuardFilter, admit_all};
use lanebloom::internal::OnceBox;
use lanebloom::{
    Answers, Bitmap, BuildError, ConcurrentBloom, Funnel, Hashed, KeyHasher, SipHash13, StaticFilter, Statistics,
};
#[cfg(lanebloom_loom)]
use loom::sync::{Mutex, MutexGuard};
use std::fmt;
use std::sync::PoisonError;
#[cfg(not(lanebloom_loom))]
use std::sync::{Mutex, MutexGuard};

/// A filter for a guard in three quarters of the memory: a [`StaticFilter`] of the keys of a
/// rebuild, and a [`ConcurrentBloom`] of the keys that were inserted since.
///
/// At a rate of 1e-4 it takes 15.1 bits per key of a rebuild with a million keys, 15.5 with
/// 200,000, and 28 bits for each key that may come afterwards. A `ConcurrentBloom` takes 23.5
/// bits. Lookups read up to four lines of the first filter and one of the second.
///
/// It gets its keys by a [rebuild](crate::CacheGuard::rebuild) into a new `Layered`. Until that is
/// committed, a `Layered` collects the hashes of keys (8 bytes for each insert, also of a key that
/// it has) and holds every key: a guard over it [is open](crate::CacheGuard#open-guards). So a
/// first rebuild that fails again and again lets it grow; `mark_ready` does not close it. The
/// commit builds the static filter, 30 to 60 ns per key (Zen 4), while the old one serves; an
/// awaited `rebuild_now` does so in a thread. Keys that are inserted afterwards go to the small
/// filter, which is sized for some of them. Beyond that number the rate rises, as that of every
/// Bloom filter: rebuild before.
///
/// # Examples
///
/// ```
/// use lanebloom_guard::{CacheGuard, GuardFilter, Layered};
///
/// assert!(Layered::new(1000, 0.0).is_err() && Layered::new(1000, 1e-12).is_err());
/// let guard = CacheGuard::<u64, _>::new(Layered::new(1000, 1e-4)?);
/// assert!(guard.is_open());
///
/// let rebuild = guard.rebuild(Layered::new(1000, 1e-4)?)?;
/// rebuild.insert_all(0..100_000);
/// rebuild.commit()?;
/// assert!(!guard.is_open() && guard.check(&99_999).is_some());
/// assert!(guard.filter().statistics().false_positive_rate <= 1e-4);
/// assert!(guard.check(&100_000).is_none());
///
/// guard.insert(&100_000);
/// assert!(guard.check(&100_000).is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Layered {
    /// The bits of a fingerprint of `base`.
    bits: usize,
    base: OnceBox<StaticFilter<SipHash13>>,
    added: ConcurrentBloom<SipHash13>,
    /// The hashes for `base`, until it is built.
    collected: Mutex<Option<Vec<u64>>>,
}

impl Layered {
    /// A filter that collects keys for its static part. The other part is sized for `additions`
    /// keys, which are inserted after the commit. Both parts together have this false-positive
    /// rate. They share a random key of [`SipHash13`].
    ///
    /// A cache's builder gives the number of all keys; the additions are a part of them:
    /// `.filter(|keys| Layered::new(keys / 10, 1e-4))`. (With `keys`, the filter takes 43 bits per
    /// key.) The static part has room for any number of keys.
    ///
    /// # Errors
    ///
    /// Fails if the rate is not between 0 and 1 or below 2^-31, or the allocation of the small
    /// filter fails.
    pub fn new(additions: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
        BuildError::check_rate(false_positive_rate)?;
        // A static filter halves its rate with each bit. It gets at most three quarters.
        let rate_of = |bits: usize| 0.5_f64.powi(bits as i32);
        let bits = (7..=32).find(|&bits| rate_of(bits) <= 0.75 * false_positive_rate);
        let bits = bits.ok_or_else(|| {
            BuildError::new(format!(
                "a false-positive rate of {false_positive_rate:e} is below what a static filter reaches, 2^-31"
            ))
        })?;
        // The model checker tries one interleaving after another on the same filter.
        let hasher = if cfg!(lanebloom_loom) {
            SipHash13::with_key([0; 16])
        } else {
            SipHash13::random()
        };
        let builder = ConcurrentBloom::builder().hasher(hasher);
        let builder = builder.expected_keys(additions);
        Ok(Self {
            bits,
            base: OnceBox::default(),
            added: builder
                .false_positive_rate(false_positive_rate - rate_of(bits))
                .build()?,
            collected: Mutex::new(Some(Vec::new())),
        })
    }

    fn collected(&self) -> MutexGuard<'_, Option<Vec<u64>>> {
        // A push changes nothing if it panics.
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Collects the hashes, unless they were taken to build the static part. Returns whether there
    /// is room, or `None` if the other part must take them.
    fn collect(&self, hashes: &[u64]) -> Option<bool> {
        // The static part is there only after the hashes were taken.
        if self.base.get().is_some() {
            return None;
        }
        let mut collected = self.collected();
        let list = collected.as_mut()?;
        let has_room = list.try_reserve(hashes.len()).is_ok();
        if has_room {
            list.extend_from_slice(hashes);
        }
        Some(has_room)
    }
}

impl GuardFilter for Layered {
    #[inline]
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let Some(base) = self.base.get() else {
            return true;
        };
        let hash = self.added.hash(key);
        base.contains(&Hashed(hash)) || self.added.contains(&Hashed(hash))
    }

    fn contains_batch<K: Funnel>(&self, keys: &[K], mut out: Bitmap<'_>) {
        let Some(base) = self.base.get() else {
            return admit_all(keys.len(), out);
        };
        out.place(keys.len());
        let (mut hashes, mut added) = ([0; CHUNK], [0; CHUNK / 64]);
        for (keys, out) in keys.chunks(CHUNK).zip(out.0.chunks_mut(CHUNK / 64)) {
            let (hashes, added) = (&mut hashes[..keys.len()], &mut added[..out.len()]);
            self.added.hasher().hash_batch(keys, hashes);
            base.contains_batch(Hashed::slice(hashes), Bitmap(out));
            self.added.contains_batch(Hashed::slice(hashes), Bitmap(added));
            out.iter_mut().zip(added).for_each(|(out, added)| *out |= *added);
        }
    }

    #[inline]
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let hash = self.added.hash(key);
        self.collect(&[hash]).unwrap_or_else(|| {
            self.added.insert(&Hashed(hash));
            true
        })
    }

    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> bool {
        let mut hashes = [0; CHUNK];
        let mut has_room = true;
        for keys in keys.chunks(CHUNK) {
            let hashes = &mut hashes[..keys.len()];
            self.added.hasher().hash_batch(keys, hashes);
            has_room &= self.collect(hashes).unwrap_or_else(|| {
                self.added.insert_batch(Hashed::slice(hashes));
                true
            });
        }
        has_room
    }

    fn statistics(&self) -> Statistics {
        let added = self.added.statistics();
        let Some(base) = self.base.get().map(StaticFilter::statistics) else {
            return Statistics::new(1.0, self.collected().as_ref().map_or(0, Vec::len), 1.0);
        };
        let rate = base.false_positive_rate + added.false_positive_rate;
        // The rate of the part that fills up.
        Statistics::new(added.fill_ratio, base.len + added.len, f64::min(rate, 1.0))
    }

    fn false_positive_rate(&self) -> f64 {
        0.5_f64.powi(self.bits as i32) + self.added.false_positive_rate()
    }

    fn memory_bytes(&self) -> usize {
        let collected = || self.collected().as_ref().map_or(0, |list| 8 * list.capacity());
        self.added.memory_bytes() + self.base.get().map_or_else(collected, StaticFilter::memory_bytes)
    }

    fn may_lack_keys(&self) -> bool {
        self.base.get().is_none()
    }

    /// The static part takes any number. The other one is for a share of the planned keys, which
    /// may be half as large as planned.
    fn has_room_for(&self, keys: usize, planned: usize) -> bool {
        keys <= planned.saturating_mul(2)
    }

    /// Builds the static part from what was collected. If that fails, another call may succeed.
    /// (One at a time: a call beside another one has nothing to do, and returns at once.)
    fn complete(&self) -> Result<(), BuildError> {
        // From here on, inserts go to the other part.
        let Some(hashes) = self.collected().take() else {
            return Ok(());
        };
        let builder = StaticFilter::builder().hasher(*self.added.hasher());
        let out_of_memory = || BuildError::out_of_memory(size_of::<StaticFilter<SipHash13>>());
        builder
            .fingerprint_bits(self.bits)
            .cells_per_key(4)
            .build_from_batch(Hashed::slice(&hashes))
            // Only the thread that took the hashes comes here.
            .and_then(|base| self.base.set(base).ok_or_else(out_of_memory))
            .inspect_err(|_| *self.collected() = Some(hashes))
    }
}

impl fmt::Debug for Layered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered")
            .field("base", &self.base.get())
            .field("added", &self.added)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_fails_keeps_the_keys_for_the_next_one() {
        let mut filter = Layered::new(10, 1e-6).unwrap();
        assert!(GuardFilter::insert_batch(&filter, &["a", "b"]));
        // No fingerprint is as short.
        let bits = std::mem::replace(&mut filter.bits, 6);
        let error = filter.complete().unwrap_err().to_string();
        assert_eq!(error, "6 bits of a fingerprint is not in 7 to 32");
        assert!(filter.may_lack_keys() && GuardFilter::insert(&filter, "c"));
        filter.bits = bits;
        filter.complete().unwrap();
        let found = ["a", "b", "c", "d"].map(|key| GuardFilter::contains(&filter, key));
        assert_eq!((found, filter.may_lack_keys()), ([true, true, true, false], false));
        assert_eq!(GuardFilter::statistics(&filter).len, 3);
    }
}
