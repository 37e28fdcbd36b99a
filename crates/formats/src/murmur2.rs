//! MurmurHash64A and MurmurHash2 in plain Rust: bytes and a seed in, a number out. Called by
//! `redisbloom.rs` and `rediscuckoo.rs`.
//!
//! Both begin with the length of all the bytes, so they cannot take a key in pieces as Murmur3
//! does.
//!
//! Source: Austin Appleby's `MurmurHash64A` and `MurmurHash2`, SMHasher, public domain. Results on
//! every machine are those of a little-endian one.

use lanebloom::internal::{Short, as_chunks};

/// The multiplier and the shift of MurmurHash64A.
const M: u64 = 0xc6a4_a793_5bd1_e995;
const R: u32 = 47;

/// MurmurHash64A.
#[inline]
pub fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    let (chunks, rest) = as_chunks(bytes);
    for chunk in chunks {
        let mut k = u64::from_le_bytes(*chunk).wrapping_mul(M);
        k ^= k >> R;
        hash = (hash ^ k.wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        hash = (hash ^ Short::of(rest).bytes as u64).wrapping_mul(M);
    }
    hash = (hash ^ hash >> R).wrapping_mul(M);
    hash ^ hash >> R
}

/// MurmurHash2, of 32 bits.
#[inline]
pub fn murmur2(bytes: &[u8], seed: u32) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = seed ^ bytes.len() as u32;
    let (chunks, rest) = as_chunks(bytes);
    for chunk in chunks {
        let mut k = u32::from_le_bytes(*chunk).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    if !rest.is_empty() {
        hash = (hash ^ Short::of(rest).bytes as u32).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 13).wrapping_mul(M);
    hash ^ hash >> 15
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Two keys that collide under every seed: the reason not to let strangers choose keys.
    #[test]
    fn murmur64a_collides_under_every_seed() {
        let a = b"0123456789abcdef";
        let b = [
            0x30, 0x31, 0x75, 0x19, 0x99, 0x4f, 0x8e, 0xa8, 0x38, 0x39, 0x1e, 0x7c, 0xfe, 0x49, 0x0d, 0xf5,
        ];
        for seed in (0..100u64).map(|i| i.wrapping_mul(M)) {
            assert_eq!(murmur64a(a, seed), murmur64a(&b, seed));
        }
        assert_ne!(murmur64a(a, 0), murmur64a(&a[..15], 0));
    }

    /// SMHasher's verification value. It hashes the first 0 to 255 bytes 0, 1, 2..., each under the
    /// seed 256 less the length, then hashes these hashes, and takes the first four bytes.
    #[test]
    fn both_have_smhashers_verification_values() {
        fn verify<const N: usize>(hash: impl Fn(&[u8], u32) -> [u8; N]) -> u32 {
            let key: Vec<u8> = (0..=255).collect();
            let hashes: Vec<u8> = (0..256usize).flat_map(|i| hash(&key[..i], 256 - i as u32)).collect();
            u32::from_le_bytes(*hash(&hashes, 0).first_chunk().unwrap())
        }
        let murmur64a = |bytes: &[u8], seed: u32| murmur64a(bytes, seed.into()).to_le_bytes();
        assert_eq!(verify(murmur64a), 0x1f0d_3804);
        assert_eq!(verify(|bytes, seed| murmur2(bytes, seed).to_le_bytes()), 0x2786_4c1e);
    }
}
