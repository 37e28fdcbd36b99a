//! The promises of every filter that is saved and loaded, for each type of the list in
//! `common/filters.rs`: all forms write and read the same, no damaged bytes are read, and no more
//! memory is taken than allowed.

use super::fields;
use lanebloom::codec::{self, replace_file};
use lanebloom::internal::traits::{Encode, FixedSize, Insert, Remove};
use lanebloom::{Filter, KeyHasher, Murmur3, SnapshotError};
use lanebloom_tests::filters::*;
use lanebloom_tests::{Full, Pieces, STRESS_KEYS, SetAtEnd, filled, for_each_filter, number, together};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const HEADER: usize = 128;
const SECRET: SipHash13 = SipHash13::with_key([
    0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf, 0xb0,
]);
const OTHER: Murmur3 = Murmur3::with_seed(5);

macro_rules! tests {
    ($name:ident: $type:ident = $of:tt [$($word:ident)*]) => {
        mod $name {
            #[allow(unused_imports, reason = "a type that is not saved needs nothing")]
            use super::*;

            $(word! { $word, $type, $of })*
        }
    };
}

macro_rules! word {
    (stored, $type:ident, $of:tt) => {
        #[test]
        fn every_form_reads_what_every_form_wrote() {
            super::every_form_reads_what_every_form_wrote(filled!($of));
        }

        #[test]
        fn every_truncation_and_every_corrupted_byte_is_an_error() {
            no_damage_is_read(stringify!($type), filled!($of));
        }

        #[test]
        fn every_field_is_refused_or_read() {
            fields::sample(&small(filled!($of))).assert_every_field();
        }

        #[cfg(feature = "serde")]
        #[test]
        fn it_is_a_part_of_other_values_within_a_limit() {
            through_serde::limited(filled!($of), filled!($of by OTHER));
            through_serde::limited(filled!($of by SECRET), filled!($of by SipHash13::with_key([4; 16])));
        }

        #[test]
        fn hashers_are_told_apart() {
            super::hashers_are_told_apart(
                filled!($of),
                filled!($of by Murmur3::with_seed(5)),
                filled!($of by SECRET),
                filled!($of by foldhash::quality::FixedState::with_seed(5)),
            );
        }
    };
    (live, $type:ident, $of:tt) => {
        #[test]
        fn a_live_filter_is_written_with_all_keys_of_before() {
            live(filled!($of));
        }

        #[test]
        fn nothing_is_held_while_a_writer_runs() {
            nothing_is_held(filled!($of));
        }
    };
    (removes, $type:ident, $of:tt) => {
        #[test]
        fn what_is_read_goes_on_as_what_was_written() {
            goes_on(filled!($of));
        }
    };
    (guests, $type:ident, $of:tt) => {
        #[test]
        fn a_live_filter_is_written_while_others_come_and_go() {
            live_among_guests(filled!($of));
        }
    };
    (fixed, $type:ident, $of:tt) => {
        #[test]
        fn a_slice_is_as_long_as_the_snapshot() {
            fixed(filled!($of));
        }
    };
    (proportional, $type:ident, $of:tt) => {
        #[cfg(feature = "serde")]
        #[test]
        fn it_is_a_part_of_other_values() {
            through_serde::round_trip(filled!($of));
        }
    };
    // tests/contract has the tests for these words. A word that no arm lists is an error.
    (inserts, $type:ident, $of:tt) => {};
    (flags, $type:ident, $of:tt) => {};
    (extends, $type:ident, $of:tt) => {};
    (counts, $type:ident, $of:tt) => {};
    (fills, $type:ident, $of:tt) => {};
    (estimates, $type:ident, $of:tt) => {};
    (unites, $type:ident, $of:tt) => {};
    (rates, $type:ident, $of:tt) => {};
}

for_each_filter!(tests);

fn content(keys: usize) -> Vec<u64> {
    (0..keys as u64).map(number).collect()
}

/// Some keys, one of them three times, in a filter of a few lines.
fn small<F>(of: impl Fn(usize, &[u64]) -> F) -> F {
    let keys = content(24);
    of(30, &[&keys[..], &[keys[0]; 2]].concat())
}

