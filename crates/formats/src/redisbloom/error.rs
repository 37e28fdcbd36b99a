//! The error of inserting into a filter of the module RedisBloom.

use core::error::Error;
use core::fmt;
use lanebloom::BuildError;

pub(super) const NO_CAPACITY: &str = "a capacity of 0 keys is not at least 1";
pub(super) const NO_EXPANSION: &str = "an expansion of 0 is not at least 1";

/// Why a key could not be inserted into a [`RedisBloom`](crate::RedisBloom) or
/// [`RedisCuckoo`](crate::RedisCuckoo).
#[derive(Clone, Debug, PartialEq)]
pub struct RedisBloomInsertError {
    kind: InsertErrorKind,
    inserted: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InsertErrorKind {
    /// A filter of the module's `BF` that does not scale.
    NonScaling {
        capacity: u64,
    },
    /// A filter of its `CF` that does not grow.
    NoFreeSlot,
    /// A chain of its `CF` with the most filters.
    MostFilters(usize),
    OverLimit {
        needed: u64,
        limit: u64,
    },
    Growth(BuildError),
}

impl InsertErrorKind {
    /// Fails if a chain with a further layer takes more bytes than the limit.
    pub(crate) fn check_limit(needed: u64, limit: u64) -> Result<(), Self> {
        if needed <= limit {
            return Ok(());
        }
        Err(Self::OverLimit { needed, limit })
    }

    /// The error of a key after `inserted` others.
    pub(crate) fn after(self, inserted: usize) -> RedisBloomInsertError {
        RedisBloomInsertError { kind: self, inserted }
    }
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
        use InsertErrorKind::{MostFilters, NoFreeSlot, NonScaling};
        matches!(self.kind, NonScaling { .. } | NoFreeSlot | MostFilters(_))
    }

    /// How many keys of the batch are in the filter: those before the first one that failed. 0 for
    /// a single insert.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let mut filter = RedisBloom::builder().expected_keys(1).non_scaling().build()?;
    /// let error = filter.insert_batch(&["a", "b"]).unwrap_err();
    /// assert_eq!(error.inserted(), 1);
    /// let text = "key 1 was not inserted: the filter does not scale";
    /// assert!(error.to_string().starts_with(text));
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
            InsertErrorKind::NonScaling { capacity } => write!(
                f,
                "the filter does not scale, and has as many keys as its capacity of {capacity}"
            ),
            InsertErrorKind::NoFreeSlot => {
                f.write_str("the filter does not grow, and no fingerprint found a free slot")
            }
            InsertErrorKind::MostFilters(filters) => {
                write!(f, "the chain has {filters} filters, and takes no more keys")
            }
            InsertErrorKind::OverLimit { needed, limit } => write!(
                f,
                "with a further filter the chain would take {needed} bytes, more than its limit of {limit} bytes"
            ),
            InsertErrorKind::Growth(error) => write!(f, "the filter could not grow: {error}"),
        }
    }
}

impl Error for RedisBloomInsertError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            InsertErrorKind::Growth(error) => Some(error),
            _ => None,
        }
    }
}
