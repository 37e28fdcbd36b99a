//! Flat arrays of bits, for filters that put a key's bits anywhere. Looks up and inserts one key at
//! a time, or many keys whose lines are all prefetched. Takes the indexes of a key's bits, one
//! after another, from a [`NextIndex`], and knows no hashes. `guava.rs`, `spark.rs` and
//! `redisbloom.rs` call it.
//!
//! The bits that are set here are a `Release`. If an answer rests on bits seen, the caller calls
//! [`acquire_if`]. Batches call it here, once per tile. (lanebloom's `bits.rs` gives the reasons
//! for the orderings.)

use lanebloom::BuildError;
use lanebloom::internal::{Bits, Hint, Isa, Plan, Prefetching, Vectorized, acquire_if};

/// Bytes of a cache line.
pub(crate) const LINE_BYTES: usize = 64;
/// Words of a cache line.
pub(crate) const LINE_WORDS: usize = LINE_BYTES / 8;

/// The indexes of one key's bits, one after another.
#[allow(unreachable_pub, reason = "its bounds are public; Rust 1.85 does not see it")]
pub trait NextIndex: Copy + Default {
    /// The next bit's index in the whole array; `modulo` has the array's size.
    fn next_index(&mut self, modulo: &Modulo) -> u64;

    /// Writes the first indexes of all keys of a tile: `columns[j][i]` for bit `j` of key `i`.
    /// Returns false if it cannot; then [`next_index`](Self::next_index) does.
    ///
    /// There are fewer than 2^31 bits. Made for vectors, so it must be `#[inline(always)]`.
    #[inline(always)]
    fn columns(_tile: &[Self; Prefetching::TILE], _modulo: &Modulo, _columns: &mut [Column]) -> bool {
        false
    }
}

/// The indexes of one bit of each key of a tile.
pub(crate) type Column = [u32; Prefetching::TILE];

/// [`NextIndex::columns`], for vectors.
struct Columns<'a, P> {
    tile: &'a [P; Prefetching::TILE],
    modulo: &'a Modulo,
    columns: &'a mut [Column],
}

impl<P: NextIndex> Vectorized for Columns<'_, P> {
    type Output = bool;

    #[inline(always)]
    fn run(self) -> bool {
        P::columns(self.tile, self.modulo, self.columns)
    }
}

/// A flat array of bits, in whole lines. Every key has the same number of bits.
pub(crate) struct Flat {
    pub(crate) bits: Bits,
    modulo: Modulo,
    /// Bits of a key, at least 1.
    functions: u32,
}

/// The same words. Beside inserts, reads each word at some moment.
impl PartialEq for Flat {
    fn eq(&self, other: &Self) -> bool {
        let same = self.words().eq(other.words());
        acquire_if(true);
        same
    }
}

/// The bits of a key that a lookup tests before it prefetches the lines of the others.
const FIRST: usize = 2;

/// Indexes that are tested without a branch between them, which would be mispredicted as often
/// as the answer varies. (A rate of 1e-5 has 16.)
const GROUP: usize = 16;

impl Flat {
    /// `64 * words` bits, none of them set. A key has `functions` bits.
    pub(crate) fn new(words: usize, functions: u32) -> Result<Self, BuildError> {
        // Whole lines; the words after the last one stay 0.
        Ok(Self::of(Bits::new(words.div_ceil(LINE_WORDS))?, words, functions))
    }

    /// The first `words` words of `bits`.
    pub(crate) fn of(bits: Bits, words: usize, functions: u32) -> Self {
        debug_assert_eq!(bits.blocks(), words.div_ceil(LINE_WORDS));
        Self {
            bits,
            modulo: Modulo::new(words),
            functions,
        }
    }

