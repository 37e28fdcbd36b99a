//! [`SharedWindow`]: one set on many nodes that forgets. On the server each generation is a set of
//! its own, as that of a [`SharedBloom`](super::SharedBloom), which expires. Here each generation
//! has a [`Replica`], as long as it belongs to the window.
//!
//! # Nothing is lost by a rotation
//!
//! Inserts make the rotations, whenever they find one due. They run beside the thread that calls
//! this file. The thread reads the window's list of generations once per pass. It compares all of
//! them, not only the newest, with what was pushed. So a key may enter a generation after the
//! comparison, while the generation is the newest or from a thread that was held up. The next pass
//! pushes such a key. Passes come to a generation until it leaves the list, which is when its keys
//! have expired. A replica keeps its generation's memory from being used for another. A replica
//! whose filter is no longer the list's is replaced, since another filter may have been put in its
//! place.

use super::SharedBuilder;
use super::description::{Description, Keys};
use super::life::Life;
use super::node::{self, Counts, Node, SharedStats, Side};
use super::replica::{Expires, Replica, answer};
use crate::filter::windowed::{Numbered, WindowedBloom};
use crate::hash::{KeyHasher, Murmur3};
use crate::redis::error::{SharedError, SharedErrorKind};
use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;
use core::time::Duration;
use redis::{Client, ConnectionLike, Script};

/// Generations are at least so long, in ns: Redis counts in milliseconds.
const SHORTEST: u64 = 1_000_000;

/// A [`WindowedBloom`] that is one set with those of other processes, through Redis: "seen anywhere
/// in the last minutes?".
///
/// It derefs to the filter: look up and insert by the filter's own calls, of which none waits for
/// the network. It rotates by its age, as [`Builder::window`](crate::windowed::Builder::window)
/// says, by the [time of day](crate::windowed::Builder::time_of_day), so that all nodes have the
/// same generations. [The module](super#forgetting) says what is promised.
///
/// Dropped, it has its thread push what is left and end, as [`SharedBloom`](super::SharedBloom)
/// does, and waits for nothing.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let Some(redis) = Server::of("an example of SharedWindow").start() else { return Ok(()) };
/// use lanebloom::{WindowedBloom, redis::SharedWindow};
/// use std::time::Duration;
///
/// let server = redis::Client::open("redis://127.0.0.1:6379/")?;
/// # let server = redis.client();
/// let node = || {
///     let window = Duration::from_secs(600);
///     let filter = WindowedBloom::builder().expected_keys(1000).window(window).time_of_day().build().expect("a small filter");
///     SharedWindow::builder("logins").connect_window(server.clone(), filter)
/// };
/// let (one, other) = (node()?, node()?);
/// one.insert("ann");
/// one.sync(Duration::from_secs(30))?;
/// other.sync(Duration::from_secs(30))?;
/// assert!(other.contains("ann")); // for ten minutes
/// # Ok(())
/// # }
/// ```
pub struct SharedWindow<S = Murmur3> {
    filter: Arc<WindowedBloom<S>>,
    node: Node,
}

impl SharedWindow {
    /// A builder for a node of the set of this name, to be
    /// [connected](SharedBuilder::connect_window). The set's keys in Redis are `{name}:meta`, and
    /// of the generation of number `n` those that a [`SharedBloom`](super::SharedBloom) has, after
    /// `{name}:n`.
    ///
    /// ```
    /// use lanebloom::{WindowedBloom, redis::SharedWindow};
    /// use std::time::Duration;
    ///
    /// // Nobody listens at port 1.
    /// let nobody = redis::Client::open("redis://127.0.0.1:1/")?;
    /// let filter = WindowedBloom::builder().expected_keys(1000).window(Duration::from_secs(60)).time_of_day().build()?;
    /// assert!(SharedWindow::builder("logins").connect_window(nobody, filter).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(name: impl Into<String>) -> SharedBuilder {
        super::SharedBloom::builder(name)
    }
}

