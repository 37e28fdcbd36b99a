//! Batches of several lengths beside single calls, to see from which length on a batch wins.

use crate::contestants::{BATCH, Calls, Ours, count};
use crate::features::{Library, features};
use crate::{Args, Lookups, fill, missing};
use lanebloom::{Bitmap, ConcurrentBloom, Hashed};
use lanebloom_benches::{median, timed};

/// Divide `BATCH`.
const LENGTHS: [usize; 9] = [1, 2, 4, 8, 16, 32, 64, 256, 1024];

/// One row: a public call that takes a batch, and the one that takes a key.
struct Row<'a> {
    name: String,
    library: Library,
    keys: &'a [u64],
    /// Takes keys one by one, and returns the number of positive answers.
    single: Box<Singles<'a>>,
    /// The same in batches of the given length.
    batch: Box<Batches<'a>>,
}

type Singles<'a> = dyn Fn(&[u64]) -> usize + Sync + 'a;
type Batches<'a> = dyn Fn(&[u64], usize) -> usize + Sync + 'a;

/// The median of the single calls, in ns per key; for each length that of the batches, and that of
/// the ratios of single calls to batches of the same round.
type Times = (f64, [(f64, f64); LENGTHS.len()]);

pub(crate) fn batch_lengths(args: &Args, bytes: usize) -> String {
    let ours = |hashed| Ours::new(bytes, args.rate, hashed, args.level(), Calls::Single).filter;
    let (hashes, keys) = (ours(true), ours(false));
    let n = hashes.expected_keys();
    fill(n, |all| _ = hashes.insert_batch(Hashed::slice(all)));
    fill(n, |all: &[u64]| _ = keys.insert_batch(all));
    let lookups = Lookups::new(bytes, n, args.keys);
    #[cfg(has_boost)]
    let boost = {
        let mut boost = crate::boost::Boost::hashes(n, args.rate);
        fill(n, |all| boost.insert_bulk(all));
        boost
    };
    #[cfg_attr(not(has_boost), expect(unused_mut, reason = "Boost adds a row"))]
    let mut rows = our_rows(&hashes, &keys, &lookups);
    #[cfg(has_boost)]
    if crate::boost::has_bulk() {
        rows.push(Row {
            name: crate::boost::name("may_contain"),
            library: Library::Boost,
            keys: &lookups.mixed,
            single: Box::new(|hashes| boost.contains(hashes)),
            batch: Box::new(|hashes, length| boost.contains_bulk(hashes, length)),
        });
    }

    let mut table = format!(
        "\n## {} KiB, {n} keys at {}, by the length of the batch\n\n\
         ns per key (times faster than single calls in the same rounds)\n\n",
        bytes >> 10,
        args.rate
    );
    table += &features(args, rows.iter().map(|row| row.library));
    let line = |first: &str, cells: Vec<String>| format!("| {first:47} | {} |\n", cells.join(" | "));
    let mut titles = vec!["single calls".to_owned()];
    titles.extend(LENGTHS.map(|length| format!("{length:>13}")));
    table += &line("", titles);
    table += &format!("|---{} |\n", "|--:".repeat(LENGTHS.len() + 1));
    for row in &rows {
        let (single, batches) = measure(args.rounds, row, &lookups);
        let mut cells = vec![format!("{single:>12.2}")];
        cells.extend(batches.map(|(time, ratio)| format!("{:>13}", format!("{time:.2} ({ratio:.2}x)"))));
        table += &line(&row.name, cells);
    }
    table + &missing()
}

