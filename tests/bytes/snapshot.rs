//! Snapshots, views and deltas: golden files both ways, every truncation and every corrupted byte.
//! (`fields.rs` has every absurd field.)

use lanebloom::codec::{self, Identity, SnapshotHeader};
use lanebloom::{
    BloomView, ConcurrentBloom, FastHash, Hashed, KeyHasher, Murmur3, Prehashed, SipHash13, SnapshotError, bloom,
    windowed,
};
use lanebloom_tests::{Pieces, Time, WORDS, block, number, products, with_field};
use proptest::prelude::*;
use std::hash::{BuildHasher, Hasher};
use std::io;
use twox_hash::XxHash3_64;

const HEADER: usize = 128;

/// A `BuildHasher` that everybody can compute: FNV-1a.
#[derive(Clone, Debug)]
struct Fnv;

struct FnvHasher(u64);

impl BuildHasher for Fnv {
    type Hasher = FnvHasher;
    fn build_hasher(&self) -> FnvHasher {
        FnvHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for FnvHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

fn empty(words: usize, blocks: usize, keys: usize) -> ConcurrentBloom {
    let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
    builder.expected_keys(keys).words_per_key(words).build().unwrap()
}

/// The filter as it is, with other hashing.
fn with_hasher<S: KeyHasher>(words: usize, blocks: usize, keys: usize, hasher: S) -> ConcurrentBloom<S> {
    let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
    let builder = builder.expected_keys(keys).words_per_key(words);
    builder.hasher(hasher).build().unwrap()
}

fn filled(words: usize, blocks: usize) -> ConcurrentBloom {
    let filter = empty(words, blocks, 40 * blocks);
    let hashes: Vec<u64> = (0..20 * blocks as u64).map(number).collect();
    filter.insert_batch(Hashed::slice(&hashes));
    filter
}

fn insert_keys<S: KeyHasher>(filter: &ConcurrentBloom<S>, keys: usize) {
    for i in 0..keys {
        filter.insert(&format!("key {i}"));
    }
}

/// Written by version 1, from its description, by another program: `data/snapshots_v1.py`.
macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!("../data/snapshot_v1_", $name, ".bin"))
    };
}

fn assert_golden<S: KeyHasher + Clone + std::fmt::Debug>(bytes: &[u8], filter: &ConcurrentBloom<S>) {
    insert_keys(filter, filter.expected_keys() / 2);
    let hasher = filter.hasher().clone();
    assert!(filter.snapshot().to_vec() == bytes, "{filter:?} is written otherwise");
    let (same, rest) = codec::from_bytes::<ConcurrentBloom<_>>(bytes, hasher.clone()).unwrap();
    assert!(same == *filter && rest.is_empty());
    assert_eq!(same.expected_keys(), filter.expected_keys());
    assert!(codec::read_from::<ConcurrentBloom<_>>(bytes, filter.memory_bytes(), hasher.clone()).unwrap() == *filter);
    let (view, _) = codec::view::<BloomView<_>>(bytes, hasher).unwrap();
    codec::verify(view.bytes()).unwrap();
    assert!(view.to_filter().unwrap() == *filter);
    let keys = (0..filter.expected_keys() / 2).map(|i| format!("key {i}"));
    assert!(keys.into_iter().all(|key| same.contains(&key) && view.contains(&key)));
}

#[test]
fn version_1_is_read_and_written() {
    assert_golden(golden!("one"), &empty(1, 9, 900));
    let builder = ConcurrentBloom::builder().memory_budget(64 * 21).expected_keys(1000);
    assert_golden(golden!("two"), &builder.clone().seed(7).build().unwrap());
    let four = ConcurrentBloom::builder().memory_budget(64 * 300).expected_keys(9000);
    assert_golden(golden!("four"), &four.words_per_key(4).seed(u32::MAX).build().unwrap());
    assert_golden(golden!("eight"), &empty(8, 5, 60));
    let two_lines = ConcurrentBloom::builder().memory_budget(64 * 22).expected_keys(400);
    assert_golden(
        golden!("two_lines"),
        &two_lines.lines_per_key(2).words_per_key(4).build().unwrap(),
    );
    let key = std::array::from_fn(|i| i as u8);
    assert_golden(golden!("siphash"), &with_hasher(2, 21, 1000, SipHash13::with_key(key)));
    assert_golden(golden!("other"), &with_hasher(2, 21, 1000, Fnv));
    // Murmur3 by itself, its seed from the file.
    assert_eq!(
        ConcurrentBloom::from_bytes(golden!("two")).unwrap().0.hasher().seed(),
        7
    );
    let four = ConcurrentBloom::read_from(&golden!("four")[..], 1 << 20).unwrap();
    assert_eq!(four.hasher().seed(), u32::MAX);
}

