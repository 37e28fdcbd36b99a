//! `lanebloom info`: rows of a fact and its value, or an object of JSON for each file.

use crate::args::Info;
use crate::bank::BankFile;
use crate::filter_file::{Content, FilterFile};
use crate::table;
use anyhow::Result;
use indicatif::HumanBytes;
use lanebloom::codec::{self, Kind, SnapshotHeader};
use lanebloom::hash::{AnyHasher, BuiltinHasher};
use lanebloom::{AnyFilter, ConcurrentBloom, Membership, Statistics};
use lanebloom_files::stdout;
use lanebloom_files::summary::object;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;

const ESTIMATED: &str = "keys estimated";

/// The most names of columns that a row shows.
const MOST_NAMES: usize = 5;

pub(crate) fn run(args: &Info) -> Result<()> {
    for (number, path) in args.files.iter().enumerate() {
        let facts = Facts::of(&FilterFile::open(path)?);
        let gap = if number == 0 || args.json { "" } else { "\n" };
        let text = if args.json { facts.json() } else { facts.text() };
        stdout::open()?.write_all(format!("{gap}{text}").as_bytes())?;
    }
    Ok(())
}

/// The rows of a file.
#[derive(Default)]
struct Facts {
    rows: Vec<Row>,
    /// The name of the file's parts, such as layers.
    part_name: &'static str,
    /// The part that the next rows are about, counted from 1; 0 for the file.
    part: usize,
}

struct Row {
    part: usize,
    name: &'static str,
    /// The value for people and for programs.
    text: String,
    value: Value,
}

impl Facts {
    fn of(file: &FilterFile) -> Self {
        let mut facts = Self::default();
        facts.add("file", file.name.as_str());
        facts.add("kind", file.content.kind());
        facts.add("format", format(&file.content));
        facts.add("bytes", file.bytes);
        match &file.content {
            Content::Filter(filter) => facts.filter(filter),
            Content::Unreadable(other) => {
                let header = &other.header;
                if let Some(hasher) = header.hasher {
                    facts.add("hasher", format!("{hasher}, fingerprint {:016x}", header.fingerprint));
                }
                facts.header(header);
                facts.add("not readable", other.reason);
            }
            Content::Bank(file) => facts.bank(file),
            Content::Bitmap(bitmap) => {
                facts.add("bound", bitmap.bound());
                facts.add("numbers", bitmap.len());
                facts.memory(bitmap.memory_bytes() as u64);
            }
            Content::Guava(filter) => {
                facts.add("hasher", "Murmur3 x64_128, seed 0");
                facts.add("strategy", format!("{:?}", filter.strategy()));
                facts.add("hash functions", filter.hash_functions());
                facts.add("bits", filter.bit_size());
                // The stream does not say for how many keys it is.
                facts.memory(filter.memory_bytes() as u64);
                let now = filter.statistics();
                facts.now(now, ESTIMATED);
                facts.overfull(now.is_overfull);
            }
            Content::Redis(dump) => {
                let (filter, info) = (&dump.filter, dump.filter.info());
                if let Some(key) = &dump.key {
                    facts.add("key in Redis", key.escape_ascii().to_string());
                }
                let expansion = info.expansion.map_or("none".into(), |factor| factor.to_string());
                facts.show("expansion", expansion, info.expansion);
                facts.add("items counted", info.items);
                facts.add("layers", info.filters);
                facts.add("keys expected", info.capacity);
                facts.memory(filter.memory_bytes() as u64);
                facts.now(filter.statistics(), ESTIMATED);
                for (number, layer) in filter.layers().enumerate() {
                    (facts.part_name, facts.part) = ("layer", number + 1);
                    facts.add("bits", layer.bits);
                    facts.add("hash functions", layer.hash_functions);
                    facts.add("keys expected", layer.capacity);
                    facts.add("items counted", layer.items);
                    facts.rate("rate planned", layer.false_positive_rate);
                }
                facts.part = 0;
            }
        }
        // A wrong one is an error before this.
        let checksum = match &file.content {
            Content::Guava(_) | Content::Redis(_) => "the format has none",
            _ => "correct",
        };
        facts.add("checksum", checksum);
        facts
    }

    /// Adds a text or a number.
    fn add(&mut self, name: &'static str, value: impl Into<Value>) {
        let value = value.into();
        let text = value.as_str().map_or_else(|| value.to_string(), String::from);
        self.show(name, text, value);
    }

