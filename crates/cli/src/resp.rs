//! A RedisBloom filter as a file for `redis-cli`: its chunks in RESP, the protocol of Redis.
//!
//! The command writes `BF.LOADCHUNK KEY CURSOR CHUNK` for each chunk, so `redis-cli --pipe < FILE`
//! loads the filter into a server. It also reads the replies of `BF.SCANDUMP` in a row, as a server
//! sends them: arrays of a cursor and a chunk.
//!
//! `lanebloom-formats` knows the chunks, which are the format of the filter. RESP, around them, is
//! a protocol. That crate speaks none; `lanebloom-redis` leaves it to the crate `redis`, which
//! would bring a client for servers along. So these lines stay here.

use anyhow::{Context, Result, bail};
use lanebloom_formats::RedisBloom;
use lanebloom_formats::redisbloom::Loader;
use std::io::{self, BufRead, Read, Write};

const COMMAND: &[u8] = b"BF.LOADCHUNK";
/// The longest line of RESP before a string: a type, a number of 20 digits, and an end.
const LINE: u64 = 32;

/// A filter, and the key that its commands name.
pub(crate) struct Dump {
    pub(crate) filter: RedisBloom,
    pub(crate) key: Option<Vec<u8>>,
}

/// Whether bytes begin as such a file does.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    bytes.starts_with(b"*4\r\n$12\r\nBF.LOADCHUNK\r\n") || bytes.starts_with(b"*2\r\n:")
}

pub(crate) fn read(reader: &mut impl BufRead, max_bytes: usize) -> Result<Dump> {
    let mut loader = Loader::new(max_bytes);
    let mut key = None;
    let mut number = 0;
    while !reader.fill_buf()?.is_empty() {
        number += 1;
        let mut load = || {
            let chunk = read_chunk(reader, max_bytes)?;
            if number > 1 && chunk.key != key {
                bail!("it is for another key than the chunks before it");
            }
            key = chunk.key;
            Ok(loader.load(chunk.cursor, &chunk.bytes)?)
        };
        load().with_context(|| format!("chunk {number} of a RedisBloom filter"))?;
    }
    let filter = loader.finish()?;
    Ok(Dump { filter, key })
}

struct Chunk {
    key: Option<Vec<u8>>,
    cursor: i64,
    bytes: Vec<u8>,
}

fn read_chunk(reader: &mut impl BufRead, limit: usize) -> Result<Chunk> {
    match read_number(reader, b'*')? {
        2 => Ok(Chunk {
            key: None,
            cursor: read_number(reader, b':')?,
            bytes: read_string(reader, limit)?,
        }),
        4 => {
            let command = read_string(reader, limit)?;
            if command != COMMAND {
                bail!("the command {} is not BF.LOADCHUNK", command.escape_ascii());
            }
            let key = Some(read_string(reader, limit)?);
            let cursor = read_string(reader, limit)?;
            let cursor = std::str::from_utf8(&cursor).ok().and_then(|text| text.parse().ok());
            Ok(Chunk {
                key,
                cursor: cursor.context("the cursor is not a number")?,
                bytes: read_string(reader, limit)?,
            })
        }
        parts => bail!("an array of {parts} is neither a command BF.LOADCHUNK nor a reply of BF.SCANDUMP"),
    }
}

/// Reads a line of the type `kind`, which has a number.
fn read_number(reader: &mut impl BufRead, kind: u8) -> Result<i64> {
    let mut line = Vec::new();
    reader.take(LINE).read_until(b'\n', &mut line)?;
    let number = match &line[..] {
        [found, digits @ .., b'\r', b'\n'] if *found == kind => std::str::from_utf8(digits).ok(),
        _ => None,
    };
    number
        .and_then(|number| number.parse().ok())
        .with_context(|| match line.last() {
            Some(b'\n') | None if !line.is_empty() => {
                format!(
                    "\"{}\" is not a number of RESP after '{}'",
                    line.escape_ascii(),
                    char::from(kind)
                )
            }
            _ if line.len() as u64 == LINE => "a line of RESP has more than 32 bytes".into(),
            _ => "the file ends within it".into(),
        })
}

fn read_string(reader: &mut impl BufRead, limit: usize) -> Result<Vec<u8>> {
    let len = read_number(reader, b'$')?;
    if len == -1 {
        return Ok(Vec::new());
    }
    let len = u64::try_from(len).ok().filter(|&len| len <= limit as u64);
    let len = len.context("a string has more bytes than the file")?;
    let (mut bytes, mut end) = (Vec::new(), Vec::new());
    reader.take(len).read_to_end(&mut bytes)?;
    reader.take(2).read_to_end(&mut end)?;
    if end.len() < 2 {
        bail!("the file ends within it");
    }
    if end != b"\r\n" {
        bail!("a string is longer than it says");
    }
    Ok(bytes)
}

/// Writes the commands that load the filter as `key`.
pub(crate) fn write(filter: &RedisBloom, key: &[u8], writer: &mut impl Write) -> io::Result<()> {
    for (cursor, chunk) in filter.to_loadchunks() {
        writer.write_all(b"*4\r\n")?;
        for part in [COMMAND, key, cursor.to_string().as_bytes(), &chunk] {
            write!(writer, "${}\r\n", part.len())?;
            writer.write_all(part)?;
            writer.write_all(b"\r\n")?;
        }
    }
    Ok(())
}
