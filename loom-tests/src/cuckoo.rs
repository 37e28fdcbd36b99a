//! The cuckoo filter: six buckets of four fingerprints of 16 bits, the smallest, so that one insert
//! moves one fingerprint.

use super::*;
use lanebloom::{CuckooFilter, Hashed};

const BUCKETS: u64 = 6;

fn filter() -> CuckooFilter {
    CuckooFilter::builder()
        .memory_budget(64)
        .fingerprint_bits(16)
        .build()
        .unwrap()
}

/// A hash with this fingerprint whose first bucket is this one.
const fn hash(bucket: u64, fingerprint: u64) -> u64 {
    let high = ((fingerprint - 1) << 32) / 65_535 + 1;
    let mut low = 0;
    loop {
        let hash = products::hash_of_fingerprint_product(high << 32 | low);
        if products::block(hash, BUCKETS as usize) as u64 == bucket {
            return hash;
        }
        low += 1;
    }
}

/// The fingerprint's other bucket, as lanebloom's table.rs finds it.
const fn other(bucket: u64, fingerprint: u64) -> u64 {
    let z = fingerprint.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 32).wrapping_mul(0x94d0_49bb_1331_11eb);
    let step = 2 * ((z as u128 * (BUCKETS / 2) as u128) >> 64) as u64 + 1;
    (step + BUCKETS - bucket) % BUCKETS
}

/// The n-th fingerprint from `from` on that leads from `bucket` to `to`, or, where that is none,
/// anywhere.
const fn fingerprint_between(bucket: u64, to: Option<u64>, mut from: u64, mut n: u64) -> u64 {
    loop {
        let leads = match to {
            Some(to) => other(bucket, from) == to,
            None => true,
        };
        if leads && n == 0 {
            return from;
        }
        if leads {
            n -= 1;
        }
        from += 1;
    }
}

/// Where the key that is moved is at first, where it goes, and the other bucket of the key that
/// wants its place. All odd distances, so that there are fingerprints that lead from one to the
/// other.
const SOURCE: u64 = 0;
const DESTINATION: u64 = 1;
const FULL: u64 = 3;

const MOVED_FINGERPRINT: u64 = fingerprint_between(SOURCE, Some(DESTINATION), 100, 0);
/// The key that is moved, as it is looked up from either side: the source is read first, or the
/// destination.
const MOVED: [u64; 2] = [hash(SOURCE, MOVED_FINGERPRINT), hash(DESTINATION, MOVED_FINGERPRINT)];
/// Two keys that have no room unless another moves.
const NEW: u64 = hash(SOURCE, fingerprint_between(SOURCE, Some(FULL), 200, 0));
const NEXT: u64 = hash(SOURCE, fingerprint_between(SOURCE, Some(FULL), 200, 1));

/// Three more in the source, whose other bucket is the full one too, and four there, whose other
/// one is the source: they cannot make room.
fn bystanders() -> impl Iterator<Item = u64> {
    let source = (0..3).map(|i| hash(SOURCE, fingerprint_between(SOURCE, Some(FULL), 300, i)));
    source.chain((0..4).map(|i| hash(FULL, fingerprint_between(FULL, Some(SOURCE), 400, i))))
}

/// A filter in which an insert of `NEW` moves `MOVED`.
fn about_to_move() -> Arc<CuckooFilter> {
    let filter = filter();
    filter.insert(&Hashed(MOVED[0])).unwrap();
    bystanders().for_each(|hash| filter.insert(&Hashed(hash)).unwrap());
    Arc::new(filter)
}

fn inserter(filter: &Arc<CuckooFilter>, hash: u64) -> impl FnOnce() + 'static {
    share!(filter);
    move || filter.insert(&Hashed(hash)).unwrap()
}

fn remover(filter: &Arc<CuckooFilter>, hash: u64) -> impl FnOnce() -> bool + 'static {
    share!(filter);
    move || filter.remove(&Hashed(hash))
}

fn all_bystanders_are_in(filter: &CuckooFilter) {
    assert!(bystanders().all(|hash| filter.count(&Hashed(hash)) == 1));
}

/// Otherwise the tests of this file would try less than they claim.
#[test]
fn the_insert_does_move_the_key() {
    loom::model(|| {
        let filter = about_to_move();
        // The destination takes four, and three once the key has come there.
        filter.insert(&Hashed(NEW)).unwrap();
        let fingerprints = (0..3).map(|i| fingerprint_between(DESTINATION, Some(SOURCE), 500, i));
        fingerprints.for_each(|fingerprint| filter.insert(&Hashed(hash(DESTINATION, fingerprint))).unwrap());
        let last = fingerprint_between(DESTINATION, Some(SOURCE), 500, 3);
        assert!(filter.insert(&Hashed(hash(DESTINATION, last))).unwrap_err().is_full());
        // And there is where it is taken out.
        assert!(filter.remove(&Hashed(MOVED[1])));
        filter.insert(&Hashed(hash(DESTINATION, last))).unwrap();
        assert!(filter.insert(&Hashed(NEXT)).unwrap_err().is_full());
        all_bystanders_are_in(&filter);
    });
}

