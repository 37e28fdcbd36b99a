//! What can go wrong: opaque types whose messages name the value and the limit.

use crate::sizing::MAX_BITS_PER_KEY;
use core::error::Error;
use core::fmt;

/// Why a filter could not be built.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let error = ConcurrentBloom::builder().expected_keys(10).false_positive_rate(1.5).build().unwrap_err();
/// assert_eq!(error.to_string(), "false-positive rate 1.5 is not between 0 and 1, both excluded");
/// assert!(!error.is_out_of_memory());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BuildError(pub(crate) BuildErrorKind);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BuildErrorKind {
    NothingToSizeFor,
    Rate(f64),
    FalseNegativeRate {
        rate: f64,
        limit: Option<usize>,
    },
    WordsPerKey(usize),
    Budget {
        bytes: usize,
    },
    Unreachable {
        rate: f64,
        words: Option<usize>,
        limit: usize,
    },
    OverBudget {
        needed: usize,
        budget: usize,
    },
    TooLarge {
        keys: usize,
        rate: f64,
    },
    OutOfMemory {
        bytes: usize,
    },
    TooManyKeys {
        keys: usize,
        blocks: usize,
        limit: usize,
    },
    TighteningRatio(f64),
    NoExpansion,
    Expansion {
        expansion: usize,
        limit: usize,
    },
    NoLayers,
    NoCapacity,
    #[cfg(feature = "window")]
    Generations(usize),
    #[cfg(feature = "window")]
    Window(core::time::Duration),
    TagBits(usize),
    /// `tags` says what they are called.
    TagsTooShort {
        rate: f64,
        tags: &'static str,
        bits: u32,
    },
    GuavaNoBits {
        keys: u64,
        rate: f64,
    },
    GuavaTooLarge {
        bits: u64,
    },
    GuavaHashFunctions {
        needed: u64,
        limit: u32,
        rate: f64,
    },
    #[cfg(feature = "redis")]
    RedisNothing {
        bits: u64,
        functions: u8,
    },
    #[cfg(feature = "redis")]
    RedisTooLarge {
        bits: u64,
    },
    #[cfg(feature = "redis")]
    RedisPower {
        bit: u32,
    },
}

impl BuildError {
    /// Whether the allocator refused the memory, so that a smaller filter may succeed.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// // More than any address space of today holds.
    /// let error = ConcurrentBloom::builder().memory_budget(1 << 58).build().unwrap_err();
    /// assert!(error.is_out_of_memory());
    /// ```
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.0, BuildErrorKind::OutOfMemory { .. })
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use crate::sizing::LINE_BYTES;
        match self.0 {
            BuildErrorKind::NothingToSizeFor => f.write_str(
                "neither expected keys nor a memory budget was given; the filter's size follows from one of them",
            ),
            BuildErrorKind::Rate(rate) => {
                write!(f, "false-positive rate {rate} is not between 0 and 1, both excluded")
            }
            BuildErrorKind::FalseNegativeRate { rate, limit: None } => {
                write!(f, "false-negative rate {rate} is not between 0 and 1, both excluded")
            }
            BuildErrorKind::FalseNegativeRate {
                rate,
                limit: Some(limit),
            } => {
                write!(
                    f,
                    "a false-negative rate of {rate:e} takes more than the limit of {limit} bits per removed key"
                )
            }
            BuildErrorKind::WordsPerKey(words) => write!(f, "{words} words per key is not 1, 2, 4 or 8"),
            BuildErrorKind::Budget { bytes } => {
                write!(
                    f,
                    "a memory budget of {bytes} bytes does not hold one line of {LINE_BYTES} bytes"
                )
            }
            BuildErrorKind::Unreachable { rate, words, limit } => {
                write!(f, "a false-positive rate of {rate:e}")?;
                if let Some(words) = words {
                    write!(f, " with {words} words per key")?;
                }
                write!(f, " takes more than the limit of {limit} bits per key")
            }
            BuildErrorKind::OverBudget { needed, budget } => {
                write!(
                    f,
                    "the expected keys at this rate need {needed} bytes, more than the memory budget of {budget} bytes"
                )
            }
            BuildErrorKind::TooLarge { keys, rate } => {
                write!(
                    f,
                    "a filter for {keys} keys at a rate of {rate:e} is beyond addressable memory ({} bytes)",
                    isize::MAX
                )
            }
            BuildErrorKind::TooManyKeys { keys, blocks, limit } => {
                write!(
                    f,
                    "{keys} keys in {blocks} lines of {LINE_BYTES} bytes are more than the limit of {limit} for each"
                )
            }
            BuildErrorKind::OutOfMemory { bytes } => write!(f, "the allocation of {bytes} bytes failed"),
            BuildErrorKind::TighteningRatio(ratio) => {
                write!(f, "tightening ratio {ratio} is not between 0 and 1, both excluded")
            }
            BuildErrorKind::NoExpansion => f.write_str(NO_EXPANSION),
            BuildErrorKind::Expansion { expansion, limit } => {
                write!(f, "an expansion of {expansion} is not in 1 to {limit}")
            }
            BuildErrorKind::NoCapacity => f.write_str("a capacity of 0 keys is not at least 1"),
            BuildErrorKind::NoLayers => f.write_str("a filter of 0 layers holds nothing; 1 is the least"),
            #[cfg(feature = "window")]
            BuildErrorKind::Generations(generations) => {
                use crate::filter::windowed::shape::MAX_GENERATIONS;
                write!(f, "{generations} generations is not in 2 to {MAX_GENERATIONS}")
            }
            #[cfg(feature = "window")]
            BuildErrorKind::Window(window) => {
                use crate::filter::windowed::shape::MAX_WINDOW;
                write!(f, "a window of {window:?} is not in 1ns to {MAX_WINDOW:?}")
            }
            BuildErrorKind::TagBits(bits) => write!(f, "tags of {bits} bits are not of 10, 12 or 16"),
            BuildErrorKind::TagsTooShort { rate, tags, bits } => {
                write!(
                    f,
                    "a false-positive rate of {rate:e} with {tags} of {bits} bits takes more than the limit of \
                     {MAX_BITS_PER_KEY} bits per key"
                )
            }
            BuildErrorKind::GuavaNoBits { keys, rate } => {
                write!(
                    f,
                    "Guava's formula gives a filter for {keys} keys at a rate of {rate} no bit at all"
                )
            }
            BuildErrorKind::GuavaTooLarge { bits } => {
                use crate::filter::guava::layout::MAX_WORDS;
                write!(
                    f,
                    "a filter of {bits} bits is beyond Guava's limit of {} bits",
                    64 * MAX_WORDS
                )
            }
            BuildErrorKind::GuavaHashFunctions { needed, limit, rate } => {
                write!(
                    f,
                    "a rate of {rate:e} takes {needed} hash functions, more than Guava's limit of {limit}"
                )
            }
            #[cfg(feature = "redis")]
            BuildErrorKind::RedisNothing { bits, functions } => {
                write!(
                    f,
                    "a bitmap of {bits} bits, {functions} of each key, is none: both must be at least 1"
                )
            }
            #[cfg(feature = "redis")]
            BuildErrorKind::RedisTooLarge { bits } => {
                use crate::redis::MAX_BITS;
                write!(
                    f,
                    "a bitmap of {bits} bits is beyond Redis's limit of {MAX_BITS} bits (512 MiB)"
                )
            }
            #[cfg(feature = "redis")]
            BuildErrorKind::RedisPower { bit } => {
                use crate::redis::MAX_BITS;
                write!(
                    f,
                    "a bitmap of 2^{bit} bits is beyond Redis's limit of {MAX_BITS} bits (512 MiB)"
                )
            }
        }
    }
}

