//! Lookups in a bank: the columns that may hold a key.

use super::rows::{Columns, WORD};
use super::{Bank, Rows};
use crate::chunks::{assert_bitmap_length, ones};
use crate::geometry::layout::LINE_WORDS;
use crate::kernel::plan::Prefetching;
use crate::key::Key;
use crate::words::bits::{Hint, Load, acquire_if};
use crate::words::scratch::Scratch;
use core::ops::Range;

/// Words of a bitmap that an iterator reads at a time: 1,024 columns.
const CHUNK: usize = 16;

/// The most words of a bitmap that a batch keeps on the stack: 8,192 columns.
const ON_STACK: usize = 128;

/// Lookups of the columns that may hold a key. No method locks or writes.
///
/// # Memory ordering
///
/// A lookup that returns a column, or `true`, ends in an `Acquire`, which pairs with the `Release`
/// of the inserts and pushes that set the key's bits.
///
/// # Examples
///
/// ```
/// let bank = lanebloom::bank::FilterBank::with_capacity(128, 1000, 0.01)?;
/// bank.insert(3, "a")?;
/// bank.insert_batch(70, &["a", "c"])?;
/// assert!(bank.which("a").eq([3, 70]) && bank.which("b").next().is_none());
/// assert_eq!((bank.count("a"), bank.count("b")), (2, 0));
/// assert!(bank.any("c") && !bank.any("b"));
/// assert!(bank.contains(70, "c") && !bank.contains(71, "c"));
/// assert!(!bank.contains(70, "b") && !bank.contains(1000, "c"));
/// let mut found = [u64::MAX; 2];
/// assert!(bank.which_into("c", &mut found) && found == [0, 1 << 6]);
/// assert!(!bank.which_into("b", &mut found) && found == [0, 0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<R: Rows, S> Bank<R, S> {
    /// The columns that may hold `key`, in ascending order. A column that is not returned certainly
    /// does not.
    ///
    /// The iterator reads the rows of 1,024 columns at a time, when it reaches them. It may not
    /// outlive what `K` borrows: if that must go first, take `which(&Hashed(bank.hash(key)))`.
    #[inline]
    pub fn which<'a, K>(&'a self, key: &K) -> impl Iterator<Item = usize> + use<'a, R, S, K>
    where
        K: Key<S> + ?Sized,
    {
        let mut starts = Scratch::default();
        self.finder.starts(key.hash_by(&self.hasher), &mut starts);
        let width = self.finder.width;
        let mut chunk = [0; CHUNK];
        Columns::of((0..width).map(move |i| {
            if i % CHUNK == 0 {
                let starts = starts.first(self.finder.rows());
                self.and(i, starts, &mut chunk[..CHUNK.min(width - i)]);
            }
            chunk[i % CHUNK]
        }))
    }

    /// [`which`](Self::which) as a bitmap: bit `i % 64` of `out[i / 64]` is for column `i`. Returns
    /// whether any bit is set; [`columns`](super::columns) lists them.
    ///
    /// # Panics
    ///
    /// If `out` does not have a word for every 64 columns.
    #[inline]
    pub fn which_into<K: Key<S> + ?Sized>(&self, key: &K, out: &mut [u64]) -> bool {
        assert_bitmap_length(self.columns(), out.len());
        let mut space = Scratch::default();
        let starts = self.finder.starts(key.hash_by(&self.hasher), &mut space);
        self.and(0, starts, out)
    }

    /// Calls `each(i, bitmap)` for every key `i` in order, with the columns that may hold it: bit
    /// `i % 64` of word `i / 64` is for column `i`. [`columns`](super::columns) lists them.
    ///
    /// In a bank beyond the caches it prefetches the rows of later keys. So a batch takes less time
    /// than single calls.
    ///
    /// ```
    /// use lanebloom::bank::columns;
    ///
    /// let bank = lanebloom::bank::FilterBank::with_capacity(128, 1000, 0.01)?;
    /// bank.insert_batch(3, &["a", "b"])?;
    /// bank.insert_batch(70, &["b"])?;
    /// let mut pairs = Vec::new();
    /// bank.which_batch(&["a", "b", "c"], |key, found| {
    ///     pairs.extend(columns(found).map(|column| (key, column)));
    /// });
    /// assert_eq!(pairs, [(0, 3), (1, 3), (1, 70)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn which_batch<K: Key<S>>(&self, keys: &[K], mut each: impl FnMut(usize, &[u64])) {
        let width = self.finder.width;
        let (mut stack, mut heap) = ([0; ON_STACK], alloc::vec::Vec::new());
        let found = match stack.get_mut(..width) {
            Some(found) => found,
            None => {
                heap.resize(width, 0);
                &mut heap[..]
            }
        };
        let lines = self.finder.rows() * width.div_ceil(LINE_WORDS);
        let prefetching = (Prefetching::lookups(self.memory_bytes(), lines), lines);
        self.finder.for_each(
            &K::source(keys, &self.hasher, self.isa),
            prefetching,
            |starts, hint| self.prefetch(starts, hint),
            |i, starts| {
                self.and(0, starts, found);
                each(i, found);
            },
        );
    }

    /// Whether any column may hold `key`. It looks at 1,024 columns at a time, and stops at a hit.
    #[must_use]
    pub fn any<K: Key<S> + ?Sized>(&self, key: &K) -> bool {
        let (mut space, mut chunk) = (Scratch::default(), [0; CHUNK]);
        let starts = self.finder.starts(key.hash_by(&self.hasher), &mut space);
        self.chunks()
            .any(|words| self.and(words.start, starts, &mut chunk[..words.len()]))
    }

    /// The number of columns that may hold `key`.
    #[must_use]
    pub fn count<K: Key<S> + ?Sized>(&self, key: &K) -> usize {
        let (mut space, mut chunk) = (Scratch::default(), [0; CHUNK]);
        let starts = self.finder.starts(key.hash_by(&self.hasher), &mut space);
        let counts = self.chunks().map(|words| {
            let chunk = &mut chunk[..words.len()];
            self.and(words.start, starts, chunk);
            ones(chunk)
        });
        counts.sum()
    }

    /// Whether one column may hold `key`; false for a column that does not exist.
    #[must_use]
    pub fn contains<K: Key<S> + ?Sized>(&self, column: usize, key: &K) -> bool {
        let (mut space, mut word) = (Scratch::default(), [0]);
        column < self.columns()
            && self.and(
                column / WORD,
                self.finder.starts(key.hash_by(&self.hasher), &mut space),
                &mut word,
            )
            && word[0] >> (column % WORD) & 1 == 1
    }
}

