//! Filters that are kept in Redis: read and written in place, copied out to answer in process, and put back.

pub mod shared;

pub use crate::error::SharedError;
pub use shared::SharedBloom;
