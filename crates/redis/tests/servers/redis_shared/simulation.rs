//! Histories of shared sets of every kind: nodes that insert, fill, rebuild, die and begin again,
//! a network that loses, delays and doubles requests, and a server that loses its last writes, all
//! of them, or single keys, that is full, and that lies. Between the requests of a node's pass the
//! others go on. Each history is drawn from a seed (`LANEBLOOM_SEEDS` many, from `LANEBLOOM_SEED`
//! on); `stories.rs` has those that have a name.
//!
//! The nodes are the crate's own, without their threads, and the server is a Redis. The rules:
//!
//! 1. A node that has found a row finds it always, or is open. (So does the node that inserted it.)
//!    A closed node has all rows that were in the store before the first source began.
//! 2. A row that a node has pushed by a whole pass is found by every node that begins a pass later
//!    and ends it, or that node is open. (Not if the server lost it meanwhile.) A full server still
//!    gives.
//! 3. At the end all nodes close, and find all rows that a whole pass has pushed, also of nodes
//!    that died, whatever the server lost. (Not if an earlier state of it was brought back, of
//!    which no node may notice that it lacks a push.) They have the same bits, and so has a new
//!    node. After a further rebuild a set has all rows of the store.
//! 4. A window has a row for as long as the clock that is ahead allows, and no longer than a
//!    generation more by its own. All keys of a generation on the server end at one moment, and no
//!    earlier than its last use.
//! 5. A pass fails only by what was done to it, and says so. An answer without sense is an error.

use crate::mock::{Mock, Request, Sent};
use crate::redis_server::{Redis, ask};
use lanebloom::{ConcurrentBloom, WindowedBloom};
use lanebloom_redis::shared::{LocalSet, SharedStats, Threadless};
use lanebloom_redis::{SharedBloom, SharedError};
use redis::{Connection, RedisResult, Value};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const NODES: usize = 3;
/// Windows of an hour: by the server's clock no generation ends during a test.
const GENERATIONS: u64 = 4;
const PERIOD: u64 = 1_200_000;
const WINDOW: u64 = PERIOD * (GENERATIONS - 1);
/// In the error for a value that no node wrote, after the key's name.
const FOREIGN: &str = "was not written by a shared filter: ";
/// When the histories begin, in ms of their clocks: at the beginning of a generation.
const START: u64 = PERIOD * 1_000_000;

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

/// All that a server has, to be brought back.
struct Backup(Vec<(String, i64, Vec<u8>)>);

impl Backup {
    fn of(redis: &Redis) -> Self {
        let mut connection = redis.connection();
        let keys: Vec<String> = ask(&mut connection, &["KEYS", "*"]);
        let mut dump = |key: String| {
            let ends: i64 = ask(&mut connection, &["PEXPIRETIME", &key]);
            let dump = ask(&mut connection, &["DUMP", &key]);
            (key, ends.max(0), dump)
        };
        Self(keys.into_iter().map(&mut dump).collect())
    }

    /// At one moment: nodes go on meanwhile.
    fn bring_back(&self, redis: &Redis) {
        let mut all = redis::pipe();
        all.atomic().cmd("FLUSHALL");
        for (key, ends, dump) in &self.0 {
            all.cmd("RESTORE").arg(key).arg(ends).arg(dump).arg("ABSTTL");
        }
        all.exec(&mut redis.connection()).unwrap();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A set that is filled once.
    Bloom,
    /// A set with generations.
    Set,
    Window,
}

enum Local {
    Bloom(Arc<ConcurrentBloom>),
    Set(Arc<LocalSet>),
    Window(Arc<WindowedBloom>),
}

impl Local {
    fn insert(&self, row: u64) {
        _ = match self {
            Self::Bloom(filter) => filter.insert(&row),
            Self::Set(set) => set.insert(&row),
            Self::Window(window) => window.insert(&row),
        };
    }

    fn contains(&self, row: u64) -> bool {
        match self {
            Self::Bloom(filter) => filter.contains(&row),
            Self::Set(set) => set.contains(&row),
            Self::Window(window) => window.contains(&row),
        }
    }

    /// The filter that a source fills; a window has none.
    fn newest(&self) -> Option<Arc<ConcurrentBloom>> {
        match self {
            Self::Bloom(filter) => Some(Arc::clone(filter)),
            Self::Set(set) => Some(set.newest_filter()),
            Self::Window(_) => None,
        }
    }
}

struct Node {
    local: Local,
    threadless: Threadless,
    clock: Arc<AtomicU64>,
    /// Whether its window is astray, so that its rows are promised to nobody.
    is_astray: Cell<bool>,
    /// Rows that it has found or inserted.
    seen: RefCell<BTreeSet<u64>>,
    inserted: RefCell<BTreeSet<u64>>,
    source: RefCell<Option<Source>>,
}

impl Node {
    /// Whether nobody may rely on its refusals.
    fn is_open(&self) -> bool {
        self.threadless.may_lack_keys() || self.is_astray.get()
    }

