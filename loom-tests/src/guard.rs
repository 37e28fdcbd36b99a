//! A guard that is rebuilt while keys are added.

use super::*;
use lanebloom::ScalableBloom;
use lanebloom_guard::GuardFilter;

pub(crate) type Guard<F = ConcurrentBloom> = CacheGuard<str, F>;

/// How the store gets the rows, and the guard the keys.
pub(crate) type Add<F> = fn(&Guard<F>, &Work, &[&'static str]);

/// The filter that serves first, and that of the rebuild.
pub(crate) type Filters<F> = (fn() -> F, fn() -> F);

const ONE_WORD: Filters<ConcurrentBloom> = (|| filter(1), || filter(1));

/// The store gets the rows and the guard the keys; the rebuild reads the store. However they
/// interleave, and however weakly the store is ordered, the keys are admitted after.
pub(crate) fn added_beside_a_rebuild<F: GuardFilter>(
    (first, next): Filters<F>,
    keys: &'static [&'static str],
    add: Add<F>,
) {
    loom::model(move || {
        let guard = Arc::new(Guard::new(first()));
        let store_has_them = Arc::new(Work::new());
        let (adding, rebuilding) = (Arc::clone(&guard), Arc::clone(&guard));
        let adder = {
            share!(store_has_them);
            move || {
                add(&adding, &store_has_them, keys);
                assert!(admits(&adding, keys), "a key is lost");
            }
        };
        beside(adder, move || {
            let rebuild = rebuilding.rebuild(next()).unwrap();
            rebuild.insert_all(
                store_has_them
                    .is_visible()
                    .then_some(keys)
                    .into_iter()
                    .flatten()
                    .copied(),
            );
            rebuild.commit().unwrap();
        });
        assert!(!guard.is_open() && admits(&guard, keys), "a key is lost");
    });
}

pub(crate) fn admits<F: GuardFilter>(guard: &Guard<F>, keys: &[&str]) -> bool {
    let mut admitted = 0;
    guard.check_batch(keys, |_, _| admitted += 1);
    admitted == keys.len() && keys.iter().all(|key| guard.check(key).is_some())
}

#[test]
fn an_insert_that_races_with_a_rebuild_is_not_lost() {
    added_beside_a_rebuild(ONE_WORD, &["a"], |guard, store, keys| {
        store.do_it();
        guard.insert(keys[0]);
    });
}

#[test]
fn of_a_batch_that_races_with_a_rebuild_no_key_is_lost() {
    added_beside_a_rebuild(ONE_WORD, &["a", "b"], |guard, store, keys| {
        store.do_it();
        guard.insert_batch(keys);
    });
}

#[test]
fn a_key_is_admitted_throughout_a_rebuild() {
    admitted_throughout_a_rebuild(ONE_WORD);
}

pub(crate) fn admitted_throughout_a_rebuild<F: GuardFilter>((first, next): Filters<F>) {
    loom::model(move || {
        let guard = Arc::new(Guard::new(first()));
        guard.insert("a");
        let reading = Arc::clone(&guard);
        let reader = move || {
            assert!(reading.check("a").is_some());
            assert!(reading.check("a").is_some());
        };
        beside(reader, move || {
            let rebuild = guard.rebuild(next()).unwrap();
            rebuild.insert_all(["a"]);
            rebuild.commit().unwrap();
            assert!(admits(&guard, &["a"]));
        });
    });
}

#[test]
fn two_rebuilds_never_overlap() {
    loom::model(|| {
        let guard = Arc::new(Guard::new(filter(1)));
        let rebuild = |guard: Arc<Guard>, key: &'static str| {
            move || {
                let Ok(rebuild) = guard.rebuild(filter(1)) else {
                    return false;
                };
                // The rebuilt filter has the keys that were inserted during the rebuild.
                guard.insert(key);
                rebuild.insert_all([key]);
                assert!(rebuild.filter().contains(key));
                rebuild.commit().unwrap();
                true
            }
        };
        let begun = beside(rebuild(Arc::clone(&guard), "a"), rebuild(Arc::clone(&guard), "b"));
        assert!(begun.0 || begun.1);
        // One after another: what the last commit left is one key, and not that of a rebuild that
        // was refused.
        let (a, b) = (guard.check("a").is_some(), guard.check("b").is_some());
        assert!(a != b && (begun.0 || !a) && (begun.1 || !b), "{begun:?} {a} {b}");
    });
}

/// A rebuild begins from the state that the one before it ended with. If it did not, a rebuild that
/// is given up would put the filter before that one back.
#[test]
fn a_rebuild_that_is_given_up_leaves_what_the_one_before_committed() {
    loom::model(|| {
        let guard = Arc::new(Guard::new(filter(1)));
        let (committing, giving_up) = (Arc::clone(&guard), Arc::clone(&guard));
        let committed = move || {
            let Ok(rebuild) = committing.rebuild(filter(1)) else {
                return false;
            };
            rebuild.insert("a");
            rebuild.commit().unwrap();
            true
        };
        let (committed, ()) = beside(committed, move || drop(giving_up.rebuild(filter(1))));
        assert_eq!(guard.check("a").is_some(), committed);
    });
}

