//! The thread of a node. It brings its replica of a set and the server together from time to time.
//! The file also holds the messages between the thread and the node's owners.
//! [`SharedBloom`](super::SharedBloom) and `SharedWindow` start it, each with its own replica.
//!
//! # End of the thread
//!
//! A node may be dropped anywhere, for example in a request thread that was the last reader of a
//! guard's old filter. So a drop only tells the thread to end, and waits for nothing. The thread
//! finishes its current round trip. If the last attempt succeeded, it pushes the rest once more.
//! Then it ends. Each of these steps takes at most a timeout: the round trip, a new connection, and
//! a last round trip that began within the timeout of the push.

use super::deadline_socket::DeadlineSocket;
use super::fill_state::{self, FillCalls, FillState, Rebuild};
use super::lag_limit::LagLimit;
use crate::error::{Kind, Report, SharedError};
use redis::{Client, ConnectionAddr, ConnectionLike, RedisResult};
use std::any::Any;
use std::hash::{BuildHasher, RandomState};
use std::ops::Deref;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The first pause after a failure; every further one is twice as long, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(25);
const LAST_PAUSE: Duration = Duration::from_secs(3);
/// The thread rests this many times as long as a comparison took.
const REST: u32 = 4;

/// A node's replica of a set, as its thread works on it.
pub(super) trait Replicate: Send {
    /// The work before an exchange, whether the server is there or not.
    fn prepare(&mut self) -> Result<(), SharedError> {
        Ok(())
    }

    /// Pushes the bits that the server lacks, and pulls the bits that this node lacks. After `Ok`,
    /// the server has every bit that was here before, and this node has every bit that was there.
    ///
    /// Ends early, with an error, once `ended` returns true.
    fn pass(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError>;

    /// Forgets the state of the server, so that the next pass begins anew. Called after a panic in
    /// a pass, which may have left anything half done.
    fn forget(&mut self);

    /// The most bytes of the replies of a round trip.
    fn most_bytes(&self) -> usize;

    /// The work so far.
    fn counts(&self) -> Counts;

    /// Whether the server deletes the set's keys at some time.
    fn expires(&self) -> bool {
        false
    }

    /// The node's part in filling the set, if the set can be filled once.
    fn fill_state(&mut self) -> Option<&mut FillState> {
        None
    }
}

/// The work of a node's replica.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) resyncs: u64,
    pub(super) pushed_bytes: u64,
    pub(super) pulled_bytes: u64,
    /// The duration of the last comparison with the pushed bits.
    pub(super) comparing: Duration,
}

impl Counts {
    /// Adds the work of another replica, without the duration of its last comparison.
    pub(super) fn add(&mut self, other: Self) {
        self.resyncs += other.resyncs;
        self.pushed_bytes += other.pushed_bytes;
        self.pulled_bytes += other.pulled_bytes;
    }
}

/// The settings of a node's builder.
#[derive(Clone, Debug)]
pub(super) struct NodeOptions {
    pub(super) interval: Duration,
    pub(super) timeout: Duration,
    pub(super) lag_limit: Option<Duration>,
    pub(super) open_until_filled: bool,
}

/// The owner's end of the thread. A drop tells the thread to push the rest and to end.
pub(super) struct Node(Arc<Control>);

