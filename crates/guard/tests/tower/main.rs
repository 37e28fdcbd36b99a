//! The guard as a service sees it: the layer, and the statistics, of which the layer adds one.

#[path = "../common/mod.rs"]
mod common;

mod layer;
mod metrics;
