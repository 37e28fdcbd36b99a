//! `FilterBank` beside a loop over as many `ConcurrentBloom`s, beside their lines side by side, and
//! beside seqan's interleaved Bloom filter: which of the filters may hold a key?
//!
//!     cargo bench --bench bank                              # 64, 1,024 and 8,192 filters: 4 GB
//!     cargo bench --bench bank -- --filters 1024 --record record/FILE.md
//!     cargo bench --bench bank -- --only-banks   # without the loops, which take longest
//!     cargo bench --bench bank -- --test                    # a tiny size, to see that it runs
//!     SEQAN_ROOT=$(ci/fetch/seqan.sh) cargo bench --bench bank      # with seqan's filter
//!
//! Filters are at 1%. Half of the keys are in one filter, the others in none. Keys are hashes, so
//! that no time is that of hashing. In a round every contestant answers once, in turn; the table
//! has medians of the rounds. Contestants:
//!
//! - *loop*: for every key a loop over the filters, which prefetches the line of a filter some
//!   filters ahead (of 4, 8, 16 and 32 the best).
//! - *loop, batches*: for every filter a batch of 1,024 keys, `contains_batch`. Each filter
//!   is in the caches while it answers. No key has its answer before all filters have worked.
//! - *lines side by side*: the same line of all filters one after another, as OpenObserve stores
//!   them. A key's block is 64 bytes of each filter, in order.
//! - *bank*: `which_into`; *bank, batches*: `which_batch`.
//! - *seqan's*: `bulk_contains` of its interleaved Bloom filter, with as many bits, and with 5 hash
//!   functions, the most that it takes (the bank has 6). It has no batches.
//!
//! A *row word* is 64 bits of one row: those of 64 filters. A filter of `n` bits has `n` rows, so
//! that `push_all` of 64 filters of `n` bits writes `n` row words, and `push` touches one for each
//! bit of its filter.

#[cfg(has_seqan)]
mod seqan;

use clap::Parser;
use lanebloom::bank::{FilterBank, columns};
use lanebloom::codec::{Content, SnapshotHeader};
use lanebloom::internal::Hint;
use lanebloom::{Bitmap, BloomView, ConcurrentBloom, Hashed};
use lanebloom_benches::{BenchArgs, machine, median, number, time};
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[derive(Parser)]
struct Args {
    /// The numbers of filters.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1024, 8192])]
    filters: Vec<usize>,
    /// Keys of a filter; half as many with more than 4,096 filters.
    #[arg(long, default_value_t = 100_000)]
    keys: usize,
    /// Rounds of which the median is taken.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Keys and filters that are asked in a round, multiplied.
    #[arg(long, default_value_t = 1 << 24)]
    lookups: usize,
    /// Measure no loops over filters, and no lines side by side.
    #[arg(long)]
    only_banks: bool,
    #[command(flatten)]
    bench: BenchArgs,
}

/// The hash of key `key` of a filter.
fn hash(filter: usize, key: usize) -> u64 {
    number((filter as u64) << 32 | key as u64)
}

fn filled(count: usize, keys: usize) -> Vec<ConcurrentBloom> {
    let filter = |i| {
        let filter = ConcurrentBloom::with_capacity(keys, 0.01).unwrap();
        let hashes: Vec<u64> = (0..keys).map(|key| hash(i, key)).collect();
        filter.insert_batch(Hashed::slice(&hashes));
        filter
    };
    (0..count).map(filter).collect()
}

/// The bits of a hash in its line, as `docs/FORMAT.md` describes them: six bits in two words, the
/// first of which has this number.
struct Pattern(usize, [u64; 2]);

