//! The clocks by which keys age.

use alloc::sync::Arc;
use core::time::Duration;

#[derive(Clone)]
pub(super) enum Clock {
    Monotonic,
    TimeOfDay,
    Supplied(Arc<dyn Fn() -> Duration + Send + Sync>),
}

impl Clock {
    #[inline]
    pub(super) fn nanos(&self) -> u64 {
        let now = match self {
            Self::Monotonic => monotonic(),
            Self::TimeOfDay => since_1970(),
            Self::Supplied(now) => now(),
        };
        // The greatest number is `NEVER`.
        u64::try_from(now.as_nanos()).map_or(u64::MAX - 1, |nanos| nanos.min(u64::MAX - 1))
    }
}

/// Takes 5 ns, where `Instant::now` takes 20 to 25. Tells the time of the last tick, every 1 to 10
/// ms.
#[cfg(target_os = "linux")]
#[inline]
fn monotonic() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(not(target_os = "linux"))]
fn monotonic() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Takes 5 ns, as [`monotonic`].
#[cfg(target_os = "linux")]
fn since_1970() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::RealtimeCoarse);
    // A time before 1970 counts as 1970.
    u64::try_from(now.tv_sec).map_or(Duration::ZERO, |seconds| Duration::new(seconds, now.tv_nsec as u32))
}

#[cfg(not(target_os = "linux"))]
fn since_1970() -> Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