    fn generation(&self) -> u64 {
        match &self.local {
            Local::Set(set) => set.generation(),
            _ => 0,
        }
    }

    fn now(&self) -> u64 {
        self.clock.load(Ordering::Relaxed)
    }
}

/// A source that has read the store, and has inserted some of its rows.
struct Source {
    reading: u64,
    filter: Arc<ConcurrentBloom>,
    rows: Vec<u64>,
}

/// The fate of a request.
enum Fate {
    Sent,
    /// It never arrives.
    Lost,
    /// The server gets it, and its reply never arrives.
    Unheard,
    /// The server gets it after the node has given up, perhaps after other requests.
    Late,
    Twice,
    /// Another answer comes in place of the server's, which gets nothing.
    Lie(Value),
}

pub(super) struct World<'a> {
    redis: &'a Redis,
    title: String,
    kind: Kind,
    keys: usize,
    dice: Dice,
    /// The moments at which rows were inserted, by their nodes' clocks.
    store: RefCell<Vec<u64>>,
    removed: RefCell<BTreeSet<u64>>,
    /// The rows that were there when the first source began.
    first: Cell<Option<u64>>,
    nodes: RefCell<Vec<Rc<Node>>>,
    /// Rows that a whole pass has pushed, since the last loss.
    pushed: RefCell<BTreeSet<u64>>,
    /// Rows before this one count no more, though passes go on.
    unsure: Cell<u64>,
    /// The same, whatever was lost, since a backup was brought back.
    acknowledged: RefCell<BTreeSet<u64>>,
    backups: RefCell<Vec<Backup>>,
    late: RefCell<Vec<Sent>>,
    losses: Cell<u32>,
    /// Keys that the server lost one by one.
    gaps: Cell<u32>,
    /// Many losses, and few other faults.
    is_lossy: bool,
    /// Whether the server loses single keys.
    loses_keys: bool,
    /// Whether clocks differ, by less than a generation.
    skew: Cell<u64>,
    /// Whether another program has written at the set's keys.
    is_foreign: Cell<bool>,
    faults: Cell<bool>,
    depth: Cell<u32>,
    /// Parts of the errors that passes may have.
    expected: RefCell<Vec<String>>,
    history: RefCell<Vec<String>>,
}

fn build(keys: usize) -> Result<ConcurrentBloom, lanebloom::BuildError> {
    // False positives would look like rows that were found once and never again.
    let builder = ConcurrentBloom::builder().expected_keys(keys);
    builder.false_positive_rate(1e-9).build()
}

impl<'a> World<'a> {
    /// A world without chance.
    pub(super) fn new(redis: &'a Redis, title: &str, kind: Kind, keys: usize) -> Self {
        redis.ask::<()>(&["FLUSHALL"]);
        let mut world = Self {
            redis,
            title: title.into(),
            kind,
            keys,
            dice: Dice(Cell::default()),
            store: RefCell::default(),
            removed: RefCell::default(),
            first: Cell::default(),
            nodes: RefCell::default(),
            pushed: RefCell::default(),
            unsure: Cell::default(),
            acknowledged: RefCell::default(),
            backups: RefCell::default(),
            late: RefCell::default(),
            losses: Cell::default(),
            gaps: Cell::default(),
            is_lossy: false,
            loses_keys: false,
            skew: Cell::default(),
            is_foreign: Cell::default(),
            faults: Cell::new(false),
            depth: Cell::new(0),
            // The server lost the root in between, or the others were faster.
            expected: RefCell::new(
                ["simulated", "names no generation", "faster than this node"]
                    .map(Into::into)
                    .into(),
            ),
            history: RefCell::default(),
        };
        let new = || world.new_node(Arc::new(AtomicU64::new(START)));
        world.nodes = RefCell::new((0..NODES).map(|_| new()).collect());
        world
    }

