//! The stdout that the program was started with.

use crate::identity::{FileId, regular};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

// Before `main`, the runtime opens `/dev/null` in the place of a closed stdout (`>&-`). No write to
// it fails. Later on, it looks like a `/dev/null` that the user chose.
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
pub fn open() -> io::Result<File> {
    // Relaxed: as above.
    if WAS_CLOSED.load(Ordering::Relaxed) {
        return Err(io::Error::other("stdout is closed"));
    }
    duplicate(&io::stdout())
}

/// A stream without a buffer.
#[cfg(unix)]
pub(crate) fn duplicate(stream: &impl std::os::fd::AsFd) -> io::Result<File> {
    Ok(stream.as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
pub(crate) fn duplicate(stream: &impl std::os::windows::io::AsHandle) -> io::Result<File> {
    Ok(stream.as_handle().try_clone_to_owned()?.into())
}

/// Fails if stdout goes to this regular file.
pub fn refuse(file: &File) -> io::Result<()> {
    let stdout = duplicate(&io::stdout())?;
    if regular(file)?.is_some() && regular(&stdout)?.is_some() && FileId::of_file(file)? == FileId::of_file(&stdout)? {
        return Err(io::Error::other("this file is also the output"));
    }
    Ok(())
}
