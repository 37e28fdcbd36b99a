//! The common part of engines that keep each key in one slot of a few buckets: the fingerprints of
//! a cuckoo filter, and the slots of a d-left filter. Lookups, batches, statistics and snapshots
//! are here. A table ([`Slots`]) brings its words, its addresses, and its argument about races.
//!
//! Batches go by the scalar loop of `kernel/tiles.rs`: a bucket is a word, and one operation
//! compares all of its slots. Compiled for AVX-512, where the compiler makes vectors of the
//! addresses, it took as long (4.8 and 13 ns for a lookup in L2, Emerald Rapids). Outside the
//! caches the lines take the time.

use crate::chunks::{Answer, Source, answered, tell, tell_unchanged};
use crate::codec::{
    AskHasher, Hashing, Input, Kind, MOST_WORDS, Out, OwnHeader, admit, read_header, read_words, snapshot_bytes,
    write_words,
};
use crate::error::{BuildError, BuildErrorKind, InsertError, InsertErrorKind, SnapshotErrorKind};
use crate::filter::Statistics;
use crate::filter::parts::stripes::{AllHeld, Stripes};
use crate::filter::traits::{Count, Encode, Engine, FixedSize, Insert, Planned, Remove};
use crate::geometry::rates;
use crate::geometry::sizing::{MAX_BITS_PER_KEY, Request, ceil};
use crate::kernel::Plan;
use crate::kernel::plan::Prefetching;
use crate::words::bits::{self, Hint, Load};
use crate::words::memory::Words;
use crate::words::sync::{AtomicU64, Ordering};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::iter::repeat;
use core::{fmt, slice};

/// A table of buckets with slots.
pub(crate) trait Slots: Sized {
    const TYPE: &'static str;
    const KIND: Kind;
    /// The name of a slot's content, in messages.
    const FINGERPRINTS: &'static str;
    /// Lines that a key touches.
    const LINES: usize;
    /// Words of a bucket.
    const WORDS: usize;
    /// The number of buckets is a multiple of this.
    const MULTIPLE: usize;

    /// The places where a key can be.
    type Address: Copy;
    /// The division of a bucket into slots.
    type Shape: Copy + 'static;
    /// All shapes, those of the longest fingerprints last.
    const SHAPES: &'static [Self::Shape];

    fn fingerprint_bits(shape: Self::Shape) -> u32;

    /// Slots of a bucket.
    fn slots_of(shape: Self::Shape) -> usize;

    fn max_copies(shape: Self::Shape) -> usize;

    /// The part of the slots that the expected keys take.
    fn planned_load(shape: Self::Shape) -> f64;

    /// Buckets beyond the planned load.
    fn spare(_: Self::Shape) -> usize {
        0
    }

    /// The false-positive rate when this part of the slots is occupied.
    fn rate_at(shape: Self::Shape, load: f64) -> f64;

    /// An empty table in this memory, whose words are all 0.
    fn new(shape: Self::Shape, words: Words<AtomicU64>, stripes: Stripes) -> Self;

    fn shape(&self) -> Self::Shape;

    /// Fails if the words, read from a snapshot, are not those of a table.
    fn check(&self) -> Result<(), SnapshotErrorKind>;

    /// The words, and the stripes that lock some of them.
    fn memory(&self) -> (&[AtomicU64], &Stripes);

    /// The words, one after another. Call [`acquire`](bits::acquire) after the last.
    fn words(&self) -> impl Iterator<Item = u64> {
        self.memory().0.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Sets the words from `first` on, while no other thread knows of the table.
    fn store(&mut self, first: usize, words: impl Iterator<Item = u64>) {
        for (word, value) in self.memory().0[first..].iter().zip(words) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Makes the changes wait that could hide a key from a reader of all words, until the result is
    /// dropped: moves and removals of a cuckoo filter, inserts of a d-left filter that take a slot.
    fn hold(&self) -> AllHeld<'_> {
        self.memory().1.hold_all()
    }

    /// The slots that hold a key, and the keys in them. Ends in an `Acquire`.
    fn occupied(&self) -> (usize, usize);

    fn address(&self, hash: u64) -> Self::Address;

    /// Prefetches the lines of the addresses.
    fn prefetch(&self, address: &Self::Address, hint: Hint);

    /// Whether the key may be there. `true` ends in an `Acquire`.
    fn holds(&self, address: &Self::Address) -> bool;

    fn copies(&self, address: &Self::Address) -> usize;

    fn insert(&self, address: &Self::Address) -> Result<(), Refused>;

    fn remove(&self, address: &Self::Address) -> bool;

    /// The error of a filter that is full.
    fn full(expected_keys: usize) -> InsertErrorKind;
}

/// Why a key was not inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is there as often as it can be.
    Copies,
    /// Other keys have all slots that it can reach.
    Full,
}

