//! Snapshots of a filter that grows: what it was built with, and the snapshots of its layers.
//! `codec` describes the bytes.

use super::{Asked, FULL, Growth, Layer, MAX_EXPANSION, MAX_LAYERS, OPEN, ScalableBloom, State};
use crate::codec::{FIELDS, Hashing, Input, Kind, Out, OwnHeader, SNAPSHOT_HEADER, admit, from_slice, given, murmur3};
use crate::error::{BuildError, SnapshotError, SnapshotErrorKind};
use crate::filter::bloom::ConcurrentBloom;
use crate::hash::KeyHasher;
use crate::sync::AtomicU64;
use alloc::format;
use alloc::vec::Vec;

/// Snapshots, in the [format](crate::codec#the-format) of this crate.
impl<S: KeyHasher> ScalableBloom<S> {
    /// The filter as bytes that [`from_bytes`](ScalableBloom::from_bytes) reads.
    ///
    /// Beside inserts, they hold at least every key whose insertion happened before. Aborts if the
    /// allocation fails; [`write_to`](Self::write_to) needs 2 MiB.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).build()?;
    /// (&filter).extend(0..1000u32);
    /// let bytes = filter.to_bytes();
    /// let (same, _) = ScalableBloom::from_bytes(&bytes)?;
    /// assert!(same == filter && same.layers().len() == 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let Ok(()) = self.encode(&mut bytes);
        bytes
    }

    /// Writes the filter as bytes that [`read_from`](ScalableBloom::read_from) reads, up to 2 MiB
    /// at a time, so that the writer need not be buffered. It does not flush.
    ///
    /// Beside inserts, it writes at least every key whose insertion happened before.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().build()?;
    /// filter.insert("a")?;
    /// let mut stream = Vec::new();
    /// filter.write_to(&mut stream)?;
    /// assert_eq!(stream, filter.to_bytes());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
        let mut out = crate::codec::Writer::new(writer);
        self.encode(&mut out)?;
        out.finish()
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        let layers = self.layers_now();
        let parts: usize = layers.iter().map(|layer| layer.filter.snapshot_bytes()).sum();
        let mut header = OwnHeader {
            kind: Kind::Scalable,
            hashing: Hashing::of(&self.hasher),
            len: (SNAPSHOT_HEADER + parts) as u64,
            fields: [0; FIELDS],
        };
        let asked = &self.asked;
        let growth = match asked.growth {
            Growth::ByKeys => 0,
            Growth::AtHalfFull => 1,
        };
        let words = asked.words.unwrap_or(0) as u8;
        // That memory was refused, or less was allowed where this filter was read, may be otherwise
        // where the snapshot is read.
        let full = u8::from(layers.phase == FULL && self.max_bytes == asked.max_bytes);
        let max_layers = asked.max_layers.map_or(0, |most| most.min(MAX_LAYERS) as u8);
        let max_bytes = match asked.max_bytes {
            usize::MAX => u64::MAX,
            bytes => bytes as u64,
        };
        header.put(32, u64::from_le_bytes([growth, words, full, max_layers, 0, 0, 0, 0]));
        header.put(40, asked.capacity as u64);
        header.put(48, asked.expansion as u64);
        header.put(56, asked.rate.to_bits());
        header.put(64, asked.ratio.to_bits());
        header.put(72, max_bytes);
        header.put(80, layers.len() as u64);
        out.put(&header.to_bytes())?;
        layers.iter().try_for_each(|layer| layer.filter.encode(out))
    }
}

