//! The Redis tier on Redis Cluster: by connections to the cluster and to one of its nodes, while
//! slots move and after a failover. Nothing is lost, and what does not work says so.
//! `LANEBLOOM_REDIS_SERVER` may name Valkey's server.

mod cluster;

use crate::common::{SetAtEnd, number, wait_until};
use crate::redis_bitmaps::every_layout;
use crate::redis_server::{Redis, Server, server_with_bloom, try_ask};
use cluster::Cluster;
use lanebloom::{ConcurrentBloom, WindowedBloom};
use lanebloom_formats::{RedisBloom, RedisCuckoo};
use lanebloom_redis::shared::Filled;
use lanebloom_redis::{BitmapError, RedisBitmap, SharedBloom, SharedError, SharedWindow, Transfer};
use redis::ConnectionLike;
use redis::cluster::{ClusterClient, ClusterConnection};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Only `sync` exchanges.
const NEVER: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts three masters, or ends the test.
macro_rules! cluster {
    () => {
        server!(Cluster::start(3, || Some(Server::default())))
    };
}

/// A connection that waits briefly between its attempts. (By the client's default, a wait of
/// 2^attempt overflows at the 58th.)
fn connect(cluster: &Cluster) -> ClusterConnection {
    let client = ClusterClient::builder(cluster.urls())
        .retries(2000)
        .retry_wait_formula(5, 1)
        .min_retry_wait(1)
        .max_retry_wait(5);
    client.build().unwrap().get_connection().unwrap()
}

/// A key that looks random, and is long enough for the sums of `scrapy`.
fn key(round: u64, i: u64) -> String {
    let digits = |part| format!("{:016x}", number(1000 * part + 10 * round + i));
    (1..4u64).map(digits).collect()
}

fn keys_of(node: &Redis) -> Vec<String> {
    let mut keys: Vec<String> = node.ask(&["KEYS", "*"]);
    keys.sort();
    keys
}

#[test]
fn a_node_refuses_what_another_has() {
    let cluster = cluster!();
    let [here, there] = [0, 1].map(|node| cluster.name_at(node, 3, "tag"));
    let mut connection = cluster.nodes[0].connection();
    let slot = cluster.slot_of(&there);
    let node = format!("127.0.0.1:{}", cluster.nodes[1].port());
    for (ours, theirs) in every_layout(&here).iter().zip(&every_layout(&there)) {
        // All of it works with what the node has.
        assert!(ours.insert(&mut connection, "a").unwrap());
        assert!(ours.contains(&mut connection, "a").unwrap());
        assert!(!ours.contains(&mut connection, "b").unwrap());

        let mut out = [false; 2];
        let pairs = [(ours, "a"), (theirs, "a")];
        let errors: [BitmapError; 9] = [
            theirs.contains(&mut connection, "a").unwrap_err(),
            theirs.insert(&mut connection, "a").unwrap_err(),
            theirs.insert_batch(&mut connection, &["a", "b"]).unwrap_err(),
            theirs.fetch_local(&mut connection, 1 << 20).unwrap_err(),
            theirs.statistics(&mut connection).unwrap_err(),
            theirs.expire(&mut connection, PATIENCE).unwrap_err(),
            theirs.clear(&mut connection).unwrap_err(),
            RedisBitmap::contains_pairs(&mut connection, &pairs, &mut out).unwrap_err(),
            RedisBitmap::insert_pairs(&mut connection, &pairs, &mut out).unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(error.is_elsewhere() && !error.is_cross_slot(), "{text}");
            let named = [format!("{{{there}}}"), format!("slot {slot} "), format!("{node:?}")];
            assert!(named.iter().all(|named| text.contains(named)), "{text}");
        }
        let error = ours.rename(&mut connection, theirs).unwrap_err();
        assert!(error.is_cross_slot() && !error.is_elsewhere(), "{error}");
        assert!(ours.contains(&mut connection, "a").unwrap());
    }
    assert_eq!(keys_of(&cluster.nodes[1]), [""; 0]);

    let error = RedisBitmap::open_redisson(&mut connection, there.as_str()).unwrap_err();
    assert!(error.is_elsewhere(), "{error}");
}

