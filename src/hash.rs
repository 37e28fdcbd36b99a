//! Turns a key's bytes into one `u64`, one key or many at a time. The hasher ([`KeyHasher`]) is
//! Murmur3, `FastHash`, keyed SipHash-1-3, or any `BuildHasher`.
//!
//! # Choice of a hasher
//!
//! | yours | hasher | ns: `u64`, 24 bytes | stable across versions and languages | hostile keys |
//! |---|---|---|---|---|
//! | the default; other programs read the filter | [`Murmur3`] | 3.4, 6.6 | yes: [calls in other languages](crate::docs::languages); Guava and go-zero hash with it | **no** |
//! | only speed counts | [`FastHash`] | 1.8, 3.0 | yes: [a line](crate::docs::hashes#fasthash), and XXH3 | **no** |
//! | strangers choose the keys | [`SipHash13`] under a secret random key | 6.8, 10.2 | yes, with the key | yes |
//! | keys are hashed already, or by a function of your own | [`Prehashed`], or any `BuildHasher` | 1.2, and the hash | as your hash is | as your hash is |
//!
//! (ns of a lookup in a filter of 32 KiB, one key after another, on an Intel with AMX, by version 1
//! of the layout: [`docs::hashes`](crate::docs::hashes).)
//!
//! [`Murmur3`] and [`FastHash`] are **not** safe against keys that an enemy chooses, whatever the
//! seed. Under Murmur3 some pairs of keys collide under *every* seed, and an enemy can make any
//! number of such pairs. Once one key of a pair is in the filter, the other is a sure false
//! positive. Use [`SipHash13`] for filters that face the public, such as a guard before a database,
//! where strangers choose the ids (`CacheGuard::with_capacity` does). Its hashes have a meaning
//! only for this filter and its clones.
//!
//! In batches, Murmur3 and SipHash have vectors: a `u64` by Murmur3 takes 0.9 ns there and by
//! `FastHash` 0.6, and a string of 24 bytes 3.2 and 1.3 (AVX-512).
//!
//! Any `BuildHasher` works if its hashes fill 64 bits evenly, as those of `foldhash` and `ahash`
//! do. [`docs::hashes`](crate::docs::hashes) compares them.
//!
//! **Hashes of 32 bits are not good enough for low rates**, and nothing is promised for FNV-1a and
//! hashers that return integers unchanged. No type tells them apart, so a filter takes them as they
//! are. [Finish such a hash with a mixer](crate::docs::hashes#a-weak-hash-function).
//!
//! A program may divide its keys among filters by any bits of the hashes: each filter [keeps its
//! rate](crate::docs::hashes#divided-keys).
//!
//! # Filters one behind the other
//!
//! Two filters with one hash make the same mistakes. If both must find a key, as a small filter
//! before a large one, many more other keys pass than the product of both rates: measured up to 99
//! times as many, where one filter has twice the blocks of the other. Give them different
//! [seeds](crate::Builder::seed); then their rates multiply. That holds for filters of two types
//! too: a `CuckooFilter` before a `DLeftFilter`, both with one hash, passes up to 280 times the
//! product. (A `StaticFilter` uses the hash otherwise, and needs no other seed.)
//!
//! # Hash functions of your own
//!
//! A `Hasher` gets a key's [`Funnel`] bytes [in pieces of one
//! length](crate::docs::hashes#the-bytes-for-a-buildhasher), so that keys of equal bytes have equal
//! hashes.

mod any;
pub(crate) mod bytes;
mod fast;
pub(crate) mod murmur3;
pub(crate) mod siphash;
mod typed;

pub use self::any::{AnyHasher, BuiltinHasher};
pub use self::murmur3::Murmur3Sink;
pub use self::typed::OneKeyType;
use crate::funnel::{Funnel, Sink};
use crate::hash::bytes::Short;
use crate::hash::fast::FastSink;
use crate::hash::siphash::{SipSink, State};
use crate::kernel::Isa;
use crate::kernel::hash::{GROUP, HashKernels, TILE};
use crate::words::scratch::Scratch;
use core::fmt;
use core::hash::{BuildHasher, Hasher};

