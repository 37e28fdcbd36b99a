//! Forgetting: [`WindowedBloom`] tells whether a key was seen in the last minutes, or among the
//! last million keys.
//!
//! The filter is a list of *generations*, Bloom filters of one layout. Inserts write into the
//! newest generation; lookups search all of them. A *rotation* puts an empty generation before the
//! others and drops the oldest. With `G` generations, a key is visible for at least `G - 1`
//! rotations, and is gone after `G` of them.
//!
//! # The window
//!
//! | rotation | option or method | a key is visible for at least | a key is gone after |
//! |---|---|---|---|
//! | on request | [`rotate`](WindowedBloom::rotate) | `G - 1` rotations | `G` rotations |
//! | by age | [`Builder::window`] | the window | `G / (G - 1)` windows, unless [the clock](#the-clock) is set |
//! | by age and on request | both | the window, or `G - 1` rotations of either kind if these end first | `G / (G - 1)` windows, or `G` calls of `rotate` |
//! | by the number of keys | [`Builder::rotate_when_full`] | the next expected number of inserted keys, within a few per cent | `G / (G - 1)` of that number |
//!
//! With the default of 4 generations a key is visible for at most a third more than the window.
//! More generations reduce this excess, but make lookups slower. There is one generation more than
//! the window needs, and a spare one: the two take `2 / (G - 1)` more memory.
//!
//! # Example
//!
//! ```
//! // Who logged in during the last ten minutes?
//! let builder = lanebloom::WindowedBloom::builder().expected_keys(100_000);
//! let recent = builder.window(std::time::Duration::from_secs(600)).build()?;
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
//! | step of the clock | effect |
//! |---|---|
//! | forward by `s` | The filter forgets keys up to `s` earlier. |
//! | back by `s`, to a time before the newest generation began | The newest generation ends. A key is visible for the window at least, and for `s` longer at most. For one window, one generation more may be visible, and the false-positive rate may rise to `(G + 1) / G` of the requested one. |
//! | back by `s`, to a time within the newest generation, or less than a quarter of a generation before it | The newest generation lasts `s` longer. The keys of that time are visible for `s` longer. |
//! | back more than once within a window | Each further step may make the filter forget keys one generation earlier. |
//!
//! An insert reads the clock once, a lookup only if it finds something. A batch reads it once for
//! each chunk: 1024 keys, or at least as many hashes.
//!
//! # Seen again
//!
//! An insert returns true if no generation had the key: it was not seen within the window. A key
//! that is inserted again begins its window anew, so a filter never forgets a key that keeps
//! coming. To let a key through once per window ("notify once in ten minutes"), see
//! [`Builder::renew`].
//!
//! If the newest generation has the key, an insert costs loads only. Otherwise it writes the key
//! there, and then searches the older generations. A dense batch of hashes is inserted [in
//! bulk](crate#inserting-in-bulk) if a generation has at most 1 MiB, unless the filter rotates when
//! full.
//!
//! # Unions
//!
//! [`union_from`](Filter::union_from) adds every visible key of the other filter.
//!
//! By age, each generation goes into one here that lasts as long or up to a generation longer, as
//! told by each filter's own clock. If there is none, one is begun. So a key is visible here for
//! the window since it was inserted there, and at most one generation longer than there. If
//! [`rotate`](WindowedBloom::rotate) was called or the clock was set back within a window before,
//! there may be no room for one more generation. Then keys may be forgotten as late as if they were
//! inserted now, or early by a rotation of that kind.
//!
//! Otherwise the newest generation goes to the newest, and so on: it takes as many further
//! rotations as there to forget a key. If the filter rotates when full, the added keys count.
//!
//! Generations and window must be the same for a union. For `==` the expected keys and the bits of
//! the visible generations, one by one, must be the same too; clocks and expiry times do not count.
//!
//! # Snapshots
//!
//! For a time-based window, the snapshot records the kind of the clock, what it said, and when each
//! generation expires.
//!
//! | the filter was built with | read by | keys' ages |
//! |---|---|---|
//! | the monotonic clock | any | go on from where they were: the clock cannot tell how much time has passed since |
//! | [`time_of_day`](Builder::time_of_day) | any but with a clock | include the time since: the filter goes on by the time of day |
//! | [`clock`](Builder::clock), or `time_of_day` | [`from_bytes`], [`read_from`] of this module | include the time since, by the clock that is given: it must be the one that the filter had |
//! | [`clock`](Builder::clock) | any other | the snapshot is refused |
//!
//! A snapshot has the visible generations. Reading one allocates all of them and the spare one,
//! which may take 65 times as much as the snapshot: give [`read_from`](Filter::read_from) a limit.
//! For the same reason `serde` reads a window through `Limited` only.
//!
//! A process goes on after a restart. The time that it was down counts. The filter that was just
//! built says how much memory the file may ask for.
//!
//! ```
//! use lanebloom::WindowedBloom;
//! use lanebloom::codec::replace_file;
//! use std::fs::File;
//! use std::io::ErrorKind;
//! use std::time::Duration;
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("recent.bloom");
//! # let mut seen = Vec::new();
//! # for _ in 0..2 {
//! let hour = Duration::from_secs(3600);
//! let builder = WindowedBloom::builder().expected_keys(1000);
//! let fresh = builder.window(hour).time_of_day().build()?;
//! let recent = match File::open(&path) {
//!     Ok(file) => WindowedBloom::read_from(file, fresh.memory_bytes())?,
//!     Err(error) if error.kind() == ErrorKind::NotFound => fresh,
//!     Err(error) => return Err(error.into()),
//! };
//! let is_new = recent.insert("ann");
//! replace_file(&path, |file| recent.snapshot().write_to(file))?;
//! # seen.push(is_new);
//! # }
//! # assert_eq!(seen, [true, false]);
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
//!    A rotation may come between two keys of a batch.
//! 2. **Answers of inserts.** If several threads race to insert a key that was not seen within the
//!    window, at least one gets `true`, also beside a rotation. With one word per key exactly one
//!    gets it, if no rotation runs meanwhile.
//! 3. **Publication** holds unchanged. An insert that writes ends in a `SeqCst` fence.
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

