//! `lanebloom build --bank`: makes a filter of each input, side by side in one file.

use super::{BuildJob, RATE_OF_COUNT};
use crate::args::Hasher;
use crate::bank;
use crate::filter_file::{Content, FilterFile};
use crate::keys::{Chunk, Keyed};
use crate::table;
use anyhow::{Context, Result, bail};
use indicatif::HumanBytes;
use lanebloom::bank::FilterBank;
use lanebloom::codec::SnapshotHeader;
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, ConcurrentBloom, Hashed};
use lanebloom_files::input::{self, is_stdin};
use lanebloom_files::note;
use lanebloom_files::pipeline::{self, Stage};
use lanebloom_files::seen;
use lanebloom_files::summary::{Summary, count};
use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

/// Filters that are in memory before they become columns: those of a word of a row.
const GROUP: usize = 64;

/// Bytes of a bank that are announced before it is made.
const LARGE: usize = 64 << 20;

impl BuildJob<'_> {
    /// The bank of all inputs, and the names of its columns. For a key that no input has, it finds
    /// an input at this rate.
    pub(super) fn bank(&mut self, rate: f64) -> Result<(FilterBank<AnyHasher>, Vec<String>, Summary)> {
        if self.files.is_empty() {
            bail!("a bank has a filter for each input file, and the list names none");
        }
        // Hard links to a file and repeated names are one file.
        let (mut found, before) = (HashSet::new(), self.files.len());
        let mut is_new = |path: &Path| match input::identity(path) {
            Ok(Some(id)) => found.insert(id),
            // It is an error when it is opened.
            _ => true,
        };
        self.files.retain(|path| is_new(path));
        let repeated = before - self.files.len();
        let names = self.files.iter().map(|path| input::name(path)).collect();
        let (bank, mut summary, wrong) = if self.are_filters()? {
            self.of_filters()?
        } else {
            self.of_keys(rate)?
        };
        if repeated > 0 {
            summary.text += &format!(", {} of the same files left out", count(repeated, "other name"));
        }
        let memory = bank.memory_bytes();
        summary.text += &format!(
            ", {}, {} wrong columns per key",
            HumanBytes(memory as u64),
            table::mean(wrong)
        );
        summary.statistics.extend([
            ("filters", bank.len().into()),
            ("names_left_out", repeated.into()),
            ("memory_bytes", memory.into()),
            ("wrong_columns_per_key", wrong.into()),
        ]);
        Ok((bank, names, summary))
    }

    /// Whether the inputs are filter files. Fails if only some are.
    fn are_filters(&self) -> Result<bool> {
        let first = is_filter(&self.files[0])?;
        for path in &self.files {
            if is_filter(path)? != first {
                let (filter, keys) = if first {
                    (&self.files[0], path)
                } else {
                    (path, &self.files[0])
                };
                bail!(
                    "{} is a filter file and {} is not: a bank is made of lists of keys, or of filter files",
                    filter.display(),
                    keys.display()
                );
            }
        }
        Ok(first)
    }

    /// The bank, what the summary says of it first, and how many columns are wrong for a key, on
    /// average.
    fn of_filters(&self) -> Result<(FilterBank<AnyHasher>, Summary, f64)> {
        let args = self.args;
        if args.size.expected.is_some() || args.size.rate.is_some() || args.hasher != Hasher::Murmur3 {
            let name = self.files[0].display();
            bail!("--expected, --rate and --hasher are for keys, and {name} is a filter, which has its own");
        }
        let mut filters = Vec::new();
        for path in &self.files {
            let FilterFile { name, content, .. } = FilterFile::open(path)?;
            match content {
                Content::Filter(AnyFilter::Bloom(filter)) => filters.push(filter),
                Content::Bank(_) => bail!("{name}: {}", bank::INSTEAD),
                other => bail!(
                    "{name}: it is a {}, and the columns of a bank are ConcurrentBlooms: `build` makes one if \
                     --expected is at least the number of keys",
                    other.kind()
                ),
            }
        }
        let bank = FilterBank::from_filters(&filters).or_else(|error| {
            // The error names the first filter that does not fit the smallest one.
            let smallest = filters.iter().min_by_key(|filter| filter.layout().blocks);
            let fits = |filter| FilterBank::from_filters(&[smallest.unwrap_or(filter), filter]).is_ok();
            let other = filters.iter().position(|filter| !fits(filter)).unwrap_or(0);
            Err(error).with_context(|| {
                let name = self.files[other].display();
                format!("{name}: build all filters with the same --expected, --rate and --hasher")
            })
        })?;
        let summary = Summary {
            text: count(filters.len(), "filter"),
            statistics: Vec::new(),
        };
        let mut rate = 0.0;
        for filter in &mut filters {
            let factor = filter.layout().blocks / bank.blocks();
            filter.exclusive().fold(factor)?;
            rate += filter.statistics().false_positive_rate;
        }
        Ok((bank, summary, rate))
    }

    /// The same.
    fn of_keys(&mut self, rate: f64) -> Result<(FilterBank<AnyHasher>, Summary, f64)> {
        let files = self.files.len();
        let keys = match self.args.size.expected {
            Some(keys) => keys,
            None => {
                self.keep_parts()?;
                let most = self.count_largest()?;
                // The filter takes new keys for old ones at this rate.
                most + (most as f64 * RATE_OF_COUNT).ceil() as usize
            }
        };
        let builder = ConcurrentBloom::builder().expected_keys(keys);
        let builder = builder.false_positive_rate(rate / files as f64).hasher(self.hasher);
        let failed = || {
            let rate = table::rate(rate);
            format!("a bank of {files} filters for {keys} keys each at a rate of {rate} for all")
        };
        let empty = builder.clone().build().with_context(failed)?;
        self.announce(&empty, keys);
        let bank = FilterBank::new(files, &builder).with_context(failed)?;
        let mut columns = self.in_order(Columns {
            bank,
            empty,
            filters: Vec::new(),
            pushed: 0,
            lines: 0,
            unique: 0,
            missing: 0,
            rate: 0.0,
            overfull: 0,
        })?;
        // An input without a key has a column too.
        columns.filter_of(files - 1)?;
        columns.push()?;
        let Columns {
            bank,
            lines,
            unique,
            missing,
            rate,
            overfull,
            ..
        } = columns;
        let mut text = format!(
            "{lines} lines of {}, about {unique} unique within their file{}",
            count(files, "file"),
            table::without_key(missing)
        );
        if overfull > 0 {
            let files = count(overfull, "file");
            let (expected, hashes) = (self.args.size.expected, self.hasher == AnyHasher::Prehashed);
            text += &match (expected, hashes) {
                (Some(keys), false) => format!(", {files} with more keys than the {keys} of --expected"),
                (Some(keys), true) => {
                    format!(
                        ", {files} with more keys than the {keys} of --expected, or with hashes that are not random"
                    )
                }
                (None, true) => format!(", {files} above the planned rate: the hashes are not random"),
                (None, false) => format!(", {files} above the planned rate"),
            };
        }
        let statistics = vec![
            ("lines", lines.into()),
            ("unique_estimated", unique.into()),
            ("without_key", missing.into()),
            ("overfull", overfull.into()),
        ];
        Ok((bank, Summary { text, statistics }, rate))
    }

    /// The number of different keys in the input that has the most; 1 if none has a key.
    fn count_largest(&self) -> Result<usize> {
        let hasher = self.hasher;
        let empty = move || seen::empty(None, RATE_OF_COUNT, hasher);
        // The input that is read now, and its keys.
        let (mut input, mut seen, mut new) = (0, empty()?, 0);
        let count = move |most: &mut usize, chunk: &mut Chunk| {
            chunk.records.check_hashes()?;
            if chunk.input != input {
                (input, seen, new) = (chunk.input, empty()?, 0);
            }
            new += seen.insert_batch(Hashed::slice(&chunk.records.hashes))?;
            *most = new.max(*most);
            Ok(())
        };
        Ok(self.in_order((1, count))?.0)
    }

    /// Says how large the bank will be if that is much: one large file makes the filters of all
    /// others large.
    fn announce(&self, filter: &ConcurrentBloom<AnyHasher>, keys: usize) {
        let (files, filter) = (self.files.len(), filter.memory_bytes());
        // A row has whole words.
        let bank = files.next_multiple_of(64).saturating_mul(filter);
        if bank < LARGE || self.quiet {
            return;
        }
        let whole = bank.saturating_add(files.min(GROUP).saturating_mul(filter));
        let of = match self.args.size.expected {
            Some(_) => "--expected",
            None => "the largest file",
        };
        note(&format!(
            "lanebloom: each of the {} has room for the {keys} keys of {of}: the bank takes {}, and up to {} of memory \
             until it is written; a bank for files of each size takes less",
            count(files, "filter"),
            table::bytes(bank as u64),
            table::bytes(whole as u64),
        ));
    }

    /// Gives the chunks of each input in order to a stage.
    fn in_order<S: Stage<Keyed>>(&self, stage: S) -> Result<S> {
        let (keys, hasher) = (self.keys.clone(), self.hasher);
        let hash = move |chunk: &mut Chunk| keys.hash(chunk, &hasher);
        pipeline::run(self.reader().apart(true), hash, self.threads(), stage)
    }
}