/// How a filter turns keys into hashes: [`Murmur3`], [`FastHash`], [`SipHash13`], and every
/// `BuildHasher`.
///
/// This trait is sealed. Pass a hash function of your own as a `BuildHasher`: it gets a key's
/// [`Funnel`] bytes through `Hasher::write`, in [pieces of one
/// length](crate::docs::hashes#the-bytes-for-a-buildhasher).
///
/// ```
/// use lanebloom::{KeyHasher, Murmur3};
/// use std::hash::RandomState;
///
/// assert_eq!(Murmur3::default().hash_key("hello"), 0xcbd8_a7b3_41bd_9b02);
///
/// let random = RandomState::new();
/// assert_eq!(random.hash_key("hello"), random.hash_key(&String::from("hello")));
/// ```
pub trait KeyHasher: FilterHasher {
    /// Hashes `key` to evenly distributed bits.
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64;

    /// Writes the hash of each key to the same place of `out`. Panics if the lengths differ.
    ///
    /// ```
    /// use lanebloom::{KeyHasher, Murmur3};
    ///
    /// let mut hashes = [0; 2];
    /// let keys = ["hello", "world"];
    /// Murmur3::default().hash_batch(&keys, &mut hashes);
    /// assert_eq!(hashes, keys.map(|key| Murmur3::default().hash_key(key)));
    /// ```
    fn hash_batch<K: Funnel>(&self, keys: &[K], out: &mut [u64]) {
        self.hash_batch_by(Isa::best(), keys, out);
    }

    /// [`hash_batch`](Self::hash_batch) by the kernels of `isa`, if the hash function has any.
    #[doc(hidden)]
    fn hash_batch_by<K: Funnel>(&self, _: Isa, keys: &[K], out: &mut [u64]) {
        assert_same_length(keys.len(), out.len());
        one_by_one(self, keys, out);
    }
}

/// The name of a hasher: all that a filter, its unions and its snapshots need of it. Every
/// [`KeyHasher`] has one, and so has [`Prehashed`], which hashes no keys. Only the crates of this
/// workspace implement it and [`KeyHasher`], so that batch kernels can be added.
///
/// ```
/// use lanebloom::hash::FilterHasher;
/// use lanebloom::{ConcurrentBloom, Hashed, Prehashed, SnapshotError, codec};
///
/// /// A copy that has gone through bytes, whether the filter hashes keys or not.
/// fn sent<S: FilterHasher>(
///     filter: &ConcurrentBloom<S>,
///     hasher: S,
/// ) -> Result<ConcurrentBloom<S>, SnapshotError> {
///     Ok(codec::from_bytes(&filter.snapshot().to_vec(), hasher)?.0)
/// }
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(Prehashed).build()?;
/// filter.insert(&Hashed(17));
/// assert!(sent(&filter, Prehashed)?.contains(&Hashed(17)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FilterHasher {
    /// The hasher's name in a snapshot.
    #[doc(hidden)]
    fn identity(&self) -> Identity;

    /// The hash of one fixed key. It tells hashers of any type apart, up to a chance of 2^-64, and
    /// reveals no more about a secret key than any other hash does.
    #[doc(hidden)]
    fn fingerprint(&self) -> u64;
}

/// [`KeyHasher::hash_batch`] without vectors.
#[inline(always)]
pub(crate) fn one_by_one<K: Funnel>(hasher: &(impl KeyHasher + ?Sized), keys: &[K], out: &mut [u64]) {
    for (hash, key) in out.iter_mut().zip(keys) {
        // If the compiler vectorizes this loop, it replaces each 64-bit multiplication of Murmur3
        // by three with 32 bits, which baseline x86-64 has: 1.5 ns a key slower than one hash after
        // another. `FastHash` took 0.74 ns a `u64` in place of 0.58.
        *hash = core::hint::black_box(hasher.hash_key(key));
    }
}

