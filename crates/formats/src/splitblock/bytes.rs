//! The bytes of a split-block filter: the bitset, the header that Parquet files have before it, and
//! Milvus' envelope.

use super::block::BLOCK_BYTES;
use super::sizing::MAX_FORMAT_BYTES;
use super::thrift::{STRUCT, Thrift, split};
use super::{SplitBlockBloom, block_index, check_block, sizing};
use crate::error::ReadError;
use alloc::format;
use alloc::vec::Vec;
use lanebloom::BuildError;
use lanebloom::internal::{acquire_if, as_chunks};

/// The header of a filter in a Parquet file: `BloomFilterHeader` of Parquet's Thrift definition, in
/// the compact protocol. Parquet's writers make it of 15 to 19 bytes.
///
/// ```
/// use lanebloom_formats::SplitBlockBloom;
/// use lanebloom_formats::splitblock::Header;
///
/// let file = SplitBlockBloom::with_bytes(1024)?.to_parquet()?;
/// let header = Header::parse(&file)?;
/// assert_eq!((header.blocks(), header.bitset_bytes()), (32, 1024));
/// assert_eq!(header.header_bytes() + header.bitset_bytes(), file.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    header_bytes: usize,
    bitset_bytes: usize,
    /// Bytes after the last whole block, which belong to the filter and are not used.
    unused_bytes: usize,
}

impl Header {
    /// Reads a header at the beginning of some bytes; what follows it may be missing.
    ///
    /// # Errors
    ///
    /// If the bytes end too early, are not a header, or if the filter has another algorithm, hash
    /// or compression than Parquet defines so far.
    pub fn parse(bytes: &[u8]) -> Result<Self, ReadError> {
        let mut thrift = Thrift::new(bytes, "the filter's header");
        let mut size = None;
        let (mut algorithm, mut hash, mut compression) = (None, None, None);
        let mut field = 0;
        while let Some(kind) = thrift.field(&mut field)? {
            match (field, kind) {
                (1, 5) => size = Some(thrift.zigzag()?),
                (2, STRUCT) => algorithm = thrift.member(0)?,
                (3, STRUCT) => hash = thrift.member(0)?,
                (4, STRUCT) => compression = thrift.member(0)?,
                _ => thrift.skip(kind, 0)?,
            }
        }
        for (name, member) in [("algorithm", algorithm), ("hash", hash), ("compression", compression)] {
            match member {
                Some(1) => {}
                Some(other) => {
                    return Err(ReadError::invalid(format!(
                        "the filter's {name} is number {other}, not 1"
                    )));
                }
                None => return Err(ReadError::invalid(format!("the filter's header has no {name}"))),
            }
        }
        let size = size.ok_or_else(|| ReadError::invalid("the filter's header has no number of bytes"))?;
        let bytes = usize::try_from(size).ok().filter(|bytes| *bytes <= i32::MAX as usize);
        let bytes = bytes.ok_or_else(|| ReadError::invalid(format!("the filter's header says {size} bytes")))?;
        // parquet-java writes any number of bytes that its option `max.bytes` names, and uses the
        // whole blocks.
        let unused_bytes = bytes % BLOCK_BYTES;
        whole_blocks(bytes - unused_bytes)
            .map_err(|_| ReadError::invalid(format!("{bytes} bytes are less than a block of {BLOCK_BYTES} bytes")))?;
        Ok(Self {
            header_bytes: thrift.at,
            bitset_bytes: bytes - unused_bytes,
            unused_bytes,
        })
    }

    /// The bytes of the header.
    #[must_use]
    pub fn header_bytes(&self) -> usize {
        self.header_bytes
    }

    /// The bytes of the bitset, which follows: whole blocks.
    ///
    /// A file may have up to 31 bytes more, which are not used: parquet-java writes such filters
    /// with its option `parquet.bloom.filter.max.bytes`.
    #[must_use]
    pub fn bitset_bytes(&self) -> usize {
        self.bitset_bytes
    }

    /// The bytes that the file has after the header: the bitset, and what is not used.
    #[must_use]
    pub fn stored_bytes(&self) -> usize {
        self.bitset_bytes + self.unused_bytes
    }

