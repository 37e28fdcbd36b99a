//! The ladder: what a batch takes by its length, the filter's size and shape, and the CPU, as a
//! [`Plan`]. `call.rs` and the filters ask here, and compare no length themselves. (A plan is a
//! name. The function comes from the row of a table, so that a filter keeps no pointer.) Two
//! lengths are compared elsewhere: whether a bulk insert pays (`sorted_insert.rs`), and how many
//! hashes a chunk of a growing filter has room for.
//!
//! A filter has a [`Ladder`] for lookups and one for inserts, made with its kernels. Keys that are
//! still to be hashed have one for all filters ([`Plan::of_keys`]).
//!
//! # The fastest settings, by CPU
//!
//! | CPU | lines of lookups into | of inserts | keys ahead | prefetch by groups |
//! |---|---|---|--:|---|
//! | Zen 5 and later | L1 | L1, to write | 256 | from 16 MiB |
//! | Intel with AVX512-FP16 (Sapphire Rapids and later) | L1 | L1, to write | 64 | from 16 MiB |
//! | others | L2 | L2 | 192 | beyond the caches |
//!
//! The distance counts to the next tile (64 keys). With AVX2 alone, every CPU prefetches by groups
//! beyond the caches, 64 keys ahead.
//!
//! `benches/record/prefetch-distances.md` has the figures, with an earlier layout's patterns, which
//! took about as long. Other CPUs were not measured.

use crate::words::bits::Hint;

/// The way that a batch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Single calls, one after another, which the processor overlaps by itself.
    Single,
    /// Lines prefetched together, then single lookups in one function. At most a tile, whose
    /// answers are a word. (Intel with AMX, flags of 32 and 64 by groups and by a pipeline: 0.96
    /// and 1.32 ns, 0.83 and 0.96 at 32 KiB; of 32 13.1 and 17.4 at 64 MiB. 24 to 31 take 1.06
    /// times as long as with room for 32 alone.)
    Few,
    /// Keys that are hashed by vectors, a few; their hashes are looked up as `Few`.
    Groups,
    /// A `Pipeline` whose answers fit a word of a bitmap: at most 64.
    Tile,
    /// Chunks, by tiles or groups, lines prefetched far ahead. It takes longer to begin.
    Pipeline,
}

/// The model checker has batches of one key, and is to see their loops.
const IS_CHECKED: bool = cfg!(lanebloom_loom);

impl Plan {
    /// Whether the answers fit into a word.
    #[inline(always)]
    #[must_use]
    pub const fn is_few(self) -> bool {
        !matches!(self, Self::Pipeline)
    }

    /// Whether single calls are as fast.
    #[inline(always)]
    #[must_use]
    pub const fn is_single(self) -> bool {
        matches!(self, Self::Single)
    }

    /// For lookups of this many keys that are not hashed yet: how they are hashed.
    ///
    /// Few are hashed one by one: they do not fill a vector, and a hash that a vector stored is
    /// read back late. (Intel with AMX, 32 KiB, 8 keys: 3.2 ns, by vectors 5.6.)
    #[inline(always)]
    #[must_use]
    pub const fn of_keys(keys: usize) -> Self {
        Ladder::of_lookups_from(if IS_CHECKED { 1 } else { 5 }, 16, TILE + 1).plan(keys)
    }

    /// [`of_keys`](Self::of_keys) for inserts. A few are hashed one by one; whether single
    /// calls insert them is the filter's plan, since the call for a few takes 3 ns. (Present `u64`
    /// keys, 32 KiB, one by one and as a few. Zen 5, AVX-512: 4 keys 2.8 and 3.6 ns, 8 keys 2.8 and
    /// 3.2. Intel with AMX: 3.4 and 3.5, 3.4 and 3.1; by AVX2 4.6 and 4.2, 4.6 and 3.8.)
    ///
    /// (Intel with AMX, 32 new hashes, as a few and by a pipeline: 12.4 and 11.1 ns at 32 KiB, 19.6
    /// and 17.3 at 8 MiB. Present ones: 1.4 and 1.5, 3.8 and 4.8.)
    #[inline(always)]
    #[must_use]
    pub const fn of_inserts(keys: usize) -> Self {
        Ladder {
            few: FEW_INSERTS,
            groups: 16,
            tile: FEWEST_INSERTS_IN_A_PIPELINE,
            pipeline: FEWEST_INSERTS_IN_A_PIPELINE,
        }
        .plan(keys)
    }

