//! `Loader` beside a model, for the dumps of both filters: chunks that are left out, repeated, cut
//! or out of order, and those that are not.

use lanebloom_formats::redisbloom::{Dumped, Loader};
use lanebloom_formats::{RedisBloom, RedisCuckoo};

type Replies = Vec<(i64, Vec<u8>)>;

/// The result of a dump with a good header, of layers of these lengths: the bytes so far, and why
/// they are refused.
fn expected(unit: usize, layers: &[usize], replies: &Replies) -> Result<(), String> {
    let total: usize = layers.iter().sum();
    // The cursor before, 0 before the header.
    let (mut last, mut ended) = (0_i64, false);
    let incomplete = |last: i64| match last {
        0 => "the dump ends before its header".to_owned(),
        _ => format!("the dump ends after {} bytes of {total}", last - 1),
    };
    for (cursor, chunk) in replies {
        let (len, before) = (chunk.len(), last as usize - usize::from(last > 0));
        let is_whole = last > 0 && before == total;
        let right = if last == 0 { 1 } else { last.saturating_add(len as i64) };
        let mut end = 0;
        let layer = layers.iter().position(|len| {
            end += len;
            end > before
        });
        if (*cursor, len, ended) == (0, 0, false) {
            if !is_whole {
                return Err(incomplete(last));
            }
            ended = true;
        } else if is_whole {
            return Err(format!("cursor {cursor} with {len} bytes came after the end"));
        } else if *cursor != right {
            return Err(format!("cursor {cursor} came with a chunk whose cursor is {right}"));
        } else if last > 0 && (len == 0 || len % unit != 0) {
            return Err(format!(
                "a chunk of {len} bytes is not of a positive multiple of {unit}"
            ));
        } else if last > 0 && len > end - before {
            let (left, layer) = (end - before, layer.unwrap());
            return Err(format!(
                "a chunk of {len} bytes is more than the {left} that layer {layer} of the chain has left"
            ));
        } else {
            last = *cursor;
        }
    }
    if last > 0 && last as usize - 1 == total {
        Ok(())
    } else {
        Err(incomplete(last))
    }
}

/// The replies with one of them changed in every way.
fn changed(replies: &Replies) -> Vec<Replies> {
    let mut all = vec![replies.clone(), Vec::new()];
    let mut change = |work: &mut dyn FnMut(&mut Replies)| {
        let mut replies = replies.clone();
        work(&mut replies);
        all.push(replies);
    };
    for i in 0..replies.len() {
        let (cursor, chunk) = &replies[i];
        change(&mut |replies| replies.truncate(i));
        change(&mut |replies| drop(replies.remove(i)));
        change(&mut |replies| replies.insert(i, (*cursor, chunk.clone())));
        change(&mut |replies| replies.insert(i, (0, Vec::new())));
        change(&mut |replies| replies.push((*cursor, chunk.clone())));
        change(&mut |replies| replies.push((cursor + 8, vec![0; 8])));
        change(&mut |replies| replies[..=i].rotate_right(1));
        for other in [0, -1, i64::MIN, i64::MAX, cursor - 1, cursor + 1, cursor + 8] {
            change(&mut |replies| replies[i].0 = other);
        }
        // The last one has no bytes, and the first one is the header.
        for len in (0..=chunk.len() + 40).filter(|_| (1..replies.len() - 1).contains(&i)) {
            change(&mut |replies| replies[i].1.resize(len, 0));
            change(&mut |replies| replies[i] = (cursor - chunk.len() as i64 + len as i64, vec![0; len]));
        }
    }
    all
}

/// `unit` divides the length of each chunk, of up to `most` bytes.
fn check<F: Dumped + PartialEq>(filter: &F, whole: impl Iterator<Item = (i64, Vec<u8>)>, unit: usize, most: usize) {
    let whole: Replies = whole.collect();
    let layers: Vec<usize> = whole[1..].iter().map(|(_, bytes)| bytes.len()).collect();
    assert!(layers.len() > 2);
    let (mut replies, mut cursor) = (whole[..1].to_vec(), 1);
    for chunk in whole[1..].iter().flat_map(|(_, bytes)| bytes.chunks(most)) {
        cursor += chunk.len() as i64;
        replies.push((cursor, chunk.to_vec()));
    }
    replies.push((0, Vec::new()));
    for replies in changed(&replies) {
        let mut loader = Loader::<F>::new(1 << 20);
        let loaded = replies
            .iter()
            .try_for_each(|(cursor, chunk)| loader.load(*cursor, chunk));
        let read = loaded.and_then(|()| loader.finish()).map_err(|error| {
            assert_eq!(error.is_truncated(), error.to_string().starts_with("the dump ends"));
            error.to_string()
        });
        assert_eq!(
            read.as_ref().map(|_| ()).map_err(String::clone),
            expected(unit, &layers, &replies)
        );
    }
    // An error changes nothing: the right chunk is taken after it.
    let mut loader = Loader::<F>::new(1 << 20);
    for (i, (cursor, chunk)) in replies.iter().enumerate() {
        assert!(loader.load(cursor + 8, chunk).is_err());
        assert_eq!(loader.load(0, &[]).is_ok(), i + 1 == replies.len());
        assert_eq!(loader.is_complete(), i + 1 == replies.len());
        if *cursor > 0 {
            loader.load(*cursor, chunk).unwrap();
            assert_eq!(loader.cursor(), *cursor);
        }
    }
    assert!(loader.load(0, &[]).is_err());
    assert!(loader.finish().unwrap() == *filter);
}

#[test]
fn a_dump_is_taken_chunk_by_chunk_or_refused_with_the_reason() {
    let keys: Vec<String> = (0..150).map(|key| key.to_string()).collect();
    let mut bloom = RedisBloom::with_capacity(10, 0.01).unwrap();
    bloom.insert_batch(&keys[..60]).unwrap();
    check(&bloom, bloom.to_loadchunks(), 8, 64);
    check(&bloom, bloom.to_loadchunks(), 8, 24);
    let mut cuckoo = RedisCuckoo::builder().capacity(16).expansion(2).build().unwrap();
    cuckoo.insert_batch(&keys).unwrap();
    check(&cuckoo, cuckoo.to_loadchunks(), 1, 7);
}
