//! The lines of atomics: allocated, loaded, OR-ed, prefetched. This file takes patterns from
//! `pattern.rs`, not hashes. It argues for every memory ordering of the filters of bits.
//!
//! | operation | ordering | partner, and why |
//! |---|---|---|
//! | `set`: look at the word first | load `Relaxed` | if the bits are there, nothing is written; a caller that relies on what their setters did before calls [`acquire`] afterwards |
//! | `set`: add the missing bits | `fetch_or` `Release` | makes what the inserter did before visible to every thread that sees the bits and calls [`acquire`]; later `fetch_or`s of the word continue the release sequence, so no insert cuts off the one before |
//! | `holds`, `load` | load `Relaxed` | as the look in `set` |
//! | [`acquire`] after an answer that rests on bits seen | fence `Acquire` | pairs with the `fetch_or` of every thread whose bits were seen; nothing on x86-64, one barrier on Arm |
//! | `or_from`: read the other filter's words | load `Acquire` | pairs with the `fetch_or` of its inserters; our own `Release` follows, so publication passes through the union |
//! | `or_from`: add them | `fetch_or` `Release` | as in `set` |
//! | `copy`, `missing_in` | load `Relaxed` | as the look in `set`; a caller that relies on the setters of the copied bits calls [`acquire`] afterwards |
//! | `merge` | load `Relaxed`, `fetch_or` `Release` | as in `set`, the bits of many keys at once |
//! | `store_words`, `replace`, `set_bit`, `unset_bits` | load, store `Relaxed` | borrowed mutably: no other thread has the array, and the transfer to another thread orders them |
//! | `set_word`, `set_four` | load `Relaxed`, `fetch_or` `Release` | as in `set`, for words that come from elsewhere |
//! | `words`, `try_clone` | load `Relaxed`, then [`acquire`] | one barrier for the whole copy |
//!
//! The promise "no false negative" needs only this: while a word is shared, threads only add bits
//! to it. So if an insert happened before a lookup, coherence alone makes the lookup's load see the
//! bits. It does not matter whether the insert wrote the bits or found them there.

use crate::error::BuildError;
use crate::geometry::layout::{LINE_BYTES, LINE_WORDS};
use crate::words::arrays::{as_chunks, as_chunks_mut};
use crate::words::memory::{Word, Words};
use crate::words::sync::{AtomicU64, Ordering, fence};
#[cfg(any(lanebloom_x86_64, lanebloom_aarch64))]
use core::arch::asm;
use core::borrow::Borrow;
use core::num::NonZeroUsize;
use core::ops::{Deref, DerefMut, Range};

/// Words in memory of their own: at least one line of them. The memory is aligned to a line, so a
/// key's words lie within one line.
#[derive(Debug)]
pub struct OwnLines<T>(Words<T>);

/// The bit array of a blocked filter. A block is a cache line of words.
pub type Bits = OwnLines<AtomicU64>;

impl<T: Word> OwnLines<T> {
    /// Allocates `blocks` lines of zeros. Fails if there is not enough memory.
    ///
    /// # Panics
    ///
    /// If `blocks` is 0.
    pub fn new(blocks: usize) -> Result<Self, BuildError> {
        assert!(blocks > 0, "a filter has at least one line");
        let words = blocks.checked_mul(LINE_WORDS).and_then(Words::new);
        words
            .map(Self)
            .ok_or_else(|| BuildError::out_of_memory(blocks.saturating_mul(LINE_BYTES)))
    }

    /// Makes all words 0.
    pub fn clear(&mut self) {
        self.fill_with(T::default);
    }
}

impl<T> OwnLines<T> {
    /// The number of lines.
    pub fn blocks(&self) -> usize {
        self.len() / LINE_WORDS
    }

    /// The lines, for lookups.
    #[inline(always)]
    pub(crate) fn shared(&self) -> Lines<'_, T> {
        Lines(as_chunks(&self.0).0)
    }
}

