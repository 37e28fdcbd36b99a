//! The tables of functions that an instruction set has: what `x86_64.rs`, `aarch64.rs` and
//! `portable.rs` fill in, and `call.rs` calls. A function in a table may be called if the CPU has
//! the instruction set that it is compiled for.

use super::plan::{AccessPlan, GROUP};
use crate::geometry::layout::WORDS_PER_KEY;
use crate::geometry::pattern::BitFields;
use crate::words::bits::{Hint, Lines, OwnedRange};
use crate::words::sync::AtomicU64;

/// An array of `$function::<W, S>` for every shape, in the order of [`shape_number`].
macro_rules! of_shapes {
    ($function:ident $(, $T:ty)?) => {
        of_shapes!(@ ($function $(, $T)?);
            1: 1 2 3 4 5 6;
            2: 1 2 3 4 5 6 7;
            4: 1 2 3 4 5 6;
            8: 1 2 3 4;
        )
    };
    (@ $call:tt; $($w:literal: $($s:literal)*;)*) => {
        [$($( of_shapes!(@ $w, $s, $call), )*)*]
    };
    (@ $w:literal, $s:literal, ($function:ident $(, $T:ty)?)) => {
        $function::<$w, $s $(, $T)?>
    };
}

/// `$function::<W>()` for 1, 2, 4, and 8 words.
macro_rules! of_words {
    ($($function:ident)::+ $(, $more:literal)*) => {
        [
            $($function)::+::<1 $(, $more)*>(),
            $($function)::+::<2 $(, $more)*>(),
            $($function)::+::<4 $(, $more)*>(),
            $($function)::+::<8 $(, $more)*>(),
        ]
    };
}

pub(super) use {of_shapes, of_words};

/// The shapes of a line.
pub(super) const SHAPES: usize = 23;

/// The number of a shape in the tables.
pub(super) fn shape_number(words: usize, bits: usize) -> usize {
    let before = WORDS_PER_KEY.iter().take_while(|shapes| shapes.0 < words);
    before.map(|shapes| shapes.1).sum::<usize>() + bits - 1
}

// (The order of the arguments brings the hash into the register that the multiplication needs.)
pub(super) type Contains<T> = unsafe fn(Lines<'_, T>, u64, &Probe<T>) -> bool;
pub(super) type ContainsFew<T> = unsafe fn(Lines<'_, T>, &[u64], &Probe<T>, &mut [bool]);
pub(super) type ContainsFewBitmap<T> = unsafe fn(Lines<'_, T>, &[u64], &Probe<T>) -> u64;
// (With the arguments of a batch in a struct, lookups by AVX2 and AVX-512 take up to 1.09 times as
// long, on Zen 4: references share no memory, which the compiler knows of arguments alone.)
pub(super) type ContainsBatch<T> = unsafe fn(Lines<'_, T>, &BitFields, AccessPlan, &[u64], &mut [u64]);
pub(super) type Insert = unsafe fn(Lines<'_, AtomicU64>, u64, &BitFields) -> bool;
pub(super) type InsertBatch = unsafe fn(Lines<'_, AtomicU64>, &BitFields, AccessPlan, &[u64], &mut [u64]);
pub(super) type Fill = unsafe fn(&mut OwnedRange<'_>, &BitFields, AccessPlan, &[u64], &mut [u64]);
/// As `two_lines::gather`, which packs hashes. (Gathers of words are those of `Level::Gather`.)
pub(super) type Gather = unsafe fn(&[u64], &[u64], &mut [u64]) -> usize;
/// Writes the places of a hash's bits in its line, bit 0 first, as the starts of rows: `line(hash,
/// first, width, starts)`, where `first` is the row of bit 0, and a row has `width` words.
pub(crate) type LineRows = fn(u64, u64, u64, &mut [u64]);
/// As `scalar::and_rows`.
pub(super) type AndRows<T> = unsafe fn(&[T], &[u64], &mut [u64]);
/// As `scalar::unpack`.
pub(super) type Unpack = unsafe fn(&[u64], &mut [bool]);

/// What the lookup of one hash needs beside the lines.
#[derive(Debug)]
pub(super) struct Probe<T> {
    pub(super) fields: BitFields,
    /// The lookup in one line, for `two_lines.rs`.
    pub(super) line: Contains<T>,
    /// The hint by which the lines of a few hashes are prefetched, if the filter is beyond the
    /// caches.
    pub(super) hint: Option<Hint>,
}

impl<T> Clone for Probe<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Probe<T> {}

/// The lookups of an instruction set for one shape, without those that are inlined.
pub(super) struct ShapeLookups<T> {
    /// For keys with one line.
    pub(super) contains: Contains<T>,
    /// For keys with two lines.
    pub(super) contains_two: Contains<T>,
    pub(super) gather: Gather,
    /// The number of its row in the table of [`BatchLookups`].
    pub(super) row: u8,
}

/// The two forms of a pipeline (`pipeline.rs`): lines are prefetched by tiles, or by groups
/// (`AccessPlan::form`). (In
/// one function, with a branch, inserts in the caches took 1.05 to 1.1 times as long.) AVX-512
/// without BITALG has the first alone, to save code.
pub(super) type Forms<F> = [F; 2];

/// The lookups of several hashes, in lines of one kind of words: `AtomicU64` of a filter, its
/// counters, or the bytes of a snapshot. A filter keeps the number of the row and no pointer, so
/// that a program which looks up single keys alone is linked without them.
#[derive(Debug)]
pub(super) struct BatchLookups<T> {
    /// For a few hashes, one by one.
    pub(super) few_flags: ContainsFew<T>,
    pub(super) few_bitmap: ContainsFewBitmap<T>,
    /// For a few hashes in groups, at least two of them. If there is none, a pipeline takes them.
    pub(super) groups: Option<Groups<T>>,
    /// If there is none, hashes go one by one.
    pub(super) batch: Option<Forms<ContainsBatch<T>>>,
}

/// The answers of a few hashes as flags, and as a bitmap.
pub(super) type Groups<T> = (ContainsFew<T>, ContainsFewBitmap<T>);

/// The inserts of several hashes into lines of bits: as [`BatchLookups`], by a row's number.
#[derive(Debug)]
pub(super) struct BatchInserts {
    /// If there is none, hashes go one by one.
    pub(super) batch: Option<Forms<InsertBatch>>,
    pub(super) fill: Fill,
}

/// Plain loops over arrays that a compiler can turn into vectors. `Isa::vectorized` compiles them
/// once for each instruction set. (A closure would be a function of its own, without vectors.)
pub trait Vectorized {
    /// The result of the loops.
    type Output;

    /// The loops. The function and what it calls must be `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// The kernels of a hash function with a state of `N` words, if an instruction set is faster than
/// one key after another.
///
/// `HashKernels::murmur3` and `siphash13` alone ask for one, with an `Isa`: so the CPU has what the
/// functions need. (`arch::murmur3` takes a level, since an `Isa` is made of levels.)
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashKernels<const N: usize> {
    /// The longest keys of `short`, in bytes: at most 16.
    pub(crate) most: usize,
    pub(super) short: unsafe fn(&[u64; N], usize, &mut [u64], &[u64]),
    pub(super) slices: Option<HashSlices<N>>,
}

type HashSlices<const N: usize> = unsafe fn(&[u64; N], &[[&[u8]; GROUP]], &mut [u64]);
