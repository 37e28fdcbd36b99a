//! The entries of a cache, which moka keeps: values, remembered misses, and the types of both.

use crate::cache::ages::{Age, Ages};
use crate::cache::flights::{Caches, Entry};
use equivalent::Equivalent;
use foldhash::quality::RandomState;
use lanebloom::{Funnel, Sink};
use moka::Expiry;
use moka::notification::RemovalCause;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// A type of keys, in their borrowed form: `u64`, `str`, `[u8]`, `(u32, u64)`. Every type with
/// these bounds implements it.
///
/// Filters hash it as a [`Funnel`], the caches by `Hash`. Loaders get its owned form, `String` for
/// `str`.
///
/// ```
/// use lanebloom_guard::Key;
///
/// fn is_key<K: Key + ?Sized>() {}
/// is_key::<u64>();
/// is_key::<str>();
/// is_key::<(u32, [u8; 16])>();
/// ```
pub trait Key:
    Funnel + Hash + Eq + ToOwned<Owned: Funnel + Hash + Eq + Clone + Send + Sync> + Send + Sync + 'static
{
}

impl<K> Key for K where
    K: Funnel + Hash + Eq + ToOwned<Owned: Funnel + Hash + Eq + Clone + Send + Sync> + Send + Sync + 'static + ?Sized
{
}

/// A type of cached values: every `Clone + Send + Sync + 'static`, such as `String` or `Arc<[u8]>`.
pub trait Value: Clone + Send + Sync + 'static {}

impl<V: Clone + Send + Sync + 'static> Value for V {}

/// The most bytes of a key that is remembered as missing. Strangers choose the length of a made-up
/// key, and valid keys are shorter.
const LONGEST_MISS: usize = 1 << 10;

/// The values, and the keys that the store lacks. They are two caches, so that made-up keys that
/// pass the filter cannot push out values.
///
/// The caches hash with foldhash, since SipHash makes a cached get 4% to 20% slower. A stranger
/// cannot choose what is cached: the filter lets only valid keys and few others through.
pub(crate) struct Moka<K: ToOwned + ?Sized, V> {
    pub(crate) values: moka::sync::Cache<K::Owned, Cached<V>, RandomState>,
    /// Each with its epoch and the number of its filter.
    pub(crate) misses: moka::sync::Cache<K::Owned, (u64, u64), RandomState>,
    /// Values that expired or were pushed out.
    pub(crate) evictions: Arc<AtomicU64>,
    /// The largest total weight of the values.
    pub(super) capacity: u64,
    /// Without one, each value weighs 1.
    pub(super) weigher: Option<Weigher<K::Owned, V>>,
    /// Called for each value that leaves the cache.
    pub(super) note_gone: Arc<Listener<K::Owned, V>>,
    /// `None` if only moka checks the times.
    pub(super) ages: Option<Ages<K::Owned>>,
}

/// A value, its epoch, when it was put in, and its weight.
#[derive(Clone)]
pub(crate) struct Cached<V> {
    pub(crate) value: V,
    pub(crate) epoch: u64,
    at: u64,
    /// By one call of the weigher: what moka counts is what [`Caches::put`] has compared.
    pub(super) weight: u32,
}

pub(crate) type Weigher<K, V> = Box<dyn Fn(&K, &V) -> u32 + Send + Sync>;
pub(crate) type Listener<K, V> = dyn Fn(Arc<K>, V, RemovalCause) + Send + Sync;

pub(crate) type BoxExpiry<K, V> = Box<dyn Expiry<K, V> + Send + Sync>;

/// Adapts an expiry of values to the cached type.
pub(crate) struct OfValue<K, V>(pub(crate) BoxExpiry<K, V>);

impl<K, V> Expiry<K, Cached<V>> for OfValue<K, V> {
    fn expire_after_create(&self, key: &K, cached: &Cached<V>, at: Instant) -> Option<Duration> {
        self.0.expire_after_create(key, &cached.value, at)
    }

    fn expire_after_read(
        &self,
        key: &K,
        cached: &Cached<V>,
        at: Instant,
        left: Option<Duration>,
        modified: Instant,
    ) -> Option<Duration> {
        self.0.expire_after_read(key, &cached.value, at, left, modified)
    }

    fn expire_after_update(
        &self,
        key: &K,
        cached: &Cached<V>,
        at: Instant,
        left: Option<Duration>,
    ) -> Option<Duration> {
        self.0.expire_after_update(key, &cached.value, at, left)
    }
}

impl<K: Key + ?Sized, V: Value> Caches<K> for Moka<K, V> {
    type Value = V;

    #[inline]
    fn get(&self, key: &K) -> Option<Entry<V>> {
        self.find(key)
    }

    fn put(&self, key: &K, epoch: u64, found: Result<V, u64>) {
        match found {
            Ok(value) => {
                self.misses.invalidate(key);
                let owned = key.to_owned();
                let weight = self.weigher.as_ref().map_or(1, |weigh| weigh(&owned, &value));
                if u64::from(weight) > self.capacity {
                    // Moka 0.12.16 admits an update of a value that it holds, however heavy the
                    // new one is, and drives out all others for it.
                    self.values.invalidate(key);
                    return (self.note_gone)(Arc::new(owned), value, RemovalCause::Size);
                }
                let at = self.ages.as_ref().map_or(0, Ages::now);
                let cached = Cached {
                    value,
                    epoch,
                    at,
                    weight,
                };
                self.values.insert(owned, cached);
            }
            Err(filter) => {
                self.values.invalidate(key);
                if bytes_of(key) <= LONGEST_MISS {
                    self.misses.insert(key.to_owned(), (epoch, filter));
                }
            }
        }
    }

    fn fall_back(&self, key: &K) -> Option<(V, u64)> {
        let ages = self.ages.as_ref()?;
        let Cached { value, epoch, .. } = self.values.get(key)?;
        ages.note_failed(key.to_owned());
        Some((value, epoch))
    }

    fn forget(&self, key: &K) {
        self.misses.invalidate(key);
        self.values.invalidate(key);
    }

    /// Takes effect when moka's clock advances, and does not wait for that.
    fn forget_all(&self) {
        self.values.invalidate_all();
        self.misses.invalidate_all();
    }
}

impl<K: Key + ?Sized, V: Value> Moka<K, V> {
    /// [`Caches::get`] of a key in any form.
    #[inline]
    pub(super) fn find<Q: Hash + Equivalent<K::Owned> + ?Sized>(&self, key: &Q) -> Option<Entry<V>> {
        match self.values.get(key) {
            None => self.misses.get(key).map(|(epoch, filter)| Entry {
                epoch,
                found: Err(filter),
                is_due: false,
            }),
            Some(cached) => match self.age(key, &cached) {
                Age::Expired => None,
                age => Some(Entry {
                    epoch: cached.epoch,
                    found: Ok(cached.value),
                    is_due: age == Age::Due,
                }),
            },
        }
    }

    #[inline]
    pub(super) fn age<Q: Hash + Equivalent<K::Owned> + ?Sized>(&self, key: &Q, cached: &Cached<V>) -> Age {
        match &self.ages {
            None => Age::Fresh,
            Some(ages) => ages.of(key, cached.at),
        }
    }
}

/// The bytes of a key, as a filter hashes them.
pub(crate) fn bytes_of(key: &(impl Funnel + ?Sized)) -> usize {
    struct Length(usize);
    impl Sink for Length {
        fn put(&mut self, bytes: &[u8]) {
            self.0 += bytes.len();
        }
    }
    let mut length = Length(0);
    key.funnel(&mut length);
    length.0
}
