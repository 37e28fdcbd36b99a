//! The answers of batches: of any batch, at every place, as single calls in order return them.

use crate::within;
use lanebloom::internal::Place;
use lanebloom::internal::traits::{Engine, Insert};
use lanebloom::{Absent, Answers, Bitmap, Filter, Funnel, Hashed, Key, KeyHasher};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Any place for the answers of a batch, so that one closure is a batch at every place.
pub enum Out<'a> {
    Flags(&'a mut [bool]),
    Vector(&'a mut Vec<bool>),
    Bits(Bitmap<'a>),
    Absent(Absent<&'a mut dyn FnMut(usize)>),
    Nowhere,
}

impl Answers for Out<'_> {
    fn place(&mut self, keys: usize) -> Place<'_> {
        match self {
            Self::Flags(out) => out.place(keys),
            Self::Vector(out) => out.place(keys),
            Self::Bits(out) => out.place(keys),
            Self::Absent(out) => out.place(keys),
            Self::Nowhere => Place::Nowhere,
        }
    }
}

/// The number of kinds of places.
pub const PLACES: usize = 5;

/// `batch` passes `expected` on at every place, by a call with the number of the place. The places
/// lie at `offset` of larger buffers. Returns the results of the calls.
pub fn answers_agree<R>(expected: &[bool], offset: usize, mut batch: impl FnMut(usize, Out<'_>) -> R) -> [R; PLACES] {
    const GARBAGE: u64 = 0xa5a5_5a5a_a5a5_5a5a;
    let len = expected.len();
    let before = (offset + len) % 2 == 1;
    let (flags, by_flags) = within(offset, len, before, |out| batch(0, Out::Flags(out)));
    assert!(flags == expected, "flags of {len} keys");

    let mut vector = vec![before; offset];
    let by_vector = batch(1, Out::Vector(&mut vector));
    assert!(vector == expected, "a vector of {len} keys");

    // All 64 bits of the last word: the bits after the last key are 0.
    let word = |answers: &[bool]| answers.iter().rev().fold(0, |word, &bit| word << 1 | u64::from(bit));
    let bitmap: Vec<u64> = expected.chunks(64).map(word).collect();
    let (bits, by_bits) = within(offset, bitmap.len(), GARBAGE, |out| batch(2, Out::Bits(Bitmap(out))));
    assert!(bits == bitmap, "bits of {len} keys");

    let mut absent = Vec::new();
    let by_absent = batch(3, Out::Absent(Absent(&mut |i| absent.push(i))));
    let not_found = (0..len).filter(|&i| !expected[i]);
    assert!(not_found.eq(absent), "the absent ones of {len} keys");
    [by_flags, by_vector, by_bits, by_absent, batch(4, Out::Nowhere)]
}

/// `batch`, called with a number of keys and a place, panics if the place has room for more or for
/// fewer, and the message has both numbers.
pub fn lengths_are_checked(mut batch: impl FnMut(usize, Out<'_>)) {
    for (len, places) in LENGTHS_THAT_DIFFER {
        let mut flags = [false; 200];
        let message = panic_message(|| batch(len, Out::Flags(&mut flags[..places])));
        assert_eq!(message, places_differ(len, places));
    }
    for (len, words, right) in [
        (0, 1, 0),
        (1, 0, 1),
        (1, 2, 1),
        (64, 2, 1),
        (65, 1, 2),
        (128, 3, 2),
        (129, 2, 3),
    ] {
        let message = panic_message(|| batch(len, Out::Bits(Bitmap(&mut [0; 3][..words]))));
        let expected = format!("a bitmap of {len} keys needs {right} words, but `out` has {words}");
        assert_eq!(message, expected);
    }
}

/// Keys of a batch and places for their answers, at most 200.
pub const LENGTHS_THAT_DIFFER: [(usize, usize); 8] =
    [(0, 1), (1, 0), (1, 2), (8, 7), (9, 16), (64, 63), (65, 66), (130, 192)];

pub fn places_differ(keys: usize, places: usize) -> String {
    format!("`keys` has {keys} elements, but `out` has {places}")
}

pub fn panic_message(panics: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(panics)).expect_err("no panic");
    *panic.downcast::<String>().expect("a panic with values in its message")
}

/// Every lookup of the keys, and of their hashes, gives the answers of single calls.
pub fn lookups_agree<E: Engine, S: KeyHasher, K: Funnel>(filter: &Filter<E, S>, keys: &[K], offset: usize) {
    let hashes: Vec<u64> = keys.iter().map(|key| filter.hash(key)).collect();
    let (hashed, ()) = within(offset, keys.len(), 0, |out| filter.hasher().hash_batch(keys, out));
    assert!(hashed == hashes, "hashes of {} keys", keys.len());
    let expected: Vec<bool> = keys.iter().map(|key| filter.look_up(key)).collect();
    let hashes = Hashed::slice(&hashes);
    assert!(
        hashes
            .iter()
            .map(|hash| filter.look_up(hash))
            .eq(expected.iter().copied())
    );
    answers_agree(&expected, offset, |_, out| filter.look_up_batch(keys, out));
    answers_agree(&expected, offset, |_, out| filter.look_up_batch(hashes, out));
}

/// The number of ways to insert: one by one, a slice, an iterator, and a slice at each place.
pub const WAYS: usize = 3 + PLACES;

/// Every way to insert the keys, each into a filter of its own, gives the answers `told`, and their
/// sum.
pub fn inserts_agree<E: Engine + Insert, S, K: Key<S> + Clone>(
    filters: &[Filter<E, S>; WAYS],
    keys: &[K],
    told: &[bool],
    offset: usize,
) {
    let (len, sum) = (keys.len(), told.iter().filter(|&&changed| changed).count());
    let [single, batch, all, into @ ..] = filters;
    let singly = keys.iter().map(|key| single.try_insert(key).unwrap());
    assert!(singly.eq(told.iter().copied()), "{len} keys, one by one");
    assert_eq!(batch.try_insert_batch(keys).unwrap(), sum, "{len} keys");
    assert_eq!(all.try_insert_all(keys.iter().cloned()).unwrap(), sum, "{len} keys");
    let sums = answers_agree(told, offset, |place, out| {
        into[place].try_insert_batch_into(keys, out).unwrap()
    });
    assert_eq!(sums, [sum; PLACES], "{len} keys");
}
