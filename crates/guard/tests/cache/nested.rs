//! Loaders that get other keys of the same cache: a row's parent.

use crate::gets::{Blocking, Cache, builder};
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

/// Reads single rows. [`Batches`] also reads many at once, by the default `load_many`.
#[derive(Clone)]
struct Rows {
    parents: Parents,
    /// The cache itself.
    cache: Arc<OnceLock<Cache>>,
}

impl Rows {
    fn new(parents: &Parents) -> Self {
        Self {
            parents: Arc::clone(parents),
            cache: Arc::default(),
        }
    }

    async fn read(self, id: u64) -> Result<Option<u64>, LoadError> {
        let parent = self.parents.lock().unwrap()[id as usize];
        let above = match parent {
            Some(parent) => self.cache.get().unwrap().get(&parent).await?,
            None => Some(0),
        };
        Ok(above.map(|above| above + id))
    }

    fn cache(&self, loader: impl Loader<u64, u64>) -> Cache {
        let cache = builder().expected_keys(100).build(loader).unwrap();
        cache.insert_batch(&Vec::from_iter(0..KEYS as u64));
        assert!(self.cache.set(cache.clone()).is_ok());
        cache
    }

    fn single(parents: &Parents) -> Cache {
        let rows = Self::new(parents);
        let read = rows.clone();
        rows.cache(move |id| read.clone().read(id))
    }

    fn batched(parents: &Parents) -> Cache {
        let rows = Self::new(parents);
        rows.cache(Batches(rows.clone()))
    }
}

struct Batches(Rows);

impl Loader<u64, u64> for Batches {
    type Error = LoadError;

    async fn load(&self, id: u64) -> Result<Option<u64>, LoadError> {
        self.0.clone().read(id).await
    }
}

/// [`Rows`] of the blocking mode.
#[derive(Clone)]
struct BlockingRows {
    parents: Parents,
    cache: Arc<OnceLock<Blocking>>,
}

impl BlockingRows {
    fn read(&self, id: u64) -> Result<Option<u64>, LoadError> {
        let parent = self.parents.lock().unwrap()[id as usize];
        let above = parent.map_or(Ok(Some(0)), |parent| self.cache.get().unwrap().get(&parent))?;
        Ok(above.map(|above| above + id))
    }

    fn cache(parents: &Parents, is_batched: bool) -> Blocking {
        let rows = Self {
            parents: Arc::clone(parents),
            cache: Arc::default(),
        };
        let (read, builder) = (rows.clone(), builder().expected_keys(100));
        let cache = if is_batched {
            builder.build_blocking(BlockingBatches(read))
        } else {
            builder.build_blocking(move |id| read.read(id))
        };
        let cache = cache.unwrap();
        cache.insert_batch(&Vec::from_iter(0..KEYS as u64));
        assert!(rows.cache.set(cache.clone()).is_ok());
        cache
    }
}

struct BlockingBatches(BlockingRows);

impl sync::Loader<u64, u64> for BlockingBatches {
    type Error = LoadError;

    fn load(&self, id: u64) -> Result<Option<u64>, LoadError> {
        self.0.read(id)
    }
}

/// 3 has the parent 4, and that has 5.
const CHAIN: [(usize, u64); 2] = [(3, 4), (4, 5)];

/// In every order: the parent may come before its child, after it, or twice.
const ORDERS: [&[u64]; 5] = [&[3, 4, 5], &[5, 4, 3], &[4, 3], &[3, 4, 3, 4], &[1, 3, 2, 4]];

fn row(id: &u64) -> Option<u64> {
    Some(if *id < 3 { *id } else { (*id..=5).sum() })
}

#[tokio::test]
async fn a_row_and_its_parent_are_got_at_once() {
    for make in [Rows::single, Rows::batched] {
        for keys in ORDERS {
            let cache = make(&parents(&CHAIN));
            let rows = cache.get_many(keys).await.unwrap();
            assert!(rows.into_iter().eq(keys.iter().map(row)), "{keys:?}");
            for key in 0..6 {
                assert_eq!(cache.get(&key).await.unwrap(), row(&key), "{key} after {keys:?}");
            }
        }
    }
    // Each once, and in a batch what another load has got before.
    let cache = Rows::single(&parents(&CHAIN));
    cache.get_many(&[3, 4, 5]).await.unwrap();
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.failed), (3, 0));
}

#[test]
fn a_row_and_its_parent_are_got_at_once_by_a_thread() {
    for is_batched in [false, true] {
        for keys in ORDERS {
            let cache = BlockingRows::cache(&parents(&CHAIN), is_batched);
            let rows = cache.get_many(keys).unwrap();
            assert!(rows.into_iter().eq(keys.iter().map(row)), "{keys:?}");
            for key in 0..6 {
                assert_eq!(cache.get(&key).unwrap(), row(&key), "{key} after {keys:?}");
            }
        }
    }
    let cache = BlockingRows::cache(&parents(&CHAIN), false);
    cache.get_many(&[3, 4, 5]).unwrap();
    let stats = cache.stats();
    assert_eq!((stats.loads, stats.failed), (3, 0));
}

