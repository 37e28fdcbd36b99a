//! [`RedisBitmap`]: keys to offsets, offsets to commands, replies to answers. The code that talks
//! to a server is written once, over a `Link`. Each public call runs it over a blocking connection,
//! or over an asynchronous one.

use super::error::{BitmapError, BitmapErrorKind};
use super::layout::Layout;
#[cfg(feature = "redis-tokio")]
use super::link::Async;
use super::link::{self, Blocking, Link, Script, Talk, lossy, now};
use crate::error::BuildError;
use crate::funnel::Funnel;
use crate::hash::assert_same_length;
use alloc::format;
use alloc::vec::Vec;
use core::slice;
use core::time::Duration;
use redis::{Cmd, ConnectionLike, Value};

/// Offsets that are sent in one round trip, if a key has not more of them. A server that does
/// nothing else meanwhile takes a microsecond for each (Redis 7.0, in Lua), so that other clients
/// wait about one millisecond.
const OFFSETS_PER_TRIP: usize = 1024;
/// The greatest cursor of a growing filter that is believed. (A lookup takes all bitmaps up to it.)
const GREATEST_CURSOR: u64 = 1023;

/// A Bloom filter in Redis, in a layout that other programs use as well. It gives the same bits and
/// answers as they do.
///
/// This type is a description, which costs nothing to clone. Each call takes a connection of the
/// `redis` crate. Blocking calls take `&mut dyn redis::ConnectionLike`: a connection, a client, or
/// what a pool lends. Calls that end in `_async` take `redis::aio::MultiplexedConnection` and its
/// like.
///
/// A batch is sent in several round trips, each short for the server's other clients: one for 1024
/// bits, which are 146 keys of 7 hash functions. If a round trip fails, those before it are done.
///
/// # Errors
///
/// All calls fail if the server is not reached, a key holds something else than a bitmap, a reply
/// is not of the kind that the command gives, or the cursor of a growing filter is no number in 0
/// to 1023; those that write, too, if the server is a read-only replica or refuses writes for
/// another reason. A key that is not there is no error: it is an empty bitmap.
///
/// # Examples
///
/// ```
#[doc = include_str!("example.md")]
/// use lanebloom::redis::RedisBitmap;
///
/// let mut connection = redis::Client::open(url)?.get_connection()?;
/// let seen = RedisBitmap::go_zero("seen", 20 * 1000)?;
/// assert!(seen.insert(&mut connection, "ann")?);
/// assert!(!seen.insert(&mut connection, "ann")?);
/// assert!(seen.contains(&mut connection, "ann")? && !seen.contains(&mut connection, "eve")?);
///
/// // Many keys in one round trip.
/// assert_eq!(seen.insert_batch(&mut connection, &["ann", "bob", "cid"])?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisBitmap {
    pub(super) layout: Layout,
    kept: Kept,
    /// After how many milliseconds the keys expire, set anew by each insert.
    expire: Option<u64>,
}

/// Under which keys the bits are kept, and how they are reached.
#[derive(Clone, Debug)]
enum Kept {
    /// In one bitmap, by pipelines of commands.
    Piped { key: Vec<u8> },
    /// In one bitmap, by scripts.
    Scripted { key: Vec<u8> },
    /// In a bitmap for each number up to the cursor, by scripts.
    Growing { base: Vec<u8>, cursor: Vec<u8> },
}

