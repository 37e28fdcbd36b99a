//! The guard: its batch calls are its single calls, many keys at a time; its key type; keys that
//! strangers make; code that is cancelled.

use lanebloom::{
    Bitmap, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Funnel, ScalableBloom, Sink, Statistics,
    TombstoneBloom, WindowedBloom,
};
use lanebloom_guard::{CacheGuard, GuardFilter, Layered};
use std::borrow::{Borrow, Cow};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Waker};

/// Has every third number below 3000, and so high a rate that others are often admitted as well.
fn guard() -> CacheGuard<u32> {
    let guard = CacheGuard::with_capacity(1000, 0.2).unwrap();
    guard.insert_batch(&(0..3000).step_by(3).collect::<Vec<_>>());
    guard
}

/// About the 64 keys of a word of the bitmap, and about the chunks of 1024.
const LENGTHS: [u32; 13] = [0, 1, 2, 63, 64, 65, 128, 1023, 1024, 1025, 2047, 2048, 3000];

/// A filter with the required methods alone. It refuses the keys above 2500.
struct Least(ConcurrentBloom);

impl GuardFilter for Least {
    fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.0.contains(key)
    }
    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let is_refused = (2501..3000u32).any(|refused| self.0.hash(key) == self.0.hash(&refused));
        !is_refused && GuardFilter::insert(&self.0, key)
    }
    fn statistics(&self) -> Statistics {
        self.0.statistics()
    }
    fn false_positive_rate(&self) -> f64 {
        self.0.false_positive_rate()
    }
    fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }
}

/// The batches of a filter are its single calls, and a place of another length is an error.
fn batches_are_single_calls(filter: &impl GuardFilter, name: &str) {
    for len in LENGTHS {
        let keys: Vec<u32> = (0..len).collect();
        let mut found = vec![u64::MAX; keys.len().div_ceil(64)];
        filter.contains_batch(&keys, Bitmap(&mut found));
        let mut expected = vec![0; found.len()];
        for (i, key) in keys.iter().enumerate() {
            expected[i / 64] |= u64::from(filter.contains(key)) << (i % 64);
        }
        assert_eq!(found, expected, "{name}, {len} keys");
        let words = found.len();
        for (places, mut out) in [words + 1, words.wrapping_sub(1)]
            .into_iter()
            .filter(|places| *places <= 1000)
            .map(|places| (places, vec![0; places]))
        {
            let lookup = || filter.contains_batch(&keys, Bitmap(&mut out));
            let panic = catch_unwind(AssertUnwindSafe(lookup)).expect_err(name);
            assert_eq!(
                *panic.downcast::<String>().unwrap(),
                format!("a bitmap of {len} keys needs {words} words, but `out` has {places}"),
                "{name}"
            );
        }
    }
}

#[test]
fn batches_of_every_filter_are_its_single_calls() {
    let keys: Vec<u32> = (0..3000).step_by(3).collect();
    let least = Least(ConcurrentBloom::with_capacity(1000, 0.2).unwrap());
    assert!(GuardFilter::insert_batch(&least, &keys[..800]));
    // The keys after a refused one are inserted as well.
    assert!(!GuardFilter::insert_batch(&least, &[2502, 7_000u32]));
    assert!(least.contains(&7_000u32) && GuardFilter::statistics(&least).len > 700);
    batches_are_single_calls(&least, "the required methods");

    let bloom = ConcurrentBloom::with_capacity(1000, 0.2).unwrap();
    assert!(GuardFilter::insert_batch(&bloom, &keys));
    batches_are_single_calls(&bloom, "a filter");

    let layered = Layered::new(1000, 0.2).unwrap();
    assert!(layered.insert_batch(&keys[..500]));
    batches_are_single_calls(&layered, "collects");
    layered.complete().unwrap();
    assert!(layered.insert_batch(&keys[500..]) && layered.contains(&2997u32));
    batches_are_single_calls(&layered, "layered");

    #[cfg(feature = "formats")]
    {
        let guava = lanebloom_guard::lanebloom_formats::GuavaBloom::with_capacity(1000, 0.2).unwrap();
        assert!(GuardFilter::insert_batch(&guava, &keys));
        batches_are_single_calls(&guava, "Guava's");
    }
}

