//! The layouts of other programs' Redis bitmaps: pure functions from a key to the offsets of its
//! bits. `bitmap/calls.rs` sends the offsets to a server. `local_bitmap.rs` tests them in a copy.

use highway::{HighwayHash, HighwayHasher, Key};
use lanebloom::{BuildError, Funnel, Murmur3, Sink, Statistics};
use lanebloom_formats::internal::{guava_functions, guava_size};
use std::fmt::Display;

/// The most bits of a Redis bitmap: a string has at most 512 MiB, and `SETBIT` takes offsets below
/// 2^32. Source: the documentation of `SETBIT`; a server's `proto-max-bulk-len` can make it less.
pub(crate) const MAX_BITS: u64 = 1 << 32;
/// go-zero's `maps`: bits of a key.
const GO_ZERO_FUNCTIONS: u8 = 14;
/// Redisson's key of HighwayHash. Source: `org.redisson.misc.Hash`.
const REDISSON_KEY: [u64; 4] = [
    0x9e37_79b9_7f4a_7c15,
    0xf39c_c060_5ced_c834,
    0x1082_276b_f3a2_7251,
    0xf86c_6a11_d0c1_8e95,
];
/// The most bits that Redisson's `tryInit` takes: `Integer.MAX_VALUE * 2L`.
const REDISSON_MAX_BITS: u64 = i32::MAX as u64 * 2;

/// The parameters that determine a key's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitmapLayout {
    scheme: Scheme,
    /// In 1..=[`MAX_BITS`].
    pub(crate) bits: u64,
    /// Bits of a key, at least 1. Two may be the same.
    pub(crate) functions: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    /// Guava's `MURMUR128_MITZ_64`.
    Mitz64,
    /// The i-th offset is the hash of the key followed by the byte i.
    GoZero,
    /// Sums of the characters, each weighed by a power of the function's number.
    Scrapy,
    /// Sums of the two halves of HighwayHash-128, added in turns.
    Redisson,
}

impl BitmapLayout {
    /// Guava's bits, rounded up to whole longs as in its own filter. The number of hash functions
    /// comes from Guava's formula up to 2024, which the copies of the class have.
    pub(crate) fn guava(keys: u64, rate: f64) -> Result<Self, BuildError> {
        let (bits, functions) = guava_size(keys, rate)?;
        Self::new(Scheme::Mitz64, bits.next_multiple_of(64), functions)
    }

    /// Guava's bits, not rounded, as an `int` of Java: at most its greatest value.
    pub(crate) fn jedis(keys: u64, rate: f64) -> Result<Self, BuildError> {
        const MAX: u64 = i32::MAX as u64;
        let (bits, functions) = guava_size(keys, rate)?;
        if bits <= MAX {
            return Self::new(Scheme::Mitz64, bits, functions);
        }
        // Fewer bits than the formula gave. Their number decides the number of functions.
        let functions = guava_functions(MAX, keys);
        Self::new(Scheme::Mitz64, MAX, functions.min(u8::MAX.into()) as u8)
    }

    pub(crate) fn go_zero(bits: u64) -> Result<Self, BuildError> {
        Self::new(Scheme::GoZero, bits, GO_ZERO_FUNCTIONS)
    }

    /// The fewest bits for which the formula of a Bloom filter gives the rate, with go-zero's
    /// number of hash functions.
    pub(crate) fn go_zero_sized(keys: u64, rate: f64) -> Result<Self, BuildError> {
        BuildError::check_rate(rate)?;
        let functions = f64::from(GO_ZERO_FUNCTIONS);
        let fill = rate.powf(1.0 / functions);
        Self::go_zero((functions * keys.max(1) as f64 / -(-fill).ln_1p()).ceil() as u64)
    }

