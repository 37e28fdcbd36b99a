//! The words of a snapshot, between its header and its trailer. This file turns words into bytes
//! and back. Here every filter is an array of 64-bit words in whole lines, whether it has bits,
//! counters, fingerprints or cells. The filters' decoders interpret the words.

use super::header::Checksum;
use super::{Decoded, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, TRAILER, check_trailer, check_zeros};
use crate::error::SnapshotErrorKind;
use crate::geometry::layout::LINE_BYTES;
use crate::words::arrays::{as_chunks, as_chunks_mut};
use crate::words::bits;
use alloc::vec::Vec;
use core::hash::Hasher;

/// The number of bytes that are copied, summed and passed on at a time. They fit L2, and system
/// calls are few.
const CHUNK: usize = 64 << 10;
/// Bytes of a word.
const WORD: usize = 8;

/// Writes a snapshot: its header, `len` words, and its trailer.
pub(crate) fn write_words<O: Out>(
    out: &mut O,
    header: &[u8; SNAPSHOT_HEADER],
    len: usize,
    mut words: impl Iterator<Item = u64>,
) -> Result<(), O::Error> {
    let mut sum = Checksum::default();
    sum.write(header);
    out.put(header)?;
    let bytes = WORD * len;
    let mut buffer = alloc::vec![0; CHUNK.min(bytes.next_multiple_of(LINE_BYTES))];
    for start in (0..bytes).step_by(CHUNK) {
        let filled = CHUNK.min(bytes - start);
        let chunk = &mut buffer[..filled.next_multiple_of(LINE_BYTES)];
        let (front, rest) = chunk.split_at_mut(filled);
        for (bytes, word) in as_chunks_mut(front).0.iter_mut().zip(&mut words) {
            *bytes = word.to_le_bytes();
        }
        rest.fill(0);
        // A reader of these bytes may rely on what the inserters did before.
        bits::acquire();
        sum.write(chunk);
        out.put(chunk)?;
    }
    let mut trailer = [0; TRAILER];
    trailer[..WORD].copy_from_slice(&sum.finish().to_le_bytes());
    out.put(&trailer)
}

/// Reads what [`write_words`] wrote after the header. Calls `store(first, words)` for each chunk,
/// with the index of its first word. The caller must not trust the words until this returns `Ok`.
pub(crate) fn read_words(
    input: &mut dyn Input,
    // The bytes of the header, for the checksum.
    header: &[u8; SNAPSHOT_HEADER],
    len: usize,
    store: &mut dyn FnMut(usize, &[[u8; WORD]]),
) -> Decoded<()> {
    let mut sum = Checksum::default();
    sum.write(header);
    let mut buffer = Vec::new();
    let bytes = WORD * len;
    let mut zeros = Ok(());
    for start in (0..bytes).step_by(CHUNK) {
        let filled = CHUNK.min(bytes - start);
        let chunk = input.take(filled.next_multiple_of(LINE_BYTES), &mut buffer)?;
        sum.write(chunk);
        let (front, rest) = chunk.split_at(filled);
        store(start / WORD, as_chunks(front).0);
        zeros = check_zeros(rest, SNAPSHOT_HEADER + start + filled);
    }
    let trailer = input.take(TRAILER, &mut buffer)?;
    let before = SNAPSHOT_HEADER + bytes.next_multiple_of(LINE_BYTES);
    check_trailer(trailer, sum.finish(), before)?;
    zeros
}

/// The header of a snapshot of this kind.
pub(crate) fn read_header(input: &mut dyn Input, kind: Kind) -> Decoded<OwnHeader> {
    OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, kind)
}

/// Fails if a filter needs more than `limit` bytes of memory, or if the input is known to end
/// before the snapshot does. (The snapshot has `len` bytes, and its header was read.) The caller
/// calls this before it allocates all of the memory. The system provides a page when it is first
/// written to.
pub(crate) fn admit(input: &mut dyn Input, len: usize, needed: u64, limit: usize) -> Decoded<()> {
    if needed > limit as u64 {
        return Err(SnapshotErrorKind::OverLimit {
            needed,
            limit: limit as u64,
        });
    }
    input.announce((len - SNAPSHOT_HEADER) as u64)
}

#[track_caller]
pub(crate) fn assert_snapshot_length(len: usize, needed: usize) {
    assert!(
        len == needed,
        "the snapshot has {needed} bytes, but the slice has {len}"
    );
}
