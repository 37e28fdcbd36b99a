//! Snapshots of a `ConcurrentBitmap`: the bytes, and every form of reading and writing them.

use lanebloom::bitmap::{BitmapView, ConcurrentBitmap};
use lanebloom::{ConcurrentBloom, codec};
use lanebloom_tests::{Full, Pieces};

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
    assert_eq!(set.snapshot().to_vec(), GOLDEN);
    assert!(ConcurrentBitmap::from_bytes(GOLDEN).unwrap().0 == set);
    let (view, rest) = BitmapView::from_bytes(GOLDEN).unwrap();
    assert!(view == set && rest.is_empty() && view.snapshot().to_vec() == GOLDEN);
    codec::verify(view.bytes()).unwrap();
}

#[test]
fn every_form_writes_and_reads_the_same() {
    let set = golden();
    let mut stream = Vec::new();
    set.snapshot().write_to(&mut stream).unwrap();
    assert!(stream == GOLDEN && set.snapshot().len() == GOLDEN.len());
    assert!(ConcurrentBitmap::read_from(Pieces::new(GOLDEN, None), 128).unwrap() == set);
    assert!(set.snapshot().write_to(Full(300)).is_err());
    let failing = Pieces::new(&GOLDEN[..250], Some(std::io::Error::other("no more")));
    let error = ConcurrentBitmap::read_from(failing, 128).unwrap_err();
    assert_eq!(error.to_string(), "the bytes could not be read: no more");
    let error = ConcurrentBitmap::read_from(GOLDEN, 127).unwrap_err();
    assert!(
        error.to_string().ends_with("more than the limit of 127 bytes"),
        "{error}"
    );
    let error = ConcurrentBloom::from_bytes(GOLDEN).unwrap_err();
    let expected = "the bytes are of kind 16 (a ConcurrentBitmap), not 1 (a ConcurrentBloom)";
    assert_eq!(error.to_string(), expected);
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