#[test]
fn a_batch_is_admitted_as_its_keys_are_one_by_one() {
    let guard = guard();
    for len in LENGTHS {
        let keys: Vec<u32> = (0..len).collect();
        let start = guard.stats();
        let one_by_one: Vec<usize> = (0..keys.len()).filter(|&i| guard.check(&keys[i]).is_some()).collect();
        let singly = guard.stats().since(&start);

        let start = guard.stats();
        let mut batch = Vec::new();
        guard.check_batch(&keys, |i, admission| {
            batch.push(i);
            admission.record(i % 3 == 0);
        });
        let at_once = guard.stats().since(&start);

        assert_eq!(batch, one_by_one, "{len} keys");
        assert_eq!(at_once.admitted, singly.admitted);
        assert_eq!(at_once.turned_away, singly.turned_away);
        assert_eq!(at_once.admitted + at_once.turned_away, u64::from(len));
        assert_eq!(at_once.found, u64::from(len.div_ceil(3)));
        assert_eq!(at_once.found + at_once.false_positives, at_once.admitted);
    }
    assert!(guard.stats().turned_away > 0 && guard.stats().false_positives > 0);
}

/// A thread that reads the counts in a callback sees the keys that it knows of.
#[test]
fn a_key_is_counted_before_its_admission_is_given_out() {
    let guard = guard();
    let mut heard = 0;
    guard.check_batch(&(0..3000u32).collect::<Vec<_>>(), |_, _| {
        heard += 1;
        assert!(guard.stats().admitted >= heard);
    });
    assert_eq!(guard.stats().admitted, heard);
}

#[test]
fn a_batch_is_inserted_as_its_keys_are_one_by_one() {
    for len in LENGTHS {
        let one_by_one = guard();
        // With the same random key.
        let next = || one_by_one.filter().try_clone().unwrap();
        let batch = CacheGuard::new(next());
        let rebuilds = (one_by_one.rebuild(next()).unwrap(), batch.rebuild(next()).unwrap());
        let keys: Vec<u32> = (10_000..10_000 + len).collect();
        keys.iter().for_each(|key| one_by_one.insert(key));
        batch.insert_batch(&keys);
        assert!(one_by_one.filter() == batch.filter(), "{len} keys");
        assert!(rebuilds.0.filter() == rebuilds.1.filter());
        assert!(*rebuilds.0.filter() == one_by_one.filter());
    }
}

#[test]
fn it_can_be_shared_and_sent() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<CacheGuard<str>>();
    // Code that holds an insert across an `await` can be spawned.
    fn sent<T: Send>(_: T) {}
    sent(guard().insert_on_drop(1));
}

