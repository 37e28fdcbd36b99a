//! A node of a shared set whose server answers anything. The node takes bits, or reports the error,
//! and forgets nothing.
//!
//! Answers consist of the parts of real answers, since a fuzzer would hardly find a delta in an
//! exchange by itself. Now and then they are raw bytes of the protocol.

#![no_main]

use arbitrary::Arbitrary;
use lanebloom::{ConcurrentBloom, WindowedBloom};
use lanebloom_redis::shared::Threadless;
use lanebloom_redis::{SharedBloom, SharedError};
use libfuzzer_sys::fuzz_target;
use redis::{ConnectionLike, ErrorKind, RedisResult, Value};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

#[derive(Arbitrary, Debug)]
struct Input {
    window: bool,
    shape: u8,
    keys: u8,
    passes: u8,
    answers: Vec<Answer>,
}

#[derive(Arbitrary, Debug)]
enum Answer {
    /// To an exchange: a word, its id, the era, and what was pulled.
    Exchange(u8, Id, Id, Vec<(Id, Delta)>),
    /// To a read of the head, the lost chunks and the versions.
    State(Option<Id>, Vec<u8>, Vec<(u8, Id)>),
    /// To a read of chunks: their versions and lengths.
    Chunks(Vec<(Option<Id>, u16)>),
    Parts(Vec<Part>),
    Protocol(Vec<u8>),
}

#[derive(Arbitrary, Clone, Copy, Debug)]
struct Id(u8, u8);

#[derive(Arbitrary, Debug)]
enum Part {
    Nil,
    Int(i64),
    Id(Id),
    Bytes(Vec<u8>),
    /// A chunk.
    Zeros(u16),
    Delta(Delta),
    List(Vec<Part>),
}

#[derive(Arbitrary, Debug)]
struct Delta(Vec<Record>);

#[derive(Arbitrary, Debug)]
enum Record {
    Bits(u8, Vec<u16>),
    Whole(u8, u16),
    Bytes(Vec<u8>),
}

impl Id {
    fn value(self) -> Value {
        Value::BulkString(format!("{}-{}", self.0, self.1).into_bytes())
    }

    /// Nothing where there is none, as scripts answer.
    fn or_nothing(id: Option<Self>) -> Value {
        id.map_or(Value::BulkString(Vec::new()), Self::value)
    }
}

impl Delta {
    fn value(self) -> Value {
        let mut bytes = Vec::new();
        for record in self.0 {
            match record {
                Record::Bits(chunk, bits) => {
                    bytes.extend(u32::from(chunk).to_le_bytes());
                    bytes.extend((bits.len() as u16).to_le_bytes());
                    bytes.extend(bits.iter().flat_map(|bit| bit.to_le_bytes()));
                }
                Record::Whole(chunk, len) => {
                    bytes.extend(u32::from(chunk).to_le_bytes());
                    bytes.extend((len | 1 << 15).to_le_bytes());
                    bytes.extend((0..len & 0x7fff).map(|i| (i % 251) as u8));
                }
                Record::Bytes(more) => bytes.extend(more),
            }
        }
        Value::BulkString(bytes)
    }
}

impl Part {
    fn value(self) -> Value {
        match self {
            Self::Nil => Value::Nil,
            Self::Int(int) => Value::Int(int),
            Self::Id(id) => id.value(),
            Self::Bytes(bytes) => Value::BulkString(bytes),
            Self::Zeros(len) => Value::BulkString(vec![0; len.into()]),
            Self::Delta(delta) => delta.value(),
            Self::List(parts) => Value::Array(parts.into_iter().map(Self::value).collect()),
        }
    }
}

