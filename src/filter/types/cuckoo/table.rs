//! The shared buckets: put a fingerprint in, find it, move it, take it out. Takes hashes from
//! `slots.rs`. This file argues about races.
//!
//! # Addresses
//!
//! A hash has a fingerprint and a bucket. The fingerprint and a bucket determine the other bucket:
//! `second = (step(fingerprint) - first) mod buckets`, and the same formula leads from `second`
//! back. (Other filters use an exclusive or, which needs a power of two of buckets: up to twice the
//! memory.) The number of buckets is even and every step is odd, so a key's two buckets differ.
//!
//! # Moves
//!
//! A move copies the fingerprint to its other bucket, counts the move in the fingerprint's
//! [stripe](super::super::stripes), and only then clears the original. A lookup that misses looks
//! again if the count has changed. A thread that moves a fingerprint or takes one out holds its
//! stripe; an insert into an empty slot waits for no thread. `docs/proofs/SLOTS.md` argues why no
//! lookup misses a key.
//!
//! | operation | ordering | partner, and why |
//! |---|---|---|
//! | `holds`: both buckets | load `Acquire` | the clearing of a move, as above; and the `put` of the fingerprint, whose thread's earlier work is then visible |
//! | `put` | compare-exchange `Release` | `holds` |
//! | `shift`: read the original | load `Acquire` | the `put` of the fingerprint; the copy's `Release` passes its publication on |
//! | `shift`: clear it | `fetch_and` `Release` | `holds`: the count comes before |
//! | `take`: find it | load `Relaxed` | guards no data; the stripe lock keeps the fingerprint in place |
//! | `take`: clear it | `fetch_and` `Release` | keeps the fingerprints in the other slots published, as any operation on the same word does; no thread relies on seeing a removal |
//! | `search`, `put`: look first | load `Relaxed` | a hint, checked by the compare-exchange or under the stripe |
//! | `words` | load `Relaxed`, then a fence | one barrier for the whole copy |
//! | `store` | store `Relaxed` | borrowed mutably: no other thread has the table, and what hands it on orders it |

use super::shape::BucketShape;
use crate::codec::Kind;
use crate::error::{InsertErrorKind, SnapshotErrorKind};
use crate::filter::parts::slots::{Refused, Slots};
use crate::filter::parts::stripes::Stripes;
use crate::geometry::pattern::{block, scale};
use crate::words::bits::Hint;
use crate::words::memory::Words;
use crate::words::sync::{AtomicU64, Ordering};

/// The most buckets of a search, before it reports that there is no room: 32 KiB of the stack. The
/// load at the first failure, in filters of 10 million buckets of 3, 4, 5 and 6 slots:
///
/// | 512 | 93.0% | 95.5% | 96.8% | 97.7% |
/// |---|---|---|---|---|
/// | 2048 | 94.7% | 96.9% | 98.2% | 98.7% |
/// | 4096 | 95.1% | 97.4% | 98.5% | 99.0% |
///
/// (By the theory of random graphs there is no path at all from 95.9%, 98.0%, 99.0% and 99.4% on.
/// The model checker's threads have smaller stacks, and its filters six buckets.)
const SEARCHED: usize = if cfg!(lanebloom_loom) { 64 } else { 4096 };
/// The most buckets of a first, short search. To clear the list of the long search takes longer
/// than most searches.
const SEARCHED_FIRST: usize = if cfg!(lanebloom_loom) { 8 } else { 256 };

/// The buckets of a cuckoo filter.
pub struct CuckooTable {
    words: Words<AtomicU64>,
    stripes: Stripes,
    shape: BucketShape,
}

/// A key's fingerprint and its two buckets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CuckooAddress {
    fingerprint: u64,
    first: usize,
    second: usize,
}

/// A bucket that a search has reached, the node that it came from, and the slot of that node's
/// bucket whose fingerprint would move here. All in one word, to keep the list short: 3 bits of the
/// slot, 12 of the node, and the bucket.
#[derive(Clone, Copy, Default)]
struct Node(u64);

impl Node {
    #[inline(always)]
    fn new(bucket: usize, from: usize, slot: usize) -> Self {
        const { assert!(SEARCHED <= 1 << 12) };
        Self((bucket as u64) << 15 | (from as u64) << 3 | slot as u64)
    }

    #[inline(always)]
    fn bucket(self) -> usize {
        (self.0 >> 15) as usize
    }

    fn from(self) -> usize {
        (self.0 >> 3 & 0xfff) as usize
    }

    fn slot(self) -> u32 {
        (self.0 & 7) as u32
    }
}

impl CuckooTable {
    /// The fingerprint's other bucket.
    #[inline(always)]
    fn other(&self, bucket: usize, fingerprint: u64) -> usize {
        let buckets = self.words.len();
        let step = 2 * scale(mix(fingerprint), buckets / 2) + 1;
        if step >= bucket {
            step - bucket
        } else {
            step + buckets - bucket
        }
    }

