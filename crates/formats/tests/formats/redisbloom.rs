//! `RedisBloom` without a server: values that the real module made, a plain model of the module,
//! and invalid dumps. `redisbloom_module.rs` asks the module itself.

use crate::contract::guava::java::assert_rates_are_checked;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lanebloom_formats::internal::{murmur2, murmur64a};
use lanebloom_formats::{ReadError, RedisBloom, RedisBloomInsertError};
use lanebloom_tests::{PLACES, answers_agree, lengths_are_checked, number};
use serde_json::{Value, json};
use std::error::Error;

const MIB: usize = 1 << 20;

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/redisbloom.json")).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn keys(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|i| i.to_string()).collect()
}

/// The header, and the bits of all layers of the chain.
fn dump(filter: &RedisBloom) -> (Vec<u8>, Vec<u8>) {
    let mut chunks = filter.to_loadchunks().map(|(_, chunk)| chunk);
    let header = chunks.next().unwrap();
    (header, chunks.collect::<Vec<_>>().concat())
}

#[test]
fn chains_are_the_modules_to_the_byte() {
    let golden = golden();
    let cases = golden["cases"].as_array().unwrap();
    for (case, (rate, capacity, inserted)) in cases.iter().zip([(0.01, 10, 100), (0.001, 100, 4000)]) {
        let mut filter = RedisBloom::with_capacity(capacity, rate).unwrap();
        let keys = keys(0..inserted);
        let new = keys.iter().filter(|key| filter.insert(*key).unwrap()).count();
        assert_eq!(new as u64, case["size"].as_u64().unwrap());
        assert_eq!(filter.info().items, new as u64);
        assert!(keys.iter().all(|key| filter.contains(key)));
        let (header, bits) = dump(&filter);
        // (The SHA-256 beside it is what the module's own bits were checked by.)
        let murmur3 = murmur3::murmur3_x64_128(&mut &bits[..], 0).unwrap();
        assert_eq!(json!(format!("{murmur3:032x}")), case["all_links_murmur3_x64_128"]);
        if let Some(expected) = case["header_hex"].as_str() {
            assert_eq!(hex(&header), expected);
        } else {
            let bytes: Vec<_> = filter.layers().map(|layer| layer.bits / 8).collect();
            assert_eq!(json!(bytes), case["bytes"]);
            let functions: Vec<_> = filter.layers().map(|layer| layer.hash_functions).collect();
            assert_eq!(json!(functions), case["k"]);
            assert_eq!(json!(filter.layers().last().unwrap().items), case["last_size"]);
        }
    }
    assert_eq!(cases.len(), 2);
}

/// The module's algorithm, written plainly: a bit at a time, with divisions, and the platform's
/// logarithm.
#[derive(Clone)]
struct Model {
    options: u32,
    expansion: u32,
    layers: Vec<ModelLayer>,
}

#[derive(Clone)]
struct ModelLayer {
    bits: Vec<u8>,
    n2: u8,
    functions: u64,
    rate: f64,
    bpe: f64,
    entries: u64,
    size: u64,
}

#[expect(clippy::approx_constant, reason = "RedisBloom's digits")]
const LN_2: f64 = 0.693147180559945;
const LN_2_SQUARED: f64 = 0.480453013918201;

impl ModelLayer {
    fn new(entries: u64, rate: f64, options: u32) -> Self {
        let bpe = -(rate.ln() / LN_2_SQUARED);
        let (mut n2, mut room) = (0, entries);
        let bits = if options & 1 != 0 {
            ((entries as f64 * bpe) as u64).max(1)
        } else {
            n2 = (entries as f64 * bpe).log2().floor() as u8 + 1;
            room += (((1u64 << n2) as f64 - entries as f64 * bpe) as u64 as f64 / bpe) as u64;
            1 << n2
        };
        Self {
            bits: vec![0; bits.div_ceil(64) as usize * 8],
            n2,
            functions: (LN_2 * bpe).ceil() as u64,
            rate,
            bpe,
            entries: room,
            size: 0,
        }
    }

    fn places(&self, (a, b): (u64, u64)) -> Vec<u64> {
        let modulo = if self.n2 > 0 {
            1 << self.n2
        } else {
            8 * self.bits.len() as u64
        };
        let place = |i: u64| a.wrapping_add(i.wrapping_mul(b)) % modulo;
        (0..self.functions).map(place).collect()
    }

    fn holds(&self, hash: (u64, u64)) -> bool {
        self.places(hash)
            .iter()
            .all(|x| self.bits[(x >> 3) as usize] >> (x % 8) & 1 == 1)
    }
}

