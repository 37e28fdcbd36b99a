//! The lines of atomics: allocated, loaded, OR-ed, prefetched. Takes places from `pattern.rs`, knows no hashes;
//! every memory ordering of the filter is argued here.
//!
//! | operation | ordering | partner, and why |
//! |---|---|---|
//! | `set`: look at the word first | load `Relaxed` | if the bits are there nothing is written; who relies on what their setters did before calls [`acquire`] after |
//! | `set`: add the bits that lack | `fetch_or` `Release` | makes what the inserter did before visible to whoever sees the bits and calls [`acquire`]; later `fetch_or`s of the word continue the release sequence, so no inserter's is cut off by another's |
//! | `holds`, `load` | load `Relaxed` | as the look in `set` |
//! | [`acquire`] after an answer that rests on bits seen | fence `Acquire` | pairs with the `fetch_or` of everyone whose bits were seen; nothing on x86-64, one barrier on Arm |
//! | `or_from`: read the other filter's words | load `Acquire` | pairs with its inserters' `fetch_or`, and stands before our own `Release`, so that publication passes through the union |
//! | `or_from`: add them | `fetch_or` `Release` | as in `set` |
//! | `words`, `try_clone` | load `Relaxed`, then [`acquire`] | one barrier for the whole copy |
//!
//! No false negative needs no more than this: a word's bits are only ever added while it is shared, so once an
//! insert happened before a lookup, coherence alone makes the lookup's load see the bits, whether
//! the insert wrote them or found them there.

use crate::error::{BuildError, BuildErrorKind};
use crate::pattern::Place;
use crate::sizing::{LINE_BYTES, LINE_WORDS};
use crate::sync::{AtomicU64, Ordering, fence};
use alloc::boxed::Box;
use alloc::vec::Vec;

/// One block: a cache line. The alignment is what keeps a key's words within one line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; LINE_WORDS]);

/// The bit array of a blocked filter, in lines.
#[derive(Debug)]
pub(crate) struct Bits {
    lines: Box<[Line]>,
}

/// What a line is prefetched for.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Later,
    Read,
    Write,
}

/// Makes visible what was done, before they set them, by the threads whose bits this thread has seen. Pairs with
/// the `Release` of `set` and `or_from`.
#[inline(always)]
pub(crate) fn acquire() {
    fence(Ordering::Acquire);
}

/// [`acquire`], where `seen` says that there is something to see.
///
/// On x86-64 the fence is no instruction, and the branch around it would be mispredicted as often as the answer
/// varies: 13 ns for a lookup that takes 4.
#[inline(always)]
pub(crate) fn acquire_if(seen: bool) {
    if cfg!(all(target_arch = "x86_64", not(lanebloom_loom))) || seen {
        acquire();
    }
}

impl Bits {
    /// `blocks` lines of zeros, or an error where the memory is not to be had.
    pub(crate) fn new(blocks: usize) -> Result<Self, BuildError> {
        let mut lines = Vec::new();
        lines.try_reserve_exact(blocks).map_err(|_| {
            BuildError(BuildErrorKind::OutOfMemory {
                bytes: blocks.saturating_mul(LINE_BYTES),
            })
        })?;
        huge_pages::ask(&mut lines.spare_capacity_mut()[..blocks]);
        lines.resize_with(blocks, Line::default);
        Ok(Self {
            lines: lines.into_boxed_slice(),
        })
    }

    pub(crate) fn blocks(&self) -> usize {
        self.lines.len()
    }

