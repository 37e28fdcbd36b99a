//! Decides which pieces were seen, in the order of the input.
//!
//! The hashes of a chunk come from threads that work side by side; the answers do not. One thread at
//! a time takes the chunks in order, so a piece is compared with all pieces before it, and the
//! output depends on nothing else.

use crate::documents::{Documents, Fate};
use crate::growing_filter::GrowingFilter;
use anyhow::Result;
use lanebloom_text::is_covered;
use std::ops::Range;

/// Hashes that are looked up at a time, unless one document has more: their lines stay in the L2
/// cache until they are inserted.
const WINDOW: usize = 4096;

pub(super) struct Decider {
    pub(super) filter: GrowingFilter,
    pub(super) overlap: f64,
    pub(super) min_words: usize,
    /// Whether every hash is inserted at once, whatever is decided.
    pub(super) inserts_all: bool,
    /// The expected number of pieces that were removed by mistake.
    pub(super) mistaken: f64,
    pub(super) counts: Counts,
    new: Vec<bool>,
    found: Vec<u64>,
    pending: Pending,
}

/// What the documents came to.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) documents: u64,
    pub(super) without_text: u64,
    pub(super) shortened: u64,
    pub(super) empty: u64,
    pub(super) too_short: u64,
    pub(super) pieces: u64,
    pub(super) pieces_removed: u64,
    pub(super) hashes: u64,
    pub(super) hashes_seen: u64,
    pub(super) text_bytes: u64,
}

impl Counts {
    /// Adds the documents of a chunk, which were decided.
    pub(super) fn add(&mut self, documents: &Documents) {
        self.documents += documents.all.len() as u64;
        self.text_bytes += documents.text_bytes;
        self.pieces += documents.pieces.pieces.iter().filter(|piece| piece.words > 0).count() as u64;
        self.pieces_removed += documents.scores.iter().filter(|&&score| score > 0.0).count() as u64;
        self.hashes += documents.pieces.hashes.len() as u64;
        for document in &documents.all {
            match document.fate {
                Fate::NoText => self.without_text += 1,
                Fate::Same => {}
                Fate::Shortened => self.shortened += 1,
                Fate::Empty => self.empty += 1,
                Fate::TooShort => self.too_short += 1,
            }
        }
    }
}

impl Decider {
    pub(super) fn new(filter: GrowingFilter, overlap: f64, min_words: usize, inserts_all: bool) -> Self {
        Self {
            filter,
            overlap,
            min_words,
            inserts_all,
            mistaken: 0.0,
            counts: Counts::default(),
            new: Vec::new(),
            found: Vec::new(),
            pending: Pending::default(),
        }
    }

    /// Decides about the documents of the next chunk.
    pub(super) fn decide(&mut self, documents: &mut Documents, share: Option<f64>) -> Result<()> {
        if self.inserts_all {
            self.insert_all(documents, share)?;
        } else {
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
        }
        self.counts.add(documents);
        Ok(())
    }

    /// Inserts every hash; what was new is known at once.
    fn insert_all(&mut self, documents: &mut Documents, share: Option<f64>) -> Result<()> {
        let before = self.filter.current_rate();
        self.new.resize(documents.pieces.hashes.len(), false);
        self.filter.insert(&documents.pieces.hashes, &mut self.new, share)?;
        let rate = (before + self.filter.current_rate()) / 2.0;
        for number in 0..documents.pieces.pieces.len() {
            let piece = &documents.pieces.pieces[number];
            let range = deciding(&piece.hashes, piece.by_last);
            let seen = self.new[range.clone()].iter().filter(|&&new| !new).count();
            self.counts.hashes_seen += seen as u64;
            documents.scores[number] = self.score(seen, range.len(), rate);
        }
        for document in 0..documents.all.len() {
            documents.decide(document, self.min_words);
        }
        Ok(())
    }

    /// The share that was seen if that is enough; otherwise 0.
    fn score(&mut self, seen: usize, all: usize, rate: f64) -> f64 {
        if is_covered(seen, all, self.overlap) {
            return seen as f64 / all as f64;
        }
        if all > 0 {
            self.mistaken += chance(seen, all, self.overlap, rate);
        }
        0.0
    }

