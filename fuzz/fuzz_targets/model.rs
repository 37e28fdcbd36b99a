//! Any sequence of operations on filters, compared with the sets and multisets of their keys.
//!
//! A key of the set is always found, and an insert of it changes nothing. A key outside the set may
//! be found, for these filters are small. But then every call must find it, single calls and
//! batches, on the filter and on its copies.

#![no_main]

use arbitrary::Arbitrary;
use lanebloom::{
    Absent, BloomView, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, InsertError, ScalableBloom,
    TombstoneBloom, WindowedBloom, bloom, codec,
};
use lanebloom_formats::GuavaBloom;
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};

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
    /// The union with the other filter.
    Union,
    Swap,
    Clear,
    Snapshot,
    Delta,
    Guava(Vec<u16>),
    Growing(Vec<u16>),
    Forgetting(Vec<u16>),
    Rotate,
    /// Into the filters that can delete, one by one or in one batch; and out of them, of the keys
    /// that are there those at these places.
    Come(Vec<u16>),
    ComeTogether(Vec<u16>),
    Go(Vec<u16>),
    GoTogether(Vec<u16>),
    /// Those filters by what their snapshots are read as.
    Reload,
    ClearDeletable,
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
        let bytes = self.filter.snapshot().to_vec();
        let (view, _) = BloomView::from_bytes(&bytes).unwrap();
        let mut found = [vec![false; keys.len()], vec![true; keys.len()]];
        self.filter.contains_batch(keys, &mut found[0]);
        view.contains_batch(keys, &mut found[1]);
        assert_eq!(found[0], found[1]);
        let mut absent = Vec::new();
        self.filter.contains_batch(keys, Absent(|i| absent.push(i)));
        for (i, (key, found)) in keys.iter().zip(&found[0]).enumerate() {
            assert!(*found || !self.keys.contains(key), "{key} was inserted");
            assert_eq!(self.filter.contains(key), *found);
            assert_eq!(absent.contains(&i), !*found);
        }
    }
}

/// How often each key is in a filter that can delete.
#[derive(Clone, Default)]
struct Multiset {
    keys: Vec<u16>,
    counts: HashMap<u16, usize>,
}

impl Multiset {
    fn insert(&mut self, keys: &[u16]) {
        for key in keys {
            self.keys.push(*key);
            *self.counts.entry(*key).or_default() += 1;
        }
    }

    /// The keys at these places, taken out.
    fn take(&mut self, places: &[u16]) -> Vec<u16> {
        let mut taken = Vec::new();
        for place in places {
            if self.keys.is_empty() {
                break;
            }
            let key = self.keys.swap_remove(usize::from(*place) % self.keys.len());
            *self.counts.get_mut(&key).unwrap() -= 1;
            taken.push(key);
        }
        taken
    }

    fn count(&self, key: u16) -> usize {
        self.counts.get(&key).copied().unwrap_or(0)
    }

    fn there(&self) -> impl Iterator<Item = (u16, usize)> + '_ {
        self.counts
            .iter()
            .map(|(key, count)| (*key, *count))
            .filter(|(_, count)| *count > 0)
    }
}

/// Empty filters of each kind: to solve for their layouts takes longer than all that is done to
/// them.
#[derive(Default)]
struct Empty {
    blooms: HashMap<(usize, (usize, usize), u32), ConcurrentBloom>,
    deletable: HashMap<(usize, u8, u32), Deletable>,
    others: Option<(ScalableBloom, WindowedBloom, GuavaBloom)>,
}

/// Seeds that filters have: what is kept is few.
const SEEDS: u32 = 4;

impl Empty {
    fn bloom(&mut self, input: &Input) -> ConcurrentBloom {
        let words = 1 << (input.words % 4);
        let lines = if words > 1 {
            1 + usize::from(input.words >> 2 & 1)
        } else {
            1
        };
        let shape = (
            64 * lines * (usize::from(input.blocks) + 1),
            (lines, words),
            input.seed % SEEDS,
        );
        let (bytes, _, seed) = shape;
        let builder = || {
            ConcurrentBloom::builder()
                .memory_budget(bytes)
                .lines_per_key(lines)
                .words_per_key(words)
                .seed(seed)
        };
        let new = || builder().build().unwrap();
        self.blooms.entry(shape).or_insert_with(new).clone()
    }

    fn deletable(&mut self, input: &Input) -> Deletable {
        let shape = (
            64 * (usize::from(input.blocks % 8) + 2),
            input.words % 12,
            input.seed % SEEDS,
        );
        let (bytes, words, seed) = shape;
        self.deletable
            .entry(shape)
            .or_insert_with(|| Deletable::new(bytes, words, seed))
            .clone()
    }

