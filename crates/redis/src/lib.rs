//! Bloom filters in Redis: one set that many processes share, bitmaps that other programs fill, and
//! RedisBloom's filters fetched and stored. The filters in memory are those of the crate
//! [`lanebloom`].
//!
//! # When not to use it
//!
//! - **If one process has all keys.** Use a filter of [`lanebloom`] alone, and save it to a file.
//! - **If strangers choose the keys** of a bitmap: all layouts of bitmaps hash without a secret.
//!   [The module `hash`](lanebloom::hash) describes the consequences. A [`SharedBloom`] can have a
//!   secret.
//! - **If a round trip for each lookup is too slow**, do not ask a [`RedisBitmap`] in place. A
//!   lookup in a [`LocalBitmap`] or a [`SharedBloom`] takes a few accesses to memory, thousands of
//!   times less, and works while the server is down. Ask in place if a lookup must see a key that
//!   another client has just inserted.
//!
//! # Example
//!
//! ```no_run
//! use lanebloom_redis::RedisBitmap;
//!
//! let client = redis::Client::open("redis://127.0.0.1/")?;
//! let mut connection = client.get_connection()?;
//! // What a Java service fills: new RedisBloomFilter(3000, 0.03),
//! // insert("read:ann", article, 3600)
//! let read = RedisBitmap::jedis("read:ann", 3000, 0.03)?;
//! read.insert_batch(&mut connection, &["article 1", "article 2"])?;
//!
//! // In place, in one round trip.
//! let mut found = [false; 3];
//! let articles = ["article 2", "article 3", "article 1"];
//! read.contains_batch(&mut connection, &articles, &mut found)?;
//! assert_eq!(found, [true, false, true]);
//!
//! // A copy of at most 16 MiB for many threads. One of them refreshes it at times.
//! let copy = read.fetch_local(&mut connection, 16 << 20)?;
//! assert!(copy.contains("article 1") && !copy.contains("article 3"));
//! read.insert(&mut connection, "article 3")?;
//! copy.refresh(&mut connection)?;
//! assert!(copy.contains("article 3"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The types
//!
//! | task | type | a lookup asks |
//! |---|---|---|
//! | Share one set among processes | [`SharedBloom`] | this process's memory |
//! | Share one set that grows, or whose keys the store removes: the ids of a service | [`SharedSet`] | this process's memory |
//! | Share a set that forgets after some minutes | [`SharedWindow`] | this process's memory |
//! | Use a plain bitmap that a Java, Go or Python program fills | [`RedisBitmap`] | the server |
//! | Answer from a copy of such a bitmap | [`LocalBitmap`] | this process's memory |
//! | Move a filter of the `BF` or `CF` commands out of Redis and back | [`Transfer`], of [`RedisBloom`](lanebloom_formats::RedisBloom) and [`RedisCuckoo`](lanebloom_formats::RedisCuckoo) | this process's memory |
//!
//! [`SharedBloom`], [`SharedSet`] and [`SharedWindow`] can be the filter of a guard, with the crate
//! `lanebloom-guard` and its feature `redis`. The module [`shared`] has their promises and costs.
//! The rest of this page is about bitmaps.
//!
//! # Features
//!
//! The calls take blocking connections of the crate [`redis`](https://docs.rs/redis), version 1.8
//! or a later 1.x. It is re-exported: `use lanebloom_redis::redis;`.
//!
//! | feature | |
//! |---|---|
//! | `tokio` | each call of a bitmap has a twin that ends in `_async`, for asynchronous connections; `sync_async` and `fill_once_async` of shared filters |
//! | `cluster` | the crate's blocking connections to Redis Cluster |
//!
//! # Layouts
//!
//! Many programs keep a Bloom filter in a plain Redis bitmap, which is a string. They set and get
//! its single bits. [`RedisBitmap`] is one type for all their layouts, and the constructor chooses
//! the layout.
//!
//! | layout | program | keys in Redis | bits |
//! |---|---|---|---|
//! | [`guava`](RedisBitmap::guava) | the Java class `RedisBitmaps`, with growth | `<base>-0`, `<base>-1`, ... and a cursor | by Guava's formula, rounded up to 64 |
//! | [`jedis`](RedisBitmap::jedis) | the Java class `RedisBloomFilter`, for Jedis and Codis | `bf:<key>` | by Guava's formula, as an `int` |
//! | [`go_zero`](RedisBitmap::go_zero) | go-zero's `core/bloom` | `<key>` | a parameter |
//! | [`scrapy`](RedisBitmap::scrapy) | `scrapy-redis-bloomfilter`, Python | `<key>`, as `<spider>:bloomfilter` | `2^bit` |
//! | [`redisson`](RedisBitmap::redisson) | Redisson's `RBloomFilter`, Java | `<name>`, and a hash `{<name>}:config` | by Guava's formula, not rounded |
//!
//! Keys, and the bits that they set:
//!
//! | layout | keys of this crate | bits of a key | their offsets |
//! |---|---|---|---|
//! | `guava` | any [`Funnel`](lanebloom::Funnel); Java's strings are `str` | by Guava's formula | Guava's `MURMUR128_MITZ_64` |
//! | `jedis` | as `guava` | by Guava's formula | as `guava` |
//! | `go_zero` | any, by its bytes; Go's strings are `str` | 14 | Murmur3 of the key and one more byte |
//! | `scrapy` | texts | a parameter | weighed sums of the characters |
//! | `redisson` | [as the codec has them](RedisBitmap::redisson): `str`, decimal texts, `[u8]` | by Guava's formula | sums of the halves of HighwayHash-128 |
//!
//! Calls. Each takes one round trip for every 1024 bits, by:
//!
//! | layout | lookup | insert | two clients insert a key at once | not for |
//! |---|---|---|---|---|
//! | `guava` | one script | one script | one gets `true` | old clients beside ours that grow: they may skip a number |
//! | `jedis` | `GETBIT` in a pipeline | `SETBIT` in a pipeline, and `PEXPIRE` | at least one gets `true` | more than 2^31 bits |
//! | `go_zero` | one script | one script | one gets `true` | |
//! | `scrapy` | `GETBIT` in a pipeline (theirs: a round trip for each bit) | `SETBIT` in a pipeline | at least one gets `true` | short keys, new filters: [its hash is bad](RedisBitmap::scrapy) |
//! | `redisson` | one script | one script | one gets `true` | more than 2^32 − 2 bits |
//!
//! Scripts are sent by their digest, and whole if the server does not know them yet: by `EVALSHA`
//! and `EVAL`. [`fetch_local`](RedisBitmap::fetch_local) and [`refresh`](LocalBitmap::refresh) of
//! **every** layout are scripts, those of `jedis` and `scrapy` too. So a user of the server without
//! `@scripting` can look up and insert in these two layouts, but cannot copy.
//!
//! Every layout can be rebuilt while readers go on: [`rename`](RedisBitmap::rename). Many small
//! filters, as one per user and day, are asked in one round trip:
//! [`contains_pairs`](RedisBitmap::contains_pairs).
//!
//! # Failures
//!
//! | | what happens |
//! |---|---|
//! | the key is not there, or has expired | the filter is empty: no key is in it, which is not an error |
//! | the key holds a list, a hash, ... | an error, [`is_wrong_type`](BitmapError::is_wrong_type); Redis does nothing |
//! | the key is at another node of a cluster | an error, [`is_elsewhere`](BitmapError::is_elsewhere); see [Redis Cluster](#redis-cluster) |
//! | the server is a replica | lookups and copies work; writes are an error, [`is_read_only`](BitmapError::is_read_only) |
//! | no server, or the connection breaks | an error, [`is_unreachable`](BitmapError::is_unreachable); the insert may have been done, and to do it again does no harm |
//! | a layout of more than 2^32 bits | an error of the constructor: `SETBIT` takes no higher offset |
//! | the cursor is not a number in 0 to 1023, or is missing though the filter has grown | an error that names it |
//! | the configuration of a filter of Redisson's says another size | an error that names both, [`is_other_configuration`](BitmapError::is_other_configuration) |
//! | a bitmap of Redisson's without its configuration | an error, [`is_unconfigured`](BitmapError::is_unconfigured), except from `clear` and `expire` |
//! | `scrapy`: a key is not UTF-8 | an insert is an error, a lookup does not find it |
//! | another size or number of functions than the other programs', elsewhere | **no error**, and keys are not found: the bitmap does not record them. A copy fails if the bitmap is longer than the layout |
//! | a reply of another kind | an error that quotes its beginning, as all errors here do |
//! | the last bitmap but one of a growing filter is evicted or expires | its keys are not found |
//! | the server's ACL forbids a key or a command | an error that names the command; see the [calls](#layouts) that are scripts |
//!
//! # Redis Cluster
//!
//! A client or connection of the `redis` crate talks to one node. With the feature `cluster`
//! the blocking calls also take the crate's `ClusterConnection`, which finds the node of each key.
//! The tests run all of this on clusters of Redis 7 and Valkey 9, while slots move and after a
//! failover.
//!
//! | | by a `ClusterConnection` | by a connection to one node |
//! |---|---|---|
//! | a key that the node has | works | works |
//! | a key that another node has | works | an error that names the key, the slot and the node, [`is_elsewhere`](BitmapError::is_elsewhere) |
//! | a slot that is moving | waits, and works | the same error, or Redis's `TRYAGAIN`; never an answer without the keys that have moved |
//! | the node fails, and a replica takes over | [`is_unreachable`](BitmapError::is_unreachable); a new connection works | the same; connect to the replica |
//! | `jedis`, `scrapy` | one script, not a pipeline | a pipeline |
//! | `contains_pairs`, `insert_pairs` | one round trip for each run of pairs of one filter | one for all, on this node's keys |
//! | [`Transfer`] | works | [`is_elsewhere`](TransferError::is_elsewhere) |
//! | [`SharedBloom`], [`SharedSet`], [`SharedWindow`] | take a client of any node | [follow the set from node to node](shared#redis-cluster) |
//!
//! **Hash tags.** Filters with one Redis key need none. A name of Redisson's and its configuration
//! have one by themselves. A growing filter (`guava`) has several keys: give `base` and the cursor
//! one tag, as `{seen}bits` and `{seen}cursor`. [`rename`](RedisBitmap::rename) needs one tag for
//! both names. Otherwise the call fails, [`is_cross_slot`](BitmapError::is_cross_slot). One
//! exception: Redis runs scripts on bitmaps in several slots while one node has all of these slots.
//! This fails as soon as a slot moves.
//!
//! **Repeated inserts.** If a connection breaks before the reply, some clients send the command
//! again. An insert that was done twice says that a new key was there. Among these clients are the
//! `ClusterConnection` here and, by default, redis-py (seen with 8.1) and ioredis. So a crawler in
//! Python or a service in Node may skip a key that nobody has processed. If exactly one
//! client must get true, treat false as "perhaps mine", or build the client without retries: with
//! `retries(0)` here, which then follows no slots either.
//!
//! The asynchronous calls are not tested with connections to a cluster.
//!
//! ```no_run
//! # #[cfg(feature = "cluster")] {
//! use lanebloom_redis::RedisBitmap;
//! use redis::cluster::ClusterClient;
//!
//! let client = ClusterClient::new(["redis://10.0.0.1/", "redis://10.0.0.2/"])?;
//! let mut connection = client.get_connection()?;
//! let seen = RedisBitmap::guava("{seen}bits", "{seen}cursor", 1_000_000, 0.01)?;
//! assert!(seen.insert(&mut connection, "ann")?);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Buffers of the client
//!
//! The `redis` crate reads all of a reply into memory before this crate sees its length. A text
//! takes its bytes and a copy of them. A list of small values takes some ten times its bytes. The
//! limits of calls (`max_bytes`) bound the memory that this crate makes of the replies, and no call
//! requests more than a chunk at a time. But a wrong server can send replies of any length. A
//! connection of the `redis` crate does not bound a reply's time either: its timeouts hold for each
//! single read. A [`SharedBloom`] has a connection of its own, which [bounds
//! both](shared#promises).

#![deny(missing_docs)]
#![forbid(unsafe_code)]
// For links from the pages of other crates that are made without these pages.
#![doc(html_root_url = "https://docs.rs/lanebloom-redis/latest")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answers;
mod bitmap;
mod connection;
mod error;
mod layout;
mod local_bitmap;
mod reply;
pub mod shared;
mod transfer;

pub use bitmap::RedisBitmap;
pub use error::{BitmapError, SharedError, TransferError};
pub use local_bitmap::{LocalBitmap, Refreshed};
#[doc(inline)]
pub use shared::{LocalSet, Shared, SharedBloom, SharedSet, SharedWindow};
pub use transfer::Transfer;

/// The crate of the connections, version 1.8 or a later 1.x.
///
/// ```
/// let client = lanebloom_redis::redis::Client::open("redis://127.0.0.1/")?;
/// assert_eq!(client.get_connection_info().addr().to_string(), "127.0.0.1:6379");
/// # Ok::<(), lanebloom_redis::redis::RedisError>(())
/// ```
#[doc(no_inline)]
pub use redis;

/// The code in the README of the package, which runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
