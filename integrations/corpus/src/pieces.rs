//! The pieces of a text and their hashes.

use crate::rolling::{FACTOR, mix, step};
use crate::{Near, Normalize, Words};
use lanebloom::hash::{KeyHasher, Murmur3};
use regex::Regex;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::LazyLock;

/// The pieces that a text is cut into. A carriage return before a line feed that separates two
/// pieces is in neither of them.
#[derive(Clone, Debug, Default)]
pub enum Split {
    /// The whole text is one piece.
    #[default]
    Document,
    /// At each `\n`.
    Line,
    /// At each `\n\n`.
    Paragraph,
    /// At each match. A match of nothing separates nothing.
    Regex(Regex),
}

/// The rules by which a text is hashed. Filters are comparable if all of them are equal. Texts that
/// differ in their line ends, `\r\n` and `\n`, have the same hashes.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The pieces.
    pub split: Split,
    /// The words, for n-grams and for [`min_words`](Self::min_words).
    pub words: Words,
    /// The differences that count for nothing.
    pub normalize: Normalize,
    /// Words of an n-gram. Without it, the whole piece is hashed.
    pub ngrams: Option<NonZeroUsize>,
    /// The hashes of a piece are those of bands of its n-grams' signature.
    pub near: Option<Near>,
    /// Words are counted up to this number, unless n-grams count them anyhow.
    pub min_words: usize,
    /// A piece of fewer words has no hash. It needs [`min_words`](Self::min_words) to be as high.
    pub short: usize,
    /// A piece with less than two n-grams has a hash of its text too, as in dolma. There a carriage
    /// return is a character as any other one.
    pub is_like_dolma: bool,
    /// Bytes of memory that the pieces, words and hashes of a text may take. A text of 60 MB with
    /// 30 million lines would take 2 GB. Without it, there is no limit.
    pub max_bytes: Option<usize>,
    /// The hash function. Its seed varies all hashes.
    pub hasher: Murmur3,
}

/// A piece of a text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Piece {
    /// Where it lies in the text.
    pub text: Range<usize>,
    /// Its hashes: those of its n-grams, of their bands, or one. A piece without a word, or with
    /// too few, has none.
    pub hashes: Range<usize>,
    /// The number of its words, as far as they were counted. It is 0 if and only if there is none.
    pub words: usize,
    /// Whether the last hash alone decides, as in dolma.
    pub by_last: bool,
}

/// The pieces of texts.
#[derive(Clone, Debug, Default)]
pub struct Pieces {
    /// The pieces in order.
    pub pieces: Vec<Piece>,
    /// The hashes of all pieces.
    pub hashes: Vec<u64>,
    /// The normalized text, the hashes of words.
    text: String,
    words: Vec<u64>,
}

impl Pieces {
    /// Removes all pieces.
    pub fn clear(&mut self) {
        self.pieces.clear();
        self.hashes.clear();
    }
}

/// The pieces, words and hashes of a text take more memory than [`Rules::max_bytes`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TooMany;

impl fmt::Display for TooMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the text has too many pieces or words for the limit of memory")
    }
}

impl std::error::Error for TooMany {}

/// Bytes of a normalized text, and of the hashes of words, that are kept for the next text.
const KEPT: usize = 1 << 20;

impl Rules {
    /// Replaces `to` by the pieces of a text.
    ///
    /// # Errors
    ///
    /// The same errors as [`append`](Self::append).
    ///
    /// ```
    /// use lanebloom_corpus::{Pieces, Rules};
    ///
    /// // Two n-grams of three words.
    /// let rules = Rules { ngrams: 3.try_into().ok(), ..Rules::default() };
    /// let mut pieces = Pieces::default();
    /// rules.hash("one two three four", &mut pieces)?;
    /// let first = pieces.hashes.clone();
    /// rules.hash("zero one  two three", &mut pieces)?;
    /// assert_eq!((first.len(), pieces.hashes.len()), (2, 2));
    /// assert_eq!(pieces.hashes[1], first[0]);
    /// # Ok::<(), lanebloom_corpus::TooMany>(())
    /// ```
    pub fn hash(&self, text: &str, to: &mut Pieces) -> Result<(), TooMany> {
        to.clear();
        self.append(text, to)
    }

