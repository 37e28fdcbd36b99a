//! Notes which load waits for which, so that a load that would wait for itself ends with an error.
//!
//! A loader may get other keys: a row's parent, of the same cache or another. Its load then waits
//! for theirs. If waits form a circle, no load in it ends. So each wait of a load is noted here,
//! and one that would close a circle is refused. A get that is not part of a load is in no circle:
//! nobody waits for it. It notes nothing.
//!
//! A load is known by its task, or its thread in the blocking mode. Gets in a task or thread that
//! the loader starts are not known to be part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

tokio::task_local! {
    /// The innermost load that the code is part of.
    static PRESENT: Load;
}

/// The loads that each load waits for now.
static WAITS: Mutex<Waits> = Mutex::new(BTreeMap::new());

type Waits = BTreeMap<Load, Vec<Load>>;

/// One call of a loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Load(u64);

impl Load {
    pub(crate) fn of_one() -> Self {
        // `Relaxed`: only that no two are equal matters.
        static NEXT: AtomicU64 = AtomicU64::new(2);
        Self(NEXT.fetch_add(2, Ordering::Relaxed))
    }

    /// A call of `load_many`.
    pub(crate) fn of_many() -> Self {
        Self(Self::of_one().0 | 1)
    }

    pub(crate) fn is_of_many(self) -> bool {
        self.0 & 1 == 1
    }

    /// Not 0.
    pub(crate) fn id(self) -> u64 {
        self.0
    }

    pub(crate) fn from_id(id: u64) -> Self {
        Self(id)
    }

    pub(crate) async fn scope<T>(self, load: impl Future<Output = T>) -> T {
        PRESENT.scope(self, load).await
    }

    pub(crate) fn sync_scope<T>(self, load: impl FnOnce() -> T) -> T {
        PRESENT.sync_scope(self, load)
    }

    /// Notes that the load that calls this waits for `self`, until the answer is dropped. `None` if
    /// it would wait for itself.
    pub(crate) fn awaited(self) -> Option<Wait> {
        let Ok(by) = PRESENT.try_with(|load| *load) else {
            return Some(Wait(None));
        };
        let mut waits = waits();
        let (mut seen, mut next) = (BTreeSet::new(), vec![self]);
        while let Some(load) = next.pop() {
            if load == by {
                return None;
            }
            if seen.insert(load) {
                next.extend(waits.get(&load).into_iter().flatten());
            }
        }
        waits.entry(by).or_default().push(self);
        Some(Wait(Some((by, self))))
    }
}

/// A load's wait for another.
pub(crate) struct Wait(Option<(Load, Load)>);

impl Drop for Wait {
    fn drop(&mut self) {
        let Some((by, load)) = self.0 else { return };
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
