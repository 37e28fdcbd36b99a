//! A set with generations, whose nodes follow a rebuild.

use super::PATIENCE;
use crate::common::{SetAtEnd, number, wait_until};
use crate::redis_server::Redis;
use lanebloom::{Absent, Bitmap, BuildError, ConcurrentBloom, Hashed, KeyHasher, Membership, Murmur3, WindowedBloom};
use lanebloom_redis::shared::Filled;
use lanebloom_redis::{SharedBloom, SharedError, SharedSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn build(keys: usize) -> Result<ConcurrentBloom, BuildError> {
    ConcurrentBloom::builder().expected_keys(keys).build()
}

fn connect(redis: &Redis, keys: usize) -> Result<SharedSet, SharedError> {
    connect_to(redis, "ids", keys)
}

fn connect_to(redis: &Redis, name: &str, keys: usize) -> Result<SharedSet, SharedError> {
    let builder = SharedBloom::builder(name).interval(Duration::from_millis(5));
    builder.timeout(PATIENCE).connect_set(redis.client(), keys, build)
}

fn fill(node: &SharedSet, rows: impl Fn() -> u64) -> Filled {
    let filled = node.fill_once(PATIENCE, |ids| {
        (0..rows()).for_each(|row| _ = ids.insert(&number(row)));
        Ok::<_, Infallible>(())
    });
    filled.unwrap()
}

fn sync(node: &SharedSet) {
    node.sync(PATIENCE).unwrap();
}

fn seen(filter: &impl Membership<Hasher = Murmur3>, keys: &[u64]) -> Vec<bool> {
    let mut found = Vec::new();
    filter.contains_batch(keys, &mut found);
    assert!(keys.iter().map(|key| filter.contains(key)).eq(found.iter().copied()));
    found
}

/// A set of one generation and of two, by key and by hash, to every place.
#[test]
fn a_set_answers_as_filters_do() {
    let redis = server!();
    let ids = connect(&redis, 5000).unwrap();
    let keys: Vec<u64> = (0..5000).map(number).collect();
    let mut hashes = vec![0; 5000];
    Murmur3::default().hash_batch(&keys, &mut hashes);
    let mut model = vec![false; 5000];
    assert_eq!(fill(&ids, || 0), Filled::Here);
    for generation in 0..2 {
        assert_eq!(ids.generation(), generation as u64);
        let some = generation * 1000..generation * 1000 + 200;
        assert!(ids.insert_batch(&keys[some.clone()]) >= 198);
        assert_eq!(ids.insert_batch(Hashed::slice(&hashes[some.clone()])), 0);
        assert!(ids.insert(&Hashed(hashes[some.end])) && !ids.insert(&keys[some.end]));
        assert_eq!(Membership::insert(&*ids, &keys[some.end + 1]), Ok(true));
        let more = &hashes[some.end..][..3];
        assert_eq!(Membership::insert_batch(&*ids, Hashed::slice(more)), Ok(1));
        model[some.start..some.end + 3].fill(true);

        let found = seen(&*ids, &keys);
        assert!(found.iter().zip(&model).all(|(found, is_there)| *found || !is_there));
        assert!(
            found
                .iter()
                .zip(&model)
                .filter(|(found, is_there)| found != is_there)
                .count()
                < 10
        );
        let (mut flags, mut words, mut absent) = (vec![true; 5000], vec![u64::MAX; 79], Vec::new());
        ids.contains_batch(Hashed::slice(&hashes), &mut *flags);
        ids.contains_batch(&keys, Bitmap(&mut words));
        ids.contains_batch(&keys, Absent(|i| absent.push(i)));
        assert_eq!(flags, found);
        assert!((0..79 * 64).all(|i| words[i / 64] >> (i % 64) & 1 == u64::from(i < 5000 && found[i])));
        assert_eq!(absent, Vec::from_iter((0..5000).filter(|&i| !found[i])));
        assert!(hashes.iter().map(|hash| ids.contains(&Hashed(*hash))).eq(found));
        ids.rebuild(5000, PATIENCE).unwrap();
    }
}

/// A closure that gets the absent keys may use the set, and even rebuild it: the lookup holds no
/// list of generations meanwhile, whose release the background thread would wait for.
#[test]
fn a_set_is_rebuilt_by_code_that_it_calls() {
    let redis = server!();
    let ids = connect(&redis, 1000).unwrap();
    for generation in 1..3 {
        let absent = Absent(|_| ids.rebuild(1000, Duration::from_secs(5)).unwrap());
        ids.contains_batch(&[number(7)], absent);
        assert_eq!(ids.generation(), generation);
    }
}

#[test]
fn nodes_follow_a_set_that_grows() {
    let redis = &server!();
    follow_a_set_that_grows("ids", redis, [redis; 4]);
}

/// Eight callers fill the set at once: one source runs. Writers go on while the set is rebuilt
/// larger, three times. No node refuses a row that was synced, or that it wrote itself. The set is
/// at `owner`, and each node is told one of `servers`.
pub(crate) fn follow_a_set_that_grows(name: &str, owner: &Redis, servers: [&Redis; 4]) {
    let nodes = servers.map(|server| connect_to(server, name, 1000).unwrap());
    let (rows, sources) = (AtomicU64::new(1000), AtomicU64::new(0));
    let source = || {
        sources.fetch_add(1, Ordering::Relaxed);
        // The others come by meanwhile.
        thread::sleep(Duration::from_millis(50));
        1000
    };
    let filled: Vec<Filled> = thread::scope(|scope| {
        let call = |node| scope.spawn(move || fill(node, source));
        let calls: Vec<_> = nodes.iter().chain(&nodes).map(call).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let here = filled.iter().filter(|filled| **filled == Filled::Here).count();
    assert_eq!((here, sources.into_inner()), (1, 1));
    nodes.iter().for_each(|node| wait_until(|| !node.may_lack_keys()));
    let (stop, opened, refused) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        let end = SetAtEnd(&stop);
        let (nodes, rows, stop, opened, refused) = (&nodes, &rows, &stop, &opened, &refused);
        scope.spawn(move || {
            for i in 0.. {
                if stop.load(Ordering::Acquire) {
                    break;
                }
                let writer = &nodes[i % 4];
                let row = rows.fetch_add(1, Ordering::SeqCst);
                writer.insert(&number(row));
                writer.insert_batch(&[number(row)]);
                sync(writer);
                nodes.iter().for_each(sync);
                for node in nodes {
                    let some = [0, row / 2, row - 1, row].map(number);
                    let mut found = [0];
                    node.contains_batch(&some, Bitmap(&mut found));
                    let alone = some.iter().filter(|row| node.contains(*row)).count();
                    opened.fetch_add(u64::from(node.may_lack_keys()), Ordering::Relaxed);
                    refused.fetch_add(u64::from(found[0] != 15 || alone != 4), Ordering::Relaxed);
                }
            }
        });
        for (generation, keys) in [(1, 2000), (2, 20_000), (3, 200_000)] {
            nodes[0].rebuild(keys, PATIENCE).unwrap();
            let filler = &nodes[generation as usize];
            wait_until(|| filler.generation() == generation && !filler.stats().is_filled);
            assert_eq!(fill(filler, || rows.load(Ordering::SeqCst)), Filled::Here);
            // After a whole pass: a node may have come to a generation and not have heard yet that
            // it is filled. If it heard of the next one first, it would open.
            for node in nodes {
                sync(node);
                assert!(node.stats().is_filled && node.generation() == generation);
            }
        }
        drop(end);
    });
    assert_eq!((opened.into_inner(), refused.into_inner()), (0, 0));
    let rows = rows.into_inner();
    // The older ones are gone, and a new node has all rows of the newest.
    let new = connect_to(servers[0], name, 1000).unwrap();
    for node in nodes.iter().chain([&new]) {
        sync(node);
        assert!(!node.may_lack_keys() && !node.is_outgrown() && node.generation() == 3);
        assert_eq!((0..rows).filter(|row| !node.contains(&number(*row))).count(), 0);
    }
    let keys: Vec<String> = owner.ask(&["KEYS", "*"]);
    let generations = keys.iter().filter(|key| key.ends_with(":meta")).count();
    let root = format!("{{{name}}}:meta");
    assert!(
        generations == 2 && keys.iter().all(|key| key.contains("}:3-") || *key == root),
        "{keys:?}"
    );
}

#[test]
fn what_does_not_fit_a_set_is_an_error() {
    let redis = server!();
    let node = connect(&redis, 1000).unwrap();
    let error = node.rebuild(1_024_001, Duration::from_millis(200)).unwrap_err();
    let says = "a generation for 1024001 keys exceeds this node's limit of 1024000 keys";
    assert_eq!(error.to_string(), says);
    // Nothing is left of it.
    sync(&node);
    drop(node);
    // A small node beside a large set.
    let node = connect(&redis, 1000).unwrap();
    node.rebuild(1_000_000, PATIENCE).unwrap();
    let error = connect(&redis, 10).unwrap_err().to_string();
    assert!(error.contains("exceeds this node's limit of 10240 keys"), "{error}");
    // Another rate, and another hasher.
    let builder = || SharedBloom::builder("ids").timeout(PATIENCE);
    let filter = |keys| ConcurrentBloom::builder().expected_keys(keys);
    let finer = builder().connect_set(redis.client(), 1000, move |keys| {
        filter(keys).false_positive_rate(1e-4).build()
    });
    let seeded = builder().connect_set(redis.client(), 1000, move |keys| filter(keys).seed(1).build());
    assert!(finer.unwrap_err().is_incompatible() && seeded.unwrap_err().is_incompatible());
    let error = builder()
        .expires_at(std::time::SystemTime::now())
        .connect_set(redis.client(), 1000, build);
    assert!(error.unwrap_err().to_string().contains("takes no expiry time"));
    // A root that nobody wrote.
    for (field, value) in [("newest", "x"), ("newest", "1"), ("keys", "-1")] {
        redis.ask::<()>(&["HSET", "{other}:meta", "newest", "7-7", "keys", "10", field, value]);
        let other = SharedBloom::builder("other").connect_set(redis.client(), 1000, build);
        let error = other.unwrap_err().to_string();
        assert!(
            error.contains("{other}:meta was not written by a shared filter"),
            "{error}"
        );
    }
}

/// Neither would find the keys of the other.
#[test]
fn a_name_is_of_one_kind_of_set() {
    let redis = server!();
    let builder = |name: &str| SharedBloom::builder(name).timeout(PATIENCE);
    let bloom = |name| builder(name).connect(redis.client(), build(1000).unwrap()).map(drop);
    let set = |name| builder(name).connect_set(redis.client(), 1000, build).map(drop);
    let window = |name| {
        let filter = WindowedBloom::builder().expected_keys(1000).window(PATIENCE);
        let filter = filter.time_of_day().build().unwrap();
        builder(name).connect_window(redis.client(), filter).map(drop)
    };
    let says = |kind: &dyn Fn(&'static str) -> Result<(), SharedError>, name, theirs, ours| {
        let error = kind(name).unwrap_err();
        assert!(error.is_incompatible(), "{error}");
        let says = format!("the set {name:?} on the server {theirs}, here it {ours}");
        assert!(error.to_string().starts_with(&says), "{error}");
    };
    let (forever, rebuilt, of_window) = ("never expires", "can be rebuilt", "is a window by 4 generations of 10s");
    bloom("a bloom").unwrap();
    says(&set, "a bloom", forever, rebuilt);
    says(&window, "a bloom", forever, of_window);
    set("a set").unwrap();
    says(&bloom, "a set", rebuilt, forever);
    says(&window, "a set", rebuilt, of_window);
    window("a window").unwrap();
    says(&bloom, "a window", of_window, forever);
    says(&set, "a window", of_window, rebuilt);
}

/// Announced, it would stop all nodes: none could go on to it, nor begin another.
#[test]
fn a_generation_that_cannot_be_built_is_not_begun() {
    let redis = server!();
    let builder = || SharedBloom::builder("ids").interval(Duration::from_millis(5));
    let node = builder().timeout(PATIENCE).connect_set(redis.client(), 1000, |keys| {
        assert!(keys != 3000, "a bug in the closure");
        let rate = if keys == 2000 { 2.0 } else { 0.01 };
        ConcurrentBloom::with_capacity(keys, rate)
    });
    let node = node.unwrap();
    fill(&node, || 100);
    let error = node.rebuild(2000, PATIENCE).unwrap_err().to_string();
    assert!(error.contains("a generation cannot be built: "), "{error}");
    assert!(node.rebuild(3000, Duration::from_millis(300)).is_err());
    sync(&node);
    assert_eq!((node.generation(), node.may_lack_keys()), (0, false));
    node.rebuild(1500, PATIENCE).unwrap();
    assert_eq!(node.generation(), 1);
}

/// Each process has a schedule of its own.
#[test]
fn of_processes_with_schedules_one_begins_a_generation() {
    let redis = server!();
    let (one, other) = (connect(&redis, 1000).unwrap(), connect(&redis, 1000).unwrap());
    let hour = Duration::from_secs(3600);
    let is_due = |node: &SharedSet, age| node.rebuild_if_older(age, 2000, PATIENCE).unwrap();
    assert!(!is_due(&one, hour) && !is_due(&other, hour));
    for generation in 1..4 {
        let [begun]: [u64; 1] = redis.ask(&["HMGET", "{ids}:meta", "begun"]);
        let begun = (begun - 3_600_000).to_string();
        redis.ask::<()>(&["HSET", "{ids}:meta", "begun", &begun]);
        let due: Vec<bool> = thread::scope(|scope| {
            let call = |node| scope.spawn(move || is_due(node, hour));
            let calls = [call(&one), call(&other), call(&one)];
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        assert!(due.contains(&true), "{due:?}");
        for node in [&one, &other] {
            assert!(!is_due(node, hour));
            sync(node);
            assert_eq!(node.generation(), generation);
        }
    }
    // A rebuild beside it is not held back by it, nor by a clock that is set back.
    one.rebuild(2000, PATIENCE).unwrap();
    sync(&other);
    redis.ask::<()>(&["HSET", "{ids}:meta", "begun", "99999999999999"]);
    assert!(is_due(&other, hour));
    sync(&one);
    assert_eq!((one.generation(), other.generation()), (5, 5));
    let error = one.rebuild_if_older(hour, 1_024_001, PATIENCE).unwrap_err();
    assert!(error.to_string().contains("exceeds this node's limit"), "{error}");
}
