//! `RedisBitmap` in Redisson's layout on a real server: its bits by a second implementation, its
//! configuration, both directions, and every error.
//!
//! Redisson's jar is in no registry that tests can reach. The second implementation here follows
//! its source (`RedissonBloomFilter.java`, `misc/Hash.java`) and HighwayHash's reference code,
//! whose own test vectors check the hash.

use crate::common::number;
use crate::redis_bitmaps::{bits_of, inserts, lookups, lookups_in};
use crate::redis_server::ask;
use lanebloom_redis::{BitmapError, RedisBitmap};
use redis::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// HighwayHash's reference code (`c/highwayhash.c`), for 128 bits.
fn highway_hash_128(bytes: &[u8], key: [u64; 4]) -> (u64, u64) {
    const MUL0: [u64; 4] = [
        0xdbe6_d5d5_fe4c_ce2f,
        0xa409_3822_299f_31d0,
        0x1319_8a2e_0370_7344,
        0x243f_6a88_85a3_08d3,
    ];
    const MUL1: [u64; 4] = [
        0x3bd3_9e10_cb0e_f593,
        0xc0ac_f169_b5f1_8a8c,
        0xbe54_66cf_34e9_0c6c,
        0x4528_21e6_38d0_1377,
    ];
    let mut state = State {
        v0: std::array::from_fn(|i| MUL0[i] ^ key[i]),
        v1: std::array::from_fn(|i| MUL1[i] ^ key[i].rotate_left(32)),
        mul0: MUL0,
        mul1: MUL1,
    };

    struct State {
        v0: [u64; 4],
        v1: [u64; 4],
        mul0: [u64; 4],
        mul1: [u64; 4],
    }

    fn zipper(high: u64, low: u64, to_high: &mut u64, to_low: &mut u64) {
        *to_low = to_low.wrapping_add(
            ((low & 0xff00_0000) | (high & 0xff_0000_0000)) >> 24
                | ((low & 0xff00_0000_0000) | (high & 0xff_0000_0000_0000)) >> 16
                | (low & 0xff_0000)
                | (low & 0xff00) << 32
                | (high & 0xff00_0000_0000_0000) >> 8
                | low << 56,
        );
        *to_high = to_high.wrapping_add(
            ((high & 0xff00_0000) | (low & 0xff_0000_0000)) >> 24
                | (high & 0xff_0000)
                | (high & 0xff00_0000_0000) >> 16
                | (high & 0xff00) << 24
                | (low & 0xff_0000_0000_0000) >> 8
                | (high & 0xff) << 48
                | (low & 0xff00_0000_0000_0000),
        );
    }

    impl State {
        fn update(&mut self, lanes: [u64; 4]) {
            for (i, lane) in lanes.into_iter().enumerate() {
                self.v1[i] = self.v1[i].wrapping_add(self.mul0[i].wrapping_add(lane));
                self.mul0[i] ^= (self.v1[i] & 0xffff_ffff).wrapping_mul(self.v0[i] >> 32);
                self.v0[i] = self.v0[i].wrapping_add(self.mul1[i]);
                self.mul1[i] ^= (self.v0[i] & 0xffff_ffff).wrapping_mul(self.v1[i] >> 32);
            }
            for i in [0, 2] {
                let (low, high) = self.v0.split_at_mut(i + 1);
                zipper(self.v1[i + 1], self.v1[i], &mut high[0], &mut low[i]);
            }
            for i in [0, 2] {
                let (low, high) = self.v1.split_at_mut(i + 1);
                zipper(self.v0[i + 1], self.v0[i], &mut high[0], &mut low[i]);
            }
        }

        fn packet(&mut self, bytes: &[u8]) {
            self.update(std::array::from_fn(|i| {
                u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().unwrap())
            }));
        }
    }

    let (packets, rest) = bytes.as_chunks::<32>();
    packets.iter().for_each(|packet| state.packet(packet));
    if !rest.is_empty() {
        let len = rest.len();
        let size4 = len & !3;
        let size = len as u64;
        state.v0 = state.v0.map(|v| v.wrapping_add((size << 32) + size));
        state.v1 = state.v1.map(|v| {
            let rotate = |half: u32| u64::from(half.rotate_left(len as u32));
            rotate(v as u32) | rotate((v >> 32) as u32) << 32
        });
        let mut packet = [0; 32];
        packet[..size4].copy_from_slice(&rest[..size4]);
        if len & 16 != 0 {
            packet[28..].copy_from_slice(&rest[len - 4..]);
        } else if len & 3 != 0 {
            let (tail, mod4) = (&rest[size4..], len & 3);
            packet[16] = tail[0];
            packet[17] = tail[mod4 >> 1];
            packet[18] = tail[mod4 - 1];
        }
        state.packet(&packet);
    }
    for _ in 0..6 {
        let turned = [2, 3, 0, 1].map(|i| state.v0[i].rotate_left(32));
        state.update(turned);
    }
    let sum = |i: usize, j: usize| {
        let one = state.v0[i].wrapping_add(state.mul0[i]);
        one.wrapping_add(state.v1[j]).wrapping_add(state.mul1[j])
    };
    (sum(0, 2), sum(1, 3))
}

