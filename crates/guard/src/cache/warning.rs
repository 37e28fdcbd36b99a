//! Warnings that may be due thousands of times a second, and are logged once.

use std::mem;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// At most one warning passes in this time.
const PAUSE: Duration = Duration::from_secs(1);

/// A kind of warnings: when the last one passed, and the number of those held back since.
#[derive(Default)]
pub(super) struct Warning(Mutex<(Option<Instant>, u64)>);

impl Warning {
    /// Whether a warning may be logged now: returns the number of those held back before it.
    pub(super) fn pass(&self) -> Option<u64> {
        let (passed, held_back) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if passed.is_some_and(|at| at.elapsed() < PAUSE) {
            *held_back += 1;
            return None;
        }
        *passed = Some(Instant::now());
        Some(mem::take(held_back))
    }
}