    /// For lookups of hashes where a filter has no ladder of its own.
    #[inline(always)]
    #[must_use]
    pub const fn of_hashes(hashes: usize) -> Self {
        Ladder::of_lookups_from(2, 2, 2).plan(hashes)
    }

    /// For lookups by scalar code without branches, which the processor overlaps by itself.
    #[inline(always)]
    #[must_use]
    pub const fn of_plain(hashes: usize) -> Self {
        Ladder::of_lookups_from(2, 32, 32).plan(hashes)
    }
}

/// Batches shorter than this are inserted one key at a time.
const FEW_INSERTS: usize = if IS_CHECKED { 1 } else { 4 };

/// (For loom, what `sorted_insert.rs` calls a dense batch.)
const FEWEST_INSERTS_IN_A_PIPELINE: usize = if IS_CHECKED { 2 } else { 32 };

/// Smallest in-cache batch that vectors of eight keys look up, and that no single calls insert.
/// (Zen 5, AVX-512, 1%, 32 KiB: flags of 16 take 1.34 ns by a pipeline, of 24 1.05, of 32 0.90;
/// single calls take 1.1. At 64 MiB 16 take 4.7, single calls 13.)
const IN_WIDE_VECTORS: usize = 24;

/// The smallest batches for each [`Plan`] after the first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ladder {
    few: usize,
    groups: usize,
    tile: usize,
    pipeline: usize,
}

impl Ladder {
    /// The plan of a batch of this length.
    #[inline(always)]
    pub(crate) const fn plan(self, len: usize) -> Plan {
        if len < self.few {
            Plan::Single
        } else if len >= self.pipeline {
            Plan::Pipeline
        } else if len >= self.tile {
            Plan::Tile
        } else if len >= self.groups {
            Plan::Groups
        } else {
            Plan::Few
        }
    }

    const fn of_lookups_from(few: usize, groups: usize, tile: usize) -> Self {
        Self {
            few,
            groups,
            tile,
            pipeline: TILE + 1,
        }
    }

    /// For lookups in a filter of this many `bytes`, with single calls that are inlined or not, and
    /// batches by wide vectors, of eight keys, or not.
    ///
    /// Single calls in the caches: up to where a batch is faster, or a function for a few, which
    /// has the lookups inlined. Beyond the caches: up to where prefetches are faster, which takes
    /// longer if single lookups are inlined. (Intel with AMX, AVX2 forced, inlined: 48 flags take
    /// 1.5 ns one by one and 1.85 by a pipeline at 32 KiB, 3.3 and 3.7 at 8 MiB, 16.3 and 15.0 at
    /// 64 MiB.)
    pub(super) const fn of_lookups(bytes: usize, is_inlined: bool, is_wide: bool) -> Self {
        let few = match (is_inlined, is_cached(bytes)) {
            (true, true) if is_wide => IN_WIDE_VECTORS,
            (true, false) if is_wide => 16,
            (true, true) => TILE,
            (true, false) => 48,
            (false, true) => 16,
            (false, false) => 8,
        };
        Self::of_lookups_from(few, 16, 16)
    }

