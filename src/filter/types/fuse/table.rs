//! The engine: cells in memory of its own or in a snapshot, the lookups in them, and the snapshot.

use crate::codec::{
    AskHasher, Decoded, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, SnapshotBytes, admit, check_zeros,
    in_range, invalid, read_header, read_words, snapshot_bytes, write_words,
};
use crate::error::{BuildError, SnapshotErrorKind};
use crate::filter::Statistics;
use crate::filter::traits::{Encode, Engine, FixedSize};
use crate::geometry::fuse::{
    CELLS_PER_KEY, FINGERPRINT_BITS, FuseLayout, FuseProbe, LEAST_SHARD_KEYS, LOG_SEGMENT, MOST_CELLS, SEEDS,
    multiplier,
};
use crate::kernel::fuse::FuseCells;
use crate::kernel::plan::Prefetching;
use crate::kernel::{Isa, Plan};
use crate::words::arrays::{as_chunks, as_chunks_mut};
use crate::words::memory::Words;
use alloc::boxed::Box;
use alloc::format;
use core::fmt;

/// The bytes of seeds and cells.
pub trait FuseBytes: Sized {
    #[doc(hidden)]
    const TYPE: &'static str;

    #[doc(hidden)]
    fn bytes(&self) -> &[u8];

    #[doc(hidden)]
    fn copy(&self) -> Result<Self, BuildError>;
}

/// The bytes in memory of their own.
#[doc(hidden)]
pub struct OwnCells(pub(super) Words<u64>);

impl FuseBytes for OwnCells {
    const TYPE: &'static str = "StaticFilter";

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn copy(&self) -> Result<Self, BuildError> {
        let mut copy = own(self.0.len())?;
        copy.copy_from_slice(&self.0);
        Ok(Self(copy))
    }
}

/// The bytes of a snapshot.
#[doc(hidden)]
pub struct SnapshotCells<'a>(pub(super) SnapshotBytes<'a>);

impl FuseBytes for SnapshotCells<'_> {
    const TYPE: &'static str = "StaticView";

    #[inline(always)]
    fn bytes(&self) -> &[u8] {
        &self.0.bytes()[SNAPSHOT_HEADER..]
    }

    /// Another view of the same bytes.
    fn copy(&self) -> Result<Self, BuildError> {
        Ok(Self(self.0.clone()))
    }
}

fn own(words: usize) -> Result<Words<u64>, BuildError> {
    Words::new(words).ok_or_else(|| BuildError::out_of_memory(8 * words))
}

/// The engine of a filter that does not change.
pub struct Fuse<B> {
    pub(super) body: B,
    pub(super) layout: FuseLayout,
    probe: FuseProbe,
    /// The multiplier of each shard's seed.
    multipliers: Box<[u64]>,
    /// The number of distinct hashes.
    keys: usize,
    isa: Isa,
}

impl<B: FuseBytes> Fuse<B> {
    /// The engine on these bytes. Fails if a seed is unknown.
    pub(super) fn new(body: B, layout: FuseLayout, keys: usize) -> Decoded<Self> {
        let (seeds, rest) = body.bytes()[..layout.seed_bytes()].split_at(layout.shards as usize);
        if let Some(seed) = seeds.iter().find(|&&seed| seed >= SEEDS) {
            return invalid(format!("the seed of a shard, {seed}, is not in 0 to {}", SEEDS - 1));
        }
        check_zeros(rest, SNAPSHOT_HEADER + seeds.len())?;
        Ok(Self::of_known_seeds(body, layout, keys))
    }

    pub(super) fn of_known_seeds(body: B, layout: FuseLayout, keys: usize) -> Self {
        let seeds = &body.bytes()[..layout.shards as usize];
        Self {
            multipliers: seeds.iter().map(|&seed| multiplier(seed)).collect(),
            body,
            probe: FuseProbe::of(&layout),
            layout,
            keys,
            isa: Isa::best(),
        }
    }

    #[inline(always)]
    fn cells(&self) -> FuseCells<'_> {
        FuseCells::new(&self.probe, &self.multipliers, self.body.bytes())
    }

    /// How often a shard was tried with one more seed.
    pub(super) fn retries(&self) -> usize {
        let seeds = &self.body.bytes()[..self.layout.shards as usize];
        seeds.iter().map(|&seed| usize::from(seed)).sum()
    }
}

