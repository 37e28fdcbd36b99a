//! Single calls on keys that the filters hash: `u64`, 16 bytes, strings of 24 bytes.

#[cfg(has_boost)]
use crate::boost::{Boost, BoostPeer, Kind};
use crate::contestants::Peer;
use crate::features::Library;
#[cfg(has_quickbloom)]
use crate::quickbloom;
use crate::{Args, Group, Table, one_group};
use fastbloom::AtomicBloomFilter;
use lanebloom::internal::WithIsa;
use lanebloom::{ConcurrentBloom, FastHash, Funnel, KeyHasher, Murmur3, SipHash13};
#[cfg(has_quickbloom)]
use std::ffi::c_void;
use std::hash::{BuildHasher, Hash};
#[cfg(has_quickbloom)]
use std::ptr;

/// A type of keys that every contestant hashes.
pub(crate) trait Key: Copy + Send + Sync + 'static {
    const NAME: &str;
    #[cfg(has_boost)]
    const KIND: Kind;
    /// What a user passes to a filter.
    type Passed: Funnel + Hash + ?Sized;
    /// The key of a number: other numbers have other keys.
    fn of(number: u64) -> Self;
    fn passed(&self) -> &Self::Passed;
    /// Where its bytes are, and how many.
    #[cfg(has_quickbloom)]
    fn bytes(&self) -> (*const c_void, usize);
}

impl Key for u64 {
    const NAME: &str = "u64 keys";
    #[cfg(has_boost)]
    const KIND: Kind = Kind::Number;
    type Passed = u64;
    fn of(number: u64) -> Self {
        number
    }
    fn passed(&self) -> &u64 {
        self
    }
    #[cfg(has_quickbloom)]
    fn bytes(&self) -> (*const c_void, usize) {
        (ptr::from_ref(self).cast(), size_of::<Self>())
    }
}

impl Key for [u8; 16] {
    const NAME: &str = "keys of 16 bytes";
    #[cfg(has_boost)]
    const KIND: Kind = Kind::Bytes;
    type Passed = Self;
    fn of(number: u64) -> Self {
        (u128::from(number) << 64 | u128::from(!number)).to_le_bytes()
    }
    fn passed(&self) -> &Self {
        self
    }
    #[cfg(has_quickbloom)]
    fn bytes(&self) -> (*const c_void, usize) {
        (self.as_ptr().cast(), self.len())
    }
}

/// A string of 24 bytes, whose length the compiler does not know. It is beside its neighbours in
/// memory, so that no contestant waits for the text. (`Text` of `boost.cpp`.)
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Text {
    len: usize,
    bytes: [u8; 24],
}

impl Key for Text {
    const NAME: &str = "strings of 24 bytes";
    #[cfg(has_boost)]
    const KIND: Kind = Kind::Text;
    type Passed = str;
    fn of(number: u64) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut bytes = *b"customer________________";
        for (i, digit) in bytes[8..].iter_mut().enumerate() {
            *digit = DIGITS[(number >> (4 * i) & 15) as usize];
        }
        Self {
            len: bytes.len(),
            bytes,
        }
    }
    #[inline]
    fn passed(&self) -> &str {
        // SAFETY: `of` makes the length and the letters, which are ASCII.
        unsafe { str::from_utf8_unchecked(self.bytes.get_unchecked(..self.len)) }
    }
    #[cfg(has_quickbloom)]
    fn bytes(&self) -> (*const c_void, usize) {
        (self.bytes.as_ptr().cast(), self.len)
    }
}

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
    #[cfg_attr(
        not(any(has_boost, has_quickbloom)),
        expect(unused_mut, reason = "Boost and quickbloom add rows")
    )]
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
    #[cfg(has_quickbloom)]
    peers.push(Box::new(quickbloom::OfKeys::new(n, args.rate)));
    let group = Group { peers, reference: 0 };
    one_group(args, bytes, Table::KeyCalls, group, n)
}
