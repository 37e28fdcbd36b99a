//! A check for tests: [`OneKeyType`] wraps a hasher, checks the keys, and hands them on.

use crate::funnel::Funnel;
use crate::hash::bytes::Short;
use crate::hash::{FilterHasher, Identity, KeyHasher};
use crate::kernel::Isa;
use crate::words::once::OnceBox;
use alloc::sync::Arc;
use core::any::type_name;
use core::fmt;

/// A hasher that panics if a filter gets keys of two types: for tests and debug builds.
///
/// Keys are [untyped](crate::funnel#keys-are-untyped): `insert(&17)` inserts an `i32`, and
/// `contains(&17u64)` compiles but does not find it. Under `OneKeyType<S>` the second call panics
/// and names both types. Otherwise it hashes as `S` does, and snapshots and unions treat it as `S`.
///
/// The first key decides the type, for the hasher and all its clones. Types that can write the same
/// bytes are one type: `&str` and `String`, `i64` and `u64`, `[u16; 4]` and `Vec<u16>`. Two types
/// differ in two cases:
///
/// - All keys of one type have the same width ([`Funnel::WIDTH`]), and the other's key has another
///   number of bytes.
/// - One type is bytes in memory ([`Funnel::bytes`]), and the other has a fixed width and is not:
///   texts and numbers, a UUID and a `u128`.
///
/// So byte literals of two lengths, `b"a"` and `b"bc"`, have two types, as in Rust; `&b"a"[..]` is
/// a slice. A type of your own that forwards `funnel` should forward `WIDTH` and `bytes` too.
/// Methods that take hashes check nothing. A check costs some nanoseconds.
///
/// # Panics
///
/// [`hash_key`](KeyHasher::hash_key), and so every method of a filter that takes keys, panics if a
/// key's type is not the first key's.
///
/// # Examples
///
/// ```should_panic
/// use lanebloom::hash::OneKeyType;
/// use lanebloom::{ConcurrentBloom, Murmur3};
///
/// let hasher = OneKeyType::new(Murmur3::default());
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.hasher(hasher).build().unwrap();
/// filter.insert(&17);
/// assert!(filter.contains(&17));
/// filter.contains(&17u64); // panics: `u64` (8 bytes) after `i32` (4 bytes)
/// ```
///
/// To check in debug builds only, let a type alias name it under `cfg(debug_assertions)`, and the
/// hasher alone otherwise.
#[derive(Clone)]
pub struct OneKeyType<S> {
    hasher: S,
    first: Arc<OnceBox<KeyType>>,
}

impl<S> OneKeyType<S> {
    /// Hashes as `hasher` does. The next key decides the type of all others.
    ///
    /// ```
    /// use lanebloom::hash::OneKeyType;
    /// use lanebloom::{KeyHasher, Murmur3};
    ///
    /// let hasher = OneKeyType::new(Murmur3::with_seed(1));
    /// assert_eq!(hasher.hash_key("hello"), Murmur3::with_seed(1).hash_key("hello"));
    /// assert!(std::panic::catch_unwind(move || hasher.hash_key(&17)).is_err());
    /// ```
    #[must_use]
    pub fn new(hasher: S) -> Self {
        Self {
            hasher,
            first: Arc::new(OnceBox::default()),
        }
    }

    fn check<K: Funnel + ?Sized>(&self, key: &K) {
        let key_type = KeyType::of(key);
        if self.first.get().is_none() {
            // Another thread's key may become the first meanwhile.
            let _ = self.first.set(key_type);
        }
        // If there is no memory, this key is not checked.
        let first = self.first.get().unwrap_or(&key_type);
        assert!(
            first.fits(&key_type),
            "a key of type {key_type} in a filter whose first key was of type {first}: keys of two types never meet"
        );
    }
}

impl<S: Default> Default for OneKeyType<S> {
    /// [`new`](Self::new) with the default hasher.
    fn default() -> Self {
        Self::new(S::default())
    }
}

impl<S: fmt::Debug> fmt::Debug for OneKeyType<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.first.get().map(|first| first.name);
        f.debug_struct("OneKeyType")
            .field("hasher", &self.hasher)
            .field("first", &first)
            .finish()
    }
}

impl<S: KeyHasher> FilterHasher for OneKeyType<S> {
    fn identity(&self) -> Identity {
        self.hasher.identity()
    }

    fn fingerprint(&self) -> u64 {
        self.hasher.fingerprint()
    }
}

impl<S: KeyHasher> KeyHasher for OneKeyType<S> {
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        self.check(key);
        self.hasher.hash_key(key)
    }

    fn hash_batch_by<K: Funnel>(&self, isa: Isa, keys: &[K], out: &mut [u64]) {
        for key in keys {
            self.check(key);
        }
        self.hasher.hash_batch_by(isa, keys, out);
    }
}

/// The traits of a key that reveal its type.
#[derive(Clone, Copy)]
struct KeyType {
    name: &'static str,
    width: Option<usize>,
    /// Whether its bytes lie in memory.
    in_memory: bool,
    /// The number of bytes of this key.
    len: usize,
}

impl KeyType {
    fn of<K: Funnel + ?Sized>(key: &K) -> Self {
        Self {
            name: type_name::<K>(),
            width: K::WIDTH,
            in_memory: key.bytes().is_some(),
            len: Short::of(key).len,
        }
    }

    /// Whether both can be keys of one filter.
    fn fits(&self, other: &Self) -> bool {
        let fits = |a: &Self, b: &Self| match a.width {
            Some(width) => width == b.len && (a.in_memory || !b.in_memory),
            None => true,
        };
        // A type may give a wrong width. Its keys are of one type all the same.
        self.name == other.name || fits(self, other) && fits(other, self)
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, len, .. } = self;
        write!(f, "`{name}` ({len} bytes)")
    }
}
