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
    /// The number of bytes that all keys of this type have.
    Fixed,
    /// Any number of bytes.
    Varying,
}

/// Ends the bytes of a row that has a null. They are not UTF-8, nor the nanoseconds of a time, and
/// as a double they are NaN, which is never written.
const NULLS: [u8; 8] = *b"\xffnulls\xff\xff";

/// Writes a row of this many parts; `write` appends part `i`. A row of one part is that part.
///
/// The parts follow one another. A part of any length has its length before it, as 8 bytes, unless
/// it is the last one. A null has no bytes. A row that has one ends with a bit for each part, 1 for
/// a null, and with [`NULLS`]. So do all other rows whose parts end with `NULLS`: their bits are 0.
///
/// Two different rows of the same columns never have the same bytes, if a column's values have one
/// form: all have one length, or each any length. For the row can be read again. Bytes that do not
/// end with `NULLS` have all parts. From other bytes the end is cut off, and its bits say which
/// parts are there. The parts are then read from the front: one of fixed length has that length,
/// another one has its length before it, and the last one has the rest.
///
/// Two forms stand in one column where numbers of more than 8 bytes stand beside others, and IPv6
/// addresses beside IPv4. Such rows meet by a coincidence, as a double meets an integer: one column
/// would have to hold the other one's length, or its first bytes, as a value.
pub(crate) fn write_row<E>(
    parts: usize,
    out: &mut Vec<u8>,
    mut write: impl FnMut(usize, &mut Vec<u8>) -> Result<Written, E>,
) -> Result<Written, E> {
    let begin = out.len();
    let mut nulls = Vec::new();
    for i in 0..parts {
        let start = out.len();
        match write(i, out)? {
            Written::Word(word) => out.extend_from_slice(&word.to_le_bytes()),
            Written::Null if parts > 1 => {
                out.truncate(start);
                nulls.resize(parts.div_ceil(8), 0);
                nulls[i / 8] |= 1 << (i % 8);
            }
            Written::Varying if i + 1 < parts => {
                let length = (out.len() - start) as u64;
                out.splice(start..start, length.to_le_bytes());
            }
            _ => {}
        }
    }
    if !nulls.is_empty() || parts > 1 && out[begin..].ends_with(&NULLS) {
        nulls.resize(parts.div_ceil(8), 0);
        out.extend_from_slice(&nulls);
        out.extend_from_slice(&NULLS);
    }
    Ok(Written::Varying)
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
        negate(&mut out[start..]);
    }
    Written::Varying
}

/// Negates a little-endian integer in two's complement.
pub(crate) fn negate(bytes: &mut [u8]) {
    let mut carry = true;
    for byte in bytes {
        (*byte, carry) = (!*byte).overflowing_add(carry.into());
    }
}

/// The most digits that a decimal may have, and the zeros before its point among them: otherwise
/// `Decimal("1E+999999999")` is an integer of 415 MB. It is the limit of Python's `int(text)`.
pub(crate) const MOST_DIGITS: i64 = 4300;

/// Why filters of other systems refuse decimals. (Parquet's class adds what a file stores.)
pub(crate) const DECIMALS: &str = "decimals: another system's program hashes them in a form of its own. Pass that form: \
                                   its integer of the digits, int(value.scaleb(2)) for a scale of 2, or its bytes";

/// Why filters of other systems refuse halves.
pub(crate) const HALVES: &str = "float16: another system's program hashes them in a form of its own. Pass that form: \
                                 their two bytes are values.view('V2')";

/// Why filters of other systems refuse truth values.
pub(crate) const BOOLS: &str = "bool: another system's program hashes it as one byte, or not at all. Pass that form: \
                                bytes([value]), and values.view('V1') for an array of numpy; or int(value), if it was \
                                stored as a number";

/// The integer of these decimal digits, as words, least first.
pub(crate) fn words_of(digits: &[u8]) -> Vec<u64> {
    let mut words = Vec::new();
    for &digit in digits {
        append(&mut words, digit);
    }
    words
}

