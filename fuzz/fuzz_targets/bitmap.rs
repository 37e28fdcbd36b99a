//! Snapshots of an exact bitmap of any bytes: every way to read them gives the same error, or the
//! same set, which writes the same bytes again and does what a set does.
//!
//! Half of the inputs get correct checksums.

#![no_main]

mod summed;

use lanebloom::bitmap::{BitmapView, ConcurrentBitmap};
use lanebloom::codec;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use summed::{LIMIT, agree, summed};

fuzz_target!(|input: &[u8]| {
    let bytes = summed(input);
    let by_slice = ConcurrentBitmap::from_bytes(&bytes);
    let by_reader = ConcurrentBitmap::read_from(&bytes[..], LIMIT);
    let by_view = BitmapView::from_bytes(&bytes);
    match (by_slice, by_reader) {
        (Ok((set, rest)), Ok(same)) => {
            let (view, behind) = by_view.unwrap();
            codec::verify(view.bytes()).unwrap();
            assert!(set == same && view == set && behind == rest);
            assert!(set.snapshot().to_vec() == bytes[..bytes.len() - rest.len()]);
            check(&set, &input[..input.len().min(64)]);
        }
        (Err(one), Err(other)) => {
            agree(&one, &other);
            if let Ok((view, _)) = by_view {
                assert!(codec::verify(view.bytes()).is_err() && view.iter().all(|at| at < view.bound()));
                assert_eq!(view.iter().count() as u64, view.len());
            }
        }
        (Ok(_), Err(error)) => assert!(error.to_string().contains("more than the limit of"), "{error}"),
        (Err(error), Ok(_)) => panic!("{error}"),
    }
});

/// The set beside a `BTreeSet`, with positions that the input gives.
fn check(set: &ConcurrentBitmap, input: &[u8]) {
    let bound = set.bound();
    let mut model: BTreeSet<u64> = set.iter().collect();
    assert_eq!(model.len() as u64, set.len());
    for bytes in input.chunks(2) {
        let at = u64::from(bytes[0]) << 8 | u64::from(*bytes.last().unwrap());
        assert_eq!(set.contains(at), model.contains(&at));
        assert_eq!(set.first_present(at), model.range(at..).next().copied());
        match at % 3 {
            0 => assert_eq!(set.insert(at).ok(), (at < bound).then(|| model.insert(at))),
            1 => assert_eq!(set.remove(at), model.remove(&at)),
            _ => {
                let free = (at..bound).find(|at| !model.contains(at));
                assert_eq!((set.first_free(at), set.claim_free(at..)), (free, free));
                model.extend(free);
            }
        }
    }
    assert!(set.iter().eq(model.iter().copied()));
    assert_eq!(set.remove_range(..), model.len() as u64);
    assert!(set.is_empty());
}
