//! Snapshots of a cuckoo filter: its buckets as they are, a word each. `docs/FORMAT.md` describes
//! the bytes.

use super::Cuckoo;
use super::shape::{self, Plan, Shape};
use super::table::Table;
use crate::bits::Load;
use crate::codec::{
    self, Buckets, Hashing, Input, Kind, MOST_WORDS, Out, OwnHeader, SNAPSHOT_HEADER, admit, read_words, write_words,
};
use crate::error::{BuildError, BuildErrorKind, SnapshotErrorKind};
use crate::filter::engine::{FixedSize, Stored};
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

/// The shape of buckets with tags of so many bits.
fn shape_of(bits: u8) -> Result<Shape, SnapshotErrorKind> {
    let bits = usize::from(bits);
    Shape::of(bits).ok_or_else(|| SnapshotErrorKind::Invalid(BuildError(BuildErrorKind::TagBits(bits)).to_string()))
}

impl Plan {
    pub(super) fn to_header(self) -> Buckets {
        Buckets {
            bits: self.shape.tag_bits as u8,
            number: self.buckets,
            expected_keys: self.keys,
        }
    }

    pub(super) fn of_header(header: &OwnHeader) -> Result<Self, SnapshotErrorKind> {
        let Buckets {
            bits,
            number,
            expected_keys,
        } = header.buckets(MOST_WORDS, |bits, number| Ok(shape_of(bits)?.most_keys(number)))?;
        let shape = shape_of(bits)?;
        // Two at least, then, and a key's two are never one.
        if !number.is_multiple_of(2) {
            return Err(SnapshotErrorKind::Invalid(format!(
                "{number} buckets is not an even number"
            )));
        }
        Ok(Self {
            shape,
            buckets: number,
            keys: expected_keys,
        })
    }
}

impl FixedSize for Cuckoo {}

impl Stored for Cuckoo {
    const HELD: bool = true;

    fn snapshot_bytes(&self) -> usize {
        codec::snapshot_bytes(self.table.buckets())
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let _held = self.table.hold_all();
        let words = self.table.words();
        let plan = Plan {
            shape: self.table.shape(),
            buckets: self.table.buckets(),
            keys: self.expected_keys,
        };
        let header = OwnHeader::of_buckets(Kind::Cuckoo, hashing, words.len(), plan.to_header());
        write_words(out, &header.to_bytes(), words.len(), words)
    }

    fn decode<I: Input, S>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, S), SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Cuckoo)?;
        let hasher = hasher(header.hashing)?;
        let Plan { shape, buckets, keys } = Plan::of_header(&header)?;
        header.check_words(buckets)?;
        admit(input, header.len as usize, shape::bytes_of(buckets) as u64, limit)?;
        let mut table = Table::new(shape, buckets).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header.to_bytes(), buckets, |first, words| {
            table.store(first, words.iter().map(Load::load));
        })?;
        // Any tag may be in any bucket. Only bits outside the slots would be misread.
        shape.check(table.words())?;
        let engine = Self {
            table,
            expected_keys: keys,
        };
        Ok((engine, hasher))
    }
}
