//! `RedisBitmap` and `LocalBitmap` on a real server: known bits, a second implementation of each
//! layout, growth, races, copies, and all errors. `tests/servers/redis_peers.rs` runs them beside
//! the programs that the layouts come from.

use crate::common::{SetAtEnd, number, wait_until};
use crate::mock::Mock;
use crate::redis_server::{Server, ask, figure};
use lanebloom::Funnel;
use lanebloom_formats::guava::GuavaBloom;
use lanebloom_redis::{BitmapError, LocalBitmap, RedisBitmap};
use redis::{Connection, ConnectionLike, Value};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn golden() -> Json {
    serde_json::from_str(include_str!("../data/redis_bitmaps.json")).unwrap()
}

/// The offsets of all bits that are set, as Redis counts them.
pub(crate) fn bits_of(connection: &mut Connection, key: &str) -> BTreeSet<u64> {
    let bytes: Vec<u8> = ask(connection, &["GET", key]);
    let bit = |i: usize| bytes[i / 8] >> (7 - i % 8) & 1 == 1;
    (0..8 * bytes.len()).filter(|i| bit(*i)).map(|i| i as u64).collect()
}

fn offsets(json: &Json) -> BTreeSet<u64> {
    json.as_array().unwrap().iter().map(|i| i.as_u64().unwrap()).collect()
}

/// Both halves of Murmur3 x64_128, by another crate.
fn murmur3(mut bytes: &[u8]) -> (u64, u64) {
    let hash = murmur3::murmur3_x64_128(&mut bytes, 0).unwrap();
    (hash as u64, (hash >> 64) as u64)
}

/// `MURMUR128_MITZ_64`, written down again.
fn mitz_64(key: &str, bits: u64, functions: u8) -> Vec<u64> {
    let (h1, h2) = murmur3(key.as_bytes());
    (0..u64::from(functions))
        .map(|i| (h1.wrapping_add(i.wrapping_mul(h2)) & i64::MAX as u64) % bits)
        .collect()
}

fn go_zero(key: &str, bits: u64) -> Vec<u64> {
    (0..14)
        .map(|i| murmur3(&[key.as_bytes(), &[i]].concat()).0 % bits)
        .collect()
}

fn key(i: u64) -> String {
    format!("key {:x}", number(i))
}

pub(crate) fn keys(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(key).collect()
}

/// One filter of each layout, small enough that some absent keys are found.
pub(crate) fn one_of_each() -> Vec<RedisBitmap> {
    others_of_each("")
}

/// [`one_of_each`], by names that end so.
fn others_of_each(end: &str) -> Vec<RedisBitmap> {
    vec![
        RedisBitmap::guava(format!("guava{end}"), format!("guava{end}:cursor"), 150, 0.02).unwrap(),
        RedisBitmap::jedis(format!("jedis{end}"), 500, 0.03).unwrap(),
        RedisBitmap::go_zero(format!("go-zero{end}"), 9001).unwrap(),
        RedisBitmap::scrapy(format!("scrapy{end}"), 13, 6).unwrap(),
    ]
}

/// A filter of each layout that finds nearly no absent key. The Redis keys have this hash tag.
pub(crate) fn every_layout(tag: &str) -> Vec<RedisBitmap> {
    vec![
        RedisBitmap::guava(format!("{{{tag}}}guava"), format!("{{{tag}}}cursor"), 50, 1e-9).unwrap(),
        RedisBitmap::jedis(format!("{{{tag}}}jedis"), 5000, 1e-6).unwrap(),
        RedisBitmap::go_zero(format!("{{{tag}}}go-zero"), 200_000).unwrap(),
        RedisBitmap::scrapy(format!("{{{tag}}}scrapy"), 20, 6).unwrap(),
        RedisBitmap::redisson(format!("{{{tag}}}redisson"), 5000, 1e-6).unwrap(),
    ]
}

/// The answers to a batch of inserts, whose number of new keys is right.
pub(crate) fn inserts(filter: &RedisBitmap, connection: &mut Connection, keys: &[impl Funnel]) -> Vec<bool> {
    let mut changed = vec![true; keys.len()];
    let sum = filter.insert_batch_into(connection, keys, &mut changed).unwrap();
    assert_eq!(sum, changed.iter().filter(|changed| **changed).count());
    changed
}

/// The answers to a batch of lookups.
pub(crate) fn lookups(filter: &RedisBitmap, connection: &mut Connection, keys: &[impl Funnel]) -> Vec<bool> {
    let mut found = vec![true; keys.len()];
    filter.contains_batch(connection, keys, &mut found).unwrap();
    found
}

/// The answers of a copy to a batch, which are those to single lookups.
pub(crate) fn lookups_in(copy: &LocalBitmap, keys: &[impl Funnel]) -> Vec<bool> {
    let mut found = vec![true; keys.len()];
    copy.contains_batch(keys, &mut found);
    assert!(keys.iter().map(|key| copy.contains(key)).eq(found.iter().copied()));
    found
}

#[test]
fn bits_are_the_known_ones() {
    let server = server!();
    let connection = &mut server.connection();
    let golden = golden();
    for (i, case) in golden["go_zero"]["cases"].as_array().unwrap().iter().enumerate() {
        let (name, key) = (format!("go-zero {i}"), case["key"].as_str().unwrap());
        let filter = RedisBitmap::go_zero(name.as_str(), case["bits"].as_u64().unwrap()).unwrap();
        assert!(filter.insert(connection, key).unwrap());
        assert_eq!(bits_of(connection, &name), offsets(&case["offsets"]));
    }
    // go-zero's own test.
    let case = &golden["go_zero"]["set_case"];
    let filter = RedisBitmap::go_zero("kevin", case["bits"].as_u64().unwrap()).unwrap();
    assert_eq!(case["add"], "kevin0..kevin9");
    let kevins: Vec<String> = (0..10).map(|i| format!("kevin{i}")).collect();
    filter.insert_batch(connection, &kevins).unwrap();
    assert_eq!(case["bits_set"], bits_of(connection, "kevin").len());
    for (key, found) in case["contains"].as_object().unwrap() {
        assert_eq!(Json::from(filter.contains(connection, key).unwrap()), *found, "{key}");
    }
    let cases = golden["scrapy_redis_bloomfilter"]["cases"].as_array().unwrap();
    for (i, case) in cases.iter().enumerate() {
        let (name, key) = (format!("scrapy {i}"), case["key"].as_str().unwrap());
        let filter = RedisBitmap::scrapy(name.as_str(), 30, 6).unwrap();
        assert!(filter.insert(connection, key).unwrap());
        assert_eq!(bits_of(connection, &name), offsets(&case["offsets"]));
    }
    assert_eq!(cases.len(), 2);

    let jedis = &golden["guava_on_redis"]["jedis_variant_answers"];
    let keys = jedis["n"].as_u64().unwrap() as usize;
    let filter = RedisBitmap::jedis("read", keys, jedis["p"].as_f64().unwrap()).unwrap();
    assert_eq!(Json::from(filter.bit_size()), jedis["bitmap_length"]);
    assert_eq!(Json::from(filter.hash_functions()), jedis["num_hash_functions"]);
    filter.insert(connection, "hello").unwrap();
    assert_eq!(
        bits_of(connection, "bf:read"),
        mitz_64("hello", 21_895, 5).into_iter().collect()
    );
}

