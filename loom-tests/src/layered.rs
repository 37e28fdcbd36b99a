//! The guard's filter of two parts: the static one is built while keys are inserted.

use super::guard::{Filters, added_beside_a_rebuild, admitted_throughout_a_rebuild};
use super::*;
use lanebloom::Bitmap;
use lanebloom_guard::{GuardFilter, Layered};

fn collecting() -> Layered {
    Layered::new(1, 0.1).unwrap()
}

/// Its static part has no keys.
fn built() -> Layered {
    let filter = collecting();
    filter.complete().unwrap();
    filter
}

/// The guard is closed from the start, so that only the filters admit a key.
const LAYERED: Filters<Layered> = (built, collecting);

#[test]
fn an_insert_that_races_with_a_rebuild_of_layers_is_not_lost() {
    added_beside_a_rebuild(LAYERED, &["a"], |guard, store, keys| {
        store.do_it();
        guard.insert(keys[0]);
    });
}

#[test]
fn of_a_batch_that_races_with_a_rebuild_of_layers_no_key_is_lost() {
    added_beside_a_rebuild(LAYERED, &["a", "b"], |guard, store, keys| {
        store.do_it();
        guard.insert_batch(keys);
    });
}

#[test]
fn a_key_is_admitted_throughout_a_rebuild_of_layers() {
    admitted_throughout_a_rebuild(LAYERED);
}

fn holds(filter: &Layered, keys: &[&str]) -> bool {
    let mut bitmap = [0];
    filter.contains_batch(keys, Bitmap(&mut bitmap));
    bitmap == [(1 << keys.len()) - 1] && keys.iter().all(|key| filter.contains(*key))
}

/// While the static part is built, two threads insert. Whichever part gets their keys, the filter
/// holds them, then and after.
#[test]
fn a_key_that_is_inserted_beside_the_build_is_held() {
    loom::model(|| {
        let filter = Arc::new(collecting());
        let one = {
            share!(filter);
            move || {
                assert!(filter.insert("a") && holds(&filter, &["a"]));
                filter.complete().unwrap();
                assert!(holds(&filter, &["a"]));
            }
        };
        let batch = {
            share!(filter);
            move || {
                assert!(filter.insert_batch(&["b", "c"]) && holds(&filter, &["b", "c"]));
                assert!(holds(&filter, &["c", "b"]));
            }
        };
        beside(one, batch);
        assert!(!filter.may_lack_keys() && holds(&filter, &["a", "b", "c"]));
        assert!(!filter.contains("d"));
    });
}

/// Two threads complete a filter: one of them builds it, and no key is lost.
#[test]
fn a_filter_is_built_once() {
    loom::model(|| {
        let filter = Arc::new(collecting());
        let complete = |key: &'static str| {
            share!(filter);
            move || {
                assert!(filter.insert(key));
                filter.complete().unwrap();
                assert!(holds(&filter, &[key]));
            }
        };
        beside(complete("a"), complete("b"));
        assert!(!filter.may_lack_keys() && holds(&filter, &["a", "b"]) && !filter.contains("d"));
    });
}

/// A thread that finds a key sees what its inserter did before, whichever part has the key: the
/// inserter or the reader builds the static one.
#[test]
fn a_thread_that_finds_a_key_sees_the_work_before_its_insert() {
    for the_reader_builds in [false, true] {
        loom::model(move || {
            let (filter, work) = (Arc::new(collecting()), Arc::new(Work::new()));
            let inserter = {
                share!(filter, work);
                move || {
                    work.do_it();
                    assert!(filter.insert("a"));
                    if !the_reader_builds {
                        filter.complete().unwrap();
                    }
                }
            };
            let reader = move || {
                if the_reader_builds {
                    filter.complete().unwrap();
                }
                if !filter.may_lack_keys() && filter.contains("a") {
                    assert!(work.is_visible());
                }
            };
            beside(inserter, reader);
        });
    }
}
