//! The command line, its completions and man pages, made of a command's definition.

use crate::stdout;
use anyhow::{Context, Result};
use clap::{Arg, Command, FromArgMatches};
pub use clap_complete::Shell;
use clap_mangen::Man;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process;

/// Reads the command line. Ends the program after help, and after an error. Fails if these cannot
/// be printed.
pub fn read<T: FromArgMatches>(command: Command) -> Result<T> {
    let read = command
        .try_get_matches()
        .and_then(|matches| T::from_arg_matches(&matches));
    read.or_else(|error| {
        if !error.use_stderr() {
            stdout::open()?;
        }
        error.print()?;
        process::exit(error.exit_code())
    })
}

/// Prints the completions of a command for a shell.
pub fn completions(shell: Shell, mut command: Command) -> Result<()> {
    let (name, mut text) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut text);
    Ok(stdout::open()?.write_all(&text)?)
}

/// Writes the man pages of a command and its subcommands to a folder, which is created if it is
/// missing.
pub fn man(folder: &Path, command: Command) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let program = command.get_name().to_owned();
    let source = format!("{program} {}", command.get_version().unwrap_or(""));
    let mut command = without_help(command);
    command.build();
    write_pages(&command, &program, &source, folder)
}

/// The command without its subcommands `help`, which need no pages.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: &Command, program: &str, source: &str, folder: &Path) -> Result<()> {
    for command in command.get_subcommands() {
        write_pages(command, program, source, folder)?;
    }
    let man = Man::new(command.clone()).source(source).manual(program);
    let path = folder.join(man.get_filename());
    let failed = || format!("cannot write {}", path.display());
    let mut page = Vec::new();
    render(command, &man, &mut page).with_context(failed)?;
    fs::write(&path, page).with_context(failed)
}

fn render(command: &Command, man: &Man, page: &mut Vec<u8>) -> io::Result<()> {
    man.render_title(page)?;
    man.render_name_section(page)?;
    write_synopsis(command, page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(page)?;
    }
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        write_blocks(&text.to_string(), page)?;
    }
    Ok(())
}
/// Writes the options with their values, and the arguments. (The pages of clap_mangen leave the
/// values out.)
fn write_synopsis(command: &Command, page: &mut impl Write) -> io::Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    // Aligned left, without hyphens.
    write!(page, ".SH SYNOPSIS\n.nh\n.ad l\n\\fB{}\\fR", escaped(name))?;
    let mut args: Vec<&Arg> = command.get_arguments().filter(|arg| !arg.is_hide_set()).collect();
    // A stable sort: the arguments stay in order.
    args.sort_by_key(|arg| (arg.is_positional(), !arg.is_required_set()));
    for arg in args {
        let (before, after) = if arg.is_required_set() { ("", "") } else { ("[", "]") };
        write!(page, "\n{before}{}{after}", form(arg))?;
    }
    if command.has_subcommands() {
        write!(page, "\n\\fICOMMAND\\fR")?;
    }
    writeln!(page, "\n.ad\n.hy")
}

/// An option or argument as a man page shows it, in one line.
fn form(arg: &Arg) -> String {
    let bold = |name: String| format!("\\fB{}\\fR", escaped(&name));
    let short = arg.get_short().map(|short| bold(format!("-{short}")));
    let long = arg.get_long().map(|long| bold(format!("--{long}")));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let mut form = names.join("|");
    let range = arg.get_num_args().expect("the command is built");
    if arg.is_positional() || range.takes_values() {
        let id = arg.get_id().as_str().to_uppercase();
        let value = arg.get_value_names().map_or(id, |names| names.join(" "));
        let more = if range.max_values() > 1 { "..." } else { "" };
        let space = if arg.is_positional() { "" } else { "\\ " };
        form += &format!("{space}\\fI{}\\fR{more}", escaped(&value));
    }
    form
}

/// Writes text such as "Examples:" with indented lines below it as a section whose lines stay.
fn write_blocks(text: &str, page: &mut impl Write) -> io::Result<()> {
    for line in text.lines() {
        match line.strip_suffix(':').filter(|line| !line.starts_with(' ')) {
            Some(title) => writeln!(page, ".SH {:?}\n.nf", escaped(&title.to_uppercase()))?,
            // An empty sign before, since a point or a quote would begin a command.
            None => writeln!(page, "\\&{}", escaped(line.trim_start_matches("  ")))?,
        }
    }
    writeln!(page, ".fi")
}

/// A text as roff shows it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq")
}
