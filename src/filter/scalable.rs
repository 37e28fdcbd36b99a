//! A filter that grows. [`ScalableBloom`] is a chain of [`ConcurrentBloom`] layers for an unknown
//! number of keys, as lock-free as one of them.
//!
//! Inserts go into the newest layer. When it is full, the filter adds a layer, by default for twice
//! as many keys. A lookup searches all layers, the newest first. Each layer has a lower
//! false-positive rate than the one before it. So the rates of all layers, however many there will
//! be, add up to the requested rate.
//!
//! # Example
//!
//! ```
//! use lanebloom::ScalableBloom;
//!
//! let seen = ScalableBloom::builder().initial_capacity(1000).false_positive_rate(0.01).build()?;
//! for url in 0..50_000u32 {
//!     seen.insert(&url)?;
//! }
//! assert_eq!(seen.layers().len(), 6); // for 1000, 2000, ... 32,000 keys
//! assert!((0..50_000u32).all(|url| seen.contains(&url)));
//! assert!(seen.current_false_positive_rate() < 0.01);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Growth
//!
//! Layer `i` (from 0) is for `capacity * expansion^i` keys at a rate of `p * (1 - r) * r^i`, where
//! `r` is the tightening ratio. (If the number of layers `n` is limited, these rates are divided by
//! `1 - r^n`, so that nothing of the rate `p` is left over.) A rate that takes more than 128 bits
//! per key is out of reach, which ends growth: [`max_layers`](ScalableBloom::max_layers) returns
//! the number of layers until then. With the defaults, 1000 keys at 1%, that is far beyond any
//! memory.
//!
//! No insert counts keys. One in 64 to 128 of the inserts that fill a layer checks how many bits
//! are set in up to 256 of its lines. From three quarters on, the thread that checks makes the next
//! layer, while the others go on filling this one. When the layer is full, one store makes the next
//! layer the newest. If the next layer is not made yet, every thread that sees the full layer makes
//! one too, so that growth waits for no thread.
//!
//! So a layer ends up with a little more or less than its capacity: 1% more in the mean, with a
//! standard deviation of 1.4% and 8% more at most (of 200 filters of 5 layers from 10 thousand keys
//! on, by single inserts). Each thread that is inserting a batch at that moment may add up to 1/64
//! more. Every layer is sized for 1/16 more keys than its capacity. If two threads insert a
//! thousand times the planned keys, the rate is about 0.85 of the promised rate;
//! `tests/api/scalable.rs` measures it.
//!
//! # What it costs
//!
//! A lookup of a key that is in no layer searches all of them. It takes about as many times a fixed
//! filter's lookup as there are layers; the old layers are small and near. Batches hash a key once
//! and search every layer by the vector kernels. Memory: most keys are in the last layers, which
//! have the lowest rates. With the defaults, after ten layers, all full, at 1%, the filter takes 3
//! times the memory of a fixed filter for as many keys. With a higher [tightening
//! ratio](Builder::tightening_ratio) it takes less. If you know the number of keys within a factor
//! of two, a [`ConcurrentBloom`] is smaller and faster.
//!
//! # Consistency
//!
//! The promises are those of the [crate](crate#consistency), also while a layer is added, with
//! these differences. (2) If several threads race to insert a key, at least one gets `true`.
//! Several may, with one word per key too: one thread may still be filling the old layer when
//! another begins the new one. So an insert is never a claim: [see below](#claims) for an
//! alternative. (4) Lookups never allocate. Inserts allocate nothing but layers. If an allocation
//! fails, they go on until the layer is full, and then return [an error](crate::FullError).
//!
//! # Claims
//!
//! Sometimes only one thread may act on a key ("I am the one to fetch this URL"). Then choose the
//! thread by the key's hash. All inserts of a key come from one thread, one after another, and at
//! most one of them answers `Ok(true)`. The threads share the filter and never wait for each other:
//!
//! ```
//! use lanebloom::ScalableBloom;
//! use std::sync::mpsc::channel;
//! use std::thread;
//!
//! let seen = &ScalableBloom::builder().initial_capacity(1000).build()?;
//! let fetched: usize = thread::scope(|scope| {
//!     let mut inboxes = Vec::new();
//!     let mut workers = Vec::new();
//!     for _ in 0..4 {
//!         let (sender, inbox) = channel();
//!         inboxes.push(sender);
//!         // The worker fetches the URLs that are left.
//!         let is_new = |(hash, _url): &(u64, u32)| seen.insert_hash(*hash) == Ok(true);
//!         workers.push(scope.spawn(move || inbox.into_iter().filter(is_new).count()));
//!     }
//!     // Three threads find the same URLs.
//!     for _ in 0..3 {
//!         let inboxes = inboxes.clone();
//!         scope.spawn(move || {
//!             for url in 0..5000 {
//!                 let hash = seen.hash(&url);
//!                 inboxes[(hash % 4) as usize].send((hash, url)).unwrap();
//!             }
//!         });
//!     }
//!     drop(inboxes);
//!     workers.into_iter().map(|worker| worker.join().unwrap()).sum()
//! });
//! // Each was fetched once, but for the false positives.
//! assert!((4900..=5000).contains(&fetched));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! If the number of keys is known, use a [`ConcurrentBloom`] with [one word per
//! key](crate::Builder::words_per_key): there an insert is a claim by itself.

mod snapshot;

use super::bloom::ConcurrentBloom;
use super::gauge::Gauge;
use crate::batch::{STRETCH, for_each_absent};
use crate::error::{BuildError, BuildErrorKind, FullError, FullErrorKind, IncompatibleError};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, Murmur3, assert_same_length};
use crate::layout::{LINE_BYTES, Layout};
use crate::once::OnceBox;
use crate::sizing::Request;
use crate::source::{HASHED, assert_bitmap_length, gathered, unpack_into};
use crate::sync::{AtomicU64, Ordering};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

/// A lock-free Bloom filter that grows. Many threads can insert and look up at once.
///
/// Keys are any [`Funnel`] type. `S` hashes them; it is [`Murmur3`] by default. All operations but
/// [`clear`](Self::clear) take `&self`: share the filter as `Arc<ScalableBloom>`. [The
/// module](self) says how it grows and what threads may rely on.
///
/// # Examples
///
/// ```
/// use lanebloom::ScalableBloom;
/// use std::sync::Arc;
/// use std::thread;
///
/// let seen = Arc::new(ScalableBloom::builder().initial_capacity(100).build()?);
/// let workers: Vec<_> = (0..4u32)
///     .map(|worker| {
///         let seen = Arc::clone(&seen);
///         thread::spawn(move || (0..1000u32).filter(|i| seen.insert(&(worker, *i)).unwrap()).count())
///     })
///     .collect();
/// let new: usize = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
/// assert!(new > 3950); // 4000 but for false positives
/// assert!((0..1000u32).all(|i| seen.contains(&(3u32, i))));
/// assert!(seen.layers().len() > 4);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct ScalableBloom<S = Murmur3> {
    /// As many as there can ever be.
    slots: Box<[Slot<S>]>,
    /// See [`State`].
    state: AtomicU64,
    /// The number of the layer that a thread makes ahead of need, or has made; 0 if no thread does.
    /// It only saves work in other threads.
    claimed: AtomicU64,
    hasher: S,
    asked: Asked,
    steps: Steps,
    /// See [`ScalableBloom::max_bytes`]: what was asked for, or less where it was read.
    max_bytes: usize,
}

