//! What a service sees of the guard: the layer, and the statistics, of which the layer adds one.

#[path = "../common/mod.rs"]
mod common;

mod layer;
mod metrics;
