//! One node fills a set, and the others wait for it; a server that evicts, or grants few rights.

use super::{KEYS, NEVER, PATIENCE, builder, filter, insert, missing, node, sync};
use crate::common::{number, wait_until};
use crate::redis_server::{Redis, Server, ask, figure};
use crate::warnings::Warnings;
use lanebloom::ConcurrentBloom;
use lanebloom_redis::shared::{Filled, SharedBuilder};
use lanebloom_redis::{SharedBloom, SharedError};
use std::convert::Infallible;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

const OFTEN: Duration = Duration::from_millis(5);

/// A node that may lack keys until the set is filled.
fn open_of(redis: &Redis, interval: Duration, keys: usize) -> SharedBloom {
    let builder = builder().interval(interval).open_until_filled();
    builder.connect(redis.client(), filter(keys)).unwrap()
}

fn open_node(redis: &Redis) -> SharedBloom {
    open_of(redis, OFTEN, KEYS)
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
    let began = Instant::now();
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

/// Users meet it so: another program writes, and the server makes room.
#[test]
fn a_set_survives_an_eviction() {
    let server = Server::default().argument("--maxmemory-samples").argument("1");
    let redis = server!(server.start());
    const KEYS: u64 = 300_000;
    let fill = |node: &SharedBloom| {
        let filled = node.fill_once(PATIENCE, |ids| {
            (0..KEYS).for_each(|key| _ = ids.insert(&number(key)));
            Ok::<_, Infallible>(())
        });
        filled.unwrap()
    };
    let [one, other] = [OFTEN, NEVER].map(|interval| open_of(&redis, interval, 1_000_000));
    assert_eq!(fill(&one), Filled::Here);
    for policy in ["allkeys-lru", "allkeys-random"] {
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let used = figure(&mut redis.connection(), "memory", "used_memory:");
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory", &(used + (100 << 10)).to_string()]);
        let mut connection = redis.connection();
        for i in 0..100 {
            ask::<()>(&mut connection, &["SET", &format!("other {i}"), &"x".repeat(30_000)]);
        }
        let keys: usize = redis.ask(&["DBSIZE"]);
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        println!("{policy}: {keys} keys are left of {}", 150 + 100);
        let evicted = figure(&mut redis.connection(), "stats", "evicted_keys:");
        assert!(evicted > 0);
        // The nodes notice by themselves; a guard over a new one is closed only with all keys.
        // (Where the mark was lost, a source reads.)
        let new = open_of(&redis, NEVER, 1_000_000);
        wait_until(|| {
            fill(&one);
            sync(&new);
            sync(&other);
            let closed = [&new, &other].map(|node| !node.may_lack_keys());
            for (node, closed) in [&new, &other].into_iter().zip(closed) {
                assert!(!closed || missing(node, 0..KEYS) == 0, "{policy}");
            }
            closed == [true; 2]
        });
    }
}

/// A set without an expiry is safe from the policies named volatile; and who may not ask connects.
#[test]
fn connect_warns_of_a_server_that_evicts() {
    let redis = server!();
    let warnings = |builder: SharedBuilder, client: redis::Client| {
        let warnings = Warnings::default();
        let connect = || builder.connect(client, filter(1000)).unwrap().close(PATIENCE).unwrap();
        tracing::subscriber::with_default(warnings.clone(), connect);
        warnings.0.lock().unwrap().join("\n")
    };
    let later = SystemTime::now() + Duration::from_secs(1000);
    let builder = |name| SharedBloom::builder(name).interval(NEVER).timeout(PATIENCE);
    for (limit, policy, warns, warns_of_expiring) in [
        ("0", "allkeys-lru", false, false),
        ("100000000", "noeviction", false, false),
        ("100000000", "allkeys-lru", true, true),
        ("100000000", "volatile-ttl", false, true),
    ] {
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory-policy", policy]);
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory", limit]);
        let text = warnings(builder("ids"), redis.client());
        let says = format!("policy=\"{policy}\" maxmemory=\"{limit}\"");
        assert_eq!(text.contains("may evict") && text.contains(&says), warns, "{text}");
        let text = warnings(builder("other").expires_at(later), redis.client());
        assert_eq!(text.contains("may evict"), warns_of_expiring, "{text}");
    }
    redis.ask::<()>(&["ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all", "-info"]);
    let url = format!("redis://ann:secret@127.0.0.1:{}/", redis.port());
    assert_eq!(warnings(builder("ids"), redis::Client::open(url).unwrap()), "");
}

/// An ACL's pattern, where the set's keys begin with a brace.
#[test]
fn an_acl_that_forbids_is_told_with_the_keys() {
    let redis = server!();
    for (rules, forbids) in [
        (&["~app:*", "+@all"][..], true),
        (&["~{app:sh}:*", "+@all", "-setbit"], true),
        (&["~{app:sh}:*", "+@all", "-@scripting"], true),
        (
            &[
                "~{app:sh}:*",
                "+@read",
                "+@write",
                "+@scripting",
                "+@connection",
                "+time",
            ],
            false,
        ),
    ] {
        redis.ask::<()>(&["ACL", "DELUSER", "ann"]);
        redis.ask::<()>(&[&["ACL", "SETUSER", "ann", "on", ">secret"], rules].concat());
        let client = redis::Client::open(format!("redis://ann:secret@127.0.0.1:{}/", redis.port())).unwrap();
        let connect = || {
            let builder = SharedBloom::builder("app:sh").interval(NEVER);
            let node = builder.connect(client.clone(), filter(1000))?;
            node.insert("ann");
            node.close(Duration::from_millis(500))
        };
        let set = || {
            let builder = SharedBloom::builder("app:sh").interval(NEVER);
            let set = builder.connect_set(client.clone(), 1000, |keys| {
                ConcurrentBloom::builder().expected_keys(keys).build()
            });
            set.map(drop)
        };
        let kinds: [&dyn Fn() -> Result<(), SharedError>; 2] = [&connect, &set];
        for kind in &kinds[..if rules.contains(&"-setbit") { 1 } else { 2 }] {
            let result = kind();
            assert_eq!(result.is_err(), forbids, "{rules:?}: {result:?}");
            if let Err(error) = result {
                let says = "the user needs @scripting, the commands of the scripts (@read, @write, TIME), and the keys ~{app:sh}:*";
                assert!(error.to_string().contains(says), "{error}");
            }
            redis.ask::<()>(&["FLUSHALL"]);
        }
    }
}

/// A clone is a handle of the same node.
#[test]
fn clones_share_one_node() {
    let redis = server!();
    let one = open_of(&redis, NEVER, KEYS);
    let clone = one.clone();
    insert(&one, 0..10);
    sync(&clone);
    assert_eq!((one.stats().passes, clone.stats().passes), (2, 2));
    drop(one);
    insert(&clone, 10..20);
    sync(&clone);
    assert_eq!(missing(&node(&redis), 0..20), 0);
    clone.clone().close(PATIENCE).unwrap();
    let began = Instant::now();
    let error = clone.sync(2 * PATIENCE).unwrap_err();
    assert!(
        began.elapsed() < PATIENCE && error.to_string().contains("closed"),
        "{error}"
    );
    assert!(fill(&clone).is_err() && missing(&clone, 0..20) == 0);
}

/// A source that awaits, called from tasks.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn an_async_source_fills_a_set() {
    let redis = server!();
    let (one, other) = (open_node(&redis), open_node(&redis));
    let source = async |ids: &ConcurrentBloom| {
        for key in 0..1000 {
            ids.insert(&number(key));
            if key % 100 == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        Ok::<_, Infallible>(())
    };
    let fails = async |_: &ConcurrentBloom| Err::<(), _>("no store");
    let error = one.fill_once_async(PATIENCE, fails).await.unwrap_err();
    assert!(error.is_source());
    let (here, there) = tokio::join!(one.fill_once_async(PATIENCE, source), async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        other.sync_async(PATIENCE).await
    });
    assert_eq!(here.unwrap(), Filled::Here);
    there.unwrap();
    other.sync_async(PATIENCE).await.unwrap();
    assert!(!other.may_lack_keys() && missing(&other, 0..1000) == 0);
    let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    let set = SharedBloom::builder("set")
        .connect_set(redis.client(), 1000, build)
        .unwrap();
    assert_eq!(set.fill_once_async(PATIENCE, source).await.unwrap(), Filled::Here);
    assert!(!set.may_lack_keys() && set.contains(&number(7)));
}
