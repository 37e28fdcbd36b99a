//! Methods that several filter types have, a file for each family. A macro writes a family that
//! some types lack, and the file of each type that has it calls the macro.

pub(crate) mod builders;
mod copies;
pub(crate) mod inserts;
mod layouts;
mod lookups;
pub(crate) mod removes;
#[cfg(feature = "serde")]
mod serde;
pub(crate) mod sets;
pub(crate) mod snapshots;
mod statistics;
pub(crate) mod unions;

pub(crate) use builders::built;
pub(crate) use inserts::inserts;
pub(crate) use removes::removes;
pub(crate) use sets::sets;
pub(crate) use snapshots::stored;
pub(crate) use unions::unions;
