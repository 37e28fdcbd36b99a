//! Whoever can write the checksums too gets no further. Every field of a header and every word of a
//! body, in turn, gets values that no filter writes, under checksums that are right. Then reading
//! fails with an error that has a number in it, or the filter that is read writes the same bytes
//! again. `contract.rs` does that for each type of its list; here are the other kinds, and the
//! messages.

use crate::counting::{BYTES, LIMIT};
use lanebloom::bank::{BankView, FilterBank, Rows};
use lanebloom::bitmap::{BitmapView, ConcurrentBitmap};
use lanebloom::codec::{self, SnapshotHeader, verify};
use lanebloom::internal::traits::{Encode, Insert};
use lanebloom::*;
use lanebloom_tests::{Pieces, number, records, with_field};
use std::time::Duration;

type Read = Result<Vec<u8>, SnapshotError>;

/// A snapshot, and the ways to read it. They return what is written again.
pub(crate) struct Sample {
    pub(crate) bytes: Vec<u8>,
    memory: usize,
    by_slice: fn(&[u8]) -> Read,
    by_reader: fn(&[u8], usize) -> Read,
}

/// A snapshot of a filter by Murmur3.
pub(crate) fn sample<E: Encode>(filter: &Filter<E>) -> Sample {
    fn again<E: Encode>(filter: &Filter<E>) -> Vec<u8> {
        let hashes: Vec<u64> = (0..70).map(number).collect();
        let mut found = vec![false; 70];
        filter.look_up_batch(Hashed::slice(&hashes), &mut found);
        for (hash, found) in hashes.iter().zip(found) {
            assert_eq!(filter.look_up(&Hashed(*hash)), found);
        }
        assert!((0.0..=1.0).contains(&filter.statistics().fill_ratio));
        assert!((0.0..=1.0).contains(&filter.statistics().false_positive_rate));
        filter.snapshot().to_vec()
    }
    Sample {
        bytes: filter.snapshot().to_vec(),
        memory: filter.memory_bytes(),
        by_slice: |bytes| Filter::<E>::from_bytes(bytes).map(|(filter, _)| again(&filter)),
        by_reader: |bytes, limit| {
            let filter = Filter::<E>::read_from(Pieces::new(bytes, None), limit)?;
            assert!(filter.memory_bytes() <= limit);
            Ok(again(&filter))
        },
    }
}

fn by_view(kind: u8, bytes: &[u8]) -> Option<Read> {
    match kind {
        1 => Some(BloomView::from_bytes(bytes).and_then(|(view, _)| {
            // Whatever the content is, an answer is safe.
            view.contains_batch(Hashed::slice(&Vec::from_iter((0..100).map(number))), &mut [false; 100]);
            codec::verify(view.bytes())?;
            Ok(view.to_filter()?.snapshot().to_vec())
        })),
        9 => Some(
            StaticView::from_bytes(bytes)
                .and_then(|(view, _)| codec::verify(view.bytes()).map(|_| view.bytes().to_vec())),
        ),
        16 => Some(
            BitmapView::from_bytes(bytes)
                .and_then(|(view, _)| codec::verify(view.bytes()).map(|_| view.snapshot().to_vec())),
        ),
        17 => Some(BankView::from_bytes(bytes).and_then(|(view, _)| {
            assert_answers(&view);
            codec::verify(view.bytes()).map(|_| view.bytes().to_vec())
        })),
        _ => None,
    }
}

/// A bank of any bytes behind a good header answers, whatever it answers.
fn assert_answers<R: Rows>(bank: &bank::Bank<R>) {
    for key in 0..5u64 {
        assert_eq!(bank.which(&key).count(), bank.count(&key));
        assert!(bank.which(&key).all(|column| bank.contains(column, &key)));
    }
    assert_eq!(bank.columns_in_use().count(), bank.len());
}

/// Values that a decoder may take for a size, a count, a time or a rate, some of them near `old`.
fn absurd(old: u64) -> impl Iterator<Item = u64> {
    let powers = (0..64).map(|bit| 1u64 << bit);
    let rates = [f64::NAN, f64::INFINITY, -0.5, 0.5, 1.0, 1.5, 1e-300];
    let near = powers.flat_map(move |power| [power, power - 1, old ^ power]);
    near.chain([u64::MAX, old.wrapping_add(1), old.wrapping_sub(1)])
        .chain(rates.map(f64::to_bits))
}

impl Sample {
    fn header(&self) -> usize {
        if self.bytes[10] == 129 { 64 } else { 128 }
    }

