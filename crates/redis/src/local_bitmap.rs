//! [`LocalBitmap`]: a copy of a `RedisBitmap`'s bits, in words that many threads read. The server
//! sends the bytes in bounded pieces. Later the copy sends digests of its chunks, and the server
//! sends only the chunks that changed.

use crate::RedisBitmap;
use crate::answers::flagged;
use crate::connection::{self, Blocking, Connection, Talk, lossy, now};
use crate::error::{BitmapError, Kind, Report};
use crate::layout::MAX_BITS;
use lanebloom::bitmap::ConcurrentBitmap;
use lanebloom::internal::{Prefetching, acquire_if};
use lanebloom::{Answers, Funnel, Statistics};
use redis::{ConnectionLike, Value};
use std::sync::OnceLock;
use std::{fmt, iter};

/// Bytes of a piece, when the whole bitmap is fetched.
const READ_BYTES: u64 = 1 << 20;
/// Bytes of a chunk, which has one digest. A new key changes at most as many chunks as it has bits;
/// 4 KiB is near the best size for some thousand new bits in 16 MiB.
const CHUNK_BYTES: u64 = 4 << 10;
/// Chunks that one script compares: 256 KiB, for which the server takes a millisecond (SHA-1 in
/// Redis 7.0: 200 MiB/s).
const COMPARED: u64 = 64;
/// Bytes of a line of memory, of which a copy takes whole ones.
const LINE_BYTES: u64 = 64;
/// Words of a chunk.
const CHUNK_WORDS: usize = CHUNK_BYTES as usize / 8;

/// A copy of a [`RedisBitmap`] in this process, which many threads may look up at once. Made by
/// [`fetch_local`](RedisBitmap::fetch_local).
///
/// A lookup returns what the filter returned when the copy was fetched or last
/// [refreshed](Self::refresh): it does not see later inserts. It never waits, neither for the
/// server nor for a refresh by another thread.
///
/// # Examples
///
/// ```no_run
/// use lanebloom_redis::RedisBitmap;
///
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let mut connection = client.get_connection()?;
/// let filter = RedisBitmap::go_zero("filter", 20_000)?;
/// filter.insert(&mut connection, "ann")?;
/// let copy = filter.fetch_local(&mut connection, 1 << 20)?;
/// assert!(copy.contains("ann"));
///
/// filter.insert(&mut connection, "bob")?;
/// assert!(!copy.contains("bob"));
/// copy.refresh(&mut connection)?;
/// assert!(copy.contains("bob"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LocalBitmap {
    source: RedisBitmap,
    /// One place for each bitmap that the limit allows. The bitmaps that the server has fill the
    /// places from the first one on, without a gap.
    bitmaps: Box<[OnceLock<ConcurrentBitmap>]>,
    limit: usize,
}

/// The result of a [refresh](LocalBitmap::refresh).
///
/// # Examples
///
/// ```no_run
/// use lanebloom_redis::RedisBitmap;
///
/// let client = redis::Client::open("redis://127.0.0.1/")?;
/// let mut connection = client.get_connection()?;
/// let filter = RedisBitmap::go_zero("filter", 1 << 20)?;
/// filter.insert_batch(&mut connection, &(0..1000).collect::<Vec<u32>>())?;
/// let copy = filter.fetch_local(&mut connection, 1 << 20)?;
///
/// let refreshed = copy.refresh(&mut connection)?;
/// assert_eq!(
///     (refreshed.changed, refreshed.vanished, refreshed.bytes),
///     (false, false, 0)
/// );
/// filter.insert(&mut connection, "ann")?;
/// let refreshed = copy.refresh(&mut connection)?;
/// assert!(refreshed.changed && !refreshed.vanished);
/// assert!((1..=14 * 4096).contains(&refreshed.bytes)); // of 131,072
/// filter.clear(&mut connection)?;
/// assert!(copy.refresh(&mut connection)?.vanished);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refreshed {
    /// Whether the copy has keys now that it did not have.
    pub changed: bool,
    /// Whether the copy has bits that the filter has lost: the filter was cleared, or has expired.
    /// The copy still has its old keys; [`fetch_local`](RedisBitmap::fetch_local) makes one without
    /// them.
    pub vanished: bool,
    /// Bytes of bitmaps that the server sent.
    pub bytes: u64,
}

