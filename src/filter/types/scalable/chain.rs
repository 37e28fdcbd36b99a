//! The engine of a filter that grows: a chain of Bloom engines. Hashes go into the newest layer and
//! are searched for in all. Growth is lock-free, argued at [`ChainState`].

use super::steps::{Steps, Taken, without_hint};
use crate::chunks::{Answer, CHUNK, HASHED, Source, for_each_absent, tell_unchanged, unpack_into};
use crate::error::{BuildError, IncompatibleError, InsertError, InsertErrorKind, NoLayer};
use crate::filter::methods::inserts::into_ok;
use crate::filter::parts::lines::OwnWords;
use crate::filter::parts::load_estimate::LoadEstimate;
use crate::filter::parts::several::{contains_any, fill_of_all};
use crate::filter::traits::{Engine, Insert, InsertMut, Union};
use crate::filter::types::bloom::Bloom;
use crate::filter::types::bloom::engine::empty;
use crate::filter::{Filter, Statistics};
use crate::geometry::layout::Layout;
use crate::geometry::rates;
use crate::geometry::sizing::Unit;
use crate::kernel::{Isa, Plan};
use crate::words::once::OnceBox;
use crate::words::sync::{AtomicU64, Ordering};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use core::ops::BitOr;

/// The engine of a [`ScalableBloom`](super::ScalableBloom): layers of bits.
pub struct Scalable {
    /// For all layers that there can be.
    entries: Box<[OnceBox<Layer>]>,
    /// See [`ChainState`].
    state: AtomicU64,
    /// The number of the layer that a thread makes ahead of need, or has made; 0 if no thread does.
    /// It only saves work in other threads.
    claimed: AtomicU64,
    /// The number of keys to expect in all; 0 if it is not known. `Relaxed`: a plan by an older
    /// hint is as good as one that was made a moment ago. For the last plan see [`ChainState`].
    hint: AtomicU64,
    pub(super) steps: Steps,
    /// The instruction set of all layers, also of those to come.
    isa: Isa,
    /// The builder's limit of bytes; a snapshot records it.
    pub(super) asked_bytes: usize,
    /// The limit that holds: the builder's, or that of the reader or the owner.
    pub(super) max_bytes: usize,
}

pub(super) struct Layer {
    /// Without a hasher: the chain hashes keys.
    pub(super) filter: Filter<Bloom, ()>,
    estimate: LoadEstimate,
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
/// | `FULL` | no, and there can be no next one | stays, up to another hint or limit |
/// | `STARVED` | no: it is full, and the memory for the next one was refused | every insert tries again |
/// | `DUE` | no: it is full, and hint, limit or reader have changed since | the next insert tries again |
///
/// | operation | ordering | partner, and why |
/// |---|---|---|
/// | [`layers`](Scalable::layers_now) | load `Acquire` | `change`: a thread that sees the number sees that the layers are there |
/// | `change` | compare-exchange `AcqRel` | as above, for a layer that this thread made, or got by `OnceBox::get`. All changes are read-modify-write operations, so that those before continue to be seen. A failure is `Relaxed`: this thread touches nothing that the other one has published |
/// | `set_hint` | `fetch_or` of nothing, `AcqRel`, after the hint | `change` to `FULL`. The first of both makes the other thread see what it wrote: the hint, which makes the chain `DUE`, or `FULL`, which `set_hint` makes `DUE` |
///
/// Lookups miss nothing, and that needs no ordering: the number only grows. If an insert happened
/// before a lookup, the lookup reads at least the insert's number, by coherence.
#[derive(Clone, Copy)]
pub(super) struct ChainState(u64);

pub(super) const OPEN: u64 = 0;
const FULL: u64 = 1;
const STARVED: u64 = 2;
const DUE: u64 = 3;

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

/// How full the newest layer is, by its [`LoadEstimate`], when the next one is made.
const AHEAD: f64 = 0.875;

/// From this load on a precise look decides whether the layer is full.
const NEARLY_FULL: f64 = 0.97;

/// A layer is full when it has one key in `EXCESS` more than its keys. So a filter that gets as
/// many keys as it was built for stays as it is, though the load is an estimate. This is a part of
/// the headroom of [`Steps`].
const EXCESS: usize = 64;

/// Layers of at most this many lines count with the rate that they have, if it is above the planned
/// one: which keys they got decides it. The layers after them get a smaller share. (By planned
/// rates alone, a filter that began with 8 keys ended with up to 1.19 times its rate.)
const MEASURED_LINES: usize = 256;

/// The layers that are in use at a moment. There is at least one.
pub(super) struct Layers<'a> {
    entries: &'a [OnceBox<Layer>],
    pub(super) phase: u64,
}

