//! Arrays in memory as columns of keys: the layouts of numpy and Arrow, without their libraries.
//! `numpy.rs` and `arrow.rs` make columns, `task.rs` asks for their hashes.

use crate::bytes::{
    BOOLS, Encoding, NONE, Written, float, half, negate, time_bytes, write_decimal, write_float, write_row,
};
use crate::engine::{Keys, NOT_SPARKS};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::convert::Infallible;
use std::slice;

/// Keys that are hashed at a time.
const TILE: usize = 256;

/// Values, as they lie in memory.
pub(crate) enum Values<'a> {
    /// Integers of 64 bits, signed or not: the same key either way.
    Words(&'a [u64]),
    I8(&'a [i8]),
    U8(&'a [u8]),
    I16(&'a [i16]),
    U16(&'a [u16]),
    I32(&'a [i32]),
    U32(&'a [u32]),
    /// Halves, as their bits.
    F16(&'a [u16]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    /// A byte for each truth value.
    Bools(&'a [u8]),
    /// A bit for each truth value, from bit `.1` on.
    Bits(&'a [u8], usize),
    /// Decimals in two's complement, each of `.1` bytes, and the number of digits after the point.
    Decimals(&'a [u8], usize, i64),
    /// Bytes of one length.
    Fixed(&'a [u8], usize),
    /// UUIDs, each of 16 bytes.
    Uuids(&'a [u8]),
    /// Bytes of one length, filled up with zeros that do not count.
    Padded(&'a [u8], usize),
    /// Code points of one length, filled up with zeros that do not count.
    Utf32(&'a [u32], usize),
    /// Offsets, one more than there are values, and the bytes.
    Bytes32(&'a [i32], &'a [u8]),
    Bytes64(&'a [i64], &'a [u8]),
    /// Arrow's views: a length, then the bytes, or their first four and where they lie.
    Views(&'a [[u8; 16]], Vec<&'a [u8]>),
    /// Times since 1970. The most negative one is numpy's NaT if `.2`.
    Times(&'a [i64], Unit, bool),
    /// Days since 1970.
    Days(&'a [i32]),
    /// Indices, and the values that they choose from.
    Dictionary(Box<Column<'a>>, Box<Column<'a>>),
    /// Several columns: a row is a tuple.
    Rows(Vec<Column<'a>>),
    /// Nulls only.
    Nulls,
}

/// The unit of times.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    /// Units in a second, 1 if the unit is longer.
    pub(crate) per_second: i64,
    /// Seconds in a unit, 1 if the unit is shorter.
    pub(crate) seconds: i64,
}

/// A column, and whatever keeps its memory.
pub(crate) struct Batch {
    /// Ends before `owner`: the fields are private.
    column: Column<'static>,
    #[expect(dead_code, reason = "dropped after the column")]
    owner: Box<dyn Send + Sync>,
}

impl Batch {
    /// The column lies in memory that `owner` keeps.
    pub(crate) fn new(column: Column<'static>, owner: impl Send + Sync + 'static) -> Self {
        Self {
            column,
            owner: Box::new(owner),
        }
    }

    /// The column.
    pub(crate) fn column(&self) -> &Column<'_> {
        &self.column
    }
}

/// Values, and which of them are null.
pub(crate) struct Column<'a> {
    pub(crate) values: Values<'a>,
    pub(crate) len: usize,
    /// A bit for each value, from bit `.1` on: 0 if it is null. A struct and its field have two.
    pub(crate) valid: Vec<(&'a [u8], usize)>,
    /// Other systems store values of this type in another way, or not at all: what to do.
    pub(crate) stored_otherwise: Option<&'static str>,
}

fn bit(bits: &[u8], i: usize) -> bool {
    bits[i / 8] >> (i % 8) & 1 != 0
}

/// Writes the decimal of these bytes in two's complement. (Within `Column::write` it would cost
/// every row of other columns some time.)
#[inline(never)]
fn decimal(bytes: &[u8], scale: i64, out: &mut Vec<u8>) -> Written {
    let mut value = [0; 32];
    let value = &mut value[..bytes.len()];
    value.copy_from_slice(bytes);
    if cfg!(target_endian = "big") {
        value.reverse();
    }
    let is_negative = value.last().is_some_and(|byte| byte >> 7 == 1);
    if is_negative {
        negate(value);
    }
    let words = value.chunks(8).map(|part| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    });
    write_decimal(is_negative, words.collect(), scale, out)
}

impl<'a> Column<'a> {
    /// A column without nulls.
    pub(crate) fn new(values: Values<'a>, len: usize) -> Self {
        Self {
            values,
            len,
            valid: Vec::new(),
            stored_otherwise: None,
        }
    }

    /// Whether value `i` is null. (NaN is a value here: other systems store it.)
    pub(crate) fn is_null(&self, i: usize) -> bool {
        self.valid.iter().any(|&(bits, first)| !bit(bits, first + i))
            || match &self.values {
                Values::Nulls => true,
                Values::Times(values, _, true) => values[i] == i64::MIN,
                Values::Dictionary(indices, values) => {
                    let index = indices.index(i);
                    index < values.len && values.is_null(index)
                }
                _ => false,
            }
    }

    /// Whether a value may be null.
    pub(crate) fn may_have_nulls(&self) -> bool {
        !self.valid.is_empty()
            || match &self.values {
                Values::Nulls | Values::Times(_, _, true) => true,
                Values::Dictionary(_, values) => values.may_have_nulls(),
                _ => false,
            }
    }

    /// Whether the values are integers, or other numbers that are mostly integers to a filter.
    pub(crate) fn is_words(&self, encoding: Encoding) -> bool {
        match &self.values {
            Values::F16(_) | Values::F32(_) | Values::F64(_) => encoding == Encoding::Python,
            Values::Dictionary(_, values) => values.is_words(encoding),
            _ => self.is_integers(),
        }
    }

    /// Whether the values are integers.
    pub(crate) fn is_integers(&self) -> bool {
        match &self.values {
            Values::Words(_)
            | Values::I8(_)
            | Values::U8(_)
            | Values::I16(_)
            | Values::U16(_)
            | Values::I32(_)
            | Values::U32(_)
            | Values::Bools(_)
            | Values::Bits(..) => true,
            Values::Dictionary(_, values) => values.is_integers() && values.valid.is_empty(),
            _ => false,
        }
    }

    /// Value `i` as an integer, if it is one to a filter.
    pub(crate) fn word(&self, i: usize, encoding: Encoding) -> Option<u64> {
        if self.is_null(i) || !self.is_words(encoding) {
            return None;
        }
        if let Values::Dictionary(indices, values) = &self.values {
            let index = indices.index(i);
            return (index < values.len).then(|| values.word(index, encoding)).flatten();
        }
        let mut word = [0];
        self.words(i, &mut word).then_some(word[0])
    }

    /// Value `i` as an index. What no valid index can be becomes a number that is out of bounds.
    fn index(&self, i: usize) -> usize {
        let mut word = [0];
        self.words(i, &mut word);
        usize::try_from(word[0]).unwrap_or(usize::MAX)
    }

    /// Writes the values from `start` on as integers. Returns whether all are integers: a float may
    /// be none.
    pub(crate) fn words(&self, start: usize, out: &mut [u64]) -> bool {
        let (len, mut all) = (out.len(), true);
        let mut float = |value| {
            float(value).unwrap_or_else(|| {
                all = false;
                0
            })
        };
        macro_rules! each {
            ($values:expr, $word:expr) => {
                for (out, &value) in out.iter_mut().zip(&$values[start..][..len]) {
                    *out = $word(value);
                }
            };
        }
        match &self.values {
            Values::Words(values) => out.copy_from_slice(&values[start..][..len]),
            Values::I8(values) => each!(values, |value| i64::from(value).cast_unsigned()),
            Values::U8(values) => each!(values, u64::from),
            Values::I16(values) => each!(values, |value| i64::from(value).cast_unsigned()),
            Values::U16(values) => each!(values, u64::from),
            Values::I32(values) => each!(values, |value| i64::from(value).cast_unsigned()),
            Values::U32(values) => each!(values, u64::from),
            Values::F16(values) => each!(values, |value| float(half(value))),
            Values::F32(values) => each!(values, |value| float(f64::from(value))),
            Values::F64(values) => each!(values, &mut float),
            Values::Bools(values) => each!(values, |value| u64::from(value != 0)),
            Values::Bits(bits, first) => {
                for (i, out) in out.iter_mut().enumerate() {
                    *out = bit(bits, first + start + i).into();
                }
            }
            _ => unreachable!("not words"),
        }
        all
    }

    /// Value `i` where it lies, if its bytes do. A null has none, and neither has a value whose
    /// place is outside the array's memory.
    fn slice(&self, i: usize) -> &'a [u8] {
        fn part(bytes: &[u8], start: Option<usize>, end: Option<usize>) -> &[u8] {
            start
                .zip(end)
                .and_then(|(start, end)| bytes.get(start..end))
                .unwrap_or(&[])
        }
        if self.is_null(i) {
            return &[];
        }
        match &self.values {
            Values::Fixed(bytes, width) => &bytes[i * width..][..*width],
            Values::Uuids(bytes) => &bytes[i * 16..][..16],
            Values::Padded(bytes, width) => {
                let value = &bytes[i * width..][..*width];
                &value[..value.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)]
            }
            Values::Bytes32(offsets, bytes) => part(bytes, offsets[i].try_into().ok(), offsets[i + 1].try_into().ok()),
            Values::Bytes64(offsets, bytes) => part(bytes, offsets[i].try_into().ok(), offsets[i + 1].try_into().ok()),
            Values::Views(views, buffers) => {
                let view = &views[i];
                let field = |i: usize| u32::from_ne_bytes(view.as_chunks().0[i]) as usize;
                let len = field(0);
                if len <= 12 {
                    return &view[4..][..len];
                }
                let buffer = buffers.get(field(2)).copied().unwrap_or(&[]);
                part(buffer, Some(field(3)), field(3).checked_add(len))
            }
            _ => &[],
        }
    }

    fn has_slices(&self) -> bool {
        matches!(
            self.values,
            Values::Fixed(..)
                | Values::Uuids(_)
                | Values::Padded(..)
                | Values::Bytes32(..)
                | Values::Bytes64(..)
                | Values::Views(..)
        )
    }

    /// Appends the bytes of value `i`, unless it is a word.
    pub(crate) fn write(&self, i: usize, encoding: Encoding, out: &mut Vec<u8>) -> Written {
        if self.is_null(i) {
            out.extend_from_slice(NONE);
            return Written::Null;
        }
        match &self.values {
            Values::F32(values) if encoding != Encoding::Python => {
                out.extend_from_slice(&values[i].to_bits().to_le_bytes())
            }
            Values::F64(values) if encoding != Encoding::Python => {
                out.extend_from_slice(&values[i].to_bits().to_le_bytes())
            }
            Values::F16(values) => return write_float(half(values[i]), out),
            Values::F32(values) => return write_float(values[i].into(), out),
            Values::F64(values) => return write_float(values[i], out),
            Values::Times(values, ..) if encoding != Encoding::Python => {
                out.extend_from_slice(&values[i].to_le_bytes())
            }
            Values::Days(values) if encoding != Encoding::Python => out.extend_from_slice(&values[i].to_le_bytes()),
            Values::Times(values, unit, _) => {
                // A time outside of 64 bits of seconds wraps around, as numpy's do.
                let (seconds, rest) = (
                    values[i].div_euclid(unit.per_second),
                    values[i].rem_euclid(unit.per_second),
                );
                let nanoseconds = rest * (1_000_000_000 / unit.per_second);
                out.extend_from_slice(&time_bytes(seconds.wrapping_mul(unit.seconds), nanoseconds as u32));
            }
            Values::Days(values) => out.extend_from_slice(&time_bytes(i64::from(values[i]) * 86_400, 0)),
            Values::Utf32(values, width) => {
                let value = &values[i * width..][..*width];
                let len = value.iter().rposition(|&point| point != 0).map_or(0, |last| last + 1);
                for &point in &value[..len] {
                    // There is none but by a thread that writes to the array meanwhile.
                    let point = char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER);
                    out.extend_from_slice(point.encode_utf8(&mut [0; 4]).as_bytes());
                }
                return Written::Varying;
            }
            Values::Dictionary(indices, values) => {
                let index = indices.index(i);
                if index < values.len {
                    return values.write(index, encoding, out);
                }
            }
            Values::Rows(columns) => {
                let Ok(written) =
                    write_row::<Infallible>(columns.len(), out, |c, out| Ok(columns[c].write(i, encoding, out)));
                return written;
            }
            Values::Decimals(bytes, width, scale) => return decimal(&bytes[i * width..][..*width], *scale, out),
            _ if self.has_slices() => {
                out.extend_from_slice(self.slice(i));
                if !matches!(self.values, Values::Uuids(_)) {
                    return Written::Varying;
                }
            }
            _ => {
                let mut word = [0];
                self.words(i, &mut word);
                return Written::Word(word[0]);
            }
        }
        Written::Fixed
    }

    /// Fails for an index outside its dictionary, and for values that another system stores
    /// otherwise than this filter would hash them.
    pub(crate) fn check(&self, encoding: Encoding) -> PyResult<()> {
        self.check_in(encoding, &|_| true)
    }

    /// [`check`](Self::check) of the rows that count in a column around this one.
    fn check_in(&self, encoding: Encoding, counts: &dyn Fn(usize) -> bool) -> PyResult<()> {
        let counts = |i| counts(i) && !self.is_null(i);
        match (&self.values, self.stored_otherwise) {
            (Values::Dictionary(indices, values), _) => {
                let mut words = [0; TILE];
                for start in (0..self.len).step_by(TILE) {
                    let words = &mut words[..TILE.min(self.len - start)];
                    indices.words(start, words);
                    let is_outside = |&(i, &word): &(usize, &u64)| word >= values.len as u64 && counts(start + i);
                    if let Some((i, &word)) = words.iter().enumerate().find(is_outside) {
                        return Err(PyValueError::new_err(format!(
                            "value {} of an Arrow dictionary has the index {}, of {} values",
                            start + i,
                            word.cast_signed(),
                            values.len
                        )));
                    }
                }
                values.check(encoding)
            }
            (Values::Rows(columns), _) if encoding != Encoding::Spark => {
                columns.iter().try_for_each(|column| column.check_in(encoding, &counts))
            }
            _ if encoding == Encoding::Python => Ok(()),
            _ if encoding == Encoding::Spark => {
                let is_sparks =
                    self.is_integers() || self.has_slices() || matches!(self.values, Values::Utf32(..) | Values::Nulls);
                is_sparks.then_some(()).ok_or_else(|| PyTypeError::new_err(NOT_SPARKS))
            }
            (Values::Bools(_) | Values::Bits(..), _) => Err(PyTypeError::new_err(BOOLS)),
            (_, Some(advice)) => Err(PyTypeError::new_err(advice)),
            _ => Ok(()),
        }
    }
}

/// A column whose values a filter hashes.
pub(crate) struct Hashing<'h, K: Keys> {
    pub(crate) engine: &'h K,
    pub(crate) column: &'h Column<'h>,
    /// The hashes of a dictionary's values, unless it is longer than the column.
    dictionary: Vec<K::Hash>,
}

impl<'h, K: Keys> Hashing<'h, K> {
    /// Fails for values that the filter would hash otherwise than its system, and for an integer
    /// that it would cut off.
    pub(crate) fn checked(engine: &'h K, column: &'h Column<'h>) -> PyResult<Self> {
        column.check(K::ENCODING)?;
        // Narrower columns have nothing to cut off.
        if engine.is_narrow() && matches!(column.values, Values::Words(_) | Values::Dictionary(..)) {
            let mut words = (0..column.len).filter_map(|i| column.word(i, K::ENCODING));
            words.try_for_each(|word| engine.check(word))?;
        }
        Ok(Self::new(engine, column))
    }

    fn new(engine: &'h K, column: &'h Column<'h>) -> Self {
        let mut dictionary = Vec::new();
        if let Values::Dictionary(_, values) = &column.values
            && values.len <= column.len
        {
            dictionary.resize(values.len, K::Hash::default());
            Self::new(engine, values).hash(0, &mut dictionary);
        }
        Self {
            engine,
            column,
            dictionary,
        }
    }

    /// Writes the hashes of the values from `start` on.
    pub(crate) fn hash(&self, start: usize, out: &mut [K::Hash]) {
        let (engine, column) = (self.engine, self.column);
        match &column.values {
            Values::Words(values) => engine.hash_words(&values[start..][..out.len()], out),
            Values::Dictionary(indices, _) if !self.dictionary.is_empty() => {
                for (i, out) in out.iter_mut().enumerate() {
                    // A null's index may be anything.
                    let hash = self.dictionary.get(indices.index(start + i));
                    *out = hash.copied().unwrap_or_default();
                }
            }
            Values::Dictionary(..) => self.hash_written(start, out),
            _ if column.is_words(K::ENCODING) => {
                let mut words = [0; TILE];
                for (t, out) in out.chunks_mut(TILE).enumerate() {
                    let words = &mut words[..out.len()];
                    let start = start + t * TILE;
                    let all = column.words(start, words);
                    engine.hash_words(words, out);
                    for (i, out) in out.iter_mut().enumerate() {
                        if !all && column.word(start + i, K::ENCODING).is_none() {
                            self.hash_written(start + i, slice::from_mut(out));
                        }
                    }
                }
            }
            _ if column.has_slices() => {
                let mut slices: [&[u8]; TILE] = [&[]; TILE];
                for (t, out) in out.chunks_mut(TILE).enumerate() {
                    for (i, slice) in slices[..out.len()].iter_mut().enumerate() {
                        *slice = column.slice(start + t * TILE + i);
                    }
                    engine.hash_slices(&slices[..out.len()], out);
                }
            }
            _ => self.hash_written(start, out),
        }
        for &(bits, first) in &column.valid {
            let none = engine.hash_bytes(NONE);
            for (i, out) in out.iter_mut().enumerate() {
                if !bit(bits, first + start + i) {
                    *out = none;
                }
            }
        }
    }

    /// [`hash`](Self::hash) for values that lie nowhere as the bytes of a key.
    fn hash_written(&self, start: usize, out: &mut [K::Hash]) {
        let mut bytes = Vec::new();
        for (i, out) in out.iter_mut().enumerate() {
            bytes.clear();
            *out = match self.column.write(start + i, K::ENCODING, &mut bytes) {
                Written::Word(word) => self.engine.hash_word(word),
                _ => self.engine.hash_bytes(&bytes),
            };
        }
    }
}
