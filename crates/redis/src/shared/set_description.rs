//! The description of a set: the settings that all of its nodes must share. The server keeps it as
//! text. Every node compares it with its own before it exchanges bits.

use super::redis_keys::RedisKeys;
use crate::error::{Kind, Report, SharedError};
use lanebloom::{ConcurrentBloom, KeyHasher};
use std::fmt;
use std::time::Duration;

/// The version of the keys, the deltas and the layout of the bits. A node with another version is
/// refused.
const FORMAT: u32 = 2;

/// The key whose hash tells hashers apart: as snapshots do, up to a chance of 2^-64. It reveals no
/// more about a secret than any other hash does.
const FINGERPRINTED: &str = "lanebloom hasher print";

/// The layout of a filter, which with its hasher determines a key's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SetLayout {
    blocks: usize,
    /// Per key.
    lines: usize,
    /// In each line of a key.
    words: usize,
    /// The positions of a key in each of its lines.
    bits: usize,
}

impl fmt::Display for SetLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} blocks, ", self.blocks)?;
        if self.lines > 1 {
            write!(f, "{} lines per key, ", self.lines)?;
        }
        // (Numbers from a server can be of any size.)
        let words = self.lines.saturating_mul(self.words);
        write!(f, "{words} words per key, {} bits per line", self.bits)
    }
}

/// For how long a set remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lifetime {
    Forever,
    /// By generations, each for as many keys as its rebuild expects.
    Rebuilt,
    /// In ms since 1970.
    Until(u64),
    /// `period` is the nanoseconds of a generation.
    Window {
        generations: u64,
        period: u64,
    },
}

/// Continues a sentence that begins with "the set".
impl fmt::Display for Lifetime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forever => f.write_str("never expires"),
            Self::Rebuilt => f.write_str("can be rebuilt"),
            Self::Until(time) => write!(f, "expires at {time} ms"),
            Self::Window { generations, period } => {
                let period = Duration::from_nanos(*period);
                write!(f, "is a window by {generations} generations of {period:?}")
            }
        }
    }
}

/// The settings that all nodes of a set share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SetDescription {
    layout: SetLayout,
    hasher_fingerprint: u64,
    pub(super) lifetime: Lifetime,
}

/// The text on the server.
impl fmt::Display for SetDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let layout = &self.layout;
        write!(f, "{FORMAT} {} ", layout.blocks)?;
        if layout.lines > 1 {
            write!(f, "{}x", layout.lines)?;
        }
        let print = self.hasher_fingerprint;
        write!(f, "{} {} {print:016x} ", layout.words, layout.bits)?;
        match self.lifetime {
            Lifetime::Forever => f.write_str("0"),
            Lifetime::Rebuilt => f.write_str("*"),
            Lifetime::Until(time) => write!(f, "{time}"),
            Lifetime::Window { generations, period } => write!(f, "{generations}x{period}"),
        }
    }
}

impl SetDescription {
    /// Describes filters of the layout of this one, whose keys `hasher` hashes.
    pub(super) fn of<S>(filter: &ConcurrentBloom<S>, hasher: &impl KeyHasher, lifetime: Lifetime) -> Self {
        let lines = filter.layout().lines_per_key;
        Self {
            layout: SetLayout {
                blocks: filter.layout().blocks,
                lines,
                words: filter.layout().words_per_key / lines,
                bits: filter.layout().bits_per_line,
            },
            hasher_fingerprint: hasher.hash_key(FINGERPRINTED),
            lifetime,
        }
    }

    /// Fails if the set at these keys has another description. The error names the difference.
    pub(super) fn check(&self, keys: &RedisKeys, theirs: &[u8]) -> Result<(), SharedError> {
        if theirs == self.to_string().as_bytes() {
            return Ok(());
        }
        let Some((format, theirs)) = std::str::from_utf8(theirs).ok().and_then(Self::parse) else {
            return Err(keys.foreign("meta", "it describes no shared filter"));
        };
        if format != FORMAT {
            return Err(keys.foreign("meta", "the set is of another version of this format"));
        }
        let another = |differs| format!("is another filter's: {differs}");
        let differs = if theirs.lifetime != self.lifetime {
            let lifetimes = [theirs.lifetime, self.lifetime];
            let has_time = lifetimes.iter().any(|lifetime| matches!(lifetime, Lifetime::Until(_)));
            let since = if has_time { " (since 1970)" } else { "" };
            format!("{}, here it {}{since}", theirs.lifetime, self.lifetime)
        } else if theirs.layout != self.layout {
            let (theirs, ours) = (theirs.layout, self.layout);
            another(format!("its layout differs: {theirs} there, {ours} here"))
        } else if theirs.hasher_fingerprint != self.hasher_fingerprint {
            another("its hasher differs: another algorithm, seed or key".into())
        } else {
            // The same numbers in another spelling: `+1` or `01`.
            return Err(keys.foreign("meta", "it describes no shared filter"));
        };
        let text = format!("the set {:?} on the server {differs}", keys.name);
        Err(Report::new(Kind::Incompatible, text).into())
    }

