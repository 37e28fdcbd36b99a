//! A filter that does not change: a binary fuse filter. [`StaticFilter`] is built from all of its
//! keys at once. Then it takes three quarters of the memory of a
//! [`ConcurrentBloom`](crate::ConcurrentBloom) at 1%, and two thirds at 1e-6.
//!
//! A key has three cells, and its fingerprint is their xor. A lookup reads them at once: none waits
//! for another. **There is no insert.** To add a key, build the filter anew from all keys. If that
//! happens often, use another filter.
//!
//! # Example
//!
//! ```
//! let names = ["ads.example", "spy.example"];
//! let blocked = lanebloom::StaticFilter::from_keys(names, 1e-4)?;
//! assert!(blocked.contains("ads.example"));
//! assert!(!blocked.contains("docs.example"));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! # Lists
//!
//! A name and all domains above it, in one batch:
//!
//! ```
//! use lanebloom::StaticFilter;
//!
//! let blocked = StaticFilter::builder().fingerprint_bits(16);
//! let blocked = blocked.build_from_keys(["ads.example", "spy.test"])?;
//! let is_blocked = |name: &str| {
//!     let dots = name.match_indices('.').map(|(dot, _)| &name[dot + 1..]);
//!     let suffixes: Vec<&str> = std::iter::once(name).chain(dots).collect();
//!     let mut found = Vec::new();
//!     blocked.contains_batch(&suffixes, &mut found);
//!     found.contains(&true)
//! };
//! assert!(is_blocked("x.y.ads.example") && is_blocked("spy.test"));
//! assert!(!is_blocked("docs.example") && !is_blocked("test"));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! Digests are hashes already, by their first 64 bits ([`Prehashed`](crate::Prehashed)):
//!
//! ```
//! use lanebloom::{Hashed, Prehashed, StaticFilter};
//!
//! let sha1 = "5BAA61E4C9B93F3F0682250B6CF8331B7EE68FD8\n\
//!             7C4A8D09CA3762AF61E59520943DC26494F8941B\n";
//! let hash = |digest: &str| u64::from_str_radix(&digest[..16], 16);
//! let hashes: Vec<u64> = sha1.lines().map(hash).collect::<Result<_, _>>()?;
//! let builder = StaticFilter::builder().hasher(Prehashed).fingerprint_bits(32);
//! let leaked = builder.build_from_batch(Hashed::slice(&hashes))?;
//! assert!(leaked.contains(&Hashed(hash("5baa61e4c9b93f3f")?)));
//! assert!(!leaked.contains(&Hashed(hash("0123456789abcdef")?)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Size
//!
//! A fingerprint has 7 to 32 bits. Each bit halves the false-positive rate: 8 bits are 0.39%, 16
//! are 0.0015%, 32 are 2.3e-10. The builder takes the shortest fingerprint for the given rate.
//!
//! | distinct keys | bits per key for each bit of a fingerprint | with [four cells per key](Builder::cells_per_key) |
//! |---|--:|--:|
//! | ten thousand | 1.28 | 1.23 |
//! | a million and more | 1.13 | 1.08 |
//!
//! Hashes have 64 bits, so `n` keys are not told apart from others at a rate below `n / 2^64`.
//!
//! # Build
//!
//! Duplicate keys are allowed. They cost time: a build with them fails first, and sorts a copy of
//! the hashes.
//!
//! Each million of keys is a filter of its own, a shard: it stays in the caches while it is built.
//! Beside the hashes (8 bytes per key) and the filter, a build by up to two threads takes at most
//! 12 bytes per key: 11 MB for each thread, and beyond six million keys a copy of the hashes,
//! sorted by shard. (Duplicates count as keys, for the filter too: the build finds them when it has
//! failed.) With the feature `rayon` all threads of the pool build shards
//! (`build_from_par_iter`, `par_build_from_batch`).
//!
//! A build of a shard can fail by chance, and then tries another seed, at most 64:
//! [`retries`](StaticFilter::retries) counts them. If all fail, the hashes are not random, and the
//! build returns an error. (Strangers who choose the keys can cause that, unless the hasher has a
//! secret key: see [`hash`](crate::hash).)
//!
//! # Cost
//!
//! ns per key on one thread of a Zen 4 with AVX-512; pre-hashed keys, fingerprints of 8 bits, three
//! cells per key (record `static-zen4.md`):
//!
//! | keys | filter | build | `contains` | batches of 1,024 keys |
//! |--:|--:|--:|--:|--:|
//! | 10 thousand | 13 KiB | 20 | 2.6 | 1.9 |
//! | 460 thousand | 0.5 MiB | 27 | 3.3 | 2.8 |
//! | a million | 1.1 MiB | 32 | 4.8 | 3.5 |
//! | 59 million | 63 MiB | 51 | 33 | 12 |
//!
//! # Consistency
//!
//! Nothing changes a filter, so threads share it freely. The same set of keys, in any order and by
//! any number of threads, makes the same filter, bit for bit.

