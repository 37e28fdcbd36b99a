//! Snapshots of the compact form: its packed buckets as they lie. `docs/FORMAT.md` describes the
//! bytes.

use super::{Compact, Packed};
use crate::bits::Load;
use crate::codec::{self, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, admit, read_words, write_words};
use crate::error::SnapshotErrorKind;
use crate::filter::cuckoo::shape::Plan;
use crate::filter::engine::{FixedSize, Stored};
use alloc::vec::Vec;

impl FixedSize for Compact {}

impl Stored for Compact {
    const HELD: bool = false;

    fn snapshot_bytes(&self) -> usize {
        codec::snapshot_bytes(self.buckets.filled().len())
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let words = self.buckets.filled();
        let plan = Plan {
            shape: self.buckets.shape,
            buckets: self.buckets.buckets,
            keys: self.expected_keys,
        };
        let header = OwnHeader::of_buckets(Kind::CompactCuckoo, hashing, words.len(), plan.to_header());
        write_words(out, &header.to_bytes(), words.len(), words.iter().copied())
    }

    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::CompactCuckoo)?;
        let hasher = hasher(header.hashing)?;
        let Plan { shape, buckets, keys } = Plan::of_header(&header)?;
        let words = Packed::words_filled(shape, buckets);
        header.check_words(words)?;
        admit(
            input,
            header.len as usize,
            Packed::bytes_of(shape, buckets) as u64,
            limit,
        )?;
        let mut packed = Packed::zeros(shape, buckets).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), words, |first, words| {
            packed.store(first, words.iter().map(Load::load));
        })?;
        packed.check()?;
        let engine = Self {
            buckets: packed,
            expected_keys: keys,
        };
        Ok((engine, hasher))
    }
}
