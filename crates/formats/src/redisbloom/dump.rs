//! The header of RedisBloom's dump. All numbers are little-endian, without gaps:
//!
//! | header | | for each filter | |
//! |---|---|---|---|
//! | `u64` | items | `u64` | bytes |
//! | `u32` | filters | `u64` | bits |
//! | `u32` | options | `u64` | items |
//! | `u32` | expansion | `f64` | rate |
//! | | | `f64` | bits per key |
//! | | | `u32` | hash functions |
//! | | | `u64` | capacity |
//! | | | `u8` | `log2` of the size, of one that was rounded up |
//!
//! The bytes of a filter are its bits, in words that are little-endian.

use super::error::{NO_CAPACITY, NO_EXPANSION};
use super::layout::{LayerLayout, TIGHTENING, bits_per_key, hash_functions, options};
use super::{BloomLayer, LoadChunks, Loader, RedisBloom};
use crate::error::ReadError;
use crate::flat::LINE_BYTES;
use crate::scandump::{OF_FAKEREDIS, sealed::Chain};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use lanebloom::BuildError;
use lanebloom::internal::as_chunks;

/// Bytes of the header before the filters, and for each of them.
const HEADER: usize = 20;
const LAYER: usize = 53;

/// The most filters of a chain. Each has at most half the rate of the one before. The first rate is
/// below 1, so the 1075th is at most 2^-1074, the least `f64` above 0.
const MOST_LINKS: u32 = 1075;

/// A checked header.
struct Header {
    options: u32,
    expansion: u32,
    /// The layout and the items of each filter.
    layers: Vec<(LayerLayout, u64)>,
}

/// Takes numbers from the front of bytes that are long enough.
struct Numbers<'a>(&'a [u8]);

impl Numbers<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (first, rest) = self.0.split_first_chunk().expect("the length was checked");
        self.0 = rest;
        *first
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn f64(&mut self) -> f64 {
        f64::from_bits(self.u64())
    }
}

impl Header {
    fn parse(bytes: &[u8], limit: u64) -> Result<Self, ReadError> {
        let other_length = |needed| ReadError::invalid(format!("the header has {} bytes, not {needed}", bytes.len()));
        if bytes.len() < HEADER {
            return Err(other_length(HEADER as u64));
        }
        let mut numbers = Numbers(bytes);
        let items = numbers.u64();
        let count = numbers.u32();
        let (options, expansion) = (numbers.u32(), numbers.u32());
        if !(1..=MOST_LINKS).contains(&count) {
            let problem = format!("{count} filters in the chain are not in 1 to {MOST_LINKS}");
            return Err(ReadError::invalid(problem));
        }
        let needed = HEADER as u64 + LAYER as u64 * u64::from(count);
        if bytes.len() as u64 != needed {
            return Err(other_length(needed));
        }
        if options & !options::ALL != 0 {
            let problem = format!("options {options:#x} have others than 1 (NOROUND), 4 (FORCE64) and 8 (NO_SCALING)");
            return Err(ReadError::invalid(problem));
        }
        if expansion == 0 && options & options::NO_SCALING == 0 {
            return Err(ReadError::invalid(NO_EXPANSION));
        }
        let mut header = Self {
            options,
            expansion,
            layers: Vec::with_capacity(count as usize), // as many as have come
        };
        let (mut counted, mut memory, mut most_rate) = (0u64, 0u64, 1.0);
        for layer in 0..count {
            let (layout, items) = parse_layer(&mut numbers, most_rate)
                .map_err(|problem| ReadError::invalid(format!("layer {layer} of the chain: {problem}")))?;
            most_rate = layout.rate * TIGHTENING;
            memory = memory.saturating_add(layout.memory_bytes());
            counted = counted.saturating_add(items);
            header.layers.push((layout, items));
        }
        if counted != items {
            let problem = format!("{items} items are not the {counted} that the filters have together");
            return Err(ReadError::invalid(problem));
        }
        ReadError::check_limit(memory, limit)?;
        Ok(header)
    }
}

