//! Making a bank, and its columns: keys and filters into them, filters out of them.

use super::rows::{Square, Transpose, WORD, add_rows};
use super::{Bank, BankError, FilterBank, Problem, Rows, whole_words};
use crate::error::BuildError;
use crate::filter::methods::sets::Sets;
use crate::filter::parts::lines::plan;
use crate::filter::types::bloom::engine::empty;
use crate::filter::types::bloom::sets::fold;
use crate::filter::types::bloom::{Bloom, BloomBits, ConcurrentBloom};
use crate::filter::{Builder, Filter, Statistics};
use crate::geometry::layout::{LINE_BITS, LINE_WORDS, Layout};
use crate::geometry::sizing::Unit;
use crate::hash::FilterHasher;
use crate::kernel::plan::Prefetching;
use crate::key::Key;
use crate::words::bits::{Hint, Load, acquire, acquire_if};
use crate::words::scratch::Scratch;
use alloc::format;
use alloc::vec::Vec;
use core::borrow::Borrow;

/// Words of a row that [`FilterBank::push_all`] writes at a time: a cache line.
const GROUP: usize = LINE_WORDS;

/// Making a bank.
impl FilterBank {
    /// An empty bank of at least `columns` filters for `keys` keys each. On average, a key that no
    /// filter holds is found in `false_columns` of them, once all hold their keys.
    ///
    /// The filters have a rate of `false_columns / columns`. They are bit for bit those of
    /// [`ConcurrentBloom::with_capacity`] at this rate; [`new`](Self::new) takes the rate itself.
    /// (So 0.01 for 1,024 columns is not 1%, but 1e-5 for each filter.)
    /// The number of columns is rounded up to a multiple of 64.
    ///
    /// # Errors
    ///
    /// Fails as [`new`](Self::new), and if `false_columns` is not above 0 and below the number of
    /// columns.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::bank::FilterBank;
    ///
    /// let bank = FilterBank::with_capacity(1000, 10_000, 0.1)?;
    /// assert_eq!((bank.columns(), bank.expected_keys()), (1024, 10_000));
    /// assert!(bank.false_positive_rate() * 1024.0 <= 0.1);
    /// assert!(FilterBank::with_capacity(1000, 10_000, 1024.0).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline]
    pub fn with_capacity(columns: usize, keys: usize, false_columns: f64) -> Result<Self, BuildError> {
        let columns = whole_words(columns)?;
        if !(false_columns > 0.0 && false_columns < columns as f64) {
            let problem = format!(
                "{false_columns} false columns per key is not between 0 and the {columns} columns, both excluded"
            );
            return Err(BuildError::new(problem));
        }
        let filters = ConcurrentBloom::builder().expected_keys(keys);
        Self::new(columns, &filters.false_positive_rate(false_columns / columns as f64))
    }
}

/// Making a bank with any hasher.
impl<S: Clone> FilterBank<S> {
    /// An empty bank of at least `columns` filters as this builder makes them. A memory budget is
    /// that of one filter.
    ///
    /// The number of columns is rounded up to a multiple of 64. The memory is untouched zero pages,
    /// so this takes microseconds.
    ///
    /// # Errors
    ///
    /// Fails as [`Builder::build`] does, if `columns` is 0, and if the allocation of all filters
    /// fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::bank::FilterBank;
    /// use lanebloom::{ConcurrentBloom, FastHash};
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let builder = builder.false_positive_rate(1e-3).hasher(FastHash::default());
    /// let bank = FilterBank::new(100, &builder)?;
    /// let filter = builder.build()?;
    /// assert_eq!(bank.memory_bytes(), 128 * filter.memory_bytes());
    /// filter.insert("a");
    /// let column = bank.push(&filter)?;
    /// assert!(bank.which("a").eq([column]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(columns: usize, filters: &Builder<Bloom, S>) -> Result<Self, BuildError> {
        let (layout, expected_keys) = plan::<BloomBits>(filters.request)?;
        Self::empty(layout, columns, expected_keys, filters.hasher.clone())
    }
}

