//! `RedisBloom` beside the real module in a real server: the same answers, the same growth, the
//! same dumps, both ways.
//!
//! Needs `redis-server`, and the module, which `ci/fetch/redis_module.sh` fetches.

use crate::common::number;
use crate::mock::{Mock, Request, meanwhile};
use crate::redis_server::{ask, bloom_server};
use lanebloom_formats::RedisBloom;
use lanebloom_formats::redisbloom::Builder;
use lanebloom_redis::Transfer;
use redis::{Connection, RedisError, RedisResult, Value, cmd};
use std::error::Error;

/// Keys that are inserted into a filter, and as many others that are asked for. In most of the
/// filters they are several growth steps.
const KEYS: u64 = if cfg!(debug_assertions) { 2_500 } else { 125_000 };

/// Distinct but for some duplicates, of 0 to 40 bytes of any value.
fn key(i: u64) -> Vec<u8> {
    let i = if i % 10 == 9 { i / 2 } else { i };
    let len = number(i) % 41;
    let text = i
        .to_string()
        .into_bytes()
        .into_iter()
        .take(if i % 3 == 0 { 20 } else { 0 });
    let bytes = (0..len).map(|j| (number(i ^ j << 40) >> 8) as u8);
    text.chain(bytes).collect()
}

fn keys(from: u64) -> Vec<Vec<u8>> {
    (from..from + KEYS).map(key).collect()
}

struct Filter<'a> {
    connection: &'a mut Connection,
    key: &'a str,
}

impl Filter<'_> {
    fn many(&mut self, command: &str, keys: &[Vec<u8>]) -> Vec<bool> {
        let mut command = cmd(command);
        command.arg(self.key).arg(keys).query(self.connection).unwrap()
    }

    fn one(&mut self, command: &str, key: &[u8]) -> RedisResult<bool> {
        cmd(command).arg(self.key).arg(key).query(self.connection)
    }

    fn scandump(&mut self) -> Vec<(i64, Vec<u8>)> {
        let mut replies = Vec::new();
        let mut cursor = 0;
        loop {
            let mut command = cmd("BF.SCANDUMP");
            let reply: (i64, Vec<u8>) = command.arg(self.key).arg(cursor).query(self.connection).unwrap();
            if reply.0 == 0 {
                return replies;
            }
            cursor = reply.0;
            replies.push(reply);
        }
    }

    fn loadchunk(&mut self, cursor: i64, chunk: &[u8]) -> RedisResult<()> {
        let mut command = cmd("BF.LOADCHUNK");
        command.arg(self.key).arg(cursor).arg(chunk).exec(self.connection)
    }

    /// The same dump, and the same `BF.INFO`.
    #[track_caller]
    fn assert_is(&mut self, ours: &RedisBloom) {
        let theirs = self.scandump();
        assert_eq!(theirs[0], ours.to_loadchunks().next().unwrap());
        assert!(theirs.iter().cloned().eq(ours.to_loadchunks()));
        let info: Vec<(String, Option<u64>)> = cmd("BF.INFO").arg(self.key).query(self.connection).unwrap();
        let ours = ours.info();
        let expected = [
            ("Capacity", Some(ours.capacity)),
            ("Size", Some(ours.size)),
            ("Number of filters", Some(ours.filters as u64)),
            ("Number of items inserted", Some(ours.items)),
            ("Expansion rate", ours.expansion.map(u64::from)),
        ];
        assert!(
            info.iter().map(|(name, number)| (&name[..], *number)).eq(expected),
            "{info:?}"
        );
    }

    /// Inserts the same keys into both, alone and in batches; the same answers.
    fn insert_beside(&mut self, ours: &mut RedisBloom, keys: &[Vec<u8>]) {
        for (i, keys) in keys.chunks(997).enumerate() {
            if i % 3 == 0 {
                for key in &keys[..keys.len().min(200)] {
                    assert_eq!(self.one("BF.ADD", key).unwrap(), ours.insert(key).unwrap());
                }
            }
            let mut changed = vec![false; keys.len()];
            ours.insert_batch_into(keys, &mut changed).unwrap();
            assert_eq!(self.many("BF.MADD", keys), changed);
        }
    }

    /// The same answers to members and others, false positives among them; how many were found.
    fn ask_beside(&mut self, ours: &RedisBloom, keys: &[Vec<u8>]) -> usize {
        let mut found = vec![false; keys.len()];
        ours.contains_batch(keys, &mut found);
        let theirs: Vec<bool> = keys
            .chunks(2000)
            .flat_map(|keys| self.many("BF.MEXISTS", keys))
            .collect();
        assert!(found == theirs);
        for key in &keys[..100] {
            assert_eq!(self.one("BF.EXISTS", key).unwrap(), ours.contains(key));
        }
        found.iter().filter(|found| **found).count()
    }
}

