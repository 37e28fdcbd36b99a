//! Deltas: the bits that one filter has and another lacks, as a compact stream, and adding them to
//! a third.

use super::Hashing;
use super::header::{DELTA_HEADER, DeltaHeader};
use crate::bits;
use crate::error::{IncompatibleError, SnapshotError, SnapshotErrorKind};
use crate::filter::bloom::ConcurrentBloom;
use crate::hash::KeyHasher;
use crate::layout::LINE_WORDS;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

/// Stands where the first bit of a word would, before a word of bits.
const WHOLE: u8 = 64;
/// Added to the last of a word's bits.
const LAST: u8 = 128;
/// Up to so many bits of a word are written one by one, a byte each.
const SINGLY: u32 = 8;

/// Deltas, by which replicas follow a writer.
impl<S: KeyHasher> ConcurrentBloom<S> {
    /// The bits that this filter has and `baseline` lacks, as bytes for
    /// [`apply_deltas`](Self::apply_deltas): 64 bytes, and 8 to 10 for each fresh key of a filter
    /// for 1%.
    ///
    /// A writer keeps the baseline: a second filter, to which it applies each delta that has got to
    /// where it was to go. Replicas that apply all deltas, in any order, some of them several
    /// times, end up with the union. Both filters may be in use meanwhile; the delta has at least
    /// every key whose insertion here happened before, if not in the baseline. It reads both
    /// filters.
    ///
    /// # Errors
    ///
    /// If layout or hasher (its algorithm, seed or key) differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(100_000).build()?;
    /// let (sent, replica) = (filter.clone(), filter.clone());
    ///
    /// filter.insert("a");
    /// let delta = filter.delta_since(&sent)?;
    /// assert!(delta.len() <= 64 + 10);
    /// assert!(replica.apply_deltas(&delta)?);
    /// sent.apply_deltas(&delta)?;
    /// assert!(replica.contains("a"));
    ///
    /// // Only what came since.
    /// filter.insert("b");
    /// let next = filter.delta_since(&sent)?;
    /// assert!(replica.apply_deltas(&next)? && replica == filter);
    /// assert!(!replica.apply_deltas(&delta)?); // it has been there
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delta_since(&self, baseline: &Self) -> Result<Vec<u8>, IncompatibleError> {
        self.delta_of_blocks(baseline, 0..self.blocks())
    }

    /// [`delta_since`](Self::delta_since) of a range of blocks: for a large filter by parts.
    ///
    /// # Errors
    ///
    /// As of [`delta_since`](Self::delta_since).
    ///
    /// # Panics
    ///
    /// If the range is not among the blocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let filter = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let (sent, replica) = (filter.clone(), filter.clone());
    /// filter.insert_batch(&["a", "b", "c"]);
    /// for first in (0..filter.blocks()).step_by(10) {
    ///     let part = first..filter.blocks().min(first + 10);
    ///     replica.apply_deltas(&filter.delta_of_blocks(&sent, part)?)?;
    /// }
    /// assert!(replica == filter);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn delta_of_blocks(&self, baseline: &Self, blocks: Range<usize>) -> Result<Vec<u8>, IncompatibleError> {
        self.check_compatible(baseline)?;
        let mut delta = alloc::vec![0; DELTA_HEADER];
        let mut lines = 0;
        let mut skipped = blocks.start as u64;
        let (ours, theirs) = (
            self.bits().shared().range(blocks.clone()),
            baseline.bits().shared().range(blocks),
        );
        for (line, base) in ours.words().zip(theirs.words()) {
            let new: [u64; LINE_WORDS] = core::array::from_fn(|i| line[i] & !base[i]);
            if new == [0; LINE_WORDS] {
                skipped += 1;
            } else {
                put_line(&mut delta, skipped, new);
                lines += 1;
                skipped = 0;
            }
        }
        // The thread that applies the delta may rely on what the inserters had done.
        bits::acquire();
        let header = DeltaHeader {
            hashing: Hashing::of(self.hasher()),
            layout: self.layout(),
            lines,
            len: delta.len() as u64,
        };
        let header = header.to_bytes(&delta[DELTA_HEADER..]);
        delta[..DELTA_HEADER].copy_from_slice(&header);
        Ok(delta)
    }

    /// Adds the contents of the deltas, one after another, to this filter; returns whether that
    /// changed it. The filter may be in use meanwhile.
    ///
    /// # Errors
    ///
    /// Fails if the bytes end within a delta, are corrupt, are no deltas, or their filter's layout
    /// or hasher (its algorithm, seed or key) differs. Then the filter has all deltas before the
    /// faulty one, and nothing of the faulty one.
    ///
    /// # Memory ordering
    ///
    /// As [`insert`](Self::insert): a thread that finds a key sees what the thread that applied the
    /// delta had done before.
    ///
    /// # Examples
    ///
    /// ```
    /// use lanebloom::ConcurrentBloom;
    ///
    /// let empty = ConcurrentBloom::builder().expected_keys(1000).build()?;
    /// let delta = |key| {
    ///     let filter = empty.clone();
    ///     filter.insert(key);
    ///     filter.delta_since(&empty)
    /// };
    /// let replica = empty.clone();
    /// assert!(replica.apply_deltas(&[delta("a")?, delta("b")?].concat())?);
    /// assert!(replica.contains("a") && replica.contains("b") && !replica.contains("c"));
    ///
    /// let other = ConcurrentBloom::builder().expected_keys(1000).seed(1).build()?;
    /// let error = other.apply_deltas(&delta("a")?).unwrap_err();
    /// assert_eq!(error.to_string(), "the hasher differs: Murmur3 with seed 0 there, Murmur3 with seed 1 here");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn apply_deltas(&self, mut deltas: &[u8]) -> Result<bool, SnapshotError> {
        let mut changed = false;
        while !deltas.is_empty() {
            let (header, body, rest) = DeltaHeader::parse(deltas).map_err(SnapshotError)?;
            self.check_delta(&header, body).map_err(SnapshotError)?;
            for (word, bits) in Changes::new(body) {
                changed |= self.bits().set_word(word, bits);
            }
            deltas = rest;
        }
        bits::acquire_if(!changed);
        Ok(changed)
    }

    /// An error if it is not a delta of such a filter.
    fn check_delta(&self, header: &DeltaHeader, body: &[u8]) -> Result<(), SnapshotErrorKind> {
        if header.layout != self.layout() {
            return Err(SnapshotErrorKind::differs("layout", header.layout, self.layout()));
        }
        header.hashing.check(Hashing::of(self.hasher()))?;
        let mut changes = Changes::new(body);
        while changes.step(self.blocks() as u64)?.is_some() {}
        if changes.lines == header.lines {
            Ok(())
        } else {
            Err(changes.problem("the number of lines is not the one that its header has"))
        }
    }
}

