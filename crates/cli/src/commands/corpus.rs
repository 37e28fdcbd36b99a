//! `lanebloom corpus`: removes from texts in JSON lines what was seen before.
//!
//! Threads read chunks of lines, find the texts and hash their pieces, side by side. One thread at
//! a time asks the filter about a chunk, in the order of the input ([`decide`]). Then threads write
//! the lines anew and compress them, side by side, and the [`writer`] puts them in order.

mod decide;
pub(super) mod journal;
#[cfg(feature = "redis")]
mod redis;
mod writer;

use crate::args::{Corpus, Difference, Unit, WordRules};
use crate::documents::{Counts, Cutter, Documents, Reading};
use crate::rows::Table;
use anyhow::{Context, Result, bail};
use decide::{By, Decider, Figures, Shared, Way};
use indicatif::HumanBytes;
use journal::{Done, Journal, Known};
use lanebloom_files::claims::{Claims, INPUT};
use lanebloom_files::growing_filter::{FIRST, GrowingFilter, Limit, RATE};
use lanebloom_files::input::{self, Digest, Files, Input, Reader, is_stdin};
use lanebloom_files::note;
use lanebloom_files::output::{self, Output, Outputs};
use lanebloom_files::pipeline::{self, Stage, Work};
use lanebloom_files::progress::Progress;
use lanebloom_files::state_file::StateFile;
use lanebloom_files::summary::{Summary, object};
use lanebloom_text::{Field, Near, Normalize, Regex, Rules, Split, Words};
use serde_json::Value;
use std::borrow::Cow;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use writer::{Writer, Written};

/// Words of a sequence for --near. Fewer would be in many texts; more would make a change of one
/// word a large one.
const NEAR_NGRAMS: usize = 5;

/// Bytes that the pieces and words of a document may take, for each byte of --max-record. A text of
/// Chinese has the most words of those that people write, and takes 5.4.
const PER_BYTE: usize = 6;