#[test]
fn a_growing_filter_needs_a_hash_tag() {
    let cluster = cluster!();
    // The bitmaps are in other slots than the cursor; or than the name that they begin with.
    let node = |key: &str| cluster.first_owner(cluster.slot_of(key), 3);
    let bases = || (0..1000).map(|i| format!("bits{i}"));
    let base = bases().find(|base| node(base) != node(&format!("{base}-0"))).unwrap();
    for cursor in ["cursor".into(), format!("{{{base}}}cursor")] {
        let filter = RedisBitmap::guava(base.as_str(), cursor.as_str(), 50, 0.01).unwrap();
        let mut connection = cluster.nodes[node(&cursor)].connection();
        let error = filter.insert(&mut connection, "a").unwrap_err();
        let text = error.to_string();
        assert!(
            error.is_cross_slot() && text.starts_with(&format!("{base:?} and the keys with it")),
            "{text}"
        );
        let error = filter.insert(&mut connect(&cluster), "a").unwrap_err();
        assert!(error.is_cross_slot(), "{error}");
    }

    // Where one node has the slots of all bitmaps, the server does not mind, until one moves.
    let is_lucky = |base: &String| (0..2).all(|bitmap| node(base) == node(&format!("{base}-{bitmap}")));
    let base = bases().find(is_lucky).unwrap();
    let filter = RedisBitmap::guava(base.as_str(), format!("{{{base}}}cursor"), 1000, 0.01).unwrap();
    let from = node(&base);
    let mut connection = cluster.nodes[from].connection();
    assert!(filter.insert(&mut connection, "a").unwrap());
    cluster.move_slot(cluster.slot_of(&format!("{base}-0")), from, (from + 1) % 3);
    let error = filter.contains(&mut connection, "a").unwrap_err();
    assert!(error.is_cross_slot(), "{error}");
}

/// A node that is giving a slot away never answers for what it has given.
#[test]
fn a_slot_that_moves_is_an_error_of_one_nodes_client() {
    let cluster = cluster!();
    let tag = cluster.name_at(0, 3, "tag");
    let slot = cluster.slot_of(&tag);
    let [mut from, mut to] = [0, 1].map(|node| cluster.nodes[node].connection());
    let filters = every_layout(&tag);
    for filter in &filters {
        filter.insert(&mut from, "a").unwrap();
    }
    let none = RedisBitmap::go_zero(format!("{{{tag}}}none"), 1000).unwrap();
    cluster.begin_move(slot, 0, 1);
    // A key that is not there may be at the other node.
    let error = none.contains(&mut from, "a").unwrap_err();
    assert!(error.is_elsewhere(), "{error}");
    let mut refused = 0;
    loop {
        for filter in &filters {
            match filter.contains(&mut from, "a") {
                Ok(found) => assert!(found, "{filter:?}"),
                Err(error) if error.is_elsewhere() => refused += 1,
                // Some of a filter's keys are here and some are there.
                Err(error) => assert!(error.to_string().contains("TryAgain"), "{error}"),
            }
            let error = filter.contains(&mut to, "a").unwrap_err();
            assert!(error.is_elsewhere(), "{error}");
        }
        if !cluster.move_keys(slot, 0, 1, 1) {
            break;
        }
    }
    assert!(refused > 0);
    cluster.end_move(slot, 0, 1);
    for filter in &filters {
        assert!(filter.contains(&mut to, "a").unwrap());
        assert!(filter.contains(&mut from, "a").unwrap_err().is_elsewhere());
    }
}

