//! Many histories of a set with generations, each from a seed: nodes that insert, fill, rebuild,
//! die and begin again, and a server that loses its last writes, all of them, or single keys:
//! chunks one by one or many at once, versions, logs, the description, the root. A request or its
//! reply may be lost, and a request may arrive twice. Between the requests of a node's pass the
//! others go on.
//!
//! The nodes are the crate's own, without their threads, and the server is a Redis. The rules:
//!
//! 1. A node that has found a row finds it always, or is open. (So does the node that inserted it.)
//! 2. A key that a node has pushed by a whole pass is found by every node that begins a pass later
//!    and ends it, or that node is open. (Not if the server lost it meanwhile.)
//! 3. At the end all nodes close, and find all rows that a whole pass has pushed, also of nodes
//!    that died, whatever the server lost. (Not if an earlier state of it was brought back, of
//!    which no node may notice that it lacks a push.) After a further rebuild they find all rows.

use super::Backup;
use crate::mock::{Mock, Request};
use crate::redis_server::{Redis, ask};
use lanebloom::ConcurrentBloom;
use lanebloom_redis::LocalSet;
use lanebloom_redis::shared::ThreadlessSet;
use redis::{Connection, RedisResult, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

const NODES: usize = 3;

/// A generator of numbers, by a seed.
struct Dice(Cell<u64>);

impl Dice {
    fn below(&self, n: u64) -> u64 {
        self.0.set(
            self.0
                .get()
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f),
        );
        (self.0.get() >> 33) % n
    }

    fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }
}

struct Node {
    handle: Arc<LocalSet>,
    is_open: Cell<bool>,
    /// Rows that it has found or inserted.
    seen: RefCell<BTreeSet<u64>>,
    /// Rows that it must find: they were pushed before its last pass began.
    inserted: RefCell<Vec<u64>>,
    source: RefCell<Option<Source>>,
    has_all: Cell<Option<u64>>,
    /// The generation of its last pass.
    reading: Cell<u64>,
    may_fill: Cell<bool>,
}

/// A source that has read the store, and has inserted some of its rows.
struct Source {
    place: u64,
    reading: u64,
    filter: Arc<ConcurrentBloom>,
    rows: Vec<u64>,
}

struct World<'a> {
    redis: &'a Redis,
    name: String,
    dice: Dice,
    store: RefCell<Vec<u64>>,
    nodes: [RefCell<Node>; NODES],
    sets: [RefCell<ThreadlessSet<lanebloom::Murmur3>>; NODES],
    /// Rows that a whole pass has pushed, since the last loss.
    pushed: RefCell<BTreeSet<u64>>,
    /// The same, whatever was lost, since a backup was brought back.
    acknowledged: RefCell<BTreeSet<u64>>,
    backups: RefCell<Vec<Backup>>,
    losses: Cell<u32>,
    /// Keys that the server lost one by one.
    gaps: Cell<u32>,
    /// Many losses, and few other faults.
    is_lossy: bool,
    /// Whether the server loses single keys.
    loses_keys: bool,
    faults: Cell<bool>,
    depth: Cell<u32>,
    history: RefCell<Vec<String>>,
}

fn build(keys: usize) -> Result<ConcurrentBloom, lanebloom::BuildError> {
    // False positives would look like rows that were found once and never again.
    let builder = ConcurrentBloom::builder().expected_keys(keys);
    builder.false_positive_rate(1e-9).build()
}

fn threadless(name: &str) -> (RefCell<Node>, RefCell<ThreadlessSet<lanebloom::Murmur3>>) {
    let set = ThreadlessSet::new(name, 200, build).unwrap();
    let node = Node {
        handle: set.local(),
        is_open: Cell::new(true),
        seen: RefCell::default(),
        inserted: RefCell::default(),
        source: RefCell::default(),
        has_all: Cell::default(),
        reading: Cell::default(),
        may_fill: Cell::default(),
    };
    (RefCell::new(node), RefCell::new(set))
}

