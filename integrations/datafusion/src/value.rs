//! The value of `bloom_agg`: bytes that `bloom_contains` reads.
//!
//! | offset | bytes | |
//! |---|---|---|
//! | 0 | 4 | `LBSQ` |
//! | 4 | 1 | version of this format: 1 |
//! | 5 | 1 | form: 0 hashes, 1 a filter |
//! | 6 | 2 | class of the keys: a kind, and a decimal's scale or the unit of a time |
//! | 8 | | the body |
//!
//! The body of form 0 is hashes, little-endian and of 8 bytes each, as the first half of Murmur3
//! x64_128 with seed 0 makes them. A small set is exact that way, and no larger than a filter. The
//! body of form 1 is the snapshot of a `ConcurrentBloom` or a `ScalableBloom` with this hash
//! (docs/FORMAT.md).
//!
//! Reading checks the lengths before it allocates. A value takes at most [`MAX_BYTES`].

use crate::keys::Class;
use datafusion::common::{DataFusionError, Result, exec_err};
use lanebloom::{AnyFilter, Bitmap, Hashed, Murmur3};
use std::io;

/// Bytes of the largest value: half of what one Arrow array holds.
pub const MAX_BYTES: usize = 1 << 30;

/// The bytes before the body.
pub(crate) const HEADER: usize = 8;

pub(crate) fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// A value that was read.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) class: Class,
    pub(crate) body: Body,
}

#[derive(Debug)]
pub(crate) enum Body {
    /// Ascending when a `Filter` looks keys up.
    Hashes(Vec<u64>),
    Filter(Box<AnyFilter>),
}

impl Filter {
    /// Reads a value.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let Some(([b'L', b'B', b'S', b'Q', version, form, kind, detail], body)) = bytes.split_first_chunk() else {
            return exec_err!("{} bytes are not a filter: pass a value of bloom_agg", bytes.len());
        };
        check_len(bytes)?;
        if *version != 1 {
            return exec_err!(
                "the filter's format has version {version}, which only a newer lanebloom-datafusion reads"
            );
        }
        let Some(class) = Class::from_bytes([*kind, *detail]) else {
            return exec_err!("the filter is damaged: its class of keys ({kind}, {detail}) does not exist");
        };
        let body = match form {
            0 => Body::Hashes(hashes_of(body, u64::from_le_bytes)?),
            1 => {
                let filter = whole(AnyFilter::from_bytes_with(body, Murmur3::default()).map_err(external)?)?;
                if !matches!(filter, AnyFilter::Bloom(_) | AnyFilter::Scalable(_)) {
                    return exec_err!("the filter is a {}: build it with bloom_agg", filter.kind());
                }
                Body::Filter(filter.into())
            }
            form => return exec_err!("the filter is damaged: its form is {form}, neither 0 nor 1"),
        };
        Ok(Self { class, body })
    }

    /// Reads a value to look keys up in it.
    pub(crate) fn parse_to_search(bytes: &[u8]) -> Result<Self> {
        let mut filter = Self::parse(bytes)?;
        if let Body::Hashes(hashes) = &mut filter.body {
            hashes.sort_unstable();
        }
        Ok(filter)
    }

    /// Writes whether each hash may be in the set, to a bitmap.
    pub(crate) fn look_up(&self, hashes: &[u64], out: &mut [u64]) {
        match &self.body {
            Body::Hashes(few) => {
                out.fill(0);
                for (i, hash) in hashes.iter().enumerate() {
                    out[i / 64] |= u64::from(few.binary_search(hash).is_ok()) << (i % 64);
                }
            }
            Body::Filter(filter) => {
                let looked_up = filter.contains_batch(Hashed::slice(hashes), Bitmap(out));
                looked_up.expect("a hash needs no hasher");
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.body {
            Body::Hashes(hashes) => hashes.len() * 8,
            Body::Filter(filter) => filter.memory_bytes(),
        }
    }

    /// The number of keys, and the false-positive rate with them. Reads the whole filter.
    pub(crate) fn keys_and_rate(&self) -> (usize, f64) {
        match &self.body {
            Body::Hashes(hashes) => (hashes.len(), 0.0),
            Body::Filter(filter) => {
                let statistics = filter.statistics();
                (statistics.len, statistics.false_positive_rate)
            }
        }
    }
}

/// The value that was read, if no bytes follow it.
pub(crate) fn whole<T>((read, rest): (T, &[u8])) -> Result<T> {
    if rest.is_empty() {
        return Ok(read);
    }
    exec_err!("the filter is damaged: unknown bytes ({}) follow it", rest.len())
}

/// Hashes that were written one after the other, each as 8 bytes.
pub(crate) fn hashes_of<H>(bytes: &[u8], hash: impl Fn([u8; 8]) -> H) -> Result<Vec<H>> {
    match bytes.as_chunks() {
        (hashes, []) => Ok(hashes.iter().map(|bytes| hash(*bytes)).collect()),
        _ => exec_err!(
            "the filter is damaged: its hashes take {} bytes, not a multiple of 8",
            bytes.len()
        ),
    }
}

/// The header of a value, with room for a body of this many bytes.
pub(crate) fn header(class: Class, form: u8, body: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + body);
    out.extend(b"LBSQ");
    out.extend([1, form, class.kind, class.detail as u8]);
    out
}

/// The value of a filter, which `write` writes and which takes this many bytes of memory.
pub(crate) fn written(
    class: Class,
    memory: usize,
    write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
) -> Result<Vec<u8>> {
    let mut out = header(class, 1, memory);
    write(&mut out).map_err(external)?;
    check_len(&out)?;
    Ok(out)
}

fn check_len(value: &[u8]) -> Result<()> {
    if value.len() > MAX_BYTES {
        return exec_err!(
            "a filter of {} bytes is above the limit of {MAX_BYTES}: ask for a higher rate",
            value.len()
        );
    }
    Ok(())
}
