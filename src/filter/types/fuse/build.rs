//! The build of a binary fuse filter: hashes in, cells out.
//!
//! ```text
//! sort the hashes by shard           a copy of them; all threads
//! for each shard, on any thread:
//!     for each seed until one succeeds:
//!         for each cell of each hash:
//!             add the hash's index   cell = (number of hashes, xor of indexes)
//!         while a cell has one hash:
//!             take that index out of the hash's cells, list it
//!         if hashes are left: the next seed
//!     for listed hashes, last first: other cells do not change later
//!         cell where it was alone = fingerprint xor the hash's cells
//! ```
//!
//! The cells depend on the set of hashes alone, neither on their order nor on the threads: which
//! hash is alone in a cell depends on the set, and so does the order of cells.
//!
//! Memory beside the hashes: the filter, for each thread 9 bytes for each hash of one shard, and
//! the copy (8 bytes each). A few shards need no copy: each of them searches all hashes for
//! its own. Then hashes that come twice are sorted beforehand, and leave a bit for each hash.

use super::table::{Fuse, OwnCells};
use crate::chunks::ones;
use crate::error::BuildError;
use crate::geometry::fuse::{FuseLayout, FuseProbe, MOST_CELLS, SEEDS, mixed, multiplier};
use crate::words::bits::Hint;
use crate::words::cells::pack;
use crate::words::memory::{Word, Words};
use alloc::format;
use alloc::vec::Vec;
#[cfg(feature = "rayon")]
use std::sync::{Mutex, PoisonError};

/// The hashes of a shard are worth a search for duplicates if the largest shard has this share of
/// them more than the mean.
const UNEVEN: f64 = 1.05;

/// Up to this many shards, each searches all hashes for its own.
const MOST_SEARCHED: usize = 6;

/// The requested shape.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) bits: u32,
    pub(super) cells_per_key: u32,
    /// Whether the threads of rayon's pool build it.
    pub(super) parallel: bool,
}

/// Why a shard has no cells yet.
enum Failed {
    /// Some hashes are equal.
    Duplicates,
    /// No seed succeeded.
    Seeds,
    OutOfMemory(usize),
}

/// The hashes of a filter.
#[derive(Clone, Copy)]
struct Hashes<'a> {
    all: &'a [u64],
    /// A bit for each hash that equals one before it. Empty if there are none.
    repeats: &'a [u64],
    /// The number of distinct ones.
    len: usize,
    is_sorted: bool,
}

/// Builds the filter of these hashes, some of which may be equal.
pub(super) fn build(hashes: &[u64], shape: Shape) -> Result<Fuse<OwnCells>, BuildError> {
    let once = Hashes {
        all: hashes,
        repeats: &[],
        len: hashes.len(),
        is_sorted: false,
    };
    let built = match attempt(once, shape) {
        Err(Failed::Duplicates) => attempt_distinct(once, shape),
        result => result,
    };
    built.map_err(Failed::into_error)
}

/// [`attempt`] with each hash once.
fn attempt_distinct(hashes: Hashes<'_>, shape: Shape) -> Result<Fuse<OwnCells>, Failed> {
    let mut sorted = Vec::new();
    let refused = |_| Failed::OutOfMemory(size_of_val(hashes.all));
    sorted.try_reserve_exact(hashes.all.len()).map_err(refused)?;
    sorted.extend_from_slice(hashes.all);
    sort(&mut sorted, shape.parallel);
    let repeats;
    let distinct = if FuseLayout::shards_for(hashes.len) > MOST_SEARCHED {
        sorted.dedup();
        Hashes {
            all: &sorted,
            len: sorted.len(),
            is_sorted: true,
            ..hashes
        }
    } else {
        // The copy would take as much as the build of one shard: what it tells is kept in bits.
        repeats = repeated(hashes.all, sorted)?;
        Hashes {
            repeats: &repeats,
            len: hashes.len - ones(&repeats),
            ..hashes
        }
    };
    attempt(distinct, shape)
}

