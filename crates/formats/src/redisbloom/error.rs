//! The error of inserting into a filter of the module RedisBloom.

use core::error::Error;
use core::fmt;
use lanebloom::BuildError;

pub(super) const NO_CAPACITY: &str = "a capacity of 0 keys is not at least 1";
pub(super) const NO_EXPANSION: &str = "an expansion of 0 is not at least 1";

/// Why a key could not be inserted into a [`RedisBloom`](crate::RedisBloom) or
/// [`RedisCuckoo`](crate::RedisCuckoo).
///
/// # Examples
///
/// ```
/// use lanebloom_formats::RedisBloom;
///
/// let mut filter = RedisBloom::builder().expected_keys(2).non_scaling().build()?;
/// let error = filter.insert_batch(&["a", "b", "a", "c"]).unwrap_err();
/// let text = "key 3 was not inserted: the filter does not scale";
/// assert!(error.to_string().starts_with(text));
/// assert!(error.is_full());
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RedisBloomInsertError {
    pub(crate) kind: RedisBloomInsertErrorKind,
    pub(crate) inserted: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RedisBloomInsertErrorKind {
    Full {
        capacity: u64,
    },
    /// A chain of cuckoo filters that does not grow.
    NoRoom,
    /// The chain of a cuckoo filter has the most layers.
    Expansions {
        limit: usize,
    },
    OverLimit {
        needed: u64,
        limit: u64,
    },
    Growth(BuildError),
}

impl RedisBloomInsertError {
    /// Whether the filter is full and does not scale: the module's "non scaling filter is full",
    /// "Filter is full", or "Maximum expansions reached".
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(1).non_scaling().build()?;
    /// filter.insert("a")?;
    /// assert!(filter.insert("b").unwrap_err().is_full());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_full(&self) -> bool {
        use RedisBloomInsertErrorKind::{Expansions, Full, NoRoom};
        matches!(self.kind, Full { .. } | NoRoom | Expansions { .. })
    }

    /// How many keys of the batch are in the filter: those before the first one that failed. 0 for
    /// a single insert.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(1).non_scaling().build()?;
    /// assert_eq!(filter.insert_batch(&["a", "b"]).unwrap_err().inserted(), 1);
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[must_use]
    #[doc(alias = "position")]
    pub fn inserted(&self) -> usize {
        self.inserted
    }
}

impl fmt::Display for RedisBloomInsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} was not inserted: ", self.inserted)?;
        match &self.kind {
            RedisBloomInsertErrorKind::Full { capacity } => write!(
                f,
                "the filter does not scale, and has as many keys as its capacity of {capacity}"
            ),
            RedisBloomInsertErrorKind::Expansions { limit } => {
                write!(f, "the chain has {limit} filters, and takes no more keys")
            }
            RedisBloomInsertErrorKind::NoRoom => {
                f.write_str("the filter does not grow, and no fingerprint found a free slot")
            }
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
