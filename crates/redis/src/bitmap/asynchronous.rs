//! The calls of [`RedisBitmap`] and [`LocalBitmap`] over an asynchronous connection.

use super::Work;
use super::calls::{each, work_on};
use crate::RedisBitmap;
use crate::connection::Async;
use crate::error::BitmapError;
use crate::local_bitmap::{LocalBitmap, Refreshed};
use lanebloom::{Answers, Funnel, Statistics};
use redis::aio::ConnectionLike;
use std::time::Duration;

/// By an asynchronous connection, such as `redis::aio::MultiplexedConnection`.
///
/// Each call does what its twin without `_async` does, with the same errors and panics.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use lanebloom_redis::RedisBitmap;
/// use std::time::Duration;
///
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let connection = &mut client.get_multiplexed_async_connection().await?;
/// let seen = RedisBitmap::go_zero("seen", 20_000)?;
/// assert!(seen.insert_async(connection, "ann").await?);
/// assert!(seen.contains_async(connection, "ann").await?);
/// assert_eq!(seen.insert_batch_async(connection, &["ann", "bob"]).await?, 1);
/// let copy = seen.fetch_local_async(connection, 1 << 20).await?;
///
/// let (keys, mut flags) = (["bob", "cid"], [false; 2]);
/// seen.contains_batch_async(connection, &keys, &mut flags).await?;
/// assert_eq!(flags, [true, false]);
/// seen.insert_batch_into_async(connection, &keys, &mut flags).await?;
/// assert_eq!(flags, [false, true]);
/// assert!(copy.refresh_async(connection).await?.changed && copy.contains("cid"));
///
/// let pairs = [(&seen, "cid"), (&seen, "dan")];
/// RedisBitmap::contains_pairs_async(connection, &pairs, &mut flags).await?;
/// assert_eq!(flags, [true, false]);
/// RedisBitmap::insert_pairs_async(connection, &pairs, &mut flags).await?;
/// assert_eq!(flags, [false, true]);
/// assert_eq!(seen.statistics_async(connection).await?.len, 4);
///
/// assert!(seen.expire_async(connection, Duration::from_secs(9)).await?);
/// let other = RedisBitmap::go_zero("other", 20_000)?;
/// assert!(seen.rename_async(connection, &other).await?);
/// other.clear_async(connection).await?;
/// assert!(!other.contains_async(connection, "ann").await?);
///
/// let users = RedisBitmap::redisson("users", 1000, 0.01)?;
/// assert!(users.try_init_async(connection).await?);
/// assert!(RedisBitmap::open_redisson_async(connection, "users").await?.is_some());
/// # Ok(()) }
/// ```
impl RedisBitmap {
    /// [`contains`](Self::contains).
    pub async fn contains_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        key: &(impl Funnel + ?Sized),
    ) -> Result<bool, BitmapError> {
        self.work_one(&mut Async(connection), Work::Test, key).await
    }

    /// [`insert`](Self::insert).
    pub async fn insert_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        key: &(impl Funnel + ?Sized),
    ) -> Result<bool, BitmapError> {
        self.work_one(&mut Async(connection), Work::Set, key).await
    }

    /// [`contains_batch`](Self::contains_batch).
    pub async fn contains_batch_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        keys: &[impl Funnel],
        out: impl Answers,
    ) -> Result<(), BitmapError> {
        let found = self.work(&mut Async(connection), Work::Test, keys, out).await;
        found.map(|_| ())
    }

    /// [`insert_batch`](Self::insert_batch).
    pub async fn insert_batch_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        keys: &[impl Funnel],
    ) -> Result<usize, BitmapError> {
        self.insert_batch_into_async(connection, keys, ()).await
    }

    /// [`insert_batch_into`](Self::insert_batch_into).
    pub async fn insert_batch_into_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        keys: &[impl Funnel],
        changed: impl Answers,
    ) -> Result<usize, BitmapError> {
        self.work(&mut Async(connection), Work::Set, keys, changed).await
    }

    /// [`contains_pairs`](Self::contains_pairs).
    pub async fn contains_pairs_async(
        connection: &mut (impl ConnectionLike + Send),
        pairs: &[(&Self, impl Funnel)],
        out: impl Answers,
    ) -> Result<(), BitmapError> {
        let found = work_on(&mut Async(connection), Work::Test, each(pairs), out).await;
        found.map(|_| ())
    }

    /// [`insert_pairs`](Self::insert_pairs).
    pub async fn insert_pairs_async(
        connection: &mut (impl ConnectionLike + Send),
        pairs: &[(&Self, impl Funnel)],
        changed: impl Answers,
    ) -> Result<usize, BitmapError> {
        work_on(&mut Async(connection), Work::Set, each(pairs), changed).await
    }

    /// [`clear`](Self::clear).
    pub async fn clear_async(&self, connection: &mut (impl ConnectionLike + Send)) -> Result<(), BitmapError> {
        self.remove(&mut Async(connection)).await
    }

    /// [`expire`](Self::expire).
    pub async fn expire_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        after: Duration,
    ) -> Result<bool, BitmapError> {
        self.let_expire(&mut Async(connection), after).await
    }

    /// [`rename`](Self::rename).
    pub async fn rename_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        to: &Self,
    ) -> Result<bool, BitmapError> {
        self.give_name(&mut Async(connection), to).await
    }

    /// [`open_redisson`](Self::open_redisson).
    pub async fn open_redisson_async(
        connection: &mut (impl ConnectionLike + Send),
        name: impl AsRef<[u8]>,
    ) -> Result<Option<Self>, BitmapError> {
        Self::open(&mut Async(connection), name.as_ref()).await
    }

    /// [`try_init`](Self::try_init).
    pub async fn try_init_async(&self, connection: &mut (impl ConnectionLike + Send)) -> Result<bool, BitmapError> {
        self.configure(&mut Async(connection)).await
    }

    /// [`statistics`](Self::statistics).
    pub async fn statistics_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
    ) -> Result<Statistics, BitmapError> {
        self.count(&mut Async(connection)).await
    }

    /// [`fetch_local`](Self::fetch_local).
    pub async fn fetch_local_async(
        &self,
        connection: &mut (impl ConnectionLike + Send),
        limit: usize,
    ) -> Result<LocalBitmap, BitmapError> {
        LocalBitmap::fetch(&mut Async(connection), self.clone(), limit).await
    }
}

impl LocalBitmap {
    /// [`refresh`](Self::refresh) by an asynchronous connection. The example of the [calls named
    /// `_async`](RedisBitmap::contains_async) has it.
    pub async fn refresh_async(&self, connection: &mut (impl ConnectionLike + Send)) -> Result<Refreshed, BitmapError> {
        self.pull(&mut Async(connection)).await
    }
}
