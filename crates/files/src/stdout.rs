//! The stdout that the program was started with.

use crate::identity::{FileId, regular};
use std::fs::{self, File};
use std::io;
use std::path::Path;
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

/// Why a file that is there is not replaced, if a descriptor of this program leads to it, under any
/// name: what the program writes to it, and what others wrote, would be lost.
pub(crate) fn is_open_as(path: &Path) -> Option<&'static str> {
    let is_it = |stream: io::Result<File>| {
        let id = stream.and_then(|stream| FileId::of_file(&stream));
        id.is_ok_and(|id| FileId::of_path(path).is_ok_and(|file| file == id))
    };
    if is_it(duplicate(&io::stdout())) {
        return Some("stdout goes to this file; `-o -` writes to stdout");
    }
    if is_it(duplicate(&io::stderr())) {
        return Some("stderr goes to this file");
    }
    is_descriptor(path).then_some("it is an open descriptor: give the path of its file")
}

/// Whether a path leads to a descriptor of a program: `/dev/fd/3` is a link to one on Linux.
fn is_descriptor(path: &Path) -> bool {
    // Linux follows as many links.
    let mut path = path.to_owned();
    for _ in 0..40 {
        let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        if folder.is_some_and(|folder| folder.starts_with("/proc") && folder.ends_with("fd")) {
            return true;
        }
        match fs::read_link(&path) {
            Ok(link) => path.set_file_name(link),
            Err(_) => break,
        }
    }
    false
}

/// Fails if stdout goes to this regular file.
pub fn refuse(file: &File) -> io::Result<()> {
    let stdout = duplicate(&io::stdout())?;
    if regular(file)?.is_some() && regular(&stdout)?.is_some() && FileId::of_file(file)? == FileId::of_file(&stdout)? {
        return Err(io::Error::other("this file is also the output"));
    }
    Ok(())
}
