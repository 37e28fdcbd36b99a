//! The inputs that a state has seen, in a file beside the state.
//!
//! A state that holds the documents of an input whose output is not there would remove them all in
//! the next run. So the state, the journal and the outputs change together. To save the work,
//!
//! 1. the outputs are completed under other names,
//! 2. the journal gets the point that comes next: the new state's id, the inputs, the names of the
//!    outputs,
//! 3. the state is replaced, which decides,
//! 4. the outputs get their names,
//! 5. the journal gets the new point as the present one.
//!
//! A run that finds a next point in the journal compares the state's id: it finishes the steps 4
//! and 5, or removes the outputs of step 1.

use super::writer::{Part, rename};
use crate::growing_filter::GrowingFilter;
use crate::input::{Digest, digested};
use crate::output;
use crate::state_file::StateFile;
use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

/// An input that is done.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Done {
    path: String,
    pub(super) bytes: u64,
    pub(super) hash: u64,
}

type Id = Option<(u64, u64)>;

pub(super) struct Journal {
    path: PathBuf,
    settings: String,
    state: StateFile,
    done: Vec<Done>,
}

/// The path of the journal of a state or of another filter.
pub(super) fn path_of(filter: &Path) -> PathBuf {
    let mut name = filter.file_name().unwrap_or_default().to_owned();
    name.push(".journal");
    filter.with_file_name(name)
}

/// The settings in the journal of a filter, if it has one.
pub(super) fn settings_of(filter: &Path) -> Result<Option<String>> {
    let path = path_of(filter);
    let Some(value) = read(&path)? else {
        return Ok(None);
    };
    let settings = value["settings"].as_str().map(str::to_owned);
    Ok(Some(settings.with_context(|| bad(&path))?))
}

/// Fails if the hashes of two filters mean something else.
pub(super) fn compare(filter: &Path, theirs: &str, ours: &str) -> Result<()> {
    if theirs != ours {
        bail!(
            "{} was made with other options: {theirs}; these are: {ours}",
            filter.display()
        );
    }
    Ok(())
}

fn bad(path: &Path) -> String {
    format!("{} is no journal of lanebloom corpus", path.display())
}

fn read(path: &Path) -> Result<Option<Value>> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.with_context(|| format!("cannot read {}", path.display()))?,
    };
    serde_json::from_slice(&bytes).map(Some).with_context(|| bad(path))
}

fn id(value: &Value) -> Id {
    let number = |at: usize| value.get(at).and_then(Value::as_u64);
    number(0).zip(number(1))
}

fn done(value: &Value) -> Option<Vec<Done>> {
    let each = |value: &Value| {
        Some(Done {
            path: value["path"].as_str()?.into(),
            bytes: value["bytes"].as_u64()?,
            hash: value["hash"].as_u64()?,
        })
    };
    value.as_array()?.iter().map(each).collect()
}

fn inputs(done: &[Done]) -> Value {
    let each = |done: &Done| json!({"path": done.path, "bytes": done.bytes, "hash": done.hash});
    done.iter().map(each).collect()
}

impl Journal {
    /// Opens the journal of a state, and finishes or takes back what a killed run left.
    pub(super) fn open(state: StateFile, settings: &str) -> Result<Self> {
        let path = path_of(state.path());
        let mut journal = Self {
            settings: settings.to_owned(),
            state,
            done: Vec::new(),
            path,
        };
        let Some(value) = read(&journal.path)? else {
            return Ok(journal);
        };
        let failed = || anyhow!(bad(&journal.path));
        let theirs = value["settings"].as_str().ok_or_else(failed)?;
        compare(journal.state.path(), theirs, settings)?;
        let now = journal.state.id()?;
        let next = &value["next"];
        let outputs = || next["outputs"].as_array().into_iter().flatten();
        let names = |pair: &Value| {
            let name = |at: usize| pair.get(at).and_then(Value::as_str).map(PathBuf::from);
            let names = name(0).zip(name(1));
            // A stranger's journal shall not move or remove other files.
            names.filter(|(from, to)| *from == Part::path(to)).ok_or_else(failed)
        };
        if !next.is_null() && now.is_some() && id(&next["state"]) == now {
            for pair in outputs() {
                let (from, to) = names(pair)?;
                // Otherwise it has its name already.
                if from.exists() {
                    rename(&from, &to)?;
                } else if !to.exists() {
                    crate::note(&format!(
                        "lanebloom: {}, which the last run wrote, is not there any more",
                        to.display()
                    ));
                }
            }
            journal.done = done(&next["inputs"]).ok_or_else(failed)?;
            journal.write_now()?;
        } else if id(&value["state"]) == now {
            journal.done = done(&value["inputs"]).ok_or_else(failed)?;
            for pair in outputs() {
                // If this fails, the run that writes the output replaces it.
                let _ = fs::remove_file(names(pair)?.0);
            }
        } else {
            bail!(
                "{} does not belong to the state beside it, which another program has changed: the inputs in it would \
                 be wrong. Restore both files, or remove both and begin anew",
                journal.path.display()
            );
        }
        Ok(journal)
    }

