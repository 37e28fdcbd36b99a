//! The single lookups that are inlined in place of a call by a pointer, which takes as long as a
//! whole lookup (Zen 3: 1.54 ns for a call of an empty function). By assembly, so that they are
//! inlined into code that is compiled for older CPUs.
//!
//! A block ends with `vzeroupper`: else older code would run with a penalty (Intel). In code that
//! is compiled for AVX2 the compiler's own choice is faster, and needs none. Other CPUs than x86-64
//! have no such lookups.

use crate::geometry::pattern::Pattern;
use crate::words::bits::{Lines, Load};

/// The single lookups of one filter: in sectors of so many words, or by a pointer.
///
/// (A `match` on one number is a jump by a table, where callers get no loop for each way: present
/// keys took 1.3 ns in place of 1.0, Zen 5.)
#[derive(Clone, Copy, Debug)]
pub(super) struct Inlined {
    one: bool,
    two: bool,
    four: bool,
    eight: bool,
}

impl Inlined {
    pub(super) const NONE: Self = Self::of(0);

    /// For a CPU with AVX2 and BMI2, and sectors of so many words.
    pub(super) const fn of(words: usize) -> Self {
        Self {
            one: words == 1,
            two: words == 2,
            four: words == 4,
            eight: words == 8,
        }
    }

    #[inline(always)]
    pub(super) fn is_some(&self) -> bool {
        cfg!(lanebloom_x86_64) && self.one | self.two | self.four | self.eight
    }

    /// # Safety
    ///
    /// The CPU has the level that this was made for, and `pattern` is that of the lines.
    #[inline(always)]
    pub(super) unsafe fn contains<T: Load>(&self, lines: Lines<'_, T>, hash: u64, pattern: &Pattern) -> Option<bool> {
        // SAFETY: as promised.
        unsafe {
            if cfg!(not(lanebloom_x86_64)) {
                None
            } else if self.two {
                Some(holds::<2, T>(lines, hash, pattern))
            } else if self.four {
                Some(holds::<4, T>(lines, hash, pattern))
            } else if self.one {
                Some(holds::<1, T>(lines, hash, pattern))
            } else if self.eight {
                Some(holds::<8, T>(lines, hash, pattern))
            } else {
                None
            }
        }
    }

    /// Calls `answer` with what belongs to each hash, and whether the hash is found: by `otherwise`
    /// if no call is inlined. A loop for each way, since the compiler makes them of one loop only
    /// where that loop stands in no other.
    ///
    /// # Safety
    ///
    /// The same as for [`contains`](Self::contains).
    #[inline(always)]
    pub(super) unsafe fn contains_each<T: Load, P>(
        &self,
        lines: Lines<'_, T>,
        pattern: &Pattern,
        hashes: impl Iterator<Item = (u64, P)>,
        answer: impl FnMut(P, bool),
        otherwise: impl Fn(u64) -> bool,
    ) {
        // SAFETY: as promised.
        unsafe {
            if cfg!(not(lanebloom_x86_64)) {
                answer_each(hashes, answer, otherwise);
            } else if self.two {
                answer_each(hashes, answer, |hash| holds::<2, T>(lines, hash, pattern));
            } else if self.four {
                answer_each(hashes, answer, |hash| holds::<4, T>(lines, hash, pattern));
            } else if self.one {
                answer_each(hashes, answer, |hash| holds::<1, T>(lines, hash, pattern));
            } else if self.eight {
                answer_each(hashes, answer, |hash| holds::<8, T>(lines, hash, pattern));
            } else {
                answer_each(hashes, answer, otherwise);
            }
        }
    }
}

/// Calls `answer` with what belongs to each hash, and whether the lines hold it.
#[inline(always)]
fn answer_each<P>(all: impl Iterator<Item = (u64, P)>, mut answer: impl FnMut(P, bool), holds: impl Fn(u64) -> bool) {
    all.for_each(|(hash, of_hash)| answer(of_hash, holds(hash)));
}

/// Whether the sector of the hash holds its pattern: as `avx2::holds`.
///
/// # Safety
///
/// The CPU has AVX2 and BMI2. `T` is no counter, and `pattern` is that of the lines.
#[cfg(lanebloom_x86_64)]
#[inline(always)]
unsafe fn holds<const W: usize, T: Load>(lines: Lines<'_, T>, hash: u64, pattern: &Pattern) -> bool {
    #[cfg(all(target_feature = "avx2", target_feature = "bmi1", target_feature = "bmi2"))]
    // SAFETY: compiled for it.
    return unsafe { super::avx2::holds::<W, T>(lines, hash, pattern) };
    #[cfg(not(all(target_feature = "avx2", target_feature = "bmi1", target_feature = "bmi2")))]
    {
        use super::loads::sector_at;
        use crate::geometry::pattern::product;

        let held: u8;
        macro_rules! block {
            ($($load:literal),*) => {
                core::arch::asm!(
                    "vmovq xmm0, {product}",
                    "vpbroadcastq ymm0, xmm0",
                    "vpshufb ymm0, ymm0, [{pattern}]",
                    "vmovdqa ymm2, [{pattern} + 32]",
                    $($load,)*
                    "vpsrld ymm0, ymm0, 27",
                    "vpsllvd ymm0, ymm2, ymm0",
                    "vptest ymm1, ymm0",
                    "setc {held}",
                    "vzeroupper",
                    product = in(reg) product(hash),
                    pattern = in(reg) pattern,
                    at = in(reg) sector_at::<W, T>(lines, hash),
                    held = lateout(reg_byte) held,
                    // The upper halves of all of them become 0.
                    out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
                    out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
                    out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                    out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                    options(readonly, nostack),
                )
            };
        }
        // SAFETY: the pattern is memory of its own, its constants 64 bytes from its beginning. The
        // sector of a hash lies within the lines; `loads.rs` says why reading it is no data race.
        unsafe {
            match W {
                1 => block!("vpbroadcastq ymm1, [{at}]", "vpermilps ymm1, ymm1, ymm0"),
                2 => block!("vbroadcasti128 ymm1, [{at}]", "vpermilps ymm1, ymm1, ymm0"),
                4 => block!("vpermd ymm1, ymm0, [{at}]"),
                _ => block!(
                    "vpermd ymm1, ymm0, [{at}]",
                    "vpermd ymm3, ymm0, [{at} + 32]",
                    "vpblendd ymm1, ymm1, ymm3, 0xf0"
                ),
            }
            is_set(held)
        }
    }
}

#[cfg(not(lanebloom_x86_64))]
unsafe fn holds<const W: usize, T: Load>(_: Lines<'_, T>, _: u64, _: &Pattern) -> bool {
    unreachable!("no lookup is inlined")
}

/// The result of `setc`. (A comparison with 0 would be an instruction more.)
///
/// # Safety
///
/// It is 0 or 1.
#[cfg(all(
    lanebloom_x86_64,
    not(all(target_feature = "avx2", target_feature = "bmi1", target_feature = "bmi2"))
))]
#[expect(clippy::transmute_int_to_bool, reason = "see above")]
#[inline(always)]
unsafe fn is_set(carry: u8) -> bool {
    // SAFETY: as promised.
    unsafe { core::mem::transmute::<u8, bool>(carry) }
}
