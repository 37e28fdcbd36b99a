//! The journal of a filter: what its hashes mean, and the inputs that it has seen. It is a JSON
//! file with a checksum beside the filter. `lanebloom-corpus` makes journals, and `lanebloom merge`
//! keeps them.

use crate::claims::resolved;
use crate::input::is_stdin;
use crate::output;
use crate::state_file::{Id, id_of};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// The content of a journal.
#[derive(Default, Deserialize, Serialize)]
pub struct Content {
    /// The settings on which the hashes depend, as options.
    pub settings: String,
    /// The filter beside the journal; `None` if there is none yet.
    pub state: Option<Id>,
    /// `None` for a filter of --build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Vec<Done>>,
    /// The next point, while a run saves its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Next>,
}

/// An input that is done.
#[derive(Clone, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub struct Done {
    pub path: String,
    pub bytes: u64,
    pub hash: u64,
}

/// The point that follows the present one.
#[derive(Deserialize, Serialize)]
pub struct Next {
    pub state: Id,
    pub inputs: Vec<Done>,
    /// The path of each output before it is complete, and its own.
    pub outputs: Vec<(String, String)>,
}

/// The path of the journal of a state or of another filter. If a link leads to the filter, the
/// journal is beside the file.
pub fn path_of(filter: &Path) -> PathBuf {
    let filter = resolved(filter);
    let mut name = filter.file_name().unwrap_or_default().to_owned();
    name.push(".journal");
    filter.with_file_name(name)
}

/// The settings in the journal of a filter, if it has one. Fails if the journal is another
/// filter's.
pub fn settings_of(filter: &Path, file: &File) -> Result<Option<String>> {
    let path = path_of(filter);
    let Some(content) = read(&path)? else {
        return Ok(None);
    };
    // A run that saves a state has replaced it, or will.
    let next = content.next.map(|next| next.state);
    if ![content.state, next].contains(&id_of(file).ok()) {
        bail!(stranger(&path));
    }
    Ok(Some(content.settings))
}

/// The journal of filters that become one; `None` unless each has a journal.
pub fn merged(filters: &[PathBuf]) -> Result<Option<Content>> {
    let mut merged: Option<Content> = None;
    for filter in filters {
        let path = path_of(filter);
        let Some(content) = (if is_stdin(filter) { None } else { read(&path)? }) else {
            return Ok(None);
        };
        if content.next.is_some() {
            bail!(
                "a run with the state {} was killed: run it again before",
                filter.display()
            );
        }
        if content.state != id_of(&File::open(filter)?).ok() {
            bail!(stranger(&path));
        }
        let Some(merged) = &mut merged else {
            merged = Some(content);
            continue;
        };
        compare(filter, &content.settings, &merged.settings)?;
        merged.inputs = merged.inputs.take().zip(content.inputs).map(|(mut all, more)| {
            let known: HashSet<Done> = all.iter().cloned().collect();
            all.extend(more.into_iter().filter(|done| !known.contains(done)));
            all
        });
    }
    Ok(merged)
}

/// The error of a journal that belongs to another filter.
pub fn stranger(path: &Path) -> String {
    format!(
        "{} does not belong to the filter beside it, which another program or a killed run has changed: the options \
         and inputs in it would be wrong. Restore both files, or remove both and begin anew",
        path.display()
    )
}

/// Fails if the hashes of two filters mean something else.
pub fn compare(filter: &Path, theirs: &str, ours: &str) -> Result<()> {
    if theirs != ours {
        bail!(
            "{} was made with other options: {theirs}; these are: {ours}. Give the options of the file",
            filter.display()
        );
    }
    Ok(())
}

/// The error of a file that is not a journal.
pub fn bad(path: &Path) -> String {
    format!("{} is not a journal of lanebloom-corpus", path.display())
}

/// The member with the hash of all others, as text without white space.
const CHECKSUM: &str = "checksum";

fn checksum(value: &Value) -> String {
    format!("{:016x}", XxHash3_64::oneshot(value.to_string().as_bytes()))
}

/// Reads a journal; `None` if there is none.
pub fn read(path: &Path) -> Result<Option<Content>> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let mut value: Value = serde_json::from_slice(&bytes).with_context(|| bad(path))?;
    let members = value.as_object_mut().with_context(|| bad(path))?;
    let theirs = members.remove(CHECKSUM).with_context(|| bad(path))?;
    if theirs != checksum(&value) {
        bail!(
            "the journal {} is damaged: its checksum is wrong. Restore it and the filter beside it, or begin anew \
             without both",
            path.display()
        );
    }
    serde_json::from_value(value).with_context(|| bad(path))
}

/// Fails if the journal of a filter would replace another file.
pub fn refuse_to_replace(filter: &Path) -> Result<()> {
    let path = path_of(filter);
    let read = read(&path).with_context(|| format!("cannot replace {}", path.display()));
    read.map(drop)
}

impl Content {
    /// Writes the journal of this filter.
    pub fn write_beside(mut self, filter: &Path) -> Result<()> {
        self.state = Some(id_of(&File::open(filter)?)?);
        self.write(&path_of(filter))
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        let mut value = serde_json::to_value(self)?;
        value[CHECKSUM] = checksum(&value).into();
        let written = output::replace(path, |writer| writeln!(writer, "{value:#}"));
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}
