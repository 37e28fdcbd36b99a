//! Guava's streams of any bytes: both ways to read them give the same error, or the same filter,
//! which writes the same bytes again.

#![no_main]

use lanebloom_formats::GuavaBloom;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    const LIMIT: usize = 1 << 20;
    match (GuavaBloom::from_bytes(bytes), GuavaBloom::read_from(bytes, LIMIT)) {
        (Ok((filter, rest)), Ok(same)) => {
            assert!(filter == same);
            assert_eq!(filter.to_bytes(), bytes[..bytes.len() - rest.len()]);
            let copy = filter.clone();
            for key in 0..20u64 {
                let before = filter.contains(&key);
                assert_eq!(filter.insert(&key), !before);
                assert!(filter.contains(&key));
            }
            copy.insert_batch(&Vec::from_iter(0..20u64));
            assert!(copy == filter);
            assert!((0.0..=1.0).contains(&filter.current_false_positive_rate()));
            let (keys, mut flags, mut bitmap) = (Vec::from_iter(0..40u64), [false; 40], [0]);
            copy.insert_batch_flagged(&keys, &mut flags);
            copy.contains_batch(&keys, &mut flags);
            assert!(flags == [true; 40]);
            copy.contains_batch_bitmap(&keys, &mut bitmap);
            copy.for_each_absent(&keys, |i| panic!("{i} is absent"));
            assert!(bitmap == [(1 << 40) - 1] && copy.is_compatible(&filter));
            assert!(!copy.union_from(&filter).unwrap() && copy.try_clone().unwrap() == copy);
            let _ = (
                filter.estimated_len(),
                filter.bit_size(),
                filter.strategy(),
                filter.hash_functions(),
            );
            let _ = format!("{filter:?}");
        }
        (Err(one), Err(other)) => {
            let (one, other) = (one.to_string(), other.to_string());
            assert!(
                one == other || other.contains("more than the limit of"),
                "{one}\n{other}"
            );
        }
        (Ok(_), Err(error)) => assert!(error.to_string().contains("more than the limit of"), "{error}"),
        (Err(error), Ok(_)) => panic!("{error}"),
    }
});
