//! `BloomView`: a snapshot's bytes, borrowed or mapped from a file, that answer lookups in place.
//! Keys go in, answers come out, by the kernels of [`ConcurrentBloom`]. A view copies nothing and
//! inserts nothing.

use crate::bits::Lines;
use crate::codec::{Checksum, Hashing, Header, Kind, SNAPSHOT_HEADER, TRAILER, given, murmur3, split};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::bloom::ConcurrentBloom;
use crate::filter::lookup::Lookup;
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, Murmur3};
use crate::kernel::{Isa, Lookups};
use crate::sizing::{LINE_BITS, LINE_BYTES};
use core::fmt;

/// A [`ConcurrentBloom`]'s snapshot that answers lookups in place: in borrowed bytes, or in a
/// mapped file (feature `mmap`).
///
/// It opens in microseconds, whatever its size. It answers as the original filter did, by the same
/// vector kernels. A view is read-only; [`to_filter`](Self::to_filter) makes a filter from it.
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
/// # Examples
///
/// ```
/// use lanebloom::{BloomView, ConcurrentBloom};
///
/// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
/// filter.insert("a");
/// let bytes = filter.to_bytes();
///
/// let (view, rest) = BloomView::from_bytes(&bytes)?;
/// assert!(view.contains("a") && !view.contains("b"));
/// assert!(rest.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BloomView<'a, S = Murmur3> {
    snapshot: Snapshot<'a>,
    lookups: Lookups<[u8; 8]>,
    header: Header,
    hasher: S,
}

/// Bytes of a whole snapshot, which are [`Header::len`].
enum Snapshot<'a> {
    Borrowed(&'a [u8]),
    #[cfg(feature = "mmap")]
    Mapped(memmap2::Mmap),
}

impl<'a> BloomView<'a> {
    /// A view of the snapshot with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// If the bytes end before the snapshot does, its header is corrupt, they are no snapshot of a
    /// [`ConcurrentBloom`], or one by another version of the format or with another hasher than
    /// [`Murmur3`] ([`from_bytes_with`](Self::from_bytes_with) takes those).
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
    ///
    /// let error = BloomView::from_bytes(&bytes[..1000]).unwrap_err();
    /// assert_eq!(error.to_string(), "the bytes end after 1000 of 1536");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), SnapshotError> {
        Self::borrow(bytes, murmur3).map_err(SnapshotError)
    }
}

impl<'a, S: KeyHasher> BloomView<'a, S> {
    /// [`from_bytes`](BloomView::from_bytes) for a filter with any hasher: `hasher` must be the one
    /// that filled the filter.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes`](BloomView::from_bytes), and if the filter's hasher has another
    /// algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{BloomView, ConcurrentBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).hasher(hasher).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// assert!(BloomView::from_bytes_with(&bytes, hasher)?.0.contains("a"));
    /// assert!(BloomView::from_bytes_with(&bytes, SipHash13::random()).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &'a [u8], hasher: S) -> Result<(Self, &'a [u8]), SnapshotError> {
        Self::borrow(bytes, given(hasher)).map_err(SnapshotError)
    }

    fn borrow(
        bytes: &'a [u8],
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<(Self, &'a [u8]), SnapshotErrorKind> {
        let header = Header::parse(bytes, Kind::Bloom)?;
        let hasher = hasher(header.hashing)?;
        let (snapshot, rest) = split(bytes, header.len())?;
        Ok((Self::new(Snapshot::Borrowed(snapshot), header, hasher), rest))
    }

    fn new(snapshot: Snapshot<'a>, header: Header, hasher: S) -> Self {
        Self {
            snapshot,
            lookups: Lookups::<[u8; 8]>::of(header.layout, Isa::detect()),
            header,
            hasher,
        }
    }
}

