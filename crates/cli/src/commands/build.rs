//! `lanebloom build`: makes a filter file of keys.

mod bank;

use super::merge::plain;
use crate::args::{Build, Format, Hasher};
use crate::bank::write;
use crate::filter_file::Content;
use crate::keys::{Chunk, Framer, KeySpec, Keyed};
use crate::resp::Dump;
use crate::table;
use anyhow::{Context, Result, ensure};
use indicatif::HumanBytes;
use lanebloom::hash::AnyHasher;
use lanebloom::{AnyFilter, FastHash, Hashed, Murmur3, ScalableBloom, StaticFilter};
use lanebloom_files::claims::{Claims, INPUT, OUTPUT};
use lanebloom_files::input::{Files, Input, KeptInput, Reader};
use lanebloom_files::output::Output;
use lanebloom_files::pipeline::{self, MOST_THREADS, Stage};
use lanebloom_files::progress::Progress;
use lanebloom_files::seen::{self, Seen};
use lanebloom_files::summary::{self, Summary};
use lanebloom_formats::{GuavaBloom, RedisBloom};
use rayon::ThreadPoolBuilder;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Instant;

/// The library's default, and RedisBloom's. A key that is wrongly present costs a lookup in most
/// uses of a filter file; `dedup`, where it costs a line, has a lower rate.
const RATE: f64 = 0.01;

/// The rate of the filter that counts the different keys.
const RATE_OF_COUNT: f64 = 1e-3;

pub(crate) fn run(args: &Build, quiet: bool) -> Result<()> {
    let start = Instant::now();
    let is_hasher = args.hasher != Hasher::Murmur3;
    let hashes = ": the other formats have hashes of their own";
    for (option, is_given, format, more) in [
        ("redis-key", args.redis_key.is_some(), Format::Redisbloom, ""),
        ("funnel", args.funnel.is_some(), Format::Guava, ""),
        ("hasher", is_hasher, Format::Lanebloom, hashes),
        ("static", args.is_static, Format::Lanebloom, ""),
        ("bank", args.bank, Format::Lanebloom, ""),
    ] {
        let name = format!("{format:?}").to_lowercase();
        ensure!(
            !is_given || args.format == format,
            "--{option} is for --format {name}{more}"
        );
    }
    let hasher = match args.hasher {
        Hasher::Murmur3 => Murmur3::default().into(),
        Hasher::Fast => FastHash::default().into(),
        Hasher::Prehashed => AnyHasher::Prehashed,
    };
    let Files {
        paths: files, skipped, ..
    } = Files::new(&args.input)?;
    let output = Output::new(&args.output)?;
    let mut claims = Claims::default();
    claims.inputs(INPUT, &args.input, &files);
    output.claim(&mut claims, OUTPUT)?;
    let keys = KeySpec::new(&args.keys)?;
    let mut job = BuildJob {
        args,
        files,
        keys: match args.format {
            Format::Lanebloom => keys.of_hasher(&hasher),
            Format::Guava => keys.of_guava(args.funnel, quiet),
            Format::Redisbloom => keys.of_redis(),
        },
        hasher,
        kept: None,
        quiet,
    };
    let rate = args.size.rate.unwrap_or(RATE);
    let summary = if args.bank {
        let (bank, names, summary) = job.bank(rate)?;
        output.write(|writer| write(&bank, &names, writer))?;
        summary
    } else {
        let (filter, summary) = job.filter(rate)?;
        output.write(|writer| filter.write_to(writer))?;
        summary
    };
    let summary = summary.with_seconds(start).with_skipped(skipped);
    summary.print(&args.summary, quiet);
    Ok(())
}

struct BuildJob<'a> {
    args: &'a Build,
    files: Vec<PathBuf>,
    keys: KeySpec,
    hasher: AnyHasher,
    /// The inputs, if they are read twice.
    kept: Option<Vec<KeptInput>>,
    quiet: bool,
}

