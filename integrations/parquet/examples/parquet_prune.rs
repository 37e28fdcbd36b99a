//! Looks up ids in a folder of Parquet files. The ids lie at random over a wide range, so that the
//! least and the largest id of a row group rule out nothing. Most ids are in no file. The program
//! uses each row group's filter, then reads every row group instead. It reports the row groups and
//! bytes that were read, and the time. It checks every answer against a full scan by parquet-rs.
//!
//! A request for a few ids reads 32 bytes of a filter for each. A request for many reads the whole
//! filter, when that is fewer bytes. The filter's headers are read once, as the files' metadata is.
//!
//! Then it keeps the filters of all row groups in memory, as a list and as one bank, and asks both
//! for all ids. Requests through the bank read no filter from the files.
//!
//! ```sh
//! # 64 files of 100,000 rows, and 10,000 ids, unless others are given. With 256 files, there are
//! # 1,024 row groups.
//! cargo run --release --example parquet_prune -- FILES ROWS IDS
//! ```

#[path = "../../../tests/common/number.rs"]
mod number;

use bytes::{Buf, Bytes, buf::Reader};
use lanebloom::bank::columns;
use lanebloom_formats::splitblock::{Header, hash};
use lanebloom_formats::{Hashed, SplitBlockBank, SplitBlockBloom};
use lanebloom_parquet::{HEADER, Result, with_filters};
use number::number;
use parquet::column::page::PageReader;
use parquet::column::reader::{get_column_reader, get_typed_column_reader};
use parquet::data_type::Int64Type;
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader, SerializedPageReader};
use parquet::file::statistics::Statistics;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, thread};

const THREADS: usize = 2;
const ROW_GROUPS: usize = 4;
const RATE: f64 = 0.001;
/// One of so many ids that are looked up is in a file.
const PRESENT: usize = 100;

fn main() -> Result<()> {
    let args: Vec<usize> = env::args().skip(1).map(|arg| arg.parse()).collect::<Result<_, _>>()?;
    let arg = |i, default| args.get(i).copied().unwrap_or(default);
    let (files, rows, ids) = (arg(0, 64), arg(1, 100_000), arg(2, 10_000));
    let folder = tempfile::tempdir()?;
    let start = Instant::now();
    in_threads(files, |i| {
        Ok(fs::write(folder.path().join(format!("{i}.parquet")), make(i, rows)?)?)
    })?;
    let table = Table::open(folder.path(), files)?;
    let bytes = table
        .groups
        .iter()
        .map(|group| group.id.byte_range().1 + group.value.byte_range().1)
        .sum();
    let filters = table
        .groups
        .iter()
        .map(|group| group.header.bitset_bytes() as u64)
        .sum();
    println!(
        "{files} files of {rows} rows in {ROW_GROUPS} row groups: {} of columns, {} of filters for {}%, in {:.1} s",
        size(bytes),
        size(filters),
        100.0 * RATE,
        start.elapsed().as_secs_f64()
    );

    let wanted: Vec<i64> = (0..ids)
        .map(|i| match i % PRESENT {
            0 => id(i * 7919 % (files * rows)),
            _ => id(files * rows + i),
        })
        .collect();
    let start = Instant::now();
    let expected = full_scan(folder.path(), files, &wanted)?;
    println!(
        "{ids} ids, {} of them in a file; a full scan by parquet-rs takes {:.1} s",
        expected.len(),
        start.elapsed().as_secs_f64()
    );
    let ruled_out = table
        .groups
        .iter()
        .map(|group| wanted.iter().filter(|id| !group.spans(**id)).count());
    let ruled_out = ruled_out.sum::<usize>() as f64 / (ids * table.groups.len()) as f64;
    println!(
        "the least and the largest id rule out {:.3}% of the row groups",
        100.0 * ruled_out
    );

    let bank = table.bank(&wanted)?;

    println!(
        "\nids per request | by   | requests | row groups read | of filters | of columns | bytes per id | ms per request"
    );
    for of in [1, 10, 100, ids] {
        for by in [By::Nothing, By::Filters, By::Bank(&bank)] {
            let mut requests: Vec<&[i64]> = wanted.chunks(of).collect();
            if let By::Nothing = by {
                // One takes long, and all take equally long.
                requests.truncate(20);
            }
            let report = table.run(&requests, by, &expected)?;
            let (of_filters, of_columns) = (report.filter_bytes as u64, report.column_bytes as u64);
            println!(
                "{of:15} | {:4} | {:8} | {:14.2}% | {:>10} | {:>10} | {:>12} | {:.3}",
                match by {
                    By::Nothing => "none",
                    By::Filters => "ours",
                    By::Bank(_) => "bank",
                },
                requests.len(),
                100.0 * report.groups as f64 / (requests.len() * table.groups.len()) as f64,
                size(of_filters),
                size(of_columns),
                size((of_filters + of_columns) / requests.concat().len() as u64),
                1e3 * report.time.as_secs_f64() / requests.len() as f64,
            );
        }
    }
    println!("every answer is the full scan's");
    Ok(())
}

