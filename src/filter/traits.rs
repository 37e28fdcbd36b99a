//! The operations of filters' engines, by hash: a trait for each. An engine has lookups
//! ([`Engine`]), and the operations of its type. [`Filter`] hashes keys, and calls them.
//!
//! Hidden from users: the crates of this workspace implement and name them, and belong to one exact
//! version. For users, [`Membership`](crate::Membership) has what all filters share.

use crate::chunks::{Answer, Source};
pub use crate::codec::snapshot::{FixedSize, Loaded, Stored};
pub use crate::codec::view::{SnapshotBytes, Viewed};
use crate::codec::{AskHasher, Hashing, Input, Out, with_hasher};
use crate::error::{BuildError, IncompatibleError, InsertError, SnapshotErrorKind};
use crate::filter::{Filter, Statistics};
use crate::geometry::sizing::Request;
use crate::hash::FilterHasher;
use crate::kernel::{self, Isa, Plan};
use core::fmt;

/// The engine of any [`Filter`]: a set of hashes that many threads share.
pub trait Engine: Sized {
    /// The name of the filter type, for `Debug`.
    const NAME: &'static str;

    /// Whether the hash may be there. `true` ends in an `Acquire`.
    fn contains(&self, hash: u64) -> bool;

    /// The plan of lookups of this many hashes.
    #[inline(always)]
    fn plan(&self, hashes: usize) -> Plan {
        Plan::of_hashes(hashes)
    }

    /// Calls `answer` with what belongs to each hash, and with the hash's
    /// [`contains`](Self::contains).
    #[inline(always)]
    fn contains_each<P>(&self, hashes: impl Iterator<Item = (u64, P)>, mut answer: impl FnMut(P, bool)) {
        hashes.for_each(|(hash, of_hash)| answer(of_hash, self.contains(hash)));
    }

    /// [`contains`](Self::contains) of every hash, as a bitmap: bit `i % 64` of word `i / 64`. The
    /// bitmap has a word for every 64 hashes; the bits after the last hash become 0.
    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]);

    /// [`contains_bitmap`](Self::contains_bitmap) for a few hashes, at most 64, with their plan.
    #[inline]
    fn contains_few_bitmap(&self, _: Plan, hashes: &[u64]) -> u64 {
        let mut bitmap = [0];
        self.contains_bitmap(hashes, &mut bitmap[..hashes.len().min(1)]);
        bitmap[0]
    }

    /// [`contains`](Self::contains) for a few hashes, at most 64, with their plan.
    #[inline]
    fn contains_few(&self, plan: Plan, hashes: &[u64], found: &mut [bool]) {
        match plan {
            Plan::Single | Plan::Few => {
                let places = hashes.iter().copied().zip(found);
                self.contains_each(places, |place, found| *place = found);
            }
            _ => kernel::plain::unpack_few(self.contains_few_bitmap(plan, hashes), found),
        }
    }

    /// The keys that it was sized for.
    fn expected_keys(&self) -> usize;

    /// Bytes of its memory.
    fn memory_bytes(&self) -> usize;

    /// Whether it holds nothing.
    fn is_empty(&self) -> bool;

    /// The rate to expect with this many keys.
    fn false_positive_rate_at(&self, keys: usize) -> f64;

    /// Fill, number of keys and rate now.
    fn statistics(&self) -> Statistics;

    /// Whether this rate, that of now, is above the promised one, beyond what chance explains.
    fn is_overfull_at(&self, rate: f64) -> bool {
        rate > self.false_positive_rate_at(Statistics::overfull_at(self.expected_keys()))
    }

    /// A copy that holds at least every insert that happened before.
    fn try_clone(&self) -> Result<Self, BuildError>;

    /// The statistics that only this engine has.
    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>);

    /// Works by the kernels of `isa` from now on, if the engine has any.
    fn set_isa(&mut self, _: Isa) {}
}

/// The engine of a filter that a [`Builder`](crate::Builder) makes.
pub trait Planned: Engine {
    /// The settings of a builder that only this engine needs.
    type Options: Clone + Default + fmt::Debug;

    /// An empty engine of the size that a builder was asked for.
    fn build(request: Request, options: Self::Options) -> Result<Self, BuildError>;

    /// The expected keys of a filter into which `keys` keys come at once.
    fn at_once(keys: usize) -> usize {
        keys
    }
}

/// Inserts. One insert returns whether it changed the filter, and many return how many of them did.
/// (Filters that store copies of a key, [`CuckooFilter`](crate::CuckooFilter) and
/// [`DLeftFilter`](crate::DLeftFilter), always change.)
pub trait Insert {
    /// Why an insert is refused: [`InsertError`], or `Infallible` for a filter that takes every
    /// key.
    type Error: fmt::Debug + PartialEq + Into<InsertError> + AsMut<InsertError>;

    /// Inserts a hash.
    fn insert_hash(&self, hash: u64) -> Result<bool, Self::Error>;

    /// Inserts in order, up to the first hash that is refused. Passes the answer of each on.
    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> Result<usize, Self::Error>;

