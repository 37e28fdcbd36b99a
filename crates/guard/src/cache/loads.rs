//! Notes which load waits for which, so that a load that would wait for itself ends with an error.
//!
//! A loader may get other keys: a row's parent, of the same cache or another. Its load then waits
//! for theirs. If waits form a circle, no load in it ends. So each wait of a load is noted here,
//! and one that would close a circle is refused. A get that is not part of a load is in no circle:
//! nobody waits for it. It notes nothing.
//!
//! A load that waits also lends its place among the loads that its cache allows at a time.
//!
//! A circle of loads of single keys is a row that needs itself. One with a load of many keys may be
//! none: the keys may do without each other.
//!
//! A load is known by its task, or its thread in the blocking mode. To a task or thread that the
//! loader starts, it must hand its [`LoadScope`].

use crate::cache::error::LoadError;
use crate::cache::limits::{Lent, Limits, Part, Place, block_on};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

tokio::task_local! {
    /// The innermost load that the code is part of.
    static PRESENT: Present;
}

/// A load, for its parts.
#[derive(Clone, Debug)]
struct Scope {
    load: Load,
    place: Option<Arc<Place>>,
}

impl Scope {
    async fn run<T>(self, part: impl Future<Output = T>) -> T {
        let place = self.place.clone();
        let part = PRESENT.scope(self.with(Part::Awaited), part);
        match place {
            None => part.await,
            Some(place) => place.run(part).await,
        }
    }

    fn run_blocking<T>(self, part: impl FnOnce() -> T) -> T {
        let place = self.place.clone();
        let present = self.with(Part::Thread);
        let Some(place) = place else {
            return PRESENT.sync_scope(present, part);
        };
        // The load's code around this call, if any, waits until it returns.
        let around = PRESENT.try_with(|around| around.is_in(&place).then(|| around.part.get()));
        let left = around.ok().flatten().map(|around| Arc::clone(&place).pause(around));
        // Without a timeout, so these cannot fail.
        let _ = block_on(place.enter(Part::Thread), None);
        let output = PRESENT.sync_scope(present, || {
            let _running = InThread(&place);
            part()
        });
        let _ = left.map(|left| block_on(left.end(), None));
        output
    }

    fn with(self, part: Part) -> Present {
        Present {
            scope: self,
            part: Cell::new(part),
        }
    }
}

/// A part of a load, in its task or thread.
#[derive(Debug)]
struct Present {
    scope: Scope,
    part: Cell<Part>,
}

impl Present {
    fn is_in(&self, place: &Arc<Place>) -> bool {
        self.scope.place.as_ref().is_some_and(|other| Arc::ptr_eq(other, place))
    }

    /// From now on, this part waits for others, as far as can be seen.
    fn hand_over(&self) {
        if self.part.get() == Part::Thread {
            self.part.set(Part::Uncounted);
            if let Some(place) = &self.scope.place {
                place.leave(Part::Thread);
            }
        }
    }
}

/// A part of a load that runs in this thread.
struct InThread<'a>(&'a Place);

impl Drop for InThread<'_> {
    fn drop(&mut self) {
        self.0.leave(PRESENT.with(|present| present.part.get()));
    }
}