type Reserve = (&'static str, u64, &'static [&'static str], fn(Builder) -> Builder);

/// The arguments that `BF.RESERVE` takes, and ours.
const RESERVES: [Reserve; 9] = [
    ("0.01", 100, &[], |builder| builder),
    ("0.01", 10, &["EXPANSION", "2"], |builder| builder),
    ("0.001", 100, &["EXPANSION", "4"], |builder| builder.expansion(4)),
    ("0.05", 500, &["EXPANSION", "1"], |builder| builder.expansion(1)),
    ("0.3", 3, &["EXPANSION", "3"], |builder| builder.expansion(3)),
    ("0.9", 1, &[], |builder| builder),
    ("0.000001", 1000, &[], |builder| builder),
    ("1e-30", 700, &["EXPANSION", "7"], |builder| builder.expansion(7)),
    ("0.02", 200_000, &["NONSCALING"], Builder::non_scaling),
];

fn reserve(connection: &mut Connection, key: &str, (rate, capacity, extra, build): Reserve) -> RedisBloom {
    let keys = capacity.to_string();
    ask::<()>(connection, &[&["BF.RESERVE", key, rate, &keys], extra].concat());
    let builder = RedisBloom::builder()
        .false_positive_rate(rate.parse().unwrap())
        .expected_keys(capacity as usize);
    build(builder).build().unwrap()
}

#[test]
fn filters_grow_and_answer_as_the_modules_do() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let (inserted, others) = (keys(0), keys(1 << 32));
    let mut false_positives = 0;
    for (i, arguments) in RESERVES.into_iter().enumerate() {
        let key = &format!("filter {i}")[..];
        let mut ours = reserve(connection, key, arguments);
        let mut theirs = Filter { connection, key };
        theirs.assert_is(&ours);
        let (first, rest) = inserted.split_at(inserted.len() / 2);
        theirs.insert_beside(&mut ours, first);
        theirs.assert_is(&ours);
        assert_eq!(theirs.ask_beside(&ours, first), first.len());
        false_positives += theirs.ask_beside(&ours, &others);

        // Out of Redis, and back under another name; all three go on alike.
        let mut fetched = RedisBloom::fetch(theirs.connection, key, 1 << 30).unwrap();
        assert!(fetched == ours);
        fetched.store(theirs.connection, "copy").unwrap();
        theirs.insert_beside(&mut ours, rest);
        let (connection, key) = (theirs.connection, "copy");
        let mut copy = Filter { connection, key };
        copy.insert_beside(&mut fetched, rest);
        copy.assert_is(&ours);
        assert!(fetched == ours);
        false_positives += copy.ask_beside(&ours, &others);
        ask::<()>(connection, &["DEL", "copy"]);
        assert_eq!(ours.info().filters == 1, arguments.2 == ["NONSCALING"], "{ours:?}");
    }
    assert!(false_positives > 100, "{false_positives}");
}

/// By `BF.ADD` alone, and by `BF.INSERT`.
#[test]
fn defaults_are_the_modules() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let mut theirs = Filter { connection, key: "a" };
    let mut ours = RedisBloom::builder().build().unwrap();
    theirs.insert_beside(&mut ours, &keys(0)[..500]);
    theirs.assert_is(&ours);
    ask::<()>(
        connection,
        &["BF.INSERT", "b", "CAPACITY", "5", "ERROR", "0.2", "ITEMS", "x"],
    );
    let mut ours = RedisBloom::with_capacity(5, 0.2).unwrap();
    ours.insert("x").unwrap();
    Filter { connection, key: "b" }.assert_is(&ours);
}

