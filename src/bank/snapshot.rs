//! Snapshots of a bank, in the format of the filters' snapshots (`docs/FORMAT.md`); [`BankView`],
//! which reads their bytes in place; and [`BankHeader`], which tells the ranges of a snapshot that
//! a key needs.

use super::rows::{MOST_ROWS, RowFinder, WORD};
use super::{AtomicRows, Bank, FilterBank, Rows};
use crate::chunks::assert_bitmap_length;
use crate::codec::{
    BlocksHeader, Decoded, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, Snapshot, SnapshotBytes, Viewed,
    admit, borrow, check_zeros, given, invalid, load, murmur3, read_header, read_words, snapshot_bytes, write_words,
};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::traits::{FixedSize, Loaded, Stored};
use crate::geometry::layout::LINE_BYTES;
use crate::hash::{FilterHasher, Murmur3};
use crate::kernel::Isa;
use crate::key::Key;
use crate::words::arrays::as_chunks;
use crate::words::bits::{Load, acquire};
use crate::words::scratch::Scratch;
use alloc::format;
use alloc::vec;
use core::iter;
use core::ops::Range;

/// Snapshots. [`codec::from_bytes`](crate::codec::from_bytes()) and
/// [`codec::read_from`](crate::codec::read_from) read those of any hasher.
///
/// ```
/// use lanebloom::bank::FilterBank;
/// use lanebloom::{ConcurrentBloom, SipHash13, codec};
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let bank = FilterBank::new(64, &builder.hasher(SipHash13::random()))?;
/// bank.insert(7, "a")?;
/// let (bytes, hasher) = (bank.snapshot().to_vec(), *bank.hasher());
/// let read = |hasher| codec::from_bytes::<FilterBank<_>>(&bytes, hasher);
/// assert!(read(hasher)?.0 == bank);
/// assert!(read(SipHash13::random()).unwrap_err().is_incompatible());
/// let same: FilterBank<_> = codec::read_from(&bytes[..], 1 << 20, hasher)?;
/// assert!(same == bank);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: FilterHasher> FilterBank<S> {
    /// The content, to be written as bytes: to a vector, a writer, a file. It is
    /// [`memory_bytes`](Self::memory_bytes) and a bit for each column.
    #[inline]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_, Self> {
        Snapshot(self)
    }
}

/// Snapshots whose hasher is [`Murmur3`]. [`Filter`](crate::Filter::from_bytes) documents each
/// method.
///
/// ```
/// use lanebloom::bank::FilterBank;
///
/// let bank = FilterBank::with_capacity(64, 1000, 0.1)?;
/// bank.insert(7, "a")?;
/// let bytes = bank.snapshot().to_vec();
/// assert!(FilterBank::from_bytes(&bytes)?.0.which("a").eq([7]));
/// assert!(FilterBank::from_bytes(&bytes[..150]).unwrap_err().is_truncated());
/// let read = |most| FilterBank::read_from(&bytes[..], most);
/// assert!(read(1 << 20)?.which("a").eq([7]) && read(10).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl FilterBank {
    /// The bank with which `bytes` begin, and the bytes after it.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        load(bytes, murmur3)
    }

    /// Reads a bank that takes at most `max_bytes` of memory.
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::load_from(reader, max_bytes, murmur3)
    }
}

impl<S: FilterHasher> Stored for FilterBank<S> {
    type Size = FixedSize;

    fn encoded_bytes(&self) -> usize {
        snapshot_bytes(self.rows.rows().len() + self.rows.in_use().len())
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        let header = BlocksHeader {
            layout: self.finder.layout,
            expected_keys: self.expected_keys,
            rate: self.false_positive_rate(),
            columns: self.columns(),
        };
        let own = header.own(Kind::Bank, Hashing::of(&self.hasher));
        // A column is marked before its first bit is set. So whoever has seen the bit sees the
        // mark.
        let in_use = iter::once_with(acquire).flat_map(|()| self.rows.in_use().iter().map(Load::load));
        let rows = self.rows.rows().iter().map(Load::load);
        write_words(out, &own.to_bytes(), header.words(), rows.chain(in_use))
    }
}

impl<S: FilterHasher> Loaded for FilterBank<S> {
    type Hasher = S;