    /// For inserts into the same filter.
    ///
    /// Beyond the caches a batch prefetches its lines before the first atomic operation. (Zen 4, 64
    /// MiB, four new keys, one by one and as a batch: two words 53 and 52 ns, four words 89 and 62.
    /// Four present ones: 14 and 22, 29 and 27. Eight new ones of two words: 50 and 32.)
    pub(super) const fn for_inserts(self, bytes: usize, is_inlined: bool) -> Self {
        let few = match (is_inlined, is_cached(bytes)) {
            _ if IS_CHECKED => FEW_INSERTS,
            (_, true) if self.few > IN_WIDE_VECTORS => IN_WIDE_VECTORS,
            (_, true) => self.few,
            (true, false) => 8,
            (false, false) => FEW_INSERTS,
        };
        Self {
            few,
            groups: 16,
            tile: 16,
            pipeline: FEWEST_INSERTS_IN_A_PIPELINE,
        }
    }
}

/// Filters of at most this size, in bytes, are looked up without prefetching: waiting for L2 or the
/// nearer part of L3 costs less than the prefetches. (Zen 4, AVX-512, ns without and with: 1.4 and
/// 1.75 at 1 MiB, 1.5 and 1.7 at 2 MiB, 2.0 and 1.8 at 8 MiB.)
const CACHED_BYTES: usize = 2 << 20;

/// Whether lookups in a filter of this size, in bytes, do without prefetching.
#[inline(always)]
const fn is_cached(bytes: usize) -> bool {
    bytes <= CACHED_BYTES
}

/// The most tiles by which lines are prefetched ahead: `pipeline.rs` and `tiles.rs` keep the places
/// of this many.
pub(super) const MOST_AHEAD: usize = 4;

/// How batches are read on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tuning {
    /// The hint for lines that a lookup will read.
    pub(super) lookups: Hint,
    /// The hint for lines that an insert or a remove will change.
    pub(super) changes: Hint,
    /// How many tiles ahead lines are prefetched, if a key has one: at most [`MOST_AHEAD`].
    pub(super) ahead: usize,
    /// How many groups ahead vectors prefetch lines by groups: at most those of [`MOST_AHEAD`]
    /// tiles.
    pub(super) groups_ahead: usize,
    /// Filters of at least this many bytes prefetch per group, between the work on two earlier
    /// groups; smaller ones prefetch per tile.
    pub(super) groups_from: usize,
}

/// The most keys of a tile: as many as a word of a bitmap has bits.
pub(crate) const TILE: usize = 64;

/// Keys of a group: as many as the widest vectors hold. The kernels take no fewer.
pub(crate) const GROUP: usize = 8;

/// The most lines that a tile prefetches: 32 KiB, a part of L2.
const LINES: usize = 512;

/// Keys with more lines than this prefetch into L2 in place of L1: a tile's are 16 KiB, a third of
/// L1. (Chosen by this size, not measured.)
const MOST_IN_L1: usize = 4;

/// How a batch comes to its words.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(lanebloom_avx512), allow(dead_code, reason = "a part is for vectors"))]
pub struct Prefetching {
    /// The hint by which lines are prefetched, if at all.
    pub(super) hint: Option<Hint>,
    /// How many tiles ahead.
    pub(super) ahead: usize,
    /// How many groups ahead; 0 if lines are prefetched by tiles.
    pub(super) groups_ahead: usize,
    /// Keys of a tile, as a power of two: no tile straddles two words of a bitmap.
    pub(super) log_tile: u32,
}

/// For `tiles.rs`.
impl Prefetching {
    /// The most keys of a tile.
    pub const TILE: usize = TILE;

    /// The most lines that a tile prefetches.
    pub const LINES: usize = LINES;

    /// Whether batches prefetch the lines of a filter of this many `bytes`.
    #[inline(always)]
    #[must_use]
    pub const fn prefetches(bytes: usize) -> bool {
        !is_cached(bytes)
    }

    /// For batches of lookups in a filter of this many `bytes`, of which a key touches this many
    /// `lines`.
    #[inline(always)]
    #[must_use]
    pub fn lookups(bytes: usize, lines: usize) -> Self {
        Self::of(
            bytes,
            lines,
            |tuning| if lines == 1 { tuning.lookups } else { Hint::L2 },
        )
    }

    /// For batches of inserts or removes.
    #[inline(always)]
    #[must_use]
    pub fn changes(bytes: usize, lines: usize) -> Self {
        Self::of(bytes, lines, |tuning| {
            if lines <= MOST_IN_L1 { tuning.changes } else { Hint::L2 }
        })
    }