    /// The words, those that only fill the last line left out. Call [`acquire_if`] after the last.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let count = (self.modulo.bits / 64) as usize;
        self.bits.words().flatten().take(count)
    }

    /// The number of bits that are set.
    pub(crate) fn ones(&self) -> u64 {
        let ones = |line: [u64; LINE_WORDS]| line.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        let ones = self.bits.words().map(ones).sum();
        acquire_if(true);
        ones
    }

    pub(crate) fn try_clone(&self) -> Result<Self, BuildError> {
        Ok(Self {
            bits: self.bits.try_clone()?,
            ..*self
        })
    }

    /// Whether all bits of a key are set.
    #[inline(always)]
    pub(crate) fn holds(&self, mut indexes: impl NextIndex) -> bool {
        let mut left = self.functions;
        loop {
            let group = left.min(GROUP as u32);
            let mut all = 1;
            for _ in 0..group {
                all &= self.bits.bit(indexes.next_index(&self.modulo));
            }
            left -= group;
            // In this order, so that there is no branch on the answer where there is one group.
            if left == 0 {
                return all & 1 == 1;
            }
            if all & 1 == 0 {
                return false;
            }
        }
    }

    /// Sets the bits of a key; returns whether this call set any of them.
    #[inline(always)]
    pub(crate) fn set(&self, mut next: impl NextIndex) -> bool {
        let mut indexes = [0; GROUP];
        let mut left = self.functions as usize;
        let mut changed = false;
        while left > 0 {
            let group = left.min(GROUP);
            self.index(&mut next, &mut indexes[..group], None);
            changed |= self.set_all(&indexes[..group]);
            left -= group;
        }
        changed
    }

    /// Sets the bits of a key by plain stores, while no other thread has the filter.
    #[inline(always)]
    pub(crate) fn set_mut(&mut self, mut indexes: impl NextIndex) {
        for _ in 0..self.functions {
            self.bits.set_bit(indexes.next_index(&self.modulo));
        }
    }

    /// Prefetches all lines of a key.
    #[inline(always)]
    pub(crate) fn prefetch(&self, mut indexes: impl NextIndex, hint: Hint) {
        for _ in 0..self.functions {
            self.bits.prefetch_bit(indexes.next_index(&self.modulo), hint);
        }
    }

    /// The bits of a key.
    pub(crate) fn functions(&self) -> usize {
        self.functions as usize
    }

    /// How batches of lookups read.
    fn lookups(&self) -> Prefetching {
        Prefetching::lookups(self.bytes_to_prefetch(), self.functions())
    }

    /// How batches of inserts read and write.
    pub(crate) fn changes(&self) -> Prefetching {
        Prefetching::changes(self.bytes_to_prefetch(), self.functions())
    }

    /// The bytes, but 0 if a key has too many bits to prefetch them.
    fn bytes_to_prefetch(&self) -> usize {
        if self.functions() > Prefetching::LINES {
            return 0;
        }
        // The model checker's filters are too small to be prefetched.
        match self.modulo.bits {
            65.. if cfg!(lanebloom_loom) => usize::MAX,
            _ => self.bits.bytes(),
        }
    }

    /// Looks keys up. `key` gives the indexes of each key. Calls `each(start, len, bitmap)`
    /// for every tile.
    #[inline(always)]
    pub(crate) fn contains_each<K, P: NextIndex>(
        &self,
        keys: &[K],
        mut key: impl FnMut(&K) -> P,
        each: impl FnMut(usize, usize, u64),
    ) {
        if Plan::of_keys(keys.len()).is_single() {
            one_by_one(keys, |from| self.holds(key(from)), each);
        } else {
            let prefetching = self.lookups();
            match prefetching.hint() {
                None => self.contains_cached(prefetching, keys, key, each),
                Some(_) => self.contains_ahead(prefetching, keys, key, each),
            }
        }
    }

    /// The indexes of a whole tile, if its keys have few bits and vectors can find them.
    #[inline(always)]
    fn columns<'a, P: NextIndex>(&self, tile: &[P], columns: &'a mut [Column; GROUP]) -> Option<&'a [Column]> {
        let tile = tile.try_into().ok()?;
        let columns = columns.get_mut(..self.functions())?;
        let modulo = &self.modulo;
        let work = Columns { tile, modulo, columns };
        (modulo.bits < 1 << 31 && Isa::best().vectorized(work)).then_some(&*columns)
    }

    // A call, as `contains_ahead`, whose stack frame is large.
    #[inline(never)]
    fn contains_cached<K, P: NextIndex>(
        &self,
        prefetching: Prefetching,
        keys: &[K],
        mut key: impl FnMut(&K) -> P,
        mut each: impl FnMut(usize, usize, u64),
    ) {
        let index = |_: &mut _, _, from: &K| key(from);
        prefetching.tiles(
            &mut [[0; Prefetching::TILE]; GROUP],
            keys,
            index,
            |_, _, _, _, _| (),
            |columns, start, tile| {
                let found = match self.columns(tile, columns) {
                    Some(columns) => Prefetching::answers((0..Prefetching::TILE).map(|i| {
                        let bit = |column: &Column| self.bits.bit(column[i].into());
                        columns.iter().fold(1, |all, column| all & bit(column)) & 1
                    })),
                    None => Prefetching::answers(tile.iter().map(|indexes| self.holds(*indexes))),
                };
                acquire_if(true);
                each(start, tile.len(), found);
                true
            },
        );
    }

    /// Three tiles are under way at once. The last one hashes its keys and prefetches the lines of
    /// their [`FIRST`] bits. The one before it tests these bits, and prefetches the other lines of
    /// the keys that have them. The one before that tests the other bits. Half of the bits are set,
    /// so an absent key needs only a quarter of its lines.
    #[inline(never)]
    fn contains_ahead<K, P: NextIndex>(
        &self,
        prefetching: Prefetching,
        keys: &[K],
        mut key: impl FnMut(&K) -> P,
        mut each: impl FnMut(usize, usize, u64),
    ) {
        let functions = self.functions();
        let first = FIRST.min(functions);
        let size = prefetching.tile();
        // A key that has only one bit has it twice.
        let index = |_: &mut _, _, from: &K| {
            let mut next = key(from);
            let index = next.next_index(&self.modulo);
            let second = if first < FIRST {
                index
            } else {
                next.next_index(&self.modulo)
            };
            (next, [index, second])
        };
        let prefetch = |_: &mut _, _, _: &K, (_, indexes): &(P, [u64; FIRST]), hint| {
            indexes.iter().for_each(|index| self.bits.prefetch_bit(*index, hint));
        };
        let mut rings = [const {
            Tile {
                indexes: [0; Prefetching::LINES],
                candidates: 0,
            }
        }; 2];
        prefetching.tiles(&mut rings, keys, index, prefetch, |rings, start, tile| {
            let number = start / size;
            let Tile { indexes, candidates } = &mut rings[number % 2];
            let both = |(_, [first, second]): &(P, [u64; FIRST])| self.bits.bit(*first) & self.bits.bit(*second) & 1;
            *candidates = Prefetching::answers(tile.iter().map(both));
            Prefetching::each_one(*candidates, |i| {
                let others = &mut indexes[functions * i + first..functions * (i + 1)];
                // The prefetches of `Prefetching::lookups` for several lines.
                self.index(&mut tile[i].0, others, Some(Hint::L2));
            });
            if number > 0 {
                self.finish(&rings[(number - 1) % 2], start - size, size, first, &mut each);
            }
            true
        });
        let last = (keys.len() - 1) / size;
        let left = keys.len() - size * last;
        self.finish(&rings[last % 2], size * last, left, first, &mut each);
    }

    /// Tests the bits but the `first` ones, of the keys that have these. There are `len` keys.
    #[inline(always)]
    fn finish(&self, tile: &Tile, start: usize, len: usize, first: usize, each: &mut impl FnMut(usize, usize, u64)) {
        let (functions, mut found) = (self.functions(), tile.candidates);
        Prefetching::each_one(tile.candidates, |i| {
            let set = self.all_set(&tile.indexes[functions * i + first..functions * (i + 1)]);
            found ^= u64::from(!set) << i;
        });
        acquire_if(true);
        each(start, len, found);
    }

    /// Inserts keys. Calls `each(start, len, bitmap)` for every tile, with the bitmap of the
    /// keys that changed the filter.
    pub(crate) fn insert_each<K, P: NextIndex>(
        &self,
        keys: &[K],
        mut key: impl FnMut(&K) -> P,
        mut each: impl FnMut(usize, usize, u64),
    ) {
        let functions = self.functions();
        if Plan::of_keys(keys.len()).is_single() || functions > Prefetching::LINES {
            for (start, keys) in (0..).step_by(Prefetching::TILE).zip(keys.chunks(Prefetching::TILE)) {
                let each = |at, len, changed| each(start + at, len, changed);
                one_by_one(keys, |from| self.set(key(from)), each);
            }
            return;
        }
        let prefetching = self.changes().next_tile(functions);
        let of_key = |i| {
            let (ring, i) = prefetching.in_rings(i);
            (ring, i * functions..(i + 1) * functions)
        };
        let index = |rings: &mut [[u64; Prefetching::LINES]; 2], i, from: &K| {
            let (ring, range) = of_key(i);
            self.index(&mut key(from), &mut rings[ring][range], None);
        };
        let prefetch = |rings: &mut [[u64; Prefetching::LINES]; 2], i, _: &K, (): &(), hint| {
            let (ring, range) = of_key(i);
            rings[ring][range]
                .iter()
                .for_each(|index| self.bits.prefetch_bit(*index, hint));
        };
        prefetching.tiles(
            &mut [[0; Prefetching::LINES]; 2],
            keys,
            index,
            prefetch,
            |rings, start, tile| {
                let (ring, _) = prefetching.in_rings(start);
                let indexes = rings[ring].chunks_exact(functions).take(tile.len());
                let changed = Prefetching::answers(indexes.map(|indexes| self.set_all(indexes)));
                acquire_if(true);
                each(start, tile.len(), changed);
                true
            },
        );
    }

    /// [`insert_each`](Self::insert_each) by plain stores, while no other thread has the filter.
    pub(crate) fn insert_each_mut<K, P: NextIndex>(
        &mut self,
        keys: &[K],
        mut key: impl FnMut(&K) -> P,
        mut each: impl FnMut(usize, usize, u64),
    ) {
        let functions = self.functions;
        let (mut tile, mut columns) = ([P::default(); Prefetching::TILE], [[0; Prefetching::TILE]; GROUP]);
        for (start, keys) in (0..).step_by(Prefetching::TILE).zip(keys.chunks(Prefetching::TILE)) {
            let tile = &mut tile[..keys.len()];
            tile.iter_mut().zip(keys).for_each(|(place, from)| *place = key(from));
            let columns = self.columns(tile, &mut columns);
            let Self { bits, modulo, .. } = self;
            // The bit before, and others.
            let mut add = |index| {
                let before = bits.bit(index);
                bits.set_bit(index);
                before
            };
            let changed = match columns {
                Some(columns) => Prefetching::answers((0..Prefetching::TILE).map(|i| {
                    let bits = columns.iter().map(|column| add(column[i].into()));
                    bits.fold(1, |all, bit| all & bit) & 1 ^ 1
                })),
                None => Prefetching::answers(tile.iter_mut().map(|indexes| {
                    let bits = (0..functions).map(|_| add(indexes.next_index(modulo)));
                    bits.fold(1, |all, bit| all & bit) & 1 ^ 1
                })),
            };
            each(start, keys.len(), changed);
        }
    }

    /// Takes the next indexes of a key, and prefetches their lines.
    #[inline(always)]
    fn index(&self, next: &mut impl NextIndex, indexes: &mut [u64], hint: Option<Hint>) {
        for index in indexes {
            *index = next.next_index(&self.modulo);
            if let Some(hint) = hint {
                self.bits.prefetch_bit(*index, hint);
            }
        }
    }

    /// Whether the bits at these indexes are set.
    #[inline(always)]
    fn all_set(&self, indexes: &[u64]) -> bool {
        let all = |indexes: &[u64]| indexes.iter().fold(1, |all, index| all & self.bits.bit(*index)) & 1 == 1;
        // Without a branch on the answer of the last group, as in `holds`.
        let (groups, last) = indexes.split_at(indexes.len().saturating_sub(1) / GROUP * GROUP);
        groups.chunks(GROUP).all(all) && all(last)
    }

    /// Sets the bits at these indexes; returns whether this call set any of them.
    ///
    /// Looks first and writes only the bits that lack: a load costs next to nothing, a locked
    /// operation some nanoseconds.
    #[inline(always)]
    fn set_all(&self, indexes: &[u64]) -> bool {
        let mut changed = false;
        for indexes in indexes.chunks(GROUP) {
            let mut missing = 0;
            for index in indexes {
                missing = missing >> 1 | !self.bits.bit(*index) << 63;
            }
            Prefetching::each_one(missing >> (64 - indexes.len()), |i| {
                changed |= self.bits.add_bit(indexes[i])
            });
        }
        changed
    }
}