/// Of RedisBloom's filters, whose expansion has no other limit.
const NO_EXPANSION: &str = "an expansion of 0 is not at least 1";

impl Error for BuildError {}

/// Why two filters cannot be united: their bits do not mean the same.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let a = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// let b = ConcurrentBloom::builder().expected_keys(2000).build()?;
/// let error = a.union_from(&b).unwrap_err();
/// assert!(error.to_string().starts_with("the other filter's layout differs:"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompatibleError(pub(crate) IncompatibleErrorKind);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IncompatibleErrorKind {
    Layout {
        ours: crate::sizing::Layout,
        theirs: crate::sizing::Layout,
    },
    Hasher,
    #[cfg(feature = "window")]
    Window {
        ours: crate::filter::windowed::shape::Shape,
        theirs: crate::filter::windowed::shape::Shape,
    },
    Guava {
        ours: crate::filter::guava::layout::Layout,
        theirs: crate::filter::guava::layout::Layout,
    },
    Itself,
    Steps {
        ours: crate::filter::scalable::steps::Steps,
        theirs: crate::filter::scalable::steps::Steps,
    },
    NoRoom {
        layers: usize,
        kind: FullErrorKind,
    },
}

impl fmt::Display for IncompatibleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            IncompatibleErrorKind::Layout { ours, theirs } => {
                write!(f, "the other filter's layout differs: {theirs} there, {ours} here")
            }
            IncompatibleErrorKind::Hasher => {
                f.write_str("the other filter's hasher differs: another algorithm, seed or key")
            }
            #[cfg(feature = "window")]
            IncompatibleErrorKind::Window { ours, theirs } => {
                write!(f, "the other filter's window differs: {theirs} there, {ours} here")
            }
            IncompatibleErrorKind::Guava { ours, theirs } => {
                write!(
                    f,
                    "the other Guava filter's layout differs: {theirs} there, {ours} here"
                )
            }
            IncompatibleErrorKind::Itself => f.write_str("a filter cannot be united with itself"),
            IncompatibleErrorKind::Steps { ours, theirs } => {
                write!(f, "the other filter grows otherwise: {theirs} there, {ours} here")
            }
            IncompatibleErrorKind::NoRoom { layers, kind } => {
                write!(
                    f,
                    "there is no room for the other filter's {layers} layers here: {kind}"
                )
            }
        }
    }
}

impl Error for IncompatibleError {}

