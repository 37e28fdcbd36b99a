//! Code that the tests share: numbers without a pattern, the amount of work of a test, readers and
//! writers that fail, forged snapshots, jars.

pub mod filters;
pub mod jars;
mod number;
mod products;

pub use number::number;
pub use products::{block, fingerprint_product, hash_of_fingerprint_product, hash_of_place, hash_of_product, products};

use lanebloom::bloom::Bloom;
use lanebloom::codec::SnapshotHeader;
use lanebloom::internal::instruction_sets;
use lanebloom::traits::Engine;
use lanebloom::{Filter, Funnel, KeyHasher};
use std::io::{self, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use twox_hash::XxHash3_64;

/// Keys that a stress test takes: small where everything is slow, with debug assertions or under
/// emulation.
pub const STRESS_KEYS: usize = if cfg!(debug_assertions) { 20_000 } else { 1_000_000 };

pub const RATES: [f64; 7] = [0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5, 1e-6];
pub const WORDS: [usize; 4] = [1, 2, 4, 8];
/// Lines and words per key.
pub const LAYOUTS: [(usize, usize); 7] = [(1, 1), (1, 2), (1, 4), (1, 8), (2, 2), (2, 4), (2, 8)];

/// The same filter in plain code.
pub fn plain<E: Engine, S>(filter: Filter<E, S>) -> Filter<E, S> {
    filter.with_isa(instruction_sets().next().expect("the plain one is there"))
}

/// Calls `write` on `len` places at `offset` of a larger buffer of `garbage`; returns the places
/// and the result. The bytes around them must not change.
pub fn within<T: Copy + PartialEq, R>(
    offset: usize,
    len: usize,
    garbage: T,
    write: impl FnOnce(&mut [T]) -> R,
) -> (Vec<T>, R) {
    let mut buffer = vec![garbage; offset + len + 64];
    let result = write(&mut buffer[offset..offset + len]);
    let after = buffer.split_off(offset + len);
    let written = buffer.split_off(offset);
    assert!(
        buffer.iter().chain(&after).all(|place| *place == garbage),
        "{len} places, {offset} into a buffer: others were written"
    );
    (written, result)
}

/// Every form of lookup gives the answers of single calls, written `offset` into larger buffers.
pub fn lookups_agree<E: Engine, S: KeyHasher, K: Funnel>(filter: &Filter<E, S>, keys: &[K], offset: usize) {
    assert_lookups_agree!(filter, keys, offset, 0);
}

/// [`lookups_agree`] for a filter of any type. (They share the names of methods, and no trait.)
#[macro_export]
macro_rules! assert_lookups_agree {
    ($filter:expr, $keys:expr, $offset:expr, $no_hash:expr) => {{
        let (filter, keys, offset) = ($filter, $keys, $offset);
        const GARBAGE: u64 = 0xa5a5_5a5a_a5a5_5a5a;
        let len = keys.len();
        let expected: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
        let hashes: Vec<_> = keys.iter().map(|key| filter.hash(key)).collect();
        let (hashed, ()) = $crate::within(offset, len, $no_hash, |out| filter.hash_batch(keys, out));
        assert!(hashed == hashes);
        assert!(
            hashes
                .iter()
                .zip(&expected)
                .all(|(&hash, &found)| filter.contains_hash(hash) == found)
        );

        assert!(filter.contains_each(keys) == expected);
        let before = (offset + len) % 2 == 1;
        let (found, ()) = $crate::within(offset, len, before, |out| filter.contains_batch(keys, out));
        assert!(found == expected, "{len} keys");
        let (found, ()) = $crate::within(offset, len, before, |out| filter.contains_hashes(&hashes, out));
        assert!(found == expected, "{len} hashes");

        // All 64 bits of the last word: those of no key are 0.
        let bit = |i: usize| u64::from(expected.get(i).copied().unwrap_or(false)) << (i % 64);
        let words = len.div_ceil(64);
        let bitmap: Vec<u64> = (0..words)
            .map(|word| (64 * word..64 * word + 64).map(bit).sum())
            .collect();
        let (found, ()) = $crate::within(offset, words, GARBAGE, |out| filter.contains_batch_bitmap(keys, out));
        assert!(found == bitmap, "{len} keys");
        let (found, ()) = $crate::within(offset, words, GARBAGE, |out| {
            filter.contains_hashes_bitmap(&hashes, out)
        });
        assert!(found == bitmap, "{len} hashes");

        let absent: Vec<usize> = (0..len).filter(|&i| !expected[i]).collect();
        let (mut by_key, mut by_hash) = (Vec::new(), Vec::new());
        filter.for_each_absent(keys, |i| by_key.push(i));
        filter.for_each_absent_hash(&hashes, |i| by_hash.push(i));
        assert!(by_key == absent && by_hash == absent, "{len}");
    }};
}

/// Every batch of lookups panics, with both numbers, if there are not as many places as `key`s.
#[macro_export]
macro_rules! assert_lengths_are_checked {
    ($filter:expr, $key:expr) => {{
        use $crate::{LENGTHS_THAT_DIFFER, panic_message, places_differ};

        let (filter, hash) = ($filter, $filter.hash(&$key));
        let (keys, hashes) = ([$key; 200], [hash; 200]);
        for (len, places) in LENGTHS_THAT_DIFFER {
            let (keys, hashes, message) = (&keys[..len], &hashes[..len], places_differ(len, places));
            let (bools, out) = (&mut [false; 200][..places], &mut [hash; 200][..places]);
            assert_eq!(panic_message(|| filter.contains_hashes(hashes, bools)), message);
            assert_eq!(panic_message(|| filter.contains_batch(keys, bools)), message);
            assert_eq!(panic_message(|| filter.hash_batch(keys, out)), message);
        }
        let words = [
            (0, 1, 0),
            (1, 0, 1),
            (1, 2, 1),
            (64, 2, 1),
            (65, 1, 2),
            (128, 3, 2),
            (129, 2, 3),
        ];
        for (len, places, right) in words {
            let message = format!("a bitmap of {len} keys needs {right} words, but `out` has {places}");
            let (keys, hashes, words) = (&keys[..len], &hashes[..len], &mut [0; 3][..places]);
            assert_eq!(panic_message(|| filter.contains_hashes_bitmap(hashes, words)), message);
            assert_eq!(panic_message(|| filter.contains_batch_bitmap(keys, words)), message);
        }
    }};
}

/// Keys of a batch and places for their answers.
pub const LENGTHS_THAT_DIFFER: [(usize, usize); 8] =
    [(0, 1), (1, 0), (1, 2), (8, 7), (9, 16), (64, 63), (65, 66), (130, 192)];

pub fn places_differ(keys: usize, places: usize) -> String {
    format!("`keys` has {keys} elements, but `out` has {places}")
}

pub fn panic_message(panics: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(panics)).expect_err("no panic");
    *panic.downcast::<String>().expect("a panic with values in its message")
}

