//! `lanebloom-corpus`: removes from texts in JSON lines what was seen before.
//!
//! Threads read chunks of lines, find the texts and hash their pieces, side by side. One thread at
//! a time looks a chunk up in the filter, in the order of the input ([`decide`]). Then threads
//! write the lines anew and compress them, side by side, and the [`writer`] puts them in order.

mod args;
mod decide;
mod documents;
mod files;
mod journal;
mod json;
mod memory;
#[cfg(feature = "redis")]
mod redis;
#[cfg_attr(not(feature = "parquet"), path = "command/no_rows.rs")]
mod rows;
mod run;
mod summary;
mod writer;

use anyhow::{Context, Result, bail};
use args::{Args, Difference, Unit, WordRules};
use clap::CommandFactory;
use decide::{By, Decider, Shared, Way};
use documents::{Cutter, PER_BYTE, Reading};
use files::RunFiles;
use lanebloom::{Murmur3, ScalableBloom};
use lanebloom_corpus::{Near, Normalize, Regex, Rules, Split, Words};
use lanebloom_files::input::{self, Digest, Input, Reader};
use lanebloom_files::journal::{Content, compare, settings_of};
use lanebloom_files::json::Pointer;
use lanebloom_files::output::{self, Outputs};
use lanebloom_files::progress::Progress;
use lanebloom_files::seen::{self, FIRST, RATE, Seen};
use lanebloom_files::summary::object;
use lanebloom_files::{pages, pipeline};
use memory::{Limit, Limited};
use run::{CorpusStage, CorpusWork, Saver};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use writer::Writer;

/// Words of a sequence for --near. Fewer would be in many texts; more would make a change of one
/// word a large one.
const NEAR_NGRAMS: usize = 5;

pub(crate) fn main() -> ExitCode {
    lanebloom_files::exit("lanebloom-corpus", dispatch())
}