impl SharedBuilder {
    /// Connects, brings `filter` and the set together, and starts the thread that keeps them so.
    ///
    /// The filter may have keys, and the caller may keep an `Arc` of it: what is inserted there is
    /// shared as well. All generations that can be visible are in use from then on.
    ///
    /// # Errors
    ///
    /// Those of [`connect`](Self::connect), and if the filter does not rotate by age, or by a clock
    /// that other nodes do not have, or its generations are shorter than a millisecond, if some of
    /// them are of other times than other nodes' because its clock was set back or
    /// [`rotate`](WindowedBloom::rotate) was called, if the set on the server has another period or
    /// number of generations, or if it was [to expire](Self::expires_at) besides.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedWindow").start() else { return Ok(()) };
    /// use lanebloom::{WindowedBloom, redis::SharedWindow};
    /// use std::time::Duration;
    ///
    /// # let server = redis.client();
    /// let builder = WindowedBloom::builder().expected_keys(1000).window(Duration::from_secs(60));
    /// let error = SharedWindow::builder("logins").connect_window(server.clone(), builder.clone().build()?).unwrap_err();
    /// assert_eq!(error.to_string(), "the window ages by this machine's monotonic clock, which no other has: build it by `time_of_day`");
    ///
    /// let logins = SharedWindow::builder("logins").connect_window(server.clone(), builder.clone().time_of_day().build()?)?;
    /// assert_eq!(logins.generations(), 4);
    ///
    /// let other = builder.generations(3).time_of_day().build()?;
    /// let error = SharedWindow::builder("logins").connect_window(server, other).unwrap_err();
    /// assert!(error.is_incompatible());
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the set \"logins\" on the server is a window by 4 generations of 20s, here it is a window by 3 generations of 30s"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn connect_window<S: KeyHasher + Send + Sync + 'static>(
        self,
        server: Client,
        filter: impl Into<Arc<WindowedBloom<S>>>,
    ) -> Result<SharedWindow<S>, SharedError> {
        let filter = filter.into();
        if self.expires != 0 {
            return Err(SharedErrorKind::WindowExpires(self.expires).into());
        }
        let side = Generations::new(Keys::of(&self.name)?, Arc::clone(&filter))?;
        let node = Node::start(server, Box::new(side), self.interval, self.timeout)?;
        Ok(SharedWindow { filter, node })
    }
}

impl<S> SharedWindow<S> {
    /// Pushes and pulls now, and waits for it: once this is `Ok`, every key that was inserted here
    /// before the call and has not expired is on the server, and every key that was on the server
    /// before the call, of a generation that has not expired, is here.
    ///
    /// Attempts that fail are repeated, after growing pauses, until `timeout` is over. Not for
    /// request paths: inserts and lookups need no `sync`.
    ///
    /// # Errors
    ///
    /// As of [`SharedBloom::sync`](super::SharedBloom::sync); and after the clock was set back by
    /// more than a quarter of a generation, or [`rotate`](WindowedBloom::rotate) was called, until
    /// the generations that were there have expired.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedWindow").start() else { return Ok(()) };
    /// use lanebloom::{WindowedBloom, redis::SharedWindow};
    /// use std::time::Duration;
    ///
    /// # let server = redis.client();
    /// let node = || {
    ///     let builder = WindowedBloom::builder().expected_keys(1000).window(Duration::from_secs(60)).time_of_day();
    ///     SharedWindow::builder("logins").connect_window(server.clone(), builder.build().expect("a small filter"))
    /// };
    /// let one = node()?;
    /// one.insert("ann");
    /// one.sync(Duration::from_secs(30))?;
    /// // From here on it is at every node that starts.
    /// assert!(node()?.contains("ann"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn sync(&self, timeout: Duration) -> Result<(), SharedError> {
        self.node.sync(timeout)
    }

    /// [`sync`](Self::sync), and then ends the background thread and waits until it is gone, as
    /// [`SharedBloom::close`](super::SharedBloom::close).
    ///
    /// # Errors
    ///
    /// Those of [`sync`](Self::sync), or if the thread has not ended within `timeout`. It goes on
    /// as after a drop then.
    ///
    /// # Examples
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedWindow").start() else { return Ok(()) };
    /// use lanebloom::{WindowedBloom, redis::SharedWindow};
    /// use std::time::Duration;
    ///
    /// # let server = redis.client();
    /// let node = || {
    ///     let builder = WindowedBloom::builder().expected_keys(1000).window(Duration::from_secs(60)).time_of_day();
    ///     SharedWindow::builder("logins").connect_window(server.clone(), builder.build().expect("a small filter"))
    /// };
    /// let logins = node()?;
    /// logins.insert("ann");
    /// logins.close(Duration::from_secs(30))?;
    /// assert!(node()?.contains("ann"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn close(self, timeout: Duration) -> Result<(), SharedError> {
        self.node.close(timeout)
    }

    /// What was done so far, and how the last attempt went: of all generations together.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedWindow").start() else { return Ok(()) };
    /// use lanebloom::{WindowedBloom, redis::SharedWindow};
    /// use std::time::Duration;
    ///
    /// # let server = redis.client();
    /// let filter = WindowedBloom::builder().expected_keys(1000).window(Duration::from_secs(60)).time_of_day().build()?;
    /// let logins = SharedWindow::builder("logins").connect_window(server, filter)?;
    /// let stats = logins.stats();
    /// assert!(stats.passes >= 1 && stats.last_error.is_none());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stats(&self) -> SharedStats {
        self.node.stats()
    }

    /// The local filter.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let Some(redis) = Server::of("an example of SharedWindow").start() else { return Ok(()) };
    /// use lanebloom::{WindowedBloom, redis::SharedWindow};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// # let server = redis.client();
    /// let filter = WindowedBloom::builder().expected_keys(1000).window(Duration::from_secs(60)).time_of_day().build()?;
    /// let logins = SharedWindow::builder("logins").connect_window(server, filter)?;
    /// let for_a_thread = Arc::clone(logins.filter());
    /// for_a_thread.insert("ann");
    /// assert!(logins.contains("ann"));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn filter(&self) -> &Arc<WindowedBloom<S>> {
        &self.filter
    }
}

