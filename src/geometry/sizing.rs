//! Turns keys and a false-positive rate into a layout, and back: the arithmetic of filters of bits
//! and of counters. `rates.rs` has the other filters, and says where each formula is. Builders call
//! it, and so do the methods that report a filter's statistics.
//!
//! `docs/CHOICES.md` has the model: the sum `g(j)` of `RateModel`, and why two lines need less
//! memory. No constant of the model is fitted to measurements.
//!
//! Only `+ - * /` on `f64` are used, in one order, so that every platform finds the same layout.
//! (`exp`, `ln` and `powi` may differ in the last bit between platforms, and `core` has none of
//! them.)

use crate::error::{BuildError, BuildErrorKind};
use crate::geometry::layout::{
    LINE_BITS, LINE_BYTES, LINE_WORDS, Layout, MOST_BITS, MOST_LINES_PER_KEY, Shape, WORDS_PER_KEY,
};
use alloc::format;

/// A rate that needs more bits of memory per key is out of reach of filters with slots: a hash set
/// of the 64-bit hashes would take no more memory and be wrong less often. (Bloom filters have
/// another [limit](Request::limit).)
pub(crate) const MAX_BITS_PER_KEY: usize = 128;

/// The unit that a key's draws hit in a word, by its number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    #[default]
    Bit = 1,
    /// 4 bits that count.
    Counter = 4,
}

impl Unit {
    pub(crate) const fn bits(self) -> usize {
        self as usize
    }
}

/// The builder chooses fewer words per key if that needs at most this multiple of the best layout's
/// memory, since an insert has an atomic operation for each word. It chooses 1 word down to 5%, 2
/// down to 1%, 4 down to 0.1%, and 8 at 1e-4. (Beside the least: 1.035 times the memory at 10%,
/// 1.093 at 1%, 1.068 at 0.1%. Beside 4 words, 2 take 1.06 times the memory at 1%, and a new key
/// 0.6 times the time.)
const FEWER_WORDS_PRICE: f64 = 1.1;

/// The builder chooses two lines per key from this rate down. They need 0.76 times the memory at
/// 1e-5 and 0.65 times at 1e-6. (A lookup of an absent key reads one of them. A lookup of a present
/// key, or an insert, takes up to twice the time: at 1e-4, where they need 0.87 times the memory,
/// lookups in one line of eight words are faster.)
const TWO_LINES_FROM: f64 = 1e-5;

/// With at least this number of keys per line, the rate is taken as 1: the sums would take long for
/// the same result. Builders plan no filter for more.
const MAX_LOAD: f64 = 32768.0;

/// The builder settings that many filters share; each is optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    pub(crate) keys: Option<usize>,
    pub(crate) rate: Option<f64>,
    pub(crate) budget: Option<usize>,
    /// Words per key, in all lines.
    pub(crate) words: Option<usize>,
    pub(crate) lines: Option<usize>,
    pub(crate) unit: Unit,
}

impl Request {
    /// The layout, and the number of keys for which it is planned.
    pub(crate) fn solve(self) -> Result<(Layout, usize), BuildError> {
        self.check()?;
        let with = |lines| {
            let lines = Some(lines);
            Self { lines, ..self }.solve_for_lines()
        };
        if !self.plans_lines() {
            return with(self.lines.unwrap_or(1));
        }
        if !self.is_best_that_fits() && self.rate.unwrap_or(0.01) > TWO_LINES_FROM {
            return with(1);
        }
        match (with(1), with(2)) {
            (Ok(one), Ok(two)) if !self.prefers(two, one) => Ok(one),
            (one, Err(_)) => one,
            (_, two) => two,
        }
    }

    /// Whether two lines per key are planned where that is worth it. (A key's counters lie in one
    /// line.)
    fn plans_lines(&self) -> bool {
        self.unit == Unit::Bit && self.lines.is_none() && self.words.is_none()
    }

    /// Whether keys and budget determine the rate.
    pub(crate) fn is_best_that_fits(&self) -> bool {
        self.rate.is_none() && self.keys.is_some() && self.budget.is_some()
    }

