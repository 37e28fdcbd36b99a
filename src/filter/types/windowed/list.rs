//! The list of generations that a reader sees at one moment.

use crate::filter::traits::Engine;
use crate::filter::types::bloom::{Bloom, ConcurrentBloom};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The clock stepped back if it is before the beginning of the newest generation by more than this
/// part of a period.
const SLACK: u64 = 4;

/// Times are in nanoseconds of the clock. Without a clock they are 0 and
/// [`NEVER`](super::settings::NEVER).
pub(super) struct List {
    /// The newest first; never empty. No generation expires later than a newer one.
    pub(super) generations: Vec<Generation>,
    /// The newest generation is for keys that are inserted from `begin` on...
    pub(super) begin: u64,
    /// ...and before `until`.
    pub(super) until: u64,
}

#[derive(Clone)]
pub(super) struct Generation {
    /// The end of its keys' visibility.
    pub(super) expires: u64,
    /// Without a hasher: the window's filter hashes keys.
    pub(super) bloom: Arc<ConcurrentBloom<()>>,
}

impl Generation {
    #[inline]
    pub(super) fn has(&self, hash: u64) -> bool {
        self.bloom.engine.contains(hash)
    }
}

impl List {
    /// A list to be filled. It has room for one generation more than `count`, which the clock needs
    /// to step back.
    #[inline]
    pub(super) fn empty(count: usize) -> Self {
        Self {
            generations: Vec::with_capacity(count + 1),
            begin: 0,
            until: 0,
        }
    }

    #[inline]
    pub(super) fn newest(&self) -> &Bloom {
        &self.generations[0].bloom.engine
    }

    /// Whether the newest generation is the one for keys that are inserted at `now`.
    #[inline]
    pub(super) fn takes(&self, now: u64, period: u64) -> bool {
        now < self.until && self.begin.saturating_sub(now) <= period / SLACK
    }

    /// The index of the oldest generation that expires then or later; 0 if there is none.
    #[inline]
    pub(super) fn at_least(&self, expires: u64) -> usize {
        let place = self.generations.iter().rposition(|one| one.expires >= expires);
        place.unwrap_or(0)
    }

    /// The visible generations, the newest first.
    #[inline]
    pub(super) fn live(&self, now: u64) -> &[Generation] {
        // Nearly always all are visible, so the search begins with the oldest.
        let mut live = &self.generations[..];
        loop {
            match live {
                [newer @ .., oldest] if now >= oldest.expires => live = newer,
                _ => return live,
            }
        }
    }

    /// The visible generations but the newest.
    #[inline]
    pub(super) fn older(&self, now: u64) -> &[Generation] {
        self.live(now).get(1..).unwrap_or(&[])
    }

    /// The expiry times of generations that this list lacks. With them, for each wanted time, the
    /// latest first, some generation expires then or less than a period later. The list gets no
    /// more than `most` generations.
    pub(super) fn missing(&self, wanted: impl Iterator<Item = u64>, period: u64, most: usize) -> Vec<u64> {
        let newest = self.generations[0].expires;
        let mut missing = Vec::new();
        for time in wanted.filter(|time| *time < newest) {
            let serves = |expires: u64| expires >= time && expires - time < period;
            let is_there = self.generations.iter().any(|one| serves(one.expires));
            let has_room = self.generations.len() + missing.len() < most;
            if !is_there && !missing.last().is_some_and(|last| serves(*last)) && has_room {
                // In the rhythm of the list.
                missing.push(time + (newest - time) % period);
            }
        }
        missing
    }
}
