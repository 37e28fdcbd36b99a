//! `AnyFilter` reads every kind of snapshot with every hasher, and says and writes what the type's
//! own filter does.

use lanebloom::bank::FilterBank;
use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom::codec::{Identity, Kind, SnapshotHeader};
use lanebloom::hash::{AnyHasher, FilterHasher};
use lanebloom::{
    AnyFilter, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, FastHash, Hashed, KeyHasher, Membership,
    Murmur3, Prehashed, ScalableBloom, SipHash13, TombstoneBloom, WindowedBloom, windowed,
};
use lanebloom_tests::{answers_agree, with_field};
use std::fs;
use std::hash::RandomState;
use std::time::Duration;

const SECRET: SipHash13 = SipHash13::with_key([7; 16]);

/// Hashes of everywhere.
fn hashes(count: u64) -> Vec<u64> {
    (1..=count).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

fn any(bytes: &[u8]) -> AnyFilter {
    let (filter, rest) = AnyFilter::from_bytes(bytes).unwrap();
    assert!(rest.is_empty());
    filter
}

/// The filter, with a hasher that its snapshot may not hold.
fn any_with(bytes: &[u8], hasher: impl Into<AnyHasher>) -> AnyFilter {
    AnyFilter::from_bytes_with(bytes, hasher).unwrap().0
}

/// Calls `$check` with a snapshot, and with what its own type says: the answer for a hash, the
/// expected keys, the rate, the statistics and the bytes of memory.
macro_rules! for_each_kind {
    ($hasher:expr, $check:expr) => {{
        macro_rules! one {
            ($type:ident, $kind:ident) => {{
                let builder = $type::builder().expected_keys(1000).hasher($hasher);
                let filter = builder.build().unwrap();
                let _ = filter.insert_batch(Hashed::slice(&hashes(500)));
                let said = Said {
                    contains: &|hash| filter.contains(&Hashed(hash)),
                    expected_keys: filter.expected_keys(),
                    rate: filter.false_positive_rate(),
                    rate_at: filter.false_positive_rate_at(5000),
                    statistics: filter.statistics(),
                    memory_bytes: filter.memory_bytes(),
                };
                $check(Kind::$kind, filter.snapshot().to_vec(), said);
            }};
        }
        one!(ConcurrentBloom, Bloom);
        one!(ScalableBloom, Scalable);
        one!(WindowedBloom, Windowed);
        one!(CountingBloom, Counting);
        one!(TombstoneBloom, Tombstone);
        one!(CuckooFilter, Cuckoo);
        one!(DLeftFilter, DLeft);
    }};
}

struct Said<'a> {
    contains: &'a dyn Fn(u64) -> bool,
    expected_keys: usize,
    rate: f64,
    rate_at: f64,
    statistics: lanebloom::Statistics,
    memory_bytes: usize,
}

fn says_the_same(kind: Kind, bytes: &[u8], said: &Said<'_>, filter: &AnyFilter) {
    assert_eq!(filter.kind(), kind);
    assert_eq!(filter.snapshot().to_vec(), bytes, "{kind}");
    let mut stream = Vec::new();
    filter.snapshot().write_to(&mut stream).unwrap();
    assert_eq!(stream, bytes, "{kind}");
    assert_eq!(filter.try_clone().unwrap().snapshot().to_vec(), bytes, "{kind}");
    assert_eq!(filter.expected_keys(), said.expected_keys);
    assert_eq!(filter.false_positive_rate(), said.rate);
    assert_eq!(filter.false_positive_rate_at(5000), said.rate_at);
    assert_eq!(filter.statistics(), said.statistics);
    assert_eq!(filter.memory_bytes(), said.memory_bytes);
    assert!(format!("{filter:?}").contains("hasher"), "{filter:?}");
    let asked = hashes(1100);
    let expected: Vec<bool> = asked.iter().map(|&hash| (said.contains)(hash)).collect();
    assert!(expected[..500].iter().all(|&found| found), "{kind}");
    answers_agree(&expected, 0, |_, out| {
        filter.contains_batch(Hashed::slice(&asked), out).unwrap();
    });
    let singly = asked.iter().map(|&hash| filter.contains(&Hashed(hash)).unwrap());
    assert!(singly.eq(expected), "{kind}");
}