/// Panics unless there is a place for the answer of each key. (Inlined, so that a batch of one key
/// pays for no call.)
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub fn assert_same_length(keys: usize, out: usize) {
    if keys != out {
        lengths_differ(keys, out);
    }
}

#[cold]
#[inline(never)]
#[track_caller]
fn lengths_differ(keys: usize, out: usize) -> ! {
    panic!("`keys` has {keys} elements, but `out` has {out}");
}

/// The key whose hash is a hasher's [`fingerprint`](FilterHasher::fingerprint).
const FINGERPRINTED: &str = "lanebloom hasher print";

impl FilterHasher for Murmur3 {
    fn identity(&self) -> Identity {
        Identity::Murmur3 { seed: self.seed }
    }

    fn fingerprint(&self) -> u64 {
        self.hash_key(FINGERPRINTED)
    }
}

impl FilterHasher for FastHash {
    fn identity(&self) -> Identity {
        Identity::FastHash { seed: self.seed() }
    }

    fn fingerprint(&self) -> u64 {
        self.hash_key(FINGERPRINTED)
    }
}

impl FilterHasher for SipHash13 {
    fn identity(&self) -> Identity {
        Identity::SipHash13
    }

    fn fingerprint(&self) -> u64 {
        self.hash_key(FINGERPRINTED)
    }
}

impl FilterHasher for Prehashed {
    fn identity(&self) -> Identity {
        Identity::Prehashed
    }

    fn fingerprint(&self) -> u64 {
        0
    }
}

impl<B: BuildHasher> FilterHasher for B {
    fn identity(&self) -> Identity {
        Identity::Other
    }

    fn fingerprint(&self) -> u64 {
        self.hash_key(FINGERPRINTED)
    }
}

/// The hasher that a snapshot names. The name holds no secret key.
///
/// ```
/// use lanebloom::codec::{Identity, SnapshotHeader};
/// use lanebloom::{ConcurrentBloom, SipHash13};
///
/// let builder = ConcurrentBloom::builder().hasher(SipHash13::random());
/// let bytes = builder.expected_keys(1000).build()?.snapshot().to_vec();
/// assert_eq!(SnapshotHeader::peek(&bytes)?.hasher, Some(Identity::SipHash13));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Identity {
    /// A `BuildHasher` of the program that wrote the snapshot.
    Other,
    /// [`Murmur3`] with this seed.
    #[non_exhaustive]
    Murmur3 {
        /// The seed.
        seed: u32,
    },
    /// [`SipHash13`] with a secret key.
    SipHash13,
    /// [`FastHash`] with this seed.
    #[non_exhaustive]
    FastHash {
        /// The seed.
        seed: u32,
    },
    /// [`Prehashed`]: the program that wrote the snapshot hashed the keys.
    Prehashed,
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("a BuildHasher"),
            Self::Murmur3 { seed } => write!(f, "Murmur3 with seed {seed}"),
            Self::SipHash13 => f.write_str("SipHash-1-3"),
            Self::FastHash { seed } => write!(f, "FastHash with seed {seed}"),
            Self::Prehashed => f.write_str("Prehashed"),
        }
    }
}

/// The bytes of a key that a `Hasher` gets in one write.
///
/// Longer pieces make long strings faster, and keys whose bytes are copied slower, since the copy's
/// memory is cleared first: `docs/HASHES.md` has the times of 64, 128 and 256. The cost of a copy
/// is a load that waits for several small stores. To collect 16 bytes in registers first took
/// longer.
const WRITE_BYTES: usize = 128;

