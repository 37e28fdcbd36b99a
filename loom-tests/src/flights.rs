//! The protocol of lanebloom-guard's cache, which its source file states: loads beside changes of
//! the store. The caches are one word with relaxed accesses, the weakest that the protocol allows.

#[path = "../../crates/guard/src/cache/flights.rs"]
#[expect(dead_code, reason = "`give_up` looks as `fail` does")]
mod protocol;

use super::*;
use loom::sync::atomic::AtomicUsize;
use loom::sync::{Condvar, Mutex};
use protocol::{Asked, Caches, Entry, Flight, Flights};

const KEY: &str = "a";
const ROWS: usize = 50;

/// The knowledge about the key: 0 for nothing; otherwise 100 times the epoch, and 1 and the number
/// of the filter if the key is missing, or its row and [`ROWS`]. Then the same of what has expired.
struct Word(AtomicUsize, AtomicUsize);

impl Word {
    /// The present knowledge now serves only callers whose load fails.
    fn expire(&self) {
        self.1.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
        self.0.store(0, Ordering::Relaxed);
    }
}

fn entry(known: usize) -> Option<Entry<usize>> {
    (known > 0).then(|| Entry {
        epoch: known as u64 / 100,
        found: (known % 100).checked_sub(ROWS).ok_or(known as u64 % 100 - 1),
        is_due: true,
    })
}

impl Caches<str> for Word {
    type Value = usize;

    fn get(&self, _: &str) -> Option<Entry<usize>> {
        entry(self.0.load(Ordering::Relaxed))
    }
    fn put(&self, _: &str, epoch: u64, found: Result<usize, u64>) {
        let known = found.map_or_else(|filter| filter as usize + 1, |row| row + ROWS);
        self.0.store(100 * epoch as usize + known, Ordering::Relaxed);
        self.1.store(0, Ordering::Relaxed);
    }
    fn fall_back(&self, key: &str) -> Option<(usize, u64)> {
        let entry = entry(self.1.load(Ordering::Relaxed)).or_else(|| self.get(key))?;
        Some((entry.found.ok()?, entry.epoch))
    }
    fn forget(&self, _: &str) {
        self.0.store(0, Ordering::Relaxed);
        self.1.store(0, Ordering::Relaxed);
    }
    /// The weakest that the protocol allows: it frees nothing.
    fn forget_all(&self) {}
}

/// The result of a load, once it is there.
#[derive(Default)]
struct Found(Mutex<Option<Option<usize>>>, Condvar);

impl Found {
    fn fill(&self, found: Option<usize>) {
        *self.0.lock().unwrap() = Some(found);
        self.1.notify_all();
    }
    fn wait(&self) -> Option<usize> {
        let mut result = self.0.lock().unwrap();
        loop {
            match *result {
                Some(found) => return found,
                None => result = self.1.wait(result).unwrap(),
            }
        }
    }
}

/// The filter in front, as a shared one: other processes insert the key, and it is open while it
/// may lack keys. The orders of reads are those of the guard.
struct Front {
    is_open: AtomicBool,
    has_key: AtomicBool,
    /// The number under which a miss counts, by whether the filter is closed and has the key.
    number: Number,
}

impl Front {
    /// One that has the key from the beginning, unless it is open.
    fn new(is_closed: bool) -> Self {
        Self {
            is_open: AtomicBool::new(!is_closed),
            has_key: AtomicBool::new(is_closed),
            number: if is_closed { ONE } else { UNTOLD },
        }
    }

    fn admits(&self) -> bool {
        let is_open = self.is_open.load(Ordering::Acquire);
        self.has_key.load(Ordering::Relaxed) || is_open
    }

    fn vouches(&self) -> Option<u64> {
        let is_closed = !self.is_open.load(Ordering::Acquire);
        (self.number)(is_closed, self.has_key.load(Ordering::Acquire))
    }

    /// The key comes, and the filter closes.
    fn catch_up(&self) {
        self.catch_up_in_part();
        self.is_open.store(false, Ordering::Release);
    }

    /// The key comes, and the filter is open still, or again. (A lookup that finds a key sees what
    /// its inserter did before.)
    fn catch_up_in_part(&self) {
        self.has_key.store(true, Ordering::Release);
    }
}

type Number = fn(bool, bool) -> Option<u64>;

/// Nobody tells of rows.
const UNTOLD: Number = |is_closed, has_key| is_closed.then_some(u64::from(!has_key));
/// A feed tells of all rows, but later than the filter has them.
const TOLD: Number = |_, has_key| Some(u64::from(!has_key));
/// The feed, as if every row were told before the filter has it.
const ONE: Number = |_, _| Some(0);

