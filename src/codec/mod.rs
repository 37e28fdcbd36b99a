//! Snapshots: filters to bytes and back, for a restart, for another machine, for a view of a file.
//!
//! | | |
//! |---|---|
//! | [`to_bytes`](crate::ConcurrentBloom::to_bytes), [`from_bytes`](crate::ConcurrentBloom::from_bytes) | by slices, without `std` |
//! | [`write_to`](crate::ConcurrentBloom::write_to), [`read_from`](crate::ConcurrentBloom::read_from) | by `std::io`, in pieces of 2 MiB and of 64 KiB |
//! | [`replace_file`] | the file holds the old bytes or the new ones, never half, whenever the program dies |
//! | [`BloomView`](crate::BloomView) | lookups in the bytes as they lie, borrowed or mapped (feature `mmap`): nothing is copied |
//! | [`delta_since`](crate::ConcurrentBloom::delta_since), [`apply_deltas`](crate::ConcurrentBloom::apply_deltas) | what another filter lacks, for replicas |
//! | feature `serde` | `Serialize` and `Deserialize`: the same bytes, in Base64 where the format is text; `Limited` for other hashers and limits |
//!
//! [`ScalableBloom`](crate::ScalableBloom), [`WindowedBloom`](crate::WindowedBloom) and the filters
//! that can delete have the first three rows and the last, in the same format.
//!
//! The filter may be in use meanwhile: a snapshot holds at least every key whose insertion happened
//! before and that is not removed meanwhile. [`GuavaBloom`](crate::GuavaBloom) has [Guava's own
//! stream](crate::GuavaBloom::write_to), which [`replace_file`] and `serde` take as well.
//!
//! # Example
//!
//! ```
//! use lanebloom::ConcurrentBloom;
//! use lanebloom::codec::replace_file;
//! use std::fs::File;
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("seen.bloom");
//! let seen = ConcurrentBloom::builder().expected_keys(100_000).build()?;
//! seen.insert("a");
//! replace_file(&path, |file| seen.write_to(file))?;
//!
//! let seen = ConcurrentBloom::read_from(File::open(&path)?, 64 << 20)?; // of 64 MiB at most
//! assert!(seen.contains("a") && !seen.contains("b"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which hasher
//!
//! A snapshot names its hasher, and holds the seed of [`Murmur3`]: such a filter is read as it is.
//! **It never holds a secret**, neither the key of [`SipHash13`](crate::SipHash13) nor the state of
//! a `BuildHasher`. The reader supplies such a hasher
//! ([`from_bytes_with`](crate::ConcurrentBloom::from_bytes_with),
//! [`read_from_with`](crate::ConcurrentBloom::read_from_with)). A snapshot holds a print of its
//! hasher, the hash of a fixed key; reading refuses a hasher with another print. Keep
//! [`SipHash13::key`](crate::SipHash13::key) where you keep secrets. If the key of a hasher cannot
//! be obtained again, as with std's `RandomState`, only this process can read the snapshot.
//!
//! # Hostile bytes
//!
//! Whatever the bytes are, reading ends in a filter or in an error that says what is wrong. It does
//! not panic or hang. It allocates no more than the given limit, or than the bytes that are there.
//! It checks lengths before it allocates. The checksums are against accidents: an attacker who can
//! write the bytes can write the checksums too, and decides what is in the filter. But the result
//! is always a valid filter. Reading refuses counters, tags and cells that no sequence of
//! operations leads to and that would break later operations. It also refuses plans that no builder
//! makes. If a filter grows, the reader's limit limits its growth too. (A hasher's print is one
//! hash: an attacker who knows the algorithm and guesses that there are few keys can try them.
//! Under a random 128-bit key the print reveals nothing.)
//!
//! # The format
//!
//! Version 1. All numbers are little-endian and unsigned unless said otherwise. Every snapshot
//! consists of lines of 64 bytes: two of header, one for each block of the filter, one of trailer.
//! So its blocks are aligned to cache lines if the snapshot is, as in a mapped file, also when
//! several snapshots follow one another.
//!
//! | offset | bytes | header |
//! |---|---|---|
//! | 0 | 8 | `89 4c 42 46 0d 0a 1a 0a`, "\x89LBF\r\n\x1a\n" |
//! | 8 | 2 | version of the format: 1 |
//! | 10 | 1 | kind: 1, a `ConcurrentBloom` |
//! | 11 | 1 | hasher: 0 a `BuildHasher`, 1 Murmur3 x64_128 of which the first half is taken, 2 SipHash-1-3 |
//! | 12 | 4 | seed of Murmur3, otherwise 0 |
//! | 16 | 8 | print of the hasher: its hash of the key `lanebloom hasher print` (22 bytes of ASCII) |
//! | 24 | 8 | bytes of the whole snapshot: 192 + 64 × blocks |
//! | 32 | 1 | version of the layout, which bits a hash sets: 1 |
//! | 33 | 1 | words per key: 1, 2, 4 or 8 |
//! | 34 | 1 | bits per word: from 1 to at most 10, 8, 6 or 4 |
//! | 35 | 5 | 0 |
//! | 40 | 8 | blocks, at least 1 |
//! | 48 | 8 | expected keys |
//! | 56 | 8 | false-positive rate at the expected keys, an IEEE 754 double in 0 to 1, by the model that the filter was sized by |
//! | 64 | 56 | 0 |
//! | 120 | 8 | XXH3-64 (seed 0) of the 120 bytes before |
//!
//! | offset | bytes | body |
//! |---|---|---|
//! | 128 + 64 *b* + 8 *w* | 8 | word *w* of block *b*, of which bit *i* has the value 2^*i* |
//!
//! | offset | bytes | trailer |
//! |---|---|---|
//! | 128 + 64 × blocks | 8 | XXH3-64 (seed 0) of all bytes before: header and body |
//! | 136 + 64 × blocks | 56 | 0 |
//!
//! A hash *h* of 64 bits determines a block, words and bits as follows (all arithmetic is modulo
//! 2^64 except in the first line):
//!
//! - The block is ⌊*h* × blocks / 2^64⌋.
//! - The 8 words of a block form as many groups of neighbours as there are words per key. Each
//!   group gives one word. The bits of *p* = *h* × `9e3779b97f4a7c15` are used from the highest
//!   down. For each word, the first bits number a word of the group (3, 2, 1 or no bits) and choose
//!   it. Then 6 bits for each bit choose that bit. If the rest of the 64 bits does not suffice for
//!   one more word, *p* is multiplied by the same number again, and its highest bits are used.
//!
//! ## Filters of several
//!
//! The snapshot of a [`ScalableBloom`](crate::ScalableBloom) is a header like the one above. The
//! snapshots of its layers as `ConcurrentBloom`s follow, one after another, all with its own
//! hasher. It has no trailer: each of its parts has its checksum.
//!
//! | offset | bytes | header |
//! |---|---|---|
//! | 0 | 10 | as above |
//! | 10 | 1 | kind: 2, a `ScalableBloom` |
//! | 11 | 13 | as above |
//! | 24 | 8 | bytes of the whole snapshot |
//! | 32 | 1 | when it grows: 0 by keys, 1 when half of the bits are set |
//! | 33 | 1 | words per key that were asked for: 1, 2, 4, 8, or 0 for none |
//! | 34 | 1 | 1 if it is full and cannot grow, otherwise 0 |
//! | 35 | 1 | layers that there can be at most, as was asked for: 1 to 64, or 0 for no limit |
//! | 36 | 4 | 0 |
//! | 40 | 8 | keys that the first layer is for, at least 1 |
//! | 48 | 8 | how many times as many the next one is for: 1 to 4096 |
//! | 56 | 8 | compound false-positive rate that was asked for, a double between 0 and 1 |
//! | 64 | 8 | how many times the rate of a layer that of the next one is, as well |
//! | 72 | 8 | bytes that the bits of all layers may take; 2^64 − 1 for no limit |
//! | 80 | 8 | layers that there are: 1 to 64 |
//! | 88 | 32 | 0 |
//! | 120 | 8 | as above |
//!
//! All else follows from these values, as a builder plans it. Layers that differ from the plan are
//! refused.
//!
//! The snapshot of a [`WindowedBloom`](crate::WindowedBloom) is a header, the times when its
//! generations expire, a trailer, and the snapshots of the generations, the newest first, in the
//! same way. All times are in nanoseconds of the filter's clock. They are 0 if the filter does not
//! rotate by age:
//!
//! | offset | bytes | header |
//! |---|---|---|
//! | 0 | 10 | as above |
//! | 10 | 1 | kind: 3, a `WindowedBloom` |
//! | 11 | 13 | as above |
//! | 24 | 8 | bytes of the whole snapshot |
//! | 32 | 1 | when it rotates: 0 when it is told to, 1 by age, 2 when a generation is full |
//! | 33 | 1 | 1 if a key that is inserted again begins its window anew, otherwise 0 |
//! | 34 | 1 | generations: 2 to 64 |
//! | 35 | 1 | by age: the clock, 1 a monotonic one, 2 the time since 1970, 3 another; otherwise 0 |
//! | 36 | 4 | 0 |
//! | 40 | 8 | expected keys of the window |
//! | 48 | 8 | generations that there are, which may be one more than 34 says where it rotates by age |
//! | 56 | 8 | nanoseconds of a generation |
//! | 64 | 8 | what the clock says |
//! | 72 | 8 | when the newest generation began |
//! | 80 | 8 | when it ends |
//! | 88 | 32 | 0 |
//! | 120 | 8 | as above |
//!
//! The newest generation expires (generations − 1) × the nanoseconds of one after it ends. If the
//! filter rotates by age, the body has a number of 8 bytes for each other generation that there is:
//! the time when it expires. Zeros fill up the last line. Otherwise there is no body. The trailer
//! is as above.
//!
//! The snapshot of a [`TombstoneBloom`](crate::TombstoneBloom) is a header and two snapshots of
//! `ConcurrentBloom`s. The first holds the keys that were added, with the filter's own hasher. The
//! second holds the keys that were removed, and says that its hasher is Murmur3 with seed 0:
//!
//! | offset | bytes | header |
//! |---|---|---|
//! | 0 | 10 | as above |
//! | 10 | 1 | kind: 5, a `TombstoneBloom` |
//! | 11 | 13 | as above |
//! | 24 | 8 | bytes of the whole snapshot |
//! | 32 | 88 | 0 |
//! | 120 | 8 | as above |
//!
//! The second snapshot knows a key of hash *h* by another hash. To compute it, *h* is xored with
//! *h* / 2^30, multiplied by `bf58476d1ce4e5b9`, xored with itself / 2^27, multiplied by
//! `94d049bb133111eb`, and xored with itself / 2^31.
//!
//! ## Counters
//!
//! The snapshot of a [`CountingBloom`](crate::CountingBloom) is like that of a `ConcurrentBloom`,
//! but its kind is 4, and words and bits have another meaning. A word has 16 counters of 4 bits,
//! the first one lowest. Bit *p* of a hash's pattern says that counter ⌊*p* / 4⌋ of the word counts
//! the hash (once, if several bits do). At 34 the header has the number of bits that a pattern has
//! in each of its words. A counter at 15 has lost count and stays.
//!
//! ## Buckets
//!
//! The snapshots of a [`CuckooFilter`](crate::CuckooFilter), of its [compact
//! form](crate::CompactCuckoo) and of a [`DLeftFilter`](crate::DLeftFilter) are a header, words as
//! in the body of a `ConcurrentBloom`, and the same trailer. Zeros fill up the last line of the
//! words.
//!
//! | offset | bytes | header |
//! |---|---|---|
//! | 0 | 10 | as above |
//! | 10 | 1 | kind: 6, a `CuckooFilter`; 7, a `CompactCuckoo`; 8, a `DLeftFilter` |
//! | 11 | 13 | as above |
//! | 24 | 8 | bytes of the whole snapshot: 192 + the words, rounded up to lines of 64 |
//! | 32 | 1 | version of the layout, where a hash has its place: 1 |
//! | 33 | 1 | bits of a tag: 10, 12 or 16. `DLeftFilter`: of a remainder, 14 |
//! | 34 | 6 | 0 |
//! | 40 | 8 | buckets. `CuckooFilter`, `CompactCuckoo`: an even number, at least 2. `DLeftFilter`: those of each subtable, at least 1 |
//! | 48 | 8 | expected keys |
//! | 56 | 64 | 0 |
//! | 120 | 8 | as above |
//!
//! All arithmetic is modulo 2^64, except in divisions by 2^32 or 2^64. *x* of *n* means ⌊*x* × *n*
//! / 2^64⌋.
//!
//! **Cuckoo filter.** Word *b* is bucket *b*: 6, 5 or 4 tags of 10, 12 or 16 bits, the first one
//! lowest. A tag of 0 is an empty slot. The highest 4 bits beside 6 or 5 tags are 0. A hash *h* has
//! the tag *t* = ⌊(*h* mod 2^32) × (2^bits − 1) / 2^32⌋ + 1. It lies in bucket *b* = *h* of
//! buckets, or in (*s* − *b*) modulo buckets. To compute *s*, *t* is multiplied by
//! `bf58476d1ce4e5b9`, xored with itself / 2^32 and multiplied by `94d049bb133111eb`. With *x* as
//! the result, *s* = 2 × (*x* of buckets / 2) + 1. A key is there as often as its tag is in the two
//! buckets.
//!
//! **Compact form.** Buckets have 52, 54 or 60 bits (tags of 10, 12 or 16), one directly after
//! another, each from the lowest free bit on. Zeros follow the last one. The tags *t*₀, *t*₁ … of a
//! bucket ascend, including those that are 0. First come the lower bits of each tag, all but the
//! highest 4. Then, in 16, 14 or 12 bits, comes the number of the sequence *u*₀, *u*₁ … of their
//! highest 4: the sum of the binomial coefficients (*uᵢ* + *i* over *i* + 1).
//!
//! **d-left filter.** Four words are two buckets of 8 cells. All buckets of subtable 0 come first,
//! then those of 1, 2 and 3. A cell has 16 bits, four cells to a word, the first one lowest: 14
//! bits of a remainder, and above them 2 of a count. The count is 1 to 3, or 0 in an empty cell,
//! which is 0 as a whole. A hash *h* has the remainder *r* = *h* mod 2^14. Its bucket in subtable
//! *i* is (*h* of buckets + *sᵢ*) modulo buckets; *s*₀ = 0. For the other subtables, *r* + 1 is
//! multiplied by `bf58476d1ce4e5b9`, xored with itself / 2^32, multiplied by `94d049bb133111eb` and
//! xored with itself / 2^31. With *x* as the result, rotated up by 21 × (*i* − 1) bits, *sᵢ* = *x*
//! of buckets. A key has one cell, in one of its four buckets.
//! cell, in one of its four buckets.
//!
//! ## Deltas
//!
//! | offset | bytes | header |
//! |---|---|---|
//! | 0 | 10 | as above |
//! | 10 | 1 | kind: 129, a delta of a `ConcurrentBloom` |
//! | 11 | 13 | as above |
//! | 24 | 8 | bytes of the whole delta |
//! | 32 | 16 | as above: of the filter |
//! | 48 | 8 | lines in the body |
//! | 56 | 8 | XXH3-64 (seed 0) of the 56 bytes before and the body |
//!
//! The body has, for each block that has bits to add, in order:
//!
//! - The number of blocks between it and the one before it in the body, or the beginning. It is in
//!   LEB128: 7 bits a byte, the lowest first, with 128 added to each byte but the last, in as few
//!   bytes as suffice.
//! - A byte whose bit *w* says that word *w* has bits to add. It is not 0.
//! - For each of these words, its bits. Up to 8 bits: a byte for each, their numbers ascending, 128
//!   added to the last. More than 8: the byte 64, and the word of bits, 8 bytes.
//!
//! So a fresh key that sets two words of three bits costs 8 to 10 bytes.
//!
//! # Compatibility
//!
//! Everything that version 1 wrote stays readable: `tests/data` has files of every released
//! version, which the tests read. Reading refuses another version of the format, a layout version
//! that sets other bits, an unknown hasher, and bytes that are not 0 where version 1 has 0. The
//! error names the cause.

