//! [`RedisBitmap`]: the layouts of other programs, and the calls over a blocking connection.
//! `bitmap/calls.rs` turns keys into commands and replies into answers, over any connection.

// In the order in which the methods stand on the type's page.
mod layouts;

mod blocking;

#[cfg(feature = "tokio")]
mod asynchronous;
mod calls;

use crate::layout::BitmapLayout;
use std::time::Duration;

/// A Bloom filter in Redis, in a layout of another program. It sets the same bits and gives the
/// same answers as that program.
///
/// This type is a description and cheap to clone. Each call takes a connection of the `redis`
/// crate. Blocking calls take `&mut dyn redis::ConnectionLike`: a connection, a client, or a pool's
/// connection. Calls named `_async` take `redis::aio::MultiplexedConnection` or another
/// asynchronous connection.
///
/// A batch takes one round trip for every 1024 bits (146 keys of 7 hash functions), so that the
/// server's other clients wait only briefly. If a round trip fails, the round trips before it stay
/// done.
///
/// # Errors
///
/// [A table](crate#failures) lists the failures of all calls. No method repeats it.
///
/// # Examples
///
/// ```no_run
/// use lanebloom_redis::RedisBitmap;
///
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let mut connection = client.get_connection()?;
/// let seen = RedisBitmap::go_zero("seen", 20 * 1000)?;
/// assert!(seen.insert(&mut connection, "ann")?);
/// assert!(!seen.insert(&mut connection, "ann")?);
/// assert!(
///     seen.contains(&mut connection, "ann")?
///         && !seen.contains(&mut connection, "eve")?
/// );
///
/// // Many keys in one round trip.
/// assert_eq!(seen.insert_batch(&mut connection, &["ann", "bob", "cid"])?, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RedisBitmap {
    pub(super) layout: BitmapLayout,
    /// The Redis key of the bitmap. Those of a growing filter's bitmaps begin with it.
    pub(super) key: Vec<u8>,
    kept: Kept,
    /// In milliseconds. Each insert sets it anew.
    expire: Option<u64>,
}

/// Where a filter's bits are, and how to reach them.
#[derive(Clone, Debug)]
enum Kept {
    /// In one bitmap, by pipelines of commands.
    Piped,
    /// In one bitmap, by scripts.
    Scripted,
    /// In one bitmap, by scripts that check the configuration beside it: a hash. The numbers that
    /// only tell how the filter was sized are as in the configuration.
    Configured {
        config: Vec<u8>,
        expected: String,
        rate: String,
    },
    /// In a bitmap for each number up to the cursor, by scripts.
    Growing { cursor: Vec<u8> },
}

/// The operation on the bits of keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    Test,
    Set,
}

impl Work {
    fn command(self) -> &'static str {
        match self {
            Self::Test => "GETBIT",
            Self::Set => "SETBIT",
        }
    }
}

/// In whole milliseconds, at least one: Redis would take zero for "remove it".
fn milliseconds(after: Duration) -> u64 {
    u64::try_from(after.as_nanos().div_ceil(1_000_000))
        .unwrap_or(u64::MAX)
        .max(1)
}
