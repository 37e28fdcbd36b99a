//! The bytes of keys: what `key.rs` and `columns.rs` write alike.

/// The key `None`, and a null of an Arrow array.
pub(crate) const NONE: &[u8] = &[0];

/// The bytes that a filter takes of numbers and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Numbers that are equal are one key: `1`, `1.0` and `True`.
    Python,
    /// Parquet's and Java's: each type has its own bytes. Integers have 8 bytes, or 4.
    Plain,
}

/// A float's key. An integral one is the integer's key, since the two are equal.
#[inline]
pub(crate) fn float(value: f64) -> u64 {
    /// 2^63, the first one above all `i64`.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if value.trunc() == value && (-BOUND..BOUND).contains(&value) {
        return (value as i64).cast_unsigned();
    }
    if (BOUND..2.0 * BOUND).contains(&value) {
        return value as u64;
    }
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

/// Writes before the bytes from `start` on how many they are.
pub(crate) fn insert_length(out: &mut Vec<u8>, start: usize) {
    let length = (out.len() - start) as u64;
    out.splice(start..start, length.to_le_bytes());
}

/// Seconds since 1970, rounded down, and nanoseconds: a `SystemTime` of Rust.
pub(crate) fn time_bytes(seconds: i64, nanoseconds: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&seconds.to_le_bytes());
    bytes[8..].copy_from_slice(&nanoseconds.to_le_bytes());
    bytes
}
