//! What was measured to be fastest on which CPU, for batches of lookups and inserts.
//!
//! | CPU | lines into | keys ahead | words by gather |
//! |---|---|--:|---|
//! | Zen 5 and later | L1 | 256 | no |
//! | Intel with AVX512-FP16 (Sapphire Rapids and later) | L1 | 64 | yes |
//! | others | L2 | 192 | no |
//!
//! The distance counts to the next tile (64 keys). Inserts ask for lines into L1, to write them. A
//! gather is slow on AMD's processors, and on Intel's before Sapphire Rapids (microcode against
//! Downfall).
//!
//! Measured, ns per lookup, 1%, batches of 1024:
//!
//! - Zen 5 (`benches/record/peers-zen5.md`): 8 MiB, 64 keys ahead 2.4, 128 1.9, 192 1.6, 256 1.5.
//!   64 MiB: 3.1 into L1, 3.3 into L2. 32 KiB: 0.8, by gather 1.3.
//! - Sapphire Rapids, by prototypes: 8 MiB 3.6, and 1.5 times as long 192 ahead into L2. 512 KiB:
//!   1.2, by loads 2.0.
//! - Zen 4: touching 64 MiB takes 8.7 into L1, at any distance, and 4.2 into L2.
//! - Other CPUs were not measured.

use crate::words::bits::Hint;

/// The most tiles by which lines are asked for ahead: `pipeline.rs` and `tiles.rs` keep the places
/// of so many.
pub(super) const MOST_AHEAD: usize = 4;

/// How batches are read on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TuningRow {
    /// The hint for lines that a lookup will read.
    pub(super) lookups: Hint,
    /// How many tiles ahead lines are asked for, if a key has one: at most [`MOST_AHEAD`].
    pub(super) ahead: usize,
    /// Whether the processor's gather is faster than eight loads.
    pub(super) gather: bool,
}

/// The most keys of a tile: as many as a word of a bitmap has bits.
pub const TILE: usize = 64;

/// The most lines that a tile asks for: 32 KiB, a part of L2.
pub const LINES: usize = 512;

/// The most lines of a key for which those of a tile are asked for into L1: 16 KiB, a third of it.
/// (Chosen by this size, not measured.)
const MOST_IN_L1: usize = 4;

/// How a batch comes to its words.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(target_arch = "x86_64", lanebloom_rust_1_89, not(lanebloom_loom))),
    allow(dead_code, reason = "a part is for vectors")
)]
pub struct AccessPlan {
    /// The hint by which lines are asked for, if at all.
    pub(super) hint: Option<Hint>,
    /// How many tiles ahead.
    pub(super) ahead: usize,
    /// Keys of a tile, as a power of two: no tile straddles two words of a bitmap.
    pub(super) log_tile: u32,
}

/// For `tiles.rs`.
impl AccessPlan {
    /// For batches of lookups in a filter of which a key touches so many `lines`.
    #[inline(always)]
    #[must_use]
    pub fn lookups(is_cached: bool, lines: usize) -> Self {
        Self::of(
            is_cached,
            lines,
            |tuning| if lines == 1 { tuning.lookups } else { Hint::L2 },
        )
    }

    /// For batches of inserts or removes.
    #[inline(always)]
    #[must_use]
    pub fn changes(is_cached: bool, lines: usize) -> Self {
        Self::of(is_cached, lines, |_| {
            if lines <= MOST_IN_L1 { Hint::L1Write } else { Hint::L2 }
        })
    }

    #[inline(always)]
    fn of(is_cached: bool, lines: usize, hint: impl Fn(TuningRow) -> Hint) -> Self {
        if is_cached {
            return Self {
                hint: None,
                ahead: 0,
                log_tile: TILE.ilog2(),
            };
        }
        let tuning = tuning();
        let access = Self {
            hint: Some(hint(tuning)),
            // The distance is one of lines.
            ahead: (tuning.ahead / lines).max(1),
            log_tile: TILE.ilog2(),
        };
        access.of_lines(lines)
    }

    /// The same for a filter that keeps the places itself, of one tile and of the next one.
    #[inline(always)]
    #[must_use]
    pub fn next_tile(self, lines: usize) -> Self {
        Self { ahead: 1, ..self }.of_lines(lines)
    }