/// Filters of every layout by connections to the cluster, while their slots go round.
#[test]
fn nothing_is_lost_while_slots_move() {
    let cluster = cluster!();
    let tags: Vec<String> = (0..3).map(|node| cluster.name_at(node, 3, "tag")).collect();
    let filters: Vec<RedisBitmap> = tags.iter().flat_map(|tag| every_layout(tag)).collect();
    let (moves, done) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let mover = scope.spawn(|| {
            for round in 0.. {
                for (first, tag) in tags.iter().enumerate() {
                    if done.load(Ordering::Acquire) {
                        return;
                    }
                    cluster.move_slot(cluster.slot_of(tag), (first + round) % 3, (first + round + 1) % 3);
                    moves.fetch_add(1, Ordering::Release);
                }
            }
        });
        let _end = SetAtEnd(&done);
        let mut connection = connect(&cluster);
        let mut rounds = 0;
        // The slots have gone round twice.
        while rounds < 20 || moves.load(Ordering::Acquire) < 18 {
            assert!(!mover.is_finished(), "a slot was not moved");
            let keys: Vec<String> = (0..5).map(|i| key(rounds, i)).collect();
            for filter in &filters {
                assert!(filter.insert(&mut connection, &keys[0]).unwrap(), "{filter:?}");
                assert!(!filter.insert(&mut connection, &keys[0]).unwrap(), "{filter:?}");
                let new = filter.insert_batch(&mut connection, &keys[..3]).unwrap();
                assert_eq!(new, 2, "{filter:?}");
                let mut found = [false; 5];
                filter.contains_batch(&mut connection, &keys, &mut found).unwrap();
                assert_eq!(found, [true, true, true, false, false], "{filter:?}");
            }
            let pairs: Vec<(&RedisBitmap, &str)> = filters.iter().map(|filter| (filter, &*keys[3])).collect();
            let mut answers = vec![false; pairs.len()];
            let new = RedisBitmap::insert_pairs(&mut connection, &pairs, &mut answers).unwrap();
            assert_eq!((new, &answers), (pairs.len(), &vec![true; pairs.len()]));
            RedisBitmap::contains_pairs(&mut connection, &pairs, &mut answers).unwrap();
            assert_eq!(answers, vec![true; pairs.len()]);
            rounds += 1;
        }
        for filter in &filters {
            for key in (0..rounds).flat_map(|round| (0..4).map(move |i| key(round, i))) {
                assert!(filter.contains(&mut connection, &key).unwrap(), "{filter:?}: {key}");
            }
        }
    });
    let statistics = cluster
        .nodes
        .iter()
        .map(|node| node.ask::<String>(&["INFO", "errorstats"]));
    let redirects = statistics.filter(|errors| errors.contains("errorstat_MOVED"));
    assert!(redirects.count() > 0, "the connection was never redirected");

    // Copies, renames and expiry, by another connection.
    let mut connection = connect(&cluster);
    for (filter, next) in every_layout(&tags[0])
        .iter()
        .zip(&every_layout(&format!("x}}{{{}", tags[0])))
    {
        let copy = filter.fetch_local(&mut connection, 1 << 20).unwrap();
        assert!(copy.contains(&key(0, 0)) && !copy.contains(&key(0, 4)));
        assert!(filter.statistics(&mut connection).unwrap().len > 70);
        assert!(filter.expire(&mut connection, PATIENCE).unwrap());
        let error = filter.rename(&mut connection, next).unwrap_err();
        assert!(error.is_cross_slot(), "{error}");
        filter.clear(&mut connection).unwrap();
        assert!(!filter.contains(&mut connection, &key(0, 0)).unwrap());
    }
}

#[test]
fn a_replica_takes_over() {
    let mut cluster = cluster!();
    let tag = cluster.name_at(0, 3, "tag");
    let filters = every_layout(&tag);
    let mut connection = connect(&cluster);
    let mut one_nodes = cluster.nodes[0].connection();
    let replica = cluster.add_replica(0, Server::default());
    for filter in &filters {
        filter.insert_batch(&mut connection, &["a", "b"]).unwrap();
    }
    let error = filters[1]
        .contains(&mut cluster.nodes[replica].connection(), "a")
        .unwrap_err();
    assert!(error.is_elsewhere(), "{error}");
    cluster.await_replica(0, replica);
    cluster.fail_over(0, replica);
    // A connection that has lost a node says so. A new one finds the replica.
    let mut new = connect(&cluster);
    for filter in &filters {
        for lost in [&mut one_nodes as &mut dyn ConnectionLike, &mut connection] {
            let error = filter.contains(lost, "a").unwrap_err();
            assert!(error.is_unreachable(), "{error}");
        }
        assert!(filter.contains(&mut new, "a").unwrap() && filter.contains(&mut new, "b").unwrap());
        assert!(filter.insert(&mut new, "c").unwrap());
        let mut one_nodes = cluster.nodes[replica].connection();
        assert!(filter.contains(&mut one_nodes, "c").unwrap());
    }
}

