//! The common parts of the headers of Guava's and Spark's streams. `guava/layout.rs` and
//! `spark/layout.rs` read and make them.

use super::formulas::MAX_WORDS;
use crate::error::ReadError;
use alloc::format;

/// The most bytes of a header: those of Spark's V2.
pub(crate) const MAX_HEADER: usize = 16;

/// A header, and its length.
pub(crate) type Header = ([u8; MAX_HEADER], usize);

/// Fills a slice with the next bytes of a stream.
pub(crate) type TakeBytes<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<(), ReadError>;

/// The first bytes of Java's `ObjectOutputStream` (Java Object Serialization Specification,
/// `STREAM_MAGIC` and `STREAM_VERSION`).
pub(crate) const JAVA_OBJECT: [u8; 4] = [0xac, 0xed, 0, 5];

/// The number of longs that a stream declares, as Java's `int`.
pub(crate) fn words(length: i32) -> Result<usize, ReadError> {
    if length <= 0 {
        let problem = format!("a length of {length} longs is not in 1 to {MAX_WORDS}");
        return Err(ReadError::invalid(problem));
    }
    Ok(length as usize)
}

/// A Java object instead of a stream.
pub(crate) fn java_object() -> ReadError {
    ReadError::invalid(
        "a serialized Java object (0xACED): write the filter by BloomFilter.writeTo, not by ObjectOutputStream",
    )
}
