//! Files that are written as a whole or not at all: filter files, states, tables, charts, lines.

use crate::claims::{Claims, OUTPUT};
use crate::input::{Files, Stamp, is_compressed, is_stdin, no_text};
use crate::unfinished::{is_unfinished, replace_file};
use crate::{stdout, xattrs};
use anyhow::{Context, Result, bail};
use std::collections::HashSet;
use std::env;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file that a command writes. It is replaced as a whole; `-` is stdout.
pub struct Output {
    path: PathBuf,
    /// The path as it was given.
    name: String,
    /// The stamp of the file before the run, if it is also the input.
    stamp: Option<Stamp>,
}

impl Output {
    /// Fails early if the file could not be replaced in the end.
    pub fn new(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let path = if is_stdin(path) {
            path.into()
        } else {
            target(path).with_context(|| format!("cannot write {name}"))?
        };
        Ok(Self {
            path,
            name,
            stamp: None,
        })
    }

    /// The path of the file; `-` for stdout.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Claims the file, which has this role.
    pub fn claim(&self, claims: &mut Claims, role: &'static str) -> Result<()> {
        claims.writes(role, &self.path, &self.name)
    }

    /// The path as it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The output that takes the place of an input file, whose lines end with zeros if `null`.
    fn in_place(path: &Path, null: bool) -> Result<Self> {
        if is_stdin(path) {
            bail!("--in-place needs files: stdin cannot be replaced");
        }
        let failed = || format!("cannot read {}", path.display());
        let metadata = fs::metadata(path).with_context(failed)?;
        let output = Self::new(path)?;
        if metadata.permissions().readonly() {
            bail!("cannot write {}: it is read-only", output.name);
        }
        if let Some(reason) = no_text(path, null).with_context(failed)? {
            bail!("cannot write {}: {reason}", output.name);
        }
        Ok(Self {
            stamp: Some(Stamp::at(path).with_context(failed)?),
            ..output
        })
    }

    /// Gives the new file, or stdout, to `write`. The old one stays if this fails, and if it would
    /// be replaced by the same lines.
    pub fn fill<T>(&self, write: impl FnOnce(&mut File) -> Result<T>) -> Result<T> {
        if is_stdin(&self.path) {
            return write(&mut stdout::open().context("cannot write the output")?);
        }
        // The result of `write`, if the new file is not to stay.
        let mut dropped = None;
        let replaced = replace_file(&self.path, |file| {
            let done = write(file).and_then(|done| Ok((self.is_to_replace(file)?, done)));
            match done {
                Ok((true, done)) => {
                    if self.stamp.is_some() {
                        xattrs::keep(&self.path, file);
                    }
                    return Ok(done);
                }
                Ok((false, done)) => dropped = Some(Ok(done)),
                Err(error) => dropped = Some(Err(error)),
            }
            Err(io::Error::other("the new file is not to stay"))
        });
        dropped.unwrap_or_else(|| replaced.with_context(|| format!("cannot write {}", self.name)))
    }

    /// Whether the new file has other lines than the old one, which it takes from the old one.
    fn is_to_replace(&self, new: &File) -> Result<bool> {
        let Some(stamp) = &self.stamp else {
            return Ok(true);
        };
        if Stamp::at(&self.path).ok().as_ref() != Some(stamp) {
            bail!("{} changed during the run, and is left as it is", self.name);
        }
        Ok(new.metadata()?.len() != stamp.len)
    }

    pub fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        if is_stdin(&self.path) {
            let written = stdout::open().and_then(|file| buffered(&file, write));
            return written.context("cannot write to stdout");
        }
        replace(&self.path, write).with_context(|| format!("cannot write {}", self.name))
    }
}

/// The file that a path names. A link stays, and its target is replaced. Fails if that could not
/// be.
pub fn target(path: &Path) -> Result<PathBuf> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        other => {
            let metadata = other?;
            if metadata.is_dir() {
                bail!("it is a directory");
            }
            if !metadata.is_file() {
                bail!("it is not a regular file; `-o -` writes to stdout");
            }
            if let Some(reason) = stdout::is_open_as(path) {
                bail!(reason);
            }
        }
    }
    let path = match (fs::canonicalize(path), fs::read_link(path)) {
        // A link to a file that is not there yet. (A circle of links is another error.)
        (Err(error), Ok(link)) if error.kind() == ErrorKind::NotFound => return target(&path.with_file_name(link)),
        (Err(error), _) if error.kind() == ErrorKind::NotFound => path.to_owned(),
        (canonical, _) => canonical?,
    };
    if is_unfinished(&path) {
        bail!("no run reads a file with this name, that of an unfinished file: give another name");
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    tempfile::tempfile_in(folder.unwrap_or(Path::new("."))).context("no file can be created in its folder")?;
    Ok(path)
}

/// Replaces a file.
pub fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    replace_file(path, |file| buffered(file, write))
}

pub(crate) fn buffered(file: &File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    write(&mut writer)?;
    writer.flush()
}

/// Where the lines of the inputs go: one file, or one for each input.
pub struct Outputs {
    all: Vec<Output>,
    is_apart: bool,
}