/// Appends a decimal digit.
fn append(words: &mut Vec<u64>, digit: u8) {
    let mut carry = u64::from(digit);
    for word in &mut *words {
        let product = u128::from(*word) * 10 + u128::from(carry);
        (*word, carry) = (product as u64, (product >> 64) as u64);
    }
    if carry > 0 {
        words.push(carry);
    }
}

/// Writes the key of a decimal: `words`, least first, over ten to the power of `scale`.
///
/// Equal numbers are one key, as in a set of Python: a decimal that is an integer or a double has
/// the bytes of it. Another one has its digits without zeros at the end, as an integer of 16 bytes
/// or more, and then their number after the point in 8 bytes.
pub(crate) fn write_decimal(is_negative: bool, mut words: Vec<u64>, mut scale: i64, out: &mut Vec<u8>) -> Written {
    trim(&mut words);
    if words.is_empty() {
        return Written::Word(0);
    }
    while scale > 0 && divide(&mut words, 10) {
        scale -= 1;
    }
    while scale < 0 {
        append(&mut words, 0);
        scale += 1;
    }
    if scale == 0
        && let [word] = words[..]
        && (!is_negative || word <= 1 << 63)
    {
        return Written::Word(if is_negative { word.wrapping_neg() } else { word });
    }
    if let Some(value) = double(&words, scale) {
        return Written::Word(if is_negative { -value } else { value }.to_bits());
    }
    let start = out.len();
    let bits = 64 * words.len() - words.last().map_or(0, |word| word.leading_zeros() as usize);
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    out.resize(start + large_len(bits), 0);
    if is_negative {
        negate(&mut out[start..]);
    }
    if scale > 0 {
        out.extend_from_slice(&scale.to_le_bytes());
    }
    Written::Varying
}

/// The double that is `words` over ten to the power of `scale`, if there is one. They are no
/// multiple of ten. (Then they are odd if they are a multiple of five.)
fn double(words: &[u64], scale: i64) -> Option<f64> {
    /// The smallest double is 2^-1074.
    const LEAST: i64 = 1074;
    if !(1..=LEAST).contains(&scale) {
        return None;
    }
    let mut odd = words.to_vec();
    let is_dyadic = (0..scale).all(|_| divide(&mut odd, 5));
    match odd[..] {
        // In two steps: 2^1074 is beyond a double. Both are exact.
        [odd] if is_dyadic && odd < 1 << f64::MANTISSA_DIGITS => {
            Some(odd as f64 / 2f64.powi(scale as i32 / 2) / 2f64.powi((scale + 1) as i32 / 2))
        }
        _ => None,
    }
}

/// Divides if no remainder is left; returns whether.
fn divide(words: &mut Vec<u64>, by: u64) -> bool {
    let step = |rest: u64, word: u64| {
        let value = u128::from(rest) << 64 | u128::from(word);
        // One word is most of them.
        if rest == 0 {
            (word / by, word % by)
        } else {
            ((value / u128::from(by)) as u64, (value % u128::from(by)) as u64)
        }
    };
    if words.iter().rev().fold(0, |rest, &word| step(rest, word).1) != 0 {
        return false;
    }
    let mut rest = 0;
    for word in words.iter_mut().rev() {
        (*word, rest) = step(rest, *word);
    }
    trim(words);
    true
}

/// Drops the zeros at the end.
fn trim(words: &mut Vec<u64>) {
    while words.last() == Some(&0) {
        words.pop();
    }
}

/// The double of a half.
pub(crate) fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (u64::from(bits >> 10 & 31), u64::from(bits & 1023));
    let value = match exponent {
        0 => fraction as f64 / f64::from(1 << 24),
        31 => f64::from_bits((0x7ff << 52) | fraction << 42),
        _ => f64::from_bits((exponent + 1023 - 15) << 52 | fraction << 42),
    };
    if bits >> 15 == 1 { -value } else { value }
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
