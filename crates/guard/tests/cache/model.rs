//! A model of a cache, its store and the process around it. A seed draws the steps: gets in every
//! form, changes that the cache is told of in every way, rows of other processes, rebuilds, a
//! shared filter that lags, loads that are held back and loads that fail. No answer is older than
//! what the cache was told.

use crate::gets::{HOUR, builder, runtime};
use crate::misses::{Id, Set};
use lanebloom_guard::future::{GuardedCache, Loader};
use lanebloom_guard::{CacheBuilder, CacheStats, GuardFilter, Keys, Layered, LoadError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, yield_now};

/// Steps of a run. The keys are three at a time, and a new one comes after each thirty steps.
const STEPS: u64 = 420;
const KEYS: u64 = STEPS / 30 + 3;

/// A key of the store. Its row is the number of its last change.
#[derive(Default)]
struct Key {
    /// Whether the store had a row, after each change. It has none at the beginning.
    states: Vec<bool>,
    /// The last change that the cache was told of. No get returns an older row.
    told: usize,
    /// The last change after which no remembered miss counts. No get says "missing" for an older
    /// state.
    asked: usize,
    /// The numbers of changes when the loads that are running began.
    loads: Vec<usize>,
    is_in_filter: bool,
}

impl Key {
    fn now(&self) -> usize {
        self.states.len()
    }

    fn exists(&self, change: usize) -> bool {
        change > 0 && self.states[change - 1]
    }

    fn row(&self) -> Option<u64> {
        self.exists(self.now()).then_some(self.now() as u64)
    }

    fn tell(&mut self) {
        (self.told, self.asked) = (self.now(), self.now());
    }

    /// The bounds of a get that begins now.
    fn bounds(&self, asks_store: bool) -> Bounds {
        let of_loads = self.loads.iter().copied().min().unwrap_or(self.now());
        (
            self.told,
            if asks_store {
                of_loads.max(self.told)
            } else {
                self.asked
            },
        )
    }

    fn allows(&self, (told, asked): Bounds, answer: Option<u64>) -> bool {
        match answer {
            Some(row) => row as usize >= told && self.exists(row as usize),
            None => (asked..=self.now()).any(|change| !self.exists(change)),
        }
    }
}

struct World {
    rng: StdRng,
    keys: [Key; KEYS as usize],
    /// Loads that wait for their end, which may be a failure.
    held: Vec<oneshot::Sender<bool>>,
    holds: bool,
    fails: bool,
    steps: u64,
}

#[derive(Clone)]
struct Store(Arc<Mutex<World>>);

impl Store {
    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    fn random(&self, below: u64) -> u64 {
        self.world().rng.random_range(0..below)
    }

    fn id(&self) -> u64 {
        let world = &mut *self.world();
        world.steps / 30 + world.rng.random_range(0..3)
    }

    /// Rows are read first, and arrive later, all at once.
    async fn read(self, ids: Vec<u64>) -> Result<Vec<(u64, u64)>, &'static str> {
        let (mut rows, mut began) = (Vec::new(), Vec::new());
        let (fails, held) = {
            let world = &mut *self.world();
            for &id in &ids {
                let key = &mut world.keys[id as usize];
                rows.extend(key.row().map(|row| (id, row)));
                began.push((id, key.now()));
                key.loads.push(key.now());
            }
            let held = world.holds.then(|| {
                let (end, ended) = oneshot::channel();
                world.held.push(end);
                ended
            });
            (world.fails, held)
        };
        let ends_well = match held {
            Some(held) => held.await.unwrap_or(true),
            None => !fails,
        };
        for (id, began) in began {
            let loads = &mut self.world().keys[id as usize].loads;
            loads.swap_remove(loads.iter().position(|other| *other == began).unwrap());
        }
        ends_well.then_some(rows).ok_or("the store is down")
    }

    async fn read_one(self, id: u64) -> Result<Option<u64>, &'static str> {
        Ok(self.read(vec![id]).await?.pop().map(|(_, row)| row))
    }

    fn ids(&self) -> Vec<u64> {
        let world = self.world();
        (0..KEYS)
            .filter(|id| world.keys[*id as usize].row().is_some())
            .collect()
    }
}

impl Loader<u64, u64> for Store {
    type Error = &'static str;

    async fn load(&self, id: u64) -> Result<Option<u64>, &'static str> {
        self.clone().read_one(id).await
    }

    async fn load_many(&self, ids: Vec<u64>) -> Result<Vec<(u64, u64)>, &'static str> {
        self.clone().read(ids).await
    }
}

/// The least changes of a row and of a miss that a get may return.
type Bounds = (usize, usize);

/// A get, with its keys and what it may return of each.
type Got = (JoinHandle<Result<Vec<Option<u64>>, LoadError>>, Vec<(u64, Bounds)>);

