//! The input files: those of the command line and of lists, all files in folders, and those that
//! patterns match.

use super::BOM;
use super::source::{UTF16, is_stdin, is_utf16, name, open};
use crate::args::InputArgs;
use crate::summary::not_read;
use crate::unfinished::{self, is_unfinished};
use anyhow::{Context, Error, Result, bail};
use glob::Pattern;
use std::collections::HashSet;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use walkdir::WalkDir;

/// The files to read.
#[derive(Default)]
pub struct Files {
    pub paths: Vec<PathBuf>,
    /// The name of each file in a folder of outputs: its own name, or its path from its folder on.
    pub names: Vec<PathBuf>,
    /// A file that was found in a folder by a link: it may be outside of the folder.
    pub link: Option<PathBuf>,
    /// How many files of folders are not read: pipes, devices, links to a folder around them, and
    /// unfinished files of runs.
    pub skipped: usize,
}

impl Files {
    /// The files of the command line; `-` if there are none.
    pub fn new(args: &InputArgs) -> Result<Self> {
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
            if is_utf16(&names) {
                bail!(UTF16);
            }
            let names = names.strip_prefix(BOM).unwrap_or(&names);
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
    /// paths in order. Each has the name that it has if the folder before the first wildcard is
    /// given.
    fn add_matches(&mut self, pattern: &str) -> Result<()> {
        let shown = pattern.replace('\n', "\\n");
        let parts = Vec::from_iter(Path::new(pattern).components());
        let is_plain = |part: &Component| !is_pattern(&part.as_os_str().to_string_lossy());
        let plain = parts.iter().take_while(|part| is_plain(part)).count();
        let (base, rest) = parts.split_at(plain);
        let rest = rest
            .iter()
            .map(|part| Pattern::new(&part.as_os_str().to_string_lossy()));
        let only = Only {
            parts: rest
                .collect::<Result<_, _>>()
                .with_context(|| format!("the pattern {shown}"))?,
            are_folders: pattern.ends_with(std::path::is_separator),
        };
        let (files, skipped) = (self.paths.len(), self.skipped);
        self.walk(&base.iter().collect::<PathBuf>(), &only)?;
        if self.paths.len() > files {
            return Ok(());
        }
        match self.skipped - skipped {
            0 => bail!("no file matches {shown}"),
            skipped => bail!("no file matches {shown}; {}", not_read(skipped)),
        }
    }

    /// Adds a file, or all files in a folder, which has some.
    fn add(&mut self, path: &Path) -> Result<()> {
        if !path.is_dir() {
            if is_unfinished(path) {
                bail!("cannot read {}: {}", path.display(), unfinished::REFUSED);
            }
            // A file that cannot be read is an error when it is opened.
            self.paths.push(path.to_owned());
            self.names.push(path.file_name().map(PathBuf::from).unwrap_or_default());
            return Ok(());
        }
        let (files, skipped) = (self.paths.len(), self.skipped);
        self.walk(path, &Only::default())?;
        if self.paths.len() > files {
            return Ok(());
        }
        let path = path.display();
        match self.skipped - skipped {
            0 => bail!("the folder {path} has no file to read"),
            skipped => bail!("the folder {path} has no file to read; {}", not_read(skipped)),
        }
    }

    /// Adds files in a folder and below, by their paths in order. An empty path is this folder.
    fn walk(&mut self, folder: &Path, only: &Only) -> Result<()> {
        let own_name = folder.file_name().map(PathBuf::from).unwrap_or_default();
        let root = if folder.as_os_str().is_empty() {
            Path::new(".")
        } else {
            folder
        };
        if !root.is_dir() {
            return Ok(());
        }
        // The depth of the link to a folder in which the walk is, and the folders that links led
        // to. Folders with links to each other have more paths than anyone has time for: within a
        // linked folder, a link is followed to a folder that none has led to.
        let (mut linked, mut led_to) = (None, HashSet::new());
        let mut entries = WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter();
        while let Some(entry) = entries.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.skip(error, root, only)?;
                    continue;
                }
            };
            let below = entry
                .path()
                .strip_prefix(root)
                .expect("it is below the folder")
                .to_owned();
            let kind = entry.file_type();
            let found = only.find(&below, kind.is_dir());
            let is_link = entry.depth() > 0 && entry.path_is_symlink();
            linked = linked.filter(|&depth| entry.depth() > depth);
            let leads_again = is_link
                && kind.is_dir()
                && found != Found::Nothing
                && entry
                    .path()
                    .canonicalize()
                    .is_ok_and(|folder| !led_to.insert(folder) && linked.is_some());
            if found == Found::Nothing || leads_again || is_link && is_circle(entry.path()) {
                self.skipped += usize::from(found == Found::Match);
                if kind.is_dir() {
                    entries.skip_current_dir();
                }
            } else if kind.is_dir() {
                linked = linked.or(is_link.then_some(entry.depth()));
            } else if found == Found::Match && kind.is_file() && !is_unfinished(entry.path()) {
                self.names.push(own_name.join(&below));
                self.paths.push(folder.join(&below));
                if is_link || linked.is_some() {
                    self.link.get_or_insert_with(|| folder.join(&below));
                }
            } else {
                self.skipped += usize::from(found == Found::Match);
            }
        }
        Ok(())
    }

    /// Skips what cannot be read in a folder if it is a circle of links, or not wanted.
    fn skip(&mut self, error: walkdir::Error, root: &Path, only: &Only) -> Result<()> {
        let path = error.path().unwrap_or(root).to_owned();
        let found = only.find(path.strip_prefix(root).unwrap_or(&path), false);
        match error.into_io_error() {
            // A link to nothing has no match in it.
            Some(error) if found == Found::Match || found == Found::Around && !path.is_symlink() => {
                Err(Error::new(error).context(format!("cannot read {}", path.display())))
            }
            Some(_) => Ok(()),
            None => {
                self.skipped += usize::from(found == Found::Match);
                Ok(())
            }
        }
    }
}

