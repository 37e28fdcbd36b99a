//! `lanebloom query`: says which keys are in a filter file. `lanebloom which`: says in which
//! columns of a bank they are.

use crate::args::{LookupArgs, Query, Which};
use crate::bank::{self, Names};
use crate::filter_file::{Content, FilterFile};
use crate::keys::{Chunk, Framer, KeySpec, Keyed};
use crate::table;
use anyhow::{Context, Result, bail, ensure};
use lanebloom_files::claims::{Claims, INPUT, OUTPUT};
use lanebloom_files::input::{Files, Input, Reader, is_stdin};
use lanebloom_files::output::Output;
use lanebloom_files::pipeline::{self, Stage};
use lanebloom_files::progress::Progress;
use lanebloom_files::summary::{Summary, count, object};
use serde_json::Value;
use std::fs::File;
use std::io::Write;
use std::mem;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

pub(crate) fn run(args: &Query, quiet: bool) -> Result<ExitCode> {
    look_up(&args.filter, &args.lookup, quiet, |file, keys| {
        let keys = match &file.content {
            Content::Bank(_) => bail!("{}: {}", file.name, bank::INSTEAD),
            Content::Guava(_) => keys.of_guava(args.funnel, quiet),
            other if args.funnel.is_some() => bail!(
                "{}: --funnel is for a Guava filter, and this is a {}",
                file.name,
                other.kind()
            ),
            Content::Redis(_) => keys.of_redis(),
            _ => keys.of_hasher(&file.hasher()?),
        };
        let print = match (args.present, args.absent) {
            (true, _) => Print::Present,
            (_, true) => Print::Absent,
            _ => Print::Answers,
        };
        Ok((keys, print))
    })
}

pub(crate) fn which(args: &Which, quiet: bool) -> Result<ExitCode> {
    look_up(&args.bank, &args.lookup, quiet, |file, keys| {
        let Content::Bank(bank) = &file.content else {
            let kind = file.content.kind();
            bail!("{}: it is a {kind}, not a bank: run `query` on it", file.name);
        };
        let print = match (args.absent, args.count, args.json_output) {
            (true, ..) => Print::Absent,
            (_, true, _) => Print::Counts,
            (.., true) => Print::Objects(bank.names.clone()),
            _ => Print::Names(bank.names.clone()),
        };
        Ok((keys.of_hasher(&file.hasher()?), print))
    })
}

/// Looks up the keys of the inputs in a filter or a bank. `choose` says how its keys are made, and
/// what is printed of them.
fn look_up(
    path: &Path,
    args: &LookupArgs,
    quiet: bool,
    choose: impl FnOnce(&FilterFile, KeySpec) -> Result<(KeySpec, Print)>,
) -> Result<ExitCode> {
    let start = Instant::now();
    if quiet && args.output.is_some() {
        bail!("--quiet prints nothing, so --output would get nothing");
    }
    let Files {
        paths: files, skipped, ..
    } = Files::new(&args.input)?;
    let lists = [&args.input.files_from, &args.input.files0_from];
    let mut sources = lists.into_iter().flatten().chain(&files);
    if is_stdin(path) && sources.any(|file| is_stdin(file)) {
        bail!("the filter and the keys cannot both come from stdin");
    }
    let file = FilterFile::open(path)?;
    let (mut keys, print) = choose(&file, KeySpec::new(&args.keys)?)?;
    let hasher = file.hasher()?;
    let output = Output::new(args.output.as_deref().unwrap_or(Path::new("-")))?;
    let mut claims = Claims::default();
    claims.inputs(INPUT, &args.input, &files);
    claims.reads(INPUT, path);
    output.claim(&mut claims, OUTPUT)?;
    let inputs = Input::all(&files);
    let progress = Arc::new(Progress::new(Input::total(&inputs), !quiet));
    keys.keeps_mark = matches!(print, Print::Present | Print::Absent);
    let reader = Reader::new(inputs, Framer::new(keys.clone()), progress);
    let ask = |output: Option<File>| {
        let stage = Answers {
            keys: keys.clone(),
            print,
            output,
            text: Vec::new(),
            present: 0,
            absent: 0,
            missing: 0,
        };
        let find = move |chunk: &mut Chunk| {
            keys.hash(chunk, &hasher);
            if let Content::Bank(bank) = &file.content {
                return bank.find(&mut chunk.records);
            }
            let mut found = mem::take(&mut chunk.records.found);
            found.resize(chunk.records.hashes.len(), false);
            file.find(&chunk.records.hashes, || keys.all_of(chunk), &mut found);
            chunk.records.found = found;
        };
        let threads = args.threads.threads.unwrap_or_else(pipeline::all_threads);
        pipeline::run(reader, find, threads, stage)
    };
    let stage = if quiet {
        match ask(None) {
            Err(error) if error.downcast_ref() == Some(&ABSENT) => return Ok(ExitCode::from(1)),
            asked => asked?,
        }
    } else {
        output.fill(|file| ask(Some(file.try_clone().context(FAILED)?)))?
    };
    if args.summary.json_summary || stage.missing > 0 || skipped > 0 {
        stage.summary(start).with_skipped(skipped).print(&args.summary, quiet);
    }
    Ok(ExitCode::from(if stage.is_all() { 0 } else { 1 }))
}

