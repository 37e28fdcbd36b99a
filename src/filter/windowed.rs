//! Forgetting: [`WindowedBloom`] answers "seen in the last minutes?", or "among the last million
//! keys?".
//!
//! The filter is a list of *generations*, each a [`ConcurrentBloom`] of the same layout. Inserts
//! write into the newest generation; lookups search all of them. A *rotation* puts an empty
//! generation before the others and drops the oldest. With `G` generations, a key is visible for at
//! least `G - 1` rotations, and is gone after `G` of them.
//!
//! # The window
//!
//! | the filter rotates | by | a key is visible |
//! |---|---|---|
//! | when it is told to | [`rotate`](WindowedBloom::rotate) | for `G - 1` rotations, and not after `G` |
//! | by age | [`Builder::window`] | for the window, and not after `G / (G - 1)` of it; [the clock](#the-clock) says what is if that is set |
//! | by age and when it is told to | both | for the window or for `G - 1` rotations, those by age among them, whichever ends first; and not after `G / (G - 1)` windows or `G` calls |
//! | by the number of keys | [`Builder::rotate_when_full`] | until the expected keys were inserted after it, and not after `G / (G - 1)` of them (both within a few per cent) |
//!
//! With the default of 4 generations a key is visible for at most a third more than the window.
//! More generations reduce this excess, but make lookups slower, since a lookup searches each
//! generation. There is one generation more than the window needs, and a spare one: the two take
//! `2 / (G - 1)` more memory.
//!
//! # Example
//!
//! ```
//! use lanebloom::WindowedBloom;
//! use std::time::Duration;
//!
//! // Who logged in during the last ten minutes?
//! let recent = WindowedBloom::builder().expected_keys(100_000).window(Duration::from_secs(600)).build()?;
//! assert!(recent.insert("ann")); // not seen in the window
//! assert!(!recent.insert("ann")); // seen; its ten minutes begin anew
//! assert!(recent.contains("ann") && !recent.contains("bob"));
//! # Ok::<(), lanebloom::BuildError>(())
//! ```
//!
//! # The clock
//!
//! The bounds by age are as measured by the [clock](Builder::clock). The default clock is monotonic
//! and never set. Another clock may be set:
//!
//! | the clock steps | then |
//! |---|---|
//! | on, by `s` | keys are forgotten up to `s` earlier |
//! | back, by `s`, to a time before the newest generation began | that one ends. Keys are visible for the window at least, and `s` longer at most; up to one generation more is visible for a window, and the false-positive rate up to `(G + 1) / G` of what was asked for |
//! | back, by `s`, to a time within the newest generation, or less than a quarter of a generation before it | that one lasts `s` longer, gets so many more keys, and they are visible `s` longer |
//! | back more than once within a window | each further time, keys may be forgotten one generation earlier |
//!
//! # Seen again
//!
//! A key that is inserted again begins its window anew, even if `insert` answers false: "did X in
//! the last minute". So a filter never forgets a key that keeps coming. Some uses let a key through
//! once per window, as in "notify once in ten minutes". For those the window must not begin anew:
//! see [`Builder::renew`].
//!
//! # Replacing the contents
//!
//! [`CacheGuard::rebuild`](crate::CacheGuard::rebuild) fills a new filter from a source of truth
//! while the old one serves. It takes this filter as it takes any other:
//!
//! ```
//! # #[cfg(feature = "guard")] {
//! use lanebloom::{CacheGuard, SipHash13, WindowedBloom};
//!
//! let filter = || WindowedBloom::builder().expected_keys(1000).hasher(SipHash13::random()).build();
//! let guard = CacheGuard::<str, _>::new(filter()?);
//! guard.insert("ann");
//!
//! let mut rebuild = guard.rebuild(filter()?)?;
//! guard.insert("added meanwhile");
//! rebuild.extend(["bob"]);
//! rebuild.commit();
//! guard.filter().rotate();
//! assert!(guard.check("ann").is_none());
//! assert!(guard.check("bob").is_some() && guard.check("added meanwhile").is_some());
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Consistency
//!
//! The promises of the [crate](crate#consistency) hold within the window, with these differences.
//!
//! 1. **No false negatives.** Rotations have one order, and every insert has a place between two of
//!    them. Rotations that happened before the insert come before it in this order. Rotations that
//!    it happened before come after it. If a rotation runs at the same time, and its own thread
//!    still misses the key afterwards, that rotation comes before the insert. Lookups find the key
//!    for the `G - 1` rotations after the insert. By age, the window begins when the call begins.
//! 2. **Answers of inserts.** True if no generation had the key: it was not seen within the window.
//!    If several threads race to insert such a key, at least one gets `true`, also beside a
//!    rotation. With one word per key exactly one gets it, if no rotation runs meanwhile.
//! 3. **Publication** holds unchanged.
//! 4. **Lock-freedom** holds too: a rotation stops nobody. If several threads find a rotation due,
//!    each tries to make it, one succeeds, and the others go on with its list. The winner also
//!    clears the dropped generation for reuse: about 0.05 ms per MiB, in that one call. If that
//!    matters, let a thread of your own call [`rotate_if_due`](WindowedBloom::rotate_if_due) more
//!    often than generations end.
//!
//! # Memory
//!
//! The builder allocates all generations and a spare one. A dropped generation is cleared and
//! becomes the spare once no lookup uses it. The filter allocates one more generation in four
//! cases: lookups still use the dropped one, several threads are about to rotate at once, the clock
//! stepped back, or [`rotate`](WindowedBloom::rotate) is called beside a window. If the allocation
//! fails, the newest generation goes on for another period: then keys are forgotten late, and none
//! early.

mod snapshot;

use super::bloom::{self, ConcurrentBloom};
use super::engine::InsertFlagged;
use super::gauge::Gauge;
use crate::bits;
use crate::error::{BuildError, BuildErrorKind, IncompatibleError, IncompatibleErrorKind};
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, Murmur3, assert_same_length};
use crate::kernel::scalar::unpack;
use crate::sizing::{LINE_WORDS, Request};
use crate::source::{HASHED, Keys, Source, assert_bitmap_length, gathered};
use crate::source::{STRETCH, for_each_absent, ones};
use crate::sync::{Guard, Ordering, Swap, fence};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::mem;
use core::time::Duration;
use std::sync::Mutex;

// # The protocol
//
// The state is one pointer to a list of generations. Only a rotation replaces it, by a
// compare-and-swap from the list that the rotation has looked at. So rotations have one order, and
// two threads that find the same rotation due make it once. (The loser looks again.) No thread
// waits for another: every thread that finds a rotation due makes it.
//
// An insert writes into the newest generation of the list that it sees. Then it checks whether that
// list is still current (`Swap::settle`). If not, it writes into the newest generation of the new
// list, and so on. Its place in the order of rotations is the last list that it saw:
//
// - The insert's first load sees every rotation that happened before it. Lookups and rotations that
//   the insert happens before see the last list that it saw or a later one. All lists up to `G - 1`
//   rotations later have the generation.
// - Without the second look, a delayed insert would write into a generation that is the oldest by
//   then, or that no list has.
// - If a rotation runs at the same time, coherence alone would let the second look miss it. Both
//   threads have a `SeqCst` fence between their write and their next read: the insert writes its
//   bits and reads the list; the rotating thread writes its list and then looks up keys. So if that
//   thread misses the key, its fence came first, and the insert sees its list, and writes there.
//
// At least one of racing inserters of a new key answers true. Answers come from the first list that
// each inserter saw. Consider the inserters that saw the oldest such list. Its older generations
// lack the key, since all inserters write into newer ones. So among those that write into its
// newest generation, the one that changed it answers true. `ConcurrentBloom`'s own promise says
// that there is one.
//
// # By age
//
// A list records three times: when its newest generation began; `until` when that generation takes
// new keys, at most a period `T` later; and when the keys of each generation expire, which is a
// window `W`, or `(G - 1) * T`, after that. So a key is visible for `W`, and gone after `W + T`.
// Lookups compare the clock with these times, so they need not rotate. No generation expires later
// than a newer one. So the newest one that has a key decides, and a lookup reads the clock only if
// it found the key. Nothing is numbered, and nothing is counted from the clock's zero, which may
// have been a second ago.
//
// | a rotation is due | the new generation lasts | older ones expire | the list keeps |
// |---|---|---|---|
// | at `until` | until the first `until + i * T` after now | as before | `G + 1` generations |
// | by call | `T` from now | as before | `G` |
// | because the clock stepped back | `T` from now | as long after now as they would have after the newest began | `G + 1` |
//
// The ends of periods keep their rhythm because all processes of a `SharedWindow` must have the
// same ones: multiples of `T`.
//
// The clock stepped back if it is before the beginning of the newest generation by more than a part
// of `T` ([`SLACK`], for clocks that threads see a little differently). Before the thread concludes
// that, it reads the clock again, after the list: the thread may have been delayed after its first
// reading, and the list may be younger. Inserts write no time down, so nobody knows how much of its
// period the newest generation had lasted. So this generation ends there, since it must not get the
// keys of a second period. Older generations are kept for as long as they need if it had just
// begun. The consequences of a step of `s`:
//
// - A key is visible for up to `s` longer.
// - Up to one more generation is visible, for a window at most. That is why lists have room for one
//   more.
// - A step to a time within the newest generation goes unnoticed. That generation gets the keys of
//   its period and of `s`.
// - `W` is kept if the clock steps back once in it: up to `G - 1` periods end in a window, and with
//   the step there are `G` rotations, for which a list keeps a generation. Each further step may
//   make keys be forgotten one generation early. (Longer lists would keep `W`, and make lookups
//   slower and wrong more often.)
//
// A generation's memory is used again once the pool is the only owner of its `Arc`. No thread waits
// for that either.

