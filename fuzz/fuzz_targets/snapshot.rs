//! Snapshots of any bytes: every way to read them gives the same filter, which is written as it was, or the same error.
//!
//! Half of the inputs get the checksums that they should have, without which hardly any would get beyond them.

#![no_main]

use lanebloom::{
    BloomView, CompactCuckoo, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Murmur3, ScalableBloom,
    SipHash13, SnapshotError, TombstoneBloom, WindowedBloom,
};
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
    counting(&bytes);
    pair(&bytes);
    cuckoo(&bytes);
    compact(&bytes);
    d_left(&bytes);

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

/// As [`growing`], at some time: every method afterwards.
fn forgetting(bytes: &[u8]) {
    let clock = || Duration::from_secs(1 << 20);
    let read = || WindowedBloom::from_bytes_with_clock(bytes, Murmur3::default(), clock);
    let Ok((filter, rest)) = read() else {
        return;
    };
    assert!(filter.to_bytes().len() <= bytes.len() - rest.len());
    // By the clock that it names, if that can be had.
    let other = WindowedBloom::from_bytes(bytes);
    assert_eq!(other.is_err(), bytes[35] == 3);
    for filter in [Some(filter), other.ok().map(|(filter, _)| filter)]
        .into_iter()
        .flatten()
    {
        for key in 0..20u64 {
            filter.insert(&key);
        }
        assert!(bytes[32] == 2 || filter.contains(&19u64));
        let copy = filter.clone();
        let _ = copy == filter;
        filter.rotate_if_due();
        filter.rotate();
        // Where it rotates only when it is told to.
        assert!(bytes[32] != 0 || filter.contains(&19u64));
        let _ = filter.union_from(&copy);
        let _ = (
            filter.window(),
            filter.memory_bytes(),
            filter.fill_ratio(),
            filter.estimated_len(),
        );
        let _ = (filter.false_positive_rate(), filter.current_false_positive_rate());
        let bytes = filter.to_bytes();
        assert!(WindowedBloom::from_bytes_with_clock(&bytes, Murmur3::default(), clock).is_ok());
    }
}

