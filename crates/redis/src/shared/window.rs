//! [`SharedWindow`]: one set on many nodes that forgets. On the server each generation is a set of
//! its own, like a [`SharedBloom`](super::SharedBloom)'s, which expires. Here each generation has a
//! [`Replica`], as long as it belongs to the window.
//!
//! # Nothing is lost by a rotation
//!
//! Inserts make the rotations that they find due, beside the thread that calls this file. The
//! thread reads the window's list of generations once per pass, and compares all of them with the
//! pushed bits, not only the newest. If a key enters a generation after the comparison, the next
//! pass pushes it. Passes come to a generation until it leaves the list, when its keys have
//! expired. A replica keeps its generation's memory from reuse. If the list has another filter
//! under a number, this file replaces the replica of that number.

use super::node::{Counts, Node, Replicate};
use super::redis_keys::RedisKeys;
use super::replica::{Expiry, Replica};
use super::set_description::{Lifetime, SetDescription};
use super::{Shared, SharedBuilder};
use crate::error::SharedError;
use lanebloom::{ConcurrentBloom, KeyHasher, Murmur3, WindowedBloom};
use redis::{Client, ConnectionLike, Script};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// The shortest generation, in ns: Redis counts in milliseconds.
const SHORTEST: u64 = 1_000_000;

static LOOK: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("look.lua")));

/// A [`WindowedBloom`] that shares one set with other processes, through Redis: "seen anywhere in
/// the last minutes?".
///
/// It rotates [by age](lanebloom::windowed::Builder::window), measured by the [time of
/// day](lanebloom::windowed::Builder::time_of_day), so that all nodes have the same generations.
/// [The module](super#forgetting) has the promises; [`Shared`] says what a drop does.
///
/// # Examples
///
/// ```no_run
/// use lanebloom::WindowedBloom;
/// use lanebloom_redis::SharedBloom;
/// use std::time::Duration;
///
/// let server = redis::Client::open("redis://127.0.0.1/")?;
/// let minute = Duration::from_secs(60);
/// let builder = WindowedBloom::builder().expected_keys(1000).window(minute);
/// let node = || {
///     let filter = builder.clone().time_of_day().build().expect("a small filter");
///     SharedBloom::builder("logins").connect_window(server.clone(), filter)
/// };
/// let (one, other) = (node()?, node()?);
/// one.insert("ann");
/// one.sync(Duration::from_secs(30))?;
/// other.sync(Duration::from_secs(30))?;
/// assert!(other.contains("ann")); // for a minute
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SharedWindow<S = Murmur3> = Shared<WindowedBloom<S>>;

impl SharedBuilder {
    /// [`connect`](Self::connect) for a filter that forgets. From then on it uses all generations
    /// that can be visible. The set's keys in Redis are `{name}:meta` and, for generation `n`, the
    /// keys of a [`SharedBloom`](super::SharedBloom) after `{name}:n`.
    ///
    /// # Errors
    ///
    /// Fails as [`connect`](Self::connect) does, and in these cases:
    ///
    /// - The filter does not rotate by age, or ages by this machine's monotonic clock, or its
    ///   generations are shorter than a millisecond.
    /// - Its generations differ from the other nodes', because its clock was set back or
    ///   [`rotate`](WindowedBloom::rotate) was called.
    /// - The set on the server has another period or number of generations.
    /// - [`expires_at`](Self::expires_at) was called.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom::WindowedBloom;
    /// use lanebloom_redis::SharedBloom;
    /// use std::time::Duration;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let minute = Duration::from_secs(60);
    /// let builder = WindowedBloom::builder().expected_keys(1000).window(minute);
    /// let connect = |filter| {
    ///     SharedBloom::builder("logins").connect_window(server.clone(), filter)
    /// };
    /// let error = connect(builder.clone().build()?).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the window ages by this machine's monotonic clock, which other nodes \
    ///      cannot read: build it with `time_of_day`"
    /// );
    ///
    /// let logins = connect(builder.clone().time_of_day().build()?)?;
    /// assert_eq!(logins.generations(), 4);
    ///
    /// let error = connect(builder.generations(3).time_of_day().build()?).unwrap_err();
    /// assert!(error.is_incompatible());
    /// assert_eq!(
    ///     error.to_string(),
    ///     "the set \"logins\" on the server is a window by 4 generations of 20s, \
    ///      here it is a window by 3 generations of 30s"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn connect_window<S: KeyHasher + Send + Sync + 'static>(
        mut self,
        server: Client,
        filter: impl Into<Arc<WindowedBloom<S>>>,
    ) -> Result<SharedWindow<S>, SharedError> {
        let filter = filter.into();
        let replica = self.window_replica(&filter)?;
        let node = Node::start(server, replica, &self.node)?.into();
        Ok(Shared { filter, node })
    }

    pub(super) fn window_replica<S: KeyHasher>(
        &mut self,
        filter: &Arc<WindowedBloom<S>>,
    ) -> Result<WindowReplica<S>, SharedError> {
        self.check_no_expiry("a window expires by its generations: it")?;
        self.node.open_until_filled = false;
        WindowReplica::new(RedisKeys::of(&self.name)?, Arc::clone(filter))
    }
}

