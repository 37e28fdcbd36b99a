//! A filter that forgets: how long a key is visible, at least and at most, by age, by the number of
//! keys and by calls. The tests compare the answers of its calls with a plain map. Both also run
//! beside threads that rotate.

use lanebloom::internal::instruction_sets;
use lanebloom::windowed::Builder;
use lanebloom::{Absent, Bitmap, Hashed, SipHash13, WindowedBloom};
use lanebloom_tests::{STRESS_KEYS, SetAtEnd, Time, hit_rate, lookups_agree, number, plain};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// So low a rate that what is found was inserted.
fn exact(keys: usize) -> Builder {
    WindowedBloom::builder().expected_keys(keys).false_positive_rate(1e-8)
}

fn aged(generations: usize, window: u64, time: &Time) -> WindowedBloom {
    let builder = exact(1000)
        .generations(generations)
        .window(Duration::from_nanos(window));
    builder.clock(time.clock()).build().unwrap()
}

/// The answers of a lookup, of a batch, and of a batch of one key, which must be the same.
fn finds(filter: &WindowedBloom, key: u64) -> bool {
    let (mut found, mut bitmap, mut absent) = ([key % 2 == 0], [u64::MAX], true);
    filter.contains_batch(&[key], &mut found);
    filter.contains_batch(&[key], Bitmap(&mut bitmap));
    filter.contains_batch(&[key], Absent(|_| absent = false));
    let single = filter.contains(&key);
    assert_eq!((found[0], bitmap[0], absent), (single, u64::from(single), single));
    single
}

// ---- By age ----

#[test]
fn by_age_generations_are_at_most_as_many_as_asked_for_and_expired_ones_are_not_listed() {
    let time = Time::default();
    let filter = aged(4, 300, &time);
    for now in 0..1000 {
        time.set(now);
        filter.insert(&now);
        assert_eq!(filter.live_generations().len() as u64, (now / 100 + 1).min(4));
        // The newest generation has the keys of this period so far.
        let len = now % 100 + 1;
        assert!(filter.live_generations()[0].statistics().len.abs_diff(len as usize) as u64 <= 1 + len / 20);
    }
    for (now, left) in [(1050, 3), (1150, 2), (1299, 1), (1300, 0), (5000, 0)] {
        time.set(now);
        assert_eq!(filter.live_generations().len(), left, "{now}");
        let visible = 100 * left;
        assert!(filter.statistics().len.abs_diff(visible) <= visible / 20, "{now}");
        assert_eq!(filter.statistics().false_positive_rate > 0.0, left > 0);
    }
}

/// All generations have expired at once: one step, and nothing of before is left.
#[test]
fn after_a_long_silence_all_is_forgotten_at_once() {
    for silence in [400, 401, 1000, 1 << 40, u64::MAX - 1, u64::MAX] {
        let time = Time::default();
        let filter = aged(4, 300, &time);
        for now in 0..400u64 {
            time.set(now);
            filter.insert(&now);
        }
        time.set(399u64.saturating_add(silence));
        assert!((0..400).all(|key| !finds(&filter, key)), "{silence}");
        assert!(filter.insert(&5u64), "{silence}");
        assert!(finds(&filter, 5) && !filter.insert(&5u64));
        assert_eq!(filter.live_generations().len(), 1);
        assert_eq!(filter.live_generations()[0].statistics().len, 1);
        assert!((6..400).all(|key| !finds(&filter, key)), "{silence}");
    }
}

/// The longest window of any number of generations; and near the end of time, where what is
/// inserted stays.
#[test]
fn the_longest_window_and_the_last_times() {
    for generations in [2, 3, 64] {
        for start in [0, 1, 1 << 62, u64::MAX - 1000, u64::MAX - 1] {
            let time = Time::at(start);
            let filter = aged(generations, 1 << 62, &time);
            let window = filter.window().unwrap().as_nanos() as u64;
            assert!((1 << 62..(1 << 62) + 64).contains(&window));
            filter.insert(&0u64);
            filter.rotate();
            filter.insert(&1u64);
            time.set(start.saturating_add(window));
            filter.insert(&2u64);
            assert!((0..3).all(|key| finds(&filter, key)), "{generations} from {start}");
            filter.rotate_if_due();
            assert!(format!("{filter:?}").contains("window"));
        }
        // One ns before a period ends.
        let time = Time::default();
        let filter = aged(generations, 60, &time);
        for start in [u64::MAX - 1000, u64::MAX - 62, u64::MAX - 61] {
            time.set(start);
            filter.insert(&start);
            time.set(start + 60);
            assert!(finds(&filter, start));
        }
    }
}

/// Nanoseconds beyond 64 bits are the end of time: what is inserted then stays.
#[test]
fn a_clock_may_say_anything() {
    let filter = exact(1000)
        .window(Duration::from_secs(1))
        .clock(|| Duration::MAX)
        .build()
        .unwrap();
    assert!(filter.insert(&1u64) && !filter.insert(&1u64));
    assert!(finds(&filter, 1));
    assert_eq!(filter.live_generations().len(), 1);
}

/// It expires as long after the step as it would have after the newest generation began.
#[test]
fn what_is_nearly_forgotten_when_the_clock_steps_back_is_forgotten_soon() {
    let time = Time::default();
    let filter = aged(4, 300, &time);
    time.set(1000);
    filter.insert(&0u64);
    time.set(1390);
    filter.insert(&1u64);
    time.set(500);
    filter.insert(&2u64);
    assert!((0..3).all(|key| finds(&filter, key)));
    time.set(510);
    assert!(!finds(&filter, 0) && finds(&filter, 1));
}

/// A chunk of a batch is of one moment, also where the clock goes on meanwhile.
#[test]
fn a_batch_reads_the_clock_once_for_each_chunk() {
    let reads = Arc::new(AtomicU64::new(0));
    let clock = {
        let reads = Arc::clone(&reads);
        move || Duration::from_nanos(reads.fetch_add(1, Ordering::Relaxed))
    };
    let builder = exact(10_000).window(Duration::from_nanos(1_000_000)).clock(clock);
    let keys: Vec<u64> = (0..5000).collect();
    let mut flags = vec![false; keys.len()];
    let mut bitmap = vec![0; keys.len().div_ceil(64)];
    for renew in [true, false] {
        let filter = builder.clone().renew(renew).build().unwrap();
        let mut hashes = vec![0; keys.len()];
        filter.hash_batch(&keys, &mut hashes);
        let count = |chunk: usize, work: &mut dyn FnMut()| {
            let before = reads.load(Ordering::Relaxed);
            work();
            let expected = keys.len().div_ceil(chunk) as u64;
            assert_eq!(reads.load(Ordering::Relaxed) - before, expected);
        };
        // Hashes that are looked up for a bitmap are one chunk, and so are those that are inserted,
        // unless the filter looks them up first.
        let inserted = if renew { usize::MAX } else { 1024 };
        count(1024, &mut || assert_eq!(filter.insert_batch(&keys), 5000));
        count(inserted, &mut || {
            assert_eq!(filter.insert_batch(Hashed::slice(&hashes)), 0)
        });
        count(1024, &mut || assert_eq!(filter.insert_batch_into(&keys, &mut flags), 0));
        count(inserted, &mut || {
            assert_eq!(filter.insert_batch_into(Hashed::slice(&hashes), &mut flags), 0);
        });
        count(1024, &mut || filter.contains_batch(&keys, &mut flags));
        count(4096, &mut || filter.contains_batch(Hashed::slice(&hashes), &mut flags));
        count(1024, &mut || filter.contains_batch(&keys, Bitmap(&mut bitmap)));
        count(usize::MAX, &mut || {
            filter.contains_batch(Hashed::slice(&hashes), Bitmap(&mut bitmap))
        });
        count(1024, &mut || filter.contains_batch(&keys, Absent(|_| unreachable!())));
        count(4096, &mut || {
            filter.contains_batch(Hashed::slice(&hashes), Absent(|_| unreachable!()))
        });
        // A lookup that finds nothing needs no clock.
        let before = reads.load(Ordering::Relaxed);
        assert!(!filter.contains(&u64::MAX));
        assert_eq!(reads.load(Ordering::Relaxed), before);
    }
}

