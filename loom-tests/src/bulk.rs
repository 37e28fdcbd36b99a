//! Batches that are inserted in bulk, through an image of the line, keep the promises of single
//! inserts. Under loom two hashes per line are enough for that.

use super::*;
use lanebloom::Hashed;

#[test]
fn no_bit_of_two_is_lost_and_each_key_has_one_winner() {
    loom::model(|| {
        let raced = Arc::new(filter(1));
        let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
        let won = beside(
            move || one.insert_batch(Hashed::slice(&[A, B])),
            move || other.insert_batch(Hashed::slice(&[B, A])),
        );
        assert_eq!(won.0 + won.1, 2);
        assert!(raced.contains(&Hashed(A)) && raced.contains(&Hashed(B)));
    });
}

#[test]
fn no_bit_is_lost_beside_a_single_insert_and_each_key_has_one_winner() {
    loom::model(|| {
        let raced = Arc::new(filter(1));
        let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
        let won = beside(
            move || one.insert_batch(Hashed::slice(&[A, B])),
            move || usize::from(other.insert(&Hashed(A))),
        );
        assert_eq!(won.0 + won.1, 2);
        assert!(raced.contains(&Hashed(A)) && raced.contains(&Hashed(B)));
    });
}

#[test]
fn flags_tell_the_winner() {
    loom::model(|| {
        let raced = Arc::new(filter(1));
        let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
        let flagged = move || {
            let mut first_seen = [false; 3];
            one.insert_batch_into(Hashed::slice(&[A, B, A]), &mut first_seen);
            first_seen
        };
        let (first_seen, won) = beside(flagged, move || other.insert(&Hashed(A)));
        assert_eq!(first_seen, [!won, true, false]);
    });
}

#[test]
fn with_several_words_each_key_has_a_winner() {
    for filter in [|| filter(2), filter_of_two_lines] {
        loom::model(move || {
            let raced = Arc::new(filter());
            let (one, other) = (Arc::clone(&raced), Arc::clone(&raced));
            let won = beside(
                move || one.insert_batch(Hashed::slice(&[A, A])),
                move || other.insert(&Hashed(A)),
            );
            assert!(won.0 + usize::from(won.1) >= 1 && won.0 <= 1);
            assert!(raced.contains(&Hashed(A)));
        });
    }
}

#[test]
fn who_finds_a_key_sees_what_its_inserter_did_before() {
    let insert = |filter: &ConcurrentBloom| assert_eq!(filter.insert_batch(Hashed::slice(&[A, B])), 2);
    publishes(|| filter(1), insert, |filter| filter.contains(&Hashed(A)));
}

#[test]
fn who_inserts_in_vain_sees_what_the_inserter_did_before() {
    let insert = |filter: &ConcurrentBloom| _ = filter.insert(&Hashed(A));
    publishes(
        || filter(1),
        insert,
        |filter| filter.insert_batch(Hashed::slice(&[A, A])) == 0,
    );
}