/// Looking keys up.
impl LocalBitmap {
    /// Whether `key` may be in the copy: `false` is certain, `true` may be a false positive.
    ///
    /// # Memory ordering
    ///
    /// `true` ends in an `Acquire`, which pairs with the `Release` of the refresh that set the
    /// bits: everything that the refreshing thread had done before is visible.
    #[inline]
    #[must_use]
    pub fn contains<K: Funnel + ?Sized>(&self, key: &K) -> bool {
        let found = self
            .all_bits()
            .any(|bits| self.source.layout.all(key, |offset| bits.is_present(offset)));
        acquire_if(found);
        found
    }

    /// Passes on whether each key may be in the copy. [`Answers`] has the places for `out`. If the
    /// copy is larger than the caches, the lines of many keys are fetched ahead, all at once.
    ///
    /// # Panics
    ///
    /// If `out` has room for more or fewer keys.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBitmap::guava("filter", "filter:cursor", 1000, 0.01)?;
    /// filter.insert(&mut connection, "a")?;
    /// let copy = filter.fetch_local(&mut connection, 1 << 20)?;
    /// let mut found = [false; 2];
    /// copy.contains_batch(&["b", "a"], &mut found);
    /// assert_eq!(found, [false, true]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn contains_batch<K: Funnel>(&self, keys: &[K], out: impl Answers) {
        flagged(keys.len(), out, |out| self.look_up_batch(keys, out));
    }

    fn look_up_batch<K: Funnel>(&self, keys: &[K], out: &mut [bool]) {
        let Some(first) = self.all_bits().next() else {
            return out.fill(false);
        };
        let functions = usize::from(self.source.layout.functions);
        let prefetching = Prefetching::lookups(first.memory_bytes(), functions).next_tile(functions);
        let range = |i: usize| i * functions..(i + 1) * functions;
        // Whether the layout has places for the key.
        let place = |rings: &mut [[u64; Prefetching::LINES]; 2], i: usize, key: &K| {
            let (ring, in_tile) = prefetching.in_rings(i);
            let mut places = rings[ring][range(in_tile)].iter_mut();
            self.source.layout.all(key, |offset| {
                if let Some(place) = places.next() {
                    *place = offset;
                }
                true
            })
        };
        let prefetch = |rings: &mut [[u64; Prefetching::LINES]; 2], i, _: &K, _: &bool, hint| {
            let (ring, in_tile) = prefetching.in_rings(i);
            let places = &rings[ring][range(in_tile)];
            places.iter().for_each(|&place| first.prefetch(place, hint));
        };
        prefetching.tiles(
            &mut [[0; Prefetching::LINES]; 2],
            keys,
            place,
            prefetch,
            |rings, start, placed| {
                let (ring, _) = prefetching.in_rings(start);
                let of_key = |i: usize| &rings[ring][range(i)];
                let out = &mut out[start..][..placed.len()];
                out.fill(false);
                for (number, bits) in self.all_bits().enumerate() {
                    let is_open = |i: usize, found: bool| placed[i] && !found;
                    if let (1.., Some(hint)) = (number, prefetching.hint()) {
                        let open = (0..).zip(&*out).filter(|&(i, &found)| is_open(i, found));
                        open.flat_map(|(i, _)| of_key(i))
                            .for_each(|&place| bits.prefetch(place, hint));
                    }
                    for (i, found) in out.iter_mut().enumerate() {
                        if is_open(i, *found) {
                            *found = of_key(i).iter().all(|&place| bits.is_present(place));
                        }
                    }
                }
                acquire_if(true);
                true
            },
        );
    }

    fn all_bits(&self) -> impl Iterator<Item = &ConcurrentBitmap> {
        self.bitmaps.iter().map_while(OnceLock::get)
    }
}

/// Keeping the copy up to date.
impl LocalBitmap {
    /// Adds the keys that were inserted into the filter since the copy was fetched or last
    /// refreshed.
    ///
    /// The server sends only the chunks of 4 KiB that changed. It finds them by digests, which the
    /// copy sends (0.6% of its size). This costs the server about 5 ms for each MiB of the filter,
    /// a millisecond at a time: more than to send all of it. A refresh is worth it for a few new
    /// keys now and then. A key changes as many chunks as it has bits. From one new key per 30 KiB
    /// of filter on, nearly all chunks change: then [`fetch_local`](RedisBitmap::fetch_local) is
    /// better.
    ///
    /// A refresh only adds bits. If the filter has lost some, the result says so. Several threads
    /// may refresh at once.
    ///
    /// # Errors
    ///
    /// Fails as [`fetch_local`](RedisBitmap::fetch_local) does. The copy keeps what came before the
    /// error.
    pub fn refresh(&self, connection: &mut dyn ConnectionLike) -> Result<Refreshed, BitmapError> {
        now(self.pull(&mut Blocking(connection)))
    }

