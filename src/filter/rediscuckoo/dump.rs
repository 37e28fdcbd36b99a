//! The dump of Redis' cuckoo filter, both ways: the replies of `CF.SCANDUMP`, the arguments of
//! `CF.LOADCHUNK`. A header comes first, then the slots of the filters of the chain, the oldest
//! first, in chunks of up to 16 MiB. Each chunk has slots of one filter.
//!
//! A chunk comes with a cursor: 1 with the header; 1 plus the number of bytes of slots so far with
//! a chunk of slots. The header's numbers are little-endian, without gaps:
//!
//! | | |
//! |---|---|
//! | `u64` | keys |
//! | `u64` | buckets of the first filter |
//! | `u64` | keys removed since the chain was compacted |
//! | `u64` | filters |
//! | `u16` | slots of a bucket |
//! | `u16` | iterations |
//! | `u16` | expansion |

use super::{RedisCuckoo, Settings};
use crate::filter::redisbloom::error::{RedisBloomLoadError, RedisBloomLoadErrorKind as Kind};
use alloc::format;
use alloc::vec::Vec;

/// Bytes of the header.
const HEADER: usize = 38;
/// The header's cursor.
const FIRST: i64 = 1;
/// The most bytes of slots in a chunk of the module.
const CHUNK: usize = 16 << 20;

/// A checked header.
struct Header {
    settings: Settings,
    items: u64,
    deletes: u64,
    filters: usize,
    /// Bytes of all slots.
    bytes: u64,
}

impl Header {
    fn parse(bytes: &[u8], limit: u64) -> Result<Self, Kind> {
        let Ok(bytes) = <&[u8; HEADER]>::try_from(bytes) else {
            return Err(Kind::Invalid(format!(
                "the header has {} bytes, not {HEADER}",
                bytes.len()
            )));
        };
        let (longs, shorts) = bytes.split_at(32);
        let long = |i: usize| u64::from_le_bytes(longs.as_chunks().0[i]);
        let short = |i: usize| u16::from_le_bytes(shorts.as_chunks().0[i]);
        let (items, buckets, deletes, filters) = (long(0), long(1), long(2), long(3));
        let (bucket_size, max_iterations, expansion) = (short(0), short(1), short(2));
        let problem = if !buckets.is_power_of_two() {
            format!("{buckets} buckets are no power of two")
        } else if !(1..=255).contains(&bucket_size) || max_iterations == 0 {
            format!("buckets of {bucket_size} slots and {max_iterations} iterations are not in 1 to 255 and at least 1")
        } else if expansion != 0 && !expansion.is_power_of_two() {
            format!("an expansion of {expansion} is no power of two")
        } else if !(1..=u16::MAX.into()).contains(&filters) || expansion == 0 && filters > 1 {
            format!("{filters} filters in a chain with an expansion of {expansion} cannot be")
        } else {
            let settings = Settings {
                buckets,
                bucket_size: bucket_size as u8,
                max_iterations,
                expansion,
            };
            return Self::sized(settings, filters as usize, limit).map(|bytes| Self {
                settings,
                items,
                deletes,
                filters: filters as usize,
                bytes,
            });
        };
        Err(Kind::Invalid(problem))
    }

    /// Bytes of all slots, at most `limit`.
    fn sized(settings: Settings, filters: usize, limit: u64) -> Result<u64, Kind> {
        let mut needed = 0;
        for number in 0..filters {
            let Some(buckets) = settings.buckets_of(number) else {
                let problem = format!("filter {number} of the chain has more than {} slots", u32::MAX);
                return Err(Kind::Invalid(problem));
            };
            // At most 2^16 times 2^32.
            needed += buckets * u64::from(settings.bucket_size);
        }
        if needed > limit {
            return Err(Kind::OverLimit { needed, limit });
        }
        Ok(needed)
    }
}

