//! Snapshots of a window: its settings, the clock's time, the generations' expiry times, and their
//! own snapshots. `docs/FORMAT.md` describes the bytes.

use super::WindowedBloom;
use super::clock::Clock;
use super::generations::Windowed;
use super::list::{Generation, List};
use super::settings::{self, MAX_GENERATIONS, MAX_WINDOW, NEVER, When, WindowSettings};
use crate::codec::{
    self, AskHasher, Hashing, Input, Kind, Out, OwnHeader, admit, given, in_range, read_header, read_words,
    snapshot_bytes, with_hasher, write_words,
};
use crate::error::{SnapshotError, SnapshotErrorKind};
use crate::filter::Filter;
use crate::filter::traits::Encode;
use crate::filter::types::bloom::Bloom;
use crate::hash::FilterHasher;
use crate::words::sync::Guard;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::time::Duration;
use std::io::Read;

/// The ways to rotate, in the header.
const CALLED: u8 = 0;
const AGED: u8 = 1;
const FULL: u8 = 2;

/// The clocks by which keys age, in the header; 0 if they do not.
const MONOTONIC: u8 = 1;
const TIME_OF_DAY: u8 = 2;
const SUPPLIED: u8 = 3;

/// [`codec::from_bytes`](crate::codec::from_bytes) of a window, with a clock.
///
/// `now` must go on from where the filter's clock was. If that was the monotonic clock, `now` may
/// begin at any time. If the filter does not rotate by age, `now` is not called. [The
/// module](super#snapshots) says which snapshots need a clock. Fails as `codec::from_bytes`.
///
/// ```
/// use lanebloom::{WindowedBloom, windowed};
/// use std::time::Duration;
///
/// let at = |seconds| move || Duration::from_secs(seconds);
/// let builder = WindowedBloom::builder().expected_keys(1000);
/// let recent = builder.window(Duration::from_secs(60)).clock(at(100)).build()?;
/// recent.insert("a");
/// let (bytes, hasher) = (recent.snapshot().to_vec(), *recent.hasher());
/// let read = |now| windowed::from_bytes(&bytes, hasher, at(now));
/// assert!(read(110)?.0.contains("a") && !read(200)?.0.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn from_bytes<S: FilterHasher>(
    bytes: &[u8],
    hasher: S,
    now: impl Fn() -> Duration + Send + Sync + 'static,
) -> Result<(WindowedBloom<S>, &[u8]), SnapshotError> {
    let clock = Clock::Supplied(Arc::new(now));
    codec::from_slice(bytes, |input| decode_by(clock, input, usize::MAX, hasher)).map_err(SnapshotError)
}

/// [`codec::read_from`](crate::codec::read_from) of a window, with a clock, as [`from_bytes`].
/// Fails as `codec::read_from`.
///
/// ```
/// use lanebloom::{WindowedBloom, windowed};
/// use std::time::Duration;
///
/// let clock = || Duration::from_secs(100);
/// let builder = WindowedBloom::builder().expected_keys(1000);
/// let recent = builder.window(Duration::from_secs(9)).clock(clock).build()?;
/// recent.insert("a");
/// let (bytes, hasher) = (recent.snapshot().to_vec(), *recent.hasher());
/// let same = windowed::read_from(&bytes[..], 1 << 20, hasher, clock)?;
/// assert!(same.contains("a"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_from<S: FilterHasher>(
    reader: impl Read,
    max_bytes: usize,
    hasher: S,
    now: impl Fn() -> Duration + Send + Sync + 'static,
) -> Result<WindowedBloom<S>, SnapshotError> {
    let clock = Clock::Supplied(Arc::new(now));
    codec::from_reader(reader, |input| decode_by(clock, input, max_bytes, hasher)).map_err(SnapshotError)
}

fn decode_by<S: FilterHasher>(
    clock: Clock,
    input: &mut dyn Input,
    limit: usize,
    hasher: S,
) -> Result<WindowedBloom<S>, SnapshotErrorKind> {
    let decode = |hasher: AskHasher<'_>| Windowed::decode_by(Some(clock), input, limit, hasher);
    let (engine, hasher) = with_hasher(given(hasher), decode)?;
    Ok(Filter::of(engine, hasher))
}

/// The generations in a snapshot: all visible ones, or the newest alone.
struct Kept {
    now: u64,
    list: Guard<List>,
    len: usize,
}

impl Kept {
    #[inline]
    fn generations(&self) -> &[Generation] {
        &self.list.generations[..self.len]
    }

    /// The generations whose expiry times are in the snapshot.
    #[inline]
    fn timed(&self, settings: &WindowSettings) -> &[Generation] {
        match settings.when {
            When::Aged(_) => &self.generations()[1..],
            _ => &[],
        }
    }

    #[inline]
    fn snapshot_bytes(&self, settings: &WindowSettings) -> usize {
        let parts = self.generations().iter().map(|one| one.bloom.engine.snapshot_bytes());
        snapshot_bytes(self.timed(settings).len()) + parts.sum::<usize>()
    }
}

// A header, the expiry times, and the generations.
impl Encode for Windowed {
    type Size = ();
    const HELD: bool = false;

