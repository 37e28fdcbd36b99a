//! A filter that grows. [`ScalableBloom`] is a chain of [`ConcurrentBloom`] layers for an unknown
//! number of keys, as lock-free as one of them.
//!
//! Inserts go into the newest layer. When it is full, the filter adds a layer, by default for three
//! times as many keys. A lookup searches all layers, the newest first. Each layer has a lower
//! false-positive rate than the one before it, so that the rates of all layers, however many, add
//! up to the requested rate.
//!
//! # Example
//!
//! ```
//! let seen = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
//! for url in 0..50_000u32 {
//!     seen.insert(&url)?;
//! }
//! assert_eq!(seen.layers().len(), 5); // for 1000, 3000, ... 81,000 keys
//! assert!((0..50_000u32).all(|url| seen.contains(&url)));
//! assert!(seen.statistics().false_positive_rate < 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Growth
//!
//! The first layer is for `expected_keys`, and takes the share `1 - r` of the rate, where `r` is
//! the tightening ratio. Each later layer is for `expansion` times as many keys, and takes the same
//! share of what is left of the rate. (If the number of layers is limited, the last one takes all
//! of it.) A rate that takes more than 256 bits per key is out of reach, which ends growth. With
//! the defaults, 1000 keys at 1%, that is far beyond any memory.
//!
//! With a [hint](Builder::hint) of the number of keys, the first layer is for as many keys and
//! takes 90% of the rate. If the hint [comes later](Filter::set_hint), the next layer is for the
//! rest, but for at most 4096 times the keys before it. If more keys come than it says, growth goes
//! on as without it. A hint is a guess: if memory is too small for its layer, or no room within the
//! limits, growth goes on as without it too. With a good hint the filter takes hardly more memory
//! than one of the right size, and it has one layer or two. 10 million keys, bytes per
//! key of an input that has each key twice, and ns per line by
//! [`exclusive().insert_batch_into`](Exclusive::insert_batch_into) (an Intel Xeon that was busy, by
//! layout version 1, so trust the ratios; record: `growing-filter.md`):
//!
//! | rate | first layer, expansion | hint | layers | bytes per key | ns per line |
//! |---|--:|---|--:|--:|--:|
//! | 1e-6 | 65,536, 2 | the number of keys | 1 | 4.4 | 58 |
//! | | | by the share that was read | 2 | 4.7 | 71 |
//! | | | none | 8 | 9.7 | 122 |
//! | | 10,000, 3 | none | 7 | 6.3 | |
//! | 1% | 10,000, 3 | none | 7 | 2.6 | |
//! | | 65,536, 2 | the number of keys | 1 | 1.5 | |
//!
//! No insert counts keys: one in 64 to 128 of them estimates how full the layer is. From seven
//! eighths on, the thread that does so makes the next layer, while the others go on filling this
//! one. If it is not made when the layer is full, every thread that sees the full layer makes one
//! too, so that growth waits for no thread.
//!
//! A layer is full with 1/64 more than its expected keys, and ends up with [a little more or
//! less](crate::docs::choices#growth). Every layer is sized for 1/24 more keys than it is for.
//!
//! [`expected_keys`](Filter::expected_keys) and all other statistics are those of the layers in
//! use, so they grow with the filter. All layers together stay below
//! [`max_false_positive_rate`](ScalableBloom::max_false_positive_rate).
//!
//! # Cost
//!
//! A lookup of a key that is in no layer searches all of them, a line in each. The old layers are
//! small and near. Batches hash a key once and search every layer by the vector kernels. Each layer
//! that is added takes its memory at once, before it has a key. [`expansion`](Builder::expansion)
//! chooses between few layers and little memory, with these [figures](crate::docs::choices#growth).
//!
//! If you know the number of keys within a factor of two, a [`ConcurrentBloom`] is smaller and
//! faster. If you can read the keys again, replace a filter that has grown by one of the right
//! size: a `CacheGuard` of the crate `lanebloom-guard` does so while it serves.
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency) hold, also while a layer is added, with these
//! differences. (2) If several threads race to insert a key, at least one gets `true`.
//! Several may, with one word per key too: one thread may still be filling the old layer when
//! another begins the new one. So an insert is never a claim: [see below](#claims) for an
//! alternative. (4) Lookups never allocate. Inserts allocate nothing but layers. If an allocation
//! fails, they go on until the layer is full, and then return [an error](crate::InsertError).
//!
//! # Unions
//!
//! A [union](Filter::union_from) takes the other filter's layers one by one. A layer here of the
//! same layout takes the keys, if it then has at most 1/32 more keys than it is for. Otherwise a
//! copy of the layer is added. So filters that were built in different ways can be united, if they
//! have the same hasher. If there are too many layers, or too many bytes, the union fails, and no
//! key was added (unless other threads add layers meanwhile: then some keys may have been).
//!
//! Replicas stay as they are. If the filters have different keys, the rate of the union is at most
//! the sum of both rates. [`statistics`](Filter::statistics) returns the rate now.
//! Later layers take what they would take without those of other filters.
//!
//! # Claims
//!
//! Sometimes only one thread may act on a key ("I am the one to fetch this URL"). Then choose the
//! thread by the key's hash. All inserts of a key come from one thread, one after another, and at
//! most one of them returns `Ok(true)`. The threads never wait for each other:
//!
//! ```
//! use lanebloom::Hashed;
//!
//! let seen = &lanebloom::ScalableBloom::builder().expected_keys(1000).build()?;
//! // Three crawlers have found the same URLs.
//! let urls = (0..3).flat_map(|_| 0..5000u32);
//! let hashes: &Vec<u64> = &urls.map(|url| seen.hash(&url)).collect();
//! let fetched: usize = std::thread::scope(|scope| {
//!     // Each worker fetches the URLs of its own hashes that are new.
//!     let work = |worker| move || {
//!         let own = hashes.iter().filter(|hash| *hash % 4 == worker);
//!         own.filter(|hash| seen.insert(&Hashed(**hash)) == Ok(true)).count()
//!     };
//!     let workers = [0, 1, 2, 3].map(|worker| scope.spawn(work(worker)));
//!     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
//! });
//! // Each was fetched once, but for the false positives.
//! assert!((4900..=5000).contains(&fetched));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! If the number of keys is known, use a [`ConcurrentBloom`] with [one word per
//! key](crate::bloom::Builder::words_per_key): there an insert is a claim by itself.

