//! What the filters of Guava and Spark share: both are flat bits in longs of Java, by double
//! hashing, and Spark's code began as a copy of Guava's. `guava.rs` and `spark.rs` call it.

pub(crate) mod batch;
pub(crate) mod chunks;
pub(crate) mod error;
pub(crate) mod figures;
pub(crate) mod formulas;
pub(crate) mod indexes;
pub(crate) mod sets;
pub(crate) mod stream;