    #[inline(always)]
    fn of(bytes: usize, lines: usize, hint: impl Fn(Tuning) -> Hint) -> Self {
        if is_cached(bytes) {
            return Self {
                hint: None,
                ahead: 0,
                groups_ahead: 0,
                log_tile: TILE.ilog2(),
            };
        }
        let tuning = tuning();
        let prefetching = Self {
            // The distance is one of lines.
            ahead: (tuning.ahead / lines).max(1),
            ..tuning.prefetching(bytes, hint(tuning))
        };
        prefetching.of_lines(lines)
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

    /// The ring, of two, that has the tile of the key with this number, and its position in the
    /// tile.
    #[inline(always)]
    #[must_use]
    pub fn in_rings(self, key: usize) -> (usize, usize) {
        (key >> self.log_tile & 1, key & (self.tile() - 1))
    }

    /// The form of a pipeline (`tables.rs`): 0 prefetches by tiles, 1 by groups.
    pub(super) fn form(self) -> usize {
        usize::from(self.groups_ahead > 0)
    }

    /// The hint for lines that are prefetched beside those of the loop. `None` if no prefetch is
    /// worthwhile.
    #[inline(always)]
    #[must_use]
    pub fn hint(self) -> Option<Hint> {
        self.hint
    }
}

/// The rows of the table.
const ROWS: [Tuning; 3] = [
    Tuning {
        lookups: Hint::L2,
        changes: Hint::L2,
        ahead: 3,
        groups_ahead: 24,
        groups_from: 0,
    },
    Tuning {
        lookups: Hint::L1,
        changes: Hint::L1Write,
        ahead: 4,
        groups_ahead: 32,
        groups_from: 16 << 20,
    },
    Tuning {
        lookups: Hint::L1,
        changes: Hint::L1Write,
        ahead: 1,
        groups_ahead: 8,
        groups_from: 16 << 20,
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

impl Tuning {
    /// How a batch reaches the words of a target of this many bytes, if a key has one line.
    #[inline(always)]
    pub(super) fn prefetching(self, bytes: usize, hint: Hint) -> Prefetching {
        let by_groups = !is_cached(bytes) && bytes >= self.groups_from;
        Prefetching {
            hint: (!is_cached(bytes)).then_some(hint),
            ahead: self.ahead,
            groups_ahead: if by_groups { self.groups_ahead } else { 0 },
            log_tile: TILE.ilog2(),
        }
    }

    /// For AVX2, whose work on a group takes longer: fewer keys ahead, and by groups wherever lines
    /// are prefetched at all.
    #[cfg(lanebloom_x86_64)]
    pub(super) fn of_avx2(self) -> Self {
        Self {
            groups_ahead: 8,
            groups_from: 0,
            ..self
        }
    }
}

#[cfg(not(lanebloom_x86_64))]
pub(super) fn tuning() -> Tuning {
    ROWS[OTHERS]
}

/// The tuning for this CPU. It asks the CPU once: on a virtual machine that takes microseconds.
#[cfg(lanebloom_x86_64)]
#[inline]
pub(super) fn tuning() -> Tuning {
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

#[cfg(lanebloom_x86_64)]
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
#[cfg(lanebloom_x86_64)]
fn row_of(vendor: [u8; 4], family: u32, fp16: bool) -> usize {
    match (&vendor, family, fp16) {
        (b"Auth", 26.., _) => 1,
        (b"Genu", _, true) => 2,
        _ => OTHERS,
    }
}

#[cfg(all(test, lanebloom_x86_64))]
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
        assert!(ROWS[1].lookups == Hint::L1);
        assert!(ROWS.iter().all(|row| row.ahead <= MOST_AHEAD));
        assert_eq!((tuning(), tuning()), (ROWS[row()], ROWS[row()]));
        assert_eq!(tuning_name(), NAMES[row()]);
    }
}
