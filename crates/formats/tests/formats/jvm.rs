//! A JVM with the filter of another system, which the tests speak to. `tests/guava/Guava.java` and
//! `tests/spark/Spark.java` are its programs; their first lines say how.
#![cfg(feature = "std")]

use lanebloom_tests::number;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Jvm {
    jvm: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
}

/// What a JVM runs.
pub(crate) struct Program {
    /// The class, and its file below `tests`.
    pub(crate) class: &'static str,
    pub(crate) source: &'static str,
    /// The variable that names the class path of the system's library, and its place without that.
    pub(crate) variable: &'static str,
    pub(crate) library: PathBuf,
    /// The variable that makes it a failure if the program cannot be run.
    pub(crate) require: &'static str,
}

impl Jvm {
    /// Compiles and starts the program. `test` has a folder of its own. Says so and answers nothing
    /// if this machine lacks what is needed.
    pub(crate) fn start(test: &str, program: &Program) -> Option<Self> {
        match Self::try_start(test, program) {
            Ok(jvm) => Some(jvm),
            Err(why) => {
                let require = program.require;
                assert!(std::env::var_os(require).is_none(), "{require} is set, but {why}");
                // Past the harness, which keeps what a test that passes prints.
                let _ = writeln!(std::io::stderr(), "{test} was skipped: {why}");
                None
            }
        }
    }

    fn try_start(test: &str, program: &Program) -> Result<Self, String> {
        let default = || program.library.to_str().expect("a path in UTF-8").into();
        let library = std::env::var(program.variable).unwrap_or_else(|_| default());
        if !library.contains(':') && !Path::new(&library).exists() {
            return Err(format!("there is no {library}"));
        }
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let mut compiler = Command::new("javac");
        compiler.args(["-nowarn", "-Xlint:none", "-cp", &library, "-d"]);
        compiler.args([
            classes.as_path(),
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(program.source),
        ]);
        let missing = |error: std::io::Error, program| match error.kind() {
            ErrorKind::NotFound => format!("there is no {program}"),
            _ => panic!("{program}: {error}"),
        };
        let output = compiler.output().map_err(|error| missing(error, "javac"))?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

        let mut jvm = Command::new("java");
        jvm.arg("-cp")
            .arg(format!("{library}:{}", classes.display()))
            .arg(program.class);
        let mut jvm = jvm
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| missing(error, "java"))?;
        Ok(Self {
            to: BufWriter::new(jvm.stdin.take().unwrap()),
            from: BufReader::new(jvm.stdout.take().unwrap()),
            jvm,
        })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).unwrap();
    }

    pub(crate) fn send_len(&mut self, len: usize) {
        self.send(&i32::try_from(len).unwrap().to_be_bytes());
    }

    /// The length of the bytes, and the bytes.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.send_len(bytes.len());
        self.send(bytes);
    }

    /// The end of a request.
    pub(crate) fn flush(&mut self) {
        self.to.flush().unwrap();
    }

    pub(crate) fn receive<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn receive_answers(&mut self, len: usize) -> Vec<bool> {
        let mut answers = vec![0; len];
        self.from.read_exact(&mut answers).unwrap();
        answers.into_iter().map(|answer| answer == 1).collect()
    }

    /// Bytes after their length.
    pub(crate) fn receive_bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; i32::from_be_bytes(self.receive()) as usize];
        self.from.read_exact(&mut bytes).unwrap();
        bytes
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // Harmless where it has ended.
        let _ = self.jvm.kill();
        let _ = self.jvm.wait();
    }
}

pub(crate) fn write_len(len: usize, into: &mut Vec<u8>) {
    into.extend((len as i32).to_be_bytes());
}

pub(crate) fn write_units(units: &[u16], into: &mut Vec<u8>) {
    write_len(units.len(), into);
    into.extend(units.iter().flat_map(|unit| unit.to_be_bytes()));
}

pub(crate) fn write_string(text: &str, into: &mut Vec<u8>) {
    write_units(&text.encode_utf16().collect::<Vec<_>>(), into);
}

/// Texts of up to 40 characters, of one to four bytes in UTF-8. The first one is empty.
pub(crate) fn string(i: u64) -> String {
    let len = number(i) % 41 * u64::from(i > 0);
    (0..len)
        .map(|j| {
            let n = number(i << 8 | j);
            let below = [0x80, 0x800, 0xd800, 0x11_0000 - 0xe000][(n % 4) as usize];
            let code = (n >> 8) as u32 % below + if n % 4 == 3 { 0xe000 } else { 0 };
            char::from_u32(code).expect("no surrogate")
        })
        .collect()
}

pub(crate) fn bytes(i: u64) -> Vec<u8> {
    (0..number(i) % 50 * u64::from(i > 0))
        .map(|j| number(i << 8 | j) as u8)
        .collect()
}