/// Why a growing filter did not take a key: it is full, and can have no more layers.
///
/// Nothing is lost silently. A single insert that fails did not insert its key. A batch that fails
/// inserted the first [`inserted`](Self::inserted) keys, and none after them. Keys that are in the
/// filter already are never refused.
///
/// # Examples
///
/// ```
/// use lanebloom::ScalableBloom;
///
/// let filter = ScalableBloom::builder().expected_keys(100).non_scaling().build()?;
/// let keys: Vec<u32> = (0..200).collect();
/// let error = filter.insert_batch(&keys).unwrap_err();
/// let inserted = error.inserted();
/// assert!((95..=110).contains(&inserted));
/// assert_eq!(
///     error.to_string(),
///     format!("the filter is full: its limit of layers is 1; the first {inserted} keys of the batch were inserted")
/// );
/// assert!(keys[..inserted].iter().all(|key| filter.contains(key)));
/// assert!(filter.insert(&1000u32).is_err() && filter.insert(&1u32) == Ok(false));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullError {
    pub(crate) kind: FullErrorKind,
    pub(crate) inserted: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FullErrorKind {
    Layers { limit: usize },
    Bytes { needed: usize, limit: usize },
    OutOfMemory,
}

impl FullError {
    /// How many keys of the batch are in the filter, those before the one that is not; 0 of a
    /// single insert.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().expected_keys(1000).non_scaling().build()?;
    /// let mut keys: Vec<u32> = (0..3000).collect();
    /// // Go on with those that are left, in another filter.
    /// let inserted = filter.insert_batch(&keys).unwrap_err().inserted();
    /// let next = ScalableBloom::builder().expected_keys(1000).build()?;
    /// let rest = keys.split_off(inserted);
    /// assert!(next.insert_batch(&rest).is_ok());
    /// assert!(keys.iter().all(|key| filter.contains(key)) && rest.iter().all(|key| next.contains(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn inserted(&self) -> usize {
        self.inserted
    }

    /// Whether the allocator refused the memory of the next layer, so that the same key may be
    /// taken later: every insert tries again.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().expected_keys(1).non_scaling().build()?;
    /// let error = (0..10u32).find_map(|key| filter.insert(&key).err()).unwrap();
    /// assert!(!error.is_out_of_memory());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.kind == FullErrorKind::OutOfMemory
    }
}

impl fmt::Display for FullErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layers { limit } => write!(f, "its limit of layers is {limit}"),
            Self::Bytes { needed, limit } => {
                write!(
                    f,
                    "with the next layer it would take {needed} bytes, more than its limit of {limit} bytes"
                )
            }
            Self::OutOfMemory => f.write_str("the allocation of the next layer failed"),
        }
    }
}

impl fmt::Display for FullError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the filter is full: {}", self.kind)?;
        match self.inserted {
            0 => Ok(()),
            1 => f.write_str("; the first key of the batch was inserted"),
            inserted => write!(f, "; the first {inserted} keys of the batch were inserted"),
        }
    }
}

impl Error for FullError {}

/// Why a stream is not one of Guava's Bloom filters, or could not be read.
///
/// # Examples
///
/// ```
/// use lanebloom::guava::GuavaBloom;
///
/// let error = GuavaBloom::from_bytes(&[1, 5, 0, 0, 0, 2, 0, 0]).unwrap_err();
/// assert_eq!(error.to_string(), "the stream ends after 8 bytes of 22");
/// assert!(error.is_truncated());
/// ```
#[derive(Debug)]
pub struct GuavaReadError(pub(crate) GuavaReadErrorKind);

#[derive(Debug)]
pub(crate) enum GuavaReadErrorKind {
    Truncated {
        bytes: u64,
        needed: u64,
    },
    Strategy(i8),
    NoHashFunctions,
    Length(i32),
    OverLimit {
        needed: u64,
        limit: u64,
    },
    OutOfMemory(BuildError),
    #[cfg(feature = "std")]
    Io(std::io::Error),
}

impl GuavaReadError {
    /// Whether the stream ended before the filter did: what was there is the beginning of one.
    ///
    /// ```
    /// use lanebloom::guava::GuavaBloom;
    ///
    /// assert!(GuavaBloom::from_bytes(&[1, 5, 0]).unwrap_err().is_truncated());
    /// assert!(!GuavaBloom::from_bytes(&[9, 5, 0, 0, 0, 0]).unwrap_err().is_truncated());
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.0, GuavaReadErrorKind::Truncated { .. })
    }
}

impl fmt::Display for GuavaReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            GuavaReadErrorKind::Truncated { bytes, needed } => {
                write!(f, "the stream ends after {bytes} bytes of {needed}")
            }
            GuavaReadErrorKind::Strategy(ordinal) => {
                write!(
                    f,
                    "strategy {ordinal} is neither 0 (MURMUR128_MITZ_32) nor 1 (MURMUR128_MITZ_64)"
                )
            }
            GuavaReadErrorKind::NoHashFunctions => f.write_str("0 hash functions is not in 1 to 255"),
            GuavaReadErrorKind::Length(longs) => {
                write!(f, "a length of {longs} longs is not in 1 to {}", i32::MAX)
            }
            GuavaReadErrorKind::OverLimit { needed, limit } => {
                write!(
                    f,
                    "the filter takes {needed} bytes, more than the limit of {limit} bytes"
                )
            }
            GuavaReadErrorKind::OutOfMemory(error) => write!(f, "the filter was not read: {error}"),
            #[cfg(feature = "std")]
            GuavaReadErrorKind::Io(error) => write!(f, "the stream could not be read: {error}"),
        }
    }
}

