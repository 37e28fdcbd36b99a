//! The common part of engines that keep each key in one slot of a few buckets: the fingerprints of
//! a cuckoo filter, and the cells of a d-left filter. Lookups, batches, statistics and snapshots
//! are here. A table ([`Slots`]) brings its words, its addresses, and its argument about races.
//!
//! Batches go by the scalar loop of `kernel/tiles.rs`: a bucket is a word, and one operation
//! compares all of its slots. Compiled for AVX-512, where the compiler makes vectors of the
//! addresses, it took as long (4.8 and 13 ns for a lookup in L2, Emerald Rapids). Outside the
//! caches the lines take the time.

use crate::chunks::{Answer, Source, answered};
use crate::codec::{
    AskHasher, Hashing, Input, Kind, MOST_WORDS, Out, OwnHeader, SNAPSHOT_HEADER, admit, read_words, snapshot_bytes,
    write_words,
};
use crate::error::{BuildError, BuildErrorKind, InsertError, InsertErrorKind, SnapshotErrorKind};
use crate::filter::Statistics;
use crate::filter::parts::stripes::{AllHeld, Stripes};
use crate::filter::traits::{Count, Encode, Engine, FixedSize, Insert, Planned, Remove};
use crate::geometry::sizing::{MAX_BITS_PER_KEY, Request};
use crate::kernel::Plan;
use crate::kernel::plan::AccessPlan;
use crate::words::bits::{self, Hint, Load};
use crate::words::sync::{AtomicU64, Ordering};
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::iter::repeat;

/// A table of buckets with slots.
pub(crate) trait Slots: Sized {
    const TYPE: &'static str;
    const KIND: Kind;
    /// The words of memory for each bucket of the header, at most.
    const WORDS: usize;
    /// Lines that a key touches.
    const LINES: usize;

    /// The places where a key can be.
    type Address: Copy;
    /// The shape of the buckets, and how many there are.
    type Buckets: Copy;

    /// The plan for what a builder was asked for, and the number of keys that it is for.
    /// (`fingerprint_bits` may be given for a table that has several lengths.)
    fn solve(request: Request, fingerprint_bits: Option<usize>) -> Result<(Self::Buckets, usize), BuildErrorKind>;

    /// An empty table.
    fn new(buckets: Self::Buckets) -> Result<Self, BuildError>;

    fn buckets(&self) -> Self::Buckets;

    fn slots_of(buckets: Self::Buckets) -> usize;

    fn max_copies(buckets: Self::Buckets) -> usize;

    /// The false-positive rate when this part of the slots is occupied.
    fn rate_at(buckets: Self::Buckets, load: f64) -> f64;

    /// The bits of a fingerprint, and the number of buckets.
    fn to_header(buckets: Self::Buckets) -> (u8, usize);

    /// The buckets that a header declares, and the most keys that a builder plans for them.
    fn of_header(bits: u8, buckets: usize) -> Result<(Self::Buckets, usize), SnapshotErrorKind>;

    /// The words of a snapshot.
    fn words_of(buckets: Self::Buckets) -> usize;

    fn bytes_of(buckets: Self::Buckets) -> usize;

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
    /// dropped: moves and removals of a cuckoo filter, inserts of a d-left filter that take a cell.
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

/// The error for a rate that `fingerprints` of this many bits do not reach.
pub(crate) fn too_short(rate: f64, fingerprints: &str, bits: u32) -> BuildErrorKind {
    BuildErrorKind::Setting(format!(
        "a false-positive rate of {rate:e} with {fingerprints} of {bits} bits takes more than the limit of \
         {MAX_BITS_PER_KEY} bits per key"
    ))
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
        let access = self.access(AccessPlan::lookups);
        self.tiles(access, hashes, |start, addresses| {
            found[start / 64] = AccessPlan::answers(addresses.iter().map(|address| self.table.holds(address)));
            true
        });
    }

    #[inline(always)]
    fn plan(&self, hashes: usize) -> Plan {
        Plan::of_scalar(hashes)
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        T::bytes_of(self.table.buckets())
    }

    fn is_empty(&self) -> bool {
        let empty = self.table.words().all(|word| word == 0);
        bits::acquire();
        empty
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let buckets = self.table.buckets();
        let load = keys as f64 / T::slots_of(buckets) as f64;
        T::rate_at(buckets, f64::min(load, 1.0))
    }

