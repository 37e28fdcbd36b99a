//! A folder for a test, and a command in it.

use super::PROGRAM;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder of its own, and `PROGRAM` in it.
pub(crate) struct Shell(pub(crate) TempDir);

impl Shell {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The command with these arguments, which have no spaces.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .env("LC_ALL", "C")
            .env_remove("CLICOLOR_FORCE")
            .current_dir(&self.0);
        command.args(line.split_whitespace()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Output {
        self.command(line).output().unwrap()
    }

    /// Runs the command in a shell of the system after `before`, such as a limit.
    #[cfg(unix)]
    pub(crate) fn run_after(&self, before: &str, line: &str) -> Output {
        let mut shell = Command::new("sh");
        shell.env("LC_ALL", "C").current_dir(&self.0).arg("-c");
        let run = shell.arg(format!("{before}; exec \"$0\" {line}")).arg(PROGRAM);
        run.output().unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, whose folder is made if it is missing.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names in a folder, in order.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
