//! Bytes that are no split-block filter: whatever they are, reading ends in an error that says so.

use lanebloom_formats::splitblock::{Header, Milvus};
use lanebloom_formats::{ReadError, SplitBlockBloom, SplitBlockView};

fn problem<T>(read: Result<T, ReadError>) -> String {
    match read {
        Ok(_) => panic!("it was read"),
        Err(error) => error.to_string(),
    }
}

/// Every beginning of a file is too short, for headers of each length.
#[test]
fn beginnings_are_truncated() {
    for (bytes, header) in [(32, 15), (64, 16), (8192, 17), (1 << 20, 18)] {
        let file = SplitBlockBloom::with_bytes(bytes).unwrap().to_parquet().unwrap();
        assert_eq!(Header::parse(&file).unwrap().header_bytes(), header);
        for len in (0..header + 3).chain([file.len() - 1]) {
            let error = SplitBlockBloom::from_parquet(&file[..len]).unwrap_err();
            assert!(error.is_truncated(), "{len} of {bytes}: {error}");
        }
    }
}

/// parquet-java with `parquet.bloom.filter.max.bytes=10000` writes 10,000 bytes, and uses 312
/// blocks of them.
#[test]
fn a_part_of_a_block_at_the_end_is_not_used() {
    let filter = SplitBlockBloom::with_bytes(312 * 32).unwrap();
    filter.insert_all(0..500_i64);
    let file = [&header(&[], &[0xa0, 0x9c, 0x01]), &filter.to_bitset()[..], &[0xff; 16]].concat();
    let parsed = Header::parse(&file).unwrap();
    assert_eq!((parsed.blocks(), parsed.bitset_bytes()), (312, 9984));
    assert_eq!(SplitBlockBloom::from_parquet(&file).unwrap(), filter);
    let bitset = &file[parsed.header_bytes()..][..parsed.bitset_bytes()];
    assert!(SplitBlockView::new(bitset).unwrap().contains(&7_i64));
    // The length is that of the file.
    let whole = file.len();
    for len in [whole - 1, whole - 16] {
        assert!(SplitBlockBloom::from_parquet(&file[..len]).unwrap_err().is_truncated());
    }
    let longer = [&file[..], b"more"].concat();
    assert_eq!(
        problem(SplitBlockBloom::from_parquet(&longer)),
        format!(
            "the filter's header says {} + 10000 bytes, and there are {}",
            whole - 10_000,
            whole + 4
        )
    );
    let (read, rest) = SplitBlockBloom::from_parquet_prefix(&longer).unwrap();
    assert_eq!((read, rest), (filter, &b"more"[..]));
}

#[test]
fn a_rate_is_kept_or_refused() {
    let sizes = [0, 1, 1000, 100_000, 1_000_000, 40_000_000];
    for (keys, rate) in sizes.into_iter().zip([0.5, 1e-9, 0.01, 0.01, 1e-5, 0.01]) {
        let filter = SplitBlockBloom::with_parquet_rate(keys, rate).unwrap();
        assert!(filter.false_positive_rate() <= rate && filter.blocks().is_power_of_two());
        assert!(filter.to_parquet().is_ok() && filter.expected_keys() == keys);
        let fewest = SplitBlockBloom::with_capacity(keys, rate).unwrap();
        assert_eq!(filter.blocks(), fewest.blocks().next_power_of_two());
    }
    for (keys, rate) in [(120_000_000, 0.01), (usize::MAX, 0.01), (1, 1e-300)] {
        let error = SplitBlockBloom::with_parquet_rate(keys, rate).unwrap_err().to_string();
        let text = format!("a Parquet filter has at most 134217728 bytes, which keep a rate of {rate:?} for ");
        assert!(
            error.starts_with(&text) && error.contains(&format!("not for {keys}")),
            "{error}"
        );
    }
    for rate in [0.0, 1.0, f64::NAN] {
        let error = SplitBlockBloom::with_parquet_rate(9, rate).unwrap_err().to_string();
        assert!(error.contains("is not between 0 and 1"), "{error}");
    }
}

/// The header with another number of bytes, and with fields that are not Parquet's before it.
fn header(before: &[u8], size: &[u8]) -> Vec<u8> {
    let unions = [0x1c, 0x1c, 0, 0].repeat(3);
    [before, &[0x05, 2], size, &unions, &[0]].concat()
}