/// A tile after the test of each key's first bits.
struct Tile {
    /// The indexes of all bits of each key; of the candidates those after the first.
    indexes: [u64; Prefetching::LINES],
    /// The keys whose first bits are set.
    candidates: u64,
}

/// A tile of keys by single calls, if there are any.
#[inline(always)]
fn one_by_one<K>(keys: &[K], mut work: impl FnMut(&K) -> bool, mut each: impl FnMut(usize, usize, u64)) {
    if !keys.is_empty() {
        let bits = keys.iter().enumerate().map(|(i, key)| u64::from(work(key)) << i);
        let answers = bits.fold(0, |answers, bit| answers | bit);
        acquire_if(true);
        each(0, keys.len(), answers);
    }
}

/// Computes remainders by the number of bits without a division: two multiplications and a shift
/// take 8 cycles from end to end, where `div` takes 10 to 40.
///
/// For numbers `n` below 2^63 and `64 * d` bits, `d` words in 1..=2^57: let `s` be the least with
/// `d <= 2^s`, and `m = ceil(2^(63 + s) / d)`, which is in 2^63..2^64. Then `m * d = 2^(63 + s) +
/// e` with `e < d <= 2^s`, hence
///
/// ```text
/// n * m / 2^(69 + s) = n / (64 * d) + n * e / (64 * d * 2^(63 + s)),
/// ```
///
/// and the last term is below `1 / (64 * d)`, since `n * e < 2^63 * 2^s`. The fraction of
/// `n / (64 * d)` is at most `1 - 1 / (64 * d)`, so that the floor of both sides is the quotient.
/// That floor is `n * m >> 64 >> (5 + s)`.
///
/// For any 64-bit `n`, divide `n >> 1`, which is below 2^63, by `32 * d` instead: the quotient is
/// the same. The sums above with 32 for 64 give `(n >> 1) * m >> 64 >> (4 + s)`, with one more
/// shift.
///
/// Source: Granlund and Montgomery, "Division by invariant integers using multiplication" (1994).
#[derive(Clone, Copy, Debug)]
#[allow(unreachable_pub, reason = "its bounds are public; Rust 1.85 does not see it")]
pub struct Modulo {
    bits: u64,
    multiplier: u64,
    /// The multiplier for numbers of 31 bits.
    int_multiplier: u64,
    shift: u32,
}

