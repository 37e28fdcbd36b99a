//! The parts of the filter types.

pub(crate) mod layers;
pub(crate) mod lines;
pub(crate) mod load_estimate;
pub(crate) mod slots;
pub(crate) mod stripes;