mod body;
mod delta;
mod header;
#[cfg(feature = "std")]
mod io;
mod pieces;
#[cfg(feature = "std")]
mod replace;
#[cfg(feature = "serde")]
mod serde;

#[cfg(feature = "serde")]
pub use self::serde::{Limited, Snapshot};
#[cfg(feature = "serde")]
pub(crate) use self::serde::{deserialize, sealed::Decode, serialize};
pub(crate) use body::{admit, assert_snapshot_length, read_words, write_words};
pub(crate) use delta::{Changes, put_line};
pub(crate) use header::{
    Buckets, DELTA_HEADER, DeltaHeader, FIELDS, Hashing, Header, Kind, MOST_WORDS, OwnHeader, SNAPSHOT_HEADER, TRAILER,
    snapshot_bytes,
};
#[cfg(feature = "std")]
pub(crate) use io::{Short, Writer, fill, from_reader};
#[cfg(feature = "std")]
pub(crate) use pieces::Progress;
pub(crate) use pieces::{Input, Out, from_slice};
#[cfg(feature = "std")]
pub use replace::replace_file;

use crate::error::SnapshotErrorKind;
use crate::hash::sealed::Identity;
use crate::hash::{KeyHasher, Murmur3};
use core::hash::Hasher;
use header::check_zeros;

