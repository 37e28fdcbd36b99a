//! A feed in a thread, and the ends of following. `replicas.rs` simulates feeds that are awaited.

use crate::common::LONG;
use crate::gets::{builder, until, until_blocking};
use lanebloom_guard::{BlockingFeed, BoxError, Change, Feed, Keys};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

type Rows = Arc<Mutex<BTreeSet<u64>>>;

/// The next words of a feed. A blocking one panics with [`BUG`].
type Told = Result<Change<u64>, &'static str>;

const BREAKS: Told = Err("the connection broke");
const BUG: &str = "a bug in the feed";

/// A feed that waits for a permit before it listens, while other processes write.
struct Script {
    rows: Rows,
    permits: Receiver<()>,
    told: Receiver<Told>,
    listens: Arc<AtomicUsize>,
}

/// With what gives permits and tells.
fn script(rows: &Rows) -> (Script, Sender<()>, Sender<Told>) {
    let ((permit, permits), (tell, told)) = (mpsc::channel(), mpsc::channel());
    let (rows, listens) = (Arc::clone(rows), Arc::default());
    let feed = Script {
        rows,
        permits,
        told,
        listens,
    };
    (feed, permit, tell)
}

impl BlockingFeed<u64> for Script {
    fn listen(&mut self, timeout: Duration) -> Result<(), BoxError> {
        self.permits.recv_timeout(timeout)?;
        // Committed before it listens, and told to nobody.
        let listens = self.listens.fetch_add(1, Ordering::Relaxed);
        self.rows.lock().unwrap().insert(100 + listens as u64);
        Ok(())
    }

    fn next(&mut self, timeout: Duration) -> Result<Change<u64>, BoxError> {
        let told = self.told.recv_timeout(timeout)?;
        assert_ne!(told.as_ref().err(), Some(&BUG));
        Ok(told?)
    }
}

fn read(rows: &Rows) -> impl Fn(u64) -> Result<Option<u64>, Infallible> + use<> {
    let rows = Arc::clone(rows);
    move |id| Ok(rows.lock().unwrap().get(&id).copied())
}

fn source(rows: &Rows) -> impl FnMut(&mut Keys<'_, u64>) -> Result<(), BoxError> + use<> {
    let rows = Arc::clone(rows);
    move |keys| Ok(keys.insert_all(rows.lock().unwrap().iter().copied())?)
}

#[test]
fn a_blocking_feed_is_followed_in_the_same_order() {
    let rows = Rows::default();
    let write = |id: u64| assert!(rows.lock().unwrap().insert(id));
    let builder = builder().expected_keys(1000).false_positive_rate(1e-6);
    let cache = builder.build_blocking(read(&rows)).unwrap();
    let get = |id: u64| cache.get(&id).unwrap();
    cache.mark_ready();
    write(1);
    cache.insert_value(&1, 0);

    let (feed, permit, tell) = script(&rows);
    let listens = Arc::clone(&feed.listens);
    let following = cache.follow(feed, LONG, source(&rows));
    // It does not listen yet, and others write.
    write(2);
    assert_eq!((get(1), get(2), cache.is_ready()), (Some(0), Some(2), false));
    permit.send(()).unwrap();
    until_blocking(|| cache.is_ready());
    assert_eq!((get(1), get(2), get(100)), (Some(1), Some(2), Some(100)));
    write(3);
    assert_eq!(get(3), None);
    tell.send(Ok(Change::Written(3))).unwrap();
    until_blocking(|| get(3) == Some(3));
    // A miss that is remembered, and trusted while the feed tells.
    rows.lock().unwrap().remove(&3);
    tell.send(Ok(Change::Removed(3))).unwrap();
    until_blocking(|| get(3).is_none());
    let before = cache.stats();
    assert_eq!((get(3), cache.stats().since(&before).known_misses), (None, 1));

    for (round, end) in [(1, BREAKS), (2, Err(BUG))] {
        tell.send(end).unwrap();
        until_blocking(|| !cache.is_ready());
        // Added again, and a new one.
        rows.lock().unwrap().insert(3);
        write(10 + round);
        assert_eq!((get(3), get(10 + round)), (Some(3), Some(10 + round)));
        permit.send(()).unwrap();
        until_blocking(|| cache.is_ready());
        assert_eq!(listens.load(Ordering::Relaxed) as u64, 1 + round);
        let found = [3, 10 + round, 100 + round].map(get);
        assert_eq!(found, [Some(3), Some(10 + round), Some(100 + round)]);
        assert!(cache.guard().check(&50).is_none());
        rows.lock().unwrap().remove(&3);
        tell.send(Ok(Change::Removed(3))).unwrap();
        until_blocking(|| get(3).is_none());
    }
    drop(tell);
    following.stop();
    write(20);
    assert_eq!((get(20), cache.is_ready()), (Some(20), false));
}