    fn of_seed(redis: &'a Redis, seed: u64) -> Self {
        let kind = [Kind::Set, Kind::Bloom, Kind::Window][seed as usize % 3];
        let keys = [200, 2000][(seed / 3) as usize % 2];
        let mut world = Self::new(redis, &format!("seed {seed}"), kind, keys);
        world.dice = Dice(Cell::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        world.is_lossy = (seed / 3).is_multiple_of(3);
        world.loses_keys = seed / 3 % 4 < 2;
        world.faults.set(true);
        if kind == Kind::Window && world.dice.one_in(2) {
            world.skew(world.dice.below(PERIOD));
        }
        world
    }

    fn new_node(&self, clock: Arc<AtomicU64>) -> Rc<Node> {
        let builder = SharedBloom::builder("ids").open_until_filled();
        let (local, threadless) = match self.kind {
            Kind::Bloom => {
                let filter = Arc::new(build(self.keys).unwrap());
                let threadless = builder.threadless(&filter).unwrap();
                (Local::Bloom(filter), threadless)
            }
            Kind::Set => {
                let (local, threadless) = builder.threadless_set(self.keys, build).unwrap();
                (Local::Set(local), threadless)
            }
            Kind::Window => {
                let its_clock = Arc::clone(&clock);
                let window = WindowedBloom::builder()
                    .expected_keys(self.keys)
                    .false_positive_rate(1e-9)
                    .window(Duration::from_millis(WINDOW))
                    .clock(move || Duration::from_millis(its_clock.load(Ordering::Relaxed)))
                    .build();
                let window = Arc::new(window.unwrap());
                let threadless = builder.threadless_window(&window).unwrap();
                (Local::Window(window), threadless)
            }
        };
        Rc::new(Node {
            local,
            threadless,
            clock,
            is_astray: Cell::default(),
            seen: RefCell::default(),
            inserted: RefCell::default(),
            source: RefCell::default(),
        })
    }

    fn node(&self, i: usize) -> Rc<Node> {
        Rc::clone(&self.nodes.borrow()[i])
    }

    fn all(&self) -> Vec<Rc<Node>> {
        self.nodes.borrow().clone()
    }

    fn tell(&self, what: String) {
        self.history.borrow_mut().push(what);
    }

    fn fail(&self, what: &str) -> ! {
        let history = self.history.borrow();
        let last = &history[history.len().saturating_sub(60)..];
        panic!("{}, {:?}: {what}\n{}", self.title, self.kind, last.join("\n"));
    }

    /// Sets the clocks apart: that of the first node by this much ahead of the last one.
    fn skew(&self, skew: u64) {
        self.skew.set(skew);
        self.node(0).clock.fetch_add(skew, Ordering::Relaxed);
        self.node(1).clock.fetch_add(skew / 2, Ordering::Relaxed);
    }

    fn advance(&self, ms: u64) {
        self.tell(format!("{ms} ms later"));
        for node in self.all() {
            node.clock.fetch_add(ms, Ordering::Relaxed);
        }
        self.look();
    }

    /// The clock that is most ahead.
    fn latest(&self) -> u64 {
        let right = self.all().into_iter().filter(|node| !node.is_astray.get());
        right.map(|node| node.now()).max().unwrap()
    }

    /// Sets a clock apart from that of node 1, by more than is allowed.
    fn set_astray(&self, i: usize, percent: i64) {
        let now = self
            .node(1)
            .now()
            .checked_add_signed(percent * PERIOD as i64 / 100)
            .unwrap();
        self.node(i).clock.store(now, Ordering::Relaxed);
        self.node(i).is_astray.set(percent != 0);
    }

    /// Whether every node that has the row still finds it.
    fn is_visible(&self, row: u64) -> bool {
        let is_young = || self.latest() < self.store.borrow()[row as usize] + WINDOW;
        !self.removed.borrow().contains(&row) && (self.kind != Kind::Window || is_young())
    }

    fn rows(&self) -> u64 {
        self.store.borrow().len() as u64
    }

    /// Commits a row, and inserts it at a node.
    fn write(&self, i: usize) {
        let row = self.rows();
        self.store.borrow_mut().push(self.node(i).now());
        self.insert(i, row);
    }

    fn insert(&self, i: usize, row: u64) {
        self.tell(format!("{i} writes {row}"));
        let node = self.node(i);
        node.local.insert(row);
        node.inserted.borrow_mut().insert(row);
        node.seen.borrow_mut().insert(row);
        if node.is_astray.get() {
            self.removed.borrow_mut().insert(row);
        }
    }

    /// Commits rows of which no node hears.
    fn commit(&self, rows: usize) {
        self.store.borrow_mut().extend(vec![0; rows]);
    }

    /// The store removes a row.
    fn remove(&self, row: u64) {
        self.tell(format!("{row} is removed"));
        self.removed.borrow_mut().insert(row);
    }

    /// Rules 1 and 4, of all nodes.
    fn look(&self) {
        let first = self.first.get().unwrap_or(0);
        for (i, node) in self.all().iter().enumerate() {
            let is_open = node.is_open();
            let mut seen = node.seen.borrow_mut();
            for row in 0..self.rows() {
                let found = node.local.contains(row);
                if self.kind == Kind::Window {
                    let time = self.store.borrow()[row as usize];
                    let is_promised = !node.is_astray.get() && !self.removed.borrow().contains(&row);
                    if found && is_promised && node.now() >= time + WINDOW + PERIOD + self.skew.get() {
                        self.fail(&format!("node {i} has row {row} for too long"));
                    }
                }
                if found {
                    seen.insert(row);
                } else if !is_open && (row < first || seen.contains(&row)) && self.is_visible(row) {
                    self.fail(&format!(
                        "node {i} refuses row {row}, which it had found or which was filled"
                    ));
                }
            }
        }
    }

    /// An event between the requests of a pass.
    fn something(&self) {
        if self.faults.get() && self.depth.get() < 2 && self.dice.one_in(3) {
            self.depth.set(self.depth.get() + 1);
            (0..=self.dice.below(2)).for_each(|_| self.step());
            self.depth.set(self.depth.get() - 1);
        }
    }

    fn draw(&self) -> Fate {
        self.something();
        if !self.faults.get() {
            return Fate::Sent;
        }
        match self.dice.below(if self.is_lossy { 200 } else { 30 }) {
            0 => Fate::Lost,
            1 => Fate::Twice,
            2 => Fate::Unheard,
            3 => Fate::Late,
            4 => {
                let lies = [Value::Nil, Value::Okay, Value::Int(7), Value::Array(vec![Value::Nil])];
                let long = Value::BulkString(vec![b'x'; 100_000]);
                let lie = self.dice.below(5) as usize;
                Fate::Lie(lies.get(lie).cloned().unwrap_or(long))
            }
            _ => Fate::Sent,
        }
    }

    fn pass(&self, i: usize) {
        _ = self.pass_amid(i, |_| self.draw());
    }

    /// A pass that fails, and says so.
    fn fails(&self, i: usize, says: &str) {
        self.expected.borrow_mut().push(says.into());
        let result = self.pass_amid(i, |_| Fate::Sent);
        self.expected.borrow_mut().pop();
        match result {
            Err(error) if error.to_string().contains(says) => {}
            result => self.fail(&format!("node {i} does not say {says:?}: {result:?}")),
        }
    }

    /// A pass of which `fate` decides the fates of the requests, which have numbers from 1.
    fn pass_amid(&self, i: usize, fate: impl Fn(usize) -> Fate) -> Result<(), SharedError> {
        let node = self.node(i);
        let inserted = node.inserted.borrow().clone();
        let must = self.pushed.borrow().clone();
        let (losses, lies) = (self.losses.get(), Cell::new(0));
        let mut connection: Connection = self.redis.connection();
        let mut server = Mock::new(|request: Request<'_>| {
            let fate = fate(request.number);
            // (Others reply in a form that a lie may have too.)
            lies.set(lies.get() + u32::from(matches!(fate, Fate::Lie(_)) && request.name() == "EVALSHA"));
            self.send(request, &mut connection, fate)
        });
        self.tell(format!("{i} begins a pass"));
        let Some(result) = node.threadless.pass(&mut server) else {
            return Ok(());
        };
        let is_open = node.is_open();
        self.tell(format!("{i} ends it: {result:?}, open {is_open}"));
        let text = result.as_ref().err().map(SharedError::to_string);
        let last = node.threadless.stats().last_error;
        if last.as_ref().map(SharedError::to_string) != text {
            self.fail(&format!("node {i} tells of another error: {last:?}"));
        }
        let text = text.unwrap_or_default();
        let is_lied_to = text.starts_with("unexpected reply to ") && text.contains(".lua: ") && text.len() < 200;
        if lies.get() > 0 && !is_lied_to {
            self.fail(&format!("node {i} believes a lie: {result:?}"));
        }
        let is_expected = |text: &str| self.expected.borrow().iter().any(|part| text.contains(part));
        if lies.get() == 0 && result.is_err() && !is_expected(&text) {
            self.fail(&text);
        }
        // A set may be refused in the middle of a rebuild.
        let is_refused = text.contains("OOM") || text.contains("read only");
        let is_pulled = result.is_ok() || is_refused && self.kind != Kind::Set;
        if is_pulled && losses == self.losses.get() {
            if result.is_ok() {
                self.acknowledged.borrow_mut().extend(&inserted);
                let sure = inserted.range(self.unsure.get()..);
                self.pushed.borrow_mut().extend(sure);
            }
            for row in must {
                if node.local.contains(row) {
                    node.seen.borrow_mut().insert(row);
                } else if !is_open && self.is_visible(row) {
                    self.fail(&format!("node {i} lacks row {row}, which was pushed"));
                }
            }
        }
        let is_astray = self.all().iter().any(|node| node.is_astray.get());
        if self.kind == Kind::Window && !self.is_foreign.get() && !is_astray {
            self.look_at_generations();
        }
        self.look();
        result
    }

