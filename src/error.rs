//! Errors of the core: opaque types whose messages name the value and the limit.
//!
//! If only one file detects an error, that file writes the message, and the kind holds the text. A
//! kind has fields if several files detect it, if a method reads it, or if it must not allocate.

use alloc::format;
use alloc::string::String;
use core::convert::Infallible;
use core::error::Error;
use core::fmt::{self, Display};

/// Why a filter could not be built.
///
/// ```
/// let error = lanebloom::ConcurrentBloom::with_capacity(10, 1.5).unwrap_err();
/// let text = "false-positive rate 1.5 is not between 0 and 1, both excluded";
/// assert_eq!(error.to_string(), text);
/// assert!(!error.is_out_of_memory());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BuildError(pub(crate) BuildErrorKind);

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BuildErrorKind {
    /// Neither keys nor a budget were given.
    NothingToSizeFor,
    /// A false-positive rate that is not between 0 and 1.
    Rate(f64),
    /// The rate takes more than `limit` bits per key. `words` and `lines` are set if the caller
    /// gave them.
    Unreachable {
        rate: f64,
        words: Option<usize>,
        lines: Option<usize>,
        limit: usize,
    },
    /// The expected keys do not fit the memory budget.
    OverBudget { needed: usize, limit: usize },
    /// The filter exceeds the address space.
    TooLarge { keys: usize, rate: f64 },
    /// The allocator refused.
    OutOfMemory { bytes: usize },
    /// Anything else about the settings.
    Setting(String),
}

impl BuildError {
    /// An error for the builder of a type that wraps a filter and has limits of its own.
    ///
    /// ```
    /// let error = lanebloom::BuildError::new("2000 keys per user, the limit is 1000");
    /// assert_eq!(error.to_string(), "2000 keys per user, the limit is 1000");
    /// ```
    #[must_use]
    pub fn new(problem: impl Into<String>) -> Self {
        Self(BuildErrorKind::Setting(problem.into()))
    }

    /// The error of a failed allocation of this many bytes.
    ///
    /// ```
    /// let reserved = Vec::<u64>::new().try_reserve_exact(1 << 60);
    /// let error = reserved.map_err(|_| lanebloom::BuildError::out_of_memory(8 << 60));
    /// assert!(error.unwrap_err().is_out_of_memory());
    /// ```
    #[must_use]
    pub fn out_of_memory(bytes: usize) -> Self {
        Self(BuildErrorKind::OutOfMemory { bytes })
    }

    /// The error of a filter for `keys` keys at `rate` that no address space has room for.
    ///
    /// ```
    /// let error = lanebloom::BuildError::too_large(usize::MAX, 1e-3);
    /// assert!(error.to_string().contains("needs more than the addressable memory"));
    /// assert!(!error.is_out_of_memory());
    /// ```
    #[must_use]
    pub fn too_large(keys: usize, rate: f64) -> Self {
        Self(BuildErrorKind::TooLarge { keys, rate })
    }

    /// Fails unless a false-positive rate is between 0 and 1, both excluded.
    ///
    /// ```
    /// use lanebloom::BuildError;
    ///
    /// assert!(BuildError::check_rate(0.01).is_ok());
    /// let error = BuildError::check_rate(1.0).unwrap_err();
    /// let text = "false-positive rate 1 is not between 0 and 1, both excluded";
    /// assert_eq!(error.to_string(), text);
    /// ```
    pub fn check_rate(rate: f64) -> Result<(), Self> {
        if rate > 0.0 && rate < 1.0 {
            Ok(())
        } else {
            Err(Self(BuildErrorKind::Rate(rate)))
        }
    }

    /// Whether the allocator refused the memory. A smaller filter may succeed.
    ///
    /// ```
    /// // More than any address space holds today.
    /// let builder = lanebloom::ConcurrentBloom::builder().memory_budget(1 << 58);
    /// let error = builder.build().unwrap_err();
    /// assert!(error.is_out_of_memory());
    /// ```
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self.0, BuildErrorKind::OutOfMemory { .. })
    }
}

