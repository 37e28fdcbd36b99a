//! Replacing a file such that whoever opens it, whenever, finds the old bytes or the new ones.

use alloc::format;
use core::sync::atomic::{AtomicU64, Ordering};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process;

/// Writes a file by `write` and then gives it the name `path`, in place of the file that may have it: who opens `path`, at any
/// time, gets all of the old file or all of the new one. So it is after a crash of the program or of the machine, too.
///
/// The bytes are written into a file beside, `.NAME.PROCESS-NUMBER.new`, and brought to the disk before it is renamed, and the
/// directory after (on Unix; elsewhere a directory cannot be). Where `write` or the system fails, the old file stays and the new
/// one is removed. What a program that was killed has left beside is removed by the next one that replaces the same file.
///
/// The new file has the permissions of the old one, if there is one. A symbolic link is replaced, not what it points to.
///
/// # Errors
///
/// What `write` returns, and those of the file system.
///
/// # Examples
///
/// ```
/// use lanebloom::codec::replace_file;
/// use lanebloom::{ConcurrentBloom, GuavaBloom};
/// use std::fs::{self, File};
/// use std::io;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("seen");
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// replace_file(&path, |file| filter.write_to(file))?;
/// filter.insert("a");
/// replace_file(&path, |file| filter.write_to(file))?;
/// assert!(ConcurrentBloom::read_from(File::open(&path)?, 1 << 20)?.contains("a"));
///
/// // Guava's stream; and a failure, after which the file is as before.
/// let filter = GuavaBloom::create(1000, 0.01)?;
/// replace_file(&path, |file| filter.write_to(file))?;
/// assert!(replace_file(&path, |_| Err::<(), _>(io::Error::other("no"))).is_err());
/// assert_eq!(fs::read(&path)?, filter.to_bytes());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replace_file<T>(path: impl AsRef<Path>, write: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    replace(path.as_ref(), write)
}

fn replace<T>(path: &Path, write: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    let (Some(name), Some(directory)) = (path.file_name(), path.parent()) else {
        return Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("{} is no path of a file", path.display()),
        ));
    };
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    remove_leftovers(directory, name);
    let mut new = NewFile::create(directory, name)?;
    let result = write(&mut new.file)?;
    if let Ok(old) = fs::metadata(path) {
        new.file.set_permissions(old.permissions())?;
    }
    new.file.sync_all()?;
    fs::rename(&new.path, path)?;
    new.is_there = false;
    // Else the disk may still have the old name, though never half a file.
    #[cfg(unix)]
    File::open(directory)?.sync_all()?;
    Ok(result)
}

/// A file that is being written, locked as long as that takes, and removed unless it was renamed.
struct NewFile {
    file: File,
    path: PathBuf,
    is_there: bool,
}

impl NewFile {
    fn create(directory: &Path, name: &OsStr) -> io::Result<Self> {
        // Relaxed: only that no number is given out twice matters.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let mut beside = prefix(name);
            beside.push(format!("{}-{number}{SUFFIX}", process::id()));
            let path = directory.join(beside);
            let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                // Of a program that had this process's number.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                other => other?,
            };
            let new = Self {
                file,
                path,
                is_there: true,
            };
            match new.file.lock() {
                // Somebody may have taken it for a leftover before it was locked. From now on nobody does.
                Ok(()) if !new.path.exists() => {}
                Ok(()) => return Ok(new),
                // Without locks nobody removes anything.
                Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(new),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if self.is_there {
            // What is left is removed by the next one.
            let _ = fs::remove_file(&self.path);
        }
    }
}

const SUFFIX: &str = ".new";

/// What the names of new files for `name` begin with.
fn prefix(name: &OsStr) -> std::ffi::OsString {
    let mut prefix = std::ffi::OsString::from(".");
    prefix.push(name);
    prefix.push(".");
    prefix
}

/// Removes the new files for `name` that nobody writes any more. Whatever fails here fails nothing else.
fn remove_leftovers(directory: &Path, name: &OsStr) {
    let prefix = prefix(name);
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let entry_name = entry.file_name();
        let middle = entry_name
            .as_encoded_bytes()
            .strip_prefix(prefix.as_encoded_bytes())
            .and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes()));
        let is_ours = |middle: &[u8]| {
            let mut numbers = middle.split(|&byte| byte == b'-');
            let mut is_number = || {
                numbers
                    .next()
                    .is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
            };
            is_number() && is_number() && numbers.next().is_none()
        };
        if middle.is_some_and(is_ours)
            && let Ok(file) = OpenOptions::new().write(true).open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}
