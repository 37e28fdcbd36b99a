//! `RedisCuckoo` beside the real module in a real server: the same answers, false positives
//! included, the same growth, the same dumps, both ways.
//!
//! Needs `redis-server`, and the module, which `ci/fetch/redis_module.sh` fetches.

use crate::common::number;
use crate::mock::meanwhile;
use crate::redis_server::{ask, bloom_server};
use lanebloom_formats::RedisCuckoo;
use lanebloom_redis::Transfer;
use redis::{Connection, RedisResult, cmd};

/// Keys of 1 to 30 bytes of any value, some of them equal.
fn key(i: u64) -> Vec<u8> {
    let i = if i % 7 == 6 { i / 2 } else { i };
    let bytes = (0..=number(i) % 30).map(|j| (number(i ^ j << 40) >> 8) as u8);
    if i % 3 == 0 {
        i.to_string().into_bytes()
    } else {
        bytes.collect()
    }
}

fn call<T: redis::FromRedisValue>(connection: &mut Connection, command: &str, key: &[u8]) -> RedisResult<T> {
    cmd(command).arg("f").arg(key).query(connection)
}

fn scandump(connection: &mut Connection, key: &str) -> Vec<(i64, Vec<u8>)> {
    let (mut replies, mut cursor) = (Vec::new(), 0);
    loop {
        let reply: (i64, Vec<u8>) = cmd("CF.SCANDUMP").arg(key).arg(cursor).query(connection).unwrap();
        if reply.0 == 0 {
            return replies;
        }
        cursor = reply.0;
        replies.push(reply);
    }
}

#[track_caller]
fn assert_same(connection: &mut Connection, ours: &RedisCuckoo) {
    let theirs = scandump(connection, "f");
    assert_eq!(theirs[0], ours.to_loadchunks().next().unwrap());
    assert!(theirs.into_iter().eq(ours.to_loadchunks()));
    let info: Vec<(String, u64)> = cmd("CF.INFO").arg("f").query(connection).unwrap();
    let figures = ours.info();
    let expected = [
        ("Size", figures.size),
        ("Number of buckets", figures.buckets),
        ("Number of filters", figures.filters as u64),
        ("Number of items inserted", figures.items),
        ("Number of items deleted", figures.deleted),
        ("Bucket size", figures.bucket_size.into()),
        ("Expansion rate", figures.expansion.into()),
        ("Max iterations", figures.max_iterations.into()),
    ];
    assert!(
        info.iter().map(|(name, figure)| (&name[..], *figure)).eq(expected),
        "{info:?}\n{expected:?}"
    );
}

/// (capacity, bucket size, iterations, expansion)
const SETTINGS: [(u64, u8, u16, u16); 9] = [
    (64, 2, 20, 1),
    (2, 1, 1, 1),
    (1000, 1, 20, 1),
    (300, 3, 50, 2),
    (256, 4, 500, 1),
    (64, 2, 20, 3),
    (16, 8, 100, 4),
    (510, 255, 20, 1),
    (1000, 2, 20, 0),
];

