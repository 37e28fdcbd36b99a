//! Split-block filters beside each other: `SplitBlockBloom`, parquet-rs' `Sbbf`, sbbf-rs-safe and
//! Boost's `fast_multiblock32<8>`. Prints ns per key, the median of some rounds.
//!
//! ```sh
//! # Filters of 512 KiB, 8 MiB and 64 MiB, and 5 rounds, unless others are given.
//! export BOOST_ROOT=$(ci/fetch/boost.sh)
//! cargo run --release --example figures -- 512,8192,65536 5
//! ```
//!
//! All filters have the same bytes and keys: one `i64` per 10.53 bits, which is 1%. Half of the
//! lookups find their key, in random order. A round lets each contestant do each work once. "Insert
//! keys" and "insert hashes" are of a million new keys, into a filter that had half of the other
//! keys before; "fill" is of all keys, into empty filters in mapped memory. What each contestant
//! found or set is compared with the others; Boost sets other bits, so its answers are counted.
//! A contestant that takes hashes is given them.

#[path = "../../../tests/common/number.rs"]
mod number;

use lanebloom_formats::splitblock::hash;
use lanebloom_formats::{Bitmap, Hashed, SplitBlockBloom};
use number::number;
use parquet::bloom_filter::Sbbf;
use std::hint::black_box;
use std::time::Instant;
use std::{env, thread};

const BITS_PER_KEY: f64 = 10.53;
/// The most keys of a work.
const KEYS: usize = 1 << 20;
/// The keys of a call, as an engine passes them.
const BATCH: usize = 1024;

const WORKS: [&str; 6] = [
    "contains keys",
    "contains hashes",
    "insert keys",
    "insert hashes",
    "fill",
    "hash keys",
];
const CONTAINS_KEYS: usize = 0;
const CONTAINS_HASHES: usize = 1;
const INSERT_KEYS: usize = 2;
const INSERT_HASHES: usize = 3;
const FILL: usize = 4;
const HASH: usize = 5;