impl Model {
    fn new(rate: f64, capacity: u64, options: u32, expansion: u32) -> Self {
        let rate = if options & 8 != 0 { rate } else { rate / 2.0 };
        let layers = vec![ModelLayer::new(capacity, rate, options)];
        Self {
            options,
            expansion,
            layers,
        }
    }

    fn hash(&self, key: &[u8]) -> (u64, u64) {
        if self.options & 4 != 0 {
            let a = murmur64a(key, 0xc6a4a7935bd1e995);
            (a, murmur64a(key, a))
        } else {
            let a = murmur2(key, 0x9747b28c);
            (a.into(), murmur2(key, a).into())
        }
    }

    fn contains(&self, key: &[u8]) -> bool {
        self.layers.iter().any(|layer| layer.holds(self.hash(key)))
    }

    /// 1, 0, or -2 where the filter is full.
    fn insert(&mut self, key: &[u8]) -> i32 {
        let hash = self.hash(key);
        if self.contains(key) {
            return 0;
        }
        let last = self.layers.last().unwrap();
        if last.size >= last.entries {
            if self.options & 8 != 0 {
                return -2;
            }
            let next = ModelLayer::new(last.entries * u64::from(self.expansion), last.rate * 0.5, self.options);
            self.layers.push(next);
        }
        let last = self.layers.last_mut().unwrap();
        for place in last.places(hash) {
            last.bits[(place >> 3) as usize] |= 1 << (place % 8);
        }
        last.size += 1;
        1
    }

    fn header(&self) -> Vec<u8> {
        let mut bytes = self.items().to_le_bytes().to_vec();
        for number in [self.layers.len() as u32, self.options, self.expansion] {
            bytes.extend(number.to_le_bytes());
        }
        for layer in &self.layers {
            bytes.extend((layer.bits.len() as u64).to_le_bytes());
            bytes.extend((8 * layer.bits.len() as u64).to_le_bytes());
            bytes.extend(layer.size.to_le_bytes());
            bytes.extend(layer.rate.to_le_bytes());
            bytes.extend(layer.bpe.to_le_bytes());
            bytes.extend((layer.functions as u32).to_le_bytes());
            bytes.extend(layer.entries.to_le_bytes());
            bytes.push(layer.n2);
        }
        bytes
    }

    /// The replies of `BF.SCANDUMP`, in chunks of at most `most` bytes, with the reply that says
    /// the end.
    fn scandump(&self, most: usize) -> Vec<(i64, Vec<u8>)> {
        let mut replies = vec![(1, self.header())];
        let mut cursor = 1;
        for chunk in self.layers.iter().flat_map(|layer| layer.bits.chunks(most)) {
            cursor += chunk.len() as i64;
            replies.push((cursor, chunk.to_vec()));
        }
        replies.push((0, Vec::new()));
        replies
    }

    fn memory(&self) -> usize {
        let each = self.layers.iter().map(|layer| memory(layer.bits.len() as u64));
        each.sum::<u64>() as usize
    }

    fn items(&self) -> u64 {
        self.layers.iter().map(|layer| layer.size).sum()
    }

    fn bits(&self) -> Vec<u8> {
        self.layers
            .iter()
            .flat_map(|layer| layer.bits.iter().copied())
            .collect()
    }

    fn loaded(&self) -> RedisBloom {
        RedisBloom::from_scandump(self.scandump(1 << 24), usize::MAX).unwrap()
    }
}

/// Keys of all lengths from 0 on, some of them more than once.
fn key(i: u64) -> Vec<u8> {
    let i = number(i) % 3000;
    (0..i % 41).map(|j| (number(i) >> (j % 57)) as u8 ^ j as u8).collect()
}

/// The rates have the nearest logarithm on every platform, as the first test of
/// `redisbloom_module.rs` has it of the module's.
#[test]
fn a_chain_grows_and_answers_as_the_module_does() {
    for (rate, capacity, expansion) in [
        (0.01, 10, 2),
        (0.05, 60, 1),
        (0.3, 7, 3),
        (1e-6, 50, 2),
        (0.001, 100, 10),
        (0.02, 2000, 2),
    ] {
        for options in [5, 13] {
            let mut model = Model::new(rate, capacity, options, if options == 13 { 2 } else { expansion });
            let builder = RedisBloom::builder().expected_keys(capacity as usize);
            let mut builder = builder.false_positive_rate(rate).expansion(expansion);
            if options == 13 {
                builder = builder.non_scaling();
            }
            let mut filter = builder.build().unwrap();
            beside_the_model(&mut filter, &mut model);
        }
    }
}