/// Filters of every rate and number of words are those of a golden file: by their layout, and by a
/// print of the keys that they find, which any moved bit changes. `filled` returns `None` for what
/// is not a layout.
pub fn assert_prints<W>(expected: &str, filled: impl Fn(f64, usize) -> Option<Filter<Bloom<W>>>)
where
    Bloom<W>: Engine,
{
    let mut prints = Vec::new();
    for (rate, words) in RATES.into_iter().flat_map(|rate| WORDS.map(|words| (rate, words))) {
        let Some(filter) = filled(rate, words) else {
            continue;
        };
        let found = (0..5000u64).map(|i| filter.contains_hash(number(i)));
        let print = found.fold(0u64, |print, found| {
            print.wrapping_mul(3).wrapping_add(u64::from(found))
        });
        let (bits, blocks) = (filter.bits_per_line(), filter.blocks());
        prints.push(format!("{rate:e} {words} {bits} {blocks} {print:016x}"));
    }
    assert!(
        prints.iter().eq(expected.lines()),
        "now they are:\n{}",
        prints.join("\n")
    );
}

/// The share of so many keys that were not inserted which the filter finds.
pub fn hit_rate<E: Engine, S: KeyHasher>(filter: &Filter<E, S>, queries: usize) -> f64 {
    let slices = (0..queries as u64)
        .step_by(1 << 12)
        .map(|at| at..(queries as u64).min(at + (1 << 12)));
    let hits = slices.map(|slice| {
        let strangers: Vec<u64> = slice.map(|i| number(1 << 50 | i)).collect();
        filter.contains_each(&strangers).iter().filter(|&&found| found).count()
    });
    hits.sum::<usize>() as f64 / queries as f64
}