    /// Puts the fingerprint into an empty slot of one of its buckets, if there is one.
    #[inline]
    fn put_into_either(&self, address: &CuckooAddress) -> bool {
        self.put(address.first, address.fingerprint) || self.put(address.second, address.fingerprint)
    }

    /// Moves other fingerprints to make room for this one; returns whether there was any.
    #[cold]
    fn insert_moving(&self, address: &CuckooAddress) -> bool {
        while self.make_room::<SEARCHED_FIRST>(address) || self.make_room::<SEARCHED>(address) {
            if self.put_into_either(address) {
                return true;
            }
            // Another thread changed a bucket of the path, or has taken the new room. Each turn
            // means that some insert succeeded.
        }
        false
    }

    /// Takes the fingerprint out of one of its buckets; returns whether it was there.
    fn take(&self, address: &CuckooAddress) -> bool {
        let spread = self.shape.spread(address.fingerprint);
        let _held = self.stripes.hold(address.fingerprint);
        for bucket in address.buckets() {
            let matches = self.shape.matches(self.words[bucket].load(Ordering::Relaxed), spread);
            if matches != 0 {
                // Still there: a thread that takes a fingerprint away holds its stripe.
                self.empty(bucket, self.shape.shift(matches));
                return true;
            }
        }
        false
    }

    #[inline(always)]
    fn empty(&self, bucket: usize, shift: u32) {
        self.words[bucket].fetch_and(!(self.shape.fingerprints() << shift), Ordering::Release);
    }

    /// Puts the fingerprint into an empty slot of the bucket, if there is one.
    #[inline(always)]
    fn put(&self, bucket: usize, fingerprint: u64) -> bool {
        let word = &self.words[bucket];
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let empty = self.shape.matches(seen, 0);
            if empty == 0 {
                return false;
            }
            let with = seen | fingerprint << self.shape.shift(empty);
            match word.compare_exchange_weak(seen, with, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
    }

    /// Moves the fingerprint in a slot to another bucket, if that is still the fingerprint's bucket
    /// and has room.
    fn shift(&self, from: usize, shift: u32, to: usize) -> bool {
        // The fingerprint selects the stripe.
        let fingerprint = self
            .shape
            .fingerprint_at(self.words[from].load(Ordering::Relaxed), shift);
        if fingerprint == 0 || self.other(from, fingerprint) != to {
            return false;
        }
        let mut held = self.stripes.hold(fingerprint);
        if self
            .shape
            .fingerprint_at(self.words[from].load(Ordering::Acquire), shift)
            != fingerprint
            || !self.put(to, fingerprint)
        {
            return false;
        }
        held.count_move();
        self.empty(from, shift);
        true
    }

    /// Searches for the shortest path to an empty slot, breadth first, and moves every fingerprint
    /// on it one bucket on, unless another thread changes a bucket of the path. Returns whether
    /// there was one.
    ///
    /// No path leads through a bucket twice, since a shorter one would exist. (Other threads'
    /// changes can make it seem so; then a move does not happen.)
    fn make_room<const N: usize>(&self, address: &CuckooAddress) -> bool {
        let mut nodes = [Node::default(); N];
        nodes[0] = Node::new(address.first, 0, 0);
        nodes[1] = Node::new(address.second, 0, 0);
        let (mut next, mut len) = (0, 2);
        while next < len {
            let bucket = nodes[next].bucket();
            let word = self.words[bucket].load(Ordering::Relaxed);
            if self.shape.matches(word, 0) != 0 {
                self.move_along(&nodes, next);
                return true;
            }
            let slots = nodes[len..].iter_mut().zip(self.shape.shifts());
            for (slot, (node, shift)) in slots.enumerate() {
                let other = self.other(bucket, self.shape.fingerprint_at(word, shift));
                *node = Node::new(other, next, slot);
                self.prefetch_bucket(other, Hint::L1);
                len += 1;
            }
            next += 1;
        }
        false
    }

    fn move_along(&self, nodes: &[Node], mut at: usize) {
        // The first two are the key's own buckets.
        while at >= 2 {
            let node = nodes[at];
            at = node.from();
            let shift = node.slot() * self.shape.fingerprint_bits;
            if !self.shift(nodes[at].bucket(), shift, node.bucket()) {
                return;
            }
        }
    }

    #[inline(always)]
    fn prefetch_bucket(&self, bucket: usize, hint: Hint) {
        hint.prefetch(self.words.as_ptr().wrapping_add(bucket));
    }
}

impl Slots for CuckooTable {
    const TYPE: &'static str = "CuckooFilter";
    const KIND: Kind = Kind::Cuckoo;
    const FINGERPRINTS: &'static str = "fingerprints";
    const LINES: usize = 2;
    const WORDS: usize = 1;
    /// A key's two buckets differ.
    const MULTIPLE: usize = 2;
    type Address = CuckooAddress;
    type Shape = BucketShape;
    const SHAPES: &'static [BucketShape] = &BucketShape::ALL;

    fn fingerprint_bits(shape: BucketShape) -> u32 {
        shape.fingerprint_bits
    }