/// It lacks the rows that are committed until the feed listens, and nobody tells them.
#[test]
fn a_rebuild_that_began_before_a_blocking_feed_listens_leaves_the_cache_open() {
    let rows = Rows::default();
    let cache = builder().build_blocking(read(&rows)).unwrap();
    let write = |id: u64| assert!(rows.lock().unwrap().insert(id));
    let get = |id: u64| cache.get(&id).unwrap();
    let (feed, permit, tell) = script(&rows);
    let following = cache.follow(feed, LONG, source(&rows));
    for round in 0..2 {
        // The rebuild of the round before may not have ended, though the cache was ready.
        until_blocking(|| cache.rebuild_now(source(&rows)).is_ok());
        write(round);
        assert_eq!((get(round), cache.is_ready()), (Some(round), false));
        // This one ends after the feed has listened.
        let mut read_early = source(&rows);
        let rebuild = cache.rebuild_now(|keys| {
            read_early(keys)?;
            permit.send(())?;
            tell.send(Ok(Change::Written(50)))?;
            until_blocking(|| cache.stats().inserted == 1 + round);
            Ok(())
        });
        rebuild.unwrap();
        assert_eq!(get(100 + round), Some(100 + round));
        until_blocking(|| cache.is_ready());
        assert_eq!((get(100 + round), get(60)), (Some(100 + round), None));
        tell.send(BREAKS).unwrap();
        until_blocking(|| !cache.is_ready());
    }
    following.stop();
    cache.rebuild_now(source(&rows)).unwrap();
    assert!(cache.is_ready());
}

/// A feed that tells what it is sent. Before it listens, another process writes.
pub(crate) struct Sent(Rows, UnboundedReceiver<Told>);

pub(crate) fn sent(rows: &Rows) -> (Sent, UnboundedSender<Told>) {
    let (tell, told) = unbounded_channel();
    (Sent(Arc::clone(rows), told), tell)
}

impl Feed<u64> for Sent {
    async fn listen(&mut self) -> Result<(), BoxError> {
        self.0.lock().unwrap().insert(100);
        Ok(())
    }

    async fn next(&mut self) -> Result<Change<u64>, BoxError> {
        Ok(self.1.recv().await.ok_or("closed")??)
    }
}

#[tokio::test]
async fn a_rebuild_between_follow_and_its_first_poll_leaves_the_cache_open() {
    let rows = Rows::default();
    let loader = read(&rows);
    let cache = builder().build(move |id| std::future::ready(loader(id))).unwrap();
    let mut blocking = source(&rows);
    let all = async move |keys: &mut Keys<'_, u64>| blocking(keys);
    let (feed, _tell) = sent(&rows);
    let following = cache.follow(feed, LONG, all);
    let none = async |_: &mut Keys<'_, u64>| Ok(());
    cache.rebuild_now(none).await.unwrap();
    let following = tokio::spawn(following);
    until(|| cache.is_ready()).await;
    assert_eq!(cache.get(&100).await.unwrap(), Some(100));
    following.abort();
}