/// A client that tries twenty times per window, for five windows: without an option it is let
/// through once, and once per window only if tries do not renew it.
#[test]
fn a_window_is_not_a_rate_limiter_by_itself() {
    let time = Time::default();
    let builder = exact(100).window(Duration::from_millis(1000)).clock(time.clock());
    let let_through = |filter: &WindowedBloom| -> Vec<u64> {
        let tries = (0..100).map(|try_| 50 * try_);
        let tries = tries.filter(|millis| {
            time.set(millis * 1_000_000);
            filter.insert("a client")
        });
        tries.collect()
    };
    assert_eq!(let_through(&builder.clone().build().unwrap()), [0]);
    time.set(0);
    let times = let_through(&builder.renew(false).build().unwrap());
    assert!(
        times
            .windows(2)
            .all(|pair| (1000..=1400).contains(&(pair[1] - pair[0]))),
        "{times:?}"
    );
    assert!((4..=5).contains(&times.len()), "{times:?}");
    // Without a window nothing is forgotten before `rotate` is called.
    let filter = WindowedBloom::with_capacity(100, 0.01).unwrap();
    assert_eq!(let_through(&filter), [0]);
    (0..4).for_each(|_| filter.rotate());
    assert!(!filter.contains("a client"));
}

#[test]
fn only_what_is_due_is_rotated() {
    let time = Time::default();
    // The first generation is of the time at which the filter is built.
    time.set(123_456);
    assert!(!aged(4, 300, &time).rotate_if_due());
    time.set(0);
    let filter = aged(3, 200, &time);
    filter.insert(&0u64);
    for (now, due) in [
        (99, false),
        (100, true),
        (100, false),
        (199, false),
        (1000, true),
        (1099, false),
    ] {
        time.set(now);
        assert_eq!(filter.rotate_if_due(), due, "{now}");
    }
    let called = exact(1000).build().unwrap();
    called.insert(&0u64);
    assert!(!called.rotate_if_due());

    let full = exact(1000).generations(2).rotate_when_full().build().unwrap();
    // Into the generation itself, past the inserts that would rotate.
    (0..1000u64).for_each(|key| _ = full.live_generations()[0].insert(&Hashed(full.hash(&key))));
    assert!(!full.rotate_if_due());
    (1000..1100u64).for_each(|key| _ = full.live_generations()[0].insert(&Hashed(full.hash(&key))));
    assert!(full.rotate_if_due() && !full.rotate_if_due());
    assert!((0..1100).all(|key| finds(&full, key)));
}

/// Keys as they are expected, one in each ns, before and after the filter was told to forget.
#[test]
fn the_rate_holds_after_many_rotations_by_call() {
    let time = Time::at(1 << 40);
    let builder = WindowedBloom::builder().expected_keys(3000);
    let filter = builder
        .window(Duration::from_nanos(3000))
        .clock(time.clock())
        .build()
        .unwrap();
    for now in 0..10_000u64 {
        time.set((1 << 40) + now);
        filter.insert(&Hashed(number(now)));
        if now < 100 {
            filter.rotate();
        }
    }
    let rate = filter.statistics().false_positive_rate;
    assert!(rate < 0.0105, "{rate}");
}

/// One insert is made while the clock is an hour ahead; then it is put right, and keys come as they
/// are expected.
#[test]
fn the_rate_and_the_window_hold_after_a_clock_was_ahead() {
    let hour = 60 * 3000;
    let time = Time::default();
    let builder = WindowedBloom::builder().expected_keys(3000);
    let filter = builder
        .window(Duration::from_nanos(3000))
        .clock(time.clock())
        .build()
        .unwrap();
    for base in [1 << 40, 0] {
        for now in 0..20_000u64 {
            time.set(base + now);
            if now == 5000 {
                time.set(base + now + hour);
            }
            filter.insert(&Hashed(number(now)));
            if now % 100 == 0 && now > 5000 {
                let rate = filter.statistics().false_positive_rate;
                assert!(rate < 0.0105 * 1.25, "{rate} at {now}");
                assert!((now.saturating_sub(3000).max(5000)..=now).all(|key| filter.contains(&Hashed(number(key)))));
            }
        }
        // An hour ahead, and then the time before the clock was set right.
        let visible = (0..16_000u64)
            .filter(|&key| filter.contains(&Hashed(number(key))))
            .count();
        assert!(visible < 16_000 / 50, "{visible}");
    }
}

#[test]
fn the_systems_clock_goes_on() {
    let filter = exact(1000)
        .generations(2)
        .window(Duration::from_millis(40))
        .build()
        .unwrap();
    let start = Instant::now();
    filter.insert(&1u64);
    let found = filter.contains(&1u64);
    // Where the machine let us, less a tick of the clock.
    assert!(found || start.elapsed() > Duration::from_millis(30));
    thread::sleep(Duration::from_millis(100));
    assert!(!finds(&filter, 1));
    assert!(filter.insert(&1u64));
}

// ---- By the number of keys ----

/// The keys `0..`, one by one or in batches; generations come out as promised, and so does what is
/// visible.
#[test]
fn by_number_the_last_keys_are_visible_and_at_most_a_generation_more() {
    for (keys, generations, batch) in [
        (1000, 2, 1),
        (1000, 2, 300),
        (3000, 4, 7),
        (4000, 4, 1),
        (8000, 4, 5000),
        (8000, 11, 64),
    ] {
        let filter = exact(keys).generations(generations).rotate_when_full().build().unwrap();
        let share = keys.div_ceil(generations - 1);
        let total = 4 * keys as u64;
        // The first key of each generation.
        let mut starts = vec![0];
        let mut newest = Arc::as_ptr(&filter.live_generations()[0]);
        for start in (0..total).step_by(batch) {
            let batch: Vec<u64> = (start..total.min(start + batch as u64)).collect();
            match batch[..] {
                [key] => assert!(filter.insert(&key)),
                _ => assert_eq!(filter.insert_batch(&batch), batch.len()),
            }
            let now = Arc::as_ptr(&filter.live_generations()[0]);
            if now != newest {
                newest = now;
                starts.push(start + batch.len() as u64);
            }
        }
        if batch <= 64 {
            let lens: Vec<f64> = starts
                .windows(2)
                .map(|pair| (pair[1] - pair[0]) as f64 / share as f64)
                .collect();
            let mean = lens.iter().sum::<f64>() / lens.len() as f64;
            assert!((1.03..1.09).contains(&mean), "{keys} by {batch}: {lens:?}");
            assert!(
                lens.iter()
                    .all(|len| (1.0..1.12 + batch as f64 / share as f64).contains(len)),
                "{keys} by {batch}: {lens:?}"
            );
        }
        let mut visible = vec![false; total as usize];
        filter.contains_batch(&(0..total).collect::<Vec<_>>(), &mut visible);
        let (last, most) = (total as usize - keys, generations * (share as f64 * 1.15) as usize);
        assert!(visible[last..].iter().all(|&visible| visible), "{keys} by {batch}");
        assert!(!visible[..total as usize - most].contains(&true), "{keys} by {batch}");
    }
}