/// Words as numbers.
impl<T: Word + Borrow<AtomicU64>> OwnLines<T> {
    /// A copy with at least every change that happened before the call.
    pub fn try_clone(&self) -> Result<Self, BuildError> {
        let mut copy = Self::new(self.blocks())?;
        copy.store_words(0, self.iter().map(|word| word.borrow().load(Ordering::Relaxed)));
        acquire();
        Ok(copy)
    }

    /// Sets words from `first` on, while no other thread knows of the array.
    pub fn store_words(&mut self, first: usize, values: impl IntoIterator<Item = u64>) {
        for (word, value) in self[first..].iter().zip(values) {
            word.borrow().store(value, Ordering::Relaxed);
        }
    }

    /// Replaces each word by `new(word, other)`, with one of `others` each, while no other thread
    /// has the array.
    pub(crate) fn replace(&mut self, others: impl Iterator<Item = u64>, mut new: impl FnMut(u64, u64) -> u64) {
        for (word, other) in self.iter().map(T::borrow).zip(others) {
            word.store(new(word.load(Ordering::Relaxed), other), Ordering::Relaxed);
        }
    }
}

impl<T> Deref for OwnLines<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for OwnLines<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// The cache that a prefetch brings a line into, and whether to write it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hint {
    /// The line in L2, for later.
    L2,
    /// The line in L1, to be read soon.
    L1,
    /// The line in L1, exclusively, to be written soon.
    L1Write,
}

/// Makes visible what other threads did before they set the bits that this thread has seen. Pairs
/// with the `Release` of `set` and `or_from`.
#[inline(always)]
pub(crate) fn acquire() {
    fence(Ordering::Acquire);
}

/// `acquire` if this thread has `seen` bits.
///
/// On x86-64 the fence takes no instruction, and a branch around it would be mispredicted as often
/// as the answer varies: a lookup of 4 ns would take 13.
#[inline(always)]
pub fn acquire_if(seen: bool) {
    if cfg!(lanebloom_x86_64) || seen {
        acquire();
    }
}

impl Bits {
    /// The bytes of all lines.
    pub fn bytes(&self) -> usize {
        self.blocks() * LINE_BYTES
    }

    /// [Prefetches](Hint::prefetch) a line. A line outside of the memory does no harm.
    #[inline(always)]
    pub(crate) fn prefetch(&self, block: usize, hint: Hint) {
        self.shared().prefetch(block, hint);
    }

    /// `Lines::copy` of these lines.
    pub fn copy(&self, first: usize, image: &mut [u64]) -> u128 {
        self.shared().copy(first, image)
    }

