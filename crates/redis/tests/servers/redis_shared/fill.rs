//! One node fills a set, and the others wait for it.

use super::processes::Process;
use super::{Backup, KEYS, PATIENCE, builder, filter, insert, missing, sync};
use crate::common::{number, wait_until};
use crate::redis_server::Redis;
use lanebloom::ConcurrentBloom;
use lanebloom_redis::shared::Filled;
use lanebloom_redis::{SharedBloom, SharedError};
use std::convert::Infallible;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// A node that exchanges often, and may lack keys until the set is filled.
fn open_node(redis: &Redis) -> SharedBloom {
    open_node_within(redis, PATIENCE)
}

fn open_node_within(redis: &Redis, timeout: Duration) -> SharedBloom {
    let builder = builder().interval(Duration::from_millis(5)).timeout(timeout);
    builder
        .open_until_filled()
        .connect(redis.client(), filter(KEYS))
        .unwrap()
}

fn insert_all(filter: &ConcurrentBloom) -> Result<(), Infallible> {
    (0..5000).for_each(|key| _ = filter.insert(&number(key)));
    Ok(())
}

fn fill(node: &SharedBloom) -> Result<Filled, SharedError> {
    node.fill_once(PATIENCE, insert_all)
}

/// Waits until the node has a filled set, and checks at every look that it says so no earlier than
/// it has all keys.
fn closes_with_all_keys(node: &SharedBloom) {
    wait_until(|| {
        let is_open = node.may_lack_keys();
        // (The order matters: keys that come after the look do not count.)
        let missing = missing(node, 0..5000);
        assert!(is_open || missing == 0, "closed without {missing} keys");
        !is_open
    });
    assert!(node.stats().is_filled);
}

fn fields(redis: &Redis) -> Vec<Option<String>> {
    redis.ask(&["HMGET", "{ids}:meta", "filled", "filler", "lease"])
}

#[test]
fn one_node_fills_and_the_others_are_told() {
    let redis = &server!();
    let nodes: Vec<_> = (0..4).map(|_| open_node(redis)).collect();
    assert!(nodes.iter().all(SharedBloom::may_lack_keys));
    let (sources, begin) = (AtomicUsize::new(0), Barrier::new(2 * nodes.len()));
    let filled: Vec<Filled> = thread::scope(|scope| {
        // Each node by two threads.
        let calls = nodes.iter().chain(&nodes).map(|node| {
            let (sources, begin) = (&sources, &begin);
            scope.spawn(move || {
                begin.wait();
                let filled = node.fill_once(PATIENCE, |ids| {
                    sources.fetch_add(1, Ordering::Relaxed);
                    // The others come by meanwhile.
                    thread::sleep(Duration::from_millis(50));
                    insert_all(ids)
                });
                filled.unwrap()
            })
        });
        let calls: Vec<_> = calls.collect();
        nodes.iter().for_each(closes_with_all_keys);
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    assert_eq!(sources.into_inner(), 1);
    assert_eq!(filled.iter().filter(|filled| **filled == Filled::Here).count(), 1);
    assert_eq!(nodes.iter().map(|node| node.stats().fills).sum::<u64>(), 1);
    // A new node is told when it connects, and the lease is over.
    let new = open_node(redis);
    assert!(!new.may_lack_keys());
    assert_eq!(missing(&new, 0..5000), 0);
    assert_eq!(fill(&new).unwrap(), Filled::Elsewhere);
    assert_eq!(fields(redis), [Some("1".into()), None, None]);
}

/// The lease does not have to end for it.
#[test]
fn a_source_that_fails_leaves_the_set_to_another() {
    let redis = server!();
    let (one, other) = (open_node(&redis), open_node(&redis));
    let error = one.fill_once(PATIENCE, |_| Err("no store")).unwrap_err();
    assert!(error.is_source() && !error.is_incompatible());
    assert_eq!(error.to_string(), "the source of the keys failed");
    assert_eq!(std::error::Error::source(&error).unwrap().to_string(), "no store");
    let panics = || one.fill_once(PATIENCE, |_| -> Result<(), Infallible> { panic!("a bug") });
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).is_err());
    assert_eq!((one.stats().fills, one.stats().failed_fills), (2, 2));
    assert!(one.may_lack_keys() && !one.stats().is_filled);
    let began = std::time::Instant::now();
    assert_eq!(fill(&other).unwrap(), Filled::Here);
    assert!(began.elapsed() < Duration::from_secs(5), "it waited for the lease");
    closes_with_all_keys(&one);
}

/// The last pass of a node ends its lease, wherever the node's thread was.
#[test]
fn a_node_that_is_dropped_after_its_source_failed_leaves_the_set_to_another() {
    let redis = server!();
    let node = open_node(&redis);
    let failed = node.fill_once(PATIENCE, |_| {
        // From here on until the node is dropped, the thread waits for the server.
        redis.ask::<()>(&["CLIENT", "PAUSE", "500", "ALL"]);
        thread::sleep(Duration::from_millis(100));
        Err("no store")
    });
    assert!(failed.unwrap_err().is_source());
    drop(node);
    wait_until(|| fields(&redis) == [None, None, None]);
}