    /// Adds a value that has a text of its own for people.
    fn show(&mut self, name: &'static str, text: String, value: impl Into<Value>) {
        self.rows.push(Row {
            part: self.part,
            name,
            text,
            value: value.into(),
        });
    }

    fn rate(&mut self, name: &'static str, rate: f64) {
        self.show(name, table::rate(rate), rate);
    }

    fn memory(&mut self, bytes: u64) {
        self.show("memory", HumanBytes(bytes).to_string(), bytes);
    }

    fn fill(&mut self, ratio: f64) {
        self.show("fill", format!("{:.2}%", 100.0 * ratio), ratio);
    }

    fn hasher(&mut self, hasher: &AnyHasher) {
        let text = match hasher {
            AnyHasher::Builtin(BuiltinHasher::Murmur3(hasher)) => format!("Murmur3, seed {}", hasher.seed()),
            AnyHasher::Builtin(BuiltinHasher::FastHash(hasher)) => format!("FastHash, seed {}", hasher.seed()),
            AnyHasher::Unknown {
                identity, fingerprint, ..
            } => format!("{identity}, fingerprint {fingerprint:016x}"),
            _ => hasher.to_string(),
        };
        self.add("hasher", text);
    }

    fn filter(&mut self, filter: &AnyFilter) {
        self.hasher(filter.hasher());
        match filter {
            AnyFilter::Bloom(filter) => {
                self.shape(filter);
                self.sized(filter, ESTIMATED);
            }
            AnyFilter::Scalable(filter) => {
                self.add("most layers", filter.max_layers());
                self.rate("rate promised", filter.max_false_positive_rate());
                self.add("layers", filter.layers().len());
                self.sized(filter, ESTIMATED);
                self.layers("layer", filter.layers());
            }
            AnyFilter::Windowed(filter) => {
                self.add("generations", filter.generations());
                if let Some(window) = filter.window() {
                    let seconds = window.as_secs_f64();
                    self.show("window", format!("{seconds} s"), seconds);
                }
                self.sized(filter, ESTIMATED);
                let live = filter.live_generations();
                self.layers("generation", live.iter().map(|generation| &**generation));
            }
            AnyFilter::Counting(filter) => {
                let layout = filter.layout();
                self.add("words per key", layout.words_per_key);
                self.add("bits per line", layout.bits_per_line);
                self.add("blocks", layout.blocks);
                self.add("stuck counters", filter.stuck_counters());
                self.sized(filter, ESTIMATED);
            }
            AnyFilter::Tombstone(filter) => {
                self.add("removals expected", filter.expected_removals());
                let removals = filter.removals();
                self.add("removals estimated", removals.len);
                self.rate("missed now", removals.false_positive_rate);
                self.sized(filter, ESTIMATED);
            }
            AnyFilter::Cuckoo(filter) => {
                self.add("bits per fingerprint", filter.fingerprint_bits());
                self.add("slots", filter.slots());
                self.sized(filter, "keys");
            }
            AnyFilter::DLeft(filter) => {
                self.add("slots", filter.slots());
                self.sized(filter, "keys");
            }
            AnyFilter::Static(filter) => {
                self.add("bits per fingerprint", filter.fingerprint_bits());
                self.add("cells per key", filter.cells_per_key());
                self.add("retries", filter.retries());
                self.now(filter.statistics(), "keys");
                self.memory(filter.memory_bytes() as u64);
            }
            // A type that this command does not know.
            _ => self.now(filter.statistics(), ESTIMATED),
        }
    }

    /// Without the number of keys in each column: to count them takes a pass for every column.
    fn bank(&mut self, file: &BankFile) {
        let BankFile { header, bank, names } = file;
        self.hasher(bank.hasher());
        self.header(header);
        let in_use = bank.len();
        let wrong = in_use as f64 * bank.false_positive_rate();
        self.add("columns in use", in_use);
        self.show("wrong columns per key when full", table::mean(wrong), wrong);
        let shown = names.0.iter().take(MOST_NAMES).map(|name| table::name(name));
        let more = names.0.len().saturating_sub(MOST_NAMES);
        let more = (more > 0).then(|| format!("and {more} more"));
        let text = Vec::from_iter(shown.chain(more.map(Into::into)));
        self.show("names", text.join(", "), names.0.clone());
    }

