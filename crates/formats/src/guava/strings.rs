//! Keys of strings in UTF-16, as Java writes them.

use lanebloom::{Funnel, Sink};

/// Makes a key of a string by its UTF-16 units, each little-endian: Guava's
/// `unencodedCharsFunnel()`.
///
/// A character beyond the basic plane is two units, a surrogate pair, as in Java. A Java string
/// with one half of a pair alone is not a Rust string: pass its units, `[u16]`, which write the
/// same bytes.
///
/// ```
/// use lanebloom::Funnel;
/// use lanebloom_formats::guava::UnencodedChars;
///
/// let mut bytes = Vec::new();
/// UnencodedChars("aé😀").funnel(&mut bytes);
/// assert_eq!(bytes, [0x61, 0, 0xe9, 0, 0x3d, 0xd8, 0, 0xde]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnencodedChars<T: ?Sized>(pub T);

impl<T: AsRef<str> + ?Sized> Funnel for UnencodedChars<T> {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        put_units(self.0.as_ref(), u16::to_le_bytes, into);
    }
}

/// Makes a key of a string by the bytes of Java's charset `UTF_16`: Guava's `stringFunnel(UTF_16)`.
///
/// The bytes are a byte order mark, `FE FF`, and then the UTF-16 units, each big-endian. An empty
/// string has no bytes and no mark.
///
/// ```
/// use lanebloom::Funnel;
/// use lanebloom_formats::guava::Utf16;
///
/// let mut bytes = Vec::new();
/// Utf16("aé😀").funnel(&mut bytes);
/// assert_eq!(bytes, [0xfe, 0xff, 0, 0x61, 0, 0xe9, 0xd8, 0x3d, 0xde, 0]);
///
/// let mut bytes = Vec::new();
/// Utf16("").funnel(&mut bytes);
/// assert!(bytes.is_empty());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Utf16<T: ?Sized>(pub T);

impl<T: AsRef<str> + ?Sized> Funnel for Utf16<T> {
    #[inline]
    fn funnel<S: Sink + ?Sized>(&self, into: &mut S) {
        let text = self.0.as_ref();
        if !text.is_empty() {
            into.put(&0xfeff_u16.to_be_bytes());
        }
        put_units(text, u16::to_be_bytes, into);
    }
}

/// Puts the string's UTF-16 units as bytes, many at a time. One by one takes several times as long.
fn put_units<S: Sink + ?Sized>(text: &str, to_bytes: fn(u16) -> [u8; 2], into: &mut S) {
    let mut bytes = [0; 64];
    let mut len = 0;
    for unit in text.encode_utf16() {
        if len == bytes.len() {
            into.put(&bytes);
            len = 0;
        }
        bytes[len..len + 2].copy_from_slice(&to_bytes(unit));
        len += 2;
    }
    into.put(&bytes[..len]);
}
