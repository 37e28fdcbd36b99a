//! Cuts bytes into lines: where whole lines end, a byte-order mark before the first one, and a
//! limit of their length.

use super::source::{UTF16, is_utf16};
use anyhow::{Result, bail};
use std::ops::Range;

/// The byte-order mark of UTF-8.
pub const BOM: &[u8] = "\u{feff}".as_bytes();

/// Cuts the bytes of inputs into lines.
pub struct LineCutter {
    terminator: u8,
    max_record: usize,
    /// Whether a byte-order mark at the start of an input passes.
    keeps_mark: bool,
    /// The number of bytes at the beginning that were searched already. A long line comes in small
    /// pieces, so that each is searched once.
    searched: usize,
    /// The number of lines of the input that were cut off.
    count: usize,
    /// Whether an input was begun, and whether the lines of this one follow those of another.
    is_begun: bool,
    continues: bool,
    /// Whether nothing of the input was cut off.
    is_at_start: bool,
}

impl LineCutter {
    /// Lines of at most `max_record` bytes, their end included.
    pub fn new(terminator: u8, max_record: usize, keeps_mark: bool) -> Self {
        Self {
            terminator,
            max_record,
            keeps_mark,
            searched: 0,
            count: 0,
            is_begun: false,
            continues: false,
            is_at_start: true,
        }
    }

    /// Begins the next input. Unless it `is_apart`, its lines follow those of the input before.
    pub fn begin(&mut self, is_apart: bool) {
        self.continues = !is_apart && self.is_begun;
        self.is_begun = true;
        self.is_at_start = true;
        (self.searched, self.count) = (0, 0);
    }

    /// Finds the whole lines of `bytes`, and the length of the byte-order mark that they begin
    /// with. The rest is the beginning of the next call's bytes. Fails if a line is too long.
    pub fn cut(&mut self, bytes: &[u8], is_end: bool) -> Result<(Range<usize>, usize)> {
        self.check(bytes)?;
        let found = memchr::memrchr(self.terminator, &bytes[self.searched..]);
        let len = match found {
            _ if is_end => bytes.len(),
            Some(at) => self.searched + at + 1,
            None => 0,
        };
        self.searched = bytes.len() - len;
        let (dropped, mark) = self.pass(&bytes[..len]);
        Ok((dropped..len, mark))
    }

    /// Counts lines that are cut off. Returns the length of the byte-order mark that they begin
    /// with if it does not pass, and its length if it does.
    pub fn pass(&mut self, bytes: &[u8]) -> (usize, usize) {
        self.count += memchr::memchr_iter(self.terminator, bytes).count();
        let is_marked = self.is_at_start && bytes.starts_with(BOM);
        self.is_at_start &= bytes.is_empty();
        let mark = if is_marked { BOM.len() } else { 0 };
        // In the middle of an output it would be a part of a line.
        if self.continues || !self.keeps_mark {
            (mark, 0)
        } else {
            (0, mark)
        }
    }

    /// Whether the input has nothing but a byte-order mark; `bytes` are what is left of it.
    pub(crate) fn is_only_mark(&self, bytes: &[u8]) -> bool {
        self.is_at_start && bytes == BOM
    }

    /// Fails if the input begins like text in UTF-16; `bytes` are what is left of it. In UTF-16 a
    /// line ends with another byte after the newline. Lines that end with a zero byte may be
    /// anything.
    pub(crate) fn check_start(&self, bytes: &[u8]) -> Result<()> {
        if self.is_at_start && self.terminator == b'\n' && is_utf16(bytes) {
            bail!(UTF16);
        }
        Ok(())
    }

    /// Whether nothing of the input was cut off.
    pub fn is_at_start(&self) -> bool {
        self.is_at_start
    }

    /// The byte that ends a line.
    pub fn terminator(&self) -> u8 {
        self.terminator
    }

    /// The number of the next line of the input, counted from 1.
    pub fn next_number(&self) -> usize {
        self.count + 1
    }

    /// Fails if a line is too long.
    fn check(&self, bytes: &[u8]) -> Result<()> {
        let most = self.max_record;
        if bytes.len() <= most {
            return Ok(());
        }
        let ends = memchr::memchr_iter(self.terminator, bytes).map(|at| at + 1);
        let mut start = 0;
        for (number, end) in (self.next_number()..).zip(ends.chain([bytes.len()])) {
            if end - start > most {
                bail!("line {number} is longer than {most} bytes, the limit of --max-record");
            }
            start = end;
        }
        Ok(())
    }
}
