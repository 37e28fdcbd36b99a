//! The chart of the false-positive rate against the number of keys, planned and measured, and of
//! how full the blocks are.

use crate::chart::{Axis, Chart, Look, Panel, Series};
use crate::cpu_info;
use crate::table;
use crate::test_keys::{absent, hashes_at, insert_range};
use anyhow::{Context, Result, bail};
use indicatif::{HumanCount, ProgressBar};
use lanebloom::{Bitmap, ConcurrentBloom, Hashed, Membership};

/// Numbers of keys at which the rate is measured, up to twice the expected one.
const STEPS: u64 = 40;

/// Numbers of keys at which the planned rate is computed.
const PLANNED: u64 = 100;

/// Fewer false positives than this say little about a rate.
const LEAST: u64 = 10;

/// Bits of a block.
const BITS: usize = 512;

/// Bars in the chart of the blocks, at most.
const BARS: usize = 64;

/// Fills a filter, and looks up absent keys meanwhile.
pub(crate) fn chart(keys: usize, rate: f64, quiet: bool) -> Result<Chart> {
    let mut filter = ConcurrentBloom::with_capacity(keys, rate)
        .with_context(|| format!("a filter for {keys} keys at a rate of {rate}"))?;
    let memory = filter.memory_bytes() as u64;
    if let Some(free) = cpu_info::free_memory().filter(|free| *free < memory) {
        let (memory, free) = (table::bytes(memory), table::bytes(free));
        bail!("a filter for {keys} keys takes {memory}, and {free} of memory are free");
    }
    let keys = keys as u64;
    let lookups = lookups(rate);
    let bar = if quiet {
        ProgressBar::hidden()
    } else {
        // It hides itself where stderr is not a terminal.
        ProgressBar::new(STEPS + 1)
    };
    let (mut measured, mut fill, mut inserted) = (Vec::new(), Vec::new(), 0);
    for now in bar.wrap_iter(steps(keys, STEPS)) {
        if now == inserted {
            continue;
        }
        insert_range(&mut filter, inserted..now);
        inserted = now;
        if is_measurable(lookups, filter.false_positive_rate_at(now as usize)) {
            let found = false_positives(&filter, lookups);
            if found >= LEAST {
                measured.push((now as f64, found as f64 / lookups as f64));
            }
        }
        if now == keys {
            fill = measured_fill(&filter);
        }
    }
    bar.finish_and_clear();

    let lines = filter.layout().lines_per_key;
    let of_key = match lines {
        1 => "one line".into(),
        lines => format!("{lines} lines"),
    };
    Ok(Chart {
        title: format!(
            "ConcurrentBloom for {} keys at a rate of {}",
            HumanCount(keys),
            percent(rate)
        ),
        below: format!(
            "{:.1} bits per key; a key sets {} bits in {} words of {of_key}",
            filter.statistics().bits_per_key,
            lines * filter.layout().bits_per_line,
            filter.layout().words_per_key,
        ),
        panels: vec![
            rate_panel(&filter, keys, rate, lookups, measured),
            fill_panel(keys, &fill, &expected_fill(&filter, keys)),
        ],
    })
}

/// Numbers of keys from none to twice the expected one.
fn steps(keys: u64, steps: u64) -> impl Iterator<Item = u64> {
    (0..=steps).map(move |step| (u128::from(2 * keys) * u128::from(step) / u128::from(steps)) as u64)
}

fn rate_panel(filter: &ConcurrentBloom, keys: u64, rate: f64, lookups: u64, measured: Vec<(f64, f64)>) -> Panel {
    let planned = |keys: u64| (keys as f64, filter.false_positive_rate_at(keys as usize));
    let (end, last) = planned(2 * keys);
    // A filter of few keys has a better rate than it was made for, since it has whole blocks.
    let low = 10_f64.powf((rate.min(last) / 100.0).log10().floor());
    let high = 10_f64.powf(last.log10().ceil());
    let planned = Vec::from_iter(steps(keys, PLANNED).map(planned));
    let shown = |points: Vec<(f64, f64)>| points.into_iter().filter(|&(_, rate)| rate >= low).collect();
    Panel {
        height: 355.0,
        x: Axis::new("keys", 0.0..end, false, count),
        y: Axis::new("false-positive rate", low..high, true, percent),
        rules: vec![(keys as f64, "expected keys".into())],
        series: vec![
            series("planned", 0, Look::Curve, shown(planned)),
            series("measured", 1, Look::Dots, shown(measured)),
        ],
        notes: vec![
            format!("at each point {}", HumanCount(lookups)),
            "absent keys looked up,".into(),
            format!("at least {LEAST} found"),
        ],
    }
}

