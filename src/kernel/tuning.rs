//! What was measured to be fastest on which CPU, for batches of lookups and inserts.
//!
//! | CPU | lines of lookups into | of inserts | keys ahead | lines asked for by groups | words by gather |
//! |---|---|---|--:|---|---|
//! | Zen 5 and later | L1 | L1, to write | 256 | from 16 MiB | no |
//! | Intel with AVX512-FP16 (Sapphire Rapids and later) | L1 | L1, to write | 64 | from 16 MiB | yes |
//! | others | L2 | L2 | 192 | beyond the caches | no |
//!
//! The distance counts to the next tile (64 keys). With AVX2 alone, every CPU asks by groups beyond
//! the caches, 64 keys ahead. A gather is slow on AMD's processors, and on
//! Intel's before Sapphire Rapids (microcode against Downfall).
//!
//! The two with and without gather differ in a second way (`x86_64/avx512.rs`): a product in a
//! vector takes three operations on Intel. So with gather the words of a pattern share products;
//! without, each word has one of its own. (Zen 4, lookups with shared products: 2 words 0.97 to
//! 1.05 times as fast, 4 words 0.88, 8 words 0.7.)
//!
//! Measured, ns per lookup, 1%, batches of 1024:
//!
//! - Zen 5 (`benches/record/peers-zen5.md`): 8 MiB, 64 keys ahead 2.4, 128 1.9, 192 1.6, 256 1.5.
//!   64 MiB: 3.1 into L1, 3.3 into L2. 32 KiB: 0.8, by gather 1.3. Inserts were not measured with
//!   other hints, nor lines asked for by groups.
//! - Sapphire Rapids, by prototypes: 8 MiB 3.6, and 1.5 times as long 192 ahead into L2. 512 KiB:
//!   1.2, by loads 2.0. 64 MiB: 5.3 by tiles, 4.5 by groups; in the caches, and inserts at 8 MiB,
//!   take 1.05 to 1.2 times as long by groups.
//! - Zen 4 (`benches/record/kernels-zen4.md`): 64 MiB, lookups 5.0 by tiles, 4.2 by groups. Fresh
//!   inserts 22 by tiles into L1 to write, by groups 14.1; by groups into L2 9.7. Present keys 10,
//!   9.4 and 4.4. (A hint to write seems to mark the line as changed, so that it is written back.)
//!   8 MiB: lookups are as fast either way; fresh inserts 9.2 and 8.1.
//! - Zen 3, AVX2, by prototypes: 64 MiB, 16 keys ahead 7.6, 32 7.25, 64 7.3, 192 7.7; by tiles 8.7
//!   and more. L1 and L2 alike.
//! - Intel with AMX, AVX2 forced: 8 MiB, 32 keys ahead 2.6, 64 2.7, 192 2.8, by tiles 3.1; 64 MiB
//!   10.9, 9.9, 10.2, and 11.5.
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
    /// The hint for lines that an insert or a remove will change.
    pub(super) changes: Hint,
    /// How many tiles ahead lines are asked for, if a key has one: at most [`MOST_AHEAD`].
    pub(super) ahead: usize,
    /// How many groups ahead vectors ask for lines by groups: at most those of [`MOST_AHEAD`]
    /// tiles.
    pub(super) groups_ahead: usize,
    /// From so many bytes of a filter on, vectors ask for the lines of a group between the work on
    /// two earlier ones; below, for those of a tile at once.
    pub(super) groups_from: usize,
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
    /// How many groups ahead, if lines are asked for by groups.
    pub(super) groups_ahead: usize,
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
        Self::of(is_cached, lines, |tuning| {
            if lines <= MOST_IN_L1 { tuning.changes } else { Hint::L2 }
        })
    }

    #[inline(always)]
    fn of(is_cached: bool, lines: usize, hint: impl Fn(TuningRow) -> Hint) -> Self {
        if is_cached {
            return Self {
                hint: None,
                ahead: 0,
                groups_ahead: 0,
                log_tile: TILE.ilog2(),
            };
        }
        let tuning = tuning();
        let access = Self {
            hint: Some(hint(tuning)),
            // The distance is one of lines.
            ahead: (tuning.ahead / lines).max(1),
            groups_ahead: tuning.groups_ahead,
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
        changes: Hint::L2,
        ahead: 3,
        groups_ahead: 24,
        groups_from: 0,
        gather: false,
    },
    TuningRow {
        lookups: Hint::L1,
        changes: Hint::L1Write,
        ahead: 4,
        groups_ahead: 32,
        groups_from: 16 << 20,
        gather: false,
    },
    TuningRow {
        lookups: Hint::L1,
        changes: Hint::L1Write,
        ahead: 1,
        groups_ahead: 8,
        groups_from: 16 << 20,
        gather: true,
    },
];
const OTHERS: usize = 0;

/// The CPUs of the rows.
const NAMES: [&str; ROWS.len()] = ["others", "Zen 5 and later", "Intel with AVX512-FP16"];

/// The CPUs for which the tuning in use was measured, for records.
#[must_use]
pub fn tuning_name() -> &'static str {
    let row = ROWS.iter().position(|&row| row == tuning());
    NAMES[row.expect("it is one of the rows")]
}

impl TuningRow {
    /// For AVX2, whose work on a group takes longer: fewer keys ahead, and by groups wherever lines
    /// are asked for at all.
    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    pub(super) fn of_avx2(self) -> Self {
        Self {
            groups_ahead: 8,
            groups_from: 0,
            ..self
        }
    }
}

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
        assert_eq!(tuning_name(), NAMES[row()]);
    }
}
