//! `RedisBitmap` in Redisson's layout on a real server: its bits by a second implementation, its
//! configuration, both directions, and every error.
//!
//! Redisson's jar is in no registry that tests can reach. The second implementation here follows
//! its source (`RedissonBloomFilter.java`, `misc/Hash.java`) and HighwayHash's reference code,
//! whose own test vectors check the hash.

use crate::common::number;
use lanebloom_redis::{BitmapError, RedisBitmap};
use redis::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

fn get<T: redis::FromRedisValue>(connection: &mut Connection, arguments: &[&str]) -> T {
    redis::cmd(arguments[0]).arg(&arguments[1..]).query(connection).unwrap()
}

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
        changed |= get::<u8>(connection, &["SETBIT", name, &index.to_string(), "1"]) == 0;
        // `SETBIT` takes the name as text here; the layout's names in this file are texts.
    }
    changed
}

fn bits_of(connection: &mut Connection, key: &str) -> BTreeSet<u64> {
    let bytes: Vec<u8> = get(connection, &["GET", key]);
    let bit = |i: usize| bytes[i / 8] >> (7 - i % 8) & 1 == 1;
    (0..8 * bytes.len()).filter(|i| bit(*i)).map(|i| i as u64).collect()
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
    let server = server!(bits_are_redissons_for_keys_of_every_length);
    let mut connection = server.connection();
    for len in 0..100usize {
        let bytes: Vec<u8> = (0..len).map(|i| number(i as u64) as u8).collect();
        let name = format!("bytes {len}");
        let filter = RedisBitmap::redisson(name.as_str(), 1000, 0.001).unwrap();
        assert!(filter.insert(&mut connection, &bytes[..]).unwrap());
        let expected = indexes(&bytes, filter.hash_functions().into(), filter.bit_size());
        assert_eq!(bits_of(&mut connection, &name), expected.into_iter().collect(), "{len}");
    }
    // `StringCodec` and `LongCodec`.
    for (name, key) in [("text", "grün"), ("long", "-17")] {
        let filter = RedisBitmap::redisson(name, 1000, 0.03).unwrap();
        filter.insert(&mut connection, key).unwrap();
        let expected = indexes(key.as_bytes(), 5, 7298);
        assert_eq!(bits_of(&mut connection, name), expected.into_iter().collect());
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
    let server = server!(the_configuration_is_redissons);
    let mut connection = server.connection();
    for (name, config) in [("users", "{users}:config"), ("app:{7}:users", "app:{7}:users:config")] {
        let filter = RedisBitmap::redisson(name, 1000, 0.03).unwrap();
        assert!(!filter.contains(&mut connection, "a").unwrap());
        assert_eq!(get::<u8>(&mut connection, &["EXISTS", name, config]), 0);
        assert!(filter.try_init(&mut connection).unwrap());
        assert!(!filter.try_init(&mut connection).unwrap());
        let fields: BTreeMap<String, String> = get(&mut connection, &["HGETALL", config]);
        let expected = [
            ("expectedInsertions", "1000"),
            ("falseProbability", "0.03"),
            ("hashIterations", "5"),
            ("size", "7298"),
        ];
        assert_eq!(fields, expected.map(|(name, value)| (name.into(), value.into())).into());
        assert!(filter.insert(&mut connection, "a").unwrap());
        let same = RedisBitmap::open_redisson(&mut connection, name).unwrap().unwrap();
        assert!(same.contains(&mut connection, "a").unwrap());
        // An insert makes the configuration too.
        filter.clear(&mut connection).unwrap();
        assert_eq!(get::<u8>(&mut connection, &["EXISTS", name, config]), 0);
        assert_eq!(filter.insert_batch(&mut connection, &["a", "b", "a"]).unwrap(), 2);
        assert_eq!(
            get::<BTreeMap<String, String>>(&mut connection, &["HGETALL", config]),
            fields
        );
    }
    // The other layouts write nothing.
    let plain = RedisBitmap::go_zero("plain", 1000).unwrap();
    assert!(!plain.try_init(&mut connection).unwrap());
    assert_eq!(get::<u8>(&mut connection, &["EXISTS", "plain"]), 0);
}

#[test]
fn filters_that_redisson_made_are_found_and_filled() {
    let server = server!(filters_that_redisson_made_are_found_and_filled);
    let mut connection = server.connection();
    // `tryInit(500, 0.01)`, then `add` of 300 strings.
    let fields = [
        "size",
        "4792",
        "hashIterations",
        "7",
        "expectedInsertions",
        "500",
        "falseProbability",
        "0.01",
    ];
    get::<()>(&mut connection, &[&["HSET", "{seen}:config"], &fields[..]].concat());
    for i in 0..300 {
        redisson_add(&mut connection, "seen", format!("key {i}").as_bytes(), 7, 4792);
    }
    let ours = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    let found = RedisBitmap::open_redisson(&mut connection, "seen").unwrap().unwrap();
    assert_eq!(
        (found.bit_size(), found.hash_functions()),
        (ours.bit_size(), ours.hash_functions())
    );
    let keys: Vec<String> = (0..1000).map(|i| format!("key {i}")).collect();
    let bits = bits_of(&mut connection, "seen");
    let expected: Vec<bool> = keys
        .iter()
        .map(|key| {
            indexes(key.as_bytes(), 7, 4792)
                .iter()
                .all(|index| bits.contains(index))
        })
        .collect();
    let mut answers = vec![false; keys.len()];
    for filter in [&ours, &found] {
        filter.contains_batch(&mut connection, &keys, &mut answers).unwrap();
        assert_eq!(answers, expected);
        let copy = filter.fetch_local(&mut connection, 1 << 20).unwrap();
        copy.contains_batch(&keys, &mut answers);
        assert_eq!(answers, expected);
        assert!(
            keys.iter()
                .zip(&expected)
                .all(|(key, found)| copy.contains(key) == *found)
        );
    }
    assert!(expected[..300].iter().all(|found| *found));
    // Redisson's `count`.
    let count = (-4792.0 / 7.0 * (1.0 - bits.len() as f64 / 4792.0).ln()).round() as u64;
    assert_eq!(ours.estimated_len(&mut connection).unwrap(), count);
    assert!((290..=310).contains(&count), "{count}");

    // The other way: what we insert, Redisson finds, and answers of inserts agree.
    let mut changed = vec![false; keys.len()];
    let mut copy = bits;
    let new: Vec<bool> = keys
        .iter()
        .map(|key| {
            indexes(key.as_bytes(), 7, 4792)
                .into_iter()
                .fold(false, |new, index| copy.insert(index) | new)
        })
        .collect();
    let sum = ours.insert_batch_flagged(&mut connection, &keys, &mut changed).unwrap();
    assert_eq!((changed, sum), (new.clone(), new.iter().filter(|new| **new).count()));
    assert_eq!(bits_of(&mut connection, "seen"), copy);
}

#[test]
fn another_configuration_is_an_error_and_changes_nothing() {
    let server = server!(another_configuration_is_an_error_and_changes_nothing);
    let mut connection = server.connection();
    let made = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    made.insert(&mut connection, "a").unwrap();
    let bits = bits_of(&mut connection, "seen");
    let other = RedisBitmap::redisson("seen", 600, 0.01).unwrap();
    let check = |error: BitmapError| {
        assert!(error.is_other_configuration() && !error.is_wrong_type());
        assert_eq!(
            error.to_string(),
            "the configuration \"{seen}:config\" says 4792 bits and 7 hash functions, and the caller 5751 bits and 7 hash functions"
        );
    };
    check(other.contains(&mut connection, "a").unwrap_err());
    check(other.insert(&mut connection, "b").unwrap_err());
    check(other.fetch_local(&mut connection, 1 << 20).unwrap_err());
    check(other.estimated_len(&mut connection).unwrap_err());
    assert!(!other.try_init(&mut connection).unwrap());
    assert_eq!(bits_of(&mut connection, "seen"), bits);
    // The same numbers from other settings are the same filter, as in Redisson.
    let same = RedisBitmap::redisson("seen", 500, 0.010_000_1).unwrap();
    assert_eq!(same.bit_size(), 4792);
    assert!(same.contains(&mut connection, "a").unwrap());

    // A configuration without the numbers, with others, or that is no hash.
    get::<()>(&mut connection, &["HDEL", "{seen}:config", "size"]);
    let error = made.contains(&mut connection, "a").unwrap_err();
    assert!(error.to_string().contains("no bits and 7 hash functions"), "{error}");
    assert!(RedisBitmap::open_redisson(&mut connection, "seen").is_err());
    for size in ["0", "-5", "abc", "99999999999999999999", "5000000000"] {
        get::<()>(&mut connection, &["HSET", "{seen}:config", "size", size]);
        assert!(made.insert(&mut connection, "a").unwrap_err().is_other_configuration());
        let error = RedisBitmap::open_redisson(&mut connection, "seen").unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("unexpected reply to HMGET on \"{seen}:config\""),
            "{error}"
        );
    }
    get::<()>(&mut connection, &["SET", "{seen}:config", "text"]);
    assert!(made.contains(&mut connection, "a").unwrap_err().is_wrong_type());
    assert!(made.insert(&mut connection, "a").unwrap_err().is_wrong_type());
    assert!(made.fetch_local(&mut connection, 1 << 20).unwrap_err().is_wrong_type());
}