struct Run<F: GuardFilter> {
    seed: u64,
    store: Store,
    cache: GuardedCache<u64, u64, F>,
    set: Option<Set>,
    lags: bool,
    /// Other processes may add rows that this one does not hear of, until a rebuild.
    is_untold: bool,
    gets: Vec<Got>,
}

impl<F: GuardFilter> Run<F> {
    fn key<T>(&self, id: u64, of: impl FnOnce(&mut Key) -> T) -> T {
        of(&mut self.store.world().keys[id as usize])
    }

    /// Runs the tasks of the cache as far as they come, and checks the gets that have ended.
    async fn settle(&mut self) {
        for _ in 0..12 {
            yield_now().await;
        }
        let seed = self.seed;
        for (got, asked) in std::mem::take(&mut self.gets) {
            if !got.is_finished() {
                self.gets.push((got, asked));
                continue;
            }
            for (answer, (id, bounds)) in got.await.unwrap().into_iter().flatten().zip(asked) {
                let key = &self.store.world().keys[id as usize];
                let states = &key.states;
                assert!(
                    key.allows(bounds, answer),
                    "seed {seed}: {answer:?} after {bounds:?}, {states:?}"
                );
            }
        }
        if self.store.random(8) > 0 {
            return;
        }
        // No look finds what a get would not return.
        let looks = (0..KEYS).filter_map(|id| Some((id, self.cache.peek(&id)?)));
        for (id, row) in looks.chain(self.cache.iter().map(|(id, row)| (*id, row))) {
            let (told, exists) = self.key(id, |key| (key.told, key.exists(row as usize)));
            let admits = self.cache.guard().check(&id).is_some();
            assert!(
                row as usize >= told && exists && admits,
                "seed {seed}: a look found {row}"
            );
        }
    }

    fn get(&mut self) {
        let ids: Vec<u64> = match self.store.random(4) {
            0 => (0..3).map(|_| self.store.id()).collect(),
            _ => vec![self.store.id()],
        };
        let is_unfilled = self.set.is_some() && !self.cache.is_ready();
        let asks_store = self.lags || self.is_untold || is_unfilled;
        let bounds = |id: &u64| (*id, self.key(*id, |key| key.bounds(asks_store)));
        let asked = ids.iter().map(bounds).collect();
        let (cache, store, form) = (self.cache.clone(), self.store.clone(), self.store.random(3));
        let get = async move {
            match (&ids[..], form) {
                ([id], 0) => cache.get(id).await.map(|row| vec![row]),
                ([id], 1) => cache.get_equivalent(&Id(*id)).await.map(|row| vec![row]),
                ([id], _) => cache.get_with(id, store.read_one(*id)).await.map(|row| vec![row]),
                _ => cache.get_many(&ids).await,
            }
        };
        self.gets.push((tokio::spawn(get), asked));
    }

    /// A change by this process: the store first, then the cache.
    fn change(&self) {
        let id = self.store.id();
        let stays = self.lags || self.store.random(2) == 0;
        let (had_row, row, is_known) = self.key(id, |key| {
            let had_row = key.row().is_some();
            key.states.push(!had_row || stays);
            (had_row, key.row(), key.is_in_filter)
        });
        let cache = &self.cache;
        match (row, self.store.random(8)) {
            (Some(row), 0) => cache.insert_value(&id, row),
            (Some(_), 1) => cache.insert_batch(&[id, id]),
            (Some(_), 2) => drop(cache.insert_on_drop(id)),
            (Some(_), 3) => cache.insert(&id),
            (Some(_), _) if !is_known => cache.insert(&id),
            (None, 0) => cache.remove(&id),
            (_, 4 | 5) => cache.invalidate(&id),
            // Remembered misses stay.
            (_, 6) if had_row => _ = cache.invalidate_entries_if(|key, _| *key == id),
            _ => {
                cache.clear();
                let world = &mut *self.store.world();
                world.keys.iter_mut().filter(|key| key.is_in_filter).for_each(Key::tell);
            }
        }
        self.key(id, |key| {
            key.tell();
            key.is_in_filter |= row.is_some();
        });
    }

    /// Another process adds a row, which may come into a shared filter. Nobody tells.
    fn add_by_other(&self) {
        let id = self.store.id();
        let is_held = self.key(id, |key| key.is_in_filter);
        if self.key(id, |key| key.row().is_none()) {
            self.key(id, |key| key.states.push(true));
            if let Some(set) = self.set.as_ref().filter(|_| !is_held) {
                GuardFilter::insert(set, &id);
                self.key(id, |key| (key.asked, key.is_in_filter) = (key.now(), true));
            }
        }
    }

