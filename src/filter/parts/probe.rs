//! Batches for filters with a few addresses for each key, by the loop of `kernel/tiles.rs`. Takes
//! hashes, and gives answers. `slots.rs` calls it.
//!
//! It is scalar: a bucket is a word, and one operation compares all of its slots. Compiled for
//! AVX-512, where the compiler makes vectors of the addresses, it took as long (4.8 and 13 ns for a
//! lookup in L2, Emerald Rapids). Outside the caches the lines take the time.

use crate::chunks::{Answer, Chunks, Source, all, answered, ones, tell};
use crate::error::{InsertError, InsertErrorKind};
use crate::kernel::is_cached;
use crate::kernel::plan::AccessPlan;
use crate::kernel::tiles::{self, tiles};
use crate::words::bits::Hint;

/// A key's addresses in a filter.
pub(crate) trait Probe {
    type Address: Copy;

    /// Lines that a key touches.
    const LINES: usize;

    fn address(&self, hash: u64) -> Self::Address;

    /// Prefetches the lines of the addresses.
    fn prefetch(&self, address: &Self::Address, hint: Hint);

    /// Whether the key may be there. `true` ends in an `Acquire`.
    fn holds(&self, address: &Self::Address) -> bool;

    /// Bytes of the filter's memory.
    fn bytes(&self) -> usize;
}

#[inline(always)]
fn access<P: Probe>(probe: &P, of: impl Fn(bool, usize) -> AccessPlan) -> AccessPlan {
    of(is_cached(probe.bytes()), P::LINES)
}

/// Calls `work(start, addresses)` for every tile of hashes, until it returns false.
#[inline(always)]
fn tiles_of<P: Probe>(probe: &P, access: AccessPlan, hashes: &[u64], work: impl FnMut(usize, &[P::Address]) -> bool) {
    let address = |_: &mut _, _, hash: &u64| probe.address(*hash);
    let prefetch = |_: &mut _, _, _: &u64, address: &P::Address, hint| probe.prefetch(address, hint);
    tiles(
        &mut { work },
        access,
        hashes,
        address,
        prefetch,
        |work, start, addresses| work(start, addresses),
    );
}

/// Whether each hash may be there, as a bitmap.
pub(crate) fn contains_bitmap<P: Probe>(probe: &P, hashes: &[u64], found: &mut [u64]) {
    let access = access(probe, AccessPlan::lookups);
    tiles_of(probe, access, hashes, |start, addresses| {
        found[start / 64] = tiles::answers(addresses.iter().map(|address| probe.holds(address)));
        true
    });
}

/// Inserts in order, up to the first hash that `insert` refuses.
pub(crate) fn insert_all<P: Probe>(
    probe: &P,
    source: &impl Source,
    mut insert: impl FnMut(&P::Address) -> Result<(), InsertErrorKind>,
) -> Result<(), InsertError> {
    let access = access(probe, AccessPlan::changes);
    let (mut chunks, mut inserted, mut refused) = (all(source), 0, None);
    while let (None, Some(hashes)) = (&refused, chunks.next()) {
        tiles_of(probe, access, hashes, |_, addresses| {
            for address in addresses {
                if let Err(kind) = insert(address) {
                    refused = Some(kind);
                    return false;
                }
                inserted += 1;
            }
            true
        });
    }
    refused.map_or(Ok(()), |kind| Err(InsertError { kind, inserted }))
}

/// Removes in order; returns how many were there.
pub(crate) fn remove_all<P: Probe>(
    probe: &P,
    source: &impl Source,
    mut answer: Answer<'_>,
    mut remove: impl FnMut(&P::Address) -> bool,
) -> usize {
    let access = access(probe, AccessPlan::changes);
    let (mut chunks, mut count) = (answered(all(source)), 0);
    while let Some((start, hashes, removed)) = chunks.next() {
        tiles_of(probe, access, hashes, |start, addresses| {
            removed[start / 64] = tiles::answers(addresses.iter().map(&mut remove));
            true
        });
        tell(&mut answer, start, removed);
        count += ones(removed);
    }
    count
}
