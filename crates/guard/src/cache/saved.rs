//! Saves the filter in a file, so that a restart need not read all keys from the store.

use crate::cache::Cache;
use crate::cache::entries::{Key, Value};
use crate::error::BoxError;
use crate::filter::GuardFilter;
use lanebloom::codec::{self, remove_file, replace_file};
use lanebloom::internal::traits::Encode;
use lanebloom::{Filter, KeyHasher, SipHash13};
use std::any::type_name;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The first bytes of the file: name and version.
const MAGIC: [u8; 8] = *b"lbguard\x01";

/// The number of bytes of the first fields: magic, seconds since 1970, keys in the store, bytes of
/// the key type, SipHash key. All numbers are little-endian. The key type follows, then the hash of
/// all these bytes under the SipHash key, then the filter's snapshot, which has its own checksum
/// and names the filter's kind.
const FIELDS: usize = 48;

/// The largest number of bytes of the key type in a file.
const LONGEST_KEY_TYPE: usize = 1000;

/// Saved filters under SipHash.
#[allow(private_bounds, reason = "every filter that can be saved")]
impl<K: Key + ?Sized, V: Value, E: Encode> Cache<K, V, Filter<E, SipHash13>>
where
    Filter<E, SipHash13>: GuardFilter,
{
    /// Writes the filter to a file, for [`restore`](Self::restore) after a restart. Call it at
    /// shutdown, after the last write to the store: the file does not learn of keys that are
    /// inserted later.
    ///
    /// Returns whether it wrote a file. It does not save a filter that [may lack valid
    /// keys](crate::CacheGuard#open-guards). It then removes an older file, and the next process
    /// must rebuild.
    ///
    /// The file holds the filter's secret key: on Unix only its owner may read it. It replaces an
    /// older file [in one step](replace_file). The call blocks on the file system.
    ///
    /// # Errors
    ///
    /// Fails with the file system's error. Then an older file stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_guard::sync::GuardedCache;
    /// use std::time::Duration;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("users.guard");
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// # let builder = GuardedCache::<u64, u64>::builder;
    /// # use lanebloom_guard::{Keys, Restored};
    /// # let source = |keys: &mut Keys<'_, u64>| Ok(keys.insert_all([1, 2, 3])?);
    /// let cache = builder().build_blocking(read)?;
    /// cache.rebuild_now(source)?;
    /// cache.insert(&17);
    /// assert!(cache.save(&path)?);
    ///
    /// // The next process:
    /// let cache = builder().build_blocking(read)?;
    /// let restored = cache.restore(&path, Duration::from_secs(300))?;
    /// if restored != Restored::Serves {
    ///     cache.rebuild_now(source)?;
    /// }
    /// assert_eq!((cache.get(&17)?, cache.get(&18)?), (Some(17), None));
    ///
    /// // The one after that, if the second process crashes:
    /// let cache = builder().build_blocking(read)?;
    /// let restored = cache.restore(&path, Duration::from_secs(300))?;
    /// assert_eq!(restored, Restored::NoFile);
    /// assert_eq!(restored.to_string(), "no saved guard was found");
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        let path = path.as_ref();
        // Checked before the filter is loaded: a rebuild in between may close the guard, but not
        // open it.
        if self.0.guard.is_open() {
            return match remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(false),
            };
        }
        let filter = self.0.guard.filter();
        let keys = self.known_keys(filter.statistics().len);
        let secret = *filter.hasher();
        let key_type = key_type::<K>();
        let now = SystemTime::UNIX_EPOCH.elapsed().map_err(io::Error::other)?;
        let mut header = Vec::with_capacity(FIELDS + key_type.len() + 8);
        header.extend(MAGIC);
        header.extend(now.as_secs().to_le_bytes());
        header.extend(keys.to_le_bytes());
        header.extend((key_type.len() as u64).to_le_bytes());
        header.extend(secret.key());
        header.extend(key_type);
        header.extend(secret.hash_key(&header[..]).to_le_bytes());
        replace_file(path, |file| {
            #[cfg(unix)]
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            file.write_all(&header)?;
            filter.snapshot().write_to(file)
        })?;
        Ok(true)
    }

    /// Serves from the filter that [`save`](Self::save) wrote, if the file exists and is at most
    /// `max_age` old. Returns whether it does, or why not: then call `rebuild_now`.
    ///
    /// **Use it only if no other process adds rows to the store**, at least not between `save` and
    /// `restore`. Such rows would be reported missing until the next rebuild, whatever `max_age`
    /// is.
    ///
    /// The file is removed in any case: if this process crashes, the next one must not find a file
    /// that lacks its keys. On Unix the file's directory is synced, so a crash of the machine does
    /// not bring the file back. The call blocks on the file system.
    ///
    /// # Errors
    ///
    /// The cache stays as it was; then rebuild. Fails
    ///
    /// - with kind `InvalidData` if the file is damaged, holds another kind of filter, or was saved
    ///   by a cache with another key type. Types are compared by name and
    ///   [width](lanebloom::Funnel::WIDTH): one rebuild too many costs less than a valid key that
    ///   is turned away.
    /// - with kind `InvalidInput` if this cache was filled before, or keys were inserted into it:
    ///   the file may lack their keys.
    /// - with kind `InvalidInput` if `path` is not a regular file. A symbolic link is neither
    ///   followed nor removed.
    /// - if a rebuild is running, or with the file system's error.
    pub fn restore(&self, path: impl AsRef<Path>, max_age: Duration) -> io::Result<Restored> {
        let path = path.as_ref();
        let Some(mut file) = open(path)? else {
            return Ok(Restored::NoFile);
        };
        let length = file.metadata()?.len();
        // Before anything else, since no later failure may leave the file for another process.
        remove_file(path)?;
        let header = SavedHeader::read(&mut file)?;
        let of_cache = key_type::<K>();
        if header.key_type != of_cache {
            let [saved, here] = [&header.key_type, &of_cache].map(|name| String::from_utf8_lossy(name));
            return Err(invalid(format!(
                "the saved guard has keys of the type {saved}, but this cache has keys of the type {here}"
            )));
        }
        let now = SystemTime::UNIX_EPOCH.elapsed().map_err(io::Error::other)?.as_secs();
        let Some(age) = now.checked_sub(header.saved_at).map(Duration::from_secs) else {
            let ahead = Duration::from_secs(header.saved_at - now);
            return Ok(Restored::FromFuture { ahead });
        };
        if age > max_age {
            return Ok(Restored::TooOld { age });
        }
        // A damaged length must not cause a larger allocation than the file can fill.
        let limit = usize::try_from(length).unwrap_or(usize::MAX).saturating_mul(2);
        let filter: Filter<E, SipHash13> = codec::read_from(file, limit, header.secret).map_err(invalid)?;
        let (in_filter, capacity) = (filter.statistics().len, filter.expected_keys());
        let rebuild = self.0.guard.rebuild(filter).map_err(io::Error::other)?;
        // Partner: the fences of `CacheGuard::insert` and of the rebuild's beginning. A key that
        // this does not see was inserted later, and so into the new filter too.
        let has_keys = self.0.guard.filter().statistics().fill_ratio > 0.0;
        if has_keys || self.is_ready() {
            let text = "this cache was filled before, or keys were inserted into it; restore a new cache";
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        rebuild.commit().map_err(io::Error::other)?;
        self.note_restored(header.keys, in_filter, capacity, age);
        Ok(Restored::Serves)
    }
}

