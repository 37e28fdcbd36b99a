//! The journal of a filter: what its hashes mean, and the inputs that it has seen. It is a JSON
//! file with a checksum beside the filter. `lanebloom-corpus` makes journals, and `lanebloom merge`
//! keeps them.

use crate::claims::resolved;
use crate::input::is_stdin;
use crate::output;
use crate::state_file::id_of;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// An input that is done.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Done {
    pub path: String,
    pub bytes: u64,
    pub hash: u64,
}

/// The size of a filter's file and a hash of its end.
pub type Id = Option<(u64, u64)>;

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
    let Some(value) = read(&path)? else {
        return Ok(None);
    };
    // A run that saves a state has replaced it, or will.
    let now = id_of(file).ok();
    if now != id(&value["state"]) && now != id(&value["next"]["state"]) {
        bail!(stranger(&path));
    }
    let settings = value["settings"].as_str().map(str::to_owned);
    Ok(Some(settings.with_context(|| bad(&path))?))
}

/// The inputs of filters that become one; `None` unless each has a journal.
pub fn merged(filters: &[PathBuf]) -> Result<Option<Content>> {
    let mut merged: Option<Content> = None;
    for filter in filters {
        let path = path_of(filter);
        let Some(value) = (if is_stdin(filter) { None } else { read(&path)? }) else {
            return Ok(None);
        };
        let failed = || bad(&path);
        let settings = value["settings"].as_str().with_context(failed)?.to_owned();
        if !value["next"].is_null() {
            bail!(
                "a run with the state {} was killed: run it again before",
                filter.display()
            );
        }
        let inputs = match &value["inputs"] {
            // A filter of --build.
            Value::Null => None,
            inputs => Some(done(inputs).with_context(failed)?),
        };
        if id(&value["state"]) != id_of(&File::open(filter)?).ok() {
            bail!(stranger(&path));
        }
        let Some(merged) = &mut merged else {
            merged = Some(Content { settings, inputs });
            continue;
        };
        compare(filter, &settings, &merged.settings)?;
        merged.inputs = merged.inputs.take().zip(inputs).map(|(all, more)| {
            let known: HashSet<Done> = all.iter().cloned().collect();
            let more = more.into_iter().filter(|done| !known.contains(done));
            all.iter().cloned().chain(more).collect()
        });
    }
    Ok(merged)
}

/// The content of a journal. The journal of --build has no inputs.
pub struct Content {
    pub settings: String,
    pub inputs: Option<Vec<Done>>,
}

impl Content {
    /// Writes the journal of the filter.
    pub fn write(self, filter: &Path) -> Result<()> {
        let (len, hash) = id_of(&File::open(filter)?)?;
        let mut value = json!({"settings": self.settings, "state": [len, hash]});
        if let Some(done) = self.inputs {
            value["inputs"] = inputs(&done);
            value["next"] = Value::Null;
        }
        write(&path_of(filter), value)
    }
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
pub fn read(path: &Path) -> Result<Option<Value>> {
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
    Ok(Some(value))
}

/// Fails if the journal of a filter would replace another file.
pub fn refuse_to_replace(filter: &Path) -> Result<()> {
    let path = path_of(filter);
    let read = read(&path).with_context(|| format!("cannot replace {}", path.display()));
    read.map(drop)
}

/// Writes a journal, which is an object.
pub fn write(path: &Path, mut value: Value) -> Result<()> {
    value[CHECKSUM] = checksum(&value).into();
    let written = output::replace(path, |writer| writeln!(writer, "{value:#}"));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// The id of a filter in a journal.
pub fn id(value: &Value) -> Id {
    let number = |at: usize| value.get(at).and_then(Value::as_u64);
    number(0).zip(number(1))
}

/// The inputs in a journal.
pub fn done(value: &Value) -> Option<Vec<Done>> {
    let each = |value: &Value| {
        Some(Done {
            path: value["path"].as_str()?.into(),
            bytes: value["bytes"].as_u64()?,
            hash: value["hash"].as_u64()?,
        })
    };
    value.as_array()?.iter().map(each).collect()
}

/// The inputs, as they are in a journal.
pub fn inputs(done: &[Done]) -> Value {
    let each = |done: &Done| json!({"path": done.path, "bytes": done.bytes, "hash": done.hash});
    done.iter().map(each).collect()
}
