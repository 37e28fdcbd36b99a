//! `lanebloom query`: says which keys are in a filter file.

use crate::args::Query;
use crate::filter_file::{Content, FilterFile};
use crate::keys::{Chunk, Framer, Hash, KeySpec, Keyed};
use anyhow::{Context, Result, bail};
use lanebloom_files::claims::{Claims, INPUT, OUTPUT};
use lanebloom_files::input::{Files, Input, Reader, is_stdin};
use lanebloom_files::output::Output;
use lanebloom_files::pipeline::{self, Stage, Work};
use lanebloom_files::progress::Progress;
use lanebloom_files::summary::{Summary, count};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::mem;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn run(args: &Query, quiet: bool) -> Result<ExitCode> {
    let start = Instant::now();
    if quiet && args.output.is_some() {
        bail!("--quiet prints nothing, so --output would get nothing");
    }
    let lists = [&args.input.files_from, &args.input.files0_from];
    let Files {
        paths: files, skipped, ..
    } = Files::new(&args.input)?;
    let mut sources = lists.into_iter().flatten().chain(&files);
    if is_stdin(&args.filter) && sources.any(|file| is_stdin(file)) {
        bail!("the filter and the keys cannot both come from stdin");
    }
    let file = FilterFile::open(&args.filter)?;
    let hasher = file.hasher()?;
    let keys = KeySpec::new(&args.keys)?;
    let keys = match &file.content {
        Content::Guava(_) => keys.of_guava(args.funnel, quiet),
        other if args.funnel.is_some() => bail!(
            "{}: --funnel is for a Guava filter, and this is a {}",
            file.name,
            other.kind()
        ),
        Content::Redis(_) => keys.of_redis(),
        _ => keys.of_hasher(&hasher),
    };
    let output = Output::new(args.output.as_deref().unwrap_or(Path::new("-")))?;
    let mut claims = Claims::default();
    claims.inputs(INPUT, &args.input, &files);
    claims.reads(INPUT, &args.filter);
    output.claim(&mut claims, OUTPUT)?;
    let inputs = Input::all(&files);
    let progress = Arc::new(Progress::new(Input::total(&inputs), !quiet));
    let keys = if args.present || args.absent {
        keys
    } else {
        keys.without_mark()
    };
    let reader = Reader::new(inputs, Framer::new(keys.clone()), progress);
    let stage = Answers {
        print: match (args.present, args.absent) {
            (true, _) => Print::Present,
            (_, true) => Print::Absent,
            _ => Print::Answers,
        },
        output: None,
        text: Vec::new(),
        is_all: true,
        present: 0,
        absent: 0,
        missing: 0,
    };
    let ask = |output: Option<File>| {
        let stage = Answers { output, ..stage };
        let hash = Hash { keys, hasher };
        let threads = args.threads.threads.unwrap_or_else(pipeline::all_threads);
        pipeline::run(reader, Find { hash, file }, threads, stage)
    };
    let stage = if quiet {
        match ask(None) {
            Err(error) if error.is::<Absent>() => return Ok(ExitCode::from(1)),
            asked => asked?,
        }
    } else {
        output.fill(|file| ask(Some(file.try_clone().context(FAILED)?)))?
    };
    if args.summary.json_summary || stage.missing > 0 || skipped > 0 {
        stage.summary(start).with_skipped(skipped).print(&args.summary, quiet);
    }
    Ok(ExitCode::from(if stage.is_all { 0 } else { 1 }))
}

/// What is printed of a record.
#[derive(Clone, Copy)]
enum Print {
    /// `present` or `absent`, a tab, and the record. They come first so that the record stays as it
    /// is, whatever ends it.
    Answers,
    Present,
    Absent,
}

const FAILED: &str = "cannot write the output";

/// Looks up the keys of chunks.
struct Find {
    hash: Hash,
    file: FilterFile,
}

impl Work<Keyed> for Find {
    fn work(&self, chunk: &mut Chunk) {
        self.hash.work(chunk);
        let mut found = mem::take(&mut chunk.records.found);
        found.resize(chunk.records.hashes.len(), false);
        let key = |number| self.hash.keys.key(chunk.bytes(), &chunk.records, number).0;
        self.file.find(&chunk.records.hashes, key, &mut found);
        chunk.records.found = found;
    }
}

struct Answers {
    print: Print,
    /// `None` if nothing is printed.
    output: Option<File>,
    text: Vec<u8>,
    is_all: bool,
    /// The number of keys that are in the filter, and of the others.
    present: usize,
    absent: usize,
    /// The number of records without a key.
    missing: usize,
}

impl Answers {
    fn summary(&self, start: Instant) -> Summary {
        let Self {
            present,
            absent,
            missing,
            ..
        } = *self;
        Summary {
            text: format!("lanebloom: {} without a key, taken for absent", count(missing, "line")),
            statistics: vec![
                ("lines", (present + absent + missing).into()),
                ("present", present.into()),
                ("absent", absent.into()),
                ("without_key", missing.into()),
                ("seconds", start.elapsed().as_secs_f64().into()),
            ],
        }
    }
}

impl Stage<Keyed> for Answers {
    fn take(&mut self, chunk: &mut Chunk) -> Result<()> {
        let keyed = &mut chunk.records;
        keyed.check_hashes()?;
        let mut found = mem::take(&mut keyed.found);
        // What has no key is not in the filter.
        let present = found.iter().filter(|&&found| found).count();
        self.present += present;
        self.absent += keyed.hashes.len() - present;
        self.missing += keyed.missing;
        self.is_all &= self.absent + self.missing == 0;
        keyed.spread(&mut found, false);
        let Some(output) = &mut self.output else {
            return if self.is_all { Ok(()) } else { Err(Absent.into()) };
        };
        // The header of the first input of CSV, and empty lines at the end of an input.
        let passing = chunk.records.passing.clone();
        let passes = |record| passing.contains(&record);
        let text = match self.print {
            Print::Answers => {
                answer(chunk, &found, passes, &mut self.text);
                &self.text
            }
            Print::Present => chunk.retain(|keyed: &Keyed| &keyed.ends, |record| found[record] || passes(record)),
            Print::Absent => chunk.retain(|keyed: &Keyed| &keyed.ends, |record| !found[record] || passes(record)),
        };
        output.write_all(text).context(FAILED)
    }
}

/// Writes each record after its answer and a tab to `text`.
fn answer(chunk: &Chunk, found: &[bool], passes: impl Fn(usize) -> bool, text: &mut Vec<u8>) {
    text.clear();
    let mut start = 0;
    for (record, &end) in chunk.records.ends.iter().enumerate() {
        if !passes(record) {
            let answer: &[u8] = if found[record] { b"present\t" } else { b"absent\t" };
            text.extend_from_slice(answer);
        }
        text.extend_from_slice(&chunk.bytes()[start..end]);
        start = end;
    }
}

/// Ends the reading, with status 1: a key is absent, and nothing is printed.
#[derive(Debug)]
struct Absent;

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key is absent")
    }
}

impl std::error::Error for Absent {}