mod chain;
mod snapshot;
mod steps;

pub use chain::Scalable;

use crate::answers::{Answers, answered_into};
use crate::error::{BuildError, BuildErrorKind, IncompatibleError, InsertError};
use crate::filter::traits::{Planned, Union};
use crate::filter::types::bloom::ConcurrentBloom;
use crate::filter::{Exclusive, Filter};
use crate::geometry::sizing::Request;
use crate::hash::{FilterHasher, Murmur3};
use crate::key::Key;
use alloc::format;
use alloc::vec::Vec;
use steps::{MAX_LAYERS, Steps};

/// A lock-free Bloom filter that grows. Many threads can insert and look up at once.
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Filter`] says what all filters share,
/// [batches and hashes](Filter#batches) too. [`clear`](Filter::clear) leaves one empty layer. [The
/// module](self) says how the filter grows and what threads may rely on.
///
/// An insert returns whether it changed the filter: `true` for a new key, `false` for a key that is
/// there, and by chance for a new one. Inserting a key again changes nothing. A new key is [an
/// error](crate::InsertError) if the filter is full and cannot grow: a limit is reached, or memory
/// was refused.
///
/// ```
/// let seen = &lanebloom::ScalableBloom::builder().expected_keys(100).build()?;
/// std::thread::scope(|scope| {
///     for worker in 0..4u32 {
///         scope.spawn(move || seen.insert_all((0..1000u32).map(|i| (worker, i))));
///     }
/// });
/// assert!((0..1000u32).all(|i| seen.contains(&(3u32, i))));
/// assert_eq!(seen.layers().len(), 4);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type ScalableBloom<S = Murmur3> = Filter<Scalable, S>;

/// Sizes a [`ScalableBloom`]; made by [`ScalableBloom::builder`](Filter::builder).
///
/// If you know about how many keys will come, give it as a [`hint`](Self::hint). `expected_keys` is
/// the number of distinct keys that the first layer is for without a hint: the fewest that you
/// expect; 1000 by default. `false_positive_rate` is that of all layers together, however many.
/// `words_per_key` holds in every layer; by default each layer has the best number for its rate,
/// and two lines per key if the filter's rate is 1e-5 or lower. With 1, low rates are soon out of
/// reach, so there can be only few layers.
///
/// ```
/// let builder = lanebloom::ScalableBloom::builder().expected_keys(10_000);
/// let builder = builder.false_positive_rate(1e-3).words_per_key(4);
/// let filter = builder.expansion(4).max_bytes(1 << 20).build()?;
/// filter.insert_all(0..20_000u32)?;
/// assert!(filter.statistics().false_positive_rate < 1e-3);
/// let keys: Vec<_> = filter.layers().map(|one| one.expected_keys()).collect();
/// assert_eq!(keys, [10_000, 40_000]);
/// assert!(filter.layers().all(|layer| layer.layout().words_per_key == 4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Builder<S = Murmur3> = crate::filter::Builder<Scalable, S>;