impl<'a> Layers<'a> {
    #[inline(always)]
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &'a Layer> + ExactSizeIterator + use<'a> {
        self.entries
            .iter()
            .map(|entry| entry.get().expect("a layer that is counted is there"))
    }

    /// Whether there can be no more keys, as far as it is known.
    pub(super) fn are_full(&self) -> bool {
        matches!(self.phase, FULL | STARVED)
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

impl Scalable {
    /// A chain of these layers, the oldest first: at least one.
    pub(super) fn of(steps: Steps, hint: usize, max_bytes: usize, layers: Vec<Bloom>) -> Result<Self, BuildError> {
        let chain = Self {
            entries: entries(steps.limit().max(layers.len()))?,
            state: AtomicU64::new(ChainState::new(layers.len(), OPEN).0),
            claimed: AtomicU64::new(0),
            hint: AtomicU64::new(hint as u64),
            steps,
            isa: Isa::best(),
            asked_bytes: max_bytes,
            max_bytes,
        };
        for (number, layer) in layers.into_iter().enumerate() {
            chain.put(number, layer)?;
        }
        Ok(chain)
    }

    /// A chain of one empty layer.
    pub(super) fn new(steps: Steps, hint: usize, max_bytes: usize) -> Result<Self, BuildError> {
        steps.check()?;
        let first = without_hint(hint, |hint| {
            let (layout, keys) = steps.first(hint, max_bytes)?;
            empty(layout, keys)
        })?;
        Self::of(steps, hint, max_bytes, Vec::from([first]))
    }

    #[inline(always)]
    pub(super) fn layers_now(&self) -> Layers<'_> {
        let state = ChainState(self.state.load(Ordering::Acquire));
        Layers {
            entries: &self.entries[..state.layers()],
            phase: state.phase(),
        }
    }

    pub(super) fn hint(&self) -> usize {
        self.hint.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_hint(&self, keys: usize) {
        let before = self.hint.swap(keys as u64, Ordering::Relaxed);
        let state = ChainState(self.state.fetch_or(0, Ordering::AcqRel));
        if state.phase() == FULL && before != keys as u64 {
            self.change(state.layers(), ChainState::new(state.layers(), DUE));
        }
    }

    /// The totals of the first `layers` layers.
    fn taken(&self, layers: usize) -> Taken {
        let mut taken = Taken::default();
        for layer in self.entries[..layers].iter().filter_map(OnceBox::get) {
            let bloom = layer.bloom();
            taken.add(bloom.expected_keys, bloom.layout);
            if bloom.layout.blocks <= MEASURED_LINES {
                taken.raise_rate(
                    bloom.layout,
                    bloom.expected_keys,
                    bloom.statistics().false_positive_rate,
                );
            }
        }
        taken
    }

    /// The plan of the layer that follows the first `layers` layers, or why there cannot be one.
    pub(super) fn next(&self, layers: usize) -> Result<(Layout, usize), NoLayer> {
        self.steps.next(&self.taken(layers), self.hint(), self.max_bytes)
    }

    pub(super) fn max_layers(&self) -> usize {
        let taken = self.taken(self.layers_now().len());
        self.steps.most_layers(taken, self.hint(), self.max_bytes)
    }

    /// Sets the state, unless the chain has more than `layers` layers by now.
    fn change(&self, layers: usize, new: ChainState) {
        let mut state = ChainState::new(layers, OPEN);
        while state.layers() == layers {
            match self
                .state
                .compare_exchange(state.0, new.0, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(other) => state = ChainState(other),
            }
        }
    }

    /// Makes these bits the layer with this number, unless there is one.
    fn put(&self, number: usize, mut bloom: Bloom) -> Result<(), BuildError> {
        bloom.set_isa(self.isa);
        let keys = bloom.expected_keys;
        let estimate = LoadEstimate::new(keys.saturating_add(keys / EXCESS));
        let filter = Filter::of(bloom, ());
        let put = self.entries[number].set(Layer { filter, estimate });
        put.ok_or_else(|| BuildError::out_of_memory(size_of::<Layer>()))
    }

    /// The layers without the chain.
    pub(super) fn into_layers(self) -> impl Iterator<Item = Bloom> {
        let layers = self.layers_now().len();
        let entries = self.entries.into_vec().into_iter().take(layers);
        entries.filter_map(|mut entry| Some(entry.take()?.filter.engine))
    }
}

/// Growth.
impl Scalable {
    /// Checks how full the layer before number `next` is, and grows the chain if necessary. Inserts
    /// call it for the hashes that are due by the estimate.
    #[cold]
    #[inline(never)]
    fn look(&self, next: usize, hash: u64) {
        let newest = self.entries[next - 1].get();
        let Layer { filter, estimate } = newest.expect("a layer that is counted is there");
        let mut load = estimate.load_of(filter.bits(), filter.engine.layout, hash);
        if load >= NEARLY_FULL {
            load = estimate.precise_load(filter.bits(), filter.engine.layout, hash);
        }
        if load >= 1.0 {
            // Several threads may make it at once: none waits for the one that began it ahead of
            // need and was interrupted.
            let _ = self.grow(next); // If it fails, the next inserts report it.
        } else if load >= AHEAD && self.claim(next) && self.make(next, self.hint()).is_err() {
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
        let hint = self.hint();
        let made = self.make(number, hint);
        let new = match &made {
            Ok(()) => ChainState::new(number + 1, OPEN),
            Err(NoLayer::OutOfMemory) => ChainState::new(number, STARVED),
            Err(_) => ChainState::new(number, FULL),
        };
        self.change(number, new);
        if new.phase() == FULL && self.hint() != hint {
            // Another thread has set it meanwhile, and has perhaps not seen that the chain is full.
            self.change(number, ChainState::new(number, DUE));
        }
        made
    }

    fn has_layer(&self, number: usize) -> bool {
        self.entries.get(number).is_some_and(|entry| entry.get().is_some())
    }

    /// Makes the layer with this number by the hint, unless it is there.
    fn make(&self, number: usize, hint: usize) -> Result<(), NoLayer> {
        if self.has_layer(number) {
            return Ok(());
        }
        let taken = self.taken(number);
        without_hint(hint, |hint| {
            let (layout, keys) = self.steps.next(&taken, hint, self.max_bytes)?;
            let made = empty(layout, keys).and_then(|bloom| self.put(number, bloom));
            made.map_err(|_| NoLayer::OutOfMemory)
        })
    }

    /// Goes on to the next layer, if that is possible now.
    #[cold]
    #[inline(never)]
    fn make_room(&self, layers: &Layers<'_>) -> Result<(), NoLayer> {
        let next = layers.len();
        if layers.phase == FULL {
            // Without a plan, which takes half a millisecond.
            return Err(self.steps.why_full(&self.taken(next), self.max_bytes));
        }
        // One thread at a time tries again.
        if layers.phase == STARVED && !self.has_layer(next) && !self.claim(next) {
            return Err(NoLayer::OutOfMemory);
        }
        self.grow(next).inspect_err(|_| self.unclaim())
    }

    /// Sets the limit of bytes that holds from now on. For exclusive access.
    pub(super) fn limit(&mut self, max_bytes: usize) {
        let layers = self.layers_now().len();
        // A layer that was made ahead of need may be too large now.
        self.entries[layers..].iter_mut().for_each(|entry| drop(entry.take()));
        self.claimed = AtomicU64::new(0);
        self.max_bytes = max_bytes;
        self.close_if_full();
    }

    /// Notes that the newest layer takes no more keys, if it is full. For exclusive access.
    pub(super) fn close_if_full(&mut self) {
        let layers = self.layers_now();
        let newest = layers.newest();
        let Bloom { words, layout, .. } = newest.bloom();
        if layers.phase != OPEN || newest.estimate.precise_load(&words.bits, *layout, 0) >= 1.0 {
            self.close();
        }
    }

    /// Notes that the newest layer takes no more keys. For exclusive access.
    pub(super) fn close(&mut self) {
        let layers = self.layers_now().len();
        let phase = if self.next(layers).is_ok() { DUE } else { FULL };
        self.state = AtomicU64::new(ChainState::new(layers, phase).0);
    }
}

fn entries(len: usize) -> Result<Box<[OnceBox<Layer>]>, BuildError> {
    let mut entries = Vec::new();
    entries
        .try_reserve_exact(len)
        .map_err(|_| BuildError::out_of_memory(len * size_of::<OnceBox<Layer>>()))?;
    entries.extend((0..len).map(|_| OnceBox::default()));
    Ok(entries.into_boxed_slice())
}

fn full(why: NoLayer, inserted: usize) -> InsertError {
    let kind = InsertErrorKind::NoLayer(why);
    InsertError { kind, inserted }
}

impl Engine for Scalable {
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
        let keys = self.layers_now().iter().map(|layer| layer.bloom().expected_keys);
        keys.fold(0, usize::saturating_add)
    }

    fn memory_bytes(&self) -> usize {
        self.layers_now().iter().map(|layer| layer.bloom().memory_bytes()).sum()
    }

    fn is_empty(&self) -> bool {
        self.layers_now().iter().all(|layer| layer.bloom().is_empty())
    }

    /// The keys fill one layer after another, also layers that are not there yet.
    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let (mut left, mut rate) = (keys, 0.0);
        let mut taken = Taken::default();
        let (layers, hint) = (self.layers_now(), self.hint());
        let mut layers = layers.iter();
        while left > 0 {
            let next = match layers.next() {
                Some(layer) => (layer.bloom().layout, layer.bloom().expected_keys),
                None => match self.steps.next(&taken, hint, self.max_bytes) {
                    Ok(next) => next,
                    Err(_) => break,
                },
            };
            let (layout, keys) = next;
            let added = left.min(keys);
            rate = rates::any([rate, layout.rate_of(Unit::Bit, added)]);
            taken.add(keys, layout);
            left -= added;
        }
        rate
    }

    fn statistics(&self) -> Statistics {
        let (mut len, mut rate) = (0, 0.0);
        let blooms = self.layers_now().iter().map(Layer::bloom);
        let fill_ratio = fill_of_all(blooms.map(|one| {
            let now = one.statistics();
            len += now.len;
            rate = rates::any([rate, now.false_positive_rate]);
            (now.fill_ratio, one)
        }));
        Statistics::new(fill_ratio, len, rate)
    }

    /// The promise is that of all layers together, of those to come too.
    fn is_overfull_at(&self, rate: f64) -> bool {
        rate > self.steps.rate
    }

    fn try_clone(&self) -> Result<Self, BuildError> {
        let layers = self.layers_now();
        let copy = Self {
            entries: entries(self.entries.len())?,
            state: AtomicU64::new(ChainState::new(layers.len(), layers.phase).0),
            claimed: AtomicU64::new(0),
            hint: AtomicU64::new(self.hint() as u64),
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
            .field("fill_ratio", &self.statistics().fill_ratio);
    }

    fn set_isa(&mut self, isa: Isa) {
        self.isa = isa;
        for entry in &mut self.entries {
            if let Some(layer) = entry.get_mut() {
                layer.filter.engine.set_isa(isa);
            }
        }
    }
}

/// A chain that takes hashes.
enum Growing<'a> {
    /// Threads share it.
    Shared(&'a Scalable),
    /// It has one owner, who inserts by plain stores.
    Owned(&'a mut Scalable),
}

impl Growing<'_> {
    fn chain(&self) -> &Scalable {
        match self {
            Self::Shared(chain) => chain,
            Self::Owned(chain) => chain,
        }
    }

    /// Inserts into the layer with this number. Passes on which of the hashes changed it.
    fn insert_into(&mut self, number: usize, hashes: &[u64], answer: Answer<'_>) -> usize {
        let there = "a layer that is counted is there";
        match self {
            Self::Shared(chain) => {
                let layer = chain.entries[number].get().expect(there);
                into_ok(layer.bloom().insert_flagged(&hashes, answer))
            }
            Self::Owned(chain) => {
                let layer = chain.entries[number].get_mut().expect(there);
                layer.filter.engine.insert_mut(&hashes, answer)
            }
        }
    }
}

/// Inserts hashes, the first of which is number `start`: up to `N` per load of the layers, and
/// fewer if a layer would get too many before the next check. `N` is `64 * WORDS`.
///
/// Not inlined: few hashes shall not need the stack of a whole chunk.
#[inline(never)]
fn insert_chunk<const N: usize, const WORDS: usize>(
    into: &mut Growing<'_>,
    start: usize,
    hashes: &[u64],
    answer: &mut Answer<'_>,
) -> Result<usize, InsertError> {
    let (mut at, mut new) = (0, 0);
    // The hashes in no older layer, and whether each changed the newest.
    let (mut absent, mut first_seen) = ([0; N], [false; N]);
    while at < hashes.len() {
        let chain = into.chain();
        let layers = chain.layers_now();
        if layers.phase != OPEN {
            let known = hashes[at..].iter().take_while(|&&hash| layers.contains(hash)).count();
            tell_unchanged(answer, start + at..start + at + known);
            at += known;
            if at < hashes.len() {
                let inserted = start + at;
                chain.make_room(&layers).map_err(|why| full(why, inserted))?;
            }
            continue;
        }
        let (count, isa, estimate) = (layers.len(), chain.isa, layers.newest().estimate);
        let part = &hashes[at..];
        let part = &part[..part.len().min(estimate.interval()).min(N)];

        let mut found = [0; WORDS];
        let found = &mut found[..part.len().div_ceil(64)];
        let mut len = 0;
        contains_any(layers.iter().rev().skip(1).map(Layer::bloom), part, found);
        for_each_absent(found, part.len(), |i| {
            absent[len] = part[i];
            len += 1;
        });
        let (absent, first_seen) = (&absent[..len], &mut first_seen[..len]);
        let new_now = into.insert_into(count - 1, absent, Some(&mut unpack_into(isa, first_seen)));
        new += new_now;

        if let Some(answer) = answer {
            let mut changed = [0; WORDS];
            let mut flags = first_seen.iter();
            for_each_absent(found, part.len(), |i| {
                let flag = *flags.next().expect("one for each absent");
                changed[i / 64] |= u64::from(flag) << (i % 64);
            });
            answer(start + at, &changed[..found.len()]);
        }
        at += part.len();
        // A whole interval of new hashes is due even if none of them is by chance: else a third of
        // the intervals would pass unseen, and a layer get 7% more keys than it is for.
        let is_due = 2 * new_now >= estimate.interval();
        let mut inserted = absent.iter().zip(first_seen).filter(|(_, first_seen)| **first_seen);
        if let Some((&hash, _)) = inserted.find(|(hash, _)| is_due || estimate.is_due(**hash)) {
            into.chain().look(count, hash);
        }
    }
    Ok(new)
}

/// Inserts all hashes, up to the first that is refused; `most` at a time.
fn insert_source(
    into: &mut Growing<'_>,
    source: &impl Source,
    most: usize,
    mut answer: Answer<'_>,
) -> Result<usize, InsertError> {
    let mut new = 0;
    let taken = source.try_for_each_chunk(most, |at, hashes| {
        // Clearing the space for a whole chunk takes longer than the work on few keys.
        new += if Plan::of_keys(hashes.len()).is_few() {
            insert_chunk::<64, 1>(into, at, hashes, &mut answer)
        } else if hashes.len() <= HASHED {
            insert_chunk::<HASHED, { HASHED / 64 }>(into, at, hashes, &mut answer)
        } else {
            insert_chunk::<CHUNK, { CHUNK / 64 }>(into, at, hashes, &mut answer)
        }?;
        Ok(())
    });
    taken.map(|()| new).inspect_err(|full: &InsertError| {
        tell_unchanged(&mut answer, full.inserted..source.len());
    })
}

impl Scalable {
    /// [`insert_flagged`](Insert::insert_flagged) without atomics.
    pub(super) fn insert_mut(&mut self, source: &impl Source, answer: Answer<'_>) -> Result<usize, InsertError> {
        insert_source(&mut Growing::Owned(self), source, CHUNK, answer)
    }
}

impl Insert for Scalable {
    type Error = InsertError;

    #[inline]
    fn insert_hash(&self, hash: u64) -> Result<bool, InsertError> {
        loop {
            let layers = self.layers_now();
            if (layers.len() > 1 || layers.phase != OPEN) && layers.contains(hash) {
                return Ok(false);
            }
            if layers.phase == OPEN {
                let newest = layers.newest();
                let changed = into_ok(newest.bloom().insert_hash(hash));
                if changed && newest.estimate.is_due(hash) {
                    self.look(layers.len(), hash);
                }
                return Ok(changed);
            }
            self.make_room(&layers).map_err(|why| full(why, 0))?;
        }
    }

    fn insert_flagged(&self, source: &impl Source, answer: Answer<'_>) -> Result<usize, InsertError> {
        insert_source(&mut Growing::Shared(self), source, HASHED, answer)
    }

    fn clear(&mut self) {
        let (first, others) = self.entries.split_first_mut().expect("there is always a layer");
        others.iter_mut().for_each(|entry| drop(entry.take()));
        let first = first.get_mut().expect("there is always a layer");
        first.filter.engine.clear();
        self.state = AtomicU64::new(ChainState::new(1, OPEN).0);
        self.claimed = AtomicU64::new(0);
    }
}

impl Union for Scalable {
    fn same(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.layers_now(), other.layers_now());
        let mut pairs = ours.iter().zip(theirs.iter());
        self.steps == other.steps
            && ours.len() == theirs.len()
            && pairs.all(|(ours, theirs)| ours.bloom().same(theirs.bloom()))
    }

    /// Layers of any layout can follow one another.
    fn check_union(&self, _: &Self) -> Result<(), IncompatibleError> {
        Ok(())
    }

    #[inline]
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        let theirs = other.layers_now();
        // Those that have room come last: the last one takes keys.
        let mut theirs: Vec<_> = theirs.iter().filter(|layer| !layer.bloom().is_empty()).collect();
        theirs.sort_by_cached_key(|layer| layer.room());
        self.check_room_for(&theirs)?;
        let mut changed = false;
        for theirs in theirs.into_iter().map(Layer::bloom) {
            loop {
                let layers = self.layers_now();
                let room = with_room_for(theirs, layers.iter().map(|layer| [layer.bloom()]));
                if let Some(ours) = room.and_then(|number| layers.iter().nth(number)) {
                    changed |= ours.bloom().union_from(theirs)?;
                    break;
                }
                let next = layers.len();
                // Once more, since other threads may have added layers meanwhile.
                let bytes = layers.iter().map(|layer| layer.bloom().memory_bytes());
                self.check_layer(theirs, next, bytes.sum())?;
                // If another thread made this layer meanwhile, the copy is dropped.
                let put = theirs.try_clone().and_then(|copy| self.put(next, copy));
                put.map_err(|_| no_room(theirs, NoLayer::OutOfMemory))?;
                self.change(next, ChainState::new(next + 1, OPEN));
                changed = true;
            }
        }
        Ok(changed)
    }
}

