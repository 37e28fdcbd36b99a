//! A set of hashes that grows: Bloom filters in a row, the layers, of which the last one takes new
//! hashes. A file holds their snapshots in a row, so a set of one layer is an ordinary snapshot.
//!
//! The size of the input is often known, and the share of it that was read, so the next layer is
//! made for what the rest will bring. There are two or three layers, and little memory stays empty.
//! The layers are also exclusive, so an insert needs no atomics. A
//! [`ScalableBloom`](lanebloom::ScalableBloom) with a hint takes as much memory and time (record:
//! `growing-filter.md`). This filter counts its keys, and can forget its oldest layers.

use crate::args::WhenFull;
use anyhow::{Context, Result, bail};
use indicatif::HumanBytes;
use lanebloom::hash::{FilterHasher, Murmur3};
use lanebloom::{ConcurrentBloom, SnapshotError};
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The rate of `dedup` if none is given.
pub const RATE: f64 = 1e-6;

/// Keys of the first filter if their number is not known: 64 KiB at 1e-3, 256 KiB at 1e-6.
pub const FIRST: usize = 1 << 16;

/// What the first of more layers takes of the rate.
const FIRST_SHARE: f64 = 0.2;

/// Hashes that are looked up at a time.
const BATCH: usize = 4096;

/// The least number of hashes that are inserted at a time, unless it exceeds one in [`EXCESS`] of
/// the filter's keys. A filter may take so many keys more than it is for.
const LEAST: usize = 64;

/// A filter takes at most one in so many keys more than it is for.
const EXCESS: usize = 256;

/// How often the rate of the newest filter is computed anew while it fills.
const STEPS: usize = 64;

pub struct GrowingFilter<S = Murmur3> {
    /// At least one. All have the same hasher.
    layers: Vec<Layer<S>>,
    /// The promised rate of all layers together.
    rate: f64,
    /// The expected number of new hashes that the filter took for present.
    pub mistaken: f64,
    /// The number of hashes that were new.
    pub new: usize,
    /// The number of keys that were read from a file.
    loaded: usize,
    /// The share of the input that has been read, after the last insert.
    share: f64,
    limit: Option<Limit>,
    /// Whether it takes no more hashes, because it has reached its limit.
    pub is_closed: bool,
    /// The number of keys in layers that were dropped at the limit.
    pub forgotten: usize,
}

/// What bounds the memory of a filter.
#[derive(Clone, Copy)]
pub struct Limit {
    pub bytes: usize,
    pub when_full: WhenFull,
}

/// A layer below this share of the limit is not worth its time at each lookup.
const LEAST_SHARE: usize = 32;

struct Layer<S> {
    filter: ConcurrentBloom<S>,
    /// The number of keys, as far as it is known: that of a file is an estimate.
    len: usize,
    /// The rate for the next keys, until there are `step_end`.
    rate: f64,
    step_end: usize,
}

impl<S: FilterHasher> Layer<S> {
    fn new(filter: ConcurrentBloom<S>) -> Self {
        let len = filter.estimated_len();
        let rate = filter.false_positive_rate_at(len);
        Self {
            filter,
            len,
            rate,
            step_end: len,
        }
    }

    /// The number of keys for which there is room.
    fn room(&self) -> usize {
        self.filter.expected_keys().saturating_sub(self.len)
    }

    /// How many hashes may be inserted at a time, if there is room.
    fn batch(&self) -> usize {
        let least = (self.filter.expected_keys() / EXCESS).clamp(1, LEAST);
        self.room().clamp(least, BATCH)
    }

    /// Counts keys that were inserted. Returns the sum of the rates that they met.
    fn add(&mut self, keys: usize) -> f64 {
        let step = (self.filter.expected_keys() / STEPS).max(1);
        let end = self.len + keys;
        let mut sum = 0.0;
        while self.len < end {
            if self.len == self.step_end {
                self.step_end += step;
                self.rate = self.filter.false_positive_rate_at(self.len + step / 2);
            }
            // A batch may be many steps of a small filter, and the rate grows steeply.
            let next = end.min(self.step_end);
            sum += (next - self.len) as f64 * self.rate;
            self.len = next;
        }
        sum
    }

    /// The rate of a filter that gets no more keys.
    fn end(&mut self) {
        self.rate = self.filter.false_positive_rate_at(self.len);
    }
}

impl GrowingFilter {
    /// An empty set for `expected` hashes, or for any number.
    pub fn new(expected: Option<usize>, rate: f64) -> Result<Self> {
        Self::seeded(expected, rate, 0)
    }

