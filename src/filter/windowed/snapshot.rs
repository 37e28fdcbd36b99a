//! Snapshots of a filter that forgets: when it rotates, how old its generations are, and their snapshots. `codec` describes the
//! bytes.

use super::{Clock, FULL_AT, MAX_GENERATIONS, MAX_WINDOW, State, When, WindowedBloom, with_spares};
use crate::codec::{
    self, FIELDS, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, admit, from_slice, given, murmur3,
};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::concurrent::ConcurrentBloom;
use crate::filter::gauge::Gauge;
use crate::hash::KeyHasher;
use crate::sync::Swap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::io::{Read, Write};
use std::sync::Mutex;

/// How it rotates, in the header.
const CALLED: u8 = 0;
const AGED: u8 = 1;
const FULL: u8 = 2;

/// Snapshots, in the [format](crate::codec#the-format) of this crate.
///
/// Of a filter with a [window](super::Builder::window) they hold how old the generations were by its clock. Which time has passed since, a
/// monotonic clock cannot tell: read with that one, a key's age goes on from where it was, in whole generations, so that it
/// is forgotten up to one generation late and none early. Read with a clock of one's own that goes on meanwhile, such as
/// the time of day, by [`from_bytes_with_clock`](Self::from_bytes_with_clock), it counts.
impl<S: KeyHasher + Clone> WindowedBloom<S> {
    /// The filter as bytes that [`from_bytes`](WindowedBloom::from_bytes) reads.
    ///
    /// Beside inserts, they hold at least every key whose insertion happened before and that the filter has not forgotten. Aborts where
    /// the memory is not to be had; [`write_to`](Self::write_to) needs 2 MiB.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let recent = WindowedBloom::builder().expected_keys(1000).generations(2).build()?;
    /// recent.insert("a");
    /// recent.rotate();
    /// recent.insert("b");
    /// let (same, _) = WindowedBloom::from_bytes(&recent.to_bytes())?;
    /// assert!(same.contains("a") && same.contains("b"));
    /// same.rotate();
    /// assert!(!same.contains("a") && same.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(()) = self.encode(&mut bytes);
        bytes
    }

    /// Writes the filter as bytes that [`read_from`](WindowedBloom::read_from) reads, up to 2 MiB at a time, so that the writer need not be
    /// buffered. It does not flush.
    ///
    /// Beside inserts, it writes at least every key whose insertion happened before and that the filter has not forgotten.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let recent = WindowedBloom::builder().expected_keys(1000).build()?;
    /// recent.insert("a");
    /// let mut stream = Vec::new();
    /// recent.write_to(&mut stream)?;
    /// assert_eq!(stream, recent.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn write_to(&self, writer: impl Write) -> std::io::Result<()> {
        let mut out = codec::Writer::new(writer);
        self.encode(&mut out)?;
        out.finish()
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        // Before the list, whose generations are not newer then.
        let now = self.when.now();
        let state = self.state.load();
        let parts: usize = state.generations.iter().map(|one| one.filter.snapshot_bytes()).sum();
        let mut header = OwnHeader {
            kind: Kind::Windowed,
            hashing: Hashing::of(&self.hasher),
            len: (SNAPSHOT_HEADER + parts) as u64,
            fields: [0; FIELDS],
        };
        let (rotation, period) = match &self.when {
            When::Called => (CALLED, 0),
            When::Aged(_, period) => (AGED, *period),
            When::Full(_) => (FULL, 0),
        };
        let newest = state.generations[0].number;
        // A list has numbers in descending order, each less than `generations` below the newest.
        let ages = state.generations.iter().map(|one| 1u64 << (newest - one.number)).sum();
        let renew = u8::from(self.renew);
        let generations = self.generations as u8;
        header.put(32, u64::from_le_bytes([rotation, renew, generations, 0, 0, 0, 0, 0]));
        header.put(40, self.expected_keys as u64);
        header.put(48, period);
        header.put(56, ages);
        header.put(64, newest);
        header.put(72, now);
        out.put(&header.to_bytes())?;
        state.generations.iter().try_for_each(|one| one.filter.encode(out))
    }

    /// [`from_bytes`](WindowedBloom::from_bytes) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes`](WindowedBloom::from_bytes), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{SipHash13, WindowedBloom};
    ///
    /// let hasher = SipHash13::random();
    /// let recent = WindowedBloom::builder().expected_keys(1000).hasher(hasher).build()?;
    /// recent.insert("a");
    /// let (same, _) = WindowedBloom::from_bytes_with(&recent.to_bytes(), hasher)?;
    /// assert!(same.contains("a") && !same.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| {
            Self::decode(input, usize::MAX, Clock::Monotonic, given(hasher))
        })
        .map_err(SnapshotError)
    }

    /// [`from_bytes_with`](Self::from_bytes_with) and a clock: `now` goes on from where the clock was that the filter had.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes_with`](Self::from_bytes_with).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{Murmur3, WindowedBloom};
    /// use std::time::{Duration, SystemTime};
    ///
    /// let time_of_day = || SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    /// let hour = Duration::from_secs(3600);
    /// let recent = WindowedBloom::builder().expected_keys(1000).window(hour).clock(time_of_day).build()?;
    /// recent.insert("a");
    /// let bytes = recent.to_bytes();
    ///
    /// let (same, _) = WindowedBloom::from_bytes_with_clock(&bytes, Murmur3::default(), time_of_day)?;
    /// assert!(same.contains("a"));
    /// let (later, _) =
    ///     WindowedBloom::from_bytes_with_clock(&bytes, Murmur3::default(), move || time_of_day() + 2 * hour)?;
    /// assert!(!later.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with_clock(
        bytes: &[u8],
        hasher: S,
        now: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Result<(Self, &[u8]), SnapshotError> {
        let clock = Clock::Supplied(Arc::new(now));
        from_slice(bytes, |input| Self::decode(input, usize::MAX, clock, given(hasher))).map_err(SnapshotError)
    }

    /// [`read_from`](WindowedBloom::read_from) of a filter with any hasher: `hasher` must be the one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`read_from`](WindowedBloom::read_from), and if the filter's hasher has another algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{SipHash13, WindowedBloom};
    ///
    /// let hasher = SipHash13::random();
    /// let recent = WindowedBloom::builder().expected_keys(1000).hasher(hasher).build()?;
    /// recent.insert("a");
    /// let stream = recent.to_bytes();
    /// assert!(WindowedBloom::read_from_with(&stream[..], 1 << 20, hasher)?.contains("a"));
    /// assert!(WindowedBloom::read_from(&stream[..], 1 << 20).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from_with(reader: impl Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
        codec::from_reader(reader, |input| {
            Self::decode(input, max_bytes, Clock::Monotonic, given(hasher))
        })
        .map_err(SnapshotError)
    }

    /// [`read_from_with`](Self::read_from_with) and a clock, as [`from_bytes_with_clock`](Self::from_bytes_with_clock).
    ///
    /// # Errors
    ///
    /// As of [`read_from_with`](Self::read_from_with).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{Murmur3, WindowedBloom};
    /// use std::time::{Duration, SystemTime};
    ///
    /// let time_of_day = || SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    /// let hour = Duration::from_secs(3600);
    /// let recent = WindowedBloom::builder().expected_keys(1000).window(hour).clock(time_of_day).build()?;
    /// recent.insert("a");
    /// let stream = recent.to_bytes();
    /// let same = WindowedBloom::read_from_with_clock(&stream[..], 1 << 20, Murmur3::default(), time_of_day)?;
    /// assert!(same.contains("a"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from_with_clock(
        reader: impl Read,
        max_bytes: usize,
        hasher: S,
        now: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Result<Self, SnapshotError> {
        let clock = Clock::Supplied(Arc::new(now));
        codec::from_reader(reader, |input| Self::decode(input, max_bytes, clock, given(hasher))).map_err(SnapshotError)
    }

    fn decode<I: Input>(
        input: &mut I,
        limit: usize,
        clock: Clock,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Windowed)?;
        let hasher = hasher(header.hashing)?;
        let [rotation, renew, generations, ..] = header.get(32).to_le_bytes();
        let renew = header.byte("whether a key is renewed", renew, 0..=1)? == 1;
        let rotation = header.byte("the way to rotate", rotation, 0..=FULL)?;
        let generations = header.byte("the number of generations", generations, 2..=MAX_GENERATIONS as u8)?;
        let generations = usize::from(generations);
        header.zeros(35..40)?;
        header.zeros(80..120)?;
        let expected_keys = header.number("the expected keys", 40, 1..=u64::MAX)?;
        let longest = MAX_WINDOW.as_nanos() as u64;
        let period = match rotation {
            AGED => header.value("the nanoseconds of a generation", 48, 1..=longest)?,
            _ => header.value("the nanoseconds of a generation", 48, 0..=0)?,
        };
        let ages = header.get(56);
        if ages & 1 == 0 || ages.checked_shr(generations as u32).unwrap_or(0) != 0 {
            return Err(SnapshotErrorKind::Ages { ages, generations });
        }
        let count = ages.count_ones() as usize;
        let oldest = u64::from(63 - ages.leading_zeros());
        let newest = header.value("the number of the newest generation", 64, oldest..=u64::MAX)?;

        let bytes = header.body_bytes(count)?;
        // All generations, and one to spare, are allocated, whether they are in the snapshot or not.
        let needed = (bytes / count as u64).saturating_mul(generations as u64 + 1);
        admit(input, header.len as usize, needed, limit)?;
        let mut left = bytes;
        let mut filters: Vec<ConcurrentBloom<S>> = Vec::new();
        for _ in 0..count {
            let filter = ConcurrentBloom::decode(input, left as usize, given(hasher.clone()))?;
            left -= filter.memory_bytes() as u64;
            if let Some(first) = filters.first()
                && first.layout() != filter.layout()
            {
                return Err(SnapshotErrorKind::Layout {
                    theirs: filter.layout(),
                    ours: first.layout(),
                });
            }
            filters.push(filter);
        }
        if left > 0 {
            return Err(SnapshotErrorKind::Length {
                declared: header.len,
                needed: header.len - left,
            });
        }

        let (when, newest) = match rotation {
            CALLED => (When::Called, newest),
            AGED => {
                let newest = match clock {
                    Clock::Supplied(_) => newest,
                    // Another start of the clock: as many generations later, or earlier, as it is, rounded up.
                    Clock::Monotonic => {
                        let (then, now) = (i128::from(header.get(72)), i128::from(clock.nanos()));
                        let later =
                            (now - then).div_euclid(period.into()) + i128::from((now - then) % i128::from(period) != 0);
                        let moved = i128::from(newest) + later;
                        // An oldest one of before the clock's start is as good as one from there.
                        moved.clamp(oldest.into(), u64::MAX.into()) as u64
                    }
                };
                (When::Aged(clock, period), newest)
            }
            _ => {
                let share = expected_keys.div_ceil(generations - 1);
                (
                    When::Full(Gauge::new(&filters[0], super::margin(share, FULL_AT))),
                    newest,
                )
            }
        };
        let numbers = (0..64).filter(|age| ages >> age & 1 == 1).map(|age| newest - age);
        let list = numbers
            .zip(filters)
            .map(|(number, filter)| when.generation(number, generations, Arc::new(filter)))
            .collect();
        let (state, pool): (State<S>, _) =
            with_spares(list, when.until(newest), generations).map_err(SnapshotErrorKind::OutOfMemory)?;
        Ok(Self {
            state: Swap::new(state),
            pool: Mutex::new(pool),
            hasher,
            when,
            generations,
            expected_keys,
            renew,
        })
    }
}

