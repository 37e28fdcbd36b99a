//! `SharedBloom` beside a real server: other nodes get what one node pushes, whatever happens to
//! the server, the network and the nodes. `redis_shared/processes.rs` has the faults that need
//! processes of their own.

mod fill;
mod processes;
mod proxy;
pub(crate) mod set;
mod simulation;
mod stories;
mod window;

use crate::common::{SetAtEnd, number, wait_until};
use crate::mock::Mock;
use crate::redis_server::{Redis, Server, ask, figure};
use hdrhistogram::Histogram;
use lanebloom::{ConcurrentBloom, Hashed, KeyHasher, SipHash13};
use lanebloom_redis::shared::SharedBuilder;
use lanebloom_redis::{SharedBloom, SharedError};
use proxy::{Lie, Proxy, liar};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

/// The longest wait of a test, on a machine that is busy or emulated.
const PATIENCE: Duration = Duration::from_secs(30);
/// An interval that does not end: nothing happens but by `sync`.
const NEVER: Duration = Duration::from_secs(100_000);

fn filter(keys: usize) -> ConcurrentBloom {
    ConcurrentBloom::builder().expected_keys(keys).build().unwrap()
}

/// The options of nodes that exchange only when told to. (A busy machine may take long.)
fn builder() -> SharedBuilder {
    SharedBloom::builder("ids").interval(NEVER).timeout(PATIENCE)
}

fn node_of<S: KeyHasher + Send + Sync + 'static>(
    client: redis::Client,
    filter: impl Into<Arc<ConcurrentBloom<S>>>,
) -> Result<SharedBloom<S>, SharedError> {
    builder().connect(client, filter)
}

fn node(redis: &Redis) -> SharedBloom {
    node_of(redis.client(), filter(KEYS)).unwrap()
}

/// The expected keys of the nodes in most tests: 16 chunks, the last one incomplete.
const KEYS: usize = 94_650;

fn insert(node: &SharedBloom, keys: Range<u64>) {
    for key in keys {
        node.insert(&number(key));
    }
}

fn missing(node: &SharedBloom, keys: Range<u64>) -> usize {
    keys.filter(|&key| !node.contains(&number(key))).count()
}

fn sync(node: &SharedBloom) {
    node.sync(PATIENCE).unwrap();
}

fn fails(node: &SharedBloom, says: &str) {
    sync_fails(|patience| node.sync(patience), &[says]);
}

/// Syncs that fail until one says one of `says`: on a busy machine the first may end before
/// anything was attempted.
fn sync_fails(sync: impl Fn(Duration) -> Result<(), SharedError>, says: &[&str]) {
    let began = Instant::now();
    loop {
        let error = sync(Duration::from_millis(30)).unwrap_err().to_string();
        if says.iter().any(|says| error.contains(says)) {
            assert!(error.starts_with("not done within 30ms; the last attempt: "), "{error}");
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{error}");
    }
}

/// The result of the last of some passes of a node of the set `fuzz`.
fn passes_over(
    server: &mut dyn redis::ConnectionLike,
    filter: Arc<ConcurrentBloom>,
    passes: usize,
) -> Result<(), SharedError> {
    let node = SharedBloom::builder("fuzz").threadless(&filter)?;
    (0..passes).filter_map(|_| node.pass(server)).last().unwrap_or(Ok(()))
}

/// The answer of `work`, or that it does not end.
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || drop(sender.send(work())));
    receiver.recv_timeout(PATIENCE).expect("it does not end")
}

/// The calls of scripts so far.
fn script_calls(redis: &Redis) -> u64 {
    figure(&mut redis.connection(), "commandstats", "cmdstat_evalsha:calls=")
}

/// [`p99_during`] of a call of `ask`, which is given numbers without end.
fn p99_of(ask: &(impl Fn(u64) + Sync), fault: impl FnOnce()) -> u64 {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let measured = scope.spawn(|| measure(ask, &done));
        let end = SetAtEnd(&done);
        fault();
        drop(end);
        measured.join().unwrap()
    })
}