    /// An empty set for hashes by this seed of Murmur3.
    pub fn seeded(expected: Option<usize>, rate: f64, seed: u32) -> Result<Self> {
        Self::hashed_by(expected, rate, Murmur3::with_seed(seed))
    }

    /// An empty set for any number of hashes. The first layer is for this many of them.
    pub fn beginning(first: usize, rate: f64, seed: u32) -> Result<Self> {
        Self::of_layer(layer(first, rate * FIRST_SHARE, Murmur3::with_seed(seed))?, rate)
    }
}

impl<S: FilterHasher + Copy> GrowingFilter<S> {
    /// An empty set for hashes by `hasher`.
    pub fn hashed_by(expected: Option<usize>, rate: f64, hasher: S) -> Result<Self> {
        match expected {
            // More keys than expected shall not break the promise, so some of the rate is left.
            Some(keys) => Self::of_layer(layer(keys, rate * 0.9, hasher)?, rate),
            None => Self::of_layer(layer(FIRST, rate * FIRST_SHARE, hasher)?, rate),
        }
    }

    fn of_layer(layer: Layer<S>, rate: f64) -> Result<Self> {
        Ok(Self {
            layers: vec![layer],
            rate,
            mistaken: 0.0,
            new: 0,
            loaded: 0,
            share: 0.0,
            limit: None,
            is_closed: false,
            forgotten: 0,
        })
    }

    /// Fails if it takes more already.
    pub fn limited(self, limit: Option<Limit>) -> Result<Self> {
        if let Some(Limit { bytes, .. }) = limit.filter(|limit| limit.bytes < self.memory_bytes()) {
            bail!(
                "the filter takes {} at the start, more than the {} of --memory",
                HumanBytes(self.memory_bytes() as u64),
                HumanBytes(bytes as u64)
            );
        }
        Ok(Self { limit, ..self })
    }

    /// The rate of a lookup now.
    pub fn current_rate(&self) -> f64 {
        self.layers.iter().map(|layer| layer.rate).sum()
    }

    /// The share of all bits that are set.
    pub fn fill(&self) -> f64 {
        let set = |filter: &ConcurrentBloom<S>| filter.statistics().fill_ratio * filter.memory_bytes() as f64;
        self.layers().map(set).sum::<f64>() / self.memory_bytes() as f64
    }

    /// Inserts hashes in order, and writes to `new` which of them were new. `share` is the
    /// share of the input that has been read when all of them are inserted.
    pub fn insert(&mut self, hashes: &[u64], new: &mut [bool], share: Option<f64>) -> Result<()> {
        let mut at = 0;
        while at < hashes.len() {
            if self.newest().room() == 0 && !self.is_closed {
                let inserted = at as f64 / hashes.len() as f64;
                self.grow(share.map(|share| self.share + (share - self.share) * inserted))?;
            }
            if self.is_closed {
                let mut found = vec![0; (hashes.len() - at).div_ceil(64)];
                self.find(&hashes[at..], &mut found);
                for (place, new) in new[at..].iter_mut().enumerate() {
                    *new = found[place / 64] >> (place % 64) & 1 == 0;
                }
                break;
            }
            let len = (hashes.len() - at).min(self.newest().batch());
            self.insert_batch(&hashes[at..at + len], &mut new[at..at + len]);
            at += len;
        }
        self.share = share.unwrap_or(0.0);
        Ok(())
    }

    /// Counts new hashes that are in the only layer already.
    fn count(&mut self, new: usize) {
        self.mistaken += self.newest().add(new);
        self.new += new;
    }

    fn newest(&mut self) -> &mut Layer<S> {
        self.layers.last_mut().expect("there is a layer")
    }

    fn insert_batch(&mut self, hashes: &[u64], new: &mut [bool]) {
        let mut found = [0; BATCH / 64];
        let found = &mut found[..hashes.len().div_ceil(64)];
        self.find(hashes, found);
        let (mut absent, mut places, mut len) = ([0; BATCH], [0u16; BATCH], 0);
        for (place, &hash) in hashes.iter().enumerate() {
            // Without a branch, which would often be mispredicted.
            absent[len] = hash;
            places[len] = place as u16;
            len += usize::from(found[place / 64] >> (place % 64) & 1 == 0);
        }
        let mut flags = [false; BATCH];
        // A hash may be there twice.
        let inserted = self
            .newest()
            .filter
            .insert_hashes_flagged_mut(&absent[..len], &mut flags[..len]);
        new.fill(false);
        for (&place, &flag) in places[..len].iter().zip(&flags) {
            new[usize::from(place)] = flag;
        }
        let (newest, older) = self.layers.split_last_mut().expect("there is a layer");
        let rate: f64 = older.iter().map(|layer| layer.rate).sum();
        self.mistaken += inserted as f64 * rate + newest.add(inserted);
        self.new += inserted;
    }