/// Hashes of everywhere.
fn hashes() -> impl Iterator<Item = u64> + Clone {
    (0..100u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The filter, if both ways to read it give one, and the bytes that it was; they say the same if not.
fn read<'a, T>(
    bytes: &'a [u8],
    from_bytes: impl FnOnce(&'a [u8]) -> Result<(T, &'a [u8]), SnapshotError>,
    read_from: impl FnOnce(&'a [u8], usize) -> Result<T, SnapshotError>,
    to_bytes: impl Fn(&T) -> Vec<u8>,
) -> Option<(T, &'a [u8])> {
    match (from_bytes(bytes), read_from(bytes, LIMIT)) {
        (Ok((filter, rest)), other) => {
            match other {
                Ok(same) => assert!(to_bytes(&same) == to_bytes(&filter)),
                Err(error) => assert!(error.to_string().contains("more than the limit of"), "{error}"),
            }
            Some((filter, &bytes[..bytes.len() - rest.len()]))
        }
        (Err(one), Err(other)) => {
            let (one, other) = (one.to_string(), other.to_string());
            // Of a pair the slice is known to be too short before its parts are looked at.
            assert!(
                one == other || other.contains("more than the limit of") || one.starts_with("the bytes end after"),
                "{one}\n{other}"
            );
            None
        }
        (Err(error), Ok(_)) => panic!("{error}"),
    }
}

fn counting(bytes: &[u8]) {
    let to_bytes = CountingBloom::to_bytes;
    let Some((mut filter, read)) = read(bytes, CountingBloom::from_bytes, CountingBloom::read_from, to_bytes) else {
        return;
    };
    // But for the rate, as above, it is written as it was.
    let written = filter.to_bytes();
    let without_rate = |bytes: &[u8]| [&bytes[..56], &bytes[64..120], &bytes[128..read.len() - 64]].concat();
    assert!(without_rate(&written) == without_rate(read));
    for hash in hashes() {
        let before = filter.contains_hash(hash);
        assert_eq!(filter.insert_hash(hash), !before);
        assert!(filter.contains_hash(hash) && filter.remove_hash(hash));
        assert!(filter.contains_hash(hash) || !before);
    }
    assert!((0.0..=1.0).contains(&filter.fill_ratio()) && (0.0..=1.0).contains(&filter.current_false_positive_rate()));
    let _ = (filter.estimated_len(), filter.stuck_counters(), filter.bits_per_key());
    let copy = filter.clone();
    let changed = copy.union_from(&filter).unwrap();
    assert_eq!(changed, copy != filter);
    filter.clear();
    assert!(filter.fill_ratio() == 0.0 && !filter.remove_hash(1));
}

fn pair(bytes: &[u8]) {
    let to_bytes = TombstoneBloom::to_bytes;
    let Some((mut filter, read)) = read(bytes, TombstoneBloom::from_bytes, TombstoneBloom::read_from, to_bytes) else {
        return;
    };
    let written = filter.to_bytes();
    assert_eq!(written.len(), read.len());
    assert!(TombstoneBloom::from_bytes(&written).unwrap().0 == filter);
    for hash in hashes() {
        filter.insert_hash(hash);
        assert_eq!(filter.contains_hash(hash), filter.remove_hash(hash));
        assert!(!filter.contains_hash(hash));
    }
    let _ = (
        filter.estimated_len(),
        filter.estimated_removals(),
        filter.current_false_positive_rate(),
    );
    filter.clear();
    assert!(filter.insert_hash(1) && filter.contains_hash(1));
}

fn cuckoo(bytes: &[u8]) {
    let to_bytes = CuckooFilter::to_bytes;
    let Some((mut filter, read)) = read(bytes, CuckooFilter::from_bytes, CuckooFilter::read_from, to_bytes) else {
        return;
    };
    assert!(filter.to_bytes() == read);
    let compact = filter.to_compact().unwrap();
    assert_eq!(compact.len(), filter.len());
    for hash in hashes() {
        let (count, len) = (filter.count_hash(hash), filter.len());
        assert_eq!(
            (filter.contains_hash(hash), compact.contains_hash(hash)),
            (count > 0, count > 0)
        );
        let added = usize::from(filter.insert_hash(hash).is_ok());
        // Tags that others moved on may be the key's own.
        assert!(filter.count_hash(hash) >= count + added || added == 0);
        assert_eq!(filter.len(), len + added);
        assert!(added == 0 || filter.remove_hash(hash));
        assert_eq!(filter.len(), len);
    }
    assert!((0.0..=1.0).contains(&filter.load()) && (0.0..=1.0).contains(&filter.current_false_positive_rate()));
    assert!(CuckooFilter::from_bytes(&filter.to_bytes()).is_ok());
    assert!(CompactCuckoo::from_bytes(&filter.to_compact().unwrap().to_bytes()).is_ok());
    filter.clear();
    assert!(filter.is_empty() && filter.insert_hash(1).is_ok());
}

fn compact(bytes: &[u8]) {
    let to_bytes = CompactCuckoo::to_bytes;
    let Some((filter, read)) = read(bytes, CompactCuckoo::from_bytes, CompactCuckoo::read_from, to_bytes) else {
        return;
    };
    assert!(filter.to_bytes() == read);
    let back = filter.to_filter().unwrap();
    assert_eq!((back.len(), back.is_empty()), (filter.len(), filter.is_empty()));
    for hash in hashes() {
        assert_eq!(back.contains_hash(hash), filter.contains_hash(hash));
    }
    cuckoo(&back.to_bytes());
}

fn d_left(bytes: &[u8]) {
    let to_bytes = DLeftFilter::to_bytes;
    let Some((mut filter, read)) = read(bytes, DLeftFilter::from_bytes, DLeftFilter::read_from, to_bytes) else {
        return;
    };
    assert!(filter.to_bytes() == read);
    for hash in hashes() {
        let (count, len) = (filter.count_hash(hash), filter.len());
        assert_eq!(filter.contains_hash(hash), count > 0);
        let added = usize::from(filter.insert_hash(hash).is_ok());
        assert!(added == 1 || count == 3 || (count == 0 && len >= 32));
        assert_eq!((filter.count_hash(hash), filter.len()), (count + added, len + added));
        // Down to none, and nothing is left of it.
        for left in (0..count + added).rev() {
            assert!(filter.remove_hash(hash));
            assert_eq!(filter.count_hash(hash), left);
        }
        assert!(!filter.remove_hash(hash) && filter.len() == len - count);
    }
    assert!((0.0..=1.0).contains(&filter.load()) && (0.0..=1.0).contains(&filter.current_false_positive_rate()));
    assert!(DLeftFilter::from_bytes(&filter.to_bytes()).is_ok());
    filter.clear();
    assert!(filter.is_empty() && filter.insert_hash(1).is_ok());
}

/// Puts the checksums where they belong, if there is room.
fn sum(bytes: &mut [u8]) {
    if bytes.len() < 128 {
        return;
    }
    // Those of the parts, if there are some.
    if matches!(bytes[10], 2 | 3 | 5) {
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
