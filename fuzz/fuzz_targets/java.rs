//! Streams of any bytes, read as Guava's and as Spark's: both ways to read them give the same
//! error, or the same filter, which writes the same bytes again.

#![no_main]

use lanebloom::{Absent, Bitmap};
use lanebloom_formats::guava::Guava;
use lanebloom_formats::spark::Spark;
use lanebloom_formats::{JavaBloom, JavaFormat, JavaKey};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 20;

fn read<F: JavaFormat>(bytes: &[u8])
where
    i64: JavaKey<F>,
    [u8; 1]: JavaKey<F>,
{
    match (
        JavaBloom::<F>::from_bytes(bytes),
        JavaBloom::<F>::read_from(bytes, LIMIT),
    ) {
        (Ok((mut filter, rest)), Ok(same)) => {
            assert!(filter == same);
            let len = bytes.len() - rest.len();
            assert_eq!(filter.to_bytes(), bytes[..len]);
            assert_eq!(JavaBloom::<F>::stream_len(bytes).unwrap(), len as u64);
            let (copy, mut alone) = (filter.clone(), filter.clone());
            for key in 0..20i64 {
                let before = filter.contains(&key);
                assert_eq!(filter.insert(&key), !before);
                assert!(filter.contains(&key));
            }
            let keys = Vec::from_iter(0..20i64);
            assert_eq!(copy.insert_batch(&keys), alone.exclusive().insert_batch(&keys));
            assert!(copy == filter && alone == filter);
            assert!((0.0..=1.0).contains(&filter.statistics().false_positive_rate));
            let (keys, mut flags, mut bitmap) = (Vec::from_iter((0..40u8).map(|i| [i])), [false; 40], [0]);
            copy.insert_batch_into(&keys, &mut flags);
            copy.contains_batch(&keys, &mut flags);
            assert!(flags == [true; 40]);
            copy.contains_batch(&keys, Bitmap(&mut bitmap));
            copy.contains_batch(&keys, Absent(|i| panic!("{i} is absent")));
            assert!(bitmap == [(1 << 40) - 1] && copy.with(&filter).is_ok());
            assert!(!copy.union_from(&filter).unwrap() && copy.try_clone().unwrap() == copy);
            assert!(!filter.exclusive().intersection_from(&copy).unwrap());
            let _ = (filter.statistics().len, filter.bit_size(), filter.hash_functions());
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
}

fuzz_target!(|bytes: &[u8]| {
    read::<Guava>(bytes);
    read::<Spark>(bytes);
});