/// Whether a file is a snapshot of lanebloom.
fn is_filter(path: &Path) -> Result<bool> {
    // A pipe is read once.
    if is_stdin(path) || !path.is_file() {
        return Ok(false);
    }
    let failed = || format!("cannot read {}", path.display());
    let mut head = Vec::new();
    let most = SnapshotHeader::MAGIC.len() as u64;
    let file = input::open(path).with_context(failed)?;
    file.take(most).read_to_end(&mut head).with_context(failed)?;
    Ok(head == SnapshotHeader::MAGIC)
}

/// Fills a filter of each input.
struct Columns {
    bank: FilterBank<AnyHasher>,
    /// Cloned, since to plan a filter takes as long as to fill it.
    empty: ConcurrentBloom<AnyHasher>,
    /// The filters of the inputs after those that were pushed.
    filters: Vec<ConcurrentBloom<AnyHasher>>,
    pushed: usize,
    lines: usize,
    unique: usize,
    /// The number of records without a key.
    missing: usize,
    /// The sum of the filters' rates.
    rate: f64,
    /// The number of filters with more keys than expected.
    overfull: usize,
}

impl Columns {
    /// The filter of the input with this number. All before it are filled.
    fn filter_of(&mut self, input: usize) -> Result<&mut ConcurrentBloom<AnyHasher>> {
        while self.pushed + self.filters.len() <= input {
            if self.filters.len() == GROUP {
                self.push()?;
            }
            self.filters.push(self.empty.try_clone()?);
        }
        Ok(self.filters.last_mut().expect("an input's filter stays until its end"))
    }

    fn push(&mut self) -> Result<()> {
        for filter in &self.filters {
            self.rate += filter.statistics().false_positive_rate;
            self.overfull += usize::from(filter.statistics().is_overfull);
        }
        self.bank.push_all(&self.filters)?;
        self.pushed += self.filters.len();
        self.filters.clear();
        Ok(())
    }
}

impl Stage<Keyed> for Columns {
    fn take(&mut self, chunk: &mut Chunk) -> Result<()> {
        let keyed = &chunk.records;
        keyed.check_hashes()?;
        self.lines += keyed.hashes.len() + keyed.missing;
        self.missing += keyed.missing;
        let new = self
            .filter_of(chunk.input)?
            .exclusive()
            .insert_batch(Hashed::slice(&keyed.hashes));
        self.unique += new;
        Ok(())
    }
}