impl Modulo {
    /// The most words: 2^63 bits.
    const MAX_WORDS: u64 = 1 << 57;

    /// `words` must be in 1..=2^57, more than any memory has.
    pub(crate) fn new(words: usize) -> Self {
        let words = words as u64;
        debug_assert!((1..=Self::MAX_WORDS).contains(&words));
        let log = words.next_power_of_two().trailing_zeros();
        Self {
            bits: 64 * words,
            multiplier: (1u128 << (63 + log)).div_ceil(words.into()) as u64,
            int_multiplier: (1u128 << (31 + log)).div_ceil(words.into()) as u64,
            shift: 5 + log,
        }
    }

    /// The divisor.
    #[inline(always)]
    pub(crate) fn bits(&self) -> u64 {
        self.bits
    }

    /// `number % bits`, for numbers below 2^63.
    #[inline(always)]
    pub(crate) fn remainder(&self, number: u64) -> u64 {
        debug_assert!(number < 1 << 63);
        number - (self.high(number) >> self.shift) * self.bits
    }

    /// `number % bits`, for any number.
    #[inline(always)]
    pub(crate) fn remainder_of_any(&self, number: u64) -> u64 {
        number - (self.high(number >> 1) >> (self.shift - 1)) * self.bits
    }

    /// `number % bits`, for numbers below 2^31 and fewer bits than that, by a product of 64 bits;
    /// vectors make several at a time. (With 31 for 63 and 37 for 69 in the sums above.)
    #[inline(always)]
    pub(crate) fn remainder_of_int(&self, number: u32) -> u32 {
        debug_assert!(number < 1 << 31 && self.bits < 1 << 31);
        let quotient = (u64::from(number) * self.int_multiplier) >> (self.shift + 32);
        number - (quotient * self.bits) as u32
    }