fn shared(node: &Redis, name: &str) -> Result<SharedBloom, SharedError> {
    let filter = ConcurrentBloom::builder().expected_keys(10_000).build().unwrap();
    SharedBloom::builder(name)
        .interval(NEVER)
        .connect(node.client(), filter)
}

fn window(node: &Redis, name: &str) -> Result<SharedWindow, SharedError> {
    let builder = WindowedBloom::builder().expected_keys(1000).window(NEVER);
    let filter = builder.generations(2).time_of_day().build().unwrap();
    SharedBloom::builder(name)
        .interval(NEVER)
        .connect_window(node.client(), filter)
}

/// A set and a window follow their slot from node to node, whichever node they were told.
#[test]
fn shared_sets_follow_their_slot() {
    let mut cluster = cluster!();
    let name = cluster.name_at(0, 3, "set");
    let slot = cluster.slot_of(&name);
    let sets = [0, 2].map(|node| shared(&cluster.nodes[node], &name).unwrap());
    let other = cluster.name_at(0, 3, "window");
    let windows = [0, 2].map(|node| window(&cluster.nodes[node], &other).unwrap());
    let exchange = |step: &str| {
        for (here, there) in [(0, 1), (1, 0)] {
            let key = format!("{step} {here}");
            sets[here].insert(&key);
            sets[here].sync(PATIENCE).unwrap();
            sets[there].sync(PATIENCE).unwrap();
            assert!(sets[there].contains(&key), "{key}");
            windows[here].insert(&key);
            windows[here].sync(PATIENCE).unwrap();
            windows[there].sync(PATIENCE).unwrap();
            assert!(windows[there].contains(&key), "{key}");
        }
    };
    exchange("before");
    // Bits, and whole chunks of 8 KiB.
    let many: Vec<u64> = (0..10_000).collect();
    sets[0].insert_batch(&many);
    sets.iter().for_each(|set| set.sync(PATIENCE).unwrap());
    assert!(many.iter().all(|key| sets[1].contains(key)));

    // Half moved, the set cannot be exchanged. Inserts are kept.
    cluster.begin_move(slot, 0, 1);
    cluster.move_keys(slot, 0, 1, 1);
    sets[0].insert("meanwhile");
    assert!(sets[0].sync(Duration::from_millis(1)).is_err());
    wait_until(|| sets[0].stats().last_error.is_some());
    let is_told = |error: SharedError| {
        let text = error.to_string();
        assert!(
            text.contains("TryAgain") || text.contains(&format!("slot {slot} ")),
            "{text}"
        );
    };
    is_told(sets[0].stats().last_error.unwrap());
    while cluster.move_keys(slot, 0, 1, 1) {}
    // A new node of the set is told the slot and the node.
    is_told(shared(&cluster.nodes[0], &name).unwrap_err());
    cluster.end_move(slot, 0, 1);
    sets[1].sync(PATIENCE).unwrap();
    sets[0].sync(PATIENCE).unwrap();
    sets[1].sync(PATIENCE).unwrap();
    assert!(sets[1].contains("meanwhile"));
    exchange("moved");

    let replica = cluster.add_replica(1, Server::default());
    cluster.await_replica(1, replica);
    cluster.fail_over(1, replica);
    exchange("after the failover");
    let late = shared(&cluster.nodes[2], &name).unwrap();
    let fills = |set: &SharedBloom| set.fill_once(PATIENCE, |_| Ok::<_, std::convert::Infallible>(()));
    assert_eq!(
        (fills(&late).unwrap(), fills(&sets[0]).unwrap()),
        (Filled::Here, Filled::Elsewhere)
    );
    for step in ["before", "moved", "after the failover"] {
        assert!(late.contains(&format!("{step} 0")) && late.contains(&format!("{step} 1")));
    }
}

