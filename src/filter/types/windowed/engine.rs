//! The engine traits of a window: lookups, inserts, statistics and unions, on the list of
//! generations. `generations.rs` argues about threads.

use super::generations::Windowed;
use super::list::{Generation, List};
use super::settings::{NEVER, When};
use crate::chunks::{Answer, CHUNK, HASHED, Source, for_each_absent, ones, tell};
use crate::error::{BuildError, IncompatibleError};
use crate::filter::Statistics;
use crate::filter::methods::inserts::into_ok;
use crate::filter::parts::several::{contains_any, each_found};
use crate::filter::traits::{Engine, Insert, Union};
use crate::filter::types::bloom::{Bloom, ConcurrentBloom};
use crate::geometry::layout::{LINE_BITS, LINE_WORDS};
use crate::geometry::rates;
use crate::kernel::Isa;
use crate::words::bits;
use crate::words::scratch::Scratch;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::convert::Infallible;
use core::{fmt, mem};

impl Engine for Windowed {
    const NAME: &'static str = "WindowedBloom";

    #[inline]
    fn contains(&self, hash: u64) -> bool {
        let list = self.list.load();
        let found = list.generations.iter().find(|one| one.has(hash));
        // If the newest generation with the key has expired, so have the others.
        found.is_some_and(|newest| self.settings.now() < newest.expires)
    }

    #[inline]
    fn contains_bitmap(&self, hashes: &[u64], found: &mut [u64]) {
        let list = self.list.load();
        contains_any(blooms(list.live(self.settings.now())), hashes, found);
    }

    #[inline]
    fn expected_keys(&self) -> usize {
        self.settings.expected_keys
    }

    #[inline]
    fn memory_bytes(&self) -> usize {
        // With the spare one.
        (self.settings.generations + 1) * self.list.load().newest().memory_bytes()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.live().iter().all(|one| one.is_empty())
    }

    #[inline]
    fn false_positive_rate_at(&self, keys: usize) -> f64 {
        let list = self.list.load();
        let one = list.newest();
        let rate = one.false_positive_rate_at(self.settings.keys_of_each(keys, one));
        rates::any((0..self.settings.generations).map(|_| rate))
    }

    /// The length comes from the bits of all generations together: a key in several of them counts
    /// once. For the rate, the generations' chances in a line are taken as independent; with two
    /// lines per key, those in all lines.
    #[inline]
    fn statistics(&self) -> Statistics {
        let live = self.live();
        let layout = self.list.load().newest().layout;
        let (mut ones, mut distinct, mut rate) = (0, 0, 0.0);
        each_line(&live, |line| {
            ones += ones_of(line);
            distinct += ones_of_any(line);
            rate += rates::of_line_in_any(layout, line);
        });
        Statistics::new(
            ones as f64 / (live.len().max(1) * layout.blocks * LINE_BITS) as f64,
            layout.keys_for(distinct),
            match layout.shape.lines {
                1 => rate / layout.blocks as f64,
                _ => rates::any(live.iter().map(|one| one.engine.statistics().false_positive_rate)),
            },
        )
    }

    #[inline]
    fn try_clone(&self) -> Result<Self, BuildError> {
        self.try_map(|bloom| bloom.try_clone())
    }

    #[inline]
    fn debug(&self, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("generations", &self.settings.generations)
            .field("window", &self.settings.duration())
            .field("renew", &self.settings.renew)
            .field("estimated_len", &self.statistics().len);
    }

    #[inline]
    fn set_isa(&mut self, isa: Isa) {
        let copy = self.try_map(|bloom| {
            let mut copy = bloom.try_clone()?;
            copy.engine.set_isa(isa);
            Ok(copy)
        });
        *self = copy.expect("memory for a copy");
    }
}

impl Insert for Windowed {
    type Error = Infallible;

    #[inline]
    fn insert_hash(&self, hash: u64) -> Result<bool, Infallible> {
        let (now, list) = self.present();
        let has = |generations: &[Generation]| generations.iter().any(|one| one.has(hash));
        if !self.settings.renew && has(list.live(now)) {
            return Ok(false);
        }
        let insert = |list: &List| {
            let changed = into_ok(list.newest().insert_hash(hash));
            (changed, changed && !has(list.older(now)))
        };
        let (changed, new) = self.list.write_to_current(list, insert, |first, _| first);
        match &self.settings.when {
            When::Full(estimate) if changed && estimate.is_due(hash) => {
                self.rotate_if_full(estimate, hash);
            }
            _ => {}
        }
        Ok(new)
    }