/// The filters of older versions, which newer ones continue: sizes rounded up, and 32-bit hashes.
#[test]
fn older_chains_go_on_as_in_the_module() {
    for options in [0, 1, 4, 5, 8, 12] {
        for (rate, capacity) in [(0.01, 10), (0.3, 1), (0.001, 1000)] {
            let mut model = Model::new(rate, capacity, options, 2);
            let mut filter = model.loaded();
            beside_the_model(&mut filter, &mut model);
            beside_the_model(&mut model.loaded(), &mut model.clone());
        }
    }
}

fn beside_the_model(filter: &mut RedisBloom, model: &mut Model) {
    let mut full = 0;
    for i in 0..1200 {
        let key = key(i);
        assert_eq!(filter.contains(&key), model.contains(&key));
        match (filter.insert(&key), model.insert(&key)) {
            (Ok(inserted), answer) => assert_eq!(i32::from(inserted), answer),
            (Err(error), answer) => {
                assert_eq!(answer, -2, "{error}");
                assert!(error.is_full() && !filter.contains(&key));
                full += 1;
            }
        }
    }
    let scaling = model.options & 8 == 0;
    assert!(full == 0 || !scaling);
    for i in 1_000_000..1_001_500u64 {
        let key = i.to_le_bytes();
        assert_eq!(filter.contains(&key), model.contains(&key), "{i}");
    }
    let (header, bits) = dump(filter);
    assert_eq!(hex(&header), hex(&model.header()));
    assert!(bits == model.bits());
    let (info, layers) = (filter.info(), model.layers.len());
    let capacity = model.layers.iter().map(|layer| layer.entries).sum::<u64>();
    assert_eq!((info.capacity, info.items), (capacity, model.items()));
    let expansion = scaling.then_some(model.expansion);
    assert_eq!((info.filters, info.expansion), (layers, expansion));
    assert_eq!(info.size, 32 + 64 * layers as u64 + bits.len() as u64);
    assert_eq!(filter.statistics().len as u64, info.items);
    assert_eq!(filter.memory_bytes(), model.memory());
    let ones = |bits: &[u8]| bits.iter().map(|byte| byte.count_ones()).sum::<u32>() as f64;
    let used = |layer: &ModelLayer| {
        if layer.n2 > 0 {
            (1u64 << layer.n2) as f64
        } else {
            8.0 * layer.bits.len() as f64
        }
    };
    let all: f64 = model.layers.iter().map(used).sum();
    assert!((filter.statistics().fill_ratio / (ones(&bits) / all) - 1.0).abs() < 1e-12);
    let miss = |layer: &ModelLayer| 1.0 - (ones(&layer.bits) / used(layer)).powi(layer.functions as i32);
    let rate = 1.0 - model.layers.iter().map(miss).product::<f64>();
    assert!((filter.statistics().false_positive_rate - rate).abs() < 1e-12);
}

/// Chains with filters within and beyond the caches, with few bits a key and with more than are
/// asked for ahead; about half of the bits are set, so that of keys that nobody inserted some are
/// found in each filter.
fn large_chains() -> impl Iterator<Item = RedisBloom> {
    let chains: [&[(u64, f64)]; 5] = [
        &[(1000, 0.3)],
        &[(7 << 20, 0.3)],
        &[(1000, 0.95), (12 << 20, 0.45), (1000, 0.22), (23 << 20, 0.11)],
        &[(2 << 20, 0.01), (1 << 17, 1e-5)],
        &[(18_000, 1e-200), (100, 1e-300)],
    ];
    chains.into_iter().map(|chain| {
        let layers = chain.iter().map(|(capacity, rate)| {
            let mut layer = ModelLayer::new(*capacity, *rate, 5);
            // All of them where a key has very many, so that some are found.
            let all = if layer.functions > 100 { u64::MAX } else { 0 };
            for (i, word) in layer.bits.chunks_mut(8).enumerate() {
                word.copy_from_slice(&(number(i as u64) | all).to_le_bytes());
            }
            layer
        });
        let model = Model {
            options: 5,
            expansion: 2,
            layers: layers.collect(),
        };
        // Beyond the caches is beyond 2 MiB.
        assert!(chain.len() == 1 && chain[0].0 == 1000 || model.layers.iter().any(|layer| layer.bits.len() > 2 * MIB));
        model.loaded()
    })
}

#[test]
fn batches_of_any_length_equal_single_calls() {
    for filter in large_chains() {
        let keys = keys(0..2200);
        let single: Vec<bool> = keys.iter().map(|key| filter.contains(key)).collect();
        let found = single.iter().filter(|found| **found).count();
        assert!(found > 0, "{filter:?}");
        let edges = [32, 64, 128, 1024, 2048]
            .into_iter()
            .flat_map(|edge| edge - 1..=edge + 1);
        for len in (0..4).chain(edges) {
            for from in [0, 57] {
                let asked = &keys[from..from + len];
                let expected = &single[from..from + len];
                answers_agree(expected, len % 8, |_, out| filter.contains_batch(asked, out));
            }
        }
    }
}