impl<B: BuildHasher> KeyHasher for B {
    #[inline]
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        let mut hasher = self.build_hasher();
        match Form::of(key) {
            Form::Slice(bytes) => {
                let last = write_pieces(&mut hasher, bytes);
                hasher.write(last);
                hasher.finish()
            }
            Form::Short(key) => {
                hasher.write(&key.bytes.to_le_bytes()[..key.len]);
                hasher.finish()
            }
            Form::Pieces => {
                let mut sink = Pieces {
                    hasher,
                    piece: [0; WRITE_BYTES],
                    filled: 0,
                };
                key.funnel(&mut sink);
                sink.hasher.write(&sink.piece[..sink.filled]);
                sink.hasher.finish()
            }
        }
    }
}

/// How a hash function takes a key. It is mostly known at compile time.
enum Form<'a> {
    /// The bytes lie in memory.
    Slice(&'a [u8]),
    /// They fit into registers, and all keys of the type have as many.
    Short(Short),
    /// The key is to funnel them.
    Pieces,
}

impl<'a> Form<'a> {
    #[inline(always)]
    fn of<K: Funnel + ?Sized>(key: &'a K) -> Self {
        if let Some(bytes) = key.bytes() {
            return Self::Slice(bytes);
        }
        if matches!(K::WIDTH, Some(..=16)) {
            let short = Short::of(key);
            if short.len <= 16 {
                return Self::Short(short);
            }
        }
        Self::Pieces
    }
}

/// Writes all pieces of `bytes` but the last one, and returns that one. It is empty only if `bytes`
/// is.
#[inline(always)]
fn write_pieces<'a>(hasher: &mut impl Hasher, mut bytes: &'a [u8]) -> &'a [u8] {
    while bytes.len() > WRITE_BYTES {
        let (piece, rest) = bytes.split_at(WRITE_BYTES);
        hasher.write(piece);
        bytes = rest;
    }
    bytes
}

/// Collects what is put and hands it to a `Hasher` piece by piece.
struct Pieces<H> {
    hasher: H,
    piece: [u8; WRITE_BYTES],
    /// The number of bytes in `piece`. A full piece is written when the next byte comes.
    filled: usize,
}

impl<H: Hasher> Sink for Pieces<H> {
    // Always inlined: for a key of fixed width the copies' lengths are then known at compile time.
    // `[u64; 4]` takes 19 ns otherwise.
    #[inline(always)]
    fn put(&mut self, mut bytes: &[u8]) {
        let room = WRITE_BYTES - self.filled;
        if bytes.len() > room {
            let (head, rest) = bytes.split_at(room);
            self.piece[self.filled..].copy_from_slice(head);
            self.hasher.write(&self.piece);
            self.filled = 0;
            bytes = write_pieces(&mut self.hasher, rest);
        }
        self.piece[self.filled..][..bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }
}

/// Murmur3 x64_128 with a seed, 0 by default. The hash of a key is the first of its two 64-bit
/// halves.
///
/// The same key and seed have the same hash on every platform, byte order and instruction set. Not
/// for keys that an enemy may choose: [the module](crate::hash) says why, and names the
/// alternative.
///
/// Source: Austin Appleby's `MurmurHash3_x64_128`, SMHasher, public domain. [Other
/// languages](crate::docs::languages) have it in packages, beside functions of similar names.
///
/// ```
/// use lanebloom::{KeyHasher, Murmur3};
///
/// let hasher = Murmur3::with_seed(1);
/// assert_eq!(hasher.hash_key("hello"), 0xa78d_dff5_adae_8d10);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Murmur3 {
    seed: u32,
}

impl Murmur3 {
    /// Murmur3 with `seed`.
    ///
    /// ```
    /// use lanebloom::{KeyHasher, Murmur3};
    ///
    /// let [one, two] = [1, 2].map(|seed| Murmur3::with_seed(seed).hash_key("a"));
    /// assert_ne!(one, two);
    /// ```
    #[must_use]
    pub const fn with_seed(seed: u32) -> Self {
        Self { seed }
    }