mod build;
mod table;
mod view;

pub use table::Fuse;
#[doc(hidden)]
pub use table::{FuseBytes, OwnCells, SnapshotCells};
pub use view::{StaticBytes, StaticView};

use crate::codec::{Snapshot, load, murmur3};
use crate::error::{BuildError, SnapshotError};
use crate::filter::Frozen;
use crate::geometry::fuse::{CELLS_PER_KEY, FINGERPRINT_BITS};
use crate::geometry::rates;
use crate::hash::{FilterHasher, Murmur3};
use crate::kernel::Isa;
use crate::key::Key;
use alloc::format;
use alloc::vec::Vec;
use build::Shape;

/// A filter that does not change, built from all of its keys at once: a binary fuse filter.
///
/// `S` hashes the keys; it is [`Murmur3`] by default. [`Frozen`] has the lookups. [The
/// module](self) says what a build takes.
///
/// ```
/// use lanebloom::StaticFilter;
///
/// let even = (0..1_000_000u32).map(|i| 2 * i);
/// let filter = StaticFilter::from_keys(even, 1.0 / 256.0)?;
/// assert!((0..1_000_000u32).all(|i| filter.contains(&(2 * i))));
/// assert!(filter.statistics().bits_per_key < 9.1);
///
/// let mut found = [false; 3];
/// filter.contains_batch(&[4u32, 6, 7], &mut found);
/// assert_eq!(found, [true, true, false]);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type StaticFilter<S = Murmur3> = Frozen<Static, S>;

/// The engine of [`StaticFilter`]: fingerprints in cells.
pub type Static = Fuse<OwnCells>;

/// Snapshots. [`codec::from_bytes`](crate::codec::from_bytes()) and
/// [`codec::read_from`](crate::codec::read_from) read those of any hasher.
///
/// ```
/// use lanebloom::{SipHash13, StaticFilter, codec};
///
/// let builder = StaticFilter::builder().hasher(SipHash13::random());
/// let filter = builder.build_from_keys(["a"])?;
/// let (bytes, hasher) = (filter.snapshot().to_vec(), *filter.hasher());
/// let read = |hasher| codec::from_bytes::<StaticFilter<_>>(&bytes, hasher);
/// assert!(read(hasher)?.0.contains("a"));
/// assert!(read(SipHash13::random()).unwrap_err().is_incompatible());
/// let same: StaticFilter<_> = codec::read_from(&bytes[..], 1 << 20, hasher)?;
/// assert!(same.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: FilterHasher> StaticFilter<S> {
    /// The content, to be written as bytes: to a vector, a writer, a file
    /// ([`save`](Snapshot::save)).
    #[inline]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_, Self> {
        Snapshot(self)
    }
}