    /// Appends the pieces of a text to those of others.
    ///
    /// # Errors
    ///
    /// Fails if the text needs more memory than [`max_bytes`](Self::max_bytes). Then none of its
    /// pieces is appended.
    pub fn append(&self, text: &str, to: &mut Pieces) -> Result<(), TooMany> {
        let (pieces, hashes) = (to.pieces.len(), to.hashes.len());
        let bytes = text.as_bytes();
        let mut start = 0;
        let mut batch = Batch::new(self.hasher);
        let mut room = Room {
            most: self.max_bytes.unwrap_or(usize::MAX),
            is_over: false,
            pieces,
            hashes,
        };
        let has_returns = !self.is_like_dolma && memchr::memchr(b'\r', bytes).is_some();
        let mut push = |end: usize, next: usize| {
            self.push(text, start..end, has_returns, to, &mut batch, &mut room);
            start = next;
        };
        let by_regex = |regex: &Regex, push: &mut dyn FnMut(usize, usize)| {
            let found = regex.find_iter(text).filter(|found| !found.is_empty());
            found.for_each(|found| push(found.start(), found.end()));
        };
        match &self.split {
            Split::Document => {}
            Split::Line => memchr::memchr_iter(b'\n', bytes).for_each(|at| push(at, at + 1)),
            Split::Paragraph if has_returns => by_regex(&EMPTY_LINE, &mut push),
            Split::Paragraph => memchr::memmem::find_iter(bytes, "\n\n").for_each(|at| push(at, at + 2)),
            Split::Regex(regex) => by_regex(regex, &mut push),
        }
        self.push(text, start..text.len(), has_returns, to, &mut batch, &mut room);
        batch.flush(&mut to.hashes);
        to.text.clear();
        to.text.shrink_to(KEPT);
        to.words.clear();
        to.words.shrink_to(KEPT / size_of::<u64>());
        if room.is_over {
            to.pieces.truncate(pieces);
            to.hashes.truncate(hashes);
            return Err(TooMany);
        }
        Ok(())
    }

    fn push<'a>(
        &self,
        all: &'a str,
        mut range: Range<usize>,
        has_returns: bool,
        to: &mut Pieces,
        batch: &mut Batch<'a>,
        room: &mut Room,
    ) {
        let Some(left) = room.left(to) else {
            return;
        };
        let Pieces {
            pieces,
            hashes,
            text: normalized,
            words,
        } = to;
        if has_returns && all[range.clone()].ends_with('\r') && all[range.end..].starts_with('\n') {
            range.end -= 1;
        }
        let own = &all[range.clone()];
        let is_changed = self.normalize.is_any() || has_returns && own.contains("\r\n");
        if is_changed {
            self.normalize.write(own, normalized);
        }
        let text = if is_changed { normalized } else { own };
        let start = hashes.len() + batch.len;
        let mut by_last = false;
        let count = match self.ngrams {
            Some(len) => {
                words.clear();
                let mut batch = Batch::new(self.hasher);
                // A word has its hash, and that of the n-gram which it begins.
                let most = left / (2 * size_of::<u64>());
                self.words.each(text, |word| {
                    if words.len() <= most {
                        batch.push(word.as_bytes(), words);
                    }
                });
                batch.flush(words);
                if words.len() > most {
                    room.is_over = true;
                    return;
                }
                if words.len() >= self.short {
                    push_ngrams(words, len.get(), self.is_like_dolma, hashes);
                    if let Some(near) = self.near {
                        near.replace(hashes, start);
                    }
                    by_last = self.is_like_dolma && !words.is_empty() && words.len() <= len.get();
                    if by_last {
                        hashes.push(self.hasher.hash_key(text));
                    }
                }
                words.len()
            }
            None => {
                let is_blank = is_blank(text);
                let count = if is_blank {
                    0
                } else if self.min_words > 1 {
                    self.words.count(text, self.min_words)
                } else {
                    1
                };
                if is_blank || count < self.short {
                } else if is_changed {
                    // The hashes of the pieces before come first.
                    batch.flush(hashes);
                    hashes.push(self.hasher.hash_key(text));
                } else {
                    batch.push(own.as_bytes(), hashes);
                }
                count
            }
        };
        pieces.push(Piece {
            text: range,
            hashes: start..hashes.len() + batch.len,
            words: count,
            by_last,
        });
    }
}

