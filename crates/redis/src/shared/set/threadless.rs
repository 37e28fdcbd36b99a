//! For tests: a node of a set without a thread.

use super::local_set::{LocalSet, Log};
use super::set_replica::SetReplica;
use crate::error::SharedError;
use crate::shared::fill_state::{FillCalls, Rebuild};
use crate::shared::node::Replicate;
use crate::shared::redis_keys::RedisKeys;
use lanebloom::{BuildError, ConcurrentBloom, KeyHasher};
use redis::ConnectionLike;
use std::sync::Arc;

/// For tests: a node of a set whose passes the caller makes, over any connection.
#[doc(hidden)]
pub struct ThreadlessSet<S> {
    local: Arc<LocalSet<S>>,
    replica: Box<dyn Replicate>,
    is_complete: bool,
}

impl<S: KeyHasher + Send + Sync + 'static> ThreadlessSet<S> {
    pub fn new(
        name: &str,
        expected_keys: usize,
        build: impl Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send + 'static,
    ) -> Result<Self, SharedError> {
        let replica = SetReplica::new(RedisKeys::of(name)?, expected_keys, build)?;
        Ok(Self {
            local: Arc::clone(&replica.local),
            replica: Box::new(replica),
            is_complete: false,
        })
    }

    /// The callers' part.
    #[must_use]
    pub fn local(&self) -> Arc<LocalSet<S>> {
        Arc::clone(&self.local)
    }

    /// The newest filter, for a source, and its place.
    #[must_use]
    pub fn newest(local: &LocalSet<S>) -> (u64, Arc<ConcurrentBloom<S>>) {
        let newest = local.newest();
        (newest.place, newest.filter)
    }

    /// Cuts the log, like too many inserts.
    pub fn cut_log(local: &LocalSet<S>) {
        let (hashes, is_cut) = (Vec::new(), true);
        *local.lock() = Log { hashes, is_cut };
    }

    #[must_use]
    pub fn may_lack_keys(&self) -> bool {
        !self.is_complete
    }

    /// The generation that a source reads for now: `has_all` if it has ended. It is another one
    /// after a loss.
    #[must_use]
    pub fn reading(&mut self) -> u64 {
        self.replica.fill_state().map_or(0, |fill_state| fill_state.reading)
    }

    /// A pass, as the thread makes it. `has_all` is the reading that a source has ended.
    /// Returns whether the node may run a source.
    pub fn pass(
        &mut self,
        server: &mut dyn ConnectionLike,
        wants: bool,
        has_all: Option<u64>,
        rebuild: Option<u64>,
    ) -> Result<bool, SharedError> {
        let mut calls = FillCalls {
            calls: usize::from(wants),
            has_all,
            ..FillCalls::default()
        };
        if let Some(fill_state) = self.replica.fill_state() {
            calls.rebuild = rebuild.map(|keys| (fill_state.generation, Rebuild::now(keys)));
            calls.tell(fill_state);
        }
        self.replica.pass(server, &|| false)?;
        if let Some(fill_state) = self.replica.fill_state() {
            calls.hears(fill_state);
            self.is_complete = fill_state.is_complete();
        }
        Ok(calls.has_turn())
    }
}