/// The id of a row: numbers without a pattern, all different.
fn id(row: usize) -> i64 {
    number(row as u64) as i64
}

/// The bytes of a file: by parquet-rs, with filters of the ids by `SplitBlockBloom`.
fn make(file: usize, rows: usize) -> Result<Vec<u8>> {
    let schema = parse_message_type("message rows { required int64 id; required int64 value; }")?;
    let properties = WriterProperties::builder().set_dictionary_enabled(false).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let all = Vec::from_iter(file * rows..(file + 1) * rows);
    for rows in all.chunks(rows.div_ceil(ROW_GROUPS).max(1)) {
        let mut group = writer.next_row_group()?;
        let ids: Vec<i64> = rows.iter().map(|row| id(*row)).collect();
        let values: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
        for values in [ids, values] {
            let mut column = group.next_column()?.ok_or("no column")?;
            column.typed::<Int64Type>().write_batch(&values, None, None)?;
            column.close()?;
        }
        group.close()?;
    }
    let mut columns = 0;
    with_filters(&writer.into_inner()?.into(), |hashes| {
        columns += 1;
        if columns % 2 == 0 {
            return Ok(None);
        }
        let filter = SplitBlockBloom::with_capacity(hashes.len(), RATE)?;
        filter.insert_batch(Hashed::slice(hashes));
        Ok(Some(filter))
    })
}

/// The value of each id that is in a file, by reading all that is there.
fn full_scan(folder: &Path, files: usize, ids: &[i64]) -> Result<HashMap<i64, i64>> {
    let wanted: HashMap<i64, ()> = ids.iter().map(|id| (*id, ())).collect();
    let mut found = HashMap::new();
    for i in 0..files {
        let reader = SerializedFileReader::new(File::open(folder.join(format!("{i}.parquet")))?)?;
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group)?;
            let [ids, values] = [0, 1].map(|column| -> Result<Vec<i64>> {
                let mut values = Vec::new();
                let mut reader = get_typed_column_reader::<Int64Type>(group.get_column_reader(column)?);
                reader.read_records(usize::MAX, None, None, &mut values)?;
                Ok(values)
            });
            let rows = ids?.into_iter().zip(values?);
            found.extend(rows.filter(|(id, _)| wanted.contains_key(id)));
        }
    }
    Ok(found)
}

/// All files, with what their footers and their filters' headers say.
struct Table {
    files: Vec<File>,
    groups: Vec<Group>,
}

struct Group {
    file: usize,
    rows: usize,
    id: ColumnChunkMetaData,
    value: ColumnChunkMetaData,
    header: Header,
    /// The place of the bitset in the file.
    bitset: u64,
}

/// The filter that selects the row groups to read.
#[derive(Clone, Copy)]
enum By<'a> {
    Nothing,
    /// The filters in the files.
    Filters,
    Bank(&'a SplitBlockBank),
}

#[derive(Default)]
struct Report {
    groups: usize,
    filter_bytes: usize,
    column_bytes: usize,
    time: Duration,
}

impl Table {
    fn open(folder: &Path, files: usize) -> Result<Self> {
        let mut table = Self {
            files: Vec::new(),
            groups: Vec::new(),
        };
        for i in 0..files {
            let file = File::open(folder.join(format!("{i}.parquet")))?;
            let reader = SerializedFileReader::new(file.try_clone()?)?;
            for row_group in reader.metadata().row_groups() {
                table.groups.push(Group::open(i, &file, row_group)?);
            }
            table.files.push(file);
        }
        Ok(table)
    }

