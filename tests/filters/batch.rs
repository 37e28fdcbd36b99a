//! Batches against single calls: a batch gives the same answers and sets the same bits as the plain
//! code's single calls in order, under every instruction set.

use lanebloom::bloom::Builder;
use lanebloom::internal::{Isa, instruction_sets};
use lanebloom::{Absent, ConcurrentBloom, Hashed, bloom};
use lanebloom_tests::{LAYOUTS, RATES, WAYS, inserts_agree, lookups_agree, number, plain};
use std::hash::{BuildHasher, Hasher};

const EXTREMES: [u64; 8] = [
    0,
    u64::MAX,
    1,
    1 << 63,
    u64::MAX >> 1,
    u32::MAX as u64,
    1 << 32,
    u64::MAX << 32,
];

/// Hashes without a pattern, among them extreme ones, and some that were there before: just before,
/// in the group of eight before, and farther back.
fn hashes(seed: u64, len: usize) -> Vec<u64> {
    let mut hashes: Vec<u64> = Vec::with_capacity(len);
    for i in 0..len {
        hashes.push(match i % 16 {
            3 => EXTREMES[(i / 16 + seed as usize) % EXTREMES.len()],
            5 => hashes[i - 1],
            10 => hashes[i - 8],
            14 => hashes[i / 2],
            _ => number(seed << 32 | i as u64),
        });
    }
    hashes
}

/// A hasher by which a number is its own hash.
#[derive(Clone, Default)]
struct Own(u64);

impl BuildHasher for Own {
    type Hasher = Self;
    fn build_hasher(&self) -> Self {
        Self(0)
    }
}

