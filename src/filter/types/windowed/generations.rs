//! [`Windowed`], the engine of a window, and its rotations. Inserts, lookups and unions are in
//! `engine.rs`; they work on the list that this file replaces.
//!
//! The state is one pointer to a list of generations. A rotation replaces it by a compare-and-swap
//! from the list that it has looked at, so rotations have one order. An insert writes into the
//! newest generation of the list that it sees, and then checks whether that list is still current
//! (`Swap::write_to_current`). If not, it writes again, into the new list. Both threads have a
//! `SeqCst` fence between their write and their next read. `docs/proofs/WINDOW.md` argues why no
//! key is missed, also in batches and if the clock steps back.

use super::clock::Clock;
use super::list::{Generation, List};
use super::settings::{NEVER, When, WindowSettings};
use crate::error::BuildError;
use crate::filter::Filter;
use crate::filter::parts::load_estimate::LoadEstimate;
use crate::filter::traits::{Engine, Insert};
use crate::filter::types::bloom::{Bloom, ConcurrentBloom};
use crate::words::sync::{Guard, Swap};
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::Mutex;

/// The most lists of the pool: the replaced one, and those that lookups still hold.
const SPARE_LISTS: usize = 4;

/// The engine of a [`WindowedBloom`](super::WindowedBloom): a list of generations.
pub struct Windowed {
    pub(super) list: Swap<List>,
    pool: Mutex<Pool>,
    pub(super) settings: WindowSettings,
}

/// Memory to be used again.
struct Pool {
    /// Empty generations. The pool is their only owner.
    clean: Vec<Arc<ConcurrentBloom<()>>>,
    /// Dropped generations, which lookups may still use.
    dropped: Vec<Arc<ConcurrentBloom<()>>>,
    /// Lists that were replaced, which lookups may still use.
    lists: Vec<Arc<List>>,
}

impl Pool {
    /// Drops what its lists hold, except the lists that lookups still use.
    #[inline]
    fn tidy(&mut self) {
        for list in &mut self.lists {
            if let Some(list) = Arc::get_mut(list) {
                list.generations.clear();
            }
        }
    }

    /// An item whose only owner is `items`.
    fn take<T>(items: &mut Vec<Arc<T>>) -> Option<Arc<T>> {
        let free = items.iter_mut().position(|item| Arc::get_mut(item).is_some())?;
        Some(items.swap_remove(free))
    }

    /// Keeps `item` if there is room, so that nothing is allocated.
    fn keep<T>(items: &mut Vec<Arc<T>>, item: Arc<T>) {
        if items.len() < items.capacity() {
            items.push(item);
        }
    }
}

#[inline]
fn blank(like: &Bloom) -> Result<Arc<ConcurrentBloom<()>>, BuildError> {
    Ok(Arc::new(Filter::of(like.blank()?, ())))
}

#[inline]
fn out_of_memory(one: &Bloom) -> ! {
    let layout = core::alloc::Layout::array::<u8>(one.memory_bytes());
    alloc::alloc::handle_alloc_error(layout.expect("a filter of this size exists"))
}

impl Windowed {
    /// Allocates all the memory that rotations need unless lookups hold on to some: the generations
    /// that `list` lacks, a spare one, and two lists.
    #[inline]
    pub(super) fn new(mut list: List, settings: WindowSettings) -> Result<Self, BuildError> {
        let count = settings.generations;
        let mut pool = Pool {
            clean: Vec::with_capacity(count + 1),
            dropped: Vec::with_capacity(count + 1),
            lists: Vec::with_capacity(SPARE_LISTS),
        };
        for _ in list.generations.len()..=count {
            pool.clean.push(blank(list.newest())?);
        }
        for _ in 0..2 {
            pool.lists.push(Arc::new(List::empty(count)));
        }
        let room = (count + 1).saturating_sub(list.generations.len());
        list.generations.reserve_exact(room);
        Ok(Self {
            list: Swap::new(list),
            pool: Mutex::new(pool),
            settings,
        })
    }

    /// The visible generations, the newest first.
    #[inline]
    pub(super) fn live(&self) -> Vec<Arc<ConcurrentBloom<()>>> {
        let list = self.list.load();
        let live = list.live(self.settings.now());
        live.iter().map(|one| Arc::clone(&one.bloom)).collect()
    }

    /// The time, and the list for what is inserted now.
    #[inline]
    pub(super) fn present(&self) -> (u64, Guard<List>) {
        let now = self.settings.now();
        let list = self.list.load();
        if list.takes(now, self.settings.period) {
            return (now, list);
        }
        drop(list);
        self.rotate_if_old();
        let list = self.list.load();
        (self.settings.now(), list)
    }

    #[inline]
    pub(super) fn rotate(&self) {
        let WindowSettings {
            period, generations, ..
        } = self.settings;
        self.rotate_as(|_, now| Some((now.saturating_add(period), generations)));
    }

