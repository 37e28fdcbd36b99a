//! The bytes of keys: what `key.rs` and `columns.rs` write alike.

/// The key `None`, and a null of an Arrow array.
pub(crate) const NONE: &[u8] = &[0];

/// The bytes that a filter takes of numbers and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Numbers that are equal are one key: `1`, `1.0` and `True`.
    Python,
    /// Parquet's and Guava's: each type has its own bytes. Integers have 8 bytes, or 4.
    Plain,
    /// Spark's: integers, strings and bytes only.
    Spark,
}

/// A key, as it was written.
#[derive(PartialEq, Eq)]
pub(crate) enum Written {
    /// Not written: 8 bytes, unless the filter makes fewer of them.
    Word(u64),
    /// Null: the bytes of [`NONE`].
    Null,
    /// As many bytes as all keys of this type have.
    Fixed,
    /// Any number of bytes.
    Varying,
}

impl Written {
    /// Ends a tuple's part, whose bytes begin at `start`: writes what is missing. A part of any
    /// length has its length before it, as 8 bytes, unless it is the last one: so tuples of the
    /// same types never share bytes.
    pub(crate) fn end_part(self, start: usize, is_last: bool, out: &mut Vec<u8>) {
        match self {
            Self::Word(word) => out.extend_from_slice(&word.to_le_bytes()),
            Self::Varying if !is_last => {
                let length = (out.len() - start) as u64;
                out.splice(start..start, length.to_le_bytes());
            }
            _ => {}
        }
    }
}

/// A float's key, if it has 8 bytes. An integral one is the integer's key, since the two are equal.
#[inline]
pub(crate) fn float(value: f64) -> Option<u64> {
    /// 2^63, the first one above all `i64`.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if value.trunc() == value && (-BOUND..BOUND).contains(&value) {
        return Some((value as i64).cast_unsigned());
    }
    if (BOUND..2.0 * BOUND).contains(&value) {
        return Some(value as u64);
    }
    // All finite ones of this size are integral.
    let is_large = value.is_finite() && value.abs() >= BOUND;
    (!is_large && !value.is_nan()).then(|| value.to_bits())
}

/// Writes the key of any float.
///
/// NaN is null: pandas and Arrow make one of the other, each in its own way, and a value must not
/// become another key by the library that it passed through.
pub(crate) fn write_float(value: f64, out: &mut Vec<u8>) -> Written {
    if let Some(word) = float(value) {
        return Written::Word(word);
    }
    if value.is_nan() {
        out.extend_from_slice(NONE);
        return Written::Null;
    }
    // An integer of more than 64 bits, as `key.rs` writes it: 53 bits, shifted.
    let bits = value.abs().to_bits();
    let (mantissa, shift) = (bits & ((1 << 52) - 1) | 1 << 52, (bits >> 52) as usize - 1075);
    let start = out.len();
    out.resize(start + large_len(53 + shift), 0);
    let low = (mantissa << (shift % 8)).to_le_bytes();
    for (out, byte) in out[start + shift / 8..].iter_mut().zip(low) {
        *out = byte;
    }
    if value < 0.0 {
        let mut carry = true;
        for byte in &mut out[start..] {
            (*byte, carry) = (!*byte).overflowing_add(carry.into());
        }
    }
    Written::Varying
}

/// The bytes of an integer of more than 64 bits: 16, as an `i128` of Rust, or as many as it takes.
pub(crate) fn large_len(bits: usize) -> usize {
    (bits / 8 + 1).max(16)
}

/// Seconds since 1970, rounded down, and nanoseconds: a `SystemTime` of Rust.
pub(crate) fn time_bytes(seconds: i64, nanoseconds: u32) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[..8].copy_from_slice(&seconds.to_le_bytes());
    bytes[8..].copy_from_slice(&nanoseconds.to_le_bytes());
    bytes
}