/// Keys into columns. All methods take `&self`, and may run beside each other and beside lookups.
///
/// ```
/// // A column for each day.
/// let days = lanebloom::bank::FilterBank::with_capacity(366, 10_000, 0.1)?;
/// assert_eq!(days.insert(31, "203.0.113.7"), Ok(true));
/// assert_eq!(days.insert(31, "203.0.113.7"), Ok(false));
/// assert_eq!(days.insert_batch(59, &["203.0.113.7", "a", "a"]), Ok(2));
/// assert!(days.which("203.0.113.7").eq([31, 59]) && days.which("a").eq([59]));
/// assert!(days.insert(384, "203.0.113.7").is_err());
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
impl<S> FilterBank<S> {
    /// Inserts `key` into a column; returns whether this changed it. The column is in use then.
    ///
    /// It takes one atomic operation for each bit that is new, nearly each in a cache line of its
    /// own; a `ConcurrentBloom` takes one for each word, all in one line. If the keys of a column
    /// are at hand, fill a filter and [`push`](Self::push) it.
    ///
    /// # Errors
    ///
    /// Fails if the bank lacks the column.
    ///
    /// # Memory ordering
    ///
    /// Orders memory like an insert into a [`ConcurrentBloom`]: a `Release`, and an `Acquire` if it
    /// returns false.
    pub fn insert<K: Key<S> + ?Sized>(&self, column: usize, key: &K) -> Result<bool, BankError> {
        self.use_column(column)?;
        let mut space = Scratch::default();
        let changed = self.set(column, self.finder.starts(key.hash_by(&self.hasher), &mut space));
        acquire_if(!changed);
        Ok(changed)
    }

    /// [`insert`](Self::insert) of every key into one column; returns the number of keys that
    /// changed it. Fails as [`insert`](Self::insert); then no key was inserted.
    pub fn insert_batch<K: Key<S>>(&self, column: usize, keys: &[K]) -> Result<usize, BankError> {
        self.check(column)?;
        if !keys.is_empty() {
            self.use_column(column)?;
        }
        let lines = self.finder.rows();
        let prefetching = (Prefetching::changes(self.memory_bytes(), lines), lines);
        let mut changed = 0;
        self.finder.for_each(
            &K::source(keys, &self.hasher, self.isa),
            prefetching,
            |starts, hint| {
                for &start in starts {
                    self.rows.bits.prefetch_bit(64 * start + column as u64, hint);
                }
            },
            |_, starts| changed += usize::from(self.set(column, starts)),
        );
        acquire();
        Ok(changed)
    }

    /// Marks a column as in use, before its first bit is set: a snapshot that has the bit has the
    /// mark.
    fn use_column(&self, column: usize) -> Result<(), BankError> {
        let marked = self.rows.in_use.insert(column as u64);
        marked.map(|_| ()).or_else(|_| self.check(column))
    }

    /// Sets a column's bits in rows; returns whether this call set any.
    #[inline(always)]
    fn set(&self, column: usize, starts: &[u64]) -> bool {
        let bits = &self.rows.bits;
        // All loads first, so that none waits for an atomic operation before it.
        let mut missing = 0;
        for (i, start) in starts.iter().enumerate() {
            missing |= (!bits.bit(64 * start + column as u64) & 1) << i;
        }
        let mut changed = false;
        Prefetching::each_one(missing, |i| changed |= bits.add_bit(64 * starts[i] + column as u64));
        changed
    }
}