    /// The blocks of the bitset.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.bitset_bytes / BLOCK_BYTES
    }

    /// Looks up hashes in a filter that is not in memory, and reads no more of it than they need:
    /// 32 bytes for each hash, or the whole bitset if that is fewer bytes.
    ///
    /// `read(start, len)` returns `len` bytes of the bitset from `start` on.
    ///
    /// # Panics
    ///
    /// If `found` has another length than `hashes`, or `read` returns another number of bytes.
    ///
    /// # Errors
    ///
    /// The first error of `read`.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    /// use lanebloom_formats::splitblock::{Header, hash};
    ///
    /// let filter = SplitBlockBloom::with_capacity(1000, 0.001)?;
    /// filter.insert("ann");
    /// let file = filter.to_parquet()?;
    ///
    /// let header = Header::parse(&file)?;
    /// let (mut found, mut bytes) = ([false; 2], 0);
    /// header.look_up(&[hash("ann"), hash("eve")], &mut found, |start, len| {
    ///     bytes += len;
    ///     let start = header.header_bytes() + start;
    ///     Ok::<_, std::io::Error>(file[start..][..len].to_vec())
    /// })?;
    /// assert_eq!((found, bytes), ([true, false], 64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn look_up<E>(
        &self,
        hashes: &[u64],
        found: &mut [bool],
        mut read: impl FnMut(usize, usize) -> Result<Vec<u8>, E>,
    ) -> Result<(), E> {
        const BYTES: &str = "as many bytes as were asked for";
        assert_eq!(hashes.len(), found.len(), "one answer for each hash");
        if hashes.len() >= self.blocks() {
            let bitset = read(0, self.bitset_bytes)?;
            assert_eq!(bitset.len(), self.bitset_bytes, "{BYTES}");
            let blocks = as_chunks(&bitset).0;
            for (hash, found) in hashes.iter().zip(found) {
                *found = check_block(&blocks[block_index(*hash, self.blocks())], *hash);
            }
            return Ok(());
        }
        for (hash, found) in hashes.iter().zip(found) {
            let block = read(BLOCK_BYTES * block_index(*hash, self.blocks()), BLOCK_BYTES)?;
            *found = check_block(block[..].try_into().expect(BYTES), *hash);
        }
        Ok(())
    }
}

/// The fields of a Milvus filter beside its bits: the envelope "MBF1" of `membership_match`.
///
/// ```
/// use lanebloom_formats::SplitBlockBloom;
/// use lanebloom_formats::splitblock::Milvus;
///
/// let filter = SplitBlockBloom::with_parquet_size(1000, 0.005)?;
/// filter.insert_batch(&[1_i64, 2, 3]);
/// let says = Milvus { keys: 1000, rate: 0.005, int64: true, utf8: false };
/// let blob = filter.to_mbf1(says)?;
/// let (copy, read) = SplitBlockBloom::from_mbf1(&blob)?;
/// assert!(read == says && copy.contains(&2_i64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Milvus {
    /// The keys that the filter was sized for.
    pub keys: u64,
    /// The false-positive rate that it was sized for. Milvus takes 0.0001 to 0.05.
    pub rate: f64,
    /// Whether keys of integer fields are in it, as `i64`.
    pub int64: bool,
    /// Whether keys of string fields are in it.
    pub utf8: bool,
}

const MILVUS_HEADER: usize = 32;

