//! The thread of a node. It brings its side of a set and the server together from time to time. The
//! file also holds the messages between the thread and the node's owners.
//! [`SharedBloom`](super::SharedBloom) and `SharedWindow` start it, each with its own [`Side`].
//!
//! # How it ends
//!
//! A node may be dropped anywhere, for example in a request thread that was the last to read from a
//! guard's old filter. So a drop only tells the thread to end, and waits for nothing. The thread
//! finishes its current round trip. If the last attempt succeeded, it pushes once more what is
//! left. Then it ends. Each of these takes a timeout at most: the round trip, a new connection, a
//! last round trip that began within the timeout of the push.

use super::wire::Wire;
use crate::redis::error::{SharedError, SharedErrorKind};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use core::any::Any;
use core::hash::BuildHasher;
use core::panic::AssertUnwindSafe;
use core::time::Duration;
use redis::{Client, ConnectionLike};
use std::hash::RandomState;
use std::panic;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

/// The first pause after a failure; every further one is twice as long, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(3);
/// The thread rests so many times as long as it has compared.
const REST: u32 = 4;

/// What a node has of a set.
pub(super) trait Side: Send {
    /// What is to be done before an exchange, whether the server is there or not.
    fn prepare(&mut self) -> Result<(), SharedError>;

    /// Pushes what is here and the server lacks, and pulls what it has more. Once this is `Ok`,
    /// what was here before is on the server, and what was on the server before is here.
    ///
    /// Ends early, with an error, once `ended` says so.
    fn pass(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError>;

    /// Forgets what is known of the server, so that the next pass begins anew: a pass panicked, and
    /// may have left anything half done.
    fn forget(&mut self);

    /// Bytes that the replies of a round trip have at most.
    fn most_bytes(&self) -> usize;

    /// What was done so far.
    fn counts(&self) -> Counts;
}

/// So many passes of a side, as its thread makes them, whatever becomes of each; what became of the
/// last.
pub(super) fn passes(mut side: impl Side, server: &mut dyn ConnectionLike, passes: usize) -> Result<(), SharedError> {
    let pass = |_| side.prepare().and_then(|()| side.pass(server, &|| false));
    (0..passes).map(pass).last().unwrap_or(Ok(()))
}

/// What the side of a node has done.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) resyncs: u64,
    pub(super) pushed_bytes: u64,
    pub(super) pulled_bytes: u64,
    /// How long the last comparison with what was pushed took.
    pub(super) comparing: Duration,
}

#[cfg(feature = "window")]
impl Counts {
    /// Adds what another side has done, but not how long its last comparison took.
    pub(super) fn add(&mut self, other: Self) {
        self.resyncs += other.resyncs;
        self.pushed_bytes += other.pushed_bytes;
        self.pulled_bytes += other.pulled_bytes;
    }
}

/// Dropped, it tells its thread to push what is left and to end.
pub(super) struct Node(Arc<Control>);

impl Node {
    /// Brings `side` and the server together, and starts the thread that keeps them so.
    pub(super) fn start(
        server: Client,
        side: Box<dyn Side>,
        interval: Duration,
        timeout: Duration,
    ) -> Result<Self, SharedError> {
        let mut worker = Worker {
            side,
            server,
            connection: None,
            interval,
            // A timeout of zero is none, for sockets; and instants do not reach to the end of all
            // durations.
            timeout: timeout.clamp(Duration::from_millis(1), Duration::from_secs(3600)),
            random: RandomState::new(),
        };
        let control = Arc::new(Control::new());
        let began = Instant::now();
        worker.pass(&|| false)?;
        control.report(0, began, worker.side.counts(), None);
        let its_control = Arc::clone(&control);
        thread::Builder::new()
            .name("lanebloom-shared".into())
            .spawn(move || {
                // After the worker is gone, and with it its filter and its connection.
                let _end = AtEnd(&its_control);
                worker.run(&its_control);
            })
            .map_err(|error| SharedErrorKind::Thread(Arc::new(error)))?;
        Ok(Self(control))
    }

    pub(super) fn sync(&self, timeout: Duration) -> Result<(), SharedError> {
        self.0.sync(timeout)
    }

