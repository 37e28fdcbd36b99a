//! Calls of the operating system that the standard library lacks: a coarse clock for windows, and
//! locks for files that are replaced. By `libc`, which most programs have: `rustix`, whose calls
//! are safe, took 3.3 s of the processor to compile, a sixth of what this crate takes.

#[cfg(target_os = "linux")]
use core::time::Duration;
use std::fs::File;
use std::io;

/// The time of the clock's last tick, every 1 to 10 ms. Takes 5 ns, where `Instant::now` takes 20
/// to 25. A time before the clock's zero counts as zero.
#[cfg(target_os = "linux")]
#[inline]
pub(crate) fn coarse_time(clock: libc::clockid_t) -> Duration {
    // SAFETY: these are integers, valid when zero. (Some targets have more than two.)
    let mut now: libc::timespec = unsafe { core::mem::zeroed() };
    // SAFETY: writes the time to the place, which is borrowed mutably. If the system lacks the
    // clock, the time stays zero.
    unsafe { libc::clock_gettime(clock, &mut now) };
    u64::try_from(now.tv_sec).map_or(Duration::ZERO, |seconds| Duration::new(seconds, now.tv_nsec as u32))
}

/// Locks a file until it is closed. Fails with kind `WouldBlock` if it is locked already.
#[cfg(unix)]
pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    // SAFETY: accesses no memory. The borrowed file keeps the descriptor open.
    match unsafe { libc::flock(std::os::fd::AsRawFd::as_raw_fd(file), libc::LOCK_EX | libc::LOCK_NB) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(not(unix), lanebloom_rust_1_89))]
#[clippy::msrv = "1.89"]
pub(crate) fn try_lock(file: &File) -> io::Result<()> {
    Ok(file.try_lock()?)
}

#[cfg(not(any(unix, lanebloom_rust_1_89)))]
pub(crate) fn try_lock(_: &File) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
