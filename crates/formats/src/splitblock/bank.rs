//! Many split-block filters, asked with one key at once: [`SplitBlockBank`].

use super::block::{SALTS, block_index};
use super::engine::{Owned, SplitBlock, Xxh64};
use super::sizing::{self, MOST_BLOCKS};
use super::{SplitBlockBloom, SplitBlockFilter};
use alloc::format;
use alloc::vec::Vec;
use core::borrow::Borrow;
use core::fmt;
use lanebloom::bank::{BankError, FilterBank};
use lanebloom::internal::bounds::Load;
use lanebloom::{BuildError, ConcurrentBloom, Filter, Key};

/// Filters that are copied at a time before they become columns: those of a word of a row.
const GROUP: usize = 64;

/// The filters of many Parquet files or row groups as one index: which of them may have a value?
///
/// Each filter is a column, bit for bit. A block of all filters lies side by side, as 256 rows with
/// a bit for each filter. A key reads eight rows, whatever the number of filters; a loop over the
/// filters reads 32 bytes of each. [`lanebloom::bank`] has the idea, the costs, and what a bank
/// guarantees to threads. With 1,024 filters of 54 MB in all, a batch takes 0.2 µs per key, a loop
/// over the filters 21, and one with a batch for each filter 3.3 (Zen 4, record
/// `parquet-bank-zen4.md`).
///
/// A key asks every filter, so the false positives add up: 1,024 filters at 0.1% have one wrong
/// column for each key.
///
/// # Sizes
///
/// All columns have as many blocks as the bank. A smaller filter, whose blocks divide the bank's,
/// becomes a larger one that finds the same: each of its blocks is repeated. A larger one,
/// whose blocks are a multiple of the bank's, is [folded](lanebloom::Exclusive::fold), and has a
/// higher rate. So filters whose sizes are powers of two, as Parquet's libraries make them, all fit
/// a bank of the largest size. Row groups of very different sizes waste memory: use a bank for each
/// size.
///
/// ```
/// use lanebloom_formats::{SplitBlockBank, SplitBlockBloom};
///
/// // The filters of a column in three files.
/// let filters = [0..1000_i64, 1000..1500, 400..1100].map(|ids| {
///     let count = ids.clone().count();
///     let filter = SplitBlockBloom::with_parquet_size(count, 1e-4).unwrap();
///     filter.insert_all(ids);
///     filter
/// });
/// let bank = SplitBlockBank::from_filters(&filters)?;
/// assert!(bank.which(&450_i64).eq([0, 2]));
/// assert!(bank.which(&1200_i64).eq([1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SplitBlockBank {
    /// The lines of all filters. A line has two blocks.
    bank: FilterBank<Xxh64>,
    blocks: usize,
}

/// The rows of a hash, as `KeyRows` of the library says.
fn rows(hash: u64, blocks: usize, width: u64, starts: &mut [u64]) {
    let first = 256 * block_index(hash, blocks) as u64;
    for (i, (start, salt)) in (0..).zip(starts.iter_mut().zip(SALTS)) {
        let bit = (hash as u32).wrapping_mul(salt) >> 27;
        *start = (first + 32 * i + u64::from(bit)) * width;
    }
}

