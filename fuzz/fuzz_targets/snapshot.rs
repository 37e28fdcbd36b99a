//! Snapshots of any bytes: every way to read them gives the same error, or the same filter, which
//! writes the same bytes again.
//!
//! Half of the inputs get correct checksums. Hardly any input would pass the checksum check without
//! that.

#![no_main]

use lanebloom::codec::{self, Kind, SnapshotHeader};
use lanebloom::internal::traits::{Engine, Insert, Remove};
use lanebloom::{
    Absent, AnyFilter, Bitmap, BloomView, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Filter, Hashed,
    KeyHasher, Membership, Murmur3, ScalableBloom, SipHash13, SnapshotError, StaticFilter, StaticView, TombstoneBloom,
    WindowedBloom, bloom, windowed,
};
use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use twox_hash::XxHash3_64;

const LIMIT: usize = 1 << 20;

/// Every lookup of a filter: all of them say the same.
macro_rules! lookups {
    ($filter:expr) => {{
        let filter = $filter;
        let hashes: Vec<u64> = hashes().collect();
        let (mut found, mut bitmap) = ([false; 100], [0; 2]);
        filter.contains_batch(Hashed::slice(&hashes), &mut found);
        filter.contains_batch(Hashed::slice(&hashes), Bitmap(&mut bitmap));
        for (i, hash) in hashes.iter().enumerate() {
            let single = filter.contains(&Hashed(*hash));
            assert_eq!((found[i], bitmap[i / 64] >> (i % 64) & 1 == 1), (single, single));
        }
        let keys: [u64; 100] = std::array::from_fn(|i| i as u64);
        filter.contains_batch(&keys, &mut found);
        assert!(keys.iter().zip(found).all(|(key, found)| filter.contains(key) == found));
        let _ = (format!("{filter:?}"), filter.hasher());
    }};
}

/// Operations that not all filters have.
macro_rules! more_lookups {
    ($filter:expr) => {{
        let filter = $filter;
        lookups!(filter);
        let hashes: Vec<u64> = hashes().collect();
        let keys: [u64; 100] = std::array::from_fn(|i| i as u64);
        let (mut hashed, mut bitmap) = ([0; 100], [0; 2]);
        filter.hasher().hash_batch(&keys, &mut hashed);
        filter.contains_batch(&keys, Bitmap(&mut bitmap));
        let mut absent = Vec::new();
        filter.contains_batch(&keys, Absent(|i| absent.push(i)));
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(hashed[i], filter.hash(key));
            assert_eq!(bitmap[i / 64] >> (i % 64) & 1 == 0, absent.contains(&i));
        }
        absent.clear();
        filter.contains_batch(Hashed::slice(&hashes), Absent(|i| absent.push(i)));
        assert!(absent.iter().all(|i| !filter.contains(&Hashed(hashes[*i]))));
    }};
}

/// Statistics that are in 0 to 1.
fn fractions<const N: usize>(figures: [f64; N]) {
    assert!(figures.iter().all(|figure| (0.0..=1.0).contains(figure)), "{figures:?}");
}

/// Numbers of keys to ask a filter about.
const KEYS: [usize; 4] = [0, 1, 1000, usize::MAX];