/// Takes a filter out of Redis chunk by chunk, for a client of your own.
///
/// Send `CF.SCANDUMP` with [`cursor`](Self::cursor) until the filter [is
/// complete](Self::is_complete). Chunks must come in the module's order. Nobody may change the
/// filter meanwhile: an insert moves fingerprints, perhaps into a chunk that was sent already.
///
/// # Examples
///
/// ```
/// use lanebloom::RedisCuckoo;
/// use lanebloom::rediscuckoo::Loader;
/// # let mut filter = RedisCuckoo::with_capacity(1000)?;
/// # filter.insert("a")?;
/// # let mut dump = filter.to_loadchunks();
/// # let mut scandump = |key: &str, cursor: i64| dump.next().unwrap();
///
/// let mut loader = Loader::new(1 << 30);
/// while !loader.is_complete() {
///     // An asynchronous client awaits it.
///     let (cursor, chunk) = scandump("seen", loader.cursor());
///     loader.load(cursor, &chunk)?;
/// }
/// let filter = loader.finish()?;
/// assert!(filter.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Loader {
    limit: u64,
    /// Some after the header.
    filter: Option<RedisCuckoo>,
    /// The cursor that came with the last chunk, 0 before the first.
    cursor: i64,
    /// Bytes of all slots, as the header says.
    bytes: u64,
    /// The filter of the chain that the next chunk belongs to, and the slot where the chunk begins
    /// there.
    table: usize,
    offset: usize,
}

