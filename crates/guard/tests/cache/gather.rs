//! Single gets that are gathered into calls of `load_many`.

use crate::gets::{Cache, builder, runtime, spawn, until};
use lanebloom_guard::future::Loader;
use lanebloom_guard::{BoxError, CacheBuilder};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::task::yield_now;

/// Rows are ten times their keys; 0 fails, and 1000 has no row. 500 and more need the row of their
/// key less one, which they get while they load; 600 needs itself.
#[derive(Clone, Default)]
struct Table {
    loads: Arc<Mutex<Vec<Vec<u64>>>>,
    singles: Arc<Mutex<Vec<u64>>>,
    cache: Arc<OnceLock<Cache>>,
}

impl Table {
    async fn row(&self, id: u64) -> Result<Option<u64>, BoxError> {
        let of = match id {
            0 => return Err("the store is busy".into()),
            1000 => return Ok(None),
            500..600 => self.cache.get().unwrap().get(&(id - 1)).await?,
            600 => self.cache.get().unwrap().get(&id).await?,
            _ => Some(0),
        };
        Ok(of.map(|of| of + 10 * id))
    }

    fn loads(&self) -> Vec<Vec<u64>> {
        self.loads.lock().unwrap().clone()
    }

    fn cache(&self, builder: CacheBuilder<u64, u64>) -> Cache {
        let cache = builder.build(self.clone()).unwrap();
        assert!(self.cache.set(cache.clone()).is_ok());
        cache
    }
}

impl Loader<u64, u64> for Table {
    type Error = BoxError;

    async fn load(&self, id: u64) -> Result<Option<u64>, BoxError> {
        self.singles.lock().unwrap().push(id);
        self.row(id).await
    }

    async fn load_many(&self, mut ids: Vec<u64>) -> Result<Vec<(u64, u64)>, BoxError> {
        ids.sort_unstable();
        self.loads.lock().unwrap().push(ids.clone());
        let mut rows = Vec::new();
        for id in ids {
            rows.extend(self.row(id).await?.map(|row| (id, row)));
        }
        Ok(rows)
    }
}

const WINDOW: Duration = Duration::from_millis(5);