/// Generations come and go on a cluster, and a node that comes late finds those that are left.
#[test]
fn a_window_turns_on_a_cluster() {
    const PERIOD: u64 = 20_000;
    let cluster = cluster!();
    let name = cluster.name_at(1, 3, "recent");
    let time = Arc::new(AtomicU64::new(0));
    let node = |at: usize| {
        let time = Arc::clone(&time);
        let builder = WindowedBloom::builder()
            .expected_keys(10_000)
            .window(Duration::from_millis(3 * PERIOD))
            .generations(4)
            .clock(move || Duration::from_millis(time.load(Ordering::SeqCst)));
        SharedBloom::builder(&name)
            .interval(NEVER)
            .connect_window(cluster.nodes[at].client(), builder.build().unwrap())
            .unwrap()
    };
    let found = |node: &SharedWindow| (0..6 * 5000).map(|i| node.contains(&number(i))).collect::<Vec<_>>();
    let windows = [node(0), node(2)];
    for generation in 0..6 {
        time.store((1_000_000 + generation) * PERIOD, Ordering::SeqCst);
        for i in generation * 5000..generation * 5000 + 5000 {
            windows[0].insert(&number(i));
        }
        windows.iter().for_each(|window| window.sync(PATIENCE).unwrap());
    }
    for late in [&windows[1], &node(1)] {
        let found = found(late);
        assert!(found[2 * 5000..].iter().all(|&found| found));
        let forgotten = found[..2 * 5000].iter().filter(|&&found| !found).count();
        assert!(forgotten > 9 * 1000, "{forgotten}");
    }
}

/// The server that has the set hangs, and stays so: all nodes lag, so their guards open. Once a
/// replica has taken over, they catch up there.
#[cfg(unix)]
#[test]
fn a_set_lags_until_a_replica_takes_over() {
    let mut cluster = cluster!();
    let name = cluster.name_at(0, 3, "set");
    let replica = cluster.add_replica(0, Server::default());
    let sets = [1, 2].map(|node| {
        let filter = ConcurrentBloom::builder().expected_keys(10_000).build().unwrap();
        let builder = SharedBloom::builder(&name).interval(Duration::from_millis(5));
        let builder = builder.open_above_lag(Duration::from_millis(500));
        builder.connect(cluster.nodes[node].client(), filter).unwrap()
    });
    let sync = |set: &SharedBloom| set.sync(PATIENCE).unwrap();
    sets[0].insert("before");
    sets.iter().for_each(sync);
    assert!(sets[1].contains("before"));
    wait_until(|| sets.iter().all(|set| !set.may_lack_keys()));
    cluster.await_replica(0, replica);

    let frozen = cluster.nodes[0].freeze();
    wait_until(|| sets.iter().all(SharedBloom::may_lack_keys));
    sets[0].insert("meanwhile");
    assert!(!sets[1].contains("meanwhile") && sets[1].may_lack_keys());
    cluster.take_over(0, replica);
    wait_until(|| sets.iter().all(|set| !set.may_lack_keys()));
    sets.iter().for_each(sync);
    assert!(sets[1].contains("meanwhile") && sets[1].contains("before"));
    drop(frozen);
}

#[test]
fn a_set_grows_on_a_cluster() {
    let cluster = cluster!();
    let name = cluster.name_at(0, 3, "growing");
    let servers = [0, 1, 2, 0].map(|node| &cluster.nodes[node]);
    crate::redis_shared::set::follow_a_set_that_grows(&name, servers[0], servers);
}