/// The load that the calling code is part of, if any, to hand to a task or a thread that the loader
/// starts and waits for.
///
/// The caches know a load by its task or its thread. In another one, a get within
/// [`scope`](Self::scope) or [`sync_scope`](Self::sync_scope) is part of the load. Without them, a
/// row that needs itself waits for itself, and the load keeps its place of the
/// [`load_limit`](crate::Builder::load_limit) while it waits, until the
/// [`load_timeout`](crate::Builder::load_timeout).
///
/// A thread that takes its scope, or awaits a get by a `block_on`, counts as waiting from then on:
/// a get of another part may lend the place. Code that blocks its task until a get has ended, as by
/// `block_in_place`, needs a [`sync_scope`](Self::sync_scope) around that.
///
/// ```
/// use lanebloom_guard::{BoxError, LoadScope, future::GuardedCache};
/// use std::sync::OnceLock;
/// use std::time::Duration;
///
/// static CACHE: OnceLock<GuardedCache<u64, u64>> = OnceLock::new();
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// // The row of each key above 1 needs that of the key before.
/// async fn read(id: u64) -> Result<Option<u64>, BoxError> {
///     if id == 1 {
///         return Ok(Some(1));
///     }
///     let parent = async move { CACHE.get().unwrap().get(&(id - 1)).await };
///     let parent = tokio::spawn(LoadScope::current().scope(parent)).await??;
///     Ok(parent.map(|sum| sum + id))
/// }
/// let cache = GuardedCache::<u64, u64>::builder()
///     .load_limit(1, 100)
///     .load_timeout(Duration::from_secs(5))
///     .build(read)?;
/// let cache = CACHE.get_or_init(|| cache);
/// cache.insert_batch(&[1, 2, 3]);
/// assert_eq!(cache.get(&3).await?, Some(6));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct LoadScope(Option<Scope>);

impl LoadScope {
    /// The load of this task or thread. Outside of a load, the scopes do nothing.
    pub fn current() -> Self {
        let hand_over = |present: &Present| {
            present.hand_over();
            present.scope.clone()
        };
        Self(PRESENT.try_with(hand_over).ok())
    }

    /// Runs a future as part of the load: in a task that the loader spawns, say.
    pub async fn scope<T>(self, part: impl Future<Output = T>) -> T {
        match self.0 {
            None => part.await,
            Some(scope) => scope.run(part).await,
        }
    }

    /// Runs a closure as part of the load, in this thread: one of `spawn_blocking`, say.
    ///
    /// ```
    /// use lanebloom_guard::{BoxError, LoadScope, sync::GuardedCache};
    /// use std::sync::OnceLock;
    /// use std::thread;
    ///
    /// static CACHE: OnceLock<GuardedCache<u64, u64>> = OnceLock::new();
    /// // Each row needs the other one, 1 or 2: without the scope it would never end.
    /// let read = |id: u64| {
    ///     let load = LoadScope::current();
    ///     let other = || CACHE.get().unwrap().get(&(3 - id));
    ///     thread::scope(|threads| {
    ///         threads.spawn(|| load.sync_scope(other)).join().unwrap()
    ///     })
    /// };
    /// let cache = GuardedCache::<u64, u64>::builder().build_blocking(read)?;
    /// let cache = CACHE.get_or_init(|| cache);
    /// cache.insert_batch(&[1, 2]);
    /// assert!(cache.get(&1).is_err());
    /// # Ok::<(), BoxError>(())
    /// ```
    pub fn sync_scope<T>(self, part: impl FnOnce() -> T) -> T {
        match self.0 {
            None => part(),
            Some(scope) => scope.run_blocking(part),
        }
    }
}

/// The loads that each load waits for now.
static WAITS: Mutex<Waits> = Mutex::new(BTreeMap::new());

type Waits = BTreeMap<Load, Vec<Load>>;

/// One call of a loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load(u64);

impl Load {
    pub(super) fn of_one() -> Self {
        // `Relaxed`: only that no two are equal matters.
        static NEXT: AtomicU64 = AtomicU64::new(2);
        Self(NEXT.fetch_add(2, Ordering::Relaxed))
    }

    /// A call of `load_many`.
    pub(super) fn of_many() -> Self {
        Self(Self::of_one().0 | 1)
    }

    fn is_of_many(self) -> bool {
        self.0 & 1 == 1
    }

    /// Not 0.
    pub(super) fn id(self) -> u64 {
        self.0
    }

    pub(super) fn from_id(id: u64) -> Self {
        Self(id)
    }