/// A bit for each hash that equals one before it. Takes the hashes in order, too.
fn repeated(hashes: &[u64], mut sorted: Vec<u64>) -> Result<Words<u64>, Failed> {
    // The values that come several times, moved to the front.
    let (mut several, mut at) = (0, 0);
    while let Some(&value) = sorted.get(at) {
        let times = sorted[at..].iter().take_while(|&&hash| hash == value).count();
        sorted[several] = value;
        several += usize::from(times > 1);
        at += times;
    }
    sorted.truncate(several);
    let mut seen: Words<u64> = allocate(several.div_ceil(64).max(1))?;
    let mut repeats: Words<u64> = allocate(hashes.len().div_ceil(64).max(1))?;
    for (i, hash) in hashes.iter().enumerate() {
        if let Ok(number) = sorted.binary_search(hash) {
            repeats[i / 64] |= (seen[number / 64] >> (number % 64) & 1) << (i % 64);
            seen[number / 64] |= 1 << (number % 64);
        }
    }
    Ok(repeats)
}

impl Failed {
    #[cold]
    fn into_error(self) -> BuildError {
        match self {
            Self::OutOfMemory(bytes) => BuildError::out_of_memory(bytes),
            Self::Seeds => BuildError::new(format!(
                "no filter was found with {SEEDS} seeds: the hashes are not random, or chosen to collide"
            )),
            // After all of those went.
            Self::Duplicates => BuildError::new(format!(
                "the hashes are not random: by their upper 32 bits, a shard of the filter has more than {UNEVEN} times its share"
            )),
        }
    }
}

/// Words of zeros.
fn allocate<T: Word>(len: usize) -> Result<Words<T>, Failed> {
    Words::new(len).ok_or(Failed::OutOfMemory(len.saturating_mul(size_of::<T>())))
}

fn sort(hashes: &mut [u64], parallel: bool) {
    #[cfg(feature = "rayon")]
    if parallel {
        return rayon::slice::ParallelSliceMut::par_sort_unstable(hashes);
    }
    let _ = parallel;
    hashes.sort_unstable();
}

/// The hashes of a shard.
#[derive(Clone, Copy)]
struct Members<'a> {
    shard: usize,
    /// The hashes that are searched for those of the shard, without the repeats.
    among: &'a [u64],
    repeats: &'a [u64],
    len: usize,
}

fn attempt(hashes: Hashes<'_>, shape: Shape) -> Result<Fuse<OwnCells>, Failed> {
    let Hashes { all, repeats, .. } = hashes;
    let shards = FuseLayout::shards_for(hashes.len);
    // Only its number of shards is needed before they are counted.
    let plan = |most| FuseLayout::plan(shape.bits, shape.cells_per_key, shards, most).ok_or(Failed::Duplicates);
    let probe = FuseProbe::of(&plan(1)?);
    let copy;
    let members: Vec<Members<'_>> = if hashes.is_sorted {
        let end = |shard| all.partition_point(|&hash| probe.shard(hash) <= shard);
        of_ends(all, (0..shards).map(end))
    } else if shards <= MOST_SEARCHED {
        let mut lens = [0; MOST_SEARCHED];
        match shards {
            1 => lens[0] = hashes.len,
            _ => {
                let kept = (0..).zip(all).filter(|&(i, _)| !is_repeat(repeats, i));
                kept.for_each(|(_, &hash)| lens[probe.shard(hash)] += 1);
            }
        }
        let of_len = |(shard, &len)| Members {
            shard,
            among: all,
            repeats,
            len,
        };
        lens[..shards].iter().enumerate().map(of_len).collect()
    } else {
        // A part for each thread.
        let parts: Vec<&[u64]> = all.chunks(all.len().div_ceil(threads(shape.parallel))).collect();
        let counts = count(&parts, &probe, shards, shape.parallel);
        copy = sort_by_shard(&parts, &counts, &probe, shape.parallel)?;
        let mut end = 0;
        let ends = (0..shards).map(|shard| {
            end += counts.iter().map(|counts| counts[shard]).sum::<usize>();
            end
        });
        of_ends(&copy, ends)
    };
    let most = members.iter().map(|members| members.len).max().unwrap_or(0);
    if most as f64 > UNEVEN * hashes.len.div_ceil(shards) as f64 {
        return Err(Failed::Duplicates);
    }
    let layout = plan(most)?;
    let too_large = Failed::OutOfMemory(usize::MAX);
    let mut words: Words<u64> = allocate(layout.words().ok_or(too_large)?)?;
    let (seeds, cells) = words.bytes_mut().split_at_mut(layout.seed_bytes());
    let cells = &mut cells[..layout.shard_bytes() * shards];
    let work = |scratch: &mut Scratch, (members, (seed, bytes)): (&Members<'_>, (&mut u8, &mut [u8]))| {
        *seed = scratch.fill(&layout, *members, bytes)?;
        Ok(())
    };
    for_each(&members, seeds, cells, layout.shard_bytes(), shape.parallel, work)?;
    Ok(Fuse::of_known_seeds(OwnCells(words), layout, hashes.len))
}

