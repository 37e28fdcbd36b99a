//! The work of all threads on the chunks of a run, and that of one thread at a time, in their
//! order.

use super::decide::{Decider, Way};
use super::documents::{Counts, Documents, PER_BYTE, Reading};
use super::journal::{Journal, done_with};
use super::writer::{UnfinishedOutput, Writer, Written};
use anyhow::{Context, Result, bail};
use lanebloom::{Bitmap, Hashed, ScalableBloom};
use lanebloom_files::input::{self, Digest, Stamp};
use lanebloom_files::pipeline::{Stage, Work};
use lanebloom_files::seen::Seen;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

type Chunk = input::Chunk<Documents>;

/// The work that threads do side by side.
pub(super) struct CorpusWork {
    pub(super) reading: Reading,
    pub(super) against: Option<ScalableBloom>,
    pub(super) way: Way,
    pub(super) writer: Arc<Writer>,
}

impl Work<Documents> for CorpusWork {
    fn work(&self, chunk: &mut Chunk) {
        let (bytes, documents) = chunk.parts();
        documents.read(bytes, &self.reading);
        if let Some(against) = &self.against {
            let Documents { pieces, found, .. } = documents;
            found.clear();
            found.resize(pieces.hashes.len().div_ceil(64), 0);
            against.contains_batch(Hashed::slice(&pieces.hashes), Bitmap(found));
        }
    }

    fn finish(&self, chunk: &mut Chunk, number: u64) -> Result<()> {
        let input = chunk.input;
        let (bytes, documents) = chunk.parts();
        let rows = documents.rows.take();
        let counts = self.way.end(documents);
        let written = match (self.writer.format(input), rows) {
            (None, _) => Written::Bytes(Cow::default()),
            (_, Some(mut rows)) => {
                documents.edit(bytes, &mut rows)?;
                Written::Rows(rows)
            }
            (Some(format), None) => {
                documents.write(bytes, &self.reading);
                Written::Bytes(match &documents.output[..] {
                    [] => Cow::default(),
                    output => format.pack(output).context("cannot compress")?,
                })
            }
        };
        self.writer.write(number, input, &written, &counts)
    }

    fn abandon(&self) {
        self.writer.abandon();
    }
}

/// The work that depends on the order of the input.
pub(super) struct CorpusStage {
    pub(super) decider: Decider,
    pub(super) writer: Arc<Writer>,
    /// The number of chunks so far.
    pub(super) taken: u64,
    /// The names of the inputs.
    pub(super) names: Vec<String>,
    /// The limit of a line.
    pub(super) most: usize,
    pub(super) saver: Option<Saver>,
}

impl CorpusStage {
    /// Gives all outputs their names, and saves the state. Returns what was counted.
    pub(super) fn end(&mut self) -> Result<Counts> {
        let (outputs, counts) = self.writer.end()?;
        if let Some(saver) = &mut self.saver {
            saver.save(&self.decider.filter.seen, saver.inputs.len(), outputs)?;
        }
        Ok(counts)
    }
}

impl Stage<Documents> for CorpusStage {
    fn take(&mut self, chunk: &mut Chunk) -> Result<()> {
        if let Some(saver) = &mut self.saver {
            // The filter has the inputs before this one, and no more.
            if saver.is_due(chunk.input) {
                let outputs = self.writer.complete(self.taken, chunk.input)?;
                saver.save(&self.decider.filter.seen, chunk.input, outputs)?;
            }
        }
        if let Some(at) = chunk.records.too_large {
            let most = self.most;
            let place = match chunk.records.rows {
                Some(_) => String::new(),
                None => format!(" at byte {}", chunk.offset + at as u64),
            };
            bail!(
                "{}: the pieces and words of the document{place} take more than {} bytes of memory, {PER_BYTE} times \
                 --max-record: give a --max-record above {most}, or leave the document out",
                self.names[chunk.input],
                PER_BYTE.saturating_mul(most),
            );
        }
        self.taken += 1;
        self.decider.take(&mut chunk.records, chunk.share)
    }
}

/// Saves the state, the journal and the outputs.
pub(super) struct Saver {
    journal: Journal,
    /// Each input, as it was at the start, and its hash once it was read.
    inputs: Vec<(PathBuf, Option<Stamp>, Digest)>,
    /// The inputs before this one are in the journal.
    saved: usize,
    last: Instant,
    every: Duration,
    is_apart: bool,
}

impl Saver {
    pub(super) fn new(
        journal: Journal,
        inputs: Vec<PathBuf>,
        digests: Vec<Digest>,
        is_apart: bool,
        save_every: f64,
    ) -> Self {
        let inputs = inputs.into_iter().zip(digests).map(|(path, digest)| {
            let stamp = Stamp::at(&path).ok();
            (path, stamp, digest)
        });
        Self {
            journal,
            inputs: inputs.collect(),
            saved: 0,
            last: Instant::now(),
            every: Duration::try_from_secs_f64(save_every.max(0.0)).unwrap_or(Duration::MAX),
            is_apart,
        }
    }

    /// Whether the work shall be saved before the chunks of this input.
    fn is_due(&self, input: usize) -> bool {
        self.is_apart && input > self.saved && self.last.elapsed() >= self.every
    }

    /// Saves the work for the inputs before this one.
    fn save(&mut self, seen: &Seen, input: usize, outputs: Vec<UnfinishedOutput>) -> Result<()> {
        let start = Instant::now();
        let mut done = Vec::new();
        for (path, before, digest) in &self.inputs[self.saved..input] {
            if before.is_none() {
                continue;
            }
            if Stamp::at(path).ok() != *before {
                bail!("{} changed during the run", path.display());
            }
            done.extend(done_with(path, digest)?);
        }
        self.journal.save(seen, done, outputs)?;
        self.saved = input;
        self.last = Instant::now();
        // A large state takes at most a twentieth of the time.
        self.every = self.every.max(20 * start.elapsed());
        Ok(())
    }
}