#[tokio::test(start_paused = true)]
async fn the_gets_of_a_window_are_one_load() {
    for window in [WINDOW, Duration::ZERO] {
        let table = Table::default();
        let cache = table.cache(builder().gather_gets(window, 100));
        cache.insert_value(&7, 1);
        let gets = [3, 1, 2, 1000, 1, 7].map(|key| spawn(&cache, key));
        let rows = [Some(30), Some(10), Some(20), None, Some(10), Some(1)];
        for (get, row) in gets.into_iter().zip(rows) {
            assert_eq!(get.await.unwrap().unwrap(), row);
        }
        assert_eq!((table.loads(), cache.stats().loads), (vec![vec![1, 2, 3, 1000]], 4));
        // The miss is remembered, and a later window is another load.
        assert_eq!(cache.get(&1000).await.unwrap(), None);
        assert_eq!(cache.get(&4).await.unwrap(), Some(40));
        assert_eq!(table.loads()[1..], [[4]]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_batch_does_not_wait() {
    let table = Table::default();
    let cache = table.cache(builder().gather_gets(Duration::from_secs(3600), 2));
    let began = tokio::time::Instant::now();
    let gets = [1, 2, 3, 4].map(|key| spawn(&cache, key));
    for (key, get) in (1..).zip(gets) {
        assert_eq!(get.await.unwrap().unwrap(), Some(10 * key));
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(table.loads(), [[1, 2], [3, 4]]);
    // The windows of the full batches do not close this one.
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(cache.get(&5).await.unwrap(), Some(50));
    assert_eq!(began.elapsed().as_secs(), 1800 + 3600);
}

#[tokio::test(start_paused = true)]
async fn a_batch_meets_changes_errors_and_callers_that_go() {
    let table = Table::default();
    let cache = table.cache(builder().gather_gets(WINDOW, 100));
    let gets = [1, 2].map(|key| spawn(&cache, key));
    yield_now().await;
    // The first opened the window; it goes, and the batch stays.
    gets[0].abort();
    // Changed while it waits: its row comes from a later load.
    cache.insert_value(&2, 5);
    assert_eq!(cache.get(&2).await.unwrap(), Some(5));
    let [_, two] = gets;
    assert_eq!(two.await.unwrap().unwrap(), Some(20));
    assert_eq!((cache.peek(&1), cache.peek(&2)), (Some(10), Some(5)));
    // An error reaches all gets of the batch, and is not remembered.
    let gets = [0, 3].map(|key| spawn(&cache, key));
    for get in gets {
        let error = get.await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the load failed");
    }
    assert_eq!(cache.get(&3).await.unwrap(), Some(30));
}

/// Chains of keys in one batch and in several, and a key that needs itself.
#[tokio::test(start_paused = true)]
async fn loads_of_a_batch_that_get_other_keys_end() {
    let table = Table::default();
    let builder = builder().gather_gets(WINDOW, 100).load_limit(1, 100);
    let cache = table.cache(builder.load_timeout(Duration::from_secs(60)));
    let gets = [502, 501, 600].map(|key| spawn(&cache, key));
    let mut errors = 0;
    for (get, row) in gets.into_iter().zip([15_050, 10_020, 0]) {
        match get.await.unwrap() {
            Ok(found) => assert_eq!(found, Some(row)),
            Err(error) => {
                let error = format!("{:#}", ::anyhow::Error::from(error));
                assert!(error.contains("the load waits for itself"), "{error}");
                errors += 1;
            }
        }
    }
    // 600 is in the batch of all three, so its error is theirs.
    assert_eq!(errors, 3);
    for (key, row) in [(502, 499 * 10 + 5000 + 5010 + 5020), (501, 499 * 10 + 5000 + 5010)] {
        assert_eq!(cache.get(&key).await.unwrap(), Some(row));
    }
    assert!(cache.get(&600).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_loads_hold_for_batches() {
    struct Never;
    impl Loader<u64, u64> for Never {
        type Error = Infallible;
        async fn load(&self, _: u64) -> Result<Option<u64>, Infallible> {
            std::future::pending().await
        }
    }
    let builder = builder().gather_gets(WINDOW, 2).load_limit(1, 0);
    let cache = builder.load_timeout(Duration::from_secs(1)).build(Never).unwrap();
    let gets = [1, 2, 3, 4].map(|key| spawn(&cache, key));
    for (get, is_first) in gets.into_iter().zip([true, true, false, false]) {
        let error = get.await.unwrap().unwrap_err();
        assert_eq!((error.is_timeout(), error.is_refused()), (is_first, !is_first));
    }
}

/// The batch is dropped with the runtime: a get elsewhere gets an error, and the next one loads.
#[test]
fn the_end_of_a_runtime_ends_its_batches() {
    let table = Table::default();
    let cache = table.cache(builder().gather_gets(Duration::from_secs(3600), 2));
    let (dying, other) = (runtime(), runtime());
    dying.block_on(async {
        spawn(&cache, 1);
        yield_now().await;
    });
    let entered = other.enter();
    let waiting = spawn(&cache, 1);
    drop(entered);
    other.block_on(until(|| cache.stats().joined == 1));
    drop(dying);
    let error = other.block_on(waiting).unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the runtime shut down before the load ended");
    let rows = other.block_on(async { tokio::join!(cache.get(&1), cache.get(&2)) });
    assert_eq!((rows.0.unwrap(), rows.1.unwrap()), (Some(10), Some(20)));
}

#[test]
fn gathered_gets_need_what_the_error_says() {
    let builder = |max_keys| builder().expected_keys(10).gather_gets(WINDOW, max_keys);
    let single = builder(9).build(async |id| Ok::<_, Infallible>(Some(id)));
    let empty = builder(0).build(Table::default());
    let text = "gather_gets needs a loader with `load_many`; this one reads one key at a time";
    assert_eq!(single.unwrap_err().to_string(), text);
    let text = "gather_gets: a batch of at most 0 keys; allow at least 1";
    assert_eq!(empty.unwrap_err().to_string(), text);
}