impl<S> Deref for SharedWindow<S> {
    type Target = WindowedBloom<S>;

    fn deref(&self) -> &Self::Target {
        &self.filter
    }
}

impl<S: fmt::Debug> fmt::Debug for SharedWindow<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWindow")
            .field("filter", &self.filter)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

/// The side of a [`SharedWindow`].
struct Generations<S> {
    window: Arc<WindowedBloom<S>>,
    keys: Keys,
    description: Description,
    generations: u64,
    /// Nanoseconds of a generation.
    period: u64,
    look: Script,
    /// Sorted by the generation's number, the newest first.
    replicas: Vec<(u64, Replica<()>)>,
    /// The counts of replicas that were dropped.
    past: Counts,
}

impl<S: KeyHasher> Generations<S> {
    fn new(keys: Keys, window: Arc<WindowedBloom<S>>) -> Result<Self, SharedError> {
        let period = window.period().ok_or(SharedErrorKind::WindowAgeless)?;
        if window.has_own_clock() {
            return Err(SharedErrorKind::WindowClock.into());
        }
        if period < SHORTEST {
            let (period, least) = (Duration::from_nanos(period), Duration::from_nanos(SHORTEST));
            return Err(SharedErrorKind::WindowPeriod { period, least }.into());
        }
        let generations = window.generations() as u64;
        let life = Life::Window { generations, period };
        let list = Self::list(&window, 0)?;
        Ok(Self {
            description: Description::of(list[0].1.layout(), window.hasher(), life),
            window,
            keys,
            generations,
            period,
            look: Script::new(include_str!("look.lua")),
            replicas: Vec::new(),
            past: Counts::default(),
        })
    }

    /// The generations that other nodes have too, the newest of which is `least` at least.
    fn list(window: &WindowedBloom<S>, least: u64) -> Result<Vec<Numbered>, SharedError> {
        let list = window.numbered_generations(least).map_err(SharedErrorKind::Build)?;
        Ok(list.ok_or(SharedErrorKind::WindowAstray)?)
    }

    /// Has a replica of each of the window's generations, of which the newest is `least` at least,
    /// and of none else.
    fn follow(&mut self, least: u64) -> Result<(), SharedError> {
        let list = Self::list(&self.window, least)?;
        let past = &mut self.past;
        self.replicas.retain(|(number, replica)| {
            let kept = list
                .iter()
                .any(|one| one.0 == *number && Arc::ptr_eq(&one.1, replica.filter()));
            if !kept {
                past.add(replica.counts);
            }
            kept
        });
        // The memory of what was let go is used again by a rotation, and an insert that makes it
        // should not have to clear it.
        self.window.engine.clean_ahead();
        for (place, (number, filter)) in list.into_iter().enumerate() {
            if self.replicas.get(place).is_none_or(|there| there.0 != number) {
                let replica = Replica::new(self.keys.of_generation(number), self.description, filter)?;
                self.replicas.insert(place, (number, replica));
            }
        }
        Ok(())
    }

    /// In how many ms from `now` on, in ns, no node needs a generation any more: its keys have
    /// expired everywhere one generation later than by this node's clock, if clocks differ by no
    /// more. Nothing if they have here.
    fn remaining(&self, number: u64, now: u64) -> Option<u64> {
        let expires = self.period.saturating_mul(number.saturating_add(self.generations));
        (now < expires).then(|| (expires - now).saturating_add(self.period).div_ceil(1_000_000))
    }

