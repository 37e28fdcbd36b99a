//! The filter in a file, so that a restart need not read all keys from the store.

use crate::cache::Cache;
use crate::cache::store::{Key, Value};
use crate::error::BoxError;
use crate::filter::GuardFilter;
use lanebloom::codec::{remove_file, replace_file};
use lanebloom::traits::{Engine, Stored};
use lanebloom::{Filter, KeyHasher, SipHash13};
use std::any::type_name;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The file's first bytes: name and version.
const MAGIC: [u8; 8] = *b"lbguard\x01";

/// Bytes of the first fields: magic, seconds since 1970, keys in the store, bytes of the key type,
/// SipHash key. All numbers are little-endian. The key type follows, the hash of all of that under
/// that key, and then the filter's snapshot, which has a checksum of its own and names the filter's
/// kind.
const FIELDS: usize = 48;

/// The most bytes that a file may have of a key type.
const LONGEST_KEY_TYPE: usize = 1000;

/// Saved filters under SipHash.
impl<K: Key + ?Sized, V: Value, E: Engine> Cache<K, V, Filter<E, SipHash13>>
where
    Filter<E, SipHash13>: GuardFilter + Stored<Hasher = SipHash13>,
{
    /// Writes the filter to a file, for [`restore`](Self::restore) after a restart. Call it at
    /// shutdown, after the last write to the store: the file does not learn of keys that are
    /// inserted later.
    ///
    /// Answers whether it wrote one. A filter that [lacks valid
    /// keys](crate::CacheGuard#open-guards) is not saved: the cache is not ready, or its filter
    /// has refused a key. Then the next process must rebuild, and an older file is removed.
    ///
    /// The file holds the filter's secret key: on Unix only its owner may read it. It replaces an
    /// older one [in one step](replace_file). The call blocks on the file system.
    ///
    /// # Errors
    ///
    /// Fails with the file system's error. An older file stays then.
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
    /// # use lanebloom_guard::Keys;
    /// # let source = |keys: &mut Keys<'_, u64>| Ok(keys.insert_all([1, 2, 3])?);
    /// let cache = builder().build_blocking(read)?;
    /// cache.rebuild_now(source)?;
    /// cache.insert(&17);
    /// assert!(cache.save(&path)?);
    ///
    /// // The next process:
    /// let cache = builder().build_blocking(read)?;
    /// if !cache.restore(&path, Duration::from_secs(300))? {
    ///     cache.rebuild_now(source)?;
    /// }
    /// assert_eq!((cache.get(&17)?, cache.get(&18)?), (Some(17), None));
    ///
    /// // The one after that, if the second process crashes:
    /// let cache = builder().build_blocking(read)?;
    /// assert!(!cache.restore(&path, Duration::from_secs(300))?);
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<bool> {
        let path = path.as_ref();
        // Asked before the filter is taken: a rebuild may close the guard in between, and not open
        // it.
        if self.0.guard.is_open() {
            return match remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
                _ => Ok(false),
            };
        }
        let filter = self.0.guard.filter();
        let keys = self.known_keys(filter.figures().len);
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
            filter.write_to(file)
        })?;
        Ok(true)
    }

    /// Serves from the filter that [`save`](Self::save) wrote, if the file is there and at most
    /// `max_age` old; answers whether it does. Otherwise call
    /// `rebuild_now`.
    ///
    /// The file is removed, whether it served or not. A process that crashes has not saved the keys
    /// that it inserted, so the next one must not find an older file. On Unix the file's directory
    /// is synced: a crash of the machine does not bring the file back.
    ///
    /// **Only for stores to which this process alone adds rows**, or none between the two
    /// processes. Rows that others add between `save` and `restore` are reported missing until the
    /// next rebuild. Then the age bounds nothing; do not restore.
    ///
    /// The call blocks on the file system.
    ///
    /// # Errors
    ///
    /// The cache stays as it was; rebuild then. Fails
    ///
    /// - with kind `InvalidData` if the file is damaged, holds another kind of filter, or was saved
    ///   by a cache with another key type. Types are compared by name and
    ///   [width](lanebloom::Funnel::WIDTH). Another name does not prove another encoding, but after
    ///   a rename one rebuild costs less than a key that is turned away.
    /// - with kind `InvalidInput` if this cache was filled before, or keys were inserted into it:
    ///   the file may lack their keys.
    /// - with kind `InvalidInput` if `path` is no regular file. A symbolic link is not followed,
    ///   since its target would stay. It is not removed.
    /// - if a rebuild is under way, or with the file system's error.
    pub fn restore(&self, path: impl AsRef<Path>, max_age: Duration) -> io::Result<bool> {
        let path = path.as_ref();
        let Some(mut file) = open(path)? else {
            return Ok(false);
        };
        let length = file.metadata()?.len();
        // First of all: nothing that happens later may leave it for another process.
        remove_file(path)?;
        let header = Header::read(&mut file)?;
        let of_cache = key_type::<K>();
        if header.key_type != of_cache {
            let [saved, here] = [&header.key_type, &of_cache].map(|name| String::from_utf8_lossy(name));
            return Err(invalid(format!(
                "the saved guard has keys of the type {saved}, and this cache of the type {here}"
            )));
        }
        let age = SystemTime::UNIX_EPOCH.elapsed().map_err(io::Error::other)?;
        // Saved in the future: the clock was wrong then or is now, so the age is unknown.
        let age = age.as_secs().checked_sub(header.saved_at);
        let Some(age) = age.map(Duration::from_secs).filter(|age| *age <= max_age) else {
            return Ok(false);
        };
        // A damaged length must not allocate more than the file can fill.
        let limit = usize::try_from(length).unwrap_or(usize::MAX).saturating_mul(2);
        let filter: Filter<E, SipHash13> = Stored::read_from_with(file, limit, header.secret).map_err(invalid)?;
        let (in_filter, capacity) = (filter.figures().len, filter.expected_keys());
        let rebuild = self.0.guard.rebuild(filter).map_err(io::Error::other)?;
        // Partner: the fences of `CacheGuard::insert` and of the rebuild's beginning. A key that is
        // not seen here was inserted after that, and so into the new filter too.
        let has_keys = self.0.guard.filter().figures().fill_ratio > 0.0;
        if has_keys || self.is_ready() {
            let text = "this cache was filled before, or keys were inserted into it; restore a new cache";
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        rebuild.commit().map_err(io::Error::other)?;
        self.note_restored(header.keys, in_filter, capacity, age);
        Ok(true)
    }
}

