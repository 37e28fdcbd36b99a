//! [`FastHash`](crate::FastHash): two folded products for keys of up to 8 bytes, and XXH3-64 for
//! longer ones. `hash.rs` calls it. `docs/HASHES.md` is its specification.
//!
//! A folded product is the XOR of both halves of a product of 128 bits, which a processor makes by
//! one or two instructions. No vectors have it, and batches need none: a `u64` takes 0.6 ns.
//! Rejected for a `u64` (ns for the hash, and for a lookup at 32 KiB, where ours takes 1.8;
//! Intel with AMX):
//!
//! - XXH3: 0.9 and 2.2; in batches 0.9 by AVX2, and 0.4 by AVX-512.
//! - Murmur3's `fmix64`: 0.7 and 2.0. Without its last shift 1.75, but then 100 of the 4096 pairs
//!   of a key's bit and a hash's bit fail the avalanche test.
//! - One folded product, as foldhash's: 0.45 and 1.5, but two thirds of the pairs fail.
//!
//! XXH3 of 9 to 32 bytes stands here, so that it is inlined: a string of 24 bytes takes 1.4 ns, and
//! 2.0 by `twox-hash`. XXH3 of 33 to 128 bytes stands here, so that it takes one call: 33 bytes
//! took 5.3 ns by two calls, and by `twox-hash` inlined 3.8. `twox-hash` hashes longer keys.

use crate::funnel::Sink;
use crate::hash::bytes::{Short, load_below_8, mix};
use core::hash::Hasher;
use twox_hash::XxHash3_64;
use twox_hash::xxhash3_64::{DEFAULT_SECRET_LENGTH, RawHasher, SecretBuffer};

// Primes of XXH3, `doc/xxhash_spec.md` of xxHash.
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME_MX1: u64 = 0x1656_6791_9e37_79f9;
const PRIME_MX2: u64 = 0x9fb2_1c65_1e98_df25;

/// The first 128 bytes of XXH3's default secret, as little-endian words.
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

/// A seed, and the word that it becomes for keys of up to 8 bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seed {
    pub(crate) given: u32,
    word: u64,
}

impl Seed {
    /// The word is an output of SplitMix64, so that near seeds have distant words: the seed is
    /// XORed, and two seeds hash the same numbers in another order if their words are near.
    pub(crate) const fn new(given: u32) -> Self {
        let word = mix((given as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Self { given, word }
    }
}

/// The hash of up to 16 bytes.
#[inline(always)]
pub(crate) fn short(seed: Seed, key: Short) -> u64 {
    let (low, _) = key.halves();
    if key.len <= 8 {
        of_word(seed, key.len, low)
    } else {
        of_two_words(seed, key.len, low, (key.bytes >> (8 * (key.len - 8))) as u64)
    }
}

/// The hash of bytes that lie in memory.
#[inline(always)]
pub(crate) fn slice(seed: Seed, bytes: &[u8]) -> u64 {
    let len = bytes.len();
    match len {
        17..=32 => {
            let ends = pair(seed, bytes, 0, 0).wrapping_add(pair(seed, bytes, len - 16, 2));
            avalanche((len as u64).wrapping_mul(PRIME64_1).wrapping_add(ends))
        }
        9..=16 => of_two_words(seed, len, word_at(bytes, 0), word_at(bytes, len - 8)),
        8 => of_word(seed, len, word_at(bytes, 0)),
        0..8 => of_word(seed, len, load_below_8(bytes)),
        _ => long(seed, bytes),
    }
}

/// Up to 8 bytes: little-endian, zero above. Another length has another factor, so that `"a"` and
/// `"a\0"` are two keys.
#[inline(always)]
fn of_word(seed: Seed, len: usize, key: u64) -> u64 {
    folded(folded(key ^ seed.word, PRIME_MX2 ^ (len as u64) << 1), PRIME64_1)
}

/// XXH3 of 9 to 16 bytes, by the first eight and the last eight.
#[inline(always)]
fn of_two_words(seed: Seed, len: usize, first: u64, last: u64) -> u64 {
    let given = u64::from(seed.given);
    let low = first ^ (SECRET[3] ^ SECRET[4]).wrapping_add(given);
    let high = last ^ (SECRET[5] ^ SECRET[6]).wrapping_sub(given);
    let sum = (len as u64).wrapping_add(low.swap_bytes()).wrapping_add(high);
    avalanche(sum.wrapping_add(folded(low, high)))
}

/// 16 bytes of a key of 17 to 128, by two words of the secret.
#[inline(always)]
fn pair(seed: Seed, bytes: &[u8], at: usize, secret: usize) -> u64 {
    let given = u64::from(seed.given);
    let low = word_at(bytes, at) ^ SECRET[secret].wrapping_add(given);
    let high = word_at(bytes, at + 8) ^ SECRET[secret + 1].wrapping_sub(given);
    folded(low, high)
}

/// More than 32 bytes. A call, so that the code of shorter keys is small.
#[inline(never)]
fn long(seed: Seed, bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if len > 128 {
        return XxHash3_64::oneshot_with_seed(seed.given.into(), bytes);
    }
    // The nearer to the middle of the key, the later in the secret.
    let both = |i: usize| {
        let first = pair(seed, bytes, 16 * i, 4 * i);
        first.wrapping_add(pair(seed, bytes, len - 16 * (i + 1), 4 * i + 2))
    };
    let mut sum = both(0).wrapping_add(both(1));
    if len > 64 {
        sum = sum.wrapping_add(both(2));
        if len > 96 {
            sum = sum.wrapping_add(both(3));
        }
    }
    avalanche((len as u64).wrapping_mul(PRIME64_1).wrapping_add(sum))
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

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("8 bytes"))
}

/// The bytes of a key that come in pieces; `N` of them are kept together. It allocates nothing.
pub(crate) struct FastSink<const N: usize> {
    seed: Seed,
    /// The bytes so far, unless `long` has them.
    bytes: [u8; N],
    len: usize,
    /// Takes the bytes of a longer key.
    long: Option<RawHasher<[u8; DEFAULT_SECRET_LENGTH]>>,
}

impl<const N: usize> FastSink<N> {
    #[inline(always)]
    pub(crate) fn new(seed: Seed) -> Self {
        // Longer keys are XXH3's.
        const { assert!(N >= 8) };
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
            let secret = SecretBuffer::with_seed(self.seed.given.into(), [0; DEFAULT_SECRET_LENGTH]);
            let mut hasher = RawHasher::new(secret.expect("the secret has its length"));
            hasher.write(&self.bytes[..self.len]);
            hasher
        });
        hasher.write(bytes);
    }
}

impl<const N: usize> Sink for FastSink<N> {
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