struct Slot<S> {
    layer: OnceBox<Layer<S>>,
    /// The layer's, where it was computed when the filter was built.
    layout: Option<Layout>,
    /// Otherwise, where it was computed since; `None` if there is none.
    late: OnceBox<Option<Layout>>,
}

struct Layer<S> {
    filter: ConcurrentBloom<S>,
    gauge: Gauge,
}

/// The number of layers that are in use, times 4, plus the phase; in one word, so that a phase is
/// always that of the newest layer.
///
/// | phase | the newest layer takes keys | then |
/// |---|---|---|
/// | `OPEN` | yes | the next one is published when it is full |
/// | `FULL` | no, and there will be no next one | stays |
/// | `STARVED` | no: it is full, and the memory for the next one was refused | every insert tries again |
///
/// | operation | ordering | partner, and why |
/// |---|---|---|
/// | [`layers`](ScalableBloom::layers_now) | load `Acquire` | `change`: who sees the number sees that the layers are there |
/// | `change` | compare-exchange `Release` | as above: of a layer that this thread made, or got by `OnceBox::get`. All changes are read-modify-write operations, so that those before continue to be seen. Failing is `Relaxed`: of what another one has published nothing is touched |
///
/// Lookups miss nothing, and that needs no ordering: the number only grows. If an insert happened
/// before a lookup, the lookup reads at least the insert's number, by coherence.
#[derive(Clone, Copy)]
struct State(u64);

const OPEN: u64 = 0;
const FULL: u64 = 1;
const STARVED: u64 = 2;

impl State {
    fn new(layers: usize, phase: u64) -> Self {
        Self((layers as u64) << 2 | phase)
    }
    #[inline(always)]
    fn layers(self) -> usize {
        (self.0 >> 2) as usize
    }
    #[inline(always)]
    fn phase(self) -> u64 {
        self.0 & 3
    }
}

/// How full the newest layer is, by its [`Gauge`], when the next one is made.
const AHEAD: f64 = 0.75;

/// A layer is sized for one key in so many more than its capacity, since inserts notice late that
/// it is full, most of all several threads at once. (With one in 32, two threads that insert
/// batches came to 0.88 to 0.99 of the promised rate, and once, beside other work, to 1.04.)
const HEADROOM: usize = 16;

/// The most layers: a lookup asks all of them.
const MAX_LAYERS: usize = 64;

/// The greatest expansion. With it, the third layer is for 17 billion keys if the first is
/// for 1000. A greater number is a mistake (a number of keys in place of a factor), or an attack:
/// somebody put it into a snapshot so that a few inserts allocate all memory.
const MAX_EXPANSION: usize = 1 << 12;

/// Layouts of layers up to this many keys are computed when the filter is built, since one takes
/// half a millisecond. For later layers, the last quarter of the layer before leaves enough time:
/// it has 250 thousand keys, from 20 ns per key.
const PLANNED_KEYS: usize = 1 << 20;

/// What decides the layout of every layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Steps {
    capacity: usize,
    expansion: usize,
    /// The rate of the first layer.
    rate: f64,
    ratio: f64,
    words: Option<usize>,
    growth: Growth,
}

// Rates and ratios are checked when the filter is built: they are never NaN.
impl Eq for Steps {}

impl Steps {
    /// The capacity of the layer with this number.
    fn capacity(&self, layer: usize) -> usize {
        let times = (0..layer).fold(1usize, |times, _| times.saturating_mul(self.expansion));
        self.capacity.saturating_mul(times)
    }

    fn rate(&self, layer: usize) -> f64 {
        (0..layer).fold(self.rate, |rate, _| rate * self.ratio)
    }

    fn layout(&self, layer: usize) -> Result<Layout, BuildError> {
        let capacity = self.capacity(layer);
        let request = Request {
            keys: Some(match self.growth {
                Growth::ByKeys => capacity.saturating_add(capacity.div_ceil(HEADROOM)),
                Growth::AtHalfFull => capacity,
            }),
            rate: Some(self.rate(layer)),
            ..self.request()
        };
        Ok(request.solve()?.0)
    }

    /// The layer with this number.
    fn gauged<S>(&self, number: usize, filter: ConcurrentBloom<S>) -> Layer<S> {
        let gauge = match self.growth {
            Growth::ByKeys => Gauge::new(&filter, self.capacity(number)),
            Growth::AtHalfFull => Gauge::at_half(&filter),
        };
        Layer { filter, gauge }
    }

    fn request(&self) -> Request {
        Request {
            words: self.words,
            half_full: self.growth == Growth::AtHalfFull,
            ..Request::default()
        }
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "layers from {} keys at a rate of {:e}, each for {} times the keys at {} times the rate",
            self.capacity, self.rate, self.expansion, self.ratio
        )?;
        if let Some(words) = self.words {
            write!(f, ", {words} words per key")?;
        }
        match self.growth {
            Growth::ByKeys => Ok(()),
            Growth::AtHalfFull => f.write_str(", full when half of the bits are set"),
        }
    }
}

/// When a [`ScalableBloom`] goes on to the next layer.
///
/// # Examples
///
/// ```
/// use lanebloom::scalable::{Growth, ScalableBloom};
///
/// let filter = ScalableBloom::builder().initial_capacity(10_000).growth(Growth::AtHalfFull).build()?;
/// (0..12_000u32).try_for_each(|key| filter.insert(&key).map(drop))?;
/// assert_eq!(filter.layers().len(), 2);
/// let first = filter.layers().next().unwrap();
/// assert!((0.49..0.53).contains(&first.fill_ratio()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Growth {
    /// When the layer has the number of keys that it is for.
    #[default]
    ByKeys,
    /// When half of the layer's bits are set; the number of bits per key is chosen for that.
    /// Filters on Redis bitmaps grow in this way, by `BITCOUNT`. The lower the rate, the more
    /// memory this takes, since [`ByKeys`](Self::ByKeys) has fewer bits set then. Rates below about
    /// 2e-6 are out of reach, so there can be fewer layers: 12 from a rate of 1%.
    AtHalfFull,
}

/// Configures a [`ScalableBloom`]; made by [`ScalableBloom::builder`].
///
/// # Examples
///
/// ```
/// use lanebloom::{ScalableBloom, SipHash13};
///
/// let filter = ScalableBloom::builder()
///     .initial_capacity(10_000)
///     .false_positive_rate(1e-3)
///     .expansion(4)
///     .max_bytes(1 << 20)
///     .hasher(SipHash13::with_key([7; 16]))
///     .build()?;
/// assert_eq!((filter.layers().len(), filter.capacity()), (1, 10_000));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S = Murmur3> {
    asked: Asked,
    hasher: S,
}

/// What a builder was asked for, and all that a snapshot says of growth: both plan by it.
#[derive(Clone, Copy, Debug)]
struct Asked {
    capacity: usize,
    /// The rate of all layers together.
    rate: f64,
    ratio: f64,
    expansion: usize,
    max_layers: Option<usize>,
    max_bytes: usize,
    growth: Growth,
    words: Option<usize>,
}

