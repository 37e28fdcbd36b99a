//! What a node knows of the set on the server, and how the two are brought together. Called by the thread of a
//! [`SharedBloom`](super::SharedBloom) with a connection; calls the script `exchange.lua`.
//!
//! # Nothing is lost
//!
//! `pushed` is the node's picture of the server: bits that the server was seen to have. What the filter has beyond it is to be pushed. So
//! a push is forgotten only once the server has answered it, and whatever fails before is found again by the next comparison; that bits
//! are pushed twice does no harm.
//!
//! The picture may be ahead of a server that lost something: restarted with an append-only file that lacks its end, restored from
//! a backup, replaced by a replica that was behind, flushed. Every exchange has an id, its number and 64 random bits, which the
//! server keeps as `head`, and in `versions` for every chunk that it changed. A node names in each call the last exchange that it knows.
//! If that is neither the head nor in the log, the node compares versions, and where they differ takes the chunk from the server and
//! the server's word for what is in `pushed`: what the server lost is then missing there, and is pushed again. An id is never given
//! twice, so a version that is the same stands for the same bits, whatever happened to the server: `pushed` holds of a chunk no bits
//! beyond those that were there at `versions`.

use super::delta::{self, CHUNK_BLOCKS, CHUNK_WORDS, Delta};
use super::description::{Description, Keys, Life};
use super::node::{Counts, Side};
use crate::bits;
use crate::error::{BuildError, BuildErrorKind};
use crate::filter::concurrent::ConcurrentBloom;
use crate::hash::KeyHasher;
use crate::memory::Words;
use crate::redis::error::{SharedError, SharedErrorKind};
use crate::sizing::LINE_WORDS;
use alloc::collections::BTreeMap;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::hash::BuildHasher;
use core::time::Duration;
use redis::{ConnectionLike, Script};
use std::hash::RandomState;
use std::time::{Instant, SystemTime};

/// The log takes a quarter of the filter's bytes, but no less and no more than this. A node that was away while more was pushed reads the
/// chunks that changed.
const LOG_BYTES: (usize, usize) = (1 << 20, 16 << 20);

/// Chunks that are asked for at once: half a MiB.
const CHUNKS_AT_ONCE: usize = 64;

/// Bytes of a reply, but for versions, are fewer than this. A script answers a MiB and a delta, which in deltas of 8 bytes and as the protocol has it are 9.
const REPLY_BYTES: usize = 16 << 20;
/// Bytes of a chunk's number and version, as the protocol has them, are fewer than this.
const VERSION_BYTES: usize = 128;

/// How often within one pass a node may find that the log has been cut off meanwhile, before it gives up until the next.
const RESYNCS: usize = 8;

/// An exchange: its number, and 64 random bits, since a server that lost its last exchanges gives their numbers again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Id {
    number: u64,
    token: u64,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.token)
    }
}

impl Id {
    fn parse(text: &[u8]) -> Option<Self> {
        let (number, token) = core::str::from_utf8(text).ok()?.split_once('-')?;
        Some(Self {
            number: number.parse().ok()?,
            token: token.parse().ok()?,
        })
    }
}

/// When the server is to delete what is written, as the script is told.
#[derive(Clone, Copy, Debug)]
pub(super) enum Expires {
    Never,
    /// In ms since 1970, by the server's clock.
    At(u64),
    /// In so many ms from now.
    #[cfg(feature = "window")]
    In(u64),
}

impl fmt::Display for Expires {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("0"),
            Self::At(time) => write!(f, "{time}"),
            #[cfg(feature = "window")]
            Self::In(time) => write!(f, "+{time}"),
        }
    }
}

pub(super) struct Replica<S> {
    filter: Arc<ConcurrentBloom<S>>,
    keys: Keys,
    description: Description,
    pub(super) expires: Expires,
    exchange: Script,
    random: RandomState,
    /// See the top of this file.
    pushed: Words<u64>,
    versions: Vec<Id>,
    /// The last exchange that is known here; none before the first look at the chunks.
    at: Option<Id>,
    calls: u64,
    pub(super) counts: Counts,
}

