//! The engine of a filter that grows: a chain of Bloom engines. Hashes go into the newest layer and
//! are searched for in all. Growth is lock-free, argued at [`ChainState`].

use super::steps::{Growth, Steps};
use crate::batch::{Answer, CHUNK, Chunks, HASHED, Source, for_each_absent, tell, unpack_into};
use crate::error::{BuildError, BuildErrorKind, IncompatibleError, InsertError, InsertErrorKind, NoLayer};
use crate::filter::parts::layers::{contains_any, fill_of_all};
use crate::filter::parts::lines::empty;
use crate::filter::parts::load_estimate::Gauge;
use crate::filter::traits::{Engine, Insert, Union};
use crate::filter::types::bloom::Bloom;
use crate::filter::{Figures, Filter};
use crate::geometry::layout::{LINE_BYTES, Layout};
use crate::geometry::sizing::Cell;
use crate::kernel::Isa;
use crate::words::once::OnceBox;
use crate::words::sync::{AtomicU64, Ordering};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

/// The engine of a [`ScalableBloom`](super::ScalableBloom): layers of bits, each for more keys at a
/// lower rate than the one before.
pub struct Chain {
    /// For all layers that there can be.
    entries: Box<[LayerEntry]>,
    /// See [`ChainState`].
    state: AtomicU64,
    /// The number of the layer that a thread makes ahead of need, or has made; 0 if no thread does.
    /// It only saves work in other threads.
    claimed: AtomicU64,
    pub(super) steps: Steps,
    /// The instruction set of all layers, also of those to come.
    isa: Isa,
    /// The builder's limit of bytes; a snapshot records it.
    pub(super) asked_bytes: usize,
    /// The limit that holds: the builder's, or a smaller one of the reader.
    pub(super) max_bytes: usize,
}

struct LayerEntry {
    layer: OnceBox<Layer>,
    /// The layer's layout, if it was computed when the filter was built.
    layout: Option<Layout>,
    /// The layout, if it was computed later; `None` if there is none.
    late: OnceBox<Option<Layout>>,
}

pub(super) struct Layer {
    /// Without a hasher: the chain hashes keys.
    pub(super) filter: Filter<Bloom, ()>,
    gauge: Gauge,
}

impl Layer {
    #[inline(always)]
    fn bloom(&self) -> &Bloom {
        &self.filter.engine
    }
}

/// The number of layers that are in use, times 4, plus the phase; in one word, so that a phase is
/// always that of the newest layer.
///
/// | phase | the newest layer takes keys | then |
/// |---|---|---|
/// | `OPEN` | yes | the next one is published when it is full |
/// | `FULL` | no, and there will be no next one | stays |
/// | `STARVED` | no: it is full, and the memory for the next one was refused | every insert tries again |
///
/// | operation | ordering | partner, and why |
/// |---|---|---|
/// | [`layers`](Chain::layers_now) | load `Acquire` | `change`: a thread that sees the number sees that the layers are there |
/// | `change` | compare-exchange `Release` | as above, for a layer that this thread made, or got by `OnceBox::get`. All changes are read-modify-write operations, so that those before continue to be seen. A failure is `Relaxed`: this thread touches nothing that the other one has published |
///
/// Lookups miss nothing, and that needs no ordering: the number only grows. If an insert happened
/// before a lookup, the lookup reads at least the insert's number, by coherence.
#[derive(Clone, Copy)]
pub(super) struct ChainState(u64);

pub(super) const OPEN: u64 = 0;
pub(super) const FULL: u64 = 1;
const STARVED: u64 = 2;

impl ChainState {
    pub(super) fn new(layers: usize, phase: u64) -> Self {
        Self((layers as u64) << 2 | phase)
    }
    #[inline(always)]
    fn layers(self) -> usize {
        (self.0 >> 2) as usize
    }
    #[inline(always)]
    fn phase(self) -> u64 {
        self.0 & 3
    }
}

/// How full the newest layer is, by its [`Gauge`], when the next one is made.
const AHEAD: f64 = 0.875;

/// The layers that are in use at a moment. There is at least one.
pub(super) struct Layers<'a> {
    entries: &'a [LayerEntry],
    pub(super) phase: u64,
}

impl<'a> Layers<'a> {
    #[inline(always)]
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &'a Layer> + ExactSizeIterator + use<'a> {
        self.entries
            .iter()
            .map(|entry| entry.layer.get().expect("a layer that is counted is there"))
    }

    #[inline(always)]
    fn newest(&self) -> &'a Layer {
        self.iter().next_back().expect("there is always a layer")
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline(always)]
    fn contains(&self, hash: u64) -> bool {
        self.iter().rev().any(|layer| layer.bloom().contains(hash))
    }
}

