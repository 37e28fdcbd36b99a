//! What `lanebloom-redis` needs and a user does not. **Outside semver**: it depends on the exact
//! version of this crate.

pub use crate::guava::layout::{Places, functions_by_bits, size};

use crate::RedisBloomLoadError;
use crate::redisbloom::Dumped;

/// Whether `filter`, as it was loaded, is still whole if Redis dumps it with this header now.
///
/// # Errors
///
/// If the header is none.
pub fn is_whole(filter: &impl Dumped, header: &[u8]) -> Result<bool, RedisBloomLoadError> {
    filter.is_whole(header)
}