impl Error for GuavaReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            #[cfg(feature = "std")]
            GuavaReadErrorKind::Io(error) => Some(error),
            GuavaReadErrorKind::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

/// Why bytes are not a snapshot or a delta of a filter, could not be read, or do not belong to this
/// filter.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// let mut bytes = filter.to_bytes();
/// bytes[200] ^= 1;
/// let error = ConcurrentBloom::from_bytes(&bytes).unwrap_err();
/// assert!(error.to_string().starts_with("the bytes are corrupt: their checksum is "));
/// assert!(!error.is_truncated() && !error.is_incompatible());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Debug)]
pub struct SnapshotError(pub(crate) SnapshotErrorKind);

#[derive(Debug)]
pub enum SnapshotErrorKind {
    Truncated {
        bytes: u64,
        needed: u64,
    },
    Magic([u8; 8]),
    Version(u16),
    HeaderChecksum {
        stored: u64,
        computed: u64,
    },
    Kind {
        found: u8,
        wanted: u8,
    },
    UnknownHasher(u8),
    LayoutVersion(u8),
    Shape(crate::sizing::Shape),
    Blocks {
        blocks: u64,
        limit: u64,
    },
    Rate(f64),
    Field {
        name: &'static str,
        value: u64,
        least: u64,
        most: u64,
    },
    /// The header gives growth settings that no builder accepts.
    Plan(BuildError),
    /// A layer differs from the plan.
    Layer {
        layer: usize,
        keys: usize,
        layout: crate::sizing::Layout,
        planned_keys: usize,
        planned: crate::sizing::Layout,
    },
    Words(u8),
    TagBits(u8),
    OddBuckets(usize),
    /// Unused bits of a word of the body.
    UnusedBits {
        word: u64,
        bits: u64,
    },
    /// A compact bucket's number.
    Sequence {
        bucket: u64,
        sequence: u64,
        limit: u64,
    },
    /// One key of a d-left filter, by its bucket in the first subtable.
    TwoCells {
        bucket: u64,
        remainder: u64,
        cells: u32,
    },
    /// A generation expires later than it can.
    #[cfg(feature = "window")]
    Expiry {
        generation: usize,
        expires: u64,
        latest: u64,
    },
    /// A window by a clock of its own.
    #[cfg(feature = "window")]
    Clock,
    NotZero {
        offset: u64,
        found: u8,
    },
    Length {
        declared: u64,
        needed: u64,
    },
    Checksum {
        stored: u64,
        computed: u64,
    },
    Hasher {
        theirs: crate::hash::sealed::Identity,
        ours: crate::hash::sealed::Identity,
    },
    HasherKey(crate::hash::sealed::Identity),
    /// For an algorithm without a secret: the algorithm's name determines its print.
    HasherPrint {
        identity: crate::hash::sealed::Identity,
        stored: u64,
        computed: u64,
    },
    Layout {
        theirs: crate::sizing::Layout,
        ours: crate::sizing::Layout,
    },
    Delta {
        offset: u64,
        problem: &'static str,
    },
    #[cfg(any(feature = "serde", feature = "mmap"))]
    TooLong {
        bytes: u64,
        needed: u64,
    },
    OverLimit {
        needed: u64,
        limit: u64,
    },
    OutOfMemory(BuildError),
    #[cfg(feature = "std")]
    Io(std::io::Error),
}