/// Both ways to read a snapshot by a hasher; they say the same.
#[track_caller]
pub(crate) fn read<E: Encode, S: KeyHasher + Clone>(bytes: &[u8], hasher: &S) -> Result<Filter<E, S>, String> {
    let by_slice = codec::from_bytes::<Filter<E, S>>(bytes, hasher.clone()).map(|(filter, _)| filter);
    let by_reader = codec::read_from::<Filter<E, S>>(Pieces::new(bytes, None), usize::MAX, hasher.clone());
    match (by_slice, by_reader) {
        (Ok(one), Ok(other)) => {
            assert!(one.snapshot().to_vec() == other.snapshot().to_vec());
            Ok(one)
        }
        (Err(one), Err(other)) => {
            let (one, other) = (one.to_string(), other.to_string());
            // Only a slice is known to be too short before its parts are looked at; and only a
            // reader is asked for memory before all is there.
            assert!(
                one == other
                    || one.starts_with("the bytes end after")
                    || other.starts_with("the filter was not read: the allocation of "),
                "{one}\n{other}"
            );
            Err(one)
        }
        (one, other) => panic!(
            "by slice {:?}, by reader {:?}",
            one.map(|_| "a filter"),
            other.map(|_| "a filter")
        ),
    }
}

pub(crate) fn text<F>(result: Result<F, SnapshotError>) -> String {
    result.map(drop).unwrap_err().to_string()
}

/// By all calls, the same bytes; from all of them, the same filter; and no more of what is there is
/// taken than is its own.
pub(crate) fn round_trip<E: Encode, S: KeyHasher + Clone + Debug>(filter: &Filter<E, S>) -> Filter<E, S> {
    let (bytes, hasher) = (filter.snapshot().to_vec(), filter.hasher());
    assert!(bytes.len() % 64 == 0);
    let mut stream = Vec::new();
    filter.snapshot().write_to(&mut stream).unwrap();
    assert!(stream == bytes);

    let more = [&bytes[..], b"more"].concat();
    let (same, rest) = codec::from_bytes::<Filter<E, S>>(&more, hasher.clone()).unwrap();
    assert!(same.snapshot().to_vec() == bytes && rest == b"more");
    assert_eq!(format!("{same:?}"), format!("{filter:?}"));
    assert_eq!(same.statistics(), filter.statistics());
    // Exactly as much as the limit, and what follows stays where it is.
    let limit = filter.memory_bytes();
    assert_eq!(same.memory_bytes(), limit);
    let mut reader = &more[..];
    let again = codec::read_from::<Filter<E, S>>(&mut reader, limit, hasher.clone()).unwrap();
    assert!(again.snapshot().to_vec() == bytes && reader == b"more");
    let pieces = Pieces::new(&bytes, None);
    let again = codec::read_from::<Filter<E, S>>(pieces, limit, hasher.clone()).unwrap();
    assert!(again.snapshot().to_vec() == bytes);
    for limit in [0, limit - 1] {
        let error = codec::read_from::<Filter<E, S>>(&bytes[..], limit, hasher.clone())
            .map(drop)
            .unwrap_err();
        let needed = filter.memory_bytes();
        assert_eq!(
            error.to_string(),
            format!("the filter takes {needed} bytes, more than the limit of {limit} bytes")
        );
        assert!(!error.is_truncated() && !error.is_incompatible());
    }
    same
}

fn every_form_reads_what_every_form_wrote<E: Encode, S: KeyHasher + Clone + Debug>(of: Of<E, S>) {
    // From one line to some beyond what is copied at once, 64 KiB, and about that.
    let about = 8 * (64 << 10) / of(50_000, &[]).statistics().bits_per_key as usize;
    for (planned, keys) in [
        (1, 0),
        (1, 1),
        (100, 90),
        (about - 20, 3000),
        (about, 3000),
        (about + 20, 3000),
        (about * 5 / 2, 3000),
    ] {
        let content = content(keys);
        let filter = of(planned, &content);
        let same = round_trip(&filter);
        assert!(content.iter().all(|key| same.look_up(key)));
        for stranger in (0..1000).map(|i| number(1 << 40 | i)) {
            assert_eq!(same.look_up(&stranger), filter.look_up(&stranger));
        }
    }
    // Through a file.
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("filter");
    let filter = small(of);
    replace_file(&path, |file| filter.snapshot().write_to(file)).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    let same = codec::read_from::<Filter<E, S>>(file, filter.memory_bytes(), filter.hasher().clone()).unwrap();
    assert!(same.snapshot().to_vec() == filter.snapshot().to_vec());
}