/// Every bit of hundreds of keys, in lengths that are no multiple of anything, beside the formulas
/// written down again.
#[test]
fn bits_of_many_keys_are_those_of_the_formulas() {
    let server = server!();
    let connection = &mut server.connection();
    for (i, bits) in [1, 2, 7, 64, 1009, 65_537, 16_777_213, 1 << 32].into_iter().enumerate() {
        let name = format!("go-zero {i}");
        let filter = RedisBitmap::go_zero(name.as_str(), bits).unwrap();
        // The largest bitmap has half a GiB: insert one key only, and ask for its bits one by one.
        let keys = keys(0..if bits > 1 << 30 { 1 } else { 200 });
        filter.insert_batch(connection, &keys).unwrap();
        let expected: BTreeSet<u64> = keys.iter().flat_map(|key| go_zero(key, bits)).collect();
        if keys.len() > 1 {
            assert_eq!(bits_of(connection, &name), expected, "{bits} bits");
        } else {
            for offset in &expected {
                assert_eq!(ask::<u8>(connection, &["GETBIT", &name, &offset.to_string()]), 1);
            }
            assert_eq!(ask::<usize>(connection, &["BITCOUNT", &name]), expected.len());
            ask::<()>(connection, &["DEL", &name]);
        }
    }
    for (i, (expected_keys, rate)) in [(1, 0.03), (3, 0.5), (3000, 0.03), (777, 1e-9), (40, 1e-70)]
        .into_iter()
        .enumerate()
    {
        let filter = RedisBitmap::jedis(format!("{i}"), expected_keys, rate).unwrap();
        let keys = keys(0..300);
        filter.insert_batch(connection, &keys).unwrap();
        let expected = keys
            .iter()
            .flat_map(|key| mitz_64(key, filter.bit_size(), filter.hash_functions()));
        assert_eq!(bits_of(connection, &format!("bf:{i}")), expected.collect());
    }
    // Characters, not bytes, and integers without end.
    let big = |text: &str, seed: u128, bit: u32| {
        let modulus = 1u128 << 40; // any that keeps the lowest bits
        text.chars()
            .fold(0, |sum: u128, c| (sum + seed * sum + u128::from(c as u32)) % modulus) as u64
            & ((1 << bit) - 1)
    };
    for (i, bit) in [0, 1, 9, 20, 32].into_iter().enumerate() {
        let name = format!("scrapy {i}");
        let filter = RedisBitmap::scrapy(name.as_str(), bit, 9).unwrap();
        let texts = [
            "",
            "a",
            "hello",
            "été 😀 zażółć",
            "\u{10ffff}\u{10ffff}",
            &"f".repeat(500),
        ];
        for text in &texts[..if bit == 32 { 3 } else { 6 }] {
            filter.insert(connection, *text).unwrap();
            for seed in 0..9 {
                let offset = big(text, seed, bit).to_string();
                assert_eq!(
                    ask::<u8>(connection, &["GETBIT", &name, &offset]),
                    1,
                    "{text} {seed} {bit}"
                );
            }
        }
    }
}

/// The layouts' sizes, and what is beyond them.
#[test]
fn sizes_and_their_limits() {
    // Rounded or not, by the formula of old; the same as Guava's own filter.
    for (keys, rate) in [
        (0, 0.03),
        (1, 0.01),
        (1, 0.04),
        (3000, 0.03),
        (10_000, 0.0005),
        (1_000_000, 0.01),
    ] {
        let filter = RedisBitmap::guava("a", "b", keys, rate).unwrap();
        let own = GuavaBloom::builder()
            .expected_keys(keys)
            .false_positive_rate(rate)
            .hash_functions(lanebloom_formats::guava::HashFunctions::ByBits)
            .build()
            .unwrap();
        assert_eq!(filter.bit_size(), own.bit_size());
        assert_eq!(u32::from(filter.hash_functions()), own.hash_functions());
        let jedis = RedisBitmap::jedis("a", keys, rate).unwrap();
        assert_eq!(jedis.bit_size().next_multiple_of(64), own.bit_size());
        assert_eq!(u32::from(jedis.hash_functions()), own.hash_functions());
    }
    // A key has a bit even of so few.
    assert_eq!(RedisBitmap::jedis("a", 1000, 0.9).unwrap().hash_functions(), 1);
    // An int of Java ends: 300,000,000 keys at 3% take 2,189,532,240 bits. (5, too, where it does
    // not.)
    let jedis = RedisBitmap::jedis("a", 300_000_000, 0.03).unwrap();
    assert_eq!((jedis.bit_size(), jedis.hash_functions()), (2_147_483_647, 5));
    let jedis = RedisBitmap::jedis("a", 2_147_483_647, 0.03).unwrap();
    assert_eq!((jedis.bit_size(), jedis.hash_functions()), (2_147_483_647, 1));

    let beyond = |bits: &str| format!("a bitmap of {bits} bits is beyond Redis's limit of 4294967296 bits (512 MiB)");
    let none = "a bitmap of 1073741824 bits, 0 of each key, is none: both must be at least 1";
    let rate = "false-positive rate 1 is not between 0 and 1, both excluded";
    assert!(RedisBitmap::go_zero("a", 1 << 32).is_ok() && RedisBitmap::scrapy("a", 32, 1).is_ok());
    for (result, text) in [
        (RedisBitmap::go_zero("a", (1 << 32) + 1), &*beyond("4294967297")),
        (RedisBitmap::scrapy("a", 33, 1), &beyond("8589934592")),
        (RedisBitmap::scrapy("a", 64, 1), &beyond("2^64")),
        (RedisBitmap::guava("a", "b", 600_000_000, 0.03), &beyond("4379064512")),
        (RedisBitmap::scrapy("a", 30, 0), none),
        (RedisBitmap::jedis("a", 10, 1.0), rate),
        (RedisBitmap::guava("a", "b", 10, 1.0), rate),
        (
            RedisBitmap::jedis("a", 10, 1e-80),
            "a rate of 1e-80 takes 266 hash functions",
        ),
    ] {
        assert!(result.unwrap_err().to_string().starts_with(text), "{text}");
    }
}

/// In batches of every length about a round trip's, present, absent and repeated keys: the answers
/// of single calls in order, which are those of a plain set of offsets.
#[test]
fn batches_answer_as_single_calls() {
    let server = server!();
    let connection = &mut server.connection();
    let trips = [
        0, 1, 2, 72, 73, 74, 75, 127, 128, 129, 146, 147, 170, 171, 204, 205, 400,
    ];
    for (filter, single) in one_of_each().iter().zip(&others_of_each(" 1")) {
        let mut next = 0;
        for len in trips {
            // One in four was in an earlier batch, one in seven is twice in this one.
            let keys: Vec<String> = (0..len)
                .map(|i| {
                    key(if i % 4 == 1 {
                        i / 2
                    } else {
                        next + i - u64::from(i % 7 == 6)
                    })
                })
                .collect();
            next += len;
            let each: Vec<bool> = keys.iter().map(|key| single.insert(connection, key).unwrap()).collect();
            assert_eq!(inserts(filter, connection, &keys), each, "{len} into {filter:?}");
            assert_eq!(filter.insert_batch(connection, &keys).unwrap(), 0);

            let asked: Vec<String> = (0..len).map(|i| key(next - len / 2 + i)).collect();
            let each: Vec<bool> = asked
                .iter()
                .map(|key| single.contains(connection, key).unwrap())
                .collect();
            assert_eq!(lookups(filter, connection, &asked), each);
            // In each batch the keys at i % 4 == 1 and i % 7 == 6 were others.
            let is_other = |i: u64| i % 4 == 1 || i % 7 == 6;
            let mut inserted = (len - len / 2..len).zip(each);
            assert!(inserted.all(|(i, found)| found || is_other(i)));
        }
    }
    for (name, rest) in [
        ("guava", "-0"),
        ("guava", "-1"),
        ("bf:jedis", ""),
        ("go-zero", ""),
        ("scrapy", ""),
    ] {
        let [one, other] = ["", " 1"].map(|end| bits_of(connection, &format!("{name}{end}{rest}")));
        assert_eq!(one, other, "{name}{rest}");
    }
    let cursors = ask::<[u64; 2]>(connection, &["MGET", "guava:cursor", "guava 1:cursor"]);
    assert!(cursors[0] > 2 && cursors[0] == cursors[1], "{cursors:?}");
}