    #[inline(always)]
    fn of_lines(self, lines: usize) -> Self {
        let log_tile = (LINES / lines).clamp(1, TILE).ilog2();
        Self { log_tile, ..self }
    }

    /// Keys of a tile.
    #[inline(always)]
    #[must_use]
    pub fn tile(self) -> usize {
        1 << self.log_tile
    }

    /// Which of two rings of tiles has the key with this number, and its position in the tile.
    #[inline(always)]
    #[must_use]
    pub fn in_rings(self, key: usize) -> (usize, usize) {
        (key >> self.log_tile & 1, key & (self.tile() - 1))
    }

    /// The hint for lines that are asked for beside those of the loop, if it is worthwhile.
    #[inline(always)]
    #[must_use]
    pub fn hint(self) -> Option<Hint> {
        self.hint
    }
}

/// The rows of the table.
const ROWS: [TuningRow; 3] = [
    TuningRow {
        lookups: Hint::L2,
        ahead: 3,
        gather: false,
    },
    TuningRow {
        lookups: Hint::L1,
        ahead: 4,
        gather: false,
    },
    TuningRow {
        lookups: Hint::L1,
        ahead: 1,
        gather: true,
    },
];
const OTHERS: usize = 0;

#[cfg(any(lanebloom_loom, not(target_arch = "x86_64")))]
pub(super) fn tuning() -> TuningRow {
    ROWS[OTHERS]
}

/// The tuning for this CPU. It asks the CPU once: on a virtual machine that takes microseconds.
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
#[inline]
pub(super) fn tuning() -> TuningRow {
    use core::sync::atomic::{AtomicU8, Ordering};
    /// The number of the row, counted from 1; 0 before it is known.
    static ROW: AtomicU8 = AtomicU8::new(0);

    // Relaxed: nothing else is published by it, and all threads store the same.
    let row = match ROW.load(Ordering::Relaxed) {
        0 => {
            let row = row();
            ROW.store(row as u8 + 1, Ordering::Relaxed);
            row
        }
        row => usize::from(row) - 1,
    };
    ROWS[row]
}

#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
#[cold]
fn row() -> usize {
    use core::arch::x86_64::{__cpuid, __cpuid_count};

    // SAFETY: every x86-64 has the instruction, and leaves 0 and 1. (Newer compilers know that.)
    #[allow(unused_unsafe, reason = "unsafe for the oldest supported compiler")]
    let (first, signature, features) = unsafe {
        let first = __cpuid(0);
        let features = if first.eax >= 7 { __cpuid_count(7, 0).edx } else { 0 };
        (first, __cpuid(1).eax, features)
    };
    let family = match signature >> 8 & 0xf {
        0xf => 0xf + (signature >> 20 & 0xff),
        family => family,
    };
    row_of(first.ebx.to_le_bytes(), family, features >> 23 & 1 == 1)
}

/// `vendor` is the first four letters of the name, `fp16` whether there is AVX512-FP16.
#[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
fn row_of(vendor: [u8; 4], family: u32, fp16: bool) -> usize {
    match (&vendor, family, fp16) {
        (b"Auth", 26.., _) => 1,
        (b"Genu", _, true) => 2,
        _ => OTHERS,
    }
}

#[cfg(all(test, target_arch = "x86_64", not(lanebloom_loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_its_cpus() {
        let (zen_4, zen_5, zen_6) = (
            row_of(*b"Auth", 25, false),
            row_of(*b"Auth", 26, false),
            row_of(*b"Auth", 26, true),
        );
        let (ice_lake, sapphire_rapids) = (row_of(*b"Genu", 6, false), row_of(*b"Genu", 6, true));
        assert_eq!(
            [zen_4, zen_5, zen_6, ice_lake, sapphire_rapids],
            [OTHERS, 1, 1, OTHERS, 2]
        );
        assert!(ROWS[2].gather && !ROWS[1].gather && ROWS[1].lookups == Hint::L1);
        assert!(ROWS.iter().all(|row| row.ahead <= MOST_AHEAD));
        assert_eq!((tuning(), tuning()), (ROWS[row()], ROWS[row()]));
    }
}
