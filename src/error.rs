//! What can go wrong: opaque types whose messages name the value and the limit.

use crate::sizing::MAX_BITS_PER_KEY;
#[cfg(feature = "redis")]
use alloc::string::String;
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
    TighteningRatio(f64),
    NoExpansion,
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
            BuildErrorKind::OutOfMemory { bytes } => write!(f, "the allocation of {bytes} bytes failed"),
            BuildErrorKind::TighteningRatio(ratio) => {
                write!(f, "tightening ratio {ratio} is not between 0 and 1, both excluded")
            }
            BuildErrorKind::NoExpansion => f.write_str(NO_EXPANSION),
            BuildErrorKind::NoCapacity => f.write_str("a capacity of 0 keys is not at least 1"),
            BuildErrorKind::NoLayers => f.write_str("a filter of 0 layers holds nothing; 1 is the least"),
            #[cfg(feature = "window")]
            BuildErrorKind::Generations(generations) => {
                use crate::filter::windowed::MAX_GENERATIONS;
                write!(f, "{generations} generations is not in 2 to {MAX_GENERATIONS}")
            }
            #[cfg(feature = "window")]
            BuildErrorKind::Window(window) => {
                use crate::filter::windowed::MAX_WINDOW;
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

/// Of the filters that grow.
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
        ours: crate::filter::windowed::Shape,
        theirs: crate::filter::windowed::Shape,
    },
    Guava {
        ours: crate::filter::guava::layout::Layout,
        theirs: crate::filter::guava::layout::Layout,
    },
    Itself,
    Steps {
        ours: crate::filter::scalable::Steps,
        theirs: crate::filter::scalable::Steps,
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
/// Nothing is lost silently. Of a single insert the key was not inserted; of a batch the first [`taken`](Self::taken) keys are in the
/// filter, and none after them was inserted. Keys that are in the filter already are never refused.
///
/// # Examples
///
/// ```
/// use lanebloom::ScalableBloom;
///
/// let filter = ScalableBloom::builder().initial_capacity(100).non_scaling().build()?;
/// let keys: Vec<u32> = (0..200).collect();
/// let error = filter.insert_batch(&keys).unwrap_err();
/// assert!((95..=110).contains(&error.taken()));
/// let taken = error.taken();
/// assert_eq!(
///     error.to_string(),
///     format!("the filter is full: its limit of layers is 1; the first {taken} keys of the batch were taken")
/// );
/// assert!(keys[..error.taken()].iter().all(|key| filter.contains(key)));
/// assert!(filter.insert(&1000u32).is_err() && filter.insert(&1u32) == Ok(false));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullError {
    pub(crate) kind: FullErrorKind,
    pub(crate) taken: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FullErrorKind {
    Layers { limit: usize },
    Bytes { needed: usize, limit: usize },
    OutOfMemory,
}

impl FullError {
    /// How many keys from the beginning of the batch are in the filter. 0 of a single insert.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(1000).non_scaling().build()?;
    /// let mut keys: Vec<u32> = (0..3000).collect();
    /// // Go on with those that are left, in another filter.
    /// let taken = filter.insert_batch(&keys).unwrap_err().taken();
    /// let next = ScalableBloom::builder().initial_capacity(1000).build()?;
    /// let rest = keys.split_off(taken);
    /// assert!(next.insert_batch(&rest).is_ok());
    /// assert!(keys.iter().all(|key| filter.contains(key)) && rest.iter().all(|key| next.contains(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken
    }

    /// Whether the allocator refused the memory of the next layer, so that the same key may be taken later: every insert tries again.
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(1).non_scaling().build()?;
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
        match self.taken {
            0 => Ok(()),
            1 => f.write_str("; the first key of the batch was taken"),
            taken => write!(f, "; the first {taken} keys of the batch were taken"),
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
    #[cfg(feature = "std")]
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
            #[cfg(feature = "std")]
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

/// Why bytes are not a snapshot or a delta of a filter, could not be read, or do not belong to this filter.
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
pub(crate) enum SnapshotErrorKind {
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
    ExpectedKeys(u64),
    Rate(f64),
    Field {
        name: &'static str,
        value: u64,
        least: u64,
        most: u64,
    },
    Fraction(f64),
    Words(u8),
    TagBits(u8),
    OddBuckets(usize),
    /// Of a word of the body.
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
    /// Of one key of a d-left filter, by its bucket in the first subtable.
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
    /// Whether the bytes ended before the snapshot or delta did: what was there is the beginning of one.
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

    /// Whether the bytes are whole, and their bits mean something else to this filter or hasher, or need a clock that was not given.
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
            SnapshotErrorKind::ExpectedKeys(keys) => {
                write!(
                    f,
                    "{keys} expected keys is beyond this machine's limit of {}",
                    usize::MAX
                )
            }
            SnapshotErrorKind::Rate(rate) => write!(f, "a rate of {rate} is not in 0 to 1"),
            SnapshotErrorKind::Field {
                name,
                value,
                least,
                most,
            } => write!(f, "{name}, {value}, is not in {least} to {most}"),
            SnapshotErrorKind::Fraction(value) => write!(f, "a rate or ratio of {value} is not between 0 and 1"),
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
            SnapshotErrorKind::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a rebuild could not begin: another one of the same guard is under way.
///
/// # Examples
///
/// ```
/// use lanebloom::{CacheGuard, ConcurrentBloom};
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// let guard = CacheGuard::new(filter.clone());
/// let first = guard.rebuild(filter.clone()).unwrap();
/// assert!(guard.rebuild(filter.clone()).is_err());
/// drop(first);
/// assert!(guard.rebuild(filter).is_ok());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[cfg(feature = "guard")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RebuildInProgress(pub(crate) ());

#[cfg(feature = "guard")]
impl fmt::Display for RebuildInProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rebuild of this guard is in progress; commit or drop it first")
    }
}

#[cfg(feature = "guard")]
impl Error for RebuildInProgress {}

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
            RedisBloomInsertErrorKind::Growth(error) => write!(f, "the filter could not grow: {error}"),
        }
    }
}

