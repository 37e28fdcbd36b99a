//! XXH3-64 with a seed, in plain Rust up to 128 bytes; `twox-hash` hashes longer keys. It is the
//! specification of the kernels of `kernel/`. `hash.rs` calls it.
//!
//! Keys of up to 8 bytes take two multiplications of 64 bits, which vectors can do. Keys of 9 to 16
//! bytes take one whose product has 128 bits, and keys up to 32 bytes take two. The code stands
//! here so that it is inlined, and a key of known length costs its arithmetic alone: through
//! `twox_hash` a `u64` took twice as long, and a string of 24 bytes 1 ns more.
//!
//! Source: Yann Collet's specification, xxHash `doc/xxhash_spec.md`.

use crate::funnel::Sink;
use crate::hash::bytes::Short;
use core::hash::Hasher;
use twox_hash::XxHash3_64;
use twox_hash::xxhash3_64::{DEFAULT_SECRET_LENGTH, RawHasher, SecretBuffer};

// Primes of the specification.
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME64_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME_MX1: u64 = 0x1656_6791_9e37_79f9;
const PRIME_MX2: u64 = 0x9fb2_1c65_1e98_df25;

/// The first 128 bytes of the default secret, as little-endian words.
const SECRET: [u64; 16] = [
    0xbe4b_a423_396c_feb8,
    0x1cad_21f7_2c81_017c,
    0xdb97_9083_e96d_d4de,
    0x1f67_b3b7_a4a4_4072,
    0x78e5_c0cc_4ee6_79cb,
    0x2172_ffcc_7dd0_5a82,
    0x8e24_43f7_7446_08b8,
    0x4c26_3a81_e690_35e0,
    0xcb00_c391_bb52_283c,
    0xa32e_531b_8b65_d088,
    0x4ef9_0da2_9748_6471,
    0xd8ac_dea9_46ef_1938,
    0x3f34_9ce3_3f76_faa8,
    0x1d4f_0bc7_c7bb_dcf9,
    0x3159_b4cd_4be0_518a,
    0x6473_78d9_c97e_9fc8,
];

/// The longest key that is hashed here, in bytes.
const MOST: usize = 128;

/// The hash of up to 16 bytes.
#[inline(always)]
pub(crate) fn short(seed: u64, key: Short) -> u64 {
    let (low, _) = key.halves();
    if key.len <= 8 {
        of_word(seed, key.len, low)
    } else {
        let ends_at = 8 * (key.len - 8);
        of_two_words(seed, key.len, low, (key.bytes >> ends_at) as u64)
    }
}

/// The hash of up to 8 bytes: little-endian, zero above. (The branches are on the length alone, and
/// the shifts are as far for all keys of one length, so that a loop of it becomes vectors.)
#[inline(always)]
pub(crate) fn of_word(seed: u64, len: usize, key: u64) -> u64 {
    match len {
        4.. => of_halves(seed, len, key as u32, (key >> (8 * (len - 4))) as u32),
        0 => avalanche_64(seed ^ SECRET[7] ^ SECRET[8]),
        _ => {
            let (first, middle) = (key & 0xff, key >> (8 * (len / 2)) & 0xff);
            let last = key >> (8 * (len - 1)) & 0xff;
            of_few(seed, len, first, middle, last)
        }
    }
}

/// [`of_word`] of each key, all of one length.
#[inline(always)]
pub(crate) fn of_words(seed: u64, len: usize, keys: &mut [u64]) {
    if len == 8 {
        keys.iter_mut().for_each(|key| *key = of_word(seed, 8, *key));
    } else {
        keys.iter_mut().for_each(|key| *key = of_word(seed, len, *key));
    }
}

/// 1 to 3 bytes.
#[inline(always)]
fn of_few(seed: u64, len: usize, first: u64, middle: u64, last: u64) -> u64 {
    let key = last | (len as u64) << 8 | first << 16 | middle << 24;
    let secret = (SECRET[0] ^ SECRET[0] >> 32) & 0xffff_ffff;
    avalanche_64(key ^ secret.wrapping_add(seed))
}

/// 4 to 8 bytes, by the first four and the last four.
#[inline(always)]
fn of_halves(seed: u64, len: usize, first: u32, last: u32) -> u64 {
    let seed = seed ^ u64::from((seed as u32).swap_bytes()) << 32;
    let key = u64::from(last) | u64::from(first) << 32;
    let mut hash = key ^ (SECRET[1] ^ SECRET[2]).wrapping_sub(seed);
    hash ^= hash.rotate_left(49) ^ hash.rotate_left(24);
    hash = hash.wrapping_mul(PRIME_MX2);
    hash ^= (hash >> 35).wrapping_add(len as u64);
    hash = hash.wrapping_mul(PRIME_MX2);
    hash ^ hash >> 28
}

