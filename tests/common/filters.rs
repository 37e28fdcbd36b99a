//! The list of filter types: whatever all types promise is tested for each line of it. A new type
//! takes one line.

pub use lanebloom::WindowedBloom;
use lanebloom::internal::traits::{Engine, Insert};
pub use lanebloom::{
    BloomView, ConcurrentBloom, CountingBloom, CuckooFilter, DLeftFilter, ScalableBloom, SipHash13, StaticFilter,
    StaticView, TombstoneBloom,
};
use lanebloom::{BuildError, Filter, Hashed, KeyHasher, Murmur3, SnapshotError, codec, fuse, view};
use std::cell::RefCell;
pub use std::time::Duration;

/// Calls the macro `$tests` with each type: the name of its tests, the type's own name, a builder
/// for so many keys, how its filters become the type's where they are built as another one, and
/// what is promised of it.
///
/// | word | traits |
/// |---|---|
/// | `inserts`, `flags`, `extends` | `Insert`, which tells new keys from old ones, `Extend` |
/// | `removes`, `counts`, `fills` | `Remove`, `Count`, `Insert` that is refused when it is full |
/// | `estimates`, `unites` | that `estimated_len` is an estimate, `Union` |
/// | `rates` | that its planned keys can come in any way |
/// | `stored`, `fixed`, `proportional` | `Encode`, `Encode<Size = FixedSize>`, `Deserialize` |
/// | `live`, `guests` | `Encode` with `Insert`, with `Remove` that leaves nothing behind |
#[macro_export]
macro_rules! for_each_filter {
    ($tests:ident) => {
        $crate::each_promises! { $tests [inserts flags extends estimates unites rates stored live fixed proportional]
            concurrent_1: ConcurrentBloom = { ConcurrentBloom::builder().words_per_key(1) }
            concurrent_2: ConcurrentBloom = { ConcurrentBloom::builder().words_per_key(2) }
            concurrent_4: ConcurrentBloom = { ConcurrentBloom::builder().words_per_key(4) }
            concurrent_8: ConcurrentBloom = { ConcurrentBloom::builder().words_per_key(8) }
            two_lines: ConcurrentBloom = { ConcurrentBloom::builder().lines_per_key(2) }
            two_lines_of_2: ConcurrentBloom = { ConcurrentBloom::builder().lines_per_key(2).words_per_key(4) }
            two_lines_of_4: ConcurrentBloom = { ConcurrentBloom::builder().lines_per_key(2).words_per_key(8) }
        }
        $crate::each_promises! { $tests [inserts flags extends estimates unites rates]
            concurrent_siphash: ConcurrentBloom = { ConcurrentBloom::builder().hasher(SipHash13::with_key([7; 16])) }
            concurrent_build_hasher: ConcurrentBloom
            = { ConcurrentBloom::builder().hasher(foldhash::quality::FixedState::with_seed(7)) }
        }
        $crate::each_promises! { $tests [estimates rates]
            view: BloomView = { ConcurrentBloom::builder() => leaked }
            view_two_lines: BloomView = { ConcurrentBloom::builder().lines_per_key(2) => leaked }
            static_view: StaticView = { Static { bits: 16, ..Static::builder() } => shown }
        }
        $crate::each_promises! { $tests [inserts flags extends removes estimates unites rates stored live guests fixed proportional]
            counting: CountingBloom = { CountingBloom::builder() }
            counting_1: CountingBloom = { CountingBloom::builder().words_per_key(1) }
        }
        $crate::each_promises! { $tests [inserts flags extends removes estimates unites rates stored live fixed proportional]
            tombstone: TombstoneBloom = { TombstoneBloom::builder().false_negative_rate(1e-4) }
            tombstone_two_lines: TombstoneBloom = { TombstoneBloom::builder().lines_per_key(2) }
        }
        $crate::each_promises! { $tests [inserts removes counts fills rates stored live guests fixed proportional]
            cuckoo_10: CuckooFilter = { CuckooFilter::builder().fingerprint_bits(10) }
            cuckoo_12: CuckooFilter = { CuckooFilter::builder().fingerprint_bits(12) }
            cuckoo_16: CuckooFilter = { CuckooFilter::builder().fingerprint_bits(16) }
            cuckoo_21: CuckooFilter = { CuckooFilter::builder().fingerprint_bits(21) }
            d_left: DLeftFilter = { DLeftFilter::builder() }
        }
        $crate::each_promises! { $tests [estimates rates stored fixed proportional]
            static_8: StaticFilter = { Static::builder() => frozen }
            static_11_of_4: StaticFilter = { Static { bits: 11, cells: 4, ..Static::builder() } => frozen }
        }
        $crate::each_promises! { $tests [inserts flags estimates unites rates stored live proportional]
            scalable: ScalableBloom = { ScalableBloom::builder().max_layers(6) }
        }
        $crate::each_promises! { $tests [unites rates stored live proportional]
            scalable_grown: ScalableBloom
            = { ScalableBloom::builder().false_positive_rate(0.05).max_layers(6); for 1 of 8 keys }
        }
        $crate::each_promises! { $tests [inserts flags extends estimates unites stored live]
            windowed_by_call: WindowedBloom = { WindowedBloom::builder() }
        }
        $crate::each_promises! { $tests [inserts flags extends estimates unites rates stored live]
            windowed_by_number: WindowedBloom = { WindowedBloom::builder().rotate_when_full() }
        }
        $crate::each_promises! { $tests [inserts flags extends estimates unites]
            windowed_by_age: WindowedBloom = { WindowedBloom::builder().window(Duration::from_secs(1 << 20)) }
        }
    };
}