    #[inline]
    pub(super) fn rotate_if_due(&self) -> bool {
        match &self.settings.when {
            When::Called => false,
            When::Aged(_) => self.rotate_if_old(),
            When::Full(estimate) => self.rotate_if_full(estimate, 0),
        }
    }

    /// Makes the newest generation the one for keys inserted now; returns whether this call did.
    #[cold]
    fn rotate_if_old(&self) -> bool {
        let WindowSettings {
            period, generations, ..
        } = self.settings;
        self.rotate_as(|old, now| {
            if old.takes(now, period) {
                return None;
            }
            let until = match now.checked_sub(old.until) {
                Some(late) => {
                    let periods = (late / period).saturating_add(1);
                    old.until.saturating_add(periods.saturating_mul(period))
                }
                None => now.saturating_add(period),
            };
            Some((until, generations + 1))
        })
    }

    /// Rotates if the newest generation is full; returns whether this call did.
    #[cold]
    pub(super) fn rotate_if_full(&self, estimate: &LoadEstimate, hash: u64) -> bool {
        let is_full = |old: &List| {
            let Bloom { words, layout, .. } = old.newest();
            estimate.load_of(&words.bits, *layout, hash) >= 1.0
        };
        self.rotate_as(|old, _| is_full(old).then_some((NEVER, self.settings.generations)))
    }

    /// Drops all keys.
    #[inline]
    pub(super) fn forget_all(&mut self) {
        self.rotate_as(|old, _| Some((old.until, 1)));
    }

    /// Replaces the list as `plan` says: until when its newest generation takes keys, and the most
    /// generations that it has. Asks again if another thread was faster. Returns whether this call
    /// did it, and not if there is no plan.
    #[inline]
    fn rotate_as(&self, plan: impl Fn(&List, u64) -> Option<(u64, usize)>) -> bool {
        loop {
            let old = Arc::clone(&self.list.load());
            // After the list: its times come from another thread's reading of the clock.
            let now = self.settings.now();
            let Some((until, most)) = plan(&old, now) else {
                return false;
            };
            if self.replace(old, now, until, most) {
                return true;
            }
        }
    }

    /// Replaces `old` by a list of at most `most` generations if `old` is still current; returns
    /// whether it was. The new list begins with an empty generation for `now..until`; the visible
    /// generations of `old` follow.
    ///
    /// This thread should have no other `Guard` of `old`, so that its memory is used again.
    #[inline]
    fn replace(&self, old: Arc<List>, now: u64, until: u64, most: usize) -> bool {
        let fresh = self.fresh(old.newest());
        // If the clock has stepped back, generations keep the time that they had left.
        let then = now.max(old.begin);
        let mut new = self.spare_list();
        let list = Arc::get_mut(&mut new).expect("nobody else has it yet");
        // Its last reader may have left it only now, after the pool was tidied.
        list.generations.clear();
        let (first, others) = match &fresh {
            Some(fresh) => (fresh, &old.generations[..]),
            // The allocation failed: the newest generation stays.
            None if most > 1 => (&old.generations[0].bloom, &old.generations[1..]),
            None => out_of_memory(old.newest()),
        };
        let visible = others.iter().take_while(|other| other.expires > then).count();
        // The newest generation stays, and counts for two.
        let most = most - 1 - usize::from(fresh.is_none());
        let (kept, dropped) = others.split_at(visible.min(most));
        list.begin = now;
        list.until = until;
        // Later than any older one expires, except those that began early because another node's
        // clock is ahead.
        let latest = until.saturating_add(self.settings.window());
        list.generations.push(Generation {
            expires: latest,
            bloom: Arc::clone(first),
        });
        list.generations.extend(kept.iter().map(|other| Generation {
            expires: now.saturating_add(other.expires - then).min(latest),
            bloom: Arc::clone(&other.bloom),
        }));

        if !self.list.compare_and_swap(&old, new) {
            if let (Some(fresh), Ok(mut pool)) = (fresh, self.pool.try_lock()) {
                Pool::keep(&mut pool.clean, fresh);
            }
            return false;
        }
        if let Ok(mut pool) = self.pool.try_lock() {
            for dropped in dropped {
                Pool::keep(&mut pool.dropped, Arc::clone(&dropped.bloom));
            }
            Pool::keep(&mut pool.lists, old);
        }
        self.clean_ahead();
        true
    }

    /// An empty generation; `None` if the allocation fails.
    #[inline]
    fn fresh(&self, like: &Bloom) -> Option<Arc<ConcurrentBloom<()>>> {
        let clean = self.pool.try_lock().ok().and_then(|mut pool| pool.clean.pop());
        clean.or_else(|| self.cleaned()).or_else(|| blank(like).ok())
    }

    /// A dropped generation, cleared.
    #[inline]
    fn cleaned(&self) -> Option<Arc<ConcurrentBloom<()>>> {
        let mut dropped = {
            let mut pool = self.pool.try_lock().ok()?;
            pool.tidy();
            Pool::take(&mut pool.dropped)?
        };
        // Clearing takes a while. The pool is not locked meanwhile.
        Arc::get_mut(&mut dropped)?.engine.clear();
        Some(dropped)
    }