mod clock;
mod engine;
mod generations;
mod list;
mod settings;
mod snapshot;

pub use generations::Windowed;
pub use snapshot::{from_bytes, read_from};

use crate::answers::Answers;
use crate::error::{BuildError, IncompatibleError};
use crate::filter::Filter;
use crate::filter::methods::inserts::into_ok;
use crate::filter::traits::{Planned, Union};
use crate::filter::types::bloom::engine::empty;
use crate::filter::types::bloom::{Bloom, ConcurrentBloom};
use crate::geometry::rates;
use crate::geometry::sizing::Request;
use crate::hash::{FilterHasher, Murmur3};
use crate::key::Key;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use clock::Clock;
use core::time::Duration;
use list::{Generation, List};
use settings::{MAX_GENERATIONS, MAX_WINDOW, NEVER, When, WindowSettings};

/// A filter that forgets: keys are visible for a window of time, of keys, or of rotations.
///
/// **Built without a [`window`](Builder::window) and without
/// [`rotate_when_full`](Builder::rotate_when_full), it forgets nothing by itself**, only when
/// [`rotate`](WindowedBloom::rotate) is called.
///
/// An insert returns `true` if the key was not seen within the window. **An insert of a key that
/// was seen returns `false` and renews it**: its window begins anew, unless the builder was given
/// [`renew(false)`](Builder::renew). So the filter is not a rate limiter by itself: a key that
/// keeps coming is let through once and never again. With `renew(false)` it is let through once per
/// window, or up to a third later. A limit of several requests per window needs a counter.
///
/// [The module](self) says what the window is and what threads may rely on. Statistics are those of
/// the visible generations together. In [`len`](crate::Statistics::len) a key that several
/// generations have counts once; the error of this estimate is a few times greater the more
/// generations there are.
///
/// ```
/// // The last million keys, in generations of a fourth part of them.
/// let builder = lanebloom::WindowedBloom::builder().expected_keys(1_000_000);
/// let recent = builder.generations(5).rotate_when_full().build()?;
/// let keys: Vec<u64> = (0..1_600_000).collect();
/// recent.insert_batch(&keys);
/// assert!(keys[600_000..].iter().all(|key| recent.contains(key)));
/// let old = &keys[..200_000];
/// assert!(old.iter().filter(|key| recent.contains(*key)).count() < 4000);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type WindowedBloom<S = Murmur3> = Filter<Windowed, S>;

