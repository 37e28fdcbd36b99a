//! The dumps of the filters in Redis, both ways: the replies of `BF.SCANDUMP` and `CF.SCANDUMP`,
//! the arguments of `BF.LOADCHUNK` and `CF.LOADCHUNK`. A header comes first, then the bytes of the
//! layers of the chain, the oldest first, in chunks of up to 16 MiB. Each chunk has bytes of one
//! filter. `dump.rs` of each filter knows its header.
//!
//! A chunk comes with a cursor: 1 with the header; 1 plus the number of bytes so far with another
//! chunk.

use crate::error::ReadError;
use alloc::format;
use alloc::vec::Vec;
use sealed::Chain;

/// The header's cursor.
const FIRST: i64 = 1;
/// The most bytes in a chunk of the module.
const CHUNK_BYTES: usize = 16 << 20;

/// The error for a dump that has the form of fakeredis instead of the module's.
pub(crate) const OF_FAKEREDIS: &str =
    "the dump is of fakeredis for Python, which has a format of its own: only fakeredis loads it";

/// A filter that Redis dumps in chunks: [`RedisBloom`](crate::RedisBloom),
/// [`RedisCuckoo`](crate::RedisCuckoo). Sealed.
///
/// ```
/// use lanebloom_formats::redisbloom::{Dumped, Loader};
/// use lanebloom_formats::{RedisBloom, RedisCuckoo};
///
/// fn is_dump<F: Dumped>(header: &[u8]) -> bool {
///     Loader::<F>::new(1 << 20).load(1, header).is_ok()
/// }
///
/// let filter = RedisBloom::builder().build()?;
/// let (_, header) = filter.to_loadchunks().next().unwrap();
/// assert!(is_dump::<RedisBloom>(&header) && !is_dump::<RedisCuckoo>(&header));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
pub trait Dumped: Chain {}

#[doc(hidden)]
impl<F: Chain> Dumped for F {}

pub(crate) mod sealed {
    use super::LoadChunks;
    use crate::error::ReadError;
    use alloc::vec::Vec;

    /// A chain of filters with bytes.
    pub trait Chain: Sized {
        /// The length of a chunk is a multiple of this, in bytes.
        const UNIT: usize;

        /// A chain whose bytes are 0, by a header that was checked before the bytes were allocated.
        fn from_header(header: &[u8], max_bytes: u64) -> Result<Self, ReadError>;

        fn header(&self) -> Vec<u8>;

        /// The number of bytes of a layer of the chain; `None` if there is no such layer.
        fn len(&self, filter: usize) -> Option<usize>;

        /// Bytes of a layer of the chain, from `offset` on. `offset` is 0 or a multiple of 16 MiB.
        fn bytes(&self, filter: usize, offset: usize, len: usize) -> Vec<u8>;

        /// Overwrites bytes of a layer of the chain, from `offset` on; both are of whole units.
        fn store(&mut self, filter: usize, offset: usize, bytes: &[u8]);

        /// Whether this filter, as it was loaded, is still whole if Redis dumps it with this header
        /// now.
        fn is_whole(&self, header: &[u8]) -> Result<bool, ReadError>;

        /// The dump, for a caller that does not know which filter it has.
        fn chunks(&self) -> LoadChunks<'_, Self> {
            LoadChunks::of(self)
        }
    }
}

/// The place of the chunk after a cursor: the layer of the chain, the byte there, and the number of
/// bytes that the layer has from there on. `None` at the end of the chain.
fn after(cursor: i64, chain: &impl Chain) -> Option<(usize, usize, usize)> {
    let mut offset = (cursor - FIRST) as usize;
    for layer in 0.. {
        let len = chain.len(layer)?;
        if offset < len {
            return Some((layer, offset, len - offset));
        }
        offset -= len;
    }
    None
}

/// Takes a filter out of Redis chunk by chunk, for a client of your own.
///
/// Send `BF.SCANDUMP`, or `CF.SCANDUMP`, with [`cursor`](Self::cursor) until the filter [is
/// complete](Self::is_complete). Chunks must come in the module's order. Nobody may change a
/// [`RedisCuckoo`](crate::RedisCuckoo) meanwhile: an insert moves fingerprints, perhaps into a
/// chunk that was sent already.
///
/// ```
/// use lanebloom_formats::RedisBloom;
/// use lanebloom_formats::redisbloom::Loader;
/// # let mut filter = RedisBloom::with_capacity(1000, 0.01)?;
/// # filter.insert("a")?;
/// # let mut dump = filter.to_loadchunks();
/// # let mut scandump = |key: &str, cursor: i64| dump.next().unwrap();
///
/// let mut loader = Loader::<RedisBloom>::new(1 << 30);
/// while !loader.is_complete() {
///     // An asynchronous client awaits it.
///     let (cursor, chunk) = scandump("seen", loader.cursor());
///     loader.load(cursor, &chunk)?;
///     assert_eq!(loader.cursor(), cursor);
/// }
/// let filter = loader.finish()?;
/// assert!(filter.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Loader<F> {
    limit: u64,
    /// Some after the header.
    filter: Option<F>,
    /// The cursor that came with the last chunk, 0 before the first.
    cursor: i64,
    /// Whether the last reply came: cursor 0.
    ended: bool,
}