    #[inline(always)]
    fn high(&self, number: u64) -> u64 {
        ((u128::from(number) * u128::from(self.multiplier)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of arrays that fit `usize`: a 32-bit machine has fewer.
    const MAX_WORDS: u64 = if usize::BITS == 64 {
        Modulo::MAX_WORDS
    } else {
        u32::MAX as u64
    };

    fn assert_remainders(words: u64, numbers: impl IntoIterator<Item = u64>) {
        let modulo = Modulo::new(words as usize);
        for n in numbers {
            let (bits, right) = (64 * words, n % (64 * words));
            assert_eq!(modulo.remainder_of_any(n), right, "{n} % {bits}");
            if n < 1 << 31 && words < 1 << 25 {
                assert_eq!(u64::from(modulo.remainder_of_int(n as u32)), right, "{n} % {bits}");
            }
            if n < 1 << 63 {
                assert_eq!(modulo.remainder(n), right, "{n} % {bits}");
            }
        }
    }

    /// The numbers of words around every power of two, and the least and the greatest. For each,
    /// the numbers around multiples of it, where a quotient that is off by one shows.
    #[test]
    fn remainders_at_the_extremes() {
        let near = |x: u64| x.saturating_sub(2)..=x.saturating_add(2);
        let all_words = (0..=57)
            .flat_map(|i| near(1 << i))
            .chain(1..200)
            .chain(near(MAX_WORDS))
            .filter(|words| (1..=MAX_WORDS).contains(words));
        for words in all_words {
            let bits = 64 * words;
            let multiple = |q: u64| q.checked_mul(bits);
            let quotients = (0..58).flat_map(|i| near(1 << i));
            let ends = [1 << 63, u64::MAX].map(|end| end / bits * bits);
            let numbers = quotients.filter_map(multiple).chain(ends).flat_map(near);
            let at_the_ends = near((1 << 63) - 1).chain(near(u64::MAX));
            assert_remainders(words, numbers.chain(at_the_ends));
        }
    }
}