/// A handler whose commit and whose end may be anywhere beside a rebuild: at its end the key is
/// inserted.
#[test]
fn a_key_of_a_handler_that_is_cancelled_beside_a_rebuild_is_not_lost() {
    added_beside_a_rebuild(ONE_WORD, &["a"], |guard, store, keys| {
        let _insert = guard.insert_on_drop(keys[0]);
        store.do_it();
    });
}

/// The key is in the store before all of this, so no check may turn it away: not before the filter
/// has it, not after, and not in between.
#[test]
fn a_key_is_admitted_before_and_after_the_guard_is_ready() {
    loom::model(|| {
        let guard = Arc::new(Guard::new_open(filter(1)));
        let filling = Arc::clone(&guard);
        let checker = {
            share!(guard);
            move || assert!(admits(&guard, &["a"]), "a valid key is turned away")
        };
        beside(checker, move || {
            filling.insert("a");
            filling.mark_ready();
        });
        assert!(guard.is_ready() && !guard.is_open());
        assert!(guard.check("a").is_some() && guard.check("b").is_none());
    });
}

/// The store gets a row, and the guard learns only that it may lack some. A rebuild that began
/// before has read the store without the row: its commit must not close the guard.
#[test]
fn a_key_that_was_not_told_is_admitted_after_a_reopen() {
    loom::model(|| {
        let (guard, store) = (Arc::new(Guard::new(filter(1))), Arc::new(Work::new()));
        let reopening = {
            share!(guard, store);
            move || {
                store.do_it();
                guard.reopen();
                assert!(admits(&guard, &["a"]), "a key is lost");
            }
        };
        let rebuilding = Arc::clone(&guard);
        beside(reopening, move || {
            let rebuild = rebuilding.rebuild(filter(1)).unwrap();
            rebuild.insert_all(store.is_visible().then_some("a"));
            rebuild.commit().unwrap();
        });
        assert!(admits(&guard, &["a"]), "a key is lost");
        // The next one closes it.
        let rebuild = guard.rebuild(filter(1)).unwrap();
        rebuild.insert_all(["a"]);
        rebuild.commit().unwrap();
        assert!(!guard.is_open() && admits(&guard, &["a"]));
    });
}

/// A guard whose filter is full at one key.
type Tiny = CacheGuard<str, ScalableBloom>;

fn tiny(keys: usize) -> ScalableBloom {
    let builder = ScalableBloom::builder().expected_keys(keys).max_layers(1);
    builder.false_positive_rate(0.1).words_per_key(1).build().unwrap()
}

/// One of the keys is refused, and nobody is told: it is admitted even so.
#[test]
fn a_key_that_is_refused_is_admitted() {
    loom::model(|| {
        let (guard, work) = (Arc::new(Tiny::new(tiny(1))), Arc::new(Work::new()));
        guard.insert("c");
        let telling = {
            share!(guard, work);
            move || {
                work.do_it();
                drop(guard.insert_on_drop("a"));
                assert!(guard.check("a").is_some());
            }
        };
        let reading = Arc::clone(&guard);
        beside(telling, move || {
            // "b" is in no filter: it is admitted only as the guard is open.
            if reading.check("b").is_some() {
                assert!(work.is_visible());
            }
        });
        assert!(guard.is_open() && guard.check("a").is_some());
    });
}

/// The rebuild's filter has room for one key, and the store has two: whichever of them it lacks,
/// the rebuild fails, or the guard is open.
#[test]
fn a_key_that_the_next_filter_refuses_is_not_lost() {
    loom::model(|| {
        let guard = Arc::new(Tiny::new(tiny(2)));
        guard.insert("b");
        let (adding, rebuilding) = (Arc::clone(&guard), Arc::clone(&guard));
        let adder = move || {
            drop(adding.insert_on_drop("a"));
            assert!(adding.check("a").is_some(), "a key is lost");
        };
        beside(adder, move || {
            let rebuild = rebuilding.rebuild(tiny(1)).unwrap();
            // The store's only row when the rebuild began, or one of two.
            if rebuilding.filter().contains("a") {
                rebuild.insert("a");
            }
            rebuild.insert("b");
            let _ = rebuild.commit();
        });
        assert!(
            guard.check("a").is_some() && guard.check("b").is_some(),
            "a key is lost"
        );
    });
}

/// Why the key is inserted after the commit: the rebuild may read the store between the two.
#[test]
#[should_panic = "a key is lost"]
fn a_key_that_is_inserted_before_the_commit_alone_can_be_lost() {
    added_beside_a_rebuild(ONE_WORD, &["a"], |guard, store, keys| {
        guard.insert(keys[0]);
        store.do_it();
    });
}