/// Making a bank.
///
/// ```
/// use lanebloom_formats::{SplitBlockBank, SplitBlockBloom};
///
/// let bank = SplitBlockBank::new(100, 32)?;
/// assert_eq!((bank.columns(), bank.blocks(), bank.len()), (128, 32, 0));
/// assert_eq!(bank.memory_bytes(), 128 * 1024);
/// assert!(bank.is_empty() && SplitBlockBank::new(100, 0).is_err());
///
/// let empty = |bytes| SplitBlockBloom::with_bytes(bytes).unwrap();
/// let filters = [32, 1024].map(empty);
/// filters.iter().for_each(|filter| _ = filter.insert("ann"));
/// let bank = SplitBlockBank::from_filters(&filters)?;
/// assert!(bank.blocks() == 32 && bank.which("ann").eq([0, 1]));
/// assert!(bank.len() == 2 && !bank.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl SplitBlockBank {
    /// An empty bank for at least `columns` filters of this many blocks of 32 bytes. The number of
    /// columns is rounded up to a multiple of 64.
    ///
    /// Fails if the columns or the blocks are 0, the blocks 2^32 or more, or the allocation fails.
    pub fn new(columns: usize, blocks: usize) -> Result<Self, BuildError> {
        if !(1..=MOST_BLOCKS).contains(&blocks) {
            return Err(BuildError::new(format!(
                "{blocks} blocks are not in 1 to {MOST_BLOCKS}"
            )));
        }
        let bank = FilterBank::of_lines(blocks.div_ceil(2), columns, (rows, blocks), Xxh64)?;
        Ok(Self { bank, blocks })
    }

    /// A bank of these filters, in order: column `i` is filter `i`. It has the blocks of the
    /// largest one.
    ///
    /// Fails if the list is empty or the allocation fails, and as [`push_all`](Self::push_all).
    pub fn from_filters<F: Borrow<SplitBlockBloom>>(filters: &[F]) -> Result<Self, BankError> {
        let Some(blocks) = filters.iter().map(|filter| filter.borrow().blocks()).max() else {
            return Err(BuildError::new("a bank of 0 filters has no number of blocks").into());
        };
        let mut bank = Self::new(filters.len(), blocks)?;
        bank.push_all(filters)?;
        Ok(bank)
    }
}

/// Filters into columns, and out of them.
///
/// ```
/// use lanebloom_formats::{SplitBlockBank, SplitBlockBloom};
///
/// let mut bank = SplitBlockBank::new(64, 32)?;
/// let filter = SplitBlockBloom::with_bytes(1024)?;
/// filter.insert("ann");
/// let column = bank.push(&filter)?;
/// assert!(bank.which("ann").eq([column]) && bank.to_filter(column)? == filter);
/// assert!(bank.to_filter(64).is_err());
/// let error = bank.push(&SplitBlockBloom::with_bytes(320)?).unwrap_err();
/// let expected = "a filter of 10 blocks does not fit a bank of 32";
/// assert!(error.to_string().starts_with(expected));
///
/// let smaller = SplitBlockBloom::with_bytes(512)?;
/// smaller.insert("ann");
/// assert_eq!(bank.push_all(&[&filter, &smaller])?, [1, 2]);
/// assert!(bank.which("ann").eq([0, 1, 2]));
/// bank.clear(0)?;
/// assert!(bank.which("ann").eq([1, 2]) && bank.len() == 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl SplitBlockBank {
    /// Copies a filter to the first column that is not in use; returns the column. Other threads
    /// may insert into the filter meanwhile, and ask the bank.
    ///
    /// # Errors
    ///
    /// Fails if all columns are in use, the filter's blocks neither divide the bank's nor are a
    /// multiple of them, or the allocation of a copy of the filter fails.
    pub fn push(&self, filter: &SplitBlockBloom) -> Result<usize, BankError> {
        self.bank.push(&self.lines(filter)?)
    }

    /// [`push`](Self::push) of many filters; returns their columns, in ascending order. It takes a
    /// small part of the time.
    ///
    /// Fails as [`push`](Self::push). Columns that were written before stay.
    pub fn push_all<F: Borrow<SplitBlockBloom>>(&mut self, filters: &[F]) -> Result<Vec<usize>, BankError> {
        let mut columns = Vec::with_capacity(filters.len());
        for filters in filters.chunks(GROUP) {
            let lines = filters.iter().map(|filter| self.lines(filter.borrow()));
            let lines = lines.collect::<Result<Vec<_>, _>>()?;
            columns.extend(self.bank.push_all(&lines)?);
        }
        Ok(columns)
    }

    /// A column as a filter with the bank's blocks. Fails if the bank lacks the column, or the
    /// allocation fails.
    pub fn to_filter(&self, column: usize) -> Result<SplitBlockBloom, BankError> {
        let lines = self.bank.to_filter(column)?;
        let mut content = Owned::new(self.blocks, sizing::keys(self.blocks, 0.01))?;
        content.bits.store_words(0, lines.words());
        Ok(SplitBlockFilter(Filter::of(SplitBlock::new(content), Xxh64)))
    }

    /// Empties a column, so that the next [`push`](Self::push) may take it. Fails if the bank lacks
    /// the column.
    pub fn clear(&mut self, column: usize) -> Result<(), BankError> {
        self.bank.clear(column)
    }

    /// The lines of a filter as one of the bank's size.
    fn lines(&self, filter: &SplitBlockBloom) -> Result<ConcurrentBloom<Xxh64>, BankError> {
        let (ours, theirs) = (self.blocks, filter.blocks());
        let (folded, repeated) = (theirs / ours, ours / theirs);
        if folded * ours != theirs && repeated * theirs != ours {
            return Err(BankError::incompatible(format!(
                "a filter of {theirs} blocks does not fit a bank of {ours}: its blocks must divide the bank's, or be a \
                 multiple of them"
            )));
        }
        let blocks = filter.0.engine().blocks();
        let (folded, repeated) = (folded.max(1), repeated.max(1));
        let words = blocks.chunks(folded).flat_map(|blocks| {
            let word = move |i: usize| blocks.iter().fold(0, |word, block| word | Load::load(&block[i]));
            (0..repeated).flat_map(move |_| (0..4).map(word))
        });
        Ok(ConcurrentBloom::of_lines(ours.div_ceil(2), words, Xxh64)?)
    }
}