    /// Clears a dropped generation for the next rotation, which then takes about a microsecond.
    #[inline]
    pub(crate) fn clean_ahead(&self) {
        if !self.pool.try_lock().is_ok_and(|pool| pool.clean.is_empty()) {
            return;
        }
        let Some(clean) = self.cleaned() else {
            return;
        };
        if let Ok(mut pool) = self.pool.try_lock() {
            Pool::keep(&mut pool.clean, clean);
        }
    }

    /// A list with no other owner, to be cleared and filled.
    #[inline]
    fn spare_list(&self) -> Arc<List> {
        let spare = self.pool.try_lock().ok().and_then(|mut pool| {
            pool.tidy();
            Pool::take(&mut pool.lists)
        });
        spare.unwrap_or_else(|| Arc::new(List::empty(self.settings.generations)))
    }

    /// Adds empty generations that expire at these times, if `old` is still the list.
    ///
    /// This is not a rotation, since the newest generation stays. An insert that sees the list
    /// replaced writes the same bits again. Fails if the allocation fails.
    #[inline]
    pub(super) fn complete(&self, old: Arc<List>, missing: &[u64]) -> Result<(), BuildError> {
        let mut new = self.spare_list();
        let list = Arc::get_mut(&mut new).expect("nobody else has it yet");
        list.begin = old.begin;
        list.until = old.until;
        list.generations.extend_from_slice(&old.generations);
        let mut added = Vec::new();
        for &expires in missing {
            let Some(bloom) = self.fresh(old.newest()) else { break };
            added.push(Arc::clone(&bloom));
            let place = list.generations.partition_point(|one| one.expires >= expires);
            list.generations.insert(place, Generation { expires, bloom });
        }
        let is_complete = added.len() == missing.len();
        let done = is_complete && self.list.compare_and_swap(&old, new);
        if let Ok(mut pool) = self.pool.try_lock() {
            if done {
                Pool::keep(&mut pool.lists, old);
            } else {
                // No other thread has seen them.
                added.into_iter().for_each(|fresh| Pool::keep(&mut pool.clean, fresh));
            }
        }
        if is_complete {
            Ok(())
        } else {
            let bytes = self.list.load().newest().memory_bytes();
            Err(BuildError::out_of_memory(bytes))
        }
    }
}

/// A generation and its number.
type Numbered = (u64, Arc<ConcurrentBloom<()>>);

/// For copies of the window on other machines.
impl Windowed {
    /// The time in nanoseconds, by a clock that other machines have too.
    #[inline]
    pub(crate) fn common_time(&self) -> Option<u64> {
        match &self.settings.when {
            When::Called | When::Full(_) | When::Aged(Clock::Monotonic) => None,
            When::Aged(_) => Some(self.settings.now()),
        }
    }

    /// The generations and their numbers, the newest first: the current one, or `least` if that is
    /// greater, and all earlier ones that are visible. The list may lack generations, because no
    /// key was inserted while they were the newest; they are added to it. So lookups find bits that
    /// are set in any of them until the generation expires.
    ///
    /// Number `n` is for keys inserted while the clock is in `n * T .. (n + 1) * T`, and expires at
    /// `(n + G) * T`. Returns `None` if there are visible generations of other times, because the
    /// clock was set back or `rotate` was called. Fails if a generation that the list lacks cannot
    /// be allocated.
    #[inline]
    pub(crate) fn numbered(&self, least: u64) -> Result<Option<Vec<Numbered>>, BuildError> {
        let (period, generations) = (self.settings.period, self.settings.generations);
        let count = generations as u64;
        let end_of = |number: u64| number.saturating_add(1).saturating_mul(period);
        loop {
            let old = Arc::clone(&self.list.load());
            let now = self.settings.now();
            let until = if now >= old.until || old.until % period != 0 {
                end_of(now / period)
            } else {
                old.until
            };
            let (until, most) = if until < end_of(least) {
                (end_of(least), generations)
            } else {
                (until, generations + 1)
            };
            if until != old.until {
                self.replace(old, now, until, most);
                continue;
            }
            let number = |one: &Generation| {
                let periods = (one.expires % period == 0).then_some(one.expires / period);
                periods?.checked_sub(count)
            };
            let live = old.live(now);
            let Some(numbers) = live.iter().map(number).collect::<Option<Vec<u64>>>() else {
                return Ok(None);
            };
            if !numbers.is_sorted_by(|newer, older| newer > older) {
                return Ok(None);
            }
            let newest = until / period - 1;
            let missing: Vec<u64> = (newest.saturating_sub(count - 1)..newest)
                .filter(|number| !numbers.contains(number))
                .map(|number| end_of(number + count - 1))
                .collect();
            if missing.is_empty() {
                let blooms = live.iter().map(|one| Arc::clone(&one.bloom));
                return Ok(Some(numbers.into_iter().zip(blooms).collect()));
            }
            self.complete(old, &missing)?;
        }
    }
}