/// The most generations: a lookup asks each.
pub(crate) const MAX_GENERATIONS: usize = 64;
/// 146 years, so that nanoseconds do not overflow.
pub(crate) const MAX_WINDOW: Duration = Duration::from_nanos(1 << 62);

/// A time that does not come: no clock says it.
const NEVER: u64 = u64::MAX;

/// By the number of keys, a generation ends at so many times its share of them. The gauge is off by
/// 1% to 2%, and the window must not be shorter for it. The generation is sized for a little more,
/// since the gauge only looks now and then.
const FULL_AT: f64 = 1.04;
const SIZED_FOR: f64 = 1.06;

/// A clock may be behind the beginning of the newest generation by one part in so many of a period
/// before that is a step back.
const SLACK: u64 = 4;

/// Lists that are kept to be used again: the one that was replaced, and those that a lookup held
/// up.
const SPARE_LISTS: usize = 4;

/// A filter that forgets: keys are visible for a window of time, of keys, or of rotations.
///
/// Keys are any [`Funnel`] type; `S` hashes them. All operations but [`clear`](Self::clear) take
/// `&self`: share the filter as `Arc<WindowedBloom>`. [The module](self) says what the window is
/// and what threads may rely on.
///
/// # Examples
///
/// ```
/// use lanebloom::WindowedBloom;
///
/// // The last million keys, in generations of a fourth part of them.
/// let recent = WindowedBloom::builder().expected_keys(1_000_000).generations(5).rotate_when_full().build()?;
/// let keys: Vec<u64> = (0..1_600_000).collect();
/// recent.insert_batch(&keys);
/// assert!(keys[600_000..].iter().all(|key| recent.contains(key)));
/// assert!(keys[..200_000].iter().filter(|key| recent.contains(*key)).count() < 4000);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub struct WindowedBloom<S = Murmur3> {
    state: Swap<State<S>>,
    pool: Mutex<Pool<S>>,
    hasher: S,
    when: When,
    /// Nanoseconds of a generation, `u64::MAX` where they do not age.
    period: u64,
    generations: usize,
    expected_keys: usize,
    renew: bool,
}

/// What readers see at once. Times are in nanoseconds of the clock. Without one it is always 0, and
/// they are 0 and never, `u64::MAX`.
struct State<S> {
    /// The newest first; never empty. None expires later than a newer one.
    generations: Vec<Generation<S>>,
    /// The newest is for keys that are inserted from then on...
    begin: u64,
    /// ...and before then.
    until: u64,
}

struct Generation<S> {
    /// From then on its keys are not visible.
    expires: u64,
    filter: Arc<ConcurrentBloom<S>>,
}

/// What makes a rotation due.
#[derive(Clone)]
enum When {
    Called,
    Aged(Clock),
    Full(Gauge),
}

#[derive(Clone)]
enum Clock {
    Monotonic,
    TimeOfDay,
    Supplied(Arc<dyn Fn() -> Duration + Send + Sync>),
}

impl Clock {
    #[inline]
    fn nanos(&self) -> u64 {
        let now = match self {
            Self::Monotonic => monotonic(),
            Self::TimeOfDay => since_1970(),
            Self::Supplied(now) => now(),
        };
        // The greatest number says "never".
        u64::try_from(now.as_nanos()).map_or(u64::MAX - 1, |nanos| nanos.min(u64::MAX - 1))
    }
}

/// 5 ns, where `Instant::now` takes 20 to 25; it is the time of the last tick, every 1 to 10 ms.
#[cfg(target_os = "linux")]
#[inline]
fn monotonic() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(not(target_os = "linux"))]
fn monotonic() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// 5 ns, as above.
#[cfg(target_os = "linux")]
fn since_1970() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let now = clock_gettime(ClockId::RealtimeCoarse);
    // Before 1970 there is no time.
    u64::try_from(now.tv_sec).map_or(Duration::ZERO, |seconds| Duration::new(seconds, now.tv_nsec as u32))
}

#[cfg(not(target_os = "linux"))]
fn since_1970() -> Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}

/// What must be the same for a union, but for the filters' own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    generations: usize,
    window: Option<Duration>,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} generations", self.generations)?;
        match self.window {
            Some(window) => write!(f, " for {window:?}"),
            None => f.write_str(" of any age"),
        }
    }
}

/// Sizes a [`WindowedBloom`]; made by [`WindowedBloom::builder`].
///
/// Unless told otherwise by [`window`](Self::window) or
/// [`rotate_when_full`](Self::rotate_when_full), the filter rotates when
/// [`rotate`](WindowedBloom::rotate) is called.
///
/// # Examples
///
/// ```
/// use lanebloom::WindowedBloom;
/// use std::time::Duration;
///
/// let builder = WindowedBloom::builder().expected_keys(1_000_000).false_positive_rate(1e-3);
/// let filter = builder.generations(7).window(Duration::from_secs(60)).build()?;
/// assert_eq!(filter.window(), Some(Duration::from_secs(60)));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<S = Murmur3> {
    filter: bloom::Builder<S>,
    generations: usize,
    rotation: Rotation,
    clock: Clock,
    renew: bool,
}

#[derive(Clone, Copy, Debug)]
enum Rotation {
    Called,
    Aged(Duration),
    Full,
}

impl WindowedBloom {
    /// A builder with [`Murmur3`], seed 0, and 4 generations.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!((filter.expected_keys(), filter.generations()), (1000, 4));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn builder() -> Builder {
        Builder {
            filter: ConcurrentBloom::builder(),
            generations: 4,
            rotation: Rotation::Called,
            clock: Clock::Monotonic,
            renew: true,
        }
    }
}

impl Builder {
    /// Seeds [`Murmur3`], as [`bloom::Builder::seed`](crate::Builder::seed) does.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).seed(1).build()?;
    /// assert_eq!(filter.hash("hello"), 0xa78d_dff5_adae_8d10);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn seed(mut self, seed: u32) -> Self {
        self.filter = self.filter.seed(seed);
        self
    }
}