/// Calls `$tests` with each of these filters and the words of all.
#[macro_export]
macro_rules! each_promises {
    ($tests:ident $words:tt $($name:ident: $type:ident = $of:tt)*) => {
        $($tests! { $name: $type = $of $words })*
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
            $crate::filters::Fill::fill(&filter, content);
            $(let filter = filter.$finish().unwrap();)?
            filter
        }
    };
}

/// A function that `filled` makes. A pointer, so that a promise is compiled once for each type, and
/// not again for each line of the list.
pub type Of<E, S = Murmur3> = fn(usize, &[u64]) -> Filter<E, S>;

/// Takes the keys of a filter.
pub trait Fill {
    fn fill(&self, content: &[u64]);
}

impl<E: Engine + Insert, S: KeyHasher> Fill for Filter<E, S> {
    fn fill(&self, content: &[u64]) {
        if content.len() < 64 {
            // One by one, so that a window rotates in between.
            content.iter().for_each(|key| _ = self.try_insert(key).unwrap());
        } else {
            self.try_insert_all(content).unwrap();
        }
    }
}

impl<S: KeyHasher> Fill for Static<S> {
    fn fill(&self, content: &[u64]) {
        let hashes = content.iter().map(|key| self.hasher.hash_key(key));
        self.hashes.borrow_mut().extend(hashes);
    }
}

/// A view of bytes that stay for ever, and begin at an address of any kind.
pub trait Leaked<S> {
    fn leaked(&self) -> Result<Filter<view::View<'static>, S>, SnapshotError>;
}

impl<S: KeyHasher + Clone> Leaked<S> for ConcurrentBloom<S> {
    fn leaked(&self) -> Result<Filter<view::View<'static>, S>, SnapshotError> {
        let bytes = self.snapshot().to_vec();
        let at = [0, 1, 8][self.layout().blocks % 3];
        let bytes = &[&vec![0; at], &bytes[..], b"more"].concat().leak()[at..];
        let (view, rest) = codec::view::<BloomView<_>>(bytes, self.hasher().clone())?;
        assert!(rest == b"more" && view.statistics() == self.statistics());
        Ok(view.as_filter().clone())
    }
}

/// Collects keys for a filter that does not change.
pub struct Static<S = Murmur3> {
    pub bits: usize,
    pub cells: usize,
    pub hasher: S,
    pub hashes: RefCell<Vec<u64>>,
}

impl Static {
    pub fn builder() -> Self {
        Self {
            bits: 8,
            cells: 3,
            hasher: Murmur3::default(),
            hashes: RefCell::default(),
        }
    }
}

impl<S: KeyHasher + Clone> Static<S> {
    #[must_use]
    pub fn expected_keys(self, _: usize) -> Self {
        self
    }

    pub fn hasher<T>(self, hasher: T) -> Static<T> {
        let Self {
            bits, cells, hashes, ..
        } = self;
        Static {
            bits,
            cells,
            hasher,
            hashes,
        }
    }

    pub fn build(self) -> Result<Self, BuildError> {
        Ok(self)
    }

    fn filter(&self) -> StaticFilter<S> {
        let builder = StaticFilter::builder().hasher(self.hasher.clone());
        let builder = builder.fingerprint_bits(self.bits).cells_per_key(self.cells);
        builder.build_from_batch(Hashed::slice(&self.hashes.borrow())).unwrap()
    }

    pub fn frozen(&self) -> Result<Filter<fuse::Static, S>, BuildError> {
        self.filter().as_filter().try_clone()
    }

    pub fn shown(&self) -> Result<Filter<fuse::StaticBytes<'static>, S>, SnapshotError> {
        let bytes = self.filter().snapshot().to_vec().leak();
        codec::view::<StaticView<_>>(bytes, self.hasher.clone()).map(|(view, _)| view.as_filter().clone())
    }
}
