//! Many Bloom filters of one shape, asked with one key at once: which of them may hold it? For
//! programs that keep a filter for each of a thousand files, segments, tenants or days. Not for a
//! few filters, or for filters that are mostly [asked alone](#when-not-to-use-it).
//!
//! [`FilterBank`] is the bank. Each filter is a *column*, bit for bit a [`ConcurrentBloom`] of the
//! bank's layout:
//! [`push`](FilterBank::push) takes one, [`to_filter`](Bank::to_filter) returns one. [`BankView`]
//! reads a snapshot's bytes in place. Both are a [`Bank`], which has the lookups.
//!
//! The filters in Parquet files have a bank of their own, `SplitBlockBank` of the crate
//! `lanebloom-formats`.
//!
//! # Algorithm
//!
//! A `ConcurrentBloom` keeps the bits of a key in one block of 512 bits, or in two. A bank has the
//! same block of all its filters side by side, as 512 rows: row `b` holds bit `b` of every filter.
//! With 1,024 columns a row is 128 bytes, and all rows of a block are 64 KiB.
//!
//! ```text
//! block = the key's block, as in a ConcurrentBloom
//! found = all ones                                   a bit for each column
//! for bit in the key's bits in its block:            6 at a rate of 1%
//!     found &= row[block][bit]                       vectors of 8 words
//!     if all words of the vector are 0: the next     after 8 rows
//! ```
//!
//! A loop over the filters reads a line of each, and uses 6 bits of it. A bank reads these 6 bits
//! of each filter alone.
//!
//! # Wrong columns
//!
//! A key asks every filter, so the false positives add up: on average, columns × rate of them are
//! wrong. [`with_capacity`](FilterBank::with_capacity) takes this number for the whole bank.
//!
//! | columns | wrong columns per key at 1% | at 1e-3 | at 1e-4 | at 1e-5 | bits per key for 0.1 wrong columns |
//! |--:|--:|--:|--:|--:|--:|
//! | 64 | 0.64 | 0.064 | 0.0064 | 0.00064 | 15.3 |
//! | 256 | 2.6 | 0.26 | 0.026 | 0.0026 | 20.1 |
//! | 1,024 | 10 | 1.0 | 0.10 | 0.010 | 23.6 |
//! | 8,192 | 82 | 8.2 | 0.82 | 0.082 | 33.7; 26.0 with [two lines per key](crate::bloom::Builder::lines_per_key) |
//!
//! # More filters than columns
//!
//! The number of columns is fixed, since one more word in each row would move all rows. Banks make
//! a chain: when the last one is full, the program adds one. A lookup asks each bank. With a
//! multiple of 512 columns, a bank has whole lines in each row, and a chain of such banks reads no
//! more lines than one long bank would.
//!
//! ```
//! use lanebloom::ConcurrentBloom;
//! use lanebloom::bank::FilterBank;
//!
//! let builder = ConcurrentBloom::builder().expected_keys(1000);
//! let builder = builder.false_positive_rate(1e-6);
//! let mut banks: Vec<FilterBank> = Vec::new();
//! for day in 0..200u32 {
//!     let filter = builder.clone().build()?;
//!     filter.insert(&(day / 10));
//!     if banks.last().is_none_or(|bank| bank.len() == bank.columns()) {
//!         banks.push(FilterBank::new(64, &builder)?);
//!     }
//!     banks.last().expect("there is one").push(&filter)?;
//! }
//! let numbered = banks.iter().zip((0..).step_by(64));
//! let days = numbered.flat_map(|(bank, first)| {
//!     bank.which(&7u32).map(move |column| first + column)
//! });
//! assert!(days.eq(70..80));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Cost
//!
//! The memory is the sum of the filters. With 1,024 filters of 100 thousand keys at 1%, a
//! pre-hashed key takes 36 to 39 ns by [`which_batch`](Bank::which_batch) and 145 to 314 by
//! [`which_into`](Bank::which_into). A loop over the filters takes 10,400 ns by batches of 1,024
//! keys (Zen 4, layout version 1).
//!
//! To [insert](FilterBank::insert) a new key takes 240 to 370 ns there; into a `ConcurrentBloom` it
//! takes 8.5. So fill filters, and push them: [`push_all`](FilterBank::push_all) takes 0.3 to 0.7
//! ns for each key. [`docs::choices`](crate::docs::choices#banks) has more sizes.
//!
//! # When not to use it
//!
//! - **Few filters**, or filters that are mostly asked alone. A lookup in one column
//!   ([`contains`](Bank::contains)) reads a line for each of the key's bits, where a
//!   `ConcurrentBloom` reads one line.
//! - **Filters of very different sizes.** All columns have the size of one layout. A larger filter
//!   [folds](crate::Exclusive::fold) if its blocks are a multiple of the bank's, and then has a
//!   higher rate. Use a bank for each size.
//! - **Filters that are filled key by key.** An [`insert`](FilterBank::insert) writes a line for
//!   each bit of the key. Fill a `ConcurrentBloom` and [`push`](FilterBank::push) it.
//! - **Most keys are in most filters**: invert the table instead, and store the list of files with
//!   each key.
//!
//! # Consistency
//!
//! The columns of a bank keep the crate's [promises](crate#consistency), each as a
//! [`ConcurrentBloom`] does, with "lookup" for all methods that return columns or bitmaps of them:
//!
//! 1. **No false negatives.** If an [`insert`](FilterBank::insert) of a key into a column happens
//!    before a lookup, the lookup returns this column. The same holds for the keys of a filter, if
//!    its [`push`](FilterBank::push) happens before the lookup. Beside a push, a lookup may return
//!    the column or not.
//! 2. **Publication.** If a lookup returns a column, the caller sees everything that the threads
//!    which set the key's bits in this column did before. A push passes on what the inserters of
//!    its filter did.
//! 3. **Lock-freedom.** Inserts, pushes and lookups never block. An insert takes one atomic
//!    operation for each bit that is new. Lookups allocate nothing, except for the bitmap of a
//!    batch in a bank of more than 8,192 columns.
//! 4. **The whole bank beside inserts.** [`to_filter`](Bank::to_filter), snapshots and `try_clone`
//!    hold at least every insert and push that happened before them.
//! 5. **What takes `&mut self`.** [`clear`](FilterBank::clear) cannot be made safe beside inserts
//!    and lookups, and [`push_all`](FilterBank::push_all) writes without atomics.