impl Error for RedisBloomInsertError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            RedisBloomInsertErrorKind::Growth(error) => Some(error),
            RedisBloomInsertErrorKind::Full { .. } => None,
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
    NoLinks,
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
            Kind::NoLinks => f.write_str("0 filters in the chain are not at least 1"),
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

/// Why a RedisBloom filter was not taken out of Redis, or not put there.
///
/// [`source`](Error::source) is the `redis` crate's error, or what is wrong with the dump.
///
/// # Examples
///
/// ```
/// use lanebloom::RedisBloom;
///
/// // There is no server at port 1.
/// let mut client = redis::Client::open("redis://127.0.0.1:1/")?;
/// let error = RedisBloom::fetch(&mut client, "seen", 1 << 30).unwrap_err();
/// assert!(error.is_unreachable() && !error.is_missing());
/// assert!(error.to_string().starts_with("\"seen\": the server was not reached: "));
/// # Ok::<(), redis::RedisError>(())
/// ```
#[cfg(feature = "redis")]
#[derive(Debug)]
pub struct RedisBloomTransferError {
    pub(crate) kind: RedisBloomTransferErrorKind,
    pub(crate) key: String,
}

#[cfg(feature = "redis")]
#[derive(Debug)]
pub(crate) enum RedisBloomTransferErrorKind {
    Unreachable(redis::RedisError),
    NoModule(redis::RedisError),
    Missing,
    WrongType(redis::RedisError),
    ReadOnly(redis::RedisError),
    Refused(redis::RedisError),
    Taken,
    Changed,
    Load(RedisBloomLoadError),
}

#[cfg(feature = "redis")]
impl RedisBloomTransferError {
    /// Whether the server was not reached, or the connection to it broke: another connection may succeed.
    ///
    /// ```
    /// let mut client = redis::Client::open("redis://127.0.0.1:1/")?; // nobody is there
    /// let error = lanebloom::RedisBloom::fetch(&mut client, "seen", 1 << 30).unwrap_err();
    /// assert!(error.is_unreachable());
    /// # Ok::<(), redis::RedisError>(())
    /// ```
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self.kind, RedisBloomTransferErrorKind::Unreachable(_))
    }

    /// Whether there is nothing at the key.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/module.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(server) = bloom_server("the example of is_missing") else { return Ok(()) };
    /// # let mut connection = server.connection();
    /// let error = lanebloom::RedisBloom::fetch(&mut connection, "nothing", 1 << 30).unwrap_err();
    /// assert!(error.is_missing());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self.kind, RedisBloomTransferErrorKind::Missing)
    }

    /// Whether there is something at the key already, where a filter was to be [stored](crate::RedisBloom::store).
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/module.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(server) = bloom_server("the example of is_taken") else { return Ok(()) };
    /// # let mut connection = server.connection();
    /// let filter = lanebloom::RedisBloom::reserve(0.01, 1000)?;
    /// filter.store(&mut connection, "seen")?;
    /// assert!(filter.store(&mut connection, "seen").unwrap_err().is_taken());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_taken(&self) -> bool {
        matches!(self.kind, RedisBloomTransferErrorKind::Taken)
    }
}

