//! A filter that does and claims what a test says.

use lanebloom_guard::GuardFilter;
use lanebloom_guard::lanebloom::{BuildError, ConcurrentBloom, Funnel, SipHash13, Statistics};
use std::time::Duration;

/// It has a lag, and never room. Its statistics and its completion can be made to take long.
pub(crate) struct Claims {
    keys: ConcurrentBloom<SipHash13>,
    bytes: usize,
    figures: Box<dyn Fn() + Send + Sync>,
    complete: Box<dyn Fn() -> Result<(), BuildError> + Send + Sync>,
}

impl Claims {
    pub(crate) fn new(bytes: usize, figures: impl Fn() + Send + Sync + 'static) -> Self {
        let builder = ConcurrentBloom::builder().expected_keys(1000);
        Self {
            keys: builder.hasher(SipHash13::random()).build().unwrap(),
            bytes,
            figures: Box::new(figures),
            complete: Box::new(|| Ok(())),
        }
    }

    pub(crate) fn completed_by(self, complete: impl Fn() -> Result<(), BuildError> + Send + Sync + 'static) -> Self {
        let complete = Box::new(complete);
        Self { complete, ..self }
    }
}

impl GuardFilter for Claims {
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.keys.contains(key)
    }
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        GuardFilter::insert(&self.keys, key)
    }
    fn statistics(&self) -> Statistics {
        (self.figures)();
        self.keys.statistics()
    }
    fn false_positive_rate(&self) -> f64 {
        self.keys.false_positive_rate()
    }
    fn memory_bytes(&self) -> usize {
        self.bytes
    }
    fn has_room_for(&self, _keys: usize, _planned: usize) -> bool {
        false
    }
    fn lag(&self) -> Option<Duration> {
        Some(Duration::from_millis(1500))
    }
    fn complete(&self) -> Result<(), BuildError> {
        (self.complete)()
    }
}