    /// The words, for a caller that borrows them mutably. (`None` under the model checker, whose
    /// words are not plain ones.)
    pub(crate) fn words_mut(&mut self) -> Option<&mut [u64]> {
        #[cfg(not(lanebloom_loom))]
        {
            let words = &mut **self;
            // SAFETY: `AtomicU64` has the size and the validity of `u64`, and at least its
            // alignment. The mutable borrow excludes other accesses.
            Some(unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len()) })
        }
        #[cfg(lanebloom_loom)]
        None
    }

    /// ORs the lines `range` of `other` into this; returns whether that set any bit. Other threads
    /// may use both meanwhile.
    ///
    /// The two must have the same number of lines.
    pub fn or_from(&self, other: &Self, range: Range<usize>) -> bool {
        debug_assert_eq!(self.blocks(), other.blocks());
        let (ours, theirs) = (&self.shared().0[range.clone()], &other.shared().0[range]);
        let mut changed = false;
        for (word, from) in ours.as_flattened().iter().zip(theirs.as_flattened()) {
            let missing = from.load(Ordering::Acquire) & !word.load(Ordering::Relaxed);
            changed |= missing != 0 && add(word, missing);
        }
        changed
    }

    /// Keeps the bits that `other` has too; returns whether that changed this. Other threads may
    /// use `other` meanwhile. (The caller calls [`acquire`].)
    ///
    /// The two must have the same number of lines.
    pub fn and_from(&mut self, other: &Self) -> bool {
        debug_assert_eq!(self.blocks(), other.blocks());
        let mut lost = 0;
        self.replace(other.words().flatten(), |ours, theirs| {
            lost |= ours & !theirs;
            ours & theirs
        });
        lost != 0
    }

    /// `Lines::words` of these lines.
    pub fn words(&self) -> impl Iterator<Item = [u64; LINE_WORDS]> {
        self.shared().words()
    }

    /// Writes to `missing` the bits that `known` lacks, of the blocks from `first` on; returns
    /// whether there are any. Beside inserts, each word is some value that it had meanwhile.
    pub(crate) fn missing_in(&self, first: usize, known: &[u64], missing: &mut [u64]) -> bool {
        let mut any = 0;
        let words = &self[first * LINE_WORDS..];
        for ((missing, known), word) in missing.iter_mut().zip(known).zip(words) {
            *missing = word.load(Ordering::Relaxed) & !known;
            any |= *missing;
        }
        any != 0
    }

    /// Adds bits to a word as `set` does, given the word's index in the whole array. Returns
    /// whether this call set any.
    pub(crate) fn set_word(&self, word: usize, mask: u64) -> bool {
        set([(&self[word], mask)])
    }
}

/// A flat array, for filters that put a key's bits anywhere: a bit has an index in the whole
/// array. In the table at the top of this file, `bit` is `load`, and `add_bit` is the second
/// half of `set`.
impl Bits {
    /// The bit, as the lowest bit of the result. The higher bits of the result are other bits.
    #[inline(always)]
    pub fn bit(&self, index: u64) -> u64 {
        self[(index / 64) as usize].load(Ordering::Relaxed) >> (index % 64)
    }

    /// Sets the bit; returns whether this call set it.
    #[inline(always)]
    pub fn add_bit(&self, index: u64) -> bool {
        add(&self[(index / 64) as usize], 1 << (index % 64))
    }

    /// Sets the bit, while no other thread has the array.
    #[inline(always)]
    pub fn set_bit(&mut self, index: u64) {
        let word = &self[(index / 64) as usize];
        word.store(word.load(Ordering::Relaxed) | 1 << (index % 64), Ordering::Relaxed);
    }

    /// Unsets every `step`th bit from `first` on, while no other thread has the array. `step` is a
    /// multiple of 64, and `first` is below it. (By numbers of bits it took 1.5 times as long: Zen
    /// 4.)
    pub(crate) fn unset_bits(&mut self, first: usize, step: usize) {
        for words in self.chunks_exact(step / 64) {
            let word = &words[first / 64];
            word.store(word.load(Ordering::Relaxed) & !(1 << (first % 64)), Ordering::Relaxed);
        }
    }

    /// The words in groups of four: two blocks of Parquet's filter in each line.
    #[inline(always)]
    pub fn fours(&self) -> &[[AtomicU64; 4]] {
        as_chunks(self).0
    }

    /// [`fours`](Self::fours), for a caller that borrows them mutably. (`None` under the model
    /// checker, whose words are not plain ones.)
    pub fn fours_mut(&mut self) -> Option<&mut [[u64; 4]]> {
        Some(as_chunks_mut(self.words_mut()?).0)
    }

    /// `set` of four words.
    #[inline(always)]
    pub fn set_four(words: &[AtomicU64; 4], masks: [u64; 4]) -> bool {
        let [a, b, c, d] = words;
        set([(a, masks[0]), (b, masks[1]), (c, masks[2]), (d, masks[3])])
    }

    /// Prefetches the bit's line.
    #[inline(always)]
    pub fn prefetch_bit(&self, index: u64, hint: Hint) {
        self.prefetch((index / 64) as usize / LINE_WORDS, hint);
    }
}

