//! Dumps of RedisBloom with any changes. Each is refused, or gives a filter that writes the same
//! dump again, answers and takes keys.

#![no_main]

use arbitrary::Arbitrary;
use lanebloom_formats::RedisBloom;
use libfuzzer_sys::fuzz_target;

/// A filter, and what is changed in the replies that are its dump. A fuzzer would not find a header
/// by itself, of which a logarithm is a part.
#[derive(Arbitrary, Debug)]
struct Input {
    rate: f64,
    capacity: u8,
    expansion: u8,
    keys: u8,
    /// Replacement bytes: the reply, the offset in it, the new byte.
    bytes: Vec<(u8, u16, u8)>,
    cursors: Vec<(u8, i64)>,
    lengths: Vec<(u8, u16)>,
    swaps: Vec<(u8, u8)>,
    more: Vec<(i64, Vec<u8>)>,
}

fuzz_target!(|input: Input| {
    const LIMIT: usize = 1 << 20;
    let builder = RedisBloom::builder()
        .false_positive_rate(input.rate)
        .expected_keys(input.capacity.into());
    let builder = match input.expansion {
        0 => builder.non_scaling(),
        expansion => builder.expansion(expansion.into()),
    };
    let Ok(mut filter) = builder.build() else { return };
    for key in 0..input.keys {
        let _ = filter.insert(&[key]);
    }
    let mut replies: Vec<_> = filter.to_loadchunks().collect();
    let count = replies.len();
    for (reply, at, byte) in input.bytes {
        let chunk = &mut replies[usize::from(reply) % count].1;
        let len = chunk.len();
        chunk[usize::from(at) % len] = byte;
    }
    for (reply, cursor) in input.cursors {
        replies[usize::from(reply) % count].0 = cursor;
    }
    for (one, other) in input.swaps {
        replies.swap(usize::from(one) % count, usize::from(other) % count);
    }
    for (reply, len) in input.lengths {
        replies[usize::from(reply) % count].1.resize(len.into(), 0);
    }
    replies.extend(input.more);

    let Ok(mut loaded) = RedisBloom::from_scandump(replies.iter().map(|(cursor, chunk)| (*cursor, chunk)), LIMIT)
    else {
        return;
    };
    // The chunks may be others, but not their bits.
    let bytes = |replies: &[(i64, Vec<u8>)]| {
        replies[1..]
            .iter()
            .flat_map(|(_, chunk)| chunk.clone())
            .collect::<Vec<_>>()
    };
    let again: Vec<_> = loaded.to_loadchunks().collect();
    assert_eq!(again[0], replies[0]);
    assert_eq!(bytes(&again), bytes(&replies));
    assert!((0.0..=1.0).contains(&loaded.statistics().false_positive_rate));
    assert!(loaded.memory_bytes() <= LIMIT);
    let _ = (loaded.info(), format!("{loaded:?}"));
    let copy = loaded.try_clone().unwrap();
    assert!(copy == loaded);
    let keys: Vec<[u8; 1]> = (0..=255).map(|key| [key]).collect();
    let single = keys.iter().map(|key| loaded.contains(key));
    let mut found = Vec::new();
    loaded.contains_batch(&keys, &mut found);
    assert!(single.eq(found));
    // Whatever expansion a hostile header says, it grows up to the limit.
    for key in &keys {
        let before = loaded.contains(key);
        match loaded.insert(key) {
            Ok(inserted) => assert!(inserted != before && loaded.contains(key)),
            Err(error) => assert!(!before && !loaded.contains(key), "{error}"),
        }
        assert!(loaded.memory_bytes() <= LIMIT);
    }
    let mut flags = [false; 256];
    let mut again = copy.clone();
    let flagged = again.insert_batch_into(&keys, &mut flags);
    assert_eq!(flagged.is_ok(), copy.clone().insert_batch(&keys).is_ok());
});
