//! Inserts by plain stores, as the Python package makes them: `crates/python/src/filter.rs`. A lock
//! stands for the interpreter's.

use super::*;
use lanebloom::internal::{insert_alone_kernel, insert_hash_alone};
use loom::sync::Mutex;
use loom::sync::atomic::AtomicUsize;

/// A filter of Python.
struct Object {
    filter: ConcurrentBloom,
    interpreter: Mutex<()>,
    detached: AtomicUsize,
}

impl Object {
    fn new(filter: ConcurrentBloom) -> Arc<Self> {
        Arc::new(Self {
            filter,
            interpreter: Mutex::new(()),
            detached: AtomicUsize::new(0),
        })
    }

    /// A call of `add`.
    fn add(&self, hash: u64) -> bool {
        let _lock = self.interpreter.lock().unwrap();
        if self.detached.load(Ordering::Relaxed) == 0 {
            insert_hash_alone(&self.filter, insert_alone_kernel(&self.filter), hash)
        } else {
            self.filter.insert_hash(hash)
        }
    }

    /// A call of `add_many`, which inserts without the lock.
    fn add_many(&self, hash: u64) -> bool {
        let lock = self.interpreter.lock().unwrap();
        self.detached.fetch_add(1, Ordering::Relaxed);
        drop(lock);
        let new = self.filter.insert_hash(hash);
        let _lock = self.interpreter.lock().unwrap();
        self.detached.fetch_sub(1, Ordering::Relaxed);
        new
    }
}

#[test]
fn no_bit_is_lost_beside_a_batch_without_the_lock() {
    for filter in LAYOUTS {
        loom::model(move || {
            let raced = Object::new(filter());
            let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
            assert_eq!(beside(move || one.add(A), move || other.add_many(B)), (true, true));
            let alone = filter();
            alone.insert_hashes(&[A, B]);
            assert!(raced.filter == alone);
        });
    }
}

#[test]
fn single_inserts_under_the_lock_lose_no_bit_and_one_wins() {
    for filter in LAYOUTS {
        loom::model(move || {
            let raced = Object::new(filter());
            let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
            beside(move || one.add(A), move || other.add(B));
            let alone = filter();
            alone.insert_hashes(&[A, B]);
            assert!(raced.filter == alone);
        });
        loom::model(move || {
            let raced = Object::new(filter());
            let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
            let (one, other) = beside(move || one.add(A), move || other.add(A));
            assert!(one != other);
        });
    }
}

#[test]
fn who_finds_a_key_sees_what_its_inserter_did_before_a_plain_store() {
    for filter in LAYOUTS {
        loom::model(move || {
            let (object, work) = (Object::new(filter()), Arc::new(Work::new()));
            let (adds, done) = (Arc::clone(&object), Arc::clone(&work));
            let add = move || {
                done.do_it();
                adds.add(A);
            };
            beside(add, move || find(&object, &work));
        });
    }
}

/// The plain store of B ends the release sequence of A's atomic operation; the lock passes it on.
#[test]
fn who_finds_a_key_sees_what_its_inserter_did_through_a_later_plain_store() {
    model_with_two_preemptions(move || {
        let (object, work) = (Object::new(filter(1)), Arc::new(Work::new()));
        let (many, single, done) = (Arc::clone(&object), Arc::clone(&object), Arc::clone(&work));
        let looks = thread::spawn(move || find(&object, &work));
        let add_many = move || {
            done.do_it();
            many.add_many(A)
        };
        beside(add_many, move || single.add(B));
        looks.join().unwrap();
    });
}

/// A lookup without the lock.
fn find(object: &Object, work: &Work) {
    if object.filter.contains_hash(A) {
        assert!(work.is_visible());
    }
}
