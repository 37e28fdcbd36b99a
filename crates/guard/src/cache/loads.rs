//! Records which load waits for which, so that a load that would wait for itself fails.
//!
//! A loader may get other keys: a row's parent, of the same cache or another. Its load then waits
//! for their loads. If waits form a cycle, no load in it ends. So each wait of a load is recorded
//! here, and a wait that would close a cycle fails. A get outside of loads records nothing, since
//! no load waits for it. A load that waits also lends its permit among the loads that its cache
//! allows at a time.
//!
//! A cycle of loads of single keys is a row that needs itself. A cycle with a load of many keys may
//! be harmless: those keys may not need each other.
//!
//! A load is identified by its task, or by its thread in the blocking mode. A loader passes its
//! [`LoadScope`] to a task or thread that it starts.

use crate::cache::error::{LoadError, LoadErrorKind};
use crate::cache::limits::{Lent, Limits, LoadPart, LoadPermit, block_on, block_on_for};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

tokio::task_local! {
    /// The innermost load of which the running code is a part.
    static CURRENT: CurrentPart;
}

/// A load, for its parts.
#[derive(Clone, Debug)]
struct Scope {
    load: Load,
    permit: Option<Arc<LoadPermit>>,
}

impl Scope {
    async fn run<T>(self, part: impl Future<Output = T>) -> T {
        let permit = self.permit.clone();
        let part = CURRENT.scope(self.with(LoadPart::Awaited), part);
        match permit {
            None => part.await,
            Some(permit) => permit.run(part).await,
        }
    }

    fn run_blocking<T>(self, part: impl FnOnce() -> T) -> T {
        let permit = self.permit.clone();
        let current = self.with(LoadPart::Thread);
        let Some(permit) = permit else {
            return CURRENT.sync_scope(current, part);
        };
        // If code of the load calls this, it waits until this returns.
        let around = CURRENT.try_with(|around| around.is_in(&permit).then(|| around.part.get()));
        let left = around.ok().flatten().map(|around| Arc::clone(&permit).pause(around));
        block_on(permit.enter(LoadPart::Thread));
        let output = CURRENT.sync_scope(current, || {
            let _running = InThread(&permit);
            part()
        });
        if let Some(left) = left {
            block_on(left.end());
        }
        output
    }

    fn with(self, part: LoadPart) -> CurrentPart {
        CurrentPart {
            scope: self,
            part: Cell::new(part),
        }
    }
}

/// A part of a load, in its task or thread.
#[derive(Debug)]
struct CurrentPart {
    scope: Scope,
    part: Cell<LoadPart>,
}

impl CurrentPart {
    fn is_in(&self, permit: &Arc<LoadPermit>) -> bool {
        self.scope
            .permit
            .as_ref()
            .is_some_and(|other| Arc::ptr_eq(other, permit))
    }

    /// From now on, this part counts as waiting for others.
    fn hand_over(&self) {
        if self.part.get() == LoadPart::Thread {
            self.part.set(LoadPart::Uncounted);
            if let Some(permit) = &self.scope.permit {
                permit.leave(LoadPart::Thread);
            }
        }
    }
}

/// A part of a load that runs in this thread.
struct InThread<'a>(&'a LoadPermit);

impl Drop for InThread<'_> {
    fn drop(&mut self) {
        self.0.leave(CURRENT.with(|current| current.part.get()));
    }
}

/// The load of which the calling code is a part, if any. A loader passes it to a task or a thread
/// that it starts and waits for.
///
/// In another task or thread, only a get within [`scope`](Self::scope) or
/// [`sync_scope`](Self::sync_scope) is [part of the load](crate#loaders-that-get-other-keys).
///
/// A thread that calls [`current`](Self::current), or awaits a get by a `block_on`, counts as
/// waiting from then on: a get of another part may lend the permit. Code that blocks its task until
/// a get has ended, by `block_in_place` for example, needs a [`sync_scope`](Self::sync_scope)
/// around the get.
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
/// // The row of each key above 1 needs the row of the key before.
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
        let hand_over = |current: &CurrentPart| {
            current.hand_over();
            current.scope.clone()
        };
        Self(CURRENT.try_with(hand_over).ok())
    }

    /// Runs a future as part of the load, for example in a task that the loader spawns.
    pub async fn scope<T>(self, part: impl Future<Output = T>) -> T {
        match self.0 {
            None => part.await,
            Some(scope) => scope.run(part).await,
        }
    }

    /// Runs a closure in this thread as part of the load, for example in `spawn_blocking`.
    ///
    /// ```
    /// use lanebloom_guard::{BoxError, LoadScope, sync::GuardedCache};
    /// use std::sync::OnceLock;
    /// use std::thread;
    ///
    /// static CACHE: OnceLock<GuardedCache<u64, u64>> = OnceLock::new();
    /// // Each row, 1 or 2, needs the other: without the scope, no get would end.
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