/// Windows that begin in one filter and end in another, duplicates, and keys that earlier ones of
/// their batch make false positives.
#[test]
fn batches_insert_as_single_calls_do() {
    let small = RedisBloom::builder().expected_keys(3).false_positive_rate(0.5);
    let large = RedisBloom::builder().expected_keys(1_800_000);
    for builder in [small.clone(), small.expansion(1), large] {
        let mut single = builder.clone().build().unwrap();
        let keys: Vec<Vec<u8>> = (0..2200).map(key).collect();
        let expected: Vec<bool> = keys.iter().map(|key| single.insert(key).unwrap()).collect();
        let new = expected.iter().filter(|new| **new).count();
        for len in [1, 63, 64, 65, 200, 1025, 2200] {
            let mut batch = builder.clone().build().unwrap();
            let sum: usize = keys.chunks(len).map(|keys| batch.insert_batch(keys).unwrap()).sum();
            assert!(sum == new && batch == single);
            let mut all = builder.clone().build().unwrap();
            assert!(all.insert_all(&keys) == Ok(new) && all == single);
            let mut each = [(); PLACES].map(|()| builder.clone().build().unwrap());
            for (keys, expected) in keys.chunks(len).zip(expected.chunks(len)) {
                let sums = answers_agree(expected, len % 8, |place, out| each[place].insert_batch_into(keys, out));
                let sum = expected.iter().filter(|new| **new).count();
                assert!(sums.iter().all(|told| *told == Ok(sum)));
            }
            assert!(each.iter().all(|filter| *filter == single));
        }
    }
}

#[test]
fn a_full_filter_refuses_new_keys_and_says_which() {
    for capacity in [10, 70, 200] {
        let builder = RedisBloom::builder().expected_keys(capacity);
        let mut filter = builder.non_scaling().build().unwrap();
        let keys = keys(0..capacity as u64);
        let (first, rest) = keys.split_at(3);
        assert_eq!(filter.insert_batch(first).unwrap(), 3);
        // False positives are not counted, so that there may be room for some more.
        let mut more: Vec<String> = Vec::new();
        let mut i = capacity as u64;
        let mut model = filter.clone();
        assert_eq!(model.insert_batch(rest).unwrap() + 3, model.statistics().len);
        while model.statistics().len < capacity {
            model.insert(&i.to_string()).unwrap();
            more.push(i.to_string());
            i += 1;
        }
        let absent = (i..).map(|i| i.to_string()).find(|key| !model.contains(key)).unwrap();
        let mut batch = [rest, &more].concat();
        let position = batch.len() + 1;
        batch.extend([first[0].clone(), absent.clone(), first[1].clone()]);
        // More windows than one after the refused key.
        batch.extend(keys.iter().cycle().take(130).cloned());
        let mut one = filter.clone();
        let mut told: Vec<bool> = batch[..position].iter().map(|key| one.insert(key).unwrap()).collect();
        told.resize(batch.len(), false);
        let mut each = [(); PLACES].map(|()| filter.clone());
        let errors = answers_agree(&told, 3, |place, out| {
            each[place].insert_batch_into(&batch, out).unwrap_err()
        });
        for error in errors.into_iter().chain([filter.insert_batch(&batch).unwrap_err()]) {
            assert!(error.is_full() && error.inserted() == position && error.source().is_none());
            let expected = format!(
                "key {position} was not inserted: the filter does not scale, and has as many keys as its capacity of {capacity}"
            );
            assert_eq!(error.to_string(), expected);
        }
        assert!(filter == model && each.iter().all(|filter| *filter == model));
        // Its keys are still found.
        assert_eq!(filter.insert(&first[0]), Ok(false));
        assert!(filter.insert(&absent).unwrap_err().is_full() && filter == model);
    }
}

fn growth_error(mut model: Model) -> RedisBloomInsertError {
    for layer in &mut model.layers {
        layer.size = layer.entries;
    }
    let mut filter = model.loaded();
    let error = filter.insert("a").unwrap_err();
    assert!(!error.is_full() && error.inserted() == 0 && !filter.contains("a"));
    assert!(error.source().is_some());
    assert!(filter == model.loaded());
    error
}