impl Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use BuildErrorKind as Kind;
        match &self.0 {
            Kind::NothingToSizeFor => {
                f.write_str("neither expected keys nor a memory budget was given; set one of them")
            }
            Kind::Rate(rate) => write!(f, "false-positive rate {rate} is not between 0 and 1, both excluded"),
            Kind::Unreachable {
                rate,
                words,
                lines,
                limit,
            } => {
                write!(f, "a false-positive rate of {rate:e}")?;
                for (given, name) in [(words, "words"), (lines, "lines")] {
                    if let Some(number) = given {
                        write!(f, " with {number} {name} per key")?;
                    }
                }
                write!(f, " takes more than the limit of {limit} bits per key")
            }
            Kind::OverBudget { needed, limit } => write!(
                f,
                "the expected keys at this rate need {needed} bytes, more than the memory budget of {limit} bytes"
            ),
            Kind::TooLarge { keys, rate } => write!(
                f,
                "a filter for {keys} keys at a rate of {rate:e} needs more than the addressable memory ({} bytes)",
                isize::MAX
            ),
            Kind::OutOfMemory { bytes } => write!(f, "the allocation of {bytes} bytes failed"),
            Kind::Setting(problem) => f.write_str(problem),
        }
    }
}

impl Error for BuildError {}

/// Why two filters cannot be united: their bits have different meanings.
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
pub struct IncompatibleError(pub(crate) String);

impl IncompatibleError {
    /// An error for a type that wraps a filter and has more reasons to refuse a union.
    ///
    /// ```
    /// let error = lanebloom::IncompatibleError::new("the days differ");
    /// assert_eq!(error.to_string(), "the days differ");
    /// ```
    #[must_use]
    pub fn new(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    /// The error if `what` differs: it is `theirs` in the other filter and `ours` in this one.
    pub(crate) fn differs(what: &str, theirs: impl Display, ours: impl Display) -> Self {
        Self(format!(
            "the other filter's {what} differs: {theirs} there, {ours} here"
        ))
    }

    pub(crate) fn hasher() -> Self {
        Self("the other filter's hasher differs: another algorithm, seed or key".into())
    }
}

impl Display for IncompatibleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for IncompatibleError {}

/// Why a key could not be inserted: the filter is full, or it holds the largest number of copies of
/// this key. The filter still holds all its keys.
///
/// A single insert that fails did not insert its key. A batch that fails inserted the first
/// [`inserted`](Self::inserted) keys, and none after them. A
/// [`ScalableBloom`](crate::ScalableBloom) never refuses a key that it holds.
///
/// ```
/// let filter = lanebloom::CuckooFilter::builder().expected_keys(100).build()?;
/// assert!(!filter.insert_batch(&["a"; 100]).unwrap_err().is_full());
/// let error = filter.insert_all(0..1000u32).unwrap_err();
/// let text = "the filter, sized for 100 keys, is full";
/// assert!(error.is_full() && error.to_string().starts_with(text));
/// assert!((0..error.inserted() as u32).all(|key| filter.contains(&key)));
/// assert!(!error.is_out_of_memory());
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
    /// The newest layer is full, and there cannot be a next one.
    NoLayer(NoLayer),
    /// The filter hashes no keys, or takes no inserts: why.
    NotTaken(String),
}

/// Why there cannot be a next layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NoLayer {
    Layers { limit: usize },
    Bytes { bytes: usize, limit: usize },
    OutOfMemory,
}

/// For the inserts of filters that refuse no key.
impl From<Infallible> for InsertError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The same for `&mut`.
#[doc(hidden)]
impl AsMut<InsertError> for Infallible {
    fn as_mut(&mut self) -> &mut InsertError {
        match *self {}
    }
}

