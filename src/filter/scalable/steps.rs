//! The numbers that determine a filter's growth. `layouts.rs` computes layouts from them, a
//! snapshot holds them, an error prints them.

use core::fmt;

/// The most layers: a lookup searches all of them.
pub(crate) const MAX_LAYERS: usize = 64;

/// When a [`ScalableBloom`](crate::ScalableBloom) goes on to the next layer.
///
/// # Examples
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
pub(crate) struct Steps {
    /// The keys of the first layer.
    pub(crate) keys: usize,
    pub(crate) expansion: usize,
    /// The rate of all layers together.
    pub(crate) rate: f64,
    pub(crate) ratio: f64,
    /// [`MAX_LAYERS`] at most.
    pub(crate) max_layers: Option<u8>,
    pub(crate) words: Option<usize>,
    pub(crate) growth: Growth,
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
    pub(crate) fn keys_of(&self, layer: usize) -> usize {
        let times = (0..layer).fold(1usize, |times, _| times.saturating_mul(self.expansion));
        self.keys.saturating_mul(times)
    }

    /// The rate of the layer with this number.
    pub(crate) fn rate_of(&self, layer: usize) -> f64 {
        let all = match self.max_layers {
            // 1 - ratio^n
            Some(n) => 1.0 - (0..n).fold(1.0, |power, _| power * self.ratio),
            None => 1.0,
        };
        (0..layer).fold(self.rate * (1.0 - self.ratio) / all, |rate, _| rate * self.ratio)
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
