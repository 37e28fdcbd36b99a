//! `SharedWindow`: a set that forgets and its generations, under clocks that the tests set.

use super::{KEYS, NEVER, PATIENCE, Proxy, assert_as_without, p99_of, script_calls, sync_fails};
use crate::common::{SetAtEnd, number, wait_until};
use crate::redis_server::{Redis, figure};
use lanebloom::windowed::Builder;
use lanebloom::{KeyHasher, WindowedBloom};
use lanebloom_redis::shared::SharedBuilder;
use lanebloom_redis::{SharedBloom, SharedError, SharedWindow};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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

/// Before the server is emptied: whoever is only dropped may push a little later.
fn close(nodes: impl IntoIterator<Item = SharedWindow>) {
    for node in nodes {
        node.close(PATIENCE).unwrap();
    }
}

/// The names of all keys of the server.
fn keys(redis: &Redis) -> Vec<String> {
    redis.ask(&["KEYS", "*"])
}

/// The generations of which the server has bits.
fn generations(redis: &Redis) -> Vec<u64> {
    let number = |key: &String| key.strip_suffix(":versions")?.strip_prefix("{recent}:")?.parse().ok();
    let mut numbers: Vec<u64> = keys(redis).iter().filter_map(number).collect();
    numbers.sort();
    numbers
}

/// From the first to the last moment of a generation, at a node that was there and at one that
/// comes late.
#[test]
fn a_key_is_seen_by_others_for_its_window_and_at_most_a_generation_longer() {
    let redis = server!();
    for inserted in [0, 1, PERIOD / 2, PERIOD - 1] {
        redis.ask::<()>(&["FLUSHALL"]);
        let inserted = START + inserted;
        let clock = Clock::at(inserted);
        let (one, other) = (node(&redis, &clock), node(&redis, &clock));
        insert(&one, 0..100);
        sync(&one);
        assert_eq!(found(&other, 0..100), 0);
        sync(&other);
        assert_eq!(found(&other, 0..100), 100);
        // It rotates meanwhile, by inserts and by its thread.
        for (i, time) in (inserted..inserted + WINDOW).step_by(PERIOD as usize / 4).enumerate() {
            clock.set(time);
            insert(&other, 1000 + i as u64..1001 + i as u64);
            if i % 3 == 0 {
                sync(&other);
            }
            assert_eq!(found(&other, 0..100), 100, "{inserted} {time}");
        }
        clock.set(inserted + WINDOW - 1);
        let late = node(&redis, &clock);
        for node in [&one, &other, &late] {
            assert_eq!(found(node, 0..100), 100, "{inserted}");
        }
        clock.set(inserted + WINDOW + PERIOD);
        let later = node(&redis, &clock);
        sync(&other);
        for node in [&one, &other, &late, &later] {
            assert_eq!(found(node, 0..100), 0, "{inserted}");
        }
        // And what came later has not gone with it.
        assert!(other.contains(&number(1011)));
        close([one, other, late, later]);
    }
}

/// The server has several generations; each is as old at a new node as where its keys were
/// inserted.
#[test]
fn a_new_node_starts_from_all_generations_that_live() {
    let redis = server!();
    let clock = Clock::at(START);
    let one = node(&redis, &clock);
    for generation in 0..7 {
        clock.set(START + generation * PERIOD);
        insert(&one, generation * 100..generation * 100 + 100);
        sync(&one);
    }
    // Its earlier keys are pushed too, into their own generations.
    let had = Arc::new(builder(&clock).build().unwrap());
    had.insert("had");
    clock.set(START + 7 * PERIOD - 1);
    let new = shared().connect_window(redis.client(), Arc::clone(&had)).unwrap();
    assert_eq!(found(&new, 0..300), 0);
    assert_eq!(found(&new, 300..700), 400);
    // 16 bytes a key, also of generations that are gone.
    let pushed = one.stats().pushed_bytes;
    assert!((7 * 1500..7 * 1750).contains(&pushed), "{pushed}");
    assert_eq!(new.live_generations().len(), 4);
    sync(&one);
    assert!(one.contains("had"));
    for generation in 3..7 {
        clock.set(START + (generation + GENERATIONS) * PERIOD - 1);
        assert_eq!(found(&new, generation * 100..700), 700 - 100 * generation as usize);
        clock.set(START + (generation + GENERATIONS) * PERIOD);
        assert_eq!(found(&new, 0..generation * 100 + 100), 0);
    }
    assert!(!new.contains("had") && !one.contains("had"));
}

