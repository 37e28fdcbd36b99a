//! The list of filter types: whatever all types promise is tested for each line of it. A new type
//! takes one line.

pub use lanebloom::WindowedBloom;
pub use lanebloom::{
    BloomView, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, ScalableBloom, SipHash13, TombstoneBloom,
};
use lanebloom::{Filter, Funnel, InsertError, KeyHasher, Murmur3, SnapshotError};
use std::fmt::Debug;
pub use std::time::Duration;

/// Calls the macro `$tests` with each type: the name of its tests, the type's own name, a builder
/// for so many keys, how its filters become the type's where they are built as another one, and
/// what is promised of it.
///
/// | word | traits: those below, and the crate's |
/// |---|---|
/// | `inserts`, `flags`, `extends` | `Inserts`, `Flags`, `Extend` |
/// | `removes`, `counts`, `fills` | `Removes`, `Counts`, `Inserts` that is refused when it is full |
/// | `estimates`, `unites` | `Estimates`, `Union` |
/// | `rates` | that its planned keys can come in any way |
/// | `stored`, `fixed`, `proportional` | `Stored`, snapshots of one length, `Deserialize` |
/// | `live`, `guests` | `Stored` with `Inserts`, with `Removes` that leaves nothing behind |
#[macro_export]
macro_rules! for_each_filter {
    ($tests:ident) => {
        $tests! { concurrent_1: ConcurrentBloom = { ConcurrentBloom::builder().words_per_key(1) }
        [inserts flags extends estimates unites rates stored live fixed proportional] }
        $tests! { concurrent_2: ConcurrentBloom = { ConcurrentBloom::builder().words_per_key(2) }
        [inserts flags extends estimates unites rates stored live fixed proportional] }
        $tests! { concurrent_4: ConcurrentBloom = { ConcurrentBloom::builder().words_per_key(4) }
        [inserts flags extends estimates unites rates stored live fixed proportional] }
        $tests! { concurrent_8: ConcurrentBloom = { ConcurrentBloom::builder().words_per_key(8) }
        [inserts flags extends estimates unites rates stored live fixed proportional] }
        $tests! { two_lines: ConcurrentBloom = { ConcurrentBloom::builder().lines_per_key(2) }
        [inserts flags extends estimates unites rates stored live fixed proportional] }
        $tests! { two_lines_of_2: ConcurrentBloom = { ConcurrentBloom::builder().lines_per_key(2).words_per_key(4) }
        [inserts flags extends estimates unites rates stored live fixed proportional] }
        $tests! { two_lines_of_4: ConcurrentBloom = { ConcurrentBloom::builder().lines_per_key(2).words_per_key(8) }
        [inserts flags extends estimates unites rates stored live fixed proportional] }
        $tests! { concurrent_siphash: ConcurrentBloom
        = { ConcurrentBloom::builder().hasher(SipHash13::with_key([7; 16])) }
        [inserts flags extends estimates unites rates] }
        $tests! { concurrent_build_hasher: ConcurrentBloom
        = { ConcurrentBloom::builder().hasher(foldhash::quality::FixedState::with_seed(7)) }
        [inserts flags extends estimates unites rates] }
        $tests! { view: BloomView = { ConcurrentBloom::builder() => leaked }
        [estimates rates] }
        $tests! { view_two_lines: BloomView = { ConcurrentBloom::builder().lines_per_key(2) => leaked }
        [estimates rates] }
        $tests! { counting: CountingBloom = { CountingBloom::builder() }
        [inserts flags extends removes estimates unites rates stored live guests fixed proportional] }
        $tests! { counting_1: CountingBloom = { CountingBloom::builder().words_per_key(1) }
        [inserts flags extends removes estimates unites rates stored live guests fixed proportional] }
        $tests! { tombstone: TombstoneBloom = { TombstoneBloom::builder().false_negative_rate(1e-4) }
        [inserts flags extends removes estimates unites rates stored live fixed proportional] }
        $tests! { tombstone_two_lines: TombstoneBloom = { TombstoneBloom::builder().lines_per_key(2) }
        [inserts flags extends removes estimates unites rates stored live fixed proportional] }
        $tests! { cuckoo_10: CuckooFilter = { CuckooFilter::builder().fingerprint_bits(10) }
        [inserts removes counts fills rates stored live guests fixed proportional] }
        $tests! { cuckoo_12: CuckooFilter = { CuckooFilter::builder().fingerprint_bits(12) }
        [inserts removes counts fills rates stored live guests fixed proportional] }
        $tests! { cuckoo_16: CuckooFilter = { CuckooFilter::builder().fingerprint_bits(16) }
        [inserts removes counts fills rates stored live guests fixed proportional] }
        $tests! { cuckoo_21: CuckooFilter = { CuckooFilter::builder().fingerprint_bits(21) }
        [inserts removes counts fills rates stored live guests fixed proportional] }
        $tests! { d_left: DLeftFilter = { DLeftFilter::builder() }
        [inserts removes counts fills rates stored live guests fixed proportional] }
        $tests! { scalable: ScalableBloom = { ScalableBloom::builder().max_layers(6) }
        [inserts flags estimates unites rates stored live proportional] }
        $tests! { scalable_grown: ScalableBloom
        = { ScalableBloom::builder().false_positive_rate(0.05).max_layers(6); for 1 of 8 keys }
        [unites rates stored live proportional] }
        $tests! { windowed_by_call: WindowedBloom = { WindowedBloom::builder() }
        [inserts flags extends estimates unites stored live] }
        $tests! { windowed_by_number: WindowedBloom = { WindowedBloom::builder().rotate_when_full() }
        [inserts flags extends estimates unites rates stored live] }
        $tests! { windowed_by_age: WindowedBloom = { WindowedBloom::builder().window(Duration::from_secs(1 << 20)) }
        [inserts flags extends estimates unites] }
    };
}