/// Calls of commands since the server started.
fn calls(connection: &mut Connection, command: &str) -> u64 {
    figure(connection, "commandstats", &format!("cmdstat_{command}:calls="))
}

#[test]
fn a_batch_takes_few_round_trips() {
    let server = server!();
    let connection = &mut server.connection();
    // 73 keys of 14 bits are the most that are below 1024 bits.
    let filter = RedisBitmap::go_zero("filter", 100_000).unwrap();
    filter.insert_batch(connection, &keys(0..730)).unwrap();
    // The first one is not known and sent whole.
    assert_eq!((calls(connection, "evalsha"), calls(connection, "eval")), (10, 1));
    lookups(&filter, connection, &keys(0..74));
    assert_eq!((calls(connection, "evalsha"), calls(connection, "eval")), (12, 2));
    filter.contains_batch::<u8>(connection, &[], &mut []).unwrap();
    assert_eq!(calls(connection, "evalsha"), 12);

    // A server that forgets its scripts is told them again, in the middle of a batch too.
    ask::<()>(connection, &["SCRIPT", "FLUSH"]);
    assert!(filter.contains(connection, &key(0)).unwrap());
    assert_eq!((calls(connection, "evalsha"), calls(connection, "eval")), (13, 3));

    let jedis = RedisBitmap::jedis("filter", 1000, 0.01).unwrap();
    jedis.insert_batch(connection, &keys(0..10)).unwrap();
    // The scripts' own are counted as well.
    assert_eq!(calls(connection, "setbit"), 14 * 730 + 7 * 10);
}

/// The specification of a growing filter.
struct Model {
    bits: u64,
    functions: u8,
    bitmaps: Vec<BTreeSet<u64>>,
}

impl Model {
    fn insert(&mut self, key: &str) -> bool {
        let offsets = mitz_64(key, self.bits, self.functions);
        let mut changed = false;
        if !self
            .bitmaps
            .iter()
            .any(|bitmap| offsets.iter().all(|offset| bitmap.contains(offset)))
        {
            let last = self.bitmaps.last_mut().unwrap();
            for offset in offsets {
                changed |= last.insert(offset);
            }
        }
        if self.bitmaps.last().unwrap().len() as u64 * 2 > self.bits {
            self.bitmaps.push(BTreeSet::new());
        }
        changed
    }
}

#[test]
fn growth_is_that_of_the_model() {
    let server = server!();
    let connection = &mut server.connection();
    for (round, (expected, rate, batch)) in [(1, 0.03, 1), (20, 0.1, 1), (60, 0.01, 37), (100, 1e-6, 500)]
        .into_iter()
        .enumerate()
    {
        let (base, cursor) = (format!("base {round}"), format!("cursor {round}"));
        let filter = RedisBitmap::guava(base.as_str(), cursor.as_str(), expected, rate).unwrap();
        let mut model = Model {
            bits: filter.bit_size(),
            functions: filter.hash_functions(),
            bitmaps: vec![BTreeSet::new()],
        };
        let keys: Vec<String> = (0..600).map(|i| key(if i % 5 == 4 { i / 2 } else { i })).collect();
        for keys in keys.chunks(batch) {
            let expected: Vec<bool> = keys.iter().map(|key| model.insert(key)).collect();
            assert_eq!(inserts(&filter, connection, keys), expected);
            let number: Option<usize> = ask(connection, &["GET", &cursor]);
            assert_eq!(number.unwrap_or(0) + 1, model.bitmaps.len());
        }
        assert!(model.bitmaps.len() > 3, "it never grew");
        for (i, bitmap) in model.bitmaps.iter().enumerate() {
            let name = format!("{base}-{i}");
            assert_eq!(bits_of(connection, &name), *bitmap);
            // The whole length from the beginning.
            assert_eq!(ask::<u64>(connection, &["STRLEN", &name]) * 8, filter.bit_size());
        }
        assert!(!lookups(&filter, connection, &keys).contains(&false));

        filter.clear(connection).unwrap();
        assert!(!lookups(&filter, connection, &keys).contains(&true));
        let left: Vec<String> = ask(connection, &["KEYS", &format!("*{round}*")]);
        assert_eq!(left.len(), 2, "{left:?}");
        assert_eq!(ask::<String>(connection, &["GET", &cursor]), "0");
        let bytes: u64 = ask(connection, &["STRLEN", &format!("{base}-0")]);
        assert_eq!(bytes * 8, filter.bit_size());
    }
}

/// Keys that are there already, from before a cursor was lost say, are counted, and a bitmap that
/// is full is passed by.
#[test]
fn growth_counts_what_is_there() {
    let server = server!();
    let connection = &mut server.connection();
    let filter = RedisBitmap::guava("base", "cursor", 100, 0.01).unwrap();
    ask::<()>(connection, &["SET", "cursor", "0"]);
    for full in ["base-0", "base-1"] {
        redis::Commands::set::<_, _, ()>(connection, full, &[0xff_u8; 120][..]).unwrap();
        ask::<()>(connection, &["SETBIT", full, "959", "0"]);
    }
    // All but one bit is set in them, which one of these keys has.
    let keys = keys(0..200);
    let open = keys.iter().position(|key| mitz_64(key, 960, 7).contains(&959)).unwrap();
    filter.insert(connection, &keys[open]).unwrap();
    assert_eq!(ask::<u64>(connection, &["GET", "cursor"]), 1);
    filter.insert(connection, "any").unwrap();
    assert_eq!(ask::<u64>(connection, &["GET", "cursor"]), 2);
    assert_eq!(ask::<u64>(connection, &["BITCOUNT", "base-2"]), 0);
    // It has its whole length, as the first one has from the first key on.
    assert_eq!(ask::<u64>(connection, &["STRLEN", "base-2"]), 120);
    let large = RedisBitmap::guava("large", "large:cursor", 10_000, 0.01).unwrap();
    large.insert(connection, "any").unwrap();
    assert_eq!(ask::<u64>(connection, &["STRLEN", "large-0"]) * 8, large.bit_size());
    // In one batch as one by one.
    ask::<()>(connection, &["SET", "cursor", "0"]);
    filter.insert_batch(connection, &["any", "other"]).unwrap();
    assert_eq!(ask::<u64>(connection, &["GET", "cursor"]), 2);
}

