//! [`LocalSet`]: the generations of a [`SharedSet`](super::SharedSet) in this process, and the log
//! of inserts. Callers read and insert; the background thread replaces the list and takes the log.

use crate::error::SharedError;
use crate::shared::replica::Id;
use lanebloom::internal::{Isa, Swap, answered_into};
use lanebloom::{
    Answers, Bitmap, ConcurrentBloom, Hashed, InsertError, Key, KeyHasher, Membership, Murmur3, Statistics,
};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Hashes that a node keeps at most: 8 MiB.
const MOST_HASHES: usize = 1 << 20;
/// Keys whose answers from all generations are united at a time, a multiple of 64: two bitmaps of
/// 512 bytes on the stack.
const CHUNK: usize = 4096;

/// The generations of a [`SharedSet`](super::SharedSet) in this process: the newest one, and the
/// older ones until the newest is filled.
///
/// # Examples
///
/// ```no_run
/// use lanebloom::ConcurrentBloom;
/// use lanebloom_redis::SharedBloom;
/// use std::time::Duration;
///
/// let server = redis::Client::open("redis://127.0.0.1/")?;
/// let ids = SharedBloom::builder("ids").connect_set(server, 1000, |keys| {
///     ConcurrentBloom::builder().expected_keys(keys).build()
/// })?;
/// assert!(ids.insert("ann") && !ids.insert("ann"));
/// assert_eq!(ids.insert_batch(&["ann", "bob"]), 1);
/// assert!(ids.contains("bob") && !ids.contains("eve"));
/// let mut found = [false; 3];
/// ids.contains_batch(&["bob", "eve", "ann"], &mut found);
/// assert_eq!(found, [true, false, true]);
///
/// assert_eq!(ids.statistics().len, 2);
/// assert!(ids.false_positive_rate() <= 0.01 && ids.memory_bytes() > 1000);
/// assert!(!ids.is_outgrown() && ids.generation() == 0);
/// ids.insert_batch(&Vec::from_iter(0..3000u32));
/// assert!(ids.is_outgrown());
/// ids.rebuild(4000, Duration::from_secs(30))?;
/// assert!(!ids.is_outgrown() && ids.generation() == 1 && ids.contains("ann"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LocalSet<S = Murmur3> {
    /// The newest is the last one. The older ones are there until it is filled.
    pub(super) generations: Swap<Vec<Generation<S>>>,
    pub(super) log: Mutex<Log>,
    /// A generation for more keys is refused.
    pub(super) most_keys: u64,
}

pub(in crate::shared) struct Generation<S> {
    /// The same as `FillState::generation`.
    pub(super) place: u64,
    pub(super) id: Id,
    pub(in crate::shared) filter: Arc<ConcurrentBloom<S>>,
}

impl<S> Clone for Generation<S> {
    fn clone(&self) -> Self {
        let (place, id, filter) = (self.place, self.id, Arc::clone(&self.filter));
        Self { place, id, filter }
    }
}

/// Inserts that are perhaps not pushed yet.
#[derive(Default)]
pub(in crate::shared) struct Log {
    pub(super) hashes: Vec<u64>,
    /// Whether there were too many.
    pub(super) is_cut: bool,
}

impl Log {
    /// The log after too many inserts.
    pub(in crate::shared) fn cut() -> Self {
        let (hashes, is_cut) = (Vec::new(), true);
        Self { hashes, is_cut }
    }

    fn extend(&mut self, hashes: &[u64]) {
        self.is_cut |= MOST_HASHES < self.hashes.len() + hashes.len();
        if self.is_cut {
            self.hashes = Vec::new();
        } else {
            self.hashes.extend_from_slice(hashes);
        }
    }

    pub(super) fn append(&mut self, other: Self) {
        self.is_cut |= other.is_cut;
        self.extend(&other.hashes);
    }
}