#[cfg(feature = "mmap")]
mod map {
    use super::{BloomView, Hashing, Header, KeyHasher, Kind, Snapshot, SnapshotError, SnapshotErrorKind};
    use crate::codec::{given, murmur3, split};
    use memmap2::Mmap;
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
        /// If the file cannot be mapped (the system's error is the
        /// [source](std::error::Error::source)), has bytes after the snapshot, and as of
        /// [`from_bytes`](BloomView::from_bytes).
        ///
        /// # Safety
        ///
        /// As long as the view lives, nobody may change the file: neither this process nor another
        /// one may write to it or make it shorter. Rust assumes that the bytes are immutable, and a
        /// lookup in a page that is gone ends the process (`SIGBUS`). *Replacing* the file by
        /// another of the same name, as [`replace_file`](crate::codec::replace_file) does, does not
        /// change it: a view keeps the old file, and a new view has the new one.
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
        /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
        /// filter.insert("a");
        /// replace_file(&path, |file| filter.write_to(file))?;
        ///
        /// // SAFETY: whoever writes this file replaces it.
        /// let view = unsafe { BloomView::map(&File::open(&path)?)? };
        /// assert!(view.contains("a") && !view.contains("b"));
        /// # Ok::<(), Box<dyn std::error::Error>>(())
        /// ```
        pub unsafe fn map(file: &File) -> Result<Self, SnapshotError> {
            // SAFETY: the caller's promise.
            unsafe { Self::map_file(file, murmur3) }.map_err(SnapshotError)
        }
    }

    impl<S: KeyHasher> BloomView<'static, S> {
        /// [`map`](BloomView::map) of a filter with any hasher: `hasher` must be the one that it
        /// was filled by.
        ///
        /// # Errors
        ///
        /// As of [`map`](BloomView::map), and if the filter's hasher has another algorithm, seed or
        /// key.
        ///
        /// # Safety
        ///
        /// As of [`map`](BloomView::map).
        ///
        /// # Examples
        ///
        /// ```
        /// use lanebloom::{BloomView, ConcurrentBloom, SipHash13};
        ///
        /// let filter = ConcurrentBloom::builder().expected_keys(1000).hasher(SipHash13::random()).build()?;
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
        /// As of `map`.
        unsafe fn map_file(
            file: &File,
            hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
        ) -> Result<Self, SnapshotErrorKind> {
            // SAFETY: the caller's promise.
            let map = unsafe { Mmap::map(file) }.map_err(SnapshotErrorKind::Io)?;
            // If that is refused, nothing but speed is lost.
            #[cfg(target_os = "linux")]
            let _ = map.advise(memmap2::Advice::HugePage);
            let header = Header::parse(&map, Kind::Bloom)?;
            let hasher = hasher(header.hashing)?;
            let (_, rest) = split(&map, header.len())?;
            if !rest.is_empty() {
                return Err(SnapshotErrorKind::TooLong {
                    bytes: map.len() as u64,
                    needed: header.len() as u64,
                });
            }
            Ok(Self::new(Snapshot::Mapped(map), header, hasher))
        }
    }
}

