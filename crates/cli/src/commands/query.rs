//! `lanebloom query`: says which keys are in a filter file.

use crate::args::Query;
use crate::filter_file::{Content, FilterFile};
use crate::input::{Chunk, Input, Reader, is_stdin};
use crate::keys::KeySpec;
use crate::pipeline::{self, Stage};
use crate::progress::Progress;
use crate::{stdout, table};
use anyhow::{Context, Result, bail};
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

pub(crate) fn run(args: &Query, quiet: bool) -> Result<ExitCode> {
    let reads_stdin = args.files.iter().any(|file| is_stdin(file));
    if is_stdin(&args.filter) && reads_stdin {
        bail!("the filter and the keys cannot both come from stdin");
    }
    let file = FilterFile::open(&args.filter)?;
    let hasher = file.hasher()?;
    let keys = KeySpec::new(&args.keys);
    let keys = match &file.content {
        Content::Guava(_) => keys.of_guava(args.funnel, quiet),
        other if args.funnel.is_some() => bail!(
            "{}: --funnel is for a Guava filter, and this is a {}",
            file.name,
            other.kind()
        ),
        Content::Redis(_) => keys.of_redis(),
        _ => keys,
    };
    let inputs = Input::all(&args.files);
    let progress = Arc::new(Progress::new(Input::total(&inputs), !quiet));
    let reader = Reader::new(inputs, keys.clone(), progress);
    let stage = Answers {
        file,
        keys: keys.clone(),
        print: match (args.present, args.absent) {
            (true, _) => Print::Present,
            (_, true) => Print::Absent,
            _ => Print::Answers,
        },
        stdout: (!quiet).then(stdout::open).transpose().context(OUTPUT)?,
        found: Vec::new(),
        text: Vec::new(),
        is_all: true,
        missing: 0,
    };
    let stage = pipeline::run(reader, keys, hasher, pipeline::threads(), stage)?;
    if !quiet && stage.missing > 0 {
        let lines = table::count(stage.missing, "line");
        crate::note(&format!("lanebloom: {lines} without a key, taken for absent"));
    }
    Ok(ExitCode::from(if stage.is_all { 0 } else { 1 }))
}

/// What is printed of a record.
#[derive(Clone, Copy)]
enum Print {
    /// The answer, a tab, and the record. The answer comes first so that the record stays as it is,
    /// whatever ends it.
    Answers,
    Present,
    Absent,
}

const OUTPUT: &str = "cannot write the output";

struct Answers {
    file: FilterFile,
    keys: KeySpec,
    print: Print,
    /// `None` if nothing is printed.
    stdout: Option<File>,
    found: Vec<bool>,
    text: Vec<u8>,
    is_all: bool,
    /// The number of records without a key.
    missing: usize,
}

impl Stage for Answers {
    fn take(&mut self, chunk: &mut Chunk) -> Result<()> {
        let keyed = &chunk.keyed;
        self.found.resize(keyed.hashes.len(), false);
        let key = |number| self.keys.key(chunk.bytes(), keyed, number).0;
        self.file.find(&keyed.hashes, key, &mut self.found);
        // What has no key is not in the filter.
        self.is_all &= keyed.missing == 0 && self.found.iter().all(|&found| found);
        self.missing += keyed.missing;
        keyed.spread(&mut self.found, false);
        let Some(stdout) = &mut self.stdout else {
            return if self.is_all { Ok(()) } else { Err(Absent.into()) };
        };
        let (header, blank) = passing(chunk);
        let passes = |record| Some(record) == header || Some(record) == blank;
        let text = match self.print {
            Print::Answers => {
                answer(chunk, &self.found, passes, &mut self.text);
                &self.text
            }
            Print::Present => chunk.retain(|record| self.found[record] || passes(record)),
            Print::Absent => chunk.retain(|record| !self.found[record] || passes(record)),
        };
        stdout.write_all(text).context(OUTPUT)
    }
}

/// Writes each record after its answer and a tab to `text`.
fn answer(chunk: &Chunk, found: &[bool], passes: impl Fn(usize) -> bool, text: &mut Vec<u8>) {
    text.clear();
    let mut start = 0;
    for (record, &end) in chunk.keyed.ends.iter().enumerate() {
        if !passes(record) {
            let answer: &[u8] = if found[record] { b"present\t" } else { b"absent\t" };
            text.extend_from_slice(answer);
        }
        text.extend_from_slice(&chunk.bytes()[start..end]);
        start = end;
    }
}

/// The records of CSV that need no key, and pass as they are: the header line of the first input,
/// and the empty lines at the end of an input.
fn passing(chunk: &Chunk) -> (Option<usize>, Option<usize>) {
    let keyed = &chunk.keyed;
    let count = keyed.keyless.len() - keyed.missing;
    let has_header = count > 0 && chunk.input == 0 && chunk.offset == 0;
    let has_blank = count > usize::from(has_header);
    (has_header.then_some(0), has_blank.then(|| keyed.ends.len() - 1))
}

/// Ends the reading, with status 1: a key is absent, and nothing is printed.
#[derive(Debug)]
pub(crate) struct Absent;

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key is absent")
    }
}

impl std::error::Error for Absent {}