impl Outputs {
    /// One file, or files with the names of the inputs in a folder. Fails early if an output could
    /// not be written in the end. With `unpacks`, the names lose the endings `.gz` and `.zst` of
    /// compressed inputs.
    pub fn new(output: Option<&Path>, folder: Option<&Path>, files: &Files, unpacks: bool) -> Result<Self> {
        match folder {
            Some(folder) => Self::in_folder(folder, files, unpacks),
            None => Ok(Self {
                all: vec![Output::new(output.unwrap_or(Path::new("-")))?],
                is_apart: false,
            }),
        }
    }

    /// The inputs themselves, whose lines end with zeros if `null`.
    pub fn in_place(files: &Files, null: bool) -> Result<Self> {
        if let Some(link) = &files.link {
            bail!(
                "cannot write {}: a link in a folder leads to it, perhaps out of the folder; name the file itself to \
                 replace it",
                link.display()
            );
        }
        let outputs = files.paths.iter().map(|path| Output::in_place(path, null));
        Self::different(outputs.collect::<Result<_>>()?)
    }

    fn in_folder(folder: &Path, files: &Files, unpacks: bool) -> Result<Self> {
        let mut outputs = Vec::new();
        for (path, name) in files.paths.iter().zip(&files.names) {
            let failed = || format!("cannot read {}", path.display());
            if is_stdin(path) {
                bail!("--output-dir needs files: stdin has no name");
            }
            if !fs::metadata(path).with_context(failed)?.is_file() {
                bail!("--output-dir needs files: {} is not a regular file", path.display());
            }
            let mut to = folder.join(name);
            if unpacks
                && is_compressed(path).with_context(failed)?
                && to.extension().is_some_and(|end| end == "gz" || end == "zst")
            {
                to.set_extension("");
            }
            let parent = to.parent().unwrap_or(folder);
            fs::create_dir_all(parent).with_context(|| format!("cannot make the folder {}", parent.display()))?;
            outputs.push(Output::new(&to)?);
        }
        Self::different(outputs)
    }

    /// Fails if two inputs have the same output.
    fn different(all: Vec<Output>) -> Result<Self> {
        let mut paths = HashSet::new();
        if let Some(output) = all.iter().find(|output| !paths.insert(&output.path)) {
            bail!("cannot write {}: two inputs have this output", output.name);
        }
        Ok(Self { all, is_apart: true })
    }

    /// Claims the files.
    pub fn claim(&self, claims: &mut Claims) -> Result<()> {
        self.all.iter().try_for_each(|output| output.claim(claims, OUTPUT))
    }

    pub fn all(&self) -> &[Output] {
        &self.all
    }

    /// Whether each input has an output of its own.
    pub fn is_apart(&self) -> bool {
        self.is_apart
    }

    /// Gives the file to write to `write`, which returns also where the bytes of each input end in
    /// it. If this fails, all files are as before, unless the failure is that of a file which is
    /// replaced: then those before it are new.
    pub fn fill<T>(&self, write: impl FnOnce(&File) -> Result<(T, Vec<u64>)>) -> Result<T> {
        if let [output] = &self.all[..] {
            return output.fill(|file| Ok(write(file)?.0));
        }
        // One file for all outputs: a process may have few files open.
        let mut all = tempfile::tempfile()
            .with_context(|| format!("cannot make a temporary file in {}", env::temp_dir().display()))?;
        let (done, ends) = write(&all)?;
        let mut start = 0;
        for (output, end) in self.all.iter().zip(ends) {
            output.fill(|file| {
                all.seek(SeekFrom::Start(start))?;
                let copied = io::copy(&mut (&all).take(end - start), file);
                copied.with_context(|| format!("cannot write {}", output.name))
            })?;
            start = end;
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines that another program appends meanwhile would be lost.
    #[test]
    fn a_file_that_changes_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b"].map(|name| folder.path().join(name));
        for (len, now) in [(1, Some("1\n1\n2\n")), (2, Some("1\n1\n2\n")), (1, None)] {
            paths.iter().for_each(|path| fs::write(path, "1\n1\n").unwrap());
            let outputs = paths[..len].iter().map(|path| Output::in_place(path, false).unwrap());
            let outputs = Outputs::different(outputs.collect()).unwrap();
            let filled = outputs.fill(|mut file| {
                file.write_all(b"1\n1\n1\n")?;
                match now {
                    Some(text) => fs::write(&paths[0], text)?,
                    None => fs::remove_file(&paths[0])?,
                }
                Ok(((), vec![2, 6]))
            });
            let error = filled.unwrap_err().to_string();
            assert!(error.contains("changed during the run"), "{error}");
            assert_eq!(fs::read_to_string(&paths[0]).ok().as_deref(), now);
            assert_eq!(fs::read(&paths[1]).unwrap(), b"1\n1\n");
            let files = 1 + usize::from(now.is_some());
            assert_eq!(
                fs::read_dir(&folder).unwrap().count(),
                files,
                "nothing is left beside them"
            );
        }
    }
}
