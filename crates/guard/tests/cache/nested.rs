//! Loaders that get other keys of the same cache: a row's parent.

use crate::gets::{Blocking, Cache, Either, builder, runtime};
use lanebloom_guard::future::Loader;
use lanebloom_guard::{BoxError, LoadError, sync};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// The keys 0 to 9. A key's row is the sum of its ancestors' keys and its own.
const KEYS: usize = 10;

/// The parent of each key; a row without one is its own key.
type Parents = Arc<Mutex<[Option<u64>; KEYS]>>;

/// 4 is the parent of 3 and the child of 5, and so on.
fn parents(pairs: &[(usize, u64)]) -> Parents {
    let mut parents = [None; KEYS];
    pairs.iter().for_each(|(child, parent)| parents[*child] = Some(*parent));
    Arc::new(Mutex::new(parents))
}

/// Reads rows, whose parents it gets from the cache itself.
#[derive(Clone)]
struct Rows<C>(Parents, Arc<OnceLock<C>>);

impl Rows<Cache> {
    async fn read(self, id: u64) -> Result<Option<u64>, LoadError> {
        let parent = self.0.lock().unwrap()[id as usize];
        let above = match parent {
            Some(parent) => self.1.get().unwrap().get(&parent).await?,
            None => Some(0),
        };
        Ok(above.map(|above| above + id))
    }
}

impl Loader<u64, u64> for Rows<Cache> {
    type Error = LoadError;

    async fn load(&self, id: u64) -> Result<Option<u64>, LoadError> {
        self.clone().read(id).await
    }
}

impl sync::Loader<u64, u64> for Rows<Blocking> {
    type Error = LoadError;

    fn load(&self, id: u64) -> Result<Option<u64>, LoadError> {
        let parent = self.0.lock().unwrap()[id as usize];
        let above = parent.map_or(Ok(Some(0)), |parent| self.1.get().unwrap().get(&parent))?;
        Ok(above.map(|above| above + id))
    }
}

/// Awaited and blocking; of each, one that reads single rows, and one that reads many at once by
/// the default `load_many`.
fn caches(parents: &Parents) -> impl Iterator<Item = Either> {
    [0, 1, 2, 3].into_iter().map(|kind| {
        let (awaited, blocking) = (
            Rows(parents.clone(), Arc::default()),
            Rows(parents.clone(), Arc::default()),
        );
        let (rows, blocking_rows) = (awaited.clone(), blocking.clone());
        let cache = match kind {
            0 => builder().build(move |id| rows.clone().read(id)),
            1 => builder().build(rows),
            _ => {
                let cache = match kind {
                    2 => builder().build_blocking(move |id| sync::Loader::load(&blocking_rows, id)),
                    _ => builder().build_blocking(blocking_rows),
                };
                return Either::Blocking(blocking.1.get_or_init(|| cache.unwrap()).clone());
            }
        };
        Either::Awaited(awaited.1.get_or_init(|| cache.unwrap()).clone(), runtime())
    })
}

type Gets = (Result<Option<u64>, LoadError>, [Result<Vec<Option<u64>>, LoadError>; 2]);

/// A get and two multi-gets at the same time.
fn at_once(cache: &Either, single: u64, many: &[u64], other: &[u64]) -> Gets {
    match cache {
        Either::Awaited(cache, runtime) => {
            let gets = async { tokio::join!(cache.get(&single), cache.get_many(many), cache.get_many(other)) };
            let (one, many, other) = runtime.block_on(gets);
            (one, [many, other])
        }
        Either::Blocking(cache) => thread::scope(|scope| {
            let one = scope.spawn(|| cache.get(&single));
            let other = scope.spawn(|| cache.get_many(other));
            let many = cache.get_many(many);
            (one.join().unwrap(), [many, other.join().unwrap()])
        }),
    }
}

/// 3 has the parent 4, and that has 5.
const CHAIN: [(usize, u64); 2] = [(3, 4), (4, 5)];

/// In every order: the parent may come before its child, after it, or twice.
const ORDERS: [&[u64]; 5] = [&[3, 4, 5], &[5, 4, 3], &[4, 3], &[3, 4, 3, 4], &[1, 3, 2, 4]];

fn row(id: &u64) -> Option<u64> {
    Some(if *id < 3 { *id } else { (*id..=5).sum() })
}

#[test]
fn a_row_and_its_parent_are_got_at_once() {
    for keys in ORDERS {
        for cache in caches(&parents(&CHAIN)) {
            let rows = cache.get_many(keys).unwrap();
            assert!(rows.into_iter().eq(keys.iter().map(row)), "{keys:?}");
            for key in 0..6 {
                assert_eq!(cache.get(&key).unwrap(), row(&key), "{key} after {keys:?}");
            }
        }
    }
    // Each once, where single rows are read, and in a batch what another load has got before.
    for cache in caches(&parents(&CHAIN)).step_by(2) {
        cache.get_many(&[3, 4, 5]).unwrap();
        let stats = cache.stats();
        assert_eq!((stats.loads, stats.failed), (3, 0));
    }
}

