//! Hashers that a program chooses while it runs: those that hash keys, and whatever a snapshot
//! names.

use super::{FastHash, FilterHasher, Identity, KeyHasher, Murmur3, Prehashed, SipHash13};
use crate::funnel::Funnel;
use crate::kernel::Isa;
use core::fmt::{self, Display};

/// A hasher of this crate that is chosen at run time. It hashes as the one that it holds.
///
/// A call looks once which one it is, and a batch once for many keys.
///
/// ```
/// use lanebloom::hash::BuiltinHasher;
/// use lanebloom::{FastHash, KeyHasher, Murmur3};
///
/// let chosen = |fast: bool| match fast {
///     true => BuiltinHasher::from(FastHash::default()),
///     false => BuiltinHasher::from(Murmur3::default()),
/// };
/// assert_eq!(chosen(true).hash_key("a"), FastHash::default().hash_key("a"));
/// assert_eq!(chosen(false).hash_key("a"), Murmur3::default().hash_key("a"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuiltinHasher {
    /// Murmur3 x64_128 with its seed.
    Murmur3(Murmur3),
    /// The fast hasher with its seed.
    FastHash(FastHash),
    /// SipHash-1-3 under its key.
    SipHash13(SipHash13),
}

impl BuiltinHasher {
    fn as_dyn(&self) -> &dyn FilterHasher {
        match self {
            Self::Murmur3(hasher) => hasher,
            Self::FastHash(hasher) => hasher,
            Self::SipHash13(hasher) => hasher,
        }
    }
}

impl KeyHasher for BuiltinHasher {
    #[inline(always)]
    fn hash_key<K: Funnel + ?Sized>(&self, key: &K) -> u64 {
        match self {
            Self::Murmur3(hasher) => hasher.hash_key(key),
            Self::FastHash(hasher) => hasher.hash_key(key),
            Self::SipHash13(hasher) => hasher.hash_key(key),
        }
    }

    fn hash_batch_by<K: Funnel>(&self, isa: Isa, keys: &[K], out: &mut [u64]) {
        match self {
            Self::Murmur3(hasher) => hasher.hash_batch_by(isa, keys, out),
            Self::FastHash(hasher) => hasher.hash_batch_by(isa, keys, out),
            Self::SipHash13(hasher) => hasher.hash_batch_by(isa, keys, out),
        }
    }
}

impl FilterHasher for BuiltinHasher {
    fn identity(&self) -> Identity {
        self.as_dyn().identity()
    }

    fn fingerprint(&self) -> u64 {
        self.as_dyn().fingerprint()
    }
}

/// The hasher of a snapshot, whatever it is: the hasher of an [`AnyFilter`](crate::AnyFilter).
///
/// It hashes no keys by itself: only a [`Builtin`](Self::Builtin) one does.
///
/// ```
/// use lanebloom::hash::AnyHasher;
/// use lanebloom::{AnyFilter, ConcurrentBloom, FastHash, Hashed, KeyHasher, codec};
/// use lanebloom::{Prehashed, SipHash13};
///
/// // A program's option decides.
/// let hasher: AnyHasher = match "prehashed" {
///     "fast" => FastHash::default().into(),
///     _ => Prehashed.into(),
/// };
/// let builder = ConcurrentBloom::builder().expected_keys(1000);
/// let filter = builder.clone().hasher(hasher).build()?;
/// if let AnyHasher::Builtin(hasher) = hasher {
///     filter.insert(&Hashed(hasher.hash_key("a")));
/// }
/// filter.insert(&Hashed(17));
/// // Any program reads it.
/// let bytes = filter.snapshot().to_vec();
/// let (same, _) = codec::from_bytes::<ConcurrentBloom<_>>(&bytes, Prehashed)?;
/// assert!(same.contains(&Hashed(17)) && *filter.hasher() == AnyHasher::Prehashed);
/// // A secret key is not in the snapshot.
/// let secret = builder.hasher(SipHash13::random()).build()?.snapshot().to_vec();
/// let (filter, _) = AnyFilter::from_bytes(&secret)?;
/// assert!(matches!(filter.hasher(), AnyHasher::Unknown { .. }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnyHasher {
    /// A hasher of this crate, which hashes keys.
    Builtin(BuiltinHasher),
    /// The caller hashes the keys.
    Prehashed,
    /// The snapshot names a hasher that this program was not given, such as [`SipHash13`] under a
    /// key that is not at hand.
    #[non_exhaustive]
    Unknown {
        /// The name of the hasher.
        identity: Identity,
        /// The hash of a fixed key, by which reading recognizes the hasher.
        fingerprint: u64,
    },
}

impl AnyHasher {
    /// The hasher of keys; `None` if the hashes come from elsewhere or from an unknown hasher.
    #[inline(always)]
    pub(crate) const fn builtin(&self) -> Option<&BuiltinHasher> {
        match self {
            Self::Builtin(hasher) => Some(hasher),
            _ => None,
        }
    }

    /// The hasher of a snapshot with this identity and this fingerprint.
    pub(crate) fn of(identity: Identity, fingerprint: u64) -> Self {
        match identity {
            Identity::Murmur3 { seed } => Murmur3::with_seed(seed).into(),
            Identity::FastHash { seed } => FastHash::with_seed(seed).into(),
            Identity::Prehashed => Self::Prehashed,
            Identity::SipHash13 | Identity::Other => Self::Unknown { identity, fingerprint },
        }
    }
}

impl FilterHasher for AnyHasher {
    fn identity(&self) -> Identity {
        match self {
            Self::Builtin(hasher) => hasher.identity(),
            Self::Prehashed => Prehashed.identity(),
            Self::Unknown { identity, .. } => *identity,
        }
    }

    fn fingerprint(&self) -> u64 {
        match self {
            Self::Builtin(hasher) => hasher.fingerprint(),
            Self::Prehashed => Prehashed.fingerprint(),
            Self::Unknown { fingerprint, .. } => *fingerprint,
        }
    }
}

impl Display for AnyHasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.identity().fmt(f)
    }
}

impl From<Prehashed> for AnyHasher {
    fn from(_: Prehashed) -> Self {
        Self::Prehashed
    }
}

impl<H: Into<BuiltinHasher>> From<H> for AnyHasher {
    fn from(hasher: H) -> Self {
        Self::Builtin(hasher.into())
    }
}

impl From<Murmur3> for BuiltinHasher {
    fn from(hasher: Murmur3) -> Self {
        Self::Murmur3(hasher)
    }
}

impl From<FastHash> for BuiltinHasher {
    fn from(hasher: FastHash) -> Self {
        Self::FastHash(hasher)
    }
}

impl From<SipHash13> for BuiltinHasher {
    fn from(hasher: SipHash13) -> Self {
        Self::SipHash13(hasher)
    }
}