/// A feed, and beside it a schedule, as the page of `follow` asks for. Whichever comes first, all
/// keys are read once at the start and once after a break, and nothing fails.
#[tokio::test(start_paused = true)]
async fn a_feed_and_a_schedule_read_the_keys_once() {
    for follows_first in [true, false] {
        let rows = Rows::default();
        let loader = read(&rows);
        let cache = builder().build(move |id| std::future::ready(loader(id))).unwrap();
        let reads = Arc::new(AtomicUsize::new(0));
        let all = || {
            let (mut source, reads) = (source(&rows), Arc::clone(&reads));
            async move |keys: &mut Keys<'_, u64>| {
                reads.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_secs(2)).await;
                source(keys)
            }
        };
        let (feed, tell) = sent(&rows);
        let following = cache.follow(feed, LONG * 60 * 24, all());
        let schedule = cache.rebuild_every(LONG * 60, all());
        let tasks = match follows_first {
            true => [tokio::spawn(infallible(following)), tokio::spawn(infallible(schedule))],
            false => [tokio::spawn(infallible(schedule)), tokio::spawn(infallible(following))],
        };
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(cache.is_ready(), "{follows_first}");
        assert_eq!(reads.load(Ordering::Relaxed), 1, "{follows_first}");
        tell.send(BREAKS).unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(cache.is_ready());
        assert_eq!(reads.load(Ordering::Relaxed), 2, "{follows_first}");
        // Later, the schedule goes on.
        tokio::time::sleep(LONG * 80).await;
        assert_eq!(reads.load(Ordering::Relaxed), 3, "{follows_first}");
        assert_eq!((cache.stats().rebuilds, cache.stats().failed_rebuilds), (3, 0));
        tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

async fn infallible(task: impl Future<Output = Infallible>) {
    match task.await {}
}

/// The blocking twin.
#[test]
fn a_blocking_feed_and_a_schedule_read_the_keys_once() {
    let rows = Rows::default();
    let cache = builder().build_blocking(read(&rows)).unwrap();
    let (feed, permit, tell) = script(&rows);
    let reads = Arc::new(AtomicUsize::new(0));
    let all = || {
        let (mut source, reads) = (source(&rows), Arc::clone(&reads));
        move |keys: &mut Keys<'_, u64>| {
            reads.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(300));
            source(keys)
        }
    };
    let following = cache.follow(feed, LONG, all());
    let schedule = cache.rebuild_every(LONG * 60, all());
    permit.send(()).unwrap();
    until_blocking(|| cache.is_ready());
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(reads.load(Ordering::Relaxed), 1);
    assert_eq!((cache.stats().rebuilds, cache.stats().failed_rebuilds), (1, 0));
    // One that is asked for by hand, while another runs, says so, and does not count.
    let inner = cache.clone();
    let rebuilt = cache.rebuild_now(move |_| {
        let error = inner.rebuild_now(|_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "another rebuild of this guard is in progress");
        Ok(())
    });
    rebuilt.unwrap();
    assert_eq!((cache.stats().rebuilds, cache.stats().failed_rebuilds), (2, 0));
    tell.send(BREAKS).unwrap();
    until_blocking(|| !cache.is_ready());
    schedule.stop();
    drop(tell);
    following.stop();
}

/// A schedule that comes due while another rebuild runs takes that one for its own, if it ends
/// well.
#[tokio::test(start_paused = true)]
async fn a_scheduled_rebuild_takes_one_that_is_running_for_its_own() {
    for fails in [false, true] {
        let rows = Rows::default();
        let loader = read(&rows);
        let cache = builder().build(move |id| std::future::ready(loader(id))).unwrap();
        cache.rebuild_now(async |_: &mut Keys<'_, u64>| Ok(())).await.unwrap();
        let reads = Arc::new(AtomicUsize::new(0));
        let of_schedule = Arc::clone(&reads);
        let schedule = cache.rebuild_every(LONG, async move |_: &mut Keys<'_, u64>| {
            of_schedule.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
        let schedule = tokio::spawn(schedule);
        // The schedule is due after 54 to 66 seconds.
        tokio::time::sleep(Duration::from_secs(50)).await;
        let slow = async |_: &mut Keys<'_, u64>| {
            tokio::time::sleep(Duration::from_secs(20)).await;
            if fails { Err("no".into()) } else { Ok(()) }
        };
        assert_eq!(cache.rebuild_now(slow).await.is_err(), fails);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(reads.load(Ordering::Relaxed), usize::from(fails));
        assert_eq!(
            (cache.stats().rebuilds, cache.stats().failed_rebuilds),
            (2, u64::from(fails))
        );
        schedule.abort();
    }
}

/// Changes go into both filters while a source keeps its thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_do_not_wait_for_a_source_that_does_not_yield() {
    let read = async |id: u64| Ok::<_, Infallible>(Some(id));
    let cache = builder().build(read).unwrap();
    let (feed, tell) = sent(&Rows::default());
    let of_source = cache.clone();
    let source = async move |keys: &mut Keys<'_, u64>| {
        let tell = tell.clone();
        std::thread::spawn(move || tell.send(Ok(Change::Written(3))));
        until_blocking(|| of_source.stats().inserted == 1);
        Ok(keys.insert_all([1, 2])?)
    };
    let following = tokio::spawn(cache.follow(feed, LONG, source));
    until(|| cache.is_ready()).await;
    let admitted = [1, 2, 3, 4].map(|id| cache.guard().check(&id).is_some());
    assert_eq!(admitted, [true, true, true, false]);
    following.abort();
}