/// 9 to 16 bytes, by the first eight and the last eight.
#[inline(always)]
fn of_two_words(seed: u64, len: usize, first: u64, last: u64) -> u64 {
    let low = first ^ (SECRET[3] ^ SECRET[4]).wrapping_add(seed);
    let high = last ^ (SECRET[5] ^ SECRET[6]).wrapping_sub(seed);
    let sum = (len as u64).wrapping_add(low.swap_bytes()).wrapping_add(high);
    avalanche(sum.wrapping_add(folded(low, high)))
}

/// The hash of bytes that lie in memory.
#[inline(always)]
pub(crate) fn slice(seed: u64, bytes: &[u8]) -> u64 {
    let len = bytes.len();
    match len {
        17..=MOST => of_pairs(seed, bytes),
        9..=16 => of_two_words(seed, len, u64_at(bytes, 0), u64_at(bytes, len - 8)),
        4..=8 => of_halves(seed, len, u32_at(bytes, 0), u32_at(bytes, len - 4)),
        0 => of_word(seed, 0, 0),
        1..=3 => {
            let byte = |i: usize| u64::from(bytes[i]);
            of_few(seed, len, byte(0), byte(len / 2), byte(len - 1))
        }
        _ => long(seed, bytes),
    }
}

/// 17 to 128 bytes: pieces of 16 from both ends, which may overlap.
#[inline(always)]
fn of_pairs(seed: u64, bytes: &[u8]) -> u64 {
    let len = bytes.len();
    let mut hash = (len as u64).wrapping_mul(PRIME64_1);
    let mut pair = |i: usize| {
        let mut mix = |at: usize, secret: usize| {
            let low = u64_at(bytes, at) ^ SECRET[secret].wrapping_add(seed);
            let high = u64_at(bytes, at + 8) ^ SECRET[secret + 1].wrapping_sub(seed);
            hash = hash.wrapping_add(folded(low, high));
        };
        mix(16 * i, 4 * i);
        mix(len - 16 * (i + 1), 4 * i + 2);
    };
    if len > 32 {
        if len > 64 {
            if len > 96 {
                pair(3);
            }
            pair(2);
        }
        pair(1);
    }
    pair(0);
    avalanche(hash)
}

/// More than 128 bytes. A call, since so long a key takes longer than one.
#[inline(never)]
fn long(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// Both halves of the product, XORed.
#[inline(always)]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline(always)]
fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(PRIME_MX1);
    hash ^ hash >> 32
}

/// The end of XXH64.
#[inline(always)]
fn avalanche_64(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(PRIME64_2);
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(PRIME64_3);
    hash ^ hash >> 32
}

#[inline(always)]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"))
}

#[inline(always)]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("4 bytes"))
}

/// The bytes of a key that come in pieces; `N` of them are kept together, at most [`MOST`]. It
/// allocates nothing.
pub(crate) struct Xxh3Sink<const N: usize> {
    seed: u64,
    /// The bytes so far, unless `long` has them.
    bytes: [u8; N],
    len: usize,
    /// Takes the bytes of a longer key.
    long: Option<RawHasher<[u8; DEFAULT_SECRET_LENGTH]>>,
}

impl<const N: usize> Xxh3Sink<N> {
    #[inline(always)]
    pub(crate) fn new(seed: u64) -> Self {
        const { assert!(N <= MOST) };
        Self {
            seed,
            bytes: [0; N],
            len: 0,
            long: None,
        }
    }

    #[inline(always)]
    pub(crate) fn finish(self) -> u64 {
        match self.long {
            None => slice(self.seed, &self.bytes[..self.len]),
            Some(hasher) => hasher.finish(),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_long(&mut self, bytes: &[u8]) {
        let hasher = self.long.get_or_insert_with(|| {
            let secret = SecretBuffer::with_seed(self.seed, [0; DEFAULT_SECRET_LENGTH]);
            let mut hasher = RawHasher::new(secret.ok().expect("the secret has its length"));
            hasher.write(&self.bytes[..self.len]);
            hasher
        });
        hasher.write(bytes);
    }
}

impl<const N: usize> Sink for Xxh3Sink<N> {
    // Always inlined, as `Pieces::put`.
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        let end = self.len.saturating_add(bytes.len());
        match self.bytes.get_mut(self.len..end) {
            Some(place) if self.long.is_none() => {
                place.copy_from_slice(bytes);
                self.len = end;
            }
            _ => self.put_long(bytes),
        }
    }
}
