//! [`BloomView`]: a snapshot's bytes, borrowed or mapped from a file, that answer lookups in place.
//! A view copies nothing and inserts nothing.

use crate::codec::{BlocksHeader, Decoded, Hashing, Kind, SNAPSHOT_HEADER, SnapshotBytes, given, murmur3};
use crate::error::{BuildError, SnapshotError};
use crate::filter::Filter;
use crate::filter::parts::lines::{Bloom, LineWords};
use crate::filter::types::bloom::ConcurrentBloom;
use crate::geometry::layout::{LINE_BYTES, Layout};
use crate::geometry::sizing::Cell;
use crate::hash::{FilterHasher, Murmur3};
use crate::kernel::{Isa, Lookups};
use crate::words::bits::Lines;
use crate::words::chunks::as_chunks;
use core::num::NonZeroUsize;

/// A [`ConcurrentBloom`]'s snapshot that answers lookups in place: in borrowed bytes, or in a
/// mapped file (feature `mmap`).
///
/// It opens in microseconds, whatever its size. It answers as the original filter did, by the same
/// vector kernels. A view is read-only; [`to_filter`](Self::to_filter) makes a filter from it. A
/// clone of a view reads the same bytes.
///
/// Opening checks the header, with its checksum, and that all bytes are there. Only
/// [`verify`](Self::verify) computes the checksum of the whole, since it reads all of it: a view of
/// corrupt bytes gives wrong answers, but safely.
///
/// The bytes may begin anywhere. Their order is that of the [format](crate::codec#the-format) on
/// every machine. Lookups are as fast as in a filter if the blocks [begin with a line of the
/// cache](Self::is_aligned), as in a mapped file, and the machine is little-endian. Elsewhere a key
/// may touch two lines, or its words take an instruction more.
///
/// ```
/// use lanebloom::{BloomView, ConcurrentBloom};
///
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// filter.insert("a");
/// let bytes = filter.to_bytes();
/// let (view, _) = BloomView::from_bytes(&bytes)?;
/// assert!(view.contains("a") && !view.contains("b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type BloomView<'a, S = Murmur3> = Filter<View<'a>, S>;

/// The engine of [`BloomView`]: the bytes of a snapshot.
pub type View<'a> = Bloom<BloomBytes<'a>>;

/// The bytes of a snapshot, and the kernels that look them up.
#[doc(hidden)]
pub struct BloomBytes<'a> {
    snapshot: SnapshotBytes<'a>,
    lookups: Lookups<[u8; 8]>,
    /// The header's number of blocks.
    blocks: NonZeroUsize,
}

impl<'a> BloomView<'a> {
    /// A view of the snapshot with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the snapshot does, the header is corrupt, they are not a
    /// snapshot of a [`ConcurrentBloom`] in this version of the format, or the hasher is not
    /// [`Murmur3`] ([`from_bytes_with`](Self::from_bytes_with) takes others).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{BloomView, ConcurrentBloom};
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).seed(7).build()?;
    /// filter.insert("a");
    /// let bytes = [filter.to_bytes(), b"more".to_vec()].concat();
    /// let (view, rest) = BloomView::from_bytes(&bytes)?;
    /// assert!(view.contains("a") && view.hasher().seed() == 7);
    /// assert_eq!(rest, b"more");
    /// assert!(BloomView::from_bytes(&bytes[..1000]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SnapshotError> {
        Self::borrow(bytes, murmur3).map_err(SnapshotError)
    }
}

