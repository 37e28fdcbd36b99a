//! The `BloomFilter`s of Guava and of Spark: flat bits in longs of Java, by double hashing. Spark's
//! code began as a copy of Guava's, so one type, [`JavaBloom`], is both. `guava.rs` and `spark.rs`
//! hold what differs, as a [`FormatImpl`]: hash, indexes, sizes, header.

/// Work with the indexes that `$index` makes of a hash, wide or narrow, for a format `F`.
macro_rules! with_indexes {
    ($format:expr, |$index:ident| $work:expr) => {
        if $format.is_wide() {
            let $index = |hash: &F::Hash| F::Wide::from(*hash);
            $work
        } else {
            let $index = |hash: &F::Hash| F::narrow(*hash);
            $work
        }
    };
}

mod batch;
mod builder;
pub(crate) mod formulas;
pub(crate) mod header;
pub(crate) mod indexes;
#[cfg(feature = "serde")]
mod serde;
mod sets;
mod statistics;
mod stream;

pub use batch::JavaExclusive;
pub use sets::JavaPair;

use crate::error::ReadError;
use crate::flat::{Flat, NextIndex};
use core::fmt;
use formulas::Shape;
use header::{Header, TakeBytes};
use indexes::IntIndexes;
use lanebloom::BuildError;
use lanebloom::internal::{Isa, Vectorized, acquire_if, assert_same_length};

/// The `BloomFilter` of Guava or of Spark, bit for bit: a [`GuavaBloom`](crate::GuavaBloom) or a
/// [`SparkBloom`](crate::SparkBloom). Many threads can insert and look up at once.
///
/// Keys are [`JavaKey`]s: any [`Funnel`](crate::Funnel) for Guava, any
/// [`SparkKey`](crate::spark::SparkKey) for Spark. All operations but [`clear`](Self::clear) and
/// [`exclusive`](Self::exclusive) take `&self`: share the filter as an `Arc`. The examples use a
/// `GuavaBloom`; they hold for a `SparkBloom` too.
///
/// # Batches
///
/// A batch returns the results of single calls in order, duplicates within the batch included, many
/// keys at a time. [`Answers`](crate::Answers) has the places for the results.
///
/// A hash is a key too: [`hash`](Self::hash) or [`hash_batch`](Self::hash_batch) compute it once
/// for several filters of one system (and of one seed, for Spark).
///
/// # Consistency
///
/// The promises are those of [lanebloom](lanebloom#consistency), with one difference. If several
/// threads race to insert a new key, **at least** one of them gets `true`, and several may: a key
/// has many words here, so an insert is never a claim.
///
/// An insert is a `Release`. A lookup that returns `true`, or an insert that returns `false`, ends
/// in an `Acquire`: everything that the inserters of the key had done before is visible. In batches
/// one `Acquire` serves many keys, and comes before their results.
///
/// # Examples
///
/// ```
/// use lanebloom_formats::{JavaBloom, JavaFormat, JavaKey};
/// use lanebloom_formats::{GuavaBloom, SparkBloom};
///
/// fn seen<F: JavaFormat>(filter: &JavaBloom<F>, user: &impl JavaKey<F>) -> bool {
///     !filter.insert(user)
/// }
///
/// let (guava, spark) = (
///     GuavaBloom::with_capacity(1000, 0.01)?,
///     SparkBloom::with_capacity(1000, 0.01)?,
/// );
/// assert!(!seen(&guava, &"ann") && seen(&guava, &"ann"));
/// assert!(!seen(&spark, &"ann") && seen(&spark, &"ann"));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[doc(alias = "BloomFilter")]
pub struct JavaBloom<F> {
    flat: Flat,
    pub(crate) layout: Layout<F>,
    expected_keys: usize,
}

/// Sizes a [`JavaBloom`]; made by [`JavaBloom::builder`]. The defaults are those of today's Guava,
/// or of Spark 4.3; both have a rate of 0.03.
///
/// ```
/// let builder = lanebloom_formats::GuavaBloom::builder().expected_keys(1000);
/// let filter = builder.false_positive_rate(0.01).build()?;
/// assert_eq!((filter.expected_keys(), filter.hash_functions()), (1000, 7));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct JavaBuilder<F: JavaFormat> {
    pub(crate) keys: usize,
    pub(crate) rate: f64,
    pub(crate) format: F,
    pub(crate) sizing: F::Sizing,
}

