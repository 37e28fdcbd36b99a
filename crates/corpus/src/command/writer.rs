//! The output files of `corpus`. Chunks come in any order from threads that compressed them, and
//! are written in the order of the input. Each file is whole or absent: until it is complete, its
//! bytes are in a file with another name beside it.

use super::rows::{Rows, Table, TableWriter};
use anyhow::{Context, Result, anyhow, bail};
use lanebloom_files::identity::FileId;
use lanebloom_files::input::is_stdin;
use lanebloom_files::output::{Output, Outputs};
use lanebloom_files::stdout;
use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use twox_hash::XxHash3_64;

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

/// What is written of a chunk.
pub(super) enum Written<'a> {
    Bytes(Cow<'a, [u8]>),
    Rows(Rows),
}

/// A file that is being written, or is complete and waits for its name. Removed unless it gets one.
pub(super) struct Part {
    /// Locked. `None` if it is complete: a process may have few files open.
    file: Option<File>,
    /// Writes the file if it is one of Parquet.
    table: Option<TableWriter>,
    pub(super) path: PathBuf,
    pub(super) to: PathBuf,
    is_empty: bool,
    is_kept: bool,
}

impl Part {
    /// The name of a file before it is complete. There is one for each output, so that the next run
    /// replaces what a killed run left.
    pub(super) fn path(to: &Path) -> PathBuf {
        let name = to.file_name().unwrap_or(OsStr::new("")).as_encoded_bytes();
        to.with_file_name(format!(".lanebloom-{:016x}.part", XxHash3_64::oneshot(name)))
    }

    fn create(to: &Path, table: Option<&Table>) -> Result<Self> {
        let path = Self::path(to);
        let failed = || format!("cannot write {}", to.display());
        let Some(file) = Self::open(&path).with_context(failed)? else {
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
        use rustix::fs::{FlockOperation, OFlags, flock};
        use std::os::unix::fs::OpenOptionsExt;
        loop {
            let mut options = File::options();
            options.read(true).write(true).create(true).truncate(false);
            // The name is known beforehand: a stranger's link would name a file of the user.
            let file = options.custom_flags(OFlags::NOFOLLOW.bits() as i32).open(path)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(io::Error::from) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                // A file system without locks.
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                other => other?,
            }
            // Otherwise another run gave the file its final name between the two.
            if FileId::at(path)? == Some(FileId::of_file(&file)?) {
                return Ok(Some(file));
            }
        }
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
        self.is_kept = true;
    }

