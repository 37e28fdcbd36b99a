//! The files of a run: inputs, outputs, the journal of the state, and what none of them may be.

use super::args::Args;
use super::journal::{Journal, Known};
use super::rows::Table;
use super::writer;
use anyhow::{Context, Result, bail};
use lanebloom_files::claims::{Claims, INPUT};
use lanebloom_files::input::{Files, is_stdin};
use lanebloom_files::journal::{path_of, refuse_to_replace as refuse_journal};
use lanebloom_files::note;
use lanebloom_files::output::{self, Output, Outputs};
use lanebloom_files::state_file::StateFile;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) struct RunFiles {
    /// The inputs that are left.
    pub(super) inputs: Files,
    /// The number of inputs that are done.
    pub(super) skipped: usize,
    /// The outputs of the inputs that are left; `None` if no documents are written.
    pub(super) outputs: Option<Outputs>,
    pub(super) build: Option<Output>,
    pub(super) report: Option<Output>,
    pub(super) journal: Option<Journal>,
}

impl RunFiles {
    /// Opens the files. Fails before anything is written if one has two roles, or if the documents
    /// of another file would be lost.
    pub(super) fn open(args: &Args, settings: &str) -> Result<Self> {
        let mut inputs = Files::new(&args.input)?;
        let outputs_of = |files: &Files| Outputs::new(args.output.as_deref(), args.output_dir.as_deref(), files, false);
        let outputs = match args.build {
            Some(_) => None,
            None => Some(outputs_of(&inputs)?),
        };
        if args.build.as_deref().is_some_and(is_stdin) {
            bail!("--build needs a file: its options are in a journal beside it");
        }
        let build = args.build.as_deref().map(Output::new).transpose()?;
        let report = args.report.as_deref().map(Output::new).transpose()?;
        claim(args, &inputs, outputs.as_ref(), build.as_ref(), report.as_ref())?;
        if let Some(build) = &build {
            refuse_journal(build.path())?;
        }
        let journal = match &args.state {
            Some(state) => Some(Journal::open(StateFile::open(state)?, settings, args.new_journal)?),
            None => None,
        };
        let skipped = match &journal {
            Some(journal) => skip_done(journal, &mut inputs, args.quiet)?,
            None => 0,
        };
        let outputs = match outputs {
            Some(outputs) if skipped > 0 => {
                refuse_to_replace(&outputs, skipped)?;
                match &inputs.paths[..] {
                    [] => None,
                    _ => Some(outputs_of(&inputs)?),
                }
            }
            other => other,
        };
        if let (Some(journal), Some(outputs)) = (&journal, &outputs) {
            refuse_to_empty(journal, outputs)?;
        }
        Ok(Self {
            inputs,
            skipped,
            outputs,
            build,
            report,
            journal,
        })
    }
}

/// Fails if a file has two roles in the run, one of which would end its bytes.
fn claim(
    args: &Args,
    files: &Files,
    outputs: Option<&Outputs>,
    build: Option<&Output>,
    report: Option<&Output>,
) -> Result<()> {
    let mut claims = Claims::default();
    claims.inputs(INPUT, &args.input, &files.paths);
    if let Some(against) = &args.against {
        claims.reads("the filter of --against", against);
        claims.reads("the journal of --against", &path_of(against));
    }
    if let Some(outputs) = outputs {
        outputs.claim(&mut claims)?;
        for output in outputs.all().iter().filter(|output| !is_stdin(output.path())) {
            claims.writes_path(
                "the unfinished file of an output",
                &writer::UnfinishedOutput::path(output.path()),
            )?;
        }
    }
    if let Some(build) = build {
        build.claim(&mut claims, "the filter of --build")?;
        claims.writes_path("the journal of --build", &path_of(build.path()))?;
    }
    if let Some(state) = &args.state {
        claims.writes_path("the state", state)?;
        let target = output::target(state).with_context(|| format!("the state {}", state.display()))?;
        claims.writes_path("the journal of the state", &path_of(&target))?;
    }
    report.map_or(Ok(()), |report| report.claim(&mut claims, "the report"))
}