    /// Each place of it, with each value.
    pub(crate) fn assert_every_field(&self) {
        LIMIT.set(16 << 20);
        let bytes = &self.bytes;
        let header = self.header();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let mut read = 0;
        let mut try_field = |at: usize, field: &[u8]| {
            let hostile = with_field(bytes, at, field);
            read += usize::from(self.check(&hostile, at));
        };
        for (at, byte) in bytes.iter().enumerate().take(24).skip(8) {
            (0..8).for_each(|bit| try_field(at, &[byte ^ 1 << bit]));
        }
        for at in 32..40 {
            (0..=255).for_each(|byte| try_field(at, &[byte]));
        }
        let ends = records(bytes).skip(1).chain([bytes.len()]);
        for (start, end) in records(bytes).zip(ends) {
            for at in (start + 24..start + header - 8).step_by(8) {
                absurd(word(at)).for_each(|value| try_field(at, &value.to_le_bytes()));
            }
            let end = if header == 64 { end - 7 } else { end - 64 };
            for at in (start + header..end).step_by(8) {
                // Each bit in one of eight neighbouring words.
                let flips = (at / 8 % 8..64).step_by(8).map(|bit| word(at) ^ 1 << bit);
                let flips = flips.chain([0, u64::MAX]);
                flips.for_each(|value| try_field(at, &value.to_le_bytes()));
            }
        }
        // Several at once, and bytes that end early.
        for turn in 0..300 {
            let random = |i: u64| number(turn << 8 | i) as usize;
            let field = (random(0) as u64).to_le_bytes();
            let field = &field[..1 + random(1) % 8];
            let at = 24 + random(2) % (bytes.len() - 32);
            if records(bytes).any(|start| at < start + 8 && start < at + 8) {
                continue;
            }
            let mut hostile = with_field(bytes, at, field);
            let second = absurd(0).nth(random(3) % 192).unwrap().to_le_bytes();
            hostile = with_field(&hostile, 24 + random(4) % (header - 40), &second);
            if turn % 4 == 0 {
                hostile.truncate(1 + random(5) % bytes.len());
            }
            read += usize::from(self.check(&hostile, usize::MAX));
        }
        assert!(read > 0);
        LIMIT.set(usize::MAX);
    }

    /// Whether these bytes are read. If not, all ways to read them say the same.
    fn check(&self, hostile: &[u8], at: usize) -> bool {
        let _context = Context(at, hostile);
        let before = BYTES.get();
        let by_reader = (self.by_reader)(hostile, self.memory);
        let taken = BYTES.get() - before;
        assert!(taken <= 4 * (self.memory + hostile.len()) + (80 << 10), "{taken}");
        let by_slice = (self.by_slice)(hostile);
        let taken = BYTES.get() - before - taken;
        assert!(taken <= 70 * hostile.len() + (80 << 10), "{taken}");
        let by_view = by_view(self.bytes[10], hostile);
        let error = match by_slice {
            Ok(again) => {
                assert!(self.is_same(hostile, &again));
                assert!(by_view.is_none_or(|read| self.is_same(hostile, &read.unwrap())));
                assert!(by_reader.map_or_else(|error| is_over(&error.to_string()), |read| read == again));
                // It is described and verified: no header is refused for its own sake.
                let header = SnapshotHeader::peek(hostile).unwrap();
                let (_, rest) = verify(hostile).unwrap();
                assert_eq!(header.bytes as usize, hostile.len() - rest.len());
                return true;
            }
            Err(error) => error,
        };
        let (text, other) = (error.to_string(), by_reader.unwrap_err().to_string());
        assert!(text.contains(|c: char| c.is_ascii_digit()), "{text}");
        assert_eq!(error.is_truncated(), text.starts_with("the bytes end"), "{text}");
        assert_eq!(error.is_incompatible(), text.contains(" differs: "), "{text}");
        // With fewer times in a window or a shorter delta, the checksum is elsewhere.
        let is_moved = match self.bytes[10] {
            3 => self.bytes[32] == 1,
            129 => hostile.get(24..32) != self.bytes.get(24..32),
            _ => false,
        };
        assert!(is_moved || !text.contains("corrupt"), "{text}");
        // Only a slice is known to be too short before its parts are looked at.
        let is_alike = other == text || error.is_truncated() || is_over(&other);
        assert!(is_alike, "{text}\n{other}");
        // Only reading all of a bank finds that a column that is not in use has bits.
        let is_late = text.starts_with("column ");
        let is_like = |error: SnapshotError| error.to_string() == text;
        assert!(is_late || by_view.is_none_or(|read| read.is_err_and(is_like)), "{text}");
        if let (0..128, Some((_, needed))) = (at, text.split_once("but its other fields need ")) {
            self.check_length(hostile, needed.parse().unwrap());
        }
        false
    }