#[test]
fn headers_that_are_none_are_errors() {
    let parse = |before: &[u8], size: &[u8]| Header::parse(&header(before, size));
    assert_eq!(parse(&[], &[0x40]).unwrap().blocks(), 1);
    // 2^31 - 32 bytes are the most, in zigzag 2^32 - 64.
    let most = parse(&[], &[0xc0, 0xff, 0xff, 0xff, 0x0f]).unwrap();
    assert_eq!(most.bitset_bytes(), (1 << 31) - 32);
    for (size, text) in [
        (&[0_u8][..], "0 bytes are less than a block of 32 bytes"),
        (&[0x20], "16 bytes are less than a block of 32 bytes"),
        (&[0x3f], "the filter's header says -32 bytes"),
        (
            &[0x80, 0x80, 0x80, 0x80, 0x10],
            "the filter's header says 2147483648 bytes",
        ),
        (&[0xff; 11], "the filter's header has a number of more than 64 bits"),
    ] {
        let error = problem(parse(&[], size));
        assert!(error.starts_with(text), "{error}");
    }

    // Fields of a later version are skipped: numbers, strings, and structs in structs. The first
    // one is number 9, the size again number 1.
    let skipped: [&[u8]; 6] = [
        &[0x91],
        &[0x93, 7],
        &[0x96, 0x80, 1],
        &[0x97, 1, 2, 3, 4, 5, 6, 7, 8],
        &[0x98, 2, b'a', b'b'],
        &[0x9c, 0x1c, 0x15, 2, 0, 0],
    ];
    for field in skipped {
        assert_eq!(parse(field, &[0x40]).unwrap().blocks(), 1, "{field:02x?}");
    }
    // Structs in structs without an end: an error, and no deep recursion.
    for byte in [0x1c, 0x5c] {
        let error = problem(Header::parse(&vec![byte; 10 << 20]));
        assert_eq!(error, "the filter's header has a field of type 12");
    }
    let endless = Header::parse(&[0x98, 0xff, 0xff, 0xff, 0xff, 0x0f]);
    assert!(endless.unwrap_err().is_truncated());

    // Another algorithm, hash or compression, or none.
    for (union, name) in [(3, "algorithm"), (7, "hash"), (11, "compression")] {
        let good = header(&[], &[0x40]);
        let mut other = good.clone();
        other[union + 1] = 0x2c;
        let text = format!("the filter's {name} is number 2, not 1");
        assert_eq!(problem(Header::parse(&other)), text);
        let none = [&good[..union], &[0x1c, 0], &good[union + 4..]].concat();
        let text = format!("the filter's header has no {name}");
        assert_eq!(problem(Header::parse(&none)), text);
    }
}

#[test]
fn milvus_envelopes_that_are_none_are_errors() {
    let says = Milvus {
        keys: 3,
        rate: 0.01,
        int64: true,
        utf8: true,
    };
    let good = SplitBlockBloom::with_bytes(64).unwrap().to_mbf1(says).unwrap();
    assert_eq!(SplitBlockBloom::from_mbf1(&good).unwrap().1, says);
    for len in 0..good.len() {
        let error = SplitBlockBloom::from_mbf1(&good[..len]).unwrap_err();
        assert!(error.is_truncated(), "{len}: {error}");
    }
    let longer = [&good[..], b"x"].concat();
    assert_eq!(
        problem(SplitBlockBloom::from_mbf1(&longer)),
        "1 bytes follow the filter"
    );
    let with = |at: usize, bytes: &[u8]| {
        let mut blob = good.clone();
        blob[at..at + bytes.len()].copy_from_slice(bytes);
        problem(SplitBlockBloom::from_mbf1(&blob))
    };
    for at in 0..8 {
        assert!(with(at, &[0xee]).ends_with("not MBF1 version 1"), "{at}");
    }
    // 128 MiB are 2^22 blocks.
    for blocks in [0, 3, (1 << 22) + 1, 1 << 23, 1 << 31] {
        let text = format!("{blocks} blocks are not a power of two of at most 4194304");
        assert_eq!(with(24, &u32::to_le_bytes(blocks)), text);
    }
    assert!(with(24, &u32::to_le_bytes(1 << 22)).starts_with("the bytes end after 96 of"));
    for at in 28..32 {
        assert!(with(at, &[4]).starts_with("the domains are"), "{at}");
    }
}

/// Bytes that are too many for a file, or have another size, are refused.
#[test]
fn sizes_that_do_not_fit_are_errors() {
    let filter = SplitBlockBloom::with_bytes((128 << 20) + 32).unwrap();
    let error = filter.to_parquet().unwrap_err().to_string();
    assert_eq!(
        error,
        "the filter's 134217760 bytes are more than the format's 134217728"
    );
    let [three, other] = [96, 64].map(|bytes| SplitBlockBloom::with_bytes(bytes).unwrap());
    let error = three.to_mbf1(Milvus {
        keys: 1,
        rate: 0.01,
        int64: true,
        utf8: false,
    });
    let text = "3 blocks are not a power of two, which Milvus needs";
    assert_eq!(error.unwrap_err().to_string(), text);
    other.insert("a");
    let error = three.union_from(&other).unwrap_err().to_string();
    assert_eq!(error, "the other filter's layout differs: 2 blocks there, 3 here");
    assert!(three.is_empty());
}