/// Snapshots whose hasher is [`Murmur3`]. [`Filter`](crate::Filter::from_bytes) documents each
/// method.
///
/// ```
/// use lanebloom::StaticFilter;
///
/// let bytes = StaticFilter::from_keys(["a"], 1e-4)?.snapshot().to_vec();
/// assert!(StaticFilter::from_bytes(&bytes)?.0.contains("a"));
/// assert!(StaticFilter::from_bytes(&bytes[..150]).unwrap_err().is_truncated());
/// let read = |most| StaticFilter::read_from(&bytes[..], most);
/// assert!(read(1 << 20)?.contains("a") && read(10).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl StaticFilter {
    /// The filter with which `bytes` begin, and the bytes after it.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        load(bytes, murmur3)
    }

    /// Reads a filter that takes at most `max_bytes` of memory. The bytes after it stay unread.
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::load_from(reader, max_bytes, murmur3)
    }
}

/// Making a filter.
///
/// ```
/// use lanebloom::StaticFilter;
///
/// let filter = StaticFilter::from_keys(["a", "c", "a"], 1e-3)?;
/// assert!(filter.contains("a") && filter.contains("c") && !filter.contains("b"));
/// assert_eq!(filter.expected_keys(), 2);
/// let builder = StaticFilter::builder().fingerprint_bits(16);
/// assert!(builder.build_from_keys(["a"])?.contains("a"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl StaticFilter {
    /// A filter that holds `keys`, with at most this false-positive rate and the builder's
    /// defaults. Fails as [`build_from_keys`](Builder::build_from_keys).
    #[doc(alias("collect", "from_iter"))]
    pub fn from_keys<K: Key<Murmur3>>(
        keys: impl IntoIterator<Item = K>,
        false_positive_rate: f64,
    ) -> Result<Self, BuildError> {
        Self::builder()
            .false_positive_rate(false_positive_rate)
            .build_from_keys(keys)
    }

    /// A builder, for all options.
    #[inline]
    pub fn builder() -> Builder {
        Builder {
            rate: None,
            bits: None,
            cells_per_key: *CELLS_PER_KEY.start() as usize,
            hasher: Murmur3::default(),
        }
    }
}

/// The result of a build.
///
/// ```
/// let builder = lanebloom::StaticFilter::builder().cells_per_key(4);
/// let builder = builder.false_positive_rate(1e-3);
/// let filter = builder.clone().build_from_keys(0..100_000u32)?;
/// assert_eq!((filter.fingerprint_bits(), filter.cells_per_key()), (10, 4));
/// // Some builds of a hundred try another seed.
/// let build = |i: u32| builder.clone().build_from_keys(i..i + 100);
/// let filters = (0..100).map(build).collect::<Result<Vec<_>, _>>()?;
/// let others = filters.iter().filter(|filter| filter.retries() > 0);
/// assert!((1..50).contains(&others.count()));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<B: FuseBytes, S> Frozen<Fuse<B>, S> {
    /// The length of a fingerprint in bits: 7 to 32.
    #[must_use]
    pub fn fingerprint_bits(&self) -> usize {
        self.0.engine.layout.bits as usize
    }

    /// The cells that a key has: 3 or 4.
    #[must_use]
    pub fn cells_per_key(&self) -> usize {
        self.0.engine.layout.cells_per_key as usize
    }

    /// How often the build tried one more seed for a part of the keys. About one part in a hundred
    /// takes a second one; of small filters one in ten.
    #[must_use]
    pub fn retries(&self) -> usize {
        self.0.engine.retries()
    }
}

/// Builds a [`StaticFilter`]; made by [`StaticFilter::builder`].
///
/// ```
/// use lanebloom::{FastHash, StaticFilter};
///
/// let builder = StaticFilter::builder().hasher(FastHash::default());
/// let small = builder.clone().false_positive_rate(1e-6);
/// let filter = small.build_from_keys(0..1000u32)?;
/// assert!(filter.contains(&999u32) && !filter.contains(&1000u32));
/// assert_eq!(filter.fingerprint_bits(), 20);
/// assert!((9e-7..1e-6).contains(&filter.false_positive_rate()));
///
/// let builder = builder.fingerprint_bits(8);
/// let three = builder.clone().build_from_keys(0..100_000u32)?;
/// assert!((0.0038..0.00391).contains(&three.false_positive_rate()));
/// let four = builder.cells_per_key(4).build_from_keys(0..100_000u32)?;
/// assert!(four.memory_bytes() < three.memory_bytes());
///
/// let seeded = StaticFilter::builder().seed(7).build_from_keys(["a"])?;
/// assert_eq!(seeded.hasher().seed(), 7);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[must_use = "a builder does nothing until it gets keys"]
#[derive(Clone, Debug)]
pub struct Builder<S = Murmur3> {
    rate: Option<f64>,
    bits: Option<usize>,
    cells_per_key: usize,
    hasher: S,
}

