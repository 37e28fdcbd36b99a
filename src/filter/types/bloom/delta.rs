//! Deltas: the bits that one filter has and another lacks, and adding them to a third. `codec` has
//! their bytes.

use super::{Bloom, ConcurrentBloom};
use crate::codec::{Changes, DELTA_HEADER, DeltaHeader, Hashing, put_line};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::Pair;
use crate::geometry::layout::LINE_WORDS;
use crate::hash::FilterHasher;
use crate::words::bits;
use alloc::vec::Vec;

/// Deltas, by which replicas follow a writer.
impl<S: FilterHasher> Pair<'_, Bloom, S> {
    /// The bits that the first filter has and the second, the baseline, lacks, as bytes for
    /// [`apply_deltas`]: 64 bytes, and 8 to 10 for each fresh key of a filter for 1%.
    ///
    /// A writer keeps the baseline: a second filter, to which it applies each delta that was
    /// delivered. Replicas that apply all deltas, in any order, some of them several times, end up
    /// with the union. It reads both filters, which may be in use meanwhile. The delta has at least
    /// every key whose insertion in the first filter happened before and that the baseline lacks.
    ///
    /// ```
    /// use lanebloom::{ConcurrentBloom, bloom};
    ///
    /// let filter = ConcurrentBloom::with_capacity(100_000, 0.01)?;
    /// let (sent, replica) = (filter.clone(), filter.clone());
    ///
    /// for key in ["a", "b"] {
    ///     filter.insert(key);
    ///     let delta = filter.with(&sent)?.delta();
    ///     assert!(delta.len() <= 64 + 10); // only what came since
    ///     assert!(bloom::apply_deltas(&replica, &delta)? && replica == filter);
    ///     bloom::apply_deltas(&sent, &delta)?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn delta(self) -> Vec<u8> {
        let mut delta = alloc::vec![0; DELTA_HEADER];
        let mut lines = 0;
        let mut skipped = 0;
        for (line, base) in self.one.bits().words().zip(self.other.bits().words()) {
            let new: [u64; LINE_WORDS] = core::array::from_fn(|i| line[i] & !base[i]);
            if new == [0; LINE_WORDS] {
                skipped += 1;
            } else {
                put_line(&mut delta, skipped, new);
                lines += 1;
                skipped = 0;
            }
        }
        // The thread that applies the delta may rely on what the inserters had done.
        bits::acquire();
        let header = DeltaHeader {
            hashing: Hashing::of(&self.one.hasher),
            layout: self.one.engine.layout,
            lines,
            len: delta.len() as u64,
        };
        let header = header.to_bytes(&delta[DELTA_HEADER..]);
        delta[..DELTA_HEADER].copy_from_slice(&header);
        delta
    }
}

/// Adds the contents of the deltas, one after another, to the filter; returns whether that changed
/// it. The filter may be in use meanwhile.
///
/// # Errors
///
/// Fails if the bytes end within a delta, are corrupt, are not deltas, or their filter's layout or
/// hasher (its algorithm, seed or key) differs. Then the filter has all deltas before the faulty
/// one, and nothing of the faulty one.
///
/// # Memory ordering
///
/// Orders memory like [`insert`](ConcurrentBloom::insert): a thread that finds a key sees what the
/// thread that applied the delta had done before.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBloom;
/// use lanebloom::bloom::apply_deltas;
///
/// let empty = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// let delta = |key| {
///     let filter = empty.clone();
///     filter.insert(key);
///     filter.with(&empty).map(|pair| pair.delta())
/// };
/// let replica = empty.clone();
/// assert!(apply_deltas(&replica, &[delta("a")?, delta("b")?].concat())?);
/// assert!(["a", "b"].iter().all(|key| replica.contains(*key)));
/// assert!(!apply_deltas(&replica, &delta("a")?)?); // it has been there
/// let other = ConcurrentBloom::builder().expected_keys(1000).seed(1).build()?;
/// let refused = apply_deltas(&other, &delta("a")?).unwrap_err();
/// assert!(refused.is_incompatible());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn apply_deltas<S: FilterHasher>(filter: &ConcurrentBloom<S>, mut deltas: &[u8]) -> Result<bool, SnapshotError> {
    let mut changed = false;
    while !deltas.is_empty() {
        let (header, body, rest) = DeltaHeader::parse(deltas).map_err(SnapshotError)?;
        check(filter, &header, body).map_err(SnapshotError)?;
        for (word, bits) in Changes::new(body) {
            changed |= filter.bits().set_word(word, bits);
        }
        deltas = rest;
    }
    bits::acquire_if(!changed);
    Ok(changed)
}

/// Fails unless it is a delta of such a filter.
fn check<S: FilterHasher>(
    filter: &ConcurrentBloom<S>,
    header: &DeltaHeader,
    body: &[u8],
) -> Result<(), SnapshotErrorKind> {
    let layout = filter.engine.layout;
    if header.layout != layout {
        return Err(SnapshotErrorKind::differs("layout", header.layout, layout));
    }
    header.hashing.check(Hashing::of(filter.hasher()))?;
    let mut changes = Changes::new(body);
    while changes.step(layout.blocks as u64)?.is_some() {}
    if changes.lines == header.lines {
        Ok(())
    } else {
        Err(changes.problem("the number of lines is not the one that its header has"))
    }
}
