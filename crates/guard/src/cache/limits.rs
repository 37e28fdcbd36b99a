//! The limits of loads: how many run at a time, how many wait for that, and how long one may take.

use crate::cache::error::LoadError;
use metrics::histogram;
use std::future::poll_fn;
use std::mem;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// The time that a load may take, with its wait for a place.
    pub(super) timeout: Option<Duration>,
    pub(super) places: Option<Arc<Places>>,
}

impl Limits {
    /// For a load that begins now.
    pub(super) fn timer(&self) -> Timer<'_> {
        Timer {
            cache: &self.cache,
            began: Instant::now(),
        }
    }

    /// For a new load, which has yet to [take](Place::take) it.
    pub(super) fn place(&self) -> Option<Arc<Place>> {
        let places = self.places.as_ref()?;
        Some(Arc::new(Place {
            places: Arc::clone(places),
            state: Mutex::default(),
            changed: Notify::new(),
        }))
    }
}

/// Publishes how long a load took, when it is dropped: however the load ends.
pub(super) struct Timer<'a> {
    cache: &'a Arc<str>,
    began: Instant,
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        histogram!("lanebloom_guard_load_seconds", "cache" => Arc::clone(self.cache)).record(self.began.elapsed());
    }
}

/// The places of loads that run, and of those that wait for one.
#[derive(Debug)]
pub(super) struct Places {
    free: Semaphore,
    count: usize,
    waiting: AtomicUsize,
    most_waiting: usize,
}

impl Places {
    pub(super) fn new(count: usize, most_waiting: usize) -> Self {
        let count = count.min(Semaphore::MAX_PERMITS);
        Self {
            free: Semaphore::new(count),
            count,
            waiting: AtomicUsize::new(0),
            most_waiting,
        }
    }

    async fn acquire(&self) -> Result<SemaphorePermit<'_>, LoadError> {
        if let Ok(permit) = self.free.try_acquire() {
            return Ok(permit);
        }
        let refused = || LoadError::refused(self.count, self.most_waiting);
        let _waiting = self.wait().ok_or_else(refused)?;
        self.free.acquire().await.map_err(|_| refused())
    }

    /// `None` if too many wait already.
    fn wait(&self) -> Option<Waiting<'_>> {
        // `Relaxed`: only a count.
        let one_more = |waiting| (waiting < self.most_waiting).then(|| waiting + 1);
        let counted = self
            .waiting
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        counted.ok().map(|_| Waiting(&self.waiting))
    }
}

struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A load's place. While the load waits for others, it lends the place: otherwise loads that hold
/// all places could wait for one that has none, for ever.
///
/// The load's code runs only while the load has the place, but for [`Part::Uncounted`]. A load that
/// is awaited lends the place between two polls, so that it has the place again before its code
/// sees that a wait is over, also if the code has dropped the get by then (a timeout, a `select`).
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    state: Mutex<State>,
    /// Another part of the load holds the place now, or the load is over.
    changed: Notify,
}

/// A part of a load: its own task or thread, or one that it has [handed itself
/// to](crate::LoadScope).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A task.
    Awaited,
    /// A thread.
    Thread,
    /// The thread of a load that blocks, and a thread that has handed the load to others, or awaits
    /// gets: it waits for others, as far as can be seen.
    Uncounted,
}

impl Part {
    fn count(self) -> usize {
        usize::from(self != Self::Uncounted)
    }
}

#[derive(Debug, Default)]
struct State {
    is_held: bool,
    is_over: bool,
    /// [Counted](Part::count) parts of the load that run now.
    running: usize,
    /// Gets of the load that wait now; it may join several.
    waits: usize,
}

impl State {
    /// Whether a part may go on: the load has its place, or is over. A part that does not count
    /// goes on while gets of the load wait: it would keep the place from them.
    fn lets_in(&self, part: Part) -> bool {
        let is_lent = self.running == 0 && self.waits > 0;
        self.is_held || self.is_over || part == Part::Uncounted && is_lent
    }
}

