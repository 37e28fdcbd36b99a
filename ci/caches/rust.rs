//! The ways of caches with a key that is changed while it is loaded: the rows of the table in
//! `crates/guard/README.md`. `ci/caches.sh` compiles and runs it.

use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;
use tokio::task::{LocalSet, spawn_local, yield_now};

type Row = Option<u64>;
type Got = Result<Row, ()>;

const KEY: u64 = 1;
/// The weight of a value is the value.
const CAPACITY: u64 = 100;

/// A store whose reads wait until it is let go.
#[derive(Clone)]
struct Store(Arc<Inner>);

struct Inner {
    rows: Mutex<HashMap<u64, u64>>,
    loads: Mutex<usize>,
    fails: Mutex<bool>,
    go: Semaphore,
}

impl Store {
    fn new() -> Self {
        Self(Arc::new(Inner {
            rows: Mutex::default(),
            loads: Mutex::default(),
            fails: Mutex::default(),
            go: Semaphore::new(0),
        }))
    }

    async fn load(self, key: u64) -> Got {
        *self.0.loads.lock().unwrap() += 1;
        let row = self.0.rows.lock().unwrap().get(&key).copied();
        let fails = *self.0.fails.lock().unwrap();
        self.0.go.acquire().await.unwrap().forget();
        if fails { Err(()) } else { Ok(row) }
    }

    fn write(&self, row: u64) {
        self.0.rows.lock().unwrap().insert(KEY, row);
    }

    fn let_go(&self) {
        self.0.go.add_permits(1000);
    }

    fn loads(&self) -> usize {
        *self.0.loads.lock().unwrap()
    }
}

/// Lets the other tasks run, until all of them wait.
async fn settle() {
    for _ in 0..1000 {
        yield_now().await;
    }
}

trait Cache: Clone + 'static {
    const NAME: &str;

    fn new(store: Store) -> Self;
    fn get(&self, key: u64) -> impl Future<Output = Got>;
    fn set(&self, key: u64, row: u64) -> impl Future<Output = ()>;
    fn invalidate(&self, key: u64) -> impl Future<Output = ()>;
    /// The value that is held, without a load.
    fn held(&self, key: u64) -> impl Future<Output = Row>;
}

#[derive(Clone)]
struct Guarded(lanebloom_guard::future::GuardedCache<u64, u64>);

impl Cache for Guarded {
    const NAME: &str = "`GuardedCache`";

    fn new(store: Store) -> Self {
        let load = move |key| {
            let load = store.clone().load(key);
            async { load.await.map_err(|()| "the store is down") }
        };
        let builder = lanebloom_guard::future::GuardedCache::builder();
        Self(
            builder
                .capacity(CAPACITY)
                .weigher(|_, row| *row as u32)
                .build(load)
                .unwrap(),
        )
    }
    async fn get(&self, key: u64) -> Got {
        self.0.get(&key).await.map_err(drop)
    }
    async fn set(&self, key: u64, row: u64) {
        self.0.insert_value(&key, row);
    }
    async fn invalidate(&self, key: u64) {
        self.0.invalidate(&key);
    }
    async fn held(&self, key: u64) -> Row {
        self.0.peek(&key)
    }
}

#[derive(Clone)]
struct Moka(moka::future::Cache<u64, Row>, Store);

impl Cache for Moka {
    const NAME: &str = concat!("moka ", env!("MOKA"), ", `try_get_with`");

    fn new(store: Store) -> Self {
        let builder = moka::future::Cache::builder().max_capacity(CAPACITY);
        let cache = builder.weigher(|_, row: &Row| row.unwrap_or(0) as u32).build();
        Self(cache, store)
    }
    async fn get(&self, key: u64) -> Got {
        self.0.try_get_with(key, self.1.clone().load(key)).await.map_err(drop)
    }
    async fn set(&self, key: u64, row: u64) {
        self.0.insert(key, Some(row)).await;
    }
    async fn invalidate(&self, key: u64) {
        self.0.invalidate(&key).await;
    }
    async fn held(&self, key: u64) -> Row {
        self.0.run_pending_tasks().await;
        self.0.get(&key).await.flatten()
    }
}

#[derive(Clone)]
struct Foyer(foyer_memory::Cache<u64, Row>, Store);

impl Cache for Foyer {
    const NAME: &str = concat!("foyer-memory ", env!("FOYER"), ", `get_or_fetch`");

    fn new(store: Store) -> Self {
        let builder = foyer_memory::CacheBuilder::new(CAPACITY as usize).with_shards(1);
        let builder = builder.with_weighter(|_, row: &Row| row.unwrap_or(0) as usize);
        Self(builder.build(), store)
    }
    async fn get(&self, key: u64) -> Got {
        let load = || {
            let load = self.1.clone().load(key);
            async { load.await.map_err(|()| anyhow::anyhow!("the store is down")) }
        };
        self.0
            .get_or_fetch(&key, load)
            .await
            .map(|entry| *entry.value())
            .map_err(drop)
    }
    async fn set(&self, key: u64, row: u64) {
        self.0.insert(key, Some(row));
    }
    async fn invalidate(&self, key: u64) {
        self.0.remove(&key);
    }
    async fn held(&self, key: u64) -> Row {
        self.0.get(&key).and_then(|entry| *entry.value())
    }
}

