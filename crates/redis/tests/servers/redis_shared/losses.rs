//! A server that loses a part of a set: chunks one by one, by a deletion, an expiry or an eviction,
//! or the versions, the log; and one that loses everything while a node dies.

use super::processes::Process;
use super::{KEYS, NEVER, PATIENCE, builder, filter, insert, missing, node, sync};
use crate::common::{number, wait_until};
use crate::redis_server::{Redis, Server, ask};
use lanebloom_redis::shared::Filled;
use lanebloom_redis::{SharedBloom, SharedError};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

const ROWS: u64 = 50_000;
const CHUNKS: usize = 16;

fn often() -> lanebloom_redis::shared::SharedBuilder {
    builder().interval(Duration::from_millis(5))
}

/// A node that exchanges only when told to, and may lack keys until the set is filled.
fn open_node(redis: &Redis) -> SharedBloom {
    let builder = builder().interval(NEVER).open_until_filled();
    builder.connect(redis.client(), filter(KEYS)).unwrap()
}

fn fill(node: &SharedBloom, rows: u64) -> Result<Filled, SharedError> {
    node.fill_once(PATIENCE, |ids| {
        (0..rows).for_each(|key| _ = ids.insert(&number(key)));
        Ok::<_, Infallible>(())
    })
}

fn chunks(redis: &Redis) -> usize {
    let mut connection = redis.connection();
    let there = |chunk: usize| ask::<usize>(&mut connection, &["EXISTS", &format!("{{ids}}:{chunk}")]);
    (0..CHUNKS).map(there).sum()
}

/// Commands that remove a chunk, or all that a set cannot do without.
const LOSSES: [&[&str]; 6] = [
    &["DEL", "{ids}:5"],
    &["DEL", "{ids}:0", "{ids}:3", "{ids}:15"],
    &["PEXPIRE", "{ids}:7", "1"],
    &["DEL", "{ids}:versions"],
    &["DEL", "{ids}:versions", "{ids}:4"],
    &["DEL", "{ids}:log", "{ids}:5"],
];

/// No new node and no insert is needed for it.
#[test]
fn nodes_notice_the_loss_of_a_chunk_by_themselves() {
    let redis = server!();
    let [one, other] = [(); 2].map(|()| often().connect(redis.client(), filter(KEYS)).unwrap());
    insert(&one, 0..ROWS);
    sync(&one);
    sync(&other);
    for loss in LOSSES {
        redis.ask::<()>(loss);
        wait_until(|| chunks(&redis) == CHUNKS && redis.ask::<usize>(&["HLEN", "{ids}:versions"]) == CHUNKS);
        let new = node(&redis);
        wait_until(|| {
            sync(&new);
            missing(&new, 0..ROWS) == 0
        });
        assert_eq!((one.stats().failures, other.stats().failures), (0, 0), "{loss:?}");
    }
}

/// The new node is the one that notices, or the insert of an old one into that chunk.
#[test]
fn a_lost_chunk_is_pushed_again_by_a_node_that_has_it() {
    let redis = server!();
    let (one, other) = (node(&redis), node(&redis));
    insert(&one, 0..ROWS);
    sync(&one);
    sync(&other);
    for (round, loss) in (0..).zip(LOSSES.iter().cycle().take(12)) {
        redis.ask::<()>(loss);
        while redis.ask::<usize>(&["EXISTS", "{ids}:7"]) == 1 && loss[0] == "PEXPIRE" {}
        let rows = ROWS + 200 * (round + 1);
        let new = if round % 2 == 0 {
            Some(node(&redis))
        } else {
            insert(&one, rows - 200..rows);
            sync(&one);
            None
        };
        // The nodes hear of the loss, push what they have, and hear of that.
        for node in [&one, &other, &one, &other] {
            sync(node);
        }
        for node in new.iter().chain([&one, &other, &node(&redis)]) {
            sync(node);
            let here = if round % 2 == 0 { 0..rows - 200 } else { 0..rows };
            assert_eq!(missing(node, here), 0, "{loss:?}");
        }
        insert(&other, rows - 200..rows);
        sync(&other);
        sync(&one);
    }
}

