//! Single lookups and inserts as values: the types of the functions, and the data beside hash and
//! lines. `tables.rs` has the functions.

use crate::geometry::pattern::Pattern;
use crate::words::bits::{Hint, Lines};
use crate::words::sync::AtomicU64;

// (The order of the arguments brings the hash into the register that the multiplication needs.)
pub(super) type Contains<T> = unsafe fn(Lines<'_, T>, u64, &Probe<T>) -> bool;
pub(super) type Insert = unsafe fn(Lines<'_, AtomicU64>, u64, &Pattern) -> bool;

/// The lines that a single lookup asks for a key, each by the lookup in one line. The functions of
/// the tables are compiled for each kind: two calls by pointers take 1.25 times as long (Zen 5).
pub(crate) trait Asked: 'static {
    /// Whether the lines that it asks hold the hash. There is a hint if they are beyond the caches.
    fn hold<T>(lines: Lines<'_, T>, hash: u64, hint: Option<Hint>, line: impl Fn(Lines<'_, T>, u64) -> bool) -> bool;

    /// Inserts the hash into each of them; returns whether that changed one.
    fn insert(lines: Lines<'_, AtomicU64>, hash: u64, line: impl Fn(Lines<'_, AtomicU64>, u64) -> bool) -> bool;
}

/// A key has one line.
pub(crate) struct One;

impl Asked for One {
    #[inline(always)]
    fn hold<T>(lines: Lines<'_, T>, hash: u64, _: Option<Hint>, line: impl Fn(Lines<'_, T>, u64) -> bool) -> bool {
        line(lines, hash)
    }

    #[inline(always)]
    fn insert(lines: Lines<'_, AtomicU64>, hash: u64, line: impl Fn(Lines<'_, AtomicU64>, u64) -> bool) -> bool {
        line(lines, hash)
    }
}

/// The data of a lookup beside hash and lines.
#[derive(Debug)]
pub(super) struct Probe<T> {
    pub(super) pattern: Pattern,
    /// The lookup in one line, where a batch has no function of its own.
    pub(super) contains: Contains<T>,
    /// The hint by which the lines of a few hashes are prefetched, if the filter is beyond the
    /// caches.
    pub(super) hint: Option<Hint>,
}

impl<T> Clone for Probe<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Probe<T> {}

/// The single calls within a loop that is compiled for this CPU, for a key with all its lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    pub(super) contains: Contains<AtomicU64>,
    /// If there is none, the filter's own insert is called.
    pub(super) insert: Option<Insert>,
}