fuzz_target!(|input: &[u8]| {
    let Some((&choice, rest)) = input.split_first() else {
        return;
    };
    let mut bytes = rest.to_vec();
    if choice & 1 == 1 {
        sum(&mut bytes);
    }
    if choice & 2 == 2 {
        let with = |key| codec::from_bytes::<ConcurrentBloom<_>>(&bytes, SipHash13::with_key([key; 16]));
        assert!(with(0).is_err() || with(1).is_err());
        return;
    }

    described(&bytes);
    any(&bytes);
    growing(&bytes);
    forgetting(&bytes);
    counting(&bytes);
    pair(&bytes);
    cuckoo(&bytes);
    d_left(&bytes);
    fixed(&bytes);

    let by_slice = ConcurrentBloom::from_bytes(&bytes);
    let by_reader = ConcurrentBloom::read_from(&bytes[..], LIMIT);
    let by_view = BloomView::from_bytes(&bytes).map(|(view, _)| view);
    match (by_slice, by_reader) {
        (Ok((filter, rest)), Ok(same)) => {
            assert!(filter == same);
            verified(&bytes, rest);
            let view = by_view.unwrap();
            codec::verify(view.bytes()).unwrap();
            assert!(view.to_filter().unwrap() == filter);
            for hash in hashes() {
                assert_eq!(view.contains(&Hashed(hash)), filter.contains(&Hashed(hash)));
            }
            more_lookups!(&view);
            fractions([view.statistics().fill_ratio, view.statistics().false_positive_rate]);
            assert!(view.statistics().bits_per_key.is_finite() && filter.statistics().bits_per_key.is_finite());
            assert_eq!(view.statistics().len, filter.statistics().len);
            fractions(KEYS.map(|keys| view.engine().false_positive_rate_at(keys)));
            let _ = (
                view.is_aligned(),
                view.bytes(),
                view.layout().words_per_key,
                view.layout().bits_per_line,
                view.layout().blocks,
            );
            bloom(filter.clone());
            let read = &bytes[..bytes.len() - rest.len()];
            let written = filter.snapshot().to_vec();
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
                assert!(codec::verify(view.bytes()).is_err());
                let _ = view.contains(&Hashed(choice.into()));
            }
        }
        (Ok(_), Err(error)) => assert!(error.to_string().contains("more than the limit of"), "{error}"),
        (Err(error), Ok(_)) => panic!("{error}"),
    }
});

/// A filter of any type: both ways to read it give one that says the same, takes keys, and writes
/// what is read again.
fn any(bytes: &[u8]) {
    let (filter, rest) = match (AnyFilter::from_bytes(bytes), AnyFilter::read_from(bytes, LIMIT)) {
        (Ok((filter, rest)), other) => {
            match other {
                Ok(same) => assert!(same.kind() == filter.kind() && same.hasher() == filter.hasher()),
                Err(error) => assert!(error.to_string().contains("more than the limit of"), "{error}"),
            }
            (filter, rest)
        }
        (Err(_), other) => return assert!(other.is_err()),
    };
    verified(bytes, rest);
    let header = SnapshotHeader::peek(bytes).unwrap();
    assert!(filter.kind() == header.kind && header.hasher.is_some());
    let mut found = [false; 100];
    let keys: [u64; 100] = std::array::from_fn(|i| i as u64);
    let check = |filter: &AnyFilter, found: &mut [bool; 100]| {
        let hashes: Vec<u64> = hashes().collect();
        filter.contains_batch(Hashed::slice(&hashes), &mut *found).unwrap();
        for (hash, found) in hashes.iter().zip(&*found) {
            assert_eq!(filter.contains(&Hashed(*hash)), Ok(*found));
        }
        if filter.contains_batch(&keys, &mut *found).is_ok() {
            assert!(
                keys.iter()
                    .zip(&*found)
                    .all(|(key, found)| filter.contains(key) == Ok(*found))
            );
        }
        let now = filter.statistics();
        fractions([now.fill_ratio, now.false_positive_rate, filter.false_positive_rate()]);
        fractions(KEYS.map(|keys| filter.false_positive_rate_at(keys)));
        let _ = (
            format!("{filter:?}"),
            filter.memory_bytes(),
            filter.expected_keys(),
            now.is_overfull,
        );
    };
    // Generations of a window go as time passes.
    if filter.kind() != Kind::Windowed {
        check(&filter, &mut found);
    }
    let Ok(filter) = AnyFilter::read_from(bytes, LIMIT) else {
        return;
    };
    let copy = filter.try_clone().unwrap();
    let _ = (
        filter.insert_batch(Hashed::slice(&keys)),
        filter.insert_batch(&keys[..20]),
        filter.insert(&Hashed(7)),
    );
    if filter.kind() != Kind::Windowed {
        check(&filter, &mut found);
    }
    let _ = (copy.union_from(&filter), filter.union_from(&copy));
    let written = filter.snapshot().to_vec();
    let (again, _) = AnyFilter::from_bytes(&written).unwrap();
    assert_eq!((again.kind(), again.hasher()), (filter.kind(), filter.hasher()));
    if filter.kind() != Kind::Windowed {
        assert!(again.snapshot().to_vec() == written);
    }
}