    /// Whether all of the pattern's bits are set in the line.
    ///
    /// All words are tested, whatever the first says: they are in one line, and a branch on one would be mispredicted
    /// as often as the answer varies.
    ///
    /// `VECTOR` says that this is compiled for a CPU with vectors: masks are then made by vector shifts, 2.9 ns for a lookup
    /// in L1 (Zen 3, AVX2). Without, x86-64 has only `bts` for it, two operations a bit, and 4.7 ns; to shift each bit
    /// down out of its word takes 3.6.
    #[inline(always)]
    pub(crate) fn holds<const W: usize, const S: usize, const VECTOR: bool>(
        &self,
        block: usize,
        pattern: [Place<S>; W],
    ) -> bool {
        let line = &self.lines[block].0;
        if VECTOR {
            let lacks = |place: Place<S>| place.mask() & !line[place.word].load(Ordering::Relaxed);
            pattern.map(lacks).into_iter().fold(0, |all, lacks| all | lacks) == 0
        } else {
            let mut all = 1;
            for place in pattern {
                let word = line[place.word].load(Ordering::Relaxed);
                for bit in place.bits {
                    all &= word >> bit;
                }
            }
            all & 1 == 1
        }
    }

    /// Sets the pattern's bits in the line; whether this call set any of them.
    #[inline(always)]
    pub(crate) fn set<const W: usize, const S: usize>(&self, block: usize, pattern: [Place<S>; W]) -> bool {
        let line = &self.lines[block].0;
        let mut places = [(&line[0], 0); W];
        for (to, place) in places.iter_mut().zip(pattern) {
            *to = (&line[place.word], place.mask());
        }
        set(places)
    }

    /// Asks for the line to be brought near: from memory, to be used somewhat later, or into L1, to be read or to be written by
    /// this core alone. No harm if there is no such line.
    #[inline(always)]
    pub(crate) fn prefetch(&self, block: usize, purpose: Purpose) {
        let line = self.lines.as_ptr().wrapping_add(block);
        match purpose {
            Purpose::Later => prefetch::later(line),
            Purpose::Read => prefetch::read(line),
            Purpose::Write => prefetch::write(line),
        }
    }

    /// ORs all of `other` into this; whether that set any bit. Both may be in use meanwhile.
    ///
    /// The two must have the same number of lines.
    pub(crate) fn or_from(&self, other: &Self) -> bool {
        debug_assert_eq!(self.blocks(), other.blocks());
        let mut changed = false;
        for (ours, theirs) in self.lines.iter().zip(&other.lines) {
            for (word, from) in ours.0.iter().zip(&theirs.0) {
                let lacking = from.load(Ordering::Acquire) & !word.load(Ordering::Relaxed);
                changed |= lacking != 0 && add(word, lacking);
            }
        }
        changed
    }

    /// The words of every line, one after another. Beside inserts each word is some value that it had
    /// meanwhile; call [`acquire`] after the last.
    pub(crate) fn words(&self) -> impl Iterator<Item = [u64; LINE_WORDS]> {
        self.lines
            .iter()
            .map(|line| core::array::from_fn(|i| line.0[i].load(Ordering::Relaxed)))
    }

    /// A copy that holds at least every bit whose setting happened before.
    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        let copy = Self::new(self.blocks())?;
        for (line, words) in copy.lines.iter().zip(self.words()) {
            for (word, value) in line.0.iter().zip(words) {
                // No other thread knows the copy yet.
                word.store(value, Ordering::Relaxed);
            }
        }
        acquire();
        Ok(copy)
    }

    /// Unsets all bits.
    pub(crate) fn clear(&mut self) {
        self.lines.fill_with(Line::default);
    }
}

/// A flat array, for a filter whose keys have their bits anywhere: bits by their places in the whole array. What orders the
/// memory is said at the top of this file: `bit` is `load`, and `add_bit` the second half of `set`.
impl Bits {
    /// Whether the bit is set, in the lowest bit of the result; the others are other bits.
    #[inline(always)]
    pub(crate) fn bit(&self, place: u64) -> u64 {
        self.atomic_word((place / 64) as usize).load(Ordering::Relaxed) >> (place % 64)
    }

    /// Sets the bit; whether it was this call that did.
    #[inline(always)]
    pub(crate) fn add_bit(&self, place: u64) -> bool {
        add(self.atomic_word((place / 64) as usize), 1 << (place % 64))
    }

    /// Asks for the bit's line, as [`prefetch`](Self::prefetch) does.
    #[inline(always)]
    pub(crate) fn prefetch_bit(&self, place: u64, purpose: Purpose) {
        self.prefetch((place / 64) as usize / LINE_WORDS, purpose);
    }