#[test]
fn expiry_and_renames_take_the_configuration_along() {
    let server = server!(expiry_and_renames_take_the_configuration_along);
    let mut connection = server.connection();
    let made = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    assert!(!made.expire(&mut connection, Duration::from_secs(99)).unwrap());
    made.insert(&mut connection, "a").unwrap();
    assert!(made.expire(&mut connection, Duration::from_secs(99)).unwrap());
    for key in ["seen", "{seen}:config"] {
        assert!((1..=99).contains(&get::<i64>(&mut connection, &["TTL", key])), "{key}");
    }
    let expiring = RedisBitmap::redisson("brief", 500, 0.01)
        .unwrap()
        .expire_on_insert(Duration::from_millis(1));
    expiring.insert(&mut connection, "a").unwrap();
    while get::<u8>(&mut connection, &["EXISTS", "brief", "{brief}:config"]) > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(expiring.insert(&mut connection, "a").unwrap());

    let next = RedisBitmap::redisson("next", 500, 0.01).unwrap();
    assert!(
        !next
            .rename(&mut connection, &RedisBitmap::redisson("none", 500, 0.01).unwrap())
            .unwrap()
    );
    next.insert(&mut connection, "b").unwrap();
    assert!(next.rename(&mut connection, &made).unwrap());
    assert_eq!(get::<u8>(&mut connection, &["EXISTS", "next", "{next}:config"]), 0);
    assert!(made.contains(&mut connection, "b").unwrap() && !made.contains(&mut connection, "a").unwrap());
    assert_eq!(get::<i64>(&mut connection, &["TTL", "{seen}:config"]), -1);
    let other = RedisBitmap::redisson("other", 600, 0.01).unwrap();
    let error = other.rename(&mut connection, &made).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("\"other\" has a layout that differs from "),
        "{error}"
    );
    // A filter that only has its configuration takes the place of one with keys.
    next.try_init(&mut connection).unwrap();
    assert!(next.rename(&mut connection, &made).unwrap());
    assert!(!made.contains(&mut connection, "b").unwrap());
    assert!(RedisBitmap::open_redisson(&mut connection, "seen").unwrap().is_some());
}