impl<S: KeyHasher + Clone> ScalableBloom<S> {
    /// [`from_bytes`](ScalableBloom::from_bytes) of a filter with any hasher: `hasher` must be the
    /// one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`from_bytes`](ScalableBloom::from_bytes), and if the filter's hasher has another
    /// algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{ScalableBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = ScalableBloom::builder().hasher(hasher).build()?;
    /// filter.insert("a")?;
    /// let (same, _) = ScalableBloom::from_bytes_with(&filter.to_bytes(), hasher)?;
    /// assert!(same.contains("a") && !same.contains("b"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &[u8], hasher: S) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, given(hasher))).map_err(SnapshotError)
    }

    /// [`read_from`](ScalableBloom::read_from) of a filter with any hasher: `hasher` must be the
    /// one that it was filled by.
    ///
    /// # Errors
    ///
    /// As of [`read_from`](ScalableBloom::read_from), and if the filter's hasher has another
    /// algorithm, seed or key.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::{ScalableBloom, SipHash13};
    ///
    /// let hasher = SipHash13::random();
    /// let filter = ScalableBloom::builder().hasher(hasher).build()?;
    /// filter.insert("a")?;
    /// let stream = filter.to_bytes();
    /// assert!(ScalableBloom::read_from_with(&stream[..], 1 << 20, hasher)?.contains("a"));
    /// assert!(ScalableBloom::read_from(&stream[..], 1 << 20).unwrap_err().is_incompatible());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from_with(reader: impl std::io::Read, max_bytes: usize, hasher: S) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, given(hasher))).map_err(SnapshotError)
    }

    /// Reads a filter whose bits take `limit` bytes at most, when it is read and when it grows
    /// afterwards.
    pub(crate) fn decode<I: Input>(
        input: &mut I,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let header = OwnHeader::parse(input.take(SNAPSHOT_HEADER, &mut Vec::new())?, Kind::Scalable)?;
        let hasher = hasher(header.hashing)?;
        let [growth, words, full, max_layers, ..] = header.get(32).to_le_bytes();
        header.zeros(36..40)?;
        header.zeros(88..120)?;
        let asked = Asked {
            capacity: header.number("the initial capacity", 40, 1..=u64::MAX)?,
            expansion: header.number("the expansion", 48, 1..=MAX_EXPANSION as u64)?,
            rate: f64::from_bits(header.get(56)),
            ratio: f64::from_bits(header.get(64)),
            max_layers: match header.byte("the limit of layers", max_layers, 0..=MAX_LAYERS as u8)? {
                0 => None,
                most => Some(most.into()),
            },
            max_bytes: usize::try_from(header.get(72)).unwrap_or(usize::MAX),
            growth: match header.byte("the way to grow", growth, 0..=1)? {
                0 => Growth::ByKeys,
                _ => Growth::AtHalfFull,
            },
            words: match words {
                0 => None,
                1 | 2 | 4 | 8 => Some(words.into()),
                _ => {
                    let problem = format!("{words} words per key is not 0, 1, 2, 4 or 8");
                    return Err(SnapshotErrorKind::Invalid(problem));
                }
            },
        };
        let full = header.byte("whether it is full", full, 0..=1)? == 1;
        let count = header.number("the number of layers", 80, 1..=MAX_LAYERS as u64)?;

        let steps = asked
            .steps()
            .map_err(|kind| SnapshotErrorKind::Plan(BuildError(kind)))?;
        header.number("the number of layers", 80, 1..=asked.layers(&steps) as u64)?;

        let bytes = header.body_bytes(count)?;
        admit(input, header.len as usize, bytes, limit)?;
        let mut left = bytes;
        let mut layers = Vec::new();
        for _ in 0..count {
            let layer = ConcurrentBloom::decode(input, left as usize, given(hasher.clone()))?;
            left -= layer.memory_bytes() as u64;
            layers.push(layer);
        }
        if left > 0 {
            return Err(SnapshotErrorKind::Length {
                declared: header.len,
                needed: header.len - left,
            });
        }

        // The layers must be those that a builder plans. It takes half a millisecond for each, so
        // after the bytes have proved to be whole; those of layers to come are planned when they
        // are made, for whoever wrote the bytes says how many there are.
        let mut layouts = Vec::new();
        for (number, layer) in layers.iter().enumerate() {
            let (keys, layout) = (layer.expected_keys(), layer.layout());
            let planned = steps.layout(number).map_err(SnapshotErrorKind::Plan)?;
            let planned_keys = steps.capacity(number);
            if (keys, layout) != (planned_keys, planned) {
                return Err(SnapshotErrorKind::Invalid(format!(
                    "layer {number} is for {keys} keys ({layout}), where the header's plan has one for {planned_keys} keys ({planned})"
                )));
            }
            layouts.push(layout);
        }
        if bytes > asked.max_bytes as u64 {
            let (needed, limit) = (bytes, asked.max_bytes as u64);
            return Err(SnapshotErrorKind::OverLimit { needed, limit });
        }
        let state = State::new(count, if full { FULL } else { OPEN });
        let mut filter =
            Self::planned(asked, steps, &layouts, hasher, state).map_err(SnapshotErrorKind::OutOfMemory)?;
        for (number, layer) in layers.into_iter().enumerate() {
            let layer = steps.gauged(number, layer);
            filter.put(number, layer).map_err(SnapshotErrorKind::OutOfMemory)?;
        }
        // The limit of whoever reads is one for the layers to come.
        filter.max_bytes = limit.min(asked.max_bytes);
        header.byte(
            "whether it is full",
            full.into(),
            0..=u8::from(!full || filter.room(count).is_err()),
        )?;
        // Full by the limit of whoever reads, which the one who wrote did not know: else each start
        // would take some keys more.
        if filter.max_bytes < asked.max_bytes && !full {
            let Layer { filter: newest, gauge } = filter.layers_now().newest();
            if gauge.level(newest, 0) >= 1.0 && filter.room(count).is_err() {
                filter.state = AtomicU64::new(State::new(count, FULL).0);
            }
        }
        Ok(filter)
    }
}