/// Filters into columns.
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::bank::FilterBank;
///
/// let files = [["a", "b"], ["b", "c"], ["c", "d"]];
/// let filters = files.map(|keys| ConcurrentBloom::from_keys(keys, 1e-4).unwrap());
/// let mut bank = FilterBank::from_filters(&filters)?;
/// assert_eq!((bank.len(), bank.columns()), (3, 64));
/// assert!(bank.which("b").eq([0, 1]) && bank.which("d").eq([2]));
///
/// let column = bank.push(&filters[0])?;
/// assert!(column == 3 && bank.to_filter(column)? == filters[0]);
/// assert_eq!(bank.push_all(&filters[1..])?, [4, 5]);
/// assert!(bank.which("c").eq([1, 2, 4, 5]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: FilterHasher> FilterBank<S> {
    /// A bank of these filters, in order: column `i` is filter `i`. It has the layout of the filter
    /// with the fewest blocks.
    ///
    /// # Errors
    ///
    /// Fails if the list is empty or the allocation fails, and as [`push_all`](Self::push_all).
    pub fn from_filters<F: Borrow<ConcurrentBloom<S>>>(filters: &[F]) -> Result<Self, BankError>
    where
        S: Clone,
    {
        let smallest = filters
            .iter()
            .map(Borrow::borrow)
            .min_by_key(|filter| filter.layout().blocks);
        let Some(smallest) = smallest else {
            return Err(BuildError::new("a bank of 0 filters has no layout").into());
        };
        let (layout, hasher) = (smallest.engine.layout, smallest.hasher().clone());
        let mut bank = Self::empty(layout, filters.len(), smallest.expected_keys(), hasher)?;
        bank.push_all(filters)?;
        Ok(bank)
    }

    /// Copies a filter to the first column that is not in use; returns the column.
    ///
    /// The column finds what the filter did. A filter whose blocks are a multiple of the bank's is
    /// [folded](crate::Exclusive::fold), if its rate stays below that of a full filter of the bank.
    /// Other threads may insert into the filter meanwhile: the column holds at least every key that
    /// was inserted before the call.
    ///
    /// It takes an atomic operation for each bit of the filter, and touches every line of the bank
    /// in which the column lies. [`push_all`](Self::push_all) does so for 512 filters at a time.
    ///
    /// # Errors
    ///
    /// Fails if all columns are in use, if the filter's hasher or shape differ, if its number of
    /// blocks is not a multiple of the bank's, and if it has too many keys to be folded.
    pub fn push(&self, filter: &ConcurrentBloom<S>) -> Result<usize, BankError> {
        let factor = self.fold_of(filter)?;
        let free = self.rows.in_use.claim_free(..);
        let column = free.ok_or_else(|| self.full(1))? as usize;
        for block in 0..self.blocks() {
            let line = folded(filter, block, factor);
            // The bits below pass on what their inserters did.
            acquire();
            let each_bit = |work: &dyn Fn(u64)| {
                for (word, bits) in line.into_iter().enumerate() {
                    let row = block * LINE_BITS + 64 * word;
                    Prefetching::each_one(bits, |bit| work(self.bit(row + bit, column)));
                }
            };
            each_bit(&|bit| self.rows.bits.prefetch_bit(bit, Hint::L2));
            each_bit(&|bit| _ = self.rows.bits.add_bit(bit));
        }
        Ok(column)
    }

    /// [`push`](Self::push) of many filters; returns their columns, in ascending order.
    ///
    /// It writes whole words of rows, without atomics: a word has one bit of each of 64 filters. So
    /// it takes the least time for each filter if their number is a multiple of 64.
    ///
    /// # Errors
    ///
    /// Fails as [`push`](Self::push); then the bank is unchanged.
    pub fn push_all<F: Borrow<ConcurrentBloom<S>>>(&mut self, filters: &[F]) -> Result<Vec<usize>, BankError> {
        let mut pushed = Vec::with_capacity(filters.len());
        for filter in filters {
            let filter: &ConcurrentBloom<S> = filter.borrow();
            pushed.push((filter, self.fold_of(filter)?));
        }
        if self.columns() - self.len() < filters.len() {
            return Err(self.full(filters.len()));
        }
        // (Under the model checker, whose words are not plain ones, by atomics.)
        if self.rows.bits.words_mut().is_none() {
            return filters.iter().map(|filter| self.push(filter.borrow())).collect();
        }
        let free = |_: &_| self.rows.in_use.claim_free(..).expect("they were counted") as usize;
        let columns: Vec<usize> = filters.iter().map(free).collect();
        let mut rest = (&columns[..], &pushed[..]);
        while let Some(&first) = rest.0.first() {
            let group = first / (GROUP * WORD);
            let here = rest.0.partition_point(|column| column / (GROUP * WORD) == group);
            self.write_group(group * GROUP, &rest.0[..here], &rest.1[..here]);
            rest = (&rest.0[here..], &rest.1[here..]);
        }
        Ok(columns)
    }

    /// Writes filters, each with its fold, to their columns, which lie in words `first` to `first +
    /// GROUP` of a row.
    fn write_group(&mut self, first: usize, columns: &[usize], filters: &[(&ConcurrentBloom<S>, usize)]) {
        let (isa, width) = (self.isa, self.finder.width);
        let many = columns.last().map_or(first, |last| last / WORD + 1) - first;
        let empty: ([u64; LINE_WORDS], Square) = ([0; LINE_WORDS], [[0; LINE_WORDS]; WORD]);
        // The squares of a block, or of a few blocks, one after another: 32 KiB. (Those of four
        // blocks with eight words, so that each filter is read in runs of 256 bytes: as fast.)
        let blocks = GROUP / many;
        let mut squares = alloc::vec![empty; blocks * many];
        let rows = self.rows.bits.words_mut().expect("the caller asked");
        for (i, rows) in rows.chunks_mut(blocks * LINE_BITS * width).enumerate() {
            let by_block = rows.chunks_exact_mut(LINE_BITS * width);
            if columns.len() < many * WORD {
                squares.fill(empty);
            }
            for (column, (filter, factor)) in columns.iter().zip(filters) {
                for (block, squares) in (blocks * i..).zip(squares.chunks_exact_mut(many).take(by_block.len())) {
                    filter.bits().prefetch((block + blocks) * factor, Hint::L2);
                    squares[column / WORD - first].1[column % WORD] = folded(filter, block, *factor);
                }
            }
            for (rows, squares) in by_block.zip(squares.chunks_exact_mut(many)) {
                let each = LINE_BITS / many;
                for (i, (_, square)) in squares.iter_mut().enumerate() {
                    // The lines of a part of the rows, which are added to below.
                    let part = rows[first..].chunks(width).skip(each * i).take(each);
                    for row in part.step_by((LINE_WORDS / width).max(1)) {
                        Hint::L2.prefetch(row.as_ptr());
                    }
                    isa.vectorized(Transpose(square));
                }
                add_rows(rows, width, first, squares);
            }
        }
        acquire();
    }

    /// The divisor by which a filter is folded. Fails if it does not fit.
    fn fold_of(&self, filter: &ConcurrentBloom<S>) -> Result<usize, BankError> {
        let (theirs, ours): (Layout, Layout) = (filter.engine.layout, self.finder.layout);
        let factor = theirs.blocks / ours.blocks;
        let problem = if theirs.shape != ours.shape || theirs.blocks % ours.blocks != 0 {
            format!("a filter of {theirs} does not fit a bank of {ours}: only its blocks may be more, as a multiple")
        } else if filter.hasher().fingerprint() != self.hasher.fingerprint() {
            "the filter's hasher is not the bank's: another algorithm, seed or key".into()
        } else if factor > 1 && filter.engine.rate_after(factor) > self.most_rate() {
            let (rate, most) = (filter.engine.rate_after(factor), self.most_rate());
            format!(
                "a filter of {} blocks, folded to the {} of the bank, would have a false-positive rate of {rate:.2e}, \
                 more than the {most:.2e} of a full one: it has too many keys for this bank",
                theirs.blocks, ours.blocks
            )
        } else {
            return Ok(factor);
        };
        Err(BankError(Problem::Incompatible(problem)))
    }

    /// The rate of a filter of this bank that is full, but not overfull.
    fn most_rate(&self) -> f64 {
        let keys = Statistics::overfull_at(self.expected_keys);
        self.finder.layout.rate_of(Unit::Bit, keys)
    }
}

