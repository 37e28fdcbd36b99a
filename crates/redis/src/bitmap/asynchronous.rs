//! The calls of [`RedisBitmap`] over an asynchronous connection.

use super::calls::Work;
use crate::RedisBitmap;
use crate::connection::Async;
use crate::error::BitmapError;
use lanebloom::Funnel;
use std::time::Duration;

/// By an asynchronous connection, such as `redis::aio::MultiplexedConnection`.
///
/// Each call does what its twin without `_async` does, with the same errors and panics.
impl RedisBitmap {
    /// [`contains`](Self::contains).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert_async(&mut connection, "ann").await?;
    /// assert!(filter.contains_async(&mut connection, "ann").await?);
    /// assert!(!filter.contains_async(&mut connection, "eve").await?);
    /// # Ok(()) }
    /// ```
    pub async fn contains_async<C, K>(&self, connection: &mut C, key: &K) -> Result<bool, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel + ?Sized,
    {
        self.work_one(&mut Async(connection), Work::Test, key).await
    }

    /// [`insert`](Self::insert).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::jedis("filter", 1000, 0.01)?;
    /// assert!(filter.insert_async(&mut connection, "ann").await?);
    /// assert!(!filter.insert_async(&mut connection, "ann").await?);
    /// # Ok(()) }
    /// ```
    pub async fn insert_async<C, K>(&self, connection: &mut C, key: &K) -> Result<bool, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel + ?Sized,
    {
        self.work_one(&mut Async(connection), Work::Set, key).await
    }

    /// [`contains_batch`](Self::contains_batch).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert_async(&mut connection, "b").await?;
    /// let (keys, mut found) = (["a", "b"], [false; 2]);
    /// filter.contains_batch_async(&mut connection, &keys, &mut found).await?;
    /// assert_eq!(found, [false, true]);
    /// # Ok(()) }
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
        let found = self.work(&mut Async(connection), Work::Test, keys, out).await;
        found.map(|_| ())
    }

    /// [`insert_batch`](Self::insert_batch).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::guava("filter", "filter:cursor", 1000, 0.01)?;
    /// let keys = ["a", "b", "a"];
    /// assert_eq!(filter.insert_batch_async(&mut connection, &keys).await?, 2);
    /// # Ok(()) }
    /// ```
    pub async fn insert_batch_async<C, K>(&self, connection: &mut C, keys: &[K]) -> Result<usize, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel,
    {
        self.insert_batch_flagged_async(connection, keys, &mut vec![false; keys.len()])
            .await
    }

    /// [`insert_batch_flagged`](Self::insert_batch_flagged).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// let (keys, mut first_seen) = (["a", "a", "b"], [false; 3]);
    /// filter
    ///     .insert_batch_flagged_async(&mut connection, &keys, &mut first_seen)
    ///     .await?;
    /// assert_eq!(first_seen, [true, false, true]);
    /// # Ok(()) }
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
        self.work(&mut Async(connection), Work::Set, keys, changed).await
    }

    /// [`clear`](Self::clear).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert_async(&mut connection, "a").await?;
    /// filter.clear_async(&mut connection).await?;
    /// assert!(!filter.contains_async(&mut connection, "a").await?);
    /// # Ok(()) }
    /// ```
    pub async fn clear_async<C>(&self, connection: &mut C) -> Result<(), BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
    {
        self.remove(&mut Async(connection)).await
    }

    /// [`expire`](Self::expire).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// use std::time::Duration;
    ///
    /// let after = Duration::from_secs(9);
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// assert!(!filter.expire_async(&mut connection, after).await?);
    /// filter.insert_async(&mut connection, "a").await?;
    /// assert!(filter.expire_async(&mut connection, after).await?);
    /// # Ok(()) }
    /// ```
    pub async fn expire_async<C>(&self, connection: &mut C, after: Duration) -> Result<bool, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
    {
        self.let_expire(&mut Async(connection), after).await
    }

    /// [`open_redisson`](Self::open_redisson).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let made = RedisBitmap::redisson("users", 1000, 0.01)?;
    /// made.insert_async(&mut connection, "ann").await?;
    /// let users = RedisBitmap::open_redisson_async(&mut connection, "users").await?;
    /// assert!(users.unwrap().contains_async(&mut connection, "ann").await?);
    /// # Ok(()) }
    /// ```
    pub async fn open_redisson_async<C>(connection: &mut C, name: impl AsRef<[u8]>) -> Result<Option<Self>, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
    {
        Self::open(&mut Async(connection), name.as_ref()).await
    }

    /// [`try_init`](Self::try_init).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let users = RedisBitmap::redisson("users", 1000, 0.01)?;
    /// assert!(users.try_init_async(&mut connection).await?);
    /// assert!(!users.try_init_async(&mut connection).await?);
    /// # Ok(()) }
    /// ```
    pub async fn try_init_async<C>(&self, connection: &mut C) -> Result<bool, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
    {
        self.configure(&mut Async(connection)).await
    }

    /// [`estimated_len`](Self::estimated_len).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert_async(&mut connection, "a").await?;
    /// assert_eq!(filter.estimated_len_async(&mut connection).await?, 1);
    /// # Ok(()) }
    /// ```
    pub async fn estimated_len_async<C>(&self, connection: &mut C) -> Result<u64, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
    {
        self.estimate(&mut Async(connection)).await
    }

    /// [`rename`](Self::rename).
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let seen = RedisBitmap::go_zero("seen", 20_000)?;
    /// let next = RedisBitmap::go_zero("seen:next", 20_000)?;
    /// next.insert_async(&mut connection, "a").await?;
    /// assert!(next.rename_async(&mut connection, &seen).await?);
    /// assert!(seen.contains_async(&mut connection, "a").await?);
    /// # Ok(()) }
    /// ```
    pub async fn rename_async<C>(&self, connection: &mut C, to: &Self) -> Result<bool, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
    {
        self.give_name(&mut Async(connection), to).await
    }
}
