//! The keys of single calls, of types that every contestant hashes.

use lanebloom::Funnel;
use std::hash::Hash;

/// The kind of key that a filter takes, as in `boost.cpp`.
#[cfg(has_boost)]
#[repr(C)]
pub(crate) enum Kind {
    /// Hashes of keys.
    Hash,
    /// `u64`, which Boost hashes, like the others.
    Number,
    /// `[u8; 16]`.
    Bytes,
    /// `Text`.
    Text,
}

/// A type of keys that every contestant hashes.
pub(crate) trait Key: Copy + Send + Sync + 'static {
    const NAME: &str;
    #[cfg(has_boost)]
    const KIND: Kind;
    /// The type that a user passes to a filter.
    type Passed: Funnel + Hash + ?Sized;
    /// The key of a number: other numbers have other keys.
    fn of(number: u64) -> Self;
    fn passed(&self) -> &Self::Passed;
}

impl Key for u64 {
    const NAME: &str = "u64 keys";
    #[cfg(has_boost)]
    const KIND: Kind = Kind::Number;
    type Passed = u64;
    fn of(number: u64) -> Self {
        number
    }
    fn passed(&self) -> &u64 {
        self
    }
}

impl Key for [u8; 16] {
    const NAME: &str = "keys of 16 bytes";
    #[cfg(has_boost)]
    const KIND: Kind = Kind::Bytes;
    type Passed = Self;
    fn of(number: u64) -> Self {
        (u128::from(number) << 64 | u128::from(!number)).to_le_bytes()
    }
    fn passed(&self) -> &Self {
        self
    }
}

/// A string of 24 bytes, whose length the compiler does not know. It is beside its neighbours in
/// memory, so that no contestant waits for the text. (`Text` of `boost.cpp`.)
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Text {
    len: usize,
    bytes: [u8; 24],
}

impl Key for Text {
    const NAME: &str = "strings of 24 bytes";
    #[cfg(has_boost)]
    const KIND: Kind = Kind::Text;
    type Passed = str;
    fn of(number: u64) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut bytes = *b"customer________________";
        for (i, digit) in bytes[8..].iter_mut().enumerate() {
            *digit = DIGITS[(number >> (4 * i) & 15) as usize];
        }
        Self {
            len: bytes.len(),
            bytes,
        }
    }
    #[inline]
    fn passed(&self) -> &str {
        // SAFETY: `of` makes the length and the letters, which are ASCII.
        unsafe { str::from_utf8_unchecked(self.bytes.get_unchecked(..self.len)) }
    }
}