mod columns;
pub(crate) mod rows;
mod snapshot;
mod which;

pub use rows::columns;
pub use snapshot::{BankHeader, BankView, SnapshotRows};

use crate::bitmap::{ConcurrentBitmap, Storage};
use crate::error::BuildError;
#[cfg(doc)]
use crate::filter::types::bloom::ConcurrentBloom;
use crate::funnel::Funnel;
use crate::geometry::layout::{LINE_BYTES, Layout};
use crate::geometry::sizing::Unit;
use crate::hash::{FilterHasher, KeyHasher, Murmur3};
use crate::kernel::Isa;
use crate::words::bits::{Bits, Load, acquire};
use crate::words::sync::AtomicU64;
use alloc::format;
use alloc::string::{String, ToString};
use core::error::Error;
use core::fmt;
use rows::{Columns, RowFinder, WORD};

/// Many Bloom filters of one shape, side by side: the methods that read them.
///
/// `R` stores the rows: [`AtomicRows`] in a [`FilterBank`], [`SnapshotRows`] in a [`BankView`]. `S`
/// hashes the keys.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::bank::{Bank, BankView, FilterBank, Rows};
///
/// fn in_all<R: Rows>(bank: &Bank<R>, keys: &[&str]) -> usize {
///     keys.iter().filter(|key| bank.count(*key) == bank.len()).count()
/// }
///
/// let bank = FilterBank::with_capacity(64, 1000, 0.1)?;
/// bank.insert_batch(0, &["a", "b"])?;
/// bank.insert_batch(1, &["b", "c"])?;
/// let bytes = bank.snapshot().to_vec();
/// assert_eq!(in_all(&bank, &["a", "b", "c"]), 1);
/// assert_eq!(in_all(&BankView::from_bytes(&bytes)?.0, &["a", "b", "c"]), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Bank<R: Rows, S = Murmur3> {
    rows: R,
    pub(crate) finder: RowFinder,
    expected_keys: usize,
    hasher: S,
    isa: Isa,
}