    /// Redisson's `optimalNumOfBits` and `optimalNumOfHashFunctions`, by the formulas of older
    /// Guavas, and its limits.
    pub(crate) fn redisson(keys: u64, rate: f64) -> Result<Self, BuildError> {
        if keys == 0 {
            return Err(BuildError::new(
                "Redisson has no filter for 0 keys: at least 1 is needed",
            ));
        }
        let (bits, functions) = guava_size(keys, rate)?;
        if bits > REDISSON_MAX_BITS {
            return Err(BuildError::new(format!(
                "a filter of {bits} bits is beyond Redisson's limit of {REDISSON_MAX_BITS} bits"
            )));
        }
        Self::redisson_of(bits, functions)
    }

    /// The layout that a configuration of Redisson's gives.
    pub(crate) fn redisson_of(bits: u64, functions: u8) -> Result<Self, BuildError> {
        Self::new(Scheme::Redisson, bits, functions)
    }

    /// `2^bit` bits.
    pub(crate) fn scrapy(bit: u32, functions: u8) -> Result<Self, BuildError> {
        match 1u64.checked_shl(bit) {
            Some(bits) => Self::new(Scheme::Scrapy, bits, functions),
            None => Err(too_large(format_args!("2^{bit}"))),
        }
    }

    fn new(scheme: Scheme, bits: u64, functions: u8) -> Result<Self, BuildError> {
        if bits == 0 || functions == 0 {
            return Err(BuildError::new(format!(
                "a bitmap of {bits} bits, {functions} of each key, is none: both must be at least 1"
            )));
        }
        if bits > MAX_BITS {
            return Err(too_large(bits));
        }
        Ok(Self {
            scheme,
            bits,
            functions,
        })
    }

    /// Bytes of a bitmap whose last bit is set.
    pub(crate) fn bytes(&self) -> u64 {
        self.bits.div_ceil(8)
    }

    /// Calls `each` with the offsets of the key's bits, one after another, until it returns false.
    /// Returns whether it returned true for all.
    ///
    /// Also returns false if the layout has no place for the key: a key that is not text, in a
    /// layout that sums characters.
    #[inline]
    pub(crate) fn all<K: Funnel + ?Sized>(&self, key: &K, mut each: impl FnMut(u64) -> bool) -> bool {
        match self.scheme {
            Scheme::Mitz64 => {
                let (mut sum, step) = Murmur3::with_seed(0).hash128(key);
                (0..self.functions).all(|_| {
                    let offset = (sum & i64::MAX as u64) % self.bits;
                    sum = sum.wrapping_add(step);
                    each(offset)
                })
            }
            Scheme::GoZero => {
                let mut sink = Murmur3::with_seed(0).sink();
                key.funnel(&mut sink);
                (0..self.functions).all(|i| {
                    let mut sink = sink.clone();
                    sink.put(&[i]);
                    each(sink.finish128().0 % self.bits)
                })
            }
            Scheme::Redisson => {
                let (even, odd) = highway_hash(key);
                let mut sum = even;
                (0..self.functions).all(|i| {
                    let offset = (sum & i64::MAX as u64) % self.bits;
                    sum = sum.wrapping_add(if i % 2 == 0 { odd } else { even });
                    each(offset)
                })
            }
            Scheme::Scrapy => with_text(key, |text| {
                (0..self.functions).all(|seed| each(weighed_sum(text, seed) & (self.bits - 1)))
            }),
        }
    }

    /// The number of keys that set `ones` bits in the mean: Redisson's `count`, in the order of
    /// its operations.
    fn keys_for(&self, ones: u64) -> u64 {
        let bits = self.bits as f64;
        let keys = -bits / f64::from(self.functions) * (1.0 - ones as f64 / bits).ln();
        // Java's `Math.round`: halves up. (An infinite number becomes the greatest.)
        (keys + 0.5).floor() as u64
    }

    /// The statistics of a filter, from the number of bits that are set in each of its bitmaps.
    pub(crate) fn statistics(&self, of_each: impl IntoIterator<Item = u64>) -> Statistics {
        let (mut fill, mut bitmaps, mut len, mut absent) = (0.0, 0.0, 0_u64, 1.0);
        for ones in of_each {
            let its_fill = ones as f64 / self.bits as f64;
            (fill, bitmaps) = (fill + its_fill, bitmaps + 1.0);
            len = len.saturating_add(self.keys_for(ones));
            absent *= 1.0 - its_fill.powi(self.functions.into());
        }
        Statistics::new(
            fill / f64::max(bitmaps, 1.0),
            usize::try_from(len).unwrap_or(usize::MAX),
            1.0 - absent,
        )
    }

