//! The chart of the false-positive rate against the number of keys, planned and measured, and of
//! how full the blocks are.

use crate::chart::{Anchor, Axis, COLORS, Frame, GRAY, Line, Look, Mark, SMALL, Svg, TEXT, round_ticks};
use crate::cpu_info;
use crate::table;
use crate::test_keys::{absent, hashes_at, insert_range};
use anyhow::{Context, Result, bail};
use indicatif::{HumanCount, ProgressBar};
use lanebloom::ConcurrentBloom;
use std::ops::Range;

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

pub(crate) struct Rates {
    keys: u64,
    rate: f64,
    /// The filter's description.
    filter: String,
    /// The absent keys that were looked up at each number of keys.
    lookups: u64,
    planned: Vec<(f64, f64)>,
    measured: Vec<(f64, f64)>,
    /// The share of blocks that have 0, 1, ... bits set at the expected number of keys.
    fill: Vec<f64>,
    expected_fill: Vec<f64>,
}

impl Rates {
    /// Fills a filter and looks up absent keys meanwhile.
    pub(crate) fn measure(keys: usize, rate: f64, quiet: bool) -> Result<Self> {
        let mut filter = ConcurrentBloom::with_capacity(keys, rate)
            .with_context(|| format!("a filter for {keys} keys at a rate of {rate}"))?;
        let memory = filter.memory_bytes() as u64;
        if let Some(free) = cpu_info::free_memory().filter(|free| *free < memory) {
            let (memory, free) = (table::bytes(memory), table::bytes(free));
            bail!("a filter for {keys} keys takes {memory}, and {free} of memory are free");
        }
        let keys = keys as u64;
        let lookups = lookups(rate);
        let steps =
            |steps| (0..=steps).map(move |step| (u128::from(2 * keys) * u128::from(step) / u128::from(steps)) as u64);
        let planned = steps(PLANNED)
            .map(|keys| (keys as f64, filter.false_positive_rate_at(keys as usize)))
            .collect();
        let mut measured = Vec::new();
        let (mut fill, mut inserted) = (Vec::new(), 0);
        let bar = if quiet {
            ProgressBar::hidden()
        } else {
            // It hides itself where stderr is not a terminal.
            ProgressBar::new(STEPS + 1)
        };
        for keys_now in bar.wrap_iter(steps(STEPS)) {
            if keys_now == inserted {
                continue;
            }
            insert_range(&mut filter, inserted..keys_now);
            inserted = keys_now;
            let planned = filter.false_positive_rate_at(keys_now as usize);
            let found = if is_measurable(lookups, planned) {
                false_positives(&filter, lookups)
            } else {
                0
            };
            if found >= LEAST {
                measured.push((keys_now as f64, found as f64 / lookups as f64));
            }
            if keys_now == keys {
                fill = measured_fill(&filter);
            }
        }
        bar.finish_and_clear();
        let expected_fill = expected_fill(&filter, keys);
        let lines = filter.lines_per_key();
        Ok(Self {
            keys,
            rate,
            filter: format!(
                "{:.1} bits per key; a key sets {} bits in {} words of {}",
                filter.bits_per_key(),
                lines * filter.bits_per_line(),
                filter.words_per_key(),
                if lines == 1 {
                    "one line".into()
                } else {
                    format!("{lines} lines")
                },
            ),
            lookups,
            planned,
            measured,
            fill,
            expected_fill,
        })
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
        filter.contains_hashes_bitmap(&hashes[..len], found);
        positives += found.iter().map(|found| u64::from(found.count_ones())).sum::<u64>();
    }
    positives
}

/// The share of blocks that have 0, 1, ... bits set.
fn measured_fill(filter: &ConcurrentBloom) -> Vec<f64> {
    let mut shares = vec![0.0; BITS + 1];
    for ones in filter.block_ones() {
        shares[ones as usize] += 1.0 / filter.blocks() as f64;
    }
    shares
}

