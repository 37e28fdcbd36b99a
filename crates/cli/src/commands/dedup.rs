//! `lanebloom dedup`: passes on the first occurrence of each line.

mod exact;
mod job;

use crate::args::Dedup;
use crate::input::{Chunk, Input};
use crate::layers::{Layers, RATE};
use crate::ordered::Stage;
use crate::state::State;
use anyhow::Result;
use indicatif::HumanBytes;
use job::{Job, Output};
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
