//! A filter that forgets: how long a key is visible, at least and at most, by age, by the number of
//! keys and by calls. Two models go beside it: the generations as sets, and the promises. Both also
//! run beside threads that rotate.

use lanebloom::bloom::ConcurrentBloom;
use lanebloom::internal::instruction_sets;
use lanebloom::windowed::Builder;
use lanebloom::{Absent, Bitmap, Hashed, Membership, SipHash13, WindowedBloom, windowed};
use lanebloom_tests::{
    PLACES, STRESS_KEYS, SetAtEnd, Time, WAYS, answers_agree, hit_rate, inserts_agree, lookups_agree, number, plain,
};
use proptest::prelude::*;
use std::array;
use std::collections::{HashSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// So low a rate that what is found was inserted.
fn exact(keys: usize) -> Builder {
    WindowedBloom::builder().expected_keys(keys).false_positive_rate(1e-8)
}

fn aging(generations: usize, window: u64, time: &Time) -> Builder {
    let builder = exact(1000).generations(generations).clock(time.clock());
    builder.window(Duration::from_nanos(window))
}

fn aged(generations: usize, window: u64, time: &Time) -> WindowedBloom {
    aging(generations, window, time).build().unwrap()
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

/// The longest window of any number of generations; and near the end of time, where what is
/// inserted stays. Nanoseconds beyond 64 bits are the end of time.
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
    let clock = exact(1000).window(Duration::from_secs(1)).clock(|| Duration::MAX);
    let filter = clock.build().unwrap();
    assert!(filter.insert(&1u64) && !filter.insert(&1u64) && finds(&filter, 1));
    assert_eq!(filter.live_generations().len(), 1);
}

/// A clock that steps back by at most a quarter of a period is within the newest generation. A key
/// that is nearly forgotten when the clock steps back further expires as long after the step as it
/// would have after the newest generation began.
#[test]
fn a_clock_that_steps_back_far_ends_the_newest_generation() {
    for (back, generations) in [(0, 1), (25, 1), (26, 2), (900, 2)] {
        let time = Time::at(1000);
        let filter = aged(4, 300, &time);
        filter.insert(&0u64);
        time.set(1000 - back);
        filter.insert(&1u64);
        assert_eq!(filter.live_generations().len(), generations, "{back}");
    }
    let time = Time::at(1000);
    let filter = aged(4, 300, &time);
    for (now, key) in [(1000, 0u64), (1390, 1), (500, 2)] {
        time.set(now);
        filter.insert(&key);
    }
    assert!((0..3).all(|key| finds(&filter, key)));
    time.set(510);
    assert!(!finds(&filter, 0) && finds(&filter, 1));
}

#[test]
fn a_rotation_by_call_begins_a_whole_period() {
    let time = Time::at(50);
    let filter = aged(4, 300, &time);
    filter.rotate();
    for (now, is_due) in [(149, false), (150, true), (150, false), (249, false), (250, true)] {
        time.set(now);
        assert_eq!(filter.rotate_if_due(), is_due, "{now}");
    }
    // Without one, periods begin at multiples of the clock's time. A generation may expire while
    // the newest goes on.
    for renew in [true, false] {
        let time = Time::at(50);
        let filter = aging(3, 200, &time).renew(renew).build().unwrap();
        filter.insert(&7u64);
        for (now, is_due) in [(99, false), (100, true)] {
            time.set(now);
            assert_eq!(filter.rotate_if_due(), is_due, "{now}");
        }
        time.set(290);
        filter.rotate();
        assert!(filter.contains(&7u64));
        time.set(310);
        assert!(filter.insert(&7u64) && !filter.insert(&7u64));
    }
}

/// A chunk of a batch is of one moment, also where the clock goes on meanwhile. Hashes that are
/// looked up for a bitmap are one chunk, and so are those that are inserted, unless the filter
/// looks them up first.
#[test]
fn a_batch_reads_the_clock_once_for_each_chunk() {
    let reads = Arc::new(AtomicU64::new(0));
    let clock = {
        let reads = Arc::clone(&reads);
        move || Duration::from_nanos(reads.fetch_add(1, Ordering::Relaxed))
    };
    let builder = exact(10_000).window(Duration::from_nanos(1_000_000)).clock(clock);
    let keys: Vec<u64> = (0..5000).collect();
    let (found, none_new) = (vec![true; 5000], vec![false; 5000]);
    for (renew, inserted) in [(true, 1), (false, 5)] {
        let filter = builder.clone().renew(renew).build().unwrap();
        let hashes: Vec<u64> = keys.iter().map(|key| filter.hash(key)).collect();
        let hashes = Hashed::slice(&hashes);
        let reads = || reads.load(Ordering::Relaxed);
        let before = reads();
        assert_eq!(filter.insert_batch(&keys), 5000);
        assert_eq!(reads() - before, 5);
        let inserts = [
            answers_agree(&none_new, 0, |_, out| {
                let before = reads();
                assert_eq!(filter.insert_batch_into(&keys, out), 0);
                reads() - before
            }),
            answers_agree(&none_new, 0, |_, out| {
                let before = reads();
                assert_eq!(filter.insert_batch_into(hashes, out), 0);
                reads() - before
            }),
        ];
        assert_eq!(inserts, [[5; PLACES], [inserted; PLACES]]);
        let lookups = [
            answers_agree(&found, 0, |_, out| {
                let before = reads();
                filter.contains_batch(&keys, out);
                reads() - before
            }),
            answers_agree(&found, 0, |_, out| {
                let before = reads();
                filter.contains_batch(hashes, out);
                reads() - before
            }),
        ];
        assert_eq!(lookups, [[5, 5, 5, 5, 0], [2, 2, 1, 2, 0]]);
        let before = reads();
        assert_eq!(filter.insert_batch(hashes), 0);
        assert_eq!(reads() - before, inserted);
        // A lookup that finds nothing needs no clock.
        let before = reads();
        assert!(!filter.contains(&u64::MAX));
        assert_eq!(reads(), before);
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

/// Generations are sets of their share of the keys, and a bit more: keys that an older generation
/// has count, and keys that the newest has do not. They come one by one, in batches, and by unions.
#[test]
fn by_number_generations_are_sets_of_their_share() {
    for (keys, generations, batch) in [(1000, 2, 1), (1000, 2, 8), (3000, 4, 7), (4000, 4, 1), (8000, 11, 8)] {
        let build = || exact(keys).generations(generations).rotate_when_full().build().unwrap();
        let mut filter = build();
        let (share, mut seen, mut lens) = (keys.div_ceil(generations - 1), 0, Vec::new());
        let mut sets = VecDeque::from([HashSet::new()]);
        for turn in 0.. {
            // One key in three was there before, or comes twice.
            let batch: Vec<u64> = (0..batch)
                .map(|i| match number(turn << 8 | i) {
                    chance if chance % 3 == 0 && seen > 0 => seen - 1 - chance / 3 % seen.min(2 * keys as u64),
                    _ => {
                        seen += 1;
                        seen - 1
                    }
                })
                .collect();
            let newest = Arc::as_ptr(&filter.live_generations()[0]);
            let expected: Vec<bool> = batch
                .iter()
                .enumerate()
                .map(|(i, key)| !batch[..i].contains(key) && !sets.iter().any(|set: &HashSet<u64>| set.contains(key)))
                .collect();
            let mut new = vec![false; batch.len()];
            match batch[..] {
                _ if turn % 499 == 0 => {
                    let other = build();
                    (&other).extend(&batch);
                    filter.union_from(&other).unwrap();
                    new.clone_from(&expected);
                }
                [key] => new[0] = filter.insert(&key),
                _ => _ = filter.insert_batch_into(&batch, &mut new),
            }
            assert_eq!(new, expected, "{keys} keys");
            sets[0].extend(batch);
            let is_full = Arc::as_ptr(&filter.live_generations()[0]) != newest;
            if turn % 700 == 0 {
                filter = WindowedBloom::from_bytes(&filter.snapshot().to_vec()).unwrap().0;
            }
            if is_full {
                lens.push(sets[0].len() as f64 / share as f64);
                sets.push_front(HashSet::new());
                sets.truncate(generations);
                if lens.len() == 3 * generations {
                    break;
                }
            }
        }
        let most = 1.12 + batch as f64 / share as f64;
        assert!(
            lens.iter().all(|len| (1.0..most).contains(len)),
            "{keys} by {batch}: {lens:?}"
        );
        assert!((0..seen).all(|key| finds(&filter, key) == sets.iter().any(|set| set.contains(&key))));
    }
}

/// Within a long batch the filter rotates as often as between short ones. A rotation that is due is
/// made by whoever finds it, a union too.
#[test]
fn by_number_a_long_batch_ends_generations() {
    let filter = exact(8000).rotate_when_full().build().unwrap();
    let keys: Vec<u64> = (0..32_000).collect();
    for batch in keys.chunks(5000) {
        assert_eq!(filter.insert_batch(batch), batch.len());
    }
    assert!((24_000..32_000).all(|key| finds(&filter, key)));
    assert!((0..32_000 - 4 * 3066).all(|key| !finds(&filter, key)));

    let build = || exact(1000).generations(2).rotate_when_full().build().unwrap();
    let (ours, theirs, full) = (build(), build(), build());
    (&ours).extend(0..600u64);
    (&theirs).extend(600..1200u64);
    assert_eq!(ours.union_from(&theirs), Ok(true));
    assert_eq!(ours.live_generations().len(), 2);
    // Into the generation itself, past the inserts that would rotate.
    (0..1000u64).for_each(|key| _ = full.live_generations()[0].insert(&Hashed(full.hash(&key))));
    assert!(!full.rotate_if_due());
    (1000..1100u64).for_each(|key| _ = full.live_generations()[0].insert(&Hashed(full.hash(&key))));
    assert!(full.rotate_if_due() && !full.rotate_if_due());
    assert!((0..1100).all(|key| finds(&full, key)));
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

// ---- Generations as sets ----

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    InsertBatch(Vec<u64>),
    /// By call.
    Rotate,
    RotateIfDue,
    /// The clock goes on.
    Later(u64),
    Clear,
    /// By call: with a filter that has a generation for each of these lists.
    Unite(Vec<Vec<u64>>),
    /// Goes on with a copy, or with a snapshot that is read.
    Clone,
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let keys = |most| prop::collection::vec(0..24u64, 0..most);
    let step = prop_oneof![
        6 => (0..24u64).prop_map(Step::Insert),
        3 => prop_oneof![keys(3), keys(200)].prop_map(Step::InsertBatch),
        2 => Just(Step::Rotate),
        1 => Just(Step::RotateIfDue),
        6 => (0..130u64).prop_map(Step::Later),
        1 => prop_oneof![300..2000u64, Just(1 << 40)].prop_map(Step::Later),
        1 => Just(Step::Clear),
        2 => prop::collection::vec(keys(4), 1..6).prop_map(Step::Unite),
        1 => Just(Step::Clone),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

const PERIOD: u64 = 100;

/// The keys of each generation, the newest first, and the number of the period that it is for. By
/// call, all are for period 0.
#[derive(Clone)]
struct Sets {
    renew: bool,
    most: usize,
    generations: VecDeque<(u64, HashSet<u64>)>,
}

impl Sets {
    /// Those that are visible in this period.
    fn live(&self, period: u64) -> impl Iterator<Item = &HashSet<u64>> {
        let is_live = move |number: u64| number + self.most as u64 > period;
        self.generations
            .iter()
            .filter(move |one| is_live(one.0))
            .map(|one| &one.1)
    }

    fn contains(&self, period: u64, key: u64) -> bool {
        self.live(period).any(|set| set.contains(&key))
    }

    fn rotate(&mut self, period: u64) {
        self.generations.push_front((period, HashSet::new()));
        self.generations.truncate(self.most);
    }

    /// Rotates if the newest is for an earlier period; returns whether it was.
    fn rotate_if_due(&mut self, period: u64) -> bool {
        let is_due = self.generations[0].0 < period;
        if is_due {
            self.rotate(period);
        }
        is_due
    }

    fn insert(&mut self, period: u64, key: u64) -> bool {
        self.rotate_if_due(period);
        let is_new = !self.contains(period, key);
        if self.renew || is_new {
            self.generations[0].1.insert(key);
        }
        is_new
    }

    /// By call: each of the other's goes to the one that as many newer ones follow, and there are
    /// as many as there; returns whether that changed one.
    fn unite(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (at, (_, keys)) in other.generations.iter().enumerate() {
            if at == self.generations.len() {
                self.generations.push_back((0, HashSet::new()));
            }
            let own = &mut self.generations[at].1;
            changed |= keys.iter().filter(|key| own.insert(**key)).count() > 0;
        }
        changed
    }

    /// Whether the generations of the filter are these.
    fn are_of(&self, filter: &WindowedBloom, period: u64) -> bool {
        let (live, hash) = (filter.live_generations(), |key| Hashed(filter.hash(&key)));
        let same = |(one, set): (&Arc<ConcurrentBloom<()>>, &HashSet<u64>)| {
            one.statistics().len == set.len() && set.iter().all(|&key| one.contains(&hash(key)))
        };
        let count = self.live(period).count();
        live.len() == count && live.iter().zip(self.live(period)).all(same)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 250 } else { 1000 }))]

    #[test]
    fn by_age_or_by_call_generations_are_sets(steps in steps(), most in 2..5usize, by_age: bool, renew: bool) {
        let time = Time::default();
        let mut builder = exact(1000).generations(most).renew(renew);
        if by_age {
            let window = Duration::from_nanos(PERIOD * (most as u64 - 1));
            builder = builder.window(window).clock(time.clock());
        }
        let mut filter = builder.clone().build().unwrap();
        let empty = Sets { renew, most, generations: VecDeque::from([(0, HashSet::new())]) };
        let (mut sets, mut left) = (empty.clone(), Vec::new());
        let mut period = 0;
        for step in steps {
            match step {
                Step::Insert(key) => prop_assert_eq!(filter.insert(&key), sets.insert(period, key)),
                Step::InsertBatch(keys) => {
                    let expected: Vec<bool> = keys.iter().map(|&key| sets.insert(period, key)).collect();
                    let mut new = vec![false; keys.len()];
                    let count = filter.insert_batch_into(&keys, &mut new);
                    prop_assert_eq!(count, expected.iter().filter(|&&new| new).count());
                    prop_assert_eq!(new, expected);
                }
                // `Watched` calls it by age too.
                Step::Rotate if by_age => {}
                Step::Rotate => {
                    sets.rotate(0);
                    filter.rotate();
                }
                Step::RotateIfDue => prop_assert_eq!(filter.rotate_if_due(), sets.rotate_if_due(period)),
                Step::Later(nanos) => {
                    time.add(nanos);
                    period = if by_age { time.now() / PERIOD } else { 0 };
                }
                Step::Clear => {
                    filter.clear();
                    let newest = sets.generations[0].0;
                    sets.generations = VecDeque::from([(newest, HashSet::new())]);
                }
                Step::Unite(_) if by_age => {}
                Step::Unite(lists) => {
                    let (other, mut theirs) = (builder.clone().build().unwrap(), empty.clone());
                    for keys in &lists {
                        other.rotate();
                        theirs.rotate(0);
                        prop_assert!(keys.iter().all(|key| other.insert(key) == theirs.insert(0, *key)));
                    }
                    prop_assert_eq!(filter.union_from(&other), Ok(sets.unite(&theirs)));
                    prop_assert_eq!(filter.union_from(&other), Ok(false));
                }
                Step::Clone => {
                    let copy = filter.clone();
                    prop_assert!(copy == filter);
                    left.push((mem::replace(&mut filter, copy), sets.clone()));
                }
                Step::Restart => {
                    let bytes = filter.snapshot().to_vec();
                    let same = windowed::from_bytes(&bytes, *filter.hasher(), time.clock());
                    let same = same.unwrap().0;
                    prop_assert!(same == filter && same.snapshot().to_vec() == bytes);
                    filter = same;
                }
            }
            for key in 0..24 {
                prop_assert_eq!(finds(&filter, key), sets.contains(period, key), "key {}", key);
            }
            prop_assert!(sets.are_of(&filter, period));
            let visible: HashSet<&u64> = sets.live(period).flatten().collect();
            let now = filter.statistics();
            prop_assert!(now.len == visible.len() && filter.is_empty() == visible.is_empty());
            prop_assert_eq!(now.false_positive_rate == 0.0, visible.is_empty());
            prop_assert_eq!(now.fill_ratio == 0.0, visible.is_empty());
            // The filter that is left behind knows nothing of what its copy did.
            for (filter, sets) in &left {
                prop_assert!(sets.are_of(filter, period));
            }
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
    renew: bool,
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
    fn new(generations: usize, renew: bool, start: u64) -> Self {
        let time = Time::at(start);
        let builder = aging(generations, GENERATION as u64 * (generations as u64 - 1), &time);
        Self {
            filter: builder.renew(renew).build().unwrap(),
            renew,
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
        let (visible, gone) = (self.must_be_visible(key as usize), self.must_be_gone(key as usize));
        let new = self.filter.insert(&key);
        assert!(!(new && visible) && (new || !gone), "{key} is new: {new}");
        self.find_step();
        if !new && !self.renew {
            return;
        }
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

    /// By way of a snapshot that is read some time later, with the same clock.
    fn restart(&mut self, down: u64) {
        let bytes = self.filter.snapshot().to_vec();
        self.on(down);
        let same = windowed::from_bytes(&bytes, *self.filter.hasher(), self.time.clock());
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
        let (generations, renew) = (2 + random(5) as usize, random(4) > 0);
        let mut filters = [(); 2].map(|()| {
            let start = random(2) * (random(5000) + (1 << (10 + random(50))));
            Watched::new(generations, renew, start)
        });
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
                    ours.restart(random(2) * random(2 * GENERATION as u64));
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
/// so high a rate that others are false positives. Dense batches go into a generation in bulk.
#[test]
fn batches_are_single_calls_in_order() {
    for (isa, renew) in instruction_sets().flat_map(|isa| [(isa, true), (isa, false)]) {
        for (planned, lengths) in [(15_000, &LENGTHS[..]), (3000, &[20_000])] {
            let builder = WindowedBloom::builder().expected_keys(planned);
            let builder = builder.false_positive_rate(0.1).renew(renew);
            let before = builder.build().unwrap().with_isa(isa);
            for step in [3, 7, 11] {
                before.rotate();
                (&before).extend((0..planned as u64 / 3).step_by(step));
            }
            for &len in lengths {
                let keys: Vec<u64> = (0..len as u64).map(|i| if i % 5 == 0 { i / 2 } else { i }).collect();
                let hashes: Vec<u64> = keys.iter().map(|key| before.hash(key)).collect();
                lookups_agree(&before, &keys, len % 8);
                let one_by_one = plain(before.clone());
                let told: Vec<bool> = keys.iter().map(|key| one_by_one.insert(key)).collect();
                let [by_key, by_hash] = [(); 2].map(|()| array::from_fn::<_, WAYS, _>(|_| before.clone()));
                inserts_agree(&by_key, &keys, &told, len % 8);
                inserts_agree(&by_hash, Hashed::slice(&hashes), &told, len % 8);
                let mut all = by_key.iter().chain(&by_hash);
                assert!(all.all(|filter| *filter == one_by_one), "{isa} {len} renew {renew}");
            }
        }
    }
}

// ---- Rates, memory ----

/// With generations that have their share, and with overfull ones: the chance that any of several
/// is wrong, which is less than the sum of theirs.
#[test]
fn the_rate_is_measured_as_it_is_said() {
    for (rate, generations, share, full) in [
        (0.1, 2, 1.0, false),
        (0.1, 2, 1.0, true),
        (0.01, 4, 1.0, false),
        (0.01, 4, 1.0, true),
        (0.01, 12, 1.0, true),
        (1e-3, 4, 1.0, false),
        (0.1, 3, 10.0 / 3.0, false),
    ] {
        let keys = if cfg!(debug_assertions) { 5000 } else { 20_000 };
        let builder = WindowedBloom::builder().expected_keys(keys).false_positive_rate(rate);
        let builder = builder.generations(generations);
        let builder = if full { builder.rotate_when_full() } else { builder };
        let filter = builder.build().unwrap();
        let of_each = (share * keys.div_ceil(generations - 1) as f64) as u64;
        for generation in 0..generations as u64 {
            if !full {
                filter.rotate();
            }
            let hashes: Vec<u64> = (0..of_each).map(|key| number(generation << 32 | key)).collect();
            filter.insert_batch(Hashed::slice(&hashes));
        }
        let current = filter.statistics().false_positive_rate;
        let queries = if cfg!(debug_assertions) { 40_000 } else { 400_000 };
        let measured = hit_rate(&filter, queries);
        let noise = 4.0 * (current / queries as f64).sqrt() + 0.02 * rate;
        let what = format!("{rate} of {generations}: measured {measured}, said {current}");
        assert!((current - measured).abs() < noise, "{what}");
        if share == 1.0 {
            assert!(measured <= rate + noise && measured > rate / 2.5, "{what}");
        } else {
            assert!((0.75..0.99).contains(&measured), "{what}");
        }
    }
}

/// The model of a filter whose generations share its number of keys. One that rotates when full
/// does so before it has more.
#[test]
fn the_rate_at_so_many_keys_is_that_of_all_generations() {
    let builder = WindowedBloom::builder().expected_keys(30_000);
    let (called, full) = (
        builder.clone().build().unwrap(),
        builder.rotate_when_full().build().unwrap(),
    );
    for filter in [&called, &full] {
        let rate = filter.false_positive_rate();
        assert!((0.0097..=0.01).contains(&rate), "{rate}");
        assert!(filter.false_positive_rate_at(15_000) < rate / 4.0);
    }
    assert!(called.false_positive_rate_at(60_000) > 5.0 * called.false_positive_rate());
    assert_eq!(full.false_positive_rate_at(1_000_000), full.false_positive_rate());
}

#[test]
fn what_cannot_be_built_is_refused_by_name() {
    let builder = || WindowedBloom::builder().expected_keys(10);
    let nanos = |nanos| builder().window(Duration::from_nanos(nanos));
    let full = |keys| {
        WindowedBloom::builder()
            .expected_keys(keys)
            .generations(2)
            .rotate_when_full()
    };
    for (builder, expected) in [
        (builder().generations(0), "0 generations is not in 2 to 64"),
        (builder().generations(1), "1 generations is not in 2 to 64"),
        (builder().generations(65), "65 generations is not in 2 to 64"),
        // A rate that only the division by the generations would make one.
        (
            builder().false_positive_rate(2.0),
            "false-positive rate 2 is not between 0 and 1, both excluded",
        ),
        (builder().false_positive_rate(f64::NAN), "NaN"),
        (WindowedBloom::builder(), "neither expected keys nor a memory budget"),
        (nanos(0), "a window of 0ns is not in 1ns to 4611686018.427387904s"),
        (
            builder().window(Duration::MAX),
            "a window of 18446744073709551615.999999999s is not in",
        ),
        (full(usize::MAX), &format!("{} keys", usize::MAX)),
        (full(usize::MAX - 1), &format!("{} keys", usize::MAX)),
        (
            WindowedBloom::builder().memory_budget(64 * 4),
            "51 bytes is less than one block",
        ),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    assert!(WindowedBloom::builder().memory_budget(64 * 5).build().is_ok());
    assert!(nanos(1 << 62).expected_keys(0).build().is_ok());
    let beyond = WindowedBloom::builder().memory_budget(1 << 58);
    assert!(beyond.build().unwrap_err().is_out_of_memory());
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
fn a_filter_prints_its_settings() {
    let window = Duration::from_secs(9);
    let builder = WindowedBloom::builder().expected_keys(30_000).seed(5);
    let (called, aged) = (builder.clone().build().unwrap(), builder.window(window));
    let debug = format!("{called:?} {aged:?} {:?}", aged.clone().build().unwrap());
    for part in [
        "expected_keys: 30000",
        "generations: 4",
        "window: None",
        "window: Some(9s)",
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