/// A filter with a rate of at most `most_rate`, or what is wrong.
fn parse_layer(numbers: &mut Numbers, most_rate: f64) -> Result<(LayerLayout, u64), String> {
    let (bytes, bits, items) = (numbers.u64(), numbers.u64(), numbers.u64());
    let (rate, per_key) = (numbers.f64(), numbers.f64());
    let (functions, capacity, [log]) = (numbers.u32(), numbers.u64(), numbers.take());
    let size = || format!("{bytes} bytes and {bits} bits are not of the same 64-bit words, at least one");
    if bytes == 0 || bytes % 8 != 0 || bytes.checked_mul(8) != Some(bits) {
        return Err(size());
    }
    if log > 63 || log > 0 && 1 << log > bits {
        return Err(format!("2^{log} bits are more than its {bits}"));
    }
    BuildError::check_rate(rate).map_err(|error| error.to_string())?;
    if rate > most_rate {
        return Err(format!(
            "false-positive rate {rate:e} is above {most_rate:e}, half of the one before"
        ));
    }
    // Far more than an error in a logarithm's last bit.
    const TOLERANCE: f64 = 1e-9;
    let expected = bits_per_key(rate);
    let off = per_key / expected - 1.0;
    if !(-TOLERANCE..=TOLERANCE).contains(&off) {
        return Err(format!(
            "{per_key} bits per key are not the {expected} of a rate of {rate:e}"
        ));
    }
    let expected = hash_functions(per_key);
    if u64::from(functions) != expected {
        return Err(format!(
            "{functions} hash functions are not the {expected} of a rate of {rate:e}"
        ));
    }
    if capacity == 0 {
        return Err(NO_CAPACITY.into());
    }
    // Tolerates the rest of the last word, and rounding in sizes that were rounded up.
    if capacity as f64 * per_key > bits as f64 * (1.0 + TOLERANCE) + 1.0 {
        return Err(format!("a capacity of {capacity} keys takes more than its {bits} bits"));
    }
    if items > capacity {
        return Err(format!("{items} items are more than its capacity of {capacity}"));
    }
    let words = usize::try_from(bytes / 8).map_err(|_| size())?;
    let layout = LayerLayout {
        capacity,
        rate,
        bits_per_key: per_key,
        words,
        hash_functions: functions,
        log,
    };
    Ok((layout, items))
}

/// Whether bytes are a dump of fakeredis for Python: the `ExpandingBloomFilter` of pyprobables.
///
/// It has the bits of each filter after 8 bytes, and ends in the number of filters, the capacity of
/// each, the number of keys (`u64`), and the rate (`f32`).
fn is_of_fakeredis(bytes: &[u8]) -> bool {
    let Some((filters, end)) = bytes.split_last_chunk::<28>() else {
        return false;
    };
    let mut end = Numbers(end);
    let (count, capacity, _) = (end.u64(), end.u64(), end.u64());
    let rate = f64::from(f32::from_bits(end.u32()));
    if BuildError::check_rate(rate).is_err() || (filters.len() as u64).checked_rem(count) != Some(0) {
        return false;
    }
    let expected = 8.0 + capacity as f64 * bits_per_key(rate) / 8.0;
    // The last byte of a filter may have fewer bits.
    (-0.01..1.01).contains(&(filters.len() as f64 / count as f64 - expected))
}

/// RedisBloom's dump.
impl RedisBloom {
    /// The filter with these replies of `BF.SCANDUMP`, in order, as
    /// [`to_loadchunks`](Self::to_loadchunks) gives them. The last reply, cursor 0 and no bytes,
    /// may be left out. [`Loader`] takes one reply after another.
    ///
    /// `max_bytes` limits the [memory](Self::memory_bytes) of the filter, here and when inserts let
    /// it grow, since the dump's author chose its expansion. [`max_bytes`](Self::max_bytes) returns
    /// it.
    ///
    /// Fails as [`Loader::load`] does, and if chunks are missing.
    ///
    /// ```
    /// use lanebloom_formats::RedisBloom;
    ///
    /// let mut filter = RedisBloom::with_capacity(2, 0.01)?;
    /// filter.insert("ann")?;
    /// let replies = filter.to_loadchunks();
    /// assert!(RedisBloom::from_scandump(replies, 1 << 20)? == filter);
    /// let header = filter.to_loadchunks().take(1);
    /// let error = RedisBloom::from_scandump(header, 1 << 20).unwrap_err();
    /// assert_eq!(error.to_string(), "the dump ends after 0 bytes of 8");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "BF.SCANDUMP")]
    pub fn from_scandump<C: AsRef<[u8]>>(
        replies: impl IntoIterator<Item = (i64, C)>,
        max_bytes: usize,
    ) -> Result<Self, ReadError> {
        Loader::all(replies, max_bytes)
    }

