//! Tests of `lanebloom dedup` with the real binary. Each module tests one part of its contract, the
//! help text of `src/args.rs`.
//!
//! A filter drops a new line with a small probability, and its hash has a random key, so tests that
//! compare outputs ask for a rate of 1e-12 ([`SURE`]) or for `--exact`.

#[macro_use]
#[path = "../cases/mod.rs"]
mod cases;

mod compressed;
mod csv;
mod errors;
mod exact;
mod generated;
mod inputs;
mod killed;
mod lines;
mod missing;
mod model;
mod outputs;
mod pipes;
mod random;
mod rates;
mod records;
#[cfg(unix)]
mod signals;
mod state;

use random::Random;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt::Debug;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// At this rate no test loses a line.
const SURE: &[&str] = &["--rate", "1e-12"];

/// The lines of the largest tests. (ci/test.sh and ci/release.sh ask for millions.)
fn many() -> u64 {
    let asked = std::env::var("LANEBLOOM_DEDUP_LINES").map(|lines| lines.parse().expect("a number of lines"));
    asked.unwrap_or(200_000)
}

/// How many random inputs a test takes, as a factor.
const SEEDS: u64 = if cfg!(debug_assertions) { 1 } else { 4 };

/// How often a run is killed.
const KILLS: usize = 100;

/// The end of the system's messages about a file that is not there, and about one whose folder is a
/// file.
const NO_FILE: &str = "(os error 2)";
const NO_FOLDER: &str = if cfg!(windows) { "(os error 3)" } else { "(os error 20)" };

/// The file that takes everything and has nothing.
const NULL: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// Long enough for any machine; only a failure takes that long.
const PATIENCE: Duration = Duration::from_secs(120);

/// The command with the system's messages in English.
fn lanebloom() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lanebloom"));
    command.env("LC_ALL", "C").env_remove("CLICOLOR_FORCE");
    command
}

fn dedup<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let mut command = lanebloom();
    command.arg("dedup").args(args);
    command
}

/// The same command in a shell that limits the size of files to `blocks` of 512 or 1024 bytes. With
/// `ignores_signal` a write beyond it fails; otherwise it kills the program. (Windows has no such
/// limit.)
#[cfg(unix)]
fn limited(command: &Command, blocks: u64, ignores_signal: bool) -> Command {
    let trap = if ignores_signal { "trap '' XFSZ;" } else { "" };
    after(&format!("{trap} ulimit -f {blocks}"), command)
}

/// The same command in a shell, after `before`.
#[cfg(unix)]
fn after(before: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell
        .env("LC_ALL", "C")
        .args(["-c", &format!("{before}; exec \"$0\" \"$@\"")])
        .arg(command.get_program())
        .args(command.get_args());
    shell
}

/// Starts the command with three pipes.
fn spawn(command: &mut Command) -> Child {
    spawn_to(command, Stdio::piped())
}

fn spawn_to(command: &mut Command, stdout: impl Into<Stdio>) -> Child {
    let command = command.stdin(Stdio::piped()).stdout(stdout);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

/// The results of a run.
struct Run {
    output: Vec<u8>,
    errors: String,
    status: ExitStatus,
}

impl Run {
    /// Runs the command with these bytes as stdin, a pipe.
    fn new(command: &mut Command, stdin: impl AsRef<[u8]>) -> Self {
        let mut child = spawn(command);
        let mut pipe = child.stdin.take().unwrap();
        let stdin = stdin.as_ref();
        thread::scope(|scope| {
            // The program may end before it has read all.
            scope.spawn(move || pipe.write_all(stdin).ok());
            Self::end(child)
        })
    }

    /// Waits for a program that has all of its input.
    fn end(child: Child) -> Self {
        Self::of(child.wait_with_output().unwrap())
    }

    fn of(output: Output) -> Self {
        Self {
            output: output.stdout,
            errors: String::from_utf8(output.stderr).unwrap(),
            status: output.status,
        }
    }

    /// Asserts success, and returns the output.
    #[track_caller]
    fn output(self) -> Vec<u8> {
        assert!(self.status.success(), "{}: {}", self.status, self.errors);
        self.output
    }

    /// Asserts an error whose message has these parts, and returns the output before it.
    #[track_caller]
    fn error(self, parts: &[&str]) -> Vec<u8> {
        assert_eq!(self.status.code(), Some(2), "{}: {}", self.status, self.errors);
        for part in parts {
            assert!(self.errors.contains(part), "{part:?} is not in {:?}", self.errors);
        }
        assert!(!self.errors.contains("panicked"), "{}", self.errors);
        self.output
    }
}

/// Waits until the program ends.
#[track_caller]
fn wait(child: &mut Child) -> ExitStatus {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("the program does not end");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Bytes of memory.
struct Memory {
    /// The most so far.
    peak: u64,
    now: u64,
}

/// Runs the command until it has read these bytes from a pipe and written this many. Returns these,
/// and its memory then; `None` where no `/proc` tells it.
fn memory(command: &mut Command, stdin: &[u8], len: usize) -> (Vec<u8>, Option<Memory>) {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        // The pipe stays open until the memory is known, or the program would end.
        let writer = scope.spawn(move || to.write_all(stdin).map(|()| to));
        scope.spawn(move || {
            let mut output = vec![0; len];
            let read = from.read_exact(&mut output);
            sender.send(read.map(|()| output)).unwrap();
            from.read_to_end(&mut Vec::new())
        });
        let output = receiver.recv_timeout(PATIENCE);
        let status = fs::read_to_string(format!("/proc/{}/status", child.id()));
        if output.is_err() {
            child.kill().unwrap();
        }
        drop(writer.join().unwrap());
        let output = output.expect("the program writes its output");
        assert!(wait(&mut child).success());
        let status = status.unwrap_or_default();
        let bytes = |name: &str| {
            let (_, rest) = status.split_once(name)?;
            let kib: u64 = rest.split_whitespace().next()?.parse().ok()?;
            Some(kib << 10)
        };
        let memory = bytes("VmHWM:").zip(bytes("VmRSS:"));
        (
            output.expect("the program writes all of it"),
            memory.map(|(peak, now)| Memory { peak, now }),
        )
    })
}

