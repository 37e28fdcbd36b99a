//! A filter that takes at most the memory of --memory.

use super::args::WhenFull;
use anyhow::{Result, bail};
use indicatif::HumanBytes;
use lanebloom::{Hashed, ScalableBloom};
use lanebloom_files::seen::{FIRST, Full, Seen, beginning, builder};

/// The bounds of a filter's memory.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    pub(super) bytes: usize,
    pub(super) when_full: WhenFull,
}

/// The filter drops layers until one part in `FREE` of its limit is free.
const FREE: usize = 4;

/// If less than one part in `LEAST` is free, the filter takes no layer.
const LEAST: usize = 32;

pub(super) struct Limited {
    pub(super) seen: Seen,
    limit: Option<Limit>,
    /// Whether it takes no more hashes, because it has reached its limit.
    pub(super) is_closed: bool,
    /// The number of keys in layers that were dropped at the limit.
    pub(super) forgotten: usize,
}

impl Limited {
    /// Fails if the filter takes more already.
    pub(super) fn new(mut filter: ScalableBloom, limit: Option<Limit>) -> Result<Self> {
        if let Some(Limit { bytes, .. }) = limit {
            if filter.memory_bytes() > bytes {
                bail!(
                    "the filter takes {} at the start, more than the {} of --memory",
                    HumanBytes(filter.memory_bytes() as u64),
                    HumanBytes(bytes as u64)
                );
            }
            filter.set_max_bytes(bytes);
        }
        Ok(Self {
            seen: Seen::of(filter),
            limit,
            is_closed: false,
            forgotten: 0,
        })
    }

    pub(super) fn filter(&self) -> &ScalableBloom {
        self.seen.filter()
    }

    /// Inserts hashes in order as [`Seen::insert`], and does what is wanted at the limit.
    pub(super) fn insert(&mut self, hashes: &[u64], new: &mut [bool], share: Option<f64>) -> Result<()> {
        let mut at = 0;
        while at < hashes.len() && !self.is_closed {
            match self.seen.insert(&hashes[at..], &mut new[at..], share) {
                Ok(()) => return Ok(()),
                Err(full) => {
                    at += full.taken;
                    self.make_room(full)?;
                }
            }
        }
        // Those that it has are known, and no others.
        let (hashes, new) = (&hashes[at..], &mut new[at..]);
        self.filter().contains_batch(Hashed::slice(hashes), &mut *new);
        new.iter_mut().for_each(|new| *new = !*new);
        Ok(())
    }

    fn make_room(&mut self, full: Full) -> Result<()> {
        let Some(Limit { bytes, when_full }) = self.limit.filter(|_| !full.error.is_out_of_memory()) else {
            return Err(full.into());
        };
        match when_full {
            WhenFull::Stop => {
                bail!("{full}; give it more --memory or a higher --rate, or say by --when-full what it should do")
            }
            WhenFull::Keep => {
                self.is_closed = true;
                Ok(())
            }
            WhenFull::Forget => self.forget(bytes),
        }
    }

    /// Drops the oldest layers, until there is room for one that is large.
    fn forget(&mut self, bytes: usize) -> Result<()> {
        let (rate, hasher) = (self.filter().max_false_positive_rate(), *self.filter().hasher());
        let mut layers = self.seen.replace(ScalableBloom::default()).into_layers();
        let mut taken: usize = layers.iter().map(|layer| layer.memory_bytes()).sum();
        let mut dropped = 0;
        while dropped + 1 < layers.len() && bytes - taken < bytes / FREE {
            taken -= layers[dropped].memory_bytes();
            dropped += 1;
        }
        // Only one layer is left, which has nearly all of the memory.
        if bytes - taken < bytes / LEAST {
            dropped += 1;
        }
        let forgotten = layers.drain(..dropped).map(|layer| layer.statistics().len);
        self.forgotten += forgotten.sum::<usize>();
        let mut filter = match layers.len() {
            0 => beginning(FIRST, rate, hasher)?,
            _ => builder(rate, hasher).build_from(layers)?,
        };
        filter.set_max_bytes(bytes);
        self.seen.replace(filter);
        Ok(())
    }
}