#[test]
fn a_chain_that_cannot_grow_says_why() {
    // Rates halve until there is no lesser one.
    let mut model = Model::new(0.5, 1, 5, 2);
    model.layers = vec![ModelLayer::new(1, f64::from_bits(1), 5)];
    assert_eq!(
        growth_error(model).to_string(),
        "key 0 was not inserted: the filter could not grow: false-positive rate 0 is not between 0 and 1, both excluded"
    );
    // 2^20 keys times 2^32, which takes 2^50 bytes.
    let mut model = Model::new(0.1, 1 << 20, 5, u32::MAX);
    model.layers[0] = ModelLayer::new(1 << 20, 0.9, 5);
    let message = growth_error(model).to_string();
    let expected = "key 0 was not inserted: the filter could not grow: the allocation of ";
    assert!(message.starts_with(expected), "{message}");
    // And more than there are addresses.
    let mut model = Model::new(0.1, 1, 5, u32::MAX);
    model.layers[0] = ModelLayer::new(1 << 30, 1.0 - 1e-9, 5);
    let message = growth_error(model).to_string();
    let expected =
        "key 0 was not inserted: the filter could not grow: a filter for 4611686017353646080 keys at a rate of 4.99";
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn what_cannot_be_built_is_an_error() {
    let error = |builder: lanebloom_formats::redisbloom::Builder| builder.build().unwrap_err().to_string();
    let builder = RedisBloom::builder;
    assert_rates_are_checked(|rate| error(builder().false_positive_rate(rate)));
    assert_eq!(
        error(builder().expected_keys(0)),
        "a capacity of 0 keys is not at least 1"
    );
    assert_eq!(error(builder().expansion(0)), "an expansion of 0 is not at least 1");
    // The last of the two counts.
    assert!(builder().expansion(0).non_scaling().build().is_ok());
    assert_eq!(
        builder().non_scaling().expansion(3).build().unwrap().info().expansion,
        Some(3)
    );
    let message = error(builder().expected_keys(usize::MAX));
    assert!(message.contains("needs more than the addressable memory"), "{message}");
    let message = error(builder().expected_keys(usize::MAX >> 6));
    assert!(message.starts_with("the allocation of "), "{message}");
    // Half of the least rate is none.
    assert!(builder().false_positive_rate(f64::from_bits(1)).build().is_err());
    let least = builder().false_positive_rate(f64::from_bits(2)).expected_keys(1);
    let layer = least.build().unwrap().layers().next().unwrap();
    assert_eq!((layer.false_positive_rate, layer.hash_functions), (4.9e-324, 1075));
}

#[test]
fn chunks_have_16_mib_at_most_and_bits_of_one_filter() {
    let mut model = Model::new(0.01, 10, 5, 2);
    let mut rate = 0.01;
    let layer = |bytes: usize| {
        rate *= 0.5;
        let mut layer = ModelLayer::new((8 * bytes) as u64 / 16, rate, 5);
        assert!(layer.bits.len() <= bytes);
        layer.bits.resize(bytes, 0);
        layer.bits[0] = 1;
        layer.bits[bytes - 1] = 0x80;
        layer
    };
    model.layers = [16 * MIB, 8, 16 * MIB + 8, 33 * MIB].map(layer).into();
    let filter = model.loaded();
    let chunks: Vec<_> = filter.to_loadchunks().collect();
    let lengths: Vec<_> = chunks.iter().map(|(_, chunk)| chunk.len()).collect();
    assert_eq!(lengths, [232, 16 * MIB, 8, 16 * MIB, 8, 16 * MIB, 16 * MIB, MIB]);
    let mut replies = model.scandump(16 * MIB);
    assert_eq!(replies.pop(), Some((0, Vec::new())));
    assert!(chunks == replies);
}

/// A chain of three filters, and its replies.
fn replies() -> (Model, Vec<(i64, Vec<u8>)>) {
    let mut model = Model::new(0.01, 10, 5, 2);
    for key in keys(0..60) {
        model.insert(key.as_bytes());
    }
    assert_eq!(model.layers.len(), 3);
    let replies = model.scandump(64);
    (model, replies)
}

fn load(replies: &[(i64, Vec<u8>)], limit: usize) -> Result<RedisBloom, ReadError> {
    RedisBloom::from_scandump(replies.iter().map(|(cursor, chunk)| (*cursor, chunk)), limit)
}

#[track_caller]
fn assert_error(replies: &[(i64, Vec<u8>)], message: &str) {
    let error = load(replies, MIB).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(error.source().is_none() && !error.is_truncated());
}

#[test]
fn a_header_of_another_length_is_an_error() {
    let header = replies().0.header();
    for end in 0..header.len() {
        let needed = if end < 20 { 20 } else { header.len() };
        let message = format!("the header has {end} bytes, not {needed}");
        assert_error(&[(1, header[..end].to_vec())], &message);
    }
}

/// Dumps that fakeredis 2.41.0 made (pyprobables 0.7.0): 3 keys of at most 10 at 0.1, and 40 keys
/// in filters of 4 at 0.001.
#[test]
fn a_dump_of_fakeredis_is_called_one() {
    let small = "AwAAAAAAAADAAQIGGEABAAAAAAAAAAoAAAAAAAAAAwAAAAAAAADNzMw9";
    let grown = "BAAAAAAAAAAuFp9K5TLZAQQAAAAAAAAAVC6HxyLRrQIEAAAAAAAAANf7+WjxaDQCBAAAAAAAAACHx+PlMkw2AgQAAAAAAAAA\
         eOnxeGixzQMEAAAAAAAAAAQG1/+/nwoABAAAAAAAAAB+PotAYHD9AwQAAAAAAAAAMkjh5ecmkwEEAAAAAAAAAFa/XjqdGp0C\
         BAAAAAAAAABsIpWbmZ1OAwoAAAAAAAAABAAAAAAAAAAoAAAAAAAAAG8Sgzo=";
    let message = "the dump is of fakeredis for Python, which has a format of its own: only fakeredis loads it";
    for dump in [small, grown].map(|dump| STANDARD.decode(dump).unwrap()) {
        assert_error(&[(1, dump.clone()), (0, vec![])], message);
        // A damaged one is just no header.
        let error = load(&[(1, dump[1..].to_vec())], MIB).unwrap_err().to_string();
        assert_ne!(error, message);
    }
}

/// Every field of the header, each with what it cannot be; the first filter's fields begin at byte
/// 20, the second's at 73.
#[test]
fn a_header_that_is_none_is_an_error() {
    let (model, replies) = replies();
    let with = |at: usize, bytes: &[u8]| {
        let mut replies = replies.clone();
        replies[0].1[at..at + bytes.len()].copy_from_slice(bytes);
        replies
    };
    // Values of a field of `width` bytes, each refused with its message.
    let faults = |at: usize, width: usize, values: &[u64], message: &dyn Fn(u64) -> String| {
        for value in values {
            assert_error(&with(at, &value.to_le_bytes()[..width]), &message(*value));
        }
    };
    let items = model.items();
    faults(0, 8, &[0, items - 1, items + 1, u64::MAX], &|other| {
        format!("{other} items are not the {items} that the filters have together")
    });
    faults(8, 4, &[0, 1076, u32::MAX.into()], &|other| {
        format!("{other} filters in the chain are not in 1 to 1075")
    });
    faults(8, 4, &[1, 2, 4, 1075], &|other| {
        format!("the header has 179 bytes, not {}", 20 + 53 * other)
    });
    faults(12, 4, &[2, 7, 16, 0x8000_0005, u32::MAX.into()], &|options| {
        format!("options {options:#x} have others than 1 (NOROUND), 4 (FORCE64) and 8 (NO_SCALING)")
    });
    faults(16, 4, &[0], &|_| "an expansion of 0 is not at least 1".into());
    // A filter that never grows needs no expansion.
    let mut no_scaling = with(12, &13u32.to_le_bytes());
    no_scaling[0].1[16..20].fill(0);
    assert_eq!(load(&no_scaling, MIB).unwrap().info().expansion, None);

    for (layer, begin) in [(0, 20), (1, 73), (2, 126)] {
        let model = &model.layers[layer];
        let (functions, rate, bpe, entries, size) = (model.functions, model.rate, model.bpe, model.entries, model.size);
        let (bytes, bits) = (model.bits.len() as u64, 8 * model.bits.len() as u64);
        let faults = |at: usize, width: usize, values: &[u64], message: &dyn Fn(u64) -> String| {
            let message = |value| format!("layer {layer} of the chain: {}", message(value));
            faults(begin + at, width, values, &message);
        };
        let numbers = |at: usize, values: &[f64], message: &dyn Fn(f64) -> String| {
            let values: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
            faults(at, 8, &values, &|bits| message(f64::from_bits(bits)));
        };
        let size_of = |bytes: u64, bits: u64| {
            format!("{bytes} bytes and {bits} bits are not of the same 64-bit words, at least one")
        };
        faults(
            0,
            8,
            &[0, 1, bytes - 1, bytes + 1, bytes + 8, u64::MAX, 1 << 61],
            &|other| size_of(other, bits),
        );
        faults(8, 8, &[0, bits - 1, bits + 1, bits + 64, u64::MAX], &|other| {
            size_of(bytes, other)
        });
        // Both the same, but not whole words; and a product that wraps.
        for (bytes, bits) in [(bytes - 4, bits - 32), (1 << 61, 0)] {
            let both = [bytes, bits].map(u64::to_le_bytes).concat();
            let message = format!("layer {layer} of the chain: {}", size_of(bytes, bits));
            assert_error(&with(begin, &both), &message);
        }
        faults(16, 8, &[entries + 1], &|other| {
            format!("{other} items are more than its capacity of {entries}")
        });
        numbers(
            24,
            &[0.0, 1.0, -0.5, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY],
            &|other| format!("false-positive rate {other} is not between 0 and 1, both excluded"),
        );
        if layer > 0 {
            numbers(24, &[rate * (1.0 + f64::EPSILON)], &|other| {
                format!("false-positive rate {other:e} is above {rate:e}, half of the one before")
            });
        }
        let others = [
            0.0,
            -bpe,
            f64::NAN,
            f64::INFINITY,
            bpe * 1.000_001,
            bpe / 1.000_001,
            1e300,
        ];
        numbers(32, &others, &|other| {
            format!("{other} bits per key are not the {bpe} of a rate of {rate:e}")
        });
        faults(
            40,
            4,
            &[0, functions - 1, functions + 1, 1 << 31, u32::MAX.into()],
            &|other| format!("{other} hash functions are not the {functions} of a rate of {rate:e}"),
        );
        faults(44, 8, &[0], &|_| "a capacity of 0 keys is not at least 1".into());
        let room = (bits as f64 / bpe) as u64;
        faults(44, 8, &[room + 2, 1 << 40, u64::MAX], &|other| {
            format!("a capacity of {other} keys takes more than its {bits} bits")
        });
        assert!(load(&with(begin + 44, &room.to_le_bytes()), MIB).is_ok());
        if size > 1 {
            faults(44, 8, &[size - 1], &|other| {
                format!("{size} items are more than its capacity of {other}")
            });
        }
        let log = bits.ilog2() as u8;
        faults(52, 1, &[64, 100, 255, u64::from(log) + 1], &|log| {
            format!("2^{log} bits are more than its {bits}")
        });
        assert!(load(&with(begin + 52, &[log]), MIB).is_ok());
    }
}

/// The memory of a layer of the chain with this many bytes of bits.
fn memory(bytes: u64) -> u64 {
    bytes.next_multiple_of(64) + 256
}

/// Rates halve, and there are not so many halves: a chain of all of them, and one with one more.
/// The memory beside the bits counts too.
#[test]
fn a_chain_has_no_more_filters_than_rates() {
    let mut model = Model::new(0.5, 1, 5, 2);
    model.layers.clear();
    let mut rate = 1.0 - f64::EPSILON / 2.0;
    while rate > 0.0 {
        model.layers.push(ModelLayer::new(1, rate, 5));
        rate *= 0.5;
    }
    assert_eq!(model.layers.len(), 1075);
    let replies = model.scandump(64);
    let bytes = model.memory();
    assert!(bytes > 1075 * 256);
    assert!(!load(&replies, bytes).unwrap().contains("a"));
    let error = load(&replies, bytes - 1).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("the filter takes {bytes} bytes, more than the limit of ")),
        "{error}"
    );

    let last = model.layers.last().unwrap().clone();
    model.layers.push(last.clone());
    assert_error(&model.scandump(64), "1076 filters in the chain are not in 1 to 1075");
}

