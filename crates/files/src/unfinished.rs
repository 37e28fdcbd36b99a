//! The files that a run makes beside its outputs and its state: new files until they are whole,
//! and locks. No run reads them. On Linux, a signal that ends the run removes them, as it removes
//! the temporary files of `sort` and `sed`. A run that is killed otherwise leaves them.

use lanebloom::codec;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use twox_hash::XxHash3_64;

/// The beginning of all names, and their ends: a new file of [`codec::replace_file`], an output of
/// `lanebloom-corpus`, and the lock of a state.
const BEGINNING: &str = ".lanebloom-";
const ENDS: [&str; 3] = [".new", PART, LOCK];
pub const PART: &str = ".part";
pub(crate) const LOCK: &str = ".lock";

/// The path of such a file beside another one. The hash fits beside a name of any length.
pub fn beside(path: &Path, end: &str) -> PathBuf {
    let name = path.file_name().unwrap_or(OsStr::new("")).as_encoded_bytes();
    path.with_file_name(format!("{BEGINNING}{:016x}{end}", XxHash3_64::oneshot(name)))
}

/// Whether a path has the name of such a file, or is a link to one.
pub fn is_unfinished(path: &Path) -> bool {
    let is_named = |path: &Path| {
        let name = path.file_name().unwrap_or(OsStr::new("")).as_encoded_bytes();
        name.starts_with(BEGINNING.as_bytes()) && ENDS.iter().any(|end| name.ends_with(end.as_bytes()))
    };
    is_named(path) || path.is_symlink() && path.canonicalize().is_ok_and(|target| is_named(&target))
}

/// Why a file with such a name is not read.
pub const REFUSED: &str =
    "it is an unfinished file of a run of lanebloom, which was killed or still runs: leave it out";

/// The files of this run, which are made, renamed and removed under this lock. A signal takes it,
/// and never gives it back.
static OWN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn own() -> MutexGuard<'static, Vec<PathBuf>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a file by `open`, unless another run has it. A signal removes the file until [`end`].
pub fn make<T>(path: &Path, open: impl FnOnce() -> io::Result<Option<T>>) -> io::Result<Option<T>> {
    signals::handle();
    let mut own = own();
    let made = open()?;
    own.extend(made.is_some().then(|| path.to_owned()));
    Ok(made)
}

/// Gives a file of [`make`] its name, or removes it, by `end`. From then on, no signal removes what
/// has its path.
pub fn end<T>(path: &Path, end: impl FnOnce() -> T) -> T {
    let mut own = own();
    let done = end();
    own.retain(|own| own != path);
    done
}

/// [`codec::replace_file`]. A signal removes the new file.
pub(crate) fn replace_file<T>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    signals::handle();
    let mut new = None;
    let mut own = own();
    let replaced = codec::replace_file(path, |file| {
        new = signals::path_of(file);
        own.extend(new.clone());
        drop(own);
        write(file)
    });
    if let Some(new) = new {
        // It has its name already, or it was removed. No other file gets its random name.
        end(&new, || ());
    }
    replaced
}

/// Waits for the end if a signal ends the run. Errors are then the work of the signal.
pub(crate) fn wait_for_signal() {
    drop(own());
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod signals {
    use super::{LOCK, own};
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    use signal_hook::iterator::Signals;
    use signal_hook::low_level::emulate_default_handler;
    use std::fs::{self, File};
    use std::os::fd::AsRawFd;
    use std::path::PathBuf;
    use std::process;
    use std::sync::{Once, mpsc};
    use std::thread;

    /// Handles signals from now on. Before, there is nothing to remove.
    pub(super) fn handle() {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            // `nohup` ignores signals, and so does a shell for its programs in the background. They
            // stay ignored. Without `/proc`, nobody knows which.
            let Some(ignored) = ignored() else { return };
            let all = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];
            let all = all.into_iter().filter(move |signal| ignored >> (signal - 1) & 1 == 0);
            let (ready, wait) = mpsc::channel::<()>();
            // Its own thread registers the signals: without the thread, they end the run as ever.
            let thread = thread::Builder::new().spawn(move || {
                let signals = Signals::new(all);
                drop(ready);
                if let Some(signal) = signals.ok().and_then(|mut signals| signals.forever().next()) {
                    end(signal);
                }
            });
            // Until `ready` is dropped.
            let _ = thread.map(|_| wait.recv());
        });
    }

    /// The signals that were ignored when the program started, a bit for each.
    fn ignored() -> Option<u64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
        u64::from_str_radix(mask.trim(), 16).ok()
    }

    /// Removes the files, and ends the program by the signal, as its caller expects.
    fn end(signal: i32) {
        let mut own = own();
        // Locks last: another run may begin once its lock is gone.
        own.sort_by_key(|path| path.to_string_lossy().ends_with(LOCK));
        for path in own.iter() {
            // It may have its name already.
            let _ = fs::remove_file(path);
        }
        let _ = emulate_default_handler(signal);
        process::exit(128 + signal);
    }

    /// The path of an open file.
    pub(super) fn path_of(file: &File) -> Option<PathBuf> {
        fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
    }
}

/// Signals that are ignored must stay so, and no safe call tells which are.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod signals {
    pub(super) fn handle() {}

    pub(super) fn path_of(_: &std::fs::File) -> Option<std::path::PathBuf> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// The names of the library's new files, which only its source tells.
    #[test]
    fn a_new_file_is_unfinished() {
        let folder = tempfile::tempdir().unwrap();
        let names = || Vec::from_iter(fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()));
        let path = folder.path().join("out");
        replace_file(&path, |_| {
            assert!(names().len() == 1 && is_unfinished(&names()[0]), "{:?}", names());
            assert!(!cfg!(target_os = "linux") || own().contains(&names()[0]));
            Ok(())
        })
        .unwrap();
        assert_eq!(names(), [path]);
        assert!(
            own().iter().all(|own| !own.starts_with(&folder)),
            "a signal would remove it"
        );
    }
}