/// One after the other, by one function: what a guard does is the same whichever filter it has.
#[test]
fn any_filter_is_guarded_alike() {
    fn serves_and_is_rebuilt<F: GuardFilter>(filter: impl Fn() -> F) {
        let guard = CacheGuard::<str, F>::new(filter());
        assert!(guard.check("ann").is_none());
        guard.insert("ann");
        guard.insert_batch(&["ann", "bob", "bob"]);
        assert_eq!(guard.get_with("bob", || Some(1)), Some(1));
        let nothing: Option<u32> = guard.get_with("eve", || unreachable!("turned away"));
        assert_eq!(nothing, None);
        let mut admitted = Vec::new();
        guard.check_batch(&["eve", "ann", "mallory", "bob"], |i, admission| {
            admitted.push(i);
            admission.record(true);
        });
        assert_eq!(admitted, [1, 3]);

        let rebuild = guard.rebuild(filter()).unwrap();
        assert!(guard.rebuild(filter()).is_err());
        guard.insert("added meanwhile");
        rebuild.insert_all(["ann"]);
        rebuild.commit().unwrap();
        assert!(guard.check("ann").is_some() && guard.check("added meanwhile").is_some());
        assert!(guard.check("bob").is_none());
        let stats = guard.stats();
        assert_eq!((stats.admitted, stats.turned_away, stats.found), (5, 5, 3));
        let filter = guard.filter();
        assert!((2..5).contains(&filter.statistics().len) && filter.false_positive_rate() < 0.02);
        assert!(filter.memory_bytes() >= 1000 && filter.lag().is_none());
    }
    serves_and_is_rebuilt(|| ConcurrentBloom::builder().expected_keys(1000).build().unwrap());
    serves_and_is_rebuilt(|| CountingBloom::builder().expected_keys(1000).build().unwrap());
    serves_and_is_rebuilt(|| TombstoneBloom::builder().expected_keys(1000).build().unwrap());
    serves_and_is_rebuilt(|| WindowedBloom::builder().expected_keys(1000).build().unwrap());
    #[cfg(feature = "formats")]
    serves_and_is_rebuilt(|| lanebloom_formats::GuavaBloom::with_capacity(1000, 1e-6).unwrap());
}

// ---- Filters that can be full ----

fn cuckoo(keys: usize) -> CuckooFilter {
    let builder = CuckooFilter::builder().expected_keys(keys);
    builder.fingerprint_bits(16).build().unwrap()
}

fn dleft(keys: usize) -> DLeftFilter {
    DLeftFilter::builder().expected_keys(keys).build().unwrap()
}

fn one_layer(keys: usize) -> ScalableBloom {
    let builder = ScalableBloom::builder().expected_keys(keys);
    builder.max_layers(1).build().unwrap()
}

/// Ways to insert the keys of a range.
fn insert_by<F: GuardFilter>(guard: &CacheGuard<u32, F>, way: usize, keys: std::ops::Range<u32>) {
    match way {
        0 => keys.for_each(|key| guard.insert(&key)),
        1 => guard.insert_batch(&keys.collect::<Vec<_>>()),
        _ => keys.for_each(|key| drop(guard.insert_on_drop(key))),
    }
}

fn admitted<F: GuardFilter>(guard: &CacheGuard<u32, F>, keys: std::ops::Range<u32>) -> usize {
    let keys: Vec<u32> = keys.collect();
    let mut batch = Vec::new();
    guard.check_batch(&keys, |i, _| batch.push(keys[i]));
    let single: Vec<u32> = keys.into_iter().filter(|key| guard.check(key).is_some()).collect();
    assert_eq!(batch, single);
    batch.len()
}

#[test]
fn a_guard_whose_filter_is_full_turns_no_valid_key_away() {
    fn opens<F: GuardFilter>(filter: fn(usize) -> F) {
        for way in 0..3 {
            let guard = CacheGuard::<u32, F>::new(filter(1000));
            insert_by(&guard, way, 0..900);
            assert!(!guard.is_open());
            assert_eq!(admitted(&guard, 0..900), 900);
            assert!(admitted(&guard, 10_000..11_000) < 50);
            insert_by(&guard, way, 900..1600);
            assert!(guard.is_open());
            assert_eq!(admitted(&guard, 0..1600), 1600);
            assert_eq!(admitted(&guard, 10_000..11_000), 1000);
            // Larger, it is closed again, and has the keys of meanwhile.
            let rebuild = guard.rebuild(filter(5000)).unwrap();
            insert_by(&guard, way, 1600..1700); // the old filter is full
            rebuild.insert_all(0..1600);
            rebuild.commit().unwrap();
            assert!(!guard.is_open());
            assert_eq!(admitted(&guard, 0..1700), 1700);
            assert!(admitted(&guard, 10_000..11_000) < 50);
        }
    }
    opens(cuckoo);
    opens(dleft);
    opens(one_layer);
}