impl Chain {
    /// A chain without layers. `state` says how many layers the caller adds; the first ones have
    /// these layouts.
    pub(super) fn planned(
        steps: Steps,
        max_bytes: usize,
        layouts: &[Layout],
        state: ChainState,
    ) -> Result<Self, BuildError> {
        Ok(Self {
            entries: entries(layouts, steps.layers())?,
            state: AtomicU64::new(state.0),
            claimed: AtomicU64::new(0),
            steps,
            isa: Isa::best(),
            asked_bytes: max_bytes,
            max_bytes,
        })
    }

    /// A chain of one empty layer.
    pub(super) fn new(steps: Steps, max_bytes: usize) -> Result<Self, BuildError> {
        steps.check()?;
        let layouts = steps.layouts(max_bytes)?;
        let chain = Self::planned(steps, max_bytes, &layouts, ChainState::new(1, OPEN))?;
        chain.put(0, chain.empty(0, layouts[0])?)?;
        Ok(chain)
    }

    #[inline(always)]
    pub(super) fn layers_now(&self) -> Layers<'_> {
        let state = ChainState(self.state.load(Ordering::Acquire));
        Layers {
            entries: &self.entries[..state.layers()],
            phase: state.phase(),
        }
    }

    pub(super) fn max_layers(&self) -> usize {
        if self.max_bytes == usize::MAX {
            return self.entries.len();
        }
        (0..).take_while(|&layer| self.room(layer).is_ok()).count()
    }

    /// The layout of the layer with this number, computed once. `None` if it is beyond addressable
    /// memory, or out of reach by a rounding.
    fn layout(&self, number: usize) -> Option<Layout> {
        let entry = self.entries.get(number)?;
        match (entry.layout, entry.late.get()) {
            (Some(layout), _) => Some(layout),
            (None, Some(&solved)) => solved,
            (None, None) => {
                let solved = self.steps.layout(number).ok();
                // Without memory to keep it, it is computed again.
                let _ = entry.late.set(solved);
                solved
            }
        }
    }

    /// The layout of the layer with this number, or why there cannot be one.
    pub(super) fn room(&self, number: usize) -> Result<Layout, NoLayer> {
        let layout = self.layout(number).ok_or(NoLayer::Layers { limit: number })?;
        if self.max_bytes == usize::MAX {
            return Ok(layout);
        }
        let layouts = (0..=number).filter_map(|number| self.layout(number));
        let needed = layouts.fold(0usize, |sum, layout| sum.saturating_add(layout.blocks * LINE_BYTES));
        let limit = self.max_bytes;
        if needed > limit {
            return Err(NoLayer::Bytes { needed, limit });
        }
        Ok(layout)
    }

    /// Sets the state, unless the chain has more than `layers` layers by now.
    fn change(&self, layers: usize, new: ChainState) {
        let mut state = ChainState::new(layers, OPEN);
        while state.layers() == layers {
            match self
                .state
                .compare_exchange(state.0, new.0, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(other) => state = ChainState(other),
            }
        }
    }

    /// Makes these bits the layer with this number, unless there is one.
    pub(super) fn put(&self, number: usize, bloom: Bloom) -> Result<(), BuildError> {
        let gauge = match self.steps.growth {
            Growth::ByKeys => Gauge::new(&bloom, self.steps.keys_of(number)),
            Growth::AtHalfFull => Gauge::at_half(&bloom),
        };
        let filter = Filter::of(bloom, ());
        let put = self.entries[number].layer.set(Layer { filter, gauge });
        put.ok_or(out_of_memory(size_of::<Layer>()))
    }

    fn empty(&self, number: usize, layout: Layout) -> Result<Bloom, BuildError> {
        let mut bloom = empty(layout, self.steps.keys_of(number))?;
        bloom.set_isa(self.isa);
        Ok(bloom)
    }
}

/// Growth.
impl Chain {
    /// Checks how full the newest of `layers` is, and grows the chain if necessary. Inserts call it
    /// for the hashes that are due by the gauge.
    #[cold]
    #[inline(never)]
    fn look(&self, layers: &Layers<'_>, hash: u64) {
        let newest = layers.newest();
        let level = newest.gauge.level(newest.bloom(), hash);
        let next = layers.len();
        if level >= 1.0 {
            // Several threads may make it at once: none waits for the one that began it ahead of
            // need and was interrupted.
            let _ = self.grow(next); // If it fails, the next inserts report it.
        } else if level >= AHEAD && self.claim(next) && self.make(next).is_err() {
            self.unclaim();
        }
    }

