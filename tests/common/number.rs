//! Numbers without a pattern, for tests, benches and examples. Packages without `lanebloom-tests`
//! name this file by its path.

#![allow(unreachable_pub, reason = "a library exports it, a program does not")]

/// The i-th of a sequence of distinct, random-looking numbers (SplitMix64's output function).
#[inline]
pub fn number(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
