//! Many keys over many bitmaps: pairs of a [`RedisBitmap`] and a key, one round trip for all.

use super::Work;
use super::calls::work_on;
use crate::RedisBitmap;
use crate::connection::{Blocking, now};
use crate::error::BitmapError;
use lanebloom::{Answers, Funnel};
use redis::ConnectionLike;

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

pub(super) fn each<'a, K>(
    pairs: &'a [(&'a RedisBitmap, K)],
) -> impl ExactSizeIterator<Item = (&'a RedisBitmap, &'a K)> {
    pairs.iter().map(|(filter, key)| (*filter, key))
}