#[test]
fn a_moving_fingerprint_is_never_unseen() {
    for key in MOVED {
        loom::model(move || {
            let filter = about_to_move();
            let looker = {
                share!(filter);
                move || filter.contains(&Hashed(key))
            };
            let (_, found) = beside(inserter(&filter, NEW), looker);
            assert!(found);
            assert!(filter.contains(&Hashed(NEW)));
            all_bystanders_are_in(&filter);
        });
    }
}

#[test]
fn a_moving_fingerprint_is_counted_and_found_in_a_batch() {
    for key in MOVED {
        loom::model(move || {
            let filter = about_to_move();
            let looker = {
                share!(filter);
                move || {
                    let mut found = [false];
                    filter.contains_batch(Hashed::slice(&[key]), &mut found);
                    (found[0], filter.count(&Hashed(key)))
                }
            };
            let (_, (found, count)) = beside(inserter(&filter, NEW), looker);
            // Twice for the moment that it is in both.
            assert!(found && (1..=2).contains(&count));
            assert_eq!(filter.count(&Hashed(key)), 1);
        });
    }
}

/// There and back: a lookup that reads a bucket twice would see the same word.
#[test]
fn a_tag_that_moves_there_and_back_is_never_unseen() {
    for key in MOVED {
        loom::model(move || {
            let filter = about_to_move();
            // The destination is full once the key is in its first slot.
            let beside_it: Vec<u64> = (0..4)
                .map(|i| hash(DESTINATION, fingerprint_between(DESTINATION, Some(FULL + 1), 600, i)))
                .collect();
            filter.insert_batch(Hashed::slice(&beside_it)).unwrap();
            assert!(filter.remove(&Hashed(beside_it[0])));
            let mover = {
                share!(filter);
                move || {
                    filter.insert(&Hashed(NEW)).unwrap();
                    assert!(filter.remove(&Hashed(NEW)));
                    // Its second bucket is full as well.
                    filter
                        .insert(&Hashed(hash(
                            DESTINATION,
                            fingerprint_between(DESTINATION, Some(SOURCE), 700, 0),
                        )))
                        .unwrap();
                }
            };
            let looker = {
                share!(filter);
                move || filter.contains(&Hashed(key))
            };
            let (_, found) = beside(mover, looker);
            assert!(found);
        });
    }
}

#[test]
fn a_removal_beside_a_move_takes_the_tag_and_its_copy() {
    for key in MOVED {
        loom::model(move || {
            let filter = about_to_move();
            let (_, removed) = beside(inserter(&filter, NEW), remover(&filter, key));
            assert!(removed);
            assert_eq!((filter.count(&Hashed(key)), filter.count(&Hashed(NEW))), (0, 1));
            all_bystanders_are_in(&filter);
            assert_eq!(filter.len(), 8);
        });
    }
}

/// (With a thread for each of the three loom takes longer than anyone waits.)
#[test]
fn of_removers_beside_a_move_exactly_one_wins() {
    for keys in [[MOVED[0], MOVED[1]], [MOVED[1], MOVED[0]]] {
        loom::model(move || {
            let filter = about_to_move();
            let mover = {
                share!(filter);
                move || {
                    filter.insert(&Hashed(NEW)).unwrap();
                    filter.remove(&Hashed(keys[0]))
                }
            };
            let removed = beside(mover, remover(&filter, keys[1]));
            assert!(removed.0 != removed.1);
            assert_eq!(filter.count(&Hashed(MOVED[0])), 0);
            all_bystanders_are_in(&filter);
            assert_eq!(filter.len(), 8);
        });
    }
}

/// Two threads race to remove a key that no thread moves.
#[test]
fn of_racing_removers_exactly_one_wins() {
    loom::model(|| {
        let filter = about_to_move();
        let removed = beside(remover(&filter, MOVED[0]), remover(&filter, MOVED[1]));
        assert!(removed.0 != removed.1);
        assert_eq!(filter.len(), 7);
        all_bystanders_are_in(&filter);
    });
}

/// A second copy of the moved key's fingerprint comes, or goes, while the first moves.
#[test]
fn copies_of_one_key_are_counted_through_a_move() {
    for key in MOVED {
        loom::model(move || {
            let filter = about_to_move();
            beside(inserter(&filter, NEW), inserter(&filter, key));
            assert_eq!(filter.count(&Hashed(key)), 2);
            assert!(filter.remove(&Hashed(key)) && filter.remove(&Hashed(key)) && !filter.remove(&Hashed(key)));
            all_bystanders_are_in(&filter);
        });
    }
}

