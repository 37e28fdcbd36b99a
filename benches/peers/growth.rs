//! Filters that grow.

use crate::contestants::{BATCH, Calls, Ours, Peer, count};
use crate::features::{Library, features};
use crate::{Args, Group, STRANGERS, warm};
use growable_bloom_filter::{GrowableBloom, GrowableBloomBuilder};
use lanebloom::{ConcurrentBloom, Hashed, ScalableBloom};
use lanebloom_benches::{number, timed};
use std::fmt::Write as _;
use std::sync::RwLock;

/// Expansion and tightening ratio: RedisBloom's, the defaults, and their neighbours.
const SETTINGS: [(usize, f64); 5] = [(2, 0.5), (2, 0.8), DEFAULT, (4, 0.8), (6, 0.8)];
const DEFAULT: (usize, f64) = (3, 0.8);

fn scalable(planned: usize, rate: f64, (expansion, ratio): (usize, f64)) -> ScalableBloom {
    let builder = ScalableBloom::builder()
        .expected_keys(planned)
        .false_positive_rate(rate);
    builder.expansion(expansion).tightening_ratio(ratio).build().unwrap()
}

/// Our filter that grows.
struct Growing {
    filter: ScalableBloom,
    setting: (usize, f64),
    batch: bool,
}

impl Peer for Growing {
    fn name(&self) -> String {
        let layers = self.filter.layers().len();
        format!(
            "ScalableBloom {:?}{}, {layers} layers",
            self.setting,
            if self.batch { ", batch" } else { "" }
        )
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Lanebloom)
    }
    fn insert(&self, keys: &[u64]) -> Option<usize> {
        Some(if self.batch {
            let batch = |keys: &[u64]| self.filter.insert_batch(keys).expect("the filter has no limit");
            keys.chunks(BATCH).map(batch).sum()
        } else {
            count(keys, |key| self.filter.insert(&key).expect("the filter has no limit"))
        })
    }
    fn contains(&self, keys: &[u64]) -> usize {
        if !self.batch {
            return count(keys, |key| self.filter.contains(&key));
        }
        let mut found = [false; BATCH];
        let batch = |keys: &[u64]| {
            let found = &mut found[..keys.len()];
            self.filter.contains_batch(keys, &mut *found);
            found.iter().filter(|&&found| found).count()
        };
        keys.chunks(BATCH).map(batch).sum()
    }
    fn clear(&mut self) {
        self.filter.clear();
    }
    fn bytes(&self) -> usize {
        self.filter.memory_bytes()
    }
}

/// A growing filter behind a lock, taken for every key. (RedisBloom's lock is the one thread of
/// Redis.)
struct LockedGrowing(RwLock<GrowableBloom>);

impl Peer for LockedGrowing {
    fn name(&self) -> String {
        "RwLock<growable-bloom>".into()
    }
    fn library(&self) -> Option<Library> {
        Some(Library::GrowableBloom)
    }
    fn insert(&self, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| self.0.write().unwrap().insert(key)))
    }
    fn contains(&self, keys: &[u64]) -> usize {
        let filter = &self.0;
        count(keys, |key| filter.read().unwrap().contains(key))
    }
    fn clear(&mut self) {
        self.0.get_mut().unwrap().clear();
    }
    /// It does not report its size.
    fn bytes(&self) -> usize {
        0
    }
}

/// Filters that grow to ten, a hundred and a thousand times the planned keys, and their memory at
/// every moment.
pub(crate) fn growing(args: &Args) -> String {
    let planned = if args.bench.test { 20 } else { 10_000 };
    let tables = [10, 100, 1000].map(|times| grown(args, planned, times * planned));
    tables.concat() + &memory(args, planned)
}

/// Memory while a filter grows to a thousand times the planned keys, over all moments from the
/// planned keys on.
fn memory(args: &Args, planned: usize) -> String {
    let n = 1000 * planned;
    let fixed = ConcurrentBloom::with_capacity(n, args.rate).unwrap();
    let fixed = fixed.memory_bytes() as f64 / n as f64;
    let mut table = format!(
        "\n## Memory while a filter grows from {planned} planned keys to {n} at {}\n\n\
         Memory divided by that of a fixed filter for the keys of the moment; the mean is over all sizes, each tenfold alike.\n\n\
         | expansion, ratio | layers at the end | mean | bits per key at the end | memory, mean | most | after which layer |\n\
         |---|--:|--:|--:|--:|--:|--:|\n",
        args.rate
    );
    for setting in SETTINGS {
        let filter = scalable(planned, args.rate, setting);
        let (mut keys, mut weights, mut sums) = (0, 0.0, [0.0; 2]);
        let mut most = (0.0, 0);
        while keys < n {
            // Steps of a thousandth, that no moment is missed.
            let step = (keys / 1000).max(1).min(n - keys);
            let all: Vec<u64> = (keys..keys + step).map(|i| number(i as u64)).collect();
            filter
                .insert_batch(Hashed::slice(&all))
                .expect("the filter has no limit");
            keys += step;
            if keys < planned {
                continue;
            }
            let layers = filter.layers().len();
            let ratio = filter.memory_bytes() as f64 / (keys as f64 * fixed);
            let weight = step as f64 / keys as f64;
            weights += weight;
            sums = [sums[0] + weight * layers as f64, sums[1] + weight * ratio];
            if layers > 1 && ratio > most.0 {
                most = (ratio, layers);
            }
        }
        let [layers, ratio] = sums.map(|sum| sum / weights);
        let end = filter.layers().len();
        let bits = filter.memory_bytes() as f64 * 8.0 / n as f64;
        let (most, after) = most;
        writeln!(
            table,
            "| {setting:?} | {end} | {layers:.1} | {bits:.1} | {ratio:.1} | {most:.1} | {after} |"
        )
        .unwrap();
    }
    table
}

