//! [`StaticView`]: the bytes of a snapshot, borrowed or mapped from a file, and lookups in
//! them, in place.

use super::table::{Fuse, SnapshotCells};
use crate::codec::{Decoded, Hashing, Kind, OwnHeader, SnapshotBytes, Viewed, viewed};
use crate::filter::Frozen;
use crate::hash::Murmur3;

/// A [`StaticFilter`](crate::StaticFilter)'s snapshot as a filter, in place: in borrowed bytes,
/// or in a mapped file (feature `mmap`).
///
/// It copies no cells; of each million keys it keeps 8 bytes. It finds what the original did, as
/// fast. A clone of a view reads the same bytes.
///
/// Opening checks the header, with its checksum, the seeds, and that all bytes are there. Only
/// [`verify`](Self::verify) computes the checksum of the whole, since it reads all of it: a view of
/// corrupt bytes gives wrong results, but safely.
///
/// ```
/// use lanebloom::{StaticFilter, StaticView};
///
/// let bytes = StaticFilter::from_keys(["a", "c"], 1e-4)?.snapshot().to_vec();
/// let (view, _) = StaticView::from_bytes(&bytes)?;
/// assert!(view.contains("a") && !view.contains("b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type StaticView<'a, S = Murmur3> = Frozen<StaticBytes<'a>, S>;

/// The engine of [`StaticView`]: the bytes of a snapshot.
pub type StaticBytes<'a> = Fuse<SnapshotCells<'a>>;

viewed! {
    StaticView = "lanebloom::StaticView",
    finds: "view.contains(\"a\")",
    bytes: ["let bytes = lanebloom::StaticFilter::from_keys([\"a\"], 1e-4)?.snapshot().to_vec();"],
    bytes_with: [
        "let filter = lanebloom::StaticFilter::builder().hasher(hasher).build_from_keys([\"a\"])?;",
        "let bytes = filter.snapshot().to_vec();"
    ]
}

impl<'a, S> Viewed<'a> for StaticView<'a, S> {
    type Hasher = S;

    fn open(bytes: SnapshotBytes<'a>, hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<Self> {
        let header = OwnHeader::parse(bytes.bytes(), Kind::Static)?;
        let hasher = hasher(header.hashing)?;
        let (layout, _, keys) = header.fuse()?;
        let cells = SnapshotCells(bytes.first(header.len)?);
        Ok(Frozen::of(Fuse::new(cells, layout, keys)?, hasher))
    }

    fn snapshot(&self) -> &SnapshotBytes<'a> {
        &self.0.engine.body.0
    }
}