/// The expected share of blocks that have 0, 1, ... bits set by `keys` keys.
///
/// The keys of a block have a binomial distribution. For each number of them, the bits have a known
/// mean and variance, and nearly the normal distribution.
fn expected_fill(filter: &ConcurrentBloom, keys: u64) -> Vec<f64> {
    let lines = filter.lines_per_key() as f64;
    // The probability that a key is in a given block, and a block's number of keys.
    let here = lines / filter.blocks() as f64;
    let load = keys as f64 * here;
    // A key draws its positions in one sector of the block. A sector of a whole block has two
    // halves, in each of which it draws half of them.
    let (words, draws) = (filter.words_per_key() as f64 / lines, filter.bits_per_line() as i32);
    let (size, sector) = (BITS as f64, 64.0 * words);
    let halves = sector == size;
    let (part, draws) = if halves {
        (sector / 2.0, draws / 2)
    } else {
        (sector, draws)
    };
    // The probability that a key sets one bit of a part, or either of two.
    let sets = |of: f64| sector / size * (1.0 - (1.0 - of / part).powi(draws));
    // The probability that a key leaves unset: one bit, two of a part, two of different parts.
    // These are independent in two halves, and it sets none in a second sector.
    let (one, same) = (1.0 - sets(1.0), 1.0 - sets(2.0));
    let other = if halves { one * one } else { 1.0 - 2.0 * sets(1.0) };

    let mut shares = vec![0.0; BITS + 1];
    let most = (load + 8.0 * load.sqrt() + 16.0).min(keys as f64) as i32;
    let mut probability = (keys as f64 * (-here).ln_1p()).exp();
    for count in 0..=most {
        let counted = f64::from(count);
        if here == 1.0 {
            probability = f64::from(count == most);
        }
        let unset = size * one.powi(count);
        let pairs = (part - 1.0) * same.powi(count) + (size - part) * other.max(0.0).powi(count);
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

const SIZE: (u32, u32) = (1000, 860);

/// Where both charts begin and end from left to right, and where their legends begin.
const LEFT: f64 = 75.0;
const RIGHT: f64 = 780.0;
const LEGEND: f64 = 800.0;

impl Rates {
    pub(crate) fn draw(&self) -> Svg {
        let keys = HumanCount(self.keys);
        let title = format!("ConcurrentBloom for {keys} keys at a rate of {}", percent(self.rate));
        let mut svg = Svg::new(SIZE, &title, &self.filter);
        self.draw_rates(&mut svg);
        self.draw_fill(&mut svg);
        svg
    }

    fn draw_rates(&self, svg: &mut Svg) {
        let keys = self.keys as f64;
        let last = self.planned[self.planned.len() - 1].1;
        // A filter of few keys has a better rate than it was made for, since it has whole blocks.
        let low = 10_f64.powf((self.rate.min(last) / 100.0).log10().floor());
        let high = 10_f64.powf(last.log10().ceil());
        let x = axis("keys", 0.0..2.0 * keys, count);
        let y = Axis {
            title: "false-positive rate".into(),
            range: low..high,
            is_log: true,
            ticks: decades(low, high)
                .into_iter()
                .map(|rate| (rate, percent(rate)))
                .collect(),
        };
        let frame = Frame::new(svg, (LEFT, 100.0), (RIGHT, 455.0), x, y);
        frame.rule(svg, keys, "expected keys");

        let planned = Look::line(COLORS[0]);
        let measured = Look {
            color: COLORS[1],
            wide: false,
            line: Line::None,
            mark: Mark::Circle,
        };
        let shown = |points: &[(f64, f64)]| Vec::from_iter(points.iter().copied().filter(|&(_, rate)| rate >= low));
        frame.series(svg, planned, &shown(&self.planned));
        frame.series(svg, measured, &shown(&self.measured));
        svg.legend((LEGEND, 110.0), [(planned, "planned"), (measured, "measured")]);
        let notes = [
            format!("at each point {}", HumanCount(self.lookups)),
            "absent keys looked up,".into(),
            format!("at least {LEAST} found"),
        ];
        for (line, y) in notes.iter().zip([166.0, 186.0, 206.0]) {
            svg.text((LEGEND, y), Anchor::Start, SMALL, GRAY, line);
        }
    }

    fn draw_fill(&self, svg: &mut Svg) {
        let is_seen = |bits: &usize| self.fill[*bits] > 0.0 || self.expected_fill[*bits] > 1e-4;
        let first = (0..=BITS).find(is_seen).unwrap_or(0);
        let last = (0..=BITS).rfind(is_seen).unwrap_or(BITS);
        // Bits of a bar.
        let width = (last + 1 - first).div_ceil(BARS);
        let bars = |shares: &[f64]| {
            let sum = |bits: &[f64]| bits.iter().sum::<f64>();
            Vec::from_iter(shares[first..=last].chunks(width).map(sum))
        };
        let (fill, expected) = (bars(&self.fill), bars(&self.expected_fill));
        let start = |bar: usize| (first + bar * width) as f64;
        let high = fill.iter().chain(&expected).fold(0.0, |high, &share| share.max(high)) * 1.1;
        let title = format!("bits set of the {BITS} of a block, at {} keys", HumanCount(self.keys));
        let x = axis(&title, start(0)..start(fill.len()), count);
        let y = axis("share of blocks", 0.0..high, percent);
        let frame = Frame::new(svg, (LEFT, 540.0), (RIGHT, 795.0), x, y);
        for (bar, &share) in fill.iter().enumerate() {
            let (left, top) = frame.at((start(bar), share));
            svg.bar((left, top), frame.at((start(bar + 1), 0.0)), COLORS[1]);
        }
        let look = Look::line(COLORS[0]);
        let middle = width as f64 / 2.0;
        let points = Vec::from_iter((0..).zip(&expected).map(|(bar, &share)| (start(bar) + middle, share)));
        frame.series(svg, look, &points);
        svg.legend((LEGEND, 550.0), [(look, "expected")]);
        svg.bar((LEGEND, 568.0), (LEGEND + 34.0, 584.0), COLORS[1]);
        svg.text((LEGEND + 44.0, 576.0), Anchor::Start, SMALL, TEXT, "measured");
    }
}

/// An axis from number to number in equal steps.
fn axis(title: &str, range: Range<f64>, label: fn(f64) -> String) -> Axis {
    Axis {
        title: title.into(),
        is_log: false,
        ticks: round_ticks(&range, 6.0).into_iter().map(|at| (at, label(at))).collect(),
        range,
    }
}

/// The powers of ten between two.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let exponents = low.log10().round() as i32..=high.log10().round() as i32;
    // By their texts, so that each is the nearest number to the decimal one.
    exponents
        .map(|exponent| format!("1e{exponent}").parse().expect("a number"))
        .collect()
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

    /// Fails unless the shares of `blocks` blocks can be a sample of the expected ones.
    #[track_caller]
    fn agree(measured: &[f64], expected: &[f64], blocks: usize, shape: &str) {
        let (mut sums, mut distance) = ((0.0, 0.0), 0.0_f64);
        for (measured, expected) in measured.iter().zip(expected) {
            sums = (sums.0 + measured, sums.1 + expected);
            distance = distance.max((sums.0 - sums.1).abs());
        }
        let is_whole = |sum: f64| (sum - 1.0).abs() < 1e-6;
        assert!(is_whole(sums.0) && is_whole(sums.1), "{shape}: {sums:?}");
        // Kolmogorov and Smirnov: a sample in a thousand is farther away.
        let limit = 1.95 / (blocks as f64).sqrt();
        assert!(distance < limit, "{shape}: {distance} is more than {limit}");
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
            let mut filter = builder.build().unwrap();
            insert_range(&mut filter, 0..100_000);
            let (measured, expected) = (measured_fill(&filter), expected_fill(&filter, 100_000));
            let shape = format!("{lines} lines, {words} words");
            agree(&measured, &expected, filter.blocks(), &shape);
        }
    }

    /// The bits of a block with a fixed number of keys: without the chance of how many it has.
    #[test]
    fn a_block_of_so_many_keys_is_as_full_as_expected() {
        const ROUNDS: u64 = 2000;
        for (words, keys) in [(1, 20), (2, 30), (4, 20), (8, 20)] {
            let builder = ConcurrentBloom::builder().memory_budget(64).words_per_key(words);
            let mut filter = builder.expected_keys(keys).build().unwrap();
            let keys = keys as u64;
            let mut measured = vec![0.0; BITS + 1];
            for round in 0..ROUNDS {
                filter.clear();
                insert_range(&mut filter, round * keys..(round + 1) * keys);
                for (sum, share) in measured.iter_mut().zip(measured_fill(&filter)) {
                    *sum += share / ROUNDS as f64;
                }
            }
            let expected = expected_fill(&filter, keys);
            // A bit is a good part of the distribution's width.
            agree(
                &measured,
                &expected,
                ROUNDS as usize / 4,
                &format!("{words} words, {keys} keys"),
            );
        }
    }
}