    /// With the length that its other fields need.
    fn check_length(&self, hostile: &[u8], needed: u64) {
        let len = hostile.len() as u64;
        let hostile = with_field(hostile, 24, &needed.to_le_bytes());
        if [2, 3, 5].contains(&self.bytes[10]) {
            // Its parts have lengths too.
            self.check(&hostile, usize::MAX);
        } else if needed < len {
            let mut cut = hostile[..needed as usize].to_vec();
            if self.bytes[10] != 129 {
                cut[needed as usize - 56..].fill(0);
            }
            self.check(&with_field(&cut, 24, &needed.to_le_bytes()), usize::MAX);
        } else if needed > len {
            let [text, allowed, unlimited] = [
                (self.by_slice)(&hostile),
                (self.by_reader)(&hostile, self.memory),
                (self.by_reader)(&hostile, usize::MAX),
            ]
            .map(|read| read.unwrap_err().to_string());
            assert_eq!(text, format!("the bytes end after {len} of {needed}"));
            let view = by_view(self.bytes[10], &hostile);
            assert!(view.is_none_or(|read| read.unwrap_err().to_string() == text));
            assert!(is_over(&allowed), "{allowed}");
            let takes: u64 = allowed.split(' ').nth(3).unwrap().parse().unwrap();
            // (Stripes and columns aside.)
            let body = needed - 192;
            assert!(
                takes + takes / 64 + 64 >= body && takes <= body + body / 8 + 2048,
                "{takes}"
            );
            let is_refused = unlimited.starts_with("the filter was not read: the allocation of ");
            assert!(is_refused || needed < 20 << 20 && unlimited == text, "{unlimited}");
        }
    }

    /// The same bytes (others may follow), but for the rates, which are the model's again, and the
    /// times of a window, which are written the same way from then on.
    fn is_same(&self, hostile: &[u8], again: &[u8]) -> bool {
        if hostile[10] == 3 && hostile[32] == 1 {
            return (self.by_slice)(again).unwrap() == again;
        }
        if again.len() > hostile.len() {
            return false;
        }
        let (hostile, mut again) = (&hostile[..again.len()], again.to_vec());
        for start in records(hostile).collect::<Vec<_>>() {
            if [1, 4, 17].contains(&hostile[start + 10]) {
                again = with_field(&again, start + 56, &hostile[start + 56..start + 64]);
            }
        }
        again == hostile
    }

    /// Each row has a place, a field and the beginning of the message: `40 | =7 | ...` for a number
    /// of 8 bytes, `56 | ~0.5 | ...` for a double, `33 | 4 2 1 | ...` for bytes.
    pub(crate) fn assert_refused(&self, rows: &str) {
        for row in rows.lines().map(str::trim).filter(|row| !row.is_empty()) {
            let mut cells = row.splitn(3, " | ").map(str::trim);
            let [at, field, expected] = [(); 3].map(|()| cells.next().expect(row));
            let field = match field.split_at(1) {
                ("=", number) => number.parse::<u64>().unwrap().to_le_bytes().to_vec(),
                ("~", number) => number.parse::<f64>().unwrap().to_le_bytes().to_vec(),
                _ => field.split(' ').map(|byte| byte.parse().unwrap()).collect(),
            };
            let hostile = with_field(&self.bytes, at.parse().unwrap(), &field);
            let text = (self.by_slice)(&hostile).unwrap_err().to_string();
            assert!(text.starts_with(expected), "{row}: {text}");
            assert!(!self.check(&hostile, usize::MAX));
        }
    }

    /// Bytes that have no meaning in this kind.
    fn assert_zeros(&self, places: impl Iterator<Item = usize>) {
        for at in places {
            self.assert_refused(&format!(
                "{at} | 9 | byte {at} is 9, where version 1 of the format has 0"
            ));
        }
    }
}

/// Says where a test failed.
struct Context<'a>(usize, &'a [u8]);

impl Drop for Context<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Self(at, bytes) = self;
            println!("a field at byte {at}: {:x?}", &bytes[..bytes.len().min(128)]);
        }
    }
}

fn is_over(text: &str) -> bool {
    text.starts_with("the filter takes ") && text.contains("more than the limit of ")
}

#[test]
fn every_field_of_every_other_kind_is_refused_or_read() {
    for sample in [aged(), delta(), bitmap(), bank()] {
        sample.assert_every_field();
    }
}

