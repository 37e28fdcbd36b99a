//! Snapshots: filters to bytes and back, for a restart, for another machine, for a view of a file.
//!
//! | | |
//! |---|---|
//! | [`to_bytes`](crate::ConcurrentBloom::to_bytes), [`from_bytes`](crate::ConcurrentBloom::from_bytes) | by slices, without `std` |
//! | [`write_to`](crate::ConcurrentBloom::write_to), [`read_from`](crate::ConcurrentBloom::read_from) | by `std::io`, in pieces of 2 MiB and of 64 KiB |
//! | [`replace_file`], [`remove_file`] | the file holds the old bytes or the new ones, never half, whenever the program dies; once removed, it stays away ([example](replace_file#examples)) |
//! | [`BloomView`](crate::BloomView) | lookups in the bytes as they lie, borrowed or mapped (feature `mmap`): nothing is copied |
//! | [`delta_since`](crate::ConcurrentBloom::delta_since), [`apply_deltas`](crate::ConcurrentBloom::apply_deltas) | the bits that another filter lacks, for replicas |
//! | [`AnyFilter`](crate::AnyFilter) | a filter of any type with any hasher, as the snapshot says |
//! | [`SnapshotHeader::peek`], [`verify`] | what some bytes are, and whether they are whole, without their hasher |
//! | feature `serde` | `Serialize` and `Deserialize`: the same bytes, in Base64 where the format is text; `Limited` for other hashers and limits |
//!
//! [`ScalableBloom`](crate::ScalableBloom), [`WindowedBloom`](crate::WindowedBloom) and the filters
//! that can delete have the first three rows and the last. So has
//! [`ConcurrentBitmap`](crate::ConcurrentBitmap), and a [view](crate::bitmap::BitmapView) too.
//!
//! The filter may be in use meanwhile: a snapshot holds at least every key whose insertion happened
//! before and that is not removed meanwhile.
//!
//! # The hasher
//!
//! A snapshot names its hasher, and holds the seed of [`Murmur3`]: such a filter is read as it is.
//! The seed of [`FastHash`](crate::FastHash) is in [its header](SnapshotHeader::hasher).
//! **It never holds a secret**, neither the key of [`SipHash13`](crate::SipHash13) nor the state of
//! a `BuildHasher`. The reader supplies such a hasher
//! ([`from_bytes_with`](crate::ConcurrentBloom::from_bytes_with),
//! [`read_from_with`](crate::ConcurrentBloom::read_from_with)). A snapshot holds a fingerprint of
//! its hasher, the hash of a fixed key; reading refuses a hasher with another one. Keep
//! [`SipHash13::key`](crate::SipHash13::key) where you keep secrets. A hasher whose key cannot be
//! obtained again, as std's `RandomState`, lets only this process read the snapshot.
//!
//! # Hostile bytes
//!
//! Whatever the bytes are, reading ends in a valid filter or in an error that names the cause. It
//! does not panic or hang. It allocates in proportion to the input, and no more than the given
//! limit; it checks lengths first. If a filter grows, the limit holds for its growth too.
//!
//! The checksums detect accidents. An attacker with access to the bytes can write the checksums
//! too, and decides the filter's content. But reading refuses counters, fingerprints and cells that
//! no sequence of operations leads to and that would break later operations, and plans that no
//! builder makes. (A hasher's fingerprint is one hash: an attacker can try keys if few are likely.
//! Under a random 128-bit key it reveals nothing.)
//!
//! # The format
//!
//! The page [`docs::format`](crate::docs::format) describes the bytes. What version 1 wrote stays
//! readable.

mod body;
mod bytes;
mod delta;
pub(crate) mod header;
#[cfg(feature = "std")]
mod io;
mod peek;
pub(crate) mod pieces;
#[cfg(feature = "std")]
mod replace;
#[cfg(feature = "serde")]
pub(crate) mod serde;

#[cfg(feature = "serde")]
pub use self::serde::{Limited, Snapshot};
#[cfg(feature = "serde")]
pub(crate) use self::serde::{deserialize, sealed::Decode, serialize};
pub(crate) use body::{admit, assert_snapshot_length, read_words, write_words};
pub(crate) use bytes::SnapshotBytes;
pub(crate) use delta::{Changes, put_line};
pub use header::Kind;
pub(crate) use header::{
    DELTA_HEADER, Decoded, DeltaHeader, Hashing, Header, MOST_WORDS, OwnHeader, SNAPSHOT_HEADER, TRAILER, check_zeros,
    in_range, invalid, snapshot_bytes,
};
use header::{check_trailer, split};
#[cfg(feature = "std")]
pub(crate) use io::{Writer, from_reader};
pub use peek::{Content, SnapshotHeader, verify};
#[cfg(feature = "std")]
pub(crate) use pieces::Progress;
pub(crate) use pieces::{Input, Out, from_slice};
#[cfg(feature = "std")]
pub use replace::{remove_file, replace_file};

pub use crate::hash::sealed::Identity;
use crate::hash::{FilterHasher, Murmur3};

/// `hasher`, or an error if the record has another hasher.
pub(crate) fn given<S: FilterHasher>(hasher: S) -> impl FnOnce(Hashing) -> Decoded<S> {
    move |hashing| hashing.check(Hashing::of(&hasher)).map(|()| hasher)
}

/// The hasher of a record whose hasher is [`Murmur3`].
pub(crate) fn murmur3(hashing: Hashing) -> Decoded<Murmur3> {
    given(match hashing.identity {
        Identity::Murmur3 { seed } => Murmur3::with_seed(seed),
        _ => Murmur3::default(),
    })(hashing)
}
