//! Views: the bytes of a whole snapshot, borrowed or mapped from a file, and lookups in them, in
//! place.

use super::header::Checksum;
use super::{Decoded, Hashing, TRAILER, check_trailer, split};
use crate::error::SnapshotError;
#[cfg(feature = "mmap")]
use crate::error::SnapshotErrorKind;

/// The example of a method: lines of code, as documentation.
macro_rules! example {
    ($($line:expr),+) => {
        concat!("\n```\n", $($line, "\n",)+ "# Ok::<(), Box<dyn std::error::Error>>(())\n```")
    };
}
pub(crate) use example;

/// The bytes of one snapshot. While a view is opened, others may follow.
#[derive(Clone)]
pub(crate) enum SnapshotBytes<'a> {
    Borrowed(&'a [u8]),
    #[cfg(feature = "mmap")]
    Mapped(alloc::sync::Arc<memmap2::Mmap>),
}

impl SnapshotBytes<'_> {
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            #[cfg(feature = "mmap")]
            Self::Mapped(map) => map,
        }
    }

    /// The first `len` bytes, which are the snapshot. A mapped file must end there.
    pub(crate) fn first(self, len: u64) -> Decoded<Self> {
        match self {
            Self::Borrowed(bytes) => split(bytes, len).map(|(snapshot, _)| Self::Borrowed(snapshot)),
            #[cfg(feature = "mmap")]
            Self::Mapped(map) => match map.len() as u64 {
                bytes if bytes > len => Err(SnapshotErrorKind::TooLong { bytes, needed: len }),
                _ => {
                    split(&map, len)?;
                    Ok(Self::Mapped(map))
                }
            },
        }
    }

    /// Fails if the checksum of all the bytes is not the one in the trailer.
    pub(crate) fn verify(&self) -> Decoded<()> {
        let (summed, trailer) = self.bytes().split_last_chunk::<TRAILER>().expect("it is longer");
        check_trailer(trailer, Checksum::oneshot(summed), summed.len())
    }
}

/// A view of a snapshot's bytes. [`viewed!`] gives it its methods.
pub(crate) trait Viewed<'a>: Sized {
    /// `()` if there is none.
    type Hasher;

    /// Opens the snapshot with which `bytes` begin, with the hasher for the header's record.
    fn open(bytes: SnapshotBytes<'a>, hasher: impl FnOnce(Hashing) -> Decoded<Self::Hasher>) -> Decoded<Self>;

    fn snapshot(&self) -> &SnapshotBytes<'a>;
}

/// A view of the snapshot with which `bytes` begin, and the bytes after it.
pub(crate) fn borrow<'a, V: Viewed<'a>>(
    bytes: &'a [u8],
    hasher: impl FnOnce(Hashing) -> Decoded<V::Hasher>,
) -> Result<(V, &'a [u8]), SnapshotError> {
    let view = V::open(SnapshotBytes::Borrowed(bytes), hasher).map_err(SnapshotError)?;
    let len = view.snapshot().bytes().len();
    Ok((view, &bytes[len..]))
}

/// A view of a file that holds a snapshot and nothing else.
///
/// # Safety
///
/// No process may write to the file or make it shorter while the view lives.
#[cfg(feature = "mmap")]
pub(crate) unsafe fn map<V: Viewed<'static>>(
    file: &std::fs::File,
    hasher: impl FnOnce(Hashing) -> Decoded<V::Hasher>,
) -> Result<V, SnapshotError> {
    // SAFETY: the caller's promise.
    let map = unsafe { memmap2::Mmap::map(file) }.map_err(|error| SnapshotError(SnapshotErrorKind::Io(error)))?;
    // A refusal only costs speed.
    #[cfg(target_os = "linux")]
    let _ = map.advise(memmap2::Advice::HugePage);
    V::open(SnapshotBytes::Mapped(map.into()), hasher).map_err(SnapshotError)
}