    /// The filter's dump for `BF.LOADCHUNK`: a cursor with each chunk, in order, without the last
    /// reply of `BF.SCANDUMP`. A chunk takes up to 16 MiB; aborts if its allocation fails.
    ///
    /// ```
    /// let filter = lanebloom_formats::RedisBloom::with_capacity(1000, 0.01)?;
    /// let lengths = filter.to_loadchunks().map(|(at, chunk)| (at, chunk.len()));
    /// assert!(lengths.eq([(1, 73), (1385, 1384)]));
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    #[doc(alias = "BF.LOADCHUNK")]
    pub fn to_loadchunks(&self) -> LoadChunks<'_, Self> {
        LoadChunks::of(self)
    }
}

impl Chain for RedisBloom {
    const UNIT: usize = 8;

    fn from_header(header: &[u8], max_bytes: u64) -> Result<Self, ReadError> {
        let header = Header::parse(header, max_bytes).map_err(|error| match is_of_fakeredis(header) {
            true => ReadError::invalid(OF_FAKEREDIS),
            false => error,
        })?;
        let mut filter = Self {
            layers: Vec::new(),
            options: header.options,
            expansion: header.expansion,
            max_bytes,
        };
        for (layout, items) in header.layers {
            filter.add_layer(layout, items).map_err(ReadError::out_of_memory)?;
        }
        Ok(filter)
    }

    fn header(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER + LAYER * self.layers.len());
        bytes.extend(self.info().items.to_le_bytes());
        // At most MOST_LINKS.
        for number in [self.layers.len() as u32, self.options, self.expansion] {
            bytes.extend(number.to_le_bytes());
        }
        for BloomLayer { layout, items, .. } in &self.layers {
            let rates = [layout.rate, layout.bits_per_key].map(f64::to_bits);
            for number in [layout.bytes(), layout.bits(), *items].into_iter().chain(rates) {
                bytes.extend(number.to_le_bytes());
            }
            bytes.extend(layout.hash_functions.to_le_bytes());
            bytes.extend(layout.capacity.to_le_bytes());
            bytes.push(layout.log);
        }
        bytes
    }

    fn len(&self, filter: usize) -> Option<usize> {
        self.layers.get(filter).map(|layer| 8 * layer.layout.words)
    }

    fn bytes(&self, filter: usize, offset: usize, len: usize) -> Vec<u8> {
        let mut bytes = alloc::vec![0; len];
        let mut words = [0; 1024];
        let mut line = offset / LINE_BYTES;
        for bytes in bytes.chunks_mut(size_of_val(&words)) {
            let words = &mut words[..bytes.len() / 8];
            self.layers[filter].flat.bits.copy(line, words);
            for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            line += bytes.len() / LINE_BYTES;
        }
        bytes
    }

    fn store(&mut self, filter: usize, offset: usize, bytes: &[u8]) {
        let values = as_chunks(bytes).0.iter().map(|word| u64::from_le_bytes(*word));
        self.layers[filter].flat.bits.store_words(offset / 8, values);
    }

    /// Inserts may have come: the same chain, perhaps longer, with no fewer keys.
    fn is_whole(&self, header: &[u8]) -> Result<bool, ReadError> {
        let header = Header::parse(header, u64::MAX)?;
        let mut layers = self.layers.iter().zip(&header.layers);
        let grown = layers.all(|(layer, (layout, items))| layer.layout == *layout && layer.items <= *items);
        let chain = (self.options, self.expansion) == (header.options, header.expansion);
        Ok(grown && chain && self.layers.len() <= header.layers.len())
    }
}