/// A function that makes a filter of a line of the list, with its own hasher or another one, for so
/// many keys and with these in it.
#[macro_export]
macro_rules! filled {
    ({ $builder:expr $(=> $finish:ident)? $(; for 1 of $part:literal keys)? } $(by $hasher:expr)?) => {
        |keys: usize, content: &[u64]| {
            $(let keys = keys.div_ceil($part);)?
            let builder = $builder.expected_keys(keys)$(.hasher($hasher))?;
            let filter = builder.build().unwrap();
            if content.len() < 64 {
                // One by one, so that a window rotates in between.
                content
                    .iter()
                    .for_each(|key| _ = $crate::filters::Told::told(filter.insert(key)));
            } else {
                $crate::filters::Told::told(filter.insert_all(content));
            }
            $(let filter = filter.$finish().unwrap();)?
            filter
        }
    };
}

/// A function that `filled` makes. A pointer, so that a promise is compiled once for each type, and
/// not again for each line of the list.
pub type Of<E, S = Murmur3> = fn(usize, &[u64]) -> Filter<E, S>;

/// The answer of an insert, or of many, of any type.
pub trait Told: Debug + PartialEq {
    /// How many keys were new, or 0 where the type does not say. Panics where one was refused.
    fn told(self) -> usize;
}

impl Told for bool {
    fn told(self) -> usize {
        self.into()
    }
}

impl Told for usize {
    fn told(self) -> usize {
        self
    }
}

impl Told for () {
    fn told(self) -> usize {
        0
    }
}

impl<T: Told> Told for Result<T, InsertError> {
    fn told(self) -> usize {
        self.unwrap().told()
    }
}

// The methods that several types have, as traits: a test takes any of these types by them.

pub trait Inserts {
    type Answer: Told;
    type Total: Told;

    fn insert<K: Funnel + ?Sized>(&self, key: &K) -> Self::Answer;
    fn insert_hash(&self, hash: u64) -> Self::Answer;
    fn insert_batch<K: Funnel>(&self, keys: &[K]) -> Self::Total;
    fn insert_hashes(&self, hashes: &[u64]) -> Self::Total;
    fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> Self::Total;
    fn clear(&mut self);
}

pub trait Flags: Inserts {
    fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> Self::Total;
    fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> Self::Total;
}

pub trait Removes {
    fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool;
    fn remove_hash(&self, hash: u64) -> bool;
    fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize;
    fn remove_hashes(&self, hashes: &[u64]) -> usize;
    fn remove_batch_flagged<K: Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize;
    fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize;
}

#[expect(clippy::len_without_is_empty, reason = "the tests ask for numbers only")]
pub trait Counts {
    fn count<K: Funnel + ?Sized>(&self, key: &K) -> usize;
    fn count_hash(&self, hash: u64) -> usize;
    fn len(&self) -> usize;
    fn slots(&self) -> usize;
    fn max_copies(&self) -> usize;
}

pub trait Estimates {
    fn estimated_len(&self) -> usize;
}

/// Snapshots of filters whose size never changes.
pub trait Fixed {
    fn snapshot_bytes(&self) -> usize;
    fn write_to_slice(&self, out: &mut [u8]);
}

/// Snapshots of filters that hash with Murmur3.
pub trait OfMurmur3: Sized {
    fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError>;
    fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError>;
}

macro_rules! inserts {
    ($($filter:ident: $answer:ty, $total:ty;)*) => {$(
        impl<S: KeyHasher> Inserts for $filter<S> {
            type Answer = $answer;
            type Total = $total;

            fn insert<K: Funnel + ?Sized>(&self, key: &K) -> $answer {
                self.insert(key)
            }
            fn insert_hash(&self, hash: u64) -> $answer {
                self.insert_hash(hash)
            }
            fn insert_batch<K: Funnel>(&self, keys: &[K]) -> $total {
                self.insert_batch(keys)
            }
            fn insert_hashes(&self, hashes: &[u64]) -> $total {
                self.insert_hashes(hashes)
            }
            fn insert_all<K: Funnel>(&self, keys: impl IntoIterator<Item = K>) -> $total {
                self.insert_all(keys)
            }
            fn clear(&mut self) {
                self.clear();
            }
        }
    )*};
}

