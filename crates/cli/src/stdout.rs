//! The stdout that the program was started with.

use crate::identity::FileId;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// Before `main`, the runtime opens `/dev/null` in the place of a closed stdout (`>&-`). No write to
// it fails. Later on, nothing tells it from the `/dev/null` that a user asked for.
#[cfg(unix)]
ctor::declarative::ctor! {
    // SAFETY: this runs before the standard library is ready, and uses none of it: one system call
    // and one atomic store.
    #[ctor(unsafe)]
    fn look_at_stdout() {
        let flags = rustix::io::fcntl_getfd(rustix::stdio::stdout());
        // Relaxed: `main` runs after this on the same thread.
        WAS_CLOSED.store(flags.is_err(), Ordering::Relaxed);
    }
}

/// Stdout without a buffer. Fails if it was closed.
pub(crate) fn open() -> io::Result<File> {
    // Relaxed: as above.
    if WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::other("stdout is closed"));
    }
    duplicate()
}

fn duplicate() -> io::Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Fails if stdout goes to this regular file.
pub(crate) fn refuse(file: &Metadata) -> io::Result<()> {
    if file.is_file() && FileId::of(file) == FileId::of_file(&duplicate()?)? {
        return Err(io::Error::other("this file is also the output"));
    }
    Ok(())
}