impl SnapshotError {
    /// Whether the bytes ended before the snapshot or delta did: what was there is the beginning of
    /// one.
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let bytes = ConcurrentBloom::builder().expected_keys(1000).build()?.to_bytes();
    /// let error = ConcurrentBloom::from_bytes(&bytes[..1000]).unwrap_err();
    /// assert_eq!(error.to_string(), "the bytes end after 1000 of 1536");
    /// assert!(error.is_truncated());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.0, SnapshotErrorKind::Truncated { .. })
    }

    /// Whether the bytes are whole, and their bits mean something else to this filter or hasher, or
    /// need a clock that was not given.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, SipHash13};
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let bytes = builder.clone().seed(1).build()?.to_bytes();
    /// let error = ConcurrentBloom::from_bytes_with(&bytes, SipHash13::random()).unwrap_err();
    /// assert_eq!(error.to_string(), "the hasher differs: Murmur3 with seed 1 there, SipHash-1-3 here");
    /// assert!(error.is_incompatible());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        use SnapshotErrorKind::{Hasher, HasherKey, Layout};
        #[cfg(feature = "window")]
        if matches!(self.0, SnapshotErrorKind::Clock) {
            return true;
        }
        matches!(self.0, Hasher { .. } | HasherKey(_) | Layout { .. })
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            SnapshotErrorKind::Truncated { bytes, needed } => write!(f, "the bytes end after {bytes} of {needed}"),
            SnapshotErrorKind::Magic(found) => {
                write!(
                    f,
                    "the bytes begin with \"{}\": no snapshot or delta of a filter does",
                    found.escape_ascii()
                )
            }
            SnapshotErrorKind::Version(version) => {
                write!(f, "format version {version} is none that this version reads: 1")
            }
            SnapshotErrorKind::HeaderChecksum { stored, computed } => {
                write!(
                    f,
                    "the header is corrupt: its checksum is {computed:016x}, and {stored:016x} is stored"
                )
            }
            SnapshotErrorKind::Kind { found, wanted } => {
                let name = |kind: &u8| match kind {
                    1 => " (a ConcurrentBloom)",
                    2 => " (a ScalableBloom)",
                    3 => " (a WindowedBloom)",
                    4 => " (a CountingBloom)",
                    5 => " (a TombstoneBloom)",
                    6 => " (a CuckooFilter)",
                    7 => " (a CompactCuckoo)",
                    8 => " (a DLeftFilter)",
                    129 => " (a delta)",
                    _ => "",
                };
                write!(
                    f,
                    "the bytes are of kind {found}{}, not {wanted}{}",
                    name(found),
                    name(wanted)
                )
            }
            SnapshotErrorKind::UnknownHasher(hasher) => {
                write!(
                    f,
                    "hasher {hasher} is none of 0 (a BuildHasher), 1 (Murmur3), 2 (SipHash-1-3)"
                )
            }
            SnapshotErrorKind::LayoutVersion(version) => {
                write!(
                    f,
                    "layout version {version} sets other bits than version 1, which this version knows"
                )
            }
            SnapshotErrorKind::Shape(crate::sizing::Shape { words, bits }) => {
                write!(f, "{words} words per key with {bits} bits each is no layout")
            }
            SnapshotErrorKind::Blocks { blocks, limit } => write!(f, "{blocks} blocks is not in 1 to {limit}"),
            SnapshotErrorKind::Rate(rate) => write!(f, "a rate of {rate} is not in 0 to 1"),
            SnapshotErrorKind::Field {
                name,
                value,
                least,
                most,
            } => write!(f, "{name}, {value}, is not in {least} to {most}"),
            SnapshotErrorKind::Plan(error) => write!(f, "no filter can be built as the header says: {error}"),
            SnapshotErrorKind::Layer {
                layer,
                keys,
                layout,
                planned_keys,
                planned,
            } => write!(
                f,
                "layer {layer} is for {keys} keys ({layout}), where the header's plan has one for {planned_keys} keys ({planned})"
            ),
            SnapshotErrorKind::Words(words) => write!(f, "{words} words per key is not 0, 1, 2, 4 or 8"),
            SnapshotErrorKind::TagBits(bits) => write!(f, "tags of {bits} bits are not of 10, 12 or 16"),
            SnapshotErrorKind::OddBuckets(buckets) => write!(f, "{buckets} buckets is not an even number"),
            SnapshotErrorKind::UnusedBits { word, bits } => {
                write!(
                    f,
                    "word {word} of the body has bits {bits:#x} that belong to nothing there"
                )
            }
            SnapshotErrorKind::Sequence {
                bucket,
                sequence,
                limit,
            } => write!(f, "bucket {bucket} has sequence {sequence}, which is not below {limit}"),
            SnapshotErrorKind::TwoCells {
                bucket,
                remainder,
                cells,
            } => write!(
                f,
                "the key of bucket {bucket} with remainder {remainder:#x} has {cells} cells, more than the limit of 1"
            ),
            #[cfg(feature = "window")]
            SnapshotErrorKind::Expiry {
                generation,
                expires,
                latest,
            } => write!(
                f,
                "generation {generation} expires at {expires}, where by those before it does at {latest} at the latest"
            ),
            #[cfg(feature = "window")]
            SnapshotErrorKind::Clock => f.write_str(
                "the window ages by a clock that its builder was given: read it with that one, by `from_bytes_with_clock` or `read_from_with_clock`",
            ),
            SnapshotErrorKind::NotZero { offset, found } => {
                write!(f, "byte {offset} is {found}, where version 1 of the format has 0")
            }
            SnapshotErrorKind::Length { declared, needed } => {
                write!(
                    f,
                    "a length of {declared} bytes is declared, where the rest says {needed}"
                )
            }
            SnapshotErrorKind::Checksum { stored, computed } => {
                write!(
                    f,
                    "the bytes are corrupt: their checksum is {computed:016x}, and {stored:016x} is stored"
                )
            }
            SnapshotErrorKind::Hasher { theirs, ours } => {
                write!(f, "the hasher differs: {theirs} there, {ours} here")
            }
            SnapshotErrorKind::HasherKey(identity) => {
                write!(
                    f,
                    "the hasher differs: {identity} there and here, but under another key"
                )
            }
            SnapshotErrorKind::HasherPrint {
                identity,
                stored,
                computed,
            } => {
                write!(
                    f,
                    "the hasher's print is that of another one: {identity} has {computed:016x}, and {stored:016x} is stored"
                )
            }
            SnapshotErrorKind::Layout { theirs, ours } => {
                write!(f, "the layout differs: {theirs} there, {ours} here")
            }
            SnapshotErrorKind::Delta { offset, problem } => {
                write!(f, "the delta is none at byte {offset}: {problem}")
            }
            #[cfg(any(feature = "serde", feature = "mmap"))]
            SnapshotErrorKind::TooLong { bytes, needed } => {
                write!(f, "there are {bytes} bytes, and the filter ends after {needed}")
            }
            SnapshotErrorKind::OverLimit { needed, limit } => {
                write!(
                    f,
                    "the filter takes {needed} bytes, more than the limit of {limit} bytes"
                )
            }
            SnapshotErrorKind::OutOfMemory(error) => write!(f, "the filter was not read: {error}"),
            #[cfg(feature = "std")]
            SnapshotErrorKind::Io(error) => write!(f, "the bytes could not be read: {error}"),
        }
    }
}