impl ScalableBloom {
    /// A builder with [`Murmur3`], seed 0: from 1000 keys, at a rate of 1%, without limits.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// assert_eq!((filter.capacity(), filter.false_positive_rate()), (1000, 0.01));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            asked: Asked {
                capacity: 1000,
                rate: 0.01,
                ratio: 0.5,
                expansion: 2,
                max_layers: None,
                max_bytes: usize::MAX,
                growth: Growth::default(),
                words: None,
            },
            hasher: Murmur3::default(),
        }
    }
}

impl Builder {
    /// Seeds [`Murmur3`]; 0 by default. A seed does not protect against hostile keys, see
    /// [`crate::hash`].
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().seed(1).build()?;
    /// assert_eq!(filter.hash("hello"), 0xa78d_dff5_adae_8d10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: u32) -> Self {
        self.hasher = Murmur3::with_seed(seed);
        self
    }
}

impl<S: KeyHasher + Clone> Builder<S> {
    /// The number of distinct keys that the first layer is for: the fewest that you expect. 0 means
    /// 1; 1000 by default.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(500).build()?;
    /// (0..450u32).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert_eq!(filter.layers().len(), 1);
    /// (450..600u32).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert_eq!(filter.layers().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn initial_capacity(mut self, keys: usize) -> Self {
        self.asked.capacity = keys.max(1);
        self
    }

    /// The chance that the filter reports a key that was never inserted, over all layers, however
    /// many. Between 0 and 1, both excluded; 0.01 by default.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).false_positive_rate(1e-3).build()?;
    /// (0..20_000u32).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert_eq!(filter.layers().len(), 8);
    /// assert!(filter.current_false_positive_rate() < 1e-3);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.asked.rate = rate;
        self
    }

    /// The rate of each layer divided by the rate of the one before it: between 0 and 1, both
    /// excluded. 0.5 by default.
    ///
    /// Near 1 the first layers get little of the rate, and take more memory; near 0 the last ones
    /// do. Values from 0.5 to 0.9 work well.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let first_layer = |ratio| ScalableBloom::builder().tightening_ratio(ratio).build().map(|filter| filter.memory_bytes());
    /// assert!(first_layer(0.9)? > first_layer(0.5)?);
    /// let error = first_layer(1.0).unwrap_err();
    /// assert_eq!(error.to_string(), "tightening ratio 1 is not between 0 and 1, both excluded");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn tightening_ratio(mut self, ratio: f64) -> Self {
        self.asked.ratio = ratio;
        self
    }

    /// The number of keys of each layer divided by that of the one before it: 1 to 4096. 2 by
    /// default; with 1 all layers are for the same number.
    ///
    /// A greater number means fewer layers, so faster lookups, and more memory that is not needed
    /// yet.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let layers = |expansion| -> Result<usize, Box<dyn std::error::Error>> {
    ///     let filter = ScalableBloom::builder().initial_capacity(100).expansion(expansion).build()?;
    ///     (0..1000u32).try_for_each(|key| filter.insert(&key).map(drop))?;
    ///     Ok(filter.layers().len())
    /// };
    /// assert_eq!((layers(2)?, layers(4)?), (4, 3));
    /// assert!((9..=11).contains(&layers(1)?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expansion(mut self, expansion: usize) -> Self {
        self.asked.expansion = expansion;
        self
    }

    /// The most layers, at least 1. Beyond it, inserts say that the filter is [full](FullError). By
    /// default the only limits are [the rates](self#growth) and 64.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).max_layers(3).build()?;
    /// let refused = (0..1000u32).filter(|key| filter.insert(key).is_err()).count();
    /// assert!((280..=320).contains(&refused)); // 700 have room
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn max_layers(mut self, layers: usize) -> Self {
        self.asked.max_layers = Some(layers);
        self
    }

    /// Limits the filter to one layer: it says when it is full. The same as
    /// [`max_layers(1)`](Self::max_layers), RedisBloom's `NONSCALING`.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(1000).non_scaling().build()?;
    /// let inserted = (0..2000u32).take_while(|key| filter.insert(key).is_ok()).count();
    /// assert!((980..=1060).contains(&inserted));
    /// assert!(filter.is_full());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn non_scaling(self) -> Self {
        self.max_layers(1)
    }

    /// The most memory that the bits of all layers may take together, in bytes. The filter does not
    /// add a layer that would take more; inserts say that the filter is [full](FullError). No limit
    /// by default.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).max_bytes(10_000).build()?;
    /// let error = (0..100_000u32).find_map(|key| filter.insert(&key).err()).unwrap();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the filter is full: with the next layer it would take 16384 bytes, more than its limit of 10000 bytes"
    /// );
    /// assert!(filter.memory_bytes() <= 10_000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.asked.max_bytes = bytes;
        self
    }

    /// When the filter goes on to the next layer: [`Growth::ByKeys`] by default.
    ///
    /// ```
    /// use lanebloom::scalable::{Growth, ScalableBloom};
    ///
    /// let filter = ScalableBloom::builder().growth(Growth::AtHalfFull).build()?;
    /// (0..930u32).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert!(filter.fill_ratio() < 0.5 && filter.layers().len() == 1);
    /// (930..1100u32).try_for_each(|key| filter.insert(&key).map(drop))?;
    /// assert_eq!(filter.layers().len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn growth(mut self, growth: Growth) -> Self {
        self.asked.growth = growth;
        self
    }

    /// How many 64-bit words of its line a key touches in every layer: 1, 2, 4 or 8. By default
    /// each layer has the best number for its rate, as in
    /// [`ConcurrentBloom`](crate::Builder::words_per_key). With 1, low rates are soon out of reach,
    /// so there can be only few layers.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().words_per_key(4).build()?;
    /// assert_eq!(filter.layers().next().unwrap().words_per_key(), 4);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.asked.words = Some(words);
        self
    }

    /// Another hasher: [`SipHash13`](crate::SipHash13) or any `BuildHasher`. [`crate::hash`] says
    /// when to take which. Every layer has a clone of it.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    /// use std::hash::RandomState;
    ///
    /// let filter = ScalableBloom::builder().hasher(RandomState::new()).build()?;
    /// assert_eq!(filter.insert("a"), Ok(true));
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hasher<T: KeyHasher + Clone>(self, hasher: T) -> Builder<T> {
        Builder {
            asked: self.asked,
            hasher,
        }
    }

    /// Allocates the first layer, and computes the layouts of all layers up to a million keys:
    /// about half a millisecond for each.
    ///
    /// # Errors
    ///
    /// Fails if the rate or the tightening ratio is not between 0 and 1, the expansion is not in 1
    /// to 4096, the limit of layers is 0, or the words per key are not 1, 2, 4 or 8. Fails if the
    /// first layer would take more than 128 bits per key, more than the limit of bytes or more than
    /// addressable memory. Also fails if an allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// assert!(ScalableBloom::builder().build().is_ok());
    /// let error = ScalableBloom::builder().expansion(0).build().unwrap_err();
    /// assert_eq!(error.to_string(), "an expansion of 0 is not in 1 to 4096");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build(self) -> Result<ScalableBloom<S>, BuildError> {
        let steps = self.asked.steps().map_err(BuildError)?;
        let layouts = self.asked.layouts(&steps)?;
        let filter = ScalableBloom::planned(self.asked, steps, &layouts, self.hasher, State::new(1, OPEN))?;
        filter.put(0, filter.empty_layer(0, layouts[0])?)?;
        Ok(filter)
    }
}

