//! A chain of layers that grows: the contract with a growth in the middle. Layers are one line each
//! and full at one key (or at two), so that every insert looks.

use super::*;
use lanebloom::{Hashed, ScalableBloom};

/// A filter with layers for `capacity` keys each.
fn growing(capacity: usize, layers: usize) -> Arc<ScalableBloom> {
    let builder = ScalableBloom::builder()
        .expected_keys(capacity)
        .expansion(1)
        .false_positive_rate(0.1)
        .words_per_key(1)
        .max_layers(layers);
    Arc::new(builder.build().unwrap())
}

/// A third key, in a word of its own: loom has fewer interleavings to try than if it met the
/// others.
const C: u64 = hash_in(1, 0x0812_1822_2832_0000);

fn insert(filter: &Arc<ScalableBloom>, hash: u64) -> impl FnOnce() -> bool + 'static {
    share!(filter);
    move || filter.insert(&Hashed(hash)).unwrap()
}

/// The layers are as small as the tests need them to be.
#[test]
fn a_layer_is_one_line_and_full_at_its_keys() {
    loom::model(|| {
        let filter = growing(1, 3);
        assert_eq!(filter.memory_bytes(), 64);
        assert!(insert(&filter, A)());
        assert_eq!(filter.layers().len(), 2);
        assert!(insert(&filter, B)());
        assert_eq!(filter.layers().len(), 3);
        let filter = growing(2, 2);
        insert(&filter, A)();
        assert_eq!((filter.layers().len(), filter.memory_bytes()), (1, 64));
        insert(&filter, B)();
        assert_eq!((filter.layers().len(), filter.memory_bytes()), (2, 128));
    });
}

/// Both see the layer full, each with a key of its own: there is one more layer, and no key is
/// lost.
#[test]
fn two_that_see_the_layer_full_add_one() {
    loom::model(|| {
        let filter = growing(1, 4);
        assert_eq!(beside(insert(&filter, A), insert(&filter, B)), (true, true));
        assert!((2..=3).contains(&filter.layers().len()));
        assert!(filter.contains(&Hashed(A)) && filter.contains(&Hashed(B)) && !filter.contains(&Hashed(C)));
    });
}

/// One fills the layer, and goes on; the other one's key lands in the old layer, or in the new one.
#[test]
fn an_insert_beside_a_growth_is_not_lost() {
    loom::model(|| {
        let filter = growing(1, 4);
        let growing = {
            share!(filter);
            move || {
                assert_eq!(filter.insert(&Hashed(A)), Ok(true));
                assert_eq!(filter.insert(&Hashed(C)), Ok(true));
                assert!(filter.contains(&Hashed(A)) && filter.contains(&Hashed(C)));
            }
        };
        let inserting = {
            share!(filter);
            move || {
                assert_eq!(filter.insert(&Hashed(B)), Ok(true));
                assert!(filter.contains(&Hashed(B)));
                assert_eq!(filter.insert(&Hashed(B)), Ok(false));
            }
        };
        beside(growing, inserting);
        assert!([A, B, C].iter().all(|&hash| filter.contains(&Hashed(hash))));
    });
}

#[test]
fn of_racing_inserters_at_least_one_wins_across_a_growth() {
    loom::model(|| {
        let filter = growing(2, 3);
        filter.insert(&Hashed(C)).unwrap();
        // The one's key fills the layer, so that the other one may find it in the old layer or look
        // into the new one only.
        let won = beside(insert(&filter, A), insert(&filter, A));
        assert!(won.0 || won.1);
        assert!(filter.contains(&Hashed(A)));
    });
}

#[test]
fn no_false_negative_after_an_insert_that_happened_before_a_growth() {
    loom::model(|| {
        let (filter, inserted) = (growing(1, 4), Arc::new(AtomicBool::new(false)));
        let first = {
            share!(filter, inserted);
            move || {
                filter.insert(&Hashed(A)).unwrap();
                inserted.store(true, Ordering::Release);
                filter.insert(&Hashed(B)).unwrap();
            }
        };
        beside(first, move || {
            // Before the filter is looked at, which could tell by itself.
            let inserted = inserted.load(Ordering::Acquire);
            let found = filter.contains(&Hashed(A));
            assert!(found || !inserted);
            assert!(!filter.contains(&Hashed(C)));
            if inserted {
                assert_eq!(filter.insert(&Hashed(A)), Ok(false));
            }
        });
    });
}

/// A key in the new layer is published like a key in the old one, also to a thread that finds the
/// layer only with the key.
#[test]
fn who_finds_a_key_in_a_new_layer_sees_what_its_inserter_did_before() {
    for batch in [false, true] {
        loom::model(move || {
            let (filter, work) = (growing(1, 3), Arc::new(Work::new()));
            let inserter = {
                share!(filter, work);
                move || {
                    filter.insert(&Hashed(B)).unwrap();
                    work.do_it();
                    filter.insert(&Hashed(A)).unwrap();
                }
            };
            beside(inserter, move || {
                let found = if batch {
                    let mut found = [false; 2];
                    filter.contains_batch(Hashed::slice(&[A, C]), &mut found);
                    found[0]
                } else {
                    filter.contains(&Hashed(A))
                };
                assert!(!found || work.is_visible());
            });
        });
    }
}