impl Loader {
    /// A loader for a filter of at most `max_bytes` of [memory](RedisCuckoo::memory_bytes), now and
    /// when it grows later.
    ///
    /// ```
    /// assert_eq!(lanebloom::rediscuckoo::Loader::new(1 << 20).cursor(), 0);
    /// ```
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            limit: max_bytes as u64,
            filter: None,
            cursor: 0,
            bytes: 0,
            table: 0,
            offset: 0,
        }
    }

    /// The cursor for the next `CF.SCANDUMP`: 0 at first, then the last chunk's.
    ///
    /// ```
    /// use lanebloom::RedisCuckoo;
    /// use lanebloom::rediscuckoo::Loader;
    ///
    /// let mut loader = Loader::new(1 << 20);
    /// let filter = RedisCuckoo::with_capacity(10)?;
    /// let (cursor, header) = filter.to_loadchunks().next().unwrap();
    /// loader.load(cursor, &header)?;
    /// assert_eq!(loader.cursor(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn cursor(&self) -> i64 {
        self.cursor
    }

    /// Whether all slots are there. The last reply, cursor 0 and no bytes, may be left out.
    ///
    /// ```
    /// use lanebloom::RedisCuckoo;
    /// use lanebloom::rediscuckoo::Loader;
    ///
    /// let mut loader = Loader::new(1 << 20);
    /// for (cursor, chunk) in RedisCuckoo::with_capacity(10)?.to_loadchunks() {
    ///     assert!(!loader.is_complete());
    ///     loader.load(cursor, &chunk)?;
    /// }
    /// assert!(loader.is_complete());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.filter
            .as_ref()
            .is_some_and(|filter| self.table == filter.tables.len())
    }

    /// Takes a reply of `CF.SCANDUMP`: a cursor and a chunk.
    ///
    /// Checks the header before it allocates the slots that the header declares.
    ///
    /// # Errors
    ///
    /// Fails if the cursor is not the next one, the header is not one of a cuckoo filter or
    /// declares more bytes than the limit, the allocation fails, or the chunk has more slots than
    /// its filter has left, or comes after the end. Then nothing is changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisCuckoo;
    /// use lanebloom::rediscuckoo::Loader;
    ///
    /// let mut loader = Loader::new(100);
    /// let filter = RedisCuckoo::with_capacity(1000)?;
    /// let (cursor, header) = filter.to_loadchunks().next().unwrap();
    /// let error = loader.load(cursor, &header).unwrap_err();
    /// let text = "the filter takes 1024 bytes, more than the limit of 100 bytes";
    /// assert_eq!(error.to_string(), text);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load(&mut self, cursor: i64, chunk: &[u8]) -> Result<(), RedisBloomLoadError> {
        self.take(cursor, chunk).map_err(RedisBloomLoadError)
    }

    fn take(&mut self, cursor: i64, chunk: &[u8]) -> Result<(), Kind> {
        let complete = self.is_complete();
        let expected = match &self.filter {
            None => FIRST,
            // The limit is on the sum of all that came before, so that nothing overflows.
            Some(_) => self.cursor.saturating_add_unsigned(chunk.len() as u64),
        };
        if self.filter.is_some() && cursor == 0 && chunk.is_empty() {
            return if complete { Ok(()) } else { Err(self.incomplete()) };
        }
        if cursor != expected {
            let problem = format!("cursor {cursor} came with a chunk whose cursor is {expected}");
            return Err(Kind::Invalid(problem));
        }
        let Some(filter) = &mut self.filter else {
            let header = Header::parse(chunk, self.limit)?;
            let filter = RedisCuckoo::empty(header.settings, header.filters, self.limit);
            self.filter = Some(RedisCuckoo {
                items: header.items,
                deletes: header.deletes,
                ..filter.map_err(Kind::OutOfMemory)?
            });
            (self.bytes, self.cursor) = (header.bytes, cursor);
            return Ok(());
        };
        let (number, len) = (self.table, chunk.len());
        let slots = filter
            .tables
            .get_mut(number)
            .map(|table| &mut table.bytes_mut()[self.offset..]);
        let left = slots.as_ref().map_or(0, |slots| slots.len());
        let Some(slots) = slots.filter(|_| (1..=left).contains(&len)) else {
            return Err(Kind::Invalid(format!(
                "a chunk of {len} bytes came where filter {number} of the chain has {left} left"
            )));
        };
        slots[..len].copy_from_slice(chunk);
        self.cursor = cursor;
        self.offset += len;
        if len == left {
            self.table += 1;
            self.offset = 0;
        }
        Ok(())
    }

    /// The filter, when all of it is there.
    ///
    /// # Errors
    ///
    /// If chunks are missing.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisCuckoo;
    /// use lanebloom::rediscuckoo::Loader;
    ///
    /// let mut loader = Loader::new(1 << 20);
    /// let filter = RedisCuckoo::with_capacity(64)?;
    /// let (cursor, header) = filter.to_loadchunks().next().unwrap();
    /// loader.load(cursor, &header)?;
    /// let error = loader.finish().unwrap_err();
    /// assert_eq!(error.to_string(), "the dump ends after 0 bytes of 64");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn finish(self) -> Result<RedisCuckoo, RedisBloomLoadError> {
        if !self.is_complete() {
            return Err(RedisBloomLoadError(self.incomplete()));
        }
        self.filter.ok_or(RedisBloomLoadError(Kind::Empty))
    }

    fn incomplete(&self) -> Kind {
        match self.filter {
            None => Kind::Empty,
            Some(_) => Kind::Truncated {
                bytes: (self.cursor - FIRST) as u64,
                needed: self.bytes,
            },
        }
    }
}