impl Asked {
    /// The most layers that there can be, by the limit that was asked for and by the rates that are
    /// in reach.
    fn layers(&self, steps: &Steps) -> usize {
        let least_rate = steps.request().least_rate();
        let most = self.max_layers.unwrap_or(MAX_LAYERS).min(MAX_LAYERS);
        // The first one has an error of its own.
        1 + (1..most).take_while(|&layer| steps.rate(layer) >= least_rate).count()
    }

    /// The layouts of the first layers: of all up to [`PLANNED_KEYS`], or where bytes are limited
    /// up to the one that is beyond.
    fn layouts(&self, steps: &Steps) -> Result<Vec<Layout>, BuildError> {
        let (mut layouts, mut needed) = (Vec::new(), 0usize);
        for layer in 0..self.layers(steps) {
            if layer > 0 && (steps.capacity(layer) > PLANNED_KEYS || needed > self.max_bytes) {
                break;
            }
            let layout = match steps.layout(layer) {
                Ok(layout) => layout,
                Err(error) if layer == 0 => return Err(error),
                Err(_) => break,
            };
            needed = needed.saturating_add(layout.blocks * LINE_BYTES);
            if layer == 0 && needed > self.max_bytes {
                let limit = self.max_bytes;
                return Err(BuildError(BuildErrorKind::OverBudget { needed, limit }));
            }
            layouts.push(layout);
        }
        Ok(layouts)
    }

    fn steps(&self) -> Result<Steps, BuildErrorKind> {
        let &Self { rate, ratio, .. } = self;
        let between_0_and_1 = |value| value > 0.0 && value < 1.0;
        if !between_0_and_1(rate) {
            return Err(BuildErrorKind::Rate(rate));
        }
        if !between_0_and_1(ratio) {
            return Err(BuildErrorKind::Setting(format!(
                "tightening ratio {ratio} is not between 0 and 1, both excluded"
            )));
        }
        if !(1..=MAX_EXPANSION).contains(&self.expansion) {
            return Err(BuildErrorKind::Setting(format!(
                "an expansion of {} is not in 1 to {MAX_EXPANSION}",
                self.expansion
            )));
        }
        let all = match self.max_layers {
            Some(0) => {
                return Err(BuildErrorKind::Setting(
                    "a filter of 0 layers holds nothing; 1 is the least".into(),
                ));
            }
            // 1 - ratio^n
            Some(n) => 1.0 - (0..n.min(MAX_LAYERS)).fold(1.0, |power, _| power * ratio),
            None => 1.0,
        };
        Ok(Steps {
            capacity: self.capacity,
            expansion: self.expansion,
            rate: rate * (1.0 - ratio) / all,
            ratio,
            words: self.words,
            growth: self.growth,
        })
    }
}

/// Empty slots, the first ones with these layouts.
fn slots<S>(layouts: &[Layout], len: usize) -> Result<Box<[Slot<S>]>, BuildError> {
    let mut slots = Vec::new();
    slots
        .try_reserve_exact(len)
        .map_err(|_| out_of_memory(len * size_of::<Slot<S>>()))?;
    slots.extend((0..len).map(|layer| Slot {
        layer: OnceBox::new(),
        layout: layouts.get(layer).copied(),
        late: OnceBox::new(),
    }));
    Ok(slots.into_boxed_slice())
}

fn out_of_memory(bytes: usize) -> BuildError {
    BuildError(BuildErrorKind::OutOfMemory { bytes })
}

/// The layers that are in use at a moment. There is at least one.
struct Layers<'a, S> {
    slots: &'a [Slot<S>],
    phase: u64,
}

impl<'a, S> Layers<'a, S> {
    #[inline(always)]
    fn iter(&self) -> impl DoubleEndedIterator<Item = &'a Layer<S>> + ExactSizeIterator + use<'a, S> {
        self.slots
            .iter()
            .map(|slot| slot.layer.get().expect("a layer that is counted is there"))
    }

    #[inline(always)]
    fn newest(&self) -> &'a Layer<S> {
        self.iter().next_back().expect("there is always a layer")
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.slots.len()
    }
}

impl<'a, S: KeyHasher> Layers<'a, S> {
    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.iter().rev().any(|layer| layer.filter.contains_hash(hash))
    }
}

/// Finds the hashes that are in any of these layers; returns a bitmap. Takes up to `STRETCH`
/// hashes.
fn found_in<'a, S: KeyHasher + 'a>(
    layers: impl DoubleEndedIterator<Item = &'a Layer<S>>,
    hashes: &[u64],
    found: &mut [u64],
) {
    let all = |found: &[u64]| found.iter().all(|&word| word == u64::MAX);
    let mut layers = layers.rev();
    match layers.next() {
        Some(newest) => newest.filter.contains_hashes_bitmap(hashes, found),
        None => return found.fill(0),
    }
    let mut more = [0; STRETCH / 64];
    let more = &mut more[..found.len()];
    for layer in layers {
        if all(found) {
            return;
        }
        layer.filter.contains_hashes_bitmap(hashes, more);
        found.iter_mut().zip(&*more).for_each(|(found, more)| *found |= more);
    }
}

/// Single operations.
impl<S: KeyHasher + Clone> ScalableBloom<S> {
    /// Inserts `key`; returns whether this call changed the filter.
    ///
    /// `Ok(true)` means that the key was in no layer before. `Ok(false)` means that the key was
    /// there, or is a false positive. If several threads race to insert a key that the filter does
    /// not hold, **at least** one of them gets `true`, and several may. [The module](self#claims)
    /// says how only one thread can act on a key.
    ///
    /// # Errors
    ///
    /// If the filter is full and cannot grow: a limit is reached, or memory was refused. The key is
    /// not in the filter then.
    ///
    /// # Memory ordering
    ///
    /// As of [`ConcurrentBloom::insert`]: setting a bit is a `Release`, and `false` ends in an
    /// `Acquire`.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// assert_eq!(filter.insert("a"), Ok(true));
    /// assert_eq!(filter.insert("a"), Ok(false));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> Result<bool, FullError> {
        self.insert_hash(self.hash(key))
    }

    /// [`insert`](Self::insert) by hash. All 64 bits must be evenly distributed: those of a good
    /// hash function, not an id as it is.
    ///
    /// # Errors
    ///
    /// As of [`insert`](Self::insert).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// assert_eq!(filter.insert_hash(0x9e37_79b9_7f4a_7c15), Ok(true));
    /// assert_eq!(filter.insert_hash(0x9e37_79b9_7f4a_7c15), Ok(false));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> Result<bool, FullError> {
        loop {
            let layers = self.layers_now();
            if (layers.len() > 1 || layers.phase != OPEN) && layers.contains(hash) {
                return Ok(false);
            }
            if layers.phase == OPEN {
                let Layer { filter, gauge } = layers.newest();
                let changed = filter.insert_hash(hash);
                if changed && gauge.is_due(hash) {
                    self.look(&layers, hash);
                }
                return Ok(changed);
            }
            self.make_room(&layers)
                .map_err(|kind| FullError { kind, inserted: 0 })?;
        }
    }
}