    /// It reads the store, beside a change of this process. One in four fails.
    async fn rebuild(&mut self) {
        let before: Vec<usize> = (0..KEYS).map(|id| self.key(id, |key| key.now())).collect();
        let (fails, reopens) = (self.store.random(4) == 0, self.store.random(6) == 0);
        let known: BTreeSet<u64> = (0..KEYS).filter(|id| self.key(*id, |key| key.is_in_filter)).collect();
        (0..KEYS).for_each(|id| self.key(id, |key| key.is_in_filter = false));
        let read = std::cell::RefCell::new(Vec::new());
        let this = &*self;
        let source = async |keys: &mut Keys<'_, u64>| {
            *read.borrow_mut() = this.store.ids();
            keys.insert_all(read.borrow().iter().copied())?;
            this.change();
            if reopens {
                this.cache.reopen();
            }
            if fails { Err("the store is down".into()) } else { Ok(()) }
        };
        let rebuilt = this.cache.rebuild_now(source).await.is_ok();
        for id in 0..KEYS {
            let is_shared = self.set.is_some();
            self.key(id, |key| {
                key.is_in_filter |= (!rebuilt || is_shared) && known.contains(&id);
                key.is_in_filter |= (rebuilt || is_shared) && read.borrow().contains(&id);
                if rebuilt {
                    key.asked = key.asked.max(before[id as usize]);
                }
            });
        }
        self.is_untold = if rebuilt { reopens } else { self.is_untold || reopens };
    }

    async fn step(&mut self) {
        match self.store.random(20) {
            0..8 => self.get(),
            8..12 => self.change(),
            12 => self.add_by_other(),
            // A shared set has the rows of all.
            14 if self.set.is_some() && !self.cache.is_ready() => {
                self.cache.mark_ready();
                self.is_untold = false;
            }
            14 => {
                self.cache.reopen();
                self.is_untold = true;
            }
            15 | 16 if self.set.is_some() => {
                self.lags = !self.lags;
                self.set.as_ref().unwrap().lags(self.lags);
            }
            13 | 15 | 16 => self.rebuild().await,
            17 => {
                let mut world = self.store.world();
                world.holds = world.rng.random();
                world.fails = world.rng.random_bool(0.3);
            }
            _ => {
                let world = &mut *self.store.world();
                if !world.held.is_empty() {
                    let (at, ends_well) = (world.rng.random_range(0..world.held.len()), world.rng.random_bool(0.8));
                    let _ = world.held.swap_remove(at).send(ends_well);
                }
            }
        }
        self.settle().await;
    }
}

fn run<F: GuardFilter>(seed: u64, set: Option<Set>, builder: CacheBuilder<u64, u64, F>) -> CacheStats {
    let world = World {
        rng: StdRng::seed_from_u64(seed),
        keys: Default::default(),
        held: Vec::new(),
        holds: false,
        fails: false,
        steps: 0,
    };
    let store = Store(Arc::new(Mutex::new(world)));
    runtime().block_on(async {
        let cache = builder.build(store.clone()).unwrap();
        let mut run = Run {
            seed,
            store,
            cache,
            set,
            lags: false,
            is_untold: false,
            gets: Vec::new(),
        };
        for step in 0..STEPS {
            run.store.world().steps = step;
            run.step().await;
        }
        run.store.world().holds = false;
        run.store.world().held.clear();
        run.settle().await;
        assert!(run.gets.is_empty(), "a get does not end");
        run.cache.stats()
    })
}

#[test]
fn no_answer_is_older_than_what_the_cache_was_told() {
    let mut sum = [0; 6];
    for seed in 0..72 {
        let (plain, set) = (|| builder().expected_keys(100).false_positive_rate(1e-6), Set::new());
        let refreshing = || plain().refresh_after_write(Duration::ZERO);
        let stale = |builder: CacheBuilder<u64, u64>| builder.time_to_live(Duration::ZERO).stale_if_error(HOUR);
        let of_cache = set.clone();
        let shared = move |_| Ok::<_, Infallible>(of_cache.clone());
        let stats = match seed % 6 {
            0 => run(seed, None, plain()),
            1 => run(seed, None, refreshing().gather_gets(Duration::ZERO, 3)),
            2 => run(seed, None, stale(plain())),
            3 | 4 => run(seed, Some(set), plain().filter(shared)),
            _ if seed % 12 == 5 => run(seed, Some(set), refreshing().filter(shared)),
            _ => run(seed, None, plain().filter(|keys| Layered::new(keys, 1e-6))),
        };
        let counts = [
            stats.hits,
            stats.known_misses,
            stats.joined,
            stats.refreshes,
            stats.stale,
            stats.failed,
        ];
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    assert!(sum.iter().all(|sum| *sum > 10), "{sum:?}");
}
