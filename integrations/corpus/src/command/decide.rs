//! Decides which pieces were seen, in the order of the input.
//!
//! Threads hash the pieces of chunks side by side; they do not look them up side by side. One
//! thread at a time takes the chunks in order, so a piece is compared with all pieces before it,
//! and the output depends on nothing else. The rest of the work is done side by side again.

use super::documents::{Counts, Documents, Fate};
use super::memory::Limited;
use anyhow::Result;
use lanebloom::{Bitmap, Hashed};
use lanebloom_corpus::is_covered;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// Hashes that are looked up at a time, unless one document has more: their lines stay in the L2
/// cache until they are inserted.
const WINDOW: usize = 4096;

/// How pieces are decided about.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) by: By,
    pub(super) overlap: f64,
    pub(super) min_words: usize,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum By {
    /// Every hash is inserted, and what was new is known at once.
    Inserting,
    /// Hashes are looked up, and those of pieces that stay are inserted.
    Windows,
    /// The hashes were looked up in another filter.
    Found,
    /// Everything is inserted, and nothing is decided.
    Nothing,
}

impl Way {
    /// Decides what does not depend on the order of the chunks. Returns the counts of this one.
    pub(super) fn end(self, documents: &mut Documents) -> Counts {
        match self.by {
            By::Nothing | By::Windows => {}
            By::Inserting => {
                let new = std::mem::take(&mut documents.new);
                self.score_all(documents, |place| !new[place]);
                documents.new = new;
            }
            By::Found => {
                let found = std::mem::take(&mut documents.found);
                documents.rate = 0.0;
                self.score_all(documents, |place| found[place / 64] >> (place % 64) & 1 == 1);
                documents.found = found;
            }
        }
        std::mem::take(&mut documents.counts).with(documents)
    }

    fn score_all(self, documents: &mut Documents, is_seen: impl Fn(usize) -> bool) {
        for number in 0..documents.pieces.pieces.len() {
            let piece = &documents.pieces.pieces[number];
            let hashes = piece.hashes.clone();
            if hashes.len() == 1 {
                // The loop below, without a branch: whether a line was seen is hard to foresee.
                let seen = is_seen(hashes.start);
                documents.counts.hashes_seen += u64::from(seen);
                documents.counts.mistaken += if seen { 0.0 } else { documents.rate };
                documents.scores[number] = f64::from(u8::from(seen));
                continue;
            }
            let deciding = if piece.by_last {
                hashes.end - 1..hashes.end
            } else {
                hashes
            };
            let seen = deciding.clone().filter(|&place| is_seen(place)).count();
            let rate = documents.rate;
            self.score(documents, number, seen, deciding.len(), rate);
        }
        for document in 0..documents.all.len() {
            documents.decide(document, self.min_words);
        }
    }

    /// Sets a piece's score: the share that was seen if that is enough; otherwise 0.
    fn score(self, documents: &mut Documents, number: usize, seen: usize, all: usize, rate: f64) -> f64 {
        documents.counts.hashes_seen += seen as u64;
        let mut score = 0.0;
        if is_covered(seen, all, self.overlap) {
            score = seen as f64 / all as f64;
        } else if all == 1 {
            documents.counts.mistaken += rate;
        } else if all > 0 {
            documents.counts.mistaken += chance(seen, all, self.overlap, rate);
        }
        documents.scores[number] = score;
        score
    }
}

