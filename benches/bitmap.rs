//! `ConcurrentBitmap` beside a roaring bitmap (the crate `roaring`, one thread): memory and time,
//! for sets of several densities.
//!
//!     cargo bench --bench bitmap                                # 10^8 positions, half a minute
//!     cargo bench --bench bitmap -- --bound 1000000000 --record record/FILE.md
//!     cargo bench --bench bitmap -- --test                      # a tiny size, to see that it runs
//!
//! Sets: random positions (1 of 2, of 16, of 1000, of 100,000), and runs of 1000 to 9000 positions.
//! In a round every contestant does the same once, in turn; the table has medians of the rounds.
//! Half of the lookups find their position. The bench compares the contestants' answers.

use clap::Parser;
use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom_benches::{BenchArgs, machine, median, number, time};
use roaring::RoaringBitmap;
use std::fmt::Write as _;

#[derive(Parser)]
struct Args {
    /// Positions are below this: at most 2^32, roaring's limit.
    #[arg(long, default_value_t = 100_000_000)]
    bound: u64,
    /// Rounds of which the median is taken.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Lookups and inserts of a round.
    #[arg(long, default_value_t = 1 << 20)]
    operations: u64,
    #[command(flatten)]
    bench: BenchArgs,
}

/// The set's positions, ascending.
fn positions(kind: &str, bound: u64) -> Vec<u32> {
    let one_of = |n: u64| {
        (0..bound)
            .filter(|&at| number(at).is_multiple_of(n))
            .map(|at| at as u32)
            .collect()
    };
    match kind {
        "1 of 2" => one_of(2),
        "1 of 16" => one_of(16),
        "1 of 1000" => one_of(1000),
        "1 of 100,000" => one_of(100_000),
        _ => {
            let (mut all, mut at) = (Vec::new(), 0);
            for i in 0.. {
                let (gap, run) = (1000 + number(2 * i) % 8000, 1000 + number(2 * i + 1) % 8000);
                if at + gap + run > bound {
                    return all;
                }
                all.extend((at + gap) as u32..(at + gap + run) as u32);
                at += gap + run;
            }
            all
        }
    }
}

