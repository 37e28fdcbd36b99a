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
    WordsPerKey(usize),
    Budget {
        bytes: usize,
    },
    Unreachable {
        rate: f64,
        words: Option<usize>,
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
        use crate::sizing::{LINE_BYTES, MAX_BITS_PER_KEY};
        match self.0 {
            BuildErrorKind::NothingToSizeFor => f.write_str(
                "neither expected keys nor a memory budget was given; the filter's size follows from one of them",
            ),
            BuildErrorKind::Rate(rate) => {
                write!(f, "false-positive rate {rate} is not between 0 and 1, both excluded")
            }
            BuildErrorKind::WordsPerKey(words) => write!(f, "{words} words per key is not 1, 2, 4 or 8"),
            BuildErrorKind::Budget { bytes } => {
                write!(
                    f,
                    "a memory budget of {bytes} bytes does not hold one line of {LINE_BYTES} bytes"
                )
            }
            BuildErrorKind::Unreachable { rate, words } => {
                write!(f, "a false-positive rate of {rate:e}")?;
                if let Some(words) = words {
                    write!(f, " with {words} words per key")?;
                }
                write!(f, " takes more than the limit of {MAX_BITS_PER_KEY} bits per key")
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
        }
    }
}

impl Error for BuildError {}

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
