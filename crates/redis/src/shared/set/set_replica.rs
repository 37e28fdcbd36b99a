//! The background thread's work for a [`SharedSet`](super::SharedSet): exchanges for the newest
//! generation, announcements, and the switch to a newer one.

use super::local_set::{Generation, LocalSet, Log};
use crate::error::{Kind, SharedError};
use crate::shared::fill_state::{FillState, Rebuild};
use crate::shared::node::{Counts, Replicate};
use crate::shared::redis_keys::RedisKeys;
use crate::shared::replica::{Id, Replica};
use crate::shared::set_description::{Lifetime, SetDescription};
use lanebloom::internal::Swap;
use lanebloom::{BuildError, ConcurrentBloom, Hashed, KeyHasher};
use redis::{ConnectionLike, Script};
use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Instant;

/// Generations that a pass follows, before it gives up until the next pass.
const MOST_GENERATIONS: usize = 8;
/// A node takes generations for at most this many times the keys that it expected.
const MOST_GROWTH: u64 = 1024;

static ANNOUNCE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("../announce.lua")));

/// The replica of a [`SharedSet`](super::SharedSet).
pub(in crate::shared) struct SetReplica<S, B> {
    pub(in crate::shared) local: Arc<LocalSet<S>>,
    keys: RedisKeys,
    build: B,
    random: RandomState,
    /// The replica of the newest generation.
    replica: Replica<S>,
    /// Whether the server has had the newest generation, as this node knows it.
    has_joined: bool,
    /// The inserts that no pass has pushed, without those in the local log.
    unpushed: Log,
    /// The counts of older replicas.
    past: Counts,
}

impl<S, B> SetReplica<S, B>
where
    S: KeyHasher + Send + Sync,
    B: Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send,
{
    pub(super) fn new(keys: RedisKeys, expected_keys: usize, build: B) -> Result<Self, SharedError> {
        let random = RandomState::new();
        // The first one, unless the server has another.
        let id = Id {
            number: 0,
            token: random.hash_one("the first generation"),
        };
        let filter = Arc::new(build(expected_keys).map_err(SharedError::build)?);
        let replica = replica_of(&keys, id, expected_keys as u64, &filter)?;
        let first = Generation { place: 0, id, filter };
        Ok(Self {
            local: Arc::new(LocalSet {
                generations: Swap::new(vec![first]),
                log: Mutex::default(),
                most_keys: (expected_keys as u64).max(1).saturating_mul(MOST_GROWTH),
            }),
            keys,
            build,
            random,
            replica,
            has_joined: false,
            unpushed: Log::default(),
            past: Counts::default(),
        })
    }

    /// Takes the log: these inserts are in the newest filter.
    fn collect(&mut self) {
        let log = mem::take(&mut *self.local.lock());
        self.unpushed.append(log);
    }

    /// The expected keys of the present generation.
    fn present_keys(&self) -> u64 {
        self.replica.generation.as_ref().map_or(0, |generation| generation.2)
    }

    fn build(&self, keys: u64) -> Result<ConcurrentBloom<S>, SharedError> {
        (self.build)(usize::try_from(keys).unwrap_or(usize::MAX)).map_err(SharedError::build)
    }

    /// The newest generation on the server.
    fn root(&self, server: &mut dyn ConnectionLike) -> Result<Root, SharedError> {
        let mut get = redis::cmd("HMGET");
        get.arg(self.keys.key("meta"))
            .arg(&["newest", "keys", "lost", "before"]);
        let foreign = || self.keys.foreign("meta", "it names no generation of a set");
        let root: Vec<Option<Vec<u8>>> = get.query(server).map_err(|error| self.keys.error(error))?;
        let [Some(newest), Some(keys), lost, before] = &root[..] else {
            return Err(foreign());
        };
        let newest = Id::parse(newest).ok_or_else(foreign)?;
        let keys = std::str::from_utf8(keys).ok().and_then(|keys| keys.parse().ok());
        let mut get = redis::cmd("HEXISTS");
        get.arg(self.keys.of_generation(newest).key("meta")).arg("filled");
        Ok(Root {
            newest,
            keys: keys.ok_or_else(foreign)?,
            has_lost: lost.is_some(),
            before: {
                let before = before.as_deref().unwrap_or_default();
                before.split(|byte| *byte == b' ').filter_map(Id::parse).collect()
            },
            is_filled: get.query(server).map_err(|error| self.keys.error(error))?,
        })
    }

    /// Announces the generation `number`, after `newest`. Does nothing if `newest` is younger than
    /// that, or if another one is newer, and then returns false.
    fn announce(
        &self,
        server: &mut dyn ConnectionLike,
        newest: Id,
        number: u64,
        wanted: Rebuild,
        lost: bool,
    ) -> Result<bool, SharedError> {
        // Another one in each call: a server that has lost the root may have kept the generation
        // that this node announced before, for other keys.
        let token = self.random.hash_one((number, Instant::now()));
        let next = Id { number, token }.to_string();
        let mut call = ANNOUNCE.prepare_invoke();
        call.key(self.keys.key("meta")).arg(newest.to_string()).arg(next);
        let age = u64::try_from(wanted.age.as_millis()).unwrap_or(u64::MAX);
        call.arg(wanted.expected_keys).arg(u8::from(lost)).arg(age);
        let answer = self.keys.answer(call.invoke(server), "announce.lua")?;
        Ok(answer.first().is_none_or(|word| word == b"young"))
    }

    /// Goes to the newest generation: see "The switch". `is_gone` says that the server does not
    /// have the present one.
    fn follow(
        &mut self,
        server: &mut dyn ConnectionLike,
        ended: &dyn Fn() -> bool,
        is_gone: bool,
    ) -> Result<(), SharedError> {
        let present = self.local.newest();
        let is_lost = is_gone || self.replica.has_lost;
        let mut root = self.root(server)?;
        // After a loss of the root another generation may have begun in place of the present one.
        let is_another = |id: &Id| id.number == present.id.number && *id != present.id;
        let is_replaced = |root: &Root| root.before.iter().chain([&root.newest]).any(is_another);
        let is_wrong = |root: &Root| {
            let lacks_keys = self.has_joined && (is_lost || is_replaced(root));
            root.newest.number < present.id.number || lacks_keys && !root.is_filled && !root.has_lost
        };
        for _ in 0..MOST_GENERATIONS {
            if !is_wrong(&root) {
                break;
            }
            if ended() {
                return Err(SharedError::ended());
            }
            let number = root.newest.number.max(present.id.number) + 1;
            let wanted = Rebuild::now(self.present_keys());
            self.announce(server, root.newest, number, wanted, true)?;
            root = self.root(server)?;
        }
        if is_wrong(&root) {
            return Err(SharedError::behind());
        }
        let Root { newest, keys, .. } = root;
        if newest == present.id {
            // The server has lost the later one in between.
            return Ok(());
        }
        self.local.check_keys(keys)?;
        // A generation in between may have keys that this node has not pulled.
        let is_next = root.before.last() == Some(&present.id);
        let is_covered = self.replica.fill_state.is_complete() && is_next && !is_lost && !root.has_lost;
        let filter = Arc::new(self.build(keys)?);
        let mut replica = replica_of(&self.keys, newest, keys, &filter)?;
        replica.fill_state = self.replica.fill_state.next(is_covered);
        let next = Generation {
            place: replica.fill_state.generation,
            id: newest,
            filter,
        };
        let mut generations = self.local.generations.load().to_vec();
        generations.push(next);
        self.local.generations.replace(generations);
        self.past.add(mem::replace(&mut self.replica, replica).counts);
        self.collect();
        self.replica.filter().insert_batch(Hashed::slice(&self.unpushed.hashes));
        if self.unpushed.is_cut {
            self.replica.fill_state.rebuild = Some(Rebuild::now(keys));
        }
        // (A new node comes to the generation that is there.)
        if self.has_joined {
            tracing::info!(generation = newest.number, keys, "a shared set has a new generation");
        }
        Ok(())
    }
}

