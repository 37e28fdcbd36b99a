//! Many keys over many bitmaps: pairs of a [`RedisBitmap`] and a key, one round trip for all.

use super::calls::{ATTEMPTS, OFFSETS_PER_TRIP, Work};
use crate::RedisBitmap;
#[cfg(feature = "tokio")]
use crate::connection::Async;
use crate::connection::{Blocking, Connection, Script, Talk, now};
use crate::error::BitmapError;
use lanebloom::Funnel;
use lanebloom::internal::assert_same_length;
use redis::{ConnectionLike, Value};

/// Pairs of a filter and a key, as for a filter per user and day.
///
/// A batch takes one round trip for every 1024 bits, whichever filters they are in, and one more
/// for a script that the server does not know yet, or for a configuration that is to be written.
/// The server works on one pair after another; other clients may come between.
impl RedisBitmap {
    /// Writes whether the key of each pair may be in the filter of the pair to the same place of
    /// `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
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
        out: &mut [bool],
    ) -> Result<(), BitmapError> {
        now(work_on(&mut Blocking(connection), Work::Test, pairs, out)).map(|_| ())
    }

    /// Inserts the key of each pair into the filter of the pair, in order. Writes whether it
    /// changed the filter to the same place of `changed`, and returns how many did.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
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
        changed: &mut [bool],
    ) -> Result<usize, BitmapError> {
        now(work_on(&mut Blocking(connection), Work::Set, pairs, changed))
    }

    /// [`contains_pairs`](Self::contains_pairs) by an asynchronous connection.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert_async(&mut connection, "a").await?;
    /// let (pairs, mut found) = ([(&filter, "a"), (&filter, "b")], [false; 2]);
    /// RedisBitmap::contains_pairs_async(&mut connection, &pairs, &mut found).await?;
    /// assert_eq!(found, [true, false]);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tokio")]
    pub async fn contains_pairs_async<C, K>(
        connection: &mut C,
        pairs: &[(&Self, K)],
        out: &mut [bool],
    ) -> Result<(), BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel,
    {
        work_on(&mut Async(connection), Work::Test, pairs, out)
            .await
            .map(|_| ())
    }

    /// [`insert_pairs`](Self::insert_pairs) by an asynchronous connection.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_multiplexed_async_connection().await?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// let (pairs, mut new) = ([(&filter, "a"), (&filter, "a")], [false; 2]);
    /// RedisBitmap::insert_pairs_async(&mut connection, &pairs, &mut new).await?;
    /// assert_eq!(new, [true, false]);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "tokio")]
    pub async fn insert_pairs_async<C, K>(
        connection: &mut C,
        pairs: &[(&Self, K)],
        changed: &mut [bool],
    ) -> Result<usize, BitmapError>
    where
        C: redis::aio::ConnectionLike + Send,
        K: Funnel,
    {
        work_on(&mut Async(connection), Work::Set, pairs, changed).await
    }
}

/// A pair on its way: its place in the batch, and the key's offsets.
struct Pair<'a> {
    place: usize,
    filter: &'a RedisBitmap,
    offsets: Vec<u64>,
}

async fn work_on<K: Funnel>(
    connection: &mut impl Connection,
    work: Work,
    pairs: &[(&RedisBitmap, K)],
    out: &mut [bool],
) -> Result<usize, BitmapError> {
    assert_same_length(pairs.len(), out.len());
    let (mut trip, mut size) = (Vec::new(), 0);
    for (place, (filter, key)) in pairs.iter().enumerate() {
        let mut offsets = Vec::new();
        out[place] = false;
        if filter.layout.offsets(key, &mut offsets) {
            if size + offsets.len() > OFFSETS_PER_TRIP {
                send(connection, work, std::mem::take(&mut trip), out).await?;
                size = 0;
            }
            size += offsets.len();
            trip.push(Pair { place, filter, offsets });
        } else if work == Work::Set {
            // Nothing of this trip is sent, as in a batch.
            return Err(filter.no_text());
        }
    }
    send(connection, work, trip, out).await?;
    Ok(out.iter().filter(|answer| **answer).count())
}

/// Sends the pairs in one pipeline. Sends again what the server had no script, or no configuration
/// for.
async fn send(
    connection: &mut impl Connection,
    work: Work,
    mut pairs: Vec<Pair<'_>>,
    out: &mut [bool],
) -> Result<(), BitmapError> {
    for attempt in 0.. {
        let Some(first) = pairs.first() else { break };
        let name = first.filter.name();
        if attempt == ATTEMPTS {
            return Err(first.filter.gave_up(connection));
        }
        let mut pipeline = redis::pipe();
        let mut lens = Vec::with_capacity(pairs.len());
        for pair in &pairs {
            let before = pipeline.len();
            pair.filter.add_commands(connection, work, &pair.offsets, &mut pipeline);
            lens.push(pipeline.len() - before);
        }
        let mut replies = Talk { connection, key: name }
            .try_send(&mut pipeline)
            .await?
            .into_iter();
        let (mut again, mut scripts): (Vec<Pair<'_>>, Vec<&Script>) = (Vec::new(), Vec::new());
        for (pair, len) in pairs.into_iter().zip(lens) {
            let replies: Vec<Value> = replies.by_ref().take(len).collect();
            let (filter, place) = (pair.filter, pair.place);
            match filter.script(connection, work) {
                Some((script, _)) if replies.first().is_some_and(Script::is_unknown) => {
                    if !scripts.iter().any(|known| std::ptr::eq(*known, script)) {
                        scripts.push(script);
                    }
                    again.push(pair);
                }
                _ => match filter.answer(connection, work, replies)? {
                    Some(answer) => out[place] = answer,
                    None if work == Work::Test => out[place] = false,
                    None => {
                        filter.configure(connection).await?;
                        again.push(pair);
                    }
                },
            }
        }
        if !scripts.is_empty() {
            let mut pipeline = redis::pipe();
            scripts
                .iter()
                .for_each(|script| _ = pipeline.add_command(script.load()));
            Talk { connection, key: name }.send(pipeline).await?;
        }
        pairs = again;
    }
    Ok(())
}
