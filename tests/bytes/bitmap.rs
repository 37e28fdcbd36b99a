//! Snapshots of a `ConcurrentBitmap`: the bytes, every form of reading and writing them, and what
//! is refused.

use lanebloom::bitmap::BitmapView;
use lanebloom::{ConcurrentBitmap, ConcurrentBloom};
use lanebloom_tests::{Full, Pieces, with_field};
use proptest::prelude::*;

const GOLDEN: &[u8] = include_bytes!("../data/snapshot_v1_bitmap.bin");

fn golden() -> ConcurrentBitmap {
    let set = ConcurrentBitmap::new(1000).unwrap();
    (0..1000).step_by(7).for_each(|at| assert!(set.insert(at).unwrap()));
    set.insert_range(100..200).unwrap();
    set
}

#[test]
fn the_bytes_are_those_of_version_1() {
    let set = golden();
    assert_eq!(set.to_bytes(), GOLDEN);
    assert!(ConcurrentBitmap::from_bytes(GOLDEN).unwrap().0 == set);
    let (view, rest) = BitmapView::from_bytes(GOLDEN).unwrap();
    assert!(view == set && rest.is_empty() && view.to_bytes() == GOLDEN);
    view.verify().unwrap();
}

#[test]
fn every_form_writes_and_reads_the_same() {
    let set = golden();
    let mut stream = Vec::new();
    set.write_to(&mut stream).unwrap();
    assert!(stream == GOLDEN && set.snapshot_bytes() == GOLDEN.len());
    assert!(ConcurrentBitmap::read_from(Pieces::new(GOLDEN, None), 128).unwrap() == set);
    assert!(set.write_to(Full(300)).is_err());
    let failing = Pieces::new(&GOLDEN[..250], Some(std::io::Error::other("no more")));
    let error = ConcurrentBitmap::read_from(failing, 128).unwrap_err();
    assert_eq!(error.to_string(), "the bytes could not be read: no more");
    // At any address, also beside other bytes.
    for offset in 0..9 {
        let bytes = [&[1; 8][..offset.min(8)], GOLDEN, b"more"].concat();
        let (view, rest) = BitmapView::from_bytes(&bytes[offset.min(8)..]).unwrap();
        assert!(view == set && rest == b"more");
        let mut found = [false; 3];
        view.contains_batch(&[7, 8, 150], &mut found);
        assert_eq!(found, [true, false, true]);
    }
}

#[test]
fn every_truncation_and_every_corrupted_byte_is_an_error() {
    for len in 0..GOLDEN.len() {
        let bytes = &GOLDEN[..len];
        let error = ConcurrentBitmap::from_bytes(bytes).unwrap_err();
        assert!(error.is_truncated(), "{len}: {error}");
        assert!(ConcurrentBitmap::read_from(bytes, 1 << 20).unwrap_err().is_truncated());
        assert!(BitmapView::from_bytes(bytes).unwrap_err().is_truncated());
    }
    for at in 0..GOLDEN.len() {
        let mut bytes = GOLDEN.to_vec();
        bytes[at] ^= 0x10;
        let error = ConcurrentBitmap::from_bytes(&bytes).unwrap_err().to_string();
        let by_stream = ConcurrentBitmap::read_from(&bytes[..], 1 << 20)
            .unwrap_err()
            .to_string();
        assert_eq!(error, by_stream, "{at}");
        if let Ok((view, _)) = BitmapView::from_bytes(&bytes) {
            assert!(at >= 128, "{at}");
            view.verify().unwrap_err();
        }
    }
}

#[test]
fn what_no_bitmap_writes_is_refused_with_the_reason() {
    let read = |bytes: &[u8]| {
        let by_slice = ConcurrentBitmap::from_bytes(bytes).unwrap_err().to_string();
        assert_eq!(BitmapView::from_bytes(bytes).unwrap_err().to_string(), by_slice);
        by_slice
    };
    let bloom = ConcurrentBloom::with_capacity(100, 0.01).unwrap().to_bytes();
    assert_eq!(
        read(&bloom),
        "the bytes are of kind 1 (a ConcurrentBloom), not 16 (a ConcurrentBitmap)"
    );
    assert_eq!(
        ConcurrentBloom::from_bytes(GOLDEN).unwrap_err().to_string(),
        "the bytes are of kind 16 (a ConcurrentBitmap), not 1 (a ConcurrentBloom)"
    );
    assert_eq!(
        read(&with_field(GOLDEN, 32, &1025u64.to_le_bytes())),
        "the header declares a length of 320 bytes, but its other fields need 384"
    );
    let error = read(&with_field(GOLDEN, 32, &u64::MAX.to_le_bytes()));
    assert!(
        error.starts_with("the header declares a length of 320 bytes"),
        "{error}"
    );
    assert_eq!(
        read(&with_field(GOLDEN, 40, &[3])),
        "byte 40 is 3, where version 1 of the format has 0"
    );
    assert_eq!(
        read(&with_field(GOLDEN, 16, &[1])),
        "a bitmap has no hasher, but the header declares a BuildHasher with fingerprint 0000000000000001"
    );
    // Position 1000 is bit 40 of word 15.
    assert_eq!(
        read(&with_field(GOLDEN, 128 + 125, &[1])),
        "word 15 of the body has the unused bits 0x10000000000 set"
    );
    // Beyond the last word the line is filled with zeros.
    let short = ConcurrentBitmap::new(64).unwrap().to_bytes();
    let bytes = with_field(&short, 128 + 8, &[5]);
    assert_eq!(read(&bytes), "byte 136 is 5, where version 1 of the format has 0");
    let error = ConcurrentBitmap::read_from(GOLDEN, 127).unwrap_err();
    assert!(
        error.to_string().ends_with("more than the limit of 127 bytes"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(at in 0..320usize, field in prop::collection::vec(any::<u8>(), 1..9)) {
        let bytes = with_field(GOLDEN, at.min(320 - field.len()), &field);
        let read = ConcurrentBitmap::from_bytes(&bytes);
        prop_assert_eq!(read.is_ok(), BitmapView::from_bytes(&bytes).is_ok_and(|(view, _)| view.verify().is_ok()));
        if let Ok((set, rest)) = read {
            let written = set.to_bytes();
            prop_assert!(bytes.starts_with(&written) && bytes.ends_with(rest));
            prop_assert!(set.iter().all(|at| at < set.bound()));
            prop_assert!(BitmapView::from_bytes(&bytes).unwrap().0 == set);
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn serde_reads_within_a_limit() {
    use lanebloom::codec::Limited;
    use serde::de::DeserializeSeed;
    let json = serde_json::to_string(&golden()).unwrap();
    let read =
        |limit| Limited::<ConcurrentBitmap>::new(limit, ()).deserialize(&mut serde_json::Deserializer::from_str(&json));
    assert!(read(128).unwrap() == golden());
    assert!(read(127).is_err());
    assert!(serde_json::from_str::<ConcurrentBitmap>("\"iUxC\"").is_err());
}