/// A word that a lookup can read. The kernels read it through a pointer, 8 bytes at a time.
///
/// # Safety
///
/// The type has 8 bytes without padding. [`load`](Self::load) returns the value of these bytes, in
/// the byte order of x86-64 and by one access; with [`COUNTERS`](Self::COUNTERS), that value with
/// every counter above 0 filled.
pub unsafe trait Load: 'static {
    /// Whether other threads may set its bits, so that a reader needs an `Acquire`.
    const SHARED: bool = true;
    /// Whether the memory holds 16 counters, and [`load`](Self::load) sets all four bits of each
    /// counter above 0.
    const COUNTERS: bool = false;

    /// Loads its value: for a shared word, the `load` of the table above.
    fn load(&self) -> u64;
}

// SAFETY: documented to have the representation of `u64`, and loaded as one. (Only the plain kernel
// reads the model checker's, and it calls `load`.)
unsafe impl Load for AtomicU64 {
    #[inline(always)]
    fn load(&self) -> u64 {
        AtomicU64::load(self, Ordering::Relaxed)
    }
}

/// A word of a snapshot: little-endian bytes at any address, immutable while they are borrowed. A
/// machine with unaligned loads reads it by one instruction, whatever its own byte order.
// SAFETY: 8 bytes, and no thread writes them.
unsafe impl Load for [u8; 8] {
    const SHARED: bool = false;

    #[inline(always)]
    fn load(&self) -> u64 {
        u64::from_le_bytes(*self)
    }
}

/// The lines that lookups read: those of [`Bits`], which other threads may write meanwhile, or of
/// an immutable snapshot. There is at least one, so the block of every hash is among them.
pub(crate) struct Lines<'a, T>(&'a [[T; LINE_WORDS]]);

impl<T> Clone for Lines<'_, T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Lines<'_, T> {}

impl<'a, T> Lines<'a, T> {
    /// The first `count` of these lines.
    ///
    /// # Panics
    ///
    /// If there are fewer.
    #[inline(always)]
    pub(crate) fn new(lines: &'a [[T; LINE_WORDS]], count: NonZeroUsize) -> Self {
        Self(&lines[..count.get()])
    }

    /// The first half of the lines, and the second. (Of an odd number, both contain the middle
    /// line, so that neither is empty. `sizing.rs` and `header.rs` allow only even numbers.)
    #[inline(always)]
    pub(crate) fn halves(self) -> [Self; 2] {
        let (len, half) = (self.0.len(), self.0.len() / 2);
        [Self(&self.0[..len - half]), Self(&self.0[half..])]
    }

    /// All lines.
    #[inline(always)]
    pub(crate) fn all(self) -> &'a [[T; LINE_WORDS]] {
        self.0
    }
}

impl<'a, T: Load> Lines<'a, T> {
    /// Whether the sector of `W` words from `first` on has all bits at these positions.
    ///
    /// Tests all of them, also after one that is missing: they are in one line, and a branch would
    /// be mispredicted as often as the answer varies.
    #[inline(always)]
    pub(crate) fn holds<const W: usize>(self, first: usize, positions: impl Iterator<Item = usize>) -> bool {
        let sector = &self.0.as_flattened()[first..][..W];
        let mut all = 1;
        for position in positions {
            all &= sector[position / 64].load() >> (position % 64);
        }
        all & 1 == 1
    }

    /// The words of every line, one after another. Beside inserts, each word is some value that it
    /// had meanwhile; call [`acquire`] after the last.
    pub(crate) fn words(self) -> impl Iterator<Item = [u64; LINE_WORDS]> + 'a {
        self.words_of(0..self.0.len())
    }

    /// [`words`](Self::words) of some blocks.
    pub(crate) fn words_of(self, blocks: Range<usize>) -> impl Iterator<Item = [u64; LINE_WORDS]> + 'a {
        self.0[blocks]
            .iter()
            .map(|line| core::array::from_fn(|i| line[i].load()))
    }
}