#[cfg(feature = "redis")]
impl fmt::Display for RedisBloomTransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RedisBloomTransferErrorKind as Kind;
        write!(f, "{:?}: ", self.key)?;
        match &self.kind {
            Kind::Unreachable(error) => write!(f, "the server was not reached: {error}"),
            Kind::NoModule(error) => write!(f, "the server has not loaded RedisBloom: {error}"),
            Kind::Missing => f.write_str("there is nothing at this key"),
            Kind::WrongType(error) => write!(f, "what is at this key is no RedisBloom filter: {error}"),
            Kind::ReadOnly(error) => write!(f, "the server is a replica that takes no writes: {error}"),
            Kind::Refused(error) => write!(f, "the server refused: {error}"),
            Kind::Taken => f.write_str("there is something at this key already"),
            Kind::Changed => f.write_str("another filter took the place of this one while it was read"),
            Kind::Load(error) => write!(f, "what the server sent is not loaded: {error}"),
        }
    }
}

#[cfg(feature = "redis")]
impl Error for RedisBloomTransferError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        use RedisBloomTransferErrorKind as Kind;
        match &self.kind {
            Kind::Unreachable(error)
            | Kind::NoModule(error)
            | Kind::WrongType(error)
            | Kind::ReadOnly(error)
            | Kind::Refused(error) => Some(error),
            Kind::Load(error) => Some(error),
            Kind::Missing | Kind::Taken | Kind::Changed => None,
        }
    }
}

/// Why a bitmap in Redis could not be read or written.
///
/// [`source`](Error::source) is the `redis` crate's error where there is one.
///
/// # Examples
///
/// ```
/// use lanebloom::redis::RedisBitmap;
///
/// // There is no server at port 1.
/// let client = redis::Client::open("redis://127.0.0.1:1/")?;
/// let mut connection = client;
/// let error = RedisBitmap::go_zero("seen", 20_000)?.contains(&mut connection, "ann").unwrap_err();
/// assert!(error.is_unreachable() && !error.is_wrong_type());
/// assert!(error.to_string().starts_with("the server was not reached: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "redis")]
#[derive(Debug)]
pub struct BitmapError(pub(crate) BitmapErrorKind);

#[cfg(feature = "redis")]
#[derive(Debug)]
pub(crate) enum BitmapErrorKind {
    Unreachable {
        error: redis::RedisError,
    },
    ReadOnly {
        key: String,
        error: redis::RedisError,
    },
    WrongType {
        key: String,
        error: redis::RedisError,
    },
    Server {
        key: String,
        error: redis::RedisError,
    },
    Reply {
        command: &'static str,
        key: String,
        reply: String,
    },
    Cursor {
        key: String,
        cursor: String,
        greatest: u64,
    },
    Longer {
        key: String,
        bytes: u64,
        layout: u64,
    },
    OverLimit {
        key: String,
        needed: u64,
        limit: usize,
    },
    NoText {
        key: String,
    },
    OutOfMemory(BuildError),
}

#[cfg(feature = "redis")]
impl BitmapError {
    /// Whether the server was not reached, did not answer in time, or the connection to it broke: another connection may succeed. Of an insert it is not known
    /// then whether it was done; to do it again does no harm.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self.0, BitmapErrorKind::Unreachable { .. })
    }

    /// Whether the server is a replica that takes no writes.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        matches!(self.0, BitmapErrorKind::ReadOnly { .. })
    }

    /// Whether a key of the filter holds something else: a list, say.
    #[must_use]
    pub fn is_wrong_type(&self) -> bool {
        matches!(self.0, BitmapErrorKind::WrongType { .. })
    }

    /// Whether a copy would take more memory than the caller's limit.
    #[must_use]
    pub fn is_over_limit(&self) -> bool {
        matches!(self.0, BitmapErrorKind::OverLimit { .. })
    }
}