/// Inserts and lookups, one key or many.
impl<S> ScalableBloom<S> {
    /// Inserts `key`. Returns whether this changed the filter: `false` for a key that is there,
    /// and by chance for a new one. If several threads race to insert a new key, at least one of
    /// them gets `true`, and several may. Fails if the filter is full and cannot grow; it loses
    /// nothing.
    ///
    /// Every change is a `Release`.
    ///
    /// ```
    /// let filter = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a")?;
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("add", "put", "check_and_set"))]
    #[inline]
    pub fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> Result<bool, InsertError> {
        self.try_insert(key)
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insert happened before. `true` ends in an `Acquire`.
    ///
    /// ```
    /// let filter = lanebloom::ScalableBloom::from_keys([17u64], 0.01)?;
    /// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.look_up(key)
    }

    /// Inserts the keys in order, up to one that is refused; returns how many inserts changed the
    /// filter. An error says how many keys were [inserted](InsertError::inserted) before.
    ///
    /// ```
    /// let filter = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&[1, 2])?;
    /// assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> Result<usize, InsertError> {
        self.try_insert_batch(keys)
    }

    /// Passes on whether each key may be in the filter: what [`contains`](Self::contains) returns
    /// for it. [`Answers`] says what `out` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::ScalableBloom::from_keys(["a"], 0.01)?;
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
    /// let filter = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.insert_batch_into(&[1, 1, 2], &mut new)?;
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch_into<K: Key<S>>(&self, keys: &[K], new: impl Answers) -> Result<usize, InsertError> {
        self.try_insert_batch_into(keys, new)
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time. A filter
    /// that refuses a key takes no more from the iterator; it may have taken up to 1023 keys after
    /// that one already.
    ///
    /// ```
    /// let filter = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..100)?;
    /// assert!((0..100).all(|key| filter.contains(&key)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: Key<S>>(&self, keys: impl IntoIterator<Item = K>) -> Result<usize, InsertError> {
        self.try_insert_all(keys)
    }
}

/// Unions.
impl<S: FilterHasher> ScalableBloom<S> {
    /// Adds every key that was inserted into `other` before; returns whether that changed this
    /// filter. Both may be in use meanwhile.
    ///
    /// Fails if the hasher (its algorithm, seed or key) differs, or if this filter has no room for
    /// the other one's layers. Then no key is added, unless other threads take the room while the
    /// union runs. The layouts may differ.
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// ```
    /// let all = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
    /// let (part, empty) = (all.clone(), all.clone());
    /// let _ = part.insert("a");
    /// assert!(all.union_from(&part)? && all.contains("a"));
    /// assert!(!all.union_from(&empty)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("merge", "put_all", "putAll"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        Union::union_from(self, other)
    }
}

/// How a chain grows, and up to how many bytes.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct GrowthOptions {
    steps: Steps,
    hint: usize,
    max_bytes: Option<usize>,
}

impl GrowthOptions {
    fn steps(&self, request: Request) -> Steps {
        Steps {
            keys: request.keys.unwrap_or(self.steps.keys).max(1),
            rate: request.rate.unwrap_or(self.steps.rate),
            words: request.words,
            ..self.steps
        }
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes.unwrap_or(usize::MAX)
    }
}

impl Planned for Scalable {
    type Options = GrowthOptions;

    fn build(request: Request, options: GrowthOptions) -> Result<Self, BuildError> {
        Self::new(options.steps(request), options.hint, options.max_bytes())
    }
}

/// A filter with the defaults of its builder: 1000 keys in the first layer, a rate of 1%.
///
/// ```
/// #[derive(Default)]
/// struct Crawler {
///     seen: lanebloom::ScalableBloom,
/// }
/// let Crawler { seen } = Crawler::default();
/// assert_eq!(seen.insert("a"), Ok(true));
/// assert_eq!(seen.expected_keys(), 1000);
/// assert_eq!(seen.max_false_positive_rate(), 0.01);
/// ```
impl<S: FilterHasher + Default> Default for ScalableBloom<S> {
    /// Panics if there is no memory.
    fn default() -> Self {
        let builder = ScalableBloom::builder().hasher(S::default());
        builder.build().expect("memory for a layer of 1000 keys")
    }
}