/// It listens again, and a rebuild that hangs does not close the cache meanwhile.
#[test]
fn a_blocking_feed_that_is_silent_is_broken() {
    let rows = Rows::default();
    let cache = builder().build_blocking(read(&rows)).unwrap();
    let (feed, permit, _tell) = script(&rows);
    (0..10).for_each(|_| permit.send(()).unwrap());
    let listens = Arc::clone(&feed.listens);
    let mut source = source(&rows);
    let rebuilds = Arc::new(AtomicUsize::new(0));
    let beside = Arc::new(AtomicUsize::new(0));
    let following = cache.follow(feed, Duration::from_millis(50), {
        let (listens, rebuilds, beside) = (Arc::clone(&listens), Arc::clone(&rebuilds), Arc::clone(&beside));
        move |keys| {
            source(keys)?;
            if rebuilds.fetch_add(1, Ordering::Relaxed) == 0 {
                // Longer than the silence: the feed breaks before this ends.
                std::thread::sleep(Duration::from_millis(200));
                beside.store(listens.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            Ok(())
        }
    });
    until_blocking(|| rebuilds.load(Ordering::Relaxed) == 1);
    until_blocking(|| listens.load(Ordering::Relaxed) == 2 || cache.is_ready());
    assert!(!cache.is_ready() || rebuilds.load(Ordering::Relaxed) >= 2);
    // It did not listen again beside the source.
    assert_eq!(beside.load(Ordering::Relaxed), 1);
    until_blocking(|| listens.load(Ordering::Relaxed) == 3);
    following.stop();
    assert!(!cache.is_ready());
}

/// The cache opens while a source keeps its thread, so the rebuild leaves it open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_that_breaks_opens_the_cache_before_the_source_yields() {
    let read = async |id: u64| Ok::<_, Infallible>(Some(id));
    let cache = builder().build(read).unwrap();
    let (of_source, is_open) = (cache.clone(), Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&is_open);
    let source = async move |keys: &mut Keys<'_, u64>| {
        of_source.mark_ready();
        until_blocking(|| !of_source.is_ready());
        seen.store(true, Ordering::Relaxed);
        Ok(keys.insert_all([1, 2])?)
    };
    let (feed, _tell) = sent(&Rows::default());
    let following = tokio::spawn(cache.follow(feed, Duration::from_millis(200), source));
    until(|| is_open.load(Ordering::Relaxed)).await;
    following.abort();
}

/// The task that applies the changes is cancelled then, before the future is dropped.
#[test]
fn a_runtime_that_shuts_down_does_not_make_follow_panic() {
    let read = async |id: u64| Ok::<_, Infallible>(Some(id));
    let cache = builder().build(read).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let all = async |keys: &mut Keys<'_, u64>| Ok(keys.insert_all([1, 2])?);
    let (feed, _tell) = sent(&Rows::default());
    let mut following = Box::pin(cache.follow(feed, LONG, all));
    runtime.block_on(async {
        tokio::select! {
            never = &mut following => match never {},
            () = until(|| cache.is_ready()) => {}
        }
    });
    drop(runtime);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..2 {
        assert!(following.as_mut().poll(&mut context).is_pending());
    }
}

/// A rebuild may take minutes. Made-up keys that come again do not read the store meanwhile.
#[tokio::test]
async fn misses_serve_once_a_feed_is_heard() {
    let read = async |_| Ok::<Option<u64>, Infallible>(None);
    let cache = builder().build(read).unwrap();
    let hangs = async |_: &mut Keys<'_, u64>| std::future::pending().await;
    let (feed, _tell) = sent(&Rows::default());
    let following = tokio::spawn(cache.follow(feed, LONG, hangs));
    while cache.stats().known_misses < 10 {
        assert_eq!(cache.get(&1).await.unwrap(), None);
        tokio::task::yield_now().await;
    }
    following.abort();
}
