//! A table of cases.

/// Calls a function once for each row, which has its arguments.
macro_rules! cases {
    ($call:ident: $($($argument:expr),+;)*) => {$(
        $call($($argument),+);
    )*};
}
