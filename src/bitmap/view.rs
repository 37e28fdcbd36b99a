//! [`BitmapView`]: a snapshot's bytes, borrowed or mapped from a file, that answer in place.

use super::snapshot::{check_end, parse, used};
use super::words::{sealed, words_of};
use super::{Bitmap, ConcurrentBitmap, Store};
use crate::codec::{SNAPSHOT_HEADER, SnapshotBytes, check_zeros};
use crate::error::SnapshotError;
use crate::words::chunks::as_chunks;

/// A [`ConcurrentBitmap`]'s snapshot that answers in place: in borrowed bytes, or in a mapped file
/// (feature `mmap`). [`Bitmap`] has its methods.
///
/// Opening takes microseconds, whatever the size. It checks the header, with its checksum, and that
/// all bytes are there. Only [`verify`](Self::verify) reads all bytes: until then a view of corrupt
/// bytes gives wrong answers, but safely. The bytes may begin anywhere.
///
/// # Examples
///
/// ```
/// use lanebloom::ConcurrentBitmap;
/// use lanebloom::bitmap::BitmapView;
///
/// let set = ConcurrentBitmap::new(1000)?;
/// set.insert_batch(&[17, 600])?;
/// let bytes = set.to_bytes();
///
/// let (view, rest) = BitmapView::from_bytes(&bytes)?;
/// assert!(view.contains(17) && !view.contains(18) && view.iter().eq([17, 600]));
/// assert!(rest.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type BitmapView<'a> = Bitmap<View<'a>>;

/// The bits of a [`BitmapView`]: the bytes of a snapshot.
pub struct View<'a> {
    snapshot: SnapshotBytes<'a>,
    bound: u64,
}

impl sealed::Sealed for View<'_> {}

impl Store for View<'_> {
    type Word = [u8; 8];
    const NAME: &'static str = "BitmapView";

    #[inline(always)]
    fn bound(&self) -> u64 {
        self.bound
    }

    #[inline(always)]
    fn words(&self) -> &[[u8; 8]] {
        let words = words_of(self.bound).expect("checked when the view was opened");
        &as_chunks(&self.snapshot.bytes()[SNAPSHOT_HEADER..]).0[..words]
    }
}

impl<'a> BitmapView<'a> {
    /// A view of the snapshot with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the snapshot does, the header is corrupt, or they are no
    /// snapshot of a [`ConcurrentBitmap`] in this version of the format.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBitmap;
    /// use lanebloom::bitmap::BitmapView;
    ///
    /// let set = ConcurrentBitmap::new(1000)?;
    /// set.insert(17)?;
    /// let bytes = [set.to_bytes(), b"more".to_vec()].concat();
    /// let (view, rest) = BitmapView::from_bytes(&bytes)?;
    /// assert!(view == set && rest == b"more");
    /// assert!(BitmapView::from_bytes(&bytes[..300]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SnapshotError> {
        let (snapshot, bound, rest) = SnapshotBytes::borrow(bytes, parse).map_err(SnapshotError)?;
        Ok((Self::open(snapshot, bound)?, rest))
    }

    fn open(snapshot: SnapshotBytes<'a>, bound: u64) -> Result<Self, SnapshotError> {
        let view = View { snapshot, bound };
        // In the last line, what is no position must be 0, as in a filter that is read.
        let end = SNAPSHOT_HEADER + 8 * used(bound);
        let rest = &view.snapshot.bytes()[end..SNAPSHOT_HEADER + size_of_val(view.words())];
        let unused = check_zeros(rest, end).and_then(|()| check_end(view.words(), bound));
        unused.map(|()| Self { bits: view }).map_err(SnapshotError)
    }

    /// A set with the same positions that accepts changes.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are corrupt, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBitmap;
    /// use lanebloom::bitmap::BitmapView;
    ///
    /// let set = ConcurrentBitmap::new(1000)?;
    /// set.insert(17)?;
    /// let bytes = set.to_bytes();
    /// let same = BitmapView::from_bytes(&bytes)?.0.to_bitmap()?;
    /// assert!(same == set && same.insert(18)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_bitmap(&self) -> Result<ConcurrentBitmap, SnapshotError> {
        ConcurrentBitmap::from_bytes(self.bytes()).map(|(set, _)| set)
    }

    /// Computes the checksum of all the bytes.
    ///
    /// # Errors
    ///
    /// If the checksum differs from the one in the snapshot.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBitmap;
    /// use lanebloom::bitmap::BitmapView;
    ///
    /// let mut bytes = ConcurrentBitmap::new(1000)?.to_bytes();
    /// assert!(BitmapView::from_bytes(&bytes)?.0.verify().is_ok());
    /// bytes[130] ^= 1;
    /// assert!(BitmapView::from_bytes(&bytes)?.0.verify().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<(), SnapshotError> {
        self.bits.snapshot.verify().map_err(SnapshotError)
    }

    /// Bytes of the snapshot.
    ///
    /// ```
    /// use lanebloom::ConcurrentBitmap;
    /// use lanebloom::bitmap::BitmapView;
    ///
    /// let bytes = ConcurrentBitmap::new(1000)?.to_bytes();
    /// assert_eq!(BitmapView::from_bytes(&bytes)?.0.bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bits.snapshot.bytes()
    }
}

#[cfg(feature = "mmap")]
impl BitmapView<'static> {
    /// A view of a file that holds a snapshot and nothing else, mapped into memory (feature
    /// `mmap`), as [`BloomView::map`](crate::BloomView::map) describes. `file` may be closed then.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be mapped (the system's error is the
    /// [source](core::error::Error::source)), if it has bytes after the snapshot, and as
    /// [`from_bytes`](BitmapView::from_bytes).
    ///
    /// # Safety
    ///
    /// As long as the view lives, no process may write to the file or make it shorter.
    /// [`replace_file`](crate::codec::replace_file) does not change the file: the view keeps the
    /// old one.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBitmap;
    /// use lanebloom::bitmap::BitmapView;
    ///
    /// let set = ConcurrentBitmap::new(1000)?;
    /// set.insert(17)?;
    /// let file = tempfile::tempfile()?;
    /// set.write_to(&file)?;
    /// // SAFETY: nobody else knows of the file.
    /// let view = unsafe { BitmapView::map(&file)? };
    /// assert!(view == set && view.verify().is_ok());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn map(file: &std::fs::File) -> Result<Self, SnapshotError> {
        // SAFETY: the caller's promise.
        let (snapshot, bound) = unsafe { SnapshotBytes::map(file, parse) }.map_err(SnapshotError)?;
        Self::open(snapshot, bound)
    }
}