/// A window by age, at a time that does not move.
fn aged() -> Sample {
    let clock = || Duration::from_secs(100);
    let builder = WindowedBloom::builder().expected_keys(200).false_positive_rate(0.05);
    let filter = builder.window(Duration::from_secs(3)).clock(clock).build().unwrap();
    for key in ["a", "b"] {
        filter.insert(key);
        filter.rotate();
    }
    Sample {
        bytes: filter.snapshot().to_vec(),
        memory: filter.memory_bytes(),
        by_slice: |bytes| {
            let clock = || Duration::from_secs(100);
            let (filter, _) = windowed::from_bytes(bytes, Murmur3::default(), clock)?;
            Ok(filter.snapshot().to_vec())
        },
        by_reader: |bytes, limit| {
            let clock = || Duration::from_secs(100);
            let filter = windowed::read_from(bytes, limit, Murmur3::default(), clock)?;
            assert!(filter.memory_bytes() <= limit);
            Ok(filter.snapshot().to_vec())
        },
    }
}

fn base() -> ConcurrentBloom {
    bloom_of(300)
}

/// A delta, read by adding it to its base.
fn delta() -> Sample {
    let filter = base();
    (0..3u64).for_each(|key| _ = filter.insert(&key));
    let apply = |bytes: &[u8]| {
        let replica = base();
        let result = bloom::apply_deltas(&replica, bytes);
        assert!(result.is_ok() || replica == base());
        result.map(|_| replica.with(&base()).map(|pair| pair.delta()).unwrap())
    };
    Sample {
        bytes: filter.with(&base()).map(|pair| pair.delta()).unwrap(),
        memory: filter.memory_bytes(),
        by_slice: apply,
        by_reader: |bytes, _| (delta().by_slice)(bytes),
    }
}

/// Truncations and corrupted bytes, also where only views and deltas are read. (`contract.rs` has
/// the filters.)
#[test]
fn no_damage_of_any_other_kind_is_read() {
    for sample in [bitmap(), bank(), sample(&bloom_of(3)), cells(), delta()] {
        let bytes = &sample.bytes;
        let errors = |read: &[u8]| {
            let by_view = by_view(bytes[10], read).unwrap_or_else(|| (sample.by_slice)(read));
            [(sample.by_slice)(read), (sample.by_reader)(read, 1 << 20), by_view].map(|read| read.unwrap_err())
        };
        // (Without bytes there are no deltas, and no error.)
        for len in (1..bytes.len()).filter(|len| len % 5 == 0 || bytes.len() - len < 200) {
            let needed = if len < sample.header() {
                sample.header()
            } else {
                bytes.len()
            };
            for error in errors(&bytes[..len]) {
                assert!(error.is_truncated());
                assert_eq!(error.to_string(), format!("the bytes end after {len} of {needed}"));
            }
        }
        for (at, flip) in (0..bytes.len()).flat_map(|at| [(at, 0x10), (at, 1 << (at % 8))]) {
            let mut bytes = bytes.clone();
            bytes[at] ^= flip;
            let [by_slice, by_reader, by_view] = errors(&bytes).map(|error| error.to_string());
            assert_eq!(by_slice, by_reader, "{at}");
            // A view reads the body when it is verified.
            assert!(by_view == by_slice || at >= 128, "{at}: {by_view}");
        }
    }
}

fn bitmap() -> Sample {
    let set = ConcurrentBitmap::new(1000).unwrap();
    set.insert_batch(&[7, 500, 999]).unwrap();
    Sample {
        bytes: set.snapshot().to_vec(),
        memory: 128,
        by_slice: |bytes| ConcurrentBitmap::from_bytes(bytes).map(|(set, _)| set.snapshot().to_vec()),
        by_reader: |bytes, limit| ConcurrentBitmap::read_from(bytes, limit).map(|set| set.snapshot().to_vec()),
    }
}

/// Filters of one block; column 5 is not in use.
fn bank() -> Sample {
    Sample {
        bytes: include_bytes!("../data/snapshot_v1_bank.bin").to_vec(),
        memory: 4096,
        by_slice: |bytes| {
            let (bank, _) = FilterBank::from_bytes(bytes)?;
            assert_answers(&bank);
            Ok(bank.snapshot().to_vec())
        },
        by_reader: |bytes, limit| FilterBank::read_from(bytes, limit).map(|bank| bank.snapshot().to_vec()),
    }
}

fn bloom_of(blocks: usize) -> ConcurrentBloom {
    let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
    builder.expected_keys(40 * blocks).words_per_key(2).build().unwrap()
}

/// A filter with some keys.
fn filled<E: Insert + Encode>(filter: Result<Filter<E>, BuildError>) -> Sample {
    let filter = filter.unwrap();
    (0..60u64).for_each(|key| _ = filter.insert(&key).map(drop));
    sample(&filter)
}

/// Where the snapshots in it begin; and as a field, seed and fingerprint of another hasher.
fn parts(sample: &Sample) -> (Vec<usize>, String) {
    let seeded = ConcurrentBloom::builder().expected_keys(1).seed(9).build().unwrap();
    let bytes: Vec<String> = seeded.snapshot().to_vec()[12..24].iter().map(u8::to_string).collect();
    (records(&sample.bytes).skip(1).collect(), bytes.join(" "))
}

