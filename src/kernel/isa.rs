//! Finds the instruction sets of this CPU.

use super::plan::{self, Tuning};
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

/// The instruction sets for which kernels are compiled, the best last. (Compilers before Rust 1.89
/// have no intrinsics of AVX-512: `build.rs` finds out.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The compilation target's.
    Plain,
    /// AVX2, BMI1, BMI2 and `cmpxchg16b`.
    #[cfg(lanebloom_x86_64)]
    Avx2,
    /// AVX-512 F, BW, DQ and VL, and all of `Avx2`.
    #[cfg(lanebloom_avx512)]
    Avx512,
    /// NEON.
    #[cfg(lanebloom_aarch64)]
    Neon,
}

impl Level {
    /// Each at the place of its number.
    pub(super) const ALL: &[Self] = &[
        Self::Plain,
        #[cfg(lanebloom_x86_64)]
        Self::Avx2,
        #[cfg(lanebloom_avx512)]
        Self::Avx512,
        #[cfg(lanebloom_aarch64)]
        Self::Neon,
    ];

    /// Whether this CPU has it and those before it.
    #[cfg(all(lanebloom_x86_64, feature = "std"))]
    fn is_there(self) -> bool {
        use std::arch::is_x86_feature_detected as has;
        match self {
            Self::Plain => true,
            Self::Avx2 => has!("avx2") && has!("bmi1") && has!("bmi2") && has!("cmpxchg16b"),
            #[cfg(lanebloom_avx512)]
            Self::Avx512 => {
                has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl") && Self::Avx2.is_there()
            }
        }
    }

    /// Whether the compilation target has it and those before it.
    #[cfg(not(all(lanebloom_x86_64, feature = "std")))]
    fn is_there(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(lanebloom_x86_64)]
            Self::Avx2 => cfg!(all(
                target_feature = "avx2",
                target_feature = "bmi1",
                target_feature = "bmi2",
                target_feature = "cmpxchg16b"
            )),
            #[cfg(lanebloom_avx512)]
            Self::Avx512 => {
                cfg!(all(
                    target_feature = "avx512f",
                    target_feature = "avx512bw",
                    target_feature = "avx512dq",
                    target_feature = "avx512vl"
                )) && Self::Avx2.is_there()
            }
            #[cfg(lanebloom_aarch64)]
            Self::Neon => cfg!(target_feature = "neon"),
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            #[cfg(lanebloom_x86_64)]
            Self::Avx2 => "AVX2",
            #[cfg(lanebloom_avx512)]
            Self::Avx512 => "AVX-512",
            #[cfg(lanebloom_aarch64)]
            Self::Neon => "NEON",
        }
    }

    /// Whether batches have vectors of eight keys.
    pub(super) fn is_wide(self) -> bool {
        #[cfg(lanebloom_avx512)]
        return self == Self::Avx512;
        #[cfg(not(lanebloom_avx512))]
        false
    }
}

/// An instruction set that this CPU has. It is made only after `Level::is_there`, so its
/// existence is the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(Level);

/// The place of `Isa::best` in `Level::ALL`, counted from 1; 0 before it is known.
static BEST: AtomicU8 = AtomicU8::new(0);

impl Isa {
    /// The compilation target's, which every CPU has that runs this.
    pub(super) const PLAIN: Self = Self(Level::Plain);

    /// All that this CPU has, the best last.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        Level::ALL.iter().copied().filter(|level| level.is_there()).map(Self)
    }

    /// The best that this CPU has.
    #[inline]
    #[must_use]
    pub fn best() -> Self {
        // Relaxed: nothing else is published by it.
        match BEST.load(Ordering::Relaxed) {
            0 => Self::find_best(),
            number => Self(Level::ALL[usize::from(number) - 1]),
        }
    }

    #[cold]
    fn find_best() -> Self {
        let best = Self::all().last().expect("the plain one is there");
        // Relaxed: every thread stores the same.
        BEST.store(best.0 as u8 + 1, Ordering::Relaxed);
        best
    }

    /// The level, which this CPU has.
    #[inline(always)]
    #[must_use]
    pub fn level(self) -> Level {
        self.0
    }

    /// How batches are read by it on this CPU.
    pub(super) fn tuning(self) -> Tuning {
        match self.0 {
            #[cfg(lanebloom_x86_64)]
            Level::Avx2 => plan::tuning().of_avx2(),
            _ => plan::tuning(),
        }
    }

    /// This, or the plain one if there are more blocks than vectors can number in 32 bits: 256 GiB.
    pub(super) fn for_blocks(self, blocks: usize) -> Self {
        if blocks as u64 >> 32 == 0 { self } else { Self::PLAIN }
    }
}

/// Plain loops over arrays that a compiler can turn into vectors. `Isa::vectorized` compiles them
/// once for each instruction set. (A closure would be a function of its own, without vectors.)
pub trait Vectorized {
    /// The result of the loops.
    type Output;

    /// The loops. The function and what it calls must be `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// The instruction set that the filters use on this machine, for logs and for figures of speed:
/// `"plain"`, `"AVX2"`, `"AVX-512"` or `"NEON"`.
///
/// ```
/// let name = lanebloom::instruction_set();
/// # #[cfg(target_arch = "x86_64")]
/// assert!(name == "plain" || name.starts_with("AVX"));
/// ```
#[must_use]
pub fn instruction_set() -> &'static str {
    Isa::best().0.name()
}

/// The instruction sets that this machine has, the best last. The tests and benches give one to
/// [`with_isa`](crate::Filter::with_isa) or
/// [`KeyHasher::hash_batch_by`](crate::KeyHasher::hash_batch_by).
pub fn instruction_sets() -> impl Iterator<Item = Isa> {
    Isa::all()
}