    /// Whether this thread should make the layer with this number ahead of need: it is not there,
    /// and no other thread makes it.
    fn claim(&self, number: usize) -> bool {
        // Relaxed: it only saves work.
        number < self.entries.len()
            && !self.has_layer(number)
            && self.claimed.swap(number as u64, Ordering::Relaxed) != number as u64
    }

    fn unclaim(&self) {
        // Relaxed: as in `claim`.
        self.claimed.store(0, Ordering::Relaxed);
    }

    /// Goes on to the layer with this number, since the one before it is full. If there can be no
    /// such layer, the chain takes no more keys.
    fn grow(&self, number: usize) -> Result<(), NoLayer> {
        let made = self.make(number);
        let new = match &made {
            Ok(()) => ChainState::new(number + 1, OPEN),
            Err(NoLayer::OutOfMemory) => ChainState::new(number, STARVED),
            Err(_) => ChainState::new(number, FULL),
        };
        self.change(number, new);
        made
    }

    fn has_layer(&self, number: usize) -> bool {
        let entry = self.entries.get(number);
        entry.is_some_and(|entry| entry.layer.get().is_some())
    }

    /// Makes the layer with this number, unless it is there.
    fn make(&self, number: usize) -> Result<(), NoLayer> {
        if self.has_layer(number) {
            return Ok(());
        }
        let layout = self.room(number)?;
        let made = self.empty(number, layout).and_then(|bloom| self.put(number, bloom));
        made.map_err(|_| NoLayer::OutOfMemory)
    }

    /// Goes on to the next layer, if that is possible now.
    #[cold]
    #[inline(never)]
    fn make_room(&self, layers: &Layers<'_>) -> Result<(), NoLayer> {
        let next = layers.len();
        if layers.phase == FULL {
            self.room(next)?;
        }
        // One thread at a time tries again.
        if !self.has_layer(next) && !self.claim(next) {
            return Err(NoLayer::OutOfMemory);
        }
        self.grow(next).inspect_err(|_| self.unclaim())
    }

    /// Notes that the newest layer is full if the reader's limit says so: otherwise the filter
    /// would take some more keys after each load. For exclusive access.
    pub(super) fn close_if_full(&mut self) {
        let layers = self.layers_now();
        let (newest, count) = (layers.newest(), layers.len());
        if newest.gauge.level(newest.bloom(), 0) >= 1.0 && self.room(count).is_err() {
            self.state = AtomicU64::new(ChainState::new(count, FULL).0);
        }
    }
}

/// Empty entries, the first ones with these layouts.
fn entries(layouts: &[Layout], len: usize) -> Result<Box<[LayerEntry]>, BuildError> {
    let mut entries = Vec::new();
    entries
        .try_reserve_exact(len)
        .map_err(|_| out_of_memory(len * size_of::<LayerEntry>()))?;
    entries.extend((0..len).map(|layer| LayerEntry {
        layer: OnceBox::new(),
        layout: layouts.get(layer).copied(),
        late: OnceBox::new(),
    }));
    Ok(entries.into_boxed_slice())
}

fn full(why: NoLayer, inserted: usize) -> InsertError {
    let kind = InsertErrorKind::NoLayer(why);
    InsertError { kind, inserted }
}

fn out_of_memory(bytes: usize) -> BuildError {
    BuildError(BuildErrorKind::OutOfMemory { bytes })
}

