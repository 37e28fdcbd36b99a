//! What only some builders set, and the short constructors.

use crate::error::{BuildError, BuildErrorKind};
use crate::filter::methods::traits::Insert;
use crate::filter::parts::engine::PlannedImpl;
use crate::filter::types::bloom::Bloom;
use crate::filter::types::counting::Counting;
use crate::filter::types::cuckoo::Cuckoo;
use crate::filter::types::dleft::DLeft;
use crate::filter::types::scalable::Chain;
use crate::filter::types::tombstone::Tombstone;
#[cfg(feature = "std")]
use crate::filter::types::windowed::Generations;
use crate::filter::{Builder, Filter};
use crate::funnel::Funnel;
use crate::geometry::sizing::Request;
use crate::hash::Murmur3;
use alloc::format;

macro_rules! budgeted {
    ($($engine:ty),*) => {$(
        impl<S> Builder<$engine, S> {
            /// The most memory that the filter may take, in bytes: at least one line of 64, and 72
            /// in a [`DLeftFilter`](crate::DLeftFilter).
            ///
            /// ```
            /// let builder = lanebloom::ConcurrentBloom::builder().memory_budget(10_000);
            /// let filter = builder.expected_keys(5000).build()?;
            /// assert_eq!(filter.memory_bytes(), 9984); // whole lines
            /// assert!(filter.false_positive_rate_at(5000) < 1e-3);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn memory_budget(mut self, bytes: usize) -> Self {
                self.request.budget = Some(bytes);
                self
            }
        }
    )*};
}

budgeted! { Bloom, Counting, Cuckoo, DLeft }
#[cfg(feature = "std")]
budgeted! { Generations }

macro_rules! worded {
    ($($engine:ty),*) => {$(
        impl<S> Builder<$engine, S> {
            /// How many 64-bit words a key touches: 1, 2, 4 or 8, all in one line, or half of them
            /// in each of [two lines](Self::lines_per_key).
            ///
            /// An insert of a new key, or a remove, takes one atomic operation for each word. By
            /// default the builder takes the fewest words whose memory is within 6% of the least.
            /// With 1, an insert and a remove are claims: if several threads race, exactly one gets
            /// `true`.
            ///
            /// ```
            /// let builder = lanebloom::ConcurrentBloom::builder().expected_keys(1000);
            /// let claims = builder.clone().words_per_key(1).build()?;
            /// assert_eq!(claims.words_per_key(), 1);
            /// assert!(builder.words_per_key(3).build().is_err());
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn words_per_key(mut self, words: usize) -> Self {
                self.request.words = Some(words);
                self
            }
        }
    )*};
}

worded! { Bloom, Counting, Chain, Tombstone }
#[cfg(feature = "std")]
worded! { Generations }

macro_rules! two_lined {
    ($($engine:ty),*) => {$(
        impl<S> Builder<$engine, S> {
            /// How many lines of 64 bytes a key touches: 1 or 2. With 2, half of its words are in
            /// each.
            ///
            /// Two lines need [less memory](crate::docs::cost#memory) for the same rate, the more
            /// so the lower it is. A lookup of an absent key asks for the second line in one case
            /// of hundreds. The lookup of a present key and an insert need both lines, and take
            /// up to [twice the time](crate::docs::cost#two-lines-per-key). An insert's answer is
            /// no claim: if several threads race, at least one gets `true`.
            ///
            /// By default the builder takes two lines if they save at least an eighth of the
            /// memory: from a rate of about 1e-5 down. If [`words_per_key`](Self::words_per_key) is
            /// given, it takes one.
            ///
            /// ```
            /// let builder = lanebloom::ConcurrentBloom::builder().expected_keys(100_000);
            /// let builder = builder.false_positive_rate(1e-4);
            /// let one = builder.clone().build()?;
            /// let two = builder.clone().lines_per_key(2).build()?;
            /// assert_eq!((one.lines_per_key(), two.lines_per_key()), (1, 2));
            /// assert!(two.memory_bytes() * 10 < one.memory_bytes() * 93 / 10);
            /// let lower = builder.false_positive_rate(1e-6).build()?;
            /// assert_eq!(lower.lines_per_key(), 2);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn lines_per_key(mut self, lines: usize) -> Self {
                self.request.lines = Some(lines);
                self
            }
        }
    )*};
}

two_lined! { Bloom, Tombstone }
#[cfg(feature = "std")]
two_lined! { Generations }

macro_rules! making {
    ($($engine:ty),*) => {$(
        /// Making a filter.
        impl Filter<$engine> {
            /// A builder, for all options.
            ///
            /// ```
            /// let filter = lanebloom::ConcurrentBloom::builder().expected_keys(1000).build()?;
            /// assert_eq!(filter.expected_keys(), 1000);
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            pub fn builder() -> Builder<$engine> {
                Builder {
                    request: Request::default(),
                    options: <$engine as PlannedImpl>::Options::default(),
                    hasher: Murmur3::default(),
                }
            }

            /// An empty filter for `keys` keys at this rate, with the builder's defaults. Fails as
            /// [`Builder::build`].
            ///
            /// ```
            /// use lanebloom::ConcurrentBloom;
            ///
            /// let filter = ConcurrentBloom::with_capacity(1000, 1e-3)?;
            /// let builder = ConcurrentBloom::builder().expected_keys(1000);
            /// assert!(filter == builder.false_positive_rate(1e-3).build()?);
            /// assert!(ConcurrentBloom::with_capacity(1000, 1.0).is_err());
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias("create", "new", "with_false_pos"))]
            pub fn with_capacity(keys: usize, false_positive_rate: f64) -> Result<Self, BuildError> {
                let builder = Self::builder().expected_keys(keys);
                builder.false_positive_rate(false_positive_rate).build()
            }

            /// A filter that holds `keys` and is sized for as many, at this false-positive rate. (A
            /// [`WindowedBloom`](crate::WindowedBloom) has room for as many in each generation.)
            /// Fails as [`Builder::build`], and if there is no room for one of the keys.
            ///
            /// ```
            /// use lanebloom::CuckooFilter;
            ///
            /// let filter = CuckooFilter::from_keys(["a", "b"], 0.01)?;
            /// assert!(filter.contains("a") && filter.contains("b") && !filter.contains("c"));
            /// assert_eq!(filter.expected_keys(), 2);
            /// let error = CuckooFilter::from_keys(["a"; 20], 0.01).unwrap_err();
            /// assert_eq!(error.to_string(), "the filter has room for only 12 of 20 keys");
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[doc(alias("collect", "from_iter", "toBloomFilter"))]
            pub fn from_keys<K: Funnel>(
                keys: impl IntoIterator<Item = K, IntoIter: ExactSizeIterator>,
                false_positive_rate: f64,
            ) -> Result<Self, BuildError> {
                let keys = keys.into_iter();
                let len = keys.len();
                let filter = Self::with_capacity(<$engine>::at_once(len), false_positive_rate)?;
                match filter.try_insert_all(keys) {
                    Ok(_) => Ok(filter),
                    Err(error) => {
                        let text = format!("the filter has room for only {} of {len} keys", error.inserted());
                        Err(BuildError(BuildErrorKind::Setting(text)))
                    }
                }
            }
        }
    )*};
}

making! { Bloom, Counting, Cuckoo, DLeft, Chain, Tombstone }
#[cfg(feature = "std")]
making! { Generations }
