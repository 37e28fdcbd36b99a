//! Makes the completions and the man pages; `lanebloom completions` and `lanebloom man` hand them
//! out.

#[allow(dead_code, reason = "only the definitions are used here")]
#[path = "src/args.rs"]
mod args;

use clap::{Arg, Command, CommandFactory};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=src/args.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let mut command = args::Cli::command();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
        generate_to(shell, &mut command, "lanebloom", &out)?;
    }
    let man = out.join("man");
    // Without the pages of an earlier build.
    if man.exists() {
        fs::remove_dir_all(&man)?;
    }
    fs::create_dir_all(&man)?;
    let mut command = without_help(args::Cli::command());
    command.build();
    let mut names = Vec::new();
    write_pages(&command, &man, &mut names)?;

    // The pages as one list of names and bytes, which the binary embeds.
    names.sort();
    let rows = names
        .iter()
        .map(|name| format!("({name:?}, include_bytes!({:?})),", man.join(name)));
    fs::write(out.join("man.rs"), format!("&[{}]", rows.collect::<String>()))?;
    Ok(())
}

/// The command without its subcommands `help`, which need no pages.
fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

/// Writes the page of a command and those of its subcommands, and adds their names.
fn write_pages(command: &Command, folder: &Path, names: &mut Vec<String>) -> io::Result<()> {
    for command in command.get_subcommands() {
        write_pages(command, folder, names)?;
    }
    let man = Man::new(command.clone())
        .source(concat!("lanebloom ", env!("CARGO_PKG_VERSION")))
        .manual("lanebloom");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    write_synopsis(command, &mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_long_help().or(command.get_after_help()) {
        write_blocks(&text.to_string(), &mut page)?;
    }
    fs::write(folder.join(man.get_filename()), page)?;
    names.push(man.get_filename());
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