const MOST_LINES: u64 = isize::MAX as u64 / 64 - 3;
const MAX: u64 = u64::MAX;
const NEEDS: &str = "bytes, but its other fields need";

#[test]
fn fields_of_blocks_are_refused_with_the_reason() {
    let bloom = sample(&bloom_of(3));
    let counting = filled(CountingBloom::builder().memory_budget(192).expected_keys(30).build());
    for sample in [&bloom, &counting] {
        sample.assert_refused(&format!(
            "
            0 | 71 73 70 56 57 97 46 46 | not a snapshot or delta of a filter: the bytes begin with \"GIF89a..\"
            32 | 0 | unsupported layout version 0; this release reads version 2
            32 | 1 | unsupported layout version 1; this release reads version 2
            40 | =0 | 0 blocks is not in 1 to {MOST_LINES}
            40 | ={MAX} | {MAX} blocks is not in 1 to {MOST_LINES}
            40 | =288230376151711744 | 288230376151711744 blocks is not in 1 to {MOST_LINES}
            40 | ={MOST_LINES} | the header declares a length of 384 {NEEDS} 9223372036854775744
            40 | =4 | the header declares a length of 384 {NEEDS} 448
            56 | ~NaN | a rate of NaN is not in 0 to 1
            56 | ~-0.5 | a rate of -0.5 is not in 0 to 1
            56 | ~1.5 | a rate of 1.5 is not in 0 to 1
            56 | ~inf | a rate of inf is not in 0 to 1
            33 | 4 2 1 | 3 blocks do not divide into 2 lines per key"
        ));
        sample.assert_zeros((36..40).chain(64..120));
        for shape in ["0 1", "3 2", "16 1", "1 0", "1 9", "2 9", "4 9", "8 1", "8 7", "8 10"] {
            let (words, bits) = shape.split_once(' ').unwrap();
            let text = format!("invalid layout: {words} words per key, {bits} bits per line");
            sample.assert_refused(&format!("33 | {shape} | {text}"));
        }
        for shape in ["1 2 1", "3 2 1", "16 1 1", "32 8 1", "4 9 1", "2 0 1"] {
            let [words, bits] = [0, 1].map(|i| shape.split(' ').nth(i).unwrap());
            let text = format!("invalid layout: 2 lines per key, {words} words per key, {bits} bits per line");
            sample.assert_refused(&format!("33 | {shape} | {text}"));
        }
        sample.assert_refused("33 | 4 2 255 | invalid layout: 256 lines per key, 4 words per key, 2 bits per line");
    }
    counting.assert_refused("35 | 1 0 0 0 0 2 0 0 0 0 0 0 0 | 2 lines per key; a CountingBloom has one");
}

#[test]
fn fields_of_buckets_are_refused_with_the_reason() {
    let cuckoo = CuckooFilter::builder().memory_budget(216).fingerprint_bits(12);
    let cuckoo = filled(cuckoo.expected_keys(1).build());
    let d_left = filled(DLeftFilter::builder().memory_budget(328).build());
    let (most, beyond) = (8 * MOST_LINES, 8 * MOST_LINES + 1);
    let choose = "are not supported: choose one of [10, 12, 16, 21]";
    cuckoo.assert_refused(&format!(
        "
        33 | 0 | fingerprints of 0 bits {choose}
        33 | 8 | fingerprints of 8 bits {choose}
        33 | 255 | fingerprints of 255 bits {choose}
        40 | =0 | the number of buckets, 0, is not in 1 to {most}
        40 | ={beyond} | the number of buckets, {beyond}, is not in 1 to {most}
        40 | =1 | 1 buckets is not a multiple of 2
        40 | =27 | 27 buckets is not a multiple of 2
        40 | =40 | the header declares a length of 448 {NEEDS} 512"
    ));
    let (most, beyond) = (MOST_LINES, MOST_LINES + 1);
    d_left.assert_refused(&format!(
        "
        33 | 13 | remainders of 13 bits are not supported: choose one of [14]
        33 | 15 | remainders of 15 bits are not supported: choose one of [14]
        40 | =0 | the number of buckets, 0, is not in 1 to {most}
        40 | ={beyond} | the number of buckets, {beyond}, is not in 1 to {most}
        40 | =6 | the header declares a length of 512 {NEEDS} 576"
    ));
    for sample in [&cuckoo, &d_left] {
        sample.assert_refused("32 | 0 | unsupported layout version 0; this release reads version 2");
        sample.assert_refused("32 | 1 | unsupported layout version 1; this release reads version 2");
        sample.assert_zeros((34..40).chain(56..120));
    }
    // Nothing between the last word and the trailer but zeros.
    cuckoo.assert_zeros(336..384);
}