    /// Sets words from `first` on, while no other thread knows of the array.
    pub(crate) fn store_words(&mut self, first: usize, values: impl IntoIterator<Item = u64>) {
        for (number, value) in (first..).zip(values) {
            self.atomic_word(number).store(value, Ordering::Relaxed);
        }
    }

    /// By one check of bounds: by line and word within it a lookup takes 1.5 times as long.
    #[cfg(not(lanebloom_loom))]
    #[inline(always)]
    fn atomic_word(&self, number: usize) -> &AtomicU64 {
        &self.flat()[number]
    }

    /// The model checker's words are larger, and so may be its lines.
    #[cfg(lanebloom_loom)]
    fn atomic_word(&self, number: usize) -> &AtomicU64 {
        &self.lines[number / LINE_WORDS].0[number % LINE_WORDS]
    }

    /// The words of all lines as one slice.
    #[cfg(not(lanebloom_loom))]
    #[inline(always)]
    fn flat(&self) -> &[AtomicU64] {
        const { assert!(size_of::<Line>() == LINE_WORDS * size_of::<AtomicU64>()) };
        // SAFETY: by its size, just checked, and its representation a `Line` is its words one after another without a gap, and
        // so are the lines of a slice. The slice borrows `self`, as `lines` does.
        unsafe { core::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * LINE_WORDS) }
    }
}

/// For vectors: by the numbers of words in the whole array, of several hashes at once.
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(lanebloom_loom)))]
impl Bits {
    /// [`set`](Self::set) of one hash of a group, by the numbers of the words in the whole array, and their masks. (Loops here, as
    /// in `set`: `map` and `from_fn` are not always inlined.)
    #[inline(always)]
    pub(crate) fn set_in_group<const W: usize, const N: usize>(
        &self,
        words: &[[u64; N]; W],
        masks: &[[u64; N]; W],
        hash: usize,
    ) -> bool {
        let all = self.flat();
        let mut places = [(&all[0], 0); W];
        for i in 0..W {
            places[i] = (&all[words[i][hash] as usize], masks[i][hash]);
        }
        set(places)
    }

    /// What each of these words of the array is now.
    ///
    /// # Safety
    ///
    /// Each is one of the array's: below 8 times [`blocks`](Self::blocks). (To check it costs a tenth of a lookup in L1.)
    #[inline(always)]
    pub(crate) unsafe fn load<const W: usize, const N: usize>(&self, words: &[[u64; N]; W], into: &mut [[u64; N]; W]) {
        let all = self.flat();
        for (&word, into) in words.as_flattened().iter().zip(into.as_flattened_mut()) {
            debug_assert!(word < all.len() as u64);
            // SAFETY: by the caller's promise the word is there.
            *into = unsafe { all.get_unchecked(word as usize) }.load(Ordering::Relaxed);
        }
    }
}

/// Adds to each word what it lacks of its mask; whether this call added any.
///
/// Looks before it writes: a locked operation costs 2.5 ns (Zen 3) to 5 (Zen 5) even in L1, a load next to nothing,
/// and a line that is only read stays in the caches of all cores. One branch says that nothing is lacking, so that a
/// present key costs what a lookup does.
#[inline(always)]
fn set<const W: usize>(words: [(&AtomicU64, u64); W]) -> bool {
    let mut lacking = [0; W];
    for (lacking, (word, mask)) in lacking.iter_mut().zip(words) {
        *lacking = mask & !word.load(Ordering::Relaxed);
    }
    if lacking.iter().fold(0, |all, lacking| all | lacking) == 0 {
        return false;
    }
    let mut changed = false;
    for ((word, _), lacking) in words.into_iter().zip(lacking) {
        changed |= lacking != 0 && add(word, lacking);
    }
    changed
}

/// Adds the bits of `mask` to `word`; whether this call added any.
#[inline(always)]
fn add(word: &AtomicU64, mask: u64) -> bool {
    word.fetch_or(mask, Ordering::Release) & mask != mask
}

