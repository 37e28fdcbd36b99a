//! The input files: those of the command line and of lists, all files in folders, and those that
//! patterns match.

use super::source::{is_stdin, name, open};
use crate::args::InputArgs;
use anyhow::{Context, Error, Result, bail};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use walkdir::WalkDir;

/// The files to read.
#[derive(Default)]
pub(crate) struct Files {
    pub(crate) paths: Vec<PathBuf>,
    /// The name of each file in a folder of outputs: its own name, or its path from its folder on.
    pub(crate) names: Vec<PathBuf>,
}

impl Files {
    /// The files of the command line; `-` if there are none.
    pub(crate) fn new(args: &InputArgs) -> Result<Self> {
        let mut files = Self::default();
        for path in &args.files {
            match path.to_str() {
                // A file may have such a name.
                Some(pattern) if is_pattern(pattern) && path.symlink_metadata().is_err() => {
                    files.add_matches(pattern)?;
                }
                _ => files.add(path)?,
            }
        }
        let (list, end) = match (&args.files_from, &args.files0_from) {
            (Some(list), _) => (list, b'\n'),
            (_, Some(list)) => (list, 0),
            _ => {
                if args.files.is_empty() {
                    files.add(Path::new("-"))?;
                }
                return Ok(files);
            }
        };
        let add = |files: &mut Self| -> Result<()> {
            let mut names = Vec::new();
            open(list)?.read_to_end(&mut names)?;
            for name in names.split(|&byte| byte == end) {
                // A list with CRLF names the same files.
                let name = match name {
                    [name @ .., b'\r'] if end == b'\n' => name,
                    name => name,
                };
                if !name.is_empty() {
                    files.add(&path(name)?)?;
                }
            }
            Ok(())
        };
        add(&mut files).with_context(|| format!("the list of files {}", name(list)))?;
        if is_stdin(list) && files.paths.iter().any(|path| is_stdin(path)) {
            bail!("stdin cannot be both the list of files and one of them");
        }
        Ok(files)
    }

    /// Adds the files that a pattern matches, and all files in folders that it matches, by their
    /// paths in order. Each is there once, with the name that it has if the folder before the
    /// first wildcard is given.
    fn add_matches(&mut self, pattern: &str) -> Result<()> {
        let is_plain = |part: &Component| !is_pattern(&part.as_os_str().to_string_lossy());
        let base: PathBuf = Path::new(pattern).components().take_while(is_plain).collect();
        let own_name = base.file_name().map(PathBuf::from).unwrap_or_default();
        let mut found = Self::default();
        // `**` alone would match folders below the first one, without the files in that.
        let rest = if pattern.ends_with("**") { "/*" } else { "" };
        let matches = glob::glob(&format!("{pattern}{rest}")).with_context(|| format!("the pattern {pattern}"))?;
        for path in matches {
            found.add(&path.with_context(|| format!("the pattern {pattern}"))?)?;
        }
        if found.paths.is_empty() {
            bail!("no file matches {pattern}");
        }
        let names = found.paths.into_iter().map(|path| {
            let below = path.strip_prefix(&base).unwrap_or(&path);
            (path.clone(), own_name.join(below))
        });
        for (path, name) in BTreeMap::from_iter(names) {
            self.paths.push(path);
            self.names.push(name);
        }
        Ok(())
    }

    /// Adds a file, or all files in a folder. What cannot be read is an error when it is opened.
    fn add(&mut self, path: &Path) -> Result<()> {
        let own_name = path.file_name().map(PathBuf::from).unwrap_or_default();
        if !path.is_dir() {
            self.paths.push(path.to_owned());
            self.names.push(own_name);
            return Ok(());
        }
        for entry in WalkDir::new(path).sort_by_file_name() {
            let entry = entry.map_err(|error| {
                let at = error.path().unwrap_or(path).display().to_string();
                let error = error
                    .into_io_error()
                    .map_or_else(|| Error::msg("a circle of links"), Error::new);
                error.context(format!("cannot read {at}"))
            })?;
            if entry.file_type().is_file() {
                let below = entry.path().strip_prefix(path).expect("it is below the folder");
                self.names.push(own_name.join(below));
                self.paths.push(entry.into_path());
            }
        }
        Ok(())
    }
}

/// Whether a name has wildcards.
fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// The path of these bytes.
#[cfg(unix)]
fn path(bytes: &[u8]) -> Result<PathBuf> {
    Ok(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes).into())
}

#[cfg(not(unix))]
fn path(bytes: &[u8]) -> Result<PathBuf> {
    let text = std::str::from_utf8(bytes);
    Ok(text
        .with_context(|| format!("the name \"{}\"", bytes.escape_ascii()))?
        .into())
}
