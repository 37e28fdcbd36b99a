//! `RedisBitmap` in Redisson's layout on a real server: its bits by a second implementation, its
//! configuration, both directions, and every error.
//!
//! Redisson's jar is in no registry that tests can reach. The second implementation here follows
//! its source (`RedissonBloomFilter.java`, `misc/Hash.java`).

use crate::common::{number, wait_until};
use crate::redis_bitmaps::{bits_of, every_layout, inserts, lookups, lookups_in};
use crate::redis_server::ask;
use highway::{HighwayHash, HighwayHasher, Key};
use lanebloom_redis::{BitmapError, RedisBitmap};
use redis::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The indexes of an object's bytes, as `RedissonBloomFilter.hash` computes them.
fn indexes(bytes: &[u8], iterations: u32, size: u64) -> Vec<u64> {
    const KEY: [u64; 4] = [
        0x9e37_79b9_7f4a_7c15,
        0xf39c_c060_5ced_c834,
        0x1082_276b_f3a2_7251,
        0xf86c_6a11_d0c1_8e95,
    ];
    let [hash1, hash2] = HighwayHasher::new(Key(KEY)).hash128(bytes);
    let mut hash = hash1;
    (0..iterations)
        .map(|i| {
            let index = (hash & i64::MAX as u64) % size;
            hash = hash.wrapping_add(if i % 2 == 0 { hash2 } else { hash1 });
            index
        })
        .collect()
}

/// `RedissonBloomFilter.add`, over the same connection.
fn redisson_add(connection: &mut Connection, name: &str, bytes: &[u8], iterations: u32, size: u64) -> bool {
    let mut changed = false;
    for index in indexes(bytes, iterations, size) {
        changed |= ask::<u8>(connection, &["SETBIT", name, &index.to_string(), "1"]) == 0;
        // `SETBIT` takes the name as text here; the layout's names in this file are texts.
    }
    changed
}

/// The reference's code (`c/highwayhash.c`) gave these: its own vector for one byte 0 under the key
/// 0, 1, 2 ... 31, and a sum over the bytes 0, 1, 2 ... of every length below 100.
#[test]
fn the_hash_is_highway_hash() {
    let hash = |len: u8| {
        let key = std::array::from_fn(|i| u64::from_le_bytes(std::array::from_fn(|j| (8 * i + j) as u8)));
        HighwayHasher::new(Key(key)).hash128(&Vec::from_iter(0..len))
    };
    assert_eq!(hash(1), [0xd6b0_a889_3681_e7a8, 0xdc29_1df9_eb9c_dcb4]);
    let mut sum = [0u64; 2];
    for hash in (0..100).map(hash) {
        sum = [0, 1].map(|i| sum[i].rotate_left(1) ^ hash[i]);
    }
    assert_eq!(sum, [0xafc3_b35f_e64f_bcd6, 0xb4e8_cc46_f7e7_76f4]);
}

#[test]
fn bits_are_redissons_for_keys_of_every_length() {
    let server = server!();
    let connection = &mut server.connection();
    for len in 0..100usize {
        let bytes: Vec<u8> = (0..len).map(|i| number(i as u64) as u8).collect();
        let name = format!("bytes {len}");
        let filter = RedisBitmap::redisson(name.as_str(), 1000, 0.001).unwrap();
        assert!(filter.insert(connection, &bytes[..]).unwrap());
        let expected = indexes(&bytes, filter.hash_functions().into(), filter.bit_size());
        assert_eq!(bits_of(connection, &name), expected.into_iter().collect(), "{len}");
    }
    // `StringCodec` and `LongCodec`.
    for (name, key) in [("text", "grün"), ("long", "-17")] {
        let filter = RedisBitmap::redisson(name, 1000, 0.03).unwrap();
        filter.insert(connection, key).unwrap();
        let expected = indexes(key.as_bytes(), 5, 7298);
        assert_eq!(bits_of(connection, name), expected.into_iter().collect());
    }
}

/// `optimalNumOfBits` and `optimalNumOfHashFunctions` of its source.
#[test]
fn sizes_are_redissons() {
    for (keys, rate, bits, functions) in [
        (55_000_000, 0.03, 401_414_246, 5),
        (1000, 0.03, 7298, 5),
        (1000, 0.01, 9585, 7),
        (1, 0.5, 1, 1),
        (100, 1e-9, 4313, 30),
    ] {
        let filter = RedisBitmap::redisson("a", keys, rate).unwrap();
        assert_eq!(
            (filter.bit_size(), filter.hash_functions()),
            (bits, functions),
            "{keys} at {rate}"
        );
    }
    let error = |keys, rate| RedisBitmap::redisson("a", keys, rate).unwrap_err().to_string();
    assert!(error(0, 0.01).starts_with("Redisson has no filter for 0 keys"));
    assert!(error(10, 1.0).contains("is not between 0 and 1"));
    assert!(error(10, 0.0).contains("is not between 0 and 1"));
    assert!(error(1, 0.9999).contains("no bit at all"));
    assert_eq!(
        error(1_000_000_000, 0.01),
        "a filter of 9585058377 bits is beyond Redisson's limit of 4294967294 bits"
    );
    assert!(error(1, 1e-100).contains("hash functions, more than"));
}

