//! Filters that are kept in Redis: read and written in place, copied out to answer in process, and put back.

mod bitmap;
mod layout;
mod link;
mod local;

pub use crate::error::BitmapError;
pub use bitmap::RedisBitmap;
pub(crate) use layout::MAX_BITS;
pub use local::{LocalBitmap, Refreshed};