/// Sizes a [`WindowedBloom`]; made by [`WindowedBloom::builder`](Filter::builder).
///
/// Unless told otherwise by [`window`](Builder::window) or
/// [`rotate_when_full`](Builder::rotate_when_full), the filter rotates when
/// [`rotate`](WindowedBloom::rotate) is called. The options that all filters have are for the whole
/// window:
///
/// - `expected_keys`: the number of distinct keys inserted within a window. With
///   `rotate_when_full`, it is the window. Each generation is sized for its share, one part in
///   `generations - 1`. If keys come in bursts, expect `generations - 1` times the most keys that
///   come within one generation.
/// - `false_positive_rate`: the chance that the filter reports a key that is in no generation, when
///   all generations are full. Each generation gets the same part of it.
/// - `memory_budget`: for all generations and the spare one together. Each gets the same part of
///   it, at least one line of 64 bytes; errors name that part.
///
/// ```
/// let filter = lanebloom::WindowedBloom::builder().expected_keys(30_000).build()?;
/// for generation in 0..4u32 {
///     filter.rotate();
///     filter.insert_all((0..10_000u32).map(|i| (generation, i)));
/// }
/// assert!((0.008..0.0105).contains(&filter.statistics().false_positive_rate));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
pub type Builder<S = Murmur3> = crate::filter::Builder<Windowed, S>;

/// Inserts and lookups, one key or many.
impl<S> WindowedBloom<S> {
    /// Inserts `key`. Returns whether the key was new: `false` for a key of the window, and by
    /// chance for a new one. If several threads race to insert a new key, at least one of them
    /// gets `true`.
    ///
    /// Every change is a `Release`.
    ///
    /// ```
    /// let filter = lanebloom::WindowedBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// assert!(filter.contains("a") && !filter.contains("b"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("add", "put", "check_and_set"))]
    #[inline]
    pub fn insert<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        into_ok(self.try_insert(key))
    }

    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// Never `false` for a key whose insert happened before, within the window. `true` ends in an
    /// `Acquire`.
    ///
    /// ```
    /// let filter = lanebloom::WindowedBloom::from_keys([17u64], 0.01)?;
    /// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("might_contain", "mightContain", "may_contain", "exists", "check"))]
    #[inline]
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        self.look_up(key)
    }

    /// Inserts the keys in order; returns how many inserts were of new keys.
    ///
    /// ```
    /// let filter = lanebloom::WindowedBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_batch(&[1, 2]);
    /// assert!(filter.contains(&1) && filter.contains(&2) && !filter.contains(&3));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn insert_batch<K: Key<S>>(&self, keys: &[K]) -> usize {
        into_ok(self.try_insert_batch(keys))
    }

    /// Passes on whether each key may be in the filter: what [`contains`](Self::contains) returns
    /// for it. [`Answers`] says what `out` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::WindowedBloom::from_keys(["a"], 0.01)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    pub fn contains_batch<K: Key<S>>(&self, keys: &[K], out: impl Answers) {
        self.look_up_batch(keys, out);
    }

    /// [`insert_batch`](Self::insert_batch) that also passes on whether each insert changed the
    /// filter. [`Answers`] says what `new` can be, and when this panics.
    ///
    /// ```
    /// let filter = lanebloom::WindowedBloom::with_capacity(1000, 0.01)?;
    /// let mut new = [false; 3];
    /// filter.insert_batch_into(&[1, 1, 2], &mut new);
    /// assert_eq!(new, [true, false, true]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn insert_batch_into<K: Key<S>>(&self, keys: &[K], new: impl Answers) -> usize {
        into_ok(self.try_insert_batch_into(keys, new))
    }

    /// [`insert_batch`](Self::insert_batch) for the keys of an iterator, some at a time.
    ///
    /// ```
    /// let filter = lanebloom::WindowedBloom::with_capacity(1000, 0.01)?;
    /// filter.insert_all(0..100);
    /// assert!((0..100).all(|key| filter.contains(&key)));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("extend", "try_extend"))]
    pub fn insert_all<K: Key<S>>(&self, keys: impl IntoIterator<Item = K>) -> usize {
        into_ok(self.try_insert_all(keys))
    }
}