/// A clock that is set by hand, in nanoseconds.
#[derive(Clone, Default)]
pub struct Time(Arc<AtomicU64>);

impl Time {
    pub fn at(nanos: u64) -> Self {
        Self(Arc::new(AtomicU64::new(nanos)))
    }

    pub fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    pub fn set(&self, nanos: u64) {
        self.0.store(nanos, Ordering::SeqCst);
    }

    pub fn add(&self, nanos: u64) {
        self.0.fetch_add(nanos, Ordering::SeqCst);
    }

    pub fn clock(&self) -> impl Fn() -> Duration + Send + Sync + 'static {
        let time = self.clone();
        move || Duration::from_nanos(time.now())
    }
}

/// Sets the flag when it goes, also by a panic: threads that go on until then end, and a test that
/// fails does not hang.
pub struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs `work` in so many threads that start together; what they returned.
pub fn together<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(threads);
    thread::scope(|scope| {
        let run = |i| {
            let (barrier, work) = (&barrier, &work);
            scope.spawn(move || {
                barrier.wait();
                work(i)
            })
        };
        let threads: Vec<_> = (0..threads).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

/// Gives what it has in pieces of any size, with interruptions, and fails at the end.
pub struct Pieces<'a> {
    bytes: &'a [u8],
    turn: usize,
    end: Option<io::Error>,
}

impl<'a> Pieces<'a> {
    pub fn new(bytes: &'a [u8], end: Option<io::Error>) -> Self {
        Self { bytes, turn: 0, end }
    }
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn % 3 == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = into.len().min(self.bytes.len()).min(self.turn * 37 % 1000 + 1);
        if most == 0 {
            if let Some(error) = self.end.take() {
                return Err(error);
            }
        }
        into[..most].copy_from_slice(&self.bytes[..most]);
        self.bytes = &self.bytes[most..];
        Ok(most)
    }
}

/// Takes some bytes and no more.
pub struct Full(pub usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let most = bytes.len().min(self.0);
        self.0 -= most;
        if most == 0 {
            Err(io::Error::other("full"))
        } else {
            Ok(most)
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The beginnings of the records in a snapshot: its own, and those of the snapshots that it holds.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    (0..bytes.len())
        .step_by(64)
        .filter(|&at| bytes[at..].starts_with(&SnapshotHeader::MAGIC))
}

/// The snapshot or delta with other bytes from `at` on, and checksums that are right.
pub fn with_field(bytes: &[u8], at: usize, field: &[u8]) -> Vec<u8> {
    let mut forged = bytes.to_vec();
    forged[at..at + field.len()].copy_from_slice(field);
    if bytes[10] == 129 {
        let sum = XxHash3_64::oneshot(&[&forged[..56], &forged[64..]].concat());
        forged[56..64].copy_from_slice(&sum.to_le_bytes());
        return forged;
    }
    let ends = records(bytes).skip(1).chain([bytes.len()]);
    for (start, end) in records(bytes).zip(ends) {
        let record = &mut forged[start..end];
        let sum = XxHash3_64::oneshot(&record[..120]);
        record[120..128].copy_from_slice(&sum.to_le_bytes());
        // The header of a filter of several filters may be all of its record.
        if let Some(end) = record.len().checked_sub(64).filter(|end| *end >= 128) {
            let sum = XxHash3_64::oneshot(&record[..end]);
            record[end..end + 8].copy_from_slice(&sum.to_le_bytes());
        }
    }
    forged
}