    /// [`insert_flagged`](Self::insert_flagged) without the answers.
    fn insert_source(&self, source: &impl Source) -> Result<usize, Self::Error> {
        self.insert_flagged(source, None)
    }

    /// The plan of a batch of keys that are not hashed yet.
    #[inline(always)]
    fn plan_of_keys(&self, keys: usize) -> Plan {
        Plan::of_inserts(keys)
    }

    /// The plan of a batch of hashes: single calls, or any other.
    #[inline(always)]
    fn plan_of_hashes(&self, _: usize) -> Plan {
        Plan::Pipeline
    }

    /// Removes all keys.
    fn clear(&mut self);
}

/// Inserts without atomics.
pub trait InsertMut: Engine {
    /// Inserts in order; returns how many changed the engine. Passes the answer of each on.
    fn insert_mut(&mut self, source: &impl Source, answer: Answer<'_>) -> usize;
}

/// Removes.
pub trait Remove {
    /// Removes a hash, or one copy of it; returns whether it was there.
    fn remove_hash(&self, hash: u64) -> bool;

    /// Removes in order; returns how many were there. Passes the answer for each on.
    fn remove_flagged(&self, source: &impl Source, answer: Answer<'_>) -> usize;
}

/// Counts keys: the filters that keep each key in a slot.
#[expect(clippy::len_without_is_empty, reason = "every engine has `is_empty`")]
pub trait Count {
    /// How often the hash is in the filter.
    fn count_hash(&self, hash: u64) -> usize;

    /// The number of keys in the filter, every copy counted.
    fn len(&self) -> usize;

    /// The number of slots.
    fn slots(&self) -> usize;

    /// How often one key can be inserted, if no other key takes its slots.
    fn max_copies(&self) -> usize;
}

/// Unites filters whose content does not depend on the order of the inserts.
pub trait Union {
    /// Fails if `other` cannot be united with this one: if layout or hasher differ.
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError>;

    /// Adds every key of `other` to this filter; returns whether that changed it.
    ///
    /// # Errors
    ///
    /// Fails if layout or hasher differ, or if a filter that grows has no room for the other one's
    /// keys.
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError>;

    /// Whether layout and hasher equal `other`'s, as [`union_from`](Self::union_from) requires.
    fn is_compatible(&self, other: &Self) -> bool {
        self.check_union(other).is_ok()
    }

    /// Whether layout, hasher and content are the same.
    fn same(&self, other: &Self) -> bool;
}

impl<E: Union, S: FilterHasher> Union for Filter<E, S> {
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        self.engine.check_union(&other.engine)?;
        if self.hasher.fingerprint() != other.hasher.fingerprint() {
            return Err(IncompatibleError::hasher());
        }
        Ok(())
    }

    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        self.check_union(other)?;
        self.engine.union_from(&other.engine)
    }

    fn same(&self, other: &Self) -> bool {
        self.hasher.fingerprint() == other.hasher.fingerprint() && self.engine.same(&other.engine)
    }
}

/// An engine that can be saved and loaded: a [`Filter`] over it is [`Stored`].
pub trait Encode: Engine {
    /// [`FixedSize`], or `()` if the size of a filter changes.
    type Size;

    /// Whether encoding blocks changes, so that a slow writer gets a copy.
    const HELD: bool;

    /// The length of a snapshot now.
    fn snapshot_bytes(&self) -> usize;

    /// Writes a snapshot.
    fn encode<O: Out>(&self, hashing: Hashing, out: &mut O) -> Result<(), O::Error>;

    /// Reads an engine of at most `limit` bytes. Tells `hasher` the record of the hasher, once, and
    /// fails if that does. (Without parameters of types, so that it is compiled once.)
    fn decode(input: &mut dyn Input, limit: usize, hasher: AskHasher<'_>) -> Result<Self, SnapshotErrorKind>;
}

impl<E: Encode, S: FilterHasher> Stored for Filter<E, S> {
    type Size = E::Size;

    fn encoded_bytes(&self) -> usize {
        self.engine.snapshot_bytes()
    }

    fn encode<O: Out>(&self, out: &mut O) -> Result<(), O::Error> {
        self.engine.encode(Hashing::of(&self.hasher), out)
    }

    #[cfg(feature = "std")]
    fn encode_unheld<O: Out<Error = std::io::Error>>(&self, out: &mut O) -> std::io::Result<()> {
        if !E::HELD {
            return self.encode(out);
        }
        let copy = self.engine.try_clone();
        let copy = copy.map_err(|error| std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))?;
        copy.encode(Hashing::of(&self.hasher), out)
    }
}

impl<E: Encode, S: FilterHasher> Loaded for Filter<E, S> {
    type Hasher = S;

    fn decode(
        input: &mut dyn Input,
        limit: usize,
        hasher: impl FnOnce(Hashing) -> Result<S, SnapshotErrorKind>,
    ) -> Result<Self, SnapshotErrorKind> {
        let (engine, hasher) = with_hasher(hasher, |hasher| E::decode(input, limit, hasher))?;
        Ok(Self::of(engine, hasher))
    }
}
