//! The asynchronous calls of `RedisBitmap` and `LocalBitmap` (feature `tokio`).

use crate::mock::Mock;
use crate::redis_bitmaps::{keys, lookups, one_of_each};
use crate::redis_server::{Redis, ask};
use lanebloom::{Absent, Bitmap};
use lanebloom_redis::RedisBitmap;
use std::future::Future;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
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
            let insert = filter.insert_batch_into_async(&mut connection, &many, &mut changed);
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

fn bits(flags: &[bool]) -> Vec<u64> {
    let word = |flags: &[bool]| (0..).zip(flags).map(|(i, &flag)| u64::from(flag) << i).sum();
    flags.chunks(64).map(word).collect()
}

/// Blocking or awaited, of a filter or of pairs, from the server or from a copy: a batch gives the
/// same answers to a slice, a vector, a bitmap, a function, and a count to nobody.
#[test]
fn answers_go_where_the_caller_points() {
    let server = server!();
    let blocking = &mut server.connection();
    let runtime = runtime();
    let mut multiplexed = runtime.block_on(multiplexed(&server));
    let connection = &mut multiplexed;
    // More than one round trip, and not whole words.
    let keys = keys(0..300);
    for filter in one_of_each() {
        let pairs: Vec<(&RedisBitmap, &str)> = keys.iter().map(|key| (&filter, &**key)).collect();
        filter.insert_batch(blocking, &keys[..150]).unwrap();
        let found = lookups(&filter, blocking, &keys);
        assert!(found[..150].iter().all(|found| *found) && found.iter().any(|found| !*found));
        let absent: Vec<usize> = (0..300).filter(|&i| !found[i]).collect();
        let copy = filter.fetch_local(blocking, 1 << 20).unwrap();

        let (mut vector, mut words, mut told) = (vec![true; 7], [u64::MAX; 5], Vec::new());
        filter.contains_batch(blocking, &keys, &mut vector).unwrap();
        filter.contains_batch(blocking, &keys, Bitmap(&mut words)).unwrap();
        filter
            .contains_batch(blocking, &keys, Absent(|i| told.push(i)))
            .unwrap();
        filter.contains_batch(blocking, &keys, ()).unwrap();
        assert_eq!((&vector, words.to_vec(), &told), (&found, bits(&found), &absent));

        let (mut vector, mut words, mut told) = (vec![true; 7], [u64::MAX; 5], Vec::new());
        RedisBitmap::contains_pairs(blocking, &pairs, &mut vector).unwrap();
        RedisBitmap::contains_pairs(blocking, &pairs, Bitmap(&mut words)).unwrap();
        RedisBitmap::contains_pairs(blocking, &pairs, Absent(|i| told.push(i))).unwrap();
        assert_eq!((&vector, words.to_vec(), &told), (&found, bits(&found), &absent));

        let (mut vector, mut words, mut told) = (vec![true; 7], [u64::MAX; 5], Vec::new());
        copy.contains_batch(&keys, &mut vector);
        copy.contains_batch(&keys, Bitmap(&mut words));
        copy.contains_batch(&keys, Absent(|i| told.push(i)));
        assert_eq!((&vector, words.to_vec(), &told), (&found, bits(&found), &absent));

        let (mut vector, mut words, mut told) = (vec![true; 7], [u64::MAX; 5], Vec::new());
        runtime.block_on(async {
            let lookup = filter.contains_batch_async(connection, &keys, &mut vector);
            sendable(lookup).await.unwrap();
            let lookup = filter.contains_batch_async(connection, &keys, Bitmap(&mut words));
            sendable(lookup).await.unwrap();
            let lookup = RedisBitmap::contains_pairs_async(connection, &pairs, Absent(|i| told.push(i)));
            sendable(lookup).await.unwrap();
        });
        assert_eq!((&vector, words.to_vec(), &told), (&found, bits(&found), &absent));

        // The inserts of the second half, each time into a filter that has the first one.
        let mut inserts: Vec<(usize, Vec<u64>)> = Vec::new();
        for form in 0..6 {
            filter.clear(blocking).unwrap();
            filter.insert_batch(blocking, &keys[..150]).unwrap();
            let (mut vector, mut words, mut known) = (Vec::new(), vec![0; 5], Vec::new());
            let known_of = |known: &[usize]| bits(&(0..300).map(|i| !known.contains(&i)).collect::<Vec<_>>());
            inserts.push(match form {
                0 => {
                    let new = filter.insert_batch_into(blocking, &keys, &mut vector).unwrap();
                    (new, bits(&vector))
                }
                1 => {
                    let new = filter.insert_batch_into(blocking, &keys, Bitmap(&mut words)).unwrap();
                    (new, words)
                }
                2 => {
                    let new = filter
                        .insert_batch_into(blocking, &keys, Absent(|i| known.push(i)))
                        .unwrap();
                    (new, known_of(&known))
                }
                3 => {
                    let new = RedisBitmap::insert_pairs(blocking, &pairs, Bitmap(&mut words)).unwrap();
                    (new, words)
                }
                4 => {
                    let insert = filter.insert_batch_into_async(connection, &keys, Absent(|i| known.push(i)));
                    let new = runtime.block_on(sendable(insert)).unwrap();
                    (new, known_of(&known))
                }
                _ => {
                    let insert = RedisBitmap::insert_pairs_async(connection, &pairs, Bitmap(&mut words));
                    let new = runtime.block_on(sendable(insert)).unwrap();
                    (new, words)
                }
            });
        }
        let count: u32 = inserts[0].1.iter().map(|word| word.count_ones()).sum();
        assert!(
            inserts[0].0 == count as usize && (50..=150).contains(&count),
            "{inserts:?}"
        );
        assert!(inserts.iter().all(|insert| *insert == inserts[0]), "{inserts:?}");
        assert_eq!(inserts[0].1[..2], [0; 2]);
    }
}