/// The shape and the number of buckets for what a builder was asked for, and the number of keys
/// that they are for.
fn solve<T: Slots>(request: Request, fingerprint_bits: Option<usize>) -> Result<(T::Shape, usize, usize), BuildError> {
    request.check()?;
    let shapes = match fingerprint_bits {
        Some(bits) => slice::from_ref(shape_of::<T>(bits).map_err(BuildError::new)?),
        None => T::SHAPES,
    };
    let (keys, budget) = (
        request.keys.map(|keys| keys.max(1)),
        request.budget.map(buckets_in::<T>),
    );
    // Without a rate, the rate of the given fingerprints. If no fingerprints are given either, 1%.
    let rate = match (
        request.rate,
        keys.is_some() && budget.is_some() || fingerprint_bits.is_some(),
    ) {
        (None, false) => Some(0.01),
        (rate, _) => rate,
    };
    let load = |shape| rate.map_or(T::planned_load(shape), |rate| load_for::<T>(shape, rate));
    let filled = |shape: &T::Shape| T::slots_of(*shape) as f64 * load(*shape);
    let best = shapes.iter().max_by(|a, b| filled(a).total_cmp(&filled(b)));
    let best = *best.expect("there are shapes");
    if (64 * T::WORDS) as f64 > MAX_BITS_PER_KEY as f64 * filled(&best) {
        let rate = rate.expect("without one the load is the planned one");
        return Err(BuildError::new(format!(
            "a false-positive rate of {rate:e} with {} of {} bits takes more than the limit of {MAX_BITS_PER_KEY} bits \
             per key",
            T::FINGERPRINTS,
            T::fingerprint_bits(best)
        )));
    }
    let over_budget = |buckets| {
        let (needed, limit) = (bytes_of::<T>(buckets), request.budget.unwrap_or(0));
        BuildError(BuildErrorKind::OverBudget { needed, limit })
    };
    match (keys, budget) {
        (_, Some(0)) => Err(over_budget(T::MULTIPLE)),
        (None, None) => Err(BuildError(BuildErrorKind::NothingToSizeFor)),
        (None, Some(buckets)) => Ok((best, buckets, keys_in::<T>(best, buckets, load(best)).max(1))),
        (Some(keys), Some(buckets)) if request.rate.is_none() => {
            // The longest fingerprints that fit.
            let mut longest_first = shapes.iter().rev();
            match longest_first.find(|shape| keys_in::<T>(**shape, buckets, load(**shape)) >= keys) {
                Some(shape) => Ok((*shape, buckets, keys)),
                None => Err(over_budget(buckets_for::<T>(best, keys, load(best)) as usize)),
            }
        }
        (Some(keys), limit) => {
            let buckets = buckets_for::<T>(best, keys, load(best));
            if buckets >= (isize::MAX as usize / (16 * T::WORDS)) as f64 {
                return Err(BuildError::too_large(keys, T::rate_at(best, load(best))));
            }
            let buckets = buckets as usize;
            if limit.is_some_and(|limit| buckets > limit) {
                return Err(over_budget(buckets));
            }
            Ok((best, buckets, keys))
        }
    }
}

/// The shape with fingerprints of this many bits, or the problem that there is none.
fn shape_of<T: Slots>(bits: usize) -> Result<&'static T::Shape, String> {
    let has = |shape: &&T::Shape| T::fingerprint_bits(**shape) as usize == bits;
    T::SHAPES.iter().find(has).ok_or_else(|| {
        let choices: Vec<_> = T::SHAPES.iter().map(|shape| T::fingerprint_bits(*shape)).collect();
        format!(
            "{} of {bits} bits are not supported: choose one of {choices:?}",
            T::FINGERPRINTS
        )
    })
}

/// The most of the planned load at which the rate holds.
pub(crate) fn load_for<T: Slots>(shape: T::Shape, rate: f64) -> f64 {
    rates::load_for(rate, T::planned_load(shape), |load| T::rate_at(shape, load))
}

/// The number of keys that this many buckets are planned for.
fn keys_in<T: Slots>(shape: T::Shape, buckets: usize, load: f64) -> usize {
    (buckets.saturating_sub(T::spare(shape)) as f64 * T::slots_of(shape) as f64 * load) as usize
}