impl<S: KeyHasher + Clone> Builder<S> {
    /// The number of distinct keys inserted within a window, up to which the false-positive rate
    /// holds. 0 means 1. For [`rotate_when_full`](Self::rotate_when_full) it is the window.
    ///
    /// Each generation is sized for its share, one part in `generations - 1`. If keys come in
    /// bursts, expect `generations - 1` times the most keys that come within one generation.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(30_000).generations(4).build()?;
    /// for generation in 0..4u32 {
    ///     filter.rotate();
    ///     (0..10_000u32).for_each(|i| _ = filter.insert(&(generation, i)));
    /// }
    /// assert!((0.008..0.0105).contains(&filter.current_false_positive_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn expected_keys(mut self, keys: usize) -> Self {
        self.filter = self.filter.expected_keys(keys);
        self
    }

    /// The chance that the filter reports a key that is in no generation, when all generations are
    /// full. Between 0 and 1, both excluded; 0.01 by default. Each generation gets the same part of
    /// it.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let memory = |rate| Ok(WindowedBloom::builder().expected_keys(10_000).false_positive_rate(rate).build()?.memory_bytes());
    /// assert!(memory(1e-4)? > memory(1e-2)? * 3 / 2);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.filter = self.filter.false_positive_rate(rate);
        self
    }

    /// The most memory that the bits may take, in bytes, all generations and the spare one
    /// together. Each gets the same part of it, at least one line of 64; errors name that part.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().memory_budget(1 << 20).generations(3).build()?;
    /// assert_eq!(filter.memory_bytes(), 1 << 20);
    /// assert!((330_000..360_000).contains(&filter.expected_keys()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.filter = self.filter.memory_budget(bytes);
        self
    }

    /// How many 64-bit words of its line a key touches, as
    /// [`bloom::Builder::words_per_key`](crate::Builder::words_per_key) says.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).words_per_key(1).build()?;
    /// assert_eq!(filter.live_generations()[0].words_per_key(), 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.filter = self.filter.words_per_key(words);
        self
    }

    /// The number of generations, from 2 to 64; 4 by default. A key is visible for up to one part
    /// in `generations - 1` longer than the window, and a lookup of an absent key asks all of them.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).generations(2).build()?;
    /// filter.insert("a");
    /// filter.rotate();
    /// assert!(filter.contains("a"));
    /// filter.rotate();
    /// assert!(!filter.contains("a"));
    ///
    /// let wrong = WindowedBloom::builder().expected_keys(1000).generations(1).build();
    /// assert_eq!(wrong.unwrap_err().to_string(), "1 generations is not in 2 to 64");
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn generations(mut self, generations: usize) -> Self {
        self.generations = generations;
        self
    }

    /// Rotates by age: a key is visible for the window after its insert, and not when it is
    /// `generations / (generations - 1)` times as old.
    ///
    /// Inserts rotate when a rotation is due. Lookups only check the age of what they found. From 1
    /// ns to 146 years.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    /// use std::time::Duration;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).window(Duration::from_millis(60)).build()?;
    /// filter.insert("a");
    /// std::thread::sleep(Duration::from_millis(100));
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn window(mut self, window: Duration) -> Self {
        self.rotation = Rotation::Aged(window);
        self
    }

    /// The clock by which keys age: the time since some moment, the same for all calls.
    ///
    /// Several threads may call it at once: once for each insert, each lookup that finds something,
    /// and each batch. [The module](self#the-clock) says what happens if it steps back. The default
    /// is the system's monotonic clock. On Linux it is the one that is exact to a tick (1 to 10
    /// ms), since it takes 5 ns to read. The bounds are as measured by it.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    /// use std::time::Duration;
    ///
    /// let seconds = Arc::new(AtomicU64::new(0));
    /// let clock = {
    ///     let seconds = Arc::clone(&seconds);
    ///     move || Duration::from_secs(seconds.load(Ordering::Relaxed))
    /// };
    /// let filter = WindowedBloom::builder().expected_keys(1000).window(Duration::from_secs(60)).clock(clock).build()?;
    /// filter.insert("a");
    /// seconds.store(59, Ordering::Relaxed);
    /// assert!(filter.contains("a"));
    /// seconds.store(80, Ordering::Relaxed);
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn clock(mut self, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Clock::Supplied(Arc::new(now));
        self
    }

    /// The time of day as the [clock](Self::clock): the time since 1970, on Linux exact to a tick
    /// (1 to 10 ms), since that takes 5 ns to read.
    ///
    /// All machines whose clocks are right then have the same generations: a `redis::SharedWindow`
    /// (feature `redis`) needs that. A snapshot that is read later knows how much later. [The
    /// module](self#the-clock) says what happens if the time of day is set.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    /// use std::time::{Duration, SystemTime};
    ///
    /// let hour = Duration::from_secs(3600);
    /// let recent = WindowedBloom::builder().expected_keys(1000).window(hour).time_of_day().build()?;
    /// recent.insert("a");
    /// let (same, _) = WindowedBloom::from_bytes(&recent.to_bytes())?;
    /// assert!(same.contains("a"));
    /// // Two hours later:
    /// let later = move || SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default() + 2 * hour;
    /// let (same, _) = WindowedBloom::from_bytes_with_clock(&recent.to_bytes(), *recent.hasher(), later)?;
    /// assert!(!same.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time_of_day(mut self) -> Self {
        self.clock = Clock::TimeOfDay;
        self
    }

    /// Rotates when the newest generation has its share of the expected keys: a key is visible
    /// until that many were inserted after it.
    ///
    /// The filter counts the distinct keys of a generation: a key that is inserted again counts
    /// once more in each generation. It does not count keys one by one. It estimates them from how
    /// full the generation is, at one insert in about `keys / 64`. A generation is sized for 6%
    /// more than its share, and takes as much more memory. The table says how many times its share
    /// a generation gets, measured at 1000 to 3000 generations of each size and at rates of 10%, 1%
    /// and 0.01% (one test repeats it):
    ///
    /// | keys of a share | least | mean | most |
    /// |---|---|---|---|
    /// | 10 to 30 | 0.96 | 1.07 to 1.11 | 1.3 |
    /// | 100 to 300 | 0.97 | 1.05 | 1.16 |
    /// | 1000 | 1.01 | 1.06 | 1.18 |
    /// | 10,000 (100 generations) | 1.02 | 1.05 | 1.15 |
    ///
    /// So if a share is a few hundred keys or less, a key may be forgotten a few per cent early:
    /// ask for so many more.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(3000).rotate_when_full().build()?;
    /// (0..20_000u32).for_each(|key| _ = filter.insert(&key));
    /// assert!((17_000..20_000u32).all(|key| filter.contains(&key)));
    /// assert!((0..15_000u32).filter(|key| filter.contains(key)).count() < 300);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn rotate_when_full(mut self) -> Self {
        self.rotation = Rotation::Full;
        self
    }

    /// Whether a key that is inserted while it is visible begins its window anew; true by default.
    ///
    /// If not, its window begins at the first insert, the one that answered true. So if a key keeps
    /// coming, one insert in each window answers true. An insert that answers false then writes
    /// nothing, and **the key may be forgotten right after**.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let visible_after_two_rotations = |renew| {
    ///     let filter = WindowedBloom::builder().expected_keys(1000).generations(2).renew(renew).build()?;
    ///     assert!(filter.insert("a"));
    ///     filter.rotate();
    ///     assert!(!filter.insert("a"));
    ///     filter.rotate();
    ///     Ok(filter.contains("a"))
    /// };
    /// assert!(visible_after_two_rotations(true)?);
    /// assert!(!visible_after_two_rotations(false)?);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn renew(mut self, renew: bool) -> Self {
        self.renew = renew;
        self
    }

    /// Another hasher: [`SipHash13`](crate::SipHash13) or any `BuildHasher`. [`crate::hash`] says
    /// when to take which.
    ///
    /// ```
    /// use lanebloom::{SipHash13, WindowedBloom};
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).hasher(SipHash13::random()).build()?;
    /// filter.insert("a");
    /// filter.rotate();
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hasher<T: KeyHasher + Clone>(self, hasher: T) -> Builder<T> {
        Builder {
            filter: self.filter.hasher(hasher),
            generations: self.generations,
            rotation: self.rotation,
            clock: self.clock,
            renew: self.renew,
        }
    }

    /// Computes the layout, which takes about half a millisecond, and allocates all generations.
    ///
    /// # Errors
    ///
    /// Fails as [`bloom::Builder::build`](crate::Builder::build) does for one generation, if the
    /// number of generations is not 2 to 64, or if the window is not 1 ns to 146 years.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    /// use std::time::Duration;
    ///
    /// assert!(WindowedBloom::builder().expected_keys(1000).build().is_ok());
    /// let error = WindowedBloom::builder().expected_keys(1000).window(Duration::ZERO).build().unwrap_err();
    /// assert_eq!(error.to_string(), "a window of 0ns is not in 1ns to 4611686018.427387904s");
    /// ```
    pub fn build(self) -> Result<WindowedBloom<S>, BuildError> {
        let generations = self.generations;
        if !(2..=MAX_GENERATIONS).contains(&generations) {
            return Err(BuildError(BuildErrorKind::Generations(generations)));
        }
        if let Rotation::Aged(window) = self.rotation
            && !(Duration::from_nanos(1)..=MAX_WINDOW).contains(&window)
        {
            return Err(BuildError(BuildErrorKind::Window(window)));
        }
        let asked = self.filter.request;
        // Before it is divided.
        if let Some(rate) = asked.rate
            && !(rate > 0.0 && rate < 1.0)
        {
            return Err(BuildError(BuildErrorKind::Rate(rate)));
        }
        let share = |keys: usize| keys.max(1).div_ceil(generations - 1);
        let margin = |keys: usize, times: f64| match self.rotation {
            Rotation::Full => margin(keys, times),
            _ => keys,
        };
        let best_that_fits = asked.rate.is_none() && asked.keys.is_some() && asked.budget.is_some();
        let mut filter = self.filter;
        filter.request = Request {
            keys: asked.keys.map(|keys| margin(share(keys), SIZED_FOR)),
            // The chance that one of several is wrong is a little less than the sum, 1% of it at a
            // rate of 2%.
            rate: (!best_that_fits).then(|| asked.rate.unwrap_or(0.01) / generations as f64),
            budget: asked.budget.map(|bytes| bytes / (generations + 1)),
            ..asked
        };
        let filter = filter.build()?;
        let expected_keys = asked.keys.map_or_else(
            || {
                let keys = match self.rotation {
                    Rotation::Full => (filter.expected_keys() as f64 / SIZED_FOR) as usize,
                    _ => filter.expected_keys(),
                };
                keys.saturating_mul(generations - 1)
            },
            |keys| keys.max(1),
        );
        let (when, period) = match self.rotation {
            Rotation::Called => (When::Called, NEVER),
            Rotation::Aged(window) => {
                let nanos = window.as_nanos() as u64;
                (When::Aged(self.clock), nanos.div_ceil(generations as u64 - 1))
            }
            Rotation::Full => {
                let keys = margin(share(expected_keys), FULL_AT);
                (When::Full(Gauge::new(&filter.engine, keys)), NEVER)
            }
        };
        // The end of the period, counted from the clock's zero, that it is now.
        let now = when.now();
        let until = (now / period).saturating_add(1).saturating_mul(period);
        let first = Generation {
            expires: until.saturating_add(window_of(period, generations)),
            filter: Arc::new(filter),
        };
        let hasher = first.filter.hasher().clone();
        let state = State {
            generations: Vec::from([first]),
            begin: now,
            until,
        };
        let (state, pool) = with_spares(state, generations)?;
        Ok(WindowedBloom {
            state: Swap::new(state),
            pool: Mutex::new(pool),
            hasher,
            when,
            period,
            generations,
            expected_keys,
            renew: self.renew,
        })
    }
}