/// The times of each contestant, by its name.
#[derive(Default)]
struct Table(Vec<(&'static str, [Vec<f64>; WORKS.len()])>);

impl Table {
    fn time<T>(&mut self, name: &'static str, work: usize, keys: usize, run: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = run();
        let nanos = start.elapsed().as_nanos() as f64 / keys as f64;
        let row = self.0.iter().position(|(row, _)| *row == name).unwrap_or_else(|| {
            self.0.push((name, Default::default()));
            self.0.len() - 1
        });
        self.0[row].1[work].push(nanos);
        result
    }

    fn print(mut self) {
        println!("| | {} |\n|---|--:|--:|--:|--:|--:|--:|", WORKS.join(" | "));
        for (name, works) in &mut self.0 {
            let cells = works.each_mut().map(|times| {
                times.sort_by(f64::total_cmp);
                times
                    .get(times.len() / 2)
                    .map_or(String::new(), |time| format!("{time:.2}"))
            });
            println!("| {name} | {} |", cells.join(" | "));
        }
        println!();
    }
}

fn hashes(keys: &[i64]) -> Vec<u64> {
    keys.iter().map(hash).collect()
}

/// The lookups of batches, by a method that writes a bitmap.
fn count_bitmaps<K>(keys: &[K], contains: impl Fn(&[K], &mut [u64])) -> usize {
    let mut bitmap = [0; BATCH / 64];
    let mut found = 0;
    for keys in keys.chunks(BATCH) {
        let bitmap = &mut bitmap[..keys.len().div_ceil(64)];
        contains(keys, bitmap);
        found += bitmap.iter().map(|word| word.count_ones() as usize).sum::<usize>();
    }
    found
}

fn measure(bytes: usize, rounds: usize) {
    let keys: Vec<i64> = (0..(8.0 * bytes as f64 / BITS_PER_KEY) as u64)
        .map(|i| number(i) as i64)
        .collect();
    let asked: Vec<i64> = (0..KEYS as u64)
        .map(|i| match number(i + (1 << 40)) {
            random if random % 2 == 0 => keys[(random >> 1) as usize % keys.len()],
            random => random as i64,
        })
        .collect();
    let (before, new) = keys.split_at(keys.len() - keys.len().min(KEYS));
    let before = &before[..before.len() / 2];
    let (asked_hashes, new_hashes) = (hashes(&asked), hashes(new));

    let ours = SplitBlockBloom::with_bytes(bytes).unwrap();
    ours.insert_batch(&keys);
    let bits = ours.to_bitset();
    let sbbf = Sbbf::new(&bits);
    let safe = sbbf_rs_safe::Filter::from_bytes(&bits).unwrap();
    let expected = asked.iter().filter(|key| sbbf.check(*key)).count();
    // Filters before the inserts, and their bits after them.
    let base = SplitBlockBloom::with_bytes(bytes).unwrap();
    base.insert_batch(before);
    let base_bits = base.to_bitset();
    let after = base.clone();
    after.insert_batch(new);
    let after_bits = after.to_bitset();
    #[cfg(has_boost)]
    let boost = {
        let mut boost = boost::Boost::new(bytes);
        boost.insert_bulk(&hashes(&keys));
        boost
    };
    #[cfg(has_boost)]
    let (before_hashes, boost_expected) = (hashes(before), boost.contains(&asked_hashes));

    let mut table = Table::default();
    for _ in 0..rounds {
        let name = "parquet-rs, `Sbbf`";
        let found = table.time(name, CONTAINS_KEYS, KEYS, || {
            asked.iter().filter(|key| sbbf.check(black_box(*key))).count()
        });
        assert_eq!(found, expected);
        let mut filter = Sbbf::new(&base_bits);
        table.time(name, INSERT_KEYS, new.len(), || {
            new.iter().for_each(|key| filter.insert(key))
        });
        let mut written = Vec::new();
        filter.write(&mut written).unwrap();
        assert!(written.ends_with(&after_bits));

        let name = "sbbf-rs-safe";
        let found = table.time(name, CONTAINS_HASHES, KEYS, || {
            asked_hashes
                .iter()
                .filter(|hash| safe.contains_hash(black_box(**hash)))
                .count()
        });
        assert_eq!(found, expected);
        let mut filter = sbbf_rs_safe::Filter::from_bytes(&base_bits).unwrap();
        table.time(name, INSERT_HASHES, new.len(), || {
            new_hashes.iter().filter(|hash| !filter.insert_hash(**hash)).count()
        });
        assert!(filter.as_bytes() == after_bits);

        #[cfg(has_boost)]
        for (name, bulk) in [("Boost, `fast_multiblock32<8>`", false), ("Boost, in bulk", true)] {
            let found = table.time(name, CONTAINS_HASHES, KEYS, || match bulk {
                true => boost.contains_bulk(&asked_hashes, BATCH),
                false => boost.contains(&asked_hashes),
            });
            assert_eq!(found, boost_expected);
            let mut filter = boost::Boost::new(bytes);
            filter.insert_bulk(&before_hashes);
            table.time(name, INSERT_HASHES, new.len(), || match bulk {
                true => filter.insert_bulk(&new_hashes),
                false => filter.insert(&new_hashes),
            });
            assert_eq!(filter.contains(&new_hashes), new.len());
        }

        let name = "`SplitBlockBloom`, single calls";
        let found = table.time(name, CONTAINS_KEYS, KEYS, || {
            asked.iter().filter(|key| ours.contains(black_box(*key))).count()
        });
        assert_eq!(found, expected);
        let found = table.time(name, CONTAINS_HASHES, KEYS, || {
            asked_hashes
                .iter()
                .filter(|hash| ours.contains(&Hashed(black_box(**hash))))
                .count()
        });
        assert_eq!(found, expected);
        let filter = base.clone();
        table.time(name, INSERT_KEYS, new.len(), || {
            new.iter().filter(|key| filter.insert(*key)).count()
        });
        assert!(filter == after);
        let filter = base.clone();
        table.time(name, INSERT_HASHES, new.len(), || {
            new_hashes.iter().filter(|hash| filter.insert(&Hashed(**hash))).count()
        });
        assert!(filter == after);

        let name = "`SplitBlockBloom`, batches";
        let found = table.time(name, CONTAINS_KEYS, KEYS, || {
            count_bitmaps(&asked, |keys, bitmap| ours.contains_batch(keys, Bitmap(bitmap)))
        });
        assert_eq!(found, expected);
        let found = table.time(name, CONTAINS_HASHES, KEYS, || {
            count_bitmaps(&asked_hashes, |hashes, bitmap| {
                ours.contains_batch(Hashed::slice(hashes), Bitmap(bitmap))
            })
        });
        assert_eq!(found, expected);
        let filter = base.clone();
        table.time(name, INSERT_KEYS, new.len(), || filter.insert_batch(new));
        assert!(filter == after);
        let filter = base.clone();
        table.time(name, INSERT_HASHES, new.len(), || {
            filter.insert_batch(Hashed::slice(&new_hashes))
        });
        assert!(filter == after);

        let mut_name = "`SplitBlockBloom`, batches, `&mut`";
        let mut filter = base.clone();
        table.time(mut_name, INSERT_KEYS, new.len(), || {
            filter.exclusive().insert_batch(new)
        });
        assert!(filter == after);
        let mut filter = base.clone();
        table.time(mut_name, INSERT_HASHES, new.len(), || {
            filter.exclusive().insert_batch(Hashed::slice(&new_hashes))
        });
        assert!(filter == after);

        let empty = || SplitBlockBloom::from_bitset(&vec![0; bytes]).unwrap();
        let (half, rest) = keys.split_at(keys.len() / 2);
        let filter = empty();
        table.time(name, FILL, keys.len(), || filter.insert_batch(&keys));
        assert!(filter == ours);
        let mut filter = empty();
        table.time(mut_name, FILL, keys.len(), || filter.exclusive().insert_batch(&keys));
        assert!(filter == ours);
        let filter = empty();
        table.time("`SplitBlockBloom`, batches, 2 threads", FILL, keys.len(), || {
            thread::scope(|scope| {
                scope.spawn(|| filter.insert_batch(half));
                filter.insert_batch(rest);
            });
        });
        assert!(filter == ours);
        let (mut filter, mut other) = (empty(), empty());
        table.time(
            "two of them, `&mut`, 2 threads, and the union",
            FILL,
            keys.len(),
            || {
                thread::scope(|scope| {
                    scope.spawn(|| other.exclusive().insert_batch(half));
                    filter.exclusive().insert_batch(rest);
                });
                filter.union_from(&other).unwrap();
            },
        );
        assert!(filter == ours);

        // XXH64 of the bytes, by twox-hash, and of the array.
        let mut out = vec![0; KEYS];
        table.time("XXH64, twox-hash", HASH, KEYS, || {
            for (out, key) in out.iter_mut().zip(&asked) {
                *out = hash(key.to_le_bytes().as_slice());
            }
        });
        assert!(out == asked_hashes);
        out.fill(0);
        table.time("XXH64, batches", HASH, KEYS, || {
            for (out, keys) in out.chunks_mut(BATCH).zip(asked.chunks(BATCH)) {
                ours.hash_batch(keys, out);
            }
        });
        assert!(out == asked_hashes);
    }
    println!("## {} KiB, {} keys\n", bytes >> 10, keys.len());
    table.print();
}

fn main() {
    let mut args = env::args().skip(1);
    let sizes = args.next().unwrap_or_else(|| "512,8192,65536".into());
    let rounds = args
        .next()
        .map_or(5, |rounds| rounds.parse().expect("a number of rounds"));
    for kib in sizes.split(',') {
        measure(kib.parse::<usize>().expect("a size in KiB") << 10, rounds);
    }
}

/// Boost's filter, through `boost.cpp`.
#[cfg(has_boost)]
#[expect(unsafe_code, reason = "a C++ library")]
mod boost {
    use lanebloom_parquet as _; // build.rs links `boost.cpp` to it
    use std::ffi::c_void;
    use std::ptr::NonNull;

    /// `Raw` of `boost.cpp`.
    #[repr(C)]
    struct Raw([u8; 0]);

    unsafe extern "C" {
        safe fn peers_boost_split_blocks(bytes: usize) -> NonNull<Raw>;
        fn peers_boost_drop(filter: NonNull<Raw>);
        fn peers_boost_insert(filter: NonNull<Raw>, keys: *const c_void, count: usize);
        fn peers_boost_insert_bulk(filter: NonNull<Raw>, keys: *const c_void, count: usize);
        fn peers_boost_contains(filter: NonNull<Raw>, keys: *const c_void, count: usize) -> usize;
        fn peers_boost_contains_bulk(filter: NonNull<Raw>, keys: *const c_void, count: usize, batch: usize) -> usize;
    }

    pub(crate) struct Boost(NonNull<Raw>);

    impl Boost {
        pub(crate) fn new(bytes: usize) -> Self {
            Self(peers_boost_split_blocks(bytes))
        }

        pub(crate) fn insert(&mut self, hashes: &[u64]) {
            // SAFETY: the filter is alive, and takes as many hashes; likewise below.
            unsafe { peers_boost_insert(self.0, hashes.as_ptr().cast(), hashes.len()) }
        }

        pub(crate) fn insert_bulk(&mut self, hashes: &[u64]) {
            // SAFETY: as above.
            unsafe { peers_boost_insert_bulk(self.0, hashes.as_ptr().cast(), hashes.len()) }
        }

        pub(crate) fn contains(&self, hashes: &[u64]) -> usize {
            // SAFETY: as above.
            unsafe { peers_boost_contains(self.0, hashes.as_ptr().cast(), hashes.len()) }
        }

        pub(crate) fn contains_bulk(&self, hashes: &[u64], batch: usize) -> usize {
            // SAFETY: as above.
            unsafe { peers_boost_contains_bulk(self.0, hashes.as_ptr().cast(), hashes.len(), batch) }
        }
    }

    impl Drop for Boost {
        fn drop(&mut self) {
            // SAFETY: the filter is from `new`, and is not used after this.
            unsafe { peers_boost_drop(self.0) }
        }
    }
}