pub(crate) fn run(args: &Corpus, quiet: bool) -> Result<()> {
    let start = Instant::now();
    let mut files = Files::new(&args.input)?;
    let mut rules = rules(args)?;
    let settings = settings(args);

    let outputs = match args.build {
        Some(_) => None,
        None => Some(Outputs::new(
            args.output.as_deref(),
            args.output_dir.as_deref(),
            &files,
            false,
        )?),
    };
    if args.build.as_deref().is_some_and(is_stdin) {
        bail!("--build needs a file: its options are in a journal beside it");
    }
    let build = args.build.as_deref().map(Output::new).transpose()?;
    let report = args.report.as_deref().map(Output::new).transpose()?;
    claim(args, &files, outputs.as_ref(), build.as_ref(), report.as_ref())?;
    if let Some(build) = &build {
        journal::refuse_to_replace(build.path())?;
    }
    let journal = match &args.state {
        Some(state) => Some(Journal::open(StateFile::open(state)?, &settings, args.new_journal)?),
        None => None,
    };
    let skipped = match &journal {
        Some(journal) => skip_done(journal, &mut files, quiet)?,
        None => 0,
    };
    // Those of the inputs that are left.
    let outputs = match outputs {
        Some(outputs) if skipped > 0 => {
            refuse_to_replace(&outputs, skipped)?;
            match &files.paths[..] {
                [] => None,
                _ => Some(Outputs::new(
                    args.output.as_deref(),
                    args.output_dir.as_deref(),
                    &files,
                    false,
                )?),
            }
        }
        other => other,
    };
    if let (Some(journal), Some(outputs)) = (&journal, &outputs) {
        refuse_to_empty(journal, outputs)?;
    }

    let bands = rules.near.map_or(1, |near| near.bands());
    let inputs = Input::all(&files.paths);
    let total = Input::total(&inputs);
    let (filter, against) = filter(args, bands, journal.as_ref(), &settings, total)?;
    rules.hasher = against.as_ref().unwrap_or(&filter).hasher();
    let overlap = match (rules.near, rules.ngrams) {
        // One band is enough.
        (Some(_), _) => f64::MIN_POSITIVE,
        (None, Some(_)) => args.overlap,
        (None, None) => 1.0,
    };
    let min_words = args.min_words.unwrap_or(0);
    rules.min_words = min_words.max(args.keep_short.unwrap_or(0));
    rules.short = args.keep_short.unwrap_or(0);
    rules.is_like_dolma = args.like_dolma;
    rules.max_bytes = Some(PER_BYTE.saturating_mul(args.max_record));
    let by = match (&args.build, &args.against) {
        (Some(_), _) => By::Nothing,
        (_, Some(_)) => By::Found,
        _ if (rules.ngrams.is_none() || args.like_dolma) && min_words <= 1 => By::Inserting,
        _ => By::Windows,
    };
    let way = Way { by, overlap, min_words };
    let shared = shared(args, way, &settings, &files.paths)?;

    let tables = tables(args, &files, outputs.as_ref())?;
    let writer = Arc::new(match &outputs {
        Some(outputs) => Writer::new(outputs, tables.clone(), journal.is_none())?,
        None => Writer::nowhere(),
    });
    let reading = Reading {
        field: Field::new(&args.text),
        rules,
        attribute: args.annotate.clone(),
    };
    let progress = Arc::new(Progress::new(total, !quiet));
    let reader = Reader::new(inputs, Cutter::new(tables, args.max_record), Arc::clone(&progress))
        .apart(outputs.as_ref().is_none_or(Outputs::is_apart))
        .full();
    let digests = Vec::from_iter(files.paths.iter().map(|_| Digest::default()));
    let reader = if journal.is_some() {
        reader.hashed(&digests)
    } else {
        reader
    };
    let threads = args.threads.threads.unwrap_or_else(pipeline::all_threads);
    let counts = Arc::new(Mutex::new(Counts::default()));
    let work = CorpusWork {
        reading,
        against,
        way,
        writer: Arc::clone(&writer),
        counts: Arc::clone(&counts),
    };
    let stage = CorpusStage {
        decider: Decider::new(filter, shared, way),
        writer: Arc::clone(&writer),
        taken: 0,
        names: files
            .paths
            .iter()
            .map(|path| Input::Path(path.clone()).name())
            .collect(),
        most: args.max_record,
        saver: journal.map(|journal| Saver {
            journal,
            stamps: stamps(&files.paths),
            digests,
            inputs: files.paths,
            saved: 0,
            last: Instant::now(),
            every: Duration::from_secs_f64(args.save_every.max(0.0)),
            is_apart: outputs.as_ref().is_some_and(Outputs::is_apart),
        }),
    };
    let done = pipeline::run(reader, work, threads, stage).and_then(|mut stage| {
        let parts = writer.end()?;
        match &mut stage.saver {
            Some(saver) => saver.save(&stage.decider.filter, saver.inputs.len(), parts)?,
            None => parts.into_iter().try_for_each(writer::Part::commit)?,
        }
        if let Some(build) = &build {
            save_build(build.path(), &stage.decider.filter, &settings)?;
        }
        Ok(stage)
    });
    // Threads that wait for input may hold the writer until the process ends.
    writer.abandon();
    let stage = done?;
    progress.finish();
    let counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
    let summary = summary(&stage.decider, &counts, skipped, args, start).with_skipped(files.skipped);
    if let Some(output) = &report {
        let members = summary.figures.iter().map(|(name, value)| (name, value.to_string()));
        let report = object(members);
        output.write(|writer| writeln!(writer, "{report}"))?;
    }
    summary.print(&args.summary, quiet);
    Ok(())
}

/// Fails if a file has two roles in the run, one of which would end its bytes.
fn claim(
    args: &Corpus,
    files: &Files,
    outputs: Option<&Outputs>,
    build: Option<&Output>,
    report: Option<&Output>,
) -> Result<()> {
    let mut claims = Claims::default();
    claims.inputs(INPUT, &args.input, &files.paths);
    if let Some(against) = &args.against {
        claims.reads("the filter of --against", against);
        claims.reads("the journal of --against", &journal::path_of(against));
    }
    if let Some(outputs) = outputs {
        outputs.claim(&mut claims)?;
        for output in outputs.all().iter().filter(|output| !is_stdin(output.path())) {
            claims.writes_path("the unfinished file of an output", &writer::Part::path(output.path()))?;
        }
    }
    if let Some(build) = build {
        build.claim(&mut claims, "the filter of --build")?;
        claims.writes_path("the journal of --build", &journal::path_of(build.path()))?;
    }
    if let Some(state) = &args.state {
        claims.writes_path("the state", state)?;
        let target = output::target(state).with_context(|| format!("the state {}", state.display()))?;
        claims.writes_path("the journal of the state", &journal::path_of(&target))?;
    }
    report.map_or(Ok(()), |report| report.claim(&mut claims, "the report"))
}