/// The limit under which it was loaded is one for growth too, whatever expansion the header says.
#[test]
fn a_chain_grows_within_the_limit_that_it_was_loaded_under() {
    let mut model = Model::new(0.01, 10, 5, u32::MAX);
    model.layers[0].size = 10;
    let mut filter = load(&model.scandump(64), MIB).unwrap();
    let error = filter.insert("a").unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("key 0 was not inserted: with a further filter the chain would take "),
        "{text}"
    );
    assert!(text.ends_with(" bytes, more than its limit of 1048576 bytes"), "{text}");
    assert!(!error.is_full() && error.source().is_none() && !filter.contains("a"));
    assert!(filter.clone().insert("a").is_err());

    // To the byte.
    model.expansion = 2;
    let grown = memory(16) + memory(32);
    let mut filter = load(&model.scandump(64), grown as usize).unwrap();
    assert!(filter.insert("a").unwrap() && filter.memory_bytes() == grown as usize);
    let mut filter = load(&model.scandump(64), grown as usize - 1).unwrap();
    assert!(filter.insert("a").is_err() && filter.memory_bytes() == memory(16) as usize);
}

/// The sum of what the layers take may be beyond 64 bits.
#[test]
fn a_dump_beyond_the_limit_is_an_error() {
    if usize::BITS == 64 {
        // Eight times 2^61 are 2^64, which wraps to 0.
        let mut model = Model::new(0.01, 1, 5, 2);
        model.layers = (0..9)
            .map(|layer| ModelLayer::new(1, 0.005 / f64::from(1 << layer), 5))
            .collect();
        let mut header = model.header();
        for layer in 0..8 {
            let numbers = [(1u64 << 61) - 8, 0u64.wrapping_sub(64)].map(u64::to_le_bytes).concat();
            header[20 + 53 * layer..][..16].copy_from_slice(&numbers);
        }
        header[20 + 53 * 8..][..16].copy_from_slice(&[64u64, 512].map(u64::to_le_bytes).concat());
        assert_error(
            &[(1, header)],
            "the filter takes 18446744073709551615 bytes, more than the limit of 1048576 bytes",
        );
    }
}