macro_rules! flags {
    ($($filter:ident),*) => {$(
        impl<S: KeyHasher> Flags for $filter<S> {
            fn insert_batch_flagged<K: Funnel>(&self, keys: &[K], new: &mut [bool]) -> Self::Total {
                self.insert_batch_flagged(keys, new)
            }
            fn insert_hashes_flagged(&self, hashes: &[u64], new: &mut [bool]) -> Self::Total {
                self.insert_hashes_flagged(hashes, new)
            }
        }
    )*};
}

macro_rules! removes {
    ($($filter:ident),*) => {$(
        impl<S: KeyHasher> Removes for $filter<S> {
            fn remove<K: Funnel + ?Sized>(&self, key: &K) -> bool {
                self.remove(key)
            }
            fn remove_hash(&self, hash: u64) -> bool {
                self.remove_hash(hash)
            }
            fn remove_batch<K: Funnel>(&self, keys: &[K]) -> usize {
                self.remove_batch(keys)
            }
            fn remove_hashes(&self, hashes: &[u64]) -> usize {
                self.remove_hashes(hashes)
            }
            fn remove_batch_flagged<K: Funnel>(&self, keys: &[K], removed: &mut [bool]) -> usize {
                self.remove_batch_flagged(keys, removed)
            }
            fn remove_hashes_flagged(&self, hashes: &[u64], removed: &mut [bool]) -> usize {
                self.remove_hashes_flagged(hashes, removed)
            }
        }
    )*};
}

macro_rules! counts {
    ($($filter:ident),*) => {$(
        impl<S: KeyHasher> Counts for $filter<S> {
            fn count<K: Funnel + ?Sized>(&self, key: &K) -> usize {
                self.count(key)
            }
            fn count_hash(&self, hash: u64) -> usize {
                self.count_hash(hash)
            }
            fn len(&self) -> usize {
                self.len()
            }
            fn slots(&self) -> usize {
                self.slots()
            }
            fn max_copies(&self) -> usize {
                self.max_copies()
            }
        }
    )*};
}

macro_rules! estimates {
    ($($filter:ident $(<$life:lifetime>)?),*) => {$(
        impl<S: KeyHasher> Estimates for $filter<$($life,)? S> {
            fn estimated_len(&self) -> usize {
                self.estimated_len()
            }
        }
    )*};
}

macro_rules! fixed {
    ($($filter:ident),*) => {$(
        impl<S: KeyHasher> Fixed for $filter<S> {
            fn snapshot_bytes(&self) -> usize {
                self.snapshot_bytes()
            }
            fn write_to_slice(&self, out: &mut [u8]) {
                self.write_to_slice(out);
            }
        }
    )*};
}

macro_rules! of_murmur3 {
    ($($filter:ident),*) => {$(
        impl OfMurmur3 for $filter {
            fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
                Self::from_bytes(bytes)
            }
            fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
                Self::read_from(reader, max_bytes)
            }
        }
    )*};
}

inserts! {
    ConcurrentBloom: bool, usize;
    CountingBloom: bool, usize;
    TombstoneBloom: bool, usize;
    CuckooFilter: Result<(), InsertError>, Result<(), InsertError>;
    DLeftFilter: Result<(), InsertError>, Result<(), InsertError>;
    ScalableBloom: Result<bool, InsertError>, Result<usize, InsertError>;
}
flags! { ConcurrentBloom, CountingBloom, TombstoneBloom, ScalableBloom }
removes! { CountingBloom, TombstoneBloom, CuckooFilter, DLeftFilter }
counts! { CuckooFilter, DLeftFilter }
estimates! { ConcurrentBloom, CountingBloom, TombstoneBloom, ScalableBloom, BloomView<'_> }
fixed! { ConcurrentBloom, CountingBloom, TombstoneBloom, CuckooFilter, DLeftFilter }
of_murmur3! {
    ConcurrentBloom, CountingBloom, TombstoneBloom, CuckooFilter, DLeftFilter, ScalableBloom
}
of_murmur3! { WindowedBloom }
inserts! { WindowedBloom: bool, usize; }
flags! { WindowedBloom }
estimates! { WindowedBloom }

/// A view of bytes that stay for ever.
pub trait Leaked<S> {
    fn leaked(&self) -> Result<BloomView<'static, S>, SnapshotError>;
}

impl<S: KeyHasher + Clone> Leaked<S> for ConcurrentBloom<S> {
    fn leaked(&self) -> Result<BloomView<'static, S>, SnapshotError> {
        BloomView::from_bytes_with(self.to_bytes().leak(), self.hasher().clone()).map(|(view, _)| view)
    }
}
