//! A filter file that is kept from one run to the next.

use crate::identity::FileId;
#[cfg(unix)]
use crate::identity::open_locked;
use crate::output;
use crate::positioned::FileExt;
use crate::seen::{self, RATE, Seen};
use crate::stdout;
use crate::unfinished::{self, LOCK, replace_file};
use anyhow::{Context, Result, bail};
use lanebloom::{Murmur3, ScalableBloom};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// The file, which other runs cannot use meanwhile.
pub struct StateFile {
    path: PathBuf,
    /// `None` if there is no such file yet.
    file: Option<File>,
    _lock: Lock,
}

impl StateFile {
    /// Locks and opens the file. Fails early if it could not be replaced in the end.
    pub fn open(path: &Path) -> Result<Self> {
        let at = || format!("the state {}", path.display());
        // This refuses a named pipe, which would wait for its other end when it is opened.
        let path = &output::target(path).with_context(at)?;
        let Some(lock) = Lock::take(path).with_context(at)? else {
            bail!("{} is in use by another run: wait for its end", at());
        };
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            other => Some(other.with_context(at)?),
        };
        if let Some(file) = &file {
            let metadata = file.metadata().with_context(at)?;
            stdout::refuse(file).with_context(at)?;
            if metadata.permissions().readonly() {
                bail!("{} is read-only", at());
            }
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            _lock: lock,
        })
    }

    /// The filter in the file, or an empty one.
    pub fn load(&self, expected: Option<usize>, rate: Option<f64>) -> Result<ScalableBloom> {
        match &self.file {
            Some(file) => seen::read_from(file, rate).with_context(|| format!("the state {}", self.path.display())),
            None => seen::empty(expected, rate.unwrap_or(RATE), Murmur3::default()),
        }
    }

    /// Replaces the file. If this fails, the old one is still there. Calls `before` with the new
    /// file's [`id`](Self::id) just before it gets its name.
    pub fn save(&mut self, seen: &Seen, before: impl FnOnce(Id) -> Result<()>) -> Result<()> {
        let Self { path, file, .. } = self;
        let opened = file.as_ref().map(FileId::of_file).transpose()?;
        // By a program that does not know the lock.
        if FileId::at(path)? != opened {
            bail!(
                "the state {} was replaced during the run, and is left as it is",
                path.display()
            );
        }
        // Before Windows 10, no open file is replaced.
        drop(file.take());
        let failed = format!("cannot replace the state {}", path.display());
        let replaced = replace_file(path, |file| {
            output::buffered(file, |writer| seen.write_to(writer))?;
            before(id_of(file)?).map_err(io::Error::other)
        });
        replaced.context(failed.clone())?;
        *file = Some(File::open(path).context(failed)?);
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file's id, or `None` before the first save.
    pub fn id(&self) -> Result<Option<Id>> {
        let id = self.file.as_ref().map(id_of).transpose();
        id.with_context(|| format!("the state {}", self.path.display()))
    }
}

/// The size of a filter's file and a hash of its last bytes, which hold the checksum of the newest
/// layer. So it differs after each run that remembers something.
pub type Id = (u64, u64);

/// The id of a filter's file.
pub(crate) fn id_of(file: &File) -> io::Result<Id> {
    let len = file.metadata()?.len();
    let mut last = vec![0; len.min(LAST as u64) as usize];
    file.read_exact_at(&mut last, len.saturating_sub(LAST as u64))?;
    Ok((len, XxHash3_64::oneshot(&last)))
}

/// Bytes whose hash is part of a state's id.
const LAST: usize = 4096;

/// A locked file beside the state. The state itself cannot be the lock: before the first run it is
/// not there, and each run replaces it. On Unix, a killed run leaves the file, unlocked, and the
/// next run with the state removes it.
struct Lock {
    #[cfg(unix)]
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// `None` if another run holds it.
    fn take(state: &Path) -> Result<Option<Self>> {
        let path = unfinished::beside(state, LOCK);
        let lock = unfinished::make(&path, || Self::open(&path));
        lock.with_context(|| format!("cannot lock {}", path.display()))
    }

    #[cfg(unix)]
    fn open(path: &Path) -> io::Result<Option<Self>> {
        let mut options = File::options();
        // With `read`, since a named pipe that is opened for both waits for no other end.
        options.read(true).write(true).create(true).truncate(false);
        let file = open_locked(path, &options)?;
        Ok(file.map(|_file| Self {
            path: path.to_owned(),
            _file,
        }))
    }

    /// Windows removes the file when it is closed, also for a killed run. So it is there only while
    /// a run holds it.
    #[cfg(windows)]
    fn open(path: &Path) -> io::Result<Option<Self>> {
        use std::os::windows::fs::OpenOptionsExt;
        const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
        // Another run has it, or is closing it.
        const ERROR_SHARING_VIOLATION: i32 = 32;
        const ERROR_ACCESS_DENIED: i32 = 5;
        let mut options = File::options();
        options.write(true).create(true).truncate(false);
        match options.share_mode(0).custom_flags(FILE_FLAG_DELETE_ON_CLOSE).open(path) {
            Ok(_file) => Ok(Some(Self { _file })),
            Err(error) => match error.raw_os_error() {
                Some(ERROR_SHARING_VIOLATION | ERROR_ACCESS_DENIED) => Ok(None),
                _ => Err(error),
            },
        }
    }
}

#[cfg(unix)]
impl Drop for Lock {
    fn drop(&mut self) {
        // If this fails, the file does no harm.
        let _ = unfinished::end(&self.path, || std::fs::remove_file(&self.path));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    /// Whenever a holder removes the file, between the opening and the locking of others too.
    #[test]
    fn a_lock_has_one_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let (holders, takes) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Some(lock) = Lock::open(&path).unwrap() {
                            takes.fetch_add(1, Ordering::SeqCst);
                            assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                            thread::yield_now();
                            holders.fetch_sub(1, Ordering::SeqCst);
                            drop(lock);
                        }
                    }
                });
            }
        });
        assert!(takes.into_inner() > 0);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
    }
}