    pub(super) async fn fetch(
        connection: &mut impl Connection,
        source: RedisBitmap,
        limit: usize,
    ) -> Result<Self, BitmapError> {
        let needed = source.bitmaps(connection).await?;
        let slots = (limit as u64 / bytes(&source)).min(source.most_bitmaps());
        let copy = Self {
            source,
            bitmaps: (0..slots).map(|_| OnceLock::new()).collect(),
            limit,
        };
        copy.pull_bitmaps(connection, needed, 0).await?;
        Ok(copy)
    }

    pub(super) async fn pull(&self, connection: &mut impl Connection) -> Result<Refreshed, BitmapError> {
        // Counted before the server is asked: another refresh may hear later than this one that the
        // filter has grown, and add the bitmap.
        let here = self.bitmaps();
        let needed = self.source.bitmaps(connection).await?;
        self.pull_bitmaps(connection, needed, here).await
    }

    /// Pulls what the first `count` bitmaps have on the server and this copy lacks. This copy had
    /// `here` bitmaps before the server told their number.
    async fn pull_bitmaps(
        &self,
        connection: &mut impl Connection,
        count: u64,
        here: usize,
    ) -> Result<Refreshed, BitmapError> {
        if count > self.bitmaps.len() as u64 {
            let (key, needed) = (lossy(&self.source.key), count * bytes(&self.source));
            let text = format!(
                "a copy of {key:?} takes {needed} bytes, more than the limit of {} bytes",
                self.limit
            );
            return Err(Report::new(Kind::OverLimit, text).into());
        }
        let count = count as usize;
        let former = self.bitmaps.get(count..here).unwrap_or_default();
        let mut refreshed = Refreshed {
            // The server has nothing beyond the cursor any more.
            vanished: former.iter().filter_map(OnceLock::get).any(|bits| end_of(bits) > 0),
            ..Refreshed::default()
        };
        for (number, slot) in self.bitmaps.iter().take(count).enumerate() {
            let key = self.source.bitmap_key(number);
            let mut bitmap = Bitmap {
                talk: Talk { connection, key: &key },
                bytes: self.source.layout.bytes(),
                refreshed: &mut refreshed,
            };
            if let Some(bits) = slot.get() {
                bitmap.pull_changed(bits).await?;
            } else {
                let bits = ConcurrentBitmap::new(8 * bytes(&self.source));
                let bits =
                    bits.map_err(|error| Report::other(format!("the bitmap was not copied: {error}")).because(error))?;
                // If another thread was first, this one adds to that thread's words.
                bitmap.pull_all(slot.get_or_init(|| bits)).await?;
            }
        }
        Ok(refreshed)
    }
}

/// Copies.
impl RedisBitmap {
    /// Copies the filter into this process, where a lookup takes nanoseconds. A reply has at most 1
    /// MiB.
    ///
    /// The copy takes the bytes of the layout, once for each bitmap of a growing filter: in all at
    /// most `limit` bytes, now and after each [`refresh`](LocalBitmap::refresh).
    ///
    /// # Errors
    ///
    /// Also fails if the copy takes more than `limit` bytes (checked before it allocates), if the
    /// bitmap has more bytes than the layout (it is another filter's then), or if the allocation
    /// fails.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?;
    /// filter.insert(&mut connection, "ann")?;
    /// let copy = filter.fetch_local(&mut connection, 1 << 20)?;
    /// assert!(copy.contains("ann") && !copy.contains("eve"));
    /// assert_eq!(copy.memory_bytes(), 2560);
    ///
    /// let error = filter.fetch_local(&mut connection, 1000).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "a copy of \"filter\" takes 2560 bytes, more than the limit of 1000 bytes"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fetch_local(&self, connection: &mut dyn ConnectionLike, limit: usize) -> Result<LocalBitmap, BitmapError> {
        now(LocalBitmap::fetch(&mut Blocking(connection), self.clone(), limit))
    }
}