/// Lookups.
impl<S: KeyHasher> ScalableBloom<S> {
    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insertion happened before, also while a layer is added. A
    /// lookup never waits.
    ///
    /// # Memory ordering
    ///
    /// `true` ends in an `Acquire`: everything that the threads which set these bits had done
    /// before is visible.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert(&17u64)?;
    /// assert!(filter.contains(&17u64));
    /// assert!(!filter.contains(&18u64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15)?;
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.layers_now().contains(hash)
    }

    /// The hash by which this filter knows `key`, in all layers.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("a")?;
    /// assert!(filter.contains_hash(filter.hash("a")));
    /// assert_ne!(filter.hash("a"), filter.hash("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
    }

    /// Writes for every hash whether it may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Memory ordering
    ///
    /// As of the single calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_hashes(&["a", "b"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        self.contains_stretches(hashes, unpack_into(out));
    }

    /// [`contains_hashes`](Self::contains_hashes) into a bitmap: bit `i % 64` of `out[i / 64]` is
    /// the answer for hash `i`. The bits after the last hash are 0.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 hashes, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("a")?;
    /// let mut found = [0];
    /// filter.contains_hashes_bitmap(&["b", "a"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        let layers = self.layers_now();
        for (hashes, out) in hashes.chunks(STRETCH).zip(out.chunks_mut(STRETCH / 64)) {
            found_in(layers.iter(), hashes, out);
        }
    }

    /// Calls `each` with the position of every hash that is certainly not in the filter, in order.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("b")?;
    /// let mut absent = Vec::new();
    /// filter.for_each_absent_hash(&["a", "b", "c"].map(|key| filter.hash(key)), |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each_absent_hash(&self, hashes: &[u64], mut each: impl FnMut(usize)) {
        self.contains_stretches(hashes, |at, found| {
            for_each_absent(found, STRETCH.min(hashes.len() - at), |i| each(at + i));
        });
    }

    /// Writes the hash by which this filter knows each key to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hasher.hash_batch(keys, out);
    }

    /// [`contains_hashes`](Self::contains_hashes) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("a")?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        self.hash_stretches(keys, |at, hashes| {
            self.contains_hashes(hashes, &mut out[at..at + hashes.len()]);
            Ok(())
        })
        .expect("a lookup is never refused");
    }

    /// [`contains_hashes_bitmap`](Self::contains_hashes_bitmap) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 keys, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("a")?;
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["a", "b"], &mut found);
    /// assert_eq!(found, [0b01]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        self.hash_stretches(keys, |at, hashes| {
            self.contains_hashes_bitmap(hashes, &mut out[at / 64..][..hashes.len().div_ceil(64)]);
            Ok(())
        })
        .expect("a lookup is never refused");
    }

    /// [`for_each_absent_hash`](Self::for_each_absent_hash) of the keys' hashes.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("b")?;
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each_absent<K: Funnel>(&self, keys: &[K], mut each: impl FnMut(usize)) {
        self.hash_stretches(keys, |at, hashes| {
            self.for_each_absent_hash(hashes, |i| each(at + i));
            Ok(())
        })
        .expect("a lookup is never refused");
    }

    /// Looks hashes up; calls `each` with where a stretch of them begins and the bitmap of its
    /// answers.
    fn contains_stretches(&self, hashes: &[u64], mut each: impl FnMut(usize, &[u64])) {
        let layers = self.layers_now();
        // To clear the space for a whole stretch takes longer than to work on a few keys.
        if hashes.len() <= 64 {
            let mut bitmap = [0];
            let bitmap = &mut bitmap[..hashes.len().min(1)];
            found_in(layers.iter(), hashes, bitmap);
            return each(0, bitmap);
        }
        let mut bitmap = [0; STRETCH / 64];
        for (i, hashes) in hashes.chunks(STRETCH).enumerate() {
            let bitmap = &mut bitmap[..hashes.len().div_ceil(64)];
            found_in(layers.iter(), hashes, bitmap);
            each(i * STRETCH, bitmap);
        }
    }

    /// Hashes keys; calls `each` with where a stretch of them begins and its hashes, until it is
    /// refused.
    fn hash_stretches<K: Funnel>(
        &self,
        keys: &[K],
        each: impl FnMut(usize, &[u64]) -> Result<(), FullError>,
    ) -> Result<(), FullError> {
        // To clear the space for a whole stretch takes longer than to work on a few keys.
        if keys.len() <= 64 {
            self.hash_stretches_of::<64, K>(keys, each)
        } else {
            self.hash_stretches_of::<HASHED, K>(keys, each)
        }
    }

    fn hash_stretches_of<const N: usize, K: Funnel>(
        &self,
        keys: &[K],
        mut each: impl FnMut(usize, &[u64]) -> Result<(), FullError>,
    ) -> Result<(), FullError> {
        let mut hashes = [0; N];
        for (i, keys) in keys.chunks(N).enumerate() {
            let hashes = &mut hashes[..keys.len()];
            self.hasher.hash_batch(keys, hashes);
            each(i * N, hashes)?;
        }
        Ok(())
    }
}

