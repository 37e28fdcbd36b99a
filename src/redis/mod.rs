//! Filters that are kept in Redis, in the layouts that other programs have: read and written in
//! place, or copied into this process.
//!
//! One set on many nodes, each of which answers from memory of its own, is [`SharedBloom`], and one
//! that forgets, `SharedWindow` (feature `window`). What RedisBloom's `BF` commands keep is taken
//! out and put back by [`RedisBloom::fetch`](crate::RedisBloom::fetch) and
//! [`store`](crate::RedisBloom::store). The rest of this page is about the third kind.
//!
//! Many programs keep a Bloom filter in a plain Redis bitmap, a string of which they set and get
//! single bits. [`RedisBitmap`] is one type for their layouts, chosen by the constructor;
//! [`LocalBitmap`] is a copy of one, which answers in process.
//!
//! # When not to use it
//!
//! - **Where a copy will do.** A lookup on a server takes a round trip of the network, a lookup in
//!   a [`LocalBitmap`] a few accesses to memory, thousands of times less, and it works while the
//!   server does not. Take the bitmap in place where a key that somebody has just inserted must be
//!   seen at once.
//! - For a new filter that only this crate uses: take a [`SharedBloom`].
//! - Where strangers choose the keys. All of these layouts hash without a secret; [the module
//!   `hash`](crate::hash) says what follows.
//!
//! # Whose layout
//!
//! | | [`guava`](RedisBitmap::guava) | [`jedis`](RedisBitmap::jedis) | [`go_zero`](RedisBitmap::go_zero) | [`scrapy`](RedisBitmap::scrapy) |
//! |---|---|---|---|---|
//! | whose | the Java class `RedisBitmaps`, with growth | the Java class `RedisBloomFilter`, for Jedis and Codis | go-zero's `core/bloom` | `scrapy-redis-bloomfilter`, Python |
//! | keys in Redis | `<base>-0`, `<base>-1`, ... and a cursor | `bf:<key>` | `<key>` | `<key>`, as `<spider>:bloomfilter` |
//! | bits | by Guava's formula, rounded up to 64 | by Guava's formula, as an `int` | given | `2^bit` |
//! | bits of a key | by Guava's formula | by Guava's formula | 14 | given |
//! | their offsets | Guava's `MURMUR128_MITZ_64` | the same | Murmur3 of the key and one more byte | weighed sums of the characters |
//! | keys of this crate | any [`Funnel`](crate::Funnel); Java's strings are `str` | the same | any, of its bytes; Go's strings are `str` | texts |
//! | lookup | one script | `GETBIT` in a pipeline | one script | `GETBIT` in a pipeline |
//! | insert | one script | `SETBIT` in a pipeline, and `PEXPIRE` | one script | `SETBIT` in a pipeline |
//! | round trips | 1 for each 1024 bits | the same | the same | the same (theirs: 1 for each bit) |
//! | of two who insert a key at once | one gets `true` | one at least | one gets `true` | one at least |
//! | not for | old clients beside ours that grow: they may skip a number | more than 2^31 bits | | short keys, new filters: [its hash is bad](RedisBitmap::scrapy) |
//!
//! Scripts are sent by their digest, and whole where the server does not know them yet. They are
//! not for Redis Cluster unless `base` and the cursor have the same hash tag, as `{seen}bits` and
//! `{seen}cursor`; whether a client for Cluster works is not tested.
//!
//! # What can go wrong
//!
//! | | what happens |
//! |---|---|
//! | the key is not there, or has expired | the filter is empty: no key is in it, which is no error |
//! | the key holds a list, a hash, ... | an error, [`is_wrong_type`](BitmapError::is_wrong_type); Redis does nothing |
//! | the server is a replica | lookups and copies work; writes are an error, [`is_read_only`](BitmapError::is_read_only) |
//! | no server, or the connection breaks | an error, [`is_unreachable`](BitmapError::is_unreachable); the insert may have been done, and to do it again does no harm |
//! | a layout of more than 2^32 bits | an error of the constructor: `SETBIT` goes no further |
//! | the cursor is no number in 0 to 1023 | an error that names it |
//! | another size or number of functions than the others' | **nothing tells**, and keys are not found: the bitmap does not say. A copy finds it where the bitmap is longer than the layout |
//! | a reply of another kind | an error that tells its beginning, as all errors here do |
//! | the last bitmap but one of a growing filter is evicted or expires | its keys are not found |
//!
//! # What the client buffers
//!
//! The `redis` crate reads all of a reply into memory, before anybody here sees how long it is: of
//! a text, its bytes and a copy of them; of a list of small things, some ten times its bytes.
//! Limits that calls here are given (`max_bytes`) hold for what is made of the replies, and no call
//! here asks for more than a chunk at a time; but a server that is not what it is taken for, or
//! somebody who writes to it, can send what it likes. Nor does a connection of the `redis` crate
//! bound a reply's time: its timeouts hold for each single read. A [`SharedBloom`] has a connection
//! of its own, which [bounds both](shared#what-it-promises).
//!
//! # Example
//!
//! ```
#![doc = include_str!("example.md")]
//! use lanebloom::redis::RedisBitmap;
//!
//! // What a Java service fills: new RedisBloomFilter(3000, 0.03), insert("read:ann", article, 3600)
//! let mut connection = redis::Client::open(url)?.get_connection()?;
//! let read = RedisBitmap::jedis("read:ann", 3000, 0.03)?;
//! read.insert_batch(&mut connection, &["article 1", "article 2"])?;
//!
//! // In place, in one round trip.
//! let mut found = [false; 3];
//! read.contains_batch(&mut connection, &["article 2", "article 3", "article 1"], &mut found)?;
//! assert_eq!(found, [true, false, true]);
//!
//! // A copy of at most 16 MiB, which many threads ask; from time to time one of them brings it up to date.
//! let copy = read.fetch_local(&mut connection, 16 << 20)?;
//! assert!(copy.contains("article 1") && !copy.contains("article 3"));
//! read.insert(&mut connection, "article 3")?;
//! copy.refresh(&mut connection)?;
//! assert!(copy.contains("article 3"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(feature = "redis-tokio", doc = "", doc = include_str!("async.md"))]

mod bitmap;
mod bloom;
mod error;
mod layout;
mod link;
mod local;
mod reply;
pub mod shared;

pub use bitmap::RedisBitmap;
pub use error::{BitmapError, RedisBloomTransferError, SharedError};
pub(crate) use layout::MAX_BITS;
pub use local::{LocalBitmap, Refreshed};
pub use shared::SharedBloom;
#[cfg(feature = "window")]
pub use shared::SharedWindow;
pub(crate) use shared::description::Life;