/// Half moved, a set cannot be rebuilt, and no node makes a second root. Then all follow.
#[test]
fn a_set_is_rebuilt_after_its_slot_has_moved() {
    let cluster = cluster!();
    let name = cluster.name_at(0, 3, "growing");
    let slot = cluster.slot_of(&name);
    let build = |keys| ConcurrentBloom::builder().expected_keys(keys).build();
    let nodes = [0, 2].map(|node| {
        let builder = SharedBloom::builder(&name).interval(Duration::from_millis(5));
        builder.connect_set(cluster.nodes[node].client(), 1000, build).unwrap()
    });
    let fill = |node: usize, rows: &[&str]| {
        let filled = nodes[node].fill_once(PATIENCE, |ids| {
            ids.insert_batch(rows);
            Ok::<_, std::convert::Infallible>(())
        });
        filled.unwrap()
    };
    assert_eq!((fill(0, &["row"]), fill(1, &[])), (Filled::Here, Filled::Elsewhere));
    cluster.begin_move(slot, 0, 1);
    cluster.move_keys(slot, 0, 1, 1);
    assert!(nodes[0].rebuild(5000, Duration::from_millis(100)).is_err());
    nodes[1].insert("meanwhile");
    assert!(nodes.iter().all(|node| node.contains("row") && !node.may_lack_keys()));
    while cluster.move_keys(slot, 0, 1, 1) {}
    cluster.end_move(slot, 0, 1);
    // The generation that was asked for comes now.
    wait_until(|| nodes.iter().all(|node| node.generation() == 1));
    nodes.iter().chain(&nodes).for_each(|node| node.sync(PATIENCE).unwrap());
    assert!(nodes[0].contains("meanwhile") && nodes[0].contains("row"));
    let all = ["row", "meanwhile"];
    assert_eq!((fill(1, &all), fill(0, &[])), (Filled::Here, Filled::Elsewhere));
    for node in &nodes {
        assert!(node.contains("row") && node.contains("meanwhile") && !node.may_lack_keys());
    }
}

/// A node that does not know how others reach it names a port alone: that of its own host.
#[test]
fn a_redirection_without_a_host_is_to_another_port() {
    let cluster = cluster!();
    for node in &cluster.nodes {
        node.ask::<()>(&["CONFIG", "SET", "cluster-preferred-endpoint-type", "unknown-endpoint"]);
    }
    let name = cluster.name_at(0, 3, "set");
    let error = try_ask::<()>(&mut cluster.nodes[2].connection(), &["GET", &name]).unwrap_err();
    let port = format!(":{}", cluster.nodes[0].port());
    assert_eq!(error.redirect_node().unwrap().0, port);

    let set = shared(&cluster.nodes[2], &name).unwrap();
    set.insert("a");
    set.sync(PATIENCE).unwrap();
    assert!(shared(&cluster.nodes[0], &name).unwrap().contains("a"));
}

#[test]
fn filters_of_the_module_are_fetched_and_stored() {
    let cluster = server!(Cluster::start(3, server_with_bloom));
    let mut connection = connect(&cluster);
    let mut bloom = RedisBloom::with_capacity(1000, 0.01).unwrap();
    bloom.insert("a").unwrap();
    let mut cuckoo = RedisCuckoo::with_capacity(1000).unwrap();
    cuckoo.insert("a").unwrap();
    for node in 0..3 {
        let name = cluster.name_at(node, 3, "bloom");
        bloom.store(&mut connection, &name).unwrap();
        assert!(bloom.store(&mut connection, &name).unwrap_err().is_taken());
        // A slot that moves meanwhile is asked for where it is.
        cluster.move_slot(cluster.slot_of(&name), node, (node + 1) % 3);
        let fetched = RedisBloom::fetch(&mut connection, &name, 1 << 20).unwrap();
        assert!(fetched.contains("a") && !fetched.contains("b"));
        assert!(cluster.nodes[(node + 1) % 3].ask::<bool>(&["BF.EXISTS", &name, "a"]));
        let mut one_nodes = cluster.nodes[node].connection();
        for error in [
            RedisBloom::fetch(&mut one_nodes, &name, 1 << 20).unwrap_err(),
            bloom.store(&mut one_nodes, &name).unwrap_err(),
        ] {
            let (text, slot) = (error.to_string(), format!("{name:?} is in slot "));
            assert!(
                error.is_elsewhere() && !error.is_missing() && text.starts_with(&slot),
                "{text}"
            );
        }

        let name = cluster.name_at(node, 3, "cuckoo");
        cuckoo.store(&mut connection, &name).unwrap();
        let fetched = RedisCuckoo::fetch(&mut connection, &name, 1 << 20).unwrap();
        assert!(fetched.contains("a") && !fetched.contains("b"));
        let mut other = cluster.nodes[(node + 1) % 3].connection();
        let error = RedisCuckoo::fetch(&mut other, &name, 1 << 20).unwrap_err();
        assert!(error.is_elsewhere(), "{error}");
    }
}
