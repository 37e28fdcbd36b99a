//! [`BloomView`]: a snapshot's bytes, borrowed or mapped from a file, and lookups in them, in
//! place. A view copies nothing and inserts nothing.

use crate::codec::{
    BlocksHeader, Decoded, Hashing, Kind, OwnHeader, SNAPSHOT_HEADER, SnapshotBytes, Viewed, borrow, from_bytes,
    murmur3,
};
use crate::error::{BuildError, SnapshotError};
use crate::filter::Frozen;
use crate::filter::parts::lines::LineWords;
use crate::filter::parts::several;
use crate::filter::types::bloom::{Bloom, ConcurrentBloom};
use crate::geometry::layout::{LINE_BYTES, Layout};
use crate::geometry::sizing::Unit;
use crate::hash::{FilterHasher, Murmur3};
use crate::kernel::{Isa, Lookups};
use crate::words::arrays::as_chunks;
use crate::words::bits::Lines;
use core::num::NonZeroUsize;

/// A [`ConcurrentBloom`]'s snapshot as a filter, in place: in borrowed bytes, or in a mapped
/// file (feature `mmap`).
///
/// It opens in microseconds, whatever its size. It finds what the original filter did, by the same
/// vector kernels. A view is read-only; [`to_filter`](Self::to_filter) makes a filter from it. A
/// clone of a view reads the same bytes.
///
/// Opening checks the header, with its checksum, and that all bytes are there. Only
/// [`codec::verify`](crate::codec::verify) computes the checksum of the whole, since it reads all
/// of it: a view of corrupt bytes gives wrong results, but safely.
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
/// let bytes = filter.snapshot().to_vec();
/// let (view, _) = BloomView::from_bytes(&bytes)?;
/// assert!(view.contains("a") && !view.contains("b"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A file is mapped while its writer [replaces](crate::codec::replace_file) it:
///
/// ```
/// # #[cfg(feature = "mmap")] {
/// use lanebloom::codec::replace_file;
/// use lanebloom::{BloomView, ConcurrentBloom};
/// use std::fs::File;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("seen.filter");
/// let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// filter.insert("a");
/// replace_file(&path, |file| filter.snapshot().write_to(file))?;
/// // SAFETY: whoever writes this file replaces it.
/// let view = unsafe { BloomView::map(&File::open(&path)?)? };
/// filter.insert("b");
/// replace_file(&path, |file| filter.snapshot().write_to(file))?;
/// // The view keeps the old file.
/// assert!(view.contains("a") && !view.contains("b"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A view is not compared or serialized: those impls of this page are for filters that own their
/// bits. Use [`bytes`](Self::bytes) or [`to_filter`](Self::to_filter).
pub type BloomView<'a, S = Murmur3> = Frozen<View<'a>, S>;

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

/// Opening a view.
impl<'a> BloomView<'a> {
    /// A view of the snapshot with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the snapshot does, if the header is corrupt, if they are not a
    /// snapshot of this type in this version of the format, or if the hasher is not
    /// [`Murmur3`]: [`codec::view`](crate::codec::view()) takes any.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{BloomView, ConcurrentBloom};
    ///
    /// let filter = ConcurrentBloom::from_keys(["a"], 0.01)?;
    /// let bytes = [filter.snapshot().to_vec(), b"more".to_vec()].concat();
    /// let (view, rest) = BloomView::from_bytes(&bytes)?;
    /// assert!(view.contains("a") && rest == b"more");
    /// assert!(BloomView::from_bytes(&bytes[..150]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SnapshotError> {
        borrow(bytes, murmur3)
    }
}

