//! Notes which load waits for which, so that a load that would wait for itself ends with an error.
//!
//! A loader may get other keys: a row's parent, of the same cache or another. Its load then waits
//! for theirs. If waits form a circle, no load in it ends. So each wait of a load is noted here,
//! and one that would close a circle is refused. A get that is not part of a load is in no circle:
//! nobody waits for it. It notes nothing.
//!
//! A load that waits also lends its place among the loads that its cache allows at a time.
//!
//! A load is known by its task, or its thread in the blocking mode. Gets in a task or thread that
//! the loader starts are not known to be part of it.

use crate::cache::error::LoadError;
use crate::cache::limits::{Lent, Limits, Place, block_on};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

tokio::task_local! {
    /// The innermost load that the code is part of.
    static PRESENT: Present;
}

#[derive(Clone)]
struct Present {
    load: Load,
    place: Option<Arc<Place>>,
}

/// The loads that each load waits for now.
static WAITS: Mutex<Waits> = Mutex::new(BTreeMap::new());

type Waits = BTreeMap<Load, Vec<Load>>;

/// One call of a loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Load(u64);

impl Load {
    pub(super) fn of_one() -> Self {
        // `Relaxed`: only that no two are equal matters.
        static NEXT: AtomicU64 = AtomicU64::new(2);
        Self(NEXT.fetch_add(2, Ordering::Relaxed))
    }

    /// A call of `load_many`.
    pub(super) fn of_many() -> Self {
        Self(Self::of_one().0 | 1)
    }

    pub(super) fn is_of_many(self) -> bool {
        self.0 & 1 == 1
    }

    /// Not 0.
    pub(super) fn id(self) -> u64 {
        self.0
    }

    pub(super) fn from_id(id: u64) -> Self {
        Self(id)
    }

    /// Runs a load once it has a place. After the timeout, `load` is dropped.
    pub(super) async fn run<T>(
        self,
        limits: &Limits,
        load: impl Future<Output = Result<T, LoadError>>,
    ) -> Result<T, LoadError> {
        let place = limits.place();
        let present = Present {
            load: self,
            place: place.clone(),
        };
        let run = PRESENT.scope(present, async {
            if let Some(place) = &place {
                place.take().await?;
            }
            let _timer = limits.timer();
            load.await
        });
        match limits.timeout {
            None => run.await,
            Some(timeout) => tokio::time::timeout(timeout, run)
                .await
                .unwrap_or_else(|_| Err(LoadError::timed_out(timeout))),
        }
    }

    /// Runs a load in this thread once it has a place. The timeout ends only the wait for that.
    pub(super) fn run_blocking<T>(
        self,
        limits: &Limits,
        load: impl FnOnce() -> Result<T, LoadError>,
    ) -> Result<T, LoadError> {
        let place = limits.place();
        if let Some(place) = &place {
            block_on(place.take(), limits.timeout)??;
        }
        let _timer = limits.timer();
        PRESENT.sync_scope(Present { load: self, place }, load)
    }

    /// Notes that the load that calls this waits for `self`, until the answer is dropped. `None` if
    /// it would wait for itself.
    pub(super) fn awaited(self) -> Option<Wait> {
        let Ok(by) = PRESENT.try_with(Present::clone) else {
            return Some(Wait {
                noted: None,
                lent: None,
            });
        };
        let mut waits = waits();
        let (mut seen, mut next) = (BTreeSet::new(), vec![self]);
        while let Some(load) = next.pop() {
            if load == by.load {
                return None;
            }
            if seen.insert(load) {
                next.extend(waits.get(&load).into_iter().flatten());
            }
        }
        waits.entry(by.load).or_default().push(self);
        Some(Wait {
            noted: Some((by.load, self)),
            lent: by.place.map(Place::lend),
        })
    }
}

/// A load's wait for another.
pub(super) struct Wait {
    noted: Option<(Load, Load)>,
    lent: Option<Lent>,
}

impl Wait {
    /// Ends the wait. A load that goes on after it must [resume](Place::resume) its place.
    pub(super) fn end(mut self) -> Option<Arc<Place>> {
        self.lent.take().map(Lent::end)
    }

    /// [`end`](Self::end), in the load's thread.
    pub(super) fn end_blocking(self) {
        if let Some(place) = self.end() {
            // Without a timeout, so it cannot fail.
            let _ = block_on(place.resume(), None);
        }
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