impl ScalableBloom {
    /// The filter with which `bytes` begin, and the bytes after it. It grows on as the snapshot's
    /// filter did. A snapshot that others made may say that each layer is for 4096 times the keys
    /// of the one before: [`read_from`](Self::read_from) limits growth.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end before the filter does, are corrupt, are no snapshot of a
    /// `ScalableBloom`, or one by another version of the format or with another hasher than
    /// [`Murmur3`](crate::Murmur3) ([`from_bytes_with`](Self::from_bytes_with) reads those), or the
    /// allocation fails. Allocates nothing unless all of the filter is there.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(100).build()?;
    /// (&filter).extend(0..500u32);
    /// let mut bytes = filter.to_bytes();
    /// bytes.extend(b"more");
    /// let (same, rest) = ScalableBloom::from_bytes(&bytes)?;
    /// assert!(same == filter);
    /// assert_eq!(rest, b"more");
    /// (&same).extend(500..5000u32);
    /// assert!(same.layers().len() > filter.layers().len());
    ///
    /// let error = ScalableBloom::from_bytes(&bytes[..500]).unwrap_err();
    /// assert!(error.is_truncated());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<(Self, &[u8]), SnapshotError> {
        from_slice(bytes, |input| Self::decode(input, usize::MAX, murmur3)).map_err(SnapshotError)
    }

    /// Reads a filter that [`write_to`](Self::write_to) or [`to_bytes`](Self::to_bytes) wrote,
    /// whose bits take `max_bytes` bytes at most. What comes after it is left unread.
    ///
    /// The limit is one for growth too: [`max_bytes`](Self::max_bytes) shows it. It is not written
    /// into snapshots of the filter that is read, so that a later reader may allow more.
    ///
    /// The length that the stream declares is checked before memory is allocated, which then is for
    /// one layer after another, as they arrive.
    ///
    /// # Errors
    ///
    /// If the reader fails (its error is the [source](std::error::Error::source)), the filter takes
    /// more than `max_bytes`, and as of [`from_bytes`](Self::from_bytes).
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ScalableBloom;
    ///
    /// let filter = ScalableBloom::builder().initial_capacity(1000).build()?;
    /// filter.insert("a")?;
    /// let stream = filter.to_bytes();
    /// assert!(ScalableBloom::read_from(&stream[..], 1 << 20)? == filter);
    ///
    /// let error = ScalableBloom::read_from(&stream[..], 512).unwrap_err();
    /// assert!(error.to_string().ends_with("bytes, more than the limit of 512 bytes"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn read_from(reader: impl std::io::Read, max_bytes: usize) -> Result<Self, SnapshotError> {
        crate::codec::from_reader(reader, |input| Self::decode(input, max_bytes, murmur3)).map_err(SnapshotError)
    }
}