/// Mapped files.
#[cfg(feature = "mmap")]
impl BloomView<'static> {
    /// A view of a file that holds a snapshot and nothing else, mapped into memory (feature
    /// `mmap`): [`codec::map`](crate::codec::map), with [`Murmur3`], whose seed the file has. Fails
    /// as it does.
    ///
    /// # Safety
    ///
    /// No process may write to the file or make it shorter while the view lives: see
    /// [`codec::map`](crate::codec::map#safety).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{BloomView, ConcurrentBloom};
    ///
    /// let filter = ConcurrentBloom::from_keys(["a"], 0.01)?;
    /// let file = tempfile::NamedTempFile::new()?;
    /// filter.snapshot().save(&file)?;
    /// let file = std::fs::File::open(&file)?;
    /// // SAFETY: no other process knows of the file.
    /// let view = unsafe { BloomView::map(&file)? };
    /// assert!(view.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub unsafe fn map(file: &std::fs::File) -> Result<Self, SnapshotError> {
        // SAFETY: the caller's promise.
        unsafe { crate::codec::mapped(file, murmur3) }
    }
}

impl<'a, S> Viewed<'a> for BloomView<'a, S> {
    type Hasher = S;

    fn open(bytes: SnapshotBytes<'a>, hasher: impl FnOnce(Hashing) -> Decoded<S>) -> Decoded<Self> {
        let header = OwnHeader::parse(bytes.bytes(), Kind::Bloom)?;
        let BlocksHeader {
            layout, expected_keys, ..
        } = header.blocks()?;
        let hasher = hasher(header.hashing)?;
        let words = BloomBytes {
            snapshot: bytes.first(header.len)?,
            lookups: several::lookups(layout, Isa::best()),
            blocks: NonZeroUsize::new(layout.blocks).expect("a header without blocks is refused"),
        };
        let engine = Bloom {
            words,
            layout,
            expected_keys,
        };
        Ok(Frozen::of(engine, hasher))
    }

    fn snapshot(&self) -> &SnapshotBytes<'a> {
        &self.0.engine.words.snapshot
    }
}

/// The snapshot.
impl<S> BloomView<'_, S> {
    /// The bytes of the snapshot. [`codec::verify`](crate::codec::verify) computes their checksum.
    ///
    /// ```
    /// use lanebloom::{BloomView, ConcurrentBloom};
    ///
    /// let bytes = ConcurrentBloom::from_keys(["a"], 0.01)?.snapshot().to_vec();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        Viewed::snapshot(self).bytes()
    }

    /// Where the bits of a key lie.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// let bytes = filter.snapshot().to_vec();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.layout(), filter.layout());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn layout(&self) -> crate::bloom::Layout {
        self.0.layout()
    }

    /// A filter with the same keys that accepts inserts:
    /// [`codec::from_bytes`](crate::codec::from_bytes) of the view's bytes. Fails if the bytes are
    /// corrupt, or the allocation fails.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// filter.insert("a");
    /// let bytes = filter.snapshot().to_vec();
    /// let same = BloomView::from_bytes(&bytes)?.0.to_filter()?;
    /// assert!(same == filter && same.insert("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<ConcurrentBloom<S>, SnapshotError>
    where
        S: FilterHasher + Clone,
    {
        from_bytes(self.bytes(), self.0.hasher.clone()).map(|(filter, _)| filter)
    }

    /// Whether the blocks begin with a line of the cache, so that a key touches one line. In a
    /// mapped file they do.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::with_capacity(1000, 0.01)?;
    /// #[repr(align(64))]
    /// struct Lines([u8; 1600 + 1]);
    ///
    /// let mut lines = Lines([0; 1600 + 1]);
    /// filter.snapshot().write_to_slice(&mut lines.0[..1600]);
    /// assert!(BloomView::from_bytes(&lines.0)?.0.is_aligned());
    /// filter.snapshot().write_to_slice(&mut lines.0[1..]);
    /// assert!(!BloomView::from_bytes(&lines.0[1..])?.0.is_aligned());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn is_aligned(&self) -> bool {
        self.0.engine.words.lines().all().as_ptr().addr() % LINE_BYTES == 0
    }
}

impl LineWords for BloomBytes<'_> {
    type Word = [u8; 8];
    const TYPE: &'static str = "BloomView";
    const UNIT: Unit = Unit::Bit;

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
        self.lookups = several::lookups(layout, isa);
    }
}