impl Node {
    /// Merges `replica` and the server's set, and starts the thread that keeps them equal.
    pub(super) fn start(
        server: Client,
        replica: impl Replicate + 'static,
        options: &NodeOptions,
    ) -> Result<Self, SharedError> {
        let control = Arc::new(Control::new(options));
        let timeout = control.lag_limit.timeout(options.timeout);
        let mut worker = Worker {
            replica: Box::new(replica),
            server,
            moved: None,
            connection: None,
            interval: options.interval,
            // A socket takes a timeout of zero for none. The longest durations would overflow an
            // `Instant`.
            timeout: timeout.clamp(Duration::from_millis(1), Duration::from_secs(3600)),
            random: RandomState::new(),
        };
        let began = Instant::now();
        worker.pass(&|| false)?;
        worker.warn_of_evictions();
        // A node with a limit lags until the others have pushed: the server may have been away.
        control.lock().is_lagging = control.lag_limit.is_set();
        control.report(0, began, &mut *worker.replica, None);
        let its_control = Arc::clone(&control);
        thread::Builder::new()
            .name("lanebloom-shared".into())
            .spawn(move || {
                // Dropped after the worker, its filter and its connection.
                let _end = AtEnd(&its_control);
                worker.run(&its_control);
            })
            .map_err(|error| Report::other(format!("no thread could be started: {error}")).because(error))?;
        Ok(Self(control))
    }

    /// For tests, which make the passes and report them.
    pub(super) fn without_thread(options: &NodeOptions) -> Self {
        Self(Arc::new(Control::new(options)))
    }

    /// [`sync`](Self::sync), and then waits until the thread is gone.
    pub(super) fn close(&self, timeout: Duration) -> Result<(), SharedError> {
        let began = Instant::now();
        self.sync(timeout)?;
        self.end(true);
        let left = timeout.saturating_sub(began.elapsed());
        let (state, _) = self
            .reported
            .wait_timeout_while(self.lock(), left, |state| !state.gone)
            .unwrap_or_else(PoisonError::into_inner);
        if state.gone {
            return Ok(());
        }
        let last = state.error.clone();
        Err(SharedError::timeout(timeout, last))
    }
}

impl Deref for Node {
    type Target = Control;

    fn deref(&self) -> &Control {
        &self.0
    }
}

/// The work of a [`SharedBloom`](super::SharedBloom) or [`SharedWindow`](super::SharedWindow) so
/// far, and the result of its last attempt.
///
/// # Examples
///
/// ```no_run
/// use lanebloom::ConcurrentBloom;
/// use lanebloom_redis::SharedBloom;
/// use std::time::Duration;
///
/// let server = redis::Client::open("redis://127.0.0.1/")?;
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// let shared = SharedBloom::builder("ids").connect(server, filter)?;
/// shared.sync(Duration::from_secs(30))?;
/// assert!(shared.stats().lag < Duration::from_secs(5));
///
/// shared.insert("a");
/// let before = shared.stats().pushed_bytes;
/// shared.sync(Duration::from_secs(30))?;
/// let sent = shared.stats().pushed_bytes - before;
/// // A chunk's number, the number of bits, and up to 6 bits of 2 bytes.
/// assert!((8..=18).contains(&sent));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SharedStats {
    /// Exchanges with the server that succeeded, the first by `connect`.
    pub passes: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// How often the node compared and fetched chunks: once at the beginning, and then if the
    /// server's log did not reach back far enough, or the server had lost something.
    pub resyncs: u64,
    /// Bytes of the keys added here, as sent, without the overhead of Redis's protocol.
    pub pushed_bytes: u64,
    /// Bytes of the keys that others added, as received.
    pub pulled_bytes: u64,
    /// The time since the last successful exchange began. The server has the keys that were here
    /// before, and this node has the keys that were there.
    pub lag: Duration,
    /// Whether the node [lags](super::SharedBuilder::open_above_lag): a guard over it is open.
    pub is_lagging: bool,
    /// How often the node has begun to lag.
    pub lags: u64,
    /// Whether the set has all keys of its source, as far as this node knows:
    /// [`fill_once`](super::SharedBloom::fill_once) has ended at this node or another. In a
    /// [`SharedSet`](super::SharedSet) this tells of the newest generation once the exchange that
    /// found it has ended. Until then it tells of the one before, while
    /// [`generation`](super::LocalSet::generation) already has the new number.
    pub is_filled: bool,
    /// How often this node has begun to fill the set.
    pub fills: u64,
    /// How often the source of the keys failed or panicked here.
    pub failed_fills: u64,
    /// Why the last attempt failed, if it did. A panic in the caller's code, the clock of a window,
    /// also counts. The thread goes on in any case.
    pub last_error: Option<SharedError>,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.0.end(false);
    }
}

