//! The calls of [`RedisBitmap`] over a blocking connection.

use super::calls::{each, work_on};
use super::{RedisBitmap, Work};
use crate::connection::{Blocking, now};
use crate::error::BitmapError;
use lanebloom::{Answers, Funnel, Statistics};
use redis::ConnectionLike;
use std::time::Duration;

/// By a blocking connection.
///
/// [The type's page](Self#errors) lists the errors of all calls.
impl RedisBitmap {
    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    #[doc(alias = "GETBIT")]
    pub fn contains<K: Funnel + ?Sized>(
        &self,
        connection: &mut dyn ConnectionLike,
        key: &K,
    ) -> Result<bool, BitmapError> {
        now(self.work_one(&mut Blocking(connection), Work::Test, key))
    }

    /// Inserts `key`; returns whether this call changed the filter.
    ///
    /// If several clients race to insert a new key, exactly one gets `true`, since the server does
    /// one insert after another. (`jedis` and `scrapy` use pipelines, in which commands of two
    /// clients may alternate. Then at least one client gets `true`, and several may. If the key is
    /// a false positive, none does.)
    #[doc(alias = "SETBIT")]
    pub fn insert<K: Funnel + ?Sized>(
        &self,
        connection: &mut dyn ConnectionLike,
        key: &K,
    ) -> Result<bool, BitmapError> {
        now(self.work_one(&mut Blocking(connection), Work::Set, key))
    }

    /// Passes on whether each key may be in the filter. [`Answers`] has the places for `out`. If
    /// the call fails, it passes nothing on.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys. Nothing is sent then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
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
        out: impl Answers,
    ) -> Result<(), BitmapError> {
        now(self.work(&mut Blocking(connection), Work::Test, keys, out)).map(|_| ())
    }

    /// Inserts every key, in order; returns how many of them changed the filter.
    pub fn insert_batch<K: Funnel>(
        &self,
        connection: &mut dyn ConnectionLike,
        keys: &[K],
    ) -> Result<usize, BitmapError> {
        self.insert_batch_into(connection, keys, ())
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each key changed the
    /// filter. [`Answers`] has the places for `changed`.
    ///
    /// If the call fails, it passes on `true` for the keys that the server reported as new before,
    /// and `false` for all others: known, inserted without a reply, or not sent.
    ///
    /// # Panics
    ///
    /// If `changed` has room for more or fewer keys. Nothing is sent then.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom::Absent;
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBitmap::jedis("filter", 1000, 0.01)?;
    /// let (keys, mut first_seen, mut seen) = (["a", "a", "b"], [false; 3], vec![]);
    /// filter.insert_batch_into(&mut connection, &keys, &mut first_seen)?;
    /// assert_eq!(first_seen, [true, false, true]);
    ///
    /// let new = filter.insert_batch_into(
    ///     &mut connection,
    ///     &["c", "b"],
    ///     Absent(|i| seen.push(i)),
    /// )?;
    /// assert_eq!((new, seen), (1, vec![1]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_batch_into<K: Funnel>(
        &self,
        connection: &mut dyn ConnectionLike,
        keys: &[K],
        changed: impl Answers,
    ) -> Result<usize, BitmapError> {
        now(self.work(&mut Blocking(connection), Work::Set, keys, changed))
    }

    /// Removes all keys: deletes the bitmap, or all bitmaps of a growing filter, and sets its
    /// cursor to 0.
    ///
    /// An insert of another client comes either before or after. `clear` also deletes a Redis key
    /// that holds something else than a bitmap.
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
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

    /// The filter of Redisson's whose configuration is on the server; `None` if there is none.
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let made = RedisBitmap::redisson("users", 1000, 0.01)?;
    /// assert!(RedisBitmap::open_redisson(&mut connection, "users")?.is_none());
    /// made.insert(&mut connection, "ann")?;
    /// let users = RedisBitmap::open_redisson(&mut connection, "users")?.unwrap();
    /// assert_eq!(users.bit_size(), made.bit_size());
    /// assert_eq!(users.statistics(&mut connection)?.len, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open_redisson(
        connection: &mut dyn ConnectionLike,
        name: impl AsRef<[u8]>,
    ) -> Result<Option<Self>, BitmapError> {
        now(Self::open(&mut Blocking(connection), name.as_ref()))
    }

    /// Writes the configuration, if there is none; returns whether this call did. Redisson's
    /// `tryInit`. (That one takes a bitmap without a configuration too, with the keys that it has.)
    ///
    /// Only `redisson` has a configuration. For the other layouts this does nothing and returns
    /// false.
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let users = RedisBitmap::redisson("users", 1000, 0.01)?;
    /// assert!(users.try_init(&mut connection)? && !users.try_init(&mut connection)?);
    /// let other = RedisBitmap::redisson("users", 2000, 0.01)?;
    /// assert!(!other.try_init(&mut connection)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "tryInit")]
    pub fn try_init(&self, connection: &mut dyn ConnectionLike) -> Result<bool, BitmapError> {
        now(self.configure(&mut Blocking(connection)))
    }

    /// The fill, the number of keys and the false-positive rate, from the number of bits that are
    /// set. The server reads the whole bitmap to count them, and does nothing else meanwhile.
    ///
    /// The number of keys is Redisson's `count`. It and the rate assume good hash functions
    /// (scrapy's are not). The number of expected keys is not on the server, so `bits_per_key` is 0
    /// and `is_overfull` is false.
    #[doc(alias("count", "estimated_len", "BITCOUNT"))]
    pub fn statistics(&self, connection: &mut dyn ConnectionLike) -> Result<Statistics, BitmapError> {
        now(self.count(&mut Blocking(connection)))
    }

    /// Renames the filter's Redis keys to those of `to`, at one moment; returns whether there were
    /// any. Replaces the keys that `to` had.
    ///
    /// So a filter is rebuilt while readers go on: fill one under another name, then rename it.
    /// Times to live move with the keys. On Redis Cluster all names need the same hash tag.
    ///
    /// # Errors
    ///
    /// Also fails if `to` has another layout.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let seen = RedisBitmap::go_zero("seen", 20_000)?;
    /// seen.insert_batch(&mut connection, &["ann", "bob"])?;
    ///
    /// let next = RedisBitmap::go_zero("seen:next", 20_000)?;
    /// next.insert(&mut connection, "cid")?;
    /// assert!(next.rename(&mut connection, &seen)?);
    /// assert!(seen.contains(&mut connection, "cid")?);
    /// assert!(!seen.contains(&mut connection, "ann")?);
    /// assert!(!next.contains(&mut connection, "cid")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("RENAME", "replace"))]
    pub fn rename(&self, connection: &mut dyn ConnectionLike, to: &Self) -> Result<bool, BitmapError> {
        now(self.give_name(&mut Blocking(connection), to))
    }

    /// Makes the filter expire after this time, rounded up to milliseconds; returns whether there
    /// was a filter.
    ///
    /// All its Redis keys expire, those that later inserts make too. An insert after that begins a
    /// new filter, which does not expire.
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// use std::time::Duration;
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