/// A generation in which a node had no keys, nor was awake, and to which others push late.
#[test]
fn what_is_pushed_late_goes_where_it_belongs() {
    let mut redis = server!();
    let clock = Clock::at(START);
    let (one, other) = (node(&redis, &clock), node(&redis, &clock));
    redis.kill();
    // The first of these is forgotten before the server is back.
    for generation in 0..5 {
        clock.set(START + generation * PERIOD);
        insert(&one, generation * 100..generation * 100 + 100);
        if generation % 2 == 0 {
            assert!(one.sync(Duration::from_millis(60)).is_err());
        }
    }
    wait_until(|| one.stats().failures > 0);
    redis.restart();
    sync(&one);
    sync(&other);
    assert_eq!((found(&other, 0..100), found(&other, 100..500)), (0, 400));
    let newest = START / PERIOD + 4;
    assert_eq!(generations(&redis), (newest - 3..=newest).collect::<Vec<_>>());
    // And each is forgotten when it is due, by the node that has it from the server as well.
    for generation in 1..5 {
        clock.set(START + (generation + GENERATIONS) * PERIOD - 1);
        assert_eq!(found(&other, generation * 100..500), 500 - 100 * generation as usize);
        clock.set(START + (generation + GENERATIONS) * PERIOD);
        assert_eq!(found(&other, 0..generation * 100 + 100), 0);
    }
}

