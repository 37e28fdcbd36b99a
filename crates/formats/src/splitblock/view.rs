//! A split-block filter in borrowed bytes: [`SplitBlockView`].

use super::block::Block;
use super::bytes::whole_blocks;
use super::error::SplitBlockReadError;
use super::kernel::Level;
use super::{batch, hash, sizing};
use core::fmt;
use lanebloom::internal::{as_chunks, assert_bitmap_length, assert_same_length};
use lanebloom::{Figures, Funnel};

/// A split-block filter that is looked up where its bytes lie: in a mapped file, or in a buffer
/// that was read. No byte is copied.
///
/// ```
/// use lanebloom_formats::{SplitBlockBloom, SplitBlockView};
/// use lanebloom_formats::splitblock::Header;
///
/// let filter = SplitBlockBloom::with_capacity(1000, 0.01)?;
/// filter.insert("ann");
/// let file = filter.to_parquet()?;
///
/// let header = Header::parse(&file)?;
/// let bitset = &file[header.header_bytes()..][..header.bitset_bytes()];
/// let view = SplitBlockView::new(bitset)?;
/// assert!(view.contains("ann") && !view.contains("eve"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy)]
pub struct SplitBlockView<'a> {
    /// At least one.
    blocks: &'a [Block<[u8; 8]>],
    level: Level,
}

impl<'a> SplitBlockView<'a> {
    /// A view of a bitset, which may lie at any address.
    ///
    /// # Errors
    ///
    /// If the bytes are no whole number of blocks of 32 bytes, or none.
    pub fn new(bitset: &'a [u8]) -> Result<Self, SplitBlockReadError> {
        whole_blocks(bitset.len())?;
        Ok(Self {
            blocks: as_chunks(as_chunks(bitset).0).0,
            level: Level::best(),
        })
    }

    /// Whether a key may be in the filter. False is certain.
    ///
    /// ```
    /// let bitset = lanebloom_formats::SplitBlockBloom::with_bytes(64)?.to_bitset();
    /// let view = lanebloom_formats::SplitBlockView::new(&bitset)?;
    /// assert!(!view.contains("ann"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(hash(key))
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// let view = lanebloom_formats::SplitBlockView::new(&[0xff; 32])?;
    /// assert!(view.contains_hash(7));
    /// # Ok::<(), lanebloom_formats::SplitBlockReadError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.level.contains(self.blocks, hash)
    }

    /// [`SplitBlockBloom::contains_batch`](super::SplitBlockBloom::contains_batch).
    ///
    /// ```
    /// let view = lanebloom_formats::SplitBlockView::new(&[0xff; 32])?;
    /// let mut found = [false; 2];
    /// view.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, true]);
    /// # Ok::<(), lanebloom_formats::SplitBlockReadError>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        assert_same_length(keys.len(), out.len());
        batch::hashed(self.level, keys, |start, hashes| {
            self.contains_hashes(hashes, &mut out[start..][..hashes.len()])
        });
    }

    /// [`SplitBlockBloom::contains_hashes`](super::SplitBlockBloom::contains_hashes).
    ///
    /// ```
    /// let view = lanebloom_formats::SplitBlockView::new(&[0; 32])?;
    /// let mut found = [true; 2];
    /// view.contains_hashes(&[7, 8], &mut found);
    /// assert_eq!(found, [false, false]);
    /// # Ok::<(), lanebloom_formats::SplitBlockReadError>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        batch::contains_hashes(self.level, self.blocks, hashes, out);
    }

    /// [`SplitBlockBloom::contains_hashes_bitmap`](super::SplitBlockBloom::contains_hashes_bitmap).
    ///
    /// ```
    /// let view = lanebloom_formats::SplitBlockView::new(&[0xff; 32])?;
    /// let mut found = [0];
    /// view.contains_hashes_bitmap(&[7, 8], &mut found);
    /// assert_eq!(found, [0b11]);
    /// # Ok::<(), lanebloom_formats::SplitBlockReadError>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        assert_bitmap_length(hashes.len(), out.len());
        batch::look_up(self.level, self.blocks, hashes, &mut |at, _, found| {
            out[at / 64] = found
        });
    }

    /// The number of blocks.
    ///
    /// ```
    /// assert_eq!(lanebloom_formats::SplitBlockView::new(&[0; 96])?.blocks(), 3);
    /// # Ok::<(), lanebloom_formats::SplitBlockReadError>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// [`SplitBlockBloom::figures`](super::SplitBlockBloom::figures).
    ///
    /// ```
    /// let figures = lanebloom_formats::SplitBlockView::new(&[0xff; 32])?.figures();
    /// assert_eq!((figures.fill_ratio, figures.false_positive_rate), (1.0, 1.0));
    /// # Ok::<(), lanebloom_formats::SplitBlockReadError>(())
    /// ```
    #[must_use]
    pub fn figures(&self) -> Figures {
        let words = self.blocks.as_flattened().iter().map(|word| u64::from_le_bytes(*word));
        sizing::figures_of(words, self.blocks.len())
    }
}

impl fmt::Debug for SplitBlockView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitBlockView")
            .field("blocks", &self.blocks.len())
            .finish_non_exhaustive()
    }
}