    fn slots_of(shape: BucketShape) -> usize {
        shape.slots as usize
    }

    /// The number of slots in two buckets.
    fn max_copies(shape: BucketShape) -> usize {
        2 * shape.slots as usize
    }

    /// Searches reach 0.2% to 2% more ([`SEARCHED`]).
    fn planned_load(shape: BucketShape) -> f64 {
        match shape.slots {
            3 => 0.93,
            4 => 0.95,
            5 => 0.97,
            _ => 0.988,
        }
    }

    /// In a small filter chance fills a few buckets long before the others. With these, one filter
    /// in 40,000 is full early at worst: for 38 keys with 4 slots, for 20 keys with 3. (4 buckets
    /// of 3 slots more fail for one in 3000, at 400 keys.)
    fn spare(shape: BucketShape) -> usize {
        match shape.slots {
            3 => 8,
            _ => 4,
        }
    }

    fn rate_at(shape: BucketShape, load: f64) -> f64 {
        shape.rate_at(load)
    }

    fn new(shape: BucketShape, words: Words<AtomicU64>, stripes: Stripes) -> Self {
        debug_assert!(words.len() >= 2 && words.len() % 2 == 0);
        Self { words, stripes, shape }
    }

    fn shape(&self) -> BucketShape {
        self.shape
    }

    /// Any fingerprint may be in any bucket. Only bits outside the slots would be misread.
    fn check(&self) -> Result<(), SnapshotErrorKind> {
        let slots = self.shape.spread(self.shape.fingerprints());
        match self.words().zip(0..).find(|(bucket, _)| bucket & !slots != 0) {
            None => Ok(()),
            Some((bucket, word)) => Err(SnapshotErrorKind::UnusedBits {
                word,
                bits: bucket & !slots,
            }),
        }
    }

    fn memory(&self) -> (&[AtomicU64], &Stripes) {
        (&self.words, &self.stripes)
    }

    fn occupied(&self) -> (usize, usize) {
        let occupied = self.words().map(|word| self.shape.occupied(word) as usize).sum();
        crate::words::bits::acquire();
        (occupied, occupied)
    }

    #[inline(always)]
    fn address(&self, hash: u64) -> CuckooAddress {
        let (fingerprint, first) = (self.shape.fingerprint(hash), block(hash, self.words.len()));
        CuckooAddress {
            fingerprint,
            first,
            second: self.other(first, fingerprint),
        }
    }

    #[inline(always)]
    fn prefetch(&self, address: &CuckooAddress, hint: Hint) {
        self.prefetch_bucket(address.first, hint);
        self.prefetch_bucket(address.second, hint);
    }

    #[inline(always)]
    fn holds(&self, address: &CuckooAddress) -> bool {
        loop {
            let moves = self.stripes.moves(address.fingerprint);
            let spread = self.shape.spread(address.fingerprint);
            // Reads both, whatever the first answers: a branch on it would be mispredicted as often
            // as the answer varies.
            let first = self.words[address.first].load(Ordering::Acquire);
            let second = self.words[address.second].load(Ordering::Acquire);
            let found = self.shape.matches(first, spread) | self.shape.matches(second, spread) != 0;
            // For the same reason it always checks for a move.
            let moved = self.stripes.moved_since(address.fingerprint, moves);
            if found | !moved {
                return found;
            }
        }
    }

    fn copies(&self, address: &CuckooAddress) -> usize {
        loop {
            let moves = self.stripes.moves(address.fingerprint);
            let spread = self.shape.spread(address.fingerprint);
            let copies = address
                .buckets()
                .map(|bucket| self.shape.count(self.words[bucket].load(Ordering::Acquire), spread));
            if !self.stripes.moved_since(address.fingerprint, moves) {
                return copies.iter().sum::<u32>() as usize;
            }
        }
    }

    #[inline]
    fn insert(&self, address: &CuckooAddress) -> Result<(), Refused> {
        if self.put_into_either(address) || self.insert_moving(address) {
            Ok(())
        } else if self.copies(address) >= Self::max_copies(self.shape) {
            Err(Refused::Copies)
        } else {
            Err(Refused::Full)
        }
    }

    #[inline]
    fn remove(&self, address: &CuckooAddress) -> bool {
        // An absent fingerprint needs no stripe.
        self.holds(address) && self.take(address)
    }

    fn full(expected_keys: usize) -> InsertErrorKind {
        InsertErrorKind::CuckooFull {
            searched: SEARCHED,
            expected_keys,
        }
    }
}

impl CuckooAddress {
    fn buckets(self) -> [usize; 2] {
        [self.first, self.second]
    }
}

/// Spreads fingerprints over all 64 bits. (One multiplication is not enough: the differences of its
/// products are products, so moves from a bucket would reach few buckets only.)
#[inline(always)]
const fn mix(fingerprint: u64) -> u64 {
    // The multipliers of SplitMix64.
    let z = fingerprint.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (z ^ z >> 32).wrapping_mul(0x94d0_49bb_1331_11eb)
}