/// Clients on threads, and with the feature `tokio` on an asynchronous runtime, insert beside each
/// other, some of them the same keys. The cursor never skips and never doubles, so every bitmap but
/// the last is just over half full. No key is missing. If clients race for a key, one of them gets
/// true.
#[test]
fn growth_beside_other_clients() {
    const CLIENTS: u64 = 4;
    const KEYS: u64 = 400;
    let server = server!();
    let filter = RedisBitmap::guava("raced", "raced:cursor", 100, 1e-4).unwrap();
    let (filter, server) = (&filter, &server);
    let clients = if cfg!(feature = "tokio") { 2 * CLIENTS } else { CLIENTS };
    // A third of the keys is everybody's.
    let key_of = |client: u64, i: u64| {
        key(if i.is_multiple_of(3) {
            i
        } else {
            10_000 * (client + 1) + i
        })
    };
    let keys_of = |client| (0..KEYS).map(|i| key_of(client, i)).collect::<Vec<String>>();
    let flags: Vec<Vec<bool>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS)
            .map(|client| {
                scope.spawn(move || {
                    let connection = &mut server.connection();
                    let keys = keys_of(client);
                    let changed = keys.chunks(7).map(|keys| inserts(filter, connection, keys));
                    changed.collect::<Vec<_>>().concat()
                })
            })
            .collect();
        #[cfg(feature = "tokio")]
        let mut tasks = crate::redis_async::inserts(filter, server, CLIENTS..clients, keys_of);
        #[cfg(not(feature = "tokio"))]
        let mut tasks = Vec::new();
        let mut all: Vec<Vec<bool>> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        all.append(&mut tasks);
        all
    });

    let connection = &mut server.connection();
    let last: u64 = ask(connection, &["GET", "raced:cursor"]);
    assert!(last >= 10, "it grew to {last} only");
    let (size, functions) = (filter.bit_size(), u64::from(filter.hash_functions()));
    for bitmap in 0..=last {
        let ones: u64 = ask(connection, &["BITCOUNT", &format!("raced-{bitmap}")]);
        if bitmap < last {
            assert!(
                ones * 2 > size && (ones - functions) * 2 <= size,
                "bitmap {bitmap} has {ones} of {size}"
            );
        } else {
            assert!(ones * 2 <= size);
        }
    }
    assert_eq!(ask::<u64>(connection, &["EXISTS", &format!("raced-{}", last + 1)]), 0);
    for client in 0..clients {
        assert!(!lookups(filter, connection, &keys_of(client)).contains(&false));
    }
    for i in (0..KEYS as usize).step_by(3) {
        let winners = flags.iter().filter(|flags| flags[i]).count();
        // None, where it is a false positive.
        assert!(winners <= 1, "{winners} won key {i}");
    }
    let wins = flags.iter().flatten().filter(|won| **won).count() as u64;
    let distinct = KEYS.div_ceil(3) + clients * (KEYS - KEYS.div_ceil(3));
    assert!((distinct * 98 / 100..=distinct).contains(&wins), "{wins} of {distinct}");
}

/// Keys of which a few, some or many were inserted, in copies of every layout: answers as the
/// server's.
#[test]
fn copies_answer_as_the_server() {
    let server = server!();
    let connection = &mut server.connection();
    let mut filters = one_of_each();
    // More than one piece and several comparisons, each with a rest; the longest only grows by
    // being fetched in pieces.
    filters.push(RedisBitmap::go_zero("two pieces", 8 * 1_500_003).unwrap());
    filters.push(RedisBitmap::jedis("rest", 1_000_003, 0.01).unwrap());
    filters.push(RedisBitmap::go_zero("one bit", 1).unwrap());
    filters.push(RedisBitmap::guava("grows", "grows:cursor", 20_000, 0.01).unwrap());
    for filter in filters {
        let copy = filter.fetch_local(connection, 4 << 20).unwrap();
        assert!(!lookups_in(&copy, &keys(0..1000)).contains(&true), "{filter:?}");
        for (round, count) in [1, 40, 1200].into_iter().enumerate() {
            filter.insert_batch(connection, &keys(0..count)).unwrap();
            let refreshed = copy.refresh(connection).unwrap();
            assert!(
                refreshed.changed != (filter.bit_size() == 1 && round > 0),
                "{filter:?} {round}"
            );
            assert!(!refreshed.vanished);
            let anew = filter.fetch_local(connection, 4 << 20).unwrap();
            assert_eq!(copy.statistics(), anew.statistics());
            assert_eq!(copy.statistics(), filter.statistics(connection).unwrap());
            let asked = keys(0..1600);
            let on_server = lookups(&filter, connection, &asked);
            assert!(!on_server[..count as usize].contains(&false));
            for copy in [&copy, &anew] {
                assert!(lookups_in(copy, &asked) == on_server, "{filter:?}");
            }
        }
        assert_eq!(copy.refresh(connection).unwrap(), Default::default());
    }
}

/// A window of a copy's batch has places for 512 bits: of many functions a few keys, of 200 two.
#[test]
fn batches_of_copies_with_many_functions() {
    let server = server!();
    let connection = &mut server.connection();
    for functions in [1, 2, 7, 100, 200, 255] {
        let filter = RedisBitmap::scrapy(format!("{functions}"), 17, functions).unwrap();
        filter.insert_batch(connection, &keys(0..50)).unwrap();
        let copy = filter.fetch_local(connection, 1 << 20).unwrap();
        for len in [0, 1, 2, 3, 51, 140] {
            let found = lookups_in(&copy, &keys(20..20 + len));
            assert!(found.iter().take(30).all(|found| *found));
        }
    }
}

/// Bytes that the server has sent.
fn sent(connection: &mut Connection) -> u64 {
    figure(connection, "stats", "total_net_output_bytes:")
}

fn received(connection: &mut Connection) -> u64 {
    figure(connection, "stats", "total_net_input_bytes:")
}

/// Measured on the wire: a refresh brings the chunks that changed, and what it takes to find them
/// is a hundredth of the filter.
#[test]
fn a_refresh_brings_what_changed() {
    let server = server!();
    let connection = &mut server.connection();
    let filter = RedisBitmap::go_zero("filter", 8 << 21).unwrap(); // 2 MiB
    filter.insert_batch(connection, &keys(0..5000)).unwrap();
    let before = sent(connection);
    let copy = filter.fetch_local(connection, 1 << 22).unwrap();
    let whole = sent(connection) - before;
    assert!((2 << 20..(2 << 20) + 20_000).contains(&whole), "{whole}");

    let before = (sent(connection), received(connection));
    assert_eq!(copy.refresh(connection).unwrap(), Default::default());
    let nothing = (sent(connection) - before.0, received(connection) - before.1);
    assert!(nothing.0 < 15_000 && nothing.1 < (2 << 20) / 100, "{nothing:?}");

    filter.insert(connection, "one").unwrap();
    let before = sent(connection);
    let refreshed = copy.refresh(connection).unwrap();
    assert!(refreshed.changed && !refreshed.vanished);
    // 14 bits, a chunk of 4 KiB each, if two of them are not in one.
    assert!(refreshed.bytes.is_multiple_of(4096) && (10..=14).contains(&(refreshed.bytes / 4096)));
    let one = sent(connection) - before;
    assert!((refreshed.bytes..refreshed.bytes + 15_000).contains(&one), "{one}");
    assert!(copy.contains("one"));
}