#[test]
fn answers_growth_and_dumps_are_the_modules() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    for (round, (capacity, size, iterations, expansion)) in SETTINGS.into_iter().enumerate() {
        let builder = RedisCuckoo::builder().capacity(capacity).bucket_size(size);
        let mut ours = builder.max_iterations(iterations).expansion(expansion).build().unwrap();
        ask::<()>(connection, &["DEL", "f"]);
        let settings = format!("BUCKETSIZE {size} MAXITERATIONS {iterations} EXPANSION {expansion}");
        let reserve = format!("CF.RESERVE f {capacity} {settings}");
        ask::<()>(connection, &Vec::from_iter(reserve.split(' ')));
        for i in 0..2500u64 {
            let at = i + 10_000 * round as u64;
            match number(at) % 10 {
                0..=4 => match call::<bool>(connection, "CF.ADD", &key(at)) {
                    Ok(answer) => assert!(answer && ours.insert(&key(at)).is_ok()),
                    Err(error) => {
                        let text = ours.insert(&key(at)).unwrap_err().to_string();
                        let pair = (error.to_string(), text);
                        let full = pair.0.contains("is full") && pair.1.contains("does not grow");
                        let long = pair.0.contains("expansions reached") && pair.1.contains("32 filters");
                        assert!(full || long, "{pair:?}");
                    }
                },
                5 | 6 => match call::<bool>(connection, "CF.ADDNX", &key(at)) {
                    Ok(answer) => assert_eq!(ours.insert_unique(&key(at)), Ok(answer)),
                    Err(_) => assert!(ours.insert_unique(&key(at)).unwrap_err().is_full()),
                },
                7 | 8 => {
                    // Mostly a key that is there.
                    let key = key(10_000 * round as u64 + number(at) % (i + 1));
                    let removed: bool = call(connection, "CF.DEL", &key).unwrap();
                    assert_eq!(ours.remove(&key), removed);
                }
                _ => {
                    let key = key(at + 5);
                    assert_eq!(call(connection, "CF.EXISTS", &key), Ok(ours.contains(&key)));
                    assert_eq!(call(connection, "CF.COUNT", &key), Ok(ours.count(&key)));
                }
            }
            if i % 500 == 499 {
                assert_same(connection, &ours);
            }
        }
        // Present and absent keys: false positives are the same too.
        let keys: Vec<Vec<u8>> = (0..5000).map(|i| key(i + 10_000 * round as u64)).collect();
        let theirs: Vec<bool> = cmd("CF.MEXISTS").arg("f").arg(&keys).query(connection).unwrap();
        let mut found = vec![false; keys.len()];
        ours.contains_batch(&keys, &mut found);
        assert_eq!(found, theirs);
        for key in &keys {
            assert_eq!(call(connection, "CF.COUNT", key), Ok(ours.count(key)));
        }

        // Compacting, and both ways through the dump.
        ask::<()>(connection, &["CF.COMPACT", "f"]);
        ours.compact();
        assert_same(connection, &ours);
        assert!(RedisCuckoo::fetch(connection, "f", 1 << 30).unwrap() == ours);
        ask::<()>(connection, &["DEL", "g"]);
        ours.store(connection, "g").unwrap();
        assert!(scandump(connection, "g").into_iter().eq(ours.to_loadchunks()));
        // It works on, on both sides.
        ask::<()>(connection, &["RENAME", "g", "f"]);
        for i in 0..200 {
            let removed: bool = call(connection, "CF.DEL", &key(i)).unwrap();
            assert_eq!(ours.remove(&key(i)), removed);
            if call::<bool>(connection, "CF.ADD", &key(i)).is_ok() {
                ours.insert(&key(i)).unwrap();
            } else {
                assert!(ours.insert(&key(i)).unwrap_err().is_full());
            }
        }
        assert_same(connection, &ours);
    }
}

/// An insert may move a fingerprint into a chunk that was sent already. A filter without keys has
/// no dump.
#[test]
fn a_filter_that_changes_while_it_is_read_is_an_error() {
    let server = server!(bloom_server());
    let mut other = server.connection();
    for (command, key) in [("CF.ADD", "b"), ("CF.DEL", "a"), ("CF.EXISTS", "a")] {
        for keys in [&["a"][..], &["a", "c"]] {
            // The header, a chunk, and the header again.
            for at in 1..=3 {
                ask::<()>(&mut other, &["FLUSHALL"]);
                for key in keys {
                    assert!(call::<bool>(&mut other, "CF.ADD", key.as_bytes()).unwrap());
                }
                let mut connection = meanwhile(&server, |request| {
                    if request == at {
                        call::<bool>(&mut server.connection(), command, key.as_bytes())?;
                    }
                    Ok(())
                });
                let fetched = RedisCuckoo::fetch(&mut connection, "f", 1 << 20);
                let context = format!("{command} before request {at} of {keys:?}");
                if at > 1 && command != "CF.EXISTS" {
                    let text = "\"f\": the filter was replaced or changed while it was read: fetch it again";
                    assert_eq!(fetched.unwrap_err().to_string(), text, "{context}");
                } else if command == "CF.DEL" && keys.len() == 1 {
                    let error = fetched.unwrap_err();
                    assert!(error.is_empty() && !error.is_missing(), "{context}: {error}");
                } else {
                    assert_eq!(fetched.unwrap().contains(key), command != "CF.DEL", "{context}");
                }
            }
        }
    }
}

/// Several chunks: a filter of more than 16 MiB.
#[test]
fn a_filter_of_several_chunks() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let mut ours = RedisCuckoo::with_capacity(1 << 25).unwrap();
    let keys: Vec<String> = (0..2000).map(|key| key.to_string()).collect();
    ours.insert_batch(&keys).unwrap();
    assert_eq!(ours.to_loadchunks().count(), 3);
    ours.store(connection, "f").unwrap();
    assert_same(connection, &ours);
    assert!(RedisCuckoo::fetch(connection, "f", ours.memory_bytes()).unwrap() == ours);
    let found: Vec<bool> = cmd("CF.MEXISTS").arg("f").arg(&keys).query(connection).unwrap();
    assert!(found.iter().all(|found| *found));
}