fn fixed<E: Encode<Size = FixedSize>, S: KeyHasher>(of: Of<E, S>) {
    for planned in [1, 1000] {
        let filter = of(planned, &[1]);
        let bytes = filter.snapshot().to_vec();
        assert_eq!(bytes.len(), filter.snapshot().len());
        assert_eq!(of(planned, &[]).snapshot().len(), bytes.len());
        let mut slice = vec![7; bytes.len()];
        filter.snapshot().write_to_slice(&mut slice);
        assert!(slice == bytes);
        for wrong in [0, bytes.len() - 1, bytes.len() + 1] {
            let write = || filter.snapshot().write_to_slice(&mut vec![7; wrong]);
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(write)).unwrap_err();
            let expected = format!("the snapshot has {} bytes, but the slice has {wrong}", bytes.len());
            assert_eq!(*panic.downcast::<String>().unwrap(), expected);
        }
    }
}

fn no_damage_is_read<E: Encode>(name: &str, of: Of<E>) {
    let filter = small(of);
    let (bytes, hasher) = (filter.snapshot().to_vec(), *filter.hasher());
    for end in 0..bytes.len() {
        let needed = if end < HEADER { HEADER } else { bytes.len() };
        let expected = format!("the bytes end after {end} of {needed}");
        for error in [
            Filter::<E>::from_bytes(&bytes[..end]).map(drop).unwrap_err(),
            Filter::<E>::read_from(&bytes[..end], usize::MAX).map(drop).unwrap_err(),
        ] {
            assert_eq!(error.to_string(), expected);
            assert!(error.is_truncated() && !error.is_incompatible());
        }
    }
    let (most, limit) = (filter.memory_bytes(), filter.memory_bytes() - 1);
    assert!(Filter::<E>::read_from(&bytes[..], most).is_ok());
    assert_eq!(
        text(Filter::<E>::read_from(&bytes[..], limit)),
        format!("the filter takes {most} bytes, more than the limit of {limit} bytes")
    );
    // The reader's own error, from wherever it comes, and the writer's.
    for end in [0, 5, HEADER - 1, HEADER, HEADER + 1, bytes.len() - 60, bytes.len() - 1] {
        let broken = Pieces::new(&bytes[..end], Some(io::Error::other("unplugged")));
        let error = Filter::<E>::read_from(broken, usize::MAX).map(drop).unwrap_err();
        assert_eq!(error.to_string(), "the bytes could not be read: unplugged");
        assert!(!error.is_truncated() && std::error::Error::source(&error).unwrap().is::<io::Error>());
    }
    assert!(filter.snapshot().write_to(Full(bytes.len())).is_ok());
    for room in [
        0,
        1,
        HEADER,
        HEADER + 1,
        bytes.len() / 2,
        bytes.len() - 64,
        bytes.len() - 1,
    ] {
        assert_eq!(filter.snapshot().write_to(Full(room)).unwrap_err().to_string(), "full");
    }
    // Whichever byte is another one, and whatever it is, an error says where to look. (A part of a
    // filter has a header and a trailer of its own.)
    let in_parts = bytes[HEADER..].windows(8).any(|begin| begin == &bytes[..8]);
    let flips = [1, 16, 128, 255, 2, 4, 8, 32, 64];
    for at in 0..bytes.len() {
        for flip in &flips[..if in_parts { 4 } else { 9 }] {
            let mut corrupt = bytes.clone();
            corrupt[at] ^= flip;
            let expected: &[&str] = match at {
                0..8 => &["not a snapshot or delta of a filter: the bytes begin with \""],
                8..10 => &["unsupported format version "],
                10..HEADER => &["the header is corrupt: its checksum is "],
                _ if in_parts => &[
                    "not a snapshot or delta of a filter: the bytes begin with \"",
                    "unsupported format version ",
                    "the header is corrupt: ",
                    "the bytes are corrupt: ",
                    "byte ",
                ],
                _ if at < bytes.len() - 56 => &["the bytes are corrupt: their checksum is "],
                _ => &["byte "],
            };
            let text = read::<E, _>(&corrupt, &hasher).map(drop).unwrap_err();
            assert!(
                expected.iter().any(|start| text.starts_with(start)),
                "byte {at}: {text}"
            );
        }
    }
    // Writers of checksums get no further.
    let sample = fields::sample(&filter);
    let known = "0 (a BuildHasher), 1 (Murmur3), 2 (SipHash-1-3), 3 (FastHash), 4 (Prehashed)";
    let (differs, needs) = (
        "the hasher's fingerprint does not match:",
        "bytes, but its other fields need ",
    );
    sample.assert_refused(&format!(
        "
        8 | 2 1 | unsupported format version 258; this release reads version 1
        11 | 5 | unknown hasher 5; this release knows {known}
        11 | 2 0 0 1 | byte 14 is 1, where version 1 of the format has 0
        12 | 1 | {differs} Murmur3 with seed 1 has
        16 | =0 | {differs} Murmur3 with seed 0 has
        11 | 3 7 | {differs} FastHash with seed 7 has
        11 | 4 | {differs} Prehashed has 0000000000000000,
        24 | =0 | the header declares a length of 0 {needs}
        24 | ={most} | the header declares a length of {most} {needs}
        119 | 5 | byte 119 is 5, where version 1 of the format has 0",
        most = u64::MAX
    ));
    // No other filter is taken for this one.
    let names = [
        "",
        "ConcurrentBloom",
        "ScalableBloom",
        "WindowedBloom",
        "CountingBloom",
        "TombstoneBloom",
        "CuckooFilter",
        "",
        "DLeftFilter",
        "StaticFilter",
    ];
    let kind = |kind: u8| match (kind, names.get(usize::from(kind))) {
        (129, _) => "129 (a delta of a ConcurrentBloom)".into(),
        (7, _) => "7 (reserved)".into(),
        (1.., Some(name)) => format!("{kind} (a {name})"),
        _ => kind.to_string(),
    };
    assert_eq!(names[usize::from(bytes[10])], name);
    for other in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 129, 255] {
        if other != bytes[10] {
            let text = format!("the bytes are of kind {}, not {}", kind(other), kind(bytes[10]));
            sample.assert_refused(&format!("10 | {other} | {text}"));
        }
    }
}

