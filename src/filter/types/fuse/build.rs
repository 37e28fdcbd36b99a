//! The build of a binary fuse filter: hashes in, cells out.
//!
//! ```text
//! sort the hashes by shard                 a copy of them; all threads
//! for each shard, on any thread:
//!     for each seed until one succeeds:
//!         sort the mixed hashes by segment so that the rest stays in caches
//!         for each cell of each hash:      (number of hashes, their xor)
//!             add the hash
//!         while a cell has one hash:       its xor is that hash
//!             take the hash out of its cells, remember the cell
//!         if hashes are left: the next seed
//!     for remembered cells, last first:    other cells do not change later
//!         cell = fingerprint xor the hash's other cells
//! ```
//!
//! The cells depend on the set of hashes alone, neither on their order nor on the threads.
//!
//! Memory beside the hashes: the copy (8 bytes each), and for each thread about 19 bytes for each
//! hash of one shard. A filter of one shard needs no copy.

use crate::error::BuildError;
use crate::geometry::fuse::{FuseLayout, FuseProbe, SEEDS, mixed, multiplier};
use crate::words::cells::pack;
use crate::words::memory::Words;
use alloc::format;
use alloc::vec::Vec;

/// Shards of at most this many hashes are not sorted by segment: their cells are in L2 anyway.
const UNSORTED: usize = 1 << 14;

/// The hashes of a shard are worth a search for duplicates if the largest shard has this share of
/// them more than the mean.
const UNEVEN: f64 = 1.05;

/// What a builder was asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) bits: u32,
    pub(super) cells_per_key: u32,
    /// Whether the threads of rayon's pool build it.
    pub(super) parallel: bool,
}

/// A filter that was built: seeds and cells as they are saved, the number of distinct hashes.
pub(super) struct Built {
    pub(super) layout: FuseLayout,
    pub(super) words: Words<u64>,
    pub(super) keys: usize,
}

/// Why a shard has no cells yet.
enum Failed {
    /// Some hashes are equal.
    Duplicates,
    /// No seed succeeded.
    Seeds,
    OutOfMemory(usize),
}

/// Builds the filter of these hashes, some of which may be equal.
pub(super) fn build(hashes: &[u64], shape: Shape) -> Result<Built, BuildError> {
    match attempt(hashes, shape) {
        Err(Failed::Duplicates) => {
            let mut distinct = allocate(hashes.len()).map_err(Failed::into_error)?;
            let distinct = distinct.get_mut(..hashes.len()).expect("as long");
            distinct.copy_from_slice(hashes);
            sort(distinct, shape.parallel);
            let len = dedup(distinct);
            attempt(&distinct[..len], shape).map_err(Failed::into_error)
        }
        result => result.map_err(Failed::into_error),
    }
}

impl Failed {
    #[cold]
    fn into_error(self) -> BuildError {
        match self {
            Self::OutOfMemory(bytes) => BuildError::out_of_memory(bytes),
            Self::Seeds | Self::Duplicates => BuildError::new(format!(
                "no filter was found with {SEEDS} seeds: the hashes are not random, or chosen to collide"
            )),
        }
    }
}

/// Words of zeros.
fn allocate(len: usize) -> Result<Words<u64>, Failed> {
    Words::new(len).ok_or(Failed::OutOfMemory(len.saturating_mul(8)))
}

/// Moves each distinct hash of a sorted list to its front; returns their number.
fn dedup(sorted: &mut [u64]) -> usize {
    let mut len = 0;
    for i in 0..sorted.len() {
        if len == 0 || sorted[len - 1] != sorted[i] {
            sorted[len] = sorted[i];
            len += 1;
        }
    }
    len
}

fn sort(hashes: &mut [u64], parallel: bool) {
    #[cfg(feature = "rayon")]
    if parallel {
        return rayon::slice::ParallelSliceMut::par_sort_unstable(hashes);
    }
    let _ = parallel;
    hashes.sort_unstable();
}

