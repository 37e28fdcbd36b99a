//! Parquet files with filters by [`SplitBlockBloom`]: what the tests, the example and `engines.py`
//! share.

use bytes::Bytes;
use lanebloom_formats::SplitBlockBloom;
use lanebloom_formats::splitblock::{Header, hash};
use parquet::basic::{LogicalType, Type};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{AsBytes, DataType};
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter};
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use std::error::Error;

/// The bytes of the longest header of a filter, and more.
pub const HEADER: usize = 40;

/// The error of anything here.
pub type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// The hash of every value of a column chunk, without its nulls: a full scan.
pub fn hashes(row_group: &dyn RowGroupReader, column: usize) -> Result<Vec<u64>> {
    fn read<T: DataType>(mut reader: ColumnReaderImpl<T>) -> Result<Vec<u64>> {
        let (mut definitions, mut repetitions, mut values) = (Vec::new(), Vec::new(), Vec::new());
        let every = usize::MAX;
        reader.read_records(every, Some(&mut definitions), Some(&mut repetitions), &mut values)?;
        // The bytes of any type's value are its plain encoding.
        Ok(values.iter().map(|value| hash(value.as_bytes())).collect())
    }
    match row_group.get_column_reader(column)? {
        ColumnReader::BoolColumnReader(reader) => read(reader),
        ColumnReader::Int32ColumnReader(reader) => read(reader),
        ColumnReader::Int64ColumnReader(reader) => read(reader),
        ColumnReader::Int96ColumnReader(reader) => read(reader),
        ColumnReader::FloatColumnReader(reader) => read(reader),
        ColumnReader::DoubleColumnReader(reader) => read(reader),
        ColumnReader::ByteArrayColumnReader(reader) => read(reader),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => read(reader),
    }
}

/// The bytes of a file from a column chunk's filter on: to the filter's end if the metadata has its
/// length, else to the file's. `None` if the chunk has no filter.
pub fn filter_bytes<'a>(file: &'a [u8], chunk: &ColumnChunkMetaData) -> Option<&'a [u8]> {
    let bytes = &file[usize::try_from(chunk.bloom_filter_offset()?).ok()?..];
    Some(match chunk.bloom_filter_length() {
        Some(length) => &bytes[..usize::try_from(length).ok()?],
        None => bytes,
    })
}

/// The row groups that may have one of the hashes in a column: those whose filter has it, and those
/// without a filter. Reads no more of the filters than that needs.
pub fn row_groups(
    file: &impl ChunkReader,
    metadata: &ParquetMetaData,
    column: usize,
    hashes: &[u64],
) -> Result<Vec<usize>> {
    let mut found = vec![false; hashes.len()];
    let mut groups = Vec::new();
    for (i, row_group) in metadata.row_groups().iter().enumerate() {
        let maybe = match row_group.column(column).bloom_filter_offset() {
            None => !hashes.is_empty(),
            Some(offset) => {
                let offset = u64::try_from(offset)?;
                let left = usize::try_from(file.len().saturating_sub(offset))?;
                let header = Header::parse(&file.get_bytes(offset, left.min(HEADER))?)?;
                let bitset = offset + header.header_bytes() as u64;
                header.look_up(hashes, &mut found, |start, len| {
                    file.get_bytes(bitset + start as u64, len).map(Into::into)
                })?;
                found.contains(&true)
            }
        };
        if maybe {
            groups.push(i);
        }
    }
    Ok(groups)
}

/// A copy of a file in which each column chunk has the filter that `make` returns for its hashes.
/// Chunks of booleans get none, and in chunks of floats either zero brings the other one. Filters
/// that the file had are no longer referred to.
///
/// The new filters lie between the file's data and its new footer.
pub fn with_filters(file: &Bytes, mut make: impl FnMut(&[u64]) -> Result<Option<SplitBlockBloom>>) -> Result<Vec<u8>> {
    let reader = SerializedFileReader::new(file.clone())?;
    let footer = file.len() - FOOTER_SIZE;
    let footer_bytes = u32::from_le_bytes(file[footer..footer + 4].try_into()?);
    let mut out = file[..footer - footer_bytes as usize].to_vec();
    let mut row_groups = Vec::new();
    for (i, row_group) in reader.metadata().row_groups().iter().enumerate() {
        let mut row_group = row_group.clone().into_builder();
        let chunks = row_group.take_columns();
        for (column, chunk) in chunks.into_iter().enumerate() {
            let filter = match chunk.column_type() {
                // Two values, and parquet-java's filters of them are empty: few readers ask one.
                Type::BOOLEAN => None,
                _ => make(&hashes(&*reader.get_row_group(i)?, column)?)?,
            };
            let (mut offset, mut length) = (None, None);
            if let Some(filter) = filter {
                let is_float16 = chunk.column_descr().logical_type_ref() == Some(&LogicalType::Float16);
                if is_float16 || matches!(chunk.column_type(), Type::FLOAT | Type::DOUBLE) {
                    filter.insert_both_zeros();
                }
                let bytes = filter.to_parquet()?;
                (offset, length) = (Some(out.len().try_into()?), Some(bytes.len().try_into()?));
                out.extend(bytes);
            }
            let chunk = chunk.into_builder();
            let chunk = chunk.set_bloom_filter_offset(offset).set_bloom_filter_length(length);
            row_group = row_group.add_column_metadata(chunk.build()?);
        }
        row_groups.push(row_group.build()?);
    }
    let metadata = ParquetMetaDataBuilder::new(reader.metadata().file_metadata().clone());
    let metadata = metadata.set_row_groups(row_groups).build();
    // No page index is rewritten, so the metadata has no offset of its own place.
    ParquetMetaDataWriter::new(&mut out, &metadata).finish()?;
    Ok(out)
}
