//! Methods that several filter types have, a file for each family. A macro writes a family that
//! some types lack, and the file of each type that has it calls the macro.

/// The example of a method: lines of code, as documentation. `example!("name" = "lanebloom::" Type
/// "call"; ...)` begins with the filter `name` that a call of the type makes, and
/// `example!("lanebloom::" Type; ...)` with an empty one.
#[doc(hidden)]
#[macro_export]
macro_rules! example {
    ($krate:literal $filter:ident; $($line:expr),+) => {
        $crate::example!("filter" = $krate $filter "with_capacity(1000, 0.01)"; $($line),+)
    };
    ($name:literal = $krate:literal $filter:ident $call:expr; $($line:expr),+) => {
        $crate::example!(concat!("let ", $name, " = ", $krate, stringify!($filter), "::", $call, "?;"), $($line),+)
    };
    ($($line:expr),+) => {
        concat!("\n```\n", $($line, "\n",)+ "# Ok::<(), Box<dyn std::error::Error>>(())\n```")
    };
}

pub(crate) mod builders;
pub(crate) mod inserts;
mod key_counts;
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