/// All kinds with a hasher that the snapshot names.
fn named<H: FilterHasher + Copy>(hasher: H, expected: &AnyHasher) {
    for_each_kind!(hasher, |kind, bytes: Vec<u8>, said: Said<'_>| {
        let filter = any(&bytes);
        assert_eq!(filter.hasher(), expected);
        says_the_same(kind, &bytes, &said, &filter);
        says_the_same(kind, &bytes, &said, &AnyFilter::read_from(&bytes[..], 1 << 20).unwrap());
        let (with, _) = AnyFilter::from_bytes_with(&bytes, *expected).unwrap();
        says_the_same(kind, &bytes, &said, &with);
        let wrong = [AnyHasher::from(SECRET), Murmur3::with_seed(99).into(), Prehashed.into()];
        for wrong in wrong.into_iter().filter(|wrong| wrong != expected) {
            let error = AnyFilter::from_bytes_with(&bytes, wrong).unwrap_err();
            assert!(error.is_incompatible(), "{error}");
            assert!(AnyFilter::read_from_with(&bytes[..], 1 << 20, wrong).is_err());
        }
    });
}

#[test]
fn every_kind_is_read_with_the_hasher_that_it_names() {
    named(Murmur3::with_seed(7), &Murmur3::with_seed(7).into());
    named(FastHash::with_seed(5), &FastHash::with_seed(5).into());
    named(Prehashed, &AnyHasher::Prehashed);
}

#[test]
fn without_its_hasher_a_filter_answers_by_hash_and_is_written_as_it_was() {
    for_each_kind!(SECRET, |kind, bytes: Vec<u8>, said: Said<'_>| {
        let filter = any(&bytes);
        let &AnyHasher::Unknown {
            identity, fingerprint, ..
        } = filter.hasher()
        else {
            panic!("{filter:?}")
        };
        let header = SnapshotHeader::peek(&bytes).unwrap();
        assert_eq!((identity, fingerprint), (Identity::SipHash13, header.fingerprint));
        says_the_same(kind, &bytes, &said, &filter);
        let error = filter.contains("a").unwrap_err().to_string();
        assert!(error.starts_with("the keys are hashed by SipHash-1-3,"), "{error}");
        let (filter, _) = AnyFilter::from_bytes_with(&bytes, SECRET).unwrap();
        says_the_same(kind, &bytes, &said, &filter);
        assert_eq!(filter.hash("a"), Ok(SECRET.hash_key("a")));
    });
    let hasher = RandomState::new();
    for_each_kind!(hasher.clone(), |kind, bytes: Vec<u8>, said: Said<'_>| {
        says_the_same(kind, &bytes, &said, &any(&bytes));
    });
}

#[test]
fn keys_are_hashed_by_the_hasher_that_is_named() {
    fn check<H: KeyHasher + Copy + Into<AnyHasher>>(hasher: H) {
        for_each_kind!(hasher, |kind, bytes: Vec<u8>, said: Said<'_>| {
            let filter = any(&bytes);
            let (filter, hash) = match filter.hasher() {
                AnyHasher::Unknown { .. } => {
                    let (filter, _) = AnyFilter::from_bytes_with(&bytes, hasher).unwrap();
                    let hash = filter.hash(&17u64);
                    (filter, hash)
                }
                _ => {
                    let hash = filter.hash(&17u64);
                    (filter, hash)
                }
            };
            assert_eq!(hash, Ok(hasher.hash_key(&17u64)));
            // Before and after the lengths where batches are cut.
            for len in [0u64, 1, 2, 7, 63, 64, 65, 1023, 1024, 1025, 3000] {
                let keys: Vec<u64> = (0..len).collect();
                let mut found = vec![true; keys.len()];
                filter.contains_batch(&keys, &mut found).unwrap();
                for (key, found) in keys.iter().zip(found) {
                    assert_eq!(found, (said.contains)(hasher.hash_key(key)), "{kind} {len} {key}");
                    assert_eq!(filter.contains(key), Ok(found));
                }
            }
            // Keys that are inserted are found, by all three.
            let keys: Vec<String> = (0..100).map(|i| format!("key {i}")).collect();
            let added = filter.insert_batch(&keys).unwrap();
            assert!((90..=100).contains(&added), "{kind} {added}");
            assert!(keys.iter().all(|key| filter.contains(key) == Ok(true)));
            // Each insert is answered as single ones are.
            let single = any_with(&bytes, hasher);
            let mut new = vec![true; 600];
            let keys = Vec::from_iter((0..600u64).map(|i| i / 2));
            let other = any_with(&bytes, hasher);
            let added = other.insert_batch_into(&keys, &mut new).unwrap();
            assert_eq!(added, new.iter().filter(|new| **new).count(), "{kind}");
            assert!(keys.iter().map(|key| single.insert(key).unwrap()).eq(new), "{kind}");
            let one = hasher.hash_key("one");
            assert_eq!(filter.insert(&Hashed(one)), Ok(true), "{kind}");
            assert_eq!(filter.contains("one"), Ok(true));
            let more = hashes(600);
            let added = filter.insert_batch(Hashed::slice(&more[500..])).unwrap();
            assert!((90..=100).contains(&added), "{kind} {added}");
            assert!(more.iter().all(|&hash| filter.contains(&Hashed(hash)).unwrap()));
        });
    }
    check(Murmur3::with_seed(3));
    check(FastHash::with_seed(3));
    check(SECRET);
}