#[test]
fn a_filter_that_does_not_scale_refuses_the_same_key() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let arguments: Reserve = ("0.01", 100, &["NONSCALING"], Builder::non_scaling);
    let mut ours = reserve(connection, "a", arguments);
    let mut theirs = Filter { connection, key: "a" };
    let mut refused = 0;
    for i in 0..150 {
        let answers = (theirs.one("BF.ADD", &key(i)), ours.insert(&key(i)));
        match answers {
            (Ok(theirs), Ok(ours)) => assert_eq!(theirs, ours),
            (Err(theirs), Err(ours)) => {
                assert!(theirs.to_string().contains("non scaling filter is full"), "{theirs}");
                assert!(ours.is_full());
                refused += 1;
            }
            (theirs, ours) => panic!("{theirs:?} there, {ours:?} here"),
        }
    }
    assert!(refused > 10);
    theirs.assert_is(&ours);
}

/// Chains of older versions, which the module loads and goes on with: by every set of options, from
/// 1 (NOROUND) to 8 (NO_SCALING).
#[test]
fn older_chains_go_on_as_in_the_module() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let (inserted, others) = (keys(0), keys(1 << 32));
    for options in [0u8, 1, 4, 5, 8, 9, 12, 13] {
        // 110 bits in 128, and for such as are rounded up the 2^7 that this is, or fewer.
        for log in if options & 1 == 0 { &[7, 6, 3][..] } else { &[0] } {
            let empty = RedisBloom::with_capacity(10, 0.01).unwrap();
            let mut replies: Vec<_> = empty.to_loadchunks().collect();
            replies[0].1[12] = options;
            replies[0].1[72] = *log;
            let mut ours = RedisBloom::from_scandump(replies.clone(), 1 << 20).unwrap();
            ask::<()>(connection, &["DEL", "a"]);
            let mut theirs = Filter { connection, key: "a" };
            for (cursor, chunk) in &replies {
                theirs.loadchunk(*cursor, chunk).unwrap();
            }
            if options & 8 == 0 {
                theirs.insert_beside(&mut ours, &inserted);
                // (8 bits are soon all set, and then every key is found.)
                assert!(ours.info().filters > 5 || *log == 3);
            } else {
                theirs.insert_beside(&mut ours, &inserted[..5]);
            }
            theirs.assert_is(&ours);
            theirs.ask_beside(&ours, &inserted);
            theirs.ask_beside(&ours, &others);
        }
    }
}

/// The module's result by the C library's logarithm.
#[test]
fn sizes_of_any_rate_are_the_modules() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let mut others = 0;
    let rates = (0..KEYS / 10).map(|i| {
        let unit = (number(i) >> 11) as f64 / (1u64 << 53) as f64;
        if i % 2 == 0 { unit } else { 10f64.powf(-30.0 * unit) }
    });
    for (i, rate) in rates.enumerate() {
        let capacity = 1 + number(i as u64) % 100_000;
        ask::<()>(
            connection,
            &["BF.RESERVE", "a", &format!("{rate:e}"), &capacity.to_string()],
        );
        let ours = RedisBloom::with_capacity(capacity as usize, rate).unwrap();
        let mut theirs = Filter { connection, key: "a" };
        let (_, header) = theirs.scandump().swap_remove(0);
        let (_, mut expected) = ours.to_loadchunks().next().unwrap();
        let per_key = |header: &[u8]| u64::from_le_bytes(*header[52..].first_chunk().unwrap());
        assert!(per_key(&header).abs_diff(per_key(&expected)) <= 1, "{rate:e}");
        others += u32::from(header != expected);
        expected[52..60].copy_from_slice(&header[52..60]);
        assert_eq!(header, expected, "{rate:e}, {capacity}");
        ask::<()>(connection, &["DEL", "a"]);
    }
    assert!(u64::from(others) <= 1 + KEYS / 1000, "{others}");
}