    /// Runs a load once it has a place. After the timeout, `load` is dropped.
    pub(super) async fn run<T>(
        self,
        limits: &Limits,
        load: impl Future<Output = Result<T, LoadError>>,
    ) -> Result<T, LoadError> {
        let scope = self.scope(limits);
        let run = async {
            let place = scope.place.clone();
            let _taken = match &place {
                None => None,
                Some(place) => Some(place.take().await?),
            };
            let _timer = limits.timer();
            scope.run(load).await
        };
        match limits.timeout {
            None => run.await,
            Some(timeout) => tokio::time::timeout(timeout, run)
                .await
                .unwrap_or_else(|_| Err(LoadError::timed_out(timeout))),
        }
    }

    /// Runs a load in this thread once it has a place. The timeout ends only the wait for that.
    pub(super) fn run_blocking<T>(
        self,
        limits: &Limits,
        load: impl FnOnce() -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let scope = self.scope(limits);
        let place = scope.place.clone();
        let _taken = match &place {
            None => None,
            Some(place) => Some(block_on(place.take(), limits.timeout)??),
        };
        let _timer = limits.timer();
        PRESENT.sync_scope(scope.with(Part::Uncounted), load)
    }

    fn scope(self, limits: &Limits) -> Scope {
        Scope {
            load: self,
            place: limits.place(),
        }
    }

    /// Notes that the load that calls this waits for `self`, until the answer is dropped. Fails if
    /// it would wait for itself.
    pub(super) fn awaited(self) -> Result<Wait, Circle> {
        self.awaited_by(false)
    }

    /// [`awaited`](Self::awaited) by a get that blocks its thread.
    pub(super) fn awaited_blocking(self) -> Result<Wait, Circle> {
        self.awaited_by(true)
    }

    fn awaited_by(self, blocks: bool) -> Result<Wait, Circle> {
        let present = PRESENT.try_with(|present| {
            if !blocks {
                // A thread may await several gets.
                present.hand_over();
            }
            (present.scope.clone(), present.part.get())
        });
        let Ok((by, part)) = present else {
            return Ok(Wait {
                noted: None,
                lent: None,
            });
        };
        let mut waits = waits();
        if leads(&waits, self, by.load, |_| true) {
            return Err(match leads(&waits, self, by.load, |load| !load.is_of_many()) {
                true => Circle::OfRows,
                false => Circle::OfBatches,
            });
        }
        waits.entry(by.load).or_default().push(self);
        Ok(Wait {
            noted: Some((by.load, self)),
            lent: by.place.map(|place| place.lend(part, blocks)),
        })
    }
}

/// Loads that would wait for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Circle {
    /// Each loads one key: a row needs itself.
    OfRows,
    /// One of them loads many keys, and those may do without each other.
    OfBatches,
}

/// Whether `from` waits for `to`, by any number of steps, all of them loads that `through` takes.
fn leads(waits: &Waits, from: Load, to: Load, through: impl Fn(Load) -> bool) -> bool {
    let (mut seen, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(load) = next.pop() {
        if through(load) && seen.insert(load) {
            if load == to {
                return true;
            }
            next.extend(waits.get(&load).into_iter().flatten());
        }
    }
    false
}

/// A load's wait for another.
pub(super) struct Wait {
    noted: Option<(Load, Load)>,
    lent: Option<Lent>,
}

impl Wait {
    /// Ends the wait. The load goes on once it has its place again.
    pub(super) async fn end(mut self) {
        let lent = self.lent.take();
        drop(self);
        if let Some(lent) = lent {
            lent.end().await;
        }
    }

    /// [`end`](Self::end), in the load's thread.
    pub(super) fn end_blocking(self) {
        // Without a timeout, so it cannot fail.
        let _ = block_on(self.end(), None);
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        let Some((by, load)) = self.noted else { return };
        let mut waits = waits();
        let of_this = waits.get_mut(&by).expect("noted");
        of_this.swap_remove(of_this.iter().position(|awaited| *awaited == load).expect("noted"));
        if of_this.is_empty() {
            waits.remove(&by);
        }
    }
}

fn waits() -> MutexGuard<'static, Waits> {
    WAITS.lock().unwrap_or_else(PoisonError::into_inner)
}
