//! A file of [`Layers`] that is kept from one run to the next.

use crate::layers::Layers;
use crate::output;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The file, which other runs cannot use meanwhile.
pub(crate) struct State {
    path: PathBuf,
    /// The locked file; `None` if there was none.
    file: Option<File>,
}

impl State {
    /// Opens and locks the file. Fails early if it could not be replaced in the end.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let at = || format!("the state {}", path.display());
        // This refuses a named pipe, which would wait for its other end when it is opened.
        let path = &output::target(path).with_context(at)?;
        let file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            other => Some(other.with_context(at)?),
        };
        if let Some(file) = &file {
            let metadata = file.metadata().with_context(at)?;
            if metadata.permissions().readonly() {
                bail!("{} is read-only", at());
            }
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => bail!("{} is in use by another run", at()),
                // A file system without locks.
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {}
                other => other.with_context(at)?,
            }
        }
        let state = Self {
            path: path.to_owned(),
            file,
        };
        if !state.is_current()? {
            bail!("{} was replaced at this moment by another run", at());
        }
        Ok(state)
    }

    /// The layers in the file, or new ones.
    pub(crate) fn load(&self, expected: Option<usize>, rate: Option<f64>) -> Result<Layers> {
        match &self.file {
            Some(file) => Layers::read_from(file, rate).with_context(|| format!("the state {}", self.path.display())),
            None => Layers::new(expected, rate.unwrap_or(crate::layers::RATE)),
        }
    }

    /// Replaces the file. If this fails, the old one is still there.
    pub(crate) fn save(&self, layers: &Layers) -> Result<()> {
        if !self.is_current()? {
            bail!(
                "the state {} was replaced during the run, and is left as it is",
                self.path.display()
            );
        }
        output::replace(&self.path, |writer| layers.write_to(writer))
            .with_context(|| format!("cannot replace the state {}", self.path.display()))
    }

    /// Whether the path still names the file that was opened.
    fn is_current(&self) -> Result<bool> {
        use std::os::unix::fs::MetadataExt;
        let number = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino());
        let now = match fs::metadata(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            other => Some(number(&other?)),
        };
        let opened = self.file.as_ref().map(File::metadata).transpose()?;
        Ok(now == opened.as_ref().map(number))
    }
}