fn dispatch() -> Result<ExitCode> {
    let args: Args = pages::read(Args::command())?;
    match (args.completions, &args.man) {
        (Some(shell), _) => pages::completions(shell, Args::command())?,
        (_, Some(folder)) => pages::man(folder, Args::command())?,
        _ => run(&args)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn run(args: &Args) -> Result<()> {
    let start = Instant::now();
    let rules = rules(args)?;
    let settings = settings(args);
    let RunFiles {
        inputs: files,
        skipped,
        outputs,
        build,
        report,
        journal,
    } = RunFiles::open(args, &settings)?;

    let inputs = Input::all(&files.paths);
    let total = Input::total(&inputs);
    let bands = rules.near.map_or(1, |near| near.bands());
    let (filter, against) = filter(args, bands, journal.as_ref(), &settings, total)?;
    let hasher = *against.as_ref().unwrap_or(filter.filter()).hasher();
    let way = way(args);
    let shared = shared(args, way, &settings, &files.paths)?;
    let tables = files::tables(args, &files, outputs.as_ref())?;
    let writer = Arc::new(Writer::new(outputs.as_ref(), tables.clone(), journal.is_none())?);
    let is_apart = outputs.as_ref().is_some_and(Outputs::is_apart);
    let digests = Vec::from_iter(files.paths.iter().map(|_| Digest::default()));
    let progress = Arc::new(Progress::new(total, !args.quiet));
    let reader = Reader::new(inputs, Cutter::new(tables, args.max_record), Arc::clone(&progress))
        .apart(is_apart || outputs.is_none())
        .full()
        .hashed(if journal.is_some() { &digests } else { &[] });
    let work = CorpusWork {
        reading: Reading {
            field: if args.text.starts_with('/') {
                Pointer::new(&args.text)
            } else {
                Pointer::to_member(&args.text)
            },
            rules: Rules { hasher, ..rules },
            attribute: args.annotate.clone(),
        },
        against,
        way,
        writer: Arc::clone(&writer),
    };
    let stage = CorpusStage {
        decider: Decider::new(filter, shared, way),
        writer: Arc::clone(&writer),
        taken: 0,
        names: files.paths.iter().map(|path| input::name(path)).collect(),
        most: args.max_record,
        saver: journal.map(|journal| Saver::new(journal, files.paths, digests, is_apart, args.save_every)),
    };
    let threads = args.threads.unwrap_or_else(pipeline::all_threads);
    let mut stage = pipeline::run(reader, work, threads, stage)?;
    let counts = stage.end()?;
    if let Some(build) = &build {
        save_build(build.path(), &stage.decider.filter.seen, &settings)?;
    }
    progress.finish();
    let summary = summary::of(&stage.decider, &counts, bands, skipped, args, start).with_skipped(files.skipped);
    if let Some(output) = &report {
        let members = summary.statistics.iter().map(|(name, value)| (name, value.to_string()));
        let report = object(members);
        output.write(|writer| writeln!(writer, "{report}"))?;
    }
    summary.print(&args.summary, args.quiet);
    Ok(())
}

/// How pieces are decided about.
fn way(args: &Args) -> Way {
    let min_words = args.min_words.unwrap_or(0);
    let by = match (&args.build, &args.against) {
        (Some(_), _) => By::Nothing,
        (_, Some(_)) => By::Found,
        _ if (ngrams(args).is_none() || args.like_dolma) && min_words <= 1 => By::Inserting,
        _ => By::Windows,
    };
    let overlap = match (args.near, args.ngrams) {
        // One band is enough.
        (Some(_), _) => f64::MIN_POSITIVE,
        (None, Some(_)) => args.overlap,
        (None, None) => 1.0,
    };
    Way { by, overlap, min_words }
}

fn rules(args: &Args) -> Result<Rules> {
    let split = match (&args.split, args.unit) {
        (Some(regex), _) => Split::Regex(Regex::new(regex).context("--split")?),
        (None, Unit::Document) => Split::Document,
        (None, Unit::Paragraph) => Split::Paragraph,
        (None, Unit::Line) => Split::Line,
    };
    let has = |difference| args.normalize.contains(&difference);
    Ok(Rules {
        split,
        words: match args.words {
            WordRules::Unicode => Words::Unicode,
            WordRules::Ascii => Words::Ascii,
        },
        normalize: Normalize {
            nfc: has(Difference::Nfc),
            lower: has(Difference::Lower),
            punctuation: has(Difference::Punctuation),
            digits: has(Difference::Digits),
            whitespace: has(Difference::Whitespace),
        },
        ngrams: ngrams(args).and_then(|ngrams| ngrams.try_into().ok()),
        near: args.near.map(Near::new),
        min_words: args.min_words.unwrap_or(0).max(args.keep_short.unwrap_or(0)),
        short: args.keep_short.unwrap_or(0),
        is_like_dolma: args.like_dolma,
        max_bytes: Some(PER_BYTE.saturating_mul(args.max_record)),
        ..Rules::default()
    })
}

/// The words of a sequence, if there are sequences.
fn ngrams(args: &Args) -> Option<usize> {
    args.ngrams.or(args.near.map(|_| NEAR_NGRAMS))
}

/// The settings on which the hashes depend, except the seed, as options.
fn settings(args: &Args) -> String {
    let mut text = match (&args.split, args.unit) {
        (Some(regex), _) => format!("--split {regex}"),
        (None, unit) => format!("--unit {unit:?}").to_lowercase(),
    };
    if let Some(ngrams) = ngrams(args) {
        text += &format!(" --ngrams {ngrams} --words {:?}", args.words).to_lowercase();
    }
    if !args.normalize.is_empty() {
        let mut names = Vec::from_iter(args.normalize.iter().map(|name| format!("{name:?}").to_lowercase()));
        names.sort();
        names.dedup();
        text += &format!(" --normalize {}", names.join(","));
    }
    if args.like_dolma {
        text += " --like-dolma";
    }
    if let Some(near) = args.near {
        text += &format!(" --near {near}");
    }
    text
}

/// The filter that learns, and the one to compare with. With the latter, nothing is learned.
fn filter(
    args: &Args,
    bands: usize,
    journal: Option<&journal::Journal>,
    settings: &str,
    input: Option<u64>,
) -> Result<(Limited, Option<ScalableBloom>)> {
    let limit = args.memory.map(|bytes| Limit {
        bytes,
        when_full: args.when_full,
    });
    let (rate, seed) = (args.rate.unwrap_or(RATE), args.seed.unwrap_or(0));
    // A piece is one that was seen if any of its bands is: at most the sum of their rates.
    let (rate, expected) = (
        rate / bands as f64,
        args.expected.map(|pieces| pieces.saturating_mul(bands)),
    );
    let hasher = Murmur3::with_seed(seed);
    let new = || match expected {
        Some(_) => seen::empty(expected, rate, hasher),
        None => seen::beginning(first_keys(input, args.memory), rate, hasher),
    };
    if let Some(path) = &args.against {
        let failed = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        if let Some(theirs) = settings_of(path, &file)? {
            compare(path, &theirs, settings)?;
        }
        let against = seen::read_from(&file, None).with_context(failed)?;
        return Ok((Limited::new(ScalableBloom::default(), None)?, Some(against)));
    }
    let filter = match journal.map(journal::Journal::state) {
        Some(state) if state.id()?.is_some() => {
            let is_rate_known = args.rate.is_some() || bands > 1;
            let filter = state.load(expected, is_rate_known.then_some(rate))?;
            let seed = filter.hasher().seed();
            if args.seed.is_some_and(|wanted| wanted != seed) {
                bail!(
                    "the state {} has the seed {seed}: leave --seed out",
                    state.path().display()
                );
            }
            filter
        }
        _ => new()?,
    };
    Ok((Limited::new(filter, limit)?, None))
}

/// The keys of a filter's first layer. What it has taken when it is full decides the size of the
/// next one, so it must see enough of the input: after 65,536 13-grams, 0.5% of an input of 314
/// MB, the next layer became 55 MiB; after one key for each 512 bytes, 37 MiB.
fn first_keys(input: Option<u64>, memory: Option<usize>) -> usize {
    const MOST: usize = 1 << 24;
    let keys = input.map_or(0, |bytes| bytes / 512).min(MOST as u64) as usize;
    // A key takes at most 16 bytes, so this is a quarter of the memory.
    keys.min(memory.unwrap_or(usize::MAX) / 64).max(FIRST)
}

/// The filter in Redis, with --redis.
#[cfg(feature = "redis")]
fn shared(args: &Args, way: Way, settings: &str, inputs: &[PathBuf]) -> Result<Option<Box<dyn Shared>>> {
    let (Some(url), Some(name), Some(expected)) = (&args.redis, &args.redis_key, args.expected) else {
        return Ok(None);
    };
    if way.by != By::Inserting {
        bail!("--redis has no --min-words above 1: the filter would remember the pieces of documents that go");
    }
    let (rate, seed) = (args.rate.unwrap_or(RATE), args.seed.unwrap_or(0));
    let mut shared = redis::RedisFilter::open(url, name, expected, rate, &format!("{settings} --seed {seed}"))?;
    shared.begin(inputs)?;
    Ok(Some(Box::new(shared)))
}

#[cfg(not(feature = "redis"))]
fn shared(_: &Args, _: Way, _: &str, _: &[PathBuf]) -> Result<Option<Box<dyn Shared>>> {
    Ok(None)
}

/// Saves a filter for --against, and its settings.
fn save_build(path: &Path, seen: &Seen, settings: &str) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    output::replace(path, |writer| seen.write_to(writer)).with_context(failed)?;
    let content = Content {
        settings: settings.to_owned(),
        ..Content::default()
    };
    content.write_beside(path)
}
