//! The lookups for AVX-512 with VBMI and BITALG: Ice Lake (2019), Zen 4 (2022) and later.
//! Everything else is as in `avx512.rs`.
//!
//! VBMI cuts eight positions out of a product at once. BITALG tests eight bits of a word at once.
//! So a lookup takes two instructions for each word, whatever the number of bits, and that number
//! is data.

use crate::bits::{Lines, Load, Probed};
use crate::kernel::avx512::{blocks, load, multiply_again, places, product};
use crate::kernel::groups::{self, Group};
use crate::pattern::Cuts;
use core::arch::x86_64::*;

/// Whether this CPU, or without `std` this target, has what the functions below need.
pub(super) fn detect() -> bool {
    #[cfg(feature = "std")]
    return std::arch::is_x86_feature_detected!("avx512vbmi")
        && std::arch::is_x86_feature_detected!("avx512bitalg")
        && super::avx512::detect();
    #[cfg(not(feature = "std"))]
    return cfg!(all(target_feature = "avx512vbmi", target_feature = "avx512bitalg")) && super::avx512::detect();
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
pub(super) fn contains_hashes<const W: usize, T: Load>(
    cuts: &Cuts,
    lines: Lines<'_, T>,
    hashes: &[u64],
    found: &mut [u64],
) {
    let count = lines.blocks();
    // SAFETY: `places` writes all words, of blocks below `count`, which is below 2^32
    // (`Isa::for_blocks`); a block has 8. `hold` reads no products.
    unsafe {
        groups::contains(
            lines,
            hashes,
            found,
            |group| blocks(group, count),
            |group, _, words| places::<W>(group, cuts, 0, count, words),
            |hashes, _, words| hold::<W, T>(hashes, cuts, words),
        );
    }
}

/// Whether the words hold all bits of their hash's pattern. `T` is the kind of words: each copy has
/// one caller, and so is inlined.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bitalg,bmi1,bmi2")]
#[inline]
fn hold<const W: usize, T>(hashes: &Group, cuts: &Cuts, words: &[Group; W]) -> u8 {
    let mut product = product(hashes);
    let mut all = u64::MAX;
    for (i, word) in words.iter().enumerate() {
        let cut = &cuts.words[i];
        if i > 0 && cut.multiply {
            product = multiply_again(product);
        }
        let word = load(word);
        let eight = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(cut.eight as i64), product);
        all &= _mm512_bitshuffle_epi64_mask(word, eight);
        if W == 1 && cuts.bits > 8 {
            let others = _mm512_multishift_epi64_epi8(_mm512_set1_epi64(cut.others as i64), product);
            all &= _mm512_bitshuffle_epi64_mask(word, others);
        }
    }
    _mm512_cmpeq_epi64_mask(_mm512_movm_epi8(all), _mm512_set1_epi64(-1))
}