struct Cache {
    flights: Flights<str, Word, Found>,
    front: Front,
    /// The store's row, 0 if it has none.
    store: AtomicUsize,
    loads: AtomicUsize,
}

impl Cache {
    fn new(row: usize) -> Arc<Self> {
        Arc::new(Self {
            flights: Flights::new(Word(AtomicUsize::new(0), AtomicUsize::new(0)), 1),
            front: Front::new(true),
            store: AtomicUsize::new(row),
            loads: AtomicUsize::new(0),
        })
    }

    fn get(&self) -> Option<usize> {
        if !self.front.admits() {
            return None;
        }
        let vouches = || self.front.vouches();
        if let Some(known) = self.flights.current(self.flights.caches.get(KEY), vouches) {
            return known.found.ok();
        }
        let flight = match self.flights.ask(KEY, vouches(), None) {
            Asked::Known(known) => return known,
            Asked::Joined(flight) | Asked::New(flight) => flight,
        };
        if flight.begin(1).is_ok() {
            self.loads.fetch_add(1, Ordering::Relaxed);
            self.load(&flight);
        }
        flight.result.wait()
    }

    /// The load of a flight that has begun.
    fn load(&self, flight: &Arc<Flight<Found>>) {
        let row = Some(self.store.load(Ordering::Relaxed)).filter(|row| *row > 0);
        self.flights.finish(KEY, flight, row);
        flight.result.fill(row);
    }

    fn write(&self, row: usize) {
        self.store.store(row, Ordering::Relaxed);
    }

    /// Row 7 comes into the store, and the cache hears of a change.
    fn write_and_tell(&self) {
        self.write(7);
        self.flights.changed(KEY, None);
    }

    /// Writes to the store, then does the work of `clear`.
    fn write_and_clear(&self) {
        self.write(7);
        self.flights.all_changed();
    }

    /// Writes to the store, then does the work of `invalidate_entries_if` for all rows but 7.
    fn write_and_forget_others(&self) {
        self.write(7);
        forget_all_rows_but_seven(self);
    }
}

/// Runs `write` beside `readers` gets of the key, and after each the gets that must see its row.
fn written_beside_gets(before: usize, readers: usize, write: fn(&Cache)) {
    loom::model(move || {
        let cache = Cache::new(before);
        let readers: Vec<_> = (0..readers)
            .map(|_| {
                share!(cache);
                thread::spawn(move || cache.get())
            })
            .collect();
        let writer = {
            share!(cache);
            thread::spawn(move || {
                write(&cache);
                assert_eq!(cache.get(), Some(7), "an old answer");
            })
        };
        writer.join().unwrap();
        assert_eq!(cache.get(), Some(7), "an old answer");
        for reader in readers {
            let found = reader.join().unwrap().unwrap_or(0);
            assert!(found == before || found == 7);
        }
        assert_eq!(cache.get(), Some(7), "an old answer");
    });
}

#[test]
fn a_key_that_was_added_is_not_missing_after() {
    written_beside_gets(0, 1, Cache::write_and_tell);
}

#[test]
fn a_key_that_was_added_is_not_missing_after_beside_two_loads() {
    written_beside_gets(0, 2, Cache::write_and_tell);
}

#[test]
fn a_row_that_was_inserted_stays_beside_a_load_of_the_old_one() {
    written_beside_gets(5, 1, |cache| {
        cache.write(7);
        cache.flights.changed(KEY, Some(7));
    });
}

#[test]
fn no_load_outlives_a_clear() {
    written_beside_gets(5, 1, Cache::write_and_clear);
}

#[test]
fn no_load_outlives_a_clear_beside_two_loads() {
    written_beside_gets(5, 2, Cache::write_and_clear);
}

/// Does the work of `invalidate_entries_if`.
fn forget_all_rows_but_seven(cache: &Cache) {
    cache.flights.abandon_all();
    let known = cache.flights.caches.get(KEY);
    let expired = entry(cache.flights.caches.1.load(Ordering::Relaxed));
    let is_old = |entry: Entry<usize>| entry.found != Ok(7);
    if known.is_some_and(is_old) || expired.is_some_and(is_old) {
        cache.flights.changed(KEY, None);
    }
}

#[test]
fn no_load_outlives_an_invalidation_by_predicate() {
    written_beside_gets(5, 1, Cache::write_and_forget_others);
}

#[test]
fn no_load_outlives_an_invalidation_by_predicate_beside_two_loads() {
    written_beside_gets(5, 2, Cache::write_and_forget_others);
}