/// The docs of `rotate_when_full` say how many keys generations get, by their share.
#[test]
fn by_number_generations_get_about_their_share() {
    let ratios = |share: usize, rate: f64, generations: usize| {
        let builder = WindowedBloom::builder()
            .expected_keys(share)
            .false_positive_rate(rate)
            .generations(2);
        let filter = builder.rotate_when_full().build().unwrap();
        let (mut lens, mut len) = (vec![], 0);
        let mut newest = Arc::as_ptr(&filter.live_generations()[0]);
        for key in (0..).map(|key| number((key + share as u64) << 32)) {
            filter.insert(&Hashed(key));
            len += 1;
            let now = Arc::as_ptr(&filter.live_generations()[0]);
            if now != newest {
                newest = now;
                lens.push(f64::from(len) / share as f64);
                len = 0;
                if lens.len() == generations {
                    break;
                }
            }
        }
        lens.sort_by(f64::total_cmp);
        lens
    };
    for (share, least, most) in [(10, 0.9, 1.4), (100, 0.9, 1.3), (1000, 1.0, 1.2)] {
        for rate in [0.1, 1e-4] {
            let generations = 50_000 / share;
            let lens = ratios(share, rate, generations);
            let mean = lens.iter().sum::<f64>() / generations as f64;
            assert!((1.03..1.13).contains(&mean), "{share} at {rate}: {mean}");
            let within = lens.iter().filter(|len| (least..=most).contains(*len)).count();
            // But for one in a thousand.
            assert!(
                within + 1 + generations / 1000 >= generations,
                "{share} at {rate}: {lens:?}"
            );
        }
    }
}

/// A key that comes again and again in a generation counts once.
#[test]
fn by_number_a_key_that_is_there_does_not_count() {
    let filter = exact(1000).generations(2).rotate_when_full().build().unwrap();
    let keys: Vec<u64> = (0..900).collect();
    for _ in 0..20 {
        keys.iter().for_each(|key| _ = filter.insert(key));
        filter.insert_batch(&keys);
    }
    assert_eq!(filter.live_generations().len(), 1);
}

/// Keys that an older generation has fill the newest as others do, though none of them is new.
#[test]
fn by_number_keys_that_come_again_count_where_they_begin_anew() {
    for batch in [1, 50] {
        let filter = exact(2000).generations(3).rotate_when_full().build().unwrap();
        let newest = || Arc::as_ptr(&filter.live_generations()[0]);
        let keys: Vec<u64> = (0..1200).collect();
        let first = newest();
        filter.insert_batch(&keys);
        assert_ne!(first, newest());
        let second = newest();
        for keys in keys[..1000].chunks(batch) {
            match keys {
                [key] => _ = filter.insert(key),
                keys => _ = filter.insert_batch(keys),
            }
        }
        assert_ne!(second, newest(), "batches of {batch}");
        assert!(keys.iter().all(|key| finds(&filter, *key)));
    }
}

/// Also where it is the only key that changes a generation.
#[test]
fn a_batch_of_one_key_of_an_older_generation_has_nothing_new() {
    let filter = exact(1000).build().unwrap();
    for key in 0..10u64 {
        assert_eq!(filter.insert_batch(&[key]), 1);
        filter.rotate();
        let mut new = [true];
        assert_eq!(filter.insert_batch_into(&[key], &mut new), 0);
        assert_eq!(new, [false]);
    }
}

// ---- Against a map ----

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    Rotate,
    /// The clock goes on.
    Later(u64),
    /// All generations at once.
    Clear,
    /// By call: with a filter that has a generation for each of these lists.
    Unite(Vec<Vec<u64>>),
    /// Goes on with a copy, or with a snapshot that is read.
    Clone,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..24u64).prop_map(Step::Insert),
        3 => prop::collection::vec(0..24u64, 0..200).prop_map(Step::InsertBatch),
        2 => Just(Step::Rotate),
        6 => (0..130u64).prop_map(Step::Later),
        1 => (300..2000u64).prop_map(Step::Later),
        1 => Just(Step::Clear),
        2 => prop::collection::vec(prop::collection::vec(0..24u64, 0..4), 1..6).prop_map(Step::Unite),
        1 => Just(Step::Clone),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 250 } else { 1000 }))]

    /// By age or by call: a key has the number of the generation that it was inserted into.
    #[test]
    fn answers_are_those_of_a_map(steps in steps(), generations in 2..5usize, by_age: bool, renew: bool) {
        let (time, period) = (Time::default(), 100);
        let mut builder = exact(1000).generations(generations).renew(renew);
        if by_age {
            let window = Duration::from_nanos(period * (generations as u64 - 1));
            builder = builder.window(window).clock(time.clock());
        }
        let mut filter = builder.clone().build().unwrap();
        let mut model = HashMap::new();
        let mut newest: u64 = if by_age { 0 } else { 10 };
        let mut left = Vec::new();
        for step in steps {
            let index = if by_age { time.now() / period } else { 0 };
            let insert = |model: &mut HashMap<u64, u64>, newest: &mut u64, key| {
                *newest = index.max(*newest);
                let is_visible = model.get(&key).is_some_and(|number| number + generations as u64 > index);
                if renew || !is_visible {
                    model.insert(key, *newest);
                }
                !is_visible
            };
            match step {
                Step::Insert(key) => prop_assert_eq!(filter.insert(&key), insert(&mut model, &mut newest, key)),
                Step::InsertBatch(keys) => {
                    let expected: Vec<bool> = keys.iter().map(|&key| insert(&mut model, &mut newest, key)).collect();
                    let mut new = vec![false; keys.len()];
                    let count = filter.insert_batch_into(&keys, &mut new);
                    prop_assert_eq!(&new, &expected);
                    prop_assert_eq!(count, expected.iter().filter(|&&new| new).count());
                }
                Step::Rotate if by_age => {}
                Step::Rotate => {
                    newest += 1;
                    filter.rotate();
                    // A dropped generation is gone, whatever the clock says.
                    model.retain(|_, number| *number + generations as u64 > newest);
                }
                Step::Later(nanos) => time.set(time.now() + nanos),
                Step::Clear => {
                    model.clear();
                    filter.clear();
                }
                Step::Unite(_) if by_age => {}
                Step::Unite(lists) => {
                    let other = builder.clone().build().unwrap();
                    let (mut theirs, mut is_new) = (HashMap::new(), false);
                    for (number, keys) in lists.iter().enumerate() {
                        other.rotate();
                        theirs.retain(|_, old| *old + generations > number);
                        for key in keys {
                            other.insert(key);
                            if renew || !theirs.contains_key(key) {
                                theirs.insert(*key, number);
                            }
                        }
                    }
                    // A key is forgotten with the generation that has as many newer ones here.
                    for (key, old) in theirs {
                        let number = newest - (lists.len() - 1 - old) as u64;
                        if model.get(&key).is_none_or(|own| *own < number) {
                            is_new = true;
                            model.insert(key, number);
                        }
                    }
                    prop_assert!(filter.union_from(&other).unwrap() || !is_new);
                    prop_assert_eq!(filter.union_from(&other), Ok(false));
                }
                Step::Clone => {
                    let copy = filter.clone();
                    prop_assert!(copy == filter);
                    left.push((mem::replace(&mut filter, copy), model.clone()));
                }
                Step::Restart => {
                    let bytes = filter.snapshot().to_vec();
                    let same = WindowedBloom::from_bytes_with_clock(&bytes, *filter.hasher(), time.clock());
                    let same = same.unwrap().0;
                    prop_assert!(same == filter && same.snapshot().to_vec() == bytes);
                    filter = same;
                }
            }
            let index = if by_age { time.now() / period } else { 0 };
            let is_visible = |model: &HashMap<u64, u64>, key| model.get(&key).is_some_and(|number| number + generations as u64 > index);
            for key in 0..24 {
                prop_assert_eq!(finds(&filter, key), is_visible(&model, key), "key {}", key);
            }
            // The filter that is left behind knows nothing of what its copy did.
            for (filter, model) in &left {
                prop_assert!((0..24).all(|key| finds(filter, key) == is_visible(model, key)));
            }
            let is_empty = (0..24).all(|key| !is_visible(&model, key));
            prop_assert!(filter.is_empty() == is_empty && filter.live_generations().len() <= generations);
        }
    }
}