/// The methods of a [`Viewed`] with the path `$path`. In the examples, the lines `$bytes` make the
/// `bytes` of a snapshot, and `$found` holds of a `view` of them. The lines `$secret` make the
/// bytes with a `hasher`, if there are hashers.
macro_rules! viewed {
    ($view:ident = $path:literal, finds: $found:literal, bytes: [$($bytes:literal),+]) => {
        $crate::codec::viewed! { @all $view [] |_| Ok(()), $path; $found, $($bytes),+ }
    };

    (
        $view:ident = $path:literal, finds: $found:literal, bytes: [$($bytes:literal),+],
        bytes_with: [$($secret:literal),+]
    ) => {
        $crate::codec::viewed! {
            @all $view [S, "Fails also if the hasher is not [`Murmur3`](crate::Murmur3); \
            [`from_bytes_with`](Self::from_bytes_with) takes others."]
            $crate::codec::murmur3, $path; $found, $($bytes),+
        }

        /// Opening a view with any hasher.
        impl<'a, S: $crate::hash::FilterHasher> $view<'a, S> {
            /// [`from_bytes`](Self::from_bytes) for any hasher: `hasher` must be the one that
            /// filled the original. Fails as [`from_bytes`](Self::from_bytes), and if the hasher
            /// differs.
            #[doc = $crate::codec::example!("let hasher = lanebloom::SipHash13::random();", $($secret),+,
                concat!("let (view, _) = ", $path, "::from_bytes_with(&bytes, hasher)?;"),
                concat!("assert!(", $found, ");"),
                concat!("assert!(", $path, "::from_bytes(&bytes).unwrap_err().is_incompatible());"))]
            pub fn from_bytes_with(bytes: &'a [u8], hasher: S) -> Result<(Self, &'a [u8]), $crate::SnapshotError> {
                $crate::codec::borrow(bytes, $crate::codec::given(hasher))
            }
        }

        /// Mapped files with any hasher.
        #[cfg(feature = "mmap")]
        impl<S: $crate::hash::FilterHasher> $view<'static, S> {
            /// [`map`](Self::map) for any hasher: `hasher` must be the one that filled the
            /// original. Fails as [`map`](Self::map), and if the hasher differs.
            ///
            /// # Safety
            ///
            /// See [`map`](Self::map).
            ///
            /// # Examples
            #[doc = $crate::codec::example!("let hasher = lanebloom::SipHash13::random();", $($secret),+,
                "let file = tempfile::tempfile()?;", "std::io::Write::write_all(&mut &file, &bytes)?;",
                "// SAFETY: no other process knows of the file.",
                concat!("let view = unsafe { ", $path, "::map_with(&file, hasher)? };"),
                concat!("assert!(", $found, ");"))]
            pub unsafe fn map_with(file: &std::fs::File, hasher: S) -> Result<Self, $crate::SnapshotError> {
                // SAFETY: the caller's promise.
                unsafe { $crate::codec::map(file, $crate::codec::given(hasher)) }
            }
        }
    };

    (@all $view:ident [$($s:ident, $hashers:literal)?] $hasher:expr, $path:literal; $found:literal, $($bytes:literal),+) => {
        /// Opening a view.
        impl<'a> $view<'a> {
            /// A view of the snapshot with which `bytes` begin, and the bytes after it.
            ///
            /// # Errors
            ///
            /// Fails if the bytes end before the snapshot does, if the header is corrupt, or if
            /// they are not a snapshot of this type in this version of the format.
            $(#[doc = $hashers])?
            ///
            /// # Examples
            #[doc = $crate::codec::example!($($bytes),+, "let bytes = [bytes, b\"more\".to_vec()].concat();",
                concat!("let (view, rest) = ", $path, "::from_bytes(&bytes)?;"),
                concat!("assert!(", $found, " && rest == b\"more\");"),
                concat!("assert!(", $path, "::from_bytes(&bytes[..150]).unwrap_err().is_truncated());"))]
            #[inline]
            pub fn from_bytes(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), $crate::SnapshotError> {
                $crate::codec::borrow(bytes, $hasher)
            }
        }

        /// Mapped files.
        #[cfg(feature = "mmap")]
        impl $view<'static> {
            /// A view of a file that holds a snapshot and nothing else, mapped into memory (feature
            /// `mmap`). The system reads a page from the file when a lookup first needs it, and
            /// shares it with every process that maps the file. `file` may be closed then.
            ///
            /// The view asks Linux for huge pages. Linux grants them if the file system can keep a
            /// file in huge pages, and the file is read anew or was written in large pieces, as
            /// [`write_to`](crate::codec::Snapshot::write_to) does. Then a first lookup reads 2
            /// MiB, and a [`BloomView`](crate::BloomView) is as fast as the original. (The other
            /// views were not measured.)
            ///
            /// # Errors
            ///
            /// Fails if the file cannot be mapped (the system's error is the
            /// [source](std::error::Error::source)), if it has bytes after the snapshot, and as
            /// [`from_bytes`](Self::from_bytes).
            ///
            /// # Safety
            ///
            /// No process may write to the file or make it shorter while the view lives. Rust
            /// assumes that the bytes are immutable, and a lookup in a page that is gone ends the
            /// process (`SIGBUS`). [`replace_file`](crate::codec::replace_file) does not change the
            /// file: the view keeps the old one.
            ///
            /// # Examples
            #[doc = $crate::codec::example!($($bytes),+,
                "let file = tempfile::tempfile()?;", "std::io::Write::write_all(&mut &file, &bytes)?;",
                "// SAFETY: no other process knows of the file.",
                concat!("let view = unsafe { ", $path, "::map(&file)? };"),
                concat!("assert!(", $found, ");"))]
            #[inline]
            pub unsafe fn map(file: &std::fs::File) -> Result<Self, $crate::SnapshotError> {
                // SAFETY: the caller's promise.
                unsafe { $crate::codec::map(file, $hasher) }
            }
        }

        /// The snapshot. The type's own `from_bytes` reads its [bytes](Self::bytes).
        impl<$($s)?> $view<'_, $($s)?> {
            /// Computes the checksum of all the bytes. Fails if it differs from the one in the
            /// snapshot.
            #[doc = $crate::codec::example!($($bytes),+, "let mut bytes = bytes;",
                concat!("assert!(", $path, "::from_bytes(&bytes)?.0.verify().is_ok());"),
                "bytes[200] ^= 1;",
                concat!("assert!(", $path, "::from_bytes(&bytes)?.0.verify().is_err());"))]
            pub fn verify(&self) -> Result<(), $crate::SnapshotError> {
                $crate::codec::Viewed::snapshot(self).verify().map_err($crate::SnapshotError)
            }

            /// The bytes of the snapshot.
            #[doc = $crate::codec::example!($($bytes),+,
                concat!("assert_eq!(", $path, "::from_bytes(&bytes)?.0.bytes(), bytes);"))]
            #[must_use]
            pub fn bytes(&self) -> &[u8] {
                $crate::codec::Viewed::snapshot(self).bytes()
            }
        }
    };
}
pub(crate) use viewed;
