//! Single inserts, lookups and batches never allocate. Reading and growing allocate a bounded
//! amount and survive a refusal. The allocator itself counts.
#![expect(unsafe_code, reason = "the allocator that counts")]

#[path = "../../../tests/alloc/counting.rs"]
mod counting;

use counting::{BYTES, LIMIT, allocations};
use lanebloom_formats::guava::Guava;
use lanebloom_formats::guava::UnencodedChars;
use lanebloom_formats::internal::parquet_chunks;
use lanebloom_formats::spark::Spark;
use lanebloom_formats::{JavaBloom, JavaFormat, JavaKey, RedisBloom, RedisCuckoo};
use std::error::Error;

/// `put` inserts the string, and other keys that are made of it.
fn never_allocates_for_a_key<F: JavaFormat>(put: impl Fn(&JavaBloom<F>, &String) -> bool)
where
    String: JavaKey<F>,
    i64: JavaKey<F>,
{
    // Within the caches and beyond.
    for size in [1000, 3_000_000] {
        let mut filter = JavaBloom::<F>::with_capacity(size, 0.01).unwrap();
        let keys: Vec<String> = (0..1000).map(|i| format!("key {i}")).collect();
        let mut found = vec![false; keys.len()];
        let count = allocations(|| {
            for key in &keys {
                assert!(put(&filter, key) || filter.contains(key));
            }
            assert_eq!(filter.insert_batch(&keys) + filter.exclusive().insert_batch(&keys), 0);
            assert_eq!(filter.insert_batch_into(&keys, &mut found), 0);
            filter.contains_batch(&keys, &mut found);
            (&filter).extend(0..1000i64);
            assert!(filter.statistics().len > 0);
        });
        assert_eq!(count, 0);
        assert!(found.iter().all(|&found| found));
    }
}

#[test]
fn filters_of_guava_and_spark_never_allocate_for_a_key() {
    never_allocates_for_a_key::<Guava>(|filter, key| filter.insert(&UnencodedChars(key)) & filter.insert(key));
    never_allocates_for_a_key::<Spark>(|filter, key| filter.insert(key));
}

/// A stream that says it is large, and is not, takes little memory; one that is takes three times
/// as much at most.
#[cfg(feature = "std")]
#[test]
fn a_stream_takes_memory_as_its_bytes_arrive() {
    fn takes<F: JavaFormat>(header: &[u8]) {
        for (arrived, most) in [
            (0, 65 << 10),
            (1000, 65 << 10),
            (100_000, 400_000),
            (1_000_000, 4_000_000),
        ] {
            let stream = [header, &vec![0xa5; arrived]].concat();
            let before = BYTES.get();
            let read = JavaBloom::<F>::read_from(&stream[..], usize::MAX);
            assert!(read.unwrap_err().is_truncated());
            assert!(JavaBloom::<F>::from_bytes(&stream).unwrap_err().is_truncated());
            let bytes = BYTES.get() - before;
            // All that was allocated, also what was freed meanwhile.
            assert!(bytes <= most, "{bytes} bytes for {arrived}");
        }
    }
    takes::<Guava>(&[1, 7, 0x7f, 0xff, 0xff, 0xff]);
    takes::<Spark>(&[0, 0, 0, 1, 0, 0, 0, 7, 0x7f, 0xff, 0xff, 0xff]);
}

#[test]
fn a_redisbloom_filter_allocates_only_to_grow() {
    // Within the caches and beyond.
    for size in [1000, 3_000_000] {
        let mut filter = RedisBloom::with_capacity(size, 0.01).unwrap();
        let keys: Vec<String> = (0..1000).map(|i| format!("key {i}")).collect();
        let mut found = vec![false; keys.len()];
        let count = allocations(|| {
            for key in &keys[..500] {
                assert!(filter.insert(key).unwrap() || filter.contains(key));
            }
            assert!(filter.insert_batch(&keys).unwrap() > 490);
            assert_eq!(filter.insert_batch_into(&keys, &mut found), Ok(0));
            filter.contains_batch(&keys, &mut found);
            assert!(filter.statistics().false_positive_rate < 0.01);
            assert!(filter.info().items > 990);
        });
        assert_eq!(count, 0);
        assert!(found.iter().all(|&found| found));
    }
    // Without the memory for that nothing changes.
    let mut filter = RedisBloom::with_capacity(1000, 0.01).unwrap();
    let keys: Vec<String> = (0..2000).map(|i| i.to_string()).collect();
    LIMIT.set(1500);
    let error = filter.insert_batch(&keys).unwrap_err();
    LIMIT.set(usize::MAX);
    assert!((1000..1100).contains(&error.inserted()) && !error.is_full());
    assert_eq!(
        error.to_string(),
        format!(
            "key {} was not inserted: the filter could not grow: the allocation of 3136 bytes failed",
            error.inserted()
        )
    );
    assert_eq!((filter.info().items, filter.info().filters), (1000, 1));
    assert!(filter.insert_batch(&keys).is_ok() && filter.info().filters == 2);
}

