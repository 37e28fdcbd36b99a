//! The limits of loads: how many run at a time, how many wait for that, and how long one may take.

use crate::cache::error::LoadError;
use metrics::histogram;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit};
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
pub(super) struct Place {
    places: Arc<Places>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_held: bool,
    /// Gets of the load that wait now; it may join several.
    waits: usize,
}

impl Place {
    pub(super) async fn take(&self) -> Result<(), LoadError> {
        self.places.acquire().await?.forget();
        self.state().is_held = true;
        Ok(())
    }

    /// For the length of a wait.
    pub(super) fn lend(self: Arc<Self>) -> Lent {
        let mut state = self.state();
        state.waits += 1;
        self.give_back(&mut state);
        drop(state);
        Lent(self)
    }

    /// Waits for a place again, unless another get of the load still waits. Never refused: the load
    /// has begun.
    pub(super) async fn resume(&self) {
        let is_needed = |state: &State| state.waits == 0 && !state.is_held;
        if !is_needed(&self.state()) {
            return;
        }
        if let Ok(permit) = self.places.free.acquire().await {
            let mut state = self.state();
            // Meanwhile another get of the load may have begun to wait: the permit goes back then.
            if is_needed(&state) {
                state.is_held = true;
                permit.forget();
            }
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

impl Drop for Place {
    fn drop(&mut self) {
        self.give_back(&mut self.state());
    }
}

/// A place whose load waits.
pub(super) struct Lent(Arc<Place>);

impl Lent {
    /// Ends the wait. Then the load has to [resume](Place::resume).
    pub(super) fn end(self) -> Arc<Place> {
        Arc::clone(&self.0)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.0.state().waits -= 1;
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
