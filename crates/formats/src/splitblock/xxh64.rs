//! XXH64 with seed 0 of keys' bytes. Keys of 4 and 8 bytes stay in registers; the crate twox-hash
//! hashes the others.
//!
//! Source: Yann Collet's specification of xxHash, "XXH64 algorithm description".

use core::hash::Hasher;
use lanebloom::internal::{Isa, Short, Vectorized};
use lanebloom::{Funnel, Sink};
use twox_hash::XxHash64;

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

/// The hash of the bytes that a key funnels.
#[inline(always)]
pub(super) fn of_key<K: Funnel + ?Sized>(key: &K) -> u64 {
    match K::WIDTH {
        Some(8) => of_eight(Short::of(key).bytes as u64),
        Some(4) => of_four(Short::of(key).bytes as u64),
        Some(..=16) => {
            let Short { bytes, len } = Short::of(key);
            of_bytes(&bytes.to_le_bytes()[..len.min(16)])
        }
        _ => match key.bytes() {
            Some(bytes) => of_bytes(bytes),
            None => of_pieces(key),
        },
    }
}

#[inline]
pub(super) fn of_bytes(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

fn of_pieces<K: Funnel + ?Sized>(key: &K) -> u64 {
    struct Pieces(XxHash64);
    impl Sink for Pieces {
        fn put(&mut self, bytes: &[u8]) {
            self.0.write(bytes);
        }
    }
    let mut pieces = Pieces(XxHash64::with_seed(0));
    key.funnel(&mut pieces);
    pieces.0.finish()
}

/// The hash of eight bytes, given as a little-endian number.
#[inline(always)]
fn of_eight(bytes: u64) -> u64 {
    let mixed = bytes.wrapping_mul(PRIMES[1]).rotate_left(31).wrapping_mul(PRIMES[0]);
    let hash = PRIMES[4].wrapping_add(8) ^ mixed;
    finish(hash.rotate_left(27).wrapping_mul(PRIMES[0]).wrapping_add(PRIMES[3]))
}

/// The hash of four bytes, given as a little-endian number.
#[inline(always)]
fn of_four(bytes: u64) -> u64 {
    let hash = PRIMES[4].wrapping_add(4) ^ bytes.wrapping_mul(PRIMES[0]);
    finish(hash.rotate_left(23).wrapping_mul(PRIMES[1]).wrapping_add(PRIMES[2]))
}

/// The hash of each key, in its place.
#[inline]
pub(super) fn of_batch<K: Funnel>(isa: Isa, keys: &[K], out: &mut [u64]) {
    match K::WIDTH {
        Some(4 | 8) => isa.vectorized(Numbers { keys, out }),
        _ => out.iter_mut().zip(keys).for_each(|(out, key)| *out = of_key(key)),
    }
}

/// Keys of 4 or 8 bytes, for vectors.
struct Numbers<'a, K> {
    keys: &'a [K],
    out: &'a mut [u64],
}

impl<K: Funnel> Vectorized for Numbers<'_, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, key) in self.out.iter_mut().zip(self.keys) {
            *out = Short::of(key).bytes as u64;
        }
        match K::WIDTH {
            Some(8) => self.out.iter_mut().for_each(|key| *key = of_eight(*key)),
            _ => self.out.iter_mut().for_each(|key| *key = of_four(*key)),
        }
    }
}

#[inline(always)]
fn finish(mut hash: u64) -> u64 {
    hash = (hash ^ hash >> 33).wrapping_mul(PRIMES[1]);
    hash = (hash ^ hash >> 29).wrapping_mul(PRIMES[2]);
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    fn oneshot(bytes: &[u8]) -> u64 {
        XxHash64::oneshot(0, bytes)
    }

    #[test]
    fn keys_hash_as_their_bytes() {
        for i in 0..1000_u64 {
            let n = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            assert_eq!(of_key(&n), oneshot(&n.to_le_bytes()));
            assert_eq!(of_key(&(n as i64)), oneshot(&n.to_le_bytes()));
            assert_eq!(of_key(&(n as u32)), oneshot(&(n as u32).to_le_bytes()));
            assert_eq!(of_key(&(n as u32 as i32)), oneshot(&(n as u32).to_le_bytes()));
            assert_eq!(of_key(&(n as u8)), oneshot(&[n as u8]));
            let twelve = (n, i as u32);
            let bytes: Vec<u8> = n.to_le_bytes().into_iter().chain((i as u32).to_le_bytes()).collect();
            assert_eq!(of_key(&twelve), oneshot(&bytes));
            let text: String = (0..i % 80).map(|j| char::from(b'a' + (j % 26) as u8)).collect();
            assert_eq!(of_key(&text), oneshot(text.as_bytes()));
            assert_eq!(of_key(&(&text, 7_u8)), oneshot(&[text.as_bytes(), &[7]].concat()));
        }
    }
}