    fn decode(input: &mut dyn Input, limit: usize, hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<Self> {
        let own = read_header(input, Kind::Bank)?;
        let header = own.blocks()?;
        let hasher = hasher(own.hashing)?;
        let BlocksHeader { layout, columns, .. } = header;
        let needed = layout.blocks * columns * LINE_BYTES;
        admit(input, own.len as usize, needed as u64, limit)?;
        let finder = RowFinder::new(layout, columns);
        let mut rows = AtomicRows::new(&finder).map_err(SnapshotErrorKind::OutOfMemory)?;
        let (width, len) = (finder.width, rows.rows().len());
        // The columns with a bit in any row, and those in use.
        let (mut filled, mut in_use) = (vec![0; width], vec![0; width]);
        read_words(input, &own.to_bytes(), header.words(), &mut |first, words| {
            let (of_rows, of_columns) = words.split_at(words.len().min(len.saturating_sub(first)));
            // (A chunk may begin after the rows.)
            rows.bits.store_words(first.min(len), of_rows.iter().map(Load::load));
            let mut column = first % width;
            for word in of_rows {
                filled[column] |= word.load();
                column = if column + 1 == width { 0 } else { column + 1 };
            }
            let done = first.saturating_sub(len);
            for (in_use, word) in in_use[done..].iter_mut().zip(of_columns) {
                *in_use = word.load();
            }
        })?;
        for (word, (filled, in_use)) in filled.iter().zip(&in_use).enumerate() {
            let beside = filled & !in_use;
            if beside != 0 {
                let column = WORD * word + beside.trailing_zeros() as usize;
                return invalid(format!("column {column} has bits, but is not in use"));
            }
        }
        let marked = rows.in_use.insert_words(0, &in_use);
        marked.expect("there is a bit for each column");
        Ok(Self::of(rows, finder, header.expected_keys, hasher))
    }
}

/// A [`FilterBank`]'s snapshot, read in place: in borrowed bytes, or in a mapped file (feature
/// `mmap`). [`Bank`] has its methods. [`BloomView`](crate::BloomView) says what opening checks, and
/// where the bytes should begin.
///
/// ```
/// use lanebloom::bank::BankView;
///
/// let bank = lanebloom::bank::FilterBank::with_capacity(64, 1000, 0.1)?;
/// bank.insert(7, "a")?;
/// let bytes = bank.snapshot().to_vec();
/// let (view, _) = BankView::from_bytes(&bytes)?;
/// assert!(view.which("a").eq([7]) && !view.any("b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type BankView<'a, S = Murmur3> = Bank<SnapshotRows<'a>, S>;

/// The rows of a [`BankView`]: the bytes of a snapshot.
pub struct SnapshotRows<'a> {
    snapshot: SnapshotBytes<'a>,
    /// Words of all rows.
    len: usize,
    /// Words of a row.
    width: usize,
}

impl SnapshotRows<'_> {
    #[inline(always)]
    fn words(&self) -> &[[u8; 8]] {
        as_chunks(&self.snapshot.bytes()[SNAPSHOT_HEADER..]).0
    }
}

impl Rows for SnapshotRows<'_> {
    type Word = [u8; 8];
    const NAME: &'static str = "BankView";

    #[inline(always)]
    fn rows(&self) -> &[[u8; 8]] {
        &self.words()[..self.len]
    }

    #[inline(always)]
    fn in_use(&self) -> &[[u8; 8]] {
        &self.words()[self.len..][..self.width]
    }
}

/// Opening a view.
impl<'a> BankView<'a> {
    /// A view of the snapshot with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the snapshot does, if the header is corrupt, if they are not a
    /// snapshot of this type in this version of the format, or if the hasher is not [`Murmur3`]:
    /// [`codec::view`](crate::codec::view()) takes any.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::bank::{BankView, FilterBank};
    ///
    /// let bank = FilterBank::with_capacity(64, 1000, 0.1)?;
    /// bank.insert(7, "a")?;
    /// let bytes = [bank.snapshot().to_vec(), b"more".to_vec()].concat();
    /// let (view, rest) = BankView::from_bytes(&bytes)?;
    /// assert!(view.which("a").eq([7]) && rest == b"more");
    /// assert!(BankView::from_bytes(&bytes[..150]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SnapshotError> {
        borrow(bytes, murmur3)
    }
}