/// Reports that the thread is gone, even after a panic.
struct AtEnd<'a>(&'a Control);

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.lock().gone = true;
        self.0.reported.notify_all();
    }
}

/// The messages between the thread and its owners. A thread holds the lock only to read and write
/// the state.
pub(super) struct Control {
    state: Mutex<State>,
    pub(super) lag_limit: LagLimit,
    open_until_filled: bool,
    /// Whether lookups find all keys, in the set's newest generation or in an older one. Stored
    /// with `Release` after the bits of an exchange were added, and loaded with `Acquire`: see
    /// `lag_limit.rs`.
    is_complete: AtomicBool,
    /// Wakes the thread: an owner asked for a pass, or for the end.
    asked: Condvar,
    /// Wakes the threads that wait in `sync`, `close` and `fill_once`.
    pub(super) reported: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// Calls of `sync` so far.
    asked: u64,
    /// The calls of `sync` before the last pass that ended, and before the last that succeeded.
    attempted: u64,
    succeeded: u64,
    ended: bool,
    /// Whether nothing is left to push at the end.
    pushed: bool,
    /// Whether the thread is gone.
    gone: bool,
    passes: u64,
    failures: u64,
    counts: Counts,
    /// The beginning of the last pass that succeeded.
    current: Option<Instant>,
    /// See [`LagLimit::succeeded`].
    recovered: Option<Instant>,
    /// Whether the thread has told that the node lags, and how often it has.
    is_lagging: bool,
    lags: u64,
    error: Option<SharedError>,
    pub(super) fill_calls: FillCalls,
}

impl State {
    pub(super) fn lag(&self) -> Duration {
        self.current.map_or(Duration::ZERO, |current| current.elapsed())
    }
}