/// Blocking or awaited, a batch with a place of another length panics before it sends anything.
#[test]
fn places_are_counted_before_anything_is_sent() {
    let server = server!();
    let blocking = &mut server.connection();
    let runtime = runtime();
    let mut multiplexed = runtime.block_on(multiplexed(&server));
    let connection = &mut multiplexed;
    let filter = RedisBitmap::go_zero("filter", 10_000).unwrap();
    let (keys, mut flags, mut words) = (keys(0..70), [false; 71], [0; 1]);
    let pairs = [(&filter, "a")];
    let message = |call: &mut dyn FnMut()| {
        let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("no panic");
        *panic.downcast::<String>().unwrap()
    };
    let messages = [
        message(&mut || _ = filter.insert_batch_into(blocking, &keys, &mut flags)),
        message(&mut || _ = filter.insert_batch_into(blocking, &keys, Bitmap(&mut words))),
        message(&mut || _ = RedisBitmap::insert_pairs(blocking, &pairs, &mut flags)),
        message(&mut || _ = runtime.block_on(filter.insert_batch_into_async(connection, &keys, &mut flags))),
        message(&mut || _ = runtime.block_on(RedisBitmap::insert_pairs_async(connection, &pairs, &mut flags))),
    ];
    let [of_keys, of_words, of_pairs] = [
        "`keys` has 70 elements, but `out` has 71",
        "a bitmap of 70 keys needs 2 words, but `out` has 1",
        "`keys` has 1 elements, but `out` has 71",
    ];
    assert_eq!(messages, [of_keys, of_words, of_pairs, of_keys, of_pairs]);
    assert_eq!(filter.statistics(blocking).unwrap().len, 0);
}

/// If a later round trip fails, the keys of those before are inserted: their answers are passed on.
/// A lookup passes nothing on, since false would be wrong.
#[test]
fn a_batch_that_fails_tells_which_keys_it_inserted() {
    let server = server!();
    let blocking = &mut server.connection();
    // 73 keys of 14 bits go in a round trip.
    let filter = RedisBitmap::go_zero("filter", 100_000).unwrap();
    // The server has the script.
    filter.insert(blocking, "a").unwrap();
    let keys = keys(0..200);
    let mut breaks = Mock::new(|request| match request.number {
        1 => request.send(blocking),
        _ => Err(std::io::Error::other("cut off").into()),
    });
    let (mut new, mut known) = ([true; 200], Vec::new());
    filter.insert_batch_into(&mut breaks, &keys, &mut new).unwrap_err();
    assert!(new[..73].iter().filter(|new| **new).count() > 70 && !new[73..].contains(&true));
    breaks.requests = 0;
    let absent = Absent(|i| known.push(i));
    filter.insert_batch_into(&mut breaks, &keys, absent).unwrap_err();
    assert_eq!(known, Vec::from_iter(0..200));

    breaks.requests = 0;
    let (mut vector, mut told) = (vec![true; 3], 0);
    filter.contains_batch(&mut breaks, &keys, &mut vector).unwrap_err();
    breaks.requests = 0;
    filter
        .contains_batch(&mut breaks, &keys, Absent(|_| told += 1))
        .unwrap_err();
    assert_eq!((vector, told), (vec![true; 3], 0));
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
        let now = users.statistics_async(connection).await.unwrap();
        assert_eq!(now, users.statistics(&mut blocking).unwrap());

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
