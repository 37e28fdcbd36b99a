//! What the engines share that keep each key in one slot of a few buckets: the fingerprints of a
//! cuckoo filter, and the cells of a d-left filter. Lookups, batches, figures and
//! snapshots are here. A table brings its words, its addresses, and its argument about races.

use crate::batch::{Answer, Source};
use crate::codec::{
    Hashing, Input, Kind, MOST_WORDS, Out, OwnHeader, SNAPSHOT_HEADER, admit, read_words, snapshot_bytes, write_words,
};
use crate::error::{BuildError, BuildErrorKind, InsertError, InsertErrorKind, SnapshotErrorKind};
use crate::filter::Figures;
use crate::filter::parts::engine::{EngineImpl, InsertImpl, RemoveImpl, StoredImpl};
use crate::filter::parts::probe::{self, Probe};
use crate::geometry::sizing::{MAX_BITS_PER_KEY, Request};
use crate::words::bits::{self, Load};
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::iter::repeat;

/// A table of buckets with slots.
pub(crate) trait Slots: Probe + Sized {
    const TYPE: &'static str;
    const KIND: Kind;
    /// The words of memory for each bucket of the header, at most.
    const WORDS: usize;

    type BucketLayout: BucketLayout;

    /// An empty table.
    fn new(layout: Self::BucketLayout) -> Result<Self, BuildError>;

    fn bucket_layout(&self) -> Self::BucketLayout;

    /// The words of a snapshot.
    fn words_of(layout: Self::BucketLayout) -> usize;

    fn bytes_of(layout: Self::BucketLayout) -> usize;

    /// Fails if the words, read from a snapshot, are not those of a table.
    fn check(&self) -> Result<(), SnapshotErrorKind>;

    /// The words, one after another. Call [`acquire`](bits::acquire) after the last.
    fn words(&self) -> impl Iterator<Item = u64>;

    /// Sets the words from `first` on, while no other thread knows of the table.
    fn store(&mut self, first: usize, words: impl Iterator<Item = u64>);

    /// Makes the changes wait that could hide a key from a reader of all words, until the result is
    /// dropped.
    fn hold(&self) -> impl Sized;

    /// The slots that hold a key, and the keys in them. Ends in an `Acquire`.
    fn occupied(&self) -> (usize, usize);

    fn copies(&self, address: &Self::Address) -> usize;
}

/// The shape of a table's buckets, and how many there are.
pub(crate) trait BucketLayout: Copy {
    fn slots(self) -> usize;

    fn max_copies(self) -> usize;

    /// The false-positive rate when this part of the slots is occupied.
    fn rate_at(self, load: f64) -> f64;

    /// The bits of a fingerprint, and the number of buckets.
    fn to_header(self) -> (u8, usize);

    /// The layout that a header declares, and the most keys that a builder plans for it.
    fn of_header(bits: u8, buckets: usize) -> Result<(Self, usize), SnapshotErrorKind>;
}

/// The error for a rate that `fingerprints` of so many bits do not reach.
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

/// A table that can be changed.
pub(crate) trait SlotsMut: Slots {
    type Options: Clone + Default + fmt::Debug;

    /// The plan for what a builder was asked for, and the number of keys that it is for.
    fn solve(request: Request, options: Self::Options) -> Result<(Self::BucketLayout, usize), BuildErrorKind>;

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

/// An engine with slots for its keys.
pub struct Slotted<T> {
    pub(crate) table: T,
    pub(crate) expected_keys: usize,
}

impl<T: Slots> EngineImpl for Slotted<T> {
    const NAME: &'static str = T::TYPE;

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.table.holds(&self.table.address(hash))
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        probe::contains_bitmap(&self.table, hashes, found);
    }

    /// One by one: a lookup does not branch.
    #[inline]
    fn contains_few(&self, hashes: &[u64], found: &mut [bool]) {
        for (&hash, found) in hashes.iter().zip(found) {
            *found = self.contains(hash);
        }
    }

    fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    fn memory_bytes(&self) -> usize {
        T::bytes_of(self.table.bucket_layout())
    }

