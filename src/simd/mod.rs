//! Which machine code answers: the pipelines of `batch.rs`, compiled for every shape of the pattern and for every
//! instruction set that makes them faster, chosen when a filter is built.
//!
//! A filter looks its [`Kernels`] up once, so that words and bits are constants in every loop, and a call costs one
//! well-predicted indirect call to get there. (A `match` on the shape in each call would put a jump table in its
//! place.) The code is the same Rust for all; an instruction set's file only says what the compiler may assume, so
//! nothing can drift apart.
//!
//! What is not here: aarch64 has its vectors in every CPU, so that the plain compilation has them already.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::batch;
use crate::bits::Bits;
use crate::sizing::Shape;

/// An instruction set that this CPU has; made by [`Isa::detect`] and [`Isa::all`] alone, so that to have one proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Isa(Level);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// What the target has that the crate is compiled for.
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

impl Isa {
    /// All that this CPU has, the best last. Without `std`, what the target has.
    fn all() -> impl DoubleEndedIterator<Item = Self> {
        [
            Some(Level::Plain),
            #[cfg(target_arch = "x86_64")]
            avx2::detect().then_some(Level::Avx2),
        ]
        .into_iter()
        .flatten()
        .map(Self)
    }

    /// The best that this CPU has.
    pub(crate) fn detect() -> Self {
        Self::all().next_back().expect("the plain one is there")
    }
}

/// The operations on hashes for one shape and one instruction set.
#[derive(Debug)]
pub(crate) struct Kernels {
    // SAFETY, for all four: callable where the instruction set is there which they are compiled for.
    contains: unsafe fn(&Bits, u64) -> bool,
    insert: unsafe fn(&Bits, u64) -> bool,
    contains_hashes: unsafe fn(&Bits, &[u64], &mut [bool]),
    insert_hashes: unsafe fn(&Bits, &[u64]) -> usize,
}

impl Kernels {
    /// The kernels for `shape` on this CPU: its having `isa` is what makes their calls sound.
    pub(crate) fn of(shape: Shape, isa: Isa) -> &'static Self {
        macro_rules! table {
            ($($w:literal: $($s:literal)*;)*) => {
                match (shape.words, shape.bits, isa.0) {
                    $($(
                        ($w, $s, Level::Plain) => const { &Self::plain::<$w, $s>() },
                        #[cfg(target_arch = "x86_64")]
                        ($w, $s, Level::Avx2) => const { &Self::avx2::<$w, $s>() },
                    )*)*
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

    const fn plain<const W: usize, const S: usize>() -> Self {
        Self {
            contains: batch::contains::<W, S, false>,
            insert: batch::insert::<W, S>,
            contains_hashes: batch::contains_hashes::<W, S, false>,
            insert_hashes: batch::insert_hashes::<W, S>,
        }
    }

    #[cfg(target_arch = "x86_64")]
    const fn avx2<const W: usize, const S: usize>() -> Self {
        Self {
            contains: avx2::contains::<W, S>,
            insert: avx2::insert::<W, S>,
            contains_hashes: avx2::contains_hashes::<W, S>,
            insert_hashes: avx2::insert_hashes::<W, S>,
        }
    }

    #[inline(always)]
    pub(crate) fn contains(&self, bits: &Bits, hash: u64) -> bool {
        // SAFETY: `of` gave this out against an `Isa`, which proves that the CPU has what the function needs.
        unsafe { (self.contains)(bits, hash) }
    }

    #[inline(always)]
    pub(crate) fn insert(&self, bits: &Bits, hash: u64) -> bool {
        // SAFETY: as in `contains`.
        unsafe { (self.insert)(bits, hash) }
    }

    #[inline(always)]
    pub(crate) fn contains_hashes(&self, bits: &Bits, hashes: &[u64], out: &mut [bool]) {
        // SAFETY: as in `contains`.
        unsafe { (self.contains_hashes)(bits, hashes, out) }
    }

    #[inline(always)]
    pub(crate) fn insert_hashes(&self, bits: &Bits, hashes: &[u64]) -> usize {
        // SAFETY: as in `contains`.
        unsafe { (self.insert_hashes)(bits, hashes) }
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// Distinct hashes without a pattern, and the extreme ones.
    fn hashes(from: u64, len: usize) -> Vec<u64> {
        let extremes = [0, u64::MAX, 1, 1 << 63, u64::MAX >> 1];
        let mixed = (from..).map(|i| {
            let x = (i ^ i >> 7).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (x ^ x >> 29).wrapping_mul(0x94d0_49bb_1331_11eb)
        });
        extremes.into_iter().chain(mixed).take(len).collect()
    }

    /// Every instruction set of this CPU, on every shape, at every length around the windows: the same answers and the
    /// same bits as the plain single calls.
    #[test]
    fn all_instruction_sets_agree() {
        for (words, most) in crate::sizing::WORDS {
            for shape in (1..=most).map(|bits| Shape { words, bits }) {
                let plain = Kernels::of(shape, Isa(Level::Plain));
                for isa in Isa::all() {
                    let kernels = Kernels::of(shape, isa);
                    // Without prefetching and with it; 4099 is the first prime above the limit.
                    for blocks in [1, 7, 4099] {
                        let [by_one, single, batch] = [(); 3].map(|()| Bits::new(blocks).unwrap());
                        for len in (0..2 * crate::batch::WINDOW + 2).step_by(3).chain([300]) {
                            let new = hashes(1000 * len as u64, len);
                            let changed = new.iter().filter(|&&hash| plain.insert(&by_one, hash)).count();
                            assert_eq!(
                                new.iter().filter(|&&hash| kernels.insert(&single, hash)).count(),
                                changed
                            );
                            assert_eq!(kernels.insert_hashes(&batch, &new), changed);
                            let asked = hashes(1000 * len as u64 + len as u64 / 2, len);
                            let expected: Vec<bool> = asked.iter().map(|&hash| plain.contains(&by_one, hash)).collect();
                            assert!(
                                asked
                                    .iter()
                                    .zip(&expected)
                                    .all(|(&hash, &e)| kernels.contains(&single, hash) == e)
                            );
                            let mut found = vec![false; len];
                            kernels.contains_hashes(&batch, &asked, &mut found);
                            assert_eq!(found, expected, "{shape:?}, {isa:?}, {blocks} blocks, {len} hashes");
                        }
                        assert!(by_one.words().eq(single.words()) && by_one.words().eq(batch.words()));
                    }
                }
            }
        }
    }
}