fn main() {
    let mut args = Args::parse();
    if args.bench.test {
        (args.bound, args.rounds, args.operations) = (100_000, 1, 1000);
    }
    let bound = args.bound;
    let mut out = format!("{}; {} rounds\n\n{bound} positions\n\n", machine(), args.rounds);
    let head = "memory, MiB | contains, ns | contains, batches of 1024 | insert, ns | remove, ns | union, ms | len, ms | iterate, ns a position";
    writeln!(out, "| set | | {head} |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|").unwrap();
    for kind in ["1 of 2", "1 of 16", "1 of 1000", "1 of 100,000", "runs of 1000 to 9000"] {
        let all = positions(kind, bound);
        let ours = ConcurrentBitmap::new(bound).unwrap();
        for &at in &all {
            ours.insert(at.into()).unwrap();
        }
        let mut theirs = RoaringBitmap::from_sorted_iter(all.iter().copied()).unwrap();
        theirs.optimize();
        assert!(ours.len() == theirs.len() && ours.iter().eq(theirs.iter().map(u64::from)));
        let other = ConcurrentBitmap::new(bound).unwrap();
        for &at in &all {
            other.insert(u64::from(at) * 31 % bound).unwrap();
        }
        let their_other: RoaringBitmap = other.iter().map(|at| at as u32).collect();

        let mut figures = vec![Vec::new(); 15];
        for round in 0..args.rounds as u64 {
            let pick = |i: u64| number(round * args.operations + i);
            let asked: Vec<u64> = (0..args.operations)
                .map(|i| match i % 2 {
                    0 => pick(i) % bound,
                    _ => all[pick(i) as usize % all.len()].into(),
                })
                .collect();
            let count = asked.len();
            let mut row = Vec::new();
            let (ns, found) = time(count, || asked.iter().filter(|&&at| ours.contains(at)).count());
            row.push(ns);
            let (ns, same) = time(count, || asked.iter().filter(|&&at| theirs.contains(at as u32)).count());
            row.push(ns);
            let mut flags = [false; 1024];
            let (ns, in_batches) = time(count, || {
                let answers = asked.chunks(1024).map(|asked| {
                    ours.contains_batch(asked, &mut flags[..asked.len()]);
                    flags[..asked.len()].iter().filter(|found| **found).count()
                });
                answers.sum::<usize>()
            });
            row.push(ns);
            assert!(found == same && found == in_batches);

            // Positions that are free, inserted and removed again.
            let mut free: Vec<u64> = asked.iter().map(|&at| number(at) % bound).collect();
            free.sort_unstable();
            free.dedup();
            free.retain(|&at| !ours.contains(at));
            free.sort_unstable_by_key(|&at| number(at ^ round));
            let count = free.len();
            let (ns, new) = time(count, || free.iter().filter(|&&at| ours.insert(at).unwrap()).count());
            row.push(ns);
            let (ns, gone) = time(count, || free.iter().filter(|&&at| ours.remove(at)).count());
            row.push(ns);
            let (ns, batch) = time(count, || {
                free.chunks(1024)
                    .map(|free| ours.insert_batch(free).unwrap())
                    .sum::<usize>()
            });
            row.push(ns);
            assert!(new == count && gone == count && batch == count);
            assert_eq!(
                free.chunks(1024).map(|free| ours.remove_batch(free)).sum::<usize>(),
                count
            );
            let (ns, new) = time(count, || free.iter().filter(|&&at| theirs.insert(at as u32)).count());
            row.push(ns);
            let (ns, gone) = time(count, || free.iter().filter(|&&at| theirs.remove(at as u32)).count());
            row.push(ns);
            assert!(new == count && gone == count);

            let mut copy = ours.try_clone().unwrap();
            let (ns, _) = time(1_000_000, || copy.union_from(&other).unwrap());
            row.push(ns);
            let mut their_copy = theirs.clone();
            let (ns, _) = time(1_000_000, || their_copy |= &their_other);
            row.push(ns);
            let (ns, len) = time(1_000_000, || copy.len());
            row.push(ns);
            let (ns, same) = time(1_000_000, || their_copy.len());
            row.push(ns);
            assert_eq!(len, same);
            copy = ours.try_clone().unwrap();
            let (ns, sum) = time(all.len(), || copy.iter().sum::<u64>());
            row.push(ns);
            let (ns, same) = time(all.len(), || theirs.iter().map(u64::from).sum::<u64>());
            row.push(ns);
            assert_eq!(sum, same);
            for (figure, value) in figures.iter_mut().zip(row) {
                figure.push(value);
            }
        }
        let figures: Vec<f64> = figures.into_iter().filter(|f| !f.is_empty()).map(median).collect();
        let [
            hit,
            their_hit,
            batch,
            insert,
            remove,
            insert_batch,
            their_insert,
            their_remove,
            union,
            their_union,
            len,
            their_len,
            iter,
            their_iter,
        ] = figures[..]
        else {
            unreachable!("a row has 14 figures");
        };
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        writeln!(out, "| {kind} | ConcurrentBitmap | {:.2} | {hit:.1} | {batch:.1} | {insert:.1} ({insert_batch:.1} in batches) | {remove:.1} | {union:.2} | {len:.2} | {iter:.2} |", mib(ours.memory_bytes())).unwrap();
        writeln!(out, "| | roaring | {:.2} | {their_hit:.1} | | {their_insert:.1} | {their_remove:.1} | {their_union:.2} | {their_len:.4} | {their_iter:.2} |", mib(theirs.serialized_size())).unwrap();
    }
    args.bench.add(&mut String::new(), &out);
}
