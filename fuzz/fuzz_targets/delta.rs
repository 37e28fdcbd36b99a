//! Deltas of any bytes: a delta adds nothing, or adds bits for which the same delta is written.
//!
//! Most inputs become the body of a delta whose header is right for the filter. Hardly any input
//! would be a delta by itself.

#![no_main]

use lanebloom::codec::{self, Kind, SnapshotHeader};
use lanebloom::{ConcurrentBloom, bloom};
use libfuzzer_sys::fuzz_target;
use twox_hash::XxHash3_64;

fuzz_target!(|input: &[u8]| {
    let Some((&[choice, lines], rest)) = input.split_first_chunk() else {
        return;
    };
    let words = 1 << (choice >> 1 & 3);
    let blocks = [1, 3, 200, 20_000][usize::from(choice >> 3 & 3)];
    let two = words > 1 && choice >> 5 & 1 == 1;
    let per_key = if two { 2 } else { 1 };
    let builder = ConcurrentBloom::builder().memory_budget(64 * per_key * blocks);
    let filter = builder.lines_per_key(per_key).words_per_key(words).build().unwrap();
    let empty = filter.clone();
    if choice & 1 == 0 {
        let mut bytes = rest.to_vec();
        if bytes.len() >= 64 {
            sum(&mut bytes);
        }
        if bloom::apply_deltas(&filter, &bytes).is_err() {
            return;
        }
        assert!(bloom::apply_deltas(&empty, &filter.with(&empty).unwrap().delta()).is_ok() && empty == filter);
        return;
    }
    let mut delta = filter.with(&filter).unwrap().delta();
    delta.extend_from_slice(rest);
    let len = delta.len() as u64;
    delta[24..32].copy_from_slice(&len.to_le_bytes());
    delta[48..56].copy_from_slice(&u64::from(lines).to_le_bytes());
    sum(&mut delta);
    match bloom::apply_deltas(&filter, &delta) {
        Ok(changed) => {
            assert_eq!(changed, lines > 0);
            assert_eq!(SnapshotHeader::peek(&delta).unwrap().kind, Kind::Delta);
            let (records, rest) = codec::verify(&delta).unwrap();
            assert!(records == [&delta[..]] && rest.is_empty());
            assert!(filter.with(&empty).unwrap().delta() == delta);
            assert!(!bloom::apply_deltas(&filter, &delta).unwrap());
        }
        Err(error) => {
            assert!(!error.is_incompatible(), "{error}");
            assert!(filter == empty);
        }
    }
});

fn sum(delta: &mut [u8]) {
    let declared = u64::from_le_bytes(delta[24..32].try_into().unwrap());
    let len = usize::try_from(declared).map_or(delta.len(), |len| len.min(delta.len()));
    let summed = [&delta[..56], delta.get(64..len).unwrap_or_default()].concat();
    delta[56..64].copy_from_slice(&XxHash3_64::oneshot(&summed).to_le_bytes());
}
