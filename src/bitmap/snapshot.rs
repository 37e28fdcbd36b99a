//! Snapshots of a bitmap, in the format of the filters' snapshots (`docs/FORMAT.md`), and
//! [`BitmapView`], which reads their bytes in place.

use super::words::words_of;
use super::{AtomicBits, Bitmap, ConcurrentBitmap, Storage};
use crate::codec::snapshot::{FixedSize, Stored};
use crate::codec::{
    Decoded, Hashing, Input, Kind, MOST_WORDS, Out, OwnHeader, SNAPSHOT_HEADER, Snapshot, SnapshotBytes, Viewed, admit,
    borrow, check_zeros, from_slice, invalid, read_words, snapshot_bytes, write_words,
};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::hash::Identity;
use crate::words::arrays::as_chunks;
use crate::words::bits::Load;
use alloc::format;
use alloc::vec::Vec;

/// The offset of the bound in the header.
const BOUND: usize = 32;
/// A bitmap has no hasher.
const NONE: Hashing = Hashing {
    identity: Identity::Other,
    fingerprint: 0,
};

/// The number of words that have positions, without those that only fill the last line.
fn used(bound: u64) -> usize {
    bound.div_ceil(64) as usize
}

fn header(bound: u64) -> OwnHeader {
    let mut header = OwnHeader::new(Kind::Bitmap, NONE, snapshot_bytes(used(bound)));
    header.put(BOUND, bound);
    header
}

/// The bound that a snapshot's header declares, and the length of the snapshot.
fn parse(bytes: &[u8]) -> Decoded<(u64, u64)> {
    let found = OwnHeader::parse(bytes, Kind::Bitmap)?;
    if found.hashing != NONE {
        let Hashing { identity, fingerprint } = found.hashing;
        return invalid(format!(
            "a bitmap has no hasher, but the header declares {identity} with fingerprint {fingerprint:016x}"
        ));
    }
    found.zeros(BOUND + 8..120)?;
    let bound = found.get(BOUND);
    if words_of(bound).is_none_or(|words| words as u64 > MOST_WORDS) {
        return invalid(format!("{bound} positions are beyond addressable memory"));
    }
    found.check_words(used(bound))?;
    Ok((bound, found.len))
}

/// Fails if the last word has bits beyond the bound.
fn check_end<W: Load>(words: &[W], bound: u64) -> Decoded<()> {
    if bound % 64 == 0 {
        return Ok(());
    }
    let word = bound / 64;
    match words[word as usize].load() & u64::MAX << (bound % 64) {
        0 => Ok(()),
        bits => Err(SnapshotErrorKind::UnusedBits { word, bits }),
    }
}

/// Snapshots. A snapshot holds every position that was inserted before the call and is not removed
/// meanwhile.
impl<B: Storage> Bitmap<B> {
    /// The content, to be written as bytes: to a vector, a writer, a file.
    /// [`from_bytes`](ConcurrentBitmap::from_bytes) has an example.
    #[inline]
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_, Self> {
        Snapshot(self)
    }
}

impl<B: Storage> Stored for Bitmap<B> {
    type Size = FixedSize;

    fn encoded_bytes(&self) -> usize {
        snapshot_bytes(used(self.bound()))
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        let bound = self.bound();
        write_words(out, &header(bound).to_bytes(), used(bound), self.all_values())
    }
}

/// Reading snapshots. [`Filter`](crate::Filter::from_bytes) documents each method.
///
/// ```
/// use lanebloom::bitmap::ConcurrentBitmap;
///
/// let set = ConcurrentBitmap::new(1000)?;
/// set.insert(17)?;
/// let bytes = [set.snapshot().to_vec(), b"more".to_vec()].concat();
/// let (same, rest) = ConcurrentBitmap::from_bytes(&bytes)?;
/// assert!(same == set && same.insert(18)? && rest == b"more");
/// assert!(ConcurrentBitmap::from_bytes(&bytes[..300]).is_err());
/// assert!(ConcurrentBitmap::read_from(&bytes[..], 128)? == set);
/// assert!(ConcurrentBitmap::read_from(&bytes[..], 127).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl ConcurrentBitmap {
    /// The set with which `bytes` begin, and the bytes after it.
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX)).map_err(SnapshotError)
    }

    /// Reads a set that takes at most `max_bytes` of memory. The bytes after it stay unread.
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes)).map_err(SnapshotError)
    }

    /// Reads a set of at most `limit` bytes.
    pub(crate) fn decode(input: &mut dyn Input, limit: usize) -> Decoded<Self> {
        let (bound, len) = parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?)?;
        let bytes = words_of(bound).expect("checked by parse") as u64 * 8;
        admit(input, len as usize, bytes, limit)?;
        let mut bits = AtomicBits::new(bound).map_err(SnapshotErrorKind::OutOfMemory)?;
        read_words(input, &header(bound).to_bytes(), used(bound), &mut |first, words| {
            bits.store_words(first, words.iter().map(Load::load));
        })?;
        check_end(bits.words(), bound)?;
        Ok(Self { bits })
    }
}