#[derive(Clone)]
struct Weigher;

impl quick_cache::Weighter<u64, Row> for Weigher {
    fn weight(&self, _: &u64, row: &Row) -> u64 {
        row.unwrap_or(0)
    }
}

#[derive(Clone)]
struct Quick(Rc<quick_cache::sync::Cache<u64, Row, Weigher>>, Store);

impl Cache for Quick {
    const NAME: &str = concat!("quick_cache ", env!("QUICK"), ", `get_or_insert_async`");

    fn new(store: Store) -> Self {
        let mut options = quick_cache::OptionsBuilder::new();
        options.estimated_items_capacity(10).weight_capacity(CAPACITY).shards(1);
        let options = options.build().unwrap();
        let (hasher, lifecycle) = Default::default();
        let cache = quick_cache::sync::Cache::with_options(options, Weigher, hasher, lifecycle);
        Self(Rc::new(cache), store)
    }
    async fn get(&self, key: u64) -> Got {
        self.0.get_or_insert_async(&key, self.1.clone().load(key)).await
    }
    async fn set(&self, key: u64, row: u64) {
        self.0.insert(key, Some(row));
    }
    async fn invalidate(&self, key: u64) {
        self.0.remove(&key);
    }
    async fn held(&self, key: u64) -> Row {
        self.0.get(&key).flatten()
    }
}

/// The state that a get returns after a load which read `before`. While it ran, the store got
/// another row, and the program set the key or invalidated it.
async fn changed<C: Cache>(before: Row, is_set: bool) -> String {
    let store = Store::new();
    let cache = C::new(store.clone());
    if let Some(row) = before {
        store.write(row);
    }
    let get = || {
        let cache = cache.clone();
        spawn_local(async move { cache.get(KEY).await })
    };
    let first = get();
    settle().await;
    assert_eq!(store.loads(), 1);
    store.write(2);
    match is_set {
        true => cache.set(KEY, 2).await,
        false => cache.invalidate(KEY).await,
    }
    let second = get();
    settle().await;
    store.let_go();
    let first = first.await.unwrap();
    second.await.unwrap().unwrap();
    let last = cache.get(KEY).await.unwrap();
    assert!([before, Some(2)].contains(&last));
    let state = if last == before { "old" } else { "new" };
    format!("{state}{}", if first.is_err() { ", the first get fails" } else { "" })
}

/// Five gets at once. Their load `fails`; otherwise, the first get is cancelled.
async fn five<C: Cache>(fails: bool) -> String {
    let store = Store::new();
    let cache = C::new(store.clone());
    store.write(1);
    *store.0.fails.lock().unwrap() = fails;
    let mut gets = Vec::new();
    for _ in 0..5 {
        let cache = cache.clone();
        gets.push(spawn_local(async move { cache.get(KEY).await }));
        settle().await;
    }
    if !fails {
        let first = gets.remove(0);
        first.abort();
        assert!(first.await.is_err());
        settle().await;
    }
    store.let_go();
    let (mut good, mut bad) = (0, 0);
    for get in gets {
        match get.await.unwrap() {
            Ok(row) => {
                assert_eq!(row, Some(1));
                good += 1;
            }
            Err(()) => bad += 1,
        }
    }
    let result = match (good, bad) {
        (4, 0) => "the others get the row",
        (0, 4) => "the others get an error",
        (0, 5) => "all get the error",
        other => panic!("{other:?}"),
    };
    let loads = store.loads();
    *store.0.fails.lock().unwrap() = false;
    assert_eq!(cache.get(KEY).await, Ok(Some(1)), "an error is not cached");
    format!("{loads} load{}, {result}", if loads == 1 { "" } else { "s" })
}

/// A value of twice the capacity for a key that is held beside four others.
async fn heavy<C: Cache>() -> String {
    let cache = C::new(Store::new());
    for key in KEY..KEY + 5 {
        cache.set(key, 10).await;
        assert_eq!(cache.held(key).await, Some(10));
    }
    cache.set(KEY, 2 * CAPACITY).await;
    let held = match cache.held(KEY).await {
        None => "not held",
        Some(10) => "the old value is held",
        Some(_) => "held",
    };
    let mut others = 0;
    for key in KEY + 1..KEY + 5 {
        others += usize::from(cache.held(key).await.is_some());
    }
    match others {
        4 => held.into(),
        0 => format!("{held}, and no other value"),
        others => format!("{held}, and {others} of 4 others"),
    }
}

async fn row<C: Cache>() {
    let cells = [
        C::NAME.into(),
        changed::<C>(None, true).await,
        changed::<C>(Some(1), true).await,
        changed::<C>(Some(1), false).await,
        five::<C>(true).await,
        five::<C>(false).await,
        heavy::<C>().await,
    ];
    println!("| {} |", cells.join(" | "));
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let rows = async {
        row::<Guarded>().await;
        row::<Moka>().await;
        row::<Foyer>().await;
        row::<Quick>().await;
    };
    LocalSet::new().run_until(rows).await;
}