    /// Whether two lines per key save memory (small filters have whole lines, and may save none),
    /// or reach in the same memory a rate for which they are chosen.
    fn prefers(&self, two: (Layout, usize), one: (Layout, usize)) -> bool {
        let ((two, keys_of_two), (one, keys_of_one)) = (two, one);
        if self.is_best_that_fits() {
            let rate = two.rate_of(self.unit, keys_of_two);
            return rate <= TWO_LINES_FROM && rate <= one.rate_of(self.unit, keys_of_one);
        }
        two.blocks as u128 * keys_of_one as u128 <= one.blocks as u128 * keys_of_two as u128
    }

    /// [`solve`](Self::solve) with the given lines per key.
    fn solve_for_lines(self) -> Result<(Layout, usize), BuildError> {
        let lines = self.lines.unwrap_or(1);
        let rate = self.rate.unwrap_or(0.01);
        let bytes = self.budget.unwrap_or(0);
        let whole_budget = self.budget.map(|bytes| bytes / LINE_BYTES / lines * lines);
        if whole_budget == Some(0) {
            return Err(small_budget(bytes, lines));
        }
        match (self.keys.map(|keys| keys.max(1)), whole_budget) {
            (None, None) => Err(BuildError(BuildErrorKind::NothingToSizeFor)),
            (Some(keys), Some(blocks)) if self.rate.is_none() => {
                let shape = self.best_shape_at(keys as f64 / blocks as f64);
                let layout = Layout { shape, blocks };
                if keys > layout.most_keys() {
                    return Err(BuildError::new(format!(
                        "{keys} keys in {blocks} blocks exceed the limit of {MAX_LOAD} keys per block; raise the memory \
                         budget"
                    )));
                }
                Ok((layout, keys))
            }
            (None, Some(blocks)) => {
                let (shape, load) = self.best_shape_for(rate)?;
                Ok((Layout { shape, blocks }, (load * blocks as f64) as usize))
            }
            (Some(keys), budget) => {
                let (shape, load) = self.best_shape_for(rate)?;
                let blocks = ceil(keys as f64 / load / lines as f64) * lines as f64;
                if blocks >= (isize::MAX as usize / LINE_BYTES) as f64 {
                    return Err(BuildError::too_large(keys, rate));
                }
                let blocks = blocks as usize;
                if budget.is_some_and(|most| blocks > most) {
                    let (needed, limit) = (blocks * LINE_BYTES, bytes);
                    return Err(BuildError(BuildErrorKind::OverBudget { needed, limit }));
                }
                Ok((Layout { shape, blocks }, keys))
            }
        }
    }

    /// The most bits per key. (A key has 16 positions at most, so that the lowest rates, those of
    /// the last layers of a filter that grows, take more than a set of the hashes.)
    fn limit(&self) -> usize {
        match self.unit {
            Unit::Bit => 2 * MAX_BITS_PER_KEY,
            Unit::Counter => 4 * MAX_BITS_PER_KEY,
        }
    }

    /// The lowest rate in reach: the rate with as many bits per key as the limit.
    pub(crate) fn least_rate(&self) -> f64 {
        let densest = LINE_BITS as f64 / self.limit() as f64;
        let with = |lines| Self {
            lines: Some(lines),
            ..*self
        };
        let least = |request: Self| {
            let rates = request.candidates().flatten().map(|model| model.rate_at(densest));
            rates.fold(1.0, f64::min)
        };
        let one = least(with(self.lines.unwrap_or(1)));
        match self.plans_lines() {
            true => one.min(least(with(2))),
            false => one,
        }
    }