    /// Looks up all hashes of some documents, then decides, and then inserts those of the pieces
    /// that stay. A piece counts as seen only by what stands before it, in its own document too.
    fn decide_window(&mut self, documents: &mut Documents, window: Range<usize>, share: Option<f64>) -> Result<()> {
        let rate = self.filter.current_rate();
        let start = hashes_of(documents, window.start).start;
        let end = hashes_of(documents, window.end - 1).end;
        let hashes = start..end;
        self.found.clear();
        self.found.resize(hashes.len().div_ceil(64), 0);
        self.filter
            .find(&documents.pieces.hashes[hashes.clone()], &mut self.found);
        self.pending.clear();
        for document in window {
            let before = self.pending.order.len();
            if documents.is_too_short(document, self.min_words) {
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
                    seen += usize::from(is_found || self.pending.has(documents.pieces.hashes[place]));
                }
                self.counts.hashes_seen += seen as u64;
                let score = self.score(seen, range.len(), rate);
                documents.scores[number] = score;
                if score == 0.0 && !self.filter.is_closed {
                    self.pending.extend(&documents.pieces.hashes[range]);
                }
            }
            if documents.decide(document, self.min_words) == Fate::TooShort {
                // Nobody will see what stays.
                self.pending.undo(before);
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

/// The hashes of a piece that decide about it.
pub(super) fn deciding(hashes: &Range<usize>, by_last: bool) -> Range<usize> {
    if by_last {
        hashes.end - 1..hashes.end
    } else {
        hashes.clone()
    }
}

/// The chance that a piece like this one is removed by mistake: that so many of its new hashes seem
/// seen as are missing. With `d` missing of `u` it is at most (u p)^d / d!.
fn chance(seen: usize, all: usize, overlap: f64, rate: f64) -> f64 {
    let missing = ((overlap * all as f64).ceil() as usize).saturating_sub(seen).max(1);
    let new = (all - seen) as f64;
    let each = (1..=missing.min(30)).map(|number| new * rate / number as f64);
    each.product::<f64>().min(1.0)
}

/// The hashes that are to be inserted: an exact set, in order.
#[derive(Default)]
struct Pending {
    /// Open addressing with linear probing; 0 is free.
    table: Vec<u64>,
    order: Vec<u64>,
}

impl Pending {
    fn clear(&mut self) {
        if self.order.len() * 4 < self.table.len() / 4 {
            for at in 0..self.order.len() {
                // All of them go, so a gap does no harm in the end.
                let mut place = self.start(self.order[at]);
                while self.table[place] != 0 {
                    self.table[place] = 0;
                    place = (place + 1) & (self.table.len() - 1);
                }
            }
        } else {
            self.table.fill(0);
        }
        self.order.clear();
        // The memory of a long document is given back.
        if self.table.len() > 64 * WINDOW {
            self.table = Vec::new();
            self.order.shrink_to(WINDOW);
        }
    }

    fn start(&self, hash: u64) -> usize {
        // The filter uses the high bits first, so any bits do.
        hash as usize & (self.table.len() - 1)
    }

    /// The place of the hash, or the free one where it belongs.
    fn place(&self, hash: u64) -> usize {
        let mut place = self.start(hash);
        while self.table[place] != 0 && self.table[place] != hash {
            place = (place + 1) & (self.table.len() - 1);
        }
        place
    }

    fn has(&self, hash: u64) -> bool {
        !self.table.is_empty() && hash != 0 && self.table[self.place(hash)] == hash
    }

    fn extend(&mut self, hashes: &[u64]) {
        let most = 2 * (self.order.len() + hashes.len());
        if most > self.table.len() {
            self.table = vec![0; most.next_power_of_two().max(4 * WINDOW)];
            for at in 0..self.order.len() {
                let place = self.place(self.order[at]);
                self.table[place] = self.order[at];
            }
        }
        for &hash in hashes {
            let place = self.place(hash);
            if self.table[place] == 0 {
                self.table[place] = hash;
                self.order.push(hash);
            }
        }
    }

    /// Removes all but the first ones, the last one first, so that no search meets a gap.
    fn undo(&mut self, len: usize) {
        for hash in self.order.drain(len..).rev() {
            let mask = self.table.len() - 1;
            let mut place = hash as usize & mask;
            while self.table[place] != hash {
                if self.table[place] == 0 {
                    break;
                }
                place = (place + 1) & mask;
            }
            self.table[place] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn pending_hashes_are_a_set_that_forgets_the_last() {
        let mut pending = Pending::default();
        let mut random = 1u64;
        let mut next = || {
            random = random
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            // Few different places, so that searches are long.
            (random >> 60) + 1 + (random >> 40 & 3) * (1 << 32)
        };
        for _ in 0..200 {
            let mut set = HashSet::new();
            let mut order = Vec::new();
            for _ in 0..4 {
                let hashes = [next(), next(), next(), next()];
                pending.extend(&hashes);
                order.extend(hashes.iter().copied().filter(|&hash| set.insert(hash)));
                assert_eq!(pending.order, order);
                let before = order.len();
                let more = [next(), next(), next()];
                pending.extend(&more);
                pending.undo(before);
                for hash in (0..4).flat_map(|high| (1..18).map(move |low| low + high * (1 << 32))) {
                    assert_eq!(pending.has(hash), set.contains(&hash));
                }
            }
            pending.clear();
            assert!(pending.table.iter().all(|&hash| hash == 0));
        }
    }

    #[test]
    fn the_chance_of_a_mistake_is_the_rate_for_a_single_hash() {
        assert!((chance(0, 1, 0.8, 1e-6) - 1e-6).abs() < 1e-18);
        // One of two new ones must seem seen.
        assert!((chance(3, 5, 0.8, 1e-3) - 2e-3).abs() < 1e-12);
        assert!(chance(0, 100, 0.8, 1e-3) < 1e-60);
    }
}