#[test]
fn a_refused_insert_says_how_many_came_before() {
    let bytes = CuckooFilter::with_capacity(10, 0.01).unwrap().snapshot().to_vec();
    let filter = any(&bytes);
    let by_key = filter.insert_batch(&["a"; 100]).unwrap_err();
    let hash = filter.hash("a").unwrap();
    let by_hash = any(&bytes).insert_batch(Hashed::slice(&[hash; 100])).unwrap_err();
    assert!(by_key.inserted() > 0 && !by_key.is_full());
    assert_eq!(by_key, by_hash);
    let mut new = [true; 100];
    let flagged = any(&bytes).insert_batch_into(&["a"; 100], &mut new).unwrap_err();
    assert_eq!(flagged, by_key);
    assert!((0..100).map(|i| i < by_key.inserted()).eq(new));
    assert_eq!(filter.statistics().len, by_key.inserted());
}

#[test]
fn what_takes_keys_says_why_it_cannot() {
    let builder = ConcurrentBloom::builder().expected_keys(1000);
    let prehashed = any(&builder.clone().hasher(Prehashed).build().unwrap().snapshot().to_vec());
    let why = "the filter takes hashes, not keys: its hasher is Prehashed";
    assert_eq!(prehashed.contains("a").unwrap_err().to_string(), why);
    let mut found = [false];
    assert_eq!(
        prehashed.contains_batch(&["a"], &mut found).unwrap_err().to_string(),
        why
    );
    let error = prehashed.insert_batch(&["a"]).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.inserted(), error.is_full()),
        (why, 0, false)
    );
    assert_eq!(prehashed.statistics().len, 0);
}

/// The error for a bank, a bitmap or a delta names what reads it.
#[test]
fn other_snapshots_are_refused_by_name() {
    let filter = ConcurrentBloom::with_capacity(1000, 0.01).unwrap();
    let old = filter.clone();
    filter.insert("a");
    let others = [
        (
            ConcurrentBitmap::new(100).unwrap().snapshot().to_vec(),
            "ConcurrentBitmap",
            "bitmap::ConcurrentBitmap",
        ),
        (
            FilterBank::with_capacity(64, 10, 0.1).unwrap().snapshot().to_vec(),
            "FilterBank",
            "bank::FilterBank",
        ),
        (
            filter.with(&old).unwrap().delta(),
            "delta of a ConcurrentBloom",
            "apply_deltas of a ConcurrentBloom",
        ),
    ];
    for (bytes, kind, reader) in others {
        let why = format!("the snapshot is a {kind}, which an AnyFilter does not hold: read it by {reader}");
        let errors = [
            AnyFilter::from_bytes(&bytes).unwrap_err(),
            AnyFilter::from_bytes_with(&bytes, SECRET).unwrap_err(),
            AnyFilter::read_from(&bytes[..], 1 << 20).unwrap_err(),
            AnyFilter::read_from_with(&bytes[..], 1 << 20, SECRET).unwrap_err(),
        ];
        for error in errors {
            assert!(error.is_incompatible() && error.to_string() == why, "{error}");
        }
    }
}

