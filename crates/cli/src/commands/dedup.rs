//! `lanebloom dedup`: passes on the first occurrence of each line.

mod exact;

use crate::args::Dedup;
use crate::input::{Chunk, Input, Reader};
use crate::keys::KeySpec;
use crate::layers::{Layers, RATE};
use crate::ordered::{self, Stage};
use crate::progress::Progress;
use crate::state::State;
use crate::stdout;
use anyhow::{Context, Result};
use indicatif::HumanBytes;
use lanebloom::hash::{KeyHasher, SipHash13};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::time::Instant;

/// Keys of the smallest filter, however few are expected. The rate of a filter of few lines is far
/// from the model's by chance, and stays for all later keys.
const SMALLEST: usize = 1 << 14;

pub(crate) fn run(args: &Dedup, quiet: bool) -> Result<()> {
    let start = Instant::now();
    let job = Job::new(args, quiet);
    let (output, extra) = if args.exact {
        exact::run(&job)?
    } else {
        by_filter(&job)?
    };
    job.progress.finish();
    if !quiet {
        crate::note(&output.summary(&extra, start.elapsed().as_secs_f64()));
    }
    Ok(())
}

/// What all passes need.
struct Job<'a> {
    args: &'a Dedup,
    keys: KeySpec,
    threads: usize,
    progress: Arc<Progress>,
}

impl<'a> Job<'a> {
    fn new(args: &'a Dedup, quiet: bool) -> Self {
        Self {
            args,
            keys: KeySpec::new(&args.keys),
            threads: args.threads.unwrap_or_else(ordered::threads),
            progress: Arc::new(Progress::new(Input::total(&Input::all(&args.files)), !quiet)),
        }
    }

    /// Gives the chunks of the inputs to a stage.
    fn pass(&self, inputs: VecDeque<Input>, hasher: &(impl KeyHasher + Sync), stage: &mut impl Stage) -> Result<()> {
        let mut reader = Reader::new(inputs, self.keys.clone(), Arc::clone(&self.progress));
        ordered::run(&mut reader, &self.keys, hasher, self.threads, stage)
    }
}

/// One pass. Returns its output, and the end of the summary.
fn by_filter(job: &Job<'_>) -> Result<(Output, String)> {
    let Dedup { size, state, .. } = job.args;
    let state = state.as_deref().map(State::open).transpose()?;
    let expected = size.expected.map(|keys| keys.max(SMALLEST));
    let layers = match &state {
        Some(state) => state.load(expected, size.rate)?,
        None => Layers::new(expected, size.rate.unwrap_or(RATE))?,
    };
    let hasher = layers.hasher();
    let mut stage = ByFilter {
        layers,
        new: Vec::new(),
        output: Output::new(job.args)?,
        state,
    };
    let inputs = Input::all(&job.args.files);
    // Strangers choose the lines, so the hash has a secret key, unless a later run needs it again.
    if stage.state.is_some() {
        job.pass(inputs, &hasher, &mut stage)?;
    } else {
        job.pass(inputs, &SipHash13::random(), &mut stage)?;
    }
    let ByFilter {
        layers,
        mut output,
        state,
        ..
    } = stage;
    output.end()?;
    if let Some(state) = state {
        state.save(&layers)?;
    }
    let extra = format!(
        ", {:.2} of them expected to be wrongly dropped, a filter of {}",
        layers.mistaken,
        HumanBytes(layers.memory_bytes() as u64)
    );
    Ok((output, extra))
}

struct ByFilter {
    layers: Layers,
    new: Vec<bool>,
    output: Output,
    state: Option<State>,
}

impl Stage for ByFilter {
    fn take(&mut self, chunk: &mut Chunk) -> Result<()> {
        self.new.resize(chunk.keyed.hashes.len(), false);
        let inserted = self.layers.insert(&chunk.keyed.hashes, &mut self.new, chunk.share);
        let taken = inserted.and_then(|()| self.output.put(chunk, &mut self.new));
        if taken.is_err() {
            // The error ends the process, which drops nothing.
            self.state = None;
        }
        taken
    }
}

const OUTPUT: &str = "cannot write the output";

/// Writes the records that pass, and counts.
struct Output {
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

impl Output {
    fn new(args: &Dedup) -> Result<Self> {
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
    fn end(&mut self) -> Result<()> {
        if self.only_counts {
            let line = format!("{}\n", self.passed);
            self.stdout.write_all(line.as_bytes()).context(OUTPUT)?;
        }
        Ok(())
    }

    /// Takes the answers for the keys of the chunk.
    fn put(&mut self, chunk: &mut Chunk, new: &mut Vec<bool>) -> Result<()> {
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

    fn summary(&self, extra: &str, seconds: f64) -> String {
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