/// The dump.
impl RedisCuckoo {
    /// The filter with these replies of `CF.SCANDUMP`, in order, as
    /// [`to_loadchunks`](Self::to_loadchunks) gives them. The last reply, cursor 0 and no bytes,
    /// may be left out. [`Loader`] takes one reply after another.
    ///
    /// `max_bytes` limits the [memory](Self::memory_bytes) of the filter, here and when inserts let
    /// it grow, since the dump's author chose its expansion.
    ///
    /// # Errors
    ///
    /// As [`Loader::load`], and if chunks are missing.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::RedisCuckoo;
    ///
    /// // CF.RESERVE f 4, CF.ADD f ann, then CF.SCANDUMP f with 0, 1, 5
    /// let header = b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\
    ///     \x01\0\0\0\0\0\0\0\x02\0\x14\0\x01\0";
    /// let mut filter = RedisCuckoo::with_capacity(4)?;
    /// filter.insert("ann")?;
    /// let slots = filter.to_loadchunks().nth(1).unwrap().1;
    /// let replies = [(1, &header[..]), (5, &slots[..]), (0, &[])];
    /// assert!(RedisCuckoo::from_scandump(replies, 1 << 20)? == filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.SCANDUMP")]
    pub fn from_scandump<C: AsRef<[u8]>>(
        replies: impl IntoIterator<Item = (i64, C)>,
        max_bytes: usize,
    ) -> Result<Self, RedisBloomLoadError> {
        let mut loader = Loader::new(max_bytes);
        for (cursor, chunk) in replies {
            loader.load(cursor, chunk.as_ref())?;
        }
        loader.finish()
    }

    /// The filter's dump for `CF.LOADCHUNK`: a cursor with each chunk, in order, without the last
    /// reply of `CF.SCANDUMP`. A chunk has up to 16 MiB.
    ///
    /// ```
    /// let filter = lanebloom::RedisCuckoo::with_capacity(1000)?;
    /// let lengths = filter.to_loadchunks().map(|(at, chunk)| (at, chunk.len()));
    /// assert!(lengths.eq([(1, 38), (1025, 1024)]));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "CF.LOADCHUNK")]
    pub fn to_loadchunks(&self) -> LoadChunks<'_> {
        LoadChunks {
            filter: self,
            cursor: 0,
            table: 0,
            offset: 0,
        }
    }

    /// Whether nothing has changed since this filter was read, by its present header.
    #[cfg(feature = "redis")]
    pub(crate) fn is_unchanged(&self, header: &[u8]) -> bool {
        header == self.header()
    }

    fn header(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let Settings {
            buckets,
            bucket_size,
            max_iterations,
            expansion,
        } = self.settings;
        let (longs, shorts) = bytes.split_at_mut(32);
        let numbers = [self.items, buckets, self.deletes, self.tables.len() as u64];
        for (bytes, number) in longs.as_chunks_mut().0.iter_mut().zip(numbers) {
            *bytes = number.to_le_bytes();
        }
        let numbers = [bucket_size.into(), max_iterations, expansion];
        for (bytes, number) in shorts.as_chunks_mut().0.iter_mut().zip(numbers) {
            *bytes = number.to_le_bytes();
        }
        bytes
    }
}

/// The chunks of a filter's dump, each with its cursor; made by [`RedisCuckoo::to_loadchunks`].
///
/// # Examples
///
/// ```
/// let filter = lanebloom::RedisCuckoo::with_capacity(16)?;
/// let mut chunks = filter.to_loadchunks();
/// assert_eq!(chunks.next().unwrap().0, 1);
/// assert_eq!(chunks.next(), Some((17, vec![0; 16])));
/// assert_eq!(chunks.next(), None);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "an iterator does nothing until it is asked"]
pub struct LoadChunks<'a> {
    filter: &'a RedisCuckoo,
    /// The last chunk's cursor, 0 before the first.
    cursor: i64,
    /// The filter of the chain that the next chunk belongs to, and the slot where the chunk begins
    /// there.
    table: usize,
    offset: usize,
}

impl Iterator for LoadChunks<'_> {
    type Item = (i64, Vec<u8>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor == 0 {
            self.cursor = FIRST;
            return Some((FIRST, self.filter.header().into()));
        }
        let slots = &self.filter.tables.get(self.table)?.bytes()[self.offset..];
        let chunk = &slots[..slots.len().min(CHUNK)];
        self.cursor += chunk.len() as i64;
        self.offset += chunk.len();
        if chunk.len() == slots.len() {
            self.table += 1;
            self.offset = 0;
        }
        Some((self.cursor, chunk.into()))
    }
}
