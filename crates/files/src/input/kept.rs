//! Inputs that are kept, because they are read more than once.

use super::source::{Head, Magic, decoded, is_stdin, name, open};
use crate::identity::{FileId, regular};
use crate::progress::Progress;
use anyhow::{Context, Result};
use std::env;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// How many files stay open. The others are opened when they are read, since a process may have few
/// files open: 256 on macOS. To open a file takes longer than to read a line of it.
const OPEN: usize = 16;

/// Bytes that are copied at a time.
const COPY: usize = 256 << 10;

/// The bytes of an input, which can be read again.
#[derive(Clone)]
pub struct KeptInput {
    pub name: String,
    source: Source,
    start: u64,
    pub len: u64,
}

#[derive(Clone)]
enum Source {
    /// The file of this program, in which the inputs follow one another.
    Temporary(Arc<File>),
    /// A file of the user.
    Plain {
        path: PathBuf,
        file: Option<Arc<File>>,
        /// The stamp of the file when its path was opened first.
        stamp: Stamp,
    },
}

/// Changes with the bytes of a file, or already when they are written as they were.
#[derive(Clone, PartialEq)]
pub struct Stamp {
    id: FileId,
    pub len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn new(id: FileId, metadata: &Metadata) -> Self {
        Self {
            id,
            len: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }

    fn of(file: &File) -> io::Result<Self> {
        Ok(Self::new(FileId::of_file(file)?, &file.metadata()?))
    }

    /// The stamp of the file at a path, which is not opened.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::new(FileId::of_path(path)?, &path.metadata()?))
    }
}

impl KeptInput {
    /// The inputs: of each plain file its bytes, and copies of all others in a temporary file.
    pub fn all(inputs: &[PathBuf], progress: &Arc<Progress>) -> Result<Vec<Self>> {
        let mut kept = Vec::new();
        let mut temporary: Option<Arc<File>> = None;
        let mut copied = 0;
        let mut block = vec![0; COPY];
        for path in inputs {
            let name = name(path);
            let failed = || format!("cannot read {name}");
            let file = open(path).with_context(failed)?;
            let stays_open = is_stdin(path) || kept.len() < OPEN;
            if let Some(plain) = Self::plain(path, &file, stays_open).with_context(failed)? {
                kept.push(plain);
                continue;
            }
            let mut from = decoded(file, progress).with_context(failed)?;
            let spill = || {
                format!(
                    "cannot spill {name} to a temporary file in {}",
                    env::temp_dir().display()
                )
            };
            let to = match &temporary {
                Some(to) => Arc::clone(to),
                None => Arc::clone(temporary.insert(tempfile::tempfile().with_context(spill)?.into())),
            };
            let mut len = 0;
            loop {
                // Not by `io::copy`, whose error may be that of either file.
                let read = match from.read(&mut block) {
                    Ok(0) => break,
                    Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                    other => other.with_context(failed)?,
                };
                (&*to).write_all(&block[..read]).with_context(spill)?;
                len += read as u64;
            }
            kept.push(Self {
                name,
                source: Source::Temporary(to),
                start: copied,
                len,
            });
            copied += len;
        }
        Ok(kept)
    }

    /// The rest of a file from its position on, which moves to the end; `None` if the file is to be
    /// copied.
    fn plain(path: &Path, mut file: &File, stays_open: bool) -> io::Result<Option<Self>> {
        // Files of the kernel have bytes, but no size.
        if regular(file)?.is_none_or(|metadata| metadata.len() == 0) {
            return Ok(None);
        }
        // Before its length is asked for.
        let stamp = Stamp::of(file)?;
        let start = file.stream_position()?;
        let (_, magic) = Head::read(&mut file)?;
        if magic != Magic::None {
            file.seek(SeekFrom::Start(start))?;
            return Ok(None);
        }
        let end = file.seek(SeekFrom::End(0))?;
        Ok(Some(Self {
            name: name(path),
            source: Source::Plain {
                path: path.to_owned(),
                file: if stays_open {
                    Some(file.try_clone()?.into())
                } else {
                    None
                },
                stamp,
            },
            start,
            len: end.saturating_sub(start),
        }))
    }

    /// The file, and where the bytes begin in it.
    pub fn open(&self) -> io::Result<(Arc<File>, u64)> {
        let file = match &self.source {
            Source::Temporary(file) | Source::Plain { file: Some(file), .. } => Arc::clone(file),
            Source::Plain { path, stamp, .. } => {
                // First, since a named pipe that is opened waits for its other end.
                if FileId::at(path)? != Some(stamp.id) {
                    return Err(io::Error::other("another file has its name now"));
                }
                File::open(path)?.into()
            }
        };
        Ok((file, self.start))
    }

    /// Whether the bytes may have changed.
    pub fn is_suspect(&self) -> bool {
        match &self.source {
            Source::Temporary(_) => false,
            Source::Plain { path, file, stamp } => {
                let now = match file {
                    Some(file) => Stamp::of(file),
                    None => Stamp::at(path),
                };
                now.ok().as_ref() != Some(stamp)
            }
        }
    }
}