    /// Adds the facts of a header, of a bank or of an unreadable file, except the hasher.
    fn header(&mut self, header: &SnapshotHeader) {
        let (mut keys, mut rate) = ("keys expected", "rate planned");
        match header.content {
            codec::Content::Blocks {
                words_per_key,
                bits_per_line,
                lines_per_key,
                blocks,
                columns,
                changed,
                ..
            } => {
                if let Some(columns) = columns {
                    self.add("columns", columns);
                }
                self.add("words per key", words_per_key);
                self.add("bits per line", bits_per_line);
                self.add("lines per key", lines_per_key);
                match columns {
                    Some(columns) => {
                        self.add("blocks per column", blocks);
                        self.memory(blocks.saturating_mul(64 * columns as u64));
                        (keys, rate) = ("keys per column", "rate per column");
                    }
                    None => {
                        self.add("blocks", blocks);
                        if let Some(changed) = changed {
                            self.add("blocks with bits to add", changed);
                        }
                    }
                }
            }
            codec::Content::Generations { generations, .. } => self.add("generations", generations),
            _ => {}
        }
        if let Some(expected) = header.expected_keys {
            self.add(keys, expected);
        }
        if let Some(planned) = header.false_positive_rate {
            self.rate(rate, planned);
        }
    }

    fn layers<'a, S: 'a>(&mut self, name: &'static str, layers: impl Iterator<Item = &'a ConcurrentBloom<S>>) {
        for (number, layer) in layers.enumerate() {
            (self.part_name, self.part) = (name, number + 1);
            self.shape(layer);
            self.sized(layer, ESTIMATED);
        }
        self.part = 0;
    }

    fn shape<S>(&mut self, filter: &ConcurrentBloom<S>) {
        let layout = filter.layout();
        self.add("words per key", layout.words_per_key);
        self.add("bits per line", layout.bits_per_line);
        self.add("lines per key", layout.lines_per_key);
        self.add("blocks", layout.blocks);
    }

    /// `keys` says how the number of keys is known.
    fn sized(&mut self, filter: &impl Membership, keys: &'static str) {
        let now = filter.statistics();
        self.add("keys expected", filter.expected_keys());
        self.memory(filter.memory_bytes() as u64);
        self.rate("rate planned", filter.false_positive_rate());
        self.now(now, keys);
        self.overfull(now.is_overfull);
    }

    fn now(&mut self, now: Statistics, keys: &'static str) {
        self.add(keys, now.len);
        self.fill(now.fill_ratio);
        self.rate("rate now", now.false_positive_rate);
    }

    /// The verdict about the rate now.
    fn overfull(&mut self, is: bool) {
        self.show("overfull", if is { "yes" } else { "no" }.into(), is);
    }

    /// The names, and the values in one column.
    fn text(&self) -> String {
        let name = |row: &Row| match row.part {
            0 => row.name.to_owned(),
            part => format!("{} {part}: {}", self.part_name, row.name),
        };
        let width = self.rows.iter().map(|row| name(row).len()).max().unwrap_or(0);
        let mut text = String::new();
        for row in &self.rows {
            writeln!(text, "{:width$}  {}", name(row), row.text).expect("a string takes everything");
        }
        text
    }

    /// One object in a line. The parts are objects in an array.
    fn json(&self) -> String {
        let members = |part: usize| {
            let rows = self.rows.iter().filter(move |row| row.part == part);
            rows.map(|row| match row.name {
                "memory" => ("memory_bytes".to_owned(), row.value.to_string()),
                name => (name.replace(' ', "_"), row.value.to_string()),
            })
        };
        let parts = self.rows.iter().map(|row| row.part).max().unwrap_or(0);
        let each: Vec<String> = (1..=parts).map(|part| object(members(part))).collect();
        let each = (parts > 0).then(|| (format!("each_{}", self.part_name), format!("[{}]", each.join(","))));
        object(members(0).chain(each)) + "\n"
    }
}

fn format(content: &Content) -> &'static str {
    match content {
        Content::Guava(_) => "stream of Guava's BloomFilter.writeTo",
        Content::Redis(_) => "chunks of RedisBloom in RESP",
        Content::Unreadable(other) if other.header.kind == Kind::Delta => "delta of lanebloom, version 1",
        _ => "snapshot of lanebloom, version 1",
    }
}