/// So many times the keys that a generation is for.
fn margin(keys: usize, times: f64) -> usize {
    ((keys as f64 * times) as usize).saturating_add(1)
}

/// The nanoseconds of a window, of so many generations of `period` each.
fn window_of(period: u64, generations: usize) -> u64 {
    period.saturating_mul(generations as u64 - 1)
}

impl<S: fmt::Debug> fmt::Debug for Builder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("filter", &self.filter)
            .field("generations", &self.generations)
            .field("rotation", &self.rotation)
            .field("renew", &self.renew)
            .finish_non_exhaustive()
    }
}

impl When {
    /// In nanoseconds of the clock; 0 where there is none.
    #[inline]
    fn now(&self) -> u64 {
        match self {
            Self::Aged(clock) => clock.nanos(),
            _ => 0,
        }
    }
}

impl<S> Clone for Generation<S> {
    fn clone(&self) -> Self {
        Self {
            filter: Arc::clone(&self.filter),
            ..*self
        }
    }
}

impl<S> State<S> {
    /// One to be filled, of a filter of `count` generations: with room for one more, after the
    /// clock stepped back.
    fn empty(count: usize) -> Self {
        Self {
            generations: Vec::with_capacity(count + 1),
            begin: 0,
            until: 0,
        }
    }

    fn newest(&self) -> &ConcurrentBloom<S> {
        &self.generations[0].filter
    }

    /// Whether the newest is the one for keys that are inserted at `now`.
    #[inline]
    fn takes(&self, now: u64, period: u64) -> bool {
        now < self.until && self.begin.saturating_sub(now) <= period / SLACK
    }

    /// The place of the oldest that expires then or later; else of the newest.
    fn at_least(&self, expires: u64) -> usize {
        let place = self.generations.iter().rposition(|one| one.expires >= expires);
        place.unwrap_or(0)
    }

    /// Those that are visible, the newest first.
    #[inline]
    fn live(&self, now: u64) -> &[Generation<S>] {
        // Nearly always all: the oldest are looked at first.
        let mut live = &self.generations[..];
        while let [newer @ .., oldest] = live
            && now >= oldest.expires
        {
            live = newer;
        }
        live
    }
}

/// Memory to be used again.
struct Pool<S> {
    /// Empty generations, which nobody else has.
    clean: Vec<Arc<ConcurrentBloom<S>>>,
    /// Dropped generations, which lookups may still use.
    dropped: Vec<Arc<ConcurrentBloom<S>>>,
    /// Lists that were replaced, which lookups may still use.
    lists: Vec<Arc<State<S>>>,
}

/// The state and a pool for it, with all the memory that rotations need unless lookups hold on to
/// some.
fn with_spares<S: KeyHasher + Clone>(mut state: State<S>, count: usize) -> Result<(State<S>, Pool<S>), BuildError> {
    let mut pool = Pool {
        clean: Vec::with_capacity(count + 1),
        dropped: Vec::with_capacity(count + 1),
        lists: Vec::with_capacity(SPARE_LISTS),
    };
    for _ in state.generations.len()..=count {
        pool.clean.push(Arc::new(state.newest().blank()?));
    }
    for _ in 0..2 {
        pool.lists.push(Arc::new(State::empty(count)));
    }
    let room = (count + 1).saturating_sub(state.generations.len());
    state.generations.reserve_exact(room);
    Ok((state, pool))
}

impl<S> Pool<S> {
    /// Lets go of what lists hold that nobody uses any more.
    fn tidy(&mut self) {
        for list in &mut self.lists {
            if let Some(list) = Arc::get_mut(list) {
                list.generations.clear();
            }
        }
    }

    /// One of these that nobody else has.
    fn take<T>(items: &mut Vec<Arc<T>>) -> Option<Arc<T>> {
        let free = items.iter_mut().position(|item| Arc::get_mut(item).is_some())?;
        Some(items.swap_remove(free))
    }

    /// Keeps it if there is room, so that nothing is allocated.
    fn keep<T>(items: &mut Vec<Arc<T>>, item: Arc<T>) {
        if items.len() < items.capacity() {
            items.push(item);
        }
    }
}

