//! Many tasks get, add, change and remove keys, in single gets and multi-gets, while the filter is
//! rebuilt, the caches evict, loads are slow, fail and panic, and futures are dropped. No answer is
//! older than what its asker knew.

mod common;

use lanebloom_guard::future::GuardedCache;
use lanebloom_guard::{CacheBuilder, CacheStats, GuardFilter, Keys, Layered, LoadError};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{panic, thread};
use tokio::task::{JoinSet, yield_now};

/// Keys that exist at times. Each belongs to one writer.
const KEYS: u64 = 1000;
const WRITERS: u64 = 20;
const READERS: u64 = 78;

/// The store's rows. The row of a key is its version: the number of its changes. With an odd one it
/// exists, with an even one it does not.
struct Store {
    versions: Vec<AtomicU64>,
    /// The last version of which the cache was informed: a get that begins now must not return
    /// with less.
    announced: Vec<AtomicU64>,
}

impl Store {
    fn new() -> Arc<Self> {
        let zeros = || (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Self {
            versions: zeros(),
            announced: zeros(),
        })
    }

    fn version(&self, key: u64) -> u64 {
        self.versions
            .get(key as usize)
            .map_or(0, |version| version.load(Ordering::Acquire))
    }

    fn row(&self, key: u64) -> Option<u64> {
        Some(self.version(key)).filter(|version| version % 2 == 1)
    }

    fn announced(&self, key: u64) -> u64 {
        self.announced
            .get(key as usize)
            .map_or(0, |announced| announced.load(Ordering::Acquire))
    }

    /// `announced` is from before the get.
    fn check(&self, key: u64, announced: u64, answer: Option<u64>) {
        match answer {
            Some(row) => assert!(
                row >= announced && row % 2 == 1,
                "key {key}: {row} is older than {announced}"
            ),
            // Missing at a version from `announced` on.
            None => assert!(
                announced % 2 == 0 || self.version(key) > announced,
                "key {key} is missing after {announced}"
            ),
        }
    }

    /// The next change of a key, by its writer. The store first, then `announce`.
    fn change(&self, key: u64, announce: impl FnOnce(u64)) {
        let version = self.version(key) + 1;
        self.versions[key as usize].store(version, Ordering::Release);
        announce(version);
        self.announced[key as usize].store(version, Ordering::Release);
    }

    /// All keys, each batch as of the moment when it is read.
    fn batches(self: &Arc<Self>) -> impl Iterator<Item = Result<Vec<u64>, &'static str>> + Send + use<> {
        let store = Arc::clone(self);
        let batch = move |from| (from..from + 100).filter(|key| store.row(*key).is_some()).collect();
        (0..KEYS).step_by(100).map(batch).map(Ok)
    }
}

fn random_key(rng: &mut SmallRng) -> u64 {
    // Half of them hot, some made up.
    match rng.random_range(0..4) {
        0 | 1 => rng.random_range(0..50),
        2 => rng.random_range(0..KEYS),
        _ => rng.random_range(KEYS..1 << 40),
    }
}

/// Panics of loaders are expected, and said once.
fn silence_loaders() {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref() != Some(&"a loader's bug") {
            hook(info);
        }
    }));
}

fn plain() -> CacheBuilder<u64, u64> {
    common::limit_time();
    GuardedCache::<u64, u64>::builder()
        .expected_keys(100) // outgrown
        .capacity(300)
        .time_to_live(Duration::from_millis(50))
        .miss_memory(20_000)
        .miss_time_to_live(Duration::from_millis(20))
}

/// With all that brings values in, or keeps them, in other ways.
fn refreshing() -> CacheBuilder<u64, u64> {
    plain()
        .refresh_after_write(Duration::from_millis(2))
        .time_to_live(Duration::from_millis(5))
        .stale_if_error(Duration::from_millis(100))
        .load_limit(8, 20)
        .load_timeout(Duration::from_millis(20))
}

