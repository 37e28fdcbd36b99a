//! A guard that is rebuilt while keys are added.

use super::*;

/// The store has the rows, then the guard is told; the rebuild reads the store. However they interleave, and
/// however weakly the store is ordered, the keys are admitted after.
fn added_beside_a_rebuild(keys: &'static [&'static str], insert: fn(&CacheGuard, &[&str])) {
    loom::model(move || {
        let guard = Arc::new(CacheGuard::new(filter(1)));
        let store_has_them = Arc::new(Work::new());
        let (adding, rebuilding) = (Arc::clone(&guard), Arc::clone(&guard));
        let adder = {
            share!(store_has_them);
            move || {
                store_has_them.do_it();
                insert(&adding, keys);
                assert!(admits(&adding, keys));
            }
        };
        beside(adder, move || {
            let mut rebuild = rebuilding.rebuild(filter(1)).unwrap();
            rebuild.extend(store_has_them.is_visible().then_some(keys).into_iter().flatten());
            rebuild.commit();
        });
        assert!(admits(&guard, keys));
    });
}

fn admits(guard: &CacheGuard, keys: &[&str]) -> bool {
    let mut admitted = 0;
    guard.check_batch(keys, |_, _| admitted += 1);
    admitted == keys.len() && keys.iter().all(|key| guard.check(key).is_some())
}

#[test]
fn an_insert_that_races_with_a_rebuild_is_not_lost() {
    added_beside_a_rebuild(&["a"], |guard, keys| {
        guard.insert(keys[0]);
    });
}

#[test]
fn of_a_batch_that_races_with_a_rebuild_no_key_is_lost() {
    added_beside_a_rebuild(&["a", "b"], |guard, keys| {
        guard.insert_batch(keys);
    });
}

#[test]
fn a_key_is_admitted_throughout_a_rebuild() {
    loom::model(|| {
        let guard = Arc::new(CacheGuard::new(filter(1)));
        guard.insert("a");
        let reading = Arc::clone(&guard);
        let reader = move || {
            assert!(reading.check("a").is_some());
            assert!(reading.check("a").is_some());
        };
        beside(reader, move || {
            let mut rebuild = guard.rebuild(filter(1)).unwrap();
            rebuild.extend(["a"]);
            rebuild.commit();
        });
    });
}

#[test]
fn two_rebuilds_never_overlap() {
    loom::model(|| {
        let guard = Arc::new(CacheGuard::new(filter(1)));
        let rebuild = |guard: Arc<CacheGuard>, key: &'static str| {
            move || {
                let Ok(mut rebuild) = guard.rebuild(filter(1)) else {
                    return false;
                };
                // What is inserted during a rebuild is in the filter that it ends with.
                guard.insert(key);
                rebuild.extend([key]);
                assert!(rebuild.filter().contains(key));
                rebuild.commit();
                true
            }
        };
        let begun = beside(rebuild(Arc::clone(&guard), "a"), rebuild(Arc::clone(&guard), "b"));
        assert!(begun.0 || begun.1);
        // One after another: what the last commit left is one key, and not that of a rebuild that was refused.
        let (a, b) = (guard.check("a").is_some(), guard.check("b").is_some());
        assert!(a != b && (begun.0 || !a) && (begun.1 || !b), "{begun:?} {a} {b}");
    });
}