/// Lines that other threads may write meanwhile.
impl Lines<'_, AtomicU64> {
    /// Fills `image` with the words of the blocks from `first` on, and returns their sum. Beside
    /// inserts, each word is some value that it had meanwhile.
    pub(crate) fn copy(self, first: usize, image: &mut [u64]) -> u128 {
        let mut sum = 0;
        for (copy, word) in image.iter_mut().zip(self.0[first..].as_flattened()) {
            *copy = word.load(Ordering::Relaxed);
            sum += u128::from(*copy);
        }
        sum
    }

    /// Sets the bits of `image`: a [`copy`](Self::copy) of the blocks from `first` on, in which the
    /// caller has set more bits. Returns two sums: that of the image, and that of the bits that
    /// this call set.
    ///
    /// For each written word, `image` becomes the word's value just before the write. The caller
    /// can insert the copy's keys again into that image, and so learns which of them this call set.
    pub(crate) fn merge(self, first: usize, image: &mut [u64]) -> (u128, u128) {
        let (mut sum, mut set) = (0, 0);
        let lines = &self.0[first..];
        for (copies, line) in as_chunks_mut::<LINE_WORDS, _>(image).0.iter_mut().zip(lines) {
            // Later loads wait for a locked operation; a prefetch does not.
            Hint::L1Write.prefetch((&raw const *line).wrapping_add(4));
            for (copy, word) in copies.iter_mut().zip(line) {
                sum += u128::from(*copy);
                let missing = *copy & !word.load(Ordering::Relaxed);
                if missing != 0 {
                    *copy = word.fetch_or(missing, Ordering::Release);
                    set += u128::from(missing & !*copy);
                }
            }
        }
        (sum, set)
    }
}

/// The words of a range of a filter's blocks, which this thread owns: a copy that it will merge
/// into the filter, or the filter's own words, borrowed mutably.
pub(crate) struct OwnedRange<'a> {
    pub(crate) words: &'a mut [u64],
    /// The first of its blocks.
    pub(crate) first: usize,
    /// The number of blocks of the whole filter.
    pub(crate) blocks: usize,
}

/// Lines that a batch can prefetch.
#[cfg_attr(
    not(any(lanebloom_x86_64, lanebloom_aarch64)),
    allow(dead_code, reason = "a part is for vectors")
)]
pub(crate) trait Prefetchable {
    /// The number of blocks of the whole filter.
    fn blocks(&self) -> usize;

    /// [Prefetches](Hint::prefetch) a line. A line outside of the memory does no harm.
    fn prefetch(&self, block: usize, hint: Hint);
}

impl<T> Prefetchable for Lines<'_, T> {
    #[inline(always)]
    fn blocks(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn prefetch(&self, block: usize, hint: Hint) {
        hint.prefetch(self.0.as_ptr().wrapping_add(block));
    }
}

/// Lines that a batch can insert into: those of the shared [`Bits`], by atomics, or a
/// [`OwnedRange`], by plain stores. Callers insert no hash of a block outside these lines.
#[cfg_attr(
    not(any(lanebloom_x86_64, lanebloom_aarch64)),
    allow(dead_code, reason = "half of it is for vectors")
)]
pub(crate) trait Insertable: Prefetchable {
    /// Sets the bits of the masks in the sector whose first word has this number among all words of
    /// the filter; returns whether this call set any of them.
    fn set<const W: usize>(&mut self, first: usize, masks: [u64; W]) -> bool;
}

// The methods below use loops, since `map` and `from_fn` are not always inlined.
impl Insertable for Lines<'_, AtomicU64> {
    #[inline(always)]
    fn set<const W: usize>(&mut self, first: usize, masks: [u64; W]) -> bool {
        let sector = &self.0.as_flattened()[first..][..W];
        let mut masked_words = [(&sector[0], 0); W];
        for i in 0..W {
            masked_words[i] = (&sector[i], masks[i]);
        }
        set(masked_words)
    }
}