fn attempt(hashes: &[u64], shape: Shape) -> Result<Built, Failed> {
    let shards = FuseLayout::shards_for(hashes.len());
    // Only its number of shards is needed before they are counted.
    let plan = |most| FuseLayout::plan(shape.bits, shape.cells_per_key, shards, most).ok_or(Failed::Duplicates);
    let copy;
    let (sorted, ends): (&[u64], Vec<usize>) = if shards == 1 {
        (hashes, Vec::from([hashes.len()]))
    } else {
        let layout = plan(1)?;
        let (words, ends) = sort_by_shard(hashes, &layout, shape.parallel)?;
        copy = words;
        (&copy, ends)
    };
    let starts = core::iter::once(0).chain(ends.iter().copied());
    let ranges: Vec<_> = starts.zip(&ends).map(|(start, &end)| start..end).collect();
    let most = ranges.iter().map(|range| range.len()).max().unwrap_or(0);
    if most as f64 > UNEVEN * hashes.len().div_ceil(shards) as f64 {
        return Err(Failed::Duplicates);
    }
    let layout = plan(most)?;
    let too_large = Failed::OutOfMemory(usize::MAX);
    let mut words = allocate(layout.words().ok_or(too_large)?)?;
    let (seeds, cells) = words.bytes_mut().split_at_mut(layout.seed_bytes());
    let cells = &mut cells[..layout.shard_bytes() * shards];
    let work = |scratch: &mut Scratch, (range, (seed, bytes)): (&core::ops::Range<usize>, (&mut u8, &mut [u8]))| {
        *seed = scratch.fill(&layout, &sorted[range.clone()], bytes)?;
        Ok(())
    };
    for_each(&ranges, seeds, cells, layout.shard_bytes(), shape.parallel, work)?;
    let keys = hashes.len();
    Ok(Built { layout, words, keys })
}

/// Calls `work` with each shard's range, seed and cells.
fn for_each(
    ranges: &[core::ops::Range<usize>],
    seeds: &mut [u8],
    cells: &mut [u8],
    shard_bytes: usize,
    parallel: bool,
    work: impl Fn(&mut Scratch, (&core::ops::Range<usize>, (&mut u8, &mut [u8]))) -> Result<(), Failed> + Sync + Send,
) -> Result<(), Failed> {
    #[cfg(feature = "rayon")]
    if parallel {
        use rayon::prelude::*;
        let places = seeds.par_iter_mut().zip(cells.par_chunks_mut(shard_bytes));
        let shards = ranges.par_iter().zip(places).with_max_len(1);
        return shards.try_for_each_init(Scratch::default, work);
    }
    let _ = parallel;
    let places = seeds.iter_mut().zip(cells.chunks_mut(shard_bytes));
    let mut scratch = Scratch::default();
    ranges
        .iter()
        .zip(places)
        .try_for_each(|shard| work(&mut scratch, shard))
}

/// The hashes in the order of their shards, and where each shard ends.
fn sort_by_shard(hashes: &[u64], layout: &FuseLayout, parallel: bool) -> Result<(Words<u64>, Vec<usize>), Failed> {
    let (shards, probe) = (layout.shards as usize, FuseProbe::of(layout));
    let count = |part: &&[u64]| {
        let mut counts = alloc::vec![0usize; shards];
        part.iter().for_each(|&hash| counts[probe.shard(hash)] += 1);
        counts
    };
    let mut sorted = allocate(hashes.len())?;
    // A part for each thread.
    let threads = threads(parallel);
    let parts: Vec<&[u64]> = hashes.chunks(hashes.len().div_ceil(threads).max(1)).collect();
    let counts: Vec<Vec<usize>> = map(&parts, parallel, count);
    // Each shard's place is divided among the parts.
    let mut places: Vec<Vec<&mut [u64]>> = parts.iter().map(|_| Vec::with_capacity(shards)).collect();
    let (mut rest, mut ends, mut end) = (&mut sorted[..], Vec::with_capacity(shards), 0);
    for shard in 0..shards {
        for (counts, places) in counts.iter().zip(&mut places) {
            let (place, after) = rest.split_at_mut(counts[shard]);
            places.push(place);
            rest = after;
            end += counts[shard];
        }
        ends.push(end);
    }
    let move_part = |(part, mut places): (&[u64], Vec<&mut [u64]>)| {
        let mut filled = alloc::vec![0usize; shards];
        for &hash in part {
            let shard = probe.shard(hash);
            places[shard][filled[shard]] = hash;
            filled[shard] += 1;
        }
    };
    let moves: Vec<_> = parts.into_iter().zip(places).collect();
    consume(moves, parallel, move_part);
    Ok((sorted, ends))
}