/// The state of the test at a key's insert: the total advance of the clock, and the numbers of
/// rotations by call and of steps back.
#[derive(Clone, Copy)]
struct Promise {
    on: i64,
    calls: i64,
    steps: i64,
}

/// When a key must be gone: at what time of the clock, since the beginning, and after how many
/// rotations by call.
#[derive(Clone, Copy)]
struct Limit {
    clock: i64,
    calls: i64,
}

/// A filter by age, its clock, and what it should know.
struct Watched {
    filter: WindowedBloom,
    time: Time,
    now: Promise,
    back: i64,
    /// When there were rotations by call and steps back.
    calls: Vec<i64>,
    steps: Vec<i64>,
    /// No insert has found the last step back yet.
    is_behind: bool,
    seen: Vec<Option<Promise>>,
    limits: Vec<Option<Limit>>,
}

const GENERATION: i64 = 1000;
const KEYS: usize = 40;

impl Watched {
    fn new(generations: usize, start: u64) -> Self {
        let time = Time::at(start);
        Self {
            filter: aged(generations, GENERATION as u64 * (generations as u64 - 1), &time),
            time,
            now: Promise {
                on: 0,
                calls: 0,
                steps: 0,
            },
            back: 0,
            calls: vec![],
            steps: vec![],
            is_behind: false,
            seen: vec![None; KEYS],
            limits: vec![None; KEYS],
        }
    }

    fn generations(&self) -> i64 {
        self.filter.generations() as i64
    }

    fn on(&mut self, nanos: u64) {
        self.time.set(self.time.now() + nanos);
        self.now.on += nanos as i64;
    }

    fn back(&mut self, nanos: u64) {
        let nanos = nanos.min(self.time.now());
        self.time.set(self.time.now() - nanos);
        self.back += nanos as i64;
        self.now.steps += 1;
        self.steps.push(self.now.on);
        self.is_behind = true;
    }

    fn find_step(&mut self) {
        if mem::take(&mut self.is_behind) {
            self.steps.push(self.now.on);
        }
    }

    fn rotate(&mut self) {
        self.filter.rotate();
        self.now.calls += 1;
        self.calls.push(self.now.on);
    }

    fn insert(&mut self, key: u64) {
        self.filter.insert(&key);
        self.find_step();
        self.seen[key as usize] = Some(self.now);
        // A generation that the clock stepped back in front of, by a little, lasts so much longer.
        let stepped = self.steps.iter().any(|on| self.now.on - on < GENERATION / 4);
        let late = if stepped { GENERATION / 4 } else { 0 };
        let clock = self.now.on - self.back + GENERATION * self.generations() + late;
        self.limits[key as usize] = Some(Limit {
            clock,
            calls: self.now.calls,
        });
    }

    fn must_be_visible(&self, key: usize) -> bool {
        self.seen[key].is_some_and(|seen| {
            let on = self.now.on - seen.on;
            let (calls, steps) = (self.now.calls - seen.calls, self.now.steps - seen.steps);
            // Ends of periods that there can have been, at most.
            let ends = (on + GENERATION - 1) / GENERATION;
            let few = calls == 0 && steps <= 1 || ends + calls + steps < self.generations();
            on <= GENERATION * (self.generations() - 1) && few
        })
    }

    fn must_be_gone(&self, key: usize) -> bool {
        self.limits[key].is_none_or(|limit| {
            self.now.on - self.back >= limit.clock || self.now.calls - limit.calls >= self.generations()
        })
    }

    /// Keys that are added are as old here as there, and are forgotten up to a generation later; or
    /// anew, if generations are not even.
    fn unite(&mut self, other: &Self) {
        self.filter.union_from(&other.filter).unwrap();
        self.find_step();
        for key in 0..KEYS {
            if let Some(seen) = other.seen[key].filter(|_| other.must_be_visible(key)) {
                let on = self.now.on - (other.now.on - seen.on);
                // It may go into a generation that is older than it is, if they are uneven.
                let uneven = self.now.on - GENERATION * self.generations();
                let since = |times: &[i64]| times.iter().filter(|time| **time >= uneven).count() as i64;
                let moved = Promise {
                    on,
                    calls: self.now.calls - (other.now.calls - seen.calls) - since(&self.calls),
                    steps: self.now.steps - (other.now.steps - seen.steps) - since(&self.steps),
                };
                if !self.must_be_visible(key)
                    || self.seen[key].is_none_or(|own| own.on < on && own.calls <= moved.calls)
                {
                    self.seen[key] = Some(moved);
                }
            }
            if let Some(limit) = other.limits[key].filter(|_| !other.must_be_gone(key)) {
                let longest = GENERATION * self.generations();
                let uneven = [&self.calls, &self.steps]
                    .into_iter()
                    .flatten()
                    .any(|on| self.now.on - on < longest)
                    || [&other.calls, &other.steps]
                        .into_iter()
                        .flatten()
                        .any(|on| other.now.on - on < longest);
                let left = limit.clock - (other.now.on - other.back) + GENERATION;
                let clock = self.now.on - self.back + if uneven { longest.max(left) } else { left };
                let own = self.limits[key].map_or(clock, |own| own.clock);
                self.limits[key] = Some(Limit {
                    clock: clock.max(own),
                    calls: self.now.calls,
                });
            }
        }
    }

