//! Files of Parquet, of which one column has texts. The texts flow out as lines of JSON, which
//! `corpus` reads as those of any other file; the rows flow out beside them. The rows that stay,
//! with their new texts, flow into a file with the same schema.

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow_schema::DataType;
use arrow_select::filter::filter_record_batch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{Read, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of the rows that are read at a time, as far as the file tells.
const BATCH_BYTES: i64 = 1 << 20;

/// The most rows that are read at a time.
const BATCH_ROWS: i64 = 1 << 16;

/// The key under which files of Parquet hold Arrow's schema.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// Calls parquet-rs. It panics at some offsets and sizes that make no sense, and says so on stderr;
/// here that is an error.
fn guarded<T>(read: impl FnOnce() -> parquet::errors::Result<T>) -> Result<T> {
    match panic::catch_unwind(AssertUnwindSafe(read)) {
        Ok(read) => Ok(read?),
        Err(_) => bail!("the file of Parquet is damaged"),
    }
}

/// A file of Parquet.
pub(super) struct Table {
    path: PathBuf,
    metadata: ArrowReaderMetadata,
    /// The number of the column with the texts, and its name.
    column: usize,
    name: String,
}

impl Table {
    /// Opens a file; `None` if it is not Parquet. `field` is the column with the texts.
    pub(super) fn open(path: &Path, field: &str) -> Result<Option<Self>> {
        if !path.is_file() {
            return Ok(None);
        }
        let failed = || format!("cannot read {}", path.display());
        let mut file = File::open(path).with_context(failed)?;
        let mut magic = [0; 4];
        if file.read_exact(&mut magic).is_err() || magic != *b"PAR1" {
            return Ok(None);
        }
        let metadata = guarded(|| ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())).with_context(failed)?;
        let name = field.strip_prefix('/').unwrap_or(field).to_owned();
        let Some((column, found)) = metadata.schema().column_with_name(&name) else {
            bail!("{}: it has no column {name}, the option --text", path.display());
        };
        let mut all = metadata.schema().fields().iter();
        if all.rposition(|other| *other.name() == name) > Some(column) {
            bail!("{}: several columns have the name {name}", path.display());
        }
        if !matches!(
            found.data_type(),
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
        ) {
            bail!(
                "{}: the column {name} has the type {}; a column of text is needed",
                path.display(),
                found.data_type()
            );
        }
        Ok(Some(Self {
            path: path.to_owned(),
            metadata,
            column,
            name,
        }))
    }

    /// Whether the rows of both fit into one file.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.metadata.schema().fields() == other.metadata.schema().fields()
    }

    /// Reads the rows.
    pub(super) fn batches(&self, max_record: usize) -> Result<Batches> {
        let file = File::open(&self.path)?;
        let len = file.metadata()?.len();
        let metadata = self.metadata.metadata();
        let rows = metadata.file_metadata().num_rows().max(0);
        let bytes: i64 = metadata.row_groups().iter().map(|group| group.total_byte_size()).sum();
        let size = (BATCH_BYTES.saturating_mul(rows) / bytes.max(1)).clamp(1, BATCH_ROWS);
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        Ok(Batches {
            reader: guarded(|| builder.with_batch_size(size as usize).build())?,
            column: self.column,
            name: serde_json::to_string(&self.name)?,
            max_record,
            bytes_per_row: len as f64 / rows.max(1) as f64,
        })
    }
}

/// The rows of a file, some at a time.
pub(super) struct Batches {
    reader: ParquetRecordBatchReader,
    column: usize,
    name: String,
    max_record: usize,
    bytes_per_row: f64,
}

impl Batches {
    /// The next rows with their part of the file's bytes, and as many lines of JSON in `lines`.
    pub(super) fn next(&mut self, lines: &mut Vec<u8>) -> Result<Option<(Rows, usize)>> {
        lines.clear();
        let Some(batch) = guarded(|| Ok(self.reader.next().transpose()?))? else {
            return Ok(None);
        };
        let file_bytes = (batch.num_rows() as f64 * self.bytes_per_row) as usize;
        let rows = Rows {
            batch,
            column: self.column,
        };
        for text in rows.texts() {
            lines.push(b'{');
            if let Some(text) = text {
                if text.len() > self.max_record {
                    bail!(
                        "a text is longer than {} bytes, the limit of --max-record",
                        self.max_record
                    );
                }
                write!(lines, "{}:", self.name)?;
                serde_json::to_writer(&mut *lines, text)?;
            }
            lines.extend_from_slice(b"}\n");
        }
        Ok(Some((rows, file_bytes)))
    }
}

/// Rows of a file.
pub(super) struct Rows {
    batch: RecordBatch,
    column: usize,
}

impl Rows {
    fn texts(&self) -> Box<dyn Iterator<Item = Option<&str>> + '_> {
        let column = self.batch.column(self.column);
        match column.data_type() {
            DataType::Utf8 => Box::new(column.as_string::<i32>().iter()),
            DataType::LargeUtf8 => Box::new(column.as_string::<i64>().iter()),
            _ => Box::new(column.as_string_view().iter()),
        }
    }

    /// Gives the rows of these numbers other texts, and removes those that do not stay.
    pub(super) fn edit(&mut self, stays: Vec<bool>, texts: &[(usize, String)]) -> Result<()> {
        if !texts.is_empty() {
            let mut changed = texts.iter().peekable();
            let all = self.texts().enumerate().map(|(row, text)| {
                let own = changed.next_if(|(changed, _)| *changed == row);
                own.map_or(text, |(_, text)| Some(text))
            });
            let column: ArrayRef = match self.batch.column(self.column).data_type() {
                DataType::Utf8 => Arc::new(StringArray::from_iter(all)),
                DataType::LargeUtf8 => Arc::new(LargeStringArray::from_iter(all)),
                _ => Arc::new(StringViewArray::from_iter(all)),
            };
            let mut columns = self.batch.columns().to_vec();
            columns[self.column] = column;
            self.batch = RecordBatch::try_new(self.batch.schema(), columns)?;
        }
        if stays.contains(&false) {
            self.batch = filter_record_batch(&self.batch, &BooleanArray::from(stays))?;
        }
        Ok(())
    }
}

/// A file that is written.
pub(super) struct TableWriter(ArrowWriter<File>);

impl TableWriter {
    /// With the schema of another file, its compression, its notes, and row groups as large as its
    /// largest.
    pub(super) fn new(like: &Table, file: File) -> Result<Self> {
        let metadata = like.metadata.metadata();
        let groups = metadata.row_groups();
        let rows = groups.iter().map(|group| group.num_rows()).max().unwrap_or(0).max(1);
        let notes = metadata
            .file_metadata()
            .key_value_metadata()
            .cloned()
            .unwrap_or_default();
        let notes = Vec::from_iter(notes.into_iter().filter(|note| note.key != ARROW_SCHEMA));
        let mut builder = WriterProperties::builder()
            .set_max_row_group_row_count(Some(rows as usize))
            .set_key_value_metadata(Some(notes));
        for column in groups.first().into_iter().flat_map(|group| group.columns()) {
            builder = builder.set_column_compression(column.column_path().clone(), column.compression());
        }
        let schema = Arc::clone(like.metadata.schema());
        Ok(Self(ArrowWriter::try_new(file, schema, Some(builder.build()))?))
    }

    pub(super) fn write(&mut self, rows: &Rows) -> Result<()> {
        Ok(self.0.write(&rows.batch)?)
    }

    pub(super) fn close(self) -> Result<()> {
        self.0.close()?;
        Ok(())
    }
}
