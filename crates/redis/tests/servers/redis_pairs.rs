//! Many keys over many bitmaps, in one round trip: the answers of single calls, in every layout.

use crate::common::number;
use crate::mock::Mock;
use crate::redis_server::ask;
use lanebloom_redis::RedisBitmap;
use std::time::Duration;

/// Two filters of each layout.
fn filters(name: &str) -> Vec<RedisBitmap> {
    let two = |i: usize| {
        [
            RedisBitmap::guava(format!("guava {name} {i}"), format!("cursor {name} {i}"), 20, 0.02).unwrap(),
            RedisBitmap::jedis(format!("jedis {name} {i}"), 100, 0.03).unwrap(),
            RedisBitmap::go_zero(format!("go-zero {name} {i}"), 2001).unwrap(),
            RedisBitmap::scrapy(format!("scrapy {name} {i}"), 12, 6).unwrap(),
            RedisBitmap::redisson(format!("redisson {name} {i}"), 100, 0.03).unwrap(),
        ]
    };
    [two(0), two(1)].concat()
}

#[test]
fn pairs_answer_as_single_calls() {
    let server = server!();
    let connection = &mut server.connection();
    let (paired, single) = (filters("paired"), filters("single"));
    for round in 0..6u64 {
        if round == 3 {
            // The server forgets the scripts.
            ask::<()>(connection, &["SCRIPT", "FLUSH"]);
        }
        let len = [0, 1, 7, 300, 1000, 50][round as usize];
        let picks: Vec<(usize, String)> = (0..len)
            .map(|i| {
                let pick = number(round << 32 | i);
                (pick as usize % paired.len(), format!("key {}", (pick >> 32) % 200))
            })
            .collect();
        let pairs: Vec<(&RedisBitmap, &str)> = picks.iter().map(|(i, key)| (&paired[*i], &**key)).collect();
        let mut changed = vec![true; pairs.len()];
        let sum = RedisBitmap::insert_pairs(connection, &pairs, &mut changed).unwrap();
        let expected: Vec<bool> = picks
            .iter()
            .map(|(i, key)| single[*i].insert(connection, key).unwrap())
            .collect();
        assert_eq!(changed, expected);
        assert_eq!(sum, expected.iter().filter(|new| **new).count());

        let asked: Vec<(usize, String)> = (0..500u64)
            .map(|i| (number(i) as usize % paired.len(), format!("key {}", i % 400)))
            .collect();
        let pairs: Vec<(&RedisBitmap, &str)> = asked.iter().map(|(i, key)| (&paired[*i], &**key)).collect();
        let mut found = vec![true; pairs.len()];
        RedisBitmap::contains_pairs(connection, &pairs, &mut found).unwrap();
        let expected: Vec<bool> = asked
            .iter()
            .map(|(i, key)| single[*i].contains(connection, key).unwrap())
            .collect();
        assert_eq!(found, expected);
    }
    for (paired, single) in paired.iter().zip(&single) {
        let lens = [paired, single].map(|filter| filter.statistics(connection).unwrap().len);
        assert!(lens[0] == lens[1] && lens[0] > 50, "{paired:?}: {lens:?}");
    }
}

#[test]
fn a_batch_takes_one_round_trip() {
    let server = server!();
    let connection = &mut server.connection();
    let days: Vec<RedisBitmap> = (0..100)
        .map(|day| RedisBitmap::jedis(format!("day {day}"), 100, 0.01).unwrap())
        .collect();
    let pairs: Vec<(&RedisBitmap, &str)> = days.iter().map(|day| (day, "ann")).collect();
    let mut answers = [false; 100];
    let mut counted = Mock::new(|request| request.send(connection));
    assert_eq!(
        RedisBitmap::insert_pairs(&mut counted, &pairs, &mut answers).unwrap(),
        100
    );
    RedisBitmap::contains_pairs(&mut counted, &pairs, &mut answers).unwrap();
    assert_eq!((answers, counted.requests), ([true; 100], 2));
    // Scripts that the server does not know, and configurations that are not there, cost more once.
    let mixed = filters("mixed");
    let pairs: Vec<(&RedisBitmap, &str)> = mixed.iter().map(|filter| (filter, "ann")).collect();
    let mut answers = [false; 10];
    let mut trips = || {
        let mut counted = Mock::new(|request| request.send(connection));
        RedisBitmap::insert_pairs(&mut counted, &pairs, &mut answers).unwrap();
        RedisBitmap::contains_pairs(&mut counted, &pairs, &mut answers).unwrap();
        counted.requests
    };
    assert!(trips() > 2);
    assert_eq!(trips(), 2);
    assert_eq!(answers, [true; 10]);
}

