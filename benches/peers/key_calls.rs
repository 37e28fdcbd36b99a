//! Single calls on keys that the filters hash: `u64`, 16 bytes, strings of 24 bytes.

#[cfg(has_boost)]
use crate::boost::{Boost, BoostPeer};
use crate::contestants::Peer;
use crate::features::Library;
use crate::keys::Key;
use crate::{Args, Group, Table, one_group};
use fastbloom::AtomicBloomFilter;
use lanebloom::{ConcurrentBloom, FastHash, KeyHasher, Murmur3, SipHash13};
use std::hash::BuildHasher;

struct Ours<H> {
    filter: ConcurrentBloom<H>,
    hasher: &'static str,
}

impl<H: KeyHasher + Send + Sync, K: Key> Peer<K> for Ours<H> {
    fn name(&self) -> String {
        format!("lanebloom ({})", self.hasher)
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Lanebloom)
    }
    fn insert(&self, keys: &[K]) -> Option<usize> {
        Some(count_by_ref(keys, |key| self.filter.insert(key.passed())))
    }
    fn contains(&self, keys: &[K]) -> usize {
        count_by_ref(keys, |key| self.filter.contains(key.passed()))
    }
    fn clear(&mut self) {
        self.filter.clear();
    }
    fn bytes(&self) -> usize {
        self.filter.memory_bytes()
    }
}

/// How many keys pass, each by reference: a string is not copied.
fn count_by_ref<K>(keys: &[K], test: impl Fn(&K) -> bool) -> usize {
    keys.iter().filter(|&key| test(key)).count()
}

struct Fast<S> {
    filter: AtomicBloomFilter<S>,
    hasher: &'static str,
}

impl<S: BuildHasher + Send + Sync, K: Key> Peer<K> for Fast<S> {
    fn name(&self) -> String {
        format!("fastbloom ({})", self.hasher)
    }
    fn library(&self) -> Option<Library> {
        Some(Library::Fastbloom)
    }
    fn insert(&self, keys: &[K]) -> Option<usize> {
        Some(count_by_ref(keys, |key| !self.filter.insert(key.passed())))
    }
    fn contains(&self, keys: &[K]) -> usize {
        count_by_ref(keys, |key| self.filter.contains(key.passed()))
    }
    fn clear(&mut self) {
        self.filter.clear();
    }
    fn bytes(&self) -> usize {
        self.filter.num_bits() / 8
    }
}

/// The table of one type of keys.
pub(crate) fn key_calls<K: Key>(args: &Args, bytes: usize) -> String {
    fn ours<H: KeyHasher>(args: &Args, bytes: usize, hasher: H) -> ConcurrentBloom<H> {
        let builder = ConcurrentBloom::builder().memory_budget(bytes);
        let filter = builder.false_positive_rate(args.rate).hasher(hasher).build().unwrap();
        filter.with_isa(args.level())
    }
    let murmur3 = ours(args, bytes, Murmur3::default());
    let n = murmur3.expected_keys();
    let fast = || AtomicBloomFilter::with_false_pos(args.rate);
    #[cfg_attr(not(has_boost), expect(unused_mut, reason = "Boost adds a row"))]
    let mut peers: Vec<Box<dyn Peer<K>>> = vec![
        Box::new(Fast {
            filter: fast()
                .hasher(foldhash::fast::FixedState::with_seed(1))
                .expected_items(n),
            hasher: "foldhash",
        }),
        Box::new(Fast {
            filter: fast().seed(&1).expected_items(n),
            hasher: "SipHash, its default",
        }),
        Box::new(Ours {
            filter: murmur3,
            hasher: "Murmur3, its default",
        }),
        Box::new(Ours {
            filter: ours(args, bytes, FastHash::with_seed(1)),
            hasher: "FastHash",
        }),
        Box::new(Ours {
            filter: ours(args, bytes, SipHash13::with_key([1; 16])),
            hasher: "SipHash-1-3",
        }),
        Box::new(Ours {
            filter: ours(args, bytes, foldhash::fast::FixedState::with_seed(1)),
            hasher: "foldhash",
        }),
    ];
    #[cfg(has_boost)]
    peers.push(Box::new(BoostPeer::new(Boost::<K>::keys(n, args.rate), false)));
    let group = Group { peers, reference: 0 };
    one_group(args, bytes, Table::KeyCalls, group, n)
}
