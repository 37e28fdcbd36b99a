//! The inputs of `bank` and `bitmap`: a byte, and a snapshot, which gets correct checksums if the
//! byte is odd.

use lanebloom::SnapshotError;
use twox_hash::XxHash3_64;

/// The memory that a reader may take.
pub const LIMIT: usize = 1 << 20;

/// The snapshot of an input.
pub fn summed(input: &[u8]) -> Vec<u8> {
    let (choice, rest) = input.split_first().unwrap_or((&0, &[]));
    let mut bytes = rest.to_vec();
    if choice & 1 == 1 && bytes.len() >= 192 {
        let end = bytes.len() - 64;
        let sum = XxHash3_64::oneshot(&bytes[..120]);
        bytes[120..128].copy_from_slice(&sum.to_le_bytes());
        let sum = XxHash3_64::oneshot(&bytes[..end]);
        bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
    }
    bytes
}

/// The errors of a slice and of a reader are one, unless the reader's limit comes first.
pub fn agree(by_slice: &SnapshotError, by_reader: &SnapshotError) {
    let (one, other) = (by_slice.to_string(), by_reader.to_string());
    assert!(
        one == other || other.contains("more than the limit of"),
        "{one}\n{other}"
    );
}
