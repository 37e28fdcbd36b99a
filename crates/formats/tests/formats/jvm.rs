//! A JVM with the filter of another system, which the tests speak to. `tests/guava/Guava.java` and
//! `tests/spark/Spark.java` are its programs; their first lines say how.
#![cfg(feature = "std")]

use lanebloom_formats::guava::{UnencodedChars, Utf16};
use lanebloom_formats::{JavaBloom, JavaFormat, JavaKey};
use lanebloom_tests::number;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Jvm {
    /// The library's name and version.
    pub(crate) library: String,
    jvm: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
}

/// A filter of the system, with its statistics.
pub(crate) struct Made {
    pub(crate) stream: Vec<u8>,
    expected_fpp: f64,
    /// Guava's `approximateElementCount`, -1 where it throws; Spark's `cardinality`.
    pub(crate) count: i64,
}

/// A program in Java.
pub(crate) struct Program {
    /// The class, and its file below `tests`.
    pub(crate) class: &'static str,
    pub(crate) source: &'static str,
    /// The class paths of the system's library, or why there is none.
    pub(crate) libraries: Result<Vec<String>, String>,
    /// The variable that makes it a failure if the program cannot be run.
    pub(crate) require: &'static str,
}

impl Jvm {
    /// Compiles the program and runs it with each library, one after another. Says so and yields
    /// nothing if this machine lacks what is needed. `test` has a folder of its own.
    pub(crate) fn start_each(test: &str, program: Program) -> impl Iterator<Item = Self> {
        let libraries = match &program.libraries {
            Ok(libraries) => libraries.iter().cloned().map(Ok).collect(),
            Err(why) => vec![Err(why.clone())],
        };
        libraries.into_iter().enumerate().filter_map(move |(number, library)| {
            let classes = format!("{test}-{number}");
            let jvm = library.and_then(|library| Self::try_start(&classes, &library, &program));
            let skip = |why: &String| {
                let require = program.require;
                assert!(std::env::var_os(require).is_none(), "{require} is set, but {why}");
                // Past the harness, which keeps what a test that passes prints.
                let _ = writeln!(std::io::stderr(), "{test} was skipped: {why}");
            };
            jvm.inspect_err(skip).ok()
        })
    }