#[test]
fn a_killed_filler_is_replaced() {
    let redis = server!();
    let mut filler = server!(Process::start(&redis));
    assert_eq!(filler.tell("fill 0 2500"), "fills");
    let other = open_node(&redis);
    let error = other.fill_once(Duration::from_millis(200), |_| -> Result<(), Infallible> {
        unreachable!("the other one fills")
    });
    assert_eq!(error.unwrap_err().to_string(), "not done within 200ms");
    filler.kill();
    thread::scope(|scope| {
        let filled = scope.spawn(|| fill(&other));
        closes_with_all_keys(&other);
        assert_eq!(filled.join().unwrap().unwrap(), Filled::Here);
    });
}

/// Then two nodes fill at once. Both marks are right.
#[test]
fn a_filler_that_lost_its_lease_goes_on() {
    let redis = server!();
    let (one, other, waits) = (open_node(&redis), open_node(&redis), open_node(&redis));
    let filled = one.fill_once(PATIENCE, |ids| {
        // The state after the end of the lease.
        redis.ask::<()>(&["HSET", "{ids}:meta", "filler", "1", "lease", "1"]);
        let (holds, go) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let its = scope.spawn(|| {
                other.fill_once(PATIENCE, |ids| {
                    holds.store(true, Ordering::Relaxed);
                    wait_until(|| go.load(Ordering::Relaxed));
                    insert_all(ids)
                })
            });
            // Unless the first one has renewed it before.
            wait_until(|| {
                redis.ask::<()>(&["HSET", "{ids}:meta", "filler", "1", "lease", "1"]);
                holds.load(Ordering::Relaxed)
            });
            assert!(waits.may_lack_keys());
            go.store(true, Ordering::Relaxed);
            assert_eq!(its.join().unwrap().unwrap(), Filled::Here);
        });
        closes_with_all_keys(&waits);
        insert_all(ids)
    });
    assert_eq!(filled.unwrap(), Filled::Here);
    closes_with_all_keys(&one);
}

#[test]
fn a_frozen_server_delays_the_mark() {
    let redis = server!();
    let [one, other] = [(); 2].map(|()| open_node_within(&redis, Duration::from_millis(100)));
    let filled = one.fill_once(PATIENCE, |ids| {
        redis.ask::<()>(&["CLIENT", "PAUSE", "1000", "ALL"]);
        insert_all(ids)
    });
    assert_eq!(filled.unwrap(), Filled::Here);
    assert!(one.stats().failures > 0);
    closes_with_all_keys(&other);
}

/// The mark says that no key is missing, which no node knows after a loss: all open, and a source
/// reads again. The nodes push what they have meanwhile.
#[test]
fn after_a_loss_a_source_reads_again() {
    let redis = server!();
    let (filler, had) = (open_node(&redis), open_node(&redis));
    let before = Backup::of(&redis);
    assert_eq!(fill(&filler).unwrap(), Filled::Here);
    closes_with_all_keys(&had);
    let filled = Backup::of(&redis);
    insert(&had, 10_000..10_010);
    sync(&had);
    for lost in [&Backup(Vec::new()), &before, &filled] {
        lost.bring_back(&redis);
        wait_until(|| had.may_lack_keys());
        let new = open_node(&redis);
        wait_until(|| missing(&new, 0..5000) == 0 && missing(&new, 10_000..10_010) == 0);
        assert!(new.may_lack_keys() && had.may_lack_keys());
        assert_eq!(fields(&redis)[0], None);
        assert_eq!(fill(&had).unwrap(), Filled::Here);
        closes_with_all_keys(&new);
        closes_with_all_keys(&had);
        assert_eq!(fields(&redis)[0].as_deref(), Some("1"));
    }
    assert_eq!((filler.stats().fills, had.stats().fills), (1, 3));
}

/// In the call that finds out that the server lost pushes, no mark is made.
#[test]
fn no_mark_is_made_while_the_server_lacks_keys() {
    let redis = server!();
    let node = super::node(&redis);
    let before = Backup::of(&redis);
    insert_all(&node).unwrap();
    sync(&node);
    let hget = |field| redis.ask::<Option<String>>(&["HGET", "{ids}:meta", field]);
    let (description, head) = (hget("description").unwrap(), hget("head").unwrap());
    let exchange = |at: &str| -> Vec<String> {
        let era = hget("era").unwrap_or_default();
        redis::Script::new(include_str!("../../../src/shared/exchange.lua"))
            .key("{ids}:meta")
            .key("{ids}:log")
            .key("{ids}:versions")
            .key("{ids}:scratch")
            .arg(&[
                &description,
                at,
                "1",
                "1000000",
                "",
                "0",
                "0",
                "all",
                "0",
                &era,
                "0",
                "0",
                "",
                "",
            ])
            .invoke(&mut redis.connection())
            .unwrap()
    };
    before.bring_back(&redis);
    assert_eq!(exchange(&head)[0], "lost");
    assert_eq!(hget("filled"), None);
    sync(&node);
    assert_eq!(hget("filled"), None);
    assert_eq!(exchange(&hget("head").unwrap())[0], "filled");
    assert_eq!(hget("filled").as_deref(), Some("1"));
}