    /// The seed.
    ///
    /// ```
    /// assert_eq!(lanebloom::Murmur3::with_seed(9).seed(), 9);
    /// ```
    #[must_use]
    pub const fn seed(&self) -> u32 {
        self.seed
    }

    /// Both 64-bit halves, `(h1, h2)`, of a key's hash.
    ///
    /// ```
    /// let halves = lanebloom::Murmur3::default().hash128("hello");
    /// assert_eq!(halves, (0xcbd8_a7b3_41bd_9b02, 0x5b1e_906a_48ae_1d19));
    /// ```
    // Always inlined, as `hash_key`: a call costs as much as half of a short key's hash.
    #[inline(always)]
    #[must_use]
    pub fn hash128<K: Funnel + ?Sized>(&self, key: &K) -> (u64, u64) {
        match Form::of(key) {
            Form::Slice(bytes) => Murmur3Sink::slice(self.seed, bytes),
            Form::Short(key) => Murmur3Sink::short(self.seed, key),
            Form::Pieces => {
                let mut sink = self.sink();
                key.funnel(&mut sink);
                sink.finish128()
            }
        }
    }

    /// A sink that hashes what is put into it, for bytes that arrive in pieces.
    ///
    /// ```
    /// use lanebloom::{Murmur3, Sink};
    ///
    /// let mut sink = Murmur3::default().sink();
    /// sink.put(b"hel");
    /// sink.put(b"lo");
    /// assert_eq!(sink.finish128(), Murmur3::default().hash128("hello"));
    /// ```
    #[inline]
    #[must_use]
    pub fn sink(&self) -> Murmur3Sink {
        Murmur3Sink::new(self.seed)
    }
}

impl KeyHasher for Murmur3 {
    #[inline(always)]
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.hash128(key).0
    }

    fn hash_batch_by<K: Funnel>(&self, isa: Isa, keys: &[K], out: &mut [u64]) {
        hash_many(self, HashKernels::murmur3(isa), &[self.seed.into(); 2], keys, out);
    }
}

/// The fast choice for keys that no enemy chooses, with a seed, 0 by default.
///
/// A key of up to 8 bytes, such as a `u64`, takes two folded multiplications. The hash of a longer
/// key is XXH3-64 of its [`Funnel`] bytes. The hash of a key is the same on every platform and in
/// every version, and other programs can compute it: [the specification] has a line for the short
/// keys, and every language has XXH3. (It is not the `fasthash` of SMHasher.)
///
/// **Not for keys that an enemy may choose**, whatever the seed: see [the module](crate::hash).
///
/// ```
/// use lanebloom::{ConcurrentBloom, FastHash, KeyHasher};
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(FastHash::default()).build()?;
/// filter.insert(&17u64);
/// assert!(filter.contains(&17u64) && !filter.contains(&18u64));
/// // `xxhash.xxh3_64_intdigest(b"lanebloom hasher print")` in Python
/// let hash = FastHash::default().hash_key("lanebloom hasher print");
/// assert_eq!(hash, 0x6db8_209a_89d8_2db9);
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
///
/// [the specification]: crate::docs::hashes#fasthash
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FastHash {
    seed: fast::Seed,
}

impl FastHash {
    /// The hasher with `seed`.
    ///
    /// ```
    /// use lanebloom::{FastHash, KeyHasher};
    ///
    /// let [one, two] = [1, 2].map(|seed| FastHash::with_seed(seed).hash_key("a"));
    /// assert_ne!(one, two);
    /// ```
    #[must_use]
    pub const fn with_seed(seed: u32) -> Self {
        Self {
            seed: fast::Seed::new(seed),
        }
    }

    /// The seed.
    ///
    /// ```
    /// assert_eq!(lanebloom::FastHash::with_seed(9).seed(), 9);
    /// ```
    #[must_use]
    pub const fn seed(&self) -> u32 {
        self.seed.given
    }
}

