//! `RedisBitmap` beside the programs that its layouts come from, on one server: Java with Guava's
//! own hashing, and the Python package scrapy-redis-bloomfilter. Each reads the bits that the other
//! wrote. Bits and answers are the same.
//!
//! Needs a server (`redis_server`). Also needs `java` with Guava, as `guava_jvm.rs` in
//! crates/formats does, or `python3` with the packages that `ci/fetch/python_peers.sh` fetches. If
//! they are missing the tests say so and pass, unless `LANEBLOOM_REQUIRE_JVM` or
//! `LANEBLOOM_REQUIRE_SCRAPY` is set, as in CI.

use crate::common::number;
use crate::redis_server::{Redis, Server, skip};
use lanebloom_redis::RedisBitmap;
use redis::Connection;
use serde_json::{Value as Json, json};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;
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

    /// The Java program, on a server.
    fn java(server: &Redis) -> Result<Self, String> {
        let guava = std::env::var("LANEBLOOM_GUAVA").unwrap_or_else(|_| "/usr/share/java/guava.jar".into());
        if !guava.contains(':') && !Path::new(&guava).exists() {
            return Err(format!("there is no {guava}"));
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/RedisBitmaps.java");
        let mut command = Command::new("java");
        command.arg("-cp").arg(guava).arg(source).arg(server.port().to_string());
        Self::start(command)
    }

    /// The Python program, on a server.
    fn scrapy(server: &Redis) -> Result<Self, String> {
        let folder =
            |variable: &str, path: &str| std::env::var_os(variable).map(|folder| Path::new(&folder).join(path));
        let packages = folder("LANEBLOOM_PYTHON_PEERS", "")
            .or_else(|| folder("XDG_CACHE_HOME", "lanebloom/python"))
            .or_else(|| folder("HOME", ".cache/lanebloom/python"));
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", packages.unwrap_or_default());
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

fn value(connection: &mut Connection, key: &str) -> Vec<u8> {
    redis::cmd("GET").arg(key).query(connection).unwrap()
}

/// The same inserts by Java and by us, one by one and in batches: the same bits in Redis, the same
/// answers, and each reads the other's.
#[test]
fn guavas_layouts_agree_with_java() {
    const TEST: &str = "guavas_layouts_agree_with_java";
    let Some(server) = Server::of(TEST).start() else {
        return;
    };
    let mut java = match Peer::java(&server) {
        Ok(java) => java,
        Err(why) => return skip(TEST, "LANEBLOOM_REQUIRE_JVM", &why),
    };
    let (java, connection) = (&mut java, &mut server.connection());
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
            let (theirs, ours, batched) = if growing {
                (
                    Java::Growing("j", "j:c"),
                    Java::Growing("o", "o:c"),
                    Java::Growing("b", "b:c"),
                )
            } else {
                (Java::Piped("j"), Java::Piped("o"), Java::Piped("b"))
            };
            let context = format!("{expected} at {rate}, growing: {growing}");
            redis::cmd("FLUSHALL").exec(connection).unwrap();
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
            let mut changed = vec![false; keys.len()];
            batch.insert_batch_flagged(connection, &keys, &mut changed).unwrap();
            assert_eq!(changed, said.answers, "{context}");

            // Bit for bit, each bitmap.
            let last: Option<u64> = redis::cmd("GET").arg("j:c").query(connection).unwrap();
            assert_eq!(last.is_some(), growing && expected < 200, "{context}");
            for number in 0..=last.unwrap_or(0) {
                let bitmap = |base: &str| {
                    if growing {
                        format!("{base}-{number}")
                    } else {
                        format!("bf:{base}")
                    }
                };
                let bits = value(connection, &bitmap("j"));
                assert!(!bits.is_empty());
                assert!(bits == value(connection, &bitmap("o")), "{context}");
                assert!(bits == value(connection, &bitmap("b")), "{context}");
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
                let other: Option<u64> = redis::cmd("GET").arg(cursor).query(connection).unwrap();
                assert_eq!(last, other, "{context}");
            }

            // Members and others, asked of what the other one wrote; and of a copy.
            let asked: Vec<String> = (count / 2..2 * count).map(text).collect();
            let of_ours = ours.call(java, expected, rate, false, &asked).answers;
            let of_theirs = theirs.ours(expected, rate);
            let mut found = vec![false; asked.len()];
            of_theirs.contains_batch(connection, &asked, &mut found).unwrap();
            assert_eq!(found, of_ours, "{context}");
            assert!(
                found[..count as usize / 2]
                    .iter()
                    .enumerate()
                    .all(|(i, found)| *found || (count as usize / 2 + i) % 9 == 8)
            );
            let copy = of_theirs.fetch_local(connection, 1 << 24).unwrap();
            assert!(asked.iter().map(|key| copy.contains(key)).eq(of_ours), "{context}");

            // Each goes on where the other stopped.
            let more: Vec<String> = (5000..5040).map(text).collect();
            let said = ours.call(java, expected, rate, true, &more);
            let mut changed = vec![false; more.len()];
            of_theirs.insert_batch_flagged(connection, &more, &mut changed).unwrap();
            assert_eq!(changed, said.answers, "{context}");
            copy.refresh(connection).unwrap();
            assert!(more.iter().all(|key| copy.contains(key)));
        }
    }
    // Expiry by Java, and by us.
    for (key, expires) in [("bf:j", true), ("bf:b", false)] {
        let left: i64 = redis::cmd("TTL").arg(key).query(connection).unwrap();
        assert!(
            if expires {
                (900..=1000).contains(&left)
            } else {
                left == -1
            },
            "{key}: {left}"
        );
    }
    let ours = Java::Piped("o")
        .ours(10, 0.1)
        .expire_on_insert(Duration::from_secs(2000));
    ours.insert(connection, "a").unwrap();
    let left: i64 = redis::cmd("TTL").arg("bf:o").query(connection).unwrap();
    assert!((1900..=2000).contains(&left));
}

/// The same inserts by the Python package and by us: the same bits, and the same answers.
#[test]
fn scrapys_layout_agrees_with_the_package() {
    const TEST: &str = "scrapys_layout_agrees_with_the_package";
    let Some(server) = Server::of(TEST).start() else {
        return;
    };
    let mut python = match Peer::scrapy(&server) {
        Ok(python) => python,
        Err(why) => return skip(TEST, "LANEBLOOM_REQUIRE_SCRAPY", &why),
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
        assert!(
            value(connection, &theirs) == value(connection, &ours),
            "2^{bit}, {functions}"
        );

        let asked: Vec<String> = (30..150).map(some).collect();
        let answers = call("exists", &ours, bit, functions, &asked);
        let of_theirs = RedisBitmap::scrapy(theirs.as_str(), bit, functions).unwrap();
        let mut found = vec![false; asked.len()];
        of_theirs.contains_batch(connection, &asked, &mut found).unwrap();
        for ((key, answer), found) in asked.iter().zip(answers).zip(&found) {
            assert!(
                !key.is_empty() && answer == u8::from(*found),
                "{key:?} in 2^{bit}, {functions}"
            );
        }
        let copy = of_theirs.fetch_local(connection, 1 << 24).unwrap();
        assert!(asked.iter().map(|key| copy.contains(key)).eq(found));
    }
    // The package never finds the empty string; here it is a key like any other.
    let empty = [String::new()];
    call("insert", "empty", 20, 6, &empty);
    assert_eq!(call("exists", "empty", 20, 6, &empty), [json!(0)]);
    assert!(
        RedisBitmap::scrapy("empty", 20, 6)
            .unwrap()
            .contains(connection, "")
            .unwrap()
    );
}
