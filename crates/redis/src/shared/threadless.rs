//! For tests: a node without a thread.

use super::SharedBuilder;
use super::fill_state::Rebuild;
use super::node::{Node, Replicate};
use super::set::{LocalSet, SetReplica};
use super::{SharedStats, window::WindowReplica};
use crate::error::SharedError;
use lanebloom::{BuildError, ConcurrentBloom, KeyHasher, WindowedBloom};
use redis::ConnectionLike;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::Instant;

/// For tests: a node whose passes the caller makes, over any connection, and whose sources the
/// caller runs.
#[doc(hidden)]
pub struct Threadless {
    node: Node,
    replica: Mutex<Box<dyn Replicate>>,
}

/// The builder's calls of this name without `threadless` start a thread.
#[doc(hidden)]
impl SharedBuilder {
    pub fn threadless<S: KeyHasher + Send + Sync + 'static>(
        &self,
        filter: &Arc<ConcurrentBloom<S>>,
    ) -> Result<Threadless, SharedError> {
        Ok(self.without_thread(self.replica(filter)?))
    }

    pub fn threadless_set<S: KeyHasher + Send + Sync + 'static>(
        mut self,
        expected_keys: usize,
        build: impl Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send + 'static,
    ) -> Result<(Arc<LocalSet<S>>, Threadless), SharedError> {
        let replica: SetReplica<S, _> = self.set_replica(expected_keys, build)?;
        Ok((Arc::clone(&replica.local), self.without_thread(replica)))
    }

    pub fn threadless_window<S: KeyHasher + Send + Sync + 'static>(
        mut self,
        filter: &Arc<WindowedBloom<S>>,
    ) -> Result<Threadless, SharedError> {
        let replica: WindowReplica<S> = self.window_replica(filter)?;
        Ok(self.without_thread(replica))
    }

    fn without_thread(&self, replica: impl Replicate + 'static) -> Threadless {
        let (node, replica) = (Node::without_thread(&self.node), Mutex::new(Box::new(replica) as _));
        Threadless { node, replica }
    }
}

impl Threadless {
    /// A pass, as the thread makes it. `None` in the middle of another one.
    pub fn pass(&self, server: &mut dyn ConnectionLike) -> Option<Result<(), SharedError>> {
        let mut replica = match self.replica.try_lock() {
            Err(TryLockError::WouldBlock) => return None,
            replica => replica.expect("no pass has panicked"),
        };
        let began = Instant::now();
        if let Some(fill_state) = replica.fill_state() {
            self.node.lock().fill_calls.tell(fill_state);
        }
        let result = replica.prepare().and_then(|()| replica.pass(server, &|| false));
        let error = result.as_ref().err().cloned();
        self.node.report(0, began, &mut **replica, error);
        Some(result)
    }

    /// From now on a caller fills the set or waits for it, or none does.
    pub fn wants(&self, wants: bool) {
        self.node.lock().fill_calls.calls = usize::from(wants);
    }

    /// The reading that a source may begin now.
    #[must_use]
    pub fn turn(&self) -> Option<u64> {
        let state = self.node.lock();
        state.fill_calls.has_turn().then_some(state.fill_calls.reading)
    }

    /// A source has ended, which began with this reading.
    pub fn has_read(&self, reading: u64) {
        self.node.lock().fill_calls.has_all = Some(reading);
    }

    /// A caller wants another generation.
    pub fn rebuild(&self, expected_keys: u64) {
        self.node.lock().fill_calls.wants(Rebuild::now(expected_keys));
    }

    #[must_use]
    pub fn may_lack_keys(&self) -> bool {
        self.node.may_lack_keys()
    }

    #[must_use]
    pub fn stats(&self) -> SharedStats {
        self.node.stats()
    }
}

/// For tests.
impl<S: KeyHasher> LocalSet<S> {
    /// The newest filter, for a source.
    #[doc(hidden)]
    #[must_use]
    pub fn newest_filter(&self) -> Arc<ConcurrentBloom<S>> {
        self.newest().filter
    }

    /// Cuts the log, like too many inserts.
    #[doc(hidden)]
    pub fn cut_log(&self) {
        *self.lock() = super::set::Log::cut();
    }
}
