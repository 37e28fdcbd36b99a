//! `RedisBitmap` beside the programs that its layouts come from, on one server: Java with Guava's
//! own hashing, and the Python package scrapy-redis-bloomfilter. Each reads the bits that the other
//! wrote. Bits and answers are the same.
//!
//! Needs a server (`redis_server`). Also needs `java` with Guava, as `guava_jvm.rs` in
//! crates/formats does, or `python3` with the packages that `ci/fetch/python_peers.sh` fetches. If
//! they are missing the tests say so and pass, unless `LANEBLOOM_REQUIRE_JVM` or
//! `LANEBLOOM_REQUIRE_SCRAPY` is set, as in CI.

use crate::common::number;
use crate::redis_bitmaps::{inserts, lookups, lookups_in};
use crate::redis_server::{Redis, ask, skip};
use lanebloom_redis::RedisBitmap;
use lanebloom_tests::jars::{fetched, guava};

use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A program that is spoken to through its standard input and output; it ends with the test.
struct Peer {
    process: Child,
    to: BufWriter<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Peer {
    fn start(mut command: Command) -> Result<Self, String> {
        let program = command.get_program().to_string_lossy().into_owned();
        match command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
            Ok(mut process) => Ok(Self {
                to: BufWriter::new(process.stdin.take().unwrap()),
                from: BufReader::new(process.stdout.take().unwrap()),
                process,
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(format!("there is no {program}")),
            Err(error) => panic!("{program}: {error}"),
        }
    }

    /// The Java program with this Guava, on a server.
    fn java(server: &Redis, guava: &str) -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/RedisBitmaps.java");
        let mut command = Command::new("java");
        command.arg("-cp").arg(guava).arg(source).arg(server.port().to_string());
        Self::start(command)
    }

    /// The Python program, on a server.
    fn scrapy(server: &Redis) -> Result<Self, String> {
        let packages = std::env::var_os("LANEBLOOM_PYTHON_PEERS").map(PathBuf::from);
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", packages.unwrap_or_else(|| fetched().join("python")));
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/scrapy.py"));
        command.arg(server.port().to_string()).stderr(Stdio::piped());
        let mut peer = Self::start(command)?;
        let mut line = String::new();
        peer.from.read_line(&mut line).unwrap();
        if line == "ready\n" {
            return Ok(peer);
        }
        let mut why = String::new();
        peer.process.stderr.take().unwrap().read_to_string(&mut why).unwrap();
        Err(why.lines().last().unwrap_or("it ended").into())
    }

    fn send(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).unwrap();
    }

    fn send_text(&mut self, text: &str) {
        self.send(&(text.len() as i32).to_be_bytes());
        self.send(text.as_bytes());
    }

    fn receive<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).unwrap();
        bytes
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Harmless where it has ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Java's answer.
struct Said {
    bits: u64,
    functions: u8,
    answers: Vec<bool>,
    offsets: Vec<Vec<u64>>,
}

/// A layout, as Java is told of it and as we are.
#[derive(Clone, Copy)]
enum Java<'a> {
    Growing(&'a str, &'a str),
    Piped(&'a str),
}

impl Java<'_> {
    fn ours(self, keys: usize, rate: f64) -> RedisBitmap {
        match self {
            Java::Growing(base, cursor) => RedisBitmap::guava(base, cursor, keys, rate).unwrap(),
            Java::Piped(key) => RedisBitmap::jedis(key, keys, rate).unwrap(),
        }
    }

    fn call(self, java: &mut Peer, expected: usize, rate: f64, insert: bool, keys: &[String]) -> Said {
        match self {
            Java::Growing(base, cursor) => {
                java.send(b"g");
                java.send_text(base);
                java.send_text(cursor);
                java.send(&(expected as i64).to_be_bytes());
                java.send(&rate.to_be_bytes());
            }
            Java::Piped(key) => {
                java.send(b"j");
                java.send_text(key);
                java.send(&(expected as i32).to_be_bytes());
                java.send(&rate.to_be_bytes());
                java.send(&1000i32.to_be_bytes());
            }
        }
        java.send(&[u8::from(insert)]);
        java.send(&(keys.len() as i32).to_be_bytes());
        keys.iter().for_each(|key| java.send_text(key));
        java.to.flush().unwrap();
        let bits = i64::from_be_bytes(java.receive()) as u64;
        let functions = i32::from_be_bytes(java.receive());
        let (answers, offsets) = keys
            .iter()
            .map(|_| {
                let [answer] = java.receive();
                (
                    answer == 1,
                    (0..functions)
                        .map(|_| u64::from_be_bytes(java.receive()))
                        .collect::<Vec<_>>(),
                )
            })
            .unzip();
        Said {
            bits,
            functions: functions as u8,
            answers,
            offsets,
        }
    }
}

