//! Lookups in several engines of bits: the layers of a filter that grows, the generations of a
//! window.

use crate::chunks::CHUNK;
use crate::filter::traits::Engine;
use crate::filter::types::bloom::Bloom;
use crate::words::scratch::Scratch;

/// The fill of several engines together, from the fill of each.
pub(crate) fn fill_of_all<'a>(fills: impl Iterator<Item = (f64, &'a Bloom)>) -> f64 {
    let add = |(ones, bytes), (fill, one): (f64, &Bloom)| {
        let size = one.memory_bytes() as f64;
        (ones + fill * size, bytes + size)
    };
    let (ones, bytes) = fills.fold((0.0, 0.0), add);
    ones / bytes
}

/// Writes for every hash whether any of the engines has it. The first engine should have most.
pub(crate) fn contains_any<'a>(mut engines: impl Iterator<Item = &'a Bloom>, hashes: &[u64], found: &mut [u64]) {
    match engines.next() {
        Some(first) => first.contains_bitmap(hashes, found),
        None => found.fill(0),
    }
    for one in engines {
        if found.iter().all(|&word| word == u64::MAX) {
            return;
        }
        each_found(one, hashes, found, |all, found| *all |= found);
    }
}

/// Looks hashes up in one engine; combines the words of its answers with those of `answers`.
pub(crate) fn each_found(one: &Bloom, hashes: &[u64], answers: &mut [u64], combine: impl Fn(&mut u64, &u64)) {
    let mut space = Scratch::<{ CHUNK / 64 }>::default();
    for (hashes, answers) in hashes.chunks(CHUNK).zip(answers.chunks_mut(CHUNK / 64)) {
        let found = space.first(answers.len());
        one.contains_bitmap(hashes, found);
        let pairs = answers.iter_mut().zip(&*found);
        pairs.for_each(|(answer, found)| combine(answer, found));
    }
}
