//! The files of a run, and what each is for. A command claims all its files here before it writes
//! anything, so a run replaces only files that were named as outputs.

use crate::args::InputArgs;
use crate::identity::{FileId, regular};
use crate::input::{identity, is_stdin, name};
use crate::stdout;
use anyhow::{Result, bail};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The role of an output for documents, lines or keys. Several files may have it.
pub const OUTPUT: &str = "an output";

pub const INPUT: &str = "an input";

/// The files that were claimed. Links to a file are the same file.
#[derive(Default)]
pub struct Claims(HashMap<Key, Claim>);

/// A file has both keys once it is there.
#[derive(Eq, Hash, PartialEq)]
enum Key {
    Id(FileId),
    Path(PathBuf),
}

struct Claim {
    role: &'static str,
    name: String,
    is_written: bool,
}

impl Claims {
    /// Claims the inputs, and the lists that name them.
    pub fn inputs(&mut self, role: &'static str, args: &InputArgs, files: &[PathBuf]) {
        self.lists(args);
        files.iter().for_each(|path| self.reads(role, path));
    }

    /// Claims the lists of inputs.
    pub fn lists(&mut self, args: &InputArgs) {
        let lists = [&args.files_from, &args.files0_from].into_iter().flatten();
        lists.for_each(|path| self.reads("the list of inputs", path));
    }

    /// Claims a file to read. All of these come before those to write.
    pub fn reads(&mut self, role: &'static str, path: &Path) {
        for key in keys(path, false) {
            self.0.entry(key).or_insert_with(|| Claim {
                role,
                name: name(path),
                is_written: false,
            });
        }
    }

    /// [`writes`](Self::writes) of a file that follows from the path of another one.
    pub fn writes_path(&mut self, role: &'static str, path: &Path) -> Result<()> {
        self.writes(role, path, &path.display().to_string())
    }

    /// Claims a file to write, which has a name in messages. Fails if it has another role too.
    pub fn writes(&mut self, role: &'static str, path: &Path, name: &str) -> Result<()> {
        for key in keys(path, true) {
            match self.0.get(&key) {
                // Hard links among the outputs do no harm, since each name gets a file of its own.
                Some(other) if other.is_written && other.role == role => {}
                Some(other) if other.name == "-" => bail!("{name}: this file is also the output"),
                Some(other) if name == "-" => bail!("{}: this file is also the output", other.name),
                Some(other) if role == OUTPUT => bail!("cannot write {name}: it is also {}", other.role),
                Some(other) => bail!("cannot write {role} {name}: it is also {}", other.role),
                None => {}
            }
            let claim = Claim {
                role,
                name: name.to_owned(),
                is_written: true,
            };
            self.0.insert(key, claim);
        }
        Ok(())
    }
}

/// The identity of a file, whatever links lead to it.
fn keys(path: &Path, is_written: bool) -> Vec<Key> {
    if !is_stdin(path) {
        // A file that cannot be read is an error when it is opened.
        let id = FileId::at(path).ok().flatten().map(Key::Id);
        return id.into_iter().chain([Key::Path(resolved(path))]).collect();
    }
    if !is_written {
        return Vec::from_iter(identity(path).ok().flatten().map(Key::Id));
    }
    // A terminal may be stdin too.
    let stdout = stdout::open()
        .ok()
        .filter(|file| regular(file).is_ok_and(|file| file.is_some()));
    let id = stdout.and_then(|file| FileId::of_file(&file).ok()).map(Key::Id);
    id.into_iter().chain([Key::Path(path.to_owned())]).collect()
}

/// The absolute path of a file without links, also of one that is not there yet.
pub fn resolved(path: &Path) -> PathBuf {
    let of_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        Some(folder.join(path.file_name()?))
    };
    let found = fs::canonicalize(path).ok().or_else(of_folder);
    found.unwrap_or_else(|| path.to_owned())
}