impl Default for FastHash {
    /// Seed 0.
    fn default() -> Self {
        Self::with_seed(0)
    }
}

impl fmt::Debug for FastHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FastHash").field("seed", &self.seed()).finish()
    }
}

impl KeyHasher for FastHash {
    // Always inlined, as `Murmur3::hash128`.
    #[inline(always)]
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        fn pieces<const N: usize, K: Funnel + ?Sized>(seed: fast::Seed, key: &K) -> u64 {
            let mut sink = FastSink::<N>::new(seed);
            key.funnel(&mut sink);
            sink.finish()
        }
        match Form::of(key) {
            Form::Slice(bytes) => fast::slice(self.seed, bytes),
            Form::Short(key) => fast::short(self.seed, key),
            // The space for the bytes is cleared first.
            Form::Pieces if matches!(K::WIDTH, Some(..=32)) => pieces::<32, K>(self.seed, key),
            Form::Pieces => pieces::<128, K>(self.seed, key),
        }
    }
}

/// The hasher of a filter whose keys are hashed elsewhere: it takes hashes alone.
///
/// Methods that take keys do not compile. So no key is hashed twice in two ways, and a snapshot
/// does not claim a hasher that the keys never saw. Different keys need different hashes of 64
/// bits: [the module](crate::hash) says what is good enough.
///
/// ```
/// use lanebloom::{ConcurrentBloom, Hashed, Prehashed, codec};
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(Prehashed).build()?;
/// filter.insert(&Hashed(0x9e37_79b9_7f4a_7c15));
/// assert!(filter.contains(&Hashed(0x9e37_79b9_7f4a_7c15)));
///
/// let bytes = filter.snapshot().to_vec();
/// let (same, _) = codec::from_bytes::<ConcurrentBloom<_>>(&bytes, Prehashed)?;
/// assert!(same == filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// ```compile_fail,E0277
/// # use lanebloom::{ConcurrentBloom, Prehashed};
/// # let builder = ConcurrentBloom::builder().expected_keys(1000);
/// # let filter = builder.hasher(Prehashed).build().unwrap();
/// filter.insert("a");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prehashed;

/// Hashes by the kernels from the state `start`, if there are any, as `hasher` hashes one key.
fn hash_many<K: Funnel, const N: usize>(
    hasher: &impl KeyHasher,
    kernels: Option<HashKernels<N>>,
    start: &[u64; N],
    keys: &[K],
    out: &mut [u64],
) {
    assert_same_length(keys.len(), out.len());
    let width = K::WIDTH.filter(|&width| width <= 16);
    // From this many keys on, a vector that is not full takes no longer than single keys.
    let worthwhile = if width.is_some() { 6 } else { 4 };
    let rest = keys.len() % GROUP;
    let alone = if rest < worthwhile { rest } else { 0 };
    let (keys, alone) = keys.split_at(keys.len() - alone);
    let (out, alone_out) = out.split_at_mut(keys.len());
    for (keys, out) in keys.chunks(TILE).zip(out.chunks_mut(TILE)) {
        let done = match (kernels, width) {
            (Some(kernels), Some(width)) if width <= kernels.most => hash_short(kernels, start, keys, width, out),
            (Some(kernels), None) => kernels.slices(start, keys.iter().map(Funnel::bytes), out),
            _ => false,
        };
        if !done {
            one_by_one(hasher, keys, out);
        }
    }
    // Last, since these need not wait for the vectors' results.
    one_by_one(hasher, alone, alone_out);
}

