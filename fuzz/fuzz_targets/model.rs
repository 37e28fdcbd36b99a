//! Any sequence of operations on filters, beside the sets of the keys that they hold.
//!
//! A key of the set is always found, and an insert of it changes nothing. What the set does not have may be found, for
//! these filters are small; but then every call must say so, one by one and in batches, of the filter and of its copies.

#![no_main]

use arbitrary::Arbitrary;
use lanebloom::{BloomView, ConcurrentBloom, GuavaBloom, ScalableBloom, WindowedBloom};
use libfuzzer_sys::fuzz_target;
use std::collections::{HashSet, VecDeque};

#[derive(Arbitrary, Debug)]
struct Input {
    words: u8,
    blocks: u8,
    seed: u32,
    operations: Vec<Operation>,
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Insert(u16),
    Contains(u16),
    InsertBatch(Vec<u16>),
    InsertBatchMut(Vec<u16>),
    /// Many keys, so that they are inserted in bulk: the first, and how many.
    InsertMany(u16, u16),
    ContainsBatch(Vec<u16>),
    /// Of the other filter's keys.
    Union,
    Swap,
    Clear,
    Snapshot,
    Delta,
    Guava(Vec<u16>),
    Growing(Vec<u16>),
    Forgetting(Vec<u16>),
    Rotate,
}

/// A filter and the keys that it holds.
struct Pair {
    filter: ConcurrentBloom,
    keys: HashSet<u16>,
}

impl Pair {
    fn insert(&mut self, keys: &[u16], insert: impl FnOnce(&mut ConcurrentBloom, &[u16]) -> usize) {
        let one_by_one = self.filter.clone();
        let mut expected = 0;
        for key in keys {
            let before = one_by_one.contains(key);
            assert_eq!(one_by_one.insert(key), !before);
            assert!(before || !self.keys.contains(key));
            expected += usize::from(!before);
            self.keys.insert(*key);
        }
        assert_eq!(insert(&mut self.filter, keys), expected);
        assert!(self.filter == one_by_one);
    }

    fn look_up(&self, keys: &[u16]) {
        let bytes = self.filter.to_bytes();
        let (view, _) = BloomView::from_bytes(&bytes).unwrap();
        let mut found = [vec![false; keys.len()], vec![true; keys.len()]];
        self.filter.contains_batch(keys, &mut found[0]);
        view.contains_batch(keys, &mut found[1]);
        assert_eq!(found[0], found[1]);
        let mut absent = Vec::new();
        self.filter.absent_batch(keys, |i| absent.push(i));
        for (i, (key, found)) in keys.iter().zip(&found[0]).enumerate() {
            assert!(*found || !self.keys.contains(key), "{key} was inserted");
            assert_eq!(self.filter.contains(key), *found);
            assert_eq!(absent.contains(&i), !*found);
        }
    }
}

fuzz_target!(|input: Input| {
    let builder = ConcurrentBloom::builder()
        .memory_budget(64 * (usize::from(input.blocks) + 1))
        .words_per_key(1 << (input.words % 4))
        .seed(input.seed);
    let empty = builder.build().unwrap();
    let new = || Pair {
        filter: empty.clone(),
        keys: HashSet::new(),
    };
    let (mut one, mut other) = (new(), new());
    let mut growing = ScalableBloom::builder().initial_capacity(10).build().unwrap();
    let mut growing_keys = HashSet::new();
    // Keys of each of the last generations.
    let mut forgetting = WindowedBloom::builder()
        .expected_keys(100)
        .generations(3)
        .build()
        .unwrap();
    let mut windows = VecDeque::from([HashSet::new()]);
    let guava = GuavaBloom::create(100, 0.01).unwrap();
    let mut guava_keys = HashSet::new();
    for operation in input.operations {
        match operation {
            Operation::Insert(key) => one.insert(&[key], |filter, keys| usize::from(filter.insert(&keys[0]))),
            Operation::Contains(key) => one.look_up(&[key]),
            Operation::InsertBatch(keys) => one.insert(&keys, |filter, keys| filter.insert_batch(keys)),
            Operation::InsertBatchMut(keys) => one.insert(&keys, |filter, keys| filter.insert_batch_mut(keys)),
            Operation::InsertMany(first, len) => {
                let keys: Vec<u16> = (0..len % 4096).map(|i| first.wrapping_add(i)).collect();
                one.insert(&keys, |filter, keys| filter.insert_batch(keys));
            }
            Operation::ContainsBatch(keys) => one.look_up(&keys),
            Operation::Union => {
                let before = one.filter.clone();
                let changed = one.filter.union_from(&other.filter).unwrap();
                assert_eq!(changed, one.filter != before);
                one.keys.extend(&other.keys);
            }
            Operation::Swap => std::mem::swap(&mut one, &mut other),
            Operation::Clear => {
                one.filter.clear();
                one.keys.clear();
                assert!(one.filter == empty);
            }
            Operation::Snapshot => {
                let bytes = one.filter.to_bytes();
                let (copy, rest) = ConcurrentBloom::from_bytes(&bytes).unwrap();
                assert!(copy == one.filter && rest.is_empty());
                one.filter = copy;
            }
            Operation::Delta => {
                let delta = one.filter.delta_since(&other.filter).unwrap();
                let union = other.filter.clone();
                union.union_from(&one.filter).unwrap();
                let changed = other.filter.apply_deltas(&delta).unwrap();
                assert_eq!(changed, delta.len() > 64);
                assert!(other.filter == union);
                other.keys.extend(&one.keys);
            }
            Operation::Guava(keys) => {
                guava.insert_batch(&keys);
                guava_keys.extend(keys);
                let (copy, _) = GuavaBloom::from_bytes(&guava.to_bytes()).unwrap();
                assert!(copy == guava && guava_keys.iter().all(|key| copy.contains(key)));
            }
            Operation::Growing(keys) => {
                for key in &keys {
                    let before = growing.contains(key);
                    assert_eq!(growing.insert(key), Ok(!before));
                    assert!(before || growing_keys.insert(*key));
                }
                growing_keys.extend(keys);
                let (copy, _) = ScalableBloom::from_bytes(&growing.to_bytes()).unwrap();
                assert!(copy == growing && growing_keys.iter().all(|key| copy.contains(key)));
                growing = copy;
            }
            Operation::Forgetting(keys) => {
                for key in &keys {
                    let before = forgetting.contains(key);
                    assert!(before || !windows.iter().any(|window| window.contains(key)));
                    assert_eq!(forgetting.insert(key), !before);
                }
                windows[0].extend(keys);
                let (copy, _) = WindowedBloom::from_bytes(&forgetting.to_bytes()).unwrap();
                assert!(windows.iter().flatten().all(|key| copy.contains(key)));
                forgetting = copy;
            }
            Operation::Rotate => {
                forgetting.rotate();
                windows.push_front(HashSet::new());
                windows.truncate(3);
                assert!(windows.iter().flatten().all(|key| forgetting.contains(key)));
            }
        }
    }
    let keys: Vec<u16> = one.keys.iter().copied().collect();
    one.look_up(&keys);
    let keys: Vec<u16> = other.keys.iter().copied().collect();
    other.look_up(&keys);
});
