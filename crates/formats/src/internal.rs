//! Items that `lanebloom-redis` and the Python package need and a user does not. **Outside
//! semver**: they depend on the exact version of this crate.

use crate::guava::layout::{self, HashFunctions};
/// For bitmaps of fewer bits than [`guava_size`] says: the number of hash functions by the same
/// formula.
pub use crate::java::formulas::functions_by_bits as guava_functions;
/// For a model of Redis' filters.
pub use crate::murmur2::{murmur2, murmur64a};
/// Where a Parquet file's footer says that a column's filters lie, and what the column holds.
pub use crate::splitblock::footer::{Chunk as ParquetChunk, ColumnType, chunks as parquet_chunks};
use lanebloom::BuildError;

/// For bitmaps of Guava's size: the number of bits, and of hash functions by Guava's formula up to
/// 2024.
///
/// Fails as [`GuavaBloom::with_capacity`](crate::GuavaBloom::with_capacity) does.
pub fn guava_size(keys: u64, rate: f64) -> Result<(u64, u8), BuildError> {
    layout::size(keys, rate, HashFunctions::ByBits)
}
