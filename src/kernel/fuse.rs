//! The lookups of a binary fuse filter (`geometry/fuse.rs`): single ones, and batches by tiles of
//! 64 hashes. The places of a tile come from a loop that is compiled for each instruction set; the
//! cells are loaded one by one.

use super::isa::{Isa, Vectorized};
use super::plan::{GROUP, Prefetching, TILE};
use crate::geometry::fuse::{FuseProbe, mixed};
use crate::words::bits::Hint;
use crate::words::cells::load;

/// The cells of a filter, to be looked up.
#[derive(Clone, Copy)]
pub(crate) struct FuseCells<'a> {
    probe: &'a FuseProbe,
    /// The seed of each shard.
    multipliers: &'a [u64],
    /// From the first cell on.
    bytes: &'a [u8],
}

/// The cells of a tile's hashes, counted from the first one of their shard, and the fingerprints.
/// Of 32 bits each: a vector holds twice as many. (Zen 4, a prototype at 512 KiB, ns per hash: 2.3,
/// with 64 bits 3.1; a million keys 2.7 and 3.7.) It begins a line of the cache: vectors that lie
/// across two lines take longer. `benches/record/static-zen4.md` has what else was tried.
#[repr(align(64))]
struct Tile<const A: usize> {
    /// The first byte of the shard.
    shards: [u64; TILE],
    cells: [[u32; TILE]; A],
    fingerprints: [u32; TILE],
}

impl<'a> FuseCells<'a> {
    /// The cells in `bytes`, which begin with the seeds.
    ///
    /// # Panics
    ///
    /// If there are not as many bytes as the layout has.
    #[inline(always)]
    pub(crate) fn new(probe: &'a FuseProbe, multipliers: &'a [u64], bytes: &'a [u8]) -> Self {
        assert!(bytes.len() >= probe.bytes);
        Self {
            probe,
            multipliers,
            bytes: &bytes[probe.start..],
        }
    }

    /// Whether a hash may be there.
    #[inline(always)]
    pub(crate) fn contains(self, hash: u64) -> bool {
        let probe = self.probe;
        match (probe.cells_per_key, probe.bits) {
            (3, 8) => self.contains_by::<3, 1>(hash),
            (3, 16) => self.contains_by::<3, 2>(hash),
            _ => self.contains_any(hash),
        }
    }

    // A call, so that an inlined lookup is small.
    #[inline(never)]
    fn contains_any(self, hash: u64) -> bool {
        match self.probe.cells_per_key {
            3 => self.contains_by::<3, 8>(hash),
            _ => self.contains_by::<4, 8>(hash),
        }
    }

    /// By `A` cells of `N` bytes, or of any number of bits if `N` is 8.
    #[inline(always)]
    fn contains_by<const A: usize, const N: usize>(self, hash: u64) -> bool {
        let probe = self.probe;
        let (multiplier, start) = match self.multipliers {
            &[multiplier] => (multiplier, 0),
            multipliers => {
                let shard = probe.shard(hash);
                (multipliers[shard], shard * probe.shard_bytes)
            }
        };
        let mixed = mixed(hash, multiplier);
        let first = probe.first_cell(mixed);
        let mut found = probe.fingerprint(mixed);
        for i in 0..A {
            let cell = match i {
                0 => first,
                i => probe.next_cell::<A>(first, mixed, i),
            };
            // SAFETY: the cell is one of the layout's, as in `matches`.
            found ^= unsafe { self.cell::<N>(start, cell) };
        }
        found & self.mask::<N>() == 0
    }

    #[inline(always)]
    fn mask<const N: usize>(self) -> u64 {
        if N == 8 { self.probe.mask } else { u64::MAX }
    }

    /// The byte of a shard in which a cell begins, and its first bit there.
    #[inline(always)]
    fn place<const N: usize>(self, cell: u64) -> (usize, u64) {
        if N == 8 {
            let bit = cell * u64::from(self.probe.bits);
            ((bit / 8) as usize, bit % 8)
        } else {
            (cell as usize * N, 0)
        }
    }

    /// The value of a cell of the shard that begins with byte `start`, under higher bits of any
    /// value.
    ///
    /// # Safety
    ///
    /// `start` is the first byte of a shard of the layout, and `cell` is below its number of cells.
    #[inline(always)]
    unsafe fn cell<const N: usize>(self, start: usize, cell: u64) -> u64 {
        let (byte, bit) = self.place::<N>(cell);
        // SAFETY: `new` has checked that all cells are there, and 8 bytes after them.
        unsafe { load::<N>(self.bytes, start + byte) >> bit }
    }

