//! Spark's hash of a key: `Murmur3_x86_32` under a seed. `layout.rs` calls it.
//!
//! Spark's differs from Austin Appleby's MurmurHash3 in the last bytes of a key whose length is no
//! multiple of 4: each is a block of its own, as a signed number.

use lanebloom::internal::as_chunks;

/// Both hashes of a key, as Java's `int`s, and a key itself: the first one under the seed of the
/// filter, the second one under the first. All indexes of the key's bits follow from them.
///
/// ```
/// use lanebloom_formats::spark::{Hash, SparkBloom, SparkKey};
///
/// let filter = SparkBloom::with_capacity(1000, 0.01)?;
/// let first = "a".murmur3(0);
/// let hash = Hash(first, "a".murmur3(first));
/// assert_eq!(filter.hash("a"), hash);
/// assert!(filter.insert(&hash) && filter.contains("a"));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub i32, pub i32);

/// A type of keys: what Spark puts into a filter.
///
/// | Spark | Rust's key |
/// |---|---|
/// | `putLong`, and `put` of a `Long`, `Integer`, `Short` or `Byte` | `i64`, `i32`, `i16`, `i8` |
/// | `putString` | `str`, `String` |
/// | `putBinary` | `[u8]`, `Vec<u8>`, `[u8; N]` |
///
/// Spark makes a `long` of every integer, so `7i32` and `7i64` are one key. Unsigned integers are
/// no keys: choose with `as` which `long` is meant. In place of half a surrogate pair, `putString`
/// writes a `?`.
///
/// For a type of your own, pass on what it holds:
///
/// ```
/// use lanebloom_formats::spark::{SparkBloom, SparkKey};
///
/// struct UserId(i64);
///
/// impl SparkKey for UserId {
///     fn murmur3(&self, seed: i32) -> i32 {
///         self.0.murmur3(seed)
///     }
/// }
///
/// let filter = SparkBloom::with_capacity(1000, 0.01)?;
/// filter.insert(&17i64);
/// assert!(filter.contains(&UserId(17)) && !filter.contains(&UserId(18)));
/// # Ok::<(), lanebloom_formats::BuildError>(())
/// ```
pub trait SparkKey {
    /// Spark's `Murmur3_x86_32` of the key: `hashLong` for integers, `hashUnsafeBytes` for the
    /// others.
    ///
    /// ```
    /// use lanebloom_formats::spark::SparkKey;
    ///
    /// assert_eq!([0i64.murmur3(42), 1.murmur3(42)], [-1_670_924_195, -1_712_319_331]);
    /// assert_eq!("Spark".murmur3(42), b"Spark"[..].murmur3(42));
    /// ```
    fn murmur3(&self, seed: i32) -> i32;
}

impl<K: SparkKey + ?Sized> SparkKey for &K {
    #[inline(always)]
    fn murmur3(&self, seed: i32) -> i32 {
        K::murmur3(self, seed)
    }
}

macro_rules! keys {
    ($($key:ty $(, $n:ident)?: |$this:ident, $seed:ident| $hash:expr;)*) => {$(
        impl$(<const $n: usize>)? SparkKey for $key {
            #[inline(always)]
            fn murmur3(&self, $seed: i32) -> i32 {
                let $this = self;
                $hash as i32
            }
        }
    )*};
}
keys! {
    i64: |key, seed| of_long(*key as u64, seed as u32);
    i32: |key, seed| i64::from(*key).murmur3(seed);
    i16: |key, seed| i64::from(*key).murmur3(seed);
    i8: |key, seed| i64::from(*key).murmur3(seed);
    [u8]: |key, seed| of_bytes(key, seed as u32);
    [u8; N], N: |key, seed| key[..].murmur3(seed);
    alloc::vec::Vec<u8>: |key, seed| key[..].murmur3(seed);
    str: |key, seed| key.as_bytes().murmur3(seed);
    alloc::string::String: |key, seed| key.as_bytes().murmur3(seed);
}

/// Spark's `hashLong`: the low half first.
#[inline(always)]
fn of_long(key: u64, seed: u32) -> u32 {
    finish(mix(mix(seed, key as u32), (key >> 32) as u32), 8)
}

/// Spark's `hashUnsafeBytes`.
#[inline]
fn of_bytes(key: &[u8], seed: u32) -> u32 {
    let (blocks, rest) = as_chunks(key);
    let hash = blocks
        .iter()
        .fold(seed, |hash, block| mix(hash, u32::from_le_bytes(*block)));
    let signed = |byte: &u8| *byte as i8 as u32;
    let hash = rest.iter().fold(hash, |hash, byte| mix(hash, signed(byte)));
    // Java's lengths are below 2^31; no array here is longer than memory.
    finish(hash, key.len() as u32)
}

#[inline(always)]
fn mix(hash: u32, block: u32) -> u32 {
    let block = block
        .wrapping_mul(0xcc9e_2d51)
        .rotate_left(15)
        .wrapping_mul(0x1b87_3593);
    (hash ^ block).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

#[inline(always)]
fn finish(hash: u32, len: u32) -> u32 {
    let hash = hash ^ len;
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    let hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}
