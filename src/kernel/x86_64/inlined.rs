//! The single calls that are inlined in place of a call by a pointer, which takes as long as a
//! whole lookup (Zen 3: 1.54 ns for a call of an empty function). By assembly, so that they are
//! inlined into code that is compiled for older CPUs.
//!
//! For patterns of two words from one product, the most usual ones: with BITALG and with AVX2. The
//! 128-bit instructions of AVX leave the upper halves of the registers clean, so older code runs on
//! without a penalty. Tried and not taken:
//!
//! - Patterns of one word: on an Intel with AMX no faster than by a pointer, and the shift that
//!   they have as data made those of two words 4% slower.
//! - Four words by AVX2, as a third way: 0.69 to 0.80 times the time of a pointer where the
//!   compiler copies the caller's loop for each way. Some callers then get no copies, and two words
//!   take 1.4 times as long (Zen 5, `benches/record/avx2-four-words-zen5.md`).

#[cfg(lanebloom_rust_1_89)]
use super::bitalg;
use super::loads::{self, Pair, line_of};
use crate::geometry::layout::LINE_WORDS;
use crate::geometry::pattern::product;
use crate::words::bits::{Lines, Load, add_missing};
use crate::words::sync::AtomicU64;

/// The single calls of one filter: by one of the two, or else by a pointer.
///
/// (Not an enum: the compiler makes copies of a caller's loop for two branches, and none for a
/// switch of three ways. Then 3.3 ns for a `u64` became 3.7, Intel with AMX.)
#[derive(Clone, Copy, Debug)]
pub(in crate::kernel) struct Inlined {
    #[cfg(lanebloom_rust_1_89)]
    bitalg: Option<bitalg::Pair>,
    avx2: Option<Pair>,
}

impl Inlined {
    pub(in crate::kernel) const NONE: Self = Self {
        #[cfg(lanebloom_rust_1_89)]
        bitalg: None,
        avx2: None,
    };

    /// For patterns of two words from one product.
    #[cfg(lanebloom_rust_1_89)]
    pub(super) fn bitalg(bits: usize) -> Self {
        let bitalg = Some(bitalg::Pair::of(bits));
        Self { bitalg, ..Self::NONE }
    }

    /// For patterns of two words from one product.
    pub(super) fn avx2(bits: usize) -> Self {
        let avx2 = Some(Pair::of(bits));
        Self { avx2, ..Self::NONE }
    }

    #[inline(always)]
    pub(in crate::kernel) fn is_some(&self) -> bool {
        #[cfg(lanebloom_rust_1_89)]
        if self.bitalg.is_some() {
            return true;
        }
        self.avx2.is_some()
    }

    /// # Safety
    ///
    /// The CPU has the level that this was made for.
    #[inline(always)]
    pub(in crate::kernel) unsafe fn contains<T: Load>(&self, lines: Lines<'_, T>, hash: u64) -> Option<bool> {
        // SAFETY: as promised.
        unsafe {
            #[cfg(lanebloom_rust_1_89)]
            if let Some(pair) = &self.bitalg {
                return Some(pair.contains(lines, hash));
            }
            let pair = self.avx2.as_ref()?;
            Some(pair.contains(lines, hash))
        }
    }

    /// Calls `answer` with what belongs to each hash, and whether the hash is found: by `otherwise`
    /// if no call is inlined. A loop for each way, since the compiler makes them of one loop only
    /// where that loop stands in no other.
    ///
    /// # Safety
    ///
    /// As for [`contains`](Self::contains).
    #[inline(always)]
    pub(in crate::kernel) unsafe fn contains_each<T: Load, P>(
        &self,
        lines: Lines<'_, T>,
        hashes: impl Iterator<Item = (u64, P)>,
        mut answer: impl FnMut(P, bool),
        otherwise: impl Fn(u64) -> bool,
    ) {
        // SAFETY: as promised.
        unsafe {
            #[cfg(lanebloom_rust_1_89)]
            if let Some(pair) = &self.bitalg {
                return hashes.for_each(|(hash, of_hash)| answer(of_hash, pair.contains(lines, hash)));
            }
            if let Some(pair) = &self.avx2 {
                return hashes.for_each(|(hash, of_hash)| answer(of_hash, pair.contains(lines, hash)));
            }
        }
        hashes.for_each(|(hash, of_hash)| answer(of_hash, otherwise(hash)));
    }

    /// Inserts the hash, and returns whether that changed the filter. `missing` does so for a hash
    /// that was looked up and not found.
    ///
    /// # Safety
    ///
    /// As for [`contains`](Self::contains).
    #[inline(always)]
    pub(in crate::kernel) unsafe fn insert(
        &self,
        lines: Lines<'_, AtomicU64>,
        hash: u64,
        missing: impl FnOnce() -> bool,
    ) -> Option<bool> {
        // SAFETY: as promised.
        unsafe {
            #[cfg(lanebloom_rust_1_89)]
            if let Some(pair) = &self.bitalg {
                return Some(!pair.contains(lines, hash) && missing());
            }
            #[cfg(not(lanebloom_rust_1_89))]
            let _ = missing;
            let pair = self.avx2.as_ref()?;
            Some(pair.insert(lines, hash))
        }
    }
}

impl Pair {
    /// The product, the line of the hash, and the numbers of the two words in the line's halves.
    #[inline(always)]
    fn place<T>(&self, lines: Lines<'_, T>, hash: u64) -> (u64, *const T, [u64; 2]) {
        let product = product(hash);
        (
            product,
            line_of(lines, hash),
            [product >> 62, product >> self.select.get() & 3],
        )
    }

    /// # Safety
    ///
    /// The CPU has AVX2 and BMI2.
    #[inline(always)]
    unsafe fn contains<T: Load>(&self, lines: Lines<'_, T>, hash: u64) -> bool {
        // SAFETY: the words are those of a line of the filter: two bits select one of a half.
        unsafe {
            if T::COUNTERS {
                let (product, line, [first, second]) = self.place(lines, hash);
                return loads::words_hold(loads::two::<2, T>(line, first, second), product, self);
            }
            loads::pair_holds(lines, hash, self)
        }
    }

    /// # Safety
    ///
    /// The CPU has AVX2.
    #[inline(always)]
    unsafe fn insert(&self, lines: Lines<'_, AtomicU64>, hash: u64) -> bool {
        let (product, line, [first, second]) = self.place(lines, hash);
        // SAFETY: as in `contains`. The words live as long as the lines.
        unsafe {
            let Some(missing) = loads::pair_lacks(line, first, second, product, self) else {
                return false;
            };
            let words = [&*line.add(first as usize), &*line.add(LINE_WORDS / 2 + second as usize)];
            add_missing(words, missing)
        }
    }
}
