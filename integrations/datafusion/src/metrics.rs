//! Counters of the predicates of one registration.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counters of what the predicates of one [`register`](crate::register) have done in this process.
#[derive(Debug, Default)]
pub struct Metrics {
    pub(crate) rows_in: AtomicU64,
    pub(crate) rows_pruned: AtomicU64,
    pub(crate) rows_skipped: AtomicU64,
    pub(crate) filters: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) planned: AtomicU64,
}

// Relaxed: counters guard nothing.
impl Metrics {
    /// Rows that were looked up.
    pub fn rows_in(&self) -> u64 {
        self.rows_in.load(Relaxed)
    }

    /// Rows for which the predicate returned false or NULL.
    pub fn rows_pruned(&self) -> u64 {
        self.rows_pruned.load(Relaxed)
    }

    /// Rows that were not looked up, because the filter had pruned too few before.
    pub fn rows_skipped(&self) -> u64 {
        self.rows_skipped.load(Relaxed)
    }

    /// Filters that were read.
    pub fn filters(&self) -> u64 {
        self.filters.load(Relaxed)
    }

    /// Bytes of these filters.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Filters that [`JoinFilters`](crate::JoinFilters) put below joins.
    pub fn planned(&self) -> u64 {
        self.planned.load(Relaxed)
    }

    /// The share of the rows that passed, from 0 to 1; 0 before the first row.
    pub fn pass_rate(&self) -> f64 {
        let rows = self.rows_in();
        if rows == 0 {
            return 0.0;
        }
        rows.saturating_sub(self.rows_pruned()) as f64 / rows as f64
    }
}