#[test]
fn copies_are_equal_and_other_filters() {
    let mut filter = RedisBloom::with_capacity(10, 0.01).unwrap();
    filter.insert_batch(&keys(0..50)).unwrap();
    let copy = filter.clone();
    assert!(copy == filter && copy.try_clone().unwrap() == filter);
    let (before, absent) = (
        dump(&copy),
        (50..).map(|i| i.to_string()).find(|key| !copy.contains(key)),
    );
    filter.insert(&absent.unwrap()).unwrap();
    assert!(copy != filter && dump(&copy) == before);
    let reserved = |rate, keys| RedisBloom::with_capacity(keys, rate).unwrap();
    assert!(reserved(0.01, 10) == reserved(0.01, 10));
    assert!(reserved(0.01, 10) != reserved(0.01, 11) && reserved(0.01, 10) != reserved(0.0101, 10));
    let builder = RedisBloom::builder().expected_keys(10);
    assert!(builder.clone().build().unwrap() == reserved(0.01, 10));
    assert!(builder.clone().expansion(3).build().unwrap() != reserved(0.01, 10));
    assert!(builder.non_scaling().build().unwrap() != reserved(0.01, 10));
    // The same bits, but for another number of keys.
    let mut model = Model::new(0.01, 10, 5, 2);
    let none = model.loaded();
    model.layers[0].size = 1;
    assert!(none != model.loaded());
    assert_eq!(
        format!("{:?}", reserved(0.01, 10)),
        "RedisBloom { capacity: 10, filters: 1, items: 0, expansion: Some(2), .. }"
    );
}

