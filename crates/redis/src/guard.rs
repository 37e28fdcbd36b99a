//! Shared sets as the filter of a guard, which asks the local copy.

use crate::{SharedBloom, SharedWindow};
use lanebloom::{ConcurrentBloom, GuardFilter, KeyHasher, WindowedBloom};
use std::time::Duration;

impl<S: KeyHasher> GuardFilter for SharedBloom<S> {
    type Answer = bool;
    type Total = usize;
    type Local = ConcurrentBloom<S>;

    #[inline]
    fn local(&self) -> &Self::Local {
        self
    }

    fn lag(&self) -> Option<Duration> {
        Some(self.stats().lag)
    }
}

impl<S: KeyHasher + Clone> GuardFilter for SharedWindow<S> {
    type Answer = bool;
    type Total = usize;
    type Local = WindowedBloom<S>;

    #[inline]
    fn local(&self) -> &Self::Local {
        self
    }

    fn lag(&self) -> Option<Duration> {
        Some(self.stats().lag)
    }
}