/// The line ends between paragraphs; a return before them is left to [`Rules::push`].
static EMPTY_LINE: LazyLock<Regex> = LazyLock::new(|| Regex::new("\n\r?\n").expect("it is an expression"));

/// The memory that a text may take.
struct Room {
    most: usize,
    is_over: bool,
    /// The numbers of pieces and hashes before the text.
    pieces: usize,
    hashes: usize,
}

impl Room {
    /// The bytes that are left; `None` if that is not enough for a piece.
    fn left(&mut self, to: &Pieces) -> Option<usize> {
        let pieces = to.pieces.len() - self.pieces + 1;
        let hashes = to.hashes.len() - self.hashes;
        let taken = pieces * size_of::<Piece>() + hashes * size_of::<u64>();
        let left = self.most.checked_sub(taken).filter(|_| !self.is_over);
        self.is_over = left.is_none();
        left
    }
}

/// Whether a text has nothing but white space. In most texts the first byte that is not a space
/// tells.
fn is_blank(text: &str) -> bool {
    let first = text.bytes().position(|byte| !byte.is_ascii_whitespace());
    first.is_none_or(|at| !text.as_bytes()[at].is_ascii_graphic() && text[at..].trim_start().is_empty())
}

/// Keys that are hashed in one call: several side by side.
struct Batch<'a> {
    hasher: Murmur3,
    keys: [&'a [u8]; BATCH],
    len: usize,
}

const BATCH: usize = 64;

impl<'a> Batch<'a> {
    fn new(hasher: Murmur3) -> Self {
        Self {
            hasher,
            keys: [&[]; BATCH],
            len: 0,
        }
    }

    #[inline]
    fn push(&mut self, key: &'a [u8], hashes: &mut Vec<u64>) {
        self.keys[self.len] = key;
        self.len += 1;
        if self.len == BATCH {
            self.flush(hashes);
        }
    }

    fn flush(&mut self, hashes: &mut Vec<u64>) {
        if self.len == 0 {
            return;
        }
        let start = hashes.len();
        hashes.resize(start + self.len, 0);
        self.hasher.hash_batch(&self.keys[..self.len], &mut hashes[start..]);
        self.len = 0;
    }
}

/// Appends the hashes of all n-grams of words with these hashes. Fewer words are one n-gram, unless
/// `only_whole`.
fn push_ngrams(words: &[u64], len: usize, only_whole: bool, hashes: &mut Vec<u64>) {
    if words.is_empty() || only_whole && words.len() < len {
        return;
    }
    // A polynomial modulo 2^64. The hashes of the words are its random coefficients. The length
    // distinguishes an n-gram from a shorter one.
    let (first, rest) = words.split_at(len.min(words.len()));
    let mut sum = first.iter().fold(first.len() as u64, step);
    hashes.push(mix(sum));
    let ahead = FACTOR.wrapping_pow(len as u32);
    // The length is at the front too, and moves there with each step.
    let length = (len as u64).wrapping_mul(ahead);
    sum = sum.wrapping_sub(length);
    hashes.extend(words.iter().zip(rest).map(|(out, word)| {
        sum = step(sum, word).wrapping_sub(out.wrapping_mul(ahead));
        mix(sum.wrapping_add(length))
    }));
}