impl Pattern {
    fn of(hash: u64, blocks: usize) -> Self {
        let place = place(hash);
        let product = (place ^ place >> 32).wrapping_mul(0x28b6_4b9e_11e7_f457);
        let mut masks = [0; 2];
        for byte in &product.to_be_bytes()[..6] {
            let position = usize::from(32 * (byte & 3) + (byte >> 3));
            masks[position / 64] |= 1 << (position % 64);
        }
        Self(2 * (block(hash, 4 * blocks) % 4), masks)
    }

    fn is_in(&self, line: &[u64; 8]) -> bool {
        let Self(first, masks) = self;
        masks[0] & !line[*first] | masks[1] & !line[first + 1] == 0
    }
}

fn place(hash: u64) -> u64 {
    hash.wrapping_mul(0x45e1_0f8c_ad1e_3257)
}

fn block(hash: u64, blocks: usize) -> usize {
    ((u128::from(place(hash)) * blocks as u128) >> 64) as usize
}

/// The same line of all filters side by side.
struct Lines {
    lines: Vec<[u64; 8]>,
    filters: usize,
}

impl Lines {
    fn of(filters: &[ConcurrentBloom]) -> Self {
        let (count, blocks) = (filters.len(), filters[0].layout().blocks);
        let mut lines = vec![[0; 8]; count * blocks];
        for (i, filter) in filters.iter().enumerate() {
            let bytes = filter.snapshot().to_vec();
            for (block, line) in bytes[128..][..64 * blocks].chunks_exact(64).enumerate() {
                let word = |w: usize| u64::from_le_bytes(*line[8 * w..].first_chunk().unwrap());
                lines[block * count + i] = std::array::from_fn(word);
            }
        }
        let filters = count;
        Self { lines, filters }
    }

    fn which(&self, hash: u64, out: &mut [u64]) {
        let blocks = self.lines.len() / self.filters;
        let pattern = Pattern::of(hash, blocks);
        let lines = &self.lines[block(hash, blocks) * self.filters..][..self.filters];
        for (out, lines) in out.iter_mut().zip(lines.chunks(64)) {
            *out = lines
                .iter()
                .rev()
                .fold(0, |all, line| all << 1 | u64::from(pattern.is_in(line)));
        }
    }
}

/// The filters one after another, the line of each prefetched `ahead` filters before.
fn ask_each(views: &[BloomView<'_>], ahead: usize, hash: u64, out: &mut [u64]) {
    let block = block(hash, views[0].bytes().len() / 64 - 3);
    let line = |view: &BloomView<'_>| view.bytes()[128 + 64 * block..].as_ptr();
    for view in &views[..ahead.min(views.len())] {
        Hint::L1.prefetch(line(view));
    }
    for (word, (out, now)) in out.iter_mut().zip(views.chunks(64)).enumerate() {
        *out = 0;
        for (i, view) in now.iter().enumerate() {
            if let Some(later) = views.get(64 * word + i + ahead) {
                Hint::L1.prefetch(line(later));
            }
            *out |= u64::from(view.contains(&Hashed(hash))) << i;
        }
    }
}

/// The sum of all bitmaps' bits, each with its place: contestants must agree.
fn add(sum: &mut u64, key: usize, bitmap: &[u64]) {
    for column in columns(bitmap) {
        *sum = sum.wrapping_add(number((key as u64) << 32 | column as u64));
    }
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.filters, args.keys, args.rounds, args.lookups) = (vec![64, 200], 500, 1, 10_000);
    }
    let mut report = format!(
        "{}; {} rounds; ns; seqan's filter: {}\n",
        machine(),
        args.rounds,
        env!("BUILD_OF_SEQAN")
    );
    args.bench.add(&mut String::new(), &report.clone());
    for &count in &args.filters {
        let keys = if count > 4096 { args.keys / 2 } else { args.keys };
        let mut out = String::new();
        measure(&args, count, keys, &mut out);
        args.bench.add(&mut report, &out);
    }
}

