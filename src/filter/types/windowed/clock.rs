//! The clocks by which keys age.

#[cfg(target_os = "linux")]
use crate::system::coarse_time;
use alloc::sync::Arc;
use core::fmt;
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

impl fmt::Debug for Clock {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Monotonic => "Monotonic",
            Self::TimeOfDay => "TimeOfDay",
            Self::Supplied(_) => "Supplied",
        })
    }
}

#[cfg(target_os = "linux")]
#[inline]
fn monotonic() -> Duration {
    coarse_time(libc::CLOCK_MONOTONIC_COARSE)
}

#[cfg(not(target_os = "linux"))]
#[inline]
fn monotonic() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(target_os = "linux")]
#[inline]
fn since_1970() -> Duration {
    coarse_time(libc::CLOCK_REALTIME_COARSE)
}

#[cfg(not(target_os = "linux"))]
#[inline]
fn since_1970() -> Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
