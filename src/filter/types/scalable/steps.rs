//! The numbers that determine a filter's growth, and the plan of the next layer that follows from
//! them, from the layers that are there, and from the hint. A snapshot holds the numbers.

use crate::error::{BuildError, BuildErrorKind, NoLayer};
use crate::geometry::layout::{LINE_BITS, LINE_BYTES, Layout};
use crate::geometry::rates;
use crate::geometry::sizing::{Request, Unit};
use alloc::format;

/// The most layers: a lookup searches all of them.
pub(super) const MAX_LAYERS: usize = 64;

/// A layer has room for one more key in `HEADROOM`, since inserts notice late that it is full,
/// above all those of several threads at once. (Measured in filters that give all of the rate to
/// the layers that they have, all full: four threads that inserted batches reached 0.82 to 0.89 of
/// the promised rate. With one in 32, two threads reached 0.88 to 0.99, and once, beside other
/// work, 1.04. Without a limit of layers, two or four threads that inserted a thousand times the
/// planned keys reached 0.61 to 0.69. `tests/filters/scalable.rs` repeats it.)
const HEADROOM: usize = 24;

/// The greatest expansion, and the most keys of a layer for each key of the layers before it,
/// whatever the hint says. With it, the third layer is for 17 billion keys if the first is for
/// 1000. A greater number is a mistake (a number of keys in place of a factor), or an attack by a
/// snapshot, whose first inserts would allocate all memory.
pub(super) const MAX_EXPANSION: usize = 1 << 12;

/// The shares of the rate that the first layer and the second one take, each of what is left, if
/// the layer is the last one by the hint. The rest is for keys beyond the hint. (The second
/// layer is made if the hint came late, or was too low.)
const HINTED_SHARES: [f64; 2] = [0.9, 0.75];

/// A layer that would take less than one part in `LEAST_PART` of the limit of bytes is not worth
/// its time at each lookup.
const LEAST_PART: usize = 32;

/// The numbers that determine how a filter grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Steps {
    /// The keys of the first layer without a hint, and the least of the others.
    pub(super) keys: usize,
    pub(super) expansion: usize,
    /// The rate of all layers together.
    pub(super) rate: f64,
    pub(super) ratio: f64,
    /// [`MAX_LAYERS`] at most.
    pub(super) max_layers: Option<u8>,
    pub(super) words: Option<usize>,
}

impl Default for Steps {
    fn default() -> Self {
        Self {
            keys: 1000,
            expansion: 3,
            rate: 0.01,
            ratio: 0.8,
            max_layers: None,
            words: None,
        }
    }
}

/// The totals of the present layers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub(super) layers: usize,
    /// The sum of their expected keys.
    keys: usize,
    /// The sum of their rates when they are full.
    rate: f64,
    bytes: usize,
}

impl Taken {
    pub(super) fn add(&mut self, keys: usize, layout: Layout) {
        // A hostile snapshot may have a layer for more keys than it has bits.
        let most = layout.blocks.saturating_mul(LINE_BITS);
        self.add_planned(keys.min(most), planned_rate(keys, layout));
        self.bytes = self.bytes.saturating_add(layout.blocks * LINE_BYTES);
    }

    /// Counts the layer that was added last with the rate `measured`, if that is above the planned
    /// one.
    pub(super) fn raise_rate(&mut self, layout: Layout, keys: usize, measured: f64) {
        self.rate += f64::max(measured - planned_rate(keys, layout), 0.0);
    }

    fn add_planned(&mut self, keys: usize, rate: f64) {
        self.layers += 1;
        self.keys = self.keys.saturating_add(keys);
        self.rate += rate;
    }
}

/// The rate of a full layer for `keys`.
fn planned_rate(keys: usize, layout: Layout) -> f64 {
    layout.rate_of(Unit::Bit, with_headroom(keys))
}

/// The number of keys for which a layer of `keys` is sized.
fn with_headroom(keys: usize) -> usize {
    keys.saturating_add(keys.div_ceil(HEADROOM))
}

/// Does `work` by the hint, and without it if that fails: a hint is a guess, and refuses no key
/// that has room without it.
pub(super) fn without_hint<T, E>(hint: usize, work: impl Fn(usize) -> Result<T, E>) -> Result<T, E> {
    work(hint).or_else(|refused| if hint > 0 { work(0) } else { Err(refused) })
}