/// A filter is read by the hasher that filled it and by no other; and by none that is given, if it
/// is [`Murmur3`].
fn hashers_are_told_apart<E: Encode, B: KeyHasher + Clone + Debug>(
    plain: Of<E>,
    seeded: Of<E>,
    keyed: Of<E, SipHash13>,
    other: Of<E, B>,
) {
    fn refused<E: Encode, S: KeyHasher + Clone>(bytes: &[u8], hasher: &S, expected: &str) {
        for error in [
            codec::from_bytes::<Filter<E, S>>(bytes, hasher.clone())
                .map(drop)
                .unwrap_err(),
            codec::read_from::<Filter<E, S>>(bytes, usize::MAX, hasher.clone())
                .map(drop)
                .unwrap_err(),
        ] {
            assert!(error.is_incompatible() && !error.is_truncated());
            assert_eq!(error.to_string(), format!("the hasher differs: {expected}"));
        }
    }
    let murmur3 = Murmur3::default();
    let random = foldhash::quality::FixedState::with_seed(6);
    let (plain, seeded, keyed, other) = (small(plain), small(seeded), small(keyed), small(other));

    let bytes = plain.snapshot().to_vec();
    refused::<E, _>(&bytes, &SECRET, "Murmur3 with seed 0 there, SipHash-1-3 here");
    refused::<E, _>(&bytes, &OTHER, "Murmur3 with seed 0 there, Murmur3 with seed 5 here");
    refused::<E, _>(&bytes, &random, "Murmur3 with seed 0 there, a BuildHasher here");
    let bytes = seeded.snapshot().to_vec();
    refused::<E, _>(&bytes, &murmur3, "Murmur3 with seed 5 there, Murmur3 with seed 0 here");
    for same in [
        Filter::<E>::from_bytes(&bytes).map(|(same, _)| same),
        Filter::<E>::read_from(&bytes[..], 1 << 20),
    ] {
        assert_eq!(same.unwrap_or_else(|error| panic!("{error}")).hasher().seed(), 5);
    }
    round_trip(&seeded);
    let bytes = keyed.snapshot().to_vec();
    refused::<E, _>(&bytes, &murmur3, "SipHash-1-3 there, Murmur3 with seed 0 here");
    refused::<E, _>(
        &bytes,
        &SipHash13::with_key([4; 16]),
        "SipHash-1-3 in both, with different keys",
    );
    for refused in [
        Filter::<E>::from_bytes(&bytes).map(drop),
        Filter::<E>::read_from(&bytes[..], 1 << 20).map(drop),
    ] {
        assert!(refused.unwrap_err().is_incompatible());
    }
    round_trip(&keyed);
    // The secret key is nowhere in it.
    assert!(
        !bytes
            .windows(4)
            .any(|part| (0xa1..0xae).any(|byte| part == [byte, byte + 1, byte + 2, byte + 3]))
    );
    let bytes = other.snapshot().to_vec();
    refused::<E, _>(&bytes, &murmur3, "a BuildHasher there, Murmur3 with seed 0 here");
    refused::<E, _>(&bytes, &random, "a BuildHasher in both, with different keys");
    round_trip(&other);
}