impl<R: Rows, S> Bank<R, S> {
    /// The words of a bitmap in chunks. (The iterator of [`which`](Self::which) keeps its place
    /// in a chunk: to ask it whether there is a column, or how many, takes up to twice as long.)
    fn chunks(&self) -> impl Iterator<Item = Range<usize>> + use<R, S> {
        let width = self.finder.width;
        (0..width)
            .step_by(CHUNK)
            .map(move |first| first..width.min(first + CHUNK))
    }

    /// Writes to `out` the words of a bitmap from `first` on, for the rows of a hash; returns
    /// whether any bit is set.
    #[inline(always)]
    fn and(&self, first: usize, starts: &[u64], out: &mut [u64]) -> bool {
        self.isa.and_rows(&self.rows.rows()[first..], starts, out);
        let any = out.iter().fold(0, |any, word| any | word) != 0;
        if R::Word::SHARED {
            acquire_if(any);
        }
        any
    }

    /// Prefetches rows.
    #[inline(always)]
    fn prefetch(&self, starts: &[u64], hint: Hint) {
        let (width, words) = (self.finder.width, self.rows.rows().as_ptr());
        for &start in starts {
            let row = words.wrapping_add(start as usize);
            for word in (0..width).step_by(LINE_WORDS) {
                hint.prefetch(row.wrapping_add(word));
            }
            // A row that does not begin with a line may end in one more.
            if width % LINE_WORDS > 1 {
                hint.prefetch(row.wrapping_add(width - 1));
            }
        }
    }
}