/// The tables of docs/FORMAT.md: the products of a hash, and sector and positions for each number
/// of words. (`snapshots_v1.py` checks the same tables.)
#[test]
fn the_vectors_of_the_description_hold() {
    let description = include_str!("../../docs/FORMAT.md");
    let rows = |fields| {
        let rows = description.lines().filter(|line| line.starts_with("| `"));
        let rows = rows.map(|row| row.trim_matches(['|', ' ']).split(" | ").collect::<Vec<_>>());
        rows.filter(move |row| row.len() == fields)
    };
    let number = |text: &str| u64::from_str_radix(text.trim_matches('`'), 16).unwrap();
    for row in rows(4) {
        let [hash, block, pattern, second] = [0, 1, 2, 3].map(|i| number(row[i]));
        assert_eq!(products(hash), [block, pattern]);
        // The two halves of a filter are those of one line, by each of its hashes.
        let build = |blocks: usize, lines: usize| {
            let builder = ConcurrentBloom::builder().memory_budget(64 * blocks).expected_keys(100);
            let builder = builder.lines_per_key(lines).words_per_key(4 * lines);
            builder.hasher(Prehashed).build().unwrap()
        };
        let whole = with_field(&build(20, 2).snapshot().to_vec(), 34, &[6]);
        let whole: ConcurrentBloom<Prehashed> = codec::from_bytes::<ConcurrentBloom<_>>(&whole, Prehashed).unwrap().0;
        whole.insert(&Hashed(hash));
        let bits = |hash| {
            let half = with_field(&build(10, 1).snapshot().to_vec(), 34, &[6]);
            let half = codec::from_bytes::<ConcurrentBloom<_>>(&half, Prehashed).unwrap().0;
            half.insert(&Hashed(hash));
            let bytes = half.snapshot().to_vec();
            bytes[128..bytes.len() - 64].to_vec()
        };
        let expected = [bits(hash), bits(second)].concat();
        let bytes = whole.snapshot().to_vec();
        assert!(bytes[128..bytes.len() - 64] == expected, "{hash:#x}");
    }
    for row in rows(5) {
        let hash = number(row[0]);
        for (words, cell) in WORDS.into_iter().zip(&row[1..]) {
            let (sector, positions) = cell.split_once(": ").unwrap();
            let first = 64 * words * sector.parse::<usize>().unwrap();
            let positions: Vec<usize> = positions
                .split(' ')
                .map(|at| first + at.parse::<usize>().unwrap())
                .collect();
            assert_eq!(positions.len(), 8);
            for bits in 1..=8 {
                let snapshot = with_field(&empty(words, 1000, 50_000).snapshot().to_vec(), 34, &[bits]);
                let filter = match ConcurrentBloom::from_bytes(&snapshot) {
                    Ok((filter, _)) => filter,
                    Err(_) => {
                        assert!(words == 8 && bits % 2 == 1);
                        continue;
                    }
                };
                assert_eq!(
                    (filter.layout().words_per_key, filter.layout().bits_per_line),
                    (words, bits.into())
                );
                filter.insert(&Hashed(hash));
                let mut expected = vec![0; 64_000];
                for position in &positions[..bits.into()] {
                    expected[position / 8] |= 1 << (position % 8);
                }
                assert!(
                    filter.snapshot().to_vec()[128..64_128] == expected,
                    "{hash:#x}, {words} words, {bits} bits"
                );
            }
        }
    }
    assert_eq!((rows(4).count(), rows(5).count()), (4, 4));
}

#[test]
fn a_delta_of_version_1_is_read_and_written() {
    let golden = include_bytes!("../data/delta_v1_four.bin");
    let (base, _) = ConcurrentBloom::from_bytes(golden!("four")).unwrap();
    let more = base.clone();
    for i in 0..12_000 {
        let hash = more.hash(&format!("key {i}"));
        if block(hash, more.layout().blocks) % 140 < 2 {
            more.insert(&Hashed(hash));
        }
    }
    assert!(more.with(&base).unwrap().delta() == golden);
    let replica = base.clone();
    assert!(bloom::apply_deltas(&replica, golden).unwrap());
    assert!(replica == more && replica != base);
    assert!(!bloom::apply_deltas(&replica, golden).unwrap());
    // Deltas before one that is incomplete stay.
    let replica = base.clone();
    for end in [1, 63, 64, golden.len() - 1] {
        let twice = [&golden[..], &golden[..end]].concat();
        let error = bloom::apply_deltas(&replica, &twice).unwrap_err();
        assert!(error.is_truncated() && replica == more);
    }
}