impl WindowedBloom {
    /// The filter with which `bytes` begin, and the bytes after it.
    ///
    /// # Errors
    ///
    /// If the bytes end before the filter does, are corrupt, are no snapshot of a `WindowedBloom`, or one by another version of the
    /// format or with another hasher than [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads those), or the
    /// memory is not to be had. Nothing is allocated unless all of the filter is there; then it is that of all generations, which may be
    /// 65 times as much as is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let recent = WindowedBloom::builder().expected_keys(1000).build()?;
    /// recent.insert("a");
    /// let mut bytes = recent.to_bytes();
    /// bytes.extend(b"more");
    /// let (same, rest) = WindowedBloom::from_bytes(&bytes)?;
    /// assert!(same.contains("a") && !same.contains("b"));
    /// assert_eq!((same.generations(), rest), (4, &b"more"[..]));
    /// assert!(WindowedBloom::from_bytes(&bytes[..500]).unwrap_err().is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| {
            Self::decode(input, usize::MAX, Clock::Monotonic, murmur3)
        })
        .map_err(SnapshotError)
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote, whose bits take `max_bytes` bytes at
    /// most, those of all generations that there can be and of the spare one. What comes after it is left unread.
    ///
    /// The length that the stream declares is checked before memory is allocated.
    ///
    /// # Errors
    ///
    /// If the reader fails (its error is the [source](std::error::Error::source)), the filter takes more than `max_bytes`, and as of
    /// [`from_bytes`](Self::from_bytes).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::WindowedBloom;
    ///
    /// let recent = WindowedBloom::builder().expected_keys(1000).build()?;
    /// recent.insert("a");
    /// let stream = recent.to_bytes();
    /// assert!(WindowedBloom::read_from(&stream[..], 1 << 20)?.contains("a"));
    ///
    /// let error = WindowedBloom::read_from(&stream[..], 512).unwrap_err();
    /// assert!(error.to_string().ends_with("bytes, more than the limit of 512 bytes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_from(reader: impl Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        codec::from_reader(reader, |input| {
            Self::decode(input, max_bytes, Clock::Monotonic, murmur3)
        })
        .map_err(SnapshotError)
    }
}