impl Error for SnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            #[cfg(feature = "std")]
            SnapshotErrorKind::Io(error) => Some(error),
            SnapshotErrorKind::OutOfMemory(error) | SnapshotErrorKind::Plan(error) => Some(error),
            _ => None,
        }
    }
}

/// [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) where the bytes ended too early,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) where memory was refused, and otherwise
/// [`InvalidData`](std::io::ErrorKind::InvalidData). An error of the stream is returned as it was.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use std::io::{self, ErrorKind};
///
/// fn load(path: &str) -> io::Result<ConcurrentBloom> {
///     let file = std::fs::File::open(path)?;
///     Ok(ConcurrentBloom::read_from(file, 64 << 20)?)
/// }
///
/// assert_eq!(load("Cargo.toml").unwrap_err().kind(), ErrorKind::InvalidData);
/// ```
#[cfg(feature = "std")]
impl From<SnapshotError> for std::io::Error {
    fn from(error: SnapshotError) -> Self {
        use std::io::ErrorKind;
        let kind = match error.0 {
            SnapshotErrorKind::Io(error) => return error,
            SnapshotErrorKind::Truncated { .. } => ErrorKind::UnexpectedEof,
            SnapshotErrorKind::OutOfMemory(_) => ErrorKind::OutOfMemory,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

/// Why a rebuild of a [`CacheGuard`](crate::CacheGuard) could not begin.
///
/// # Examples
///
/// ```
/// use lanebloom::CacheGuard;
///
/// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
/// let error = guard.rebuild_with_capacity(1000, 2.0).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the new filter could not be built: false-positive rate 2 is not between 0 and 1, both excluded"
/// );
/// assert!(!error.is_in_progress());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[cfg(feature = "guard")]
#[derive(Clone, Debug, PartialEq)]
pub struct RebuildError(pub(crate) RebuildErrorKind);

#[cfg(feature = "guard")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RebuildErrorKind {
    InProgress,
    Build(BuildError),
    Refused,
}

#[cfg(feature = "guard")]
impl RebuildError {
    /// Whether another rebuild of the same guard is under way.
    ///
    /// ```
    /// use lanebloom::CacheGuard;
    ///
    /// let guard = CacheGuard::<str>::with_capacity(1000, 0.01)?;
    /// let first = guard.rebuild_with_capacity(1000, 0.01)?;
    /// assert!(guard.rebuild_with_capacity(1000, 0.01).unwrap_err().is_in_progress());
    /// drop(first);
    /// assert!(guard.rebuild_with_capacity(1000, 0.01).is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_in_progress(&self) -> bool {
        self.0 == RebuildErrorKind::InProgress
    }

    /// Whether the new filter had no room for a key, so that it was not committed.
    ///
    /// ```
    /// use lanebloom::{CacheGuard, CuckooFilter};
    ///
    /// let filter = |keys| CuckooFilter::builder().expected_keys(keys).build();
    /// let guard = CacheGuard::<u64, _>::new(filter(1000)?);
    /// let rebuild = guard.rebuild(filter(10)?)?;
    /// assert!(rebuild.insert_all(0..1000).is_err());
    /// let error = rebuild.try_commit().unwrap_err();
    /// assert!(error.is_refused());
    /// let text = "the new filter has no room for all keys; the guard goes on with the old one";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.0 == RebuildErrorKind::Refused
    }
}

#[cfg(feature = "guard")]
impl fmt::Display for RebuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            RebuildErrorKind::InProgress => {
                f.write_str("a rebuild of this guard is in progress; commit or drop it first")
            }
            RebuildErrorKind::Build(error) => write!(f, "the new filter could not be built: {error}"),
            RebuildErrorKind::Refused => {
                f.write_str("the new filter has no room for all keys; the guard goes on with the old one")
            }
        }
    }
}

