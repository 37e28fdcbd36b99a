//! A node's knowledge of the set on the server, and the code that merges the two. The thread of a
//! [`SharedBloom`](super::SharedBloom) calls it with a connection. It calls the scripts
//! `exchange.lua` and `read.lua`.
//!
//! # Nothing is lost
//!
//! `pushed` is the node's picture of the server: the bits that the node has seen on the server. The
//! node must push the filter's bits that are not in it. A push enters the picture only when the
//! server has answered it. If a push fails, the next comparison finds its bits again. Pushing bits
//! twice does no harm.
//!
//! The picture may be ahead of a server that lost something: one restarted with an append-only file
//! that lacks its end, restored from a backup, replaced by a replica that was behind, or flushed.
//! Every exchange has an id: its number and 64 random bits. The server keeps the id as `head`, and
//! in `versions` for every chunk that the exchange changed. In each call a node names the last
//! exchange that it knows. If that is neither the head nor in the log, the node compares versions.
//! If a chunk's versions differ, the node sets `pushed` to the server's chunk. Bits that the server
//! lost are then missing in `pushed`, and the node pushes them again. An id is never given twice,
//! so the same version means the same bits, whatever happened to the server: for a chunk, `pushed`
//! holds only bits that were on the server at `versions`.
//!
//! Therefore a script reads a chunk and its version at one moment. While a node fetches chunks,
//! other nodes push, so some chunks have a version newer than the head that the node read before.
//! These are `ahead`: the log from that head on still has to deliver their exchanges. If the log
//! passes the number of such a version by another exchange, or ends before it, the server has lost
//! it in between. The node then compares the chunks again.
//!
//! # Lost chunks
//!
//! A server may lose a chunk and keep its version: by an eviction, a deletion, an expiry of that
//! key alone. The script notices a chunk with a version and without bytes: it looks at those that a
//! delta changes, at 16 others in each call, and at one that a node has read empty. It removes the
//! version, and logs a record of the chunk without bits. A node that comes to this record sets
//! `pushed` to nothing there, so it pushes the chunk again.
//!
//! Such a node has every bit that the server had, since it has pulled everything before. The set
//! regains the mark that it is filled once all lost chunks were pushed by such nodes (`restores`).
//! A node that came after the loss knows the chunk as a gap (`gaps`).

use super::delta::{self, BLOCK_WORDS, CHUNK_BLOCKS, CHUNK_WORDS, Delta};
use super::fill_state::FillState;
use super::node::{Counts, Replicate};
use super::redis_keys::RedisKeys;
use super::set_description::{Lifetime, SetDescription};
use crate::error::{Kind, Report, SharedError};
use lanebloom::ConcurrentBloom;
use redis::{ConnectionLike, Script};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant, SystemTime};

/// The log takes a quarter of the filter's bytes, but no less and no more than this. A node that
/// was away while more was pushed reads the chunks that changed.
const LOG_BYTES: (usize, usize) = (1 << 20, 16 << 20);

/// Chunks that one call reads: half a MiB.
const CHUNKS_AT_ONCE: usize = 64;

/// The most bytes of a reply without versions. A script returns a MiB and a delta; in deltas of 8
/// bytes the protocol makes 9 MiB of it.
const REPLY_BYTES: usize = 16 << 20;
/// The most bytes of a chunk's number and version in the protocol.
const VERSION_BYTES: usize = 128;

/// How often a node may find the log cut off, or chunks lost, in one pass, before it gives up until
/// the next pass.
const RESYNCS: usize = 8;

/// The chunks that the server looks at in each call, beside those of the delta: all of a set for a
/// million keys within eleven calls.
const CHECKED: usize = 16;

/// How often the server may answer in one pass that there is more to pull: each time a MiB, from a
/// log of 16. So a server that always returns this does not hold a pass for ever.
const MORE: usize = 64;

static EXCHANGE: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("exchange.lua")));
static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("read.lua")));

/// The id of an exchange: its number, and 64 random bits, since a server that lost its last
/// exchanges gives their numbers again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Id {
    pub(super) number: u64,
    pub(super) token: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.token)
    }
}

impl Id {
    pub(super) fn parse(text: &[u8]) -> Option<Self> {
        let (number, token) = str::from_utf8(text).ok()?.split_once('-')?;
        Some(Self {
            number: number.parse().ok()?,
            token: token.parse().ok()?,
        })
    }
}

/// When the server deletes the written keys, as `exchange.lua` takes it.
pub(super) struct Expiry {
    /// In ms since 1970, or after a "+" in ms from now; "0" if never.
    time: String,
    /// In ms: a time from now that is later by no more than this changes nothing.
    tolerance: u64,
}