fn threads(parallel: bool) -> usize {
    #[cfg(feature = "rayon")]
    if parallel {
        return rayon::current_num_threads();
    }
    let _ = parallel;
    1
}

fn map<T: Sync, R: Send>(items: &[T], parallel: bool, of: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    #[cfg(feature = "rayon")]
    if parallel {
        use rayon::prelude::*;
        return items.par_iter().map(of).collect();
    }
    let _ = parallel;
    items.iter().map(of).collect()
}

fn consume<T: Send>(items: Vec<T>, parallel: bool, each: impl Fn(T) + Sync + Send) {
    #[cfg(feature = "rayon")]
    if parallel {
        use rayon::prelude::*;
        return items.into_par_iter().for_each(each);
    }
    let _ = parallel;
    items.into_iter().for_each(each);
}

/// The memory for the build of one shard, kept for the next one.
#[derive(Default)]
struct Scratch {
    /// The mixed hashes by segment; then the cells in the order in which they had one hash.
    list: Option<Words<u64>>,
    /// The xor of the hashes of each cell; then its fingerprint.
    cells: Option<Words<u64>>,
    /// The number of hashes of each cell.
    counts: Vec<u8>,
}

/// A shard while it is built.
struct Shard<'a> {
    probe: FuseProbe,
    segments: usize,
    list: &'a mut [u64],
    cells: &'a mut [u64],
    counts: &'a mut [u8],
}

impl Scratch {
    /// Fills `bytes` with the cells of the shard of these hashes; returns its seed.
    fn fill(&mut self, layout: &FuseLayout, hashes: &[u64], bytes: &mut [u8]) -> Result<u8, Failed> {
        let cells = layout.shard_cells() as usize;
        for words in [&mut self.list, &mut self.cells] {
            if words.as_ref().is_none_or(|words| words.len() <= cells) {
                *words = Some(allocate(cells + 1)?);
            }
        }
        if self.counts.len() < cells {
            let more = cells - self.counts.len();
            self.counts
                .try_reserve_exact(more)
                .map_err(|_| Failed::OutOfMemory(more))?;
            self.counts.resize(cells, 0);
        }
        let mut shard = Shard {
            probe: FuseProbe::of(layout),
            segments: layout.segments as usize,
            list: &mut self.list.as_mut().expect("allocated")[..=cells],
            cells: &mut self.cells.as_mut().expect("allocated")[..cells],
            counts: &mut self.counts[..cells],
        };
        for seed in 0..SEEDS {
            let done = if layout.cells_per_key == 3 {
                shard.solve::<3>(hashes, multiplier(seed))
            } else {
                shard.solve::<4>(hashes, multiplier(seed))
            };
            if done {
                pack(shard.cells, layout.bits, bytes);
                return Ok(seed);
            }
            if seed == 0 && shard.has_duplicates(hashes) {
                return Err(Failed::Duplicates);
            }
        }
        Err(Failed::Seeds)
    }
}