    fn try_start(classes: &str, library: &str, program: &Program) -> Result<Self, String> {
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join(classes);
        let mut compiler = Command::new("javac");
        compiler.args(["-nowarn", "-Xlint:none", "-cp", library, "-d"]);
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
        let mut jvm = Self {
            library: String::new(),
            to: BufWriter::new(jvm.stdin.take().unwrap()),
            from: BufReader::new(jvm.stdout.take().unwrap()),
            jvm,
        };
        jvm.library = String::from_utf8(jvm.receive_bytes()).unwrap();
        println!("{}", jvm.library);
        Ok(jvm)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).unwrap();
    }

    /// The length of the bytes, and the bytes.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) {
        self.send(&i32::try_from(bytes.len()).unwrap().to_be_bytes());
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

    /// Bytes after their length.
    fn receive_bytes(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; i32::from_be_bytes(self.receive()) as usize];
        self.from.read_exact(&mut bytes).unwrap();
        bytes
    }

    pub(crate) fn receive_filter(&mut self) -> Made {
        Made {
            stream: self.receive_bytes(),
            expected_fpp: f64::from_be_bytes(self.receive()),
            count: i64::from_be_bytes(self.receive()),
        }
    }

    /// Sends keys, and receives an answer for each and the filter.
    fn with_keys<K: Key>(&mut self, keys: &[K]) -> (Vec<bool>, Made) {
        let mut bytes = vec![K::KIND];
        write_len(keys.len(), &mut bytes);
        keys.iter().for_each(|key| key.write(&mut bytes));
        self.send(&bytes);
        self.flush();
        let mut answers = vec![0; keys.len()];
        self.from.read_exact(&mut answers).unwrap();
        let answers = answers.into_iter().map(|answer| answer == 1).collect();
        (answers, self.receive_filter())
    }

    /// Both make a filter of the first half of these keys, and all are asked for; then each reads
    /// what the other wrote. `make` asks for a filter like the empty one. Returns the system's
    /// statistics, and ours.
    pub(crate) fn assert_same<F: JavaFormat, K: Key + JavaKey<F>>(
        &mut self,
        make: &[u8],
        ours: JavaBloom<F>,
        keys: &[K],
    ) -> (Made, JavaBloom<F>) {
        let (present, absent) = keys.split_at(keys.len() / 2);
        let context = format!("{}, {} keys of kind {}, {ours:?}", self.library, present.len(), K::KIND);
        self.send(&[b"m", make].concat());
        let (put, made) = self.with_keys(present);
        let one_by_one = ours.clone();
        let mut changed = vec![false; present.len()];
        ours.insert_batch_into(present, &mut changed);
        assert!(changed == put, "put in a batch: {context}");
        let single = present.iter().map(|key| one_by_one.insert(key));
        assert!(single.eq(put), "put: {context}");
        assert!(one_by_one == ours);
        assert!(ours.to_bytes() == made.stream, "the stream: {context}");
        assert_eq!(ours.statistics().false_positive_rate, made.expected_fpp, "{context}");

        let theirs = JavaBloom::<F>::read_from(&made.stream[..], usize::MAX).unwrap();
        assert!(theirs == ours && theirs.format() == ours.format(), "{context}");
        for keys in [present, absent] {
            self.send(b"a");
            self.send_bytes(&ours.to_bytes());
            let (asked, again) = self.with_keys(keys);
            assert!(found!(theirs, keys) == asked, "mightContain in a batch: {context}");
            let single = keys.iter().map(|key| theirs.contains(key));
            assert!(single.eq(asked), "mightContain: {context}");
            assert!(again.stream == made.stream, "what it reads and writes again: {context}");
        }
        (made, ours)
    }

    /// Unites two filters there and here, or intersects them; returns whether they are compatible.
    pub(crate) fn assert_same_union<F: JavaFormat>(
        &mut self,
        request: u8,
        mut one: JavaBloom<F>,
        other: &JavaBloom<F>,
    ) -> bool {
        self.send(&[request]);
        self.send_bytes(&one.to_bytes());
        self.send_bytes(&other.to_bytes());
        self.flush();
        let compatible = self.receive() == [1];
        assert_eq!(one.with(other).is_ok(), compatible, "{}", self.library);
        let done = match request {
            b'u' => one.union_from(other),
            _ => one.exclusive().intersection_from(other),
        };
        assert_eq!(done.is_ok(), compatible);
        let same = !compatible || one.to_bytes() == self.receive_filter().stream;
        assert!(same, "the union or intersection of {}", self.library);
        compatible
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        // Harmless where it has ended.
        let _ = self.jvm.kill();
        let _ = self.jvm.wait();
    }
}

/// A key that the JVM can be told.
pub(crate) trait Key {
    /// The place in the program's list.
    const KIND: u8;
    fn write(&self, into: &mut Vec<u8>);
}

macro_rules! keys {
    ($($type:ty, $kind:literal, |$key:ident, $into:ident| $write:expr;)*) => {$(
        impl Key for $type {
            const KIND: u8 = $kind;
            fn write(&self, $into: &mut Vec<u8>) {
                let $key = self;
                $write;
            }
        }
    )*};
}
keys! {
    i32, 0, |key, into| into.extend(key.to_be_bytes());
    i64, 1, |key, into| into.extend(key.to_be_bytes());
    Vec<u8>, 2, |key, into| { write_len(key.len(), into); into.extend(key) };
    String, 3, |key, into| write_string(key, into);
    // Guava's alone.
    UnencodedChars<String>, 4, |key, into| write_string(&key.0, into);
    // Any units, those of half a surrogate pair too.
    Vec<u16>, 4, |key, into| { write_len(key.len(), into); into.extend(key.iter().flat_map(|unit| unit.to_be_bytes())) };
    Utf16<String>, 5, |key, into| write_string(&key.0, into);
    Vec<i32>, 7, |key, into| { write_len(key.len(), into); key.iter().for_each(|part| part.write(into)) };
    Vec<String>, 8, |key, into| { write_len(key.len(), into); key.iter().for_each(|part| part.write(into)) };
    // Spark's alone.
    i16, 4, |key, into| into.extend(key.to_be_bytes());
    i8, 5, |key, into| into.extend(key.to_be_bytes());
}

fn write_len(len: usize, into: &mut Vec<u8>) {
    into.extend((len as i32).to_be_bytes());
}

pub(crate) fn write_string(text: &str, into: &mut Vec<u8>) {
    text.encode_utf16().collect::<Vec<_>>().write(into);
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