async fn stress(gets: u64, builder: CacheBuilder<u64, u64>) -> CacheStats {
    silence_loaders();
    let store = Store::new();
    let load = {
        let store = Arc::clone(&store);
        move |key: u64| {
            let store = Arc::clone(&store);
            async move {
                let row = store.row(key);
                let luck = rand::rng().random_range(0..1000);
                match luck {
                    0..10 => return Err("the store is busy"),
                    10 => panic!("a loader's bug"),
                    11..30 => tokio::time::sleep(Duration::from_micros(500)).await,
                    30..500 => yield_now().await,
                    _ => {}
                }
                Ok(row)
            }
        }
    };
    let cache = builder.build(load).unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let (cache, store, done) = (cache.clone(), Arc::clone(&store), Arc::clone(&done));
        tasks.spawn(async move {
            let mut rng = SmallRng::seed_from_u64(writer);
            while !done.load(Ordering::Relaxed) {
                let key = rng.random_range(0..KEYS / WRITERS) * WRITERS + writer;
                let key = if rng.random() { key } else { key % 50 };
                if key % WRITERS != writer {
                    continue;
                }
                store.change(key, |version| match (version % 2, rng.random_range(0..4)) {
                    (0, 0) => cache.clear(),
                    (0, 1) => _ = cache.invalidate_entries_if(|of, _| *of == key),
                    (0, _) => cache.remove(&key),
                    (_, 0) => drop(cache.insert_on_drop(key)),
                    (_, 1) => cache.insert_batch(&[key]),
                    (_, 2) => cache.insert(&key),
                    (_, _) => cache.insert_value(&key, version),
                });
                if let Ok(answer) = cache.get(&key).await {
                    assert_eq!(answer, store.row(key), "the writer of {key} sees another row");
                }
                yield_now().await;
            }
        });
    }
    for reader in 0..READERS {
        let (cache, store) = (cache.clone(), Arc::clone(&store));
        tasks.spawn(async move {
            let mut rng = SmallRng::seed_from_u64(1000 + reader);
            let mut left = gets / READERS;
            while left > 0 {
                let keys: Vec<_> = (0..rng.random_range(1..8)).map(|_| random_key(&mut rng)).collect();
                let announced: Vec<_> = keys.iter().map(|key| store.announced(*key)).collect();
                left = left.saturating_sub(keys.len() as u64);
                let answers = async {
                    if keys.len() > 1 {
                        return cache.get_many(&keys).await;
                    }
                    Ok::<_, LoadError>(vec![cache.get(&keys[0]).await?])
                };
                let patience = rng.random_range(0..10);
                let answers = tokio::select! {
                    biased;
                    answers = answers => answers,
                    // Cancelled after a while, one in ten at once.
                    () = async { for _ in 0..patience { yield_now().await } }, if patience < 9 => continue,
                };
                for (at, answer) in answers.into_iter().flatten().enumerate() {
                    store.check(keys[at], announced[at], answer);
                }
            }
        });
    }
    // One in four fails.
    let source = {
        let store = Arc::clone(&store);
        async move |keys: &mut Keys<'_, u64>| {
            let fails = rand::rng().random_range(0..4) == 0;
            for batch in store.batches().chain(fails.then_some(Err("connection lost"))) {
                keys.insert_all(batch?)?;
                yield_now().await;
            }
            Ok(())
        }
    };
    let rebuilds = tokio::spawn(cache.rebuild_every(Duration::from_millis(3), source.clone()));
    let rebuilder = tokio::spawn({
        let (cache, done) = (cache.clone(), Arc::clone(&done));
        async move {
            while !done.load(Ordering::Relaxed) {
                let _ = cache.rebuild_now(source.clone()).await;
                yield_now().await;
            }
        }
    });
    // Writers go on until the readers have ended.
    for _ in 0..READERS {
        tasks.join_next().await.unwrap().unwrap();
    }
    done.store(true, Ordering::Relaxed);
    while let Some(result) = tasks.join_next().await {
        result.unwrap();
    }
    rebuilder.await.unwrap();
    rebuilds.abort();

    // Loads whose waiters are gone end, too.
    let began = Instant::now();
    while tokio::runtime::Handle::current().metrics().num_alive_tasks() > 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "a task is left behind");
        yield_now().await;
    }
    for key in 0..KEYS {
        let answer = loop {
            if let Ok(answer) = cache.get(&key).await {
                break answer;
            }
        };
        assert_eq!(answer, store.row(key));
    }
    let (stats, report) = (cache.stats(), cache.report());
    assert!(
        stats.hits > 0 && stats.known_misses > 0 && stats.joined > 0 && stats.failed > 0,
        "{stats:?}"
    );
    // Whether one of the schedule's own failed is chance: it takes those of the others for its own.
    assert!(stats.rebuilds > 0, "{report:?}");
    println!("{stats:?}\n{report:?}");
    stats
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_answer_is_older_than_what_its_asker_knew() {
    stress(100_000, plain()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_answer_is_older_beside_refreshes_and_stale_values() {
    let stats = stress(50_000, refreshing()).await;
    assert!(
        stats.refreshes > 0 && stats.stale > 0 && stats.evictions > 0,
        "{stats:?}"
    );
}

/// `cargo test --release -p lanebloom-guard --test stress -- --ignored --nocapture`
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "takes a minute in a release build; `ci/release.sh full` runs it"]
async fn no_answer_of_ten_million_is_older_than_what_its_asker_knew() {
    stress(10_000_000, plain()).await;
    stress(10_000_000, refreshing()).await;
}

#[test]
fn no_blocking_answer_is_older_than_what_its_asker_knew() {
    stress_blocking(plain());
}

/// Both parts of the filter have keys: each rebuild empties the one that takes inserts.
#[test]
fn no_blocking_answer_is_older_with_layers_as_the_filter() {
    stress_blocking(plain().filter(|keys| Layered::new(keys / 10, 0.01)));
}

#[test]
fn no_blocking_answer_is_older_beside_refreshes_and_stale_values() {
    let stats = stress_blocking(refreshing().load_limit(2, 1).load_timeout(Duration::from_millis(20)));
    assert!(stats.refreshes > 0 && stats.stale > 0, "{stats:?}");
}

fn stress_blocking<F: GuardFilter>(builder: CacheBuilder<u64, u64, F>) -> CacheStats {
    silence_loaders();
    let store = Store::new();
    let load = {
        let store = Arc::clone(&store);
        move |key: u64| {
            let row = store.row(key);
            match rand::rng().random_range(0..1000) {
                0..10 => return Err("the store is busy"),
                10 => panic!("a loader's bug"),
                11..500 => thread::yield_now(),
                _ => {}
            }
            Ok(row)
        }
    };
    let cache = builder.build_blocking(load).unwrap();
    let rebuilds = cache.rebuild_every(Duration::from_millis(3), {
        let store = Arc::clone(&store);
        move |keys| store.batches().try_for_each(|batch| Ok(keys.insert_all(batch?)?))
    });
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (cache, store, done) = (&cache, &store, &done);
        scope.spawn(move || {
            let mut rng = SmallRng::seed_from_u64(0);
            while !done.load(Ordering::Relaxed) {
                let key = rng.random_range(0..KEYS) % [50, KEYS][rng.random_range(0..2)];
                store.change(key, |version| match version % 2 {
                    0 => cache.remove(&key),
                    _ if rng.random() => cache.insert_value(&key, version),
                    _ => cache.insert(&key),
                });
                if let Ok(answer) = cache.get(&key) {
                    assert_eq!(answer, store.row(key));
                }
            }
        });
        let readers: Vec<_> = (1..5)
            .map(|reader| {
                scope.spawn(move || {
                    let mut rng = SmallRng::seed_from_u64(reader);
                    for _ in 0..10_000 {
                        let keys: Vec<_> = (0..rng.random_range(1..4)).map(|_| random_key(&mut rng)).collect();
                        let announced: Vec<_> = keys.iter().map(|key| store.announced(*key)).collect();
                        let answers = match keys.len() {
                            1 => cache.get(&keys[0]).map(|answer| vec![answer]),
                            _ => cache.get_many(&keys),
                        };
                        for (at, answer) in answers.into_iter().flatten().enumerate() {
                            store.check(keys[at], announced[at], answer);
                        }
                    }
                })
            })
            .collect();
        let ended: Vec<_> = readers.into_iter().map(|reader| reader.join()).collect();
        done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|reader| reader.unwrap());
    });
    rebuilds.stop();
    assert!(cache.stats().rebuilds > 0 && cache.stats().hits > 0);
    cache.stats()
}
