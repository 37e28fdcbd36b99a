//! Two replicas that follow a feed: a simulation of their store, and of a feed that breaks, delays,
//! repeats and swaps changes. A seed decides when each step of the store, the feed and the gets
//! happens, and the clock is tokio's, which jumps.

use crate::gets::builder;
use lanebloom_guard::future::GuardedCache;
use lanebloom_guard::{BoxError, Change, Feed, Keys};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

const SILENCE: Duration = Duration::from_millis(200);
/// The longest delay of a change, but for frozen servers.
const DELAY: Duration = Duration::from_millis(40);
const IDS: u64 = 24;

type Cache = GuardedCache<u64, u64>;

/// The store, the feed's server and the two connections to it.
#[derive(Clone)]
struct World(Arc<(Mutex<State>, Notify)>);

struct State {
    rng: StdRng,
    /// The rows, each with its number of changes.
    rows: BTreeMap<u64, u64>,
    added: BTreeMap<u64, Instant>,
    connections: [Connection; 2],
    /// Nothing is delivered until then.
    frozen_until: Instant,
    /// Whether the feed drops changes and tells nobody.
    loses_silently: bool,
}

#[derive(Default)]
struct Connection {
    /// Changes on their way, with the times of their arrival. `None` tells that one was lost.
    queue: Vec<(Instant, Option<u64>)>,
    is_broken: bool,
    /// The rows that the replica must know: it has been told of them, or has listened after them.
    known: BTreeMap<u64, u64>,
    /// The change that was returned last. The replica has applied it once it asks for the next.
    returned: Option<(u64, u64)>,
    /// Whether the replica knows that it may lack rows: it has seen the break.
    knows_of_break: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let state = State {
            rng: StdRng::seed_from_u64(seed),
            rows: BTreeMap::new(),
            added: BTreeMap::new(),
            connections: Default::default(),
            frozen_until: Instant::now(),
            loses_silently: false,
        };
        Self(Arc::new((Mutex::new(state), Notify::new())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap()
    }

    fn random(&self, below: u64) -> u64 {
        self.state().rng.random_range(0..below)
    }

    /// Lets others run, for a moment or not at all.
    async fn step(&self) {
        let millis = self.random(4);
        if millis > 0 {
            sleep(Duration::from_millis(millis)).await;
        }
    }

    /// Commits a row, and tells the feed.
    fn write(&self, id: u64) {
        let mut state = self.state();
        let State {
            rng,
            rows,
            added,
            connections,
            loses_silently,
            ..
        } = &mut *state;
        *rows.entry(id).or_default() += 1;
        added.entry(id).or_insert_with(Instant::now);
        for connection in connections.iter_mut().filter(|connection| !connection.is_broken) {
            if rng.random_bool(0.1) {
                if *loses_silently {
                    continue;
                }
                connection.is_broken = true;
            }
            for _ in 0..rng.random_range(1..=2) {
                let at = Instant::now() + DELAY.mul_f64(rng.random());
                connection.queue.push((at, (!connection.is_broken).then_some(id)));
            }
        }
        drop(state);
        self.0.1.notify_waiters();
    }

    async fn read(self, id: u64) -> Result<Option<u64>, Infallible> {
        self.step().await;
        let row = self.state().rows.get(&id).copied();
        self.step().await;
        Ok(row)
    }

    /// A source that reads page by page.
    async fn ids(&self, keys: &mut Keys<'_, u64>) -> Result<(), BoxError> {
        for page in 0..4 {
            self.step().await;
            let page = page * IDS / 4..(page + 1) * IDS / 4;
            let ids: Vec<u64> = self.state().rows.range(page).map(|(id, _)| *id).collect();
            keys.insert_all(ids)?;
            if self.random(50) == 0 {
                return Err("the store failed".into());
            }
        }
        Ok(())
    }
}

struct Replica(World, usize);

impl Feed<u64> for Replica {
    async fn listen(&mut self) -> Result<(), BoxError> {
        let Self(world, replica) = self;
        {
            let connection = &mut world.state().connections[*replica];
            connection.knows_of_break = true;
            connection.is_broken = true;
        }
        world.step().await;
        if world.random(4) == 0 {
            return Err("no connection".into());
        }
        {
            let connection = &mut world.state().connections[*replica];
            *connection = Connection::default();
            connection.knows_of_break = true;
        }
        world.step().await;
        let mut state = world.state();
        let rows = state.rows.clone();
        let connection = &mut state.connections[*replica];
        // Those that were committed before the connection was there are among them.
        connection.known = rows;
        Ok(())
    }