/// The load of the single get has begun when the others ask: it waits for the batch, and the batch
/// for it.
#[test]
fn rows_and_their_parents_are_got_beside_single_gets() {
    for single in (3..6).cycle().take(60) {
        for keys in ORDERS {
            for cache in caches(&parents(&CHAIN)) {
                let (one, [many, other]) = at_once(&cache, single, keys, &[5, 3]);
                assert_eq!(one.unwrap(), row(&single), "{single} beside {keys:?}");
                let many = many.unwrap();
                assert!(many.into_iter().eq(keys.iter().map(row)), "{keys:?} beside {single}");
                assert_eq!(other.unwrap(), [Some(5), Some(12)], "beside {keys:?} and {single}");
            }
        }
    }
}

/// 3 is its own parent; 4 is its child's child.
const LOOPS: [(usize, u64); 5] = [(3, 3), (4, 5), (5, 4), (6, 4), (7, 8)];

fn is_cycle(error: &LoadError) -> bool {
    let mut error: Option<&dyn std::error::Error> = Some(error);
    while let Some(this) = error {
        if this
            .to_string()
            .starts_with("the load waits for itself: its loader gets a key whose row needs this one")
        {
            return true;
        }
        error = this.source();
    }
    false
}

#[test]
fn a_row_that_needs_itself_is_an_error() {
    let loops = parents(&LOOPS);
    for cache in caches(&loops) {
        *loops.lock().unwrap() = *parents(&LOOPS).lock().unwrap();
        for key in [3, 4, 5, 6] {
            assert!(is_cycle(&cache.get(&key).unwrap_err()), "{key}");
        }
        for keys in [[7, 3], [3, 7], [4, 5], [6, 4]] {
            assert!(is_cycle(&cache.get_many(&keys).unwrap_err()), "{keys:?}");
            let (one, many) = at_once(&cache, 4, &keys, &[5, 6]);
            for error in many.map(Result::unwrap_err).iter().chain([&one.unwrap_err()]) {
                assert!(is_cycle(error), "{keys:?}: {error}");
            }
        }
        assert_eq!(cache.get(&7).unwrap(), Some(15));
        // It is not remembered.
        *loops.lock().unwrap() = [None; KEYS];
        for key in 3..7 {
            assert_eq!(cache.get(&key).unwrap(), Some(key));
        }
    }
}

/// Two loads that nobody nested: each gets the other's key once both have begun.
#[test]
fn two_threads_whose_loads_need_each_other_end() {
    let cache: Arc<OnceLock<Blocking>> = Arc::default();
    let both = Barrier::new(2);
    let read = {
        let cache = Arc::clone(&cache);
        move |id: u64| {
            both.wait();
            cache.get().unwrap().get(&(7 - id))
        }
    };
    let cache = cache.get_or_init(|| builder().build_blocking(read).unwrap());
    cache.insert_batch(&[3, 4]);
    thread::scope(|scope| {
        for thread in [3, 4].map(|key| scope.spawn(move || cache.get(&key))) {
            assert!(is_cycle(&thread.join().unwrap().unwrap_err()));
        }
    });
}

/// A worker of rayon does so: while its loader waits, the thread runs other work, which gets the
/// same key. That get cannot wait for the load below it on the stack, and does not need it.
#[test]
fn a_get_that_the_loading_thread_runs_while_it_waits_loads_for_itself() {
    let cache: Arc<OnceLock<Blocking>> = Arc::default();
    let stolen = Arc::new(Mutex::new(Vec::new()));
    let loads = Arc::new(AtomicUsize::new(0));
    let read = {
        let (cache, stolen, loads) = (Arc::clone(&cache), Arc::clone(&stolen), Arc::clone(&loads));
        move |id: u64| {
            if loads.fetch_add(1, Ordering::Relaxed) == 0 {
                let cache = cache.get().unwrap();
                let gets = [cache.get(&id), cache.get_many(&[id]).map(|rows| rows[0])];
                stolen.lock().unwrap().extend(gets);
            }
            Ok::<_, Infallible>(Some(id))
        }
    };
    let limit = Duration::from_secs(60);
    let builder = builder().load_limit(1, 100).load_timeout(limit);
    let cache = cache.get_or_init(|| builder.build_blocking(read).unwrap());
    assert_eq!(cache.get(&5).unwrap(), Some(5));
    let stolen: Vec<_> = stolen.lock().unwrap().drain(..).map(Result::unwrap).collect();
    assert_eq!((stolen, loads.load(Ordering::Relaxed)), (vec![Some(5); 2], 2));
    assert_eq!(cache.peek(&5), Some(5));
}

/// A multi-get that ends early leaves nothing behind that others could wait for.
#[tokio::test]
async fn the_keys_that_a_multi_get_did_not_come_to_are_loaded_by_others() {
    let read = async |id: u64| match id {
        0 => Err::<Option<u64>, BoxError>("the store is busy".into()),
        1 => std::future::pending().await,
        id => Ok(Some(id)),
    };
    let cache = builder().build(read).unwrap();
    cache.insert_batch(&Vec::from_iter(0..KEYS as u64));
    assert!(cache.get_many(&[2, 0, 3]).await.is_err());
    assert_eq!(cache.get(&3).await.unwrap(), Some(3));
    {
        let keys = [1, 4, 5];
        let mut many = std::pin::pin!(cache.get_many(&keys));
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(many.as_mut().poll(&mut context).is_pending());
        // Also while it is under way.
        assert_eq!(cache.get(&4).await.unwrap(), Some(4));
    }
    assert_eq!(cache.get_many(&[5, 4]).await.unwrap(), [Some(5), Some(4)]);
}
