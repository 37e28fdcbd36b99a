//! The summary of a header, and the check of all checksums without a filter: right for every kind,
//! and an error for bytes that end early, were corrupted, or were made to do harm. (`fields.rs`
//! checks that bytes which are read are verified.)

use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom::codec::{Content, Identity, Kind, SnapshotHeader, verify};
use lanebloom::{
    ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, ScalableBloom, SipHash13, StaticFilter, TombstoneBloom,
    WindowedBloom,
};
use lanebloom_tests::{Time, with_field};
use std::time::Duration;

fn peek(bytes: &[u8]) -> SnapshotHeader {
    SnapshotHeader::peek(bytes).unwrap()
}

/// The fault of the header.
#[track_caller]
fn refused(bytes: &[u8]) -> String {
    SnapshotHeader::peek(bytes).unwrap_err().to_string()
}

fn bloom() -> ConcurrentBloom {
    let builder = ConcurrentBloom::builder().expected_keys(1000).seed(7);
    let filter = builder.words_per_key(4).lines_per_key(2).build().unwrap();
    filter.insert_all(0..500u32);
    filter
}

fn scalable() -> ScalableBloom {
    let filter = ScalableBloom::with_capacity(100, 0.02).unwrap();
    filter.insert_all(0..2000u32).unwrap();
    filter
}

fn windowed() -> WindowedBloom {
    let builder = WindowedBloom::builder().expected_keys(1000).generations(3);
    let filter = builder.build().unwrap();
    filter.insert_all(0..100u32);
    filter.rotate();
    filter.insert_all(100..200u32);
    filter
}

fn delta() -> Vec<u8> {
    let (old, new) = (bloom(), bloom());
    new.insert_all(1000..1003u32);
    new.with(&old).map(|pair| pair.delta()).unwrap()
}

/// A snapshot or delta of every kind.
fn every_kind() -> Vec<(Kind, Vec<u8>)> {
    let tombstone = TombstoneBloom::with_capacity(1000, 0.01).unwrap();
    let bitmap = ConcurrentBitmap::new(1000).unwrap();
    bitmap.insert(77).unwrap();
    let cuckoo = CuckooFilter::with_capacity(1000, 0.01).unwrap();
    let dleft = DLeftFilter::with_capacity(1000, 0.01).unwrap();
    vec![
        (Kind::Bloom, bloom().snapshot().to_vec()),
        (Kind::Scalable, scalable().snapshot().to_vec()),
        (Kind::Windowed, windowed().snapshot().to_vec()),
        (
            Kind::Counting,
            CountingBloom::with_capacity(1000, 0.01).unwrap().snapshot().to_vec(),
        ),
        (Kind::Tombstone, tombstone.snapshot().to_vec()),
        (Kind::Cuckoo, cuckoo.snapshot().to_vec()),
        (Kind::DLeft, dleft.snapshot().to_vec()),
        (
            Kind::Static,
            StaticFilter::from_keys(0..50u64, 0.01).unwrap().snapshot().to_vec(),
        ),
        (Kind::Bitmap, bitmap.snapshot().to_vec()),
        (Kind::Delta, delta()),
    ]
}