/// A [`ConcurrentBitmap`]'s snapshot, read in place: in borrowed bytes, or in a mapped file
/// (feature `mmap`). [`Bitmap`] has its methods. [`BloomView`](crate::BloomView) says what opening
/// checks.
///
/// ```
/// let set = lanebloom::bitmap::ConcurrentBitmap::new(1000)?;
/// set.insert_batch(&[17, 600])?;
/// let bytes = set.snapshot().to_vec();
/// let (view, _) = lanebloom::bitmap::BitmapView::from_bytes(&bytes)?;
/// assert!(view.contains(17) && !view.contains(18) && view.iter().eq([17, 600]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type BitmapView<'a> = Bitmap<SnapshotBits<'a>>;

/// The bits of a [`BitmapView`]: the bytes of a snapshot.
pub struct SnapshotBits<'a> {
    snapshot: SnapshotBytes<'a>,
    bound: u64,
}

impl Storage for SnapshotBits<'_> {
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

/// Opening a view.
impl<'a> BitmapView<'a> {
    /// A view of the snapshot with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the snapshot does, if the header is corrupt, or if they are
    /// not a snapshot of this type in this version of the format.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::bitmap::{BitmapView, ConcurrentBitmap};
    ///
    /// let set = ConcurrentBitmap::new(1000)?;
    /// set.insert(17)?;
    /// let bytes = [set.snapshot().to_vec(), b"more".to_vec()].concat();
    /// let (view, rest) = BitmapView::from_bytes(&bytes)?;
    /// assert!(view == set && rest == b"more");
    /// assert!(BitmapView::from_bytes(&bytes[..150]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SnapshotError> {
        borrow(bytes, |_| Ok(()))
    }
}

/// Mapped files.
#[cfg(feature = "mmap")]
impl BitmapView<'static> {
    /// A view of a file that holds a snapshot and nothing else, mapped into memory (feature
    /// `mmap`): [`codec::map`](crate::codec::map), without a hasher. Fails as it does.
    ///
    /// # Safety
    ///
    /// No process may write to the file or make it shorter while the view lives: see
    /// [`codec::map`](crate::codec::map#safety).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::bitmap::{BitmapView, ConcurrentBitmap};
    ///
    /// let set = ConcurrentBitmap::new(1000)?;
    /// set.insert(17)?;
    /// let file = tempfile::NamedTempFile::new()?;
    /// set.snapshot().save(&file)?;
    /// let file = std::fs::File::open(&file)?;
    /// // SAFETY: no other process knows of the file.
    /// let view = unsafe { BitmapView::map(&file)? };
    /// assert!(view == set);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub unsafe fn map(file: &std::fs::File) -> Result<Self, SnapshotError> {
        // SAFETY: the caller's promise.
        unsafe { crate::codec::mapped(file, |_| Ok(())) }
    }
}

/// The snapshot. [`ConcurrentBitmap::from_bytes`] reads its bytes.
impl BitmapView<'_> {
    /// The bytes of the snapshot. [`codec::verify`](crate::codec::verify) computes their checksum.
    ///
    /// ```
    /// use lanebloom::bitmap::{BitmapView, ConcurrentBitmap};
    ///
    /// let bytes = ConcurrentBitmap::new(1000)?.snapshot().to_vec();
    /// assert_eq!(BitmapView::from_bytes(&bytes)?.0.bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        Viewed::snapshot(self).bytes()
    }
}

impl<'a> Viewed<'a> for BitmapView<'a> {
    type Hasher = ();

    fn open(bytes: SnapshotBytes<'a>, _: impl FnOnce(Hashing) -> Decoded<()>) -> Decoded<Self> {
        let (bound, len) = parse(bytes.bytes())?;
        let snapshot = bytes.first(len)?;
        let bits = SnapshotBits { snapshot, bound };
        // The unused bits of the last line must be 0, as in a filter's snapshot.
        let end = SNAPSHOT_HEADER + 8 * used(bound);
        check_zeros(
            &bits.snapshot.bytes()[end..SNAPSHOT_HEADER + size_of_val(bits.words())],
            end,
        )?;
        check_end(bits.words(), bound)?;
        Ok(Self { bits })
    }

    fn snapshot(&self) -> &SnapshotBytes<'a> {
        &self.bits.snapshot
    }
}

#[cfg(feature = "serde")]
mod serde {
    use super::*;
    use crate::codec::{FromSnapshot, deserialize};
    use ::serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// Writes the snapshot's bytes, in Base64 if the format is text.
    ///
    /// ```
    /// use lanebloom::bitmap::ConcurrentBitmap;
    ///
    /// let set = ConcurrentBitmap::new(1000)?;
    /// set.insert(17)?;
    /// let json = serde_json::to_string(&set)?;
    /// let same: ConcurrentBitmap = serde_json::from_str(&json)?;
    /// assert!(same == set);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    impl<B: Storage> Serialize for Bitmap<B> {
        fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
            ConcurrentBitmap::serialize_bytes(&self.snapshot().to_vec(), serializer)
        }
    }

    /// Allocates in proportion to the input. [`Limited`](crate::codec::Limited) reads within a
    /// limit.
    impl<'de> Deserialize<'de> for ConcurrentBitmap {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            deserialize(deserializer, usize::MAX, Self::from_bytes)
        }
    }

    impl FromSnapshot for ConcurrentBitmap {
        type Hasher = ();
        type Error = SnapshotError;

        fn decode_within(bytes: &[u8], max_bytes: usize, (): ()) -> Result<(Self, &[u8]), SnapshotError> {
            from_slice(bytes, |input| Self::decode(input, max_bytes)).map_err(SnapshotError)
        }
    }
}