#[test]
fn two_inserts_that_want_the_same_slot_both_get_one() {
    loom::model(|| {
        let filter = Arc::new(filter());
        beside(inserter(&filter, NEW), inserter(&filter, NEXT));
        assert_eq!(
            (filter.count(&Hashed(NEW)), filter.count(&Hashed(NEXT)), filter.len()),
            (1, 1, 2)
        );
    });
}

/// Both move the same fingerprint, or one takes the slot that the other has made.
#[test]
fn two_inserts_that_need_the_same_move_lose_nothing() {
    loom::model(|| {
        let filter = about_to_move();
        // Room for two: one more fingerprint of the source has another way out.
        let out = bystanders().next().unwrap();
        assert!(filter.remove(&Hashed(out)));
        let second = hash(SOURCE, fingerprint_between(SOURCE, Some(DESTINATION), 800, 0));
        filter.insert(&Hashed(second)).unwrap();
        beside(inserter(&filter, NEW), inserter(&filter, NEXT));
        for key in [MOVED[0], MOVED[1], second, NEW, NEXT] {
            assert_eq!(filter.count(&Hashed(key)), 1);
        }
        assert!(bystanders().skip(1).all(|hash| filter.count(&Hashed(hash)) == 1));
        assert_eq!(filter.len(), 10);
    });
}

#[test]
fn an_insert_beside_a_removal_of_another_key_loses_neither() {
    loom::model(|| {
        let filter = Arc::new(filter());
        filter.insert(&Hashed(NEW)).unwrap();
        let (removed, _) = beside(remover(&filter, NEW), inserter(&filter, NEXT));
        assert!(removed);
        assert_eq!((filter.count(&Hashed(NEW)), filter.count(&Hashed(NEXT))), (0, 1));
    });
}

#[test]
fn who_finds_a_key_sees_what_its_inserter_did_before() {
    loom::model(|| {
        let (filter, work) = (Arc::new(filter()), Arc::new(Work::new()));
        beside(work_then_insert(&filter, &work), move || {
            if filter.contains(&Hashed(MOVED[0])) {
                assert!(work.is_visible());
            }
        });
    });
}

fn work_then_insert(filter: &Arc<CuckooFilter>, work: &Arc<Work>) -> impl FnOnce() + 'static {
    share!(filter, work);
    move || {
        work.do_it();
        filter.insert(&Hashed(MOVED[0])).unwrap();
    }
}

/// Also when a third thread moved it meanwhile: the source has one slot left, for the key or for
/// the one that moves it.
#[test]
fn publication_survives_a_move() {
    loom::model(|| {
        let (filter, work) = (Arc::new(filter()), Arc::new(Work::new()));
        bystanders().for_each(|hash| filter.insert(&Hashed(hash)).unwrap());
        let worker = thread::spawn(work_then_insert(&filter, &work));
        beside(inserter(&filter, NEW), move || {
            if filter.contains(&Hashed(MOVED[0])) {
                assert!(work.is_visible());
            }
        });
        worker.join().unwrap();
    });
}

#[test]
fn no_false_negative_after_an_insert_that_happened_before() {
    loom::model(|| {
        let (filter, inserted) = (about_to_move(), Arc::new(AtomicBool::new(false)));
        let first = {
            share!(filter, inserted);
            move || {
                filter.insert(&Hashed(NEW)).unwrap();
                inserted.store(true, Ordering::Release);
            }
        };
        beside(first, move || {
            if inserted.load(Ordering::Acquire) {
                assert!(filter.contains(&Hashed(NEW)));
            }
        });
    });
}

#[test]
fn copies_made_beside_a_move_hold_the_key_once() {
    loom::model(|| {
        let filter = about_to_move();
        let copier = {
            share!(filter);
            move || filter.try_clone().unwrap()
        };
        let (_, copy) = beside(inserter(&filter, NEW), copier);
        assert_eq!(copy.count(&Hashed(MOVED[0])), 1);
        all_bystanders_are_in(&copy);
    });
    // By memory that is there, and by a copy of its own.
    for by_stream in [false, true] {
        loom::model(move || {
            let filter = about_to_move();
            let writer = {
                share!(filter);
                move || {
                    if by_stream {
                        let mut stream = Vec::new();
                        filter.snapshot().write_to(&mut stream).unwrap();
                        stream
                    } else {
                        filter.snapshot().to_vec()
                    }
                }
            };
            let (_, bytes) = beside(inserter(&filter, NEW), writer);
            let (copy, _) = CuckooFilter::from_bytes(&bytes).unwrap();
            assert_eq!(copy.count(&Hashed(MOVED[0])), 1);
            all_bystanders_are_in(&copy);
        });
    }
}
