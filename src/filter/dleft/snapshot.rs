//! Snapshots of a d-left filter: its cells as they are, four in a word. `docs/FORMAT.md` describes
//! the bytes.

use super::DLeft;
use super::cells::{self, Cells};
use crate::bits::Load;
use crate::codec::{
    self, Buckets, Hashing, Input, Kind, MOST_WORDS, Out, OwnHeader, SNAPSHOT_HEADER, admit, read_words, write_words,
};
use crate::error::SnapshotErrorKind;
use crate::filter::engine::{FixedSize, Stored};
use alloc::vec::Vec;

impl FixedSize for DLeft {}

impl Stored for DLeft {
    const HELD: bool = true;

    fn snapshot_bytes(&self) -> usize {
        codec::snapshot_bytes(self.cells.words().len())
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let _held = self.cells.hold_all();
        let words = self.cells.words();
        let buckets = Buckets {
            bits: cells::REMAINDER as u8,
            number: self.cells.buckets(),
            expected_keys: self.expected_keys,
        };
        let header = OwnHeader::of_buckets(Kind::DLeft, hashing, words.len(), buckets);
        write_words(out, &header.to_bytes(), words.len(), words)
    }

    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::DLeft)?;
        let hasher = hasher(header.hashing)?;
        let Buckets {
            bits,
            number,
            expected_keys,
        } = header.buckets(MOST_WORDS / cells::WORDS_OF_BUCKETS as u64, |_, number| {
            Ok(cells::most_keys(number))
        })?;
        let right = cells::REMAINDER as u8;
        header.byte("the bits of a remainder", bits, right..=right)?;
        let words = cells::WORDS_OF_BUCKETS * number;
        header.check_words(words)?;
        admit(input, header.len as usize, cells::bytes_of(number) as u64, limit)?;
        let mut cells = Cells::new(number).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), words, |first, words| {
            cells.store(first, words.iter().map(Load::load));
        })?;
        cells.check()?;
        Ok((Self { cells, expected_keys }, hasher))
    }
}
