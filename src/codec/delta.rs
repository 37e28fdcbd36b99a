//! Encodes lines of bits as the body of a delta, and decodes it. The deltas of `ConcurrentBloom`
//! call it.

use super::{DELTA_HEADER, Decoded};
use crate::error::SnapshotErrorKind;
use crate::geometry::layout::LINE_WORDS;
use alloc::format;
use alloc::vec::Vec;

/// In place of a word's first bit: the bits follow as a whole word.
const WHOLE: u8 = 64;
/// Added to the last bit of a word.
const LAST: u8 = 128;
/// A word with at most this number of bits is written bit by bit, a byte each.
const SINGLY: u32 = 8;

/// Appends a line to the body of a delta. `skipped` unchanged blocks lie between it and the line
/// before.
pub(crate) fn put_line(delta: &mut Vec<u8>, mut skipped: u64, words: [u64; LINE_WORDS]) {
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

/// The bits of a delta's body, word by word. The iterator requires a checked body.
#[derive(Default)]
pub(crate) struct Changes<'a> {
    body: &'a [u8],
    at: usize,
    pub(crate) lines: u64,
    /// The block after the last line's block.
    next: u64,
    /// The block of the current line, and a bit for each of its words that is not returned yet.
    block: u64,
    words: u8,
}

impl<'a> Changes<'a> {
    pub(crate) fn new(body: &'a [u8]) -> Self {
        Self {
            body,
            ..Self::default()
        }
    }

    pub(crate) fn problem(&self, problem: &'static str) -> SnapshotErrorKind {
        let offset = DELTA_HEADER + self.at;
        SnapshotErrorKind::Invalid(format!("the delta is invalid at byte {offset}: {problem}"))
    }

    fn byte(&mut self) -> Decoded<u8> {
        let Some(&byte) = self.body.get(self.at) else {
            return Err(self.problem("it ends within a line"));
        };
        self.at += 1;
        Ok(byte)
    }

    /// The next word that has bits, with its index in the whole filter, which has `blocks` blocks.
    pub(crate) fn step(&mut self, blocks: u64) -> Decoded<Option<(usize, u64)>> {
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
                return Err(self.problem("a line has no words"));
            }
            self.next = self.block + 1;
            self.lines += 1;
        }
        let word = self.block as usize * LINE_WORDS + self.words.trailing_zeros() as usize;
        self.words &= self.words - 1;
        Ok(Some((word, self.bits()?)))
    }

    fn skipped(&mut self) -> Decoded<u64> {
        let mut skipped = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            skipped |= u64::from(byte & 127) << shift;
            match byte {
                0 if shift > 0 => return Err(self.problem("a number is longer than its shortest form")),
                0..128 => return Ok(skipped),
                _ => {}
            }
        }
        Err(self.problem("a number beyond 2^63"))
    }

    fn bits(&mut self) -> Decoded<u64> {
        let mut byte = self.byte()?;
        if byte == WHOLE {
            let Some(word) = self.body[self.at..].first_chunk() else {
                return Err(self.problem("it ends within a word"));
            };
            self.at += word.len();
            let bits = u64::from_le_bytes(*word);
            if bits.count_ones() <= SINGLY {
                return Err(self.problem("a word of at most 8 bits is written whole"));
            }
            return Ok(bits);
        }
        let mut bits = 0u64;
        loop {
            let bit = byte & !LAST;
            // Bits ascend; `bits` has those before.
            if bit >= 64 || bits >> bit != 0 {
                return Err(self.problem("a bit is not above the one before it, or not below 64"));
            }
            bits |= 1 << bit;
            if byte & LAST != 0 {
                break;
            }
            byte = self.byte()?;
        }
        if bits.count_ones() > SINGLY {
            return Err(self.problem("a word of more than 8 bits is written bit by bit"));
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