/// What came of a call of the script.
enum Exchanged {
    Done,
    More,
    Lost,
}

impl<S: KeyHasher> Replica<S> {
    pub(super) fn new(keys: Keys, life: Life, filter: Arc<ConcurrentBloom<S>>) -> Result<Self, SharedError> {
        let chunks = filter.blocks().div_ceil(CHUNK_BLOCKS);
        if u32::try_from(chunks).is_err() {
            return Err(SharedErrorKind::TooLarge {
                bytes: filter.memory_bytes(),
                limit: u64::from(u32::MAX) * delta::CHUNK_BYTES as u64,
            }
            .into());
        }
        let pushed = Words::new(filter.blocks() * LINE_WORDS).ok_or_else(|| {
            SharedErrorKind::Build(BuildError(BuildErrorKind::OutOfMemory {
                bytes: filter.memory_bytes(),
            }))
        })?;
        Ok(Self {
            keys,
            description: Description::of(&filter, life),
            expires: match life {
                Life::Until(time) => Expires::At(time),
                _ => Expires::Never,
            },
            exchange: Script::new(include_str!("exchange.lua")),
            random: RandomState::new(),
            pushed,
            versions: alloc::vec![Id::default(); chunks],
            at: None,
            calls: 0,
            counts: Counts::default(),
            filter,
        })
    }

    #[cfg(feature = "window")]
    pub(super) fn filter(&self) -> &Arc<ConcurrentBloom<S>> {
        &self.filter
    }

