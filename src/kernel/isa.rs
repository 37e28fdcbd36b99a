//! Finds the instruction sets of this CPU.

use super::arch::Level;
use super::plan::{self, TuningRow};
use core::fmt;
use core::sync::atomic::{AtomicU8, Ordering};

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
        let place = Level::ALL.iter().position(|&level| level == best.0);
        let number = place.expect("all are in it") as u8 + 1;
        // Relaxed: every thread stores the same.
        BEST.store(number, Ordering::Relaxed);
        best
    }

    #[inline(always)]
    pub(super) fn level(self) -> Level {
        self.0
    }

    /// How batches are read by it on this CPU.
    pub(super) fn tuning(self) -> TuningRow {
        self.0.tuned(plan::tuning())
    }

    /// This, or the plain one if there are more blocks than vectors can number in 32 bits: 256 GiB.
    pub(super) fn for_blocks(self, blocks: usize) -> Self {
        if blocks as u64 >> 32 == 0 { self } else { Self::PLAIN }
    }
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
