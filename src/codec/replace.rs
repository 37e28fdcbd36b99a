//! Replaces a file as a whole, and removes a file for good.

use crate::system::try_lock;
use alloc::format;
use core::hash::BuildHasher;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::RandomState;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// Writes a new file by `write`, and replaces the file `path` by it, if there is one. A program
/// that opens `path` at any time gets all of the old file or all of the new one, even after a crash
/// of the program or of the machine.
///
/// The bytes go into a new file in the same directory, `.lanebloom-HASH-RANDOM.new`, where `HASH`
/// is the hash of the name. It is open for reading too, so `write` can read what it wrote. This
/// function syncs the file, renames it, and then syncs the directory (on Unix only).
///
/// # Leftovers
///
/// A killed program leaves its new file behind. The next call for the same `path` removes it, if it
/// is a regular file with such a name and is not locked. A running writer holds a lock on its file.
/// Leftovers stay where files cannot be locked: on some file systems, and outside Unix in a program
/// that was compiled by Rust 1.88 or older.
///
/// # Permissions and owner
///
/// On Unix, a new file in place of an old one is open to its owner only (mode 0600) until it is
/// whole. Then it gets the owner, the group and the permissions (`rwx` for each) of the old file.
/// Only root can change a file's owner: the new file of another user belongs to that user. If the
/// user cannot give it the old group either, the group gets no permissions. Access control lists
/// and extended attributes are not copied. Other names (hard links) of the old file keep the old
/// bytes. If `path` names no file yet, or a link, the new file has the permissions of any created
/// file.
///
/// A symbolic link is replaced; its target stays.
///
/// # Errors
///
/// Fails with kind `InvalidInput` if `path` names a device, a pipe, a socket or a directory, or a
/// link to one: they would be lost to every program that needs them. (`/dev/stdout` is such a link.
/// Open it and write to it.)
///
/// Fails with the error of `write` or of the file system. Then the old file is still there, and the
/// new one is removed. On Unix the directory must be readable, since the sync needs it open;
/// otherwise nothing is written.
///
/// On Windows the rename may fail with kind `PermissionDenied` while a program has the old file
/// mapped, and before Windows 10 also while a program has it open.
///
/// If the sync of the directory fails (on a broken disk, say), the new file is in place, but a
/// crash of the machine may bring the old one back. If a file system cannot sync directories at
/// all, this is not an error.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::codec::replace_file;
/// use std::fs::{self, File};
/// use std::io;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("seen");
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// replace_file(&path, |file| filter.snapshot().write_to(file))?;
/// filter.insert("a");
/// replace_file(&path, |file| filter.snapshot().write_to(file))?;
/// // The filter takes 1 MiB at most.
/// assert!(ConcurrentBloom::read_from(File::open(&path)?, 1 << 20)?.contains("a"));
///
/// // After a failure the file is as before.
/// assert!(replace_file(&path, |_| Err::<(), _>(io::Error::other("no"))).is_err());
/// assert_eq!(fs::read(&path)?, filter.snapshot().to_vec());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn replace_file<T>(path: impl AsRef<Path>, write: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
    let path = path.as_ref();
    let (name, directory) = split(path)?;
    let opened = open_directory(directory)?;
    refuse_special(path)?;
    let old = match fs::symlink_metadata(path) {
        Ok(metadata) => Some(metadata).filter(Metadata::is_file),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let prefix = format!("{PREFIX}{:016x}-", XxHash3_64::oneshot(name.as_encoded_bytes()));
    remove_leftovers(directory, &prefix);
    let mut new = NewFile::create(directory, &prefix, old.is_some())?;
    let result = write(&mut new.file)?;
    if let Some(old) = old {
        succeed(&new.file, &old)?;
    }
    new.file.sync_all()?;
    fs::rename(&new.path, path)?;
    sync_directory(opened)?;
    Ok(result)
}

/// Removes a file for good: a later crash of the machine does not bring it back, since on Unix this
/// function syncs the directory. A symbolic link is removed; its target stays.
///
/// # Errors
///
/// Fails with the error of the file system, with kind `NotFound` if there is no such file, and with
/// kind `InvalidInput` where [`replace_file`] does: if it is a device, say. On Unix
/// the directory must be readable, since the sync needs it open; otherwise the file stays.
///
/// If the sync fails, the file is gone, but a crash may bring it back. If a file system cannot sync
/// directories at all, this is not an error.
///
/// # Examples
///
/// ```
/// use lanebloom::codec::remove_file;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("seen");
/// std::fs::write(&path, "used once")?;
/// remove_file(&path)?;
/// assert!(!path.exists());
/// let error = remove_file(&path).unwrap_err();
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    let path = path.as_ref();
    let (_, directory) = split(path)?;
    let opened = open_directory(directory)?;
    refuse_special(path)?;
    fs::remove_file(path)?;
    sync_directory(opened)
}