/// Bytes of memory that a bitmap takes, in whole lines.
fn bytes(source: &RedisBitmap) -> u64 {
    debug_assert!(source.layout.bits <= MAX_BITS);
    source.layout.bytes().next_multiple_of(LINE_BYTES)
}

/// One bitmap on its way from the server.
struct Bitmap<'a, C> {
    talk: Talk<'a, C>,
    /// The bytes of the layout: no bitmap has more.
    bytes: u64,
    refreshed: &'a mut Refreshed,
}

impl<C: Connection> Bitmap<'_, C> {
    /// Pulls everything, a piece at a time.
    async fn pull_all(&mut self, bits: &ConcurrentBitmap) -> Result<(), BitmapError> {
        let mut at = 0;
        loop {
            let mut pipeline = redis::pipe();
            pipeline.cmd("STRLEN").arg(self.talk.key);
            pipeline
                .cmd("GETRANGE")
                .arg(self.talk.key)
                .arg(at)
                .arg(at + READ_BYTES - 1);
            let mut replies = self.talk.send(pipeline).await?.into_iter();
            let length = self.length(&replies.next().unwrap_or_default())?;
            let piece = self
                .talk
                .bytes("GETRANGE", replies.next().unwrap_or_default(), READ_BYTES)?;
            self.add(bits, at, &piece)?;
            at += READ_BYTES;
            if at >= length {
                return Ok(());
            }
        }
    }

    /// Pulls the chunks that differ from the copy's.
    async fn pull_changed(&mut self, bits: &ConcurrentBitmap) -> Result<(), BitmapError> {
        // Read before the server is asked, for the same reason as in `pull`.
        let end = end_of(bits);
        let mut at = 0;
        loop {
            let chunks = (self.bytes - at).div_ceil(CHUNK_BYTES).min(COMPARED);
            // Likewise: another refresh may add bits that the server did not have yet when it
            // answered this one.
            let mut image = vec![0; chunks as usize * CHUNK_WORDS];
            bits.read_words(at as usize / 8, &mut image);
            let mut arguments = Vec::from([at, CHUNK_BYTES]);
            arguments.extend(image.chunks_exact(CHUNK_WORDS).map(digest));
            let reply = self
                .talk
                .run(&connection::CHANGED, &[self.talk.key], &arguments)
                .await?;
            let Value::Array(reply) = reply else {
                return Err(self.unexpected(&reply));
            };
            let mut reply = reply.into_iter();
            let length = self.length(&reply.next().unwrap_or_default())?;
            while let Some(number) = reply.next() {
                let number = match number {
                    Value::Int(number) if (0..chunks as i64).contains(&number) => number as u64,
                    other => return Err(self.unexpected(&other)),
                };
                let chunk = reply.next().unwrap_or_default();
                let chunk = self.talk.bytes(connection::CHANGED.name, chunk, CHUNK_BYTES)?;
                let before = &image[number as usize * CHUNK_WORDS..][..CHUNK_WORDS];
                let there = words(&chunk).chain(iter::repeat(0));
                self.refreshed.vanished |= before.iter().zip(there).any(|(before, there)| before & !there != 0);
                self.add(bits, at + number * CHUNK_BYTES, &chunk)?;
            }
            at += chunks * CHUNK_BYTES;
            if at >= length || at >= self.bytes {
                // The server's bitmap ends here, so all bits of the copy beyond it have vanished.
                self.refreshed.vanished |= end > at;
                return Ok(());
            }
        }
    }

    /// ORs what the server has from the byte `at` on.
    fn add(&mut self, bits: &ConcurrentBitmap, at: u64, there: &[u8]) -> Result<(), BitmapError> {
        let end = at + there.len() as u64;
        let words: Vec<u64> = words(there).collect();
        let inserted = bits
            .insert_words(at as usize / 8, &words)
            .map_err(|_| self.longer(end))?;
        self.refreshed.changed |= inserted > 0;
        self.refreshed.bytes += there.len() as u64;
        Ok(())
    }

    fn length(&self, reply: &Value) -> Result<u64, BitmapError> {
        let length = self.talk.integer("STRLEN", reply)?;
        match u64::try_from(length) {
            Ok(length) if length <= self.bytes => Ok(length),
            Ok(bytes) => Err(self.longer(bytes)),
            Err(_) => Err(self.talk.unexpected("STRLEN", length).into()),
        }
    }

    /// The error for a bitmap of more bytes than the layout.
    fn longer(&self, bytes: u64) -> BitmapError {
        let (key, layout) = (lossy(self.talk.key), self.bytes);
        BitmapError::other(format!(
            "the bitmap {key:?} has {bytes} bytes, more than the {layout} bytes of its layout: another layout wrote it"
        ))
    }

    fn unexpected(&self, reply: &Value) -> BitmapError {
        self.talk.unexpected(connection::CHANGED.name, reply).into()
    }
}

