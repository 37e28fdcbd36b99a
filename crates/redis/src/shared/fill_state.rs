//! A node's knowledge about filling its set: the part of the thread, which exchanges it with the
//! server, and the part of the callers of `fill_once`. `fill_once.rs` has the rules.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How long a lease lasts after the last exchange of its node.
const LEASE: Duration = Duration::from_secs(10);
/// The longest pause of a node that holds the lease, or waits for it.
pub(super) const RENEWAL: Duration = Duration::from_millis(2500);

/// The part of the thread: what it says to the server, and what the server has answered.
#[derive(Debug, Default)]
pub(super) struct FillState {
    /// Gives a random number, which names this node in the lease.
    token: RandomState,
    /// Whether a caller of `fill_once` fills or waits.
    pub(super) wants: bool,
    /// Whether a source of this node has inserted all keys.
    has_all: bool,
    pub(super) holds: bool,
    pub(super) is_filled: bool,
    /// The server's era, which changes when keys were lost.
    era: Option<Vec<u8>>,
    /// How often the set has needed a source that begins from now on: after each loss, and for each
    /// generation.
    pub(super) reading: u64,
    /// The number of this generation of a set, from 0 in the order in which this node meets them.
    pub(super) generation: u64,
    /// Whether lookups find all keys in an older generation, until this one is filled.
    pub(super) is_covered: bool,
    /// The next generation, if a caller wants one.
    pub(super) rebuild: Option<Rebuild>,
}

/// A generation that a caller wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rebuild {
    pub(super) expected_keys: u64,
    /// The least age of the one before it.
    pub(super) age: Duration,
}

impl Rebuild {
    /// Whatever the age of the one before it.
    pub(super) fn now(expected_keys: u64) -> Self {
        let age = Duration::ZERO;
        Self { expected_keys, age }
    }

    /// The wish of both. (One that is wanted at any age is wanted.)
    pub(super) fn or(self, other: Option<Self>) -> Self {
        let age = other.map_or(self.age, |other| self.age.min(other.age));
        Self { age, ..self }
    }
}

impl FillState {
    /// The node's part in filling the generation after this one.
    pub(super) fn next(&self, is_covered: bool) -> Self {
        Self {
            wants: self.wants,
            generation: self.generation + 1,
            reading: self.reading + 1,
            is_covered,
            ..Self::default()
        }
    }

    /// Whether lookups find all keys.
    pub(super) fn is_complete(&self) -> bool {
        self.is_filled || self.is_covered
    }

    /// The node's part as the script takes it, with the ms of the lease.
    pub(super) fn says(&self, is_last: bool) -> (String, u64) {
        let token = || self.token.hash_one("lease").to_string();
        if self.has_all && !self.is_filled && is_last {
            (String::from("all"), 0)
        } else if self.wants {
            (token(), LEASE.as_millis() as u64)
        } else if self.holds {
            (token(), 0)
        } else {
            (String::new(), 0)
        }
    }

    /// The last era that this node has heard of.
    pub(super) fn era(&self) -> &[u8] {
        self.era.as_deref().unwrap_or_default()
    }

    /// Takes the era of an answer. If it is a new one, keys were lost that perhaps neither this
    /// node nor its source has.
    pub(super) fn comes_to(&mut self, era: &[u8]) {
        if self.era.as_deref().is_some_and(|known| known != era) {
            self.reading += 1;
            (self.has_all, self.is_filled, self.is_covered) = (false, false, false);
        }
        self.era = Some(era.into());
    }

    /// Takes the first word of an answer, after everything was pulled.
    pub(super) fn hears(&mut self, answer: &[u8]) {
        self.holds = answer == b"holds";
        self.is_filled = answer == b"filled";
    }
}

/// The part of the callers of `fill_once`.
#[derive(Debug, Default)]
pub(super) struct FillCalls {
    /// Calls that have not returned.
    pub(super) calls: usize,
    /// Whether a source runs. The calls of one node take turns.
    pub(super) runs: bool,
    /// The reading that a source has ended.
    pub(super) has_all: Option<u64>,
    pub(super) holds: bool,
    /// Whether the newest generation is filled.
    pub(super) is_filled: bool,
    /// The newest generation, and the present reading.
    pub(super) generation: u64,
    pub(super) reading: u64,
    /// A generation after which a caller wants another.
    pub(super) rebuild: Option<(u64, Rebuild)>,
    pub(super) fills: u64,
    pub(super) failed: u64,
}

impl FillCalls {
    /// A caller wants a generation after the present one.
    pub(super) fn wants(&mut self, wanted: Rebuild) {
        let generation = self.generation;
        let before = self.rebuild.filter(|(after, _)| *after == generation);
        self.rebuild = Some((generation, wanted.or(before.map(|(_, before)| before))));
    }

    /// Before a pass: what the source has inserted by now, the pass pushes.
    pub(super) fn tell(&mut self, fill_state: &mut FillState) {
        fill_state.wants = self.calls > 0;
        // A pass of a node without calls ends the lease: a call that begins meanwhile waits.
        self.holds &= fill_state.wants;
        fill_state.has_all |= self.has_all == Some(fill_state.reading);
        // If there is another one already, the caller has it.
        let wanted = self.rebuild.take();
        let wanted = wanted.filter(|(after, _)| *after == fill_state.generation);
        if let Some((_, wanted)) = wanted {
            fill_state.rebuild = Some(wanted.or(fill_state.rebuild));
        }
    }

    /// After a pass that succeeded.
    pub(super) fn hears(&mut self, fill_state: &FillState) {
        (self.holds, self.is_filled) = (fill_state.holds, fill_state.is_filled);
        self.generation = fill_state.generation;
        self.reading = fill_state.reading;
    }

    /// Whether a call may run its source.
    pub(super) fn has_turn(&self) -> bool {
        self.holds && !self.runs && self.has_all != Some(self.reading)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last call has returned, and the pass that ends the lease is under way.
    #[test]
    fn a_call_that_begins_while_the_lease_ends_waits_for_it() {
        let (mut calls, mut fill_state) = (FillCalls::default(), FillState::default());
        calls.calls = 1;
        calls.tell(&mut fill_state);
        fill_state.hears(b"holds");
        calls.hears(&fill_state);
        assert!(calls.has_turn());
        calls.calls = 0;
        calls.tell(&mut fill_state);
        assert_eq!(fill_state.says(true).1, 0);
        calls.calls = 1;
        assert!(!calls.has_turn());
        // The next pass asks for the lease again.
        fill_state.hears(b"open");
        calls.hears(&fill_state);
        calls.tell(&mut fill_state);
        assert!(fill_state.says(true).1 > 0);
    }
}