    fn send(&self, request: Request<'_>, connection: &mut Connection, fate: Fate) -> RedisResult<Vec<Value>> {
        let lost = || Err(io::Error::other("simulated").into());
        let twice = match fate {
            Fate::Lost => return lost(),
            Fate::Late => {
                self.late.borrow_mut().push(request.to_sent());
                return lost();
            }
            Fate::Lie(lie) if request.name() == "EVALSHA" => return Ok(vec![lie]),
            Fate::Twice => true,
            _ => false,
        };
        let mut reply = request.send(connection)?;
        if twice {
            self.something();
            reply = request.send(connection)?;
        }
        self.something();
        if matches!(fate, Fate::Unheard) {
            lost()
        } else {
            Ok(reply)
        }
    }

    /// A request arrives that its node has given up.
    fn deliver(&self) {
        let late = self.late.borrow_mut().pop();
        if let Some(sent) = late {
            self.tell(String::from("a late request arrives"));
            // Nobody hears the reply.
            _ = sent.send(&mut self.redis.connection());
        }
    }

    /// The server's part of rule 4.
    fn look_at_generations(&self) {
        const SLOW: u64 = PERIOD / 2;
        let mut ends = std::collections::BTreeMap::<u64, Vec<u64>>::new();
        let behind = self.all().iter().map(|node| node.now()).min().unwrap();
        for key in self.server_keys() {
            let mut connection = self.redis.connection();
            let left: i64 = ask(&mut connection, &["PTTL", &key]);
            let left = u64::try_from(left).unwrap_or_else(|_| self.fail(&format!("{key} never expires")));
            let Some(number) = key.split(':').nth(1).and_then(|number| number.parse::<u64>().ok()) else {
                if !((GENERATIONS + 1) * PERIOD..=(GENERATIONS + 3) * PERIOD).contains(&left) {
                    self.fail(&format!("{key} ends in {left} ms"));
                }
                continue;
            };
            let last_use = (number + GENERATIONS) * PERIOD + PERIOD - self.skew.get();
            if left + SLOW < last_use.saturating_sub(behind) || left > (GENERATIONS + 2) * PERIOD {
                self.fail(&format!("{key} ends in {left} ms at {behind}"));
            }
            ends.entry(number)
                .or_default()
                .push(ask(&mut connection, &["PEXPIRETIME", &key]));
        }
        if let Some((number, ends)) = ends.iter().find(|(_, ends)| ends.iter().any(|end| *end != ends[0])) {
            self.fail(&format!("generation {number} ends in parts: {ends:?}"));
        }
    }

