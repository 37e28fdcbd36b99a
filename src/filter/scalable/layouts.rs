//! The layouts of layers, computed from [`Steps`].

use super::steps::{Growth, MAX_LAYERS, Steps};
use crate::error::{BuildError, BuildErrorKind};
use crate::geometry::layout::{LINE_BYTES, Layout};
use crate::geometry::sizing::Request;
use alloc::format;
use alloc::vec::Vec;

/// A layer has room for one more key in `HEADROOM`, since inserts notice late that it is full,
/// above all those of several threads at once. (Measured in filters that give all of the rate to
/// the layers that they have, all full: four threads that inserted batches reached 0.82 to 0.89 of
/// the promised rate. With one in 32, two threads reached 0.88 to 0.99, and once, beside other
/// work, 1.04.)
const HEADROOM: usize = 24;

/// The greatest expansion. With it, the third layer is for 17 billion keys if the first is
/// for 1000. A greater number is a mistake (a number of keys in place of a factor), or an attack by
/// a snapshot, whose first inserts would allocate all memory.
pub(super) const MAX_EXPANSION: usize = 1 << 12;

/// Layouts of layers up to this many keys are computed when the filter is built, since one takes
/// half a millisecond. For later layers, the last eighth of the layer before leaves enough time: it
/// has at least 40 thousand keys, from 20 ns per key.
const PLANNED_KEYS: usize = 1 << 20;

impl Steps {
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
