//! Filters in JSON: any text gives an error, or a filter that is written the same way.

#![no_main]

use lanebloom::codec::{FromSnapshot, Limited};
use lanebloom::{
    ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, Murmur3, ScalableBloom, TombstoneBloom, WindowedBloom,
};
use lanebloom_formats::GuavaBloom;
use libfuzzer_sys::fuzz_target;
use serde::de::DeserializeSeed;
use serde_json::Deserializer;

const LIMIT: usize = 1 << 12;

/// The filter within the limit.
fn limited<F: FromSnapshot<Hasher = Murmur3>>(text: &str) -> Option<F> {
    let limited = Limited::<F>::new(LIMIT, Murmur3::default());
    limited.deserialize(&mut Deserializer::from_str(text)).ok()
}

fuzz_target!(|text: &str| {
    if let Ok(filter) = serde_json::from_str::<GuavaBloom>(text) {
        let written = serde_json::to_string(&filter).unwrap();
        assert!(serde_json::from_str::<GuavaBloom>(&written).unwrap() == filter);
    }
    if let Ok(filter) = serde_json::from_str::<ScalableBloom>(text) {
        let written = serde_json::to_string(&filter).unwrap();
        assert!(serde_json::from_str::<ScalableBloom>(&written).unwrap() == filter);
    }
    if let Some(filter) = limited::<WindowedBloom>(text) {
        assert!(filter.memory_bytes() <= LIMIT);
        let written = serde_json::to_string(&filter).unwrap();
        assert!(limited::<WindowedBloom>(&written).is_some());
    }
    if let Ok(filter) = serde_json::from_str::<CountingBloom>(text) {
        let written = serde_json::to_string(&filter).unwrap();
        assert!(serde_json::from_str::<CountingBloom>(&written).unwrap() == filter);
    }
    if let Ok(filter) = serde_json::from_str::<TombstoneBloom>(text) {
        let written = serde_json::to_string(&filter).unwrap();
        assert!(serde_json::from_str::<TombstoneBloom>(&written).unwrap() == filter);
    }
    // These are written exactly as they were, Base64 having one form.
    if let Ok(filter) = serde_json::from_str::<CuckooFilter>(text) {
        assert_eq!(serde_json::to_string(&filter).unwrap(), text.trim());
    }
    if let Ok(filter) = serde_json::from_str::<DLeftFilter>(text) {
        assert_eq!(serde_json::to_string(&filter).unwrap(), text.trim());
    }
    let filter = serde_json::from_str::<ConcurrentBloom>(text);
    if let Ok(filter) = &filter {
        let written = serde_json::to_string(filter).unwrap();
        assert!(serde_json::from_str::<ConcurrentBloom>(&written).unwrap() == *filter);
    }
    let limited = limited::<ConcurrentBloom>(text).ok_or(());
    match (filter, limited) {
        (Ok(filter), Ok(same)) => assert!(filter == same && filter.memory_bytes() <= LIMIT),
        (Err(_), Ok(_)) => panic!("only with a limit"),
        _ => {}
    }
});
