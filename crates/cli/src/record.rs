//! A snapshot or delta as bytes, for what the library does not read: it is hashed with a secret
//! key, needs a clock, or changes another filter. `docs/FORMAT.md` describes the bytes.

use crate::text;
use anyhow::{Context, Result, bail};
use indicatif::HumanBytes;
use std::hash::Hasher;
use std::io::Read;
use twox_hash::XxHash3_64;

const MAGIC: [u8; 8] = *b"\x89LBF\r\n\x1a\n";
const SCALABLE: u8 = 2;
const WINDOWED: u8 = 3;
const TOMBSTONE: u8 = 5;
const DELTA: u8 = 129;
const TRAILER: usize = 64;

/// Whole, with correct checksums.
pub(crate) struct Record(Vec<u8>);

impl Record {
    /// Bytes of a snapshot's header.
    pub(crate) const HEADER: u64 = 128;
    /// Where the header has the kind.
    pub(crate) const KIND: usize = 10;

    /// Whether bytes begin as one, as far as they go.
    pub(crate) fn begins(head: &[u8]) -> bool {
        MAGIC.starts_with(&head[..head.len().min(8)])
    }

    /// Whether a snapshot with this header, or delta, is one that the library does not read.
    pub(crate) fn is_closed(head: &[u8]) -> bool {
        let byte = |at: usize| head.get(at).copied().unwrap_or(0);
        let is_version_1 = head.get(8..10) == Some(&[1, 0]);
        let has_hasher = matches!(byte(Self::KIND), 1..=8);
        let is_keyed = has_hasher && matches!(byte(11), 0 | 2);
        let has_clock = byte(Self::KIND) == WINDOWED && byte(35) == 3;
        is_version_1 && (is_keyed || has_clock || byte(Self::KIND) == DELTA)
    }

    /// Fails if a snapshot with this header has more than `bytes` bytes.
    pub(crate) fn check_length(head: &[u8], bytes: u64) -> Result<()> {
        let is_whole = head.len() as u64 == Self::HEADER && head[8..10] == [1, 0];
        // Otherwise reading it is an error.
        if is_whole && number(head, 24) > bytes {
            check_sum("header", number(head, 120), &[&head[..120]])?;
            bail!("the bytes end after {bytes} of {}", number(head, 24));
        }
        Ok(())
    }

    /// Reads it, and what follows it, and checks all checksums.
    pub(crate) fn read(head: Vec<u8>, reader: &mut impl Read) -> Result<Self> {
        let mut bytes = head;
        reader.read_to_end(&mut bytes).context("cannot read it")?;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let len = check(rest).with_context(|| format!("the record at byte {}", bytes.len() - rest.len()))?;
            rest = &rest[len..];
        }
        Ok(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self.0[Self::KIND] {
            1 => "ConcurrentBloom",
            SCALABLE => "ScalableBloom",
            WINDOWED => "WindowedBloom",
            4 => "CountingBloom",
            TOMBSTONE => "TombstoneBloom",
            6 => "CuckooFilter",
            7 => "CompactCuckoo",
            8 => "DLeftFilter",
            _ => "delta of a ConcurrentBloom",
        }
    }

    pub(crate) fn is_delta(&self) -> bool {
        self.0[Self::KIND] == DELTA
    }

    /// The hasher in words.
    pub(crate) fn hasher(&self) -> String {
        let fingerprint = number(&self.0, 16);
        match self.0[11] {
            0 => format!("a BuildHasher of the program, fingerprint {fingerprint:016x}"),
            1 => format!("Murmur3, seed {}", number(&self.0, 12) as u32),
            _ => format!("SipHash-1-3, fingerprint {fingerprint:016x}"),
        }
    }

