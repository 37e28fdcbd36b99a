//! `RedisCuckoo`: the answers and dumps of the real module (2.8.2), kept in
//! `tests/data/redis_cuckoo.json`; a model; what is refused. The tests of `lanebloom-redis` run it
//! beside the module itself.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lanebloom_formats::RedisCuckoo;
use lanebloom_tests::{PLACES, answers_agree, lengths_are_checked};
use proptest::prelude::*;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

fn golden() -> Json {
    serde_json::from_str(include_str!("../data/redis_cuckoo.json")).unwrap()
}

fn number(json: &Json) -> u64 {
    json.as_u64().unwrap()
}

fn texts(json: &Json) -> impl Iterator<Item = &str> {
    json.as_array().unwrap().iter().map(|text| text.as_str().unwrap())
}

/// The filter of `CF.RESERVE` with these arguments.
fn reserved(arguments: &Json) -> RedisCuckoo {
    let arguments = arguments.as_array().unwrap();
    let mut builder = RedisCuckoo::builder().capacity(number(&arguments[0]));
    for setting in arguments[1..].chunks(2) {
        let value = number(&setting[1]) as u16;
        builder = match setting[0].as_str().unwrap() {
            "BUCKETSIZE" => builder.bucket_size(value as u8),
            "MAXITERATIONS" => builder.max_iterations(value),
            "EXPANSION" => builder.expansion(value),
            other => panic!("{other}"),
        };
    }
    builder.build().unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Every answer of the module, in the order of the calls, and then its dump.
#[test]
fn answers_and_dumps_are_the_modules() {
    for case in golden()["cases"].as_array().unwrap() {
        let mut filter = reserved(&case["reserve"]);
        let (_, last) = case["added"].as_str().unwrap().rsplit_once("..'").unwrap();
        let last: u64 = last.trim_end_matches('\'').parse().unwrap();
        let refused = case["answers_not_1"].as_array().unwrap().iter();
        let refused: Vec<u64> = refused.map(|pair| number(&pair[0])).collect();
        for key in 0..=last {
            let inserted = filter.insert(&key.to_string());
            assert_eq!(inserted.is_err(), refused.contains(&key), "{key}");
            assert!(inserted.is_ok() || inserted.is_err_and(|error| error.is_full()));
        }
        let from = number(&case["addnx_from"]);
        let present: Vec<u64> = case["addnx_0"].as_array().unwrap().iter().map(number).collect();
        for key in from..from + 50 {
            let inserted = filter.insert_unique(&key.to_string());
            match inserted {
                Ok(inserted) => assert_eq!(!inserted, present.contains(&key), "{key}"),
                // Full: the module's answer is an error, or that the key is there.
                Err(error) => assert!(error.is_full() && !present.contains(&key), "{key}"),
            }
        }
        for key in texts(&case["dups"]) {
            filter.insert(key).unwrap();
        }
        let answers = case["del_answers"].as_array().unwrap();
        for (key, answer) in texts(&case["dels"]).zip(answers) {
            assert_eq!(Json::from(filter.remove(key)), *answer, "{key}");
        }
        let info = filter.info();
        let expected = &case["info"];
        for (name, figure) in [
            ("Size", info.size),
            ("Number of buckets", info.buckets),
            ("Number of filters", info.filters as u64),
            ("Number of items inserted", info.items),
            ("Number of items deleted", info.deleted),
            ("Bucket size", info.bucket_size.into()),
            ("Expansion rate", info.expansion.into()),
            ("Max iterations", info.max_iterations.into()),
        ] {
            assert_eq!(figure, number(&expected[name]), "{name} of {expected}");
        }

        let exists = &case["exists_true_in_100000_139999"];
        let keys: Vec<String> = (100_000..140_000).map(|key| key.to_string()).collect();
        let mut found = vec![false; keys.len()];
        filter.contains_batch(&keys, &mut found);
        assert!(keys.iter().map(|key| filter.contains(key)).eq(found.iter().copied()));
        answers_agree(&found[..700], 3, |_, out| filter.contains_batch(&keys[..700], out));
        let found = || (100_000..).zip(&found).filter(|(_, found)| **found).map(|(key, _)| key);
        assert_eq!(found().count() as u64, number(&exists["count"]));
        let first: Vec<u64> = exists["first"].as_array().unwrap().iter().map(number).collect();
        assert!(found().take(first.len()).eq(first));
        let list: Vec<String> = found().map(|key: u64| key.to_string()).collect();
        let digest = &exists["sha256_of_decimal_list_joined_by_comma"];
        assert_eq!(sha256(list.join(",").as_bytes()), digest.as_str().unwrap());

        let counts = case["count_of_0_1_7_absent_dups"].as_array().unwrap();
        let asked = ["0", "1", "7", "absent"].into_iter().chain(texts(&case["dups"]));
        assert!(
            asked.zip(counts).all(|(key, count)| filter.count(key) == number(count)),
            "{counts:?}"
        );

        let replies = case["scandump"].as_array().unwrap();
        let ours: Vec<(i64, Vec<u8>)> = filter.to_loadchunks().collect();
        assert_eq!(ours.len(), replies.len());
        for ((cursor, chunk), reply) in ours.iter().zip(replies) {
            assert_eq!(
                (*cursor as u64, chunk.len() as u64),
                (number(&reply["cursor"]), number(&reply["bytes"]))
            );
            assert_eq!(sha256(chunk), reply["sha256"].as_str().unwrap());
            if let Some(base64) = reply["base64"].as_str() {
                assert_eq!(STANDARD.decode(base64).unwrap(), *chunk);
            }
        }
        assert!(RedisCuckoo::from_scandump(ours, 1 << 20).unwrap() == filter);
    }
}

#[test]
fn batches_remove_as_single_calls_do() {
    let keys: Vec<String> = (0..300).map(|key| key.to_string()).collect();
    for len in [0, 1, 2, 63, 64, 65, 130, 300] {
        let [mut single, mut each @ ..] = [(); 1 + PLACES].map(|()| {
            let mut filter = RedisCuckoo::with_capacity(64).unwrap();
            filter.insert_batch(&keys[..200]).unwrap();
            filter
        });
        // Some twice, and some that are not there.
        let removed: Vec<&String> = keys.iter().rev().step_by(2).chain(&keys).take(len).collect();
        let told: Vec<bool> = removed.iter().map(|key| single.remove(*key)).collect();
        let sum = told.iter().filter(|&&removed| removed).count();
        let sums = answers_agree(&told, len % 8, |place, out| {
            each[place].remove_batch_into(&removed, out)
        });
        assert_eq!(sums, [sum; PLACES], "{len} keys");
        assert!(each.iter().all(|filter| *filter == single), "{len} keys");
        let now = single.statistics();
        assert_eq!((now.len, now.bits_per_key), (200 - sum, 8.0));
        assert_eq!(now.fill_ratio, (200 - sum) as f64 / (single.info().filters * 64) as f64);
    }
    let mut filter = RedisCuckoo::with_capacity(64).unwrap();
    lengths_are_checked(|len, out| filter.contains_batch(&["a"; 200][..len], out));
    lengths_are_checked(|len, out| _ = filter.remove_batch_into(&["a"; 200][..len], out));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Beside a map of counts: no key is missed, no count is too low, the number of keys is exact,
    /// and a dump is the filter.
    #[test]
    fn no_key_is_missed(
        capacity in 16..600u64, size in 1..8u8, iterations in 1..60u16, expansion in 1..5u16,
        steps in prop::collection::vec((0..200u32, 0..10u8), 0..600),
    ) {
        let builder = RedisCuckoo::builder().capacity(capacity).bucket_size(size);
        let mut filter = builder.max_iterations(iterations).expansion(expansion).build().unwrap();
        let mut model: HashMap<String, u64> = HashMap::new();
        for (key, step) in steps {
            let key = key.to_string();
            match step {
                0..4 => {
                    filter.insert(&key).unwrap();
                    *model.entry(key).or_default() += 1;
                }
                4 | 5 => {
                    let before = filter.contains(&key);
                    prop_assert_eq!(filter.insert_unique(&key).unwrap(), !before);
                    *model.entry(key).or_default() += u64::from(!before);
                }
                6..9 => if let Some(count) = model.get_mut(&key).filter(|count| **count > 0) {
                    prop_assert!(filter.remove(&key));
                    *count -= 1;
                },
                _ => filter.compact(),
            }
        }
        prop_assert!(model.iter().all(|(key, count)| filter.count(key) >= *count));
        prop_assert!(model.iter().all(|(key, count)| *count == 0 || filter.contains(key)));
        prop_assert_eq!(filter.info().items, model.values().sum::<u64>());
        let slots = filter.to_loadchunks().skip(1).flat_map(|(_, slots)| slots);
        prop_assert_eq!(slots.filter(|slot| *slot != 0).count() as u64, filter.info().items);
        prop_assert!(RedisCuckoo::from_scandump(filter.to_loadchunks(), 1 << 20).unwrap() == filter);
    }
}

#[test]
fn what_is_no_dump_is_refused_with_the_reason() {
    let mut filter = RedisCuckoo::builder().capacity(64).expansion(2).build().unwrap();
    for key in 0..150 {
        filter.insert(&key.to_string()).unwrap();
    }
    let replies: Vec<(i64, Vec<u8>)> = filter.to_loadchunks().collect();
    assert_eq!(replies.len(), 3);
    let read = |replies: &[(i64, Vec<u8>)]| {
        RedisCuckoo::from_scandump(replies.to_vec(), 1 << 20).map_err(|error| error.to_string())
    };
    let header = |at: usize, bytes: &[u8]| {
        let mut replies = replies.clone();
        replies[0].1[at..at + bytes.len()].copy_from_slice(bytes);
        read(&replies).unwrap_err()
    };
    let says = |at, bytes: &[u8], text: &str| assert_eq!(header(at, bytes), text);
    says(8, &[33], "33 buckets are not a power of two");
    says(8, &[0], "0 buckets are not a power of two");
    let slots = "buckets of 0 slots and 20 iterations are not in 1 to 255 and at least 1";
    says(32, &[0, 0], slots);
    says(32, &[0, 1], &slots.replace(" 0 slots", " 256 slots"));
    says(
        34,
        &[0, 0],
        "buckets of 2 slots and 0 iterations are not in 1 to 255 and at least 1",
    );
    says(36, &[3], "an expansion of 3 is not a power of two");
    says(36, &[0], "2 filters in a chain with an expansion of 0 cannot be");
    says(24, &[0], "0 filters in a chain with an expansion of 2 cannot be");
    says(24, &[64], "layer 26 of the chain has more than 4294967295 slots");
    assert!(header(24, &[20]).ends_with("more than the limit of 1048576 bytes"));
    says(24, &[3], "the dump ends after 192 bytes of 448");
    let short = read(&[(1, replies[0].1[..37].to_vec())]).unwrap_err();
    assert!(short.starts_with("the header has 37 bytes"));
    // Counts are taken as they are, and may be wrong.
    for count in [0, 0xff] {
        let mut hostile = replies.clone();
        hostile[0].1[..8].fill(count);
        hostile[0].1[16..24].fill(0xff);
        let mut filter = read(&hostile).unwrap();
        assert!(filter.to_loadchunks().eq(hostile));
        filter.insert("a").unwrap();
        assert!((0..150).all(|key| filter.remove(&key.to_string())));
        assert!(filter.statistics().false_positive_rate < 0.01);
    }
}

/// A dump of fakeredis 2.41.0 (pyprobables 0.7.0): one key in 2 buckets of 2 slots.
#[test]
fn a_dump_of_fakeredis_is_called_one() {
    let dump = [&[0x8a, 0xfd, 1, 0x86, 1][..], &[0; 27], &[2, 0, 0, 0, 20, 0, 0, 0]].concat();
    let error = |dump: &[u8]| {
        RedisCuckoo::from_scandump([(1, dump)], 1 << 20)
            .unwrap_err()
            .to_string()
    };
    let message = "the dump is of fakeredis for Python, which has a format of its own: only fakeredis loads it";
    assert_eq!(error(&dump), message);
    assert_eq!(error(&dump[1..]), "the header has 39 bytes, not 38");
}

/// A filter of `max_bytes` is read, and grows to `max_bytes`, but not beyond.
#[test]
fn max_bytes_is_the_most() {
    let keys: Vec<String> = (0..150).map(|key| key.to_string()).collect();
    let mut filter = RedisCuckoo::with_capacity(64).unwrap();
    filter.insert_batch(&keys[..10]).unwrap();
    let read = |filter: &RedisCuckoo, limit| RedisCuckoo::from_scandump(filter.to_loadchunks(), limit);
    let error = read(&filter, 319).unwrap_err().to_string();
    assert!(
        error.ends_with("320 bytes, more than the limit of 319 bytes"),
        "{error}"
    );
    for (limit, most) in [(320, 320), (639, 320), (640, 640), (959, 640), (960, 960)] {
        let mut read = read(&filter, limit).unwrap();
        assert_eq!(read.memory_bytes(), 320);
        let error = read.insert_batch(&keys[10..]);
        assert_eq!(read.memory_bytes(), most, "{limit}");
        assert_eq!(error.is_err(), most < 960, "{limit}");
    }
    filter.insert_batch(&keys[10..]).unwrap();
    assert_eq!(filter.memory_bytes(), 960);
    assert!(read(&filter, 960).unwrap() == filter && read(&filter, 959).is_err());
}

#[test]
fn builders_refuse_what_the_module_refuses() {
    let error = |builder: lanebloom_formats::rediscuckoo::Builder| builder.build().unwrap_err().to_string();
    let builder = RedisCuckoo::builder;
    assert_eq!(
        error(builder().capacity(7).bucket_size(4)),
        "a capacity of 7 is below two buckets of 4"
    );
    assert!(error(builder().bucket_size(0)).contains("both must be at least 1"));
    assert!(error(builder().max_iterations(0)).contains("both must be at least 1"));
    assert_eq!(
        error(builder().expansion(32769)),
        "an expansion of 32769 is above 32768"
    );
    assert!(error(builder().capacity(1 << 33)).contains("more than 4294967295 slots"));
    for size in [1, 2] {
        let most = builder().capacity(u64::MAX).bucket_size(size);
        assert!(error(most).contains("more than 4294967295 slots"));
    }
    let filter = builder().capacity(1000).bucket_size(3).expansion(3).build().unwrap();
    assert_eq!((filter.info().buckets, filter.info().expansion), (512, 4));
}