    /// A node dies and begins again.
    fn restart(&self, i: usize) {
        self.tell(format!("{i} dies"));
        let new = self.new_node(Arc::clone(&self.node(i).clock));
        new.is_astray.set(self.node(i).is_astray.get());
        self.nodes.borrow_mut()[i] = new;
    }

    /// The node's source begins, goes on, or ends.
    fn fill(&self, i: usize) {
        let node = self.node(i);
        let mut source = node.source.borrow_mut();
        match &mut *source {
            None => {
                let Some((reading, filter)) = node.threadless.turn().zip(node.local.newest()) else {
                    return;
                };
                self.tell(format!("{i} reads the store: {} rows", self.rows()));
                self.first.set(self.first.get().or(Some(self.rows())));
                let is_there = |row: &u64| !self.removed.borrow().contains(row);
                let rows = (0..self.rows()).filter(is_there).collect();
                *source = Some(Source { reading, filter, rows });
            }
            Some(running) if !running.rows.is_empty() => {
                let some = running.rows.len().div_ceil(2);
                running
                    .rows
                    .drain(..some)
                    .for_each(|row| _ = running.filter.insert(&row));
            }
            Some(running) => {
                self.tell(format!("{i} has read the store"));
                node.threadless.has_read(running.reading);
                *source = None;
            }
        }
    }

    /// The node's source does all of its work, if it has a turn: between two passes.
    fn fills(&self, i: usize) {
        self.node(i).threadless.wants(true);
        self.pass(i);
        self.read_all(i);
        self.pass(i);
        self.node(i).threadless.wants(false);
    }

    fn read_all(&self, i: usize) {
        self.fill(i);
        while self.node(i).source.borrow().is_some() {
            self.fill(i);
        }
    }

    /// A node has too many inserts.
    fn cut_log(&self, i: usize) {
        self.tell(format!("{i} has too many inserts"));
        if let Local::Set(set) = &self.node(i).local {
            set.cut_log();
        }
    }

    /// A node inserts a row of the store again and again.
    fn insert_often(&self, i: usize, times: usize) {
        self.insert(i, 0);
        if let Local::Set(set) = &self.node(i).local {
            set.insert_batch(&vec![0u64; times]);
        }
    }

    /// A pass that begins a generation.
    fn rebuild(&self, i: usize, keys: u64) {
        self.node(i).threadless.rebuild(keys);
        self.pass(i);
    }

    fn stats(&self, i: usize) -> SharedStats {
        self.node(i).threadless.stats()
    }

    fn backup(&self) {
        let mut backups = self.backups.borrow_mut();
        self.tell(format!("backup {}", backups.len()));
        backups.push(Backup::of(self.redis));
    }

    /// The server goes back to a backup, or loses everything if there are only earlier ones.
    fn lose(&self, backup: usize) {
        let mut backups = self.backups.borrow_mut();
        self.tell(format!(
            "the server loses all since backup {backup} of {}",
            backups.len()
        ));
        match backups.get(backup) {
            Some(backup) => {
                backup.bring_back(self.redis);
                self.acknowledged.borrow_mut().clear();
            }
            None => Backup(Vec::new()).bring_back(self.redis),
        }
        // Later backups never were.
        let kept = if backup < backups.len() { backup + 1 } else { 0 };
        backups.truncate(kept);
        self.count_loss();
    }

    fn lose_some(&self) {
        let backups = self.backups.borrow().len() as u64;
        self.lose(self.dice.below(backups + 1) as usize);
    }

    fn lose_all(&self) {
        self.lose(usize::MAX);
    }

