//! The kernels that hash many keys at once. `murmur3.rs` and `siphash.rs` are their specification.
//! `hash.rs` calls them.
//!
//! A kernel begins with the state that its hash function has before the first byte: two words for
//! Murmur3, four for SipHash.

#[cfg(lanebloom_x86_64)]
use super::hash_avx2;
#[cfg(lanebloom_avx512)]
use super::hash_avx512;
#[cfg(lanebloom_aarch64)]
use super::hash_neon;
use super::isa::Isa;
#[cfg(any(lanebloom_x86_64, lanebloom_aarch64))]
use super::isa::Level;
pub(crate) use super::plan::{GROUP, TILE};
use crate::words::arrays::as_chunks;
use core::mem::MaybeUninit;
use core::slice;

/// The kernels of a hash function with a state of `N` words, if an instruction set is faster than
/// one key after another. An `Isa` makes one: so the CPU has what the functions need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HashKernels<const N: usize> {
    /// The longest keys of `short`, in bytes: at most 16.
    pub(crate) most: usize,
    short: unsafe fn(&[u64; N], usize, &mut [u64], &[u64]),
    slices: Option<HashSlices<N>>,
}

type HashSlices<const N: usize> = unsafe fn(&[u64; N], &[[&[u8]; GROUP]], &mut [u64]);

impl HashKernels<2> {
    /// The kernels of `isa` for Murmur3.
    #[inline]
    pub(crate) fn murmur3(isa: Isa) -> Option<Self> {
        match isa.level() {
            #[cfg(lanebloom_x86_64)]
            Level::Avx2 => Some(Self {
                most: 16,
                short: hash_avx2::murmur3_short,
                slices: None,
            }),
            #[cfg(lanebloom_avx512)]
            Level::Avx512 => Some(Self {
                most: 16,
                short: hash_avx512::murmur3_short,
                slices: Some(hash_avx512::murmur3_slices),
            }),
            #[cfg(lanebloom_aarch64)]
            Level::Neon => Some(Self {
                most: hash_neon::MOST,
                short: hash_neon::murmur3_short,
                slices: None,
            }),
            _ => None,
        }
    }
}

impl HashKernels<4> {
    /// The kernels of `isa` for SipHash-1-3.
    #[inline]
    pub(crate) fn siphash13(isa: Isa) -> Option<Self> {
        match isa.level() {
            #[cfg(lanebloom_x86_64)]
            Level::Avx2 => Some(Self {
                most: 16,
                short: hash_avx2::siphash13_short,
                slices: None,
            }),
            #[cfg(lanebloom_avx512)]
            Level::Avx512 => Some(Self {
                most: 16,
                short: hash_avx512::siphash13_short,
                slices: Some(hash_avx512::siphash13_slices),
            }),
            _ => None,
        }
    }
}

impl<const N: usize> HashKernels<N> {
    /// Hashes keys of `width` bytes, at most `most`. `keys` has the first 8 bytes of
    /// each, little-endian, and becomes the hashes. `high` has the other bytes, or is empty.
    #[inline]
    pub(crate) fn short(self, start: &[u64; N], width: usize, keys: &mut [u64], high: &[u64]) {
        debug_assert!(width <= self.most && (width <= 8 || keys.len() == high.len()));
        // SAFETY: the `Isa` proved that the CPU has what the function needs.
        unsafe { (self.short)(start, width, keys, high) }
    }

    /// Hashes keys of any length, at most [`TILE`]. Returns whether it could: there may be no
    /// kernel, or a key whose bytes do not lie in memory.
    #[inline]
    pub(crate) fn slices<'a>(
        self,
        start: &[u64; N],
        keys: impl Iterator<Item = Option<&'a [u8]>>,
        out: &mut [u64],
    ) -> bool {
        let Some(kernel) = self.slices else {
            return false;
        };
        let mut slices = [const { MaybeUninit::uninit() }; TILE];
        let (mut len, mut ored) = (0, 0);
        for (slice, key) in slices.iter_mut().zip(keys) {
            let Some(key) = key else {
                return false;
            };
            slice.write(key);
            len += 1;
            ored |= key.len();
        }
        debug_assert_eq!(len, out.len());
        while len % GROUP != 0 {
            slices[len].write(&[0]);
            len += 1;
        }
        // SAFETY: `MaybeUninit<T>` has the layout of `T`, and the first `len` elements were
        // written.
        let keys: &[&[u8]] = unsafe { slice::from_raw_parts(slices.as_ptr().cast(), len) };
        const { assert!(SORTED_FROM_BYTES.is_power_of_two()) };
        if ored < SORTED_FROM_BYTES {
            // SAFETY: as in `short`.
            unsafe { kernel(start, as_chunks(keys).0, out) };
        } else {
            sorted(keys, out, |keys, out| {
                // SAFETY: as in `short`.
                unsafe { kernel(start, as_chunks(keys).0, out) }
            });
        }
        true
    }
}

/// From this length of a key on, in bytes, keys are sorted by length, so that a group has similar
/// ones. Sorting costs 15 ns a key.
const SORTED_FROM_BYTES: usize = 512;

/// Calls `hash` with the keys in the order of their lengths, and brings their hashes back.
#[inline(never)]
fn sorted(keys: &[&[u8]], out: &mut [u64], hash: impl FnOnce(&[&[u8]], &mut [u64])) {
    let mut order: [u8; TILE] = core::array::from_fn(|i| i as u8);
    let order = &mut order[..keys.len()];
    order.sort_unstable_by_key(|&i| keys[usize::from(i)].len());
    let (mut ordered, mut hashes) = ([&[][..]; TILE], [0; TILE]);
    for (key, &i) in ordered.iter_mut().zip(&*order) {
        *key = keys[usize::from(i)];
    }
    hash(&ordered[..keys.len()], &mut hashes[..keys.len()]);
    for (hash, &i) in hashes.iter().zip(&*order) {
        if let Some(out) = out.get_mut(usize::from(i)) {
            *out = *hash;
        }
    }
}