    /// Fails if a setting has a value that no filter can have.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        if let Some(rate) = self.rate {
            BuildError::check_rate(rate)?;
        }
        let problem = match (self.words, self.lines) {
            (Some(words), Some(2)) if words == 2 * LINE_WORDS => None,
            (Some(words), _) if !WORDS_PER_KEY.contains(&words) => Some(format!(
                "invalid words per key: {words}; choose 1, 2, 4 or 8, or 16 with two lines per key"
            )),
            (_, Some(lines)) if !(1..=MOST_LINES_PER_KEY).contains(&lines) => {
                Some(format!("invalid lines per key: {lines}; choose 1 or 2"))
            }
            (Some(words), Some(lines)) if words < lines => Some(format!(
                "{words} word per key cannot lie in {lines} lines; choose at least {lines} words"
            )),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(BuildError::new(problem));
        }
        match self.budget {
            Some(bytes) if bytes < LINE_BYTES => Err(small_budget(bytes, 1)),
            Some(bytes) if bytes > isize::MAX as usize => Err(BuildError::out_of_memory(bytes)),
            _ => Ok(()),
        }
    }

    /// The possible numbers of words per key, fewest first, each with its shapes.
    fn candidates(&self) -> impl Iterator<Item = impl Iterator<Item = RateModel>> {
        let (wanted, unit, lines) = (self.words, self.unit, self.lines.unwrap_or(1));
        let fits = move |words| wanted.is_none_or(|wanted| words * lines == wanted);
        let shapes = move |words| Shape::with_words(lines, words).map(move |shape| RateModel::new(shape, unit));
        WORDS_PER_KEY.into_iter().filter(move |&words| fits(words)).map(shapes)
    }

    /// The shape for `rate`, and the most keys per line at which it holds.
    fn best_shape_for(&self, rate: f64) -> Result<(Shape, f64), BuildError> {
        let mut found = [None; WORDS_PER_KEY.len()];
        let mut best_load = 0.0;
        for (slot, models) in found.iter_mut().zip(self.candidates()) {
            // The load rises with the bits to one maximum and falls again.
            for model in models {
                let load = model.max_load(rate);
                match *slot {
                    Some((_, most)) if most >= load => break,
                    _ => *slot = Some((model.shape, load)),
                }
                best_load = f64::max(best_load, load);
            }
        }
        let limit = self.limit();
        if best_load * (limit as f64) < LINE_BITS as f64 {
            return Err(BuildError(BuildErrorKind::Unreachable {
                rate,
                words: self.words,
                lines: self.lines.filter(|&lines| lines > 1),
                limit,
            }));
        }
        let good_enough = |&(_, load): &(Shape, f64)| load * FEWER_WORDS_PRICE >= best_load;
        let fewest = found.into_iter().flatten().find(good_enough);
        Ok(fewest.expect("the best is good enough"))
    }

    /// The shape for a given number of keys per line: the one for the rate that it reaches.
    fn best_shape_at(&self, load: f64) -> Shape {
        let best_at = |load: f64| {
            self.candidates().map(move |models| {
                let rated = models.map(|model| (model.rate_at(load), model.shape));
                rated
                    .min_by(|a, b| a.0.total_cmp(&b.0))
                    .expect("every words per key has a shape")
            })
        };
        // The rate of the best layout in so much less memory.
        let dense = best_at(load * FEWER_WORDS_PRICE)
            .map(|(rate, _)| rate)
            .fold(1.0, f64::min);
        let fewest = best_at(load).find(|&(rate, _)| rate <= dense);
        fewest.expect("the best is good enough").1
    }
}

/// The error for a budget of fewer blocks than a key has lines.
fn small_budget(bytes: usize, lines: usize) -> BuildError {
    let least = if lines == 1 { "one block" } else { "two blocks" };
    BuildError::new(format!(
        "the memory budget of {bytes} bytes is less than {least} of {LINE_BYTES} bytes"
    ))
}

/// The false-positive rate of one shape as a function of the keys per line, by the model.
struct RateModel {
    shape: Shape,
    a: [f64; RateModel::TERMS],
    x: [f64; RateModel::TERMS],
}

impl RateModel {
    /// One more than the most positions that are drawn in a part of a sector.
    const TERMS: usize = MOST_BITS + 1;

    fn new(shape: Shape, unit: Unit) -> Self {
        let (_, words, s) = shape.draws();
        let units = units(words, unit);
        // distinct[d]: the chance that s draws into the units make d distinct ones.
        let mut distinct = [0.0; Self::TERMS];
        distinct[0] = 1.0;
        for _ in 0..s {
            for d in (0..Self::TERMS).rev() {
                let missed = match d {
                    0 => 0.0,
                    _ => distinct[d - 1] * (units - (d - 1) as f64) / units,
                };
                distinct[d] = distinct[d] * d as f64 / units + missed;
            }
        }
        let mut model = Self {
            shape,
            a: [0.0; Self::TERMS],
            x: [0.0; Self::TERMS],
        };
        for i in 0..=s {
            let mut choose = 1.0; // C(d, i), from d = i on
            for (d, &chance) in distinct.iter().enumerate().take(s + 1).skip(i) {
                model.a[i] += choose * chance;
                choose = choose * (d + 1) as f64 / (d + 1 - i) as f64;
            }
            if i % 2 == 1 {
                model.a[i] = -model.a[i];
            }
            model.x[i] = pow(1.0 - i as f64 / units, s as u64);
        }
        model
    }

