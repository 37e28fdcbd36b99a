//! The limits of loads: the number that run at a time, the number that wait, and the time of each.

use crate::cache::error::{LoadError, LoadErrorKind};
use metrics::histogram;
use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::task::unconstrained;

/// The limits of a cache.
pub(super) struct Limits {
    /// The name of the cache, for the [`Timer`].
    pub(super) cache: Arc<str>,
    /// The time that a load may take, including its wait for a permit.
    pub(super) timeout: Option<Duration>,
    pub(super) permits: Option<Arc<LoadPermits>>,
}

impl Limits {
    /// A timer for a load that begins now.
    pub(super) fn timer(&self) -> Timer<'_> {
        Timer {
            cache: &self.cache,
            began: Instant::now(),
        }
    }

    /// A permit for a new load, which must [take](LoadPermit::take) it.
    pub(super) fn permit(&self) -> Option<Arc<LoadPermit>> {
        let permits = self.permits.as_ref()?;
        Some(Arc::new(LoadPermit {
            permits: Arc::clone(permits),
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }
}

/// Publishes the time of a load when it is dropped, however the load ends.
pub(super) struct Timer<'a> {
    cache: &'a Arc<str>,
    began: Instant,
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        histogram!("lanebloom_guard_load_seconds", "cache" => Arc::clone(self.cache)).record(self.began.elapsed());
    }
}

/// The permits of running loads, and of loads that wait for such a permit.
#[derive(Debug)]
pub(super) struct LoadPermits {
    running: Semaphore,
    waiting: Semaphore,
    refused: LoadError,
}

impl LoadPermits {
    pub(super) fn new(at_once: usize, waiting: usize) -> Self {
        let semaphore = |permits: usize| Semaphore::new(permits.min(Semaphore::MAX_PERMITS));
        Self {
            running: semaphore(at_once),
            waiting: semaphore(waiting),
            refused: LoadError(LoadErrorKind::Refused { at_once, waiting }),
        }
    }

    async fn acquire(&self) -> Result<SemaphorePermit<'_>, LoadError> {
        if let Ok(permit) = self.running.try_acquire() {
            return Ok(permit);
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| self.refused.clone())?;
        self.running.acquire().await.map_err(|_| self.refused.clone())
    }
}

/// A load's permit. While the load waits for other loads, it lends the permit. Otherwise loads that
/// hold all permits could wait forever for a load that has none.
///
/// The load's code runs only while the load has the permit, except for [`LoadPart::Uncounted`]. An
/// awaited load lends the permit between two polls. So it has the permit again before its code sees
/// that a wait is over, even if the code has dropped the get by then (a timeout, a `select`).
#[derive(Debug)]
pub(super) struct LoadPermit {
    permits: Arc<LoadPermits>,
    state: Mutex<LoadPermitState>,
    /// Notifies that another part of the load holds the permit, or that the load is over.
    changed: Notify,
}

/// A part of a load: its own task or thread, or one that it has [handed itself
/// to](crate::LoadScope).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadPart {
    /// A task.
    Awaited,
    /// A thread.
    Thread,
    /// The thread of a load that blocks, or a thread that has passed the load to others or awaits
    /// gets. It counts as waiting, since the cache cannot see whether it runs.
    Uncounted,
}

impl LoadPart {
    fn count(self) -> usize {
        usize::from(self != Self::Uncounted)
    }
}

#[derive(Debug, Default)]
struct LoadPermitState {
    is_held: bool,
    is_over: bool,
    /// The number of [counted](LoadPart::count) parts of the load that are running.
    running: usize,
    /// The number of the load's gets that are waiting: a load may join several.
    waits: usize,
}

impl LoadPermitState {
    /// Whether a part may go on: the load has its permit, or is over. An uncounted part also goes
    /// on while gets of the load wait, since it would keep the permit from them.
    fn lets_in(&self, part: LoadPart) -> bool {
        let is_lent = self.running == 0 && self.waits > 0;
        self.is_held || self.is_over || part == LoadPart::Uncounted && is_lent
    }
}

