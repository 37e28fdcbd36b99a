//! The inputs that a state has seen, in a file beside the state, which has a checksum.
//!
//! An input is known by its size and hash: its path may be another one in the next run, as in a
//! container that mounts the folder elsewhere. Where outputs lie is told from the journal's folder.
//!
//! A state that holds the documents of an input whose output is not there would remove them all in
//! the next run. So a state needs its journal, and the state, the journal and the outputs change
//! together. To save the work,
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

use super::writer::{UnfinishedOutput, rename};
use anyhow::{Context, Result, bail, ensure};
use lanebloom_files::claims::resolved;
use lanebloom_files::input::{Digest, digested, is_stdin};
use lanebloom_files::journal::{Content, Done, Next, bad, compare, path_of, read, stranger};
use lanebloom_files::seen::Seen;
use lanebloom_files::state_file::StateFile;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The journal of a state, which a run goes on with.
pub(super) struct Journal {
    path: PathBuf,
    settings: String,
    state: StateFile,
    done: Vec<Done>,
}

/// A path as it is told from a folder; an absolute one if they have nothing in common.
fn relative(path: &Path, folder: &Path) -> PathBuf {
    let both = path.components().zip(folder.components());
    let common = both.take_while(|(one, other)| one == other).count();
    let parts = Vec::from_iter(path.components().take(common));
    if !parts.iter().any(|part| matches!(part, Component::Normal(_))) {
        return path.to_owned();
    }
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    up.chain(path.components().skip(common)).collect()
}

impl Journal {
    /// Opens the journal of a state, and finishes or takes back what a killed run left. A state has
    /// one, unless it `is_new`.
    pub(super) fn open(state: StateFile, settings: &str, is_new: bool) -> Result<Self> {
        let path = path_of(state.path());
        let now = state.id()?;
        let mut journal = Self {
            settings: settings.to_owned(),
            state,
            done: Vec::new(),
            path,
        };
        let (path, state) = (&journal.path, journal.state.path());
        let content = match (read(path)?, now) {
            (Some(_), _) if is_new => bail!("{} is there already: leave --new-journal out", path.display()),
            (Some(content), _) => content,
            (None, Some(_)) if !is_new => bail!(
                "the state {} has no journal {}: all documents of an input that it has seen would be removed. \
                 Restore the journal; or give --new-journal, and only inputs that it has not seen",
                state.display(),
                path.display()
            ),
            (None, _) => return Ok(journal),
        };
        compare(state, &content.settings, settings)?;
        let Some(inputs) = content.inputs else {
            bail!(
                "the state {} is a filter of --build, and its journal names no inputs. Give it to --against; or remove \
                 {}, and give --new-journal and only inputs that the filter has not seen",
                state.display(),
                path.display()
            );
        };
        let folder = journal.folder();
        let names = |(from, to): &(String, String)| {
            let (from, to) = (folder.join(from), folder.join(to));
            // A foreign journal must not move or remove other files.
            ensure!(from == UnfinishedOutput::path(&to), bad(path));
            Ok((from, to))
        };
        match content.next {
            Some(next) if now == Some(next.state) => {
                for pair in &next.outputs {
                    let (from, to) = names(pair)?;
                    // Otherwise it has its name already.
                    if from.exists() {
                        rename(&from, &to)?;
                    } else if !to.exists() {
                        lanebloom_files::note(&format!(
                            "lanebloom-corpus: {}, which the last run wrote, is not there any more",
                            to.display()
                        ));
                    }
                }
                journal.done = next.inputs;
                journal.content()?.write(&journal.path)?;
            }
            next if now == content.state => {
                for pair in next.iter().flat_map(|next| &next.outputs) {
                    // If this fails, the run that writes the output replaces it.
                    let _ = fs::remove_file(names(pair)?.0);
                }
                journal.done = inputs;
            }
            _ => bail!(stranger(path)),
        }
        Ok(journal)
    }

    pub(super) fn state(&self) -> &StateFile {
        &self.state
    }

    /// Whether the state has seen inputs.
    pub(super) fn has_inputs(&self) -> bool {
        !self.done.is_empty()
    }

    /// The folder from which outputs are told.
    fn folder(&self) -> PathBuf {
        let state = resolved(self.state.path());
        state.parent().unwrap_or(Path::new("")).to_owned()
    }