/// Bytes out.
impl SplitBlockBloom {
    /// The bitset: the blocks, each of eight words of 32 bits, little-endian.
    ///
    /// Holds at least every key whose insert happened before.
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let filter = SplitBlockBloom::with_bytes(64)?;
    /// filter.insert("a");
    /// assert_eq!(SplitBlockBloom::from_bitset(&filter.to_bitset())?, filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bitset(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.memory_bytes());
        self.write_bitset(&mut bytes);
        bytes
    }

    /// The bytes of the filter in a Parquet file: the header, and the bitset.
    ///
    /// Fails if the bitset is larger than 128 MiB ([`MAX_FORMAT_BYTES`]), which readers refuse.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::with_bytes(64)?;
    /// assert_eq!(filter.to_parquet()?.len(), 16 + 64);
    /// # Ok::<(), lanebloom_formats::BuildError>(())
    /// ```
    pub fn to_parquet(&self) -> Result<Vec<u8>, BuildError> {
        self.check_format_size()?;
        let mut bytes = Vec::with_capacity(24 + self.memory_bytes());
        // Field 1, a number of 32 bits, zigzag.
        bytes.push(0x15);
        let mut size = 2 * self.memory_bytes() as u64;
        while size >= 0x80 {
            bytes.push(size as u8 | 0x80);
            size >>= 7;
        }
        bytes.push(size as u8);
        // Fields 2, 3 and 4: a union whose member 1 is an empty struct.
        for _ in 0..3 {
            bytes.extend([0x1c, 0x1c, 0, 0]);
        }
        bytes.push(0);
        self.write_bitset(&mut bytes);
        Ok(bytes)
    }

    /// The bytes that Milvus takes in `membership_match`: its envelope, and the bitset.
    ///
    /// # Errors
    ///
    /// If the number of blocks is not a power of two, or the bitset is larger than 128 MiB
    /// ([`MAX_FORMAT_BYTES`]). [`with_parquet_rate`](Self::with_parquet_rate) makes one that fits.
    pub fn to_mbf1(&self, says: Milvus) -> Result<Vec<u8>, BuildError> {
        self.check_format_size()?;
        if !self.blocks().is_power_of_two() {
            return Err(BuildError::new(format!(
                "{} blocks are not a power of two, which Milvus needs",
                self.blocks()
            )));
        }
        let mut bytes = Vec::with_capacity(MILVUS_HEADER + self.memory_bytes());
        bytes.extend(b"MBF1\x01\0\x01\0");
        bytes.extend(says.keys.to_le_bytes());
        bytes.extend(says.rate.to_le_bytes());
        bytes.extend((self.blocks() as u32).to_le_bytes());
        bytes.extend([u8::from(says.int64) | u8::from(says.utf8) << 1, 0, 0, 0]);
        self.write_bitset(&mut bytes);
        Ok(bytes)
    }

    fn check_format_size(&self) -> Result<(), BuildError> {
        let bytes = self.memory_bytes();
        if bytes <= MAX_FORMAT_BYTES {
            return Ok(());
        }
        Err(BuildError::new(format!(
            "the filter's {bytes} bytes are more than the format's {MAX_FORMAT_BYTES}"
        )))
    }

    fn write_bitset(&self, bytes: &mut Vec<u8>) {
        let words = self.0.engine().content.bits.words().flatten().take(4 * self.blocks());
        words.for_each(|word| bytes.extend(word.to_le_bytes()));
        acquire_if(true);
    }
}

/// Bytes in.
impl SplitBlockBloom {
    /// Reads a bitset.
    ///
    /// Fails if the bytes are not a whole number of blocks, or none, or if there is not enough
    /// memory.
    ///
    /// ```
    /// let filter = lanebloom_formats::SplitBlockBloom::from_bitset(&[0xff; 64])?;
    /// assert!(filter.contains("anything"));
    /// # Ok::<(), lanebloom_formats::ReadError>(())
    /// ```
    pub fn from_bitset(bitset: &[u8]) -> Result<Self, ReadError> {
        let blocks = whole_blocks(bitset.len())?;
        let mut filter = Self::new(blocks, sizing::keys(blocks, 0.01)).map_err(ReadError::out_of_memory)?;
        let words = as_chunks(bitset).0.iter().map(|word| u64::from_le_bytes(*word));
        filter.0.engine_mut().content.bits.store_words(0, words);
        Ok(filter)
    }