/// Unions.
impl<S: FilterHasher> WindowedBloom<S> {
    /// Adds every key that was inserted into `other` before; returns whether that changed this
    /// filter. Both may be in use meanwhile.
    ///
    /// Fails if layout, window or hasher (its algorithm, seed or key) differ. Then no key is added.
    ///
    /// `Acquire` on `other`'s content and `Release` on this one's: a thread that finds a key here
    /// sees what its inserter there had done before. `false` ends in an `Acquire`.
    ///
    /// ```
    /// let all = lanebloom::WindowedBloom::with_capacity(1000, 0.01)?;
    /// let (part, empty) = (all.clone(), all.clone());
    /// let _ = part.insert("a");
    /// assert!(all.union_from(&part)? && all.contains("a"));
    /// assert!(!all.union_from(&empty)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("merge", "put_all", "putAll"))]
    pub fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        Union::union_from(self, other)
    }
}

/// The settings of a window, besides its size.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct WindowOptions {
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

impl Default for WindowOptions {
    #[inline]
    fn default() -> Self {
        Self {
            generations: 4,
            rotation: Rotation::Called,
            clock: Clock::Monotonic,
            renew: true,
        }
    }
}

impl<S> Builder<S> {
    /// The most memory that the filter may take, in bytes: at least one line of 64.
    ///
    /// ```
    /// let builder = lanebloom::WindowedBloom::builder();
    /// let filter = builder.memory_budget(100_000).build()?;
    /// assert!((99_000..=100_000).contains(&filter.memory_bytes()));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn memory_budget(mut self, bytes: usize) -> Self {
        self.request.budget = Some(bytes);
        self
    }

    /// [`words_per_key`](crate::bloom::Builder::words_per_key) of each Bloom filter.
    ///
    /// ```
    /// let builder = lanebloom::WindowedBloom::builder().expected_keys(1000);
    /// let one = builder.clone().words_per_key(1).build()?;
    /// assert!(one.memory_bytes() > builder.clone().build()?.memory_bytes());
    /// assert!(builder.words_per_key(3).build().is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn words_per_key(mut self, words: usize) -> Self {
        self.request.words = Some(words);
        self
    }

    /// [`lines_per_key`](crate::bloom::Builder::lines_per_key) of each Bloom filter.
    ///
    /// ```
    /// let builder = lanebloom::WindowedBloom::builder().false_positive_rate(1e-4);
    /// let builder = builder.expected_keys(100_000);
    /// let (one, two) = (builder.clone().build()?, builder.lines_per_key(2).build()?);
    /// assert!(two.memory_bytes() * 100 < one.memory_bytes() * 97);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn lines_per_key(mut self, lines: usize) -> Self {
        self.request.lines = Some(lines);
        self
    }

    /// The number of generations, from 2 to 64; 4 by default. A key is visible for up to one part
    /// in `generations - 1` longer than the window. A lookup of an absent key searches all of them.
    ///
    /// ```
    /// let builder = lanebloom::WindowedBloom::builder().expected_keys(1000);
    /// let filter = builder.clone().generations(2).build()?;
    /// filter.insert("a");
    /// filter.rotate();
    /// assert!(filter.contains("a"));
    /// filter.rotate();
    /// assert!(!filter.contains("a") && builder.generations(1).build().is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn generations(mut self, generations: usize) -> Self {
        self.options.generations = generations;
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
    /// let builder = WindowedBloom::builder().expected_keys(1000);
    /// let filter = builder.window(Duration::from_millis(60)).build()?;
    /// filter.insert("a");
    /// std::thread::sleep(Duration::from_millis(100));
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn window(mut self, window: Duration) -> Self {
        self.options.rotation = Rotation::Aged(window);
        self
    }

    /// The clock by which keys age: the time since some moment, the same for all calls.
    ///
    /// Several threads may call it at once. [The module](self#the-clock) says how often, and what
    /// happens if it steps back. The default is the system's monotonic clock, on Linux exact to a
    /// tick (1 to 10 ms), since that takes 5 ns to read.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    /// use std::time::Duration;
    ///
    /// static SECONDS: AtomicU64 = AtomicU64::new(0);
    /// let clock = || Duration::from_secs(SECONDS.load(Relaxed));
    /// let builder = lanebloom::WindowedBloom::builder().expected_keys(1000);
    /// let filter = builder.window(Duration::from_secs(60)).clock(clock).build()?;
    /// filter.insert("a");
    /// SECONDS.store(59, Relaxed);
    /// assert!(filter.contains("a"));
    /// SECONDS.store(80, Relaxed);
    /// assert!(!filter.contains("a"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn clock(mut self, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.options.clock = Clock::Supplied(Arc::new(now));
        self
    }

    /// The time since 1970 as the [clock](Self::clock), as exact as the default one.
    ///
    /// All machines whose clocks are right then have the same generations: a `SharedWindow` of the
    /// crate `lanebloom-redis` needs that. A snapshot that is read later knows how much later.
    ///
    /// ```
    /// use lanebloom::{WindowedBloom, windowed};
    /// use std::time::{Duration, SystemTime};
    ///
    /// let hour = Duration::from_secs(3600);
    /// let builder = WindowedBloom::builder().expected_keys(1000);
    /// let recent = builder.window(hour).time_of_day().build()?;
    /// recent.insert("a");
    /// let (bytes, hasher) = (recent.snapshot().to_vec(), *recent.hasher());
    /// assert!(WindowedBloom::from_bytes(&bytes)?.0.contains("a"));
    /// let later = move || SystemTime::UNIX_EPOCH.elapsed().unwrap() + 2 * hour;
    /// let (late, _) = windowed::from_bytes(&bytes, hasher, later)?;
    /// assert!(!late.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn time_of_day(mut self) -> Self {
        self.options.clock = Clock::TimeOfDay;
        self
    }

    /// Rotates when the newest generation has its share of the expected keys: a key is visible
    /// until that many were inserted after it.
    ///
    /// A key that is inserted again counts once more in each generation. The filter estimates the
    /// distinct keys of a generation from how full it is, at one insert in about `keys / 64`. A
    /// generation is sized for 6% more than its share, and gets [5% to 11%
    /// more](crate::docs::choices#windows-of-a-number-of-keys) in the mean. If a share is a few
    /// hundred keys or less, a key may be forgotten a few per cent early: ask for as many more.
    ///
    /// ```
    /// let builder = lanebloom::WindowedBloom::builder().expected_keys(3000);
    /// let filter = builder.rotate_when_full().build()?;
    /// filter.insert_all(0..20_000u32);
    /// assert!((17_000..20_000u32).all(|key| filter.contains(&key)));
    /// assert!((0..15_000u32).filter(|key| filter.contains(key)).count() < 300);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn rotate_when_full(mut self) -> Self {
        self.options.rotation = Rotation::Full;
        self
    }

    /// Whether a key that is inserted while it is visible begins its window anew; true by default.
    ///
    /// If not, its window begins at the first insert, the one that returned true. So if a key keeps
    /// coming, one insert in each window returns true. An insert that returns false then writes
    /// nothing, and **the key may be forgotten right after**.
    ///
    /// ```
    /// let builder = lanebloom::WindowedBloom::builder().expected_keys(1000);
    /// let builder = builder.generations(2);
    /// for renew in [true, false] {
    ///     let filter = builder.clone().renew(renew).build()?;
    ///     assert!(filter.insert("a"));
    ///     filter.rotate();
    ///     assert!(!filter.insert("a"));
    ///     filter.rotate();
    ///     assert_eq!(filter.contains("a"), renew);
    /// }
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn renew(mut self, renew: bool) -> Self {
        self.options.renew = renew;
        self
    }
}