impl Answer {
    fn values(self) -> RedisResult<Vec<Value>> {
        match self {
            Self::Exchange(word, id, era, pulled) => {
                let words = [
                    "done", "more", "lost", "other", "none", "", "holds", "filled", "next", "gone", "gaps",
                ];
                let word = words[usize::from(word) % words.len()];
                let mut values = vec![Value::BulkString(word.into()), id.value(), era.value()];
                values.extend(pulled.into_iter().flat_map(|(id, delta)| [id.value(), delta.value()]));
                Ok(values)
            }
            Self::State(head, lost, versions) => {
                let lost: Vec<String> = lost.iter().map(u8::to_string).collect();
                let lost = Value::BulkString(lost.join(" ").into());
                let mut values = vec![Value::BulkString(Vec::new()), Id::or_nothing(head), lost];
                let version = |(chunk, id): (u8, Id)| [Value::BulkString(chunk.to_string().into()), id.value()];
                values.extend(versions.into_iter().flat_map(version));
                Ok(values)
            }
            Self::Chunks(chunks) => {
                let chunk =
                    |(version, len): (_, u16)| [Id::or_nothing(version), Value::BulkString(vec![1; len.into()])];
                Ok(chunks.into_iter().flat_map(chunk).collect())
            }
            Self::Parts(parts) => Ok(parts.into_iter().map(Part::value).collect()),
            Self::Protocol(bytes) => match redis::parse_redis_value(&bytes)? {
                Value::Array(values) => Ok(values),
                value => Ok(vec![value]),
            },
        }
    }
}

/// The other end, while it has answers.
struct Server(std::vec::IntoIter<Answer>);

impl ConnectionLike for Server {
    fn req_packed_command(&mut self, _: &[u8]) -> RedisResult<Value> {
        match self.0.next() {
            Some(answer) => answer.values().map(Value::Array),
            None => Err((ErrorKind::Io, "gone").into()),
        }
    }

    fn req_packed_commands(&mut self, _: &[u8], _: usize, _: usize) -> RedisResult<Vec<Value>> {
        unreachable!("a node sends single commands")
    }

    fn get_db(&self) -> i64 {
        0
    }

    fn check_connection(&mut self) -> bool {
        true
    }

    fn is_open(&self) -> bool {
        true
    }
}

/// One line, some, a chunk, a chunk and a line, and more. (To solve for a layout takes ten times as
/// long as the rest.)
const BLOCKS: [usize; 5] = [1, 3, 128, 129, 300];

static FILTERS: LazyLock<[ConcurrentBloom; 5]> = LazyLock::new(|| {
    BLOCKS.map(|blocks| {
        let builder = ConcurrentBloom::builder().memory_budget(64 * blocks);
        builder.build().unwrap()
    })
});

static WINDOWS: LazyLock<[WindowedBloom; 5]> = LazyLock::new(|| {
    BLOCKS.map(|blocks| {
        let builder = WindowedBloom::builder().memory_budget(4 * 64 * blocks).generations(3);
        let builder = builder
            .window(Duration::from_secs(2))
            .clock(|| Duration::from_secs(1000));
        builder.build().unwrap()
    })
});

fuzz_target!(|input: Input| {
    let mut server = Server(input.answers.into_iter());
    let passes = usize::from(input.passes % 4) + 1;
    let shape = usize::from(input.shape) % BLOCKS.len();
    let builder = SharedBloom::builder("fuzz");
    let mut passes_of = |node: Result<Threadless, SharedError>| {
        let node = node.unwrap();
        (0..passes).filter_map(|_| node.pass(&mut server)).last().unwrap()
    };
    let result = if input.window {
        let window = Arc::new(WINDOWS[shape].clone());
        (0..input.keys).for_each(|key| _ = window.insert(&[key]));
        let result = passes_of(builder.threadless_window(&window));
        assert!((0..input.keys).all(|key| window.contains(&[key])));
        assert_eq!(window.live_generations().len(), 3);
        result
    } else {
        let filter = Arc::new(FILTERS[shape].clone());
        (0..input.keys).for_each(|key| _ = filter.insert(&[key]));
        let before = ConcurrentBloom::clone(&filter);
        let result = passes_of(builder.threadless(&filter));
        // Bits are added, and none goes.
        before.union_from(&filter).unwrap();
        assert!(before == *filter);
        result
    };
    if let Err(error) = result {
        assert!(!error.to_string().is_empty());
    }
});
