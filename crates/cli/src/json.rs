//! The value at a JSON pointer as the bytes of a key. All else in the line is checked and skipped,
//! so that only the line and its key are in memory.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// Arrays and objects within each other, in a value that is a key. As many as `serde_json` reads.
const DEEPEST: usize = 128;

/// A JSON pointer (RFC 6901): the names and indices on the way to a value.
#[derive(Clone)]
pub(crate) struct Pointer(Vec<String>);

impl Pointer {
    pub(crate) fn new(text: &str) -> Self {
        let unescaped = |token: &str| token.replace("~1", "/").replace("~0", "~");
        Self(text.split('/').skip(1).map(unescaped).collect())
    }

    /// The text of the value in this JSON, if it is JSON and has the value.
    pub(crate) fn find<'a>(&self, json: &'a [u8]) -> Option<&'a RawValue> {
        let mut value: &RawValue = serde_json::from_slice(json).ok()?;
        for token in &self.0 {
            // A value that is neither an array nor an object is an error.
            let found = serde_json::Deserializer::from_str(value.get()).deserialize_any(Step(token));
            value = found.ok()??;
        }
        Some(value)
    }
}

/// Appends a text that is the same for equal values: without white space, the names of objects in
/// order, escapes only where they must be. Numbers keep their digits, since a float would round
/// them. Returns `None`, having appended a part, for a value without such a text: too deep, or
/// with half a surrogate pair.
pub(crate) fn write(value: &RawValue, to: &mut Vec<u8>) -> Option<()> {
    write_nested(value, DEEPEST, to)
}

fn write_nested(value: &RawValue, deepest: usize, to: &mut Vec<u8>) -> Option<()> {
    let text = value.get();
    match text.as_bytes()[0] {
        b'{' => {
            // The last one counts of several members with the same name.
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            to.push(b'{');
            for (number, (name, value)) in members.into_iter().enumerate() {
                to.extend((number > 0).then_some(b','));
                write_string(&name, to);
                to.push(b':');
                write_nested(value, deepest.checked_sub(1)?, to)?;
            }
            to.push(b'}');
        }
        b'[' => {
            let elements: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            to.push(b'[');
            for (number, value) in elements.into_iter().enumerate() {
                to.extend((number > 0).then_some(b','));
                write_nested(value, deepest.checked_sub(1)?, to)?;
            }
            to.push(b']');
        }
        b'"' if text.contains('\\') => write_string(&string(value)?, to),
        b'"' => to.extend_from_slice(text.as_bytes()),
        // A number, of which 1E+5 is as 1e5; true, false or null.
        _ => to.extend(
            text.bytes()
                .filter(|&byte| byte != b'+')
                .map(|byte| byte.to_ascii_lowercase()),
        ),
    }
    Some(())
}

/// Appends the text that a string holds; of other values as [`write()`].
pub(crate) fn write_text(value: &RawValue, to: &mut Vec<u8>) -> Option<()> {
    if !value.get().starts_with('"') {
        return write(value, to);
    }
    to.extend_from_slice(string(value)?.as_bytes());
    Some(())
}

fn write_string(text: &str, to: &mut Vec<u8>) {
    serde_json::to_writer(to, text).expect("a vector takes everything");
}

/// The text of a value that is a string.
fn string(value: &RawValue) -> Option<String> {
    serde_json::from_str(value.get()).ok()
}

/// Finds the member of an object with this name, or the element of an array with this index.
struct Step<'a>(&'a str);

impl<'de> Visitor<'de> for Step<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(is_wanted) = map.next_key_seed(Is(self.0))? {
            if is_wanted {
                found = Some(map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let is_index = self.0 == "0" || !self.0.starts_with(['0', '+']);
        let index: Option<usize> = self.0.parse().ok().filter(|_| is_index);
        let Some(index) = index else { return Ok(None) };
        for _ in 0..index {
            if seq.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = seq.next_element()?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found)
    }
}

/// Whether a name is this one.
struct Is<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Is<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Is<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}