/// Mapped files.
#[cfg(feature = "mmap")]
impl BankView<'static> {
    /// A view of a file that holds a snapshot and nothing else, mapped into memory (feature
    /// `mmap`): [`codec::map`](crate::codec::map), with [`Murmur3`], whose seed the file has. Fails
    /// as it does.
    ///
    /// # Safety
    ///
    /// No process may write to the file or make it shorter while the view lives: see
    /// [`codec::map`](crate::codec::map#safety).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::bank::{BankView, FilterBank};
    ///
    /// let bank = FilterBank::with_capacity(64, 1000, 0.1)?;
    /// bank.insert(7, "a")?;
    /// let file = tempfile::NamedTempFile::new()?;
    /// bank.snapshot().save(&file)?;
    /// let file = std::fs::File::open(&file)?;
    /// // SAFETY: no other process knows of the file.
    /// let view = unsafe { BankView::map(&file)? };
    /// assert!(view.which("a").eq([7]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub unsafe fn map(file: &std::fs::File) -> Result<Self, SnapshotError> {
        // SAFETY: the caller's promise.
        unsafe { crate::codec::mapped(file, murmur3) }
    }
}

/// The snapshot. [`FilterBank::from_bytes`] reads its bytes.
impl<S> BankView<'_, S> {
    /// The bytes of the snapshot. [`codec::verify`](crate::codec::verify) computes their checksum.
    ///
    /// ```
    /// use lanebloom::bank::{BankView, FilterBank};
    ///
    /// let bytes = FilterBank::with_capacity(64, 1000, 0.1)?.snapshot().to_vec();
    /// assert_eq!(BankView::from_bytes(&bytes)?.0.bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        Viewed::snapshot(self).bytes()
    }
}

impl<'a, S> Viewed<'a> for BankView<'a, S> {
    type Hasher = S;

    fn open(bytes: SnapshotBytes<'a>, hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<Self> {
        let own = OwnHeader::parse(bytes.bytes(), Kind::Bank)?;
        let header = own.blocks()?;
        let hasher = hasher(own.hashing)?;
        let snapshot = bytes.first(own.len)?;
        // The unused bytes of the last line must be 0.
        let end = SNAPSHOT_HEADER + 8 * header.words();
        check_zeros(&snapshot.bytes()[end..end.next_multiple_of(LINE_BYTES)], end)?;
        let finder = RowFinder::new(header.layout, header.columns);
        let len = header.words() - finder.width;
        let rows = SnapshotRows {
            snapshot,
            len,
            width: finder.width,
        };
        Ok(Self::of(rows, finder, header.expected_keys, hasher))
    }

    fn snapshot(&self) -> &SnapshotBytes<'a> {
        &self.rows.snapshot
    }
}

/// The header of a snapshot that lies elsewhere, such as in object storage: it tells which bytes of
/// the snapshot a key needs, and which columns they name.
///
/// A key needs the rows of one block, a range of 64 bytes for each column (64 KiB for 1,024
/// columns), or of two blocks if a key has [two lines](crate::bloom::Builder::lines_per_key). The
/// checksum of the snapshot covers all bytes, so it cannot be checked.
///
/// ```
/// use lanebloom::bank::{BankHeader, FilterBank, columns};
/// use lanebloom::codec::SnapshotHeader;
///
/// let bank = FilterBank::with_capacity(64, 1000, 0.1)?;
/// bank.insert(7, "a")?;
/// let object = bank.snapshot().to_vec();
/// let fetch = |start: u64, end: u64| &object[start as usize..end as usize];
///
/// let header = BankHeader::from_bytes(fetch(0, SnapshotHeader::LEN as u64))?;
/// let ranges = header.ranges("a");
/// let blocks: Vec<_> = ranges.map(|at| fetch(at.start, at.end)).collect();
/// assert_eq!(blocks.concat().len(), 64 * bank.columns());
///
/// let mut found = vec![0; header.columns() / 64];
/// header.which_into("a", &blocks, &mut found)?;
/// assert!(columns(&found).eq([7]));
/// let error = header.which_into("a", &[[0; 100]], &mut found).unwrap_err();
/// assert!(error.is_truncated());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct BankHeader<S = Murmur3> {
    finder: RowFinder,
    hasher: S,
}

impl BankHeader {
    /// Reads the first [`SnapshotHeader::LEN`](crate::codec::SnapshotHeader::LEN) bytes of a
    /// snapshot, or more. Fails as [`BankView::from_bytes`], but for missing bytes after these.
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::read(bytes, murmur3).map_err(SnapshotError)
    }
}

