//! Snapshots, for the types that can be saved: as bytes, into the caller's memory, by streams.
//! `docs/FORMAT.md` describes the bytes.

/// The snapshots of a type; `of one size` if their length never changes. `$asks` is `?` in an
/// example if an insert can be refused. `built once` is for a type without inserts.
macro_rules! stored {
    ($filter:ident: $engine:ty, $asks:literal, of one size) => {
        $crate::filter::methods::stored! { $filter: $engine, $asks }
        $crate::filter::methods::stored! { @size $filter: $engine,
        "with_capacity(1000, 0.01)?;", concat!("filter.insert(\"a\")", $asks, ";") }
    };

    ($filter:ident: $engine:ty, $asks:literal) => {
        $crate::filter::methods::stored! { @all $filter: $engine,
        "with_capacity(1000, 0.01)?;", concat!("filter.insert(\"a\")", $asks, ";"),
        "builder().expected_keys(1000)", "build()?;" }
    };

    ($filter:ident: $engine:ty, built once) => {
        $crate::filter::methods::stored! { @all $filter: $engine,
        "from_keys([\"a\"], 0.01)?;", "assert!(filter.contains(\"a\"));",
        "builder()", "build_from_keys([\"a\"])?;" }
        $crate::filter::methods::stored! { @size $filter: $engine,
        "from_keys([\"a\"], 0.01)?;", "assert!(filter.contains(\"a\"));" }
    };

    (@size $filter:ident: $engine:ty, $new:expr, $insert:expr) => {

        /// Snapshots of filters whose size never changes.
        impl<S: $crate::hash::FilterHasher> $crate::Filter<$engine, S> {
            /// The length of a snapshot in bytes: 192, and the content, rounded up to 64.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::", $new)]
            /// assert_eq!(filter.snapshot_bytes(), filter.to_bytes().len());
            /// # Ok::<(), lanebloom::BuildError>(())
            /// ```
            #[must_use]
            pub fn snapshot_bytes(&self) -> usize {
                $crate::traits::Stored::snapshot_bytes(self)
            }

            /// [`to_bytes`](Self::to_bytes) into the caller's memory. Panics if `out` does not have
            /// [`snapshot_bytes`](Self::snapshot_bytes) bytes.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::", $new)]
            #[doc = $insert]
            /// let mut bytes = vec![0; filter.snapshot_bytes()];
            /// filter.write_to_slice(&mut bytes);
            /// assert_eq!(bytes, filter.to_bytes());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn write_to_slice(&self, out: &mut [u8]) {
                $crate::traits::Stored::write_to_slice(self, out);
            }
        }
    };

    (@all $filter:ident: $engine:ty, $new:expr, $insert:expr, $builder:expr, $build:expr) => {
        /// Snapshots.
        impl<S: $crate::hash::FilterHasher> $crate::Filter<$engine, S> {
            /// The filter as bytes that [`from_bytes`](Self::from_bytes) reads, in the
            /// [format](crate::codec#the-format) of snapshots.
            ///
            /// Holds every key whose insertion happened before. Aborts if the allocation fails;
            /// [`write_to_slice`](Self::write_to_slice) does not allocate.
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::", $new)]
            #[doc = $insert]
            /// let bytes = filter.to_bytes();
            #[doc = concat!("let (same, rest) = lanebloom::", stringify!($filter), "::from_bytes(&bytes)?;")]
            /// assert!(same.to_bytes() == bytes && same.contains("a") && rest.is_empty());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[must_use]
            pub fn to_bytes(&self) -> alloc::vec::Vec<u8> {
                $crate::traits::Stored::to_bytes(self)
            }

            /// [`to_bytes`](Self::to_bytes) to a writer, up to 2 MiB at a time, so that the writer
            /// need not be buffered. It does not flush.
            ///
            /// If encoding blocks inserts or removes, it writes a copy, so that no thread waits for
            /// the writer.
            ///
            /// # Errors
            ///
            /// Fails if the writer fails, or with kind `OutOfMemory` if there is no memory for the
            /// copy.
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::", $new)]
            #[doc = $insert]
            /// let mut stream = Vec::new();
            /// filter.write_to(&mut stream)?;
            /// assert_eq!(stream, filter.to_bytes());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
                $crate::traits::Stored::write_to(self, writer)
            }

            /// [`from_bytes`](Self::from_bytes) for any hasher: `hasher` must be the one that
            /// filled the filter. Fails as [`from_bytes`](Self::from_bytes), and if the hasher
            /// differs.
            ///
            /// ```
            #[doc = concat!("use lanebloom::{", stringify!($filter), " as Filter, SipHash13};")]
            ///
            /// let hasher = SipHash13::random();
            #[doc = concat!("let filter = Filter::", $builder, ".hasher(hasher).", $build)]
            #[doc = $insert]
            /// let bytes = filter.to_bytes();
            /// let (same, _) = Filter::from_bytes_with(&bytes, hasher)?;
            /// assert!(same.contains("a") && !same.contains("b"));
            /// assert!(Filter::from_bytes(&bytes).unwrap_err().is_incompatible());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), $crate::SnapshotError> {
                $crate::traits::Stored::from_bytes_with(bytes, hasher)
            }

            /// [`read_from`](Self::read_from) for any hasher: `hasher` must be the one that
            /// filled the filter. Fails as [`read_from`](Self::read_from), and if the hasher
            /// differs.
            ///
            /// ```
            #[doc = concat!("use lanebloom::{", stringify!($filter), " as Filter, SipHash13};")]
            ///
            /// let hasher = SipHash13::random();
            #[doc = concat!("let filter = Filter::", $builder, ".hasher(hasher).", $build)]
            #[doc = $insert]
            /// let stream = filter.to_bytes();
            /// let same = Filter::read_from_with(&stream[..], 1 << 20, hasher)?;
            /// assert!(same.contains("a") && !same.contains("b"));
            /// assert!(Filter::read_from(&stream[..], 1 << 20).is_err());
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, $crate::SnapshotError> {
                $crate::traits::Stored::read_from_with(reader, max_bytes, hasher)
            }
        }

        /// Snapshots of filters that hash with [`Murmur3`](crate::Murmur3).
        impl $crate::Filter<$engine> {
            /// The filter with which `bytes` begin, and the bytes after it.
            ///
            /// # Errors
            ///
            /// Fails if the bytes end before the filter does, are corrupt, are not a snapshot of
            /// this type of filter or of this version of the format, the hasher is not
            /// [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads
            /// others), or the allocation fails. Nothing is allocated unless all of the filter is
            /// there. (A [`WindowedBloom`](crate::WindowedBloom) may need [a
            /// clock](crate::windowed#snapshots).)
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::", $builder, ".seed(7).", $build)]
            #[doc = $insert]
            /// let mut bytes = filter.to_bytes();
            /// bytes.extend(b"more");
            #[doc = concat!("let (same, rest) = lanebloom::", stringify!($filter), "::from_bytes(&bytes)?;")]
            /// assert!(same.contains("a") && same.hasher().seed() == 7);
            /// assert_eq!(rest, b"more");
            #[doc = concat!("assert!(lanebloom::", stringify!($filter), "::from_bytes(&bytes[..150]).unwrap_err().is_truncated());")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), $crate::SnapshotError> {
                $crate::traits::Stored::from_bytes(bytes)
            }

            /// Reads a snapshot of a filter that takes at most `max_bytes` of memory. The bytes
            /// after it stay unread.
            ///
            /// Checks the declared length before it allocates. It reads 64 KiB at a time, so the
            /// reader need not be buffered.
            ///
            /// # Errors
            ///
            /// Fails if the reader fails (its error is the [source](std::error::Error::source)), if
            /// the filter takes more than `max_bytes`, and as [`from_bytes`](Self::from_bytes).
            ///
            /// # Examples
            ///
            /// ```
            #[doc = concat!("let filter = lanebloom::", stringify!($filter), "::", $new)]
            #[doc = $insert]
            /// let stream = filter.to_bytes();
            #[doc = concat!("let same = lanebloom::", stringify!($filter), "::read_from(&stream[..], 1 << 20)?;")]
            /// assert!(same.contains("a") && !same.contains("b"));
            #[doc = concat!("assert!(lanebloom::", stringify!($filter), "::read_from(&stream[..], 100).is_err());")]
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            #[cfg(feature = "std")]
            pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, $crate::SnapshotError> {
                $crate::traits::Stored::read_from(reader, max_bytes)
            }
        }
    };
}
pub(crate) use stored;
