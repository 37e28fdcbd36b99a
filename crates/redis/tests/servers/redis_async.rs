//! The asynchronous calls of `RedisBitmap` and `LocalBitmap` (feature `tokio`).

use crate::redis_bitmaps::{keys, lookups, one_of_each};
use crate::redis_server::{Redis, ask};
use lanebloom_redis::RedisBitmap;
use std::future::Future;
use std::ops::Range;
use std::time::Duration;

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Inserts the keys of each client, one after another, in a task for each; returns the answers.
pub(crate) fn inserts(
    filter: &RedisBitmap,
    server: &Redis,
    clients: Range<u64>,
    keys_of: impl Fn(u64) -> Vec<String>,
) -> Vec<Vec<bool>> {
    runtime().block_on(async {
        let connection = multiplexed(server).await;
        let tasks: Vec<_> = clients
            .map(|client| {
                // One connection, cloned; and the future can be sent to another thread.
                let (filter, mut connection, keys) = (filter.clone(), connection.clone(), keys_of(client));
                tokio::spawn(async move {
                    let mut flags = Vec::new();
                    for key in keys {
                        flags.push(filter.insert_async(&mut connection, &key).await.unwrap());
                    }
                    flags
                })
            })
            .collect();
        let mut flags = Vec::new();
        for task in tasks {
            flags.push(task.await.unwrap());
        }
        flags
    })
}

/// The answers of the blocking calls. (`growth_beside_other_clients` has tasks that share a
/// connection.)
#[test]
fn asynchronous_calls_answer_as_blocking_ones() {
    let server = server!();
    let mut blocking = server.connection();
    runtime().block_on(async {
        let mut connection = multiplexed(&server).await;
        for filter in one_of_each() {
            let many = keys(0..500);
            let mut changed = vec![false; many.len()];
            let insert = filter.insert_batch_flagged_async(&mut connection, &many, &mut changed);
            let sum = sendable(insert).await.unwrap();
            assert_eq!(sum, changed.iter().filter(|changed| **changed).count());
            assert!(sum > 400 && changed[0]);
            assert_eq!(filter.insert_batch(&mut blocking, &many).unwrap(), 0);

            let asked = keys(300..900);
            let mut found = vec![false; asked.len()];
            sendable(filter.contains_batch_async(&mut connection, &asked, &mut found))
                .await
                .unwrap();
            assert_eq!(found, lookups(&filter, &mut blocking, &asked));
            let single = sendable(filter.contains_async(&mut connection, &asked[599])).await;
            assert_eq!(single.unwrap(), found[599]);

            let copy = sendable(filter.fetch_local_async(&mut connection, 1 << 20))
                .await
                .unwrap();
            assert!(many.iter().all(|key| copy.contains(key)));
            filter.insert_async(&mut connection, "one more").await.unwrap();
            sendable(copy.refresh_async(&mut connection)).await.unwrap();
            assert!(copy.contains("one more"));
            let expires = filter.expire_async(&mut connection, Duration::from_secs(100));
            assert!(expires.await.unwrap());
            filter.clear_async(&mut connection).await.unwrap();
            assert!(!filter.contains_async(&mut connection, &many[0]).await.unwrap());
            assert!(copy.refresh_async(&mut connection).await.unwrap().vanished);
        }
        ask::<()>(&mut blocking, &["LPUSH", "go-zero", "a list"]);
        let error = one_of_each()[2].contains_async(&mut connection, "a").await.unwrap_err();
        assert!(error.is_wrong_type(), "{error}");
        let other = RedisBitmap::jedis("b", 10, 0.1).unwrap();
        assert!(!other.contains_async(&mut connection, "a").await.unwrap());
        drop(server);
        let error = one_of_each()[2].contains_async(&mut connection, "a").await.unwrap_err();
        assert!(error.is_unreachable(), "{error:?}");
    });
}

/// A future for a task that moves between threads must be `Send`.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

/// An asynchronous connection that waits longer than it does by default: half a second for an
/// answer, which an emulated machine may take.
async fn multiplexed(server: &Redis) -> redis::aio::MultiplexedConnection {
    let patience = Some(Duration::from_secs(30));
    let config = redis::AsyncConnectionConfig::new()
        .set_response_timeout(patience)
        .set_connection_timeout(patience);
    let connection = server
        .client()
        .get_multiplexed_async_connection_with_config(&config)
        .await;
    connection.unwrap()
}

/// The calls about a whole filter, and those of pairs, do what their blocking twins do.
#[test]
fn asynchronous_calls_about_whole_filters() {
    let server = server!();
    let mut blocking = server.connection();
    runtime().block_on(async {
        let mut connection = multiplexed(&server).await;
        let connection = &mut connection;
        let users = RedisBitmap::redisson("users", 1000, 0.01).unwrap();
        let none = RedisBitmap::open_redisson_async(connection, "users").await.unwrap();
        assert!(none.is_none());
        assert!(users.try_init_async(connection).await.unwrap());
        assert!(!users.try_init_async(connection).await.unwrap());
        let many = keys(0..500);
        let inserted = users.insert_batch_async(connection, &many).await.unwrap();
        assert!((495..=500).contains(&inserted), "{inserted}");
        let opened = RedisBitmap::open_redisson_async(connection, "users").await.unwrap();
        assert_eq!(opened.unwrap().bit_size(), users.bit_size());
        let len = users.estimated_len_async(connection).await.unwrap();
        assert_eq!(len, users.estimated_len(&mut blocking).unwrap());

        let next = RedisBitmap::redisson("next", 1000, 0.01).unwrap();
        next.insert_async(connection, "ann").await.unwrap();
        assert!(next.rename_async(connection, &users).await.unwrap());
        assert!(users.contains_async(connection, "ann").await.unwrap());
        assert!(!users.contains(&mut blocking, &many[0]).unwrap());

        let seen = RedisBitmap::go_zero("seen", 20_000).unwrap();
        let pairs = [(&seen, "a"), (&users, "a"), (&seen, "a")];
        let mut changed = [false; 3];
        let count = sendable(RedisBitmap::insert_pairs_async(connection, &pairs, &mut changed)).await;
        assert_eq!((count.unwrap(), changed), (2, [true, true, false]));
        let pairs = [(&seen, "a"), (&seen, "b"), (&users, "a")];
        let mut found = [false; 3];
        sendable(RedisBitmap::contains_pairs_async(connection, &pairs, &mut found))
            .await
            .unwrap();
        assert_eq!(found, [true, false, true]);
    });
}