impl Planned for Windowed {
    type Options = WindowOptions;

    #[inline]
    fn build(asked: Request, options: WindowOptions) -> Result<Self, BuildError> {
        let generations = options.generations;
        if !(2..=MAX_GENERATIONS).contains(&generations) {
            let problem = format!("{generations} generations is not in 2 to {MAX_GENERATIONS}");
            return Err(BuildError::new(problem));
        }
        match options.rotation {
            Rotation::Aged(window) if !(Duration::from_nanos(1)..=MAX_WINDOW).contains(&window) => {
                let problem = format!("a window of {window:?} is not in 1ns to {MAX_WINDOW:?}");
                return Err(BuildError::new(problem));
            }
            _ => {}
        }
        // The whole, before it is divided.
        asked.check()?;
        let is_full = matches!(options.rotation, Rotation::Full);
        let share = |keys: usize| keys.max(1).div_ceil(generations - 1);
        let sized_for = |share| if is_full { settings::sized_for(share) } else { share };
        let one = Request {
            keys: asked.keys.map(|keys| sized_for(share(keys))),
            rate: (!asked.is_best_that_fits()).then(|| rates::of_each(asked.rate.unwrap_or(0.01), generations)),
            budget: asked.budget.map(|bytes| bytes / (generations + 1)),
            ..asked
        };
        let (layout, keys) = one.solve()?;
        let bloom: Bloom = empty(layout, keys)?;
        let share_of = |keys| if is_full { settings::share_of(keys) } else { keys };
        let expected_keys = asked
            .keys
            .map_or_else(|| share_of(keys).saturating_mul(generations - 1), |keys| keys.max(1));
        let (when, period) = match options.rotation {
            Rotation::Called => (When::Called, NEVER),
            Rotation::Aged(window) => {
                let nanos = window.as_nanos() as u64;
                (When::Aged(options.clock), nanos.div_ceil(generations as u64 - 1))
            }
            Rotation::Full => (When::Full(settings::estimate(share(expected_keys))), NEVER),
        };
        let settings = WindowSettings {
            when,
            period,
            generations,
            expected_keys,
            renew: options.renew,
        };
        // The end of the period, counted from the clock's zero, that it is now.
        let now = settings.now();
        let until = (now / period).saturating_add(1).saturating_mul(period);
        let first = Generation {
            expires: until.saturating_add(settings.window()),
            bloom: Arc::new(Filter::of(bloom, ())),
        };
        let list = List {
            generations: Vec::from([first]),
            begin: now,
            until,
        };
        Self::new(list, settings)
    }