impl Shard<'_> {
    /// Whether two of the hashes are equal.
    fn has_duplicates(&mut self, hashes: &[u64]) -> bool {
        // More than there are cells have no solution.
        let Some(list) = self.list.get_mut(..hashes.len()) else {
            return true;
        };
        list.copy_from_slice(hashes);
        list.sort_unstable();
        list.windows(2).any(|pair| pair[0] == pair[1])
    }

    /// Gives each cell its fingerprint, if this multiplier succeeds.
    fn solve<const A: usize>(&mut self, hashes: &[u64], multiplier: u64) -> bool {
        if self.cells.len() < hashes.len() || !self.add::<A>(hashes, multiplier) {
            return false;
        }
        let done = self.peel::<A>();
        if done < hashes.len() {
            return false;
        }
        self.assign::<A>(done);
        true
    }

    #[inline(always)]
    fn places<const A: usize>(probe: &FuseProbe, mixed: u64) -> [usize; A] {
        let first = probe.first_cell(mixed);
        let mut places = [first as usize; A];
        for (place, i) in places[1..].iter_mut().zip(1..) {
            *place = probe.next_cell::<A>(first, mixed, i) as usize;
        }
        places
    }

    /// Adds the hashes to their cells. Fails if a cell has too many to count.
    fn add<const A: usize>(&mut self, hashes: &[u64], multiplier: u64) -> bool {
        self.cells.fill(0);
        self.counts.fill(0);
        if UNSORTED >= hashes.len() {
            return self.add_each::<A>(hashes.iter().map(|&hash| mixed(hash, multiplier)));
        }
        self.sort_by_segment(hashes, multiplier);
        let list = core::mem::take(&mut self.list);
        let added = self.add_each::<A>(list[..hashes.len()].iter().copied());
        self.list = list;
        added
    }

    #[inline(always)]
    fn add_each<const A: usize>(&mut self, mixed: impl Iterator<Item = u64>) -> bool {
        let mut most = 0;
        for mixed in mixed {
            for place in Self::places::<A>(&self.probe, mixed) {
                let count = self.counts[place];
                most |= count;
                self.counts[place] = count.wrapping_add(1);
                self.cells[place] ^= mixed;
            }
        }
        // A cell has three on the average, and 128 only if hashes are equal or not random.
        most < 128
    }

    /// Writes the mixed hashes to the list, in the order of the segments of their first cells.
    fn sort_by_segment(&mut self, hashes: &[u64], multiplier: u64) {
        let probe = self.probe;
        let segment = |mixed| probe.segment(probe.first_cell(mixed));
        let mut ends = alloc::vec![0usize; self.segments];
        for &hash in hashes {
            ends[segment(mixed(hash, multiplier))] += 1;
        }
        let mut start = 0;
        for end in &mut ends {
            start += core::mem::replace(end, start);
        }
        for &hash in hashes {
            let mixed = mixed(hash, multiplier);
            let end = &mut ends[segment(mixed)];
            self.list[*end] = mixed;
            *end += 1;
        }
    }

    /// Takes hashes out that are alone in a cell, until there are none. Lists these cells in order,
    /// and returns their number. A cell that is listed keeps its hash.
    fn peel<const A: usize>(&mut self) -> usize {
        let Self {
            probe,
            list,
            cells,
            counts,
            ..
        } = self;
        // Of the list, the first part is done, and the last one is a queue. (With a stack, each
        // cell waits for the one before: 22 ns per hash in place of 13, Zen 5.) A cell is found
        // once, so they fit.
        let (mut done, mut next, mut end) = (0, 0, 0);
        for segment in 0..cells.len() >> probe.log_segment {
            let first = segment << probe.log_segment;
            for (cell, &count) in (first..).zip(&counts[first..first + (1 << probe.log_segment)]) {
                list[end] = cell as u64;
                end += usize::from(count == 1);
            }
            while next < end {
                let cell = list[next] as usize;
                next += 1;
                if counts[cell] == 0 {
                    continue;
                }
                list[done] = cell as u64;
                done += 1;
                let mixed = cells[cell];
                for place in Self::places::<A>(probe, mixed) {
                    let count = counts[place] - 1;
                    counts[place] = count;
                    cells[place] ^= mixed;
                    // Without a branch, which would be mispredicted once for each hash.
                    list[end] = place as u64;
                    end += usize::from(count == 1);
                }
                cells[cell] = mixed;
            }
        }
        done
    }

    /// Gives the listed cells their fingerprints, the last one first. Of the other cells of its
    /// hash each is listed after it, and has its fingerprint, or is never listed, and is 0.
    fn assign<const A: usize>(&mut self, done: usize) {
        for &cell in self.list[..done].iter().rev() {
            let cell = cell as usize;
            let mixed = core::mem::take(&mut self.cells[cell]);
            let places = Self::places::<A>(&self.probe, mixed);
            let fingerprint = self.probe.fingerprint(mixed);
            self.cells[cell] = places.iter().fold(fingerprint, |sum, &place| sum ^ self.cells[place]);
        }
    }
}