#[test]
fn a_rebuild_into_too_small_a_filter_is_not_committed() {
    fn commits_no_loss<F: GuardFilter>(filter: fn(usize) -> F) {
        // The guard's own keys find no room in the new filter, or the store's do not.
        for way in 0..4 {
            let guard = CacheGuard::<u32, F>::new(filter(5000));
            insert_by(&guard, 1, 0..100);
            let rebuild = guard.rebuild(filter(100)).unwrap();
            match way {
                3 => rebuild.insert_all(0..400),
                _ => insert_by(&guard, way, 100..400),
            }
            assert!(!guard.is_open());
            let error = rebuild.commit().unwrap_err();
            assert!(error.is_refused() && !error.is_in_progress());
            assert!(
                error
                    .to_string()
                    .starts_with("the new filter has no room for all keys; ")
            );
            assert!(!guard.is_open());
            let inserted = if way == 3 { 100 } else { 400 };
            assert_eq!(admitted(&guard, 0..inserted), inserted as usize);
            assert!(admitted(&guard, 10_000..11_000) < 50);
            // Given up, it was never there.
            drop(guard.rebuild(filter(1)).unwrap());
            assert_eq!(admitted(&guard, 0..inserted), inserted as usize);
        }
    }
    commits_no_loss(cuckoo);
    commits_no_loss(dleft);
    commits_no_loss(one_layer);
}

/// A key that is inserted repeatedly takes all slots that it can have, and is refused from then
/// on. It is there, so the guard stays closed, and the keys after it are inserted.
#[test]
fn a_key_that_is_there_as_often_as_it_can_be_opens_no_guard() {
    fn stays_closed<F: GuardFilter>(filter: impl Fn() -> F) {
        let guard = CacheGuard::<u32, F>::new(filter());
        (0..20).for_each(|_| guard.insert(&7));
        (0..20).for_each(|_| drop(guard.insert_on_drop(7)));
        let keys: Vec<u32> = (0..600).map(|i| if i % 30 == 0 { 7 } else { i }).collect();
        guard.insert_batch(&keys);
        assert!(!guard.is_open() && keys.iter().all(|key| guard.check(key).is_some()));
        assert!(guard.check(&1_000_000).is_none());
        let rebuild = guard.rebuild(filter()).unwrap();
        rebuild.insert_all(keys.iter().copied().cycle().take(1200));
        rebuild.commit().unwrap();
        assert!(!guard.is_open() && keys.iter().all(|key| guard.check(key).is_some()));
    }
    stays_closed(|| cuckoo(4000));
    stays_closed(|| dleft(4000));
}

// ---- The key type ----