    fn statistics(&self) -> Statistics {
        let (buckets, (slots, len)) = (self.table.buckets(), self.table.occupied());
        let fill_ratio = slots as f64 / T::slots_of(buckets) as f64;
        Statistics {
            fill_ratio,
            len,
            false_positive_rate: T::rate_at(buckets, fill_ratio),
        }
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        let mut table = T::new(self.table.buckets())?;
        let held = self.table.hold();
        table.store(0, self.table.words());
        bits::acquire();
        drop(held);
        Ok(Self { table, ..*self })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        let buckets = self.table.buckets();
        f.field("fingerprint_bits", &T::to_header(buckets).0)
            .field("len", &self.table.occupied().1)
            .field("slots", &T::slots_of(buckets));
    }
}

#[expect(private_bounds, reason = "its methods are private")]
impl<T: Slots> Bucketed<T> {
    /// Bytes of the buckets alone.
    fn bytes(&self) -> usize {
        8 * T::words_of(self.table.buckets())
    }

    #[inline(always)]
    fn access(&self, of: impl Fn(usize, usize) -> AccessPlan) -> AccessPlan {
        of(self.bytes(), T::LINES)
    }

    /// Calls `work(start, addresses)` for every tile of hashes, until it returns false.
    #[inline(always)]
    fn tiles(&self, access: AccessPlan, hashes: &[u64], work: impl FnMut(usize, &[T::Address]) -> bool) {
        let address = |_: &mut _, _, hash: &u64| self.table.address(*hash);
        let prefetch = |_: &mut _, _, _: &u64, address: &T::Address, hint| self.table.prefetch(address, hint);
        access.tiles(&mut { work }, hashes, address, prefetch, |work, start, addresses| {
            work(start, addresses)
        });
    }
}

impl<T: Slots> Planned for Bucketed<T> {
    /// The bits of a fingerprint.
    type Options = Option<usize>;

    fn build(request: Request, fingerprint_bits: Option<usize>) -> Result<Self, BuildError> {
        let (buckets, expected_keys) = T::solve(request, fingerprint_bits).map_err(BuildError)?;
        let table = T::new(buckets)?;
        Ok(Self { table, expected_keys })
    }
}

#[inline]
fn insert_address<T: Slots>(engine: &Bucketed<T>, address: &T::Address) -> Result<(), InsertErrorKind> {
    engine.table.insert(address).map_err(|refused| match refused {
        Refused::Full => T::full(engine.expected_keys),
        Refused::Copies => InsertErrorKind::Copies {
            limit: T::max_copies(engine.table.buckets()),
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
        let access = self.access(AccessPlan::changes);
        let mut refused = None;
        let inserted = answered(source, &mut answer, |hashes, flags| {
            if refused.is_some() {
                return flags.fill(0);
            }
            self.tiles(access, hashes, |start, addresses| {
                for (i, address) in addresses.iter().enumerate() {
                    if let Err(kind) = insert_address(self, address) {
                        refused = Some(kind);
                        flags[start / 64] = (1 << i) - 1;
                        flags[start / 64 + 1..].fill(0);
                        return false;
                    }
                }
                flags[start / 64] = u64::MAX >> (64 - addresses.len());
                true
            });
        });
        refused.map_or(Ok(inserted), |kind| Err(InsertError { kind, inserted }))
    }

    fn refused_after(error: InsertError, before: usize) -> InsertError {
        error.after(before)
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
        let access = self.access(AccessPlan::changes);
        answered(source, &mut answer, |hashes, removed| {
            self.tiles(access, hashes, |start, addresses| {
                removed[start / 64] = AccessPlan::answers(addresses.iter().map(|address| self.table.remove(address)));
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
        T::slots_of(self.table.buckets())
    }

    fn max_copies(&self) -> usize {
        T::max_copies(self.table.buckets())
    }
}

impl<T> FixedSize for Bucketed<T> {}

/// The buckets as they are. `docs/FORMAT.md` describes the bytes.
impl<T: Slots> Encode for Bucketed<T> {
    const HELD: bool = true;

    fn snapshot_bytes(&self) -> usize {
        snapshot_bytes(T::words_of(self.table.buckets()))
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let _held = self.table.hold();
        let buckets = self.table.buckets();
        let words = T::words_of(buckets);
        let header = OwnHeader::of_buckets(T::KIND, hashing, words, T::to_header(buckets), self.expected_keys);
        write_words(out, &header.to_bytes(), words, self.table.words())
    }

    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, T::KIND)?;
        hasher(header.hashing)?;
        let (buckets, expected_keys) = header.buckets(MOST_WORDS / T::WORDS as u64, T::of_header)?;
        let words = T::words_of(buckets);
        header.check_words(words)?;
        admit(input, header.len as usize, T::bytes_of(buckets) as u64, limit)?;
        let mut table = T::new(buckets).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), words, &mut |first, words| {
            table.store(first, words.iter().map(Load::load));
        })?;
        table.check()?;
        Ok(Self { table, expected_keys })
    }
}