fn rules(args: &Corpus) -> Result<Rules> {
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
        ..Rules::default()
    })
}

/// The words of a sequence, if there are sequences.
fn ngrams(args: &Corpus) -> Option<usize> {
    args.ngrams.or(args.near.map(|_| NEAR_NGRAMS))
}

/// What the hashes depend on, but for the seed, as options.
fn settings(args: &Corpus) -> String {
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

/// The filter that learns, and the one to compare with.
fn filter(
    args: &Corpus,
    bands: usize,
    journal: Option<&Journal>,
    settings: &str,
    input: Option<u64>,
) -> Result<(GrowingFilter, Option<GrowingFilter>)> {
    let limit = args.memory.map(|bytes| Limit {
        bytes,
        when_full: args.when_full,
    });
    let (rate, seed) = (args.size.rate.unwrap_or(RATE), args.seed.unwrap_or(0));
    // A piece is one that was seen if any of its bands is: at most the sum of their rates.
    let (rate, expected) = (
        rate / bands as f64,
        args.size.expected.map(|pieces| pieces.saturating_mul(bands)),
    );
    let new = || match expected {
        Some(_) => GrowingFilter::seeded(expected, rate, seed),
        None => GrowingFilter::beginning(first_keys(input, args.memory), rate, seed),
    };
    if let Some(path) = &args.against {
        let failed = || format!("cannot read {}", path.display());
        let file = File::open(path).with_context(failed)?;
        if let Some(theirs) = journal::settings_of(path, &file)? {
            journal::compare(path, &theirs, settings)?;
        }
        let against = GrowingFilter::read_from(&file, None).with_context(failed)?;
        return Ok((new()?, Some(against)));
    }
    let filter = match journal.map(Journal::state) {
        Some(state) if state.id()?.is_some() => {
            let is_rate_known = args.size.rate.is_some() || bands > 1;
            let filter = state.load(expected, is_rate_known.then_some(rate))?;
            let seed = filter.hasher().seed();
            if args.seed.is_some_and(|wanted| wanted != seed) {
                bail!("the state {} has the seed {seed}", state.path().display());
            }
            filter
        }
        _ => new()?,
    };
    Ok((filter.limited(limit)?, None))
}

/// The keys of a filter's first layer. What it has taken when it is full decides the size of the
/// next one, so it shall see enough of the input: after 65,536 13-grams, 0.5% of an input of 314
/// MB, the next layer became 55 MiB; after one key for each 512 bytes, 37 MiB.
fn first_keys(input: Option<u64>, memory: Option<usize>) -> usize {
    const MOST: usize = 1 << 24;
    let keys = input.map_or(0, |bytes| bytes / 512).min(MOST as u64) as usize;
    // A key takes at most 16 bytes, so this is a quarter of the memory.
    keys.min(memory.unwrap_or(usize::MAX) / 64).max(FIRST)
}

/// The inputs that are files of Parquet. Fails if the output cannot be.
fn tables(args: &Corpus, files: &Files, outputs: Option<&Outputs>) -> Result<Vec<Option<Arc<Table>>>> {
    let open = |path: &PathBuf| Ok(Table::open(path, &args.text)?.map(Arc::new));
    let tables = files.paths.iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut found = files.paths.iter().zip(&tables);
    let named = args.output.as_deref();
    let named = named.filter(|to| to.extension().is_some_and(|end| end == "parquet"));
    let (outputs, path, first) = match (outputs, found.find(|(_, table)| table.is_some()), named) {
        (Some(outputs), Some((path, Some(first))), _) => (outputs, path, first),
        (Some(_), _, Some(to)) => bail!("cannot write {}: no input is a file of Parquet", to.display()),
        _ => return Ok(tables),
    };
    if args.annotate.is_some() {
        bail!(
            "{} is a file of Parquet: --annotate is for lines of JSON",
            path.display()
        );
    }
    if !outputs.is_apart() {
        if named.is_none() {
            bail!(
                "{} is a file of Parquet: give --output a name in .parquet, or --output-dir",
                path.display()
            );
        }
        let fits = |table: &Option<Arc<Table>>| table.as_ref().is_some_and(|table| table.is_like(first));
        if let Some(at) = tables.iter().position(|table| !fits(table)) {
            bail!(
                "{} and {} cannot have one output: not both are files of Parquet with the same columns",
                path.display(),
                files.paths[at].display()
            );
        }
    }
    Ok(tables)
}

/// The filter in Redis, if one is asked for.
#[cfg(feature = "redis")]
fn shared(args: &Corpus, way: Way, settings: &str, inputs: &[PathBuf]) -> Result<Option<Box<dyn Shared>>> {
    let (Some(url), Some(name), Some(expected)) = (&args.redis, &args.redis_key, args.size.expected) else {
        return Ok(None);
    };
    if way.by != By::Inserting {
        bail!("--redis has no --min-words above 1: the filter would remember the pieces of documents that go");
    }
    let (rate, seed) = (args.size.rate.unwrap_or(RATE), args.seed.unwrap_or(0));
    let mut shared = redis::RedisFilter::open(url, name, expected, rate, &format!("{settings} --seed {seed}"))?;
    shared.begin(inputs)?;
    Ok(Some(Box::new(shared)))
}

#[cfg(not(feature = "redis"))]
fn shared(_: &Corpus, _: Way, _: &str, _: &[PathBuf]) -> Result<Option<Box<dyn Shared>>> {
    Ok(None)
}

/// Removes the inputs that are done from the list. Returns how many.
fn skip_done(journal: &Journal, files: &mut Files, quiet: bool) -> Result<usize> {
    let known = journal.have(&files.paths)?;
    let mut keeps = known.iter();
    files
        .paths
        .retain(|_| *keeps.next().expect("one for each path") == Known::No);
    let mut keeps = known.iter();
    files
        .names
        .retain(|_| *keeps.next().expect("one for each path") == Known::No);
    let count = |kind| known.iter().filter(|&&known| known == kind).count();
    let (by_path, moved) = (count(Known::ByPath), count(Known::ByContent));
    let skipped = by_path + moved;
    if skipped > 0 && !quiet {
        let moved = match moved {
            0 => String::new(),
            moved => format!(" ({moved} of them had another path then)"),
        };
        note(&format!(
            "lanebloom: {skipped} inputs were done before{moved}, and are skipped"
        ));
    }
    Ok(skipped)
}

/// Fails if the output has documents of inputs that are skipped, which would be lost.
fn refuse_to_replace(outputs: &Outputs, skipped: usize) -> Result<()> {
    match outputs {
        Outputs::One(output) if !is_stdin(output.path()) && output.path().exists() => bail!(
            "{} exists, and {skipped} of the inputs are done: it would lose their documents. Give another output, or \
             use --output-dir",
            output.name()
        ),
        _ => Ok(()),
    }
}

/// Fails if an output of its own, of an input that is not done, is there. The state may have its
/// documents, so that the new output would be without them.
fn refuse_to_empty(journal: &Journal, outputs: &Outputs) -> Result<()> {
    if !journal.has_inputs() || !outputs.is_apart() {
        return Ok(());
    }
    let has_bytes = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() > 0);
    match outputs.all().iter().find(|output| has_bytes(output.path())) {
        Some(output) => bail!(
            "{} exists, and its input is not one that the state {} has seen: the documents in it may be of another \
             input, and would be lost. Give another --output-dir, or remove the file",
            output.name(),
            journal.state().path().display()
        ),
        None => Ok(()),
    }
}