/// A filter that does not change: the same as a view of its bytes.
fn fixed(bytes: &[u8]) {
    let by_view = StaticView::from_bytes(bytes).map(|(view, _)| view);
    match (StaticFilter::from_bytes(bytes), StaticFilter::read_from(bytes, LIMIT)) {
        (Ok((filter, rest)), other) => {
            let read = &bytes[..bytes.len() - rest.len()];
            match other {
                Ok(same) => assert!(same.snapshot().to_vec() == read),
                Err(error) => assert!(error.to_string().contains("more than the limit of"), "{error}"),
            }
            let view = by_view.unwrap();
            codec::verify(view.bytes()).unwrap();
            assert!(view.bytes() == read);
            more_lookups!(&filter);
            more_lookups!(&view);
            for hash in hashes() {
                assert_eq!(view.contains(&Hashed(hash)), filter.contains(&Hashed(hash)));
            }
            fractions([filter.statistics().fill_ratio, filter.statistics().false_positive_rate]);
            let _ = (filter.retries(), filter.cells_per_key(), filter.fingerprint_bits());
        }
        (Err(_), other) => {
            assert!(other.is_err());
            if let Ok(view) = by_view {
                assert!(codec::verify(view.bytes()).is_err());
                more_lookups!(&view);
            }
        }
    }
}

/// Describes bytes without a filter: whole, by their first bytes, and part by part.
fn described(bytes: &[u8]) {
    let header = SnapshotHeader::peek(bytes);
    let first = SnapshotHeader::peek(&bytes[..bytes.len().min(SnapshotHeader::LEN)]);
    assert_eq!(format!("{header:?}"), format!("{first:?}"));
    let Ok((parts, rest)) = codec::verify(bytes) else {
        return;
    };
    let record = &bytes[..bytes.len() - rest.len()];
    assert_eq!(header.unwrap().bytes, record.len() as u64);
    assert!(parts.concat().len() <= record.len());
    for part in parts {
        let (same, rest) = codec::verify(part).unwrap();
        assert!(same == [part] && rest.is_empty());
    }
}

/// Bytes from which a filter was read pass `verify`, which ends at the same place.
fn verified(bytes: &[u8], rest: &[u8]) {
    assert_eq!(codec::verify(bytes).unwrap().1.len(), rest.len());
}

/// Every method of a filter.
fn bloom(mut filter: ConcurrentBloom) {
    more_lookups!(&filter);
    fractions([filter.statistics().fill_ratio, filter.statistics().false_positive_rate]);
    fractions(KEYS.map(|keys| filter.false_positive_rate_at(keys)));
    let before = filter.clone();
    let hashes: Vec<u64> = hashes().collect();
    let keys: Vec<u64> = (0..100).collect();
    let (mut one, mut other) = ([false; 100], [false; 100]);
    assert_eq!(
        filter.insert_batch(Hashed::slice(&hashes)),
        before.clone().insert_batch_into(Hashed::slice(&hashes), &mut one)
    );
    let fresh = before.clone();
    fresh.insert_batch(Hashed::slice(&hashes));
    assert_eq!(filter.insert_batch(&keys), fresh.insert_batch_into(&keys, &mut other));
    assert!(fresh == filter);
    let mut exclusive = before.clone();
    exclusive.exclusive().insert_batch(Hashed::slice(&hashes));
    exclusive.exclusive().insert_batch(&keys);
    assert!(exclusive == filter);
    let replica = before.clone();
    let delta = filter.with(&before).unwrap().delta();
    assert_eq!(bloom::apply_deltas(&replica, &delta).unwrap(), before != filter);
    assert!(replica == filter && !replica.union_from(&before).unwrap());
    let mut slice = vec![0; filter.snapshot().len()];
    filter.snapshot().write_to_slice(&mut slice);
    assert!(slice == filter.snapshot().to_vec());
    filter.clear();
    assert!(filter.insert(&1u8) && filter.statistics().len == 1);
}