/// Filters planned for `planned` keys that hold `n`, beside filters planned for all of them.
fn grown(args: &Args, planned: usize, n: usize) -> String {
    let isa = args.level();
    let scalable = |setting, batch| {
        let filter = scalable(planned, args.rate, setting).with_isa(isa);
        Box::new(Growing { filter, setting, batch })
    };
    let fixed = |batch| {
        let builder = ConcurrentBloom::builder()
            .expected_keys(n)
            .false_positive_rate(args.rate);
        let filter = builder.build().unwrap().with_isa(isa);
        Box::new(Ours {
            filter,
            hashed: false,
            isa,
            calls: if batch { Calls::Batch } else { Calls::Single },
        })
    };
    let peer = GrowableBloomBuilder::new()
        .estimated_insertions(planned)
        .desired_error_ratio(args.rate);
    let mut group = Group {
        peers: vec![
            fixed(false),
            scalable(SETTINGS[0], false),
            scalable(DEFAULT, false),
            fixed(true),
            scalable(SETTINGS[0], true),
            scalable(DEFAULT, true),
            Box::new(LockedGrowing(RwLock::new(peer.build()))),
        ],
        reference: 0,
    };
    let fresh: Vec<u64> = (0..n as u64).map(number).collect();
    let half = n.min(args.keys / 2);
    let present: Vec<u64> = (0..half)
        .map(|i| fresh[(number(i as u64) % n as u64) as usize])
        .collect();
    let strangers: Vec<u64> = (0..half as u64).map(|i| number(STRANGERS + i)).collect();
    let rounds = args.rounds.min(3);

    let mut columns = Vec::new();
    for threads in [1, 2] {
        let column = group.rounds(rounds, |peer| {
            peer.clear();
            let (time, new) = timed(threads, &fresh, |keys| peer.insert(keys));
            let new = new.expect("all tell");
            // growable-bloom-filter is above its rate: 96% of 20 thousand were new.
            assert!(new * 100 > n * 90, "{}: only {new} of {n} were new", peer.name());
            Some(time)
        });
        columns.push((format!("insert, {threads}T"), column));
    }
    let rates: Vec<f64> = group
        .peers
        .iter()
        .map(|peer| peer.contains(&strangers) as f64 / half as f64)
        .collect();
    for (kind, keys, least, most) in [("hits", &present, half, half), ("misses", &strangers, 0, half / 4)] {
        for threads in [1, 2] {
            let column = group.rounds(rounds, |peer| {
                warm(peer, keys);
                let (time, found) = timed(threads, keys, |keys| peer.contains(keys));
                assert!((least..=most).contains(&found), "{}: {found} {kind}", peer.name());
                Some(time)
            });
            columns.push((format!("{kind}, {threads}T"), column));
        }
    }

    let mut table = format!(
        "\n## Growth: planned for {planned} keys at {}, filled with {n}\n\n",
        args.rate
    );
    table += "ns per key (times faster than the fixed filter, call by call, in the same rounds)\n\n";
    table += &features(args, group.peers.iter().filter_map(|peer| peer.library()));
    write!(table, "| {:56} | {:>7} | {:>8}", "", "rate", "bits/key").unwrap();
    columns
        .iter()
        .for_each(|(name, _)| write!(table, " | {name:>15}").unwrap());
    write!(table, " |\n|---|--:|--:{} |\n", "|--:".repeat(columns.len())).unwrap();
    for (i, peer) in group.peers.iter().enumerate() {
        let bits_per_key = match peer.bytes() {
            0 => "-".into(),
            bytes => format!("{:.1}", bytes as f64 * 8.0 / n as f64),
        };
        let name = match peer.name() {
            name if name.starts_with("lanebloom") => name.replace("lanebloom", "ConcurrentBloom of the right size"),
            name => name,
        };
        write!(table, "| {name:56} | {:6.3}% | {bits_per_key:>8}", rates[i] * 100.0).unwrap();
        for (_, column) in &columns {
            let (time, ratio) = column[i].expect("all can do it");
            write!(table, " | {:>15}", format!("{time:.1} ({ratio:.2}x)")).unwrap();
        }
        table += " |\n";
    }
    table
}