/// The content of the root key.
struct Root {
    newest: Id,
    keys: u64,
    /// Those since the last one that was filled, if the newest one is not.
    before: Vec<Id>,
    /// Whether keys were lost since the last generation that was filled.
    has_lost: bool,
    /// Whether the newest one is filled.
    is_filled: bool,
}

fn replica_of<S: KeyHasher + Send + Sync>(
    keys: &RedisKeys,
    id: Id,
    expected_keys: u64,
    filter: &Arc<ConcurrentBloom<S>>,
) -> Result<Replica<S>, SharedError> {
    let description = SetDescription::of(filter, filter.hasher(), Lifetime::Rebuilt);
    let mut replica = Replica::new(keys.of_generation(id), description, Arc::clone(filter))?;
    replica.generation = Some((keys.key("meta"), id, expected_keys));
    Ok(replica)
}

impl<S, B> Replicate for SetReplica<S, B>
where
    S: KeyHasher + Send + Sync,
    B: Fn(usize) -> Result<ConcurrentBloom<S>, BuildError> + Send,
{
    fn pass(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        // Before the comparison: it covers these inserts.
        self.collect();
        for _ in 0..MOST_GENERATIONS {
            let result = self.replica.catch_up(server, ended, None);
            if let Err(error) = &result
                && let Kind::Superseded { is_gone } = error.kind()
            {
                self.follow(server, ended, is_gone)?;
                continue;
            }
            result?;
            self.has_joined = true;
            self.replica.has_lost = false;
            if let Some(wanted) = self.replica.fill_state.rebuild.take() {
                let newest = self.local.newest().id;
                let has_lost = self.unpushed.is_cut;
                // Once announced, a generation that cannot be built would stop all nodes. The wish
                // is forgotten then, but for one after a loss.
                self.replica.fill_state.rebuild = has_lost.then(|| Rebuild::now(self.present_keys()));
                self.build(wanted.expected_keys)?;
                self.replica.fill_state.rebuild = Some(wanted);
                // Its source reads the rows of these inserts. If the present one is too young, the
                // pass has pushed them.
                if self.announce(server, newest, newest.number + 1, wanted, has_lost)? {
                    self.unpushed = Log::default();
                }
                if !self.unpushed.is_cut {
                    self.replica.fill_state.rebuild = None;
                }
                continue;
            }
            self.unpushed = Log::default();
            if self.replica.fill_state.is_filled && self.local.generations.load().len() > 1 {
                self.local.generations.replace(vec![self.local.newest()]);
            }
            return Ok(());
        }
        Err(SharedError::behind())
    }

    fn forget(&mut self) {
        self.replica.forget();
    }

    fn most_bytes(&self) -> usize {
        self.replica.most_bytes()
    }

    fn counts(&self) -> Counts {
        let mut counts = self.past;
        counts.add(self.replica.counts);
        counts.comparing = self.replica.counts.comparing;
        counts
    }

    fn fill_state(&mut self) -> Option<&mut FillState> {
        Some(&mut self.replica.fill_state)
    }
}