fn fill_panel(keys: u64, fill: &[f64], expected: &[f64]) -> Panel {
    let is_seen = |bits: &usize| fill[*bits] > 0.0 || expected[*bits] > 1e-4;
    let first = (0..=BITS).find(is_seen).unwrap_or(0);
    let last = (0..=BITS).rfind(is_seen).unwrap_or(BITS);
    let width = (last + 1 - first).div_ceil(BARS);
    let bars = |shares: &[f64]| {
        let bars = shares[first..=last].chunks(width).map(|bits| bits.iter().sum::<f64>());
        Vec::from_iter((first..).step_by(width).map(|bits| bits as f64).zip(bars))
    };
    let (fill, expected, width) = (bars(fill), bars(expected), width as f64);
    let high = fill.iter().chain(&expected).fold(0.0, |high, bar| bar.1.max(high));
    let ends = fill[0].0..fill[fill.len() - 1].0 + width;
    let title = format!("bits set of the {BITS} of a block, at {} keys", HumanCount(keys));
    let steps = fill
        .iter()
        .flat_map(|&(bits, share)| [(bits, share), (bits + width, share)]);
    let middles = expected.iter().map(|&(bits, share)| (bits + width / 2.0, share));
    Panel {
        height: 255.0,
        x: Axis::new(&title, ends, false, count),
        y: Axis::new("share of blocks", 0.0..1.1 * high, false, percent),
        rules: Vec::new(),
        series: vec![
            series("measured", 1, Look::Area, steps.collect()),
            series("expected", 0, Look::Curve, middles.collect()),
        ],
        notes: Vec::new(),
    }
}

fn series(name: &str, color: usize, look: Look, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.into(),
        color,
        look,
        points,
    }
}

/// The number of lookups for some 2000 false positives at the expected number of keys, but for a
/// few seconds at most.
fn lookups(rate: f64) -> u64 {
    ((2000.0 / rate) as u64).clamp(1 << 16, 1 << 25)
}

/// Whether this number of lookups may find [`LEAST`] false positives at the planned rate. With less
/// than one expected, they do once in ten million times.
fn is_measurable(lookups: u64, planned: f64) -> bool {
    lookups as f64 * planned >= 1.0
}

/// The number of false positives among `lookups` absent keys.
fn false_positives(filter: &ConcurrentBloom, lookups: u64) -> u64 {
    const BATCH: usize = 4096;
    let mut found = [0; BATCH / 64];
    let mut positives = 0;
    for start in (0..lookups).step_by(BATCH) {
        let hashes = hashes_at::<BATCH>(|i| absent(start + i));
        let len = (lookups - start).min(BATCH as u64) as usize;
        let found = &mut found[..len.div_ceil(64)];
        filter.contains_batch(Hashed::slice(&hashes[..len]), Bitmap(found));
        positives += found.iter().map(|found| u64::from(found.count_ones())).sum::<u64>();
    }
    positives
}

/// The share of blocks that have 0, 1, ... bits set.
fn measured_fill(filter: &ConcurrentBloom) -> Vec<f64> {
    let mut shares = vec![0.0; BITS + 1];
    for ones in filter.snapshot().block_ones() {
        shares[ones as usize] += 1.0 / filter.layout().blocks as f64;
    }
    shares
}