    /// Writes to a bitmap which of the hashes are present.
    pub fn find(&self, hashes: &[u64], found: &mut [u64]) {
        let (newest, older) = self.layers.split_last().expect("there is a layer");
        newest.filter.contains_hashes_bitmap(hashes, found);
        let mut more = vec![0; if older.is_empty() { 0 } else { found.len() }];
        for layer in older {
            layer.filter.contains_hashes_bitmap(hashes, &mut more);
            found.iter_mut().zip(&more).for_each(|(found, more)| *found |= more);
        }
    }

    /// Adds a layer for what the rest of the input will bring: as many new keys a byte as so far.
    /// If the rest is not known, for as many keys as there are. (Twice as many took up to 15 bytes
    /// a key instead of 10, and a seventh less time.)
    fn grow(&mut self, share: Option<f64>) -> Result<()> {
        let all: usize = self.layers.iter().map(|layer| layer.len).sum();
        let rest = share
            .filter(|&share| share > 0.0)
            .map(|share| (self.new as f64 * (1.0 - share) / share) as usize);
        // Many layers take long, and leave little of the rate for the last. So if the guess was
        // wrong before, or many runs have little input each, a layer is for at least half as many
        // keys as are there.
        let least = if self.layers.len() > 1 { all } else { self.loaded };
        let mut keys = rest.map_or(all, |rest| (rest + rest / 32).max(least / 2)).max(FIRST);
        if !self.make_room()? {
            return Ok(());
        }
        let planned: f64 = self.layers.iter().map(|layer| layer.filter.false_positive_rate()).sum();
        let left = self.rate - planned;
        // The layer for all of the rest takes most of the rate, unless there will be more.
        let is_last = rest.is_some() && self.layers.len() == 1 && self.loaded == 0;
        let share = if is_last { 0.75 } else { 0.2 };
        self.newest().end();
        let (rate, hasher) = ((left * share).min(0.5), self.hasher());
        let memory = self.memory_bytes();
        loop {
            let layer = layer(keys, rate, hasher)?;
            let taken = layer.filter.memory_bytes();
            match self.limit {
                // Memory that was not touched costs nothing.
                Some(Limit { bytes, .. }) if memory + taken > bytes => {
                    keys = (keys as f64 * (bytes - memory) as f64 / taken as f64 * 0.99) as usize;
                }
                _ => {
                    self.layers.push(layer);
                    return Ok(());
                }
            }
        }
    }

    /// Does what is wanted at the limit. Returns false if no layer is to be added. Otherwise there
    /// is room for one.
    fn make_room(&mut self) -> Result<bool> {
        let Some(Limit { bytes, when_full }) = self.limit else {
            return Ok(true);
        };
        let is_room = |filter: &Self, part: usize| filter.memory_bytes() + bytes / part <= bytes;
        if is_room(self, LEAST_SHARE) {
            return Ok(true);
        }
        match when_full {
            WhenFull::Stop => bail!(
                "the filter is full: it has {} keys in {}, the limit of --memory. Give it more memory or a higher \
                 --rate, or say by --when-full what it should do",
                self.layers.iter().map(|layer| layer.len).sum::<usize>(),
                HumanBytes(self.memory_bytes() as u64)
            ),
            WhenFull::Keep => {
                self.newest().end();
                self.is_closed = true;
                Ok(false)
            }
            WhenFull::Forget => {
                // A large layer in place of small ones.
                while !is_room(self, 4) && self.layers.len() > 1 {
                    self.forgotten += self.layers.remove(0).len;
                }
                if is_room(self, LEAST_SHARE) {
                    return Ok(true);
                }
                // Only one layer is left, which has nearly all of the memory.
                let (hasher, rate) = (self.hasher(), self.rate);
                let old = self.layers.remove(0);
                self.forgotten += old.len;
                self.layers.push(layer(FIRST, rate * 0.2, hasher)?);
                Ok(true)
            }
        }
    }

    /// The hasher of all layers.
    pub fn hasher(&self) -> S {
        *self.layers[0].filter.hasher()
    }

    pub fn layers(&self) -> impl Iterator<Item = &ConcurrentBloom<S>> {
        self.layers.iter().map(|layer| &layer.filter)
    }

    pub fn memory_bytes(&self) -> usize {
        self.layers().map(|filter| filter.memory_bytes()).sum()
    }

    /// Writes the layers as snapshots in a row.
    pub fn write_to(&self, writer: &mut dyn Write) -> io::Result<()> {
        self.layers().try_for_each(|filter| filter.write_to(&mut *writer))
    }
}