/// Saves a filter for --against, and its settings.
fn save_build(path: &Path, filter: &GrowingFilter, settings: &str) -> Result<()> {
    let failed = || format!("cannot write {}", path.display());
    output::replace(path, |writer| filter.write_to(writer)).with_context(failed)?;
    let content = journal::Content {
        settings: settings.to_owned(),
        inputs: None,
    };
    content.write(path)
}

/// The sizes of the inputs, and when they were written.
fn stamps(paths: &[PathBuf]) -> Vec<Option<lanebloom_files::input::Stamp>> {
    let now = |path: &PathBuf| lanebloom_files::input::Stamp::now(path, None).ok().flatten();
    paths.iter().map(now).collect()
}

type Chunk = input::Chunk<Documents>;

/// What threads do side by side.
struct CorpusWork {
    reading: Reading,
    against: Option<GrowingFilter>,
    way: Way,
    writer: Arc<Writer>,
    counts: Arc<Mutex<Counts>>,
}

impl Work<Documents> for CorpusWork {
    fn work(&self, chunk: &mut Chunk) {
        let (bytes, documents) = chunk.parts();
        documents.read(bytes, &self.reading);
        if let Some(against) = &self.against {
            let Documents { pieces, found, .. } = documents;
            found.clear();
            found.resize(pieces.hashes.len().div_ceil(64), 0);
            against.find(&pieces.hashes, found);
        }
    }