    /// [`sync`](Self::sync), and then waits until the thread is gone.
    pub(super) fn close(self, timeout: Duration) -> Result<(), SharedError> {
        let began = Instant::now();
        self.0.sync(timeout)?;
        self.0.end(true);
        let left = timeout.saturating_sub(began.elapsed());
        let (state, _) = self
            .0
            .reported
            .wait_timeout_while(self.0.lock(), left, |state| !state.gone)
            .unwrap_or_else(PoisonError::into_inner);
        if state.gone {
            return Ok(());
        }
        let last = state.error.clone();
        Err(SharedErrorKind::Timeout { after: timeout, last }.into())
    }

    pub(super) fn stats(&self) -> SharedStats {
        let state = self.0.lock();
        SharedStats {
            passes: state.passes,
            failures: state.failures,
            resyncs: state.counts.resyncs,
            pushed_bytes: state.counts.pushed_bytes,
            pulled_bytes: state.counts.pulled_bytes,
            lag: state.current.elapsed(),
            last_error: state.error.clone(),
        }
    }
}

/// What a [`SharedBloom`](super::SharedBloom) or [`SharedWindow`](super::SharedWindow) has done,
/// and how the last attempt went.
///
/// # Examples
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/redis_server/server.rs"));
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let Some(redis) = Server::of("an example of SharedStats").start() else { return Ok(()) };
/// # let server = redis.client();
/// use lanebloom::{ConcurrentBloom, redis::SharedBloom};
/// use std::time::Duration;
///
/// let shared = SharedBloom::builder("ids").connect(server, ConcurrentBloom::builder().expected_keys(1000).build()?)?;
/// shared.sync(Duration::from_secs(30))?;
/// // Whether what this node has not heard of yet can be told from what does not exist.
/// assert!(shared.stats().lag < Duration::from_secs(5));
///
/// shared.insert("a");
/// let before = shared.stats().pushed_bytes;
/// shared.sync(Duration::from_secs(30))?;
/// let sent = shared.stats().pushed_bytes - before;
/// assert!((8..=18).contains(&sent)); // a chunk's number, how many bits, up to 6 bits of 2 bytes
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SharedStats {
    /// Exchanges with the server that succeeded, the first by `connect`.
    pub passes: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// How often chunks were compared and fetched: once to begin with, then where the server's log
    /// did not reach back far enough, or the server had lost something.
    pub resyncs: u64,
    /// Bytes of the keys added here, as sent; without what Redis's protocol adds.
    pub pushed_bytes: u64,
    /// Bytes of the keys that others added, as received.
    pub pulled_bytes: u64,
    /// How long ago the last successful exchange began. Keys that were here before that are on the
    /// server, and keys that were there are here.
    pub lag: Duration,
    /// Why the last attempt failed, if it did. A panic in the caller's code also counts: the clock
    /// of a window, or a clone of the hasher. The thread goes on in any case.
    pub last_error: Option<SharedError>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.0.end(false);
    }
}

/// Says that the thread is gone, however it went.
struct AtEnd<'a>(&'a Control);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.lock().gone = true;
        self.0.reported.notify_all();
    }
}

/// What the thread and its owners tell each other. The lock is held to read and to write the state,
/// and while nothing else is done.
struct Control {
    state: Mutex<State>,
    /// For the thread: somebody asked for a pass, or for the end.
    asked: Condvar,
    /// For those who wait in `sync` and `close`.
    reported: Condvar,
}

struct State {
    /// Calls of `sync` so far.
    asked: u64,
    /// The calls before the last pass that ended; that succeeded.
    attempted: u64,
    succeeded: u64,
    ended: bool,
    /// Nothing is left to be pushed at the end.
    pushed: bool,
    /// The thread is.
    gone: bool,
    passes: u64,
    failures: u64,
    counts: Counts,
    /// When the last pass that succeeded began.
    current: Instant,
    error: Option<SharedError>,
}