/// The expected share of blocks that have 0, 1, ... bits set by `keys` keys.
///
/// The keys of a block have a binomial distribution. For each number of them, the bits have a known
/// mean and variance, and nearly the normal distribution.
fn expected_fill(filter: &ConcurrentBloom, keys: u64) -> Vec<f64> {
    let lines = filter.layout().lines_per_key as f64;
    // The probability that a key is in a given block, and a block's number of keys.
    let here = lines / filter.layout().blocks as f64;
    let load = keys as f64 * here;
    // A key draws its positions in one sector of the block, and sets nothing in another one. (In a
    // sector of eight words it draws half of them in each half; that is too little to be seen.)
    let (size, sector) = (BITS as f64, 64.0 * filter.layout().words_per_key as f64 / lines);
    // The probability that a key sets one bit of a sector, or either of two.
    let sets = |of: f64| sector / size * (1.0 - (1.0 - of / sector).powi(filter.layout().bits_per_line as i32));
    // The probability that a key leaves unset: one bit, two of a sector, two of different sectors.
    let (one, same, other) = (1.0 - sets(1.0), 1.0 - sets(2.0), 1.0 - 2.0 * sets(1.0));

    let mut shares = vec![0.0; BITS + 1];
    let most = (load + 8.0 * load.sqrt() + 16.0).min(keys as f64) as i32;
    let mut probability = (keys as f64 * (-here).ln_1p()).exp();
    for count in 0..=most {
        let counted = f64::from(count);
        if here == 1.0 {
            probability = f64::from(count == most);
        }
        let unset = size * one.powi(count);
        let pairs = (sector - 1.0) * same.powi(count) + (size - sector) * other.max(0.0).powi(count);
        let variance = (unset + size * pairs - unset * unset).max(0.01);
        let mut normal = Vec::from_iter((0..=BITS).map(|set| {
            let distance = set as f64 - (size - unset);
            (-distance * distance / (2.0 * variance)).exp()
        }));
        let sum: f64 = normal.iter().sum();
        normal.iter_mut().for_each(|density| *density /= sum);
        for (share, density) in shares.iter_mut().zip(normal) {
            *share += probability * density;
        }
        probability *= (keys as f64 - counted) / (counted + 1.0) * here / (1.0 - here);
    }
    shares
}

/// A whole number with commas; another one, between the bars of few, as it is.
fn count(number: f64) -> String {
    if number.fract() == 0.0 {
        HumanCount(number as u64).to_string()
    } else {
        format!("{number:.1}")
    }
}

/// A rate as people write it: `1%`, `0.01%`, `1e-6`.
fn percent(rate: f64) -> String {
    if rate > 0.0 && rate < 0.99e-4 {
        format!("{rate:e}")
    } else {
        // Without the noise of binary fractions.
        format!("{}%", (rate * 1e8).round() / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails unless the blocks of filters that were filled `rounds` times can be a sample of those
    /// that are expected. `spread` blocks count as one.
    #[track_caller]
    fn agree(mut filter: ConcurrentBloom, rounds: u64, spread: f64) {
        let keys = filter.expected_keys() as u64;
        let expected = expected_fill(&filter, keys);
        let mut measured = vec![0.0; BITS + 1];
        for round in 0..rounds {
            filter.clear();
            insert_range(&mut filter, round * keys..(round + 1) * keys);
            for (sum, share) in measured.iter_mut().zip(measured_fill(&filter)) {
                *sum += share / rounds as f64;
            }
        }
        let (mut sums, mut distance) = ((0.0, 0.0), 0.0_f64);
        for (measured, expected) in measured.iter().zip(expected) {
            sums = (sums.0 + measured, sums.1 + expected);
            distance = distance.max((sums.0 - sums.1).abs());
        }
        let is_whole = |sum: f64| (sum - 1.0).abs() < 1e-6;
        assert!(is_whole(sums.0) && is_whole(sums.1), "{filter:?}: {sums:?}");
        // Kolmogorov and Smirnov: a sample in a thousand is farther away.
        let limit = 1.95 / ((filter.layout().blocks as u64 * rounds) as f64 / spread).sqrt();
        assert!(distance < limit, "{filter:?}: {distance} is more than {limit}");
    }

    /// A minute of lookups would find nothing.
    #[test]
    fn a_rate_out_of_reach_is_not_measured() {
        for (rate, is_in_reach) in [(0.01, true), (1e-6, true), (1e-9, false), (1e-12, false)] {
            let filter = ConcurrentBloom::with_capacity(1000, rate).unwrap();
            let planned = filter.false_positive_rate_at(1000);
            assert_eq!(is_measurable(lookups(rate), planned), is_in_reach, "{rate}");
        }
    }

    #[test]
    fn blocks_are_as_full_as_expected() {
        for (lines, words, rate) in [
            (1, 1, 0.05),
            (1, 2, 0.01),
            (1, 4, 0.001),
            (1, 8, 1e-4),
            (2, 2, 0.01),
            (2, 8, 1e-4),
        ] {
            let builder = ConcurrentBloom::builder().lines_per_key(lines).words_per_key(words);
            let builder = builder.expected_keys(100_000).false_positive_rate(rate);
            agree(builder.build().unwrap(), 1, 1.0);
        }
        // One block, so a fixed number of keys. A bit is a good part of the distribution's width.
        for (words, keys) in [(1, 20), (2, 30), (4, 20), (8, 20)] {
            let builder = ConcurrentBloom::builder().memory_budget(64).words_per_key(words);
            agree(builder.expected_keys(keys).build().unwrap(), 2000, 4.0);
        }
    }
}