#[test]
fn the_configuration_is_redissons() {
    let server = server!();
    let connection = &mut server.connection();
    for (name, config) in [("users", "{users}:config"), ("app:{7}:users", "app:{7}:users:config")] {
        let filter = RedisBitmap::redisson(name, 1000, 0.03).unwrap();
        assert!(!filter.contains(connection, "a").unwrap());
        assert_eq!(ask::<u8>(connection, &["EXISTS", name, config]), 0);
        assert!(filter.try_init(connection).unwrap());
        assert!(!filter.try_init(connection).unwrap());
        let fields: BTreeMap<String, String> = ask(connection, &["HGETALL", config]);
        let expected = [
            ("expectedInsertions", "1000"),
            ("falseProbability", "0.03"),
            ("hashIterations", "5"),
            ("size", "7298"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name.into(), value.into())).into());
        assert!(filter.insert(connection, "a").unwrap());
        let same = RedisBitmap::open_redisson(connection, name).unwrap().unwrap();
        assert!(same.contains(connection, "a").unwrap());
        // An insert makes the configuration too.
        filter.clear(connection).unwrap();
        assert_eq!(ask::<u8>(connection, &["EXISTS", name, config]), 0);
        assert_eq!(filter.insert_batch(connection, &["a", "b", "a"]).unwrap(), 2);
        let again: BTreeMap<String, String> = ask(connection, &["HGETALL", config]);
        assert_eq!(again, fields);
    }
    // The other layouts write nothing.
    let plain = RedisBitmap::go_zero("plain", 1000).unwrap();
    assert!(!plain.try_init(connection).unwrap());
    assert_eq!(ask::<u8>(connection, &["EXISTS", "plain"]), 0);
}

#[test]
fn filters_that_redisson_made_are_found_and_filled() {
    let server = server!();
    let connection = &mut server.connection();
    // `tryInit(500, 0.01)`, then `add` of 300 strings.
    let fields = "HSET {seen}:config size 4792 hashIterations 7 expectedInsertions 500 falseProbability 0.01";
    ask::<()>(connection, &Vec::from_iter(fields.split(' ')));
    for i in 0..300 {
        redisson_add(connection, "seen", format!("key {i}").as_bytes(), 7, 4792);
    }
    let ours = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    let found = RedisBitmap::open_redisson(connection, "seen").unwrap().unwrap();
    assert_eq!(
        (found.bit_size(), found.hash_functions()),
        (ours.bit_size(), ours.hash_functions())
    );
    let keys: Vec<String> = (0..1000).map(|i| format!("key {i}")).collect();
    let bits = bits_of(connection, "seen");
    let indexes = |key: &String| indexes(key.as_bytes(), 7, 4792);
    let is_found = |key| indexes(key).iter().all(|index| bits.contains(index));
    let expected: Vec<bool> = keys.iter().map(is_found).collect();
    for filter in [&ours, &found] {
        assert_eq!(lookups(filter, connection, &keys), expected);
        let copy = filter.fetch_local(connection, 1 << 20).unwrap();
        assert_eq!(lookups_in(&copy, &keys), expected);
    }
    assert!(expected[..300].iter().all(|found| *found));
    // Redisson's `count`.
    let count = (-4792.0 / 7.0 * (1.0 - bits.len() as f64 / 4792.0).ln()).round() as usize;
    let (now, fill) = (ours.statistics(connection).unwrap(), bits.len() as f64 / 4792.0);
    assert_eq!((now.len, now.fill_ratio), (count, fill));
    assert!((now.false_positive_rate - fill.powi(7)).abs() < 1e-12, "{now:?}");
    assert!((290..=310).contains(&count), "{count}");

    // The other way: what we insert, Redisson finds, and answers of inserts agree.
    let mut copy = bits;
    let mut insert = |key| {
        indexes(key)
            .into_iter()
            .fold(false, |new, index| copy.insert(index) | new)
    };
    let new: Vec<bool> = keys.iter().map(&mut insert).collect();
    assert_eq!(inserts(&ours, connection, &keys), new);
    assert_eq!(bits_of(connection, "seen"), copy);
}