impl BuildJob<'_> {
    /// The filter of all inputs.
    fn filter(&mut self, rate: f64) -> Result<(Content, Summary)> {
        let filter = match self.args.format {
            Format::Lanebloom if self.args.is_static => {
                // A rate that no filter has is an error before the input is read.
                self.static_filter(&[], rate)?;
                Target::Hashes(Vec::new())
            }
            Format::Lanebloom => Target::growing(
                self.args.size.expected,
                rate,
                self.hasher,
                self.all_threads() > MOST_THREADS,
            )?,
            Format::Guava => {
                let keys = self.count()?;
                let filter = GuavaBloom::with_capacity(keys, rate);
                Target::Guava(
                    filter
                        .with_context(|| format!("a Guava filter for {keys} keys"))?
                        .into(),
                )
            }
            Format::Redisbloom => {
                let keys = self.count()?;
                let filter = RedisBloom::with_capacity(keys, rate);
                Target::Redis(filter.with_context(|| format!("a RedisBloom filter for {keys} keys"))?)
            }
        };
        let filled = self.fill(filter)?;
        let (records, missing) = (filled.records, filled.missing);
        let (content, unique) = self.content(filled, rate)?;
        let (filters, memory, now) = content.measured();
        let rate = now.false_positive_rate;
        let summary = Summary {
            text: format!(
                "{records} lines, about {unique} unique{}, {} of {}, rate {}",
                table::without_key(missing),
                summary::count(filters, "filter"),
                HumanBytes(memory as u64),
                table::rate(rate),
            ),
            statistics: vec![
                ("lines", records.into()),
                ("unique_estimated", unique.into()),
                ("without_key", missing.into()),
                ("filters", filters.into()),
                ("memory_bytes", memory.into()),
                ("rate", rate.into()),
            ],
        };
        Ok((content, summary))
    }

    /// The number of different keys: the expected one, or as counted in a pass before.
    fn count(&mut self) -> Result<usize> {
        if let Some(expected) = self.args.size.expected {
            return Ok(expected);
        }
        self.keep_parts()?;
        let counted = self.fill(Target::growing(None, RATE_OF_COUNT, self.hasher, false)?)?;
        let (_, unique) = self.content(counted, RATE_OF_COUNT)?;
        Ok(unique.max(1))
    }

    /// Keeps the bytes of the inputs, to be read twice.
    fn keep_parts(&mut self) -> Result<()> {
        let progress = self.progress(&Input::all(&self.files));
        self.kept = Some(KeptInput::all(&self.files, &progress)?);
        Ok(())
    }

    fn reader(&self) -> Reader<Framer> {
        let inputs = match &self.kept {
            Some(kept) => kept.iter().cloned().map(Input::Kept).collect(),
            None => Input::all(&self.files),
        };
        let progress = self.progress(&inputs);
        Reader::new(inputs, Framer::new(self.keys.clone()), progress)
    }

    fn progress(&self, inputs: &VecDeque<Input>) -> Arc<Progress> {
        Arc::new(Progress::new(Input::total(inputs), !self.quiet))
    }

    fn all_threads(&self) -> usize {
        self.args.threads.threads.unwrap_or_else(pipeline::all_threads)
    }

    /// The number of threads if the stage inserts.
    fn threads(&self) -> usize {
        self.args.threads.threads.unwrap_or_else(pipeline::threads)
    }

    fn static_filter(&self, hashes: &[u64], rate: f64) -> Result<StaticFilter<AnyHasher>> {
        let builder = StaticFilter::builder().hasher(self.hasher).false_positive_rate(rate);
        let threads = ThreadPoolBuilder::new().num_threads(self.threads()).build()?;
        Ok(threads.install(|| builder.par_build_from_batch(Hashed::slice(hashes)))?)
    }

    /// The filter of what was filled, and the number of different keys, with those that were taken
    /// for present by mistake.
    fn content(&self, filled: Filling, rate: f64) -> Result<(Content, usize)> {
        const ENDED: &str = "the threads have ended";
        Ok(match filled.filter {
            Target::Growing(seen) => {
                let mistakes = seen.whole().mistakes.expected.round() as usize;
                let seen = Arc::into_inner(seen).expect(ENDED).seen.into_inner();
                let filter = seen.unwrap_or_else(PoisonError::into_inner).into_filter();
                (Content::Filter(plain(filter)), filled.changed + mistakes)
            }
            Target::Guava(filter) => {
                let filter = Arc::into_inner(filter).expect(ENDED);
                let unique = filter.statistics().len.min(filled.records);
                (Content::Guava(filter), unique)
            }
            Target::Redis(filter) => {
                let key = self.args.redis_key.clone().map(String::into_bytes);
                // The count of BF.CARD and BF.INFO.
                (Content::Redis(Dump { filter, key }), filled.changed)
            }
            Target::Hashes(hashes) => {
                let filter = self.static_filter(&hashes, rate);
                let filter = filter.with_context(|| format!("a static filter for {} keys", hashes.len()))?;
                let unique = filter.statistics().len;
                (Content::Filter(AnyFilter::Static(filter)), unique)
            }
        })
    }

    fn fill(&self, filter: Target) -> Result<Filling> {
        let reader = self.reader();
        let filling = Filling {
            keys: self.keys.clone(),
            filter,
            new: Vec::new(),
            records: 0,
            changed: 0,
            missing: 0,
        };
        let (keys, hasher) = (self.keys.clone(), self.hasher);
        match &filling.filter {
            Target::Guava(filter) => {
                let filter = Arc::clone(filter);
                let insert = move |chunk: &mut Chunk| {
                    keys.hash(chunk, &hasher);
                    filter.insert_batch(&keys.all_of(chunk));
                };
                pipeline::run(reader, insert, self.all_threads(), filling)
            }
            Target::Growing(filter) if filter.is_shared() => {
                let filter = Arc::clone(filter);
                let insert = move |chunk: &mut Chunk| {
                    keys.hash(chunk, &hasher);
                    chunk.records.inserted = filter.try_insert(&chunk.records.hashes);
                };
                pipeline::run(reader, insert, self.all_threads(), filling)
            }
            _ => {
                let hash = move |chunk: &mut Chunk| keys.hash(chunk, &hasher);
                pipeline::run(reader, hash, self.threads(), filling)
            }
        }
    }
}