    /// The rate at `load` keys per line of the filter.
    fn rate_at(&self, load: f64) -> f64 {
        if load >= MAX_LOAD {
            return 1.0;
        }
        let Shape { lines, words, .. } = self.shape;
        let in_sector = load * lines as f64 * words as f64 / LINE_WORDS as f64;
        pow(self.rate_in_sector(in_sector), lines as u64)
    }

    /// The rate in the sector of one of a key's lines, if sectors have `load` patterns in the mean.
    fn rate_in_sector(&self, load: f64) -> f64 {
        let (parts, _, bits) = self.shape.draws();
        let terms = bits + 1;
        let mut powers = [1.0; Self::TERMS];
        // Poisson weights up to a common factor, which the division at the end removes. The term
        // for j = 0 is 0.
        let (mut weight, mut total, mut sum, mut j) = (1.0, 1.0, 0.0, 0.0);
        while j <= load || weight > total * 1e-18 {
            j += 1.0;
            weight *= load / j;
            total += weight;
            for (power, x) in powers.iter_mut().zip(&self.x) {
                *power *= x;
            }
            let g: f64 = self.a[..terms].iter().zip(&powers).map(|(a, power)| a * power).sum();
            // If g is tiny, rounding (1e-13) may take it below 0.
            sum += weight * pow(g.max(0.0), parts as u64);
            if weight > 1e200 {
                weight *= 1e-200;
                total *= 1e-200;
                sum *= 1e-200;
            }
        }
        f64::min(sum / total, 1.0)
    }

    /// The most keys per line at which the rate is at most `rate`.
    fn max_load(&self, rate: f64) -> f64 {
        let mut high = 1.0;
        while high < MAX_LOAD && self.rate_at(high) <= rate {
            high *= 2.0;
        }
        let mut low = 0.0;
        // 30 halvings leave a relative error below 1e-8, on the safe side.
        for _ in 0..30 {
            let middle = (low + high) / 2.0;
            if self.rate_at(middle) <= rate {
                low = middle
            } else {
                high = middle
            }
        }
        low
    }
}

impl Layout {
    /// The largest number of keys that a filter is planned for.
    pub(crate) fn most_keys(&self) -> usize {
        self.blocks.saturating_mul(MAX_LOAD as usize)
    }

    /// The false-positive rate with `keys` distinct keys, in words of such units.
    pub(crate) fn rate_of(&self, unit: Unit, keys: usize) -> f64 {
        RateModel::new(self.shape, unit).rate_at(keys as f64 / self.blocks as f64)
    }

    /// The largest number of keys, at least 1, at which the rate with such units is at most `rate`.
    pub(crate) fn keys_at(&self, unit: Unit, rate: f64) -> usize {
        usize::max(
            (RateModel::new(self.shape, unit).max_load(rate) * self.blocks as f64) as usize,
            1,
        )
    }

    /// The number of units that a key has in a line in the mean: two draws of one unit count once.
    fn units_per_line(&self, unit: Unit) -> f64 {
        let (parts, words, bits) = self.shape.draws();
        let units = units(words, unit);
        parts as f64 * units * (1.0 - pow(1.0 - 1.0 / units, bits as u64))
    }

    /// The number of counters that one key increments in the mean.
    pub(crate) fn counters_per_key(&self) -> f64 {
        self.units_per_line(Unit::Counter)
    }

    /// The rate of a filter of these lines: the mean of their rates. With two lines per key, it is
    /// the product of the means of both halves.
    pub(crate) fn mean_rate(&self, mut lines: impl Iterator<Item = [u64; LINE_WORDS]>) -> f64 {
        let part = self.blocks / self.shape.lines;
        let mut mean = || {
            let rates = lines.by_ref().take(part).map(|words| self.rate_of_line(words));
            rates.sum::<f64>() / part as f64
        };
        (0..self.shape.lines).map(|_| mean()).product()
    }

