//! The parts of the filter types.

pub(crate) mod lines;
pub(crate) mod load_estimate;
pub(crate) mod several;
pub(crate) mod slots;
pub(crate) mod stripes;
