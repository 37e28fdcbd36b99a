//! Snapshots of a filter that forgets: when it rotates, when its generations expire, and their
//! snapshots. `codec` describes the bytes.

use super::{
    Clock, FULL_AT, Generation, MAX_GENERATIONS, MAX_WINDOW, NEVER, State, When, WindowedBloom, window_of, with_spares,
};
use crate::codec::{
    self, FIELDS, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, admit, from_slice, given, murmur3, read_words,
    snapshot_bytes, write_words,
};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::bloom::ConcurrentBloom;
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

/// By which clock keys age, in the header; 0 where they do not.
const MONOTONIC: u8 = 1;
const TIME_OF_DAY: u8 = 2;
const SUPPLIED: u8 = 3;

/// Snapshots, in the [format](crate::codec#the-format) of this crate.
///
/// For a filter with a [window](super::Builder::window), the snapshot records by which clock keys
/// age, what it said, and when each generation expires.
///
/// | the filter was built with | read by | keys' ages |
/// |---|---|---|
/// | the monotonic clock | any | go on from where they were: the clock cannot tell how much time has passed since |
/// | [`time_of_day`](super::Builder::time_of_day) | any but with a clock | include the time since: the filter goes on by the time of day |
/// | [`clock`](super::Builder::clock), or `time_of_day` | [`from_bytes_with_clock`](Self::from_bytes_with_clock), [`read_from_with_clock`](Self::read_from_with_clock) | include the time since, by the clock that is given: it must be the one that the filter had |
/// | [`clock`](super::Builder::clock) | any other | the snapshot is refused |
///
/// # Examples
///
/// A restart: what was seen by the process before counts, and so does the time that it was down.
/// The filter that was just built says how much memory the file may ask for.
///
/// ```
/// use lanebloom::WindowedBloom;
/// use lanebloom::codec::replace_file;
/// use std::fs::File;
/// use std::io::ErrorKind;
/// use std::time::Duration;
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("recent.bloom");
/// # let mut seen = Vec::new();
/// # for _ in 0..2 {
/// let builder = WindowedBloom::builder().expected_keys(1000).window(Duration::from_secs(3600)).time_of_day();
/// let fresh = builder.build()?;
/// let recent = match File::open(&path) {
///     Ok(file) => WindowedBloom::read_from(file, fresh.memory_bytes())?,
///     Err(error) if error.kind() == ErrorKind::NotFound => fresh,
///     Err(error) => return Err(error.into()),
/// };
/// let is_new = recent.insert("ann");
/// replace_file(&path, |file| recent.write_to(file))?;
/// # seen.push(is_new);
/// # }
/// # assert_eq!(seen, [true, false]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<S: KeyHasher + Clone> WindowedBloom<S> {
    /// The filter as bytes that [`from_bytes`](WindowedBloom::from_bytes) reads.
    ///
    /// Beside inserts, they hold at least every key whose insertion happened before and that the
    /// filter has not forgotten. Aborts if the allocation fails; [`write_to`](Self::write_to) needs
    /// 2 MiB.
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

    /// Writes the filter as bytes that [`read_from`](WindowedBloom::read_from) reads, up to 2 MiB
    /// at a time, so that the writer need not be buffered. It does not flush.
    ///
    /// Beside inserts, it writes at least every key whose insertion happened before and that the
    /// filter has not forgotten.
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
        // The newest in any case.
        let list = &state.generations[..state.live(now).len().max(1)];
        let (rotation, clock) = match &self.when {
            When::Called => (CALLED, 0),
            When::Aged(Clock::Monotonic) => (AGED, MONOTONIC),
            When::Aged(Clock::TimeOfDay) => (AGED, TIME_OF_DAY),
            When::Aged(Clock::Supplied(_)) => (AGED, SUPPLIED),
            When::Full(_) => (FULL, 0),
        };
        let older = if rotation == AGED { &list[1..] } else { &[] };
        let parts: usize = list.iter().map(|one| one.filter.snapshot_bytes()).sum();
        let mut header = OwnHeader {
            kind: Kind::Windowed,
            hashing: Hashing::of(&self.hasher),
            len: (snapshot_bytes(older.len()) + parts) as u64,
            fields: [0; FIELDS],
        };
        let renew = u8::from(self.renew);
        let generations = self.generations as u8;
        header.put(
            32,
            u64::from_le_bytes([rotation, renew, generations, clock, 0, 0, 0, 0]),
        );
        header.put(40, self.expected_keys as u64);
        header.put(48, list.len() as u64);
        if rotation == AGED {
            header.put(56, self.period);
            header.put(64, now);
            header.put(72, state.begin);
            header.put(80, state.until);
        }
        let expires = older.iter().map(|one| one.expires);
        write_words(out, &header.to_bytes(), older.len(), expires)?;
        list.iter().try_for_each(|one| one.filter.encode(out))
    }

    /// [`from_bytes`](WindowedBloom::from_bytes) of a filter with any hasher: `hasher` must be the
    /// one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes`](WindowedBloom::from_bytes), and if the filter's hasher has another
    /// algorithm, seed or key.
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
        from_slice(bytes, |input| Self::decode(input, usize::MAX, None, given(hasher))).map_err(SnapshotError)
    }

    /// [`from_bytes_with`](Self::from_bytes_with) and a clock: `now` goes on from where the clock
    /// was that the filter had. Where that was the monotonic one, from any time on; and where the
    /// filter does not rotate by age, it is not called.
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
        from_slice(bytes, |input| {
            Self::decode(input, usize::MAX, Some(clock), given(hasher))
        })
        .map_err(SnapshotError)
    }

    /// [`read_from`](WindowedBloom::read_from) of a filter with any hasher: `hasher` must be the
    /// one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`read_from`](WindowedBloom::read_from), and if the filter's hasher has another
    /// algorithm, seed or key.
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
        codec::from_reader(reader, |input| Self::decode(input, max_bytes, None, given(hasher))).map_err(SnapshotError)
    }

    /// [`read_from_with`](Self::read_from_with) and a clock, as
    /// [`from_bytes_with_clock`](Self::from_bytes_with_clock).
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
        codec::from_reader(reader, |input| {
            Self::decode(input, max_bytes, Some(clock), given(hasher))
        })
        .map_err(SnapshotError)
    }

    fn decode<I: Input>(
        input: &mut I,
        limit: usize,
        supplied: Option<Clock>,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Windowed)?;
        let hasher = hasher(header.hashing)?;
        let [rotation, renew, generations, clock, ..] = header.get(32).to_le_bytes();
        let renew = header.byte("whether a key is renewed", renew, 0..=1)? == 1;
        let rotation = header.byte("the way to rotate", rotation, 0..=FULL)?;
        let generations = header.byte("the number of generations", generations, 2..=MAX_GENERATIONS as u8)?;
        let generations = usize::from(generations);
        let is_aged = rotation == AGED;
        let clocks = if is_aged { MONOTONIC..=SUPPLIED } else { 0..=0 };
        let kind = header.byte("the kind of the clock", clock, clocks)?;
        header.zeros(36..40)?;
        header.zeros(88..120)?;
        let expected_keys = header.number("the expected keys", 40, 1..=u64::MAX)?;
        // One more than there are at any other time, after the clock stepped back.
        let most = generations + usize::from(is_aged);
        let count = header.number("the number of generations there are", 48, 1..=most as u64)?;
        let longest = (MAX_WINDOW.as_nanos() as u64).div_ceil(generations as u64 - 1);
        let (period, times) = if is_aged {
            let period = header.value("the nanoseconds of a generation", 56, 1..=longest)?;
            (period, count - 1)
        } else {
            header.zeros(56..88)?;
            (NEVER, 0)
        };

        // But for the times, it is a header and its parts.
        let extra = (snapshot_bytes(times) - SNAPSHOT_HEADER) as u64;
        let len = header.len.saturating_sub(extra);
        let parts = OwnHeader { len, ..header }.body_bytes(count);
        let bytes = parts.map_err(|error| match error {
            SnapshotErrorKind::Length { needed, .. } => SnapshotErrorKind::Length {
                declared: header.len,
                needed: needed + extra,
            },
            other => other,
        })?;
        // All generations, and one to spare, are allocated, whether they are in the snapshot or
        // not.
        let needed = (bytes / count as u64).saturating_mul(generations as u64 + 1);
        admit(input, header.len as usize, needed, limit)?;
        let mut expires = Vec::new();
        read_words(input, &header.to_bytes(), times, |_, words| {
            expires.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        })?;
        let window = window_of(period, generations);
        let clock = match (supplied, kind) {
            (Some(clock), _) => clock,
            (None, MONOTONIC) => Clock::Monotonic,
            (None, TIME_OF_DAY) => Clock::TimeOfDay,
            (None, SUPPLIED) => return Err(SnapshotErrorKind::Clock),
            (None, _) => Clock::Monotonic,
        };
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

        let share = expected_keys.div_ceil(generations - 1);
        if share > filters[0].expected_keys() {
            let most = filters[0].expected_keys().saturating_mul(generations - 1);
            header.number("the expected keys", 40, 1..=most as u64)?;
        }
        let when = match rotation {
            CALLED => When::Called,
            AGED => When::Aged(clock),
            _ => When::Full(Gauge::new(&filters[0].engine, super::margin(share, FULL_AT))),
        };
        let [then, begin, until] = [64, 72, 80].map(|at| header.get(at));
        // No monotonic clock knows how long ago that was.
        let now = if kind == MONOTONIC { when.now() } else { then };
        let moved = |time: u64| {
            if time < then {
                now.saturating_sub(then - time)
            } else {
                now.saturating_add(time - then)
            }
        };
        let (begin, until, expires) = if is_aged {
            // The newest is for a period at most, or for two where it began early since another
            // node's clock is ahead; and the older ones have ended by then.
            let until = until.min(begin.saturating_add(period).saturating_add(period));
            let newest = until.saturating_add(window);
            expires.insert(0, newest);
            let mut latest = newest;
            for (i, time) in expires.iter_mut().enumerate() {
                if *time > latest {
                    return Err(SnapshotErrorKind::Expiry {
                        generation: i,
                        expires: *time,
                        latest,
                    });
                }
                latest = *time;
                *time = moved(*time);
            }
            (moved(begin), moved(until), expires)
        } else {
            (0, NEVER, alloc::vec![NEVER; count])
        };
        let list = expires.into_iter().zip(filters).map(|(expires, filter)| Generation {
            expires,
            filter: Arc::new(filter),
        });
        let state = State {
            generations: list.collect(),
            begin,
            until,
        };
        let (state, pool) = with_spares(state, generations).map_err(SnapshotErrorKind::OutOfMemory)?;
        Ok(Self {
            state: Swap::new(state),
            pool: Mutex::new(pool),
            hasher,
            when,
            period,
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
    /// Fails if the bytes end before the filter does, are corrupt, are no snapshot of a
    /// `WindowedBloom`, or one by another version of the format, with another hasher than
    /// [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads those) or by a
    /// [clock](super::Builder::clock) of its own
    /// ([`from_bytes_with_clock`](Self::from_bytes_with_clock)). Also fails if the allocation
    /// fails. Allocates nothing unless all of the filter is there. Then it allocates all
    /// generations, which may take 65 times as much as is there.
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
        from_slice(bytes, |input| Self::decode(input, usize::MAX, None, murmur3)).map_err(SnapshotError)
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote,
    /// whose bits take `max_bytes` bytes at most, those of all generations that there can be and of
    /// the spare one. What comes after it is left unread.
    ///
    /// The length that the stream declares is checked before memory is allocated.
    ///
    /// # Errors
    ///
    /// If the reader fails (its error is the [source](std::error::Error::source)), the filter takes
    /// more than `max_bytes`, and as of [`from_bytes`](Self::from_bytes).
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
        codec::from_reader(reader, |input| Self::decode(input, max_bytes, None, murmur3)).map_err(SnapshotError)
    }
}