    /// The rate of one line whose words have these bits set: the chance that a key that picks this
    /// line finds all its draws there on set bits.
    pub(crate) fn rate_of_line(&self, words: [u64; LINE_WORDS]) -> f64 {
        let (_, part, bits) = self.shape.draws();
        let sector = self.shape.words;
        let hit = |part: &[u64]| {
            let ones: u32 = part.iter().map(|word| word.count_ones()).sum();
            pow(f64::from(ones) / (64 * part.len()) as f64, bits as u64)
        };
        let rate = |sector: &[u64]| sector.chunks_exact(part).map(hit).product::<f64>();
        words.chunks_exact(sector).map(rate).sum::<f64>() * sector as f64 / LINE_WORDS as f64
    }

    /// The number of distinct keys that leaves this many bits set in the mean.
    ///
    /// A key leaves a given bit alone with the chance `q = 1 - bits of a key / bits of the filter`,
    /// so the result is the `n` for which `q^n` is the fraction of unset bits.
    pub(crate) fn keys_for(&self, ones: u64) -> usize {
        let bits = (self.blocks * LINE_BITS) as f64;
        // A full filter shows only that there are many keys: as many as leave half a bit unset.
        let unset = f64::max(bits - ones as f64, 0.5) / bits;
        let q = 1.0 - self.shape.lines as f64 * self.units_per_line(Unit::Bit) / bits;
        let mut high = 1u64;
        while high < 1 << 62 && pow(q, high) > unset {
            high *= 2;
        }
        // The first n that leaves at most as many unset as there are, or the one before it,
        // whichever is nearer.
        let (mut low, mut high) = (0, high);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if pow(q, middle) > unset {
                low = middle
            } else {
                high = middle
            }
        }
        let is_lower_nearer = pow(q, low) - unset < unset - pow(q, high);
        usize::try_from(if is_lower_nearer { low } else { high }).unwrap_or(usize::MAX)
    }
}

/// The number of units in `words` words.
fn units(words: usize, unit: Unit) -> f64 {
    (64 * words / unit.bits()) as f64
}

/// `x^n` by squaring.
pub(crate) fn pow(mut x: f64, mut n: u64) -> f64 {
    let mut result = 1.0;
    while n > 0 {
        if n & 1 == 1 {
            result *= x;
        }
        x *= x;
        n >>= 1;
    }
    result
}

/// Rounds a non-negative number up; `f64::ceil` is not in `core` at this crate's MSRV.
pub(crate) fn ceil(x: f64) -> f64 {
    // From 2^53 on every f64 is a whole number.
    if x >= 9_007_199_254_740_992.0 {
        return x;
    }
    let whole = x as u64 as f64;
    if whole < x { whole + 1.0 } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways: what fits a rate has that rate, and hardly less.
    #[test]
    fn load_and_rate_invert_each_other() {
        for shape in shapes() {
            let model = RateModel::new(shape, Unit::Bit);
            for rate in [0.9, 0.5, 0.1, 1e-3, 1e-6] {
                let back = model.rate_at(model.max_load(rate));
                assert!(
                    back <= rate && back > rate * 0.999,
                    "{shape:?}: {rate} came back as {back}"
                );
            }
        }
    }

    fn shapes() -> impl Iterator<Item = Shape> {
        let all = [1, 2].into_iter().flat_map(|lines| {
            WORDS_PER_KEY
                .into_iter()
                .flat_map(move |words| Shape::with_words(lines, words))
        });
        all.filter(|shape| shape.is_known())
    }

    #[test]
    fn keys_for_inverts_the_expected_fill() {
        for shape in shapes().filter(|shape| shape.bits <= 4) {
            let layout = Layout { shape, blocks: 1000 };
            assert_eq!(layout.keys_for(0), 0);
            for keys in [1usize, 100, 10_000, 100_000] {
                let q = 1.0 - shape.lines as f64 * layout.units_per_line(Unit::Bit) / 512_000.0;
                let ones = (1.0 - pow(q, keys as u64)) * 512_000.0;
                let back = layout.keys_for((ones + 0.5) as u64);
                assert!(back.abs_diff(keys) <= 1 + keys / 500, "{keys} came back as {back}");
            }
            assert!(layout.keys_for(512_000) > 100_000);
        }
    }

    #[test]
    fn ceil_rounds_up() {
        assert_eq!(
            [0.0, 0.1, 1.0, 1.5, 1e15 + 0.5, 1e19].map(ceil),
            [0.0, 1.0, 1.0, 2.0, 1e15 + 1.0, 1e19]
        );
    }
}