impl Expiry {
    /// At a time in ms since 1970; 0 if never.
    fn at(time: u64) -> Self {
        let (time, tolerance) = (time.to_string(), 0);
        Self { time, tolerance }
    }

    /// This many ms from now.
    pub(super) fn after(ms: u64, tolerance: u64) -> Self {
        let time = format!("+{ms}");
        Self { time, tolerance }
    }
}

pub(super) struct Replica<S> {
    filter: Arc<ConcurrentBloom<S>>,
    keys: RedisKeys,
    description: SetDescription,
    pub(super) expires: Expiry,
    random: RandomState,
    /// See the top of this file.
    pushed: Vec<u64>,
    versions: Vec<Id>,
    /// The last exchange that this node knows; none before it has first read the chunks.
    at: Option<Id>,
    /// Chunks that were read in a version beyond `at`.
    ahead: BTreeMap<usize, Id>,
    calls: u64,
    pub(super) counts: Counts,
    pub(super) fill_state: FillState,
    /// The root key, this generation and its expected keys, if the set has generations.
    pub(super) generation: Option<(String, Id, u64)>,
    /// Whether a chunk on the server lacks bits that were there.
    pub(super) has_lost: bool,
    /// The same, until the server is told.
    tells_loss: bool,
    /// The next chunk that the server looks for.
    cursor: usize,
    /// Chunks that the server had lost before this node read them.
    gaps: BTreeSet<usize>,
    /// Lost chunks of which this node has all bits, until the server is told that it has them.
    restores: BTreeSet<usize>,
    /// Whether a chunk was lost since the comparison began: it is to be pushed again.
    begins_again: bool,
}

/// The result of a call of the script.
enum Exchanged {
    Done,
    /// Everything was pulled, but chunks that were compared before must be compared again.
    Again,
    More,
    Lost,
}

impl<S: Send + Sync> Replica<S> {
    /// `description` must be that of `filter`, or of the filter that hashes its keys.
    pub(super) fn new(
        keys: RedisKeys,
        description: SetDescription,
        filter: Arc<ConcurrentBloom<S>>,
    ) -> Result<Self, SharedError> {
        let chunks = filter.layout().blocks.div_ceil(CHUNK_BLOCKS);
        if u32::try_from(chunks).is_err() {
            let (needed, limit) = (filter.memory_bytes(), u64::from(u32::MAX) * delta::CHUNK_BYTES as u64);
            return Err(SharedError::other(format!(
                "a filter of {needed} bytes exceeds the limit of {limit} bytes"
            )));
        }
        let mut pushed = Vec::new();
        let words = filter.layout().blocks * BLOCK_WORDS;
        if pushed.try_reserve_exact(words).is_err() {
            return Err(SharedError::other(format!(
                "not enough memory for the record of pushed bits: the allocation of {} bytes failed",
                8 * words
            )));
        }
        pushed.resize(words, 0);
        Ok(Self {
            keys,
            description,
            expires: Expiry::at(match description.lifetime {
                Lifetime::Until(time) => time,
                _ => 0,
            }),
            random: RandomState::new(),
            pushed,
            versions: vec![Id::default(); chunks],
            at: None,
            ahead: BTreeMap::new(),
            calls: 0,
            counts: Counts::default(),
            fill_state: FillState::default(),
            generation: None,
            has_lost: false,
            tells_loss: false,
            cursor: 0,
            gaps: BTreeSet::new(),
            restores: BTreeSet::new(),
            begins_again: false,
            filter,
        })
    }

    pub(super) fn filter(&self) -> &Arc<ConcurrentBloom<S>> {
        &self.filter
    }