    /// All keys come within one generation.
    #[inline]
    fn at_once(keys: usize) -> usize {
        keys.saturating_mul(WindowOptions::default().generations - 1)
    }
}

/// Rotations.
impl<S> Filter<Windowed, S> {
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
    /// let builder = lanebloom::WindowedBloom::builder().expected_keys(1000);
    /// let filter = builder.generations(3).build()?;
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
        self.engine.rotate();
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
    /// let builder = WindowedBloom::builder().expected_keys(1000);
    /// let filter = builder.window(Duration::from_millis(60)).build()?;
    /// filter.insert("a");
    /// std::thread::sleep(Duration::from_millis(100));
    /// assert!(filter.rotate_if_due());
    /// assert!(!filter.contains("a") && filter.live_generations().len() <= 1);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn rotate_if_due(&self) -> bool {
        self.engine.rotate_if_due()
    }

    /// The number of generations, once all are in use.
    ///
    /// ```
    /// let builder = lanebloom::WindowedBloom::builder().expected_keys(1000);
    /// assert_eq!(builder.generations(9).build()?.generations(), 9);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn generations(&self) -> usize {
        self.engine.settings.generations
    }

    /// For how long keys are visible at least, if they age: as asked, each generation rounded up to
    /// whole nanoseconds.
    ///
    /// ```
    /// let builder = lanebloom::WindowedBloom::builder().expected_keys(1000);
    /// assert_eq!(builder.clone().build()?.window(), None);
    /// let minute = std::time::Duration::from_secs(60);
    /// assert_eq!(builder.window(minute).build()?.window(), Some(minute));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn window(&self) -> Option<Duration> {
        self.engine.settings.duration()
    }

    /// The generations whose keys are visible, the newest first, for example to ask each how full
    /// it is. They have no hasher: look up by [`hash`](Filter::hash). The filter does not reuse a
    /// generation's memory while you hold it.
    ///
    /// ```
    /// use lanebloom::Hashed;
    ///
    /// let filter = lanebloom::WindowedBloom::builder().expected_keys(1000).build()?;
    /// filter.insert_batch(&["a", "b"]);
    /// filter.rotate();
    /// filter.insert("c");
    /// let live = filter.live_generations();
    /// let lens: Vec<usize> = live.iter().map(|one| one.statistics().len).collect();
    /// assert_eq!(lens, [1, 2]);
    /// assert!(live[1].contains(&Hashed(filter.hash("a"))));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn live_generations(&self) -> Vec<Arc<ConcurrentBloom<()>>> {
        self.engine.live()
    }
}