/// An asker that enters a flight and leaves it: another loads the key, once.
#[test]
fn a_flight_that_is_left_is_loaded_by_others() {
    loom::model(|| {
        let cache = Cache::new(7);
        let (leaving, reading) = (Arc::clone(&cache), Arc::clone(&cache));
        let leave = move || match leaving.flights.ask(KEY, Some(0), None) {
            Asked::New(flight) => leaving.flights.leave(KEY, &flight),
            Asked::Joined(_) | Asked::Known(_) => {}
        };
        let (_, row) = beside(leave, move || reading.get());
        assert_eq!((row, cache.get()), (Some(7), Some(7)));
    });
}

/// The caches may forget at any time, here between any two steps of the others.
#[test]
fn an_eviction_brings_no_old_answer_back() {
    loom::model(|| {
        let cache = Cache::new(0);
        let evicting = {
            share!(cache);
            thread::spawn(move || cache.flights.caches.forget(KEY))
        };
        let reading = {
            share!(cache);
            thread::spawn(move || cache.get())
        };
        let writing = {
            share!(cache);
            thread::spawn(move || {
                cache.write_and_tell();
                assert_eq!(cache.get(), Some(7), "an old answer");
            })
        };
        evicting.join().unwrap();
        writing.join().unwrap();
        reading.join().unwrap();
        assert_eq!(cache.get(), Some(7), "an old answer");
    });
}

