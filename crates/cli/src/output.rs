//! Files that are written as a whole or not at all: filter files, states, tables, charts.

use crate::identity::FileId;
use crate::input::{self, is_stdin};
use crate::stdout;
use anyhow::{Context, Result, bail};
use lanebloom::codec::replace_file;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The file that a command writes. It is replaced as a whole; `-` is stdout.
pub(crate) struct Output {
    path: PathBuf,
    /// The path as it was given.
    name: String,
}

impl Output {
    /// Fails early if the file could not be replaced in the end.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let path = if is_stdin(path) {
            path.into()
        } else {
            target(path).with_context(|| format!("cannot write {name}"))?
        };
        Ok(Self { path, name })
    }

    /// Fails if the file is one of the inputs, whose bytes would be lost.
    pub(crate) fn refuse_inputs(&self, inputs: &[PathBuf]) -> Result<()> {
        if is_stdin(&self.path) {
            return Ok(());
        }
        let output = FileId::at(&self.path)?;
        let is_output = |input: &PathBuf| output.is_some() && input::identity(input).ok().flatten() == output;
        if inputs.iter().any(is_output) {
            bail!("cannot write {}: it is also an input", self.name);
        }
        Ok(())
    }

    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        if is_stdin(&self.path) {
            let written = stdout::open().and_then(|file| buffered(&file, write));
            return written.context("cannot write to stdout");
        }
        replace(&self.path, write).with_context(|| format!("cannot write {}", self.name))
    }
}

/// The file that a path names. A link stays, and its target is replaced. Fails if that could not
/// be.
pub(crate) fn target(path: &Path) -> Result<PathBuf> {
    let path = match (fs::canonicalize(path), fs::read_link(path)) {
        // A link to a file that is not there yet. (A circle of links is another error.)
        (Err(error), Ok(link)) if error.kind() == ErrorKind::NotFound => return target(&path.with_file_name(link)),
        (Err(error), _) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        (canonical, _) => canonical?,
    };
    match fs::metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        other => {
            let metadata = other?;
            if metadata.is_dir() {
                bail!("it is a directory");
            }
            if !metadata.is_file() {
                bail!("it is not a regular file");
            }
        }
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    tempfile::tempfile_in(folder.unwrap_or(Path::new("."))).context("no file can be created in its folder")?;
    Ok(path)
}

/// Replaces a file.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    replace_file(path, |file| buffered(file, write))
}

fn buffered(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    write(&mut writer)?;
    writer.flush()
}