#[test]
fn who_inserts_in_vain_across_a_growth_sees_what_the_inserter_did_before() {
    loom::model(|| {
        let (filter, work) = (growing(1, 3), Arc::new(Work::new()));
        let inserter = {
            share!(filter, work);
            move || {
                work.do_it();
                filter.insert_batch(Hashed::slice(&[A, B]))
            }
        };
        let (inserted, ()) = beside(inserter, move || {
            if filter.insert_batch(Hashed::slice(&[A])) == Ok(0) {
                assert!(work.is_visible());
            }
        });
        assert!(inserted.unwrap() >= 1);
    });
}

/// The thread that makes the next layer ahead of need may be suspended for long: a thread that sees
/// the full layer does not wait for it.
#[test]
fn growth_waits_for_nobody() {
    loom::model(|| {
        // The second of four keys is ahead of need at 3/4, the third in fact.
        let filter = growing(4, 3);
        filter
            .insert_batch(Hashed::slice(&[C, C.wrapping_add(1 << 32)]))
            .unwrap();
        let (ahead, full) = (Arc::clone(&filter), Arc::clone(&filter));
        beside(
            move || ahead.insert(&Hashed(A)).unwrap(),
            move || {
                full.insert(&Hashed(B)).unwrap();
                // It has seen 4 keys, its own and A among them, only if it came last; then it has
                // gone on by itself.
                full.layers().len()
            },
        );
        assert!([A, B, C].iter().all(|&hash| filter.contains(&Hashed(hash))));
        assert!(filter.layers().len() <= 2);
    });
}

/// At the limit, the accepted keys are there, and the answers name the others.
#[test]
fn a_key_is_taken_or_refused() {
    loom::model(|| {
        let filter = growing(1, 1);
        let insert = |hash: u64| {
            share!(filter);
            move || filter.insert(&Hashed(hash)).is_ok()
        };
        let taken = beside(insert(A), insert(B));
        assert!(taken.0 || taken.1);
        assert_eq!((filter.contains(&Hashed(A)), filter.contains(&Hashed(B))), taken);
        assert!(filter.is_full() && filter.insert(&Hashed(C)).is_err() && !filter.contains(&Hashed(C)));
    });
}

#[test]
fn a_union_beside_a_growth_loses_nothing() {
    loom::model(|| {
        let (all, part) = (growing(1, 3), growing(1, 3));
        part.insert(&Hashed(A)).unwrap();
        let uniter = {
            share!(all);
            move || {
                assert_eq!(all.union_from(&part), Ok(true));
                assert!(all.contains(&Hashed(A)));
            }
        };
        beside(uniter, insert(&all, B));
        assert!(all.contains(&Hashed(A)) && all.contains(&Hashed(B)));
        assert!((2..=3).contains(&all.layers().len()));
    });
}

/// There are bytes for one more layer.
#[test]
fn racing_unions_keep_the_limit_of_bytes() {
    let mut model = loom::model::Builder::new();
    // A union reads every word of several layers, more than once.
    model.max_branches = 10_000;
    model.check(|| {
        let mut all = growing(1, 4);
        Arc::get_mut(&mut all).unwrap().set_max_bytes(128);
        all.insert(&Hashed(C)).unwrap();
        let unite = |hash| {
            let part = growing(1, 4);
            part.insert(&Hashed(hash)).unwrap();
            share!(all);
            move || all.union_from(&part).is_ok()
        };
        let united = beside(unite(A), unite(B));
        assert!(united.0 != united.1);
        assert_eq!((all.contains(&Hashed(A)), all.contains(&Hashed(B))), united);
        assert_eq!(all.memory_bytes(), 128);
    });
}

/// One word per key at a low rate, and a hint of eight keys: there can be no second layer, but by a
/// greater hint. It is set while the last key finds the layer full.
#[test]
fn a_hint_beside_the_last_key_is_not_lost() {
    let key = |i: u64| hash_of_product(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut model = loom::model::Builder::new();
    // Each key before the last one is many steps, too.
    model.max_branches = 10_000;
    model.check(move || {
        let build = || {
            let builder = ScalableBloom::builder().expected_keys(1).words_per_key(1);
            Arc::new(builder.false_positive_rate(7e-6).hint(8).build().unwrap())
        };
        let full = build();
        let last = (0..)
            .find(|&i| full.insert(&Hashed(key(i))).unwrap() && full.is_full())
            .unwrap();
        assert_eq!(full.layers().len(), 1);
        let filter = build();
        (0..last).for_each(|i| assert_eq!(filter.insert(&Hashed(key(i))), Ok(true)));
        let hinting = {
            share!(filter);
            move || filter.set_hint(12)
        };
        beside(insert(&filter, key(last)), hinting);
        assert_eq!(filter.insert(&Hashed(key(last + 1))), Ok(true));
        assert_eq!(filter.layers().len(), 2);
    });
}