    /// The last exchange of each generation that the server knows, the newest first, and whether
    /// anybody has pushed to the generation after the newest. Begins the window where the server
    /// has none, and is an error if it has another.
    fn look(&self, server: &mut dyn ConnectionLike) -> Result<(Vec<Vec<u8>>, bool), SharedError> {
        // In ms. It outlives all generations, and is written once in each.
        let lasting = |periods: u64| {
            let time = self.period.saturating_mul(self.generations.saturating_add(periods));
            time.div_ceil(1_000_000)
        };
        let newest = self.replicas.first().map_or(0, |newest| newest.0);
        let mut call = self.look.prepare_invoke();
        call.key(self.keys.key("meta"));
        // (A node that has nothing to push makes no versions.)
        call.key(self.keys.of_generation(newest.saturating_add(1)).key("versions"));
        for (number, _) in &self.replicas {
            call.key(self.keys.of_generation(*number).key("meta"));
        }
        call.arg(self.description.to_string()).arg(lasting(2)).arg(lasting(3));
        let answer = answer(call.invoke(server), "look.lua")?;
        let [description, ahead, heads @ ..] = &answer[..] else {
            return Err(self.keys.foreign("meta", "the script answers too little"));
        };
        if !description.is_empty() {
            self.description.check(&self.keys, description)?;
        }
        if heads.len() != self.replicas.len() {
            return Err(self.keys.foreign("meta", "the script answers for other generations"));
        }
        Ok((heads.to_vec(), ahead == b"1"))
    }
}

impl<S: KeyHasher + Send + Sync> Side for Generations<S> {
    fn prepare(&mut self) -> Result<(), SharedError> {
        self.follow(0)
    }

    fn pass(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        let clock = self.window.now() / self.period;
        let newest = self.replicas.first().map_or(0, |newest| newest.0);
        if newest > clock.saturating_add(1) {
            return Err(SharedErrorKind::WindowAstray.into());
        }
        let (heads, ahead) = self.look(server)?;
        // Where others' clocks are ahead of this one, so that what they insert is found here at
        // once. One whose clock is wrong by more is not followed.
        if ahead && newest <= clock {
            self.follow(newest + 1)?;
        }
        let mut refused = None;
        for i in 0..self.replicas.len() {
            let number = self.replicas[i].0;
            let Some(remaining) = self.remaining(number, self.window.now()) else {
                continue;
            };
            // Their numbers have no gaps.
            let place = newest.checked_sub(number).map(|place| place as usize);
            let head = place.and_then(|place| heads.get(place)).map(Vec::as_slice);
            let replica = &mut self.replicas[i].1;
            replica.expires = Expires::In {
                time: remaining,
                tolerance: self.period.div_ceil(4 * 1_000_000),
            };
            match replica.catch_up(server, ended, head) {
                Ok(()) => {}
                // What it does not take, it may still give.
                Err(error) if error.is_refusal() => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        refused.map_or(Ok(()), Err)
    }

    fn forget(&mut self) {
        self.replicas.iter_mut().for_each(|(_, replica)| replica.forget());
    }

    fn most_bytes(&self) -> usize {
        // All are of one layout.
        self.replicas
            .first()
            .map_or(usize::MAX, |(_, replica)| replica.most_bytes())
    }

    fn counts(&self) -> Counts {
        let replicas = self.replicas.iter().map(|replica| replica.1.counts);
        let mut counts = self.past;
        for each in replicas {
            counts.add(each);
            counts.comparing += each.comparing;
        }
        counts
    }
}

/// [`exchange_over`](super::exchange_over) of a window.
#[doc(hidden)]
pub fn exchange_window_over<S: KeyHasher + Send + Sync>(
    server: &mut dyn ConnectionLike,
    filter: Arc<WindowedBloom<S>>,
    passes: usize,
) -> Result<(), SharedError> {
    node::passes(Generations::new(Keys::of("fuzz")?, filter)?, server, passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The replica of a generation is one of the filter that the window has for it: not of another
    /// that was there before, as where the memory of a new generation was refused.
    #[test]
    fn a_generation_whose_filter_is_another_is_followed() {
        let builder = WindowedBloom::builder()
            .expected_keys(100)
            .window(Duration::from_secs(60));
        let window = builder.clock(|| Duration::from_secs(1_000_000)).build().unwrap();
        let mut side = Generations::new(Keys::of("recent").unwrap(), Arc::new(window)).unwrap();
        let mut numbers = Vec::new();
        for _ in 0..3 {
            side.follow(0).unwrap();
            let list = side.window.numbered_generations(0).unwrap().unwrap();
            assert_eq!(side.replicas.len(), list.len());
            for ((number, filter), (followed, replica)) in list.iter().zip(&side.replicas) {
                assert_eq!(number, followed);
                assert!(Arc::ptr_eq(filter, replica.filter()), "{number}");
            }
            numbers.push(list[0].0);
            drop(list);
            // The newest has its number still, and another filter: the replica holds on to the one
            // that was cleared.
            Arc::get_mut(&mut side.window).unwrap().clear();
        }
        assert!(numbers.iter().all(|number| *number == numbers[0]));
    }
}