impl Prefetchable for OwnedRange<'_> {
    #[inline(always)]
    fn blocks(&self) -> usize {
        self.blocks
    }

    #[inline(always)]
    fn prefetch(&self, block: usize, hint: Hint) {
        hint.prefetch(self.words.as_ptr().wrapping_add((block - self.first) * LINE_WORDS));
    }
}

impl Insertable for OwnedRange<'_> {
    #[inline(always)]
    fn set<const W: usize>(&mut self, first: usize, masks: [u64; W]) -> bool {
        let sector = &mut self.words[first - self.first * LINE_WORDS..][..W];
        let mut missing = 0;
        for i in 0..W {
            missing |= masks[i] & !sector[i];
            sector[i] |= masks[i];
        }
        missing != 0
    }
}

/// The number of bits of a line that are set.
pub(crate) fn ones_of(line: &[u64; LINE_WORDS]) -> u64 {
    line.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Adds to each word the bits of its mask that it lacks; returns whether this call added any.
///
/// It looks before it writes: a locked operation costs 2.5 ns (Zen 3) to 5 (Zen 5) even in L1, and
/// a load next to nothing. A line that is only read stays in the caches of all cores. One branch
/// decides whether any bit is missing, so inserting a present key costs what a lookup does.
#[inline(always)]
fn set<const W: usize>(words: [(&AtomicU64, u64); W]) -> bool {
    let mut missing = [0; W];
    for (missing, (word, mask)) in missing.iter_mut().zip(words) {
        *missing = mask & !word.load(Ordering::Relaxed);
    }
    if missing.iter().fold(0, |all, missing| all | missing) == 0 {
        return false;
    }
    let mut changed = false;
    for ((word, _), missing) in words.into_iter().zip(missing) {
        // Words that lacked nothing are written as well, if there are more than two. A branch on
        // each would be mispredicted: a new key of four words took 24 ns in place of 9 (Zen 4).
        changed |= (W > 2 || missing != 0) && add(word, missing);
    }
    changed
}

/// Adds the bits of `mask` to `word`; returns whether this call added any.
#[inline(always)]
fn add(word: &AtomicU64, mask: u64) -> bool {
    word.fetch_or(mask, Ordering::Release) & mask != mask
}

impl Hint {
    /// Prefetches the line. That changes no value, so neither the address nor the timing can make a
    /// program wrong: an address without memory does no harm.
    #[inline(always)]
    pub fn prefetch<T>(self, line: *const T) {
        #[cfg(lanebloom_x86_64)]
        // SAFETY: SSE, which the intrinsic needs, is part of every x86-64. A prefetch accesses no
        // memory, changes no register and no flag, and cannot fault.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
            match self {
                Self::L2 => _mm_prefetch::<_MM_HINT_T1>(line.cast()),
                Self::L1 => _mm_prefetch::<_MM_HINT_T0>(line.cast()),
                // The compiler turns its own write prefetch into a read prefetch where the target
                // does not declare PRFCHW. The opcode is a no-op on processors that lack it.
                Self::L1Write => {
                    asm!("prefetchw [{}]", in(reg) line.addr(), options(nomem, nostack, preserves_flags));
                }
            }
        }
        #[cfg(lanebloom_aarch64)]
        // SAFETY: as above. (The intrinsic is not stable.)
        unsafe {
            match self {
                Self::L2 => asm!("prfm pldl2keep, [{}]", in(reg) line.addr(), options(nomem, nostack, preserves_flags)),
                Self::L1 => asm!("prfm pldl1keep, [{}]", in(reg) line.addr(), options(nomem, nostack, preserves_flags)),
                Self::L1Write => {
                    asm!("prfm pstl1keep, [{}]", in(reg) line.addr(), options(nomem, nostack, preserves_flags));
                }
            }
        }
        #[cfg(not(any(lanebloom_x86_64, lanebloom_aarch64)))]
        let _ = line;
    }
}
