//! Where the answers of a batch go: [`Answers`].

use crate::chunks::{Answer, assert_bitmap_length, copy_into, for_each_absent, unpack_into};
use crate::hash::assert_same_length;
use crate::kernel::Isa;
use alloc::vec;
use alloc::vec::Vec;

/// A place for the answers of a batch, one for each key, in order.
///
/// | place | an answer |
/// |---|---|
/// | `&mut [bool]`, `&mut [bool; N]` | is written to the same place of the slice, which is as long as the batch |
/// | `&mut Vec<bool>` | is an element of the vector, whose old content is dropped |
/// | [`Bitmap`]`(&mut [u64])` | is a bit |
/// | [`Absent`]`(\|i\| ..)` | is told if it is `false` |
/// | `()` | is dropped |
///
/// A batch panics, and does nothing, if a slice or a bitmap has room for more or fewer answers.
/// To read a `found: &mut [bool]` afterwards, pass `&mut *found`. Only this crate implements the
/// trait.
///
/// ```
/// use lanebloom::{Absent, Bitmap, ConcurrentBloom};
///
/// let filter = ConcurrentBloom::from_keys(["a"], 0.01)?;
/// let keys = ["a", "b"];
/// let (mut flags, mut vector) = ([false; 2], Vec::new());
/// let (mut bits, mut absent) = ([0], Vec::new());
/// filter.contains_batch(&keys, &mut flags);
/// filter.contains_batch(&keys, &mut vector);
/// filter.contains_batch(&keys, Bitmap(&mut bits));
/// filter.contains_batch(&keys, Absent(|i| absent.push(keys[i])));
/// assert_eq!((flags, vector), ([true, false], vec![true, false]));
/// assert_eq!((bits, absent), ([0b01], vec!["b"]));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "the answers of a batch cannot go to `{Self}`",
    label = "no place for answers",
    note = "places for answers: `&mut [bool]`, `&mut Vec<bool>`, `Bitmap(&mut [u64])`, `Absent(|i| ..)`, `()`"
)]
pub trait Answers {
    /// The place for the answers of this many keys.
    ///
    /// # Panics
    ///
    /// If it has room for more or for fewer.
    #[doc(hidden)]
    fn place(&mut self, keys: usize) -> Place<'_>;

    /// Panics as [`place`](Self::place), and touches nothing: for batches that are awaited, before
    /// their first step.
    #[doc(hidden)]
    fn check_room(&self, _keys: usize) {}

    /// Calls `work` with the [`place`](Self::place).
    #[doc(hidden)]
    fn receive<R>(mut self, keys: usize, work: impl FnOnce(Place<'_>) -> R) -> R
    where
        Self: Sized,
    {
        work(self.place(keys))
    }
}

/// A place whose length is right.
#[doc(hidden)]
pub enum Place<'a> {
    Flags(&'a mut [bool]),
    Bitmap(&'a mut [u64]),
    /// Called with the position of each `false`, once, in order.
    Absent(&'a mut dyn FnMut(usize)),
    Nowhere,
}

impl Answers for &mut [bool] {
    #[track_caller]
    fn check_room(&self, keys: usize) {
        assert_same_length(keys, self.len());
    }

    #[inline(always)]
    #[track_caller]
    fn place(&mut self, keys: usize) -> Place<'_> {
        assert_same_length(keys, self.len());
        Place::Flags(self)
    }
}

impl<const N: usize> Answers for &mut [bool; N] {
    #[track_caller]
    fn check_room(&self, keys: usize) {
        assert_same_length(keys, N);
    }

    #[inline(always)]
    #[track_caller]
    fn place(&mut self, keys: usize) -> Place<'_> {
        assert_same_length(keys, N);
        Place::Flags(self.as_mut_slice())
    }
}

impl Answers for &mut Vec<bool> {
    fn place(&mut self, keys: usize) -> Place<'_> {
        self.clear();
        self.resize(keys, false);
        Place::Flags(self)
    }
}

/// Answers as bits: bit `i % 64` of word `i / 64` for key `i`. The bits after the last key become
/// 0.
///
/// A batch panics if there are more or fewer than `keys.len().div_ceil(64)` words.
///
/// ```
/// use lanebloom::{Bitmap, CuckooFilter};
///
/// let filter = CuckooFilter::from_keys(["a", "b"], 0.01)?;
/// let mut removed = [u64::MAX];
/// filter.remove_batch_into(&["c", "a"], Bitmap(&mut removed));
/// assert_eq!(removed, [0b10]);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Bitmap<'a>(pub &'a mut [u64]);

impl Answers for Bitmap<'_> {
    #[track_caller]
    fn check_room(&self, keys: usize) {
        assert_bitmap_length(keys, self.0.len());
    }

    #[inline(always)]
    #[track_caller]
    fn place(&mut self, keys: usize) -> Place<'_> {
        assert_bitmap_length(keys, self.0.len());
        Place::Bitmap(self.0)
    }
}

/// Calls a function with the position of each key whose answer is `false`, in order: of keys that
/// are certainly absent, or whose insert or remove changed nothing.
///
/// Inserts and removes allocate a bit for each key to pass these on.
///
/// ```
/// use lanebloom::{Absent, ConcurrentBloom};
///
/// let filter = ConcurrentBloom::from_keys(["a"], 0.01)?;
/// let mut seen = Vec::new();
/// filter.insert_batch_into(&["b", "a"], Absent(|i| seen.push(i)));
/// assert_eq!(seen, [1]);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Debug)]
pub struct Absent<F>(pub F);

impl<F: FnMut(usize)> Answers for Absent<F> {
    #[inline(always)]
    fn place(&mut self, _: usize) -> Place<'_> {
        Place::Absent(&mut self.0)
    }
}

impl Answers for () {
    #[inline(always)]
    fn place(&mut self, _: usize) -> Place<'_> {
        Place::Nowhere
    }
}

/// Calls `work`, which passes the answers for this many keys on.
#[inline]
pub fn answered_into<R>(isa: Isa, keys: usize, mut out: impl Answers, work: impl FnOnce(Answer<'_>) -> R) -> R {
    match out.place(keys) {
        Place::Flags(out) => work(Some(&mut unpack_into(isa, out))),
        Place::Bitmap(out) => {
            // A chunk that begins within a word leaves the bits after its own.
            out.fill(0);
            work(Some(&mut copy_into(out)))
        }
        Place::Absent(absent) => {
            // The answers of a chunk may be told twice.
            let mut bitmap = vec![0; keys.div_ceil(64)];
            let result = work(Some(&mut copy_into(&mut bitmap)));
            for_each_absent(&bitmap, keys, absent);
            result
        }
        Place::Nowhere => work(None),
    }
}
