//! Fills a shared filter, in one of its processes, by the source of keys that a rebuild takes.

use crate::cache::Cache;
use crate::cache::entries::{Key, Value};
use crate::cache::future;
use crate::cache::keys::{Keys, read_keys};
use crate::cache::limits::block_on;
use crate::cache::sync::{self, is_dropped};
use crate::error::{BoxError, RebuildError};
use crate::filter::GuardFilter;
use lanebloom::{ConcurrentBloom, KeyHasher};
use lanebloom_redis::shared::Filled;
use lanebloom_redis::{SharedBloom, SharedError, SharedSet};
use std::future::ready;
use std::panic::resume_unwind;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::task::{JoinError, spawn_blocking};

impl<K: Key + ?Sized, V: Value, F: GuardFilter> Cache<K, V, F> {
    /// Inserts the keys of `source` into a filter, and records their number.
    async fn fill<H, S>(
        &self,
        filter: &ConcurrentBloom<H>,
        source: &mut S,
        is_stopped: &mut (impl FnMut() -> bool + Send),
    ) -> Result<(), RebuildError>
    where
        H: KeyHasher + Sync,
        S: AsyncFnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
    {
        let (began, changes) = (Instant::now(), self.changes());
        let keys = read_keys(source, is_stopped, |batch| _ = filter.insert_batch(batch)).await?;
        let mut history = self.history();
        (history.read_at, history.keys) = (began, Some(keys as u64));
        (history.inserted, history.removed) = changes;
        Ok(())
    }
}

/// Both modes, for one kind of shared filter. (No bound on the filter can name its `fill_once`.)
macro_rules! fill_once {
    ($filter:ident) => {
        impl<K: Key + ?Sized, V: Value, H: KeyHasher + Send + Sync + 'static> future::GuardedCache<K, V, $filter<H>> {
            /// Fills the shared filter, unless a process has filled it: the server lets one of
            /// them run its `source`, which inserts all keys of the store, and the others wait. It
            /// is the
            #[doc = concat!("`fill_once` of [`", stringify!($filter), "`], with a source as that of ")]
            /// [`follow`](Self::follow) and [`rebuild_every`](Self::rebuild_every), so one function
            /// serves all three.
            ///
            /// Call it in every process, in a task of its own if the process should serve
            /// meanwhile, and repeat it about once a second: it returns at once while the filter
            /// is filled. After the server has lost keys, the cache may stay open until this call.
            /// The source runs in a blocking thread of the runtime, whose connections and timers it
            /// may use. If the future is dropped, the source ends with its next thousand keys. The
            /// cache closes once [`mark_ready`](Cache::mark_ready) was called and the filter is
            /// filled.
            ///
            /// # Panics
            ///
            /// Panics outside of a tokio runtime, and if the source panics.
            ///
            /// # Errors
            ///
            #[doc = concat!("Fails as `fill_once` of [`", stringify!($filter), "`] does, or if the runtime is shut down.")]
            ///
            /// # Examples
            ///
            #[doc = include_str!("fill_once.md")]
            pub async fn fill_once<S>(&self, timeout: Duration, mut source: S) -> Result<Filled, SharedError>
            where
                S: AsyncFnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError> + Send + 'static,
            {
                let (runtime, cache) = (Handle::current(), (**self).clone());
                // Dropped with this future.
                let (_alive, mut dropped) = mpsc::channel();
                let of_thread = runtime.clone();
                let fill = spawn_blocking(move || {
                    cache.guard().filter().fill_once(timeout, |filter| {
                        let mut is_stopped = || is_dropped(&mut dropped);
                        of_thread.block_on(cache.fill(filter, &mut source, &mut is_stopped))
                    })
                });
                match fill.await.map_err(JoinError::try_into_panic) {
                    Ok(filled) => filled,
                    // The timers and connections of a runtime that shuts down panic, which ends the
                    // source.
                    Err(Ok(payload)) => match runtime.spawn(ready(())).await {
                        Ok(()) => resume_unwind(payload),
                        Err(error) => Err(SharedError::shut_down(error)),
                    },
                    Err(Err(error)) => Err(SharedError::shut_down(error)),
                }
            }
        }

        impl<K: Key + ?Sized, V: Value, H: KeyHasher + Send + Sync + 'static> sync::GuardedCache<K, V, $filter<H>> {
            /// Fills the shared filter, unless a process has filled it, as
            /// [its twin](future::GuardedCache::fill_once) does. The source runs in this thread.
            ///
            /// # Errors
            ///
            #[doc = concat!("Fails as `fill_once` of [`", stringify!($filter), "`] does.")]
            pub fn fill_once<S>(&self, timeout: Duration, mut source: S) -> Result<Filled, SharedError>
            where
                S: FnMut(&mut Keys<'_, K::Owned>) -> Result<(), BoxError>,
            {
                let mut source = async |keys: &mut Keys<'_, K::Owned>| source(keys);
                self.guard().filter().fill_once(timeout, |filter| {
                    block_on(self.fill(filter, &mut source, &mut || false))
                })
            }
        }
    };
}

fill_once!(SharedBloom);
fill_once!(SharedSet);