    /// The filters of all row groups as a bank. Asks them for all ids, one by one and as a bank,
    /// compares the answers, and prints the times.
    fn bank(&self, ids: &[i64]) -> Result<SplitBlockBank> {
        let start = Instant::now();
        let mut filters = Vec::new();
        for group in &self.groups {
            let bitset = read(&self.files[group.file], group.bitset, group.header.bitset_bytes())?;
            filters.push(SplitBlockBloom::from_bitset(&bitset)?);
        }
        let read = start.elapsed();
        let start = Instant::now();
        let bank = SplitBlockBank::from_filters(&filters)?;
        let made = start.elapsed();
        let hashes: Vec<u64> = ids.iter().map(hash).collect();

        let words = bank.columns() / 64;
        let mut right = vec![0_u64; hashes.len() * words];
        let start = Instant::now();
        let mut found = vec![false; hashes.len()];
        for (group, filter) in filters.iter().enumerate() {
            filter.contains_batch(Hashed::slice(&hashes), &mut found);
            for (bitmap, &found) in right.chunks_mut(words).zip(&found) {
                bitmap[group / 64] |= u64::from(found) << (group % 64);
            }
        }
        let batches = start.elapsed();
        let start = Instant::now();
        let few = hashes.len().min(1000);
        for (bitmap, &hash) in right.chunks(words).zip(&hashes[..few]) {
            for (group, filter) in filters.iter().enumerate() {
                if filter.contains(&Hashed(hash)) != (bitmap[group / 64] >> (group % 64) & 1 == 1) {
                    return Err(format!("the answers of filter {group} differ").into());
                }
            }
        }
        let single = start.elapsed();
        let start = Instant::now();
        let mut asked = vec![0_u64; right.len()];
        bank.which_batch(Hashed::slice(&hashes), |i, bitmap| {
            asked[i * words..][..words].copy_from_slice(bitmap)
        });
        let by_bank = start.elapsed();
        if asked != right {
            return Err("the bank's answers are not the filters'".into());
        }
        let per_id = |time: Duration, ids: usize| 1e6 * time.as_secs_f64() / ids as f64;
        println!(
            "\nin memory: {} filters of {} in all, read in {:.0} ms; a bank of {}, made in {:.0} ms\n\
             us per id: {:.2} by the filters one after another, {:.2} by batches of all ids for each filter, {:.3} by \
             the bank; all answers are the same",
            filters.len(),
            size(filters.iter().map(|filter| filter.memory_bytes() as u64).sum()),
            1e3 * read.as_secs_f64(),
            size(bank.memory_bytes() as u64),
            1e3 * made.as_secs_f64(),
            per_id(single, few),
            per_id(batches, hashes.len()),
            per_id(by_bank, hashes.len()),
        );
        Ok(bank)
    }

    /// Answers all requests, and compares the answers.
    fn run(&self, requests: &[&[i64]], by: By, expected: &HashMap<i64, i64>) -> Result<Report> {
        let (groups, filter_bytes, column_bytes) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let start = Instant::now();
        in_threads(requests.len(), |i| {
            let (mut request, mut found) = (requests[i].to_vec(), HashMap::new());
            request.sort_unstable();
            let hashes: Vec<u64> = request.iter().map(hash).collect();
            let mut by_group = vec![Vec::new(); self.groups.len()];
            if let By::Bank(bank) = by {
                bank.which_batch(Hashed::slice(&hashes), |i, found| {
                    columns(found).for_each(|group| by_group[group].push(request[i]));
                });
            }
            for (group, mut ids) in self.groups.iter().zip(by_group) {
                let file = &self.files[group.file];
                if !matches!(by, By::Bank(_)) {
                    let mut maybe = vec![true; request.len()];
                    if let By::Filters = by {
                        filter_bytes.fetch_add(group.look_up(file, &hashes, &mut maybe)?, Relaxed);
                    }
                    let maybe = request.iter().zip(maybe).filter(|(_, maybe)| *maybe);
                    ids.extend(maybe.map(|(id, _)| *id));
                }
                if !ids.is_empty() {
                    groups.fetch_add(1, Relaxed);
                    column_bytes.fetch_add(group.find(file, &ids, &mut found)?, Relaxed);
                }
            }
            if request.iter().any(|id| found.get(id) != expected.get(id)) {
                return Err(format!("wrong answers to {request:?}").into());
            }
            Ok(())
        })?;
        Ok(Report {
            groups: groups.into_inner(),
            filter_bytes: filter_bytes.into_inner(),
            column_bytes: column_bytes.into_inner(),
            time: start.elapsed(),
        })
    }
}