/// A filter that was read is written again, grows on, and is the same by a reader, within the
/// limit.
fn growing(bytes: &[u8]) {
    let Ok((filter, rest)) = ScalableBloom::from_bytes(bytes) else {
        return;
    };
    verified(bytes, rest);
    let read = &bytes[..bytes.len() - rest.len()];
    let written = filter.snapshot().to_vec();
    assert_eq!(written.len(), read.len());
    assert!(ScalableBloom::from_bytes(&written).unwrap().0 == filter);
    more_lookups!(&filter);
    fractions([
        filter.statistics().fill_ratio,
        filter.false_positive_rate(),
        filter.statistics().false_positive_rate,
    ]);
    assert!(filter.layers().len() <= filter.max_layers() && filter.expected_keys() > 0);
    let _ = filter.statistics().len;
    // Growth takes what the header says, up to the reader's limit.
    let Ok(mut same) = ScalableBloom::read_from(bytes, LIMIT) else {
        return;
    };
    assert!(same == filter && same.max_bytes() <= LIMIT);
    let keys: Vec<u64> = (0..2000).collect();
    for key in &keys[..50] {
        let before = same.contains(key);
        match same.insert(key) {
            Ok(new) => assert!(new != before && same.contains(key)),
            Err(_) => assert!(!before),
        }
    }
    let copy = same.try_clone().unwrap();
    let mut flags = vec![false; keys.len()];
    assert_eq!(same.insert_batch_into(&keys, &mut flags), copy.insert_batch(&keys));
    assert!(same == copy && same.memory_bytes() <= LIMIT && copy.memory_bytes() <= LIMIT);
    assert_eq!(copy.union_from(&same), Ok(false));
    let again = ScalableBloom::read_from(&copy.snapshot().to_vec()[..], LIMIT).unwrap();
    assert!(again == copy && again.max_layers() == copy.max_layers());
    let hashes: Vec<u64> = hashes().collect();
    let _ = (
        again.insert_batch(Hashed::slice(&hashes)),
        again.insert_batch_into(Hashed::slice(&hashes), &mut flags[..100]),
    );
    assert!(again.memory_bytes() <= LIMIT);
    let _ = (same.is_full(), same.statistics().len);
    same.clear();
    assert!(same.layers().len() == 1 && same.insert(&1u8) == Ok(true));
}

/// [`growing`] at some time: every method afterwards.
fn forgetting(bytes: &[u8]) {
    let clock = || Duration::from_secs(1 << 20);
    let read = || windowed::from_bytes(bytes, Murmur3::default(), clock);
    let Ok((filter, rest)) = read() else {
        return;
    };
    verified(bytes, rest);
    assert!(filter.snapshot().to_vec().len() <= bytes.len() - rest.len());
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
        more_lookups!(&filter);
        fractions([filter.statistics().false_positive_rate, filter.false_positive_rate()]);
        let _ = filter.union_from(&copy);
        let _ = (
            filter.window(),
            filter.generations(),
            filter.expected_keys(),
            filter.memory_bytes(),
            filter.statistics().fill_ratio,
        );
        let _ = (
            filter.live_generations().len(),
            filter.statistics().len,
            filter.rotate_if_due(),
        );
        let (keys, mut flags) = (Vec::from_iter(0..500u64), vec![false; 500]);
        filter.insert_batch_into(&keys, &mut flags);
        filter.insert_batch(&keys);
        filter.insert_batch_into(Hashed::slice(&keys), &mut flags);
        filter.insert_batch(Hashed::slice(&keys));
        let mut copy = filter.try_clone().unwrap();
        assert!(copy.union_from(&filter).is_ok());
        copy.clear();
        copy.insert(&1u8);
        assert!(copy.contains(&1u8));
        let bytes = filter.snapshot().to_vec();
        assert!(windowed::from_bytes(&bytes, Murmur3::default(), clock).is_ok());
    }
}