/// A block of a filter after a fold by `factor`. The caller acquires.
#[inline(always)]
fn folded<S>(filter: &ConcurrentBloom<S>, block: usize, factor: usize) -> [u64; LINE_WORDS] {
    let lines = filter.bits().shared().words_of(block * factor..(block + 1) * factor);
    fold(&mut lines.flatten(), filter.engine.layout, factor, |a, b| a | b)
}

impl<S> FilterBank<S> {
    /// The number of a bit among all bits.
    #[inline(always)]
    fn bit(&self, row: usize, column: usize) -> u64 {
        (row * self.columns() + column) as u64
    }

    fn full(&self, filters: usize) -> BankError {
        let columns = self.columns();
        let free = columns - self.len();
        BankError(Problem::Full(format!(
            "the bank has {free} free columns of {columns}, and {filters} filters were pushed"
        )))
    }

    /// Empties a column, so that it is not in use, and the next [`push`](Self::push) may take it.
    ///
    /// It takes `&mut self`: a key that another thread inserts or looks up meanwhile would be there
    /// in part. Beside lookups, let the program drop the column from their results, and clear it
    /// later.
    ///
    /// # Errors
    ///
    /// Fails if the bank lacks the column.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut bank = lanebloom::bank::FilterBank::with_capacity(64, 1000, 0.1)?;
    /// bank.insert(7, "a")?;
    /// bank.insert(8, "a")?;
    /// bank.clear(7)?;
    /// assert!(bank.which("a").eq([8]) && bank.columns_in_use().eq([8]));
    /// assert!(bank.clear(64).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn clear(&mut self, column: usize) -> Result<(), BankError> {
        self.check(column)?;
        self.rows.bits.unset_bits(column, self.columns());
        self.rows.in_use.remove(column as u64);
        Ok(())
    }
}

/// Filters out of columns.
impl<R: Rows, S: Clone> Bank<R, S> {
    /// A column as a filter, with the same keys. The column stays. (That of a column which is not
    /// in use is an empty filter that fits the bank.)
    ///
    /// # Errors
    ///
    /// Fails if the bank lacks the column, or if the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// let bank = lanebloom::bank::FilterBank::with_capacity(64, 1000, 0.1)?;
    /// bank.insert(7, "a")?;
    /// let filter = bank.to_filter(7)?;
    /// assert!(filter.contains("a") && filter.insert("b"));
    /// assert!(!bank.contains(7, "b") && bank.to_filter(64).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "take")]
    pub fn to_filter(&self, column: usize) -> Result<ConcurrentBloom<S>, BankError> {
        self.check(column)?;
        let mut engine = empty::<BloomBits>(self.finder.layout, self.expected_keys)?;
        let (width, rows) = (self.finder.width, self.rows.rows());
        let words = rows[column / WORD..].chunks(64 * width).map(|rows| {
            // The last row ends with the column's word.
            let bits = rows.iter().step_by(width).take(64);
            bits.rev()
                .fold(0, |word, row| word << 1 | row.load() >> (column % WORD) & 1)
        });
        engine.words.bits.store_words(0, words.take(self.blocks() * LINE_WORDS));
        acquire();
        Ok(Filter::of(engine, self.hasher.clone()))
    }
}
