//! `lanebloom`: membership filters for the shell. [`args`] says what the command line may say; a
//! module of [`commands`] runs each command.

#![forbid(unsafe_code)]

mod args;
mod bank;
mod chart;
mod commands;
mod cpu_info;
mod csv;
mod filter_file;
mod json;
mod keys;
mod resp;
mod speeds;
mod table;
mod test_keys;

use anyhow::Result;
use args::{Cli, Command};
use clap::CommandFactory;
use lanebloom_files::pages;
use std::process::ExitCode;

fn main() -> ExitCode {
    lanebloom_files::exit("lanebloom", Cli::read().and_then(run))
}

fn run(cli: Cli) -> Result<ExitCode> {
    let quiet = cli.quiet;
    match cli.command {
        Command::Dedup(args) => commands::dedup::run(&args, quiet)?,
        Command::Build(args) => commands::build::run(&args, quiet)?,
        Command::Query(args) => return commands::query::run(&args, quiet),
        Command::Which(args) => return commands::query::which(&args, quiet),
        Command::Merge(args) => commands::merge::run(&args, quiet)?,
        Command::Info(args) => commands::info::run(&args)?,
        Command::Convert(args) => commands::convert::run(&args, quiet)?,
        Command::Plan(args) => commands::plan::run(&args)?,
        Command::Bench(args) => commands::bench::run(&args, quiet)?,
        Command::Plot(args) => commands::plot::run(&args, quiet)?,
        Command::Completions(args) => pages::completions(args.shell, Cli::command())?,
        Command::Man(args) => pages::man(&args.folder, Cli::command())?,
    }
    Ok(ExitCode::SUCCESS)
}
