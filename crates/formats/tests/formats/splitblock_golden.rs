//! `SplitBlockBloom` without an engine: filters that pyarrow, DuckDB and pymilvus made.
//! integrations/parquet asks the engines themselves.

use crate::contract::guava::java::unhex;
use lanebloom_formats::splitblock::{Header, Milvus, block_index, check_block, hash};
use lanebloom_formats::{Hashed, SplitBlockBloom, SplitBlockView};
use serde_json::Value;

fn golden() -> Value {
    serde_json::from_str(include_str!("../data/split_block.json")).unwrap()
}

/// The hashes of keys, each by its Rust type.
fn hashes(keys: &Value, of: &str) -> Vec<u64> {
    let of_key = |key: &Value| match of {
        "i32" => hash(&i32::try_from(key.as_i64().unwrap()).unwrap()),
        "i64" => hash(&key.as_i64().unwrap()),
        "bits of f32" => hash(&u32::try_from(key.as_u64().unwrap()).unwrap()),
        "bits of f64" => hash(&key.as_u64().unwrap()),
        "str" => hash(key.as_str().unwrap()),
        "[u8; 16] in hex" => hash(&<[u8; 16]>::try_from(unhex(key)).unwrap()),
        other => panic!("no type {other}"),
    };
    keys.as_array().unwrap().iter().map(of_key).collect()
}

#[test]
fn filters_in_parquet_files_are_the_engines_to_the_byte() {
    let golden = golden();
    let cases = golden["parquet"].as_array().unwrap();
    for case in cases {
        let bytes = unhex(&case["hex"]);
        let keys = hashes(&case["keys"], case["type"].as_str().unwrap());
        let header = Header::parse(&bytes).unwrap();
        let filter = SplitBlockBloom::with_bytes(header.bitset_bytes()).unwrap();
        filter.insert_batch(Hashed::slice(&keys));
        assert_eq!(filter.to_parquet().unwrap(), bytes, "{case}");
        assert_eq!(SplitBlockBloom::from_parquet(&bytes).unwrap(), filter);
        let bitset = &bytes[header.header_bytes()..];
        let view = SplitBlockView::new(bitset).unwrap();
        let by_block = |hash| {
            let at = 32 * block_index(hash, header.blocks());
            check_block(bitset[at..][..32].try_into().unwrap(), hash)
        };
        assert!(keys.iter().all(|key| view.contains(&Hashed(*key)) && by_block(*key)));
        let absent: Vec<u64> = (0..1000_u64).map(|i| hash(&[i, 7])).collect();
        let found = absent.iter().filter(|key| by_block(**key)).count();
        assert_eq!(found, absent.iter().filter(|key| view.contains(&Hashed(**key))).count());
        assert!(found < 300, "{found} of 1000, {case}");
    }
    assert_eq!(cases.len(), 9);
}

#[test]
fn filters_for_milvus_are_pymilvus_to_the_byte() {
    let golden = golden();
    let cases = golden["mbf1 by pymilvus 3.0.2"].as_array().unwrap();
    for case in cases {
        let says = Milvus {
            keys: case["n"].as_u64().unwrap(),
            rate: case["rate"].as_f64().unwrap(),
            int64: !case["int64"].as_array().unwrap().is_empty(),
            utf8: !case["utf8"].as_array().unwrap().is_empty(),
        };
        let blob = unhex(&case["hex"]);
        let filter = SplitBlockBloom::with_bytes(blob.len() - 32).unwrap();
        let keys = [hashes(&case["int64"], "i64"), hashes(&case["utf8"], "str")].concat();
        filter.insert_batch(Hashed::slice(&keys));
        assert_eq!(filter.to_mbf1(says).unwrap(), blob, "{case}");
        let (read, said) = SplitBlockBloom::from_mbf1(&blob).unwrap();
        assert!(read == filter && said == says);
        assert!(keys.iter().all(|key| read.contains(&Hashed(*key))));
    }
    assert_eq!(cases.len(), 6);
}