    fn others(&mut self) -> (ScalableBloom, WindowedBloom, GuavaBloom) {
        let new = || {
            let windowed = WindowedBloom::builder().expected_keys(100).generations(3);
            (
                ScalableBloom::builder().expected_keys(10).build().unwrap(),
                windowed.build().unwrap(),
                GuavaBloom::with_capacity(100, 0.01).unwrap(),
            )
        };
        self.others.get_or_insert_with(new).clone()
    }
}

thread_local! {
    static EMPTY: RefCell<Empty> = RefCell::default();
}

/// The filters that can delete, small, each beside what it holds.
#[derive(Clone)]
struct Deletable {
    counting: (CountingBloom, Multiset),
    cuckoo: (CuckooFilter, Multiset),
    d_left: (DLeftFilter, Multiset),
    /// With what was added and what was removed.
    pair: (TombstoneBloom, HashSet<u16>, HashSet<u16>),
}

impl Deletable {
    fn new(bytes: usize, words: u8, seed: u32) -> Self {
        let fingerprint_bits = [10, 12, 16, 21][usize::from(words) % 4];
        let counting = CountingBloom::builder()
            .memory_budget(bytes)
            .words_per_key(1 << (words % 4));
        let cuckoo = CuckooFilter::builder()
            .memory_budget(bytes)
            .fingerprint_bits(fingerprint_bits);
        let d_left = DLeftFilter::builder().memory_budget(bytes);
        let pair = TombstoneBloom::builder().expected_keys(bytes / 2);
        Self {
            counting: (counting.seed(seed).build().unwrap(), Multiset::default()),
            cuckoo: (cuckoo.seed(seed).build().unwrap(), Multiset::default()),
            d_left: (d_left.seed(seed).build().unwrap(), Multiset::default()),
            pair: (pair.seed(seed).build().unwrap(), HashSet::new(), HashSet::new()),
        }
    }

    fn come(&mut self, keys: &[u16]) {
        let (filter, model) = &mut self.counting;
        for key in keys {
            // A key is new only where it is certainly not there.
            assert!(!filter.insert(key) || model.count(*key) == 0);
            model.insert(&[*key]);
        }
        for key in keys {
            let insert = |inserted: Result<(), InsertError>, model: &mut Multiset| match inserted {
                Ok(()) => model.insert(&[*key]),
                Err(error) => assert_eq!(error.inserted(), 0),
            };
            insert(self.cuckoo.0.insert(key), &mut self.cuckoo.1);
            insert(self.d_left.0.insert(key), &mut self.d_left.1);
        }
        let (filter, added, _) = &mut self.pair;
        for key in keys {
            filter.insert(key);
            added.insert(*key);
        }
    }

    fn come_together(&mut self, keys: &[u16]) {
        let (filter, model) = &mut self.counting;
        let mut new = vec![false; keys.len()];
        assert_eq!(
            filter.insert_batch_into(keys, &mut new),
            new.iter().filter(|new| **new).count()
        );
        for (key, new) in keys.iter().zip(new) {
            assert!(!new || model.count(*key) == 0);
            model.insert(&[*key]);
        }
        let inserted = |result: Result<(), InsertError>| result.map_or_else(|error| error.inserted(), |()| keys.len());
        let (filter, model) = &mut self.cuckoo;
        model.insert(&keys[..inserted(filter.insert_batch(keys))]);
        let (filter, model) = &mut self.d_left;
        model.insert(&keys[..inserted(filter.insert_batch(keys))]);
        let (filter, added, _) = &mut self.pair;
        filter.insert_batch(keys);
        added.extend(keys);
    }

    fn go(&mut self, places: &[u16]) {
        assert!(
            self.counting
                .1
                .take(places)
                .iter()
                .all(|key| self.counting.0.remove(key))
        );
        assert!(self.cuckoo.1.take(places).iter().all(|key| self.cuckoo.0.remove(key)));
        assert!(self.d_left.1.take(places).iter().all(|key| self.d_left.0.remove(key)));
        let (filter, added, removed) = &mut self.pair;
        for key in places {
            let found = filter.contains(key);
            assert!(!found || !removed.contains(key));
            assert_eq!(filter.remove(key), found);
            if found || added.contains(key) {
                removed.insert(*key);
            }
        }
    }

    fn go_together(&mut self, places: &[u16]) {
        let keys = self.counting.1.take(places);
        assert_eq!(self.counting.0.remove_batch(&keys), keys.len());
        let keys = self.cuckoo.1.take(places);
        assert_eq!(self.cuckoo.0.remove_batch(&keys), keys.len());
        let keys = self.d_left.1.take(places);
        let mut removed = vec![false; keys.len()];
        self.d_left.0.remove_batch_into(&keys, &mut removed);
        assert!(removed.iter().all(|removed| *removed));
        let (filter, added, removed) = &mut self.pair;
        filter.remove_batch(places);
        removed.extend(places.iter().filter(|key| added.contains(key)));
    }

