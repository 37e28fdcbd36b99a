//! Keys and hashes, which a filter takes alike: [`Key`] and [`Hashed`].

use crate::chunks::Source;
use crate::funnel::Funnel;
use crate::hash::{KeyHasher, one_by_one};
use crate::kernel::{Isa, Plan};
use crate::words::scratch::Scratch;
use core::ops::Range;
use core::slice;

/// A key of a filter with the hasher `S`: every [`Funnel`] type if `S` hashes keys (a
/// [`KeyHasher`]), and a hash, as [`Hashed`], for every `S`.
///
/// Only this crate implements it. A type of your own becomes a key by [`Funnel`].
///
/// ```
/// use lanebloom::{ConcurrentBloom, Hashed, Key, Murmur3};
///
/// fn is_known<K: Key<Murmur3> + ?Sized>(seen: &ConcurrentBloom, key: &K) -> bool {
///     !seen.insert(key)
/// }
///
/// let seen = ConcurrentBloom::with_capacity(1000, 0.01)?;
/// assert!(!is_known(&seen, "a") && is_known(&seen, "a"));
/// assert!(is_known(&seen, &Hashed(seen.hash("a"))));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a key of a filter with the hasher `{S}`",
    label = "neither a `Funnel` type, with a hasher that hashes keys, nor `Hashed`",
    note = "wrap a hash: `Hashed(hash)`, `Hashed::slice(&hashes)`; `Prehashed` and `()` take no other keys",
    note = "implement `lanebloom::Funnel` for a type of your own, or wrap a key that has `Hash`: `ByHash(key)`"
)]
pub trait Key<S> {
    /// Whether it is a hash.
    #[doc(hidden)]
    const IS_HASH: bool;

    /// The hash by which a filter with this hasher knows the key.
    #[doc(hidden)]
    fn hash_by(&self, hasher: &S) -> u64;

    /// Writes the hash of each key to the same place of `out`, which is as long.
    #[doc(hidden)]
    fn hash_each(keys: &[Self], hasher: &S, _: Isa, out: &mut [u64])
    where
        Self: Sized,
    {
        for (hash, key) in out.iter_mut().zip(keys) {
            *hash = key.hash_by(hasher);
        }
    }

    /// The hashes, if these keys are hashes side by side.
    #[doc(hidden)]
    #[inline(always)]
    fn hashes(_: &[Self]) -> Option<&[u64]>
    where
        Self: Sized,
    {
        None
    }

    /// The hashes of keys, as they are taken.
    #[doc(hidden)]
    #[inline(always)]
    fn source<'a>(keys: &'a [Self], hasher: &'a S, isa: Isa) -> impl Source + 'a
    where
        Self: Sized,
    {
        HashedKeys { hasher, isa, keys }
    }
}

// A message names `K`, which is not a key, and not what `S` lacks to hash it.
#[diagnostic::do_not_recommend]
impl<K: Funnel + ?Sized, S: KeyHasher> Key<S> for K {
    const IS_HASH: bool = false;

    #[inline(always)]
    fn hash_by(&self, hasher: &S) -> u64 {
        hasher.hash_key(self)
    }

    #[inline(always)]
    fn hash_each(keys: &[Self], hasher: &S, isa: Isa, out: &mut [u64])
    where
        Self: Sized,
    {
        match Plan::of_keys(keys.len()) {
            Plan::Single | Plan::Few => one_by_one(hasher, keys, out),
            _ => hasher.hash_batch_by(isa, keys, out),
        }
    }
}

/// Keys, hashed as they are taken.
pub(crate) struct HashedKeys<'a, K, S> {
    pub(crate) hasher: &'a S,
    pub(crate) isa: Isa,
    pub(crate) keys: &'a [K],
}

impl<K: Key<S>, S> Source for HashedKeys<'_, K, S> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.keys.len()
    }

    #[inline(always)]
    fn hashes<'a, const N: usize>(&'a self, range: Range<usize>, space: &'a mut Scratch<N>) -> &'a [u64] {
        let keys = &self.keys[range];
        let keys = &keys[..keys.len().min(N)];
        let hashes = space.first(keys.len());
        K::hash_each(keys, self.hasher, self.isa, hashes);
        hashes
    }
}

/// A hash in place of a key: a filter takes it as it is.
///
/// It is a hash of [`Filter::hash`](crate::Filter::hash) or
/// [`hash_batch`](crate::KeyHasher::hash_batch), computed once for several filters, or one of the
/// program's own. All 64 bits must be evenly distributed: see
/// [`Prehashed`](crate::Prehashed).
///
/// A plain `u64` is a key, which a filter hashes: a hash that is passed without this wrapper is
/// hashed again, and not found. A filter whose hasher is [`Prehashed`](crate::Prehashed) has no
/// such keys, so the compiler refuses a plain `u64`.
///
/// ```
/// use lanebloom::{ConcurrentBloom, Hashed, KeyHasher, Murmur3};
///
/// let (today, ever) = (
///     ConcurrentBloom::with_capacity(1000, 0.01)?,
///     ConcurrentBloom::with_capacity(1000, 0.01)?,
/// );
/// let mut hashes = [0; 2];
/// Murmur3::default().hash_batch(&["a", "b"], &mut hashes);
/// for filter in [&today, &ever] {
///     assert_eq!(filter.insert_batch(Hashed::slice(&hashes)), 2);
/// }
/// assert!(ever.contains("a") && today.contains(&Hashed(hashes[1])));
/// # Ok::<(), lanebloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Hashed(pub u64);

impl Hashed {
    /// The hashes as keys, in place.
    ///
    /// ```
    /// use lanebloom::{Hashed, StaticFilter};
    ///
    /// let hashes = [0x9e37_79b9_7f4a_7c15, 0x7f4a_7c15_9e37_79b9];
    /// let filter = StaticFilter::from_keys(Hashed::slice(&hashes[..1]), 1e-6)?;
    /// let mut found = [false; 2];
    /// filter.contains_batch(Hashed::slice(&hashes), &mut found);
    /// assert_eq!(found, [true, false]);
    /// # Ok::<(), lanebloom::BuildError>(())
    /// ```
    #[inline(always)]
    #[must_use]
    pub const fn slice(hashes: &[u64]) -> &[Self] {
        // SAFETY: a `Hashed` is a `u64` in memory (`repr(transparent)`), and the slices have one
        // length and one lifetime.
        unsafe { slice::from_raw_parts(hashes.as_ptr().cast(), hashes.len()) }
    }

    #[inline(always)]
    const fn numbers(keys: &[Self]) -> &[u64] {
        // SAFETY: as in `slice`.
        unsafe { slice::from_raw_parts(keys.as_ptr().cast(), keys.len()) }
    }
}

impl<S> Key<S> for Hashed {
    const IS_HASH: bool = true;

    #[inline(always)]
    fn hash_by(&self, _: &S) -> u64 {
        self.0
    }

    #[inline(always)]
    fn hashes(keys: &[Self]) -> Option<&[u64]> {
        Some(Self::numbers(keys))
    }

    #[inline(always)]
    fn source<'a>(keys: &'a [Self], _: &'a S, _: Isa) -> impl Source + 'a {
        Self::numbers(keys)
    }
}

/// For iterators over hashes.
impl<S> Key<S> for &Hashed {
    const IS_HASH: bool = true;

    #[inline(always)]
    fn hash_by(&self, _: &S) -> u64 {
        self.0
    }
}
