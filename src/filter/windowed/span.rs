//! The limits and the span of a window. The filter checks them and errors print them. This file
//! imports nothing of the crate.

use core::fmt;
use core::time::Duration;

/// The most generations: a lookup of an absent key searches each.
pub(crate) const MAX_GENERATIONS: usize = 64;
/// 146 years, so that nanoseconds do not overflow.
pub(crate) const MAX_WINDOW: Duration = Duration::from_nanos(1 << 62);

/// The number of generations and the window's duration. Two windows with the same span, layout and
/// hasher have a union.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WindowSpan {
    pub(super) generations: usize,
    pub(super) window: Option<Duration>,
}

impl fmt::Display for WindowSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} generations", self.generations)?;
        match self.window {
            Some(window) => write!(f, " for {window:?}"),
            None => f.write_str(" of any age"),
        }
    }
}
