//! The tables of functions that an instruction set has: what `x86_64.rs`, `aarch64.rs` and
//! `portable.rs` fill in, and `call.rs` calls. A function in a table may be called if the CPU has
//! the instruction set that it is compiled for.

use super::plan::{AccessPlan, GROUP};
use crate::geometry::pattern::Pattern;
use crate::words::bits::{Hint, Lines, OwnedRange};
use crate::words::sync::AtomicU64;

/// `$function::<W>()` for 1, 2, 4, and 8 words, or with more parameters.
macro_rules! of_words {
    ($($function:ident)::+ $(, $more:ty)*) => {
        [
            $($function)::+::<1 $(, $more)*>(),
            $($function)::+::<2 $(, $more)*>(),
            $($function)::+::<4 $(, $more)*>(),
            $($function)::+::<8 $(, $more)*>(),
        ]
    };
}

pub(super) use of_words;

// (The order of the arguments brings the hash into the register that the multiplication needs.)
pub(super) type Contains<T> = unsafe fn(Lines<'_, T>, u64, &Probe<T>) -> bool;
pub(super) type ContainsFew<T> = unsafe fn(Lines<'_, T>, &[u64], &Probe<T>, &mut [bool]);
pub(super) type ContainsFewBitmap<T> = unsafe fn(Lines<'_, T>, &[u64], &Probe<T>) -> u64;
// (With the arguments of a batch in a struct, lookups by AVX2 and AVX-512 take up to 1.09 times as
// long, on Zen 4: references share no memory, which the compiler knows of arguments alone.)
pub(super) type ContainsBatch<T> = unsafe fn(Lines<'_, T>, &Pattern, AccessPlan, &[u64], &mut [u64]);
pub(super) type Insert = unsafe fn(Lines<'_, AtomicU64>, u64, &Pattern) -> bool;
pub(super) type InsertBatch = unsafe fn(Lines<'_, AtomicU64>, &Pattern, AccessPlan, &[u64], &mut [u64]);
pub(super) type Fill = unsafe fn(&mut OwnedRange<'_>, &Pattern, AccessPlan, &[u64], &mut [u64]);
/// Has the arguments of `Isa::pack`.
pub(super) type Pack = unsafe fn(&mut [u64], &[u64]) -> usize;
/// Has the arguments of `scalar::and_rows`.
pub(super) type AndRows<T> = unsafe fn(&[T], &[u64], &mut [u64]);
/// Has the arguments of `scalar::unpack`.
pub(super) type Unpack = unsafe fn(&[u64], &mut [bool]);

/// The lines that a single lookup asks for a key, each by the lookup in one line. The functions of
/// the tables are compiled for each kind: two calls by pointers take 1.25 times as long (Zen 5).
pub(crate) trait Asked: 'static {
    /// Whether the lines that it asks hold the hash. There is a hint if they are beyond the caches.
    fn hold<T>(lines: Lines<'_, T>, hash: u64, hint: Option<Hint>, line: impl Fn(Lines<'_, T>, u64) -> bool) -> bool;

    /// Inserts the hash into each of them; returns whether that changed one.
    fn insert(lines: Lines<'_, AtomicU64>, hash: u64, line: impl Fn(Lines<'_, AtomicU64>, u64) -> bool) -> bool;
}

/// A key has one line.
pub(crate) struct One;

impl Asked for One {
    #[inline(always)]
    fn hold<T>(lines: Lines<'_, T>, hash: u64, _: Option<Hint>, line: impl Fn(Lines<'_, T>, u64) -> bool) -> bool {
        line(lines, hash)
    }

    #[inline(always)]
    fn insert(lines: Lines<'_, AtomicU64>, hash: u64, line: impl Fn(Lines<'_, AtomicU64>, u64) -> bool) -> bool {
        line(lines, hash)
    }
}

/// The data of a lookup beside hash and lines.
#[derive(Debug)]
pub(super) struct Probe<T> {
    pub(super) pattern: Pattern,
    /// The lookup in one line, where a batch has no function of its own.
    pub(super) contains: Contains<T>,
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

/// The single calls within a loop that is compiled for this CPU, for a key with all its lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls {
    pub(super) contains: Contains<AtomicU64>,
    /// If there is none, the filter's own insert is called.
    pub(super) insert: Option<Insert>,
}

/// The two forms of a pipeline (`pipeline.rs`): lines are prefetched by tiles, or by groups
/// (`AccessPlan::form`). (In
/// one function, with a branch, inserts in the caches took 1.05 to 1.1 times as long.)
pub(super) type Forms<F> = [F; 2];

/// The lookups of several hashes, in lines of one kind of words: `AtomicU64` of a filter, its
/// counters, or the bytes of a snapshot. A filter keeps the number of the row and no pointer, so
/// that a program which looks up single keys alone is linked without them.
#[derive(Debug)]
pub(super) struct BatchLookups<T> {
    /// For a few hashes, one by one.
    pub(super) few_flags: ContainsFew<T>,
    pub(super) few_bitmap: ContainsFewBitmap<T>,
    /// If there is none, hashes go one by one.
    pub(super) batch: Option<Forms<ContainsBatch<T>>>,
}

/// The inserts of several hashes into lines of bits: as [`BatchLookups`], by a row's number, and as
/// these in a table of their own.
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