#[cfg(feature = "guard")]
impl Error for RebuildError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            RebuildErrorKind::InProgress | RebuildErrorKind::Refused => None,
            RebuildErrorKind::Build(error) => Some(error),
        }
    }
}

/// Why a key could not be inserted into a [`RedisBloom`](crate::RedisBloom).
///
/// # Examples
///
/// ```
/// use lanebloom::RedisBloom;
///
/// let mut filter = RedisBloom::builder().expected_keys(2).non_scaling().build()?;
/// let error = filter.insert_batch(&["a", "b", "a", "c"]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "key 3 was not inserted: the filter does not scale, and has as many keys as its capacity of 2"
/// );
/// assert!(error.is_full());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RedisBloomInsertError {
    pub(crate) kind: RedisBloomInsertErrorKind,
    pub(crate) position: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RedisBloomInsertErrorKind {
    Full { capacity: u64 },
    OverLimit { needed: u64, limit: u64 },
    Growth(BuildError),
}

impl RedisBloomInsertError {
    /// Whether the filter is full and does not scale: RedisBloom's "non scaling filter is full".
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(1).non_scaling().build()?;
    /// filter.insert("a")?;
    /// assert!(filter.insert("b").unwrap_err().is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.kind, RedisBloomInsertErrorKind::Full { .. })
    }

    /// The position of the key in its batch. The keys before it are in the filter.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(1).non_scaling().build()?;
    /// assert_eq!(filter.insert_batch(&["a", "b"]).unwrap_err().position(), 1);
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }
}

impl fmt::Display for RedisBloomInsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} was not inserted: ", self.position)?;
        match &self.kind {
            RedisBloomInsertErrorKind::Full { capacity } => write!(
                f,
                "the filter does not scale, and has as many keys as its capacity of {capacity}"
            ),
            RedisBloomInsertErrorKind::OverLimit { needed, limit } => write!(
                f,
                "with a further filter the chain would take {needed} bytes, more than its limit of {limit} bytes"
            ),
            RedisBloomInsertErrorKind::Growth(error) => write!(f, "the filter could not grow: {error}"),
        }
    }
}

impl Error for RedisBloomInsertError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            RedisBloomInsertErrorKind::Growth(error) => Some(error),
            _ => None,
        }
    }
}

/// Why chunks are not the dump of a RedisBloom filter.
///
/// # Examples
///
/// ```
/// use lanebloom::redisbloom::RedisBloom;
///
/// let error = RedisBloom::from_scandump([(1, b"no header")], 1 << 20).unwrap_err();
/// assert_eq!(error.to_string(), "the header has 9 bytes, not 20");
/// assert!(!error.is_truncated());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RedisBloomLoadError(pub(crate) RedisBloomLoadErrorKind);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RedisBloomLoadErrorKind {
    Header { bytes: u64, needed: u64 },
    Links { count: u32, limit: u32 },
    Options(u32),
    NoExpansion,
    Link { link: u32, fault: RedisBloomLinkFault },
    Items { items: u64, counted: u64 },
    OverLimit { needed: u64, limit: u64 },
    Cursor { cursor: i64, expected: i64 },
    Chunk { bytes: usize },
    Beyond { bytes: u64, link: usize, left: u64 },
    AfterTheEnd { cursor: i64, bytes: usize },
    Empty,
    Incomplete { bytes: u64, needed: u64 },
    OutOfMemory(BuildError),
}

/// What is wrong with what a header says of a filter of the chain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RedisBloomLinkFault {
    Size { bytes: u64, bits: u64 },
    Rounded { log: u8, bits: u64 },
    Rate(f64),
    RateOfChain { rate: f64, limit: f64 },
    BitsPerKey { per_key: f64, expected: f64, rate: f64 },
    HashFunctions { functions: u32, expected: u64, rate: f64 },
    NoCapacity,
    Capacity { capacity: u64, bits: u64 },
    Items { items: u64, capacity: u64 },
}

impl RedisBloomLoadError {
    /// Whether the chunks ended before the filter did: what was there is the beginning of one.
    ///
    /// ```
    /// use lanebloom::RedisBloom;
    ///
    /// let filter = RedisBloom::reserve(0.01, 10)?;
    /// let header = filter.to_loadchunks().take(1);
    /// assert!(RedisBloom::from_scandump(header, 1 << 20).unwrap_err().is_truncated());
    /// assert!(!RedisBloom::from_scandump(filter.to_loadchunks(), 1).unwrap_err().is_truncated());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        use RedisBloomLoadErrorKind::{Empty, Incomplete};
        matches!(self.0, Empty | Incomplete { .. })
    }
}