/// The hasher's number, seed and fingerprint are where `docs/FORMAT.md` says, and a filter and a
/// view are by that hasher. (`contract.rs` and `any.rs` have the hashers of all kinds.)
#[test]
fn a_snapshot_names_its_hasher_and_is_read_by_it() {
    fn refused<S: KeyHasher + Clone>(bytes: &[u8], hasher: S, there: &str, here: &str) {
        let read = codec::from_bytes::<ConcurrentBloom<_>>(bytes, hasher.clone()).map(drop);
        for result in [read, codec::view::<BloomView<_>>(bytes, hasher).map(drop)] {
            let error = result.unwrap_err();
            assert!(error.is_incompatible() && !error.is_truncated());
            assert_eq!(error.to_string(), format!("the hasher differs: {there}, {here}"));
        }
    }
    let fast = FastHash::with_seed(0x0102_0304);
    let filter = with_hasher(2, 3, 100, fast);
    let bytes = filter.snapshot().to_vec();
    assert_eq!(bytes[11..16], [3, 4, 3, 2, 1]);
    assert_eq!(bytes[16..24], fast.hash_key("lanebloom hasher print").to_le_bytes());
    let header = SnapshotHeader::peek(&bytes).unwrap();
    let name = "FastHash with seed 16909060";
    assert_eq!(header.hasher.unwrap().to_string(), name);
    assert!(codec::from_bytes::<ConcurrentBloom<_>>(&bytes, fast).unwrap().0 == filter);
    let there = format!("{name} there");
    refused(&bytes, Murmur3::default(), &there, "Murmur3 with seed 0 here");
    refused(&bytes, FastHash::default(), &there, "FastHash with seed 0 here");
    let error = codec::view::<BloomView<_>>(&bytes, Prehashed).unwrap_err().to_string();
    assert_eq!(error, format!("the hasher differs: {there}, Prehashed here"));
    refused(&bytes, Fnv, &there, "a BuildHasher here");
    let one = with_hasher(2, 3, 100, FastHash::with_seed(1));
    assert!(one.union_from(&filter).is_err() && one.with(&filter).map(|pair| pair.delta()).is_err());

    let hashed = ConcurrentBloom::builder().expected_keys(100).hasher(Prehashed).build();
    let bytes = hashed.unwrap().snapshot().to_vec();
    assert_eq!(bytes[11..24], [4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let header = SnapshotHeader::peek(&bytes).unwrap();
    assert_eq!((header.hasher, header.fingerprint), (Some(Identity::Prehashed), 0));

    let sip = |key| SipHash13::with_key([key; 16]);
    let bytes = with_hasher(2, 3, 100, sip(1)).snapshot().to_vec();
    refused(&bytes, sip(2), "SipHash-1-3 in both", "with different keys");
    assert!(codec::view::<BloomView<_>>(&bytes, sip(1)).is_ok());
    // Without one, Murmur3 by any seed is meant.
    let error = BloomView::from_bytes(&bytes).unwrap_err().to_string();
    assert_eq!(error, "the hasher differs: SipHash-1-3 there, Murmur3 with seed 0 here");
    let seeded = with_hasher(2, 3, 100, Murmur3::with_seed(5)).snapshot().to_vec();
    assert!(BloomView::from_bytes(&seeded).is_ok());
}

/// A view needs this to be mapped in huge pages: a file system keeps a file in them where it was
/// written in whole ones.
#[test]
fn a_snapshot_is_written_in_pieces_of_2_mib() {
    const PIECE: usize = 2 << 20;

    #[derive(Default)]
    struct Written {
        lens: Vec<usize>,
        all: Vec<u8>,
    }

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.lens.push(bytes.len());
            self.all.extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    for bytes in [2 * PIECE - 192, 2 * PIECE - 128, 5 << 20] {
        let filter = ConcurrentBloom::builder().memory_budget(bytes).build().unwrap();
        insert_keys(&filter, 1000);
        let mut pieces = Written::default();
        filter.snapshot().write_to(&mut pieces).unwrap();
        assert!(pieces.all == filter.snapshot().to_vec());
        let len = filter.snapshot().len();
        let expected = (0..len).step_by(PIECE).map(|at| PIECE.min(len - at));
        assert_eq!(pieces.lens, expected.collect::<Vec<_>>());
    }
}

mod deltas {
    use super::*;

    const DELTA_HEADER: usize = 64;

    /// With sums that are right.
    fn delta_of(filter: &ConcurrentBloom, lines: u64, body: &[u8]) -> Vec<u8> {
        let mut delta = filter.with(filter).unwrap().delta();
        assert_eq!(delta.len(), DELTA_HEADER);
        delta.extend_from_slice(body);
        let len = delta.len() as u64;
        delta[24..32].copy_from_slice(&len.to_le_bytes());
        delta[48..56].copy_from_slice(&lines.to_le_bytes());
        sum(&mut delta);
        delta
    }

    fn sum(delta: &mut [u8]) {
        let summed = [&delta[..56], &delta[DELTA_HEADER..]].concat();
        delta[56..64].copy_from_slice(&XxHash3_64::oneshot(&summed).to_le_bytes());
    }

    /// The documented size: 8 to 10 bytes for a fresh key with six bits in two words.
    #[test]
    fn a_delta_is_compact() {
        let filter = ConcurrentBloom::builder().expected_keys(1_000_000).build().unwrap();
        let base = filter.clone();
        (0..100u64).for_each(|key| _ = filter.insert(&key));
        let bytes = filter.with(&base).unwrap().delta().len() - DELTA_HEADER;
        assert!((800..=1000).contains(&bytes), "{bytes}");
        // However many there are, no more than the filter and an eighth.
        let hashes: Vec<u64> = (0..1_000_000).map(number).collect();
        filter.insert_batch(Hashed::slice(&hashes));
        let bytes = filter.with(&base).unwrap().delta().len();
        assert!(
            bytes < filter.memory_bytes() * 5 / 4,
            "{bytes} for {}",
            filter.memory_bytes()
        );
    }

    #[test]
    fn another_filters_delta_is_refused() {
        let filter = empty(2, 100, 1000);
        let delta = {
            let more = filter.clone();
            more.insert("a");
            more.with(&filter).unwrap().delta()
        };
        let shape = |filter: &ConcurrentBloom| {
            let layout = filter.layout();
            format!(
                "{} blocks, 2 words per key, {} bits per line",
                layout.blocks, layout.bits_per_line
            )
        };
        let of_others = [empty(2, 101, 1000), empty(2, 100, 5000)].map(|other| {
            let text = format!("layout differs: {} there, {} here", shape(&filter), shape(&other));
            (other, text)
        });
        let seeded = with_hasher(2, 100, 1000, Murmur3::with_seed(9));
        let text = "hasher differs: Murmur3 with seed 0 there, Murmur3 with seed 9 here";
        for (other, expected) in of_others.into_iter().chain([(seeded, text.into())]) {
            let error = bloom::apply_deltas(&other, &delta).unwrap_err();
            assert_eq!(error.to_string(), format!("the {expected}"));
            assert!(error.is_incompatible() && other.is_empty());
            assert!(other.with(&filter).is_err() && filter.with(&other).is_err());
        }
        let [sip, twin] = [1, 2].map(|key| with_hasher(2, 100, 1000, SipHash13::with_key([key; 16])));
        assert_eq!(
            bloom::apply_deltas(&sip, &delta).unwrap_err().to_string(),
            "the hasher differs: Murmur3 with seed 0 there, SipHash-1-3 here"
        );
        let own = sip.with(&sip).unwrap().delta();
        assert!(sip.with(&twin).is_err());
        assert_eq!(
            bloom::apply_deltas(&twin, &own).unwrap_err().to_string(),
            "the hasher differs: SipHash-1-3 in both, with different keys"
        );
        // Neither is taken for the other.
        let snapshot = filter.snapshot().to_vec();
        assert_eq!(
            bloom::apply_deltas(&filter, &snapshot).unwrap_err().to_string(),
            "the bytes are of kind 1 (a ConcurrentBloom), not 129 (a delta of a ConcurrentBloom)"
        );
        assert!(ConcurrentBloom::from_bytes(&[&delta[..], &[0; 64]].concat()).is_err());
    }

    #[test]
    fn every_absurd_body_is_an_error() {
        let filter = empty(2, 300, 1000);
        let other = "the number of lines is not the one that its header has";
        let ends = "it ends within a line";
        let none = "the filter has no such block";
        let order = "a bit is not above the one before it, or not below 64";
        let (beyond, first) = ([0xff; 12], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        let (far, next) = ([&first[..], &[1, 0x80]].concat(), [&[0, 1, 0x80][..], &first].concat());
        for (lines, body, at, problem) in [
            (0, &[0, 1, 0x80][..], 67, other),
            (2, &[0, 1, 0x80], 67, other),
            (1, &[], 64, other),
            (1, &[0], 65, ends),
            (1, &[0x80], 65, ends),
            (1, &[0, 1], 66, ends),
            (1, &[0, 3, 0x80], 67, ends),
            (1, &[0, 1, 5], 67, ends),
            (1, &[0, 0], 66, "a line has no words"),
            (1, &[0x80, 0, 1, 0x80], 66, "a number is longer than its shortest form"),
            (1, &[0xac, 2, 1, 0x80], 66, none),
            (2, &[0xab, 2, 1, 0x80, 0, 1, 0x80], 69, none),
            (1, &far, 73, none),
            (2, &next, 76, none),
            (1, &beyond, 73, "a number beyond 2^63"),
            (1, &[0, 1, 5, 5 | 0x80], 68, order),
            (1, &[0, 1, 5, 4 | 0x80], 68, order),
            (1, &[0, 1, 64 | 0x80], 67, order),
            (1, &[0, 1, 5, 64], 68, order),
            (
                1,
                &[0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9 | 0x80],
                75,
                "a word of more than 8 bits is written bit by bit",
            ),
            (1, &[0, 1, 64, 1, 2, 3], 67, "it ends within a word"),
            (
                1,
                &[0, 1, 64, 0xff, 0, 0, 0, 0, 0, 0, 0],
                75,
                "a word of at most 8 bits is written whole",
            ),
        ] {
            let delta = delta_of(&filter, lines, body);
            let text = bloom::apply_deltas(&filter, &delta).unwrap_err().to_string();
            let expected = format!("the delta is invalid at byte {at}: {problem}");
            assert_eq!(text, expected, "{body:?}");
            assert_eq!(filter.statistics().fill_ratio, 0.0);
        }
        // The last block, all of its last word.
        let whole = [&[0xab, 2, 0x80, 64][..], &[0xff; 8]].concat();
        assert!(bloom::apply_deltas(&filter, &delta_of(&filter, 1, &whole)).unwrap());
        assert_eq!(filter.snapshot().to_vec()[HEADER + 299 * 64 + 56..][..8], [0xff; 8]);
        assert!(
            filter.snapshot().to_vec()[HEADER..HEADER + 299 * 64 + 56]
                .iter()
                .all(|byte| *byte == 0)
        );

        let mut short = delta_of(&filter, 0, &[]);
        short[24..32].copy_from_slice(&63u64.to_le_bytes());
        assert_eq!(
            bloom::apply_deltas(&filter, &short).unwrap_err().to_string(),
            "the header declares a length of 63 bytes, but its other fields need 64"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any deltas, in any order, some several times: the union.
        #[test]
        fn deltas_commute(
            writers in proptest::collection::vec(proptest::collection::vec((0u16..2000, any::<bool>()), 0..60), 1..4),
            (words, blocks) in prop::sample::select(&[(1, 1), (2, 40), (4, 200), (8, 9000)][..]),
            order in any::<proptest::sample::Index>(),
            seed in any::<u64>(),
        ) {
            let empty = empty(words, blocks, 40 * blocks);
            let ones = |filter: &ConcurrentBloom| (filter.statistics().fill_ratio * 512.0 * blocks as f64).round();
            let (mut deltas, union) = (Vec::new(), empty.clone());
            for keys in &writers {
                let (filter, sent) = (empty.clone(), empty.clone());
                for (key, push) in keys {
                    filter.insert(key);
                    union.insert(key);
                    if *push {
                        let delta = filter.with(&sent).unwrap().delta();
                        let (alone, before) = (empty.clone(), ones(&sent));
                        bloom::apply_deltas(&alone, &delta).unwrap();
                        prop_assert_eq!(bloom::apply_deltas(&sent, &delta).unwrap(), delta.len() > DELTA_HEADER);
                        // The delta has what lacks, and only that.
                        prop_assert!(sent == filter && ones(&alone) + before == ones(&filter));
                        deltas.push(delta);
                    }
                }
                deltas.push(filter.with(&sent).unwrap().delta());
            }
            // All of them, shuffled, and as many again.
            let mut turns: Vec<usize> = (0..deltas.len()).collect();
            for i in 0..turns.len() {
                turns.swap(i, (number(seed.wrapping_add(i as u64)) % (i as u64 + 1)) as usize);
            }
            turns.extend((0..deltas.len()).map(|i| number(seed ^ i as u64) as usize % deltas.len()));
            turns.push(order.index(deltas.len()));
            let replica = empty.clone();
            for turn in &turns {
                bloom::apply_deltas(&replica, &deltas[*turn]).unwrap();
            }
            prop_assert!(replica == union);
            let at_once = empty.clone();
            bloom::apply_deltas(&at_once, &turns.iter().flat_map(|turn| deltas[*turn].clone()).collect::<Vec<_>>()).unwrap();
            prop_assert!(at_once == union);
        }

        /// Whatever the body is: an error and nothing added, or bits that are written the same way.
        #[test]
        fn any_body_is_added_or_refused(
            lines in 0u64..3,
            body in proptest::collection::vec(prop_oneof![0u8..8, 0x80u8..0x88, Just(64), any::<u8>()], 0..20),
        ) {
            let filter = empty(2, 3, 10);
            let delta = delta_of(&filter, lines, &body);
            let base = filter.clone();
            if bloom::apply_deltas(&filter, &delta).is_ok() {
                prop_assert_eq!(filter.with(&base).unwrap().delta(), delta);
            } else {
                prop_assert!(filter == base);
            }
        }
    }
}

mod growing {
    use super::*;
    use lanebloom::ScalableBloom;

    fn read_whole(bytes: &[u8]) -> [Result<ScalableBloom, SnapshotError>; 2] {
        [
            ScalableBloom::from_bytes(bytes).map(|(filter, _)| filter),
            ScalableBloom::read_from(bytes, usize::MAX),
        ]
    }

    #[test]
    fn version_1_is_read_and_written() {
        let golden = include_bytes!("../data/snapshot_v1_scalable.bin");
        for filter in read_whole(golden) {
            let filter = filter.unwrap();
            assert!(filter.snapshot().to_vec() == golden);
            assert!((0..150).all(|i| filter.contains(&format!("key {i}"))));
            let layers: Vec<_> = filter
                .layers()
                .map(|layer| (layer.expected_keys(), layer.layout().blocks))
                .collect();
            assert_eq!(layers, [(50, 2), (100, 3)]);
            assert_eq!((filter.hint(), filter.is_full()), (0, false));
            assert_eq!(filter.max_false_positive_rate(), 0.02);
            assert_eq!(filter.hasher().seed(), 3);
            // A filter that is built the same way is compatible: what was asked for is all there.
            let builder = ScalableBloom::builder()
                .expected_keys(50)
                .false_positive_rate(0.02)
                .seed(3);
            let built = builder.expansion(2).tightening_ratio(0.5).build().unwrap();
            assert!(built.union_from(&filter).is_ok());
            assert!((0..150).all(|i| built.contains(&format!("key {i}"))));
        }
        let golden = include_bytes!("../data/snapshot_v1_scalable_hint.bin");
        for filter in read_whole(golden) {
            let filter = filter.unwrap();
            assert!(filter.snapshot().to_vec() == golden);
            assert!((0..250).all(|i| filter.contains(&format!("key {i}"))));
            let layers: Vec<_> = filter
                .layers()
                .map(|layer| (layer.expected_keys(), layer.layout().lines_per_key))
                .collect();
            assert_eq!(layers, [(50, 1), (400, 2)]);
            assert_eq!(
                (filter.hint(), filter.max_bytes(), filter.max_layers()),
                (450, 100_000, 5)
            );
        }
    }
}

mod forgetting {
    use super::*;
    use lanebloom::WindowedBloom;
    use lanebloom::windowed::Builder;
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    fn builder() -> Builder {
        WindowedBloom::builder().expected_keys(200).false_positive_rate(0.05)
    }

    fn read_whole(bytes: &[u8]) -> [Result<WindowedBloom, SnapshotError>; 2] {
        [
            WindowedBloom::from_bytes(bytes).map(|(filter, _)| filter),
            WindowedBloom::read_from(bytes, usize::MAX),
        ]
    }

    /// With a clock.
    fn read_at(bytes: &[u8], time: &Time) -> WindowedBloom {
        let hasher = Murmur3::default();
        let (one, rest) = windowed::from_bytes(bytes, hasher, time.clock()).unwrap();
        assert!(rest.is_empty());
        let other = windowed::read_from(bytes, usize::MAX, hasher, time.clock()).unwrap();
        assert!(one.snapshot().to_vec() == other.snapshot().to_vec());
        one
    }

    #[test]
    fn version_1_is_read_and_written() {
        let golden = include_bytes!("../data/snapshot_v1_windowed.bin");
        let time = Time::at(65 * SECOND);
        let filter = read_at(golden, &time);
        assert!(filter.snapshot().to_vec() == golden);
        assert_eq!((filter.generations(), filter.expected_keys()), (4, 300));
        assert_eq!(filter.window(), Some(Duration::from_secs(30)));
        let found = |remainder: usize| {
            (remainder..90)
                .step_by(3)
                .filter(|i| filter.contains(&format!("key {i}")))
                .count()
        };
        assert_eq!([0, 1, 2].map(found), [30; 3]);
        // Without a clock it is refused.
        for result in read_whole(golden) {
            let error = result.unwrap_err();
            assert!(
                error.is_incompatible() && error.to_string().contains("read it with that one"),
                "{error}"
            );
        }
        // The generation of 30 to 40 s is forgotten at 70, that of 50 to 60 at 90, the newest at
        // 100.
        for (seconds, expected) in [
            (69, [30; 3]),
            (70, [30, 30, 0]),
            (89, [30, 30, 0]),
            (90, [30, 0, 0]),
            (99, [30, 0, 0]),
            (100, [0; 3]),
        ] {
            time.set(seconds * SECOND);
            let counts = [0, 1, 2].map(found);
            assert!(
                counts
                    .iter()
                    .zip(expected)
                    .all(|(count, expected)| *count >= expected && *count <= expected + 1),
                "{seconds} s: {counts:?}"
            );
        }
    }

    /// With a time for each generation, which the filter's memory does not count.
    #[cfg(feature = "serde")]
    #[test]
    fn many_small_generations_are_a_part_of_other_values_within_a_limit() {
        use lanebloom::codec::Limited;
        use serde::de::DeserializeSeed;

        let builder = WindowedBloom::builder().expected_keys(64).generations(64);
        let filter = builder.window(Duration::from_secs(1 << 30)).build().unwrap();
        for key in 0..64u32 {
            filter.rotate();
            filter.insert(&key);
        }
        let json = serde_json::to_string(&filter).unwrap();
        let limited = Limited::<WindowedBloom>::new(filter.memory_bytes(), Murmur3::default());
        let same = limited
            .deserialize(&mut serde_json::Deserializer::from_str(&json))
            .unwrap();
        assert_eq!(same.live_generations().len(), 64);
    }

    /// The field of 8 bytes at this place.
    fn field(bytes: &[u8], at: usize) -> u64 {
        u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
    }

    /// With another clock in the header.
    fn by_clock(bytes: &[u8], clock: u8) -> Vec<u8> {
        with_field(bytes, 35, &[clock])
    }

    /// By the monotonic clock, which starts anew, a second ago or a year: each key is as old as it
    /// was, to the nanosecond, also where it was inserted before the clock began.
    #[test]
    fn time_stands_still_between_writing_and_reading() {
        let time = Time::at(5_000_000_000 * SECOND);
        let filter = builder()
            .window(Duration::from_secs(3 * 3600))
            .clock(time.clock())
            .build()
            .unwrap();
        filter.insert("a");
        time.set((5_000_000_000 + 2 * 3600) * SECOND);
        filter.insert("b");
        // The bytes that the system's clock would have written.
        let bytes = by_clock(&filter.snapshot().to_vec(), 1);
        let then = field(&bytes, 64);
        for same in read_whole(&bytes).map(Result::unwrap) {
            assert!(same.contains("a") && same.contains("b") && !same.contains("c"));
            // The new snapshot says how much is left, by its own clock, which a moment ago said
            // what `then` was by the other.
            let again = same.snapshot().to_vec();
            let read = field(&again, 72) - (field(&bytes, 72) - then);
            let now = field(&again, 64);
            assert!(read <= now && now - read < 600 * SECOND, "{read}, {now}");
            for at in [72, 80, 128] {
                assert_eq!(field(&again, at) - read, field(&bytes, at) - then, "{at}");
            }
            assert_eq!((field(&again, 48), field(&again, 56)), (2, 3600 * SECOND));
            let again = by_clock(&again, 3);
            let at = |nanos: u64| read_at(&again, &Time::at(nanos));
            let [a_expires, b_expires] = [field(&again, 128), field(&again, 80) + 3 * 3600 * SECOND];
            assert!(at(a_expires - 1).contains("a") && !at(a_expires).contains("a"));
            assert!(at(b_expires - 1).contains("b") && !at(b_expires).contains("b"));
        }
        // By another clock too, from any time on: 0, too.
        for seconds in [0, 7, 1 << 33] {
            let time = Time::at(seconds * SECOND);
            let same = read_at(&bytes, &time);
            assert!(same.contains("a") && same.contains("b"));
        }
    }

    /// By the time of day, unless another clock is given, the time since then counts.
    #[test]
    fn the_time_of_day_goes_on_between_writing_and_reading() {
        let time = Time::default();
        let since_1970 = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        for (ago, is_there) in [(0, true), (3000, true), (3 * 3600, false)] {
            time.set(since_1970.as_nanos() as u64 - ago * SECOND);
            let window = Duration::from_secs(2 * 3600);
            let filter = builder().window(window).clock(time.clock()).build().unwrap();
            filter.insert("a");
            // The bytes that the time of day would have written.
            let bytes = by_clock(&filter.snapshot().to_vec(), 2);
            for same in read_whole(&bytes).map(Result::unwrap) {
                assert_eq!(same.contains("a"), is_there, "{ago} s ago");
                assert_eq!(same.snapshot().to_vec()[35], 2);
                assert!(same.insert("b") && same.contains("b"));
            }
            assert!(read_at(&bytes, &time).contains("a"));
        }
        for (clock, builder) in [
            (1, builder().window(Duration::from_secs(1))),
            (2, builder().window(Duration::from_secs(1)).time_of_day()),
        ] {
            assert_eq!(builder.build().unwrap().snapshot().to_vec()[35], clock);
        }
    }

    /// Whatever the times are, the filter is one that works by its clock: nothing overflows, and
    /// what is inserted is visible for the window, and not for much longer.
    #[test]
    fn a_window_of_absurd_times_works_by_its_clock() {
        let most = u64::MAX;
        let aged = builder()
            .window(Duration::from_secs(3))
            .clock(Time::at(100 * SECOND).clock())
            .build()
            .unwrap();
        aged.insert("a");
        aged.rotate();
        let bytes = aged.snapshot().to_vec();
        let times = [0, 1, SECOND, 100 * SECOND, 1 << 40, 1 << 62, most - 1, most];
        let fields = [56, 64, 72, 80, 128];
        for (at, value) in fields.into_iter().flat_map(|at| times.map(|value| (at, value))) {
            for (other, second) in fields
                .into_iter()
                .flat_map(|at| [0, 1 << 61, most].map(|value| (at, value)))
            {
                let hostile = with_field(&bytes, at, &value.to_le_bytes());
                let hostile = with_field(&hostile, other, &second.to_le_bytes());
                for (clock, seconds) in [1, 3]
                    .into_iter()
                    .flat_map(|kind| [0, 99, 1 << 33].map(|time| (kind, time)))
                {
                    let hostile = by_clock(&hostile, clock);
                    let time = Time::at(seconds * SECOND);
                    let Ok((filter, _)) = windowed::from_bytes(&hostile, Murmur3::default(), time.clock()) else {
                        continue;
                    };
                    let window = filter.window().unwrap().as_nanos() as u64;
                    assert!(window <= (1 << 62) + 2);
                    filter.insert("b");
                    assert!(filter.contains("b"));
                    let copy = read_at(&filter.snapshot().to_vec(), &time);
                    assert!(copy.contains("b"));
                    copy.union_from(&filter).unwrap();
                    filter.union_from(&copy).unwrap();
                    copy.rotate_if_due();
                    copy.rotate();
                    assert!(copy.contains("b") && copy.live_generations().len() <= 5);
                    let _ = (
                        copy.statistics().len,
                        copy.statistics().false_positive_rate,
                        copy.statistics().fill_ratio,
                    );
                    let now = time.now();
                    time.set(now.saturating_add(window));
                    assert!(filter.contains("b"), "{at}: {value}, {other}: {second}");
                    time.set(now.saturating_add(2 * window + 2 * field(&hostile, 56)));
                    filter.insert("c");
                    assert!(!filter.contains("b"), "{at}: {value}, {other}: {second}");
                }
            }
        }
    }
}

#[cfg(feature = "mmap")]
mod mapped {
    use super::*;
    use lanebloom::codec::replace_file;
    use lanebloom_tests::found;
    use std::error::Error;
    use std::fs::{self, File};

    #[test]
    fn a_mapped_file_answers_as_the_filter() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("filter");
        for blocks in [1, 100, 3000] {
            let filter = filled(2, blocks);
            replace_file(&path, |file| filter.snapshot().write_to(file)).unwrap();
            // SAFETY: the file is replaced, never changed.
            let view = unsafe { BloomView::map(&File::open(&path).unwrap()) }.unwrap();
            assert!(view.is_aligned());
            codec::verify(view.bytes()).unwrap();
            assert!(view.bytes() == filter.snapshot().to_vec() && view.to_filter().unwrap() == filter);
            let hashes: Vec<u64> = (0..1000).map(number).collect();
            assert_eq!(
                found(view.as_filter(), Hashed::slice(&hashes)),
                found(&filter, Hashed::slice(&hashes))
            );

            // A view stays what it is while the file is replaced, also by nothing. (Windows may
            // refuse that.)
            #[cfg(unix)]
            {
                replace_file(&path, |file| empty(1, 1, 1).snapshot().write_to(file)).unwrap();
                assert!(view.to_filter().unwrap() == filter);
                fs::remove_file(&path).unwrap();
            }
            let copy = view.clone();
            let elsewhere = std::thread::spawn(move || view.to_filter().unwrap());
            assert!(elsewhere.join().unwrap() == filter);
            assert!(copy.to_filter().unwrap() == filter);
        }
    }

    #[test]
    fn a_file_that_is_none_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("filter");
        let bytes = filled(2, 100).snapshot().to_vec();
        let map = |bytes: &[u8]| {
            fs::write(&path, bytes).unwrap();
            // SAFETY: nobody else knows of the file, and the view is gone before it is written
            // again.
            unsafe { BloomView::map(&File::open(&path).unwrap()) }.map(|view| codec::verify(view.bytes()).map(drop))
        };
        assert!(map(&bytes).unwrap().is_ok());
        // (fields.rs has every damage.)
        for end in [0, 1, HEADER, bytes.len() - 1] {
            assert!(map(&bytes[..end]).unwrap_err().is_truncated());
        }
        let error = map(&[&bytes[..], &[0]].concat()).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("the filter ends after {} of {} bytes", bytes.len(), bytes.len() + 1)
        );
        assert!(map(&with_field(&bytes, 40, &[0; 8])).is_err());
        let mut corrupt = bytes.clone();
        corrupt[5000] ^= 4;
        assert!(map(&corrupt).unwrap().is_err());
        let sip = with_hasher(2, 3, 10, SipHash13::with_key([1; 16])).snapshot().to_vec();
        assert!(map(&sip).unwrap_err().is_incompatible());
        fs::write(&path, sip).unwrap();
        let open = |key| {
            let file = File::open(&path).unwrap();
            // SAFETY: nobody writes it any more.
            unsafe { codec::map::<BloomView<_>>(&file, SipHash13::with_key([key; 16])) }
        };
        assert!(open(1).is_ok() && open(2).unwrap_err().is_incompatible());
        // A directory cannot be mapped. (Windows does not open it either.)
        #[cfg(unix)]
        {
            // SAFETY: a directory has no bytes.
            let error = unsafe { BloomView::map(&File::open(directory.path()).unwrap()) }.unwrap_err();
            assert!(error.to_string().starts_with("the bytes could not be read: ") && error.source().is_some());
        }
    }
}

#[cfg(feature = "serde")]
mod through_serde {
    use super::*;
    use lanebloom::codec::Limited;
    use serde::de::DeserializeSeed;

    /// A format without a form for bytes: as a sequence of them.
    #[test]
    fn a_sequence_of_bytes_is_read_too() {
        use serde::de::value::{Error, SeqDeserializer};
        let filter = filled(2, 30);
        let bytes = filter.snapshot().to_vec();
        let read = |bytes: &[u8]| {
            let limited = Limited::<ConcurrentBloom>::new(filter.memory_bytes(), Murmur3::default());
            let binary = NotText(SeqDeserializer::<_, Error>::new(bytes.iter().copied()));
            limited.deserialize(binary)
        };
        assert!(read(&bytes).unwrap() == filter);
        // The reader stops after the first of very many.
        for (more, looked_at) in [(9, 9), (1 << 20, 128 + 64 * 8 + 64 + 65 * 192 - 191)] {
            let longer = [&bytes[..], &vec![0; more]].concat();
            let (there, ends) = (bytes.len() + looked_at, bytes.len());
            let expected = format!("the filter ends after {ends} of {there} bytes");
            assert_eq!(read(&longer).unwrap_err().to_string(), expected);
        }
        assert!(read(&bytes[..bytes.len() - 1]).is_err());
    }

    /// A deserializer that is not for people.
    struct NotText<D>(D);

    impl<'de, D: serde::Deserializer<'de>> serde::Deserializer<'de> for NotText<D> {
        type Error = D::Error;
        fn is_human_readable(&self) -> bool {
            false
        }
        fn deserialize_any<V: serde::de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.deserialize_any(visitor)
        }
        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
        }
    }
}

/// For functions that answer `io::Result`: the kind says what to do about it, and the message
/// stays.
#[test]
fn errors_become_errors_of_io() {
    let bytes = filled(2, 30).snapshot().to_vec();
    let read = |bytes: &[u8], limit| ConcurrentBloom::read_from(bytes, limit).map(drop);
    let gone = Pieces::new(&[], Some(io::ErrorKind::ConnectionReset.into()));
    for (result, kind) in [
        (read(&bytes[..1000], usize::MAX), io::ErrorKind::UnexpectedEof),
        (read(&[b'x'; 2000], usize::MAX), io::ErrorKind::InvalidData),
        (read(&bytes, 64), io::ErrorKind::InvalidData),
    ] {
        let (error, message) = (
            result.as_ref().unwrap_err().to_string(),
            io::Error::from(result.unwrap_err()),
        );
        assert_eq!((message.kind(), message.to_string()), (kind, error));
        assert!(message.get_ref().unwrap().is::<SnapshotError>());
    }
    let error = io::Error::from(ConcurrentBloom::read_from(gone, 64).unwrap_err());
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
}