/// The system of a [`JavaBloom`]: [`Guava`](crate::guava::Guava) or [`Spark`](crate::spark::Spark).
/// No other type can implement it.
pub trait JavaFormat: FormatImpl {
    /// Writes the hash of each key to the same place of `out`, without a filter: that of
    /// [`JavaBloom::hash_batch`] in every filter of this [`format`](JavaBloom::format).
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::{JavaFormat, spark};
    ///
    /// let mut hashes = [spark::Hash::default()];
    /// spark::Spark::default().hash_batch(&["a"], &mut hashes);
    /// let filter = lanebloom_formats::SparkBloom::with_capacity(1000, 0.01)?;
    /// assert_eq!(hashes, [filter.hash("a")]);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    fn hash_batch<K: JavaKey<Self>>(self, keys: &[K], out: &mut [Self::Hash]) {
        assert_same_length(keys.len(), out.len());
        let format = self;
        let hashes = Hashes { keys, format, out };
        if Self::HASHES_IN_VECTORS {
            Isa::best().vectorized(hashes);
        } else {
            hashes.run();
        }
    }
}

impl<F: FormatImpl> JavaFormat for F {}

/// The hashes of keys, for vectors.
struct Hashes<'a, F: JavaFormat, K> {
    keys: &'a [K],
    format: F,
    out: &'a mut [F::Hash],
}

impl<F: JavaFormat, K: JavaKey<F>> Vectorized for Hashes<'_, F, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (hash, key) in self.out.iter_mut().zip(self.keys) {
            *hash = key.hash_for(self.format);
        }
    }
}

/// A key of a [`JavaBloom`]: any [`Funnel`](crate::Funnel) for [`Guava`](crate::guava::Guava), any
/// [`SparkKey`](crate::spark::SparkKey) for [`Spark`](crate::spark::Spark), and a hash of the
/// system. For a type of your own, implement one of these.
pub trait JavaKey<F: JavaFormat>: KeyImpl<F> {}

impl<F: JavaFormat, K: KeyImpl<F> + ?Sized> JavaKey<F> for K {}

/// The differences between the systems.
pub trait FormatImpl: Copy + Default + Eq + fmt::Debug + fmt::Display + Send + Sync + 'static {
    /// A key's hash, from which all indexes of its bits follow.
    type Hash: Copy + Default;
    /// The indexes of a key's bits in filters that are wide: from 64 bits.
    type Wide: NextIndex + From<Self::Hash>;
    /// The setting that decides the size beside keys and rate.
    type Sizing: Clone + Default + fmt::Debug;

    /// The name of the filter type.
    const FILTER: &str;
    /// Whether vectors hash keys faster.
    const HASHES_IN_VECTORS: bool;
    /// Whether a filter cannot be united with itself.
    const REFUSES_ITSELF: bool;

    /// The sizing of a builder that is given a rate after this one.
    fn sized_by_rate(sizing: Self::Sizing) -> Self::Sizing {
        sizing
    }

    /// The layout that the system's `create` chooses.
    fn solve(builder: &JavaBuilder<Self>) -> Result<Layout<Self>, BuildError>;

    /// Whether the indexes are `Wide`. Other filters have [`narrow`](Self::narrow) ones.
    fn is_wide(self) -> bool;

    /// The indexes of a key's bits in filters that are not wide: from 32 bits.
    fn narrow(hash: Self::Hash) -> IntIndexes;

    /// The header of a stream, and its length.
    fn header(self, shape: Shape) -> Header;

    /// The layout that the header of a stream says. `take` fills a slice with the next bytes.
    fn read_header(take: TakeBytes<'_>) -> Result<Layout<Self>, ReadError>;
}