impl<'a, S: FilterHasher> BloomView<'a, S> {
    /// [`from_bytes`](BloomView::from_bytes) for a filter with any hasher: `hasher` must be the one
    /// that filled the filter. Fails as [`from_bytes`](BloomView::from_bytes), and if the hasher
    /// differs.
    ///
    /// ```
    /// use lanebloom::{BloomView, ConcurrentBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let builder = ConcurrentBloom::builder().expected_keys(1000);
    /// let filter = builder.hasher(hasher).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// assert!(BloomView::from_bytes_with(&bytes, hasher)?.0.contains("a"));
    /// assert!(BloomView::from_bytes(&bytes).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &'a [u8], hasher: S) -> Result<(Self, &'a [u8]), SnapshotError> {
        Self::borrow(bytes, given(hasher)).map_err(SnapshotError)
    }

    fn borrow(bytes: &'a [u8], hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<(Self, &'a [u8])> {
        let (snapshot, (header, hasher), rest) = SnapshotBytes::borrow(bytes, |bytes| parse(bytes, hasher))?;
        Ok((Filter::of(engine(snapshot, header), hasher), rest))
    }
}

/// The header with which `bytes` begin, with its hasher, and the length of the snapshot.
fn parse<S>(bytes: &[u8], hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<((BlocksHeader, S), usize)> {
    let header = BlocksHeader::parse(bytes, Kind::Bloom)?;
    let hasher = hasher(header.hashing)?;
    Ok(((header, hasher), header.len()))
}

#[cfg(feature = "mmap")]
mod map {
    use super::*;
    use std::fs::File;

    impl BloomView<'static> {
        /// A view of a file that holds a snapshot and nothing else, mapped into memory (feature
        /// `mmap`). The system reads a page from the file when a lookup first needs it, and shares
        /// it with every process that maps the file. `file` may be closed then.
        ///
        /// The view asks Linux for huge pages. Linux grants them if the file system can keep a file
        /// in huge pages, and the file is read anew or was written in large pieces, as
        /// [`write_to`](crate::ConcurrentBloom::write_to) does. Then lookups are as fast as in a
        /// filter, and a first lookup reads 2 MiB.
        ///
        /// # Errors
        ///
        /// Fails if the file cannot be mapped (the system's error is the
        /// [source](std::error::Error::source)), if it has bytes after the snapshot, and as
        /// [`from_bytes`](BloomView::from_bytes).
        ///
        /// # Safety
        ///
        /// As long as the view lives, no process may write to the file or make it shorter. Rust
        /// assumes that the bytes are immutable, and a lookup in a page that is gone ends the
        /// process (`SIGBUS`). [`replace_file`](crate::codec::replace_file) does not change the
        /// file: the view keeps the old one.
        ///
        /// # Examples
        ///
        /// ```
        /// use lanebloom::codec::replace_file;
        /// use lanebloom::{BloomView, ConcurrentBloom};
        /// use std::fs::File;
        ///
        /// # let directory = tempfile::tempdir()?;
        /// # let path = directory.path().join("ids.bloom");
        /// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
        /// filter.insert("a");
        /// replace_file(&path, |file| filter.write_to(file))?;
        ///
        /// // SAFETY: whoever writes this file replaces it.
        /// let view = unsafe { BloomView::map(&File::open(&path)?)? };
        /// assert!(view.contains("a") && !view.contains("b"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        #[inline]
        pub unsafe fn map(file: &File) -> Result<Self, SnapshotError> {
            // SAFETY: the caller's promise.
            unsafe { Self::map_file(file, murmur3) }.map_err(SnapshotError)
        }
    }

    impl<S: FilterHasher> BloomView<'static, S> {
        /// [`map`](BloomView::map) for a filter with any hasher: `hasher` must be the one that
        /// filled the filter. Fails as [`map`](BloomView::map), and if the hasher differs.
        ///
        /// # Safety
        ///
        /// As [`map`](BloomView::map).
        ///
        /// # Examples
        ///
        /// ```
        /// use lanebloom::{BloomView, ConcurrentBloom, SipHash13};
        ///
        /// let builder = ConcurrentBloom::builder().expected_keys(1000);
        /// let filter = builder.hasher(SipHash13::random()).build()?;
        /// filter.insert("a");
        /// let file = tempfile::tempfile()?;
        /// filter.write_to(&file)?;
        /// // SAFETY: nobody else knows of the file.
        /// let view = unsafe { BloomView::map_with(&file, *filter.hasher())? };
        /// assert!(view.contains("a") && !view.contains("b"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub unsafe fn map_with(file: &File, hasher: S) -> Result<Self, SnapshotError> {
            // SAFETY: the caller's promise.
            unsafe { Self::map_file(file, given(hasher)) }.map_err(SnapshotError)
        }

        /// # Safety
        ///
        /// As `map`.
        unsafe fn map_file(file: &File, hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<Self> {
            // SAFETY: the caller's promise.
            let (snapshot, (header, hasher)) = unsafe { SnapshotBytes::map(file, |bytes| parse(bytes, hasher)) }?;
            Ok(Filter::of(engine(snapshot, header), hasher))
        }
    }
}

