//! The footer of a Parquet file, as far as it concerns the chunks of one column and their filters.

use super::thrift::{STRUCT, Thrift};
use crate::error::ReadError;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The nesting that a schema may have.
const DEPTH: usize = 64;

/// The type of a column, in the numbers of Parquet's Thrift definition; 0 where it says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnType {
    /// BOOLEAN is 0, FIXED_LEN_BYTE_ARRAY 7.
    pub physical: i64,
    /// The bytes of a FIXED_LEN_BYTE_ARRAY.
    pub length: i64,
    /// The member of the union `LogicalType`.
    pub logical: i64,
    /// The number of `ConvertedType`, and 1.
    pub converted: i64,
    /// The scale of a decimal.
    pub scale: i64,
    /// The precision of a decimal.
    pub precision: i64,
    /// The member of the union `TimeUnit`.
    pub unit: i64,
    /// The bits of an integer.
    pub bits: i64,
    /// Whether an integer has a sign.
    pub is_signed: bool,
}

/// A column chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Where its filter lies, if it has one.
    pub filter_offset: Option<i64>,
    /// The bytes of its filter, if the footer says it.
    pub filter_length: Option<i64>,
}

/// An element of a schema.
#[derive(Default)]
struct Element<'a> {
    name: &'a [u8],
    children: i64,
    column: ColumnType,
}

fn wrong(problem: impl Into<String>) -> ReadError {
    ReadError::invalid(problem)
}

/// The type of a column, named by its path with dots, and its chunk in each row group, by the bytes
/// of a footer.
///
/// # Errors
///
/// If the bytes are not a footer, the file has no such column, two columns have this path, or a
/// chunk is encrypted or in another file.
pub fn chunks(footer: &[u8], path: &str) -> Result<(ColumnType, Vec<Chunk>), ReadError> {
    let mut thrift = Thrift::new(footer, "the file's footer");
    let (mut field, mut found) = (0, None);
    while let Some(kind) = thrift.field(&mut field)? {
        match (field, kind) {
            (2, 9) => {
                found = Some(leaf(&mut thrift, path)?);
            }
            (4, 9) => {
                let (len, _) = thrift.list()?;
                let (leaf, column) =
                    found.ok_or_else(|| wrong("the file's footer has no schema before its row groups"))?;
                // (Not with the capacity of the list: each item was read.)
                let mut chunks = Vec::new();
                for _ in 0..len {
                    chunks.push(group(&mut thrift, leaf, column.physical)?);
                }
                return Ok((column, chunks));
            }
            _ => thrift.skip(kind, 0)?,
        }
    }
    Err(wrong("the file's footer has no row groups"))
}

fn element<'a>(thrift: &mut Thrift<'a>) -> Result<Element<'a>, ReadError> {
    let (mut element, mut field) = (Element::default(), 0);
    let column = &mut element.column;
    column.physical = -1;
    while let Some(kind) = thrift.field(&mut field)? {
        match (field, kind) {
            (1, 5) => column.physical = thrift.zigzag()?,
            (2, 5) => column.length = thrift.zigzag()?,
            (4, 8) => element.name = thrift.text()?,
            (5, 5) => element.children = thrift.zigzag()?,
            (6, 5) => column.converted = thrift.zigzag()?.saturating_add(1),
            (7, 5) => column.scale = thrift.zigzag()?,
            (8, 5) => column.precision = thrift.zigzag()?,
            (10, STRUCT) => logical(thrift, column)?,
            _ => thrift.skip(kind, 0)?,
        }
    }
    Ok(element)
}

/// Reads the union `LogicalType`.
fn logical(thrift: &mut Thrift<'_>, column: &mut ColumnType) -> Result<(), ReadError> {
    let mut member = 0;
    while let Some(kind) = thrift.field(&mut member)? {
        column.logical = member;
        if kind != STRUCT {
            thrift.skip(kind, 0)?;
            continue;
        }
        let mut field = 0;
        while let Some(kind) = thrift.field(&mut field)? {
            match (member, field, kind) {
                (5, 1, 5) => column.scale = thrift.zigzag()?,
                (5, 2, 5) => column.precision = thrift.zigzag()?,
                (7 | 8, 2, STRUCT) => column.unit = thrift.member(0)?.unwrap_or(0),
                (10, 1, 3) => column.bits = thrift.byte()?.into(),
                // The value of a truth value is its type.
                (10, 2, 1 | 2) => column.is_signed = kind == 1,
                _ => thrift.skip(kind, 0)?,
            }
        }
    }
    Ok(())
}