/// What a file says before its filter.
struct Header {
    /// In seconds since 1970.
    saved_at: u64,
    keys: u64,
    secret: SipHash13,
    key_type: Vec<u8>,
}

impl Header {
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

/// The type of the keys, as far as it can be told: two types with the same bytes may differ here,
/// and two that write different bytes as well if they have the same name and width.
fn key_type<K: Key + ?Sized>() -> Vec<u8> {
    let mut name = match K::WIDTH {
        Some(width) => format!("{} ({width} bytes)", type_name::<K>()),
        None => type_name::<K>().to_owned(),
    }
    .into_bytes();
    name.truncate(LONGEST_KEY_TYPE);
    name
}

/// Opens a regular file, if there is one. A pipe would wait for its other end.
fn open(path: &Path) -> io::Result<Option<File>> {
    let kind = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        metadata => metadata?.file_type(),
    };
    let kind = match () {
        () if kind.is_file() => return File::open(path).map(Some),
        () if kind.is_symlink() => "a symbolic link",
        () if kind.is_dir() => "a directory",
        () => "no regular file",
    };
    let text = format!("{} is {kind}: a saved guard is a regular file", path.display());
    Err(io::Error::new(ErrorKind::InvalidInput, text))
}

fn not_saved() -> io::Error {
    invalid("not a saved guard, or damaged")
}

fn invalid(error: impl Into<BoxError>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}