/// Rotations.
impl<S: KeyHasher + Clone> WindowedBloom<S> {
    /// Rotates: puts an empty generation before the others, and forgets all but the newest `G`. It
    /// does so whatever else makes rotations due.
    ///
    /// Beside a [window](Builder::window) it ends the newest generation early, and the new one is
    /// for a full `window / (G - 1)`. A key is then visible for the window or for `G - 1`
    /// rotations, those by age among them, whichever ends first; and is gone after `G` calls.
    ///
    /// # Memory ordering
    ///
    /// If a thread misses a key after its rotation, then the key, once inserted, is visible for
    /// `G - 1` further rotations.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).generations(3).build()?;
    /// filter.insert("a");
    /// filter.rotate();
    /// filter.insert("b");
    /// filter.rotate();
    /// assert!(filter.contains("a"));
    /// filter.rotate();
    /// assert!(!filter.contains("a") && filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn rotate(&self) {
        loop {
            let old = Arc::clone(&self.state.load());
            let now = self.when.now();
            if self.replace(old, now, now.saturating_add(self.period), self.generations) {
                return;
            }
        }
    }

    /// Rotates if a rotation is due, by age or by the number of keys; returns whether this call
    /// did. Never rotates a filter that only [`rotate`](Self::rotate) rotates.
    ///
    /// Inserts rotate by themselves. A thread that calls this method now and then takes the work
    /// from them: clearing the dropped generation takes about 0.05 ms per MiB (of 1.6 MiB, Emerald
    /// Rapids, `cargo bench --bench windowed -- rotate`).
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    /// use std::time::Duration;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).window(Duration::from_millis(60)).build()?;
    /// filter.insert("a");
    /// std::thread::sleep(Duration::from_millis(100));
    /// assert!(filter.rotate_if_due());
    /// assert!(!filter.contains("a") && filter.live_generations().len() <= 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn rotate_if_due(&self) -> bool {
        match &self.when {
            When::Called => false,
            When::Aged(_) => self.rotate_if_old(),
            When::Full(gauge) => self.rotate_if_full(gauge, 0),
        }
    }

    /// The list for inserts at `now`; and the time, read again if it had to be made.
    #[inline]
    fn present(&self, now: u64) -> (u64, Guard<State<S>>) {
        let state = self.state.load();
        if state.takes(now, self.period) {
            return (now, state);
        }
        drop(state);
        self.rotate_if_old();
        let state = self.state.load();
        (self.when.now(), state)
    }

    /// Makes the newest generation one for keys that are inserted now; whether this call did.
    #[cold]
    fn rotate_if_old(&self) -> bool {
        loop {
            let old = Arc::clone(&self.state.load());
            // After the list, whose times another thread has from the clock.
            let now = self.when.now();
            if old.takes(now, self.period) {
                return false;
            }
            let until = match now.checked_sub(old.until) {
                Some(late) => {
                    let periods = (late / self.period).saturating_add(1);
                    old.until.saturating_add(periods.saturating_mul(self.period))
                }
                None => now.saturating_add(self.period),
            };
            if self.replace(old, now, until, self.generations + 1) {
                return true;
            }
        }
    }

    /// Rotates if the newest generation is full; whether this call did.
    #[cold]
    fn rotate_if_full(&self, gauge: &Gauge, hash: u64) -> bool {
        let old = Arc::clone(&self.state.load());
        // If another thread was faster, then the generation that was full is not the newest any
        // more.
        gauge.level(&old.newest().engine, hash) >= 1.0 && self.replace(old, 0, NEVER, self.generations)
    }

    /// Makes the list, of `most` generations at most, with a new one for `now..until` before those
    /// of `old` that are visible, if `old` still is the list; whether it was.
    ///
    /// No other `Guard` of `old` should be alive in this thread, for its memory to be used again.
    fn replace(&self, old: Arc<State<S>>, now: u64, until: u64, most: usize) -> bool {
        let fresh = self.fresh(old.newest());
        let window = window_of(self.period, self.generations);
        // If the clock stepped back since, generations have as much time left as they had then.
        let then = now.max(old.begin);
        let mut new = self.list();
        let list = Arc::get_mut(&mut new).expect("nobody else has it yet");
        // Its last reader may have let go of it only now, after the pool was tidied.
        list.generations.clear();
        let (first, others) = match &fresh {
            Some(fresh) => (fresh, &old.generations[..]),
            // The memory was refused: the newest goes on.
            None if most > 1 => (&old.generations[0].filter, &old.generations[1..]),
            None => out_of_memory(old.newest()),
        };
        let visible = others.iter().take_while(|other| other.expires > then).count();
        // The newest that goes on takes the place of two.
        let most = most - 1 - usize::from(fresh.is_none());
        let (kept, dropped) = others.split_at(visible.min(most));
        list.begin = now;
        list.until = until;
        // Later than that of any older one, but for those that began early since another node's
        // clock is ahead.
        let latest = until.saturating_add(window);
        list.generations.push(Generation {
            expires: latest,
            filter: Arc::clone(first),
        });
        list.generations.extend(kept.iter().map(|other| Generation {
            expires: now.saturating_add(other.expires - then).min(latest),
            filter: Arc::clone(&other.filter),
        }));

        if !self.state.compare_and_swap(&old, new) {
            if let (Some(fresh), Ok(mut pool)) = (fresh, self.pool.try_lock()) {
                Pool::<S>::keep(&mut pool.clean, fresh);
            }
            return false;
        }
        // Partner: the fence in `Swap::settle`.
        fence(Ordering::SeqCst);
        if let Ok(mut pool) = self.pool.try_lock() {
            for dropped in dropped {
                Pool::<S>::keep(&mut pool.dropped, Arc::clone(&dropped.filter));
            }
            Pool::<S>::keep(&mut pool.lists, old);
        }
        self.clean_ahead();
        true
    }

    /// An empty generation; `None` if the allocation fails.
    fn fresh(&self, like: &ConcurrentBloom<S>) -> Option<Arc<ConcurrentBloom<S>>> {
        let clean = self.pool.try_lock().ok().and_then(|mut pool| pool.clean.pop());
        clean
            .or_else(|| self.cleaned())
            .or_else(|| like.blank().ok().map(Arc::new))
    }

    /// A dropped generation, cleared.
    fn cleaned(&self) -> Option<Arc<ConcurrentBloom<S>>> {
        let mut dropped = {
            let mut pool = self.pool.try_lock().ok()?;
            pool.tidy();
            Pool::<S>::take(&mut pool.dropped)?
        };
        // The pool is open meanwhile, for it takes a while.
        Arc::get_mut(&mut dropped)?.clear();
        Some(dropped)
    }

    /// Clears a dropped generation for the next rotation, which is then a matter of a microsecond.
    pub(crate) fn clean_ahead(&self) {
        if self.pool.try_lock().is_ok_and(|pool| pool.clean.is_empty())
            && let Some(clean) = self.cleaned()
            && let Ok(mut pool) = self.pool.try_lock()
        {
            Pool::<S>::keep(&mut pool.clean, clean);
        }
    }

    /// A list that nobody else has, to be emptied and filled.
    fn list(&self) -> Arc<State<S>> {
        let spare = self.pool.try_lock().ok().and_then(|mut pool| {
            pool.tidy();
            Pool::<S>::take(&mut pool.lists)
        });
        spare.unwrap_or_else(|| Arc::new(State::empty(self.generations)))
    }

    /// Makes the list with empty generations more that expire at these times, if `old` still is the
    /// list.
    ///
    /// The newest is the same one, so that this is no rotation: an insert that sees the list
    /// replaced writes the same bits again.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    fn complete(&self, old: Arc<State<S>>, lacking: &[u64]) -> Result<(), BuildError> {
        let mut new = self.list();
        let list = Arc::get_mut(&mut new).expect("nobody else has it yet");
        list.begin = old.begin;
        list.until = old.until;
        list.generations.extend_from_slice(&old.generations);
        let mut added = Vec::new();
        for &expires in lacking {
            let Some(filter) = self.fresh(old.newest()) else { break };
            added.push(Arc::clone(&filter));
            let place = list.generations.partition_point(|one| one.expires >= expires);
            list.generations.insert(place, Generation { expires, filter });
        }
        let is_complete = added.len() == lacking.len();
        let done = is_complete && self.state.compare_and_swap(&old, new);
        if let Ok(mut pool) = self.pool.try_lock() {
            if done {
                Pool::<S>::keep(&mut pool.lists, old);
            } else {
                // Nobody has seen them.
                added
                    .into_iter()
                    .for_each(|fresh| Pool::<S>::keep(&mut pool.clean, fresh));
            }
        }
        if is_complete {
            Ok(())
        } else {
            let bytes = self.state.load().newest().memory_bytes();
            Err(BuildError(BuildErrorKind::OutOfMemory { bytes }))
        }
    }
}

/// A generation and its number.
#[cfg(any(feature = "redis", lanebloom_loom))]
pub(crate) type Numbered<S> = (u64, Arc<ConcurrentBloom<S>>);

/// For what keeps copies of the generations elsewhere.
#[cfg(any(feature = "redis", lanebloom_loom))]
impl<S: KeyHasher + Clone> WindowedBloom<S> {
    /// The generations and their numbers, the newest first: the current one, or `least` if that is
    /// greater, and all earlier ones that are visible. The list may lack generations, because no
    /// key was inserted while they were the newest; they are added to it. So lookups find bits that
    /// are set in any of them until the generation expires.
    ///
    /// Number `n` is for keys inserted while the clock is in `n * T .. (n + 1) * T`, and expires at
    /// `(n + G) * T`. Returns `None` if there are visible generations of other times, because the
    /// clock was set back or [`rotate`](Self::rotate) was called.
    ///
    /// # Errors
    ///
    /// If a generation that the list lacks cannot be allocated.
    #[doc(hidden)]
    pub fn numbered_generations(&self, least: u64) -> Result<Option<Vec<Numbered<S>>>, BuildError> {
        let (count, period) = (self.generations as u64, self.period);
        let end_of = |number: u64| number.saturating_add(1).saturating_mul(period);
        loop {
            let old = Arc::clone(&self.state.load());
            let now = self.when.now();
            let until = if now >= old.until || !old.until.is_multiple_of(period) {
                end_of(now / period)
            } else {
                old.until
            };
            let (until, most) = if until < end_of(least) {
                (end_of(least), self.generations)
            } else {
                (until, self.generations + 1)
            };
            if until != old.until {
                self.replace(old, now, until, most);
                continue;
            }
            let number = |one: &Generation<S>| {
                let periods = one.expires.is_multiple_of(period).then_some(one.expires / period);
                periods?.checked_sub(count)
            };
            let live = old.live(now);
            let Some(numbers) = live.iter().map(number).collect::<Option<Vec<u64>>>() else {
                return Ok(None);
            };
            if !numbers.is_sorted_by(|newer, older| newer > older) {
                return Ok(None);
            }
            let newest = until / period - 1;
            let lacking: Vec<u64> = (newest.saturating_sub(count - 1)..newest)
                .filter(|number| !numbers.contains(number))
                .map(|number| end_of(number + count - 1))
                .collect();
            if lacking.is_empty() {
                let filters = live.iter().map(|one| Arc::clone(&one.filter));
                return Ok(Some(numbers.into_iter().zip(filters).collect()));
            }
            self.complete(old, &lacking)?;
        }
    }
}

/// What another filter must have in common with this one to have the same generations.
#[cfg(feature = "redis")]
impl<S> WindowedBloom<S> {
    /// For how many nanoseconds of the clock a generation is for new keys, where they age.
    pub(crate) fn period(&self) -> Option<u64> {
        (self.period != NEVER).then_some(self.period)
    }

    /// Whether keys age by this machine's monotonic clock, which no other machine has.
    pub(crate) fn has_own_clock(&self) -> bool {
        matches!(self.when, When::Aged(Clock::Monotonic))
    }

    /// In nanoseconds of the clock.
    pub(crate) fn now(&self) -> u64 {
        self.when.now()
    }
}

