//! How large a filter is, and where a hash lies in it: from keys and rate to a layout, and from a
//! hash to the bits of its pattern. Knows no memory.

pub(crate) mod layout;
pub(crate) mod pattern;
pub(crate) mod sizing;
