//! The value at a JSON pointer, found in one pass over a line. All else in the line is checked for
//! its syntax only, and skipped, so that only the line is in memory.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A JSON pointer (RFC 6901): the names and indices on the way to a value.
#[derive(Clone, Debug)]
pub struct Pointer(Vec<String>);

/// serde_json reads no deeper.
const MOST_TOKENS: usize = 127;

impl Pointer {
    /// For the command line: fails if no value can be at this pointer.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pointer = Self::new(text);
        if !text.is_empty() && !text.starts_with('/') {
            return Err("must begin with a slash, such as /user/id".into());
        }
        let tokens = pointer.0.len();
        if tokens > MOST_TOKENS {
            return Err(format!(
                "has {tokens} names and indices: at most {MOST_TOKENS} are read"
            ));
        }
        Ok(pointer)
    }

    pub fn new(text: &str) -> Self {
        let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
        Self(text.split('/').skip(1).map(unescaped).collect())
    }

    /// The pointer to a member of this name.
    pub fn to_member(name: &str) -> Self {
        Self(vec![name.to_owned()])
    }

    /// Returns the value in this JSON, or `None` if it is not JSON or has no such value.
    ///
    /// The last of several members with the same name counts.
    pub fn find<'a>(&self, json: &'a [u8]) -> Option<&'a RawValue> {
        self.search(json, None)?
    }

    /// The same, and the value of the member `id`.
    pub fn find_with_id<'a>(&self, json: &'a [u8]) -> (Option<&'a RawValue>, Option<&'a RawValue>) {
        let mut id = None;
        match self.search(json, Some(&mut id)) {
            Some(found) => (found, id),
            None => (None, None),
        }
    }

    /// `None` if it is not JSON.
    fn search<'a>(&self, json: &'a [u8], id: Option<&mut Option<&'a RawValue>>) -> Option<Option<&'a RawValue>> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let find = Find { way: &self.0, id };
        let found = find.deserialize(&mut deserializer).ok()?;
        deserializer.end().ok()?;
        Some(found)
    }
}

/// Finds a value by the names and indices on the way to it.
struct Find<'a, 'de> {
    way: &'a [String],
    /// Where the value of the member `id` goes, if that is wanted.
    id: Option<&'a mut Option<&'de RawValue>>,
}

impl<'de> DeserializeSeed<'de> for Find<'_, 'de> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if self.way.is_empty() {
            return Deserialize::deserialize(deserializer).map(Some);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Find<'_, 'de> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (name, way) = self.way.split_first().expect("the way has not ended");
        let (mut found, mut id) = (None, self.id);
        while let Some(kind) = map.next_key_seed(Is(name))? {
            match (kind, &mut id) {
                (Name::Wanted, _) => found = map.next_value_seed(Find { way, id: None })?,
                (Name::Id, Some(id)) => **id = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (name, way) = self.way.split_first().expect("the way has not ended");
        // An index has no sign, and no zero before it.
        let is_index = name == "0" || !name.starts_with(['0', '+']);
        let index = name.parse::<usize>().ok().filter(|_| is_index);
        let mut found = None;
        for at in 0.. {
            let is_over = if Some(at) == index {
                let element = seq.next_element_seed(Find { way, id: None })?;
                found = element.flatten();
                element.is_none()
            } else {
                seq.next_element::<IgnoredAny>()?.is_none()
            };
            if is_over {
                break;
            }
        }
        Ok(found)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_in_valid_lines_only() {
        let pointer = Pointer::to_member("text");
        let found = |line: &'static [u8]| pointer.find(line).map(RawValue::get);
        for (line, value) in [
            (&br#"{"a":[1,{"text":"x"}],"text":"y\n"}"#[..], r#""y\n""#),
            (br#" { "text" : "" } "#, r#""""#),
            (br#"{"text":"a","text":[1, 2]}"#, "[1, 2]"),
            (br#"{"te\u0078t":"a"}"#, r#""a""#),
            // Other values are checked for their syntax only.
            (b"{\"text\":1,\"b\":\"\xff\"}", "1"),
        ] {
            assert_eq!(found(line), Some(value), "{}", line.escape_ascii());
        }
        for line in [
            &b""[..],
            b"1",
            b"-1",
            b"1.5",
            b"true",
            b"\"text\"",
            b"[\"text\"]",
            b"null",
            b"{}",
            br#"{"text":"a"} x"#,
            br#"{"text":"a""#,
            br#"{"text":"a"#,
            br#"{"text":"a","b"}"#,
            b"{\"text\":\"a\nb\"}",
            br#"{"text":"\x"}"#,
            b"{\"text\":\"\xff\"}",
        ] {
            assert_eq!(found(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn a_pointer_is_refused_if_no_line_can_be_read_so_deep() {
        let nested = |depth| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let deepest = Pointer::parse(&"/0".repeat(127)).unwrap();
        assert_eq!(deepest.find(nested(127).as_bytes()).map(RawValue::get), Some("1"));
        let refused = Pointer::parse(&"/0".repeat(128)).unwrap_err();
        assert_eq!(refused, "has 128 names and indices: at most 127 are read");
        assert!(Pointer::new(&"/0".repeat(128)).find(nested(128).as_bytes()).is_none());
        // Other values may be deeper.
        let line = format!("[1,{}]", nested(1000));
        let first = Pointer::parse("/0").unwrap();
        assert_eq!(first.find(line.as_bytes()).map(RawValue::get), Some("1"));
    }

    #[test]
    fn an_id_is_found_whether_or_not_there_is_a_value() {
        let pointer = Pointer::new("/of/1/text");
        let found = |line: &'static str| {
            let (value, id) = pointer.find_with_id(line.as_bytes());
            (value.map(RawValue::get), id.map(RawValue::get))
        };
        assert_eq!(found(r#"{"id":7,"of":[0,{"text":1,"id":8}]}"#), (Some("1"), Some("7")));
        assert_eq!(found(r#"{"of":[0],"id": {}}"#), (None, Some("{}")));
        assert_eq!(found(r#"{"of":5,"id":7}"#), (None, Some("7")));
        assert_eq!(found(r#"{"of":[0,{"text":1}]}"#), (Some("1"), None));
        assert_eq!(found(r#"{"id":7,"of":5"#), (None, None));
    }
}