/// Lookups. [`Bank`](lanebloom::bank::Bank) documents each.
///
/// ```
/// use lanebloom::bank::columns;
/// use lanebloom_formats::splitblock::hash;
/// use lanebloom_formats::{Hashed, SplitBlockBank, SplitBlockBloom};
///
/// let filters = [(); 2].map(|()| SplitBlockBloom::with_bytes(96).unwrap());
/// filters[1].insert("ann");
/// let bank = SplitBlockBank::from_filters(&filters)?;
/// assert!(bank.which("ann").eq([1]) && bank.which("eve").next().is_none());
/// assert!(bank.which(&Hashed(hash("ann"))).eq([1]));
/// let mut found = [7];
/// assert!(bank.which_into("ann", &mut found) && found == [0b10]);
/// let mut all = Vec::new();
/// bank.which_batch(&["eve", "ann"], |key, found| {
///     all.extend(columns(found).map(|column| (key, column)));
/// });
/// assert_eq!(all, [(1, 1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl SplitBlockBank {
    /// The columns that may have `key`, in ascending order. A column that is not returned certainly
    /// does not.
    #[inline]
    pub fn which<'a, K>(&'a self, key: &K) -> impl Iterator<Item = usize> + use<'a, K>
    where
        K: Key<Xxh64> + ?Sized,
    {
        self.bank.which(key)
    }

    /// [`which`](Self::which) as a bitmap: bit `i % 64` of `out[i / 64]` is for column `i`. Returns
    /// whether any bit is set. Panics if `out` does not have a word for every 64 columns.
    #[inline]
    pub fn which_into<K: Key<Xxh64> + ?Sized>(&self, key: &K, out: &mut [u64]) -> bool {
        self.bank.which_into(key, out)
    }

    /// Calls `each(i, bitmap)` for every key `i` in order, with the columns that may have it;
    /// [`columns`](lanebloom::bank::columns) lists them.
    pub fn which_batch<K: Key<Xxh64>>(&self, keys: &[K], each: impl FnMut(usize, &[u64])) {
        self.bank.which_batch(keys, each);
    }
}

/// The shape and statistics of a bank. [`new`](Self::new) has an example.
impl SplitBlockBank {
    /// The number of columns, in use or not: a multiple of 64.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.bank.columns()
    }

    /// The number of columns in use: those that were pushed, and not cleared.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bank.len()
    }

    /// Whether no column is in use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bank.is_empty()
    }

    /// The number of blocks of each filter.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// The bytes of the rows: the sum of all filters, in use or not. An odd number of blocks takes
    /// as many as the next even one.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bank.memory_bytes()
    }
}

/// Prints the numbers of columns and of blocks.
impl fmt::Debug for SplitBlockBank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitBlockBank")
            .field("columns", &self.columns())
            .field("len", &self.len())
            .field("blocks", &self.blocks)
            .finish_non_exhaustive()
    }
}