/// Hashes of everywhere.
fn hashes() -> impl Iterator<Item = u64> + Clone {
    (0..100u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// The filter, if both ways to read it give one, and the bytes that it was; they say the same if
/// not.
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
            verified(bytes, rest);
            Some((filter, &bytes[..bytes.len() - rest.len()]))
        }
        (Err(one), Err(other)) => {
            let (one, other) = (one.to_string(), other.to_string());
            // For a pair, the length of the slice is checked before its parts are read.
            assert!(
                one == other || other.contains("more than the limit of") || one.starts_with("the bytes end after"),
                "{one}\n{other}"
            );
            None
        }
        (Err(error), Ok(_)) => panic!("{error}"),
    }
}

/// The statistics of a filter, and its batches of inserts and removes on a copy, which it returns.
fn deletable<E: Engine + Insert + Remove>(filter: &Filter<E>) -> Filter<E> {
    fractions([filter.statistics().fill_ratio, filter.statistics().false_positive_rate]);
    fractions(KEYS.map(|keys| filter.false_positive_rate_at(keys)));
    let _ = filter.statistics().len;
    let (keys, mut flags) = (Vec::from_iter(0..100u64), [false; 100]);
    let batches = filter.try_clone().unwrap();
    let _ = batches.try_insert_batch_into(&keys, &mut flags);
    let _ = batches.try_insert_batch_into(Hashed::slice(&keys), &mut flags);
    let removed = batches.take_batch_into(&keys, &mut flags);
    assert_eq!(removed, flags.iter().filter(|flag| **flag).count());
    let removed = batches.take_batch_into(Hashed::slice(&keys), &mut flags);
    assert_eq!(removed, flags.iter().filter(|flag| **flag).count());
    let _ = (
        batches.try_insert_batch(Hashed::slice(&keys)),
        batches.take_batch_into(Hashed::slice(&keys), ()),
    );
    let _ = (batches.try_insert_batch(&keys), batches.take_batch_into(&keys, ()));
    let _ = batches.try_insert_all(&keys);
    batches
}

fn counting(bytes: &[u8]) {
    let to_bytes = |filter: &CountingBloom| filter.snapshot().to_vec();
    let Some((mut filter, read)) = read(bytes, CountingBloom::from_bytes, CountingBloom::read_from, to_bytes) else {
        return;
    };
    // But for the rate, as above, it is written as it was.
    let written = filter.snapshot().to_vec();
    let without_rate = |bytes: &[u8]| [&bytes[..56], &bytes[64..120], &bytes[128..read.len() - 64]].concat();
    assert!(without_rate(&written) == without_rate(read));
    for hash in hashes() {
        let before = filter.contains(&Hashed(hash));
        assert_eq!(filter.insert(&Hashed(hash)), !before);
        assert!(filter.contains(&Hashed(hash)) && filter.remove(&Hashed(hash)));
        assert!(filter.contains(&Hashed(hash)) || !before);
    }
    more_lookups!(&filter);
    let _ = (filter.stuck_counters(), filter.layout().bits_per_line);
    assert!(filter.statistics().bits_per_key.is_finite());
    deletable(&filter);
    let (keys, mut flags) = (Vec::from_iter(0..100u64), [false; 100]);
    let batches = filter.try_clone().unwrap();
    batches.insert_batch(&keys);
    assert_eq!(batches.remove_batch_into(&keys, &mut flags), 100);
    batches.insert_batch(Hashed::slice(&keys));
    assert_eq!(batches.remove_batch_into(Hashed::slice(&keys), &mut flags), 100);
    let copy = filter.clone();
    let changed = copy.union_from(&filter).unwrap();
    assert_eq!(changed, copy != filter);
    filter.clear();
    assert!(filter.statistics().fill_ratio == 0.0 && !filter.remove(&Hashed(1)));
}

