//! Two filters in lines, compared and combined as sets of keys: intersection, subset, disjoint
//! sets, and the numbers of keys that both or either have. `unions.rs` has the union, which more
//! types have.

use crate::error::IncompatibleError;
use crate::filter::Filter;
use crate::filter::parts::lines::{Blocked, LineWords, OwnWords};
use crate::filter::traits::Union;
use crate::geometry::layout::{LINE_WORDS, Layout};
use crate::hash::FilterHasher;
use crate::words::bits;
use core::array;
use core::ops::Range;

type Line = [u64; LINE_WORDS];

/// Keeps what `other`, of the same layout, has too; returns whether that changed `engine`.
fn intersection_from<W: OwnWords>(engine: &mut Blocked<W>, other: &Blocked<W>) -> bool {
    let mut lost = 0;
    engine.words.replace(other.words.words(), |ours, theirs| {
        let common = W::common(ours, theirs);
        lost |= common ^ ours;
        common
    });
    bits::acquire();
    lost != 0
}

/// Some lines of both, as lookups see them: each of `engine` before that of `other`.
pub(crate) fn both<W: LineWords>(
    engine: &Blocked<W>,
    other: &Blocked<W>,
    blocks: Range<usize>,
) -> impl Iterator<Item = (Line, Line)> {
    let ours = engine.words.lines().words_of(blocks.clone());
    // Pairs with the inserts of a thread that inserts each key into `other` first.
    ours.inspect(|_| bits::acquire())
        .zip(other.words.lines().words_of(blocks))
}

/// Whether no key can be in both. A key has a bit in every sector of a line; with two lines, in one
/// of each half of the blocks.
fn is_disjoint<W: LineWords>(engine: &Blocked<W>, other: &Blocked<W>) -> bool {
    let Layout { shape, blocks } = engine.layout;
    let (sector, part) = (LINE_WORDS / shape.words, blocks / shape.lines);
    let may_share = |(a, b): (Line, Line)| {
        let common: Line = array::from_fn(|i| a[i] & b[i]);
        common
            .chunks_exact(sector)
            .all(|words| words.iter().any(|&word| word != 0))
    };
    (0..shape.lines).any(|half| !both(engine, other, half * part..(half + 1) * part).any(may_share))
}

fn is_subset<W: LineWords>(engine: &Blocked<W>, other: &Blocked<W>) -> bool {
    let mut lines = both(engine, other, 0..engine.layout.blocks);
    let subset = lines.all(|(a, b)| (0..LINE_WORDS).fold(0, |missing, i| missing | a[i] & !b[i]) == 0);
    bits::acquire();
    subset
}

/// Two filters as sets of keys. All methods fail as [`union_from`](Self::union_from): if
/// layout or hasher differ.
#[expect(private_bounds, reason = "every engine of this kind has it")]
impl<W: OwnWords, S: FilterHasher> Filter<Blocked<W>, S> {
    /// Keeps only what `other` has too; returns whether that changed this filter. `other`
    /// may be in use meanwhile. It takes `&mut self`: beside inserts, some keys would
    /// survive in part.
    ///
    /// The result answers `true` exactly if both filters would have. So it has every key
    /// that was inserted into both, and a key of only one at the other one's rate. It is
    /// not the filter of the common keys alone: bits that different keys set in the two
    /// filters stay too. [Its rate](Self::current_false_positive_rate) for keys of neither
    /// is at most the lower one of the two. (At 1%, two full filters without a common key
    /// leave 1e-4; if half of the keys are common, 1.3e-3, where a filter of these alone
    /// has 5.6e-4.) A counter keeps the lesser of two values, so what was inserted into
    /// both can be removed again.
    ///
    /// # Memory ordering
    ///
    /// Ends in an `Acquire` on `other`'s content.
    ///
    /// # Examples
    ///
    /// ```
    /// let mut both = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let other = both.clone();
    /// both.insert_batch(&["a", "b"]);
    /// other.insert_batch(&["b", "c"]);
    /// assert_eq!(both.intersection_from(&other), Ok(true));
    /// assert_eq!(both.intersection_from(&other), Ok(false));
    /// assert!(both.contains("b") && !both.contains("a") && !both.contains("c"));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias("intersect_from", "and", "retain"))]
    pub fn intersection_from(&mut self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_union(other)?;
        Ok(intersection_from(&mut self.engine, &other.engine))
    }

    /// Whether no key is in both filters: `true` is certain, `false` may be by chance.
    ///
    /// It tells sparse filters apart: with 4 keys per block in each of the two, the answer
    /// is already `false` nearly always. (A full filter for 1% has 50 keys per block.) For
    /// fuller filters, use
    /// [`estimated_intersection_len`](crate::ConcurrentBloom::estimated_intersection_len).
    ///
    /// ```
    /// let a = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let b = a.clone();
    /// a.insert("a");
    /// b.insert("b");
    /// assert_eq!(a.is_disjoint(&b), Ok(true));
    /// b.insert("a");
    /// assert_eq!(a.is_disjoint(&b), Ok(false));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    pub fn is_disjoint(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_union(other)?;
        Ok(is_disjoint(&self.engine, &other.engine))
    }

    /// Whether `other` has every key of this filter: `false` is certain, `true` may be by
    /// chance. It is `true` exactly if `other` [contains](Self::contains) each of the keys:
    /// the ones that it lacks would all have to be false positives.
    ///
    /// If every insert into this filter happens after one of the same key into `other`, and
    /// no key is removed, the answer is `true` beside such inserts too.
    ///
    /// # Memory ordering
    ///
    /// Ends in an `Acquire`, like a lookup's `true`.
    ///
    /// # Examples
    ///
    /// ```
    /// let part = lanebloom::ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let all = part.clone();
    /// part.insert("a");
    /// all.insert_batch(&["a", "b"]);
    /// assert_eq!(part.is_subset(&all), Ok(true));
    /// assert_eq!(all.is_subset(&part), Ok(false));
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[doc(alias = "is_superset")]
    pub fn is_subset(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_union(other)?;
        Ok(is_subset(&self.engine, &other.engine))
    }
}
