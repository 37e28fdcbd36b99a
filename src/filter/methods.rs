//! Methods that several filter types have, a file for each family.

pub(crate) mod builders;
mod constructors;
pub(crate) mod folds;
mod inserts;
mod layouts;
mod lookups;
mod removes;
#[cfg(feature = "serde")]
mod serde;
mod sets;
pub(crate) mod snapshots;
mod statistics;
pub mod traits;
mod unions;