fn measure(ask: impl Fn(u64), done: &AtomicBool) -> u64 {
    let mut times = Histogram::<u64>::new(3).unwrap();
    for i in 0.. {
        let began = Instant::now();
        ask(i);
        times.record(began.elapsed().as_nanos() as u64).unwrap();
        // At least so many that a hundredth is more than one.
        if times.len() >= 1000 && done.load(Ordering::Relaxed) {
            break;
        }
    }
    times.value_at_quantile(0.99)
}

/// Far above what a busy machine makes of it, far below what a wait for the network would.
fn assert_as_without(fault: u64, without: u64) {
    assert!(
        fault <= (20 * without).max(200_000),
        "p99 of {fault} ns during the fault, {without} ns without"
    );
}

#[test]
fn every_shape_and_size_is_shared() {
    let redis = server!();
    // One line, a chunk, a chunk and a line, three words and a bit.
    for bytes in [64, 8192, 8256, 40_000] {
        for words in crate::common::WORDS {
            let build = || {
                let builder = ConcurrentBloom::builder().memory_budget(bytes).words_per_key(words);
                builder.hasher(SipHash13::with_key([7; 16])).build().unwrap()
            };
            let name = format!("{bytes} {words}");
            let connect = || {
                SharedBloom::builder(&name)
                    .interval(NEVER)
                    .connect(redis.client(), build())
                    .unwrap()
            };
            let (one, other) = (connect(), connect());
            for keys in [0..2u64, 2..1000] {
                one.insert_batch(&keys.collect::<Vec<_>>());
                one.sync(PATIENCE).unwrap();
                other.sync(PATIENCE).unwrap();
                let new = connect();
                assert!(one.statistics().fill_ratio > 0.0);
                assert!(
                    **one.filter() == **other.filter() && **one.filter() == **new.filter(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn the_background_needs_no_sync() {
    let redis = server!();
    let [one, other] = [(); 2].map(|()| {
        let builder = builder().interval(Duration::from_millis(5));
        builder.connect(redis.client(), filter(KEYS)).unwrap()
    });
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // While others insert and ask, and a second thread of this node.
            for i in 0..2000 {
                other.insert(&number(1_000_000 + i));
            }
            while !stop.load(Ordering::Relaxed) {
                thread::yield_now();
                std::hint::black_box(one.contains(&number(0)));
            }
        });
        let _end = SetAtEnd(&stop);
        insert(&one, 0..2000);
        wait_until(|| missing(&other, 0..2000) == 0 && missing(&one, 1_000_000..1_002_000) == 0);
    });
    assert!(one.stats().lag < PATIENCE && one.stats().last_error.is_none());
}

#[test]
fn who_does_not_fit_is_refused() {
    let redis = server!();
    let one = node(&redis);
    let refused = |error: SharedError, says: &str| {
        assert!(error.is_incompatible());
        let text = error.to_string();
        assert!(
            text.starts_with("the set \"ids\" on the server is another filter's: ") && text.contains(says),
            "{text}"
        );
    };
    refused(
        node_of(redis.client(), filter(KEYS + 1000)).unwrap_err(),
        "layout differs: 2006 blocks",
    );
    let builder = || ConcurrentBloom::builder().expected_keys(KEYS);
    let seeded = builder().seed(1).build().unwrap();
    refused(node_of(redis.client(), seeded).unwrap_err(), "hasher differs");
    let keyed = |key| builder().hasher(SipHash13::with_key(key)).build().unwrap();
    refused(node_of(redis.client(), keyed([1; 16])).unwrap_err(), "hasher differs");
    // Under a name of their own they are welcome.
    let others = || SharedBloom::builder("others").interval(NEVER);
    let other = others().connect(redis.client(), keyed([1; 16]));
    other.unwrap().insert("a");
    let other = others().connect(redis.client(), keyed([2; 16]));
    assert!(other.unwrap_err().is_incompatible());
    // The set is replaced while a node has it: its next exchange says so, at once.
    insert(&one, 0..100);
    redis.ask::<()>(&["FLUSHALL"]);
    let _large = node_of(redis.client(), filter(2 * KEYS)).unwrap();
    let began = Instant::now();
    refused(one.sync(2 * PATIENCE).unwrap_err(), "layout differs");
    assert!(began.elapsed() < PATIENCE);
    assert!(one.stats().last_error.unwrap().is_incompatible());
    // And is back when the other is gone.
    redis.ask::<()>(&["FLUSHALL"]);
    sync(&one);
    assert_eq!(missing(&node(&redis), 0..100), 0);
}

#[test]
fn names_are_checked() {
    for name in ["", "{ids}", "a}", "{b"] {
        let client = redis::Client::open("redis://127.0.0.1:1/").unwrap();
        let error = SharedBloom::builder(name).connect(client, filter(1)).unwrap_err();
        assert!(error.to_string().contains(&format!("{name:?}")), "{error}");
    }
}

#[test]
fn who_was_away_for_long_fetches_what_changed() {
    let redis = server!();
    // 4 MiB: the log takes one.
    let build = || ConcurrentBloom::builder().memory_budget(4 << 20).build().unwrap();
    let [one, other] = [(); 2].map(|()| node_of(redis.client(), build()).unwrap());
    let hashes: Vec<u64> = (0..400_000).map(number).collect();
    // All over the filter: more than the log takes.
    one.insert_batch(Hashed::slice(&hashes));
    one.sync(PATIENCE).unwrap();
    assert!(one.stats().pushed_bytes > 3 << 20);
    other.sync(PATIENCE).unwrap();
    assert_eq!(other.stats().resyncs, 2);
    let new = node_of(redis.client(), build()).unwrap();
    assert!(**one.filter() == **other.filter() && **one.filter() == **new.filter());
    let (bytes, log): (u64, u64) = redis::pipe()
        .hget("{ids}:meta", "bytes")
        .cmd("MEMORY")
        .arg(&["USAGE", "{ids}:log", "SAMPLES", "0"])
        .query(&mut redis.connection())
        .unwrap();
    assert!(
        bytes <= 1 << 20 && log < 2 << 20,
        "the log: {bytes} bytes, {log} of memory"
    );
    // Away again while the log is cut off: of 512 chunks only the one that changed travels.
    let pulled = other.stats().pulled_bytes;
    one.insert(&Hashed(number(1 << 32)));
    one.sync(PATIENCE).unwrap();
    redis.ask::<()>(&["XTRIM", "{ids}:log", "MAXLEN", "1"]);
    other.sync(PATIENCE).unwrap();
    assert!(other.contains(&Hashed(number(1 << 32))));
    assert_eq!(other.stats().resyncs, 3);
    assert_eq!(other.stats().pulled_bytes - pulled, 8192);
    // From then on by the log again.
    one.insert(&Hashed(number(1 << 33)));
    one.sync(PATIENCE).unwrap();
    other.sync(PATIENCE).unwrap();
    assert!(**one.filter() == **other.filter());
    assert_eq!((one.stats().resyncs, other.stats().resyncs), (1, 3));
}

/// The hash with this place, by which its block is chosen (docs/FORMAT.md).
fn hash_of_place(place: u64) -> u64 {
    place.wrapping_mul(8_624_540_351_740_434_791)
}

/// A bit in each of many chunks: no push has more of them than a script can take.
#[test]
fn many_chunks_are_pushed() {
    let redis = server!();
    let build = || {
        let builder = ConcurrentBloom::builder()
            .memory_budget(40 << 20)
            .false_positive_rate(0.5);
        builder.words_per_key(1).build().unwrap()
    };
    let [one, other] = [(); 2].map(|()| node_of(redis.client(), build()).unwrap());
    assert_eq!(one.layout().bits_per_line, 1);
    let hashes: Vec<u64> = (0..5120)
        .map(|chunk| hash_of_place((chunk << 51) / 5 * 8 + (1 << 30)))
        .collect();
    one.insert_batch(Hashed::slice(&hashes));
    one.sync(PATIENCE).unwrap();
    other.sync(PATIENCE).unwrap();
    assert_eq!(one.stats().pushed_bytes, 8 * 5120);
    let mut found = vec![false; hashes.len()];
    other.contains_batch(Hashed::slice(&hashes), &mut found);
    assert!(!found.contains(&false));
}

/// More than one answer can hold comes in several. New keys are pushed after the last.
#[test]
fn much_is_pulled_piece_by_piece() {
    let redis = server!();
    // The log takes 4 MiB.
    let build = || ConcurrentBloom::builder().memory_budget(16 << 20).build().unwrap();
    let [one, other] = [(); 2].map(|()| node_of(redis.client(), build()).unwrap());
    // In the first eighth of the filter, which travels as whole chunks: 2 MiB.
    let hashes: Vec<u64> = (0..100_000).map(|i| hash_of_place(number(i) >> 3)).collect();
    one.insert_batch(Hashed::slice(&hashes));
    one.sync(PATIENCE).unwrap();
    assert!(one.stats().pushed_bytes >= 2 << 20);
    other.insert(&Hashed(u64::MAX));
    let before = script_calls(&redis);
    other.sync(PATIENCE).unwrap();
    // A MiB in the first answer, the rest in that to the push.
    assert_eq!(script_calls(&redis) - before, 2);
    assert_eq!((other.stats().passes, other.stats().resyncs), (2, 1));
    one.sync(PATIENCE).unwrap();
    assert!(one.contains(&Hashed(u64::MAX)));
    assert!(**one.filter() == **other.filter());
    // Sent with each call, and pushed by the last.
    assert_eq!(other.stats().pushed_bytes, one.stats().pulled_bytes);
}

#[test]
fn it_comes_back_by_itself_and_does_not_press() {
    let mut redis = server!();
    let one = node(&redis);
    redis.kill();
    insert(&one, 0..100);
    fails(&one, "Redis: ");
    // The pauses double, from 12 ms at least: in 400 ms there is room for 6.
    let (failures, began) = (one.stats().failures, Instant::now());
    thread::sleep(Duration::from_millis(400));
    let more = one.stats().failures - failures;
    let room = (began.elapsed().as_secs_f64() / 0.012).log2().ceil();
    assert!(more as f64 <= room + 1.0, "{more} attempts");
    assert!(one.stats().lag >= Duration::from_millis(400));
    let began = Instant::now();
    redis.restart();
    wait_until(|| one.stats().last_error.is_none());
    assert!(one.stats().lag < began.elapsed());
    assert_eq!(missing(&node(&redis), 0..100), 0);
}

/// Cut at every kind of place: in the call's beginning, in the middle of a push, before the answer,
/// in its middle.
#[test]
fn connections_that_are_cut_lose_nothing() {
    let redis = server!();
    let proxy = Proxy::to(redis.port());
    let (one, other) = (node_of(proxy.client(), filter(KEYS)).unwrap(), node(&redis));
    let mut keys = 0;
    let mut cut_at = |n: u64, to_server: Option<usize>, to_client: Option<usize>| {
        insert(&one, keys..keys + n);
        insert(&other, 1_000_000 + keys..1_000_000 + keys + 10);
        sync(&other);
        keys += n;
        let cuts = proxy.cuts();
        proxy.cut(to_server, to_client);
        sync(&one);
        assert_eq!(proxy.cuts(), cuts + 1, "{to_server:?} {to_client:?}");
        sync(&other);
        assert_eq!(missing(&other, 0..keys), 0, "{to_server:?} {to_client:?}");
    };
    // A push of 300 keys takes some 4500 bytes, the answer with 10 keys of the other some 300.
    for bytes in [0, 1, 100, 500, 1000, 3000] {
        cut_at(300, Some(bytes), None);
    }
    for bytes in [0, 1, 10, 100] {
        cut_at(300, None, Some(bytes));
    }
    // Four pushes of four whole chunks each: in the third.
    cut_at(30_000, Some(80_000), None);
    assert!(one.stats().failures >= 11);
    sync(&one);
    assert!(**one.filter() == **other.filter() && **one.filter() == **node(&redis).filter());
}

/// A node that waits for [`ROUND_TRIP`] only; connected again, where so short a time was too short.
fn impatient(proxy: &Proxy) -> SharedBloom {
    let connect = |_| builder().timeout(ROUND_TRIP).connect(proxy.client(), filter(KEYS)).ok();
    (0..20).find_map(connect).unwrap()
}

/// In whatever thread, with a server that does not answer and a long time for it to do so.
#[test]
fn a_drop_waits_for_nothing() {
    let redis = server!();
    let proxy = Proxy::to(redis.port());
    let one = builder().timeout(10 * PATIENCE).connect(proxy.client(), filter(KEYS));
    let one = one.unwrap();
    proxy.stall(true);
    insert(&one, 0..100);
    // The thread is in the middle of an exchange, or will be.
    assert!(one.sync(Duration::from_millis(20)).is_err());
    ends(move || drop(one));
    // It pushes when the server is back, and ends.
    proxy.stall(false);
    let new = node(&redis);
    wait_until(|| {
        sync(&new);
        missing(&new, 0..100) == 0
    });
}

#[test]
fn a_drop_pushes_what_is_left_and_ends_the_thread() {
    let redis = server!();
    let one = node(&redis);
    let filter = Arc::downgrade(one.filter());
    insert(&one, 0..100);
    drop(one);
    // The thread has the filter too.
    wait_until(|| filter.upgrade().is_none());
    assert_eq!(missing(&node(&redis), 0..100), 0);
}

#[test]
fn a_close_waits_until_all_is_pushed_and_the_thread_is_gone() {
    let redis = server!();
    let one = node(&redis);
    let filter = Arc::clone(one.filter());
    insert(&one, 0..100);
    one.close(PATIENCE).unwrap();
    assert_eq!(Arc::strong_count(&filter), 1);
    assert_eq!(missing(&node(&redis), 0..100), 0);
    // For no longer than it is told to, whatever the server does.
    let proxy = Proxy::to(redis.port());
    let one = builder()
        .timeout(10 * PATIENCE)
        .connect(proxy.client(), filter)
        .unwrap();
    proxy.stall(true);
    let error = ends(move || one.close(Duration::from_millis(20))).unwrap_err();
    assert_eq!(error.to_string(), "not done within 20ms");
}

/// How long servers that lie may take for a round trip, and what they say: a byte now and then of a
/// reply that does not end; what nobody asked for, at a pace and as fast as can be; a reply that is
/// long.
const ROUND_TRIP: Duration = Duration::from_millis(500);
const LIES: [(Lie, &str); 5] = [
    (Lie(b"$1000000000\r\n", b"x", SLOWLY), TOO_LONG),
    (Lie(b"+O", b"K", SLOWLY), TOO_LONG),
    (Lie(b"", b">2\r\n+message\r\n+x\r\n", SLOWLY), TOO_LONG),
    (Lie(b"", b">2\r\n+message\r\n+x\r\n", Duration::ZERO), "Redis: the r"),
    (
        Lie(b"$1000000000000\r\n", &[b'x'; 1 << 16], Duration::ZERO),
        "Redis: the r",
    ),
];
const SLOWLY: Duration = Duration::from_millis(20);
const TOO_LONG: &str = "the round trip was not done within 500ms";

#[test]
fn a_server_that_lies_holds_no_connect() {
    for (lie, says) in LIES {
        let connect = move || builder().timeout(ROUND_TRIP).connect(liar(lie), filter(KEYS));
        let error = ends(connect).unwrap_err().to_string();
        assert!(error.contains(says), "{lie:?}: {error}");
    }
}

#[test]
fn a_server_that_lies_holds_no_node() {
    let redis = server!();
    for (i, (lie, says)) in (0..).zip(LIES) {
        let proxy = Proxy::to(redis.port());
        let one = impatient(&proxy);
        insert(&one, 100 * i..100 * i + 50);
        proxy.lie(Some(lie));
        fails(&one, says);
        // It leaves that server, and goes on with one that is honest.
        proxy.lie(None);
        sync(&one);
        assert_eq!(missing(&node(&redis), 100 * i..100 * i + 50), 0);
        // In the middle of a lie the thread ends by itself.
        proxy.lie(Some(lie));
        insert(&one, 100 * i + 50..100 * i + 100);
        let _ = one.sync(Duration::from_millis(20));
        let filter = Arc::downgrade(one.filter());
        drop(one);
        wait_until(|| filter.upgrade().is_none());
    }
}

/// After a planned failover the old server is there, refuses, and stays connected.
#[test]
fn a_demoted_server_is_left() {
    let (old, new) = (server!(), server!());
    let proxy = Proxy::to(old.port());
    let one = node_of(proxy.client(), filter(KEYS)).unwrap();
    insert(&one, 0..100);
    sync(&one);
    old.ask::<()>(&["REPLICAOF", "127.0.0.1", "1"]);
    proxy.redirect(new.port());
    insert(&one, 100..200);
    sync(&one);
    assert_eq!(missing(&node(&new), 0..200), 0);
}

/// By a password, with a user and without, in both protocols; by a socket that is a file; and to
/// another database.
#[test]
fn it_logs_in() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let server = Server::default().argument("--unixsocket");
    let redis = server!(server.argument(socket.to_str().unwrap()).start());
    redis.ask::<()>(&["ACL", "SETUSER", "ann", "on", ">secret", "~*", "+@all"]);
    let mut key = 0;
    let mut exchanges = |url: String| {
        let one = node_of(redis::Client::open(url).unwrap(), filter(KEYS))?;
        // Whole chunks.
        insert(&one, key..key + 12_000);
        key += 12_000;
        one.sync(PATIENCE)?;
        let new = node(&redis);
        assert_eq!(missing(&new, 0..key), 0);
        Ok::<_, SharedError>(())
    };
    let port = redis.port();
    exchanges(format!("unix://{}", socket.display())).unwrap();
    for protocol in ["", "?protocol=resp3"] {
        exchanges(format!("redis://ann:secret@127.0.0.1:{port}/{protocol}")).unwrap();
        let error = exchanges(format!("redis://ann:guess@127.0.0.1:{port}/{protocol}")).unwrap_err();
        assert!(error.to_string().contains("WRONGPASS"), "{error}");
    }
    for protocol in ["", "?protocol=resp3"] {
        // The default user has a password for a moment, which the test's own connections have not.
        let mut connection = redis.connection();
        let mut set = |rule| ask::<()>(&mut connection, &["ACL", "SETUSER", "default", rule]);
        set(">word");
        let client = redis::Client::open(format!("redis://:word@127.0.0.1:{port}/{protocol}"));
        let right = node_of(client.unwrap(), filter(KEYS));
        let none = node_of(redis.client(), filter(KEYS));
        set("nopass");
        assert_eq!(missing(&right.unwrap(), 0..10), 0);
        assert!(none.unwrap_err().to_string().contains("NOAUTH"));
    }
    let client = redis::Client::open(format!("redis://127.0.0.1:{port}/1"));
    assert_eq!(
        node_of(client.unwrap(), filter(KEYS)).unwrap().statistics().fill_ratio,
        0.0
    );
    let error = exchanges(format!("redis://127.0.0.1:{port}/99")).unwrap_err();
    assert!(error.to_string().contains("out of range"), "{error}");
}

/// Answers that no server gives, of which a fuzzer would try more: each ends the pass.
#[test]
fn a_server_that_answers_without_sense_is_an_error() {
    fn list(texts: &[&str]) -> redis::Value {
        let text = |text: &&str| redis::Value::BulkString((*text).into());
        redis::Value::Array(texts.iter().map(text).collect())
    }
    // Its answers to scripts, one after another, and then always the last.
    let error_of = |answers: Vec<redis::Value>| {
        let answer = move |place: usize| Ok(vec![answers[answers.len().min(place) - 1].clone()]);
        let mut server = Mock::new(move |request| answer(request.number));
        ends(move || {
            passes_over(&mut server, Arc::new(filter(KEYS)), 1)
                .unwrap_err()
                .to_string()
        })
    };
    const NOTHING: &[&str] = &["", "", ""];
    const STATE: &[&str] = &["", "1-1", "", "3", "1-1"];
    let (own, long) = (
        format!("2 {} 2 3 0 0", filter(KEYS).layout().blocks),
        "x".repeat(1 << 20),
    );
    let (no_chunk, no_id) = (
        "a chunk is none of the filter's",
        "a version is not the id of a stream entry",
    );
    let too_fast = "the server trimmed its log faster than this node could read it";
    for (answers, says) in [
        (
            &[NOTHING, &["more", "1-1", ""]][..],
            "the reply of the script is unknown",
        ),
        (&[NOTHING, &["done", "1-1", "", "1-1"]], "an exchange without its delta"),
        (&[NOTHING, &["done"]], "the reply of the script is too short"),
        (&[NOTHING, &["other", &own, ""]], "differs"),
        (&[&[""]], "the reply of the script is too short"),
        (&[&["", "1-1", "", "99", "1-1"]], no_chunk),
        (&[&["", "1-1", "", "18446744073709551615", "1-1"]], no_chunk),
        (&[&["", "1-1", "", "x", "1-1"]], no_chunk),
        (&[&["", "1-1", "", "0", "1"]], no_id),
        (&[&["", "1-1", "", "0", "-"]], no_id),
        (&[STATE, &[]], "the reply has other chunks than the request"),
        (&[STATE, &["1-1"; 3]], "the reply has a version without its chunk"),
        (
            &[STATE, &["1-1", "", "1-1", ""]],
            "the reply has other chunks than the request",
        ),
        (&[STATE, &["x", ""]], no_id),
        (
            &[STATE, &["1-1", &long]],
            "the chunk is longer than its part of the filter",
        ),
        // Lost chunks without end, and a log that is lost again and again.
        (&[NOTHING, &["gaps", "1-1", "", "1-1", "\0\0\0\0\0\0"]], too_fast),
        (&[NOTHING, &["lost", "1-1", ""]].repeat(10), too_fast),
    ] {
        let error = error_of(answers.iter().map(|texts| list(texts)).collect());
        let is_foreign = error.contains("was not written by a shared filter: ") && error.starts_with("{fuzz}:");
        assert!(
            error.contains(says) && (is_foreign || says == too_fast || says == "differs"),
            "{error}"
        );
    }
    // More without end, each time of something new.
    let mut endless = Mock::new(move |request| {
        let id = format!("{}-1", request.number);
        let more = ["more", &id, "", &id, "\0\0\0\0\x01\0\0\0"];
        Ok(vec![list(if request.number == 1 { NOTHING } else { &more })])
    });
    let error = ends(move || passes_over(&mut endless, Arc::new(filter(KEYS)), 1));
    assert!(error.unwrap_err().to_string().contains(too_fast));
    // An error shows the beginning of a reply that is not a list of texts.
    let long = || redis::Value::BulkString(long.clone().into());
    for (sound, script) in [
        (&[][..], "read.lua"),
        (&[STATE], "read.lua"),
        (&[NOTHING], "exchange.lua"),
    ] {
        let nested = redis::Value::Array(vec![redis::Value::Array(vec![long()])]);
        for nonsense in [nested, redis::Value::Okay, redis::Value::Nil, long()] {
            let sound = sound.iter().map(|texts| list(texts));
            let error = error_of(sound.chain([nonsense]).collect());
            let says = format!("unexpected reply to {script}: ");
            assert!(error.starts_with(&says) && error.len() < 200, "{error}");
        }
    }
    // An error that is long is one as well.
    let error = redis::parse_redis_value(format!("-ERR {}\r\n", "x".repeat(1 << 20)).as_bytes()).unwrap();
    assert!(error_of(vec![error]).len() < 600);
}

/// A lone key is some hundred bytes; of those, the empty exchange's are most.
#[test]
fn few_bytes_travel() {
    let redis = server!();
    let (one, other) = (node(&redis), node(&redis));
    insert(&one, 0..10);
    sync(&one);
    sync(&other);
    let counted = |work: &mut dyn FnMut()| {
        let bytes = |line| figure(&mut redis.connection(), "stats", line);
        let bytes = || ["total_net_input_bytes:", "total_net_output_bytes:"].map(bytes);
        let before = bytes();
        work();
        let after = bytes();
        (after[0] - before[0], after[1] - before[1])
    };
    let asking = counted(&mut || ());
    let empty = counted(&mut || sync(&one));
    println!("an exchange of nothing: {empty:?}, less {asking:?} of the measurement");
    assert!(
        empty.0 - asking.0 < 350 && empty.1 - asking.1 < 150,
        "{empty:?} {asking:?}"
    );
    let mut key = 100;
    let mut keys = |n: u64| {
        let pushed = counted(&mut || {
            insert(&one, key..key + n);
            sync(&one);
        });
        let pulled = counted(&mut || sync(&other));
        key += n;
        let over = |bytes: u64, empty: u64| bytes.saturating_sub(empty) as f64 / n as f64;
        (over(pushed.0, empty.0), over(pulled.1, empty.1))
    };
    // 12 bytes of bits; the chunk's record and key, and the log's id.
    // And whole chunks: 126 KiB for 30000 keys.
    for (n, push, pull) in [
        (1, 12.0..50.0, 12.0..80.0),
        (1000, 10.0..14.0, 10.0..14.0),
        (30_000, 4.0..4.6, 4.0..4.6),
    ] {
        let (pushed, pulled) = keys(n);
        assert!(
            push.contains(&pushed) && pull.contains(&pulled),
            "{n}: {pushed} {pulled}"
        );
    }
    // Lost chunks are named until they are there again.
    (0..16).for_each(|chunk| redis.ask::<()>(&["DEL", &format!("{{ids}}:{chunk}")]));
    (0..3).for_each(|_| sync(&one));
    assert!(counted(&mut || sync(&one)).0 < empty.0 + 20);
}

/// All of a set goes at once, when it was told to.
#[test]
fn a_set_expires_as_a_whole() {
    let redis = server!();
    let connect = |expires: SystemTime, keys| {
        let builder = SharedBloom::builder("ids").interval(NEVER).expires_at(expires);
        builder.connect(redis.client(), filter(keys))
    };
    // Far away: every key has the time, however it was written.
    let later = SystemTime::now() + Duration::from_secs(1000);
    let one = connect(later, KEYS).unwrap();
    for keys in [0..3, 3..50_000, 50_000..99_000] {
        insert(&one, keys);
        sync(&one);
    }
    let times = || -> Vec<u64> {
        let keys: Vec<String> = redis.ask(&["KEYS", "*"]);
        keys.iter().map(|key| redis.ask(&["PEXPIRETIME", key])).collect()
    };
    let millis = later.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() as u64;
    // Meta, log, versions, and 16 chunks.
    assert_eq!(times(), [millis; 19]);
    // Another time, or none, is another set.
    for error in [
        connect(later + Duration::from_millis(1), KEYS),
        node_of(redis.client(), filter(KEYS)),
    ] {
        let error = error.unwrap_err();
        assert!(error.is_incompatible());
        let says = format!("the set \"ids\" on the server expires at {millis} ms, here ");
        assert!(error.to_string().starts_with(&says), "{error}");
    }
    // The same one is welcome.
    let new = connect(later, KEYS).unwrap();
    assert_eq!(missing(&new, 0..99_000), 0);
    // Whoever is dropped may push a little later.
    for node in [one, new] {
        node.close(PATIENCE).unwrap();
    }
    redis.ask::<()>(&["FLUSHALL"]);

    // Soon, but not before a slow machine has pushed something.
    let pushed_until = |seconds| {
        let soon = SystemTime::now() + Duration::from_secs(seconds);
        let one = connect(soon, 1000).ok()?;
        insert(&one, 0..100);
        one.sync(PATIENCE).ok()?;
        (!times().is_empty()).then_some((soon, one))
    };
    let (soon, one) = [4, 16, 64].into_iter().find_map(pushed_until).unwrap();
    // Redis counts whole milliseconds, and keeps a key through the one in which it expires.
    while SystemTime::now() < soon + Duration::from_millis(1) {
        thread::sleep(Duration::from_millis(5));
    }
    // The node keeps what it has, and leaves the server alone.
    insert(&one, 100..200);
    let began = Instant::now();
    let error = one.sync(2 * PATIENCE).unwrap_err();
    assert!(began.elapsed() < PATIENCE && error.is_expired() && !error.is_incompatible());
    assert_eq!(error.to_string(), "the set has expired");
    assert_eq!(missing(&one, 0..200), 0);
    drop(one);
    assert_eq!(times(), [0; 0]);
    assert!(connect(soon, 1000).unwrap_err().is_expired());
    // Its name is free again.
    assert_eq!(missing(&node(&redis), 0..100), 100);
}