/// Removes the inputs that are done from the list. Returns how many.
fn skip_done(journal: &Journal, files: &mut Files, quiet: bool) -> Result<usize> {
    let known = journal.have(&files.paths)?;
    let keep_new = |paths: &mut Vec<PathBuf>| {
        let mut known = known.iter();
        paths.retain(|_| known.next() == Some(&Known::No));
    };
    keep_new(&mut files.paths);
    keep_new(&mut files.names);
    let count = |kind| known.iter().filter(|&&known| known == kind).count();
    let (by_path, moved) = (count(Known::ByPath), count(Known::ByContent));
    let skipped = by_path + moved;
    if skipped > 0 && !quiet {
        let moved = match moved {
            0 => String::new(),
            moved => format!(" ({moved} of them had another path then)"),
        };
        note(&format!(
            "lanebloom-corpus: {skipped} inputs were done before{moved}, and are skipped"
        ));
    }
    Ok(skipped)
}

/// Fails if the output has documents of inputs that are skipped, which would be lost.
fn refuse_to_replace(outputs: &Outputs, skipped: usize) -> Result<()> {
    match outputs.all() {
        [output] if !outputs.is_apart() && !is_stdin(output.path()) && output.path().exists() => bail!(
            "{} exists, and {skipped} of the inputs are done: it would lose their documents. Give another output, or \
             use --output-dir",
            output.name()
        ),
        _ => Ok(()),
    }
}

/// Fails if an output of its own, of an input that is not done, is there. The state may have its
/// documents, so that the new output would be without them.
fn refuse_to_empty(journal: &Journal, outputs: &Outputs) -> Result<()> {
    if !journal.has_inputs() || !outputs.is_apart() {
        return Ok(());
    }
    let has_bytes = |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() > 0);
    match outputs.all().iter().find(|output| has_bytes(output.path())) {
        Some(output) => bail!(
            "{} exists, and its input is not one that the state {} has seen: the documents in it may be of another \
             input, and would be lost. Give another --output-dir, or remove the file",
            output.name(),
            journal.state().path().display()
        ),
        None => Ok(()),
    }
}

/// The inputs that are files of Parquet. Fails if the output cannot be.
pub(super) fn tables(args: &Args, files: &Files, outputs: Option<&Outputs>) -> Result<Vec<Option<Arc<Table>>>> {
    let open = |path: &PathBuf| Ok(Table::open(path, &args.text)?.map(Arc::new));
    let tables = files.paths.iter().map(open).collect::<Result<Vec<_>>>()?;
    let mut found = files.paths.iter().zip(&tables);
    let named = args.output.as_deref();
    let named = named.filter(|to| to.extension().is_some_and(|end| end == "parquet"));
    let (outputs, path, first) = match (outputs, found.find(|(_, table)| table.is_some()), named) {
        (Some(outputs), Some((path, Some(first))), _) => (outputs, path, first),
        (Some(_), _, Some(to)) => bail!(
            "cannot write {}: no input is a file of Parquet; give a name that does not end in .parquet",
            to.display()
        ),
        _ => return Ok(tables),
    };
    if args.annotate.is_some() {
        bail!(
            "{} is a file of Parquet: --annotate is for lines of JSON",
            path.display()
        );
    }
    if !outputs.is_apart() {
        if named.is_none() {
            bail!(
                "{} is a file of Parquet: give --output a name in .parquet, or --output-dir",
                path.display()
            );
        }
        let fits = |table: &Option<Arc<Table>>| table.as_ref().is_some_and(|table| table.is_like(first));
        if let Some(at) = tables.iter().position(|table| !fits(table)) {
            bail!(
                "{} and {} cannot have one output: not both are files of Parquet with the same columns",
                path.display(),
                files.paths[at].display()
            );
        }
    }
    Ok(tables)
}