/// The hash of a key for the filters of a system.
pub trait KeyImpl<F: FormatImpl> {
    /// The hash by which filters of this format know the key.
    fn hash_for(&self, format: F) -> F::Hash;

    /// The hashes, if these keys are hashes.
    #[inline(always)]
    fn hashes(_: &[Self]) -> Option<&[F::Hash]>
    where
        Self: Sized,
    {
        None
    }
}

/// The parameters that determine a key's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout<F> {
    pub(crate) format: F,
    pub(crate) shape: Shape,
}

impl<F> Layout<F> {
    /// The layout of this number of longs, whose keys have this number of bits.
    pub(crate) fn new(format: F, words: usize, hash_functions: u32) -> Self {
        let shape = Shape { words, hash_functions };
        Self { format, shape }
    }
}

impl<F: FormatImpl> fmt::Display for Layout<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, shape } = self;
        let (bits, functions) = (shape.bits(), shape.hash_functions);
        write!(f, "{format}, {bits} bits, {functions} hash functions")
    }
}

/// Single operations.
impl<F: JavaFormat> JavaBloom<F> {
    /// Inserts `key`; returns whether that changed the filter: `put` of Guava and Spark.
    ///
    /// It can return `false` for a new key, at the false-positive rate, and `true` is [not a
    /// claim](Self#consistency). A key that is there already costs loads only.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// assert!(filter.insert("a"));
    /// assert!(!filter.insert("a"));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias("put", "putLong", "putString", "putBinary"))]
    #[inline]
    pub fn insert<K: JavaKey<F> + ?Sized>(&self, key: &K) -> bool {
        let hash = &self.hash(key);
        let changed = with_indexes!(self.layout.format, |index| self.flat.set(index(hash)));
        acquire_if(!changed);
        changed
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive. This
    /// is `mightContain` of Guava and Spark.
    ///
    /// Never `false` for a key whose insertion happened before.
    ///
    /// ```
    /// let filter = lanebloom_formats::GuavaBloom::with_capacity(1000, 0.01)?;
    /// filter.insert(&17i64);
    /// assert!(filter.contains(&17i64));
    /// assert!(!filter.contains(&18i64));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias(
        "mightContain",
        "mightContainLong",
        "mightContainString",
        "mightContainBinary",
        "might_contain"
    ))]
    #[inline]
    #[must_use]
    pub fn contains<K: JavaKey<F> + ?Sized>(&self, key: &K) -> bool {
        let hash = &self.hash(key);
        let found = with_indexes!(self.layout.format, |index| self.flat.holds(index(hash)));
        acquire_if(found);
        found
    }

    /// The hash by which every filter of this system (and of the same seed, for Spark) knows `key`:
    /// a [`guava::Hash`](crate::guava::Hash) or a [`spark::Hash`](crate::spark::Hash).
    ///
    /// ```
    /// use lanebloom::Murmur3;
    /// use lanebloom_formats::{GuavaBloom, guava};
    ///
    /// let filter = GuavaBloom::with_capacity(1000, 0.01)?;
    /// let (h1, h2) = Murmur3::with_seed(0).hash128("a");
    /// assert_eq!(filter.hash("a"), guava::Hash(h1, h2));
    /// filter.insert(&filter.hash("a"));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: JavaKey<F> + ?Sized>(&self, key: &K) -> F::Hash {
        key.hash_for(self.layout.format)
    }
}

/// Same layout and same bits. Beside inserts, reads each word at some moment.
impl<F: JavaFormat> PartialEq for JavaBloom<F> {
    fn eq(&self, other: &Self) -> bool {
        self.layout == other.layout && self.flat == other.flat
    }
}

/// A summary; it reads the whole filter.
impl<F: JavaFormat> fmt::Debug for JavaBloom<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(F::FILTER)
            .field("expected_keys", &self.expected_keys)
            .field("memory_bytes", &self.memory_bytes())
            .field("format", &self.layout.format)
            .field("bit_size", &self.bit_size())
            .field("hash_functions", &self.hash_functions())
            .field("fill_ratio", &self.statistics().fill_ratio)
            .finish_non_exhaustive()
    }
}
