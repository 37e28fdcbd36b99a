//! Makes the completions and the man pages; `lanebloom completions` and `lanebloom man` hand them
//! out.

#[allow(dead_code, reason = "only the definitions are used here")]
#[path = "src/args.rs"]
mod args;

use clap::CommandFactory;
use clap_complete::{Shell, generate_to};
use std::path::PathBuf;
use std::{env, fs};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=src/args.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let mut command = args::Cli::command();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command, "lanebloom", &out)?;
    }
    let man = out.join("man");
    // Without the pages of an earlier build.
    if man.exists() {
        fs::remove_dir_all(&man)?;
    }
    fs::create_dir_all(&man)?;
    clap_mangen::generate_to(command, &man)?;

    // The pages as one list of names and bytes, which the binary embeds.
    let mut names = Vec::new();
    for entry in fs::read_dir(&man)? {
        names.push(
            entry?
                .file_name()
                .into_string()
                .map_err(|_| "a page's name is no text")?,
        );
    }
    names.sort();
    let rows = names
        .iter()
        .map(|name| format!("({name:?}, include_bytes!({:?})),", man.join(name)));
    fs::write(out.join("man.rs"), format!("&[{}]", rows.collect::<String>()))?;
    Ok(())
}
