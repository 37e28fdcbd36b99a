//! Dumps of Redis' cuckoo filter of any bytes: an error, or a filter within the limit that writes
//! the same dump again, takes keys and gives them back.
//!
//! Half of the inputs get a header with settings from the input, since hardly any other is one.

#![no_main]

use lanebloom_formats::RedisCuckoo;
use lanebloom_formats::redisbloom::Loader;
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let Some((&[choice, buckets, size, filters, expansion], rest)) = input.split_first_chunk() else {
        return;
    };
    let (mut header, slots) = rest.split_at(rest.len().min(38));
    let mut made = header.to_vec();
    if choice & 1 == 1 && made.len() == 38 {
        made[8..16].copy_from_slice(&(1u64 << (buckets % 8)).to_le_bytes());
        made[24..32].copy_from_slice(&u64::from(filters % 8).to_le_bytes());
        made[32..34].copy_from_slice(&u16::from(size % 16).to_le_bytes());
        made[35] = 0;
        made[36..38].copy_from_slice(&(u16::from(expansion % 2) << (expansion % 4)).to_le_bytes());
        header = &made;
    }
    let mut loader = Loader::<RedisCuckoo>::new(LIMIT);
    let Ok(()) = loader.load(1, header) else {
        return;
    };
    // Slots from the input, and zeros after it.
    let mut slots = slots.to_vec();
    slots.resize(slots.len().max(LIMIT), 0);
    let mut cursor = 1;
    let mut at = 0;
    while !loader.is_complete() {
        // A chunk does not go beyond its filter: the longest that is taken.
        let most = slots.len() - at;
        let Some(len) = (0..17)
            .map(|shift| most >> shift)
            .find(|&len| len > 0 && loader.load(cursor + len as i64, &slots[at..at + len]).is_ok())
        else {
            return;
        };
        (at, cursor) = (at + len, cursor + len as i64);
    }
    let mut filter = loader.finish().unwrap();
    assert!(filter.memory_bytes() <= LIMIT);
    let dump: Vec<(i64, Vec<u8>)> = filter.to_loadchunks().collect();
    assert_eq!(dump[0].1, header);
    assert!(RedisCuckoo::from_scandump(dump.clone(), LIMIT).unwrap() == filter);
    let written: Vec<u8> = dump.into_iter().skip(1).flat_map(|(_, chunk)| chunk).collect();
    assert_eq!(written, slots[..written.len()]);

    let keys: Vec<String> = (0..50).map(|key| key.to_string()).collect();
    let inserted = match filter.insert_batch(&keys) {
        Ok(()) => keys.len(),
        Err(error) => error.inserted(),
    };
    let mut found = vec![false; keys.len()];
    filter.contains_batch(&keys, &mut found);
    assert!(found[..inserted].iter().all(|found| *found));
    filter.compact();
    assert!(
        keys[..inserted]
            .iter()
            .all(|key| filter.contains(key) && filter.count(key) > 0)
    );
    assert!((0.0..=1.0).contains(&filter.statistics().false_positive_rate));
    assert!(keys[..inserted].iter().all(|key| filter.remove(key)));
    assert!(filter.memory_bytes() <= LIMIT);
    let _ = (filter.info(), format!("{filter:?}"));
});