/// Whether a cache serves from a saved filter, or why not: the result of
/// [`restore`](Cache::restore), whose example shows it. A file of other keys is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "unless it serves, rebuild"]
#[non_exhaustive]
pub enum Restored {
    /// The cache serves from the filter.
    Serves,
    /// No file was found: this is the first start, the last process crashed, or its filter lacked
    /// keys.
    NoFile,
    /// The file is older than the limit.
    TooOld {
        /// The time since it was saved.
        age: Duration,
    },
    /// The file is from the future, so its age is unknown: the clock was wrong then, or is now.
    FromFuture {
        /// The time until it was saved.
        ahead: Duration,
    },
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Serves => f.write_str("the saved guard serves"),
            Self::NoFile => f.write_str("no saved guard was found"),
            Self::TooOld { age } => write!(f, "the saved guard is too old: {age:?}"),
            Self::FromFuture { ahead } => write!(
                f,
                "the saved guard is from the future: {ahead:?}; the clock was wrong then, or is now"
            ),
        }
    }
}

/// The fields of a file before its filter.
struct SavedHeader {
    /// In seconds since 1970.
    saved_at: u64,
    keys: u64,
    secret: SipHash13,
    key_type: Vec<u8>,
}

impl SavedHeader {
    fn read(file: &mut File) -> io::Result<Self> {
        let mut header = vec![0; FIELDS];
        read(file, &mut header)?;
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let (saved_at, keys, len) = (number(8), number(16), number(24));
        let secret = SipHash13::with_key(header[32..].try_into().expect("16 bytes"));
        if header[..8] != MAGIC || len > LONGEST_KEY_TYPE as u64 {
            return Err(not_saved());
        }
        header.resize(FIELDS + len as usize, 0);
        read(file, &mut header[FIELDS..])?;
        let mut hash = [0; 8];
        read(file, &mut hash)?;
        if secret.hash_key(&header[..]).to_le_bytes() != hash {
            return Err(not_saved());
        }
        Ok(Self {
            saved_at,
            keys,
            secret,
            key_type: header.split_off(FIELDS),
        })
    }
}

fn read(file: &mut File, bytes: &mut [u8]) -> io::Result<()> {
    file.read_exact(bytes).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => invalid("too short for a saved guard"),
        _ => error,
    })
}

/// A name for the type of the keys. It is not exact: types that write the same bytes may have
/// different names here, and types that write different bytes have the same if name and width
/// agree.
fn key_type<K: Key + ?Sized>() -> Vec<u8> {
    let mut name = match K::WIDTH {
        Some(width) => format!("{} ({width} bytes)", type_name::<K>()),
        None => type_name::<K>().to_owned(),
    }
    .into_bytes();
    name.truncate(LONGEST_KEY_TYPE);
    name
}

/// Opens a regular file, if there is one. (Opening a pipe would wait for its other end.)
fn open(path: &Path) -> io::Result<Option<File>> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata?.file_type(),
    };
    let kind = match () {
        () if kind.is_file() => return File::open(path).map(Some),
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a directory",
        () => "not a regular file",
    };
    let text = format!("{} is {kind}; a saved guard is a regular file", path.display());
    Err(io::Error::new(ErrorKind::InvalidInput, text))
}

fn not_saved() -> io::Error {
    invalid("not a saved guard, or damaged")
}

fn invalid(error: impl Into<BoxError>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
