//! Identifies the file of a path or a handle, whatever its name, and locks it.

#[cfg(unix)]
use std::fs::OpenOptions;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::path::Path;

/// The device and the number of a file. Another file may get the same ones once this one is removed
/// and no handle of it is open.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct FileId(u64, u64);

impl FileId {
    #[cfg(unix)]
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        Ok(Self::of(&file.metadata()?))
    }

    /// The id of the file at a path, which is not opened; `None` if there is none.
    pub fn at(path: &Path) -> io::Result<Option<Self>> {
        match Self::of_path(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            other => other.map(Some),
        }
    }

    #[cfg(unix)]
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&path.metadata()?))
    }

    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(metadata.dev(), metadata.ino())
    }

    #[cfg(windows)]
    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        Self::of(file)
    }

    #[cfg(windows)]
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        Self::of(&winapi_util::Handle::from_path_any(path)?)
    }

    #[cfg(windows)]
    fn of(handle: impl winapi_util::AsHandleRef) -> io::Result<Self> {
        let information = winapi_util::file::information(handle)?;
        Ok(Self(information.volume_serial_number(), information.file_index()))
    }
}

/// Opens and locks a file; `None` if another run holds it.
#[cfg(unix)]
pub fn open_locked(path: &Path, options: &OpenOptions) -> io::Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};
    loop {
        let file = options.open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            // A file system without locks.
            Err(error) if error.kind() == ErrorKind::Unsupported => {}
            other => other?,
        }
        // Otherwise another run ended between the two, and removed or renamed the file.
        if FileId::at(path)? == Some(FileId::of_file(&file)?) {
            return Ok(Some(file));
        }
    }
}

/// The metadata of a regular file; `None` for a directory, a pipe or a terminal. (Windows has no
/// metadata of the last two.)
pub fn regular(file: &File) -> io::Result<Option<Metadata>> {
    match file.metadata() {
        Err(_) if cfg!(windows) => Ok(None),
        other => Ok(Some(other?).filter(Metadata::is_file)),
    }
}
