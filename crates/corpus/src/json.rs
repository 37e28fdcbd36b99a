//! Finds the string of a field in a line of JSON, and its text. The bytes of the line stay as they
//! are: a caller that removes a part of the text removes the bytes that stand for it.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// The name of the field that holds the text.
#[derive(Clone, Debug)]
pub struct Field(Vec<String>);

impl Field {
    /// The member of this name; with a slash in front, a JSON pointer (RFC 6901) through objects.
    ///
    /// ```
    /// use lanebloom_corpus::Field;
    ///
    /// let line = br#"{"text":"a","of":{"text":"b"}}"#;
    /// assert_eq!(Field::new("text").find(line), Some((9..10, "a")));
    /// assert_eq!(Field::new("/of/text").find(line), Some((26..27, "b")));
    /// assert_eq!(Field::new("/text/of").find(line), None);
    /// ```
    pub fn new(name: &str) -> Self {
        let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
        match name.strip_prefix('/') {
            Some(pointer) => Self(pointer.split('/').map(unescaped).collect()),
            None => Self(vec![name.to_owned()]),
        }
    }

    /// The JSON string of the field, without its quotes, and where it lies in the line. `None` if
    /// the line is not an object of JSON, or has no string there. The last member with the name
    /// counts. Other values are checked for their syntax only.
    pub fn find<'a>(&self, line: &'a [u8]) -> Option<(Range<usize>, &'a str)> {
        found_in(line, self.search(line, false)?.0?)
    }

    /// The same, and where the value of the member `id` lies.
    ///
    /// ```
    /// let line = br#"{"text":"a","id": 7}"#;
    /// let (text, id) = lanebloom_corpus::Field::new("text").find_with_id(line);
    /// assert_eq!((text.map(|text| text.1), id), (Some("a"), Some(18..19)));
    /// ```
    pub fn find_with_id<'a>(&self, line: &'a [u8]) -> (Option<Found<'a>>, Option<Range<usize>>) {
        let (value, id) = self.search(line, true).unwrap_or_default();
        (
            value.and_then(|value| found_in(line, value)),
            id.map(|id| place(line, id.get())),
        )
    }

    fn search<'a>(&self, line: &'a [u8], with_id: bool) -> Option<Values<'a>> {
        let mut deserializer = serde_json::Deserializer::from_slice(line);
        let mut id = None;
        let find = Find {
            way: &self.0,
            id: with_id.then_some(&mut id),
        };
        let found = find.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some((found, id))
    }
}

/// The value of a field, and that of the id.
type Values<'a> = (Option<&'a RawValue>, Option<&'a RawValue>);

/// Where a string lies in its line, and its JSON without the quotes.
type Found<'a> = (Range<usize>, &'a str);

/// The string that a value of the line is, without its quotes, and where it lies.
fn found_in<'a>(line: &[u8], value: &'a RawValue) -> Option<(Range<usize>, &'a str)> {
    let string = value.get().strip_prefix('"')?.strip_suffix('"')?;
    Some((place(line, string), string))
}

/// Where a part of the line lies in it.
fn place(line: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - line.as_ptr().addr();
    start..start + part.len()
}

/// Finds a value by the names on the way to it.
struct Find<'a, 'de> {
    way: &'a [String],
    /// Where the value of the member `id` goes, if that is wanted.
    id: Option<&'a mut Option<&'de RawValue>>,
}

impl<'de> DeserializeSeed<'de> for Find<'_, 'de> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Find<'_, 'de> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (name, rest) = self.way.split_first().expect("the way has not ended");
        let (mut found, mut id) = (None, self.id);
        while let Some(kind) = map.next_key_seed(Is(name))? {
            match (kind, &mut id) {
                (Name::Wanted, _) if rest.is_empty() => found = Some(map.next_value()?),
                (Name::Wanted, _) => found = map.next_value_seed(Find { way: rest, id: None })?,
                (Name::Id, Some(id)) => **id = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Whether a name is this one, or `id`.
struct Is<'a>(&'a str);

enum Name {
    Wanted,
    Id,
    Other,
}

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Name, E> {
        Ok(match name {
            _ if name == self.0 => Name::Wanted,
            "id" => Name::Id,
            _ => Name::Other,
        })
    }
}

/// The places in a JSON string, given without its quotes, for places in its text. The string is
/// read a second time for that: a table of its escapes would take eight times its memory.
///
/// ```
/// let json = r"a\tb\u00e9c";
/// let mut text = String::new();
/// assert!(lanebloom_corpus::unescape(json, &mut text));
/// assert_eq!(text, "a\tb\u{e9}c");
/// let mut places = lanebloom_corpus::Places::new(json.as_bytes());
/// assert_eq!([0, 1, 2, 3, 5].map(|place| places.of(place)), [0, 1, 3, 4, 10]);
/// ```
#[derive(Clone, Debug)]
pub struct Places<'a> {
    json: &'a [u8],
    /// The bytes that are passed, and those of the text that they stand for.
    passed: usize,
    passed_text: usize,
    /// Where the next escape begins.
    escape: usize,
}

impl<'a> Places<'a> {
    /// Begins at the first byte of the string.
    pub fn new(json: &'a [u8]) -> Self {
        Self {
            json,
            passed: 0,
            passed_text: 0,
            escape: find_escape(json, 0),
        }
    }

    /// The place in the JSON of a place in the text, which lies between two characters and not
    /// before the last one asked for.
    pub fn of(&mut self, place: usize) -> usize {
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
///
/// ```
/// let mut text = String::new();
/// assert!(lanebloom_corpus::unescape(r"\ud83d\ude00 \n", &mut text));
/// assert_eq!(text, "\u{1f600} \n");
/// assert!(!lanebloom_corpus::unescape(r"\ud83d \n", &mut text));
/// ```
#[must_use]
pub fn unescape(json: &str, text: &mut String) -> bool {
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
    fn a_field_is_found_in_valid_lines_only() {
        let field = Field::new("text");
        let found = |line: &'static str| {
            field
                .find(line.as_bytes())
                .map(|(raw, string)| (&line[raw.clone()] == string).then_some(string).unwrap())
        };
        assert_eq!(found(r#"{"a":[1,{"text":"x"}],"text":"y\n"}"#), Some(r"y\n"));
        assert_eq!(found(r#" { "text" : "" } "#), Some(""));
        assert_eq!(found(r#"{"text":"a","text":"b"}"#), Some("b"));
        assert_eq!(found(r#"{"te\u0078t":"a"}"#), Some("a"));
        let without = [
            "",
            "1",
            "\"text\"",
            "[\"text\"]",
            "null",
            "{}",
            r#"{"text":1}"#,
            r#"{"text":null}"#,
            r#"{"text":"a"} x"#,
            r#"{"text":"a""#,
            r#"{"text":"a"#,
            r#"{"text":"a","b"}"#,
            "{\"text\":\"a\nb\"}",
            r#"{"text":"\x"}"#,
        ];
        for line in without {
            assert_eq!(found(line), None, "{line}");
        }
        assert_eq!(field.find(b"{\"text\":\"\xff\"}"), None);
        // Other values are checked for their syntax only.
        assert_eq!(field.find(b"{\"text\":\"a\",\"b\":\"\xff\"}"), Some((9..10, "a")));
    }

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
                let mut places = Places::new(json.as_bytes());
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
            Places::new(json.as_bytes()).of(json.len() + 1);
        }
    }
}
