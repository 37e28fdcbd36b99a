//! The specification as a plain program: exact sets, pieces as strings, n-grams as lists of words.

use std::collections::HashSet;

/// The rules for what is removed, and how.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) separator: Option<&'static str>,
    pub(super) ngrams: Option<(usize, f64)>,
    pub(super) like_dolma: bool,
    pub(super) min_words: usize,
    pub(super) keep_short: usize,
    pub(super) seen: HashSet<Vec<String>>,
}

impl Model {
    pub(super) fn new(separator: Option<&'static str>) -> Self {
        Self {
            separator,
            ngrams: None,
            like_dolma: false,
            min_words: 0,
            keep_short: 0,
            seen: HashSet::new(),
        }
    }

    pub(super) fn ngrams(len: usize, overlap: f64) -> Self {
        Self {
            ngrams: Some((len, overlap)),
            ..Self::new(Some("\n"))
        }
    }

    /// The words of the option `--words ascii`.
    fn words(text: &str) -> Vec<String> {
        let is_part = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c| !is_part(c)).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    }

    /// The keys of a piece: its n-grams, or the piece itself.
    fn keys(&self, piece: &str, words: &[String]) -> Vec<Vec<String>> {
        let whole = || vec!["whole".to_owned(), piece.to_owned()];
        match self.ngrams {
            None => vec![whole()],
            Some((len, _)) if self.like_dolma && words.len() <= len => {
                let ngram = (words.len() == len).then(|| words.to_vec());
                ngram.into_iter().chain([whole()]).collect()
            }
            Some((len, _)) if words.len() < len => vec![words.to_vec()],
            Some((len, _)) => words.windows(len).map(<[String]>::to_vec).collect(),
        }
    }

    /// The rest of a text; `None` if the document goes. Also which of its pieces go.
    pub(super) fn pass(&mut self, text: &str) -> (Option<String>, Vec<bool>) {
        let pieces = match self.separator {
            Some(separator) => Vec::from_iter(text.split(separator)),
            None => vec![text],
        };
        let before = self.seen.clone();
        let (mut left, mut count, mut removed) = (Vec::new(), 0, Vec::new());
        for piece in pieces {
            let words = Self::words(piece);
            let is_blank = if self.ngrams.is_some() {
                words.is_empty()
            } else {
                piece.trim().is_empty()
            };
            if is_blank || words.len() < self.keep_short {
                count += words.len();
                left.push(piece);
                removed.push(false);
                continue;
            }
            let keys = self.keys(piece, &words);
            let mut seen = 0;
            let mut last = false;
            for key in &keys {
                last = if self.like_dolma {
                    !self.seen.insert(key.clone())
                } else {
                    self.seen.contains(key)
                };
                seen += usize::from(last);
            }
            let (len, overlap) = self.ngrams.unwrap_or((0, 1.0));
            let goes = if self.like_dolma && words.len() <= len {
                last
            } else {
                seen as f64 / keys.len() as f64 >= overlap
            };
            removed.push(goes);
            if !goes {
                self.seen.extend(keys);
                left.push(piece);
                count += if self.min_words > 0 || self.ngrams.is_some() {
                    words.len()
                } else {
                    1
                };
            }
        }
        let is_empty = count == 0 && removed.contains(&true);
        if !is_empty && count < self.min_words {
            // Nobody sees what would have stayed.
            self.seen = before;
        }
        let goes = is_empty || count < self.min_words;
        let text = left.join(self.separator.unwrap_or(""));
        ((!goes).then_some(text), removed)
    }

    pub(super) fn all(&mut self, texts: &[String]) -> Vec<String> {
        texts.iter().filter_map(|text| self.pass(text).0).collect()
    }
}