fn put_line(delta: &mut Vec<u8>, mut skipped: u64, words: [u64; LINE_WORDS]) {
    while skipped >= 128 {
        delta.push(skipped as u8 | 128);
        skipped >>= 7;
    }
    delta.push(skipped as u8);
    let mask = (0..LINE_WORDS).map(|i| u8::from(words[i] != 0) << i).sum();
    delta.push(mask);
    for mut word in words {
        if word.count_ones() > SINGLY {
            delta.push(WHOLE);
            delta.extend_from_slice(&word.to_le_bytes());
            continue;
        }
        while word != 0 {
            let bit = word.trailing_zeros() as u8;
            word &= word - 1;
            delta.push(if word == 0 { bit | LAST } else { bit });
        }
    }
}

/// The bits of a delta's body, word for word. As an iterator, of one that has been checked.
struct Changes<'a> {
    body: &'a [u8],
    at: usize,
    lines: u64,
    /// The block after the one that the last line was of.
    next: u64,
    /// The block of the line that is being read, and which of its words are still to come.
    block: u64,
    words: u8,
}

impl<'a> Changes<'a> {
    fn new(body: &'a [u8]) -> Self {
        Self {
            body,
            at: 0,
            lines: 0,
            next: 0,
            block: 0,
            words: 0,
        }
    }

    fn problem(&self, problem: &'static str) -> SnapshotErrorKind {
        let offset = DELTA_HEADER + self.at;
        SnapshotErrorKind::Invalid(format!("the delta is none at byte {offset}: {problem}"))
    }

    fn byte(&mut self) -> Result<u8, SnapshotErrorKind> {
        match self.body.get(self.at) {
            Some(&byte) => {
                self.at += 1;
                Ok(byte)
            }
            None => Err(self.problem("it ends within a line")),
        }
    }

    /// The next word that has bits, by its number in the whole filter, of `blocks` blocks.
    fn step(&mut self, blocks: u64) -> Result<Option<(usize, u64)>, SnapshotErrorKind> {
        if self.words == 0 {
            if self.at == self.body.len() {
                return Ok(None);
            }
            self.block = match self.skipped()?.checked_add(self.next) {
                Some(block) if block < blocks => block,
                _ => return Err(self.problem("the filter has no such block")),
            };
            self.words = self.byte()?;
            if self.words == 0 {
                return Err(self.problem("a line without words"));
            }
            self.next = self.block + 1;
            self.lines += 1;
        }
        let word = self.block as usize * LINE_WORDS + self.words.trailing_zeros() as usize;
        self.words &= self.words - 1;
        Ok(Some((word, self.bits()?)))
    }

    fn skipped(&mut self) -> Result<u64, SnapshotErrorKind> {
        let mut skipped = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            skipped |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return if byte == 0 && shift > 0 {
                    Err(self.problem("a number with more bytes than it takes"))
                } else {
                    Ok(skipped)
                };
            }
        }
        Err(self.problem("a number beyond 2^63"))
    }

    fn bits(&mut self) -> Result<u64, SnapshotErrorKind> {
        let mut byte = self.byte()?;
        if byte == WHOLE {
            let Some(word) = self.body[self.at..].first_chunk() else {
                return Err(self.problem("it ends within a word"));
            };
            self.at += word.len();
            let bits = u64::from_le_bytes(*word);
            return if bits.count_ones() > SINGLY {
                Ok(bits)
            } else {
                Err(self.problem("a word of so few bits that they are written one by one"))
            };
        }
        let mut bits = 0u64;
        loop {
            let bit = byte & !LAST;
            // Above all before it, which are in `bits`.
            if bit >= 64 || bits >> bit != 0 {
                return Err(self.problem("a bit that is not after the one before it and below 64"));
            }
            bits |= 1 << bit;
            if byte & LAST != 0 {
                break;
            }
            byte = self.byte()?;
        }
        if bits.count_ones() > SINGLY {
            return Err(self.problem("so many bits of a word that it is written whole"));
        }
        Ok(bits)
    }
}

impl Iterator for Changes<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        self.step(u64::MAX).ok().flatten()
    }
}