/// Single operations.
impl<S: KeyHasher + Clone> WindowedBloom<S> {
    /// Inserts `key`; returns whether it was new: in no generation, hence not seen within the
    /// window.
    ///
    /// `false` means that the key was seen, or is a false positive. Either way its window begins
    /// anew, unless [`Builder::renew`] says otherwise. If the newest generation has the key, the
    /// insert costs loads only. Otherwise it writes the key there, and then searches the older
    /// generations.
    ///
    /// If several threads race to insert a new key, **at least** one of them gets `true`, and
    /// several may.
    ///
    /// # Memory ordering
    ///
    /// As [`ConcurrentBloom::insert`], and a `SeqCst` fence after the write.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter.insert("a"));
    /// filter.rotate();
    /// assert!(!filter.insert("a"));
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.insert_hash(self.hash(key))
    }

    /// Whether `key` may have been inserted within the window: `false` is certain, `true` may be a
    /// false positive, or a key up to a generation older.
    ///
    /// # Memory ordering
    ///
    /// As [`ConcurrentBloom::contains`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert(&17u64);
    /// filter.rotate();
    /// assert!(filter.contains(&17u64));
    /// assert!(!filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// The hash by which this filter knows `key`.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// assert!(filter.contains_hash(filter.hash("a")));
    /// assert_ne!(filter.hash("a"), filter.hash("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
    }

    /// [`insert`](Self::insert) by hash. All 64 bits must be evenly distributed: those of a good
    /// hash function, not an id as it is.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// assert!(filter.insert_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.insert_hash(0x9e37_79b9_7f4a_7c15));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_hash(&self, hash: u64) -> bool {
        let (now, state) = self.present(self.when.now());
        let has = |generations: &[Generation<S>]| generations.iter().any(|one| one.filter.contains_hash(hash));
        if !self.renew && has(state.live(now)) {
            return false;
        }
        let insert = |state: &State<S>| {
            let changed = state.newest().insert_hash(hash);
            (changed, changed && !has(state.live(now).get(1..).unwrap_or(&[])))
        };
        let (changed, new) = self.state.settle(state, insert, |first, _| first);
        if let When::Full(gauge) = &self.when
            && changed
            && gauge.is_due(hash)
        {
            self.rotate_if_full(gauge, hash);
        }
        new
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_hash(0x9e37_79b9_7f4a_7c15);
    /// assert!(filter.contains_hash(0x9e37_79b9_7f4a_7c15));
    /// assert!(!filter.contains_hash(0x7f4a_7c15_9e37_79b9));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        let state = self.state.load();
        let found = state.generations.iter().find(|one| one.filter.contains_hash(hash));
        // The newest that has it: if that has expired, so have the others.
        found.is_some_and(|newest| self.when.now() < newest.expires)
    }
}

/// Batches: the same answers as the single calls in order, many keys at a time, each generation
/// asked by the vector kernels. A batch reads the clock once.
impl<S: KeyHasher + Clone> WindowedBloom<S> {
    /// Inserts every hash; returns how many of them were new.
    ///
    /// Results are those of [`insert_hash`](Self::insert_hash) in order, duplicates within the
    /// batch included. A dense batch is inserted [in bulk](crate#inserting-in-bulk) where a
    /// generation has at most 1 MiB, unless the filter rotates when full.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// filter.rotate();
    /// let hashes = ["a", "b", "a"].map(|key| filter.hash(key));
    /// assert_eq!(filter.insert_hashes(&hashes), 1);
    /// assert!(filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes(&self, hashes: &[u64]) -> usize {
        self.insert_all(self.when.now(), hashes, &mut |_, _| ())
    }

    /// [`insert_hashes`](Self::insert_hashes) that also writes whether each hash was new to the
    /// same place of `new`. The first of several equal hashes gets `true`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// filter.rotate();
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_hashes_flagged(&["a", "b", "a"].map(|key| filter.hash(key)), &mut new), 1);
    /// assert_eq!(new, [true, false, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> usize {
        assert_same_length(hashes.len(), new.len());
        self.insert_all(self.when.now(), hashes, &mut |at, bitmap| {
            unpack(bitmap, part_of(new, at, bitmap.len()));
        })
    }

    /// Writes for every hash whether it may have been inserted within the window to the same place
    /// of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.rotate();
    /// filter.insert("b");
    /// let mut found = [false; 3];
    /// filter.contains_hashes(&["a", "b", "c"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [true, true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        assert_same_length(hashes.len(), out.len());
        self.lookup().each_stretch(hashes, |at, found| {
            unpack(found, part_of(out, at, found.len()));
        });
    }

    /// [`contains_hashes`](Self::contains_hashes) into a bitmap: bit `i % 64` of `out[i / 64]` is
    /// the answer for hash `i`. The bits after the last hash are 0.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 hashes, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// filter.contains_hashes_bitmap(&["b", "a"].map(|key| filter.hash(key)), &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        self.lookup().bitmap(hashes, out);
    }

    /// Calls `each` with the position of every hash that was certainly not inserted within the
    /// window, in order.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.for_each_absent_hash(&["a", "b", "c"].map(|key| filter.hash(key)), |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn for_each_absent_hash(&self, hashes: &[u64], each: impl FnMut(usize)) {
        self.lookup().absent(hashes, each);
    }

    /// Writes the hash by which this filter knows each key to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// let mut hashes = [0; 2];
    /// filter.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hasher.hash_batch(keys, out);
    }

    /// [`insert_hashes`](Self::insert_hashes) of the keys' hashes; returns how many were new.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.insert_batch(&[1u64, 2, 1]), 2);
    /// filter.rotate();
    /// assert_eq!(filter.insert_batch(&[2u64, 3]), 1);
    /// assert!(filter.contains(&3u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch<K: Funnel>(&self, keys: &[K]) -> usize {
        let (now, mut new) = (self.when.now(), 0);
        self.hash_stretches(keys, |_, hashes| new += self.insert_all(now, hashes, &mut |_, _| ()));
        new
    }

    /// [`insert_hashes_flagged`](Self::insert_hashes_flagged) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// let mut new = [false; 3];
    /// assert_eq!(filter.insert_batch_flagged(&["a", "a", "b"], &mut new), 2);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> usize {
        assert_same_length(keys.len(), new.len());
        let (now, mut count) = (self.when.now(), 0);
        self.hash_stretches(keys, |start, hashes| {
            count += self.insert_all(now, hashes, &mut |at, bitmap| {
                unpack(bitmap, part_of(&mut new[start..start + hashes.len()], at, bitmap.len()));
            });
        });
        count
    }

    /// [`contains_hashes`](Self::contains_hashes) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.rotate();
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        let lookup = self.lookup();
        self.hash_stretches(keys, |start, hashes| {
            lookup.each_stretch(hashes, |at, found| {
                unpack(found, part_of(&mut out[start..start + hashes.len()], at, found.len()));
            });
        });
    }

    /// [`contains_hashes_bitmap`](Self::contains_hashes_bitmap) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 keys, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let mut found = [0];
    /// filter.contains_batch_bitmap(&["a", "b"], &mut found);
    /// assert_eq!(found, [0b01]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        assert_bitmap_length(keys.len(), out.len());
        let lookup = self.lookup();
        self.hash_stretches(keys, |start, hashes| {
            lookup.bitmap(hashes, &mut out[start / 64..][..hashes.len().div_ceil(64)]);
        });
    }

    /// [`for_each_absent_hash`](Self::for_each_absent_hash) of the keys' hashes.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let mut absent = Vec::new();
    /// filter.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn for_each_absent<K: Funnel>(&self, keys: &[K], mut each: impl FnMut(usize)) {
        let lookup = self.lookup();
        self.hash_stretches(keys, |start, hashes| lookup.absent(hashes, |i| each(start + i)));
    }

    /// Inserts hashes; how many were new. Tells where a part of them begins and the bitmap of those
    /// that were, perhaps several times: what is said last holds.
    fn insert_all(&self, now: u64, hashes: &[u64], tell: &mut dyn FnMut(usize, &[u64])) -> usize {
        let part = match &self.when {
            When::Full(gauge) => gauge.stretch(),
            _ => usize::MAX,
        };
        let part = if self.renew { part } else { part.min(HASHED) };
        let mut sum = 0;
        for (start, hashes) in (0..).step_by(part.min(hashes.len()).max(1)).zip(hashes.chunks(part)) {
            let mut tell = |at, bitmap: &[u64]| tell(start + at, bitmap);
            let (changed, new) = if self.renew {
                self.insert_part(now, hashes, &mut tell)
            } else {
                self.insert_absent(now, hashes, &mut tell)
            };
            sum += new;
            if let When::Full(gauge) = &self.when
                && changed > 0
                && let Some(&hash) = hashes.iter().find(|hash| gauge.is_due(**hash))
            {
                self.rotate_if_full(gauge, hash);
            }
        }
        sum
    }

    /// Inserts hashes into the newest generation; how many changed it, and how many were new.
    fn insert_part(&self, now: u64, hashes: &[u64], tell: &mut dyn FnMut(usize, &[u64])) -> (usize, usize) {
        let (now, state) = self.present(now);
        let mut answered = false;
        let insert = |state: &State<S>| {
            if mem::replace(&mut answered, true) {
                return (state.newest().insert_hashes(hashes), 0);
            }
            let older = state.live(now).get(1..).unwrap_or(&[]);
            let mut sum = 0;
            let mut of_changed = |at, changed: &[u64]| {
                if at == 0 {
                    // Told again, from the beginning.
                    sum = 0;
                }
                with_bitmap(changed.len(), |new| {
                    new.copy_from_slice(changed);
                    let hashes = &hashes[at..hashes.len().min(at + 64 * changed.len())];
                    if ones(changed) > 0 {
                        for one in older {
                            each_found(one, hashes, new, |new, found| *new &= !found);
                        }
                    }
                    sum += ones(new);
                    tell(at, new);
                });
            };
            let changed = state.newest().engine.insert_flagged(&hashes, Some(&mut of_changed));
            (changed, sum)
        };
        self.state.settle(state, insert, |first, _| first)
    }

    /// Inserts those of at most 1024 hashes that no generation has, which are new, into the newest.
    fn insert_absent(&self, now: u64, hashes: &[u64], tell: &mut dyn FnMut(usize, &[u64])) -> (usize, usize) {
        let (now, state) = self.present(now);
        let mut answers = [0; HASHED / 64];
        let answers = &mut answers[..hashes.len().div_ceil(64)];
        let lookup = Lookup { now, state: &*state };
        lookup.bitmap(hashes, answers);

        let mut absent = [0; HASHED];
        let mut len = 0;
        for (i, hash) in hashes.iter().enumerate() {
            absent[len] = *hash;
            len += usize::from(answers[i / 64] >> (i % 64) & 1 == 0);
        }
        let absent = &absent[..len];
        let mut flags = [false; HASHED];
        let flags = &mut flags[..len];
        let mut answered = false;
        let insert = |state: &State<S>| {
            if mem::replace(&mut answered, true) {
                state.newest().insert_hashes(absent)
            } else {
                state.newest().insert_hashes_flagged(absent, flags)
            }
        };
        let new = self.state.settle(state, insert, |first, _| first);
        let mut flags = flags.iter();
        for i in 0..hashes.len() {
            let (word, bit) = (&mut answers[i / 64], 1 << (i % 64));
            *word = if *word & bit == 0 && flags.next() == Some(&true) {
                *word | bit
            } else {
                *word & !bit
            };
        }
        tell(0, answers);
        (new, new)
    }

    /// The list, and the time by which it is read.
    fn lookup(&self) -> Lookup<Guard<State<S>>> {
        let state = self.state.load();
        let now = self.when.now();
        Lookup { now, state }
    }

    /// Hashes keys; calls `each` with where a stretch of them begins and its hashes.
    fn hash_stretches<K: Funnel>(&self, keys: &[K], mut each: impl FnMut(usize, &[u64])) {
        let mut at = 0;
        let hasher = &self.hasher;
        Keys { hasher, keys }.each(0..keys.len(), |hashes| {
            each(at, hashes);
            at += hashes.len();
        });
    }
}