impl fmt::Display for RedisBloomLoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RedisBloomLoadErrorKind as Kind;
        match &self.0 {
            Kind::Header { bytes, needed } => write!(f, "the header has {bytes} bytes, not {needed}"),
            Kind::Links { count, limit } => write!(f, "{count} filters in the chain are not in 1 to {limit}"),
            Kind::Options(options) => write!(
                f,
                "options {options:#x} have others than 1 (NOROUND), 4 (FORCE64) and 8 (NO_SCALING)"
            ),
            Kind::NoExpansion => f.write_str(NO_EXPANSION),
            Kind::Link { link, fault } => write!(f, "filter {link} of the chain: {fault}"),
            Kind::Items { items, counted } => {
                write!(f, "{items} items are not the {counted} that the filters have together")
            }
            Kind::OverLimit { needed, limit } => {
                write!(
                    f,
                    "the filter takes {needed} bytes, more than the limit of {limit} bytes"
                )
            }
            Kind::Cursor { cursor, expected } => {
                write!(f, "cursor {cursor} came with a chunk whose cursor is {expected}")
            }
            Kind::Chunk { bytes } => write!(f, "a chunk of {bytes} bytes is not of 8 bytes or a multiple of it"),
            Kind::Beyond { bytes, link, left } => {
                write!(
                    f,
                    "a chunk of {bytes} bytes is more than the {left} that filter {link} of the chain has left"
                )
            }
            Kind::AfterTheEnd { cursor, bytes } => {
                write!(f, "cursor {cursor} with {bytes} bytes came after the end")
            }
            Kind::Empty => f.write_str("the dump ends before its header"),
            Kind::Incomplete { bytes, needed } => write!(f, "the dump ends after {bytes} bytes of bits of {needed}"),
            Kind::OutOfMemory(error) => write!(f, "the filter was not loaded: {error}"),
        }
    }
}

impl fmt::Display for RedisBloomLinkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size { bytes, bits } => write!(
                f,
                "{bytes} bytes and {bits} bits are not of the same 64-bit words, at least one"
            ),
            Self::Rounded { log, bits } => write!(f, "2^{log} bits are more than its {bits}"),
            Self::Rate(rate) => write!(f, "false-positive rate {rate} is not between 0 and 1, both excluded"),
            Self::RateOfChain { rate, limit } => {
                write!(
                    f,
                    "false-positive rate {rate:e} is above {limit:e}, half of the one before"
                )
            }
            Self::BitsPerKey {
                per_key,
                expected,
                rate,
            } => write!(f, "{per_key} bits per key are not the {expected} of a rate of {rate:e}"),
            Self::HashFunctions {
                functions,
                expected,
                rate,
            } => write!(
                f,
                "{functions} hash functions are not the {expected} of a rate of {rate:e}"
            ),
            Self::NoCapacity => f.write_str("a capacity of 0 keys is not at least 1"),
            Self::Capacity { capacity, bits } => {
                write!(f, "a capacity of {capacity} keys takes more than its {bits} bits")
            }
            Self::Items { items, capacity } => write!(f, "{items} items are more than its capacity of {capacity}"),
        }
    }
}

impl Error for RedisBloomLoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            RedisBloomLoadErrorKind::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a key could not be inserted into a filter that can delete. The filter still holds all its
/// keys.
///
/// # Examples
///
/// ```
/// use lanebloom::CuckooFilter;
///
/// let filter = CuckooFilter::builder().expected_keys(1).build()?;
/// let error = filter.insert_all(0..1000u32).unwrap_err();
/// assert!(error.is_full());
/// assert_eq!(
///     error.to_string(),
///     "no room was found in 4096 buckets: the filter, sized for 1 keys, is full"
/// );
/// assert!((0..error.inserted() as u32).all(|key| filter.contains(&key)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsertError {
    pub(crate) kind: InsertErrorKind,
    pub(crate) inserted: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InsertErrorKind {
    /// A cuckoo filter's search found no empty slot.
    CuckooFull { searched: usize, expected_keys: usize },
    /// All buckets of the key in a d-left filter are full.
    DLeftFull { expected_keys: usize },
    /// One key was inserted too often.
    Copies { limit: usize },
}

impl InsertError {
    /// How many keys of the batch were inserted, those before the one that was not; 0 of a single
    /// insert.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(100).tag_bits(16).build()?;
    /// let error = filter.insert_batch(&["a"; 20]).unwrap_err();
    /// assert_eq!((error.inserted(), filter.count("a")), (8, 8));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn inserted(&self) -> usize {
        self.inserted
    }

    /// Whether the filter is full; otherwise this one key is in it as often as it can be.
    ///
    /// ```
    /// use lanebloom::CuckooFilter;
    ///
    /// let filter = CuckooFilter::builder().expected_keys(100).build()?;
    /// assert!(filter.insert_all(0..1000u32).unwrap_err().is_full());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_full(&self) -> bool {
        !matches!(self.kind, InsertErrorKind::Copies { .. })
    }
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            InsertErrorKind::CuckooFull {
                searched,
                expected_keys,
            } => {
                write!(
                    f,
                    "no room was found in {searched} buckets: the filter, sized for {expected_keys} keys, is full"
                )
            }
            InsertErrorKind::DLeftFull { expected_keys } => {
                write!(
                    f,
                    "the key's 4 buckets are full: the filter, sized for {expected_keys} keys, has no room for it"
                )
            }
            InsertErrorKind::Copies { limit } => {
                write!(
                    f,
                    "the key is in the filter {limit} times, which is as often as it can be"
                )
            }
        }
    }
}

impl Error for InsertError {}
