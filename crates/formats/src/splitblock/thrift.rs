//! Thrift's compact protocol, as far as a filter's header and a file's footer need it.

use crate::error::ReadError;
use alloc::format;

/// `len` bytes from `start` on, and the rest.
pub(super) fn split(bytes: &[u8], start: usize, len: usize) -> Result<(&[u8], &[u8]), ReadError> {
    let needed = start.saturating_add(len);
    if bytes.len() < needed {
        let problem = format!("the bytes end after {} of at least {needed}", bytes.len());
        return Err(ReadError::truncated(problem));
    }
    Ok(bytes[start..].split_at(len))
}

/// The type of a struct in Thrift's compact protocol.
pub(super) const STRUCT: u8 = 12;

/// The nesting that a struct may have. A filter's header has 2, a file's footer 7.
const DEPTH: usize = 16;

/// Reads Thrift's compact protocol.
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    pub(super) at: usize,
    /// The name of the bytes, for errors.
    name: &'static str,
}

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8], name: &'static str) -> Self {
        Self { bytes, at: 0, name }
    }

    pub(super) fn byte(&mut self) -> Result<u8, ReadError> {
        let (byte, _) = split(self.bytes, self.at, 1)?;
        self.at += 1;
        Ok(byte[0])
    }

    pub(super) fn varint(&mut self) -> Result<u64, ReadError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(ReadError::invalid(format!(
            "{} has a number of more than 64 bits",
            self.name
        )))
    }

    pub(super) fn zigzag(&mut self) -> Result<i64, ReadError> {
        let number = self.varint()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    /// The type of the next field of a struct, whose number becomes `field`; `None` at the end.
    pub(super) fn field(&mut self, field: &mut i64) -> Result<Option<u8>, ReadError> {
        let byte = self.byte()?;
        if byte == 0 {
            return Ok(None);
        }
        *field = match byte >> 4 {
            0 => self.zigzag()?,
            step => field.wrapping_add(step.into()),
        };
        Ok(Some(byte & 15))
    }

    /// Skips a struct; returns the number of its last field, which is the member of a union.
    pub(super) fn member(&mut self, depth: usize) -> Result<Option<i64>, ReadError> {
        let (mut field, mut member) = (0, None);
        while let Some(kind) = self.field(&mut field)? {
            member = Some(field);
            self.skip(kind, depth + 1)?;
        }
        Ok(member)
    }

    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> Result<(), ReadError> {
        match kind {
            // Booleans, whose value is the type.
            1 | 2 => {}
            3 => drop(self.byte()?),
            4..=6 => drop(self.varint()?),
            7 => self.skip_bytes(8)?,
            8 => drop(self.text()?),
            // Lists and sets. A truth value in one is a byte.
            9 | 10 if depth < DEPTH => {
                let (len, kind) = self.list()?;
                for _ in 0..len {
                    match kind {
                        1 | 2 => drop(self.byte()?),
                        _ => self.skip(kind, depth + 1)?,
                    }
                }
            }
            STRUCT if depth < DEPTH => drop(self.member(depth)?),
            _ => {
                return Err(ReadError::invalid(format!("{} has a field of type {kind}", self.name)));
            }
        }
        Ok(())
    }

    /// The bytes of a string.
    pub(super) fn text(&mut self) -> Result<&'a [u8], ReadError> {
        let len = self.varint()?;
        let start = self.at;
        self.skip_bytes(len)?;
        Ok(&self.bytes[start..self.at])
    }

    /// The length of a list, and the type of its items, each of which takes a byte or more.
    pub(super) fn list(&mut self) -> Result<(usize, u8), ReadError> {
        let byte = self.byte()?;
        let len = match byte >> 4 {
            15 => self.varint()?,
            len => len.into(),
        };
        let left = self.bytes.len() - self.at;
        match usize::try_from(len).ok().filter(|len| *len <= left) {
            Some(len) => Ok((len, byte & 15)),
            None => Err(ReadError::truncated(format!(
                "{} has a list of {len} items in the {left} bytes that are left",
                self.name
            ))),
        }
    }

    fn skip_bytes(&mut self, len: u64) -> Result<(), ReadError> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        split(self.bytes, self.at, len)?;
        self.at += len;
        Ok(())
    }
}