impl GrowingFilter {
    /// Reads what [`write_to`](Self::write_to) wrote. The rate of all layers is `rate`, or a power
    /// of ten: the next above what these layers need, so that it stays when layers are added.
    pub fn read_from(file: &File, rate: Option<f64>) -> Result<Self> {
        let limit = file.metadata().context("cannot read its size")?.len() as usize;
        let mut reader = BufReader::with_capacity(1 << 20, file);
        let mut layers: Vec<Layer<Murmur3>> = Vec::new();
        while layers.is_empty() || !is_at_end(&mut reader)? {
            let filter = ConcurrentBloom::read_from(&mut reader, limit).map_err(foreign)?;
            let theirs = filter.hasher().seed();
            let first = layers.first().map(|first| first.filter.hasher().seed());
            if let Some(ours) = first.filter(|ours| *ours != theirs) {
                bail!("its snapshots differ in the seed of Murmur3: {ours} and {theirs}");
            }
            layers.push(Layer::new(filter));
        }
        let planned: f64 = layers.iter().map(|layer| layer.filter.false_positive_rate()).sum();
        let least = planned * 1.001;
        if let Some(rate) = rate.filter(|&rate| rate < least) {
            bail!("its filters have a rate of {planned:.2e}, above the {rate:.2e} of --rate");
        }
        let rate = rate.unwrap_or_else(|| {
            let mut rate = RATE;
            while rate < least {
                rate *= 10.0;
            }
            rate
        });
        let loaded = layers.iter().map(|layer| layer.len).sum();
        let first = layers.remove(0);
        let mut filter = Self::of_layer(first, rate)?;
        filter.layers.append(&mut layers);
        Ok(Self { loaded, ..filter })
    }
}

/// A filter that many threads fill, as long as it need not grow.
pub struct SharedFilter<S = Murmur3> {
    filter: RwLock<GrowingFilter<S>>,
    /// The number of hashes for which there is room, without those that threads insert now; 0 if
    /// only one thread at a time may insert.
    room: AtomicUsize,
}

impl<S: FilterHasher + Copy> SharedFilter<S> {
    /// With `is_shared`, threads insert side by side. The bits do not depend on their order, unless
    /// there are more hashes than the filter was made for.
    pub fn new(mut filter: GrowingFilter<S>, is_shared: bool) -> Self {
        let room = if is_shared { filter.newest().room() } else { 0 };
        Self {
            filter: RwLock::new(filter),
            room: room.into(),
        }
    }

    pub fn is_shared(&self) -> bool {
        self.room.load(Ordering::Relaxed) > 0
    }

    /// Inserts hashes while other threads may do so too. Returns how many were new, or `None` if
    /// there may be no room for them.
    pub fn try_insert(&self, hashes: &[u64]) -> Option<usize> {
        let filter = self.read();
        // Relaxed, here and below: a number that orders nothing. The lock keeps it and the filter
        // together.
        let reserve = |room: usize| room.checked_sub(hashes.len());
        self.room
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve)
            .ok()?;
        let new = filter.layers[0].filter.insert_hashes(hashes);
        self.room.fetch_add(hashes.len() - new, Ordering::Relaxed);
        Some(new)
    }

    /// Inserts hashes as [`GrowingFilter::insert`]. The filter may grow, so from now on
    /// [`try_insert`](Self::try_insert) returns `None`.
    pub fn insert(&self, hashes: &[u64], new: &mut [bool], share: Option<f64>) -> Result<()> {
        self.write().insert(hashes, new, share)
    }

    /// Counts the new hashes of all calls of [`try_insert`](Self::try_insert), which ends those.
    pub fn count(&self, new: usize) {
        self.write().count(new);
    }

    fn write(&self) -> RwLockWriteGuard<'_, GrowingFilter<S>> {
        let filter = self.filter.write().unwrap_or_else(PoisonError::into_inner);
        self.room.store(0, Ordering::Relaxed);
        filter
    }

    pub fn read(&self) -> RwLockReadGuard<'_, GrowingFilter<S>> {
        self.filter.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_at_end(reader: &mut impl io::BufRead) -> io::Result<bool> {
    Ok(reader.fill_buf()?.is_empty())
}

fn foreign(error: SnapshotError) -> anyhow::Error {
    anyhow::Error::new(error).context("not a filter file of lanebloom")
}

fn layer<S: FilterHasher>(keys: usize, rate: f64, hasher: S) -> Result<Layer<S>> {
    let builder = ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(rate);
    let filter = builder.hasher(hasher).build();
    Ok(Layer::new(filter.with_context(|| {
        format!("a filter for {keys} keys at a rate of {rate:.2e}")
    })?))
}
