//! Murmur3 x64_128 in plain Rust: bytes in, two 64-bit halves out. It is the specification of the
//! kernels of `kernel/`, and hashes where there is no kernel. `hash.rs` calls it.

use crate::funnel::Sink;
use crate::hash::bytes::{Short, below_16, load_le};
use crate::words::arrays::as_chunks;

/// Murmur3 x64_128 in progress. It allocates nothing. Made by
/// [`Murmur3::sink`](crate::Murmur3::sink).
///
/// ```
/// use lanebloom::{Murmur3, Sink};
///
/// let mut sink = Murmur3::default().sink();
/// assert_eq!(sink.finish128(), (0, 0));
/// sink.put(b"hello");
/// assert_eq!(sink.finish128().0, 0xcbd8_a7b3_41bd_9b02);
/// ```
#[derive(Clone, Debug)]
pub struct Murmur3Sink {
    h1: u64,
    h2: u64,
    /// The `len % 16` bytes that do not fill a 16-byte chunk yet, little-endian, zero above.
    tail: u128,
    len: u64,
}

// Constants and shifts of MurmurHash3_x64_128.
pub(crate) const C1: u64 = 0x87c3_7b91_1142_53d5;
pub(crate) const C2: u64 = 0x4cf5_ad43_2745_937f;

/// The factors of [`fmix`].
pub(crate) const FMIX: [u64; 2] = [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53];

#[inline(always)]
pub(crate) fn mix_k1(k1: u64) -> u64 {
    k1.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2)
}

#[inline(always)]
pub(crate) fn mix_k2(k2: u64) -> u64 {
    k2.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1)
}

#[inline(always)]
pub(crate) fn fmix(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(FMIX[0]);
    k ^= k >> 33;
    k = k.wrapping_mul(FMIX[1]);
    k ^ (k >> 33)
}

impl Murmur3Sink {
    #[inline(always)]
    pub(crate) fn new(seed: u32) -> Self {
        let seed = u64::from(seed);
        Self {
            h1: seed,
            h2: seed,
            tail: 0,
            len: 0,
        }
    }

    /// Continues after `len` bytes: a kernel's state, and the last `len % 16` bytes, zero above.
    #[cfg(lanebloom_avx512)]
    #[inline(always)]
    pub(crate) fn resume([h1, h2]: [u64; 2], tail: u128, len: u64) -> Self {
        Self { h1, h2, tail, len }
    }

    /// Both halves of the hash of up to 16 bytes.
    #[inline(always)]
    pub(crate) fn short(seed: u32, key: Short) -> (u64, u64) {
        let mut sink = Self::new(seed);
        sink.len = key.len as u64;
        if key.len < 16 {
            sink.tail = key.bytes;
        } else {
            sink.mix(key.bytes);
        }
        sink.finish128()
    }

    /// Both halves of the hash of bytes that lie in memory.
    #[inline(always)]
    pub(crate) fn slice(seed: u32, bytes: &[u8]) -> (u64, u64) {
        let mut sink = Self::new(seed);
        sink.len = bytes.len() as u64;
        let (chunks, rest) = as_chunks(bytes);
        for chunk in chunks {
            sink.mix(u128::from_le_bytes(*chunk));
        }
        sink.tail = match bytes.last_chunk() {
            Some(last) => {
                let (low, high) = below_16(last, rest.len());
                u128::from(low) | u128::from(high) << 64
            }
            None => load_le(rest),
        };
        sink.finish128()
    }

    #[inline(always)]
    fn mix(&mut self, chunk: u128) {
        self.h1 ^= mix_k1(chunk as u64);
        self.h1 = self.h1.rotate_left(27).wrapping_add(self.h2);
        self.h1 = self.h1.wrapping_mul(5).wrapping_add(0x52dc_e729);
        self.h2 ^= mix_k2((chunk >> 64) as u64);
        self.h2 = self.h2.rotate_left(31).wrapping_add(self.h1);
        self.h2 = self.h2.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }

    /// Both halves, `(h1, h2)`, of the hash of all bytes so far. More bytes may follow.
    #[inline]
    #[must_use]
    pub fn finish128(&self) -> (u64, u64) {
        // A tail of zero bytes leaves both halves as they are, so there is no case for it.
        let mut h1 = self.h1 ^ mix_k1(self.tail as u64) ^ self.len;
        let mut h2 = self.h2 ^ mix_k2((self.tail >> 64) as u64) ^ self.len;
        h1 = h1.wrapping_add(h2);
        h2 = h2.wrapping_add(h1);
        h1 = fmix(h1);
        h2 = fmix(h2);
        h1 = h1.wrapping_add(h2);
        (h1, h2.wrapping_add(h1))
    }
}

impl Sink for Murmur3Sink {
    // Always inlined: for a key of fixed width the compiler then knows everything here but the
    // arithmetic, which halves the time of a u64's hash. By itself the compiler calls it.
    #[inline(always)]
    fn put(&mut self, mut bytes: &[u8]) {
        let filled = (self.len % 16) as usize;
        self.len = self.len.wrapping_add(bytes.len() as u64);
        if filled != 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(16 - filled));
            self.tail |= load_le(head) << (8 * filled);
            if filled + head.len() < 16 {
                return;
            }
            self.mix(self.tail);
            bytes = rest;
        }
        let (chunks, rest) = as_chunks::<16, _>(bytes);
        for chunk in chunks {
            self.mix(u128::from_le_bytes(*chunk));
        }
        self.tail = load_le(rest);
    }
}