#[cfg(feature = "redis")]
impl fmt::Display for BitmapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BitmapErrorKind::Unreachable { error } => write!(f, "the server was not reached: {error}"),
            BitmapErrorKind::ReadOnly { key, error } => {
                write!(f, "{key:?} was not written, the server is a read-only replica: {error}")
            }
            BitmapErrorKind::WrongType { key, error } => write!(f, "{key:?} is no bitmap: {error}"),
            BitmapErrorKind::Server { key, error } => write!(f, "the server refused an operation on {key:?}: {error}"),
            BitmapErrorKind::Reply { command, key, reply } => {
                write!(f, "the reply to {command} on {key:?} is none of that command: {reply}")
            }
            BitmapErrorKind::Cursor { key, cursor, greatest } => {
                write!(
                    f,
                    "the cursor {key:?} is {cursor:?}, which is no number in 0 to {greatest}"
                )
            }
            BitmapErrorKind::Longer { key, bytes, layout } => {
                write!(
                    f,
                    "the bitmap {key:?} has {bytes} bytes, more than the {layout} of this layout: it is another's"
                )
            }
            BitmapErrorKind::OverLimit { key, needed, limit } => {
                write!(
                    f,
                    "a copy of {key:?} takes {needed} bytes, more than the limit of {limit} bytes"
                )
            }
            BitmapErrorKind::NoText { key } => {
                write!(f, "a key for {key:?} is no UTF-8, and its layout is of characters")
            }
            BitmapErrorKind::OutOfMemory(error) => write!(f, "the bitmap was not copied: {error}"),
        }
    }
}

#[cfg(feature = "redis")]
impl Error for BitmapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0 {
            BitmapErrorKind::Unreachable { error }
            | BitmapErrorKind::ReadOnly { error, .. }
            | BitmapErrorKind::WrongType { error, .. }
            | BitmapErrorKind::Server { error, .. } => Some(error),
            BitmapErrorKind::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

/// Why a [`SharedBloom`](crate::redis::SharedBloom) and the set on the server were not brought together.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::redis::SharedBloom;
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// let server = redis::Client::open("redis://127.0.0.1:6379/")?;
/// let error = SharedBloom::builder("{ids}").connect(server, filter).unwrap_err();
/// assert_eq!(error.to_string(), "the name \"{ids}\" is empty or has a brace, which keys of Redis Cluster are divided by");
/// assert!(!error.is_incompatible());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "redis")]
#[derive(Clone, Debug)]
pub struct SharedError(alloc::boxed::Box<SharedErrorKind>);

#[cfg(feature = "redis")]
#[derive(Clone, Debug)]
pub(crate) enum SharedErrorKind {
    Name(alloc::string::String),
    TooLarge {
        bytes: usize,
        limit: u64,
    },
    Build(BuildError),
    Thread(alloc::sync::Arc<std::io::Error>),
    Redis(redis::RedisError),
    Incompatible(alloc::string::String, IncompatibleError),
    Life {
        name: alloc::string::String,
        ours: crate::redis::Life,
        theirs: crate::redis::Life,
    },
    Expired,
    #[cfg(feature = "window")]
    WindowExpires(u64),
    #[cfg(feature = "window")]
    WindowAgeless,
    #[cfg(feature = "window")]
    WindowClock,
    #[cfg(feature = "window")]
    WindowPeriod {
        period: core::time::Duration,
        least: core::time::Duration,
    },
    #[cfg(feature = "window")]
    WindowAstray,
    Foreign {
        key: alloc::string::String,
        what: &'static str,
    },
    Behind,
    Timeout {
        after: core::time::Duration,
        last: Option<SharedError>,
    },
    Ended,
}

#[cfg(feature = "redis")]
impl From<SharedErrorKind> for SharedError {
    fn from(kind: SharedErrorKind) -> Self {
        Self(alloc::boxed::Box::new(kind))
    }
}

#[cfg(feature = "redis")]
impl SharedError {
    /// Whether the set on the server is of another layout, hasher or seed, or expires at another time, so that no later attempt will succeed either.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedBloom").start() else { return Ok(()) };
    /// # use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// # let server = redis.client();
    /// let one = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let other = ConcurrentBloom::builder().expected_keys(1000).seed(1).build()?;
    /// let _one = SharedBloom::builder("ids").connect(server.clone(), one)?;
    /// assert!(SharedBloom::builder("ids").connect(server, other).unwrap_err().is_incompatible());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        match &*self.0 {
            SharedErrorKind::Incompatible(..) | SharedErrorKind::Life { .. } => true,
            SharedErrorKind::Timeout { last: Some(last), .. } => last.is_incompatible(),
            _ => false,
        }
    }

    /// Whether the set's time is over.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedError").start() else { return Ok(()) };
    /// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
    /// use std::time::{Duration, SystemTime};
    ///
    /// # let server = redis.client();
    /// let end = SystemTime::now() + Duration::from_secs(4);
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let shared = SharedBloom::builder("ids").expires_at(end).connect(server, filter)?;
    /// std::thread::sleep(Duration::from_millis(4001));
    /// assert!(shared.sync(Duration::from_secs(30)).unwrap_err().is_expired());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn is_expired(&self) -> bool {
        match &*self.0 {
            SharedErrorKind::Expired => true,
            SharedErrorKind::Timeout { last: Some(last), .. } => last.is_expired(),
            _ => false,
        }
    }

    /// Whether no later attempt will succeed.
    pub(crate) fn is_final(&self) -> bool {
        self.is_incompatible() || self.is_expired()
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(*self.0, SharedErrorKind::Ended)
    }

    /// Whether the server answered that it does not do this, over a connection that is as good as before.
    pub(crate) fn is_refusal(&self) -> bool {
        use redis::ErrorKind;
        let SharedErrorKind::Redis(error) = &*self.0 else {
            return false;
        };
        matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
    }
}