/// Whether at least this share of the n-grams was seen.
///
/// ```
/// use lanebloom_corpus::is_covered;
///
/// assert!(is_covered(4, 5, 0.8) && !is_covered(3, 5, 0.8));
/// assert!(!is_covered(0, 0, 0.0));
/// ```
pub fn is_covered(seen: usize, all: usize, overlap: f64) -> bool {
    // A quotient is rounded to the nearest number, and so is the decimal that a person writes.
    all > 0 && seen as f64 / all as f64 >= overlap
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn texts(split: Split, text: &str) -> Vec<&str> {
        let mut pieces = Pieces::default();
        let rules = Rules {
            split,
            ..Rules::default()
        };
        rules.hash(text, &mut pieces).unwrap();
        pieces.pieces.iter().map(|piece| &text[piece.text.clone()]).collect()
    }

    #[test]
    fn a_text_is_cut_as_a_standard_split_cuts_it() {
        let regex = Regex::new("\n+").unwrap();
        for text in ["", "a", "\n", "a\n", "\na", "a\n\nb\n\n\nc", "\n\n\n\n"] {
            assert_eq!(texts(Split::Document, text), [text]);
            assert_eq!(texts(Split::Line, text), Vec::from_iter(text.split('\n')));
            assert_eq!(texts(Split::Paragraph, text), Vec::from_iter(text.split("\n\n")));
            let expected = Vec::from_iter(regex.split(text));
            assert_eq!(texts(Split::Regex(regex.clone()), text), expected);
        }
        assert_eq!(texts(Split::Regex(Regex::new("x*").unwrap()), "axxb"), ["a", "b"]);
    }

    #[test]
    fn a_return_before_a_line_feed_is_in_no_piece() {
        let paragraph = Regex::new("\r?\n\r?\n").unwrap();
        let line = Regex::new("\r?\n").unwrap();
        for number in 0..4usize.pow(8) {
            let text: String = (0..8)
                .map(|place| ['a', 'b', '\r', '\n'][number >> (2 * place) & 3])
                .collect();
            assert_eq!(texts(Split::Line, &text), Vec::from_iter(line.split(&text)), "{text:?}");
            let expected = Vec::from_iter(paragraph.split(&text));
            assert_eq!(texts(Split::Paragraph, &text), expected, "{text:?}");
        }
        let regex = Split::Regex(Regex::new("x|\n").unwrap());
        assert_eq!(texts(regex, "a\r\nb\rxc\r\n"), ["a", "b\r", "c", ""]);
    }

    /// Whatever a piece is and what counts for nothing in it.
    #[test]
    fn texts_with_other_line_ends_have_the_same_hashes() {
        let text = "One, two.\n\nThree four\nfive six\n\n\nfour.\nfive six e\u{301}\nthree four five six\n";
        let hashes = |rules: &Rules, text: &str| {
            let mut pieces = Pieces::default();
            rules.hash(text, &mut pieces).unwrap();
            pieces.hashes
        };
        for split in [
            Split::Document,
            Split::Line,
            Split::Paragraph,
            Split::Regex(Regex::new("o").unwrap()),
        ] {
            for ngrams in [0, 2] {
                for bits in 0..32 {
                    let rules = Rules {
                        split: split.clone(),
                        ngrams: NonZeroUsize::new(ngrams),
                        normalize: Normalize {
                            nfc: bits & 1 > 0,
                            lower: bits & 2 > 0,
                            punctuation: bits & 4 > 0,
                            digits: bits & 8 > 0,
                            whitespace: bits & 16 > 0,
                        },
                        ..Rules::default()
                    };
                    let expected = hashes(&rules, text);
                    assert_eq!(hashes(&rules, &text.replace('\n', "\r\n")), expected, "{rules:?}");
                    assert_eq!(hashes(&rules, &text.replacen('\n', "\r\n", 3)), expected, "{rules:?}");
                    // Any other return is a character.
                    let other = hashes(&rules, &text.replace("five ", "five\r"));
                    let is_space = ngrams > 0 || rules.normalize.whitespace;
                    assert_eq!(other == expected, is_space, "{rules:?}");
                }
            }
        }
        // Dolma takes a return for a part of a piece.
        let rules = Rules {
            split: Split::Line,
            ngrams: NonZeroUsize::new(3),
            is_like_dolma: true,
            ..Rules::default()
        };
        assert_ne!(hashes(&rules, "a b\r\n"), hashes(&rules, "a b\n"));
        let paragraphs = Rules {
            split: Split::Paragraph,
            ..rules
        };
        assert_eq!(hashes(&paragraphs, "a\n\r\nb"), hashes(&paragraphs, "a\n\r\nb\n\n"));
        assert_eq!(hashes(&paragraphs, "a\n\r\nb").len(), 1);
    }

    /// Every n-gram has the hash of its words alone, and different ones have different hashes.
    #[test]
    fn a_hash_rolls_as_if_each_ngram_stood_alone() {
        let text = "a b a b b a c a b a a a a a b c c b a b a b a b";
        let words = Vec::from_iter(text.split(' '));
        let mut by_words = HashMap::new();
        for len in 1..=words.len() + 1 {
            let rules = Rules {
                ngrams: NonZeroUsize::new(len),
                ..Rules::default()
            };
            let (mut all, mut one) = (Pieces::default(), Pieces::default());
            rules.hash(text, &mut all).unwrap();
            let ngrams = Vec::from_iter(words.windows(len.min(words.len())));
            assert_eq!(all.hashes.len(), ngrams.len());
            for (ngram, &hash) in ngrams.iter().zip(&all.hashes) {
                rules.hash(&ngram.join("  "), &mut one).unwrap();
                assert_eq!(one.hashes, [hash]);
                assert_eq!(*by_words.entry(ngram.to_vec()).or_insert(hash), hash);
            }
        }
        let hashes = std::collections::HashSet::<u64>::from_iter(by_words.values().copied());
        assert_eq!(hashes.len(), by_words.len());
    }

    #[test]
    fn a_piece_without_words_has_no_hash() {
        for ngrams in [None, NonZeroUsize::new(3)] {
            for is_like_dolma in [false, true] {
                let rules = Rules {
                    split: Split::Line,
                    ngrams,
                    is_like_dolma,
                    ..Rules::default()
                };
                let mut pieces = Pieces::default();
                rules.hash("\n \u{3000}\t\na", &mut pieces).unwrap();
                let counts = pieces.pieces.iter().map(|piece| (piece.words, piece.hashes.len()));
                assert_eq!(Vec::from_iter(counts), [(0, 0), (0, 0), (1, 1)]);
            }
        }
    }

    #[test]
    fn dolma_compares_whole_pieces_of_less_than_two_ngrams() {
        let rules = Rules {
            ngrams: NonZeroUsize::new(3),
            is_like_dolma: true,
            ..Rules::default()
        };
        let mut pieces = Pieces::default();
        let counts = ["a b", "a b c", "a b c d", "a b c d e"].map(|text| {
            rules.hash(text, &mut pieces).unwrap();
            (pieces.hashes.len(), pieces.pieces[0].by_last)
        });
        assert_eq!(counts, [(1, true), (2, true), (2, false), (3, false)]);
    }

    /// Each limit is the least one for its text, and nothing of a text above it is left.
    #[test]
    fn a_text_above_the_limit_of_memory_is_an_error() {
        let rules = |split, ngrams, max_bytes| Rules {
            split,
            ngrams: NonZeroUsize::new(ngrams),
            max_bytes: Some(max_bytes),
            ..Rules::default()
        };
        let text = "a b c\n".repeat(1000);
        for (split, ngrams) in [
            (Split::Line, 0),
            (Split::Line, 2),
            (Split::Document, 2),
            (Split::Document, 0),
        ] {
            let mut pieces = Pieces::default();
            rules(Split::Line, 0, usize::MAX).hash("one\ntwo", &mut pieces).unwrap();
            let before = pieces.clone();
            let least = (1..1 << 20).collect::<Vec<_>>();
            let least = least.partition_point(|&most| {
                let mut pieces = Pieces::default();
                rules(split.clone(), ngrams, most).hash(&text, &mut pieces).is_err()
            });
            assert_eq!(
                rules(split.clone(), ngrams, least).append(&text, &mut pieces),
                Err(TooMany)
            );
            assert_eq!((&pieces.pieces, &pieces.hashes), (&before.pieces, &before.hashes));
            assert_eq!(
                rules(split.clone(), ngrams, least + 1).append(&text, &mut pieces),
                Ok(())
            );
            let taken = (pieces.pieces.len() - 2) * size_of::<Piece>() + (pieces.hashes.len() - 2) * 8;
            assert!(
                least < 2 * taken + 1024 && taken < least + 1024,
                "{split:?} {ngrams}: {least}, {taken}"
            );
        }
    }
}