/// Dumps that the module cannot make: bits that no key can have.
#[test]
fn bits_beyond_a_rounded_size_are_not_counted() {
    for (log, used) in [(3, 8), (6, 64), (7, 128)] {
        let mut model = Model::new(0.01, 10, 4, 2);
        let layer = &mut model.layers[0];
        assert_eq!(layer.bits.len(), 16);
        layer.n2 = log;
        for (set, fill) in [(0u64, 0.0), (1, 1.0 / used as f64), (255, 8.0 / used as f64)] {
            layer.bits.fill(0xff);
            layer.bits[..used / 8].fill(0);
            layer.bits[0] = set as u8;
            let filter = Model {
                options: 4,
                expansion: 2,
                layers: vec![layer.clone()],
            }
            .loaded();
            assert_eq!(filter.statistics().fill_ratio, fill);
            assert!((filter.statistics().false_positive_rate - fill.powi(8)).abs() < 1e-12);
        }
    }
}

#[test]
fn batches_panic_where_lengths_differ() {
    let mut filter = RedisBloom::with_capacity(10, 0.01).unwrap();
    lengths_are_checked(|len, out| filter.contains_batch(&["a"; 200][..len], out));
    lengths_are_checked(|len, out| _ = filter.insert_batch_into(&["a"; 200][..len], out));
    assert!(filter.is_empty());
}

/// A chain grows before it is overfull; the bits of a dump may be more than its keys set.
#[test]
fn a_filter_is_overfull_when_its_bits_are_more_than_its_keys_set() {
    for capacity in [1, 10, 1000, 20_000] {
        let mut filter = RedisBloom::with_capacity(capacity, 0.01).unwrap();
        filter.insert_all(keys(0..3 * capacity as u64)).unwrap();
        let now = filter.statistics();
        assert!(!now.is_overfull && now.len > 2 * capacity, "{capacity}: {now:?}");
        let bits = 8.0 * filter.memory_bytes() as f64;
        assert_eq!(now.bits_per_key, bits / filter.expected_keys() as f64);
    }
    for (set, is_overfull) in [(0x0f, false), (0x3f, true), (0xff, true)] {
        let mut model = Model::new(0.01, 10_000, 4, 2);
        model.layers[0].bits.fill(set);
        assert_eq!(model.loaded().statistics().is_overfull, is_overfull, "{set:x}");
    }
}
