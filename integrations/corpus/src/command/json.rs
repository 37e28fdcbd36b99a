//! The text of a string in a line of JSON. The bytes of the line stay as they are: to remove a part
//! of the text, `documents.rs` removes the bytes that stand for it.

use serde_json::value::RawValue;
use std::ops::Range;

/// The string that a value is, without its quotes.
pub(super) fn string(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}

/// Where a part of some bytes lies in them.
pub(super) fn place(bytes: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - bytes.as_ptr().addr();
    start..start + part.len()
}

/// The places in a JSON string, given without its quotes, for places in its text. The string is
/// read a second time for that: a table of its escapes would take eight times its memory.
#[derive(Clone, Debug)]
pub(super) struct JsonPlaces<'a> {
    json: &'a [u8],
    /// The bytes that are passed, and those of the text that they stand for.
    passed: usize,
    passed_text: usize,
    /// Where the next escape begins.
    escape: usize,
}

impl<'a> JsonPlaces<'a> {
    /// Begins at the first byte of the string.
    pub(super) fn new(json: &'a [u8]) -> Self {
        Self {
            json,
            passed: 0,
            passed_text: 0,
            escape: find_escape(json, 0),
        }
    }

    /// The place in the JSON of a place in the text, which lies between two characters and not
    /// before the last one asked for.
    pub(super) fn of(&mut self, place: usize) -> usize {
        while place > self.passed_text + (self.escape - self.passed) {
            let Some((character, len)) = escaped(self.json.get(self.escape + 1..).unwrap_or_default()) else {
                // The string has no such place.
                return self.json.len();
            };
            self.passed_text += self.escape - self.passed + character.len_utf8();
            self.passed = self.escape + 1 + len;
            self.escape = find_escape(self.json, self.passed);
        }
        self.passed + place.saturating_sub(self.passed_text)
    }
}

/// Where the first escape from a place on begins; the end if there is none.
fn find_escape(json: &[u8], from: usize) -> usize {
    memchr::memchr(b'\\', &json[from..]).map_or(json.len(), |at| from + at)
}

/// Replaces `text` by the text of a JSON string, given without its quotes. Returns whether it has
/// one: half a surrogate pair is not a character, and any character in its place would make
/// different strings equal.
#[must_use]
pub(super) fn unescape(json: &str, text: &mut String) -> bool {
    text.clear();
    let bytes = json.as_bytes();
    let mut from = 0;
    for at in memchr::memchr_iter(b'\\', bytes) {
        if at < from {
            // The second backslash of an escape.
            continue;
        }
        let Some((character, len)) = escaped(&bytes[at + 1..]) else {
            return false;
        };
        text.push_str(&json[from..at]);
        text.push(character);
        from = at + 1 + len;
    }
    text.push_str(&json[from..]);
    true
}

/// The character of an escape, given without its backslash, and how many bytes stand for it; `None`
/// if it stands for none.
fn escaped(bytes: &[u8]) -> Option<(char, usize)> {
    let character = match *bytes.first()? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        byte @ (b'"' | b'\\' | b'/') => byte.into(),
        b'u' => {
            let first = unit(&bytes[1..])?;
            if !(0xd800..0xdc00).contains(&first) {
                return Some((char::from_u32(first)?, 5));
            }
            let second = unit(bytes[5..].strip_prefix(b"\\u")?)?;
            if !(0xdc00..0xe000).contains(&second) {
                return None;
            }
            let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
            return Some((char::from_u32(code)?, 11));
        }
        _ => return None,
    };
    Some((character, 1))
}

/// The number that four hexadecimal digits are.
fn unit(bytes: &[u8]) -> Option<u32> {
    let digits = bytes.get(..4)?;
    let digit = |sum: u32, &byte: &u8| Some(sum << 4 | char::from(byte).to_digit(16)?);
    digits.iter().try_fold(0, digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_as_serde_reads_them() {
        let texts = [
            "",
            "a",
            "\n",
            "\\n",
            "a\"b\\/\u{8}\u{c}\r\t\u{1}é\u{1f600}",
            "\\\\",
            "\u{10ffff}\\u",
        ];
        let mut text = String::new();
        for expected in texts {
            for json in [serde_json::to_string(expected).unwrap(), ascii(expected)] {
                let json = json.trim_matches('"');
                let json = if json.is_empty() && !expected.is_empty() {
                    continue;
                } else {
                    json
                };
                assert!(unescape(json, &mut text));
                let all = serde_json::from_str::<String>(&format!("\"{json}\""));
                assert_eq!(Some(text.as_str()), all.ok().as_deref(), "{json}");
                let mut places = JsonPlaces::new(json.as_bytes());
                for (at, character) in text.char_indices() {
                    let (from, to) = (places.of(at), places.clone().of(at + character.len_utf8()));
                    let part = serde_json::from_str::<String>(&format!("\"{}\"", &json[from..to]));
                    assert_eq!(part.unwrap(), character.to_string(), "{json} {at}");
                }
            }
        }
    }

    /// A JSON string with `\u` for every unit.
    fn ascii(text: &str) -> String {
        text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
    }

    /// Two different strings would be equal if a character took the place of half a pair.
    #[test]
    fn a_string_without_a_text_has_none_as_serde_says() {
        let mut text = String::new();
        for json in [
            "\\",
            "\\x",
            "\\é",
            "\\u",
            "\\u12",
            "\\u12g4",
            "\\ud800",
            "a\\ud83d b",
            "\\ud800\\u0041",
            "\\ud800\\ud800",
            "\\udc00",
            "\\udc00\\ud800",
            "\\ud800\\",
            "\\ud800\\n",
        ] {
            assert!(!unescape(json, &mut text), "{json}");
            assert!(
                serde_json::from_str::<String>(&format!("\"{json}\"")).is_err(),
                "{json}"
            );
            JsonPlaces::new(json.as_bytes()).of(json.len() + 1);
        }
    }
}