impl Builder {
    /// Seeds [`Murmur3`]; 0 by default.
    pub fn seed(mut self, seed: u32) -> Self {
        self.hasher = Murmur3::with_seed(seed);
        self
    }
}

impl<S> Builder<S> {
    /// The chance that the filter reports a key that it does not hold, at most: 1% by default. The
    /// shortest fingerprints for it are taken.
    #[doc(alias = "fpp")]
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// The length of a fingerprint in bits, 7 to 32, in place of a rate. 8, 16 and 32 bits are
    /// looked up fastest.
    pub fn fingerprint_bits(mut self, bits: usize) -> Self {
        self.bits = Some(bits);
        self
    }

    /// The cells of a key: 3 by default, or 4. With 4, a filter takes 4% less memory. A lookup
    /// touches one more line, and a build takes longer.
    pub fn cells_per_key(mut self, cells: usize) -> Self {
        self.cells_per_key = cells;
        self
    }

    /// Another hasher, as that of [any builder](crate::Builder::hasher).
    pub fn hasher<T: FilterHasher>(self, hasher: T) -> Builder<T> {
        Builder {
            rate: self.rate,
            bits: self.bits,
            cells_per_key: self.cells_per_key,
            hasher,
        }
    }

    fn build(self, hashes: &[u64], parallel: bool) -> Result<StaticFilter<S>, BuildError> {
        Ok(Frozen::of(build::build(hashes, self.shape(parallel)?)?, self.hasher))
    }

    fn shape(&self, parallel: bool) -> Result<Shape, BuildError> {
        let within = |what: &str, value: usize, range: core::ops::RangeInclusive<u32>| {
            let narrow = u32::try_from(value).ok().filter(|value| range.contains(value));
            narrow.ok_or_else(|| {
                let (least, most) = range.into_inner();
                BuildError::new(format!("{value} {what} is not in {least} to {most}"))
            })
        };
        let bits = match (self.bits, self.rate) {
            (Some(_), Some(_)) => return Err(BuildError::new("both a rate and the bits of a fingerprint are given")),
            (Some(bits), None) => within("bits of a fingerprint", bits, FINGERPRINT_BITS)?,
            (None, rate) => bits_for(rate.unwrap_or(0.01))?,
        };
        Ok(Shape {
            bits,
            cells_per_key: within("cells per key", self.cells_per_key, CELLS_PER_KEY)?,
            parallel,
        })
    }
}

/// The shortest fingerprint for a rate.
fn bits_for(rate: f64) -> Result<u32, BuildError> {
    BuildError::check_rate(rate)?;
    let mut all = FINGERPRINT_BITS;
    all.find(|&bits| rates::fits_fingerprint(rate, bits)).ok_or_else(|| {
        let most = FINGERPRINT_BITS.end();
        BuildError::new(format!(
            "a false-positive rate of {rate:e} takes fingerprints of more than {most} bits"
        ))
    })
}