impl<S: FilterHasher> BankHeader<S> {
    /// [`from_bytes`](BankHeader::from_bytes) for any hasher: `hasher` must be the one that filled
    /// the bank. Fails as [`from_bytes`](BankHeader::from_bytes), and if the hasher differs.
    ///
    /// ```
    /// use lanebloom::bank::{BankHeader, FilterBank};
    /// use lanebloom::{ConcurrentBloom, SipHash13};
    ///
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let bank = FilterBank::new(64, &builder.hasher(SipHash13::random()))?;
    /// let bytes = bank.snapshot().to_vec();
    /// assert!(BankHeader::from_bytes_with(&bytes[..128], *bank.hasher()).is_ok());
    /// assert!(BankHeader::from_bytes(&bytes[..128]).is_err());
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<Self, SnapshotError> {
        Self::read(bytes, given(hasher)).map_err(SnapshotError)
    }

    fn read(bytes: &[u8], hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<Self> {
        let own = OwnHeader::parse(bytes, Kind::Bank)?;
        let BlocksHeader { layout, columns, .. } = own.blocks()?;
        Ok(Self {
            finder: RowFinder::new(layout, columns),
            hasher: hasher(own.hashing)?,
        })
    }
}

impl<S> BankHeader<S> {
    /// The number of columns of the bank, a multiple of 64. [`BankHeader`] has an example.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.finder.columns()
    }

    /// The ranges of bytes of the snapshot that `key` needs: one or two, each of 64 bytes for each
    /// column. [`BankHeader`] has an example.
    pub fn ranges<K: Key<S> + ?Sized>(&self, key: &K) -> impl Iterator<Item = Range<u64>> + use<K, S> {
        let words = self.finder.block_words() as u64;
        let mut space = Scratch::default();
        let starts = self.finder.starts(key.hash_by(&self.hasher), &mut space);
        // The rows of a line lie in one block.
        let mut lines = starts.chunks(self.finder.layout.shape.bits);
        let blocks = [lines.next(), lines.next()].map(|starts| starts.map(|starts| starts[0] / words));
        blocks.into_iter().flatten().map(move |block| {
            let start = SNAPSHOT_HEADER as u64 + 8 * words * block;
            start..start + 8 * words
        })
    }

    /// The columns that may hold `key`, from the bytes of its [`ranges`](Self::ranges), in the same
    /// order: as [`Bank::which_into`].
    ///
    /// # Errors
    ///
    /// Fails if `blocks` are not as many, or not as long, as the ranges.
    ///
    /// # Panics
    ///
    /// If `out` does not have a word for every 64 columns.
    ///
    /// [`BankHeader`] has an example.
    pub fn which_into<K: Key<S> + ?Sized>(
        &self,
        key: &K,
        blocks: &[impl AsRef<[u8]>],
        out: &mut [u64],
    ) -> Result<bool, SnapshotError> {
        assert_bitmap_length(self.columns(), out.len());
        let words = self.finder.block_words() as u64;
        let (needed, lines) = (8 * words, self.finder.layout.shape.lines);
        let bytes = blocks.iter().map(|block| block.as_ref().len() as u64);
        // Every block has its length, and there are as many as lines.
        let wrong = bytes.clone().find(|&bytes| bytes != needed);
        if let Some(bytes) = wrong.or((blocks.len() != lines).then(|| bytes.sum())) {
            let needed = needed * if blocks.len() == lines { 1 } else { lines as u64 };
            if bytes > needed {
                let problem = format!("the blocks of a key have {needed} bytes, and {bytes} are given");
                return Err(SnapshotError(SnapshotErrorKind::Invalid(problem)));
            }
            return Err(SnapshotError(SnapshotErrorKind::Truncated { bytes, needed }));
        }
        let (mut space, mut one) = (Scratch::<MOST_ROWS>::default(), vec![0; out.len()]);
        let starts = space.first(self.finder.rows());
        self.finder.write_starts(key.hash_by(&self.hasher), starts);
        // The starts within their blocks.
        starts.iter_mut().for_each(|start| *start %= words);
        out.fill(u64::MAX);
        for (starts, block) in starts.chunks(starts.len() / lines).zip(blocks) {
            Isa::best().and_rows(as_chunks::<8, u8>(block.as_ref()).0, starts, &mut one);
            for (out, one) in out.iter_mut().zip(&one) {
                *out &= one;
            }
        }
        Ok(out.iter().any(|&word| word != 0))
    }
}