impl Steps {
    /// Fails if no filter can grow so.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        BuildError::check_rate(self.rate)?;
        let problem = if !(self.ratio > 0.0 && self.ratio < 1.0) {
            format!("tightening ratio {} is not between 0 and 1, both excluded", self.ratio)
        } else if !(1..=MAX_EXPANSION).contains(&self.expansion) {
            format!("an expansion of {} is not in 1 to {MAX_EXPANSION}", self.expansion)
        } else if self.max_layers == Some(0) {
            "a filter of 0 layers holds nothing; 1 is the least".into()
        } else {
            return Ok(());
        };
        Err(BuildError::new(problem))
    }

    /// The most layers by the builder's limit.
    pub(super) fn limit(&self) -> usize {
        self.max_layers.map_or(MAX_LAYERS, usize::from)
    }

    /// The keys that the next layer is for.
    fn keys_of_next(&self, taken: &Taken, hint: usize) -> usize {
        let all = taken.keys;
        let rest = hint.saturating_sub(all);
        let keys = match taken.layers {
            0 => return if hint > 0 { hint } else { self.keys },
            // The hint was too low.
            1 if hint > 0 && rest == 0 => all,
            // Many layers take long, and leave little of the rate for the last. So if the hint was
            // wrong before, the layer is for at least half as many keys as are there.
            more if rest > 0 => rest.saturating_add(rest / 32).max(if more > 1 { all / 2 } else { 0 }),
            // The next number of a geometric series, whose sum so far is `all`.
            _ => all.saturating_mul(self.expansion - 1).saturating_add(self.keys),
        };
        keys.max(self.keys).min(all.saturating_mul(MAX_EXPANSION))
    }

    /// Whether the next layer is the last one by the hint.
    fn is_last(&self, taken: &Taken, hint: usize) -> bool {
        hint > taken.keys && self.keys_of_next(taken, hint) >= hint - taken.keys
    }

    /// The rate of the next layer: a share of what the layers leave.
    fn rate_of_next(&self, taken: &Taken, hint: usize) -> f64 {
        let most = self.max_layers.map(usize::from);
        let hinted = HINTED_SHARES.get(taken.layers).filter(|_| self.is_last(taken, hint));
        rates::of_next_layer(self.rate, self.ratio, most, (taken.layers, taken.rate), hinted.copied())
    }

    fn request(&self) -> Request {
        Request {
            words: self.words,
            ..Request::default()
        }
    }

    /// The layout of the next layer and the keys that it is for, or why there cannot be one.
    pub(super) fn next(&self, taken: &Taken, hint: usize, max_bytes: usize) -> Result<(Layout, usize), NoLayer> {
        self.check_room(taken, max_bytes)?;
        let limit = taken.layers;
        let room = max_bytes - taken.bytes;
        let planned = without_hint(hint, |hint| self.layer_within(room, taken, hint));
        planned.map_err(|_| NoLayer::Layers { limit })
    }

    /// The next layer, or a smaller one that fills the room.
    fn layer_within(&self, room: usize, taken: &Taken, hint: usize) -> Result<(Layout, usize), BuildError> {
        let (layout, keys) = self.layer(taken, hint)?;
        if layout.blocks.saturating_mul(LINE_BYTES) <= room {
            return Ok((layout, keys));
        }
        let request = Request {
            rate: Some(self.rate_of_next(taken, hint)),
            budget: Some(room),
            ..self.request()
        };
        let (layout, keys) = request.solve()?;
        Ok((layout, usize::max(keys - keys / (HEADROOM + 1), 1)))
    }

    /// The layout of the first layer and the keys that it is for.
    pub(super) fn first(&self, hint: usize, max_bytes: usize) -> Result<(Layout, usize), BuildError> {
        let (layout, keys) = self.layer(&Taken::default(), hint)?;
        let needed = layout.blocks * LINE_BYTES;
        if needed > max_bytes {
            let limit = max_bytes;
            return Err(BuildError(BuildErrorKind::OverBudget { needed, limit }));
        }
        Ok((layout, keys))
    }

    /// The next layer if there is memory for it.
    fn layer(&self, taken: &Taken, hint: usize) -> Result<(Layout, usize), BuildError> {
        let keys = self.keys_of_next(taken, hint);
        let request = Request {
            keys: Some(with_headroom(keys)),
            rate: Some(self.rate_of_next(taken, hint)),
            ..self.request()
        };
        Ok((request.solve()?.0, keys))
    }

    /// Fails if there is no room for another layer, as far as that needs no plan of it.
    fn check_room(&self, taken: &Taken, max_bytes: usize) -> Result<(), NoLayer> {
        if taken.layers >= self.limit() {
            return Err(NoLayer::Layers { limit: taken.layers });
        }
        // At least two lines.
        let least = (max_bytes / LEAST_PART).max(2 * LINE_BYTES);
        if max_bytes.saturating_sub(taken.bytes) < least {
            let (bytes, limit) = (taken.bytes, max_bytes);
            return Err(NoLayer::Bytes { bytes, limit });
        }
        Ok(())
    }

    /// Why there is no next layer, when [`next`](Self::next) has failed.
    pub(super) fn why_full(&self, taken: &Taken, max_bytes: usize) -> NoLayer {
        let limit = taken.layers;
        self.check_room(taken, max_bytes)
            .err()
            .unwrap_or(NoLayer::Layers { limit })
    }

    /// The most layers that there can be, if the next ones are planned after these.
    pub(super) fn most_layers(&self, mut taken: Taken, hint: usize, max_bytes: usize) -> usize {
        if max_bytes < usize::MAX {
            while let Ok((layout, keys)) = self.next(&taken, hint, max_bytes) {
                taken.add(keys, layout);
            }
            return taken.layers;
        }
        // Without layouts, which take half a millisecond each.
        let least_rate = self.request().least_rate();
        while taken.layers < self.limit() {
            let planned = without_hint(hint, |hint| {
                let (keys, rate) = (self.keys_of_next(&taken, hint), self.rate_of_next(&taken, hint));
                let is_planned = rate >= least_rate && keys < isize::MAX as usize;
                is_planned.then_some((keys, rate)).ok_or(())
            });
            let Ok((keys, rate)) = planned else {
                break;
            };
            taken.add_planned(keys, rate);
        }
        taken.layers
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// The layers that follow from the steps alone, up to `most`: keys and rates.
    fn layers(steps: Steps, hint: usize, most: usize) -> (Vec<(usize, f64)>, Taken) {
        let (mut taken, mut layers) = (Taken::default(), Vec::new());
        while layers.len() < most {
            let Ok((layout, keys)) = steps.next(&taken, hint, usize::MAX) else {
                break;
            };
            let before = taken.rate;
            taken.add(keys, layout);
            layers.push((keys, taken.rate - before));
        }
        (layers, taken)
    }

    /// Whatever the hint, the rates of all layers that there can be add up to the promised rate,
    /// and the first one that the hint names has most of it.
    #[test]
    fn the_rates_of_all_layers_stay_below_the_promise() {
        for (rate, max_layers) in [(0.1, None), (1e-6, None), (0.01, Some(1)), (0.01, Some(3))] {
            for hint in [0, 500, 50_000, 1_000_000_000] {
                let steps = Steps {
                    rate,
                    max_layers,
                    ..Steps::default()
                };
                let (layers, taken) = layers(steps, hint, 10);
                assert!(taken.rate <= rate, "{rate} {hint}: {layers:?}");
                // A filter of few keys has whole lines.
                assert!(hint < 1000 || layers[0].1 > 0.7 * rate, "{rate} {hint}: {layers:?}");
            }
        }
    }

    #[test]
    fn layers_follow_the_hint_if_there_is_one() {
        let keys = |hint: usize| -> Vec<usize> {
            let (layers, _) = layers(Steps::default(), hint, 4);
            layers.into_iter().map(|(keys, _)| keys).collect()
        };
        assert_eq!(keys(0), [1000, 3000, 9000, 27_000]);
        // The hint is exceeded.
        assert_eq!(keys(50_000), [50_000, 50_000, 201_000, 603_000]);
        assert_eq!(keys(10), [10, 1000, 3020, 9060]);
        // It comes when a layer is there.
        let mut taken = Taken::default();
        let steps = Steps::default();
        let (layout, keys) = steps.next(&taken, 0, usize::MAX).unwrap();
        taken.add(keys, layout);
        assert_eq!(steps.next(&taken, 101_000, usize::MAX).unwrap().1, 103_125);
    }

    /// Unions can bring layers that take the whole rate: growth goes on as without them.
    #[test]
    fn layers_that_take_the_whole_rate_do_not_end_growth() {
        let steps = Steps::default();
        let full = Taken {
            layers: 3,
            rate: steps.rate,
            keys: 1000,
            bytes: 0,
        };
        let (_, plain) = layers(steps, 0, 3);
        let (with, without) = (steps.rate_of_next(&full, 0), steps.rate_of_next(&plain, 0));
        assert!((with / without - 1.0).abs() < 0.05, "{with}, {without}");
    }
}