impl<B: FuseBytes> Engine for Fuse<B> {
    const NAME: &'static str = B::TYPE;

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.cells().contains(hash)
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        let prefetching = Prefetching::lookups(self.probe.bytes, self.layout.cells_per_key as usize);
        self.cells().contains_bitmap(self.isa, prefetching, hashes, found);
    }

    #[inline(always)]
    fn plan(&self, hashes: usize) -> Plan {
        Plan::of_plain(hashes)
    }

    fn expected_keys(&self) -> usize {
        self.keys.max(1)
    }

    fn memory_bytes(&self) -> usize {
        self.probe.bytes
    }

    fn is_empty(&self) -> bool {
        self.keys == 0
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let counted = || self.layout.rate_of(self.body.bytes());
        let counted = if keys == self.keys { counted() } else { None };
        counted.unwrap_or_else(|| self.layout.rate_at(keys))
    }

    fn statistics(&self) -> Statistics {
        Statistics::new(
            self.keys as f64 / self.layout.cells() as f64,
            self.keys,
            self.false_positive_rate_at(self.keys),
        )
    }

    /// Nothing is inserted after the build, so the rate stays the one of the expected keys. (The
    /// rate of more keys is a model's, which may be below the counted rate of few keys.)
    fn is_overfull_at(&self, _: f64) -> bool {
        false
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            body: self.body.copy()?,
            multipliers: self.multipliers.clone(),
            ..*self
        })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("fingerprint_bits", &self.layout.bits)
            .field("cells_per_key", &self.layout.cells_per_key)
            .field("shards", &self.layout.shards)
            .field("retries", &self.retries());
    }

    fn set_isa(&mut self, isa: Isa) {
        self.isa = isa;
    }
}

// The seeds and the cells as they are. `docs/FORMAT.md` describes the bytes.
impl Encode for Fuse<OwnCells> {
    type Size = FixedSize;
    const HELD: bool = false;

    fn snapshot_bytes(&self) -> usize {
        snapshot_bytes(self.body.0.len())
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let words = self.body.0.len();
        let mut header = OwnHeader::new(Kind::Static, hashing, self.snapshot_bytes());
        header.put_fuse(&self.layout, self.keys);
        let values = as_chunks(self.body.bytes()).0.iter();
        write_words(
            out,
            &header.to_bytes(),
            words,
            values.map(|word| u64::from_le_bytes(*word)),
        )
    }

    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind> {
        let header = read_header(input, Kind::Static)?;
        hasher(header.hashing)?;
        let (layout, words, keys) = header.fuse()?;
        admit(input, header.len as usize, 8 * words as u64, limit)?;
        let mut body = own(words).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), words, &mut |first, words| {
            let places = as_chunks_mut(body.bytes_mut()).0;
            places[first..][..words.len()].copy_from_slice(words);
        })?;
        Self::new(OwnCells(body), layout, keys)
    }
}

impl OwnHeader {
    /// Writes the fields of a filter that does not change.
    fn put_fuse(&mut self, layout: &FuseLayout, keys: usize) {
        let FuseLayout {
            bits,
            cells_per_key,
            log_segment,
            segments,
            shards,
        } = *layout;
        let shape = [1, bits as u8, cells_per_key as u8, log_segment as u8, 0, 0, 0, 0];
        self.put(32, u64::from_le_bytes(shape));
        self.put(40, segments.into());
        self.put(48, keys as u64);
        self.put(56, shards.into());
    }

    /// The layout that the header declares, its words, and the number of distinct hashes.
    pub(crate) fn fuse(&self) -> Decoded<(FuseLayout, usize, usize)> {
        self.check_layout_version(1)?;
        self.zeros(36..40)?;
        self.zeros(64..120)?;
        let [_, bits, cells_per_key, log_segment, ..] = self.get(32).to_le_bytes().map(u32::from);
        let most_shards = 1 + self.get(48) / LEAST_SHARD_KEYS;
        let layout = FuseLayout {
            bits: in_range("the number of bits of a fingerprint", bits, FINGERPRINT_BITS)?,
            cells_per_key: in_range("the number of cells per key", cells_per_key, CELLS_PER_KEY)?,
            log_segment: in_range("the logarithm of the cells of a segment", log_segment, LOG_SEGMENT)?,
            segments: self.value("the number of segments", 40, 1..=MOST_CELLS)? as u32,
            shards: self.value("the number of shards", 56, 1..=most_shards.min(u32::MAX.into()))? as u32,
        };
        in_range("the number of cells of a shard", layout.shard_cells(), 1..=MOST_CELLS)?;
        let keys = self.number("the number of keys", 48, 0..=layout.cells())?;
        let Some(words) = layout.words() else {
            return invalid(format!(
                "{} cells are more than this machine can address",
                layout.cells()
            ));
        };
        self.check_words(words)?;
        Ok((layout, words, keys))
    }
}