/// One key in all the forms that borrow as `K`, by single calls and by batches: all are the same
/// key.
#[test]
fn whatever_borrows_as_the_key_type_is_the_same_key() {
    fn is_admitted<K: Funnel + ?Sized, Q: Borrow<K> + Funnel>(guard: &CacheGuard<K>, key: Q) {
        assert!(guard.check(&key).is_some());
        let before = guard.filter().try_clone().unwrap();
        guard.insert(&key);
        let keys = [key];
        let mut admitted = 0;
        guard.check_batch(&keys, |_, _| admitted += 1);
        assert_eq!(admitted, 1);
        guard.insert_batch(&keys);
        let [key] = keys;
        drop(guard.insert_on_drop(key));
        assert!(*guard.filter() == before);
    }

    let guard = CacheGuard::<str>::with_capacity(1000, 0.01).unwrap();
    assert!(guard.check("ann").is_none());
    guard.insert("ann");
    is_admitted(&guard, "ann");
    is_admitted(&guard, String::from("ann"));
    is_admitted(&guard, Box::<str>::from("ann"));
    is_admitted(&guard, Rc::<str>::from("ann"));
    is_admitted(&guard, Arc::<str>::from("ann"));
    is_admitted(&guard, Cow::from("ann"));

    let guard = CacheGuard::<[u16]>::with_capacity(1000, 0.01).unwrap();
    guard.insert(&[1, 2]);
    is_admitted(&guard, [1, 2]);
    is_admitted(&guard, vec![1, 2]);
    is_admitted(&guard, &[1, 2][..]);

    // Literals are of the guard's type, also behind references and in ranges.
    let guard = CacheGuard::<u64>::with_capacity(1000, 0.01).unwrap();
    guard.insert(&17);
    assert!(guard.filter().contains(&17u64) && !guard.filter().contains(&17));
    is_admitted(&guard, 17);
    is_admitted(&guard, [17].first().unwrap());
    is_admitted(&guard, Box::new(17));
    let rebuild = guard.rebuild_with_capacity(1000, 0.01).unwrap();
    rebuild.insert_all(0..5);
    rebuild.insert_all([&5, &6]);
    rebuild.insert(&7);
    rebuild.insert_batch(&[7, 8]);
    rebuild.commit().unwrap();
    assert!((0..9u64).all(|key| guard.check(&key).is_some()) && guard.check(&9).is_none());
}

