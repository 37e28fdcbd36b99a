//! Nodes that are processes: this program again, which takes its commands as lines.

use super::{KEYS, PATIENCE, filter, insert, missing};
use crate::redis_server::{Redis, Server, skip};
use lanebloom_redis::SharedBloom;
use std::io::{BufRead, BufReader, Lines, Write};
use std::ops::Range;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Where a process is told that it is a node, and of which server.
const NODE_OF: &str = "LANEBLOOM_TEST_NODE_OF";
/// The beginning of its answers, among the output of the test harness.
const ANSWER: &str = "node: ";

pub(super) struct Process {
    child: Child,
    orders: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts a node; nothing where this program cannot be started by itself, because it is
    /// emulated.
    pub(super) fn start(redis: &Redis) -> Option<Self> {
        let spawned = Command::new(std::env::current_exe().unwrap())
            .args(["redis_shared::processes::node_process", "--exact", "--nocapture"])
            .env(NODE_OF, redis.url())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => {
                skip(
                    "LANEBLOOM_REQUIRE_REDIS",
                    &format!("no process could be started: {error}"),
                );
                return None;
            }
        };
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        let orders = child.stdin.take().unwrap();
        let mut node = Self { child, orders, answers };
        assert_eq!(node.answer(), "ready");
        Some(node)
    }

    fn answer(&mut self) -> String {
        for line in &mut self.answers {
            // The harness begins the line with the test's name.
            if let Some((_, answer)) = line.unwrap().split_once(ANSWER) {
                return answer.to_owned();
            }
        }
        panic!("the node ended: {:?}", self.child.wait());
    }

    pub(super) fn tell(&mut self, order: &str) -> String {
        writeln!(self.orders, "{order}").unwrap();
        self.answer()
    }

    fn insert(&mut self, keys: Range<u64>) {
        assert_eq!(self.tell(&format!("insert {} {}", keys.start, keys.end)), "done");
    }

    fn missing(&mut self, keys: Range<u64>) -> u64 {
        self.tell(&format!("missing {} {}", keys.start, keys.end))
            .parse()
            .unwrap()
    }

    fn sync(&mut self) {
        assert_eq!(self.tell(&format!("sync {}", PATIENCE.as_millis())), "done");
    }

    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The node's side. Alone, it is no test.
#[test]
fn node_process() {
    let Ok(url) = std::env::var(NODE_OF) else {
        return;
    };
    let client = redis::Client::open(url).unwrap();
    let builder = SharedBloom::builder("ids").interval(Duration::from_millis(10));
    let node = builder.connect(client, filter(KEYS)).unwrap();
    let answer = |text: &str| println!("{ANSWER}{text}");
    answer("ready");
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let mut words = line.split(' ');
        let order = words.next().unwrap();
        let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        match order {
            "insert" => {
                insert(&node, numbers[0]..numbers[1]);
                answer("done");
            }
            "missing" => answer(&missing(&node, numbers[0]..numbers[1]).to_string()),
            "sync" => match node.sync(Duration::from_millis(numbers[0])) {
                Ok(()) => answer("done"),
                Err(error) => answer(&format!("failed: {error}")),
            },
            _ => panic!("{order}"),
        }
    }
}

/// With an append-only file that is written before every answer: nothing acknowledged is lost, even
/// where the node that pushed it is gone as well.
#[test]
fn a_killed_server_loses_nothing_that_was_acknowledged() {
    let server = Server::default().argument("--appendonly").argument("yes");
    let mut redis = server!(server.argument("--appendfsync").argument("always").start());
    let mut gone = server!(Process::start(&redis));
    let mut nodes: Vec<_> = (0..2).map(|_| Process::start(&redis).unwrap()).collect();
    let keys = |i: u64, from: u64, to: u64| (i * 1_000_000 + from)..(i * 1_000_000 + to);
    for (i, node) in (0..).zip(&mut nodes) {
        node.insert(keys(i, 0, 1000));
        node.sync();
    }
    gone.insert(keys(9, 0, 1000));
    gone.sync();
    // Nobody has pulled these yet, perhaps; the server has them in its file, and no other place.
    gone.insert(keys(9, 1000, 1500));
    gone.sync();
    redis.kill();
    gone.kill();
    for (i, node) in (0..).zip(&mut nodes) {
        node.insert(keys(i, 1000, 2000));
        while !node
            .tell("sync 60")
            .starts_with("failed: not done within 60ms; the last attempt: Redis: ")
        {}
    }
    redis.restart();
    for node in &mut nodes {
        node.sync();
    }
    let new = super::node(&redis);
    for node in &mut nodes {
        node.sync();
        for (i, to) in [(0, 2000), (1, 2000), (9, 1500)] {
            assert_eq!(node.missing(keys(i, 0, to)), 0);
            assert_eq!(missing(&new, keys(i, 0, to)), 0);
        }
    }
}