    /// By way of a snapshot, with the same clock.
    fn restart(&mut self) {
        let bytes = self.filter.snapshot().to_vec();
        let same = WindowedBloom::from_bytes_with_clock(&bytes, *self.filter.hasher(), self.time.clock());
        self.filter = same.unwrap().0;
    }

    /// How many keys must be visible, and how many were forgotten.
    fn check(&self, what: &str) -> (usize, usize) {
        let (mut kept, mut forgotten) = (0, 0);
        for key in 0..KEYS {
            let found = finds(&self.filter, key as u64);
            let (visible, gone) = (self.must_be_visible(key), self.must_be_gone(key));
            assert!(found || !visible, "{what}: {key} is forgotten too early");
            assert!(!found || !gone, "{what}: {key} is visible for too long");
            kept += usize::from(visible);
            forgotten += usize::from(gone && self.limits[key].is_some());
        }
        assert!(
            self.filter.live_generations().len() <= self.filter.generations() + 1,
            "{what}"
        );
        (kept, forgotten)
    }
}

/// Inserts, rotations by call, a clock that steps on and back by little and much, idle times,
/// unions and restarts, in any order.
#[test]
fn a_key_is_visible_as_promised_whatever_happens() {
    let (mut kept, mut forgotten) = (0, 0);
    for seed in 0..if cfg!(debug_assertions) { 40 } else { 1000 } {
        let mut state = number(seed);
        let mut random = |most: u64| {
            state = number(state);
            state % most
        };
        let generations = 2 + random(5) as usize;
        let mut filters =
            [0, 0].map(|_| Watched::new(generations, random(2) * (random(5000) + (1 << (10 + random(50))))));
        let (rotates, steps) = (random(2) == 0, random(2) == 0);
        for step in 0..150 {
            let [ours, theirs] = &mut filters;
            let what = match random(28) {
                0 if rotates => {
                    ours.rotate();
                    "rotate"
                }
                1 if steps => {
                    ours.back(random(GENERATION as u64 / 4));
                    "a little back"
                }
                2 if steps => {
                    ours.back(random(20 * GENERATION as u64));
                    "back"
                }
                3 => {
                    ours.on(random(5 * GENERATION as u64));
                    "idle"
                }
                4 => {
                    ours.unite(theirs);
                    "union"
                }
                5 => {
                    ours.restart();
                    "restart"
                }
                6 => {
                    filters.swap(0, 1);
                    "the other"
                }
                7..=14 => {
                    ours.on(random(GENERATION as u64 / 2));
                    "on"
                }
                _ => {
                    ours.insert(random(KEYS as u64));
                    "insert"
                }
            };
            let counts = filters[0].check(&format!("seed {seed}, step {step}, {what}"));
            kept += counts.0;
            forgotten += counts.1;
        }
    }
    assert!(kept > 1000 && forgotten > 1000, "{kept} kept, {forgotten} forgotten");
}

/// About a word of the bitmap, a chunk of keys and one of hashes.
const LENGTHS: [usize; 7] = [0, 1, 63, 64, 65, 1025, 4100];

/// Keys of which every third is in an older generation, some in the newest, and some come twice; at
/// so high a rate that others are false positives.
#[test]
fn batches_are_single_calls_in_order() {
    for isa in instruction_sets() {
        for renew in [true, false] {
            for full in [false, true] {
                let builder = WindowedBloom::builder().expected_keys(if full { 3000 } else { 15_000 });
                let builder = builder.false_positive_rate(0.1).renew(renew);
                let builder = if full { builder.rotate_when_full() } else { builder };
                let before = builder.build().unwrap().with_isa(isa);
                (&before).extend((0..4100u64).step_by(3));
                before.rotate();
                (&before).extend((0..4100u64).step_by(7));
                before.rotate();
                (&before).extend((0..4100u64).step_by(11));
                for len in LENGTHS {
                    let keys: Vec<u64> = (0..len as u64).map(|i| if i % 5 == 0 { i / 2 } else { i }).collect();
                    let hashes: Vec<u64> = keys.iter().map(|key| before.hash(key)).collect();
                    lookups_agree(&before, &keys, len % 8);
                    if full {
                        // Where the filter rotates by itself, batches look at how full it is at
                        // other keys.
                        continue;
                    }

                    let one_by_one = plain(before.clone());
                    let new: Vec<bool> = keys.iter().map(|key| one_by_one.insert(key)).collect();
                    let count = new.iter().filter(|&&new| new).count();
                    let is_same = |filter: &WindowedBloom, what| {
                        assert!(*filter == one_by_one, "{isa} {len} {what}");
                    };
                    let mut flags = vec![!new.first().unwrap_or(&false); len];
                    let filter = before.clone();
                    assert_eq!(filter.insert_batch_into(&keys, &mut flags), count);
                    assert_eq!(flags, new, "{isa} {len} renew {renew}");
                    is_same(&filter, "batch flagged");
                    let filter = before.clone();
                    flags.fill(true);
                    assert_eq!(filter.insert_batch_into(Hashed::slice(&hashes), &mut flags), count);
                    assert_eq!(flags, new);
                    is_same(&filter, "hashes flagged");
                    let filter = before.clone();
                    assert_eq!(filter.insert_batch(&keys), count);
                    is_same(&filter, "batch");
                    let filter = before.clone();
                    assert_eq!(filter.insert_batch(Hashed::slice(&hashes)), count);
                    is_same(&filter, "hashes");
                    let filter = before.clone();
                    (&filter).extend(&keys);
                    is_same(&filter, "extend");
                }
            }
        }
    }
}

/// Dense batches go into a generation in bulk, which tells the answers in its own way.
#[test]
fn a_dense_batch_is_single_calls_in_order() {
    let before = WindowedBloom::builder()
        .expected_keys(6000)
        .generations(3)
        .build()
        .unwrap();
    (&before).extend((0..6000u64).step_by(2));
    before.rotate();
    let hashes: Vec<u64> = (0..20_000u64).map(|i| before.hash(&(i % 9000))).collect();
    let (one_by_one, batch) = (before.clone(), before.clone());
    let new: Vec<bool> = hashes.iter().map(|&hash| one_by_one.insert(&Hashed(hash))).collect();
    let mut flags = vec![false; hashes.len()];
    let count = new.iter().filter(|&&new| new).count();
    assert!((3500..6000).contains(&count));
    assert_eq!(batch.insert_batch_into(Hashed::slice(&hashes), &mut flags), count);
    assert!(flags == new);
    assert_eq!(before.insert_batch(Hashed::slice(&hashes)), count);
    assert!(before == batch && before == one_by_one);
}

// ---- Rates, memory ----