/// Whatever is done next, with the copy it is the same: answers, and where everything lies.
fn goes_on<E: Insert + Remove + Encode>(of: Of<E>) {
    let turns = if cfg!(debug_assertions) { 3000 } else { 30_000 };
    // Nearly full, so that what is in it is moved.
    let content = content(570);
    let mut one = of(600, &content);
    let mut other: Filter<E> = read(&one.snapshot().to_vec(), one.hasher()).unwrap_or_else(|error| panic!("{error}"));
    for round in 0..2 {
        let mut there: VecDeque<u64> = content.iter().copied().take(570 * (1 - round)).collect();
        for turn in 0..turns {
            let key = number(turn << 32);
            if turn % 3 != 0 && there.len() < 600 {
                assert_eq!(one.try_insert(&key).unwrap(), other.try_insert(&key).unwrap());
                there.push_back(key);
            }
            if turn % 3 != 1 || there.len() == 600 {
                if let Some(old) = there.pop_front() {
                    assert_eq!(one.take(&old), other.take(&old));
                }
            }
            let asked = number(turn);
            assert_eq!(one.look_up(&asked), other.look_up(&asked));
        }
        assert!(one.snapshot().to_vec() == other.snapshot().to_vec() && one.statistics() == other.statistics());
        one.clear();
        other.clear();
    }
}

/// Keys that were inserted before are in the bytes, whatever is inserted meanwhile.
fn live<E: Insert + Encode>(of: Of<E>)
where
    Filter<E>: Sync,
{
    written_while_inserted(&of(STRESS_KEYS / 4, &[]), |_| ());
}

/// Others' keys come and go, so that the filter is full now and then, and what is in it moves.
fn live_among_guests<E: Insert + Remove + Encode>(of: Of<E>)
where
    Filter<E>: Sync,
{
    let filter = of(STRESS_KEYS / 4, &[]);
    let guests: Vec<(u64, usize)> = (0..STRESS_KEYS / 8 * 19 / 20).map(|guest| (u64::MAX, guest)).collect();
    written_while_inserted(&filter, |done| {
        while !done.load(Ordering::Relaxed) {
            filter.try_insert_batch(&guests).unwrap();
            assert_eq!(filter.take_batch_into(&guests, ()), guests.len());
        }
    });
}