/// A bank of Bloom filters, which many threads fill and ask at once.
///
/// [The module's page](self) says how it works, when not to use it, and what it guarantees to
/// threads. [`Bank`] has the methods that only read.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::bank::FilterBank;
///
/// // A filter for each file.
/// let filters: Vec<_> = (0..100u32)
///     .map(|file| ConcurrentBloom::from_keys(file * 10..file * 10 + 20, 1e-4))
///     .collect::<Result<_, _>>()?;
/// let bank = FilterBank::from_filters(&filters)?;
///
/// // The files that may have it.
/// assert!(bank.which(&435u32).eq([42, 43]));
/// assert!(bank.any(&999u32) && !bank.any(&5000u32));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("bit-sliced", "interleaved", "bitslice", "BIGSI", "IBF"))]
pub type FilterBank<S = Murmur3> = Bank<AtomicRows, S>;

/// The storage of a [`Bank`]'s rows: [`AtomicRows`] or [`SnapshotRows`].
///
/// Only this crate implements it. [`Bank`] has an example.
pub trait Rows {
    #[doc(hidden)]
    type Word: Load;

    /// The name of the type, for `Debug`.
    #[doc(hidden)]
    const NAME: &'static str;

    /// The rows of all blocks.
    #[doc(hidden)]
    fn rows(&self) -> &[Self::Word];

    /// A bit for each column: whether it is in use.
    #[doc(hidden)]
    fn in_use(&self) -> &[Self::Word];
}

/// The rows of a [`FilterBank`]: atomic words.
pub struct AtomicRows {
    /// Bit `columns * row + column` is that row's bit of this column.
    bits: Bits,
    /// The columns in use. A column is marked before a bit of it is set.
    in_use: ConcurrentBitmap,
}

impl AtomicRows {
    /// Rows of zeros, and no column in use.
    #[inline]
    fn new(finder: &RowFinder) -> Result<Self, BuildError> {
        let (blocks, columns) = (finder.layout.blocks, finder.columns());
        let lines = blocks.checked_mul(columns);
        let lines = lines.ok_or_else(|| BuildError::out_of_memory(usize::MAX))?;
        Ok(Self {
            bits: Bits::new(lines)?,
            in_use: ConcurrentBitmap::new(columns as u64)?,
        })
    }
}

impl Rows for AtomicRows {
    type Word = AtomicU64;
    const NAME: &'static str = "FilterBank";

    #[inline(always)]
    fn rows(&self) -> &[AtomicU64] {
        self.bits.shared().all().as_flattened()
    }

    #[inline(always)]
    fn in_use(&self) -> &[AtomicU64] {
        &self.in_use.bits.words()[..self.in_use.bound() as usize / WORD]
    }
}

/// `columns`, rounded up to whole words of a row.
pub(crate) fn whole_words(columns: usize) -> Result<usize, BuildError> {
    match columns.checked_next_multiple_of(WORD) {
        None | Some(0) => Err(BuildError::new(format!(
            "{columns} columns are not in 1 to {}",
            usize::MAX / WORD * WORD
        ))),
        Some(columns) => Ok(columns),
    }
}

