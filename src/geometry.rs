//! The size of a filter and the position of a hash in it: from keys and rate to a layout, and from
//! a hash to the bits of its pattern. It only computes; `words` has the memory.

pub(crate) mod fuse;
pub(crate) mod layout;
pub(crate) mod pattern;
pub(crate) mod rates;
pub(crate) mod sizing;