/// The layouts.
impl RedisBitmap {
    /// Guava's filter on Redis, with growth: the class `RedisBitmaps` that many Java programs
    /// copied from one another.
    ///
    /// Bitmaps are named after `base`, as `bloomfilter-0`, `bloomfilter-1`, and the key `cursor`
    /// has the number of the last one. (In that class the two are `bloomfilter` and `cursor`.)
    /// Their size, and the number of hash functions, are by Guava's formulas up to 2024. When after
    /// an insert more than half of the last bitmap's bits are set, the next one begins. A lookup
    /// looks into all; a key that is in one is not inserted again.
    ///
    /// Each call is one script for many keys. So an insert, the check whether to grow, and the step
    /// are one: clients of this type never grow twice. (Those of the class do, and may skip a
    /// number.)
    ///
    /// # Errors
    ///
    /// Where Guava throws, as [`GuavaBloom::with_capacity`](crate::GuavaBloom::with_capacity), and
    /// beyond Redis's limit of 2^32 bits.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let seen = RedisBitmap::guava("bloomfilter", "cursor", 100, 0.01)?;
    /// assert_eq!((seen.bit_size(), seen.hash_functions()), (960, 7));
    /// seen.insert_batch(&mut connection, &(0..200).map(|i| i.to_string()).collect::<Vec<_>>())?;
    /// assert!(seen.contains(&mut connection, "0")? && seen.contains(&mut connection, "199")?);
    /// let cursor: u32 = redis::cmd("GET").arg("cursor").query(&mut connection)?;
    /// assert!(cursor >= 1);
    ///
    /// let error = RedisBitmap::guava("bloomfilter", "cursor", 1_000_000_000, 0.01).unwrap_err();
    /// assert_eq!(error.to_string(), "a bitmap of 9585058432 bits is beyond Redis's limit of 4294967296 bits (512 MiB)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "RedisBitmaps")]
    pub fn guava(
        base: impl Into<Vec<u8>>,
        cursor: impl Into<Vec<u8>>,
        expected_keys: usize,
        rate: f64,
    ) -> Result<Self, BuildError> {
        let (base, cursor) = (base.into(), cursor.into());
        Self::new(
            Layout::guava(expected_keys as u64, rate).map_err(BuildError)?,
            Kept::Growing { base, cursor },
        )
    }

