//! Identifies the file of a path or a handle, whatever its name.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device and the number of a file. Another file may get the same ones once this one is removed
/// and no handle of it is open.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub(crate) struct FileId(u64, u64);

impl FileId {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self(metadata.dev(), metadata.ino())
    }

    pub(crate) fn of_file(file: &File) -> io::Result<Self> {
        Ok(Self::of(&file.metadata()?))
    }

    /// That of the file that a path names, which is not opened; `None` if there is none.
    pub(crate) fn at(path: &Path) -> io::Result<Option<Self>> {
        match fs::metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            other => Ok(Some(Self::of(&other?))),
        }
    }
}