fn cells() -> Sample {
    let hashes: Vec<u64> = (0..100).map(number).collect();
    let builder = StaticFilter::builder().fingerprint_bits(11);
    sample(builder.build_from_batch(Hashed::slice(&hashes)).unwrap().as_filter())
}

#[test]
fn fields_of_cells_are_refused_with_the_reason() {
    let sample = cells();
    sample.assert_refused(&format!(
        "
        32 | 2 | unsupported layout version 2
        33 | 6 | the number of bits of a fingerprint, 6, is not in 7 to 32
        33 | 33 | the number of bits of a fingerprint, 33, is not in 7 to 32
        34 | 2 | the number of cells per key, 2, is not in 3 to 4
        34 | 5 | the number of cells per key, 5, is not in 3 to 4
        35 | 2 | the logarithm of the cells of a segment, 2, is not in 3 to 16
        35 | 17 | the logarithm of the cells of a segment, 17, is not in 3 to 16
        40 | =0 | the number of segments, 0, is not in 1 to 16777216
        40 | ={MAX} | the number of segments, {MAX}, is not in 1 to 16777216
        40 | =1048576 | the number of cells of a shard, 
        40 | =1024 | the header declares a length of 
        48 | ={MAX} | the number of keys, {MAX}, is not in 0 to 
        56 | =0 | the number of shards, 0, is not in 1 to 1
        56 | ={MAX} | the number of shards, {MAX}, is not in 1 to 1
        56 | =2 | the number of shards, 2, is not in 1 to 1
        128 | 64 | the seed of a shard, 64, is not in 0 to 63"
    ));
    sample.assert_zeros((36..40).chain(64..120).chain(129..192));
}

#[test]
fn fields_of_bitmaps_and_banks_are_refused_with_the_reason() {
    let (bitmap, bank) = (bitmap(), bank());
    // Position 1000 is bit 40 of word 15.
    bitmap.assert_refused(&format!(
        "
        10 | 1 | the bytes are of kind 1 (a ConcurrentBloom), not 16 (a ConcurrentBitmap)
        16 | 1 | a bitmap has no hasher, but the header declares a BuildHasher with fingerprint 0000000000000001
        32 | =1025 | the header declares a length of 320 {NEEDS} 384
        32 | ={MAX} | the header declares a length of 320 bytes
        253 | 1 | word 15 of the body has the unused bits 0x10000000000 set"
    ));
    bitmap.assert_zeros(40..120);
    // Beyond the last word the line is filled with zeros.
    let bytes = ConcurrentBitmap::new(64).unwrap().snapshot().to_vec();
    Sample { bytes, ..bitmap }.assert_zeros(136..192);
    // With 2^56 blocks, which would overflow if multiplied first, not even 64 columns are
    // addressable.
    // Only reading all finds that a column that is not in use has a bit.
    bank.assert_refused(&format!(
        "
        10 | 1 | the bytes are of kind 1 (a ConcurrentBloom), not 17 (a FilterBank)
        12 | 8 | the hasher's fingerprint does not match: Murmur3 with seed 8 has 
        64 | =0 | the number of columns, 0, is not in 64 to {most}
        64 | =63 | the number of columns, 63, is not in 64 to {most}
        64 | =65 | the number of columns, 65, is not a multiple of 64
        64 | ={MAX} | the number of columns, {MAX}, is not in 64 to {most}
        40 | =72057594037927936 | the number of columns, 64, is not in 64 to 0
        64 | =128 | the header declares a length of 4352 {NEEDS} 8448
        128 | {unused} | column 5 has bits, but is not in use",
        most = MOST_LINES / 2,
        unused = bank.bytes[128] | 1 << 5,
    ));
    assert!(BankView::from_bytes(&with_field(&bank.bytes, 128, &[bank.bytes[128] | 1 << 5])).is_ok());
    bank.assert_zeros((36..40).chain(72..120).chain(4232..4288));
}

/// Layers of 20, 40 and more keys.
fn layers() -> Sample {
    let builder = ScalableBloom::builder().expected_keys(20).false_positive_rate(0.05);
    filled(builder.expansion(2).tightening_ratio(0.5).build())
}