    /// Guava's hashing on one bitmap through Jedis or Codis: the class `RedisBloomFilter` that many
    /// Java programs copied from one another.
    ///
    /// The bitmap's key is `bf:` and `key`. The number of bits is by Guava's formula and not
    /// rounded, and an `int` of Java: where the formula gives more than 2,147,483,647, it is that,
    /// and the rate is higher than `rate`. Commands are sent in pipelines. That class lets the key
    /// expire some time after the last insert; [`expire_on_insert`](Self::expire_on_insert) does so
    /// here.
    ///
    /// # Errors
    ///
    /// Where Guava throws, as of [`GuavaBloom::with_capacity`](crate::GuavaBloom::with_capacity).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    /// use std::time::Duration;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let read = RedisBitmap::jedis("read:ann", 3000, 0.03)?.expire_on_insert(Duration::from_secs(60));
    /// assert_eq!((read.bit_size(), read.hash_functions()), (21_895, 5));
    /// read.insert(&mut connection, "article 17")?;
    /// assert!(read.contains(&mut connection, "article 17")? && !read.contains(&mut connection, "article 18")?);
    /// let seconds: i64 = redis::cmd("TTL").arg("bf:read:ann").query(&mut connection)?;
    /// assert!((1..=60).contains(&seconds));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn jedis(key: impl AsRef<[u8]>, expected_keys: usize, rate: f64) -> Result<Self, BuildError> {
        let key = [b"bf:", key.as_ref()].concat();
        Self::new(
            Layout::jedis(expected_keys as u64, rate).map_err(BuildError)?,
            Kept::Piped { key },
        )
    }

    /// go-zero's `bloom.Filter`: `bits` bits of which a key has 14, by scripts.
    ///
    /// go-zero recommends 20 bits for each key.
    ///
    /// # Errors
    ///
    /// If there are no bits, or more than Redis's limit of 2^32.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::go_zero("filter", 20_480)?;
    /// filter.insert(&mut connection, "world")?;
    /// let bit: u8 = redis::cmd("GETBIT").arg("filter").arg(9159).query(&mut connection)?;
    /// assert_eq!((bit, filter.hash_functions()), (1, 14));
    ///
    /// assert_eq!(
    ///     RedisBitmap::go_zero("filter", 0).unwrap_err().to_string(),
    ///     "a bitmap of 0 bits, 14 of each key, is none: both must be at least 1"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn go_zero(key: impl Into<Vec<u8>>, bits: u64) -> Result<Self, BuildError> {
        let key = key.into();
        Self::new(Layout::go_zero(bits).map_err(BuildError)?, Kept::Scripted { key })
    }

    /// The filter of the Python package `scrapy-redis-bloomfilter`: `2^bit` bits
    /// (`BLOOMFILTER_BIT`, 30 if it was not set) of which a key has `hash_number`
    /// (`BLOOMFILTER_HASH_NUMBER`, 6). The key is `<spider>:bloomfilter`, unless
    /// `SCHEDULER_DUPEFILTER_KEY` was set.
    ///
    /// Keys are texts, whose characters are summed: for Scrapy the 40 hexadecimal digits of a
    /// request's fingerprint. A key whose bytes are no UTF-8 cannot be inserted, and is never in
    /// it. (The package says of the empty string that it is not in the filter, whatever was
    /// inserted; here it is a key like any other.)
    ///
    /// **The hash is bad.** The first function is the plain sum of the characters, which for
    /// fingerprints takes some hundred values only: soon these bits are all set, and it tells
    /// nothing any more. Of 40,000 random fingerprints in 2^20 bits the rate is 2.1e-4, where six
    /// good functions have 7.3e-5; of 110,000 it is 1.13% and not 1.04%. Short keys do far worse,
    /// since all their sums are small: after 110,000 words of 5 random letters, 94% of the other
    /// words are false positives (`tests/servers/redis_bitmaps.rs` measures it). An attacker can
    /// also write keys whose sums are all the same. Use this layout to read existing filters, and
    /// another layout for new ones.
    ///
    /// # Errors
    ///
    /// If `hash_number` is 0, or `bit` more than 32: Redis has at most 2^32 bits.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::scrapy("spider:bloomfilter", 30, 6)?;
    /// filter.insert(&mut connection, "hello")?;
    /// let bit: u8 = redis::cmd("GETBIT").arg("spider:bloomfilter").arg(532).query(&mut connection)?;
    /// assert_eq!(bit, 1);
    /// // A sum does not know the order of what it sums; the other functions do.
    /// assert!(RedisBitmap::scrapy("spider:bloomfilter", 30, 1)?.contains(&mut connection, "olleh")?);
    /// assert!(!filter.contains(&mut connection, "olleh")?);
    ///
    /// assert!(filter.insert(&mut connection, &[0xff_u8]).is_err());
    /// assert!(RedisBitmap::scrapy("spider:bloomfilter", 33, 6).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn scrapy(key: impl Into<Vec<u8>>, bit: u32, hash_number: u8) -> Result<Self, BuildError> {
        let key = key.into();
        Self::new(
            Layout::scrapy(bit, hash_number).map_err(BuildError)?,
            Kept::Piped { key },
        )
    }

    fn new(layout: Layout, kept: Kept) -> Result<Self, BuildError> {
        Ok(Self {
            layout,
            kept,
            expire: None,
        })
    }

    /// Lets each insert set when the whole filter expires: so long after it, in milliseconds,
    /// rounded up.
    ///
    /// By default inserts leave that as it is. An expired filter is an empty one.
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    /// use std::time::Duration;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::go_zero("filter", 1024)?.expire_on_insert(Duration::from_millis(1));
    /// filter.insert(&mut connection, "ann")?;
    /// std::thread::sleep(Duration::from_millis(20));
    /// assert!(!filter.contains(&mut connection, "ann")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expire_on_insert(mut self, after: Duration) -> Self {
        self.expire = Some(milliseconds(after));
        self
    }

    /// The number of bits: of each bitmap, where the filter grows.
    ///
    /// ```
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// assert_eq!(RedisBitmap::jedis("a", 3000, 0.03)?.bit_size(), 21_895);
    /// assert_eq!(RedisBitmap::guava("a", "cursor", 3000, 0.03)?.bit_size(), 21_952);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn bit_size(&self) -> u64 {
        self.layout.bits
    }

    /// The number of hash functions: the bits of a key (two may be the same).
    ///
    /// ```
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// assert_eq!(RedisBitmap::scrapy("a", 20, 6)?.hash_functions(), 6);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hash_functions(&self) -> u8 {
        self.layout.functions
    }
}