    fn is_empty(&self) -> bool {
        let empty = self.table.words().all(|word| word == 0);
        bits::acquire();
        empty
    }

    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let layout = self.table.bucket_layout();
        let load = keys as f64 / layout.slots() as f64;
        layout.rate_at(f64::min(load, 1.0))
    }

    fn figures(&self) -> Figures {
        let (layout, (slots, len)) = (self.table.bucket_layout(), self.table.occupied());
        let fill_ratio = slots as f64 / layout.slots() as f64;
        Figures {
            fill_ratio,
            len,
            false_positive_rate: layout.rate_at(fill_ratio),
        }
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        let mut table = T::new(self.table.bucket_layout())?;
        let held = self.table.hold();
        table.store(0, self.table.words());
        bits::acquire();
        drop(held);
        Ok(Self { table, ..*self })
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        let layout = self.table.bucket_layout();
        f.field("fingerprint_bits", &layout.to_header().0)
            .field("len", &self.table.occupied().1)
            .field("slots", &layout.slots());
    }
}

/// An empty engine for what a builder was asked for.
pub(crate) fn planned<T: SlotsMut>(request: Request, options: T::Options) -> Result<Slotted<T>, BuildError> {
    let (layout, expected_keys) = T::solve(request, options).map_err(BuildError)?;
    let table = T::new(layout)?;
    Ok(Slotted { table, expected_keys })
}

#[inline]
fn insert_address<T: SlotsMut>(engine: &Slotted<T>, address: &T::Address) -> Result<(), InsertErrorKind> {
    engine.table.insert(address).map_err(|refused| match refused {
        Refused::Full => T::full(engine.expected_keys),
        Refused::Copies => InsertErrorKind::Copies {
            limit: engine.table.bucket_layout().max_copies(),
        },
    })
}

impl<T: SlotsMut> InsertImpl for Slotted<T> {
    type Answer = Result<(), InsertError>;
    type Total = Result<(), InsertError>;

    #[inline]
    fn insert(&self, hash: u64) -> Result<(), InsertError> {
        let result = insert_address(self, &self.table.address(hash));
        result.map_err(|kind| InsertError { kind, inserted: 0 })
    }

    /// Inserts in order, up to the first hash that is refused.
    fn insert_all(&self, source: &impl Source) -> Result<(), InsertError> {
        probe::insert_all(&self.table, source, |address| insert_address(self, address))
    }

    fn clear(&mut self) {
        self.table.store(0, repeat(0));
    }
}

impl<T: SlotsMut> RemoveImpl for Slotted<T> {
    #[inline]
    fn remove(&self, hash: u64) -> bool {
        self.table.remove(&self.table.address(hash))
    }

    /// Removes in order; returns how many were there.
    fn remove_all(&self, source: &impl Source, answer: Answer<'_>) -> usize {
        probe::remove_all(&self.table, source, answer, |address| self.table.remove(address))
    }
}

/// The buckets as they are. `docs/FORMAT.md` describes the bytes.
impl<T: Slots> StoredImpl for Slotted<T> {
    const HELD: bool = true;

    fn snapshot_bytes(&self) -> usize {
        snapshot_bytes(T::words_of(self.table.bucket_layout()))
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let _held = self.table.hold();
        let layout = self.table.bucket_layout();
        let words = T::words_of(layout);
        let header = OwnHeader::of_buckets(T::KIND, hashing, words, layout.to_header(), self.expected_keys);
        write_words(out, &header.to_bytes(), words, self.table.words())
    }

    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, T::KIND)?;
        let hasher = hasher(header.hashing)?;
        let (layout, expected_keys) = header.buckets(MOST_WORDS / T::WORDS as u64, T::BucketLayout::of_header)?;
        let words = T::words_of(layout);
        header.check_words(words)?;
        admit(input, header.len as usize, T::bytes_of(layout) as u64, limit)?;
        let mut table = T::new(layout).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), words, |first, words| {
            table.store(first, words.iter().map(Load::load));
        })?;
        table.check()?;
        Ok((Self { table, expected_keys }, hasher))
    }
}