/// Inserts in batches: the same answers as the single calls in order, many keys at a time in
/// vectors, with the lines fetched ahead.
impl<S: KeyHasher + Clone> ScalableBloom<S> {
    /// Inserts every hash; returns how many of them changed the filter.
    ///
    /// Results are those of [`insert_hash`](Self::insert_hash) in order, duplicates within the
    /// batch included. The filter grows meanwhile if need be.
    ///
    /// # Errors
    ///
    /// At the first hash that [`insert_hash`](Self::insert_hash) would refuse.
    /// [`taken`](FullError::inserted) says how many came before it, which are all in the filter; of it
    /// and those after it none was inserted.
    ///
    /// # Memory ordering
    ///
    /// As of the single calls.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes(&hashes), Ok(2));
    /// assert!(filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> Result<usize, FullError> {
        self.insert_all(hashes, None)
    }

    /// [`insert_hashes`](Self::insert_hashes) that also writes for every hash whether it changed
    /// the filter to the same place of `changed`: "seen for the first time", for a deduplicator. Of
    /// duplicates within the batch the first gets `true`.
    ///
    /// # Errors
    ///
    /// As of [`insert_hashes`](Self::insert_hashes). The places of the hashes that were not taken
    /// are `false` then.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// let mut first_seen = [false; 3];
    /// assert_eq!(filter.insert_hashes_flagged(&hashes, &mut first_seen), Ok(2));
    /// assert_eq!(first_seen, [true, true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[u64], changed: &mut [bool]) -> Result<usize, FullError> {
        assert_same_length(hashes.len(), changed.len());
        changed.fill(false);
        self.insert_all(hashes, Some(changed))
    }

    /// [`insert_hashes`](Self::insert_hashes) of the keys' hashes; returns how many changed the
    /// filter.
    ///
    /// # Errors
    ///
    /// As of [`insert_hashes`](Self::insert_hashes).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// assert_eq!(filter.insert_batch(&[1u64, 2, 1]), Ok(2));
    /// assert_eq!(filter.insert_batch(&["a", "b"]), Ok(2));
    /// assert!(filter.contains(&2u64) && filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> Result<usize, FullError> {
        self.insert_keys(keys, None)
    }

    /// [`insert_hashes_flagged`](Self::insert_hashes_flagged) of the keys' hashes.
    ///
    /// # Errors
    ///
    /// As of [`insert_hashes_flagged`](Self::insert_hashes_flagged).
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// let mut first_seen = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut first_seen), Ok(2));
    /// assert_eq!(first_seen, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], changed: &mut [bool]) -> Result<usize, FullError> {
        assert_same_length(keys.len(), changed.len());
        changed.fill(false);
        self.insert_keys(keys, Some(changed))
    }

    fn insert_keys<K: Funnel>(&self, keys: &[K], mut changed: Option<&mut [bool]>) -> Result<usize, FullError> {
        let mut new = 0;
        self.hash_stretches(keys, |at, hashes| {
            let changed = changed.as_deref_mut().map(|changed| &mut changed[at..][..hashes.len()]);
            let inserted = self.insert_all(hashes, changed).map_err(|mut error| {
                error.inserted += at;
                error
            });
            new += inserted?;
            Ok(())
        })?;
        Ok(new)
    }

    /// Inserts hashes; where flags are wanted, they are all `false` before.
    fn insert_all(&self, hashes: &[u64], changed: Option<&mut [bool]>) -> Result<usize, FullError> {
        // To clear the space for a whole stretch takes longer than to work on a few keys.
        if hashes.len() <= 64 {
            self.insert_parts::<64>(hashes, changed)
        } else {
            self.insert_parts::<HASHED>(hashes, changed)
        }
    }

    /// Inserts hashes, up to `N` of them into the layers of a moment; fewer where a layer would get
    /// too many before anyone looks at it.
    fn insert_parts<const N: usize>(
        &self,
        hashes: &[u64],
        mut changed: Option<&mut [bool]>,
    ) -> Result<usize, FullError> {
        let (mut taken, mut new) = (0, 0);
        // What is in no older layer, and whether it changed the newest.
        let (mut absent, mut first_seen) = ([0; N], [false; N]);
        while taken < hashes.len() {
            let layers = self.layers_now();
            if layers.phase != OPEN {
                taken += hashes[taken..]
                    .iter()
                    .take_while(|&&hash| layers.contains(hash))
                    .count();
                if taken < hashes.len() {
                    self.make_room(&layers)
                        .map_err(|kind| FullError { kind, inserted: taken })?;
                }
                continue;
            }
            let Layer { filter, gauge } = layers.newest();
            let part = &hashes[taken..];
            let part = &part[..part.len().min(gauge.stretch()).min(N)];

            let mut found = [0; HASHED / 64];
            let found = &mut found[..part.len().div_ceil(64)];
            let mut len = 0;
            found_in(layers.iter().rev().skip(1).rev(), part, found);
            for_each_absent(found, part.len(), |i| {
                absent[len] = part[i];
                len += 1;
            });
            let (absent, first_seen) = (&absent[..len], &mut first_seen[..len]);
            new += filter.insert_hashes_flagged(absent, first_seen);

            if let Some(changed) = &mut changed {
                let changed = &mut changed[taken..];
                let mut flags = first_seen.iter();
                for_each_absent(found, part.len(), |i| {
                    changed[i] = *flags.next().expect("one for each absent")
                });
            }
            taken += part.len();
            let mut inserted = absent.iter().zip(first_seen).filter(|(_, first_seen)| **first_seen);
            if let Some((&hash, _)) = inserted.find(|(hash, _)| gauge.is_due(**hash)) {
                self.look(&layers, hash);
            }
        }
        Ok(new)
    }
}

/// Growth.
impl<S> ScalableBloom<S> {
    /// A filter without layers, whose state says which there are to be; the first ones with these
    /// layouts.
    fn planned(asked: Asked, steps: Steps, layouts: &[Layout], hasher: S, state: State) -> Result<Self, BuildError> {
        Ok(Self {
            slots: slots(layouts, asked.layers(&steps))?,
            state: AtomicU64::new(state.0),
            claimed: AtomicU64::new(0),
            hasher,
            asked,
            steps,
            max_bytes: asked.max_bytes,
        })
    }

    /// The layout of the layer with this number, which is solved for once. None if it is beyond
    /// addressable memory, or by a rounding out of reach.
    fn layout(&self, number: usize) -> Option<Layout> {
        let slot = self.slots.get(number)?;
        match (slot.layout, slot.late.get()) {
            (Some(layout), _) => Some(layout),
            (None, Some(&solved)) => solved,
            (None, None) => {
                let solved = self.steps.layout(number).ok();
                // If there is no memory to keep it, it is solved for again.
                let _ = slot.late.set(solved);
                solved
            }
        }
    }

    /// The layout of the layer with this number, or why there cannot be one.
    fn room(&self, number: usize) -> Result<Layout, FullErrorKind> {
        let layout = self.layout(number).ok_or(FullErrorKind::Layers { limit: number })?;
        if self.max_bytes == usize::MAX {
            return Ok(layout);
        }
        let layouts = (0..=number).filter_map(|number| self.layout(number));
        let needed = layouts.fold(0usize, |sum, layout| sum.saturating_add(layout.blocks * LINE_BYTES));
        let limit = self.max_bytes;
        if needed > limit {
            return Err(FullErrorKind::Bytes { needed, limit });
        }
        Ok(layout)
    }

    #[inline(always)]
    fn layers_now(&self) -> Layers<'_, S> {
        let state = State(self.state.load(Ordering::Acquire));
        Layers {
            slots: &self.slots[..state.layers()],
            phase: state.phase(),
        }
    }

    /// Sets the state, unless the filter has more than `layers` layers by now.
    fn change(&self, layers: usize, new: State) {
        let mut state = State::new(layers, OPEN);
        while state.layers() == layers {
            match self
                .state
                .compare_exchange(state.0, new.0, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(other) => state = State(other),
            }
        }
    }

    /// Makes `layer` the one with this number, unless there is one.
    fn put(&self, number: usize, layer: Layer<S>) -> Result<(), BuildError> {
        let put = self.slots[number].layer.set(layer);
        put.ok_or(out_of_memory(size_of::<Layer<S>>()))
    }
}

impl<S: KeyHasher + Clone> ScalableBloom<S> {
    fn empty_layer(&self, number: usize, layout: Layout) -> Result<Layer<S>, BuildError> {
        let filter = ConcurrentBloom::with_layout(layout, self.steps.capacity(number), self.hasher.clone())?;
        Ok(self.steps.gauged(number, filter))
    }