/// A key that holds a reference need not live as long as the guard's type says.
#[test]
fn a_guard_takes_keys_that_live_shortly() {
    fn admits(guard: &CacheGuard<(u32, &'static str)>, name: &str) -> bool {
        let guard: &CacheGuard<(u32, &str)> = guard;
        guard.check(&(1, name)).is_some()
    }
    let guard = CacheGuard::with_capacity(1000, 0.01).unwrap();
    guard.insert(&(1, "ann"));
    assert!(admits(&guard, &String::from("ann")) && !admits(&guard, &String::from("eve")));
}

/// Single calls take the bytes of the borrowed form. A batch of a type that writes others is
/// noticed while one tests.
#[test]
fn a_borrowed_form_with_other_bytes_is_noticed() {
    #[derive(PartialEq, Eq, Hash)]
    struct Shouted(&'static str);
    impl Funnel for Shouted {
        fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
            self.0.to_uppercase().funnel(into);
        }
    }
    impl Borrow<str> for Shouted {
        fn borrow(&self) -> &str {
            self.0
        }
    }
    let guard = CacheGuard::<str>::with_capacity(1000, 0.01).unwrap();
    guard.insert(&Shouted("ann"));
    assert!(guard.check("ann").is_some() && guard.check(&Shouted("ann")).is_some());
    if cfg!(debug_assertions) {
        let panic = std::panic::catch_unwind(|| guard.insert_batch(&[Shouted("ann")])).unwrap_err();
        let message = panic.downcast_ref::<String>().unwrap();
        assert!(
            message.ends_with("Shouted writes other bytes than the str that it stands for"),
            "{message}"
        );
    }
}

// ---- Keys from strangers ----

/// A stranger knows one valid key and makes others that collide with it under Murmur3, for every
/// seed, of the published pair. A guard that chooses its own hasher turns them away like any.
#[test]
fn keys_made_to_collide_under_murmur3_are_turned_away() {
    const STRANGERS: u64 = 10_000;
    const RATE: f64 = 0.01;

    let golden: serde_json::Value =
        serde_json::from_str(include_str!("../../../tests/data/murmur3_x64_128.json")).unwrap();
    let half = |name: &str| {
        let text = golden["seed_independent_collision"][name].as_str().unwrap();
        let byte = |i| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(byte).collect::<Vec<u8>>()
    };
    // After either of the pair the state is the same, so that 14 of them make 2^14 keys.
    let pair = [half("a_hex"), half("b_hex")];
    let key = |number: u64| -> Vec<u8> { (0..14).flat_map(|i| pair[(number >> i) as usize & 1].clone()).collect() };
    let (valid, made) = (key(0), Vec::from_iter((1..=STRANGERS).map(key)));
    assert_eq!(made.iter().collect::<HashSet<_>>().len() as u64, STRANGERS);
    let others: Vec<[u8; 16]> = (1..10_000u128).map(u128::to_le_bytes).collect();
    // The attack on a filter with Murmur3.
    for seed in [0, 1, 0xdead_beef] {
        let filter = ConcurrentBloom::builder().expected_keys(10_000).seed(seed);
        let guard = CacheGuard::<[u8], _>::new(filter.build().unwrap());
        guard.insert(&valid);
        guard.insert_batch(&others);
        assert_eq!(admitted(&guard, &made), STRANGERS);
    }
    let guard = CacheGuard::<[u8]>::with_capacity(10_000, RATE).unwrap();
    guard.insert(&valid);
    guard.insert_batch(&others);
    assert_about_the_rate(admitted(&guard, &made));

    // The few that pass, pass again and again, until a rebuild draws another key.
    let mut found = Vec::new();
    guard.check_batch(&made, |i, _| found.push(made[i].clone()));
    assert!(found.iter().all(|key| guard.check(key.as_slice()).is_some()));
    let rebuild = guard.rebuild_with_capacity(10_000, RATE).unwrap();
    rebuild.insert(&valid);
    rebuild.insert_batch(&others);
    rebuild.commit().unwrap();
    assert_about_the_rate(admitted(&guard, &made));
    assert!(admitted(&guard, &found) * 2 < found.len() as u64);
    assert!(guard.check(&valid).is_some());

    fn admitted<F: GuardFilter>(guard: &CacheGuard<[u8], F>, keys: &[Vec<u8>]) -> u64 {
        let before = guard.stats();
        guard.check_batch(keys, |_, admission| admission.record(false));
        guard.stats().since(&before).false_positives
    }
    /// 98 are expected, with a standard deviation of 10.
    fn assert_about_the_rate(admitted: u64) {
        assert!((20..=200).contains(&admitted), "{admitted} of {STRANGERS}");
    }
}

// ---- Cancelled code ----

/// A handler waits for the store's commit, and then for something else; its future is dropped at
/// each of the places where it waits.
#[test]
fn a_key_is_admitted_though_its_handler_is_cancelled_after_the_commit() {
    /// Waits once.
    async fn pause() {
        let mut waited = false;
        std::future::poll_fn(|_| match std::mem::replace(&mut waited, true) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        })
        .await
    }
    async fn add(guard: &CacheGuard<u64>, store: &std::sync::Mutex<HashSet<u64>>, key: u64) {
        let insert = guard.insert_on_drop(key);
        pause().await;
        store.lock().unwrap().insert(key);
        pause().await; // the store's answer is on its way
        drop(insert);
        pause().await;
    }
    let guard = CacheGuard::with_capacity(1000, 0.01).unwrap();
    let store = std::sync::Mutex::new(HashSet::new());
    let mut context = Context::from_waker(Waker::noop());
    for polls in 0..=4 {
        let key = polls;
        {
            let mut handler = pin!(add(&guard, &store, key));
            for poll in 1..=polls {
                if poll == 2 {
                    // Before the commit: an insert that came earlier would be lost here.
                    let rebuild = guard.rebuild_with_capacity(1000, 0.01).unwrap();
                    rebuild.insert_all(store.lock().unwrap().iter());
                    rebuild.commit().unwrap();
                }
                assert!(guard.check(&key).is_none() || poll == 4);
                assert_eq!(handler.as_mut().poll(&mut context).is_ready(), poll == 4);
            }
        } // cancelled here
        assert_eq!(store.lock().unwrap().contains(&key), polls >= 2);
        assert_eq!(guard.check(&key).is_some(), polls >= 1, "after {polls} polls");
    }
}