impl<S> Builder<S> {
    /// [`words_per_key`](crate::bloom::Builder::words_per_key) of each Bloom filter.
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder().expected_keys(1000);
    /// let one = builder.clone().words_per_key(1).build()?;
    /// assert!(one.memory_bytes() > builder.clone().build()?.memory_bytes());
    /// assert!(builder.words_per_key(3).build().is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.request.words = Some(words);
        self
    }

    /// The rate of each layer divided by the rate of the one before it: between 0 and 1, both
    /// excluded. 0.8 by default; RedisBloom's is 0.5.
    ///
    /// Near 1 the first layers get little of the rate, and take more memory; near 0 the last ones
    /// do. Values from 0.5 to 0.9 work well.
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder();
    /// let build = |ratio| builder.clone().tightening_ratio(ratio).build();
    /// assert!(build(0.9)?.memory_bytes() > build(0.5)?.memory_bytes());
    /// assert!(build(1.0).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn tightening_ratio(mut self, ratio: f64) -> Self {
        self.options.steps.ratio = ratio;
        self
    }

    /// The number of keys of each layer divided by that of the one before it: 1 to 4096. 3 by
    /// default, RedisBloom's is 2; with 1 all layers are for the same number.
    ///
    /// A greater number means fewer layers, so faster lookups, and more memory that is not needed
    /// yet: [figures](crate::docs::choices#growth).
    ///
    /// ```
    /// let layers = |expansion| -> Result<usize, Box<dyn std::error::Error>> {
    ///     let builder = lanebloom::ScalableBloom::builder().expected_keys(100);
    ///     let filter = builder.expansion(expansion).build()?;
    ///     filter.insert_all(0..1000u32)?;
    ///     Ok(filter.layers().len())
    /// };
    /// assert_eq!((layers(2)?, layers(4)?), (4, 3));
    /// assert!((9..=11).contains(&layers(1)?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expansion(mut self, expansion: usize) -> Self {
        self.options.steps.expansion = expansion;
        self
    }

    /// The most layers, at least 1. Beyond it, inserts say that the filter is
    /// [full](crate::InsertError). By default the only limits are [the rates](self#growth) and 64.
    /// 1 is RedisBloom's `NONSCALING`.
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder().expected_keys(100);
    /// let filter = builder.max_layers(3).build()?;
    /// let refused = (0..2000u32).filter(|key| filter.insert(key).is_err()).count();
    /// assert!((600..=760).contains(&refused)); // 1300 have room
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "non_scaling")]
    pub fn max_layers(mut self, layers: usize) -> Self {
        self.options.steps.max_layers = Some(layers.min(MAX_LAYERS) as u8);
        self
    }

    /// The most memory that the bits of all layers may take together, in bytes: a limit, where the
    /// `memory_budget` of other filters is a size. The last layer fills what is left. When less
    /// than 1/32 is left, inserts say that the filter is [full](crate::InsertError). No limit by
    /// default.
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder().expected_keys(100);
    /// let filter = builder.max_bytes(10_000).build()?;
    /// let error = filter.insert_all(0..100_000u32).unwrap_err();
    /// assert!(error.to_string().contains("of its limit of 10000 bytes"));
    /// assert!((9000..=10_000).contains(&filter.memory_bytes()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.options.max_bytes = Some(bytes);
        self
    }

    /// The number of distinct keys that are expected in all, as far as it is known; 0, the default,
    /// if nothing is. [Growth](self#growth) says what it does. [`set_hint`](Filter::set_hint)
    /// changes it.
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder().false_positive_rate(1e-6);
    /// let filter = builder.hint(100_000).build()?;
    /// filter.insert_all(0..100_000u32)?;
    /// assert_eq!(filter.layers().len(), 1);
    /// assert!(filter.statistics().bits_per_key < 36.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hint(mut self, keys: usize) -> Self {
        self.options.hint = keys;
        self
    }
}