    /// Looks how full the newest of `layers` is, and does what is due. To be called by one in so
    /// many inserts, of this hash.
    #[cold]
    #[inline(never)]
    fn look(&self, layers: &Layers<'_, S>, hash: u64) {
        let Layer { filter, gauge } = layers.newest();
        let level = gauge.level(filter, hash);
        let next = layers.len();
        if level >= 1.0 {
            // Made by several at once if need be: nobody waits for the one who began it ahead of
            // need and was interrupted.
            let _ = self.grow(next); // The inserts that come next are told if it failed.
        } else if level >= AHEAD && self.claim(next) && self.make(next).is_err() {
            self.unclaim();
        }
    }

    /// Whether it is this thread that makes the layer with this number ahead of need: if nobody
    /// else does, and it is not there.
    fn claim(&self, number: usize) -> bool {
        let missing = |slot: &Slot<S>| slot.layer.get().is_none();
        // Relaxed: it orders nothing, and only saves work.
        self.slots.get(number).is_some_and(missing)
            && self.claimed.swap(number as u64, Ordering::Relaxed) != number as u64
    }

    fn unclaim(&self) {
        self.claimed.store(0, Ordering::Relaxed);
    }

    /// Goes on to the layer with this number, now that the one before it is full; or takes no more
    /// keys.
    fn grow(&self, number: usize) -> Result<(), FullErrorKind> {
        let made = self.make(number);
        let new = match &made {
            Ok(()) => State::new(number + 1, OPEN),
            Err(FullErrorKind::OutOfMemory) => State::new(number, STARVED),
            Err(_) => State::new(number, FULL),
        };
        self.change(number, new);
        made
    }

    /// Makes the layer with this number, unless it is there.
    fn make(&self, number: usize) -> Result<(), FullErrorKind> {
        if self.slots.get(number).is_some_and(|slot| slot.layer.get().is_some()) {
            return Ok(());
        }
        let layout = self.room(number)?;
        let made = self
            .empty_layer(number, layout)
            .and_then(|layer| self.put(number, layer));
        made.map_err(|_| FullErrorKind::OutOfMemory)
    }

    /// Goes on to the next layer, if that is possible now.
    #[cold]
    #[inline(never)]
    fn make_room(&self, layers: &Layers<'_, S>) -> Result<(), FullErrorKind> {
        let next = layers.len();
        if layers.phase == FULL {
            self.room(next)?;
        }
        // One at a time tries again.
        let missing = self.slots[next].layer.get().is_none();
        if missing && !self.claim(next) {
            return Err(FullErrorKind::OutOfMemory);
        }
        self.grow(next).inspect_err(|_| self.unclaim())
    }
}

/// The whole filter.
impl<S: KeyHasher + Clone> ScalableBloom<S> {
    /// Adds every key of `other` to this filter, layer by layer; returns whether that changed it.
    /// Both may be in use meanwhile.
    ///
    /// This filter gets as many layers as the other one has. Everything that was inserted into
    /// `other` before is in this filter afterwards. An insert into `other` at the same time may be.
    ///
    /// **The rate**: two united layers hold the keys of both. If both filters have much the same
    /// keys, as replicas do, the compound rate holds. If not, a layer can end up with twice its
    /// keys and, from 1%, about ten times its rate.
    /// [`current_false_positive_rate`](Self::current_false_positive_rate) tells.
    ///
    /// # Errors
    ///
    /// Fails if the filters grow in different ways (another initial capacity, rate, ratio,
    /// expansion, limit of layers or words per key) or the hasher differs; nothing is changed then.
    /// Fails if there is no room for as many layers; no key was added then.
    ///
    /// # Memory ordering
    ///
    /// As of [`ConcurrentBloom::union_from`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let builder = ScalableBloom::builder().initial_capacity(100);
    /// let (all, part) = (builder.clone().build()?, builder.build()?);
    /// part.insert_batch(&Vec::from_iter(0..1000u32))?;
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert_eq!(all.union_from(&part), Ok(false));
    /// assert!((0..1000u32).all(|key| all.contains(&key)));
    /// assert_eq!(all.layers().len(), part.layers().len());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        if self.steps != other.steps {
            return Err(IncompatibleError::differs("growth", other.steps, self.steps));
        }
        let theirs = other.layers_now();
        // The hashers. (The layouts follow from the steps.)
        for (ours, theirs) in self.layers_now().iter().zip(theirs.iter()).take(1) {
            ours.filter.check_compatible(&theirs.filter)?;
        }
        let layers = theirs.len();
        for number in self.layers_now().len()..layers {
            self.make(number).map_err(|kind| {
                IncompatibleError(format!(
                    "there is no room for the other filter's {layers} layers here: {kind}"
                ))
            })?;
            self.change(number, State::new(number + 1, OPEN));
        }
        let mut changed = false;
        for (ours, theirs) in self.layers_now().iter().zip(theirs.iter()) {
            changed |= ours.filter.union_from(&theirs.filter)?;
        }
        Ok(changed)
    }

    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("a")?;
    /// assert!(filter.try_clone()? == filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let layers = self.layers_now();
        let layouts: Vec<Layout> = self.slots.iter().map_while(|slot| slot.layout).collect();
        let copy = Self {
            slots: slots(&layouts, self.slots.len())?,
            state: AtomicU64::new(State::new(layers.len(), layers.phase).0),
            claimed: AtomicU64::new(0),
            hasher: self.hasher.clone(),
            ..*self
        };
        for (number, Layer { filter, gauge }) in layers.iter().enumerate() {
            let filter = filter.try_clone()?;
            copy.put(number, Layer { filter, gauge: *gauge })?;
        }
        Ok(copy)
    }
}

impl<S> ScalableBloom<S> {
    /// Removes all keys, and all layers but the first. It takes `&mut self` because beside inserts
    /// nobody could say which keys survive.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let mut filter = ScalableBloom::builder().initial_capacity(100).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..1000u32))?;
    /// filter.clear();
    /// assert_eq!((filter.layers().len(), filter.estimated_len()), (1, 0));
    /// assert!(!filter.contains(&1u32));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self)
    where
        S: KeyHasher,
    {
        let (first, others) = self.slots.split_first_mut().expect("there is always a layer");
        others.iter_mut().for_each(|slot| slot.layer.take());
        first.layer.get_mut().expect("there is always a layer").filter.clear();
        self.state = AtomicU64::new(State::new(1, OPEN).0);
        self.claimed = AtomicU64::new(0);
    }
}