#[test]
fn the_rate_holds_when_all_generations_are_full() {
    for (rate, generations) in [(0.1, 2), (0.01, 4), (0.01, 12), (1e-3, 4)] {
        for full in [false, true] {
            let keys = if cfg!(debug_assertions) { 5000 } else { 20_000 };
            let builder = WindowedBloom::builder()
                .expected_keys(keys)
                .false_positive_rate(rate)
                .generations(generations);
            let builder = if full { builder.rotate_when_full() } else { builder };
            let filter = builder.build().unwrap();
            let share = keys.div_ceil(generations - 1) as u64;
            let hashes: Vec<u64> = (0..share * generations as u64).map(number).collect();
            for hashes in hashes.chunks(share as usize) {
                if full {
                    filter.insert_batch(Hashed::slice(hashes));
                } else {
                    filter.rotate();
                    filter.insert_batch(Hashed::slice(hashes));
                }
            }
            let current = filter.statistics().false_positive_rate;
            let queries = if cfg!(debug_assertions) { 40_000 } else { 400_000 };
            let measured = hit_rate(&filter, queries);
            let noise = (rate / queries as f64).sqrt();
            assert!(measured <= rate + 4.0 * noise, "{rate} of {generations}: {measured}");
            assert!(
                (current - measured).abs() < 4.0 * noise + 0.02 * rate,
                "{current} and {measured}"
            );
            assert!(measured > rate / 2.5, "{rate} of {generations}: {measured}");
        }
    }
}

/// The chance that any of several is wrong, which is less than the sum of theirs: far less, where
/// they are too full.
#[test]
fn the_rate_of_overfull_generations_is_measured_as_it_is_said() {
    let filter = WindowedBloom::builder()
        .expected_keys(3000)
        .false_positive_rate(0.1)
        .generations(3)
        .build()
        .unwrap();
    for generation in 0..3 {
        filter.rotate();
        filter.insert_batch(Hashed::slice(
            &(0..5000).map(|i| number(generation << 40 | i)).collect::<Vec<_>>(),
        ));
    }
    let measured = hit_rate(&filter, 20_000);
    let said = filter.statistics().false_positive_rate;
    assert!((0.75..0.99).contains(&measured), "{measured}");
    assert!((said - measured).abs() < 0.02, "{said} said, {measured} measured");
}

/// The model of a filter whose generations have their share of so many keys.
#[test]
fn the_rate_at_so_many_keys_is_that_of_all_generations() {
    let builder = WindowedBloom::builder().expected_keys(30_000);
    let filter = builder.clone().build().unwrap();
    let rate = filter.false_positive_rate();
    assert!((0.0097..=0.01).contains(&rate), "{rate}");
    assert_eq!(filter.false_positive_rate_at(30_000), rate);
    assert_eq!(filter.false_positive_rate_at(0), 0.0);
    assert!((0.0..rate / 4.0).contains(&filter.false_positive_rate_at(15_000)));
    assert!(filter.false_positive_rate_at(60_000) > 5.0 * rate);
    // It rotates before it has more.
    let full = builder.rotate_when_full().build().unwrap();
    let rate = full.false_positive_rate();
    assert!((0.0097..=0.01).contains(&rate), "{rate}");
    assert_eq!(full.false_positive_rate_at(0), 0.0);
    assert!(full.false_positive_rate_at(15_000) < rate / 4.0);
    assert_eq!(full.false_positive_rate_at(1_000_000), rate);
}

#[test]
fn a_filter_whose_keys_have_expired_is_empty() {
    let time = Time::default();
    let filter = aged(3, 200, &time);
    assert!(filter.is_empty());
    filter.insert(&1u64);
    filter.rotate();
    assert!(!filter.is_empty());
    time.set(300);
    assert!(filter.is_empty());
    let now = filter.statistics();
    assert_eq!((now.len, now.fill_ratio, now.false_positive_rate), (0, 0.0, 0.0));
    filter.insert(&2u64);
    assert!(!filter.is_empty());
}

#[test]
fn what_cannot_be_built_is_refused_by_name() {
    let builder = WindowedBloom::builder;
    let refused = |builder: Builder| builder.build().unwrap_err().to_string();
    for generations in [0, 1, 65] {
        assert_eq!(
            refused(builder().expected_keys(10).generations(generations)),
            format!("{generations} generations is not in 2 to 64")
        );
    }
    // A rate that only the division by the generations would make one.
    assert_eq!(
        refused(builder().expected_keys(10).false_positive_rate(2.0)),
        "false-positive rate 2 is not between 0 and 1, both excluded"
    );
    assert!(refused(builder().expected_keys(10).false_positive_rate(f64::NAN)).contains("NaN"));
    assert!(refused(builder()).starts_with("neither expected keys nor a memory budget"));
    let window = |window| refused(builder().expected_keys(10).window(window));
    assert_eq!(
        window(Duration::ZERO),
        "a window of 0ns is not in 1ns to 4611686018.427387904s"
    );
    assert!(window(Duration::MAX).starts_with("a window of 18446744073709551615.999999999s is not in"));
    for keys in [usize::MAX, usize::MAX - 1] {
        let full = refused(builder().expected_keys(keys).generations(2).rotate_when_full());
        assert!(full.contains(&format!("{} keys", usize::MAX)), "{full}");
    }
    assert!(refused(builder().memory_budget(64 * 4)).contains("51 bytes is less than one block"));
    assert!(builder().memory_budget(64 * 5).build().is_ok());
    assert!(
        builder()
            .expected_keys(0)
            .window(Duration::from_nanos(1 << 62))
            .build()
            .is_ok()
    );
    assert!(builder().memory_budget(1 << 58).build().unwrap_err().is_out_of_memory());
}

/// A generation's share of the keys is rounded up, and it has a share of the rate. A filter that
/// rotates when full gets somewhat more keys, since it rotates late.
#[test]
fn each_generation_is_sized_for_its_share() {
    let share = |builder: Builder| {
        let filter = builder.build().unwrap();
        (filter.expected_keys(), filter.live_generations()[0].expected_keys())
    };
    let builder = |keys| WindowedBloom::builder().expected_keys(keys);
    assert_eq!(share(builder(0)), (1, 1));
    assert_eq!(share(builder(10)), (10, 4));
    assert_eq!(share(builder(10).generations(3)), (10, 5));
    assert_eq!(share(builder(10).generations(64)), (10, 1));
    assert_eq!(share(builder(30_000).rotate_when_full()), (30_000, 10_601));
    let memory = |builder: Builder| builder.build().unwrap().memory_bytes();
    assert_eq!(
        memory(builder(30_000)),
        memory(builder(30_000).false_positive_rate(0.01))
    );
}