impl LoadPermit {
    /// Takes the permit for a load that begins. Dropping the returned value gives it back.
    pub(super) async fn take(&self) -> Result<Taken<'_>, LoadError> {
        self.permits.acquire().await?.forget();
        self.state().is_held = true;
        Ok(Taken(self))
    }

    /// Waits until the load has its permit. This is never refused, since the load has begun.
    pub(super) async fn enter(&self, part: LoadPart) {
        loop {
            // Created before the look, so that it notices every change from here on.
            let mut changed = pin!(self.changed.notified());
            {
                let mut state = self.state();
                if state.lets_in(part) {
                    state.running += part.count();
                    return;
                }
            }
            // Another part of the load may be first. Then there may never be a second permit.
            let mut permit = pin!(self.permits.running.acquire());
            let first = poll_fn(|context| match changed.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => permit.as_mut().poll(context).map(Result::ok),
            });
            if let Some(permit) = first.await {
                self.hold(permit, part);
            }
        }
    }

    /// Enters as [`enter`](Self::enter) does, but never waits, even if all permits are taken.
    fn enter_anyway(&self, part: LoadPart) {
        if let Ok(permit) = self.permits.running.try_acquire() {
            self.hold(permit, part);
        }
        self.state().running += part.count();
    }

    /// Keeps the permit, or drops it if the part does not need it any more.
    fn hold(&self, permit: SemaphorePermit<'_>, part: LoadPart) {
        let mut state = self.state();
        if !state.lets_in(part) {
            state.is_held = true;
            permit.forget();
            self.changed.notify_waiters();
        }
    }

    pub(super) fn leave(&self, part: LoadPart) {
        let mut state = self.state();
        state.running -= part.count();
        if state.running == 0 && state.waits > 0 {
            self.give_back(&mut state);
        }
    }

    /// Lends the permit while `part` waits. `blocks` means that the get blocks its thread.
    pub(super) fn lend(self: Arc<Self>, part: LoadPart, blocks: bool) -> Lent {
        self.state().waits += 1;
        let leaves = blocks || part != LoadPart::Awaited;
        if leaves {
            self.leave(part);
        }
        Lent {
            permit: self,
            waits: true,
            left: leaves.then_some(part),
        }
    }

    /// Runs a part of the load that is awaited.
    pub(super) async fn run<T>(&self, part: impl Future<Output = T>) -> T {
        let mut part = pin!(part);
        loop {
            self.enter(LoadPart::Awaited).await;
            let poll = poll_fn(|context| {
                let _running = Running(self);
                Poll::Ready(part.as_mut().poll(context))
            });
            if let Poll::Ready(output) = poll.await {
                return output;
            }
            let mut is_woken = false;
            poll_fn(|_| match mem::replace(&mut is_woken, true) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            })
            .await;
        }
    }

    /// Stops a part while it waits for another part that it calls.
    pub(super) fn pause(self: Arc<Self>, part: LoadPart) -> Lent {
        self.leave(part);
        Lent {
            permit: self,
            waits: false,
            left: Some(part),
        }
    }

    fn give_back(&self, state: &mut LoadPermitState) {
        if state.is_held {
            state.is_held = false;
            self.permits.running.add_permits(1);
        }
    }

    fn state(&self) -> MutexGuard<'_, LoadPermitState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A load that has taken its permit. It ends when this is dropped.
pub(super) struct Taken<'a>(&'a LoadPermit);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_over = true;
        self.0.changed.notify_waiters();
        self.0.give_back(&mut state);
    }
}

/// A running task of a load.
struct Running<'a>(&'a LoadPermit);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.leave(LoadPart::Awaited);
    }
}

/// A permit whose load waits.
pub(super) struct Lent {
    permit: Arc<LoadPermit>,
    waits: bool,
    /// The part that is stopped while it waits.
    left: Option<LoadPart>,
}

impl Lent {
    /// Ends the wait, and waits for the permit.
    pub(super) async fn end(mut self) {
        self.end_wait();
        if let Some(part) = self.left {
            self.permit.enter(part).await;
            self.left = None;
        }
    }

    fn end_wait(&mut self) {
        if mem::take(&mut self.waits) {
            self.permit.state().waits -= 1;
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.end_wait();
        if let Some(part) = self.left {
            // The thread unwinds, or it has dropped a get that it awaited by `block_on`.
            self.permit.enter_anyway(part);
        }
    }
}

/// Blocks the thread until `future` ends.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> T {
    block_on_for(future, None).expect("the wait has no timeout")
}

/// Blocks the thread until `future` ends, at most for `timeout`.
pub(super) fn block_on_for<T>(future: impl Future<Output = T>, timeout: Option<Duration>) -> Result<T, LoadError> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    // Unconstrained, since a task that has used up its budget would be pending until it returns to
    // its runtime.
    let mut future = pin!(unconstrained(future));
    let waker = Arc::new(Unpark(thread::current())).into();
    let mut context = Context::from_waker(&waker);
    let began = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
        match timeout {
            None => thread::park(),
            Some(timeout) => match timeout.checked_sub(began.elapsed()) {
                None | Some(Duration::ZERO) => return Err(LoadError(LoadErrorKind::TimedOut(timeout))),
                Some(left) => thread::park_timeout(left),
            },
        }
    }
}
