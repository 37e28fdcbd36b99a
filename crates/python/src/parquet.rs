//! The filter of a column chunk in a Parquet file, and the type of its column.
//!
//! The file says where things lie. Whatever it says, no more bytes are read than it has.

use crate::any::unreadable;
use crate::arguments::{of_file, open};
use lanebloom_formats::internal::{ColumnType, parquet_chunk};
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

/// The bytes of the filter, which begin with its header, and the type of the column; [`None`] if
/// the chunk has no filter.
pub(crate) fn filter_bytes(path: &Path, column: &str, row_group: usize) -> PyResult<Option<(Vec<u8>, ColumnType)>> {
    let mut file = open(path)?;
    let mut read = |start, len| read(&mut file, start, len).map_err(|error| of_file(path, error));
    let not_parquet = |what: &str| PyValueError::new_err(format!("{}: {what}", path.display()));
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
    let chunk = parquet_chunk(&footer, column, row_group).map_err(unreadable)?;
    let Some(offset) = chunk.filter_offset else {
        return Ok(None);
    };
    let range = |len: u64| {
        let offset = u64::try_from(offset).ok()?;
        (offset.checked_add(len)? <= size).then_some((offset, len))
    };
    let beyond = || not_parquet(&format!("the filter lies at {offset}, beyond the file's {size} bytes"));
    let len = match chunk.filter_length {
        Some(len) => u64::try_from(len).map_err(|_| beyond())?,
        None => {
            let (start, _) = range(0).ok_or_else(beyond)?;
            let (head, _) = read(start, HEADER.min(size - start))?;
            let header = Header::parse(&head).map_err(unreadable)?;
            // Bytes after its whole blocks are not used.
            (header.header_bytes() + header.stored_bytes()) as u64
        }
    };
    let (start, len) = range(len).ok_or_else(beyond)?;
    Ok(Some((read(start, len)?.0, chunk.column)))
}

/// Bytes of a file, fewer where it ends, and its size.
fn read(file: &mut File, start: u64, len: u64) -> io::Result<(Vec<u8>, u64)> {
    let size = file.seek(SeekFrom::End(0))?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    Ok((bytes, size))
}