/// Lookups, as those of [`ConcurrentBloom`].
impl<S: KeyHasher> BloomView<'_, S> {
    /// Whether `key` may be in the filter: `false` is certain, `true` may be a false positive.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert(&17u64);
    /// let bytes = filter.to_bytes();
    /// let (view, _) = BloomView::from_bytes(&bytes)?;
    /// assert!(view.contains(&17u64) && !view.contains(&18u64));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        self.contains_hash(self.hash(key))
    }

    /// The hash by which this filter knows `key`.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// let (view, _) = BloomView::from_bytes(&bytes)?;
    /// assert_eq!(view.hash("a"), filter.hash("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hasher.hash_key(key)
    }

    /// [`contains`](Self::contains) by hash.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// let (view, _) = BloomView::from_bytes(&bytes)?;
    /// assert!(view.contains_hash(view.hash("a")) && !view.contains_hash(view.hash("b")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.lookups.contains(self.lines(), hash)
    }

    /// Writes for every hash whether it may be in the filter to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// let (view, _) = BloomView::from_bytes(&bytes)?;
    /// let mut found = [false; 2];
    /// view.contains_hashes(&["a", "b"].map(|key| view.hash(key)), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes(&self, hashes: &[u64], out: &mut [bool]) {
        self.lookup().contains_hashes(hashes, out);
    }

    /// [`contains_hashes`](Self::contains_hashes) into a bitmap: bit `i % 64` of `out[i / 64]` is
    /// the answer for hash `i`. The bits after the last hash are 0.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 hashes, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// let (view, _) = BloomView::from_bytes(&bytes)?;
    /// let mut found = [0];
    /// view.contains_hashes_bitmap(&["b", "a"].map(|key| view.hash(key)), &mut found);
    /// assert_eq!(found, [0b10]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_hashes_bitmap(&self, hashes: &[u64], out: &mut [u64]) {
        self.lookup().contains_hashes_bitmap(hashes, out);
    }

    /// Calls `each` with the position of every hash that is certainly not in the filter, in order.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let bytes = filter.to_bytes();
    /// let (view, _) = BloomView::from_bytes(&bytes)?;
    /// let mut absent = Vec::new();
    /// view.for_each_absent_hash(&["a", "b", "c"].map(|key| view.hash(key)), |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each_absent_hash(&self, hashes: &[u64], each: impl FnMut(usize)) {
        self.lookup().for_each_absent_hash(hashes, each);
    }

    /// Writes the hash by which this filter knows each key to the same place of `out`.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// let (view, _) = BloomView::from_bytes(&bytes)?;
    /// let mut hashes = [0; 2];
    /// view.hash_batch(&["a", "b"], &mut hashes);
    /// assert_eq!(hashes, ["a", "b"].map(|key| filter.hash(key)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hasher.hash_batch(keys, out);
    }

    /// [`contains_hashes`](Self::contains_hashes) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    ///
    /// # Examples
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// let mut found = [false; 2];
    /// BloomView::from_bytes(&bytes)?.0.contains_batch(&["a", "b"], &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        self.lookup().contains_batch(keys, out);
    }

    /// [`contains_hashes_bitmap`](Self::contains_hashes_bitmap) of the keys' hashes.
    ///
    /// # Panics
    ///
    /// If `out` has not one word for every 64 keys, the last ones rounded up.
    ///
    /// # Examples
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// let mut found = [0];
    /// BloomView::from_bytes(&bytes)?.0.contains_batch_bitmap(&["a", "b"], &mut found);
    /// assert_eq!(found, [0b01]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch_bitmap<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.lookup().contains_batch_bitmap(keys, out);
    }

    /// [`for_each_absent_hash`](Self::for_each_absent_hash) of the keys' hashes.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("b");
    /// let bytes = filter.to_bytes();
    /// let mut absent = Vec::new();
    /// BloomView::from_bytes(&bytes)?.0.for_each_absent(&["a", "b", "c"], |i| absent.push(i));
    /// assert_eq!(absent, [0, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn for_each_absent<K: Funnel>(&self, keys: &[K], each: impl FnMut(usize)) {
        self.lookup().for_each_absent(keys, each);
    }

    /// A filter with the same keys that accepts inserts:
    /// [`from_bytes_with`](ConcurrentBloom::from_bytes_with) of the view's bytes.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are corrupt, or the allocation fails.
    ///
    /// # Examples
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// let same = BloomView::from_bytes(&bytes)?.0.to_filter()?;
    /// assert!(same == filter && same.insert("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<ConcurrentBloom<S>, SnapshotError>
    where
        S: Clone,
    {
        ConcurrentBloom::from_bytes_with(self.bytes(), self.hasher.clone()).map(|(filter, _)| filter)
    }

    fn lookup(&self) -> Lookup<'_, [u8; 8], S> {
        Lookup {
            lines: self.lines(),
            lookups: &self.lookups,
            hasher: &self.hasher,
        }
    }
}