/// Filters of one kind unite as their type does. Others say what differs.
#[test]
fn unions_are_those_of_the_type() {
    let mut all = Vec::new();
    for_each_kind!(SECRET, |kind, bytes: Vec<u8>, _: Said<'_>| all.push((kind, bytes)));
    for (kind, bytes) in &all {
        for (other_kind, other_bytes) in &all {
            let (one, other) = (any(bytes), any(other_bytes));
            let new = 0x1234_5678_9abc_def0;
            assert_eq!(other.insert(&Hashed(new)), Ok(true));
            let united = one.union_from(&other);
            match (kind == other_kind, kind) {
                (true, Kind::Cuckoo | Kind::DLeft) => {
                    let text = united.unwrap_err().to_string();
                    assert!(text.starts_with(&format!("a {kind} has no union")), "{text}");
                }
                (true, _) => {
                    assert_eq!(united, Ok(true), "{kind}");
                    assert!(one.contains(&Hashed(new)).unwrap(), "{kind}");
                }
                (false, _) => {
                    let text = format!("the kind differs: a {other_kind} there, a {kind} here");
                    assert_eq!(united.unwrap_err().to_string(), text);
                }
            }
        }
    }
    // Two unknown hashers.
    let builder = ConcurrentBloom::builder().expected_keys(1000);
    let [one, other] = [1, 2].map(|key| {
        let filter = builder.clone().hasher(SipHash13::with_key([key; 16])).build();
        any(&filter.unwrap().snapshot().to_vec())
    });
    assert_ne!(one.hasher(), other.hasher());
    assert!(
        one.union_from(&other)
            .unwrap_err()
            .to_string()
            .contains("hasher differs")
    );
}

#[test]
fn a_window_by_a_clock_is_refused_and_held() {
    let builder = WindowedBloom::builder().expected_keys(1000);
    let aged = builder.window(Duration::from_secs(9)).clock(|| Duration::from_secs(1));
    let bytes = aged.build().unwrap().snapshot().to_vec();
    let (own, any) = (WindowedBloom::from_bytes(&bytes), AnyFilter::from_bytes(&bytes));
    assert_eq!(any.unwrap_err().to_string(), own.unwrap_err().to_string());
    // It is held all the same.
    let hasher = AnyHasher::from(Murmur3::default());
    let (filter, _) = windowed::from_bytes(&bytes, hasher, || Duration::from_secs(1)).unwrap();
    assert_eq!(AnyFilter::Windowed(filter).snapshot().to_vec(), bytes);
}

/// The errors are those of the type, whichever byte is missing or wrong.
#[test]
fn hostile_bytes_are_refused_as_the_type_refuses_them() {
    for_each_kind!(Murmur3::with_seed(7), |kind, bytes: Vec<u8>, _: Said<'_>| {
        let own = |bytes: &[u8]| match kind {
            Kind::Bloom => ConcurrentBloom::from_bytes(bytes).map(drop),
            Kind::Scalable => ScalableBloom::from_bytes(bytes).map(drop),
            Kind::Windowed => WindowedBloom::from_bytes(bytes).map(drop),
            Kind::Counting => CountingBloom::from_bytes(bytes).map(drop),
            Kind::Tombstone => TombstoneBloom::from_bytes(bytes).map(drop),
            Kind::Cuckoo => CuckooFilter::from_bytes(bytes).map(drop),
            _ => DLeftFilter::from_bytes(bytes).map(drop),
        };
        let same = |bytes: &[u8], what: &str| {
            let own = own(bytes).map_err(|error| error.to_string());
            let any = AnyFilter::from_bytes(bytes)
                .map(drop)
                .map_err(|error| error.to_string());
            let read = AnyFilter::read_from(bytes, 1 << 20);
            assert_eq!(read.is_err(), any.is_err(), "{kind} {what}");
            // A header is looked at as a whole before its fields are.
            assert!(
                own == any || any.is_err() && own.is_err(),
                "{kind} {what}: {own:?} {any:?}"
            );
        };
        let most = bytes.len();
        for len in (0..300).chain((300..most).step_by(97)) {
            same(&bytes[..len], "truncated");
        }
        for at in (0..300).chain((300..most).step_by(97)) {
            let mut bytes = bytes.clone();
            bytes[at] ^= 1;
            same(&bytes, "corrupt");
        }
        // A seed that the hasher's fingerprint contradicts.
        let lies = with_field(&bytes, 16, &[0; 8]);
        assert!(AnyFilter::from_bytes(&lies).is_err(), "{kind}");
        // Less memory than the filter takes.
        let needed = any(&bytes).memory_bytes();
        assert!(AnyFilter::read_from(&bytes[..], needed / 2).is_err(), "{kind}");
        let mut rest = &[&bytes[..], b"rest"].concat()[..];
        assert_eq!(AnyFilter::from_bytes(rest).unwrap().1, b"rest");
        AnyFilter::read_from(&mut rest, 1 << 20).unwrap();
        assert_eq!(rest, b"rest");
    });
    for bytes in [&b""[..], b"[package]", &[0; 200]] {
        assert!(AnyFilter::from_bytes(bytes).is_err());
        assert!(AnyFilter::read_from(bytes, 1 << 20).is_err());
    }
}

/// Whatever version 1 wrote is read, and written byte for byte.
#[test]
fn golden_snapshots_are_held() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
    let mut held = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.starts_with("snapshot_v1_") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let filter = match AnyFilter::from_bytes(&bytes) {
            Ok((filter, _)) => filter,
            Err(error) => {
                // A filter by another machine's clock, or no filter.
                let is_held = !["windowed", "bank", "bitmap"].iter().any(|kind| name.contains(kind));
                assert!(!is_held && error.is_incompatible(), "{name}: {error}");
                continue;
            }
        };
        assert_eq!(filter.kind(), SnapshotHeader::peek(&bytes).unwrap().kind);
        assert!(filter.snapshot().to_vec() == bytes, "{name}");
        held += 1;
    }
    assert_eq!(held, 19);
}
