//! The output files of `corpus`. Chunks come in any order from threads that compressed them, and
//! are written in the order of the input. Each file is whole or absent: until it is complete, its
//! bytes are in a file with another name beside it.

use super::documents::Counts;
use super::rows::{Rows, Table, TableWriter};
use anyhow::{Context, Result, anyhow, bail};
use lanebloom_files::input::is_stdin;
use lanebloom_files::output::{Output, Outputs};
use lanebloom_files::pipeline::InOrder;
use lanebloom_files::stdout;
use lanebloom_files::unfinished::{self, PART, beside};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How an output is compressed. A chunk is a member of gzip or a frame of zstd, so threads compress
/// side by side. That takes 1% more bytes than one member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    Plain,
    Gzip,
    Zstd,
}

/// The defaults of `gzip` and `zstd`.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

impl Format {
    fn of(path: &Path) -> Self {
        match path.extension().and_then(OsStr::to_str) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::Plain,
        }
    }

    /// Compresses bytes, which are then a file of their own.
    pub(super) fn pack(self, bytes: &[u8]) -> io::Result<Cow<'_, [u8]>> {
        match self {
            Self::Plain => Ok(bytes.into()),
            Self::Gzip => {
                let packed = Vec::with_capacity(bytes.len() / 2);
                let mut encoder = flate2::write::GzEncoder::new(packed, flate2::Compression::new(GZIP_LEVEL));
                encoder.write_all(bytes)?;
                encoder.finish().map(Cow::from)
            }
            Self::Zstd => zstd::bulk::compress(bytes, ZSTD_LEVEL).map(Cow::from),
        }
    }
}

/// The output for a chunk.
pub(super) enum Written<'a> {
    Bytes(Cow<'a, [u8]>),
    Rows(Rows),
}

/// A file that is being written, or is complete and waits for its name. Removed unless it gets one.
pub(super) struct UnfinishedOutput {
    /// Locked. `None` if it is complete: a process may have few files open.
    file: Option<File>,
    /// Writes the file if it is one of Parquet.
    table: Option<TableWriter>,
    pub(super) path: PathBuf,
    pub(super) to: PathBuf,
    is_empty: bool,
    is_kept: bool,
}

impl UnfinishedOutput {
    /// The name of a file before it is complete. There is one for each output, so that the next run
    /// replaces what a killed run left.
    pub(super) fn path(to: &Path) -> PathBuf {
        beside(to, PART)
    }

    fn create(to: &Path, table: Option<&Table>) -> Result<Self> {
        let path = Self::path(to);
        let failed = || format!("cannot write {}", to.display());
        let Some(file) = unfinished::make(&path, || Self::open(&path)).with_context(failed)? else {
            bail!("cannot write {}: another run writes it", to.display());
        };
        file.set_len(0).with_context(failed)?;
        if let Ok(old) = fs::metadata(to) {
            file.set_permissions(old.permissions()).with_context(failed)?;
        }
        let writer = |table| TableWriter::new(table, file.try_clone()?);
        Ok(Self {
            table: table.map(writer).transpose().with_context(failed)?,
            file: Some(file),
            path,
            to: to.to_owned(),
            is_empty: true,
            is_kept: false,
        })
    }

    /// Opens and locks the file; `None` if another run has it.
    #[cfg(unix)]
    fn open(path: &Path) -> io::Result<Option<File>> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        // The name is known beforehand: a stranger's link would name a file of the user.
        options.custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32);
        lanebloom_files::identity::open_locked(path, &options)
    }

    #[cfg(not(unix))]
    fn open(path: &Path) -> io::Result<Option<File>> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        options.open(path).map(Some)
    }

    fn write(&mut self, written: &Written) -> Result<()> {
        let written = match (written, &mut self.table) {
            (Written::Bytes(bytes), _) => {
                self.is_empty &= bytes.is_empty();
                self.file
                    .as_mut()
                    .expect("it is not complete")
                    .write_all(bytes)
                    .map_err(anyhow::Error::from)
            }
            (Written::Rows(rows), Some(table)) => table.write(rows),
            (Written::Rows(_), None) => Err(anyhow!("it is not a file of Parquet")),
        };
        written.with_context(|| format!("cannot write {}", self.to.display()))
    }

    /// Writes what is missing, to the disk too.
    fn complete(&mut self) -> Result<()> {
        if let Some(table) = self.table.take() {
            let closed = table.close();
            closed.with_context(|| format!("cannot write {}", self.to.display()))?;
        } else if self.is_empty {
            let nothing = Format::of(&self.to).pack(&[])?;
            self.write(&Written::Bytes(nothing))?;
        }
        let file = self.file.take().expect("it is completed once");
        file.sync_all()
            .with_context(|| format!("cannot write {}", self.to.display()))
    }

    /// Leaves the file without a name where it is.
    pub(super) fn keep(&mut self) {
        unfinished::end(&self.path, || self.is_kept = true);
    }

    /// Gives the file its name.
    pub(super) fn commit(mut self) -> Result<()> {
        unfinished::end(&self.path, || rename(&self.path, &self.to))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for UnfinishedOutput {
    fn drop(&mut self) {
        if !self.is_kept {
            // If this fails, the next run replaces the file.
            let _ = unfinished::end(&self.path, || fs::remove_file(&self.path));
        }
    }
}

/// Gives a complete file its name, also after a crash of the machine.
pub(super) fn rename(path: &Path, to: &Path) -> Result<()> {
    let renamed = fs::rename(path, to);
    renamed.with_context(|| format!("cannot write {}", to.display()))?;
    if cfg!(unix) {
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        // A file system that cannot sync a folder does what it can.
        let _ = File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all());
    }
    Ok(())
}

