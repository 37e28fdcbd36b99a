//! The header of the dump of Redis' cuckoo filter. All numbers are little-endian, without gaps:
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
//!
//! The bytes of a filter are its slots.

use super::{RedisCuckoo, Settings};
use crate::error::ReadError;
use crate::scandump::sealed::Chain;
use crate::scandump::{LoadChunks, Loader, OF_FAKEREDIS};
use alloc::format;
use alloc::vec::Vec;
use lanebloom::internal::as_chunks;

/// Bytes of the header.
const HEADER: usize = 38;

/// Fails if all layers take more bytes than `limit`.
fn check_size(settings: Settings, filters: usize, limit: u64) -> Result<(), ReadError> {
    let mut needed = 0;
    for number in 0..filters {
        let Some(memory) = settings.memory_of(number) else {
            let problem = format!("layer {number} of the chain has more than {} slots", u32::MAX);
            return Err(ReadError::invalid(problem));
        };
        // At most 2^16 times 2^33.
        needed += memory;
    }
    ReadError::check_limit(needed, limit)
}

/// The dump.
impl RedisCuckoo {
    /// The filter with these replies of `CF.SCANDUMP`, as
    /// [`RedisBloom::from_scandump`](crate::RedisBloom::from_scandump) reads those of
    /// `BF.SCANDUMP`. (For a filter without keys, the module replies only cursor 0 and no bytes,
    /// which is an error here.)
    ///
    /// `max_bytes` limits the [memory](Self::memory_bytes) of the filter, here and when inserts let
    /// it grow, since the dump's author chose its expansion.
    ///
    /// Fails as [`Loader::load`] does, and if chunks are missing.
    ///
    /// ```
    /// use lanebloom_formats::RedisCuckoo;
    ///
    /// let mut filter = RedisCuckoo::with_capacity(4)?;
    /// filter.insert("ann")?;
    /// // The module's last reply may be there too.
    /// let replies = filter.to_loadchunks().chain([(0, vec![])]);
    /// assert!(RedisCuckoo::from_scandump(replies, 1 << 20)? == filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "CF.SCANDUMP")]
    pub fn from_scandump<C: AsRef<[u8]>>(
        replies: impl IntoIterator<Item = (i64, C)>,
        max_bytes: usize,
    ) -> Result<Self, ReadError> {
        Loader::all(replies, max_bytes)
    }

    /// The filter's dump for `CF.LOADCHUNK`: a cursor with each chunk, in order, without the last
    /// reply of `CF.SCANDUMP`. A chunk has up to 16 MiB.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisCuckoo::with_capacity(1000)?;
    /// let lengths = filter.to_loadchunks().map(|(at, chunk)| (at, chunk.len()));
    /// assert!(lengths.eq([(1, 38), (1025, 1024)]));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "CF.LOADCHUNK")]
    pub fn to_loadchunks(&self) -> LoadChunks<'_, Self> {
        LoadChunks::of(self)
    }
}

/// Whether bytes are a dump of fakeredis for Python: the `CountingCuckooFilter` of pyprobables.
///
/// It has 8 bytes for each slot, and ends in the slots of a bucket and the iterations (`u32`).
fn is_of_fakeredis(bytes: &[u8]) -> bool {
    let Some((slots, end)) = bytes.split_last_chunk::<8>() else {
        return false;
    };
    let end = u64::from_le_bytes(*end);
    let (bucket_size, iterations) = (end & u64::from(u32::MAX), end >> 32);
    let is_small = |number| (1..=u64::from(u16::MAX)).contains(&number);
    is_small(bucket_size) && is_small(iterations) && !slots.is_empty() && slots.len() as u64 % (8 * bucket_size) == 0
}

impl Chain for RedisCuckoo {
    const UNIT: usize = 1;

    fn from_header(header: &[u8], max_bytes: u64) -> Result<Self, ReadError> {
        let Ok(header) = <&[u8; HEADER]>::try_from(header) else {
            let problem = format!("the header has {} bytes, not {HEADER}", header.len());
            return Err(match is_of_fakeredis(header) {
                true => ReadError::invalid(OF_FAKEREDIS),
                false => ReadError::invalid(problem),
            });
        };
        let (longs, shorts) = header.split_at(32);
        let long = |i: usize| u64::from_le_bytes(as_chunks(longs).0[i]);
        let short = |i: usize| u16::from_le_bytes(as_chunks(shorts).0[i]);
        let (items, buckets, deletes, filters) = (long(0), long(1), long(2), long(3));
        let (bucket_size, max_iterations, expansion) = (short(0), short(1), short(2));
        let problem = if !buckets.is_power_of_two() {
            format!("{buckets} buckets are not a power of two")
        } else if !(1..=255).contains(&bucket_size) || max_iterations == 0 {
            format!("buckets of {bucket_size} slots and {max_iterations} iterations are not in 1 to 255 and at least 1")
        } else if expansion != 0 && !expansion.is_power_of_two() {
            format!("an expansion of {expansion} is not a power of two")
        } else if !(1..=u16::MAX.into()).contains(&filters) || expansion == 0 && filters > 1 {
            format!("{filters} filters in a chain with an expansion of {expansion} cannot be")
        } else {
            let (bucket_size, filters) = (bucket_size as u8, filters as usize);
            let settings = Settings {
                buckets,
                bucket_size,
                max_iterations,
                expansion,
            };
            check_size(settings, filters, max_bytes)?;
            let empty = Self::empty(settings, filters, max_bytes).map_err(ReadError::out_of_memory)?;
            return Ok(Self {
                items,
                deletes,
                ..empty
            });
        };
        Err(ReadError::invalid(problem))
    }

    fn header(&self) -> Vec<u8> {
        let Settings {
            buckets,
            bucket_size,
            max_iterations,
            expansion,
        } = self.settings;
        let longs = [self.items, buckets, self.deletes, self.layers.len() as u64];
        let shorts = [bucket_size.into(), max_iterations, expansion];
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend(longs.into_iter().flat_map(u64::to_le_bytes));
        bytes.extend(shorts.into_iter().flat_map(u16::to_le_bytes));
        bytes
    }

    fn len(&self, filter: usize) -> Option<usize> {
        self.layers.get(filter).map(|layer| layer.bytes().len())
    }

    fn bytes(&self, filter: usize, offset: usize, len: usize) -> Vec<u8> {
        self.layers[filter].bytes()[offset..][..len].into()
    }

    fn store(&mut self, filter: usize, offset: usize, bytes: &[u8]) {
        self.layers[filter].bytes_mut()[offset..][..bytes.len()].copy_from_slice(bytes);
    }

    /// Any change may have moved fingerprints.
    fn is_whole(&self, header: &[u8]) -> Result<bool, ReadError> {
        Ok(header == self.header())
    }
}
