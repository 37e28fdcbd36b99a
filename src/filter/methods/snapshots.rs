//! Snapshots, for the types that can be saved: as bytes, into the caller's memory, by streams.
//! `docs/FORMAT.md` describes the bytes.

/// The snapshots of a type; `of one size` if their length never changes, where `$content` may say
/// more of it. In the examples of a type without an engine, `$make` makes a `filter` that has "a",
/// and `$finds` is the lookup that tells "a" from "b".
macro_rules! stored {
    ($type:ident: $engine:ty $(, of one $size:ident)?) => {
        $crate::filter::methods::stored! { $type $(of one $size)?;
        concat!("let filter = lanebloom::", stringify!($type), "::from_keys([\"a\"], 0.01)?;"), "contains" }
    };

    ($type:ident of one size $(, $content:literal)?; $make:expr, $finds:literal) => {
        $crate::filter::methods::stored! { $type; $make, $finds }

        /// Snapshots of one length.
        impl<S: $crate::hash::FilterHasher> $type<S> {
            /// The length of a snapshot in bytes: 192, and the content, rounded up to 64.
            $(#[doc = $content])?
            #[doc = $crate::example!($make, "assert_eq!(filter.snapshot_bytes(), filter.to_bytes().len());")]
            #[must_use]
            pub fn snapshot_bytes(&self) -> usize {
                $crate::traits::Stored::snapshot_bytes(self)
            }

            /// [`to_bytes`](Self::to_bytes) into the caller's memory. Panics if `out` does not have
            /// [`snapshot_bytes`](Self::snapshot_bytes) bytes.
            #[doc = $crate::example!($make, "let mut bytes = vec![0; filter.snapshot_bytes()];",
                "filter.write_to_slice(&mut bytes);",
                "assert_eq!(bytes, filter.to_bytes());")]
            pub fn write_to_slice(&self, out: &mut [u8]) {
                $crate::traits::Stored::write_to_slice(self, out);
            }
        }
    };

    ($type:ident; $make:expr, $finds:literal) => {
        /// Snapshots.
        impl<S: $crate::hash::FilterHasher> $type<S> {
            /// The content as bytes that [`from_bytes`](Self::from_bytes) reads, in the
            /// [format](crate::codec#the-format) of snapshots.
            ///
            /// Holds every key whose insertion happened before. Aborts if the allocation fails;
            /// [`write_to_slice`](Self::write_to_slice) does not allocate.
            #[doc = $crate::example!($make, "let bytes = filter.to_bytes();",
                concat!("let (same, rest) = lanebloom::", stringify!($type), "::from_bytes(&bytes)?;"),
                concat!("assert!(same.to_bytes() == bytes && same.", $finds, "(\"a\") && rest.is_empty());"))]
            #[must_use]
            pub fn to_bytes(&self) -> alloc::vec::Vec<u8> {
                $crate::traits::Stored::to_bytes(self)
            }

            /// [`to_bytes`](Self::to_bytes) to a writer, up to 2 MiB at a time, so that the writer
            /// need not be buffered. It does not flush.
            ///
            /// If encoding blocks inserts or removes, it writes a copy, so that no thread waits for
            /// the writer. Fails if the writer fails, or with kind `OutOfMemory` if there is no
            /// memory for the copy.
            #[doc = $crate::example!($make, "let mut stream = Vec::new();", "filter.write_to(&mut stream)?;",
                "assert_eq!(stream, filter.to_bytes());")]
            #[cfg(feature = "std")]
            pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
                $crate::traits::Stored::write_to(self, writer)
            }

            /// [`from_bytes`](Self::from_bytes) for any hasher: `hasher` must be the one that
            /// filled the original. Fails as [`from_bytes`](Self::from_bytes), and if the hasher
            /// differs.
            #[doc = $crate::example!($make, "let (bytes, hasher) = (filter.to_bytes(), *filter.hasher());",
                concat!("let read = |hasher| lanebloom::", stringify!($type), "::from_bytes_with(&bytes, hasher);"),
                concat!("assert!(read(hasher)?.0.", $finds, "(\"a\"));"),
                "assert!(read(lanebloom::Murmur3::with_seed(7)).unwrap_err().is_incompatible());")]
            pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), $crate::SnapshotError> {
                $crate::traits::Stored::from_bytes_with(bytes, hasher)
            }

            /// [`read_from`](Self::read_from) for any hasher: `hasher` must be the one that filled
            /// the original. Fails as [`read_from`](Self::read_from), and if the hasher differs.
            #[doc = $crate::example!($make, "let (stream, hasher) = (filter.to_bytes(), *filter.hasher());",
                concat!("let same = lanebloom::", stringify!($type), "::read_from_with(&stream[..], 1 << 20, hasher)?;"),
                concat!("assert!(same.", $finds, "(\"a\") && !same.", $finds, "(\"b\"));"),
                "let secret = lanebloom::SipHash13::random();",
                concat!("let refused = lanebloom::", stringify!($type), "::read_from_with(&stream[..], 1 << 20, secret);"),
                "assert!(refused.unwrap_err().is_incompatible());")]
            #[cfg(feature = "std")]
            pub fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, $crate::SnapshotError> {
                $crate::traits::Stored::read_from_with(reader, max_bytes, hasher)
            }
        }

        /// Snapshots whose hasher is [`Murmur3`](crate::Murmur3).
        impl $type {
            /// The filter with which `bytes` begin, and the bytes after it.
            ///
            /// Fails if the bytes end before the snapshot does, are corrupt, are not a snapshot of
            /// this type or of this version of the format, the hasher is not
            /// [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads
            /// others), or the allocation fails. Nothing is allocated unless all bytes are there.
            /// (A [`WindowedBloom`](crate::WindowedBloom) may need [a
            /// clock](crate::windowed#snapshots).)
            #[doc = $crate::example!($make, "let bytes = [filter.to_bytes(), b\"more\".to_vec()].concat();",
                concat!("let read = |bytes| lanebloom::", stringify!($type), "::from_bytes(bytes);"),
                "let (same, rest) = read(&bytes)?;",
                concat!("assert!(same.", $finds, "(\"a\") && rest == b\"more\");"),
                "assert!(read(&bytes[..150]).unwrap_err().is_truncated());")]
            #[inline]
            pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), $crate::SnapshotError> {
                $crate::traits::Stored::from_bytes(bytes)
            }

            /// Reads a snapshot that takes at most `max_bytes` of memory. The bytes after it stay
            /// unread.
            ///
            /// Checks the declared length before it allocates. It reads 64 KiB at a time, so the
            /// reader need not be buffered. Fails if the reader fails (its error is the
            /// [source](std::error::Error::source)), if the content takes more than `max_bytes`,
            /// and as [`from_bytes`](Self::from_bytes).
            #[doc = $crate::example!($make, "let stream = filter.to_bytes();",
                concat!("let read = |most| lanebloom::", stringify!($type), "::read_from(&stream[..], most);"),
                concat!("assert!(read(1 << 20)?.", $finds, "(\"a\") && read(10).is_err());"))]
            #[cfg(feature = "std")]
            pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, $crate::SnapshotError> {
                $crate::traits::Stored::read_from(reader, max_bytes)
            }
        }
    };
}
pub(crate) use stored;