#[test]
fn what_vanished_is_told() {
    let server = server!();
    let connection = &mut server.connection();
    for filter in one_of_each() {
        filter.insert_batch(connection, &keys(0..200)).unwrap();
        let copy = filter.fetch_local(connection, 1 << 20).unwrap();
        filter.clear(connection).unwrap();
        let refreshed = copy.refresh(connection).unwrap();
        assert!(refreshed.vanished && !refreshed.changed);
        // The copy has what it had, and what is new.
        filter.insert(connection, "new").unwrap();
        let refreshed = copy.refresh(connection).unwrap();
        assert!(refreshed.vanished);
        assert!(copy.contains("new") && copy.contains(&key(0)) && copy.contains(&key(199)));
        let anew = filter.fetch_local(connection, 1 << 20).unwrap();
        assert!(anew.contains("new") && !anew.contains(&key(0)) && anew.bitmaps() == 1);
    }
    // A bit less, in another chunk than the first and beyond the end of what is left.
    let filter = RedisBitmap::go_zero("filter", 3_000_000).unwrap();
    filter.insert_batch(connection, &keys(0..200)).unwrap();
    let copy = filter.fetch_local(connection, 1 << 20).unwrap();
    let last = bits_of(connection, "filter").pop_last().unwrap().to_string();
    ask::<()>(connection, &["SETBIT", "filter", &last, "0"]);
    assert!(copy.refresh(connection).unwrap().vanished);
    ask::<()>(connection, &["SETBIT", "filter", &last, "1"]);
    assert_eq!(copy.refresh(connection).unwrap(), Default::default());
    ask::<()>(connection, &["SET", "filter", ""]);
    assert!(copy.refresh(connection).unwrap().vanished);
    // All that is compared at once is as it was, and what came after it is gone.
    let filter = RedisBitmap::go_zero("shorter", 3_000_000).unwrap();
    filter.insert_batch(connection, &keys(0..200)).unwrap();
    let copy = filter.fetch_local(connection, 1 << 20).unwrap();
    let beginning: Vec<u8> = ask(connection, &["GETRANGE", "shorter", "0", "262143"]);
    redis::Commands::set::<_, _, ()>(connection, "shorter", beginning).unwrap();
    let refreshed = copy.refresh(connection).unwrap();
    assert!(refreshed.vanished && refreshed.bytes == 0);
    // The second of two bitmaps is gone.
    let filter = RedisBitmap::guava("two", "two:cursor", 100, 0.01).unwrap();
    filter.insert_batch(connection, &keys(0..150)).unwrap();
    assert_eq!(ask::<u64>(connection, &["GET", "two:cursor"]), 1);
    let copy = filter.fetch_local(connection, 1 << 20).unwrap();
    ask::<()>(connection, &["SET", "two:cursor", "0"]);
    let refreshed = copy.refresh(connection).unwrap();
    assert!(refreshed.vanished && refreshed.bytes == 0);
    ask::<()>(connection, &["SET", "two:cursor", "1"]);
    assert_eq!(copy.refresh(connection).unwrap(), Default::default());
}

/// Threads look keys up while others refresh and one inserts: no key that was inserted before a
/// refresh began is missing after it.
#[test]
fn lookups_and_refreshes_beside_inserts() {
    let server = server!();
    let filter = RedisBitmap::guava("live", "live:cursor", 200, 0.01).unwrap();
    let copy = filter.fetch_local(&mut server.connection(), 1 << 20).unwrap();
    let (filter, copy, server, done) = (&filter, &copy, &server, &AtomicBool::new(false));
    thread::scope(|scope| {
        // In the end, and where something fails.
        let stop = SetAtEnd(done);
        for _ in 0..2 {
            scope.spawn(move || {
                let connection = &mut server.connection();
                while !done.load(Ordering::Relaxed) {
                    assert!(!copy.refresh(connection).unwrap().vanished);
                }
            });
        }
        scope.spawn(move || {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                // A key that was found once is found ever after.
                assert!((0..seen).all(|i| copy.contains(&key(i))));
                while seen < 1500 && copy.contains(&key(seen)) {
                    seen += 1;
                }
            }
        });
        let connection = &mut server.connection();
        for i in 0..1500 {
            filter.insert(connection, &key(i)).unwrap();
            if i % 100 == 99 {
                copy.refresh(connection).unwrap();
                assert!((0..=i).all(|i| copy.contains(&key(i))), "{i}");
            }
        }
        drop(stop);
    });
    assert!(copy.bitmaps() > 5);
}

#[test]
fn copies_stay_within_their_limit() {
    let server = server!();
    let connection = &mut server.connection();
    let filter = RedisBitmap::guava("base", "cursor", 1000, 0.01).unwrap();
    let bytes = filter.bit_size().div_ceil(512) as usize * 64;
    assert_eq!(bytes, 1216);
    let error = filter.fetch_local(connection, bytes - 1).unwrap_err();
    assert!(error.is_over_limit());
    let text = "a copy of \"base\" takes 1216 bytes, more than the limit of 1215 bytes";
    assert_eq!(error.to_string(), text);
    let copy = filter.fetch_local(connection, 2 * bytes).unwrap();
    assert_eq!(copy.memory_bytes(), bytes);
    // Grown to two it fits, to three it does not.
    let mut next = 0;
    while ask::<Option<u64>>(connection, &["GET", "cursor"]) != Some(1) {
        filter.insert(connection, &key(next)).unwrap();
        next += 1;
        assert!(next < 3000, "it does not grow");
    }
    copy.refresh(connection).unwrap();
    assert_eq!((copy.memory_bytes(), copy.bitmaps()), (2 * bytes, 2));
    ask::<()>(connection, &["SET", "cursor", "2"]);
    let error = copy.refresh(connection).unwrap_err();
    let text = "a copy of \"base\" takes 3648 bytes, more than the limit of 2432 bytes";
    assert_eq!(error.to_string(), text);
    assert!(copy.contains(&key(0)));

    // The greatest of all, not allocated.
    let huge = RedisBitmap::go_zero("huge", 1 << 32).unwrap();
    let error = huge.fetch_local(connection, (1 << 29) - 1).unwrap_err();
    assert!(error.is_over_limit(), "{error}");

    // Another's bitmap, longer than the layout's by a byte, found when it is fetched and when it is
    // refreshed.
    let filter = RedisBitmap::go_zero("filter", 20_001).unwrap();
    let copy = filter.fetch_local(connection, 1 << 20).unwrap();
    ask::<()>(connection, &["SETBIT", "filter", "20007", "1"]);
    assert!(copy.refresh(connection).is_ok());
    ask::<()>(connection, &["SETBIT", "filter", "20008", "0"]);
    for error in [
        copy.refresh(connection).unwrap_err(),
        filter.fetch_local(connection, 1 << 20).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "the bitmap \"filter\" has 2502 bytes, more than the 2501 bytes of its layout: another layout wrote it"
        );
    }
    let filter = RedisBitmap::go_zero("whole bytes", 20_000).unwrap();
    ask::<()>(connection, &["SETBIT", "whole bytes", "19999", "1"]);
    assert!(filter.fetch_local(connection, 1 << 20).is_ok());
    ask::<()>(connection, &["SETBIT", "whole bytes", "20000", "0"]);
    assert!(filter.fetch_local(connection, 1 << 20).is_err());
}

/// The errors of all calls on a filter and a connection, by the names of the calls.
fn errors(
    filter: &RedisBitmap,
    copy: Option<&LocalBitmap>,
    connection: &mut dyn ConnectionLike,
) -> Vec<(&'static str, BitmapError)> {
    let (keys, mut out) = (keys(0..200), [false; 200]);
    let results = [
        ("contains", filter.contains(connection, "a").map(drop)),
        ("contains_batch", filter.contains_batch(connection, &keys, &mut out)),
        ("insert", filter.insert(connection, "a").map(drop)),
        ("insert_batch", filter.insert_batch(connection, &keys).map(drop)),
        (
            "insert_batch_into",
            filter.insert_batch_into(connection, &keys, &mut out).map(drop),
        ),
        ("expire", filter.expire(connection, Duration::from_secs(100)).map(drop)),
        ("fetch_local", filter.fetch_local(connection, 1 << 24).map(drop)),
        (
            "refresh",
            copy.map_or(Ok(()), |copy| copy.refresh(connection).map(drop)),
        ),
        ("clear", filter.clear(connection)),
    ];
    let errors = results
        .into_iter()
        .filter_map(|(name, result)| Some((name, result.err()?)));
    errors.collect()
}

