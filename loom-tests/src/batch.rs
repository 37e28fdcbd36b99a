//! The batch calls keep the promises of the single calls if the hashes are inserted one after
//! another: in a batch of one, or with less than two hashes per line.

use super::*;
use lanebloom::Hashed;

#[test]
fn no_bit_is_lost() {
    loom::model(|| {
        let raced = Arc::new(filter_of_lines(2, 1));
        let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
        let won = beside(
            move || one.insert_batch(Hashed::slice(&[A, B])),
            move || other.insert_batch(Hashed::slice(&[B, A])),
        );
        // One word per key, so that exactly one wins each key.
        assert_eq!(won.0 + won.1, 2);
        let mut found = [false; 2];
        raced.contains_batch(Hashed::slice(&[A, B]), &mut found);
        assert_eq!(found, [true; 2]);
    });
}

#[test]
fn who_finds_a_key_sees_what_its_inserter_did_before() {
    for filter in [|| filter(2), filter_of_two_lines] {
        let insert = |filter: &ConcurrentBloom| assert_eq!(filter.insert_batch(Hashed::slice(&[A])), 1);
        publishes(filter, insert, |filter| {
            let mut found = [false; 2];
            filter.contains_batch(Hashed::slice(&[A, B]), &mut found);
            found[0]
        });
    }
}

#[test]
fn who_inserts_in_vain_sees_what_the_inserter_did_before() {
    let insert = |filter: &ConcurrentBloom| _ = filter.insert(&Hashed(A));
    publishes(
        || filter(1),
        insert,
        |filter| filter.insert_batch(Hashed::slice(&[A])) == 0,
    );
}