/// The snapshot.
impl<S> BloomView<'_, S> {
    /// A filter with the same keys that accepts inserts:
    /// [`from_bytes_with`](ConcurrentBloom::from_bytes_with) of the view's bytes. Fails if the
    /// bytes are corrupt, or the allocation fails.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// let same = BloomView::from_bytes(&bytes)?.0.to_filter()?;
    /// assert!(same == filter && same.insert("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<ConcurrentBloom<S>, SnapshotError>
    where
        S: FilterHasher + Clone,
    {
        ConcurrentBloom::from_bytes_with(self.bytes(), self.hasher.clone()).map(|(filter, _)| filter)
    }

    /// Computes the checksum of all the bytes. Fails if the checksum differs from the one in the
    /// snapshot.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let mut bytes = filter.to_bytes();
    /// assert!(BloomView::from_bytes(&bytes)?.0.verify().is_ok());
    /// bytes[1000] ^= 1;
    /// assert!(BloomView::from_bytes(&bytes)?.0.verify().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<(), SnapshotError> {
        self.engine.words.snapshot.verify().map_err(SnapshotError)
    }

    /// Whether the blocks begin with a line of the cache, so that a key touches one line. In a
    /// mapped file they do.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// #[repr(align(64))]
    /// struct Lines([u8; 1536 + 1]);
    ///
    /// let mut lines = Lines([0; 1536 + 1]);
    /// filter.write_to_slice(&mut lines.0[..1536]);
    /// assert!(BloomView::from_bytes(&lines.0)?.0.is_aligned());
    /// filter.write_to_slice(&mut lines.0[1..]);
    /// assert!(!BloomView::from_bytes(&lines.0[1..])?.0.is_aligned());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        self.engine.words.lines().all().as_ptr().addr() % LINE_BYTES == 0
    }

    /// Bytes of the snapshot.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// # let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.engine.words.snapshot.bytes()
    }
}

/// The engine on these bytes.
#[inline]
fn engine(snapshot: SnapshotBytes<'_>, header: BlocksHeader) -> View<'_> {
    let layout = header.layout;
    Bloom {
        words: BloomBytes {
            snapshot,
            lookups: Lookups::of(layout, Isa::best()),
            blocks: NonZeroUsize::new(layout.blocks).expect("a header without blocks is refused"),
        },
        layout,
        expected_keys: header.expected_keys,
    }
}

impl LineWords for BloomBytes<'_> {
    type Word = [u8; 8];
    const TYPE: &'static str = "BloomView";
    const CELL: Cell = Cell::Bit;

    #[inline(always)]
    fn lookups(&self) -> &Lookups<[u8; 8]> {
        &self.lookups
    }

    #[inline(always)]
    fn lines(&self) -> Lines<'_, [u8; 8]> {
        let body = &self.snapshot.bytes()[SNAPSHOT_HEADER..];
        Lines::new(as_chunks(as_chunks(body).0).0, self.blocks)
    }

    /// Another view of the same bytes.
    #[inline]
    fn copy(&self) -> Result<Self, BuildError> {
        Ok(Self {
            snapshot: self.snapshot.clone(),
            ..*self
        })
    }

    #[inline]
    fn set_kernels(&mut self, layout: Layout, isa: Isa) {
        self.lookups = Lookups::of(layout, isa);
    }
}