#[doc(hidden)]
impl AsMut<InsertError> for InsertError {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl InsertError {
    /// The number of keys of the batch that were inserted: those before the first one that failed.
    /// 0 for a single insert.
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder().expected_keys(1000);
    /// let filter = builder.clone().max_layers(1).build()?;
    /// let keys: Vec<u32> = (0..2000).collect();
    /// let error = filter.insert_batch(&keys).unwrap_err();
    /// let (there, rest) = keys.split_at(error.inserted());
    /// assert!(there.iter().all(|key| filter.contains(key)));
    /// // Another filter takes the rest.
    /// assert!(builder.build()?.insert_batch(rest).is_ok());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    #[doc(alias = "taken")]
    pub fn inserted(&self) -> usize {
        self.inserted
    }

    /// Whether the filter is full. Otherwise it holds the largest number of copies of this one key,
    /// or is an [`AnyFilter`](crate::AnyFilter) that cannot take the key.
    #[must_use]
    pub fn is_full(&self) -> bool {
        !matches!(self.kind, InsertErrorKind::Copies { .. } | InsertErrorKind::NotTaken(_))
    }

    /// Whether the allocator refused the memory of the next layer, also of one without the
    /// [hint](crate::ScalableBloom::set_hint). A [`ScalableBloom`](crate::ScalableBloom) may accept
    /// the same key later: every insert tries again. A limit that was set is another error:
    ///
    /// ```
    /// let builder = lanebloom::ScalableBloom::builder().expected_keys(100);
    /// let error = builder.max_layers(1).build()?.insert_all(0..200u32).unwrap_err();
    /// assert!(error.is_full() && !error.is_out_of_memory());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        self.kind == InsertErrorKind::NoLayer(NoLayer::OutOfMemory)
    }
}

impl Display for NoLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Layers { limit } => write!(f, "its limit of layers is {limit}"),
            Self::Bytes { bytes, limit } => write!(
                f,
                "its layers take {bytes} bytes of its limit of {limit} bytes, which leaves no room for another one"
            ),
            Self::OutOfMemory => f.write_str("the allocation of the next layer failed"),
        }
    }
}

impl Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            InsertErrorKind::CuckooFull {
                searched,
                expected_keys,
            } => write!(
                f,
                "the filter, sized for {expected_keys} keys, is full: no free slot in {searched} buckets"
            ),
            InsertErrorKind::DLeftFull { expected_keys } => write!(
                f,
                "the filter, sized for {expected_keys} keys, is full: no free slot in the key's 4 buckets"
            ),
            InsertErrorKind::Copies { limit } => {
                write!(f, "the key is in the filter {limit} times, the limit for one key")
            }
            InsertErrorKind::NoLayer(why) => write!(f, "the filter is full: {why}"),
            InsertErrorKind::NotTaken(why) => f.write_str(why),
        }?;
        match self.inserted {
            0 => Ok(()),
            1 => f.write_str("; the first key of the batch was inserted"),
            inserted => write!(f, "; the first {inserted} keys of the batch were inserted"),
        }
    }
}

impl Error for InsertError {}

/// Why reading a snapshot or a delta failed: the bytes are not one, could not be read, or do not
/// belong to this filter.
///
/// ```
/// use lanebloom::{ConcurrentBloom, SipHash13, codec};
///
/// let mut bytes = ConcurrentBloom::with_capacity(1000, 0.01)?.snapshot().to_vec();
/// let error = ConcurrentBloom::from_bytes(&bytes[..1000]).unwrap_err();
/// assert!(error.is_truncated() && !error.is_incompatible());
/// let read = codec::from_bytes::<ConcurrentBloom<_>>(&bytes, SipHash13::random());
/// let error = read.unwrap_err();
/// assert!(error.is_incompatible() && !error.is_truncated());
/// bytes[200] ^= 1;
/// let error = ConcurrentBloom::from_bytes(&bytes).unwrap_err();
/// assert!(error.to_string().starts_with("the bytes are corrupt:"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Debug)]
pub struct SnapshotError(pub(crate) SnapshotErrorKind);