#[test]
fn a_budget_is_kept_and_used() {
    for generations in [2, 4, 9] {
        let budget = WindowedBloom::builder().memory_budget(1 << 20).generations(generations);
        let filter = budget.clone().build().unwrap();
        assert!(((1 << 20) - 64 * (generations + 1)..=1 << 20).contains(&filter.memory_bytes()));
        // The same, asked for by what it is for.
        let same = WindowedBloom::builder()
            .expected_keys(filter.expected_keys())
            .generations(generations);
        assert!(same.build().unwrap().memory_bytes().abs_diff(filter.memory_bytes()) <= 64 * (generations + 1));
        // Both given: the best rate that fits.
        let better = budget.expected_keys(filter.expected_keys() / 2).build().unwrap();
        // (Two lines per key need an even number of blocks.)
        assert!(filter.memory_bytes() - better.memory_bytes() <= 64 * (generations + 1));
        assert_ne!(
            better.live_generations()[0].statistics().bits_per_key,
            filter.live_generations()[0].statistics().bits_per_key
        );
    }
    let full = WindowedBloom::builder()
        .memory_budget(1 << 20)
        .rotate_when_full()
        .build()
        .unwrap();
    let same = WindowedBloom::builder()
        .expected_keys(full.expected_keys())
        .rotate_when_full();
    assert!(same.build().unwrap().memory_bytes().abs_diff(full.memory_bytes()) < 2000);
}

// ---- Whole filters ----

/// Whatever the two clocks say: as long as there, or for the window if that is less, and at most a
/// generation longer than there.
#[test]
fn a_union_by_age_keeps_keys_as_long_as_there() {
    for generations in [2, 4] {
        let (window, period) = (100 * (generations as u64 - 1), 100);
        let starts = [
            (0, 0),
            (0, 250),
            (30, 1000),
            (70, 1000),
            (99, 5),
            (5, 99),
            (7, 6),
            (6, 7),
        ];
        // Idle, so that some of theirs have expired and ours has a rotation due; and not. Without
        // keys of its own, ours has few generations.
        let rows = [(0, true), (period, true), (0, false), (period, false)];
        for ((their_start, our_start), (idle, has_keys)) in
            starts.into_iter().flat_map(|starts| rows.map(|row| (starts, row)))
        {
            let (theirs_time, ours_time) = (Time::default(), Time::default());
            theirs_time.set(their_start);
            ours_time.set(our_start);
            let (theirs, ours) = (
                aged(generations, window, &theirs_time),
                aged(generations, window, &ours_time),
            );
            let later = |nanos| {
                theirs_time.set(theirs_time.now() + nanos);
                ours_time.set(ours_time.now() + nanos);
            };
            for key in 0..40u64 {
                theirs.insert(&key);
                if has_keys {
                    ours.insert(&(key + 1000));
                }
                later(13);
            }
            later(idle);
            assert_eq!(ours.union_from(&theirs), Ok(true));
            let keys: Vec<u64> = (0..40).collect();
            let gone = |filter: &WindowedBloom| {
                let mut found = vec![false; keys.len()];
                filter.contains_batch(&keys, &mut found);
                found.into_iter().map(|found| !found).collect::<Vec<_>>()
            };
            let mut history = vec![(gone(&theirs), gone(&ours))];
            assert!(history[0].0.contains(&true) && history[0].0.contains(&false));
            for _ in 0..=period * (generations as u64 + 1) {
                later(1);
                history.push((gone(&theirs), gone(&ours)));
            }
            for key in 0..40 {
                let there = history.iter().position(|(there, _)| there[key]).unwrap() as u64;
                let here = history.iter().position(|(_, here)| here[key]).unwrap() as u64;
                assert!(
                    there == 0 && here == 0 || here >= there.min(window + 1) && here <= there + period,
                    "{key}: {there}, {here}"
                );
                if their_start == our_start {
                    assert_eq!(there, here);
                }
            }
        }
    }
}

#[test]
fn a_union_counts_where_the_number_of_keys_does() {
    let build = || exact(1000).generations(2).rotate_when_full().build().unwrap();
    let (ours, theirs) = (build(), build());
    (&ours).extend(0..600u64);
    (&theirs).extend(600..1200u64);
    assert_eq!(ours.union_from(&theirs), Ok(true));
    assert_eq!(ours.live_generations().len(), 2);
    assert!((0..1200).all(|key| finds(&ours, key)));
}

#[test]
fn filters_that_differ_are_not_united() {
    let base = || WindowedBloom::builder().expected_keys(1000);
    let filter = base().build().unwrap();
    filter.insert("a");
    let refused = |builder: Builder| builder.build().unwrap().union_from(&filter).unwrap_err().to_string();
    assert_eq!(
        refused(base().generations(3).window(Duration::from_secs(2))),
        "the other filter's window differs: 4 generations of any age there, 3 generations for 2s here"
    );
    assert!(refused(base().expected_keys(2000)).starts_with("the other filter's layout differs"));
    assert!(refused(base().seed(3)).contains("hasher differs"));
    let keyed = || base().hasher(SipHash13::with_key([7; 16])).build().unwrap();
    keyed().insert("b");
    assert_eq!(keyed().union_from(&keyed()), Ok(false));
}

#[test]
fn figures_say_what_the_filter_is() {
    let filter = WindowedBloom::builder().expected_keys(30_000).seed(5).build().unwrap();
    (0..4u64).for_each(|generation| {
        filter.rotate();
        // Half of each generation's keys are the next one's too.
        filter.insert_batch(&(5000 * generation..5000 * generation + 10_000).collect::<Vec<_>>());
    });
    assert!(filter.statistics().len.abs_diff(25_000) < 500);
    assert!(
        filter
            .live_generations()
            .iter()
            .all(|one| one.statistics().len.abs_diff(10_000) < 300)
    );
    assert_eq!(
        (filter.generations(), filter.window(), filter.expected_keys()),
        (4, None, 30_000)
    );
    let now = filter.statistics();
    assert_eq!(now.len, filter.statistics().len);
    assert!((now.fill_ratio - filter.statistics().fill_ratio).abs() < 1e-9);
    assert!((0.4..0.5).contains(&now.fill_ratio));
    assert_eq!(now.false_positive_rate, filter.statistics().false_positive_rate);
    let debug = format!(
        "{filter:?} {:?}",
        WindowedBloom::builder().window(Duration::from_secs(9))
    );
    for part in [
        "expected_keys: 30000",
        "generations: 4",
        "window: None",
        "seed: 5",
        "Aged(9s)",
        "renew: true",
    ] {
        assert!(debug.contains(part), "{part} in {debug}");
    }
}

// ---- Threads ----

/// Enough threads to hold a lookup up now and then.
const THREADS: usize = 4;