/// Asserts that the output is this one, and shows the bytes around the first difference.
#[track_caller]
fn assert_bytes(found: &[u8], expected: &[u8], context: impl Debug) {
    if found != expected {
        let same = found.iter().zip(expected).take_while(|(a, b)| a == b).count();
        let around = |bytes: &[u8]| bytes[same.saturating_sub(20)..].escape_ascii().to_string();
        let shortened = |text: String| text.chars().take(120).collect::<String>();
        panic!(
            "{context:?}: {} bytes, expected {}; they differ from {same}:\n{}\n{}",
            found.len(),
            expected.len(),
            shortened(around(found)),
            shortened(around(expected)),
        );
    }
}

/// The lines with their terminators.
fn split(bytes: &[u8], terminator: u8) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(move |&byte| byte == terminator)
}

/// A line without its end.
fn text(line: &[u8], terminator: u8) -> &[u8] {
    let text = line.strip_suffix(&[terminator]).unwrap_or(line);
    let without = text.strip_suffix(b"\r").filter(|_| terminator == b'\n');
    without.unwrap_or(text)
}

/// The specification: the first occurrences of lines, and the others.
fn reference(bytes: &[u8], terminator: u8, key: impl Fn(&[u8]) -> Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let mut seen = HashSet::new();
    let is_new = |line: &&[u8]| seen.insert(key(text(line, terminator)));
    let (new, old): (Vec<&[u8]>, Vec<&[u8]>) = split(bytes, terminator).partition(is_new);
    (new.concat(), old.concat())
}

fn unique(bytes: &[u8]) -> Vec<u8> {
    reference(bytes, b'\n', <[u8]>::to_vec).0
}

/// `count` different lines of ten bytes, from number `first` on.
fn numbers(first: u64, count: u64) -> Vec<u8> {
    (first..first + count)
        .flat_map(|n| format!("{n:09}\n").into_bytes())
        .collect()
}

impl Random {
    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// Lines of which many are equal or differ in little: any bytes, empty, with CRLF, and now and
    /// then longer than a chunk of the reader. The last one may have no terminator.
    fn lines(&mut self, count: usize, terminator: u8) -> Vec<u8> {
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for _ in 0..count {
            let line = match self.below(16) {
                0 => Vec::new(),
                1..=6 if !lines.is_empty() => {
                    let mut line = self.pick(&lines).clone();
                    match self.below(8) {
                        0 => line.push(b'\r'),
                        1 => line.truncate(self.below(line.len() + 1)),
                        2 if !line.is_empty() => {
                            let at = self.below(line.len());
                            line[at] ^= 0x20;
                        }
                        _ => {}
                    }
                    line
                }
                7 if self.below(200) == 0 => vec![b'x'; (256 << 10) + self.below(600_000)],
                8 => {
                    let len = self.below(2000);
                    (0..len).map(|_| self.next() as u8).collect()
                }
                9..=11 => {
                    let len = self.below(4);
                    (0..len).map(|_| *self.pick(b"ab\0\r\n\xff")).collect()
                }
                _ => format!("{}", self.below(count)).into_bytes(),
            };
            // A line with a terminator in it is two lines.
            lines.push(line);
        }
        let mut bytes = lines.join(&terminator);
        if self.below(2) == 0 {
            bytes.push(terminator);
        }
        bytes
    }
}

/// A folder for one test.
struct Folder {
    /// Without links, as messages name it.
    path: PathBuf,
    _guard: tempfile::TempDir,
}

impl Folder {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        // (Windows has a form of its own for these, in which messages name no file.)
        let path = guard.path();
        let path = if cfg!(windows) {
            path.into()
        } else {
            path.canonicalize().unwrap()
        };
        Self { path, _guard: guard }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file.
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The new files that killed runs left.
    fn leftovers(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).unwrap().map(|entry| entry.unwrap().path());
        let is_new = |path: &PathBuf| path.extension() == Some("new".as_ref());
        entries.filter(is_new).collect()
    }
}

/// Whether a tool is there; says so if it is not.
fn has(tool: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v \"$0\" >/dev/null", tool])
        .status()
        .is_ok_and(|status| status.success());
    if !found {
        eprintln!("skipped: {tool} is not there");
    }
    found
}

/// The numbers of a summary line: lines, unique, dropped.
#[track_caller]
fn summary(errors: &str) -> [u64; 3] {
    let number_before = |word: &str| {
        let (before, _) = errors
            .split_once(word)
            .unwrap_or_else(|| panic!("no {word:?} in {errors:?}"));
        before.rsplit(' ').next().unwrap().parse().unwrap()
    };
    [" lines", " unique", " dropped"].map(number_before)
}

fn utf8(path: &Path) -> &str {
    path.to_str().unwrap()
}
