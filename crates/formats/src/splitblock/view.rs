//! A split-block filter in borrowed bytes: [`SplitBlockView`].

use super::block::Block;
use super::bytes::whole_blocks;
use super::engine::{SplitBlock, Xxh64};
use crate::error::ReadError;
use core::fmt;
use core::ops::Deref;
use lanebloom::Filter;
use lanebloom::internal::as_chunks;

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
#[derive(Clone)]
pub struct SplitBlockView<'a>(Filter<SplitBlock<&'a [Block<[u8; 8]>]>, Xxh64>);

impl<'a> SplitBlockView<'a> {
    /// A view of a bitset, which may lie at any address.
    ///
    /// Fails if the bytes are not a whole number of blocks of 32 bytes, or none.
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockView;
    ///
    /// assert!(SplitBlockView::new(&[0xff; 32])?.contains("ann"));
    /// assert!(!SplitBlockView::new(&[0; 32])?.contains("ann"));
    /// assert!(SplitBlockView::new(&[0; 33]).is_err());
    /// # Ok::<(), lanebloom_formats::ReadError>(())
    /// ```
    pub fn new(bitset: &'a [u8]) -> Result<Self, ReadError> {
        whole_blocks(bitset.len())?;
        let blocks = as_chunks(as_chunks(bitset).0).0;
        Ok(Self(Filter::of(SplitBlock::new(blocks), Xxh64)))
    }

    /// The number of blocks.
    ///
    /// ```
    /// assert_eq!(lanebloom_formats::SplitBlockView::new(&[0; 96])?.blocks(), 3);
    /// # Ok::<(), lanebloom_formats::ReadError>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.0.engine().blocks().len()
    }
}

/// The lookups and the statistics.
impl<'a> Deref for SplitBlockView<'a> {
    type Target = Filter<SplitBlock<&'a [Block<[u8; 8]>]>, Xxh64>;

    #[inline(always)]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl fmt::Debug for SplitBlockView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
