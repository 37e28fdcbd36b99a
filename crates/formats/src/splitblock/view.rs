//! A split-block filter in borrowed bytes: [`SplitBlockView`].

use super::SplitBlockFilter;
use super::block::Block;
use super::bytes::whole_blocks;
use super::engine::{SplitBlock, Xxh64};
use crate::error::ReadError;
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
pub type SplitBlockView<'a> = SplitBlockFilter<&'a [Block<[u8; 8]>]>;

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
}