/// The indexes of an object's bytes, as `RedissonBloomFilter.hash` computes them.
fn indexes(bytes: &[u8], iterations: u32, size: u64) -> Vec<u64> {
    const KEY: [u64; 4] = [
        0x9e37_79b9_7f4a_7c15,
        0xf39c_c060_5ced_c834,
        0x1082_276b_f3a2_7251,
        0xf86c_6a11_d0c1_8e95,
    ];
    let (hash1, hash2) = highway_hash_128(bytes, KEY);
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

/// The reference's own vectors: under the key 0, 1, 2 ... 31 of the bytes 0, 1, 2 ...
#[test]
fn the_second_hash_is_highway_hash() {
    let key = [
        0x0706_0504_0302_0100,
        0x0f0e_0d0c_0b0a_0908,
        0x1716_1514_1312_1110,
        0x1f1e_1d1c_1b1a_1918,
    ];
    assert_eq!(
        highway_hash_128(&[], key),
        (0x0fed_268f_9d8f_fec7, 0x3356_5e76_7f09_3e6f)
    );
    assert_eq!(
        highway_hash_128(&[0], key),
        (0xd6b0_a889_3681_e7a8, 0xdc29_1df9_eb9c_dcb4)
    );
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
    let count = (-4792.0 / 7.0 * (1.0 - bits.len() as f64 / 4792.0).ln()).round() as u64;
    assert_eq!(ours.estimated_len(connection).unwrap(), count);
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
    check(other.estimated_len(connection).unwrap_err());
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
    while ask::<u8>(connection, &["EXISTS", "brief", "{brief}:config"]) > 0 {
        thread::sleep(Duration::from_millis(1));
    }
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
    let inserts: [fn(&RedisBitmap, &mut Connection); 3] = [
        |filter, connection| assert!(filter.insert(connection, "a").unwrap()),
        |filter, connection| assert_eq!(filter.insert_batch(connection, &["a", "b"]).unwrap(), 2),
        |filter, connection| {
            RedisBitmap::insert_pairs(connection, &[(filter, "a")], &mut [false]).unwrap();
        },
    ];
    for insert in inserts {
        assert!(filter.try_init(connection).unwrap());
        assert!(filter.expire(connection, Duration::from_secs(99)).unwrap());
        insert(&filter, connection);
        assert!(left(connection).iter().all(|left| (1..=99_000).contains(left)));
        ask::<()>(connection, &["PERSIST", "seen"]);
        filter.insert(connection, "c").unwrap();
        assert!(left(connection).iter().all(|left| (1..=99_000).contains(left)));
        assert!(filter.contains(connection, "a").unwrap() && filter.contains(connection, "c").unwrap());
        filter.clear(connection).unwrap();
    }
    // No old key comes back.
    filter.try_init(connection).unwrap();
    filter.expire(connection, Duration::from_millis(20)).unwrap();
    filter.insert(connection, "a").unwrap();
    while ask::<u8>(connection, &["EXISTS", "seen", "{seen}:config"]) > 0 {
        thread::sleep(Duration::from_millis(1));
    }
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
    let pairs = [(&filter, "a")];
    for error in [
        filter.contains(connection, "a").unwrap_err(),
        filter.contains_batch(connection, &["a"], &mut [false]).unwrap_err(),
        RedisBitmap::contains_pairs(connection, &pairs, &mut [false]).unwrap_err(),
        filter.insert(connection, "b").unwrap_err(),
        RedisBitmap::insert_pairs(connection, &pairs, &mut [false]).unwrap_err(),
        filter.try_init(connection).unwrap_err(),
        RedisBitmap::open_redisson(connection, "seen").unwrap_err(),
        filter.estimated_len(connection).unwrap_err(),
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
    let of = |name: &str| {
        vec![
            RedisBitmap::guava(format!("guava {name}"), format!("guava {name} cursor"), 50, 0.02).unwrap(),
            RedisBitmap::jedis(format!("jedis {name}"), 500, 0.03).unwrap(),
            RedisBitmap::go_zero(format!("go-zero {name}"), 9001).unwrap(),
            RedisBitmap::go_zero_sized(format!("go-zero sized {name}"), 500, 0.01).unwrap(),
            RedisBitmap::scrapy(format!("scrapy {name}"), 16, 6).unwrap(),
            RedisBitmap::redisson(format!("redisson {name}"), 500, 0.01).unwrap(),
        ]
    };
    let (live, next) = (of("live"), of("next"));
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
        let len = live.estimated_len(connection).unwrap();
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
