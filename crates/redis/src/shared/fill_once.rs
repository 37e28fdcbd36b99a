//! Filling a set once: one node reads all keys from their source, and the others wait.
//!
//! # The mark
//!
//! The meta key of a set has a field `filled` once the set has all keys. A node makes the mark in
//! an exchange after which the server has every bit of its filter, and only if its source has
//! ended before the pass. So a node that pulls a set with the mark has all keys too.
//!
//! A node that had the mark need not have all keys: another one may have pushed more, and died,
//! before the server lost them. So after a loss the set has another `era` and no mark, and each
//! node is open until it has heard of the mark again. A source that began in an earlier era makes
//! none, since it may lack keys that were pushed after it had begun. One case needs no source:
//! single chunks were lost, and nodes that had all of their bits have pushed them again
//! (`replica.rs`).
//!
//! # The lease
//!
//! The fields `filler` and `lease` say which node fills, and until when, by the server's clock. The
//! lease only keeps the nodes from reading the source all at once. Two nodes that fill a set at the
//! same time do no harm, since bits are only added. Therefore a node that lost its lease, because
//! the server was frozen, say, goes on and makes the mark.

use super::SharedBloom;
#[cfg(feature = "tokio")]
use super::node::aside;
use super::node::{Control, State};
use crate::error::{Kind, Report, SharedError};
use lanebloom::{ConcurrentBloom, KeyHasher};
use std::error::Error;
use std::sync::MutexGuard;
use std::time::Duration;
#[cfg(feature = "tokio")]
use tokio::runtime::Handle;

/// The result of [`fill_once`](SharedBloom::fill_once): the node that filled the set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// The source of this call has filled the set.
    Here,
    /// Another node has, or an earlier call.
    Elsewhere,
}

/// Filling the set.
impl<S: KeyHasher> SharedBloom<S> {
    /// Fills the set, unless a node has already filled it. Every process calls this when it starts,
    /// and then about once a second: it returns at once while the set is filled, and fills it again
    /// after the server has lost keys. The server lets one process run its `source`, which inserts
    /// all keys. The others wait until the set is filled. [The module](super#the-first-fill) says
    /// what failures do.
    ///
    /// The source must begin to read **after** it is called, from a store in which every row is
    /// committed before its key is inserted at any node. Keys that nodes insert meanwhile are in
    /// the set as well. If the server loses keys while the source runs, it is called again. Two
    /// sources run at once if the server lost the lease or was frozen for longer than it: this does
    /// no harm.
    ///
    /// Blocks the thread: for the duration of the source, and before and after it for at most
    /// `timeout` each, while another node fills or the server is away. An async program calls it by
    /// `tokio::task::spawn_blocking`.
    ///
    /// # Errors
    ///
    /// - The source failed ([`is_source`](SharedError::is_source)). Call again after a pause.
    /// - A wait took longer than `timeout`. The error has that of the last exchange. The keys that
    ///   the source inserted stay here and will be pushed, but the set gets its mark only if the
    ///   source had ended.
    /// - The set on the server is another filter's, or has expired.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::{SharedBloom, shared::Filled};
    /// use std::time::Duration;
    ///
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let node = || {
    ///     let builder = SharedBloom::builder("ids").open_until_filled();
    ///     builder.connect(server.clone(), filter.clone())
    /// };
    /// let source = |ids: &ConcurrentBloom| {
    ///     ids.insert_batch(&["ann", "bob"]); // SELECT id FROM users
    ///     Ok::<_, std::io::Error>(())
    /// };
    /// let hour = Duration::from_secs(3600);
    /// let ids = node()?;
    /// assert!(ids.may_lack_keys());
    /// assert_eq!(ids.fill_once(hour, source)?, Filled::Here);
    /// assert!(!ids.may_lack_keys() && ids.contains("bob"));
    /// assert_eq!(node()?.fill_once(hour, source)?, Filled::Elsewhere);
    /// loop {
    ///     std::thread::sleep(Duration::from_secs(1)); // in a thread of its own
    ///     if let Err(error) = ids.fill_once(hour, source) {
    ///         eprintln!("the set of ids: {error}");
    ///     }
    /// }
    /// # #[allow(unreachable_code)]
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fill_once<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        timeout: Duration,
        mut source: impl FnMut(&ConcurrentBloom<S>) -> Result<(), E>,
    ) -> Result<Filled, SharedError> {
        fill_once(&self.node, timeout, |_| Some(&self.filter), |filter| source(filter))
    }
}

