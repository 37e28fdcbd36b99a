//! The yardstick of single calls: a split block without atomic operations, for x86-64 with AVX2.
//!
//! A key's block is one of 32 bytes, and the key sets one bit in each of its eight words of 32
//! bits. The block is the high half of the product of the hash and the number of blocks. The bit
//! of word `i` is the top five bits of byte `7 - i` of the product of the hash and [`M`]. The loops
//! are compiled for AVX2, and the calls are inlined into them. So this is the time that a filter
//! with blocks of half a line can have, if no other thread inserts meanwhile.
//!
//! On a Zen 4 lookups took 1.02 times as long as those of quickbloom b08c691 at 32 KiB, and 1.07 to
//! 1.11 times at 512 KiB to 64 MiB. (It is a C library, whose calls were inlined too.)

use crate::contestants::{Peer, in_huge_pages};
use crate::features::Library;
use lanebloom_formats::SplitBlockBloom;
use std::arch::x86_64::*;
use std::mem::zeroed;
use std::sync::RwLock;

/// The multiplier of the hash: 2^64 divided by the golden ratio.
const M: u64 = 0x9e37_79b9_7f4a_7c15;

/// Not atomic: one thread inserts, any number look up afterwards.
pub(crate) struct Yardstick(RwLock<Blocks>);

impl Yardstick {
    /// A filter for this number of keys, if the CPU has the instructions.
    pub(crate) fn new(keys: usize, rate: f64) -> Option<Self> {
        if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2")) {
            return None;
        }
        // Parquet's filter has blocks of the same shape, so it takes as many bits.
        let bytes = SplitBlockBloom::with_capacity(keys, rate).unwrap().memory_bytes();
        Some(Self(RwLock::new(Blocks(in_huge_pages(
            bytes / size_of_val(&EMPTY),
            EMPTY,
        )))))
    }
}

impl Peer for Yardstick {
    fn name(&self) -> String {
        "(split blocks, AVX2, inlined, one writer)".into()
    }
    fn library(&self) -> Option<Library> {
        None
    }
    fn insert(&self, hashes: &[u64]) -> Option<usize> {
        // SAFETY: `new` asked the CPU; likewise below.
        Some(unsafe { self.0.write().unwrap().insert(hashes) })
    }
    fn contains(&self, hashes: &[u64]) -> usize {
        // SAFETY: as above.
        unsafe { self.0.read().unwrap().contains(hashes) }
    }
    fn clear(&mut self) {
        self.0.get_mut().unwrap().0.fill(EMPTY);
    }
    fn bytes(&self) -> usize {
        size_of_val(&*self.0.read().unwrap().0)
    }
    fn writers(&self) -> usize {
        1
    }
}

struct Blocks(Vec<__m256i>);

// SAFETY: zeros are one of the values.
const EMPTY: __m256i = unsafe { zeroed() };

impl Blocks {
    /// Returns how many were new.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn insert(&mut self, hashes: &[u64]) -> usize {
        each_four(hashes, |hash| {
            let (block, bits) = (self.block(hash).cast_mut(), bits(hash));
            // SAFETY: a block of the vector, and `&mut` keeps others away.
            unsafe {
                let words = _mm256_load_si256(block);
                _mm256_store_si256(block, _mm256_or_si256(words, bits));
                _mm256_testc_si256(words, bits) == 0
            }
        })
    }

    /// Returns how many are found.
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    fn contains(&self, hashes: &[u64]) -> usize {
        each_four(hashes, |hash| {
            // SAFETY: a block of the vector.
            let words = unsafe { _mm256_load_si256(self.block(hash)) };
            _mm256_testc_si256(words, bits(hash)) == 1
        })
    }

    #[inline(always)]
    fn block(&self, hash: u64) -> *const __m256i {
        let index = ((u128::from(hash) * self.0.len() as u128) >> 64) as usize;
        self.0.as_ptr().wrapping_add(index)
    }
}

/// How many hashes pass. Unrolled: a loop over single ones took 0.56 or 0.93 ns per lookup, as it
/// happened to lie in the code's lines, and takes 0.6 so (Zen 5, 32 KiB).
#[inline(always)]
fn each_four(hashes: &[u64], mut test: impl FnMut(u64) -> bool) -> usize {
    let (fours, rest) = hashes.as_chunks::<4>();
    let mut passed = 0;
    for four in fours {
        four.iter().for_each(|&hash| passed += usize::from(test(hash)));
    }
    rest.iter().for_each(|&hash| passed += usize::from(test(hash)));
    passed
}

/// The bits of a hash in its block.
#[target_feature(enable = "avx2")]
#[inline]
fn bits(hash: u64) -> __m256i {
    // A byte of the product to the top of each word. -1: zero.
    let spread = _mm256_setr_epi8(
        -1, -1, -1, 7, -1, -1, -1, 6, -1, -1, -1, 5, -1, -1, -1, 4, //
        -1, -1, -1, 3, -1, -1, -1, 2, -1, -1, -1, 1, -1, -1, -1, 0,
    );
    let bytes = _mm256_shuffle_epi8(_mm256_set1_epi64x(hash.wrapping_mul(M) as i64), spread);
    _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(bytes))
}