#[test]
fn a_header_says_what_the_filter_says() {
    for (kind, bytes) in every_kind() {
        let header = peek(&bytes);
        assert_eq!((header.kind, header.bytes), (kind, bytes.len() as u64));
        assert_eq!(header.hasher.is_none(), kind == Kind::Bitmap);
        // The content is not needed.
        assert_eq!(peek(&bytes[..bytes.len().min(SnapshotHeader::LEN)]), header);
    }

    let filter = bloom();
    let header = peek(&filter.snapshot().to_vec());
    assert_eq!(header.expected_keys, Some(filter.expected_keys() as u64));
    assert_eq!(header.false_positive_rate, Some(filter.false_positive_rate()));
    assert!(matches!(header.hasher, Some(Identity::Murmur3 { seed: 7, .. })));
    let shape = |header: SnapshotHeader| match header.content {
        Content::Blocks {
            words_per_key,
            bits_per_line,
            lines_per_key,
            blocks,
            changed,
            ..
        } => (words_per_key, bits_per_line, lines_per_key, blocks, changed),
        other => panic!("{other:?}"),
    };
    let blocks = filter.layout().blocks as u64;
    assert_eq!(shape(header), (4, filter.layout().bits_per_line, 2, blocks, None));
    // Three keys in two lines each.
    let (.., changed) = shape(peek(&delta()));
    assert!(matches!(changed, Some(1..=6)), "{changed:?}");

    let filter = scalable();
    let header = peek(&filter.snapshot().to_vec());
    assert_eq!(
        (header.expected_keys, header.false_positive_rate),
        (Some(100), Some(0.02))
    );
    let count = filter.layers().len();
    assert!(count > 1 && matches!(header.content, Content::Layers { layers, .. } if layers == count));

    let header = peek(&windowed().snapshot().to_vec());
    assert_eq!(header.expected_keys, Some(1000));
    let window = |header: SnapshotHeader| match header.content {
        Content::Generations {
            generations,
            stored,
            needs_clock,
            ..
        } => (generations, stored, needs_clock),
        other => panic!("{other:?}"),
    };
    assert_eq!(window(header), (3, 2, false));
    let builder = WindowedBloom::builder()
        .expected_keys(1000)
        .window(Duration::from_secs(9));
    let aged = builder.clone().build().unwrap().snapshot().to_vec();
    assert_eq!(window(peek(&aged)), (4, 1, false));
    let aged = builder
        .clock(|| Duration::from_secs(1))
        .build()
        .unwrap()
        .snapshot()
        .to_vec();
    assert_eq!(window(peek(&aged)), (4, 1, true));

    let filter = CuckooFilter::builder()
        .expected_keys(1000)
        .fingerprint_bits(16)
        .build()
        .unwrap();
    let header = peek(&filter.snapshot().to_vec());
    assert_eq!(header.expected_keys, Some(1000));
    let of_bits = |bits| match header.content {
        Content::Buckets {
            fingerprint_bits,
            buckets,
            ..
        } => fingerprint_bits == bits && buckets == filter.slots() as u64 / 4,
        _ => false,
    };
    assert!(of_bits(16), "{header:?}");
    let header = peek(&ConcurrentBitmap::new(12_345).unwrap().snapshot().to_vec());
    assert!(matches!(header.content, Content::Bits { bound: 12_345, .. }));
}

#[test]
fn a_header_that_ends_early_is_an_error() {
    for (kind, bytes) in every_kind() {
        let len = if kind == Kind::Delta { 64 } else { SnapshotHeader::LEN };
        for end in 0..len {
            let error = SnapshotHeader::peek(&bytes[..end]).unwrap_err();
            assert!(error.is_truncated(), "{kind} {end}: {error}");
        }
    }
    assert!(refused(b"key 1\nkey 2\n").ends_with(": the bytes begin with \"key 1\\nke\""));
}

#[test]
fn whole_records_are_verified() {
    for (kind, bytes) in every_kind() {
        let two = [&bytes[..], b"rest"].concat();
        let (parts, rest) = verify(&two).unwrap();
        assert_eq!(rest, b"rest");
        let expected = match kind {
            Kind::Scalable => scalable().layers().len(),
            Kind::Windowed | Kind::Tombstone => 2,
            _ => {
                assert_eq!(parts, [&bytes[..]]);
                continue;
            }
        };
        assert_eq!(parts.len(), expected, "{kind}");
        assert!(parts.iter().all(|part| peek(part).bytes == part.len() as u64));
        let last = parts[expected - 1].as_ptr_range().end;
        assert_eq!(last, two[..bytes.len()].as_ptr_range().end);
    }
    // Neither needs what reads the filter.
    let keyed = ScalableBloom::builder().expected_keys(10).hasher(SipHash13::random());
    let keyed = keyed.build().unwrap();
    keyed.insert_all(0..100u32).unwrap();
    let bytes = keyed.snapshot().to_vec();
    assert_eq!(verify(&bytes).unwrap().0.len(), keyed.layers().len());
    // The parts of a filter with a known hasher are filters.
    let filter = scalable();
    let bytes = filter.snapshot().to_vec();
    for (part, layer) in verify(&bytes).unwrap().0.into_iter().zip(filter.into_layers()) {
        let (part, rest) = ConcurrentBloom::from_bytes(part).unwrap();
        assert!(rest.is_empty());
        assert!(part.snapshot().block_ones().eq(layer.snapshot().block_ones()));
    }
}

/// With times before the generations.
#[test]
fn the_times_of_a_window_are_verified() {
    let time = Time::default();
    let builder = WindowedBloom::builder()
        .expected_keys(100)
        .window(Duration::from_secs(30));
    let filter = builder.clock(time.clock()).build().unwrap();
    for second in [0, 11, 22] {
        time.set(second * 1_000_000_000);
        filter.insert(&second);
    }
    let bytes = filter.snapshot().to_vec();
    assert_eq!(verify(&bytes).unwrap().0.len(), 3);
    // A time, after the header.
    let mut other = bytes.clone();
    other[128] ^= 1;
    let text = "the bytes are corrupt: their checksum is ";
    assert!(verify(&other).unwrap_err().to_string().starts_with(text));
}

