//! Cuts text into words.
//!
//! By Unicode's rules (UAX 29), white space separates words, and each punctuation mark is a word of
//! its own unless it is inside of one, as in `can't` or `3.14`. These are the words of bff and
//! dolma: `split_word_bounds` of the crate `unicode-segmentation` without those of white space
//! only. The same rules for ASCII alone are a table and a few compares, so they cut the ASCII parts
//! of a text. A boundary always lies before and behind an ASCII space that an ASCII character
//! follows, whatever stands elsewhere, so a text can be cut there first.

use unicode_segmentation::UnicodeSegmentation;

/// Rules for words.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Words {
    /// Unicode's word boundaries (UAX 29), without white space. Punctuation marks are words.
    #[default]
    Unicode,
    /// Letters, digits and underscores of ASCII in a row, and all characters beyond ASCII. All else
    /// separates words.
    Ascii,
}

impl Words {
    /// Calls `each` with every word of the text, in order.
    ///
    /// ```
    /// use lanebloom_corpus::Words;
    ///
    /// let words = |rules: Words| {
    ///     let mut words = Vec::new();
    ///     rules.each("It can't cost 3.50!", |word| words.push(word.to_owned()));
    ///     words
    /// };
    /// assert_eq!(words(Words::Unicode), ["It", "can't", "cost", "3.50", "!"]);
    /// assert_eq!(words(Words::Ascii), ["It", "can", "t", "cost", "3", "50"]);
    /// ```
    pub fn each<'a>(self, text: &'a str, each: impl FnMut(&'a str)) {
        match self {
            Self::Unicode => each_by_unicode(text, each),
            Self::Ascii => each_by_ascii(text, each),
        }
    }

    /// The number of words, at most `most`.
    pub fn count(self, text: &str, most: usize) -> usize {
        let mut count = 0;
        // No word is longer than the rest, and the rest of a text of many words is not looked at.
        for part in text.split_inclusive('\n') {
            if count >= most {
                break;
            }
            self.each(part, |_| count += 1);
        }
        count.min(most)
    }
}

fn each_by_ascii<'a>(text: &'a str, mut each: impl FnMut(&'a str)) {
    let is_part = |byte: u8| byte >= 0x80 || byte == b'_' || byte.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !is_part(bytes[at]) {
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_part(bytes[at]) {
            at += 1;
        }
        each(&text[start..at]);
    }
}

fn each_by_unicode<'a>(text: &'a str, mut each: impl FnMut(&'a str)) {
    if text.is_ascii() {
        return each_of_ascii(text, &mut each);
    }
    let bytes = text.as_bytes();
    let mut start = 0;
    for at in memchr::memchr_iter(b' ', bytes) {
        // A combining mark behind the space would belong to it.
        if bytes.get(at + 1).is_none_or(u8::is_ascii) {
            each_of_part(&text[start..at], &mut each);
            start = at + 1;
        }
    }
    each_of_part(&text[start..], &mut each);
}

fn each_of_part<'a>(text: &'a str, each: &mut impl FnMut(&'a str)) {
    if text.is_ascii() {
        return each_of_ascii(text, each);
    }
    let is_word = |word: &&str| !word.chars().all(char::is_whitespace);
    text.split_word_bounds().filter(is_word).for_each(each);
}

/// The class of an ASCII character by the rules for word boundaries.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Class {
    Space,
    Letter,
    Digit,
    /// The underscore, ExtendNumLet.
    Joiner,
    /// The colon, between letters: MidLetter.
    MidLetter,
    /// A comma or semicolon, between digits: MidNum.
    MidDigit,
    /// A full stop or apostrophe, between letters or digits: MidNumLet, Single_Quote.
    MidBoth,
    Other,
}

impl Class {
    /// Whether characters of this kind in a row are one word.
    fn is_long(self) -> bool {
        matches!(self, Self::Letter | Self::Digit | Self::Joiner)
    }
}

const CLASSES: [Class; 128] = {
    let mut classes = [Class::Other; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte as usize] = match byte {
            // `char::is_whitespace`
            b'\t'..=b'\r' | b' ' => Class::Space,
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'_' => Class::Joiner,
            b':' => Class::MidLetter,
            b',' | b';' => Class::MidDigit,
            b'.' | b'\'' => Class::MidBoth,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

/// The words of ASCII text by Unicode's rules.
fn each_of_ascii<'a>(text: &'a str, each: &mut impl FnMut(&'a str)) {
    let bytes = text.as_bytes();
    let class = |at: usize| {
        bytes
            .get(at)
            .map_or(Class::Other, |&byte| CLASSES[usize::from(byte & 0x7f)])
    };
    let mut at = 0;
    while at < bytes.len() {
        let first = class(at);
        let start = at;
        at += 1;
        if first == Class::Space {
            continue;
        }
        // Most words are letters up to a space.
        if first.is_long() {
            loop {
                let rest = bytes[at..].iter();
                at += rest
                    .take_while(|&&byte| CLASSES[usize::from(byte & 0x7f)].is_long())
                    .count();
                // A mark inside of a word needs the same kind on both sides.
                let last = class(at - 1);
                let joins = match class(at) {
                    Class::MidLetter => last == Class::Letter,
                    Class::MidDigit => last == Class::Digit,
                    Class::MidBoth => last != Class::Joiner,
                    _ => false,
                };
                if !joins || class(at + 1) != last {
                    break;
                }
                at += 2;
            }
        }
        each(&text[start..at]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The words as bff and dolma cut them.
    fn plain(text: &str) -> Vec<&str> {
        let is_word = |word: &&str| word.chars().any(|character| !character.is_whitespace());
        text.split_word_bounds().filter(is_word).collect()
    }

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        Words::Unicode.each(text, |word| words.push(word));
        words
    }

    #[test]
    fn all_short_ascii_texts_are_cut_as_unicode_says() {
        let alphabet = b"aZ5_:,;.'\" \t\r\n\x0b\x0c\0-";
        let mut text = String::new();
        for number in 0..alphabet.len().pow(5) {
            text.clear();
            let mut rest = number;
            for _ in 0..5 {
                text.push(alphabet[rest % alphabet.len()].into());
                rest /= alphabet.len();
            }
            assert_eq!(words(&text), plain(&text), "{text:?}");
        }
        for byte in 0..128u8 {
            for other in 0..128u8 {
                let text = String::from_utf8(vec![b'a', byte, other, b'1']).unwrap();
                assert_eq!(words(&text), plain(&text), "{text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_cut_as_unicode_says(text in "(\\PC|[ a.'\u{301}\u{200d}\u{1f1e6}\u{1f1e7}א\"カ\r\n]){0,40}") {
            prop_assert_eq!(words(&text), plain(&text));
        }

        #[test]
        fn the_number_of_words_is_that_of_the_words(text in "[ab \n\u{301}\u{85}]{0,40}", most in 0..20usize) {
            for rules in [Words::Unicode, Words::Ascii] {
                let mut all = 0;
                rules.each(&text, |_| all += 1);
                prop_assert_eq!(rules.count(&text, most), all.min(most));
            }
        }
    }
}