impl Control {
    fn new() -> Self {
        Self {
            state: Mutex::new(State {
                asked: 0,
                attempted: 0,
                succeeded: 0,
                ended: false,
                pushed: false,
                gone: false,
                passes: 0,
                failures: 0,
                counts: Counts::default(),
                current: Instant::now(),
                error: None,
            }),
            asked: Condvar::new(),
            reported: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sync(&self, timeout: Duration) -> Result<(), SharedError> {
        let mut state = self.lock();
        state.asked += 1;
        let mine = state.asked;
        self.asked.notify_one();
        let (state, _) = self
            .reported
            .wait_timeout_while(state, timeout, |state| {
                let hopeless = state.error.as_ref().is_some_and(SharedError::is_final);
                state.succeeded < mine && !(state.attempted >= mine && hopeless)
            })
            .unwrap_or_else(PoisonError::into_inner);
        if state.succeeded >= mine {
            return Ok(());
        }
        Err(match &state.error {
            Some(error) if error.is_final() => error.clone(),
            last => SharedErrorKind::Timeout {
                after: timeout,
                last: last.clone(),
            }
            .into(),
        })
    }

    /// Waits until the pause is over or somebody asks; how often `sync` has been called by then, or
    /// nothing if this is the end.
    fn wait(&self, pause: Duration) -> Option<u64> {
        let state = self.lock();
        let (state, _) = self
            .asked
            .wait_timeout_while(state, pause, |state| !state.ended && state.asked == state.attempted)
            .unwrap_or_else(PoisonError::into_inner);
        (!state.ended).then_some(state.asked)
    }

    fn report(&self, asked: u64, began: Instant, counts: Counts, error: Option<SharedError>) {
        let mut state = self.lock();
        state.counts = counts;
        state.attempted = asked;
        if error.is_none() {
            state.succeeded = asked;
            state.current = began;
            state.passes += 1;
        } else {
            state.failures += 1;
        }
        state.error = error;
        drop(state);
        self.reported.notify_all();
    }

    fn ended(&self) -> bool {
        self.lock().ended
    }

    fn end(&self, pushed: bool) {
        let mut state = self.lock();
        state.ended = true;
        state.pushed |= pushed;
        drop(state);
        self.asked.notify_one();
    }
}

/// The thread's own.
struct Worker {
    side: Box<dyn Side>,
    server: Client,
    connection: Option<Wire>,
    interval: Duration,
    timeout: Duration,
    random: RandomState,
}

impl Worker {
    fn run(mut self, control: &Control) {
        let mut pause = self.interval;
        let mut failures = 0;
        while let Some(asked) = control.wait(pause) {
            let began = Instant::now();
            let result = self.try_pass(&|| control.ended());
            match &result {
                Ok(()) => failures = 0,
                Err(error) if error.is_ended() => break,
                Err(_) => failures += 1,
            }
            pause = self.pause(failures);
            control.report(asked, began, self.side.counts(), result.err());
        }
        if failures == 0 && !control.lock().pushed {
            let end = Instant::now() + self.timeout;
            let _ = self.try_pass(&|| Instant::now() > end);
        }
    }

    /// A pass in the background. What of it is the caller's, a window's clock and the cloning of a
    /// hasher, may panic: that is an error like others.
    fn try_pass(&mut self, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        let result = panic::catch_unwind(AssertUnwindSafe(|| self.pass(ended)));
        result.unwrap_or_else(|panic| {
            self.side.forget();
            Err(SharedErrorKind::Panicked(message(&*panic).into()).into())
        })
    }

    /// One pass, on the connection that there is or on a new one.
    fn pass(&mut self, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        self.side.prepare()?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let most_bytes = self.side.most_bytes();
                Wire::open(&self.server, self.timeout, most_bytes).map_err(SharedErrorKind::redis)?
            }
        };
        self.side.pass(&mut connection, ended)?;
        // After a failure it is not known what the next answer would belong to; or the server
        // refuses, and may be one that was demoted, while another has its name by now.
        self.connection = Some(connection);
        Ok(())
    }

    /// How long to wait after so many failures in a row.
    fn pause(&self, failures: u32) -> Duration {
        if failures == 0 {
            return self.interval.max(self.side.counts().comparing * REST);
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16));
        let jitter = self.random.hash_one(Instant::now()) as u32;
        doubled
            .min(LAST_PAUSE)
            .mul_f64(0.5 + 0.5 * f64::from(jitter) / f64::from(u32::MAX))
    }
}

/// What a panic said.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it says nothing")
}
