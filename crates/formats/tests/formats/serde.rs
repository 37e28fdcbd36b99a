//! A `GuavaBloom` and a `SparkBloom` as parts of other values.

use lanebloom_formats::{GuavaBloom, SparkBloom};
use serde::{Deserialize, Serialize, Serializer};

#[derive(Serialize, Deserialize)]
struct State {
    name: String,
    java: GuavaBloom,
    spark: SparkBloom,
}

#[test]
fn a_filter_is_a_part_of_other_values() {
    let java = GuavaBloom::with_capacity(100, 0.01).unwrap();
    java.insert("a");
    let spark = SparkBloom::from_keys(["a"], 0.01).unwrap();
    let state = State {
        name: "x".into(),
        java,
        spark,
    };
    let assert_same = |same: State| assert!(same.java == state.java && same.name == "x" && same.spark == state.spark);
    assert_same(serde_json::from_str(&serde_json::to_string_pretty(&state).unwrap()).unwrap());
    assert_same(serde_json::from_value(serde_json::to_value(&state).unwrap()).unwrap());
    let bytes = postcard::to_allocvec(&state).unwrap();
    assert!(bytes.len() < state.java.to_bytes().len() + state.spark.to_bytes().len() + 8);
    assert_same(postcard::from_bytes(&bytes).unwrap());
}

#[test]
fn what_is_no_filter_is_an_error() {
    struct Bytes<'a>(&'a [u8]);
    impl Serialize for Bytes<'_> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(self.0)
        }
    }
    fn check<T: for<'de> Deserialize<'de>>(filter: &[u8]) {
        let longer = [filter, b"more"].concat();
        for (bytes, is_one) in [(filter, true), (&longer, false), (&filter[..20], false)] {
            let binary = postcard::to_allocvec(&Bytes(bytes)).unwrap();
            assert_eq!(postcard::from_bytes::<T>(&binary).is_ok(), is_one);
        }
    }
    check::<GuavaBloom>(&GuavaBloom::with_capacity(100, 0.01).unwrap().to_bytes());
    check::<SparkBloom>(&SparkBloom::with_capacity(100, 0.01).unwrap().to_bytes());
}
