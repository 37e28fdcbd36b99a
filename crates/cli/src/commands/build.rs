//! `lanebloom build`: makes a filter file of keys.

mod bank;

use crate::args::{Build, Format, Hasher};
use crate::filter_file::write_scalable;
use crate::keys::{Chunk, Framer, Hash, KeySpec, Keyed};
use crate::{resp, table};
use anyhow::{Context, Result, bail};
use indicatif::HumanBytes;
use lanebloom::hash::AnyHasher;
use lanebloom::{FastHash, Murmur3, ScalableBloom, StaticFilter};
use lanebloom_files::claims::{Claims, INPUT, OUTPUT};
use lanebloom_files::input::{Files, Input, Part, Reader};
use lanebloom_files::output::Output;
use lanebloom_files::pipeline::{self, MOST_THREADS, Stage, Work};
use lanebloom_files::progress::Progress;
use lanebloom_files::seen::{self, Seen};
use lanebloom_files::summary::{self, Summary};
use lanebloom_formats::{GuavaBloom, RedisBloom};
use rayon::ThreadPoolBuilder;
use std::collections::VecDeque;
use std::io::{self, Write};
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
    if args.redis_key.is_some() && args.format != Format::Redisbloom {
        bail!("--redis-key is for --format redisbloom");
    }
    if args.funnel.is_some() && args.format != Format::Guava {
        bail!("--funnel is for --format guava");
    }
    if args.hasher != Hasher::Murmur3 && args.format != Format::Lanebloom {
        bail!("--hasher is for --format lanebloom: the other formats have hashes of their own");
    }
    for (name, is_given) in [("--static", args.is_static), ("--bank", args.bank)] {
        if is_given && args.format != Format::Lanebloom {
            bail!("{name} is for --format lanebloom");
        }
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
        parts: None,
        quiet,
    };
    let rate = args.size.rate.unwrap_or(RATE);
    if args.bank {
        let (made, summary) = job.bank(rate)?;
        output.write(|writer| made.write_to(writer))?;
        summary.with_skipped(skipped).print(&args.summary, quiet);
        return Ok(());
    }
    let filter = match args.format {
        Format::Lanebloom if args.is_static => {
            // A rate that no filter has is an error before the input is read.
            job.static_filter(&[], rate)?;
            Target::Hashes(Vec::new())
        }
        Format::Lanebloom => Target::growing(args.size.expected, rate, hasher, job.all_threads() > MOST_THREADS)?,
        Format::Guava => {
            let keys = job.count()?;
            let filter = GuavaBloom::with_capacity(keys, rate);
            Target::Guava(
                filter
                    .with_context(|| format!("a Guava filter for {keys} keys"))?
                    .into(),
            )
        }
        Format::Redisbloom => {
            let keys = job.count()?;
            let filter = RedisBloom::with_capacity(keys, rate);
            Target::Redis(filter.with_context(|| format!("a RedisBloom filter for {keys} keys"))?)
        }
    };
    let mut filled = job.fill(filter)?;
    if let Target::Hashes(hashes) = &filled.filter {
        let filter = job.static_filter(hashes, rate);
        filled.filter = Target::Static(filter.with_context(|| format!("a static filter for {} keys", hashes.len()))?);
    }
    let key = args.redis_key.as_deref().unwrap_or("");
    output.write(|writer| filled.filter.write_to(key.as_bytes(), writer))?;
    filled.summary(start).with_skipped(skipped).print(&args.summary, quiet);
    Ok(())
}

struct BuildJob<'a> {
    args: &'a Build,
    files: Vec<PathBuf>,
    keys: KeySpec,
    hasher: AnyHasher,
    /// The inputs, if they are read twice.
    parts: Option<Vec<Part>>,
    quiet: bool,
}