impl<F: Dumped> Loader<F> {
    /// A loader for a filter of at most `max_bytes` of memory, now and when it grows later.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            limit: max_bytes as u64,
            filter: None,
            cursor: 0,
            ended: false,
        }
    }

    /// The cursor for the next `SCANDUMP`: 0 at first, then the last chunk's.
    #[must_use]
    pub fn cursor(&self) -> i64 {
        self.cursor
    }

    /// Whether all bytes are there. The last reply, cursor 0 and no bytes, may be left out.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let filter = self.filter.as_ref();
        filter.is_some_and(|filter| after(self.cursor, filter).is_none())
    }

    /// Takes a reply of `SCANDUMP`: a cursor and a chunk.
    ///
    /// Checks the header before it allocates the bytes that the header declares.
    ///
    /// # Errors
    ///
    /// Fails if the cursor is not the next one, the header is not one of this filter's type or
    /// declares more bytes than the limit, the allocation fails, or the chunk has more bytes than
    /// its filter has left, or comes after the end. Fails for a [`RedisBloom`](crate::RedisBloom)
    /// if the chunk has parts of 64-bit words. Then nothing is changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    /// use lanebloom_formats::redisbloom::Loader;
    ///
    /// let mut loader = Loader::<RedisBloom>::new(100);
    /// let filter = RedisBloom::with_capacity(1000, 0.01)?;
    /// let (cursor, header) = filter.to_loadchunks().next().unwrap();
    /// let error = loader.load(cursor, &header).unwrap_err();
    /// let text = "the filter takes 1664 bytes, more than the limit of 100 bytes";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn load(&mut self, cursor: i64, chunk: &[u8]) -> Result<(), ReadError> {
        if cursor == 0 && chunk.is_empty() && !self.ended {
            self.ended = self.is_complete();
            return if self.ended { Ok(()) } else { Err(self.incomplete()) };
        }
        let Some(filter) = &mut self.filter else {
            if cursor != FIRST {
                return Err(other_cursor(cursor, FIRST));
            }
            self.filter = Some(F::from_header(chunk, self.limit)?);
            self.cursor = cursor;
            return Ok(());
        };
        let len = chunk.len();
        let Some((layer, offset, left)) = after(self.cursor, filter) else {
            return Err(ReadError::invalid(format!(
                "cursor {cursor} with {len} bytes came after the end"
            )));
        };
        // The limit is on the sum of all that came before, so that nothing overflows.
        let expected = self.cursor.saturating_add_unsigned(len as u64);
        if cursor != expected {
            return Err(other_cursor(cursor, expected));
        }
        if len == 0 || len % F::UNIT != 0 {
            let problem = format!("a chunk of {len} bytes is not of a positive multiple of {}", F::UNIT);
            return Err(ReadError::invalid(problem));
        }
        if len > left {
            let problem =
                format!("a chunk of {len} bytes is more than the {left} that layer {layer} of the chain has left");
            return Err(ReadError::invalid(problem));
        }
        filter.store(layer, offset, chunk);
        self.cursor = cursor;
        Ok(())
    }

    /// The filter, when all of it is there.
    ///
    /// Fails if chunks are missing.
    pub fn finish(self) -> Result<F, ReadError> {
        if !self.is_complete() {
            return Err(self.incomplete());
        }
        Ok(self.filter.expect("it is complete"))
    }

    /// Takes the replies in order.
    pub(crate) fn all<C: AsRef<[u8]>>(
        replies: impl IntoIterator<Item = (i64, C)>,
        max_bytes: usize,
    ) -> Result<F, ReadError> {
        let mut loader = Self::new(max_bytes);
        for (cursor, chunk) in replies {
            loader.load(cursor, chunk.as_ref())?;
        }
        loader.finish()
    }

    fn incomplete(&self) -> ReadError {
        let Some(filter) = &self.filter else {
            return ReadError::truncated("the dump ends before its header");
        };
        let (bytes, lens) = (self.cursor - FIRST, (0..).map_while(|number| filter.len(number)));
        let needed: usize = lens.sum();
        ReadError::truncated(format!("the dump ends after {bytes} bytes of {needed}"))
    }
}

fn other_cursor(cursor: i64, expected: i64) -> ReadError {
    ReadError::invalid(format!("cursor {cursor} came with a chunk whose cursor is {expected}"))
}

/// The chunks of a filter's dump, each with its cursor; made by
/// [`RedisBloom::to_loadchunks`](crate::RedisBloom::to_loadchunks) and
/// [`RedisCuckoo::to_loadchunks`](crate::RedisCuckoo::to_loadchunks).
#[derive(Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct LoadChunks<'a, F> {
    filter: &'a F,
    /// The last chunk's cursor, 0 before the first.
    cursor: i64,
}

impl<'a, F> LoadChunks<'a, F> {
    pub(crate) fn of(filter: &'a F) -> Self {
        Self { filter, cursor: 0 }
    }
}

impl<F> Clone for LoadChunks<'_, F> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<F: Dumped> Iterator for LoadChunks<'_, F> {
    type Item = (i64, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor == 0 {
            self.cursor = FIRST;
            return Some((FIRST, self.filter.header()));
        }
        let (layer, offset, left) = after(self.cursor, self.filter)?;
        let chunk = self.filter.bytes(layer, offset, left.min(CHUNK_BYTES));
        self.cursor += chunk.len() as i64;
        Some((self.cursor, chunk))
    }
}