#[test]
fn fields_of_layers_are_refused_with_the_reason() {
    let sample = layers();
    let (parts, seeded) = parts(&sample);
    sample.assert_refused(&format!(
        "
        24 | =129 | the header declares a length of 129 {NEEDS}
        24 | =1099511627776 | the bytes end after {len} of 1099511627776
        24 | ={shorter} | the filter takes 
        33 | 3 | 3 words per key is not 0, 1, 2, 4 or 8
        34 | 2 | whether the last layer is full, 2, is not in 0 to 1
        35 | 65 | the limit of layers, 65, is not in 0 to 64
        35 | 1 | the number of layers, {layers}, is not in 1 to 1
        40 | =0 | the keys of the first layer, 0, is not in 1 to {MAX}
        48 | =0 | the expansion, 0, is not in 1 to 4096
        48 | =134217728 | the expansion, 134217728, is not in 1 to 4096
        80 | =0 | the number of layers, 0, is not in 1 to 64
        80 | =65 | the number of layers, 65, is not in 1 to 64
        80 | ={fewer} | the header declares a length of {len} {NEEDS} {last}
        {seed} | {seeded} | the hasher differs: Murmur3 with seed 9 there, Murmur3 with seed 0 here",
        len = sample.bytes.len(),
        shorter = sample.bytes.len() - 64,
        layers = parts.len(),
        fewer = parts.len() - 1,
        last = parts[parts.len() - 1],
        seed = parts[1] + 12,
    ));
    for wrong in ["0", "1", "-0.5", "NaN", "inf"] {
        let unbuilt = "the header describes a filter that cannot be built:";
        for (at, name) in [(56, "false-positive rate"), (64, "tightening ratio")] {
            let text = format!("{name} {wrong} is not between 0 and 1, both excluded");
            sample.assert_refused(&format!("{at} | ~{wrong} | {unbuilt} {text}"));
        }
    }
    sample.assert_zeros((32..33).chain(36..40).chain(96..120));
}

/// Whatever the numbers are that determine the next layer, it is planned or refused.
#[test]
fn a_filter_of_absurd_settings_grows_within_its_limit() {
    let bytes = layers().bytes;
    let fields = [40, 48, 56, 64, 72, 88]
        .into_iter()
        .flat_map(|at| absurd(0).map(move |value| (at, value)));
    // The last layer is full, or all are beyond the builder's limit.
    for (at, value) in fields.chain([(34, 1), (72, 100)]) {
        let field = value.to_le_bytes();
        let bytes = with_field(&bytes, at, &field[..if at < 40 { 1 } else { 8 }]);
        let Ok((filter, _)) = ScalableBloom::from_bytes(&bytes) else {
            continue;
        };
        let limit = filter.memory_bytes() + 10_000;
        let filter = ScalableBloom::read_from(&bytes[..], limit).unwrap();
        let inserted = (100..1000u32).take_while(|key| filter.insert(key).is_ok()).count();
        assert!(filter.memory_bytes() <= limit && filter.false_positive_rate() < 1.0);
        assert!(inserted == 900 || filter.is_full(), "byte {at}: {inserted}");
    }
}

#[test]
fn fields_of_generations_are_refused_with_the_reason() {
    let called = WindowedBloom::builder().expected_keys(200).false_positive_rate(0.05);
    let called = called.build().unwrap();
    called.rotate();
    called.rotate();
    let (called, aged) = (sample(&called), aged());
    let (parts, seeded) = parts(&called);
    // The generations are for 201 keys. They have one layout, and the filter's hasher.
    called.assert_refused(&format!(
        "
        32 | 3 | the way to rotate, 3, is not in 0 to 2
        32 | 1 | the kind of the clock, 0, is not in 1 to 3
        33 | 2 | whether a key is renewed, 2, is not in 0 to 1
        34 | 1 | the number of generations, 1, is not in 2 to 64
        34 | 65 | the number of generations, 65, is not in 2 to 64
        35 | 1 | the kind of the clock, 1, is not in 0 to 0
        40 | =0 | the expected keys, 0, is not in 1 to {MAX}
        40 | =202 | the expected keys, 202, is not in 1 to 201
        40 | ={MAX} | the expected keys, {MAX}, is not in 1 to 201
        48 | =0 | the number of generations there are, 0, is not in 1 to 4
        48 | =5 | the number of generations there are, 5, is not in 1 to 4
        48 | =2 | the header declares a length of {len} {NEEDS} {last}
        {layout} | 8 2 | the layout differs: 
        {seed} | {seeded} | the hasher differs: Murmur3 with seed 9 there, Murmur3 with seed 0 here",
        len = called.bytes.len(),
        last = parts[2],
        layout = parts[1] + 33,
        seed = parts[1] + 12,
    ));
    called.assert_zeros((36..40).chain(56..120));
    let longest = (1u64 << 62).div_ceil(3);
    for value in [0, longest + 1, 1 << 62, MAX] {
        let text = format!("the nanoseconds of a generation, {value}, is not in 1 to {longest}");
        aged.assert_refused(&format!("56 | ={value} | {text}"));
    }
    aged.assert_refused(&format!(
        "
        48 | =6 | the number of generations there are, 6, is not in 1 to 5
        128 | ={MAX} | generation 1 expires at {MAX}, where by those before it does at "
    ));
    aged.assert_zeros((36..40).chain(88..120));
}