/// The loads for which each load is waiting.
static WAITS: Mutex<Waits> = Mutex::new(BTreeMap::new());

type Waits = BTreeMap<Load, Vec<Load>>;

/// One call of a loader, by its number: not 0. The lowest bits are [`OF_MANY`] and [`OF_WAITER`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load(pub(super) u64);

/// A call of `load_many`.
const OF_MANY: u64 = 1;
/// A call by a thread that is within another load of the same key.
const OF_WAITER: u64 = 2;

impl Load {
    pub(super) fn of_one() -> Self {
        // `Relaxed`: the numbers must only be distinct.
        static NEXT: AtomicU64 = AtomicU64::new(4);
        Self(NEXT.fetch_add(4, Ordering::Relaxed))
    }

    pub(super) fn of_many() -> Self {
        Self(Self::of_one().0 | OF_MANY)
    }

    pub(super) fn of_waiter() -> Self {
        Self(Self::of_one().0 | OF_WAITER)
    }

    fn is_of_many(self) -> bool {
        self.0 & OF_MANY != 0
    }

    fn is_of_waiter(self) -> bool {
        self.0 & OF_WAITER != 0
    }

    /// Runs a load once it has a permit. The timeout drops `load`.
    pub(super) async fn run<T>(
        self,
        limits: &Limits,
        load: impl Future<Output = Result<T, LoadError>>,
    ) -> Result<T, LoadError> {
        let scope = self.scope(limits);
        let run = async {
            let permit = scope.permit.clone();
            let _taken = match &permit {
                None => None,
                Some(permit) => Some(permit.take().await?),
            };
            let _timer = limits.timer();
            scope.run(load).await
        };
        match limits.timeout {
            None => run.await,
            Some(timeout) => tokio::time::timeout(timeout, run)
                .await
                .unwrap_or_else(|_| Err(LoadError(LoadErrorKind::TimedOut(timeout)))),
        }
    }

    /// Runs a load in this thread once it has a permit. The timeout ends only the wait for the
    /// permit.
    pub(super) fn run_blocking<T>(
        self,
        limits: &Limits,
        load: impl FnOnce() -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let scope = self.scope(limits);
        let permit = scope.permit.clone();
        let _taken = match &permit {
            None => None,
            Some(permit) => Some(block_on_for(permit.take(), limits.timeout)??),
        };
        let _timer = limits.timer();
        CURRENT.sync_scope(scope.with(LoadPart::Uncounted), load)
    }

    fn scope(self, limits: &Limits) -> Scope {
        Scope {
            load: self,
            permit: limits.permit(),
        }
    }

    /// Records that the calling load waits for `self`, until the returned value is dropped.
    /// `blocks` means that the get blocks its thread. Fails if the calling load would wait for
    /// itself.
    pub(super) fn awaited(self, blocks: bool) -> Result<Wait, Cycle> {
        let current = CURRENT.try_with(|current| {
            if !blocks {
                // A thread may await several gets.
                current.hand_over();
            }
            (current.scope.clone(), current.part.get())
        });
        let Ok((by, part)) = current else {
            return Ok(Wait::default());
        };
        // Not a thread of a `sync_scope`, which the loader has started for this.
        let is_own_thread = blocks && part == LoadPart::Uncounted;
        let mut waits = waits();
        if leads(&waits, self, by.load, |_| true) {
            return Err(match leads(&waits, self, by.load, |load| !load.is_of_many()) {
                true if self == by.load && is_own_thread && !self.is_of_waiter() => Cycle::SameThread,
                true => Cycle::Rows { blocks },
                false => Cycle::Batches,
            });
        }
        waits.entry(by.load).or_default().push(self);
        Ok(Wait {
            noted: Some((by.load, self)),
            lent: by.permit.map(|permit| permit.lend(part, blocks)),
        })
    }
}

/// A cycle of loads that would wait for each other.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cycle {
    /// Each loads one key: a row needs itself. Where gets `block`, a thread may also run a get of
    /// other code while its load waits.
    Rows { blocks: bool },
    /// One of them loads many keys, which may not need each other.
    Batches,
    /// The thread is within the load: its loader gets its own key, or the thread runs other code
    /// while the loader waits, as rayon's do. That code may need the key, and cannot wait for what
    /// is below it on the stack.
    SameThread,
}

/// Whether `from` waits for `to`, in any number of steps, all through loads that `through` accepts.
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

/// A load's wait for another; of a get outside of loads, nothing.
#[derive(Default)]
pub(super) struct Wait {
    noted: Option<(Load, Load)>,
    lent: Option<Lent>,
}

impl Wait {
    /// Ends the wait. The load continues once it has its permit again.
    pub(super) async fn end(mut self) {
        let lent = self.lent.take();
        drop(self);
        if let Some(lent) = lent {
            lent.end().await;
        }
    }

    /// [`end`](Self::end) in the load's thread.
    pub(super) fn end_blocking(self) {
        block_on(self.end());
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