    fn finish(&self, chunk: &mut Chunk, number: u64) -> Result<()> {
        let input = chunk.input;
        let (bytes, documents) = chunk.parts();
        let rows = documents.rows.take();
        self.way.end(documents);
        let counts = std::mem::take(&mut documents.counts);
        // In order, so that a sum of fractions is the same in every run.
        let add = || {
            let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            all.add(&counts);
        };
        self.writer.write(
            number,
            input,
            || {
                if self.writer.is_nowhere() {
                    return Ok(Written::Bytes(Cow::default()));
                }
                if let Some(mut rows) = rows {
                    documents.edit(bytes, &mut rows)?;
                    return Ok(Written::Rows(rows));
                }
                documents.write(bytes, &self.reading);
                if documents.output.is_empty() {
                    return Ok(Written::Bytes(Cow::default()));
                }
                let format = self.writer.format(input);
                let packed = format.pack(&documents.output).context("cannot compress")?;
                Ok(Written::Bytes(packed))
            },
            add,
        )
    }
}

/// What depends on the order of the input.
struct CorpusStage {
    decider: Decider,
    writer: Arc<Writer>,
    /// The number of chunks so far.
    taken: u64,
    /// The names of the inputs.
    names: Vec<String>,
    /// The limit of a line.
    most: usize,
    saver: Option<Saver>,
}

impl Stage<Documents> for CorpusStage {
    fn take(&mut self, chunk: &mut Chunk) -> Result<()> {
        if let Some(saver) = &mut self.saver {
            // The filter has the inputs before this one, and no more.
            if saver.is_due(chunk.input) {
                let parts = self.writer.complete(self.taken, chunk.input)?;
                saver.save(&self.decider.filter, chunk.input, parts)?;
            }
        }
        if let Some(at) = chunk.records.too_large {
            let most = self.most;
            let place = match chunk.records.rows {
                Some(_) => String::new(),
                None => format!(" at byte {}", chunk.offset + at as u64),
            };
            bail!(
                "{}: the pieces and words of the document{place} take more than {} bytes of memory, {PER_BYTE} times \
                 --max-record: give a --max-record above {most}, or leave the document out",
                self.names[chunk.input],
                PER_BYTE.saturating_mul(most),
            );
        }
        self.taken += 1;
        self.decider.take(&mut chunk.records, chunk.share)
    }
}

/// Saves the state, the journal and the outputs.
struct Saver {
    journal: Journal,
    inputs: Vec<PathBuf>,
    stamps: Vec<Option<lanebloom_files::input::Stamp>>,
    digests: Vec<Digest>,
    /// The inputs before this one are in the journal.
    saved: usize,
    last: Instant,
    every: Duration,
    is_apart: bool,
}

impl Saver {
    /// Whether the work shall be saved before the chunks of this input.
    fn is_due(&self, input: usize) -> bool {
        self.is_apart && input > self.saved && self.last.elapsed() >= self.every
    }

    /// Saves the work for the inputs before this one.
    fn save(&mut self, filter: &GrowingFilter, input: usize, parts: Vec<writer::Part>) -> Result<()> {
        let start = Instant::now();
        let mut done = Vec::new();
        let inputs = self.inputs.iter().zip(&self.stamps).zip(&self.digests);
        for ((path, stamp), digest) in inputs.take(input).skip(self.saved) {
            let now = lanebloom_files::input::Stamp::now(path, None).ok().flatten();
            if stamp.is_some() && now != *stamp {
                bail!("{} changed during the run", path.display());
            }
            if stamp.is_some() {
                done.extend(Done::with(path, digest)?);
            }
        }
        self.journal.save(filter, done, parts)?;
        self.saved = input;
        self.last = Instant::now();
        // A large state takes at most a twentieth of the time.
        self.every = self.every.max(20 * start.elapsed());
        Ok(())
    }
}

