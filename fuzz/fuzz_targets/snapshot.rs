//! Snapshots of any bytes: every way to read them gives the same filter, which is written as it was, or the same error.
//!
//! Half of the inputs get the checksums that they should have, without which hardly any would get beyond them.

#![no_main]

use lanebloom::{BloomView, ConcurrentBloom, Murmur3, ScalableBloom, SipHash13, WindowedBloom};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use twox_hash::XxHash3_64;

const LIMIT: usize = 1 << 20;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    let mut bytes = rest.to_vec();
    if choice & 1 == 1 {
        sum(&mut bytes);
    }
    if choice & 2 == 2 {
        let with = |key| ConcurrentBloom::from_bytes_with(&bytes, SipHash13::with_key([key; 16]));
        assert!(with(0).is_err() || with(1).is_err());
        return;
    }

    growing(&bytes);
    forgetting(&bytes);

    let by_slice = ConcurrentBloom::from_bytes(&bytes);
    let by_reader = ConcurrentBloom::read_from(&bytes[..], LIMIT);
    let by_view = BloomView::from_bytes(&bytes).map(|(view, _)| view);
    match (by_slice, by_reader) {
        (Ok((filter, rest)), Ok(same)) => {
            assert!(filter == same);
            let view = by_view.unwrap();
            view.verify().unwrap();
            assert!(view.to_filter().unwrap() == filter);
            for hash in 0..200u64 {
                let hash = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                assert_eq!(view.contains_hash(hash), filter.contains_hash(hash));
            }
            let read = &bytes[..bytes.len() - rest.len()];
            let written = filter.to_bytes();
            assert_eq!(written.len(), read.len());
            // The rate is what the writer said, and its sum: all else is as it was.
            let without_rate = |bytes: &[u8]| [&bytes[..56], &bytes[64..120], &bytes[128..read.len() - 64]].concat();
            assert!(without_rate(&written) == without_rate(read));
        }
        (Err(one), Err(other)) => {
            let (one, other) = (one.to_string(), other.to_string());
            // Only the reader has a limit, and looks at it before the bytes are there.
            assert!(
                one == other || other.contains("more than the limit of"),
                "{one}\n{other}"
            );
            if let Ok(view) = by_view {
                assert!(view.verify().is_err());
                let _ = view.contains_hash(choice.into());
            }
        }
        (Ok(_), Err(error)) => assert!(error.to_string().contains("more than the limit of"), "{error}"),
        (Err(error), Ok(_)) => panic!("{error}"),
    }
});

/// What is read is written again, grows on, and is the same by a reader.
fn growing(bytes: &[u8]) {
    let Ok((filter, rest)) = ScalableBloom::from_bytes(bytes) else {
        return;
    };
    let read = &bytes[..bytes.len() - rest.len()];
    let written = filter.to_bytes();
    assert_eq!(written.len(), read.len());
    assert!(ScalableBloom::from_bytes(&written).unwrap().0 == filter);
    if let Ok(same) = ScalableBloom::read_from(bytes, LIMIT) {
        assert!(same == filter);
    }
    for key in 0..50u64 {
        let before = filter.contains(&key);
        match filter.insert(&key) {
            Ok(new) => assert!(new != before && filter.contains(&key)),
            Err(_) => assert!(!before),
        }
    }
}

/// As [`growing`], at some time.
fn forgetting(bytes: &[u8]) {
    let clock = || Duration::from_secs(1 << 20);
    let read = || WindowedBloom::from_bytes_with_clock(bytes, Murmur3::default(), clock);
    let Ok((filter, rest)) = read() else {
        return;
    };
    assert_eq!(filter.to_bytes().len(), bytes.len() - rest.len());
    let monotonic = WindowedBloom::from_bytes(bytes).unwrap().0;
    for filter in [filter, monotonic] {
        for key in 0..20u64 {
            filter.insert(&key);
        }
        filter.rotate();
        // Where it rotates only when it is told to.
        assert!(bytes[32] != 0 || filter.contains(&19u64));
        let bytes = filter.to_bytes();
        assert!(WindowedBloom::from_bytes(&bytes).is_ok());
    }
}

/// Puts the checksums where they belong, if there is room.
fn sum(bytes: &mut [u8]) {
    if bytes.len() < 128 {
        return;
    }
    // Those of the parts, if there are some.
    if bytes[10] > 1 {
        let mut at = 128;
        while let Some(part) = bytes.get(at..).filter(|part| part.len() >= 256) {
            let len = u64::from_le_bytes(part[24..32].try_into().unwrap());
            let Some(part) = usize::try_from(len)
                .ok()
                .and_then(|len| bytes.get_mut(at..at.checked_add(len)?))
            else {
                break;
            };
            if part.len() < 256 || part[10] != 1 {
                break;
            }
            sum(part);
            at += part.len();
        }
        let header = XxHash3_64::oneshot(&bytes[..120]);
        bytes[120..128].copy_from_slice(&header.to_le_bytes());
        return;
    }
    let header = XxHash3_64::oneshot(&bytes[..120]);
    bytes[120..128].copy_from_slice(&header.to_le_bytes());
    let declared = u64::from_le_bytes(bytes[24..32].try_into().unwrap());
    let end = usize::try_from(declared).ok().and_then(|len| len.checked_sub(64));
    if let Some(end) = end
        && end >= 128
        && end + 8 <= bytes.len()
    {
        let body = XxHash3_64::oneshot(&bytes[..end]);
        bytes[end..end + 8].copy_from_slice(&body.to_le_bytes());
    }
}
