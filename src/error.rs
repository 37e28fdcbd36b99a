//! What can go wrong: opaque types whose messages name the value and the limit.

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
        }
    }
}

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
    Guava {
        ours: crate::filter::guava::layout::Layout,
        theirs: crate::filter::guava::layout::Layout,
    },
    Itself,
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
            IncompatibleErrorKind::Guava { ours, theirs } => {
                write!(
                    f,
                    "the other Guava filter's layout differs: {theirs} there, {ours} here"
                )
            }
            IncompatibleErrorKind::Itself => f.write_str("a filter cannot be united with itself"),
        }
    }
}

impl Error for IncompatibleError {}

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
    #[cfg(any(feature = "std", feature = "serde"))]
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

    /// Whether the bytes are whole, and their bits mean something else to this filter or hasher.
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
            #[cfg(any(feature = "std", feature = "serde"))]
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