/// Whether an error says that the server was not reached, takes no writes, or has another type.
fn causes(error: &BitmapError) -> [bool; 3] {
    [error.is_unreachable(), error.is_read_only(), error.is_wrong_type()]
}

/// The eight calls fail by this text.
fn assert_all_say(filter: &RedisBitmap, connection: &mut Connection, text: &str) {
    let errors = errors(filter, None, connection);
    assert_eq!(errors.len(), 8, "{text}");
    for (name, error) in errors {
        assert_eq!(error.to_string(), text, "{name}");
    }
}

const READS: [&str; 4] = ["contains", "contains_batch", "fetch_local", "refresh"];

#[test]
fn keys_of_another_type_are_told() {
    let server = server!();
    let connection = &mut server.connection();
    for (filter, key) in one_of_each().iter().zip(["guava-0", "bf:jedis", "go-zero", "scrapy"]) {
        let copy = filter.fetch_local(connection, 1 << 20).unwrap();
        ask::<()>(connection, &["LPUSH", key, "a list"]);
        let errors = errors(filter, Some(&copy), connection);
        // All, but for those that do not care.
        assert!(errors.len() == 7 && errors.iter().all(|(name, _)| !["expire", "clear"].contains(name)));
        for (name, error) in errors {
            assert_eq!(causes(&error), [false, false, true], "{name}: {error:?}");
            assert!(error.to_string().contains("has a value of another type: "), "{error}");
            assert!(error.source().unwrap().is::<redis::RedisError>());
        }
    }
    // The cursor, too.
    ask::<()>(connection, &["DEL", "guava:cursor"]);
    ask::<()>(connection, &["LPUSH", "guava:cursor", "a list"]);
    let errors = errors(&one_of_each()[0], None, connection);
    assert_eq!(errors.len(), 8);
    assert!(errors.iter().all(|(_, error)| error.is_wrong_type()));
}

#[test]
fn cursors_that_are_none_are_told() {
    let server = server!();
    let connection = &mut server.connection();
    let filter = RedisBitmap::guava("base", "cursor", 10, 0.01).unwrap();
    let too_large = "99999999999999999999";
    for cursor in [
        "", "x", "-1", "1.5", "1e2", " 1", "0x1", "+1", "1024", too_large, "\u{fffd}",
    ] {
        ask::<()>(connection, &["SET", "cursor", cursor]);
        let text = format!("the cursor \"cursor\" is {cursor:?}, which is not a number in 0 to 1023");
        assert_all_say(&filter, connection, &text);
    }
    let keys: Vec<String> = ask(connection, &["KEYS", "*"]);
    assert_eq!(keys, ["cursor"]);
    // The last one of all is filled, and does not grow.
    ask::<()>(connection, &["SET", "cursor", "1023"]);
    filter.insert_batch(connection, &self::keys(0..100)).unwrap();
    assert!(filter.contains(connection, &key(99)).unwrap());
    assert_eq!(ask::<String>(connection, &["GET", "cursor"]), "1023");
    let copy = filter.fetch_local(connection, 1 << 20).unwrap();
    assert!(copy.bitmaps() == 1024 && copy.contains(&key(99)));
    ask::<()>(connection, &["SET", "cursor", "1022"]);
    ask::<()>(connection, &["DEL", "base-1022", "base-1023"]);
    filter.insert_batch(connection, &self::keys(100..200)).unwrap();
    assert_eq!(ask::<String>(connection, &["GET", "cursor"]), "1023");
}

/// A replica answers what it has, and takes no writes.
#[test]
fn replicas_are_read_only() {
    // By default it lets a replica wait 5 s for others.
    let server = Server::default().argument("--repl-diskless-sync-delay");
    let server = server!(server.argument("0").start());
    let connection = &mut server.connection();
    let replica = Server::default().argument("--replicaof").argument("127.0.0.1");
    let replica = server!(replica.argument(&server.port().to_string()).start());
    let mut at_replica = replica.connection();
    for filter in one_of_each() {
        filter.insert(connection, "a").unwrap();
        wait_until(|| filter.contains(&mut at_replica, "a").unwrap());
        let copy = filter.fetch_local(&mut at_replica, 1 << 20).unwrap();
        assert!(copy.contains("a"));
        for (name, error) in errors(&filter, Some(&copy), &mut at_replica) {
            assert_eq!(causes(&error), [false, true, false], "{name}: {error}");
            assert!(!READS.contains(&name));
            let text = error.to_string();
            assert!(
                text.contains("was not written, the server is a read-only replica: "),
                "{text}"
            );
            assert!(error.source().unwrap().is::<redis::RedisError>());
        }
        assert_eq!(errors(&filter, Some(&copy), &mut at_replica).len(), 5);
    }
}

/// No server, one that goes away, and the same one again.
#[test]
fn servers_that_are_not_there_are_told() {
    let mut server = server!();
    let connection = &mut server.connection();
    let filters = one_of_each();
    let copy = filters[2].fetch_local(connection, 1 << 20).unwrap();
    server.kill();
    for filter in &filters {
        // The connection that was, and a client, which makes a new one.
        let mut client = server.client();
        for connection in [&mut *connection as &mut dyn ConnectionLike, &mut client] {
            let errors = errors(filter, Some(&copy), connection);
            assert_eq!(errors.len(), 9);
            for (name, error) in errors {
                assert_eq!(causes(&error), [true, false, false], "{name}: {error:?}");
                assert!(error.source().unwrap().is::<redis::RedisError>());
            }
        }
    }
    server.restart();
    let mut client = server.client();
    assert!(!filters[2].contains(&mut client, "a").unwrap());
    assert!(filters[2].insert(&mut client, "a").unwrap());
    assert!(copy.refresh(&mut client).unwrap().changed);
}

/// A server without room refuses; what is there is still answered.
#[test]
fn full_servers_refuse() {
    let server = server!();
    let connection = &mut server.connection();
    for filter in one_of_each() {
        filter.insert(connection, "a").unwrap();
        ask::<()>(connection, &["CONFIG", "SET", "maxmemory", "1"]);
        let error = filter.insert(connection, "b").unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("the server refused an operation on") && text.contains("OOM"),
            "{text}"
        );
        assert_eq!(causes(&error), [false; 3]);
        ask::<()>(connection, &["CONFIG", "SET", "maxmemory", "0"]);
        assert!(filter.contains(connection, "a").unwrap());
    }
}

/// A filter that is not there is empty, and asking does not make it.
#[test]
fn missing_filters_are_empty() {
    let server = server!();
    let connection = &mut server.connection();
    for filter in one_of_each() {
        assert!(!filter.contains(connection, "a").unwrap());
        assert!(!lookups(&filter, connection, &keys(0..200)).contains(&true));
        assert!(!filter.expire(connection, Duration::from_secs(1)).unwrap());
        assert!(!filter.fetch_local(connection, 1 << 20).unwrap().contains("a"));
        assert_eq!(ask::<u64>(connection, &["DBSIZE"]), 0);
        filter.insert_batch::<String>(connection, &[]).unwrap();
    }
    assert_eq!(ask::<u64>(connection, &["DBSIZE"]), 0);
}