/// The set is as unfilled until then, and no source reads for it.
#[test]
fn a_guard_is_open_until_a_lost_chunk_is_there_again() {
    let redis = server!();
    let (one, other) = (open_node(&redis), open_node(&redis));
    assert_eq!(fill(&one, ROWS).unwrap(), Filled::Here);
    sync(&other);
    assert!(!other.may_lack_keys());
    redis.ask::<()>(&["DEL", "{ids}:5", "{ids}:6"]);
    let new = open_node(&redis);
    assert!(missing(&new, 0..ROWS) > 0 && new.may_lack_keys());
    // It pushes to these chunks, which are not whole by that.
    insert(&new, 1_000_000..1_001_000);
    sync(&new);
    assert!(new.may_lack_keys() && open_node(&redis).may_lack_keys());
    for _ in 0..2 {
        sync(&one);
        sync(&new);
    }
    assert!(!new.may_lack_keys() && missing(&new, 0..ROWS) == 0);
    sync(&other);
    let late = open_node(&redis);
    for node in [&one, &other, &late] {
        assert!(!node.may_lack_keys());
        assert_eq!(missing(node, 0..ROWS) + missing(node, 1_000_000..1_001_000), 0);
    }
    assert_eq!(one.stats().fills + other.stats().fills + new.stats().fills, 1);
}

/// No node has the chunk any more: all are open until a source has read.
#[test]
fn a_chunk_that_no_node_has_is_read_from_the_store() {
    let redis = server!();
    let one = open_node(&redis);
    assert_eq!(fill(&one, ROWS).unwrap(), Filled::Here);
    one.close(PATIENCE).unwrap();
    redis.ask::<()>(&["DEL", "{ids}:5"]);
    let (new, other) = (open_node(&redis), open_node(&redis));
    for _ in 0..3 {
        sync(&new);
        sync(&other);
        assert!(new.may_lack_keys() && other.may_lack_keys());
    }
    assert_eq!(fill(&new, ROWS).unwrap(), Filled::Here);
    sync(&other);
    for node in [&new, &other] {
        assert!(!node.may_lack_keys() && missing(node, 0..ROWS) == 0);
    }
}

/// Users meet it so: another program writes, and the server makes room.
#[test]
fn a_set_survives_an_eviction() {
    let server = Server::default().argument("--maxmemory-samples").argument("1");
    let redis = server!(server.start());
    let (one, other) = (
        often().open_until_filled().connect(redis.client(), filter(1_000_000)),
        open_of(&redis, 1_000_000),
    );
    let one = one.unwrap();
    assert_eq!(fill(&one, 300_000).unwrap(), Filled::Here);
    for policy in ["allkeys-lru", "allkeys-random"] {
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let used = crate::redis_server::figure(&mut redis.connection(), "memory", "used_memory:");
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory", &(used + (100 << 10)).to_string()]);
        let mut connection = redis.connection();
        for i in 0..100 {
            ask::<()>(&mut connection, &["SET", &format!("other {i}"), &"x".repeat(30_000)]);
        }
        let keys: usize = redis.ask(&["DBSIZE"]);
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        println!("{policy}: {keys} keys are left of {}", 150 + 100);
        let evicted = crate::redis_server::figure(&mut redis.connection(), "stats", "evicted_keys:");
        assert!(evicted > 0);
        // The nodes notice by themselves; a guard over a new one is closed only with all keys.
        // (Where the mark was lost, a source reads.)
        let new = open_of(&redis, 1_000_000);
        wait_until(|| {
            fill(&one, 300_000).unwrap();
            sync(&new);
            sync(&other);
            let closed = [&new, &other].map(|node| !node.may_lack_keys());
            for (node, closed) in [&new, &other].into_iter().zip(closed) {
                assert!(!closed || missing(node, 0..300_000) == 0, "{policy}");
            }
            closed == [true; 2]
        });
    }
}

fn open_of(redis: &Redis, keys: usize) -> SharedBloom {
    let builder = builder().interval(NEVER).open_until_filled();
    builder.connect(redis.client(), filter(keys)).unwrap()
}

/// Two faults at once: the server loses all data, and the process that alone had a key is killed.
/// No node can know of the key, but each notices the loss, and is open until a source has read.
#[test]
fn all_are_open_after_a_loss_until_a_source_has_read() {
    let redis = server!();
    let (one, other) = (open_node(&redis), open_node(&redis));
    assert_eq!(fill(&one, 1000).unwrap(), Filled::Here);
    sync(&other);
    let mut dies = server!(Process::start(&redis));
    assert_eq!(dies.tell("insert 1000 1010"), "done");
    assert_eq!(dies.tell("sync 30000"), "done");
    // It has no time to push anything again.
    let loses = || redis.ask::<()>(&["FLUSHALL"]);
    dies.kill();
    loses();
    for node in [&one, &other] {
        sync(node);
        assert!(node.may_lack_keys(), "it cannot know of the keys of the other one");
        assert!(!node.stats().is_filled);
    }
    let new = open_node(&redis);
    assert!(new.may_lack_keys() && missing(&new, 0..1000) == 0);
    assert_eq!(fill(&other, 1010).unwrap(), Filled::Here);
    for node in [&one, &other, &new] {
        sync(node);
        assert!(!node.may_lack_keys() && missing(node, 0..1010) == 0);
    }
}