/// By a blocking connection.
impl RedisBitmap {
    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// # Errors
    ///
    /// As of [all calls](Self#errors).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::jedis("filter", 1000, 0.01)?;
    /// assert!(!filter.contains(&mut connection, &17i64)?); // nothing there yet
    /// filter.insert(&mut connection, &17i64)?;
    /// assert!(filter.contains(&mut connection, &17i64)? && !filter.contains(&mut connection, &18i64)?);
    ///
    /// redis::cmd("DEL").arg("bf:filter").exec(&mut connection)?;
    /// redis::cmd("LPUSH").arg("bf:filter").arg("not a bitmap").exec(&mut connection)?;
    /// assert!(filter.contains(&mut connection, &17i64).unwrap_err().is_wrong_type());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "GETBIT")]
    pub fn contains<K: Funnel + ?Sized>(
        &self,
        connection: &mut dyn ConnectionLike,
        key: &K,
    ) -> Result<bool, BitmapError> {
        now(self.test_one(&mut Blocking(connection), key))
    }

    /// Inserts `key`; returns whether this call changed the filter.
    ///
    /// The server does one insert after another. If several clients race to insert a key, one gets
    /// `true`. (Unless the key is a false positive already. `jedis` and `scrapy` use pipelines, in
    /// which commands of two clients may alternate. Then at least one client gets `true`, and both
    /// may.)
    ///
    /// # Errors
    ///
    /// As of [all calls](Self#errors), and if the layout has no place for the key.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::scrapy("filter", 20, 6)?;
    /// assert!(filter.insert(&mut connection, "hello")?);
    /// assert!(!filter.insert(&mut connection, "hello")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "SETBIT")]
    pub fn insert<K: Funnel + ?Sized>(
        &self,
        connection: &mut dyn ConnectionLike,
        key: &K,
    ) -> Result<bool, BitmapError> {
        now(self.set_one(&mut Blocking(connection), key))
    }

    /// Writes for every key whether it may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Errors
    ///
    /// As of [all calls](Self#errors).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert(&mut connection, "a")?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&mut connection, &["b", "a"], &mut found)?;
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: Funnel>(
        &self,
        connection: &mut dyn ConnectionLike,
        keys: &[K],
        out: &mut [bool],
    ) -> Result<(), BitmapError> {
        now(self.test_all(&mut Blocking(connection), keys, out))
    }