/// XXH3-64, seed 0, of bytes that come in pieces.
///
/// Three checksums were tried (64 MiB, 64 KiB at a time, Emerald Rapids). twox-hash's took 6.6
/// GB/s. xxhash-rust's, which chooses its vectors at compile time, took 5.6. crc32c, of half the
/// width, took 8.5.
#[derive(Default)]
pub(crate) struct Checksum(twox_hash::XxHash3_64);

impl Checksum {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.finish()
    }

    /// The trailer after what was added.
    fn trailer(&self) -> [u8; TRAILER] {
        let mut trailer = [0; TRAILER];
        trailer[..8].copy_from_slice(&self.get().to_le_bytes());
        trailer
    }

    /// An error if `trailer`, which begins `before` bytes into the record, is not the one after
    /// what was added.
    pub(crate) fn check(&self, trailer: &[u8], before: u64) -> Result<(), SnapshotErrorKind> {
        let (stored, _) = trailer.split_first_chunk().expect("it is longer");
        let (stored, computed) = (u64::from_le_bytes(*stored), self.get());
        if stored != computed {
            return Err(SnapshotErrorKind::Checksum { stored, computed });
        }
        check_zeros(trailer, 8..TRAILER).map_err(|error| match error {
            SnapshotErrorKind::NotZero { offset, found } => SnapshotErrorKind::NotZero {
                offset: before + offset,
                found,
            },
            other => other,
        })
    }
}

/// `hasher`, if it is the record's.
pub(crate) fn given<S: KeyHasher>(hasher: S) -> impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind> {
    move |hashing| hashing.check(Hashing::of(&hasher)).map(|()| hasher)
}

/// The hasher of a record whose hasher is [`Murmur3`].
pub(crate) fn murmur3(hashing: Hashing) -> Result<Murmur3, SnapshotErrorKind> {
    let seed = match hashing.identity {
        Identity::Murmur3 { seed } => seed,
        // What a caller who names no hasher has.
        _ => 0,
    };
    let hasher = Murmur3::with_seed(seed);
    hashing.check(Hashing::of(&hasher)).map(|()| hasher)
}

/// The first `len` of the bytes, and the rest.
pub(crate) fn split(bytes: &[u8], len: usize) -> Result<(&[u8], &[u8]), SnapshotErrorKind> {
    bytes.split_at_checked(len).ok_or(SnapshotErrorKind::Truncated {
        bytes: bytes.len() as u64,
        needed: len as u64,
    })
}
