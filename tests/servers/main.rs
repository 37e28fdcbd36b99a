//! The Redis tier beside real servers, each of which the test starts for itself.

#[path = "../common/mod.rs"]
mod common;
#[path = "../redis_server/mod.rs"]
mod redis_server;

mod redis_bitmaps;
#[cfg(feature = "redis-cluster")]
mod redis_cluster;
mod redis_pairs;
mod redis_peers;
mod redis_shared;
mod redisbloom_module;
mod rediscuckoo_module;
mod redisson;