/// The number of buckets for this many keys.
fn buckets_for<T: Slots>(shape: T::Shape, keys: usize, load: f64) -> f64 {
    let multiple = T::MULTIPLE as f64;
    let buckets = keys as f64 / (T::slots_of(shape) as f64 * load) + T::spare(shape) as f64;
    let buckets = multiple * ceil(buckets / multiple);
    // One more multiple where rounding errors left `keys` short.
    let short = buckets < 1e15 && keys_in::<T>(shape, buckets as usize, load) < keys;
    if short { buckets + multiple } else { buckets }
}

/// Bytes of this many buckets and their stripes.
fn bytes_of<T: Slots>(buckets: usize) -> usize {
    let words = buckets.saturating_mul(T::WORDS);
    words.saturating_add(Stripes::number(words)).saturating_mul(8)
}

/// The most buckets that fit into this many bytes with their stripes.
fn buckets_in<T: Slots>(bytes: usize) -> usize {
    let words = bytes / 8;
    // The stripes for this many words are enough for fewer.
    (words - Stripes::number(words)) / T::WORDS / T::MULTIPLE * T::MULTIPLE
}

/// A table of this many buckets, at least one.
pub(crate) fn empty<T: Slots>(shape: T::Shape, buckets: usize) -> Result<T, BuildError> {
    let words = buckets.checked_mul(T::WORDS).and_then(Words::new);
    let words = words.ok_or_else(|| BuildError::out_of_memory(buckets.saturating_mul(8 * T::WORDS)))?;
    let stripes = Stripes::new(words.len())?;
    Ok(T::new(shape, words, stripes))
}

/// Numbers for tests, by a linear congruence: their highest bits are random.
#[cfg(test)]
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *state
}

/// An engine with slots for its keys.
pub struct Bucketed<T> {
    pub(crate) table: T,
    pub(crate) expected_keys: usize,
}

impl<T: Slots> Engine for Bucketed<T> {
    const NAME: &'static str = T::TYPE;

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.table.holds(&self.table.address(hash))
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        let prefetching = self.prefetching(Prefetching::lookups);
        self.tiles(prefetching, hashes, |start, addresses| {
            found[start / 64] = Prefetching::answers(addresses.iter().map(|address| self.table.holds(address)));
            true
        });
    }

    #[inline(always)]
    fn plan(&self, hashes: usize) -> Plan {
        Plan::of_plain(hashes)
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        bytes_of::<T>(self.buckets())
    }

    fn is_empty(&self) -> bool {
        let empty = self.table.words().all(|word| word == 0);
        bits::acquire();
        empty
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let load = keys as f64 / self.slots() as f64;
        T::rate_at(self.table.shape(), f64::min(load, 1.0))
    }

    fn statistics(&self) -> Statistics {
        let (slots, len) = self.table.occupied();
        let fill_ratio = slots as f64 / self.slots() as f64;
        Statistics::new(fill_ratio, len, T::rate_at(self.table.shape(), fill_ratio))
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        let mut table: T = empty(self.table.shape(), self.buckets())?;
        let held = self.table.hold();
        table.store(0, self.table.words());
        bits::acquire();
        drop(held);
        Ok(Self { table, ..*self })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("fingerprint_bits", &T::fingerprint_bits(self.table.shape()))
            .field("len", &self.table.occupied().1)
            .field("slots", &self.slots());
    }
}

#[expect(private_bounds, reason = "its methods are private")]
impl<T: Slots> Bucketed<T> {
    fn buckets(&self) -> usize {
        self.table.memory().0.len() / T::WORDS
    }

    #[inline(always)]
    fn prefetching(&self, of: impl Fn(usize, usize) -> Prefetching) -> Prefetching {
        of(size_of_val(self.table.memory().0), T::LINES)
    }

    /// Calls `work(start, addresses)` for every tile of hashes, until it returns false.
    #[inline(always)]
    fn tiles(&self, prefetching: Prefetching, hashes: &[u64], work: impl FnMut(usize, &[T::Address]) -> bool) {
        let address = |_: &mut _, _, hash: &u64| self.table.address(*hash);
        let prefetch = |_: &mut _, _, _: &u64, address: &T::Address, hint| self.table.prefetch(address, hint);
        prefetching.tiles(&mut { work }, hashes, address, prefetch, |work, start, addresses| {
            work(start, addresses)
        });
    }
}

impl<T: Slots> Planned for Bucketed<T> {
    /// The bits of a fingerprint.
    type Options = Option<usize>;

    fn build(request: Request, fingerprint_bits: Option<usize>) -> Result<Self, BuildError> {
        let (shape, buckets, expected_keys) = solve::<T>(request, fingerprint_bits)?;
        let table = empty(shape, buckets)?;
        Ok(Self { table, expected_keys })
    }
}