/// The first insert after `expire` makes the bitmap; and an earlier client may have left it without
/// a time.
#[test]
fn a_bitmap_expires_with_its_configuration() {
    let server = server!(a_bitmap_expires_with_its_configuration);
    let mut connection = server.connection();
    let left =
        |connection: &mut Connection| ["seen", "{seen}:config"].map(|key| get::<i64>(connection, &["PTTL", key]));
    let filter = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    let inserts: [fn(&RedisBitmap, &mut Connection); 3] = [
        |filter, connection| assert!(filter.insert(connection, "a").unwrap()),
        |filter, connection| assert_eq!(filter.insert_batch(connection, &["a", "b"]).unwrap(), 2),
        |filter, connection| {
            RedisBitmap::insert_pairs(connection, &[(filter, "a")], &mut [false]).unwrap();
        },
    ];
    for insert in inserts {
        assert!(filter.try_init(&mut connection).unwrap());
        assert!(filter.expire(&mut connection, Duration::from_secs(99)).unwrap());
        insert(&filter, &mut connection);
        assert!(left(&mut connection).iter().all(|left| (1..=99_000).contains(left)));
        get::<()>(&mut connection, &["PERSIST", "seen"]);
        filter.insert(&mut connection, "c").unwrap();
        assert!(left(&mut connection).iter().all(|left| (1..=99_000).contains(left)));
        assert!(filter.contains(&mut connection, "a").unwrap() && filter.contains(&mut connection, "c").unwrap());
        filter.clear(&mut connection).unwrap();
    }
    // No old key comes back.
    filter.try_init(&mut connection).unwrap();
    filter.expire(&mut connection, Duration::from_millis(20)).unwrap();
    filter.insert(&mut connection, "a").unwrap();
    while get::<u8>(&mut connection, &["EXISTS", "seen", "{seen}:config"]) > 0 {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(filter.try_init(&mut connection).unwrap());
    assert!(!filter.contains(&mut connection, "a").unwrap());
    filter.insert(&mut connection, "a").unwrap();
    assert_eq!(left(&mut connection), [-1, -1]);
}

#[test]
fn a_bitmap_without_its_configuration_is_an_error() {
    let server = server!(a_bitmap_without_its_configuration_is_an_error);
    let mut connection = server.connection();
    let filter = RedisBitmap::redisson("seen", 500, 0.01).unwrap();
    filter.insert(&mut connection, "a").unwrap();
    let copy = filter.fetch_local(&mut connection, 1 << 20).unwrap();
    let bits = bits_of(&mut connection, "seen");
    get::<()>(&mut connection, &["DEL", "{seen}:config"]);
    let to = RedisBitmap::redisson("to", 500, 0.01).unwrap();
    let pairs = [(&filter, "a")];
    let connection = &mut connection;
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
    let server = server!(filters_of_every_layout_are_rebuilt_beside_readers);
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
    let mut connection = server.connection();
    for (live, next) in live.iter().zip(&next) {
        live.insert_batch(
            &mut connection,
            &(0..200).map(|i| format!("always {i}")).collect::<Vec<_>>(),
        )
        .unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut connection = server.connection();
                let mut rounds = 0;
                while rounds < 3 || !done.load(std::sync::atomic::Ordering::Acquire) {
                    assert!(live.contains(&mut connection, "always 7").unwrap(), "{live:?}");
                    rounds += 1;
                }
            });
            for round in 0..5 {
                // Each time fewer keys, so that a growing filter has fewer bitmaps.
                let keys = (0..200 - 40 * round).map(|i| format!("always {i}"));
                let keys: Vec<String> = keys.chain([format!("round {round}")]).collect();
                next.insert_batch(&mut connection, &keys).unwrap();
                assert!(next.rename(&mut connection, live).unwrap());
                assert!(live.contains(&mut connection, &keys[keys.len() - 1]).unwrap());
                assert!(!next.contains(&mut connection, "always 7").unwrap());
            }
            done.store(true, std::sync::atomic::Ordering::Release);
            reader.join().unwrap();
        });
        let len = live.estimated_len(&mut connection).unwrap();
        let expected = if format!("{live:?}").contains("Scrapy") {
            20..=60
        } else {
            37..=45
        };
        assert!(expected.contains(&len), "{live:?}: {len}");
        assert!(!live.contains(&mut connection, "always 190").unwrap());
    }
    let keys: BTreeSet<String> = get(&mut connection, &["KEYS", "*next*"]);
    assert_eq!(keys, BTreeSet::new());
    for (live, other) in live.iter().zip(live.iter().skip(1)) {
        assert!(live.rename(&mut connection, other).is_err());
    }
}