impl<S> Builder<S> {
    /// The filter of these keys, of which some may be equal. Keeps the hash of each, 8 bytes, until
    /// it is built; [`build_from_batch`](Self::build_from_batch) reads hashes where they lie.
    ///
    /// # Errors
    ///
    /// Fails if the rate is not between 0 and 1 or below 2^-32, an option is out of range, the
    /// hashes are not random (64 seeds fail, or some parts of their range have more of them than
    /// others), or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// let builder = lanebloom::StaticFilter::builder().false_positive_rate(1e-4);
    /// let filter = builder.clone().build_from_keys("to be or not to be".split(' '))?;
    /// assert!(filter.contains("not") && !filter.contains("now"));
    /// assert_eq!(filter.statistics().len, 4);
    ///
    /// let error = builder.cells_per_key(5).build_from_keys(["a"]).unwrap_err();
    /// assert_eq!(error.to_string(), "5 cells per key is not in 3 to 4");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn build_from_keys<K: Key<S>>(self, keys: impl IntoIterator<Item = K>) -> Result<StaticFilter<S>, BuildError> {
        let keys = keys.into_iter();
        let mut hashes = Vec::new();
        let refused = |len: usize| move |_| BuildError::out_of_memory(len.saturating_mul(8));
        let least = keys.size_hint().0;
        hashes.try_reserve_exact(least).map_err(refused(least))?;
        for key in keys {
            // More than the iterator announced.
            hashes.try_reserve(1).map_err(refused(hashes.len() + 1))?;
            hashes.push(key.hash_by(&self.hasher));
        }
        self.build(&hashes, false)
    }

    /// [`build_from_keys`](Self::build_from_keys) of a slice. Hashes are not copied: [lists of
    /// digests](self#lists) are an example.
    pub fn build_from_batch<K: Key<S>>(self, keys: &[K]) -> Result<StaticFilter<S>, BuildError> {
        match K::hashes(keys) {
            Some(hashes) => self.build(hashes, false),
            None => {
                let mut hashes = Vec::new();
                let refused = |_| BuildError::out_of_memory(keys.len().saturating_mul(8));
                hashes.try_reserve_exact(keys.len()).map_err(refused)?;
                hashes.resize(keys.len(), 0);
                K::hash_each(keys, &self.hasher, Isa::best(), &mut hashes);
                self.build(&hashes, false)
            }
        }
    }
}

#[cfg(feature = "rayon")]
mod parallel {
    use super::{BuildError, Builder, Key, StaticFilter, Vec};
    use rayon::prelude::*;

    /// On the threads of rayon's pool (feature `rayon`). The filter is the same, bit for bit.
    ///
    /// ```
    /// use lanebloom::StaticFilter;
    /// use rayon::prelude::*;
    ///
    /// let squares: Vec<u64> = (0..10_000).map(|key| key * key).collect();
    /// let builder = StaticFilter::builder();
    /// let one = builder.clone().build_from_batch(&squares)?.snapshot().to_vec();
    /// let same = builder.clone().par_build_from_batch(&squares)?;
    /// assert!(same.snapshot().to_vec() == one);
    /// let same = builder.build_from_par_iter(squares.into_par_iter())?;
    /// assert!(same.snapshot().to_vec() == one);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    impl<S: Sync> Builder<S> {
        /// [`build_from_batch`](Self::build_from_batch) in parallel: all threads hash keys, and a
        /// thread builds a million keys at a time.
        pub fn par_build_from_batch<K: Key<S> + Sync>(self, keys: &[K]) -> Result<StaticFilter<S>, BuildError> {
            match K::hashes(keys) {
                Some(hashes) => self.build(hashes, true),
                None => {
                    let hashes: Vec<u64> = keys.par_iter().map(|key| key.hash_by(&self.hasher)).collect();
                    self.build(&hashes, true)
                }
            }
        }

        /// [`build_from_keys`](Self::build_from_keys) in parallel: all threads hash keys and build.
        /// The process aborts if memory for the hashes is refused.
        pub fn build_from_par_iter<I>(self, keys: I) -> Result<StaticFilter<S>, BuildError>
        where
            I: IntoParallelIterator<Item: Key<S>>,
        {
            let hash = |key: I::Item| key.hash_by(&self.hasher);
            let hashes: Vec<u64> = keys.into_par_iter().map(hash).collect();
            self.build(&hashes, true)
        }
    }
}