    /// Reads what a Parquet file has at a column chunk's `bloom_filter_offset`: the header, and the
    /// bitset. The bytes are exactly these, as many as the chunk's `bloom_filter_length` says.
    ///
    /// A wrong number of bytes in the header would have keys looked up in wrong blocks, and so lose
    /// them. The length shows it. For a file that does not say the length, use
    /// [`from_parquet_prefix`](Self::from_parquet_prefix).
    ///
    /// # Errors
    ///
    /// If the bytes are not a filter, are fewer or more than the header says, or if there is not
    /// enough memory.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let filter = SplitBlockBloom::with_bytes(64)?;
    /// let mut bytes = filter.to_parquet()?;
    /// assert_eq!(SplitBlockBloom::from_parquet(&bytes)?, filter);
    /// bytes.push(0);
    /// let error = SplitBlockBloom::from_parquet(&bytes).unwrap_err().to_string();
    /// assert_eq!(error, "the filter's header says 16 + 64 bytes, and there are 81");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_parquet(bytes: &[u8]) -> Result<Self, ReadError> {
        let (header, bitset, rest) = file_parts(bytes)?;
        if !rest.is_empty() {
            return Err(ReadError::invalid(format!(
                "the filter's header says {} + {} bytes, and there are {}",
                header.header_bytes,
                header.stored_bytes(),
                bytes.len()
            )));
        }
        Self::from_bitset(bitset)
    }

    /// [`from_parquet`](Self::from_parquet) for a file whose metadata has no `bloom_filter_length`
    /// (old parquet-mr, parquet-go): the bytes may go on after the filter. Returns the rest too.
    ///
    /// Fails if the bytes end too early or are not a filter, or if there is not enough memory.
    ///
    /// ```
    /// use lanebloom_formats::SplitBlockBloom;
    ///
    /// let filter = SplitBlockBloom::with_bytes(64)?;
    /// let mut file = filter.to_parquet()?;
    /// file.extend(b"more");
    /// let (read, rest) = SplitBlockBloom::from_parquet_prefix(&file)?;
    /// assert_eq!((read, rest), (filter, &b"more"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_parquet_prefix(bytes: &[u8]) -> Result<(Self, &[u8]), ReadError> {
        let (_, bitset, rest) = file_parts(bytes)?;
        Ok((Self::from_bitset(bitset)?, rest))
    }

    /// Reads a filter of Milvus, with what it says of itself.
    ///
    /// # Errors
    ///
    /// If the bytes end too early, go on after the filter, or are none of version 1, or if there is
    /// not enough memory.
    pub fn from_mbf1(bytes: &[u8]) -> Result<(Self, Milvus), ReadError> {
        let (header, _) = split(bytes, 0, MILVUS_HEADER)?;
        if header[..8] != *b"MBF1\x01\0\x01\0" {
            return Err(ReadError::invalid(format!(
                "the bytes begin with {:02x?}, not MBF1 version 1",
                &header[..8]
            )));
        }
        let word = |at: usize| u64::from_le_bytes(as_chunks(&header[at..]).0[0]);
        let blocks = u32::from_le_bytes(as_chunks(&header[24..]).0[0]) as usize;
        if !blocks.is_power_of_two() || blocks > MAX_FORMAT_BYTES / BLOCK_BYTES {
            return Err(ReadError::invalid(format!(
                "{blocks} blocks are not a power of two of at most {}",
                MAX_FORMAT_BYTES / BLOCK_BYTES
            )));
        }
        let domains = header[28];
        if domains > 3 || header[29..] != [0; 3] {
            return Err(ReadError::invalid(format!("the domains are {:02x?}", &header[28..])));
        }
        let (bitset, rest) = split(bytes, MILVUS_HEADER, blocks * BLOCK_BYTES)?;
        if !rest.is_empty() {
            return Err(ReadError::invalid(format!("{} bytes follow the filter", rest.len())));
        }
        let says = Milvus {
            keys: word(8),
            rate: f64::from_bits(word(16)),
            int64: domains & 1 != 0,
            utf8: domains & 2 != 0,
        };
        Ok((Self::from_bitset(bitset)?, says))
    }
}

/// The header, the blocks and the rest of a file from a filter on.
fn file_parts(bytes: &[u8]) -> Result<(Header, &[u8], &[u8]), ReadError> {
    let header = Header::parse(bytes)?;
    let (bitset, rest) = split(bytes, header.header_bytes, header.stored_bytes())?;
    Ok((header, &bitset[..header.bitset_bytes], rest))
}

/// The blocks of this number of bytes.
pub(super) fn whole_blocks(bytes: usize) -> Result<usize, ReadError> {
    let blocks = bytes / BLOCK_BYTES;
    if bytes % BLOCK_BYTES != 0 || blocks == 0 {
        return Err(ReadError::invalid(format!(
            "{bytes} bytes are not a whole number of blocks of {BLOCK_BYTES} bytes"
        )));
    }
    if blocks > sizing::MOST_BLOCKS {
        return Err(ReadError::invalid(format!(
            "{blocks} blocks are more than {}",
            sizing::MOST_BLOCKS
        )));
    }
    Ok(blocks)
}