/// A source that had begun before the loss does not know of keys that were pushed since: it is
/// called again.
#[test]
fn a_source_that_ran_during_a_loss_reads_again() {
    let redis = server!();
    let (one, other) = (open_node(&redis), open_node(&redis));
    let mut calls = 0;
    let filled = one.fill_once(PATIENCE, |ids| {
        calls += 1;
        if calls == 1 {
            (0..1000).for_each(|key| _ = ids.insert(&number(key)));
            // A node whose process dies pushes a key.
            let builder = builder().interval(NEVER);
            let dies = builder.connect(redis.client(), filter(KEYS)).unwrap();
            insert(&dies, 1000..1010);
            dies.close(PATIENCE).unwrap();
            redis.ask::<()>(&["FLUSHALL"]);
        } else {
            (0..1010).for_each(|key| _ = ids.insert(&number(key)));
        }
        Ok::<_, Infallible>(())
    });
    assert_eq!((filled.unwrap(), calls), (Filled::Here, 2));
    sync(&other);
    for node in [&one, &other] {
        assert!(!node.may_lack_keys() && missing(node, 0..1010) == 0);
    }
}

/// The texts of the warnings of a thread.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Texts(String);
        impl tracing::field::Visit for Texts {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                self.0 += &format!("{field}={value:?} ");
            }
        }
        let mut texts = Texts(String::new());
        event.record(&mut texts);
        self.0.lock().unwrap().push(texts.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// A set without an expiry is safe from the policies named volatile; and who may not ask connects.
#[test]
fn connect_warns_of_a_server_that_evicts() {
    let redis = server!();
    let warnings = |builder: lanebloom_redis::shared::SharedBuilder, client: redis::Client| {
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
            node.sync(Duration::from_millis(500))
        };
        let set = || {
            let builder = SharedBloom::builder("app:sh").interval(NEVER);
            builder.connect_set(client.clone(), 1000, |keys| {
                lanebloom::ConcurrentBloom::builder().expected_keys(keys).build()
            })
        };
        for result in [connect(), set().map(drop)]
            .into_iter()
            .take(if rules.contains(&"-setbit") { 1 } else { 2 })
        {
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
    let one = open_node(&redis);
    let clone = one.clone();
    insert(&one, 0..10);
    sync(&clone);
    assert_eq!((one.stats().passes, clone.stats().passes), (2, 2));
    drop(one);
    insert(&clone, 10..20);
    sync(&clone);
    assert_eq!(missing(&node(&redis), 0..20), 0);
    clone.clone().close(PATIENCE).unwrap();
    let began = std::time::Instant::now();
    let error = clone.sync(2 * PATIENCE).unwrap_err();
    assert!(
        began.elapsed() < PATIENCE && error.to_string().contains("closed"),
        "{error}"
    );
    assert!(fill(&clone, 1).is_err() && missing(&clone, 0..20) == 0);
}

/// A source that awaits, called from tasks.
#[cfg(feature = "tokio")]
#[tokio::test]
async fn an_async_source_fills_a_set() {
    let redis = server!();
    let (one, other) = (open_node(&redis), open_node(&redis));
    let source = async |ids: &lanebloom::ConcurrentBloom| {
        for key in 0..1000 {
            ids.insert(&number(key));
            if key % 100 == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        Ok::<_, Infallible>(())
    };
    let fails = async |_: &lanebloom::ConcurrentBloom| Err::<(), _>("no store");
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
    let build = |keys| lanebloom::ConcurrentBloom::builder().expected_keys(keys).build();
    let set = SharedBloom::builder("set")
        .connect_set(redis.client(), 1000, build)
        .unwrap();
    assert_eq!(set.fill_once_async(PATIENCE, source).await.unwrap(), Filled::Here);
    assert!(!set.may_lack_keys() && set.contains(&number(7)));
}