/// The calls of a filter that holds hashes, and of one that holds keys.
fn our_rows<'a>(hashes: &'a ConcurrentBloom, keys: &'a ConcurrentBloom, lookups: &'a Lookups) -> Vec<Row<'a>> {
    // Answers are counted after 1024 keys, and the loops are simple: all that is done for a batch
    // counts as its time.
    fn flags(all: &[u64], length: usize, batch: impl Fn(&[u64], &mut [bool])) -> usize {
        let mut found = [false; BATCH];
        let count = |part: &[u64]| {
            for (keys, found) in part.chunks_exact(length).zip(found.chunks_exact_mut(length)) {
                batch(keys, found);
            }
            found.iter().filter(|&&found| found).count()
        };
        all.chunks_exact(BATCH).map(count).sum()
    }
    fn bitmaps(all: &[u64], length: usize, batch: impl Fn(&[u64], &mut [u64])) -> usize {
        let words = length.div_ceil(64);
        let mut found = [0; BATCH];
        let count = |part: &[u64]| {
            for (keys, found) in part.chunks_exact(length).zip(found.chunks_exact_mut(words)) {
                batch(keys, found);
            }
            let found = &found[..BATCH / length * words];
            found.iter().map(|word| word.count_ones() as usize).sum::<usize>()
        };
        all.chunks_exact(BATCH).map(count).sum()
    }
    let row = |call: &str, keys, single, batch| Row {
        name: format!("lanebloom, {call}"),
        library: Library::Lanebloom,
        keys,
        single,
        batch,
    };
    vec![
        row(
            "contains_batch, hashes",
            &lookups.mixed,
            Box::new(|all| count(all, |hash| hashes.contains(&Hashed(hash)))),
            Box::new(|all, length| {
                flags(all, length, |part, found| {
                    hashes.contains_batch(Hashed::slice(part), found)
                })
            }),
        ),
        row(
            "contains_batch, hashes, to a Bitmap",
            &lookups.mixed,
            Box::new(|all| count(all, |hash| hashes.contains(&Hashed(hash)))),
            Box::new(|all, length| {
                bitmaps(all, length, |part, found| {
                    hashes.contains_batch(Hashed::slice(part), Bitmap(found))
                })
            }),
        ),
        row(
            "insert_batch, present hashes",
            &lookups.present,
            Box::new(|all| count(all, |hash| hashes.insert(&Hashed(hash)))),
            Box::new(|all, length| {
                all.chunks_exact(length)
                    .map(|part| hashes.insert_batch(Hashed::slice(part)))
                    .sum()
            }),
        ),
        row(
            "contains_batch, u64 keys",
            &lookups.mixed,
            Box::new(|all| count(all, |key| keys.contains(&key))),
            Box::new(|all, length| flags(all, length, |part, found| keys.contains_batch(part, found))),
        ),
        row(
            "insert_batch, present u64 keys",
            &lookups.present,
            Box::new(|all| count(all, |key| keys.insert(&key))),
            Box::new(|all, length| all.chunks_exact(length).map(|part| keys.insert_batch(part)).sum()),
        ),
    ]
}

/// Rounds of single calls and of batches of each length, which must answer alike. One row after the
/// other, so that a filter stays in the caches.
fn measure(rounds: usize, row: &Row, lookups: &Lookups) -> Times {
    let name = &row.name;
    // Lookups find the members, and some strangers by mistake. No present key is new.
    let (all, half) = ((row.single)(row.keys), lookups.present.len());
    let right = if row.keys.len() > half {
        half..=half + half / 4
    } else {
        0..=0
    };
    assert!(right.contains(&all), "{name}: {all} of {}", row.keys.len());

    // Whole batches of every length.
    let keys = &row.keys[..row.keys.len() / BATCH * BATCH];
    let expected = (row.single)(keys);
    let mut singles = Vec::new();
    let mut batches = [(); LENGTHS.len()].map(|()| (Vec::new(), Vec::new()));
    for _ in 0..rounds {
        let (single, answers) = timed(1, keys, &row.single);
        assert_eq!(answers, expected, "{name}");
        singles.push(single);
        for (length, (times, ratios)) in LENGTHS.into_iter().zip(&mut batches) {
            let (batch, answers) = timed(1, keys, |keys| (row.batch)(keys, length));
            assert_eq!(answers, expected, "{name}, batches of {length}");
            times.push(batch);
            ratios.push(single / batch);
        }
    }
    (
        median(singles),
        batches.map(|(times, ratios)| (median(times), median(ratios))),
    )
}
