//! The hashes that a run has seen: a [`ScalableBloom`] that learns its size from the share of the
//! input that was read, and how many new hashes it is expected to have taken for present.

use anyhow::{Context, Result, bail, ensure};
use lanebloom::codec::{Kind, SnapshotHeader};
use lanebloom::hash::FilterHasher;
use lanebloom::{ConcurrentBloom, Hashed, InsertError, Membership, Murmur3, ScalableBloom, scalable};
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::mem;

/// The rate of `dedup` if none is given.
pub const RATE: f64 = 1e-6;

/// Keys of the first layer if their number is not known: 190 KiB at 1e-3, 326 KiB at 1e-6.
pub const FIRST: usize = 1 << 16;

/// The least keys of a layer without a hint: few, since they come on top of as many as there are.
const LEAST: usize = 256;

/// The most hashes that are inserted at a time.
const BATCH: usize = 4096;

/// A layer that has its keys gets at most one part in `EXCESS` of them at a time: the next ones may
/// belong to the next layer, and each layer's rate is counted for its own.
const EXCESS: usize = 64;

/// How often the rate of the newest layer is computed anew while it fills.
const STEPS: usize = 64;

/// Builds the filters of the commands: without a hint, a layer is for as many keys as there are,
/// and `LEAST` more. (Twice as many took up to 15 bytes a key instead of 10, and a seventh less
/// time.)
pub fn builder<S: FilterHasher>(rate: f64, hasher: S) -> scalable::Builder<S> {
    let builder = ScalableBloom::builder().expected_keys(LEAST).expansion(2);
    builder.false_positive_rate(rate).hasher(hasher)
}

/// An empty filter for `expected` keys; or for any number, the first layer for [`FIRST`].
pub fn empty<S: FilterHasher + Copy>(expected: Option<usize>, rate: f64, hasher: S) -> Result<ScalableBloom<S>> {
    let Some(keys) = expected else {
        return beginning(FIRST, rate, hasher);
    };
    let wanted = || format!("a filter for {keys} keys at a rate of {rate:.2e}");
    let filter = builder(rate, hasher).hint(keys).build().with_context(wanted)?;
    // If memory is too small for them, the first layer is one without the hint.
    ensure!(filter.expected_keys() == keys, "{}: not enough memory for it", wanted());
    Ok(filter)
}

/// An empty filter for any number of keys, the first layer for `first`.
pub fn beginning<S: FilterHasher + Copy>(first: usize, rate: f64, hasher: S) -> Result<ScalableBloom<S>> {
    let builder = builder(rate, hasher);
    // Otherwise the next layer would be for twice as many.
    let layers = builder.clone().expected_keys(first).build()?.into_layers();
    Ok(builder.build_from(layers)?)
}

/// Reads a `ScalableBloom` or a `ConcurrentBloom`. Its rate is `rate`, or the one that it promises,
/// unless unions have added layers with a higher one.
pub fn read_from(file: &File, rate: Option<f64>) -> Result<ScalableBloom> {
    let (promised, layers) = layers_in(file).context("it cannot be used")?;
    let planned: f64 = layers.iter().map(|layer| layer.false_positive_rate()).sum();
    if let Some(rate) = rate.filter(|&rate| rate < planned) {
        bail!("its filters have a rate of {planned:.2e}, above the {rate:.2e} of --rate");
    }
    let hasher = *layers[0].hasher();
    let builder = builder(rate.unwrap_or(promised.max(planned)), hasher);
    Ok(builder.build_from(layers)?)
}

/// The rate that the filter in a file promises, and its layers.
fn layers_in(file: &File) -> Result<(f64, Vec<ConcurrentBloom>)> {
    let bytes = file.metadata().context("cannot read its size")?.len();
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let header = SnapshotHeader::peek(reader.fill_buf()?)?;
    // So it allocates no more than the file has.
    if header.bytes > bytes {
        bail!("the bytes end after {bytes} of {}", header.bytes);
    }
    let read = if header.kind == Kind::Bloom {
        (RATE, vec![ConcurrentBloom::read_from(&mut reader, usize::MAX)?])
    } else {
        let filter = ScalableBloom::read_from(&mut reader, usize::MAX)?;
        (filter.max_false_positive_rate(), filter.into_layers())
    };
    if !reader.fill_buf()?.is_empty() {
        bail!("more bytes follow the filter");
    }
    Ok(read)
}

/// A filter, and what a run has put into it.
pub struct Seen<S = Murmur3> {
    filter: ScalableBloom<S>,
    /// The number of hashes that were new.
    pub new: usize,
    pub mistakes: Mistakes,
    /// How many keys the filter has beside the new ones, as far as it is known.
    before: f64,
    /// The share of the input that has been read, after the last insert.
    share: f64,
}

impl<S: FilterHasher> Seen<S> {
    pub fn of(filter: ScalableBloom<S>) -> Self {
        Self {
            new: 0,
            mistakes: Mistakes::of(&filter),
            before: filter.statistics().len as f64,
            share: 0.0,
            filter,
        }
    }

    pub fn filter(&self) -> &ScalableBloom<S> {
        &self.filter
    }

