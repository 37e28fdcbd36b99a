//! `lanebloom completions` and `lanebloom man`: what the build script made.

use crate::args::Shell;
use crate::stdout;
use anyhow::{Context, Result};
use std::fs;
use std::io::Write;
use std::path::Path;

pub(crate) fn completions(shell: Shell) -> Result<()> {
    let text: &[u8] = match shell {
        Shell::Bash => include_bytes!(concat!(env!("OUT_DIR"), "/lanebloom.bash")),
        Shell::Zsh => include_bytes!(concat!(env!("OUT_DIR"), "/_lanebloom")),
        Shell::Fish => include_bytes!(concat!(env!("OUT_DIR"), "/lanebloom.fish")),
        Shell::Powershell => include_bytes!(concat!(env!("OUT_DIR"), "/_lanebloom.ps1")),
    };
    Ok(stdout::open()?.write_all(text)?)
}

pub(crate) fn man(folder: &Path) -> Result<()> {
    const PAGES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/man.rs"));
    fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    for (name, page) in PAGES {
        let path = folder.join(name);
        fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}