    fn count_loss(&self) {
        self.is_foreign.set(false);
        self.losses.set(self.losses.get() + 1);
        self.pushed.borrow_mut().clear();
    }

    fn server_keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.redis.ask(&["KEYS", "*"]);
        keys.sort();
        keys
    }

    /// The server loses the keys that end so, and keeps the rest.
    fn delete(&self, ends: &[&str]) {
        for key in self.server_keys() {
            if ends.iter().any(|end| key.ends_with(end)) {
                self.lose_key(&key);
            }
        }
    }

    fn lose_key(&self, key: &str) {
        self.tell(format!("the server loses {key}"));
        self.redis.ask::<()>(&["DEL", key]);
        self.gaps.set(self.gaps.get() + 1);
        // Others say which bits they are, so that nobody has what was in the chunks.
        if key.ends_with(":meta") || self.kind == Kind::Window {
            self.count_loss();
        }
        // A window does not notice before the next push there, or a new node.
        if self.kind == Kind::Window {
            self.unsure.set(self.rows());
        }
    }

    /// Some keys, each as by an eviction.
    fn lose_keys(&self, count: u64) {
        let mut keys = self.server_keys();
        // Chunks are many in large sets, and few here.
        if self.dice.one_in(2) {
            keys.retain(|key| key.rsplit(':').next().is_some_and(|role| role.parse::<u32>().is_ok()));
        }
        for _ in 0..count.min(keys.len() as u64) {
            let key = keys.swap_remove(self.dice.below(keys.len() as u64) as usize);
            self.lose_key(&key);
        }
    }

    /// Ends leases, like ten seconds without their nodes.
    fn end_leases(&self) {
        for meta in self.server_keys().iter().filter(|key| key.ends_with(":meta")) {
            self.redis.ask::<()>(&["HDEL", meta, "filler", "lease"]);
        }
    }

    /// Passes may fail so meanwhile. Nothing happens between their requests.
    fn amid(&self, says: [&str; 2], during: impl FnOnce()) {
        let before = self.expected.borrow().clone();
        self.expected.borrow_mut().extend(says.map(String::from));
        self.depth.set(self.depth.get() + 2);
        during();
        self.depth.set(self.depth.get() - 2);
        self.expected.replace(before);
    }

    /// A server that is full, or takes no writes.
    fn full(&self, is_replica: bool, during: impl FnOnce()) {
        let (begin, end) = if is_replica {
            ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE")
        } else {
            ("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0")
        };
        let command = |words: &str| self.redis.ask::<()>(&words.split(' ').collect::<Vec<_>>());
        self.tell(begin.into());
        command(begin);
        self.amid(["OOM", "read only"], during);
        self.tell(end.into());
        command(end);
    }

    /// The server has something else at one of its keys, until it is emptied.
    fn has_something_else(&self) {
        let keys = self.server_keys();
        let Some(key) = keys.get(self.dice.below(keys.len().max(1) as u64) as usize) else {
            return;
        };
        let long = "x".repeat(9000);
        let commands: &[&[&str]] = match key.rsplit(':').next() {
            Some("meta") => &[
                &["HSET", key, "description", "words"],
                &["HSET", key, "head", "x"],
                &["HSET", key, "newest", "x"],
            ],
            Some("versions") => &[
                &["HSET", key, "99", "1-1"],
                &["HSET", key, "x", "1-1"],
                &["HSET", key, "0", "1"],
            ],
            Some("log") => &[&["DEL", key], &["SET", key, "x"]],
            _ => &[&["SET", key, &long, "KEEPTTL"]],
        };
        self.tell(format!("the server has something else at {key}"));
        self.redis
            .ask::<()>(commands[self.dice.below(commands.len() as u64) as usize]);
        if self.dice.one_in(3) {
            self.redis.ask::<()>(&["DEL", key]);
            self.redis.ask::<()>(&["LPUSH", key, "x"]);
            self.redis.ask::<()>(&["PEXPIRE", key, &(5 * PERIOD).to_string()]);
        }
        self.is_foreign.set(true);
        // With the name of the set, and the words of Redis.
        self.amid([FOREIGN, "Redis: "], || {
            self.restart(0);
            (0..6).for_each(|i| self.pass(i % NODES));
        });
        self.lose_all();
    }

    fn step(&self) {
        let i = self.dice.below(NODES as u64) as usize;
        let is_idle = self.depth.get() == 0;
        let is_set = self.kind == Kind::Set;
        match self.dice.below(50) {
            0..10 => self.write(i),
            10..24 => {
                self.node(i).threadless.wants(self.dice.one_in(2));
                self.pass(i);
            }
            24..32 if self.kind == Kind::Window => self.advance(self.dice.below(PERIOD / 2)),
            24..32 => self.fill(i),
            32..34 if is_set => self.rebuild(i, 200 + self.dice.below(3) * 100),
            34 if is_set && !self.is_lossy => self.cut_log(i),
            // The requests of a pass that goes on arrive late.
            35 if !self.is_lossy => self.restart(i),
            36 => self.backup(),
            37 => self.end_leases(),
            34 | 35 if self.losses.get() < 6 && !self.backups.borrow().is_empty() => self.lose_some(),
            38 if !self.is_lossy && self.losses.get() < 2 && self.dice.one_in(3) => self.lose_some(),
            39 | 40 => self.deliver(),
            41 | 42 if self.loses_keys => self.lose_keys(1),
            43 if self.loses_keys => self.lose_keys(8),
            // Both at once: the node has no time to push again.
            44 if self.loses_keys && self.losses.get() < 3 => {
                self.restart(i);
                self.lose_all();
            }
            45 if is_idle => self.full(self.dice.one_in(2), || {
                for j in [i, (i + 1) % NODES] {
                    self.write(j);
                    self.pass(j);
                }
            }),
            47 if self.rows() > 0 => self.remove(self.dice.below(self.rows())),
            46 if is_idle && self.losses.get() < 4 => self.has_something_else(),
            _ => {}
        }
        self.look();
    }

    /// Everything works again: all nodes close and agree, and the last fill has found all rows.
    pub(super) fn end(&self) {
        self.faults.set(false);
        while !self.late.borrow().is_empty() {
            self.deliver();
        }
        self.settle();
        // A window has no source, which would bring back what the server lost with a node.
        let arrived = if self.kind == Kind::Window {
            &self.pushed
        } else {
            &self.acknowledged
        };
        self.agree(&arrived.borrow(), "acknowledged");
        if self.kind == Kind::Set {
            self.rebuild(0, 300);
            self.settle();
            self.agree(&(0..self.rows()).collect(), "committed");
        }
        self.restart(1);
        self.settle();
        let inserted = self
            .all()
            .iter()
            .flat_map(|node| node.inserted.borrow().clone())
            .collect();
        self.agree(&inserted, "inserted");
    }

    fn settle(&self) {
        for _ in 0..40 {
            self.end_leases();
            let is_open = || self.all().iter().any(|node| node.threadless.may_lack_keys());
            for i in (0..NODES).chain(0..NODES) {
                self.node(i).threadless.wants(true);
                self.pass(i);
                self.fill(i);
                self.look();
            }
            if !is_open() && self.all().iter().all(|node| node.source.borrow().is_none()) {
                return;
            }
        }
        self.fail("a node does not close");
    }

    /// Rule 3.
    fn agree(&self, rows: &BTreeSet<u64>, they_are: &str) {
        let nodes = self.all();
        for row in 0..self.rows() {
            let has = nodes.iter().map(|node| node.local.contains(row)).collect::<Vec<_>>();
            let has_all = has.iter().all(|has| *has);
            if self.is_visible(row) && !has_all && (rows.contains(&row) || has.contains(&true)) {
                self.fail(&format!(
                    "nodes have row {row}: {has:?}; {they_are}: {}",
                    rows.contains(&row)
                ));
            }
        }
        // Every chunk is on the server. (A window looks only where something is new.)
        let newest: Option<String> = self.redis.ask(&["HGET", "{ids}:meta", "newest"]);
        let prefix = newest.map_or("{ids}:".into(), |newest| format!("{{ids}}:{newest}:"));
        if self.kind != Kind::Window {
            let versions: Vec<(String, String)> = self.redis.ask(&["HGETALL", &format!("{prefix}versions")]);
            for (chunk, _) in versions.iter().filter(|(_, version)| !version.is_empty()) {
                if self.redis.ask::<usize>(&["EXISTS", &format!("{prefix}{chunk}")]) == 0 {
                    self.fail(&format!("the server lacks {prefix}{chunk}"));
                }
            }
        }
        for (i, node) in nodes.iter().enumerate() {
            let absent = (1 << 40..(1 << 40) + 64).find(|row| node.local.contains(*row));
            if let Some(row) = absent {
                self.fail(&format!("node {i} has row {row}, which nobody inserted"));
            }
            if node
                .local
                .newest()
                .is_some_and(|one| *one != *nodes[0].local.newest().unwrap())
            {
                self.fail(&format!("node {i} has other bits than node 0"));
            }
        }
    }

    /// Does the steps of a script, which are separated by semicolons. `stories.rs` has such.
    pub(super) fn play(&self, script: &str) {
        for step in script.split(';') {
            let words: Vec<&str> = step.split_whitespace().collect();
            self.tell(format!("-- {}", words.join(" ")));
            self.play_step(&words);
        }
    }

    fn play_step(&self, words: &[&str]) {
        let number = |word: &str| -> u64 { word.parse().unwrap_or_else(|_| self.fail(word)) };
        let rows = |word: &str| {
            let (from, to) = word.split_once("..").unwrap_or_else(|| self.fail(word));
            number(from)..number(to)
        };
        let i = words[0].parse().unwrap_or(usize::MAX);
        match words {
            ["commit", rows] => self.commit(number(rows) as usize),
            ["remove", some] => rows(some).for_each(|row| self.remove(row)),
            ["backup"] => self.backup(),
            ["lose", "all"] => self.lose_all(),
            ["lose", backup] => self.lose(number(backup) as usize),
            ["delete", ends @ ..] => self.delete(ends),
            ["leases", "end"] => self.end_leases(),
            ["late", "arrives"] => self.deliver(),
            ["full:", steps @ ..] => self.full(false, || self.play_step(steps)),
            ["replica:", steps @ ..] => self.full(true, || self.play_step(steps)),
            ["skew", percent] => self.skew(number(percent) * PERIOD / 100),
            [_, "is", "off", "by", percent] => self.set_astray(i, percent.parse().unwrap()),
            [_, "rotates"] => {
                self.node(i).is_astray.set(true);
                if let Local::Window(window) = &self.node(i).local {
                    window.rotate();
                }
            }
            ["after", percent] => self.advance(number(percent) * PERIOD / 100),
            ["redis", command @ ..] => {
                self.is_foreign.set(true);
                self.redis.ask::<()>(command);
            }
            [_, "writes"] => self.write(i),
            [_, "writes", rows] => (0..number(rows)).for_each(|_| self.write(i)),
            [_, "writes", "again", row] => self.insert(i, number(row)),
            [_, "passes"] => self.pass(i),
            [_, "passes", "before", events @ ..] => {
                _ = self.pass_amid(i, |place| {
                    for event in events.split(|word| *word == "&") {
                        if number(event[0]) == place as u64 {
                            self.play_step(&event[1..]);
                        }
                    }
                    Fate::Sent
                });
            }
            [_, "passes", fate, at @ ..] => {
                let at: Vec<u64> = at.iter().map(|at| number(at)).collect();
                _ = self.pass_amid(i, |place| match *fate {
                    _ if !at.contains(&(place as u64)) => Fate::Sent,
                    "lost" => Fate::Lost,
                    "unheard" => Fate::Unheard,
                    "late" => Fate::Late,
                    "twice" => Fate::Twice,
                    fate => self.fail(fate),
                });
            }
            [_, "says", words @ ..] => self.fails(i, &words.join(" ")),
            [_, "dies"] => self.restart(i),
            [_, "rebuilds", keys] => self.rebuild(i, number(keys)),
            [_, "wants", "a", "rebuild"] => self.node(i).threadless.rebuild(200),
            [_, "gives", "up"] => {
                self.node(i).source.take();
                self.node(i).threadless.wants(false);
            }
            [_, "wants"] => self.node(i).threadless.wants(true),
            [_, "inserts", "too", "much"] => self.cut_log(i),
            [_, "inserts", times, "more"] => self.insert_often(i, number(times) as usize),
            [_, "reads"] => self.fill(i),
            [_, "reads", "all"] => self.read_all(i),
            [_, "fills"] => self.fills(i),
            [_, "cannot", "fill"] => assert_eq!(self.node(i).threadless.turn(), None),
            [_, "is", "open"] if self.is_open(i) => {}
            [_, "is", "closed"] if !self.is_open(i) => {}
            [_, "has", some] if rows(some).all(|row| self.has(i, row)) => {}
            [_, "lacks", some] if !rows(some).any(|row| self.has(i, row)) => {}
            [_, "is", "refused"] if self.stats(i).last_error.is_some() => {}
            [_, "calls", times] => {
                let last = Cell::new(0);
                _ = self.pass_amid(i, |at| {
                    last.set(at as u64);
                    Fate::Sent
                });
                assert_eq!(last.get(), number(times), "{}", words.join(" "));
            }
            [_, "is", "at", place] if self.node(i).generation() == number(place) => {}
            [_, "compared", times] if self.stats(i).resyncs == number(times) => {}
            [_, "failed", times] if self.stats(i).failures == number(times) => {}
            _ => self.fail(&words.join(" ")),
        }
        self.look();
    }

    fn is_open(&self, i: usize) -> bool {
        self.node(i).is_open()
    }

    fn has(&self, i: usize, row: u64) -> bool {
        self.node(i).local.contains(row)
    }
}

#[test]
fn no_row_is_refused_in_any_history() {
    let redis = server!();
    let seeds = std::env::var("LANEBLOOM_SEEDS").map_or(24, |seeds| seeds.parse().unwrap());
    let first = std::env::var("LANEBLOOM_SEED").map_or(1, |seed| seed.parse().unwrap());
    let (mut writes, mut passes, mut failures, mut losses, mut gaps) = (0, 0, 0, 0, 0);
    for seed in first..first + seeds {
        let world = World::of_seed(&redis, seed);
        (0..150).for_each(|_| world.step());
        world.end();
        let stats = world.stats(0);
        (passes, failures) = (passes + stats.passes, failures + stats.failures);
        writes += world.rows();
        losses += world.losses.get();
        gaps += world.gaps.get();
    }
    println!(
        "{seeds} histories: {writes} rows, {passes} passes and {failures} failures of a node, {losses} losses, {gaps} keys lost alone"
    );
    assert!(seeds < 8 || failures > seeds && losses > 0 && gaps > 0);
}