    async fn next(&mut self) -> Result<Change<u64>, BoxError> {
        let Self(world, replica) = self;
        {
            let connection = &mut world.state().connections[*replica];
            connection.knows_of_break = false;
            if let Some((id, row)) = connection.returned.take() {
                let known = connection.known.entry(id).or_default();
                *known = row.max(*known);
            }
        }
        let alive_at = Instant::now() + SILENCE / 4;
        loop {
            let told = world.0.1.notified();
            let wait = {
                let state = &mut *world.state();
                let now = Instant::now();
                if now < state.frozen_until {
                    state.frozen_until - now
                } else {
                    let connection = &mut state.connections[*replica];
                    let due: Vec<usize> = (0..connection.queue.len())
                        .filter(|i| connection.queue[*i].0 <= now)
                        .collect();
                    if !due.is_empty() {
                        // In any order.
                        let at = due[state.rng.random_range(0..due.len())];
                        let Some(id) = connection.queue.swap_remove(at).1 else {
                            connection.knows_of_break = true;
                            return Err("the connection broke".into());
                        };
                        connection.returned = Some((id, state.rows[&id]));
                        return Ok(Change::Written(id));
                    }
                    if now >= alive_at {
                        return Ok(Change::Alive);
                    }
                    let next = connection.queue.iter().map(|(at, _)| *at).min();
                    next.map_or(alive_at, |next| next.min(alive_at)) - now
                }
            };
            let _ = tokio::time::timeout(wait, told).await;
        }
    }
}

/// A replica's wrong answers.
#[derive(Default, Debug)]
struct Wrong {
    gets: u64,
    closed: u64,
    refused: u64,
    stale: u64,
}

/// Gets of a replica, beside everything else.
async fn get(world: &World, cache: &Cache, replica: usize, wrong: &Mutex<Wrong>) {
    for _ in 0..60 {
        world.step().await;
        let id = world.random(IDS);
        let (known, committed, is_old) = {
            let state = world.state();
            let connection = &state.connections[replica];
            // A replica that knows of a break may have old values, but refuses no row.
            let committed = connection
                .knows_of_break
                .then(|| state.rows.get(&id).copied())
                .flatten();
            let known = connection.known.get(&id).copied();
            let is_old = state
                .added
                .get(&id)
                .is_some_and(|added| added.elapsed() > SILENCE + DELAY);
            (if connection.knows_of_break { None } else { known }, committed, is_old)
        };
        let is_closed = cache.is_ready();
        let row = cache.get(&id).await.unwrap();
        let mut wrong = wrong.lock().unwrap();
        wrong.gets += 1;
        wrong.closed += u64::from(is_closed);
        wrong.refused += u64::from(row.is_none() && (known.is_some() || committed.is_some() || is_old));
        wrong.stale += u64::from(row.is_some() && row < known);
    }
}

/// Two replicas for a while: half of the writes are told by the writer, as after its own commit.
async fn run(seed: u64, loses_silently: bool) -> Wrong {
    let world = World::new(seed);
    world.state().loses_silently = loses_silently;
    let caches: [Cache; 2] = std::array::from_fn(|_| {
        let store = world.clone();
        let builder = builder().expected_keys(100).false_positive_rate(1e-6);
        builder.build(move |id| store.clone().read(id)).unwrap()
    });
    let follows = [0, 1].map(|replica| {
        let source = {
            let world = world.clone();
            async move |keys: &mut Keys<'_, u64>| world.ids(keys).await
        };
        tokio::spawn(caches[replica].follow(Replica(world.clone(), replica), SILENCE, source))
    });
    let wrong = Mutex::default();
    let writes = async {
        for _ in 0..60 {
            world.step().await;
            let id = world.random(IDS);
            world.write(id);
            caches[0].insert(&id);
            if world.random(40) == 0 {
                let until = Instant::now() + Duration::from_millis(world.random(600));
                world.state().frozen_until = until;
            }
            if world.random(20) == 0 {
                sleep(Duration::from_millis(world.random(1500))).await;
            }
        }
    };
    let gets = async |replica: usize| {
        for _ in 0..8 {
            get(&world, &caches[replica], replica, &wrong).await;
            sleep(Duration::from_millis(world.random(800))).await;
        }
    };
    tokio::join!(writes, gets(0), gets(1));
    // Everything is told by now, and each replica listens and is filled.
    let quiet = async || {
        sleep(Duration::from_secs(2)).await;
        let state = world.state();
        let is_quiet = |connection: &Connection| connection.queue.is_empty() && !connection.is_broken;
        caches.iter().all(|cache| cache.is_ready()) && state.connections.iter().all(is_quiet)
    };
    while !quiet().await {}
    let rows = world.state().rows.clone();
    for (id, row) in rows {
        for cache in &caches {
            let found = cache.get(&id).await.unwrap();
            let mut wrong = wrong.lock().unwrap();
            wrong.refused += u64::from(found.is_none());
            wrong.stale += u64::from(found.is_some_and(|found| found < row));
        }
    }
    follows.iter().for_each(|follow| follow.abort());
    wrong.into_inner().unwrap()
}

fn run_all(seeds: u64, loses_silently: bool) -> Wrong {
    let mut sum = Wrong::default();
    for seed in 0..seeds {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let wrong = runtime.unwrap().block_on(run(seed, loses_silently));
        if !loses_silently {
            assert_eq!((wrong.refused, wrong.stale), (0, 0), "seed {seed}: {wrong:?}");
        }
        sum.gets += wrong.gets;
        sum.closed += wrong.closed;
        sum.refused += wrong.refused;
        sum.stale += wrong.stale;
    }
    sum
}

/// With a feed that tells when it breaks: no row is turned away that the replica was told of, that
/// is older than its connection, or that was committed while it knew of a break; none for longer
/// than the silence and the feed's delay; and no value is older than the last that it was told.
#[test]
fn replicas_that_follow_a_feed_refuse_no_row_and_have_no_older_value() {
    let sum = run_all(100, false);
    // The filters were in use.
    assert!(sum.closed > sum.gets / 4, "{sum:?}");
}

/// A promise that does not hold, and the simulation finds it: a feed loses a change and tells
/// nobody.
#[test]
fn a_feed_that_loses_silently_makes_replicas_refuse_rows() {
    let sum = run_all(20, true);
    assert!(sum.refused > 0 && sum.stale > 0, "{sum:?}");
}