/// Texts of up to 40 characters, of one to four bytes; the first one is empty.
fn text(i: u64) -> String {
    let character = |j: u64| {
        let n = number(i << 8 | j);
        let below = [0x80, 0x800, 0xd800, 0x11_0000 - 0xe000][(n % 4) as usize];
        let code = (n >> 8) as u32 % below + if n % 4 == 3 { 0xe000 } else { 0 };
        char::from_u32(code).expect("no surrogate")
    };
    (0..number(i) % 41 * u64::from(i > 0)).map(character).collect()
}

/// The same inserts by Java and by us, one by one and in batches: the same bits in Redis, the same
/// answers, and each reads the other's.
#[test]
fn guavas_layouts_agree_with_java() {
    let server = server!();
    let jars = match guava() {
        Ok(jars) => jars,
        Err(why) => return skip("LANEBLOOM_REQUIRE_JVM", &why),
    };
    for guava in jars {
        match Peer::java(&server, &guava) {
            Ok(mut java) => guavas_layouts_agree(&server, &mut java, &guava),
            Err(why) => return skip("LANEBLOOM_REQUIRE_JVM", &why),
        }
    }
}

fn guavas_layouts_agree(server: &Redis, java: &mut Peer, guava: &str) {
    let connection = &mut server.connection();
    for (expected, rate) in [
        (1, 0.03),
        (1, 0.5),
        (10, 0.01),
        (64, 0.04),
        (200, 1e-5),
        (3000, 0.03),
        (15, 1e-70),
    ] {
        for growing in [true, false] {
            let [theirs, ours, batched] = [("j", "j:c"), ("o", "o:c"), ("b", "b:c")].map(|(base, cursor)| {
                if growing {
                    Java::Growing(base, cursor)
                } else {
                    Java::Piped(base)
                }
            });
            let context = format!("{guava}, {expected} at {rate}, growing: {growing}");
            ask::<()>(connection, &["FLUSHALL"]);
            // Some of them twice. Each bit is a round trip of Java's.
            let count = if rate < 1e-50 { 40 } else { 200 };
            let keys: Vec<String> = (0..count).map(|i| text(if i % 9 == 8 { i / 2 } else { i })).collect();
            let said = theirs.call(java, expected, rate, true, &keys);
            let filter = ours.ours(expected, rate);
            assert_eq!(
                (filter.bit_size(), filter.hash_functions()),
                (said.bits, said.functions),
                "{context}"
            );
            let each: Vec<bool> = keys.iter().map(|key| filter.insert(connection, key).unwrap()).collect();
            assert_eq!(each, said.answers, "{context}");
            let batch = batched.ours(expected, rate);
            assert_eq!(inserts(&batch, connection, &keys), said.answers, "{context}");

            // Bit for bit, each bitmap.
            let last: Option<u64> = ask(connection, &["GET", "j:c"]);
            assert_eq!(last.is_some(), growing && expected < 200, "{context}");
            for number in 0..=last.unwrap_or(0) {
                let [bits, ours, batched] = ["j", "o", "b"].map(|base| -> Vec<u8> {
                    let bitmap = if growing {
                        format!("{base}-{number}")
                    } else {
                        format!("bf:{base}")
                    };
                    ask(connection, &["GET", &bitmap])
                });
                assert!(!bits.is_empty() && bits == ours && bits == batched, "{context}");
                if !growing {
                    // Every offset that Java names is one that we set, and there are no others.
                    let mut named = vec![0; bits.len()];
                    for offset in said.offsets.iter().flatten() {
                        named[*offset as usize / 8] |= 0x80 >> (offset % 8);
                    }
                    assert!(named == bits, "{context}");
                }
            }
            for cursor in ["o:c", "b:c"] {
                assert_eq!(last, ask::<Option<u64>>(connection, &["GET", cursor]), "{context}");
            }

            // Members and others, asked of what the other one wrote; and of a copy.
            let asked: Vec<String> = (count / 2..2 * count).map(text).collect();
            let of_ours = ours.call(java, expected, rate, false, &asked).answers;
            let of_theirs = theirs.ours(expected, rate);
            let found = lookups(&of_theirs, connection, &asked);
            assert_eq!(found, of_ours, "{context}");
            assert!((count / 2..count).zip(found).all(|(i, found)| found || i % 9 == 8));
            let copy = of_theirs.fetch_local(connection, 1 << 24).unwrap();
            assert_eq!(lookups_in(&copy, &asked), of_ours, "{context}");

            // Each goes on where the other stopped.
            let more: Vec<String> = (5000..5040).map(text).collect();
            let said = ours.call(java, expected, rate, true, &more);
            assert_eq!(inserts(&of_theirs, connection, &more), said.answers, "{context}");
            copy.refresh(connection).unwrap();
            assert!(more.iter().all(|key| copy.contains(key)));
        }
    }
    // Expiry by Java, and by us.
    let ours = Java::Piped("o")
        .ours(10, 0.1)
        .expire_on_insert(Duration::from_secs(2000));
    ours.insert(connection, "a").unwrap();
    for (key, expected) in [("bf:j", 900..=1000), ("bf:b", -1..=-1), ("bf:o", 1900..=2000)] {
        let left: i64 = ask(connection, &["TTL", key]);
        assert!(expected.contains(&left), "{key}: {left}");
    }
}