/// A layer takes the keys of another one if its keys are then at most one in `UNION_EXCESS` more
/// than it is for. (Their number is an estimate; from a thousand keys on its error is below this.)
/// Two full layers for 1% each have 2% beside each other, and their union has 10%.
const UNION_EXCESS: usize = 32;

impl Layer {
    /// The number of keys that it takes until it is full.
    fn room(&self) -> usize {
        let bloom = self.bloom();
        bloom.expected_keys.saturating_sub(bloom.statistics().len)
    }
}

/// The number of keys in the union of engines of one layout: of `parts`, at least one, and `last`.
fn united_len(parts: &[&Bloom], last: &Bloom) -> usize {
    let (first, others) = parts.split_first().expect("a layer has a part");
    let words = first.words.words().zip(last.words.words());
    let ones = if others.is_empty() {
        words.map(|(a, b)| u64::from((a | b).count_ones())).sum()
    } else {
        let mut others: Vec<_> = others.iter().map(|part| part.words.words()).collect();
        let mut all = |(a, b)| others.iter_mut().filter_map(Iterator::next).fold(a | b, BitOr::bitor);
        words.map(|pair| u64::from(all(pair).count_ones())).sum()
    };
    first.layout.keys_for(ones)
}

/// The number of the layer that takes the keys of `theirs` with the fewest new ones. Each layer is
/// the union of its parts.
fn with_room_for<'a>(theirs: &Bloom, layers: impl Iterator<Item: AsRef<[&'a Bloom]>>) -> Option<usize> {
    let fits = layers.enumerate().filter_map(|(number, parts)| {
        let parts = parts.as_ref();
        let Bloom {
            layout, expected_keys, ..
        } = *parts[0];
        if layout != theirs.layout {
            return None;
        }
        let (before, after) = (united_len(parts, parts[0]), united_len(parts, theirs));
        let most = expected_keys.saturating_add(expected_keys / UNION_EXCESS);
        (after <= most || after <= before).then(|| (after.saturating_sub(before), number))
    });
    fits.min_by_key(|(new, _)| *new).map(|(_, number)| number)
}