    /// [`Replicate::pass`]. `head` is the server's last exchange, if the caller has just read it:
    /// then a pass without news needs no call.
    pub(super) fn catch_up(
        &mut self,
        server: &mut dyn ConnectionLike,
        ended: &dyn Fn() -> bool,
        head: Option<&[u8]>,
    ) -> Result<(), SharedError> {
        let chunks = self.versions.len();
        let (mut resyncs, mut more, mut refused) = (0, 0, None);
        let (mut delta, mut next) = self.changes_from(0);
        let knows = |head| self.at.is_some() && self.at == Id::parse(head) && self.ahead.is_empty();
        if delta.chunks.is_empty() && head.is_some_and(knows) {
            return Ok(());
        }
        loop {
            if ended() {
                return Err(SharedError::ended());
            }
            let is_last = next == chunks && refused.is_none();
            match self.exchange(server, &delta, is_last) {
                Ok(Exchanged::Done) => {
                    (delta, next) = self.changes_from(next);
                    if delta.chunks.is_empty() {
                        return refused.map_or(Ok(()), Err);
                    }
                }
                Ok(Exchanged::More) if more == MORE => return Err(SharedError::behind()),
                Ok(Exchanged::More) => more += 1,
                Ok(Exchanged::Lost | Exchanged::Again) if resyncs == RESYNCS => return Err(SharedError::behind()),
                Ok(exchanged @ (Exchanged::Lost | Exchanged::Again)) => {
                    resyncs += 1;
                    if matches!(exchanged, Exchanged::Lost) {
                        self.resync(server, ended)?;
                    }
                    (delta, next) = self.changes_from(0);
                }
                // A server that is full, or takes no writes, still gives what others have pushed.
                Err(error) if error.is_refusal() && !delta.chunks.is_empty() => {
                    refused = Some(error);
                    (delta, next) = (Delta::default(), chunks);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The bits to push from chunk `next` on, as many as one delta takes, and the next chunk after
    /// them.
    fn changes_from(&mut self, mut next: usize) -> (Delta, usize) {
        let began = Instant::now();
        if next == 0 {
            self.counts.comparing = Duration::ZERO;
            self.begins_again = false;
        }
        let mut delta = Delta::default();
        let mut added = [0; CHUNK_WORDS];
        let mut pushed = self.pushed.chunks(CHUNK_WORDS).skip(next);
        while !delta.is_full()
            && let Some(pushed) = pushed.next()
        {
            let added = &mut added[..pushed.len()];
            if self.filter.missing_in(next * CHUNK_BLOCKS, pushed, added) {
                delta.push(next as u32, added);
            }
            next += 1;
        }
        self.counts.comparing += began.elapsed();
        (delta, next)
    }

    /// One call of the script: pulls, and pushes `delta` if it has pulled everything. `is_last`
    /// says that the server then has every bit that was in the filter before the pass.
    fn exchange(
        &mut self,
        server: &mut dyn ConnectionLike,
        delta: &Delta,
        is_last: bool,
    ) -> Result<Exchanged, SharedError> {
        let Some(at) = self.at else {
            return Ok(Exchanged::Lost);
        };
        self.calls += 1;
        let log_bytes = (self.filter.memory_bytes() / 4).clamp(LOG_BYTES.0, LOG_BYTES.1);
        let mut call = EXCHANGE.prepare_invoke();
        for role in ["meta", "log", "versions", "scratch"] {
            call.key(self.keys.key(role));
        }
        for chunk in &delta.chunks {
            call.key(self.keys.key(chunk));
        }
        let token = self.random.hash_one(self.calls);
        call.arg(self.description.to_string()).arg(at.to_string()).arg(token);
        call.arg(log_bytes)
            .arg(&delta.bytes)
            .arg(&self.expires.time)
            .arg(self.expires.tolerance);
        let (part, lease) = self.fill_state.says(is_last);
        call.arg(part).arg(lease).arg(self.fill_state.era());
        call.arg(u8::from(self.tells_loss)).arg(self.cursor);
        let restores: Vec<String> = self.restores.iter().map(usize::to_string).collect();
        call.arg(if is_last { restores.join(" ") } else { String::new() });
        match &self.generation {
            Some((root, id, keys)) => call.arg(root).arg(id.to_string()).arg(keys),
            None => call.arg(""),
        };
        let answer = self.keys.answer(call.invoke(server), "exchange.lua")?;
        let [what, id, era, pulled @ ..] = &answer[..] else {
            return Err(self.foreign("meta", "the reply of the script is too short"));
        };
        match &what[..] {
            b"gone" => return Err(superseded(true)),
            b"other" => return Err(self.differs(id)),
            _ => {}
        }
        let done = match &what[..] {
            b"done" | b"holds" | b"filled" => true,
            // An answer without deltas could come for ever.
            b"more" | b"gaps" if !pulled.is_empty() => false,
            b"lost" => return Ok(Exchanged::Lost),
            b"next" => false,
            _ => return Err(self.foreign("meta", "the reply of the script is unknown")),
        };
        self.fill_state.comes_to(era);
        self.tells_loss = false;
        let mut take = || {
            let (pulled, []) = pulled.as_chunks() else {
                return Err("an exchange without its delta");
            };
            let mut passed = true;
            for [id, delta] in pulled {
                passed &= self.take(id, delta, true)?;
            }
            if done && !delta.chunks.is_empty() {
                passed &= self.take(id, &delta.bytes, false)?;
            }
            self.at = Some(Id::parse(id).ok_or("its id is not one of a stream entry")?);
            Ok(passed && (self.ahead.is_empty() || *what == b"more"))
        };
        let taken = take();
        if let Err(what) = taken {
            self.forget();
            return Err(self.foreign("log", what));
        }
        Ok(match (taken, done) {
            (Ok(true), true) => {
                self.fill_state.hears(what);
                self.cursor = (self.cursor + CHECKED) % self.versions.len();
                if self.fill_state.is_filled {
                    self.gaps.clear();
                }
                if is_last && pulled.is_empty() {
                    self.restores.clear();
                }
                match self.begins_again {
                    true => Exchanged::Again,
                    false => Exchanged::Done,
                }
            }
            (Ok(true), false) if *what == b"gaps" => Exchanged::Again,
            (Ok(true), false) if *what == b"next" => return Err(superseded(false)),
            (Ok(true), false) => Exchanged::More,
            _ => Exchanged::Lost,
        })
    }

    /// Notes a delta that is on the server, and takes its bits if it was `pulled`. Returns false if
    /// the delta contradicts a version that was read before.
    fn take(&mut self, id: &[u8], delta: &[u8], pulled: bool) -> Result<bool, &'static str> {
        let id = Id::parse(id).ok_or("its id is not one of a stream entry")?;
        let mut passed = true;
        delta::decode(delta, self.pushed.len(), |chunk, added| {
            if let Some((word, bits)) = added {
                let word = chunk * CHUNK_WORDS + word;
                if pulled {
                    self.filter.add_bits(word, bits);
                }
                self.pushed[word] |= bits;
            }
            match self.ahead.get(&chunk) {
                // The chunk that was read has these bits, and more.
                Some(read) if id.number < read.number => return,
                // The version stays, so that the chunk is read again.
                Some(read) if id != *read => return passed = false,
                Some(_) => _ = self.ahead.remove(&chunk),
                None => {}
            }
            if added.is_some() {
                self.versions[chunk] = id;
                return;
            }
            // The server has lost the chunk.
            if self.versions[chunk] != Id::default() && !self.gaps.contains(&chunk) {
                self.restores.insert(chunk);
            }
            self.versions[chunk] = Id::default();
            let words = delta::chunk_words(chunk, self.pushed.len()).unwrap_or(0);
            self.pushed[chunk * CHUNK_WORDS..][..words].fill(0);
            self.begins_again = true;
        })?;
        let bytes = if pulled {
            &mut self.counts.pulled_bytes
        } else {
            &mut self.counts.pushed_bytes
        };
        *bytes += delta.len() as u64;
        Ok(passed)
    }

    /// Takes every chunk whose version on the server differs from the known one.
    ///
    /// Reads the head and all versions first, then chunks, each with its version. Afterwards the
    /// log delivers what other nodes pushed meanwhile.
    fn resync(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        self.counts.resyncs += 1;
        self.ahead.clear();
        let state = self.read(&[], server)?;
        let [description, head, lost, theirs @ ..] = &state[..] else {
            return Err(self.foreign("meta", "the reply of the script is too short"));
        };
        if !description.is_empty() {
            self.description.check(&self.keys, description)?;
        }
        let head = match &head[..] {
            [] => Id::default(),
            head => Id::parse(head).ok_or_else(|| self.foreign("meta", "the head is not the id of a stream entry"))?,
        };
        // This node may lack bits that were pushed there since its last exchange.
        self.restores.clear();
        let lost = str::from_utf8(lost).unwrap_or_default().split(' ');
        let lost = lost.filter_map(|chunk| chunk.parse().ok());
        self.gaps
            .extend(lost.filter(|&chunk: &usize| chunk < self.versions.len()));
        let mut versions = vec![Id::default(); self.versions.len()];
        for [chunk, version] in theirs.as_chunks().0 {
            let chunk = str::from_utf8(chunk).ok().and_then(|chunk| chunk.parse::<usize>().ok());
            *chunk
                .and_then(|chunk| versions.get_mut(chunk))
                .ok_or_else(|| self.foreign("versions", "a chunk is none of the filter's"))? = self.version(version)?;
        }
        let differ = |&chunk: &usize| versions[chunk] != self.versions[chunk];
        let (there, gone): (Vec<usize>, Vec<usize>) = (0..versions.len())
            .filter(differ)
            .partition(|&chunk| versions[chunk] != Id::default());
        // No new node takes a chunk without a version, so its bits are pushed again.
        for chunk in gone {
            self.take_chunk(chunk, &[])?;
            self.versions[chunk] = Id::default();
        }
        for some in there.chunks(CHUNKS_AT_ONCE) {
            if ended() {
                return Err(SharedError::ended());
            }
            let chunks = self.read(some, server)?;
            let (chunks, []) = chunks.as_chunks() else {
                return Err(self.foreign("versions", "the reply has a version without its chunk"));
            };
            if chunks.len() != some.len() {
                return Err(self.foreign("versions", "the reply has other chunks than the request"));
            }
            for (&chunk, [version, content]) in some.iter().zip(chunks) {
                let version = self.version(version)?;
                if content.is_empty() && version != Id::default() {
                    self.gaps.insert(chunk);
                    self.cursor = chunk;
                }
                self.take_chunk(chunk, content)?;
                self.versions[chunk] = version;
                if version != versions[chunk] {
                    self.ahead.insert(chunk, version);
                }
            }
        }
        self.at = Some(head);
        Ok(())
    }

    /// The script's answer for these chunks, or for the whole set if there are none.
    fn read(&self, chunks: &[usize], server: &mut dyn ConnectionLike) -> Result<Vec<Vec<u8>>, SharedError> {
        let mut call = READ.prepare_invoke();
        call.key(self.keys.key("meta")).key(self.keys.key("versions"));
        for chunk in chunks {
            call.key(self.keys.key(chunk)).arg(chunk);
        }
        self.keys.answer(call.invoke(server), "read.lua")
    }

    /// The version of a chunk; the default for an empty text.
    fn version(&self, text: &[u8]) -> Result<Id, SharedError> {
        if text.is_empty() {
            return Ok(Id::default());
        }
        Id::parse(text).ok_or_else(|| self.foreign("versions", "a version is not the id of a stream entry"))
    }

    /// Takes the content of a chunk: `pushed` then has exactly these bits of it.
    fn take_chunk(&mut self, chunk: usize, content: &[u8]) -> Result<(), SharedError> {
        let first = chunk * CHUNK_WORDS;
        let words = delta::chunk_words(chunk, self.pushed.len()).unwrap_or(0);
        if content.len() > 8 * words {
            return Err(self.foreign(chunk, "the chunk is longer than its part of the filter"));
        }
        for i in 0..words {
            let mut bytes = [0; 8];
            // The server keeps no zeros after the last bit that was set.
            let there = content.get(8 * i..).unwrap_or_default();
            let there = &there[..there.len().min(8)];
            bytes[..there.len()].copy_from_slice(there);
            let bits = u64::from_le_bytes(bytes);
            let is_lost = self.pushed[first + i] & !bits != 0 && !self.gaps.contains(&chunk);
            self.has_lost |= is_lost;
            self.tells_loss |= is_lost;
            self.pushed[first + i] = bits;
            self.filter.add_bits(first + i, bits);
        }
        self.counts.pulled_bytes += content.len() as u64;
        Ok(())
    }

    /// The error for a part of the set that no node wrote.
    fn foreign(&self, role: impl fmt::Display, what: &str) -> SharedError {
        self.keys.foreign(role, what)
    }

    /// The error that names the difference between our description and another.
    fn differs(&self, theirs: &[u8]) -> SharedError {
        let same = || self.foreign("meta", "the script refuses our own description");
        self.description.check(&self.keys, theirs).err().unwrap_or_else(same)
    }
}

/// The replica of a [`SharedBloom`](super::SharedBloom): one filter, one set.
impl<S: Send + Sync> Replicate for Replica<S> {
    fn prepare(&mut self) -> Result<(), SharedError> {
        match self.description.lifetime {
            Lifetime::Until(time) if since_1970(SystemTime::now()) >= time => {
                Err(Report::new(Kind::Expired, "the set has expired").into())
            }
            _ => Ok(()),
        }
    }

    fn pass(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        self.catch_up(server, ended, None)
    }

    fn forget(&mut self) {
        self.pushed.fill(0);
        self.versions.fill(Id::default());
        self.at = None;
    }

    /// A part of the log, or chunks, or the versions of all chunks.
    fn most_bytes(&self) -> usize {
        REPLY_BYTES + self.versions.len() * VERSION_BYTES
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn expires(&self) -> bool {
        matches!(self.description.lifetime, Lifetime::Until(_))
    }

    fn fill_state(&mut self) -> Option<&mut FillState> {
        Some(&mut self.fill_state)
    }
}

fn superseded(is_gone: bool) -> SharedError {
    Report::new(Kind::Superseded { is_gone }, "the set is being rebuilt").into()
}

/// Milliseconds since 1970, 0 before.
pub(super) fn since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