fn measure(args: &Args, count: usize, keys: usize, out: &mut String) {
    let filters = filled(count, keys);
    let header = SnapshotHeader::peek(&filters[0].snapshot().to_vec()).unwrap();
    let two_words = matches!(
        header.content,
        Content::Blocks {
            words_per_key: 2,
            bits_per_line: 6,
            lines_per_key: 1,
            ..
        }
    );
    assert!(two_words, "`Pattern` is for six bits in two words");

    // Making the bank.
    let rows = 512 * filters[0].layout().blocks;
    let builder = ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(0.01);
    let mut bank = FilterBank::new(count, &builder).unwrap();
    let words = rows * count.div_ceil(64);
    let (first_pages, _) = time(words, || bank.push_all(&filters).unwrap());
    let empty = |bank: &mut FilterBank| (0..count).for_each(|column| bank.clear(column).unwrap());
    let mut push_all = Vec::new();
    for _ in 0..args.rounds.min(3) {
        empty(&mut bank);
        push_all.push(time(words, || bank.push_all(&filters).unwrap()).0);
    }
    let singles = count.min(32);
    let mut push = Vec::new();
    let mut clear = Vec::new();
    for _ in 0..args.rounds.min(3) {
        clear.push(time(rows * singles, || (0..singles).for_each(|i| bank.clear(i).unwrap())).0);
        push.push(
            time(rows * singles, || {
                filters[..singles]
                    .iter()
                    .for_each(|filter| _ = bank.push(filter).unwrap())
            })
            .0,
        );
    }
    assert!((0..count).step_by(17).all(|i| bank.to_filter(i).unwrap() == filters[i]));
    let memory = bank.memory_bytes();
    assert_eq!(memory, bank.columns() * filters[0].memory_bytes());

    let width = bank.columns() / 64;
    let asked_of = |round: usize, len: usize| -> Vec<u64> {
        let pick = |i: usize| number((round as u64) << 40 | i as u64);
        let of = |i: usize| match i % 2 {
            0 => hash(pick(i) as usize % count, (pick(i) >> 32) as usize % keys),
            _ => pick(i),
        };
        (0..len).map(of).collect()
    };
    let (few, many) = (
        (args.lookups / count).next_multiple_of(1024),
        (16 * args.lookups / count).next_multiple_of(1024),
    );
    let mut figures: Vec<(String, Vec<f64>)> = Vec::new();
    let mut add_figure = |name: &str, ns: f64| match figures.iter_mut().find(|(known, _)| known == name) {
        Some((_, all)) => all.push(ns),
        None => figures.push((name.into(), vec![ns])),
    };

    if !args.only_banks {
        let lines = Lines::of(&filters);
        let bytes: Vec<_> = filters.iter().map(|filter| filter.snapshot().to_vec()).collect();
        let views: Vec<BloomView<'_>> = bytes
            .iter()
            .map(|bytes| BloomView::from_bytes(bytes).unwrap().0)
            .collect();
        let mut bitmap = vec![0; width];
        // The best distance of the loop.
        let asked = asked_of(100, few / 4);
        let distances = [4, 8, 16, 32].map(|ahead| {
            let times = (0..3).map(|_| {
                time(1, || {
                    asked
                        .iter()
                        .for_each(|&hash| ask_each(&views, ahead, hash, &mut bitmap))
                })
                .0
            });
            (times.fold(f64::MAX, f64::min) as u64, ahead)
        });
        let ahead = distances.into_iter().min().unwrap().1;
        for round in 0..args.rounds {
            let asked = asked_of(round, few);
            let mut sums = [0; 5];
            let (ns, ()) = time(few, || {
                for (i, &hash) in asked.iter().enumerate() {
                    ask_each(&views, ahead, hash, &mut bitmap);
                    add(&mut sums[0], i, &bitmap);
                }
            });
            add_figure(&format!("loop, {ahead} filters ahead"), ns);
            let (ns, ()) = time(few, || {
                for (batch, asked) in asked.chunks(1024).enumerate() {
                    let mut found = [0; 16];
                    for (column, filter) in filters.iter().enumerate() {
                        filter.contains_batch(Hashed::slice(asked), Bitmap(&mut found));
                        for i in columns(&found) {
                            sums[1] = number(((1024 * batch + i) as u64) << 32 | column as u64).wrapping_add(sums[1]);
                        }
                    }
                }
            });
            add_figure("loop, batches of 1,024 keys", ns);
            let (ns, ()) = time(few, || {
                for (i, &hash) in asked.iter().enumerate() {
                    lines.which(hash, &mut bitmap);
                    add(&mut sums[2], i, &bitmap);
                }
            });
            add_figure("lines side by side", ns);
            for (i, &hash) in asked.iter().enumerate() {
                bank.which_into(&Hashed(hash), &mut bitmap);
                add(&mut sums[3], i, &bitmap);
            }
            bank.which_batch(Hashed::slice(&asked), |i, bitmap| add(&mut sums[4], i, bitmap));
            assert!(
                sums.iter().all(|&sum| sum == sums[0] && sum != 0),
                "the contestants differ: {sums:?}"
            );
        }
    }
    drop(filters);
    #[cfg(has_seqan)]
    let seqan = seqan_of(&bank, count, keys, out);
    let copy = bank.try_clone().unwrap();
    for round in 0..args.rounds {
        let asked = asked_of(round, many);
        let mut bitmap = vec![0; width];
        #[cfg(has_seqan)]
        add_figure(seqan::name(), time(many, || seqan.ask(&asked)).0);
        let (ns, ()) = time(many, || {
            asked
                .iter()
                .for_each(|&hash| _ = black_box(bank.which_into(&Hashed(hash), &mut bitmap)));
        });
        add_figure("bank", ns);
        add_figure("bank, batches", ask(&bank, &asked));
        add_figure(
            "bank, batches, each of two threads",
            two_threads(&bank, &asked_of(round + 200, many), &asked),
        );
        add_figure("a copy, batches", ask(&copy, &asked));
        add_figure(
            "a copy, batches, while another thread inserts",
            beside_inserts(&copy, &asked, count, keys),
        );
    }
    let figures: Vec<_> = figures.into_iter().map(|(name, all)| (name, median(all))).collect();
    let batch = figures.iter().find(|(name, _)| name == "bank, batches").unwrap().1;
    let mib = memory as f64 / f64::from(1 << 20);
    writeln!(out, "\n{count} filters of {keys} keys, {mib:.1} MiB\n").unwrap();
    writeln!(
        out,
        "| | per key | per filter and key | bank, batches, is faster |\n|---|--:|--:|--:|"
    )
    .unwrap();
    for (name, ns) in figures {
        let of_filter = ns / count as f64;
        writeln!(out, "| {name} | {ns:.1} | {of_filter:.3} | {:.1} |", ns / batch).unwrap();
    }
    writeln!(out, "\n`push_all` {:.2} for each row word ({first_pages:.2} into fresh memory); `push` {:.2} for each bit of the filter, `clear` {:.2}",
        median(push_all), median(push), median(clear)).unwrap();
    inserted(args, &bank, keys, out);
}

