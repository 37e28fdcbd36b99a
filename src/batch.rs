//! Pipelines over the bits, one set per shape of the pattern: a hash, or a slice of them, to answers.
//!
//! A filter looks its [`Kernels`] up once, when it is built, so that words and bits are constants in every loop and
//! a single call costs one well-predicted indirect call to get there. (A `match` on the shape in each
//! call was slower by a call and a jump table.)

use crate::bits::Bits;
use crate::pattern::{block, pattern};
use crate::sizing::{LINE_BYTES, Shape};

/// The operations on hashes for one shape. None of them orders memory beyond the `Release` of the bits it sets;
/// the caller calls [`acquire`](crate::bits::acquire) where an answer rests on bits seen.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) contains: fn(&Bits, u64) -> bool,
    pub(crate) insert: fn(&Bits, u64) -> bool,
    pub(crate) contains_hashes: fn(&Bits, &[u64], &mut [bool]),
    pub(crate) insert_hashes: fn(&Bits, &[u64]) -> usize,
}

impl Kernels {
    pub(crate) fn of(shape: Shape) -> &'static Self {
        macro_rules! table {
            ($($w:literal: $($s:literal)*;)*) => {
                match (shape.words, shape.bits) {
                    $($(($w, $s) => const { &Self::new::<$w, $s>() },)*)*
                    _ => unreachable!("{shape:?} is not a shape of sizing.rs"),
                }
            };
        }
        table! {
            1: 1 2 3 4 5 6 7 8 9 10;
            2: 1 2 3 4 5 6 7 8;
            4: 1 2 3 4 5 6;
            8: 1 2 3 4;
        }
    }

    const fn new<const W: usize, const S: usize>() -> Self {
        Self {
            contains: contains::<W, S>,
            insert: insert::<W, S>,
            contains_hashes: contains_hashes::<W, S>,
            insert_hashes: insert_hashes::<W, S>,
        }
    }
}

/// Keys whose lines are asked for together: enough to keep the 10 to 20 misses that a core can have under way
/// going, few enough that the lines stay in L1 until they are used.
pub(crate) const WINDOW: usize = 32;

/// Filters up to this size are probed without prefetching: they are in L2, and the hints would only cost.
const CACHED_BYTES: usize = 256 << 10;

fn contains<const W: usize, const S: usize>(bits: &Bits, hash: u64) -> bool {
    bits.holds(block(hash, bits.blocks()), pattern::<W, S>(hash))
}

fn insert<const W: usize, const S: usize>(bits: &Bits, hash: u64) -> bool {
    bits.set(block(hash, bits.blocks()), pattern::<W, S>(hash))
}

fn contains_hashes<const W: usize, const S: usize>(bits: &Bits, hashes: &[u64], out: &mut [bool]) {
    debug_assert_eq!(hashes.len(), out.len());
    let mut out = out.iter_mut();
    windows(bits, hashes, Bits::prefetch_read, |hash| {
        if let Some(out) = out.next() {
            *out = contains::<W, S>(bits, hash);
        }
    });
}

fn insert_hashes<const W: usize, const S: usize>(bits: &Bits, hashes: &[u64]) -> usize {
    let mut changed = 0;
    windows(bits, hashes, Bits::prefetch_write, |hash| {
        changed += usize::from(insert::<W, S>(bits, hash));
    });
    changed
}

/// Calls `each` for every hash in order, the line of each asked for one window ahead.
#[inline(always)]
fn windows(bits: &Bits, hashes: &[u64], prefetch: fn(&Bits, usize), mut each: impl FnMut(u64)) {
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