    fn insert_flagged(&self, source: &impl Source, mut answer: Answer<'_>) -> Result<usize, Infallible> {
        let most = match &self.settings.when {
            When::Full(estimate) => estimate.interval(),
            _ => usize::MAX,
        };
        let most = if self.settings.renew { most } else { most.min(HASHED) };
        let mut new = 0;
        source.for_each_chunk(most, |start, hashes| {
            new += self.insert_chunk(hashes, &mut |at, bitmap| tell(&mut answer, start + at, bitmap));
        });
        Ok(new)
    }

    #[inline]
    fn clear(&mut self) {
        self.forget_all();
    }
}

impl Union for Windowed {
    #[inline]
    fn same(&self, other: &Self) -> bool {
        let settings = |one: &Self| {
            let one = &one.settings;
            (one.period, one.generations, one.expected_keys, one.renew)
        };
        let (ours, theirs) = (self.live(), other.live());
        settings(self) == settings(other)
            && ours.len() == theirs.len()
            && ours
                .iter()
                .zip(&theirs)
                .all(|(one, other)| one.engine.same(&other.engine))
    }

    #[inline]
    fn check_union(&self, other: &Self) -> Result<(), IncompatibleError> {
        let (ours, theirs) = (&self.settings, &other.settings);
        if (ours.generations, ours.period) != (theirs.generations, theirs.period) {
            return Err(IncompatibleError::differs("window", theirs, ours));
        }
        self.list.load().newest().check_union(other.list.load().newest())
    }

    #[inline]
    fn union_from(&self, other: &Self) -> Result<bool, IncompatibleError> {
        let theirs = other.list.load();
        let their_now = other.settings.now();
        let live = theirs.live(their_now);
        let (now, mut list) = self.present();
        let is_aged = matches!(self.settings.when, When::Aged(_));
        // The expiry time of each here.
        let expires = |one: &Generation| now.saturating_add(one.expires - their_now);
        loop {
            let missing = if is_aged {
                let most = self.settings.generations + 1;
                list.missing(live.iter().map(expires), self.settings.period, most)
            } else {
                alloc::vec![NEVER; live.len().saturating_sub(list.generations.len())]
            };
            // If the memory is refused, keys are forgotten late.
            if missing.is_empty() || self.complete(Arc::clone(&list), &missing).is_err() {
                break;
            }
            list = self.list.load();
        }
        let add = |ours: &List| {
            let mut changed = false;
            for (age, from) in live.iter().enumerate() {
                let to = if is_aged {
                    ours.at_least(expires(from))
                } else {
                    age.min(ours.generations.len() - 1)
                };
                changed |= ours.generations[to].bloom.engine.union_from(&from.bloom.engine)?;
            }
            Ok(changed)
        };
        let changed = self
            .list
            .write_to_current(list, add, |first, second| Ok(first? | second?));
        if let When::Full(estimate) = &self.settings.when {
            self.rotate_if_full(estimate, 0);
        }
        changed
    }
}

impl Windowed {
    /// A copy with `copy` of each generation.
    fn try_map(
        &self,
        copy: impl Fn(&ConcurrentBloom<()>) -> Result<ConcurrentBloom<()>, BuildError>,
    ) -> Result<Self, BuildError> {
        let list = self.list.load();
        let copy = |one: &Generation| {
            let bloom = Arc::new(copy(&one.bloom)?);
            Ok(Generation { bloom, ..*one })
        };
        let generations = list.generations.iter().map(copy).collect::<Result<_, _>>()?;
        Self::new(List { generations, ..**list }, self.settings.clone())
    }
}

/// Batches.
impl Windowed {
    /// Inserts hashes in one place of the order of rotations; returns how many were new. Calls
    /// `tell` with the start of a part and the bitmap of the new ones. A later call for a part
    /// replaces the earlier one.
    #[inline]
    fn insert_chunk(&self, hashes: &[u64], tell: &mut dyn FnMut(usize, &[u64])) -> usize {
        let (changed, new) = if self.settings.renew {
            self.insert_renewing(hashes, tell)
        } else {
            self.insert_absent(hashes, tell)
        };
        match &self.settings.when {
            When::Full(estimate) if changed > 0 => {
                if let Some(&hash) = hashes.iter().find(|hash| estimate.is_due(**hash)) {
                    self.rotate_if_full(estimate, hash);
                }
            }
            _ => {}
        }
        new
    }