    /// [`Side::pass`], where the last exchange that the server knows is `head` if that is known: to look is not to exchange.
    pub(super) fn catch_up(
        &mut self,
        server: &mut dyn ConnectionLike,
        ended: &dyn Fn() -> bool,
        head: Option<&[u8]>,
    ) -> Result<(), SharedError> {
        let chunks = self.versions.len();
        let (mut resyncs, mut refused) = (0, None);
        self.counts.comparing = Duration::ZERO;
        let (mut delta, mut next) = self.changes_from(0);
        if delta.chunks.is_empty() && head.is_some_and(|head| self.at.is_some() && self.at == Id::parse(head)) {
            return Ok(());
        }
        loop {
            if ended() {
                return Err(SharedErrorKind::Ended.into());
            }
            match self.exchange(server, &delta) {
                Ok(Exchanged::Done) => {
                    (delta, next) = self.changes_from(next);
                    if delta.chunks.is_empty() {
                        return refused.map_or(Ok(()), Err);
                    }
                }
                Ok(Exchanged::More) => {}
                Ok(Exchanged::Lost) => {
                    if resyncs == RESYNCS {
                        return Err(SharedErrorKind::Behind.into());
                    }
                    resyncs += 1;
                    self.resync(server, ended)?;
                    (delta, next) = self.changes_from(0);
                }
                // A server that is full, or must not be written to, still gives what others have pushed.
                Err(error) if error.is_refusal() && !delta.chunks.is_empty() => {
                    refused = Some(error);
                    (delta, next) = (Delta::default(), chunks);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What is to be pushed of the chunks from `next` on, as much as one delta takes, and the chunk after.
    fn changes_from(&mut self, mut next: usize) -> (Delta, usize) {
        let began = Instant::now();
        let mut delta = Delta::default();
        let mut added = [0; CHUNK_WORDS];
        let mut pushed = self.pushed.chunks(CHUNK_WORDS).skip(next);
        while !delta.is_full()
            && let Some(pushed) = pushed.next()
        {
            let added = &mut added[..pushed.len()];
            if self.filter.bits.beyond(next * CHUNK_BLOCKS, pushed, added) {
                delta.push(next as u32, added);
            }
            next += 1;
        }
        // What the inserters of these bits had done before is to be seen before the bits are sent.
        bits::acquire();
        self.counts.comparing += began.elapsed();
        (delta, next)
    }

    /// One call of the script: pulls, and pushes `delta` where everything was pulled.
    fn exchange(&mut self, server: &mut dyn ConnectionLike, delta: &Delta) -> Result<Exchanged, SharedError> {
        let Some(at) = self.at else {
            return Ok(Exchanged::Lost);
        };
        self.calls += 1;
        let log_bytes = (self.filter.memory_bytes() / 4).clamp(LOG_BYTES.0, LOG_BYTES.1);
        let mut call = self.exchange.prepare_invoke();
        for role in ["meta", "log", "versions", "scratch"] {
            call.key(self.keys.key(role));
        }
        for chunk in &delta.chunks {
            call.key(self.keys.key(chunk));
        }
        let token = self.random.hash_one(self.calls);
        call.arg(self.description.to_string()).arg(at.to_string()).arg(token);
        call.arg(log_bytes).arg(&delta.bytes).arg(self.expires.to_string());
        let answer: Vec<Vec<u8>> = call.invoke(server).map_err(SharedErrorKind::Redis)?;
        let [what, id, pulled @ ..] = &answer[..] else {
            return Err(self.keys.foreign("meta", "the script answers too little"));
        };
        let done = match &what[..] {
            b"done" => true,
            // Without end, if it gave nothing.
            b"more" if !pulled.is_empty() => false,
            b"lost" => return Ok(Exchanged::Lost),
            b"other" => return Err(self.differs(id)),
            _ => return Err(self.keys.foreign("meta", "the script answers something unknown")),
        };
        let mut take = || {
            let (pulled, []) = pulled.as_chunks() else {
                return Err("an exchange without its delta");
            };
            for [id, delta] in pulled {
                self.take(id, delta, true)?;
            }
            if done && !delta.chunks.is_empty() {
                self.take(id, &delta.bytes, false)?;
            }
            self.at = Some(Id::parse(id).ok_or("is no id")?);
            Ok(())
        };
        if let Err(what) = take() {
            self.forget();
            return Err(self.keys.foreign("log", what));
        }
        self.counts.pushed_bytes += delta.bytes.len() as u64;
        Ok(if done { Exchanged::Done } else { Exchanged::More })
    }

    /// Takes note of a delta that is on the server, and if it was `pulled` takes its bits.
    fn take(&mut self, id: &[u8], delta: &[u8], pulled: bool) -> Result<(), &'static str> {
        let id = Id::parse(id).ok_or("is no id")?;
        delta::decode(delta, self.pushed.len(), |chunk, word, bits| {
            let word = chunk * CHUNK_WORDS + word;
            if pulled {
                self.filter.bits.set_word(word, bits);
            }
            self.pushed[word] |= bits;
            self.versions[chunk] = id;
        })?;
        if pulled {
            self.counts.pulled_bytes += delta.len() as u64;
        }
        Ok(())
    }

    /// Takes every chunk of which the server has another version than is known here.
    ///
    /// The head is read first, then versions, then chunks: so what is noted is never newer than what was read, and what was pushed
    /// meanwhile is pulled from the log afterwards.
    fn resync(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        self.counts.resyncs += 1;
        type Meta = (Option<Vec<u8>>, Option<Vec<u8>>);
        let ((description, head), theirs): (Meta, BTreeMap<usize, Vec<u8>>) = redis::pipe()
            .hmget(self.keys.key("meta"), &["description", "head"])
            .hgetall(self.keys.key("versions"))
            .query(server)
            .map_err(SharedErrorKind::Redis)?;
        if let Some(theirs) = description {
            self.description.check(&self.keys, &theirs)?;
        }
        let head = match head {
            None => Id::default(),
            Some(head) => Id::parse(&head).ok_or_else(|| self.keys.foreign("meta", "the head is no id"))?,
        };
        let mut versions = alloc::vec![Id::default(); self.versions.len()];
        for (chunk, id) in theirs {
            let id = Id::parse(&id).ok_or_else(|| self.keys.foreign("versions", "a version is no id"))?;
            *versions
                .get_mut(chunk)
                .ok_or_else(|| self.keys.foreign("versions", "a chunk is beyond the filter's last"))? = id;
        }
        let differ = |&chunk: &usize| versions[chunk] != self.versions[chunk];
        let (there, gone): (Vec<usize>, Vec<usize>) = (0..versions.len())
            .filter(differ)
            .partition(|&chunk| versions[chunk] != Id::default());
        // What has no version no new node would take, be it there or not: so it is pushed again.
        for chunk in gone {
            self.take_chunk(chunk, &[])?;
            self.versions[chunk] = Id::default();
        }
        for some in there.chunks(CHUNKS_AT_ONCE) {
            if ended() {
                return Err(SharedErrorKind::Ended.into());
            }
            let mut pipe = redis::pipe();
            for chunk in some {
                pipe.get(self.keys.key(chunk));
            }
            let contents: Vec<Option<Vec<u8>>> = pipe.query(server).map_err(SharedErrorKind::Redis)?;
            if contents.len() != some.len() {
                return Err(self
                    .keys
                    .foreign("versions", "chunks are answered that were not asked for"));
            }
            for (&chunk, content) in some.iter().zip(contents) {
                self.take_chunk(chunk, &content.unwrap_or_default())?;
                self.versions[chunk] = versions[chunk];
            }
        }
        self.at = Some(head);
        Ok(())
    }

    /// Takes the bits of a chunk, which are what the server has; what is not among them it does not.
    fn take_chunk(&mut self, chunk: usize, content: &[u8]) -> Result<(), SharedError> {
        let first = chunk * CHUNK_WORDS;
        let words = delta::chunk_words(chunk, self.pushed.len()).unwrap_or(0);
        if content.len() > 8 * words {
            return Err(self
                .keys
                .foreign(chunk, "the chunk is longer than its part of the filter"));
        }
        for i in 0..words {
            let mut bytes = [0; 8];
            // The server keeps no zeros behind the last bit that was set.
            let there = content.get(8 * i..).unwrap_or_default();
            let there = &there[..there.len().min(8)];
            bytes[..there.len()].copy_from_slice(there);
            let bits = u64::from_le_bytes(bytes);
            self.pushed[first + i] = bits;
            self.filter.bits.set_word(first + i, bits);
        }
        self.counts.pulled_bytes += content.len() as u64;
        Ok(())
    }

    /// Bytes that the replies of a round trip have at most: what a script answers in parts, or chunks, or the versions of all chunks.
    pub(super) fn most_bytes(&self) -> usize {
        REPLY_BYTES + self.versions.len() * VERSION_BYTES
    }

    /// Forgets what is known of the server, so that all of it is fetched: of what was read it is not known what is in it.
    pub(super) fn forget(&mut self) {
        self.pushed.fill(0);
        self.versions.fill(Id::default());
        self.at = None;
    }

    /// What differs between our description and another.
    fn differs(&self, theirs: &[u8]) -> SharedError {
        let same = || self.keys.foreign("meta", "the script refuses our own description");
        self.description.check(&self.keys, theirs).err().unwrap_or_else(same)
    }
}

/// The side of a [`SharedBloom`](super::SharedBloom): one filter, one set.
impl<S: KeyHasher + Send + Sync> Side for Replica<S> {
    fn prepare(&mut self) -> Result<(), SharedError> {
        match self.expires {
            Expires::At(time) if since_1970(SystemTime::now()) >= time => Err(SharedErrorKind::Expired.into()),
            _ => Ok(()),
        }
    }

    fn pass(&mut self, server: &mut dyn ConnectionLike, ended: &dyn Fn() -> bool) -> Result<(), SharedError> {
        self.catch_up(server, ended, None)
    }

    fn forget(&mut self) {
        Replica::forget(self);
    }

    fn most_bytes(&self) -> usize {
        self.most_bytes()
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

/// Milliseconds since 1970, 0 before.
pub(super) fn since_1970(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
