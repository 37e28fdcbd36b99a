//! Tests of `lanebloom-corpus` with the real binary, against a plain model with exact sets
//! ([`model`]).
//!
//! A filter removes a new piece with a small probability, so tests that compare outputs ask for a
//! rate of 1e-12 ([`SURE`]). The hashes are the same in every run.

mod bytes;
mod filters;
mod generated;
mod killed;
mod model;
mod near;
mod pieces;
#[path = "../../../../crates/cli/tests/dedup/random.rs"]
mod random;
#[cfg(all(unix, feature = "redis"))]
mod redis;
#[path = "../../../../crates/cli/tests/shell/mod.rs"]
mod shell;
#[cfg(target_os = "linux")]
#[path = "../../../../crates/cli/tests/dedup/signals.rs"]
mod signals;
mod state;
#[cfg(feature = "parquet")]
mod tables;

use random::Random;
use serde_json::Value;
use shell::{Shell, stderr};
use std::env;
use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// At this rate no test loses a piece.
const SURE: &str = "--rate 1e-12";

const PROGRAM: &str = env!("CARGO_BIN_EXE_lanebloom-corpus");

/// The command `lanebloom`: `LANEBLOOM_COMMAND` is its path. The tests that need it say so and pass
/// without it.
fn lanebloom() -> Option<Command> {
    let program = env::var_os("LANEBLOOM_COMMAND");
    if program.is_none() {
        eprintln!("skipped: LANEBLOOM_COMMAND is not set");
    }
    program.map(Command::new)
}

impl Shell {
    /// The stdout of a run that succeeds.
    #[track_caller]
    fn ok(&self, line: &str) -> Vec<u8> {
        let output = self.run(line);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        output.stdout
    }

    /// The figures of a run that succeeds.
    #[track_caller]
    fn report(&self, line: &str) -> Value {
        self.ok(&format!("{line} --report report.json"));
        serde_json::from_slice(&self.read("report.json")).unwrap()
    }

    /// The stderr of a run that fails.
    #[track_caller]
    fn error(&self, line: &str, parts: &[&str]) {
        let output = self.run(line);
        let errors = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {errors}");
        for part in parts {
            assert!(errors.contains(part), "{part:?} is not in {errors:?}");
        }
        assert!(!errors.contains("panicked"), "{errors}");
    }
}

/// The last line of stderr.
fn summary(output: &Output) -> String {
    stderr(output).lines().last().unwrap_or_default().to_owned()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut all).unwrap();
    all
}

/// The bytes of a file, unpacked as its name says.
fn unpacked(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    match path.extension().and_then(|end| end.to_str()) {
        Some("gz") => gunzip(&bytes),
        Some("zst") => zstd::decode_all(&bytes[..]).unwrap(),
        _ => bytes,
    }
}

/// Lines of JSON with these texts, and the numbers as ids.
fn lines<T: AsRef<str>>(texts: &[T]) -> String {
    let line = |(id, text): (usize, &T)| format!("{}\n", serde_json::json!({"id": id, "text": text.as_ref()}));
    texts.iter().enumerate().map(line).collect()
}

/// The texts of lines of JSON.
fn texts(bytes: &[u8]) -> Vec<String> {
    let lines = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let value: Value = serde_json::from_slice(line).unwrap();
            value["text"].as_str().unwrap().to_owned()
        })
        .collect()
}

impl Random {
    /// A text of words, of which many are in other texts too: it has whole lines of theirs, and
    /// lines that differ in a few words.
    fn text(&mut self, others: &[String]) -> String {
        let mut lines: Vec<String> = Vec::new();
        for _ in 0..self.below(8) {
            let line = match self.below(5) {
                0 => String::new(),
                1 | 2 if !others.is_empty() => {
                    let other = &others[self.below(others.len())];
                    let all = Vec::from_iter(other.split('\n'));
                    let mut words = Vec::from_iter(all[self.below(all.len())].split(' ').map(str::to_owned));
                    if self.below(2) == 0 {
                        let at = self.below(words.len());
                        words[at] = self.word();
                    }
                    words.join(" ")
                }
                _ => {
                    let words = self.below(20);
                    Vec::from_iter((0..words).map(|_| self.word())).join(" ")
                }
            };
            lines.push(line);
        }
        lines.join("\n")
    }

    fn word(&mut self) -> String {
        let words = ["the", "of", "Müller", "naïve", "\"quoted\"", "a\\b", "tab\there", "💥"];
        match self.below(12) {
            number @ 0..8 => words[number].into(),
            _ => format!("w{}", self.below(300)),
        }
    }

    fn texts(&mut self, count: usize) -> Vec<String> {
        let mut texts = Vec::new();
        for _ in 0..count {
            let text = self.text(&texts);
            texts.push(text);
        }
        texts
    }
}
