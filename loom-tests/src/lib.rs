//! lanebloom's contract. Loom tries each promise in every interleaving and under every value that
//! the memory model allows.
//!
//! `ci/loom.sh` runs it. `build.rs` sets `lanebloom_loom`, which exchanges the atomics of lanebloom
//! for loom's. Filters are one line of eight words, the smallest.
//!
//! The name of a test is the property. Loom cannot see the vector kernels (they work on values) and
//! arc-swap.

#![cfg(test)]

#[cfg(not(debug_assertions))]
compile_error!("loom needs debug assertions to see its own errors: run ci/loom.sh");

use lanebloom::{BloomView, ConcurrentBloom, Hashed};
use lanebloom_guard::CacheGuard;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

mod bank;
mod batch;
mod bitmap;
mod bulk;
mod counting;
mod cuckoo;
mod dleft;
mod flights;
mod guard;
mod guava;
mod layered;
mod scalable;
mod single;
mod splitblock;
mod tombstone;
mod whole;
mod windowed;

/// Runs the two beside each other, and returns their results.
///
/// Both are spawned, so that loom tries both orders from the start. It remembers only the last
/// access to each atomic: an insert that looks before it writes hides from loom a lookup that came
/// before, and with the lookup in the main thread the order "insert, then lookup" would never be
/// tried. (The broken variants in this crate's history showed it: see to it that a new test goes
/// red when what it tests is broken.)
fn beside<T: 'static, U: 'static>(one: impl FnOnce() -> T + 'static, other: impl FnOnce() -> U + 'static) -> (T, U) {
    let (one, other) = (thread::spawn(one), thread::spawn(other));
    (one.join().unwrap(), other.join().unwrap())
}

/// A clone of each `Arc`, to be moved into a thread.
macro_rules! share {
    ($($name:ident),*) => { $(let $name = Arc::clone(&$name);)* };
}
pub(crate) use share;

fn filter(words_per_key: usize) -> ConcurrentBloom {
    filter_of_lines(1, words_per_key)
}

fn filter_of_lines(lines: usize, words_per_key: usize) -> ConcurrentBloom {
    ConcurrentBloom::builder()
        .memory_budget(64 * lines)
        .words_per_key(words_per_key)
        .build()
        .unwrap()
}

/// A filter of two lines, in each of which a key has one word.
fn filter_of_two_lines() -> ConcurrentBloom {
    let builder = ConcurrentBloom::builder().memory_budget(128);
    builder.lines_per_key(2).words_per_key(2).build().unwrap()
}

/// One line with one word per key, one with two words, two with one word in each.
const LAYOUTS: [fn() -> ConcurrentBloom; 3] = [|| filter(1), || filter(2), filter_of_two_lines];

#[path = "../../tests/common/products.rs"]
mod products;

use products::{hash_of_product, products};

/// A hash that has, in a filter of one block, this one of the eight words, or the sector of several
/// words that begins there. Its pattern is the highest six bytes of `product`, from the highest
/// down: the high 5 bits of a byte are the number of a bit in 32, and the low ones tell which 32 of
/// the sector.
const fn hash_in(word: u64, product: u64) -> u64 {
    let mut rest = 0;
    // The last two bytes are of no position. One in eight makes the first product begin as it
    // should.
    loop {
        let hash = hash_of_product(product | rest);
        if products(hash)[0] >> 61 == word {
            return hash;
        }
        rest += 1;
    }
}

/// Two keys that meet in one word, or in both of two, with different bits.
const A: u64 = hash_in(0, 0x0812_1822_2832_0000);
const B: u64 = hash_in(0, 0x6862_5852_4842_0000);

/// `loom::model` with at most two preemptions, for those that take a minute with three.
fn model_with_two_preemptions(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(check);
}

/// The work of an inserter before its insert. A thread that finds the key must see it.
struct Work(AtomicBool);

impl Work {
    fn new() -> Self {
        Self(AtomicBool::new(false))
    }
    fn do_it(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
    fn is_visible(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Beside a thread that works and then inserts A by `insert`: a thread to which `found` says that A
/// is there sees the work.
fn publishes(
    filter: impl Fn() -> ConcurrentBloom + Send + Sync + 'static,
    insert: fn(&ConcurrentBloom),
    found: fn(&ConcurrentBloom) -> bool,
) {
    loom::model(move || {
        let (filter, work) = (Arc::new(filter()), Arc::new(Work::new()));
        let inserter = {
            share!(filter, work);
            move || {
                work.do_it();
                insert(&filter);
            }
        };
        beside(inserter, move || assert!(!found(&filter) || work.is_visible()));
    });
}

/// Inserts A after some work.
fn work_and_insert(filter: &Arc<ConcurrentBloom>, work: &Arc<Work>) -> impl FnOnce() -> bool + 'static {
    share!(filter, work);
    move || {
        work.do_it();
        filter.insert(&Hashed(A))
    }
}

/// The two keys really meet. Otherwise the tests of this crate would try less than they claim.
#[test]
fn the_keys_share_their_words_and_not_all_their_bits() {
    loom::model(|| {
        for words in [1, 2] {
            let filter = filter(words);
            filter.insert(&Hashed(A));
            assert!(!filter.contains(&Hashed(B)));
            let alone = filter.statistics().false_positive_rate;
            filter.insert(&Hashed(B));
            // Twice the bits in the same words: more than twice the rate, where other words would
            // just double it.
            assert!(filter.statistics().false_positive_rate > 4.0 * alone);
        }
    });
}