    pub fn into_filter(self) -> ScalableBloom<S> {
        self.filter
    }

    /// Puts another filter in the place of the present one, and returns that. The counts go on.
    pub fn replace(&mut self, filter: ScalableBloom<S>) -> ScalableBloom<S> {
        self.mistakes = Mistakes {
            expected: self.mistakes.expected,
            ..Mistakes::of(&filter)
        };
        self.before = filter.statistics().len as f64 - self.new as f64;
        mem::replace(&mut self.filter, filter)
    }

    /// Inserts hashes in order, and writes to `new` which of them were new. `share` is the share of
    /// the input that has been read when all of them are inserted.
    pub fn insert(&mut self, hashes: &[u64], new: &mut [bool], share: Option<f64>) -> Result<(), Full> {
        let mut at = 0;
        while at < hashes.len() {
            if let Some(share) = share {
                self.expect_rest(self.share + (share - self.share) * at as f64 / hashes.len() as f64);
            }
            let end = hashes.len().min(at + self.batch());
            let (hashes, new) = (&hashes[at..end], &mut new[at..end]);
            let inserted = self
                .filter
                .exclusive()
                .insert_batch_into(Hashed::slice(hashes), &mut *new);
            let count = match &inserted {
                Ok(count) => *count,
                Err(_) => new.iter().filter(|&&new| new).count(),
            };
            self.count(count);
            inserted.map_err(|error| Full {
                taken: at + error.inserted(),
                error,
            })?;
            at = end;
        }
        self.share = share.unwrap_or(0.0);
        Ok(())
    }

    /// Counts hashes that were inserted and were new.
    pub fn count(&mut self, new: usize) {
        self.new += new;
        self.mistakes.count(&self.filter, new);
    }

    /// Sets the hint, now that this share of the input has been read: the rest brings as many new
    /// hashes a byte. Lookups in many layers take long, so a layer is for at least half as many
    /// keys as the filter had before this run.
    fn expect_rest(&self, share: f64) {
        if share > 0.0 {
            let new = f64::max(self.new as f64 / share, self.before / 2.0);
            let least = self.filter.expected_keys().saturating_add(FIRST);
            self.filter.set_hint(least.max((self.before + new) as usize));
        }
    }

    /// How many hashes to insert at a time.
    fn batch(&self) -> usize {
        let newest = self.filter.layers().next_back().expect("there is a layer");
        let keys = newest.expected_keys();
        let room = keys.saturating_sub(self.mistakes.len);
        room.clamp((keys / EXCESS).clamp(1, BATCH), BATCH)
    }

    /// Writes the filter. Its hint is about this run's input, and stays out.
    pub fn write_to(&self, writer: &mut dyn Write) -> io::Result<()> {
        self.filter.set_hint(0);
        self.filter.snapshot().write_to(writer)
    }
}

/// The filter takes no more.
#[derive(Debug)]
pub struct Full {
    /// The number of hashes before the first one that was refused.
    pub taken: usize,
    pub error: InsertError,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Full {}

/// Counts how many new hashes a filter is expected to take for present.
pub struct Mistakes {
    /// Their number so far.
    pub expected: f64,
    /// The number of layers, and the rate of all but the newest.
    layers: usize,
    older: f64,
    /// The newest layer's number of keys, and its rate for the next ones, until there are
    /// `step_end`.
    len: usize,
    newest: f64,
    step_end: usize,
}

impl Mistakes {
    fn of<S: FilterHasher>(filter: &ScalableBloom<S>) -> Self {
        let mut layers = filter.layers();
        let newest = layers.next_back().expect("there is a layer");
        let len = newest.statistics().len;
        Self {
            expected: 0.0,
            layers: filter.layers().len(),
            older: layers.map(|layer| layer.statistics().false_positive_rate).sum(),
            len,
            newest: newest.false_positive_rate_at(len),
            step_end: len,
        }
    }

    /// The rate of a lookup now.
    pub fn rate(&self) -> f64 {
        self.older + self.newest
    }

    fn count<S: FilterHasher>(&mut self, filter: &ScalableBloom<S>, new: usize) {
        self.expected += new as f64 * self.older;
        let newest = filter.layers().nth(self.layers - 1).expect("layers stay");
        let step = (newest.expected_keys() / STEPS).max(1);
        let end = self.len + new;
        while self.len < end {
            if self.len == self.step_end {
                self.step_end += step;
                self.newest = newest.false_positive_rate_at(self.len + step / 2);
            }
            // A batch may be many steps of a small layer, and the rate grows steeply.
            let next = end.min(self.step_end);
            self.expected += (next - self.len) as f64 * self.newest;
            self.len = next;
        }
        let all = filter.layers().len();
        if all > self.layers {
            let full = filter.layers().take(all - 1).skip(self.layers - 1);
            *self = Self {
                expected: self.expected,
                layers: all,
                older: self.older + full.map(|layer| layer.statistics().false_positive_rate).sum::<f64>(),
                // It has less than a batch.
                len: 0,
                newest: 0.0,
                step_end: 0,
            };
        }
    }
}