/// Filling the set from async code.
#[cfg(feature = "tokio")]
impl<S: KeyHasher + Send + Sync + 'static> SharedBloom<S> {
    /// [`fill_once`](Self::fill_once) with an async source, such as a query of an async client.
    /// Waits in a thread of the runtime's for blocking work, which also polls the source. If the
    /// future is dropped, the fill goes on.
    ///
    /// # Panics
    ///
    /// Panics if the source does, or outside a tokio runtime.
    ///
    /// # Errors
    ///
    /// Fails as `fill_once` does, or if the runtime is shut down.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom::ConcurrentBloom;
    /// use lanebloom_redis::{SharedBloom, shared::Filled};
    /// use std::{io, time::Duration};
    ///
    /// /// The query, for every place that reads all ids.
    /// async fn read_ids(mut take: impl FnMut(&[u64])) -> io::Result<()> {
    ///     for page in [[1, 2], [3, 4]] {
    ///         tokio::task::yield_now().await; // SELECT id FROM users
    ///         take(&page);
    ///     }
    ///     Ok(())
    /// }
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// let server = redis::Client::open("redis://127.0.0.1/")?;
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let builder = SharedBloom::builder("ids").open_until_filled();
    /// let ids = builder.connect(server, filter)?;
    /// let source = async |ids: &ConcurrentBloom| {
    ///     read_ids(|page| _ = ids.insert_batch(page)).await
    /// };
    /// let hour = Duration::from_secs(3600);
    /// assert_eq!(ids.fill_once_async(hour, source).await?, Filled::Here);
    /// assert!(!ids.may_lack_keys() && ids.contains(&3u64));
    /// ids.insert(&5u64);
    /// ids.sync_async(hour).await?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn fill_once_async<E: Into<Box<dyn Error + Send + Sync>>>(
        &self,
        timeout: Duration,
        mut source: impl AsyncFnMut(&ConcurrentBloom<S>) -> Result<(), E> + Send + 'static,
    ) -> Result<Filled, SharedError> {
        let (ids, runtime) = (self.clone(), Handle::current());
        aside(move || ids.fill_once(timeout, |filter| runtime.block_on(source(filter)))).await
    }
}

/// [`SharedBloom::fill_once`]. If the set comes to a new generation meanwhile, or the server loses
/// keys, `source` is called again. `filter_of` has the filter of the newest generation, unless that
/// is another one.
pub(super) fn fill_once<F, E: Into<Box<dyn Error + Send + Sync>>>(
    control: &Control,
    timeout: Duration,
    filter_of: impl Fn(u64) -> Option<F>,
    mut source: impl FnMut(F) -> Result<(), E>,
) -> Result<Filled, SharedError> {
    let call = Call::begin(control);
    let mut filled = Filled::Elsewhere;
    while let Some(mut state) = call.wait_for_turn(timeout)? {
        let reading = state.fill_calls.reading;
        let Some(filter) = filter_of(state.fill_calls.generation) else {
            // The thread has gone on, and reports another reading.
            state.fill_calls.has_all = Some(reading);
            continue;
        };
        state.fill_calls.runs = true;
        state.fill_calls.fills += 1;
        drop(state);
        tracing::info!("this node fills a shared set");
        let mut run = Run { control, filled: None };
        source(filter).map_err(|error| Report::new(Kind::Source, "the source of the keys failed").because(error))?;
        run.filled = Some(reading);
        filled = Filled::Here;
    }
    Ok(filled)
}

/// A call of `fill_once`, until it returns.
struct Call<'a> {
    control: &'a Control,
}

impl<'a> Call<'a> {
    fn begin(control: &'a Control) -> Self {
        let mut state = control.lock();
        state.fill_calls.calls += 1;
        control.ask(&mut state);
        drop(state);
        Self { control }
    }

    /// Waits until this call may run its source. `None` if the set is filled.
    fn wait_for_turn(&self, timeout: Duration) -> Result<Option<MutexGuard<'a, State>>, SharedError> {
        let done = |state: &State| state.fill_calls.is_filled || state.fill_calls.has_turn();
        let state = self.control.wait_for(self.control.lock(), timeout, done, |_| true)?;
        Ok((!state.fill_calls.is_filled).then_some(state))
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut state = self.control.lock();
        state.fill_calls.calls -= 1;
        // The last one ends the lease.
        self.control.ask(&mut state);
    }
}

/// A source that runs, and whether it has ended well. (A panic passes by.)
struct Run<'a> {
    control: &'a Control,
    /// The reading that the source has ended.
    filled: Option<u64>,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        let Self { control, filled } = *self;
        let mut state = control.lock();
        state.fill_calls.runs = false;
        state.fill_calls.has_all = filled.or(state.fill_calls.has_all);
        state.fill_calls.failed += u64::from(filled.is_none());
        control.ask(&mut state);
        drop(state);
        control.reported.notify_all();
    }
}