fn summary(decider: &Decider, counts: &Counts, skipped: usize, args: &Corpus, start: Instant) -> Summary {
    let Decider { filter, way, .. } = decider;
    let (is_build, is_against) = (way.by == By::Nothing, way.by == By::Found);
    let Counts {
        documents,
        not_json,
        with_nan,
        without_text,
        half_surrogate,
        shortened,
        empty,
        too_short,
        pieces,
        pieces_removed,
        hashes,
        hashes_seen,
        text_bytes,
        mistaken,
    } = counts;
    let seconds = start.elapsed().as_secs_f64();
    let mb = *text_bytes as f64 / 1e6;
    let Figures { memory, fill, rate } = decider.figures();
    let rate = rate * args.near.map_or(1.0, |near| Near::new(near).bands() as f64);
    let mut figures: Vec<(&'static str, Value)> = vec![
        ("documents", (*documents).into()),
        ("not_json", (*not_json).into()),
        ("not_json_with_nan", (*with_nan).into()),
        ("without_text", (*without_text).into()),
        ("half_surrogate", (*half_surrogate).into()),
        ("shortened", (*shortened).into()),
        ("dropped_empty", (*empty).into()),
        ("dropped_too_short", (*too_short).into()),
        ("pieces", (*pieces).into()),
        ("pieces_removed", (*pieces_removed).into()),
        ("hashes", (*hashes).into()),
        ("hashes_seen", (*hashes_seen).into()),
        ("inputs_skipped", skipped.into()),
    ];
    let what = if args.annotate.is_some() { "marked" } else { "removed" };
    let mut text = format!("{documents} documents");
    let uncompared = not_json + without_text + half_surrogate;
    if uncompared > 0 {
        let with_nan = match with_nan {
            0 => String::new(),
            with_nan => format!(" ({with_nan} with NaN or Infinity)"),
        };
        let reasons = [
            (without_text, "without a text".to_owned()),
            (not_json, format!("not JSON{with_nan}")),
            (half_surrogate, "with half a surrogate pair".to_owned()),
        ];
        let reasons = reasons.iter().filter(|(count, _)| **count > 0);
        let reasons = Vec::from_iter(reasons.map(|(count, reason)| format!("{count} {reason}")));
        text += &format!(", {uncompared} of them not compared: {}", reasons.join(", "));
    }
    if is_build {
        text += &format!(", {pieces} pieces, {hashes} hashes");
    } else {
        text += &format!(
            ", {} dropped, {shortened} shortened; {pieces} pieces, {pieces_removed} {what}",
            empty + too_short
        );
        if args.near.is_some() {
            text += &format!("; {hashes} bands, {hashes_seen} seen");
        } else if args.ngrams.is_some() {
            text += &format!("; {hashes} sequences, {hashes_seen} seen");
        }
    }
    if !is_against {
        figures.extend([
            ("wrongly_removed_expected", Value::from(*mistaken)),
            ("rate_now", rate.into()),
            ("memory_bytes", memory.into()),
            ("fill", fill.into()),
            ("forgotten", filter.forgotten.into()),
            ("full", filter.is_closed.into()),
        ]);
        if !is_build {
            text += &format!("; {mistaken:.2} pieces expected to be wrongly {what}");
        }
        text += &format!("; a filter of {}, {:.0}% full", HumanBytes(memory as u64), 100.0 * fill);
        if filter.is_closed {
            text += ", which remembers nothing more";
        }
        if filter.forgotten > 0 {
            text += &format!(", which forgot {} hashes", filter.forgotten);
        }
    }
    figures.extend([
        ("text_bytes", Value::from(*text_bytes)),
        ("seconds", seconds.into()),
        ("mb_per_second", (mb / seconds).into()),
    ]);
    text += &format!("; {mb:.0} MB of text, {seconds:.2} s, {:.0} MB/s", mb / seconds);
    Summary { text, figures }
}