impl Hasher for Own {
    fn write(&mut self, bytes: &[u8]) {
        // Other lengths are only those of the key by which hashers are compared.
        self.0 = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

/// Filters of the same layout: one that single calls fill in plain code, and one for each form of a
/// batch under one instruction set, by keys and by hashes.
struct Twins {
    single: ConcurrentBloom<Own>,
    by_key: [ConcurrentBloom<Own>; WAYS],
    by_hash: [ConcurrentBloom<Own>; WAYS],
}

impl Twins {
    /// `None` where the builder finds no such filter.
    fn new(isa: Isa, builder: Builder) -> Option<Self> {
        let empty = builder.hasher(Own::default()).build().ok()?;
        let twins = || std::array::from_fn(|_| empty.clone().with_isa(isa));
        Some(Self {
            by_key: twins(),
            by_hash: twins(),
            single: plain(empty),
        })
    }

    /// Inserts hashes that begin `offset` into a buffer, then asks for half of them and as many
    /// others.
    fn hashes(&self, seed: u64, len: usize, offset: usize) {
        let buffer = hashes(seed, offset + len + len / 2);
        self.these(&buffer[offset..][..len], &buffer[offset + len / 2..][..len], offset);
    }

    /// Inserts and asks in all ways, with answers that are written `offset` into a buffer.
    fn these(&self, new: &[u64], asked: &[u64], offset: usize) {
        let told = Vec::from_iter(new.iter().map(|&hash| self.single.insert(&Hashed(hash))));
        inserts_agree(&self.by_key, new, &told, offset);
        inserts_agree(&self.by_hash, Hashed::slice(new), &told, offset);
        let other = &self.by_key[0];
        assert!(asked.iter().all(|key| self.single.contains(key) == other.contains(key)));
        lookups_agree(other, asked, offset);
    }

    fn same_bits(&self) {
        let mut all = self.by_key.iter().chain(&self.by_hash);
        assert!(all.all(|filter| *filter == self.single));
    }
}

/// Batches equal single calls in filters of this layout: of each length, with places that begin at
/// this offset of a buffer. Returns the bits per line, `None` where the builder finds no filter.
fn check(
    isa: Isa,
    builder: Builder,
    layout: (usize, usize),
    batches: impl Iterator<Item = (usize, usize)>,
) -> Option<usize> {
    let twins = Twins::new(isa, builder.lines_per_key(layout.0).words_per_key(layout.1))?;
    batches.for_each(|(len, offset)| twins.hashes((len * 8 + offset) as u64, len, offset));
    twins.same_bits();
    Some(twins.single.layout().bits_per_line)
}

fn builder(keys: usize, rate: f64) -> Builder {
    ConcurrentBloom::builder().expected_keys(keys).false_positive_rate(rate)
}

/// Lengths around a vector, two vectors and a word of the bitmap, where every case is another path;
/// every place of the slices relative to a vector, on every shape of the pattern that these rates
/// lead to.
#[test]
fn short_batches_equal_single_calls() {
    for isa in instruction_sets() {
        let mut shapes = Vec::new();
        for rate in [0.6, 0.25].into_iter().chain(RATES) {
            for layout in LAYOUTS {
                let vectors = (0..=18).flat_map(|len| (0..8).map(move |offset| (len, offset)));
                let words = [63, 64, 65, 127, 128, 129].into_iter().zip(0..);
                let bits = check(isa, builder(3000, rate), layout, vectors.chain(words));
                shapes.extend(bits.map(|bits| (layout, bits)));
            }
        }
        shapes.sort_unstable();
        shapes.dedup();
        assert!(shapes.len() >= 31, "{isa}: only {shapes:?}");
    }
}

/// Lengths around the chunks in which long batches are hashed (64, 1024) and answered (4096).
#[test]
fn long_batches_equal_single_calls() {
    for isa in instruction_sets() {
        let rates = [0.1, 0.01, 1e-3, 1e-6, 0.01, 1e-3, 1e-6];
        for (layout, rate) in LAYOUTS.into_iter().zip(rates) {
            let lens = [1023, 1024, 1025, 4095, 4096, 4097, 5000].into_iter();
            check(isa, builder(25_000, rate), layout, lens.zip(0..)).unwrap();
        }
    }
}

/// Filters beyond the size up to which nothing is asked for ahead, at lengths around how far ahead
/// that is (4, 8 and 16 groups, 16 and 64 keys).
#[test]
fn batches_on_a_prefetched_filter_equal_single_calls() {
    for isa in instruction_sets() {
        for layout in LAYOUTS {
            let around = [32, 64, 80, 128, 192]
                .into_iter()
                .flat_map(|n| [n - 1, n, n + 1, n + 7]);
            let lens = (0..=18).chain(around).chain([1025, 4097]);
            let large = ConcurrentBloom::builder().memory_budget((4 << 20) + 192);
            check(isa, large, layout, lens.map(|len| (len, len % 8))).unwrap();
        }
    }
}

/// Extreme hashes alone, and the first and the last of many blocks: the carry of the product that
/// finds a block decides of these, and of few others.
#[test]
fn hashes_at_the_borders_equal_single_calls() {
    for isa in instruction_sets() {
        for (lines, words) in LAYOUTS {
            for blocks in [1, 2, 3, 7, 1000, 4097, 100_003] {
                // The blocks of a half, if there are two. (Large halves are filters of one line.)
                if lines * blocks > 100_003 {
                    continue;
                }
                let filter = ConcurrentBloom::builder()
                    .memory_budget(lines * blocks * 64)
                    .lines_per_key(lines)
                    .words_per_key(words);
                let twins = Twins::new(isa, filter).unwrap();
                let around = EXTREMES.map(|extreme| [extreme, extreme.wrapping_sub(1), extreme.wrapping_add(1)]);
                let around = around.concat();
                twins.these(&around[..7], &around, 7);
                twins.these(&around, &around, 0);
                let step = blocks.div_ceil(500);
                let first = |block: usize| ((block as u128) << 64).div_ceil(blocks as u128) as u64;
                let firsts = Vec::from_iter((1..blocks).step_by(step).map(first));
                let lasts = Vec::from_iter(firsts.iter().map(|first| first - 1));
                twins.these(&firsts, &lasts, 0);
                twins.these(&lasts, &firsts, 0);
                twins.same_bits();
            }
        }
    }
}

/// Every type is made from its keys with the rate that was asked for. A window has them in one
/// generation, which is large enough.
#[test]
fn a_filter_from_keys_has_them_and_the_rate() {
    use lanebloom::{CountingBloom, CuckooFilter, DLeftFilter, ScalableBloom, TombstoneBloom, WindowedBloom};

    macro_rules! check {
        ($($filter:ident)*) => {$(
            let filter = $filter::from_keys(0..10_000u32, 0.01).unwrap();
            assert!((0..10_000u32).all(|key| filter.contains(&key)));
            let rate = filter.statistics().false_positive_rate;
            assert!(rate < 0.012, "{}: {rate}", stringify!($filter));
        )*};
    }
    check! {
        ConcurrentBloom CountingBloom TombstoneBloom CuckooFilter DLeftFilter ScalableBloom WindowedBloom
    }
    let error = DLeftFilter::from_keys(["a"; 9], 0.01).unwrap_err();
    assert_eq!(error.to_string(), "the filter has room for only 3 of 9 keys");

    let scalable = ScalableBloom::<lanebloom::Murmur3>::default();
    assert!(scalable == ScalableBloom::builder().build().unwrap());
    let window = WindowedBloom::with_capacity(3000, 0.01).unwrap();
    assert_eq!((window.expected_keys(), window.generations()), (3000, 4));
}

/// The methods of the types themselves, not of a trait: none by hash needs a hasher of keys.
#[test]
fn filters_of_hashes_alone_are_used() {
    use lanebloom::{
        CountingBloom, CuckooFilter, DLeftFilter, Prehashed, ScalableBloom, TombstoneBloom, WindowedBloom,
    };

    let content = crate::numbers(27, 150);
    macro_rules! each {
        ($($type:ident |$filter:ident| $more:block)*) => {$(
            let $filter = $type::builder().expected_keys(1000).hasher(Prehashed).build().unwrap();
            let (mut new, mut absent) = ([false; 50], 0);
            let _ = $filter.insert(&Hashed(content[0]));
            let _ = $filter.insert_batch(Hashed::slice(&content[1..50]));
            let _ = $filter.insert_batch_into(Hashed::slice(&content[50..100]), &mut new);
            $filter.contains_batch(Hashed::slice(&content), Absent(|i| absent += usize::from(i >= 100)));
            assert!(new.iter().filter(|new| **new).count() > 40 && absent > 40);
            assert!(content[..100].iter().all(|hash| $filter.contains(&Hashed(*hash))));
            $more
        )*};
    }
    macro_rules! removes {
        ($filter:ident) => {
            assert!($filter.remove(&Hashed(content[0])));
            assert_eq!($filter.remove_batch(Hashed::slice(&content[1..100])), 99);
        };
    }
    each! {
        ConcurrentBloom |_filter| {}
        ScalableBloom |_filter| {}
        WindowedBloom |_filter| {}
        CountingBloom |filter| { removes!(filter); }
        TombstoneBloom |filter| { removes!(filter); }
        CuckooFilter |filter| { assert_eq!(filter.count(&Hashed(content[0])), 1); removes!(filter); }
        DLeftFilter |filter| { assert_eq!(filter.count(&Hashed(content[0])), 1); removes!(filter); }
    }

    let builder = ConcurrentBloom::builder().expected_keys(1000).hasher(Prehashed);
    let (mut a, b) = (builder.clone().build().unwrap(), builder.build().unwrap());
    a.exclusive().insert_batch(Hashed::slice(&content[..1]));
    b.insert(&Hashed(content[1]));
    let delta = b.with(&a).map(|pair| pair.delta()).unwrap();
    assert!(bloom::apply_deltas(&a, &delta).unwrap());
    assert!(a.contains(&Hashed(content[0])) && a.contains(&Hashed(content[1])));
    assert!(a != b && b.with(&a).map(|pair| pair.is_subset()).unwrap());
}