impl Place {
    /// Takes the place for a load that begins. It is given back when the answer is dropped.
    pub(super) async fn take(&self) -> Result<Taken<'_>, LoadError> {
        self.places.acquire().await?.forget();
        self.state().is_held = true;
        Ok(Taken(self))
    }

    /// Waits until the load has its place. Never refused: the load has begun.
    pub(super) async fn enter(&self, part: Part) {
        loop {
            // Made before the look: it hears of every change from here on.
            let mut changed = pin!(self.changed.notified());
            {
                let mut state = self.state();
                if state.lets_in(part) {
                    state.running += part.count();
                    return;
                }
            }
            // Another part of the load may be first: then there may never be a second permit.
            let mut permit = pin!(self.places.free.acquire());
            let first = poll_fn(|context| match changed.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => permit.as_mut().poll(context).map(Result::ok),
            });
            if let Some(permit) = first.await {
                self.hold(permit, part);
            }
        }
    }

    /// Does not wait, also if there is no place.
    fn enter_anyway(&self, part: Part) {
        if let Ok(permit) = self.places.free.try_acquire() {
            self.hold(permit, part);
        }
        self.state().running += part.count();
    }

    /// Drops the permit if the part does not need it any more.
    fn hold(&self, permit: SemaphorePermit<'_>, part: Part) {
        let mut state = self.state();
        if !state.lets_in(part) {
            state.is_held = true;
            permit.forget();
            self.changed.notify_waiters();
        }
    }

    pub(super) fn leave(&self, part: Part) {
        let mut state = self.state();
        state.running -= part.count();
        if state.running == 0 && state.waits > 0 {
            self.give_back(&mut state);
        }
    }

    /// For the length of a wait of `part`. `blocks` says that the get blocks its thread.
    pub(super) fn lend(self: Arc<Self>, part: Part, blocks: bool) -> Lent {
        self.state().waits += 1;
        let leaves = blocks || part != Part::Awaited;
        if leaves {
            self.leave(part);
        }
        Lent {
            place: self,
            waits: true,
            left: leaves.then_some(part),
        }
    }

    /// Runs a part of the load that is awaited.
    pub(super) async fn run<T>(&self, part: impl Future<Output = T>) -> T {
        let mut part = pin!(part);
        loop {
            self.enter(Part::Awaited).await;
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

    /// For a part that waits for another one which it calls.
    pub(super) fn pause(self: Arc<Self>, part: Part) -> Lent {
        self.leave(part);
        Lent {
            place: self,
            waits: false,
            left: Some(part),
        }
    }

    fn give_back(&self, state: &mut State) {
        if state.is_held {
            state.is_held = false;
            self.places.free.add_permits(1);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A load that has had a place, until it is over.
pub(super) struct Taken<'a>(&'a Place);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.is_over = true;
        self.0.changed.notify_waiters();
        self.0.give_back(&mut state);
    }
}

/// A task of a load that runs.
struct Running<'a>(&'a Place);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.leave(Part::Awaited);
    }
}

/// A place whose load waits.
pub(super) struct Lent {
    place: Arc<Place>,
    waits: bool,
    /// The part that does not run while it waits.
    left: Option<Part>,
}

impl Lent {
    /// Ends the wait, and waits for the place.
    pub(super) async fn end(mut self) {
        self.end_wait();
        if let Some(part) = self.left {
            self.place.enter(part).await;
            self.left = None;
        }
    }

    fn end_wait(&mut self) {
        if mem::take(&mut self.waits) {
            self.place.state().waits -= 1;
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.end_wait();
        if let Some(part) = self.left {
            // A thread that unwinds, or that has dropped a get which it awaited by `block_on`.
            self.place.enter_anyway(part);
        }
    }
}

/// Blocks the thread until `future` has ended, or `timeout` is over.
pub(super) fn block_on<T>(future: impl Future<Output = T>, timeout: Option<Duration>) -> Result<T, LoadError> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    // A task that has used up its budget would be pending until it returns to its runtime.
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
                None | Some(Duration::ZERO) => return Err(LoadError::timed_out(timeout)),
                Some(left) => thread::park_timeout(left),
            },
        }
    }
}