    /// Says which inputs are done. Fails if one was, and has changed since.
    pub(super) fn have(&self, paths: &[PathBuf]) -> Result<Vec<Known>> {
        let by_path: HashMap<&str, &Done> = self.done.iter().map(|done| (&done.path[..], done)).collect();
        let sizes: HashSet<u64> = self.done.iter().map(|done| done.bytes).collect();
        // Other inputs are not read for this.
        let now = |path: &PathBuf| {
            let Some(name) = name(path)? else {
                return Ok(None);
            };
            let is_like = by_path.contains_key(&name[..]) || sizes.contains(&fs::metadata(path)?.len());
            if is_like { done_now(path) } else { Ok(None) }
        };
        let now = paths.iter().map(now).collect::<Result<Vec<_>>>()?;
        let exact: HashSet<&Done> = self.done.iter().collect();
        // One of two inputs with equal bytes may be done, and the other one not.
        let mut left: HashMap<(u64, u64), usize> = HashMap::new();
        for done in &self.done {
            *left.entry(content(done)).or_default() += 1;
        }
        let mut known = vec![Known::No; paths.len()];
        for (now, known) in now.iter().zip(&mut known) {
            let Some(now) = now.as_ref().filter(|now| exact.contains(now)) else {
                continue;
            };
            *known = Known::ByPath;
            left.entry(content(now))
                .and_modify(|left| *left = left.saturating_sub(1));
        }
        for (now, known) in now.iter().zip(&mut known).filter(|(_, known)| **known == Known::No) {
            let Some(now) = now else {
                continue;
            };
            match left.get_mut(&content(now)) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    *known = Known::ByContent;
                }
                _ if by_path.contains_key(&now.path[..]) => bail!(
                    "{} has changed since the state got its documents: those that it still has would all be removed. \
                     Give the new documents in a file of their own, or begin anew without the state",
                    now.path
                ),
                _ => {}
            }
        }
        Ok(known)
    }

    /// Saves the state after some more inputs, and gives their outputs the names.
    pub(super) fn save(&mut self, seen: &Seen, done: Vec<Done>, mut outputs: Vec<UnfinishedOutput>) -> Result<()> {
        let folder = self.folder();
        let name = |path: &Path| text(&relative(&resolved(path), &folder));
        let names = outputs
            .iter()
            .map(|output| Ok((name(&output.path)?, name(&output.to)?)));
        let names = names.collect::<Result<_>>()?;
        let next = [&self.done[..], &done].concat();
        let content = self.content()?;
        self.state.save(seen, |state| {
            let next = Next {
                state,
                inputs: next.clone(),
                outputs: names,
            };
            let next = Some(next);
            Content { next, ..content }.write(&self.path)?;
            // From here on the journal decides about them, even if a name cannot be given now.
            outputs.iter_mut().for_each(UnfinishedOutput::keep);
            Ok(())
        })?;
        outputs.into_iter().try_for_each(UnfinishedOutput::commit)?;
        self.done = next;
        self.content()?.write(&self.path)
    }

    /// The journal's content now, without a next point.
    fn content(&self) -> Result<Content> {
        Ok(Content {
            settings: self.settings.clone(),
            state: self.state.id()?,
            inputs: Some(self.done.clone()),
            next: None,
        })
    }
}

/// A path in the journal.
fn text(path: &Path) -> Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("the name {path:?} is not UTF-8, as a journal needs it"))
}

/// The name of an input in the journal; `None` for stdin and for a pipe without a name.
fn name(path: &Path) -> Result<Option<String>> {
    // A file may have the name `-`.
    if is_stdin(path) {
        return Ok(None);
    }
    match fs::canonicalize(path) {
        Ok(path) if path.is_file() => text(&path).map(Some),
        // A pipe of the shell has no name either, and gives other bytes in each run.
        Ok(_) => bail!(
            "{} is not a regular file, so its bytes cannot be known again. Give them by stdin, and in one run only",
            path.display()
        ),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Whether an input is done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Known {
    No,
    ByPath,
    /// Its bytes had another path.
    ByContent,
}

/// The identity of an input, wherever it lies.
fn content(done: &Done) -> (u64, u64) {
    (done.bytes, done.hash)
}

/// An input as it is now; `None` if it has no name.
pub(super) fn done_now(path: &Path) -> Result<Option<Done>> {
    done_with(path, &Digest::default())
}

/// The same. The input is read, unless its digest is known.
pub(super) fn done_with(path: &Path, digest: &Digest) -> Result<Option<Done>> {
    let Some(name) = name(path)? else {
        return Ok(None);
    };
    if digest.get().is_none() {
        let file = File::open(path).and_then(|file| digested(file, digest));
        let file = file.map(|file| BufReader::with_capacity(1 << 20, file));
        let read = file.and_then(|mut file| io::copy(&mut file, &mut io::sink()));
        read.with_context(|| format!("cannot read {}", path.display()))?;
    }
    let (bytes, hash) = *digest.get().expect("it was read to its end");
    Ok(Some(Done {
        path: name,
        bytes,
        hash,
    }))
}