fn pair(bytes: &[u8]) {
    let to_bytes = |filter: &TombstoneBloom| filter.snapshot().to_vec();
    let Some((mut filter, read)) = read(bytes, TombstoneBloom::from_bytes, TombstoneBloom::read_from, to_bytes) else {
        return;
    };
    let written = filter.snapshot().to_vec();
    assert_eq!(written.len(), read.len());
    assert!(TombstoneBloom::from_bytes(&written).unwrap().0 == filter);
    for hash in hashes() {
        filter.insert(&Hashed(hash));
        assert_eq!(filter.contains(&Hashed(hash)), filter.remove(&Hashed(hash)));
        assert!(!filter.contains(&Hashed(hash)));
    }
    more_lookups!(&filter);
    fractions([filter.removals().false_positive_rate, filter.false_negative_rate()]);
    let _ = filter.expected_removals();
    assert!(filter.statistics().bits_per_key.is_finite());
    assert!(filter.union_from(&deletable(&filter)).is_ok());
    filter.clear();
    assert!(filter.insert(&Hashed(1)) && filter.contains(&Hashed(1)));
}

fn cuckoo(bytes: &[u8]) {
    let to_bytes = |filter: &CuckooFilter| filter.snapshot().to_vec();
    let Some((mut filter, read)) = read(bytes, CuckooFilter::from_bytes, CuckooFilter::read_from, to_bytes) else {
        return;
    };
    assert!(filter.snapshot().to_vec() == read);
    for hash in hashes() {
        let (count, len) = (filter.count(&Hashed(hash)), filter.len());
        assert_eq!(filter.contains(&Hashed(hash)), count > 0);
        let added = usize::from(filter.insert(&Hashed(hash)).is_ok());
        // Fingerprints that others moved on may be the key's own.
        assert!(filter.count(&Hashed(hash)) >= count + added || added == 0);
        assert_eq!(filter.len(), len + added);
        assert!(added == 0 || filter.remove(&Hashed(hash)));
        assert_eq!(filter.len(), len);
    }
    more_lookups!(&filter);
    assert!(filter.statistics().bits_per_key.is_finite() && filter.len() <= filter.slots());
    let batches = deletable(&filter);
    assert!(batches.count(&1u64) <= batches.slots() && batches.max_copies() > 0);
    assert!(CuckooFilter::from_bytes(&filter.snapshot().to_vec()).is_ok());
    filter.clear();
    assert!(filter.is_empty() && filter.insert(&Hashed(1)).is_ok());
}

fn d_left(bytes: &[u8]) {
    let to_bytes = |filter: &DLeftFilter| filter.snapshot().to_vec();
    let Some((mut filter, read)) = read(bytes, DLeftFilter::from_bytes, DLeftFilter::read_from, to_bytes) else {
        return;
    };
    assert!(filter.snapshot().to_vec() == read);
    for hash in hashes() {
        let (count, len) = (filter.count(&Hashed(hash)), filter.len());
        assert_eq!(filter.contains(&Hashed(hash)), count > 0);
        let added = usize::from(filter.insert(&Hashed(hash)).is_ok());
        assert!(added == 1 || count == 3 || (count == 0 && len >= 32));
        assert_eq!(
            (filter.count(&Hashed(hash)), filter.len()),
            (count + added, len + added)
        );
        // Down to none, and nothing is left of it.
        for left in (0..count + added).rev() {
            assert!(filter.remove(&Hashed(hash)));
            assert_eq!(filter.count(&Hashed(hash)), left);
        }
        assert!(!filter.remove(&Hashed(hash)) && filter.len() == len - count);
    }
    more_lookups!(&filter);
    assert!(filter.statistics().bits_per_key.is_finite() && filter.len() <= filter.slots() * filter.max_copies());
    deletable(&filter);
    assert!(DLeftFilter::from_bytes(&filter.snapshot().to_vec()).is_ok());
    filter.clear();
    assert!(filter.is_empty() && filter.insert(&Hashed(1)).is_ok());
}

/// Puts the checksums where they belong, if there is room.
fn sum(bytes: &mut [u8]) {
    if bytes.len() < 128 {
        return;
    }
    // The checksums of the parts, if there are some.
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
