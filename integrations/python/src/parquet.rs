//! The filters of a column in a Parquet file, and the type of the column.
//!
//! The file says where things lie. Whatever it says, no more bytes are read than it has.

use crate::any::unreadable;
use crate::arguments::{of_file, open};
use lanebloom_formats::internal::{ColumnType, ParquetChunk, parquet_chunks};
use lanebloom_formats::splitblock::Header;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// At the end of a file: the length of the footer, and four letters.
const END: u64 = 8;
/// More than the header of a filter takes.
const HEADER: u64 = 1024;
/// The number of the physical type.
const BOOLEAN: i64 = 0;

/// A file, the type of one of its columns, and the column's chunk in each row group.
pub(crate) fn column(path: &Path, column: &str) -> PyResult<(File, ColumnType, Vec<ParquetChunk>)> {
    let mut file = open(path)?;
    let mut read = |start, len| read(&mut file, start, len).map_err(|error| of_file(path, error));
    let not_parquet = |what: &str| invalid(path, what);
    let (_, size) = read(0, 0)?;
    let Some(end) = size.checked_sub(END) else {
        return Err(not_parquet(&format!("{size} bytes are not a Parquet file")));
    };
    let (last, _) = read(end, END)?;
    let [a, b, c, d, ref magic @ ..] = last[..] else {
        return Err(not_parquet("the file became shorter"));
    };
    match magic {
        b"PAR1" => {}
        b"PARE" => return Err(not_parquet("the footer is encrypted")),
        _ => return Err(not_parquet("not a Parquet file: it does not end in PAR1")),
    }
    let footer = u32::from_le_bytes([a, b, c, d]).into();
    let Some(start) = end.checked_sub(footer) else {
        return Err(not_parquet(&format!("a footer of {footer} bytes in a file of {size}")));
    };
    let (footer, _) = read(start, footer)?;
    let (of, chunks) = parquet_chunks(&footer, column).map_err(unreadable)?;
    Ok((file, of, chunks))
}

/// The bytes of a chunk's filter, which begin with its header; [`None`] if it has no filter.
pub(crate) fn filter_bytes(path: &Path, file: &mut File, chunk: &ParquetChunk) -> PyResult<Option<Vec<u8>>> {
    let Some((start, len, _)) = place(path, file, chunk)? else {
        return Ok(None);
    };
    let (bytes, _) = read(file, start, len).map_err(|error| of_file(path, error))?;
    Ok(Some(bytes))
}

/// The row groups whose filters have one of the hashes, and those without a filter.
pub(crate) fn row_groups(
    path: &Path,
    file: &mut File,
    of: &ColumnType,
    chunks: &[ParquetChunk],
    hashes: &[u64],
) -> PyResult<Vec<usize>> {
    let (mut groups, mut found) = (Vec::new(), vec![false; hashes.len()]);
    for (i, chunk) in chunks.iter().enumerate() {
        let Some((start, len, head)) = place(path, file, chunk)? else {
            if !hashes.is_empty() {
                groups.push(i);
            }
            continue;
        };
        let header = Header::parse(&head).map_err(unreadable)?;
        let stored = (header.header_bytes() + header.stored_bytes()) as u64;
        if stored != len {
            return Err(invalid(
                path,
                &format!("row group {i}: the filter's header says {stored} bytes, and the footer {len}"),
            ));
        }
        let bitset = start + header.header_bytes() as u64;
        let mut bits = |start, len| match read(file, bitset + start as u64, len as u64) {
            Ok((bytes, _)) if bytes.len() == len => Ok(bytes),
            Ok(_) => Err(invalid(path, "the file became shorter")),
            Err(error) => Err(of_file(path, error)),
        };
        header.look_up(hashes, &mut found, &mut bits)?;
        let maybe = found.contains(&true)
            // parquet-java makes a filter for booleans and adds none to it.
            || of.physical == BOOLEAN && !hashes.is_empty() && bits(0, header.bitset_bytes())?.iter().all(|byte| *byte == 0);
        if maybe {
            groups.push(i);
        }
    }
    Ok(groups)
}

/// Where a chunk's filter lies, its bytes with the header, and the first of these.
fn place(path: &Path, file: &mut File, chunk: &ParquetChunk) -> PyResult<Option<(u64, u64, Vec<u8>)>> {
    let Some(offset) = chunk.filter_offset else {
        return Ok(None);
    };
    let start = u64::try_from(offset).unwrap_or(u64::MAX);
    let (head, size) = read(file, start.min(i64::MAX as u64), HEADER).map_err(|error| of_file(path, error))?;
    let beyond = || {
        invalid(
            path,
            &format!("the filter lies at {offset}, beyond the file's {size} bytes"),
        )
    };
    let len = match chunk.filter_length {
        Some(len) => u64::try_from(len).map_err(|_| beyond())?,
        None if start > size => return Err(beyond()),
        None => {
            let header = Header::parse(&head).map_err(unreadable)?;
            // Bytes after its whole blocks are not used.
            (header.header_bytes() + header.stored_bytes()) as u64
        }
    };
    match start.checked_add(len) {
        Some(end) if end <= size => Ok(Some((start, len, head))),
        _ => Err(beyond()),
    }
}

fn invalid(path: &Path, what: &str) -> PyErr {
    PyValueError::new_err(format!("{}: {what}", path.display()))
}

/// Bytes of a file, fewer where it ends, and its size.
fn read(file: &mut File, start: u64, len: u64) -> io::Result<(Vec<u8>, u64)> {
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    Ok((bytes, size))
}