    fn reload(&mut self) {
        let (filter, _) = &mut self.counting;
        let (copy, rest) = codec::from_bytes::<CountingBloom<_>>(&filter.snapshot().to_vec(), *filter.hasher())
            .map(|(a, b)| (a, b.len()))
            .unwrap();
        assert!(copy == *filter && rest == 0);
        *filter = copy;
        let (filter, _) = &mut self.cuckoo;
        let bytes = filter.snapshot().to_vec();
        let (copy, _) = CuckooFilter::from_bytes(&bytes).unwrap();
        assert!(copy.snapshot().to_vec() == bytes);
        *filter = copy;
        let (filter, _) = &mut self.d_left;
        let bytes = filter.snapshot().to_vec();
        let (copy, _) = DLeftFilter::from_bytes(&bytes).unwrap();
        assert!(copy.snapshot().to_vec() == bytes);
        *filter = copy;
        let (filter, ..) = &mut self.pair;
        let bytes = filter.snapshot().to_vec();
        let (copy, _) = TombstoneBloom::from_bytes(&bytes).unwrap();
        assert!(copy == *filter);
        *filter = copy;
    }

    fn clear(&mut self) {
        self.counting.0.clear();
        self.cuckoo.0.clear();
        self.d_left.0.clear();
        self.pair.0.clear();
        (self.counting.1, self.cuckoo.1, self.d_left.1) = Default::default();
        (self.pair.1, self.pair.2) = Default::default();
    }

    /// Nothing that came and did not go is missing, and what went is gone where that is certain.
    fn check(&self) {
        let (filter, model) = &self.counting;
        assert!(model.there().all(|(key, _)| filter.contains(&key)));
        assert!(!model.keys.is_empty() || filter.stuck_counters() > 0 || filter.statistics().fill_ratio == 0.0);
        let (filter, model) = &self.cuckoo;
        assert!(model.there().all(|(key, count)| filter.count(&key) >= count));
        assert_eq!(filter.len(), model.keys.len());
        let (filter, model) = &self.d_left;
        assert!(model.there().all(|(key, count)| filter.count(&key) >= count));
        assert_eq!(filter.len(), model.keys.len());
        let (filter, _, removed) = &self.pair;
        assert!(removed.iter().all(|key| !filter.contains(key)));
    }
}

fuzz_target!(|input: Input| {
    let (empty, (mut growing, mut forgetting, guava), mut deletable) = EMPTY.with_borrow_mut(|filters| {
        let deletable = filters.deletable(&input);
        (filters.bloom(&input), filters.others(), deletable)
    });
    let new = || Pair {
        filter: empty.clone(),
        keys: HashSet::new(),
    };
    let (mut one, mut other) = (new(), new());
    let mut growing_keys = HashSet::new();
    // Keys of each of the last generations.
    let mut windows = VecDeque::from([HashSet::new()]);
    let mut guava_keys = HashSet::new();
    for operation in input.operations {
        match operation {
            Operation::Insert(key) => one.insert(&[key], |filter, keys| usize::from(filter.insert(&keys[0]))),
            Operation::Contains(key) => one.look_up(&[key]),
            Operation::InsertBatch(keys) => one.insert(&keys, |filter, keys| filter.insert_batch(keys)),
            Operation::InsertBatchMut(keys) => one.insert(&keys, |filter, keys| filter.exclusive().insert_batch(keys)),
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
                let bytes = one.filter.snapshot().to_vec();
                let (copy, rest) = ConcurrentBloom::from_bytes(&bytes).unwrap();
                assert!(copy == one.filter && rest.is_empty());
                one.filter = copy;
            }
            Operation::Delta => {
                let delta = one.filter.with(&other.filter).unwrap().delta();
                let union = other.filter.clone();
                union.union_from(&one.filter).unwrap();
                let changed = bloom::apply_deltas(&other.filter, &delta).unwrap();
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
                let (copy, _) = ScalableBloom::from_bytes(&growing.snapshot().to_vec()).unwrap();
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
                let (copy, _) = WindowedBloom::from_bytes(&forgetting.snapshot().to_vec()).unwrap();
                assert!(windows.iter().flatten().all(|key| copy.contains(key)));
                forgetting = copy;
            }
            Operation::Rotate => {
                forgetting.rotate();
                windows.push_front(HashSet::new());
                windows.truncate(3);
                assert!(windows.iter().flatten().all(|key| forgetting.contains(key)));
            }
            Operation::Come(keys) => deletable.come(&keys),
            Operation::ComeTogether(keys) => deletable.come_together(&keys),
            Operation::Go(places) => deletable.go(&places),
            Operation::GoTogether(places) => deletable.go_together(&places),
            Operation::Reload => deletable.reload(),
            Operation::ClearDeletable => deletable.clear(),
        }
        deletable.check();
    }
    let keys: Vec<u16> = one.keys.iter().copied().collect();
    one.look_up(&keys);
    let keys: Vec<u16> = other.keys.iter().copied().collect();
    other.look_up(&keys);
});