/// seqan's filter with the keys of the bank's, and with as many bits. Says how many columns either
/// finds for a key of none.
#[cfg(has_seqan)]
fn seqan_of(bank: &FilterBank, count: usize, keys: usize, out: &mut String) -> seqan::Seqan {
    let mut seqan = seqan::Seqan::new(count, 512 * bank.blocks(), seqan::MOST_HASH_FUNCTIONS);
    for column in 0..count {
        let hashes: Vec<u64> = (0..keys).map(|key| hash(column, key)).collect();
        seqan.insert(column, &hashes);
    }
    let mut bitmap = vec![0; count.div_ceil(64)];
    for i in 0..1000 {
        let (column, key) = (number(i) as usize % count, number(i + 1000) as usize % keys);
        seqan.which(hash(column, key), &mut bitmap);
        assert!(
            bitmap[column / 64] >> (column % 64) & 1 == 1,
            "a key of filter {column}"
        );
    }
    let strangers = 100_000;
    let (mut ours, mut theirs) = (0, 0);
    for i in 0..strangers {
        let stranger = number(1 << 50 | i);
        seqan.which(stranger, &mut bitmap);
        theirs += columns(&bitmap).count();
        ours += bank.count_hash(stranger);
    }
    let rate = |wrong: usize| 100.0 * wrong as f64 / (strangers * count as u64) as f64;
    writeln!(
        out,
        "\nrate: bank {:.2}%, {} {:.2}%",
        rate(ours),
        seqan::name(),
        rate(theirs)
    )
    .unwrap();
    seqan
}

