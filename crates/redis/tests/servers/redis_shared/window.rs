//! `SharedWindow`: a set that forgets and its generations, under clocks that the tests set.

use super::{KEYS, NEVER, PATIENCE, Proxy, assert_as_without, p99_of, sync_fails};
use crate::common::{number, wait_until};
use crate::redis_server::Redis;
use lanebloom::windowed::Builder;
use lanebloom::{KeyHasher, WindowedBloom};
use lanebloom_redis::shared::SharedBuilder;
use lanebloom_redis::{SharedBloom, SharedError, SharedWindow};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The sets of most tests: a window of a minute, and generations of a third of it.
const GENERATIONS: u64 = 4;
const WINDOW: u64 = 60_000;
const PERIOD: u64 = WINDOW / (GENERATIONS - 1);
/// When the tests begin, in ms of their clock: at the beginning of a generation.
const START: u64 = PERIOD * 1_000_000;

/// A clock of ms, which stands still until it is set.
#[derive(Clone)]
struct Clock(Arc<AtomicU64>);

impl Clock {
    fn at(time: u64) -> Self {
        Self(Arc::new(AtomicU64::new(time)))
    }

    fn set(&self, time: u64) {
        self.0.store(time, Ordering::SeqCst);
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

fn builder(clock: &Clock) -> Builder {
    let clock = clock.clone();
    WindowedBloom::builder()
        .expected_keys(KEYS)
        .window(Duration::from_millis(WINDOW))
        .clock(move || Duration::from_millis(clock.now()))
}

/// The options of nodes that exchange only when told to.
fn shared() -> SharedBuilder {
    SharedBloom::builder("recent").interval(NEVER).timeout(PATIENCE)
}

fn node_of<S: KeyHasher + Send + Sync + 'static>(
    client: redis::Client,
    builder: Builder<S>,
) -> Result<SharedWindow<S>, SharedError> {
    shared().connect_window(client, builder.build().unwrap())
}

fn node(redis: &Redis, clock: &Clock) -> SharedWindow {
    node_of(redis.client(), builder(clock)).unwrap()
}

fn insert(node: &SharedWindow, keys: Range<u64>) {
    for key in keys {
        node.insert(&number(key));
    }
}

fn found(node: &SharedWindow, keys: Range<u64>) -> usize {
    keys.filter(|&key| node.contains(&number(key))).count()
}

fn sync(node: &SharedWindow) {
    node.sync(PATIENCE).unwrap();
}

#[test]
fn who_does_not_fit_is_refused() {
    let redis = server!();
    let clock = Clock::at(START);
    let one = node(&redis, &clock);
    insert(&one, 0..100);
    sync(&one);
    // The unit tests of `set_description.rs` try every difference.
    let refused = |result: Result<SharedWindow, SharedError>, says: &str| {
        let error = result.unwrap_err();
        assert!(error.is_incompatible() && !error.is_expired(), "{error}");
        assert!(error.to_string().ends_with(says), "{error}");
    };
    let here = "is a window by 4 generations of 20s, here it is a window by";
    // The same layout with another number of generations: 2 of 20 s each.
    let two = builder(&clock).generations(2).window(Duration::from_secs(20));
    refused(node_of(redis.client(), two), &format!("{here} 2 generations of 20s"));
    refused(node_of(redis.client(), builder(&clock).seed(1)), "seed or key");
    // A set that does not forget, and the other way round.
    let lasting = |name| {
        let shared = SharedBloom::builder(name).interval(NEVER);
        shared.connect(redis.client(), super::filter(KEYS))
    };
    let error = lasting("recent").unwrap_err().to_string();
    assert!(
        error.ends_with("is a window by 4 generations of 20s, here it never expires"),
        "{error}"
    );
    let _lasting = lasting("ids").unwrap();
    let ids = SharedBloom::builder("ids").connect_window(redis.client(), builder(&clock).build().unwrap());
    refused(ids, "never expires, here it is a window by 4 generations of 20s");
    // While a node has it the set is replaced, by one of another period: that is final.
    redis.ask::<()>(&["FLUSHALL"]);
    let _other = node_of(redis.client(), builder(&clock).generations(3)).unwrap();
    let began = Instant::now();
    assert!(one.sync(2 * PATIENCE).unwrap_err().is_incompatible());
    assert!(began.elapsed() < PATIENCE);
    // And of one generation somebody wrote another description.
    redis.ask::<()>(&["FLUSHALL"]);
    sync(&one);
    let meta = format!("{{recent}}:{}:meta", START / PERIOD);
    redis.ask::<()>(&["HSET", &meta, "description", "2 1 1 1 0 0"]);
    insert(&one, 100..101);
    assert!(one.sync(2 * PATIENCE).unwrap_err().is_incompatible());
}

/// A filter that cannot be shared is an error before anything is sent.
#[test]
fn windows_that_no_other_node_can_have_are_refused() {
    let connect = |builder: Builder| {
        // Nobody is there.
        let client = redis::Client::open("redis://127.0.0.1:1/").unwrap();
        node_of(client, builder).unwrap_err().to_string()
    };
    let plain = || WindowedBloom::builder().expected_keys(1000);
    let clock = Clock::at(START);
    for builder in [plain(), plain().rotate_when_full()] {
        assert!(connect(builder).starts_with("the window rotates on a call or when it is full"));
    }
    let monotonic = connect(plain().window(Duration::from_secs(60)));
    assert!(monotonic.starts_with("the window ages by this machine's monotonic clock"));
    let short = |micros| connect(builder(&clock).window(Duration::from_micros(micros)));
    assert_eq!(
        short(2997),
        "generations of 999µs are shorter than 1ms, the shortest that the server supports"
    );
    assert!(short(3000).starts_with("Redis: "));
    let client = redis::Client::open("redis://127.0.0.1:1/").unwrap();
    let expires = std::time::SystemTime::UNIX_EPOCH + Duration::from_millis(17);
    for (shared, says) in [
        (
            shared().expires_at(expires),
            "it takes no expiry time, here 17 ms since 1970",
        ),
        (SharedBloom::builder("{recent}"), "\"{recent}\""),
    ] {
        let error = shared.connect_window(client.clone(), builder(&clock).build().unwrap());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// The caller's code may panic in the background: that is an error, and the thread goes on.
#[test]
fn a_clock_that_panics_is_an_error_and_no_end() {
    let redis = server!();
    let clock = Clock::at(START);
    let its_clock = clock.clone();
    // Only in the background, so that this test can go on inserting.
    let panicking = || thread::current().name() == Some("lanebloom-shared");
    let builder = WindowedBloom::builder()
        .expected_keys(KEYS)
        .window(Duration::from_millis(WINDOW))
        .clock(move || match its_clock.now() {
            0 if panicking() => panic!("the clock fell down"),
            now => Duration::from_millis(now.max(START)),
        });
    let one = node_of(redis.client(), builder).unwrap();
    insert(&one, 0..100);
    sync(&one);
    clock.set(0);
    insert(&one, 100..200);
    let says = "the exchange panicked and started again: the clock fell down";
    sync_fails(|patience| one.sync(patience), &[says]);
    assert_eq!(one.stats().last_error.unwrap().to_string(), says);
    clock.set(START);
    sync(&one);
    assert_eq!(found(&node(&redis, &clock), 0..200), 200);
    assert!(one.stats().last_error.is_none());
}

/// A hasher that must not be called in the background.
#[derive(Debug)]
struct Fragile;

impl std::hash::BuildHasher for Fragile {
    type Hasher = std::hash::DefaultHasher;

    fn build_hasher(&self) -> Self::Hasher {
        assert_ne!(thread::current().name(), Some("lanebloom-shared"), "the hasher broke");
        Self::Hasher::new()
    }
}

/// The generations that the thread begins and reads have no hasher, so it cannot break there.
#[test]
fn the_hasher_is_not_called_in_the_background() {
    let redis = server!();
    let clock = Clock::at(START);
    let one = node_of(redis.client(), builder(&clock).hasher(Fragile)).unwrap();
    for period in 0..20 {
        // When all generations are new, they are more than there are in stock.
        clock.set(START + 10 * period * PERIOD);
        assert!(one.insert(&period));
        one.sync(PATIENCE).unwrap();
        assert!(one.contains(&period));
    }
    assert_eq!(one.stats().failures, 0);
}

/// The server goes away and comes back with nothing, and meanwhile generations come and go: nobody
/// waits.
#[test]
fn the_hot_path_is_as_fast_while_the_server_is_away_and_the_window_rotates() {
    let mut redis = server!();
    let proxy = Proxy::to(redis.port());
    let clock = Clock::at(START);
    let shared = shared()
        .interval(Duration::from_millis(2))
        .timeout(Duration::from_millis(1500));
    let one = shared.connect_window(proxy.client(), builder(&clock).build().unwrap());
    let one = one.unwrap();
    let ask = |i: u64| {
        one.insert(&number((1 << 50) + i % 1000));
        std::hint::black_box(one.contains(&number((1 << 40) + i)));
    };
    let rotations = |first: u64| {
        for step in first..first + 20 {
            clock.set(START + step * PERIOD / 4);
            thread::sleep(Duration::from_millis(3));
        }
    };
    let without = p99_of(&ask, || rotations(0));
    let killed = p99_of(&ask, || {
        redis.kill();
        rotations(20);
        wait_until(|| one.stats().failures > 0);
        redis.restart();
        sync(&one);
    });
    let silent = p99_of(&ask, || {
        proxy.stall(true);
        rotations(40);
        // Until the thread has noticed.
        let failures = one.stats().failures;
        wait_until(|| one.stats().failures > failures);
        proxy.stall(false);
        sync(&one);
    });
    let full = p99_of(&ask, || {
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "1"]);
        rotations(60);
        insert(&one, 0..100);
        assert!(one.sync(Duration::from_millis(100)).is_err());
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        sync(&one);
    });
    for during in [killed, silent, full] {
        assert_as_without(during, without);
    }
    assert_eq!(found(&node(&redis, &clock), 0..100), 100);
}
