//! Snapshots of a `FilterBank`: the bytes, and every form of reading and writing them.

use lanebloom::ConcurrentBloom;
use lanebloom::bank::{BankHeader, BankView, FilterBank, columns};
use lanebloom::codec::{self, Content, Kind, SnapshotHeader};
use lanebloom_tests::{Full, Pieces, number};

const GOLDEN: &[u8] = include_bytes!("../data/snapshot_v1_bank.bin");

/// Filters of one block; column 5 is not in use.
fn golden() -> FilterBank {
    let builder = ConcurrentBloom::builder().memory_budget(64).false_positive_rate(0.01);
    let bank = FilterBank::new(64, &builder.seed(7)).unwrap();
    for column in (0..64).filter(|&column| column != 5) {
        let keys: Vec<u64> = (0..column as u64).map(|i| number(100 * column as u64 + i)).collect();
        bank.insert_batch(column, &keys).unwrap();
        bank.insert(column, "in all").unwrap();
    }
    bank
}

/// Banks of several layouts, with two lines per key too, and of columns that do not fill a line.
fn banks() -> Vec<FilterBank> {
    let of = |columns, keys, rate, lines| {
        let builder = ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(rate);
        let bank = FilterBank::new(columns, &builder.lines_per_key(lines)).unwrap();
        for i in 0..2 * columns as u64 {
            bank.insert(number(i) as usize % columns, &i).unwrap();
        }
        bank
    };
    vec![
        of(64, 100, 0.01, 1),
        of(600, 20, 0.01, 1),
        of(200, 60, 1e-4, 2),
        of(1000, 300, 1e-3, 1),
    ]
}

#[test]
fn the_bytes_are_those_of_version_1() {
    let bank = golden();
    assert!(bank.snapshot().to_vec() == GOLDEN);
    assert!(FilterBank::from_bytes(GOLDEN).unwrap().0 == bank);
    let (view, rest) = BankView::from_bytes(GOLDEN).unwrap();
    assert!(view == bank && rest.is_empty() && view.bytes() == GOLDEN && view.hasher().seed() == 7);
    codec::verify(view.bytes()).unwrap();
}

/// Their bits for the columns in use are longer than a part of the bytes that is read at once.
#[test]
fn banks_of_many_columns_are_read() {
    for (columns, blocks) in [(33_728, 1), (32_832, 15), (524_352, 1)] {
        let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
        let bank = FilterBank::new(columns, &builder.false_positive_rate(0.01)).unwrap();
        bank.insert(columns - 1, "a").unwrap();
        let bytes = bank.snapshot().to_vec();
        assert!(bytes.len() < 64 << 20 && bank.blocks() == blocks);
        assert!(FilterBank::from_bytes(&bytes).unwrap().0 == bank);
        assert!(FilterBank::read_from(&bytes[..], bytes.len()).unwrap() == bank);
        assert!(BankView::from_bytes(&bytes).unwrap().0 == bank);
    }
}

/// By `docs/FORMAT.md`: bit `c % 64` of word `c / 64` of row `r` of block `b` is bit `r` of block
/// `b` of filter `c`. After the rows, a bit for each column in use.
#[test]
fn the_body_has_the_bits_of_the_filters() {
    for bank in banks() {
        let bytes = bank.snapshot().to_vec();
        let body = &bytes[128..];
        let (columns, blocks) = (bank.columns(), bank.blocks());
        for column in 0..columns {
            let filter = bank.to_filter(column).unwrap().snapshot().to_vec();
            for bit in 0..512 * blocks {
                let in_filter = filter[128 + bit / 8] >> (bit % 8) & 1;
                let at = bit * columns + column;
                assert_eq!(body[at / 8] >> (at % 8) & 1, in_filter);
            }
            let at = 512 * blocks * columns + column;
            let in_use = body[at / 8] >> (at % 8) & 1 == 1;
            assert_eq!(in_use, bank.columns_in_use().any(|used| used == column));
        }
        assert_eq!(
            bytes.len(),
            192 + bank.memory_bytes() + (columns / 8).next_multiple_of(64)
        );
    }
}

#[test]
fn every_form_writes_and_reads_the_same() {
    for bank in banks() {
        let bytes = bank.snapshot().to_vec();
        let mut stream = Vec::new();
        bank.snapshot().write_to(&mut stream).unwrap();
        assert!(stream == bytes && bank.snapshot().len() == bytes.len());
        let limit = bank.memory_bytes();
        let read = FilterBank::read_from(Pieces::new(&bytes, None), limit).unwrap();
        assert!(read == bank && read.len() == bank.len() && read.expected_keys() == bank.expected_keys());
        let error = FilterBank::read_from(&bytes[..], limit - 1).unwrap_err().to_string();
        assert!(
            error.ends_with(&format!("more than the limit of {} bytes", limit - 1)),
            "{error}"
        );
        assert!(bank.snapshot().write_to(Full(300)).is_err());
        // At any address, also beside other bytes.
        for offset in 0..9 {
            let bytes = [&[1; 8][..offset.min(8)], &bytes, b"more"].concat();
            let (view, rest) = BankView::from_bytes(&bytes[offset.min(8)..]).unwrap();
            assert!(view == bank && rest == b"more");
            for key in (0..300u64).step_by(7) {
                assert!(view.which(&key).eq(bank.which(&key)) && view.count(&key) == bank.count(&key));
            }
        }
    }
}

/// The header alone, and the blocks of a key, give the answer of the whole.
#[test]
fn the_ranges_of_a_key_are_enough() {
    for bank in banks() {
        let bytes = bank.snapshot().to_vec();
        let header = BankHeader::from_bytes(&bytes[..SnapshotHeader::LEN]).unwrap();
        let mut out = vec![7; header.columns() / 64];
        for key in 0..300u64 {
            let ranges: Vec<_> = header.ranges(&key).collect();
            assert!(
                ranges
                    .iter()
                    .all(|range| range.end - range.start == 64 * bank.columns() as u64)
            );
            let range = |range: &std::ops::Range<u64>| &bytes[range.start as usize..range.end as usize];
            let blocks: Vec<&[u8]> = ranges.iter().map(range).collect();
            let any = header.which_into(&key, &blocks, &mut out).unwrap();
            assert!(columns(&out).eq(bank.which(&key)) && any == bank.any(&key));
            for wrong in [&blocks[1..], &[&blocks[0][1..]], &[blocks[0]; 3]] {
                header.which_into(&key, wrong, &mut out).unwrap_err();
            }
        }
        assert!(BankHeader::from_bytes(&bytes[..127]).unwrap_err().is_truncated());
    }
}

#[test]
fn the_header_tells_what_it_is() {
    let header = SnapshotHeader::peek(GOLDEN).unwrap();
    assert_eq!(
        (header.kind, header.kind.to_string().as_str()),
        (Kind::Bank, "FilterBank")
    );
    assert_eq!(header.hasher.unwrap().to_string(), "Murmur3 with seed 7");
    let of_rows = |content| {
        matches!(
            content,
            Content::Blocks {
                columns: Some(64),
                blocks: 1,
                lines_per_key: 1,
                ..
            }
        )
    };
    assert!(of_rows(header.content) && header.bytes == GOLDEN.len() as u64);
    assert_eq!(header.expected_keys, Some(golden().expected_keys() as u64));
    assert_eq!(codec::verify(GOLDEN).unwrap(), (vec![GOLDEN], &[][..]));
}
