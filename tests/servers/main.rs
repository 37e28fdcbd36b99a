//! The Redis tier beside real servers, each of which the test starts for itself.

#[path = "../common/mod.rs"]
mod common;
#[path = "../redis_server/mod.rs"]
mod redis_server;

/// Starts a server, or ends the test.
macro_rules! server {
    ($test:ident) => {
        match crate::redis_server::Server::of(stringify!($test)).start() {
            Some(server) => server,
            None => return,
        }
    };
}

mod mock;
mod redis_bitmaps;
#[cfg(feature = "redis-cluster")]
mod redis_cluster;
mod redis_pairs;
mod redis_peers;
mod redis_shared;
mod redisbloom_module;
mod rediscuckoo_module;
mod redisson;