    /// Appends the offsets of the key's bits; returns whether the layout has a place for the key.
    pub(crate) fn offsets<K: Funnel + ?Sized>(&self, key: &K, into: &mut Vec<u64>) -> bool {
        self.all(key, |offset| {
            into.push(offset);
            true
        })
    }
}

/// The key of the configuration of a filter of Redisson's: its `suffixName`.
pub(crate) fn config_of(name: &[u8]) -> Vec<u8> {
    if name.contains(&b'{') {
        [name, b":config"].concat()
    } else {
        [b"{", name, b"}:config"].concat()
    }
}

/// The two halves of a key's HighwayHash-128 under Redisson's key.
fn highway_hash<K: Funnel + ?Sized>(key: &K) -> (u64, u64) {
    struct Highway(HighwayHasher);

    impl Sink for Highway {
        fn put(&mut self, bytes: &[u8]) {
            self.0.append(bytes);
        }
    }

    let mut sink = Highway(HighwayHasher::new(Key(REDISSON_KEY)));
    key.funnel(&mut sink);
    let [first, second] = sink.0.finalize128();
    (first, second)
}

/// Calls `then` with the key as a text. Returns false if its bytes are not UTF-8.
fn with_text<K: Funnel + ?Sized>(key: &K, then: impl FnOnce(&str) -> bool) -> bool {
    let then = |bytes: &[u8]| std::str::from_utf8(bytes).is_ok_and(then);
    match key.bytes() {
        Some(bytes) => then(bytes),
        None => {
            let mut bytes = Vec::new();
            key.funnel(&mut bytes);
            then(&bytes)
        }
    }
}

/// `ret += seed * ret + ord(character)` for each character, from 0. Python's integers grow without
/// end. The package uses only their lowest bits, which wrapping arithmetic gives too.
fn weighed_sum(text: &str, seed: u8) -> u64 {
    let weight = u64::from(seed) + 1;
    text.chars().fold(0u64, |sum, character| {
        sum.wrapping_mul(weight).wrapping_add(u64::from(u32::from(character)))
    })
}

fn too_large(bits: impl Display) -> BuildError {
    BuildError::new(format!(
        "a bitmap of {bits} bits is beyond Redis's limit of {MAX_BITS} bits (512 MiB)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanebloom_formats::guava::UnencodedChars;

    /// For every funnel, the words that Guava wrote on a JVM: `formats/tests/data/guava.json`.
    #[test]
    fn bits_are_those_of_guavas_streams() {
        fn words<K: Funnel>(keys: &[K]) -> [u64; 2] {
            let layout = BitmapLayout::guava(10, 0.01).unwrap();
            let (mut words, mut offsets) = ([0; 2], Vec::new());
            assert!(keys.iter().all(|key| layout.offsets(key, &mut offsets)));
            for offset in offsets {
                words[offset as usize / 64] |= 1 << (offset % 64);
            }
            words
        }
        let texts = ["hello", "world"];
        assert_eq!(words(&[1i32, 2, 3]), [0x4818_0800_8000_0c08, 0x4020_0009_4800_0200]);
        assert_eq!(words(&[-1i32]), [0x0000_2000_0200_0020, 0x0002_0000_2000_0202]);
        assert_eq!(words(&[1i64, 2, 3]), [0x5000_0104_0080_1040, 0x0005_4126_1041_2600]);
        assert_eq!(words(&texts), [0x0010_0010_0900_1004, 0x8000_0440_4004_2040]);
        assert_eq!(
            words(&texts.map(UnencodedChars)),
            [0x0000_0010_8080_8090, 0x0000_0010_0808_0810]
        );
        assert_eq!(
            words(&[&[][..], &[0u8, 1, 2, 3]]),
            [0x0040_0000_0101_0001, 0x0404_0000_1010_0000]
        );
    }
}