#[test]
fn pairs_expire_and_fail_as_single_calls() {
    let server = server!();
    let connection = &mut server.connection();
    let mut answers = [false; 2];
    let brief = filters("brief").into_iter();
    let brief: Vec<_> = brief
        .map(|filter| filter.expire_on_insert(Duration::from_secs(99)))
        .collect();
    // Commands beside scripts, in one pipeline.
    for key in ["a", "b"] {
        let pairs: Vec<_> = brief.iter().map(|filter| (filter, key)).collect();
        let mut new = vec![false; pairs.len()];
        assert_eq!(RedisBitmap::insert_pairs(connection, &pairs, &mut new).unwrap(), 10);
    }
    let keys: Vec<String> = ask(connection, &["KEYS", "*"]);
    // Guava's cursor is there only once the filter has grown.
    assert_eq!(keys.len(), 12, "{keys:?}");
    for key in keys {
        let seconds: i64 = ask(connection, &["TTL", &key]);
        assert!((1..=99).contains(&seconds), "{key}: {seconds}");
    }

    let plain = RedisBitmap::go_zero("plain", 1000).unwrap();
    let list = RedisBitmap::jedis("list", 100, 0.01).unwrap();
    ask::<()>(connection, &["LPUSH", "bf:list", "x"]);
    let pairs = [(&plain, "a"), (&list, "a")];
    for error in [
        RedisBitmap::contains_pairs(connection, &pairs, &mut answers).unwrap_err(),
        RedisBitmap::insert_pairs(connection, &pairs, &mut answers).unwrap_err(),
    ] {
        assert!(
            error.is_wrong_type() && error.to_string().starts_with("\"bf:list\""),
            "{error}"
        );
    }
    let [made, other] = [500, 700].map(|keys| RedisBitmap::redisson("users", keys, 0.03).unwrap());
    made.insert(connection, "a").unwrap();
    let error = RedisBitmap::contains_pairs(connection, &[(&plain, "a"), (&other, "a")], &mut answers);
    assert!(error.unwrap_err().is_other_configuration());
    // A key that has no place in its layout is not found, and not inserted.
    let texts = RedisBitmap::scrapy("texts", 12, 6).unwrap();
    let bytes = [(&texts, [0xff_u8]), (&plain, [7])];
    plain.insert(connection, &[7_u8]).unwrap();
    RedisBitmap::contains_pairs(connection, &bytes, &mut answers).unwrap();
    assert_eq!(answers, [false, true]);
    assert!(RedisBitmap::insert_pairs(connection, &bytes, &mut answers).is_err());
}

#[test]
fn a_server_that_forgets_all_is_an_error() {
    let filter = RedisBitmap::redisson("seen", 100, 0.01).unwrap();
    // Whatever was sent before.
    for reply in ["-NOSCRIPT No matching script\r\n", ":0\r\n"] {
        let parsed = |_| redis::parse_redis_value(reply.as_bytes());
        let mut forgetful = Mock::new(|request| (0..request.count).map(parsed).collect());
        let mut answers = [false];
        assert!(RedisBitmap::insert_pairs(&mut forgetful, &[(&filter, "a")], &mut answers).is_err());
        assert!(filter.insert(&mut forgetful, "a").is_err());
    }
}