/// Large filters in pages of 2 MiB where the system has them: with pages of 4 KiB every access to a filter beyond the reach
/// of the TLB waits for a walk through the page tables, prefetched or not. (Lookups in batches, AVX-512, Zen 4:
/// 5.9 ns at 64 MiB and 8.5 at 512 MiB without, 4.4 and 6.1 with them.) What comes of the request is not known, and
/// does no harm if it is nothing.
mod huge_pages {
    use core::mem::MaybeUninit;

    #[cfg(all(target_os = "linux", not(lanebloom_loom)))]
    pub(super) fn ask<T>(memory: &mut [MaybeUninit<T>]) {
        use rustix::mm::{Advice, madvise};
        /// The least that is worth asking for, in bytes: two huge pages.
        const WORTHWHILE: usize = 4 << 20;
        /// A multiple of the page size of every Linux, in bytes: the advice is for whole pages.
        const PAGE: usize = 64 << 10;

        let range = memory.as_mut_ptr_range();
        let pages = range
            .start
            .cast::<u8>()
            .wrapping_add(range.start.addr().next_multiple_of(PAGE) - range.start.addr());
        let bytes = range.end.addr().saturating_sub(pages.addr()) / PAGE * PAGE;
        if bytes >= WORTHWHILE {
            // SAFETY: the pages lie in `memory`, which nobody else uses, and the advice changes nothing of what they hold.
            // That it may fail is no harm: then the pages are small.
            let _ = unsafe { madvise(pages.cast(), bytes, Advice::LinuxHugepage) };
        }
    }

    #[cfg(any(not(target_os = "linux"), lanebloom_loom))]
    pub(super) fn ask<T>(_memory: &mut [MaybeUninit<T>]) {}
}

/// Hints that change no value: neither their address nor their timing can make a program wrong.
mod prefetch {
    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    #[inline(always)]
    pub(super) fn later<T>(line: *const T) {
        use core::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        // SAFETY: SSE, which the intrinsic needs, is part of every x86-64; a prefetch accesses no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.cast()) }
    }

    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    #[inline(always)]
    pub(super) fn read<T>(line: *const T) {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.cast()) }
    }

    /// By `asm!`, since the compiler turns its own write hint into a read hint where the target does not declare
    /// PRFCHW. The opcode is a no-op on the x86-64 processors that lack it.
    #[cfg(all(target_arch = "x86_64", not(lanebloom_loom)))]
    #[inline(always)]
    pub(super) fn write<T>(line: *const T) {
        // SAFETY: a prefetch accesses no memory, changes no register and no flag, and cannot fault.
        unsafe { core::arch::asm!("prefetchw [{}]", in(reg) line.addr(), options(nomem, nostack, preserves_flags)) }
    }

    #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
    #[inline(always)]
    pub(super) fn later<T>(line: *const T) {
        // SAFETY: as above. (The intrinsic is not stable.)
        unsafe {
            core::arch::asm!("prfm pldl2keep, [{}]", in(reg) line.addr(), options(nomem, nostack, preserves_flags))
        }
    }

    #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
    #[inline(always)]
    pub(super) fn read<T>(line: *const T) {
        // SAFETY: as above.
        unsafe {
            core::arch::asm!("prfm pldl1keep, [{}]", in(reg) line.addr(), options(nomem, nostack, preserves_flags))
        }
    }

    #[cfg(all(target_arch = "aarch64", not(lanebloom_loom)))]
    #[inline(always)]
    pub(super) fn write<T>(line: *const T) {
        // SAFETY: as above.
        unsafe {
            core::arch::asm!("prfm pstl1keep, [{}]", in(reg) line.addr(), options(nomem, nostack, preserves_flags))
        }
    }

    #[cfg(any(lanebloom_loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    pub(super) use nothing as later;
    #[cfg(any(lanebloom_loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    pub(super) use nothing as read;
    #[cfg(any(lanebloom_loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    pub(super) use nothing as write;
    #[cfg(any(lanebloom_loom, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    pub(super) fn nothing<T>(_line: *const T) {}
}
