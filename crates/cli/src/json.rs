//! A value of JSON as the bytes of a key.

use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Arrays and objects within each other, in a value that is a key. As many as `serde_json` reads.
const DEEPEST: usize = 128;

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
        // A number (1E+5 becomes 1e5); true, false or null.
        _ => to.extend(
            text.bytes()
                .filter(|&byte| byte != b'+')
                .map(|byte| byte.to_ascii_lowercase()),
        ),
    }
    Some(())
}

pub(crate) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Whether a value is a string whose text is like this.
pub(crate) fn is_string_of(value: &RawValue, is_like: impl Fn(&[u8]) -> bool) -> bool {
    value.get().starts_with('"') && string(value).is_some_and(|text| is_like(text.as_bytes()))
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