/// This crate refuses every header that the module refuses.
#[test]
fn headers_that_the_module_refuses_are_refused() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let mut filter = RedisBloom::with_capacity(10, 0.01).unwrap();
    filter.insert_batch(&keys(0)[..60]).unwrap();
    let replies: Vec<_> = filter.to_loadchunks().collect();
    let (mut refused, mut taken) = (0, 0);
    for i in 0..KEYS {
        let mut replies = replies.clone();
        let header = &mut replies[0].1;
        match number(i) % 8 {
            0 => header.truncate((number(i) >> 8) as usize % 200),
            1 => header.extend(vec![0; (number(i) >> 8) as usize % 60]),
            _ => {
                for j in 0..1 + number(i) % 3 {
                    let at = (number(i + (j << 32)) >> 8) as usize % header.len();
                    // Not what the module would allocate by.
                    let field = at.saturating_sub(20) % 53;
                    if at < 20 || field >= 16 {
                        let byte = number(i + (j << 33));
                        header[at] = (byte >> 8) as u8 & if byte & 1 == 0 { 15 } else { 255 };
                    }
                }
            }
        }
        let mut theirs = Filter { connection, key: "a" };
        let ours = RedisBloom::from_scandump(replies.clone(), 1 << 20);
        match theirs.loadchunk(1, &replies[0].1) {
            Err(error) => {
                assert!(error.to_string().contains("received bad data"), "{error}");
                assert!(ours.is_err(), "{}: {:?}", i, replies[0].1);
                refused += 1;
            }
            Ok(()) => {
                if let Ok(ours) = ours {
                    for (cursor, chunk) in &replies[1..] {
                        theirs.loadchunk(*cursor, chunk).unwrap();
                    }
                    theirs.assert_is(&ours);
                    taken += 1;
                }
                ask::<()>(connection, &["DEL", "a"]);
            }
        }
    }
    assert!(refused > KEYS / 2 && taken > KEYS / 100, "{refused}, {taken}");
}

/// A chain whose newest filter is in three chunks.
#[test]
fn filters_of_several_chunks_travel() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let arguments: Reserve = ("0.01", 1000, &["EXPANSION", "25000"], |builder| {
        builder.expansion(25_000)
    });
    let mut ours = reserve(connection, "a", arguments);
    let mut theirs = Filter { connection, key: "a" };
    let keys: Vec<Vec<u8>> = (0..1500).map(key).collect();
    theirs.insert_beside(&mut ours, &keys);
    assert_eq!(ours.to_loadchunks().count(), 5);
    theirs.assert_is(&ours);
    let fetched = RedisBloom::fetch(connection, "a", 40 << 20).unwrap();
    assert!(fetched == ours);
    let bytes = ours.memory_bytes();
    let error = RedisBloom::fetch(connection, "a", bytes - 1).unwrap_err();
    let limit = format!("takes {bytes} bytes, more than the limit of {} bytes", bytes - 1);
    assert!(error.to_string().ends_with(&limit), "{error}");
    assert!(error.source().is_some());
    ask::<()>(connection, &["BF.RESERVE", "b", "0.1", "5"]);
    assert!(ours.store(connection, "b").unwrap_err().is_taken());
    ours.replace(connection, "b").unwrap();
    Filter { connection, key: "b" }.assert_is(&ours);
    assert_eq!(names(connection), ["a", "b"]);
    assert_eq!(ttl(connection, "b"), -1);
}

fn names(connection: &mut Connection) -> Vec<String> {
    let mut names: Vec<String> = ask(connection, &["KEYS", "*"]);
    names.sort();
    names
}

fn ttl(connection: &mut Connection, key: &str) -> i64 {
    ask(connection, &["TTL", key])
}

fn some_filter() -> RedisBloom {
    let mut filter = RedisBloom::with_capacity(1000, 0.01).unwrap();
    filter.insert_batch(&keys(0)[..1000]).unwrap();
    filter
}

