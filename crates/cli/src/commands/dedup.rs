//! `lanebloom dedup`: passes on the first occurrence of each line.

mod exact;
mod job;

use crate::args::Dedup;
use crate::growing_filter::{GrowingFilter, RATE};
use crate::input::{Chunk, Input};
use crate::pipeline::Stage;
use crate::state_file::StateFile;
use anyhow::Result;
use indicatif::HumanBytes;
use job::{Job, RecordWriter};
use lanebloom::hash::SipHash13;
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

/// One pass. Returns its output, and the end of the summary.
fn by_filter(job: &Job<'_>) -> Result<(RecordWriter, String)> {
    let Dedup { size, state, .. } = job.args;
    let state = state.as_deref().map(StateFile::open).transpose()?;
    let expected = size.expected.map(|keys| keys.max(SMALLEST));
    let filter = match &state {
        Some(state) => state.load(expected, size.rate)?,
        None => GrowingFilter::new(expected, size.rate.unwrap_or(RATE))?,
    };
    let hasher = filter.hasher();
    let stage = ByFilter {
        filter,
        new: Vec::new(),
        output: RecordWriter::new(job.args)?,
        state,
    };
    let inputs = Input::all(&job.args.files);
    // Strangers choose the lines, so the hash has a secret key, unless a later run needs it again.
    let stage = if stage.state.is_some() {
        job.pass(inputs, hasher, stage)?
    } else {
        job.pass(inputs, SipHash13::random(), stage)?
    };
    let ByFilter {
        filter,
        mut output,
        state,
        ..
    } = stage;
    output.end()?;
    if let Some(state) = state {
        state.save(&filter)?;
    }
    let extra = format!(
        ", {:.2} of them expected to be wrongly dropped, a filter of {}",
        filter.mistaken,
        HumanBytes(filter.memory_bytes() as u64)
    );
    Ok((output, extra))
}

struct ByFilter {
    filter: GrowingFilter,
    new: Vec<bool>,
    output: RecordWriter,
    state: Option<StateFile>,
}

impl Stage for ByFilter {
    fn take(&mut self, chunk: &mut Chunk) -> Result<()> {
        self.new.resize(chunk.keyed.hashes.len(), false);
        self.filter.insert(&chunk.keyed.hashes, &mut self.new, chunk.share)?;
        self.output.put(chunk, &mut self.new)
    }
}
