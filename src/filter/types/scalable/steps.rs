//! The numbers that determine a filter's growth, and the layouts that follow from them. A snapshot
//! holds the numbers, an error prints them.

use crate::error::{BuildError, BuildErrorKind};
use crate::geometry::layout::{LINE_BYTES, Layout};
use crate::geometry::sizing::Request;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

/// The most layers: a lookup searches all of them.
pub(super) const MAX_LAYERS: usize = 64;

/// A layer has room for one more key in `HEADROOM`, since inserts notice late that it is full,
/// above all those of several threads at once. (Measured in filters that give all of the rate to
/// the layers that they have, all full: four threads that inserted batches reached 0.82 to 0.89 of
/// the promised rate. With one in 32, two threads reached 0.88 to 0.99, and once, beside other
/// work, 1.04. Without a limit of layers, two or four threads that inserted a thousand times the
/// planned keys reached 0.61 to 0.69. `tests/sizes/scalable.rs` repeats it.)
const HEADROOM: usize = 24;

/// The greatest expansion. With it, the third layer is for 17 billion keys if the first is
/// for 1000. A greater number is a mistake (a number of keys in place of a factor), or an attack by
/// a snapshot, whose first inserts would allocate all memory.
pub(super) const MAX_EXPANSION: usize = 1 << 12;

/// Layouts of layers up to this many keys are computed when the filter is built, since one takes
/// half a millisecond. For later layers, the last eighth of the layer before leaves enough time: it
/// has at least 40 thousand keys, from 20 ns per key.
const PLANNED_KEYS: usize = 1 << 20;

/// When a [`ScalableBloom`](crate::ScalableBloom) goes on to the next layer.
///
/// ```
/// use lanebloom::scalable::{Growth, ScalableBloom};
///
/// let builder = ScalableBloom::builder().expected_keys(10_000);
/// let filter = builder.growth(Growth::AtHalfFull).build()?;
/// filter.insert_all(0..12_000u32)?;
/// assert_eq!(filter.layers().len(), 2);
/// let first = filter.layers().next().unwrap();
/// assert!((0.49..0.53).contains(&first.fill_ratio()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Growth {
    /// When the layer has its number of keys.
    #[default]
    ByKeys,
    /// When half of the layer's bits are set; the number of bits per key is chosen for that.
    /// Filters on Redis bitmaps grow in this way, by `BITCOUNT`. At low rates this takes more
    /// memory than [`ByKeys`](Self::ByKeys), which sets fewer bits. Rates below about 2e-6 are out
    /// of reach, so there can be fewer layers: 31 from a rate of 1%, 12 with a tightening ratio of
    /// 0.5.
    AtHalfFull,
}

/// The numbers that determine the layout of every layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Steps {
    /// The keys of the first layer.
    pub(super) keys: usize,
    pub(super) expansion: usize,
    /// The rate of all layers together.
    pub(super) rate: f64,
    pub(super) ratio: f64,
    /// [`MAX_LAYERS`] at most.
    pub(super) max_layers: Option<u8>,
    pub(super) words: Option<usize>,
    pub(super) growth: Growth,
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
            growth: Growth::ByKeys,
        }
    }
}

// Rates and ratios are checked when the filter is built: they are never NaN.
impl Eq for Steps {}

impl Steps {
    /// The keys of the layer with this number.
    pub(super) fn keys_of(&self, layer: usize) -> usize {
        let times = (0..layer).fold(1usize, |times, _| times.saturating_mul(self.expansion));
        self.keys.saturating_mul(times)
    }

    /// The rate of the layer with this number.
    pub(super) fn rate_of(&self, layer: usize) -> f64 {
        let all = match self.max_layers {
            // 1 - ratio^n
            Some(n) => 1.0 - (0..n).fold(1.0, |power, _| power * self.ratio),
            None => 1.0,
        };
        (0..layer).fold(self.rate * (1.0 - self.ratio) / all, |rate, _| rate * self.ratio)
    }

    /// Fails if no filter can grow so.
    pub(super) fn check(&self) -> Result<(), BuildError> {
        let between_0_and_1 = |value| value > 0.0 && value < 1.0;
        let wrong = if !between_0_and_1(self.rate) {
            BuildErrorKind::Rate(self.rate)
        } else if !between_0_and_1(self.ratio) {
            BuildErrorKind::Setting(format!(
                "tightening ratio {} is not between 0 and 1, both excluded",
                self.ratio
            ))
        } else if !(1..=MAX_EXPANSION).contains(&self.expansion) {
            BuildErrorKind::Setting(format!(
                "an expansion of {} is not in 1 to {MAX_EXPANSION}",
                self.expansion
            ))
        } else if self.max_layers == Some(0) {
            BuildErrorKind::Setting("a filter of 0 layers holds nothing; 1 is the least".into())
        } else {
            return Ok(());
        };
        Err(BuildError(wrong))
    }

    fn request(&self) -> Request {
        Request {
            words: self.words,
            half_full: self.growth == Growth::AtHalfFull,
            ..Request::default()
        }
    }

    /// The layout of the layer with this number.
    pub(super) fn layout(&self, layer: usize) -> Result<Layout, BuildError> {
        let keys = self.keys_of(layer);
        let request = Request {
            keys: Some(match self.growth {
                Growth::ByKeys => keys.saturating_add(keys.div_ceil(HEADROOM)),
                Growth::AtHalfFull => keys,
            }),
            rate: Some(self.rate_of(layer)),
            ..self.request()
        };
        Ok(request.solve()?.0)
    }

    /// The most layers, by the given limit, by the rates in reach, and by the address space: a
    /// layer for more keys than there are addresses would take an entry in vain.
    pub(super) fn layers(&self) -> usize {
        let least_rate = self.request().least_rate();
        let most = self.max_layers.map_or(MAX_LAYERS, usize::from);
        // The first layer has an error of its own.
        let in_reach = |&layer: &usize| self.rate_of(layer) >= least_rate && self.keys_of(layer) < isize::MAX as usize;
        1 + (1..most).take_while(in_reach).count()
    }

    /// The layouts of the first layers: all up to [`PLANNED_KEYS`], or up to the first one beyond
    /// the limit of bytes.
    pub(super) fn layouts(&self, max_bytes: usize) -> Result<Vec<Layout>, BuildError> {
        let (mut layouts, mut needed) = (Vec::new(), 0usize);
        for layer in 0..self.layers() {
            if layer > 0 && (self.keys_of(layer) > PLANNED_KEYS || needed > max_bytes) {
                break;
            }
            let layout = match self.layout(layer) {
                Ok(layout) => layout,
                Err(error) if layer == 0 => return Err(error),
                Err(_) => break,
            };
            needed = needed.saturating_add(layout.blocks * LINE_BYTES);
            if layer == 0 && needed > max_bytes {
                let limit = max_bytes;
                return Err(BuildError(BuildErrorKind::OverBudget { needed, limit }));
            }
            layouts.push(layout);
        }
        Ok(layouts)
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(most) = self.max_layers {
            write!(f, "up to {most} ")?;
        }
        let (keys, rate, expansion, ratio) = (self.keys, self.rate_of(0), self.expansion, self.ratio);
        write!(
            f,
            "layers from {keys} keys at a rate of {rate:e}, each for {expansion} times the keys at {ratio} times the rate"
        )?;
        if let Some(words) = self.words {
            write!(f, ", {words} words per key")?;
        }
        match self.growth {
            Growth::ByKeys => Ok(()),
            Growth::AtHalfFull => f.write_str(", full when half of the bits are set"),
        }
    }
}
