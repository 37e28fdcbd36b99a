//! Filters in JSON: any text is one that is written the same way, or an error.

#![no_main]

use lanebloom::codec::Limited;
use lanebloom::{
    CompactCuckoo, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, GuavaBloom, Murmur3, ScalableBloom,
    TombstoneBloom, WindowedBloom,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Deserializer;

fuzz_target!(|text: &str| {
    if let Ok(filter) = serde_json::from_str::<GuavaBloom>(text) {
        let written = serde_json::to_string(&filter).unwrap();
        assert!(serde_json::from_str::<GuavaBloom>(&written).unwrap() == filter);
    }
    if let Ok(filter) = serde_json::from_str::<ScalableBloom>(text) {
        let written = serde_json::to_string(&filter).unwrap();
        assert!(serde_json::from_str::<ScalableBloom>(&written).unwrap() == filter);
    }
    if let Ok(filter) = serde_json::from_str::<WindowedBloom>(text) {
        let written = serde_json::to_string(&filter).unwrap();
        assert!(serde_json::from_str::<WindowedBloom>(&written).is_ok());
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
    if let Ok(filter) = serde_json::from_str::<CompactCuckoo>(text) {
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
    let limited = Limited {
        max_bytes: 1 << 10,
        hasher: Murmur3::default(),
    };
    let limited = serde::de::DeserializeSeed::deserialize(limited, &mut Deserializer::from_str(text));
    match (filter, limited) {
        (Ok(filter), Ok(same)) => assert!(filter == same && filter.memory_bytes() <= 1 << 10),
        (Err(_), Ok(_)) => panic!("only with a limit"),
        _ => {}
    }
});