/// Why a snapshot was refused. Nameable for the sake of hidden methods only.
#[doc(hidden)]
#[derive(Debug)]
pub enum SnapshotErrorKind {
    /// The bytes end too early.
    Truncated { bytes: u64, needed: u64 },
    /// Bytes follow where none may.
    #[cfg(any(feature = "serde", feature = "mmap"))]
    TooLong { bytes: u64, needed: u64 },
    /// The header's fields contradict its length.
    Length { declared: u64, needed: u64 },
    /// The checksum of all the bytes is another one.
    Checksum { stored: u64, computed: u64 },
    /// A byte without a meaning is not 0.
    NotZero { offset: u64, found: u8 },
    /// An unused bit of the body is set.
    UnusedBits { word: u64, bits: u64 },
    /// The header gives growth settings that no builder accepts.
    Plan(BuildError),
    /// Other bytes that no filter of this version writes.
    Invalid(String),
    /// The bytes are intact, but belong to another filter, hasher or clock.
    Incompatible(String),
    /// The filter takes more memory than the caller allows.
    OverLimit { needed: u64, limit: u64 },
    /// The allocator refused.
    OutOfMemory(BuildError),
    /// The reader failed.
    #[cfg(feature = "std")]
    Io(std::io::Error),
}

impl SnapshotErrorKind {
    /// The error if `what` differs: it is `theirs` in the snapshot or delta.
    pub(crate) fn differs(what: &str, theirs: impl Display, ours: impl Display) -> Self {
        Self::Incompatible(format!("the {what} differs: {theirs} there, {ours} here"))
    }
}

impl SnapshotError {
    /// Whether the bytes ended before the snapshot or delta did.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.0, SnapshotErrorKind::Truncated { .. })
    }

    /// Whether the bytes are intact, but layout or hasher differ, or a clock is missing.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        matches!(self.0, SnapshotErrorKind::Incompatible(_))
    }
}

impl Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use SnapshotErrorKind as Kind;
        match &self.0 {
            Kind::Truncated { bytes, needed } => write!(f, "the bytes end after {bytes} of {needed}"),
            #[cfg(any(feature = "serde", feature = "mmap"))]
            Kind::TooLong { bytes, needed } => {
                write!(f, "the filter ends after {needed} of {bytes} bytes")
            }
            Kind::Length { declared, needed } => write!(
                f,
                "the header declares a length of {declared} bytes, but its other fields need {needed}"
            ),
            Kind::Checksum { stored, computed } => write!(
                f,
                "the bytes are corrupt: their checksum is {computed:016x}, but {stored:016x} is stored"
            ),
            Kind::NotZero { offset, found } => {
                write!(f, "byte {offset} is {found}, where version 1 of the format has 0")
            }
            Kind::UnusedBits { word, bits } => write!(f, "word {word} of the body has the unused bits {bits:#x} set"),
            Kind::Plan(error) => write!(f, "the header describes a filter that cannot be built: {error}"),
            Kind::Invalid(problem) | Kind::Incompatible(problem) => f.write_str(problem),
            Kind::OverLimit { needed, limit } => write!(
                f,
                "the filter takes {needed} bytes, more than the limit of {limit} bytes"
            ),
            Kind::OutOfMemory(error) => write!(f, "the filter was not read: {error}"),
            #[cfg(feature = "std")]
            Kind::Io(error) => write!(f, "the bytes could not be read: {error}"),
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

/// [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof) if the bytes ended too early,
/// [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) if the allocation failed, otherwise
/// [`InvalidData`](std::io::ErrorKind::InvalidData). An error of the stream is returned unchanged.
///
/// ```
/// use std::io::{Error, ErrorKind};
///
/// let error = lanebloom::ConcurrentBloom::from_bytes(b"[package]").unwrap_err();
/// assert_eq!(Error::from(error).kind(), ErrorKind::InvalidData);
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