impl<S: FilterHasher> Builder<S> {
    /// A filter that begins with these layers, the oldest first, and grows as the builder says. It
    /// holds the keys of all layers.
    ///
    /// It makes a filter of a [`ConcurrentBloom`] that is full, or of the
    /// [layers](Filter::into_layers) of another filter. Without layers it is
    /// [`build`](Self::build).
    ///
    /// # Errors
    ///
    /// Fails as [`build`](Self::build), if a layer's hasher is not the builder's, or if the layers
    /// are more or larger than the builder's limits.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, ScalableBloom};
    ///
    /// let full = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// full.insert_all(0..1000u32);
    /// let builder = ScalableBloom::builder().false_positive_rate(0.02);
    /// let filter = builder.build_from([full])?;
    /// filter.insert_all(1000..3000u32)?;
    /// assert!((0..3000u32).all(|key| filter.contains(&key)));
    /// assert!(filter.statistics().false_positive_rate < 0.02);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_from(
        self,
        layers: impl IntoIterator<Item = ConcurrentBloom<S>>,
    ) -> Result<ScalableBloom<S>, BuildError> {
        let (steps, max_bytes) = (self.options.steps(self.request), self.options.max_bytes());
        steps.check()?;
        let own = self.hasher.fingerprint();
        let (mut engines, mut needed) = (Vec::new(), 0usize);
        for layer in layers {
            if layer.hasher.fingerprint() != own {
                let problem = format!("the hasher of layer {} is not the builder's", engines.len());
                return Err(BuildError::new(problem));
            }
            needed = needed.saturating_add(layer.memory_bytes());
            engines.push(layer.engine);
        }
        if engines.is_empty() {
            return self.build();
        }
        if engines.len() > steps.limit() {
            let problem = format!("{} layers are more than the limit of {}", engines.len(), steps.limit());
            return Err(BuildError::new(problem));
        }
        if needed > max_bytes {
            let limit = max_bytes;
            return Err(BuildError(BuildErrorKind::OverBudget { needed, limit }));
        }
        let mut chain = Scalable::of(steps, self.options.hint, max_bytes, engines)?;
        chain.close_if_full();
        Ok(Filter::of(chain, self.hasher))
    }
}