/// The load of the single get has begun when the others ask: it waits for the batch, and the batch
/// for it.
#[tokio::test]
async fn rows_and_their_parents_are_got_beside_single_gets() {
    for make in [Rows::single, Rows::batched] {
        for single in 3..6 {
            for keys in ORDERS {
                let cache = make(&parents(&CHAIN));
                let (one, many, other) =
                    tokio::join!(cache.get(&single), cache.get_many(keys), cache.get_many(&[5, 3]));
                assert_eq!(one.unwrap(), row(&single), "{single} beside {keys:?}");
                assert!(
                    many.unwrap().into_iter().eq(keys.iter().map(row)),
                    "{keys:?} beside {single}"
                );
                assert_eq!(other.unwrap(), [Some(5), Some(12)], "beside {keys:?} and {single}");
            }
        }
    }
}

#[test]
fn rows_and_their_parents_are_got_beside_single_gets_by_threads() {
    for is_batched in [false, true] {
        for single in 3..6 {
            for keys in ORDERS {
                for _ in 0..20 {
                    let cache = BlockingRows::cache(&parents(&CHAIN), is_batched);
                    thread::scope(|scope| {
                        let one = scope.spawn(|| cache.get(&single));
                        let other = scope.spawn(|| cache.get_many(&[5, 3]));
                        let many = cache.get_many(keys).unwrap();
                        assert!(many.into_iter().eq(keys.iter().map(row)), "{keys:?} beside {single}");
                        assert_eq!(one.join().unwrap().unwrap(), row(&single), "{single} beside {keys:?}");
                        assert_eq!(other.join().unwrap().unwrap(), [Some(5), Some(12)]);
                    });
                }
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

#[tokio::test]
async fn a_row_that_needs_itself_is_an_error() {
    for make in [Rows::single, Rows::batched] {
        let parents = parents(&LOOPS);
        let cache = make(&parents);
        for key in [3, 4, 5, 6] {
            assert!(is_cycle(&cache.get(&key).await.unwrap_err()), "{key}");
        }
        for keys in [[7, 3], [3, 7], [4, 5], [6, 4]] {
            assert!(is_cycle(&cache.get_many(&keys).await.unwrap_err()), "{keys:?}");
            let (one, many, other) = tokio::join!(cache.get(&4), cache.get_many(&keys), cache.get_many(&[5, 6]));
            for error in [one.unwrap_err(), many.unwrap_err(), other.unwrap_err()] {
                assert!(is_cycle(&error), "{keys:?}: {error}");
            }
        }
        assert_eq!(cache.get(&7).await.unwrap(), Some(15));
        // It is not remembered.
        *parents.lock().unwrap() = [None; KEYS];
        for key in 3..7 {
            assert_eq!(cache.get(&key).await.unwrap(), Some(key));
        }
    }
}

#[test]
fn a_row_that_needs_itself_is_an_error_of_the_thread() {
    for is_batched in [false, true] {
        let parents = parents(&LOOPS);
        let cache = BlockingRows::cache(&parents, is_batched);
        for key in [3, 4, 5, 6] {
            assert!(is_cycle(&cache.get(&key).unwrap_err()), "{key}");
        }
        for keys in [[7, 3], [3, 7], [4, 5], [6, 4]] {
            assert!(is_cycle(&cache.get_many(&keys).unwrap_err()), "{keys:?}");
        }
        assert_eq!(cache.get(&7).unwrap(), Some(15));
        *parents.lock().unwrap() = [None; KEYS];
        for key in 3..7 {
            assert_eq!(cache.get(&key).unwrap(), Some(key));
        }
    }
}

/// Two loads that nobody nested: each gets the other's key once both have begun.
#[tokio::test]
async fn two_loads_that_need_each_other_end() {
    let cache: Arc<OnceLock<Cache>> = Arc::default();
    let both = Arc::new(tokio::sync::Barrier::new(2));
    let read = {
        let cache = Arc::clone(&cache);
        move |id: u64| {
            let (cache, both) = (Arc::clone(&cache), Arc::clone(&both));
            async move {
                both.wait().await;
                cache.get().unwrap().get(&(7 - id)).await
            }
        }
    };
    let cache = cache.get_or_init(|| builder().build(read).unwrap());
    cache.insert_batch(&[3, 4]);
    let (three, four) = tokio::join!(cache.get(&3), cache.get(&4));
    assert!(is_cycle(&three.unwrap_err()) && is_cycle(&four.unwrap_err()));
}

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
