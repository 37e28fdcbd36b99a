//! Few bytes as numbers, for the hash functions: a whole key of up to 16 bytes ([`Short`]), or the
//! bytes with which a longer key ends. Loads that overlap take the place of a loop, or of a
//! `memcpy` of unknown length. And a mixer of one word.

use crate::funnel::{Funnel, Sink};

/// A key of up to 16 bytes.
#[derive(Clone, Copy)]
pub struct Short {
    /// Little-endian, zero above.
    pub bytes: u128,
    /// For more than 16 bytes only the length is right.
    pub len: usize,
}

impl Short {
    /// Takes the bytes that `key` funnels. If their number is known at compile time, they come in
    /// registers.
    #[inline(always)]
    pub fn of<K: Funnel + ?Sized>(key: &K) -> Self {
        let mut short = Self { bytes: 0, len: 0 };
        key.funnel(&mut short);
        short
    }

    /// The first and the second eight bytes.
    #[inline(always)]
    pub(crate) fn halves(self) -> (u64, u64) {
        (self.bytes as u64, (self.bytes >> 64) as u64)
    }
}

impl Sink for Short {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        if let Ok(all) = bytes.try_into() {
            self.bytes = u128::from_le_bytes(all);
        } else if bytes.len() < 16 && self.len < 16 {
            self.bytes |= load_le(bytes) << (8 * self.len);
        }
        self.len += bytes.len();
    }
}

/// The output function of SplitMix64: a bijection whose result has no pattern.
#[inline(always)]
pub(crate) const fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}

/// Up to 15 bytes, by two loads. The loads agree where they overlap, so the result is their OR.
#[inline(always)]
pub(crate) fn load_le(bytes: &[u8]) -> u128 {
    debug_assert!(bytes.len() < 16);
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            let high = below(u64::from_le_bytes(*last), bytes.len() % 8);
            u128::from(u64::from_le_bytes(*first)) | u128::from(high) << 64
        }
        _ => load_below_8(bytes).into(),
    }
}

/// Up to 7 bytes, as a little-endian number.
#[inline(always)]
pub(crate) fn load_below_8(bytes: &[u8]) -> u64 {
    let n = bytes.len();
    debug_assert!(n < 8);
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (n - 4))
    } else if let (Some(first), Some(last)) = (bytes.first(), bytes.last()) {
        let middle = u32::from(bytes[n / 2]) << (8 * (n / 2));
        u64::from(u32::from(*first) | middle | u32::from(*last) << (8 * (n - 1)))
    } else {
        0
    }
}

/// The `n` bytes with which a key of at least 8 bytes ends, fewer than 8. `last` has its last 8
/// bytes.
#[inline(always)]
pub(crate) fn below(last: u64, n: usize) -> u64 {
    // Two shifts, since one by 64 bits would be an error.
    last >> (63 - 8 * n) >> 1
}

/// The `n` bytes with which a key of at least 16 bytes ends, fewer than 16, in two halves. `last`
/// has its last 16 bytes. The only branch is for no bytes: where lengths vary, a branch on the
/// length would be mispredicted often.
#[inline(always)]
pub(crate) fn below_16(last: &[u8; 16], n: usize) -> (u64, u64) {
    if n == 0 {
        return (0, 0);
    }
    let whole = u64::from_le_bytes(last[16 - (n | 8)..][..8].try_into().expect("8 bytes"));
    let part = below(u64::from_le_bytes(*last.last_chunk().expect("8 of 16 bytes")), n % 8);
    if n < 8 { (part, 0) } else { (whole, part) }
}