/// The shards of hashes in their order, which end at these places.
fn of_ends(hashes: &[u64], ends: impl Iterator<Item = usize>) -> Vec<Members<'_>> {
    let mut start = 0;
    let members = ends.enumerate().map(|(shard, end)| {
        let among = &hashes[core::mem::replace(&mut start, end)..end];
        Members {
            shard,
            among,
            repeats: &[],
            len: among.len(),
        }
    });
    members.collect()
}

/// Whether this hash equals one before it.
#[inline(always)]
fn is_repeat(repeats: &[u64], index: usize) -> bool {
    repeats
        .get(index / 64)
        .is_some_and(|word| word >> (index % 64) & 1 == 1)
}

/// Calls `work` with each shard's hashes, seed and cells.
fn for_each(
    members: &[Members<'_>],
    seeds: &mut [u8],
    cells: &mut [u8],
    shard_bytes: usize,
    parallel: bool,
    work: impl Fn(&mut Scratch, (&Members<'_>, (&mut u8, &mut [u8]))) -> Result<(), Failed> + Sync + Send,
) -> Result<(), Failed> {
    let mut shards = members.iter().zip(seeds.iter_mut().zip(cells.chunks_mut(shard_bytes)));
    #[cfg(feature = "rayon")]
    if parallel {
        use rayon::prelude::*;
        // Each thread keeps its memory, and takes one shard after another. (An iterator over the
        // shards would divide them down to one, each with memory of its own.)
        let shards = Mutex::new(shards);
        let left = || shards.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = (0..threads(parallel)).into_par_iter().with_max_len(1);
        return threads.try_for_each(|_| {
            let mut scratch = Scratch::default();
            let built = core::iter::from_fn(|| left().next()).try_for_each(|shard| work(&mut scratch, shard));
            // After a failure, the other threads take no more.
            built.inspect_err(|_| left().by_ref().for_each(drop))
        });
    }
    let _ = parallel;
    let mut scratch = Scratch::default();
    shards.try_for_each(|shard| work(&mut scratch, shard))
}

/// For each part of the hashes, how many of them lie in each shard.
fn count(parts: &[&[u64]], probe: &FuseProbe, shards: usize, parallel: bool) -> Vec<Vec<usize>> {
    map(parts.to_vec(), parallel, |part| {
        let mut counts = alloc::vec![0usize; shards];
        part.iter().for_each(|&hash| counts[probe.shard(hash)] += 1);
        counts
    })
}

/// The hashes in the order of their shards.
fn sort_by_shard(
    parts: &[&[u64]],
    counts: &[Vec<usize>],
    probe: &FuseProbe,
    parallel: bool,
) -> Result<Words<u64>, Failed> {
    let shards = counts[0].len();
    let mut sorted = allocate(parts.iter().map(|part| part.len()).sum())?;
    // Each shard's place is divided among the parts.
    let mut places: Vec<Vec<&mut [u64]>> = parts.iter().map(|_| Vec::with_capacity(shards)).collect();
    let mut rest = &mut sorted[..];
    for shard in 0..shards {
        for (counts, places) in counts.iter().zip(&mut places) {
            let (place, after) = rest.split_at_mut(counts[shard]);
            places.push(place);
            rest = after;
        }
    }
    let move_part = |(part, mut places): (&[u64], Vec<&mut [u64]>)| {
        let mut filled = alloc::vec![0usize; shards];
        for &hash in part {
            let shard = probe.shard(hash);
            places[shard][filled[shard]] = hash;
            filled[shard] += 1;
        }
    };
    map(parts.iter().copied().zip(places).collect(), parallel, move_part);
    Ok(sorted)
}

fn threads(parallel: bool) -> usize {
    #[cfg(feature = "rayon")]
    if parallel {
        return rayon::current_num_threads();
    }
    let _ = parallel;
    1
}

/// The results of `of` for each item, on all threads.
fn map<T: Send, R: Send>(items: Vec<T>, parallel: bool, of: impl Fn(T) -> R + Sync + Send) -> Vec<R> {
    #[cfg(feature = "rayon")]
    if parallel {
        use rayon::prelude::*;
        return items.into_par_iter().map(of).collect();
    }
    let _ = parallel;
    items.into_iter().map(of).collect()
}

/// The memory for the build of one shard, kept for the next one.
#[derive(Default)]
struct Scratch(Option<Words<u32>>);

/// A shard while it is built.
struct Shard<'a> {
    probe: FuseProbe,
    members: Members<'a>,
    multiplier: u64,
    /// Cells that have one hash, in the order in which they were found. From the front on, hashes
    /// take their places: an index, and above it the number of the cell that it was alone in.
    list: &'a mut [u32],
    /// The xor of the indexes of a cell's hashes, and above it their number. Then fingerprints.
    cells: &'a mut [u32],
}

/// Shards of more hashes than this prefetch: their hashes and cells are beyond L2.
const MOST_CACHED: usize = 1 << 16;

/// How many steps ahead of its use a hash is prefetched, and how many its cells are. (Zen 4, a
/// million hashes, ns per hash without and with: to take the hashes out 29 to 43 and 16, to give
/// fingerprints 12 to 20 and 11, to add them 7 and 6. In L2 the whole build takes 16 and 20. The
/// xor of the hashes themselves in cells of 9 bytes, with a list of 4, takes 25 in place of 28 at a
/// million, and 15 bytes per hash.)
const HASH_AHEAD: usize = 16;
const CELLS_AHEAD: usize = 8;

/// The bits of an index: a shard has fewer hashes than cells.
const INDEX_BITS: u32 = MOST_CELLS.ilog2();
const INDEX: u32 = (1 << INDEX_BITS) - 1;

impl Scratch {
    /// Fills `bytes` with the cells of a shard; returns its seed.
    fn fill(&mut self, layout: &FuseLayout, members: Members<'_>, bytes: &mut [u8]) -> Result<u8, Failed> {
        let cells = layout.shard_cells() as usize;
        // More hashes than cells have no solution.
        if members.len >= cells || members.among.len() > 1 << INDEX_BITS {
            return Err(Failed::Duplicates);
        }
        let len = 2 * cells + 1;
        if self.0.as_ref().is_none_or(|words| words.len() < len) {
            self.0 = Some(allocate(len)?);
        }
        let words = &mut self.0.as_mut().expect("allocated")[..len];
        let (list, cells) = words.split_at_mut(cells + 1);
        let mut shard = Shard {
            probe: FuseProbe::of(layout),
            members,
            multiplier: 0,
            list,
            cells,
        };
        for seed in 0..SEEDS {
            shard.multiplier = multiplier(seed);
            let done = if layout.cells_per_key == 3 {
                shard.solve::<3>()
            } else {
                shard.solve::<4>()
            };
            if done {
                pack(shard.cells, layout.bits, bytes);
                return Ok(seed);
            }
            // By chance, one shard in some thousand comes here.
            if seed == 1 && shard.has_duplicates() {
                return Err(Failed::Duplicates);
            }
        }
        Err(Failed::Seeds)
    }
}

impl Shard<'_> {
    /// Whether two of the hashes are equal.
    fn has_duplicates(&mut self) -> bool {
        self.list_all();
        let hash = |&index: &u32| self.members.among[index as usize];
        let list = &mut self.list[..self.members.len];
        list.sort_unstable_by_key(hash);
        list.windows(2).any(|pair| hash(&pair[0]) == hash(&pair[1]))
    }

    /// Gives each cell its fingerprint, if this multiplier succeeds.
    fn solve<const A: usize>(&mut self) -> bool {
        self.list_all();
        if !self.add::<A>() || self.peel::<A>() < self.members.len {
            return false;
        }
        self.assign::<A>();
        true
    }

    /// Lists the indexes of the shard's hashes.
    fn list_all(&mut self) {
        let Members {
            shard, among, repeats, ..
        } = self.members;
        let mut len = 0;
        if among.len() == self.members.len {
            return self.list.iter_mut().zip(0..).for_each(|(place, index)| *place = index);
        }
        for (index, &hash) in (0..).zip(among) {
            self.list[len] = index;
            len += usize::from(self.probe.shard(hash) == shard && !is_repeat(repeats, index as usize));
        }
    }

    /// The bits of a hash that select its cells.
    #[inline(always)]
    fn mixed(&self, index: u32) -> u64 {
        mixed(self.members.among[index as usize], self.multiplier)
    }

    #[inline(always)]
    fn places<const A: usize>(&self, mixed: u64) -> [usize; A] {
        let first = self.probe.first_cell(mixed);
        let mut places = [first as usize; A];
        for (place, i) in places[1..].iter_mut().zip(1..) {
            *place = self.probe.next_cell::<A>(first, mixed, i) as usize;
        }
        places
    }

    #[inline(always)]
    fn prefetch_hash(&self, index: u32) {
        Hint::L1.prefetch(self.members.among.as_ptr().wrapping_add(index as usize));
    }

    #[inline(always)]
    fn prefetch_cells<const A: usize>(&self, index: u32) {
        for place in self.places::<A>(self.mixed(index)) {
            Hint::L1.prefetch(self.cells.as_ptr().wrapping_add(place));
        }
    }

    /// Adds the listed hashes to their cells. Fails if a cell has too many to count.
    fn add<const A: usize>(&mut self) -> bool {
        self.cells.fill(0);
        let mut most = 0;
        for i in 0..self.members.len {
            let index = self.list[i];
            for place in self.places::<A>(self.mixed(index)) {
                let cell = &mut self.cells[place];
                most |= *cell;
                *cell = (*cell ^ index).wrapping_add(1 << INDEX_BITS);
            }
        }
        // A cell has three on the average, and 128 only if hashes are equal or not random.
        most >> INDEX_BITS < 128
    }

    /// Takes hashes out that are alone in a cell, until there are none. Lists them in order, and
    /// returns their number. Cells without a hash are 0.
    fn peel<const A: usize>(&mut self) -> usize {
        // The first part of the list is done, and the last one is a queue. (With a stack, each cell
        // waits for the one before: 22 ns per hash in place of 13, Zen 5.) A cell is found once, so
        // they fit.
        let (mut done, mut next, mut end) = (0, 0, 0);
        let (log_segment, is_large) = (self.probe.log_segment, self.members.len > MOST_CACHED);
        for segment in 0..self.cells.len() >> log_segment {
            let first = segment << log_segment;
            for cell in first..first + (1 << log_segment) {
                self.list[end] = cell as u32;
                end += usize::from(self.cells[cell] >> INDEX_BITS == 1);
            }
            while next < end {
                if is_large && next + HASH_AHEAD < end {
                    self.prefetch_hash(self.cells[self.list[next + HASH_AHEAD] as usize] & INDEX);
                    self.prefetch_cells::<A>(self.cells[self.list[next + CELLS_AHEAD] as usize] & INDEX);
                }
                let found = self.list[next] as usize;
                next += 1;
                let cell = self.cells[found];
                if cell == 0 {
                    continue;
                }
                let index = cell & INDEX;
                let mut entry = index;
                for (i, place) in (0..).zip(self.places::<A>(self.mixed(index))) {
                    entry |= if place == found { i << INDEX_BITS } else { 0 };
                    let cell = (self.cells[place] ^ index).wrapping_sub(1 << INDEX_BITS);
                    self.cells[place] = cell;
                    // Without a branch, which would be mispredicted once for each hash.
                    self.list[end] = place as u32;
                    end += usize::from(cell >> INDEX_BITS == 1);
                }
                self.list[done] = entry;
                done += 1;
            }
        }
        done
    }

    /// Gives the cells of the listed hashes their fingerprints, the last one first. Each other cell
    /// of a hash belongs to one that was listed after it, and has its fingerprint, or to none, and
    /// is 0.
    fn assign<const A: usize>(&mut self) {
        let is_large = self.members.len > MOST_CACHED;
        for i in (0..self.members.len).rev() {
            if is_large && i >= HASH_AHEAD {
                self.prefetch_hash(self.list[i - HASH_AHEAD] & INDEX);
                self.prefetch_cells::<A>(self.list[i - CELLS_AHEAD] & INDEX);
            }
            let entry = self.list[i];
            let mixed = self.mixed(entry & INDEX);
            let places = self.places::<A>(mixed);
            let fingerprint = self.probe.fingerprint(mixed) as u32;
            let sum = places.iter().fold(fingerprint, |sum, &place| sum ^ self.cells[place]);
            self.cells[places[(entry >> INDEX_BITS) as usize]] = sum;
        }
    }
}