    /// Inserts hashes into the newest generation. Returns how many changed it, and were new.
    #[inline]
    fn insert_renewing(&self, hashes: &[u64], tell: &mut dyn FnMut(usize, &[u64])) -> (usize, usize) {
        let (now, list) = self.present();
        let mut answered = false;
        let insert = |list: &List| {
            if mem::replace(&mut answered, true) {
                return (into_ok(list.newest().insert_source(&hashes)), 0);
            }
            let older = list.older(now);
            let mut sum = 0;
            let mut of_changed = |at, changed: &[u64]| {
                if at == 0 {
                    // Reports all answers again.
                    sum = 0;
                }
                let mut space = Scratch::<{ CHUNK / 64 }>::default();
                let new = space.first(changed.len());
                new.copy_from_slice(changed);
                if changed.iter().any(|word| *word != 0) {
                    let hashes = &hashes[at..hashes.len().min(at + 64 * changed.len())];
                    for one in blooms(older) {
                        each_found(one, hashes, new, |new, found| *new &= !found);
                    }
                    sum += ones(new);
                }
                tell(at, new);
            };
            let changed = list.newest().insert_flagged(&hashes, Some(&mut of_changed));
            (into_ok(changed), sum)
        };
        self.list.write_to_current(list, insert, |first, _| first)
    }

    /// Inserts the hashes that no generation has, of at most 1024, into the newest. All of them are
    /// new, and change it.
    #[inline]
    fn insert_absent(&self, hashes: &[u64], tell: &mut dyn FnMut(usize, &[u64])) -> (usize, usize) {
        let (now, list) = self.present();
        let words = hashes.len().div_ceil(64);
        let mut found = [0; HASHED / 64];
        let found = &mut found[..words];
        contains_any(blooms(list.live(now)), hashes, found);

        let (mut absent, mut len) = ([0; HASHED], 0);
        for (i, hash) in hashes.iter().enumerate() {
            absent[len] = *hash;
            len += usize::from(found[i / 64] >> (i % 64) & 1 == 0);
        }
        let absent = &absent[..len];
        // Whether each absent hash changed the generation: only the first of equal ones does.
        let mut changed = [0; HASHED / 64];
        let mut answered = false;
        let insert = |list: &List| {
            if mem::replace(&mut answered, true) {
                return into_ok(list.newest().insert_source(&absent));
            }
            let mut keep = |at: usize, bitmap: &[u64]| changed[at / 64..][..bitmap.len()].copy_from_slice(bitmap);
            into_ok(list.newest().insert_flagged(&absent, Some(&mut keep)))
        };
        let count = self.list.write_to_current(list, insert, |first, _| first);
        let (mut new, mut next) = ([0; HASHED / 64], 0);
        for_each_absent(found, hashes.len(), |i| {
            new[i / 64] |= (changed[next / 64] >> (next % 64) & 1) << (i % 64);
            next += 1;
        });
        tell(0, &new[..words]);
        (count, count)
    }
}

#[inline]
fn blooms(generations: &[Generation]) -> impl Iterator<Item = &Bloom> {
    generations.iter().map(|one| &one.bloom.engine)
}

/// Calls `each` with one line after another, as each of the generations has it.
fn each_line(generations: &[Arc<ConcurrentBloom<()>>], mut each: impl FnMut(&[[u64; LINE_WORDS]])) {
    let mut lines: Vec<_> = generations.iter().map(|one| one.bits().words()).collect();
    let mut line = Vec::with_capacity(lines.len());
    loop {
        line.clear();
        line.extend(lines.iter_mut().filter_map(Iterator::next));
        if line.is_empty() {
            return bits::acquire();
        }
        each(&line);
    }
}

/// The bits that are set in a line of each generation.
#[inline]
fn ones_of(line: &[[u64; LINE_WORDS]]) -> u64 {
    line.iter().map(bits::ones_of).sum()
}

/// The bits of a line that are set in any generation.
#[inline]
fn ones_of_any(line: &[[u64; LINE_WORDS]]) -> u64 {
    let any = |i: usize| line.iter().fold(0, |any, words| any | words[i]);
    (0..LINE_WORDS).map(|i| u64::from(any(i).count_ones())).sum()
}