/// Layers and limits.
impl<S> Filter<Scalable, S> {
    /// The layers that are in use, the oldest first, for their statistics. They have no hasher:
    /// only the filter inserts into them.
    ///
    /// ```
    /// let filter = lanebloom::ScalableBloom::with_capacity(100, 0.01)?;
    /// filter.insert_all(0..500u32)?;
    /// let keys: Vec<_> = filter.layers().map(|one| one.expected_keys()).collect();
    /// assert_eq!(keys, [100, 300, 900]);
    /// assert!(filter.layers().rev().next().unwrap().statistics().len < 300);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &ConcurrentBloom<()>> + ExactSizeIterator {
        self.engine.layers_now().iter().map(|layer| &layer.filter)
    }

    /// The layers that are in use, the oldest first, each a filter of its own. A key of this filter
    /// is in one of them.
    ///
    /// ```
    /// let filter = lanebloom::ScalableBloom::with_capacity(100, 0.01)?;
    /// filter.insert_all(0..500u32)?;
    /// let layers = filter.into_layers();
    /// assert_eq!(layers.len(), 3);
    /// assert!((0..500u32).all(|key| layers.iter().any(|layer| layer.contains(&key))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn into_layers(self) -> Vec<ConcurrentBloom<S>>
    where
        S: Clone,
    {
        let Self { engine, hasher, .. } = self;
        engine
            .into_layers()
            .map(|layer| Filter::of(layer, hasher.clone()))
            .collect()
    }

    /// The number of distinct keys that are expected in all: the [builder's](Builder::hint), or the
    /// last one that was [set](Self::set_hint), which has an example. 0 if nothing is known.
    #[must_use]
    pub fn hint(&self) -> usize {
        self.engine.hint()
    }

    /// Sets the number of distinct keys that are expected in all, with those that are here. The
    /// next layer is for the rest, [if that is possible](self#growth). A full filter tries again to
    /// grow. Threads may insert meanwhile.
    ///
    /// For a file whose size is known, it is the number of keys so far, divided by the share of the
    /// file that was read:
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder().false_positive_rate(1e-6);
    /// let filter = builder.build()?;
    /// let (input, mut keys, mut read) = (Vec::from_iter(0..200_000u32), 0, 0);
    /// for part in input.chunks(500) {
    ///     keys += filter.insert_batch(part)?;
    ///     read += part.len();
    ///     let share = read as f64 / input.len() as f64;
    ///     filter.set_hint((keys as f64 / share) as usize);
    /// }
    /// // For the first thousand keys, and for the others.
    /// assert_eq!(filter.layers().len(), 2);
    /// assert!((199_900..=200_000).contains(&filter.hint()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_hint(&self, keys: usize) {
        self.engine.set_hint(keys);
    }

    /// The number of layers that the filter will have when it can grow no more, as planned now.
    /// Small layers need less of the rate than planned, and leave it to more layers: 64 at most, or
    /// the [builder's](Builder::max_layers).
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// assert!((20..=40).contains(&ScalableBloom::builder().build()?.max_layers()));
    /// assert_eq!(ScalableBloom::builder().max_layers(3).build()?.max_layers(), 3);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_layers(&self) -> usize {
        self.engine.max_layers()
    }

    /// The most memory that the bits of all layers may take together, in bytes: [the
    /// builder's](Builder::max_bytes), the limit of [`read_from`](Filter::read_from) where that is
    /// less, or the one that was [set](Self::set_max_bytes). (Snapshots record the builder's, so
    /// that a later reader may allow more.) A filter without a limit returns `usize::MAX`.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().expected_keys(100).build()?;
    /// assert_eq!(filter.max_bytes(), usize::MAX);
    /// let same = ScalableBloom::read_from(&filter.snapshot().to_vec()[..], 10_000)?;
    /// assert_eq!(same.max_bytes(), 10_000);
    /// assert!(same.insert_all(0..100_000u32).is_err());
    /// assert!(same.memory_bytes() <= 10_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.engine.max_bytes
    }

    /// Sets the most memory that the bits of all layers may take together from now on, as the limit
    /// of a reader does. Snapshots still record the [builder's](Builder::max_bytes). Layers that
    /// are in use stay, also beyond the limit.
    ///
    /// ```
    /// let mut filter = lanebloom::ScalableBloom::with_capacity(100, 0.01)?;
    /// filter.set_max_bytes(10_000);
    /// assert!(filter.insert_all(0..100_000u32).is_err() && filter.is_full());
    /// assert!(filter.memory_bytes() <= 10_000);
    /// filter.set_max_bytes(usize::MAX);
    /// filter.insert_all(0..100_000u32)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_max_bytes(&mut self, bytes: usize) {
        self.engine.limit(bytes);
    }

    /// The false-positive rate that was asked for: all layers together stay below it, however many.
    ///
    /// ```
    /// let filter = lanebloom::ScalableBloom::with_capacity(1000, 1e-4)?;
    /// assert_eq!(filter.max_false_positive_rate(), 1e-4);
    /// // That of the first layer.
    /// assert!((1e-5..2e-5).contains(&filter.false_positive_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_false_positive_rate(&self) -> f64 {
        self.engine.steps.rate
    }

    /// Whether the filter takes no more keys: its newest layer is full, and there can be no other,
    /// or its memory was refused. (After another [hint](Self::set_hint) or a new limit, the next
    /// insert decides it anew.)
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder().expected_keys(100);
    /// let filter = builder.max_layers(1).build()?;
    /// assert!(!filter.is_full());
    /// assert!(filter.insert_all(0..200u32).is_err());
    /// assert!(filter.is_full());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.engine.layers_now().are_full()
    }
}

/// Inserts without atomics.
impl<S> Filter<Scalable, S> {
    /// The operations that no other thread may see, of [`Exclusive`]: inserts without atomics.
    ///
    /// ```
    /// let mut filter = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(filter.exclusive().insert_batch(&["a", "b", "a"]), Ok(2));
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn exclusive(&mut self) -> Exclusive<'_, Scalable, S> {
        Exclusive(self)
    }
}

/// Inserts without atomics.
impl<S> Exclusive<'_, Scalable, S> {
    /// [`insert_batch`](ScalableBloom::insert_batch) without atomics: [up to four times as
    /// fast](crate::docs::cost#inserting-in-bulk).
    ///
    /// ```
    /// let mut filter = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
    /// filter.exclusive().insert_batch(&["a", "b"])?;
    /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<K: Key<S>>(&mut self, keys: &[K]) -> Result<usize, InsertError> {
        let Filter { engine, hasher, isa } = &mut *self.0;
        engine.insert_mut(&K::source(keys, hasher, *isa), None)
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each insert changed the
    /// filter, like [`insert_batch_into`](ScalableBloom::insert_batch_into).
    ///
    /// ```
    /// let mut filter = lanebloom::ScalableBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.exclusive().insert_batch_into(&["a", "a", "b"], &mut new)?;
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch_into<K: Key<S>>(&mut self, keys: &[K], new: impl Answers) -> Result<usize, InsertError> {
        let Filter { engine, hasher, isa } = &mut *self.0;
        let source = K::source(keys, hasher, *isa);
        answered_into(*isa, keys.len(), new, |answer| engine.insert_mut(&source, answer))
    }
}