/// The replica of a [`SharedWindow`].
pub(super) struct WindowReplica<S> {
    window: Arc<WindowedBloom<S>>,
    keys: RedisKeys,
    description: SetDescription,
    generations: u64,
    /// Nanoseconds of a generation.
    period: u64,
    /// Sorted by the generation's number, the newest first.
    replicas: Vec<(u64, Replica<()>)>,
    /// The counts of replicas that were dropped.
    past: Counts,
}

fn astray() -> SharedError {
    SharedError::other(
        "the window's generations differ from those of other nodes until they expire: its clock was set back, or `rotate` was called",
    )
}

/// A generation and its number.
type Numbered = (u64, Arc<ConcurrentBloom<()>>);

impl<S: KeyHasher> WindowReplica<S> {
    fn new(keys: RedisKeys, window: Arc<WindowedBloom<S>>) -> Result<Self, SharedError> {
        let generations = window.generations() as u64;
        let unfit = |why: &str| SharedError::other(format!("the window {why}"));
        let age = window.window().ok_or_else(|| {
            unfit("rotates on a call or when it is full, which other nodes do not notice: build it with `window`")
        })?;
        window.common_time().ok_or_else(|| {
            unfit("ages by this machine's monotonic clock, which other nodes cannot read: build it with `time_of_day`")
        })?;
        // A period is a whole number of nanoseconds, so nothing is rounded.
        let period = age.as_nanos() as u64 / (generations - 1);
        if period < SHORTEST {
            let (period, least) = (Duration::from_nanos(period), Duration::from_nanos(SHORTEST));
            return Err(SharedError::other(format!(
                "generations of {period:?} are shorter than {least:?}, the shortest that the server supports"
            )));
        }
        let lifetime = Lifetime::Window { generations, period };
        let list = Self::list(&window, 0)?;
        Ok(Self {
            description: SetDescription::of(&list[0].1, window.hasher(), lifetime),
            window,
            keys,
            generations,
            period,
            replicas: Vec::new(),
            past: Counts::default(),
        })
    }

    /// The generations that all nodes have. The number of the newest is at least `least`.
    fn list(window: &WindowedBloom<S>, least: u64) -> Result<Vec<Numbered>, SharedError> {
        let list = window.numbered(least).map_err(SharedError::build)?;
        list.ok_or_else(astray)
    }

