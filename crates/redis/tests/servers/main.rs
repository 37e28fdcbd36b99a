//! The Redis tier beside real servers, each of which the test starts for itself.

/// Starts a server, or ends the test where there is none.
macro_rules! server {
    () => {
        server!(crate::redis_server::Server::default().start())
    };
    ($server:expr) => {
        match $server {
            Some(server) => server,
            None => return,
        }
    };
}

mod common;
mod mock;
#[cfg(feature = "tokio")]
mod redis_async;
mod redis_bitmaps;
#[cfg(feature = "cluster")]
mod redis_cluster;
mod redis_pairs;
mod redis_peers;
mod redis_server;
mod redis_shared;
mod redisbloom_module;
mod rediscuckoo_module;
mod redisson;
mod warnings;