    /// Inserts every key; returns how many of them changed the filter.
    ///
    /// Results are those of [`insert`](Self::insert) in order, duplicates within the batch
    /// included.
    ///
    /// # Errors
    ///
    /// As of [all calls](Self#errors), and if the layout has no place for one of the keys.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::guava("filter", "filter:cursor", 1000, 0.01)?;
    /// assert_eq!(filter.insert_batch(&mut connection, &["a", "b", "a"])?, 2);
    /// assert!(filter.contains(&mut connection, "b")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch<K: Funnel>(
        &self,
        connection: &mut dyn ConnectionLike,
        keys: &[K],
    ) -> Result<usize, BitmapError> {
        now(self.set_all(&mut Blocking(connection), keys, None))
    }

    /// [`insert_batch`](Self::insert_batch) that also writes for every key whether it changed the
    /// filter to the same place of `changed`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Errors
    ///
    /// As of [`insert_batch`](Self::insert_batch).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::jedis("filter", 1000, 0.01)?;
    /// let mut first_seen = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&mut connection, &["a", "a", "b"], &mut first_seen)?, 2);
    /// assert_eq!(first_seen, [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(
        &self,
        connection: &mut dyn ConnectionLike,
        keys: &[K],
        changed: &mut [bool],
    ) -> Result<usize, BitmapError> {
        now(self.set_all(&mut Blocking(connection), keys, Some(changed)))
    }

    /// Removes all keys. Deletes the bitmap, or all bitmaps of a growing filter, whose cursor is 0
    /// then.
    ///
    /// Keys that other clients insert meanwhile come before or after.
    ///
    /// # Errors
    ///
    /// As of [all calls](Self#errors), except that a key of another type is removed as well.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert(&mut connection, "a")?;
    /// filter.clear(&mut connection)?;
    /// assert!(!filter.contains(&mut connection, "a")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("reset", "del"))]
    pub fn clear(&self, connection: &mut dyn ConnectionLike) -> Result<(), BitmapError> {
        now(self.remove(&mut Blocking(connection)))
    }

    /// Lets the filter expire so long from now, in milliseconds, rounded up; returns whether there
    /// was one.
    ///
    /// The bitmap with which a filter grows later does not expire; where that can be, take
    /// [`expire_on_insert`](Self::expire_on_insert).
    ///
    /// # Errors
    ///
    /// As of [all calls](Self#errors).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    /// use std::time::Duration;
    ///
    /// let mut connection = redis::Client::open(url)?.get_connection()?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// assert!(!filter.expire(&mut connection, Duration::from_secs(9))?);
    /// filter.insert(&mut connection, "a")?;
    /// assert!(filter.expire(&mut connection, Duration::from_secs(9))?);
    /// let seconds: i64 = redis::cmd("TTL").arg("filter").query(&mut connection)?;
    /// assert!((1..=9).contains(&seconds));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn expire(&self, connection: &mut dyn ConnectionLike, after: Duration) -> Result<bool, BitmapError> {
        now(self.let_expire(&mut Blocking(connection), after))
    }
}

/// By an asynchronous connection, such as `redis::aio::MultiplexedConnection`: the same calls.
#[cfg(feature = "redis-tokio")]
impl RedisBitmap {
    /// [`contains`](Self::contains).
    ///
    /// # Errors
    ///
    /// As of that.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// assert!(filter.insert_async(&mut connection, "ann").await?);
    /// assert!(filter.contains_async(&mut connection, "ann").await?);
    /// assert!(!filter.contains_async(&mut connection, "eve").await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn contains_async<C, K>(&self, connection: &mut C, key: &K) -> Result<bool, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel + ?Sized,
    {
        self.test_one(&mut Async(connection), key).await
    }

    /// [`insert`](Self::insert).
    ///
    /// # Errors
    ///
    /// As of that.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::jedis("filter", 1000, 0.01)?;
    /// assert!(filter.insert_async(&mut connection, "ann").await?);
    /// assert!(!filter.insert_async(&mut connection, "ann").await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn insert_async<C, K>(&self, connection: &mut C, key: &K) -> Result<bool, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel + ?Sized,
    {
        self.set_one(&mut Async(connection), key).await
    }

    /// [`contains_batch`](Self::contains_batch).
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Errors
    ///
    /// As of that.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert_async(&mut connection, "b").await?;
    /// let mut found = [false; 2];
    /// filter.contains_batch_async(&mut connection, &["a", "b"], &mut found).await?;
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn contains_batch_async<C, K>(
        &self,
        connection: &mut C,
        keys: &[K],
        out: &mut [bool],
    ) -> Result<(), BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel,
    {
        self.test_all(&mut Async(connection), keys, out).await
    }

    /// [`insert_batch`](Self::insert_batch).
    ///
    /// # Errors
    ///
    /// As of that.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::guava("filter", "filter:cursor", 1000, 0.01)?;
    /// assert_eq!(filter.insert_batch_async(&mut connection, &["a", "b", "a"]).await?, 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn insert_batch_async<C, K>(&self, connection: &mut C, keys: &[K]) -> Result<usize, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel,
    {
        self.set_all(&mut Async(connection), keys, None).await
    }