#[test]
fn filters_expire() {
    let server = server!();
    let connection = &mut server.connection();
    let remaining = |connection: &mut Connection| -> Vec<i64> {
        let mut keys: Vec<String> = ask(connection, &["KEYS", "*"]);
        keys.sort();
        keys.iter().map(|key| ask(connection, &["PTTL", key])).collect()
    };
    for filter in one_of_each() {
        ask::<()>(connection, &["FLUSHALL"]);
        filter.insert_batch(connection, &keys(0..400)).unwrap();
        assert!(remaining(connection).iter().all(|left| *left == -1));
        assert!(filter.expire(connection, Duration::from_secs(500)).unwrap());
        let left = remaining(connection);
        assert!(left.iter().all(|left| (400_000..=500_000).contains(left)), "{left:?}");
        // An insert leaves it, unless it is to set it: of all keys alike, those of a growing filter
        // too.
        filter.insert(connection, "a").unwrap();
        let left = remaining(connection);
        assert!(left.iter().all(|left| (400_000..=500_000).contains(left)), "{left:?}");
        let expiring = filter.clone().expire_on_insert(Duration::from_micros(899_999_900));
        expiring.insert(connection, "b").unwrap();
        let left = remaining(connection);
        assert!(left.iter().all(|left| (800_000..=900_000).contains(left)), "{left:?}");
        assert_eq!(expiring.insert_batch(connection, &keys(0..300)).unwrap(), 0);
        assert!(!inserts(&expiring, connection, &keys(0..300)).contains(&true));
        // No time at all is the shortest that there is.
        filter.expire(connection, Duration::ZERO).unwrap();
        wait_until(|| ask::<u64>(connection, &["DBSIZE"]) == 0);
        assert!(!filter.contains(connection, "b").unwrap());
        // Longer than Redis takes.
        filter.insert(connection, "c").unwrap();
        let expiring = filter.clone().expire_on_insert(Duration::MAX);
        for error in [
            filter.expire(connection, Duration::MAX).unwrap_err(),
            expiring.insert(connection, "d").unwrap_err(),
        ] {
            assert!(error.to_string().contains("refused"), "{error}");
        }
    }
}

/// Those that it adds later too, and with the cursor, so that no old key comes back.
#[test]
fn all_keys_of_a_growing_filter_expire_together() {
    let server = server!();
    let connection = &mut server.connection();
    let filter = RedisBitmap::guava("base", "cursor", 50, 0.02).unwrap();

    // Before there is a cursor, and after.
    for first in [10, 200] {
        filter.insert_batch(connection, &keys(0..first)).unwrap();
        assert!(filter.expire(connection, Duration::from_secs(99)).unwrap());
        for i in first..600 {
            filter.insert(connection, &key(i)).unwrap();
        }
        let cursor: u64 = ask(connection, &["GET", "cursor"]);
        assert!(cursor > 5, "{cursor}");
        let end: i64 = ask(connection, &["PTTL", "cursor"]);
        assert!((1..=99_000).contains(&end));
        for number in 0..=cursor {
            let left: i64 = ask(connection, &["PTTL", &format!("base-{number}")]);
            assert!((1..=99_000).contains(&left), "{number}: {left}");
        }
        filter.clear(connection).unwrap();
    }
    filter.insert_batch(connection, &keys(0..10)).unwrap();
    filter.expire(connection, Duration::from_millis(300)).unwrap();
    filter.insert_batch(connection, &keys(10..300)).unwrap();
    wait_until(|| ask::<u8>(connection, &["EXISTS", "cursor", "base-0", "base-1", "base-2"]) == 0);
    filter.insert_batch(connection, &keys(1000..1100)).unwrap();
    let found = lookups(&filter, connection, &keys(0..300));
    assert!(found.iter().filter(|found| **found).count() < 60);
}

#[test]
fn bitmaps_whose_cursor_is_missing_are_told() {
    let server = server!();
    let connection = &mut server.connection();
    let filter = RedisBitmap::guava("base", "cursor", 50, 0.02).unwrap();
    filter.insert_batch(connection, &keys(0..200)).unwrap();
    let cursor: String = ask(connection, &["GET", "cursor"]);
    ask::<()>(connection, &["DEL", "cursor"]);
    let text = "the cursor \"cursor\" is missing, and there is a bitmap \"base-1\": set the cursor to the number \
                of the last bitmap, or delete the bitmaps";
    assert_all_say(&filter, connection, text);
    ask::<()>(connection, &["SET", "cursor", &cursor]);
    assert!(filter.contains(connection, &key(199)).unwrap());
}

#[test]
fn times_are_rounded_up() {
    let filter = RedisBitmap::go_zero("a", 100).unwrap();
    for (nanoseconds, milliseconds) in [
        (0, 1),
        (1, 1),
        (1_000_000, 1),
        (1_000_001, 2),
        (59_999_999, 60),
        (60_000_000, 60),
    ] {
        let mut sent = Vec::new();
        let mut recorder = Mock::new(|request| {
            sent.extend(request.bytes);
            Ok(vec![Value::Int(1); request.count])
        });
        filter.expire(&mut recorder, Duration::from_nanos(nanoseconds)).unwrap();
        let text = milliseconds.to_string();
        let expected = format!("*3\r\n$7\r\nPEXPIRE\r\n$1\r\na\r\n${}\r\n{text}\r\n", text.len());
        assert_eq!(String::from_utf8(sent).unwrap(), expected);
    }
}

/// Keys that are no text have no place in sums of characters: they are absent, and cannot be
/// inserted.
#[test]
fn scrapys_keys_are_texts() {
    let server = server!();
    let connection = &mut server.connection();
    let filter = RedisBitmap::scrapy("filter", 20, 6).unwrap();
    let keys: [&[u8]; 5] = [b"a", b"\xff", b"", b"b\xc3", b"c"];
    let error = filter.insert_batch(connection, &keys).unwrap_err();
    let text = "a key for \"filter\" is not UTF-8, but its layout hashes characters";
    assert_eq!(error.to_string(), text);
    assert_eq!(ask::<u64>(connection, &["DBSIZE"]), 0);
    filter.insert_batch(connection, &["a", "c", ""]).unwrap();
    assert_eq!(lookups(&filter, connection, &keys), [true, false, true, false, true]);
    let copy = filter.fetch_local(connection, 1 << 20).unwrap();
    assert_eq!(lookups_in(&copy, &keys), [true, false, true, false, true]);
    // Keys whose parts lie one after another in memory, or not.
    assert!(filter.insert(connection, &("hel", "lo")).unwrap());
    assert!(filter.contains(connection, "hello").unwrap() && copy.contains(keys[0]) && !copy.contains(keys[1]));
    assert!(!filter.contains(connection, keys[1]).unwrap() && !filter.contains(connection, keys[3]).unwrap());
}