/// Each thread has its own keys and knows when it inserted them; what is within the window must be
/// there. Two more rotate.
#[test]
fn nothing_of_the_window_is_missing_beside_racing_rotations() {
    for generations in [2, 4] {
        let filter = exact(STRESS_KEYS).generations(generations).build().unwrap();
        // Rotations that are over, and that may have begun.
        let (over, begun) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let done: [AtomicBool; THREADS] = Default::default();
        let checked = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.iter().all(|done| done.load(Ordering::SeqCst)) {
                        begun.fetch_add(1, Ordering::SeqCst);
                        filter.rotate();
                        over.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                    }
                });
            }
            for (thread, done) in (0..).zip(&done) {
                let (filter, over, begun, checked) = (&filter, &over, &begun, &checked);
                scope.spawn(move || {
                    let _end = SetAtEnd(done);
                    // On, if need be, until others got to run.
                    let few = || over.load(Ordering::SeqCst) <= 10 || checked.load(Ordering::Relaxed) <= 100;
                    let rounds = (STRESS_KEYS / 10) as u64;
                    let mut last = vec![];
                    for i in (0..100 * rounds).take_while(|&i| i < rounds || few()) {
                        let keys: Vec<u64> = (0..1 + i % 3).map(|j| (thread << 40) + 4 * i + j).collect();
                        let before = over.load(Ordering::SeqCst);
                        match keys[..] {
                            [key] => _ = filter.insert(&key),
                            _ => _ = filter.insert_batch(&keys),
                        }
                        last.push((before, keys));
                        let first = last.len().saturating_sub(10);
                        for (before, keys) in &last[first..] {
                            let found = keys.iter().all(|key| filter.contains(key));
                            if begun.load(Ordering::SeqCst) - before < generations {
                                assert!(found, "{keys:?}");
                                checked.fetch_add(1, Ordering::Relaxed);
                            }
                        }
                    }
                });
            }
        });
        assert!(over.load(Ordering::SeqCst) > 10);
        assert!(checked.load(Ordering::Relaxed) > 100);
    }
}

/// All threads find the same rotations due at the same time, as all set the clock; of each there is
/// one, so that what is within the window is there, and what is too old is not.
#[test]
fn racing_rotations_by_age_keep_the_window() {
    let (generations, period) = (3, 1000);
    let time = Time::default();
    let filter = aged(generations, period * (generations as u64 - 1), &time);
    let kept = AtomicUsize::new(0);
    let forgotten = AtomicUsize::new(0);
    let work = |thread: u64| {
        let mut last = vec![];
        for i in 0..(STRESS_KEYS / 10) as u64 {
            let key = (thread << 40) + i;
            let jump = if number(key) % 1000 == 0 { 5 * period } else { 0 };
            time.add(number(key) % 30 + jump);
            let before = time.now();
            filter.insert(&key);
            last.push((before, time.now(), key));
            for back in [0, 1, 3, 10, 40, 120] {
                let Some(&(before, after, key)) = last.len().checked_sub(back + 1).map(|i| &last[i]) else {
                    continue;
                };
                let asked = time.now();
                let found = filter.contains(&key);
                if time.now() - before <= period * (generations as u64 - 1) {
                    assert!(found);
                    kept.fetch_add(1, Ordering::Relaxed);
                } else if asked - after >= period * generations as u64 {
                    assert!(!found);
                    forgotten.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS as u64 {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
    let (kept, forgotten) = (kept.load(Ordering::Relaxed), forgotten.load(Ordering::Relaxed));
    assert!(kept > 100 && forgotten > 100, "{kept} kept, {forgotten} forgotten");
}

/// All threads insert all keys: of each key that was forgotten meanwhile, or never seen, one at
/// least is told that it is new.
#[test]
fn each_new_key_has_a_winner_beside_rotations() {
    let filter = exact(STRESS_KEYS).generations(16).rotate_when_full().build().unwrap();
    // Whatever the threads' pace, of all their inserts fewer than the window holds come after the
    // last one of any key.
    let keys = STRESS_KEYS as u64 / 4;
    let won: Vec<HashSet<u64>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS as u64)
            .map(|thread| {
                let filter = &filter;
                let start = keys / THREADS as u64 * thread;
                scope.spawn(move || (start..keys).chain(0..start).filter(|key| filter.insert(key)).collect())
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let winners: HashSet<&u64> = won.iter().flatten().collect();
    assert_eq!(winners.len() as u64, keys);
    assert!((0..keys).all(|key| filter.contains(&key)));
    // A race may have several winners; once it is over, there is no other.
    assert!((0..keys).all(|key| !filter.insert(&key)));
    let used = filter
        .live_generations()
        .iter()
        .filter(|one| one.statistics().len > 0)
        .count();
    assert!(used > 4, "{used} generations were used");
}

/// A held generation's memory is not reused.
#[test]
fn a_generation_that_is_held_stays_as_it_is() {
    let filter = exact(1000).generations(2).build().unwrap();
    let held: Vec<_> = (0..20u64)
        .map(|key| {
            filter.rotate();
            filter.insert(&key);
            filter.live_generations().swap_remove(0)
        })
        .collect();
    for (key, one) in held.iter().enumerate() {
        assert!(one.contains(&Hashed(filter.hash(&(key as u64)))));
        assert_eq!(one.statistics().len, 1);
    }
    // The filter does not keep them all: two are in use, and a few to spare.
    let kept: Vec<_> = held.iter().map(Arc::downgrade).collect();
    drop(held);
    filter.rotate();
    assert!(kept.iter().filter(|one| one.strong_count() > 0).count() <= 8);
    drop(kept);
    for key in 0..20u64 {
        filter.rotate();
        assert!(filter.insert(&(key + 100)));
        assert!(filter.statistics().len <= 2);
    }
}

/// A list that was replaced is used again once no lookup has it; the one that lets go of it may do
/// so at any moment.
#[test]
fn lists_are_used_again_without_what_they_held() {
    let filter = exact(1).generations(2).build().unwrap();
    let rotations = STRESS_KEYS as u64;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    assert!(!filter.contains(&u64::MAX));
                }
            });
        }
        let _end = SetAtEnd(&done);
        for key in 0..rotations {
            filter.rotate();
            let live = filter.live_generations();
            assert_eq!(live.len(), 2, "after {key} rotations");
            assert!(filter.insert(&key));
            assert!(key == 0 || filter.contains(&(key - 1)));
            assert!(key < 2 || !filter.contains(&(key - 2)));
        }
    });
}

/// Batches are looked up in lists that are replaced, and whose memory is used again, meanwhile:
/// nothing is found that was never inserted, and a generation that is not the newest any more does
/// not change while it is held.
#[test]
fn lookups_hold_on_to_what_they_read() {
    let filter = exact(4000).generations(3).build().unwrap();
    let never: Vec<u64> = (1 << 40..(1 << 40) + 500).collect();
    let rounds: u64 = if cfg!(debug_assertions) { 200 } else { 5000 };
    let (done, held) = (AtomicBool::new(false), AtomicUsize::new(0));
    filter.rotate();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut found = vec![false; never.len()];
                while held.load(Ordering::Relaxed) == 0 || !done.load(Ordering::SeqCst) {
                    filter.contains_batch(&never, &mut found);
                    assert!(!found.contains(&true));
                    let older = filter.live_generations().swap_remove(1);
                    // Any bit that is set or unset changes them.
                    let before = older.statistics();
                    filter.contains_batch(&never, &mut found);
                    assert_eq!(before, older.statistics());
                    held.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let _end = SetAtEnd(&done);
        for round in 0..rounds {
            let keys: Vec<u64> = (300 * round..300 * (round + 1)).collect();
            assert_eq!(filter.insert_batch(&keys), keys.len());
            filter.rotate();
            assert!(keys.iter().step_by(17).all(|key| filter.contains(key)), "{round}");
            assert!(filter.live_generations().iter().all(|one| one.statistics().len < 320));
        }
    });
    assert!(held.load(Ordering::Relaxed) > 0);
}
