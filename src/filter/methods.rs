//! Methods that several filter types have, a file for each family.

pub(crate) mod builders;
pub(crate) mod inserts;
mod lookups;
#[cfg(feature = "serde")]
mod serde;
pub(crate) mod sets;
mod slots;
pub(crate) mod snapshots;
mod statistics;