impl Group {
    fn open(file: usize, bytes: &File, metadata: &RowGroupMetaData) -> Result<Self> {
        let id = metadata.column(0).clone();
        let offset = id.bloom_filter_offset().ok_or("no filter")? as u64;
        let length = id.bloom_filter_length().ok_or("no length")? as usize;
        let header = Header::parse(&read(bytes, offset, length.min(HEADER))?)?;
        Ok(Self {
            file,
            rows: metadata.num_rows() as usize,
            value: metadata.column(1).clone(),
            bitset: offset + header.header_bytes() as u64,
            id,
            header,
        })
    }

    /// Whether the statistics leave it open that an id is here.
    fn spans(&self, id: i64) -> bool {
        let Some(Statistics::Int64(statistics)) = self.id.statistics() else {
            return true;
        };
        statistics.min_opt().is_none_or(|min| *min <= id) && statistics.max_opt().is_none_or(|max| *max >= id)
    }

    /// Writes whether each hash may be here; returns the bytes that were read.
    fn look_up(&self, file: &File, hashes: &[u64], maybe: &mut [bool]) -> Result<usize> {
        let mut bytes = 0;
        self.header.look_up(hashes, maybe, |start, len| {
            bytes += len;
            read(file, self.bitset + start as u64, len)
        })?;
        Ok(bytes)
    }

    /// Adds the value of each id that is here, of a sorted list of ids; returns the bytes that were
    /// read. Reads the values only if an id is here.
    fn find(&self, file: &File, wanted: &[i64], found: &mut HashMap<i64, i64>) -> Result<usize> {
        let (ids, mut bytes) = self.column(file, &self.id)?;
        let rows: Vec<usize> = match *wanted {
            [one] => (0..ids.len()).filter(|row| ids[*row] == one).collect(),
            _ => (0..ids.len())
                .filter(|row| wanted.binary_search(&ids[*row]).is_ok())
                .collect(),
        };
        if !rows.is_empty() {
            let (values, more) = self.column(file, &self.value)?;
            found.extend(rows.iter().map(|row| (ids[*row], values[*row])));
            bytes += more;
        }
        Ok(bytes)
    }

    /// The values of a column chunk, and its bytes.
    fn column(&self, file: &File, chunk: &ColumnChunkMetaData) -> Result<(Vec<i64>, usize)> {
        let (start, length) = chunk.byte_range();
        let bytes = Bytes::from(read(file, start, length as usize)?);
        let pages = SerializedPageReader::new(Arc::new(Chunk { start, bytes }), chunk, self.rows, None)?;
        let pages: Box<dyn PageReader> = Box::new(pages);
        let mut reader = get_typed_column_reader::<Int64Type>(get_column_reader(chunk.column_descr_ptr(), pages));
        let mut values = Vec::with_capacity(self.rows);
        reader.read_records(self.rows, None, None, &mut values)?;
        Ok((values, length as usize))
    }
}

/// The bytes of a column chunk, at its place in the file.
struct Chunk {
    start: u64,
    bytes: Bytes,
}

impl Length for Chunk {
    fn len(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

impl ChunkReader for Chunk {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(self.bytes.slice((start - self.start) as usize..).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        let start = (start - self.start) as usize;
        Ok(self.bytes.slice(start..start + length))
    }
}

fn read(file: &File, start: u64, length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, start)?;
    Ok(bytes)
}

/// Calls `work` with all numbers below a limit, on all threads.
fn in_threads(limit: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let one = || {
        loop {
            // Relaxed: each number goes to one thread, and the scope's end orders the rest.
            match next.fetch_add(1, Relaxed) {
                i if i < limit => work(i)?,
                _ => return Ok(()),
            }
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(one)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}