/// The name of a file, and its directory.
fn split(path: &Path) -> io::Result<(&OsStr, &Path)> {
    match (path.file_name(), path.parent()) {
        (Some(name), Some(directory)) if directory.as_os_str().is_empty() => Ok((name, Path::new("."))),
        (Some(name), Some(directory)) => Ok((name, directory)),
        _ => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("{} is not the path of a file", path.display()),
        )),
    }
}

/// Fails if `path` leads to something that is not a regular file.
fn refuse_special(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(io::Error::new(
            ErrorKind::InvalidInput,
            format!("{} is not a regular file", path.display()),
        )),
        // A link to nothing, or to a file that this user cannot see, may be replaced.
        _ => Ok(()),
    }
}

/// Opens the directory before its entries change, so that an error comes before the change. Only
/// Unix can open and sync directories.
fn open_directory(path: &Path) -> io::Result<Option<File>> {
    cfg!(unix).then(|| File::open(path)).transpose()
}

/// Syncs the directory. Otherwise the disk may still have the old names after a crash.
fn sync_directory(directory: Option<File>) -> io::Result<()> {
    let cannot = |error: &io::Error| matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported);
    match directory.map(|opened| opened.sync_all()) {
        // The file system can sync directories, and failed.
        Some(Err(error)) if !cannot(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Gives `new` the owner, the group and the permissions of `old`, as far as the system allows it.
#[cfg(unix)]
fn succeed(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let mut mode = old.mode() & 0o777;
    let own = new.metadata()?;
    if (own.uid(), own.gid()) != (old.uid(), old.gid())
        && fchown(new, Some(old.uid()), Some(old.gid())).is_err()
        && fchown(new, None, Some(old.gid())).is_err()
    {
        // The old permissions were for another group.
        mode &= !0o070;
    }
    new.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn succeed(new: &File, old: &Metadata) -> io::Result<()> {
    new.set_permissions(old.permissions())
}

/// A file during its write: locked, and removed unless it was renamed.
struct NewFile {
    file: File,
    path: PathBuf,
}

impl NewFile {
    /// If `is_private`, only the owner may open the file: another user, who may not open it later,
    /// must not open it now.
    fn create(directory: &Path, prefix: &str, is_private: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_private { 0o600 } else { 0o666 });
        #[cfg(not(unix))]
        let _ = is_private;
        loop {
            let random = RandomState::new().hash_one(0u8);
            let path = directory.join(format!("{prefix}{random:016x}{SUFFIX}"));
            let file = match options.open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                other => other?,
            };
            let new = Self { file, path };
            match try_lock(&new.file) {
                // Another call may have removed it as a leftover before it was locked. No call does
                // so from now on.
                Ok(()) if !new.path.exists() => {}
                Ok(()) => return Ok(new),
                // Another call is removing it.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // Without locks no call removes anything.
                Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(new),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // After the rename there is nothing to remove. If this fails, the next call for the same
        // path removes it.
        let _ = fs::remove_file(&self.path);
    }
}

/// The beginning and the end of a new file's name. Between them stand 16 digits of a hash, a hyphen
/// and 16 random digits.
const PREFIX: &str = ".lanebloom-";
const SUFFIX: &str = ".new";

/// Removes the leftovers whose names begin with `prefix`. It ignores its own errors.
///
/// No other file has such a name by chance: it contains a 64-bit hash of the replaced file's name.
/// (The crates tempfile and atomic-write-file keep the leftovers of a killed program, or need a
/// file system with nameless files. A service that is killed at every write would fill its disk.)
fn remove_leftovers(directory: &Path, prefix: &str) {
    let is_ours = |name: &str| {
        let random = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(SUFFIX));
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        random.is_some_and(|random| random.len() == 16 && random.bytes().all(is_digit))
    };
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(is_ours)) {
        // The file stays open, and so locked, until it is removed.
        if let Ok(_locked) = open_file(&entry.path()).and_then(|file| try_lock(&file).map(|()| file)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Opens a regular file: follows no link, and waits for no other end of a pipe.
fn open_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(ErrorKind::InvalidInput.into()),
    }
}