/// The rate of scrapy's sums beside that of as many good functions; the documentation has the
/// figures.
#[test]
fn scrapys_hash_is_bad() {
    let server = server!();
    let connection = &mut server.connection();
    // The documented sizes in a release build; otherwise a sixteenth of everything.
    let small = if cfg!(debug_assertions) { 4 } else { 0 };
    let bits = 20 - small;
    let mut rates = |kind: &str, count: u64, key: &dyn Fn(u64) -> String| {
        let count = count >> small;
        let filter = RedisBitmap::scrapy(format!("{kind} {count}"), bits, 6).unwrap();
        let inserted: Vec<String> = (0..count).map(key).collect();
        filter.insert_batch(connection, &inserted).unwrap();
        let copy = filter.fetch_local(connection, 1 << 20).unwrap();
        let inserted: BTreeSet<String> = inserted.into_iter().collect();
        let asked: Vec<String> = (count..5 * count)
            .map(key)
            .filter(|key| !inserted.contains(key))
            .collect();
        let found = lookups_in(&copy, &asked);
        let measured = found.iter().filter(|found| **found).count() as f64 / asked.len() as f64;
        // The mean for independent functions: (1 - e^(-k n / m))^k.
        let good = (1.0 - (-6.0 * count as f64 / f64::from(1u32 << bits)).exp()).powi(6);
        println!("{count} {kind} in 2^{bits} bits: {measured}, of good functions {good}");
        (measured, good)
    };
    let fingerprint = |i| {
        let (a, b, c) = (number(3 * i), number(3 * i + 1), number(3 * i + 2) as u32);
        format!("{a:016x}{b:016x}{c:08x}")
    };
    let word = |i| {
        (0..5)
            .map(|j| char::from(b'a' + (number(i) >> (8 * j)) as u8 % 26))
            .collect()
    };
    let (measured, good) = rates("fingerprints", 110_000, &fingerprint);
    assert!((0.0100..0.0107).contains(&good));
    assert!((1.02..1.3).contains(&(measured / good)), "{measured}");
    let (measured, good) = rates("fingerprints", 40_000, &fingerprint);
    assert!((1.4..5.0).contains(&(measured / good)), "{measured}");
    let (measured, _) = rates("words", 110_000, &word);
    assert!(measured > if small > 0 { 0.09 } else { 0.9 }, "{measured}");
}

/// Some value, nested where `depth` allows.
fn some_value(random: &mut u64, depth: u32) -> Value {
    let mut next = || {
        *random += 1;
        number(*random)
    };
    match next() % if depth == 0 { 8 } else { 10 } {
        0 => Value::Nil,
        1 => Value::Int((next() % 3) as i64),
        2 => Value::Int(next() as i64),
        3 => Value::BulkString(vec![next() as u8; (next() % 300) as usize]),
        4 => Value::SimpleString("x".repeat((next() % 200) as usize)),
        5 => Value::Okay,
        6 => Value::Double(0.5),
        7 => Value::Boolean(true),
        _ => {
            let len = next() % 75;
            Value::Array((0..len).map(|_| some_value(random, depth - 1)).collect())
        }
    }
}

/// Replies of the wrong kind, number, length or value are errors that quote them; nothing panics,
/// and nothing is allocated for them.
#[test]
fn replies_of_another_kind_are_told() {
    let filters = one_of_each();
    let reply = |filter: &RedisBitmap, value: &Value| {
        let mut same = Mock::new(|request| Ok(vec![value.clone(); request.count]));
        errors(filter, None, &mut same)
    };
    for filter in &filters {
        for value in [
            Value::Nil,
            Value::Okay,
            Value::Int(2),
            Value::Int(-1),
            Value::Double(1.0),
            Value::Array(vec![Value::Int(1); 3]),
            Value::Array(vec![]),
            Value::BulkString(vec![0xff; 3]),
            // Messages quote the beginning only.
            Value::SimpleString("x".repeat(5000)),
            Value::BulkString(vec![b'x'; 5000]),
        ] {
            let told = reply(filter, &value);
            for (name, error) in &told {
                let message = error.to_string();
                assert!(
                    message.starts_with("unexpected reply to ") || message.starts_with("the cursor "),
                    "{name} {value:?}: {error}"
                );
                assert!(error.source().is_none() && message.len() < 250, "{message}");
            }
            // These are no reply to any of them: neither 0 nor 1, nor one for each key.
            for name in ["contains", "contains_batch", "insert", "insert_batch"] {
                let is_told = told.iter().any(|(told, _)| *told == name);
                assert!(is_told, "{name} takes {value:?} for an answer");
            }
        }
        // Too few replies, and too many.
        for (less, more) in [(1, 0), (0, 1)] {
            let mut liar = Mock::new(|request| Ok(vec![Value::Int(1); request.count + more - less]));
            for name in ["contains", "insert", "fetch_local", "clear", "expire"] {
                let errors = errors(filter, None, &mut liar);
                assert!(errors.iter().any(|(told, _)| *told == name), "{name}");
            }
        }
    }
    // Not one of the protocol: to one command, or to any of several.
    let mut garbled = Mock::new(|_| Err(redis::parse_redis_value(b"?\r\n").unwrap_err()));
    let told = [
        filters[2].contains(&mut garbled, "a").unwrap_err(),
        RedisBitmap::open_redisson(&mut garbled, "a").unwrap_err(),
    ];
    for (error, says) in told
        .iter()
        .zip(["EVALSHA on \"go-zero\"", "pipeline on \"{a}:config\""])
    {
        let says = format!("unexpected reply to {says}: ");
        assert!(error.to_string().starts_with(&says), "{error}");
    }
    // More bytes than were asked for.
    let mut liar = Mock::new(|_| Ok(vec![Value::Int(1), Value::BulkString(vec![0; (1 << 20) + 1])]));
    let error = filters[2].fetch_local(&mut liar, 1 << 20).unwrap_err();
    let text = "unexpected reply to GETRANGE on \"go-zero\": 1048577 bytes, more than the 1048576 asked for";
    assert_eq!(error.to_string(), text);

    // The server says one byte, and sends bits beyond the layout's.
    let mut liar = Mock::new(|_| Ok(vec![Value::Int(1), Value::BulkString(vec![0xff; 1 << 20])]));
    let error = filters[2].fetch_local(&mut liar, 1 << 20).unwrap_err();
    let text =
        "the bitmap \"go-zero\" has 1048576 bytes, more than the 1126 bytes of its layout: another layout wrote it";
    assert_eq!(error.to_string(), text);

    let server = server!();
    let copies: Vec<LocalBitmap> = filters
        .iter()
        .map(|filter| filter.fetch_local(&mut server.connection(), 1 << 20).unwrap())
        .collect();
    let mut random = 0;
    for _ in 0..50 {
        for (filter, copy) in filters.iter().zip(&copies) {
            let mut server = Mock::new(|request| {
                let depth = if request.count < 10 { 2 } else { 0 };
                Ok((0..request.count).map(|_| some_value(&mut random, depth)).collect())
            });
            errors(filter, Some(copy), &mut server);
        }
    }
}

/// A key is what its funnel says, in every layout.
#[test]
fn keys_are_funnels() {
    fn same<A: Funnel + ?Sized, B: Funnel + ?Sized>(
        filter: &RedisBitmap,
        connection: &mut Connection,
        one: &A,
        other: &B,
    ) {
        assert!(filter.insert(connection, one).unwrap());
        assert!(filter.contains(connection, other).unwrap());
        assert!(filter.fetch_local(connection, 1 << 20).unwrap().contains(other));
    }
    let server = server!();
    let connection = &mut server.connection();
    for filter in one_of_each() {
        same(&filter, connection, "text", &String::from("text"));
        same(&filter, connection, &b"bytes"[..], "bytes");
        same(&filter, connection, &("a", "b"), "ab");
        same(&filter, connection, &0x41_u8, "A");
    }
}