impl Engine for Chain {
    const NAME: &'static str = "ScalableBloom";

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        self.layers_now().contains(hash)
    }

    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        let layers = self.layers_now();
        for (hashes, found) in hashes.chunks(CHUNK).zip(found.chunks_mut(CHUNK / 64)) {
            contains_any(layers.iter().rev().map(Layer::bloom), hashes, found);
        }
    }

    fn expected_keys(&self) -> usize {
        let layers = self.layers_now();
        (0..layers.len()).fold(0, |sum, layer| sum.saturating_add(self.steps.keys_of(layer)))
    }

    fn memory_bytes(&self) -> usize {
        self.layers_now().iter().map(|layer| layer.bloom().memory_bytes()).sum()
    }

    fn is_empty(&self) -> bool {
        self.layers_now().iter().all(|layer| layer.bloom().is_empty())
    }

    /// The keys fill one layer after another, also layers that are not there yet.
    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let (mut left, mut missed) = (keys, 1.0);
        for number in 0..self.entries.len() {
            let Some(layout) = self.room(number).ok().filter(|_| left > 0) else {
                break;
            };
            let taken = left.min(self.steps.keys_of(number));
            missed *= 1.0 - layout.rate_of(Cell::Bit, taken);
            left -= taken;
        }
        1.0 - missed
    }

    fn fill_ratio(&self) -> f64 {
        let blooms = self.layers_now().iter().map(Layer::bloom);
        fill_of_all(blooms.map(|one| (one.fill_ratio(), one)))
    }

    fn figures(&self) -> Figures {
        let (mut len, mut missed) = (0, 1.0);
        let blooms = self.layers_now().iter().map(Layer::bloom);
        let fill_ratio = fill_of_all(blooms.map(|one| {
            let figures = one.figures();
            len += figures.len;
            missed *= 1.0 - figures.false_positive_rate;
            (figures.fill_ratio, one)
        }));
        Figures {
            fill_ratio,
            len,
            false_positive_rate: 1.0 - missed,
        }
    }

    /// The promise is that of all layers together, of those to come too.
    fn is_overfull(&self) -> bool {
        self.current_false_positive_rate() > self.steps.rate
    }

    fn estimated_len(&self) -> usize {
        self.layers_now()
            .iter()
            .map(|layer| layer.bloom().estimated_len())
            .sum()
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        let layers = self.layers_now();
        let layouts: Vec<Layout> = self.entries.iter().map_while(|entry| entry.layout).collect();
        let copy = Self {
            entries: entries(&layouts, self.entries.len())?,
            state: AtomicU64::new(ChainState::new(layers.len(), layers.phase).0),
            claimed: AtomicU64::new(0),
            ..*self
        };
        for (number, layer) in layers.iter().enumerate() {
            copy.put(number, layer.bloom().try_clone()?)?;
        }
        Ok(copy)
    }

    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("layers", &self.layers_now().len())
            .field("max_layers", &self.max_layers())
            .field("max_false_positive_rate", &self.steps.rate)
            .field("fill_ratio", &self.fill_ratio());
    }

    fn set_isa(&mut self, isa: Isa) {
        self.isa = isa;
        for entry in &mut self.entries {
            if let Some(layer) = entry.layer.get_mut() {
                layer.filter.engine.set_isa(isa);
            }
        }
    }
}

impl Chain {
    /// Inserts hashes, the first of which is number `start`: up to `N` per load of the layers, and
    /// fewer if a layer would get too many before the next check.
    fn insert_chunk<const N: usize>(
        &self,
        start: usize,
        hashes: &[u64],
        answer: &mut Answer<'_>,
    ) -> Result<usize, InsertError> {
        let (mut at, mut new) = (0, 0);
        // The hashes in no older layer, and whether each changed the newest.
        let (mut absent, mut first_seen) = ([0; N], [false; N]);
        while at < hashes.len() {
            let layers = self.layers_now();
            if layers.phase != OPEN {
                let known = hashes[at..].iter().take_while(|&&hash| layers.contains(hash)).count();
                if let Some(answer) = answer {
                    (at..at + known).step_by(64).for_each(|at| answer(start + at, &[0]));
                }
                at += known;
                if at < hashes.len() {
                    let inserted = start + at;
                    self.make_room(&layers).map_err(|why| full(why, inserted))?;
                }
                continue;
            }
            let Layer { filter, gauge } = layers.newest();
            let part = &hashes[at..];
            let part = &part[..part.len().min(gauge.interval()).min(N)];

            let mut found = [0; HASHED / 64];
            let found = &mut found[..part.len().div_ceil(64)];
            let mut len = 0;
            contains_any(layers.iter().rev().skip(1).map(Layer::bloom), part, found);
            for_each_absent(found, part.len(), |i| {
                absent[len] = part[i];
                len += 1;
            });
            let (absent, first_seen) = (&absent[..len], &mut first_seen[..len]);
            new += filter
                .engine
                .insert_flagged(&absent, Some(&mut unpack_into(self.isa, first_seen)));

            if let Some(answer) = answer {
                let mut changed = [0; HASHED / 64];
                let mut flags = first_seen.iter();
                for_each_absent(found, part.len(), |i| {
                    let flag = *flags.next().expect("one for each absent");
                    changed[i / 64] |= u64::from(flag) << (i % 64);
                });
                answer(start + at, &changed[..found.len()]);
            }
            at += part.len();
            let mut inserted = absent.iter().zip(first_seen).filter(|(_, first_seen)| **first_seen);
            if let Some((&hash, _)) = inserted.find(|(hash, _)| gauge.is_due(**hash)) {
                self.look(&layers, hash);
            }
        }
        Ok(new)
    }
}

impl Insert for Chain {
    type Answer = Result<bool, InsertError>;

