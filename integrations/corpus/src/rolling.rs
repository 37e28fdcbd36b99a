//! The arithmetic of hashes of sequences.

/// The factor of the rolling hash: odd, and 5 modulo 8, so that its powers differ early.
pub(crate) const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The last step of Murmur3: every bit of the sum reaches every bit of the hash.
pub(crate) fn mix(mut sum: u64) -> u64 {
    sum ^= sum >> 33;
    sum = sum.wrapping_mul(0xff51_afd7_ed55_8ccd);
    sum ^= sum >> 33;
    sum = sum.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    sum ^ sum >> 33
}

/// A step of a polynomial modulo 2^64.
pub(crate) fn step(sum: u64, word: &u64) -> u64 {
    sum.wrapping_mul(FACTOR).wrapping_add(*word)
}