/// A batch that is looked up.
struct Lookup<L> {
    now: u64,
    state: L,
}

impl<S: KeyHasher, L: core::ops::Deref<Target = Arc<State<S>>>> Lookup<L> {
    /// Writes the answers, a bit each.
    fn bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        let Some((newest, older)) = self.state.live(self.now).split_first() else {
            out.fill(0);
            return;
        };
        newest.filter.contains_hashes_bitmap(hashes, out);
        for one in older {
            each_found(one, hashes, out, |out, found| *out |= found);
        }
    }

    /// Calls `each` with where a stretch of hashes begins and the bitmap of its answers.
    fn each_stretch(&self, hashes: &[u64], mut each: impl FnMut(usize, &[u64])) {
        for (at, hashes) in (0..).step_by(STRETCH).zip(hashes.chunks(STRETCH)) {
            with_bitmap(hashes.len().div_ceil(64), |bitmap| {
                self.bitmap(hashes, bitmap);
                each(at, bitmap);
            });
        }
    }

    /// Calls `each` with the position of every hash that is not found.
    fn absent(&self, hashes: &[u64], mut each: impl FnMut(usize)) {
        self.each_stretch(hashes, |start, found| {
            for_each_absent(found, STRETCH.min(hashes.len() - start), |i| each(start + i));
        });
    }
}

/// Looks hashes up in one generation; combines each word of answers with that of `answers`.
fn each_found<S: KeyHasher>(
    one: &Generation<S>,
    hashes: &[u64],
    answers: &mut [u64],
    combine: impl Fn(&mut u64, &u64),
) {
    for (hashes, answers) in hashes.chunks(STRETCH).zip(answers.chunks_mut(STRETCH / 64)) {
        with_bitmap(answers.len(), |found| {
            one.filter.contains_hashes_bitmap(hashes, found);
            answers
                .iter_mut()
                .zip(found)
                .for_each(|(answer, found)| combine(answer, found));
        });
    }
}

/// Space for the answers of at most a stretch. (To clear it for a whole one takes longer than to
/// work on a few keys.)
#[inline]
fn with_bitmap<R>(words: usize, work: impl FnOnce(&mut [u64]) -> R) -> R {
    if words <= 1 {
        work(&mut [0][..words])
    } else {
        work(&mut [0; STRETCH / 64][..words])
    }
}

/// The places of `out` that belong to these words of a bitmap, the first of which is for place
/// `at`.
fn part_of(out: &mut [bool], at: usize, words: usize) -> &mut [bool] {
    let end = out.len().min(at + 64 * words);
    &mut out[at..end]
}

/// The whole filter.
impl<S: KeyHasher + Clone> WindowedBloom<S> {
    /// Adds every visible key of `other` to this filter; returns whether that changed it. Both may
    /// be in use meanwhile.
    ///
    /// By age, each generation goes into one here that lasts as long or up to a generation longer,
    /// as told by each filter's own clock. If there is none, one is begun. So a key is visible here
    /// for the window since it was inserted there, and at most one generation longer than there. If
    /// [`rotate`](Self::rotate) was called or the clock was set back within a window before, there
    /// may be no room for one more generation. Then keys may be forgotten as late as if they were
    /// inserted now, or early by a rotation of that kind.
    ///
    /// Otherwise the newest generation goes to the newest, and so on: it takes as many further
    /// rotations as there to forget a key. If the filter rotates when full, the added keys count.
    ///
    /// # Errors
    ///
    /// If generations, window, layout or hasher (its algorithm, seed or key) differ; nothing is
    /// changed then.
    ///
    /// # Memory ordering
    ///
    /// As of [`ConcurrentBloom::union_from`].
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let build = || WindowedBloom::builder().expected_keys(1000).generations(2).build();
    /// let (all, part) = (build()?, build()?);
    /// part.insert("a");
    /// part.rotate();
    /// part.insert("b");
    /// assert_eq!(all.union_from(&part), Ok(true));
    /// assert!(all.contains("a") && all.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        let (ours, theirs) = (self.shape(), other.shape());
        if ours != theirs {
            return Err(IncompatibleError(IncompatibleErrorKind::Window { ours, theirs }));
        }
        let theirs = other.lookup();
        let live = theirs.state.live(theirs.now);
        let (now, state) = self.present(self.when.now());
        state.newest().check_compatible(theirs.state.newest())?;
        // When each is to expire here.
        let expires = |one: &Generation<S>| now.saturating_add(one.expires - theirs.now);
        let mut state = state;
        loop {
            let lacking = match self.when {
                When::Aged(_) => self.lacking(&state, live.iter().map(expires)),
                _ => alloc::vec![NEVER; live.len().saturating_sub(state.generations.len())],
            };
            // If the memory is refused, keys are forgotten late.
            if lacking.is_empty() || self.complete(Arc::clone(&state), &lacking).is_err() {
                break;
            }
            state = self.state.load();
        }
        let add = |ours: &State<S>| {
            let mut changed = false;
            for (age, from) in live.iter().enumerate() {
                let to = match self.when {
                    When::Aged(_) => ours.at_least(expires(from)),
                    _ => age.min(ours.generations.len() - 1),
                };
                changed |= ours.generations[to].filter.union_from(&from.filter)?;
            }
            Ok(changed)
        };
        let changed = self.state.settle(state, add, |first, second| Ok(first? | second?));
        if let When::Full(gauge) = &self.when {
            self.rotate_if_full(gauge, 0);
        }
        changed
    }

    /// The expiry times of generations that the list lacks. With them, for each wanted time, the
    /// latest first, some generation expires then or less than a period later.
    fn lacking(&self, state: &State<S>, wanted: impl Iterator<Item = u64>) -> Vec<u64> {
        let newest = state.generations[0].expires;
        let mut lacking = Vec::new();
        for time in wanted.filter(|time| *time < newest) {
            let serves = |expires: u64| expires >= time && expires - time < self.period;
            let is_there = state.generations.iter().any(|one| serves(one.expires));
            let has_room = state.generations.len() + lacking.len() <= self.generations;
            if !is_there && !lacking.last().is_some_and(|last| serves(*last)) && has_room {
                // By the rhythm of the list.
                lacking.push(time + (newest - time) % self.period);
            }
        }
        lacking
    }

    /// Removes all keys. It takes `&mut self` because beside inserts nobody could say which keys
    /// survive.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let mut filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// filter.rotate();
    /// filter.clear();
    /// assert!(!filter.contains("a"));
    /// assert_eq!(filter.estimated_len(), 0);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn clear(&mut self) {
        loop {
            let old = Arc::clone(&self.state.load());
            let until = old.until;
            if self.replace(old, self.when.now(), until, 1) {
                return;
            }
        }
    }

    /// [`clone`](Clone::clone) that returns an error, instead of aborting, if the allocation fails.
    ///
    /// # Errors
    ///
    /// If the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let copy = filter.try_clone()?;
    /// (0..4).for_each(|_| filter.rotate());
    /// assert!(copy.contains("a") && !filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let state = self.state.load();
        let clone = |one: &Generation<S>| {
            Ok(Generation {
                filter: Arc::new(one.filter.try_clone()?),
                ..*one
            })
        };
        let state = State {
            generations: state.generations.iter().map(clone).collect::<Result<_, _>>()?,
            ..**state
        };
        let (state, pool) = with_spares(state, self.generations)?;
        Ok(Self {
            state: Swap::new(state),
            pool: Mutex::new(pool),
            hasher: self.hasher.clone(),
            when: self.when.clone(),
            ..*self
        })
    }

    fn shape(&self) -> Shape {
        Shape {
            generations: self.generations,
            window: self.window(),
        }
    }
}

