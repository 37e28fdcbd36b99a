//! Snapshots: filters to bytes and back, for restarts, for other machines, for views of files.
//!
//! | | |
//! |---|---|
//! | [`filter.snapshot().to_vec()`](Snapshot::to_vec), [`from_bytes`](crate::Filter::from_bytes) | in memory, without `std` |
//! | [`filter.snapshot().write_to(writer)`](Snapshot::write_to), [`read_from`](crate::Filter::read_from) | by `std::io`, in pieces of 2 MiB and of 64 KiB |
//! | this module's [`from_bytes`], [`read_from`], [`view`], `map` | with [a hasher](#the-hasher) that the snapshot does not hold |
//! | [`filter.snapshot().save(path)`](Snapshot::save), [`replace_file`], [`remove_file`] | the file holds all of the old bytes or all of the new ones, whenever the program dies; a removed file does not come back ([example](replace_file#examples)) |
//! | [`BloomView`](crate::BloomView), [`StaticView`](crate::StaticView), [`BankView`](crate::bank::BankView) | lookups in the bytes in place, borrowed or mapped (feature `mmap`), without a copy |
//! | [`filter.with(&other)?.delta()`](crate::Pair::delta), [`apply_deltas`](crate::bloom::apply_deltas) | the bits that another filter lacks, for replicas |
//! | [`AnyFilter`](crate::AnyFilter) | a filter of any type with any hasher, as the snapshot declares |
//! | [`SnapshotHeader::peek`], [`verify`] | what kind of filter some bytes hold, and whether they are intact, without their hasher |
//! | feature `serde` | `Serialize` and `Deserialize`: the same bytes, in Base64 if the format is text; `Limited` for other hashers and limits |
//!
//! [`ScalableBloom`](crate::ScalableBloom), [`WindowedBloom`](crate::WindowedBloom) and the filters
//! that can delete have all rows but the view and the delta. A
//! [`ConcurrentBitmap`](crate::bitmap::ConcurrentBitmap) has a [view](crate::bitmap::BitmapView),
//! no delta, and no place in an `AnyFilter`.
//!
//! Other threads may use the filter meanwhile: a snapshot holds at least every key that was
//! inserted before and is not removed meanwhile.
//!
//! # The hasher
//!
//! A snapshot names its hasher. It also holds the seed of [`Murmur3`](crate::Murmur3), so reading
//! such a filter needs nothing else. The seed of [`FastHash`](crate::FastHash) is in [its
//! header](SnapshotHeader::hasher). **It never holds a secret**, neither the key of
//! [`SipHash13`](crate::SipHash13) nor the state of a `BuildHasher`. The reader supplies such a
//! hasher, to this module's [`from_bytes`], [`read_from`], [`view`] and `map`. A snapshot holds a
//! fingerprint of its hasher: the hash of a fixed key. Reading refuses a hasher with another
//! fingerprint. Keep [`SipHash13::key`](crate::SipHash13::key), of which
//! [`with_key`](crate::SipHash13::with_key) makes the hasher again, where you keep secrets. If the
//! key of a hasher cannot be obtained, as for std's `RandomState`, only this process can read the
//! snapshot.
//!
//! # Hostile bytes
//!
//! Whatever the bytes are, reading ends in a valid filter or in an error that names the cause. It
//! does not panic or hang. It allocates in proportion to the input, and no more than the given
//! limit; it checks lengths first. If a filter grows, the limit holds for its growth too.
//!
//! The checksums detect accidents. An attacker with access to the bytes can write the checksums
//! too, and decides the filter's content. But reading refuses growth settings that no builder
//! accepts, and states of counters, fingerprints and cells that no sequence of operations reaches
//! and that would break later operations. (A hasher's fingerprint is one hash. If few secret keys
//! are likely, an attacker can try them; of a random 128-bit key it reveals nothing.)
//!
//! # The format
//!
//! The page [`docs::format`](crate::docs::format) describes the bytes. All later releases read what
//! version 1 wrote.

mod body;
mod delta;
pub(crate) mod header;
#[cfg(feature = "std")]
mod io;
mod peek;
pub(crate) mod pieces;
#[cfg(feature = "std")]
mod replace;
#[cfg(feature = "serde")]
mod serde;
pub(crate) mod snapshot;
pub(crate) mod view;

#[cfg(feature = "serde")]
pub(crate) use self::serde::deserialize;
#[cfg(feature = "serde")]
pub use self::serde::{FromSnapshot, Limited};
pub(crate) use self::snapshot::load;
#[cfg(feature = "std")]
pub(crate) use self::snapshot::load_from;
#[cfg(feature = "std")]
pub use self::snapshot::read_from;
pub use self::snapshot::{Snapshot, from_bytes};
pub(crate) use body::{admit, assert_snapshot_length, read_header, read_words, write_words};
pub(crate) use delta::{Changes, put_line};
pub use header::Kind;
pub(crate) use header::{
    AskHasher, BlocksHeader, DELTA_HEADER, Decoded, DeltaHeader, Hashing, MOST_WORDS, OwnHeader, SNAPSHOT_HEADER,
    TRAILER, check_zeros, given, in_range, invalid, murmur3, snapshot_bytes, with_hasher,
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
#[cfg(feature = "mmap")]
pub use view::map;
#[cfg(feature = "mmap")]
pub(crate) use view::mapped;
pub use view::view;
pub(crate) use view::{SnapshotBytes, Viewed, borrow};

pub use crate::hash::Identity;
