//! The promises of the caches. One program, since each would link moka and tokio again.

#[path = "../common/mod.rs"]
mod common;

mod anyhow;
mod equivalent;
mod follow;
mod gather;
mod gets;
mod hostile;
mod limits;
mod misses;
mod model;
mod moka;
mod nested;
mod options;
mod promises;
mod replicas;
mod stale;
mod state;