impl<S> FilterBank<S> {
    /// A bank of at least `columns` empty filters.
    pub(crate) fn empty(layout: Layout, columns: usize, expected_keys: usize, hasher: S) -> Result<Self, BuildError> {
        let finder = RowFinder::new(layout, whole_words(columns)?);
        Ok(Self::of(AtomicRows::new(&finder)?, finder, expected_keys, hasher))
    }

    /// A copy. It holds every key that was inserted or pushed before the call. Fails if the
    /// allocation fails.
    ///
    /// ```
    /// let bank = lanebloom::bank::FilterBank::with_capacity(64, 1000, 0.1)?;
    /// bank.insert(7, "a")?;
    /// let copy = bank.try_clone()?;
    /// bank.insert(8, "a")?;
    /// assert!(copy.which("a").eq([7]) && bank.which("a").eq([7, 8]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_clone(&self) -> Result<Self, BuildError>
    where
        S: Clone,
    {
        // The rows before the columns in use, which are marked before their bits are set.
        let bits = self.rows.bits.try_clone()?;
        let in_use = self.rows.in_use.try_clone()?;
        let rows = AtomicRows { bits, in_use };
        Ok(Self::of(rows, self.finder, self.expected_keys, self.hasher.clone()))
    }
}

impl<R: Rows, S> Bank<R, S> {
    fn of(rows: R, finder: RowFinder, expected_keys: usize, hasher: S) -> Self {
        Self {
            rows,
            finder,
            expected_keys,
            hasher,
            isa: Isa::best(),
        }
    }

    /// The same bank, worked on by another instruction set. For tests and benches.
    #[doc(hidden)]
    #[must_use]
    pub fn with_isa(self, isa: Isa) -> Self {
        Self { isa, ..self }
    }

    fn check(&self, column: usize) -> Result<(), BankError> {
        let columns = self.columns();
        if column < columns {
            return Ok(());
        }
        Err(BankError(Problem::Other(format!(
            "column {column} is not below the bank's {columns} columns"
        ))))
    }
}

/// The shape and statistics of a bank. These methods count columns in use by reading a bit of each.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::bank::FilterBank;
///
/// let filters = ConcurrentBloom::builder().expected_keys(1000).seed(7);
/// let mut bank = FilterBank::new(65, &filters)?;
/// let filter = filters.build()?;
/// assert_eq!((bank.columns(), bank.expected_keys()), (128, 1000));
/// assert_eq!(bank.blocks(), filter.layout().blocks);
/// assert_eq!(bank.memory_bytes(), 128 * filter.memory_bytes());
/// assert_eq!(bank.false_positive_rate(), filter.false_positive_rate());
/// assert_eq!((bank.hasher().seed(), bank.hash("a")), (7, filter.hash("a")));
/// assert!(bank.is_empty());
/// bank.insert(70, "a")?;
/// bank.insert(7, "b")?;
/// assert!(bank.columns_in_use().eq([7, 70]) && bank.len() == 2);
/// bank.clear(7)?;
/// assert!(bank.len() == 1 && !bank.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<R: Rows, S> Bank<R, S> {
    /// The number of columns, in use or not: a multiple of 64.
    #[inline]
    #[must_use]
    pub fn columns(&self) -> usize {
        self.finder.columns()
    }

    /// The number of columns in use: those that were pushed or inserted into, and not cleared.
    #[must_use]
    pub fn len(&self) -> usize {
        self.columns_in_use().count()
    }

    /// Whether no column is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns_in_use().next().is_none()
    }

    /// The columns in use, in ascending order.
    pub fn columns_in_use(&self) -> impl Iterator<Item = usize> + '_ {
        Columns::of(self.rows.in_use().iter().map(|word| {
            let word = word.load();
            acquire();
            word
        }))
    }

    /// The number of keys for which each filter is sized.
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.expected_keys
    }

    /// The false-positive rate of each filter with its expected keys. On average, a key that no
    /// filter holds is found in this share of the columns.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.finder.layout.rate_of(Unit::Bit, self.expected_keys)
    }

    /// The number of blocks of each filter.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.finder.layout.blocks
    }

    /// The bytes of the rows: the sum of all filters, in use or not.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.blocks() * self.columns() * LINE_BYTES
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// The hash by which this bank knows `key`: that of its filters.
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64
    where
        S: KeyHasher,
    {
        self.hasher.hash_key(key)
    }
}