    /// Whether each hash may be there, as a bitmap.
    #[inline]
    pub(crate) fn contains_bitmap(self, isa: Isa, prefetching: Prefetching, hashes: &[u64], found: &mut [u64]) {
        let contains = match (self.probe.cells_per_key, self.probe.bits) {
            (3, 8) => Self::bitmap_by::<3, 1>,
            (3, 16) => Self::bitmap_by::<3, 2>,
            (3, 32) => Self::bitmap_by::<3, 4>,
            (3, _) => Self::bitmap_by::<3, 8>,
            (_, 8) => Self::bitmap_by::<4, 1>,
            (_, 16) => Self::bitmap_by::<4, 2>,
            (_, 32) => Self::bitmap_by::<4, 4>,
            _ => Self::bitmap_by::<4, 8>,
        };
        contains(self, isa, prefetching, hashes, found);
    }

    fn bitmap_by<const A: usize, const N: usize>(
        self,
        isa: Isa,
        prefetching: Prefetching,
        hashes: &[u64],
        found: &mut [u64],
    ) {
        let mut ring = [const {
            Tile::<A> {
                shards: [0; TILE],
                cells: [[0; TILE]; A],
                fingerprints: [0; TILE],
            }
        }; 2];
        // How many hashes of the tile are to be prefetched.
        let place = |hashes: &[u64], tile: &mut Tile<A>| {
            isa.vectorized(FindCells {
                probe: self.probe,
                multipliers: self.multipliers,
                hashes,
                tile,
            });
            prefetching.hint().map_or(0, |_| hashes.len())
        };
        let mut next = hashes.chunks(TILE);
        let first = next.next().map_or(0, |hashes| place(hashes, &mut ring[0]));
        (0..first)
            .step_by(GROUP)
            .for_each(|group| self.prefetch::<A, N>(&ring[0], group));
        for (i, (hashes, found)) in hashes.chunks(TILE).zip(found).enumerate() {
            let ahead = next.next().map_or(0, |hashes| place(hashes, &mut ring[(i + 1) % 2]));
            let (tile, after) = (&ring[i % 2], &ring[(i + 1) % 2]);
            *found = self.matches::<A, N>(tile, hashes.len(), |group| {
                if group < ahead {
                    self.prefetch::<A, N>(after, group);
                }
            });
        }
    }

    /// Prefetches the lines of a group of the next tile, between the lookups of two groups: those
    /// of a tile at once would wait for room for that many misses.
    #[inline(always)]
    fn prefetch<const A: usize, const N: usize>(self, tile: &Tile<A>, group: usize) {
        for i in group..group + GROUP {
            let shard = self.bytes.as_ptr().wrapping_add(tile.shards[i] as usize);
            for cells in &tile.cells {
                Hint::L2.prefetch(shard.wrapping_add(self.place::<N>(cells[i].into()).0));
            }
        }
    }

    /// Calls `before` with the first hash of each group.
    #[inline(always)]
    fn matches<const A: usize, const N: usize>(self, tile: &Tile<A>, len: usize, before: impl Fn(usize)) -> u64 {
        let mask = self.mask::<N>();
        let mut answers = 0;
        for group in (0..len.min(TILE)).step_by(GROUP) {
            before(group);
            // Unrolled: to shift by a number that varies, or two words by one, takes longer than
            // the loads.
            let mut answer = 0;
            for i in 0..GROUP {
                let mut found = u64::from(tile.fingerprints[group + i]);
                for cells in &tile.cells {
                    // SAFETY: `FindCells` has written a shard of the layout and a cell of it: a
                    // first one is below the span, and another one in one of the segments after it.
                    // (What was not written is 0.)
                    found ^= unsafe { self.cell::<N>(tile.shards[group + i] as usize, cells[group + i].into()) };
                }
                answer |= u64::from(found & mask == 0) << i;
            }
            answers |= answer << group;
        }
        answers & u64::MAX >> (TILE - len.clamp(1, TILE))
    }
}

/// Finds the cells of at most a tile of hashes.
struct FindCells<'a, const A: usize> {
    probe: &'a FuseProbe,
    multipliers: &'a [u64],
    hashes: &'a [u64],
    tile: &'a mut Tile<A>,
}

impl<const A: usize> Vectorized for FindCells<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self {
            probe,
            multipliers,
            hashes,
            tile,
        } = self;
        // (A copy, which no store to the tile can change.)
        let probe = *probe;
        let len = hashes.len().min(TILE);
        #[repr(align(64))]
        struct Aligned([u64; TILE]);
        let mut of_hash = Aligned([multipliers[0]; TILE]);
        if multipliers.len() > 1 {
            let places = of_hash.0.iter_mut().zip(&mut tile.shards);
            for (&hash, (multiplier, at)) in hashes.iter().zip(places) {
                let shard = probe.shard(hash);
                *multiplier = multipliers[shard];
                *at = (shard * probe.shard_bytes) as u64;
            }
        }
        // A shard has at most 2^24 cells.
        for i in 0..len {
            let mixed = mixed(hashes[i], of_hash.0[i]);
            let first = probe.first_cell(mixed);
            tile.fingerprints[i] = probe.fingerprint(mixed) as u32;
            tile.cells[0][i] = first as u32;
            for (number, cells) in (1..).zip(&mut tile.cells[1..]) {
                cells[i] = probe.next_cell::<A>(first, mixed, number) as u32;
            }
        }
    }
}