/// A panic is one more way for a handler to end.
#[test]
fn a_key_is_inserted_by_a_panic_and_not_by_an_abandonment() {
    let guard = CacheGuard::<str>::with_capacity(1000, 0.01).unwrap();
    let handler = || {
        let _insert = guard.insert_on_drop("ann");
        panic!("after the commit");
    };
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(handler)).is_err());
    assert!(guard.check("ann").is_some());
    guard.insert_on_drop("bob").abandon();
    assert!(guard.check("bob").is_none());
}

// ---- Rebuilds ----

/// Whoever rebuilds waits for readers to leave the old filter. Those that run the caller's code
/// have left it.
#[test]
fn a_guard_can_be_rebuilt_by_code_that_it_calls() {
    let guard = CacheGuard::<u64>::with_capacity(1000, 0.01).unwrap();
    guard.insert_batch(&[1, 2]);
    let rebuild = || {
        let rebuild = guard.rebuild_with_capacity(1000, 0.01).unwrap();
        rebuild.insert_all([1, 2]);
        rebuild.commit().unwrap();
        Some(())
    };
    let mut admitted = 0;
    guard.check_batch(&[1, 2, 3], |_, _| {
        admitted += 1;
        rebuild();
    });
    assert_eq!(admitted, 2);
    assert_eq!(guard.get_with(&1, rebuild), Some(()));
    let admission = guard.check(&1).unwrap();
    rebuild();
    admission.record(true);
}

/// Single calls and batches; a rebuild that is given up; and the two causes apart.
#[test]
fn a_guard_that_is_not_ready_admits_every_key() {
    let filter = || CuckooFilter::with_capacity(100, 0.001).unwrap();
    let guard = CacheGuard::<u32, _>::new_open(filter());
    guard.insert_batch(&[1, 2, 3]);
    assert!(!guard.is_ready() && guard.is_open());
    assert_eq!(admitted(&guard, 0..1000), 1000);
    let rebuild = guard.rebuild(filter()).unwrap();
    assert_eq!(admitted(&guard, 0..1000), 1000);
    drop(rebuild);
    assert!(!guard.is_ready() && guard.is_open());

    // The word counts for the filter that serves, also if a rebuild that is given up holds it.
    let rebuild = guard.rebuild(filter()).unwrap();
    guard.mark_ready();
    drop(rebuild);
    assert!(guard.is_ready() && !guard.is_open());
    assert!((3..10).contains(&admitted(&guard, 0..1000)));

    // It does not close a guard whose filter is full, before or after.
    let guard = CacheGuard::<u32, _>::new_open(filter());
    insert_by(&guard, 0, 0..1000);
    guard.mark_ready();
    assert!(guard.is_ready() && guard.is_open());
    assert_eq!(admitted(&guard, 0..2000), 2000);

    let guard = CacheGuard::<u32, _>::new_open(filter());
    guard.rebuild(filter()).unwrap().commit().unwrap();
    assert!(guard.is_ready() && !guard.is_open());
    assert_eq!(admitted(&guard, 0..1000), 0);
}

/// A rebuild that cannot begin leaves the guard as it was.
#[test]
fn a_rebuild_that_fails_can_be_begun_again() {
    let guard = CacheGuard::<u64>::with_capacity(1000, 0.01).unwrap();
    guard.insert(&1);
    let error = guard.rebuild_with_capacity(1000, 0.0).unwrap_err();
    assert!(!error.is_in_progress() && std::error::Error::source(&error).is_some());
    let rebuild = guard.rebuild_with_capacity(1000, 0.01).unwrap();
    assert!(guard.rebuild_with_capacity(1000, 0.0).unwrap_err().is_in_progress());
    drop(rebuild);
    assert!(guard.check(&1).is_some());
    guard.rebuild_with_capacity(1000, 0.01).unwrap().commit().unwrap();
    assert!(guard.check(&1).is_none());
}