    pub(super) fn state(&self) -> &StateFile {
        &self.state
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Says which inputs are done. Fails if one was, and has changed since.
    pub(super) fn have(&self, paths: &[PathBuf]) -> Result<Vec<bool>> {
        let done: HashMap<&str, &Done> = self.done.iter().map(|done| (&done.path[..], done)).collect();
        paths.iter().map(|path| Self::is_done(&done, path)).collect()
    }

    fn is_done(done: &HashMap<&str, &Done>, path: &Path) -> Result<bool> {
        let Some(done) = name(path)?.and_then(|name| done.get(&name[..]).copied()) else {
            return Ok(false);
        };
        if Some(done) == Done::of(path)?.as_ref() {
            return Ok(true);
        }
        bail!(
            "{} has changed since the state got its documents: those that it still has would all be removed. Give the \
             new documents in a file of their own, or begin anew without the state",
            path.display()
        );
    }

    /// Saves the state after some more inputs, and gives their outputs the names.
    pub(super) fn save(&mut self, filter: &GrowingFilter, done: Vec<Done>, mut outputs: Vec<Part>) -> Result<()> {
        let mut next = self.done.clone();
        next.extend(done);
        // Absolute: the next run may have another working directory.
        let name = |path: &Path| text(&std::path::absolute(path)?);
        let names = outputs
            .iter()
            .map(|part| Ok(json!([name(&part.path)?, name(&part.to)?])));
        let names: Value = names.collect::<Result<_>>()?;
        let file = self.file(self.state.id()?);
        self.state.save(filter, |(len, hash)| {
            file.write(&json!({"state": [len, hash], "inputs": inputs(&next), "outputs": names}))?;
            // From here on the journal decides about them, even if a name cannot be given now.
            outputs.iter_mut().for_each(Part::keep);
            Ok(())
        })?;
        outputs.into_iter().try_for_each(Part::commit)?;
        self.done = next;
        self.write_now()
    }

    fn write_now(&self) -> Result<()> {
        self.file(self.state.id()?).write(&Value::Null)
    }

    /// The journal's file, beside a state with this id.
    fn file(&self, state: Id) -> JournalFile {
        JournalFile {
            path: self.path.clone(),
            present: json!({
                "settings": self.settings,
                "state": state.map(|(len, hash)| json!([len, hash])),
                "inputs": inputs(&self.done),
            }),
        }
    }
}

/// What stands in the file, but for the next point.
struct JournalFile {
    path: PathBuf,
    present: Value,
}

impl JournalFile {
    fn write(mut self, next: &Value) -> Result<()> {
        self.present["next"] = next.clone();
        let written = output::replace(&self.path, |writer| writeln!(writer, "{:#}", self.present));
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// A path in the journal.
fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("the name {path:?} is not UTF-8, as a journal needs it"))
}

/// The name of an input in the journal; `None` if it is no regular file.
fn name(path: &Path) -> Result<Option<String>> {
    match fs::canonicalize(path) {
        Ok(path) if path.is_file() => text(&path).map(Some),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

impl Done {
    /// An input as it is now; `None` if it is no regular file.
    pub(super) fn of(path: &Path) -> Result<Option<Self>> {
        Self::with(path, &Digest::default())
    }

    /// The same. The input is read, unless its digest is known.
    pub(super) fn with(path: &Path, digest: &Digest) -> Result<Option<Self>> {
        let Some(name) = name(path)? else {
            return Ok(None);
        };
        if digest.get().is_none() {
            let file = File::open(path).map(|file| BufReader::with_capacity(1 << 20, digested(file, digest)));
            let read = file.and_then(|mut file| io::copy(&mut file, &mut io::sink()));
            read.with_context(|| format!("cannot read {}", path.display()))?;
        }
        let (bytes, hash) = *digest.get().expect("it was read to its end");
        Ok(Some(Self {
            path: name,
            bytes,
            hash,
        }))
    }
}