    /// Why nothing but its header can be used.
    pub(crate) fn why_closed(&self) -> &'static str {
        match self.0[11] {
            _ if self.is_delta() => "it is a delta, which only changes another filter",
            0 => "its keys are hashed by a BuildHasher, which only the program that made it has",
            1 => "its keys age by a clock, which only the program that made it has",
            _ => "its keys are hashed by SipHash-1-3 with a secret key, which is not in the file",
        }
    }

    /// What the header says of the layout: rows of a name and a value.
    pub(crate) fn facts(&self) -> Vec<(&'static str, String)> {
        let byte = |at: usize| self.0[at].to_string();
        let number = |at| number(&self.0, at);
        match self.0[Self::KIND] {
            kind @ (1 | 4 | DELTA) => {
                let mut facts = vec![
                    ("words per key", byte(33)),
                    ("bits per word", byte(34)),
                    ("lines per key", (1 + u32::from(self.0[35])).to_string()),
                    ("blocks", number(40).to_string()),
                ];
                if kind == DELTA {
                    facts.push(("blocks with bits to add", number(48).to_string()));
                } else {
                    facts.push(("keys expected", number(48).to_string()));
                    facts.push(("memory", HumanBytes(number(40).saturating_mul(64)).to_string()));
                    facts.push(("rate planned", text::rate(f64::from_bits(number(56)))));
                }
                facts
            }
            SCALABLE => vec![
                ("layers", number(80).to_string()),
                ("keys of first layer", number(40).to_string()),
                ("rate planned", text::rate(f64::from_bits(number(56)))),
            ],
            WINDOWED => vec![("generations", byte(34)), ("keys expected", number(40).to_string())],
            6..=8 => vec![
                ("bits per fingerprint", byte(33)),
                ("buckets", number(40).to_string()),
                ("keys expected", number(48).to_string()),
            ],
            _ => Vec::new(),
        }
    }
}

/// The number of 64 bits at a place that was checked.
fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("it lies within a header"))
}

/// Checks the first record of these bytes, and returns its length. That of a filter of several
/// filters ends where the first of them begins.
fn check(bytes: &[u8]) -> Result<usize> {
    if bytes.len() < 64 || bytes[Record::KIND] != DELTA && bytes.len() < Record::HEADER as usize {
        bail!("the bytes end after {} of a header", bytes.len());
    }
    if !Record::begins(bytes) {
        bail!("it does not begin as a snapshot does");
    }
    let declared = number(bytes, 24);
    let header = Record::HEADER as usize;
    if bytes[Record::KIND] == DELTA {
        let body = whole(bytes, declared, 64)?.get(64..).unwrap_or(&[]);
        check_sum("delta", number(bytes, 56), &[&bytes[..56], body])?;
        return Ok(64 + body.len());
    }
    check_sum("header", number(bytes, 120), &[&bytes[..120]])?;
    whole(bytes, declared, header)?;
    let len = match bytes[Record::KIND] {
        SCALABLE | TOMBSTONE => return Ok(header),
        WINDOWED => {
            // By age, each generation but the newest has a time.
            let times = if bytes[32] == 1 {
                number(bytes, 48).clamp(1, 65) - 1
            } else {
                0
            };
            header as u64 + (8 * times).next_multiple_of(64) + TRAILER as u64
        }
        _ => declared,
    };
    let record = whole(bytes, len, header + TRAILER)?;
    let (content, trailer) = record.split_at(record.len() - TRAILER);
    check_sum("content", number(trailer, 0), &[content])?;
    if trailer[8..].iter().any(|&byte| byte != 0) {
        bail!("the trailer is corrupt: it has bytes that are not 0");
    }
    Ok(record.len())
}

/// The first `len` bytes, which are at least `least`.
fn whole(bytes: &[u8], len: u64, least: usize) -> Result<&[u8]> {
    match usize::try_from(len).ok().filter(|&len| len <= bytes.len()) {
        Some(len) if len >= least => Ok(&bytes[..len]),
        Some(len) => bail!("it declares a length of {len} bytes, which is too short"),
        None => bail!("the bytes end after {} of {len}", bytes.len()),
    }
}

fn check_sum(what: &str, stored: u64, pieces: &[&[u8]]) -> Result<()> {
    let mut sum = XxHash3_64::with_seed(0);
    pieces.iter().for_each(|piece| sum.write(piece));
    let computed = sum.finish();
    if stored != computed {
        bail!("the {what} is corrupt: its checksum is {computed:016x}, and {stored:016x} is stored");
    }
    Ok(())
}