    /// The format and, if it is this format, the description.
    fn parse(text: &str) -> Option<(u32, Self)> {
        let mut fields = text.split(' ');
        let format = fields.next()?.parse().ok()?;
        let blocks = fields.next()?.parse().ok()?;
        // `4`, or `2x4`: two lines per key, with four words in each.
        let words = fields.next()?;
        let (lines, words) = words.split_once('x').unwrap_or(("1", words));
        let layout = SetLayout {
            blocks,
            lines: lines.parse().ok()?,
            words: words.parse().ok()?,
            bits: fields.next()?.parse().ok()?,
        };
        let hasher_fingerprint = u64::from_str_radix(fields.next()?, 16).ok()?;
        let lifetime = fields.next()?;
        let lifetime = match lifetime.split_once('x') {
            Some((generations, period)) => Lifetime::Window {
                generations: generations.parse().ok()?,
                period: period.parse().ok()?,
            },
            None if lifetime == "*" => Lifetime::Rebuilt,
            None => match lifetime.parse().ok()? {
                0 => Lifetime::Forever,
                time => Lifetime::Until(time),
            },
        };
        let description = Self {
            layout,
            hasher_fingerprint,
            lifetime,
        };
        Some((format, description))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn description(lifetime: Lifetime) -> SetDescription {
        let layout = SetLayout {
            blocks: 17,
            lines: 1,
            words: 2,
            bits: 3,
        };
        SetDescription {
            layout,
            hasher_fingerprint: 0xab,
            lifetime,
        }
    }

    fn lifetimes() -> [Lifetime; 4] {
        let window = Lifetime::Window {
            generations: 4,
            period: 1_500_000_000,
        };
        let until = Lifetime::Until(1_700_000_000_000);
        [Lifetime::Forever, Lifetime::Rebuilt, until, window]
    }

    #[test]
    fn the_texts_are_these() {
        let texts = lifetimes().map(|lifetime| description(lifetime).to_string());
        let print = "00000000000000ab";
        assert_eq!(
            texts,
            [
                format!("2 17 2 3 {print} 0"),
                format!("2 17 2 3 {print} *"),
                format!("2 17 2 3 {print} 1700000000000"),
                format!("2 17 2 3 {print} 4x1500000000"),
            ]
        );
        for (lifetime, text) in lifetimes().into_iter().zip(texts) {
            assert_eq!(SetDescription::parse(&text), Some((2, description(lifetime))));
        }
        let mut two_lines = description(Lifetime::Forever);
        (two_lines.layout.lines, two_lines.layout.blocks) = (2, 18);
        let text = format!("2 18 2x2 3 {print} 0");
        assert_eq!(two_lines.to_string(), text);
        assert_eq!(SetDescription::parse(&text), Some((2, two_lines)));
    }

    #[test]
    fn what_differs_is_said() {
        let keys = RedisKeys::of("ids").unwrap();
        for ours in lifetimes() {
            for theirs in lifetimes() {
                let result = description(ours).check(&keys, description(theirs).to_string().as_bytes());
                assert_eq!(result.is_ok(), ours == theirs);
                let Err(error) = result else { continue };
                assert!(error.is_incompatible());
                let says = format!("the set \"ids\" on the server {theirs}, here it {ours}");
                assert!(error.to_string().starts_with(&says), "{error}");
            }
        }
        let says = |theirs: &str| {
            description(Lifetime::Forever)
                .check(&keys, theirs.as_bytes())
                .unwrap_err()
                .to_string()
        };
        assert!(says("2 18 2 3 ab 0").contains("layout differs: 18 blocks, 2 words"));
        assert!(says("2 17 2 3 ac 0").contains("hasher differs"));
        assert!(
            says("1 17 2 3 ab 0")
                .contains("{ids}:meta was not written by a shared filter: the set is of another version")
        );
        assert!(says("2 17 2 3 ab 0").contains("it describes no shared filter"));
        assert!(says("2 17 2 3 ab 4x").contains("it describes no shared filter"));
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(bytes: Vec<u8>, text in "[0-9a-f x+]{0,40}") {
            let keys = RedisKeys::of("ids").unwrap();
            for bytes in [&bytes[..], text.as_bytes()] {
                prop_assert!(description(Lifetime::Forever).check(&keys, bytes).is_err());
            }
        }
    }
}