/// Banks are equal if their layouts, hashers, numbers of columns, columns in use and bits are.
///
/// ```
/// use lanebloom::bank::FilterBank;
///
/// let a = FilterBank::with_capacity(64, 1000, 0.1)?;
/// let b = FilterBank::with_capacity(64, 1000, 0.1)?;
/// a.insert(7, "a")?;
/// assert!(a != b);
/// b.insert(7, "a")?;
/// assert!(a == b && a != FilterBank::with_capacity(65, 1000, 0.1)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<A: Rows, B: Rows, S: FilterHasher> PartialEq<Bank<B, S>> for Bank<A, S> {
    fn eq(&self, other: &Bank<B, S>) -> bool {
        fn words<'a, W: Load>(words: &'a [W]) -> impl Iterator<Item = u64> + 'a {
            words.iter().map(Load::load)
        }
        let equal = self.finder.layout == other.finder.layout
            && self.columns() == other.columns()
            && self.hasher.fingerprint() == other.hasher.fingerprint()
            && words(self.rows.in_use()).eq(words(other.rows.in_use()))
            && words(self.rows.rows()).eq(words(other.rows.rows()));
        acquire();
        equal
    }
}

/// Prints the numbers of columns, and the layout of each filter.
impl<R: Rows, S> fmt::Debug for Bank<R, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(R::NAME)
            .field("columns", &self.columns())
            .field("len", &self.len())
            .field("layout", &format_args!("{}", self.finder.layout))
            .finish_non_exhaustive()
    }
}

/// A [`FilterBank`] refused a call: it lacks the column, no column is free, or a filter does not
/// fit. The bank is unchanged.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::bank::FilterBank;
///
/// let builder = ConcurrentBloom::builder().expected_keys(10);
/// let bank = FilterBank::new(64, &builder)?;
/// let error = bank.insert(64, "a").unwrap_err();
/// assert_eq!(error.to_string(), "column 64 is not below the bank's 64 columns");
/// let other = builder.clone().words_per_key(8).build()?;
/// assert!(bank.push(&other).unwrap_err().is_incompatible());
/// let filter = builder.build()?;
/// let error = (0..65).find_map(|_| bank.push(&filter).err()).unwrap();
/// assert!(error.is_full() && !error.is_incompatible() && bank.len() == 64);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct BankError(Problem);

#[derive(Clone, Debug, PartialEq)]
enum Problem {
    Full(String),
    Incompatible(String),
    Other(String),
}

impl BankError {
    /// Whether the bank has fewer free columns than filters were pushed.
    #[must_use]
    pub fn is_full(&self) -> bool {
        matches!(self.0, Problem::Full(_))
    }

    /// Whether a filter does not fit the bank: its hasher or its shape differ, or the number of its
    /// blocks is not a multiple of the bank's.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        matches!(self.0, Problem::Incompatible(_))
    }
}

#[doc(hidden)]
impl BankError {
    /// For `lanebloom-formats`: a filter does not fit.
    #[must_use]
    pub fn incompatible(problem: String) -> Self {
        Self(Problem::Incompatible(problem))
    }
}

impl From<BuildError> for BankError {
    fn from(error: BuildError) -> Self {
        Self(Problem::Other(error.to_string()))
    }
}

impl fmt::Display for BankError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Problem::Full(text) | Problem::Incompatible(text) | Problem::Other(text)) = &self.0;
        f.write_str(text)
    }
}

impl Error for BankError {}