#[test]
fn another_configuration_is_an_error_and_changes_nothing() {
    let server = server!();
    let connection = &mut server.connection();
    let made = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    made.insert(connection, "a").unwrap();
    let bits = bits_of(connection, "seen");
    let other = RedisBitmap::redisson("seen", 600, 0.01).unwrap();
    let check = |error: BitmapError| {
        assert!(error.is_other_configuration() && !error.is_wrong_type());
        assert_eq!(
            error.to_string(),
            "the configuration \"{seen}:config\" says 4792 bits and 7 hash functions, and the caller 5751 bits and 7 hash functions"
        );
    };
    check(other.contains(connection, "a").unwrap_err());
    check(other.insert(connection, "b").unwrap_err());
    check(other.fetch_local(connection, 1 << 20).unwrap_err());
    check(other.statistics(connection).unwrap_err());
    assert!(!other.try_init(connection).unwrap());
    assert_eq!(bits_of(connection, "seen"), bits);
    // The same numbers from other settings are the same filter, as in Redisson.
    let same = RedisBitmap::redisson("seen", 500, 0.010_000_1).unwrap();
    assert_eq!(same.bit_size(), 4792);
    assert!(same.contains(connection, "a").unwrap());

    // A configuration without the numbers, with others, or that is no hash.
    ask::<()>(connection, &["HDEL", "{seen}:config", "size"]);
    let error = made.contains(connection, "a").unwrap_err();
    assert!(error.to_string().contains("no bits and 7 hash functions"), "{error}");
    assert!(RedisBitmap::open_redisson(connection, "seen").is_err());
    for size in ["0", "-5", "abc", "99999999999999999999", "5000000000"] {
        ask::<()>(connection, &["HSET", "{seen}:config", "size", size]);
        assert!(made.insert(connection, "a").unwrap_err().is_other_configuration());
        let error = RedisBitmap::open_redisson(connection, "seen").unwrap_err().to_string();
        assert!(
            error.starts_with("unexpected reply to HMGET on \"{seen}:config\""),
            "{error}"
        );
    }
    ask::<()>(connection, &["SET", "{seen}:config", "text"]);
    assert!(made.contains(connection, "a").unwrap_err().is_wrong_type());
    assert!(made.insert(connection, "a").unwrap_err().is_wrong_type());
    assert!(made.fetch_local(connection, 1 << 20).unwrap_err().is_wrong_type());
}

#[test]
fn expiry_and_renames_take_the_configuration_along() {
    let server = server!();
    let connection = &mut server.connection();
    let made = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    assert!(!made.expire(connection, Duration::from_secs(99)).unwrap());
    made.insert(connection, "a").unwrap();
    assert!(made.expire(connection, Duration::from_secs(99)).unwrap());
    for key in ["seen", "{seen}:config"] {
        assert!((1..=99).contains(&ask::<i64>(connection, &["TTL", key])), "{key}");
    }
    let expiring = RedisBitmap::redisson("brief", 500, 0.01)
        .unwrap()
        .expire_on_insert(Duration::from_millis(1));
    expiring.insert(connection, "a").unwrap();
    wait_until(|| ask::<u8>(connection, &["EXISTS", "brief", "{brief}:config"]) == 0);
    assert!(expiring.insert(connection, "a").unwrap());

    let [next, none] = ["next", "none"].map(|name| RedisBitmap::redisson(name, 500, 0.01).unwrap());
    assert!(!next.rename(connection, &none).unwrap());
    next.insert(connection, "b").unwrap();
    assert!(next.rename(connection, &made).unwrap());
    assert_eq!(ask::<u8>(connection, &["EXISTS", "next", "{next}:config"]), 0);
    assert!(made.contains(connection, "b").unwrap() && !made.contains(connection, "a").unwrap());
    assert_eq!(ask::<i64>(connection, &["TTL", "{seen}:config"]), -1);
    let other = RedisBitmap::redisson("other", 600, 0.01).unwrap();
    let error = other.rename(connection, &made).unwrap_err().to_string();
    assert!(
        error.starts_with("\"other\" has a layout that differs from "),
        "{error}"
    );
    // A filter that only has its configuration takes the place of one with keys.
    next.try_init(connection).unwrap();
    assert!(next.rename(connection, &made).unwrap());
    assert!(!made.contains(connection, "b").unwrap());
    assert!(RedisBitmap::open_redisson(connection, "seen").unwrap().is_some());
}