    /// Makes a replica of each of the window's generations, and drops all others. The number of the
    /// newest is at least `least`.
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
        // A rotation reuses the memory of dropped generations. It is cleared here, so that the
        // insert that rotates need not clear it.
        self.window.clear_dropped();
        for (place, (number, filter)) in list.into_iter().enumerate() {
            if self.replicas.get(place).is_none_or(|there| there.0 != number) {
                let replica = Replica::new(self.keys.of_generation(number), self.description, filter)?;
                self.replicas.insert(place, (number, replica));
            }
        }
        Ok(())
    }

    /// In nanoseconds of the clock. (A window keeps the clock that `new` has checked.)
    fn now(&self) -> u64 {
        self.window.common_time().unwrap_or_default()
    }

    /// The ms from `now` (in ns) until no node needs a generation any more. That is one generation
    /// after its keys expire by this node's clock, if clocks differ by no more than that. `None` if
    /// that time is over.
    fn remaining(&self, number: u64, now: u64) -> Option<u64> {
        let expires = self.period.saturating_mul(number.saturating_add(self.generations));
        (now < expires).then(|| (expires - now).saturating_add(self.period).div_ceil(1_000_000))
    }

    /// The last exchange of each generation on the server, the newest first, and whether any node
    /// has pushed to the generation after the newest. Begins the window if the server has none, and
    /// fails if it has another one.
    fn look(&self, server: &mut dyn ConnectionLike) -> Result<(Vec<Vec<u8>>, bool), SharedError> {
        // In ms. The window's meta key outlives all generations, and is written once in each.
        let lasting = |periods: u64| {
            let time = self.period.saturating_mul(self.generations.saturating_add(periods));
            time.div_ceil(1_000_000)
        };
        let newest = self.replicas.first().map_or(0, |newest| newest.0);
        let mut call = LOOK.prepare_invoke();
        call.key(self.keys.key("meta"));
        // (A node that has nothing to push makes no versions.)
        call.key(self.keys.of_generation(newest.saturating_add(1)).key("versions"));
        for (number, _) in &self.replicas {
            call.key(self.keys.of_generation(*number).key("meta"));
        }
        call.arg(self.description.to_string()).arg(lasting(2)).arg(lasting(3));
        let answer = self.keys.answer(call.invoke(server), "look.lua")?;
        let [description, ahead, heads @ ..] = &answer[..] else {
            return Err(self.keys.foreign("meta", "the reply of the script is too short"));
        };
        if !description.is_empty() {
            self.description.check(&self.keys, description)?;
        }
        if heads.len() != self.replicas.len() {
            return Err(self
                .keys
                .foreign("meta", "the reply of the script is about other generations"));
        }
        Ok((heads.to_vec(), ahead == b"1"))
    }
}

impl<S: KeyHasher + Send + Sync> Replicate for WindowReplica<S> {
    fn prepare(&mut self) -> Result<(), SharedError> {
        self.follow(0)
    }

    fn pass(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        let clock = self.now() / self.period;
        let newest = self.replicas.first().map_or(0, |newest| newest.0);
        if newest > clock.saturating_add(1) {
            return Err(astray());
        }
        let (heads, ahead) = self.look(server)?;
        // Follows a clock that is ahead of this one, so that its node's inserts are found here at
        // once. A clock that is ahead by more than a generation is not followed.
        if ahead && newest <= clock {
            self.follow(newest + 1)?;
        }
        let mut refused = None;
        for i in 0..self.replicas.len() {
            let number = self.replicas[i].0;
            let Some(remaining) = self.remaining(number, self.now()) else {
                continue;
            };
            // Their numbers have no gaps.
            let place = newest.checked_sub(number).map(|place| place as usize);
            let head = place.and_then(|place| heads.get(place)).map(Vec::as_slice);
            let replica = &mut self.replicas[i].1;
            replica.expires = Expiry::after(remaining, self.period.div_ceil(4 * 1_000_000));
            match replica.catch_up(server, ended, head) {
                Ok(()) => {}
                // A server that takes nothing may still give.
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
        // All have one layout.
        self.replicas
            .first()
            .map_or(usize::MAX, |(_, replica)| replica.most_bytes())
    }

    fn expires(&self) -> bool {
        true
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The replica of a generation follows the window's filter for it, even if the window has
    /// replaced that filter, as when the memory for a new generation was refused.
    #[test]
    fn a_generation_whose_filter_is_another_is_followed() {
        let builder = WindowedBloom::builder()
            .expected_keys(100)
            .window(Duration::from_secs(60));
        let window = builder.clock(|| Duration::from_secs(1_000_000)).build().unwrap();
        let mut replica = WindowReplica::new(RedisKeys::of("recent").unwrap(), Arc::new(window)).unwrap();
        let mut numbers = Vec::new();
        for _ in 0..3 {
            replica.follow(0).unwrap();
            let list = replica.window.numbered(0).unwrap().unwrap();
            assert_eq!(replica.replicas.len(), list.len());
            for ((number, filter), (followed, replica)) in list.iter().zip(&replica.replicas) {
                assert_eq!(number, followed);
                assert!(Arc::ptr_eq(filter, replica.filter()), "{number}");
            }
            numbers.push(list[0].0);
            drop(list);
            // The newest generation still has its number, but another filter: the replica holds the
            // cleared one.
            Arc::get_mut(&mut replica.window).unwrap().clear();
        }
        assert!(numbers.iter().all(|number| *number == numbers[0]));
    }
}