/// The output for a record.
enum Print {
    /// `present` or `absent`, a tab, and the record. They come first so that the record stays as it
    /// is, whatever ends it.
    Answers,
    Present,
    Absent,
    /// For each column that has the key, its name, a tab, and the record.
    Names(Names),
    /// The number of these columns, a tab, and the record.
    Counts,
    /// The record and these columns as an object.
    Objects(Names),
}

const FAILED: &str = "cannot write the output";

/// The error that ends the reading, with status 1: a key is absent, and nothing is printed.
const ABSENT: &str = "a key is absent";

struct Answers {
    keys: KeySpec,
    print: Print,
    /// `None` if nothing is printed.
    output: Option<File>,
    text: Vec<u8>,
    /// The number of keys that are in the filter, and of the others.
    present: usize,
    absent: usize,
    /// The number of records without a key.
    missing: usize,
}

impl Answers {
    fn is_all(&self) -> bool {
        self.absent + self.missing == 0
    }

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
        // A record without a key is not in the filter.
        let present = found.iter().filter(|&&found| found).count();
        self.present += present;
        self.absent += keyed.hashes.len() - present;
        self.missing += keyed.missing;
        keyed.spread(&mut found, false);
        let Some(output) = &mut self.output else {
            ensure!(self.is_all(), ABSENT);
            return Ok(());
        };
        // The header of the first input of CSV, and empty lines at the end of an input.
        let passing = chunk.records.passing.clone();
        let passes = |record| passing.contains(&record);
        let text = match &self.print {
            Print::Present => chunk.retain(|keyed: &Keyed| &keyed.ends, |record| found[record] || passes(record)),
            Print::Absent => chunk.retain(|keyed: &Keyed| &keyed.ends, |record| !found[record]),
            print => {
                self.text.clear();
                answer(print, &self.keys, chunk, &found, passes, &mut self.text);
                &self.text
            }
        };
        output.write_all(text).context(FAILED)
    }
}

/// Writes to `text` the answer to each record. A record that passes has none.
fn answer(
    print: &Print,
    keys: &KeySpec,
    chunk: &Chunk,
    found: &[bool],
    passes: impl Fn(usize) -> bool,
    text: &mut Vec<u8>,
) {
    let mut columns = chunk.records.columns();
    for (record, line) in chunk.records.records(chunk.bytes()).enumerate() {
        let columns = match print {
            Print::Answers => &[],
            _ => columns.next().expect("every record has columns"),
        };
        let mut add = |answer: &[u8]| {
            text.extend_from_slice(answer);
            text.extend_from_slice(line);
            // The last line may have no end, and several answers.
            let end = matches!(print, Print::Names(_)) && !line.ends_with(&[keys.terminator()]);
            text.extend(end.then_some(keys.terminator()));
        };
        match print {
            Print::Objects(_) if passes(record) => {}
            _ if passes(record) => add(b""),
            Print::Names(names) => {
                for &column in columns {
                    add(format!("{}\t", table::name(&names.of(column))).as_bytes());
                }
            }
            Print::Counts => add(format!("{}\t", columns.len()).as_bytes()),
            Print::Objects(names) => {
                let columns: Vec<_> = columns.iter().map(|&column| names.of(column)).collect();
                let line = String::from_utf8_lossy(keys.text(line));
                let members = [("line", Value::from(line)), ("columns", columns.into())];
                let object = object(members.map(|(name, value)| (name, value.to_string())));
                text.extend_from_slice(object.as_bytes());
                text.push(b'\n');
            }
            _ if found[record] => add(b"present\t"),
            _ => add(b"absent\t"),
        }
    }
}
