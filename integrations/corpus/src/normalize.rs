//! The differences of two texts that count for nothing when they are compared.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// The differences that are made equal before a text is hashed. The text itself stays as it is. A
/// carriage return before a line feed goes first; then the steps run in the order of the fields.
///
/// ```
/// use lanebloom_corpus::Normalize;
///
/// let all = Normalize {
///     nfc: true,
///     lower: true,
///     punctuation: true,
///     digits: true,
///     whitespace: true,
/// };
/// let mut text = String::new();
/// all.write(" Cafe\u{301},\t7 «Euros» ", &mut text);
/// assert_eq!(text, "caf\u{e9} 0 euros");
///
/// Normalize::default().write("a\r\nb\r", &mut text);
/// assert_eq!(text, "a\nb\r");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Normalize {
    /// Unicode's normalization form C.
    pub nfc: bool,
    /// Lower case.
    pub lower: bool,
    /// A space for punctuation marks in a row, none beside white space and at the ends: so `a, b`
    /// is `a b`, and `1.23` is neither `12.3` nor `123`. The marks are those of ASCII and of
    /// Latin-1, and all of the blocks General Punctuation, CJK Symbols and Punctuation, and
    /// Halfwidth and Fullwidth Forms but for letters and digits.
    pub punctuation: bool,
    /// A zero for each digit.
    pub digits: bool,
    /// One space for white space in a row, none at the ends.
    pub whitespace: bool,
}

impl Normalize {
    /// Whether a text may change.
    pub fn is_any(&self) -> bool {
        *self != Self::default()
    }

    /// Writes the text that stands for all equal ones.
    pub fn write(&self, text: &str, to: &mut String) {
        to.clear();
        if !self.is_any() {
            // By character, documents with CRLF would take 2.5 times as long as those with LF.
            for (number, part) in text.split("\r\n").enumerate() {
                to.push_str(if number > 0 { "\n" } else { "" });
                to.push_str(part);
            }
            return;
        }
        let mut has_marks = false;
        let mut each = |character| self.push(character, &mut has_marks, to);
        let is_composed = !self.nfc || is_nfc_quick(text.chars()) == IsNormalized::Yes;
        for (number, part) in text.split("\r\n").enumerate() {
            if number > 0 {
                each('\n');
            }
            if is_composed {
                part.chars().for_each(&mut each);
            } else {
                part.nfc().for_each(&mut each);
            }
        }
        if self.whitespace && to.ends_with(' ') {
            to.pop();
        }
    }

    /// `has_marks`: whether punctuation stands before the character.
    fn push(&self, character: char, has_marks: &mut bool, to: &mut String) {
        if self.punctuation && is_punctuation(character) {
            *has_marks = true;
            return;
        }
        if std::mem::take(has_marks)
            && !character.is_whitespace()
            && to.chars().next_back().is_some_and(|last| !last.is_whitespace())
        {
            to.push(' ');
        }
        if self.digits && character.is_numeric() {
            to.push('0');
        } else if self.whitespace && character.is_whitespace() {
            if !to.is_empty() && !to.ends_with(' ') {
                to.push(' ');
            }
        } else if !self.lower {
            to.push(character);
        } else if character.is_ascii() {
            to.push(character.to_ascii_lowercase());
        } else {
            to.extend(character.to_lowercase());
        }
    }
}

fn is_punctuation(character: char) -> bool {
    match character {
        '\0'..='\x7f' => character.is_ascii_punctuation(),
        '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' => true,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' => true,
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' | '\u{3014}'..='\u{301f}' => true,
        '\u{ff00}'..='\u{ffef}' => !character.is_alphanumeric(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_changes_its_part_only() {
        let write = |normalize: Normalize| {
            let mut text = String::new();
            normalize.write(" E\u{301} ß,  “7”\n", &mut text);
            text
        };
        let none = Normalize::default();
        assert_eq!(write(none), " E\u{301} ß,  “7”\n");
        assert_eq!(write(Normalize { nfc: true, ..none }), " É ß,  “7”\n");
        assert_eq!(write(Normalize { lower: true, ..none }), " e\u{301} ß,  “7”\n");
        assert_eq!(
            write(Normalize {
                punctuation: true,
                ..none
            }),
            " E\u{301} ß  7\n"
        );
        assert_eq!(write(Normalize { digits: true, ..none }), " E\u{301} ß,  “0”\n");
        assert_eq!(
            write(Normalize {
                whitespace: true,
                ..none
            }),
            "E\u{301} ß, “7”"
        );
    }
    #[test]
    fn punctuation_separates_and_is_otherwise_ignored() {
        let write = |text| {
            let mut written = String::new();
            let punctuation = Normalize {
                punctuation: true,
                ..Normalize::default()
            };
            punctuation.write(text, &mut written);
            written
        };
        let numbers = ["1.23", "12.3", "123"].map(write);
        assert_eq!(numbers, ["1 23", "12 3", "123"]);
        assert_eq!(["a, b!", "“a” b", "a b", "a-b", "a–(b)", "a ,b"].map(write), ["a b"; 6]);
        assert_eq!(["a,  b", "a , b", "a  b"].map(write), ["a  b"; 3]);
        assert_eq!(["", "…", ". , .", " "].map(write), ["", "", "  ", " "]);
    }
}