/// Reads a schema; returns the number of the leaf that has this path, and its type.
fn leaf(thrift: &mut Thrift<'_>, path: &str) -> Result<(usize, ColumnType), ReadError> {
    let (len, _) = thrift.list()?;
    let (mut found, mut leaves) = (None, 0);
    // The children that are left of each group on the way here, and the length of its path.
    let mut groups: Vec<(i64, usize)> = Vec::new();
    let mut here = Vec::new();
    for i in 0..len {
        let element = element(thrift)?;
        if i > 0 {
            while groups.last().is_some_and(|(left, _)| *left == 0) {
                groups.pop();
            }
            let Some((left, len)) = groups.last_mut() else {
                return Err(wrong("the file's schema has more columns than its groups say"));
            };
            *left -= 1;
            here.truncate(*len);
            if !here.is_empty() {
                here.push(b'.');
            }
            here.extend(element.name);
        }
        if element.children > 0 {
            groups.push((element.children, here.len()));
            if groups.len() > DEPTH {
                return Err(wrong(format!("the file's schema is more than {DEPTH} deep")));
            }
        } else if i > 0 {
            if here == path.as_bytes() && found.replace((leaves, element.column)).is_some() {
                return Err(wrong(format!("two columns of the file have the path {path:?}")));
            }
            leaves += 1;
        }
    }
    found.ok_or_else(|| {
        wrong(format!(
            "the file has no column {path:?}: of a list it is \"name.list.element\", of a struct \"name.field\""
        ))
    })
}

/// Reads a row group; returns the chunk of a leaf.
fn group(thrift: &mut Thrift<'_>, leaf: usize, physical: i64) -> Result<Chunk, ReadError> {
    let (mut field, mut found) = (0, None);
    while let Some(kind) = thrift.field(&mut field)? {
        if (field, kind) != (1, 9) {
            thrift.skip(kind, 0)?;
            continue;
        }
        let (len, _) = thrift.list()?;
        for i in 0..len {
            if i == leaf {
                found = Some(column_chunk(thrift, physical)?);
            } else {
                thrift.skip(STRUCT, 0)?;
            }
        }
    }
    found.ok_or_else(|| wrong("the file's row group has fewer columns than its schema"))
}

/// Reads `ColumnChunk`.
fn column_chunk(thrift: &mut Thrift<'_>, physical: i64) -> Result<Chunk, ReadError> {
    let (mut field, mut chunk) = (0, Chunk::default());
    while let Some(kind) = thrift.field(&mut field)? {
        match (field, kind) {
            (1, 8) => {
                let file = String::from_utf8_lossy(thrift.text()?).into_owned();
                return Err(wrong(format!("the column's chunk is in another file, {file:?}")));
            }
            (3, STRUCT) => metadata(thrift, physical, &mut chunk)?,
            (8 | 9, _) => return Err(wrong("the column is encrypted")),
            _ => thrift.skip(kind, 0)?,
        }
    }
    Ok(chunk)
}

/// Reads `ColumnMetaData`.
fn metadata(thrift: &mut Thrift<'_>, physical: i64, chunk: &mut Chunk) -> Result<(), ReadError> {
    let mut field = 0;
    while let Some(kind) = thrift.field(&mut field)? {
        match (field, kind) {
            (1, 5) => {
                let here = thrift.zigzag()?;
                if here != physical {
                    return Err(wrong(format!(
                        "the column has type {here} in its chunk and {physical} in the schema"
                    )));
                }
            }
            (14, 6) => chunk.filter_offset = Some(thrift.zigzag()?),
            (15, 5) => chunk.filter_length = Some(thrift.zigzag()?),
            _ => thrift.skip(kind, 0)?,
        }
    }
    Ok(())
}