    #[inline]
    fn snapshot_bytes(&self) -> usize {
        self.kept().snapshot_bytes(&self.settings)
    }

    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error> {
        let kept = self.kept();
        let (rotation, clock) = match &self.settings.when {
            When::Called => (CALLED, 0),
            When::Aged(Clock::Monotonic) => (AGED, MONOTONIC),
            When::Aged(Clock::TimeOfDay) => (AGED, TIME_OF_DAY),
            When::Aged(Clock::Supplied(_)) => (AGED, SUPPLIED),
            When::Full(_) => (FULL, 0),
        };
        let mut header = OwnHeader::new(Kind::Windowed, hashing, kept.snapshot_bytes(&self.settings));
        let renew = u8::from(self.settings.renew);
        let generations = self.settings.generations as u8;
        header.put(
            32,
            u64::from_le_bytes([rotation, renew, generations, clock, 0, 0, 0, 0]),
        );
        header.put(40, self.settings.expected_keys as u64);
        header.put(48, kept.len as u64);
        if rotation == AGED {
            header.put(56, self.settings.period);
            header.put(64, kept.now);
            header.put(72, kept.list.begin);
            header.put(80, kept.list.until);
        }
        let timed = kept.timed(&self.settings);
        let expires = timed.iter().map(|one| one.expires);
        write_words(out, &header.to_bytes(), timed.len(), expires)?;
        let mut blooms = kept.generations().iter().map(|one| &one.bloom.engine);
        blooms.try_for_each(|one| one.encode(hashing, out))
    }

    #[inline]
    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind> {
        Self::decode_by(None, input, limit, hasher)
    }
}

impl Windowed {
    #[inline]
    fn kept(&self) -> Kept {
        // Before the list: no generation is newer than this time.
        let now = self.settings.now();
        let list = self.list.load();
        let len = list.live(now).len().max(1);
        Kept { now, list, len }
    }

    /// Reads an engine whose keys age by `supplied`, or by the clock that the snapshot names.
    #[inline]
    fn decode_by(
        supplied: Option<Clock>,
        input: &mut dyn Input,
        limit: usize,
        hasher: AskHasher<'_>,
    ) -> Result<Self, SnapshotErrorKind> {
        let header = read_header(input, Kind::Windowed)?;
        hasher(header.hashing)?;
        let [rotation, renew, generations, clock, ..] = header.get(32).to_le_bytes();
        let renew = in_range("whether a key is renewed", renew, 0..=1)? == 1;
        let rotation = in_range("the way to rotate", rotation, 0..=FULL)?;
        let generations = in_range("the number of generations", generations, 2..=MAX_GENERATIONS as u8)?;
        let generations = usize::from(generations);
        let is_aged = rotation == AGED;
        let clocks = if is_aged { MONOTONIC..=SUPPLIED } else { 0..=0 };
        let kind = in_range("the kind of the clock", clock, clocks)?;
        header.zeros(36..40)?;
        header.zeros(88..120)?;
        let expected_keys = header.number("the expected keys", 40, 1..=u64::MAX)?;
        // One more than at any other time, after the clock stepped back.
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

        let bytes = header.body_bytes(snapshot_bytes(times), count)?;
        // All generations and a spare one are allocated, whether the snapshot has them or not.
        let needed = (bytes / count as u64).saturating_mul(generations as u64 + 1);
        admit(input, header.len as usize, needed, limit)?;
        let mut expires = Vec::new();
        read_words(input, &header.to_bytes(), times, &mut |_, words| {
            expires.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        })?;
        let clock = match (supplied, kind) {
            (Some(clock), _) => clock,
            (None, TIME_OF_DAY) => Clock::TimeOfDay,
            (None, SUPPLIED) => {
                return Err(SnapshotErrorKind::Incompatible(
                    "the window ages by a clock that its builder was given: read it with that one, by \
                     `windowed::from_bytes` or `windowed::read_from`"
                        .into(),
                ));
            }
            (None, _) => Clock::Monotonic,
        };
        let blooms = Bloom::decode_parts(input, &header, bytes, count)?;
        let first = &blooms[0];
        if let Some(other) = blooms.iter().find(|one| one.layout != first.layout) {
            return Err(SnapshotErrorKind::differs("layout", other.layout, first.layout));
        }
        let share = expected_keys.div_ceil(generations - 1);
        if share > first.expected_keys {
            let most = first.expected_keys.saturating_mul(generations - 1);
            header.number("the expected keys", 40, 1..=most as u64)?;
        }
        let when = match rotation {
            CALLED => When::Called,
            AGED => When::Aged(clock),
            _ => When::Full(settings::estimate(share)),
        };
        let settings = WindowSettings {
            when,
            period,
            generations,
            expected_keys,
            renew,
        };
        let [then, begin, until] = [64, 72, 80].map(|at| header.get(at));
        // No monotonic clock knows how long ago that was.
        let now = if kind == MONOTONIC { settings.now() } else { then };
        let moved = |time: u64| {
            if time < then {
                now.saturating_sub(then - time)
            } else {
                now.saturating_add(time - then)
            }
        };
        let (begin, until, expires) = if is_aged {
            // The newest is for a period at most, or for two if it began early because another
            // node's clock is ahead; and the older ones have ended by then.
            let until = until.min(begin.saturating_add(period).saturating_add(period));
            let newest = until.saturating_add(settings.window());
            expires.insert(0, newest);
            let mut latest = newest;
            for (i, time) in expires.iter_mut().enumerate() {
                if *time > latest {
                    return Err(SnapshotErrorKind::Invalid(format!(
                        "generation {i} expires at {time}, where by those before it does at {latest} at the latest"
                    )));
                }
                latest = *time;
                *time = moved(*time);
            }
            (moved(begin), moved(until), expires)
        } else {
            (0, NEVER, alloc::vec![NEVER; count])
        };
        let one = |(expires, engine)| Generation {
            expires,
            bloom: Arc::new(Filter::of(engine, ())),
        };
        let list = List {
            generations: expires.into_iter().zip(blooms).map(one).collect(),
            begin,
            until,
        };
        Self::new(list, settings).map_err(SnapshotErrorKind::OutOfMemory)
    }
}