/// The same inserts by the Python package and by us: the same bits, and the same answers.
#[test]
fn scrapys_layout_agrees_with_the_package() {
    let server = server!();
    let mut python = match Peer::scrapy(&server) {
        Ok(python) => python,
        Err(why) => return skip("LANEBLOOM_REQUIRE_SCRAPY", &why),
    };
    let connection = &mut server.connection();
    let mut call = |what: &str, key: &str, bit: u32, functions: u8, keys: &[String]| -> Vec<Json> {
        writeln!(python.to, "{}", json!([what, key, bit, functions, keys])).unwrap();
        python.to.flush().unwrap();
        let mut line = String::new();
        python.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let fingerprint = |i: u64| format!("{:016x}{:016x}{:08x}", number(i), number(!i), number(i) as u32);
    // None of them empty: that is another case.
    let some = |i: u64| {
        if i.is_multiple_of(2) {
            fingerprint(i)
        } else {
            text(i) + "é"
        }
    };
    for (round, (bit, functions)) in [(1, 1), (8, 6), (13, 6), (16, 3), (20, 6), (24, 40)]
        .into_iter()
        .enumerate()
    {
        let (theirs, ours) = (format!("theirs {round}"), format!("ours {round}"));
        let keys: Vec<String> = (1..60).map(some).collect();
        let filter = RedisBitmap::scrapy(ours.as_str(), bit, functions).unwrap();
        filter.insert_batch(connection, &keys).unwrap();
        assert!(call("insert", &theirs, bit, functions, &keys).iter().all(Json::is_null));
        let bits: [Vec<u8>; 2] = ask(connection, &["MGET", &theirs, &ours]);
        assert!(bits[0] == bits[1], "2^{bit}, {functions}");

        let asked: Vec<String> = (30..150).map(some).collect();
        let answers = call("exists", &ours, bit, functions, &asked);
        let of_theirs = RedisBitmap::scrapy(theirs.as_str(), bit, functions).unwrap();
        let found = lookups(&of_theirs, connection, &asked);
        for ((key, answer), found) in asked.iter().zip(answers).zip(&found) {
            assert!(
                !key.is_empty() && answer == u8::from(*found),
                "{key:?} in 2^{bit}, {functions}"
            );
        }
        let copy = of_theirs.fetch_local(connection, 1 << 24).unwrap();
        assert_eq!(lookups_in(&copy, &asked), found);
    }
    // The package never finds the empty string; here it is a key like any other.
    let empty = [String::new()];
    call("insert", "empty", 20, 6, &empty);
    assert_eq!(call("exists", "empty", 20, 6, &empty), [json!(0)]);
    let ours = RedisBitmap::scrapy("empty", 20, 6).unwrap();
    assert!(ours.contains(connection, "").unwrap());
}