/// Pairs of a filter and a key, as for a filter per user and day.
///
/// A batch takes one round trip for every 1024 bits, whichever filters they are in, and one more
/// for a script that the server does not know yet, or for a configuration that is to be written.
/// The server works on one pair after another; other clients may come between.
impl RedisBitmap {
    /// Passes on whether the key of each pair may be in the filter of the pair, as
    /// [`contains_batch`](Self::contains_batch) does.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer pairs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let day = |name: &str| RedisBitmap::jedis(format!("read:{name}"), 100, 0.01);
    /// let (ann, bob) = (day("ann:monday")?, day("bob:monday")?);
    /// ann.insert(&mut connection, "article 1")?;
    ///
    /// let mut read = [false; 3];
    /// let pairs = [(&ann, "article 1"), (&bob, "article 1"), (&ann, "article 2")];
    /// RedisBitmap::contains_pairs(&mut connection, &pairs, &mut read)?;
    /// assert_eq!(read, [true, false, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_pairs<K: Funnel>(
        connection: &mut dyn ConnectionLike,
        pairs: &[(&Self, K)],
        out: impl Answers,
    ) -> Result<(), BitmapError> {
        now(work_on(&mut Blocking(connection), Work::Test, each(pairs), out)).map(|_| ())
    }

    /// Inserts the key of each pair into the filter of the pair, in order. Passes on whether it
    /// changed the filter, as [`insert_batch_into`](Self::insert_batch_into) does, and returns how
    /// many did.
    ///
    /// # Panics
    ///
    /// If `changed` has room for more or fewer pairs.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let ann = RedisBitmap::jedis("read:ann", 100, 0.01)?;
    /// let seen = RedisBitmap::go_zero("seen", 20_000)?;
    /// let pairs = [(&ann, "article 1"), (&seen, "ann"), (&ann, "article 1")];
    /// let mut new = [false; 3];
    /// let count = RedisBitmap::insert_pairs(&mut connection, &pairs, &mut new)?;
    /// assert_eq!((count, new), (2, [true, true, false]));
    /// assert!(seen.contains(&mut connection, "ann")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn insert_pairs<K: Funnel>(
        connection: &mut dyn ConnectionLike,
        pairs: &[(&Self, K)],
        changed: impl Answers,
    ) -> Result<usize, BitmapError> {
        now(work_on(&mut Blocking(connection), Work::Set, each(pairs), changed))
    }
}
