//! The filters: `types` has a file or folder for each, `methods` the families of methods that
//! several types have, `parts` what the types are made of, `traits` what each operation is called.
//! [`Filter`] itself is here.
//!
//! A new filter type is a file in `types` that implements [`Engine`](traits::Engine) and the traits
//! of its operations, and has methods for keys. The other lines: its module in `types.rs`, its name
//! in `lib.rs`, its kind in `codec` (`header.rs`, `peek.rs`) and its variant of
//! [`AnyFilter`](crate::AnyFilter) if it can be saved, its row in the list of tests
//! (`tests/common/filters.rs`).
//!
//! Long code that is rarely used is `#[inline]`: only the crates that use it compile it.
//! (`docs/CHOICES.md` has the seconds, `ci/build_cost.sh` a bound.)
//!
//! A method that some types lack is in the file of each type that has it. On the page of an alias
//! such as [`ConcurrentBloom`](crate::ConcurrentBloom), rustdoc shows every generic impl of
//! [`Filter`], whatever its bounds: there a method of a generic impl would stand on pages where it
//! cannot be called. `ci/pages.sh` checks that.

mod frozen;
mod membership;
pub(crate) mod methods;
pub(crate) mod parts;
pub mod traits;
pub(crate) mod types;

pub use frozen::Frozen;
pub use membership::Membership;
pub use methods::builders::Builder;
pub use methods::sets::{Exclusive, Pair};

use crate::hash::Murmur3;
use crate::kernel::Isa;

/// A membership filter: keys in, "certainly not" or "probably" out.
///
/// This type has the methods that all filters share. A program names a filter by its alias, such as
/// [`ConcurrentBloom`](crate::ConcurrentBloom): [the table](crate#the-filters) has all of them. The
/// type's page says what its inserts return: whether the filter changed, an error if the key has no
/// room, or both in one `Result`.
///
/// `E` is the engine of such a type, `S` the hasher. Keys are any [`Funnel`](crate::Funnel) type.
/// All methods but [`clear`](Self::clear) and `exclusive` take `&self`: share a filter as `Arc`.
/// Each type's page says what threads may rely on.
///
/// # Any filter
///
/// A function that looks keys up, or inserts keys, in a filter of any type takes a
/// [`Membership`](crate::Membership).
///
/// # Batches
///
/// A batch gives the answers of single calls in order, duplicates within the batch included, many
/// keys at a time. The answers go [where the caller points](crate::Answers): to a slice, a vector,
/// a bitmap, a function. A caller that hashes once for several filters passes hashes as keys:
/// [`Hashed`](crate::Hashed).
///
/// # Overfull filters
///
/// Beyond its expected keys, a Bloom filter goes on to take keys, and its rate rises without a
/// word: planned for 1%, it is 10% at twice the keys and 67% at five times. A program that drops
/// known keys then drops nearly all keys. Check [`is_overfull`](Statistics::is_overfull) of the
/// [`statistics`](Self::statistics) from time to time, and raise an alarm. Then:
///
/// - **Rebuild.** If the keys are at hand, insert them into a larger filter and swap the two. (A
///   `CacheGuard` of the crate `lanebloom-guard` does so while it serves.)
/// - **Grow.** If the number of keys was a guess, use a [`ScalableBloom`](crate::ScalableBloom),
///   which keeps its rate for any number. Without the old keys, keep the old filter beside the new
///   one: a key is known if either has it. The rates add up.
/// - **Rotate.** If old keys may be forgotten, use a `WindowedBloom`.
/// - **Remove.** If keys end, use a [`CountingBloom`](crate::CountingBloom) or a
///   [`CuckooFilter`](crate::CuckooFilter), and remove those that ended.
///
/// # Two filters as sets
///
/// After [`intersection_from`](Exclusive::intersection_from) a filter returns `true`
/// exactly if both filters would have. So it has every key that was inserted into both, and a key
/// of only one at the other one's rate. It is not the filter of the common keys alone: bits that
/// different keys set in the two filters stay too. [Its rate](Statistics::false_positive_rate)
/// for keys of neither is at most the lower one of the two. (At 1%, two full filters without a
/// common key leave 1e-4; if half of the keys are common, 1e-3 to 1.4e-3, where a filter of these
/// alone has 3e-4 to 7e-4.) A counter keeps the lesser of two values.
///
/// [`is_disjoint`](Pair::is_disjoint) tells only sparse filters apart: with 4
/// keys per block of 64 bytes in each of the two, or 3 keys per block of 32 bytes, the result is
/// nearly always `false`. (A full filter for 1% has 47 or 24.) For fuller filters, use
/// [`intersection_len`](Pair::intersection_len).
///
/// # Folds
///
/// A [fold](Exclusive::fold) makes a filter smaller without its keys. The filter is
/// then, bit for bit, the one that the same inserts would have made with as many blocks. The
/// expected keys are divided too, so that the promised rate stays: if the filter has more keys than
/// that, it [is overfull](Statistics::is_overfull) now.
///
/// A filter of 2^n bytes can be halved until one block is left, or two with two lines per key. Any
/// other filter has the factors that its number of blocks happens to have. The content moves to new
/// memory, and the old memory is freed at the end.
///
/// [`fold_to_rate`](Exclusive::fold_to_rate) reads the filter as often as the number
/// of factors has bits. It assumes that the rate grows with the factor. That holds if each factor
/// divides the next one, as in a filter of 2^n bytes. Otherwise, with a few keys, a larger factor
/// than the one found may keep the rate too.
///
/// # Memory ordering
///
/// An insert is a `Release`. A lookup that returns `true` ends in an `Acquire`: everything that the
/// inserters of the key had done before is visible. In batches one `Acquire` serves many keys, and
/// comes before their answers.
pub struct Filter<E, S = Murmur3> {
    pub(crate) engine: E,
    pub(crate) hasher: S,
    /// Kernels that hash batches and unpack bitmaps. (The engine has kernels of its own.)
    pub(crate) isa: Isa,
}

