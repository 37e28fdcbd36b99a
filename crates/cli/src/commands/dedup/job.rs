//! What every way to deduplicate has: a job, which gives the inputs to a stage, and its output.

use crate::args::Dedup;
use crate::input::{Chunk, Input, Reader};
use crate::keys::KeySpec;
use crate::pipeline::{self, Stage};
use crate::progress::Progress;
use crate::stdout;
use anyhow::{Context, Result};
use lanebloom::hash::KeyHasher;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;

/// What all passes need.
pub(super) struct Job<'a> {
    pub(super) args: &'a Dedup,
    pub(super) keys: KeySpec,
    pub(super) threads: usize,
    pub(super) progress: Arc<Progress>,
}

impl<'a> Job<'a> {
    pub(super) fn new(args: &'a Dedup, quiet: bool) -> Self {
        Self {
            args,
            keys: KeySpec::new(&args.keys),
            threads: args.threads.unwrap_or_else(pipeline::threads),
            progress: Arc::new(Progress::new(Input::total(&Input::all(&args.files)), !quiet)),
        }
    }

    /// Gives the chunks of the inputs to a stage, and returns the stage.
    pub(super) fn pass<S: Stage>(
        &self,
        inputs: VecDeque<Input>,
        hasher: impl KeyHasher + Send + Sync + 'static,
        stage: S,
    ) -> Result<S> {
        let reader = Reader::new(inputs, self.keys.clone(), Arc::clone(&self.progress));
        pipeline::run(reader, self.keys.clone(), hasher, self.threads, stage)
    }
}

const OUTPUT: &str = "cannot write the output";

/// Writes the records that pass, and counts.
pub(super) struct RecordWriter {
    /// Without a buffer: a chunk is one write.
    stdout: File,
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
    pub(super) fn new(args: &Dedup) -> Result<Self> {
        Ok(Self {
            stdout: stdout::open().context(OUTPUT)?,
            only_counts: args.count,
            inverted: args.only_duplicates,
            lines: 0,
            unique: 0,
            passed: 0,
            missing: 0,
        })
    }

    /// Prints the number of records that pass, if that is the output.
    pub(super) fn end(&mut self) -> Result<()> {
        if self.only_counts {
            let line = format!("{}\n", self.passed);
            self.stdout.write_all(line.as_bytes()).context(OUTPUT)?;
        }
        Ok(())
    }

    /// Takes the answers for the keys of the chunk.
    pub(super) fn put(&mut self, chunk: &mut Chunk, new: &mut Vec<bool>) -> Result<()> {
        let keyless = chunk.keyed.keyless.len();
        let unique = keyless + new.iter().filter(|&&new| new).count();
        let duplicates = new.len() + keyless - unique;
        // A record without a key passes in any case.
        let passed = if self.inverted { duplicates + keyless } else { unique };
        self.lines += (unique + duplicates) as u64;
        self.unique += unique as u64;
        self.passed += passed as u64;
        self.missing += chunk.keyed.missing as u64;
        chunk.keyed.spread(new, !self.inverted);
        if !self.only_counts {
            let bytes = chunk.retain(|record| new[record] != self.inverted);
            self.stdout.write_all(bytes).context(OUTPUT)?;
        }
        Ok(())
    }

    pub(super) fn summary(&self, extra: &str, seconds: f64) -> String {
        let Self {
            lines,
            unique,
            passed,
            missing,
            ..
        } = self;
        let dropped = lines - passed;
        let missing = match missing {
            0 => String::new(),
            missing => format!(", {missing} of them without a key"),
        };
        format!("{lines} lines, {unique} unique{missing}, {dropped} dropped{extra}, {seconds:.2} s")
    }
}