#[test]
fn errors_of_the_server_say_what_is_wrong() {
    let server = server!(bloom_server());
    let connection = &mut server.connection();
    let filter = some_filter();
    let error = RedisBloom::fetch(connection, "a\n", 1 << 20).unwrap_err();
    assert!(error.is_missing() && !error.is_taken() && error.source().is_none());
    assert_eq!(error.to_string(), r#""a\n": there is nothing at this key"#);

    ask::<()>(connection, &["SET", "text", "b"]);
    let error = RedisBloom::fetch(connection, "text", 1 << 20).unwrap_err();
    assert!(!error.is_missing() && !error.is_unreachable());
    let says = r#""text" has a value of another type: "#;
    assert!(error.to_string().starts_with(says), "{error}");
    let error = filter.store(connection, "text").unwrap_err();
    assert!(error.is_taken() && error.source().is_none());
    assert_eq!(error.to_string(), r#""text": there is something at this key already"#);
    ask::<()>(connection, &["EXPIRE", "text", "1000"]);
    filter.replace(connection, "text").unwrap();
    assert!(RedisBloom::fetch(connection, "text", 1 << 20).unwrap() == filter);
    assert_eq!(ttl(connection, "text"), -1);

    // Keys of bytes, an empty one, one with a hash tag.
    for key in [&b"\xff\0\r\n"[..], b"", b"{tag}:a"] {
        filter.store(connection, key).unwrap();
        assert!(RedisBloom::fetch(connection, key, 1 << 20).unwrap() == filter);
        cmd("DEL").arg(key).exec(connection).unwrap();
    }
    assert_eq!(names(connection), ["text"]);

    // No memory: nothing is left of what was begun.
    ask::<()>(
        connection,
        &["CONFIG", "SET", "maxmemory", "1", "maxmemory-policy", "noeviction"],
    );
    let error = filter.store(connection, "b").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(r#"the server refused an operation on "b": "#),
        "{error}"
    );
    assert!(error.to_string().contains("maxmemory"), "{error}");
    assert_eq!(names(connection), ["text"]);
}

#[test]
fn a_server_without_the_module_says_so() {
    let server = server!();
    let connection = &mut server.connection();
    for error in [
        RedisBloom::fetch(connection, "a", 1 << 20).unwrap_err(),
        some_filter().store(connection, "a").unwrap_err(),
        some_filter().replace(connection, "a").unwrap_err(),
    ] {
        let says = r#""a": the server has not loaded RedisBloom: "#;
        assert!(error.to_string().starts_with(says), "{error}");
        assert!(!error.is_missing() && error.source().is_some());
    }
}

/// A filter in use: all that was in it before is in the copy, wherever it grew meanwhile.
#[test]
fn a_filter_is_fetched_beside_inserts() {
    let server = server!(bloom_server());
    let mut other = server.connection();
    let insert = |connection: &mut Connection, keys: &[Vec<u8>]| {
        let mut command = cmd("BF.MADD");
        command.arg("a").arg(keys).exec(connection).unwrap();
    };
    insert(&mut other, &keys(0)[..400]);
    let mut turn = 0;
    let mut connection = meanwhile(&server, |_| {
        turn += 1;
        insert(&mut server.connection(), &keys(turn * 1000)[..500]);
        Ok(())
    });
    let copy = RedisBloom::fetch(&mut connection, "a", 1 << 20).unwrap();
    // The header, of which each filter is a chunk, and the header again.
    assert_eq!(connection.requests, copy.info().filters + 2);
    assert!(keys(0)[..400].iter().all(|key| copy.contains(key)));
    let items: Vec<(String, u64)> = cmd("BF.INFO").arg("a").query(&mut other).unwrap();
    assert!(items[3].1 > copy.info().items && items[2].1 > copy.info().filters as u64);
}

/// Deleted in the middle, or another one there.
#[test]
fn a_filter_that_changes_while_it_is_read_is_an_error() {
    let server = server!(bloom_server());
    let mut other = server.connection();
    let run = |connection: &mut Connection, commands: &[&str]| {
        let words = commands.iter().map(|command| Vec::from_iter(command.split(' ')));
        words.for_each(|words| ask::<()>(connection, &words));
    };
    run(&mut other, &["BF.RESERVE a 0.01 1000", "BF.MADD a x y"]);
    let changed = r#""a": the filter was replaced or changed while it was read: fetch it again"#;
    for (commands, message) in [
        (&["DEL a", "BF.RESERVE a 0.01 1001", "BF.MADD a x y z"][..], changed),
        (
            &["DEL a", "BF.RESERVE a 0.01 1000 EXPANSION 3", "BF.MADD a x y z"],
            changed,
        ),
        (&["DEL a", "BF.RESERVE a 0.01 1000", "BF.ADD a x"], changed),
        (&["DEL a"], r#""a": there is nothing at this key"#),
    ] {
        for at in 2..=3 {
            run(&mut other, &["DEL a", "BF.RESERVE a 0.01 1000", "BF.MADD a x y"]);
            let mut connection = meanwhile(&server, |i| {
                if i == at {
                    run(&mut server.connection(), commands);
                }
                Ok(())
            });
            let error = RedisBloom::fetch(&mut connection, "a", 1 << 20).unwrap_err();
            assert_eq!(error.to_string(), message, "{at}");
        }
    }
}

/// Wherever the connection breaks, nobody sees half a filter; what is left of it expires.
#[test]
fn a_filter_that_is_not_stored_leaves_nothing() {
    let server = server!(bloom_server());
    let mut other = server.connection();
    let mut filter = RedisBloom::with_capacity(100, 0.01).unwrap();
    filter.insert_batch(&keys(0)[..300]).unwrap();
    let broken = |at: usize, once: bool| {
        move |i: usize| {
            let breaks = if once { i == at } else { i >= at };
            let error = || RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
            if breaks { Err(error()) } else { Ok(()) }
        }
    };
    let commands = {
        let mut connection = meanwhile(&server, |_| Ok(()));
        filter.store(&mut connection, "a").unwrap();
        connection.requests
    };
    // EXISTS and BF.EXISTS, two for the header and each chunk, and the last.
    assert_eq!(commands, 2 + 2 * (1 + filter.info().filters) + 1);
    ask::<()>(&mut other, &["DEL", "a"]);
    for at in 1..=commands {
        // Back for what is left to be done, and not.
        for once in [true, false] {
            let mut connection = meanwhile(&server, broken(at, once));
            let error = filter.store(&mut connection, "a").unwrap_err();
            assert!(error.is_unreachable() && error.source().is_some(), "{error}");
            let says = "the server was not reached: ";
            assert!(error.to_string().starts_with(says), "{error}");
            let names = names(&mut other);
            if once || at < 4 {
                assert!(names.is_empty(), "{at}: {names:?}");
            } else {
                assert_eq!(names.len(), 1);
                assert!(names[0].starts_with("{a}:lanebloom:"), "{names:?}");
                // Until the first command after the header.
                let left = ttl(&mut other, &names[0]);
                let expected = if at == 4 { -1..=-1 } else { 1..=600 };
                assert!(expected.contains(&left), "{at}: {left}");
                ask::<()>(&mut other, &["DEL", &names[0]]);
            }
        }
    }
    // Somebody was faster.
    let mut connection = meanwhile(&server, |i| {
        if i == 5 {
            cmd("SET").arg("a").arg("b").exec(&mut server.connection())?;
        }
        Ok(())
    });
    assert!(filter.store(&mut connection, "a").unwrap_err().is_taken());
    assert_eq!(names(&mut other), ["a"]);
    // `replace` puts another filter there all the same.
    filter.replace(&mut other, "a").unwrap();
    assert!(RedisBloom::fetch(&mut other, "a", 1 << 20).unwrap() == filter);
}

/// A server that answers each command by its name as it is told.
fn told(
    mut answer: impl FnMut(&str) -> RedisResult<Value>,
) -> Mock<impl FnMut(Request<'_>) -> RedisResult<Vec<Value>>> {
    Mock::new(move |request: Request<'_>| Ok(vec![answer(request.name())?]))
}

/// A reply that a command does not give is an error that names it, and has no more of it than a
/// line; above all where it says whether all is done.
#[test]
fn replies_without_sense_are_errors() {
    use redis::Value::{Array, BulkString, Int, Map, Nil, Okay, SimpleString};
    let filter = some_filter();
    let honest = |command: &str, renamed: &Value| match command {
        "EXISTS" | "BF.EXISTS" => Int(0),
        "BF.LOADCHUNK" => Okay,
        "EXPIRE" | "UNLINK" => Int(1),
        "EXEC" => Array(vec![Int(1), renamed.clone()]),
        other => panic!("{other}"),
    };
    let answers = |renamed: Value| told(move |command| Ok(honest(command, &renamed)));
    filter.store(&mut answers(Int(1)), "seen").unwrap();
    filter.replace(&mut answers(Okay), "seen").unwrap();
    let taken = filter.store(&mut answers(Int(0)), "seen");
    assert!(taken.unwrap_err().is_taken());

    let long = || BulkString(vec![b'x'; 1 << 20]);
    let malformed = || redis::parse_redis_value(b":x\r\n").unwrap_err();
    let nonsense = || {
        let texts = [SimpleString("QUEUED".into()), BulkString(b"OK".into()), long()];
        let lists = [Array(vec![]), Array(vec![long()]), Map(vec![(long(), Nil)])];
        let values = [Nil, Int(2), Int(-1)].into_iter().chain(texts).chain(lists);
        values.map(Ok).chain([Err(malformed())])
    };
    let check = |command: &str, reply: &RedisResult<Value>, result: Result<(), lanebloom_redis::TransferError>| {
        let error = result
            .err()
            .unwrap_or_else(|| panic!("{command}: {reply:.80?} is taken"));
        let text = error.to_string();
        let says = format!("unexpected reply to {command} on \"seen\": ");
        assert!(text.starts_with(&says) && text.len() < 250, "{text:.300}");
        assert!(!error.is_taken() && !error.is_missing() && !error.is_unreachable());
    };
    let lies = |command: &'static str, reply: &RedisResult<Value>, renamed: &Value| {
        let (reply, renamed) = (reply.clone(), renamed.clone());
        told(move |name| {
            if name == command {
                reply.clone()
            } else {
                Ok(honest(name, &renamed))
            }
        })
    };
    for command in ["EXISTS", "BF.EXISTS", "BF.LOADCHUNK", "EXPIRE", "EXEC"] {
        // One that is sound, of another command.
        let other = if command == "BF.LOADCHUNK" { Int(1) } else { Okay };
        for reply in nonsense().chain([Ok(other)]) {
            check(
                command,
                &reply,
                filter.store(&mut lies(command, &reply, &Int(1)), "seen"),
            );
        }
    }
    for reply in [
        Array(vec![Int(1)]),
        Array(vec![Okay]),
        Array(vec![Int(1), Int(1)]),
        Array(vec![Int(1), Int(0)]),
        Array(vec![Okay, Okay]),
        Array(vec![Int(1), Nil]),
        Array(vec![Int(1), long()]),
        Array(vec![Int(1), SimpleString("QUEUED".into())]),
        Array(vec![Int(1), Okay, Okay]),
        Int(1),
    ] {
        let reply = Ok(reply);
        check("EXEC", &reply, filter.replace(&mut lies("EXEC", &reply, &Okay), "seen"));
    }
    for reply in nonsense().chain(
        [
            vec![Int(1)],
            vec![long(), Int(1)],
            vec![Int(1), Nil],
            vec![Int(1), Array(vec![long()])],
            vec![Int(1), long(), long()],
        ]
        .map(|items| Ok(Array(items))),
    ) {
        let fetched = RedisBloom::fetch(&mut told(|_: &str| reply.clone()), "seen", 1 << 30);
        check("BF.SCANDUMP", &reply, fetched.map(drop));
    }
    // An error that is long is told shortly as well, and known all the same.
    for (code, says) in [
        ("ERR", "the server refused an operation on \"seen\": "),
        (
            "READONLY",
            "\"seen\" was not written, the server is a read-only replica: ",
        ),
        ("WRONGTYPE", "\"seen\" has a value of another type: "),
        ("OOM", "the server refused an operation on \"seen\": "),
    ] {
        let error = redis::parse_redis_value(format!("-{code} {}\r\n", "x".repeat(1 << 20)).as_bytes()).unwrap();
        let stored = filter.store(&mut told(|_: &str| Ok(error.clone())), "seen");
        let text = stored.unwrap_err().to_string();
        assert!(text.starts_with(says) && text.len() < 600, "{text:.300}");
    }
}