#[cfg(feature = "redis")]
impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            SharedErrorKind::Name(name) => {
                write!(
                    f,
                    "the name {name:?} is empty or has a brace, which keys of Redis Cluster are divided by"
                )
            }
            SharedErrorKind::TooLarge { bytes, limit } => {
                write!(f, "a filter of {bytes} bytes is beyond the limit of {limit} bytes")
            }
            SharedErrorKind::Build(error) => write!(f, "there is no memory to keep what was pushed: {error}"),
            SharedErrorKind::Thread(error) => write!(f, "no thread could be started: {error}"),
            SharedErrorKind::Redis(error) => write!(f, "Redis: {error}"),
            SharedErrorKind::Incompatible(name, error) => {
                write!(f, "the set {name:?} on the server is another filter's: {error}")
            }
            SharedErrorKind::Life { name, ours, theirs } => {
                write!(f, "the set {name:?} on the server {theirs}, here it {ours}")?;
                if [ours, theirs]
                    .iter()
                    .any(|life| matches!(life, crate::redis::Life::Until(_)))
                {
                    f.write_str(" (since 1970)")?;
                }
                Ok(())
            }
            SharedErrorKind::Expired => f.write_str("the set has expired"),
            #[cfg(feature = "window")]
            SharedErrorKind::WindowExpires(time) => {
                write!(
                    f,
                    "a window expires by its generations, and cannot be told to at {time} ms since 1970"
                )
            }
            #[cfg(feature = "window")]
            SharedErrorKind::WindowAgeless => f.write_str(
                "the window rotates when it is told to or full, which other nodes do not know of: build it by `window`",
            ),
            #[cfg(feature = "window")]
            SharedErrorKind::WindowClock => f.write_str(
                "the window ages by this machine's monotonic clock, which no other has: build it by `time_of_day`",
            ),
            #[cfg(feature = "window")]
            SharedErrorKind::WindowPeriod { period, least } => {
                write!(
                    f,
                    "generations of {period:?} are shorter than {least:?}, the least that the server counts"
                )
            }
            #[cfg(feature = "window")]
            SharedErrorKind::WindowAstray => f.write_str(
                "the window's generations are not those of other nodes until they have expired: its clock was set back, or `rotate` was called",
            ),
            SharedErrorKind::Foreign { key, what } => write!(f, "{key} was not written by a shared filter: {what}"),
            SharedErrorKind::Behind => f.write_str("the server's log was cut off faster than it could be followed"),
            SharedErrorKind::Timeout { after, last: None } => write!(f, "not done within {after:?}"),
            SharedErrorKind::Timeout {
                after,
                last: Some(last),
            } => write!(f, "not done within {after:?}; the last attempt: {last}"),
            SharedErrorKind::Ended => f.write_str("it was ended meanwhile"),
        }
    }
}

#[cfg(feature = "redis")]
impl Error for SharedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &*self.0 {
            SharedErrorKind::Build(error) => Some(error),
            SharedErrorKind::Thread(error) => Some(error),
            SharedErrorKind::Redis(error) => Some(error),
            SharedErrorKind::Incompatible(_, error) => Some(error),
            SharedErrorKind::Timeout { last: Some(last), .. } => Some(last),
            _ => None,
        }
    }
}

/// Why a key could not be inserted into a filter that can delete. What was in the filter is still in it.
///
/// # Examples
///
/// ```
/// use lanebloom::CuckooFilter;
///
/// let filter = CuckooFilter::builder().expected_keys(1).build()?;
/// let error = filter.try_extend(0..1000u32).unwrap_err();
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
    /// How many keys of the batch were inserted, those before the one that was not; 0 of a single insert.
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
    /// assert!(filter.try_extend(0..1000u32).unwrap_err().is_full());
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
