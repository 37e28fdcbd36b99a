//! `lanebloom dedup`: passes on the first occurrence of each line.

mod exact;
mod job;

use crate::args::Dedup;
use crate::keys::Chunk;
use anyhow::{Result, bail};
use indicatif::HumanBytes;
use job::{Done, Job, RecordWriter};
use lanebloom::Murmur3;
use lanebloom::hash::SipHash13;
use lanebloom_files::claims::Claims;
use lanebloom_files::input::{Files, Input};
use lanebloom_files::output::Outputs;
use lanebloom_files::seen::{self, RATE, Seen};
use lanebloom_files::state_file::StateFile;
use lanebloom_files::summary::Summary;
use std::fs::File;
use std::time::Instant;

/// Keys of the smallest filter, however few are expected. The rate of a filter of few lines is far
/// from the model's by chance, and stays for all later keys.
const SMALLEST: usize = 1 << 14;

pub(crate) fn run(args: &Dedup, quiet: bool) -> Result<()> {
    let start = Instant::now();
    if args.count_each && !args.keys.csv.is_empty() {
        bail!(
            "--count-each cannot be used with --csv: the number would become part of the first column. If no field is \
             quoted, use --field=K --delimiter=, instead"
        );
    }
    let files = Files::new(&args.input)?;
    let outputs = if args.in_place {
        Outputs::in_place(&files, args.keys.null)?
    } else {
        Outputs::new(args.output.as_deref(), args.output_dir.as_deref(), &files, true)?
    };
    let skipped = files.skipped;
    let mut claims = Claims::default();
    claims.lists(&args.input);
    if !args.in_place {
        let role = "an input; --in-place replaces inputs";
        claims.inputs(role, &args.input, &files.paths);
    }
    outputs.claim(&mut claims)?;
    if let Some(state) = &args.state {
        claims.writes_path("the state", state)?;
    }
    let job = Job::new(args, files.paths, outputs.is_apart(), quiet)?;
    let done = outputs.fill(|file| {
        let mut done = if args.exact || args.count_each {
            exact::run(&job, file)?
        } else {
            by_filter(&job, file)?
        };
        let ends = done.output.end(job.files.len())?;
        Ok((done, ends))
    })?;
    // A line is remembered only after it was written.
    if let Some((mut state, seen)) = done.state {
        state.save(&seen, |_| Ok(()))?;
    }
    job.progress.finish();
    let summary = done.output.summary(done.extra).with_seconds(start);
    summary.with_skipped(skipped).print(&args.summary, quiet);
    Ok(())
}

/// One pass.
fn by_filter(job: &Job<'_>, output: &File) -> Result<Done> {
    let Dedup { size, state, .. } = job.args;
    let state = state.as_deref().map(StateFile::open).transpose()?;
    let expected = size.expected.map(|keys| keys.max(SMALLEST));
    let filter = match &state {
        Some(state) => state.load(expected, size.rate)?,
        None => seen::empty(expected, size.rate.unwrap_or(RATE), Murmur3::default())?,
    };
    let hasher = *filter.hasher();
    let value = (Seen::of(filter), RecordWriter::new(job.args, output)?);
    let mut new = Vec::new();
    let take = move |(seen, output): &mut (Seen, RecordWriter), chunk: &mut Chunk| {
        new.resize(chunk.records.hashes.len(), false);
        seen.insert(&chunk.records.hashes, &mut new, chunk.share)?;
        output.put(chunk, &mut new)
    };
    let inputs = Input::all(&job.files);
    // Strangers choose the lines, so the hash has a secret key, unless a later run needs it again.
    let (seen, output) = if state.is_some() {
        job.pass(inputs, hasher, value, take)?
    } else {
        job.pass(inputs, SipHash13::random(), value, take)?
    };
    let (mistaken, memory) = (seen.mistakes.expected, seen.filter().memory_bytes());
    let extra = Summary {
        text: format!(
            ", {:.2} of them expected to be wrongly dropped, a filter of {}",
            mistaken,
            HumanBytes(memory as u64)
        ),
        statistics: vec![
            ("wrongly_dropped_expected", mistaken.into()),
            ("memory_bytes", memory.into()),
        ],
    };
    Ok(Done {
        output,
        extra,
        state: state.map(|state| (state, seen)),
    })
}
