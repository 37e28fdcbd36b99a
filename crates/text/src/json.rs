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
    /// use lanebloom_text::Field;
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
    /// the line is no object of JSON, or has no string there. The last member with the name counts.
    /// Other values are checked for their syntax only.
    pub fn find<'a>(&self, line: &'a [u8]) -> Option<(Range<usize>, &'a str)> {
        found_in(line, self.search(line, false)?.0?)
    }

    /// The same, and where the value of the member `id` lies.
    ///
    /// ```
    /// let line = br#"{"text":"a","id": 7}"#;
    /// let (text, id) = lanebloom_text::Field::new("text").find_with_id(line);
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

/// The text of a JSON string, and where its escapes stand in both.
#[derive(Clone, Debug, Default)]
pub struct Text {
    text: String,
    /// Behind each escape: the place in the text, and how many bytes more the JSON has up to there.
    shifts: Vec<(usize, usize)>,
}

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where each newline ends. In JSON each is an escape, so no search is needed.
    pub(crate) fn newlines(&self) -> impl Iterator<Item = usize> {
        let ends = self.shifts.iter().map(|&(end, _)| end);
        ends.filter(|&end| self.text.as_bytes()[end - 1] == b'\n')
    }

    /// The places in the JSON for places in the text, which must not decrease.
    ///
    /// ```
    /// let mut text = Default::default();
    /// lanebloom_text::unescape(r"a\tb\u00e9c", &mut text);
    /// assert_eq!(text.as_str(), "a\tb\u{e9}c");
    /// let mut places = text.places();
    /// assert_eq!([0, 1, 2, 3, 5].map(|place| places.of(place)), [0, 1, 3, 4, 10]);
    /// ```
    pub fn places(&self) -> Places<'_> {
        Places {
            shifts: &self.shifts,
            shift: 0,
        }
    }
}

/// The places in the JSON of a [`Text`].
#[derive(Clone, Debug)]
pub struct Places<'a> {
    /// Those that are not passed yet.
    shifts: &'a [(usize, usize)],
    shift: usize,
}

impl Places<'_> {
    /// The place in the JSON of a place in the text, which is not before the last one asked for.
    pub fn of(&mut self, place: usize) -> usize {
        while let [(at, shift), rest @ ..] = self.shifts {
            if *at > place {
                break;
            }
            (self.shifts, self.shift) = (rest, *shift);
        }
        place + self.shift
    }
}

/// Writes the text of a JSON string, given without its quotes. Half a surrogate pair, which is no
/// character, becomes U+FFFD; an escape that is no JSON becomes a question mark.
///
/// ```
/// let mut text = Default::default();
/// lanebloom_text::unescape(r"\ud83d\ude00 \ud83d \n", &mut text);
/// assert_eq!(text.as_str(), "\u{1f600} \u{fffd} \n");
/// ```
pub fn unescape(json: &str, to: &mut Text) {
    let Text { text, shifts } = to;
    text.clear();
    shifts.clear();
    let bytes = json.as_bytes();
    let mut from = 0;
    for at in memchr::memchr_iter(b'\\', bytes) {
        if at < from {
            // The second backslash of an escape.
            continue;
        }
        text.push_str(&json[from..at]);
        let (character, len) = escaped(&bytes[at + 1..]);
        text.push(character);
        from = at + 1 + len;
        shifts.push((text.len(), from - text.len()));
    }
    text.push_str(&json[from..]);
}

/// The character of an escape, given without its backslash, and how many bytes stand for it.
fn escaped(bytes: &[u8]) -> (char, usize) {
    let plain = |character| (character, 1);
    match bytes.first() {
        Some(b'n') => plain('\n'),
        Some(b't') => plain('\t'),
        Some(b'r') => plain('\r'),
        Some(b'b') => plain('\u{8}'),
        Some(b'f') => plain('\u{c}'),
        Some(&byte @ (b'"' | b'\\' | b'/')) => plain(byte.into()),
        Some(b'u') => {
            let Some(first) = unit(&bytes[1..]) else {
                return plain('?');
            };
            let second = match bytes.get(5..7) {
                Some(b"\\u") if (0xd800..0xdc00).contains(&first) => unit(&bytes[7..]),
                _ => None,
            };
            match second {
                Some(second @ 0xdc00..0xe000) => {
                    let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 11)
                }
                _ => (char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), 5),
            }
        }
        // No JSON. Nothing is skipped, since a character may have more bytes than one.
        _ => ('?', 0),
    }
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
        let mut text = Text::default();
        for expected in texts {
            for json in [serde_json::to_string(expected).unwrap(), ascii(expected)] {
                let json = json.trim_matches('"');
                let json = if json.is_empty() && !expected.is_empty() {
                    continue;
                } else {
                    json
                };
                unescape(json, &mut text);
                let all = serde_json::from_str::<String>(&format!("\"{json}\""));
                assert_eq!(Some(text.as_str()), all.ok().as_deref(), "{json}");
                let mut places = text.places();
                for (at, character) in text.as_str().char_indices() {
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

    #[test]
    fn what_is_no_json_does_not_panic() {
        let mut text = Text::default();
        for json in [
            "\\",
            "\\x",
            "\\é",
            "\\u",
            "\\u12",
            "\\u12g4",
            "\\ud800",
            "\\ud800\\u0041",
            "\\udc00",
            "\\ud800\\",
        ] {
            unescape(json, &mut text);
            assert!(text.as_str().contains(['?', char::REPLACEMENT_CHARACTER]), "{json}");
        }
        assert_eq!(text.as_str(), "\u{fffd}?");
    }
}