/// The files of a folder that are wanted: those that a pattern matches, and those in folders that
/// it matches. All by default.
#[derive(Default)]
struct Only {
    /// A pattern for each name of a path below the folder.
    parts: Vec<Pattern>,
    /// Whether it matches folders only.
    are_folders: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Found {
    Match,
    /// A folder that may have a match in it.
    Around,
    Nothing,
}

impl Only {
    /// Whether a path below the folder is wanted.
    fn find(&self, below: &Path, is_folder: bool) -> Found {
        let end = self.parts.len();
        let mut names = below.components();
        if self.are_folders && !is_folder {
            names.next_back();
        }
        // The parts that may match the next name. `**` matches any names, and none.
        let mut may_be_next = vec![false; end + 1];
        may_be_next[0] = true;
        loop {
            for (at, part) in self.parts.iter().enumerate() {
                may_be_next[at + 1] |= may_be_next[at] && part.as_str() == "**";
            }
            if may_be_next[end] {
                return Found::Match;
            }
            let Some(name) = names.next() else { break };
            let name = name.as_os_str().to_string_lossy();
            for (at, part) in self.parts.iter().enumerate().rev() {
                let is_next = may_be_next[at];
                may_be_next[at] &= part.as_str() == "**";
                may_be_next[at + 1] |= is_next && part.as_str() != "**" && part.matches(&name);
            }
        }
        if may_be_next.contains(&true) {
            Found::Around
        } else {
            Found::Nothing
        }
    }
}

/// Whether a link names a folder that the link is in.
fn is_circle(link: &Path) -> bool {
    let parent = link.parent().filter(|parent| !parent.as_os_str().is_empty());
    let around = parent.unwrap_or(Path::new(".")).canonicalize();
    matches!((around, link.canonicalize()), (Ok(around), Ok(folder)) if around.starts_with(&folder))
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
