//! The frame of every way to deduplicate: a job, which gives the inputs to a stage, and its output.

use crate::args::Dedup;
use crate::keys::{Chunk, Framer, KeySpec, Keyed};
use crate::table;
use anyhow::{Context, Result};
use lanebloom::hash::AnyHasher;
use lanebloom_files::input::{Input, Reader};
use lanebloom_files::pipeline;
use lanebloom_files::progress::Progress;
use lanebloom_files::seen::Seen;
use lanebloom_files::state_file::StateFile;
use lanebloom_files::summary::Summary;
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::mem;
use std::path::PathBuf;
use std::sync::Arc;

/// The arguments and inputs that all passes need.
pub(super) struct Job<'a> {
    pub(super) args: &'a Dedup,
    pub(super) files: Vec<PathBuf>,
    /// Whether each input has an output of its own.
    is_apart: bool,
    pub(super) keys: KeySpec,
    pub(super) threads: usize,
    pub(super) progress: Arc<Progress>,
}

impl<'a> Job<'a> {
    pub(super) fn new(args: &'a Dedup, files: Vec<PathBuf>, is_apart: bool, quiet: bool) -> Result<Self> {
        let mut keys = KeySpec::new(&args.keys)?;
        keys.keeps_mark = !args.count_each;
        Ok(Self {
            args,
            is_apart,
            keys,
            threads: args.threads.threads.unwrap_or_else(pipeline::threads),
            progress: Arc::new(Progress::new(Input::total(&Input::all(&files)), !quiet)),
            files,
        })
    }

    /// Gives the chunks of the inputs in order to `take`, with a value that it changes. Returns the
    /// value.
    pub(super) fn pass<T: Send + 'static>(
        &self,
        inputs: VecDeque<Input>,
        hasher: impl Into<AnyHasher>,
        value: T,
        take: impl FnMut(&mut T, &mut Chunk) -> Result<()> + Send + 'static,
    ) -> Result<T> {
        let reader =
            Reader::new(inputs, Framer::new(self.keys.clone()), Arc::clone(&self.progress)).apart(self.is_apart);
        let (keys, hasher) = (self.keys.clone(), hasher.into());
        let hash = move |chunk: &mut Chunk| keys.hash(chunk, &hasher);
        Ok(pipeline::run(reader, hash, self.threads, (value, take))?.0)
    }
}

/// The results of a run.
pub(super) struct Done {
    pub(super) output: RecordWriter,
    /// The end of the summary.
    pub(super) extra: Summary,
    /// The state, and what it is to hold.
    pub(super) state: Option<(StateFile, Seen)>,
}

const OUTPUT: &str = "cannot write the output";

/// Writes the records that pass, and counts.
pub(super) struct RecordWriter {
    /// Without a buffer: a chunk is one write.
    output: File,
    written: u64,
    /// Where the bytes of each input end, but for the last one that had any.
    ends: Vec<u64>,
    /// Whether only the number of records that pass is printed.
    only_counts: bool,
    /// Whether the other records pass: those that are not new.
    inverted: bool,
    lines: u64,
    unique: u64,
    /// The number of records that pass.
    passed: u64,
    /// The number of records without a key.
    missing: u64,
}

impl RecordWriter {
    pub(super) fn new(args: &Dedup, output: &File) -> Result<Self> {
        Ok(Self {
            output: output.try_clone().context(OUTPUT)?,
            written: 0,
            ends: Vec::new(),
            only_counts: args.count,
            inverted: args.only_duplicates,
            lines: 0,
            unique: 0,
            passed: 0,
            missing: 0,
        })
    }

    /// Prints the number of records that pass, if that is the output. Returns where the bytes of
    /// each of `inputs` inputs end.
    pub(super) fn end(&mut self, inputs: usize) -> Result<Vec<u64>> {
        if self.only_counts {
            let line = format!("{}\n", self.passed);
            self.output.write_all(line.as_bytes()).context(OUTPUT)?;
        }
        self.ends.resize(inputs, self.written);
        Ok(mem::take(&mut self.ends))
    }

    /// Writes the records of a chunk whose keys are new.
    pub(super) fn put(&mut self, chunk: &mut Chunk, new: &mut Vec<bool>) -> Result<()> {
        self.add(chunk, new.iter().filter(|&&new| new).count());
        chunk.records.spread(new, true);
        if self.inverted {
            // A header passes in any case.
            chunk.records.passing.iter().for_each(|&record| new[record] = false);
        }
        if self.only_counts {
            return Ok(());
        }
        self.ends.resize(chunk.input, self.written);
        let bytes = chunk.retain(|keyed: &Keyed| &keyed.ends, |record| new[record] != self.inverted);
        self.written += bytes.len() as u64;
        self.output.write_all(bytes).context(OUTPUT)
    }

    /// Writes each record after the count of its key, unless this is 0. A record without a key
    /// counts as one.
    pub(super) fn put_counts(&mut self, chunk: &Chunk, counts: &[u64]) -> Result<()> {
        self.add(chunk, counts.iter().filter(|&&count| count > 0).count());
        self.ends.resize(chunk.input, self.written);
        let (mut text, keyed) = (Vec::new(), &chunk.records);
        let counts = keyed.of_records(counts.iter().copied(), 1);
        for (record, count) in keyed.records(chunk.bytes()).zip(counts) {
            if count > 0 {
                // The width of uniq's counts.
                write!(text, "{count:7} ").expect("a vector takes everything");
                text.extend_from_slice(record);
            }
        }
        self.written += text.len() as u64;
        self.output.write_all(&text).context(OUTPUT)
    }

    /// Counts the records of a chunk, of whose keys `new` are new.
    fn add(&mut self, chunk: &Chunk, new: usize) {
        let keyless = chunk.records.keyless.len();
        let (unique, duplicates) = (keyless + new, chunk.records.hashes.len() - new);
        let passed = if self.inverted {
            duplicates + chunk.records.passing.len()
        } else {
            unique
        };
        self.lines += (unique + duplicates) as u64;
        self.unique += unique as u64;
        self.passed += passed as u64;
        self.missing += chunk.records.missing as u64;
    }

    pub(super) fn summary(&self, extra: Summary) -> Summary {
        let Self {
            lines,
            unique,
            passed,
            missing,
            ..
        } = self;
        let dropped = lines - passed;
        let mut statistics: Vec<(_, Value)> = vec![
            ("lines", (*lines).into()),
            ("unique", (*unique).into()),
            ("without_key", (*missing).into()),
            ("dropped", dropped.into()),
        ];
        statistics.extend(extra.statistics);
        let missing = table::without_key(*missing as usize);
        let text = format!(
            "{lines} lines, {unique} unique{missing}, {dropped} dropped{}",
            extra.text
        );
        Summary { text, statistics }
    }
}