fn written_while_inserted<E: Insert + Encode>(filter: &Filter<E>, meanwhile: impl Fn(&AtomicBool) + Sync)
where
    Filter<E>: Sync,
{
    const KEYS: usize = STRESS_KEYS / 8;
    let (inserted, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    together(3, |thread| match thread {
        0 => {
            for key in 0..KEYS {
                filter.try_insert(&key).unwrap();
                // Pairs with the load below: these inserts happened before a read of the number.
                inserted.store(key + 1, Ordering::Release);
            }
        }
        1 => meanwhile(&done),
        _ => {
            let _end = SetAtEnd(&done);
            let mut before = 0;
            while before < KEYS {
                before = inserted.load(Ordering::Acquire);
                let mut stream = Vec::new();
                let bytes = filter.snapshot().to_vec();
                filter.snapshot().write_to(&mut stream).unwrap();
                for bytes in [bytes, stream] {
                    let (copy, _) = Filter::<E>::from_bytes(&bytes).unwrap_or_else(|error| panic!("{error}"));
                    assert!((0..before).all(|key| copy.look_up(&key)));
                }
            }
        }
    });
}

/// A writer that uses the filter itself would wait for ever for what is held by whoever writes.
fn nothing_is_held<E: Insert + Encode>(of: Of<E>) {
    struct User<F: FnMut()>(F);
    impl<F: FnMut()> Write for User<F> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            (self.0)();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (filter, mut calls) = (small(of), 0);
    let user = User(|| {
        if calls < 2 {
            filter.try_insert("a").unwrap();
        }
        assert!(filter.look_up("a"));
        calls += 1;
    });
    filter.snapshot().write_to(user).unwrap();
    assert!(calls > 0);
}

#[cfg(feature = "serde")]
mod through_serde {
    use super::*;
    use lanebloom::codec::{FromSnapshot, Limited};
    use lanebloom_tests::with_field;
    use serde::Serialize;
    use serde::de::{DeserializeOwned, DeserializeSeed};

    pub(super) struct Raw(pub(super) Vec<u8>);

    impl Serialize for Raw {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(&self.0)
        }
    }

    pub(super) fn round_trip<E: Encode>(of: Of<E>)
    where
        Filter<E>: Serialize + DeserializeOwned,
    {
        let filter = small(of);
        let bytes = filter.snapshot().to_vec();
        let json = serde_json::to_string(&filter).unwrap();
        assert!(json.starts_with("\"iUxCRg0KGgoB"), "{json}");
        let same: Filter<E> = serde_json::from_str(&json).unwrap();
        assert!(same.snapshot().to_vec() == bytes);
        let binary = postcard::to_allocvec(&filter).unwrap();
        assert!(binary.len() < bytes.len() + 8 && binary.ends_with(&bytes));
        assert!(binary == postcard::to_allocvec(&Raw(bytes.clone())).unwrap());
        let same: Filter<E> = postcard::from_bytes(&binary).unwrap();
        assert!(same.snapshot().to_vec() == bytes);

        let text = |json: &str| {
            let result: Result<Filter<E>, _> = serde_json::from_str(json);
            result.map(drop).unwrap_err().to_string()
        };
        assert!(text("17").starts_with("invalid type: integer `17`, expected a filter in Base64"));
        assert!(text("\"?\"").starts_with("Invalid symbol 63"));
        assert!(text("\"\"").starts_with("the bytes end after 0 of 128"));
        let cut = format!("the bytes end after 150 of {}", bytes.len());
        assert!(text(&format!("\"{}\"", &json[1..201])).starts_with(&cut));
        let refused = |bytes: &[u8]| {
            let binary = postcard::to_allocvec(&Raw(bytes.to_vec())).unwrap();
            postcard::from_bytes::<Filter<E>>(&binary).is_err()
        };
        for at in (0..bytes.len()).step_by(7) {
            let mut corrupt = bytes.clone();
            corrupt[at] ^= 32;
            assert!(refused(&corrupt));
        }
        assert!(refused(&[&bytes[..], &[0]].concat()) && refused(&[&bytes[..], b"more"].concat()));
        assert!(refused(&with_field(&bytes, 10, &[bytes[10] % 8 + 1])), "another type's");
    }

    /// The same bytes by the hasher that is given, within the limit and not below it.
    pub(super) fn limited<E: Encode, S: KeyHasher + Clone>(of: Of<E, S>, stranger: Of<E, S>)
    where
        Filter<E, S>: FromSnapshot<Hasher = S> + Serialize,
    {
        let (filter, stranger) = (small(of), small(stranger));
        let memory = filter.memory_bytes();
        let json = serde_json::to_string(&filter).unwrap();
        let binary = postcard::to_allocvec(&filter).unwrap();
        let limited = |limit: usize, hasher: &S| Limited::<Filter<E, S>>::new(limit, hasher.clone());
        let from_json = |limit, hasher: &S, json: &str| {
            limited(limit, hasher)
                .deserialize(&mut serde_json::Deserializer::from_str(json))
                .map_err(|error| error.to_string())
        };
        let from_binary =
            |limit, hasher: &S| limited(limit, hasher).deserialize(&mut postcard::Deserializer::from_bytes(&binary));
        let hasher = filter.hasher();
        let (one, other) = (from_json(memory, hasher, &json), from_binary(memory, hasher));
        for same in [
            one.unwrap_or_else(|error| panic!("{error}")),
            other.unwrap_or_else(|error| panic!("{error}")),
        ] {
            assert!(same.snapshot().to_vec() == filter.snapshot().to_vec());
        }
        for limit in [0, 1, memory - 1] {
            let text = from_json(limit, hasher, &json).map(drop).unwrap_err();
            let expected = format!("the filter takes {memory} bytes, more than the limit of {limit} bytes");
            assert!(text.starts_with(&expected), "{text}");
            // (postcard's errors have no room for a message.)
            assert!(from_binary(limit, hasher).is_err());
        }
        let text = from_json(memory, stranger.hasher(), &json).map(drop).unwrap_err();
        assert!(text.starts_with("the hasher differs: "), "{text}");
        assert!(from_json(memory, hasher, &json[..100]).is_err());
        // The reader does not look beyond the limit.
        let longer = format!(
            "{}{}\"",
            json[..json.len() - 1].trim_end_matches('='),
            "A".repeat(1 << 20)
        );
        assert!(from_json(memory, hasher, &longer).is_err());
    }
}
