//! MinHash: few hashes of a set of n-grams, of which similar sets share some.
//!
//! A set's signature has a number for each of `bands * rows` bins. One pass over the hashes of the
//! n-grams puts each into a bin by its high bits, and keeps the least of each bin (one permutation
//! hashing). An empty bin takes the number of a bin that a fixed sequence names first ("optimal
//! densification", Shrivastava, 2017). Two sets have the same number in a bin with a probability of
//! their Jaccard similarity. A band is a hash of `rows` of these numbers. Sets are near each other
//! if they share a band, and a Bloom filter of bands finds that (LSHBloom, arXiv 2411.04257).
//!
//! A hash function for each number of the signature would take 128 steps for each word instead of
//! one. Both have the same mean. With fewer n-grams than bins, the numbers here depend on each
//! other, so the step at the threshold is less steep.

use crate::rolling::{mix, step};

/// Numbers in a signature, at most.
const MOST: usize = 128;

/// Bands of a MinHash signature.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Near {
    bands: usize,
    rows: usize,
}

impl Near {
    /// The bands for sets with at least this Jaccard similarity. The numbers of bands and rows are
    /// those with the fewest errors: the chance of a shared band below the threshold, and that of
    /// none above it, summed over all similarities.
    ///
    /// ```
    /// use lanebloom_corpus::Near;
    ///
    /// let near = Near::new(0.8);
    /// assert_eq!(near.bands(), 9);
    /// assert!(near.probability(0.95) > 0.99 && near.probability(0.5) < 0.01);
    /// ```
    pub fn new(threshold: f64) -> Self {
        let errors = |near: &Self| {
            let steps = 0..1000;
            let each = steps.map(|step| {
                let jaccard = (f64::from(step) + 0.5) / 1000.0;
                let shared = near.probability(jaccard);
                if jaccard < threshold { shared } else { 1.0 - shared }
            });
            each.sum::<f64>()
        };
        let all = (1..=MOST).flat_map(|bands| (1..=MOST / bands).map(move |rows| Self { bands, rows }));
        let best = all.min_by(|one, other| errors(one).total_cmp(&errors(other)));
        best.expect("there is one of one band")
    }

    /// The number of bands: hashes of a piece.
    pub fn bands(&self) -> usize {
        self.bands
    }

    /// The chance that two large sets with this similarity share a band.
    pub fn probability(&self, jaccard: f64) -> f64 {
        1.0 - (1.0 - jaccard.powi(self.rows as i32)).powi(self.bands as i32)
    }

    /// Replaces the hashes of n-grams from the first one on by those of the bands; none by none.
    pub(crate) fn replace(&self, hashes: &mut Vec<u64>, first: usize) {
        let mut bins = [u64::MAX; MOST];
        let bins = &mut bins[..self.bands * self.rows];
        let len = bins.len();
        for &hash in &hashes[first..] {
            let bin = &mut bins[((u128::from(hash) * len as u128) >> 64) as usize];
            *bin = hash.min(*bin);
        }
        let mut filled = [false; MOST];
        filled
            .iter_mut()
            .zip(&*bins)
            .for_each(|(filled, &bin)| *filled = bin < u64::MAX);
        let Some(any) = filled.iter().position(|&filled| filled) else {
            return hashes.truncate(first);
        };
        let is_one = filled.iter().filter(|&&filled| filled).count() == 1;
        for bin in 0..len {
            if !filled[bin] {
                // The search would be long.
                let from = if is_one { any } else { search(bin, len, &filled) };
                bins[bin] = bins[from];
            }
        }
        hashes.truncate(first);
        let bands = bins.chunks(self.rows).enumerate();
        hashes.extend(bands.map(|(band, rows)| mix(rows.iter().fold(band as u64 + 1, step))));
    }
}

/// The first bin of a sequence of its own that is not empty.
fn search(bin: usize, len: usize, filled: &[bool; MOST]) -> usize {
    let mut attempts = (1..).map(|attempt: u64| {
        let number = mix((bin as u64) << 32 | attempt);
        ((u128::from(number) * len as u128) >> 64) as usize
    });
    attempts.find(|&from| filled[from]).expect("the sequence has every bin")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of numbers.
    fn hashes(numbers: impl Iterator<Item = u64>) -> Vec<u64> {
        numbers
            .map(|number| mix(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
            .collect()
    }

    fn bands(near: Near, mut hashes: Vec<u64>) -> Vec<u64> {
        near.replace(&mut hashes, 0);
        hashes
    }

    /// The share of pairs of sets with this similarity and union that share a band.
    fn found(near: Near, jaccard: f64, union: u64) -> f64 {
        let pairs = 2000;
        let both = (jaccard * union as f64).round() as u64;
        let own = (union - both) / 2;
        let is_found = |pair: &u64| {
            let start = pair * 1_000_000;
            let one = bands(near, hashes(start..start + both + own));
            let other = bands(
                near,
                hashes((start..start + both).chain(start + both + own..start + union)),
            );
            one.iter().zip(&other).any(|(one, other)| one == other)
        };
        (1..=pairs).filter(is_found).count() as f64 / pairs as f64
    }

    #[test]
    fn similar_sets_share_a_band_as_often_as_promised() {
        for threshold in [0.5, 0.8, 0.9] {
            let near = Near::new(threshold);
            for jaccard in [0.2, 0.5, 0.7, 0.8, 0.9, 0.96] {
                // Sets much larger than the signature, and of its size.
                for (union, most) in [(3000, 0.05), (300, 0.1)] {
                    let (found, expected) = (found(near, jaccard, union), near.probability(jaccard));
                    assert!(
                        (found - expected).abs() < most,
                        "{near:?} {jaccard} {union}: {found}, {expected}"
                    );
                }
            }
            assert!(found(near, 1.0, 3) == 1.0 && found(near, 1.0, 300) == 1.0);
            // Few n-grams: fewer are found near the threshold, and still few that are not similar.
            assert!(found(near, 0.95, 40) > 0.8 && found(near, 0.2, 40) < 0.1, "{near:?}");
        }
    }

    #[test]
    fn neither_the_order_nor_repetitions_count() {
        let near = Near::new(0.8);
        for len in [1, 2, 30, 1000] {
            let all = hashes(0..len);
            let other = all.iter().rev().chain(&all).copied().collect();
            let found = bands(near, all);
            assert_eq!(found.len(), near.bands());
            assert_eq!(bands(near, other), found);
        }
        assert_eq!(bands(near, Vec::new()), [0; 0]);
        // The others stay.
        let mut two = vec![1, 2];
        near.replace(&mut two, 1);
        assert_eq!((two[0], &two[1..]), (1, &bands(near, vec![2])[..]));
    }

    #[test]
    fn equal_numbers_in_other_bands_are_other_hashes() {
        // One n-gram: all numbers of the signature are the same.
        let mut found = bands(Near::new(0.8), vec![7 << 50]);
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 9);
    }
}