pub(super) struct Writer {
    state: InOrder<(Target, Counts)>,
    /// How each output is compressed; none if nothing is written.
    formats: Vec<Format>,
    is_apart: bool,
}

/// Where the outputs are: stdout, files, or nowhere.
struct Target {
    stdout: Option<File>,
    paths: Vec<PathBuf>,
    /// The tables of the outputs that are files of Parquet.
    tables: Vec<Option<Arc<Table>>>,
    /// The files before this one are complete.
    file: usize,
    open: Option<UnfinishedOutput>,
    complete: Vec<UnfinishedOutput>,
    /// Whether a complete file gets its name at once.
    commits: bool,
}

impl Writer {
    /// With `commits`, each file gets its name as soon as it is complete. The outputs of the inputs
    /// that have a table are files of Parquet. Without outputs, nothing is written.
    pub(super) fn new(outputs: Option<&Outputs>, tables: Vec<Option<Arc<Table>>>, commits: bool) -> Result<Self> {
        let is_apart = outputs.is_some_and(Outputs::is_apart);
        let paths = outputs.iter().flat_map(|outputs| outputs.all()).map(Output::path);
        let mut target = Target {
            stdout: None,
            paths: paths.map(Path::to_owned).collect(),
            tables,
            file: 0,
            open: None,
            complete: Vec::new(),
            commits,
        };
        let formats = target.paths.iter().map(|path| Format::of(path)).collect();
        if let ([path], false) = (&target.paths[..], is_apart) {
            if is_stdin(path) {
                target.stdout = Some(stdout::open().context("cannot write the output")?);
                target.paths.clear();
            } else {
                // It is locked before the inputs are read.
                target.open = Some(target.unfinished()?);
            }
        }
        Ok(Self {
            state: InOrder::new((target, Counts::default())),
            formats,
            is_apart,
        })
    }

    /// The number of the output of an input.
    fn output(&self, input: usize) -> usize {
        if self.is_apart { input } else { 0 }
    }

    /// How the output of an input is compressed; `None` if nothing is written.
    pub(super) fn format(&self, input: usize) -> Option<Format> {
        self.formats.get(self.output(input)).copied()
    }

    /// Waits until the chunks before `number` are written. Then writes this one, which comes from
    /// this input, and adds its counts: in order, so a sum of fractions is the same in every run.
    pub(super) fn write(&self, number: u64, input: usize, written: &Written, counts: &Counts) -> Result<()> {
        let write = |(target, all): &mut (Target, Counts)| {
            target.write(self.output(input), written)?;
            all.add(counts);
            Ok(())
        };
        self.state.turn(number, number + 1, write).unwrap_or(Ok(()))
    }

    /// Waits until the chunks before `number` are written, completes the files of the inputs before
    /// `input`, and returns those that have no name yet.
    pub(super) fn complete(&self, number: u64, input: usize) -> Result<Vec<UnfinishedOutput>> {
        let completed = self
            .state
            .turn(number, number, |(target, _)| target.complete(self.output(input)));
        completed.unwrap_or_else(|| bail!("another thread has failed"))
    }

    /// Completes all files. Returns those without a name, and the counts of all chunks.
    pub(super) fn end(&self) -> Result<(Vec<UnfinishedOutput>, Counts)> {
        let (mut target, counts) = self.state.end().expect("it ends once");
        Ok((target.complete(usize::MAX)?, counts))
    }

    /// Removes all files that are not complete, after an error: other threads may hold the writer
    /// until the process ends.
    pub(super) fn abandon(&self) {
        drop(self.state.end());
    }
}

impl Target {
    fn write(&mut self, output: usize, written: &Written) -> Result<()> {
        if let Some(stdout) = &mut self.stdout {
            let Written::Bytes(bytes) = written else {
                bail!("Parquet needs a file as output");
            };
            return stdout.write_all(bytes).context("cannot write the output");
        }
        if self.paths.is_empty() {
            return Ok(());
        }
        self.complete_to(output)?;
        let output = self.unfinished()?;
        self.open.insert(output).write(written)
    }

    /// The first file that is not complete: the open one, or a new one.
    fn unfinished(&mut self) -> Result<UnfinishedOutput> {
        match self.open.take() {
            Some(output) => Ok(output),
            None => {
                let table = self.tables.get(self.file).and_then(Option::as_deref);
                UnfinishedOutput::create(&self.paths[self.file], table)
            }
        }
    }

    /// Completes the files before this one. Returns those that have no name yet.
    fn complete(&mut self, end: usize) -> Result<Vec<UnfinishedOutput>> {
        self.complete_to(end)?;
        Ok(std::mem::take(&mut self.complete))
    }

    fn complete_to(&mut self, end: usize) -> Result<()> {
        while self.file < end.min(self.paths.len()) {
            // A new one, if the input is empty.
            let mut output = self.unfinished()?;
            output.complete()?;
            if self.commits {
                output.commit()?;
            } else {
                self.complete.push(output);
            }
            self.file += 1;
        }
        Ok(())
    }
}