/// The words of a piece of a Redis bitmap, the last one filled up with zeros. Offset 0 is the
/// highest bit of the first byte in Redis, and the lowest bit of the first word here.
fn words(piece: &[u8]) -> impl Iterator<Item = u64> {
    let (whole, rest) = piece.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let bytes = whole.iter().copied().chain((!rest.is_empty()).then_some(last));
    bytes.map(|bytes| u64::from_be_bytes(bytes).reverse_bits())
}

/// The digest that `changed.lua` compares: the first 13 hexadecimal digits of the SHA-1 of a chunk
/// as Redis has it, filled up with zeros beyond the end. (A number of Lua holds 53 bits exactly. A
/// change goes unnoticed once in 2^52 times.)
fn digest(chunk: &[u64]) -> u64 {
    let mut sha1 = sha1_smol::Sha1::new();
    for word in chunk {
        sha1.update(&word.reverse_bits().to_be_bytes());
    }
    let [first @ .., _, _, _, _, _, _, _, _, _, _, _, _] = sha1.digest().bytes();
    u64::from_be_bytes(first) >> 12
}

/// The end of the last word that has a bit set, in bytes.
fn end_of(bits: &ConcurrentBitmap) -> u64 {
    let mut words = [0; CHUNK_WORDS];
    let chunks = 0..(bits.memory_bytes() as u64).div_ceil(CHUNK_BYTES);
    let end = chunks.rev().find_map(|chunk| {
        bits.read_words(chunk as usize * CHUNK_WORDS, &mut words);
        let last = words.iter().rposition(|&word| word != 0)?;
        Some(chunk * CHUNK_BYTES + 8 * (last as u64 + 1))
    });
    end.unwrap_or(0)
}

/// The shape and statistics of the copy.
impl LocalBitmap {
    /// The number of bitmaps: one, plus one for each time that a growing filter grew.
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBitmap::guava("filter", "filter:cursor", 100, 0.01)?;
    /// let copy = filter.fetch_local(&mut connection, 1 << 20)?;
    /// assert_eq!(copy.bitmaps(), 1);
    /// filter.insert_batch(&mut connection, &(0..300).collect::<Vec<u32>>())?;
    /// copy.refresh(&mut connection)?;
    /// assert_eq!(copy.bitmaps(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bitmaps(&self) -> usize {
        self.all_bits().count()
    }

    /// Bytes of memory that the bits take, in whole lines of 64.
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBitmap::go_zero("filter", 20_000)?; // 2500 bytes
    /// let copy = filter.fetch_local(&mut connection, 1 << 20)?;
    /// assert_eq!(copy.memory_bytes(), 2560);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.all_bits().map(ConcurrentBitmap::memory_bytes).sum()
    }

    /// The copy's fill, number of keys and false-positive rate, like those of
    /// [the filter](RedisBitmap::statistics).
    ///
    /// ```no_run
    /// use lanebloom_redis::RedisBitmap;
    ///
    /// let client = redis::Client::open("redis://127.0.0.1/")?;
    /// let mut connection = client.get_connection()?;
    /// let filter = RedisBitmap::jedis("filter", 1000, 0.01)?;
    /// let copy = filter.fetch_local(&mut connection, 1 << 20)?;
    /// assert_eq!(copy.statistics().false_positive_rate, 0.0);
    /// filter.insert_batch(&mut connection, &(0..1000).collect::<Vec<u32>>())?;
    /// copy.refresh(&mut connection)?;
    /// assert!((0.008..0.012).contains(&copy.statistics().false_positive_rate));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let ones = self.all_bits().map(ConcurrentBitmap::len);
        self.source.layout.statistics(ones)
    }
}

/// A summary. It reads the whole copy for the statistics.
impl fmt::Debug for LocalBitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalBitmap")
            .field("source", &self.source)
            .field("bitmaps", &self.bitmaps())
            .field("statistics", &self.statistics())
            .finish_non_exhaustive()
    }
}