/// Nanoseconds per key of a batch.
fn ask(bank: &FilterBank, asked: &[u64]) -> f64 {
    time(asked.len(), || {
        bank.which_batch(Hashed::slice(asked), |_, bitmap| _ = black_box(bitmap))
    })
    .0
}

/// Two threads ask at once: nanoseconds per key of each.
fn two_threads(bank: &FilterBank, one: &[u64], other: &[u64]) -> f64 {
    thread::scope(|scope| {
        let beside = scope.spawn(|| ask(bank, other));
        (ask(bank, one) + beside.join().unwrap()) / 2.0
    })
}

/// One thread asks while another one inserts: nanoseconds per key of the one.
fn beside_inserts(bank: &FilterBank, asked: &[u64], count: usize, keys: usize) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in (0..).take_while(|_| !stop.load(Ordering::Relaxed)) {
                // Keys that are there: the bank stays as full as it is. One of 64 is new.
                let column = number(i as u64) as usize % count;
                let key = if i % 64 == 0 { usize::MAX - i } else { i % keys };
                bank.insert(column, &Hashed(hash(column, key))).unwrap();
            }
        });
        let ns = ask(bank, asked);
        stop.store(true, Ordering::Relaxed);
        ns
    })
}

/// Inserts of new keys into one column of an empty bank, beside those into a filter.
fn inserted(args: &Args, bank: &FilterBank, keys: usize, out: &mut String) {
    let hashes: Vec<u64> = (0..keys).map(|key| hash(usize::MAX >> 33, key)).collect();
    let builder = ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(0.01);
    let empty = FilterBank::new(bank.columns(), &builder).unwrap();
    let mut figures = [const { Vec::new() }; 4];
    for round in 0..args.rounds.min(3) {
        // (A column whose lines are in memory, but not in the caches.)
        let columns = [2 * round, 2 * round + 1];
        empty.insert_batch(63, Hashed::slice(&hashes)).unwrap();
        figures[0].push(
            time(keys, || {
                hashes
                    .iter()
                    .filter(|&&hash| empty.insert(columns[0], &Hashed(hash)).unwrap())
                    .count()
            })
            .0,
        );
        figures[1].push(time(keys, || empty.insert_batch(columns[1], Hashed::slice(&hashes)).unwrap()).0);
        let [one, batch] = [(); 2].map(|()| builder.clone().build().unwrap());
        figures[2].push(
            time(keys, || {
                hashes.iter().filter(|&&hash| one.insert(&Hashed(hash))).count()
            })
            .0,
        );
        figures[3].push(time(keys, || batch.insert_batch(Hashed::slice(&hashes))).0);
        assert!(empty.to_filter(columns[0]).unwrap() == one && empty.to_filter(columns[1]).unwrap() == batch);
    }
    let [insert, batch, plain, plain_batch] = figures.map(median);
    writeln!(out, "a new key: `insert` {insert:.1}, `insert_batch` {batch:.1}; into a `ConcurrentBloom` {plain:.1}, {plain_batch:.1}").unwrap();
}