#[test]
fn a_key_that_two_ask_for_is_loaded_once() {
    loom::model(|| {
        let cache = Cache::new(7);
        let (one, other) = (Arc::clone(&cache), Arc::clone(&cache));
        let rows = beside(move || one.get(), move || other.get());
        assert_eq!(rows, (Some(7), Some(7)));
        assert_eq!(cache.loads.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_failed_load_is_not_cached_and_the_next_get_loads() {
    loom::model(|| {
        let cache = Cache::new(7);
        let (failing, reading) = (Arc::clone(&cache), Arc::clone(&cache));
        let fail = move || {
            if let Asked::New(flight) = failing.flights.ask(KEY, Some(0), None)
                && flight.begin(1).is_ok()
            {
                let row = failing.flights.fail(KEY, &flight);
                assert_eq!(row, None, "nothing was there before");
                flight.result.fill(None); // the error
            }
        };
        let (_, row) = beside(fail, move || reading.get());
        assert!(row.is_none_or(|row| row == 7));
        assert_eq!(cache.get(), Some(7));
    });
}

impl Cache {
    /// A get of a row that is due: it answers with it, and begins a load.
    fn refresh(&self) -> Option<usize> {
        let known = self
            .flights
            .current(self.flights.caches.get(KEY), || self.front.vouches());
        if let Some((_, flight)) = self.flights.refresh(KEY, Some(0)) {
            assert!(flight.begin(1).is_ok());
            self.load(&flight);
        }
        known.map_or(Some(0), |entry| entry.found.ok())
    }

    /// A get of a row that is past its time, while the store fails. 0 for the error.
    fn get_stale(&self) -> Option<usize> {
        match self.flights.ask(KEY, Some(0), None) {
            Asked::Known(known) => known,
            Asked::Joined(flight) | Asked::New(flight) => {
                if flight.begin(1).is_ok() {
                    let row = self.flights.fail(KEY, &flight);
                    flight.result.fill(row.or(Some(0)));
                }
                flight.result.wait()
            }
        }
    }
}

/// The store's row 5 becomes 7 beside `read`, and the cache hears of it in each of the ways. The
/// cached row has expired before if `has_expired`. `check` must hold after the change.
fn changed_beside(has_expired: bool, read: fn(&Cache) -> Option<usize>, check: fn(&Cache)) {
    let changes: [fn(&Cache); 4] = [
        |cache| cache.flights.changed(KEY, None),
        |cache| cache.flights.changed(KEY, Some(7)),
        |cache| cache.flights.all_changed(),
        forget_all_rows_but_seven,
    ];
    for change in changes {
        loom::model(move || {
            let cache = Cache::new(5);
            assert_eq!(cache.get(), Some(5));
            if has_expired {
                cache.flights.caches.expire();
            }
            let (reading, writing) = (Arc::clone(&cache), Arc::clone(&cache));
            let write = move || {
                writing.write(7);
                change(&writing);
                check(&writing);
            };
            let (row, ()) = beside(move || read(&reading), write);
            assert!([Some(0), Some(5), Some(7)].contains(&row));
            check(&cache);
        });
    }
}

#[test]
fn no_refresh_outlives_a_change() {
    let check = |cache: &Cache| assert_eq!(cache.get(), Some(7), "an old answer");
    changed_beside(false, Cache::refresh, check);
}

/// One of two that see a row that is due loads it.
#[test]
fn a_row_that_is_due_is_refreshed_once_at_a_time() {
    loom::model(|| {
        let cache = Cache::new(5);
        assert_eq!(cache.get(), Some(5));
        let (one, other) = (Arc::clone(&cache), Arc::clone(&cache));
        let enter = |cache: Arc<Cache>| move || cache.flights.refresh(KEY, Some(0)).is_some();
        let entered = beside(enter(one), enter(other));
        assert!(entered.0 != entered.1);
    });
}

/// While the store fails, the old row serves, but not after a change.
#[test]
fn no_old_row_serves_after_a_change() {
    let check = |cache: &Cache| assert_ne!(cache.get_stale(), Some(5), "an old answer");
    changed_beside(true, Cache::get_stale, check);
}

/// With the filter in front, and a rebuild beside it: from no part comes a "missing".
#[test]
fn a_key_that_was_added_is_not_missing_after_beside_a_rebuild() {
    loom::model(|| {
        let guard = Arc::new(CacheGuard::<str, ConcurrentBloom>::new(filter(1)));
        let cache = Cache::new(0);
        let adder = {
            share!(guard, cache);
            move || {
                cache.write(7);
                guard.insert(KEY);
                cache.flights.changed(KEY, None);
                assert!(guard.check(KEY).is_some() && cache.get() == Some(7), "an old answer");
            }
        };
        let rebuilder = {
            share!(guard, cache);
            move || {
                let rebuild = guard.rebuild(filter(1)).unwrap();
                let row = cache.store.load(Ordering::Relaxed) > 0;
                rebuild.insert_all(row.then_some(KEY));
                rebuild.commit().unwrap();
            }
        };
        beside(adder, rebuilder);
        assert!(guard.check(KEY).is_some() && cache.get() == Some(7), "an old answer");
    });
}

/// Another process adds the row, of which nobody tells in time, beside `readers` gets that an open
/// filter admits. Once the filter has the key, no get says that it is missing.
fn added_elsewhere_beside_gets(readers: usize, number: Number, come: fn(&Front)) {
    loom::model(move || {
        let mut cache = Cache::new(0);
        let front = &mut Arc::get_mut(&mut cache).unwrap().front;
        *front = Front::new(false);
        front.number = number;
        let readers: Vec<_> = (0..readers)
            .map(|_| {
                share!(cache);
                thread::spawn(move || cache.get())
            })
            .collect();
        let adder = {
            share!(cache);
            thread::spawn(move || {
                cache.write(7);
                come(&cache.front);
                assert_eq!(cache.get(), Some(7), "an old answer");
            })
        };
        adder.join().unwrap();
        for reader in readers {
            assert!([None, Some(7)].contains(&reader.join().unwrap()));
        }
        assert_eq!(cache.get(), Some(7), "an old answer");
    });
}

#[test]
fn a_miss_from_an_open_filter_hides_no_row_that_others_added() {
    added_elsewhere_beside_gets(1, UNTOLD, Front::catch_up);
}

#[test]
fn a_miss_from_an_open_filter_hides_no_row_that_others_added_beside_two_loads() {
    added_elsewhere_beside_gets(2, UNTOLD, Front::catch_up);
}

/// The feed tells the row later.
#[test]
fn a_miss_that_a_feed_vouches_for_hides_no_row_that_the_filter_has() {
    added_elsewhere_beside_gets(2, TOLD, Front::catch_up_in_part);
    added_elsewhere_beside_gets(1, TOLD, Front::catch_up);
}

/// Why a filter has one number for the keys that it holds, and one for the others.
#[test]
#[should_panic = "an old answer"]
fn a_miss_of_a_filter_that_lacked_the_key_hides_a_row_that_it_has() {
    let told: Number = |is_closed, _| Some(u64::from(!is_closed));
    added_elsewhere_beside_gets(1, told, Front::catch_up_in_part);
}

/// Why a flight takes note of the filter: its miss would be remembered.
#[test]
#[should_panic = "an old answer"]
fn a_miss_that_nobody_doubts_hides_a_row_that_others_added() {
    added_elsewhere_beside_gets(1, ONE, Front::catch_up);
}

/// Why the store comes first: a load may read it between the two.
#[test]
#[should_panic = "an old answer"]
fn a_key_that_is_added_before_its_row_can_be_missing_after() {
    written_beside_gets(0, 1, |cache| {
        cache.flights.changed(KEY, None);
        cache.write(7);
    });
}