/// Four nodes that push while the clock goes on, two of them in the background: nothing of the
/// window is missing anywhere.
#[test]
fn nothing_is_lost_by_races_of_pushes_and_rotations() {
    let redis = server!();
    let clock = Clock::at(START);
    let connect = |interval| {
        let filter = builder(&clock).build().unwrap();
        shared()
            .interval(interval)
            .connect_window(redis.client(), filter)
            .unwrap()
    };
    let nodes = [NEVER, NEVER, Duration::from_millis(1), Duration::from_millis(3)].map(connect);
    let stop = AtomicBool::new(false);
    let counts: [AtomicUsize; 4] = Default::default();
    // By node: keys and the time before they were inserted; the first and the last at times that
    // stand still.
    const STILL: usize = 50;
    let inserted: Vec<Vec<(u64, u64)>> = thread::scope(|scope| {
        let stop = SetAtEnd(&stop);
        let threads: Vec<_> = (0..)
            .zip(nodes.iter().zip(&counts))
            .map(|(i, (node, count))| {
                let (clock, stop) = (&clock, stop.0);
                scope.spawn(move || {
                    let (mut inserted, mut more) = (Vec::new(), STILL);
                    for key in i * 1_000_000.. {
                        while inserted.len() > 20_000 && !stop.load(Ordering::Relaxed) {
                            thread::sleep(Duration::from_millis(1));
                        }
                        more -= usize::from(stop.load(Ordering::Relaxed));
                        inserted.push((key, clock.now()));
                        node.insert(&number(key));
                        count.store(inserted.len(), Ordering::Relaxed);
                        if i < 2 && key % 20 == 0 {
                            sync(node);
                        }
                        if key % 5 == 0 {
                            thread::sleep(Duration::from_micros(200));
                        }
                        if more == 0 {
                            break;
                        }
                    }
                    inserted
                })
            })
            .collect();
        wait_until(|| counts.iter().all(|count| count.load(Ordering::Relaxed) >= STILL));
        for step in 0..60 {
            thread::sleep(Duration::from_millis(5));
            clock.set(START + step * PERIOD / 4);
        }
        drop(stop);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for node in &nodes {
        sync(node);
    }
    let now = clock.now();
    for node in &nodes {
        sync(node);
        let mut visible = 0;
        for (key, time) in inserted.iter().flatten() {
            if now < time + WINDOW {
                assert!(node.contains(&number(*key)), "{key} of {time} at {now}");
                visible += 1;
            }
        }
        assert!(visible > 100, "{visible} keys");
        assert_eq!(node.stats().failures, 0);
    }
    let new = node(&redis, &clock);
    for (key, time) in inserted.iter().flatten() {
        assert!(now >= time + WINDOW || new.contains(&number(*key)));
        // Exactly what is too old is gone, but for false positives.
    }
    let old = inserted
        .iter()
        .flatten()
        .filter(|(_, time)| time / PERIOD + GENERATIONS <= now / PERIOD);
    let (mut all, mut there) = (0, 0);
    for (key, _) in old {
        all += 1;
        there += usize::from(new.contains(&number(*key)));
    }
    assert!(all > 100 && there <= all / 50, "{there} of {all}");
}

/// Less than a generation apart: what is pulled is found at once, and for the window less the
/// difference of the clocks.
#[test]
fn clocks_that_differ_cost_no_more_than_the_difference() {
    let redis = server!();
    for (skew, at) in [
        (1, 0),
        (PERIOD / 2, 0),
        (PERIOD - 1, 0),
        (PERIOD / 2, PERIOD / 4),
        (PERIOD - 1, PERIOD - 1),
    ] {
        for ahead_inserts in [true, false] {
            redis.ask::<()>(&["FLUSHALL"]);
            let (ahead, behind) = (Clock::at(0), Clock::at(0));
            // By the clock that is ahead.
            let set = |time| {
                ahead.set(time);
                behind.set(time - skew);
            };
            set(START + at);
            let (first, second) = (node(&redis, &ahead), node(&redis, &behind));
            let (from, to) = if ahead_inserts {
                (&first, &second)
            } else {
                (&second, &first)
            };
            insert(from, 0..100);
            sync(from);
            sync(to);
            assert_eq!(found(to, 0..100), 100, "{skew} {at} {ahead_inserts}");
            // All along, inserting and exchanging on both.
            for time in (0..WINDOW - skew).step_by(PERIOD as usize / 5) {
                set(START + at + time);
                for node in [&first, &second] {
                    insert(node, 1000 + time..1001 + time);
                    sync(node);
                }
                assert_eq!(found(to, 0..100), 100, "{skew} {at} {ahead_inserts} {time}");
                assert_eq!(found(from, 0..100), 100, "{skew} {at} {ahead_inserts} {time}");
            }
            set(START + at + WINDOW - skew - 1);
            sync(to);
            assert_eq!(found(to, 0..100), 100, "{skew} {at} {ahead_inserts}");
            set(START + at + WINDOW + PERIOD + skew);
            sync(to);
            assert_eq!(found(to, 0..100), 0, "{skew} {at} {ahead_inserts}");
            close([first, second]);
        }
    }
}

/// If a node's clock is wrong by more, other nodes take only keys that are visible by their own
/// clocks, and forget nothing early.
#[test]
fn a_wrong_clock_harms_nobody_else() {
    let redis = server!();
    let (right, wrong) = (Clock::at(START), Clock::at(START + 10 * PERIOD));
    let (one, other, far) = (node(&redis, &right), node(&redis, &right), node(&redis, &wrong));
    insert(&one, 0..100);
    insert(&far, 1000..1100);
    for node in [&one, &far, &other] {
        sync(node);
    }
    assert_eq!((found(&other, 0..100), found(&other, 1000..1100)), (100, 0));
    right.set(START + WINDOW - 1);
    sync(&other);
    assert_eq!(found(&other, 0..100), 100);
    // Nor step by step, after one whose clock is wrong by no more than is allowed.
    for ahead in 1..4 {
        let another = node(&redis, &Clock::at(START + WINDOW - 1 + ahead * PERIOD));
        insert(&another, 2000 + ahead..2001 + ahead);
        sync(&another);
        sync(&other);
    }
    sync(&other);
    assert_eq!(found(&other, 2001..2004), 1);
    // Once the others come to the generation they find its keys.
    right.set(START + 10 * PERIOD);
    sync(&other);
    assert_eq!(found(&other, 1000..1100), 100);
}

/// Where the clock was set back, a window has generations that others do not look at: that is said,
/// and ends with the clock, or with these generations.
#[test]
fn a_clock_that_is_set_back_is_an_error_until_its_generations_have_expired() {
    let redis = server!();
    let clock = Clock::at(START + 5 * PERIOD);
    let one = node(&redis, &clock);
    insert(&one, 0..100);
    // By less than a generation it is as if another's clock were ahead.
    clock.set(START + 4 * PERIOD);
    sync(&one);
    clock.set(START + 4 * PERIOD - 1);
    let says = "the window's generations differ from those of other nodes until they expire: its clock was set back";
    sync_fails(|patience| one.sync(patience), &[says]);
    clock.set(START + 4 * PERIOD);
    sync(&one);
    assert_eq!(found(&node(&redis, &clock), 0..100), 100);
    // Rotations that the clock knows nothing of; and a step back in front of the newest generation
    // that an insert found.
    for (set_back, says) in [(0, "or `rotate` was called"), (PERIOD, says)] {
        if set_back == 0 {
            one.rotate();
        } else {
            clock.set(clock.now() - set_back);
        }
        let keys = 1000 + set_back..1100 + set_back;
        insert(&one, keys.clone());
        sync_fails(|patience| one.sync(patience), &[says]);
        assert_eq!(found(&one, keys.clone()), 100);
        // It is mended by the window's end, when what was inserted first after it has one
        // generation left.
        clock.set(clock.now() + WINDOW);
        insert(&one, keys.end..keys.end + 100);
        clock.set(clock.now() + PERIOD);
        sync(&one);
        assert_eq!(found(&node(&redis, &clock), keys.end..keys.end + 100), 100);
    }
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

/// Every key on the server expires once no node needs it any more, and not before: after the
/// generation has expired at every node whose clock is wrong by a generation at most.
#[test]
fn a_generation_vanishes_from_the_server_after_its_last_use() {
    let redis = server!();
    let clock = Clock::at(START);
    let (one, other) = (node(&redis, &clock), node(&redis, &clock));
    let mut seen = Vec::new();
    for step in 0..40 {
        clock.set(START + step * PERIOD / 3);
        // A few bits, then whole chunks, and a second push of each.
        let node = [&one, &other][step as usize % 2];
        insert(node, step * 1000..step * 1000 + if step % 7 == 0 { 8000 } else { 10 });
        sync(node);
        let now = clock.now();
        let mut metas = 0;
        for key in keys(&redis) {
            let left: i64 = redis.ask(&["PTTL", &key]);
            let left = u64::try_from(left).unwrap_or_else(|_| panic!("{key} never expires"));
            let number: Option<u64> = key.split(':').nth(1).unwrap().parse().ok();
            // The server's time goes on, a little.
            const SLOW: u64 = PERIOD / 2;
            let Some(number) = number else {
                assert_eq!(key, "{recent}:meta");
                metas += 1;
                assert!(left > (GENERATIONS + 1) * PERIOD && left <= (GENERATIONS + 3) * PERIOD);
                continue;
            };
            // When the last node has forgotten it; what was written at another time, was by the
            // clock of that time.
            let end = (number + GENERATIONS + 1) * PERIOD;
            seen.push(number);
            if now < end {
                assert!(left > (end - now).saturating_sub(SLOW), "{key} at {now}: {left} ms");
            }
            assert!(left <= (GENERATIONS + 1) * PERIOD, "{key} at {now}: {left} ms");
        }
        assert_eq!(metas, 1);
    }
    seen.sort();
    seen.dedup();
    let first = START / PERIOD;
    assert!((first..first + 13).all(|number| seen.contains(&number)), "{seen:?}");
}

/// A server's clock may be set forward: chunks that went before what says that they are there would
/// be missed by nobody. So all keys of a generation go at one moment, whenever they were written,
/// and by whom.
#[test]
fn a_generation_vanishes_as_a_whole() {
    let redis = server!();
    let (clock, behind) = (Clock::at(START + PERIOD / 2), Clock::at(START));
    let (one, other) = (node(&redis, &clock), node(&redis, &clock));
    let late = node(&redis, &behind);
    let of_generation = format!("{{recent}}:{}:", START / PERIOD);
    let ends = || {
        let keys = keys(&redis).into_iter().filter(|key| key.starts_with(&of_generation));
        keys.map(|key| redis.ask(&["PEXPIRETIME", &key])).collect::<Vec<u64>>()
    };
    let mut greatest = 0;
    for push in 0..6 {
        // The server's time goes on, and the nodes' a little.
        thread::sleep(Duration::from_millis(3));
        clock.set(START + PERIOD / 2 + push);
        // The last is of the node that needs it for longer.
        let node = [&one, &other, &one, &other, &one, &late][push as usize];
        insert(node, 1000 * push..1000 * push + 10);
        sync(node);
        let ends = ends();
        assert!(
            ends.len() > 3 && ends.iter().all(|end| *end == ends[0]),
            "{push}: {ends:?}"
        );
        assert!(ends[0] >= greatest + if push == 5 { PERIOD / 4 } else { 0 });
        greatest = ends[0];
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

#[test]
fn a_drop_pushes_what_is_left_and_ends_the_thread() {
    let redis = server!();
    let clock = Clock::at(START);
    let one = node(&redis, &clock);
    let filter = Arc::downgrade(one.filter());
    insert(&one, 0..100);
    // In another generation than that in which it was connected.
    clock.set(START + PERIOD);
    insert(&one, 100..200);
    drop(one);
    wait_until(|| filter.upgrade().is_none());
    assert_eq!(found(&node(&redis, &clock), 0..200), 200);
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

/// A hundred rotations, faster than the server forgets: what they leave is gone when its time is
/// over.
#[test]
fn the_servers_memory_does_not_grow_over_rotations() {
    let redis = server!();
    const SHORT: u64 = 60;
    let clock = Clock::at(START);
    let build = || builder(&clock).window(Duration::from_millis(SHORT)).generations(4);
    let [one, other] = [(); 2].map(|()| node_of(redis.client(), build()).unwrap());
    let count = || redis.ask::<u64>(&["DBSIZE"]);
    for rotation in 0..100 {
        clock.set(START + rotation * SHORT / 3);
        for node in [&one, &other] {
            insert(node, 10 * rotation..10 * rotation + 10);
            sync(node);
        }
        if rotation > 3 {
            // The server may have lost the oldest already, by its own clock: nodes have it, and so
            // have those which follow it.
            assert_eq!(found(&one, 10 * rotation - 20..10 * rotation + 10), 30);
        }
    }
    let written = figure(&mut redis.connection(), "stats", "expired_keys:") + count();
    assert!(written > 4 * 100, "{written} keys written");
    // Nothing is inserted any more: all goes, the last of it a generation and a half after all
    // nodes have forgotten it.
    drop((one, other));
    wait_until(|| count() == 0);
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

#[test]
fn what_the_server_lost_is_pushed_again() {
    let mut redis = server!();
    let clock = Clock::at(START);
    let one = node(&redis, &clock);
    for generation in 0..4 {
        clock.set(START + generation * PERIOD);
        insert(&one, generation * 100..generation * 100 + 100);
        sync(&one);
    }
    redis.restart();
    sync(&one);
    assert_eq!(found(&node(&redis, &clock), 0..400), 400);
    // A single generation, but for the chunks, which nobody would find.
    let generation = START / PERIOD + 1;
    let lost = ["meta", "log", "versions"].map(|role| format!("{{recent}}:{generation}:{role}"));
    redis.ask::<()>(&["DEL", &lost[0], &lost[1], &lost[2]]);
    sync(&one);
    assert_eq!(found(&node(&redis, &clock), 0..400), 400);
}

/// A server that takes nothing: what it has is pulled from every generation all the same, where the
/// window began and where it did not.
#[test]
fn a_full_server_still_gives() {
    let redis = server!();
    let clock = Clock::at(START);
    let (one, other) = (node(&redis, &clock), node(&redis, &clock));
    insert(&one, 0..100);
    clock.set(START + PERIOD);
    insert(&one, 100..200);
    sync(&one);
    for (i, full) in (1..).zip([
        &["CONFIG", "SET", "maxmemory", "1"][..],
        &["REPLICAOF", "127.0.0.1", "1"],
    ]) {
        // The window's description cannot be written again either.
        redis.ask::<()>(&["DEL", "{recent}:meta"]);
        redis.ask::<()>(full);
        insert(&other, 1000 * i..1000 * i + 100);
        sync_fails(|patience| other.sync(patience), &["OOM", "read only"]);
        assert_eq!(found(&other, 0..200), 200);
        assert_eq!(found(&one, 1000 * i..1000 * i + 100), 0);
        redis.ask::<()>(&["CONFIG", "SET", "maxmemory", "0"]);
        redis.ask::<()>(&["REPLICAOF", "NO", "ONE"]);
        sync(&other);
        sync(&one);
        assert_eq!(found(&one, 1000 * i..1000 * i + 100), 100);
    }
}

/// A pass that has nothing to say is one call, however many generations there are.
#[test]
fn an_idle_pass_is_one_call() {
    let redis = server!();
    let clock = Clock::at(START);
    let (one, other) = (node(&redis, &clock), node(&redis, &clock));
    insert(&one, 0..100);
    sync(&one);
    sync(&other);
    let counted = |node: &SharedWindow| {
        let before = script_calls(&redis);
        sync(node);
        script_calls(&redis) - before
    };
    assert_eq!((counted(&one), counted(&other)), (1, 1));
    // One that has something, to push or to pull: of that generation.
    insert(&one, 100..101);
    assert_eq!((counted(&one), counted(&other)), (2, 2));
    assert_eq!(found(&other, 0..101), 101);
}

/// Values of another program at these keys, or of a broken server.
#[test]
fn what_is_no_shared_window_is_an_error() {
    let redis = server!();
    let clock = Clock::at(START);
    let one = node(&redis, &clock);
    insert(&one, 0..100);
    sync(&one);
    let fails = |says: &str| sync_fails(|patience| one.sync(patience), &[says]);
    redis.ask::<()>(&["HSET", "{recent}:meta", "description", "words"]);
    fails("describes no shared filter");
    // At one moment, since the thread goes on trying.
    let mut list = redis::pipe();
    list.atomic().del("{recent}:meta").lpush("{recent}:meta", "x");
    list.exec(&mut redis.connection()).unwrap();
    fails("WRONGTYPE");
    redis.ask::<()>(&["DEL", "{recent}:meta"]);
    // A head that is none, and a log that is none: the generation is read anew.
    let generation = START / PERIOD;
    redis.ask::<()>(&["HSET", &format!("{{recent}}:{generation}:meta"), "head", "x"]);
    fails(&format!(
        "{{recent}}:{generation}:meta was not written by a shared filter: the head is not the id of a stream entry"
    ));
    redis.ask::<()>(&["FLUSHALL"]);
    sync(&one);
    assert_eq!(found(&node(&redis, &clock), 0..100), 100);
}

/// A chunk of a generation is evicted, as a policy named volatile may do. A new node notices it, or
/// the next push there.
#[test]
fn a_lost_chunk_of_a_generation_is_pushed_again() {
    let redis = server!();
    let clock = Clock::at(START);
    let (one, other) = (node(&redis, &clock), node(&redis, &clock));
    insert(&one, 0..20_000);
    sync(&one);
    sync(&other);
    let newest = generations(&redis).into_iter().max().unwrap();
    for (round, connects) in (0..).zip([true, false]) {
        for chunk in [0, 2] {
            redis.ask::<()>(&["DEL", &format!("{{recent}}:{newest}:{chunk}")]);
        }
        let keys = if connects { 20_000 } else { 20_500 };
        let new = connects.then(|| node(&redis, &clock));
        insert(&one, 20_000..keys);
        for node in [&one, &other, &one, &other] {
            sync(node);
        }
        for node in new.iter().chain([&node(&redis, &clock)]) {
            sync(node);
            assert_eq!(found(node, 0..keys), keys as usize, "{round}");
        }
    }
}