impl Control {
    fn new(options: &NodeOptions) -> Self {
        Self {
            lag_limit: LagLimit::new(options.lag_limit),
            open_until_filled: options.open_until_filled,
            is_complete: AtomicBool::new(false),
            state: Mutex::default(),
            asked: Condvar::new(),
            reported: Condvar::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sync(&self, timeout: Duration) -> Result<(), SharedError> {
        let mut state = self.lock();
        let mine = self.ask(&mut state);
        self.wait_for(
            state,
            timeout,
            |state| state.succeeded >= mine,
            |state| state.attempted >= mine,
        )
        .map(drop)
    }

    /// Waits until the state is `done`, for `timeout` at most. Fails earlier by an error that is
    /// final, if it `counts`.
    pub(super) fn wait_for<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        timeout: Duration,
        done: impl Fn(&State) -> bool,
        counts: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'a, State>, SharedError> {
        let is_final = |state: &State| state.error.as_ref().is_some_and(SharedError::is_final);
        let hopeless = |state: &State| state.gone || counts(state) && is_final(state);
        let (state, _) = self
            .reported
            .wait_timeout_while(state, timeout, |state| !done(state) && !hopeless(state))
            .unwrap_or_else(PoisonError::into_inner);
        if done(&state) {
            return Ok(state);
        }
        Err(match state.error.clone() {
            Some(error) if error.is_final() => error,
            _ if state.gone => SharedError::ended(),
            last => SharedError::timeout(timeout, last),
        })
    }

    /// Whether [`may_lack_keys`](Self::may_lack_keys) can ever return true.
    pub(super) fn can_lack_keys(&self) -> bool {
        self.open_until_filled || self.lag_limit.is_set()
    }

    #[inline]
    pub(super) fn may_lack_keys(&self) -> bool {
        // Partner: the store in `Control::report`.
        self.open_until_filled && !self.is_complete.load(Ordering::Acquire) || self.lag_limit.is_exceeded()
    }

    pub(super) fn stats(&self) -> SharedStats {
        let is_lagging = self.lag_limit.is_exceeded();
        let state = self.lock();
        SharedStats {
            passes: state.passes,
            failures: state.failures,
            resyncs: state.counts.resyncs,
            pushed_bytes: state.counts.pushed_bytes,
            pulled_bytes: state.counts.pulled_bytes,
            lag: state.lag(),
            is_lagging,
            lags: state.lags + u64::from(is_lagging && !state.is_lagging),
            is_filled: state.fill_calls.is_filled,
            fills: state.fill_calls.fills,
            failed_fills: state.fill_calls.failed,
            last_error: state.error.clone(),
        }
    }

    /// Asks for a new generation of a set, and waits for it. Returns false if the present one is
    /// younger than the caller wants.
    pub(super) fn rebuild(&self, wanted: Rebuild, timeout: Duration) -> Result<bool, SharedError> {
        let mut state = self.lock();
        let generation = state.fill_calls.generation;
        state.fill_calls.wants(wanted);
        let mine = self.ask(&mut state);
        let has_begun = |state: &State| state.fill_calls.generation != generation;
        let unbuilt = |state: &State| {
            let error = state.error.clone().filter(|_| state.attempted >= mine);
            error.filter(|error| error.kind() == Kind::Unbuilt)
        };
        let ends = |state: &State| wanted.age > Duration::ZERO && state.succeeded >= mine || unbuilt(state).is_some();
        let state = self.wait_for(state, timeout, |state| has_begun(state) || ends(state), |_| true)?;
        match unbuilt(&state) {
            Some(error) if !has_begun(&state) => Err(error),
            _ => Ok(has_begun(&state)),
        }
    }

    /// Asks the thread for a pass. Returns the number of the call.
    pub(super) fn ask(&self, state: &mut State) -> u64 {
        state.asked += 1;
        self.asked.notify_one();
        state.asked
    }

    /// Waits until the pause is over or an owner asks. Returns the calls of `sync` by then, or
    /// `None` at the end.
    fn wait(&self, pause: Duration) -> Option<u64> {
        let state = self.lock();
        let (state, _) = self
            .asked
            .wait_timeout_while(state, pause, |state| !state.ended && state.asked == state.attempted)
            .unwrap_or_else(PoisonError::into_inner);
        (!state.ended).then_some(state.asked)
    }

    pub(super) fn report(&self, asked: u64, began: Instant, replica: &mut dyn Replicate, error: Option<SharedError>) {
        let ended = Instant::now();
        let mut guard = self.lock();
        let state = &mut *guard;
        state.counts = replica.counts();
        state.attempted = asked;
        // Before this exchange counts: it may be the first after a lag.
        let lagged = self.lag_limit.is_exceeded();
        let mut lost = false;
        if error.is_none() {
            state.succeeded = asked;
            state.current = Some(began);
            state.passes += 1;
            if let Some(fill_state) = replica.fill_state() {
                lost = self.open_until_filled && state.fill_calls.is_filled && !fill_state.is_complete();
                state.fill_calls.hears(fill_state);
                // Partner: the load in `may_lack_keys`.
                self.is_complete.store(fill_state.is_complete(), Ordering::Release);
            }
            self.lag_limit.succeeded(&mut state.recovered, began, ended);
        } else {
            state.failures += 1;
            // The server may have been away for the others too.
            state.recovered = None;
        }
        state.error = error;
        let begins = lagged && !state.is_lagging;
        state.lags += u64::from(begins);
        state.is_lagging = self.lag_limit.is_exceeded();
        let ends = lagged && !state.is_lagging;
        let last = state.error.clone();
        drop(guard);
        if begins {
            let error = last.as_ref().map(tracing::field::display);
            tracing::warn!(error, "a shared filter lags above its limit: its guards are open");
        }
        if lost {
            tracing::warn!("the server lost a part of a shared filter: its guards are open until it is filled again");
        }
        if ends {
            tracing::info!("a shared filter has caught up: its guards are closed");
        }
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

/// The thread's own state.
struct Worker {
    replica: Box<dyn Replicate>,
    server: Client,
    /// The node of Redis Cluster that has the set, if `server` is another one.
    moved: Option<Client>,
    connection: Option<DeadlineSocket>,
    interval: Duration,
    timeout: Duration,
    random: RandomState,
}

impl Worker {
    fn run(mut self, control: &Control) {
        let mut pause = control.lag_limit.pause(self.interval);
        let mut failures = 0;
        while let Some(asked) = control.wait(pause) {
            let began = Instant::now();
            let result = self.try_pass(control, &|| control.ended());
            match &result {
                Ok(()) => failures = 0,
                Err(error) if error.kind() == Kind::Ended => break,
                Err(_) => failures += 1,
            }
            pause = control.lag_limit.pause(self.pause(failures));
            if self.replica.fill_state().is_some_and(|fill_state| fill_state.wants) {
                pause = pause.min(fill_state::RENEWAL);
            }
            control.report(asked, began, &mut *self.replica, result.err());
        }
        if failures == 0 && !control.lock().pushed {
            let end = Instant::now() + self.timeout;
            let _ = self.try_pass(control, &|| Instant::now() > end);
        }
    }

    /// A pass in the background. The caller's code in it, a window's clock and the cloning of a
    /// hasher, may panic: that becomes an error like others.
    fn try_pass(&mut self, control: &Control, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        if let Some(fill_state) = self.replica.fill_state() {
            control.lock().fill_calls.tell(fill_state);
        }
        let result = panic::catch_unwind(AssertUnwindSafe(|| self.pass(ended)));
        result.unwrap_or_else(|panic| {
            self.replica.forget();
            let says = message(&*panic);
            Err(SharedError::other(format!(
                "the exchange panicked and started again: {says}"
            )))
        })
    }

    /// One pass. If a node of Redis Cluster names another node, the pass is made there. After a
    /// failure the next pass begins at the caller's server again, which may know more by then.
    fn pass(&mut self, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        let mut result = self.pass_at_one(ended);
        if let Err(error) = &result
            && let Some(node) = error.moved_to()
            && let Some(client) = at_node(&self.server, node)
        {
            self.moved = Some(client);
            result = self.pass_at_one(ended);
        }
        if result.is_err() {
            self.moved = None;
        }
        result
    }

    /// One pass, on the present connection or on a new one.
    fn pass_at_one(&mut self, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        self.replica.prepare()?;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let most_bytes = self.replica.most_bytes();
                DeadlineSocket::open(self.moved.as_ref().unwrap_or(&self.server), self.timeout, most_bytes)
                    .map_err(SharedError::redis)?
            }
        };
        self.replica.pass(&mut connection, ended)?;
        // Kept after a success only. After a failure the next reply might belong to an earlier
        // request. A server that refuses may have been demoted, and another may have its name now.
        self.connection = Some(connection);
        Ok(())
    }

    /// Warns if the server may evict a part of the set. A server that does not tell is not asked
    /// again.
    fn warn_of_evictions(&mut self) {
        let Some(mut connection) = self.connection.take() else {
            return;
        };
        let info: RedisResult<String> = redis::cmd("INFO").arg("memory").query(&mut connection);
        match info {
            Ok(info) => {
                let field = |name| {
                    info.lines()
                        .find_map(|line| line.strip_prefix(name))
                        .unwrap_or_default()
                };
                let (limit, policy) = (field("maxmemory:").trim(), field("maxmemory_policy:").trim());
                let evicts = policy.starts_with("allkeys") || policy.starts_with("volatile") && self.replica.expires();
                if evicts && limit != "0" {
                    tracing::warn!(
                        policy,
                        maxmemory = limit,
                        "the server may evict parts of a shared filter, whose nodes then push them again"
                    );
                }
                self.connection = Some(connection);
            }
            Err(error) if error.is_io_error() || error.is_unrecoverable_error() => {}
            Err(_) => self.connection = Some(connection),
        }
    }

    /// The pause after this many failures in a row.
    fn pause(&self, failures: u32) -> Duration {
        if failures == 0 {
            return self.interval.max(self.replica.counts().comparing * REST);
        }
        let doubled = FIRST_PAUSE.saturating_mul(1 << (failures - 1).min(16));
        let jitter = self.random.hash_one(Instant::now()) as u32;
        doubled
            .min(LAST_PAUSE)
            .mul_f64(0.5 + 0.5 * f64::from(jitter) / f64::from(u32::MAX))
    }
}

/// The client of another node, `host:port`, with the settings of this one. Nothing if this one has
/// no network address.
fn at_node(client: &Client, node: &str) -> Option<Client> {
    let info = client.get_connection_info().clone();
    let (host, port) = node.rsplit_once(':')?;
    let mut addr = info.addr().clone();
    match &mut addr {
        ConnectionAddr::Tcp(old_host, old_port)
        | ConnectionAddr::TcpTls {
            host: old_host,
            port: old_port,
            ..
        } => {
            *old_port = port.parse().ok()?;
            // A node that does not know its name leaves it out. It is the same host then.
            if !host.is_empty() {
                *old_host = host.into();
            }
        }
        _ => return None,
    }
    Client::open(info.set_addr(addr)).ok()
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("it says nothing")
}

/// Does blocking work for a task.
#[cfg(feature = "tokio")]
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SharedError> + Send + 'static,
) -> Result<T, SharedError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(SharedError::shut_down(error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared::fill_once::{Filled, fill_once};
    use crate::shared::fill_state::FillState;

    fn control() -> Control {
        Control::new(&NodeOptions {
            interval: Duration::MAX,
            timeout: Duration::MAX,
            lag_limit: None,
            open_until_filled: true,
        })
    }

    /// The thread comes to another generation before the source begins, and that one is filled.
    #[test]
    fn a_source_that_is_not_called_has_not_filled() {
        let control = control();
        control.lock().fill_calls.holds = true;
        let minute = Duration::from_secs(60);
        let filled = thread::scope(|scope| {
            let call = scope.spawn(|| fill_once(&control, minute, |_| None, |()| Err("called")));
            while control.lock().fill_calls.has_turn() {
                thread::yield_now();
            }
            control.lock().fill_calls.is_filled = true;
            control.reported.notify_all();
            call.join().unwrap()
        });
        assert_eq!((filled.unwrap(), control.stats().fills), (Filled::Elsewhere, 0));
    }

    /// Two ask before the pass that begins the generation, and two while it runs.
    #[test]
    fn callers_that_rebuild_at_once_begin_one_generation() {
        let control = control();
        let mut fill_state = FillState::default();
        thread::scope(|scope| {
            let call = || scope.spawn(|| control.rebuild(Rebuild::now(1000), Duration::from_secs(60)));
            let have_asked = |callers| {
                while control.lock().asked < callers {
                    thread::yield_now();
                }
            };
            let mut calls = vec![call(), call()];
            have_asked(2);
            control.lock().fill_calls.tell(&mut fill_state);
            assert_eq!(fill_state.rebuild, Some(Rebuild::now(1000)));
            calls.extend([call(), call()]);
            have_asked(4);
            fill_state = fill_state.next(true);
            control.lock().fill_calls.hears(&fill_state);
            control.reported.notify_all();
            for call in calls {
                assert!(call.join().unwrap().unwrap());
            }
        });
        control.lock().fill_calls.tell(&mut fill_state);
        assert_eq!(fill_state.rebuild, None);
    }
}
