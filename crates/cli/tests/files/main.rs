//! The commands that make and read filter files, by the binary: `build`, `query`, `which`, `merge`,
//! `info`, `convert`, `plan`; and `bench` and `plot`.

#[macro_use]
#[path = "../cases/mod.rs"]
mod cases;

mod bank;
mod build;
mod charts;
mod info;
mod merge;
mod plan;
mod query;
#[path = "../shell/mod.rs"]
mod shell;

use serde_json::Value;
use shell::{Shell, stderr};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

const PROGRAM: &str = env!("CARGO_BIN_EXE_lanebloom");

impl Shell {
    /// Runs a command line without quotes, with this stdin.
    fn run_with(&self, line: &str, stdin: impl Into<Vec<u8>>) -> Output {
        let mut command = assert_cmd::Command::from_std(self.command(line));
        command.write_stdin(stdin).output().unwrap()
    }

    /// The stdout of a command that succeeds.
    #[track_caller]
    fn ok(&self, line: &str) -> String {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    /// The stderr of a command that fails.
    #[track_caller]
    fn error(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {}", stderr(&output));
        assert!(output.stdout.is_empty());
        let text = stderr(&output);
        // Or the command line is wrong.
        assert!(text.starts_with("lanebloom: ") || text.starts_with("error: "), "{text}");
        text
    }

    /// A command that fails with this in its message.
    #[track_caller]
    fn fails(&self, line: &str, part: &str) {
        let text = self.error(line);
        assert!(text.contains(part), "{line}: no {part:?} in {text}");
    }

    /// A command that fails with this message.
    #[track_caller]
    fn says(&self, line: &str, text: &str) {
        assert_eq!(self.error(line), format!("lanebloom: {text}\n"), "{line}");
    }

    /// The value of a row of `info`.
    #[track_caller]
    fn fact(&self, file: &str, name: &str) -> String {
        let text = self.ok(&format!("info {file}"));
        let row = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix("  "));
        row.unwrap_or_else(|| panic!("no {name} in {text}")).trim().into()
    }
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

fn lines(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|number| format!("key {number}\n")).collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/data")
        .join(name)
}

fn golden(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/data");
    serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
}
