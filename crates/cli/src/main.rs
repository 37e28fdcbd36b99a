//! `lanebloom`: membership filters for the shell. [`args`] says what the command line may say; a
//! module of [`commands`] runs each command.

mod args;
mod chart;
mod claims;
mod commands;
mod cpu_info;
mod documents;
mod filter_file;
mod growing_filter;
mod identity;
mod input;
mod json;
mod keys;
mod output;
mod pipeline;
mod positioned;
mod progress;
mod resp;
#[cfg_attr(not(feature = "parquet"), path = "no_rows.rs")]
mod rows;
mod speeds;
mod state_file;
mod stdout;
mod summary;
mod table;
mod test_keys;
mod xattrs;

use args::{Cli, Command};
use clap::Parser;
use std::io::{self, Write};
use std::process::ExitCode;

/// The reader of the output closed it: the status of a program that SIGPIPE ends.
const CLOSED: u8 = 141;

fn main() -> ExitCode {
    let cli = Cli::parse();
    run(cli).unwrap_or_else(|error| report(&error).into())
}

/// Writes the message of an error, and returns the exit status.
fn report(error: &anyhow::Error) -> u8 {
    if is_closed(error) {
        return CLOSED;
    }
    if error.is::<commands::query::Absent>() {
        return 1;
    }
    note(&format!("lanebloom: {error:#}"));
    2
}

/// Writes a line to stderr. If that fails, the output and the exit status still tell the result.
fn note(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let quiet = cli.quiet;
    match cli.command {
        Command::Dedup(args) => commands::dedup::run(&args, quiet)?,
        Command::Corpus(args) => commands::corpus::run(&args, quiet)?,
        Command::Build(args) => commands::build::run(&args, quiet)?,
        Command::Query(args) => return commands::query::run(&args, quiet),
        Command::Merge(args) => commands::merge::run(&args, quiet)?,
        Command::Info(args) => commands::info::run(&args)?,
        Command::Convert(args) => commands::convert::run(&args, quiet)?,
        Command::Plan(args) => commands::plan::run(&args)?,
        Command::Bench(args) => commands::bench::run(&args, quiet)?,
        Command::Plot(args) => commands::plot::run(&args)?,
        Command::Completions(args) => commands::generated::completions(args.shell)?,
        Command::Man(args) => commands::generated::man(&args.folder)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn is_closed(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}
