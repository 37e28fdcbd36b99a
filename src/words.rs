//! The words that threads share, and the memory that they lie in. The filters and the kernels call
//! it. These files, and those of the filters with slots, argue for every memory ordering of the
//! crate.

pub(crate) mod arrays;
pub(crate) mod bits;
pub(crate) mod cells;
pub(crate) mod counters;
pub(crate) mod memory;
pub(crate) mod once;
pub(crate) mod scratch;
pub(crate) mod sync;