/// A filter that other machines fill too.
pub(super) trait Shared: Send {
    /// Inserts hashes in order, and writes to `new` which of them were new. Returns the rate.
    fn insert(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<f64>;

    fn statistics(&self) -> Statistics;
}

/// A filter's statistics for a summary.
pub(super) struct Statistics {
    pub(super) memory: usize,
    pub(super) fill: f64,
    pub(super) rate: f64,
}

pub(super) struct Decider {
    pub(super) filter: Limited,
    /// Takes the place of `filter`.
    shared: Option<Box<dyn Shared>>,
    pub(super) way: Way,
    new: Vec<bool>,
    found: Vec<u64>,
    pending: Pending,
}

impl Decider {
    pub(super) fn new(filter: Limited, shared: Option<Box<dyn Shared>>, way: Way) -> Self {
        Self {
            filter,
            shared,
            way,
            new: Vec::new(),
            found: Vec::new(),
            pending: Pending::default(),
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        match &self.shared {
            Some(shared) => shared.statistics(),
            None => Statistics {
                memory: self.filter.filter().memory_bytes(),
                fill: self.filter.filter().statistics().fill_ratio,
                rate: self.filter.seen.mistakes.rate(),
            },
        }
    }

    /// Does what depends on the order of the chunks.
    pub(super) fn take(&mut self, documents: &mut Documents, share: Option<f64>) -> Result<()> {
        match self.way.by {
            By::Found => Ok(()),
            By::Inserting | By::Nothing => {
                let before = self.filter.seen.mistakes.rate();
                documents.new.resize(documents.pieces.hashes.len(), false);
                if let Some(shared) = &mut self.shared {
                    documents.rate = shared.insert(&documents.pieces.hashes, &mut documents.new)?;
                    return Ok(());
                }
                self.filter
                    .insert(&documents.pieces.hashes, &mut documents.new, share)?;
                documents.rate = (before + self.filter.seen.mistakes.rate()) / 2.0;
                Ok(())
            }
            By::Windows => {
                let mut first = 0;
                while first < documents.all.len() {
                    let mut end = first;
                    let mut hashes = 0;
                    while end < documents.all.len() && (end == first || hashes < WINDOW) {
                        hashes += hashes_of(documents, end).len();
                        end += 1;
                    }
                    self.decide_window(documents, first..end, share)?;
                    first = end;
                }
                Ok(())
            }
        }
    }

    /// Looks up all hashes of some documents, then decides, and then inserts those of the pieces
    /// that stay. A piece counts as seen only by what stands before it, in its own document too.
    fn decide_window(&mut self, documents: &mut Documents, window: Range<usize>, share: Option<f64>) -> Result<()> {
        let rate = self.filter.seen.mistakes.rate();
        let start = hashes_of(documents, window.start).start;
        let end = hashes_of(documents, window.end - 1).end;
        let hashes = start..end;
        self.found.clear();
        self.found.resize(hashes.len().div_ceil(64), 0);
        let filter = self.filter.filter();
        let keys = Hashed::slice(&documents.pieces.hashes[hashes.clone()]);
        filter.contains_batch(keys, Bitmap(&mut self.found));
        self.pending.clear();
        for document in window {
            let before = self.pending.order.len();
            if documents.is_too_short(document, self.way.min_words) {
                documents.all[document].fate = Fate::TooShort;
                continue;
            }
            for number in documents.all[document].pieces.clone() {
                let piece = &documents.pieces.pieces[number];
                let range = piece.hashes.clone();
                let mut seen = 0;
                for place in range.clone() {
                    let at = place - hashes.start;
                    let is_found = self.found[at / 64] >> (at % 64) & 1 == 1;
                    seen += usize::from(is_found || self.pending.set.contains(&documents.pieces.hashes[place]));
                }
                let score = self.way.score(documents, number, seen, range.len(), rate);
                if score == 0.0 && !self.filter.is_closed {
                    self.pending.extend(&documents.pieces.hashes[range]);
                }
            }
            if documents.decide(document, self.way.min_words) == Fate::TooShort {
                // The document goes, and what stays of it too.
                self.pending.truncate(before);
            }
        }
        self.new.resize(self.pending.order.len(), false);
        let order = std::mem::take(&mut self.pending.order);
        self.filter.insert(&order, &mut self.new, share)?;
        self.pending.order = order;
        Ok(())
    }
}

/// The hashes of a document.
fn hashes_of(documents: &Documents, document: usize) -> Range<usize> {
    let pieces = documents.all[document].pieces.clone();
    let hash = |piece: usize| {
        let piece = documents.pieces.pieces.get(piece);
        piece.map_or(documents.pieces.hashes.len(), |piece| piece.hashes.start)
    };
    hash(pieces.start)..hash(pieces.end)
}

/// The chance that a piece like this one is removed by mistake: that enough of its new hashes
/// seem seen. With `d` missing of `u` it is at most (u p)^d / d!.
fn chance(seen: usize, all: usize, overlap: f64, rate: f64) -> f64 {
    let missing = ((overlap * all as f64).ceil() as usize).saturating_sub(seen).max(1);
    let new = (all - seen) as f64;
    let each = (1..=missing.min(30)).map(|number| new * rate / number as f64);
    each.product::<f64>().min(1.0)
}

/// The hashes that are to be inserted: an exact set, in order.
#[derive(Default)]
struct Pending {
    set: HashSet<u64, BuildHasherDefault<Same>>,
    order: Vec<u64>,
}

impl Pending {
    fn clear(&mut self) {
        self.set.clear();
        self.order.clear();
        // The memory of a long document is given back.
        self.set.shrink_to(32 * WINDOW);
        self.order.shrink_to(32 * WINDOW);
    }

    fn extend(&mut self, hashes: &[u64]) {
        // Not for all: a long document may repeat a few sequences.
        self.set.reserve(hashes.len().min(WINDOW));
        self.order.extend(hashes.iter().filter(|&&hash| self.set.insert(hash)));
    }

    /// Removes all but the first ones.
    fn truncate(&mut self, len: usize) {
        self.order.drain(len..).for_each(|hash| _ = self.set.remove(&hash));
    }
}

/// The hash of a number that is a hash already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {
        unreachable!("it hashes numbers only");
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_a_mistake_is_the_rate_for_a_single_hash() {
        assert!((chance(0, 1, 0.8, 1e-6) - 1e-6).abs() < 1e-18);
        // One of two new ones must seem seen.
        assert!((chance(3, 5, 0.8, 1e-3) - 2e-3).abs() < 1e-12);
        assert!(chance(0, 100, 0.8, 1e-3) < 1e-60);
    }
}