    /// Gives the file its name.
    pub(super) fn commit(mut self) -> Result<()> {
        rename(&self.path, &self.to)?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.is_kept {
            // If this fails, the next run replaces the file.
            let _ = fs::remove_file(&self.path);
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
    inner: Mutex<Inner>,
    changed: Condvar,
    formats: Vec<Format>,
    is_apart: bool,
}

struct Inner {
    /// The number of the chunk that is written next.
    next: u64,
    /// Whether a chunk will never come.
    is_failed: bool,
    target: Target,
}

enum Target {
    Nothing,
    Stdout(File),
    One(Part),
    Each {
        paths: Vec<PathBuf>,
        tables: Vec<Option<Arc<Table>>>,
        /// The files of the inputs before this one are complete.
        input: usize,
        open: Option<Part>,
        complete: Vec<Part>,
        /// Whether a complete file gets its name at once.
        commits: bool,
    },
}

impl Writer {
    /// With `commits`, each file gets its name as soon as it is complete. The outputs of the inputs
    /// that have a table are files of Parquet.
    pub(super) fn new(outputs: &Outputs, tables: Vec<Option<Arc<Table>>>, commits: bool) -> Result<Self> {
        let paths = Vec::from_iter(outputs.all().iter().map(Output::path));
        let formats = paths.iter().map(|path| Format::of(path)).collect();
        let target = match &paths[..] {
            [path] if !outputs.is_apart() && is_stdin(path) => {
                Target::Stdout(stdout::open().context("cannot write the output")?)
            }
            [path] if !outputs.is_apart() => Target::One(Part::create(path, table(&tables, 0))?),
            _ => Target::Each {
                paths: paths.into_iter().map(Path::to_owned).collect(),
                tables,
                input: 0,
                open: None,
                complete: Vec::new(),
                commits,
            },
        };
        Ok(Self::to(target, formats, outputs.is_apart()))
    }

    /// Drops everything.
    pub(super) fn nowhere() -> Self {
        Self::to(Target::Nothing, vec![Format::Plain], false)
    }

    fn to(target: Target, formats: Vec<Format>, is_apart: bool) -> Self {
        Self {
            inner: Mutex::new(Inner {
                next: 0,
                is_failed: false,
                target,
            }),
            changed: Condvar::new(),
            formats,
            is_apart,
        }
    }

    pub(super) fn is_nowhere(&self) -> bool {
        matches!(self.lock().target, Target::Nothing)
    }

    /// How the output of an input is compressed.
    pub(super) fn format(&self, input: usize) -> Format {
        self.formats[if self.is_apart { input } else { 0 }]
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the chunks before this one are written.
    fn turn(&self, number: u64) -> Result<MutexGuard<'_, Inner>> {
        let is_before = |inner: &mut Inner| inner.next < number && !inner.is_failed;
        let inner = self.changed.wait_while(self.lock(), is_before);
        let inner = inner.unwrap_or_else(PoisonError::into_inner);
        if inner.is_failed {
            // The first error is the one that people see.
            return Err(anyhow!("another thread has failed"));
        }
        Ok(inner)
    }

    /// Writes chunk `number`, which `make` returns, and which comes from this input. Then
    /// calls `then`, before the next chunk is written.
    pub(super) fn write<'a>(
        &self,
        number: u64,
        input: usize,
        make: impl FnOnce() -> Result<Written<'a>>,
        then: impl FnOnce(),
    ) -> Result<()> {
        let guard = FailGuard(self);
        let written = make()?;
        let mut inner = self.turn(number)?;
        inner.target.write(input, &written)?;
        then();
        inner.next += 1;
        drop(inner);
        self.changed.notify_all();
        std::mem::forget(guard);
        Ok(())
    }

    /// Waits until the chunks before `number` are written, completes the files of the inputs before
    /// `input`, and returns those that have no name yet.
    pub(super) fn complete(&self, number: u64, input: usize) -> Result<Vec<Part>> {
        self.turn(number)?.target.complete(input)
    }

    /// Completes all files. Returns those without a name.
    pub(super) fn end(&self) -> Result<Vec<Part>> {
        let mut inner = self.lock();
        match std::mem::replace(&mut inner.target, Target::Nothing) {
            Target::Nothing | Target::Stdout(_) => Ok(Vec::new()),
            Target::One(mut part) => {
                part.complete()?;
                Ok(vec![part])
            }
            mut each @ Target::Each { .. } => each.complete(usize::MAX),
        }
    }

    /// Removes all files that are not complete, after an error: other threads may hold the writer
    /// until the process ends.
    pub(super) fn abandon(&self) {
        let mut inner = self.lock();
        inner.is_failed = true;
        inner.target = Target::Nothing;
        drop(inner);
        self.changed.notify_all();
    }
}

impl Target {
    fn write(&mut self, input: usize, written: &Written) -> Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Stdout(file) => match written {
                Written::Bytes(bytes) => file.write_all(bytes).context("cannot write the output"),
                Written::Rows(_) => Err(anyhow!("Parquet needs a file as output")),
            },
            Self::One(part) => part.write(written),
            Self::Each { .. } => {
                self.complete_to(input)?;
                let Self::Each {
                    paths, tables, open, ..
                } = self
                else {
                    unreachable!("it is the same");
                };
                if open.is_none() {
                    *open = Some(Part::create(&paths[input], table(tables, input))?);
                }
                open.as_mut().expect("it was opened").write(written)
            }
        }
    }

    fn complete(&mut self, input: usize) -> Result<Vec<Part>> {
        self.complete_to(input)?;
        match self {
            Self::Each { complete, .. } => Ok(std::mem::take(complete)),
            _ => Ok(Vec::new()),
        }
    }

    /// Completes the files of the inputs before this one.
    fn complete_to(&mut self, end: usize) -> Result<()> {
        let Self::Each {
            paths,
            tables,
            input,
            open,
            complete,
            commits,
        } = self
        else {
            return Ok(());
        };
        while *input < end.min(paths.len()) {
            let mut part = match open.take() {
                Some(part) => part,
                // The input is empty.
                None => Part::create(&paths[*input], table(tables, *input))?,
            };
            part.complete()?;
            if *commits {
                part.commit()?;
            } else {
                complete.push(part);
            }
            *input += 1;
        }
        Ok(())
    }
}

/// What the output of an input is like, if it is a file of Parquet.
fn table(tables: &[Option<Arc<Table>>], input: usize) -> Option<&Table> {
    tables.get(input).and_then(Option::as_deref)
}

/// Wakes threads that wait for a chunk which will not be written.
struct FailGuard<'a>(&'a Writer);

impl Drop for FailGuard<'_> {
    fn drop(&mut self) {
        self.0.lock().is_failed = true;
        self.0.changed.notify_all();
    }
}
