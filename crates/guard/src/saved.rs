//! The filter in a file, so that a restart need not read all keys from the store.

use crate::Key;
use crate::cache::GuardedCache;
use crate::mode::Mode;
use lanebloom::codec::replace_file;
use lanebloom::{Filter, GuardFilter, KeyHasher, SipHash13, Stored};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The file's first bytes: name and version.
const MAGIC: [u8; 8] = *b"lbguard\x01";

/// Magic, seconds since 1970, keys in the store, SipHash key; all numbers little-endian. The hash
/// of these 40 bytes under that key follows, and then the filter's snapshot, which has a checksum
/// of its own.
const HEADER: usize = 40;

/// Saved filters under SipHash.
impl<K, V, E, M> GuardedCache<K, V, Filter<E, SipHash13>, M>
where
    K: Key + ?Sized,
    V: Clone + Send + Sync + 'static,
    E: Stored,
    Filter<E, SipHash13>: GuardFilter,
    M: Mode,
{
    /// Writes the filter to a file, for [`restore`](Self::restore) after a restart. Call it at
    /// shutdown, after the last write to the store: the file does not learn of keys that are added
    /// later.
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
    /// use lanebloom_guard::GuardedCache;
    /// use std::time::Duration;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("users.guard");
    /// # let read = |id: u64| Ok::<_, std::convert::Infallible>(Some(id));
    /// # let builder = GuardedCache::<u64, u64>::builder;
    /// # let keys = || [Ok::<_, &str>(vec![1, 2, 3])];
    /// let cache = builder().build_blocking(read)?;
    /// cache.added(&17);
    /// cache.save(&path)?;
    ///
    /// // The next process:
    /// let cache = builder().build_blocking(read)?;
    /// if !cache.restore(&path, Duration::from_secs(300))? {
    ///     cache.rebuild_now(keys)?;
    /// }
    /// assert_eq!(cache.get(&17)?, Some(17));
    ///
    /// // The one after that, if the second process crashes:
    /// let cache = builder().build_blocking(read)?;
    /// assert!(!cache.restore(&path, Duration::from_secs(300))?);
    /// # Ok::<(), lanebloom_guard::BoxError>(())
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let keys = self.known_keys();
        let filter = self.0.guard.filter();
        let secret = *filter.hasher();
        let now = SystemTime::UNIX_EPOCH.elapsed().map_err(io::Error::other)?;
        let mut header = Vec::with_capacity(HEADER + 8);
        header.extend(MAGIC);
        header.extend(now.as_secs().to_le_bytes());
        header.extend(keys.to_le_bytes());
        header.extend(secret.key());
        header.extend(secret.hash_key(&header[..]).to_le_bytes());
        replace_file(path, |file| {
            #[cfg(unix)]
            file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
            file.write_all(&header)?;
            filter.write_to(file)
        })
    }

    /// Serves from the filter that [`save`](Self::save) wrote, if the file is there and at most
    /// `max_age` old; answers whether it does. Otherwise call
    /// [`rebuild_now`](GuardedCache::rebuild_now).
    ///
    /// The file is removed, whether it served or not. A process that crashes has not saved the keys
    /// that it added, so the next one must not find an older file.
    ///
    /// **Only for stores to which this process alone adds rows**, or none between the two
    /// processes. Rows that others add between `save` and `restore` are reported missing until the
    /// next rebuild. Then the age bounds nothing; do not restore.
    ///
    /// The call blocks on the file system.
    ///
    /// # Errors
    ///
    /// Fails if the file is damaged, with kind `InvalidData`; if keys were added to this cache
    /// before, or a rebuild began, since the file may lack their keys; if another rebuild is under
    /// way; or with the file system's error. The old filter stays.
    pub fn restore(&self, path: impl AsRef<Path>, max_age: Duration) -> io::Result<bool> {
        let path = path.as_ref();
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        let length = file.metadata()?.len();
        // First of all: nothing that happens later may leave it for another process.
        fs::remove_file(path)?;
        let mut header = [0; HEADER + 8];
        file.read_exact(&mut header)
            .map_err(|_| invalid("too short for a saved guard"))?;
        let (fields, hash) = header.split_at(HEADER);
        let number = |at: usize| u64::from_le_bytes(fields[at..at + 8].try_into().expect("8 bytes"));
        let secret = SipHash13::with_key(fields[24..].try_into().expect("16 bytes"));
        if fields[..8] != MAGIC || secret.hash_key(fields).to_le_bytes() != *hash {
            return Err(invalid("not a saved guard, or damaged"));
        }
        let age = SystemTime::UNIX_EPOCH.elapsed().map_err(io::Error::other)?;
        // Saved in the future: the clock was wrong then or is now, so the age is unknown.
        let age = age.as_secs().checked_sub(number(8));
        if age.is_none_or(|age| age > max_age.as_secs()) {
            return Ok(false);
        }
        // A damaged length must not allocate more than the file can fill.
        let limit = usize::try_from(length).unwrap_or(usize::MAX).saturating_mul(2);
        let filter = Filter::read_from_with(file, limit, secret)
            .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
        let capacity = filter.expected_keys();
        let rebuild = self.0.guard.rebuild(filter).map_err(io::Error::other)?;
        // Partner: the fences of `CacheGuard::insert` and of the rebuild's beginning. A key whose
        // count is not seen here was inserted after that, and so into the new filter too.
        let added = self.0.counts.sum().added;
        let mut history = self.history();
        if added > 0 || history.begun > 0 {
            let text = "keys were added before; restore a new cache";
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
        history.begun += 1;
        drop(history);
        rebuild.try_commit().map_err(io::Error::other)?;
        self.note_restored(number(16), capacity);
        Ok(true)
    }
}

fn invalid(text: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}