/// What the filter is, and how full. Figures from the bits read all layers: beside inserts, each
/// word as it was at some moment meanwhile.
impl<S> ScalableBloom<S> {
    /// The layers that are in use, the oldest first.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).expansion(3).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..500u32))?;
    /// let keys: Vec<usize> = filter.layers().map(|layer| layer.expected_keys()).collect();
    /// assert_eq!(keys, [100, 300, 900]);
    /// assert!(filter.layers().rev().next().unwrap().estimated_len() < 300);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = &ConcurrentBloom<S>> + ExactSizeIterator {
        self.layers_now().iter().map(|layer| &layer.filter)
    }

    /// The most layers that the filter can have.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// assert!((20..=40).contains(&ScalableBloom::builder().build()?.max_layers()));
    /// assert_eq!(ScalableBloom::builder().max_layers(3).build()?.max_layers(), 3);
    /// // With one word per key low rates are out of reach.
    /// assert!(ScalableBloom::builder().words_per_key(1).build()?.max_layers() < 12);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn max_layers(&self) -> usize {
        if self.max_bytes == usize::MAX {
            return self.slots.len();
        }
        (0..).take_while(|&layer| self.room(layer).is_ok()).count()
    }

    /// The most memory that the bits of all layers may take together, in bytes: [the
    /// builder's](Builder::max_bytes), or the limit of [`read_from`](Self::read_from) where that is
    /// less. `usize::MAX` if there is no limit.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).build()?;
    /// assert_eq!(filter.max_bytes(), usize::MAX);
    /// let same = ScalableBloom::read_from(&filter.to_bytes()[..], 10_000)?;
    /// assert_eq!(same.max_bytes(), 10_000);
    /// assert!(same.insert_batch(&Vec::from_iter(0..100_000u32)).is_err());
    /// assert!(same.memory_bytes() <= 10_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    /// The number of keys that the layers in use are for.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).build()?;
    /// filter.insert_batch(&Vec::from_iter(0..200u32))?;
    /// assert_eq!(filter.capacity(), 100 + 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn capacity(&self) -> usize {
        let capacities = self.layers().map(ConcurrentBloom::expected_keys);
        capacities.fold(0, usize::saturating_add)
    }

    /// Whether the filter takes no more keys: its newest layer is full, and there can be no other,
    /// or its memory was refused.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).non_scaling().build()?;
    /// assert!(!filter.is_full());
    /// assert!(filter.insert_batch(&Vec::from_iter(0..200u32)).is_err());
    /// assert!(filter.is_full());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.layers_now().phase != OPEN
    }

    /// The false-positive rate that was asked for: over all layers, however many.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// assert_eq!(ScalableBloom::builder().false_positive_rate(1e-4).build()?.false_positive_rate(), 1e-4);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.asked.rate
    }

    /// The false-positive rate of the filter as it is: the chance, given its bits, that a random
    /// hash is taken for present by any layer.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(1000).build()?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.insert_batch(&Vec::from_iter(0..100_000u32))?;
    /// assert!((0.005..0.01).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        let missed = self.layers().map(|layer| 1.0 - layer.current_false_positive_rate());
        1.0 - missed.product::<f64>()
    }

    /// An estimate of the number of distinct keys inserted: the sum of the layers'.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert_batch(&Vec::from_iter(0..50_000u32))?;
    /// assert!(filter.estimated_len().abs_diff(50_000) < 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        self.layers().map(ConcurrentBloom::estimated_len).sum()
    }

    /// The fraction of the bits of all layers that are set.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// assert_eq!(filter.fill_ratio(), 0.0);
    /// filter.insert_batch(&Vec::from_iter(0..900u32))?;
    /// assert!((0.3..0.5).contains(&filter.fill_ratio()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        let ones = |layer: &ConcurrentBloom<S>| layer.fill_ratio() * layer.memory_bytes() as f64;
        self.layers().map(ones).sum::<f64>() / self.memory_bytes() as f64
    }

    /// Bytes of memory that the bits of the layers in use take.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(1000).build()?;
    /// let first = filter.memory_bytes();
    /// filter.insert_batch(&Vec::from_iter(0..2000u32))?;
    /// assert!(filter.memory_bytes() > 3 * first);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.layers().map(ConcurrentBloom::memory_bytes).sum()
    }

    /// The hasher.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// assert_eq!(ScalableBloom::builder().seed(7).build()?.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }
}

/// A copy that holds at least every key whose insertion happened before. Aborts if the allocation
/// fails; [`try_clone`](ScalableBloom::try_clone) does not.
impl<S: KeyHasher + Clone> Clone for ScalableBloom<S> {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|_| {
            let layout = core::alloc::Layout::array::<u8>(self.memory_bytes());
            alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
        })
    }
}

/// The same steps of growth, the same hasher and the same layers. Beside inserts, each word is
/// compared as it was at some moment meanwhile.
impl<S: KeyHasher> PartialEq for ScalableBloom<S> {
    fn eq(&self, other: &Self) -> bool {
        self.steps == other.steps && self.layers().eq(other.layers())
    }
}

/// A summary; it reads all layers for the fill.
impl<S: fmt::Debug> fmt::Debug for ScalableBloom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScalableBloom")
            .field("layers", &self.layers().len())
            .field("max_layers", &self.max_layers())
            .field("capacity", &self.capacity())
            .field("memory_bytes", &self.memory_bytes())
            .field("false_positive_rate", &self.asked.rate)
            .field("hasher", &self.hasher)
            .field("fill_ratio", &self.fill_ratio())
            .finish_non_exhaustive()
    }
}

/// Inserts the keys in batches. For `&ScalableBloom` too, so that a shared filter can be extended.
///
/// # Panics
///
/// If the filter becomes [full](FullError), which one without limits only does where memory is
/// refused. `insert_batch` says so instead.
///
/// # Examples
///
/// ```
/// use lanebloom::ScalableBloom;
///
/// let mut filter = ScalableBloom::builder().build()?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10_000u32);
/// assert!(filter.contains("b") && filter.contains(&9999u32) && !filter.contains(&10_000u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Funnel, S: KeyHasher + Clone> Extend<K> for ScalableBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        (&*self).extend(keys);
    }
}

impl<K: Funnel, S: KeyHasher + Clone> Extend<K> for &ScalableBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        gathered::<HASHED, _>(keys.into_iter().map(|key| self.hash(&key)), |hashes| {
            if let Err(error) = self.insert_hashes(hashes) {
                panic!("keys are left over: {error}");
            }
        });
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// Who has seen a layer full that others have left since changes nothing.
    #[test]
    fn a_late_look_takes_no_layer_back() {
        let filter = ScalableBloom::builder().max_layers(4).build().unwrap();
        (1..3).try_for_each(|layer| filter.grow(layer)).unwrap();
        assert_eq!(filter.layers().len(), 3);
        filter.change(1, State::new(2, OPEN));
        filter.change(2, State::new(2, FULL));
        assert_eq!(filter.grow(1), Ok(()));
        assert!(filter.layers().len() == 3 && !filter.is_full());
    }

    /// A layer that no allocator grants: inserts say so, each tries again, and the first that
    /// succeeds goes on.
    #[test]
    fn memory_that_is_refused_is_asked_for_again() {
        let mut filter = ScalableBloom::builder().initial_capacity(1).build().unwrap();
        filter.slots[1].layout.as_mut().unwrap().blocks = 1 << 50;
        assert_eq!(filter.insert("a"), Ok(true));
        for _ in 0..2 {
            let error = filter.insert("b").unwrap_err();
            assert!(error.is_out_of_memory() && filter.is_full());
            assert_eq!(
                error.to_string(),
                "the filter is full: the allocation of the next layer failed"
            );
        }
        assert_eq!(filter.insert("a"), Ok(false));
        filter.slots[1].layout.as_mut().unwrap().blocks = 1;
        assert_eq!(filter.insert("b"), Ok(true));
        assert!(!filter.is_full() && filter.layers().len() == 2);
    }
}
