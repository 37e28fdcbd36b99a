//! Snapshots of a filter that grows: the builder's options, and the snapshots of its layers.
//! `docs/FORMAT.md` describes the bytes.

use super::chain::{Layers, OPEN, Scalable};
use super::steps::{MAX_EXPANSION, MAX_LAYERS, Steps};
use crate::codec::{AskHasher, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, admit, in_range, read_header};
use crate::error::SnapshotErrorKind;
use crate::filter::traits::Encode;
use crate::filter::types::bloom::Bloom;
use alloc::format;

fn snapshot_bytes(layers: &Layers<'_>) -> usize {
    let parts = layers.iter().map(|layer| layer.filter.engine.snapshot_bytes());
    SNAPSHOT_HEADER + parts.sum::<usize>()
}

impl Encode for Scalable {
    type Size = ();
    const HELD: bool = false;

    fn snapshot_bytes(&self) -> usize {
        snapshot_bytes(&self.layers_now())
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let layers = self.layers_now();
        let mut header = OwnHeader::new(Kind::Scalable, hashing, snapshot_bytes(&layers));
        let steps = &self.steps;
        let words = steps.words.unwrap_or(0) as u8;
        let full = u8::from(layers.phase != OPEN);
        let max_layers = steps.max_layers.unwrap_or(0);
        let max_bytes = match self.asked_bytes {
            usize::MAX => u64::MAX,
            bytes => bytes as u64,
        };
        header.put(32, u64::from_le_bytes([0, words, full, max_layers, 0, 0, 0, 0]));
        header.put(40, steps.keys as u64);
        header.put(48, steps.expansion as u64);
        header.put(56, steps.rate.to_bits());
        header.put(64, steps.ratio.to_bits());
        header.put(72, max_bytes);
        header.put(80, layers.len() as u64);
        header.put(88, self.hint() as u64);
        out.put(&header.to_bytes())?;
        layers
            .iter()
            .try_for_each(|layer| layer.filter.engine.encode(hashing, out))
    }

    /// `limit` bounds growth too: a hostile snapshot may say that each layer has 4096 times the
    /// keys of the one before.
    #[inline]
    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind> {
        let header = read_header(input, Kind::Scalable)?;
        hasher(header.hashing)?;
        let [_, words, full, max_layers, ..] = header.get(32).to_le_bytes();
        header.zeros(32..33)?;
        header.zeros(36..40)?;
        header.zeros(96..120)?;
        let steps = Steps {
            keys: header.number("the keys of the first layer", 40, 1..=u64::MAX)?,
            expansion: header.number("the expansion", 48, 1..=MAX_EXPANSION as u64)?,
            rate: f64::from_bits(header.get(56)),
            ratio: f64::from_bits(header.get(64)),
            max_layers: match in_range("the limit of layers", max_layers, 0..=MAX_LAYERS as u8)? {
                0 => None,
                most => Some(most),
            },
            words: match words {
                0 => None,
                1 | 2 | 4 | 8 => Some(words.into()),
                _ => {
                    let problem = format!("{words} words per key is not 0, 1, 2, 4 or 8");
                    return Err(SnapshotErrorKind::Invalid(problem));
                }
            },
        };
        let asked_bytes = usize::try_from(header.get(72)).unwrap_or(usize::MAX);
        let full = in_range("whether the last layer is full", full, 0..=1)? == 1;
        let count = header.number("the number of layers", 80, 1..=MAX_LAYERS as u64)?;
        let hint = header.number("the hint of the keys", 88, 0..=u64::MAX)?;
        steps.check().map_err(SnapshotErrorKind::Plan)?;
        header.number("the number of layers", 80, 1..=steps.limit() as u64)?;

        let bytes = header.body_bytes(SNAPSHOT_HEADER, count)?;
        admit(input, header.len as usize, bytes, limit)?;
        let layers = Bloom::decode_parts(input, &header, bytes, count)?;
        let chain = Self::of(steps, hint, asked_bytes, layers);
        let mut chain = chain.map_err(SnapshotErrorKind::OutOfMemory)?;
        chain.max_bytes = limit.min(asked_bytes);
        if full {
            // Whether there can be another one depends on the limits here.
            chain.close();
        }
        Ok(chain)
    }
}

/// Reads a filter that hashes with [`Murmur3`](crate::Murmur3), in proportion to the input.
///
/// ```
/// use lanebloom::ScalableBloom;
///
/// let filter = ScalableBloom::with_capacity(10, 0.01)?;
/// filter.insert_all(0..1000u32)?;
/// let json = serde_json::to_string(&filter)?;
/// assert!(serde_json::from_str::<ScalableBloom>(&json)? == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for super::ScalableBloom {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::codec::deserialize(deserializer, usize::MAX, Self::from_bytes)
    }
}
