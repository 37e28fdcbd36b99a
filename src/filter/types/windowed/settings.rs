//! The settings of a window: the number and the duration of its generations, and the reason for a
//! rotation.

use super::clock::Clock;
use crate::filter::parts::load_estimate::LoadEstimate;
use crate::filter::types::bloom::Bloom;
use core::fmt;
use core::time::Duration;

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// The most generations: a lookup of an absent key searches each.
pub(super) const MAX_GENERATIONS: usize = 64;
/// 146 years, so that nanoseconds do not overflow.
pub(super) const MAX_WINDOW: Duration = Duration::from_nanos(1 << 62);

/// If the filter rotates by the number of keys, a generation ends at this multiple of its share of
/// them. The estimate is off by 1% to 2%, and the window must not be shorter for it. The generation
/// is sized for a little more, since the estimate only looks now and then.
const FULL_AT: f64 = 1.04;
const SIZED_FOR: f64 = 1.06;

/// The reason for a rotation.
#[derive(Clone)]
pub(super) enum When {
    Called,
    Aged(Clock),
    Full(LoadEstimate),
}

#[derive(Clone)]
pub(super) struct WindowSettings {
    pub(super) when: When,
    /// Nanoseconds for which a generation takes new keys; [`NEVER`] if keys do not age.
    pub(super) period: u64,
    pub(super) generations: usize,
    pub(super) expected_keys: usize,
    pub(super) renew: bool,
}

impl WindowSettings {
    /// In nanoseconds of the clock; 0 without one.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        match &self.when {
            When::Aged(clock) => clock.nanos(),
            _ => 0,
        }
    }

    /// The nanoseconds for which a key is visible at least; [`NEVER`] if keys do not age.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        self.period.saturating_mul(self.generations as u64 - 1)
    }

    /// [`window`](Self::window), if keys age.
    #[inline]
    pub(super) fn duration(&self) -> Option<Duration> {
        (self.period != NEVER).then(|| Duration::from_nanos(self.window()))
    }

    /// The keys in each full generation when the window has `keys`. `bloom` is one of them.
    #[inline]
    pub(super) fn keys_of_each(&self, keys: usize, bloom: &Bloom) -> usize {
        let share = keys.div_ceil(self.generations - 1);
        match self.when {
            // It takes no more than it is sized for.
            When::Full(_) if share > 0 => sized_for(share).min(bloom.expected_keys),
            _ => share,
        }
    }
}

/// The keys to size a generation for, if it ends when it has its share.
#[inline]
pub(super) fn sized_for(share: usize) -> usize {
    times(share, SIZED_FOR)
}

/// The share of keys for which a generation of this size is enough.
#[inline]
pub(super) fn share_of(sized_for: usize) -> usize {
    (sized_for as f64 / SIZED_FOR) as usize
}

/// The estimate of generations for this many keys each.
#[inline]
pub(super) fn estimate(share: usize) -> LoadEstimate {
    LoadEstimate::new(times(share, FULL_AT))
}

#[inline]
fn times(keys: usize, factor: f64) -> usize {
    ((keys as f64 * factor) as usize).saturating_add(1)
}

/// The settings that two windows of the same layout and hasher must share for a union: the number
/// of generations, and their period, which shows as the window that both make.
impl fmt::Display for WindowSettings {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} generations", self.generations)?;
        match self.duration() {
            Some(window) => write!(f, " for {window:?}"),
            None => f.write_str(" of any age"),
        }
    }
}