#[test]
fn fields_of_a_pair_are_refused_with_the_reason() {
    let builder = TombstoneBloom::builder().expected_keys(100).expected_removals(30);
    let pair = filled(builder.build());
    let (parts, seeded) = parts(&pair);
    let len = pair.bytes.len();
    let differs = "the hasher differs: Murmur3 with seed 9 there, Murmur3 with seed 0 here";
    // The first part must be by the pair's own hasher, the second one by Murmur3 with seed 0.
    pair.assert_refused(&format!(
        "
        24 | =129 | the header declares a length of 129 {NEEDS} 640
        24 | =639 | the header declares a length of 639 {NEEDS} 640
        24 | =1099511627776 | the bytes end after {len} of 1099511627776
        24 | ={shorter} | the filter takes 64 bytes, more than the limit of 0 bytes
        {first} | {seeded} | {differs}
        {second} | {seeded} | {differs}
        {hasher} | 2 | the hasher differs: SipHash-1-3 there, Murmur3 with seed 0 here
        {kind} | 4 | the bytes are of kind 4 (a CountingBloom), not 1 (a ConcurrentBloom)
        {blocks} | =0 | 0 blocks is not in 1 to ",
        shorter = len - 64,
        first = parts[0] + 12,
        second = parts[1] + 12,
        hasher = parts[1] + 11,
        kind = parts[0] + 10,
        blocks = parts[1] + 40,
    ));
    pair.assert_zeros(32..120);
    // Longer than its parts.
    let longer = [&pair.bytes[..], &[0; 64]].concat();
    let text = format!("the header declares a length of {} {NEEDS} {len}", len + 64);
    let text = format!("24 | ={} | {text}", len + 64);
    Sample { bytes: longer, ..pair }.assert_refused(&text);
}

/// A reader takes as many expected keys for a size as a builder plans at most.
#[test]
fn more_keys_than_a_builder_plans_are_refused() {
    fn most<E: Encode>(filter: &Filter<E>) -> usize {
        let with = |keys: u64| {
            let bytes = with_field(&filter.snapshot().to_vec(), 48, &keys.to_le_bytes());
            let read = Filter::<E>::from_bytes(&bytes);
            read.map(|(filter, _)| filter.expected_keys() as u64)
                .map_err(|error| error.to_string())
        };
        let text = with(MAX).unwrap_err();
        let most = text.rsplit(' ').next().unwrap().parse().unwrap();
        for keys in [0, most + 1, MAX] {
            let text = format!("the number of expected keys, {keys}, is not in 1 to {most}");
            assert_eq!(with(keys), Err(text));
        }
        assert_eq!([1, most].map(with), [Ok(1), Ok(most)]);
        most as usize
    }
    let builder = ConcurrentBloom::builder().memory_budget(192).words_per_key(2);
    let bloom = |keys| builder.clone().expected_keys(keys).build();
    let builder = CountingBloom::builder().memory_budget(192);
    let counting = |keys| builder.clone().expected_keys(keys).build();
    assert_eq!(most(&bloom(100).unwrap()), 3 * 32_768);
    assert_eq!(most(&counting(100).unwrap()), 3 * 32_768);
    assert_eq!(bloom(3 * 32_768).unwrap().expected_keys(), 3 * 32_768);
    for keys in [3 * 32_768 + 1, usize::MAX] {
        let text = format!("{keys} keys in 3 blocks exceed the limit of 32768 keys per block; raise the memory budget");
        assert_eq!(bloom(keys).unwrap_err().to_string(), text);
        assert_eq!(counting(keys).unwrap_err().to_string(), text);
    }
    // 26 and 4 * 5 buckets.
    let cuckoo = CuckooFilter::builder().memory_budget(216).fingerprint_bits(12);
    let cuckoo = cuckoo.expected_keys(1).build().unwrap();
    let (keys, builder) = (most(&cuckoo), CuckooFilter::builder().fingerprint_bits(12));
    let planned = |keys| builder.clone().expected_keys(keys).build().unwrap().memory_bytes();
    assert!(planned(keys) <= cuckoo.memory_bytes() && planned(keys + 1) > cuckoo.memory_bytes());
    let d_left = DLeftFilter::builder().memory_budget(328).build().unwrap();
    let keys = most(&d_left);
    let builder = DLeftFilter::builder();
    let planned = |keys| builder.clone().expected_keys(keys).build().unwrap().memory_bytes();
    assert!(planned(keys) <= d_left.memory_bytes() && planned(keys + 1) > d_left.memory_bytes());
}