/// What the filter is, and how full. Figures from the bits read all of them.
impl<S> BloomView<'_, S> {
    /// Computes the checksum of all the bytes.
    ///
    /// # Errors
    ///
    /// If the checksum differs from the one in the snapshot.
    ///
    /// # Examples
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let mut bytes = filter.to_bytes();
    /// assert!(BloomView::from_bytes(&bytes)?.0.verify().is_ok());
    /// bytes[1000] ^= 1;
    /// assert!(BloomView::from_bytes(&bytes)?.0.verify().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Result<(), SnapshotError> {
        let (summed, trailer) = self.bytes().split_last_chunk::<TRAILER>().expect("it is longer");
        let mut sum = Checksum::default();
        sum.add(summed);
        sum.check(trailer, summed.len() as u64).map_err(SnapshotError)
    }

    /// Whether the blocks begin with a line of the cache, so that a key touches one line. Those of
    /// a mapped file do.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
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
        self.lines().0.as_ptr().addr().is_multiple_of(LINE_BYTES)
    }

    /// The number of keys that the filter was sized for.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.expected_keys(), 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn expected_keys(&self) -> usize {
        self.header.expected_keys
    }

    /// Bits of memory per expected key.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.bits_per_key(), filter.bits_per_key());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bits_per_key(&self) -> f64 {
        self.blocks() as f64 * LINE_BITS as f64 / self.expected_keys() as f64
    }

    /// The words of its line that a key touches: 1, 2, 4 or 8.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.words_per_key(), filter.words_per_key());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn words_per_key(&self) -> usize {
        self.header.layout.shape.words
    }

    /// The bits that a key throws in each of its words (two throws may hit the same bit).
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.bits_per_word(), filter.bits_per_word());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bits_per_word(&self) -> usize {
        self.header.layout.shape.bits
    }

    /// The number of blocks, each a line of 64 bytes.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.blocks(), filter.blocks());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.header.layout.blocks
    }

    /// Bytes of the snapshot.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.bytes(), bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match &self.snapshot {
            Snapshot::Borrowed(bytes) => bytes,
            #[cfg(feature = "mmap")]
            Snapshot::Mapped(map) => map,
        }
    }

    /// The fraction of the bits that are set.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// filter.insert("a");
    /// let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.fill_ratio(), filter.fill_ratio());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn fill_ratio(&self) -> f64 {
        self.lines().ones() as f64 / (self.blocks() * LINE_BITS) as f64
    }

    /// [`estimated_len`](ConcurrentBloom::estimated_len) of the filter.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// (&filter).extend(0..500u32);
    /// let bytes = filter.to_bytes();
    /// assert!(BloomView::from_bytes(&bytes)?.0.estimated_len().abs_diff(500) < 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn estimated_len(&self) -> usize {
        self.header.layout.keys_for(self.lines().ones())
    }

    /// The false-positive rate to expect once `keys` distinct keys are in, from the model that the
    /// filter was sized by.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// # let bytes = filter.to_bytes();
    /// let (view, _) = BloomView::from_bytes(&bytes)?;
    /// assert_eq!(view.false_positive_rate_at(2000), filter.false_positive_rate_at(2000));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, keys: usize) -> f64 {
        self.header.layout.rate_at(keys)
    }

    /// The false-positive rate of the filter as it is: the exact chance, given its bits, that a
    /// random hash is taken for present.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// (&filter).extend(0..1000u32);
    /// let bytes = filter.to_bytes();
    /// let rate = BloomView::from_bytes(&bytes)?.0.current_false_positive_rate();
    /// assert_eq!(rate, filter.current_false_positive_rate());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn current_false_positive_rate(&self) -> f64 {
        self.header.layout.mean_rate(self.lines().words())
    }

    /// The hasher.
    ///
    /// ```
    /// # use lanebloom::{BloomView, ConcurrentBloom};
    /// # let filter = ConcurrentBloom::builder().expected_keys(1000).seed(7).build()?;
    /// # let bytes = filter.to_bytes();
    /// assert_eq!(BloomView::from_bytes(&bytes)?.0.hasher().seed(), 7);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    #[inline(always)]
    fn lines(&self) -> Lines<'_, [u8; 8]> {
        let body = &self.bytes()[SNAPSHOT_HEADER..];
        Lines(&body.as_chunks().0.as_chunks().0[..self.header.layout.blocks])
    }
}

/// A summary; it reads the whole filter for the fill.
impl<S: fmt::Debug> fmt::Debug for BloomView<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BloomView")
            .field("expected_keys", &self.expected_keys())
            .field("blocks", &self.blocks())
            .field("words_per_key", &self.words_per_key())
            .field("bits_per_word", &self.bits_per_word())
            .field("hasher", &self.hasher)
            .field("fill_ratio", &self.fill_ratio())
            .finish_non_exhaustive()
    }
}