/// What the filter is, and how full. Figures from the bits read the whole filter: beside inserts,
/// each word as it was at some moment meanwhile.
impl<S> WindowedBloom<S> {
    /// The number of keys within a window that the filter was sized for.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// assert_eq!(WindowedBloom::builder().expected_keys(1000).build()?.expected_keys(), 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    /// The number of generations, once all are in use.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// assert_eq!(WindowedBloom::builder().expected_keys(1000).generations(9).build()?.generations(), 9);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn generations(&self) -> usize {
        self.generations
    }

    /// For how long keys are visible at least, where they age: as asked, each generation rounded up
    /// to whole nanoseconds.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    /// use std::time::Duration;
    ///
    /// let builder = WindowedBloom::builder().expected_keys(1000);
    /// assert_eq!(builder.clone().build()?.window(), None);
    /// assert_eq!(builder.window(Duration::from_secs(60)).build()?.window(), Some(Duration::from_secs(60)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        let window = window_of(self.period, self.generations);
        (self.period != NEVER).then_some(Duration::from_nanos(window))
    }

    /// Bytes of memory that the bits take: all generations and the spare one.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// assert_eq!(filter.memory_bytes(), 5 * filter.live_generations()[0].memory_bytes());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        (self.generations + 1) * self.state.load().newest().memory_bytes()
    }

    /// The generations whose keys are visible, the newest first, for example to ask each how full
    /// it is. The filter does not reuse a generation's memory while you hold it.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&["a", "b"]);
    /// filter.rotate();
    /// filter.insert("c");
    /// let lens: Vec<usize> = filter.live_generations().iter().map(|one| one.estimated_len()).collect();
    /// assert_eq!(lens, [1, 2]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn live_generations(&self) -> Vec<Arc<ConcurrentBloom<S>>> {
        let state = self.state.load();
        let live = state.live(self.when.now());
        live.iter().map(|one| Arc::clone(&one.filter)).collect()
    }

    /// An estimate of the number of distinct keys that are visible, from the bits of all
    /// generations together: a key that several have counts once. Its error is that of
    /// [`ConcurrentBloom::estimated_len`], a few times greater the more generations there are.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(30_000).build()?;
    /// for start in [0, 5000, 10_000u32] {
    ///     filter.rotate();
    ///     filter.insert_batch(&(start..start + 10_000).collect::<Vec<_>>());
    /// }
    /// assert!(filter.estimated_len().abs_diff(20_000) < 1000);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        let live = self.live_generations();
        let Some(newest) = live.first() else { return 0 };
        let ones = lines(&live).map(|line| {
            let all = |i: usize| line.iter().fold(0, |all, words| all | words[i]);
            (0..LINE_WORDS).map(|i| u64::from(all(i).count_ones())).sum::<u64>()
        });
        let ones = ones.sum();
        bits::acquire();
        newest.layout().keys_for(ones)
    }

    /// The share of the bits that are set in the generations that are visible; 0 if none is.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(3000).build()?;
    /// filter.insert_batch(&(0..1000u32).collect::<Vec<_>>());
    /// assert!((0.4..0.5).contains(&filter.fill_ratio()));
    /// filter.rotate();
    /// assert!((0.2..0.25).contains(&filter.fill_ratio()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        let live = self.live_generations();
        let sum: f64 = live.iter().map(|one| one.fill_ratio()).sum();
        sum / live.len().max(1) as f64
    }

    /// The false-positive rate to expect when all generations have their share of the expected
    /// keys, from the model that the filter was sized by: at most the one that the builder was
    /// asked for.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(30_000).false_positive_rate(1e-3).build()?;
    /// assert!((0.0009..=0.001).contains(&filter.false_positive_rate()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        let state = self.state.load();
        let one = state.newest().false_positive_rate_at(state.newest().expected_keys());
        (0..self.generations).fold(0.0, |any, _| any + (1.0 - any) * one)
    }

    /// The false-positive rate of the filter as it is: the chance, given its bits, that a random
    /// hash is taken for present in any generation, if in each line these chances are independent.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(30_000).build()?;
    /// assert_eq!(filter.current_false_positive_rate(), 0.0);
    /// filter.insert_batch(&(0..10_000u32).collect::<Vec<_>>());
    /// assert!((0.0022..0.0026).contains(&filter.current_false_positive_rate())); // 1%, of 4 generations
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        let live = self.live_generations();
        let Some(newest) = live.first() else { return 0.0 };
        let layout = newest.layout();
        let rates = lines(&live).map(|line| {
            let rates = line.iter().map(|words| layout.rate_of_line(*words));
            rates.fold(0.0, |any, rate| any + (1.0 - any) * rate)
        });
        let sum: f64 = rates.sum();
        bits::acquire();
        sum / layout.blocks as f64
    }

    /// The hasher.
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let filter = WindowedBloom::builder().expected_keys(1000).seed(7).build()?;
    /// assert_eq!(filter.hasher().seed(), 7);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }
}

/// One line after another, as each of the generations has it.
fn lines<S>(generations: &[Arc<ConcurrentBloom<S>>]) -> impl Iterator<Item = Vec<[u64; LINE_WORDS]>> {
    let mut each: Vec<_> = generations.iter().map(|one| one.bits().words()).collect();
    core::iter::from_fn(move || each.iter_mut().map(Iterator::next).collect())
}

/// A copy that holds at least every key whose insertion happened before and whose window is not
/// over. Aborts if the allocation fails; [`try_clone`](WindowedBloom::try_clone) does not.
impl<S: KeyHasher + Clone> Clone for WindowedBloom<S> {
    fn clone(&self) -> Self {
        self.try_clone()
            .unwrap_or_else(|_| out_of_memory(self.state.load().newest()))
    }
}

fn out_of_memory<S>(one: &ConcurrentBloom<S>) -> ! {
    let layout = core::alloc::Layout::array::<u8>(one.memory_bytes());
    alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
}

/// Two filters are equal if the number of generations, the window, the expected keys, the hasher
/// and the bits of the visible generations, one by one, are equal. Clocks and expiry times do not
/// count. Beside inserts, each word is compared as it was at some moment meanwhile.
impl<S: KeyHasher + Clone> PartialEq for WindowedBloom<S> {
    fn eq(&self, other: &Self) -> bool {
        self.shape() == other.shape()
            && (self.expected_keys, self.renew) == (other.expected_keys, other.renew)
            && self.live_generations() == other.live_generations()
    }
}

/// A summary; it reads the whole filter for the estimate.
impl<S: fmt::Debug> fmt::Debug for WindowedBloom<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowedBloom")
            .field("expected_keys", &self.expected_keys)
            .field("generations", &self.generations)
            .field("window", &self.window())
            .field("renew", &self.renew)
            .field("memory_bytes", &self.memory_bytes())
            .field("hasher", &self.hasher)
            .field("estimated_len", &self.estimated_len())
            .finish_non_exhaustive()
    }
}

/// Inserts the keys in batches. For `&WindowedBloom` too, so that a shared filter can be extended.
///
/// ```
/// use lanebloom::WindowedBloom;
///
/// let mut filter = WindowedBloom::builder().expected_keys(1000).build()?;
/// filter.extend(["a", "b"]);
/// (&filter).extend(0..10u32);
/// assert!(filter.contains("b") && filter.contains(&9u32) && !filter.contains(&10u32));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<K: Funnel, S: KeyHasher + Clone> Extend<K> for WindowedBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        (&*self).extend(keys);
    }
}

impl<K: Funnel, S: KeyHasher + Clone> Extend<K> for &WindowedBloom<S> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
        gathered::<HASHED, _>(keys.into_iter().map(|key| self.hash(&key)), |hashes| {
            self.insert_hashes(hashes);
        });
    }
}