    #[inline]
    fn insert_hash(&self, hash: u64) -> Result<bool, InsertError> {
        loop {
            let layers = self.layers_now();
            if (layers.len() > 1 || layers.phase != OPEN) && layers.contains(hash) {
                return Ok(false);
            }
            if layers.phase == OPEN {
                let newest = layers.newest();
                let changed = newest.bloom().insert_hash(hash);
                if changed && newest.gauge.is_due(hash) {
                    self.look(&layers, hash);
                }
                return Ok(changed);
            }
            self.make_room(&layers).map_err(|why| full(why, 0))?;
        }
    }

    fn insert_flagged(&self, source: &impl Source, mut answer: Answer<'_>) -> Result<usize, InsertError> {
        let (mut chunks, mut at, mut new) = (source.chunks_of(0..source.len(), HASHED), 0, 0);
        while let Some(hashes) = chunks.next() {
            // Clearing the space for a whole chunk takes longer than the work on few keys.
            let inserted = if hashes.len() <= 64 {
                self.insert_chunk::<64>(at, hashes, &mut answer)
            } else {
                self.insert_chunk::<HASHED>(at, hashes, &mut answer)
            };
            match inserted {
                Ok(inserted) => new += inserted,
                Err(full) => {
                    let left = (full.inserted..source.len()).step_by(64);
                    left.for_each(|at| tell(&mut answer, at, &[0]));
                    return Err(full);
                }
            }
            at += hashes.len();
        }
        Ok(new)
    }

    fn clear(&mut self) {
        let (first, others) = self.entries.split_first_mut().expect("there is always a layer");
        others.iter_mut().for_each(|entry| entry.layer.take());
        let first = first.layer.get_mut().expect("there is always a layer");
        first.filter.engine.clear();
        self.state = AtomicU64::new(ChainState::new(1, OPEN).0);
        self.claimed = AtomicU64::new(0);
    }
}

impl Union for Chain {
    fn same(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.layers_now(), other.layers_now());
        let mut pairs = ours.iter().zip(theirs.iter());
        self.steps == other.steps
            && ours.len() == theirs.len()
            && pairs.all(|(ours, theirs)| ours.bloom().same(theirs.bloom()))
    }

    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        if self.steps != other.steps {
            return Err(IncompatibleError::differs("growth", other.steps, self.steps));
        }
        Ok(())
    }

    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        let theirs = other.layers_now();
        let layers = theirs.len();
        for number in self.layers_now().len()..layers {
            self.make(number).map_err(|kind| {
                IncompatibleError(format!(
                    "there is no room for the other filter's {layers} layers here: {kind}"
                ))
            })?;
            self.change(number, ChainState::new(number + 1, OPEN));
        }
        let mut changed = false;
        for (ours, theirs) in self.layers_now().iter().zip(theirs.iter()) {
            changed |= ours.bloom().union_from(theirs.bloom())?;
        }
        Ok(changed)
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use crate::ScalableBloom;
    use alloc::string::ToString;

    /// A thread that has seen a layer full which others have left since changes nothing.
    #[test]
    fn a_late_look_takes_no_layer_back() {
        let filter = ScalableBloom::builder().max_layers(4).build().unwrap();
        let chain = &filter.engine;
        (1..3).try_for_each(|layer| chain.grow(layer)).unwrap();
        assert_eq!(filter.layers().len(), 3);
        chain.change(1, ChainState::new(2, OPEN));
        chain.change(2, ChainState::new(2, FULL));
        assert_eq!(chain.grow(1), Ok(()));
        assert!(filter.layers().len() == 3 && !filter.is_full());
    }

    /// A layer that no allocator grants: inserts say so, each tries again, and the first that
    /// succeeds goes on.
    #[test]
    fn memory_that_is_refused_is_asked_for_again() {
        let mut filter = ScalableBloom::builder().expected_keys(1).build().unwrap();
        filter.engine.entries[1].layout.as_mut().unwrap().blocks = 1 << 50;
        assert_eq!(filter.insert("a"), Ok(true));
        for _ in 0..2 {
            let error = filter.insert("b").unwrap_err();
            assert!(error.is_out_of_memory() && filter.is_full());
            let text = "the filter is full: the allocation of the next layer failed";
            assert_eq!(error.to_string(), text);
        }
        assert_eq!(filter.insert("a"), Ok(false));
        filter.engine.entries[1].layout.as_mut().unwrap().blocks = 1;
        assert_eq!(filter.insert("b"), Ok(true));
        assert!(!filter.is_full() && filter.layers().len() == 2);
    }
}