/// Hashes at most [`TILE`] keys of `width` bytes, at most 16; returns whether it could.
#[inline]
fn hash_short<K: Funnel, const N: usize>(
    kernels: HashKernels<N>,
    start: &[u64; N],
    keys: &[K],
    width: usize,
    out: &mut [u64],
) -> bool {
    let mut fit = true;
    let mut halves = |key: &K| {
        let short = Short::of(key);
        fit &= short.len == width;
        short.halves()
    };
    if width <= 8 {
        for (key, low) in keys.iter().zip(&mut *out) {
            *low = halves(key).0;
        }
        if fit {
            kernels.short(start, width, out, &[]);
        }
    } else {
        let mut space = Scratch::<TILE>::default();
        let high = space.first(keys.len());
        for ((key, low), high) in keys.iter().zip(&mut *out).zip(&mut *high) {
            (*low, *high) = halves(key);
        }
        if fit {
            kernels.short(start, width, out, high);
        }
    }
    fit
}

/// SipHash-1-3 under a 128-bit key: for filters whose keys a stranger may choose.
///
/// The key is random unless given ([`with_key`](Self::with_key)); `Debug` does not show it. Two
/// filters can be united only under the same key, which a clone has.
///
/// Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF" (2012).
///
/// ```
/// use lanebloom::{ConcurrentBloom, SipHash13};
///
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(SipHash13::random()).build()?;
/// filter.insert("user:17");
/// assert!(filter.contains("user:17"));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SipHash13 {
    /// The state before the first byte, which is the key in another form: hashes begin with it.
    start: State,
}

impl SipHash13 {
    /// SipHash-1-3 under `key`, which protects only while it is secret.
    ///
    /// ```
    /// use lanebloom::{KeyHasher, SipHash13};
    ///
    /// let hasher = SipHash13::with_key([7; 16]);
    /// assert_eq!(hasher.hash_key("a"), SipHash13::with_key([7; 16]).hash_key("a"));
    /// assert_ne!(hasher.hash_key("a"), SipHash13::with_key([8; 16]).hash_key("a"));
    /// ```
    #[must_use]
    pub const fn with_key(key: [u8; 16]) -> Self {
        Self { start: State::new(key) }
    }

    /// The secret key, for callers that must find the filter's keys again after a restart.
    /// Snapshots do not hold it: store it with your secrets.
    ///
    /// ```
    /// use lanebloom::SipHash13;
    ///
    /// let hasher = SipHash13::random();
    /// assert_eq!(SipHash13::with_key(hasher.key()), hasher);
    /// ```
    #[must_use]
    pub const fn key(&self) -> [u8; 16] {
        self.start.key()
    }

    /// SipHash-1-3 under a new random key, from the operating system's randomness by way of
    /// `std::hash::RandomState`.
    ///
    /// ```
    /// use lanebloom::SipHash13;
    ///
    /// assert_ne!(SipHash13::random(), SipHash13::random());
    /// ```
    #[cfg(feature = "std")]
    #[must_use]
    pub fn random() -> Self {
        // Two outputs of std's own keyed SipHash are 128 bits that nobody can guess without its
        // random key.
        let source = std::hash::RandomState::new();
        let mut key = [0; 16];
        key[..8].copy_from_slice(&source.hash_one(0u8).to_le_bytes());
        key[8..].copy_from_slice(&source.hash_one(1u8).to_le_bytes());
        Self::with_key(key)
    }
}

#[cfg(feature = "std")]
impl Default for SipHash13 {
    /// A [random](SipHash13::random) key.
    fn default() -> Self {
        Self::random()
    }
}

impl fmt::Debug for SipHash13 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SipHash13 { key: secret }")
    }
}

impl KeyHasher for SipHash13 {
    #[inline(always)]
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        match Form::of(key) {
            Form::Slice(bytes) => self.start.slice(0, bytes),
            Form::Short(key) => self.start.short(key),
            Form::Pieces => {
                let mut sink = SipSink::new(self.start);
                key.funnel(&mut sink);
                sink.finish()
            }
        }
    }

    fn hash_batch_by<K: Funnel>(&self, isa: Isa, keys: &[K], out: &mut [u64]) {
        hash_many(self, HashKernels::siphash13(isa), &self.start.0, keys, out);
    }
}