#[inline]
fn insert_address<T: Slots>(engine: &Bucketed<T>, address: &T::Address) -> Result<(), InsertErrorKind> {
    engine.table.insert(address).map_err(|refused| match refused {
        Refused::Full => T::full(engine.expected_keys),
        Refused::Copies => InsertErrorKind::Copies {
            limit: T::max_copies(engine.table.shape()),
        },
    })
}

impl<T: Slots> Insert for Bucketed<T> {
    type Error = InsertError;

    #[inline]
    fn insert_hash(&self, hash: u64) -> Result<bool, InsertError> {
        match insert_address(self, &self.table.address(hash)) {
            Ok(()) => Ok(true),
            Err(kind) => Err(InsertError { kind, inserted: 0 }),
        }
    }

    fn insert_flagged(&self, source: &impl Source, mut answer: Answer<'_>) -> Result<usize, InsertError> {
        let prefetching = self.prefetching(Prefetching::changes);
        let taken = source.try_for_each_chunk(usize::MAX, |before, hashes| {
            let mut refused = Ok(());
            self.tiles(prefetching, hashes, |start, addresses| {
                for (i, address) in addresses.iter().enumerate() {
                    if let Err(kind) = insert_address(self, address) {
                        let inserted = before + start + i;
                        refused = Err(InsertError { kind, inserted });
                        tell(&mut answer, before + start, &[(1 << i) - 1]);
                        return false;
                    }
                }
                tell(&mut answer, before + start, &[u64::MAX >> (64 - addresses.len())]);
                true
            });
            refused
        });
        taken.map(|()| source.len()).inspect_err(|full| {
            tell_unchanged(&mut answer, full.inserted..source.len());
        })
    }

    fn clear(&mut self) {
        self.table.store(0, repeat(0));
    }
}

impl<T: Slots> Remove for Bucketed<T> {
    #[inline]
    fn remove_hash(&self, hash: u64) -> bool {
        self.table.remove(&self.table.address(hash))
    }

    fn remove_flagged(&self, source: &impl Source, mut answer: Answer<'_>) -> usize {
        let prefetching = self.prefetching(Prefetching::changes);
        answered(source, &mut answer, |hashes, removed| {
            self.tiles(prefetching, hashes, |start, addresses| {
                removed[start / 64] = Prefetching::answers(addresses.iter().map(|address| self.table.remove(address)));
                true
            });
        })
    }
}

impl<T: Slots> Count for Bucketed<T> {
    fn count_hash(&self, hash: u64) -> usize {
        self.table.copies(&self.table.address(hash))
    }

    fn len(&self) -> usize {
        self.table.occupied().1
    }

    fn slots(&self) -> usize {
        self.buckets() * T::slots_of(self.table.shape())
    }

    fn max_copies(&self) -> usize {
        T::max_copies(self.table.shape())
    }
}

// The buckets as they are. `docs/FORMAT.md` describes the bytes.
impl<T: Slots> Encode for Bucketed<T> {
    type Size = FixedSize;
    const HELD: bool = true;

    fn snapshot_bytes(&self) -> usize {
        snapshot_bytes(self.table.memory().0.len())
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let _held = self.table.hold();
        let words = self.table.memory().0.len();
        let buckets = (T::fingerprint_bits(self.table.shape()) as u8, self.buckets());
        let header = OwnHeader::of_buckets(T::KIND, hashing, words, buckets, self.expected_keys);
        write_words(out, &header.to_bytes(), words, self.table.words())
    }

    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind> {
        let header = read_header(input, T::KIND)?;
        hasher(header.hashing)?;
        let plan = |bits: u8, buckets| {
            let shape = *shape_of::<T>(bits.into()).map_err(SnapshotErrorKind::Invalid)?;
            if buckets % T::MULTIPLE != 0 {
                let problem = format!("{buckets} buckets is not a multiple of {}", T::MULTIPLE);
                return Err(SnapshotErrorKind::Invalid(problem));
            }
            let most_keys = keys_in::<T>(shape, buckets, T::planned_load(shape)).max(1);
            Ok(((shape, buckets), most_keys))
        };
        let ((shape, buckets), expected_keys) = header.buckets(MOST_WORDS / T::WORDS as u64, plan)?;
        let words = buckets * T::WORDS;
        header.check_words(words)?;
        admit(input, header.len as usize, bytes_of::<T>(buckets) as u64, limit)?;
        let mut table: T = empty(shape, buckets).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), words, &mut |first, words| {
            table.store(first, words.iter().map(Load::load));
        })?;
        table.check()?;
        Ok(Self { table, expected_keys })
    }
}