/// The first insert after `expire` makes the bitmap; and an earlier client may have left it without
/// a time.
#[test]
fn a_bitmap_expires_with_its_configuration() {
    let server = server!();
    let connection = &mut server.connection();
    let left =
        |connection: &mut Connection| ["seen", "{seen}:config"].map(|key| ask::<i64>(connection, &["PTTL", key]));
    let filter = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    assert!(filter.try_init(connection).unwrap());
    assert!(filter.expire(connection, Duration::from_secs(99)).unwrap());
    assert!(filter.insert(connection, "a").unwrap());
    assert!(left(connection).iter().all(|left| (1..=99_000).contains(left)));
    ask::<()>(connection, &["PERSIST", "seen"]);
    filter.insert(connection, "c").unwrap();
    assert!(left(connection).iter().all(|left| (1..=99_000).contains(left)));
    assert!(filter.contains(connection, "a").unwrap() && filter.contains(connection, "c").unwrap());
    filter.clear(connection).unwrap();
    // No old key comes back.
    filter.try_init(connection).unwrap();
    filter.expire(connection, Duration::from_millis(20)).unwrap();
    filter.insert(connection, "a").unwrap();
    wait_until(|| ask::<u8>(connection, &["EXISTS", "seen", "{seen}:config"]) == 0);
    assert!(filter.try_init(connection).unwrap());
    assert!(!filter.contains(connection, "a").unwrap());
    filter.insert(connection, "a").unwrap();
    assert_eq!(left(connection), [-1, -1]);
}

#[test]
fn a_bitmap_without_its_configuration_is_an_error() {
    let server = server!();
    let connection = &mut server.connection();
    let filter = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    filter.insert(connection, "a").unwrap();
    let copy = filter.fetch_local(connection, 1 << 20).unwrap();
    let bits = bits_of(connection, "seen");
    ask::<()>(connection, &["DEL", "{seen}:config"]);
    let to = RedisBitmap::redisson("to", 500, 0.01).unwrap();
    for error in [
        filter.contains(connection, "a").unwrap_err(),
        filter.insert(connection, "b").unwrap_err(),
        filter.try_init(connection).unwrap_err(),
        RedisBitmap::open_redisson(connection, "seen").unwrap_err(),
        filter.statistics(connection).unwrap_err(),
        filter.fetch_local(connection, 1 << 20).unwrap_err(),
        copy.refresh(connection).unwrap_err(),
        filter.rename(connection, &to).unwrap_err(),
    ] {
        assert!(error.is_unconfigured() && !error.is_other_configuration());
        assert_eq!(
            error.to_string(),
            "the bitmap \"seen\" has no configuration \"{seen}:config\", so it is a part of a filter that is gone: \
             `clear` removes it"
        );
    }
    assert_eq!(bits_of(connection, "seen"), bits);
    filter.clear(connection).unwrap();
    assert!(!filter.contains(connection, "a").unwrap());
    assert!(filter.insert(connection, "a").unwrap());
}

/// Readers go on while filters of every layout are rebuilt under another name: they find the old
/// keys or the new ones, and no moment without.
#[test]
fn filters_of_every_layout_are_rebuilt_beside_readers() {
    let server = server!();
    let (live, next) = (every_layout("live"), every_layout("next"));
    let always = |keys| (0..keys).map(|i| format!("always {i}")).collect::<Vec<String>>();
    let connection = &mut server.connection();
    for (live, next) in live.iter().zip(&next) {
        live.insert_batch(connection, &always(200)).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut connection = server.connection();
                let mut rounds = 0;
                while rounds < 3 || !done.load(Ordering::Acquire) {
                    assert!(live.contains(&mut connection, "always 7").unwrap(), "{live:?}");
                    rounds += 1;
                }
            });
            for round in 0..5 {
                // Each time fewer keys, so that a growing filter has fewer bitmaps.
                let newest = format!("round {round}");
                next.insert_batch(connection, &always(200 - 40 * round)).unwrap();
                next.insert(connection, &newest).unwrap();
                assert!(next.rename(connection, live).unwrap());
                assert!(live.contains(connection, &newest).unwrap());
                assert!(!next.contains(connection, "always 7").unwrap());
            }
            done.store(true, Ordering::Release);
            reader.join().unwrap();
        });
        let len = live.statistics(connection).unwrap().len;
        let expected = if format!("{live:?}").contains("Scrapy") {
            20..=60
        } else {
            37..=45
        };
        assert!(expected.contains(&len), "{live:?}: {len}");
        assert!(!live.contains(connection, "always 190").unwrap());
    }
    let keys: BTreeSet<String> = ask(connection, &["KEYS", "*next*"]);
    assert_eq!(keys, BTreeSet::new());
    for (live, other) in live.iter().zip(live.iter().skip(1)) {
        assert!(live.rename(connection, other).is_err());
    }
}