/// Lookups and inserts, which never wait for the network.
impl<S: KeyHasher> LocalSet<S> {
    /// Whether the set may hold the key, as far as this node has heard.
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        let generations = self.generations.load();
        generations
            .iter()
            .rev()
            .any(|generation| generation.filter.contains(key))
    }

    /// Passes on whether the set may hold each key: what [`contains`](Self::contains) returns for
    /// it. [`Answers`] has the places for `out`.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys.
    pub fn contains_batch<K: Key<S>>(&self, keys: &[K], out: impl Answers) {
        answered_into(Isa::best(), keys.len(), out, |mut answer| {
            // Released before the caller's code gets an answer: the thread waits for it.
            let generations = self.generations.load();
            for (chunk, keys) in keys.chunks(CHUNK).enumerate() {
                let (mut found, mut in_one) = ([0; CHUNK / 64], [0; CHUNK / 64]);
                let words = keys.len().div_ceil(64);
                let (found, in_one) = (&mut found[..words], &mut in_one[..words]);
                for generation in generations.iter().rev() {
                    generation.filter.contains_batch(keys, Bitmap(in_one));
                    found.iter_mut().zip(&*in_one).for_each(|(found, one)| *found |= one);
                }
                if let Some(answer) = &mut answer {
                    answer(chunk * CHUNK, found);
                }
            }
        });
    }

    /// Inserts a key. Returns whether it is new in the newest generation at this node.
    pub fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.insert_hashes(&[key.hash_by(self.newest().filter.hasher())]) == 1
    }

    /// [`insert`](Self::insert) of many keys. Returns the number of new ones.
    pub fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> usize {
        if let Some(hashes) = K::hashes(keys) {
            return self.insert_hashes(hashes);
        }
        let mut hashes = vec![0; keys.len()];
        K::hash_each(keys, self.newest().filter.hasher(), Isa::best(), &mut hashes);
        self.insert_hashes(&hashes)
    }

    /// The newest generation's fill, number of keys, and false-positive rate.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.newest().filter.statistics()
    }

    /// The false-positive rate that the newest generation was built for.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.newest().filter.false_positive_rate()
    }

    /// The memory of the filters, in bytes, without the copy of the newest one.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let generations = self.generations.load();
        generations
            .iter()
            .map(|generation| generation.filter.memory_bytes())
            .sum()
    }

    /// Whether the newest generation has more keys than it expects: a rebuild is due. Takes a pass
    /// over the filter.
    #[must_use]
    pub fn is_outgrown(&self) -> bool {
        let newest = self.newest();
        newest.filter.statistics().len > newest.filter.expected_keys()
    }

    /// The number of the newest generation that this node knows: 0, and one more with each rebuild.
    /// (A server that lost data may repeat a number.)
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.newest().id.number
    }
}

impl<S: KeyHasher> Membership for LocalSet<S> {
    type Hasher = S;

    fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.contains(key)
    }

    fn contains_batch<K: Key<S>>(&self, keys: &[K], out: impl Answers) {
        self.contains_batch(keys, out);
    }

    fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        Ok(self.insert(key))
    }

    fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> Result<usize, InsertError> {
        Ok(self.insert_batch(keys))
    }

    fn statistics(&self) -> Statistics {
        self.statistics()
    }

    /// The expected keys of the newest generation.
    fn expected_keys(&self) -> usize {
        self.newest().filter.expected_keys()
    }

    fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate()
    }

    /// The rate of the newest generation.
    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.newest().filter.false_positive_rate_at(keys)
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
}

/// For the callers and the thread.
impl<S: KeyHasher> LocalSet<S> {
    pub(in crate::shared) fn newest(&self) -> Generation<S> {
        let generations = self.generations.load();
        generations.last().expect("a set has a generation").clone()
    }

    fn insert_hashes(&self, hashes: &[u64]) -> usize {
        let write = |generations: &Vec<Generation<S>>| {
            let new = generations
                .last()
                .map_or(0, |newest| newest.filter.insert_batch(Hashed::slice(hashes)));
            self.lock().extend(hashes);
            new
        };
        // The first filter decides whether a key is new.
        self.generations
            .write_to_current(self.generations.load(), write, |first, _| first)
    }

    pub(super) fn check_keys(&self, keys: u64) -> Result<(), SharedError> {
        let limit = self.most_keys;
        if keys > limit {
            return Err(SharedError::other(format!(
                "a generation for {keys} keys exceeds this node's limit of {limit} keys"
            )));
        }
        Ok(())
    }

    pub(in crate::shared) fn lock(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: KeyHasher> fmt::Debug for LocalSet<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalSet")
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
