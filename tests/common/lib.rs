//! Code that the tests share: numbers without a pattern, the amount of work of a test, readers and
//! writers that fail, forged snapshots, jars.

mod answers;
pub mod filters;
pub mod jars;
mod number;
mod products;
mod sets;

pub use answers::{
    LENGTHS_THAT_DIFFER, Out, PLACES, WAYS, answers_agree, inserts_agree, lengths_are_checked, lookups_agree,
    panic_message, places_differ,
};
pub use number::number;
pub use products::{block, fingerprint_product, hash_of_fingerprint_product, hash_of_place, hash_of_product, products};
pub use sets::{a_fold_to_a_rate_goes_as_far_as_the_rate_allows, sets_answer_as_lookups_of_all_keys_would};

use lanebloom::bloom::Bloom;
use lanebloom::codec::SnapshotHeader;
use lanebloom::internal::instruction_sets;
use lanebloom::internal::traits::Engine;
use lanebloom::{Filter, Hashed, Key, KeyHasher};
use std::io::{self, Read, Write};
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

/// The answers of a batch of lookups.
pub fn found<E: Engine, S, K: Key<S>>(filter: &Filter<E, S>, keys: &[K]) -> Vec<bool> {
    let mut found = Vec::new();
    filter.look_up_batch(keys, &mut found);
    found
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
        let found = (0..5000u64).map(|i| filter.look_up(&Hashed(number(i))));
        let print = found.fold(0u64, |print, found| {
            print.wrapping_mul(3).wrapping_add(u64::from(found))
        });
        let layout = filter.layout();
        prints.push(format!(
            "{rate:e} {words} {} {} {print:016x}",
            layout.bits_per_line, layout.blocks
        ));
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
        found(filter, &strangers).into_iter().filter(|&found| found).count()
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