    /// [`insert_batch_flagged`](Self::insert_batch_flagged).
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Errors
    ///
    /// As of that.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// let mut first_seen = [false; 3];
    /// filter.insert_batch_flagged_async(&mut connection, &["a", "a", "b"], &mut first_seen).await?;
    /// assert_eq!(first_seen, [true, false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn insert_batch_flagged_async<C, K>(
        &self,
        connection: &mut C,
        keys: &[K],
        changed: &mut [bool],
    ) -> Result<usize, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel,
    {
        self.set_all(&mut Async(connection), keys, Some(changed)).await
    }

    /// [`clear`](Self::clear).
    ///
    /// # Errors
    ///
    /// As of that.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert_async(&mut connection, "a").await?;
    /// filter.clear_async(&mut connection).await?;
    /// assert!(!filter.contains_async(&mut connection, "a").await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn clear_async<C>(&self, connection: &mut C) -> Result<(), BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
    {
        self.remove(&mut Async(connection)).await
    }

    /// [`expire`](Self::expire).
    ///
    /// # Errors
    ///
    /// As of that.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.md")]
    /// use lanebloom::redis::RedisBitmap;
    /// use std::time::Duration;
    ///
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// let mut connection = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// assert!(!filter.expire_async(&mut connection, Duration::from_secs(9)).await?);
    /// filter.insert_async(&mut connection, "a").await?;
    /// assert!(filter.expire_async(&mut connection, Duration::from_secs(9)).await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn expire_async<C>(&self, connection: &mut C, after: Duration) -> Result<bool, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
    {
        self.let_expire(&mut Async(connection), after).await
    }
}

/// What is said, over any link.
impl RedisBitmap {
    async fn test_one<K: Funnel + ?Sized>(&self, link: &mut impl Link, key: &K) -> Result<bool, BitmapError> {
        let mut found = false;
        self.test_all(link, slice::from_ref(&key), slice::from_mut(&mut found))
            .await?;
        Ok(found)
    }

    async fn set_one<K: Funnel + ?Sized>(&self, link: &mut impl Link, key: &K) -> Result<bool, BitmapError> {
        Ok(self.set_all(link, slice::from_ref(&key), None).await? == 1)
    }

    async fn test_all<K: Funnel>(&self, link: &mut impl Link, keys: &[K], out: &mut [bool]) -> Result<(), BitmapError> {
        assert_same_length(keys.len(), out.len());
        let trip = self.keys_per_trip();
        for (keys, out) in keys.chunks(trip).zip(out.chunks_mut(trip)) {
            let mut offsets = Vec::with_capacity(keys.len() * usize::from(self.layout.functions));
            for (key, placed) in keys.iter().zip(&mut *out) {
                *placed = self.layout.offsets(key, &mut offsets);
            }
            let mut answers = self.test(link, offsets).await?.into_iter();
            for found in out.iter_mut().filter(|placed| **placed) {
                *found = answers.next().unwrap_or_default();
            }
        }
        Ok(())
    }

    async fn set_all<K: Funnel>(
        &self,
        link: &mut impl Link,
        keys: &[K],
        mut changed: Option<&mut [bool]>,
    ) -> Result<usize, BitmapError> {
        if let Some(changed) = &changed {
            assert_same_length(keys.len(), changed.len());
        }
        let mut sum = 0;
        for (i, trip) in keys.chunks(self.keys_per_trip()).enumerate() {
            let mut offsets = Vec::with_capacity(trip.len() * usize::from(self.layout.functions));
            if !trip.iter().all(|key| self.layout.offsets(key, &mut offsets)) {
                return Err(BitmapError(BitmapErrorKind::NoText {
                    key: lossy(self.name()),
                }));
            }
            let answers = self.set(link, offsets).await?;
            sum += answers.iter().filter(|changed| **changed).count();
            if let Some(changed) = &mut changed {
                changed[i * self.keys_per_trip()..][..answers.len()].copy_from_slice(&answers);
            }
        }
        Ok(sum)
    }

    fn keys_per_trip(&self) -> usize {
        OFFSETS_PER_TRIP / usize::from(self.layout.functions)
    }