impl<E, S> Filter<E, S> {
    /// A filter that works by the best instruction set of this machine. (Public for
    /// `lanebloom-formats`.)
    #[doc(hidden)]
    pub fn of(engine: E, hasher: S) -> Self {
        Self {
            engine,
            hasher,
            isa: Isa::best(),
        }
    }
}

/// How full a filter is, and how good; the result of
/// [`Filter::statistics`](crate::Filter::statistics).
///
/// ```
/// use lanebloom::{ConcurrentBloom, Statistics};
///
/// let filter = ConcurrentBloom::with_capacity(10_000, 0.01)?;
/// filter.insert_all(0..10_000u32);
/// assert!(!filter.statistics().is_overfull);
/// filter.insert_all(10_000..11_000u32);
/// let Statistics { false_positive_rate, is_overfull, .. } = filter.statistics();
/// assert!(is_overfull && false_positive_rate > 0.014);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// The share of set bits, of counters above 0, or of slots with a key. A Bloom filter with its
    /// expected keys has a little less than half of its bits set.
    pub fill_ratio: f64,
    /// The number of distinct keys: exact for filters with slots, otherwise an estimate.
    ///
    /// The estimate comes from the share of set bits, or from the sum of the counters. Up to the
    /// expected keys, the relative standard error for `n` keys is at most `0.35 / sqrt(n)` at a
    /// rate of 10%, and less at lower ones: at 1%, 1% at 1000 keys and 0.03% at a million. Far
    /// beyond, the error grows. A full filter has the least number that would have filled it.
    pub len: usize,
    /// The chance that a random hash is taken for present.
    pub false_positive_rate: f64,
    /// Bits of memory per expected key.
    pub bits_per_key: f64,
    /// Whether the filter is worse than promised: whether its rate is above [that for the expected
    /// keys](crate::Filter::false_positive_rate). [What to do
    /// then](crate::Filter#overfull-filters).
    ///
    /// The rate varies with the keys. So the limit is the rate of `4 * sqrt(n)` keys more than the
    /// expected `n`. A filter with `n` keys stays below it in 999 cases of 1000. With `6 * sqrt(n)`
    /// keys more (0.6% of a million) it is above it in 95 of 100. (The rate varies more if one
    /// [line per key](crate::bloom::Builder::lines_per_key) is forced where two are the default: at
    /// 1e-6 up to one filter in 12 really is above the limit at `n` keys.)
    ///
    /// A [`ScalableBloom`](crate::ScalableBloom) is overfull beyond its `max_false_positive_rate`.
    /// A filter with slots refuses inserts when it is full, so it never gets much worse than
    /// promised. A [`StaticFilter`](crate::StaticFilter) takes no keys after its build, so it is
    /// never overfull.
    pub is_overfull: bool,
}

impl Statistics {
    /// The statistics of a filter that is not a [`Filter`].
    ///
    /// ```
    /// use lanebloom::Statistics;
    ///
    /// let of_an_exact_set = Statistics::new(0.5, 100, 0.0);
    /// assert_eq!((of_an_exact_set.fill_ratio, of_an_exact_set.len), (0.5, 100));
    /// assert_eq!(of_an_exact_set.false_positive_rate, 0.0);
    /// ```
    #[must_use]
    pub fn new(fill_ratio: f64, len: usize, false_positive_rate: f64) -> Self {
        Self {
            fill_ratio,
            len,
            false_positive_rate,
            bits_per_key: 0.0,
            is_overfull: false,
        }
    }

    /// The number of keys whose rate is above that of the expected `keys` beyond what chance
    /// explains. (Public for `lanebloom-formats` and the Python package.)
    ///
    /// Let the rate of a block grow as the power `p` of its keys, `m` in the mean of `b` blocks.
    /// Keys per block vary by `sqrt(m)`, the rates by the share `p / sqrt(m)`, and their mean by
    /// `p / sqrt(b * m)`. With `n = b * m`, this is what `sqrt(n)` keys more change, for any
    /// layout.
    #[doc(hidden)]
    #[must_use]
    pub fn overfull_at(keys: usize) -> usize {
        keys.saturating_add(4 * keys.isqrt())
    }
}
