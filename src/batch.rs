//! Pipelines over the bits: a hash, or a slice of them, to answers. `simd/` compiles them for each shape of the pattern
//! and each instruction set; nothing here knows which.
//!
//! None of them orders memory beyond the `Release` of the bits it sets; the caller calls
//! [`acquire`](crate::bits::acquire) where an answer rests on bits seen.

use crate::bits::Bits;
use crate::pattern::{block, pattern};
use crate::sizing::LINE_BYTES;

/// Keys whose lines are asked for together: enough to keep the 10 to 20 misses that a core can have under way
/// going, few enough that the lines stay in L1 until they are used.
pub(crate) const WINDOW: usize = 32;

/// Filters up to this size are probed without prefetching: they are in L2, and the hints would only cost.
const CACHED_BYTES: usize = 256 << 10;

#[inline(always)]
pub(crate) fn contains<const W: usize, const S: usize, const VECTOR: bool>(bits: &Bits, hash: u64) -> bool {
    bits.holds::<W, S, VECTOR>(block(hash, bits.blocks()), pattern(hash))
}

#[inline(always)]
pub(crate) fn insert<const W: usize, const S: usize>(bits: &Bits, hash: u64) -> bool {
    bits.set::<W, S>(block(hash, bits.blocks()), pattern(hash))
}

#[inline(always)]
pub(crate) fn contains_hashes<const W: usize, const S: usize, const VECTOR: bool>(
    bits: &Bits,
    hashes: &[u64],
    out: &mut [bool],
) {
    debug_assert_eq!(hashes.len(), out.len());
    let mut out = out.iter_mut();
    windows(bits, hashes, Bits::prefetch_read, |hash| {
        if let Some(out) = out.next() {
            *out = contains::<W, S, VECTOR>(bits, hash);
        }
    });
}

#[inline(always)]
pub(crate) fn insert_hashes<const W: usize, const S: usize>(bits: &Bits, hashes: &[u64]) -> usize {
    let mut changed = 0;
    windows(bits, hashes, Bits::prefetch_write, |hash| {
        changed += usize::from(insert::<W, S>(bits, hash));
    });
    changed
}

/// Calls `each` for every hash in order, the line of each asked for one window ahead.
#[inline(always)]
fn windows(bits: &Bits, hashes: &[u64], prefetch: impl Fn(&Bits, usize), mut each: impl FnMut(u64)) {
    if bits.blocks() * LINE_BYTES <= CACHED_BYTES {
        hashes.iter().for_each(|&hash| each(hash));
        return;
    }
    let ask = |hashes: &[u64]| {
        for &hash in hashes {
            prefetch(bits, block(hash, bits.blocks()));
        }
    };
    let mut next = &hashes[..hashes.len().min(WINDOW)];
    let mut rest = &hashes[next.len()..];
    ask(next);
    while !next.is_empty() {
        let now = next;
        (next, rest) = rest.split_at(rest.len().min(WINDOW));
        ask(next);
        now.iter().for_each(|&hash| each(hash));
    }
}
