//! The words that threads share, and the memory that they lie in. The filters and the kernels call
//! it. Every memory ordering of the crate is argued in these files and in those of the slotted
//! filters.

pub(crate) mod bits;
pub(crate) mod chunks;
pub(crate) mod counters;
pub(crate) mod memory;
pub(crate) mod once;
pub(crate) mod scratch;
pub(crate) mod sync;