fn no_room(theirs: &Bloom, why: NoLayer) -> IncompatibleError {
    let keys = theirs.expected_keys;
    IncompatibleError(format!(
        "the other filter's layer of {keys} keys has no room here: {why}"
    ))
}

impl Scalable {
    /// Fails if a copy of a layer has no place behind `layers` others, which take `bytes`.
    fn check_layer(&self, theirs: &Bloom, layers: usize, bytes: usize) -> Result<(), IncompatibleError> {
        if layers == self.entries.len() {
            return Err(no_room(theirs, NoLayer::Layers { limit: layers }));
        }
        let limit = self.max_bytes;
        if theirs.memory_bytes() > limit.saturating_sub(bytes) {
            return Err(no_room(theirs, NoLayer::Bytes { bytes, limit }));
        }
        Ok(())
    }

    /// Fails if a union with these layers, in this order, needs more layers or memory than there
    /// can be. Does what [`union_from`](Union::union_from) does, with lists in place of unions.
    fn check_room_for(&self, theirs: &[&Layer]) -> Result<(), IncompatibleError> {
        let ours = self.layers_now();
        let mut layers: Vec<_> = ours.iter().map(|layer| Vec::from([layer.bloom()])).collect();
        // A layer that was made ahead of need comes before those of the union.
        let mut ahead = self.entries.get(ours.len()).and_then(OnceBox::get).map(Layer::bloom);
        let mut bytes = self.memory_bytes() + ahead.map_or(0, Bloom::memory_bytes);
        let most = theirs.iter().map(|layer| layer.bloom().memory_bytes()).sum();
        if theirs.len() < self.entries.len() - ours.len() && self.max_bytes.saturating_sub(bytes) >= most {
            // No limit is near. (A plan takes three quarters of the union's time.)
            return Ok(());
        }
        for theirs in theirs.iter().map(|layer| layer.bloom()) {
            let room = with_room_for(theirs, layers.iter()).or_else(|| {
                layers.push(Vec::from([ahead.take()?]));
                with_room_for(theirs, layers.iter())
            });
            if let Some(number) = room {
                layers[number].push(theirs);
                continue;
            }
            self.check_layer(theirs, layers.len(), bytes)?;
            bytes += theirs.memory_bytes();
            layers.push(Vec::from([theirs]));
        }
        Ok(())
    }
}

#[cfg(all(test, not(lanebloom_loom)))]
mod tests {
    use super::*;
    use crate::ScalableBloom;

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
}