impl<'a> World<'a> {
    fn new(redis: &'a Redis, seed: u64) -> Self {
        let name = format!("set {seed}");
        let (nodes, sets): (Vec<_>, Vec<_>) = (0..NODES).map(|_| threadless(&name)).unzip();
        Self {
            redis,
            name,
            dice: Dice(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
            store: RefCell::default(),
            nodes: nodes.try_into().ok().unwrap(),
            sets: sets.try_into().ok().unwrap(),
            pushed: RefCell::default(),
            acknowledged: RefCell::default(),
            backups: RefCell::default(),
            losses: Cell::default(),
            gaps: Cell::default(),
            is_lossy: seed.is_multiple_of(3),
            loses_keys: seed % 4 < 2,
            faults: Cell::new(true),
            depth: Cell::new(0),
            history: RefCell::default(),
        }
    }

    fn tell(&self, what: String) {
        self.history.borrow_mut().push(what);
    }

    /// Commits a row, and inserts it at a node.
    fn write(&self, node: usize) {
        let row = self.store.borrow().len() as u64;
        self.store.borrow_mut().push(row);
        self.tell(format!("{node} writes {row}"));
        let node = self.nodes[node].borrow();
        node.handle.insert(&row);
        node.inserted.borrow_mut().push(row);
        node.seen.borrow_mut().insert(row);
    }

    /// Rule 1, of all nodes.
    fn look(&self) {
        for (i, node) in self.nodes.iter().enumerate() {
            let node = node.borrow();
            for &row in &*self.store.borrow() {
                let found = node.handle.contains(&row);
                if found {
                    node.seen.borrow_mut().insert(row);
                } else if !node.is_open.get() && node.seen.borrow().contains(&row) {
                    self.fail(&format!("node {i} refuses row {row}, which it had found"));
                }
            }
        }
    }

    fn fail(&self, what: &str) -> ! {
        let history = self.history.borrow();
        let last = &history[history.len().saturating_sub(60)..];
        panic!("{}: {what}\n{}", self.name, last.join("\n"));
    }

    /// An event between the requests of a pass.
    fn something(&self) {
        if self.depth.get() < 2 && self.dice.one_in(3) {
            self.depth.set(self.depth.get() + 1);
            (0..=self.dice.below(2)).for_each(|_| self.step());
            self.depth.set(self.depth.get() - 1);
        }
    }

    fn pass(&self, i: usize, rebuild: Option<u64>) -> bool {
        let Ok(mut set) = self.sets[i].try_borrow_mut() else {
            return false;
        };
        let (inserted, has_all, must) = {
            let node = self.nodes[i].borrow();
            let inserted = node.inserted.borrow().clone();
            (inserted, node.has_all.get(), self.pushed.borrow().clone())
        };
        let losses = self.losses.get();
        let mut connection: Connection = self.redis.connection();
        let mut server = Mock::new(|request: Request<'_>| self.send(request, &mut connection));
        self.tell(format!(
            "{i} begins a pass, rebuild {rebuild:?}, has all of {has_all:?}"
        ));
        let wants = self.dice.one_in(2);
        let result = set.pass(&mut server, wants, has_all, rebuild);
        // The last two: the server lost the root in between, or the others were faster.
        let expected = ["simulated", "names no generation", "faster than this node"];
        let node = self.nodes[i].borrow();
        self.tell(format!(
            "{i} ends it: {result:?}, generation {}, reading {}, open {}",
            ThreadlessSet::newest(&node.handle).0,
            set.reading(),
            set.may_lack_keys(),
        ));
        match &result {
            Ok(may_fill) => {
                node.is_open.set(set.may_lack_keys());
                node.may_fill.set(*may_fill);
                // (A pass that fails tells its callers nothing.)
                node.reading.set(set.reading());
                if losses == self.losses.get() {
                    self.acknowledged.borrow_mut().extend(&inserted);
                    self.pushed.borrow_mut().extend(inserted);
                    for &row in &must {
                        if !node.is_open.get() && !node.handle.contains(&row) {
                            self.fail(&format!("node {i} lacks row {row}, which was pushed"));
                        }
                        node.seen.borrow_mut().extend(node.handle.contains(&row).then_some(row));
                    }
                }
            }
            Err(error) if !expected.iter().any(|expected| error.to_string().contains(expected)) => {
                self.fail(&error.to_string());
            }
            Err(_) => {}
        }
        result.is_ok()
    }

    fn send(&self, request: Request<'_>, connection: &mut Connection) -> RedisResult<Vec<Value>> {
        let lost = || Err(io::Error::other("simulated").into());
        if !self.faults.get() {
            return request.send(connection);
        }
        self.something();
        let fault = self.dice.below(if self.is_lossy { 200 } else { 24 });
        if fault == 0 {
            return lost();
        }
        let mut reply = request.send(connection)?;
        if fault == 1 {
            self.something();
            reply = request.send(connection)?;
        }
        self.something();
        if fault == 2 { lost() } else { Ok(reply) }
    }

    /// A node dies and begins again.
    fn restart(&self, i: usize) {
        if let Ok(mut set) = self.sets[i].try_borrow_mut() {
            self.tell(format!("{i} dies"));
            let (node, new) = threadless(&self.name);
            *set = new.into_inner();
            self.nodes[i].replace(node.into_inner());
        }
    }

    /// The node's source begins, goes on, or ends.
    fn fill(&self, i: usize) {
        let node = self.nodes[i].borrow();
        let mut source = node.source.borrow_mut();
        match &mut *source {
            None if node.may_fill.get() => {
                let (place, filter) = ThreadlessSet::newest(&node.handle);
                let rows = self.store.borrow().clone();
                self.tell(format!("{i} fills generation {place} with {} rows", rows.len()));
                let reading = node.reading.get();
                *source = Some(Source {
                    place,
                    reading,
                    filter,
                    rows,
                });
            }
            None => {}
            Some(running) if !running.rows.is_empty() => {
                let some = running.rows.len().div_ceil(2);
                running
                    .rows
                    .drain(..some)
                    .for_each(|row| _ = running.filter.insert(&row));
            }
            Some(running) => {
                self.tell(format!("{i} has filled generation {}", running.place));
                node.has_all.set(Some(running.reading));
                node.may_fill.set(false);
                *source = None;
            }
        }
    }

    /// The server loses everything, or its last writes.
    fn lose(&self) {
        let mut backups = self.backups.borrow_mut();
        let backup = self.dice.below(backups.len() as u64 + 1) as usize;
        self.tell(format!(
            "the server loses all since backup {backup} of {}",
            backups.len()
        ));
        let none = Backup(Vec::new());
        match backups.get(backup) {
            Some(backup) => {
                backup.bring_back(self.redis);
                self.acknowledged.borrow_mut().clear();
            }
            None => none.bring_back(self.redis),
        }
        // Later backups never were.
        let kept = if backup < backups.len() { backup + 1 } else { 0 };
        backups.truncate(kept);
        self.count_loss();
    }

    fn count_loss(&self) {
        self.losses.set(self.losses.get() + 1);
        self.pushed.borrow_mut().clear();
    }

    /// The server loses some keys, each as by an eviction, and keeps the rest.
    fn lose_keys(&self, count: u64) {
        let mut connection = self.redis.connection();
        let mut keys: Vec<String> = ask(&mut connection, &["KEYS", "*"]);
        // Chunks are many in large sets, and few here.
        if self.dice.one_in(2) {
            keys.retain(|key| key.rsplit(':').next().is_some_and(|role| role.parse::<u32>().is_ok()));
        }
        keys.sort();
        for _ in 0..count.min(keys.len() as u64) {
            let key = keys.swap_remove(self.dice.below(keys.len() as u64) as usize);
            self.tell(format!("the server loses {key}"));
            ask::<()>(&mut connection, &["DEL", &key]);
            self.gaps.set(self.gaps.get() + 1);
            // Others say which bits they are, so that nobody has what was in the chunks.
            if key.ends_with(":meta") {
                self.count_loss();
            }
        }
    }

    /// Ends leases, like ten seconds without their nodes.
    fn end_leases(&self) {
        let mut connection = self.redis.connection();
        for meta in ask::<Vec<String>>(&mut connection, &["KEYS", "*:meta"]) {
            ask::<()>(&mut connection, &["HDEL", &meta, "filler", "lease"]);
        }
    }

    fn step(&self) {
        let i = self.dice.below(NODES as u64) as usize;
        match self.dice.below(44) {
            0..10 => self.write(i),
            10..24 => _ = self.pass(i, None),
            24..32 => self.fill(i),
            32..34 => _ = self.pass(i, Some(200 + self.dice.below(3) * 100)),
            34 if !self.is_lossy => {
                self.tell(format!("{i} has too many inserts"));
                ThreadlessSet::cut_log(&self.nodes[i].borrow().handle);
            }
            35 if !self.is_lossy => self.restart(i),
            36 => {
                let mut backups = self.backups.borrow_mut();
                self.tell(format!("backup {}", backups.len()));
                backups.push(Backup::of(self.redis));
            }
            37 => self.end_leases(),
            34 | 35 if self.losses.get() < 6 && !self.backups.borrow().is_empty() => self.lose(),
            40 | 41 if self.loses_keys => self.lose_keys(1),
            42 if self.loses_keys => self.lose_keys(8),
            // Both at once: the node has no time to push again.
            43 if self.loses_keys && self.losses.get() < 3 => {
                self.restart(i);
                self.tell(String::from("the server loses all"));
                Backup(Vec::new()).bring_back(self.redis);
                self.backups.borrow_mut().clear();
                self.count_loss();
            }
            38 if !self.is_lossy && self.losses.get() < 2 && self.dice.one_in(3) => self.lose(),
            _ => {}
        }
        self.look();
    }

    /// Everything works again: all nodes close, and the last fill has found all rows.
    fn end(&self) {
        self.faults.set(false);
        self.pass(0, None);
        self.settle();
        for (i, node) in self.nodes.iter().enumerate() {
            let node = node.borrow();
            let mut rows = self.acknowledged.borrow().clone().into_iter();
            if let Some(row) = rows.find(|row| !node.handle.contains(row)) {
                self.fail(&format!("node {i} lacks row {row}, which was acknowledged"));
            }
        }
        self.pass(0, Some(300));
        self.settle();
        for (i, node) in self.nodes.iter().enumerate() {
            let node = node.borrow();
            if let Some(row) = self.store.borrow().iter().find(|row| !node.handle.contains(*row)) {
                self.fail(&format!("node {i} lacks row {row} at the end"));
            }
        }
    }

    fn settle(&self) {
        for _ in 0..40 {
            self.end_leases();
            for i in 0..NODES {
                self.pass(i, None);
                self.fill(i);
                self.look();
            }
        }
        for (i, node) in self.nodes.iter().enumerate() {
            let node = node.borrow();
            if node.is_open.get() {
                self.fail(&format!("node {i} does not close"));
            }
        }
    }
}

#[test]
fn no_row_is_refused_in_any_history() {
    let redis = server!();
    let seeds = std::env::var("LANEBLOOM_SEEDS").map_or(24, |seeds| seeds.parse().unwrap());
    let first = std::env::var("LANEBLOOM_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (mut writes, mut generations, mut losses, mut gaps) = (0, 0, 0, 0);
    for seed in first..first + seeds {
        redis.ask::<()>(&["FLUSHALL"]);
        let world = World::new(&redis, seed);
        (0..150).for_each(|_| world.step());
        world.end();
        writes += world.store.borrow().len();
        losses += world.losses.get();
        gaps += world.gaps.get();
        generations += ThreadlessSet::newest(&world.nodes[0].borrow().handle).0;
    }
    println!("{seeds} histories: {writes} rows, {generations} generations, {losses} losses, {gaps} keys lost alone");
    assert!(seeds < 8 || generations > seeds && losses > 0 && gaps > 0);
}
