//! The lifetime of a set, which all of its nodes must agree on.

use std::fmt;
use std::time::Duration;

/// For how long a set remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lifetime {
    Forever,
    /// In ms since 1970.
    Until(u64),
    /// `period` is the nanoseconds of a generation.
    Window {
        generations: u64,
        period: u64,
    },
}

/// Continues a sentence that begins with "the set".
impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forever => f.write_str("never expires"),
            Self::Until(time) => write!(f, "expires at {time} ms"),
            Self::Window { generations, period } => {
                let period = Duration::from_nanos(*period);
                write!(f, "is a window by {generations} generations of {period:?}")
            }
        }
    }
}
