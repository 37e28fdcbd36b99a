//! `lanebloom info`: rows of a fact and its value.

use crate::args::Info;
use crate::filter_file::{Content, FilterFile};
use crate::{stdout, table};
use anyhow::Result;
use indicatif::HumanBytes;
use lanebloom::bloom::Bloom;
use lanebloom::codec::{self, Identity, Kind, SnapshotHeader};
use lanebloom::hash::Murmur3;
use lanebloom::traits::Engine;
use lanebloom::{Figures, Filter};
use std::fmt::Write as _;
use std::io::Write;

pub(crate) fn run(args: &Info) -> Result<()> {
    for (number, path) in args.files.iter().enumerate() {
        let facts = Facts::of(&FilterFile::open(path)?);
        let gap = if number == 0 { "" } else { "\n" };
        stdout::open()?.write_all(format!("{gap}{}", facts.text()).as_bytes())?;
    }
    Ok(())
}

/// The rows of a file.
#[derive(Default)]
struct Facts {
    rows: Vec<(String, String)>,
    /// What the rows are about, if not all of the file.
    about: String,
}

impl Facts {
    fn of(file: &FilterFile) -> Self {
        let mut facts = Self::default();
        facts.add("file", &file.name);
        facts.add("kind", file.content.kind());
        facts.add("format", format(&file.content));
        facts.add("bytes", file.bytes);
        match &file.content {
            Content::Bloom(layers) => {
                facts.hasher(*layers[0].hasher());
                facts.add("layers", layers.len());
                facts.row(layers);
            }
            Content::Scalable(filter) => {
                facts.murmur3(filter);
                facts.add("most layers", filter.max_layers());
                facts.add("rate promised", table::rate(filter.max_false_positive_rate()));
                facts.add("layers", filter.layers().len());
                facts.estimated(filter);
                facts.layers("layer", filter.layers());
            }
            Content::Windowed(filter) => {
                facts.murmur3(filter);
                facts.add("generations", filter.generations());
                if let Some(window) = filter.window() {
                    facts.add("window", format_args!("{} s", window.as_secs_f64()));
                }
                facts.estimated(filter);
                let live = filter.live_generations();
                facts.layers("generation", live.iter().map(|generation| &**generation));
            }
            Content::Counting(filter) => {
                facts.murmur3(filter);
                facts.add("words per key", filter.words_per_key());
                facts.add("bits per word", filter.bits_per_word());
                facts.add("blocks", filter.blocks());
                facts.add("stuck counters", filter.stuck_counters());
                facts.estimated(filter);
            }
            Content::Tombstone(filter) => {
                facts.murmur3(filter);
                facts.add("removals expected", filter.expected_removals());
                facts.add("removals estimated", filter.estimated_removals());
                facts.add("missed now", table::rate(filter.current_false_negative_rate()));
                facts.estimated(filter);
            }
            Content::Cuckoo(filter) => {
                facts.murmur3(filter);
                facts.add("bits per fingerprint", filter.fingerprint_bits());
                facts.add("slots", filter.slots());
                facts.counted(filter);
            }
            Content::Compact(filter) => {
                facts.murmur3(filter);
                facts.add("slots", filter.slots());
                facts.counted(filter);
            }
            Content::DLeft(filter) => {
                facts.murmur3(filter);
                facts.add("slots", filter.slots());
                facts.counted(filter);
            }
            Content::Bitmap(bitmap) => {
                facts.add("bound", bitmap.bound());
                facts.add("numbers", bitmap.len());
                facts.add("memory", HumanBytes(bitmap.memory_bytes() as u64));
            }
            Content::Unreadable(other) => {
                facts.header(&other.header);
                facts.add("not readable", other.reason);
            }
            Content::Guava(filter) => {
                facts.add("hasher", "Murmur3 x64_128, seed 0");
                facts.add("strategy", format_args!("{:?}", filter.strategy()));
                facts.add("hash functions", filter.hash_functions());
                facts.add("bits", filter.bit_size());
                // The stream does not say for how many keys it is.
                facts.add("memory", HumanBytes(filter.memory_bytes() as u64));
                facts.now(filter.figures(), "keys estimated");
            }
            Content::Redis(dump) => {
                let (filter, info) = (&dump.filter, dump.filter.info());
                if let Some(key) = &dump.key {
                    facts.add("key in Redis", key.escape_ascii());
                }
                facts.add(
                    "expansion",
                    info.expansion.map_or("none".into(), |factor| factor.to_string()),
                );
                facts.add("items counted", info.items);
                facts.add("layers", info.filters);
                facts.add("keys expected", info.capacity);
                facts.add("memory", HumanBytes(filter.memory_bytes() as u64));
                facts.now(filter.figures(), "keys estimated");
                for (number, layer) in filter.layers().enumerate() {
                    facts.about = format!("layer {}: ", number + 1);
                    facts.add("bits", layer.bits);
                    facts.add("hash functions", layer.hash_functions);
                    facts.add("keys expected", layer.capacity);
                    facts.add("items counted", layer.items);
                    facts.add("rate planned", table::rate(layer.false_positive_rate));
                }
                facts.about.clear();
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

    fn add(&mut self, name: &str, value: impl ToString) {
        self.rows.push((format!("{}{name}", self.about), value.to_string()));
    }

    fn hasher(&mut self, hasher: Murmur3) {
        self.add("hasher", format_args!("Murmur3, seed {}", hasher.seed()));
    }

    fn murmur3<E: Engine>(&mut self, filter: &Filter<E>) {
        self.hasher(*filter.hasher());
    }

    /// All that is known of a filter that cannot be read.
    fn header(&mut self, header: &SnapshotHeader) {
        match header.hasher {
            Some(Identity::Murmur3 { seed, .. }) => self.hasher(Murmur3::with_seed(seed)),
            Some(hasher) => self.add(
                "hasher",
                format_args!("{hasher}, fingerprint {:016x}", header.fingerprint),
            ),
            None => {}
        }
        let mut keys = "keys expected";
        match header.content {
            codec::Content::Blocks {
                words_per_key,
                bits_per_word,
                lines_per_key,
                blocks,
                changed,
                ..
            } => {
                self.add("words per key", words_per_key);
                self.add("bits per word", bits_per_word);
                self.add("lines per key", lines_per_key);
                self.add("blocks", blocks);
                match changed {
                    Some(changed) => self.add("blocks with bits to add", changed),
                    None => self.add("memory", HumanBytes(blocks.saturating_mul(64))),
                }
            }
            codec::Content::Layers { layers, .. } => {
                self.add("layers", layers);
                keys = "keys of first layer";
            }
            codec::Content::Generations { generations, .. } => self.add("generations", generations),
            codec::Content::Buckets {
                fingerprint_bits,
                buckets,
                ..
            } => {
                self.add("bits per fingerprint", fingerprint_bits);
                self.add("buckets", buckets);
            }
            _ => {}
        }
        if let Some(expected) = header.expected_keys {
            self.add(keys, expected);
        }
        if let Some(rate) = header.false_positive_rate {
            self.add("rate planned", table::rate(rate));
        }
    }

    /// `ConcurrentBloom`s in a row, which are searched as one filter.
    fn row(&mut self, layers: &[Filter<Bloom>]) {
        if let [layer] = layers {
            self.shape(layer);
            return self.estimated(layer);
        }
        let figures: Vec<Figures> = layers.iter().map(Filter::figures).collect();
        let expected: usize = layers.iter().map(Filter::expected_keys).sum();
        let memory: usize = layers.iter().map(Filter::memory_bytes).sum();
        let fill: f64 = figures
            .iter()
            .zip(layers)
            .map(|(now, layer)| now.fill_ratio * layer.memory_bytes() as f64)
            .sum();
        self.add("keys expected", expected);
        self.add("keys estimated", figures.iter().map(|now| now.len).sum::<usize>());
        self.add("memory", HumanBytes(memory as u64));
        self.add("fill", fill_text(fill / memory as f64));
        self.add(
            "rate planned",
            table::rate(any(layers.iter().map(Filter::false_positive_rate))),
        );
        self.add(
            "rate now",
            table::rate(any(figures.iter().map(|now| now.false_positive_rate))),
        );
        self.layers("layer", layers.iter());
    }

    fn layers<'a, S: 'a>(&mut self, name: &str, layers: impl Iterator<Item = &'a Filter<Bloom, S>>) {
        for (number, layer) in layers.enumerate() {
            self.about = format!("{name} {}: ", number + 1);
            self.shape(layer);
            self.estimated(layer);
        }
        self.about.clear();
    }

    fn shape<S>(&mut self, filter: &Filter<Bloom, S>) {
        self.add("words per key", filter.words_per_key());
        self.add("bits per word", filter.bits_per_word());
        self.add("lines per key", filter.lines_per_key());
        self.add("blocks", filter.blocks());
    }

    fn estimated<E: Engine, S>(&mut self, filter: &Filter<E, S>) {
        self.sized(filter, "keys estimated");
    }

    /// The figures of a filter that knows its number of keys.
    fn counted<E: Engine, S>(&mut self, filter: &Filter<E, S>) {
        self.sized(filter, "keys");
    }

    fn sized<E: Engine, S>(&mut self, filter: &Filter<E, S>, keys: &str) {
        self.add("keys expected", filter.expected_keys());
        self.add("memory", HumanBytes(filter.memory_bytes() as u64));
        self.add("rate planned", table::rate(filter.false_positive_rate()));
        self.now(filter.figures(), keys);
    }

    fn now(&mut self, now: Figures, keys: &str) {
        self.add(keys, now.len);
        self.add("fill", fill_text(now.fill_ratio));
        self.add("rate now", table::rate(now.false_positive_rate));
    }

    /// The names, and the values in one column.
    fn text(&self) -> String {
        let width = self.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for (name, value) in &self.rows {
            writeln!(text, "{name:width$}  {value}").expect("a string takes everything");
        }
        text
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

fn fill_text(ratio: f64) -> String {
    format!("{:.2}%", 100.0 * ratio)
}

/// The rate at which any of several filters is wrong.
pub(crate) fn any(rates: impl Iterator<Item = f64>) -> f64 {
    // Not 1 - (1 - a)(1 - b), which loses low rates.
    rates.fold(0.0, |sum, rate| sum + rate - sum * rate)
}