    /// What errors tell of.
    pub(super) fn name(&self) -> &[u8] {
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => key,
            Kept::Growing { base, .. } => base,
        }
    }

    pub(super) fn talk<'a, L: Link>(&'a self, link: &'a mut L) -> Talk<'a, L> {
        Talk { link, key: self.name() }
    }

    /// Whether all bits of each key are set.
    async fn test(&self, link: &mut impl Link, offsets: Vec<u64>) -> Result<Vec<bool>, BitmapError> {
        let functions = self.layout.functions;
        match &self.kept {
            Kept::Piped { key } => {
                let mut pipeline = redis::pipe();
                for offset in &offsets {
                    pipeline.cmd("GETBIT").arg(key).arg(offset);
                }
                let set = self.bits(link, "GETBIT", pipeline).await?;
                Ok(set
                    .chunks(functions.into())
                    .map(|bits| bits.iter().all(|set| *set))
                    .collect())
            }
            Kept::Scripted { .. } => self.ask(link, &link::TEST, &[functions.into()], offsets, None).await,
            Kept::Growing { .. } => {
                let arguments = [GREATEST_CURSOR, functions.into()];
                self.ask(link, &link::TEST_GROWING, &arguments, offsets, None).await
            }
        }
    }

    /// Sets all bits of each key; whether one was not.
    async fn set(&self, link: &mut impl Link, offsets: Vec<u64>) -> Result<Vec<bool>, BitmapError> {
        let functions = self.layout.functions;
        match &self.kept {
            Kept::Piped { key } => {
                let mut pipeline = redis::pipe();
                for offset in &offsets {
                    pipeline.cmd("SETBIT").arg(key).arg(offset).arg(1);
                }
                if let Some(expire) = self.expire_command(key) {
                    pipeline.add_command(expire);
                }
                let mut before = self.bits(link, "SETBIT", pipeline).await?;
                before.truncate(offsets.len());
                Ok(before
                    .chunks(functions.into())
                    .map(|bits| bits.iter().any(|set| !set))
                    .collect())
            }
            Kept::Scripted { key } => {
                let expire = self.expire_command(key);
                self.ask(link, &link::SET, &[functions.into()], offsets, expire).await
            }
            Kept::Growing { .. } => {
                let expire = self.expire.unwrap_or(0);
                let arguments = [GREATEST_CURSOR, functions.into(), self.layout.bits, expire];
                self.ask(link, &link::SET_GROWING, &arguments, offsets, None).await
            }
        }
    }

    fn expire_command(&self, key: &[u8]) -> Option<Cmd> {
        self.expire.map(|after| {
            let mut command = redis::cmd("PEXPIRE");
            command.arg(key).arg(after);
            command
        })
    }

    /// The bits that a pipeline of `command`s is replied; none for no commands.
    async fn bits(
        &self,
        link: &mut impl Link,
        command: &'static str,
        pipeline: redis::Pipeline,
    ) -> Result<Vec<bool>, BitmapError> {
        if pipeline.is_empty() {
            return Ok(Vec::new());
        }
        let mut talk = self.talk(link);
        let replies = talk.send(pipeline).await?;
        replies.iter().map(|reply| talk.bit(command, reply)).collect()
    }

    /// What a script answers for each key; nothing for no keys.
    async fn ask(
        &self,
        link: &mut impl Link,
        script: &Script,
        arguments: &[u64],
        offsets: Vec<u64>,
        then: Option<Cmd>,
    ) -> Result<Vec<bool>, BitmapError> {
        let keys = offsets.len() / usize::from(self.layout.functions);
        if keys == 0 {
            return Ok(Vec::new());
        }
        let arguments = [arguments, &offsets].concat();
        match self.run(link, script, &arguments, then).await? {
            Value::Array(answers) if answers.len() == keys => {
                let talk = self.talk(link);
                answers.iter().map(|answer| talk.bit(script.name, answer)).collect()
            }
            other => Err(self.talk(link).unexpected(script.name, other)),
        }
    }

    /// Runs a script on the filter's keys. That of a growing filter answers a cursor that is none
    /// by itself.
    async fn run(
        &self,
        link: &mut impl Link,
        script: &Script,
        arguments: &[u64],
        then: Option<Cmd>,
    ) -> Result<Value, BitmapError> {
        let mut talk = self.talk(link);
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => talk.run(script, &[key], arguments, then).await,
            Kept::Growing { base, cursor } => match talk.run(script, &[cursor, base], arguments, then).await? {
                Value::BulkString(value) => Err(bad_cursor(cursor, &value)),
                reply => Ok(reply),
            },
        }
    }

    async fn remove(&self, link: &mut impl Link) -> Result<(), BitmapError> {
        let removed = match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => {
                let mut pipeline = redis::pipe();
                pipeline.cmd("UNLINK").arg(key);
                self.talk(link).send(pipeline).await?.pop().unwrap_or_default()
            }
            Kept::Growing { .. } => {
                let arguments = [GREATEST_CURSOR, self.layout.bits];
                self.run(link, &link::CLEAR_GROWING, &arguments, None).await?
            }
        };
        self.talk(link).integer("UNLINK", &removed).map(|_| ())
    }

    async fn let_expire(&self, link: &mut impl Link, after: Duration) -> Result<bool, BitmapError> {
        let after = milliseconds(after);
        let expiring = match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => {
                let mut pipeline = redis::pipe();
                pipeline.cmd("PEXPIRE").arg(key).arg(after);
                self.talk(link).send(pipeline).await?.pop().unwrap_or_default()
            }
            Kept::Growing { .. } => {
                self.run(link, &link::EXPIRE_GROWING, &[GREATEST_CURSOR, after], None)
                    .await?
            }
        };
        Ok(self.talk(link).integer("PEXPIRE", &expiring)? > 0)
    }

    /// How many bitmaps there are, one at least.
    pub(super) async fn bitmaps(&self, link: &mut impl Link) -> Result<u64, BitmapError> {
        let Kept::Growing { cursor, .. } = &self.kept else {
            return Ok(1);
        };
        let mut pipeline = redis::pipe();
        pipeline.cmd("GET").arg(cursor);
        let mut talk = self.talk(link);
        match talk.send(pipeline).await?.pop().unwrap_or_default() {
            Value::Nil => Ok(1),
            Value::BulkString(value) => {
                let digits = value.iter().all(u8::is_ascii_digit);
                let number = str::from_utf8(&value).ok().filter(|_| digits);
                match number.and_then(|number| number.parse::<u64>().ok()) {
                    Some(number) if number <= GREATEST_CURSOR => Ok(number + 1),
                    _ => Err(bad_cursor(cursor, &value)),
                }
            }
            other => Err(talk.unexpected("GET", other)),
        }
    }

    /// How many there can be.
    pub(super) fn most_bitmaps(&self) -> u64 {
        match self.kept {
            Kept::Piped { .. } | Kept::Scripted { .. } => 1,
            Kept::Growing { .. } => GREATEST_CURSOR + 1,
        }
    }

    /// The key of the bitmap of this number.
    pub(super) fn bitmap_key(&self, number: usize) -> Vec<u8> {
        match &self.kept {
            Kept::Piped { key } | Kept::Scripted { key } => key.clone(),
            Kept::Growing { base, .. } => [base, format!("-{number}").as_bytes()].concat(),
        }
    }
}

fn bad_cursor(key: &[u8], value: &[u8]) -> BitmapError {
    BitmapError(BitmapErrorKind::Cursor {
        key: lossy(key),
        // As long as any number; the rest of something else is not quoted.
        cursor: lossy(&value[..value.len().min(40)]),
        greatest: GREATEST_CURSOR,
    })
}

/// In whole milliseconds, at least one: Redis would take none for "remove it".
fn milliseconds(after: Duration) -> u64 {
    u64::try_from(after.as_nanos().div_ceil(1_000_000))
        .unwrap_or(u64::MAX)
        .max(1)
}