/// The filter that is filled.
enum Target {
    /// Filled by the threads side by side, if these are many and the number of keys is expected.
    Growing(Arc<SharedSeen>),
    /// Filled by the threads side by side.
    Guava(Arc<GuavaBloom>),
    Redis(RedisBloom),
    /// The keys of a filter that does not change.
    Hashes(Vec<u64>),
}

/// A filter that many threads fill, as long as it need not grow. So the bits do not depend on their
/// order, and no thread fills a layer beyond its rate.
struct SharedSeen {
    seen: RwLock<Seen<AnyHasher>>,
    /// The number of hashes for which there is room, without those that threads insert now; 0 if
    /// only one thread at a time may insert.
    room: AtomicUsize,
    /// The number of new hashes that `seen` does not count yet.
    uncounted: AtomicUsize,
}

impl SharedSeen {
    fn new(filter: ScalableBloom<AnyHasher>, is_shared: bool) -> Self {
        let room = if is_shared { filter.expected_keys() } else { 0 };
        Self {
            seen: RwLock::new(Seen::of(filter)),
            room: room.into(),
            uncounted: 0.into(),
        }
    }

    fn is_shared(&self) -> bool {
        self.room.load(Ordering::Relaxed) > 0
    }

    /// Inserts hashes while other threads may do so too. Returns how many were new, or `None` if
    /// there may be no room for them.
    fn try_insert(&self, hashes: &[u64]) -> Option<usize> {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        // Relaxed, here and below: numbers that order nothing. The lock keeps them and the filter
        // together.
        let reserve = |room: usize| room.checked_sub(hashes.len());
        let reserved = self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, reserve);
        let new = reserved
            .ok()
            .and_then(|_| seen.filter().insert_batch(Hashed::slice(hashes)).ok())?;
        self.room.fetch_add(hashes.len() - new, Ordering::Relaxed);
        self.uncounted.fetch_add(new, Ordering::Relaxed);
        Some(new)
    }

    /// The filter alone, with all counts. From now on [`try_insert`](Self::try_insert) returns
    /// `None`.
    fn whole(&self) -> RwLockWriteGuard<'_, Seen<AnyHasher>> {
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        self.room.store(0, Ordering::Relaxed);
        seen.count(self.uncounted.swap(0, Ordering::Relaxed));
        seen
    }
}

impl Target {
    fn growing(expected: Option<usize>, rate: f64, hasher: AnyHasher, has_threads: bool) -> Result<Self> {
        let filter = seen::empty(expected, rate, hasher)?;
        // Few threads are faster with a stage that inserts, since it needs no atomics: 4 million
        // keys take 0.29 s of CPU time, instead of 0.38.
        let is_shared = expected.is_some() && has_threads;
        Ok(Self::Growing(SharedSeen::new(filter, is_shared).into()))
    }
}

struct Filling {
    keys: KeySpec,
    filter: Target,
    new: Vec<bool>,
    records: usize,
    /// The number of keys that changed the filter.
    changed: usize,
    /// The number of records without a key.
    missing: usize,
}

impl Stage<Keyed> for Filling {
    fn take(&mut self, chunk: &mut Chunk) -> Result<()> {
        let keyed = &chunk.records;
        keyed.check_hashes()?;
        let count = keyed.hashes.len();
        self.records += count + keyed.missing;
        self.missing += keyed.missing;
        self.changed += match &mut self.filter {
            Target::Growing(seen) => match keyed.inserted {
                Some(new) => new,
                None => {
                    self.new.resize(count, false);
                    seen.whole().insert(&keyed.hashes, &mut self.new, chunk.share)?;
                    self.new.iter().filter(|&&new| new).count()
                }
            },
            Target::Guava(_) => 0,
            Target::Redis(filter) => filter.insert_batch(&self.keys.all_of(chunk))?,
            Target::Hashes(hashes) => {
                hashes.extend_from_slice(&keyed.hashes);
                0
            }
        };
        Ok(())
    }
}