impl BuildJob<'_> {
    /// The number of different keys: the expected one, or as counted in a pass before.
    fn count(&mut self) -> Result<usize> {
        if let Some(expected) = self.args.size.expected {
            return Ok(expected);
        }
        self.keep_parts()?;
        let counted = self.fill(Target::growing(None, RATE_OF_COUNT, self.hasher, false)?)?;
        Ok(counted.unique().max(1))
    }

    /// Keeps the bytes of the inputs, to be read twice.
    fn keep_parts(&mut self) -> Result<()> {
        let progress = self.progress(&Input::all(&self.files));
        self.parts = Some(Part::all(&self.files, &progress)?);
        Ok(())
    }

    fn reader(&self) -> Reader<Framer> {
        let inputs = match &self.parts {
            Some(parts) => parts.iter().cloned().map(Input::Part).collect(),
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
        Ok(threads.install(|| builder.par_build_from_hashes(hashes))?)
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
        let hash = Hash { keys, hasher };
        match &filling.filter {
            Target::Guava(filter) => {
                let filter = Arc::clone(filter);
                pipeline::run(reader, Insert { hash, filter }, self.all_threads(), filling)
            }
            Target::Growing(filter) if filter.is_shared() => {
                let filter = Arc::clone(filter);
                pipeline::run(reader, Insert { hash, filter }, self.all_threads(), filling)
            }
            _ => pipeline::run(reader, hash, self.threads(), filling),
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
    Static(StaticFilter<AnyHasher>),
}

/// Inserts keys into a filter that many threads may fill.
struct Insert<F> {
    hash: Hash,
    filter: Arc<F>,
}

impl Work<Keyed> for Insert<SharedSeen> {
    fn work(&self, chunk: &mut Chunk) {
        self.hash.work(chunk);
        chunk.records.inserted = self.filter.try_insert(&chunk.records.hashes);
    }
}

impl Work<Keyed> for Insert<GuavaBloom> {
    fn work(&self, chunk: &mut Chunk) {
        self.hash.work(chunk);
        let key = |number| self.hash.keys.key(chunk.bytes(), &chunk.records, number).0;
        self.filter
            .insert_batch(&Vec::from_iter((0..chunk.records.hashes.len()).map(key)));
    }
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
        let new = reserved.ok().and_then(|_| seen.filter().insert_hashes(hashes).ok())?;
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

    fn write_to(&self, key: &[u8], mut writer: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Growing(seen) => write_scalable(seen.whole().filter(), writer),
            Self::Guava(filter) => filter.write_to(writer),
            Self::Redis(filter) => resp::write(filter, key, &mut writer),
            Self::Static(filter) => filter.write_to(writer),
            Self::Hashes(_) => unreachable!("a filter was built of them"),
        }
    }
}

struct Filling {
    keys: KeySpec,
    filter: Target,
    new: Vec<bool>,
    records: u64,
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
        let keys = || {
            (0..count)
                .map(|number| self.keys.key(chunk.bytes(), keyed, number).0)
                .collect::<Vec<_>>()
        };
        self.records += (count + keyed.missing) as u64;
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
            Target::Redis(filter) => filter.insert_batch(&keys())?,
            Target::Hashes(hashes) => {
                hashes.extend_from_slice(&keyed.hashes);
                0
            }
            Target::Static(_) => unreachable!("it is built of all keys"),
        };
        Ok(())
    }
}

impl Filling {
    /// The number of different keys, with those that were taken for present by mistake.
    fn unique(&self) -> usize {
        match &self.filter {
            Target::Growing(seen) => self.changed + seen.whole().mistakes.expected.round() as usize,
            Target::Guava(filter) => filter.estimated_len().min(self.records as usize),
            // As BF.CARD and BF.INFO count.
            Target::Redis(_) => self.changed,
            Target::Hashes(hashes) => hashes.len(),
            Target::Static(filter) => filter.estimated_len(),
        }
    }

    fn summary(&self, start: Instant) -> Summary {
        let (filters, memory, rate) = match &self.filter {
            Target::Growing(seen) => {
                let seen = seen.whole();
                let filter = seen.filter();
                let rate = filter.current_false_positive_rate();
                (filter.layers().len(), filter.memory_bytes(), rate)
            }
            Target::Guava(filter) => (1, filter.memory_bytes(), filter.current_false_positive_rate()),
            Target::Redis(filter) => {
                let memory = filter.memory_bytes();
                (filter.info().filters, memory, filter.current_false_positive_rate())
            }
            Target::Static(filter) => (1, filter.memory_bytes(), filter.current_false_positive_rate()),
            Target::Hashes(_) => unreachable!("a filter was built of them"),
        };
        let unique = self.unique();
        let missing = table::without_key(self.missing);
        let seconds = start.elapsed().as_secs_f64();
        let text = format!(
            "{} lines, about {unique} unique{missing}, {} of {}, rate {}, {seconds:.2} s",
            self.records,
            summary::count(filters, "filter"),
            HumanBytes(memory as u64),
            table::rate(rate),
        );
        Summary {
            text,
            statistics: vec![
                ("lines", self.records.into()),
                ("unique_estimated", unique.into()),
                ("without_key", self.missing.into()),
                ("filters", filters.into()),
                ("memory_bytes", memory.into()),
                ("rate", rate.into()),
                ("seconds", seconds.into()),
            ],
        }
    }
}