#[test]
fn a_refused_insert_allocates_nothing() {
    let mut bloom = RedisBloom::builder().expected_keys(1).non_scaling().build().unwrap();
    bloom.insert("a").unwrap();
    assert_eq!(allocations(|| assert!(bloom.insert("b").unwrap_err().is_full())), 0);
    for expansion in [0, 1] {
        let builder = RedisCuckoo::builder().capacity(4).expansion(expansion);
        let mut cuckoo = builder.build().unwrap();
        while cuckoo.insert("a").is_ok() {}
        assert_eq!(allocations(|| assert!(cuckoo.insert("a").unwrap_err().is_full())), 0);
    }
}

/// Before the header was checked nothing is allocated for what it says, and then the bits that it
/// says.
#[test]
fn a_dump_takes_memory_within_the_limit() {
    let filter = RedisBloom::with_capacity(1_000_000, 0.01).unwrap();
    let replies: Vec<_> = filter.to_loadchunks().collect();
    let bits = replies[1].1.len();
    let memory = filter.memory_bytes();
    for (limit, most) in [(0, 200), (memory - 1, 200), (memory, memory + 1000)] {
        let before = BYTES.get();
        let header = replies.iter().take(1).map(|(cursor, header)| (*cursor, header));
        let error = RedisBloom::from_scandump(header, limit).unwrap_err();
        let bytes = BYTES.get() - before;
        assert_eq!(error.is_truncated(), limit == memory);
        assert!(bytes <= most, "{bytes} bytes for a limit of {limit}");
    }
    LIMIT.set(1000);
    let error = RedisBloom::from_scandump(replies.iter().map(|(cursor, chunk)| (*cursor, chunk)), usize::MAX);
    let copy = filter.try_clone();
    LIMIT.set(usize::MAX);
    let error = error.unwrap_err();
    let line = bits.next_multiple_of(64);
    let message = format!("the filter was not read: the allocation of {line} bytes failed");
    assert!(error.to_string() == message && error.source().is_some() && !error.is_truncated());
    assert!(copy.unwrap_err().is_out_of_memory());
}

/// A layer counts with its allocation: a header of 38 bytes can declare 65,535 layers of one slot.
#[test]
fn many_layers_take_memory_within_the_limit() {
    let mut filter = RedisCuckoo::builder().capacity(2).bucket_size(1).build().unwrap();
    filter.insert("a").unwrap();
    let (_, mut header) = filter.to_loadchunks().next().unwrap();
    header[24..32].copy_from_slice(&65_535_u64.to_le_bytes());
    for limit in [200_000, 30_000_000] {
        let before = BYTES.get();
        let error = RedisCuckoo::from_scandump([(1, &header)], limit).unwrap_err();
        let bytes = BYTES.get() - before;
        assert_eq!(error.is_truncated(), limit > 200_000, "{error}");
        assert!(bytes < limit, "{bytes} bytes for a limit of {limit}");
    }
}

/// A schema of a million elements, a byte each.
#[test]
fn a_footer_takes_no_memory_for_its_schema() {
    // Field 2, a list of 2^20 structs.
    let footer = [&[0x29, 0xfc, 0x80, 0x80, 0x40][..], &[0; 1 << 20]].concat();
    let before = BYTES.get();
    let error = parquet_chunks(&footer, "a").unwrap_err();
    assert_eq!(
        error.to_string(),
        "the file's schema has more columns than its groups say"
    );
    let bytes = BYTES.get() - before;
    assert!(bytes < 1000, "{bytes} bytes");
}