#[test]
fn a_record_that_ends_early_or_was_corrupted_is_an_error() {
    for (kind, bytes) in every_kind() {
        for end in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
            let error = verify(&bytes[..end]).unwrap_err();
            assert!(error.is_truncated(), "{kind} {end}: {error}");
        }
        // Each byte of the headers, and some of what follows.
        for at in (0..bytes.len()).filter(|at| *at < 192 || at % 11 == 0) {
            let mut other = bytes.clone();
            other[at] ^= 1 << (at % 8);
            assert!(verify(&other).is_err(), "{kind} {at}");
        }
    }
}

/// With checksums that are right.
#[test]
fn absurd_fields_are_errors() {
    let number = u64::to_le_bytes;
    let filter = bloom().snapshot().to_vec();
    for (at, field, text) in [
        (
            8,
            &[2, 0][..],
            "unsupported format version 2; this release reads version 1",
        ),
        (
            10,
            &[10],
            "kind 10 is unknown: this release reads kinds 1 to 6, 8, 9, 16, 17 and 129",
        ),
        (
            10,
            &[7],
            "kind 7 is reserved: this release reads kinds 1 to 6, 8, 9, 16, 17 and 129",
        ),
        (11, &[5], "unknown hasher 5; "),
        (
            24,
            &number(u64::MAX),
            "the header declares a length of 18446744073709551615 bytes",
        ),
        (40, &number(u64::MAX), "18446744073709551615 blocks "),
        (48, &number(0), "the number of expected keys, 0, is not in 1 to "),
        (56, &number(f64::NAN.to_bits()), "a rate of NaN is not in 0 to 1"),
    ] {
        let error = refused(&with_field(&filter, at, field));
        assert!(error.starts_with(text), "{error}");
    }
    let scalable = scalable().snapshot().to_vec();
    for (at, field, text) in [
        (
            24,
            number(127),
            "the header declares a length of 127 bytes, but its other fields need 128",
        ),
        (40, number(0), "the number of expected keys, 0, is not in 1 to "),
        (56, number(2_f64.to_bits()), "a rate of 2 is not in 0 to 1"),
        (80, number(65), "the number of layers, 65, is not in 1 to 64"),
    ] {
        assert!(refused(&with_field(&scalable, at, &field)).starts_with(text));
    }
    let windowed = windowed().snapshot().to_vec();
    for (at, field) in [(34, 65), (35, 4), (48, 66), (48, 0)] {
        refused(&with_field(&windowed, at, &[field]));
    }
    let cuckoo = CuckooFilter::with_capacity(1000, 0.01).unwrap().snapshot().to_vec();
    refused(&with_field(&cuckoo, 40, &number(0)));
    assert!(refused(&with_field(&cuckoo, 24, &number(191))).contains("its other fields need 192"));
    let mut delta = delta();
    delta[24..32].copy_from_slice(&number(63));
    assert!(refused(&delta).contains("its other fields need 64"));
}

/// Nothing is allocated for bytes that are not there, and inner snapshots are as declared.
#[test]
fn absurd_lengths_and_parts_are_errors() {
    let number = u64::to_le_bytes;
    let cuckoo = CuckooFilter::with_capacity(1000, 0.01).unwrap().snapshot().to_vec();
    let most = with_field(&cuckoo, 24, &number(u64::MAX));
    assert_eq!(peek(&most).bytes, u64::MAX);
    assert!(verify(&most).unwrap_err().is_truncated());

    let bytes = scalable().snapshot().to_vec();
    let header = &bytes[..SnapshotHeader::LEN];
    let (layers, _) = verify(&bytes).unwrap();
    let with_parts = |parts: &[&[u8]]| {
        let whole = [header, &parts.concat()].concat();
        let header = with_field(header, 24, &number(whole.len() as u64));
        verify(&[&header[..], &whole[SnapshotHeader::LEN..]].concat()).map(|(parts, _)| parts.len())
    };
    assert_eq!(with_parts(&layers).unwrap(), layers.len());
    let text = format!(
        "the header declares {0} filters, but {1} follow",
        layers.len(),
        layers.len() - 1
    );
    assert_eq!(with_parts(&layers[1..]).unwrap_err().to_string(), text);
    assert!(with_parts(&[]).is_err());
    // A filter of several filters is no part, so hostile bytes cannot nest.
    let mut nested = layers.clone();
    nested[0] = &bytes;
    let error = with_parts(&nested).unwrap_err().to_string();
    assert!(error.starts_with("the bytes are of kind 2 (a ScalableBloom), not 1"));
    // Each part is whole.
    let mut part = layers[1].to_vec();
    part[200] ^= 1;
    let mut corrupt = layers.clone();
    corrupt[1] = &part;
    assert!(with_parts(&corrupt).is_err());
}
